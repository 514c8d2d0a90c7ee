//! Whether a goal is specific enough to begin with (PJ-01, PJ-40). Words are counted, not understood: the Planner asks
//! the rest.

use crate::model::LoopPolicy;

pub fn is_vague(goal: &str, policy: &LoopPolicy) -> bool {
    let enough = usize::try_from(policy.goal_words).unwrap_or(usize::MAX);
    let words = goal.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let telling = words.map(str::to_lowercase).filter(|word| !policy.empty_words.contains(word));
    telling.map(|word| words_in(&word)).fold(0, usize::saturating_add) < enough
}

/// Scripts without spaces write a whole sentence as one run of letters; a word of theirs has about two (L-10).
fn words_in(run: &str) -> usize {
    let letters = run.chars().filter(|c| is_unspaced(*c)).count();
    if letters == 0 { 1 } else { (letters / 2).max(1) }
}

/// Chinese characters, Japanese syllables, and the scripts of Thai, Lao, Burmese and Khmer.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}'
        | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}'
        | '\u{3040}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3134f}')
}
