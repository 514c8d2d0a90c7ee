//! Small file steps that never follow a symbolic link that another process may have planted.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::platform::files::{self as os, Mode, OFlags, open, openat};
use crate::platform::removal;

/// A path given as bytes, as git gives it.
pub(super) fn path(bytes: &[u8]) -> &Path {
    Path::new(os::name(bytes))
}

/// What `git rev-parse` printed, as a path.
pub(super) fn owned_path(bytes: &[u8]) -> PathBuf {
    path(bytes).to_owned()
}

/// Reads a regular file beneath `dir`; no component may be a link. `None` when there is no such file.
pub(super) fn read_beneath(dir: &Path, relative: &[u8], cap: u64) -> io::Result<Option<Vec<u8>>> {
    let directory = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut parts: Vec<&[u8]> = relative.split(|byte| *byte == b'/').collect();
    let Some(name) = parts.pop() else { return Ok(None) };
    if name.is_empty() || parts.iter().chain([&name]).any(|part| matches!(*part, b"" | b"." | b"..")) {
        return Ok(None);
    }
    let Ok(mut at) = open(dir, directory, Mode::empty()) else { return Ok(None) };
    for part in parts {
        let Ok(next) = openat(&at, path(part), directory, Mode::empty()) else { return Ok(None) };
        at = next;
    }
    let plain = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(fd) = openat(&at, path(name), plain, Mode::empty()) else { return Ok(None) };
    let file = File::from(fd);
    if !file.metadata()?.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    file.take(cap).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Makes a directory that only the user may enter, with its parents.
pub(super) fn make_private_dir(dir: &Path) -> io::Result<()> {
    os::private_directory().recursive(true).create(dir)
}

/// Writes a file of our own by temporary file and rename, unless it has these bytes already.
pub(super) fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    if is_plain_file(file) && fs::read(file).is_ok_and(|now| now == bytes) {
        return Ok(());
    }
    let temporary = beside(file);
    write_new(&temporary, bytes, 0o600)?;
    fs::rename(&temporary, file).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Writes a file that must not exist yet.
pub(super) fn write_new(file: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut options = File::options();
    options.write(true).create_new(true);
    let mut new = os::with_mode(&mut options, mode).open(file)?;
    new.write_all(bytes)
}

/// A name in the same directory that no other process uses.
pub(super) fn beside(file: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    began();
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    file.with_file_name(format!(".archeflow-{}-{n}.tmp", std::process::id()))
}

/// A moment before this process named its first file by [`beside`].
pub(super) fn began() -> SystemTime {
    static BEGAN: OnceLock<SystemTime> = OnceLock::new();
    // The time of a file may be the last tick of the clock.
    *BEGAN.get_or_init(|| SystemTime::now().checked_sub(Duration::from_millis(100)).unwrap_or(UNIX_EPOCH))
}

/// The process that named a file by [`beside`].
pub(super) fn writer_of(name: &str) -> Option<u32> {
    let inner = name.strip_prefix(".archeflow-")?.strip_suffix(".tmp")?;
    inner.split_once('-')?.0.parse().ok()
}

/// Folders in folders of a working copy. Deeper ones are nobody's work, and programs that walk them run out of stack.
pub(super) const DEEPEST: usize = 1_000;

/// Bytes in the path of a folder of a working copy. The kernel takes 4,096 for a file in it.
pub(super) const LONGEST: usize = 3_800;

/// Whether this is a directory itself, not a link to one.
pub(super) fn is_real_dir(dir: &Path) -> bool {
    fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_dir())
}

pub(super) fn is_plain_file(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok_and(|meta| meta.is_file())
}

/// Whether anything at all has this name.
pub(super) fn exists(file: &Path) -> bool {
    fs::symlink_metadata(file).is_ok()
}

/// Removes a file, a link, or a directory with everything in it; links are removed, never followed.
pub(crate) fn remove(target: &Path) -> io::Result<()> {
    let meta = match fs::symlink_metadata(target) {
        Ok(meta) => meta,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if meta.is_dir() { removal::remove_tree(target) } else { fs::remove_file(target) }
}

/// Removes the directories above `file` that are empty, up to but not including `top`.
pub(super) fn remove_empty_parents(top: &Path, file: &Path) {
    let mut parent = file.parent();
    while let Some(dir) = parent.filter(|dir| *dir != top && dir.starts_with(top)) {
        if fs::remove_dir(dir).is_err() {
            break;
        }
        parent = dir.parent();
    }
}

/// Gives the owner full rights on a directory and all beneath it, as far as possible.
pub(super) fn open_up(dir: &Path) {
    walk_dirs(dir, &mut |dir| {
        drop(os::set_mode(dir, 0o755));
        true
    });
}

/// Gives the right to write to directories only, except `.git`.
pub(super) fn open_dirs(dir: &Path) {
    set_dirs(dir, 0o755);
}

/// Takes the right to write away from directories only, except `.git`; files keep theirs.
pub(super) fn close_dirs(dir: &Path) {
    set_dirs(dir, 0o555);
}

fn set_dirs(dir: &Path, mode: u32) {
    walk_dirs(dir, &mut |dir| {
        let git = dir.file_name().is_some_and(|name| name == ".git");
        if !git {
            drop(os::set_mode(dir, mode));
        }
        !git
    });
}

/// Calls `each` on every real directory, before looking into it; not looked into when it answers false. Folders beyond the
/// length of a path are not reached.
fn walk_dirs(dir: &Path, each: &mut impl FnMut(&Path) -> bool) {
    if !is_real_dir(dir) {
        return;
    }
    let mut left = vec![dir.to_path_buf()];
    while let Some(dir) = left.pop() {
        if !each(&dir) {
            continue;
        }
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        left.extend(folders.map(|entry| entry.path()));
    }
}
