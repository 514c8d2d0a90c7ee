//! Files that the process had open that started this program: a lock, a log, the pipe of a CI runner, a folder. Programs that
//! we start must not inherit them: an open folder is a way out of every sandbox.

#![expect(unsafe_code, reason = "the numbers of files that others opened are all that is known of them")]

use std::fs;
use std::os::fd::RawFd;

use rustix::process::{Resource, getrlimit};

/// The first number after the standard streams.
const FIRST: RawFd = 3;

/// So many numbers are tried where the open files can't be listed and there is no limit.
const MOST: u64 = 1 << 16;

/// Keeps every file above the standard streams from the programs that are started from here on. What a program is to get is
/// handed over by [`SessionCommand`](super::session::SessionCommand), which names it. Call it before anything is opened by
/// name and number.
pub fn keep_from_programs() {
    if mark_all().is_none() {
        for number in open_numbers() {
            // SAFETY: it changes a flag of a number, which fails if nothing is open under it.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

/// Closes every file above the standard streams but one. For the first moments of a process: nothing in it may hold a file
/// yet.
pub fn close_all_but(kept: RawFd) {
    let parts = [(FIRST, kept.saturating_sub(1)), (kept.saturating_add(1).max(FIRST), RawFd::MAX)];
    let are_closed = parts.iter().all(|(from, to)| from > to || close_range(*from, *to, 0).is_some());
    if are_closed {
        return;
    }
    for number in open_numbers().into_iter().filter(|number| *number != kept) {
        // SAFETY: as the caller promises, no value of this process stands for it.
        unsafe { libc::close(number) };
    }
}

/// The numbers of the files that are open above the standard streams.
pub fn still_open() -> Vec<RawFd> {
    // SAFETY: it asks for a flag of a number, which fails if nothing is open under it, as under that of the list itself.
    open_numbers().into_iter().filter(|number| unsafe { libc::fcntl(*number, libc::F_GETFD) } >= 0).collect()
}

#[cfg(target_os = "linux")]
fn mark_all() -> Option<()> {
    close_range(FIRST, RawFd::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

#[cfg(not(target_os = "linux"))]
fn mark_all() -> Option<()> {
    None
}

/// Older kernels don't have the call (before 5.9) or the flag (before 5.11), and filters of containers may refuse it.
#[cfg(target_os = "linux")]
fn close_range(from: RawFd, to: RawFd, flags: libc::c_uint) -> Option<()> {
    // SAFETY: with the flag nothing is closed; without it, see `close_all_but`.
    (unsafe { libc::syscall(libc::SYS_close_range, from, to, flags) } == 0).then_some(())
}

#[cfg(not(target_os = "linux"))]
fn close_range(_from: RawFd, _to: RawFd, _flags: libc::c_uint) -> Option<()> {
    None
}

/// The list is read to its end and closed before anybody uses it.
fn open_numbers() -> Vec<RawFd> {
    let Ok(listing) = fs::read_dir("/dev/fd") else {
        let most = getrlimit(Resource::Nofile).current.unwrap_or(MOST).min(MOST);
        return (FIRST..RawFd::try_from(most).unwrap_or(RawFd::MAX)).collect();
    };
    let names = listing.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    names.filter(|number| *number >= FIRST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsRawFd;

    #[test]
    fn r_02_without_the_call_open_files_are_found_by_their_list() -> std::io::Result<()> {
        let file = File::open("/")?;
        let found = open_numbers();
        assert!(
            found.contains(&file.as_raw_fd()) && found.iter().all(|number| *number >= FIRST),
            "{found:?}"
        );
        Ok(())
    }
}
