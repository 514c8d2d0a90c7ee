//! The status token (AF-040, D-02): `STATUS: DONE`, `DONE_WITH_CONCERNS`, `NEEDS_CONTEXT` or `BLOCKED`.
//!
//! It is at the very start of the last line that is not blank, outside everything that is merely shown. Emphasis,
//! code marks and a full stop around it are tolerated, and `Status` in any case; the token itself is upper case ASCII.
//! Text after the last token makes the answer [`Status::Unverified`]. Different tokens are a problem, and the most
//! careful one counts; one that asks for a person counts wherever it is, also if text follows (S-07).

use super::Problems;
use super::lines::{LineKind, TextLine};
use super::reproductions;
use super::sections::{self, SectionedText};
use super::text::{bullet, cap, is_markup};
use crate::model::Status;

const MAX_REMARK: usize = 1000;

/// The status, and the line of the token that counts. Without `own`, the brief named a code and no token has it: then
/// only one that asks for a person counts.
pub(crate) fn status(lines: &[TextLine], own: bool, problems: &mut Problems) -> (Status, Option<usize>) {
    let Some(final_line) = lines.iter().rposition(|line| line.kind != LineKind::Blank) else {
        return (Status::Unverified, None);
    };
    let said = lines.iter().enumerate().filter(|(_, line)| line.kind == LineKind::Plain);
    let tokens: Vec<(usize, Status)> = said.filter_map(|(at, line)| Some((at, token(line.text)?))).collect();
    let Some((at, status)) = tokens.last().copied() else {
        if lines.get(final_line).is_some_and(|line| line.kind == LineKind::Plain && looks_like_one(line.text))
        {
            problems.at(final_line, "not a status token");
        }
        return (Status::Unverified, None);
    };
    // An answer that says both is not done: the most careful token counts.
    let gravest =
        tokens.iter().map(|(_, status)| *status).max_by_key(|status| care(*status)).unwrap_or(status);
    if at != final_line || !own {
        match own {
            true => problems.at(at, format_args!("text follows the status {}", status.name())),
            false => problems.at(at, "a status without the code of the brief, which may be a quotation"),
        }
        return match gravest {
            Status::Blocked | Status::NeedsContext => (gravest, Some(at)),
            Status::Done | Status::DoneWithConcerns | Status::Unverified => (Status::Unverified, None),
        };
    }
    if let Some((other, before)) = tokens.iter().rev().find(|(_, before)| *before != status) {
        problems.at(
            *other,
            format_args!("the status {} contradicts the last one, {}", before.name(), status.name()),
        );
    }
    (gravest, Some(at))
}

/// What makes a review unreadable that goes on after its closing line: it may take back what it said before.
pub(super) fn overrun(lines: &[TextLine]) -> Option<String> {
    let end = lines.iter().rposition(|line| line.kind != LineKind::Blank)?;
    let said = |line: &TextLine| line.kind == LineKind::Plain && is_token(line.text);
    let closing = lines.iter().rposition(said).filter(|at| *at != end)?;
    Some(format!("line {}: text follows the closing line", closing + 2))
}

/// How much a person has to look at an answer with this status.
pub(super) fn care(status: Status) -> u8 {
    match status {
        Status::Done => 0,
        Status::DoneWithConcerns => 1,
        Status::Unverified => 2,
        Status::NeedsContext => 3,
        Status::Blocked => 4,
    }
}

fn token(text: &str) -> Option<Status> {
    let rest = after_keyword(text)?;
    let rest = rest.trim_start_matches(is_tolerated);
    let end = rest.find(|c: char| !c.is_ascii_uppercase() && c != '_').unwrap_or(rest.len());
    let (word, behind) = rest.split_at_checked(end)?;
    if !behind.chars().all(|c| is_tolerated(c) || c == '.') {
        return None;
    }
    match word.trim_end_matches('_') {
        "DONE" => Some(Status::Done),
        "DONE_WITH_CONCERNS" => Some(Status::DoneWithConcerns),
        "NEEDS_CONTEXT" => Some(Status::NeedsContext),
        "BLOCKED" => Some(Status::Blocked),
        _ => None,
    }
}

fn is_tolerated(c: char) -> bool {
    matches!(c, '*' | '_' | '`' | ' ' | '\t')
}

/// Whether a line is one of the four tokens.
pub(super) fn is_token(text: &str) -> bool {
    token(text).is_some()
}

pub(super) fn is_blocked(text: &str) -> bool {
    token(text) == Some(Status::Blocked)
}

/// Whether a line claims to be a status, readable or not.
pub(crate) fn looks_like_one(text: &str) -> bool {
    after_keyword(text).is_some()
}

fn after_keyword(text: &str) -> Option<&str> {
    let text = text.trim_start_matches(['*', '_', '`']);
    let (keyword, rest) = text.split_at_checked(6)?;
    if !keyword.eq_ignore_ascii_case("STATUS") {
        return None;
    }
    rest.trim_start_matches(['*', '_', '`']).strip_prefix(':')
}

/// What a person has to know beside a status other than done: the section about it, or else the paragraph before
/// the token.
pub(crate) fn remark(status: Status, token: Option<usize>, page: &SectionedText) -> String {
    let headings: &[&str] = match status {
        Status::Unverified | Status::Done => return String::new(),
        Status::DoneWithConcerns => &["Concern", "Concerns"],
        Status::NeedsContext => {
            &["Question", "Questions", "Open question", "Open questions", "Needs", "Need"]
        }
        Status::Blocked => &["Blocker", "Blockers", "Blocked"],
    };
    let end = token.unwrap_or(page.lines.len());
    // Commands and tests are no remarks.
    let end = match reproductions::range(&page.lines) {
        Some((start, after)) if after >= end => start.min(end),
        Some(_) | None => end,
    };
    let named = headings.iter().find_map(|heading| page.range(heading));
    let named = named.and_then(|(first, after)| page.lines.get(first..after.min(end)));
    let named = named.filter(|lines| sections::says_something(lines));
    let lines = named.unwrap_or_else(|| last_paragraph(page.lines.get(..end).unwrap_or(&[])));
    let joined = lines.iter().map(|line| line.text).collect::<Vec<_>>().join("\n");
    cap(&joined, MAX_REMARK)
}

/// The last paragraph; of a list all of it, with the line that introduces it.
fn last_paragraph<'s, 'a>(lines: &'s [TextLine<'a>]) -> &'s [TextLine<'a>] {
    let end = lines.iter().rposition(|line| line.kind != LineKind::Blank).map_or(0, |at| at + 1);
    let mut start = end;
    let mut blank = false;
    for (at, line) in lines.iter().enumerate().take(end).rev() {
        if line.kind == LineKind::Blank {
            blank = true;
            continue;
        }
        if sections::heading(line).is_some_and(|_| line.text.trim_start().starts_with('#')) {
            break;
        }
        let listed = lines.get(start).is_some_and(|first| bullet(first.text.trim()).is_some());
        if blank && start < end && !listed && !line.text.trim_end_matches(is_markup).ends_with(':') {
            break;
        }
        blank = false;
        start = at;
    }
    lines.get(start..end).unwrap_or(&[])
}
