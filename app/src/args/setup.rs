//! The options of `demo` and `init`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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

/// A coding agent that `init --client` sets up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientName {
    Claude,
    Codex,
    Gemini,
    Opencode,
}

impl std::fmt::Display for ClientName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.to_possible_value();
        out.write_str(name.as_ref().map_or("", |name| name.get_name()))
    }
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
    /// Set up a coding agent of yours instead: its server, commands and skill, in your own configuration of it
    #[arg(long, value_name = "NAME", conflicts_with_all = ["bundle", "list", "save", "from", "set", "test_command", "setup_command"])]
    pub(crate) client: Option<ClientName>,
    /// With --client: remove what was written for it
    #[arg(long, requires = "client")]
    pub(crate) remove: bool,
    /// Write what is proposed without asking; without a terminal nothing is asked anyway, and --client writes nothing
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print the files without writing them
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}
