//! The options of `archeflow sprint`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct SprintArgs {
    #[command(subcommand)]
    pub(crate) what: SprintCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SprintCommand {
    /// Put a task into the queue
    Add(SprintAdd),
    /// What is in the queue, and what waits for what
    List(SprintList),
    /// Take over a plain list: - [ ] text | workflow | depends: text | done: condition
    Import(SprintImport),
    /// Let proposed items run
    Approve(SprintItems),
    /// Items that are not to be run
    Cancel(SprintItems),
    /// Let items that failed, were blocked or cancelled run again
    Retry(SprintItems),
    /// Propose items: red tests, marks left for later, projects nobody has touched; runs nothing of them
    Scan(SprintScan),
    /// Let the queue run: each item as a run of its own, several at a time; goes on with a sprint that was interrupted
    Run(SprintRun),
    /// All runs of a sprint at once, as they happen; in a terminal on the whole screen, else once as a table
    Watch(SprintLook),
    /// What a sprint did, as Markdown: items, runs, costs, commits, failures, checkpoints
    Report(SprintReport),
}

/// Where the queue is.
#[derive(Debug, Args, Clone)]
pub(crate) struct SprintPlace {
    /// The folder with docs/orchestra/queue.json; the current one if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Where the projects lie, below the root or beside it; the root if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) projects: Option<PathBuf>,
    /// Print one JSON object on standard output at the end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SprintAdd {
    /// The project, a folder where the projects lie; . for the root itself
    pub(crate) project: String,
    /// What is to be done
    pub(crate) task: String,
    /// A name for it; made from project and task if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) id: Option<String>,
    /// P0 (first) to P3 (only if asked for)
    #[arg(long, default_value = "P2")]
    pub(crate) priority: String,
    /// How large it is: S, M, L or XL; says which workflow it gets
    #[arg(long, default_value = "M")]
    pub(crate) estimate: String,
    /// An item that must be completed first; may be given several times
    #[arg(long = "after", value_name = "ID")]
    pub(crate) depends_on: Vec<String>,
    /// fast, standard, thorough or the name of a workflow file; by the estimate if not given
    #[arg(long)]
    pub(crate) workflow: Option<String>,
    /// A file or folder it touches; may be given several times. Tasks of one project that share none may run side by side
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// Something to remember about it
    #[arg(long)]
    pub(crate) notes: Option<String>,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintList {
    /// Also what is completed or cancelled
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintImport {
    /// The list; .archeflow/queue.md if not given
    pub(crate) file: Option<PathBuf>,
    /// The project its tasks are for
    #[arg(long, default_value = ".")]
    pub(crate) project: String,
    /// They may run at once; without it they are proposed
    #[arg(long)]
    pub(crate) approve: bool,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintItems {
    /// The items
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintScan {
    /// Only these projects; every repository where the projects lie if not given
    #[arg(value_name = "PROJECT")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintLook {
    /// The sprint; if not given, the newest one under way, else the newest
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintReport {
    /// The sprint; if not given, the newest one under way, else the newest
    pub(crate) id: Option<String>,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintRun {
    /// Don't ask before each batch; can be said here only, never in a file
    #[arg(long)]
    pub(crate) autonomous: bool,
    /// How many tasks run at a time
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<u32>,
    /// How many approved changes of a project are tested and landed in one step at most; 1 lands each by itself
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<u32>,
    /// Run P3 as well
    #[arg(long)]
    pub(crate) low_priority: bool,
    /// What all runs together may cost, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    /// What a project may spend of the budget at most, e.g. shop=40%; may be given several times
    #[arg(long, value_name = "PROJECT=PERCENT")]
    pub(crate) share: Vec<String>,
    /// Who plays all archetypes, e.g. 'cmd:my-agent'
    #[arg(long, value_name = "SPEC")]
    pub(crate) agent: Option<String>,
    /// Who plays one archetype, e.g. guardian=cmd:other-agent
    #[arg(long, value_name = "ARCHETYPE=SPEC")]
    pub(crate) agent_for: Vec<String>,
    /// The command that decides whether a tree is good, where a project names none of its own
    #[arg(long, value_name = "CMD")]
    pub(crate) test_command: Option<String>,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

impl SprintCommand {
    pub(crate) fn place(&self) -> &SprintPlace {
        match self {
            SprintCommand::Add(args) => &args.place,
            SprintCommand::List(args) => &args.place,
            SprintCommand::Import(args) => &args.place,
            SprintCommand::Approve(args) | SprintCommand::Cancel(args) | SprintCommand::Retry(args) => {
                &args.place
            }
            SprintCommand::Scan(args) => &args.place,
            SprintCommand::Run(args) => &args.place,
            SprintCommand::Watch(args) => &args.place,
            SprintCommand::Report(args) => &args.place,
        }
    }
}
