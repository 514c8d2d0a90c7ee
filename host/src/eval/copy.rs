//! Copies of a task's repository, with the files of a solution laid over it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{EvalTask, TaskFiles, TaskOrigin};
use crate::git::fresh::{CommitSource, FreshError, FreshRepository};
use crate::git::remove_beneath;
use crate::platform::files as os;

/// A folder in the temporary folder, removed with everything in it.
#[derive(Debug)]
pub(super) struct ScratchFolder(PathBuf);

impl ScratchFolder {
    pub(super) fn new(name: &str) -> io::Result<ScratchFolder> {
        let folder = std::env::temp_dir().join(name);
        os::private_directory().recursive(true).create(&folder)?;
        // Sandboxes compare paths: there must be no link in this one.
        Ok(ScratchFolder(folder.canonicalize()?))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // What can't be removed is in the temporary folder.
        let _ = remove_beneath(&self.0);
    }
}

/// Why there is no copy.
#[derive(Debug)]
pub(super) enum CopyFault {
    NoCommit,
    /// A field whose patch does not apply, and what git says.
    Patch(&'static str, String),
    /// The repository has files where the hidden ones belong.
    HiddenThere,
    Machine(String),
}

impl From<FreshError> for CopyFault {
    fn from(error: FreshError) -> CopyFault {
        CopyFault::Machine(error.to_string())
    }
}

/// Where hidden files are put in a copy.
pub(super) const HIDDEN: &str = "hidden";

/// Makes a copy in a new folder: the repository as agents get it, then the solution as a second commit.
pub(super) fn make(
    tree: &Path,
    task: &EvalTask,
    source: Option<&CommitSource>,
    solution: Option<&TaskFiles>,
    stops: Stops<'_>,
) -> Result<(), CopyFault> {
    make_folder(tree)?;
    let fresh = match &task.origin {
        TaskOrigin::Files(base) => {
            lay_over(base, tree, stops).map_err(machine)?;
            FreshRepository::of_files(tree)?
        }
        TaskOrigin::Commit { commit, .. } => {
            let source = source.ok_or(CopyFault::NoCommit)?;
            FreshRepository::of_commit(tree, source, commit)?.ok_or(CopyFault::NoCommit)?
        }
    };
    if matches!(task.hidden_files, TaskFiles::Folder(_)) && fs::symlink_metadata(tree.join(HIDDEN)).is_ok() {
        return Err(CopyFault::HiddenThere);
    }
    match solution {
        None => return Ok(()),
        Some(TaskFiles::Folder(folder)) => lay_over(folder, tree, stops).map_err(machine)?,
        Some(TaskFiles::Patch { text, field }) => {
            fresh.apply(text)?.map_err(|why| CopyFault::Patch(field, why))?;
        }
    }
    Ok(fresh.commit_all("Solution")?)
}

/// Adds the hidden files to a copy in which no command has run yet.
pub(super) fn add_hidden(tree: &Path, task: &EvalTask, stops: Stops<'_>) -> Result<(), CopyFault> {
    match &task.hidden_files {
        TaskFiles::Folder(folder) => lay_over(folder, &tree.join(HIDDEN), stops).map_err(machine),
        TaskFiles::Patch { text, field } => {
            FreshRepository::at(tree).apply(text)?.map_err(|why| CopyFault::Patch(field, why))
        }
    }
}

fn make_folder(tree: &Path) -> Result<(), CopyFault> {
    os::private_directory().recursive(true).create(tree).map_err(machine)
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn machine(error: io::Error) -> CopyFault {
    CopyFault::Machine(error.to_string())
}

/// Copies files and links over what is there. No link of the other folder is followed: what is in its way is replaced.
fn lay_over(from: &Path, to: &Path, stops: Stops<'_>) -> io::Result<()> {
    let mut entries = fs::read_dir(from)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    if !fs::symlink_metadata(to).is_ok_and(|meta| meta.is_dir()) {
        if entries.is_empty() {
            return Ok(());
        }
        remove_beneath(to)?;
        fs::create_dir(to)?;
    }
    for entry in entries {
        let (old, new) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_dir() {
            lay_over(&old, &new, stops)?;
            continue;
        }
        remove_beneath(&new)?;
        if kind.is_symlink() {
            os::symlink(fs::read_link(&old)?, &new)?;
        } else {
            copy_file(&old, &new, stops)?;
            let is_program = os::mode(&entry.metadata()?) & 0o111 != 0;
            os::set_mode(&new, if is_program { 0o755 } else { 0o644 })?;
        }
    }
    Ok(())
}

/// Whether somebody asked for the end. Copies of large repositories take minutes.
pub(super) type Stops<'a> = &'a dyn Fn() -> bool;

/// So much of a file is copied before it is asked for again.
const CHUNK: u64 = 64 << 20;

fn copy_file(from: &Path, to: &Path, stops: Stops<'_>) -> io::Result<()> {
    let (mut from, mut to) = (File::open(from)?, File::create(to)?);
    loop {
        if stops() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if io::copy(&mut Read::by_ref(&mut from).take(CHUNK), &mut to)? == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn ev_42_files_are_laid_over_others_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for folder in ["over/sub/empty", "over/linked", "to/sub", "elsewhere"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("over/sub/a"), "new").unwrap();
        fs::write(at("over/linked/b"), "new").unwrap();
        os::symlink("sub/a", at("over/link")).unwrap();
        fs::write(at("to/sub/a"), "old").unwrap();
        fs::write(at("to/sub/kept"), "old").unwrap();
        os::set_mode(&at("to/sub/a"), 0o444).unwrap();
        os::symlink(at("elsewhere"), at("to/linked")).unwrap();
        lay_over(&at("over"), &at("to"), &|| false).unwrap();
        assert_eq!(fs::read_to_string(at("to/sub/a")).unwrap(), "new");
        assert_eq!(fs::read_to_string(at("to/link")).unwrap(), "new");
        assert_eq!(fs::read_to_string(at("to/sub/kept")).unwrap(), "old");
        assert_eq!(fs::read_to_string(at("to/linked/b")).unwrap(), "new");
        assert!(!at("elsewhere/b").exists() && !at("to/sub/empty").exists());
    }

    #[test]
    fn r_13_a_copy_ends_when_it_is_asked_to() {
        let dir = tempfile::tempdir().unwrap();
        let large = File::create(dir.path().join("large")).unwrap();
        large.set_len(CHUNK + 1).unwrap();
        let asked = std::cell::Cell::new(0);
        let stops = || asked.replace(asked.get() + 1) == 1;
        let (from, to) = (dir.path().join("large"), dir.path().join("copy"));
        let stopped = copy_file(&from, &to, &stops).unwrap_err();
        assert_eq!(stopped.kind(), io::ErrorKind::Interrupted);
        assert_eq!(fs::metadata(&to).unwrap().len(), CHUNK);
        copy_file(&from, &to, &|| false).unwrap();
        assert_eq!(fs::metadata(&to).unwrap().len(), CHUNK + 1);
    }
}
