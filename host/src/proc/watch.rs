//! A handle by which any thread ends a running job at once.
//!
//! Each request has a pipe that gets one byte and is never read: it stays readable, so any number of jobs may
//! share one watch and each of them wakes.

use std::io::{PipeReader, PipeWriter, Write, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Graver compares greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    Soon,
    Now,
}

/// Ends the jobs that were given it. Clones are the same watch.
#[derive(Debug, Clone)]
pub struct Watch(Arc<Bells>);

#[derive(Debug)]
struct Bells {
    level: AtomicU8,
    soon: Option<Bell>,
    now: Option<Bell>,
}

#[derive(Debug)]
struct Bell {
    ear: PipeReader,
    clapper: PipeWriter,
}

impl Watch {
    /// Without file descriptors to spare the watch still works; jobs then look at it a few times a second.
    pub fn new() -> Self {
        Self(Arc::new(Bells { level: AtomicU8::new(0), soon: Bell::cast(), now: Bell::cast() }))
    }

    /// Asks the jobs to end: SIGTERM, the grace, then SIGKILL.
    pub fn stop(&self) {
        self.raise(1, self.0.soon.as_ref());
    }

    /// Kills the jobs without asking.
    pub fn kill_now(&self) {
        self.raise(2, self.0.now.as_ref());
    }

    /// Whether the jobs were asked to end.
    pub fn is_stopping(&self) -> bool {
        self.asked().is_some()
    }

    pub(super) fn asked(&self) -> Option<Asked> {
        match self.0.level.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Asked::Soon),
            _ => Some(Asked::Now),
        }
    }

    /// What becomes readable when more is asked than was already `seen`.
    pub(super) fn ears(&self, seen: Option<Asked>) -> impl Iterator<Item = BorrowedFd<'_>> {
        let soon = self.0.soon.as_ref().filter(|_| seen.is_none());
        let now = self.0.now.as_ref().filter(|_| seen < Some(Asked::Now));
        soon.into_iter().chain(now).map(|bell| bell.ear.as_fd())
    }

    pub(super) fn is_deaf(&self) -> bool {
        self.0.soon.is_none() || self.0.now.is_none()
    }

    fn raise(&self, level: u8, bell: Option<&Bell>) {
        if self.0.level.fetch_max(level, Ordering::AcqRel) < level {
            // One byte into an empty pipe can neither block nor fail; a watch without a bell is polled.
            let _ = bell.map(|bell| (&bell.clapper).write(&[1]));
        }
    }
}

impl Default for Watch {
    fn default() -> Self {
        Self::new()
    }
}

impl Bell {
    fn cast() -> Option<Self> {
        pipe().ok().map(|(ear, clapper)| Self { ear, clapper })
    }
}
