//! Whether a goal is specific enough to begin with (PJ-01, PJ-40). Words are counted, not understood: the Planner asks
//! the rest.

use crate::model::LoopPolicy;

pub fn is_vague(goal: &str, policy: &LoopPolicy) -> bool {
    let enough = usize::try_from(policy.goal_words).unwrap_or(usize::MAX);
    let words = goal.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let telling = words.map(str::to_lowercase).filter(|word| !policy.empty_words.contains(word));
    telling.take(enough).count() < enough
}
