//! Processes: starting them so that they end with us, signalling them, and waiting for their end.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::thread;

pub use rustix::process::{
    Pid, Signal, getpid, kill_process, kill_process_group, test_kill_process as test, waitpid,
};
use rustix::process::{
    Resource, Rlimit, WaitId, WaitIdOptions, WaitOptions, geteuid, getppid, getuid, setrlimit, setsid, waitid,
};

use super::{Errno, system};

/// A look at children that neither waits nor reaps.
const PEEK: WaitIdOptions = WaitIdOptions::EXITED.union(WaitIdOptions::NOWAIT).union(WaitIdOptions::NOHANG);

/// Whether descendants that lose their parent can become our children ([`adopt_orphans`]).
pub const ADOPTS_ORPHANS: bool = system::ADOPTS_ORPHANS;

/// A process by a recorded number.
pub fn numbered(number: u32) -> Option<Pid> {
    i32::try_from(number).ok().and_then(Pid::from_raw)
}

/// The user this process acts as.
pub fn acting_user() -> u32 {
    geteuid().as_raw()
}

/// From here on nothing this process or its children make can be written by everybody, whatever the user's umask allows
/// (S-13). What the user's umask forbids stays forbidden.
pub fn restrict_umask() {
    use rustix::fs::Mode;
    use rustix::process::umask;
    let before = umask(Mode::WOTH);
    umask(before | Mode::WOTH);
}

/// The user who started this process.
pub fn user() -> u32 {
    getuid().as_raw()
}

/// Gives the child a session of its own (so no controlling terminal), the death of its parent where the system has
/// that, and no core dumps.
#[expect(
    unsafe_code,
    reason = "there is no safe way to run code between fork and exec; it makes system calls only"
)]
pub fn own_session(command: &mut Command) {
    let parent = getpid();
    // SAFETY: `enter` makes four direct system calls; it takes no lock, allocates nothing and reads no memory
    // that another thread may have been changing at the fork.
    unsafe { command.pre_exec(move || enter(parent)) };
}

fn enter(parent: Pid) -> io::Result<()> {
    setsid()?;
    system::die_with_parent()?;
    // A parent that died before the request was in place would never be noticed, hence this look.
    if getppid() != Some(parent) {
        return Err(Errno::SRCH.into());
    }
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(())
}

/// Gives the child a process group of its own, so that a Ctrl-C in the terminal does not reach it.
pub fn own_group(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// The signal that killed a process, if one did.
pub fn killed_by(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Makes orphans of our descendants our children, and returns whether they can be listed. For the whole process.
pub fn adopt_orphans() -> bool {
    system::adopt_orphans()
}

/// Whether this signal was ignored when the program started; a system that does not report it is assumed to ignore nothing.
pub fn is_ignored(signal: i32) -> bool {
    system::is_ignored(signal)
}

/// The file a process runs.
pub fn program(pid: Pid) -> Option<PathBuf> {
    system::program(pid)
}

/// A living process that has this file open, if the system reports it.
pub fn has_open(file: &std::path::Path) -> Option<i32> {
    system::has_open(file)
}

/// Ends this process at once, as a crash would.
pub fn kill_self() {
    let _ = kill_process(getpid(), Signal::KILL);
}

/// Asks this process to end, as Ctrl-C would.
pub fn interrupt_self() {
    let _ = kill_process(getpid(), Signal::INT);
}

/// Waits till a child has ended and leaves it in the table.
pub fn await_death(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while matches!(waitid(WaitId::Pid(pid), options), Err(Errno::INTR)) {}
}

/// Whether a child has ended, or is no child of ours any more.
pub fn is_gone(pid: Pid) -> bool {
    !matches!(waitid(WaitId::Pid(pid), PEEK), Ok(None) | Err(Errno::INTR))
}

/// The kernel's exact answer, at the price of one call.
pub fn is_childless() -> bool {
    matches!(waitid(WaitId::All, PEEK), Err(Errno::CHILD))
}

pub fn has_dead_child() -> bool {
    matches!(waitid(WaitId::All, PEEK), Ok(Some(_)))
}

/// Reaps a child that has ended, and returns its status as the system tells it.
pub fn collect(pid: Pid) -> io::Result<i32> {
    let ended = waitpid(Some(pid), WaitOptions::empty())?;
    Ok(ended.ok_or(Errno::CHILD)?.1.as_raw())
}

/// Reaps a dead child, and returns whether there was one.
pub fn reap(pid: Pid) -> bool {
    matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)))
}

/// A descriptor that becomes readable when a child has exited, and stays so: the kernel's own where there is one,
/// else the end of a pipe that a waiting thread holds.
pub fn exit_notice(pid: Pid) -> io::Result<OwnedFd> {
    system::exit_notice(pid).or_else(|_| notice_by_thread(pid))
}

fn notice_by_thread(pid: Pid) -> io::Result<OwnedFd> {
    let (notice, held) = io::pipe()?;
    thread::Builder::new().name("exit".into()).spawn(move || {
        await_death(pid);
        drop(held);
    })?;
    Ok(notice.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::poll::{PollFd, PollFlags, wait};

    #[test]
    fn the_thread_notices_like_the_kernel() -> io::Result<()> {
        let mut child = Command::new("true").spawn()?;
        let pid = Pid::from_child(&child);
        for fd in [notice_by_thread(pid)?, exit_notice(pid)?] {
            wait(&mut [PollFd::new(&fd, PollFlags::IN)], None)?;
        }
        assert!(child.wait()?.success());
        Ok(())
    }
}
