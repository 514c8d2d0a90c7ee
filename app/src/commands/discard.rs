//! `archeflow discard`: give a run up. Nothing is deleted: its branch becomes a keep ref.

use std::process::ExitCode;

use archeflow_core::event::RunDiscarded;
use archeflow_core::words::{Reason, RunStatus};
use archeflow_host::git::workspace;

use crate::args::Known;
use crate::commands::known::open;
use crate::commands::session::drive;
use crate::failure::Failure;

pub(crate) fn run(args: &Known) -> Result<ExitCode, Failure> {
    let driver = open(&args.id, &args.session)?;
    match &driver.run.outcome {
        Some(outcome) if outcome.status == RunStatus::Merged => {
            return Err(Failure::usage(format!("{} was merged; there is nothing to discard", args.id), ""));
        }
        Some(outcome) if outcome.reason == Reason::Discarded => {
            return Err(Failure::usage(format!("{} was discarded already", args.id), ""));
        }
        Some(_) | None => {}
    }
    let branch = driver.run.request.as_ref().map(|request| request.branch.clone()).unwrap_or_default();
    let keep = driver.world.keep_ref("discarded");
    let kept_as = match workspace::retire(&driver.world.repo, &format!("refs/heads/{branch}"), &keep) {
        Ok(true) => vec![keep],
        Ok(false) => Vec::new(),
        Err(error @ workspace::Error::CheckedOut { .. }) => {
            return Err(Failure::new(
                10,
                "checked_out",
                error.to_string(),
                "Check another branch out first.",
            ));
        }
        Err(error) => return Err(Failure::new(30, "git_fault", error.to_string(), "")),
    };
    drive(driver, "discard", &args.session, false, Vec::new(), vec![RunDiscarded { kept_as }.into()])
}
