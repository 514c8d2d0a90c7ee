//! What an earlier run had resolved and is back (AF-121).

use super::Shared;
use crate::event::Tracked;
use crate::model::{Memory, Resolved};
use crate::rules::bag::{Bag, BagWords};

/// A finding, by its id, and the run that had resolved it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Regression {
    pub id: String,
    pub run_id: String,
}

/// The same file, the same category, and at least N of the same words. Lines move and reviewers differ from run
/// to run, so neither counts. `past` is oldest first; the latest run that resolved it is named.
pub fn regressions(open: &[Tracked], past: &[Resolved], policy: &Memory) -> Vec<Regression> {
    let past: Vec<(&Resolved, BagWords)> =
        past.iter().map(|old| (old, BagWords::of(&old.description))).collect();
    let same = |found: &Tracked, (old, words): &&(&Resolved, BagWords)| {
        found.file == old.file
            && found.category == old.category
            && Bag::of(&found.description).may_share(words, policy.match_percent)
            && Shared::between(&found.description, &old.description).reaches(policy.match_percent)
    };
    let back = |found: &Tracked| {
        let (old, _) = past.iter().rev().find(|old| same(found, old))?;
        Some(Regression { id: found.id.clone(), run_id: old.run_id.clone() })
    };
    open.iter().filter_map(back).collect()
}

/// Writes it beside the findings themselves.
pub fn mark(open: &mut [Tracked], past: &[Resolved], policy: &Memory) {
    for Regression { id, run_id } in regressions(open, past, policy) {
        if let Some(found) = open.iter_mut().find(|found| found.id == id) {
            found.regression_of = Some(run_id);
        }
    }
}
