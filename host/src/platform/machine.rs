//! Figures about the whole machine, and what it gives away freely: chance, time, a name.

use std::io;
use std::time::Duration;

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

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The time this thread has worked, however busy the machine is.
pub fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
