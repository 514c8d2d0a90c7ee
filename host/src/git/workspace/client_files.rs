//! Keeps files that configure coding agents out of the working copies agents get.
//!
//! Nothing is moved anywhere: such a file stays in the index with the mark that it is not checked out
//! (`skip-worktree`), in ours and in the agent's, and its content stays in the commit. So git shows no deletion, a
//! crash can't lose it, and whatever an agent writes at its path is a change like any other.

use std::fs;
use std::path::{Path, PathBuf};

use archeflow_core::rules::client_files::configured_client;

use super::slot::CopyAge;
use super::{Error, Slot, WorkspaceKind};
use crate::git::repo::Repo;
use crate::git::runner;
use crate::git::{ObjectId, files};
use crate::platform::files as os;

impl Slot {
    /// Whether this copy is for an agent. Tests and reproductions see all files.
    fn is_for_an_agent(&self) -> bool {
        match self.kind {
            WorkspaceKind::Maker | WorkspaceKind::Reader => true,
            WorkspaceKind::Scratch => false,
        }
    }

    /// Removes from disk what configures clients: what was checked out, and what an earlier agent left, ignored or not.
    pub(super) fn remove_client_files(&self) -> Result<(), Error> {
        if !self.is_for_an_agent() {
            return Ok(());
        }
        let present = below(&self.tree());
        if self.kind == WorkspaceKind::Reader && !present.is_empty() {
            files::open_up(&self.tree());
        }
        for path in present {
            files::remove(&path).map_err(|source| Error::ClientFile { path: path.clone(), source })?;
        }
        Ok(())
    }

    /// Marks what configures clients as not checked out, and removes it from disk.
    pub(super) fn hide_client_files(&self, age: CopyAge) -> Result<(), Error> {
        if !self.is_for_an_agent() {
            return Ok(());
        }
        let tracked = self.tracked_client_files()?;
        if tracked.is_empty() && age == CopyAge::New {
            return Ok(());
        }
        self.mark(&borrowed(&tracked), &[])?;
        self.remove_client_files()
    }

    /// Before the content is collected: what an agent wrote at such a path counts, and what is absent counts as
    /// deleted only if it was not hidden.
    pub(super) fn reveal_client_files(&self) -> Result<(), Error> {
        let tracked = self.tracked_client_files()?;
        if tracked.is_empty() {
            return Ok(());
        }
        let base = self.base.as_ref().map(|base| self.client_files_of(base)).transpose()?.unwrap_or_default();
        let is_hidden =
            |path: &Vec<u8>| !files::exists(&self.tree().join(files::path(path))) && base.contains(path);
        let (hidden, shown): (Vec<_>, Vec<_>) = tracked.into_iter().partition(is_hidden);
        self.mark(&borrowed(&hidden), &borrowed(&shown))
    }

    /// Marks paths of the index as not checked out, and others as checked out.
    fn mark(&self, hidden: &[&[u8]], shown: &[&[u8]]) -> Result<(), Error> {
        if hidden.is_empty() && shown.is_empty()
            || self.read_index().and_then(|mut index| index.mark(hidden, shown)).is_ok()
        {
            return Ok(());
        }
        self.update_index(&["--no-skip-worktree"], shown)?;
        self.update_index(&["--skip-worktree"], hidden)
    }

    fn tracked_client_files(&self) -> Result<Vec<Vec<u8>>, Error> {
        if let Ok(index) = self.read_index() {
            return Ok(configuring(index.paths()));
        }
        let listing = self.host()?.args(["ls-files", "-z"]).done()?.stdout;
        Ok(configuring(listing.split(|byte| *byte == 0)))
    }

    fn client_files_of(&self, commit: &ObjectId) -> Result<Vec<Vec<u8>>, Error> {
        if let Ok(found) = self.objects().and_then(|objects| objects.files(commit, b"")) {
            return Ok(configuring(found.iter().map(|entry| entry.path.as_slice())));
        }
        let args = ["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit.as_str()];
        let listing = self.host()?.args(args).done()?.stdout;
        Ok(configuring(listing.split(|byte| *byte == 0)))
    }
}

/// The paths of a commit that configure clients, which agents don't find in their working copies.
pub fn left_out(repo: &Repo, commit: &ObjectId) -> Result<Vec<Vec<u8>>, runner::Error> {
    Ok(configuring(repo.list_dir(commit, b"")?.iter().map(|entry| entry.path.as_slice())))
}

fn borrowed(paths: &[Vec<u8>]) -> Vec<&[u8]> {
    paths.iter().map(Vec::as_slice).collect()
}

/// Those of the listed paths that configure a client.
fn configuring<'a>(paths: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let paths = paths.filter(|path| !path.is_empty());
    let configure = |path: &&[u8]| configured_client(&String::from_utf8_lossy(path)).is_some();
    paths.filter(configure).map(<[u8]>::to_vec).collect()
}

/// The topmost files and folders of a copy that configure clients. Links are not followed.
fn below(tree: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut left = vec![tree.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(relative) = path.strip_prefix(tree) else { continue };
            if relative.as_os_str() == ".git" {
                continue;
            }
            if configured_client(&String::from_utf8_lossy(os::bytes(relative))).is_some() {
                found.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(path);
            }
        }
    }
    found
}
