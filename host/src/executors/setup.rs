//! Dependencies that the setup command installs (U-10): made once per tree, shown to every test of that tree.
//!
//! The command runs in a scratch copy that lies at a path of its own, and what it adds to the copy is kept: folders are
//! shown read-only, files and what builds make are copied, so no test changes them for the next. Later copies
//! are shown at the same path with these folders in them: programs that a virtual environment installs name that path,
//! and a package installed from the copy itself is then the one under test, not the one that was set up. That needs
//! mounts, so without bubblewrap the command runs anew in each copy.
//!
//! A setup may run any file of its tree, so it serves that tree only: a change that never lands leaves nothing to
//! the tests of others.
//!
//! Whoever uses a setup holds a lock on it. Deliberately absent: when one is too old to keep ([`crate::cleaning`]).

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use archeflow_core::event::{SetupRun, Tested};
use archeflow_core::model::Seq;
use archeflow_core::rules::decisive::decisive;
use archeflow_core::text::shell_word;
use serde::{Deserialize, Serialize};

use super::checks::{self, ShellJob};
use super::confined::{OpenedProxy, open_proxy};
use crate::backends::needs::AgentNeeds;
use crate::cleaning::disk;
use crate::git::ObjectId;
use crate::git::workspace::Slot;
use crate::platform::files as os;
use crate::platform::removal::remove_tree;
use crate::sandbox::{PolicyMount, SandboxChoice, SandboxFacts, SandboxLevel, SandboxNetwork, SandboxPolicy};
use crate::store::files::{self, is_unwritable};
use crate::store::lock::{self, Lock};
use crate::world::{World, WorldSandbox};

/// Below the program's state.
pub const FOLDER: &str = "setup";
const DONE: &str = "done.json";
/// Where copies are shown, and what was added to the first one.
const TREE: &str = "tree";
const ADDED: &str = "added";
/// What is copied into each copy.
const MADE: &str = "made";
const TOOLS: &str = "tools";
/// Locked, shared, by those who use the setup.
const USED: &str = "used";

/// The command that installs dependencies, as the run's first line has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupCommand {
    pub command: String,
    pub limit_ms: u64,
}

/// What a setup left.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Dependencies {
    #[serde(skip)]
    folder: PathBuf,
    /// Held as long as they are used: then nobody removes them.
    #[serde(skip)]
    _use: Option<Arc<fs::File>>,
    command: String,
    /// The commit that was set up.
    #[serde(default)]
    commit: String,
    /// Folders in the copy, from its root.
    added: Vec<PathBuf>,
    /// Files, links, and folders that builds write to.
    #[serde(default)]
    made: Vec<PathBuf>,
    /// Package caches of tools that have theirs outside of the copy.
    tools: Vec<String>,
    /// The size of all of it on disk; records from before have none.
    #[serde(default)]
    bytes: Option<u64>,
}

/// Tools whose packages lie outside of the checkout: the variable that moves them.
const TOOL_CACHES: [&str; 4] = ["CARGO_HOME", "GOMODCACHE", "BUNDLE_PATH", "GEM_HOME"];

/// What builds and tests write. Each copy has its own.
const BUILT: [&str; 12] = [
    "target",
    "build",
    "dist",
    "out",
    "coverage",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".tox",
    ".nox",
    "tmp",
];

/// Where tools keep caches inside of `node_modules`; they stay writable.
const NODE_CACHES: [&str; 3] = [".cache", ".vite", ".vite-temp"];

/// Public registries of packages, which a setup may reach besides the user's own.
const REGISTRIES: [&str; 13] = [
    "registry.npmjs.org",
    "registry.yarnpkg.com",
    "pypi.org",
    "files.pythonhosted.org",
    "index.crates.io",
    "static.crates.io",
    "crates.io",
    "proxy.golang.org",
    "sum.golang.org",
    "rubygems.org",
    "index.rubygems.org",
    "repo.packagist.org",
    "repo.hex.pm",
];

/// Sets a copy of `commit` up, unless the same tree was before. `None` if there is no setup command.
pub(crate) fn prepare(
    world: &World,
    seq: Seq,
    commit: &ObjectId,
    slot: &mut Slot,
    artifact: &str,
) -> Option<SetupRun> {
    let setup = world.setup()?;
    let log = world.artifacts().join(artifact);
    Some(match try_prepare(world, seq, setup, commit, slot, &log) {
        Ok((mut run, dependencies)) => {
            if run.result != Tested::Passed || run.from.is_none() {
                artifact.clone_into(&mut run.artifact);
            }
            world.use_dependencies(dependencies);
            run
        }
        Err(error) => broken(format!("the setup could not be made: {error}")),
    })
}

fn broken(why: String) -> SetupRun {
    let (duration_ms, artifact, lines) = (0, String::new(), vec![why]);
    SetupRun { result: Tested::Broken, reused: false, from: None, duration_ms, artifact, lines }
}

type Setup = (SetupRun, Option<Dependencies>);

fn try_prepare(
    world: &World,
    seq: Seq,
    setup: &SetupCommand,
    commit: &ObjectId,
    slot: &mut Slot,
    log: &Path,
) -> io::Result<Setup> {
    let WorldSandbox::On { level: SandboxLevel::Bubblewrap { .. }, choice } = &world.sandbox else {
        return Ok((run(world, seq, setup, slot, None, log), None));
    };
    let key = key(world, setup, commit, choice)?;
    let all = world.state.join(FOLDER);
    let folder = all.join(&key);
    os::private_directory().recursive(true).create(&all)?;
    let locks = locks(&world.state)?;
    // Whoever holds it is at the same setup, which takes no longer than its limit in each of two attempts.
    let wait = Duration::from_millis(setup.limit_ms.saturating_mul(2));
    let _lock = Lock::take(&locks, &lock_name(&key), wait).map_err(io::Error::other)?;
    if let Some(found) = Dependencies::open(&folder) {
        found.lay_into(&slot.tree())?;
        let (duration_ms, artifact, lines) = (0, String::new(), Vec::new());
        let from = Some(found.commit.clone());
        let run = SetupRun { result: Tested::Passed, reused: true, from, duration_ms, artifact, lines };
        return Ok((run, Some(found)));
    }
    if folder.exists() {
        remove_tree(&folder)?;
    }
    for part in [TREE, ADDED, MADE, TOOLS] {
        os::private_directory().recursive(true).create(folder.join(part))?;
    }
    let run = run(world, seq, setup, slot, Some(&folder), log);
    if run.result != Tested::Passed {
        let _ = remove_tree(&folder);
        return Ok((run, None));
    }
    let found = keep(world, setup, commit, &slot.tree(), &folder)?;
    // Its first copy is as all later ones will be: what the command changed in files of the commit is not kept.
    slot.renew().map_err(io::Error::other)?;
    found.lay_into(&slot.tree())?;
    Ok((run, Some(found)))
}

/// Moves what the command added to the copy into the folder of the setup.
fn keep(
    world: &World,
    setup: &SetupCommand,
    commit: &ObjectId,
    tree: &Path,
    folder: &Path,
) -> io::Result<Dependencies> {
    let listed = world.repo.list_dir(commit, b"").map_err(io::Error::other)?;
    let tracked: BTreeSet<Vec<u8>> = listed.into_iter().map(|entry| entry.path).collect();
    let AddedPaths { folders: added, others: made } = added(tree, &tracked)?;
    for (path, part) in added.iter().map(|path| (path, ADDED)).chain(made.iter().map(|path| (path, MADE))) {
        let to = folder.join(part).join(path);
        to.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::rename(tree.join(path), &to)?;
        if part == ADDED && path.ends_with("node_modules") {
            NODE_CACHES.iter().try_for_each(|cache| fs::create_dir_all(to.join(cache)))?;
        }
    }
    let used = |name: &&&str| {
        fs::read_dir(folder.join(TOOLS).join(name)).is_ok_and(|mut found| found.next().is_some())
    };
    let tools = TOOL_CACHES.iter().filter(used).map(|name| (*name).to_owned()).collect();
    let (command, commit) = (setup.command.clone(), commit.to_string());
    let _use = Some(Arc::new(hold_use(folder)?));
    let bytes = Some(disk::usage(folder));
    let found =
        Dependencies { folder: folder.to_path_buf(), _use, command, commit, added, made, tools, bytes };
    let text = serde_json::to_vec(&found).map_err(io::Error::other)?;
    files::write_atomic(&folder.join(DONE), &text).map_err(io::Error::other)?;
    Ok(found)
}

/// The same command in the same tree and sandbox gives the same dependencies. No file of the tree is left out: the command
/// may run or read any of them.
fn key(world: &World, setup: &SetupCommand, commit: &ObjectId, choice: &SandboxChoice) -> io::Result<String> {
    let tree = world.repo.tree_of(commit).map_err(io::Error::other)?;
    let sandbox = format!("{} {choice:?}", world.sandbox.name());
    let mut hasher = blake3::Hasher::new();
    for part in [world.repo.id(), tree.as_str(), &setup.command, &sandbox, std::env::consts::ARCH] {
        hasher.update(part.as_bytes());
        hasher.update(&[0]);
    }
    Ok(hasher.finalize().to_hex()[..32].to_owned())
}

/// The command, from the user's caches, and if that fails with the registries within reach.
fn run(
    world: &World,
    seq: Seq,
    setup: &SetupCommand,
    slot: &mut Slot,
    folder: Option<&Path>,
    log: &Path,
) -> SetupRun {
    let first = attempt(world, seq, setup, &slot.tree(), folder, log, None);
    let choice = match &world.sandbox {
        WorldSandbox::On { choice, .. } if !choice.full_network => choice,
        WorldSandbox::On { .. } | WorldSandbox::Off => return first,
    };
    if first.result == Tested::Passed || world.watch.is_stopping() {
        return first;
    }
    // Nothing of the first attempt is left for the second.
    if let Err(error) = slot.renew() {
        return broken(error.to_string());
    }
    let mut second = attempt(world, seq, setup, &slot.tree(), folder, log, Some(choice));
    second.duration_ms += first.duration_ms;
    second
}

fn attempt(
    world: &World,
    seq: Seq,
    setup: &SetupCommand,
    tree: &Path,
    folder: Option<&Path>,
    log: &Path,
    online: Option<&SandboxChoice>,
) -> SetupRun {
    let scratch = world.state.join("tmp").join(format!("{}.{seq}.setup", world.tag));
    let opened = match online.map(|choice| registries(world, choice, &scratch)).transpose() {
        Ok(opened) => opened.flatten(),
        Err(error) => return broken(error.to_string()),
    };
    let shown = folder.map(|folder| folder.join(TREE));
    let policy = |facts: SandboxFacts<'_>| {
        let mut policy = SandboxPolicy::for_setup(facts, tree, online.is_some());
        if let Some(shown) = &shown {
            let (from, to) = (tree.to_path_buf(), shown.clone());
            policy.mounts.push(PolicyMount::Show { from, to, writable: true });
        }
        if let (Some(opened), SandboxNetwork::OwnLoopback) = (&opened, &policy.network) {
            policy.network = SandboxNetwork::Proxy(opened.access.clone());
            policy.env.extend(opened.variables.clone());
        }
        if let (Some(folder), true) = (folder, online.is_some()) {
            // Read-only caches of the user's can't take in what is fetched.
            let tools = folder.join(TOOLS);
            replace_variables(&mut policy, TOOL_CACHES.iter().map(|name| (*name, tools.join(name))));
            policy.writable.push(tools);
        }
        policy
    };
    // Not by the policy: it prepares npm's cache by what is there now.
    let command = match &shown {
        Some(shown) => format!("cd {} || exit 126\n{}", shell_word(&shown.to_string_lossy()), setup.command),
        None => setup.command.clone(),
    };
    let ended = checks::shell(
        world,
        ShellJob { seq, command: &command, cwd: tree, log, limit_ms: setup.limit_ms, more: Vec::new() },
        policy,
    );
    let end = checks::ended(&ended.cause, setup.limit_ms);
    let _ = remove_tree(&scratch);
    let mut lines: Vec<String> = decisive(&checks::output(log)).into_iter().take(checks::LINES).collect();
    lines.extend(end.why);
    if let Some(opened) = &opened {
        let refused = opened.proxy.refused();
        if !refused.is_empty() {
            let hosts = refused.join(", ");
            lines.push(format!(
                "the sandbox kept it from {hosts}: add hosts that you trust to sandbox.setup_hosts"
            ));
        }
    }
    if end.result == Tested::Passed {
        lines.clear();
    }
    let duration_ms = checks::millis(ended.duration);
    let artifact = String::new();
    SetupRun { result: end.result, reused: false, from: None, duration_ms, artifact, lines }
}

fn registries(world: &World, choice: &SandboxChoice, scratch: &Path) -> io::Result<Option<OpenedProxy>> {
    os::private_directory().recursive(true).create(scratch)?;
    let needs = AgentNeeds { hosts: REGISTRIES.map(str::to_owned).to_vec(), ..AgentNeeds::default() };
    let choice = SandboxChoice { hosts: choice.setup_hosts.clone(), ..choice.clone() };
    let own_loopback =
        matches!(&world.sandbox, WorldSandbox::On { level: SandboxLevel::Bubblewrap { .. }, .. });
    open_proxy(&choice, &needs, scratch, own_loopback)
}

fn replace_variables<'a>(policy: &mut SandboxPolicy, values: impl Iterator<Item = (&'a str, PathBuf)>) {
    for (name, value) in values {
        policy.env.retain(|(known, _)| known != name);
        policy.env.push((OsString::from(name), value.into_os_string()));
    }
}

/// The outermost paths of a copy that are not of its commit, in order.
#[derive(Default)]
struct AddedPaths {
    /// Folders, without those that builds write to.
    folders: Vec<PathBuf>,
    others: Vec<PathBuf>,
}

fn added(tree: &Path, tracked: &BTreeSet<Vec<u8>>) -> io::Result<AddedPaths> {
    let mut of_commit: BTreeSet<PathBuf> = BTreeSet::new();
    for path in tracked {
        of_commit.extend(Path::new(os::name(path)).ancestors().map(Path::to_path_buf));
    }
    let mut added = AddedPaths::default();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(tree.join(&folder))? {
            let entry = entry?;
            if entry.file_name() == ".git" {
                continue;
            }
            let (path, kind) = (folder.join(entry.file_name()), entry.file_type()?);
            let is_known = of_commit.contains(&path);
            if is_known && kind.is_dir() {
                folders.push(path);
            } else if !is_known && kind.is_dir() && !BUILT.iter().any(|built| path.ends_with(built)) {
                added.folders.push(path);
            } else if !is_known && (kind.is_dir() || kind.is_file() || kind.is_symlink()) {
                added.others.push(path);
            }
        }
    }
    added.folders.sort();
    added.others.sort();
    Ok(added)
}

/// Copies a file, a link or a folder with all that is in it, as it is; on file systems that can, without its content.
fn copy(from: PathBuf, to: PathBuf) -> io::Result<()> {
    let mut left = vec![(from, to)];
    while let Some((from, to)) = left.pop() {
        let meta = fs::symlink_metadata(&from)?;
        if meta.is_symlink() {
            os::symlink(fs::read_link(&from)?, &to)?;
        } else if meta.is_dir() {
            fs::create_dir_all(&to)?;
            for entry in fs::read_dir(&from)? {
                let name = entry?.file_name();
                left.push((from.join(&name), to.join(&name)));
            }
        } else if meta.is_file() {
            fs::copy(&from, &to)?;
        }
    }
    Ok(())
}

impl Dependencies {
    /// The caller holds the lock of this setup.
    fn open(folder: &Path) -> Option<Dependencies> {
        let path = folder.join(DONE);
        let text = files::read_capped(&path, 1 << 20).ok()?;
        let found: Dependencies = serde_json::from_slice(&text).ok()?;
        // When it was last of use.
        let _ = fs::File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(std::time::SystemTime::now()));
        let _use = Some(Arc::new(hold_use(folder).ok()?));
        Some(Dependencies { folder: folder.to_path_buf(), _use, ..found })
    }

    /// Puts into a new copy what is not shown in it.
    fn lay_into(&self, tree: &Path) -> io::Result<()> {
        let made = self.folder.join(MADE);
        self.made.iter().try_for_each(|path| copy(made.join(path), tree.join(path)))
    }

    /// Makes the folders in a copy where they are shown. Git does not see empty folders.
    pub(crate) fn make_places(&self, tree: &Path) -> io::Result<()> {
        self.added.iter().try_for_each(|path| fs::create_dir_all(tree.join(path)))
    }

    /// Shows them in a copy that its process may change.
    pub(crate) fn show(&self, policy: &mut SandboxPolicy, tree: &Path) {
        let shown = self.folder.join(TREE);
        let (from, to) = (tree.to_path_buf(), shown.clone());
        policy.mounts.push(PolicyMount::Show { from, to, writable: true });
        for path in &self.added {
            for to in [tree.join(path), shown.join(path)] {
                let from = self.folder.join(ADDED).join(path);
                policy.mounts.push(PolicyMount::Show { from, to: to.clone(), writable: false });
                if path.ends_with("node_modules") {
                    policy.mounts.extend(NODE_CACHES.iter().map(|cache| PolicyMount::Empty(to.join(cache))));
                }
            }
        }
        let tools = self.folder.join(TOOLS);
        replace_variables(policy, self.tools.iter().map(|name| (name.as_str(), tools.join(name))));
        if !self.tools.is_empty() {
            policy.readable.push(tools);
        }
    }
}

fn locks(state: &Path) -> io::Result<PathBuf> {
    let locks = state.join("locks");
    os::private_directory().recursive(true).create(&locks)?;
    Ok(locks)
}

fn lock_name(key: &str) -> String {
    format!("setup-{key}")
}

/// Says that the setup is used, until the file is closed.
pub(super) fn hold_use(folder: &Path) -> io::Result<fs::File> {
    let file = open_use(folder)?;
    file.lock_shared()?;
    Ok(file)
}

pub(super) fn open_use(folder: &Path) -> io::Result<fs::File> {
    let mut options = fs::File::options();
    options.create(true).append(true);
    os::without_links(os::with_mode(&mut options, 0o600)).open(folder.join(USED))
}

/// A setup that nobody makes or uses, reserved until this is dropped.
pub(crate) struct IdleSetup {
    /// None where nothing can be written, so that nobody makes one.
    _lock: Option<Lock>,
    _use: fs::File,
}

/// `None` when a process makes or uses it.
pub(crate) fn reserve(state: &Path, folder: &Path) -> io::Result<Option<IdleSetup>> {
    let key = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let lock = match Lock::take(&locks(state)?, &lock_name(key), Duration::ZERO) {
        Err(lock::Error::Held { .. }) => return Ok(None),
        Err(lock::Error::File(error)) if error.is_unwritable() => None,
        lock => Some(lock.map_err(io::Error::other)?),
    };
    let used = match open_use(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if is_unwritable(error.kind()) => fs::File::open(folder.join(USED))?,
        used => used?,
    };
    match used.try_lock() {
        Ok(()) => Ok(Some(IdleSetup { _lock: lock, _use: used })),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// Whether the command that made it had ended well.
pub(crate) fn is_complete(folder: &Path) -> bool {
    recorded(folder).is_some()
}

/// When it was last used, in milliseconds since 1970.
pub(crate) fn last_use(folder: &Path) -> u64 {
    disk::changed_at(&folder.join(DONE))
}

/// Its size on disk: as recorded, or measured.
pub(crate) fn size(folder: &Path) -> u64 {
    recorded(folder).and_then(|found| found.bytes).unwrap_or_else(|| disk::usage(folder))
}

fn recorded(folder: &Path) -> Option<Dependencies> {
    serde_json::from_slice(&files::read_capped(&folder.join(DONE), 1 << 20).ok()?).ok()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    #[test]
    fn r_04_what_a_setup_made_is_kept_apart_and_copied_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for folder in ["tree/lib/deps", "tree/build/empty", "tree/.git", "tree/lib/target", "new/lib"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        for file in ["tree/lib/a", "tree/lib/.env", "tree/lib/deps/b", "tree/build/c", "tree/lib/target/d"] {
            fs::write(at(file), file).unwrap();
        }
        os::symlink("lib/a", at("tree/link")).unwrap();
        os::set_mode(&at("tree/build/c"), 0o755).unwrap();
        let tracked = BTreeSet::from([b"lib/a".to_vec()]);
        let found = added(&at("tree"), &tracked).unwrap();
        assert_eq!(found.folders, [PathBuf::from("lib/deps")]);
        assert_eq!(found.others, ["build", "lib/.env", "lib/target", "link"].map(PathBuf::from));
        for path in &found.others {
            copy(at("tree").join(path), at("new").join(path)).unwrap();
        }
        assert!(at("new/build/empty").is_dir() && at("new/lib/target/d").is_file());
        assert_eq!(os::mode(&fs::metadata(at("new/build/c")).unwrap()) & 0o777, 0o755);
        assert_eq!(fs::read_link(at("new/link")).unwrap(), PathBuf::from("lib/a"));
        assert!(!at("new/lib/deps").exists());
    }
}
