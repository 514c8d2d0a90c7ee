//! The command line. Every option is explained here and nowhere else.

mod agent_loop;
mod inner;
mod known;
mod memory;
mod names;
mod sprint;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

pub(crate) use agent_loop::*;
pub(crate) use inner::AcpArgs;
pub(crate) use known::*;
pub(crate) use memory::*;
pub(crate) use sprint::*;

#[derive(Debug, Parser)]
#[command(
    name = "archeflow",
    version,
    about = "Takes a task through Plan-Do-Check-Act with coding agents, and lands only what was tested",
    after_help = "First time? `archeflow demo` shows a whole run without any account.\n\
                  Agents: claude, codex, anthropic, openai:<model>@<url>, ollama, cmd:<command line> (any program that reads a brief on stdin), script:<file> (a play file)."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Take a task through a whole run
    Run(Box<RunArgs>),
    /// Review a change that is there already: what you have not committed, a branch, a patch, a pull request
    Review(Box<ReviewArgs>),
    /// A queue of tasks over many repositories: look after it, and let them run side by side
    Sprint(SprintArgs),
    /// A person, a Planner, an Actor and a Judge take turns, one small step at a time
    Loop(LoopArgs),
    /// Go on with a run that was interrupted, or try a failed step again
    Resume(ResumeArgs),
    /// Answer the question a run waits with
    Answer(AnswerArgs),
    /// Let a stopped run go on
    Continue(ContinueArgs),
    /// Land a run that waits for your yes, or that you accept as it is
    Merge(MergeArgs),
    /// Give a run up; its work stays reachable under a ref of its own
    Discard(Known),
    /// How a run stands; without an id, what runs or waits for you, in all repositories
    Status(StatusArgs),
    /// The runs in this repository, or in all of them
    List(ListArgs),
    /// A run from beginning to end
    Show(ShowArgs),
    /// A run as it happens, on the whole screen; in lines where there is no terminal
    Watch(WatchArgs),
    /// A run looked at again: its decisions, what would have been, beside others
    Replay(ReplayArgs),
    /// What a run did, as a document: Markdown, one HTML file or one line
    Report(ReportArgs),
    /// The events of a run and what caused what
    Dag(DagArgs),
    /// How reviewers have done lately
    Score(ScoreArgs),
    /// See a whole run on a bundled sample, with scripted agents
    Demo(DemoArgs),
    /// Write a first configuration for this repository
    Init(InitArgs),
    /// Check git, folders, configuration and agents
    Doctor(DoctorArgs),
    /// Approve the commands this repository's configuration names
    Trust(TrustArgs),
    /// Explain an archetype, a workflow, or the reason a run ended
    Explain(ExplainArgs),
    /// Look at the configuration
    Config(ConfigArgs),
    /// What earlier runs taught, and what is told to later ones
    Memory(MemoryArgs),
    /// Print a completion script for your shell
    Completions {
        #[arg(value_enum)]
        shell: Shell,
    },
    #[command(name = "__play", hide = true)]
    Play { file: PathBuf },
    #[command(name = "__acp", hide = true)]
    Acp(AcpArgs),
    #[command(name = "__model", hide = true)]
    Model { task: String },
    #[command(name = "__watcher", hide = true)]
    Watcher,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// What is to be done
    #[arg(required_unless_present = "run")]
    pub(crate) task: Option<String>,
    /// fast, standard, thorough or the name of a workflow file; chosen from the task if not given
    #[arg(long)]
    pub(crate) workflow: Option<String>,
    /// Who sits: the name of a file in .archeflow/teams
    #[arg(long, value_name = "NAME")]
    pub(crate) team: Option<String>,
    /// Lenses laid over the archetypes, left to right, e.g. security,compliance-gdpr
    #[arg(long, value_name = "NAMES")]
    pub(crate) lens: Option<String>,
    /// pdca (cycles) or pipeline (linear); chosen from the task if not given
    #[arg(long)]
    pub(crate) strategy: Option<String>,
    /// Who plays all archetypes, e.g. 'cmd:my-agent'
    #[arg(long, value_name = "SPEC")]
    pub(crate) agent: Option<String>,
    /// Who plays one archetype, e.g. guardian=cmd:other-agent
    #[arg(long, value_name = "ARCHETYPE=SPEC")]
    pub(crate) agent_for: Vec<String>,
    /// Plan only, show the plan, then ask
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Begin at plan, do, check or act, with the artifacts of --run
    #[arg(long, value_name = "PHASE", requires = "run")]
    pub(crate) start_from: Option<String>,
    /// The run whose artifacts --start-from uses
    #[arg(long, value_name = "ID", requires = "start_from")]
    pub(crate) run: Option<String>,
    /// What the run may cost, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    /// code, writing or research; told by the project's files if not given
    #[arg(long)]
    pub(crate) domain: Option<String>,
    /// The command that decides whether a tree is good
    #[arg(long, value_name = "CMD", conflicts_with = "no_tests")]
    pub(crate) test_command: Option<String>,
    /// Landing without tests is meant
    #[arg(long)]
    pub(crate) no_tests: bool,
    /// What a sprint calls it
    #[arg(long = "as", value_name = "ID", hide = true, conflicts_with = "run")]
    pub(crate) named: Option<String>,
    /// The branch the change is for; the checked-out one if not given
    #[arg(long, value_name = "BRANCH")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// Only what is staged; without any of these: everything that is not committed
    #[arg(long, group = "subject")]
    pub(crate) staged: bool,
    /// A branch, from where it parted from --base
    #[arg(long, value_name = "BRANCH", group = "subject")]
    pub(crate) branch: Option<String>,
    /// Commits: A..B, or one commit
    #[arg(long, value_name = "RANGE", group = "subject")]
    pub(crate) commit: Option<String>,
    /// A patch, applied to --base or HEAD in a place of its own; - for standard input
    #[arg(long, value_name = "FILE", group = "subject")]
    pub(crate) patch: Option<PathBuf>,
    /// A pull request, through the forge's own command line client
    #[arg(long, value_name = "NUMBER", group = "subject")]
    pub(crate) pr: Option<u32>,
    /// Show the result of an earlier review again; nothing is reviewed
    #[arg(long, value_name = "ID", group = "subject")]
    pub(crate) run: Option<String>,
    /// What a branch or a patch is compared with
    #[arg(long, value_name = "COMMIT")]
    pub(crate) base: Option<String>,
    /// Who reviews, e.g. guardian,skeptic,sage,trickster; the guardian if not given
    #[arg(long, value_name = "NAMES", conflicts_with_all = ["workflow", "team"])]
    pub(crate) reviewers: Option<String>,
    /// The reviewers of fast, standard or thorough, or of a file in .archeflow/workflows
    #[arg(long)]
    pub(crate) workflow: Option<String>,
    /// The reviewers of a file in .archeflow/teams
    #[arg(long, value_name = "NAME")]
    pub(crate) team: Option<String>,
    /// Lenses laid over the reviewers, left to right, e.g. security,compliance-gdpr
    #[arg(long, value_name = "NAMES")]
    pub(crate) lens: Option<String>,
    /// code, writing or research; told by the project's files if not given
    #[arg(long)]
    pub(crate) domain: Option<String>,
    /// Who plays all reviewers, e.g. 'cmd:my-agent'
    #[arg(long, value_name = "SPEC")]
    pub(crate) agent: Option<String>,
    /// Who plays one of them, e.g. guardian=cmd:other-agent
    #[arg(long, value_name = "ARCHETYPE=SPEC")]
    pub(crate) agent_for: Vec<String>,
    /// What the review may cost, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    /// Run the reproductions that reviewers attach, in scratch copies
    #[arg(long)]
    pub(crate) verify: bool,
    /// Tell only what changed since the last review of the same thing, and nothing if nothing did
    #[arg(long)]
    pub(crate) since_last: bool,
    /// Findings that are accepted, with reasons; .archeflow/baseline.json of the base if not given
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Accept what counts now: write it into this file, with --reason
    #[arg(long, value_name = "FILE", requires = "reason")]
    pub(crate) write_baseline: Option<PathBuf>,
    /// Why it is accepted
    #[arg(long, value_name = "TEXT", requires = "write_baseline")]
    pub(crate) reason: Option<String>,
    /// terminal, markdown, json, sarif, rdjson or github
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Where the result goes; standard output if not given
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// End with exit 14 if a finding that counts is at least critical or warning
    #[arg(long, value_name = "SEVERITY")]
    pub(crate) fail_on: Option<String>,
    /// Never ask: what would be a question ends the review with exit 10
    #[arg(long)]
    pub(crate) unattended: bool,
    /// Show it on the whole screen while it is under way
    #[arg(long, conflicts_with = "unattended")]
    pub(crate) tui: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

/// How a session is driven.
#[derive(Debug, Args, Clone)]
pub(crate) struct Session {
    /// Land without asking when approved and tested
    #[arg(long)]
    pub(crate) auto_merge: bool,
    /// Never ask: what would be a question ends the run with exit 10
    #[arg(long)]
    pub(crate) unattended: bool,
    /// Show the run on the whole screen while it goes on
    #[arg(long)]
    pub(crate) tui: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args, Clone)]
pub(crate) struct Place {
    /// The repository; the one around the current folder if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
    /// A configuration file for this call, above the user's own
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print one JSON object on standard output at the end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Known {
    /// The run
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The run
    pub(crate) id: String,
    /// Your answer
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
pub(crate) struct ContinueArgs {
    /// The run
    pub(crate) id: String,
    /// One more cycle in spite of the stop
    #[arg(long, required_unless_present_any = ["ruling", "accept", "rescope"])]
    pub(crate) one_more_cycle: bool,
    /// Say what holds where reviewers contradict each other; told to everybody, with one more cycle
    #[arg(long, value_name = "TEXT")]
    pub(crate) ruling: Option<String>,
    /// Accept a finding as it is, by its id; what is left is judged anew
    #[arg(long, value_name = "FINDING")]
    pub(crate) accept: Vec<String>,
    /// Give the task another scope, with one more cycle
    #[arg(long, value_name = "TEXT")]
    pub(crate) rescope: Option<String>,
    /// What the whole run may cost from now on, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The run; if not given, everything that runs or waits, and the latest run here
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Every repository you have run in; also what is shown outside of a repository
    #[arg(long)]
    pub(crate) all: bool,
    /// Only the last so many
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct Listing {
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Also ask an agent one small question, which costs what an answer costs; without a name, the one `run` would take
    #[arg(long = "try", value_name = "AGENT", num_args = 0..=1, default_missing_value = "")]
    pub(crate) tried: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The run
    pub(crate) id: String,
    /// Every decision with its rule and what it looked at; with a line number or a topic, that one in full
    #[arg(long)]
    pub(crate) why: bool,
    /// With --why: the number of a decision's line, a rule (A2), an archetype or a topic (convergence)
    #[arg(value_name = "LINE|TOPIC", requires = "why")]
    pub(crate) what: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The run or the sprint; if not given, the sprint under way here, else the newest run under way, else the newest
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    #[command(subcommand)]
    pub(crate) what: ReplayCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReplayCommand {
    /// Every decision in order, with rule, confidence and what it looked at
    Timeline(ReplayTimeline),
    /// What would have been under other reviewer weights or another policy
    Whatif(ReplayWhatif),
    /// Runs side by side
    Compare(ReplayCompare),
}

#[derive(Debug, Args)]
pub(crate) struct ReplayTimeline {
    /// The run
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayWhatif {
    /// The run
    pub(crate) id: String,
    /// The weight of a reviewer's last verdict, e.g. guardian=2; 1 for everybody else
    #[arg(long, value_name = "ARCHETYPE=NUMBER", allow_hyphen_values = true)]
    pub(crate) weight: Vec<String>,
    /// The share of weight against it that blocks
    #[arg(long, value_name = "SHARE", allow_hyphen_values = true)]
    pub(crate) threshold: Option<String>,
    /// Another policy: any key of the configuration that a run is judged by, e.g. convergence.zero_policy=immediate
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Another workflow: fast, standard or thorough
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayCompare {
    /// The runs, two or more
    #[arg(required = true, num_args = 2.., value_name = "ID")]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

impl ReplayCommand {
    fn place(&self) -> &Place {
        match self {
            ReplayCommand::Timeline(args) => &args.place,
            ReplayCommand::Whatif(args) => &args.place,
            ReplayCommand::Compare(args) => &args.place,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The run
    pub(crate) id: String,
    /// One self-contained HTML page instead of Markdown
    #[arg(long)]
    pub(crate) html: bool,
    /// One line instead
    #[arg(long, conflicts_with_all = ["html", "dag"])]
    pub(crate) summary: bool,
    /// Add the tree of events
    #[arg(long)]
    pub(crate) dag: bool,
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct DagArgs {
    /// The run
    pub(crate) id: String,
    /// A graph for Graphviz
    #[arg(long, conflicts_with = "mermaid")]
    pub(crate) dot: bool,
    /// A graph for Mermaid
    #[arg(long)]
    pub(crate) mermaid: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct ScoreArgs {
    /// Only this archetype
    #[arg(long, value_name = "NAME")]
    pub(crate) archetype: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Where to make the sample repository; a new temporary folder if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// No pauses between the agents' lines
    #[arg(long)]
    pub(crate) quick: bool,
    /// Show the run on the whole screen
    #[arg(long)]
    pub(crate) tui: bool,
    /// Print one JSON object on standard output at the end
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// quick-fix, backend-feature, security-review, writing or research; none for a plain file
    #[arg(conflicts_with_all = ["from", "save", "list"])]
    pub(crate) bundle: Option<String>,
    /// Show the bundles there are
    #[arg(long, conflicts_with_all = ["from", "save"])]
    pub(crate) list: bool,
    /// Keep this project's configuration as a bundle of your own
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub(crate) save: Option<String>,
    /// Begin with a bundle of your own, or with a folder that holds one
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) from: Option<String>,
    /// Set a key of the configuration that is written, e.g. costs.budget_usd=3
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The test command to write; proposed from the project's files if not given
    #[arg(long, value_name = "CMD")]
    pub(crate) test_command: Option<String>,
    /// Show what would be written, write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Take the approval back
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Only show what would be approved
    #[arg(long, conflicts_with = "revoke")]
    pub(crate) show: bool,
    /// Approve without asking
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// An archetype (guardian), a workflow (standard), a team, a lens or a domain (security, writing), a reason (max_cycles), an exit code (14)
    pub(crate) what: String,
    /// Copy an archetype's text to .archeflow/archetypes/ for editing
    #[arg(long)]
    pub(crate) eject: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) what: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Every setting in force and where it comes from
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
            Command::Discard(args) => args.session.place.json,
            Command::Answer(args) => args.session.place.json,
            Command::Continue(args) => args.session.place.json,
            Command::Status(args) => args.place.json,
            Command::List(args) => args.place.json,
            Command::Doctor(args) => args.place.json,
            Command::Show(args) => args.place.json,
            Command::Watch(args) => args.place.json,
            Command::Replay(args) => args.what.place().json,
            Command::Report(args) => args.place.json,
            Command::Dag(args) => args.place.json,
            Command::Score(args) => args.place.json,
            Command::Demo(args) => args.json,
            Command::Init(args) => args.place.json,
            Command::Trust(args) => args.place.json,
            Command::Explain(args) => args.place.json,
            Command::Config(ConfigArgs { what: ConfigCommand::Show(args) }) => args.place.json,
            Command::Memory(args) => args.what.place().json,
            Command::Sprint(args) => args.what.place().json,
            Command::Loop(args) => args.what.place().json,
            Command::Completions { .. }
            | Command::Play { .. }
            | Command::Acp(_)
            | Command::Model { .. }
            | Command::Watcher => false,
        }
    }
}

pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    tried(&arguments).map_err(|error| {
        let _ = error.print();
        if let Some(known) = names::known(command, &arguments, error.kind()) {
            tell!("  Known here: {known}");
        }
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })
}

fn tried(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(arguments)
}

pub(crate) fn command() -> clap::Command {
    Cli::command()
}
