//! The options of `archeflow hook`.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    pub(crate) what: HookCommand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum HookCommand {
    /// Print the domain of the repository and what waits for you in it, when Claude Code starts a session
    ClaudeSessionStart,
    /// Review what is not committed when Claude Code ends a turn, if client.review_on_stop is set
    ClaudeStop {
        /// Seconds to wait for the review, which goes on in any case
        #[arg(long, value_name = "SECONDS", default_value_t = 540, value_parser = clap::value_parser!(u64).range(0..=86_400))]
        wait: u64,
    },
}
