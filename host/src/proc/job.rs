//! What is asked of a child process, and what became of it. Plain data.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use super::clock::Why;
use super::sink::{Sink, SinkReport};
use crate::platform::process;
use crate::platform::session::{SessionCommand, SessionLeader};
use crate::sandbox::inside::InsideFault;
use crate::sandbox::{InsideReport, Sandbox};

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
    /// What it is kept from; without one it may do what the user may.
    pub sandbox: Option<Sandbox>,
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

impl JobEnd {
    /// Of a job that could not even be prepared.
    pub fn not_started(error: &io::Error) -> Self {
        Self {
            cause: Cause::NotStarted(NotStarted::other(error)),
            duration: Duration::ZERO,
            leftovers: 0,
            stdout: SinkReport::default(),
            stderr: SinkReport::default(),
        }
    }
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
    /// A limit of the sandbox struck: which one, in words.
    OverLimit(String),
    NotStarted(NotStarted),
}

/// Why there never was a process.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotStarted {
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Permission(String),
    #[error("its sandbox could not be set up: {0}")]
    Sandbox(String),
    #[error("{0}")]
    Other(String),
}

impl Job {
    /// The process and, in a sandbox, where its inner part reports.
    pub(super) fn spawn(&self) -> io::Result<(SessionLeader, Option<PipeReader>)> {
        let Some(sandbox) = &self.sandbox else {
            return Ok((self.plain(&self.program, &self.args).spawn()?, None));
        };
        let start = sandbox.start(&self.program, &self.args)?;
        let mut session = self.plain(&start.program, &start.args);
        let policy = &sandbox.policy;
        let folders = [("HOME", &policy.home), ("TMPDIR", &policy.tmp)];
        session.env.extend(folders.map(|(name, folder)| (name.into(), folder.into())));
        session.env.extend(policy.env.iter().cloned());
        session.files = start.files;
        Ok((session.spawn()?, Some(start.report)))
    }

    fn plain<'a>(&'a self, program: &'a OsStr, args: &'a [OsString]) -> SessionCommand<'a> {
        let mut env: BTreeMap<OsString, OsString> = self.env.iter().cloned().collect();
        env.insert(TAG.into(), self.tag.as_str().into());
        SessionCommand {
            program,
            args,
            env,
            cwd: &self.cwd,
            reads: !self.stdin.is_empty(),
            files: Vec::new(),
        }
    }
}

impl Cause {
    /// A limit or a request that struck outweighs how the leader then died.
    pub(super) fn of(forced: Option<Why>, status: Option<ExitStatus>) -> Self {
        match (forced, status) {
            (Some(Why::Silent), _) => Self::Silent,
            (Some(Why::TooLong), _) => Self::TooLong,
            (Some(Why::Stopped), _) => Self::Stopped,
            (Some(Why::OverLimit), _) => Self::OverLimit("it used too much".to_owned()),
            (None, Some(status)) => match (status.code(), process::killed_by(status)) {
                (Some(code), _) => Self::Exited(code),
                (None, signal) => Self::Signaled(signal.unwrap_or_default()),
            },
            // Somebody else took the status away: the end is certain, the way is not, so it is no success.
            (None, None) => Self::Signaled(0),
        }
    }
}

impl Cause {
    /// The same with what was seen inside the sandbox, where a signal is still one and not a number above 128.
    pub(super) fn seen_inside(self, report: Option<InsideReport>) -> Self {
        let Some(report) = report else { return self };
        match (self, report) {
            (Self::Exited(_), InsideReport { not_started: Some(fault), .. }) => {
                Self::NotStarted(NotStarted::inside(fault))
            }
            (Self::Exited(_), InsideReport { signal: Some(signal), .. }) => Self::Signaled(signal),
            (other, _) => other,
        }
    }

    /// The same, where the program around the sandbox ended before the part of us inside it began: an exit code of its own
    /// is not one of the program it was to start. `said` is what it printed on stderr.
    pub(super) fn seen_outside(self, report: Option<&InsideReport>, said: &[u8]) -> Self {
        if !matches!(self, Self::Exited(1..SIGNALED)) || report.is_some() {
            return self;
        }
        let said = String::from_utf8_lossy(said).trim().replace('\n', "; ");
        let why = if said.is_empty() { "nothing says why".to_owned() } else { said };
        Self::NotStarted(NotStarted::Sandbox(why))
    }
}

/// From this number on an exit code tells a signal. The part of us inside can be killed by the system when memory is short.
const SIGNALED: i32 = 128;

impl Cause {
    /// The same, where the signal of a file that grew too large (or a shell's word for it) has its reason.
    pub(super) fn with_reason(self, sandbox: Option<&Sandbox>) -> Self {
        let most = sandbox.and_then(|sandbox| sandbox.policy.limits.file_size);
        match (&self, most) {
            (Self::Signaled(XFSZ) | Self::Exited(SHELL_XFSZ), Some(most)) => {
                let most = most / 1024 / 1024;
                Self::OverLimit(format!("a file of it grew beyond {most} MB, which is sandbox.file_size"))
            }
            _ => self,
        }
    }
}

/// The number of the signal, and what a shell makes of it.
const XFSZ: i32 = signal_hook::consts::SIGXFSZ;
const SHELL_XFSZ: i32 = 128 + XFSZ;

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

    pub(super) fn inside(fault: InsideFault) -> Self {
        match fault {
            InsideFault::NotFound(text) => Self::NotFound(text),
            InsideFault::Permission(text) => Self::Permission(text),
            InsideFault::Sandbox(text) => Self::Sandbox(text),
            InsideFault::Other(text) => Self::Other(text),
        }
    }

    pub(super) fn other(error: &io::Error) -> Self {
        Self::Other(error.to_string())
    }
}
