//! The Creator's shadow (AF-131): framing what nobody asked for.
//!
//! **Immune:** abstractions and packages that the task itself asks for; what the plan names only to reject it, among
//! its alternatives or risks, or with a "no" in front; what it leaves for later; a plan with many files, for
//! size is the task's business.

use super::{Facts, at_most, sighting};
use crate::model::{OverArchitect, Sighting, counted};

pub(super) const CORRECTION: &str = "Plan for the present order of magnitude only. Remove every abstraction, package \
    and option that exists for a requirement nobody has stated, and every item that the task does not need. Then \
    answer again with the whole proposal.";

/// A task is short; what stands behind this many bytes does not change what it is about.
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
