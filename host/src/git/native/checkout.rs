//! Writing the files of a commit into a working copy of our own, and its index with them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use gix_index::entry::Stat;
use gix_object::bstr::BStr;

use super::index::{CopyIndex, NewEntry, content, stat_of};
use super::objects::{FileKind, ObjectKind, Objects};
use super::writing::NewTree;
use super::{AskGit, Native, ask};
use crate::git::change::{ChangedPath, PathStatus};
use crate::git::{ObjectId, files};
use crate::platform::files as os;

/// Files that are worth a thread of their own.
const FILES_PER_THREAD: usize = 200;
const MOST_THREADS: usize = 8;

/// Whether new files can be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::git) enum NewFiles {
    Writable,
    Protected,
}

/// Brings an unchanged working copy, and its index, from one commit to another; from none into an empty folder.
pub(in crate::git) fn move_to(
    objects: &Objects,
    (index, format): (PathBuf, &str),
    tree: &Path,
    (from, to): (Option<&ObjectId>, &ObjectId),
    new: NewFiles,
) -> Native<()> {
    let (mut index, changed) = match from {
        Some(from) => (CopyIndex::read(&index, format)?, objects.touched(from, to)?),
        None => (CopyIndex::empty(&index, format)?, Vec::new()),
    };
    let mut gone = BTreeSet::new();
    let mut wanted: Vec<(Vec<u8>, FileKind, ObjectId)> = Vec::new();
    if from.is_none() {
        for entry in objects.files(to, b"")? {
            let kind = FileKind::of_mode(&entry.mode).ok_or(AskGit)?;
            wanted.push((entry.path, kind, entry.oid));
        }
    }
    for one in changed {
        if one.status != PathStatus::Added {
            gone.insert(one.path.clone());
        }
        if one.status != PathStatus::Deleted {
            let kind = FileKind::of_mode(&one.new_mode).ok_or(AskGit)?;
            wanted.push((one.path, kind, one.new_oid));
        }
    }
    wanted.iter().try_for_each(|(path, kind, _)| check_path(path, *kind))?;
    for path in &gone {
        remove(tree, path)?;
    }
    let mut made = BTreeSet::new();
    for (path, kind, _) in &wanted {
        make_parents(tree, path, &mut made)?;
        if *kind == FileKind::Submodule {
            fs::create_dir(tree.join(files::path(path))).map_err(ask)?;
        }
    }
    let entries = write_all(objects, tree, &wanted, new)?;
    index.change(&gone, &entries)?;
    index.write()
}

/// Whether git would write a file of this name.
fn check_path(path: &[u8], kind: FileKind) -> Native<()> {
    let options = gix_validate::path::component::Options {
        protect_windows: false,
        protect_hfs: true,
        protect_ntfs: true,
    };
    let mut parts = path.split(|byte| *byte == b'/').peekable();
    while let Some(part) = parts.next() {
        let is_link = parts.peek().is_none() && kind == FileKind::Link;
        let mode = is_link.then_some(gix_validate::path::component::Mode::Symlink);
        gix_validate::path::component(BStr::new(part), mode, options).map_err(ask)?;
    }
    Ok(())
}

fn remove(tree: &Path, path: &[u8]) -> Native<()> {
    let file = tree.join(files::path(path));
    match fs::symlink_metadata(&file) {
        // Of a submodule; it is not checked out.
        Ok(meta) if meta.is_dir() => fs::remove_dir(&file).map_err(ask)?,
        Ok(_) => fs::remove_file(&file).map_err(ask)?,
        // One that was left out.
        Err(_) => {}
    }
    files::remove_empty_parents(tree, &file);
    Ok(())
}

/// Makes the folders above a path, none of which may be a link.
fn make_parents(tree: &Path, path: &[u8], made: &mut BTreeSet<Vec<u8>>) -> Native<()> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let parents = slashes.map(|(at, _)| &path[..at]).collect::<Vec<_>>();
    let known = parents.iter().rposition(|parent| made.contains(*parent)).map_or(0, |last| last + 1);
    for parent in parents.iter().skip(known) {
        let folder = tree.join(files::path(parent));
        if fs::create_dir(&folder).is_err() && !files::is_real_dir(&folder) {
            return Err(AskGit);
        }
        made.insert(parent.to_vec());
    }
    Ok(())
}

type Wanted = (Vec<u8>, FileKind, ObjectId);

fn write_all(objects: &Objects, tree: &Path, wanted: &[Wanted], new: NewFiles) -> Native<Vec<NewEntry>> {
    let threads = thread::available_parallelism().map_or(1, usize::from).clamp(1, MOST_THREADS);
    let share = wanted.len().div_ceil(threads).max(FILES_PER_THREAD);
    if wanted.len() <= share {
        return wanted.iter().map(|one| write_one(objects, tree, one, new)).collect();
    }
    let parts: Vec<Native<Vec<NewEntry>>> = thread::scope(|scope| {
        let begin = |part: &'_ [Wanted]| {
            let (part, own) = (part.to_vec(), objects.again());
            scope.spawn(move || part.iter().map(|one| write_one(&own, tree, one, new)).collect())
        };
        let running: Vec<_> = wanted.chunks(share).map(begin).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or(Err(AskGit))).collect()
    });
    let mut entries = Vec::with_capacity(wanted.len());
    for part in parts {
        entries.extend(part?);
    }
    Ok(entries)
}

fn write_one(objects: &Objects, tree: &Path, (path, kind, oid): &Wanted, new: NewFiles) -> Native<NewEntry> {
    let file = tree.join(files::path(path));
    if file.as_os_str().len() > files::LONGEST {
        return Err(AskGit);
    }
    let stat = match kind {
        FileKind::File | FileKind::Executable => {
            let all = if *kind == FileKind::Executable { 0o777 } else { 0o666 };
            let mode = match new {
                NewFiles::Writable => all,
                NewFiles::Protected => all & 0o555,
            };
            let mut options = File::options();
            options.write(true).create_new(true);
            let mut out = os::with_mode(&mut options, mode).open(&file).map_err(ask)?;
            out.write_all(&objects.read(oid, ObjectKind::Blob)?).map_err(ask)?;
            let meta = gix_index::fs::Metadata::from_file(&out).map_err(ask)?;
            Stat::from_fs(&meta).map_err(ask)?
        }
        FileKind::Link => {
            let to = objects.read(oid, ObjectKind::Blob)?;
            if to.is_empty() || to.contains(&0) {
                return Err(AskGit);
            }
            os::symlink(files::path(&to), &file).map_err(ask)?;
            stat_of(&file)?
        }
        FileKind::Submodule => Stat::default(),
    };
    Ok(NewEntry { path: path.clone(), kind: *kind, oid: oid.clone(), stat })
}

/// Brings only the index to another commit. The files are compared when somebody looks.
pub(in crate::git) fn move_index(
    objects: &Objects,
    (index, format): (PathBuf, &str),
    (from, to): (&ObjectId, &ObjectId),
) -> Native<()> {
    if from == to {
        return CopyIndex::read(&index, format).map(drop);
    }
    let mut index = CopyIndex::read(&index, format)?;
    let (mut gone, mut new) = (BTreeSet::new(), Vec::new());
    for ChangedPath { path, status, new_mode, new_oid, .. } in objects.touched(from, to)? {
        gone.insert(path.clone());
        if status != PathStatus::Deleted {
            let kind = FileKind::of_mode(&new_mode).ok_or(AskGit)?;
            new.push(NewEntry { path, kind, oid: new_oid, stat: Stat::default() });
        }
    }
    index.change(&gone, &new)?;
    index.write()
}

/// Takes changed and untracked files into the index and writes the tree that results; `missing` leave it.
pub(in crate::git) fn take_in(
    objects: &Objects,
    (index, format): (PathBuf, &str),
    tree: &Path,
    parent: &ObjectId,
    (missing, present): (&[&[u8]], &[&[u8]]),
) -> Native<ObjectId> {
    let mut index = CopyIndex::read(&index, format)?;
    let mut gone: BTreeSet<Vec<u8>> = missing.iter().map(|path| path.to_vec()).collect();
    let (mut new, mut changes) = (Vec::new(), NewTree::default());
    for path in present {
        let file = tree.join(files::path(path));
        let meta = fs::symlink_metadata(&file).map_err(ask)?;
        let kind = match meta.file_type() {
            kind if kind.is_symlink() => FileKind::Link,
            kind if kind.is_file() && os::mode(&meta) & 0o100 != 0 => FileKind::Executable,
            kind if kind.is_file() => FileKind::File,
            _ => return Err(AskGit),
        };
        check_path(path, kind)?;
        // Before the content is read: a change after that shows.
        let stat = stat_of(&file)?;
        let oid = objects.write(ObjectKind::Blob, &content(&file, kind)?, false)?;
        changes.added.push((path.to_vec(), kind, oid.clone()));
        new.push(NewEntry { path: path.to_vec(), kind, oid, stat });
    }
    // A path that is a folder now, or is below what is a file now, leaves.
    let below =
        |path: &[u8], folder: &[u8]| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(b"/"));
    if !new.is_empty() {
        let clashes = index
            .paths()
            .filter(|path| new.iter().any(|one| below(&one.path, path) || below(path, &one.path)));
        gone.extend(clashes.map(<[u8]>::to_vec).collect::<Vec<_>>());
    }
    changes.removed = gone.iter().cloned().collect();
    if new.is_empty() && gone.is_empty() {
        return objects.tree_of(parent);
    }
    let made = objects.edit(parent, &changes)?;
    index.change(&gone, &new)?;
    index.write()?;
    Ok(made)
}
