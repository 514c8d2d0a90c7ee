//! Finds many phrases in one pass over a text, whatever their case. Answers can be long and phrases are many, so a
//! text must not be read once for each.

/// Phrases in lower case, each with the bit it sets.
pub(crate) struct Phrases {
    /// They match only where a word begins.
    at_words: bool,
    /// In order.
    phrases: Vec<(&'static str, u32)>,
    /// Those that have the same first two bytes as far as [`bucket`] tells.
    buckets: Vec<Bucket>,
    /// Phrases by bucket, each with its third byte in lower case; nothing where there is none.
    numbers: Vec<(u8, u16)>,
}

/// Some phrases.
#[derive(Clone, Copy, Default)]
struct Bucket {
    /// The bits of their third bytes, as [`third_bit`] has them; all of them where one has no third.
    thirds: u32,
    /// Where they begin and end in `numbers`.
    start: u16,
    end: u16,
}

fn third_bit(third: u8) -> u32 {
    1 << (third & 31)
}

const BUCKETS: usize = 1024;

/// The bit that makes a letter of ASCII a small one. Bytes that are no letters may become the same by it.
const SMALL: u8 = 0x20;

/// Letters differ in these bits and their case does not. Other bytes may look like a letter here.
fn bucket(first: u8, second: u8) -> usize {
    usize::from(first & 31) << 5 | usize::from(second & 31)
}

/// What a byte is to a word: letters of ASCII, other parts of words, and the rest.
const LETTER: u8 = 1;
const IN_WORD: u8 = 2;
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let letter = byte as u8;
        if letter.is_ascii_alphabetic() {
            kinds[byte] = LETTER;
        } else if letter.is_ascii_digit() || letter >= 0x80 {
            kinds[byte] = IN_WORD;
        }
        byte += 1;
    }
    kinds
};

impl Phrases {
    /// A phrase begins with a letter and matches where a word begins.
    pub(crate) fn new(groups: &[(u32, &[&'static str])]) -> Phrases {
        Phrases { at_words: true, ..Phrases::anywhere(groups) }
    }

    /// A phrase matches wherever it stands.
    pub(crate) fn anywhere(groups: &[(u32, &[&'static str])]) -> Phrases {
        let of_group = |(bit, group): &(u32, &[&'static str])| {
            let bit = *bit;
            group.iter().map(move |phrase| (*phrase, bit)).collect::<Vec<_>>()
        };
        let mut phrases: Vec<(&'static str, u32)> = groups.iter().flat_map(of_group).collect();
        phrases.sort_unstable();
        let mut by_bucket: Vec<(usize, u16, u8)> = Vec::with_capacity(phrases.len());
        for (number, (phrase, _)) in (0..).zip(&phrases) {
            debug_assert!(phrase.len() >= 2, "{phrase:?} is too short");
            if let [first, second, rest @ ..] = phrase.as_bytes() {
                let third = rest.first().map_or(0, |third| third | SMALL);
                by_bucket.push((bucket(*first, *second), number, third));
            }
        }
        by_bucket.sort_unstable();
        let mut buckets = vec![Bucket::default(); BUCKETS];
        let mut end = 0;
        for of_bucket in by_bucket.chunk_by(|one, other| one.0 == other.0) {
            let start = end;
            end += u16::try_from(of_bucket.len()).unwrap_or(u16::MAX);
            let bit = |third: u8| if third == 0 { u32::MAX } else { third_bit(third) };
            let thirds = of_bucket.iter().fold(0, |bits, (.., third)| bits | bit(*third));
            if let Some(bucket) = of_bucket.first().and_then(|(bucket, ..)| buckets.get_mut(*bucket)) {
                *bucket = Bucket { thirds, start, end };
            }
        }
        let numbers = by_bucket.into_iter().map(|(_, number, third)| (third, number)).collect();
        Phrases { at_words: false, phrases, buckets, numbers }
    }

    /// Calls back with every match, in the order of the text: where it begins, and its bit.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(usize, u32)) {
        let bytes = text.as_bytes();
        let kind = |byte: &u8| KINDS[usize::from(*byte)];
        let mut at = 0;
        while let Some(rest @ [first, ..]) = bytes.get(at..) {
            if !self.at_words || kind(first) == LETTER {
                self.each_at(bytes, at, &mut found);
            }
            // On to the next byte, or to where the next word begins.
            at += if self.at_words {
                let in_word = rest.iter().take_while(|byte| kind(byte) != 0).count();
                in_word + rest.iter().skip(in_word).take_while(|byte| kind(byte) == 0).count()
            } else {
                1
            };
        }
    }

    fn each_at(&self, bytes: &[u8], at: usize, found: &mut impl FnMut(usize, u32)) {
        let Some([first, second, rest @ ..]) = bytes.get(at..) else { return };
        let Some(bucket) = self.buckets.get(bucket(*first, *second)) else { return };
        let third = rest.first().map_or(0, |third| third | SMALL);
        if bucket.thirds & third_bit(third) == 0 {
            return;
        }
        let range = usize::from(bucket.start)..usize::from(bucket.end);
        for (wanted, number) in self.numbers.get(range).unwrap_or_default() {
            if *wanted != third && *wanted != 0 {
                continue;
            }
            let Some((phrase, bit)) = self.phrases.get(usize::from(*number)) else { continue };
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

#[cfg(test)]
mod tests {
    use super::Phrases;

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
    fn af_130_phrases_are_found_wherever_they_stand() {
        let (one, two): (&[&str], &[&str]) =
            (&["run ", "runs ", "api", "i'd ", "grün"], &["run", "ok (", "the import"]);
        let known: Vec<(&str, u32)> =
            one.iter().map(|phrase| (*phrase, 1)).chain(two.iter().map(|phrase| (*phrase, 2))).collect();
        let (phrases, anywhere) =
            (Phrases::new(&[(1, one), (2, two)]), Phrases::anywhere(&[(1, one), (2, two)]));
        let text = "Run it. RUNS twice, überrun, run_api; I'd say: OK (grün), api1 1api the Import é run";
        for start in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            for end in (start..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let part = text.get(start..end).expect("a boundary");
                let mut found = Vec::new();
                phrases.each(part, |at, bit| found.push((at, bit)));
                found.sort_unstable();
                assert_eq!(found, slowly(&known, part), "{part}");
                let lower = part.to_ascii_lowercase();
                let has = |group: &[&str]| group.iter().any(|phrase| lower.contains(phrase));
                let bits = u32::from(has(one)) | u32::from(has(two)) << 1;
                assert_eq!(anywhere.all(part), bits, "{part}");
            }
        }
    }
}
