//! What should happen now in a sprint: settle what ended, land what is ready, stop if a bound is reached, begin what
//! may begin, and end when nothing is left.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{SprintEvent, SprintStop};
use super::fold::{ItemStage, ItemState, Sprint};
use super::landing;
use super::policy::Room;
use super::queue::{DependencyState, Graph, ItemStatus, Priority, QueueItem};
use super::standing::{self, Follows};
use super::{breaker, budget};
use crate::model::{Money, Share};

pub fn decide(sprint: &Sprint, room: Room) -> Vec<SprintEvent> {
    if !sprint.begun || sprint.end.is_some() {
        return Vec::new();
    }
    let stages: [fn(&Sprint) -> Vec<SprintEvent>; 6] =
        [follow_up, landing::land, block, boundaries, resume, run];
    if let Some(events) = stages.iter().map(|stage| stage(sprint)).find(|events| !events.is_empty()) {
        return events;
    }
    let begins = begin(sprint, room);
    if begins.is_empty() { end(sprint) } else { begins }
}

/// What ended is settled, run again, or left for the landing.
fn follow_up(sprint: &Sprint) -> Vec<SprintEvent> {
    let over =
        sprint.items.values().filter(|known| matches!(known.stand, ItemStage::Ended | ItemStage::Landed));
    over.filter_map(|known| match follows(sprint, known)? {
        Follows::Land => None,
        Follows::Rerun => run_if_possible(sprint, known),
        Follows::Settle(status, note) => {
            let (item, fence) = (known.item.id.clone(), known.fence);
            let run_id = if status == ItemStatus::Pending { standing::goes_on(known) } else { None };
            Some(SprintEvent::Settle { item, fence, status, note, run_id })
        }
    })
    .take(1)
    .collect()
}

pub(super) fn follows(sprint: &Sprint, known: &ItemState) -> Option<Follows> {
    let reruns =
        if sprint.broke.is_some() { 0 } else { (sprint.policy.reruns + 1).saturating_sub(known.attempt) };
    let follows = standing::after(known.end.as_ref()?, known.stand == ItemStage::Landed, reruns);
    let in_vain = follows == Follows::Land && reruns > 0 && landing::is_overtaken(sprint, known);
    let follows = if in_vain { Follows::Rerun } else { follows };
    // It starts again when no run it overlapped with before is running.
    let not_yet = follows == Follows::Rerun && landing::is_in_the_way(sprint, known);
    (!not_yet).then_some(follows)
}

/// An item whose dependency was lost is settled as blocked, without a run.
fn block(sprint: &Sprint) -> Vec<SprintEvent> {
    if !sprint.items.values().any(|known| known.item.status.is_lost()) {
        return Vec::new();
    }
    let graph = Graph::of(sprint.items.values().map(|known| &known.item));
    let lost = graph.downstream_of_lost().into_iter().filter(|(id, _)| {
        sprint.items.get(*id).is_some_and(|known| matches!(known.stand, ItemStage::Waiting))
    });
    lost.map(|(id, on)| SprintEvent::Settle {
        item: id.to_owned(),
        fence: None,
        status: ItemStatus::Blocked,
        note: format!("waits for {on}, which can't be completed"),
        run_id: None,
    })
    .take(1)
    .collect()
}

/// AF-150, AF-151, AF-153.
fn boundaries(sprint: &Sprint) -> Vec<SprintEvent> {
    if sprint.broke.is_some() {
        return Vec::new();
    }
    let (policy, spent) = (&sprint.policy, sprint.spent());
    let breaks = |why, hard, detail: String| vec![SprintEvent::Break { why, hard, detail }];
    if sprint.streak >= policy.failures {
        return breaks(
            SprintStop::TaskFailures,
            true,
            format!("{} tasks failed one after the other", sprint.streak),
        );
    }
    if policy.is_spent(spent, 100) {
        return breaks(SprintStop::Budget, true, format!("{} are spent", spent.shown()));
    }
    if policy.is_spent(spent, policy.last_budget_percent) {
        return breaks(
            SprintStop::Budget,
            false,
            format!("{} are spent, nearly all there is", spent.shown()),
        );
    }
    if !sprint.warned && policy.is_spent(spent, policy.warn_budget_percent) {
        let percent = budget::whole(sprint).percent().unwrap_or(100);
        return vec![SprintEvent::Warning { spent_usd: spent, percent }];
    }
    checkpoint(sprint, spent)
}

fn checkpoint(sprint: &Sprint, spent: Money) -> Vec<SprintEvent> {
    let (policy, since) = (&sprint.policy, sprint.since);
    let due = since.tasks >= policy.checkpoint_tasks || since.work_ms >= policy.checkpoint_minutes * 60_000;
    if !due {
        return Vec::new();
    }
    let (first, last) = (sprint.first.unwrap_or(Share::ONE), sprint.last.unwrap_or(Share::ONE));
    let mut events = vec![SprintEvent::Checkpoint {
        tasks: since.tasks,
        work_ms: since.work_ms,
        spent_usd: spent,
        first,
        last,
    }];
    if policy.is_spent(spent, policy.checkpoint_budget_percent) {
        let detail = format!("{} are spent at a checkpoint", spent.shown());
        events.push(SprintEvent::Break { why: SprintStop::Budget, hard: false, detail });
    } else if u64::from(last.0) * 100 < u64::from(first.0) * policy.quality_percent {
        let detail = "the last task went worse than the first".to_owned();
        events.push(SprintEvent::Break { why: SprintStop::Quality, hard: false, detail });
    }
    events
}

/// A run that waited for a provider is resumed; it is neither restarted nor a failure.
fn resume(sprint: &Sprint) -> Vec<SprintEvent> {
    let mut parked = in_order(sprint, |known| known.stand == ItemStage::Parked).into_iter();
    let event = parked.find_map(|known| {
        let run_id = &known.end.as_ref()?.run_id;
        match &sprint.broke {
            Some(_) => Some(give_back(known, format!("waits for a provider; archeflow resume {run_id}"))),
            None if breaker::may_go_on(sprint, known) => {
                Some(SprintEvent::Resume { item: known.item.id.clone(), run_id: run_id.clone() })
            }
            None => None,
        }
    });
    event.into_iter().collect()
}

/// What is ours begins. After a break it is given back instead.
fn run(sprint: &Sprint) -> Vec<SprintEvent> {
    let mut claimed = sprint.items.values().filter(|known| known.stand == ItemStage::Claimed);
    let event = claimed.find_map(|known| match &sprint.broke {
        None => run_if_possible(sprint, known),
        Some((why, _, _)) => {
            Some(give_back(known, format!("given back: the sprint stopped ({})", why.name())))
        }
    });
    event.into_iter().collect()
}

/// It waits while its provider is busy, and while the money it needs is promised to others. If neither will come in a
/// reasonable time, it is given back.
fn run_if_possible(sprint: &Sprint, known: &ItemState) -> Option<SprintEvent> {
    let project = &known.item.project;
    if breaker::is_held(sprint, project, &BTreeSet::new()) {
        let finds_out = |other: &ItemState| matches!(other.stand, ItemStage::Running | ItemStage::Parked);
        let hope = sprint.items.values().any(finds_out);
        return (!hope).then(|| give_back(known, "given back: its provider is busy".to_owned()));
    }
    if let Some(left) =
        known.left.as_ref().filter(|left| known.end.is_none() && budget::bears(sprint, project, left))
    {
        return Some(SprintEvent::Resume { item: known.item.id.clone(), run_id: left.run_id.clone() });
    }
    if !budget::is_short(sprint, project) {
        return Some(run_of(sprint, known, known.attempt + 1));
    }
    let may_come_back = budget::whole(sprint).promised > Money::ZERO;
    (!may_come_back).then(|| give_back(known, "given back: no money is left for its project".to_owned()))
}

fn give_back(known: &ItemState, note: String) -> SprintEvent {
    let (item, fence, status) = (known.item.id.clone(), known.fence, ItemStatus::Pending);
    SprintEvent::Settle { item, fence, status, note, run_id: standing::goes_on(known) }
}

fn run_of(sprint: &Sprint, known: &ItemState, attempt: u32) -> SprintEvent {
    SprintEvent::Run {
        item: known.item.id.clone(),
        attempt,
        budget_usd: budget::allowance(sprint, &known.item.project),
        workflow: budget::smaller(sprint, &known.item),
    }
}

/// Claims, or the question whether to make them. A person is asked about a batch when the last one is over.
fn begin(sprint: &Sprint, room: Room) -> Vec<SprintEvent> {
    let asked = sprint.open.values().any(|order| matches!(order, SprintEvent::Ask { .. }));
    if sprint.broke.is_some() || asked {
        return Vec::new();
    }
    let claim = |item: String| SprintEvent::Claim { item };
    if sprint.autonomous {
        return next(sprint, room).into_iter().map(|item| claim(item.id.clone())).collect();
    }
    if !sprint.agreed.is_empty() {
        // A yes is for all of them, and they begin as the machine bears it.
        let alone = usize::from(sprint.ours().next().is_none());
        let many = if sprint.policy.admits(room) { sprint.agreed.len() } else { alone };
        return sprint.agreed.iter().take(many).cloned().map(claim).collect();
    }
    if sprint.ours().any(|known| known.stand != ItemStage::Parked) {
        return Vec::new();
    }
    let items: Vec<String> = next(sprint, Room::PLENTY).into_iter().map(|item| item.id.clone()).collect();
    if items.is_empty() { Vec::new() } else { vec![SprintEvent::Ask { items }] }
}

/// Whether items could begin if the machine were less busy (U-15).
pub fn waits_for_machine(sprint: &Sprint, room: Room) -> bool {
    if sprint.broke.is_some() || sprint.policy.admits(room) {
        return false;
    }
    let agreed = !sprint.autonomous && !sprint.agreed.is_empty();
    agreed || sprint.autonomous && next(sprint, Room::PLENTY).len() > next(sprint, room).len()
}

/// The items that may begin now: ready, in the order of their priority, within the limits and what the machine bears.
pub fn next(sprint: &Sprint, room: Room) -> Vec<&QueueItem> {
    let policy = &sprint.policy;
    let mut busy: Vec<&QueueItem> = sprint.ours().map(|known| &known.item).collect();
    // A run that waits for a provider blocks its project, but takes no slot.
    let parked = sprint.ours().filter(|known| known.stand == ItemStage::Parked).count();
    let is_full = |busy: &Vec<&QueueItem>| {
        busy.len() - parked >= policy.slots as usize || (busy.len() > parked && !policy.admits(room))
    };
    if is_full(&busy) {
        return Vec::new();
    }
    // A queue may be long: what holds for many items is found out once.
    let allowances = budget::Allowances::of(sprint);
    let is_short = |project: &str| {
        allowances.as_ref().is_some_and(|allowances| allowances.of_project(project) == Money::ZERO)
    };
    let status = |on: &str| sprint.items.get(on).map(|known| known.item.status);
    let wanted = |known: &ItemState| {
        known.stand == ItemStage::Waiting
            && known.item.status == ItemStatus::Pending
            && (policy.low_priority || known.item.priority < Priority::P3)
            && known.item.standing(status) == DependencyState::Ready
            && !is_short(&known.item.project)
    };
    let waited_for = breaker::parked_accounts(sprint);
    let mut trials: BTreeSet<&String> = BTreeSet::new();
    let mut held: BTreeMap<&str, bool> = BTreeMap::new();
    let mut large = busy.iter().filter(|other| other.estimate.is_large()).count();
    let mut picked = Vec::new();
    for known in in_order(sprint, wanted) {
        let item = &known.item;
        let held_here = || breaker::is_held_beside(sprint, &item.project, &trials, &waited_for);
        let is_held = *held.entry(&item.project).or_insert_with(held_here);
        let is_too_large = item.estimate.is_large() && large >= policy.large as usize;
        let fits = !is_held && !is_too_large && busy.iter().all(|other| goes_beside(sprint, item, other));
        if fits {
            trials.extend(breaker::tried_by(sprint, &item.project));
            held.clear();
            large += usize::from(item.estimate.is_large());
            busy.push(item);
            picked.push(item);
            if is_full(&busy) {
                break;
            }
        }
    }
    picked
}

/// Only what shares no files runs side by side in a project, by what was declared and by what was seen.
fn goes_beside(sprint: &Sprint, item: &QueueItem, other: &QueueItem) -> bool {
    other.project != item.project || other.is_apart_from(item) && !sprint.is_kept_apart(&item.id, &other.id)
}

pub(super) fn in_order(sprint: &Sprint, wanted: impl Fn(&ItemState) -> bool) -> Vec<&ItemState> {
    let mut some: Vec<&ItemState> = sprint.items.values().filter(|known| wanted(known)).collect();
    some.sort_by_key(|known| (known.item.priority, known.number));
    some
}

/// Nothing is under way, and nothing could be.
fn end(sprint: &Sprint) -> Vec<SprintEvent> {
    if !sprint.open.is_empty() || sprint.ours().next().is_some() {
        return Vec::new();
    }
    let (why, detail) = match &sprint.broke {
        Some((why, _, detail)) => (*why, detail.clone()),
        None => (SprintStop::Done, done(sprint)),
    };
    vec![SprintEvent::End { why, detail }]
}

/// Why what is left is left, if it is for want of money.
fn done(sprint: &Sprint) -> String {
    let pending = sprint.items.values().filter(|known| known.item.status == ItemStatus::Pending);
    let projects: BTreeSet<&str> = pending.map(|known| known.item.project.as_str()).collect();
    let poor: Vec<&str> =
        projects.into_iter().filter(|project| budget::is_used_up(sprint, project)).collect();
    let nothing = "nothing is left that can be run now";
    if poor.is_empty() {
        return nothing.to_owned();
    }
    format!("{nothing}; {} spent all of its share", poor.join(", "))
}
