//! What a process of ours may see, change and use up. Plain data, made from facts; how it is enforced is elsewhere.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::bwrap::SYSTEM;
use super::npm_cache::NpmCache;
use super::toolchains;

/// The rules for one process and everything it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
    /// Where the process starts.
    pub cwd: PathBuf,
    /// `HOME`: a folder of its own.
    pub home: PathBuf,
    /// `TMPDIR`: a folder of its own, which is also `/tmp` where paths can be moved.
    pub tmp: PathBuf,
    /// Folders and files it may change, besides the two above.
    pub writable: Vec<PathBuf>,
    /// Folders and files it may read, besides those of the system. They lie at their own paths.
    pub readable: Vec<PathBuf>,
    /// Folders that are shown empty and can't be changed, apart from what else is named here below them. An agent that
    /// writes there gets an error instead of the belief that it wrote.
    pub sealed: Vec<PathBuf>,
    /// Files of a writable folder that are shown empty and can't be changed.
    pub masked: Vec<PathBuf>,
    /// Folders that are shown elsewhere, in this order and after everything else. Bubblewrap alone can do that.
    #[serde(default)]
    pub mounts: Vec<PolicyMount>,
    pub network: SandboxNetwork,
    pub limits: SandboxLimits,
    /// Whether the program may build a sandbox of its own, for which it needs user namespaces and mounts.
    pub nested_sandboxes: bool,
    /// Variables that make tools work here; they replace what the job says.
    #[serde(skip)]
    pub env: Vec<(OsString, OsString)>,
    /// Made in the home before each start.
    #[serde(skip)]
    pub npm_cache: Option<NpmCache>,
}

/// One folder at another place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyMount {
    Show {
        from: PathBuf,
        to: PathBuf,
        writable: bool,
    },
    /// An empty folder, whose content goes with the process.
    Empty(PathBuf),
}

/// Whom the process can talk to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SandboxNetwork {
    /// A loopback of its own, with nobody else on it.
    OwnLoopback,
    /// The same, and a proxy of ours, which passes on what its list allows.
    Proxy(ProxyAccess),
    /// Everything the user can reach.
    Full,
}

/// How the proxy is found from within.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyAccess {
    pub socket: PathBuf,
    /// A port of the machine, where there is no loopback of its own behind which the socket could be found.
    pub port: Option<u16>,
    /// Models on this machine: the same ports are open within, and what connects there is passed on.
    pub local: Vec<LocalPort>,
}

/// A port of this machine, by the name it is called by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalPort {
    pub host: String,
    pub port: u16,
}

/// What an attempt may use up; `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SandboxLimits {
    /// Bytes of memory of all its processes together.
    pub memory: Option<u64>,
    /// Processes and threads at one time.
    pub processes: Option<u64>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
    /// Bytes by which its writable folders may grow.
    pub disk: Option<u64>,
    /// Files that one process may have open.
    pub open_files: Option<u64>,
}

/// The folders that belong to one process alone and go with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateFolders {
    pub home: PathBuf,
    pub tmp: PathBuf,
}

/// What a policy follows from.
#[derive(Debug, Clone, Copy)]
pub struct SandboxFacts<'a> {
    /// What the job's environment is built from: it says where the user's toolchains are.
    pub env: &'a [(OsString, OsString)],
    pub private: &'a PrivateFolders,
    /// The repository's objects and the stores they borrow from.
    pub objects: &'a [PathBuf],
    /// The user's checkout.
    pub checkout: &'a Path,
    pub choice: &'a SandboxChoice,
}

/// What the user chose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxChoice {
    /// The whole network for everything.
    pub full_network: bool,
    /// Our proxy has the keys of agents, and they don't.
    pub hold_keys: bool,
    /// Files and folders that may be read besides.
    pub read: Vec<PathBuf>,
    /// Files and folders that agents may change besides.
    pub write: Vec<PathBuf>,
    /// Hosts that agents may reach besides those of their model.
    pub hosts: Vec<String>,
    /// Hosts that the setup command may reach besides public registries of packages.
    pub setup_hosts: Vec<String>,
    pub limits: SandboxLimits,
}

/// What a client needs besides its working copy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientNeeds {
    /// Its program, libraries and caches.
    pub readable: Vec<PathBuf>,
    /// Where it keeps its login and sessions.
    pub writable: Vec<PathBuf>,
    /// The proxy to its model; without one it has its own loopback only.
    pub proxy: Option<ProxyAccess>,
    /// Whether it builds a sandbox of its own.
    pub own_sandbox: bool,
}

impl SandboxPolicy {
    /// Tests, setup, linters and reproductions: they change their copy and reach nobody.
    pub fn for_command(facts: SandboxFacts<'_>, tree: &Path) -> Self {
        let mut policy = Self::with_nothing(facts, tree);
        policy.writable.push(tree.to_path_buf());
        policy
    }

    /// A setup changes its copy, and where it is to reach registries no tool is told that there is no network.
    pub fn for_setup(facts: SandboxFacts<'_>, tree: &Path, online: bool) -> Self {
        let mut policy = Self::for_command(facts, tree);
        if online {
            policy.env.retain(|(name, _)| !toolchains::is_offline(name));
            // A cache of links to the user's could not take in what is fetched.
            policy.npm_cache = None;
        }
        policy
    }

    /// Hooks run in the user's checkout and may change its files, but neither the repository behind them nor our state.
    pub fn for_hook(facts: SandboxFacts<'_>, git: &Path) -> Self {
        let mut policy = Self::with_nothing(facts, facts.checkout);
        policy.sealed.clear();
        policy.writable.push(facts.checkout.to_path_buf());
        policy.readable.extend([facts.checkout.join(".git"), git.to_path_buf()]);
        policy.readable.push(facts.checkout.join(".archeflow"));
        policy.readable.dedup();
        policy
    }

    /// An agent that changes its working copy.
    pub fn for_maker(facts: SandboxFacts<'_>, tree: &Path, needs: &ClientNeeds) -> Self {
        let mut policy = Self::for_reader(facts, tree, needs);
        policy.readable.retain(|path| path != tree);
        policy.writable.push(tree.to_path_buf());
        policy
    }

    /// An agent that reads. It writes in its own home and temporary folder, and where its client keeps its sessions.
    pub fn for_reader(facts: SandboxFacts<'_>, tree: &Path, needs: &ClientNeeds) -> Self {
        let mut policy = Self::with_nothing(facts, tree);
        policy.readable.push(tree.to_path_buf());
        // What the user lets it change is not taken back because the client also reads there.
        let kept = |path: &&PathBuf| !facts.choice.write.iter().any(|written| path.starts_with(written));
        policy.readable.extend(needs.readable.iter().filter(kept).cloned());
        policy.writable.extend(needs.writable.iter().cloned());
        policy.writable.extend(facts.choice.write.iter().cloned());
        policy.nested_sandboxes = needs.own_sandbox;
        if let (SandboxNetwork::OwnLoopback, Some(proxy)) = (&policy.network, &needs.proxy) {
            policy.network = SandboxNetwork::Proxy(proxy.clone());
        }
        policy
    }

    fn with_nothing(facts: SandboxFacts<'_>, cwd: &Path) -> Self {
        let tools =
            toolchains::found(facts.env, facts.private, !facts.choice.full_network, &|path| path.exists());
        let outside = |path: &PathBuf| !path.starts_with(facts.checkout) && !facts.checkout.starts_with(path);
        let mut readable: Vec<PathBuf> = tools.readable.into_iter().filter(outside).collect();
        readable.extend(facts.objects.iter().chain(&facts.choice.read).cloned());
        Self {
            cwd: cwd.to_path_buf(),
            home: facts.private.home.clone(),
            tmp: facts.private.tmp.clone(),
            writable: Vec::new(),
            readable,
            sealed: vec![facts.checkout.to_path_buf()],
            masked: Vec::new(),
            mounts: Vec::new(),
            network: if facts.choice.full_network {
                SandboxNetwork::Full
            } else {
                SandboxNetwork::OwnLoopback
            },
            limits: facts.choice.limits,
            nested_sandboxes: false,
            env: tools.env,
            npm_cache: tools.npm_cache,
        }
    }
}

/// Folders with programs, libraries, toolchains and package caches. Links and the system's settings are not among them.
pub fn program_folders(env: &[(OsString, OsString)], home: &Path) -> Vec<PathBuf> {
    let private = PrivateFolders { home: home.to_path_buf(), tmp: home.to_path_buf() };
    let tools = toolchains::found(env, &private, true, &|path| path.exists());
    let system = SYSTEM.iter().map(PathBuf::from).filter(|path| !path.starts_with("/etc"));
    let is_folder = |path: &PathBuf| path.symlink_metadata().is_ok_and(|meta| meta.is_dir());
    system.chain(tools.readable).filter(is_folder).collect()
}

/// A path as the user writes it, with `~/` for the home.
pub fn below_home(text: &str, home: Option<&Path>) -> PathBuf {
    match (text.strip_prefix("~/"), home) {
        (Some(below), Some(home)) => home.join(below.trim_start_matches('/')),
        (Some(_), None) | (None, _) => PathBuf::from(text),
    }
}

/// Absolute, without `..`, and more than the root itself.
pub fn is_plain(path: &Path) -> bool {
    path.is_absolute()
        && path.parent().is_some()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}
