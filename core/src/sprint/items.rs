//! The items of a sprint, with what decisions ask of them kept at hand: which are ours and how far they are, which may
//! begin, and which wait for something that will not come. A queue may be long, and a decision must cost what changed
//! and not the whole queue.
//!
//! The indices follow from the items alone. Everything that changes an item comes through here, so none is forgotten;
//! [`Items::reindexed`] makes them from the beginning, for tests. Debug builds count how often an item is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Bound, Index};

use super::fold::{ItemStage, ItemState};
use super::queue::{DependencyState, ItemStatus, Priority, QueueItem};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Items {
    known: BTreeMap<String, ItemState>,
    /// What is ours, by how far it is.
    stages: BTreeMap<ItemStage, BTreeSet<String>>,
    /// Which items wait for an item, by its name; also for one that is not there yet.
    waiters: BTreeMap<String, BTreeSet<String>>,
    /// How many dependencies an item waits for. Nothing for one without dependencies.
    dependencies: BTreeMap<String, OpenDependencies>,
    /// What could begin if there were room.
    ready: BTreeMap<Group, BTreeSet<QueuePosition>>,
    /// The first of each group.
    heads: BTreeSet<QueuePosition>,
    /// Not begun, and waiting for something that will not come.
    lost: BTreeSet<String>,
}

/// Items of one project that are large, or that are not.
type Group = (String, bool);

/// The order in which items begin: by priority, then as they were first seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueuePosition {
    pub(super) priority: Priority,
    number: usize,
    pub(super) item: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct OpenDependencies {
    incomplete: usize,
    lost: usize,
}

impl Items {
    pub fn get(&self, id: &str) -> Option<&ItemState> {
        count();
        self.known.get(id)
    }

    pub fn contains_key(&self, id: &str) -> bool {
        count();
        self.known.contains_key(id)
    }

    pub fn len(&self) -> usize {
        self.known.len()
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// All of them, by name. No decision may ask for this.
    pub fn values(&self) -> impl Iterator<Item = &ItemState> {
        self.known.values().inspect(|_| count())
    }

    /// What is ours at this stage, by name.
    pub fn at_stage(&self, stage: ItemStage) -> impl Iterator<Item = &ItemState> {
        self.stages.get(&stage).into_iter().flatten().filter_map(|id| self.get(id))
    }

    pub fn count_at(&self, stage: ItemStage) -> usize {
        self.stages.get(&stage).map_or(0, BTreeSet::len)
    }

    pub fn ours(&self) -> impl Iterator<Item = &ItemState> {
        self.stages.values().flatten().filter_map(|id| self.get(id))
    }

    pub fn count_ours(&self) -> usize {
        self.stages.values().map(BTreeSet::len).sum()
    }

    /// The first item of each group that could begin, in their order.
    pub(super) fn heads(&self) -> impl Iterator<Item = &QueuePosition> {
        self.heads.iter()
    }

    /// What comes after an item in its group.
    pub(super) fn after(&self, place: &QueuePosition) -> Option<&QueuePosition> {
        let group = self.ready.get(&group(&self.known.get(&place.item)?.item))?;
        group.range((Bound::Excluded(place), Bound::Unbounded)).next()
    }

    /// Everything that waits, at whatever distance, for something that will not come; with what it waits for.
    pub(super) fn downstream_of_lost(&self) -> Vec<(&str, String)> {
        let mut found: BTreeMap<&str, String> = BTreeMap::new();
        let mut next: Vec<&str> = Vec::new();
        for id in &self.lost {
            let Some(known) = self.get(id) else { continue };
            let status = |on: &str| self.get(on).map(|known| known.item.status);
            if let DependencyState::Lost(on) = known.item.standing(status) {
                found.insert(id, on);
                next.push(id);
            }
        }
        while let Some(on) = next.pop() {
            for id in self.waiters.get(on).into_iter().flatten() {
                let waits = self.get(id).is_some_and(|known| is_unbegun(known.item.status));
                if waits && !found.contains_key(id.as_str()) {
                    found.insert(id, on.to_owned());
                    next.push(id);
                }
            }
        }
        found.into_iter().collect()
    }

    /// An item as the queue has it now. What is ours is ours to change.
    pub(super) fn see(&mut self, item: &QueueItem) {
        let before = match self.known.get(&item.id) {
            Some(known) if known.stand.is_ours() => return,
            Some(known) => Some(known.item.status),
            None => None,
        };
        self.leave_indices(&item.id);
        self.forget_dependencies(&item.id);
        // Before it has its new status: one that waits for itself hears of that below.
        self.note_dependencies(item);
        let number = self.known.len();
        match self.known.get_mut(&item.id) {
            Some(known) => known.item = item.clone(),
            None => drop(self.known.insert(item.id.clone(), ItemState::seen(item, number))),
        }
        self.enter_indices(&item.id);
        self.pass_on(&item.id, before, Some(item.status));
    }

    /// Changes what is known about an item. What it waits for and its place in the order stay.
    pub(super) fn update(&mut self, id: &str, change: impl FnOnce(&mut ItemState)) {
        let Some(before) = self.known.get(id).map(|known| known.item.status) else { return };
        self.leave_indices(id);
        if let Some(known) = self.known.get_mut(id) {
            change(known);
        }
        self.enter_indices(id);
        let after = self.known.get(id).map(|known| known.item.status);
        self.pass_on(id, Some(before), after);
    }

    /// The same items with all indices made from the beginning.
    pub fn reindexed(&self) -> Items {
        let mut all: Vec<&ItemState> = self.known.values().collect();
        all.sort_by_key(|known| known.number);
        let mut items = Items::default();
        for known in all {
            items.see(&known.item);
            items.update(&known.item.id, |seen| *seen = known.clone());
        }
        items
    }

    fn is_ready(&self, known: &ItemState) -> bool {
        let open = self.dependencies.get(&known.item.id).copied().unwrap_or_default();
        known.stand == ItemStage::Waiting && known.item.status == ItemStatus::Pending && open.incomplete == 0
    }

    fn is_lost(&self, known: &ItemState) -> bool {
        let open = self.dependencies.get(&known.item.id).copied().unwrap_or_default();
        is_unbegun(known.item.status) && open.lost > 0
    }

    fn enter_indices(&mut self, id: &str) {
        count();
        let Some(known) = self.known.get(id) else { return };
        let (place, group) = (place(known), group(&known.item));
        let (is_ready, is_lost, stage) = (self.is_ready(known), self.is_lost(known), known.stand);
        if stage.is_ours() {
            self.stages.entry(stage).or_default().insert(id.to_owned());
        }
        if is_lost {
            self.lost.insert(id.to_owned());
        }
        if is_ready {
            self.change_group(&group, |ready| ready.insert(place));
        }
    }

    fn leave_indices(&mut self, id: &str) {
        count();
        let Some(known) = self.known.get(id) else { return };
        let (place, group) = (place(known), group(&known.item));
        let (is_ready, is_lost, stage) = (self.is_ready(known), self.is_lost(known), known.stand);
        if stage.is_ours()
            && let Some(here) = self.stages.get_mut(&stage)
        {
            here.remove(id);
            if here.is_empty() {
                self.stages.remove(&stage);
            }
        }
        if is_lost {
            self.lost.remove(id);
        }
        if is_ready {
            self.change_group(&group, |ready| ready.remove(&place));
        }
    }

    fn change_group(&mut self, group: &Group, change: impl FnOnce(&mut BTreeSet<QueuePosition>) -> bool) {
        let ready = self.ready.entry(group.clone()).or_default();
        let before = ready.first().cloned();
        change(ready);
        let after = ready.first().cloned();
        if after.is_none() {
            self.ready.remove(group);
        }
        if before != after {
            if let Some(before) = &before {
                self.heads.remove(before);
            }
            self.heads.extend(after);
        }
    }

    fn note_dependencies(&mut self, item: &QueueItem) {
        let on: BTreeSet<&String> = item.depends_on.iter().collect();
        if on.is_empty() {
            return;
        }
        let mut open = OpenDependencies::default();
        for on in on {
            let status = self.get(on).map(|known| known.item.status);
            open.incomplete += usize::from(status != Some(ItemStatus::Completed));
            open.lost += usize::from(status.is_some_and(ItemStatus::is_lost));
            self.waiters.entry(on.clone()).or_default().insert(item.id.clone());
        }
        self.dependencies.insert(item.id.clone(), open);
    }

    fn forget_dependencies(&mut self, id: &str) {
        self.dependencies.remove(id);
        let Some(known) = self.known.get(id) else { return };
        for on in &known.item.depends_on {
            if let Some(waiters) = self.waiters.get_mut(on) {
                waiters.remove(id);
                if waiters.is_empty() {
                    self.waiters.remove(on);
                }
            }
        }
    }

    /// An item has another status: what waits for it may be ready, or lost.
    fn pass_on(&mut self, id: &str, before: Option<ItemStatus>, after: Option<ItemStatus>) {
        let incomplete = |status: Option<ItemStatus>| usize::from(status != Some(ItemStatus::Completed));
        let lost = |status: Option<ItemStatus>| usize::from(status.is_some_and(ItemStatus::is_lost));
        if (incomplete(before), lost(before)) == (incomplete(after), lost(after)) {
            return;
        }
        let waiters: Vec<String> = self.waiters.get(id).into_iter().flatten().cloned().collect();
        for waiter in waiters {
            self.leave_indices(&waiter);
            if let Some(open) = self.dependencies.get_mut(&waiter) {
                open.incomplete = (open.incomplete + incomplete(after)).saturating_sub(incomplete(before));
                open.lost = (open.lost + lost(after)).saturating_sub(lost(before));
            }
            self.enter_indices(&waiter);
        }
    }
}

impl Index<&str> for Items {
    type Output = ItemState;

    /// For tests, which know what is there.
    fn index(&self, id: &str) -> &ItemState {
        &self.known[id]
    }
}

fn place(known: &ItemState) -> QueuePosition {
    QueuePosition { priority: known.item.priority, number: known.number, item: known.item.id.clone() }
}

fn group(item: &QueueItem) -> Group {
    (item.project.clone(), item.estimate.is_large())
}

fn is_unbegun(status: ItemStatus) -> bool {
    matches!(status, ItemStatus::Pending | ItemStatus::Proposed)
}

#[cfg(debug_assertions)]
thread_local! {
    static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn count() {
    #[cfg(debug_assertions)]
    LOOKS.with(|looks| looks.set(looks.get() + 1));
}

/// How often this thread has looked at an item of any sprint, for tests; nothing where it is not counted.
pub fn looks() -> Option<u64> {
    #[cfg(debug_assertions)]
    return Some(LOOKS.with(std::cell::Cell::get));
    #[cfg(not(debug_assertions))]
    None
}
