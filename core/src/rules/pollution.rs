//! Too much in one brief helps nobody (AF-156): many findings become a few themes, and a brief that would fill half of
//! an agent's memory loses its examples. Rules are always kept.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Tracked;
use crate::words::{Boundaries, Severity};

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

/// The findings to tell one by one, and the themes of the rest. CRITICALs are never folded into a theme.
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

/// Whether a brief of so many characters takes more of the window than it should.
pub fn fills(characters: usize, window_tokens: u64, policy: &Boundaries) -> bool {
    let tokens = u64::try_from(characters).unwrap_or(u64::MAX).div_ceil(CHARS_PER_TOKEN);
    tokens.saturating_mul(100) > window_tokens.saturating_mul(u64::from(policy.prompt_percent))
}

/// A persona without what stands between fences.
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
