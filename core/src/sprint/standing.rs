//! What the end of a run means for its item.

use super::event::RunEnd;
use super::fold::ItemState;
use super::queue::ItemStatus;
use crate::model::{Reason, RunStatus, Share};

/// What follows from the result of a run, or of a landing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Follows {
    /// It is approved and waits to be landed.
    Land,
    /// The target changed the same files: run again, on the current target.
    Rerun,
    Settle(ItemStatus, String),
}

/// BX-22's map of statuses. `reruns` is how many are left.
pub fn after(end: &RunEnd, landing: bool, reruns: u32) -> Follows {
    if end.stopped {
        let note = format!("stopped with the sprint; the next one resumes {}", end.run_id);
        return Follows::Settle(ItemStatus::Pending, note);
    }
    let Some(status) = end.status else {
        // Its repository could not be used, which says nothing about the task.
        if end.reason == Some(Reason::GitFault) {
            return Follows::Settle(ItemStatus::Pending, end.detail.clone());
        }
        return Follows::Settle(ItemStatus::Failed, end.detail.clone());
    };
    match (status, end.reason) {
        (RunStatus::Merged, _) => Follows::Settle(ItemStatus::Completed, String::new()),
        (RunStatus::AwaitingMerge, Some(Reason::Approved)) if !landing => Follows::Land,
        (_, Some(Reason::MergeConflict | Reason::BaseMoved)) if reruns > 0 => Follows::Rerun,
        (
            _,
            Some(Reason::ProviderBusy | Reason::NotSignedIn | Reason::NeedsContext | Reason::LowConfidence),
        ) => Follows::Settle(ItemStatus::Pending, summary(end)),
        // A run that waits for a person has not failed (D14).
        (RunStatus::AwaitingAnswer, _) => Follows::Settle(ItemStatus::Pending, summary(end)),
        (
            RunStatus::AwaitingMerge
            | RunStatus::Stopped
            | RunStatus::Failed
            | RunStatus::WiggumBreak
            | RunStatus::DryRun
            | RunStatus::Reviewed,
            _,
        ) => Follows::Settle(ItemStatus::Failed, summary(end)),
    }
}

/// The run to resume for an item that is given back.
pub fn goes_on(known: &ItemState) -> Option<String> {
    match &known.end {
        Some(end) => {
            let is_repositorys = end.status.is_none() && end.reason == Some(Reason::GitFault);
            (end.stopped || end.busy.is_some() || is_repositorys).then(|| end.run_id.clone())
        }
        None => known.left.as_ref().map(|left| left.run_id.clone()),
    }
}

fn summary(end: &RunEnd) -> String {
    let (status, reason) = (end.status.map_or("", RunStatus::name), end.reason.map_or("", Reason::name));
    format!("{status} ({reason}): {}; archeflow show {}", end.detail, end.run_id)
}

/// How well a task went: all of it for one cycle, half for two, nothing for a failure.
pub fn quality(status: ItemStatus, end: Option<&RunEnd>) -> Share {
    match (status, end) {
        (ItemStatus::Completed, Some(end)) => Share::of(1, u64::from(end.cycles.max(1))),
        (ItemStatus::Completed, None) => Share::ONE,
        (_, _) => Share(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Money;

    #[test]
    fn fl_76_a_repository_that_cannot_be_used_is_no_failure_of_the_task() {
        let end = RunEnd {
            run_id: "s.a.1".to_owned(),
            status: None,
            reason: None,
            detail: "fatal: no route to host".to_owned(),
            cycles: 0,
            cost_usd: Money::ZERO,
            took_ms: 0,
            stopped: false,
            landed_as: None,
            accounts: Vec::new(),
            busy: None,
        };
        for landing in [false, true] {
            let failed = Follows::Settle(ItemStatus::Failed, end.detail.clone());
            assert_eq!(after(&end, landing, 1), failed);
            let unusable = RunEnd { reason: Some(Reason::GitFault), ..end.clone() };
            assert_eq!(
                after(&unusable, landing, 1),
                Follows::Settle(ItemStatus::Pending, end.detail.clone())
            );
            // A run that came to its end with a fault of git failed, as before.
            let ended = RunEnd { status: Some(RunStatus::Failed), ..unusable };
            assert!(matches!(after(&ended, landing, 1), Follows::Settle(ItemStatus::Failed, _)));
        }
    }
}
