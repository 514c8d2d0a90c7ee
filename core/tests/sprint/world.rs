//! A made-up world: what runs and landings come to follows from a number.

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::model::{Money, Reason, RunStatus};
use archeflow_core::sprint::event::{
    BatchLanding, Busy, Candidate, FORMAT, ItemEnd, RunEnd, SprintEntry, SprintEvent, UnfinishedRun,
};
use archeflow_core::sprint::policy::{Room, SprintPolicy};
use archeflow_core::sprint::queue::{ItemStatus, Priority, QueueItem, TaskSize};
use archeflow_core::sprint::{ItemStage, Sprint, decide};

use crate::chance::{Chance, word};
use crate::{DOLLAR, ended, full_scan, item};

/// The most slots that a fleet has in such a world.
pub(crate) const MOST_SLOTS: u32 = 3;

/// Nothing but the queue survives a crash, and the log.
pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) chance: Chance,
    pub(crate) queue: BTreeMap<String, (QueueItem, Option<u64>)>,
    pub(crate) log: Vec<SprintEntry>,
    /// What a crash cut short is performed again and must come to the same.
    pub(crate) performed: BTreeMap<u64, SprintEvent>,
    /// What is in each project's target, and every content of one that was tested and found green.
    pub(crate) targets: BTreeMap<String, Vec<String>>,
    pub(crate) green: BTreeSet<(String, Vec<String>)>,
    pub(crate) batches: Batches,
    pub(crate) crashes: bool,
    /// Orders go to workers, whose free slots come and go.
    pub(crate) fleet: bool,
}

/// What a made-up world has seen of them, so that it is not too tame.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    pub(crate) landed: u32,
    pub(crate) red: u32,
    pub(crate) left_out: u32,
    pub(crate) overlaps: u32,
}

impl World {
    pub(crate) fn new(seed: u64, crashes: bool) -> World {
        let mut chance = Chance::keyed(seed, &[word("queue")]);
        let mut queue = BTreeMap::new();
        let count = chance.number(1, 24);
        // In some worlds many tasks run side by side in few projects.
        let dense = chance.percent(50);
        for n in 0..count {
            let id = format!("i{n:02}");
            let depends_on = (0..n)
                .filter(|_| chance.percent(if dense { 2 } else { 8 }))
                .map(|on| format!("i{on:02}"))
                .collect();
            let files = match (dense, chance.percent(if dense { 90 } else { 30 })) {
                (true, true) => vec![format!("g{n}")],
                (false, true) => vec![format!("f{}", chance.below(3))],
                (_, false) => Vec::new(),
            };
            let status = match chance.below(20) {
                0 => ItemStatus::Proposed,
                1 => ItemStatus::Failed,
                2 => ItemStatus::Completed,
                _ => ItemStatus::Pending,
            };
            let made = QueueItem {
                priority: chance.pick(&Priority::ALL),
                estimate: chance.pick(&TaskSize::ALL),
                depends_on,
                files,
                status,
                ..item(&id, &format!("p{}", chance.below(if dense { 2 } else { 6 })))
            };
            queue.insert(id, (made, None));
        }
        World {
            seed,
            chance,
            queue,
            log: Vec::new(),
            performed: BTreeMap::new(),
            targets: BTreeMap::new(),
            green: BTreeSet::new(),
            batches: Batches::default(),
            crashes,
            fleet: Chance::keyed(seed, &[word("fleet")]).percent(25),
        }
    }

    pub(crate) fn policy(&self) -> SprintPolicy {
        let mut chance = Chance::keyed(self.seed, &[word("policy")]);
        SprintPolicy {
            slots: chance.number(1, 9),
            landing_batch: chance.number(1, 6),
            low_priority: chance.percent(50),
            failures: if chance.percent(50) { 3 } else { 1_000 },
            budget_usd: chance.percent(30).then(|| Money(chance.below(20) * DOLLAR + DOLLAR)),
            quality_percent: if chance.percent(50) { 50 } else { 0 },
            shares: (0..6)
                .map(|n| (format!("p{n}"), chance.below(140)))
                .filter(|(_, percent)| *percent <= 100)
                .collect(),
            ..SprintPolicy::default()
        }
    }

    /// Some items were begun by an earlier sprint.
    pub(crate) fn left(&self, item: &str) -> Option<UnfinishedRun> {
        let mut chance = Chance::keyed(self.seed, &[word(item), word("left")]);
        chance.percent(15).then(|| {
            let spent = chance.below(3 * DOLLAR);
            let budget_usd = chance.percent(70).then(|| Money(spent + chance.below(3 * DOLLAR)));
            UnfinishedRun { run_id: format!("{item}.old"), spent_usd: Money(spent), budget_usd }
        })
    }

    /// What a run does depends on the item and the attempt alone, so that it is the same after a crash.
    pub(crate) fn outcome(&self, id: &str, attempt: u64, landing: bool, budget: Option<Money>) -> RunEnd {
        let key = [word(id), attempt, u64::from(landing)];
        let mut chance = Chance::keyed(self.seed, &key);
        let run_id = format!("{id}.{attempt}");
        let cost = Money(chance.below(2 * DOLLAR));
        let account = account_of(&self.queue[id].0.project);
        let base = |status, reason| RunEnd {
            cost_usd: budget.map_or(cost, |most| cost.min(most)),
            accounts: vec![account.clone()],
            ..ended(&run_id, status, reason)
        };
        match (landing, chance.below(10)) {
            (false, 0) => RunEnd { status: None, reason: None, ..base(RunStatus::Failed, Reason::Blocked) },
            (false, 1) => base(RunStatus::Stopped, Reason::MaxCycles),
            (false, 2) => base(RunStatus::AwaitingAnswer, Reason::NeedsContext),
            (false, 3 | 4) => {
                let hours = 3_600_000 * chance.below(9);
                let busy =
                    Busy { accounts: vec![account.clone()], until: chance.percent(70).then_some(hours) };
                RunEnd { busy: Some(busy), ..base(RunStatus::Stopped, Reason::ProviderBusy) }
            }
            (false, _) => {
                RunEnd { cycles: chance.number(1, 3), ..base(RunStatus::AwaitingMerge, Reason::Approved) }
            }
            (true, 0 | 1) => base(RunStatus::AwaitingMerge, Reason::MergeConflict),
            (true, 2) => base(RunStatus::Failed, Reason::TestsFailed),
            (true, _) => base(RunStatus::Merged, Reason::Approved),
        }
    }

    pub(crate) fn perform(&mut self, sprint: &Sprint, seq: u64, order: &SprintEvent) -> SprintEvent {
        if let Some(done) = self.performed.get(&seq) {
            return done.clone();
        }
        let report = match order {
            SprintEvent::Claim { item } => {
                let other_was_quicker = Chance::keyed(self.seed, &[word(item), word("taken")]).percent(5);
                let (known, fence) = self.queue.get_mut(item).unwrap();
                let free = known.status == ItemStatus::Pending && !other_was_quicker;
                if free {
                    known.status = ItemStatus::Running;
                    *fence = Some(fence.unwrap_or(0) + 1);
                } else if known.status == ItemStatus::Pending {
                    known.status = ItemStatus::Completed;
                }
                let fence = fence.filter(|_| free);
                SprintEvent::Claimed { start_seq: seq, fence, left: self.left(item).filter(|_| free) }
            }
            SprintEvent::Run { item, attempt, budget_usd, .. } => SprintEvent::Ended {
                start_seq: seq,
                end: self.outcome(item, u64::from(*attempt), false, *budget_usd),
            },
            SprintEvent::Resume { item, run_id } => {
                let again = |entry: &&SprintEntry| matches!(&entry.event, SprintEvent::Resume { item: other, .. } if other == item);
                let times = self.log.iter().filter(again).count() as u64;
                let attempt = u64::from(sprint.items[item].attempt) + 1_000 * times;
                let end = self.outcome(item, attempt, false, sprint.items[item].budget);
                // It tells what it cost altogether, also before this sprint.
                let before = self.left(item).filter(|left| left.run_id == *run_id);
                let cost_usd = end.cost_usd.plus(before.map_or(Money::ZERO, |left| left.spent_usd));
                SprintEvent::Ended { start_seq: seq, end: RunEnd { run_id: run_id.clone(), cost_usd, ..end } }
            }
            SprintEvent::Land { item, .. } => {
                let attempt = u64::from(sprint.items[item].attempt);
                let mut end = self.outcome(item, attempt, true, None);
                let red = Some(Reason::TestsFailed);
                if end.status == Some(RunStatus::Merged) && !self.is_green(sprint, &[item]) {
                    (end.status, end.reason) = (Some(RunStatus::Stopped), red);
                }
                if end.status == Some(RunStatus::Merged) {
                    self.moves(sprint, &[item]);
                }
                SprintEvent::Landed { start_seq: seq, end }
            }
            SprintEvent::BatchLand { candidates, .. } => {
                SprintEvent::BatchLanded { start_seq: seq, came: self.together(sprint, candidates) }
            }
            SprintEvent::Settle { item, fence, status, .. } => {
                let (known, held) = self.queue.get_mut(item).unwrap();
                assert!(fence.is_none() || fence == held, "seed {}: a stale claim settles {item}", self.seed);
                known.status = *status;
                SprintEvent::Settled { start_seq: seq }
            }
            other => panic!("nobody performs {other:?}"),
        };
        self.performed.insert(seq, report.clone());
        report
    }

    /// The chain as a host would build it: who conflicts stays behind, the last one carries it.
    pub(crate) fn together(&mut self, sprint: &Sprint, candidates: &[Candidate]) -> BatchLanding {
        let attempt = |item: &str| u64::from(sprint.items[item].attempt);
        let ends: BTreeMap<&str, RunEnd> = candidates
            .iter()
            .map(|one| (one.item.as_str(), self.outcome(&one.item, attempt(&one.item), true, None)))
            .collect();
        let outcome = |item: &str| ends[item].clone();
        let conflicts = |item: &str| outcome(item).reason == Some(Reason::MergeConflict);
        let names: Vec<&str> = candidates.iter().map(|one| one.item.as_str()).collect();
        let (lead, others) = names.split_last().unwrap();
        let (alone, mut chain): (Vec<&str>, Vec<&str>) = others.iter().partition(|item| conflicts(item));
        let owned = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>();
        let mut came = BatchLanding { alone: owned(&alone), took_ms: 1_000, ..BatchLanding::default() };
        self.batches.left_out += u32::from(!alone.is_empty());
        if conflicts(lead) && chain.is_empty() {
            came.ends.push(ItemEnd { item: (*lead).to_owned(), end: outcome(lead) });
            return came;
        }
        if conflicts(lead) {
            came.alone = owned(&[lead]);
            return came;
        }
        chain.push(lead);
        if !self.is_green(sprint, &chain) {
            self.batches.red += 1;
            came.red = owned(&chain);
            return came;
        }
        self.batches.landed += 1;
        for item in &chain {
            let end = ended(&outcome(item).run_id, RunStatus::Merged, Reason::Approved);
            came.ends.push(ItemEnd { item: (*item).to_owned(), end });
        }
        self.moves(sprint, &chain);
        came
    }

    /// Some are red by themselves, and some only beside others.
    pub(crate) fn is_green(&mut self, sprint: &Sprint, items: &[&str]) -> bool {
        let project = &sprint.items[items[0]].item.project;
        let mut content = self.targets.get(project).cloned().unwrap_or_default();
        content.extend(items.iter().map(|item| (*item).to_owned()));
        let red_alone = |item: &str| {
            let attempt = u64::from(sprint.items[item].attempt);
            self.outcome(item, attempt, true, None).reason == Some(Reason::TestsFailed)
        };
        let red_beside =
            |a: &str, b: &str| Chance::keyed(self.seed, &[word(a), word(b), word("red")]).percent(6);
        let new = content.len() - items.len();
        let red = items.iter().any(|item| red_alone(item))
            || (new..content.len()).any(|at| content[..at].iter().any(|a| red_beside(a, &content[at])));
        if !red {
            self.green.insert((project.clone(), content));
        }
        !red
    }

    /// I8: a target only ever holds what was tested as it is.
    pub(crate) fn moves(&mut self, sprint: &Sprint, items: &[&str]) {
        let project = sprint.items[items[0]].item.project.clone();
        let target = self.targets.entry(project.clone()).or_default();
        for item in items {
            assert!(!target.iter().any(|there| there == item), "seed {}: {item} lands twice", self.seed);
            target.push((*item).to_owned());
        }
        let now = (project, target.clone());
        assert!(self.green.contains(&now), "I8, seed {}: {now:?} was never tested", self.seed);
    }

    /// Now and then two that run side by side change the same, or no longer do.
    pub(crate) fn watch_branches(&mut self, sprint: &mut Sprint) {
        let live = sprint.items.values().filter(|known| {
            matches!(known.stand, ItemStage::Running | ItemStage::Ended | ItemStage::Landing)
                && known.attempt > 0
        });
        let live: Vec<(String, String)> =
            live.map(|known| (known.item.id.clone(), known.item.project.clone())).collect();
        for (a, project) in &live {
            for (b, _) in live.iter().filter(|(b, other)| b > a && other == project) {
                let file = Chance::keyed(self.seed, &[word(a), word(b), word("same")]).percent(12);
                if file && self.chance.percent(30) {
                    self.batches.overlaps += 1;
                    let files = if self.chance.percent(80) { vec!["same".to_owned()] } else { Vec::new() };
                    let event = SprintEvent::Overlap { a: a.clone(), b: b.clone(), files };
                    self.log.push(sprint.hear(0, event));
                }
            }
        }
    }

    pub(crate) fn look(&mut self, sprint: &mut Sprint) {
        let seen: Vec<QueueItem> = self.queue.values().map(|(item, _)| item.clone()).collect();
        for item in seen {
            let known = sprint.items.get(&item.id);
            if known.is_none_or(|known| !known.stand.is_ours() && known.item != item) {
                let entry = sprint.hear(0, SprintEvent::Seen { item });
                self.log.push(entry);
            }
        }
    }

    /// A busy machine now and then; a fleet's slots come and go.
    fn room(&mut self) -> Room {
        let slots = if self.fleet { Some(self.chance.number(0, MOST_SLOTS)) } else { None };
        let load_percent = if self.chance.percent(20) { 999 } else { 0 };
        Room { load_percent, slots, ..Room::PLENTY }
    }

    /// The host's loop in miniature. A crash forgets everything but the log, the queue and what agents did.
    pub(crate) fn play(&mut self) -> Sprint {
        let mut sprint = Sprint::default();
        let policy = self.policy();
        let begin = SprintEvent::Start { policy, autonomous: true, version: "0".to_owned(), format: FORMAT };
        self.log.push(sprint.hear(0, begin));
        for _ in 0..10_000 {
            self.look(&mut sprint);
            self.watch_branches(&mut sprint);
            let room = self.room();
            // Looking at everything each time would take most of the time.
            if self.seed.is_multiple_of(4) {
                assert_eq!(sprint.items, sprint.items.reindexed(), "seed {}: indices", self.seed);
            }
            for room in [room, Room::PLENTY] {
                let (found, all) = (decide::next(&sprint, room), full_scan::next(&sprint, room));
                assert_eq!(found, all, "seed {}: {room:?}", self.seed);
            }
            let entries = sprint.settle(0, room);
            if let Some(slots) = room.slots
                && entries.iter().any(|entry| matches!(entry.event, SprintEvent::Claim { .. }))
            {
                let under_way = sprint.items.count_ours() - sprint.items.count_at(ItemStage::Parked);
                assert!(under_way <= slots as usize, "seed {}: more orders than slots", self.seed);
            }
            self.log.extend(entries);
            if sprint.end.is_some() {
                return sprint;
            }
            let shut: Vec<String> = sprint
                .breakers
                .iter()
                .filter(|(_, breaker)| !breaker.due)
                .map(|(account, _)| account.clone())
                .collect();
            if !shut.is_empty() && (sprint.open.is_empty() || self.chance.percent(20)) {
                let account = self.chance.pick(&shut);
                self.log.push(sprint.hear(0, SprintEvent::Due { account }));
                continue;
            }
            if sprint.open.is_empty() && room.slots == Some(0) {
                continue;
            }
            assert!(
                !sprint.open.is_empty(),
                "seed {}: it waits for nothing\n{:#?}",
                self.seed,
                self.log.last()
            );
            let open: Vec<(u64, SprintEvent)> =
                sprint.open.iter().map(|(seq, order)| (*seq, order.clone())).collect();
            // Tests take longer than most things, so that others come to wait.
            let slow = |order: &SprintEvent| {
                matches!(order, SprintEvent::Land { .. } | SprintEvent::BatchLand { .. })
            };
            let quick: Vec<(u64, SprintEvent)> =
                open.iter().filter(|(_, order)| !slow(order)).cloned().collect();
            let from = if quick.is_empty() || self.chance.percent(20) { &open } else { &quick };
            let (seq, order) = self.chance.pick(from);
            let report = self.perform(&sprint, seq, &order);
            if self.crashes && self.chance.percent(15) {
                let again = Sprint::replay(&self.log);
                assert_eq!(again, sprint, "seed {}: the log tells all", self.seed);
                sprint = again;
                continue;
            }
            self.log.push(sprint.hear(0, report));
        }
        panic!("seed {}: no end", self.seed);
    }
}

/// Projects share two accounts.
pub(crate) fn account_of(project: &str) -> String {
    if project.ends_with(['0', '2', '4']) { "even".to_owned() } else { "odd".to_owned() }
}
