//! What a sprint promises, checked on its log and the queue alone.

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::model::{Money, RunStatus};
use archeflow_core::sprint::event::{RunEnd, SprintEvent, SprintStop};
use archeflow_core::sprint::policy::Room;
use archeflow_core::sprint::queue::{ItemStatus, Priority, QueueItem};
use archeflow_core::sprint::{ItemStage, Sprint, breaker, budget, landing};

use crate::world::{MOST_SLOTS, World, account_of};

/// C6: which accounts are shut, which may be tried, and who tries.
#[derive(Default)]
struct Gate {
    accounts: BTreeMap<String, (bool, Option<String>)>,
    parked: BTreeMap<String, String>,
    known: BTreeSet<String>,
}

impl Gate {
    fn begins(&mut self, seed: u64, item: &QueueItem, anew: bool) {
        let account = account_of(&item.project);
        let parked = self.parked.values().any(|other| *other == account);
        self.parked.remove(&item.id);
        if anew && !self.known.contains(&item.project) {
            // Nobody can say what it works with, so nothing is promised until the account is shut again.
            self.accounts.remove(&account);
        }
        let Some((due, trial)) = self.accounts.get_mut(&account) else { return };
        assert!(*due, "C6, seed {seed}: {} begins on an account that is shut", item.id);
        assert_eq!(*trial, None, "C6, seed {seed}: {} tries as well", item.id);
        assert!(!anew || !parked, "C6, seed {seed}: {} goes before those that are parked", item.id);
        *trial = Some(item.id.clone());
    }

    fn ended(&mut self, item: &QueueItem, end: &RunEnd) {
        self.known.insert(item.project.clone());
        let account = account_of(&item.project);
        if let Some((_, trial)) =
            self.accounts.get_mut(&account).filter(|(_, trial)| trial.as_ref() == Some(&item.id))
        {
            *trial = None;
            if end.status.is_some() {
                self.accounts.remove(&account);
            }
        }
        if end.busy.is_some() {
            self.accounts.insert(account.clone(), (false, None));
            self.parked.insert(item.id.clone(), account);
        }
    }
}

fn taken_by(project: &str, items: &BTreeMap<String, QueueItem>, costs: &BTreeMap<String, u64>) -> u64 {
    let of_run = |run: &str| &items[run.split('.').next().unwrap()].project;
    costs.iter().filter(|(run, _)| of_run(run) == project).map(|(_, cost)| cost).sum()
}

fn promise_in(project: &str, items: &BTreeMap<String, QueueItem>, order: &SprintEvent) -> Option<u64> {
    match order {
        SprintEvent::Run { item, budget_usd, .. } if items[item].project == project => Some((*budget_usd)?.0),
        _ => None,
    }
}

/// The promises, from the log and the queue alone.
///
/// Gives how many runs of an earlier sprint went on.
pub(crate) fn audit(seed: u64, world: &World, sprint: &Sprint) -> usize {
    let policy = world.policy();
    let mut open: BTreeMap<u64, SprintEvent> = BTreeMap::new();
    let mut items: BTreeMap<String, QueueItem> = BTreeMap::new();
    let mut claims: BTreeSet<String> = BTreeSet::new();
    let mut ours: BTreeSet<String> = BTreeSet::new();
    let mut runs: BTreeSet<(String, u32)> = BTreeSet::new();
    let mut broken = false;
    let mut gate = Gate::default();
    let mut promised = 0_u64;
    let mut taken = 0;
    let mut costs: BTreeMap<String, u64> = BTreeMap::new();
    let mut before = Sprint::default();
    for entry in &world.log {
        let answered = entry.event.answers().map(|seq| open.remove(&seq).expect("an order that is open"));
        match &entry.event {
            SprintEvent::Seen { item } => {
                items.insert(item.id.clone(), item.clone());
            }
            SprintEvent::Claim { item } => {
                assert!(claims.insert(item.clone()), "seed {seed}: {item} is taken twice");
                assert!(!broken, "seed {seed}: {item} begins after a break");
                let this = &items[item];
                assert!(this.priority < Priority::P3 || policy.low_priority, "seed {seed}: {item} is P3");
                for on in &this.depends_on {
                    assert_eq!(items[on].status, ItemStatus::Completed, "seed {seed}: {item} before {on}");
                }
                for other in ours.iter().map(|other| &items[other]) {
                    let apart = other.project != this.project
                        || other.is_apart_from(this) && !before.is_kept_apart(item, &other.id);
                    assert!(apart, "seed {seed}: {item} beside {}", other.id);
                }
                ours.insert(item.clone());
                let slots = if world.fleet { MOST_SLOTS } else { policy.slots };
                assert!(ours.len() - gate.parked.len() <= slots as usize, "seed {seed}: too many");
                let large = ours.iter().filter(|id| items[*id].estimate.is_large()).count();
                assert!(large <= policy.large as usize, "seed {seed}: too many large ones");
            }
            SprintEvent::Claimed { fence: None, .. } => {
                if let Some(SprintEvent::Claim { item }) = &answered {
                    ours.remove(item);
                }
            }
            SprintEvent::Run { item, attempt, budget_usd, .. } => {
                assert!(ours.contains(item), "seed {seed}: {item} runs and is not ours");
                gate.begins(seed, &items[item], true);
                assert!(runs.insert((item.clone(), *attempt)), "seed {seed}: {item} runs twice");
                assert!(*attempt <= policy.reruns + 1, "seed {seed}: {item} runs too often");
                let beside = *attempt > 1 && landing::is_in_the_way(&before, &before.items[item]);
                assert!(!beside, "seed {seed}: {item} runs again beside one that changes the same");
                promised += budget_usd.map_or(0, |money| money.0);
                let spent: u64 = costs.values().sum();
                if let Some(budget) = policy.budget_usd {
                    assert!(spent + promised <= budget.0, "I4, seed {seed}: more promised than there is");
                    let project = &items[item].project;
                    if let Some(percent) = policy.shares.get(project) {
                        let gone = taken_by(project, &items, &costs)
                            + open
                                .values()
                                .filter_map(|order| promise_in(project, &items, order))
                                .sum::<u64>()
                            + budget_usd.map_or(0, |money| money.0);
                        assert!(
                            gone * 100 <= budget.0 * percent,
                            "BX-23, seed {seed}: {project} over its share"
                        );
                    }
                    assert_ne!(*budget_usd, Some(Money::ZERO), "seed {seed}: {item} runs for nothing");
                }
            }
            SprintEvent::Ended { end, .. } => {
                if let Some(SprintEvent::Run { item, .. } | SprintEvent::Resume { item, .. }) = &answered {
                    gate.ended(&items[item], end);
                }
                if let Some(SprintEvent::Run { budget_usd, .. }) = &answered {
                    promised -= budget_usd.map_or(0, |money| money.0);
                }
                let left = end.run_id.strip_suffix(".old").and_then(|item| world.left(item));
                if let (Some(SprintEvent::Resume { item, .. }), Some(left)) = (&answered, &left)
                    && before.items[item].end.is_none()
                    && policy.budget_usd.is_some()
                {
                    promised -= left.promised().map_or(0, |money| money.0);
                }
                let cost = costs.entry(end.run_id.clone()).or_default();
                *cost = (*cost).max(end.cost_usd.0 - left.map_or(0, |left| left.spent_usd.0));
            }
            SprintEvent::Resume { item, run_id } => {
                assert!(ours.contains(item) && !broken, "seed {seed}: {item} goes on");
                let taken_up = before.items[item].end.is_none();
                assert_eq!(
                    taken_up,
                    !costs.contains_key(run_id),
                    "seed {seed}: {item} goes on with {run_id}"
                );
                gate.begins(seed, &items[item], taken_up);
                taken += usize::from(taken_up);
                if let (true, Some(budget)) = (taken_up, policy.budget_usd) {
                    promised += world.left(item).unwrap().promised().expect("a bound").0;
                    let spent: u64 = costs.values().sum();
                    assert!(spent + promised <= budget.0, "I4, seed {seed}: more promised than there is");
                }
            }
            SprintEvent::Due { account } => {
                if let Some((due, _)) = gate.accounts.get_mut(account) {
                    *due = true;
                }
            }
            SprintEvent::Land { item, .. } => lands_in_order(seed, &before, &[item]),
            SprintEvent::BatchLand { candidates, .. } => {
                let names: Vec<&str> = candidates.iter().map(|one| one.item.as_str()).collect();
                assert!((2..=policy.landing_batch as usize).contains(&names.len()), "seed {seed}: {names:?}");
                lands_in_order(seed, &before, &names);
            }
            SprintEvent::Settle { item, status, .. } => {
                let landed =
                    world.targets.get(&items[item].project).is_some_and(|target| target.contains(item));
                assert_eq!(
                    *status == ItemStatus::Completed,
                    landed,
                    "seed {seed}: {item} is {}",
                    status.name()
                );
                ours.remove(item);
                gate.parked.remove(item);
                items.get_mut(item).unwrap().status = *status;
            }
            SprintEvent::Break { .. } => broken = true,
            SprintEvent::End { why, .. } => {
                assert!(open.is_empty() && ours.is_empty(), "seed {seed}: it ends in the middle");
                assert_eq!(*why != SprintStop::Done, broken, "seed {seed}");
            }
            _ => {}
        }
        if matches!(entry.event.verb(), archeflow_core::event::Verb::Ordered) {
            open.insert(entry.seq, entry.event.clone());
        }
        before.apply(entry);
    }
    if let Some(budget) = policy.budget_usd {
        assert!(costs.values().sum::<u64>() <= budget.0, "I4, seed {seed}: more spent than there was");
    }
    let done = sprint.end.as_ref().is_some_and(|(why, _)| *why == SprintStop::Done);
    for (id, (item, _)) in &world.queue {
        assert_ne!(item.status, ItemStatus::Running, "seed {seed}: {id} is left running");
        let status_of = |on: &String| world.queue[on].0.status;
        let lost = item
            .depends_on
            .iter()
            .any(|on| matches!(status_of(on), ItemStatus::Failed | ItemStatus::Blocked));
        if lost && done {
            assert!(!matches!(item.status, ItemStatus::Pending), "seed {seed}: {id} waits for what failed");
        }
        let ready = item.depends_on.iter().all(|on| status_of(on) == ItemStatus::Completed);
        let wanted = item.priority < Priority::P3 || policy.low_priority;
        let poor = budget::is_short(sprint, &item.project, Room::PLENTY);
        let held = breaker::is_held(sprint, &item.project, &BTreeSet::new());
        if done && item.status == ItemStatus::Pending && ready && wanted && !poor && !held {
            assert!(claims.contains(id), "seed {seed}: {id} was forgotten");
        }
    }
    taken
}

/// One landing at a time in a project; what matters most first, but for what is taken apart, landed by itself or waits
/// for another; nothing lands beside what changes the same.
fn lands_in_order(seed: u64, before: &Sprint, names: &[&str]) {
    let place = |id: &str| (before.items[id].item.priority, before.items[id].number);
    let project = &before.items[names[0]].item.project;
    let here = || before.items.values().filter(|known| known.item.project == *project);
    assert!(
        here().all(|known| known.stand != ItemStage::Landing),
        "seed {seed}: two landings in one project"
    );
    assert!(names.is_sorted_by_key(|id| place(id)), "seed {seed}: {names:?} out of order");
    let in_red = before.reds.iter().rev().find(|red| names.iter().any(|id| red.iter().any(|one| one == id)));
    assert!(
        in_red.is_none_or(|red| names.len() == 1 || names.len() < red.len()),
        "seed {seed}: {names:?} again"
    );
    for id in names {
        assert!(landing::waits_for(before, &before.items[*id]).is_none(), "seed {seed}: {id} had to wait");
        assert!(names.iter().all(|other| !before.overlap(id, other)), "seed {seed}: {id} in {names:?}");
        assert!(names.len() == 1 || !before.items[*id].alone, "seed {seed}: {id} is to land alone");
    }
    let passed_over = here().filter(|known| {
        let approved = known.end.as_ref().is_some_and(|end| end.status == Some(RunStatus::AwaitingMerge));
        let ready = known.stand == ItemStage::Ended && approved && place(&known.item.id) < place(names[0]);
        ready && landing::waits_for(before, known).is_none()
    });
    assert!(in_red.is_some() || passed_over.count() == 0, "seed {seed}: somebody comes before {names:?}");
}
