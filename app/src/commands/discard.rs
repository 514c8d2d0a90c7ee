//! `archeflow discard`: give a run up. Nothing is deleted: its branch becomes a keep ref.

use archeflow_core::event::RunDiscarded;
use archeflow_core::model::{Reason, RunStatus};
use archeflow_core::rules::run_names::RunUse;
use archeflow_host::git::{Repo, workspace};

use crate::args::RunIdArgs;
use crate::commands::known::open_named;
use crate::commands::session::drive;
use crate::failure::Failure;
use crate::output::CommandOutput;

pub(crate) fn run(args: &RunIdArgs) -> Result<CommandOutput, Failure> {
    let driver = open_named(args.id.as_deref(), RunUse::Discard, &args.session)?;
    let id = driver.world.run_id.clone();
    let branch = driver.run.request.as_ref().map(|request| request.branch.as_str());
    // A review has no branch.
    let branch = branch.filter(|branch| !branch.is_empty()).map(|branch| format!("refs/heads/{branch}"));
    let branch = branch.as_deref();
    let (repo, keep) = (driver.world.repo.clone(), driver.world.keep_ref("discarded"));
    match &driver.run.outcome {
        Some(outcome) if outcome.status == RunStatus::Merged => {
            return Err(Failure::usage(format!("{id} was merged; there is nothing to discard"), ""));
        }
        Some(outcome) if outcome.reason == Reason::Discarded => {
            // Written down, but stopped before the branch was put away.
            return match retire(&repo, branch, &keep)? {
                true => Ok(CommandOutput::done()),
                false => Err(Failure::usage(format!("{id} was discarded already"), "")),
            };
        }
        Some(_) | None => {}
    }
    let has_branch = match branch {
        Some(branch) => {
            not_checked_out(&repo, branch)?;
            repo.resolve(branch).map_err(fault)?.is_some()
        }
        None => false,
    };
    let kept_as = if has_branch { vec![keep.clone()] } else { Vec::new() };
    let output = drive(
        driver,
        "discard",
        &args.session,
        false,
        Vec::new(),
        vec![RunDiscarded { kept_as, by: args.session.by() }.into()],
    )?;
    retire(&repo, branch, &keep)?;
    Ok(output)
}

pub(super) fn not_checked_out(repo: &Repo, branch: &str) -> Result<(), Failure> {
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

fn retire(repo: &Repo, branch: Option<&str>, keep: &str) -> Result<bool, Failure> {
    branch.map_or(Ok(false), |branch| workspace::retire(repo, branch, keep).map_err(fault))
}

fn fault(error: impl std::fmt::Display) -> Failure {
    Failure::new(30, "git_fault", error.to_string(), "")
}
