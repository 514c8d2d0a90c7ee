//! `archeflow sprint`: the queue, and what is done with it.

mod fleet;
mod queue;
mod report;
mod run;
mod scan;
pub(crate) mod watch;

use std::path::PathBuf;

use archeflow_host::sprint::drive;
pub(crate) use archeflow_host::sprint::queue::QueueFolder;
use archeflow_host::sprint::queue::{Error, Queue};

use crate::args::{SprintCommand, SprintPlace};
use crate::commands::process_env;
use crate::commands::trust::only_from_outside;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe_line;

pub(crate) fn run(command: &SprintCommand) -> Result<CommandOutput, Failure> {
    match command {
        SprintCommand::Add(args) => queue::add(args),
        SprintCommand::List(args) => queue::list(args),
        SprintCommand::Import(args) => queue::import(args),
        SprintCommand::Approve(args) => {
            only_from_outside("approve items")?;
            queue::each(args, "approved", Queue::approve)
        }
        SprintCommand::Cancel(args) => queue::each(args, "cancelled", Queue::cancel),
        SprintCommand::Retry(args) => queue::each(args, "pending", Queue::retry),
        SprintCommand::Scan(args) => scan::run(args),
        SprintCommand::Run(args) => run::run(args),
        SprintCommand::Watch(args) => watch::run(args),
        SprintCommand::Report(args) => report::run(args),
    }
}

/// The queue a command is about.
fn place(args: &SprintPlace) -> Result<QueueFolder, Failure> {
    let cwd = process_env()?.cwd;
    let root = args.root.as_ref().map_or(cwd.clone(), |root| cwd.join(root));
    if !root.is_dir() {
        return Err(Failure::usage(
            format!("there is no folder {}", root.display()),
            "Name the folder with the queue: --root <dir>",
        ));
    }
    Ok(QueueFolder::at(&root))
}

/// The folder of a queue's projects.
fn projects(args: &SprintPlace, place: &QueueFolder) -> Result<PathBuf, Failure> {
    let cwd = process_env()?.cwd;
    Ok(args.projects.as_ref().map_or(place.root().to_owned(), |dir| cwd.join(dir)))
}

/// Entries that can't be run are listed every time, and kept as they are.
fn print_faults(queue: &Queue) {
    for fault in queue.faults().iter().take(20) {
        tell!("warning: item {} of the queue is left alone: {}", fault.number, safe_line(&fault.why));
    }
}

impl From<drive::Error> for Failure {
    fn from(error: drive::Error) -> Failure {
        match error {
            drive::Error::Log(error) => error.into(),
            drive::Error::Journal(error) => error.into(),
            drive::Error::Queue(error) => error.into(),
            drive::Error::Fenced { .. } => Failure::new(
                21,
                "fenced",
                error.to_string(),
                "The runs continue for the other conductor. To have the sprint here again: archeflow sprint run --fleet <file>",
            ),
            drive::Error::NotKept { .. } => Failure::new(
                21,
                "unreachable",
                error.to_string(),
                "Nothing is lost. When the server is back, run the same command again to continue.",
            ),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let message = error.to_string();
        match error {
            Error::Malformed { .. } => Failure::new(2, "queue", message, "Mend the file, then try again."),
            Error::Exists { .. } => {
                Failure::usage(message, "Give it another --id, or see: archeflow sprint list --all")
            }
            Error::Unfit { .. } => {
                Failure::usage(message, "Nothing was changed. See: docs/sprint.md#the-queue")
            }
            Error::Unknown { .. } | Error::NotNow { .. } => {
                Failure::usage(message, "See what there is: archeflow sprint list --all")
            }
            Error::Circle { .. } => {
                Failure::usage(message, "Nothing was changed. Leave one of these dependencies out.")
            }
            Error::Lock(_) => Failure::new(21, "held", message, "Try again in a moment."),
            Error::Files(error) => error.into(),
        }
    }
}
