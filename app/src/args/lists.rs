//! The options of commands that list runs and repositories.

use std::path::PathBuf;

use clap::Args;

use super::{CommonArgs, FleetViewArgs, complete};

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Run: id, beginning of it, words of its task, last or @N [default: all that wait, run or ended lately]
    #[arg(value_name = "RUN", add = complete::runs())]
    pub(crate) id: Option<String>,
    /// Include runs that ended in other repositories
    #[arg(long, conflicts_with = "id")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) view: FleetViewArgs,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// Folders of repositories; their files are not touched
    #[arg(value_name = "DIR", required_unless_present = "gone")]
    pub(crate) folders: Vec<PathBuf>,
    /// Forget all repositories that are gone or have no runs any more
    #[arg(long, conflicts_with = "folders")]
    pub(crate) gone: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct GcArgs {
    /// Show what would be removed and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Clean up after the runs of all repositories
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// List the runs of all repositories; the default outside of a repository
    #[arg(long)]
    pub(crate) all: bool,
    /// Show only the last N runs
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) limit: Option<usize>,
    #[command(flatten)]
    pub(crate) view: FleetViewArgs,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}
