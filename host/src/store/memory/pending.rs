//! Several files that change together or not at all. What they will hold is written down first, in one step; then
//! they are replaced one by one, and the note is removed. Whoever finds the note replaces them again: writing the same
//! bytes twice does no harm, and the lock keeps other processes away meanwhile.

use std::io;
use std::path::Path;

use super::{Error, LARGEST, NAMES};
use crate::store::dir::Dir;
use crate::store::files;

const NOTE: &str = "pending";
const HEAD: &[u8] = b"archeflow memory 1\n";

pub(super) fn is_there(folder: &Path) -> Result<bool, Error> {
    Ok(Dir::open(folder)?.kind(NOTE)?.is_some())
}

pub(super) fn commit(folder: &Path, changes: &[(&'static str, Vec<u8>)]) -> Result<(), Error> {
    if let [(name, bytes)] = changes {
        return Ok(files::write_atomic(&folder.join(name), bytes)?);
    }
    if changes.is_empty() {
        return Ok(());
    }
    let mut note = HEAD.to_vec();
    for (name, bytes) in changes {
        note.extend_from_slice(format!("{name} {}\n", bytes.len()).as_bytes());
        note.extend_from_slice(bytes);
    }
    files::write_atomic(&folder.join(NOTE), &note)?;
    finish(folder)
}

/// Does what the note says, if there is one.
pub(super) fn finish(folder: &Path) -> Result<(), Error> {
    let path = folder.join(NOTE);
    let note = match files::read_capped(&path, LARGEST * NAMES.len() as u64) {
        Err(error) if error.io_kind() == Some(io::ErrorKind::NotFound) => return Ok(()),
        note => note?,
    };
    let changes = parse(&note).ok_or_else(|| Error::Pending { path: path.clone() })?;
    for (name, bytes) in changes {
        files::write_atomic(&folder.join(name), bytes)?;
    }
    let dir = Dir::open(folder)?;
    dir.remove(NOTE)?;
    Ok(dir.sync()?)
}

/// Removes what writers that were killed left behind. Whoever has the lock is the only one who writes these files.
pub(super) fn sweep(folder: &Path) {
    let ours = |name: &str| {
        let of =
            |file: &str| name.strip_prefix('.').is_some_and(|name| name.starts_with(&format!("{file}.")));
        name.ends_with(".tmp") && NAMES.into_iter().chain([NOTE]).any(of)
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for name in entries.map(|entry| entry.file_name()).filter(|name| name.to_str().is_some_and(ours)) {
        // A leftover does no harm; the next one who comes tries again.
        let _ = Dir::open(folder).and_then(|dir| dir.remove(&name));
    }
}

/// Every name and its bytes; nothing at all when a single one is not as it should be.
fn parse(note: &[u8]) -> Option<Vec<(&'static str, &[u8])>> {
    let mut rest = note.strip_prefix(HEAD)?;
    let mut changes = Vec::new();
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let (name, length) = std::str::from_utf8(rest.get(..end)?).ok()?.split_once(' ')?;
        let name = NAMES.into_iter().find(|known| *known == name)?;
        let length: usize = length.parse().ok()?;
        let bytes = rest.get(end + 1..)?.get(..length)?;
        rest = rest.get(end + 1 + length..)?;
        changes.push((name, bytes));
    }
    Some(changes)
}
