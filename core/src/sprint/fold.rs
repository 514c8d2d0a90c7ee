//! The state of a sprint, from its log. It remembers and never decides.

use std::collections::{BTreeMap, BTreeSet};

use super::breaker::{self, SprintBreaker};
use super::budget::Spending;
use super::event::{BatchLanding, RunEnd, SprintEntry, SprintEvent, SprintStop, UnfinishedRun};
use super::items::Items;
use super::policy::{Room, SprintPolicy};
use super::queue::{ItemStatus, QueueItem};
use super::{decide, standing};
use crate::event::Verb;
use crate::model::{Money, RunStatus, Seq, Share};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sprint {
    pub lines: u64,
    pub policy: SprintPolicy,
    pub autonomous: bool,
    pub begun: bool,
    /// The number of sessions.
    pub fence: u64,
    pub tag: String,
    pub items: Items,
    /// What was ordered and not answered yet.
    pub open: BTreeMap<Seq, SprintEvent>,
    /// Tasks that failed one after the other.
    pub streak: u32,
    pub spent: Spending,
    /// Provider accounts that turned a run away.
    pub breakers: BTreeMap<String, SprintBreaker>,
    /// The accounts the last run of a project worked with.
    pub accounts: BTreeMap<String, BTreeSet<String>>,
    pub first: Option<Share>,
    pub last: Option<Share>,
    pub since: SinceCheckpoint,
    /// A checkpoint was reached, and the user was not asked since.
    pub at_checkpoint: bool,
    /// What runs and landings took altogether.
    pub work_ms: u64,
    /// The budget warning was given.
    pub warned: bool,
    pub broke: Option<(SprintStop, bool, String)>,
    pub end: Option<(SprintStop, String)>,
    /// The items a person approved, until they are claimed.
    pub agreed: Vec<String>,
    /// Items that were red together and are not taken apart yet; the last are parts of those before.
    pub reds: Vec<Vec<String>>,
    /// What two runs both change, by the names of their items in order.
    pub overlaps: BTreeMap<(String, String), Vec<String>>,
    /// Items that overlapped once and never run side by side again.
    pub kept_apart: BTreeSet<(String, String)>,
}

/// Since the last checkpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SinceCheckpoint {
    pub tasks: u32,
    pub work_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemState {
    pub item: QueueItem,
    /// In the order in which it was first seen.
    pub number: usize,
    pub stand: ItemStage,
    pub fence: Option<u64>,
    pub attempt: u32,
    /// What its last run may spend.
    pub budget: Option<Money>,
    /// The result of its last run.
    pub end: Option<RunEnd>,
    /// The run of an earlier sprint with which it begins.
    pub left: Option<UnfinishedRun>,
    /// It lands by itself: it did not go together with others.
    pub alone: bool,
}

/// Where an item is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ItemStage {
    /// Not ours yet.
    Waiting,
    Claiming,
    /// Ours, and about to run.
    Claimed,
    Running,
    /// Its run waits for a provider.
    Parked,
    /// It ended, and what follows is to be decided.
    Ended,
    Landing,
    /// It landed, or not.
    Landed,
    Settling,
    /// Its result is in the queue.
    Settled,
    /// Owned by another sprint, or given back; this sprint skips it.
    Aside,
}

impl ItemStage {
    /// As it is shown to people.
    pub fn name(self) -> &'static str {
        match self {
            ItemStage::Waiting => "waiting",
            ItemStage::Claiming | ItemStage::Claimed => "starting",
            ItemStage::Running => "running",
            ItemStage::Parked => "parked",
            ItemStage::Ended => "ready to land",
            ItemStage::Landing => "landing",
            ItemStage::Landed | ItemStage::Settling => "settling",
            ItemStage::Settled => "settled",
            ItemStage::Aside => "set aside",
        }
    }

    /// From the claim to the last word in the queue: its project is busy with it.
    pub fn is_ours(self) -> bool {
        !matches!(self, ItemStage::Waiting | ItemStage::Settled | ItemStage::Aside)
    }
}

impl Sprint {
    pub fn replay<'a>(log: impl IntoIterator<Item = &'a SprintEntry>) -> Sprint {
        let mut sprint = Sprint::default();
        log.into_iter().for_each(|entry| sprint.apply(entry));
        sprint
    }

    /// Takes in one report. The entry is the caller's to write down.
    pub fn hear(&mut self, at: u64, report: SprintEvent) -> SprintEntry {
        debug_assert_eq!(report.verb(), Verb::Reported);
        self.write(at, report)
    }

    /// Draws every conclusion there is.
    pub fn settle(&mut self, at: u64, room: Room) -> Vec<SprintEntry> {
        let mut entries = Vec::new();
        // Every round moves an item or ends the sprint, so this is far more than can follow at once.
        let bound = 20 * self.items.len() + 100;
        for _ in 0..bound {
            let next = decide::decide(self, room);
            if next.is_empty() {
                return entries;
            }
            entries.extend(next.into_iter().map(|event| self.write(at, event)));
        }
        debug_assert!(false, "a sprint that never comes to rest");
        entries
    }

    fn write(&mut self, at: u64, event: SprintEvent) -> SprintEntry {
        let entry = SprintEntry { seq: self.lines + 1, at, event };
        self.apply(&entry);
        entry
    }

    pub fn apply(&mut self, entry: &SprintEntry) {
        self.lines = entry.seq;
        let answered = entry.event.answers().and_then(|seq| self.open.remove(&seq));
        if entry.event.verb() == Verb::Ordered {
            self.open.insert(entry.seq, entry.event.clone());
        }
        match &entry.event {
            SprintEvent::Start { policy, autonomous, .. } => {
                (self.policy, self.autonomous, self.begun) = (policy.clone(), *autonomous, true);
            }
            SprintEvent::Session { fence, tag } => (self.fence, self.tag) = (*fence, tag.clone()),
            SprintEvent::Seen { item } => self.items.see(item),
            SprintEvent::Ask { .. } | SprintEvent::Interrupted { .. } => {}
            SprintEvent::Answered { yes, .. } => self.answered(answered.as_ref(), *yes),
            SprintEvent::Claim { item } => {
                self.agreed.retain(|agreed| agreed != item);
                self.set_stage(item, ItemStage::Claiming);
            }
            SprintEvent::Claimed { fence, left, .. } => {
                self.claimed(answered.as_ref(), *fence, left.as_ref());
            }
            SprintEvent::Run { item, attempt, budget_usd, .. } => {
                self.set_stage(item, ItemStage::Running);
                self.items.update(item, |known| {
                    (known.attempt, known.budget, known.alone) = (*attempt, *budget_usd, false);
                    // It was not resumed.
                    known.left = known.left.take().filter(|_| known.end.is_some());
                });
                // From here on it changes other files, from another commit on.
                self.overlaps.retain(|(a, b), _| a != item && b != item);
                self.reds.retain(|red| !red.contains(item));
                let project = self.items.get(item).map_or("", |known| &known.item.project);
                let tried: Vec<String> = breaker::tried_by(self, project).cloned().collect();
                self.note_trial(item, &tried);
            }
            SprintEvent::Resume { item, .. } => {
                self.set_stage(item, ItemStage::Running);
                let tried = match self.items.get(item) {
                    Some(ItemState { end: Some(end), .. }) => {
                        end.busy.as_ref().map_or(Vec::new(), |busy| busy.accounts.clone())
                    }
                    Some(known) => breaker::tried_by(self, &known.item.project).cloned().collect(),
                    None => Vec::new(),
                };
                self.items.update(item, |known| {
                    if let (None, Some(left)) = (&known.end, &known.left) {
                        known.budget = left.promised();
                    }
                });
                self.note_trial(item, &tried);
            }
            SprintEvent::Ended { end, .. } => {
                let parked = self.is_parked(end, entry.at);
                self.ended(answered.as_ref(), end, if parked { ItemStage::Parked } else { ItemStage::Ended });
                if let Some(item) = answered.as_ref().and_then(SprintEvent::item) {
                    self.note_accounts(item, end, entry.at);
                }
            }
            SprintEvent::Due { account } => self.note_due(account),
            SprintEvent::Served { account } => {
                self.breakers.remove(account);
            }
            SprintEvent::Land { item, .. } => self.set_stage(item, ItemStage::Landing),
            SprintEvent::Landed { end, .. } => self.ended(answered.as_ref(), end, ItemStage::Landed),
            SprintEvent::BatchLand { candidates, .. } => {
                candidates.iter().for_each(|one| self.set_stage(&one.item, ItemStage::Landing));
            }
            SprintEvent::BatchLanded { came, .. } => self.batch_landed(answered.as_ref(), came),
            SprintEvent::Overlap { a, b, files } => self.overlapped(a, b, files),
            SprintEvent::Settle { item, status, .. } => {
                self.set_stage(item, ItemStage::Settling);
                self.items.update(item, |known| known.item.status = *status);
            }
            SprintEvent::Settled { .. } => self.settled(answered.as_ref()),
            SprintEvent::Warning { .. } => self.warned = true,
            SprintEvent::Checkpoint { .. } => {
                (self.since, self.at_checkpoint) = (SinceCheckpoint::default(), true);
            }
            SprintEvent::Break { why, hard, detail } => self.broke = Some((*why, *hard, detail.clone())),
            SprintEvent::End { why, detail } => self.end = Some((*why, detail.clone())),
        }
    }

    fn answered(&mut self, order: Option<&SprintEvent>, yes: bool) {
        if let Some(SprintEvent::Ask { items }) = order {
            self.at_checkpoint = false;
            if yes {
                self.agreed.clone_from(items);
            } else {
                self.broke = Some((SprintStop::Declined, false, "you declined a batch".to_owned()));
            }
        }
    }

    fn claimed(&mut self, order: Option<&SprintEvent>, fence: Option<u64>, left: Option<&UnfinishedRun>) {
        let Some(SprintEvent::Claim { item }) = order else { return };
        self.set_stage(item, if fence.is_some() { ItemStage::Claimed } else { ItemStage::Aside });
        self.items.update(item, |known| (known.fence, known.left) = (fence, left.cloned()));
    }

    fn ended(&mut self, order: Option<&SprintEvent>, end: &RunEnd, stand: ItemStage) {
        let Some(
            SprintEvent::Run { item, .. } | SprintEvent::Resume { item, .. } | SprintEvent::Land { item, .. },
        ) = order
        else {
            return;
        };
        self.worked(end.took_ms);
        self.record_end(item, end, stand);
    }

    /// Items neither landed nor refused wait as before.
    fn batch_landed(&mut self, order: Option<&SprintEvent>, came: &BatchLanding) {
        let Some(SprintEvent::BatchLand { candidates, .. }) = order else { return };
        self.worked(came.took_ms);
        candidates.iter().for_each(|one| self.set_stage(&one.item, ItemStage::Ended));
        for one in &came.ends {
            self.record_end(&one.item, &one.end, ItemStage::Landed);
        }
        for item in &came.alone {
            self.items.update(item, |known| known.alone = true);
            self.reds.retain(|red| !red.contains(item));
        }
        if !came.red.is_empty() {
            self.reds.push(came.red.clone());
        }
    }

    fn overlapped(&mut self, a: &str, b: &str, files: &[String]) {
        let pair = pair(a, b);
        if files.is_empty() {
            self.overlaps.remove(&pair);
        } else {
            self.kept_apart.insert(pair.clone());
            self.overlaps.insert(pair, files.to_vec());
        }
    }

    fn worked(&mut self, took_ms: u64) {
        self.work_ms = self.work_ms.saturating_add(took_ms);
        self.since.work_ms = self.since.work_ms.saturating_add(took_ms);
    }

    fn record_end(&mut self, item: &str, end: &RunEnd, stand: ItemStage) {
        let landed = stand == ItemStage::Landed && end.status == Some(RunStatus::Merged);
        if landed {
            // What landed was part of what is red, and what is left of it still is.
            self.reds.iter_mut().for_each(|red| red.retain(|other| other != item));
            self.reds.retain(|red| !red.is_empty());
        } else {
            self.reds.retain(|red| !red.iter().any(|other| other == item));
        }
        let before = self.items.get(item).and_then(|known| known.left.as_ref());
        let before = before.filter(|left| left.run_id == end.run_id).map_or(0, |left| left.spent_usd.0);
        let project = self.items.get(item).map_or("", |known| &known.item.project);
        self.spent.note(&end.run_id, project, Money(end.cost_usd.0.saturating_sub(before)));
        self.set_stage(item, stand);
        self.items.update(item, |known| known.end = Some(end.clone()));
    }

    fn settled(&mut self, order: Option<&SprintEvent>) {
        let Some(SprintEvent::Settle { item, status, fence, .. }) = order else { return };
        let aside = *status == ItemStatus::Pending;
        self.set_stage(item, if aside { ItemStage::Aside } else { ItemStage::Settled });
        let Some(known) = self.items.get(item).filter(|_| fence.is_some()) else { return };
        let quality = standing::quality(*status, known.end.as_ref());
        match status {
            ItemStatus::Completed => self.streak = 0,
            ItemStatus::Failed => self.streak += 1,
            ItemStatus::Proposed
            | ItemStatus::Pending
            | ItemStatus::Running
            | ItemStatus::Blocked
            | ItemStatus::Cancelled => {
                return;
            }
        }
        self.since.tasks += 1;
        self.first = self.first.or(Some(quality));
        self.last = Some(quality);
    }

    fn set_stage(&mut self, item: &str, stand: ItemStage) {
        self.items.update(item, |known| known.stand = stand);
    }

    pub fn spent(&self) -> Money {
        self.spent.total()
    }

    /// Whether two of a project change the same, as far as is known.
    pub fn overlap(&self, a: &str, b: &str) -> bool {
        self.overlaps.contains_key(&pair(a, b))
    }

    /// The items that change what this one changes.
    pub fn overlapping<'a>(&'a self, item: &str) -> impl Iterator<Item = &'a ItemState> + use<'a> {
        let others = |(a, b): &'a (String, String)| match item {
            item if a == item => Some(b),
            item if b == item => Some(a),
            _ => None,
        };
        let others: Vec<&String> = self.overlaps.keys().filter_map(others).collect();
        others.into_iter().filter_map(|other| self.items.get(other))
    }

    pub fn is_kept_apart(&self, a: &str, b: &str) -> bool {
        self.kept_apart.contains(&pair(a, b))
    }

    /// What is ours now.
    pub fn ours(&self) -> impl Iterator<Item = &ItemState> {
        self.items.ours()
    }
}

impl ItemState {
    /// Just seen in the queue.
    pub(super) fn seen(item: &QueueItem, number: usize) -> ItemState {
        let stand = ItemStage::Waiting;
        let (fence, attempt, budget, end, left, alone) = (None, 0, None, None, None, false);
        ItemState { item: item.clone(), number, stand, fence, attempt, budget, end, left, alone }
    }

    /// How many runs it has had here.
    pub fn runs(&self) -> u32 {
        self.attempt + u32::from(self.left.is_some())
    }

    /// The name of its last run, which is that of an earlier sprint if it began with one.
    pub fn run_id(&self, sprint_id: &str) -> String {
        match &self.left {
            Some(left) if self.attempt == 0 => left.run_id.clone(),
            Some(_) | None => run_id(sprint_id, &self.item.id, self.attempt),
        }
    }
}

/// The name of a run follows from its sprint, its item and which attempt it is.
pub fn run_id(sprint_id: &str, item: &str, attempt: u32) -> String {
    format!("{sprint_id}.{item}.{attempt}")
}

fn pair(a: &str, b: &str) -> (String, String) {
    let (a, b) = if a <= b { (a, b) } else { (b, a) };
    (a.to_owned(), b.to_owned())
}
