//! Whether two findings are one (AF-094, AF-101, AF-102): over the cycles of a run, between reviewers, among accepted
//! findings and from one review to the next. The table is `docs/rules/identity.md`.
//!
//! Models reword what they report, so nothing has to match exactly. The claims are compared by their words; place and
//! names of code add to that or take away. Everything is a whole number of points, so that every machine comes to the
//! same result.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

use crate::event::Tracked;
use crate::model::Finding;

/// Points from which two findings of one reviewer, about one file and in one category, are the same.
pub const SAME: i32 = 45;

/// More points that are needed for each of reviewer, category and file that differs, and where a mistake would hide a
/// finding: among those that a person accepted.
pub const MARGIN: i32 = 10;

const SAME_LINE: i32 = 30;
const FAR: i32 = -5;
const SHARED_NAMES: i32 = 8;
const OTHER_NAMES: i32 = -20;

/// Lines from which on two places are far from each other.
const FAR_LINES: u32 = 30;

/// The claim is at the front of a description; explanations after it name half of the file.
const CLAIM_WORDS: usize = 40;

/// Letters of a word that count, so that *document* and *documentation* are the same.
const STEM: usize = 6;

/// Words that say nothing about what a finding is about.
const COMMON: [&str; 93] = [
    "the", "and", "for", "are", "was", "were", "with", "that", "this", "from", "not", "but", "has", "have",
    "had", "its", "into", "when", "than", "then", "them", "they", "there", "their", "which", "will", "would",
    "can", "could", "should", "does", "did", "done", "doing", "being", "been", "also", "only", "still",
    "such", "any", "all", "each", "every", "other", "another", "one", "two", "via", "per", "out", "over",
    "under", "after", "before", "while", "where", "what", "who", "how", "why", "use", "uses", "used",
    "using", "because", "since", "without", "within", "between", "instead", "rather", "like", "just", "more",
    "most", "some", "same", "both", "very", "own", "now", "new", "yet", "even", "once", "may", "might",
    "must", "never", "always", "see", "here",
];

const ENDINGS: [&str; 5] = ["ing", "ed", "es", "s", "ly"];

/// A finding as it is compared with others.
#[derive(Debug, Clone)]
pub struct FindingClaim<'a> {
    file: &'a str,
    line: u32,
    category: &'a str,
    sources: Vec<&'a str>,
    /// A digest of the code it is about; empty if that is not known.
    anchor: &'a str,
    words: Stems,
    /// In order and each once.
    names: Vec<String>,
}

/// The words of a claim as they are compared, in order and each once.
#[derive(Debug, Clone)]
struct Stems {
    /// Those of up to eight bytes, as numbers: nearly all.
    short: Vec<u64>,
    long: Vec<String>,
}

impl Stems {
    fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    fn count_shared(&self, other: &Stems) -> usize {
        count_shared(&self.short, &other.short) + count_shared(&self.long, &other.long)
    }

    fn remove_all(&mut self, other: &Stems) {
        self.short.retain(|stem| other.short.binary_search(stem).is_err());
        self.long.retain(|stem| other.long.binary_search(stem).is_err());
    }
}

/// Puts a list in order, each value once.
fn ordered<T: Ord>(mut list: Vec<T>) -> Vec<T> {
    list.sort_unstable();
    list.dedup();
    list
}

/// How many values two ordered lists share.
fn count_shared<T: Ord>(one: &[T], other: &[T]) -> usize {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut count = 0;
    while let (Some(a), Some(b)) = (one.peek(), other.peek()) {
        match a.cmp(b) {
            Ordering::Less => drop(one.next()),
            Ordering::Greater => drop(other.next()),
            Ordering::Equal => {
                count += 1;
                one.next();
                other.next();
            }
        }
    }
    count
}

impl<'a> FindingClaim<'a> {
    pub fn of(finding: &'a Finding) -> FindingClaim<'a> {
        FindingClaim::new(&finding.file, finding.line, &finding.category, &finding.description)
            .by([finding.source.as_str()])
            .about(&finding.anchor)
    }

    pub fn of_tracked(tracked: &'a Tracked) -> FindingClaim<'a> {
        FindingClaim::new(&tracked.file, tracked.line, &tracked.category, &tracked.description)
            .by(tracked.source.iter().map(String::as_str))
            .about(&tracked.anchor)
    }

    pub fn new(file: &'a str, line: u32, category: &'a str, description: &str) -> FindingClaim<'a> {
        let (mut words, names) = read(description);
        let (of_file, _) = read(file);
        // Every finding about a file may name it, so its name tells them apart only where nothing else is left.
        if words.count_shared(&of_file) < words.len() {
            words.remove_all(&of_file);
        }
        FindingClaim { file, line, category, sources: Vec::new(), anchor: "", words, names }
    }

    #[must_use]
    pub fn by(mut self, sources: impl IntoIterator<Item = &'a str>) -> FindingClaim<'a> {
        self.sources.extend(sources);
        self
    }

    #[must_use]
    pub fn about(mut self, anchor: &'a str) -> FindingClaim<'a> {
        self.anchor = anchor;
        self
    }

    /// Compares two findings. Symmetric.
    pub fn compare(&self, other: &FindingClaim<'_>) -> Likeness {
        let mut reasons = Vec::new();
        let (points, needed) = self.count(other, |reason, points| reasons.push((reason, points)));
        Likeness { points, needed, reasons }
    }

    /// The points of two findings that are the same, without the reasons.
    pub(crate) fn points_if_same(&self, other: &FindingClaim<'_>) -> Option<i32> {
        if self.is_elsewhere(other) {
            return None;
        }
        let (points, needed) = self.count(other, |_, _| {});
        (points >= needed).then_some(points)
    }

    pub(crate) fn is_in_file_of(&self, other: &FindingClaim<'_>) -> bool {
        self.file == other.file
    }

    /// Two files without a common name of code are two places; one without a file is nowhere.
    fn is_elsewhere(&self, other: &FindingClaim<'_>) -> bool {
        self.file != other.file
            && !self.is_about_same_code(other)
            && (self.file.is_empty() || other.file.is_empty() || count_shared(&self.names, &other.names) == 0)
    }

    fn is_about_same_code(&self, other: &FindingClaim<'_>) -> bool {
        !self.anchor.is_empty() && self.anchor == other.anchor
    }

    /// The points, and those from which on the two are the same.
    fn count(&self, other: &FindingClaim<'_>, mut note: impl FnMut(LikenessReason, i32)) -> (i32, i32) {
        let (mut points, mut needed) = (0, SAME);
        let mut add = |more: i32, reason| {
            points += more;
            note(reason, more);
        };
        let shared = self.words.count_shared(&other.words);
        let of = self.words.len() + other.words.len();
        let words = match of {
            0 => 100,
            of => i32::try_from(shared * 200 / of).unwrap_or(0),
        };
        add(words, LikenessReason::Words);
        if of > 0 && shared == 0 {
            needed = i32::MAX;
        }
        let same_code = self.is_about_same_code(other);
        let (a, b) = (self.line, other.line);
        if same_code {
            add(SAME_LINE, LikenessReason::SameCode);
        } else if self.file == other.file && a > 0 && b > 0 {
            if a == b {
                add(SAME_LINE, LikenessReason::SameLine);
            } else if a.abs_diff(b) > FAR_LINES {
                add(FAR, LikenessReason::FarLines);
            }
        }
        if !self.names.is_empty() && !other.names.is_empty() {
            let shared = count_shared(&self.names, &other.names) * 100;
            let of = self.names.len().min(other.names.len());
            if shared >= of * 80 {
                add(SHARED_NAMES, LikenessReason::SharedNames);
            } else if of >= 2 && shared < of * 35 {
                add(OTHER_NAMES, LikenessReason::OtherNames);
            }
        }
        let mut need = |reason| {
            needed = needed.saturating_add(MARGIN);
            note(reason, -MARGIN);
        };
        if self.file != other.file && !same_code {
            need(LikenessReason::OtherFile);
        }
        if self.category != other.category {
            need(LikenessReason::OtherCategory);
        }
        let known = !self.sources.is_empty() && !other.sources.is_empty();
        if known && !self.sources.iter().any(|source| other.sources.contains(source)) {
            need(LikenessReason::OtherReviewer);
        }
        (points, if self.is_elsewhere(other) { i32::MAX } else { needed })
    }
}

/// How alike two findings are, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Likeness {
    pub points: i32,
    /// Points from which they are the same; out of reach where something rules that out.
    pub needed: i32,
    /// What was counted, with its points; those of what raises the need are negative.
    pub reasons: Vec<(LikenessReason, i32)>,
}

impl Likeness {
    pub fn is_same(&self) -> bool {
        self.points >= self.needed
    }

    /// The same, where a mistake hides a finding.
    pub fn is_surely_same(&self) -> bool {
        self.points >= self.needed.saturating_add(MARGIN)
    }
}

impl fmt::Display for Likeness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons: Vec<String> =
            self.reasons.iter().map(|(reason, points)| format!("{} {points:+}", reason.name())).collect();
        let needed =
            if self.needed == i32::MAX { "ruled out".to_owned() } else { format!("needs {}", self.needed) };
        write!(f, "{} points ({}), {needed}", self.points, reasons.join(", "))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LikenessReason {
    Words,
    SameLine,
    SameCode,
    FarLines,
    SharedNames,
    OtherNames,
    OtherFile,
    OtherCategory,
    OtherReviewer,
}

impl LikenessReason {
    pub fn name(self) -> &'static str {
        match self {
            LikenessReason::Words => "words",
            LikenessReason::SameLine => "same line",
            LikenessReason::SameCode => "same code",
            LikenessReason::FarLines => "lines far apart",
            LikenessReason::SharedNames => "same names in the code",
            LikenessReason::OtherNames => "other names in the code",
            LikenessReason::OtherFile => "other file",
            LikenessReason::OtherCategory => "other category",
            LikenessReason::OtherReviewer => "other reviewer",
        }
    }
}

/// The words of a text as they are compared: stems, without common words.
pub fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    read_up_to(text, usize::MAX, |word| _ = words.insert(word.to_owned()), drop);
    words
}

/// The names of code in a text: in code marks, or of more than one part. In lower case.
pub(crate) fn names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    read_up_to(text, usize::MAX, |_| {}, |name| _ = names.insert(name));
    names
}

/// Whether a text may name code. A no is certain.
pub(crate) fn may_name(text: &str) -> bool {
    let is_small = |byte: u8| byte.is_ascii_lowercase() | byte.is_ascii_digit();
    let bytes = text.as_bytes();
    let joins = |before: u8, byte: u8| u8::from(is_small(before) & byte.is_ascii_uppercase());
    let marks = |byte: u8| u8::from((byte == b'`') | (byte == b'_') | (byte >= 0x80));
    // Without a way out in the middle, many bytes are looked at in one step.
    let later = bytes.get(1..).unwrap_or_default();
    bytes.iter().fold(0, |any, byte| any | marks(*byte)) != 0
        || bytes.iter().zip(later).fold(0, |any, (before, byte)| any | joins(*before, *byte)) != 0
}

/// The words of a claim, as stems, and the names of code in it.
fn read(description: &str) -> (Stems, Vec<String>) {
    let (mut short, mut long, mut names) = (Vec::with_capacity(CLAIM_WORDS), Vec::new(), Vec::new());
    let word = |word: &str| match packed(word) {
        Some(number) => short.push(number),
        None => long.push(word.to_owned()),
    };
    read_up_to(description, CLAIM_WORDS, word, |name| names.push(name));
    (Stems { short: ordered(short), long: ordered(long) }, ordered(names))
}

/// Calls back with each word and each name, in the order of the text.
fn read_up_to(description: &str, most: usize, mut word: impl FnMut(&str), mut name: impl FnMut(String)) {
    if description.is_ascii() {
        return read_ascii(description, most, word, name);
    }
    let mut in_code = false;
    for text in description.split_whitespace().take(most) {
        for (at, piece) in text.split('`').enumerate() {
            if at > 0 {
                in_code = !in_code;
            }
            let identifiers = piece.split(|c: char| !c.is_alphanumeric() && c != '_');
            for identifier in identifiers.flat_map(by_script) {
                let one_part = identifier.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
                read_identifier(identifier, one_part, in_code, &mut word, &mut name);
            }
        }
    }
}

/// `doJSONGetが失敗` is a name and what is said of it: scripts without spaces leave none around names of code either.
fn by_script(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let unspaced = is_unspaced(rest.chars().next()?);
        let end = rest.find(|c| is_unspaced(c) != unspaced).unwrap_or(rest.len());
        let (script, after) = rest.split_at(end);
        rest = after;
        Some(script)
    })
}

/// What a byte of ASCII is to an identifier: small letters and digits, what makes it more than one part, white space,
/// and the rest.
const SMALL: u8 = 1;
const JOINS: u8 = 2;
const SPACE: u8 = 3;
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        kinds[byte] = match byte as u8 {
            b'a'..=b'z' | b'0'..=b'9' => SMALL,
            b'A'..=b'Z' | b'_' => JOINS,
            b' ' | b'\t'..=b'\r' => SPACE,
            _ => 0,
        };
        byte += 1;
    }
    kinds
};

/// The same for a text in ASCII, byte by byte.
fn read_ascii(text: &str, most: usize, mut word: impl FnMut(&str), mut name: impl FnMut(String)) {
    let (mut tokens, mut in_token, mut in_code) = (0, false, false);
    // Where the identifier at hand begins, and whether it has small letters and digits only.
    let (mut start, mut one_part) = (None, true);
    for (at, byte) in text.bytes().enumerate() {
        let kind = KINDS[usize::from(byte)];
        if kind == SMALL && start.is_some() {
            continue;
        }
        if kind != SPACE && !in_token {
            if tokens == most {
                return;
            }
            tokens += 1;
        }
        in_token = kind != SPACE;
        if kind == SMALL || kind == JOINS {
            start = start.or(Some(at));
            one_part &= kind == SMALL;
            continue;
        }
        if let Some(identifier) = start.take().and_then(|start| text.get(start..at)) {
            read_identifier(identifier, one_part, in_code, &mut word, &mut name);
            one_part = true;
        }
        in_code ^= byte == b'`';
    }
    if let Some(identifier) = start.and_then(|start| text.get(start..)) {
        read_identifier(identifier, one_part, in_code, &mut word, &mut name);
    }
}

/// `one_part`: small letters and digits only, as most are, which needs no copy.
fn read_identifier(
    identifier: &str,
    one_part: bool,
    in_code: bool,
    word: &mut impl FnMut(&str),
    name: &mut impl FnMut(String),
) {
    if identifier.is_empty() {
        return;
    }
    let parts = if one_part { Vec::new() } else { parts(identifier) };
    let is_name = in_code || parts.len() > 1;
    if is_name && letters(identifier) >= 3 && !identifier.starts_with(|c: char| c.is_ascii_digit()) {
        name(identifier.to_lowercase());
    }
    if one_part {
        put_ascii(word, identifier);
    }
    for part in parts {
        put(word, &part);
    }
}

fn letters(text: &str) -> usize {
    text.chars().filter(|c| c.is_alphanumeric()).count()
}

/// `parseApiMessage` and `parse_api_message` have three parts.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = Vec::new();
    let mut part = String::new();
    let mut before_is_small = false;
    for c in identifier.chars() {
        if c == '_' || (c.is_uppercase() && before_is_small) {
            parts.push(std::mem::take(&mut part));
        }
        if c != '_' {
            part.extend(c.to_lowercase());
        }
        before_is_small = c.is_lowercase() || c.is_numeric();
    }
    parts.push(part);
    parts.retain(|part| !part.is_empty());
    parts
}

fn put(put: &mut impl FnMut(&str), word: &str) {
    if word.is_ascii() {
        return put_ascii(put, word);
    }
    // Scripts without spaces: two characters are about what a word is elsewhere.
    if word.chars().any(is_unspaced) {
        let characters: Vec<char> = word.chars().collect();
        characters.windows(2).for_each(|pair| put(&pair.iter().collect::<String>()));
        if let [one] = characters.as_slice() {
            put(&one.to_string());
        }
        return;
    }
    if word.chars().count() < 3 {
        return;
    }
    let stem = stem(word);
    let end = stem.char_indices().nth(STEM).map_or(stem.len(), |(at, _)| at);
    put(stem.get(..end).unwrap_or(stem));
}

fn put_ascii(put: &mut impl FnMut(&str), word: &str) {
    if word.len() >= 3 && !is_common(word) {
        let length = ascii_stem(word.as_bytes()).min(STEM);
        put(word.get(..length).unwrap_or(word));
    }
}

/// Every word of every finding is looked up here, so they are compared as numbers.
fn is_common(word: &str) -> bool {
    static NUMBERS: LazyLock<Vec<u64>> =
        LazyLock::new(|| ordered(COMMON.iter().filter_map(|word| packed(word)).collect()));
    packed(word).is_some_and(|number| NUMBERS.binary_search(&number).is_ok())
}

/// A word of up to eight bytes as a number; no common one is longer.
fn packed(word: &str) -> Option<u64> {
    let bytes = word.bytes();
    (bytes.len() <= 8).then(|| bytes.fold(0, |number, byte| number << 8 | u64::from(byte)))
}

/// Without its ending: *dropped*, *drops* and *dropping* are *drop*, *timing* and *time* are *tim*.
fn stem(word: &str) -> &str {
    let long = |stem: &&str| stem.chars().count() >= 3;
    let cut =
        ENDINGS.iter().find_map(|ending| word.strip_suffix(ending).filter(long).map(|stem| (stem, *ending)));
    let Some((stem, ending)) = cut else { return word.strip_suffix('e').filter(long).unwrap_or(word) };
    let mut last = stem.chars().rev();
    let doubled = matches!(ending, "ing" | "ed") && last.next() == last.next() && !stem.ends_with(['s', 'l']);
    let single = stem.get(..stem.len().saturating_sub(1)).filter(|single| doubled && long(single));
    single.unwrap_or_else(|| stem.strip_suffix('e').filter(long).unwrap_or(stem))
}

/// The length of [`stem`] of a word in ASCII.
fn ascii_stem(word: &[u8]) -> usize {
    fn without_e(word: &[u8]) -> usize {
        match word {
            [_, _, _, .., b'e'] => word.len() - 1,
            _ => word.len(),
        }
    }
    let (stem, may_be_doubled) = match word {
        [stem @ .., b'i', b'n', b'g'] if stem.len() >= 3 => (stem, true),
        [stem @ .., b'e', b'd'] if stem.len() >= 3 => (stem, true),
        [stem @ .., b'e', b's'] if stem.len() >= 3 => (stem, false),
        [stem @ .., b's'] if stem.len() >= 3 => (stem, false),
        [stem @ .., b'l', b'y'] if stem.len() >= 3 => (stem, false),
        word => return without_e(word),
    };
    match stem {
        [single @ .., one, other]
            if may_be_doubled && one == other && !matches!(other, b's' | b'l') && single.len() >= 2 =>
        {
            stem.len() - 1
        }
        _ => without_e(stem),
    }
}

fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c), 0x0e00..=0x0eff | 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af)
}

#[cfg(test)]
mod tests {
    use super::{CLAIM_WORDS, ascii_stem, may_name, names, put, read_up_to, stem, words};

    #[test]
    fn j_07_names_of_code_are_read_in_text_without_blanks() {
        let cases = [
            (
                "TestClient_ContextCancelの上限200 msは壊れやすい",
                "func TestClient_ContextCancel(t *testing.T) {",
            ),
            ("doJSONGet이 resp.Body를 닫지 않는다", "func (c *Client) doJSONGet() error {"),
            ("最后一次尝试时doJSONGet没有关闭", "return c.doJSONGet(ctx)"),
            ("ตัวแปรopenCountไม่เคยถูกอ่าน", "let openCount = 0;"),
        ];
        for (finding, line) in cases {
            assert!(!words(finding).is_disjoint(&words(line)), "{finding}: {:?}", words(finding));
            assert!(!names(finding).is_disjoint(&names(line)), "{finding}: {:?}", names(finding));
        }
        // Letters with accents are part of their word.
        assert_eq!(words("Größenüberlauf"), words("größenüberlauf"));
        assert_eq!(words("größe").len(), 1);
    }

    #[test]
    fn af_101_texts_in_ascii_are_read_like_others() {
        let texts = [
            "",
            " `",
            "The parser drops the last byte of a frame.",
            "parseApiMessage and parse_api_message; `x` `let total = sum(&parts)`a b`c_d",
            "running stopped falling passed planning agreed timing times goes flies ly eed ing sly bees",
            "A\tB\x0b\x0cC\r\nd__e _ f_ 12ab ABc aBC9De HTTPServer `open",
            "eeed aaing aaaing bbbed essed",
        ];
        for text in texts {
            // A word that is not ASCII, and says nothing, makes it another text.
            let other = format!("{text} \u{e9}");
            let mut both = [Vec::new(), Vec::new()];
            for (found, text) in both.iter_mut().zip([text, &other]) {
                let mut named = Vec::new();
                read_up_to(text, CLAIM_WORDS, |word| found.push(word.to_owned()), |name| named.push(name));
                found.extend(named);
            }
            assert_eq!(both[0], both[1], "{text}");
            assert_eq!(words(text), words(&other), "{text}");
            assert!(may_name(text) || names(text).is_empty(), "{text}");
            for word in text.split_whitespace() {
                assert_eq!(ascii_stem(word.as_bytes()), stem(word).len(), "{word}");
            }
        }
        let mut short = Vec::new();
        put(&mut |word: &str| short.push(word.to_owned()), "\u{e9}\u{e9}");
        assert!(short.is_empty());
    }
}
