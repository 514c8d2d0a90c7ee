//! A quick check that two texts have too few words in common. To compare words exactly costs far more than to rule most
//! pairs out, and most pairs have little in common.

const BITS: usize = 4096;

/// The keywords of a text, one bit each. Different words can share a bit, so there are at least as many words as bits.
pub(crate) struct Bag {
    bits: [u64; BITS / 64],
    count: u32,
}

/// The keywords of a text that is compared with many bags.
pub(crate) struct BagWords {
    /// One for each word, also where it is repeated.
    hashes: Vec<u32>,
    /// At most as many as there are different words.
    different: usize,
}

impl BagWords {
    pub(crate) fn of(text: &str) -> BagWords {
        let mut hashes = Vec::new();
        each_hash(text, |hash| hashes.push(hash));
        hashes.sort_unstable();
        let different = hashes.chunk_by(|one, other| one == other).count();
        BagWords { hashes, different }
    }
}

impl Bag {
    pub(crate) fn of(text: &str) -> Bag {
        let (mut bits, mut count) = ([0_u64; BITS / 64], 0);
        each_hash(text, |hash| {
            let (place, bit) = place(hash);
            if let Some(bits) = bits.get_mut(place) {
                count += u32::from(*bits & bit == 0);
                *bits |= bit;
            }
        });
        Bag { bits, count }
    }

    /// Whether the text may have N percent of the words, counted by whichever has fewer. A no is certain: words that are
    /// repeated count each time, and those that share a bit may be one.
    pub(crate) fn may_share(&self, words: &BagWords, percent: u32) -> bool {
        let here = words.hashes.iter().filter(|hash| self.has(**hash)).count();
        here * 100 >= words.different.min(self.count as usize) * percent as usize
    }

    fn has(&self, hash: u32) -> bool {
        let (place, bit) = place(hash);
        self.bits.get(place).is_some_and(|bits| bits & bit != 0)
    }
}

/// Calls back with the hash of each of the words of [`super::convergence::keywords`], in the order of the text.
fn each_hash(text: &str, mut put: impl FnMut(u32)) {
    let (mut hash, mut letters) = (SEED, 0_u32);
    let mut end = |hash: &mut u32, letters: &mut u32| {
        if *letters >= 3 {
            put(*hash);
        }
        (*hash, *letters) = (SEED, 0);
    };
    if text.is_ascii() {
        for byte in text.bytes() {
            match SMALL[usize::from(byte)] {
                0 => {}
                b' ' => end(&mut hash, &mut letters),
                small => (hash, letters) = (mix(hash, char::from(small)), letters + 1),
            }
        }
    } else {
        for c in text.chars() {
            if c.is_whitespace() {
                end(&mut hash, &mut letters);
            } else if c.is_alphanumeric() {
                for lower in c.to_lowercase() {
                    (hash, letters) = (mix(hash, lower), letters + 1);
                }
            }
        }
    }
    end(&mut hash, &mut letters);
}

/// Letters of ASCII in lower case and digits as they are, a blank for every space, and nothing for the rest.
static SMALL: [u8; 256] = {
    let mut small = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        small[byte] = match byte as u8 {
            b' ' | b'\t'..=b'\r' => b' ',
            letter if letter.is_ascii_alphanumeric() => letter.to_ascii_lowercase(),
            _ => 0,
        };
        byte += 1;
    }
    small
};

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
    use super::{Bag, BagWords};
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
                let may = Bag::of(b).may_share(&BagWords::of(a), percent);
                assert!(may || shared * 100 < of * percent as usize, "{a:?} and {b:?} at {percent} %");
                ruled_out += u32::from(!may);
            }
        }
        assert!(ruled_out > 50, "a bag that rules nothing out is of no use: {ruled_out}");
    }
}
