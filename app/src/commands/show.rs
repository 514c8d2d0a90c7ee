//! `archeflow show`: a run from beginning to end, from its log alone.

use archeflow_core::projections::handoff;
use archeflow_core::rules::run_names::RunUse;
use archeflow_core::run::Run;
use archeflow_host::drive::RunObserver;
use archeflow_host::log;
use archeflow_host::store::journal::{Journal, Text};

use crate::args::ShowArgs;
use crate::commands::views::FleetView;
use crate::commands::{list, naming, open_project_to_read, why};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::line::Lines;
use crate::render::summary;
use crate::render::text::safe_line;

pub(crate) fn run(args: &ShowArgs) -> Result<CommandOutput, Failure> {
    if let Some(fleet) = FleetView::asked_for(&args.view)? {
        let found = fleet.run(args.id.as_deref())?;
        let output = shown(args, &found.id, &Journal::read(&found.path)?)?;
        if !args.place.json && !args.why {
            tell!("{}", safe_line(&found.place()));
        }
        return Ok(output);
    }
    let project = open_project_to_read(&args.place, false)?;
    let id = naming::run_id(&project, args.id.as_deref(), RunUse::Show)?;
    shown(args, &id, &list::text(&project, &id)?)
}

fn shown(args: &ShowArgs, id: &str, text: &Text) -> Result<CommandOutput, Failure> {
    if args.place.json {
        let events: Vec<serde_json::Value> = text
            .iter()
            .map(|line| {
                serde_json::json!({
                    "ts": line.ts, "run_id": line.run_id, "seq": line.seq, "parent": line.parents().collect::<Vec<_>>(),
                    "type": line.kind, "phase": line.phase, "agent": line.agent,
                    "data": serde_json::from_str::<serde_json::Value>(line.data).unwrap_or_default(),
                })
            })
            .collect();
        return Ok(CommandOutput::json(serde_json::json!({ "run_id": id, "events": events })));
    }
    let entries = log::entries(text)?;
    if args.why {
        return Ok(CommandOutput::text(match &args.what {
            Some(what) => why::explain(id, &entries, what)?,
            None => why::list(&entries),
        }));
    }
    let mut observer = Lines::replay(id);
    let mut run = Run::default();
    for entry in &entries {
        run.apply(entry);
        observer.wrote(&run, entry);
    }
    let mut out = String::new();
    if let Some(page) = handoff::page(id, &run, &entries) {
        put!(out);
        for line in page.lines() {
            let indent = line.len() - line.trim_start_matches(' ').len();
            put!(out, "{}{}", " ".repeat(indent), safe_line(line));
        }
    }
    if let Some(outcome) = &run.outcome {
        summary::print(id, &run, outcome, run.last.saturating_sub(run.began));
    }
    Ok(CommandOutput::text(out))
}
