//! Isolated working copies for agents, kept and used again.
//!
//! A *slot* is a directory with the working copy (`tree`), a git directory of our own beside it (`host.git`)
//! and a lock. The copy's own `.git` is for the agent: it borrows the user's objects and has no remote, no
//! hook and no user configuration. Once an agent had it, it is hostile, so our side never runs git on it: it
//! is deleted and made again whenever the slot is handed out.
//!
//! Files that configure coding agents are not checked out where an agent works (`client_files.rs`).
//!
//! A maker's slot stays *pending* until what was made in it is published; a pending slot is never handed out
//! again by [`Pool::take`], so no crash can lose an agent's work. After a crash, [`Pool::pending`] hands such
//! slots out as they are, to be collected and published.

mod client_files;
mod collect;
mod publish;
mod slot;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

pub use client_files::left_out;
pub use collect::{CollectLimits, Collected};
pub use publish::retire;
pub use slot::Slot;

pub(super) use collect::by;
pub(super) use publish::update;

pub(crate) use publish::point;

use super::repo::Repo;
use super::{ObjectId, files, runner};
use crate::platform::files as os;
use crate::store::files::is_unwritable;

/// What a working copy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceKind {
    /// Changed by a maker; its content is collected.
    Maker,
    /// Looked at by reviewers; write-protected as far as the system allows.
    Reader,
    /// For running tests; nothing in it is kept, and nothing of an earlier use is in it.
    Scratch,
}

impl WorkspaceKind {
    fn name(self) -> &'static str {
        match self {
            WorkspaceKind::Maker => "maker",
            WorkspaceKind::Reader => "reader",
            WorkspaceKind::Scratch => "scratch",
        }
    }
}

/// Why a working copy could not be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the working copy {} is gone or was replaced", tree.display())]
    TreeGone { tree: PathBuf },
    #[error("branch {branch} is checked out in {}; switch that tree to another branch", tree.display())]
    CheckedOut { branch: String, tree: PathBuf },
    #[error("{reference} is not a ref of archeflow's own")]
    ForeignRef { reference: String },
    #[error("{} configures a coding agent and can't be kept out of its working copy: {source}", path.display())]
    ClientFile { path: PathBuf, source: io::Error },
    #[error(
        "{start}… is nested too deep: a working copy has at most {} folders in folders and paths of {} bytes",
        files::DEEPEST,
        files::LONGEST
    )]
    TooDeep { start: String },
    #[error("{} is used by another process", dir.display())]
    Busy { dir: PathBuf },
    #[error("a branch named `archeflow` is in the way of `archeflow/...`; rename it")]
    NameTaken,
    #[error(transparent)]
    Git(#[from] runner::Error),
    #[error("{} could not be used: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// All working copies for one repository.
#[derive(Debug, Clone)]
pub struct Pool {
    dir: PathBuf,
    repo: Repo,
}

impl Pool {
    pub fn new(state: &Path, repo: &Repo) -> Pool {
        Pool { dir: state.join("workspaces").join(repo.id()), repo: repo.clone() }
    }

    /// Hands out a working copy that is exactly `commit`.
    ///
    /// A slot that `owner` had before is preferred. A Maker's keeps its ignored files (build caches); for another owner
    /// everything that is not in `commit` is removed first. A scratch copy is made from nothing each time.
    pub fn take(&self, kind: WorkspaceKind, owner: &str, commit: &ObjectId) -> Result<Slot, Error> {
        let slot = self.make_ready(kind, owner, commit)?;
        if kind == WorkspaceKind::Maker {
            slot.hand_to_maker("")?;
        }
        Ok(slot)
    }

    /// The same for somebody who comes later: a maker's copy holds no work before [`Slot::hand_to_maker`].
    pub fn make_ready(&self, kind: WorkspaceKind, owner: &str, commit: &ObjectId) -> Result<Slot, Error> {
        files::make_private_dir(&self.dir).map_err(|source| Error::Io { path: self.dir.clone(), source })?;
        let mut slot = self.reserve(kind, owner, commit)?;
        slot.prepare(owner, commit)?;
        Ok(slot)
    }

    /// Makers' slots with work that was never published, as the agents left them. Those of one owner are waited for: what
    /// has them is a process of an earlier session that is about to end, or a cleaning. Of all owners, those that another
    /// process is using are left out.
    pub fn pending(&self, owner: Option<&str>) -> Result<Vec<Slot>, Error> {
        let mut found = Vec::new();
        for dir in self.dirs(WorkspaceKind::Maker) {
            // Locking another owner's slot, for however short a time, would hide it from its owner.
            let is_wanted = owner.is_none_or(|owner| slot::owned_by(&dir, owner));
            if !is_wanted || !files::exists(&dir.join(slot::PENDING)) {
                continue;
            }
            let wait = if owner.is_some() { WAIT } else { Duration::ZERO };
            let lock = lock_within(&dir, wait).map_err(|source| Error::Io { path: dir.clone(), source })?;
            match lock {
                Some(lock) => found.extend(Slot::pending(dir, &self.repo, lock)),
                None if owner.is_some() && files::exists(&dir) => return Err(Error::Busy { dir }),
                None => {}
            }
        }
        Ok(found)
    }

    /// Whether a maker's slot of `owner` is there and holds nothing that was not published.
    pub fn settled(&self, owner: &str) -> bool {
        let mut dirs = self.dirs(WorkspaceKind::Maker).into_iter();
        dirs.any(|dir| slot::owned_by(&dir, owner) && !files::exists(&dir.join(slot::PENDING)))
    }

    fn reserve(&self, kind: WorkspaceKind, owner: &str, commit: &ObjectId) -> Result<Slot, Error> {
        let mut free = self.dirs(kind);
        free.retain(|dir| !files::exists(&dir.join(slot::PENDING)));
        free.sort_by_key(|dir| (!slot::owned_by(dir, owner), !slot::is_at(dir, commit)));
        for dir in free {
            let lock = try_lock(&dir).map_err(|source| Error::Io { path: dir.clone(), source })?;
            // Only while we hold it can no other process change it.
            if let Some(lock) = lock.filter(|_| !files::exists(&dir.join(slot::PENDING))) {
                return Ok(Slot::new(kind, dir, &self.repo, lock));
            }
        }
        self.create(kind)
    }

    fn create(&self, kind: WorkspaceKind) -> Result<Slot, Error> {
        let mut n = 0_u32;
        loop {
            let dir = self.dir.join(format!("{}-{n}", kind.name()));
            let io = |source| Error::Io { path: dir.clone(), source };
            match os::private_directory().create(&dir) {
                Ok(()) => {
                    if let Some(lock) = try_lock(&dir).map_err(io)? {
                        return Ok(Slot::new(kind, dir, &self.repo, lock));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io(error)),
            }
            n += 1;
        }
    }

    fn dirs(&self, kind: WorkspaceKind) -> Vec<PathBuf> {
        let prefix = format!("{}-", kind.name());
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&prefix));
        let mut dirs: Vec<PathBuf> =
            ours.map(|entry| entry.path()).filter(|dir| files::is_real_dir(dir)).collect();
        dirs.sort();
        dirs
    }
}

/// Whether a name in the folder of a repository's working copies is that of a copy.
pub(crate) fn is_copy(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let kinds = [WorkspaceKind::Maker, WorkspaceKind::Reader, WorkspaceKind::Scratch];
    let number = |kind: WorkspaceKind| name.strip_prefix(kind.name())?.strip_prefix('-')?.parse::<u32>().ok();
    kinds.into_iter().any(|kind| number(kind).is_some())
}

/// A working copy that nobody uses, reserved until this is dropped.
pub(crate) struct IdleCopy {
    /// The run that had it last; empty if none had.
    pub(crate) owner: String,
    /// It holds work that was never published.
    pub(crate) pending: bool,
    _lock: File,
}

impl IdleCopy {
    /// `None` when a process uses it, or it is gone.
    pub(crate) fn reserve(dir: &Path) -> io::Result<Option<IdleCopy>> {
        let Some(lock) = try_lock(dir)? else { return Ok(None) };
        let owner = fs::read_to_string(dir.join("owner")).unwrap_or_default();
        Ok(Some(IdleCopy { owner, pending: files::exists(&dir.join(slot::PENDING)), _lock: lock }))
    }
}

/// How long a slot is waited for that another process still has.
const WAIT: Duration = Duration::from_secs(60);
const NAP: Duration = Duration::from_millis(5);

fn lock_within(dir: &Path, wait: Duration) -> io::Result<Option<File>> {
    let begun = Instant::now();
    loop {
        let lock = try_lock(dir)?;
        if lock.is_some() || begun.elapsed() >= wait || !files::exists(dir) {
            return Ok(lock);
        }
        thread::sleep(NAP);
    }
}

/// Reserves a slot for as long as the file stays open; `None` when another process has it, or has removed it.
fn try_lock(dir: &Path) -> io::Result<Option<File>> {
    let mut options = File::options();
    options.create(true).append(true);
    let place = dir.join(slot::LOCK);
    let file = match os::with_mode(&mut options, 0o600).open(&place) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        // Looking needs no writing: whoever uses the slot holds the same lock.
        Err(error) if is_unwritable(error.kind()) => File::open(&place)?,
        file => file?,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Ok(None),
        Err(fs::TryLockError::Error(error)) => return Err(error),
    }
    // A slot that was removed meanwhile may have been made anew.
    let held = os::identity(&file.metadata()?);
    let is_there = fs::symlink_metadata(&place).is_ok_and(|meta| os::identity(&meta) == held);
    Ok(is_there.then_some(file))
}
