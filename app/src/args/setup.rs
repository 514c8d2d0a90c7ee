//! The options of `demo` and `init`.

use std::path::PathBuf;

use clap::Args;

use super::{CommonArgs, complete};

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Folder for the sample repository [default: a new temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Skip the pauses between the agents' lines
    #[arg(long)]
    pub(crate) quick: bool,
    /// Start agents, test commands and hooks without a sandbox
    #[arg(long)]
    pub(crate) unsafe_no_sandbox: bool,
    /// Show progress full screen
    #[arg(long)]
    pub(crate) tui: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Bundle: quick-fix, backend-feature, security-review, writing or research [default: none]
    #[arg(conflicts_with_all = ["from", "save", "list"])]
    pub(crate) bundle: Option<String>,
    /// List the available bundles
    #[arg(long, conflicts_with_all = ["from", "save"])]
    pub(crate) list: bool,
    /// Save this project's configuration as your own bundle
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub(crate) save: Option<String>,
    /// Start from your own bundle, or from a folder that contains one
    #[arg(long, value_name = "NAME|DIR")]
    pub(crate) from: Option<String>,
    /// Set a key in the new configuration, e.g. costs.budget_usd=3; repeatable
    #[arg(long, value_name = "KEY=VALUE", add = complete::settings())]
    pub(crate) set: Vec<String>,
    /// Test command to write [default: detected from the project's files]
    #[arg(long, value_name = "CMD")]
    pub(crate) test_command: Option<String>,
    /// Setup command to write [default: detected from the project's files]
    #[arg(long, value_name = "CMD")]
    pub(crate) setup_command: Option<String>,
    /// Write what is proposed without asking; without a terminal nothing is asked anyway
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print the files without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}
