//! How long a worker waits for a server or a remote that does not answer.

use std::cell::Cell;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Notices, ShiftStop};
use crate::bus::BusError;

/// While the server is away, agents that are running continue. After this time they are called in.
const LIMIT: Duration = Duration::from_secs(30 * 60);
/// The same when the worker is to stop.
const LIMIT_STOPPING: Duration = Duration::from_secs(20);
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(5);
/// How often a remote is asked.
const GIT_TRIES: u32 = 4;
/// The wait is printed from this attempt on: the first one may fail for a moment only.
const SHOWN_AFTER: u32 = 2;

pub(super) struct Patience {
    stop: Arc<ShiftStop>,
    since: Cell<Option<Instant>>,
    notices: Arc<Notices>,
    run: String,
}

impl Patience {
    pub(super) fn new(stop: Arc<ShiftStop>, notices: Arc<Notices>, run: &str) -> Patience {
        Patience { stop, since: Cell::new(None), notices, run: run.to_owned() }
    }

    /// Waits before the next attempt; `false` if it has been tried for too long.
    pub(super) fn wait(&self, tries: u32, why: &str) -> bool {
        if tries == SHOWN_AFTER {
            self.notices.add(format!("{} waits: {why}", self.run));
        }
        let now = Instant::now();
        let since = if tries <= 1 { now } else { self.since.get().unwrap_or(now) };
        self.since.set(Some(since));
        let (pause, begun) = ((FIRST * tries.min(100)).min(LONGEST), Instant::now());
        while begun.elapsed() < pause {
            thread::sleep(FIRST.min(pause.saturating_sub(begun.elapsed())));
            if self.stop.is_asked() && since.elapsed() > LIMIT_STOPPING {
                return false;
            }
        }
        since.elapsed() < LIMIT
    }

    /// Asks the server again while there is no answer.
    pub(super) fn ask<T>(&self, mut once: impl FnMut() -> Result<T, BusError>) -> Result<T, BusError> {
        let mut tries = 0;
        loop {
            tries += 1;
            match once() {
                Err(why @ (BusError::NoAnswer(_) | BusError::Full(_)))
                    if self.wait(tries, &why.to_string()) => {}
                end => return end,
            }
        }
    }

    /// Asks a remote again, a few times.
    pub(super) fn git<T>(&self, mut once: impl FnMut() -> Result<T, String>) -> Result<T, String> {
        let mut tries = 0;
        loop {
            tries += 1;
            match once() {
                Err(why) if tries < GIT_TRIES && self.wait(tries, &why) => {}
                end => return end,
            }
        }
    }
}
