//! The options of `archeflow notify`.

use clap::{Args, Subcommand};

use super::CommonArgs;

#[derive(Debug, Args)]
pub(crate) struct NotifyArgs {
    #[command(subcommand)]
    pub(crate) what: NotifyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NotifyCommand {
    /// Send a test message over every channel of your configuration
    Test(NotifyTest),
}

#[derive(Debug, Args)]
pub(crate) struct NotifyTest {
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}
