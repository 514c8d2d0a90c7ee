//! Snapshots of the cycle file (PJ-55..PJ-58): `docs/context/archive/YYYY-MM-DD_cycle-NNN[_incomplete|_failed].md`.
//!
//! An archive is never written over. One that is there already with the same text, from before a crash, is the one.

use std::io;

use archeflow_core::strategies::agent_loop::cyclefile::{self, Ending};

use super::cycle::{CycleFile, Error, FOLDERS, LARGEST};
use crate::platform::files::OFlags;
use crate::store::dir::Dir;
use crate::store::files;

/// From the root of the working tree.
pub const FOLDER: &str = "docs/context/archive";
const NAME: &str = "archive";
/// How often another process may take the number first.
const TRIES: u32 = 20;

/// Keeps the cycle file as it is now. Gives where, from the root of the working tree.
pub fn write(file: &CycleFile, date: &str, ending: Ending, blockers: &[String]) -> Result<String, Error> {
    let text = cyclefile::with_summary(&file.raw()?, ending, blockers);
    let dir = folder(file)?;
    if let Some(name) = same(&dir, date, ending, &text)? {
        return Ok(format!("{FOLDER}/{name}"));
    }
    for _ in 0..TRIES {
        let names = names(&dir)?;
        let number = cyclefile::next_number(date, names.iter().map(String::as_str));
        let name = cyclefile::name(date, number, ending);
        match files::create(&dir, name.as_ref(), text.as_bytes()) {
            Ok(()) => return Ok(format!("{FOLDER}/{name}")),
            Err(error) if error.io_kind() == Some(io::ErrorKind::AlreadyExists) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Error::Restless)
}

/// The names of all archives there are.
pub fn all(file: &CycleFile) -> Result<Vec<String>, Error> {
    let mut dir = Dir::open(file.root())?;
    for name in FOLDERS.into_iter().chain([NAME]) {
        if dir.kind(name)?.is_none() {
            return Ok(Vec::new());
        }
        dir = dir.enter(name.as_ref())?;
    }
    names(&dir)
}

/// The archive that begins with this text, if one does.
pub fn holding(file: &CycleFile, text: &str) -> Result<Option<String>, Error> {
    let names = all(file)?;
    let folder = file.root().join(FOLDER);
    let holds = |name: &&String| {
        let bytes = files::read_capped(&folder.join(name), 2 * LARGEST).unwrap_or_default();
        bytes.starts_with(text.as_bytes())
    };
    Ok(names.iter().rev().find(holds).map(|name| format!("{FOLDER}/{name}")))
}

fn folder(file: &CycleFile) -> Result<Dir, Error> {
    let mut dir = Dir::open(file.root())?;
    for name in FOLDERS.into_iter().chain([NAME]) {
        dir = dir.make(name, 0o755)?;
    }
    Ok(dir)
}

fn names(dir: &Dir) -> Result<Vec<String>, Error> {
    let listed =
        std::fs::read_dir(dir.path()).map_err(|error| files::Error::io("list", dir.path(), error))?;
    let mut names: Vec<String> = listed
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    Ok(names)
}

/// An archive of this day and ending with exactly this text.
fn same(dir: &Dir, date: &str, ending: Ending, text: &str) -> Result<Option<String>, Error> {
    let kin = |name: &String| {
        let rest = name.strip_prefix(&format!("{date}_cycle-")).and_then(|rest| rest.strip_suffix(".md"));
        rest.is_some_and(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()) == ending.suffix())
    };
    let holds = |name: &String| {
        let Ok(file) = dir.file(name, OFlags::RDONLY) else { return false };
        let length = file.metadata().map_or(0, |meta| meta.len());
        // A summary below the largest file is still small.
        length == text.len() as u64
            && length <= 2 * LARGEST
            && io::read_to_string(file).is_ok_and(|had| had == text)
    };
    Ok(names(dir)?.into_iter().filter(kin).find(holds))
}
