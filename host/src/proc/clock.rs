//! When to ask, when to kill, when to stop listening. Facts and times come in, one action comes out.
//!
//! Times are monotonic: neither a changed wall clock nor a suspended machine makes a limit strike. A limit is
//! judged by the time taken *before* looking at the pipes, so output that waited while we were stopped counts.

use std::time::{Duration, Instant};

use super::job::JobLimits;
use super::watch::Asked;

/// How long a leader may take to die of SIGKILL before we give it up (it hangs in the kernel).
const DYING: Duration = Duration::from_secs(10);

/// Why we ended the job ourselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    Silent,
    TooLong,
    Stopped,
    OverLimit,
}

/// What one look at the pipes showed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PipeState {
    /// A byte arrived.
    pub(super) heard: bool,
    /// The leader is gone.
    pub(super) exited: bool,
    /// Both output pipes are at their end.
    pub(super) closed: bool,
    pub(super) asked: Option<Asked>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Act {
    Wait,
    Ask,
    Kill,
    Finish,
}

#[derive(Debug)]
pub(super) struct Clock {
    limits: JobLimits,
    begun: Instant,
    heard: Instant,
    phase: Phase,
    forced: Option<Why>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Running,
    Asked { since: Instant },
    Killed { since: Instant },
    Draining { since: Instant },
}

impl Clock {
    pub(super) fn start(now: Instant, limits: JobLimits) -> Self {
        Self { limits, begun: now, heard: now, phase: Phase::Running, forced: None }
    }

    /// Restarts its limits now, while the job is running and nothing was asked of it.
    pub(super) fn restart(&mut self, now: Instant) {
        if matches!(self.phase, Phase::Running) {
            (self.begun, self.heard) = (now, now);
        }
    }

    pub(super) fn forced(&self) -> Option<Why> {
        self.forced
    }

    /// When to look again even if nothing happens.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Running => earlier(self.total(), self.silence()),
            Phase::Asked { since } => since.checked_add(self.limits.grace),
            Phase::Killed { since } => since.checked_add(DYING),
            Phase::Draining { since } => since.checked_add(self.limits.drain),
        }
    }

    /// `before` and `after` are the times around the look that showed `seen`.
    pub(super) fn step(&mut self, before: Instant, after: Instant, seen: PipeState) -> Act {
        if seen.heard {
            self.heard = after;
        }
        if seen.exited && !matches!(self.phase, Phase::Draining { .. }) {
            self.phase = Phase::Draining { since: after };
        }
        let now = seen.asked == Some(Asked::Now);
        let due = now || reached(self.deadline(), before);
        match self.phase {
            Phase::Running => self.judge(before, after, seen.asked),
            Phase::Asked { .. } if due => self.kill(after),
            Phase::Killed { since } if reached(since.checked_add(DYING), before) => Act::Finish,
            Phase::Draining { .. } if due || seen.closed => Act::Finish,
            Phase::Asked { .. } | Phase::Killed { .. } | Phase::Draining { .. } => Act::Wait,
        }
    }

    fn judge(&mut self, before: Instant, after: Instant, asked: Option<Asked>) -> Act {
        let why = if asked.is_some() {
            Why::Stopped
        } else if reached(self.total(), before) {
            Why::TooLong
        } else if reached(self.silence(), before) {
            Why::Silent
        } else {
            return Act::Wait;
        };
        self.forced = Some(why);
        if asked == Some(Asked::Now) {
            return self.kill(after);
        }
        self.phase = Phase::Asked { since: after };
        Act::Ask
    }

    /// A limit that is no time was reached: it is ended at once, for it would only use up more.
    pub(super) fn over_limit(&mut self, now: Instant) -> Act {
        match self.phase {
            Phase::Running => {
                self.forced = Some(Why::OverLimit);
                self.kill(now)
            }
            Phase::Asked { .. } | Phase::Killed { .. } | Phase::Draining { .. } => Act::Wait,
        }
    }

    fn kill(&mut self, now: Instant) -> Act {
        self.phase = Phase::Killed { since: now };
        Act::Kill
    }

    fn total(&self) -> Option<Instant> {
        self.begun.checked_add(self.limits.total)
    }

    fn silence(&self) -> Option<Instant> {
        self.heard.checked_add(self.limits.silence)
    }
}

fn reached(deadline: Option<Instant>, now: Instant) -> bool {
    deadline.is_some_and(|at| at <= now)
}

fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn limits() -> JobLimits {
        JobLimits { silence: 100 * MS, total: 1000 * MS, grace: 50 * MS, drain: 20 * MS }
    }

    /// Plays rows of (milliseconds before, milliseconds after, what was seen, expected action).
    fn check(rows: &[(u32, u32, PipeState, Act)], forced: Option<Why>) {
        let zero = Instant::now();
        let mut clock = Clock::start(zero, limits());
        for (row, &(before, after, seen, act)) in rows.iter().enumerate() {
            assert_eq!(clock.step(zero + before * MS, zero + after * MS, seen), act, "row {row}");
        }
        assert_eq!(clock.forced(), forced);
    }

    const QUIET: PipeState = PipeState { heard: false, exited: false, closed: false, asked: None };
    const HEARD: PipeState = PipeState { heard: true, ..QUIET };
    const EXITED: PipeState = PipeState { exited: true, ..QUIET };
    const CLOSED: PipeState = PipeState { closed: true, ..EXITED };
    const STOP: PipeState = PipeState { asked: Some(Asked::Soon), ..QUIET };
    const NOW: PipeState = PipeState { asked: Some(Asked::Now), ..QUIET };

    #[test]
    fn silence_is_asked_then_killed_then_given_up() {
        check(
            &[
                (0, 100, QUIET, Act::Wait),
                (100, 100, QUIET, Act::Ask),
                (120, 150, HEARD, Act::Wait),
                (150, 150, HEARD, Act::Kill),
                (151, 151, QUIET, Act::Wait),
                (10_150, 10_150, QUIET, Act::Finish),
            ],
            Some(Why::Silent),
        );
    }

    #[test]
    fn m_h11_output_that_waited_while_we_slept_counts() {
        check(&[(0, 90, QUIET, Act::Wait), (800, 800, HEARD, Act::Wait), (899, 900, QUIET, Act::Wait)], None);
    }

    #[test]
    fn m_c10_a_trickle_meets_the_total_limit() {
        check(&[(900, 990, HEARD, Act::Wait), (1000, 1000, HEARD, Act::Ask)], Some(Why::TooLong));
    }

    #[test]
    fn an_exit_is_drained_for_a_bounded_time() {
        check(&[(0, 5, EXITED, Act::Wait), (24, 24, HEARD, Act::Wait), (25, 25, HEARD, Act::Finish)], None);
        check(&[(0, 5, CLOSED, Act::Finish)], None);
        check(&[(0, 5, EXITED, Act::Wait), (6, 6, NOW, Act::Finish)], None);
    }

    #[test]
    fn stop_asks_first_and_now_does_not() {
        check(&[(0, 5, STOP, Act::Ask), (6, 7, STOP, Act::Wait), (8, 8, NOW, Act::Kill)], Some(Why::Stopped));
        check(
            &[(0, 5, NOW, Act::Kill), (6, 6, NOW, Act::Wait), (7, 7, CLOSED, Act::Finish)],
            Some(Why::Stopped),
        );
    }
}
