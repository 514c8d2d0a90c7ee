//! Headings and the text under them.

use super::lines::{LineKind, TextLine, scan};
use super::text::{between, bullet, is_emoji, is_none, tail};

/// Bold lines and `Risks:` on a line of its own rank below every heading made with `#`.
const WEAKEST: usize = 7;

/// The text under a heading: from the line after it up to the next heading of the same or a higher level.
///
/// A heading is a line with one to six `#`, a line that is bold from end to end, or words alone on a line with a colon
/// behind them. It matches if its text, without numbering and punctuation, begins with the wanted words in any case:
/// `6. Risks and mitigations` is `Risks`, `Filesystem` is not `Files`. A heading with `#` is preferred to the others.
pub fn section<'a>(text: &'a str, heading: &str) -> Option<&'a str> {
    let page = SectionedText::new(text);
    let (first, after) = page.range(heading)?;
    let start = page.lines.get(first).map_or(text.len(), |line| line.start);
    let end = page.lines.get(after).map_or(text.len(), |line| line.start);
    Some(between(text, start, end))
}

/// A text in lines, with its headings.
pub(crate) struct SectionedText<'a> {
    pub lines: Vec<TextLine<'a>>,
    heads: Vec<Head>,
}

struct Head {
    line: usize,
    level: usize,
    /// Its first words in lower case.
    title: String,
}

impl<'a> SectionedText<'a> {
    pub(crate) fn new(text: &'a str) -> SectionedText<'a> {
        let lines = scan(text);
        let heads = lines.iter().enumerate().filter_map(|(line, text)| {
            let (level, title) = heading(text)?;
            Some(Head { line, level, title: key(unnumber(title)) })
        });
        SectionedText { heads: heads.collect(), lines }
    }

    /// Every heading in order: its line, its level and its first words in lower case.
    pub(crate) fn titles(&self) -> impl Iterator<Item = (usize, usize, &str)> {
        self.heads.iter().map(|head| (head.line, head.level, head.title.as_str()))
    }

    /// The same as [`section`], in lines.
    pub(crate) fn body(&self, heading: &str) -> Option<&[TextLine<'a>]> {
        let (first, after) = self.range(heading)?;
        self.lines.get(first..after)
    }

    /// The first line under a heading and the line that ends it.
    pub(crate) fn range(&self, heading: &str) -> Option<(usize, usize)> {
        let wanted = key(heading);
        let matching = |weak: bool| {
            let kind = self.heads.iter().enumerate().filter(move |(_, head)| (head.level == WEAKEST) == weak);
            kind.into_iter().find(|(_, head)| begins_with(&head.title, &wanted))
        };
        let (at, found) = matching(false).or_else(|| matching(true)).filter(|_| !wanted.is_empty())?;
        let next = self.heads.iter().skip(at + 1).find(|head| head.level <= found.level);
        Some((found.line + 1, next.map_or(self.lines.len(), |head| head.line)))
    }
}

/// The line that ends the section of the heading at `at`.
pub(crate) fn end_of(lines: &[TextLine], at: usize, level: usize) -> usize {
    let rest = lines.iter().enumerate().skip(at + 1);
    let next = rest.filter_map(|(i, line)| heading(line).map(|(other, _)| (i, other)));
    next.into_iter().find(|(_, other)| *other <= level).map_or(lines.len(), |(i, _)| i)
}

/// The level and the text of a heading.
pub(crate) fn heading<'a>(line: &TextLine<'a>) -> Option<(usize, &'a str)> {
    if line.kind != LineKind::Plain || line.indent > 3 || !may_be_heading(line.text) {
        return None;
    }
    let text = line.text.trim();
    let title = text.trim_start_matches('#');
    let level = text.len() - title.len();
    if (1..=6).contains(&level) && (title.is_empty() || title.starts_with([' ', '\t'])) {
        return Some((level, title.trim().trim_end_matches('#').trim_end()));
    }
    weak(text).map(|title| (WEAKEST, title))
}

/// Spares most lines a closer look.
fn may_be_heading(text: &str) -> bool {
    text.trim_start().starts_with(['#', '*', '_']) || text.trim_end().ends_with(':')
}

fn weak(text: &str) -> Option<&str> {
    if text.len() > 120 || bullet(text).is_some_and(|_| !text.starts_with(|c: char| c.is_ascii_digit())) {
        return None;
    }
    let bare = text.strip_suffix(':').unwrap_or(text);
    let bold = ["**", "__"].iter().find_map(|mark| bare.strip_prefix(mark)?.strip_suffix(mark));
    if let Some(title) = bold.filter(|title| !title.contains("**") && !title.is_empty()) {
        return Some(title.strip_suffix(':').unwrap_or(title));
    }
    let words = bare.split_whitespace().count() <= 5 && text.ends_with(':');
    let lettered = bare.starts_with(char::is_alphanumeric) && !bare.contains([':', '|', '`']);
    (words && lettered).then_some(bare)
}

fn begins_with(title: &str, wanted: &str) -> bool {
    title.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

fn key(title: &str) -> String {
    if title.is_ascii() {
        return ascii_key(title);
    }
    let words = title.split(|c: char| !c.is_alphanumeric() && c != '\'').filter(|word| !word.is_empty());
    let mut key = String::new();
    for word in words.take(8) {
        if !key.is_empty() {
            key.push(' ');
        }
        key.extend(word.chars().take(40).flat_map(char::to_lowercase));
    }
    key
}

/// The same for a title in ASCII.
fn ascii_key(title: &str) -> String {
    let mut key = String::with_capacity(title.len());
    let words = title.as_bytes().split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'\'');
    for word in words.filter(|word| !word.is_empty()).take(8) {
        if !key.is_empty() {
            key.push(' ');
        }
        key.extend(word.iter().take(40).map(|byte| char::from(byte.to_ascii_lowercase())));
    }
    key
}

/// Strips `6.`, `6)`, `6.1`, `A.` and marks from the front of a heading.
pub(crate) fn unnumber(title: &str) -> &str {
    let mark = |c: char| c.is_whitespace() || is_emoji(c) || matches!(c, '*' | '_' | '`' | '#');
    let title = title.trim_start_matches(mark);
    let number = title.bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
    let lettered =
        title.starts_with(|c: char| c.is_ascii_uppercase()) && tail(title, 1).starts_with(['.', ')']);
    let rest = if number > 0 && title.starts_with(|c: char| c.is_ascii_digit()) {
        tail(title, number)
    } else if lettered {
        tail(title, 1)
    } else {
        return title;
    };
    rest.trim_start_matches(|c: char| mark(c) || matches!(c, '.' | ')' | ':' | '-' | '–' | '—'))
}

/// Whether there is anything in these lines besides white space and "none".
pub(crate) fn says_something(lines: &[TextLine]) -> bool {
    lines.iter().any(|line| line.kind != LineKind::Blank && !is_none(super::text::unbullet(line.text.trim())))
}
