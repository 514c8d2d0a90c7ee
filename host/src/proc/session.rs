//! What happens in the child between fork and exec. The only unsafe code of the program.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::{Pid, Resource, Rlimit, getpid, getppid, setrlimit, setsid};

/// Gives the child a session of its own (so no controlling terminal), the death of its parent, and no core dumps.
#[expect(
    unsafe_code,
    reason = "there is no safe way to run code between fork and exec; it makes system calls only"
)]
pub fn own(command: &mut Command) {
    let parent = getpid();
    // SAFETY: `enter` makes four direct system calls; it takes no lock, allocates nothing and reads no memory
    // that another thread may have been changing at the fork.
    unsafe { command.pre_exec(move || enter(parent)) };
}

fn enter(parent: Pid) -> io::Result<()> {
    setsid()?;
    die_with(parent)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

/// A parent that died before the request was in place would never be noticed, hence the second look.
#[cfg(target_os = "linux")]
fn die_with(parent: Pid) -> rustix::io::Result<()> {
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH) }
}

#[cfg(not(target_os = "linux"))]
fn die_with(parent: Pid) -> rustix::io::Result<()> {
    if getppid() == Some(parent) { Ok(()) } else { Err(rustix::io::Errno::SRCH) }
}
