//! The options of every command that drives a run.

use std::path::PathBuf;

use clap::Args;

use super::CommonArgs;

/// How a session is driven.
#[derive(Debug, Args, Clone)]
pub(crate) struct Session {
    /// Merge without asking once approved and tested
    #[arg(long)]
    pub(crate) auto_merge: bool,
    /// Never ask; exit with code 10 instead of asking a question
    #[arg(long)]
    pub(crate) unattended: bool,
    /// Show progress full screen
    #[arg(long)]
    pub(crate) tui: bool,
    /// Origin of the decision, set by pages and by the server for coding agents
    #[arg(long, value_name = "WAY", hide = true, value_parser = ["ui", "mcp"])]
    pub(crate) by: Option<String>,
    /// Line of the journal that the decision is about, set by pages; refused if the run has moved
    #[arg(long, value_name = "LINE", hide = true)]
    pub(crate) at: Option<u64>,
    /// Socket of the process that has each line of the journal before anything follows from it; set by workers
    #[arg(long, value_name = "SOCKET", hide = true)]
    pub(crate) replica: Option<PathBuf>,
    /// Approval of the repository's configuration by name and digest, set by workers; holds for exactly this content
    #[arg(long, value_name = "NAME=DIGEST", hide = true)]
    pub(crate) approved: Option<String>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

impl Session {
    /// A session that was not typed: nobody decided anything.
    pub(crate) fn of(place: &CommonArgs, unattended: bool, tui: bool) -> Session {
        Session {
            auto_merge: false,
            unattended,
            tui,
            by: None,
            at: None,
            replica: None,
            approved: None,
            place: place.clone(),
        }
    }

    /// How the decision came; empty if it was typed.
    pub(crate) fn by(&self) -> String {
        self.by.clone().unwrap_or_default()
    }
}
