//! A program that leads a session of its own and ends with us, and the way it is started.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};

use super::process::{self, Pid};
use super::{children, system, watcher};

/// A program to start: no controlling terminal, no core dumps, killed when the thread that starts it ends.
#[derive(Debug)]
pub struct SessionCommand<'a> {
    /// Without a slash, it is looked for in the `PATH` of `env`.
    pub program: &'a OsStr,
    pub args: &'a [OsString],
    /// The whole environment.
    pub env: BTreeMap<OsString, OsString>,
    pub cwd: &'a Path,
    /// Whether it reads from us; otherwise its input is empty.
    pub reads: bool,
    /// Files that it gets under the numbers they have here.
    pub files: Vec<OwnedFd>,
}

/// The process, and our ends of its pipes.
#[derive(Debug)]
pub struct SessionLeader {
    pub pid: Pid,
    pub stdin: Option<ChildStdin>,
    pub stdout: Option<ChildStdout>,
    pub stderr: Option<ChildStderr>,
}

impl SessionCommand<'_> {
    /// Starts it and registers it as ours.
    pub fn spawn(&self) -> io::Result<SessionLeader> {
        let mut ours = children::lock();
        let leader = system::start_session(self)?;
        ours.insert(leader.id());
        Ok(leader)
    }
}

impl SessionLeader {
    fn id(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits till it has ended and forgets it; see [`children::wait`].
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        drop(self.stdin.take());
        process::await_death(self.pid);
        let mut ours = children::lock();
        let status = process::collect(self.pid);
        ours.remove(&self.id());
        watcher::uncover(self.id());
        Ok(ExitStatus::from_raw(status?))
    }
}
