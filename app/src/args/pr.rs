//! The options of `archeflow pr`.

use clap::Args;

use super::{CommonArgs, complete};

#[derive(Debug, Args)]
pub(crate) struct PrArgs {
    /// Run whose branch is proposed [default: the newest]
    #[arg(add = complete::runs())]
    pub(crate) id: Option<String>,
    /// Open it as a draft
    #[arg(long)]
    pub(crate) draft: bool,
    /// Push the branch to `origin` first; only typed, never configured
    #[arg(long)]
    pub(crate) push: bool,
    /// Title [default: first line of the task]
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Branch to merge into [default: the target of the run]
    #[arg(long, value_name = "BRANCH")]
    pub(crate) base: Option<String>,
    /// Print the requests, and send none that changes anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}
