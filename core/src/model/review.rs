//! A change that is brought to be reviewed, and how findings about it are reproduced and recognised again.

use serde::{Deserialize, Serialize};

use super::Splitting;
use super::named::named;
use crate::event::Artifact;
use crate::settings::settings;

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

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SubjectKind {
        WorkingTree = "working tree",
        Staged = "staged changes",
        Branch = "branch",
        Commits = "commits",
        Patch = "patch",
        PullRequest = "pull request",
    }
}

impl Subject {
    pub fn label(&self) -> String {
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

/// A finding that people know and accept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AcceptedFinding {
    pub fingerprint: String,
    pub reason: String,
}

/// How a finding can be reproduced, according to its reviewer.
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

named! {
    /// The result of running a reproduction.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum ReproductionResult {
        /// Fails on the change and, for a regression, passes on the base.
        Confirmed = "confirmed",
        /// Could not be run, or fails without the change as well.
        NotReproduced = "not_reproduced",
        /// Passes on the change.
        Refuted = "refuted",
    }
}

settings! {
    /// The bounds of a review.
    pub struct Reviewing at "review." in (run.review) {
        trial_ms: u64 = 120_000, "trial_seconds", Seconds(1, 3_600), GuardedAbove,
            "Time limit of a reproduction on each tree, in a review with `--verify`.";
        trials: u32 = 20, "trials", Whole(0, 1_000), GuardedAbove,
            "Most reproductions for each part of a review with `--verify`; the others are not tried.";
        /// How a long diff is cut into parts.
        splitting: Splitting = Splitting::default();
    }
}

impl Reviewing {
    pub fn is_default(&self) -> bool {
        *self == Reviewing::default()
    }
}
