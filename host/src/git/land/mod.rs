//! Landing: building the merge commit, moving the user's branch to it, and finishing or leaving alone
//! what a crash interrupted.
//!
//! The order is always: [`build`] a commit that no ref points to yet, let it be tested, write down the [`Move`],
//! then [`land`] it. A branch moves only by compare-and-swap. Where it is checked out, the files move while
//! the ref is held, and before the ref moves: a branch at `new` means that the files are written.
//! After a crash, [`recover`] with the written-down move comes before anything else.

mod build;
mod forward;
mod recover;
mod settle;
mod verify;

use std::path::PathBuf;

pub use build::{
    BuildResult, BuildStrategy, Committer, RevertPreview, Work, build, conflicts, preview_revert, revert,
};
pub(crate) use forward::clash;
pub use forward::land;
pub use recover::{Recovered, recover};
pub use verify::{Unsound, verify};

use super::{ObjectId, runner, workspace};

/// A branch on its way from one commit to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    /// The full name, such as `refs/heads/main`.
    pub branch: String,
    pub old: ObjectId,
    pub new: ObjectId,
}

/// How an attempt to land ended. In every case but the first, nothing of the user's has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandAttempt {
    /// The branch moved, and with it these working trees.
    Moved { trees: Vec<PathBuf> },
    /// The branch is elsewhere; `None` when it is gone.
    BranchMoved { now: Option<ObjectId> },
    /// The user has work of their own at these paths.
    Dirty { paths: Vec<Vec<u8>> },
    /// Another operation is in progress; it is named.
    Busy { what: String },
}

/// Why landing stopped without an answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("commit {commit} is a merge, which can't be replayed; use the strategy no-ff")]
    MergeInWork { commit: ObjectId },
    #[error("the commit could not be signed: {what}")]
    Unsigned { what: String },
    #[error("{new} does not contain {old}, so the branch can't move forward to it")]
    NotForward { old: ObjectId, new: ObjectId },
    #[error("moving the files failed ({cause}) and {path} could not be put back: {why}")]
    LeftHalfway { cause: String, path: String, why: String },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error(transparent)]
    Git(#[from] runner::Error),
    #[error(transparent)]
    Keep(#[from] workspace::Error),
}
