//! Whether a goal says enough to begin with (PJ-01, PJ-40). Words are counted, not understood: the Planner asks the rest.

/// Words that say nothing about what is wanted.
const EMPTY: [&str; 30] = [
    "a",
    "an",
    "and",
    "better",
    "code",
    "do",
    "everything",
    "fix",
    "good",
    "improve",
    "it",
    "make",
    "of",
    "on",
    "please",
    "project",
    "some",
    "something",
    "stuff",
    "that",
    "the",
    "them",
    "thing",
    "things",
    "this",
    "to",
    "up",
    "with",
    "work",
    "works",
];

/// At least this many words that say something.
const ENOUGH: usize = 2;

pub fn is_vague(goal: &str) -> bool {
    let words = goal.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let telling = words.map(str::to_lowercase).filter(|word| !EMPTY.contains(&word.as_str()));
    telling.take(ENOUGH).count() < ENOUGH
}
