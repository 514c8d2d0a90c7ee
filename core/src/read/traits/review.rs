//! Reviewers: what their findings are like. Each finding is looked at once, and only its beginning: what it is about
//! is there.

use std::sync::LazyLock;

use super::number;
use crate::model::{Finding, Review, Severity, Traits};
use crate::read::lines::LineKind;
use crate::read::sections::SectionedText;
use crate::read::table;
use crate::read::text::unbullet;
use crate::rules::phrases::{Phrases, negated};
use crate::rules::shadows::steps::{STEPS, beginning, shows_arrow};

const COMPROMISED: u32 = 1;
const ALTERNATIVE: u32 = 2;
const STEP: u32 = 4;
const IMPOSSIBLE: u32 = 8;
const THEORETICAL: u32 = 16;
const CONSIDER: u32 = 32;
const DOCUMENT: u32 = 64;
const TRIVIAL: u32 = 128;
const PROMISED: u32 = 256;

/// Phrases about attackers who already have full access.
const COMPROMISES: [&str; 26] = [
    "root access",
    "with root",
    "has root",
    "gains root",
    "compromised host",
    "compromised server",
    "compromised machine",
    "compromised kernel",
    "host is compromised",
    "server is compromised",
    "machine is compromised",
    "system is compromised",
    "database is compromised",
    "physical access",
    "malicious administrator",
    "malicious admin",
    "rogue admin",
    "malicious insider",
    "malicious operator",
    "already controls",
    "already owns",
    "write access to the database",
    "already compromised",
    "control of the operating system",
    "compromised ci",
    "compromised compiler",
];

const ALTERNATIVES: [&str; 22] = [
    "instead",
    "alternative",
    "should be",
    "should use",
    "use a ",
    "use the ",
    "use `",
    "replace ",
    "rather than",
    "better to",
    "prefer ",
    "would suffice",
    "by using",
    "move it",
    "add a ",
    "keep it",
    "could be done with",
    "split it",
    "store it",
    "pass it",
    "return ",
    "do it with",
];

const IMPOSSIBLES: [&str; 24] = [
    "cosmic ray",
    "bit flip",
    "bit-flip",
    "bitflip",
    "solar flare",
    "quantum",
    "heat death",
    "faulty ram",
    "faulty memory",
    "ram is faulty",
    "bad ram",
    "laws of physics",
    "uuid collision",
    "uuids collide",
    "sha-256 collision",
    "sha256 collision",
    "hash collision in sha",
    "time travel",
    "cpu miscalculat",
    "cpu bug",
    "meteor",
    "hundred years",
    "thousand years",
    "million years",
];

const THEORETICALS: [&str; 9] = [
    "theoretically",
    "in theory",
    "hypothetically",
    "astronomically",
    "however unlikely",
    "practically impossible",
    "virtually impossible",
    "extremely unlikely",
    "one in a billion",
];

const CONSIDERS: [&str; 8] = [
    "consider",
    "might want to",
    "may want to",
    "perhaps",
    "maybe",
    "it could be nice",
    "would be nice",
    "think about",
];

const DOCUMENTS: [&str; 18] = [
    "doc comment",
    "docstring",
    "doc-comment",
    "javadoc",
    "jsdoc",
    "rustdoc",
    "godoc",
    "missing documentation",
    "no documentation",
    "undocumented",
    "lacks documentation",
    "lacks a comment",
    "has no comment",
    "document ",
    "not documented",
    "add a comment",
    "needs documentation",
    "needs a comment",
];

const TRIVIALS: [&str; 22] = [
    "getter",
    "setter",
    "one-line",
    "one line",
    "one-liner",
    "trivial",
    "simple ",
    "private helper",
    "constructor",
    "self-explanatory",
    "obvious",
    "accessor",
    "even though it only",
    "only returns",
    "just returns",
    "returns the field",
    "single-line",
    "loop variable",
    "loop counter",
    "local variable",
    "the import",
    "default impl",
];

/// What deserves documentation however short it is.
const PROMISES: [&str; 14] = [
    "public",
    "exported",
    "unsafe",
    "panics",
    "invariant",
    "safety",
    "api",
    "error",
    "contract",
    "unit",
    "units",
    "caller",
    "surpris",
    "side effect",
];

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        (COMPROMISED, &COMPROMISES),
        (ALTERNATIVE, &ALTERNATIVES),
        (STEP, &STEPS),
        (IMPOSSIBLE, &IMPOSSIBLES),
        (THEORETICAL, &THEORETICALS),
        (CONSIDER, &CONSIDERS),
        (DOCUMENT, &DOCUMENTS),
        (TRIVIAL, &TRIVIALS),
        (PROMISED, &PROMISES),
    ])
});

pub(super) fn traits(page: &SectionedText<'_>, review: &Review) -> Traits {
    let mut traits = Traits::default();
    for finding in &review.findings {
        let seen = look(finding);
        add(&seen, finding, &mut traits);
    }
    traits.considers +=
        number(page.lines.iter().filter(|line| line.kind == LineKind::Plain).filter(is_vague).count());
    traits.reworded = alike::most_often(&review.findings);
    traits
}

/// The traits of one finding.
struct FindingTraits {
    bits: u32,
    steps: u32,
}

fn look(finding: &Finding) -> FindingTraits {
    let mut seen = FindingTraits { bits: 0, steps: 0 };
    for text in [beginning(&finding.description), beginning(&finding.fix)] {
        PHRASES.each(text, |at, bit| {
            let denied = bit & (COMPROMISED | IMPOSSIBLE | THEORETICAL) != 0 && negated(text, at);
            seen.bits |= if denied { 0 } else { bit };
            seen.steps += u32::from(bit == STEP);
        });
    }
    seen
}

fn add(seen: &FindingTraits, finding: &Finding, traits: &mut Traits) {
    let has = |bits: u32| seen.bits & bits != 0;
    let grave = finding.severity > Severity::Info;
    let shown = !finding.evidence.is_empty();
    let ran = shown && (finding.evidence.contains('`') || finding.evidence.contains("$ "));
    let remedied = says_what_to_do(&finding.fix) || (finding.fix.is_empty() && has(ALTERNATIVE));
    traits.remedied += u32::from(remedied);
    traits.grave_remedied += u32::from(grave && remedied);
    traits.compromised += u32::from(grave && has(COMPROMISED) && !ran);
    traits.impossible += u32::from(grave && ((has(IMPOSSIBLE) && !ran) || (has(THEORETICAL) && !shown)));
    let steps = shown || seen.steps >= 2 || shows_arrow(beginning(&finding.description));
    traits.without_steps += u32::from(grave && !steps);
    traits.considers += u32::from(has(CONSIDER) && only_considers(finding));
    traits.trivial_docs += u32::from(grave && has(DOCUMENT) && has(TRIVIAL) && !has(PROMISED));
    if !finding.file.is_empty() && !finding.fix.is_empty() {
        traits.actionable += 1;
        let texts = [&finding.location, &finding.description, &finding.fix, &finding.evidence];
        // Severity and category are a word each.
        traits.actionable_words += 2 + texts.iter().map(|text| words(text)).sum::<u32>();
    }
}

/// Words, counted by the spaces between them: near enough, and it costs nothing.
fn words(text: &str) -> u32 {
    let is_space = |byte: &u8| u8::from(matches!(byte, b' ' | b'\n'));
    // As many bytes at once as a byte can count.
    let chunks = text.as_bytes().chunks(255);
    let spaces: u32 = chunks.map(|chunk| u32::from(chunk.iter().map(is_space).sum::<u8>())).sum();
    if text.is_empty() { 0 } else { spaces.saturating_add(1) }
}

/// A fix that only puts the work off is none.
fn says_what_to_do(fix: &str) -> bool {
    const EMPTY: [&str; 18] = [
        "tbd",
        "unclear",
        "unknown",
        "think",
        "needs discussion",
        "needs more",
        "discuss",
        "investigate",
        "reconsider",
        "rethink",
        "n/a",
        "to be ",
        "please clarify",
        "clarify",
        "not sure",
        "hard to say",
        "?",
        "none",
    ];
    let fix = fix.trim_start();
    let puts_off = |start: &str| fix.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start));
    !fix.is_empty() && !EMPTY.iter().any(|start| puts_off(start))
}

/// The fix, or the description where there is none, goes no further than considering. A name in it is something
/// to act on.
fn only_considers(finding: &Finding) -> bool {
    let text = if finding.fix.is_empty() { &finding.description } else { &finding.fix };
    let begins = CONSIDERS.iter().any(|word| begins(text, word));
    (begins || finding.fix.is_empty()) && !names_something(text)
}

/// A line beside the findings that begins with "consider" and names nothing.
fn is_vague(line: &&crate::read::lines::TextLine<'_>) -> bool {
    let text = unbullet(line.text.trim_start()).trim_start_matches(['*', '_', ' ']);
    let vague = ["consider ", "maybe ", "perhaps ", "you might want to", "it would be nice"];
    let may_be = text.starts_with(['c', 'C', 'm', 'M', 'p', 'P', 'y', 'Y', 'i', 'I']);
    may_be
        && vague.iter().any(|word| begins(text, word))
        && !table::is_row(line.text)
        && !names_something(text)
}

fn names_something(text: &str) -> bool {
    let text = beginning(text);
    text.contains(['`', '_', '(']) || text.contains("::") || text.bytes().any(|byte| byte.is_ascii_digit())
}

fn begins(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start))
}

mod alike {
    //! How often one concern is repeated in other words. Two findings are alike if they are in one file and three
    //! fifths of the shorter one's words are the other's too. Words are known by their stems, and those every review is
    //! full of do not count.

    use std::sync::LazyLock;

    use crate::model::Finding;
    use crate::rules::shadows::steps::beginning;

    const MOST_FINDINGS: usize = 150;
    const MOST_WORDS: usize = 32;
    const FEWEST_WORDS: usize = 4;
    const STEM: usize = 6;

    /// Words without weight, cut to their stems.
    const COMMON: [&str; 44] = [
        "this", "that", "with", "from", "when", "will", "would", "could", "should", "there", "their",
        "which", "while", "have", "been", "does", "into", "more", "than", "then", "they", "what", "where",
        "because", "about", "also", "only", "even", "such", "some", "other", "each", "every", "propos",
        "assume", "assump", "design", "plan", "change", "code", "file", "must", "very", "being",
    ];

    pub(super) fn most_often(findings: &[Finding]) -> u32 {
        static COMMON_STEMS: LazyLock<Vec<u32>> = LazyLock::new(|| {
            let mut common: Vec<u32> = COMMON.iter().map(|word| hash(word)).collect();
            common.sort_unstable();
            common
        });
        let common: &[u32] = &COMMON_STEMS;
        let mut concerns: Vec<Concern<'_>> = findings
            .iter()
            .take(MOST_FINDINGS)
            .map(|finding| Concern::of(finding, common))
            .filter(|c| c.stems.len() >= FEWEST_WORDS)
            .collect();
        // One file after the other, so that a concern is compared with its own file only.
        concerns.sort_by(|a, b| (a.file, a.text).cmp(&(b.file, b.text)));
        let in_file = concerns.chunk_by(|a, b| a.file == b.file);
        super::number(in_file.map(most_alike).max().unwrap_or(0))
    }

    /// The most concerns of one file that one of them is like, itself left out.
    fn most_alike(concerns: &[Concern<'_>]) -> usize {
        let mut alike = vec![0; concerns.len()];
        for (i, one) in concerns.iter().enumerate() {
            for (j, other) in concerns.iter().enumerate().skip(i + 1) {
                if one.is_reworded_in(other) {
                    for at in [i, j] {
                        if let Some(count) = alike.get_mut(at) {
                            *count += 1;
                        }
                    }
                }
            }
        }
        alike.into_iter().max().unwrap_or(0)
    }

    struct Concern<'a> {
        file: &'a str,
        text: &'a str,
        /// Sorted, each once.
        stems: Vec<u32>,
        /// One bit for each stem: passes most pairs by.
        mask: u64,
    }

    impl<'a> Concern<'a> {
        fn of(finding: &'a Finding, common: &[u32]) -> Concern<'a> {
            let text = beginning(&finding.description);
            let mut stems = Vec::with_capacity(MOST_WORDS);
            let is_between = |byte: &u8| LETTERS[usize::from(*byte)] == 0;
            for word in text.as_bytes().split(is_between).filter(|word| word.len() >= STEM - 2) {
                let letters = word.iter().take(STEM).map(|byte| LETTERS[usize::from(*byte)]);
                let stem = letters.fold(SEED, mix);
                if common.binary_search(&stem).is_err() {
                    stems.push(stem);
                    if stems.len() == MOST_WORDS {
                        break;
                    }
                }
            }
            stems.sort_unstable();
            stems.dedup();
            let mask = stems.iter().fold(0, |mask, stem| mask | 1 << (stem % 64));
            Concern { file: &finding.file, text, stems, mask }
        }

        fn is_reworded_in(&self, other: &Concern<'_>) -> bool {
            let of = self.stems.len().min(other.stems.len());
            let same = self.text == other.text;
            // Different stems can share a bit, so only too few shared bits are conclusive.
            let bits = usize::try_from((self.mask & other.mask).count_ones()).unwrap_or(0);
            let lost = self.stems.len() - usize::try_from(self.mask.count_ones()).unwrap_or(0);
            if same || (bits + lost) * 5 < of * 3 {
                return false;
            }
            shared(&self.stems, &other.stems) * 5 >= of * 3
        }
    }

    /// How many numbers two sorted lists have in common.
    fn shared(a: &[u32], b: &[u32]) -> usize {
        let mut b = b.iter().peekable();
        a.iter()
            .filter(|one| {
                while b.next_if(|other| other < one).is_some() {}
                b.next_if_eq(one).is_some()
            })
            .count()
    }

    /// The number of a word's first letters, whatever their case.
    fn hash(stem: &str) -> u32 {
        stem.bytes().fold(SEED, mix)
    }

    const SEED: u32 = 2_166_136_261;

    fn mix(hash: u32, byte: u8) -> u32 {
        (hash ^ u32::from(byte)).wrapping_mul(16_777_619)
    }

    /// The bytes of words, letters of ASCII in lower case, and nothing for what is between them.
    static LETTERS: [u8; 256] = {
        let mut letters = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let letter = byte as u8;
            if letter.is_ascii_alphanumeric() || letter >= 0x80 {
                letters[byte] = letter.to_ascii_lowercase();
            }
            byte += 1;
        }
        letters
    };
}
