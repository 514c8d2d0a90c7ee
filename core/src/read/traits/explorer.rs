//! The Explorer: does it reach a recommendation?

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{Placed, each_own_line, files, number};
use crate::model::Traits;
use crate::read::lines::LineKind;
use crate::read::sections::SectionedText;
use crate::read::text::{is_none, unbullet};
use crate::read::{status, table};
use crate::rules::phrases::{Phrases, negated};

const TANGENT: u32 = 1;
const TIED: u32 = 2;
const PATTERN: u32 = 4;
const CONCLUDES: u32 = 8;
const RECOMMENDS: u32 = 16;

/// Phrases of an answer that leaves the subject.
const TANGENTS: [&str; 22] = [
    "as an aside",
    "aside:",
    "side note",
    "sidenote",
    "tangent",
    "incidentally",
    "by the way",
    "digress",
    "out of curiosity",
    "off-topic",
    "off topic",
    "unrelated, but",
    "unrelated but",
    "not directly related",
    "not strictly related",
    "on another note",
    "while i was there",
    "while i was at it",
    "fun fact",
    "interesting detour",
    "went down",
    "nebenbei",
];

/// Phrases of an answer that comes back to it.
const TIES: [&str; 12] = [
    "relevant to",
    "relevant here",
    "relevant for",
    "matters for",
    "matters here",
    "affects this",
    "affects the",
    "bears on",
    "needed for",
    "for this task",
    "so this task",
    "not pursued",
];

const PATTERNS: [&str; 30] = [
    "pattern",
    "convention",
    "in common",
    "the same way",
    "the same shape",
    "the same signature",
    "all of them",
    "each of them",
    "each of these",
    "all of these",
    "every one of",
    "consistently",
    "follow the",
    "follows the",
    "share the",
    "shares the",
    "share a",
    "everywhere",
    "throughout",
    "idiom",
    "each one",
    "all import",
    "all call",
    "all use",
    "every caller",
    "every handler",
    "each handler",
    "muster",
    "gemeinsam",
    "they all",
];

const CONCLUSIONS: [&str; 26] = [
    "in short",
    "in summary",
    "to sum up",
    "to summarise",
    "to summarize",
    "overall,",
    "in conclusion",
    "bottom line",
    "taken together",
    "put together",
    "therefore",
    "hence",
    "the smallest change",
    "the simplest",
    "i suggest",
    "i would",
    "i'd ",
    "we should",
    "you should",
    "the creator should",
    "the fix should",
    "the change should",
    "the plan should",
    "insgesamt",
    "zusammengefasst",
    "the change belongs",
];

const RECOMMENDATIONS: [&str; 8] = [
    "i recommend",
    "we recommend",
    "my recommendation",
    "recommended",
    "recommendation:",
    "ich empfehle",
    "recommending",
    "je recommande",
];

/// Headings of a conclusion.
const SYNTHESES: [&str; 24] = [
    "summary",
    "conclusion",
    "synthesis",
    "takeaway",
    "key takeaway",
    "next step",
    "bottom line",
    "tl dr",
    "tldr",
    "answer",
    "decision",
    "proposal",
    "proposed",
    "suggest",
    "what this means",
    "implication",
    "outcome",
    "options",
    "trade",
    "zusammenfassung",
    "fazit",
    "conclusi",
    "resumen",
    "résumé",
];

/// In a heading, however it begins: `Final recommendation`, `Empfehlung`.
const RECOMMENDING: [&str; 6] = ["recommend", "recommand", "recomend", "raccomand", "empfehl", "aanbevel"];

const PARKED: [&str; 10] = [
    "out of scope",
    "not pursued",
    "parked",
    "not in scope",
    "follow",
    "left out",
    "ignored",
    "not relevant",
    "noted",
    "not looked",
];

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        (TANGENT, &TANGENTS),
        (TIED, &TIES),
        (PATTERN, &PATTERNS),
        (CONCLUDES, &CONCLUSIONS),
        (RECOMMENDS, &RECOMMENDATIONS),
    ])
});

pub(super) fn traits(page: &SectionedText<'_>) -> Traits {
    let mut traits = Traits::default();
    let mut named = Named::default();
    let plain = page.lines.iter().filter(|line| line.kind == LineKind::Plain);
    let said: usize = plain.map(|line| line.text.len()).sum();
    let mut before = 0;
    each_own_line(page, |placed| {
        before += placed.line.text.len();
        let last_quarter = before * 4 > said * 3;
        let bits = bits(placed.line.text);
        named.on(placed.line.text);
        look(placed, bits, last_quarter, &mut traits);
    });
    named.count(&mut traits);
    traits
}

fn bits(text: &str) -> u32 {
    let mut bits = 0;
    PHRASES.each(text, |at, bit| {
        let denied = bit == PATTERN && negated(text, at);
        bits |= if denied { 0 } else { bit };
    });
    bits
}

fn look(placed: &Placed<'_, '_>, bits: u32, last_quarter: bool, traits: &mut Traits) {
    let text = placed.line.text.trim();
    let names = |stems: &[&str], title: &str| stems.iter().any(|stem| title.contains(stem));
    if placed.is_heading {
        // A heading alone is no conclusion.
        return;
    }
    if bits & TANGENT != 0 && bits & TIED == 0 && !placed.is_under(&PARKED) {
        traits.tangents += 1;
    }
    let empty = is_none(unbullet(text)) || status::looks_like_one(text) || table::is_rule(text);
    if empty {
        return;
    }
    let label = text.trim_start_matches(|c: char| !c.is_alphanumeric());
    let labelled = RECOMMENDING.iter().any(|stem| begins(label, stem));
    let recommending = placed.titles.iter().any(|title| names(&RECOMMENDING, title));
    traits.recommendation |= recommending || labelled || (last_quarter && bits & RECOMMENDS != 0);
    let patterned = placed.titles.iter().any(|title| names(&["pattern", "convention", "muster"], title));
    let denies = begins(unbullet(text), "no ") || begins(unbullet(text), "none");
    traits.patterns |= bits & PATTERN != 0 || (patterned && !denies);
    let concludes = recommending || labelled || placed.is_under(&SYNTHESES);
    traits.synthesis |= last_quarter && (concludes || bits & (CONCLUDES | RECOMMENDS) != 0);
}

fn begins(text: &str, stem: &str) -> bool {
    text.get(..stem.len()).is_some_and(|start| start.eq_ignore_ascii_case(stem))
}

/// The files named so far, and whether anything was written about them.
#[derive(Default)]
struct Named<'a> {
    files: BTreeMap<&'a str, bool>,
}

impl<'a> Named<'a> {
    /// The longest list that is read.
    const MOST: usize = 2000;

    fn on(&mut self, line: &'a str) {
        if !line.contains('.') || self.files.len() >= Self::MOST {
            return;
        }
        let mut here: Vec<&str> = Vec::new();
        files::each(line, |file| here.push(file));
        if here.is_empty() {
            return;
        }
        let is_said = |word: &&str| word.chars().any(char::is_alphabetic) && !word.contains(['.', '/']);
        let words = line.split_whitespace().filter(is_said).take(here.len() * 2).count();
        let explained = words >= here.len() * 2;
        for file in here {
            *self.files.entry(file).or_default() |= explained;
        }
    }

    fn count(&self, traits: &mut Traits) {
        traits.files = number(self.files.len());
        traits.bare_files = number(self.files.values().filter(|explained| !**explained).count());
    }
}
