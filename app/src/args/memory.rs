//! The options of `archeflow memory`.

use clap::{Args, Subcommand};

use super::Place;

#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    pub(crate) what: MemoryCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// The lessons there are
    List(MemoryList),
    /// Write a lesson down, or take one back out of the archive
    Add(MemoryAdd),
    /// Put a lesson away for good; it is not learned again
    Forget(MemoryOne),
    /// Everything about one lesson: where it was told and what came of it
    Show(MemoryOne),
    /// Which lessons a run was told, who was told them and why, and what came of it
    Why(MemoryWhy),
}

#[derive(Debug, Args)]
pub(crate) struct MemoryList {
    /// Those that were put away, with the reason
    #[arg(long)]
    pub(crate) archived: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryAdd {
    /// What is to be remembered
    #[arg(required_unless_present = "from_archive")]
    pub(crate) text: Option<String>,
    /// preference (always told), pattern, archetype_hint or anti_pattern
    #[arg(long = "type", value_name = "TYPE", default_value = "preference")]
    pub(crate) kind: String,
    /// Only for this archetype
    #[arg(long = "for", value_name = "ARCHETYPE")]
    pub(crate) archetype: Option<String>,
    /// code, writing, research or general
    #[arg(long, default_value = "general")]
    pub(crate) domain: String,
    /// A word to find it by; may be given several times
    #[arg(long = "tag", value_name = "WORD")]
    pub(crate) tags: Vec<String>,
    /// For all your repositories; told where `memory.share` is on
    #[arg(long)]
    pub(crate) shared: bool,
    /// Take this lesson back out of the archive instead
    #[arg(long, value_name = "ID", conflicts_with_all = ["text", "shared", "archetype", "tags"])]
    pub(crate) from_archive: Option<String>,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryOne {
    /// The lesson, e.g. m-003
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryWhy {
    /// The run
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) place: Place,
}

impl MemoryCommand {
    pub(crate) fn place(&self) -> &Place {
        match self {
            MemoryCommand::List(args) => &args.place,
            MemoryCommand::Add(args) => &args.place,
            MemoryCommand::Forget(args) | MemoryCommand::Show(args) => &args.place,
            MemoryCommand::Why(args) => &args.place,
        }
    }
}
