//! `archeflow dag`: the events of a run and what caused what.

use archeflow_core::projections::story::dag::Dag;
use archeflow_core::rules::run_names::RunUse;
use archeflow_host::log;

use crate::args::DagArgs;
use crate::commands::{list, naming, open_project_to_read};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{Paint, stdout_width};
use crate::report::graph;

pub(crate) fn run(args: &DagArgs) -> Result<CommandOutput, Failure> {
    let project = open_project_to_read(&args.place, false)?;
    let id = naming::run_id(&project, args.id.as_deref(), RunUse::Show)?;
    let dag = Dag::of(&log::entries(&list::text(&project, &id)?)?);
    Ok(if args.place.json {
        CommandOutput::json(graph::json(&id, &dag))
    } else if args.dot {
        CommandOutput::text(graph::dot(&id, &dag))
    } else if args.mermaid {
        CommandOutput::text(graph::mermaid(&dag))
    } else {
        CommandOutput::text(graph::tree(&dag, Paint::for_stdout(), stdout_width().unwrap_or(160)))
    })
}
