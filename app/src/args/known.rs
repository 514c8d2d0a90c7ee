//! The options of commands that continue or steer an existing run.

use clap::Args;

use super::{CommonArgs, Session, complete};

#[derive(Debug, Args)]
pub(crate) struct SteerArgs {
    /// Run: id, beginning of it, words of its task, last or @N [default: the only one that is running]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    /// Origin of the decision, set by pages and by the server for coding agents
    #[arg(long, value_name = "WAY", hide = true, value_parser = ["ui", "mcp"])]
    pub(crate) by: Option<String>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Run: id, beginning of it, words of its task, last or @N [default: the newest that waits for a merge]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    /// Run that is merged before this one in the same step; set by sprints
    #[arg(long, value_name = "RUN", hide = true, conflicts_with = "landed_with")]
    pub(crate) before: Vec<String>,
    /// Run whose merge included this one; set by sprints
    #[arg(long, value_name = "RUN", hide = true)]
    pub(crate) landed_with: Option<String>,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
pub(crate) struct RevertArgs {
    /// Run id
    pub(crate) id: String,
    /// Show what would change and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// Run: id, beginning of it, words of its task, last or @N
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: String,
    /// End of the phase to go back to: plan, do, check or act in a cycle, e.g. 1:do
    #[arg(long, value_name = "CYCLE:PHASE")]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// Run: id, beginning of it, words of its task, last or @N [default: the newest that is interrupted or paused]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    /// If the account is rate-limited, wait until it is available again
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
pub(crate) struct ContinueArgs {
    /// Run: id, beginning of it, words of its task, last or @N [default: the only one that was stopped]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    /// Run one more cycle despite the stop
    #[arg(long, required_unless_present_any = ["ruling", "accept", "rescope"])]
    pub(crate) one_more_cycle: bool,
    /// Decide between contradicting reviewers: all agents are given this text, with one more cycle
    #[arg(long, value_name = "TEXT")]
    pub(crate) ruling: Option<String>,
    /// Accept a finding by its id and judge the rest again; repeatable
    #[arg(long, value_name = "FINDING")]
    pub(crate) accept: Vec<String>,
    /// Reason for accepting the findings; kept in the journal
    #[arg(long, value_name = "TEXT", requires = "accept")]
    pub(crate) reason: Option<String>,
    /// Change the scope of the task, with one more cycle
    #[arg(long, value_name = "TEXT")]
    pub(crate) rescope: Option<String>,
    /// New cost limit of the whole run, in dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget: Option<String>,
    #[command(flatten)]
    pub(crate) session: Session,
}
