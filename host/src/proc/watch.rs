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
pub struct Watch {
    own: Arc<Bells>,
    /// The watch this one is a branch of.
    above: Option<Arc<Bells>>,
}

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
        Self { own: Arc::new(Bells::new()), above: None }
    }

    /// A watch for some of the jobs: they end when it asks for it, and when this one does. Of a branch only the watch
    /// it was taken from is heard, not the ones above that.
    pub fn branch(&self) -> Self {
        Self { own: Arc::new(Bells::new()), above: Some(Arc::clone(&self.own)) }
    }

    /// Whether the end was asked for by this watch itself.
    pub fn asks_itself(&self) -> bool {
        self.own.asked().is_some()
    }

    /// Asks the jobs to end: SIGTERM, the grace, then SIGKILL.
    pub fn stop(&self) {
        self.own.raise(1, self.own.soon.as_ref());
    }

    /// Kills the jobs without asking.
    pub fn kill_now(&self) {
        self.own.raise(2, self.own.now.as_ref());
    }

    /// Whether the jobs were asked to end.
    pub fn is_stopping(&self) -> bool {
        self.asked().is_some()
    }

    /// Whether the jobs are killed.
    pub fn is_killing(&self) -> bool {
        self.asked() == Some(Asked::Now)
    }

    pub(super) fn asked(&self) -> Option<Asked> {
        self.bells().filter_map(Bells::asked).max()
    }

    fn bells(&self) -> impl Iterator<Item = &Bells> {
        [Some(&self.own), self.above.as_ref()].into_iter().flatten().map(AsRef::as_ref)
    }

    /// What becomes readable when more is asked than was already `seen`.
    pub(super) fn ears(&self, seen: Option<Asked>) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.bells().flat_map(move |bells| {
            let soon = bells.soon.as_ref().filter(|_| seen.is_none());
            let now = bells.now.as_ref().filter(|_| seen < Some(Asked::Now));
            soon.into_iter().chain(now).map(|bell| bell.ear.as_fd())
        })
    }

    pub(super) fn is_deaf(&self) -> bool {
        self.bells().any(|bells| bells.soon.is_none() || bells.now.is_none())
    }
}

impl Bells {
    fn new() -> Self {
        Self { level: AtomicU8::new(0), soon: Bell::cast(), now: Bell::cast() }
    }

    fn asked(&self) -> Option<Asked> {
        match self.level.load(Ordering::Acquire) {
            0 => None,
            1 => Some(Asked::Soon),
            _ => Some(Asked::Now),
        }
    }

    fn raise(&self, level: u8, bell: Option<&Bell>) {
        if self.level.fetch_max(level, Ordering::AcqRel) < level {
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
