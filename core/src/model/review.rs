//! A change that somebody brings along to be looked at, and how findings about it are proved and known again.

use serde::{Deserialize, Serialize};

use super::Splitting;
use crate::event::Artifact;

/// What a review is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    pub kind: SubjectKind,
    /// The branch, range, file or number as it was typed; empty where there is only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Reviews of the same thing have the same key, however far it has moved on in between.
    pub key: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectKind {
    WorkingTree,
    Staged,
    Branch,
    Commits,
    Patch,
    PullRequest,
}

impl SubjectKind {
    pub fn name(self) -> &'static str {
        match self {
            SubjectKind::WorkingTree => "working tree",
            SubjectKind::Staged => "staged changes",
            SubjectKind::Branch => "branch",
            SubjectKind::Commits => "commits",
            SubjectKind::Patch => "patch",
            SubjectKind::PullRequest => "pull request",
        }
    }
}

impl Subject {
    pub fn said(&self) -> String {
        match self.name.as_str() {
            "" => self.kind.name().to_owned(),
            name => format!("{} {name}", self.kind.name()),
        }
    }
}

/// As much of a diff as one agent is shown at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewPart {
    pub artifact: Artifact,
    pub files: u32,
    pub lines: u64,
    pub bytes: u64,
}

/// A finding that people know and live with.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AcceptedFinding {
    pub fingerprint: String,
    pub reason: String,
}

/// How a reviewer says its finding can be seen to be true.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Reproduction {
    /// Run by `sh -c` in a scratch copy of the reviewed tree. It fails where the finding is true.
    pub command: String,
    /// What is laid into the scratch copy first, usually a failing test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Scratch>,
    /// It worked before this change: the same command has to pass on the base.
    pub regression: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scratch {
    pub path: String,
    pub content: String,
}

/// What running a reproduction came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReproductionResult {
    /// Fails on the change and, for a regression, passes on the base.
    Confirmed,
    /// Could not be run, or fails without the change as well.
    NotReproduced,
    /// Passes on the change.
    Refuted,
}

impl ReproductionResult {
    pub fn name(self) -> &'static str {
        match self {
            ReproductionResult::Confirmed => "confirmed",
            ReproductionResult::NotReproduced => "not_reproduced",
            ReproductionResult::Refuted => "refuted",
        }
    }
}

/// What a review may do and take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reviewing {
    /// How long one execution of a reproduction may take.
    pub trial_ms: u64,
    /// How many reproductions are run per part; what is beyond is not tried.
    pub trials: u32,
    /// How a long diff is cut into parts.
    pub splitting: Splitting,
}

impl Default for Reviewing {
    fn default() -> Self {
        Reviewing { trial_ms: 120_000, trials: 20, splitting: Splitting::default() }
    }
}

impl Reviewing {
    pub fn is_default(&self) -> bool {
        *self == Reviewing::default()
    }
}
