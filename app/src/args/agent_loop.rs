//! The options of `archeflow loop`.

use clap::{Args, Subcommand, ValueEnum};

use super::{Place, Session};

#[derive(Debug, Args)]
pub(crate) struct LoopArgs {
    #[command(subcommand)]
    pub(crate) what: LoopCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LoopCommand {
    /// Begin a loop on a goal
    Start(Box<LoopStart>),
    /// Where a loop is, whose turn it is, and what to type next
    Status(LoopLook),
    /// Answer what the loop asks; without a text, what you wrote into docs/context/current_cycle.md
    Answer(LoopAnswer),
    /// Say yes to a plan, or to a step that passed: then it lands
    Approve(LoopSay),
    /// Send a plan or a step back to the Planner
    Reject(LoopWords),
    /// End the loop; what was done stays on its branch
    Stop(LoopSay),
    /// Let a paused loop start again, with what should be done differently
    Restart(LoopWords),
    /// Empty the cycle file after a loop has ended; what stands in it stays in the archive
    Clear(LoopSay),
    /// Figures over all loops here, and whether they are as they should be
    Metrics(LoopPlace),
}

#[derive(Debug, Args)]
pub(crate) struct LoopStart {
    /// What is wanted; without it, the goal of your INIT block in docs/context/current_cycle.md
    pub(crate) goal: Option<String>,
    /// The project's name, for signatures; that of the folder if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Who plays Planner, Actor and Judge, e.g. 'cmd:my-agent'
    #[arg(long, value_name = "SPEC")]
    pub(crate) agent: Option<String>,
    /// Who plays one of them, e.g. judge=cmd:other-agent
    #[arg(long, value_name = "SEAT=SPEC")]
    pub(crate) agent_for: Vec<String>,
    /// The command that decides whether a tree is good
    #[arg(long, value_name = "CMD", conflicts_with = "no_tests")]
    pub(crate) test_command: Option<String>,
    /// Landing without tests is meant
    #[arg(long)]
    pub(crate) no_tests: bool,
    /// Plan all loops first and ask about that plan
    #[arg(long)]
    pub(crate) plan_all: bool,
    /// Ask after every step that passes, or when the whole goal is done
    #[arg(long, value_enum)]
    pub(crate) approval: Option<When>,
    /// Empty the cycle file first; what stands in it is kept in the archive
    #[arg(long)]
    pub(crate) clear: bool,
    /// What the loop may cost, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    /// The branch the change is for; the checked-out one if not given
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
    /// The loop; the one that is open, or the last one, if not given
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct LoopAnswer {
    /// What to say
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) which: Which,
    #[command(flatten)]
    pub(crate) session: LoopSession,
}

#[derive(Debug, Args)]
pub(crate) struct LoopWords {
    /// What should be different
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
    pub(crate) place: Place,
}

#[derive(Debug, Args, Clone)]
pub(crate) struct Which {
    /// The loop; the one that is open, or the last one, if not given
    #[arg(long = "run", value_name = "ID")]
    pub(crate) id: Option<String>,
}

/// How it is driven on. A loop lands by a person's yes alone, so nothing here can say it beforehand.
#[derive(Debug, Args, Clone)]
pub(crate) struct LoopSession {
    /// Never ask here: the loop rests with its question open
    #[arg(long)]
    pub(crate) unattended: bool,
    /// Show the loop on the whole screen while it goes on
    #[arg(long)]
    pub(crate) tui: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

impl LoopSession {
    pub(crate) fn session(&self) -> Session {
        Session { auto_merge: false, unattended: self.unattended, tui: self.tui, place: self.place.clone() }
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

    pub(crate) fn place(&self) -> &Place {
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
