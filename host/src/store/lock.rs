//! Named locks in the state directory, so that one process at a time acts on a target.
//!
//! The kernel holds the lock and frees it when the holder dies. The file stays: removing it would let two processes
//! lock two files of the same name.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::dir::Dir;
use super::files;
use super::holder::{self, Holder};
use super::names;
use crate::platform::files::OFlags;

const NAP: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{name} is held by {}; wait until it ends, or stop it there", holder::name(holder.as_ref()))]
    Held { name: String, holder: Option<Holder> },
    #[error("{name:?} cannot name a lock; use letters, digits, `.`, `_` and `-`")]
    BadName { name: String },
    #[error(transparent)]
    File(#[from] files::Error),
}

/// Held until dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

impl Lock {
    pub fn take(dir: &Path, name: &str, wait: Duration) -> Result<Lock, Error> {
        if !names::valid_name(name) {
            return Err(Error::BadName { name: name.chars().take(200).collect() });
        }
        let start = Instant::now();
        let file_name = format!("{name}.lock");
        let path = dir.join(&file_name);
        let file = Dir::open(dir)?.file(&file_name, OFlags::RDWR | OFlags::CREATE)?;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(e)) => return Err(files::Error::io("lock", &path, e).into()),
            }
            let Some(left) = wait.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) else {
                let text = files::read_capped(&path, 1024).unwrap_or_default();
                let holder = Holder::parse(&String::from_utf8_lossy(&text));
                return Err(Error::Held { name: name.to_owned(), holder });
            };
            thread::sleep(left.min(NAP));
        }
        let mut lock = Lock { file };
        lock.sign().map_err(|e| files::Error::io("write", &path, e))?;
        Ok(lock)
    }

    /// For people who wait; nothing depends on it, so it is not synced.
    fn sign(&mut self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(Holder::me().text().as_bytes())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing frees the lock in any case.
        let _ = self.file.set_len(0);
    }
}

/// A name for the lock of a target branch in a repository.
pub fn name_for(repository: &Path, target: &str) -> String {
    let mut bytes = repository.as_os_str().as_encoded_bytes().to_vec();
    bytes.push(0);
    bytes.extend_from_slice(target.as_bytes());
    files::digest(&bytes)
}
