//! The options of `archeflow worker`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct WorkerArgs {
    #[command(subcommand)]
    pub(crate) what: Option<WorkerCommand>,
    /// Join file of this worker, from `archeflow fleet add worker`
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) join: Option<PathBuf>,
    /// Perform N orders at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(crate) slots: u32,
    /// Something this machine has and tasks can ask for, e.g. gpu; repeatable
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Vec<String>,
    /// Folder for clones of repositories [default: a folder of its own in the state folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Wait for a server that can't be reached
    #[arg(long)]
    pub(crate) wait: bool,
    /// Start agents, test commands and hooks without a sandbox
    #[arg(long)]
    pub(crate) unsafe_no_sandbox: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkerCommand {
    /// Let a worker finish what it has, take nothing new, and end
    Drain(WorkerDrain),
}

#[derive(Debug, Args)]
pub(crate) struct WorkerDrain {
    /// Name of the worker
    #[arg(value_name = "WORKER")]
    pub(crate) name: String,
    /// Join file of the conductor
    #[arg(long, value_name = "FILE")]
    pub(crate) join: PathBuf,
}

/// The command line with this one command. A worker lives long, and the tree of all commands with their help is 2 MB of what
/// it would hold.
#[derive(Debug, Parser)]
#[command(name = "archeflow", disable_help_flag = true, disable_help_subcommand = true)]
struct WorkerCli {
    #[command(subcommand)]
    what: WorkerOnly,
}

#[derive(Debug, Subcommand)]
enum WorkerOnly {
    Worker(WorkerArgs),
}

/// What `archeflow worker` was given. Nothing for another command, and for what is refused or asks for help: that is answered
/// with the whole tree.
pub(super) fn alone(arguments: &[OsString]) -> Option<WorkerArgs> {
    if arguments.get(1).is_none_or(|word| word != "worker") {
        return None;
    }
    let WorkerCli { what: WorkerOnly::Worker(args) } = WorkerCli::try_parse_from(arguments).ok()?;
    Some(args)
}
