//! Which repositories' configuration the user has approved (D-08, R2).
//!
//! An approval is a digest of the repository's place and of the path and every byte of each file that takes part.
//! A changed byte, a file more or less, a copy or a nested repository is something else and has to be approved for
//! itself. Approvals are in the user's state folder, which no repository can reach; only a person's act may call
//! [`Trust::approve`], never an unattended run.
//!
//! A worker of a fleet, which has clones in places of its own, gives an approval for a repository by its name
//! ([`NamedApproval`]). It holds for one command and is not stored.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::layers::{Flags, Inputs, Settings};
use super::{ConfigFile, Faults, user};
use crate::platform::files::{self as os, Mode, OFlags};
use crate::platform::process::acting_user;

const STORE: &str = "trust.jsonl";
const LOCK: &str = "trust.lock";
const FRESH: &str = "trust.jsonl.new";
const MOST_BYTES: u64 = 16 * 1024 * 1024;

#[derive(Debug, Error)]
pub enum TrustError {
    /// The folder of the approvals can't be trusted; nothing was read from it (exit 21).
    #[error("{}: refused: {why}", path.display())]
    Refused { path: PathBuf, why: String },
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    /// What can't be read can't be approved.
    #[error(transparent)]
    Unreadable(#[from] Faults),
}

/// A repository's configuration, put before its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    pub root: PathBuf,
    /// The folder of it that has a configuration of its own, if the user stands in one. Each is approved for itself.
    pub folder: String,
    /// Paths from the root, and bytes, of everything that configures: `.archeflow/config.yaml`, `hooks.yaml`, archetypes,
    /// teams, workflows, lenses and domains, as far as they exist in the base commit.
    pub files: Vec<ConfigFile>,
    /// The files of `agents.instructions` in the base commit, whose content agents are shown.
    pub instructions: Vec<ConfigFile>,
}

/// Something only an approval puts into force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guarded {
    pub key: String,
    pub value: String,
    pub path: String,
    pub line: u32,
}

/// What was approved, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRecord {
    pub root: String,
    pub digest: String,
    /// As the caller's clock had it, for people.
    pub at: String,
    pub guarded: Vec<Guarded>,
}

/// A difference between what was approved and what is offered now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustChange {
    pub key: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl Offer {
    /// What the repository would get by approval.
    pub fn guarded(&self) -> Result<Vec<Guarded>, Faults> {
        let flags = Flags::default();
        let inputs =
            Inputs { repository: &self.files, approved: false, user: &[], file: None, flags: &flags };
        let withheld = Settings::resolve(&inputs)?.withheld().to_vec();
        let guarded = |held: super::Withheld| Guarded {
            key: held.key,
            value: held.value,
            path: held.path,
            line: held.line,
        };
        let shown = |(path, bytes): &ConfigFile| Guarded {
            key: format!("instructions {path}"),
            value: format!("{} bytes, digest {}", bytes.len(), &blake3::hash(bytes).to_hex()[..16]),
            path: path.clone(),
            line: 1,
        };
        Ok(withheld.into_iter().map(guarded).chain(self.instructions.iter().map(shown)).collect())
    }

    /// What approval would change, seen from what was approved before, if anything was.
    pub fn changes(&self, before: Option<&TrustRecord>) -> Result<Vec<TrustChange>, Faults> {
        let after = self.guarded()?;
        let before = before.map_or(&[][..], |before| &before.guarded);
        let value =
            |rows: &[Guarded], key: &str| rows.iter().find(|row| row.key == key).map(|row| row.value.clone());
        let mut keys: Vec<&String> = before.iter().chain(&after).map(|row| &row.key).collect();
        keys.sort();
        keys.dedup();
        let change = |key: &String| TrustChange {
            key: key.clone(),
            before: value(before, key),
            after: value(&after, key),
        };
        Ok(keys.into_iter().map(change).filter(|change| change.before != change.after).collect())
    }

    /// What an approval is for. The root has to exist: it is one place on this machine.
    pub fn place(&self) -> PathBuf {
        if self.folder.is_empty() { self.root.clone() } else { self.root.join(&self.folder) }
    }

    fn digest(&self) -> io::Result<(String, String)> {
        let root = self.place().canonicalize()?;
        let digest = self.digest_for(&[b"archeflow approval 1", os::bytes(&root)]);
        Ok((named(&root), digest))
    }

    /// The digest of the same content for a repository that is known by a name, wherever its clones are.
    pub fn named_digest(&self, repository: &str) -> String {
        self.digest_for(&[b"archeflow approval by name 1", repository.as_bytes(), self.folder.as_bytes()])
    }

    fn digest_for(&self, whose: &[&[u8]]) -> String {
        let mut files: Vec<&ConfigFile> = self.files.iter().collect();
        files.sort();
        let mut hasher = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        whose.iter().for_each(|bytes| add(bytes));
        for (path, bytes) in files {
            add(path.as_bytes());
            add(bytes);
        }
        for (path, bytes) in &self.instructions {
            add(b"instructions");
            add(path.as_bytes());
            add(bytes);
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// An approval that the process which started this one was given: for a repository by its name, and exactly this content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedApproval {
    pub repository: String,
    /// As [`Offer::named_digest`] computes it.
    pub digest: String,
}

impl NamedApproval {
    /// Reads `<repository>=<digest>`.
    pub fn parse(text: &str) -> Option<NamedApproval> {
        let (repository, digest) = text.rsplit_once('=')?;
        let is_digest = digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (repository, digest) = (repository.to_owned(), digest.to_ascii_lowercase());
        (is_digest && !repository.is_empty()).then_some(NamedApproval { repository, digest })
    }

    pub fn is_for(&self, offer: &Offer) -> bool {
        offer.named_digest(&self.repository) == self.digest
    }
}

/// The approvals given so far.
#[derive(Debug)]
pub struct Trust {
    folder: PathBuf,
    approvals: Vec<TrustRecord>,
}

impl Trust {
    /// Reads the store. One that doesn't exist yet holds nothing; one that others could have written is refused.
    pub fn open(state_dir: &Path) -> Result<Trust, TrustError> {
        let approvals = if check_folder(state_dir)? { load(&state_dir.join(STORE))? } else { Vec::new() };
        Ok(Trust { folder: state_dir.to_owned(), approvals })
    }

    /// Whether exactly this was approved. What can't be established is not approved.
    pub fn approved(&self, offer: &Offer) -> bool {
        let Ok((root, digest)) = offer.digest() else { return false };
        !user::inside(&self.folder, &offer.root)
            && self.approvals.iter().any(|approval| approval.root == root && approval.digest == digest)
    }

    /// What was approved last for the repository at `root`, whether or not it still is.
    pub fn last(&self, root: &Path) -> Option<&TrustRecord> {
        let root = named(&root.canonicalize().ok()?);
        self.approvals.iter().find(|approval| approval.root == root)
    }

    /// Remembers that the user approved this, in place of whatever was approved for the repository before.
    pub fn approve(&mut self, offer: &Offer, now_text: &str) -> Result<(), TrustError> {
        let guarded = offer.guarded()?;
        let (root, digest) = offer.digest().map_err(at(&offer.root))?;
        if user::inside(&self.folder, &offer.root) {
            let why = "approvals would be stored inside the repository they apply to".to_owned();
            return Err(TrustError::Refused { path: self.folder.clone(), why });
        }
        let approval = TrustRecord { root: root.clone(), digest, at: now_text.to_owned(), guarded };
        self.rewrite(|approvals| {
            approvals.retain(|known| known.root != root);
            approvals.push(approval);
        })
    }

    /// Forgets the repository at `root`; returns whether it was known. The repository may be gone by now.
    pub fn revoke(&mut self, root: &Path) -> Result<bool, TrustError> {
        let root = named(&root.canonicalize().unwrap_or_else(|_| root.to_owned()));
        let mut found = false;
        self.rewrite(|approvals| {
            let before = approvals.len();
            approvals.retain(|known| known.root != root);
            found = approvals.len() != before;
        })?;
        Ok(found)
    }

    /// Reads again under a lock, changes, and replaces the file whole, so that no approval of another process is lost
    /// and a crash leaves either the old file or the new one.
    fn rewrite(&mut self, change: impl FnOnce(&mut Vec<TrustRecord>)) -> Result<(), TrustError> {
        create_folder(&self.folder)?;
        check_folder(&self.folder)?;
        let path = self.folder.join(LOCK);
        let lock = open(&path, OFlags::RDWR | OFlags::CREATE).map_err(refused_or_io(&path))?;
        check(&path, &lock.metadata().map_err(at(&path))?)?;
        os::lock_waiting(&lock).map_err(at(&path))?;

        let store = self.folder.join(STORE);
        let mut approvals = load(&store)?;
        change(&mut approvals);
        let mut text = Vec::new();
        for approval in &approvals {
            serde_json::to_writer(&mut text, approval).map_err(|error| at(&store)(error.into()))?;
            text.push(b'\n');
        }
        let fresh = self.folder.join(FRESH);
        write_whole(&fresh, &text).map_err(at(&fresh))?;
        fs::rename(&fresh, &store).map_err(at(&store))?;
        File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(at(&self.folder))?;
        self.approvals = approvals;
        Ok(())
    }
}

/// A path as text that no other path has.
fn named(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => format!("bytes:{}", os::bytes(path).escape_ascii()),
    }
}

fn load(path: &Path) -> Result<Vec<TrustRecord>, TrustError> {
    let refused = |why: &str| Err(TrustError::Refused { path: path.to_owned(), why: why.to_owned() });
    let file = match open(path, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused_or_io(path)(error)),
    };
    check(path, &file.metadata().map_err(at(path))?)?;
    let mut text = String::new();
    let read = file.take(MOST_BYTES + 1).read_to_string(&mut text);
    match read {
        Ok(_) if text.len() as u64 > MOST_BYTES => {
            return refused("is too large to be what this program wrote");
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::InvalidData => return refused(DAMAGED),
        Err(error) => return Err(at(path)(error)),
    }
    match text.lines().map(serde_json::from_str).collect() {
        Ok(approvals) => Ok(approvals),
        Err(_) => refused(DAMAGED),
    }
}

const DAMAGED: &str = "is damaged; remove it and approve again what you still need";

fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    Ok(os::open(path, flags, Mode::RUSR | Mode::WUSR)?.into())
}

/// What was left of an earlier attempt is removed first, so that the file is ours from its first byte.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = open(path, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Links are never followed; opening one fails, and is reported as a link.
fn refused_or_io(path: &Path) -> impl Fn(io::Error) -> TrustError + use<> {
    let path = path.to_owned();
    move |error| {
        let link = fs::symlink_metadata(&path).is_ok_and(|data| data.file_type().is_symlink());
        if link {
            TrustError::Refused { path: path.clone(), why: "is a symbolic link".to_owned() }
        } else {
            at(&path)(error)
        }
    }
}

/// A file only we can have written (M-S3).
fn check(path: &Path, data: &Metadata) -> Result<(), TrustError> {
    let why = if !data.is_file() {
        "is not a file".to_owned()
    } else if os::owner(data) != acting_user() {
        "belongs to another user".to_owned()
    } else if os::mode(data) & 0o177 != 0 {
        format!("has mode {:04o}; only its owner may read and write it (0600)", os::mode(data) & 0o7777)
    } else if os::names(data) > 1 {
        // No name at all is fine: another process replaced the file after it was opened here.
        "has a second name".to_owned()
    } else {
        return Ok(());
    };
    Err(TrustError::Refused { path: path.to_owned(), why })
}

/// Whether the folder is there; one that others may write to is refused.
fn check_folder(path: &Path) -> Result<bool, TrustError> {
    let data = match fs::symlink_metadata(path) {
        Ok(data) => data,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(at(path)(error)),
    };
    let why = if !data.is_dir() {
        "is not a folder, or a symbolic link to one".to_owned()
    } else if os::owner(&data) != acting_user() {
        "belongs to another user".to_owned()
    } else if os::mode(&data) & 0o022 != 0 {
        format!("has mode {:04o}; only its owner may write to it (0700)", os::mode(&data) & 0o7777)
    } else {
        return Ok(true);
    };
    Err(TrustError::Refused { path: path.to_owned(), why })
}

fn create_folder(path: &Path) -> Result<(), TrustError> {
    os::private_directory().recursive(true).create(path).map_err(at(path))
}

fn at(path: &Path) -> impl Fn(io::Error) -> TrustError + use<> {
    let path = path.to_owned();
    move |error| TrustError::Io { path: path.clone(), error }
}
