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
    /// In order and each once, and so are the names.
    words: Vec<Stem>,
    names: Vec<String>,
}

/// A word as it is compared: at most [`STEM`] characters, in place, since there are many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Stem([u8; 4 * STEM]);

impl Stem {
    /// A text has no NUL inside of a word, so what fills the rest makes no two stems the same.
    fn of(text: &str) -> Stem {
        let mut stem = [0; 4 * STEM];
        stem.iter_mut().zip(text.bytes()).for_each(|(into, byte)| *into = byte);
        Stem(stem)
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
        let of_claim = |word: &Stem| of_file.binary_search(word).is_err();
        if words.iter().any(of_claim) {
            words.retain(of_claim);
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
        let mut likeness = Likeness { points: 0, needed: SAME, reasons: Vec::new() };
        let shared = count_shared(&self.words, &other.words);
        let of = self.words.len() + other.words.len();
        let words = match of {
            0 => 100,
            of => i32::try_from(shared * 200 / of).unwrap_or(0),
        };
        likeness.add(words, LikenessReason::Words);
        if self.words.is_empty() != other.words.is_empty() || (of > 0 && shared == 0) {
            likeness.needed = i32::MAX;
        }
        let same_code = !self.anchor.is_empty() && self.anchor == other.anchor;
        let (a, b) = (self.line, other.line);
        if same_code {
            likeness.add(SAME_LINE, LikenessReason::SameCode);
        } else if self.file == other.file && a > 0 && b > 0 {
            if a == b {
                likeness.add(SAME_LINE, LikenessReason::SameLine);
            } else if a.abs_diff(b) > FAR_LINES {
                likeness.add(FAR, LikenessReason::FarLines);
            }
        }
        if !self.names.is_empty() && !other.names.is_empty() {
            let shared = count_shared(&self.names, &other.names) * 100;
            let of = self.names.len().min(other.names.len());
            if shared >= of * 80 {
                likeness.add(SHARED_NAMES, LikenessReason::SharedNames);
            } else if of >= 2 && shared < of * 35 {
                likeness.add(OTHER_NAMES, LikenessReason::OtherNames);
            }
        }
        if self.file != other.file && !same_code {
            likeness.need(LikenessReason::OtherFile);
            // Two files without a common name of code are two places; one without a file is nowhere.
            if self.file.is_empty() || other.file.is_empty() || count_shared(&self.names, &other.names) == 0 {
                likeness.needed = i32::MAX;
            }
        }
        if self.category != other.category {
            likeness.need(LikenessReason::OtherCategory);
        }
        let known = !self.sources.is_empty() && !other.sources.is_empty();
        if known && !self.sources.iter().any(|source| other.sources.contains(source)) {
            likeness.need(LikenessReason::OtherReviewer);
        }
        likeness
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

    fn add(&mut self, points: i32, reason: LikenessReason) {
        self.points += points;
        self.reasons.push((reason, points));
    }

    fn need(&mut self, reason: LikenessReason) {
        self.needed = self.needed.saturating_add(MARGIN);
        self.reasons.push((reason, -MARGIN));
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

/// The words of a claim, as stems, and the names of code in it.
fn read(description: &str) -> (Vec<Stem>, Vec<String>) {
    let (mut words, mut names) = (Vec::with_capacity(CLAIM_WORDS), Vec::new());
    read_up_to(description, CLAIM_WORDS, |word| words.push(Stem::of(word)), |name| names.push(name));
    (ordered(words), ordered(names))
}

/// Calls back with each word and each name, in the order of the text.
fn read_up_to(description: &str, most: usize, mut word: impl FnMut(&str), mut name: impl FnMut(String)) {
    let mut in_code = false;
    for text in description.split_whitespace().take(most) {
        for (at, piece) in text.split('`').enumerate() {
            if at > 0 {
                in_code = !in_code;
            }
            for identifier in piece.split(|c: char| !c.is_alphanumeric() && c != '_') {
                if identifier.is_empty() {
                    continue;
                }
                // Most are one word in small letters, which needs no copy.
                let one_part = identifier.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
                let parts = if one_part { Vec::new() } else { parts(identifier) };
                let is_name = in_code || parts.len() > 1;
                if is_name
                    && letters(identifier) >= 3
                    && !identifier.starts_with(|c: char| c.is_ascii_digit())
                {
                    name(identifier.to_lowercase());
                }
                if one_part {
                    put(&mut word, identifier);
                }
                for part in parts {
                    put(&mut word, &part);
                }
            }
        }
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
    // Scripts without spaces: two characters are about what a word is elsewhere.
    if !word.is_ascii() && word.chars().any(is_unspaced) {
        let characters: Vec<char> = word.chars().collect();
        characters.windows(2).for_each(|pair| put(&pair.iter().collect::<String>()));
        if let [one] = characters.as_slice() {
            put(&one.to_string());
        }
        return;
    }
    if word.chars().count() < 3 || is_common(word) {
        return;
    }
    let stem = stem(word);
    let end = stem.char_indices().nth(STEM).map_or(stem.len(), |(at, _)| at);
    put(stem.get(..end).unwrap_or(stem));
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

fn is_unspaced(c: char) -> bool {
    matches!(u32::from(c), 0x0e00..=0x0eff | 0x3040..=0x30ff | 0x3400..=0x4dbf | 0x4e00..=0x9fff | 0xac00..=0xd7af)
}
