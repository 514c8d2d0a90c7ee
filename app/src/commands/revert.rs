//! `archeflow revert`: take a landing back with a commit that is tested and landed like a merge.

use archeflow_core::event::RevertRequested;
use archeflow_core::run::Merged;
use archeflow_host::drive::Driver;
use archeflow_host::git::ObjectId;
use archeflow_host::git::change::quote_path;
use archeflow_host::git::land::{self, RevertPreview};
use serde_json::json;

use crate::args::RevertArgs;
use crate::commands::known::{go_on, open};
use crate::failure::Failure;
use crate::output::CommandOutput;
use archeflow_core::text::branch_name;

pub(crate) fn run(args: &RevertArgs) -> Result<CommandOutput, Failure> {
    let driver = open(&args.id, &args.session)?;
    // Begun before and not ended: it is completed.
    if driver.run.undo.is_some() && !args.dry_run {
        return go_on(driver, "revert", &args.session, Vec::new());
    }
    let merged = landed(&driver, &args.id)?;
    if args.dry_run {
        return preview(&driver, &merged, args);
    }
    go_on(driver, "revert", &args.session, vec![RevertRequested {}.into()])
}

/// The landing, if there is one to take back.
fn landed(driver: &Driver, id: &str) -> Result<Merged, Failure> {
    let run = &driver.run;
    let Some(merged) = &run.landing.merged else {
        let hint = format!("See what it waits for: archeflow status {id}");
        return Err(Failure::usage(format!("{id} has not landed; there is nothing to revert"), hint));
    };
    if let Some(commit) = &run.landing.reverted {
        let hint = format!("To bring the change back: git revert {commit}");
        return Err(Failure::usage(format!("{id} was reverted already, by {commit}"), hint));
    }
    if run.outcome.is_none() && run.undo.is_none() {
        let hint = format!("Let it finish first: archeflow resume {id}");
        return Err(Failure::usage(format!("{id} is not finished"), hint));
    }
    Ok(merged.clone())
}

fn preview(driver: &Driver, merged: &Merged, args: &RevertArgs) -> Result<CommandOutput, Failure> {
    let repo = &driver.world.repo;
    let oid = |name: &str| ObjectId::parse(name.as_bytes()).map_err(fault);
    let before = driver.run.landing.chain.last().map_or(&merged.old, |link| &link.commit);
    let branch = branch_name(&merged.target);
    let landed = oid(&merged.commit)?;
    let tip = repo.resolve(&merged.target).map_err(fault)?;
    let tip = match tip {
        Some(tip) if repo.is_ancestor(&landed, &tip).map_err(fault)? => tip,
        Some(_) | None => {
            let message = format!("{branch} does not contain {landed}, the landing of {}", args.id);
            return Err(Failure::new(12, "base_moved", message, ""));
        }
    };
    let found = land::preview_revert(repo, &tip, &landed, &oid(before)?).map_err(fault)?;
    let (changes, conflicts) = match &found {
        RevertPreview::Changes(changes) => (changes.as_slice(), [].as_slice()),
        RevertPreview::Conflict(paths) => ([].as_slice(), paths.as_slice()),
    };
    let code = if conflicts.is_empty() { 0 } else { 12 };
    let conflicts: Vec<String> = conflicts.iter().map(|path| quote_path(path)).collect();
    let changes: Vec<(char, String)> =
        changes.iter().map(|(status, path)| (*status, quote_path(path))).collect();
    if args.session.place.json {
        let changes: Vec<_> =
            changes.iter().map(|(status, path)| json!({ "status": status, "path": path })).collect();
        return Ok(CommandOutput::json(json!({
            "run_id": args.id, "status": "dry_run", "exit_code": code, "target": branch, "tip": tip.as_str(),
            "landed": landed.as_str(), "changes": changes, "conflicts": conflicts,
        }))
        .with_code(code));
    }
    let mut out = String::new();
    let short = |oid: &ObjectId| oid.as_str().get(..10).unwrap_or_default().to_owned();
    put!(out, "Revert of {} on {branch} at {}", short(&landed), short(&tip));
    for (status, path) in &changes {
        put!(out, "  {status} {path}");
    }
    for path in &conflicts {
        put!(out, "  conflict {path}");
    }
    let next = match (changes.is_empty(), conflicts.is_empty()) {
        (_, false) => format!("Later commits changed the same lines. Revert it by hand: git revert {landed}"),
        (true, true) => format!("{branch} has none of its changes any more."),
        (false, true) => format!("Nothing was changed. Do it: archeflow revert {}", args.id),
    };
    put!(out, "{next}");
    Ok(CommandOutput::text(out).with_code(code))
}

fn fault(error: impl std::fmt::Display) -> Failure {
    Failure::new(30, "git_fault", error.to_string(), "")
}
