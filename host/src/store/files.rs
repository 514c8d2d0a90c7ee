//! Small files that change in one step or not at all, and shared line files that many processes extend.
//!
//! Everything that returns `Ok` is on disk, not merely in the kernel's memory.

use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::dir::{Dir, STATE};
use crate::platform::files::{self as os, FileType, Mode, OFlags};

/// How long an append to a shared file waits for the others; each of them needs milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);
const NAP: Duration = Duration::from_millis(1);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Someone prepared the place so that writing there would do harm. Nothing was written.
    #[error("refused to use {}: {why}. Remove it or put a plain file or directory there", path.display())]
    Refused { path: PathBuf, why: String },
    #[error("{} is larger than {max} bytes; shorten it or refer to it by name", path.display())]
    TooLarge { path: PathBuf, max: u64 },
    #[error("cannot {doing} {}: {source}", path.display())]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl Error {
    pub fn io(doing: &'static str, path: &Path, source: impl Into<io::Error>) -> Error {
        Error::Io { doing, path: path.to_owned(), source: source.into() }
    }

    pub(crate) fn refused(path: &Path, why: impl Into<String>) -> Error {
        Error::Refused { path: path.to_owned(), why: why.into() }
    }

    /// The kind of the operating system's answer, if it came from the operating system.
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match self {
            Error::Io { source, .. } => Some(source.kind()),
            Error::Refused { .. } | Error::TooLarge { .. } => None,
        }
    }

    /// Whether the place is one where this user can't write at all.
    pub fn is_unwritable(&self) -> bool {
        self.io_kind().is_some_and(is_unwritable)
    }
}

/// What the system answers where nothing can be written, however often it is tried.
pub fn is_unwritable(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied)
}

/// Replaces a file as one step: a reader, or the next start after a crash, sees the old bytes or the new ones.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let (dir, name) = Dir::parent_of(path)?;
    replace(&dir, name, bytes)
}

pub(crate) fn replace(dir: &Dir, name: &OsStr, bytes: &[u8]) -> Result<(), Error> {
    match dir.kind(name)? {
        None | Some(FileType::RegularFile) => {}
        Some(FileType::Symlink) => {
            return Err(Error::refused(&dir.path().join(name), "it is a symbolic link"));
        }
        Some(_) => return Err(Error::refused(&dir.path().join(name), "it is not a regular file")),
    }
    let temp = Temp::filled(dir, name, bytes)?;
    dir.rename(&temp.name, name)?;
    dir.sync()
}

/// The same for the holder of the file's lock: files that a killed writer left beside it are removed too.
pub(crate) fn replace_alone(dir: &Dir, name: &str, bytes: &[u8]) -> Result<(), Error> {
    let is_left = |found: &str| {
        let rest = found.strip_prefix('.').and_then(|found| found.strip_prefix(name));
        rest.is_some_and(|rest| rest.ends_with(".tmp"))
    };
    let names = std::fs::read_dir(dir.path()).into_iter().flatten().flatten().map(|entry| entry.file_name());
    for left in names.filter(|found| found.to_str().is_some_and(is_left)) {
        let _ = dir.remove(left);
    }
    replace(dir, name.as_ref(), bytes)
}

/// Writes a file that must not exist yet; of two writers exactly one succeeds, and the file is whole when it appears.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let (dir, name) = Dir::parent_of(path)?;
    create(&dir, name, bytes)
}

pub(crate) fn create(dir: &Dir, name: &OsStr, bytes: &[u8]) -> Result<(), Error> {
    let temp = Temp::filled(dir, name, bytes)?;
    dir.link(&temp.name, name)?;
    drop(temp);
    dir.sync()
}

/// Adds one line to a file that several processes share.
pub fn append_line_locked(path: &Path, line: &str) -> Result<(), Error> {
    append_lines_locked(path, &[line.to_owned()])
}

/// The same with several lines.
pub fn append_lines_locked(path: &Path, lines: &[String]) -> Result<(), Error> {
    if lines.iter().any(|line| line.contains('\n')) {
        let source = io::Error::new(io::ErrorKind::InvalidInput, "a line cannot contain a line break");
        return Err(Error::io("append to", path, source));
    }
    let (dir, name) = Dir::parent_of(path)?;
    let fresh = dir.kind(name)?.is_none();
    let mut file = dir.file(name, OFlags::RDWR | OFlags::APPEND | OFlags::CREATE)?;
    lock(&file, path)?;

    let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum::<usize>() + 1);
    if ends_mid_line(&file).map_err(|e| Error::io("read", path, e))? {
        bytes.push(b'\n');
    }
    for line in lines {
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    file.write_all(&bytes).and_then(|()| file.sync_data()).map_err(|e| Error::io("append to", path, e))?;
    if fresh { dir.sync() } else { Ok(()) }
}

/// Reads a regular file of at most `max` bytes.
pub fn read_capped(path: &Path, max: u64) -> Result<Vec<u8>, Error> {
    let file = open_for_reading(path)?;
    // The length is only a hint: the file may grow while it is read.
    let length = file.metadata().map_or(0, |meta| meta.len().min(max));
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(|e| Error::io("read", path, e))?;
    if bytes.len() as u64 > max {
        return Err(Error::TooLarge { path: path.to_owned(), max });
    }
    Ok(bytes)
}

/// The name of some bytes: the first 32 hexadecimal digits of their BLAKE3 hash.
pub fn digest(bytes: &[u8]) -> String {
    let mut digest = Digest::default();
    digest.add(bytes);
    digest.hex()
}

/// The same, piece by piece.
#[derive(Default)]
pub struct Digest(blake3::Hasher);

impl Digest {
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn hex(&self) -> String {
        let mut hex = self.0.finalize().to_hex().to_string();
        hex.truncate(32);
        hex
    }
}

/// A file of the user may be a link, as dotfile managers make them; one below `.archeflow` may not.
pub(crate) fn open_for_reading(path: &Path) -> Result<File, Error> {
    if path.components().any(|part| part.as_os_str() == STATE) {
        let (dir, name) = Dir::parent_of(path)?;
        return dir.file(name, OFlags::RDONLY);
    }
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file =
        os::open(path, flags, Mode::empty()).map(File::from).map_err(|e| Error::io("open", path, e))?;
    if !file.metadata().map_err(|e| Error::io("look at", path, e))?.is_file() {
        return Err(Error::refused(path, "it is not a regular file"));
    }
    Ok(file)
}

/// A waiting lock that gives up, because the holder may be a stopped process.
fn lock(file: &File, path: &Path) -> Result<(), Error> {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => thread::sleep(NAP),
            Err(TryLockError::WouldBlock) => {
                let source = io::Error::new(io::ErrorKind::TimedOut, "another process has kept it locked");
                return Err(Error::io("lock", path, source));
            }
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", path, e)),
        }
    }
}

/// A writer that died half-way leaves a fragment; the next line must not be glued to it.
fn ends_mid_line(file: &File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(false);
    }
    let mut last = [0];
    os::read_exact_at(file, &mut last, length - 1)?;
    Ok(last != *b"\n")
}

/// A complete, synced file under a temporary name; removed again unless it was renamed.
struct Temp<'a> {
    dir: &'a Dir,
    name: OsString,
}

impl<'a> Temp<'a> {
    fn filled(dir: &'a Dir, target: &OsStr, bytes: &[u8]) -> Result<Temp<'a>, Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut name = OsString::from(".");
        name.push(target);
        name.push(format!(".{}-{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));

        // A left-over of a dead process that had our number can be removed.
        if dir.kind(&name)?.is_some() {
            dir.remove(&name)?;
        }
        let mut file = dir.file(&name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        let temp = Temp { dir, name };
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(|e| Error::io("write", &dir.path().join(target), e))?;
        Ok(temp)
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        // After a rename the name is gone already, and a left-over is harmless.
        let _ = self.dir.remove(&self.name);
    }
}
