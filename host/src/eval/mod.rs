//! Suites of tasks for evaluation: what a task is, how a suite is read, and the proof that each task measures what it says.
//!
//! A suite may come from anybody. Reading it runs nothing; its commands run in the sandbox of test commands, in copies that
//! are removed afterwards. [`arms`] has the ways of working that are compared; [`run`] tries each task in each of them, by
//! runs of archeflow in repositories of their own.

pub mod arms;
pub mod check;
pub mod confined;
mod copy;
mod folders;
pub mod pack;
pub mod population;
pub mod record;
pub mod run;
pub mod sight;
pub mod suite;
pub mod swe;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::model::Money;

use crate::git::ObjectId;

/// A suite as it was read, with everything that is wrong in it.
#[derive(Debug)]
pub struct EvalSuite {
    pub name: String,
    pub about: String,
    /// The folder that its commands must not look into; `None` for a file.
    pub root: Option<PathBuf>,
    /// Tasks that could be read.
    pub tasks: Vec<EvalTask>,
    /// Names of the tasks that could not.
    pub unread: Vec<String>,
    pub faults: Vec<SuiteFault>,
}

#[derive(Debug, Clone)]
pub struct EvalTask {
    pub name: String,
    /// The file that describes it, as the user names it.
    pub file: String,
    /// Where it begins in that file.
    pub line: u32,
    pub language: Option<String>,
    /// What agents are asked to do.
    pub text: String,
    /// What agents may run themselves. `None` where a suite names no tests that pass before the change.
    pub visible: Option<EvalCommand>,
    pub hidden: EvalCommand,
    /// The longest time for the task, and for each of its commands.
    pub limit: Duration,
    pub dollars: Option<Money>,
    pub traps: Vec<EvalTrap>,
    pub origin: TaskOrigin,
    pub hidden_files: TaskFiles,
    pub reference: Option<TaskFiles>,
    /// A wrong solution that the visible tests pass.
    pub trap: Option<TaskFiles>,
}

/// A shell command and the line that has it.
#[derive(Debug, Clone)]
pub struct EvalCommand {
    pub command: String,
    pub line: u32,
}

/// Something that leads agents astray.
#[derive(Debug, Clone)]
pub struct EvalTrap {
    pub name: String,
    pub kind: TrapKind,
    pub text: String,
    /// Exits with 0 if a solution fell into it.
    pub fallen: EvalCommand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrapKind {
    /// A change that suggests itself and is wrong.
    WrongChange,
    /// Something in the code that looks like the cause and is not.
    RedHerring,
    /// An order to agents in a file of the repository.
    InjectedOrder,
}

impl TrapKind {
    pub const ALL: [TrapKind; 3] = [TrapKind::WrongChange, TrapKind::RedHerring, TrapKind::InjectedOrder];

    pub fn name(self) -> &'static str {
        match self {
            TrapKind::WrongChange => "wrong_change",
            TrapKind::RedHerring => "red_herring",
            TrapKind::InjectedOrder => "injected_order",
        }
    }
}

/// The repository that agents get.
#[derive(Debug, Clone)]
pub enum TaskOrigin {
    /// Plain files, which become the only commit.
    Files(PathBuf),
    Commit {
        place: RepositoryPlace,
        commit: ObjectId,
        line: u32,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum RepositoryPlace {
    /// A repository that belongs to the suite.
    OfSuite(PathBuf),
    Bundle(PathBuf),
    /// A clone of the user's.
    Clone(PathBuf),
}

impl RepositoryPlace {
    pub fn path(&self) -> &Path {
        match self {
            RepositoryPlace::OfSuite(path) | RepositoryPlace::Bundle(path) | RepositoryPlace::Clone(path) => {
                path
            }
        }
    }
}

/// Files that are added to a copy of the repository.
#[derive(Debug, Clone)]
pub enum TaskFiles {
    Folder(PathBuf),
    Patch {
        text: String,
        /// The field that has it.
        field: &'static str,
    },
}

/// One thing wrong with a suite, in words its author can act on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuiteFault {
    /// Empty if it is about the whole suite.
    pub task: String,
    pub place: String,
    /// From 1; 0 if it is about the whole file or folder.
    pub line: u32,
    pub text: String,
    pub remedy: String,
    /// The last lines that a command printed, without controls.
    pub output: Vec<String>,
}

impl fmt::Display for SuiteFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.place, self.text)?,
            line => write!(f, "{}:{line}: {}", self.place, self.text)?,
        }
        for line in &self.output {
            write!(f, "\n    | {line}")?;
        }
        write!(f, "\n  {}", self.remedy)
    }
}

/// Names become folders and branches.
const LONGEST_NAME: usize = 100;

/// Why this can't be the name of a task.
fn bad_name(name: &str) -> Option<&'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty()
        || name.len() > LONGEST_NAME
        || name.starts_with(['-', '.'])
        || !name.chars().all(is_plain)
    {
        return Some("the name is not made of letters, digits, `-`, `_` and `.`, or begins with `-` or `.`");
    }
    None
}
