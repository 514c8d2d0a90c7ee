//! Finds many phrases in one pass over a text, whatever their case. Answers can be long and phrases are many, so a
//! text must not be read once for each.

/// Phrases in lower case, each with the bit it sets. A phrase matches where a word begins.
pub(crate) struct Phrases {
    by_letter: [Vec<(&'static str, u32)>; 26],
    /// Which pairs of first letters there are: passes most words by.
    pairs: [u32; 26],
}

impl Phrases {
    pub(crate) fn new(groups: &[(u32, &[&'static str])]) -> Phrases {
        let mut phrases = Phrases { by_letter: std::array::from_fn(|_| Vec::new()), pairs: [0; 26] };
        for (bit, group) in groups {
            for phrase in *group {
                phrases.add(phrase, *bit);
            }
        }
        phrases
    }

    fn add(&mut self, phrase: &'static str, bit: u32) {
        let mut letters = phrase.bytes();
        let (first, second) = (letters.next().and_then(letter), letters.next());
        let (Some(first), Some(second)) = (first, second) else { return };
        if let (Some(bucket), Some(pairs)) = (self.by_letter.get_mut(first), self.pairs.get_mut(first)) {
            bucket.push((phrase, bit));
            *pairs |= pair(second);
        }
    }

    /// Calls back with every match: where it begins, and its bit.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(usize, u32)) {
        let bytes = text.as_bytes();
        let mut inside = false;
        for (at, two) in bytes.windows(2).enumerate() {
            let &[first, second] = two else { continue };
            let begins = !inside;
            inside = is_word(first);
            if !begins || !inside {
                continue;
            }
            let Some(first) = letter(first) else { continue };
            if self.pairs.get(first).is_none_or(|pairs| pairs & pair(second) == 0) {
                continue;
            }
            for (phrase, bit) in self.by_letter.get(first).into_iter().flatten() {
                let here = bytes.get(at..at + phrase.len());
                if here.is_some_and(|here| here.eq_ignore_ascii_case(phrase.as_bytes())) {
                    found(at, *bit);
                }
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

fn letter(byte: u8) -> Option<usize> {
    let lower = byte | 0x20;
    lower.is_ascii_lowercase().then(|| usize::from(lower - b'a'))
}

/// One bit for each letter, and one for everything else.
fn pair(byte: u8) -> u32 {
    letter(byte).map_or(1 << 26, |letter| 1 << letter)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}
