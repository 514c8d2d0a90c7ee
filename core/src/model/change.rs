//! What the Maker did to the tree, as git and the program's own eyes report it.

use serde::{Deserialize, Serialize};

use super::Oid;
use super::named::named;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileStatus {
    Added,
    Modified,
    Deleted,
    TypeChanged,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedFile {
    /// Quoted as git quotes (D-11).
    pub path: String,
    pub status: FileStatus,
    /// 0 for a binary file.
    pub added: u32,
    pub deleted: u32,
}

/// The Maker's work so far: the whole difference from the run's base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub commit: Oid,
    pub tree: Oid,
    /// The ref that keeps it in the user's repository.
    pub kept_as: String,
    pub files: Vec<ChangedFile>,
    /// Files beyond the number kept in the log.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub files_left_out: u32,
    /// Test files among the changed ones, counted over all of them.
    pub test_files: u32,
    pub commits: u32,
    /// Part of it had not been committed by the agent and was by the program.
    pub uncommitted: bool,
    pub signs: Signs,
    /// Odd things seen while collecting the work, for people.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What the program itself notices in a change (D-07).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Signs {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<Counted>,
}

/// One sign, where it shows, and a line that explains it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Counted {
    pub sign: Sign,
    pub path: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u32,
    pub detail: String,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Sign {
        TestsRemoved = "tests_removed",
        TestsWeakened = "tests_weakened",
        CiChanged = "ci_changed",
        OwnStateChanged = "own_state_changed",
        Credential = "credential",
        SymlinkAdded = "symlink_added",
        SubmoduleChanged = "submodule_changed",
        LargeBinary = "large_binary",
        TestsFailing = "tests_failing",
        RunsCode = "runs_code",
        BuildChanged = "build_changed",
        SteersAgents = "steers_agents",
        BinaryChanged = "binary_changed",
        HiddenText = "hidden_text",
        NotShown = "not_shown",
        NamesClash = "names_clash",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}
