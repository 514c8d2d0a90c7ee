//! A quick check that two texts have too few words in common. To compare words exactly costs far more than to rule most
//! pairs out, and most pairs have little in common.

use std::collections::BTreeSet;

const BITS: usize = 4096;

/// The keywords of a text, one bit each. Different words can share a bit, so there are at least as many words as bits.
pub(crate) struct Bag([u64; BITS / 64]);

impl Bag {
    /// The words are those of [`super::convergence::keywords`].
    pub(crate) fn of(text: &str) -> Bag {
        let mut bag = Bag([0; BITS / 64]);
        let (mut hash, mut letters) = (SEED, 0_u32);
        for c in text.chars() {
            if c.is_ascii_alphanumeric() {
                (hash, letters) = (mix(hash, c.to_ascii_lowercase()), letters + 1);
            } else if c.is_whitespace() {
                bag.put(hash, letters);
                (hash, letters) = (SEED, 0);
            } else if c.is_alphanumeric() {
                for lower in c.to_lowercase() {
                    (hash, letters) = (mix(hash, lower), letters + 1);
                }
            }
        }
        bag.put(hash, letters);
        bag
    }

    /// Whether the text may have N percent of the words, counted by whichever has fewer. A no is certain.
    pub(crate) fn may_share(&self, words: &BTreeSet<String>, percent: u32) -> bool {
        let here = words.iter().filter(|word| self.has(word.chars().fold(SEED, mix))).count();
        let bits: u32 = self.0.iter().map(|bits| bits.count_ones()).sum();
        here * 100 >= words.len().min(bits as usize) * percent as usize
    }

    fn put(&mut self, hash: u32, letters: u32) {
        let (place, bit) = place(hash);
        if let Some(bits) = self.0.get_mut(place).filter(|_| letters >= 3) {
            *bits |= bit;
        }
    }

    fn has(&self, hash: u32) -> bool {
        let (place, bit) = place(hash);
        self.0.get(place).is_some_and(|bits| bits & bit != 0)
    }
}

const SEED: u32 = 2_166_136_261;

fn mix(hash: u32, letter: char) -> u32 {
    (hash ^ u32::from(letter)).wrapping_mul(16_777_619)
}

fn place(hash: u32) -> (usize, u64) {
    let number = (hash ^ hash >> 16) as usize % BITS;
    (number / 64, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use super::Bag;
    use crate::rules::convergence::keywords;

    #[test]
    fn af_145_what_a_bag_rules_out_is_not_alike() {
        let texts = [
            "",
            "a an it",
            "The parser drops the last byte of a frame.",
            "Parser: drops the LAST byte, of every frame!",
            "Der Zähler läuft über — in jedem Fall.",
            "der zähler LÄUFT über in JEDEM fall",
            "don't re-use the buffer buffer buffer\u{a0}twice",
            "İstanbul ǅ ß 42 x1y2",
        ];
        let mut ruled_out = 0;
        for (a, b) in texts.iter().flat_map(|a| texts.iter().map(move |b| (*a, *b))) {
            let (left, right) = (keywords(a), keywords(b));
            let (shared, of) = (left.intersection(&right).count(), left.len().min(right.len()));
            for percent in [1, 50, 60, 100] {
                let may = Bag::of(b).may_share(&left, percent);
                assert!(may || shared * 100 < of * percent as usize, "{a:?} and {b:?} at {percent} %");
                ruled_out += u32::from(!may);
            }
        }
        assert!(ruled_out > 50, "a bag that rules nothing out is of no use: {ruled_out}");
    }
}
