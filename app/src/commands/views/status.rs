//! `archeflow status --fleet`: what waits for a person, and what runs, on any machine of a fleet.

use archeflow_core::model::Outcome;
use archeflow_core::projections::inbox::{self, DamagedRun, InboxItem, InboxRun};
use archeflow_core::projections::view;
use archeflow_core::run::Run;
use archeflow_host::clock;
use serde_json::{Value, json};

use super::{FleetRun, FleetView};
use crate::commands::list::ago;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::summary;
use crate::render::text::{Paint, cut, safe_line, stdout_width};

/// More runs that wait or run are not looked into; `list` has them.
const MOST: usize = 200;

pub(crate) fn status(fleet: &FleetView, name: Option<&str>, json: bool) -> Result<CommandOutput, Failure> {
    if name.is_some() {
        return one(&fleet.run(name)?, json);
    }
    let runs = fleet.runs()?;
    let open = runs.iter().rev().filter(|run| !matches!(run.status.as_str(), "merged" | "dry_run"));
    let found: Vec<OpenRun> = open.take(MOST).filter_map(|run| OpenRun::of(fleet, run)).collect();
    let (waiting, running): (Vec<&OpenRun>, Vec<&OpenRun>) =
        found.iter().partition(|found| found.item.waiting);
    if json {
        let group = |name: &str, some: &[&OpenRun]| -> Vec<Value> {
            some.iter().map(|found| found.json(name)).collect()
        };
        let all = [group("waiting", &waiting), group("running", &running)].concat();
        return Ok(CommandOutput::json(json!({ "runs": all })));
    }
    let (mut out, paint) = (String::new(), Paint::for_stdout());
    if waiting.is_empty() {
        put!(out, "Nothing in the fleet waits for you.");
    }
    for (title, some) in [("Waiting for you", waiting), ("Running", running)] {
        if !some.is_empty() {
            put!(out, "{}", paint.bold(title));
        }
        some.into_iter().for_each(|found| found.print(&mut out, paint));
    }
    Ok(CommandOutput::text(out))
}

/// A run that waits or is under way.
struct OpenRun<'a> {
    run: &'a FleetRun,
    item: InboxItem,
}

impl OpenRun<'_> {
    fn of<'a>(fleet: &FleetView, run: &'a FleetRun) -> Option<OpenRun<'a>> {
        let (run_id, name, repository) = (run.id.as_str(), run.id.as_str(), run.repository.as_str());
        let mut item = match run.fold() {
            Err(failure) => {
                InboxItem::from(DamagedRun { run_id, name, repository, here: true, why: &failure.message })
            }
            Ok(folded) => {
                let found =
                    InboxRun { run_id, name, repository, here: true, interrupted: false, run: &folded };
                InboxItem::of(found)?
            }
        };
        if item.next.starts_with("archeflow show ") {
            item.next = format!("{} {}", item.next, fleet.flag());
        }
        Some(OpenRun { run, item })
    }

    /// Whether the command has to be typed where the run is.
    fn is_there(&self) -> bool {
        !self.item.next.starts_with("archeflow show ")
    }

    fn json(&self, group: &str) -> Value {
        let mut object = self.run.json();
        let item = serde_json::to_value(&self.item).unwrap_or_default();
        if let (Value::Object(object), Value::Object(item)) = (&mut object, item) {
            object.extend(item);
        }
        object["group"] = group.into();
        object["next_on"] = if self.is_there() { self.run.worker.as_str().into() } else { Value::Null };
        object
    }

    fn print(&self, out: &mut String, paint: Paint) {
        let (run, item) = (self.run, &self.item);
        let word = if item.paused { "paused".to_owned() } else { safe_line(&run.status).replace('_', " ") };
        let wide = stdout_width().unwrap_or(200).saturating_sub(4);
        let when = format!("{}  {}", ago(clock::now(), run.at), safe_line(&run.id));
        put!(out, "  {}  {}", paint.tone(inbox::tone(&run.status), &word), paint.dim(&when));
        put!(out, "    {}", cut(&format!("{}: {}", safe_line(&run.repository), safe_line(&run.task)), wide));
        put!(out, "    {}", paint.dim(&cut(&safe_line(&item.detail), wide)));
        let next = paint.accent(&safe_line(&item.next));
        if self.is_there() {
            put!(out, "    {next}");
            put!(out, "    {}", paint.dim(&format!("  typed {}", place(run))));
        } else {
            put!(out, "    {next}");
        }
    }
}

/// Where a command about a run is typed.
fn place(run: &FleetRun) -> String {
    let worker = if run.worker.is_empty() { "its worker".to_owned() } else { safe_line(&run.worker) };
    format!("on {worker}, in its clone of {}", safe_line(&run.repository))
}

fn one(found: &FleetRun, json: bool) -> Result<CommandOutput, Failure> {
    let run: Run = found.fold()?;
    if json {
        let code = run.outcome.as_ref().map_or(0, Outcome::exit_code);
        let mut object = summary::json(found.root(), &found.id, &run, run.outcome.as_ref(), code, None);
        object["repository"] = found.repository.as_str().into();
        object["worker"] = found.worker.as_str().into();
        return Ok(CommandOutput::json(object));
    }
    let mut out = String::new();
    let (title, second) = view::header(&run);
    put!(out, "{}", safe_line(&title));
    put!(out, "Run ID: {} | {second}", found.id);
    match (&run.outcome, run.cycle()) {
        (Some(outcome), _) => {
            put!(
                out,
                "{} ({}): {}",
                outcome.status.name(),
                outcome.reason.name(),
                safe_line(&outcome.detail)
            );
            let steps = view::next_steps(&found.id, &run, outcome);
            for (command, meaning) in &steps {
                put!(out, "  {}  {meaning}", safe_line(command));
            }
            if !steps.is_empty() {
                put!(out, "  Type it {}.", place(found));
            }
        }
        (None, Some(cycle)) => {
            let state = if run.paused.is_some() { "paused" } else { "not ended" };
            put!(out, "{state}: cycle {} of {}, {}", cycle.number, run.max_cycles, cycle.phase.name());
            for (_, start) in run.open_agents() {
                put!(out, "  {}", view::doing(start));
            }
            put!(out, "  {}", place(found));
        }
        (None, None) => put!(out, "not begun"),
    }
    Ok(CommandOutput::text(out))
}
