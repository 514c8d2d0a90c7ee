//! The Trickster's shadow (AF-135, CL-20): breaking for the joy of it.
//!
//! **Immune:** any number of edge cases in changed files that can be reproduced; a place in untouched code whose
//! finding also cites a changed file, because the failure shows where the change is called; advice (INFO); and, where the
//! log does not hold all changed files, every place.

use super::steps::shows_steps;
use super::{About, Facts, Places, at_most, count, number, review, sighting};
use crate::model::{Change, Review, Sighting, counted};
use crate::settings::settings;

/// What is known of it.
pub(super) const ABOUT: About = About {
    title: "false alarm",
    archetype: "trickster",
    in_review: true,
    correction: "Delete every finding outside of the diff and every scenario that can't happen to a real \
    user. Rank what is left by likelihood times impact, keep the three to five worst, and give each the steps that \
    lead to it. Then answer again with the whole review.",
};

settings! {
    /// AF-135 and CL-20.
    #[derive(Copy)]
    pub struct FalseAlarm at "shadows.false_alarm." in (run.shadows.false_alarm) {
        untouched: Option<u32> = Some(1), "untouched", Limit(1, 1_000), GuardedAbove, "Trickster: at least N findings in files that were not changed.";
        findings: Option<u32> = Some(10), "findings", Limit(0, 1_000), GuardedAbove, "Trickster: more than N findings for fewer than `few_files` changed files.";
        few_files: u32 = 5, "few_files", Whole(1, 10_000), GuardedBelow, "Trickster: see `findings`.";
        strict: bool = false, "strict", Switch, Inert, "Trickster: apply `findings` to any number of changed files.";
        impossible: Option<u32> = Some(1), "impossible", Limit(1, 1_000), GuardedAbove, "Trickster: at least N scenarios that can't happen.";
        without_steps: Option<u32> = Some(3), "without_steps", Limit(0, 1_000), GuardedAbove, "Trickster: more than N findings without steps to reproduce them.";
    }
}

pub(super) fn check(facts: &Facts<'_>, policy: &FalseAlarm) -> Vec<Sighting> {
    let Some(review) = review(facts) else { return Vec::new() };
    let changed = facts.change.map(Places::of_change).unwrap_or_default();
    [
        untouched(review, &changed, policy),
        findings(review, facts.change, &changed, policy),
        impossible(facts, policy),
        without_steps(facts, policy),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn untouched(review: &Review, changed: &Places, policy: &FalseAlarm) -> Option<Sighting> {
    let limit = policy.untouched?;
    let strays = super::strays(review, changed);
    let (outside, first) = (number(strays.len()), strays.first()?);
    (outside >= limit.max(1)).then(|| {
        let place = &first.location;
        let detail =
            format!("{} in files that were not changed, such as {place}", counted(outside, "finding"));
        sighting("untouched", outside, limit, detail)
    })
}

fn findings(
    review: &Review,
    change: Option<&Change>,
    changed: &Places,
    policy: &FalseAlarm,
) -> Option<Sighting> {
    let (limit, change) = (policy.findings?, change?);
    let files = number(change.files.len()).saturating_add(change.files_left_out);
    let few = policy.strict || files < policy.few_files;
    if !few || number(review.findings.len()) <= limit {
        return None;
    }
    let loose = count(&review.findings, |finding| !(changed.touch(finding) && shows_steps(finding)));
    (loose > limit).then(|| {
        let detail = format!(
            "{} for {}, not both in the change and reproducible, {}",
            counted(loose, "finding"),
            counted(files, "changed file"),
            at_most(limit)
        );
        sighting("findings", loose, limit, detail)
    })
}

fn impossible(facts: &Facts<'_>, policy: &FalseAlarm) -> Option<Sighting> {
    let (limit, found) = (policy.impossible?, facts.answer.traits.impossible);
    (found >= limit.max(1)).then(|| {
        let detail = format!("{} that can't happen to a real user", counted(found, "scenario"));
        sighting("impossible", found, limit, detail)
    })
}

fn without_steps(facts: &Facts<'_>, policy: &FalseAlarm) -> Option<Sighting> {
    let (limit, found) = (policy.without_steps?, facts.answer.traits.without_steps);
    (found > limit).then(|| {
        let detail = format!("{} without steps to reproduce, {}", counted(found, "finding"), at_most(limit));
        sighting("without_steps", found, limit, detail)
    })
}
