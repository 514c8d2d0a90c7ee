//! The journal of one run: `.archeflow/events/<run_id>.jsonl`, only ever extended.
//!
//! A line is on disk before the effect it announces begins; when it cannot be put there, the run stops. One process
//! at a time may extend a journal. The lock is the kernel's and is on the journal itself, so it ends with its
//! holder, however that dies. Viewers take no lock.
//!
//! A journal that is opened is checked whole. What an interrupted write left at the end was never acknowledged: it is
//! copied to another file and cut off. Any other flaw is damage, and a damaged journal is left exactly as it is. There are three
//! kinds of nothing: no file ([`Error::Missing`]), an empty file (a run that was claimed and never began), and a file
//! with only a torn record (the same, after repair).
//!
//! Space is not allocated ahead: it was measured and did not make appending faster, and other programs read these
//! files with plain line readers.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

pub use super::frame::{JournalLine, LineFault, Read};
pub use super::verify::{JournalDamage, Text};

use super::dir::Dir;
use super::files;
use super::frame::{self, Link};
use super::holder::{self, Holder};
use super::names;
use super::verify::{self, Checked};
use crate::platform::files::{self as os, OFlags};

/// The longest line that is written, with its line break. Larger things are kept as artifacts and referred to.
pub const LONGEST: usize = 256 * 1024;

/// How long a lock is waited for whose holder is dead.
const HELD_BY_THE_DEAD: Duration = Duration::from_secs(30);
const NAP: Duration = Duration::from_millis(10);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "{run_id:?} cannot name a run; a name has letters, digits, `.`, `_` and `-`, and `index` is taken"
    )]
    BadName { run_id: String },
    #[error("there is no journal {}; check the run id", file.display())]
    Missing { file: PathBuf },
    #[error("the journal {} exists already; choose another run id", file.display())]
    Exists { file: PathBuf },
    #[error("run {run_id} is held by {}; wait until it ends, or stop it there", holder::name(holder.as_ref()))]
    Held { run_id: String, holder: Option<Holder> },
    #[error(
        "the journal {} is damaged at byte {byte} (line {line}): {why}. Nothing was changed. \
         Put back a copy, or start again from the lines before the damage in a new file",
        file.display()
    )]
    Damaged { file: PathBuf, line: u64, byte: u64, why: LineFault },
    #[error(
        "a record of {bytes} bytes is larger than {LONGEST}; keep the payload as an artifact and refer to it"
    )]
    TooLarge { bytes: usize },
    #[error("a record cannot be written: {field} is not plain text, or data is not an object")]
    Unwritable { field: &'static str },
    #[error(
        "a record for run {found_run} with number {found} was offered where {run_id} expects {expected}; this is a bug"
    )]
    OutOfTurn { run_id: String, expected: u64, found_run: String, found: u64 },
    #[error("the journal {} was changed by someone else while this run was writing it; nothing was added", file.display())]
    Changed { file: PathBuf },
    #[error("nothing more is written to {} after the first failure: {cause}", file.display())]
    Poisoned { file: PathBuf, cause: String },
    #[error(transparent)]
    File(#[from] files::Error),
}

impl Error {
    /// The kind of the operating system's answer, if it came from the operating system.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        if let Error::File(error) = self { error.io_kind() } else { None }
    }
}

/// The right to extend a journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    dir: Dir,
    path: PathBuf,
    run_id: String,
    next: u64,
    prev: Link,
    end: u64,
    buffer: Vec<u8>,
    poison: Option<String>,
}

#[derive(Debug)]
pub struct Opened {
    pub journal: Journal,
    pub lines: Text,
    pub repaired: Option<Repair>,
}

/// An unfinished write that was cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    pub bytes: usize,
    pub saved_as: PathBuf,
}

impl Journal {
    /// Begins the journal of a new run. Of two processes that try, one succeeds.
    pub fn create(dir: &Path, run_id: &str) -> Result<Journal, Error> {
        let (dir, name, path) = locate(dir, run_id)?;
        let file = match dir.file(&name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL) {
            Err(e) if e.io_kind() == Some(io::ErrorKind::AlreadyExists) => {
                return Err(Error::Exists { file: path });
            }
            other => other?,
        };
        let journal = Journal::hold(file, dir, path, run_id)?;
        journal.dir.sync()?;
        Ok(journal)
    }

    /// Takes the lock, checks every line, and repairs an unfinished write.
    pub fn open(dir: &Path, run_id: &str) -> Result<Opened, Error> {
        let (dir, name, path) = locate(dir, run_id)?;
        let file = existing(&dir, &name, &path, OFlags::RDWR | OFlags::APPEND)?;
        let mut journal = Journal::hold(file, dir, path, run_id)?;

        let mut checked = journal.load()?;
        if let Some(JournalDamage { line, byte, why }) = checked.damage.take() {
            return Err(Error::Damaged { file: journal.path.clone(), line, byte, why });
        }
        let repaired = match checked.tail() {
            [] => None,
            tail => Some(journal.cut(tail, checked.end as u64)?),
        };
        journal.end = checked.end as u64;
        let lines = checked.into_text();
        journal.next = lines.len() as u64 + 1;
        journal.prev = lines.last_line().map_or(frame::FIRST, frame::link);
        Ok(Opened { journal, lines, repaired })
    }

    /// Reads a journal without a lock, for viewers. An unfinished write at the end is ignored, as another process
    /// may be in the middle of it.
    pub fn read(path: &Path) -> Result<Text, Error> {
        match Journal::read_prefix(path)? {
            (text, None) => Ok(text),
            (_, Some(JournalDamage { line, byte, why })) => {
                Err(Error::Damaged { file: path.to_owned(), line, byte, why })
            }
        }
    }

    /// The good lines of a journal that may be damaged, and the damage. For salvage; never a base for decisions.
    pub fn read_prefix(path: &Path) -> Result<(Text, Option<JournalDamage>), Error> {
        let stem =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".jsonl"));
        let Some(run_id) = stem else {
            return Err(Error::BadName { run_id: path.display().to_string() });
        };
        let (dir, name, path) = locate(path.parent().unwrap_or(Path::new(".")), run_id)?;
        let file = existing(&dir, &name, &path, OFlags::RDONLY)?;
        let mut checked = verify::load(&file, run_id).map_err(|e| files::Error::io("read", &path, e))?;
        let damage = checked.damage.take();
        Ok((checked.into_text(), damage))
    }

    /// The process that claims to drive a run and is still alive. For viewers: only the lock itself is proof, and asking for
    /// that could keep it from a process that wants to drive.
    pub fn driver(dir: &Path, run_id: &str) -> Option<Holder> {
        let text = files::read_capped(&dir.join(sidecar(run_id)), 1024).ok()?;
        Holder::parse(&String::from_utf8_lossy(&text)).filter(Holder::is_alive)
    }

    /// Removes the journal for good. A process that had opened it before notices that it has no name any more.
    pub(crate) fn remove(self) -> Result<(), Error> {
        self.dir.remove(format!("{}.jsonl", self.run_id))?;
        Ok(self.dir.sync()?)
    }

    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number the next line must have.
    pub fn next_seq(&self) -> u64 {
        self.next
    }

    /// The bytes of the last append, as they are on disk.
    pub(crate) fn last_append(&self) -> &[u8] {
        &self.buffer
    }

    /// All lines, as they are on disk now.
    pub(crate) fn text(&self) -> Result<Text, Error> {
        Ok(self.load()?.into_text())
    }

    /// Lets go of the journal with only its first `end` bytes. What was behind them is kept in another file, whose path is returned.
    pub(crate) fn cut_behind(self, end: u64) -> Result<Option<PathBuf>, Error> {
        let text = self.text()?;
        let at = usize::try_from(end).unwrap_or(usize::MAX);
        let Some(tail) = text.bytes().get(at..).filter(|tail| !tail.is_empty()) else { return Ok(None) };
        let saved_as = set_aside(&self.path, tail)?;
        self.shorten(end)?;
        Ok(Some(saved_as))
    }

    /// Adds lines as one write and returns when they are on disk.
    ///
    /// A line that is refused for its own sake (too large, not plain) leaves the journal as it was. After any other
    /// failure it is unknown what the disk holds, so this journal accepts nothing more and does not try again; the
    /// next `open` finds out.
    pub fn append(&mut self, lines: &[JournalLine<'_>]) -> Result<(), Error> {
        if let Some(cause) = &self.poison {
            return Err(Error::Poisoned { file: self.path.clone(), cause: cause.clone() });
        }
        if lines.is_empty() {
            return Ok(());
        }
        self.in_turn(lines).or_else(|e| self.poisoned(e))?;
        let prev = self.encode(lines)?;
        self.write().or_else(|e| self.poisoned(e))?;
        self.prev = prev;
        self.next += lines.len() as u64;
        self.end += self.buffer.len() as u64;
        Ok(())
    }

    /// Adds lines that another machine wrote, as they are, and lets go of the journal: the next `open` checks them.
    pub(crate) fn extend_and_close(mut self, lines: &[u8]) -> Result<(), Error> {
        self.buffer.clear();
        self.buffer.extend_from_slice(lines);
        self.write()
    }

    /// The digest of the first line, if these lines are the journal's first; it is known before it is written.
    pub(crate) fn first_digest(&self, lines: &[JournalLine<'_>]) -> Result<Option<String>, Error> {
        let (1, Some(first)) = (self.next, lines.first()) else { return Ok(None) };
        let mut line = Vec::new();
        frame::encode(first, &self.prev, &mut line).map_err(|field| Error::Unwritable { field })?;
        Ok(Some(files::digest(line.trim_ascii_end())))
    }

    /// An assertion about ourselves that stays on in release. It is an error rather than a panic, because the code that
    /// stops the run still has processes to end.
    fn in_turn(&self, lines: &[JournalLine<'_>]) -> Result<(), Error> {
        for (line, expected) in lines.iter().zip(self.next..) {
            if line.seq != expected || line.run_id != self.run_id {
                return Err(Error::OutOfTurn {
                    run_id: self.run_id.clone(),
                    expected,
                    found_run: line.run_id.to_owned(),
                    found: line.seq,
                });
            }
        }
        Ok(())
    }

    fn encode(&mut self, lines: &[JournalLine<'_>]) -> Result<Link, Error> {
        self.buffer.clear();
        let mut prev = self.prev;
        for line in lines {
            let start = self.buffer.len();
            prev =
                frame::encode(line, &prev, &mut self.buffer).map_err(|field| Error::Unwritable { field })?;
            let bytes = self.buffer.len() - start;
            if bytes > LONGEST {
                return Err(Error::TooLarge { bytes });
            }
        }
        Ok(prev)
    }

    fn write(&mut self) -> Result<(), Error> {
        let now = self.file.metadata().map_err(|e| files::Error::io("look at", &self.path, e))?;
        if now.len() != self.end || os::names(&now) == 0 {
            return Err(Error::Changed { file: self.path.clone() });
        }
        self.file
            .write_all(&self.buffer)
            .and_then(|()| self.file.sync_data())
            .map_err(|e| files::Error::io("append to", &self.path, e).into())
    }

    fn poisoned(&mut self, error: Error) -> Result<(), Error> {
        self.poison = Some(error.to_string());
        Err(error)
    }

    fn hold(file: File, dir: Dir, path: PathBuf, run_id: &str) -> Result<Journal, Error> {
        let sidecar = sidecar(run_id);
        let asked = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {
                    let text = files::read_capped(&dir.path().join(&sidecar), 1024).ok();
                    let holder = text.and_then(|text| Holder::parse(&String::from_utf8_lossy(&text)));
                    // A child that a killed holder had just forked shares its lock until it becomes another program.
                    let is_dead = holder.as_ref().is_some_and(|holder| !holder.is_alive());
                    if !is_dead || asked.elapsed() > HELD_BY_THE_DEAD {
                        return Err(Error::Held { run_id: run_id.to_owned(), holder });
                    }
                    thread::sleep(NAP);
                }
                Err(TryLockError::Error(e)) => return Err(files::Error::io("lock", &path, e).into()),
            }
        }
        files::replace(&dir, sidecar.as_ref(), Holder::me().text().as_bytes())?;
        Ok(Journal {
            file,
            dir,
            path,
            run_id: run_id.to_owned(),
            next: 1,
            prev: frame::FIRST,
            end: 0,
            buffer: Vec::new(),
            poison: None,
        })
    }

    fn load(&self) -> Result<Checked, Error> {
        verify::load(&self.file, &self.run_id).map_err(|e| files::Error::io("read", &self.path, e).into())
    }

    /// Copies first, cuts then: at no moment are the bytes nowhere.
    fn cut(&self, tail: &[u8], end: u64) -> Result<Repair, Error> {
        let saved_as = save(&self.path, TORN, tail)?;
        self.shorten(end)?;
        Ok(Repair { bytes: tail.len(), saved_as })
    }

    fn shorten(&self, end: u64) -> Result<(), Error> {
        let cut = self.file.set_len(end).and_then(|()| self.file.sync_all());
        Ok(cut.map_err(|e| files::Error::io("cut the end off", &self.path, e))?)
    }
}

/// What follows the run's id in the names of files with lines that are no longer, or never were, in its journal. They don't
/// end in `.jsonl`: every file of the folder that does is a journal.
const TORN: &str = ".torn-";
const FENCED: &str = ".fenced-";

/// Whether a file beside the journal of a run has lines that were cut off it.
pub(crate) fn is_cut_off(run_id: &str, name: &str) -> bool {
    name.strip_prefix(run_id).is_some_and(|rest| rest.starts_with(TORN) || rest.starts_with(FENCED))
}

/// Keeps lines that another session's replaced, beside the journal. The same lines are kept once.
pub(crate) fn set_aside(journal: &Path, lines: &[u8]) -> Result<PathBuf, Error> {
    save(journal, FENCED, lines)
}

fn save(journal: &Path, kind: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
    let stem = journal.file_stem().unwrap_or_default().to_string_lossy();
    for n in 1..=u32::MAX {
        let path = journal.with_file_name(format!("{stem}{kind}{n}"));
        match files::write_new(&path, bytes) {
            Ok(()) => return Ok(path),
            Err(e) if e.io_kind() == Some(io::ErrorKind::AlreadyExists) => {
                // Killed after it was kept and before it was cut off.
                let is_same = |had: Vec<u8>| kind == FENCED && had == bytes;
                if files::read_capped(&path, bytes.len() as u64).is_ok_and(is_same) {
                    return Ok(path);
                }
            }
            Err(e) => return Err(e.into()),
        }
    }
    Err(files::Error::refused(journal, "there are too many cut off ends beside it").into())
}

impl Drop for Journal {
    fn drop(&mut self) {
        // The lock is freed when the file closes, after this. A left-over sidecar does no harm: it is read only
        // while the lock is held, and every holder writes its own.
        let _ = self.dir.remove(sidecar(&self.run_id));
    }
}

/// The bytes of a whole journal, checked as one that is read from its file.
pub fn check(run_id: &str, bytes: Vec<u8>) -> Result<Text, Error> {
    let mut checked = verify::check(bytes, run_id);
    match checked.damage.take() {
        None => Ok(checked.into_text()),
        Some(JournalDamage { line, byte, why }) => {
            Err(Error::Damaged { file: PathBuf::from(format!("{run_id}.jsonl")), line, byte, why })
        }
    }
}

/// One line without its line break, if its checksum holds. Nothing says that it follows another.
pub(crate) fn read_line(line: &[u8]) -> Result<Read<'_>, LineFault> {
    frame::decode(line).map(|frame| frame.read)
}

pub(super) fn locate(dir: &Path, run_id: &str) -> Result<(Dir, String, PathBuf), Error> {
    if !names::valid_run_id(run_id) {
        return Err(Error::BadName { run_id: run_id.chars().take(200).collect() });
    }
    let name = format!("{run_id}.jsonl");
    let path = dir.join(&name);
    match Dir::open(dir) {
        Err(e) if e.io_kind() == Some(io::ErrorKind::NotFound) => Err(Error::Missing { file: path }),
        dir => Ok((dir?, name, path)),
    }
}

pub(super) fn existing(dir: &Dir, name: &str, path: &Path, flags: OFlags) -> Result<File, Error> {
    match dir.file(name, flags) {
        Err(e) if e.io_kind() == Some(io::ErrorKind::NotFound) => {
            Err(Error::Missing { file: path.to_owned() })
        }
        file => Ok(file?),
    }
}

fn sidecar(run_id: &str) -> String {
    format!("{run_id}.holder")
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    fn line<'a>(seq: u64, data: &'a serde_json::value::RawValue) -> JournalLine<'a> {
        JournalLine {
            ts: "2026-04-08T10:00:00Z",
            ms: Some(7),
            run_id: "r",
            seq,
            parent: &[],
            kind: "run.start",
            phase: "plan",
            agent: None,
            data,
        }
    }

    /// D-01, M-B5, M-B9: the disk is full, or the descriptor is useless; nothing is acknowledged ever after.
    #[test]
    fn d_01_m_b9_a_failed_write_poisons() {
        let data = serde_json::value::RawValue::from_string("{}".to_owned()).unwrap();
        let full = File::options().write(true).open("/dev/full").unwrap();
        for (broken, kind) in [(Some(full), Some(io::ErrorKind::StorageFull)), (None, None)] {
            let temp = tempfile::tempdir().unwrap();
            let mut journal = Journal::create(temp.path(), "r").unwrap();
            let good = journal.file.try_clone().unwrap();
            journal.file = broken.unwrap_or_else(|| File::open(&journal.path).unwrap());

            let first = journal.append(&[line(1, &data)]).unwrap_err();
            assert!(kind.is_none() || first.io_kind() == kind, "{first}");
            journal.file = good;
            let second = journal.append(&[line(1, &data)]).unwrap_err();
            assert!(matches!(&second, Error::Poisoned { cause, .. } if *cause == first.to_string()));
            let path = journal.path.clone();
            drop(journal);
            assert_eq!(std::fs::metadata(path).unwrap().len(), 0);
        }
    }
}
