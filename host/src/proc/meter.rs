//! What a sandboxed job has used up, looked at from outside a few times a second, because the kernel keeps no limit over
//! several processes without a control group.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::platform::machine;
use crate::platform::process::Pid;
use crate::platform::table::{self, Process};
use crate::sandbox::SandboxPolicy;

/// How often. A look costs a read per process of the machine.
const PERIOD: Duration = Duration::from_millis(500);

/// A walk through all folders is dearer, and only made when the disk has got that much fuller.
const WALKS: Duration = Duration::from_secs(10);

/// A walk ends here; whoever makes more files than that is over the limit.
const MOST_FILES: usize = 5_000_000;

pub(super) struct Meter {
    limits: crate::sandbox::SandboxLimits,
    writable: Vec<PathBuf>,
    leader: Pid,
    free_before: Option<FreeDisk>,
    next: Instant,
    next_walk: Instant,
}

impl Meter {
    pub(super) fn new(policy: &SandboxPolicy, leader: Pid, now: Instant) -> Self {
        let writable: Vec<PathBuf> =
            policy.writable.iter().chain([&policy.home, &policy.tmp]).cloned().collect();
        let free_before = writable.first().and_then(|place| free(place));
        Self { limits: policy.limits, writable, leader, free_before, next: now + PERIOD, next_walk: now }
    }

    /// When to look again.
    pub(super) fn deadline(&self) -> Instant {
        self.next
    }

    /// Which limit the job is over, in words; `None` also when it is not time to look.
    pub(super) fn look(&mut self, now: Instant) -> Option<String> {
        if now < self.next {
            return None;
        }
        self.next = now + PERIOD;
        self.processes().or_else(|| self.disk(now))
    }

    fn processes(&self) -> Option<String> {
        if self.limits.memory.is_none() && self.limits.processes.is_none() {
            return None;
        }
        let family = table::families(&table::all(), &[Process::read(self.leader)?]);
        if let Some(most) = self.limits.processes.filter(|most| family.len() as u64 >= *most) {
            return Some(format!("it had {} processes; sandbox.processes is {most}", family.len()));
        }
        let most = self.limits.memory?;
        let pids: Vec<Pid> = family.iter().map(|process| process.pid).collect();
        let used = machine::memory_beyond(most, &pids)?;
        Some(format!("it used {} MB of memory; sandbox.memory is {}", mega(used), mega(most)))
    }

    fn disk(&mut self, now: Instant) -> Option<String> {
        let (most, before) = (self.limits.disk?, self.free_before?);
        let free = free(self.writable.first()?)?;
        let bytes = before.bytes.saturating_sub(free.bytes);
        let files = before.files.saturating_sub(free.files).saturating_mul(machine::FILE_AT_LEAST);
        if bytes.max(files) <= most || now < self.next_walk {
            return None;
        }
        self.next_walk = now + WALKS;
        let used = machine::space_of(&self.writable, MOST_FILES);
        (used > most).then(|| format!("its folders hold {} MB; sandbox.disk is {}", mega(used), mega(most)))
    }
}

/// What is left of a file system. Where the number of files has no limit, none is ever missing.
#[derive(Clone, Copy)]
struct FreeDisk {
    bytes: u64,
    files: u64,
}

fn free(place: &Path) -> Option<FreeDisk> {
    let bytes = machine::free_space(place)?;
    Some(FreeDisk { bytes, files: machine::free_files(place).unwrap_or(0) })
}

fn mega(bytes: u64) -> u64 {
    bytes / 1024 / 1024
}
