//! `archeflow fleet status`, `gc` and `budget`: what operators look at and clean up.

use std::time::Duration;

use archeflow_core::model::Money;
use archeflow_fleet::join::FleetRole;
use archeflow_fleet::ledger::{Ledger, LedgerState};
use archeflow_fleet::{cleaning, members, status as fleet_status};
use archeflow_host::clock;
use serde_json::json;

use crate::args::{FleetBudgetArgs, FleetGcArgs, FleetStatusArgs};
use crate::commands::fleet::connect;
use crate::commands::trust::only_from_outside;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe_line;

/// A worker is heard every ten seconds.
const LISTEN: Duration = Duration::from_secs(12);
const DAY_MS: u64 = 86_400_000;

pub(super) fn status(args: &FleetStatusArgs) -> Result<CommandOutput, Failure> {
    let (bus, join) = connect(&args.fleet, &[FleetRole::Person, FleetRole::Conductor])?;
    // Without the list nobody knows who is missing; the rest can be shown all the same.
    let listed = members::read(&bus, &join).unwrap_or_else(|error| {
        tell!("note: the list of members can't be read: {}", safe_line(&error.to_string()));
        Vec::new()
    });
    let workers = listed.into_iter().filter(|member| member.role == FleetRole::Worker);
    let workers = workers.map(|member| member.name).collect();
    let status = fleet_status::look(&bus, &workers, LISTEN)?;
    if args.prometheus {
        return Ok(CommandOutput::text(fleet_status::prometheus(&status)));
    }
    if args.json {
        let value = serde_json::to_value(&status)
            .map_err(|error| Failure::new(30, "environment", error.to_string(), ""))?;
        return Ok(CommandOutput::json(value));
    }
    Ok(CommandOutput::text(fleet_status::text(&status)))
}

pub(super) fn gc(args: &FleetGcArgs) -> Result<CommandOutput, Failure> {
    only_from_outside("remove what a fleet keeps")?;
    let (bus, _) = connect(&args.fleet, &[FleetRole::Conductor])?;
    let before = clock::now().saturating_sub(u64::from(args.older_than) * DAY_MS);
    let plan = cleaning::plan(&bus, before)?;
    let missed = if args.dry_run { Vec::new() } else { cleaning::carry_out(&bus, &plan)? };
    if args.json {
        return Ok(CommandOutput::json(json!({
            "dry_run": args.dry_run, "runs": plan.runs, "sprints": plan.sprints, "files": plan.files,
            "kept_journals": plan.kept, "unreadable": plan.unreadable, "named_again": missed,
        })));
    }
    let mut out = String::new();
    let word = if args.dry_run { "Would remove" } else { "Removed" };
    put!(
        out,
        "{word} {} runs, {} sprints and {} files; {} journals are kept.",
        plan.runs.len(),
        plan.sprints.len(),
        plan.files.len(),
        plan.kept
    );
    for (name, why) in &plan.unreadable {
        put!(out, "Kept, because it can't be read: {}: {}", safe_line(name), safe_line(why));
    }
    for hash in &missed {
        put!(
            out,
            "warning: a run named the content {hash} while it was removed; it can't be resumed on another machine."
        );
    }
    Ok(CommandOutput::text(out))
}

pub(super) fn budget(args: &FleetBudgetArgs) -> Result<CommandOutput, Failure> {
    let cap = args.cap.as_deref().map(cap).transpose()?;
    if cap.is_some() || args.release.is_some() {
        only_from_outside("change a budget")?;
    }
    let (bus, _) = connect(&args.fleet, &[FleetRole::Conductor])?;
    let ledger = Ledger::new(&bus, &args.name);
    if let Some(run) = &args.release {
        release(&ledger, &args.name, run)?;
    }
    if let Some(cap) = cap {
        ledger.set_cap(cap)?;
    }
    let Some(state) = ledger.read()? else {
        return Err(Failure::usage(
            format!("there is no budget '{}'", args.name),
            format!(
                "Make it: archeflow fleet budget {} --cap 100 --fleet <conductor's join file>",
                args.name
            ),
        ));
    };
    Ok(shown(&args.name, &state, args.json))
}

fn cap(text: &str) -> Result<Option<Money>, Failure> {
    if text == "unlimited" {
        return Ok(None);
    }
    match Money::parse(text) {
        Some(cap) => Ok(Some(cap)),
        None => {
            Err(Failure::usage(format!("'{text}' is no amount"), "Example: --cap 250, or --cap unlimited"))
        }
    }
}

fn release(ledger: &Ledger<'_>, name: &str, run: &str) -> Result<(), Failure> {
    let held = ledger.read()?.map(|state| state.held).unwrap_or_default();
    if held.contains_key(run) {
        return Ok(ledger.settle(run, Money::ZERO)?);
    }
    let known: Vec<String> = held.keys().map(|run| safe_line(run)).collect();
    let hint = if known.is_empty() {
        "No run has any.".to_owned()
    } else {
        format!("Reserved for: {}", known.join(", "))
    };
    Err(Failure::usage(format!("nothing of {name} is reserved for {run}"), hint))
}

fn shown(name: &str, state: &LedgerState, json: bool) -> CommandOutput {
    if json {
        return CommandOutput::json(json!({
            "name": name, "cap_usd": state.cap, "spent_usd": state.spent, "held_usd": state.held, "free_usd": state.free(),
        }));
    }
    let words = |money: Option<Money>| money.map_or_else(|| "unlimited".to_owned(), Money::shown);
    let mut out = String::new();
    put!(
        out,
        "{}: cap {}, spent {}, free {}",
        safe_line(name),
        words(state.cap),
        state.spent.shown(),
        words(state.free())
    );
    for (run, money) in &state.held {
        put!(out, "  {} reserved for {}", money.shown(), safe_line(run));
    }
    CommandOutput::text(out)
}
