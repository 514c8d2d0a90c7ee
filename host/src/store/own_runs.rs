//! The runs this user started on this machine, or took over: a small file for each in the user's state folder.
//!
//! A journal names the commands of its run. One that came by a commit, a submodule, a patch or an archive was allowed by
//! nobody, so only runs known here are ever executed (S-01). The file says where the journal is and what its first lines
//! are; it is on disk before line 1, so a crash leaves a run that can be resumed or one that never began.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::dir::Dir;
use super::files::{self, Error};
use super::journal::Journal;
use super::verify::Text;
use crate::platform::files::{self as os, OFlags};

const FOLDER: &str = "own-runs";
const LARGEST: u64 = 64 * 1024;
const LONGEST_LINE: u64 = 1 << 20;
const FIRST_READ: usize = 6 * 1024;

/// One run of one repository, as the state folder may know it.
#[derive(Debug, Clone, Copy)]
pub struct OwnRun<'a> {
    /// The user's state folder.
    pub state: &'a Path,
    /// The repository's folder. A copy of it, or one that was moved, is another place.
    pub root: &'a Path,
    pub run_id: &'a str,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct OwnRunRecord {
    root: String,
    run_id: String,
    /// The digest is of this many lines: one for a run that was started here.
    lines: u64,
    digest: String,
}

impl OwnRun<'_> {
    /// Notes the run, in place of what was known under its name.
    pub fn remember(self, lines: u64, digest: &str) -> Result<(), Error> {
        let record = OwnRunRecord {
            root: self.named_root(),
            run_id: self.run_id.to_owned(),
            lines,
            digest: digest.to_owned(),
        };
        let name = self.name();
        let text =
            serde_json::to_vec(&record).map_err(|e| Error::io("write", &self.state.join(FOLDER), e))?;
        let folder = Dir::open(self.state)?.make(FOLDER, 0o700)?;
        files::replace(&folder, name.as_ref(), &text)
    }

    /// Whether a run of this name was started here. Its journal may be another one by now: see [`OwnRun::wrote`].
    pub fn is_known(self) -> Result<bool, Error> {
        Ok(self.record()?.is_some())
    }

    /// The same for a list of many runs: of a journal that was begun here, only the first line is read.
    pub fn begins(self, journal: &Path) -> bool {
        let Some(events) = journal.parent() else { return false };
        RepositoryRuns::open(self.state, self.root, events).is_some_and(|runs| runs.is_own(self.run_id))
    }

    /// Whether this is the journal of the run that was started or taken over here.
    pub fn wrote(self, text: &Text) -> Result<bool, Error> {
        let Some(record) = self.record()? else { return Ok(false) };
        let lines = usize::try_from(record.lines).ok();
        let digest = lines.and_then(|lines| text.digest_of(lines));
        let is_here = record.root == self.named_root() && record.run_id == self.run_id;
        Ok(is_here && digest.as_deref() == Some(record.digest.as_str()))
    }

    /// What can't be read as a record is none: the run is then foreign, which harms nobody.
    fn record(self) -> Result<Option<OwnRunRecord>, Error> {
        match files::read_capped(&self.state.join(FOLDER).join(self.name()), LARGEST) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn named_root(self) -> String {
        os::bytes(self.root).escape_ascii().to_string()
    }

    fn name(self) -> String {
        let key = [os::bytes(self.root), &[0], self.run_id.as_bytes()].concat();
        format!("{}.json", files::digest(&key))
    }
}

/// The runs of one repository, to be asked about one after the other: the folders are opened once.
#[derive(Debug)]
pub struct RepositoryRuns<'a> {
    state: &'a Path,
    root: &'a Path,
    named_root: String,
    records: Dir,
    events: Dir,
    /// For what is read of a file.
    buffer: RefCell<Vec<u8>>,
}

impl<'a> RepositoryRuns<'a> {
    /// Nothing where no run can be known.
    pub fn open(state: &'a Path, root: &'a Path, events: &Path) -> Option<RepositoryRuns<'a>> {
        let (records, events) = (Dir::open(&state.join(FOLDER)).ok()?, Dir::open(events).ok()?);
        let named_root = os::bytes(root).escape_ascii().to_string();
        let buffer = RefCell::new(vec![0; FIRST_READ]);
        Some(RepositoryRuns { state, root, named_root, records, events, buffer })
    }

    /// Whether the journal of this name was begun or taken over here.
    pub fn is_own(&self, run_id: &str) -> bool {
        let own = OwnRun { state: self.state, root: self.root, run_id };
        let Some(record) = self.record(own) else { return false };
        let name = format!("{run_id}.jsonl");
        if record.lines != 1 {
            let text = Journal::read(&self.events.path().join(name));
            return text.is_ok_and(|text| own.wrote(&text).unwrap_or(false));
        }
        let is_begun = |line: &[u8]| record.digest == files::digest(line.trim_ascii_end());
        // One without a line has nothing that could be foreign.
        let is_it = |bytes: &[u8]| match bytes.iter().position(|byte| *byte == b'\n') {
            _ if bytes.is_empty() => Some(true),
            Some(end) => Some(is_begun(&bytes[..end])),
            None => None,
        };
        let file = self.events.file(name, OFlags::RDONLY);
        let is_it = file.ok().and_then(|file| self.read(file, LONGEST_LINE, is_it, is_begun));
        is_it.unwrap_or(false) && record.root == self.named_root
    }

    fn record(&self, own: OwnRun<'_>) -> Option<OwnRunRecord> {
        let file = self.records.file(own.name(), OFlags::RDONLY).ok()?;
        let parsed = |bytes: &[u8]| serde_json::from_slice(bytes).ok();
        // What fills the buffer may go on behind it.
        let whole = |bytes: &[u8]| parsed(bytes).filter(|_| bytes.len() != FIRST_READ).map(Some);
        self.read(file, LARGEST, whole, parsed)?
    }

    /// What the beginning of a file tells, which is nearly always enough: one call to the system. Else its first `most`
    /// bytes, which may be all.
    fn read<T>(
        &self,
        mut file: File,
        most: u64,
        beginning: impl Fn(&[u8]) -> Option<T>,
        more: impl Fn(&[u8]) -> T,
    ) -> Option<T> {
        let mut buffer = self.buffer.borrow_mut();
        let length = file.read(&mut buffer).ok()?;
        let begun = buffer.get(..length)?;
        if let Some(told) = beginning(begun) {
            return Some(told);
        }
        let mut bytes = begun.to_vec();
        file.take(most.saturating_sub(length as u64)).read_to_end(&mut bytes).ok()?;
        Some(beginning(&bytes).unwrap_or_else(|| more(&bytes)))
    }
}

impl OwnRun<'_> {
    /// Removes the note: the run is gone.
    pub(crate) fn forget(self) -> Result<(), Error> {
        match Dir::open(&self.state.join(FOLDER)).and_then(|folder| folder.remove(self.name())) {
            Err(error) if error.io_kind() != Some(io::ErrorKind::NotFound) => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// A run that was noted, with the file that does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedRun {
    pub(crate) file: PathBuf,
    pub(crate) root: PathBuf,
    pub(crate) run_id: String,
}

/// Every run that was started or taken over here, as far as it was looked for. What can't be read as a record is left out.
#[derive(Debug, Default)]
pub(crate) struct RecordedRuns {
    /// By the name of its file, which no other run can have.
    read: BTreeMap<OsString, RecordedRun>,
    files_of: BTreeMap<String, Vec<OsString>>,
}

impl RecordedRuns {
    /// Reads the records that have come since the last look. Those that are gone stay.
    pub(crate) fn look(&mut self, state: &Path) {
        for entry in std::fs::read_dir(state.join(FOLDER)).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if self.read.contains_key(&name) {
                continue;
            }
            if let Some(found) = RecordedRun::read(state, entry.path()) {
                self.files_of.entry(found.run_id.clone()).or_default().push(name.clone());
                self.read.insert(name, found);
            }
        }
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &RecordedRun> {
        self.read.values()
    }

    /// One for each repository with a run of this id.
    pub(crate) fn of_id(&self, run_id: &str) -> impl Iterator<Item = &RecordedRun> {
        let files = self.files_of.get(run_id).into_iter().flatten();
        files.filter_map(|name| self.read.get(name))
    }
}

impl RecordedRun {
    fn read(state: &Path, file: PathBuf) -> Option<RecordedRun> {
        let record: OwnRunRecord = serde_json::from_slice(&files::read_capped(&file, LARGEST).ok()?).ok()?;
        let root = os::path(unescaped(&record.root)?);
        // A record under another name is nobody's.
        let own = OwnRun { state, root: &root, run_id: &record.run_id };
        let is_named = file.file_name().is_some_and(|name| name == own.name().as_str());
        is_named.then_some(RecordedRun { file, root, run_id: record.run_id })
    }
}

/// The inverse of `escape_ascii`.
fn unescaped(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match (byte, byte == b'\\') {
            (byte, false) => byte,
            (_, true) => match rest.next()? {
                b'x' => {
                    let digits = [rest.next()?, rest.next()?];
                    u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
                }
                b't' => b'\t',
                b'r' => b'\r',
                b'n' => b'\n',
                other @ (b'\\' | b'\'' | b'"') => other,
                _ => return None,
            },
        });
    }
    Some(bytes)
}

/// The lessons of a repository, as this user's runs and commands left them. Lessons reach prompts, so those that came
/// with a repository, or were changed by hand, wait for `archeflow trust` (S-09).
#[derive(Debug, Clone)]
pub struct OwnLessons {
    state: PathBuf,
    root: PathBuf,
}

const LESSONS: &str = "own-lessons";

#[derive(Debug, Default, Serialize, Deserialize)]
struct OwnLessonsRecord {
    root: String,
    /// What they are; while they are being changed, before and after, because the program may be killed in between.
    digests: Vec<String>,
}

impl OwnLessons {
    pub fn new(state: &Path, root: &Path) -> OwnLessons {
        OwnLessons { state: state.to_owned(), root: root.to_owned() }
    }

    pub(crate) fn remember(&self, digests: Vec<String>) -> Result<(), Error> {
        let record = OwnLessonsRecord { root: self.named_root(), digests };
        let text =
            serde_json::to_vec(&record).map_err(|e| Error::io("write", &self.state.join(LESSONS), e))?;
        let folder = Dir::open(&self.state)?.make(LESSONS, 0o700)?;
        files::replace(&folder, self.name().as_ref(), &text)
    }

    pub(crate) fn knows(&self, digest: &str) -> bool {
        let bytes = files::read_capped(&self.state.join(LESSONS).join(self.name()), LARGEST);
        let record: OwnLessonsRecord =
            bytes.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        record.root == self.named_root() && record.digests.iter().any(|known| known == digest)
    }

    fn named_root(&self) -> String {
        os::bytes(&self.root).escape_ascii().to_string()
    }

    fn name(&self) -> String {
        format!("{}.json", files::digest(os::bytes(&self.root)))
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn u_14_every_run_that_was_noted_is_found_again_whatever_its_folder_is_called() {
        let state = tempfile::tempdir().unwrap();
        let roots =
            [PathBuf::from("/a/b"), os::path(b"/\xff \"b\n'\\".to_vec()), PathBuf::from("/gr\u{fc}n")];
        for root in &roots {
            OwnRun { state: state.path(), root, run_id: "r" }.remember(1, "digest").unwrap();
        }
        std::fs::write(state.path().join(FOLDER).join("garbage.json"), "{").unwrap();
        let found = |state: &Path| {
            let mut runs = RecordedRuns::default();
            runs.look(state);
            runs.all().map(|record| record.root.clone()).collect::<BTreeSet<PathBuf>>()
        };
        assert_eq!(found(state.path()), roots.iter().cloned().collect());
        OwnRun { state: state.path(), root: &roots[0], run_id: "r" }.forget().unwrap();
        OwnRun { state: state.path(), root: &roots[0], run_id: "r" }.forget().unwrap();
        assert_eq!(found(state.path()).len(), 2);
    }

    #[test]
    fn u_14_a_run_that_begins_in_another_repository_under_a_known_id_is_found_by_the_next_look() {
        let state = tempfile::tempdir().unwrap();
        let begin = |root: &str| {
            OwnRun { state: state.path(), root: Path::new(root), run_id: "r" }.remember(1, "digest").unwrap();
        };
        begin("/a");
        let mut runs = RecordedRuns::default();
        runs.look(state.path());
        begin("/b");
        runs.look(state.path());
        let roots: BTreeSet<&Path> = runs.of_id("r").map(|record| record.root.as_path()).collect();
        assert_eq!(roots, BTreeSet::from([Path::new("/a"), Path::new("/b")]));
    }
}
