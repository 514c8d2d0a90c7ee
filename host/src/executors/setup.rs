//! Dependencies that the setup command installs (U-10): made once per lock file, shown read-only to every checkout.
//!
//! The command runs in a scratch copy that lies at a path of its own, and what it adds to the copy is kept. Later copies
//! are shown at the same path with these folders in them: programs that a virtual environment installs name that path,
//! and a package installed from the copy itself is then the one under test, not the one that was set up. That needs
//! mounts, so without bubblewrap the command runs anew in each copy.
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
use crate::platform::files as os;
use crate::sandbox::{PolicyMount, SandboxChoice, SandboxFacts, SandboxLevel, SandboxNetwork, SandboxPolicy};
use crate::store::files;
use crate::store::lock::{self, Lock};
use crate::world::{World, WorldSandbox};

/// Below the program's state.
pub const FOLDER: &str = "setup";
const DONE: &str = "done.json";
/// Where copies are shown, and what was added to the first one.
const TREE: &str = "tree";
const ADDED: &str = "added";
const TOOLS: &str = "tools";
/// Locked, shared, by those who use the setup.
const USED: &str = "used";

/// The command that installs dependencies, as the run's first line has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupCommand {
    pub command: String,
    pub limit_ms: u64,
}

/// How a setup ended for one commit.
pub(crate) struct SetupEnd {
    pub(crate) run: SetupRun,
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
    /// Folders in the copy, from its root.
    added: Vec<PathBuf>,
    /// Package caches of tools that have theirs outside of the copy.
    tools: Vec<String>,
    /// The size of all of it on disk; records from before have none.
    #[serde(default)]
    bytes: Option<u64>,
}

/// Tools whose packages lie outside of the checkout: the variable that moves them.
const TOOL_CACHES: [&str; 4] = ["CARGO_HOME", "GOMODCACHE", "BUNDLE_PATH", "GEM_HOME"];

/// Files that say which dependencies there are. The first list wins if a commit has one of it.
const LOCK_FILES: [&str; 17] = [
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    "pnpm-lock.yaml",
    "bun.lock",
    "bun.lockb",
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    "pdm.lock",
    "requirements.txt",
    "requirements-dev.txt",
    "Cargo.lock",
    "go.sum",
    "Gemfile.lock",
    "composer.lock",
    "mix.lock",
];
const MANIFESTS: [&str; 8] = [
    "package.json",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "Cargo.toml",
    "go.mod",
    "Gemfile",
    "composer.json",
];

/// What builds and tests write. It is made anew in each copy.
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

/// Sets a copy of `commit` up, unless the same was done before. `None` if there is no setup command.
pub(crate) fn prepare(
    world: &World,
    seq: Seq,
    commit: &ObjectId,
    tree: &Path,
    artifact: &str,
) -> Option<SetupEnd> {
    let setup = world.setup()?;
    let log = world.artifacts().join(artifact);
    Some(match try_prepare(world, seq, setup, commit, tree, &log) {
        Ok((mut run, dependencies)) => {
            if run.result != Tested::Passed || !run.reused {
                artifact.clone_into(&mut run.artifact);
            }
            world.use_dependencies(dependencies);
            SetupEnd { run }
        }
        Err(error) => {
            let lines = vec![format!("the setup could not be made: {error}")];
            let (duration_ms, artifact) = (0, String::new());
            SetupEnd { run: SetupRun { result: Tested::Broken, reused: false, duration_ms, artifact, lines } }
        }
    })
}

type Setup = (SetupRun, Option<Dependencies>);

fn try_prepare(
    world: &World,
    seq: Seq,
    setup: &SetupCommand,
    commit: &ObjectId,
    tree: &Path,
    log: &Path,
) -> io::Result<Setup> {
    let listed = world.repo.list_dir(commit, b"").map_err(io::Error::other)?;
    let tracked: BTreeSet<Vec<u8>> = listed.into_iter().map(|entry| entry.path).collect();
    if !matches!(&world.sandbox, WorldSandbox::On { level: SandboxLevel::Bubblewrap { .. }, .. }) {
        return Ok((run(world, seq, setup, (tree, &tracked), None, log), None));
    }
    let key = key(world, setup, commit)?;
    let all = world.state.join(FOLDER);
    let folder = all.join(&key);
    os::private_directory().recursive(true).create(&all)?;
    let locks = locks(&world.state)?;
    // Whoever holds it is at the same setup, which takes no longer than its limit in each of two attempts.
    let wait = Duration::from_millis(setup.limit_ms.saturating_mul(2));
    let _lock = Lock::take(&locks, &lock_name(&key), wait).map_err(io::Error::other)?;
    if let Some(found) = Dependencies::open(&folder) {
        let (duration_ms, artifact, lines) = (0, String::new(), Vec::new());
        let run = SetupRun { result: Tested::Passed, reused: true, duration_ms, artifact, lines };
        return Ok((run, Some(found)));
    }
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    for part in [TREE, ADDED, TOOLS] {
        os::private_directory().recursive(true).create(folder.join(part))?;
    }
    let run = run(world, seq, setup, (tree, &tracked), Some(&folder), log);
    if run.result != Tested::Passed {
        let _ = fs::remove_dir_all(&folder);
        return Ok((run, None));
    }
    let added = added(tree, &tracked, false)?;
    for path in &added {
        let to = folder.join(ADDED).join(path);
        to.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::rename(tree.join(path), &to)?;
        if path.ends_with("node_modules") {
            NODE_CACHES.iter().try_for_each(|cache| fs::create_dir_all(to.join(cache)))?;
        }
    }
    let used = |name: &&&str| {
        fs::read_dir(folder.join(TOOLS).join(name)).is_ok_and(|mut found| found.next().is_some())
    };
    let tools = TOOL_CACHES.iter().filter(used).map(|name| (*name).to_owned()).collect();
    let command = setup.command.clone();
    let _use = Some(Arc::new(hold_use(&folder)?));
    let bytes = Some(disk::usage(&folder));
    let found = Dependencies { folder: folder.clone(), _use, command, added, tools, bytes };
    let text = serde_json::to_vec(&found).map_err(io::Error::other)?;
    files::write_atomic(&folder.join(DONE), &text).map_err(io::Error::other)?;
    Ok((run, Some(found)))
}

/// The same command for the same lock files gives the same dependencies.
fn key(world: &World, setup: &SetupCommand, commit: &ObjectId) -> io::Result<String> {
    let files = world.repo.list_dir(commit, b"").map_err(io::Error::other)?;
    let name = |path: &[u8]| String::from_utf8_lossy(path).rsplit('/').next().unwrap_or_default().to_owned();
    let named = |names: &[&str]| -> Vec<String> {
        let found = files.iter().filter(|entry| names.contains(&name(&entry.path).as_str()));
        found.map(|entry| format!("{} {}", entry.oid, String::from_utf8_lossy(&entry.path))).collect()
    };
    let mut says = named(&LOCK_FILES);
    if says.is_empty() {
        says = named(&MANIFESTS);
    }
    let mut hasher = blake3::Hasher::new();
    for part in [world.repo.id(), &setup.command, std::env::consts::ARCH]
        .into_iter()
        .chain(says.iter().map(String::as_str))
    {
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
    (tree, tracked): (&Path, &BTreeSet<Vec<u8>>),
    folder: Option<&Path>,
    log: &Path,
) -> SetupRun {
    // A copy that was used before may have the empty folders in which dependencies were shown.
    let clean = || {
        let left = added(tree, tracked, true).unwrap_or_default();
        left.iter().for_each(|path| drop(fs::remove_dir_all(tree.join(path))));
    };
    clean();
    let first = attempt(world, seq, setup, tree, folder, log, None);
    let choice = match &world.sandbox {
        WorldSandbox::On { choice, .. } if !choice.full_network => choice,
        WorldSandbox::On { .. } | WorldSandbox::Off => return first,
    };
    if first.result == Tested::Passed {
        return first;
    }
    clean();
    let mut second = attempt(world, seq, setup, tree, folder, log, Some(choice));
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
    let artifact = String::new();
    let broken = |error: &io::Error| SetupRun {
        result: Tested::Broken,
        reused: false,
        duration_ms: 0,
        artifact: String::new(),
        lines: vec![error.to_string()],
    };
    let scratch = world.state.join("tmp").join(format!("{}.{seq}.setup", world.tag));
    let opened = match online.map(|choice| registries(world, choice, &scratch)).transpose() {
        Ok(opened) => opened.flatten(),
        Err(error) => return broken(&error),
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
    let _ = fs::remove_dir_all(&scratch);
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
    SetupRun { result: end.result, reused: false, duration_ms, artifact, lines }
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

/// The outermost folders that are not of the commit; those that builds make only if wanted.
fn added(tree: &Path, tracked: &BTreeSet<Vec<u8>>, built: bool) -> io::Result<Vec<PathBuf>> {
    let mut of_commit: BTreeSet<PathBuf> = BTreeSet::new();
    for path in tracked {
        of_commit.extend(Path::new(os::name(path)).ancestors().map(Path::to_path_buf));
    }
    let mut added = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(tree.join(&folder))? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() || entry.file_name() == ".git" {
                continue;
            }
            let path = folder.join(entry.file_name());
            if of_commit.contains(&path) {
                folders.push(path);
            } else if built || !BUILT.iter().any(|built| path.ends_with(built)) {
                added.push(path);
            }
        }
    }
    added.sort();
    Ok(added)
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
fn hold_use(folder: &Path) -> io::Result<fs::File> {
    let file = open_use(folder)?;
    file.lock_shared()?;
    Ok(file)
}

fn open_use(folder: &Path) -> io::Result<fs::File> {
    let mut options = fs::File::options();
    options.create(true).append(true);
    os::without_links(os::with_mode(&mut options, 0o600)).open(folder.join(USED))
}

/// A setup that nobody makes or uses, reserved until this is dropped.
pub(crate) struct IdleSetup {
    _lock: Lock,
    _use: fs::File,
}

/// `None` when a process makes or uses it.
pub(crate) fn reserve(state: &Path, folder: &Path) -> io::Result<Option<IdleSetup>> {
    let key = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let lock = match Lock::take(&locks(state)?, &lock_name(key), Duration::ZERO) {
        Err(lock::Error::Held { .. }) => return Ok(None),
        lock => lock.map_err(io::Error::other)?,
    };
    let used = match open_use(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
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
