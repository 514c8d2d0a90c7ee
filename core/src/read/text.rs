//! Small operations on text that every reader shares. All of them are linear and cut only between characters.

use std::collections::BTreeMap;

/// Lossy on purpose: an answer is read as far as it can be, and the raw bytes stay in the artifact.
pub(crate) fn decode(bytes: &[u8]) -> String {
    let text = match bytes {
        [0xFF, 0xFE, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xFE, 0xFF, rest @ ..] => utf16(rest, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest),
        _ => utf8(bytes),
    };
    if memchr::memchr(0, text.as_bytes()).is_some() { text.replace('\0', "\u{fffd}") } else { text }
}

/// Checking a whole text at once is faster than looking for its bad parts, and nearly no text has any.
fn utf8(bytes: &[u8]) -> String {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes).into_owned(), str::to_owned)
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks(2).map(|pair| match pair {
        [a, b] => unit([*a, *b]),
        _ => 0xFFFD,
    });
    char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// At most `chars` characters, without the white space around them.
pub(crate) fn cap(text: &str, chars: usize) -> String {
    let text = text.trim();
    if text.len() <= chars {
        return text.to_owned();
    }
    let end = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    head(text, end).trim_end().to_owned()
}

/// `text` up to a byte index that is known to be between characters.
pub(crate) fn head(text: &str, end: usize) -> &str {
    text.get(..end).unwrap_or("")
}

/// `text` from a byte index that is known to be between characters.
pub(crate) fn tail(text: &str, start: usize) -> &str {
    text.get(start..).unwrap_or("")
}

pub(crate) fn between(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or("")
}

/// Symbols people put beside a word. Zero-width characters and direction marks are not among them: a word that holds
/// one is a different word.
pub(crate) fn is_emoji(c: char) -> bool {
    matches!(u32::from(c), 0x2190..=0x2BFF | 0x1F000..=0x1FAFF | 0xFE0F)
}

/// Emphasis, code marks and white space.
pub(crate) fn is_markup(c: char) -> bool {
    matches!(c, '*' | '_' | '`') || c.is_whitespace()
}

pub(crate) fn is_dash(c: char) -> bool {
    matches!(c, '-' | '–' | '—')
}

/// The text without emphasis, code marks, links and control characters, on one line.
pub(crate) fn plain(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for word in unlink(text).split_whitespace() {
        let bare = word.trim_matches(|c| matches!(c, '*' | '_' | '`'));
        let kept = bare.chars().filter(|c| !matches!(c, '*' | '`') && !c.is_control());
        let before = out.len();
        if before > 0 {
            out.push(' ');
        }
        let start = out.len();
        out.extend(kept);
        if out.len() == start {
            out.truncate(before);
        }
    }
    out
}

/// Whether a text has nothing that [`plain`] takes away: words of ASCII with one space between them.
fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let keeps = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'*' | b'`' | b'_' | b']');
    let doubled = |pair: &[u8]| pair == b"  ";
    bytes.iter().all(keeps)
        && bytes.first() != Some(&b' ')
        && bytes.last() != Some(&b' ')
        && !bytes.windows(2).any(doubled)
}

/// Replaces `[text](target)` by `text`.
pub(crate) fn unlink(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(middle) = rest.find("](") {
        let (before, after) = (head(rest, middle), tail(rest, middle + 2));
        // A target holds neither white space nor another link: looking past one would not be linear.
        let close = after.find([')', ' ', '[']).filter(|at| tail(after, *at).starts_with(')'));
        match (before.rfind('['), close) {
            (Some(open), Some(close)) => {
                out.push_str(head(before, open));
                out.push_str(tail(before, open + 1));
                rest = tail(after, close + 1);
            }
            _ => {
                out.push_str(before);
                out.push_str("](");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The width of a list marker (`- `, `* `, `+ `, `12. `, `3) `) at the start of a text without indentation.
pub(crate) fn bullet(text: &str) -> Option<usize> {
    let digits = text.bytes().take(9).take_while(u8::is_ascii_digit).count();
    let marker = digits + 1;
    let sign = text.as_bytes().get(digits)?;
    let fits = if digits == 0 { matches!(sign, b'-' | b'*' | b'+') } else { matches!(sign, b'.' | b')') };
    let spaces = tail(text, marker).bytes().take_while(|b| matches!(b, b' ' | b'\t')).count();
    (fits && spaces > 0).then_some(marker + spaces)
}

/// The text behind a list marker and a task-list box, if there are any.
pub(crate) fn unbullet(text: &str) -> &str {
    let Some(width) = bullet(text) else { return text };
    let inner = tail(text, width);
    ["[ ] ", "[x] ", "[X] "].iter().find_map(|mark| inner.strip_prefix(mark)).unwrap_or(inner)
}

/// A code span: `open..close` with its backticks, `start..end` without.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub open: usize,
    pub start: usize,
    pub end: usize,
    pub close: usize,
}

/// The code spans of a text. A run of backticks is closed by the next run of the same length; that one is looked up,
/// not searched for, so that a text made of backticks stays cheap.
pub(crate) fn spans(text: &str) -> Vec<Span> {
    if memchr::memchr(b'`', text.as_bytes()).is_none() {
        return Vec::new();
    }
    let runs = runs(text);
    let mut partner = vec![None; runs.len()];
    let mut latest: BTreeMap<usize, usize> = BTreeMap::new();
    for (at, (_, length)) in runs.iter().enumerate().rev() {
        if let Some(slot) = partner.get_mut(at) {
            *slot = latest.insert(*length, at);
        }
    }
    let mut spans = Vec::new();
    let mut at = 0;
    while let Some((open, length)) = runs.get(at).copied() {
        let closing = partner.get(at).copied().flatten();
        match closing.and_then(|other| runs.get(other).map(|(end, _)| (other, *end))) {
            Some((other, end)) => {
                spans.push(Span { open, start: open + length, end, close: end + length });
                at = other + 1;
            }
            None => at += 1,
        }
    }
    spans
}

fn runs(text: &str) -> Vec<(usize, usize)> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in memchr::memchr_iter(b'`', text.as_bytes()) {
        match runs.last_mut() {
            Some((start, length)) if *start + *length == at => *length += 1,
            _ => runs.push((at, 1)),
        }
    }
    runs
}

/// Whether a text holds one of these words, in lower case ASCII, whatever its own case: a cheap way to pass most lines
/// by.
pub(crate) fn holds(text: &str, words: [&str; 3]) -> bool {
    if !may_hold(text.as_bytes(), words) {
        return false;
    }
    let mut first = [false; 256];
    for byte in words.iter().filter_map(|word| word.bytes().next()) {
        first[usize::from(byte)] = true;
        first[usize::from(byte.to_ascii_uppercase())] = true;
    }
    let bytes = text.as_bytes();
    let begins = |at: usize, word: &str| {
        bytes.get(at..at + word.len()).is_some_and(|here| here.eq_ignore_ascii_case(word.as_bytes()))
    };
    for (at, byte) in bytes.iter().enumerate() {
        if first[usize::from(*byte)] && words.iter().any(|word| begins(at, word)) {
            return true;
        }
    }
    false
}

/// Whether the first three letters of one of these words are somewhere. A no is certain.
fn may_hold(bytes: &[u8], words: [&str; 3]) -> bool {
    const SMALL: u8 = 0x20;
    let [Some([a, b, c]), Some([d, e, f]), Some([g, h, i])] =
        words.map(|word| word.as_bytes().first_chunk::<3>().copied())
    else {
        return true;
    };
    let (second, third) = (bytes.get(1..).unwrap_or_default(), bytes.get(2..).unwrap_or_default());
    // Without a way out in the middle, many bytes are looked at in one step.
    let found = bytes.iter().zip(second).zip(third).fold(0, |any, ((x, y), z)| {
        let (x, y, z) = (x | SMALL, y | SMALL, z | SMALL);
        let one = (x == a) & (y == b) & (z == c);
        let two = (x == d) & (y == e) & (z == f);
        let three = (x == g) & (y == h) & (z == i);
        any | u8::from(one | two | three)
    });
    found != 0
}

/// The first word of a line, whatever is in front of it: a cheap way to pass most lines by.
pub(crate) fn first_word(text: &str) -> &str {
    let start = find_fast(text, u8::is_ascii_alphabetic, char::is_alphabetic);
    let word = tail(text, start);
    let end = find_fast(word, |byte| !byte.is_ascii_alphabetic(), |c| !c.is_alphabetic());
    head(word, end)
}

/// Where the first fitting character is, or the end. Both tests must agree on ASCII; the one for bytes is enough until
/// another character comes.
fn find_fast(text: &str, fits_byte: impl Fn(&u8) -> bool, fits: impl Fn(char) -> bool) -> usize {
    let stop = text.bytes().position(|byte| !byte.is_ascii() || fits_byte(&byte)).unwrap_or(text.len());
    tail(text, stop).find(fits).map_or(text.len(), |at| stop + at)
}

/// Whether a cell or section means "nothing here".
pub(crate) fn is_none(text: &str) -> bool {
    let bare = text.trim_matches(|c: char| !c.is_alphanumeric());
    if bare.len() > 40 {
        return false;
    }
    if bare.is_empty() {
        return true;
    }
    let bare = bare.to_ascii_lowercase();
    let nothing = matches!(bare.as_str(), "none" | "nothing" | "n/a" | "na" | "nil");
    let found = ["none", "nothing", "no findings", "no finding", "no issues", "no issue", "no problems"];
    nothing
        || found.iter().any(|start| matches!(bare.strip_prefix(start), Some("" | " found" | " to report")))
}
