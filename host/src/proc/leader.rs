//! The process we started: its group to signal, its exit to notice, its status to collect.
//!
//! Until it is reaped its number cannot be given to another process, so signals to its group are safe till then.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, ExitStatus};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::{exit, sweep};
use crate::children;

pub(super) struct Leader {
    child: Child,
    pid: Pid,
    exit: Option<OwnedFd>,
    reaped: bool,
}

impl Leader {
    pub(super) fn new(child: Child) -> Self {
        let pid = Pid::from_child(&child);
        Self { child, pid, exit: exit::notice(pid).ok(), reaped: false }
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Readable when the leader is gone; absent when neither descriptor nor thread was to be had.
    pub(super) fn exit_fd(&self) -> Option<BorrowedFd<'_>> {
        self.exit.as_ref().map(OwnedFd::as_fd)
    }

    pub(super) fn is_gone(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        !matches!(waitid(WaitId::Pid(self.pid), options), Ok(None) | Err(rustix::io::Errno::INTR))
    }

    /// A stopped process cannot act on the request, so it is also continued.
    pub(super) fn ask(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// To the whole group. A group without members left is no error.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    /// Collects the status; `None` when the leader cannot be made to die or somebody else collected it.
    ///
    /// A leader that will not die stays registered as ours, and a zombie once it does.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        if !sweep::is_possible() {
            self.signal(Signal::KILL);
        }
        self.reaped = true;
        self.is_gone().then(|| children::wait(&mut self.child).ok()).flatten()
    }
}

/// Only reached unreaped when a panic passes through: even then nothing is left running.
impl Drop for Leader {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal(Signal::KILL);
            let _ = children::wait(&mut self.child);
        }
    }
}
