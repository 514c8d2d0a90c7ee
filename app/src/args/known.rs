//! The options of commands that let an existing run go on.

use clap::Args;

use super::{Place, Session};

#[derive(Debug, Args)]
pub(crate) struct SteerArgs {
    /// Run id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// The run
    pub(crate) id: String,
    /// A run that lands before this one, in the same step; sprints say this
    #[arg(long, value_name = "RUN", hide = true, conflicts_with = "landed_with")]
    pub(crate) before: Vec<String>,
    /// The run whose landing took this one along; sprints say this
    #[arg(long, value_name = "RUN", hide = true)]
    pub(crate) landed_with: Option<String>,
    #[command(flatten)]
    pub(crate) session: Session,
}

#[derive(Debug, Args)]
pub(crate) struct ResumeArgs {
    /// The run
    pub(crate) id: String,
    /// Where the account is limited: wait until it serves again, then go on
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) session: Session,
}
