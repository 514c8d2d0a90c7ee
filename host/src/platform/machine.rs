//! Figures about the whole machine, and what it gives away freely: chance, time, a name.

use std::io;
use std::time::Duration;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::process::Pid;
use super::system;

/// Fills the buffer with cryptographically secure random bytes.
pub fn random(into: &mut [u8]) -> io::Result<()> {
    system::random(into)
}

/// The processes that wanted to run during the last minute, in hundredths.
pub fn load() -> Option<u64> {
    system::load()
}

/// The memory that new programs may take without pushing others out, in KiB.
pub fn available_memory() -> Option<u64> {
    system::available_memory()
}

/// Lets go of the pages of the program itself that this process has used so far, as far as the system has a way. The system
/// keeps them, and hands out again what is used again. For processes that live long and needed much of the program only to
/// start.
pub fn release_program() {
    system::release_program();
}

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The time this thread has worked, however busy the machine is.
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Bytes that this user can still write to the file system of this place.
pub fn free_space(place: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(place).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}

/// How many files this process may have open; nothing if there is no limit.
pub fn open_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

/// Whether the file system of this place has less than a megabyte or some thirty files left.
pub fn is_nearly_full(place: &Path) -> bool {
    let Ok(found) = rustix::fs::statvfs(place) else { return false };
    let bytes = found.f_bavail.saturating_mul(found.f_frsize);
    // File systems that don't count files have none at all.
    bytes < 1024 * 1024 || (found.f_files > 0 && found.f_favail < 32)
}

/// Bytes of memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessMemory {
    pub own: u64,
    /// Shared with other processes, or to be shared.
    pub shared: u64,
}

/// Bytes of memory that these processes hold together, if it is more than `most`. What they keep in file systems that
/// are memory counts too.
pub fn memory_beyond(most: u64, pids: &[Pid]) -> Option<u64> {
    let files = system::memory_in_files(pids);
    let sum = |of: &dyn Fn(Pid) -> Option<ProcessMemory>| {
        let all = pids.iter().filter_map(|pid| of(*pid));
        let all = all.fold(ProcessMemory::default(), |sum, one| ProcessMemory {
            own: sum.own.saturating_add(one.own),
            shared: sum.shared.saturating_add(one.shared),
        });
        // Shared memory usually is a file in one of those file systems.
        all.own.saturating_add(all.shared.max(files))
    };
    if sum(&system::memory_of) <= most {
        return None;
    }
    Some(sum(&|pid| system::share_of_memory(pid).or_else(|| system::memory_of(pid))))
        .filter(|used| *used > most)
}

/// What a file or folder counts for at least: empty ones use up a disk, too.
pub const FILE_AT_LEAST: u64 = 4096;

/// Files that can still be made on the file system of this place; nothing where it has no such limit.
pub fn free_files(place: &Path) -> Option<u64> {
    let found = rustix::fs::statvfs(place).ok()?;
    (found.f_files > 0).then_some(found.f_ffree)
}

/// Bytes on disk of everything in these folders; links are not followed. After so many files the answer is that nothing
/// is left.
pub fn space_of(folders: &[PathBuf], most_files: usize) -> u64 {
    let (mut used, mut files) = (0_u64, 0);
    let mut left = folders.to_vec();
    while let Some(folder) = left.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for meta in entries.flatten().filter_map(|entry| Some((entry.path(), entry.metadata().ok()?))) {
            let (path, meta) = meta;
            used = used.saturating_add(meta.blocks().saturating_mul(512).max(FILE_AT_LEAST));
            files += 1;
            if meta.is_dir() {
                left.push(path);
            }
            if files >= most_files {
                return u64::MAX;
            }
        }
    }
    used
}
