//! Too much in one brief does not help (AF-156): many findings become a few themes, and a brief that would fill half of
//! an agent's memory loses its examples. Rules are always kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Tracked;
use crate::model::{Boundaries, Severity};

/// A character is about a quarter of a token (BX-24).
pub const CHARS_PER_TOKEN: u64 = 4;

/// What several findings have in common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Theme {
    pub category: String,
    pub gravest: Severity,
    pub findings: u32,
    pub ids: Vec<String>,
    pub files: BTreeSet<String>,
}

/// The findings to list one by one, and the themes of the rest. CRITICALs are never merged into a theme.
pub fn themes<'a>(open: &[&'a Tracked], policy: &Boundaries) -> (Vec<&'a Tracked>, Vec<Theme>) {
    if open.len() <= policy.findings_at_most as usize {
        return (open.to_vec(), Vec::new());
    }
    let mut single = Vec::new();
    let mut themes: BTreeMap<&str, Theme> = BTreeMap::new();
    for found in open {
        if found.severity == Severity::Critical {
            single.push(*found);
            continue;
        }
        let theme = themes.entry(&found.category).or_insert_with(|| Theme {
            category: found.category.clone(),
            gravest: found.severity,
            findings: 0,
            ids: Vec::new(),
            files: BTreeSet::new(),
        });
        theme.gravest = theme.gravest.max(found.severity);
        theme.findings += 1;
        theme.ids.push(found.id.clone());
        theme.files.insert(found.file.clone());
    }
    let mut themes: Vec<Theme> = themes.into_values().collect();
    themes.sort_by(|a, b| (b.gravest, b.findings, &a.category).cmp(&(a.gravest, a.findings, &b.category)));
    themes.truncate(policy.themes as usize);
    (single, themes)
}

/// Whether a brief of N characters takes more of the window than it should.
pub fn fills(characters: usize, window_tokens: u64, policy: &Boundaries) -> bool {
    let tokens = u64::try_from(characters).unwrap_or(u64::MAX).div_ceil(CHARS_PER_TOKEN);
    tokens.saturating_mul(100) > window_tokens.saturating_mul(u64::from(policy.prompt_percent))
}

/// The length limit of a brief after one that did not fit: as much smaller as a brief that fills the window would be.
pub fn room(too_long_chars: u64, window_tokens: u64, policy: &Boundaries) -> u64 {
    let whole = match too_long_chars {
        0 => window_tokens.saturating_mul(CHARS_PER_TOKEN),
        known => known.min(window_tokens.saturating_mul(CHARS_PER_TOKEN)),
    };
    whole.saturating_mul(u64::from(policy.prompt_percent)) / 100
}

/// The beginning of a text that is over by N characters, with a word about the rest; all of it where nothing
/// would be gained.
pub fn cut(text: &str, over: u64, rest: &str) -> String {
    let note = format!("\n[cut here to make room; {rest}]\n");
    let (whole, more) = (text.chars().count() as u64, note.chars().count() as u64);
    let Some(kept) = whole.checked_sub(over.saturating_add(more)) else {
        return if whole > more { note.trim_start().to_owned() } else { text.to_owned() };
    };
    let kept: String = text.chars().take(usize::try_from(kept).unwrap_or(usize::MAX)).collect();
    // Whole lines only: half a line of a diff means something else.
    let end = kept.rfind('\n').map_or(kept.len(), |at| at);
    format!("{}{note}", kept.get(..end).unwrap_or(&kept))
}

/// A persona without the text between fences.
pub fn without_examples(prompt: &str) -> String {
    let mut kept = Vec::new();
    let mut fence: Option<&str> = None;
    for line in prompt.lines() {
        let mark = ["````", "```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => {
                fence = Some(mark);
                kept.push("(example left out)");
            }
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) => kept.push(line),
        }
    }
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::{cut, room};
    use crate::model::Boundaries;

    #[test]
    fn m_g5_a_brief_that_did_not_fit_is_made_smaller() {
        let policy = Boundaries { prompt_percent: 50, ..Boundaries::default() };
        for (chars, window, wanted) in [(1_000, 200_000, 500), (0, 1_000, 2_000), (9_000_000, 1_000, 2_000)] {
            assert_eq!(room(chars, window, &policy), wanted, "{chars} {window}");
        }
    }

    #[test]
    fn m_g5_what_is_cut_ends_with_a_whole_line_and_says_so() {
        let text = "line one\nline two\nline three\nline four\nline five\nline six\nline seven\n".repeat(3);
        let short = cut(&text, 60, "read the rest in your checkout");
        assert!(short.starts_with("line one\n") && short.len() + 50 < text.len(), "{short}");
        let (kept, note) = short.split_once("\n[cut here").unwrap_or_default();
        assert!(text.contains(&format!("{kept}\n")) && note.contains("read the rest"), "{short}");
        assert_eq!(cut("short", 60, "read the rest"), "short", "nothing would be gained");
        assert!(cut(&text, 9_999, "x").starts_with("[cut here"));
    }
}
