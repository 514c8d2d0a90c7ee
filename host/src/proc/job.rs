//! What is asked of a child process, and what became of it. Plain data.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use super::clock::Why;
use super::sink::{Sink, SinkReport};
use crate::platform::process;

/// The environment variable by which leftovers are recognised.
pub const TAG: &str = "ARCHEFLOW_TAG";

/// One child process to run.
#[derive(Debug, Clone)]
pub struct Job {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// The complete environment; nothing is inherited. The tag is added to it.
    pub env: Vec<(OsString, OsString)>,
    pub cwd: PathBuf,
    /// Given to the child, followed by end of file.
    pub stdin: Vec<u8>,
    pub stdout: Sink,
    pub stderr: Sink,
    pub limits: JobLimits,
    /// Names this job among all that may be alive; two jobs must not share it.
    pub tag: String,
}

/// How long a job may take; `Duration::MAX` means no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobLimits {
    /// The longest time without a byte on stdout or stderr.
    pub silence: Duration,
    /// The longest time altogether.
    pub total: Duration,
    /// Between the request to end (SIGTERM) and the end (SIGKILL).
    pub grace: Duration,
    /// After the leader has exited: the longest wait for its pipes to close.
    pub drain: Duration,
}

impl Default for JobLimits {
    fn default() -> Self {
        Self {
            silence: Duration::MAX,
            total: Duration::MAX,
            grace: Duration::from_secs(5),
            drain: Duration::from_secs(2),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// What became of a job. The output so far is there whatever the cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    pub cause: Cause,
    pub duration: Duration,
    /// Processes that were still alive when the job was over and were killed by the sweep.
    pub leftovers: usize,
    pub stdout: SinkReport,
    pub stderr: SinkReport,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// The leader exited with this code.
    Exited(i32),
    /// The leader was killed by this signal, which we did not send.
    Signaled(i32),
    /// The silence limit struck.
    Silent,
    /// The total limit struck.
    TooLong,
    /// The watch asked for the end.
    Stopped,
    NotStarted(NotStarted),
}

/// Why there never was a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotStarted {
    NotFound(String),
    Permission(String),
    Other(String),
}

impl Job {
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
        command.env(TAG, &self.tag).current_dir(&self.cwd);
        command.stdin(if self.stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        process::own_session(&mut command);
        command
    }
}

impl Cause {
    /// A limit or a request that struck outweighs how the leader then died.
    pub(super) fn of(forced: Option<Why>, status: Option<ExitStatus>) -> Self {
        match (forced, status) {
            (Some(Why::Silent), _) => Self::Silent,
            (Some(Why::TooLong), _) => Self::TooLong,
            (Some(Why::Stopped), _) => Self::Stopped,
            (None, Some(status)) => match (status.code(), process::killed_by(status)) {
                (Some(code), _) => Self::Exited(code),
                (None, signal) => Self::Signaled(signal.unwrap_or_default()),
            },
            // Somebody else took the status away: the end is certain, the way is not, so it is no success.
            (None, None) => Self::Signaled(0),
        }
    }
}

impl NotStarted {
    pub(super) fn of(job: &Job, error: &io::Error) -> Self {
        if !job.cwd.is_dir() {
            return Self::Other(format!("{}: is not a directory that can be entered", job.cwd.display()));
        }
        let text = format!("{}: {error}", job.program.display());
        if error.kind() == io::ErrorKind::NotFound {
            Self::NotFound(text)
        } else if error.kind() == io::ErrorKind::PermissionDenied {
            Self::Permission(text)
        } else {
            Self::Other(text)
        }
    }

    pub(super) fn other(error: &io::Error) -> Self {
        Self::Other(error.to_string())
    }
}
