//! Arguments of hidden commands, for when the program starts itself.

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    /// The agent may change its working copy
    #[arg(long)]
    pub(crate) writes: bool,
    /// The session to take up again
    #[arg(long)]
    pub(crate) resumes: Option<String>,
    /// The agent's command line
    pub(crate) command: String,
}
