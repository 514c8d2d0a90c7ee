//! Bubblewrap: namespaces of its own for everything, and a tree of files made of what the policy names.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::inside::{self, InsideOrder};
use super::policy::{PolicyMount, ProxyAccess, SandboxNetwork, SandboxPolicy};
use crate::platform::{confine, files as os, machine, process, table};

/// Where the program finds us.
pub(super) const ME: &str = "/run/archeflow/archeflow";

/// Where it finds the socket of the proxy.
pub(super) const SOCKET: &str = "/run/archeflow/proxy.sock";

/// The user that root is within, where a sandbox of its own is to work.
const NOT_ROOT: &str = "1000";

/// What of the system is there: programs, libraries, and the few settings without which they don't work. Each costs time
/// at every start.
pub(super) const SYSTEM: [&str; 36] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/run/current-system/sw",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    // Git refuses to work if it is there and can't be read, as under Landlock.
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/java",
    "/etc/ld.so.cache",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl",
    "/etc/terminfo",
    "/etc/timezone",
    "/sys/devices/system/cpu",
    "/var/lib/ca-certificates",
];

/// What no program misses that is not there. Under Landlock it is there, and must be readable: programs end with an error
/// where a file can't be read.
pub(super) const DISPENSABLE: [&str; 10] = [
    "/etc/bash.bashrc",
    "/etc/debian_version",
    "/etc/gai.conf",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/profile",
    "/etc/python3",
    "/etc/redhat-release",
    "/etc/rpc",
    "/etc/shells",
];

/// How names become addresses; of use only with a network.
pub(super) const NAMES: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve"];

/// One entry of the system's tree.
enum SystemEntry {
    Shown(&'static str),
    Link {
        path: &'static str,
        target: PathBuf,
    },
    /// A small file, written into the tree. After each mount `bwrap` reads the list of all mounts, which costs more than
    /// a copy.
    Copied(PathBuf),
}

/// The largest file that is copied.
const SMALL: u64 = 128 << 10;

/// The most files of a folder that are copied.
const FEW: usize = 4;

/// With a lower limit on open files nothing is copied: each copy needs one until `bwrap` has started.
const FILES_TO_SPARE: u64 = 256;

/// Shows a path as it is, without letting it be changed.
const READ_ONLY: &str = "--ro-bind-try";

/// Program, arguments and the files they name.
pub(super) type Start = (OsString, Vec<OsString>, Vec<OwnedFd>);

pub(super) fn start(
    bwrap: &Path,
    me: &Path,
    policy: &SandboxPolicy,
    order: &InsideOrder,
    program: &OsStr,
    args: &[OsString],
) -> io::Result<Start> {
    let mut files = Vec::new();
    let mut options = options(me, policy, &mut files);
    for path in &policy.masked {
        let nothing = confine::memory_file(&[])?;
        options.extend(["--ro-bind-data".into(), confine::number(&nothing).to_string().into(), path.into()]);
        files.push(nothing);
    }
    options.extend(policy.sealed.iter().flat_map(|path| ["--remount-ro".into(), path.into()]));
    options.extend(["--remount-ro", "/", "--chdir"].map(OsString::from));
    options.push(policy.cwd.clone().into());
    for filter in confine::filters(policy.nested_sandboxes)? {
        let file = confine::memory_file(&filter)?;
        options.extend(["--add-seccomp-fd".into(), confine::number(&file).to_string().into()]);
        files.push(file);
    }
    // In a file, so that the program inside doesn't read the user's paths in our command line.
    let mut list = Vec::new();
    for option in &options {
        list.extend_from_slice(os::bytes(option));
        list.push(0);
    }
    let file = confine::memory_file(&list)?;
    let mut line: Vec<OsString> = vec!["--args".into(), confine::number(&file).to_string().into()];
    files.push(file);
    let inside = |proxy: &ProxyAccess| ProxyAccess { socket: SOCKET.into(), ..proxy.clone() };
    let order = InsideOrder { relay: order.relay.as_ref().map(inside), ..order.clone() };
    line.extend(["--".into(), ME.into(), inside::ARGUMENT.into(), order.text()?.into(), program.into()]);
    line.extend(args.iter().cloned());
    Ok((bwrap.into(), line, files))
}

/// What is there, without what is masked in it and before it is made read-only.
fn options(me: &Path, policy: &SandboxPolicy, files: &mut Vec<OwnedFd>) -> Vec<OsString> {
    let mut list = OptionList(Vec::new());
    list.words(&["--unshare-all", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL"]);
    if policy.network == SandboxNetwork::Full {
        list.words(&["--share-net"]);
    }
    if policy.nested_sandboxes && process::acting_user() == 0 {
        // Root without its capabilities can't be mapped once more, which every sandbox within begins with.
        list.words(&["--uid", NOT_ROOT, "--gid", NOT_ROOT]);
    }
    list.words(&["--proc", table::FOLDER, "--dev", "/dev", "--dir", "/run"]);
    if process::acting_user() == 0 {
        for interface in kernel_interfaces() {
            match interface {
                KernelInterface::Settings(path) => list.pair(READ_ONLY, path, path),
                KernelInterface::Secret(path) => list.pair(READ_ONLY, "/dev/null", path),
            }
        }
    }
    let can_copy = machine::open_files().is_none_or(|most| most >= FILES_TO_SPARE);
    for entry in system() {
        match entry {
            SystemEntry::Shown(path) => list.pair(READ_ONLY, path, path),
            SystemEntry::Link { path, target } => list.pair("--symlink", target, path),
            SystemEntry::Copied(path) => match fs::File::open(path).ok().filter(|_| can_copy) {
                Some(file) => {
                    let file = OwnedFd::from(file);
                    list.pair("--file", confine::number(&file).to_string(), path);
                    files.push(file);
                }
                None => list.pair(READ_ONLY, path, path),
            },
        }
    }
    if policy.network == SandboxNetwork::Full {
        NAMES.iter().for_each(|path| list.pair(READ_ONLY, path, path));
    }
    list.pair("--bind", &policy.tmp, "/tmp");
    list.pair("--symlink", "../tmp", "/var/tmp");
    list.pair("--ro-bind", me, ME);
    if let Some(proxy) = policy.network.proxy() {
        list.pair("--ro-bind", &proxy.socket, SOCKET);
    }
    for entry in layers(policy) {
        let (option, path) = entry;
        if option == "--tmpfs" {
            list.one(option, path);
        } else {
            list.pair(option, path, path);
        }
    }
    for mount in &policy.mounts {
        match mount {
            PolicyMount::Show { from, to, writable: true } => list.pair("--bind", from, to),
            PolicyMount::Show { from, to, writable: false } => list.pair("--ro-bind", from, to),
            PolicyMount::Empty(path) => list.one("--tmpfs", path),
        }
    }
    list.0
}

/// Outer folders before what lies in them: a later mount hides what an earlier one shows. Where the same path is named
/// twice, the more permissive comes last and wins, but a seal never hides what is shown in it.
fn layers(policy: &SandboxPolicy) -> Vec<(&'static str, &Path)> {
    let sealed = policy.sealed.iter().map(|path| (path.as_path(), 0, "--tmpfs"));
    let readable = policy.readable.iter().map(|path| (path.as_path(), 1, READ_ONLY));
    let own = [policy.home.as_path(), policy.tmp.as_path()];
    let writable = policy.writable.iter().map(PathBuf::as_path).chain(own);
    let writable = writable.map(|path| (path, 2, "--bind"));
    let mut all: Vec<_> = sealed.chain(readable).chain(writable).collect();
    all.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    all.dedup();
    let mut layers: Vec<(&'static str, &Path)> = Vec::new();
    for (path, _, option) in all {
        if option != READ_ONLY || !is_shown_already(path, &layers) {
            layers.push((option, path));
        }
    }
    layers
}

/// Whether the folder that a path lies in is shown read-only anyway. Not where a link leads elsewhere: what it names may be
/// missing.
fn is_shown_already(path: &Path, layers: &[(&str, &Path)]) -> bool {
    let nearest = layers.iter().rev().find(|(_, above)| path.starts_with(above));
    let is_shown = nearest.map_or_else(
        || system().iter().any(|entry| matches!(entry, SystemEntry::Shown(above) if path.starts_with(above))),
        |(option, _)| *option == READ_ONLY,
    );
    is_shown && path.canonicalize().is_ok_and(|real| real == path)
}

/// Looked at once: links stay links, so that a program in `/bin` is the one in `/usr/bin`.
fn system() -> &'static [SystemEntry] {
    static FOUND: OnceLock<Vec<SystemEntry>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let there = SYSTEM.iter().filter(|path| fs::symlink_metadata(path).is_ok() && !is_empty(path));
        there.flat_map(|path| system_entries(path)).collect()
    })
}

/// Of a folder without anything in it nothing is missed.
fn is_empty(path: &str) -> bool {
    fs::read_dir(path).is_ok_and(|mut found| found.next().is_none())
}

fn system_entries(path: &'static str) -> Vec<SystemEntry> {
    let place = Path::new(path);
    match fs::read_link(path) {
        Ok(target) if place.parent() == Some(Path::new("/")) => vec![SystemEntry::Link { path, target }],
        Ok(_) | Err(_) => small_files(place).map_or_else(
            || vec![SystemEntry::Shown(path)],
            |files| files.into_iter().map(SystemEntry::Copied).collect(),
        ),
    }
}

/// A part of `/proc` that is the machine's and no process's. The kernel judges most of them by the user alone: root may
/// change and read them without any capability and from within every namespace, and a setting such as `core_pattern` starts
/// programs outside of all of them. What bubblewrap covers by itself depends on its version and leaves out `sys`.
enum KernelInterface {
    Settings(PathBuf),
    /// Readable for root alone.
    Secret(PathBuf),
}

const WRITE_BITS: u32 = 0o222;
const READABLE_BY_ALL: u32 = 0o004;

/// Looked at once, and not from a list: which there are depends on the kernel and its modules.
fn kernel_interfaces() -> &'static [KernelInterface] {
    static FOUND: OnceLock<Vec<KernelInterface>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let Ok(listing) = fs::read_dir(table::FOLDER) else { return Vec::new() };
        listing.filter_map(|entry| kernel_interface(entry.ok()?.path())).collect()
    })
}

fn kernel_interface(path: PathBuf) -> Option<KernelInterface> {
    if path.file_name()?.to_str()?.parse::<u32>().is_ok() {
        return None;
    }
    let meta = fs::symlink_metadata(&path).ok()?;
    if meta.is_symlink() {
        return None;
    }
    let mode = os::mode(&meta);
    if meta.is_dir() || mode & WRITE_BITS != 0 {
        Some(KernelInterface::Settings(path))
    } else {
        (mode & READABLE_BY_ALL == 0).then_some(KernelInterface::Secret(path))
    }
}

/// A small file of `/etc`, or all files of a folder with a few of them.
fn small_files(path: &Path) -> Option<Vec<PathBuf>> {
    if !path.starts_with("/etc") {
        return None;
    }
    let meta = fs::metadata(path).ok()?;
    if !meta.is_dir() {
        return is_small(&meta).then(|| vec![path.to_path_buf()]);
    }
    let mut files = Vec::new();
    let mut folders = vec![path.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).ok()? {
            let path = entry.ok()?.path();
            let meta = fs::symlink_metadata(&path).ok()?;
            if meta.is_dir() {
                folders.push(path);
            } else if is_small(&meta) {
                files.push(path);
            } else {
                return None;
            }
            if files.len() + folders.len() > FEW {
                return None;
            }
        }
    }
    Some(files)
}

fn is_small(meta: &fs::Metadata) -> bool {
    meta.is_file() && meta.len() <= SMALL
}

struct OptionList(Vec<OsString>);

impl OptionList {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn one(&mut self, option: &str, path: impl AsRef<OsStr>) {
        self.0.extend([option.into(), path.as_ref().into()]);
    }

    fn pair(&mut self, option: &str, from: impl AsRef<OsStr>, to: impl AsRef<OsStr>) {
        self.0.extend([option.into(), from.as_ref().into(), to.as_ref().into()]);
    }
}
