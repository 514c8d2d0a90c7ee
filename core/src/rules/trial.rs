//! What running a reviewer's reproduction proves (D-05). The table is in `docs/rules/trials.md`.

use crate::event::{EvidenceDone, Ran};
use crate::model::ReproductionResult;

/// The exit codes of a shell that found no command, or one it may not run.
const NOT_RUN: [i32; 2] = [126, 127];

/// And those of a command that was killed: by the system for want of memory, or by a person. A crash of its own, as
/// 134 or 139, is a failure like others.
const ENDED: [i32; 2] = [128 + 9, 128 + 15];

/// The verdict and a sentence for people.
pub fn judge(regression: bool, done: &EvidenceDone) -> (ReproductionResult, String) {
    match (outcome(&done.change), done.base.as_ref().map(outcome)) {
        (Run::Neither, _) => {
            (ReproductionResult::NotReproduced, format!("it could not be run: {}", why(&done.change)))
        }
        (Run::Passed, _) => (ReproductionResult::Refuted, "it passes on the change".to_owned()),
        (Run::Failed(code), _) if !regression => {
            (ReproductionResult::Confirmed, format!("it fails on the change (exit {code})"))
        }
        (Run::Failed(code), Some(Run::Passed)) => (
            ReproductionResult::Confirmed,
            format!("it fails on the change (exit {code}) and passes on the base"),
        ),
        (Run::Failed(_), Some(Run::Failed(_))) => {
            (ReproductionResult::NotReproduced, "it fails without the change as well".to_owned())
        }
        (Run::Failed(_), Some(Run::Neither)) => {
            let why = done.base.as_ref().map(why).unwrap_or_default();
            (
                ReproductionResult::NotReproduced,
                format!("it fails on the change, but could not be run on the base: {why}"),
            )
        }
        (Run::Failed(_), None) => (
            ReproductionResult::NotReproduced,
            "it fails on the change, but was not run on the base".to_owned(),
        ),
    }
}

enum Run {
    Passed,
    Failed(i32),
    Neither,
}

fn outcome(ran: &Ran) -> Run {
    match ran.exit {
        Some(0) => Run::Passed,
        Some(code) if !NOT_RUN.contains(&code) && !ENDED.contains(&code) => Run::Failed(code),
        Some(_) | None => Run::Neither,
    }
}

fn why(ran: &Ran) -> String {
    match (ran.exit, ran.why.as_str()) {
        (Some(code), _) if ENDED.contains(&code) => format!("exit {code}, it was ended from outside"),
        (Some(code), _) => format!("exit {code}, no such command"),
        (None, "") => "it did not end by itself".to_owned(),
        (None, why) => why.to_owned(),
    }
}
