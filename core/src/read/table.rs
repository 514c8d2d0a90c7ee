//! Rows of pipes.

use super::lines::TextLine;
use super::text::{Span, between, bullet, spans, tail};

/// Whether a line has a pipe that could divide cells.
pub(crate) fn is_row(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_escaped = |at: usize| at.checked_sub(1).and_then(|before| bytes.get(before)) == Some(&b'\\');
    memchr::memchr_iter(b'|', bytes).any(|at| !is_escaped(at))
}

/// The row between header and body: `|---|:--:|`.
pub(crate) fn is_rule(text: &str) -> bool {
    let text = row(text);
    is_row(text)
        && text.contains('-')
        && text.split('|').map(str::trim).filter(|cell| !cell.is_empty()).all(|cell| {
            let dashes = cell.strip_prefix(':').unwrap_or(cell);
            let dashes = dashes.strip_suffix(':').unwrap_or(dashes);
            !dashes.is_empty() && dashes.bytes().all(|b| b == b'-')
        })
}

/// The cells of a row. A pipe divides unless it is escaped or, where `wanted` cells come out of it that way, inside
/// code: people forget to escape it there, and a stray backtick must not swallow the next cell.
pub(crate) fn cells(text: &str, wanted: Option<usize>) -> Vec<String> {
    let text = row(text);
    let code = spans(text);
    if code.is_empty() {
        return split(text, &[]);
    }
    let careful = split(text, &code);
    if wanted.is_some_and(|wanted| careful.len() != wanted) {
        let plain = split(text, &[]);
        if wanted == Some(plain.len()) {
            return plain;
        }
    }
    careful
}

/// A table can begin inside a list item.
fn row(text: &str) -> &str {
    let text = text.trim();
    let inner = bullet(text).map_or(text, |width| tail(text, width));
    if inner.starts_with('|') { inner } else { text }
}

fn split(text: &str, code: &[Span]) -> Vec<String> {
    let (text, offset) = text.strip_prefix('|').map_or((text, 0), |rest| (rest, 1));
    let mut code = code.iter().peekable();
    let mut cells = Vec::new();
    let mut cell = String::new();
    // Where the part begins that is in no cell yet.
    let mut start = 0;
    for at in memchr::memchr_iter(b'|', text.as_bytes()) {
        if at > start && text.as_bytes().get(at - 1) == Some(&b'\\') {
            cell.push_str(between(text, start, at - 1));
            cell.push('|');
            start = at + 1;
            continue;
        }
        while code.next_if(|span| span.close <= at + offset).is_some() {}
        if code.peek().is_some_and(|span| span.open <= at + offset) {
            continue;
        }
        cell.push_str(between(text, start, at));
        cells.push(cell.trim().to_owned());
        cell.clear();
        start = at + 1;
    }
    let rest = tail(text, start);
    if !(cell.is_empty() && rest.is_empty()) || cells.is_empty() {
        cell.push_str(rest);
        cells.push(cell.trim().to_owned());
    }
    cells
}

/// Whether a table with a rule under its header begins at this line.
pub(crate) fn begins(lines: &[TextLine], at: usize) -> bool {
    lines.get(at).is_some_and(|line| is_row(line.text))
        && lines.get(at + 1).is_some_and(|line| is_rule(line.text))
}
