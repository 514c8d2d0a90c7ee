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
    /// Add a task to the queue
    Add(SprintAdd),
    /// List the queue and its dependencies
    List(SprintList),
    /// Import a plain list: - [ ] text | workflow | depends: text | done: condition
    Import(SprintImport),
    /// Approve proposed items
    Approve(SprintItems),
    /// Cancel items
    Cancel(SprintItems),
    /// Retry items that failed, were blocked or cancelled
    Retry(SprintItems),
    /// Propose items: failing tests, TODO marks, stale projects; runs none of them
    Scan(SprintScan),
    /// Run the queue, several items at a time; resumes an interrupted sprint
    Run(SprintRun),
    /// Watch all runs of a sprint, full screen; without a terminal, print one table
    Watch(SprintLook),
    /// Write a report of a sprint: items, runs, costs, commits, failures, checkpoints; Markdown or Prometheus text
    Report(SprintReport),
}

/// Where the queue is.
#[derive(Debug, Args, Clone)]
pub(crate) struct SprintPlace {
    /// Folder with docs/orchestra/queue.json [default: the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Folder that contains the projects [default: the root]
    #[arg(long, value_name = "DIR")]
    pub(crate) projects: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SprintAdd {
    /// Project folder; . for the root itself
    pub(crate) project: String,
    /// Task description
    pub(crate) task: String,
    /// Item id [default: made from project and task]
    #[arg(long, value_name = "NAME")]
    pub(crate) id: Option<String>,
    /// Priority: P0 (first) to P3 (only with --low-priority)
    #[arg(long, default_value = "P2")]
    pub(crate) priority: String,
    /// Size: S, M, L or XL; selects the workflow
    #[arg(long, default_value = "M")]
    pub(crate) estimate: String,
    /// Item that must be completed first; repeatable
    #[arg(long = "after", value_name = "ID")]
    pub(crate) depends_on: Vec<String>,
    /// Workflow: fast, standard, thorough or a workflow file [default: selected by the size]
    #[arg(long, add = super::complete::workflows())]
    pub(crate) workflow: Option<String>,
    /// File or folder the task touches; repeatable. Tasks of one project with disjoint files may run in parallel
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// Notes
    #[arg(long)]
    pub(crate) notes: Option<String>,
    /// Propose the task: it runs only after `sprint approve`
    #[arg(long)]
    pub(crate) propose: bool,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintList {
    /// Include completed and cancelled items
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintImport {
    /// List file [default: .archeflow/queue.md]
    pub(crate) file: Option<PathBuf>,
    /// Project of the tasks
    #[arg(long, default_value = ".")]
    pub(crate) project: String,
    /// Approve the items at once [default: propose them]
    #[arg(long)]
    pub(crate) approve: bool,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintItems {
    /// Item ids
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintScan {
    /// Projects to scan [default: every repository in the projects folder]
    #[arg(value_name = "PROJECT")]
    pub(crate) only: Vec<String>,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintLook {
    /// Sprint: id, beginning of it, last or @N [default: the newest running sprint, else the newest]
    #[arg(value_name = "SPRINT")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
pub(crate) struct SprintReport {
    /// Sprint: id, beginning of it, last or @N [default: the newest running sprint, else the newest]
    #[arg(value_name = "SPRINT")]
    pub(crate) id: Option<String>,
    /// Write to this file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write the sprint's numbers in the text format of Prometheus
    #[arg(long, conflicts_with = "json")]
    pub(crate) prometheus: bool,
    #[command(flatten)]
    pub(crate) place: SprintPlace,
}

#[derive(Debug, Args)]
#[command(after_help = super::agents())]
pub(crate) struct SprintRun {
    /// Skip the prompt before each batch; a command-line flag only, no file can set it
    #[arg(long)]
    pub(crate) autonomous: bool,
    /// Run N tasks at a time
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<u32>,
    /// Test and merge at most N approved changes of a project in one step; 1 merges each on its own
    #[arg(long, value_name = "N")]
    pub(crate) batch: Option<u32>,
    /// Include P3 items
    #[arg(long)]
    pub(crate) low_priority: bool,
    /// Cost limit of all runs together, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    /// Cap of a project as a share of the budget, e.g. shop=40%; repeatable
    #[arg(long, value_name = "PROJECT=PERCENT")]
    pub(crate) share: Vec<String>,
    /// Agent for all roles, as listed below [default: an installed client]
    #[arg(long, value_name = "SPEC", add = super::complete::agents())]
    pub(crate) agent: Option<String>,
    /// Agent for one role, e.g. guardian=cmd:other-agent; repeatable
    #[arg(long, value_name = "ARCHETYPE=SPEC", add = super::complete::agents_by_archetype())]
    pub(crate) agent_for: Vec<String>,
    /// Start agents, test commands and hooks without a sandbox
    #[arg(long)]
    pub(crate) unsafe_no_sandbox: bool,
    /// Test command for projects that have none of their own
    #[arg(long, value_name = "CMD")]
    pub(crate) test_command: Option<String>,
    /// Have the workers of a fleet run the queue: join file of a conductor
    #[arg(long, value_name = "FILE", conflicts_with_all = ["batch", "unsafe_no_sandbox"])]
    pub(crate) fleet: Option<PathBuf>,
    /// Use only workers that offer this, e.g. agent:claude, os:linux, label:gpu; repeatable
    #[arg(long, value_name = "NEED", requires = "fleet")]
    pub(crate) need: Vec<String>,
    /// Reserve the cost of each run from a budget of the fleet; needs --budget
    #[arg(long, value_name = "NAME", requires_all = ["fleet", "budget"])]
    pub(crate) ledger: Option<String>,
    /// Continue a sprint that another conductor began, from the fleet's server; that conductor ends
    #[arg(long, value_name = "SPRINT", requires = "fleet")]
    pub(crate) take_over: Option<String>,
    /// Time a worker may be silent before others get its order
    #[arg(long, value_name = "N", requires = "fleet", hide = true, value_parser = clap::value_parser!(u64).range(1..=900))]
    pub(crate) lease_seconds: Option<u64>,
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
