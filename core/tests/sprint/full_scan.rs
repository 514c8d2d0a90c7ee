//! What may begin, found by looking at every item: what the indices have to come to.

use std::collections::BTreeSet;

use archeflow_core::sprint::policy::Room;
use archeflow_core::sprint::queue::{DependencyState, ItemStatus, Priority, QueueItem};
use archeflow_core::sprint::{ItemStage, ItemState, Sprint, breaker, budget};

pub(crate) fn next(sprint: &Sprint, room: Room) -> Vec<&QueueItem> {
    let policy = &sprint.policy;
    let ours: Vec<&ItemState> = sprint.items.values().filter(|known| known.stand.is_ours()).collect();
    let parked = ours.iter().filter(|known| known.stand == ItemStage::Parked).count();
    let mut busy: Vec<&QueueItem> = ours.iter().map(|known| &known.item).collect();
    let status = |on: &str| sprint.items.get(on).map(|known| known.item.status);
    let mut wanted: Vec<&ItemState> = sprint
        .items
        .values()
        .filter(|known| known.stand == ItemStage::Waiting && known.item.status == ItemStatus::Pending)
        .filter(|known| policy.low_priority || known.item.priority < Priority::P3)
        .filter(|known| known.item.standing(status) == DependencyState::Ready)
        .collect();
    wanted.sort_by_key(|known| (known.item.priority, known.number));
    let mut trials: BTreeSet<&String> = BTreeSet::new();
    let mut picked = Vec::new();
    for item in wanted.into_iter().map(|known| &known.item) {
        let under_way = busy.len() - parked;
        let is_full = under_way >= room.slots.unwrap_or(policy.slots) as usize;
        if is_full || under_way > 0 && !policy.admits(room) {
            break;
        }
        let large = busy.iter().filter(|other| other.estimate.is_large()).count();
        let is_too_large = item.estimate.is_large() && large >= policy.large as usize;
        let is_apart = |other: &&QueueItem| {
            other.project != item.project
                || other.is_apart_from(item) && !sprint.is_kept_apart(&item.id, &other.id)
        };
        let may_pay = !budget::is_short(sprint, &item.project, room);
        let is_held = breaker::is_held(sprint, &item.project, &trials);
        if may_pay && !is_held && !is_too_large && busy.iter().all(is_apart) {
            trials.extend(breaker::tried_by(sprint, &item.project));
            busy.push(item);
            picked.push(item);
        }
    }
    picked
}
