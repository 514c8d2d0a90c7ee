//! The part of this program that runs within the sandbox: it sets limits, starts the program, relays to the proxy, and
//! reports how the program ended.
//!
//! In a process namespace it is the first process: it buries orphans, and everything ends when it does.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::policy::{ProxyAccess, SandboxLimits};
use super::proxy;
use crate::platform::children;
use crate::platform::confine::{self, Limited};
use crate::platform::inherited;
use crate::platform::process::{self, Pid, Signal, getpid};
use crate::platform::table;

/// The hidden subcommand.
pub const ARGUMENT: &str = "__inside";

/// So long what the program left behind may take to end by itself, such as a `tee` it wrote to.
const FAREWELL: Duration = Duration::from_millis(250);

/// What of a report is read. It is written in one piece, and a pipe hands such a piece over whole.
const MOST: usize = 4096;

/// What the part inside is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideOrder {
    /// The number of the open file that the report goes to.
    pub report: i32,
    pub limits: SandboxLimits,
    /// The proxy, as it is found within.
    pub relay: Option<ProxyAccess>,
}

/// How the program ended, as nothing outside can see it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InsideReport {
    pub exit: Option<i32>,
    pub signal: Option<i32>,
    /// Processes that were still alive.
    pub leftovers: usize,
    /// Why the program was never started.
    pub not_started: Option<InsideFault>,
}

/// Why a program could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum InsideFault {
    NotFound(String),
    Permission(String),
    /// The last steps of its sandbox failed.
    Sandbox(String),
    Other(String),
}

impl InsideOrder {
    pub(super) fn text(&self) -> io::Result<String> {
        serde_json::to_string(self).map_err(io::Error::other)
    }
}

impl InsideReport {
    /// What was written, as far as it can be read without waiting for more.
    pub(crate) fn read(mut from: impl Read) -> Option<Self> {
        let mut text = vec![0; MOST];
        let length = from.read(&mut text).ok()?;
        serde_json::from_slice(text.get(..length)?).ok()
    }
}

impl InsideFault {
    pub(super) fn of(program: &std::ffi::OsStr, error: &io::Error) -> Self {
        let text = format!("{}: {error}", program.display());
        if error.kind() == io::ErrorKind::NotFound {
            Self::NotFound(text)
        } else if error.kind() == io::ErrorKind::PermissionDenied {
            Self::Permission(text)
        } else {
            Self::Other(text)
        }
    }
}

/// Runs a program as the first process of a namespace, and returns the exit code to end with.
///
/// # Errors
/// When the order can't be read or the limits can't be set: nothing was started then.
pub fn run(order: &str, program: &OsString, args: &[OsString]) -> io::Result<i32> {
    let order: InsideOrder = serde_json::from_str(order).map_err(io::Error::other)?;
    // Nothing has been opened here yet. Bubblewrap hands on whatever it got.
    inherited::close_all_but(order.report);
    let mut report = File::from(confine::take_over(order.report)?);
    reported(&mut report, |report| first_process(&order, report, program, args))
}

/// What fails before the program is started is reported too.
pub(super) fn reported(
    report: &mut File,
    start: impl FnOnce(&mut File) -> io::Result<i32>,
) -> io::Result<i32> {
    start(report).inspect_err(|error| {
        let not_started = Some(InsideFault::Sandbox(error.to_string()));
        tell(report, &InsideReport { not_started, ..InsideReport::default() });
    })
}

fn first_process(
    order: &InsideOrder,
    report: &mut File,
    program: &OsString,
    args: &[OsString],
) -> io::Result<i32> {
    confine::hide_memory();
    let mut command = Command::new(program);
    command.args(args);
    if let Some(access) = &order.relay {
        let port = proxy::relay(access)?;
        command.envs(proxy::variables(port, None));
    }
    set_limits(&order.limits)?;
    // Before the program starts: what comes in between is kept.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGCHLD])?;
    process::own_session(&mut command);
    let child = match children::spawn(&mut command) {
        Ok(child) => child,
        Err(error) => {
            let not_started = Some(InsideFault::of(program, &error));
            tell(report, &InsideReport { not_started, ..InsideReport::default() });
            return Ok(127);
        }
    };
    let program = Pid::from_child(&child);
    let mut left = confine::bury(program);
    let end = loop {
        if let Some(end) = left.ended {
            break end;
        }
        if !left.any {
            // The end is certain, the way is not, so it is no success.
            tell(report, &InsideReport { signal: Some(0), ..InsideReport::default() });
            return Ok(128);
        }
        for signal in signals.wait() {
            pass_on(signal, program);
        }
        left = confine::bury(program);
    };
    let begun = Instant::now();
    while left.any && begun.elapsed() < FAREWELL {
        thread::sleep(Duration::from_millis(1));
        left = confine::bury(program);
    }
    // Every process of the namespace descends from this one.
    let leftovers = if left.any { other_processes() } else { 0 };
    tell(report, &InsideReport { exit: end.code, signal: end.signal, leftovers, not_started: None });
    Ok(end.code.unwrap_or_else(|| 128 + end.signal.unwrap_or_default()))
}

fn other_processes() -> usize {
    let me = getpid();
    table::all().iter().filter(|process| !process.dead && process.pid != me).count()
}

pub(super) fn tell(report: &mut File, what: &InsideReport) {
    let _ = serde_json::to_vec(what).map(|text| report.write_all(&text));
}

/// Sets those limits that the kernel keeps. Processes are counted by the program as well, which names the limit when it ends
/// them; for an ordinary user the kernel would come first with a "cannot fork" of whatever runs, so it allows more.
pub(super) fn set_limits(limits: &SandboxLimits) -> io::Result<()> {
    let rows = [
        (Limited::Memory, limits.memory),
        (Limited::Processes, limits.processes.map(|most| most.saturating_mul(2))),
        (Limited::FileSize, limits.file_size),
        (Limited::OpenFiles, limits.open_files),
    ];
    for (what, most) in rows {
        if let Some(most) = most {
            confine::limit(what, most)?;
        }
    }
    Ok(())
}

/// Requests to end reach the first process only, which no signal ends; it passes them on.
fn pass_on(signal: i32, program: Pid) {
    let signal = match signal {
        SIGINT => Signal::INT,
        SIGHUP => Signal::HUP,
        SIGTERM => Signal::TERM,
        _ => return,
    };
    let _ = process::kill_process_group(program, signal);
    // A stopped process can't act on it.
    let _ = process::kill_process_group(program, Signal::CONT);
}
