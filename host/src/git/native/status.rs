//! What differs between the index of a working copy and its files, as `git status` finds it: changed, missing and
//! untracked paths, and ignored ones if wanted.
//!
//! The files of the index are looked at by one thread while another walks the folders for files that are not in it.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::thread;

use gix_ignore::Search;
use gix_ignore::glob::pattern::Case;
use gix_ignore::search::Ignore;
use gix_index::entry::{Flags, Mode, Stat};
use gix_object::bstr::{BStr, ByteSlice};

use super::index::{CopyIndex, content};
use super::objects::{FileKind, ObjectKind, Objects};
use super::{AskGit, Native, ask};
use crate::git::files;
use crate::platform::files as os;

/// A file larger than this whose times have changed is compared by git.
const LARGEST: u64 = 64 * 1024 * 1024;
const LONGEST_IGNORE_FILE: u64 = 16 * 1024 * 1024;
const DEEPEST: usize = 256;

/// How a path on disk differs from the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::git) enum DifferenceKind {
    Changed,
    Missing,
    Untracked,
    /// An untracked directory that is a git repository of its own; only git tells.
    Nested,
    Ignored,
}

/// The paths of a working copy that differ, in git's order.
pub(in crate::git) type CopyStatus = Vec<(DifferenceKind, Vec<u8>)>;

/// One pass over a working copy. `excludes` is the content of `info/exclude`.
pub(in crate::git) fn status(
    index: &mut CopyIndex,
    objects: &Objects,
    tree: &Path,
    excludes: &[u8],
    ignored: bool,
) -> Native<CopyStatus> {
    let (tracked, untracked) = thread::scope(|scope| {
        let shared = &*index;
        let tracked = scope.spawn(move || compare(shared, objects, tree));
        let untracked = Walk::new(shared, tree, excludes, ignored).and_then(Walk::run);
        (tracked.join().unwrap_or(Err(AskGit)), untracked)
    });
    let (mut found, fresh) = tracked?;
    let mut others = untracked?;
    others.sort();
    found.extend(others);
    if !fresh.is_empty() {
        for (at, stat) in fresh {
            index.file.entries_mut()[at].stat = stat;
        }
        index.write()?;
    }
    Ok(found)
}

/// What a comparison with the index gives: the paths that differ, and what is to be known of files from now on: of one that is
/// the same though its times are not, those; of one that differs though its times are the same, nothing.
type Compared = (CopyStatus, Vec<(usize, Stat)>);

fn compare(index: &CopyIndex, objects: &Objects, tree: &Path) -> Native<Compared> {
    let options = gix_index::entry::stat::Options { use_nsec: true, ..Default::default() };
    let (mut found, mut fresh) = (Vec::new(), Vec::new());
    let mut folder: (Vec<u8>, bool) = (Vec::new(), true);
    for (at, entry) in index.file.entries().iter().enumerate() {
        let path = entry.path(&index.file).as_bytes();
        if entry.flags.contains(Flags::SKIP_WORKTREE) {
            continue;
        }
        let parent = path.iter().rposition(|byte| *byte == b'/').map_or(&path[..0], |slash| &path[..slash]);
        if folder.0 != parent {
            folder = (parent.to_vec(), is_real_folder(tree, parent));
        }
        let file = tree.join(files::path(path));
        let meta = if folder.1 { gix_index::fs::Metadata::from_path_no_follow(&file).ok() } else { None };
        let Some(meta) = meta else {
            found.push((DifferenceKind::Missing, path.to_vec()));
            continue;
        };
        if entry.mode == Mode::COMMIT {
            match is_empty_folder(&file) {
                Some(true) => continue,
                Some(false) => return Err(AskGit),
                None => {
                    found.push((DifferenceKind::Changed, path.to_vec()));
                    continue;
                }
            }
        }
        let kind = if meta.is_symlink() {
            FileKind::Link
        } else if meta.is_file() && meta.is_executable() {
            FileKind::Executable
        } else if meta.is_file() {
            FileKind::File
        } else if meta.is_dir() {
            found.push((DifferenceKind::Missing, path.to_vec()));
            continue;
        } else {
            return Err(AskGit);
        };
        if super::index::mode(kind) != entry.mode {
            found.push((DifferenceKind::Changed, path.to_vec()));
            continue;
        }
        let stat = Stat::from_fs(&meta).map_err(ask)?;
        let is_known = entry.stat.matches(&stat, options);
        // As young as the index, so it may have changed since with the same times; and git writes the size 0 where it knew
        // that.
        let is_sure = !entry.stat.is_racy(index.file.timestamp(), options) && entry.stat.size > 0;
        if is_known && is_sure {
            continue;
        }
        if meta.len() > LARGEST {
            return Err(AskGit);
        }
        let oid = objects.name_of(ObjectKind::Blob, &content(&file, kind)?)?;
        if gix_hash::ObjectId::from_hex(oid.as_str().as_bytes()).map_err(ask)? != entry.id {
            found.push((DifferenceKind::Changed, path.to_vec()));
            if is_known {
                // An index that is written later is younger than the file, and would vouch for it.
                fresh.push((at, Stat::default()));
            }
        } else if !is_known {
            fresh.push((at, stat));
        }
    }
    Ok((found, fresh))
}

/// Whether a folder of the copy is one, and so are all above it.
fn is_real_folder(tree: &Path, path: &[u8]) -> bool {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    let mut ends = slashes.chain((!path.is_empty()).then_some(path.len()));
    ends.all(|end| files::is_real_dir(&tree.join(files::path(&path[..end]))))
}

fn is_empty_folder(path: &Path) -> Option<bool> {
    if !files::is_real_dir(path) {
        return None;
    }
    fs::read_dir(path).ok().map(|mut entries| entries.next().is_none())
}

/// Finds what is on disk and not in the index.
struct Walk<'a> {
    index: &'a CopyIndex,
    tree: &'a Path,
    files: HashSet<&'a [u8]>,
    folders: HashSet<&'a [u8]>,
    search: Search,
    with_ignored: bool,
    found: CopyStatus,
}

impl<'a> Walk<'a> {
    fn new(index: &'a CopyIndex, tree: &'a Path, excludes: &[u8], with_ignored: bool) -> Native<Walk<'a>> {
        let mut files = HashSet::with_capacity(index.file.entries().len());
        let mut folders = HashSet::new();
        for path in index.paths() {
            files.insert(path);
            let mut end = path.len();
            while let Some(slash) = path[..end].iter().rposition(|byte| *byte == b'/') {
                if !folders.insert(&path[..slash]) {
                    break;
                }
                end = slash;
            }
        }
        let mut search = Search::default();
        search.add_patterns_buffer(excludes, "info/exclude", None, Ignore::default()).map_err(ask)?;
        Ok(Walk { index, tree, files, folders, search, with_ignored, found: Vec::new() })
    }

    fn run(mut self) -> Native<CopyStatus> {
        self.folder(&[], false, 0)?;
        Ok(self.found)
    }

    /// `ignored`: a folder above matches a pattern, so everything in it that is not in the index is ignored.
    fn folder(&mut self, path: &[u8], ignored: bool, depth: usize) -> Native<()> {
        if depth > DEEPEST {
            return Err(AskGit);
        }
        let before = self.search.patterns.len();
        if !ignored {
            self.read_patterns(path)?;
        }
        for entry in fs::read_dir(self.tree.join(files::path(path))).map_err(ask)? {
            let entry = entry.map_err(ask)?;
            let name = entry.file_name();
            let name = os::bytes(&name);
            if name == b".git" && path.is_empty() {
                continue;
            }
            // Git looks for a repository there.
            if name.eq_ignore_ascii_case(b".git") {
                return Err(AskGit);
            }
            let path = if path.is_empty() { name.to_vec() } else { [path, b"/", name].concat() };
            let kind = entry.file_type().map_err(ask)?;
            if kind.is_dir() {
                self.subfolder(&path, ignored, depth)?;
            } else if kind.is_file() || kind.is_symlink() {
                if !self.files.contains(path.as_slice()) {
                    let seen = if ignored || self.is_ignored(&path, false) {
                        DifferenceKind::Ignored
                    } else {
                        DifferenceKind::Untracked
                    };
                    if seen == DifferenceKind::Untracked || self.with_ignored {
                        self.found.push((seen, path));
                    }
                }
            } else {
                return Err(AskGit);
            }
        }
        self.search.patterns.truncate(before);
        Ok(())
    }

    fn subfolder(&mut self, path: &[u8], ignored: bool, depth: usize) -> Native<()> {
        let is_submodule = self.files.contains(path)
            && self.index.file.entry_by_path(BStr::new(path)).is_some_and(|entry| entry.mode == Mode::COMMIT);
        if is_submodule {
            return Ok(());
        }
        let ignored = ignored || self.is_ignored(path, true);
        if ignored && !self.with_ignored && !self.folders.contains(path) {
            return Ok(());
        }
        self.folder(path, ignored, depth + 1)
    }

    fn is_ignored(&self, path: &[u8], is_folder: bool) -> bool {
        let path = BStr::new(path);
        let matched = self.search.pattern_matching_relative_path(path, Some(is_folder), Case::Sensitive);
        matched.is_some_and(|found| !found.pattern.is_negative())
    }

    fn read_patterns(&mut self, folder: &[u8]) -> Native<()> {
        let path = [folder, b".gitignore"].join(if folder.is_empty() { b"".as_slice() } else { b"/" });
        let file = self.tree.join(files::path(&path));
        match fs::symlink_metadata(&file) {
            Ok(meta) if meta.is_file() && meta.len() <= LONGEST_IGNORE_FILE => {}
            // One that is a link is not followed, and one that was left out is read from the index.
            Ok(_) => return Err(AskGit),
            Err(_) if self.files.contains(path.as_slice()) => return Err(AskGit),
            Err(_) => return Ok(()),
        }
        let bytes = fs::read(&file).map_err(ask)?;
        let source = files::path(&path);
        // A path that begins with a base.
        self.search.add_patterns_buffer(&bytes, source, Some(Path::new("")), Ignore::default()).map_err(ask)
    }
}
