//! What the Maker did to the tree, as git and the program's own eyes report it.

use serde::{Deserialize, Serialize};

use super::Oid;
use super::named::named;
use crate::text::path_key;

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
    /// The beginning of the content's name in git, so that cycles can be compared; empty in journals from before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub content: String,
}

impl Change {
    /// What a file contains now, or that the change does not hold it. `None` where that is not known.
    fn content_of(&self, path: &str) -> Option<&str> {
        let key = path_key(path);
        match self.files.iter().find(|file| path_key(&file.path) == key) {
            Some(file) => Some(file.content.as_str()).filter(|content| !content.is_empty()),
            None => (self.files_left_out == 0).then_some(""),
        }
    }

    /// Whether anything was done at one of these files since an earlier state of the work. An empty path is all files. What
    /// is not known counts as done.
    pub fn touched_since<'a>(&self, earlier: &Change, paths: impl IntoIterator<Item = &'a str>) -> bool {
        let known = |change: &Change| change.files.iter().any(|file| !file.content.is_empty());
        if !known(self) || !known(earlier) {
            return true;
        }
        if self.tree == earlier.tree {
            return false;
        }
        paths.into_iter().any(|path| {
            let (now, before) = (self.content_of(path), earlier.content_of(path));
            path.is_empty() || now.is_none() || before.is_none() || now != before
        })
    }
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
        LinterChanged = "linter_changed",
        TestCommandChanged = "test_command_changed",
        OldTestsFail = "old_tests_fail",
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}
