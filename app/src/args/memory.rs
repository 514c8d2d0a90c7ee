//! The options of `archeflow memory`.

use clap::{Args, Subcommand};

use super::CommonArgs;

#[derive(Debug, Args)]
pub(crate) struct MemoryArgs {
    #[command(subcommand)]
    pub(crate) what: MemoryCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryCommand {
    /// List the lessons
    List(MemoryList),
    /// Add a lesson, or restore one from the archive
    Add(MemoryAdd),
    /// Archive a lesson for good; it is not learned again
    Forget(MemoryOne),
    /// Show one lesson: the runs that used it and its effect
    Show(MemoryOne),
    /// Show which lessons a run was given, to which agents, why, and their effect
    Why(MemoryWhy),
}

#[derive(Debug, Args)]
pub(crate) struct MemoryList {
    /// List archived lessons, with the reason
    #[arg(long)]
    pub(crate) archived: bool,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryAdd {
    /// Lesson text
    #[arg(required_unless_present = "from_archive")]
    pub(crate) text: Option<String>,
    /// Type: preference (always used), pattern, archetype_hint or anti_pattern
    #[arg(long = "type", value_name = "TYPE", default_value = "preference")]
    pub(crate) kind: String,
    /// Limit the lesson to this archetype
    #[arg(long = "for", value_name = "ARCHETYPE")]
    pub(crate) archetype: Option<String>,
    /// Domain: code, writing, research or general
    #[arg(long, default_value = "general")]
    pub(crate) domain: String,
    /// Keyword; repeatable
    #[arg(long = "tag", value_name = "WORD")]
    pub(crate) tags: Vec<String>,
    /// Share the lesson with all your repositories that set `memory.share`
    #[arg(long)]
    pub(crate) shared: bool,
    /// Restore this lesson from the archive
    #[arg(long, value_name = "ID", conflicts_with_all = ["text", "shared", "archetype", "tags"])]
    pub(crate) from_archive: Option<String>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryOne {
    /// Lesson id, e.g. m-003
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MemoryWhy {
    /// Run: id, beginning of it, words of its task, last or @N [default: the newest]
    #[arg(value_name = "RUN", add = super::complete::runs())]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) place: CommonArgs,
}

impl MemoryCommand {
    pub(crate) fn place(&self) -> &CommonArgs {
        match self {
            MemoryCommand::List(args) => &args.place,
            MemoryCommand::Add(args) => &args.place,
            MemoryCommand::Forget(args) | MemoryCommand::Show(args) => &args.place,
            MemoryCommand::Why(args) => &args.place,
        }
    }
}
