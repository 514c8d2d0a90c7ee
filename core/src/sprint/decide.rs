//! What should happen now in a sprint: settle what ended, land what is ready, stop if a bound is reached, begin what
//! may begin, and end when nothing is left.

use std::collections::{BTreeMap, BTreeSet};

use super::event::{SprintEvent, SprintStop};
use super::fold::{ItemStage, ItemState, Sprint};
use super::items::QueuePosition;
use super::landing;
use super::policy::Room;
use super::queue::{ItemStatus, Priority, QueueItem};
use super::standing::{self, Follows};
use super::{breaker, budget};
use crate::model::{Money, Share};

pub fn decide(sprint: &Sprint, room: Room) -> Vec<SprintEvent> {
    if !sprint.begun || sprint.end.is_some() {
        return Vec::new();
    }
    let stages: [fn(&Sprint, Room) -> Vec<SprintEvent>; 8] = [
        follow_up,
        |sprint, _| landing::land(sprint),
        |sprint, _| block(sprint),
        |sprint, _| boundaries(sprint),
        |sprint, _| resume(sprint),
        run,
        begin,
        end,
    ];
    stages.iter().map(|stage| stage(sprint, room)).find(|events| !events.is_empty()).unwrap_or_default()
}

/// What ended is settled, run again, or left for the landing.
fn follow_up(sprint: &Sprint, room: Room) -> Vec<SprintEvent> {
    let mut over: Vec<&ItemState> = [ItemStage::Ended, ItemStage::Landed]
        .into_iter()
        .flat_map(|stage| sprint.items.at_stage(stage))
        .collect();
    over.sort_by_key(|known| &known.item.id);
    let mut events = Vec::new();
    for known in over {
        match follows(sprint, known) {
            None | Some(Follows::Land) => {}
            // Settling an item changes nothing for the others that ended; a run does.
            Some(Follows::Rerun) if events.is_empty() => {
                if let Some(event) = run_if_possible(sprint, known, room) {
                    return vec![event];
                }
            }
            Some(Follows::Rerun) => break,
            Some(Follows::Settle(status, note)) => {
                let (item, fence) = (known.item.id.clone(), known.fence);
                let run_id = if status == ItemStatus::Pending { standing::goes_on(known) } else { None };
                events.push(SprintEvent::Settle { item, fence, status, note, run_id });
            }
        }
    }
    events
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

/// Items whose dependency was lost are settled as blocked, without a run.
fn block(sprint: &Sprint) -> Vec<SprintEvent> {
    let lost = sprint.items.downstream_of_lost().into_iter().filter(|(id, _)| {
        sprint.items.get(id).is_some_and(|known| matches!(known.stand, ItemStage::Waiting))
    });
    lost.map(|(id, on)| SprintEvent::Settle {
        item: id.to_owned(),
        fence: None,
        status: ItemStatus::Blocked,
        note: format!("waits for {on}, which can't be completed"),
        run_id: None,
    })
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
    let mut parked = in_order(sprint.items.at_stage(ItemStage::Parked)).into_iter();
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
fn run(sprint: &Sprint, room: Room) -> Vec<SprintEvent> {
    // Claims are answered together, and what matters more still begins first.
    let mut claimed = in_order(sprint.items.at_stage(ItemStage::Claimed)).into_iter();
    let event = claimed.find_map(|known| match &sprint.broke {
        None => run_if_possible(sprint, known, room),
        Some((why, _, _)) => {
            Some(give_back(known, format!("given back: the sprint stopped ({})", why.name())))
        }
    });
    event.into_iter().collect()
}

/// It waits while its provider is busy, and while the money it needs is promised to others. If neither will come in a
/// reasonable time, it is given back.
fn run_if_possible(sprint: &Sprint, known: &ItemState, room: Room) -> Option<SprintEvent> {
    let project = &known.item.project;
    if breaker::is_held(sprint, project, &BTreeSet::new()) {
        let finds_out = [ItemStage::Running, ItemStage::Parked];
        let hope = finds_out.iter().any(|stage| sprint.items.count_at(*stage) > 0);
        return (!hope).then(|| give_back(known, "given back: its provider is busy".to_owned()));
    }
    if let Some(left) =
        known.left.as_ref().filter(|left| known.end.is_none() && budget::bears(sprint, project, left))
    {
        return Some(SprintEvent::Resume { item: known.item.id.clone(), run_id: left.run_id.clone() });
    }
    if !budget::is_short(sprint, project, room) {
        return Some(run_of(sprint, known, room));
    }
    let may_come_back = budget::whole(sprint).promised > Money::ZERO;
    (!may_come_back).then(|| give_back(known, "given back: no money is left for its project".to_owned()))
}

fn give_back(known: &ItemState, note: String) -> SprintEvent {
    let (item, fence, status) = (known.item.id.clone(), known.fence, ItemStatus::Pending);
    SprintEvent::Settle { item, fence, status, note, run_id: standing::goes_on(known) }
}

fn run_of(sprint: &Sprint, known: &ItemState, room: Room) -> SprintEvent {
    SprintEvent::Run {
        item: known.item.id.clone(),
        attempt: known.attempt + 1,
        budget_usd: budget::allowance(sprint, &known.item.project, room),
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
        // A yes is for all of them, and they begin as the crew has room.
        let alone = usize::from(sprint.items.count_ours() == 0);
        let under_way = sprint.items.count_ours() - sprint.items.count_at(ItemStage::Parked);
        let free = room.slots.map_or(usize::MAX, |slots| (slots as usize).saturating_sub(under_way));
        let many = if sprint.policy.admits(room) { free } else { alone.min(free) };
        return sprint.agreed.iter().take(many).cloned().map(claim).collect();
    }
    if sprint.items.count_ours() > sprint.items.count_at(ItemStage::Parked) {
        return Vec::new();
    }
    let plenty = Room { slots: room.slots, ..Room::PLENTY };
    let items: Vec<String> = next(sprint, plenty).into_iter().map(|item| item.id.clone()).collect();
    if items.is_empty() { Vec::new() } else { vec![SprintEvent::Ask { items }] }
}

/// Whether items could begin if the machine were less busy (U-15).
pub fn waits_for_machine(sprint: &Sprint, room: Room) -> bool {
    if sprint.broke.is_some() || sprint.policy.admits(room) {
        return false;
    }
    let agreed = !sprint.autonomous && !sprint.agreed.is_empty();
    let plenty = Room { slots: room.slots, ..Room::PLENTY };
    agreed || sprint.autonomous && next(sprint, plenty).len() > next(sprint, room).len()
}

/// The items that may begin now: ready, in the order of their priority, within the limits and what the crew has room for.
/// Of each project the first is looked at, and one behind it only where it could run beside what runs there.
pub fn next(sprint: &Sprint, room: Room) -> Vec<&QueueItem> {
    let policy = &sprint.policy;
    // A run that waits for a provider blocks its project, but takes no slot.
    let mut under_way = sprint.items.count_ours() - sprint.items.count_at(ItemStage::Parked);
    let most = policy.most_at_once(room) as usize;
    let is_full = |under_way: usize| under_way >= most || (under_way > 0 && !policy.admits(room));
    if is_full(under_way) {
        return Vec::new();
    }
    let mut busy: BTreeMap<&str, Vec<&QueueItem>> = BTreeMap::new();
    sprint.ours().for_each(|known| busy.entry(&known.item.project).or_default().push(&known.item));
    let mut large = sprint.ours().filter(|other| other.item.estimate.is_large()).count();
    let allowances = budget::Allowances::of(sprint, room);
    let is_short = |project: &str| {
        allowances.as_ref().is_some_and(|allowances| allowances.of_project(project) == Money::ZERO)
    };
    let waited_for = breaker::parked_accounts(sprint);
    let mut trials: BTreeSet<&String> = BTreeSet::new();
    let mut picked = Vec::new();
    let mut heads = sprint.items.heads().peekable();
    let mut behind: BTreeSet<&QueuePosition> = BTreeSet::new();
    loop {
        let is_head = match (heads.peek(), behind.first()) {
            (Some(head), Some(other)) => head < other,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (None, None) => break,
        };
        let Some(place) = (if is_head { heads.next() } else { behind.pop_first() }) else { break };
        if place.priority >= Priority::P3 && !policy.low_priority {
            break;
        }
        let Some(item) = sprint.items.get(&place.item).map(|known| &known.item) else { continue };
        let here = busy.get(item.project.as_str()).map_or(&[][..], Vec::as_slice);
        // What keeps an item of this group from beginning keeps all others of it, too.
        let is_hopeless = here.iter().any(|other| other.files.is_empty())
            || item.estimate.is_large() && large >= policy.large as usize
            || is_short(&item.project)
            || breaker::is_held_beside(sprint, &item.project, &trials, &waited_for);
        if is_hopeless {
            continue;
        }
        if here.iter().all(|other| goes_beside(sprint, item, other)) {
            trials.extend(breaker::tried_by(sprint, &item.project));
            large += usize::from(item.estimate.is_large());
            busy.entry(&item.project).or_default().push(item);
            picked.push(item);
            under_way += 1;
            if is_full(under_way) {
                break;
            }
        }
        behind.extend(sprint.items.after(place));
    }
    picked
}

/// Only what shares no files runs side by side in a project, by what was declared and by what was seen.
fn goes_beside(sprint: &Sprint, item: &QueueItem, other: &QueueItem) -> bool {
    other.project != item.project || other.is_apart_from(item) && !sprint.is_kept_apart(&item.id, &other.id)
}

pub(super) fn in_order<'a>(some: impl Iterator<Item = &'a ItemState>) -> Vec<&'a ItemState> {
    let mut some: Vec<&ItemState> = some.collect();
    some.sort_by_key(|known| (known.item.priority, known.number));
    some
}

/// Nothing is under way, and nothing could be.
fn end(sprint: &Sprint, room: Room) -> Vec<SprintEvent> {
    if !sprint.open.is_empty() || sprint.items.count_ours() > 0 || waits_for_slots(sprint, room) {
        return Vec::new();
    }
    let (why, detail) = match &sprint.broke {
        Some((why, _, detail)) => (*why, detail.clone()),
        None => (SprintStop::Done, done(sprint)),
    };
    vec![SprintEvent::End { why, detail }]
}

/// A fleet has no slot at all just now, and items could begin if it had one.
fn waits_for_slots(sprint: &Sprint, room: Room) -> bool {
    let could = || !sprint.agreed.is_empty() || !next(sprint, Room::PLENTY).is_empty();
    sprint.broke.is_none() && room.slots == Some(0) && could()
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
