//! AF-142 and CL-04, at two levels: files outside of the plan, which are only reported, since the Maker's own shadow has
//! that trigger too; and more than twice the files planned. What the plan need not list (tests, documents, lock files,
//! wiring) counts at neither.

use super::Situation;
use crate::model::{Change, Proposal, Sighting, counted};
use crate::rules::shadows::{Rogue, number, outside, sighting};
use crate::settings::settings;

pub(super) const REMEDY: &str = "Go back to the scope of the proposal: take the extra files out, or say that the proposal \
    has to be changed first.";

settings! {
    /// AF-142 and CL-04.
    #[derive(Copy)]
    pub struct ScopeCreep at "system_shadows.scope_creep." in (run.system_shadows.scope_creep) {
        outside_files: Option<u32> = Some(1), "outside_files", Limit(1, 1_000), GuardedAbove, "At least N files that the proposal does not list.";
        double: Option<u32> = Some(2), "double", Limit(1, 1_000), GuardedAbove, "More than N times as many files as the proposal lists.";
        escalates: ScopeLevel = ScopeLevel::Double, "escalates", Words(&["double", "outside_files"]), GuardedBelow, "Which of the two counts as a strike; the other is only reported.";
    }
}

/// The two triggers of scope creep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScopeLevel {
    OutsideFiles,
    Double,
}

impl ScopeLevel {
    /// The trigger that escalates.
    pub fn name(self) -> &'static str {
        match self {
            ScopeLevel::OutsideFiles => "outside_files",
            ScopeLevel::Double => "double",
        }
    }
}

/// Most severe first.
pub(super) fn check(now: &Situation<'_>, policy: &ScopeCreep) -> Vec<Sighting> {
    let (Some(change), Some(proposal)) = (now.change, now.proposal) else { return Vec::new() };
    let outside = outside(change, proposal, Rogue::default().wiring_lines);
    [double(change, proposal, &outside, policy), outside_files(&outside, policy)]
        .into_iter()
        .flatten()
        .collect()
}

fn double(change: &Change, proposal: &Proposal, outside: &[&str], policy: &ScopeCreep) -> Option<Sighting> {
    let factor = policy.double?;
    let listed = number(proposal.files.len());
    let changed = number(change.files.len());
    let limit = listed.saturating_mul(factor);
    // Only files outside the plan count: a listed folder may hold many files.
    let creeps = listed > 0 && changed > limit && !outside.is_empty();
    creeps.then(|| {
        let detail = format!(
            "{} changed and {listed} planned: more than {factor} times as many, {} of them outside of the plan",
            counted(changed, "file"),
            outside.len()
        );
        sighting("double", changed, limit, detail)
    })
}

fn outside_files(outside: &[&str], policy: &ScopeCreep) -> Option<Sighting> {
    let (limit, found) = (policy.outside_files?, number(outside.len()));
    (found >= limit.max(1)).then(|| {
        let first = outside.first().copied().unwrap_or_default();
        sighting(
            "outside_files",
            found,
            limit,
            format!("{} outside of the plan, such as {first}", counted(found, "file")),
        )
    })
}
