//! `archeflow dag`: the events of a run and what caused what.

use std::process::ExitCode;

use archeflow_core::projections::story::dag::Dag;
use archeflow_host::log;

use crate::args::DagArgs;
use crate::commands::{house, list, print_json};
use crate::failure::Failure;
use crate::render::text::{Paint, stdout_width};
use crate::report::graph;

pub(crate) fn run(args: &DagArgs) -> Result<ExitCode, Failure> {
    let house = house(&args.place, None, false)?;
    let dag = Dag::of(&log::entries(&list::text(&house, &args.id)?)?);
    if args.place.json {
        print_json(&graph::json(&args.id, &dag));
    } else if args.dot {
        out_part!("{}", graph::dot(&args.id, &dag));
    } else if args.mermaid {
        out_part!("{}", graph::mermaid(&dag));
    } else {
        out_part!("{}", graph::tree(&dag, Paint::for_stdout(), stdout_width().unwrap_or(160)));
    }
    Ok(ExitCode::SUCCESS)
}
