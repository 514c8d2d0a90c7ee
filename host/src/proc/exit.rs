//! A file descriptor that becomes readable when a process has exited, and stays so.

use std::io;
use std::os::fd::OwnedFd;
use std::thread;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// The kernel's own (pidfd) where there is one, else a thread that waits and then closes a pipe.
pub(super) fn notice(pid: Pid) -> io::Result<OwnedFd> {
    kernel(pid).or_else(|_| by_thread(pid))
}

#[cfg(target_os = "linux")]
fn kernel(pid: Pid) -> io::Result<OwnedFd> {
    use rustix::process::{PidfdFlags, pidfd_open};
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

#[cfg(not(target_os = "linux"))]
fn kernel(_: Pid) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

fn by_thread(pid: Pid) -> io::Result<OwnedFd> {
    let (ear, clapper) = io::pipe()?;
    thread::Builder::new().name("exit".into()).spawn(move || {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), options), Err(rustix::io::Errno::INTR)) {}
        drop(clapper);
    })?;
    Ok(ear.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};
    use std::process::Command;

    #[test]
    fn the_thread_notices_like_the_kernel() -> io::Result<()> {
        let mut child = Command::new("true").spawn()?;
        let pid = Pid::from_child(&child);
        for fd in [by_thread(pid)?, kernel(pid)?] {
            poll(&mut [PollFd::new(&fd, PollFlags::IN)], None)?;
        }
        assert!(child.wait()?.success());
        Ok(())
    }
}
