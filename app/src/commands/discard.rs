//! `archeflow discard`: give a run up. Nothing is deleted: its branch becomes a keep ref.

use archeflow_core::event::RunDiscarded;
use archeflow_core::model::{Reason, RunStatus};
use archeflow_host::git::{Repo, workspace};

use crate::args::RunIdArgs;
use crate::commands::known::open;
use crate::commands::session::drive;
use crate::failure::Failure;
use crate::output::CommandOutput;

pub(crate) fn run(args: &RunIdArgs) -> Result<CommandOutput, Failure> {
    let driver = open(&args.id, &args.session)?;
    let branch = driver.run.request.as_ref().map(|request| request.branch.clone()).unwrap_or_default();
    let branch = format!("refs/heads/{branch}");
    let (repo, keep) = (driver.world.repo.clone(), driver.world.keep_ref("discarded"));
    match &driver.run.outcome {
        Some(outcome) if outcome.status == RunStatus::Merged => {
            return Err(Failure::usage(format!("{} was merged; there is nothing to discard", args.id), ""));
        }
        Some(outcome) if outcome.reason == Reason::Discarded => {
            // Written down, but stopped before the branch was put away.
            return match retire(&repo, &branch, &keep)? {
                true => Ok(CommandOutput::done()),
                false => Err(Failure::usage(format!("{} was discarded already", args.id), "")),
            };
        }
        Some(_) | None => {}
    }
    not_checked_out(&repo, &branch)?;
    let has_branch = repo.resolve(&branch).map_err(fault)?.is_some();
    let kept_as = if has_branch { vec![keep.clone()] } else { Vec::new() };
    let output =
        drive(driver, "discard", &args.session, false, Vec::new(), vec![RunDiscarded { kept_as }.into()])?;
    retire(&repo, &branch, &keep)?;
    Ok(output)
}

fn not_checked_out(repo: &Repo, branch: &str) -> Result<(), Failure> {
    let checkouts = repo.checkouts().map_err(fault)?;
    match checkouts.iter().find(|checkout| checkout.branch.as_deref() == Some(branch)) {
        None => Ok(()),
        Some(checkout) => Err(Failure::new(
            10,
            "checked_out",
            format!("the run's branch is checked out in {}", checkout.tree.display()),
            "Check another branch out first.",
        )),
    }
}

fn retire(repo: &Repo, branch: &str, keep: &str) -> Result<bool, Failure> {
    workspace::retire(repo, branch, keep).map_err(fault)
}

fn fault(error: impl std::fmt::Display) -> Failure {
    Failure::new(30, "git_fault", error.to_string(), "")
}
