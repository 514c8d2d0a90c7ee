//! Ways out that were found once, tried from inside before anything else is started there. A level that leaves one of them
//! open is not used, whatever version of bubblewrap or of the kernel it is that does.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::bwrap::SYSTEM;
use crate::nonce::nonce;
use crate::platform::removal::remove_tree;
use crate::platform::socket::{self, UnixListener, UnixStream};
use crate::platform::{files as os, inherited, kernel, terminal};

/// The hidden subcommand.
pub(super) const ARGUMENT: &str = "__selftest";

/// Where the terminals of this machine are.
const TERMINALS: &str = "/dev/pts";

/// So many of them are tried.
const MOST_TERMINALS: usize = 16;

/// Nobody is to answer, and the machine is this one.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the part inside is to try.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Attempts {
    /// Files and folders that nobody showed it.
    outside: Vec<PathBuf>,
    settings: Vec<PathBuf>,
    terminals: Vec<PathBuf>,
    /// A port of this machine at which something listens.
    port: Option<u16>,
    /// A socket that is a file, which nobody showed it either.
    #[serde(default)]
    socket: Option<PathBuf>,
}

/// What is there to be found, as long as this is.
pub(super) struct Bait {
    folder: PathBuf,
    /// The folder that is shown.
    pub(super) private: PathBuf,
    pub(super) attempts: Attempts,
    _listeners: (Option<TcpListener>, Option<UnixListener>),
}

impl Bait {
    /// `own_terminals` says whether the level has terminals of its own.
    pub(super) fn lay(own_terminals: bool) -> io::Result<Bait> {
        let name = format!("archeflow-probe-{}-{}", std::process::id(), nonce());
        let folder = std::env::temp_dir().join(name);
        let private = folder.join("private");
        os::private_directory().create(&folder)?;
        fs::create_dir(&private)?;
        let secret = folder.join("secret");
        fs::write(&secret, "nobody's business\n")?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok();
        let port = listener.as_ref().and_then(|listener| Some(listener.local_addr().ok()?.port()));
        let place = folder.join("socket");
        let local = socket::bind(&place).ok();
        let home = std::env::home_dir().filter(|home| is_apart(home, &private));
        let attempts = Attempts {
            outside: [Some(secret), home].into_iter().flatten().collect(),
            settings: kernel::SETTINGS.map(PathBuf::from).to_vec(),
            terminals: terminals(own_terminals),
            port,
            socket: local.is_some().then_some(place),
        };
        Ok(Bait { folder, private, attempts, _listeners: (listener, local) })
    }
}

impl Drop for Bait {
    fn drop(&mut self) {
        let _ = remove_tree(&self.folder);
    }
}

/// Whether nothing that every program is shown is in the home, or around it.
fn is_apart(home: &Path, private: &Path) -> bool {
    let shown = SYSTEM.iter().map(Path::new).chain([private]);
    home.is_absolute() && !shown.into_iter().any(|path| path.starts_with(home) || home.starts_with(path))
}

fn terminals(are_own: bool) -> Vec<PathBuf> {
    let listed = fs::read_dir(TERMINALS).into_iter().flatten().flatten().map(|entry| entry.path());
    let numbered = |path: &PathBuf| path.file_name().is_some_and(|name| name != "ptmx");
    let mut found: Vec<PathBuf> = listed.filter(numbered).take(MOST_TERMINALS).collect();
    found.push("/dev/tty".into());
    if !are_own {
        found.push("/dev/ptmx".into());
    }
    found
}

impl Attempts {
    pub(super) fn text(&self) -> io::Result<String> {
        serde_json::to_string(self).map_err(io::Error::other)
    }

    /// What was possible, if anything was.
    fn way_out(&self) -> Option<String> {
        let file = inherited::still_open().first().map(|number| {
            format!("file {number}, which the starting process has open, is open inside the sandbox")
        });
        file.or_else(|| self.way_out_by_name())
    }

    fn way_out_by_name(&self) -> Option<String> {
        let outside = self.outside.iter().find(|path| File::open(path).is_ok() && is_listed(path));
        if let Some(path) = outside {
            return Some(format!("{} can be read inside the sandbox", path.display()));
        }
        let setting = self.settings.iter().find(|path| kernel::can_change(path));
        if let Some(path) = setting {
            return Some(format!("{} can be changed inside the sandbox", path.display()));
        }
        if let Some(path) = self.terminals.iter().find(|path| terminal::can_open(path)) {
            return Some(format!("the terminal {} is open inside the sandbox", path.display()));
        }
        if self.socket.as_ref().is_some_and(|path| UnixStream::connect(path).is_ok()) {
            return Some("the sandbox reaches sockets of other programs".to_owned());
        }
        let reaches = self.port.is_some_and(is_reached);
        reaches.then(|| "the sandbox reaches the network of this machine".to_owned())
    }
}

/// A folder can be there because of what is shown below it.
fn is_listed(path: &Path) -> bool {
    !path.is_dir() || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

fn is_reached(port: u16) -> bool {
    TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), PATIENCE).is_ok()
}

/// Tries everything, and fails with the first way out.
pub(super) fn run(attempts: &str) -> io::Result<i32> {
    let attempts: Attempts = serde_json::from_str(attempts).map_err(io::Error::other)?;
    attempts.way_out().map_or(Ok(0), |way| Err(io::Error::other(way)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_01_r_03_without_a_sandbox_every_way_out_is_found() -> io::Result<()> {
        let bait = Bait::lay(false)?;
        let all = &bait.attempts;
        let setting = bait.private.join("setting");
        fs::write(&setting, "")?;
        let nothing = Attempts::default();
        let rows = [
            (Attempts { outside: all.outside.clone(), ..nothing.clone() }, "can be read"),
            (Attempts { settings: vec![setting], ..nothing.clone() }, "can be changed"),
            (Attempts { terminals: vec!["/dev/ptmx".into()], ..nothing.clone() }, "the terminal /dev/ptmx"),
            (Attempts { port: all.port, ..nothing.clone() }, "network"),
            (Attempts { socket: all.socket.clone(), ..nothing.clone() }, "sockets of other programs"),
        ];
        for (attempts, words) in rows {
            // The test program has files open, which would be found first.
            let found = attempts.way_out_by_name().unwrap_or_default();
            assert!(found.contains(words), "{words}: {found}");
        }
        let _open = File::open("/")?;
        assert!(nothing.way_out().is_some_and(|found| found.contains("is open inside")));
        assert_eq!(nothing.way_out_by_name(), None);
        let folder = bait.folder.clone();
        drop(bait);
        assert!(!folder.exists());
        Ok(())
    }

    #[test]
    fn r_01_a_home_around_what_is_shown_is_no_secret() {
        let private = Path::new("/home/ada/tmp/p");
        let rows = [
            ("/srv/x", true),
            ("/home/you/x", true),
            ("/home/ada/", false),
            ("/", false),
            ("/usr/share/x", false),
        ];
        for (home, apart) in rows {
            assert_eq!(is_apart(Path::new(home), private), apart, "{home}");
        }
    }
}
