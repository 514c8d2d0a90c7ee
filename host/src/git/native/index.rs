//! The index of a working copy of our own.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gix_index::entry::{Flags, Mode, Stat};
use gix_object::bstr::{BStr, ByteSlice};

use super::objects::FileKind;
use super::{AskGit, Native, ask, hash_kind};
use crate::git::ObjectId;

/// An index that git or this process wrote, in memory.
pub(in crate::git) struct CopyIndex {
    pub(super) file: gix_index::File,
    path: PathBuf,
}

/// One path of the index, with what its file was like when it was known to be the same.
pub(super) struct NewEntry {
    pub(super) path: Vec<u8>,
    pub(super) kind: FileKind,
    pub(super) oid: ObjectId,
    pub(super) stat: Stat,
}

impl CopyIndex {
    /// An index with anything in it that only git writes is git's matter.
    pub(in crate::git) fn read(path: &Path, format: &str) -> Native<CopyIndex> {
        let file = gix_index::File::at(path, hash_kind(format)?, true, gix_index::decode::Options::default());
        let file = file.map_err(ask)?;
        let odd_flags = Flags::ASSUME_VALID | Flags::INTENT_TO_ADD;
        let odd = file.is_sparse()
            || file.untracked().is_some()
            || file.fs_monitor().is_some()
            || file.entries().iter().any(|entry| entry.stage_raw() != 0 || entry.flags.intersects(odd_flags));
        if odd { Err(AskGit) } else { Ok(CopyIndex { file, path: path.to_owned() }) }
    }

    pub(super) fn empty(path: &Path, format: &str) -> Native<CopyIndex> {
        let state = gix_index::State::new(hash_kind(format)?);
        Ok(CopyIndex { file: gix_index::File::from_state(state, path), path: path.to_owned() })
    }

    /// Puts the index in place at once. It can be made again after a power loss, so it is not synced.
    pub(super) fn write(&mut self) -> Native<()> {
        // It is written as it was read, and the entries have changed.
        self.file.remove_tree();
        let extensions = gix_index::write::Extensions::None;
        let mut bytes = Vec::new();
        let options = gix_index::write::Options { extensions, skip_hash: false };
        self.file.write_to(&mut bytes, options).map_err(ask)?;
        crate::git::files::write(&self.path, &bytes).map_err(ask)
    }

    pub(in crate::git) fn paths(&self) -> impl Iterator<Item = &[u8]> {
        self.file.entries().iter().map(|entry| entry.path(&self.file).as_bytes())
    }

    /// Path, mode and object of each entry.
    pub(in crate::git) fn staged(&self) -> impl Iterator<Item = (Vec<u8>, u32, String)> {
        let entries = self.file.entries().iter();
        entries.map(|one| (one.path(&self.file).to_vec(), one.mode.bits(), one.id.to_hex().to_string()))
    }

    /// The paths that are marked as not checked out.
    pub(in crate::git) fn left_out(&self) -> Vec<Vec<u8>> {
        let marked = self.file.entries().iter().filter(|one| one.flags.contains(Flags::SKIP_WORKTREE));
        marked.map(|one| one.path(&self.file).to_vec()).collect()
    }

    /// The paths of submodules.
    pub(in crate::git) fn submodules(&self) -> Vec<Vec<u8>> {
        let links = self.file.entries().iter().filter(|entry| entry.mode.is_submodule());
        links.map(|entry| entry.path(&self.file).to_vec()).collect()
    }

    /// Marks paths as not checked out, or as checked out.
    pub(in crate::git) fn mark(&mut self, hidden: &[&[u8]], shown: &[&[u8]]) -> Native<()> {
        let (hidden, shown): (BTreeSet<&[u8]>, BTreeSet<&[u8]>) =
            (hidden.iter().copied().collect(), shown.iter().copied().collect());
        let mut changed = false;
        for (entry, path) in self.file.entries_mut_with_paths() {
            let was = entry.flags.contains(Flags::SKIP_WORKTREE);
            let is = (was || hidden.contains(path.as_bytes())) && !shown.contains(path.as_bytes());
            if was != is {
                entry.flags.set(Flags::SKIP_WORKTREE, is);
                entry.flags.set(Flags::EXTENDED, is);
                changed = true;
            }
        }
        if changed { self.write() } else { Ok(()) }
    }

    /// Replaces and removes entries.
    pub(super) fn change(&mut self, gone: &BTreeSet<Vec<u8>>, new: &[NewEntry]) -> Native<()> {
        let replaced: BTreeSet<&[u8]> = new.iter().map(|entry| entry.path.as_slice()).collect();
        self.file.remove_entries(|_, path, _| {
            gone.contains(path.as_bytes()) || replaced.contains(path.as_bytes())
        });
        for NewEntry { path, kind, oid, stat } in new {
            let id = gix_hash::ObjectId::from_hex(oid.as_str().as_bytes()).map_err(ask)?;
            self.file.dangerously_push_entry(*stat, id, Flags::empty(), mode(*kind), BStr::new(path));
        }
        self.file.sort_entries();
        let paths: Vec<&[u8]> = self.paths().collect();
        // A file and a folder of one name, or a path twice, is no tree.
        let clash = paths.windows(2).any(|pair| {
            pair[0] == pair[1] || pair[1].strip_prefix(pair[0]).is_some_and(|rest| rest.starts_with(b"/"))
        });
        if clash { Err(AskGit) } else { Ok(()) }
    }
}

pub(super) fn mode(kind: FileKind) -> Mode {
    match kind {
        FileKind::File => Mode::FILE,
        FileKind::Executable => Mode::FILE_EXECUTABLE,
        FileKind::Link => Mode::SYMLINK,
        FileKind::Submodule => Mode::COMMIT,
    }
}

/// What a file is like now.
pub(super) fn stat_of(path: &Path) -> Native<Stat> {
    let meta = gix_index::fs::Metadata::from_path_no_follow(path).map_err(ask)?;
    Stat::from_fs(&meta).map_err(ask)
}

/// The content of a path as git stores it: the bytes of a file, or where a link leads.
pub(super) fn content(path: &Path, kind: FileKind) -> Native<Vec<u8>> {
    match kind {
        FileKind::File | FileKind::Executable => {
            let mut options = fs::File::options();
            let mut file =
                crate::platform::files::without_links(options.read(true)).open(path).map_err(ask)?;
            let mut bytes = Vec::new();
            std::io::Read::read_to_end(&mut file, &mut bytes).map_err(ask)?;
            Ok(bytes)
        }
        FileKind::Link => {
            let to = fs::read_link(path).map_err(ask)?;
            Ok(crate::platform::files::bytes(&to).to_vec())
        }
        FileKind::Submodule => Err(AskGit),
    }
}
