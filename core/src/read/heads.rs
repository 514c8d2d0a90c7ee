//! The lines a finding begins with: severity, place and category in the orders people put them, and labels.

use super::draft::{Draft, FindingField, category, category_flaw};
use super::naming;
use super::place;
use super::sections;
use super::text::{head, is_dash, is_emoji, is_markup, tail, unbullet};
use crate::model::CATEGORIES;

/// The first byte of `：`.
const WIDE_COLON: u8 = 0xef;

/// `**Fix:** bind parameters` and its variants.
pub(crate) fn label(text: &str) -> Option<(FindingField, &str)> {
    let text = unbullet(text.trim()).trim_start_matches(['*', '_', '`']);
    // Neither colon is there within as many characters as may be in front of it, which passes most lines by.
    let start = text.as_bytes().get(..30 * 4).unwrap_or(text.as_bytes());
    memchr::memchr2(b':', WIDE_COLON, start)?;
    let (at, colon) = text.char_indices().take(30).find(|(_, c)| matches!(c, ':' | '：'))?;
    let name = head(text, at).trim_end_matches(['*', '_', '`', ' ']);
    let value = tail(text, at + colon.len_utf8()).trim_start_matches(['*', '_']).trim();
    let lines = ["line", "lines"].iter().any(|label| label.eq_ignore_ascii_case(name));
    if lines && value.trim_start_matches(['L', '`']).starts_with(|c: char| c.is_ascii_digit()) {
        return Some((FindingField::Line, value.trim_matches('`')));
    }
    let field = FindingField::of_label(&name.to_lowercase())?;
    Some((field, value))
}

/// A finding that begins with its severity, or with its place and then its severity.
pub(crate) fn opening(text: &str, categories: &[String]) -> Option<Draft> {
    let (place, lead) = naming::opening(text)?;
    let mut draft = Draft::of(lead.severity);
    if let Some(place) = place {
        draft.add(FindingField::Location, place);
    }
    fill(&mut draft, lead.rest, categories);
    Some(draft)
}

fn is_separator(c: char) -> bool {
    c.is_whitespace() || is_dash(c) || is_emoji(c) || matches!(c, ':' | '：' | ',' | '|' | '/' | '·')
}

/// Takes place and category from the front of a text; what remains describes, up to `Fix:` and `Evidence:`.
pub(crate) fn fill(draft: &mut Draft, text: &str, categories: &[String]) {
    let mut rest = text;
    for _ in 0..3 {
        rest = rest.trim_start_matches(is_separator);
        if draft.get(FindingField::Location).is_empty()
            && let Some((place, behind)) = place::leading(rest)
        {
            draft.add(FindingField::Location, place);
            rest = behind.trim_start_matches('*');
        } else if let Some((place, category, behind)) = leading_pair(rest)
            && draft.get(FindingField::Location).is_empty()
            && draft.get(FindingField::Category).is_empty()
        {
            draft.add(FindingField::Location, place);
            draft.add(FindingField::Category, category);
            rest = behind;
        } else if draft.get(FindingField::Category).is_empty()
            && let Some((category, behind)) = leading_category(rest, categories)
        {
            draft.add(FindingField::Category, category);
            rest = behind;
        } else {
            break;
        }
    }
    let rest = rest.trim_start_matches(is_separator);
    for (field, part) in labelled_parts(rest) {
        match field {
            FindingField::Severity => draft.set_severity(part),
            FindingField::Location
            | FindingField::Line
            | FindingField::Category
            | FindingField::Description
            | FindingField::Fix
            | FindingField::Evidence => {
                draft.add(field, part);
            }
        }
    }
}

/// `(src/a.rs:10, security)` in either order.
fn leading_pair(text: &str) -> Option<(&str, &str, &str)> {
    let inner = text.strip_prefix('(')?;
    let end = matching(inner, '(', ')')?;
    let (one, two) = head(inner, end).split_once(',')?;
    let behind = tail(inner, end + 1);
    let bare = |text: &str| text.trim().trim_matches('`').contains(char::is_whitespace);
    let placed = |text: &str| place::leading(text.trim()).is_some() && !bare(text);
    match (placed(one), placed(two)) {
        (true, false) => Some((one.trim(), two.trim(), behind)),
        (false, true) => Some((two.trim(), one.trim(), behind)),
        (true, true) | (false, false) => None,
    }
}

/// `(security)`, `[reliability (test gap)]`, `security:` or `reliability (test gap) —`.
fn leading_category<'a>(text: &'a str, categories: &[String]) -> Option<(&'a str, &'a str)> {
    let text = text.trim_start_matches(['*', '_', '`']);
    for (open, close) in [('(', ')'), ('[', ']')] {
        if let Some(inner) = text.strip_prefix(open) {
            let end = matching(inner, open, close)?;
            let (name, behind) = (head(inner, end), tail(inner, end + 1));
            let plausible =
                name.split_whitespace().count() <= 5 && !name.contains(|c: char| c.is_ascii_digit());
            return (plausible && !name.trim().is_empty()).then_some((name, behind));
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && !matches!(c, '-' | '_')).unwrap_or(text.len());
    let spaced = text.get(..15).filter(|two| two.eq_ignore_ascii_case("breaking change"));
    let name = spaced.unwrap_or(head(text, end));
    let known = category(name).0;
    if !CATEGORIES.contains(&known.as_str()) && !categories.contains(&known) {
        return None;
    }
    let behind = tail(text, name.len());
    let bare = behind.trim_start_matches(['*', '_', '`', ' ']);
    if let Some(inner) = bare.strip_prefix('(')
        && let Some(end) = matching(inner, '(', ')')
        && category_flaw(head(inner, end)).is_some()
    {
        let after = tail(inner, end + 1);
        return Some((head(text, text.len() - after.len()), after));
    }
    bare.starts_with(|c| matches!(c, ':' | '|' | ',' | '·') || is_dash(c)).then_some((name, bare))
}

/// Where the bracket closes that was open at the start, if within a category's length.
fn matching(text: &str, open: char, close: char) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices().take(80) {
        if c == open {
            depth += 1;
        } else if c == close && depth == 0 {
            return Some(at);
        } else if c == close {
            depth -= 1;
        }
    }
    None
}

/// Cuts a text at labels inside it: `it leaks. Fix: close it. Evidence: …`.
fn labelled_parts(text: &str) -> Vec<(FindingField, &str)> {
    let mut parts = Vec::new();
    let mut field = FindingField::Description;
    let mut start = 0;
    for (colon, _) in text.char_indices().filter(|(_, c)| *c == ':') {
        let before = text.get(start..colon).unwrap_or("").trim_end_matches(['*', '_', '`']);
        let Some((next, name)) = inline_label(before) else { continue };
        let part = head(before, before.len() - name).trim_end_matches(['*', '_', '`', ' ', '(', '—', '–']);
        parts.push((field, part.trim()));
        field = next;
        start = colon
            + 1
            + (tail(text, colon + 1).len() - tail(text, colon + 1).trim_start_matches(['*', '_']).len());
    }
    parts.push((field, tail(text, start).trim().trim_end_matches("**")));
    parts.retain(|(field, part)| !part.is_empty() || *field == FindingField::Fix);
    parts
}

/// The label a text ends with, and its length.
fn inline_label(text: &str) -> Option<(FindingField, usize)> {
    let labels = [
        "Suggested fix",
        "Fix",
        "Suggestion",
        "Recommendation",
        "Evidence",
        "Proof",
        "Reproduction",
        "Category",
        "Location",
        "Severity",
    ];
    labels.into_iter().find_map(|label| {
        let before = text.strip_suffix(label)?;
        let free = before.is_empty()
            || before.ends_with(|c: char| is_markup(c) || matches!(c, '(' | '[' | '—' | '–'));
        free.then_some((FindingField::of_label(&label.to_ascii_lowercase())?, label.len()))
    })
}

/// `Finding 1:`, `Issue #2 -` and, where a severity follows, `**1.` in front of a finding.
pub(crate) fn unprefixed(text: &str) -> &str {
    let text = text.trim_start_matches(['*', '_']).trim_start();
    let bare = sections::unnumber(text);
    if bare.len() < text.len() && naming::opening(bare).is_some() {
        return bare;
    }
    if let Some(rest) = unnamed(text) {
        return rest;
    }
    let Some(rest) = ["finding", "issue"].iter().find_map(|word| {
        let (start, rest) = text.split_at_checked(word.len())?;
        start.eq_ignore_ascii_case(word).then_some(rest)
    }) else {
        return text;
    };
    let rest = rest.trim_start_matches([' ', '#']);
    let number = rest.bytes().take_while(u8::is_ascii_digit).count();
    if number == 0 {
        return text;
    }
    tail(rest, number).trim_start_matches(|c| is_separator(c) || matches!(c, '.' | '*'))
}

/// The text behind a finding's name, as in `CR-01: title`. A severity is none: see [`naming::opening`].
pub(crate) fn unnamed(text: &str) -> Option<&str> {
    let letters = text.bytes().take_while(u8::is_ascii_uppercase).count();
    let rest = tail(text, letters);
    let rest = rest.strip_prefix('-').unwrap_or(rest);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let behind = tail(rest, digits).trim_start_matches(['*', '_', '`', ']', ' ']);
    let separated = behind.starts_with(|c: char| matches!(c, ':' | '：') || is_dash(c));
    let fits = (1..=5).contains(&letters) && (1..=4).contains(&digits);
    let severity = super::words::severity_of(head(text, letters)).is_some();
    (fits && separated && !severity).then(|| behind.trim_start_matches(is_separator))
}
