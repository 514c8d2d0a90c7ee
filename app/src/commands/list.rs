//! `archeflow list` and `archeflow status`.

use std::process::ExitCode;

use archeflow_host::store::{index, journal::Journal};
use archeflow_host::{log, start};

use crate::args::{Listing, StatusArgs};
use crate::commands::{house, print_json};
use crate::faces::summary;
use crate::faces::text::{cut, pad, safe_line};
use crate::failure::Failure;

pub(crate) fn list(args: &Listing) -> Result<ExitCode, Failure> {
    let house = house(&args.place, None, false)?;
    let index = index::read(&house.places.events())?;
    if args.place.json {
        let runs: Vec<_> = index
            .runs
            .iter()
            .map(|run| serde_json::json!({"run_id": run.run_id, "status": run.status, "task": run.task, "ts": run.ts}))
            .collect();
        print_json(&serde_json::json!({ "runs": runs }));
        return Ok(ExitCode::SUCCESS);
    }
    if index.runs.is_empty() {
        out!("No runs in this repository yet. Start one: archeflow run \"<task>\" --agent <spec>");
        return Ok(ExitCode::SUCCESS);
    }
    let widest = index.runs.iter().map(|run| run.run_id.len()).max().unwrap_or(0);
    out!("{}  {}  {}  TASK", pad("RUN", widest), pad("STATUS", 15), pad("LAST", 20));
    for run in &index.runs {
        let task = cut(&safe_line(&run.task), 60);
        out!(
            "{}  {}  {}  {task}",
            pad(&safe_line(&run.run_id), widest),
            pad(&safe_line(&run.status), 15),
            pad(&safe_line(&run.ts), 20)
        );
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn status(args: &StatusArgs) -> Result<ExitCode, Failure> {
    let house = house(&args.place, None, false)?;
    let id = match &args.id {
        Some(id) => id.clone(),
        None => match index::read(&house.places.events())?.runs.last() {
            Some(run) => run.run_id.clone(),
            None if args.place.json => {
                print_json(&serde_json::json!({ "run_id": null, "status": "none" }));
                return Ok(ExitCode::SUCCESS);
            }
            None => {
                out!("No runs in this repository yet.");
                return Ok(ExitCode::SUCCESS);
            }
        },
    };
    let run = fold(&house, &id)?;
    if args.place.json {
        let code = run.outcome.as_ref().map_or(0, archeflow_core::words::Outcome::exit_code);
        print_json(&summary::json(house.places.root(), &id, &run, run.outcome.as_ref(), code, None));
        return Ok(ExitCode::SUCCESS);
    }
    let (title, second) = archeflow_core::view::header(&run);
    out!("{}", safe_line(&title));
    out!("Run ID: {id} | {second}");
    match (&run.outcome, run.cycle()) {
        (Some(outcome), _) => {
            out!("{} ({}): {}", outcome.status.name(), outcome.reason.name(), safe_line(&outcome.detail));
            for (command, meaning) in archeflow_core::view::next_steps(&id, &run, outcome) {
                out!("  {}  {meaning}", safe_line(&command));
            }
        }
        (None, Some(cycle)) => {
            out!("not ended: cycle {} of {}, {}", cycle.number, run.max_cycles, cycle.phase.name());
            for (_, start) in run.open_agents() {
                out!("  {}", archeflow_core::view::doing(start));
            }
            out!("  if nothing drives it any more: archeflow resume {id}");
        }
        (None, None) => out!("not begun; go on: archeflow resume {id}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The state of a run, read without disturbing whoever drives it.
pub(crate) fn fold(house: &start::House, id: &str) -> Result<archeflow_core::run::Run, Failure> {
    Ok(log::fold(&text(house, id)?)?)
}

pub(crate) fn text(house: &start::House, id: &str) -> Result<archeflow_host::store::journal::Text, Failure> {
    if !archeflow_host::store::names::valid_name(id) {
        return Err(start::Error::BadId { id: id.to_owned() }.into());
    }
    let path = house.places.events().join(format!("{id}.jsonl"));
    if !path.exists() {
        return Err(start::Error::NoRun { id: id.to_owned() }.into());
    }
    Ok(Journal::read(&path)?)
}
