//! The options of `archeflow mcp`.

use std::path::PathBuf;

use clap::Args;

/// There is no option for a configuration file or against the sandbox: a repository can hold the line that a client starts
/// the server with.
#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    /// Repository [default: the one that contains the current folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) repo: Option<PathBuf>,
}
