//! The Skeptic's shadow (AF-134, CL-17): doubt that costs nothing and stops everything.
//!
//! **Immune:** many challenges, as long as half of them offer an alternative, under `Fix` or in their own words; the
//! same flaw at several files, which is one finding for each; a place outside of the plan whose line is quoted or
//! which cites a planned file too, since the fact against a plan is often elsewhere.

use super::{About, Facts, Places, at_most, count, number, review, sighting};
use crate::model::{Finding, Review, Severity, Sighting, counted};
use crate::settings::settings;

/// What is known of it.
pub(super) const ABOUT: About = About {
    title: "paralytic",
    archetype: "skeptic",
    in_review: true,
    correction: "Rank your challenges by what happens if you are right. Keep the three gravest, each \
    with an alternative the author could take up now, and delete the rest, above all what you have said before in other \
    words and what lies outside of the proposal. Then answer again with the whole review.",
};

settings! {
    /// AF-134 and CL-17.
    #[derive(Copy)]
    pub struct Paralytic at "shadows.paralytic." in (run.shadows.paralytic) {
        challenges: Option<u32> = Some(7), "challenges", Limit(0, 1_000), GuardedAbove, "Skeptic: more than N challenges, and too few alternatives.";
        alternatives: Option<u32> = Some(50), "alternatives", Limit(1, 100), GuardedBelow, "Skeptic: alternatives for less than N percent of the challenges.";
        any: bool = false, "any", Switch, Inert, "Skeptic: either of these two is enough; otherwise it takes both.";
        alternatives_floor: u32 = 3, "alternatives_floor", Whole(1, 1_000), GuardedAbove, "Skeptic: least challenges for this percentage, when one is enough.";
        reworded: Option<u32> = Some(2), "reworded", Limit(1, 1_000), GuardedAbove, "Skeptic: one concern repeated N times in other words.";
        out_of_scope: Option<u32> = Some(3), "out_of_scope", Limit(0, 1_000), GuardedAbove, "Skeptic: more than N findings outside of the proposal.";
    }
}

pub(super) fn check(facts: &Facts<'_>, policy: &Paralytic) -> Vec<Sighting> {
    let Some(review) = review(facts) else { return Vec::new() };
    let mut seen = challenges(facts, review, policy);
    seen.extend(reworded(facts, policy));
    seen.extend(out_of_scope(facts, review, policy));
    seen
}

fn challenges(facts: &Facts<'_>, review: &Review, policy: &Paralytic) -> Vec<Sighting> {
    let (found, with) = (number(review.findings.len()), facts.answer.traits.remedied);
    let percent = with * 100 / found.max(1);
    let many = policy.challenges.filter(|limit| found > *limit);
    let bare =
        policy.alternatives.filter(|limit| u64::from(with) * 100 < u64::from(*limit) * u64::from(found));
    if !policy.any {
        let both = many.zip(bare).map(|(many, bare)| {
            let detail = format!(
                "{}, more than {many}, and alternatives for {with} of them, fewer than {bare} %",
                counted(found, "challenge")
            );
            sighting("challenges", found, many, detail)
        });
        return both.into_iter().collect();
    }
    let many = many.map(|limit| {
        sighting("challenges", found, limit, format!("{}, {}", counted(found, "challenge"), at_most(limit)))
    });
    let bare = bare.filter(|_| found >= policy.alternatives_floor).map(|limit| {
        let detail = format!("alternatives for {with} of {found} challenges, fewer than {limit} %");
        sighting("alternatives", percent, limit, detail)
    });
    many.into_iter().chain(bare).collect()
}

fn reworded(facts: &Facts<'_>, policy: &Paralytic) -> Option<Sighting> {
    let (limit, again) = (policy.reworded?, facts.answer.traits.reworded);
    (again >= limit.max(1)).then(|| {
        let detail = format!("one concern is said {} in other words", counted(again, "more time"));
        sighting("reworded", again, limit, detail)
    })
}

fn out_of_scope(facts: &Facts<'_>, review: &Review, policy: &Paralytic) -> Option<Sighting> {
    let limit = policy.out_of_scope?;
    let mut scope = facts.change.map(Places::of_change).unwrap_or_default();
    scope.plan(facts.proposal?);
    if scope.is_empty() {
        return None;
    }
    let strays = |finding: &&Finding| {
        let placed = !finding.file.is_empty() && finding.severity > Severity::Info;
        placed && finding.evidence.is_empty() && !scope.touch(finding)
    };
    let outside = count(&review.findings, strays);
    (outside > limit).then(|| {
        let detail = format!(
            "{} in files the proposal does not touch, {}",
            counted(outside, "finding"),
            at_most(limit)
        );
        sighting("out_of_scope", outside, limit, detail)
    })
}
