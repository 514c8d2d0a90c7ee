//! Lessons and what became of them: `.archeflow/memory/`, one JSON object per line (SCHEMAS 4).
//!
//! Several runs of one project may end at the same moment, so a process that changes something holds a lock from reading to
//! writing. A change that concerns several files is recorded as a whole before the first of them is replaced; the next
//! process completes what a crash left undone. A line that can't be read is reported with its place and kept:
//! people and other programs write here too.

mod lines;
mod pending;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::model::{Lesson, Resolved};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::dir::Dir;
use super::files;
use super::lock::{self, Lock};
use super::own_runs::OwnLessons;
use super::places::Places;

pub use lines::{Damage, Item, Lines};

const LESSONS: &str = "lessons.jsonl";
const ARCHIVE: &str = "archive.jsonl";
const AUDIT: &str = "audit.jsonl";
const RESOLVED: &str = "resolved.jsonl";
const DEBTS: &str = "debts.jsonl";
const NAMES: [&str; 5] = [LESSONS, ARCHIVE, AUDIT, RESOLVED, DEBTS];

/// No file of ours comes near to this; a larger one is not ours and is not read.
const LARGEST: u64 = 16 << 20;
/// Others need milliseconds; one that is stopped must not stop us for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// Most lessons that are kept; the weakest are removed. Of everything else the newest lines are kept.
pub const LESSONS_AT_MOST: usize = 500;
const ARCHIVED_AT_MOST: usize = 2_000;
const AUDITED_AT_MOST: usize = 5_000;
const RESOLVED_AT_MOST: usize = 500;
const DEBTS_AT_MOST: usize = 200;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(transparent)]
    Lock(#[from] lock::Error),
    #[error(
        "{} does not hold what this program writes there. Remove it; what it was to change is left as it was",
        path.display()
    )]
    Pending { path: PathBuf },
}

/// The WARNINGs a completed run left open (AF-146).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Debt {
    pub ts: String,
    pub run_id: String,
    pub warnings: u32,
}

/// The folder of a repository's or a user's lessons.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    folder: PathBuf,
    /// Which lessons are the user's own; nothing where all of them are.
    own: Option<OwnLessons>,
}

/// Everything that is remembered, as it was read.
#[derive(Debug)]
pub struct MemoryFiles {
    pub lessons: Lines<Lesson>,
    pub archive: Lines<Lesson>,
    pub audit: Lines<Value>,
    pub resolved: Lines<Resolved>,
    pub debts: Lines<Debt>,
}

impl MemoryStore {
    pub fn at(folder: PathBuf) -> MemoryStore {
        MemoryStore { folder, own: None }
    }

    /// The lessons of a repository, which may have come with it.
    pub fn of(places: &Places, state: &Path) -> MemoryStore {
        MemoryStore { folder: places.memory(), own: Some(OwnLessons::new(state, places.root())) }
    }

    /// Whether everything that reaches prompts was written by this user's runs and commands, or approved.
    pub fn is_own(&self) -> bool {
        if self.is_own_now() {
            return true;
        }
        // Somebody may be in the middle of a change to several files.
        let lock = Lock::take(&self.folder, "memory", PATIENCE);
        lock.is_ok() && self.is_own_now()
    }

    fn is_own_now(&self) -> bool {
        let Some(own) = &self.own else { return true };
        match self.digest(&[]) {
            Ok(Some(digest)) => own.knows(&digest),
            Ok(None) => true,
            Err(_) => false,
        }
    }

    /// Takes what is there now for the user's own.
    pub fn approve(&self) -> Result<(), Error> {
        if let (Some(own), Some(digest)) = (&self.own, self.digest(&[])?) {
            own.remember(vec![digest])?;
        }
        Ok(())
    }

    /// Of the files that reach prompts, with these changes made to them; nothing where there is none.
    fn digest(&self, changes: &[(&'static str, Vec<u8>)]) -> Result<Option<String>, Error> {
        let mut digest = files::Digest::default();
        let mut found = false;
        for name in [LESSONS, RESOLVED] {
            let changed =
                changes.iter().find(|(changed, _)| *changed == name).map(|(_, bytes)| bytes.clone());
            let bytes = match changed {
                Some(bytes) => bytes,
                None => match files::read_capped(&self.folder.join(name), LARGEST) {
                    Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => continue,
                    bytes => bytes?,
                },
            };
            found |= !bytes.is_empty();
            digest.add(name.as_bytes());
            digest.add(&(bytes.len() as u64).to_le_bytes());
            digest.add(&bytes);
        }
        Ok(found.then(|| digest.hex()))
    }

    /// The lessons a user keeps for all repositories, in the user's own state folder.
    pub fn shared(state: &Path) -> MemoryStore {
        MemoryStore { folder: state.join("memory"), own: None }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Without a lock, since every file changes in one step; unless a crash left something undone.
    pub fn read(&self) -> Result<MemoryFiles, Error> {
        if !self.folder.is_dir() {
            return Ok(MemoryFiles::empty(&self.folder));
        }
        if pending::is_there(&self.folder)? {
            let _lock = Lock::take(&self.folder, "memory", PATIENCE)?;
            pending::finish(&self.folder)?;
        }
        MemoryFiles::read(&self.folder)
    }

    /// Reads, lets the caller change what was read, and writes what is different, alone.
    pub fn change<T>(&self, change: impl FnOnce(&mut MemoryFiles) -> T) -> Result<T, Error> {
        self.make()?;
        let _lock = Lock::take(&self.folder, "memory", PATIENCE)?;
        pending::sweep(&self.folder);
        pending::finish(&self.folder)?;
        let mut shelf = MemoryFiles::read(&self.folder)?;
        let outcome = change(&mut shelf);
        shelf.trim();
        let changes = shelf.changes();
        // What was the user's own stays so; what was not does not become so by a run that adds to it.
        if let Some(own) = self.own.as_ref().filter(|_| self.is_own_now()) {
            let digests = [self.digest(&[])?, self.digest(&changes)?];
            own.remember(digests.into_iter().flatten().collect())?;
        }
        pending::commit(&self.folder, &changes)?;
        Ok(outcome)
    }

    /// The folder itself; the one above is there wherever a run can begin.
    fn make(&self) -> Result<(), Error> {
        let (Some(above), Some(name)) =
            (self.folder.parent(), self.folder.file_name().and_then(OsStr::to_str))
        else {
            return Ok(());
        };
        Dir::open(above)?.make(name, 0o700)?;
        Ok(())
    }
}

impl MemoryFiles {
    fn empty(folder: &Path) -> MemoryFiles {
        MemoryFiles {
            lessons: Lines::parse(&folder.join(LESSONS), b""),
            archive: Lines::parse(&folder.join(ARCHIVE), b""),
            audit: Lines::parse(&folder.join(AUDIT), b""),
            resolved: Lines::parse(&folder.join(RESOLVED), b""),
            debts: Lines::parse(&folder.join(DEBTS), b""),
        }
    }

    fn read(folder: &Path) -> Result<MemoryFiles, Error> {
        Ok(MemoryFiles {
            lessons: lines(folder, LESSONS)?,
            archive: lines(folder, ARCHIVE)?,
            audit: lines(folder, AUDIT)?,
            resolved: lines(folder, RESOLVED)?,
            debts: lines(folder, DEBTS)?,
        })
    }

    /// Every line that can't be read.
    pub fn damage(&self) -> Vec<Damage> {
        let parts = [
            self.lessons.damage(),
            self.archive.damage(),
            self.audit.damage(),
            self.resolved.damage(),
            self.debts.damage(),
        ];
        parts.concat()
    }

    /// The number of the next lesson: one that was archived keeps its own.
    pub fn next_number(&self, letter: char) -> u32 {
        let number = |lesson: &Lesson| {
            lesson.id.strip_prefix(letter)?.strip_prefix('-')?.parse::<u32>().ok().filter(|n| *n < u32::MAX)
        };
        self.lessons.values().chain(self.archive.values()).filter_map(number).max().unwrap_or(0) + 1
    }

    fn trim(&mut self) {
        self.archive.keep_newest(ARCHIVED_AT_MOST);
        self.audit.keep_newest(AUDITED_AT_MOST);
        self.resolved.keep_newest(RESOLVED_AT_MOST);
        self.debts.keep_newest(DEBTS_AT_MOST);
    }

    fn changes(&self) -> Vec<(&'static str, Vec<u8>)> {
        let files = [
            (ARCHIVE, self.archive.changed()),
            (LESSONS, self.lessons.changed()),
            (RESOLVED, self.resolved.changed()),
            (DEBTS, self.debts.changed()),
            (AUDIT, self.audit.changed()),
        ];
        files.into_iter().filter_map(|(name, bytes)| Some((name, bytes?))).collect()
    }
}

fn lines<T: DeserializeOwned + Serialize>(folder: &Path, name: &str) -> Result<Lines<T>, Error> {
    let path = folder.join(name);
    let bytes = match files::read_capped(&path, LARGEST) {
        Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => Vec::new(),
        bytes => bytes?,
    };
    Ok(Lines::parse(&path, &bytes))
}
