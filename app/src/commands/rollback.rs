//! `archeflow rollback`: take a run that has not landed back to the end of a phase, and go on from there.

use archeflow_core::event::RunRolledBack;
use archeflow_core::model::Phase;
use archeflow_core::rules::run_names::RunUse;
use archeflow_core::run::Run;
use archeflow_host::rollback;

use crate::args::RollbackArgs;
use crate::commands::discard::not_checked_out;
use crate::commands::known::{go_on, open_named};
use crate::failure::Failure;
use crate::output::CommandOutput;

pub(crate) fn run(args: &RollbackArgs) -> Result<CommandOutput, Failure> {
    let driver = open_named(Some(&args.id), RunUse::Continue, &args.session)?;
    let (world, run, id) = (&driver.world, &driver.run, &driver.world.run_id);
    if run.landing.merged.is_some() {
        let hint = format!("Take the landing back: archeflow revert {id}");
        return Err(Failure::usage(format!("{id} has landed"), hint));
    }
    if run.discarded {
        let hint = "Its work is under refs/archeflow/keep/.";
        return Err(Failure::usage(format!("{id} was discarded"), hint));
    }
    let (cycle, phase) = place(run, id, &args.to)?;
    let end = run.phase_ends.get(&(cycle, phase));
    if let Some(path) = end.and_then(|end| rollback::missing_artifact(world, end)) {
        let message = format!(
            "{} is not as it was at the end of {phase_name} in cycle {cycle}",
            path.display(),
            phase_name = phase.name()
        );
        return Err(Failure::usage(message, "Go back to another phase, or restore the file from a backup"));
    }
    let branch = run.request.as_ref().map(|request| format!("refs/heads/{}", request.branch));
    if let Some(branch) = branch {
        not_checked_out(&world.repo, &branch)?;
    }
    go_on(driver, "rollback", &args.session, vec![RunRolledBack { cycle, phase }.into()])
}

/// The end of a phase that there was.
fn place(run: &Run, id: &str, text: &str) -> Result<(u32, Phase), Failure> {
    let ways = run.ways_back();
    let words = |(cycle, phase): &(u32, Phase)| format!("{cycle}:{}", phase.name());
    let known = match ways.iter().map(words).collect::<Vec<_>>() {
        known if known.is_empty() => format!("{id} has not ended a phase that it could go back to"),
        known => format!("It can go back to: {}", known.join(", ")),
    };
    let read = text
        .split_once(':')
        .and_then(|(cycle, phase)| Some((cycle.trim().parse::<u32>().ok()?, Phase::parse(phase.trim())?)));
    let Some(wanted) = read else {
        return Err(Failure::usage(format!("--to '{text}' is no phase of a cycle, such as 1:do"), known));
    };
    if ways.contains(&wanted) {
        return Ok(wanted);
    }
    let (cycle, phase) = (wanted.0, wanted.1.name());
    Err(Failure::usage(format!("{id} never was at the end of {phase} in cycle {cycle}"), known))
}
