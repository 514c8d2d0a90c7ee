//! The process we started: its group to signal, its exit to notice, its status to collect.
//!
//! Until it is reaped its number cannot be given to another process, so signals to its group are safe till then.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::ExitStatus;

use super::sweep;
use crate::platform::process::{self, Pid, Signal, kill_process_group};
use crate::platform::session::SessionLeader;
use crate::platform::table;

pub(super) struct Leader {
    child: SessionLeader,
    pid: Pid,
    exit: Option<OwnedFd>,
    /// Whether this process only stands around the one that matters, which is then its child.
    outer: bool,
    reaped: bool,
}

impl Leader {
    pub(super) fn new(child: SessionLeader, outer: bool) -> Self {
        let (pid, exit) = (child.pid, process::exit_notice(child.pid).ok());
        Self { child, pid, exit, outer, reaped: false }
    }

    pub(super) fn pid(&self) -> Pid {
        self.pid
    }

    /// Readable when the leader is gone; absent when neither descriptor nor thread was to be had.
    pub(super) fn exit_fd(&self) -> Option<BorrowedFd<'_>> {
        self.exit.as_ref().map(OwnedFd::as_fd)
    }

    pub(super) fn is_gone(&self) -> bool {
        process::is_gone(self.pid)
    }

    /// A stopped process cannot act on the request, so it is also continued.
    ///
    /// What stands around a sandbox would end at once and everything in it without having been asked, so only its child
    /// hears of it, and passes it on.
    pub(super) fn ask(&self) {
        let mut inner = table::all();
        inner.retain(|process| self.outer && process.parent == self.pid.as_raw_nonzero().get());
        if !inner.is_empty() {
            inner.iter().for_each(|process| process.signal(Signal::TERM));
            return;
        }
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// To the whole group. A group without members left is no error.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.pid, signal);
    }

    /// Collects the status; `None` when the leader cannot be killed or its status was already collected.
    ///
    /// A leader that will not die stays registered as ours, and a zombie once it does.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        if !sweep::is_possible() {
            self.signal(Signal::KILL);
        }
        self.reaped = true;
        self.is_gone().then(|| self.child.wait().ok()).flatten()
    }
}

/// Only reached unreaped when a panic passes through: even then nothing is left running.
impl Drop for Leader {
    fn drop(&mut self) {
        if !self.reaped {
            self.signal(Signal::KILL);
            let _ = self.child.wait();
        }
    }
}
