//! Between other people's text and a review: bounded, without anything that drives a terminal, a web page or a
//! workflow, and as wide as it looks.

use std::fmt::Write as _;

use archeflow_core::persona::hides;
use serde::Serialize;

use crate::render::text::{cut, safe, safe_line};

/// One line of bounded length.
pub(super) fn line(text: &str, most: usize) -> String {
    if text.len() <= most && is_plain(text) {
        return text.to_owned();
    }
    calm(&cut(&safe_line(&bounded(text, most)), most))
}

/// Several lines, bounded as well.
pub(super) fn lines(text: &str, most: usize) -> String {
    if text.len() <= most && is_plain(text) {
        return text.to_owned();
    }
    calm(&cut(&safe(&bounded(text, most)), most))
}

/// Most text is one line of letters without anything to take out; ten thousand findings have a lot of it.
fn is_plain(text: &str) -> bool {
    let mut before = b' ';
    for byte in text.as_bytes() {
        let doubled = *byte == b' ' && before == b' ';
        if !matches!(byte, b' '..=b'~') || doubled || (*byte == b'[' && before == b'#') {
            return false;
        }
        before = *byte;
    }
    before != b' ' || text.is_empty()
}

/// What is cut anyway is not looked at in full.
fn bounded(text: &str, most: usize) -> String {
    text.chars().take(most.saturating_mul(4)).collect()
}

/// A workflow's log takes `##[…` for a command wherever it stands.
fn calm(text: &str) -> String {
    text.replace("##[", "## [")
}

/// A line of a file, in which nothing is dropped: what would hide is written out, and tabs are as wide as they look.
pub(super) fn laid_open(line: &str, most: usize) -> String {
    const TAB: usize = 4;
    let mut out = String::new();
    let mut column = 0;
    for c in line.chars() {
        let from = out.len();
        match c {
            '\t' => out.push_str(&" ".repeat(TAB - column % TAB)),
            c if c.is_control() || hides(c) => {
                let _ = write!(out, "⟨U+{:04X}⟩", u32::from(c));
            }
            c => out.push(c),
        }
        column += width(&out[from..]);
        if column > most {
            out.truncate(from);
            out.push('…');
            break;
        }
    }
    calm(&out)
}

/// How many columns a text takes. Marks that stand above others take none, and the wide letters take two.
pub(super) fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.chars().map(columns).sum()
}

fn columns(c: char) -> usize {
    match u32::from(c) {
        0x20..=0x2ff => 1,
        0x300..=0x36f
        | 0x1ab0..=0x1aff
        | 0x1dc0..=0x1dff
        | 0x20d0..=0x20ff
        | 0xfe00..=0xfe0f
        | 0xfe20..=0xfe2f => 0,
        0x1100..=0x115f
        | 0x2e80..=0x303e
        | 0x3041..=0xa4cf
        | 0xac00..=0xd7a3
        | 0xf900..=0xfaff
        | 0xfe30..=0xfe4f
        | 0xff00..=0xff60
        | 0xffe0..=0xffe6
        | 0x1f300..=0x1f64f
        | 0x1f680..=0x1f6ff
        | 0x1f900..=0x1f9ff
        | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// As much as fits into the columns.
pub(super) fn fitted(text: &str, room: usize) -> String {
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
pub(super) fn padded(text: &str, room: usize) -> String {
    format!("{text}{}", " ".repeat(room.saturating_sub(width(text))))
}

/// Breaks between words; a word that is too long for a line is broken too. The first line may have less room.
pub(super) fn wrapped(text: &str, first: usize, rest: usize) -> Vec<String> {
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

/// One line of prose for Markdown. Markup, HTML, tables, links, mentions and references to issues stay text: what a
/// code host would turn into a link after the markup was read is broken up by a blank without width.
pub(super) fn prose(text: &str, most: usize) -> String {
    const BREAK: &str = "&#8203;";
    let text = line(text, most);
    let mut out = String::with_capacity(text.len() + 16);
    let mut before = ['\0'; 3];
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '@' => out.push_str(&["@", BREAK].concat()),
            '#' => out.push_str(&["\\#", BREAK].concat()),
            ':' if rest.peek() == Some(&'/') => out.push_str(&[":", BREAK].concat()),
            '.' if before.iter().all(|c| matches!(c, 'w' | 'W')) => out.push_str(&[".", BREAK].concat()),
            '-' if matches!(before[1..], ['G' | 'g', 'H' | 'h']) => out.push_str(&["-", BREAK].concat()),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '$' => out.extend(['\\', c]),
            c => out.push(c),
        }
        before = [before[1], before[2], c];
    }
    out
}

/// A code span of Markdown, in a table cell or anywhere else.
pub(super) fn code(text: &str, most: usize) -> String {
    let text = line(text, most).replace('`', "'").replace('|', "\\|");
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

/// A block of code, fenced by more backticks than stand in it.
pub(super) fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}text\n{text}{}{fence}\n", if text.ends_with('\n') { "" } else { "\n" })
}

/// JSON over several lines. What could drive a terminal or a workflow is an escape, and reads as the same value.
pub(super) fn json(value: &impl Serialize) -> String {
    let plain = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut text = String::with_capacity(plain.len() + 1);
    for line in plain.split('\n') {
        if line.is_ascii() && !line.contains('\u{7f}') && !line.contains('#') {
            text.push_str(line);
        } else {
            escaped(&mut text, line);
        }
        text.push('\n');
    }
    text
}

fn escaped(text: &mut String, line: &str) {
    for c in line.chars() {
        if c == '[' && text.ends_with("##") {
            text.push_str("\\u005b");
        } else if c.is_control() || hides(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
}
