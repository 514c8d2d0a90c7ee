//! Where files are, and whether it is safe to write there.
//!
//! A repository can be prepared by someone else. A link in the place of a state directory would make us write to
//! files of the user that have nothing to do with us, so it is refused. What must not be readable or changeable by
//! other people, or by what runs inside the repository, is in the user's own state directory.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::dir::{Dir, STATE};
use super::files::{self, Error};
use crate::platform::files as os;
use crate::platform::process::acting_user;

const NAME: &str = "archeflow";
/// What git does not see. The last line is for what a kill leaves of a file that was being written.
const IGNORED: &str = "/events/\n/artifacts/\n/runs/\n/memory/\n/costs/\n/progress.md\n/control-center.md\n/.gitignore\n/.*.tmp\n";
/// What earlier versions wrote in its place; a file that people changed is theirs.
const IGNORED_BEFORE: &str =
    "/events/\n/artifacts/\n/runs/\n/memory/\n/costs/\n/progress.md\n/.gitignore\n/.*.tmp\n";
const WRITABLE_BY_OTHERS: u32 = 0o022;
const ANYONE: u32 = 0o002;
const STICKY: u32 = 0o1000;

/// Paths from the environment. It comes in as a value so that tests need no environment of their own.
#[derive(Debug, Clone, Default)]
pub struct Env {
    pub home: Option<OsString>,
    pub xdg_state_home: Option<OsString>,
    pub xdg_config_home: Option<OsString>,
}

#[derive(Debug, Clone)]
pub struct Places {
    root: PathBuf,
}

impl Places {
    /// Makes the state directories of a repository; an error says why they can't be trusted.
    pub fn open(repo_root: &Path) -> Result<Places, Error> {
        let places = Places::at(repo_root)?;
        places.make()?;
        Ok(places)
    }

    /// The places of a repository, without making any.
    pub fn at(repo_root: &Path) -> Result<Places, Error> {
        let root = fs::canonicalize(repo_root).map_err(|e| Error::io("find the repository", repo_root, e))?;
        Ok(Places { root })
    }

    /// Refuses state directories that somebody else brought or can change: of another user, writable by everybody, or
    /// with a repository in their place, as a submodule has it. What is not there yet is fine; links are refused wherever
    /// they are opened.
    pub fn check_owner(&self) -> Result<(), Error> {
        for folder in [self.root.join(STATE), self.events(), self.artifacts(), self.runs()] {
            let found = match fs::symlink_metadata(&folder) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                found => found.map_err(|e| Error::io("look at", &folder, e))?,
            };
            if found.is_symlink() {
                return Err(Error::refused(&folder, "it is a symbolic link"));
            }
            if !found.is_dir() {
                return Err(Error::refused(&folder, "it is not a directory"));
            }
            if os::owner(&found) != acting_user() {
                return Err(Error::refused(&folder, "it belongs to someone else"));
            }
            if os::mode(&found) & ANYONE != 0 {
                return Err(Error::refused(
                    &folder,
                    "everybody can write there (look at it, then `chmod -R o-w` it)",
                ));
            }
            if fs::symlink_metadata(folder.join(".git")).is_ok() {
                return Err(Error::refused(&folder, "it is a repository of its own, such as a submodule"));
            }
        }
        Ok(())
    }

    /// Makes the state directories.
    pub fn make(&self) -> Result<(), Error> {
        self.check_owner()?;
        let root = &self.root;
        let state = Dir::open(root)?.make(STATE, 0o755)?;
        for name in ["events", "artifacts", "runs"] {
            state.make(name, 0o700)?;
        }
        let ignored = root.join(STATE).join(".gitignore");
        if state.kind(".gitignore")?.is_some() {
            let before = files::read_capped(&ignored, 4096);
            if before.is_ok_and(|before| before == IGNORED_BEFORE.as_bytes()) {
                files::write_atomic(&ignored, IGNORED.as_bytes())?;
            }
            return Ok(());
        }
        match files::write_new(&ignored, IGNORED.as_bytes()) {
            Err(e) if e.io_kind() != Some(io::ErrorKind::AlreadyExists) => return Err(e),
            Ok(()) | Err(_) => {}
        }
        Ok(())
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn events(&self) -> PathBuf {
        self.root.join(STATE).join("events")
    }

    pub fn artifacts(&self) -> PathBuf {
        self.root.join(STATE).join("artifacts")
    }

    pub fn runs(&self) -> PathBuf {
        self.root.join(STATE).join("runs")
    }

    /// Lessons of earlier runs; made by the first write.
    pub fn memory(&self) -> PathBuf {
        self.root.join(STATE).join("memory")
    }

    /// The user's own state directory, made if need be. Only we may write there.
    pub fn state_dir(&self, env: &Env) -> Result<PathBuf, Error> {
        let base = base(env, env.xdg_state_home.as_deref(), ".local/state")?;
        self.not_inside(&base)?;
        let path = made(&base)?;
        // Again, now that everything exists: a part of the path may be a link into the repository.
        self.not_inside(&path)?;
        only_ours(&base, &path)?;
        Ok(path)
    }

    /// The same for commands that only read: where it can't be made, nothing is known yet, which is an answer.
    pub fn state_dir_to_read(&self, env: &Env) -> Result<PathBuf, Error> {
        let base = base(env, env.xdg_state_home.as_deref(), ".local/state")?;
        self.not_inside(&base)?;
        match made(&base) {
            Err(error) if error.is_unwritable() => Ok(base.join(NAME)),
            Ok(_) | Err(_) => self.state_dir(env),
        }
    }

    /// The user's own state directory where it is there already, for readers outside of a repository.
    pub fn state_dir_elsewhere(env: &Env) -> Result<Option<PathBuf>, Error> {
        let base = base(env, env.xdg_state_home.as_deref(), ".local/state")?;
        let path = base.join(NAME);
        if !path.is_dir() {
            return Ok(None);
        }
        only_ours(&base, &path)?;
        Ok(Some(path))
    }

    /// The same, made if need be: for a program that lives on while the first run is started.
    pub fn state_dir_made_elsewhere(env: &Env) -> Result<PathBuf, Error> {
        let base = base(env, env.xdg_state_home.as_deref(), ".local/state")?;
        let path = made(&base)?;
        only_ours(&base, &path)?;
        Ok(path)
    }

    /// The user's own configuration directory. It need not exist, and it is not made.
    pub fn config_dir(&self, env: &Env) -> Result<PathBuf, Error> {
        let path = base(env, env.xdg_config_home.as_deref(), ".config")?.join(NAME);
        self.not_inside(&path)?;
        match fs::metadata(&path) {
            Ok(found) if !found.is_dir() => Err(Error::refused(&path, "it is not a directory")),
            Ok(found) => trusted(&path, os::owner(&found), os::mode(&found)).map(|()| path),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(path),
            Err(e) => Err(Error::io("look at", &path, e)),
        }
    }

    /// What runs inside the repository must not be able to change what we trust.
    fn not_inside(&self, path: &Path) -> Result<(), Error> {
        let known = path.ancestors().find_map(|part| fs::canonicalize(part).ok());
        match known {
            Some(known) if !known.starts_with(&self.root) => Ok(()),
            Some(_) => Err(Error::refused(path, "it is inside the repository")),
            None => Err(Error::refused(path, "no part of the path exists")),
        }
    }
}

/// Refuses a state folder that can't be written, before anything is begun that needs it.
pub(crate) fn check_writable(state: &Path) -> Result<(), Error> {
    os::check_writable(state).map_err(|error| Error::io("write to", state, error))
}

/// The folder of ours below it.
fn made(base: &Path) -> Result<PathBuf, Error> {
    make_all(base)?;
    let path = base.join(NAME);
    match os::private_directory().create(&path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            Err(Error::io("create the directory", &path, e))
        }
        Ok(()) | Err(_) => Ok(path),
    }
}

/// An XDG value counts when it is an absolute path; a relative one is to be ignored, as the standard asks.
fn base(env: &Env, xdg: Option<&OsStr>, below_home: &str) -> Result<PathBuf, Error> {
    let absolute = |value: &OsStr| Some(PathBuf::from(value)).filter(|path| path.is_absolute());
    let home = || env.home.as_deref().and_then(absolute).map(|home| home.join(below_home));
    let path = xdg.and_then(absolute).or_else(home).ok_or_else(|| {
        Error::refused(Path::new("$HOME"), "neither it nor an XDG directory is set to an absolute path")
    })?;
    let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
    if climbs { Err(Error::refused(&path, "it contains `..`")) } else { Ok(path) }
}

fn make_all(path: &Path) -> Result<(), Error> {
    os::private_directory()
        .recursive(true)
        .create(path)
        .map_err(|e| Error::io("create the directory", path, e))
}

fn only_ours(base: &Path, path: &Path) -> Result<(), Error> {
    let above = fs::metadata(base).map_err(|e| Error::io("look at", base, e))?;
    if os::mode(&above) & ANYONE != 0 && os::mode(&above) & STICKY == 0 {
        return Err(Error::refused(base, "any user may rename what is in it"));
    }
    let stat = Dir::open(base)?.enter(OsStr::new(NAME))?.stat()?;
    let (owner, mode) = os::owner_and_mode(&stat);
    trusted(path, owner, mode)
}

fn trusted(path: &Path, owner: u32, mode: u32) -> Result<(), Error> {
    if owner != acting_user() {
        return Err(Error::refused(path, "it belongs to someone else"));
    }
    if mode & WRITABLE_BY_OTHERS != 0 {
        return Err(Error::refused(path, "others may write to it (`chmod go-w` mends that)"));
    }
    Ok(())
}
