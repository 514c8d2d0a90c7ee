//! Bubblewrap: namespaces of its own for everything, and a tree of files made of what the policy names.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::inside::{self, InsideOrder};
use super::policy::{ProxyAccess, SandboxNetwork, SandboxPolicy};
use crate::platform::{confine, files as os, process, table};

/// Where the program finds us.
const ME: &str = "/run/archeflow/archeflow";

/// Where it finds the socket of the proxy.
pub(super) const SOCKET: &str = "/run/archeflow/proxy.sock";

/// The user that root is within, where a sandbox of its own is to work.
const NOT_ROOT: &str = "1000";

/// What of the system is there: programs, libraries, and the few settings without which they don't work.
pub(super) const SYSTEM: [&str; 46] = [
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
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/fonts",
    "/etc/gai.conf",
    // Git refuses to work if it is there and can't be read, as under Landlock.
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/java",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/profile",
    "/etc/protocols",
    "/etc/python3",
    "/etc/rpc",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl",
    "/etc/terminfo",
    "/etc/timezone",
    "/etc/debian_version",
    "/etc/redhat-release",
    "/sys/devices/system/cpu",
    "/var/lib/ca-certificates",
];

/// How names become addresses; of use only with a network.
pub(super) const NAMES: [&str; 2] = ["/etc/resolv.conf", "/run/systemd/resolve"];

/// One entry of the system's tree.
enum SystemEntry {
    Shown(&'static str),
    Link { path: &'static str, target: PathBuf },
}

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
    let mut options = options(me, policy);
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
fn options(me: &Path, policy: &SandboxPolicy) -> Vec<OsString> {
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
    for entry in system() {
        match entry {
            SystemEntry::Shown(path) => list.pair("--ro-bind-try", path, path),
            SystemEntry::Link { path, target } => list.pair("--symlink", target, path),
        }
    }
    if policy.network == SandboxNetwork::Full {
        NAMES.iter().for_each(|path| list.pair("--ro-bind-try", path, path));
    }
    for place in ["/tmp", "/var/tmp"] {
        list.pair("--bind", &policy.tmp, place);
    }
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
    list.0
}

/// Outer folders before what lies in them: a later mount hides what an earlier one shows. Where the same path is named
/// twice, the more permissive comes last and wins, but a seal never hides what is shown in it.
fn layers(policy: &SandboxPolicy) -> Vec<(&'static str, &Path)> {
    let sealed = policy.sealed.iter().map(|path| (path.as_path(), 0, "--tmpfs"));
    let readable = policy.readable.iter().map(|path| (path.as_path(), 1, "--ro-bind-try"));
    let own = [policy.home.as_path(), policy.tmp.as_path()];
    let writable = policy.writable.iter().map(PathBuf::as_path).chain(own);
    let writable = writable.map(|path| (path, 2, "--bind"));
    let mut all: Vec<_> = sealed.chain(readable).chain(writable).collect();
    all.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    all.dedup();
    all.into_iter().map(|(path, _, option)| (option, path)).collect()
}

/// Looked at once: links stay links, so that a program in `/bin` is the one in `/usr/bin`.
fn system() -> &'static [SystemEntry] {
    static FOUND: OnceLock<Vec<SystemEntry>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let entry = |path: &&'static str| {
            let top = Path::new(path).parent() == Some(Path::new("/"));
            match fs::read_link(path) {
                Ok(target) if top => SystemEntry::Link { path, target },
                Ok(_) | Err(_) => SystemEntry::Shown(path),
            }
        };
        SYSTEM.iter().filter(|path| fs::symlink_metadata(path).is_ok()).map(entry).collect()
    })
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
