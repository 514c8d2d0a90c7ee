//! Finds many phrases in one pass over a text, whatever their case. Answers can be long and phrases are many, so a
//! text must not be read once for each.

use aho_corasick::AhoCorasick;

/// Phrases in lower case, each with the bit it sets. A phrase begins with a letter and matches where a word begins.
pub(crate) struct Phrases {
    search: AhoCorasick,
    /// Of each phrase.
    bits: Vec<u32>,
}

impl Phrases {
    pub(crate) fn new(groups: &[(u32, &[&'static str])]) -> Phrases {
        let of_group = |(bit, group): &(u32, &[&'static str])| {
            let bit = *bit;
            group.iter().map(move |phrase| (*phrase, bit)).collect::<Vec<_>>()
        };
        let mut all: Vec<(&'static str, u32)> = groups.iter().flat_map(of_group).collect();
        debug_assert!(all.iter().all(|(phrase, _)| phrase.starts_with(|c: char| c.is_ascii_alphabetic())));
        all.sort_unstable();
        let search = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(all.iter().map(|(phrase, _)| phrase))
            .expect("some hundred short phrases are far below what an automaton can hold");
        Phrases { search, bits: all.into_iter().map(|(_, bit)| bit).collect() }
    }

    /// Calls back with every match, in the order of the text: where it begins, and its bit.
    pub(crate) fn each(&self, text: &str, mut found: impl FnMut(usize, u32)) {
        let bytes = text.as_bytes();
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80;
        let inside = |at: usize| at.checked_sub(1).and_then(|at| bytes.get(at)).is_some_and(is_word);
        let matches = self.search.find_overlapping_iter(text).map(|it| (it.start(), it.pattern().as_usize()));
        let mut matches: Vec<(usize, usize)> = matches.filter(|(at, _)| !inside(*at)).collect();
        matches.sort_unstable();
        for (at, phrase) in matches {
            found(at, self.bits.get(phrase).copied().unwrap_or_default());
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
