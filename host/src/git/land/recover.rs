//! After a crash: finishing a move that was begun, or leaving everything alone.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::forward::{swap, vanishes};
use super::settle::{Goal, SettleResult, settle, standing};
use super::{Error, Move};
use crate::failpoint;
use crate::git::checkouts::Checkout;
use crate::git::repo::Repo;
use crate::git::{ObjectId, change, files};
use crate::platform::{files as os, process};

/// What became of an interrupted move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovered {
    /// The move had been completed before the crash.
    AlreadyDone,
    /// The move was completed now.
    Completed,
    /// Nothing had been touched, and nothing was.
    NotStarted,
    /// Changes of the user are in the way; nothing was written.
    Stopped { path: Vec<u8>, why: String },
    /// The branch is neither where it was nor where it was to go; nothing was written.
    BranchMoved { now: Option<ObjectId> },
}

/// Completes the written-down move, if it was begun and nothing of the user's is in the way.
///
/// `since` is when the move was written down. A lock file that is younger, that no living process has open,
/// and that does not go away by itself, was left by our own dead child and is removed; any other stops the
/// recovery. The caller holds the repository's lock, and the processes of the earlier program are gone.
pub fn recover(repo: &Repo, step: &Move, since: SystemTime) -> Result<Recovered, Error> {
    let now = repo.resolve(&step.branch)?;
    let done = now.as_ref() == Some(&step.new);
    if !done && now.as_ref() != Some(&step.old) {
        return Ok(Recovered::BranchMoved { now });
    }
    let changed = change::touched(repo, &step.old, &step.new)?;
    let mut trees = repo.checkouts()?;
    trees.retain(|one| one.branch.as_deref() == Some(&step.branch));
    if let Some(stopped) = clear_locks(repo, step, &trees, since)? {
        return Ok(stopped);
    }
    let mut unfinished: Vec<&Checkout> = Vec::new();
    let mut begun = false;
    for tree in &trees {
        let standing = standing(repo, tree, &changed)?;
        begun |= !standing.all_old;
        // Once branch and index are new, whatever else is on disk came later and is the user's.
        if !(done && standing.index_all_new) {
            unfinished.push(tree);
        }
    }
    if done && unfinished.is_empty() {
        return Ok(Recovered::AlreadyDone);
    }
    if !done && !begun {
        return Ok(Recovered::NotStarted);
    }
    for tree in unfinished {
        if let SettleResult::Stopped { path, why } = settle(repo, tree, &changed, Goal::New)? {
            return Ok(Recovered::Stopped { path, why });
        }
    }
    failpoint::pass("recover.settled");
    if !done && !swap(repo, &step.branch, &step.new, &step.old)? {
        return Ok(Recovered::BranchMoved { now: repo.resolve(&step.branch)? });
    }
    failpoint::pass("recover.done");
    Ok(Recovered::Completed)
}

fn clear_locks(
    repo: &Repo,
    step: &Move,
    trees: &[Checkout],
    since: SystemTime,
) -> Result<Option<Recovered>, Error> {
    let mut locks =
        vec![repo.common_dir.join(format!("{}.lock", step.branch)), repo.common_dir.join("HEAD.lock")];
    for tree in trees {
        locks.extend(["index.lock", "HEAD.lock"].map(|name| tree.git_dir.join(name)));
    }
    for lock in locks {
        if vanishes(&lock, Duration::from_millis(500)) {
            continue;
        }
        if let Some(why) = foreign(&lock, since) {
            return Ok(Some(Recovered::Stopped { path: os::bytes(&lock).to_vec(), why }));
        }
        files::remove(&lock).map_err(|source| Error::Io { path: lock.clone(), source })?;
    }
    Ok(None)
}

/// Why a lock file can't be our dead child's.
fn foreign(lock: &Path, since: SystemTime) -> Option<String> {
    let made = fs::symlink_metadata(lock).and_then(|meta| meta.modified()).ok()?;
    // File times may be cut to whole seconds.
    if made + Duration::from_secs(2) < since {
        return Some("the lock is older than the move; remove it if no git is running".to_owned());
    }
    let holder = process::has_open(lock)?;
    Some(format!("the lock is held by process {holder}"))
}
