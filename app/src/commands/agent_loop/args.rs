//! The options of `archeflow loop`.

use clap::{Args, Subcommand, ValueEnum};

use crate::args::{CommonArgs, Session};

#[derive(Debug, Args)]
pub(crate) struct LoopArgs {
    #[command(subcommand)]
    pub(crate) what: LoopCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LoopCommand {
    /// Start a loop on a goal
    Start(Box<LoopStart>),
    /// Show the state of a loop, whose turn it is, and the next command
    Status(LoopLook),
    /// Answer the open question; without a text, with your block in docs/context/current_cycle.md
    Answer(LoopAnswer),
    /// Approve a plan, or a step that passed, which is then merged
    Approve(LoopSay),
    /// Send a plan or a step back to the Planner
    Reject(LoopWords),
    /// End the loop; its work stays on its branch
    Stop(LoopSay),
    /// Restart a paused loop, with what to do differently
    Restart(LoopWords),
    /// Empty the cycle file after a loop has ended; its content is kept in the archive
    Clear(LoopSay),
    /// Show metrics of all loops in this repository, with their targets
    Metrics(LoopPlace),
}

#[derive(Debug, Args)]
#[command(after_help = crate::args::agents())]
pub(crate) struct LoopStart {
    /// Goal [default: the goal of your INIT block in docs/context/current_cycle.md]
    pub(crate) goal: Option<String>,
    /// Project name, for signatures [default: the folder's name]
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Agent for Planner, Actor and Judge, as listed below [default: an installed client]
    #[arg(long, value_name = "SPEC", add = crate::args::complete::agents())]
    pub(crate) agent: Option<String>,
    /// Agent for one role, e.g. judge=cmd:other-agent; repeatable
    #[arg(long, value_name = "SEAT=SPEC")]
    pub(crate) agent_for: Vec<String>,
    /// Test command that must pass before merging
    #[arg(long, value_name = "CMD", conflicts_with = "no_tests")]
    pub(crate) test_command: Option<String>,
    /// Allow merging without a test command
    #[arg(long)]
    pub(crate) no_tests: bool,
    /// Plan all steps first and ask for approval of that plan
    #[arg(long)]
    pub(crate) plan_all: bool,
    /// When to ask for approval: after every step that passes, or when the goal is complete
    #[arg(long, value_enum)]
    pub(crate) approval: Option<When>,
    /// Empty the cycle file first; its content is kept in the archive
    #[arg(long)]
    pub(crate) clear: bool,
    /// Cost limit of the loop, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    /// Branch to merge into [default: the checked-out branch]
    #[arg(long, value_name = "BRANCH")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) session: LoopSession,
}

/// When a person is asked whether something lands.
#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum When {
    #[value(alias = "every_pass")]
    Step,
    GoalComplete,
}

#[derive(Debug, Args)]
pub(crate) struct LoopLook {
    /// Loop: id, beginning of it, words of its goal, last or @N [default: the open loop, else the latest]
    #[arg(value_name = "LOOP", add = crate::args::complete::runs())]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LoopAnswer {
    /// Answer text
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) session: LoopSession,
}

#[derive(Debug, Args)]
pub(crate) struct LoopWords {
    /// Feedback: what to do differently
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) session: LoopSession,
}

#[derive(Debug, Args)]
pub(crate) struct LoopSay {
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) session: LoopSession,
}

#[derive(Debug, Args)]
pub(crate) struct LoopPlace {
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args, Clone)]
pub(crate) struct Which {
    /// Loop: id, beginning of it, words of its goal, last or @N [default: the open loop, else the latest]
    #[arg(long = "run", value_name = "LOOP", add = crate::args::complete::runs())]
    pub(crate) id: Option<String>,
}

/// How it is driven on. A loop lands by a person's yes alone, so nothing here can say it beforehand.
#[derive(Debug, Args, Clone)]
pub(crate) struct LoopSession {
    /// Never ask; end with the question open
    #[arg(long)]
    pub(crate) unattended: bool,
    /// Show progress full screen
    #[arg(long)]
    pub(crate) tui: bool,
    /// Origin of the words, set by pages and by the server for coding agents
    #[arg(long, value_name = "WAY", hide = true, value_parser = ["ui", "mcp"])]
    pub(crate) by: Option<String>,
    /// Line of the journal that they are about, set by pages; refused if the loop has moved
    #[arg(long, value_name = "LINE", hide = true)]
    pub(crate) at: Option<u64>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

impl LoopSession {
    pub(crate) fn session(&self) -> Session {
        let (by, at) = (self.by.clone(), self.at);
        Session { by, at, ..Session::of(&self.place, self.unattended, self.tui) }
    }
}

impl LoopCommand {
    pub(crate) fn session(&self) -> Option<&LoopSession> {
        match self {
            LoopCommand::Start(args) => Some(&args.session),
            LoopCommand::Answer(args) => Some(&args.session),
            LoopCommand::Approve(args) | LoopCommand::Stop(args) | LoopCommand::Clear(args) => {
                Some(&args.session)
            }
            LoopCommand::Reject(args) | LoopCommand::Restart(args) => Some(&args.session),
            LoopCommand::Status(_) | LoopCommand::Metrics(_) => None,
        }
    }

    pub(crate) fn place(&self) -> &CommonArgs {
        match self {
            LoopCommand::Status(args) => &args.place,
            LoopCommand::Metrics(args) => &args.place,
            LoopCommand::Start(args) => &args.session.place,
            LoopCommand::Answer(args) => &args.session.place,
            LoopCommand::Approve(args) | LoopCommand::Stop(args) | LoopCommand::Clear(args) => {
                &args.session.place
            }
            LoopCommand::Reject(args) | LoopCommand::Restart(args) => &args.session.place,
        }
    }
}
