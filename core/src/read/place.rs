//! Places in a tree: `src/a.rs:10` and its variants, and the citations a finding rests on.

use super::spelling;
use super::text::{Span, between, head, is_dash, is_none, spans, tail, unlink};
use crate::model::Citation;

const MAX_CITATIONS: usize = 20;

/// Endings of host names that are commoner than files which end so.
const HOSTS: [&str; 12] =
    ["com", "org", "net", "io", "dev", "app", "ai", "co", "local", "localhost", "internal", "example"];

/// The file and the line a location names. The file is empty if there is none, or one that can't be inside a
/// repository: an absolute path, a drive, a URL, anything with `..`. The line is 0 if there is none.
pub(crate) fn place(text: &str) -> (String, u32) {
    let text = unlink(text);
    if is_none(&text) {
        return (String::new(), 0);
    }
    let code = spans(&text);
    if let Some(span) = code.first() {
        let inside = between(&text, span.start, span.end).trim();
        let (path, line) = spelled(inside).unwrap_or_else(|| split_line(inside));
        let line = line.or_else(|| line_behind(tail(&text, span.close)));
        return (clean(path).unwrap_or_default(), line.unwrap_or(0));
    }
    if let Some((path, line)) = spelled(text.trim_start()) {
        return (clean(path).unwrap_or_default(), line.unwrap_or(0));
    }
    let mut rest = text.as_str();
    for _ in 0..12 {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ';')).unwrap_or(rest.len());
        let (word, behind) = (unwrap(head(rest, end)), tail(rest, end));
        let (path, line) = split_line(word);
        if line.is_some() && !is_number(path) || is_path(path) {
            let line = line.or_else(|| line_behind(behind));
            return (clean(path).unwrap_or_default(), line.unwrap_or(0));
        }
        rest = behind;
    }
    (String::new(), 0)
}

/// A place that blanks don't end: a path in quotation marks, or one with blanks in its name.
fn spelled(text: &str) -> Option<(&str, Option<u32>)> {
    if let Some((path, behind)) = spelling::quoted(text) {
        let within = head(path, path.len() - 1);
        // `"a b.py:3"`: the line is inside as well. Its path then lacks the closing mark, which does no harm.
        let (inner, line) = split_line(within);
        let path = if line.is_some() { inner } else { path };
        return Some((path, line.or_else(|| line_behind(behind))));
    }
    let end = spelling::with_blanks(text, has_extension)?;
    let (path, line) = split_line(head(text, end));
    Some((path, line.or_else(|| line_behind(tail(text, end)))))
}

/// Removes what encloses a word in running text.
fn unwrap(word: &str) -> &str {
    let word = word.trim_start_matches(['*', '_', '"', '\'', '(', '[', '<', '“']);
    word.trim_end_matches(['*', '"', '\'', ')', ']', '>', ',', '.', '!', '?', '”', ':'])
}

/// `L10`, `line 10`, `(lines 10-20)` or `:10` right behind a path.
fn line_behind(text: &str) -> Option<u32> {
    let mut words = text.split_whitespace().map(|word| word.trim_matches(['(', ')', ',', ':', '#', '.']));
    let mut next = words.next()?;
    if next.is_empty() {
        next = words.next()?;
    }
    if ["line", "lines", "l", "ln"].iter().any(|name| next.eq_ignore_ascii_case(name)) {
        return line_number(words.next()?);
    }
    let marked = next.starts_with('L') || text.starts_with([':', '#']);
    if marked { line_number(next) } else { None }
}

/// Splits `path:10`, `path:10:5`, `path:10-20` and `path#L10`.
fn split_line(word: &str) -> (&str, Option<u32>) {
    if let Some((path, anchor)) = word.rsplit_once('#')
        && anchor.starts_with('L')
        && let Some(line) = line_number(anchor)
    {
        return (path, Some(line));
    }
    let mut found = (word, None);
    for _ in 0..2 {
        let Some((path, number)) = found.0.rsplit_once(':') else { break };
        let Some(line) = line_number(number).filter(|_| !path.is_empty()) else { break };
        found = (path, Some(line));
    }
    found
}

/// `10`, `L10`, `10-20`, `10,20`. A number beyond all files stays beyond all files: it must not become line 0.
fn line_number(text: &str) -> Option<u32> {
    let digits = text.strip_prefix('L').unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let (first, rest) = (head(digits, end), tail(digits, end));
    let range = rest.strip_prefix(|c| is_dash(c) || matches!(c, ',' | '+'));
    let range = range.map_or(rest, |to| to.strip_prefix('L').unwrap_or(to));
    let fits = !first.is_empty() && range.bytes().all(|b| b.is_ascii_digit());
    fits.then(|| first.parse().unwrap_or(u32::MAX))
}

/// The path inside the repository, without `./` and without the `a/` or `b/` of a diff.
pub(crate) fn clean(path: &str) -> Option<String> {
    let path = within(path)?;
    let bare = path.strip_prefix(b"a/").or_else(|| path.strip_prefix(b"b/")).filter(|rest| !rest.is_empty());
    Some(spelling::written(bare.unwrap_or(&path)))
}

/// The path without `./`, if it can be inside a repository at all.
pub(crate) fn inside(path: &str) -> Option<String> {
    within(path).map(|path| spelling::written(&path))
}

fn within(path: &str) -> Option<Vec<u8>> {
    let (path, quoted) = spelling::unescaped(path);
    let mut bare = path.as_slice();
    while let Some(rest) = bare.strip_prefix(b"./") {
        bare = rest;
    }
    let text = String::from_utf8_lossy(bare);
    let drive = bare.first().is_some_and(u8::is_ascii_alphabetic) && tail(&text, 1).starts_with(":/");
    let outside = text.starts_with(['/', '~'])
        || drive
        || text.contains("://")
        || text.split('/').any(|part| part == "..")
        || (!quoted && text.chars().any(char::is_control));
    (!outside && !is_none(&text)).then(|| bare.to_vec())
}

/// Looks like a path by itself: the last part has an extension, or there is more than one part.
pub(crate) fn is_path(word: &str) -> bool {
    let strange = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '<' | '>' | '"' | '=' | ',' | '|');
    !word.is_empty()
        && !word.contains(strange)
        && !is_none(word)
        && (word.contains(['/', '\\']) || has_extension(word))
}

/// `a.rs` has one, `e.g.`, `1.2` and `v2` have none.
pub(crate) fn has_extension(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    let letters = extension.starts_with(|c: char| c.is_ascii_alphabetic());
    let short = (1..=8).contains(&extension.len()) && extension.bytes().all(|b| b.is_ascii_alphanumeric());
    letters && short && (!stem.is_empty() || name.len() > 3)
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit())
}

fn is_host(path: &str) -> bool {
    let first = path.split('/').next().unwrap_or(path);
    // `app/a.py` and `internal/a.go` are folders; `x.app/a` is a host.
    let Some((_, ending)) = first.rsplit_once('.') else { return first.eq_ignore_ascii_case("localhost") };
    let numeric = first.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    numeric || HOSTS.iter().any(|host| ending.eq_ignore_ascii_case(host))
}

/// A `path.ext:line` in running text.
pub(crate) fn mention(word: &str) -> Option<(String, u32)> {
    if !holds_digit(word) {
        return None;
    }
    let (path, line) = split_line(unwrap(word));
    let line = line?;
    if !is_path(path) || is_host(path) {
        return None;
    }
    Some((clean(path)?, line))
}

/// The place at the front of a text, as written, and what follows it.
pub(crate) fn leading(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(['*', '_', ' ']);
    if let Some(inner) = text.strip_prefix('`') {
        let (word, rest) = inner.split_once('`')?;
        let (path, line) = split_line(word);
        let placed = is_path(path) || line.is_some();
        return placed.then(|| with_line(word, rest, line.is_some()));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let written = head(text, end);
    // A line is behind one of these, and an extension behind a full stop.
    memchr::memchr3(b'.', b':', b'#', written.as_bytes())?;
    let word = written.trim_end_matches(['*', ':', ',', ')', '.', '–', '—', ']']);
    let (path, line) = split_line(word);
    let placed = (line.is_some() && !is_number(path) && clean(path).is_some()) || has_extension(path);
    placed.then(|| with_line(word, tail(text, word.len()), line.is_some()))
}

/// Takes `line 10` into the place if it is right behind the path.
fn with_line<'a>(word: &'a str, rest: &'a str, has_line: bool) -> (&'a str, &'a str) {
    let bare = rest.trim_start();
    if has_line || !["line ", "L"].iter().any(|mark| bare.starts_with(mark)) || line_behind(bare).is_none() {
        return (word, rest);
    }
    let number = bare.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    let length = tail(bare, number).find(|c: char| !c.is_ascii_digit()).unwrap_or(bare.len() - number);
    (word, tail(bare, number + length))
}

/// What a finding points at: its location, every `path:line` in its description and evidence, `line 10` in its
/// evidence, which is about the location's file, and code it quotes. A code span directly behind a place in the
/// evidence, or else directly before it, is the code claimed to be there; any other code may be anywhere in the file.
pub(crate) fn citations(file: &str, line: u32, description: &str, evidence: &str) -> Vec<Citation> {
    let mut found: Vec<Citation> = Vec::new();
    if !file.is_empty() {
        found.push(Citation { file: file.to_owned(), line, quote: None, holds: None, related: None });
    }
    for seen in sightings(description, "") {
        add(&mut found, seen.file, seen.line, None);
    }
    let code = spans(evidence);
    let mut used = vec![false; code.len()];
    for seen in sightings(evidence, file) {
        let quote = quote(evidence, &code, &mut used, &seen);
        add(&mut found, seen.file, seen.line, quote);
    }
    let Some(file) = found.first().map(|citation| citation.file.clone()) else { return found };
    let unplaced = code.iter().zip(&used).filter(|(_, used)| !**used);
    let quoted = unplaced.map(|(span, _)| between(evidence, span.start, span.end));
    let described = spans(description);
    let described = described.iter().map(|span| between(description, span.start, span.end));
    for text in quoted.chain(described).map(str::trim) {
        let known = found.iter().any(|citation| citation.quote.as_deref() == Some(text));
        if is_code(text) && !known && found.len() < MAX_CITATIONS {
            found.push(Citation {
                file: file.clone(),
                line: 0,
                quote: Some(text.to_owned()),
                holds: None,
                related: None,
            });
        }
    }
    found
}

/// More than a name, a phrase or a command, and not a place: something that can be looked for in a file.
pub(crate) fn is_code(text: &str) -> bool {
    let odd = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-' | ' ' | '/' | '.');
    text.len() >= 8
        && (text.contains(odd) || text.contains(" - "))
        && mention(text).is_none()
        && !is_path(text)
}

fn add(found: &mut Vec<Citation>, file: String, line: u32, quote: Option<String>) {
    let room = found.len() < MAX_CITATIONS;
    let same = |c: &&mut Citation| c.file == file && c.line == line && (c.quote.is_none() || quote.is_none());
    if let Some(citation) = found.iter_mut().find(same) {
        citation.quote = citation.quote.take().or(quote);
    } else if room {
        found.push(Citation { file, line, quote, holds: None, related: None });
    }
}

struct Sighting {
    file: String,
    line: u32,
    start: usize,
    end: usize,
}

/// The places named in a text, in order. `file` is what a bare `line 10` belongs to.
fn sightings(text: &str, file: &str) -> Vec<Sighting> {
    let mut found = Vec::new();
    // No place is without a line. Without a way out in the middle, many bytes are looked at in one step.
    if text.bytes().fold(0, |any, byte| any | u8::from(byte.is_ascii_digit())) == 0 {
        return found;
    }
    let mut speaks_of_line = false;
    let mut path_before: Option<String> = None;
    for (start, end) in words(text) {
        let word = between(text, start, end);
        if found.len() >= MAX_CITATIONS {
            break;
        }
        if !holds_digit(word) && !word.contains('/') {
            let bare = unwrap(word);
            speaks_of_line = bare.eq_ignore_ascii_case("line") || bare.eq_ignore_ascii_case("lines");
            path_before = path_before.filter(|_| speaks_of_line);
            continue;
        }
        if let Some((file, line)) = mention(word) {
            found.push(Sighting { file, line, start, end });
        } else if speaks_of_line && let Some(line) = line_number(unwrap(word)) {
            let file = path_before.take().unwrap_or_else(|| file.to_owned());
            if !file.is_empty() {
                found.push(Sighting { file, line, start, end });
            }
        }
        let bare = unwrap(word);
        speaks_of_line = bare.eq_ignore_ascii_case("line") || bare.eq_ignore_ascii_case("lines");
        if !speaks_of_line {
            path_before =
                Some(bare).filter(|w| w.contains('/') && has_extension(w) && !is_host(w)).and_then(clean);
        }
    }
    found
}

/// Words without the brackets and code marks that touch them.
fn words(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        while start < text.len() {
            let end = start + end_of_word(tail(text, start));
            let word = (start, end);
            start = end + tail(text, end).chars().next().map_or(0, char::len_utf8);
            if word.0 < word.1 {
                return Some(word);
            }
        }
        None
    })
}

/// Where the first word ends. Most of a text is letters of ASCII, which end none.
fn end_of_word(text: &str) -> usize {
    let ends = |c: char| {
        c.is_whitespace() || matches!(c, '`' | '(' | ')' | '[' | ']' | '"' | ',' | ';' | '|' | '<' | '>')
    };
    let mut at = 0;
    loop {
        at += text.bytes().skip(at).take_while(u8::is_ascii_alphanumeric).count();
        match tail(text, at).chars().next() {
            Some(c) if !ends(c) => at += c.len_utf8(),
            Some(_) | None => return at,
        }
    }
}

/// Without one there is no line number.
fn holds_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

fn quote(text: &str, code: &[Span], used: &mut [bool], seen: &Sighting) -> Option<String> {
    // The place may itself be in code marks; the quote is then beside those.
    let own = code.iter().find(|span| span.start <= seen.start && seen.end <= span.end);
    let (start, end) = own.map_or((seen.start, seen.end), |span| (span.open, span.close));
    let behind = code.partition_point(|span| span.open < end);
    let before = code.partition_point(|span| span.close <= start).checked_sub(1);
    let near = |at: usize| code.get(at).map(|span| (at, *span));
    let joins = |gap: &str| gap.len() <= 12 && !gap.chars().any(char::is_alphanumeric);
    let leads =
        |gap: &str| joins(gap) || matches!(gap.trim_matches([' ', ',', '(']), "at" | "in" | "on" | "at line");
    let free = |at: usize| used.get(at) == Some(&false);
    let no_place = |span: &Span| mention(between(text, span.start, span.end)).is_none();

    let following =
        near(behind).filter(|(at, s)| free(*at) && no_place(s) && joins(between(text, end, s.open)));
    let preceding =
        || near(before?).filter(|(at, s)| free(*at) && no_place(s) && leads(between(text, s.close, start)));
    let (at, span) = following.or_else(preceding)?;
    if let Some(flag) = used.get_mut(at) {
        *flag = true;
    }
    let quoted = between(text, span.start, span.end).trim();
    (!quoted.is_empty()).then(|| quoted.to_owned())
}
