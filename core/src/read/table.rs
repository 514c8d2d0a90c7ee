//! Rows of pipes.

use super::lines::TextLine;
use super::text::{Span, bullet, spans, tail};

/// Whether a line has a pipe that could divide cells.
pub(crate) fn is_row(text: &str) -> bool {
    let mut escaped = false;
    text.bytes().any(|b| {
        let divides = b == b'|' && !escaped;
        escaped = b == b'\\';
        divides
    })
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
    let text = text.strip_prefix('|').map_or((text, 0), |rest| (rest, 1));
    let (text, offset) = text;
    let mut code = code.iter().peekable();
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut ended = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        while code.next_if(|span| span.close <= at + offset).is_some() {}
        let in_code = code.peek().is_some_and(|span| span.open <= at + offset);
        ended = false;
        match c {
            '\\' if chars.next_if(|(_, next)| *next == '|').is_some() => cell.push('|'),
            '|' if !in_code => {
                cells.push(cell.trim().to_owned());
                cell.clear();
                ended = true;
            }
            _ => cell.push(c),
        }
    }
    if !ended {
        cells.push(cell.trim().to_owned());
    }
    cells
}

/// Whether a table with a rule under its header begins at this line.
pub(crate) fn begins(lines: &[TextLine], at: usize) -> bool {
    lines.get(at).is_some_and(|line| is_row(line.text))
        && lines.get(at + 1).is_some_and(|line| is_rule(line.text))
}
