//! The second net: checking, after landing, that what landed is what was tested.

use std::collections::BTreeSet;

use super::Move;
use crate::git::repo::Repo;
use crate::git::{ObjectId, change, runner};

/// What is wrong with a landed change.
#[derive(Debug, thiserror::Error)]
pub enum Unsound {
    #[error("{branch} does not contain {new}")]
    NotLanded { branch: String, new: ObjectId },
    #[error("the tree of {new} is {landed}, but {tested} was tested")]
    OtherTree { new: ObjectId, landed: ObjectId, tested: ObjectId },
    #[error("{new} does not contain {old}: history was lost")]
    HistoryLost { old: ObjectId, new: ObjectId },
    #[error("{path} changed, which the work did not touch")]
    ForeignPath { path: String },
    #[error(transparent)]
    Git(#[from] runner::Error),
}

/// Checks that the branch holds `new`, that `new` is the tested tree on top of `old`, and that it changes no
/// path but `allowed` ones (any path when `None`).
pub fn verify(
    repo: &Repo,
    step: &Move,
    tested: &ObjectId,
    allowed: Option<&BTreeSet<Vec<u8>>>,
) -> Result<(), Unsound> {
    let now = repo.resolve(&step.branch)?;
    let landed = match now {
        Some(now) => now == step.new || repo.is_ancestor(&step.new, &now)?,
        None => false,
    };
    if !landed {
        return Err(Unsound::NotLanded { branch: step.branch.clone(), new: step.new.clone() });
    }
    let landed = repo.tree_of(&step.new)?;
    if landed != *tested {
        return Err(Unsound::OtherTree { new: step.new.clone(), landed, tested: tested.clone() });
    }
    if !repo.is_ancestor(&step.old, &step.new)? {
        return Err(Unsound::HistoryLost { old: step.old.clone(), new: step.new.clone() });
    }
    let Some(allowed) = allowed else { return Ok(()) };
    let changed = change::touched(repo, &step.old, &step.new)?;
    match changed.iter().find(|one| !allowed.contains(&one.path)) {
        Some(foreign) => Err(Unsound::ForeignPath { path: change::quote_path(&foreign.path) }),
        None => Ok(()),
    }
}
