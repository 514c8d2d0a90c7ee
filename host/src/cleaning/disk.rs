//! Looking at folders and removing them, without following a link.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::failpoint;
use crate::nonce::nonce;
use crate::platform::files as os;

/// Begins the name of a folder that is being removed.
const TRASH: &str = ".removed-";

pub(super) fn is_trash(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(TRASH))
}

/// What is in a folder, sorted. Nothing if it is none, or a link to one.
pub(crate) fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let found = is_real_folder(folder).then(|| fs::read_dir(folder)).into_iter().flatten();
    let mut paths: Vec<PathBuf> = found.flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.into_iter()
}

pub(super) fn name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

pub(crate) fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

pub(crate) fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

/// When it was last changed, in milliseconds since 1970; 0 if that can't be found out.
pub(crate) fn changed_at(path: &Path) -> u64 {
    let modified = fs::symlink_metadata(path).and_then(|meta| meta.modified()).ok();
    let since = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The disk space of a file or a folder with everything in it. Files with several names count once.
pub(crate) fn usage(path: &Path) -> u64 {
    let (mut bytes, mut seen) = (0_u64, BTreeSet::new());
    let mut left = vec![path.to_path_buf()];
    while let Some(path) = left.pop() {
        let Ok(meta) = fs::symlink_metadata(&path) else { continue };
        if os::names(&meta) < 2 || meta.is_dir() || seen.insert(os::identity(&meta)) {
            bytes = bytes.saturating_add(os::disk_space(&meta));
        }
        if meta.is_dir() {
            left.extend(fs::read_dir(&path).into_iter().flatten().flatten().map(|entry| entry.path()));
        }
    }
    bytes
}

/// Gives a file or a folder the name of one that is being removed. What a killed process leaves under it is removed by the
/// next cleaning.
pub(crate) fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let trash = path.with_file_name(format!("{TRASH}{}", nonce()));
    fs::rename(path, &trash)?;
    Ok(trash)
}

/// Removes a file or a folder: nobody sees a half of it.
pub(super) fn remove_whole(path: &Path) -> io::Result<()> {
    let trash = match put_aside(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        trash => trash?,
    };
    failpoint::pass("cleaning.renamed");
    remove(&trash).map_err(|error| io::Error::new(error.kind(), format!("{error} ({})", trash.display())))
}

/// How often another cleaning may get ahead of us.
const TRIES: usize = 8;

/// Removes what nobody uses; another process may be doing the same.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    for _ in 0..TRIES {
        match crate::git::remove_beneath(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) if !exists(path) => return Ok(()),
            done => return done,
        }
    }
    if exists(path) { crate::git::remove_beneath(path) } else { Ok(()) }
}
