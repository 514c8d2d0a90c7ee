//! Join files: all that one member needs to reach its fleet. A file is as secret as the key in it: only its owner may read it,
//! and it is never printed.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use archeflow_host::platform::files as os;
use archeflow_host::store::files;
use serde::{Deserialize, Serialize};

use crate::keys::FleetKey;

/// The newest format of join files that is known.
const FORMAT: u32 = 1;
const LONGEST: u64 = 256 * 1024;
/// The oldest servers that have all that is used, and the newest series that is known.
const OLDEST: (u32, u32) = (2, 11);
const MAJOR: u32 = 2;

/// What a member may do; see `server/permissions.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetRole {
    Worker,
    Person,
    Conductor,
    /// `fleet serve` itself: makes the streams and publishes the list of members, and nothing else.
    Serve,
}

impl fmt::Display for FleetRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FleetRole::Worker => "worker",
            FleetRole::Person => "person",
            FleetRole::Conductor => "conductor",
            FleetRole::Serve => "serve",
        })
    }
}

#[derive(Debug, Clone)]
pub struct JoinFile {
    /// Where it was read, for messages.
    pub path: PathBuf,
    /// `nats://host:port`, tried in this order.
    pub servers: Vec<String>,
    /// The only certificate that is trusted, as PEM; without one, connections are not encrypted.
    pub ca: Option<String>,
    pub name: String,
    pub role: FleetRole,
    pub key: FleetKey,
    /// The public half of the fleet's own key, which signs the list of members. Older files have none.
    pub fleet: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    v: u32,
    name: String,
    role: FleetRole,
    servers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ca: Option<String>,
    seed: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fleet: Option<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    #[error("the join file {} can't be read: {why}", path.display())]
    Unreadable { path: PathBuf, why: String },
    #[error("the join file {} holds a key and can be read by others (mode {mode:o})", path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error("{} is no join file: {why}", path.display())]
    Format { path: PathBuf, why: String },
    #[error("the join file {} has format {v}; this program knows {FORMAT}", path.display())]
    Newer { path: PathBuf, v: u32 },
    #[error("the certificate in the join file {} can't be used: {why}", path.display())]
    Certificate { path: PathBuf, why: String },
    #[error("the server {servers} can't be reached: {why}")]
    Unreachable { servers: String, why: String },
    #[error("no TLS connection to the server {server}: {why}")]
    Tls { server: String, why: String },
    #[error("the server {server} does not know the key of {name}")]
    Refused { server: String, role: FleetRole, name: String },
    #[error("the server {server} is nats-server {version}; {} are needed", wanted())]
    Version { server: String, version: String },
    #[error("the connection can't be kept: {0}")]
    Runtime(io::Error),
    #[error("the join file {} can't be written: {why}", path.display())]
    Unwritable { path: PathBuf, why: String },
}

impl JoinError {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        match self {
            JoinError::Unreadable { .. } | JoinError::Format { .. } | JoinError::Certificate { .. } => {
                "Make it where the server is, and copy it here as it is: archeflow fleet add worker <name>"
                    .to_owned()
            }
            JoinError::Open { path, .. } => format!("chmod 600 {}", path.display()),
            JoinError::Newer { .. } => "Update archeflow on this machine.".to_owned(),
            JoinError::Unreachable { .. } => {
                "Is it running there (archeflow fleet serve), and does it listen on that address?".to_owned()
            }
            JoinError::Tls { .. } => {
                "Copy the join file here again from where the server is: it says whether to use TLS, and what to trust. The server's certificate must be for the name in its address."
                    .to_owned()
            }
            JoinError::Refused { role, name, .. } => format!(
                "Was it removed? Add it where the server is, and copy the new join file: archeflow fleet add {role} {name}"
            ),
            JoinError::Version { .. } => format!("Install nats-server: {}.", wanted()),
            JoinError::Runtime(_) => String::new(),
            JoinError::Unwritable { .. } => "Name another place: --out <file>".to_owned(),
        }
    }
}

/// The versions of servers that are known.
pub(crate) fn wanted() -> String {
    format!("versions {}.{} up to {MAJOR}.x", OLDEST.0, OLDEST.1)
}

impl JoinFile {
    pub fn read(path: &Path) -> Result<JoinFile, JoinError> {
        let unreadable = |why: String| JoinError::Unreadable { path: path.to_owned(), why };
        let meta = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
        let mode = os::mode(&meta) & 0o777;
        if mode & 0o077 != 0 {
            return Err(JoinError::Open { path: path.to_owned(), mode });
        }
        let bytes = files::read_capped(path, LONGEST).map_err(|error| unreadable(error.to_string()))?;
        JoinFile::parse(path, &bytes)
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<JoinFile, JoinError> {
        #[derive(Deserialize)]
        struct Version {
            v: u32,
        }
        let wrong = |why: String| JoinError::Format { path: path.to_owned(), why };
        // The words of the reader could quote the seed; its place in the file can't.
        let place =
            |error: serde_json::Error| wrong(format!("line {}, column {}", error.line(), error.column()));
        let version: Version = serde_json::from_slice(bytes).map_err(place)?;
        if version.v > FORMAT {
            return Err(JoinError::Newer { path: path.to_owned(), v: version.v });
        }
        let written: Written = serde_json::from_slice(bytes).map_err(place)?;
        if !is_member_name(&written.name) {
            return Err(wrong("its name is none of a member".to_owned()));
        }
        if written.servers.is_empty() {
            return Err(wrong("it names no server".to_owned()));
        }
        let key = FleetKey::from_seed(&written.seed).ok_or_else(|| wrong("its seed is none".to_owned()))?;
        let Written { name, role, servers, ca, fleet, .. } = written;
        Ok(JoinFile { path: path.to_owned(), servers, ca, name, role, key, fleet })
    }

    /// Writes it where nothing is yet, for its owner only.
    pub fn write(&self) -> Result<(), JoinError> {
        let unwritable = |why: String| JoinError::Unwritable { path: self.path.clone(), why };
        let seed = self.key.seed().ok_or_else(|| unwritable("its key has no seed".to_owned()))?;
        let written = Written {
            v: FORMAT,
            name: self.name.clone(),
            role: self.role,
            servers: self.servers.clone(),
            ca: self.ca.clone(),
            seed,
            fleet: self.fleet.clone(),
        };
        let mut text = serde_json::to_vec_pretty(&written).map_err(|error| unwritable(error.to_string()))?;
        text.push(b'\n');
        write_private(&self.path, &text).map_err(|error| unwritable(error.to_string()))
    }
}

/// Writes a new file that only its owner can read from its first moment on.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = os::with_mode(options.write(true).create_new(true), 0o600).open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if written.is_err() {
        // Half a file would be taken for a whole one.
        let _ = std::fs::remove_file(path);
    }
    written
}

/// Names are parts of subjects and of file names.
pub fn is_member_name(name: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (1..=40).contains(&name.len()) && name.chars().all(known) && !name.starts_with('-')
}

/// Whether a server of this version, as it calls itself, can be worked with.
pub(crate) fn check_version(version: &str, server: &str) -> Result<(), JoinError> {
    let mut numbers = version.trim_start_matches('v').split(['.', '-']).map(|part| part.parse::<u32>().ok());
    let known = match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(major), Some(minor)) => major == MAJOR && (major, minor) >= OLDEST,
        _ => false,
    };
    if known {
        Ok(())
    } else {
        Err(JoinError::Version { server: server.to_owned(), version: version.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    fn file(place: &Path) -> JoinFile {
        JoinFile {
            path: place.join("w7.join"),
            servers: vec!["nats://127.0.0.1:4222".to_owned()],
            ca: None,
            name: "w7".to_owned(),
            role: FleetRole::Worker,
            key: FleetKey::generate().unwrap(),
            fleet: Some(FleetKey::generate().unwrap().public()),
        }
    }

    #[test]
    fn fl_46_join_files_are_private_and_read_back() {
        let place = tempfile::tempdir().unwrap();
        let join = file(place.path());
        join.write().unwrap();
        assert_eq!(os::mode(&std::fs::metadata(&join.path).unwrap()) & 0o777, 0o600);
        let read = JoinFile::read(&join.path).unwrap();
        assert_eq!((read.name.as_str(), read.role, &read.servers), ("w7", FleetRole::Worker, &join.servers));
        assert_eq!((read.key.public(), read.fleet), (join.key.public(), join.fleet.clone()));
        let read = JoinFile::read(&join.path).unwrap();
        assert!(!format!("{read:?}").contains(&join.key.seed().unwrap()));
        assert!(matches!(join.write(), Err(JoinError::Unwritable { .. })), "a key was overwritten");
        os::set_mode(&join.path, 0o640).unwrap();
        let error = JoinFile::read(&join.path).err().unwrap();
        assert!(error.to_string().contains("w7.join") && error.to_string().contains("640"), "{error}");
        assert!(error.remedy().starts_with("chmod 600"), "{}", error.remedy());
        assert!(matches!(JoinFile::read(&place.path().join("none")), Err(JoinError::Unreadable { .. })));
    }

    #[test]
    fn fl_47_what_is_no_join_file_is_named_without_its_seed() {
        let path = Path::new("w7.join");
        let seed = FleetKey::generate().unwrap().seed().unwrap();
        let whole = |v: u32, name: &str, servers: &str, seed: &str| {
            format!(
                "{{\"v\":{v},\"name\":\"{name}\",\"role\":\"worker\",\"servers\":{servers},\"seed\":\"{seed}\"}}"
            )
        };
        let servers = "[\"nats://a:4222\"]";
        let older = JoinFile::parse(path, whole(1, "w7", servers, &seed).as_bytes()).unwrap();
        assert_eq!(older.fleet, None, "from before fleets had a key");
        for (text, said) in [
            (String::new(), "no join file: line"),
            ("[]".to_owned(), "no join file: line"),
            (whole(2, "w7", servers, &seed), "format 2"),
            (whole(1, "w 7", servers, &seed), "name"),
            (whole(1, "", servers, &seed), "name"),
            (whole(1, "w7", "[]", &seed), "names no server"),
            (whole(1, "w7", servers, "SUNONSENSE"), "seed"),
            (whole(1, "w7", servers, &seed).replace("worker", &seed), "line 1"),
        ] {
            let error = JoinFile::parse(path, text.as_bytes()).err().unwrap();
            let words = format!("{error} {}", error.remedy());
            assert!(words.contains(said) && words.contains("w7.join"), "{text}: {words}");
            assert!(!words.contains(&seed), "the seed is printed");
        }
    }

    #[test]
    fn fl_48_servers_too_old_or_unknown_are_named() {
        for version in ["2.11.0", "v2.15.1", "2.15.1-RC.2"] {
            assert!(check_version(version, "a").is_ok(), "{version}");
        }
        for version in ["2.9.10", "2.10.29", "3.0.0", "1.4", "", "nonsense", "2"] {
            let error = check_version(version, "nats://a").err().unwrap().to_string();
            assert!(error.contains("nats://a") && error.contains("versions 2.11 up to 2.x"), "{error}");
        }
    }
}
