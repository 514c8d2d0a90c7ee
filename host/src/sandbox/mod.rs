//! The sandbox: what the processes we start can't see, change, reach or use up.
//!
//! [`policy`] says what holds for a process, as plain data. [`mod@probe`] finds out once which means this machine has; each
//! means makes a start out of a policy: `bwrap` (Linux with user namespaces), `fallback` (Landlock and seccomp, which the
//! program puts on itself before it becomes the other one) and `seatbelt` (macOS). [`inside`] is the part of us that runs
//! within. [`proxy`] is the way out, where there is one.
//!
//! Deliberately absent: which process gets which policy. That is said where it is started.

mod bwrap;
mod fallback;
pub mod inside;
mod npm_cache;
pub mod policy;
pub mod probe;
pub mod proxy;
mod seatbelt;
mod selftest;
mod toolchains;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, PipeReader};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use crate::platform::confine;
use inside::InsideOrder;
pub use inside::InsideReport;
pub use npm_cache::NpmCache;
pub use policy::{
    ClientNeeds, LocalPort, PolicyMount, PrivateFolders, ProxyAccess, SandboxChoice, SandboxFacts,
    SandboxLimits, SandboxNetwork, SandboxPolicy,
};
pub use probe::{SandboxLevel, probe};

/// What this program does when it was started within a sandbox, or to put one on. `None` for every other command line.
///
/// # Errors
/// When the sandbox can't be put on: nothing was started then.
pub fn enter(arguments: &[OsString]) -> Option<io::Result<i32>> {
    match arguments {
        [_, name, order, program, args @ ..] if name == inside::ARGUMENT => {
            Some(order.to_str().map_or_else(|| Err(garbled()), |order| inside::run(order, program, args)))
        }
        [_, name, policy, order, program, args @ ..] if name == fallback::ARGUMENT => {
            let (Some(policy), Some(order)) = (policy.to_str(), order.to_str()) else {
                return Some(Err(garbled()));
            };
            Some(fallback::run(policy, order, program, args))
        }
        [_, name, attempts] if name == selftest::ARGUMENT => {
            Some(attempts.to_str().map_or_else(|| Err(garbled()), selftest::run))
        }
        _ => None,
    }
}

fn garbled() -> io::Error {
    io::ErrorKind::InvalidInput.into()
}

/// A policy together with the means to hold to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sandbox {
    pub level: SandboxLevel,
    pub policy: SandboxPolicy,
    /// This program, a part of which runs inside.
    pub me: PathBuf,
    /// Files and folders that are open when it starts and must not be open inside: the probe looks for them there.
    pub decoys: Vec<PathBuf>,
}

/// What to start in place of a program.
pub(crate) struct SandboxedStart {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// Open files that the program names in its arguments.
    pub(crate) files: Vec<OwnedFd>,
    /// Where the part of us inside says how it ended.
    pub(crate) report: PipeReader,
}

impl Sandbox {
    /// The start of a program under this policy.
    pub(crate) fn start(&self, program: &OsString, args: &[OsString]) -> io::Result<SandboxedStart> {
        self.policy.npm_cache.as_ref().map_or(Ok(()), |cache| cache.prepare(&self.policy.cwd))?;
        let (report, writer) = io::pipe()?;
        let writer = OwnedFd::from(writer);
        let order = InsideOrder {
            report: confine::number(&writer),
            limits: self.policy.limits,
            relay: self.policy.network.proxy().cloned(),
        };
        let (program, args, mut files) = match &self.level {
            SandboxLevel::Bubblewrap { program: bwrap } => {
                bwrap::start(bwrap, &self.me, &self.policy, &order, program, args)?
            }
            SandboxLevel::Landlock { .. } => {
                let args = fallback::arguments(&self.policy, &order, program, args)?;
                (self.me.clone().into_os_string(), args, Vec::new())
            }
            SandboxLevel::Seatbelt => seatbelt::start(&self.policy, program, args)?,
            SandboxLevel::Absent { why, .. } => return Err(io::Error::other(why.clone())),
        };
        files.push(writer);
        for decoy in &self.decoys {
            files.push(File::open(decoy)?.into());
        }
        Ok(SandboxedStart { program, args, files, report })
    }

    /// Whether the leader of the job is a program of ours or of the system that stands around the real one.
    pub(crate) fn has_outer_process(&self) -> bool {
        matches!(self.level, SandboxLevel::Bubblewrap { .. })
    }
}

impl SandboxNetwork {
    fn proxy(&self) -> Option<&ProxyAccess> {
        match self {
            Self::Proxy(proxy) => Some(proxy),
            Self::OwnLoopback | Self::Full => None,
        }
    }
}
