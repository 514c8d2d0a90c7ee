//! Build results that come back in later tests (`cache`). What may come back is decided in
//! [`archeflow_core::rules::caches`]; here it is copied.
//!
//! - **One way in.** What a passing test left is set aside for its run, and becomes what other tests get when exactly that
//!   tree lands. Before that no test sees it; what is not landed is removed with the run.
//! - **No way back.** A test gets a copy, with no link in it and none followed, so it can't write to what is kept.
//! - **Crashes.** A folder counts only with its record, which is written last and removed first.
//!
//! Whoever copies holds a lock that landing waits for, so no copy is of two trees. Without what is kept a test only takes
//! longer: no failure here is one of the test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use archeflow_core::event::CachedFolder;
use archeflow_core::rules::caches::{self, UNIT_FOLDERS};
use serde::{Deserialize, Serialize};

use super::setup;
use crate::cleaning::disk;
use crate::git::{ObjectId, change};
use crate::platform::files as os;
use crate::platform::removal::remove_tree;
use crate::store::files;
use crate::world::World;

/// Below the program's state; in it a folder for each repository.
pub(crate) const FOLDER: &str = "build-cache";
/// What tests get, of the tree that landed last.
const LANDED: &str = "landed";
/// What passing tests left, by run.
const RUNS: &str = "runs";
const DONE: &str = "done.json";
const FILES: &str = "files";
const RECORD: u64 = 1 << 20;

/// What the run's first line says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheChoice {
    pub folders: Vec<String>,
    pub test_command: String,
}

/// What is kept, or set aside.
#[derive(Debug, Serialize, Deserialize)]
struct KeptFolders {
    commit: String,
    tree: String,
    /// What must be the same for a folder to be used.
    keys: BTreeMap<String, String>,
}

impl KeptFolders {
    fn open(folder: &Path) -> Option<KeptFolders> {
        serde_json::from_slice(&files::read_capped(&folder.join(DONE), RECORD).ok()?).ok()
    }
}

/// Copies what is kept into the copy of a test. Returns what came of each folder of `cache`.
pub(crate) fn lay(world: &World, commit: &ObjectId, tree: &Path) -> Vec<CachedFolder> {
    let folders = world.cache().map(|choice| choice.folders.as_slice()).unwrap_or_default();
    let one = |folder: &String| {
        let laid = key(world, commit, folder).and_then(|key| {
            lay_one(&place(world), (folder, &key), tree).map_err(|error| error.to_string())?
        });
        let folder = folder.clone();
        match laid {
            Ok(from) => CachedFolder { folder, from: Some(from), cold: String::new() },
            Err(cold) => CachedFolder { folder, from: None, cold },
        }
    };
    folders.iter().map(one).collect()
}

/// Returns the commit that it is from, or why there is nothing.
fn lay_one(place: &Path, (folder, key): (&str, &str), tree: &Path) -> io::Result<Result<String, String>> {
    let to = below(tree, folder)?;
    if disk::exists(&to) {
        return Ok(Err("the setup makes it".to_owned()));
    }
    let landed = place.join(LANDED);
    let nothing = || Ok(Err("nothing is kept yet".to_owned()));
    if !disk::is_real_folder(&landed) {
        return nothing();
    }
    let _use = setup::hold_use(place)?;
    let Some(kept) = KeptFolders::open(&landed) else { return nothing() };
    match kept.keys.get(folder) {
        None => return nothing(),
        Some(known) if known != key => {
            return Ok(Err("what is kept was built with other settings".to_owned()));
        }
        Some(_) => {}
    }
    if let Err(error) = copy(landed.join(FILES).join(folder), to.clone()) {
        remove_tree(&to)?;
        return Err(error);
    }
    // When it was last of use.
    let record = fs::File::options().append(true).open(landed.join(DONE));
    let _ = record.and_then(|file| file.set_modified(SystemTime::now()));
    Ok(Ok(kept.commit))
}

/// Keeps what a passing test left for the landing of its tree. The copy is not tested again.
pub(super) fn set_aside(world: &World, commit: &ObjectId, tree: &Path) {
    if world.cache().is_some() && try_set_aside(world, commit, tree).is_err() {
        let _ = drop_of_run(world);
    }
}

fn try_set_aside(world: &World, commit: &ObjectId, tree: &Path) -> io::Result<()> {
    drop_of_run(world)?;
    let aside = of_run(world);
    let mut keys = BTreeMap::new();
    for folder in world.cache().iter().flat_map(|choice| &choice.folders) {
        let Ok(key) = key(world, commit, folder) else { continue };
        let from = below(tree, folder)?;
        if !disk::is_real_folder(&from) {
            continue;
        }
        let lock = change::blob_at(&world.repo, commit, caches::lock_of(folder).as_bytes());
        let lock = lock.map_err(io::Error::other)?.unwrap_or_default();
        let pinned = caches::pinned_packages(&String::from_utf8_lossy(&lock));
        keep_units(&from, &aside.join(FILES).join(folder), &pinned)?;
        keys.insert(folder.clone(), key);
    }
    if keys.is_empty() {
        return Ok(());
    }
    let of_commit = world.repo.tree_of(commit).map_err(io::Error::other)?;
    let kept = KeptFolders { commit: commit.to_string(), tree: of_commit.to_string(), keys };
    let text = serde_json::to_vec(&kept).map_err(io::Error::other)?;
    files::write_atomic(&aside.join(DONE), &text).map_err(io::Error::other)
}

/// What the tests of this tree left is what the next tests get, if they were of this run.
pub(super) fn adopt(world: &World, tree: &str) {
    let aside = of_run(world);
    if KeptFolders::open(&aside).is_some_and(|kept| kept.tree == tree) {
        let _ = replace(&place(world), &aside);
    }
}

fn replace(place: &Path, aside: &Path) -> io::Result<()> {
    let landed = place.join(LANDED);
    let lock = setup::open_use(place)?;
    lock.lock()?;
    let old = if disk::exists(&landed) { Some(disk::put_aside(&landed)?) } else { None };
    fs::rename(aside, &landed)?;
    drop(lock);
    old.map_or(Ok(()), |old| disk::remove(&old))
}

/// A landing was taken back: nothing of it serves later tests.
pub(super) fn forget(world: &World) {
    let _ = remove_landed(&place(world));
}

pub(crate) fn remove_landed(place: &Path) -> io::Result<()> {
    let landed = place.join(LANDED);
    if !disk::exists(&landed) {
        return Ok(());
    }
    let lock = setup::open_use(place)?;
    lock.lock()?;
    let old = disk::put_aside(&landed)?;
    drop(lock);
    disk::remove(&old)
}

/// What is kept of one repository, and what is set aside there for runs.
pub(crate) struct StoredBuilds {
    pub(crate) landed: PathBuf,
    pub(crate) is_complete: bool,
    /// In milliseconds since 1970.
    pub(crate) last_use: u64,
    pub(crate) of_runs: PathBuf,
}

pub(crate) fn stored(place: &Path) -> StoredBuilds {
    let landed = place.join(LANDED);
    let is_complete = KeptFolders::open(&landed).is_some();
    let last_use = disk::changed_at(&landed.join(DONE));
    StoredBuilds { landed, is_complete, last_use, of_runs: place.join(RUNS) }
}

/// Removes what an earlier test of the run left. Its record goes first.
pub(super) fn drop_of_run(world: &World) -> io::Result<()> {
    let aside = of_run(world);
    if !disk::exists(&aside) {
        return Ok(());
    }
    match fs::remove_file(aside.join(DONE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => remove_tree(&aside),
    }
}

fn place(world: &World) -> PathBuf {
    world.state.join(FOLDER).join(world.repo.id())
}

fn of_run(world: &World) -> PathBuf {
    place(world).join(RUNS).join(&world.run_id)
}

/// What decides, besides the tool itself, how the packages of a folder are built; or why the folder is not kept.
fn key(world: &World, commit: &ObjectId, folder: &str) -> Result<String, String> {
    let listed = world.repo.list_dir(commit, b"").map_err(|error| error.to_string())?;
    let named = listed.iter().filter_map(|entry| Some((std::str::from_utf8(&entry.path).ok()?, entry)));
    let named: Vec<_> = named.collect();
    let paths: Vec<&str> = named.iter().map(|(path, _)| *path).collect();
    caches::tool_of(folder, &paths)?;
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &str| {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    };
    let setup = world.setup().map_or("", |setup| setup.command.as_str());
    let command = world.cache().map_or("", |choice| choice.test_command.as_str());
    [setup, command, world.sandbox.name(), std::env::consts::ARCH].into_iter().for_each(&mut add);
    for (path, entry) in named.iter().filter(|(path, _)| caches::decides(path)) {
        add(path);
        add(entry.oid.as_str());
        if caches::is_config(path) {
            let text =
                change::blob_at(&world.repo, commit, &entry.path).map_err(|error| error.to_string())?;
            caches::check_config(&String::from_utf8_lossy(&text.unwrap_or_default()))?;
        }
    }
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

/// A folder in a copy. Refused where a link would lead elsewhere.
fn below(tree: &Path, folder: &str) -> io::Result<PathBuf> {
    let mut at = tree.to_path_buf();
    let mut parts = folder.split('/').peekable();
    while let Some(part) = parts.next() {
        at.push(part);
        if parts.peek().is_some() && !disk::is_real_folder(&at) {
            return Err(io::Error::other("a folder on its way is missing or a link"));
        }
    }
    Ok(at)
}

/// Moves what Cargo made of pinned packages out of a `target`.
fn keep_units(target: &Path, into: &Path, pinned: &BTreeSet<String>) -> io::Result<()> {
    os::private_directory().recursive(true).create(into)?;
    for profile in profiles(target) {
        let from = target.join(&profile);
        let hashes = units(&from, pinned);
        for part in UNIT_FOLDERS {
            let to = into.join(&profile).join(part);
            fs::create_dir_all(&to)?;
            for (name, path) in named(&from.join(part)) {
                if caches::unit_of(&name).is_some_and(|(_, hash)| hashes.contains(hash)) {
                    fs::rename(path, to.join(name))?;
                }
            }
        }
    }
    Ok(())
}

/// The folders of profiles: `debug`, or `wasm32-wasip1/release`.
fn profiles(target: &Path) -> Vec<PathBuf> {
    let is_profile = |path: &Path| disk::is_real_folder(&path.join(UNIT_FOLDERS[0]));
    let mut found = Vec::new();
    for (name, path) in named(target).filter(|(_, path)| disk::is_real_folder(path)) {
        if is_profile(&path) {
            found.push(PathBuf::from(name));
            continue;
        }
        let inner = named(&path).filter(|(_, path)| is_profile(path));
        found.extend(inner.map(|(inner, _)| Path::new(&name).join(inner)));
    }
    found
}

/// The hashes of what was made of pinned packages. Left out is what has links or special files in it: Cargo makes it again.
fn units(profile: &Path, pinned: &BTreeSet<String>) -> BTreeSet<String> {
    let hash = |name: &str| caches::unit_of(name).map(|(_, hash)| hash.to_owned());
    let of_pinned = |name: &str| caches::unit_of(name).is_some_and(|(package, _)| pinned.contains(package));
    let made = named(&profile.join(UNIT_FOLDERS[0])).filter(|(name, _)| of_pinned(name));
    let mut hashes: BTreeSet<String> = made.filter_map(|(name, _)| hash(&name)).collect();
    for (name, path) in UNIT_FOLDERS.iter().flat_map(|part| named(&profile.join(part))) {
        if let Some(hash) = hash(&name).filter(|hash| hashes.contains(hash))
            && !is_plain(path)
        {
            hashes.remove(&hash);
        }
    }
    hashes
}

/// What is in a folder, by name. Nothing if it is a link.
fn named(folder: &Path) -> impl Iterator<Item = (String, PathBuf)> + use<> {
    disk::entries(folder).filter_map(|path| Some((path.file_name()?.to_str()?.to_owned(), path)))
}

/// Whether it consists of files and folders alone.
fn is_plain(path: PathBuf) -> bool {
    let mut left = vec![path];
    while let Some(path) = left.pop() {
        match fs::symlink_metadata(&path) {
            Ok(meta) if meta.is_file() => {}
            Ok(meta) if meta.is_dir() => match fs::read_dir(&path) {
                Ok(entries) => left.extend(entries.flatten().map(|entry| entry.path())),
                Err(_) => return false,
            },
            Ok(_) | Err(_) => return false,
        }
    }
    true
}

/// Copies files and folders with the times of the files, by which Cargo goes.
fn copy(from: PathBuf, to: PathBuf) -> io::Result<()> {
    let mut left = vec![(from, to)];
    while let Some((from, to)) = left.pop() {
        let meta = fs::symlink_metadata(&from)?;
        if meta.is_dir() {
            fs::create_dir(&to)?;
            for entry in fs::read_dir(&from)? {
                let name = entry?.file_name();
                left.push((from.join(&name), to.join(&name)));
            }
        } else if meta.is_file() {
            let mut read = fs::File::options();
            let mut source = os::without_links(read.read(true)).open(&from)?;
            let mut copied = fs::File::options().write(true).create_new(true).open(&to)?;
            io::copy(&mut source, &mut copied)?;
            copied.set_times(fs::FileTimes::new().set_modified(meta.modified()?))?;
            os::set_mode_of(&copied, os::mode(&meta) & 0o777)?;
        }
    }
    Ok(())
}
