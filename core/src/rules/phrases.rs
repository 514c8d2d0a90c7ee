//! Finds many phrases in one pass over a text, whatever their case. Answers can be long and phrases are many, so a
//! text must not be read once for each.

/// Phrases in lower case, each with the bit it sets. A phrase begins with a letter, has at least three bytes, and
/// matches where a word begins.
pub(crate) struct Phrases {
    /// Sorted by the number of their first three bytes.
    all: Vec<(usize, &'static str, u32)>,
    /// Where the phrases of each number begin in `all`; they end where the next number's begin.
    starts: Vec<u16>,
}

/// Numbers that the beginning of a word can have. Far more than there are phrases, so that most words end a search at
/// once.
const NUMBERS: usize = 4096;

impl Phrases {
    pub(crate) fn new(groups: &[(u32, &[&'static str])]) -> Phrases {
        let of_group = |(bit, group): &(u32, &[&'static str])| {
            let bit = *bit;
            group
                .iter()
                .filter_map(move |phrase| Some((number_of(phrase.as_bytes())?, *phrase, bit)))
                .collect::<Vec<_>>()
        };
        let mut all: Vec<(usize, &'static str, u32)> = groups.iter().flat_map(of_group).collect();
        debug_assert_eq!(all.len(), groups.iter().map(|(_, group)| group.len()).sum::<usize>());
        debug_assert!(all.iter().all(|(_, phrase, _)| phrase.starts_with(|c: char| c.is_ascii_alphabetic())));
        all.sort_unstable();
        let mut at = 0;
        let starts = (0..=NUMBERS).map(|number| {
            while all.get(at).is_some_and(|(of, _, _)| *of < number) {
                at += 1;
            }
            u16::try_from(at).unwrap_or(u16::MAX)
        });
        Phrases { starts: starts.collect(), all }
    }

    /// Calls back with every match: where it begins, and its bit.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(usize, u32)) {
        let bytes = text.as_bytes();
        let (eights, rest) = bytes.as_chunks::<8>();
        let mut inside = 0;
        let mut base = 0;
        let mut last = [0; 8];
        last.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
        for eight in eights.iter().chain(std::iter::once(&last)) {
            let words = words(u64::from_le_bytes(*eight));
            // A word begins at a byte of one that does not follow another; the last byte of the eight before
            // comes in from below.
            let mut begins = words & !(words << 8 | inside);
            inside = words >> 63 << 7;
            while begins != 0 {
                self.at(bytes, base + begins.trailing_zeros() as usize / 8, &mut found);
                begins &= begins - 1;
            }
            base += 8;
        }
    }

    /// The phrases that begin at the beginning of a word.
    fn at(&self, bytes: &[u8], at: usize, found: &mut impl FnMut(usize, u32)) {
        let Some(number) = bytes.get(at..).and_then(number_of) else { return };
        let Some(&[start, end]) = self.starts.get(number..number + 2) else { return };
        if start == end {
            return;
        }
        for (_, phrase, bit) in self.all.get(usize::from(start)..usize::from(end)).unwrap_or_default() {
            let here = bytes.get(at..at + phrase.len());
            if here.is_some_and(|here| here.eq_ignore_ascii_case(phrase.as_bytes())) {
                found(at, *bit);
            }
        }
    }

    /// The bits of all that a text holds.
    pub(crate) fn all(&self, text: &str) -> u32 {
        let mut bits = 0;
        self.each(text, |_, bit| bits |= bit);
        bits
    }
}

/// Whether the words right before a place negate what is there.
pub(crate) fn negated(text: &str, at: usize) -> bool {
    const BEFORE: usize = 40;
    const NO: [&str; 15] = [
        "no", "not", "never", "without", "avoid", "avoids", "avoiding", "nothing", "isn't", "don't",
        "doesn't", "than", "nor", "instead", "reject",
    ];
    let start = (at.saturating_sub(BEFORE)..=at).find(|at| text.is_char_boundary(*at)).unwrap_or(at);
    let before = text.get(start..at).unwrap_or_default();
    let clause = before.rsplit(['.', ';', ':', '(']).next().unwrap_or_default();
    let mut words = clause.split(|c: char| !c.is_alphanumeric() && c != '\'');
    words.any(|word| NO.iter().any(|no| word.eq_ignore_ascii_case(no)))
}

/// A number for the first three bytes, the same in either case. Different ones can share it.
fn number_of(word: &[u8]) -> Option<usize> {
    let &[a, b, c, ..] = word else { return None };
    let three = u32::from_le_bytes([a | 0x20, b | 0x20, c | 0x20, 0]);
    usize::try_from(three.wrapping_mul(2_654_435_769) >> 20).ok()
}

/// The top bit of each of eight bytes that is a letter, a digit or part of a character beyond ASCII. Sums of seven bits
/// stay inside their byte, so that eight comparisons are one addition.
fn words(bytes: u64) -> u64 {
    const fn each(byte: u8) -> u64 {
        u64::from_le_bytes([byte; 8])
    }
    let low = bytes & each(0x7f);
    let lower = low | each(0x20);
    let letters = (lower + each(0x80 - b'a')) & !(lower + each(0x7f - b'z'));
    let digits = (low + each(0x80 - b'0')) & !(low + each(0x7f - b'9'));
    (letters | digits | bytes) & each(0x80)
}

#[cfg(test)]
mod tests {
    use super::{Phrases, words};

    /// What the fast search must agree with: every phrase at every beginning of a word.
    fn slowly(phrases: &[(&str, u32)], text: &str) -> Vec<(usize, u32)> {
        let bytes = text.as_bytes();
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80;
        let begins = |at: &usize| {
            bytes.get(*at).is_some_and(is_word)
                && !at.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(is_word)
        };
        let stands = |at: usize, phrase: &str| {
            bytes.get(at..at + phrase.len()).is_some_and(|here| here.eq_ignore_ascii_case(phrase.as_bytes()))
        };
        let at = |at: usize| {
            phrases.iter().filter(move |(phrase, _)| stands(at, phrase)).map(move |(_, bit)| (at, *bit))
        };
        let mut found: Vec<(usize, u32)> = (0..bytes.len()).filter(begins).flat_map(at).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn af_130_every_byte_is_told_from_a_gap() {
        for byte in 0..=u8::MAX {
            let is_word = byte.is_ascii_alphanumeric() || byte >= 0x80;
            let expected = if is_word { 0x0000_8000_0000_0000 } else { 0 };
            assert_eq!(words(u64::from(byte) << 40), expected, "{byte}");
            assert_eq!(words(u64::from_le_bytes([byte; 8])).count_ones(), u32::from(is_word) * 8, "{byte}");
        }
    }

    #[test]
    fn af_130_phrases_are_found_wherever_they_stand() {
        let (one, two): (&[&str], &[&str]) =
            (&["run ", "runs ", "api", "i'd ", "grün"], &["run", "ok (", "the import"]);
        let known: Vec<(&str, u32)> =
            one.iter().map(|phrase| (*phrase, 1)).chain(two.iter().map(|phrase| (*phrase, 2))).collect();
        let phrases = Phrases::new(&[(1, one), (2, two)]);
        let text = "Run it. RUNS twice, überrun, run_api; I'd say: OK (grün), api1 1api the Import é run";
        for start in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            for end in (start..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let part = text.get(start..end).expect("a boundary");
                let mut found = Vec::new();
                phrases.each(part, |at, bit| found.push((at, bit)));
                found.sort_unstable();
                assert_eq!(found, slowly(&known, part), "{part}");
            }
        }
    }
}
