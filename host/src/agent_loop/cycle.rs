//! The cycle file on disk: `docs/context/current_cycle.md` in the user's working tree.
//!
//! It is read and extended under a lock of ours, and every step is checked against the seal the journal has. A person
//! may save the file at any moment, so what is about to be replaced is read once more. No link is followed below the
//! root of the working tree, and nothing is staged.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::model::Speaker;
use archeflow_core::strategies::agent_loop::cyclefile::{self, CycleFilePart, CycleFileParts, Edited};

use crate::platform::files::{self as os, OFlags};
use crate::store::dir::Dir;
use crate::store::files;
use crate::store::lock::{self, Lock};

/// Its path from the root of the working tree.
pub const PATH: &str = "docs/context/current_cycle.md";
pub(crate) const FOLDERS: [&str; 2] = ["docs", "context"];
const NAME: &str = "current_cycle.md";
/// A longer file is not a conversation any more.
pub const LARGEST: u64 = 8 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(30);
/// How often a file that is saved at the same moment is read again.
const TRIES: u32 = 5;
const MODE: u32 = 0o644;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// PJ-32.
    #[error("the past of {PATH} was edited, {0}")]
    Edited(Edited),
    #[error("{PATH}:{line} is not UTF-8 text; save it as UTF-8, or write that line again")]
    NotText { line: usize },
    #[error("{PATH} is saved repeatedly by another program; close that program and resume")]
    Restless,
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error(transparent)]
    Lock(#[from] lock::Error),
}

/// The file as it was at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleFileState {
    pub text: String,
    pub past: CycleFileParts,
}

impl Default for CycleFileState {
    /// An empty file.
    fn default() -> Self {
        CycleFileState { text: String::new(), past: cyclefile::parse("").unwrap_or_default() }
    }
}

#[derive(Debug, Clone)]
pub struct CycleFile {
    root: PathBuf,
    locks: PathBuf,
}

impl CycleFile {
    /// The one of a working tree; `state` is the program's own folder.
    pub fn new(root: &Path, state: &Path) -> CycleFile {
        CycleFile { root: root.to_path_buf(), locks: state.join("locks") }
    }

    pub fn path(&self) -> PathBuf {
        self.root.join(PATH)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Reads it and checks its past. A file that is not there is empty.
    pub fn look(&self) -> Result<CycleFileState, Error> {
        seen(self.bytes()?)
    }

    /// The text alone, however it was edited, for a snapshot of it.
    pub(crate) fn raw(&self) -> Result<String, Error> {
        Ok(String::from_utf8_lossy(&self.bytes()?).into_owned())
    }

    /// Adds a block of ours at the end of the file. `expected` is the last seal of the journal. A block that
    /// is there already, from before a crash, is not added twice. Returns the file as it is now.
    pub fn append(&self, expected: &str, speaker: Speaker, body: &str) -> Result<CycleFileState, Error> {
        let _lock = self.lock()?;
        for _ in 0..TRIES {
            let bytes = self.bytes()?;
            let now = seen(bytes.clone())?;
            if is_there(&now, expected, speaker, body) {
                return Ok(now);
            }
            continues(&now, expected)?;
            let text = cyclefile::append(&now.text, &now.past, speaker, body);
            if text.len() as u64 > LARGEST {
                return Err(files::Error::TooLarge { path: self.path(), max: LARGEST }.into());
            }
            if self.replaced(&bytes, &text)? {
                return seen(text.into_bytes());
            }
        }
        Err(Error::Restless)
    }

    /// Puts a text in the place of a file that is gone. One with anything in it stays as it is.
    pub(crate) fn write_again(&self, text: &str) -> Result<(), Error> {
        let _lock = self.lock()?;
        let was = self.bytes()?;
        if was.iter().all(u8::is_ascii_whitespace) {
            self.replaced(&was, text)?;
        }
        Ok(())
    }

    /// Empties the file for a new cycle. Whoever calls this has kept what was in it.
    pub(crate) fn clear(&self, was: &str) -> Result<(), Error> {
        let _lock = self.lock()?;
        if self.replaced(was.as_bytes(), "")? { Ok(()) } else { Err(Error::Restless) }
    }

    fn lock(&self) -> Result<Lock, Error> {
        std::fs::create_dir_all(&self.locks)
            .map_err(|error| files::Error::io("create the directory", &self.locks, error))?;
        let name = lock::name_for(&self.root, PATH);
        Ok(Lock::take(&self.locks, &name, PATIENCE)?)
    }

    /// Replaces the file, unless it was saved since it was read.
    fn replaced(&self, was: &[u8], text: &str) -> Result<bool, Error> {
        let dir = self.folder()?;
        if self.bytes()? != was {
            return Ok(false);
        }
        let mode = match dir.kind(NAME)? {
            Some(_) => dir.file(NAME, OFlags::RDONLY)?.metadata().map_or(MODE, |meta| os::mode(&meta)),
            None => MODE,
        };
        files::replace(&dir, NAME.as_ref(), text.as_bytes())?;
        // It is the user's file, with the rights they gave it. Without them it is still there.
        let _ = os::set_mode_of(&dir.file(NAME, OFlags::RDONLY)?, mode & 0o777);
        Ok(true)
    }

    fn folder(&self) -> Result<Dir, Error> {
        let mut dir = Dir::open(&self.root)?;
        for name in FOLDERS {
            dir = dir.make(name, 0o755)?;
        }
        Ok(dir)
    }

    fn bytes(&self) -> Result<Vec<u8>, Error> {
        let Some(file) = self.open()? else { return Ok(Vec::new()) };
        let mut bytes = Vec::new();
        file.take(LARGEST + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| files::Error::io("read", &self.path(), error))?;
        if bytes.len() as u64 > LARGEST {
            return Err(files::Error::TooLarge { path: self.path(), max: LARGEST }.into());
        }
        Ok(bytes)
    }

    fn open(&self) -> Result<Option<File>, Error> {
        let mut dir = Dir::open(&self.root)?;
        for name in FOLDERS {
            if dir.kind(name)?.is_none() {
                return Ok(None);
            }
            dir = dir.enter(name.as_ref())?;
        }
        match dir.kind(NAME)? {
            None => Ok(None),
            Some(_) => Ok(Some(dir.file(NAME, OFlags::RDONLY)?)),
        }
    }
}

impl CycleFileState {
    /// What a person or another tool wrote right before our last block. `heard` is the digest of the part that was read before.
    pub fn unread(&self, heard: &str) -> &str {
        let [.., CycleFilePart::Theirs { text, .. }, CycleFilePart::Ours { .. }] = self.past.parts.as_slice()
        else {
            return "";
        };
        let mut hasher = files::Digest::default();
        let mut from = 0;
        for (end, _) in text.match_indices('\n') {
            // What was read may have been saved without the end of its last line.
            for end in [end, end + 1] {
                hasher.add(&text.as_bytes()[from..end]);
                from = end;
                if hasher.hex() == heard {
                    return &text[end..];
                }
            }
        }
        text
    }
}

/// The seal of an empty file.
pub fn unwritten() -> String {
    CycleFileState::default().past.seal
}

/// Whether the past is the one the journal knows.
pub fn continues(now: &CycleFileState, expected: &str) -> Result<(), Error> {
    if now.past.seal == expected {
        return Ok(());
    }
    let last = now.text.lines().count().max(1);
    let what = match now.past.blocks {
        0 => "the blocks of this loop are gone".to_owned(),
        n => format!("block {n} is not the last one of this loop's log"),
    };
    Err(Error::Edited(Edited { first: 1, last, what }))
}

fn seen(bytes: Vec<u8>) -> Result<CycleFileState, Error> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = error.as_bytes().get(..valid).unwrap_or_default();
        Error::NotText { line: before.iter().filter(|byte| **byte == b'\n').count() + 1 }
    })?;
    let past = cyclefile::parse(&text).map_err(Error::Edited)?;
    Ok(CycleFileState { text, past })
}

/// Whether the last block is this one, on top of the past that was expected.
fn is_there(now: &CycleFileState, expected: &str, speaker: Speaker, body: &str) -> bool {
    let Some(CycleFilePart::Ours { speaker: who, text, line }) = now.past.parts.last() else { return false };
    let before: String = now.text.split_inclusive('\n').take(line.saturating_sub(2)).collect();
    *who == speaker
        && *text == cyclefile::harmless(body)
        && cyclefile::parse(&before).is_ok_and(|past| past.seal == expected)
}
