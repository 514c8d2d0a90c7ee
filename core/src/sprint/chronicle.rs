//! What people ask of a sprint afterwards, or while it runs: when, how long, with which result, and why. Made from the
//! same log as the sprint itself; nothing is decided by it.

use std::collections::BTreeMap;

use super::event::{RunEnd, SprintEntry, SprintEvent, SprintStop, UnfinishedRun};
use super::fold::run_id;
use super::queue::ItemStatus;
use crate::model::{Money, Seq, Share};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chronicle {
    pub began: u64,
    /// When the last line was written.
    pub last: u64,
    pub sessions: Vec<SprintSession>,
    /// In the order in which they began.
    pub runs: Vec<RunRecord>,
    /// What was last noted about an item when it was settled.
    pub notes: BTreeMap<String, String>,
    pub checkpoints: Vec<Checkpoint>,
    pub breaks: Vec<SprintBreak>,
    orders: BTreeMap<Seq, SprintEvent>,
    /// What was found with an item that was claimed.
    left: BTreeMap<String, UnfinishedRun>,
    autonomous: bool,
}

/// One life of the sprint's process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SprintSession {
    pub number: u64,
    pub autonomous: bool,
    pub began: u64,
    pub last: u64,
    /// What became of items in it.
    pub settled: Vec<(String, ItemStatus)>,
    /// By run, its latest known cost in this session, beyond its cost before.
    pub spent: BTreeMap<String, Money>,
    pub over: SprintSessionEnd,
}

/// How a session ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SprintSessionEnd {
    /// No end is recorded: it is running, or was killed.
    #[default]
    Open,
    Interrupted(i32),
    Ended(SprintStop, String),
}

/// A run of the sprint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRecord {
    pub item: String,
    /// 0 for one that an earlier sprint left.
    pub attempt: u32,
    pub left: Option<UnfinishedRun>,
    pub budget: Option<Money>,
    pub began: u64,
    /// When it ended, or landed, for the last time.
    pub ended: Option<u64>,
    pub end: Option<RunEnd>,
    pub took_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    pub at: u64,
    pub tasks: u32,
    pub work_ms: u64,
    pub spent: Money,
    pub first: Share,
    pub last: Share,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SprintBreak {
    pub at: u64,
    pub why: SprintStop,
    pub hard: bool,
    pub detail: String,
}

impl RunRecord {
    pub fn run_id(&self, sprint_id: &str) -> String {
        let end = self.end.as_ref().map(|end| &end.run_id);
        let known = end.or(self.left.as_ref().map(|left| &left.run_id));
        known.cloned().unwrap_or_else(|| run_id(sprint_id, &self.item, self.attempt))
    }
}

impl Chronicle {
    pub fn of<'a>(log: impl IntoIterator<Item = &'a SprintEntry>) -> Chronicle {
        let mut chronicle = Chronicle::default();
        log.into_iter().for_each(|entry| chronicle.apply(entry));
        chronicle
    }

    /// The last run of an item.
    pub fn run_of(&self, item: &str) -> Option<&RunRecord> {
        self.runs.iter().rev().find(|told| told.item == item)
    }

    pub fn apply(&mut self, entry: &SprintEntry) {
        let (at, event) = (entry.at, &entry.event);
        self.last = at;
        if self.began == 0 {
            self.began = at;
        }
        let order = event.answers().and_then(|seq| self.orders.remove(&seq));
        match event {
            SprintEvent::Start { autonomous, .. } => self.autonomous = *autonomous,
            SprintEvent::Session { fence, .. } => {
                let session = SprintSession {
                    number: *fence,
                    autonomous: self.autonomous,
                    began: at,
                    ..SprintSession::default()
                };
                self.sessions.push(session);
            }
            SprintEvent::Run { item, attempt, budget_usd, .. } => {
                self.begin(item, *attempt, None, *budget_usd, at);
                self.orders.insert(entry.seq, event.clone());
            }
            SprintEvent::Claim { .. } | SprintEvent::Land { .. } => {
                self.orders.insert(entry.seq, event.clone());
            }
            SprintEvent::Claimed { left: Some(left), .. } => {
                if let Some(SprintEvent::Claim { item }) = order {
                    self.left.insert(item, left.clone());
                }
            }
            SprintEvent::Resume { item, .. } => {
                self.orders.insert(entry.seq, event.clone());
                if let Some(left) = self.left.remove(item).filter(|_| self.run_of(item).is_none()) {
                    let promised = left.promised();
                    self.begin(item, 0, Some(left), promised, at);
                }
            }
            SprintEvent::Ended { end, .. } | SprintEvent::Landed { end, .. } => {
                self.ended(order.as_ref(), end, at);
            }
            SprintEvent::Settle { item, status, note, .. } => {
                self.notes.insert(item.clone(), note.clone());
                self.session(|session| session.settled.push((item.clone(), *status)));
            }
            SprintEvent::Checkpoint { tasks, work_ms, spent_usd, first, last } => {
                let (tasks, work_ms, spent, first, last) = (*tasks, *work_ms, *spent_usd, *first, *last);
                self.checkpoints.push(Checkpoint { at, tasks, work_ms, spent, first, last });
            }
            SprintEvent::Break { why, hard, detail } => {
                self.breaks.push(SprintBreak { at, why: *why, hard: *hard, detail: detail.clone() });
            }
            SprintEvent::Interrupted { signal } => {
                self.session(|session| session.over = SprintSessionEnd::Interrupted(*signal));
            }
            SprintEvent::End { why, detail } => {
                self.session(|session| session.over = SprintSessionEnd::Ended(*why, detail.clone()));
            }
            // The sprint itself has these.
            SprintEvent::Seen { .. }
            | SprintEvent::Ask { .. }
            | SprintEvent::Answered { .. }
            | SprintEvent::Claimed { left: None, .. }
            | SprintEvent::BatchLand { .. }
            | SprintEvent::BatchLanded { .. }
            | SprintEvent::Overlap { .. }
            | SprintEvent::Settled { .. }
            | SprintEvent::Due { .. }
            | SprintEvent::Served { .. }
            | SprintEvent::Warning { .. } => {}
        }
        self.session(|session| session.last = at);
    }

    fn begin(
        &mut self,
        item: &str,
        attempt: u32,
        left: Option<UnfinishedRun>,
        budget: Option<Money>,
        began: u64,
    ) {
        let item = item.to_owned();
        self.runs.push(RunRecord { item, attempt, left, budget, began, ended: None, end: None, took_ms: 0 });
    }

    fn ended(&mut self, order: Option<&SprintEvent>, end: &RunEnd, at: u64) {
        let Some(
            SprintEvent::Run { item, .. } | SprintEvent::Resume { item, .. } | SprintEvent::Land { item, .. },
        ) = order
        else {
            return;
        };
        let before = self.runs.iter().find_map(|told| {
            let known = told.end.as_ref().map(|known| (&known.run_id, known.cost_usd));
            let known = known.or(told.left.as_ref().map(|left| (&left.run_id, left.spent_usd)));
            known.filter(|(run_id, _)| **run_id == end.run_id).map(|(_, cost)| cost)
        });
        if let Some(told) = self.runs.iter_mut().rev().find(|told| told.item == *item) {
            told.took_ms = told.took_ms.saturating_add(end.took_ms);
            (told.ended, told.end) = (Some(at), Some(end.clone()));
        }
        let more = end.cost_usd.0.saturating_sub(before.unwrap_or_default().0);
        self.session(|session| session.spent.entry(end.run_id.clone()).or_default().0 += more);
    }

    fn session(&mut self, change: impl FnOnce(&mut SprintSession)) {
        if let Some(session) = self.sessions.last_mut() {
            change(session);
        }
    }
}
