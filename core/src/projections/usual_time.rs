//! How long runs like this one usually take, from those that ended: said at the start, and counted against while a run
//! is shown. Only the time counts in which something was done; a run that waits for a person takes no time.
//!
//! Nothing is decided by it.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::event::{Entry, Event, Order, RunComplete, RunStart, SessionStart};
use crate::model::{RunStatus, Seq, counted};

/// Fewer runs say nothing.
const FEWEST: usize = 3;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
/// Up to here seconds are said.
const SHORT: u64 = 90 * SECOND;

/// Adds up the time in which an order was open that is not a question. The time between two sessions does not count.
#[derive(Debug, Default)]
pub struct WorkClock {
    open: BTreeSet<Seq>,
    last: u64,
    worked_ms: u64,
}

impl WorkClock {
    pub fn take(&mut self, entry: &Entry) {
        if entry.event.body::<SessionStart>().is_none() {
            self.worked_ms = self.worked_ms(entry.at);
        }
        self.last = self.last.max(entry.at);
        if let Event::Order(order) = &entry.event
            && !matches!(order, Order::QuestionAsked(_))
        {
            self.open.insert(entry.seq);
        }
        if let Some(order) = entry.event.answers() {
            self.open.remove(&order);
        }
        if entry.event.body::<RunComplete>().is_some() {
            self.open.clear();
        }
    }

    pub fn worked_ms(&self, now: u64) -> u64 {
        let since = if self.open.is_empty() { 0 } else { now.saturating_sub(self.last) };
        self.worked_ms.saturating_add(since)
    }
}

/// A run that came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastRun {
    pub request: Box<RunStart>,
    pub worked_ms: u64,
}

impl PastRun {
    /// `None` for a run that has not ended, or was cut short: that one took as long as nothing else.
    pub fn of(log: &[Entry]) -> Option<PastRun> {
        let request = log.iter().find_map(|entry| entry.event.body::<RunStart>())?;
        let complete = log.iter().rev().find_map(|entry| entry.event.body::<RunComplete>())?;
        let is_whole = match complete.status {
            RunStatus::Merged | RunStatus::AwaitingMerge | RunStatus::Reviewed | RunStatus::DryRun => true,
            RunStatus::AwaitingAnswer | RunStatus::Stopped | RunStatus::Failed | RunStatus::WiggumBreak => {
                false
            }
        };
        let mut clock = WorkClock::default();
        log.iter().for_each(|entry| clock.take(entry));
        is_whole.then(|| PastRun { request: Box::new(request.clone()), worked_ms: clock.worked_ms })
    }

    /// Asked for in the same way: strategy, workflow, team and agents.
    pub fn is_like(&self, other: &RunStart) -> bool {
        let of = |request: &RunStart| (request.strategy, request.workflow, request.dry_run);
        let (mine, theirs) = (&self.request.config.agents, &other.config.agents);
        of(&self.request) == of(other)
            && self.request.team == other.team
            && (&mine.default, &mine.by_archetype) == (&theirs.default, &theirs.by_archetype)
    }
}

/// What runs like one took, without the shortest and the longest quarter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct UsualTime {
    pub low_ms: u64,
    pub high_ms: u64,
    pub runs: usize,
}

impl UsualTime {
    pub fn of(request: &RunStart, past: &[PastRun]) -> Option<UsualTime> {
        let like = past.iter().filter(|run| run.is_like(request));
        UsualTime::from(like.map(|run| run.worked_ms).collect())
    }

    fn from(mut took: Vec<u64>) -> Option<UsualTime> {
        took.sort_unstable();
        let runs = took.len();
        let (low, high) = (took.get(runs / 4)?, took.get(runs.checked_sub(1 + runs / 4)?)?);
        (runs >= FEWEST).then_some(UsualTime { low_ms: *low, high_ms: *high, runs })
    }

    /// `6 to 9 min`.
    pub fn span(&self) -> String {
        let (unit, name) = if self.high_ms < SHORT { (SECOND, "s") } else { (MINUTE, "min") };
        let (low, high) = ((self.low_ms / unit).max(1), self.high_ms.div_ceil(unit).max(1));
        if low == high { format!("about {low} {name}") } else { format!("{low} to {high} {name}") }
    }

    /// `usually 6 to 9 min with these agents, from 5 runs`.
    pub fn words(&self) -> String {
        format!("usually {} with these agents, from {}", self.span(), counted(self.runs, "run"))
    }

    /// Behind the time so far: `of usually 6 to 9 min`, or `longer than usual (6 to 9 min)`.
    pub fn against(&self, worked_ms: u64) -> String {
        if worked_ms > self.high_ms {
            format!("longer than usual ({})", self.span())
        } else {
            format!("of usually {}", self.span())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u_16_a_usual_time_needs_three_runs_and_leaves_the_extremes_out() {
        let min = |n: u64| n * MINUTE;
        for (took, words) in [
            (vec![], None),
            (vec![min(6), min(7)], None),
            (vec![min(9), min(6), min(7)], Some("usually 6 to 9 min with these agents, from 3 runs")),
            (
                vec![min(1), min(6), min(7), min(9), min(90)],
                Some("usually 6 to 9 min with these agents, from 5 runs"),
            ),
            (vec![min(5); 4], Some("usually about 5 min with these agents, from 4 runs")),
            (vec![40, 50, 60], Some("usually about 1 s with these agents, from 3 runs")),
            (
                vec![20 * SECOND, 40 * SECOND, 61 * SECOND],
                Some("usually 20 to 61 s with these agents, from 3 runs"),
            ),
            (
                vec![20 * SECOND, 40 * SECOND, 91 * SECOND],
                Some("usually 1 to 2 min with these agents, from 3 runs"),
            ),
        ] {
            let usual = UsualTime::from(took.clone()).map(|usual| usual.words());
            assert_eq!(usual.as_deref(), words, "{took:?}");
        }
    }

    #[test]
    fn u_16_the_time_so_far_is_counted_against_it() {
        let usual = UsualTime { low_ms: 6 * MINUTE, high_ms: 9 * MINUTE, runs: 5 };
        assert_eq!(usual.against(MINUTE), "of usually 6 to 9 min");
        assert_eq!(usual.against(9 * MINUTE), "of usually 6 to 9 min");
        assert_eq!(usual.against(9 * MINUTE + 1), "longer than usual (6 to 9 min)");
    }
}
