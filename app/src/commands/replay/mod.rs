//! `archeflow replay`: a run looked at again, from its log alone.

mod compare;
mod timeline;
mod whatif;

use std::io::IsTerminal;

use archeflow_core::event::{Entry, Share};
use archeflow_core::model::Outcome;
use archeflow_core::rules::run_names::RunUse;
use archeflow_host::{log, open};
use serde_json::{Value, json};

use crate::args::{CommonArgs, ReplayCommand};
use crate::commands::{list, naming, open_project};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::Paint;

pub(crate) fn run(what: &ReplayCommand) -> Result<CommandOutput, Failure> {
    match what {
        ReplayCommand::Timeline(args) => timeline::run(args),
        ReplayCommand::Whatif(args) => whatif::run(args),
        ReplayCommand::Compare(args) => compare::run(args),
    }
}

/// The id and the lines of a run that has begun: the one that is named, or the newest.
fn entries(place: &CommonArgs, name: Option<&str>) -> Result<(String, Vec<Entry>), Failure> {
    let project = open_project(place, None, false)?;
    let id = naming::run_id(&project, name, RunUse::Show)?;
    let entries = log::entries(&list::text(&project, &id)?)?;
    match entries.is_empty() {
        true => Err(open::Error::NeverBegan { id }.into()),
        false => Ok((id, entries)),
    }
}

/// Colours, where the result goes to a terminal that wants them.
fn paint() -> Paint {
    Paint(Paint::for_stderr().0 && std::io::stdout().is_terminal())
}

/// Two places, rounded down.
pub(crate) fn two_places(share: Share) -> String {
    format!("{}.{:02}", share.0 / 1_000_000, share.0 % 1_000_000 / 10_000)
}

fn ended(outcome: Option<&Outcome>) -> String {
    outcome.map_or_else(
        || "not ended".to_owned(),
        |outcome| format!("{} ({}): {}", outcome.status.name(), outcome.reason.name(), outcome.detail),
    )
}

fn outcome_json(outcome: Option<&Outcome>) -> Value {
    outcome.map_or(Value::Null, |outcome| {
        json!({
            "status": outcome.status.name(), "reason": outcome.reason.name(), "detail": outcome.detail,
            "exit_code": outcome.exit_code(),
        })
    })
}
