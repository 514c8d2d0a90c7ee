//! A review: the verdict, the declared count and the findings, and whether they fit together (D-04).

use super::Problems;
use super::findings;
use super::lines::{LineKind, TextLine};
use super::reproductions;
use super::table;
use super::text::{bullet, holds, is_emoji, is_markup, is_none, tail};
use crate::model::{Review, Verdict};

/// A line about the whole review is short.
const MAX_LINE: usize = 2000;

pub(crate) fn review(
    source: &str,
    lines: &[TextLine],
    categories: &[String],
    problems: &mut Problems,
) -> Review {
    let before = problems.count();
    let said: Vec<(usize, &str)> = lines
        .iter()
        .enumerate()
        .filter(|(_, line)| line.kind == LineKind::Plain)
        .map(|(at, line)| (at, line.text))
        .collect();
    let section = reproductions::range(lines);
    let outside = section.map(|section| reproductions::without(lines, section));
    let mut found = findings::findings(source, outside.as_deref().unwrap_or(lines), categories, problems);
    let mut verdicts: Vec<_> = said.iter().filter_map(|(at, text)| Some((*at, verdict_on(text)?))).collect();
    verdicts.extend(found.verdicts);
    let verdict = agree_on_verdict(&verdicts, problems);
    let declared = agree_on_count(&said, problems);

    if let Some(declared) = declared
        && usize::try_from(declared) != Ok(found.accepted)
    {
        problems.note(format!("{declared} findings declared, {} read", found.accepted));
    }
    let rejected = verdict == Some(Verdict::Rejected);
    if rejected && found.accepted == 0 {
        problems.note("rejected without a finding that could be read".to_owned());
    }
    let mut unread = problems.since(before);
    if let Some(section) = section {
        reproductions::attach(lines, section, &mut found.findings, problems);
    }
    let left_out = findings::keep_the_gravest(&mut found.findings, found.accepted);
    if left_out > 0 {
        let kept = found.findings.len();
        let said = format!("{left_out} findings left out: only the {kept} most severe are kept");
        // A rejection is valid with only its most severe findings. An approval is none without all of them (D-04).
        unread = unread.or_else(|| (!rejected).then(|| said.clone()));
        problems.note(said);
    }
    let left_out = u32::try_from(left_out).unwrap_or(u32::MAX);
    Review { verdict, declared, findings: found.findings, left_out, unread }
}

/// Whether a line claims to be a verdict, readable or not.
pub(super) fn is_verdict(text: &str) -> bool {
    verdict_on(text).is_some()
}

/// A line about the whole review, which ends whatever is above it.
pub(crate) fn is_control(text: &str) -> bool {
    verdict_on(text).is_some() || count_on(text).is_some()
}

fn agree_on_verdict(verdicts: &[(usize, Option<Verdict>)], problems: &mut Problems) -> Option<Verdict> {
    let Some((_, first)) = verdicts.first() else {
        problems.note("no verdict".to_owned());
        return None;
    };
    if let Some((at, _)) = verdicts.iter().find(|(_, verdict)| verdict.is_none()) {
        problems.at(*at, "a verdict that could not be read");
        return None;
    }
    if let Some((at, _)) = verdicts.iter().find(|(_, verdict)| verdict != first) {
        problems.at(*at, "the verdict contradicts an earlier one");
        return None;
    }
    *first
}

/// `VERDICT: APPROVED`, or the word alone. `Some(None)` is a line that claims to be a verdict and is not readable.
/// A rejection may be followed by its reason; an approval may not, for that would be a condition.
fn verdict_on(text: &str) -> Option<Option<Verdict>> {
    let text = undecorated(text)?;
    let Some(value) = after_keyword(text, "verdict") else {
        return bare_verdict(text);
    };
    let value = value.trim_matches(is_decoration);
    if value.is_empty() {
        return None;
    }
    let exact = bare_verdict(value).flatten();
    let reasoned = value.strip_prefix("REJECTED").filter(|why| !why.starts_with(char::is_alphanumeric));
    let rejected = reasoned.filter(|why| !why.contains("APPROVED")).map(|_| Verdict::Rejected);
    Some(exact.or(rejected))
}

fn bare_verdict(text: &str) -> Option<Option<Verdict>> {
    match text.trim_end_matches(['.', '!']).trim_matches(is_decoration) {
        "APPROVED" => return Some(Some(Verdict::Approved)),
        "REJECTED" => return Some(Some(Verdict::Rejected)),
        _ => {}
    }
    if text.len() > 60 {
        return None;
    }
    let mut words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let both = text.contains("APPROVED") && text.contains("REJECTED");
    (both && words.all(|word| matches!(word, "APPROVED" | "REJECTED" | "or" | "and"))).then_some(None)
}

fn agree_on_count(said: &[(usize, &str)], problems: &mut Problems) -> Option<u32> {
    let mut declared = None;
    for (at, count) in said.iter().filter_map(|(at, text)| Some((*at, count_on(text)?))) {
        match (declared, count) {
            (_, None) => problems.at(at, "a number of findings that could not be read"),
            (None, Some(count)) => declared = Some(count),
            (Some(before), Some(count)) if before != count => {
                problems.at(at, format_args!("{count} findings declared, {before} before"));
            }
            (Some(_), Some(_)) => {}
        }
    }
    declared
}

/// `FINDINGS: 3`. `Some(None)` begins with a number and is not one.
fn count_on(text: &str) -> Option<Option<u32>> {
    let value = after_keyword(undecorated(text)?, "findings")?;
    let value = value.trim_matches(|c| is_decoration(c) || c == '.');
    if value.is_empty() {
        return None;
    }
    if is_none(value) {
        return Some(Some(0));
    }
    value.starts_with(|c: char| c.is_ascii_digit()).then(|| value.parse().ok())
}

fn is_decoration(c: char) -> bool {
    is_markup(c) || is_emoji(c)
}

/// The line without heading marks, a list marker and what decorates it. Rows of a table and added lines of a diff have
/// no say here.
fn undecorated(text: &str) -> Option<&str> {
    if text.len() > MAX_LINE || !holds(text, &["verdict", "approved", "rejected", "findings"]) {
        return None;
    }
    let text = text.trim();
    if text.starts_with('+') || table::is_row(text) {
        return None;
    }
    let text = text.trim_start_matches('#').trim_start();
    let text = bullet(text).map_or(text, |width| tail(text, width));
    Some(text.trim_matches(is_decoration))
}

fn after_keyword<'a>(text: &'a str, keyword: &str) -> Option<&'a str> {
    let (word, rest) = text.split_at_checked(keyword.len())?;
    if !word.eq_ignore_ascii_case(keyword) {
        return None;
    }
    rest.trim_start_matches(['*', '_', '`']).strip_prefix(':')
}
