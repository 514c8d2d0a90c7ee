//! Text measured in the columns of a terminal, where wide letters take two and marks above others take none.

use unicode_width::UnicodeWidthChar;

use super::lines::{reveal, safe, without_commands};

/// Marks on one letter that a cell shows; more pile up into the lines above.
const MARKS: usize = 2;

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars().map(columns).sum()
}

fn columns(c: char) -> usize {
    c.width().unwrap_or(0)
}

/// As much as fits into the columns.
pub fn fitted(text: &str, room: usize) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut taken = 1;
    for c in text.chars() {
        taken += columns(c);
        if taken > room {
            break;
        }
        out.push(c);
    }
    out + "…"
}

/// Fills up to the columns.
pub fn padded(text: &str, room: usize) -> String {
    format!("{text}{}", " ".repeat(room.saturating_sub(width(text))))
}

/// Breaks between words; a word that is too long for a line is broken too. The first line may be shorter.
pub fn wrapped(text: &str, first: usize, rest: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut left = first.max(1);
    for word in text.split_whitespace() {
        let mut word = word;
        loop {
            let last = lines.last().map_or(0, |line| width(line));
            let gap = usize::from(last > 0);
            if last + gap + width(word) <= left {
                let line = lines.last_mut().into_iter();
                line.for_each(|line| line.push_str(&[&" "[..gap], word].concat()));
                break;
            }
            if last == 0 {
                let (here, there) = split_at_width(word, left);
                lines.last_mut().into_iter().for_each(|line| line.push_str(here));
                word = there;
            }
            lines.push(String::new());
            left = rest.max(8);
        }
    }
    lines
}

fn split_at_width(word: &str, room: usize) -> (&str, &str) {
    let mut taken = 0;
    let at = word.char_indices().find(|(at, c)| {
        taken += columns(*c);
        *at > 0 && taken > room
    });
    word.split_at(at.map_or(word.len(), |(at, _)| at))
}

/// A line of a file of which nothing is dropped: what would hide is written out, tabs are as wide as they look, and a
/// workflow finds no command in it.
pub fn revealed_in_columns(line: &str, most: usize) -> String {
    const TAB: usize = 4;
    let mut out = String::new();
    let mut column = 0;
    for c in line.chars() {
        let from = out.len();
        if c == '\t' {
            out.push_str(&" ".repeat(TAB - column % TAB));
        } else {
            reveal(&mut out, c);
        }
        column += width(&out[from..]);
        if column > most {
            out.truncate(from);
            out.push('…');
            break;
        }
    }
    without_commands(&out)
}

/// Safe text for a row of cells, and what a cell needs beyond that: no line breaks, no piles of marks, nothing that asks
/// a terminal to show the character before it differently.
pub fn cells(text: &str) -> String {
    let mut marks = 0;
    safe(text)
        .chars()
        .map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c })
        .filter(|c| !matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'))
        .filter(|c| {
            marks = if columns(*c) == 0 { marks + 1 } else { 0 };
            marks <= MARKS
        })
        .collect()
}
