//! The code a finding is about, with its line numbers and a mark under what is meant.

use archeflow_core::strategies::review::{Frame, Listed};

use super::most;
use archeflow_core::text::{fitted, revealed_in_columns, width};

/// A line of the frame, as wide as it is allowed to be.
pub(super) struct Row {
    pub(super) number: u32,
    pub(super) text: String,
    /// Where to underline it: column and length. Only the cited line has it.
    pub(super) mark: Option<(usize, usize)>,
}

/// The rows of a frame in this many columns.
pub(super) fn rows(found: &Listed, frame: &Frame, room: usize) -> Vec<Row> {
    let cited = |number: u32| found.line > 0 && number == found.line;
    let row = |(number, line): (u32, &String)| {
        if cited(number) {
            return marked(number, &revealed_in_columns(line, most::CODE), &meant(found), room);
        }
        Row { number, text: fitted(&revealed_in_columns(line, most::CODE), room), mark: None }
    };
    (frame.first..).zip(&frame.lines).map(row).collect()
}

/// How many columns the widest line number takes.
pub(super) fn gutter(frame: &Frame) -> usize {
    let lines = u32::try_from(frame.lines.len()).unwrap_or(u32::MAX);
    frame.first.saturating_add(lines.saturating_sub(1)).to_string().len()
}

/// What a finding quotes in backticks: most likely what it means.
pub(crate) fn meant(found: &Listed) -> Vec<&str> {
    const QUOTES: usize = 8;
    let said = [&found.description, &found.evidence, &found.fix];
    let quoted = said.into_iter().flat_map(|text| text.split('`').skip(1).step_by(2).take(QUOTES));
    quoted.filter(|quote| !quote.trim().is_empty() && quote.len() <= most::CODE).collect()
}

/// The line with what is meant in sight, however long the line is.
fn marked(number: u32, line: &str, meant: &[&str], room: usize) -> Row {
    let found = meant.iter().find_map(|quote| line.find(quote).map(|at| (at, quote.len())));
    let (from, length) = found.unwrap_or_else(|| {
        let bare = line.trim();
        (line.len() - line.trim_start().len(), bare.len())
    });
    let column = width(&line[..from]);
    let wide = width(&line[from..from + length]);
    if width(line) <= room {
        return Row { number, text: line.to_owned(), mark: Some((column, wide.max(1))) };
    }
    let skipped = if column + wide < room { 0 } else { column.saturating_sub(room / 4) };
    let (start, lost) = skip(line, skipped);
    let shown = if start == 0 { line.to_owned() } else { format!("…{}", &line[start..]) };
    let text = fitted(&shown, room);
    let column = (column - lost + usize::from(start > 0)).min(room.saturating_sub(1));
    let wide = wide.min(width(&text).saturating_sub(column)).max(1);
    Row { number, text, mark: Some((column, wide)) }
}

/// The byte at which this many columns are behind, and how many they were.
fn skip(line: &str, columns: usize) -> (usize, usize) {
    let mut lost = 0;
    for (at, c) in line.char_indices() {
        if lost >= columns {
            return (at, lost);
        }
        lost += width(c.encode_utf8(&mut [0; 4]));
    }
    (line.len(), lost)
}
