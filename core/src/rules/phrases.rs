//! Finds many phrases in one pass over a text, whatever their case. Answers can be long and phrases are many, so a
//! text must not be read once for each.

/// Phrases in lower case, each with the bit it sets. A phrase matches where a word begins.
pub(crate) struct Phrases {
    /// Sorted by their first two letters.
    all: Vec<(usize, &'static str, u32)>,
    /// Where the phrases of each pair of letters begin in `all`; they end where the next pair's begin.
    starts: [u16; PAIRS + 1],
}

/// Letters, and one place for everything that is none.
const SECONDS: usize = 27;
const PAIRS: usize = 26 * SECONDS;

impl Phrases {
    pub(crate) fn new(groups: &[(u32, &[&'static str])]) -> Phrases {
        let of_group = |(bit, group): &(u32, &[&'static str])| {
            let bit = *bit;
            group
                .iter()
                .filter_map(move |phrase| Some((pair_of(phrase.as_bytes())?, *phrase, bit)))
                .collect::<Vec<_>>()
        };
        let mut all: Vec<(usize, &'static str, u32)> = groups.iter().flat_map(of_group).collect();
        all.sort_unstable();
        let mut starts = [0; PAIRS + 1];
        let mut at = 0;
        for (pair, start) in starts.iter_mut().enumerate() {
            while all.get(at).is_some_and(|(of, _, _)| *of < pair) {
                at += 1;
            }
            *start = u16::try_from(at).unwrap_or(u16::MAX);
        }
        Phrases { all, starts }
    }

    /// Calls back with every match: where it begins, and its bit.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(usize, u32)) {
        let bytes = text.as_bytes();
        let mut inside = false;
        for (at, two) in bytes.windows(2).enumerate() {
            let begins = !inside;
            inside = two.first().is_some_and(|first| is_word(*first));
            if !begins || !inside {
                continue;
            }
            for (_, phrase, bit) in pair_of(two).map_or(&[][..], |pair| self.of(pair)) {
                let here = bytes.get(at..at + phrase.len());
                if here.is_some_and(|here| here.eq_ignore_ascii_case(phrase.as_bytes())) {
                    found(at, *bit);
                }
            }
        }
    }

    fn of(&self, pair: usize) -> &[(usize, &'static str, u32)] {
        let start = |pair: usize| self.starts.get(pair).map_or(0, |start| usize::from(*start));
        self.all.get(start(pair)..start(pair + 1)).unwrap_or_default()
    }

    /// The bits of all that a text holds.
    pub(crate) fn all(&self, text: &str) -> u32 {
        let mut bits = 0;
        self.each(text, |_, bit| bits |= bit);
        bits
    }
}

/// Whether the words right before a place take back what stands there.
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

/// The number of the first two letters of a word.
fn pair_of(word: &[u8]) -> Option<usize> {
    let &[first, second, ..] = word else { return None };
    Some(letter(first)? * SECONDS + letter(second).unwrap_or(SECONDS - 1))
}

fn letter(byte: u8) -> Option<usize> {
    let lower = byte | 0x20;
    lower.is_ascii_lowercase().then(|| usize::from(lower - b'a'))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}
