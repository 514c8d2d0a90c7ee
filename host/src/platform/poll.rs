//! Waiting for several descriptors at once.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::Timespec;
pub use rustix::event::{PollFd, PollFlags};

use super::Errno;

/// Waits until one of them is ready or the time is up, and returns how many are. Without a time it waits forever.
pub fn wait(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<usize, Errno> {
    // A time too long for the system is as good as none.
    let timeout = timeout.and_then(|given| Timespec::try_from(given).ok());
    rustix::event::poll(fds, timeout.as_ref())
}

/// Reads and writes of this descriptor no longer wait.
pub fn never_block(fd: impl AsFd) -> io::Result<()> {
    Ok(rustix::io::ioctl_fionbio(fd, true)?)
}

/// One read, as the system answers it.
pub fn read(from: &OwnedFd, into: &mut [u8]) -> Result<usize, Errno> {
    rustix::io::read(from, into)
}
