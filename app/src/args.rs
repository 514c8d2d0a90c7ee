//! The command line. Every option is explained here and nowhere else, as an imperative or a noun phrase.

pub(crate) mod complete;
mod documents;
mod eval;
mod export;
mod fleet;
mod hook;
mod import;
mod inner;
mod known;
mod lists;
mod mcp;
mod memory;
mod names;
mod notify;
mod pr;
mod session;
mod setup;
mod sprint;
mod ui;
mod view;
mod worker;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use archeflow_host::backends;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::output::CommandOutput;

pub(crate) use crate::commands::agent_loop::args::*;
pub(crate) use documents::{DocumentArgs, DocumentsArgs};
pub(crate) use eval::*;
pub(crate) use export::*;
pub(crate) use fleet::*;
pub(crate) use hook::*;
pub(crate) use import::*;
pub(crate) use inner::AcpArgs;
pub(crate) use known::*;
pub(crate) use lists::*;
pub(crate) use mcp::*;
pub(crate) use memory::*;
pub(crate) use notify::*;
pub(crate) use pr::*;
pub(crate) use session::*;
pub(crate) use setup::*;
pub(crate) use sprint::*;
pub(crate) use ui::*;
pub(crate) use view::*;
pub(crate) use worker::*;

#[derive(Debug, Parser)]
#[command(
    name = "archeflow",
    version,
    about = "Run coding tasks through Plan-Do-Check-Act with coding agents, and merge only tested changes",
    after_help = format!("First time? `archeflow demo` shows a complete run without any account.\n\n{}", agents())
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Every agent that `--agent` takes, from the host's list.
pub(crate) fn agents() -> String {
    let forms = backends::forms();
    let wide = forms.iter().map(|(form, _)| form.len()).max().unwrap_or(0);
    let rows: Vec<String> = forms.iter().map(|(form, title)| format!("  {form:wide$}  {title}")).collect();
    format!("Agents:\n{}", rows.join("\n"))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a task: plan, implement, review, test, merge
    Run(Box<RunArgs>),
    /// Review an existing change: uncommitted work, a branch, a patch or a pull request
    Review(Box<ReviewArgs>),
    /// Manage and run a queue of tasks across repositories
    Sprint(SprintArgs),
    /// Perform the orders of a fleet on this machine
    Worker(WorkerArgs),
    /// Work in small steps: you, a Planner, an Actor and a Judge take turns
    Loop(LoopArgs),
    /// Resume an interrupted or paused run, or retry a failed step
    Resume(ResumeArgs),
    /// Answer the open question of a run
    Answer(AnswerArgs),
    /// Pause a running run: its agents finish, nothing new starts
    Pause(SteerArgs),
    /// Stop a running run, as Ctrl-C does where it runs
    Stop(SteerArgs),
    /// Continue a stopped run, e.g. with one more cycle
    Continue(ContinueArgs),
    /// Merge a run that waits for approval, or accept it as it is
    Merge(MergeArgs),
    /// Take a merged run back with a new commit, tested like a merge
    Revert(RevertArgs),
    /// Take a run that has not landed back to the end of a phase and go on from there
    Rollback(RollbackArgs),
    /// Discard a run; its commits are kept under refs/archeflow/keep/
    Discard(RunIdArgs),
    /// Show what needs you, what runs and what ended last; or the status of one run
    Status(StatusArgs),
    /// List the runs of this repository, or of all repositories
    List(ListArgs),
    /// Remove what nothing needs any more: working copies, caches, old runs
    Gc(GcArgs),
    /// Take repositories off the list that `status` and `list --all` look at
    Forget(ForgetArgs),
    /// Show a run from beginning to end
    Show(ShowArgs),
    /// Watch a run live, full screen; line by line without a terminal
    Watch(WatchArgs),
    /// Open a pull request for the branch of a run, with its report as text
    Pr(PrArgs),
    /// Show all runs in a browser of this machine
    Ui(UiArgs),
    /// Show the findings of the newest review in your editor; editors start it
    Lsp,
    /// Let coding agents have changes reviewed and start runs, over the Model Context Protocol; clients start it
    Mcp(McpArgs),
    /// Tell a coding agent what waits for you, or review what it did; its plugin starts it
    Hook(HookArgs),
    /// Replay a run: its decisions, what-if, comparison with other runs
    Replay(ReplayArgs),
    /// Write a report of a run: Markdown, one HTML file or one line
    Report(ReportArgs),
    /// Show the events of a run as a graph of cause and effect
    Dag(DagArgs),
    /// Write a run to a file, or send it to a collector of OpenTelemetry
    Export(ExportArgs),
    /// Bring a run here that was exported in another clone
    Import(ImportArgs),
    /// Show how reviewers have performed recently
    Score(ScoreArgs),
    /// Show a complete run on a bundled sample, with scripted agents
    Demo(DemoArgs),
    /// Write a first configuration for this repository, or set up a coding agent
    Init(InitArgs),
    /// Check git, folders, configuration and agents
    Doctor(DoctorArgs),
    /// Approve the commands this repository's configuration names
    Trust(TrustArgs),
    /// Explain an archetype, a workflow, the reason a run ended, or how an answer is read
    Explain(ExplainArgs),
    /// Show the configuration
    Config(ConfigArgs),
    /// Manage lessons from earlier runs that later runs are given
    Memory(MemoryArgs),
    /// Run sprints over many machines: message server, members, status, cleaning up, budgets
    Fleet(FleetArgs),
    /// Evaluate archeflow on suites of tasks: check suites, report and compare results
    Eval(EvalArgs),
    /// Test your notification channels
    Notify(NotifyArgs),
    /// Print a completion script for your shell
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
    #[command(name = "__play", hide = true)]
    Play { file: PathBuf },
    #[command(name = "__sim", hide = true)]
    Sim { file: PathBuf },
    #[command(name = "__acp", hide = true)]
    Acp(AcpArgs),
    #[command(name = "__model", hide = true)]
    Model { task: String },
    #[command(name = "__watcher", hide = true)]
    Watcher,
}

#[derive(Debug, Args)]
#[command(after_help = agents())]
pub(crate) struct RunArgs {
    /// Task description
    #[arg(required_unless_present = "run")]
    pub(crate) task: Option<String>,
    /// Workflow: fast, standard, thorough or a workflow file [default: chosen from the task]
    #[arg(long, add = complete::workflows())]
    pub(crate) workflow: Option<String>,
    /// Team file in .archeflow/teams that selects the agents
    #[arg(long, value_name = "NAME")]
    pub(crate) team: Option<String>,
    /// Lenses that add focus areas, applied left to right, e.g. security,compliance-gdpr
    #[arg(long, value_name = "NAMES")]
    pub(crate) lens: Option<String>,
    /// Strategy: pdca (cycles) or pipeline (linear) [default: chosen from the task]
    #[arg(long, add = complete::words(&["pdca", "pipeline"]))]
    pub(crate) strategy: Option<String>,
    /// Agent for all roles, as listed below [default: an installed client]
    #[arg(long, value_name = "SPEC", add = complete::agents())]
    pub(crate) agent: Option<String>,
    /// Agent for one role, e.g. guardian=cmd:other-agent; repeatable
    #[arg(long, value_name = "ARCHETYPE=SPEC", add = complete::agents_by_archetype())]
    pub(crate) agent_for: Vec<String>,
    /// Plan only, which pays Explorer and Creator; show the plan, then ask whether to continue
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Show who would work, with which commands, and about what it would cost; start nothing
    #[arg(long, conflicts_with_all = ["dry_run", "run"])]
    pub(crate) estimate: bool,
    /// Start at this phase (plan, do, check or act), reusing the artifacts of --run
    #[arg(long, value_name = "PHASE", requires = "run", add = complete::words(&["plan", "do", "check", "act"]))]
    pub(crate) start_from: Option<String>,
    /// Run whose artifacts --start-from reuses
    #[arg(long, value_name = "RUN", requires = "start_from", add = complete::runs())]
    pub(crate) run: Option<String>,
    /// Cost limit of the run, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    /// Cycles beyond the limit if the run is converging when it reaches it [default: 0]
    #[arg(long, value_name = "N")]
    pub(crate) extra_cycles: Option<String>,
    /// Domain: code, writing or research [default: detected from the project's files]
    #[arg(long, add = complete::words(&["code", "writing", "research"]))]
    pub(crate) domain: Option<String>,
    /// Test command that must pass before merging
    #[arg(long, value_name = "CMD", conflicts_with = "no_tests")]
    pub(crate) test_command: Option<String>,
    /// Allow merging without a test command
    #[arg(long)]
    pub(crate) no_tests: bool,
    /// Command that installs what the tests need, run once per tree, e.g. 'npm ci'
    #[arg(long, value_name = "CMD")]
    pub(crate) setup_command: Option<String>,
    /// Start although tests fail on the base commit, and land if no other test fails then
    #[arg(long)]
    pub(crate) allow_red_base: bool,
    /// Run id chosen by a sprint, or by the server for coding agents
    #[arg(long = "as", value_name = "ID", hide = true, conflicts_with = "run")]
    pub(crate) named: Option<String>,
    /// Branch to merge into [default: the checked-out branch]
    #[arg(long, value_name = "BRANCH")]
    pub(crate) target: Option<String>,
    /// Land on the branch of this remote by a push, e.g. origin; only typed, never configured
    #[arg(long, value_name = "REMOTE", conflicts_with = "start_from")]
    pub(crate) remote: Option<String>,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
#[command(after_help = agents())]
#[command(group(clap::ArgGroup::new("accepting").args(["accept", "write_baseline"]).multiple(true)))]
pub(crate) struct ReviewArgs {
    /// Review only staged changes [default: all uncommitted changes]
    #[arg(long, group = "subject")]
    pub(crate) staged: bool,
    /// Review a branch, from its merge base with --base
    #[arg(long, value_name = "BRANCH", group = "subject")]
    pub(crate) branch: Option<String>,
    /// Review commits: a range A..B or one commit
    #[arg(long, value_name = "RANGE", group = "subject")]
    pub(crate) commit: Option<String>,
    /// Review a patch file, applied to --base or HEAD in a separate worktree; - for standard input
    #[arg(long, value_name = "FILE", group = "subject")]
    pub(crate) patch: Option<PathBuf>,
    /// Review a pull request, read with `gh` on GitHub and by its API on other forges
    #[arg(long, value_name = "NUMBER", group = "subject")]
    pub(crate) pr: Option<u32>,
    /// Show the result of an earlier review without reviewing again
    #[arg(long, value_name = "RUN", group = "subject", add = complete::runs())]
    pub(crate) run: Option<String>,
    /// Commit that a branch or a patch is compared with
    #[arg(long, value_name = "COMMIT")]
    pub(crate) base: Option<String>,
    /// Reviewers, e.g. guardian,skeptic,sage,trickster [default: guardian]
    #[arg(long, value_name = "NAMES", conflicts_with_all = ["workflow", "team"], add = complete::archetypes())]
    pub(crate) reviewers: Option<String>,
    /// Use the reviewers of a workflow: fast, standard, thorough or a file in .archeflow/workflows
    #[arg(long, add = complete::workflows())]
    pub(crate) workflow: Option<String>,
    /// Use the reviewers of a team file in .archeflow/teams
    #[arg(long, value_name = "NAME")]
    pub(crate) team: Option<String>,
    /// Lenses that add focus areas, applied left to right, e.g. security,compliance-gdpr
    #[arg(long, value_name = "NAMES")]
    pub(crate) lens: Option<String>,
    /// Domain: code, writing or research [default: detected from the project's files]
    #[arg(long, add = complete::words(&["code", "writing", "research"]))]
    pub(crate) domain: Option<String>,
    /// Agent for all reviewers, as listed below [default: an installed client]
    #[arg(long, value_name = "SPEC", add = complete::agents())]
    pub(crate) agent: Option<String>,
    /// Agent for one reviewer, e.g. guardian=cmd:other-agent; repeatable
    #[arg(long, value_name = "ARCHETYPE=SPEC", add = complete::agents_by_archetype())]
    pub(crate) agent_for: Vec<String>,
    /// Cost limit of the review, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    /// Run the reproduction commands that reviewers attach, in temporary worktrees
    #[arg(long)]
    pub(crate) verify: bool,
    /// Print only what changed since the last review of the same subject
    #[arg(long)]
    pub(crate) since_last: bool,
    /// Post the result on the pull request: threads at lines, a summary, a check; only typed, never configured
    #[arg(long)]
    pub(crate) post: bool,
    /// Print the requests that --post would send, and send none that changes anything
    #[arg(long, requires = "post")]
    pub(crate) dry_run: bool,
    /// File of accepted findings [default: .archeflow/baseline.json at the base commit]
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Accept the current findings: add them to this file, with --reason
    #[arg(long, value_name = "FILE", requires = "reason")]
    pub(crate) write_baseline: Option<PathBuf>,
    /// Accept one finding of --run by its id, in .archeflow/baseline.json unless --write-baseline names a file; repeatable
    #[arg(long, value_name = "FINDING", requires_all = ["run", "reason"])]
    pub(crate) accept: Vec<String>,
    /// Reason for accepting the findings
    #[arg(long, value_name = "TEXT", requires = "accepting")]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) documents: DocumentsArgs,
    /// Run id chosen by the server for coding agents
    #[arg(long = "as", value_name = "ID", hide = true, conflicts_with = "run")]
    pub(crate) named: Option<String>,
    /// Exit with code 14 if any finding is at least this severe: critical or warning
    #[arg(long, value_name = "SEVERITY", add = complete::words(&["critical", "warning"]))]
    pub(crate) fail_on: Option<String>,
    /// Never ask; exit with code 10 instead of asking a question
    #[arg(long)]
    pub(crate) unattended: bool,
    /// Show progress full screen
    #[arg(long, conflicts_with = "unattended")]
    pub(crate) tui: bool,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args, Clone)]
pub(crate) struct CommonArgs {
    /// Repository [default: the one that contains the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
    /// Configuration file or folder for this command; overrides your own configuration
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Start agents, test commands and hooks without a sandbox
    #[arg(long)]
    pub(crate) unsafe_no_sandbox: bool,
}

#[derive(Debug, Args)]
pub(crate) struct RunIdArgs {
    /// Run: id, beginning of it, words of its task, last or @N [default: the only one that can be discarded]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct AnswerArgs {
    /// Run: id, beginning of it, words of its task, last or @N [default: the only one with an open question]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    /// Answer text
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
pub(crate) struct Listing {
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also send an agent one small prompt, at its usual cost [default agent: the one `run` would use]
    #[arg(long = "try", value_name = "AGENT", num_args = 0..=1, default_missing_value = "")]
    pub(crate) tried: Option<String>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Run: id, beginning of it, words of its task, last or @N [default: the newest]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    /// List every decision with its rule and inputs; with LINE or TOPIC, that one in full
    #[arg(long)]
    pub(crate) why: bool,
    /// With --why: a line number, a rule (A2), an archetype or a topic (convergence)
    #[arg(value_name = "LINE|TOPIC", requires = "why")]
    pub(crate) what: Option<String>,
    #[command(flatten)]
    pub(crate) view: FleetViewArgs,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Run or sprint [default: the running sprint, else the newest running run, else the newest run]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) view: FleetViewArgs,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    #[command(subcommand)]
    pub(crate) what: ReplayCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReplayCommand {
    /// List every decision in order, with rule, confidence and inputs
    Timeline(ReplayTimeline),
    /// Show the outcome under other reviewer weights or another policy
    Whatif(ReplayWhatif),
    /// Compare runs side by side
    Compare(ReplayCompare),
}

#[derive(Debug, Args)]
pub(crate) struct ReplayTimeline {
    /// Run: id, beginning of it, words of its task, last or @N [default: the newest]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayWhatif {
    /// Run: id, beginning of it, words of its task, last or @N [default: the newest]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    /// Weight of a reviewer's last verdict, e.g. guardian=2 [default: 1]; repeatable
    #[arg(long, value_name = "ARCHETYPE=NUMBER", allow_hyphen_values = true)]
    pub(crate) weight: Vec<String>,
    /// Share of the weight that blocks the change when it votes against it
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub(crate) threshold: Option<String>,
    /// Override a setting of the run, e.g. convergence.zero_policy=immediate; repeatable
    #[arg(long, value_name = "KEY=VALUE", add = complete::settings())]
    pub(crate) set: Vec<String>,
    /// Override the workflow: fast, standard or thorough
    #[arg(long, value_name = "NAME", add = complete::workflows())]
    pub(crate) workflow: Option<String>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayCompare {
    /// Runs, two or more: ids, beginnings of them, words of their tasks, last or @N
    #[arg(required = true, num_args = 2.., value_name = "RUN", add = complete::runs())]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

impl ReplayCommand {
    fn place(&self) -> &CommonArgs {
        match self {
            ReplayCommand::Timeline(args) => &args.place,
            ReplayCommand::Whatif(args) => &args.place,
            ReplayCommand::Compare(args) => &args.place,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run: id, beginning of it, words of its task, last or @N [default: the newest]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    /// Write one self-contained HTML page instead of Markdown
    #[arg(long)]
    pub(crate) html: bool,
    /// Write one line instead of a document
    #[arg(long, conflicts_with_all = ["html", "dag"])]
    pub(crate) summary: bool,
    /// Include the graph of events
    #[arg(long)]
    pub(crate) dag: bool,
    /// Write to this file [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DagArgs {
    /// Run: id, beginning of it, words of its task, last or @N [default: the newest]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    /// Print a Graphviz graph
    #[arg(long, conflicts_with = "mermaid")]
    pub(crate) dot: bool,
    /// Print a Mermaid graph
    #[arg(long)]
    pub(crate) mermaid: bool,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    /// Show only this archetype
    #[arg(long, value_name = "NAME", add = complete::archetypes())]
    pub(crate) archetype: Option<String>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Approve for the workers of a fleet, with your join file
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    pub(crate) fleet: Option<PathBuf>,
    /// With --fleet: the repository's name in the queue [default: the name of its folder]
    #[arg(long, value_name = "REPOSITORY", requires = "fleet")]
    pub(crate) name: Option<String>,
    /// Revoke the approval
    #[arg(long, conflicts_with = "run")]
    pub(crate) revoke: bool,
    /// Adopt a run that this machine did not start: show its commands and ask
    #[arg(long, value_name = "RUN", add = complete::runs())]
    pub(crate) run: Option<String>,
    /// Show what would be approved without approving it
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
    /// Approve without asking; without a terminal nothing else approves
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// An archetype (guardian), workflow (standard), team, lens or domain (security, writing), reason (max_cycles) or exit code (14);
    /// `answer <FILE>`: what would be read in an agent's answer; `same <A> <B>`: whether two findings (JSON) are one
    #[arg(add = complete::explained())]
    pub(crate) what: String,
    /// Files for `answer` and `same`; - is standard input
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Whose answer it is, for `answer` [default: guardian]
    #[arg(long, value_name = "ARCHETYPE", add = complete::archetypes())]
    pub(crate) role: Option<String>,
    /// Copy an archetype's prompt to .archeflow/archetypes/ for editing
    #[arg(long)]
    pub(crate) eject: bool,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) what: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting in effect and its source
    Show(Listing),
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl Command {
    /// Whether a terminal is needed to draw on.
    #[expect(clippy::wildcard_enum_match_arm, reason = "few commands drive")]
    pub(crate) fn tui(&self) -> bool {
        match self {
            Command::Run(args) => args.session.tui,
            Command::Review(args) => args.tui,
            Command::Resume(args) => args.session.tui,
            Command::Merge(args) => args.session.tui,
            Command::Revert(args) => args.session.tui,
            Command::Rollback(args) => args.session.tui,
            Command::Answer(args) => args.session.tui,
            Command::Continue(args) => args.session.tui,
            Command::Demo(args) => args.tui,
            Command::Loop(args) => args.what.session().is_some_and(|session| session.tui),
            _ => false,
        }
    }

    /// Whether the caller wants JSON, also when things go wrong.
    pub(crate) fn json(&self) -> bool {
        match self {
            Command::Run(args) => args.session.place.json,
            Command::Review(args) => args.place.json,
            Command::Resume(args) => args.session.place.json,
            Command::Merge(args) => args.session.place.json,
            Command::Revert(args) => args.session.place.json,
            Command::Rollback(args) => args.session.place.json,
            Command::Discard(args) => args.session.place.json,
            Command::Answer(args) => args.session.place.json,
            Command::Continue(args) => args.session.place.json,
            Command::Pause(args) | Command::Stop(args) => args.place.json,
            Command::Status(args) => args.place.json,
            Command::Forget(args) => args.json,
            Command::Gc(args) => args.place.json,
            Command::List(args) => args.place.json,
            Command::Doctor(args) => args.place.json,
            Command::Show(args) => args.place.json,
            Command::Watch(args) => args.place.json,
            Command::Replay(args) => args.what.place().json,
            Command::Report(args) => args.place.json,
            Command::Pr(args) => args.place.json,
            Command::Dag(args) => args.place.json,
            Command::Export(args) => args.what.place().json,
            Command::Import(args) => args.place.json,
            Command::Score(args) => args.place.json,
            Command::Demo(args) => args.json,
            Command::Init(args) => args.place.json,
            Command::Trust(args) => args.place.json,
            Command::Explain(args) => args.place.json,
            Command::Config(ConfigArgs { what: ConfigCommand::Show(args) }) => args.place.json,
            Command::Memory(args) => args.what.place().json,
            Command::Notify(NotifyArgs { what: NotifyCommand::Test(args) }) => args.place.json,
            Command::Sprint(args) => args.what.place().json,
            Command::Fleet(args) => args.what.json(),
            Command::Eval(args) => args.what.json(),
            Command::Loop(args) => args.what.place().json,
            Command::Completions { .. }
            | Command::Ui(_)
            | Command::Worker(_)
            | Command::Lsp
            | Command::Mcp(_)
            | Command::Hook(_)
            | Command::Play { .. }
            | Command::Sim { .. }
            | Command::Acp(_)
            | Command::Model { .. }
            | Command::Watcher => false,
        }
    }
}

pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    tried(&arguments).map_err(|error| {
        let text = error.render().to_string();
        let code = u8::try_from(error.exit_code()).unwrap_or(2);
        // Help and version are results like any other.
        if !error.use_stderr() {
            return ExitCode::from(CommandOutput::text(text).with_code(code).print());
        }
        tell_part!("{text}");
        if let Some(known) = names::known(command, &arguments, error.kind()) {
            tell!("  Known here: {known}");
        }
        ExitCode::from(code)
    })
}

fn tried(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    match worker::alone(arguments) {
        Some(args) => Ok(Cli { command: Command::Worker(args) }),
        None => Cli::try_parse_from(arguments),
    }
}

pub(crate) fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
mod tests;
