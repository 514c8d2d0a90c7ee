//! Taking a landing back because a person asks for it: build the revert on the target as it is now, test exactly that
//! tree, record the intent, move the branch. The run is merged before and, if it is refused, afterwards.

use crate::event::{Built, Conclusion, Refusal, RevertIntent, RevertMove, RevertStart};
use crate::model::{Oid, Reason, RunStatus};
use crate::run::{Merged, Run, Undo};

use super::land::{Judged, judged, listed, short, tests, what_fails};
use super::settle;
use crate::text::branch_name;

pub(crate) fn undo(run: &Run, undo: &Undo) -> Vec<Conclusion> {
    if !run.open.is_empty() {
        return vec![];
    }
    let Some(merged) = &run.landing.merged else {
        return settle::finish(run, RunStatus::Stopped, Reason::NoChange, "it has not landed".to_owned());
    };
    if let Some(commit) = &run.landing.reverted {
        return reverted(run, merged, commit);
    }
    let Some(built) = &undo.built else { return build(run, merged, 1) };
    let (old, commit, tree) = match built {
        Built::Candidate { old, commit, tree } => (old, commit, tree),
        Built::Conflict { paths } => {
            let why = format!("later commits changed the same lines in {}", listed(paths));
            return refused(run, merged, Reason::MergeConflict, &why);
        }
        Built::Nothing => {
            let why = format!("{} has none of its changes any more", branch(merged));
            return refused(run, merged, Reason::NoChange, &why);
        }
        Built::BaseGone { now } => {
            let why = format!("{} no longer contains it (it is at {})", branch(merged), short(now));
            return refused(run, merged, Reason::BaseMoved, &why);
        }
        Built::NotSigned { what } => {
            let why = format!("the commit could not be signed: {what}");
            return refused(run, merged, Reason::SigningFailed, &why);
        }
        Built::Fault { what } => return refused(run, merged, Reason::GitFault, what),
    };
    if let Some((why, detail)) = &undo.refused {
        return match why {
            Refusal::Moved if undo.attempts < run.policy().retries.moved_base => {
                build(run, merged, undo.attempts + 1)
            }
            Refusal::Moved => refused(run, merged, Reason::BaseMoved, detail),
            Refusal::Dirty => refused(run, merged, Reason::DirtyTree, detail),
            Refusal::Busy => refused(run, merged, Reason::TargetBusy, detail),
            Refusal::Fault => refused(run, merged, Reason::GitFault, detail),
        };
    }
    if let Some(command) = &run.policy().test_command {
        let Some(tested) = &undo.tested else { return vec![tests(run, commit, tree, command, false)] };
        match judged(run, tested) {
            Judged::Pass | Judged::AsBefore => {}
            Judged::Broken => {
                let why = format!("the test command can't be run ({command}): {}", what_fails(tested));
                return refused(run, merged, Reason::TestCommandBroken, &why);
            }
            Judged::Fail(_) | Judged::Unknown => {
                let why = format!("the tests fail without it ({command}): {}", what_fails(tested));
                return refused(run, merged, Reason::TestsFailed, &why);
            }
        }
    }
    let tested = RevertMove { old: old.clone(), new: commit.clone(), tree: tree.clone() };
    let (target, landed) = (merged.target.clone(), merged.commit.clone());
    vec![RevertIntent { target, landed, old: before(run, merged), tested: Some(tested) }.into()]
}

fn build(run: &Run, merged: &Merged, attempt: u32) -> Vec<Conclusion> {
    let (target, landed) = (merged.target.clone(), merged.commit.clone());
    vec![RevertStart { target, landed, old: before(run, merged), attempt }.into()]
}

/// The commit below the run's own part of the landing. Runs that came along in the same step stay.
fn before(run: &Run, merged: &Merged) -> Oid {
    run.landing.chain.last().map_or_else(|| merged.old.clone(), |link| link.commit.clone())
}

fn reverted(run: &Run, merged: &Merged, commit: &Oid) -> Vec<Conclusion> {
    let detail = format!("{}, reverted by {}", landed_as(merged), short(commit));
    settle::finish(run, RunStatus::Merged, Reason::Reverted, detail)
}

fn refused(run: &Run, merged: &Merged, reason: Reason, why: &str) -> Vec<Conclusion> {
    let detail = format!("{} and not reverted: {why}", landed_as(merged));
    settle::still_merged(run, reason, detail)
}

fn landed_as(merged: &Merged) -> String {
    format!("landed on {} as {}", branch(merged), short(&merged.commit))
}

fn branch(merged: &Merged) -> &str {
    branch_name(&merged.target)
}
