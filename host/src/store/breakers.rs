//! Which provider accounts are limited, for all runs of the user: `accounts/<digest>.json` in the state folder. Each run
//! decides for itself by its own journal; this only keeps another run from hitting a known limit.
//!
//! A file that is missing, torn or absurd means that nothing is known.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files;
use crate::platform::files as os;

const FOLDER: &str = "accounts";
const LARGEST: u64 = 64 * 1024;
/// No provider blocks an account longer; a later date means a wrong clock.
const LONGEST_MS: u64 = 40 * 86_400_000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BreakerRecord {
    account: String,
    /// In milliseconds since 1970.
    reopens_at: u64,
    /// The run that found out.
    run: String,
}

/// Nobody else's agent is to start on this account before then. What is known and lasts longer stays.
pub fn open(state: &Path, account: &str, reopens_at: u64, run: &str) -> io::Result<()> {
    let (path, _lock) = locked(state, account)?;
    if read(&path, account).is_some_and(|known| known.reopens_at >= reopens_at) {
        return Ok(());
    }
    let line = BreakerRecord { account: account.to_owned(), reopens_at, run: run.to_owned() };
    let bytes = serde_json::to_vec(&line).map_err(io::Error::other)?;
    files::write_atomic(&path, &bytes).map_err(io::Error::other)
}

/// The account has answered a request.
pub fn close(state: &Path, account: &str) {
    if place(state, account).exists()
        && let Ok((path, _lock)) = locked(state, account)
    {
        let _ = std::fs::remove_file(path);
    }
}

/// For how much longer the account is limited by what another run found out.
pub fn shut_for(state: &Path, account: &str, run: &str, now: u64) -> Option<u64> {
    let known = read(&place(state, account), account).filter(|known| known.run != run)?;
    let left = known.reopens_at.saturating_sub(now);
    (1..=LONGEST_MS).contains(&left).then_some(left)
}

fn read(path: &Path, account: &str) -> Option<BreakerRecord> {
    let bytes = files::read_capped(path, LARGEST).ok()?;
    serde_json::from_slice::<BreakerRecord>(&bytes).ok().filter(|line| line.account == account)
}

fn place(state: &Path, account: &str) -> PathBuf {
    state.join(FOLDER).join(format!("{}.json", files::digest(account.as_bytes())))
}

/// Held by the kernel: released when the process dies.
fn locked(state: &Path, account: &str) -> io::Result<(PathBuf, File)> {
    let path = place(state, account);
    os::private_directory().recursive(true).create(state.join(FOLDER))?;
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    let lock = os::with_mode(&mut options, 0o600).open(path.with_extension("lock"))?;
    lock.lock()?;
    Ok((path, lock))
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_MS, close, open, place, shut_for};

    #[test]
    fn c6_what_one_run_found_out_keeps_the_others_away() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let state = dir.path();
        let left = |run, now| shut_for(state, "claude", run, now);
        assert_eq!(left("b", 0), None, "nothing is known");
        open(state, "claude", 5_000, "a")?;
        assert_eq!((left("b", 1_000), left("a", 1_000), left("b", 5_000)), (Some(4_000), None, None));
        assert_eq!(shut_for(state, "codex", "b", 1_000), None, "another account");
        open(state, "claude", 3_000, "c")?;
        assert_eq!(left("b", 1_000), Some(4_000), "what lasts longer stays");
        open(state, "claude", 9_000, "c")?;
        assert_eq!((left("a", 1_000), left("c", 1_000)), (Some(8_000), None));
        close(state, "claude");
        assert_eq!(left("b", 1_000), None);
        open(state, "claude", LONGEST_MS * 2, "a")?;
        assert_eq!(left("b", 0), None, "a clock that was wrong");
        std::fs::write(place(state, "claude"), "{torn")?;
        assert_eq!(left("b", 0), None);
        open(state, "claude", 7_000, "a")?;
        assert_eq!(left("b", 0), Some(7_000), "and is written over");
        Ok(())
    }
}
