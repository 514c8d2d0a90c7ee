//! The options of commands that continue or steer an existing run.

use clap::Args;

use super::{CommonArgs, Session};

#[derive(Debug, Args)]
pub(crate) struct SteerArgs {
    /// Run id
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MergeArgs {
    /// Run id
    pub(crate) id: String,
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
pub(crate) struct ResumeArgs {
    /// Run id
    pub(crate) id: String,
    /// If the account is rate-limited, wait until it is available again
    #[arg(long)]
    pub(crate) wait: bool,
    #[command(flatten)]
    pub(crate) session: Session,
}
