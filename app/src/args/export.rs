//! The options of `archeflow export`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{CommonArgs, complete};

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    #[command(subcommand)]
    pub(crate) what: ExportCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ExportCommand {
    /// Send spans, log records and metrics of a run, as OTLP over HTTP; sending again adds nothing
    Otlp(ExportOtlp),
    /// Write a run to one file, to resume it in another clone or on another machine
    Run(ExportRunArgs),
}

impl ExportCommand {
    pub(crate) fn place(&self) -> &CommonArgs {
        match self {
            ExportCommand::Otlp(args) => &args.place,
            ExportCommand::Run(args) => &args.place,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ExportRunArgs {
    /// Run to write [default: the newest]
    #[arg(add = complete::runs())]
    pub(crate) id: Option<String>,
    /// File to write; it must not exist [default: the id of the run, with .bundle]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOtlp {
    /// Run: id, beginning of it, words of its task, last or @N [default: the newest]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    /// Address of the collector [default: OTEL_EXPORTER_OTLP_ENDPOINT, else telemetry.otlp]
    #[arg(long, value_name = "URL", conflicts_with_all = ["dry_run", "output"])]
    pub(crate) to: Option<String>,
    /// Also send task, paths, commands, and words of agents and people [default: telemetry.content]
    #[arg(long)]
    pub(crate) content: bool,
    /// Print what would be sent, as OTLP JSON, and send nothing
    #[arg(long, conflicts_with = "output")]
    pub(crate) dry_run: bool,
    /// Write it to this file, as OTLP JSON, and send nothing
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}
