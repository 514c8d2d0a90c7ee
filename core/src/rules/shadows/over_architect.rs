//! The Creator's shadow (AF-131): designing what was not asked for.
//!
//! **Immune:** abstractions and packages that the task itself asks for; what the plan names only to reject it, among
//! its alternatives or risks, or with a "no" in front; what it leaves for later; a plan with many files, for
//! size is the task's business.

use super::{About, Facts, at_most, sighting};
use crate::model::{Sighting, counted};
use crate::settings::settings;

/// What is known of it.
pub(super) const ABOUT: About = About {
    title: "over-architect",
    archetype: "creator",
    in_review: false,
    correction: "Plan for the present order of magnitude only. Remove every abstraction, package \
    and option that exists for a requirement nobody has stated, and every item that the task does not need. Then \
    answer again with the whole proposal.",
};

settings! {
    /// AF-131.
    #[derive(Copy)]
    pub struct OverArchitect at "shadows.over_architect." in (run.shadows.over_architect) {
        abstractions: Option<u32> = Some(2), "abstractions", Limit(0, 1_000), GuardedAbove, "Creator: more than N new abstractions.";
        future_proof: Option<u32> = Some(1), "future_proof", Limit(1, 1_000), GuardedAbove, "Creator: at least N reasons about future needs.";
        scope: Option<u32> = Some(50), "scope", Limit(0, 1_000), GuardedAbove, "Creator: work beyond the task of more than N percent of the work for it.";
        packages: Option<u32> = Some(1), "packages", Limit(0, 1_000), GuardedAbove, "Creator: more than N new packages.";
    }
}

/// A task is short; text after this many bytes does not change what it is about.
const TASK_BYTES: usize = 4000;

/// Words of a task that asks for structure.
const STRUCTURE: [&str; 18] = [
    "abstraction",
    "abstract",
    "architecture",
    "redesign",
    "framework",
    "plugin",
    "plug-in",
    "extensib",
    "refactor",
    "restructure",
    "rework",
    "interface",
    "trait",
    "layer",
    "registry",
    "factory",
    "adapter",
    "pluggable",
];

/// Words of a task that asks for packages.
const PACKAGES: [&str; 10] =
    ["package", "dependenc", "crate", "librar", "sdk", "workspace", "monorepo", "split", "migrate", "module"];

const FUTURE: [&str; 5] = ["future", "future-proof", "extensib", "pluggable", "plugin"];

pub(super) fn check(facts: &Facts<'_>, policy: &OverArchitect) -> Vec<Sighting> {
    [abstractions(facts, policy), scope(facts, policy), packages(facts, policy), future_proof(facts, policy)]
        .into_iter()
        .flatten()
        .collect()
}

fn abstractions(facts: &Facts<'_>, policy: &OverArchitect) -> Option<Sighting> {
    let (limit, new) = (policy.abstractions?, facts.answer.traits.abstractions);
    (new > limit && !asks_for(facts.task, &STRUCTURE)).then(|| {
        let detail = format!("{} for one task, {}", counted(new, "new abstraction"), at_most(limit));
        sighting("abstractions", new, limit, detail)
    })
}

fn future_proof(facts: &Facts<'_>, policy: &OverArchitect) -> Option<Sighting> {
    let (limit, reasons) = (policy.future_proof?, facts.answer.traits.future_proof);
    (reasons >= limit && !asks_for(facts.task, &FUTURE)).then(|| {
        let detail = format!(
            "{} out of the future (\"future-proof\"), where the task lies in the present",
            counted(reasons, "reason")
        );
        sighting("future_proof", reasons, limit, detail)
    })
}

/// Compared crosswise: work beyond the task against the work for it.
fn scope(facts: &Facts<'_>, policy: &OverArchitect) -> Option<Sighting> {
    let (limit, traits) = (policy.scope?, &facts.answer.traits);
    let beyond = u64::from(traits.items_beyond) * 100;
    let needed = u64::from(traits.items.saturating_sub(traits.items_beyond));
    (beyond > u64::from(limit) * needed).then(|| {
        let percent = u32::try_from(beyond / needed.max(1)).unwrap_or(u32::MAX);
        let detail = format!(
            "{} of {} items beyond the task by the plan's own account: {percent} % on top, where {limit} % are fine",
            traits.items_beyond, traits.items
        );
        sighting("scope", percent, limit, detail)
    })
}

fn packages(facts: &Facts<'_>, policy: &OverArchitect) -> Option<Sighting> {
    let (limit, new) = (policy.packages?, facts.answer.traits.packages);
    (new > limit && !asks_for(facts.task, &PACKAGES)).then(|| {
        let detail = format!("{}, {}", counted(new, "new package"), at_most(limit));
        sighting("packages", new, limit, detail)
    })
}

/// Whether the task holds a word that begins so.
fn asks_for(task: &str, stems: &[&str]) -> bool {
    super::words_of(task, TASK_BYTES).any(|word| stems.iter().any(|stem| super::begins(word, stem)))
}
