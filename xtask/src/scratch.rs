//! Where tests put their files: in memory, if there is enough of it.
//!
//! Tests kill processes and never pull a plug, so what a disk does with `fsync` is not theirs to see, and waiting for it
//! is two thirds of their time.

use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use tempfile::TempDir;

const MEMORY: &str = "/dev/shm";
/// What the largest tests hold at a time, several times over.
const ROOM: u64 = 6 << 30;

/// A folder for the time of a step; nothing where the usual place is the better one.
pub(crate) fn folder() -> Option<TempDir> {
    let chosen = std::env::var_os("TMPDIR").is_some();
    let place = Path::new(MEMORY);
    if chosen || !has_room(place) {
        return None;
    }
    tempfile::Builder::new().prefix("archeflow-tests-").tempdir_in(place).ok()
}

/// Containers often have a small one, from which nothing can be run.
fn has_room(place: &Path) -> bool {
    let enough = |stat: rustix::fs::StatVfs| {
        let free = stat.f_bavail.saturating_mul(stat.f_frsize);
        free >= ROOM && !stat.f_flag.contains(StatVfsMountFlags::NOEXEC)
    };
    statvfs(place).is_ok_and(enough) && available().is_none_or(|bytes| bytes >= ROOM)
}

fn available() -> Option<u64> {
    let text = std::fs::read_to_string(PathBuf::from("/proc/meminfo")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kb| kb * 1024)
}
