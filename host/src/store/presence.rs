//! Who looks at a run: `watching/<digest>.lock` in the state folder, locked by everybody who shows it to a person. The
//! kernel holds the locks, so a viewer that is killed looks no more.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::lock;
use crate::platform::files as os;

const FOLDER: &str = "watching";
/// Another process may ask at the same moment, for which it holds the lock.
const ASKS: usize = 3;
const NAP: Duration = Duration::from_millis(5);

/// What somebody looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Watched {
    Run {
        root: PathBuf,
        id: String,
    },
    Sprint {
        root: PathBuf,
        id: String,
    },
    /// All that wait.
    Inbox,
}

impl Watched {
    pub fn run(root: &Path, id: &str) -> Watched {
        Watched::Run { root: root.to_owned(), id: id.to_owned() }
    }

    pub fn sprint(root: &Path, id: &str) -> Watched {
        let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        Watched::Sprint { root, id: id.to_owned() }
    }

    fn file(&self, state: &Path) -> PathBuf {
        let name = match self {
            Watched::Run { root, id } => lock::name_for(root, id),
            Watched::Sprint { root, id } => format!("sprint-{}", lock::name_for(root, id)),
            Watched::Inbox => "inbox".to_owned(),
        };
        state.join(FOLDER).join(format!("{name}.lock"))
    }

    /// Whether a page or a `watch` shows it to a person now. What can't be found out is not watched.
    pub fn is_watched(&self, state: &Path) -> bool {
        let Ok(file) = File::open(self.file(state)) else { return false };
        for _ in 0..ASKS {
            match file.try_lock() {
                Ok(()) | Err(TryLockError::Error(_)) => return false,
                Err(TryLockError::WouldBlock) => thread::sleep(NAP),
            }
        }
        true
    }
}

/// Somebody looks, until it is dropped.
#[derive(Debug)]
pub struct Presence {
    _file: File,
}

impl Presence {
    /// Without it the run is shown all the same; only messages about it are sent, too.
    pub fn hold(state: &Path, subject: &Watched) -> io::Result<Presence> {
        let path = subject.file(state);
        os::private_directory().recursive(true).create(state.join(FOLDER))?;
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true);
        let file = os::with_mode(&mut options, 0o600).open(path)?;
        file.lock_shared()?;
        Ok(Presence { _file: file })
    }
}

/// The run is removed.
pub(crate) fn forget(state: &Path, root: &Path, run: &str) {
    let _ = std::fs::remove_file(Watched::run(root, run).file(state));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notify_everybody_who_looks_is_seen_until_they_leave() -> io::Result<()> {
        let dir = tempfile::tempdir()?;
        let (state, root) = (dir.path(), Path::new("/repo"));
        let (run, other) = (Watched::run(root, "r"), Watched::run(root, "s"));
        assert!(!run.is_watched(state) && !Watched::Inbox.is_watched(state));
        let (one, two) = (Presence::hold(state, &run)?, Presence::hold(state, &run)?);
        assert!(run.is_watched(state) && !other.is_watched(state) && !Watched::Inbox.is_watched(state));
        drop(one);
        assert!(run.is_watched(state));
        drop(two);
        assert!(!run.is_watched(state));
        Ok(())
    }
}
