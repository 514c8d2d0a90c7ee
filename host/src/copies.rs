//! The working copies of a run: handed out, taken back, and made while nobody needs them yet.
//!
//! While an agent works this program has nothing to do, so the copies for those who come next are made then. One that was
//! made and never used costs disk space and is used by a later run.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::git::ObjectId;
use crate::git::workspace::{Error, Pool, Slot, WorkspaceKind};
use crate::hands;
use crate::platform::files as os;

/// The working copies of one run.
pub(crate) struct Copies {
    pool: Pool,
    run_id: String,
    /// Readers' copies that came back untouched.
    idle: Mutex<Vec<ReaderCopy>>,
    ahead: Mutex<Vec<CopyAhead>>,
    /// Files of the last reader's copy.
    files: AtomicUsize,
}

/// Reviewers are not needed after a Guardian that finds nothing, so only small copies are made for them ahead.
const MOST_FILES_AHEAD: usize = 5_000;

/// A reader's copy that is as it was made.
#[derive(Debug)]
pub(crate) struct ReaderCopy {
    pub(crate) slot: Slot,
    commit: ObjectId,
    print: blake3::Hash,
}

/// A copy that is being made or has been.
struct CopyAhead {
    kind: WorkspaceKind,
    commit: ObjectId,
    made: Receiver<Slot>,
}

/// What those who come next will need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct NextCopies {
    pub(crate) maker: bool,
    /// Besides the reader's copy that is in use.
    pub(crate) readers: usize,
}

impl Copies {
    pub(crate) fn new(pool: Pool, run_id: String) -> Copies {
        Copies { pool, run_id, idle: Mutex::default(), ahead: Mutex::default(), files: AtomicUsize::new(0) }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<ReaderCopy>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ahead(&self) -> MutexGuard<'_, Vec<CopyAhead>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins with the copies that will be needed at `commit`, beside what goes on.
    pub(crate) fn get_ready(&self, next: NextCopies, commit: &ObjectId) {
        let missing = |kind, count: usize| {
            let there = self.ahead().iter().filter(|copy| copy.kind == kind).count();
            std::iter::repeat_n(kind, count.saturating_sub(there))
        };
        let idle = self.idle().iter().filter(|reader| reader.commit == *commit).count();
        let is_small = self.files.load(Ordering::Relaxed) <= MOST_FILES_AHEAD;
        let readers = if is_small { next.readers.saturating_sub(idle) } else { 0 };
        let readers = missing(WorkspaceKind::Reader, readers);
        let makers = missing(WorkspaceKind::Maker, usize::from(next.maker));
        for kind in makers.chain(readers) {
            let used = if kind == WorkspaceKind::Reader { self.idle_elsewhere(commit) } else { None };
            let (send, made) = channel();
            let (pool, owner, at) = (self.pool.clone(), self.run_id.clone(), commit.clone());
            let begun = hands::start(move || {
                let used = used.filter(ReaderCopy::is_untouched).and_then(|reader| brought(reader.slot, &at));
                // What goes wrong here goes wrong again when the copy is needed, and is reported then.
                let slot = used.or_else(|| pool.make_ready(kind, &owner, &at).ok());
                if let Some(slot) = slot {
                    let _ = send.send(slot);
                }
            });
            if begun.is_ok() {
                self.ahead().push(CopyAhead { kind, commit: commit.clone(), made });
            }
        }
    }

    fn idle_elsewhere(&self, commit: &ObjectId) -> Option<ReaderCopy> {
        let mut idle = self.idle();
        let at = idle.iter().position(|reader| reader.commit != *commit)?;
        Some(idle.swap_remove(at))
    }

    /// A copy that was made ahead, at this commit if there is one.
    fn made_ahead(&self, kind: WorkspaceKind, commit: &ObjectId) -> Option<Slot> {
        let copy = {
            let mut ahead = self.ahead();
            let of_kind = || ahead.iter().enumerate().filter(|(_, copy)| copy.kind == kind);
            let exact = of_kind().find(|(_, copy)| copy.commit == *commit);
            let (at, _) = exact.or_else(|| of_kind().next())?;
            ahead.swap_remove(at)
        };
        copy.made.recv().ok()
    }

    /// A copy for `attempt` to work in that is exactly `commit`.
    pub(crate) fn take_maker(&self, commit: &ObjectId, attempt: &str) -> Result<Slot, Error> {
        let ahead = self.made_ahead(WorkspaceKind::Maker, commit);
        let slot = match ahead.filter(|slot| slot.base() == Some(commit)) {
            Some(slot) => slot,
            None => self.pool.make_ready(WorkspaceKind::Maker, &self.run_id, commit)?,
        };
        slot.hand_to_maker(attempt)?;
        Ok(slot)
    }

    /// A copy of `commit` to look at. One that came back untouched is handed out again without asking git.
    pub(crate) fn take_reader(&self, commit: &ObjectId) -> Result<ReaderCopy, Error> {
        if let Some(reader) = self.idle_at(commit) {
            return Ok(reader);
        }
        let ahead = self.made_ahead(WorkspaceKind::Reader, commit).and_then(|slot| brought(slot, commit));
        let used = || self.any_idle().and_then(|reader| brought(reader.slot, commit));
        let slot = match ahead.or_else(used) {
            Some(slot) => slot,
            None => self.pool.take(WorkspaceKind::Reader, &self.run_id, commit)?,
        };
        let (print, files) = fingerprint(&slot.tree());
        self.files.store(files, Ordering::Relaxed);
        Ok(ReaderCopy { slot, commit: commit.clone(), print })
    }

    fn idle_at(&self, commit: &ObjectId) -> Option<ReaderCopy> {
        let mut idle = self.idle();
        let at = idle.iter().position(|reader| reader.commit == *commit)?;
        let reader = idle.swap_remove(at);
        drop(idle);
        reader.is_untouched().then_some(reader)
    }

    fn any_idle(&self) -> Option<ReaderCopy> {
        let reader = self.idle().pop()?;
        reader.is_untouched().then_some(reader)
    }

    /// Takes a reader's copy back, and says whether it is as it was handed out.
    pub(crate) fn return_reader(&self, reader: ReaderCopy) -> bool {
        let untouched = reader.is_untouched();
        if untouched {
            self.idle().push(reader);
        }
        untouched
    }

    /// Gives all of them back.
    pub(crate) fn release(&self) {
        self.idle().clear();
        self.ahead().clear();
    }
}

/// A copy that nobody has touched, at another commit than before.
fn brought(mut slot: Slot, commit: &ObjectId) -> Option<Slot> {
    if slot.base() == Some(commit) {
        return Some(slot);
    }
    slot.bring_to(commit).is_ok().then_some(slot)
}

impl ReaderCopy {
    fn is_untouched(&self) -> bool {
        fingerprint(&self.slot.tree()).0 == self.print
    }
}

/// A hash over name, kind, size and times of everything below a folder. The change time can't be set by hand, so
/// an equal fingerprint means that nothing was written. Comes with the number of files.
fn fingerprint(folder: &Path) -> (blake3::Hash, usize) {
    let (mut hasher, mut files) = (blake3::Hasher::new(), 0);
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            hasher.update(b"gone");
            continue;
        };
        let mut entries: Vec<_> = entries.flatten().map(|entry| (entry.file_name(), entry)).collect();
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (name, entry) in entries {
            let Ok(meta) = entry.metadata() else { continue };
            hasher.update(name.as_encoded_bytes());
            for number in os::shape(&meta) {
                hasher.update(&number.to_le_bytes());
            }
            if meta.is_dir() {
                folders.push(entry.path());
            } else {
                files += 1;
                for number in os::times(&meta) {
                    hasher.update(&number.to_le_bytes());
                }
            }
        }
    }
    (hasher.finalize(), files)
}
