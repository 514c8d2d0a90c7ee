//! Bringing the touched paths of a half-moved working tree to one side, old or new.
//!
//! The rule: what is on disk at each path must be the old content, the new content, nothing, or the beginning
//! of the new content (a write that was cut off). Anything else is the user's, and then nothing is written at
//! all. The same goes for the index: its entry must be old, new or none.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::Error;
use super::forward::in_tree;
use crate::git::change::{ChangedPath, GITLINK};
use crate::git::checkouts::Checkout;
use crate::git::native::CopyIndex;
use crate::git::repo::Repo;
use crate::git::runner::GitCommand;
use crate::git::{ObjectId, content, files, runner};
use crate::platform::{files as os, machine};

/// Which side to bring the paths to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goal {
    Old,
    New,
}

pub(super) enum SettleResult {
    Done,
    Stopped { path: Vec<u8>, why: String },
}

/// The state of the touched paths of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TouchedState {
    pub(super) all_old: bool,
    pub(super) index_all_new: bool,
}

/// What a path has on one side of the move.
#[derive(Debug)]
struct Side {
    mode: String,
    raw: Vec<u8>,
    /// As the user's configuration would write it to disk.
    shown: Vec<u8>,
}

struct Sides {
    path: Vec<u8>,
    old: Option<Side>,
    new: Option<Side>,
}

pub(super) fn settle(
    repo: &Repo,
    tree: &Checkout,
    changed: &[ChangedPath],
    goal: Goal,
) -> Result<SettleResult, Error> {
    let sides = read_sides(repo, tree, changed)?;
    if let Some(stopped) = foreign(repo, tree, changed, &sides)? {
        return Ok(stopped);
    }
    for step in [Step::Remove, Step::Write] {
        for one in &sides {
            bring(&tree.tree, one, goal, step)
                .map_err(|source| Error::Io { path: tree.tree.join(files::path(&one.path)), source })?;
        }
    }
    move_index(repo, tree, changed, goal)?;
    // The answer is 1 when the user has changes of their own elsewhere: nothing to worry about.
    in_tree(repo, tree)?.args(["update-index", "-q", "--refresh"]).run()?;
    Ok(SettleResult::Done)
}

pub(super) fn standing(repo: &Repo, tree: &Checkout, changed: &[ChangedPath]) -> Result<TouchedState, Error> {
    let sides = read_sides(repo, tree, changed)?;
    let index = index_entries(repo, tree)?;
    let entry_is = |one: &ChangedPath, mode: &str, oid: &str| match index.get(&one.path) {
        Some(entry) => *entry == format!("{mode} {oid} 0"),
        None => mode == ABSENT,
    };
    let index_old = changed.iter().all(|one| entry_is(one, &one.old_mode, one.old_oid.as_str()));
    let index_all_new = changed.iter().all(|one| entry_is(one, &one.new_mode, one.new_oid.as_str()));
    let disk_old = sides.iter().all(|one| on_disk(&tree.tree, &one.path).is(one.old.as_ref()));
    Ok(TouchedState { all_old: index_old && disk_old, index_all_new })
}

const ABSENT: &str = "000000";

/// Reads both sides of every touched path; submodules are never written and have none.
fn read_sides(repo: &Repo, tree: &Checkout, changed: &[ChangedPath]) -> Result<Vec<Sides>, Error> {
    let mut wanted = Vec::new();
    let files = || changed.iter().filter(|one| one.old_mode != GITLINK && one.new_mode != GITLINK);
    for one in files() {
        for (mode, oid) in [(&one.old_mode, &one.old_oid), (&one.new_mode, &one.new_oid)] {
            if mode != ABSENT {
                wanted.push((one.path.as_slice(), mode, oid));
            }
        }
    }
    let oids: Vec<_> = wanted.iter().map(|(_, _, oid)| *oid).collect();
    let raw = content::read_blobs(repo, &oids)?;
    let named: Vec<(&ObjectId, &[u8])> = wanted.iter().map(|(path, _, oid)| (*oid, *path)).collect();
    let shown = as_shown(repo, tree, &named, &raw)?;
    let mut read = raw.into_iter().zip(shown);
    let mut sides = Vec::new();
    for one in files() {
        let mut side = |mode: &str| match mode {
            ABSENT => None,
            mode => read.next().map(|(raw, shown)| Side { mode: mode.to_owned(), raw, shown }),
        };
        let (old, new) = (side(&one.old_mode), side(&one.new_mode));
        sides.push(Sides { path: one.path.clone(), old, new });
    }
    Ok(sides)
}

/// Content as the user's configuration writes it to disk. Where a filter of the user's fails, the content
/// itself has to do.
fn as_shown(
    repo: &Repo,
    tree: &Checkout,
    named: &[(&ObjectId, &[u8])],
    raw: &[Vec<u8>],
) -> Result<Vec<Vec<u8>>, runner::Error> {
    let fence = fence()?;
    let all = filtered(repo, tree, named, &fence)?.run()?;
    if all.status.success() {
        return between(&all.stdout, &fence, named.len());
    }
    let mut shown = Vec::new();
    for (one, raw) in named.iter().zip(raw) {
        let single = filtered(repo, tree, &[*one], &fence)?.run()?;
        let mut bytes = match single.status.success() {
            true => between(&single.stdout, &fence, 1)?,
            false => Vec::new(),
        };
        shown.push(bytes.pop().unwrap_or_else(|| raw.clone()));
    }
    Ok(shown)
}

/// A line that no content can hold, for git does not report the length of filtered content.
fn fence() -> Result<String, runner::Error> {
    let mut random = [0; 16];
    machine::random(&mut random)
        .map_err(|source| runner::Error::Io { what: "cat-file --batch".to_owned(), source })?;
    Ok(blake3::hash(&random).to_hex().to_string())
}

/// The content after each fence, without the newline that git adds.
fn between(output: &[u8], fence: &str, count: usize) -> Result<Vec<Vec<u8>>, runner::Error> {
    let mark = [fence.as_bytes(), b"\n"].concat();
    let (mut parts, mut start, mut at) = (Vec::new(), None, 0);
    while at < output.len() {
        let here = output[at..].starts_with(&mark);
        if here {
            parts.extend(start.map(|start: usize| output[start..at - 1].to_vec()));
            at += mark.len();
            start = Some(at);
        } else {
            at += 1;
        }
    }
    parts.extend(start.map(|start| output[start..].strip_suffix(b"\n").unwrap_or_default().to_vec()));
    if parts.len() == count {
        return Ok(parts);
    }
    let answer = format!("{} of {count} files", parts.len());
    Err(runner::Error::Unexpected { what: "cat-file --batch --filters".to_owned(), answer })
}

/// A command that prints content as it would be written to disk.
fn filtered(
    repo: &Repo,
    tree: &Checkout,
    named: &[(&ObjectId, &[u8])],
    fence: &str,
) -> Result<GitCommand, runner::Error> {
    let mut input = Vec::new();
    for (oid, path) in named {
        input.extend_from_slice(&[oid.as_str().as_bytes(), b" ", path, b"\0"].concat());
    }
    let batch = format!("--batch={fence}");
    Ok(in_tree(repo, tree)?.args(["cat-file", &batch, "--filters", "-z"]).input(input))
}

/// Lets the user's filters write all new content to nowhere: what fails here must not fail halfway.
pub(super) fn rehearse(repo: &Repo, tree: &Checkout, changed: &[ChangedPath]) -> Result<(), runner::Error> {
    let plain = |one: &&ChangedPath| one.new_mode.starts_with("100");
    let named: Vec<_> = changed.iter().filter(plain).map(|one| (&one.new_oid, one.path.as_slice())).collect();
    filtered(repo, tree, &named, "%(objectname)")?.cap(0).done().map(drop)
}

/// What a path is on disk.
enum OnDisk {
    Nothing,
    Link(Vec<u8>),
    File { bytes: Vec<u8>, executable: bool },
    Directory,
    Other,
}

/// Looks at a path; something beyond a link or a file is nothing.
fn on_disk(tree: &Path, path: &[u8]) -> OnDisk {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    for (at, _) in slashes {
        if !files::is_real_dir(&tree.join(files::path(&path[..at]))) {
            return OnDisk::Nothing;
        }
    }
    let file = tree.join(files::path(path));
    let Ok(meta) = fs::symlink_metadata(&file) else { return OnDisk::Nothing };
    if meta.is_symlink() {
        return fs::read_link(file).map_or(OnDisk::Other, |to| OnDisk::Link(os::bytes(&to).to_vec()));
    }
    if meta.is_dir() {
        return OnDisk::Directory;
    }
    if !meta.is_file() {
        return OnDisk::Other;
    }
    let executable = os::mode(&meta) & 0o100 != 0;
    fs::read(file).map_or(OnDisk::Other, |bytes| OnDisk::File { bytes, executable })
}

impl OnDisk {
    fn is(&self, side: Option<&Side>) -> bool {
        match (self, side) {
            (OnDisk::Nothing, None) => true,
            // A directory where the side has no file: the paths in it decide.
            (OnDisk::Directory, None) => true,
            (OnDisk::Link(to), Some(side)) => side.mode == "120000" && *to == side.raw,
            (OnDisk::File { bytes, executable }, Some(side)) => {
                side.mode != "120000"
                    && *executable == (side.mode == "100755")
                    && (*bytes == side.shown || *bytes == side.raw)
            }
            (OnDisk::Link(_) | OnDisk::File { .. } | OnDisk::Other, None) => false,
            (OnDisk::Nothing | OnDisk::Directory | OnDisk::Other, Some(_)) => false,
        }
    }

    /// A write of `side` that was cut off.
    fn begins(&self, side: Option<&Side>) -> bool {
        match (self, side) {
            (OnDisk::File { bytes, .. }, Some(side)) => {
                side.mode != "120000" && (side.shown.starts_with(bytes) || side.raw.starts_with(bytes))
            }
            (
                OnDisk::Nothing | OnDisk::Directory | OnDisk::Link(_) | OnDisk::File { .. } | OnDisk::Other,
                _,
            ) => false,
        }
    }
}

/// The first path that neither side explains.
fn foreign(
    repo: &Repo,
    tree: &Checkout,
    changed: &[ChangedPath],
    sides: &[Sides],
) -> Result<Option<SettleResult>, Error> {
    for one in sides {
        let disk = on_disk(&tree.tree, &one.path);
        let explained = matches!(disk, OnDisk::Nothing | OnDisk::Directory)
            || disk.is(one.old.as_ref())
            || disk.is(one.new.as_ref())
            || disk.begins(one.new.as_ref());
        if !explained {
            let why = "the file was changed by another process".to_owned();
            return Ok(Some(SettleResult::Stopped { path: one.path.clone(), why }));
        }
    }
    let index = index_entries(repo, tree)?;
    for one in changed {
        let Some(entry) = index.get(&one.path) else { continue };
        let old = format!("{} {} 0", one.old_mode, one.old_oid);
        let new = format!("{} {} 0", one.new_mode, one.new_oid);
        if *entry != old && *entry != new {
            let why = "something else was staged".to_owned();
            return Ok(Some(SettleResult::Stopped { path: one.path.clone(), why }));
        }
    }
    Ok(None)
}

/// Removes paths first, so that new paths can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Remove,
    Write,
}

fn bring(tree: &Path, one: &Sides, goal: Goal, step: Step) -> io::Result<()> {
    let side = match goal {
        Goal::Old => one.old.as_ref(),
        Goal::New => one.new.as_ref(),
    };
    let disk = on_disk(tree, &one.path);
    match (side, step) {
        (None, Step::Remove) => match disk {
            OnDisk::Nothing | OnDisk::Directory => Ok(()),
            OnDisk::Link(_) | OnDisk::File { .. } | OnDisk::Other => remove_file(tree, &one.path),
        },
        (Some(side), Step::Write) if !disk.is(Some(side)) => write(tree, &one.path, side),
        (Some(_), Step::Remove | Step::Write) | (None, Step::Write) => Ok(()),
    }
}

/// Removes a file and the directories it leaves empty.
fn remove_file(tree: &Path, path: &[u8]) -> io::Result<()> {
    let file = tree.join(files::path(path));
    fs::remove_file(&file)?;
    files::remove_empty_parents(tree, &file);
    Ok(())
}

fn write(tree: &Path, path: &[u8], side: &Side) -> io::Result<()> {
    let file = tree.join(files::path(path));
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent)?;
    }
    let temporary = files::beside(&file);
    if side.mode == "120000" {
        os::symlink(files::path(&side.raw), &temporary)?;
    } else {
        // 0666 and 0777 before the user's umask, as git itself does.
        let mode = if side.mode == "100755" { 0o777 } else { 0o666 };
        files::write_new(&temporary, &side.shown, mode)?;
        let written = fs::File::open(&temporary)?;
        written.sync_all()?;
        if side.mode == "100755" {
            let now = os::mode(&written.metadata()?);
            os::set_mode(&temporary, now | 0o100)?;
        }
    }
    if files::is_real_dir(&file) {
        // Only an empty directory can be left here: everything in it was a path that went.
        fs::remove_dir(&file)?;
    }
    fs::rename(&temporary, &file).inspect_err(|_| drop(fs::remove_file(&temporary)))
}

/// Every entry of the tree's index as `mode oid stage`.
fn index_entries(repo: &Repo, tree: &Checkout) -> Result<BTreeMap<Vec<u8>, String>, runner::Error> {
    if let Ok(index) = CopyIndex::read(&tree.git_dir.join("index"), &repo.format) {
        return Ok(index.staged().map(|(path, mode, oid)| (path, format!("{mode:06o} {oid} 0"))).collect());
    }
    let listing = in_tree(repo, tree)?.args(["ls-files", "-s", "-z"]).done()?.stdout;
    let entries = listing.split(|byte| *byte == 0).filter_map(|entry| {
        let tab = entry.iter().position(|byte| *byte == b'\t')?;
        Some((entry[tab + 1..].to_vec(), String::from_utf8_lossy(&entry[..tab]).into_owned()))
    });
    Ok(entries.collect())
}

/// Moves the index entries of just the touched paths.
fn move_index(repo: &Repo, tree: &Checkout, changed: &[ChangedPath], goal: Goal) -> Result<(), Error> {
    let index = index_entries(repo, tree)?;
    let (mut gone, mut there) = (Vec::new(), Vec::new());
    for one in changed {
        let (mode, oid) = match goal {
            Goal::Old => (&one.old_mode, &one.old_oid),
            Goal::New => (&one.new_mode, &one.new_oid),
        };
        let entry = (mode != ABSENT).then(|| format!("{mode} {oid} 0"));
        if index.get(&one.path) == entry.as_ref() {
            continue;
        }
        let list = if mode == ABSENT { &mut gone } else { &mut there };
        let mode = if mode == ABSENT { "0" } else { mode.as_str() };
        list.extend_from_slice(
            &[mode.as_bytes(), b" ", oid.as_str().as_bytes(), b"\t", &one.path, b"\0"].concat(),
        );
    }
    gone.extend(there);
    if gone.is_empty() {
        return Ok(());
    }
    in_tree(repo, tree)?.args(["update-index", "-z", "--replace", "--index-info"]).input(gone).done()?;
    Ok(())
}
