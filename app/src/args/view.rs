//! The options of commands that look at a fleet.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args, Clone)]
pub(crate) struct FleetViewArgs {
    /// Join file of a fleet: show its runs instead of those of this machine
    #[arg(long, value_name = "FILE", conflicts_with = "repo")]
    pub(crate) fleet: Option<PathBuf>,
    /// With --fleet: do not ask the server; show what was last read from it
    #[arg(long, requires = "fleet")]
    pub(crate) offline: bool,
}
