//! Sprints in a made-up world: items that wait for each other, runs that end in every way, landings that conflict, other
//! sprints that take items away, and a crash after any line. The promises are checked on the log alone.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a promise is about some lines")]

#[path = "sim/chance.rs"]
#[expect(dead_code, reason = "the other simulation uses all of it")]
mod chance;

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::sprint::event::{
    Busy, Candidate, Entry, Event, FORMAT, ItemEnd, Left, RunEnd, Stop, Together,
};
use archeflow_core::sprint::policy::{Policy, Room};
use archeflow_core::sprint::queue::{Estimate, Item, Priority, Status};
use archeflow_core::sprint::standing::{Follows, after};
use archeflow_core::sprint::{Sprint, Stand, breaker, budget, decide, landing};
use archeflow_core::words::{Money, Reason, RunStatus, Workflow};
use chance::{Chance, word};

const DOLLAR: u64 = 1_000_000;

fn item(id: &str, project: &str) -> Item {
    Item {
        id: id.to_owned(),
        project: project.to_owned(),
        task: format!("Do {id}"),
        priority: Priority::P1,
        estimate: Estimate::S,
        status: Status::Pending,
        depends_on: Vec::new(),
        workflow: None,
        files: Vec::new(),
    }
}

fn ended(run_id: &str, status: RunStatus, reason: Reason) -> RunEnd {
    RunEnd {
        run_id: run_id.to_owned(),
        status: Some(status),
        reason: Some(reason),
        detail: "so".to_owned(),
        cycles: 1,
        cost_usd: Money::ZERO,
        took_ms: 60_000,
        stopped: false,
        landed_as: None,
        accounts: Vec::new(),
        busy: None,
    }
}

fn start(policy: Policy) -> Sprint {
    let mut sprint = Sprint::default();
    sprint.hear(0, Event::Start { policy, autonomous: true, version: "0".to_owned(), format: FORMAT });
    sprint
}

#[test]
fn bx_22_what_may_begin_now() {
    // Items as `name project priority estimate files`; what may begin in which order.
    for (items, room, picked) in [
        ("a p P1 S|b q P0 S|c r P2 S", Room::PLENTY, "b a c"),
        ("a p P1 S|b p P1 S", Room::PLENTY, "a"),
        ("a p P1 S x.rs|b p P1 S y.rs|c p P1 S x.rs", Room::PLENTY, "a b"),
        ("a p P1 L|b q P1 XL|c r P1 L|d s P2 S", Room::PLENTY, "a b d"),
        ("a p P3 S|b q P2 S", Room::PLENTY, "b"),
        ("a p P1 S|b q P1 S|c r P1 S|d s P1 S|e t P0 S", Room::PLENTY, "e a b c"),
        ("a p P1 S|b q P1 S", Room { load_percent: 301, memory_mb: 9_000 }, "a"),
        ("a p P1 S|b q P1 S", Room { load_percent: 0, memory_mb: 255 }, "a"),
        ("a p P1 S|b q P1 S", Room { load_percent: 300, memory_mb: 256 }, "a b"),
    ] {
        let mut sprint = start(Policy::default());
        for row in items.split('|') {
            let words: Vec<&str> = row.split(' ').collect();
            let seen = Item {
                priority: Priority::parse(words[2]).unwrap(),
                estimate: Estimate::parse(words[3]).unwrap(),
                files: words[4..].iter().map(|file| (*file).to_owned()).collect(),
                ..item(words[0], words[1])
            };
            sprint.hear(0, Event::Seen { item: seen });
        }
        let next: Vec<&str> = decide::next(&sprint, room).iter().map(|item| &*item.id).collect();
        assert_eq!(next.join(" "), picked, "{items}");
    }
}

/// Of ten dollars so many are spent: what a task of this size, with or without a workflow that was named, begins as, and
/// whether that is worth a word.
#[test]
fn bx_28_af_151_with_little_left_less_is_done() {
    let (small, middle, large) = (Estimate::S, Estimate::M, Estimate::L);
    for (budget, spent, estimate, named, begins_as, warned) in [
        (true, 4_999, large, None, None, false),
        (true, 5_000, large, None, None, true),
        (true, 5_100, large, None, Some(Workflow::Standard), true),
        (true, 5_100, middle, None, None, true),
        (true, 7_500, large, None, Some(Workflow::Standard), true),
        (true, 7_600, large, None, Some(Workflow::Fast), true),
        (true, 7_600, middle, None, Some(Workflow::Fast), true),
        (true, 7_600, small, None, None, true),
        (true, 7_600, large, Some("thorough"), None, true),
        (false, 7_600, large, None, None, false),
    ] {
        let budget_usd = budget.then_some(Money(10 * DOLLAR));
        let mut sprint = Sprint { autonomous: true, ..start(Policy { budget_usd, ..Policy::default() }) };
        let workflow = named.map(str::to_owned);
        sprint.hear(0, Event::Seen { item: Item { estimate, workflow, ..item("a", "p") } });
        sprint.spent.insert("before".to_owned(), Money(spent * DOLLAR / 1_000));
        let mut events: Vec<Event> =
            sprint.settle(0, Room::PLENTY).into_iter().map(|entry| entry.event).collect();
        let start_seq = *sprint.open.keys().next().unwrap();
        sprint.hear(0, Event::Claimed { start_seq, fence: Some(1), left: None });
        events.extend(sprint.settle(0, Room::PLENTY).into_iter().map(|entry| entry.event));
        let run = events.iter().find_map(|event| match event {
            Event::Run { workflow, .. } => Some(*workflow),
            _ => None,
        });
        assert_eq!(run, Some(begins_as), "{spent} of 10,000, {}", estimate.name());
        let words = events.iter().filter(|event| matches!(event, Event::Warning { .. })).count();
        assert_eq!(words, usize::from(warned), "{spent} of 10,000 is told once: {events:?}");
    }
}

#[test]
fn bx_23_what_a_project_may_spend() {
    // Budget and shares in dollars and percent; spent by runs as `item dollars`; what each project's next run may spend.
    for (budget, shares, spent, allowed) in [
        (None, "", "", [None, None]),
        (Some(8), "", "", [Some(2_000), Some(2_000)]),
        (Some(8), "p=10", "", [Some(800), Some(2_000)]),
        (Some(8), "p=50", "a 3", [Some(1_000), Some(1_250)]),
        (Some(8), "p=50", "a 4", [Some(0), Some(1_000)]),
        (Some(8), "p=50", "b 4", [Some(1_000), Some(1_000)]),
        (Some(8), "p=0 q=100", "", [Some(0), Some(2_000)]),
        (None, "p=50", "a 4", [None, None]),
    ] {
        let shares = shares.split_whitespace().map(|word| word.split_once('=').unwrap());
        let shares =
            shares.map(|(project, percent)| (project.to_owned(), percent.parse().unwrap())).collect();
        let budget_usd = budget.map(|dollars| Money(dollars * DOLLAR));
        let mut sprint = start(Policy { budget_usd, shares, ..Policy::default() });
        for (id, project) in [("a", "p"), ("b", "q")] {
            sprint.hear(0, Event::Seen { item: item(id, project) });
        }
        if let Some((id, dollars)) = spent.split_once(' ') {
            let cost = Money(dollars.parse::<u64>().unwrap() * DOLLAR);
            sprint.projects.insert(id.to_owned(), sprint.items[id].item.project.clone());
            sprint.spent.insert(id.to_owned(), cost);
        }
        let found =
            ["p", "q"].map(|project| budget::allowance(&sprint, project).map(|money| money.0 / 1_000));
        assert_eq!(found, allowed, "{budget:?} {spent}");
        let begin: Vec<&str> =
            decide::next(&sprint, Room::PLENTY).iter().map(|item| &*item.project).collect();
        let expected: Vec<&str> = ["p", "q"]
            .into_iter()
            .zip(allowed)
            .filter(|(_, most)| *most != Some(0))
            .map(|(p, _)| p)
            .collect();
        assert_eq!(begin, expected, "{budget:?} {spent}");
    }
}

#[test]
fn bx_22_what_the_end_of_a_run_means_for_its_item() {
    use RunStatus::{AwaitingAnswer, AwaitingMerge, Failed, Merged, Stopped, WiggumBreak};
    let settle = |status| ("settle", Some(status));
    for (status, reason, landing, reruns, follows) in [
        (Merged, Reason::Approved, false, 0, settle(Status::Completed)),
        (AwaitingMerge, Reason::Approved, false, 0, ("land", None)),
        (AwaitingMerge, Reason::Approved, true, 0, settle(Status::Failed)),
        (AwaitingMerge, Reason::NoTestCommand, false, 0, settle(Status::Failed)),
        (AwaitingMerge, Reason::MergeConflict, true, 1, ("rerun", None)),
        (AwaitingMerge, Reason::MergeConflict, true, 0, settle(Status::Failed)),
        (Stopped, Reason::BaseMoved, true, 1, ("rerun", None)),
        (Failed, Reason::TestsFailed, true, 1, settle(Status::Failed)),
        (AwaitingAnswer, Reason::NeedsContext, false, 1, settle(Status::Pending)),
        (Stopped, Reason::ProviderBusy, false, 1, settle(Status::Pending)),
        (WiggumBreak, Reason::Oscillation, false, 1, settle(Status::Failed)),
        (Stopped, Reason::MaxCycles, false, 1, settle(Status::Failed)),
    ] {
        let found = match after(&ended("r", status, reason), landing, reruns) {
            Follows::Land => ("land", None),
            Follows::Rerun => ("rerun", None),
            Follows::Settle(status, _) => ("settle", Some(status)),
        };
        assert_eq!(found, follows, "{} {} {landing} {reruns}", status.name(), reason.name());
    }
    let crashed = RunEnd { status: None, reason: None, ..ended("r", Failed, Reason::Blocked) };
    assert!(matches!(after(&crashed, false, 1), Follows::Settle(Status::Failed, _)));
    let called_in = RunEnd { stopped: true, ..crashed };
    assert!(matches!(after(&called_in, false, 1), Follows::Settle(Status::Pending, _)));
}

/// Nothing but the queue survives a crash, and the log.
struct World {
    seed: u64,
    chance: Chance,
    queue: BTreeMap<String, (Item, Option<u64>)>,
    log: Vec<Entry>,
    /// What a crash cut short is performed again and must come to the same.
    performed: BTreeMap<u64, Event>,
    /// What is in each project's target, and every content of one that was tested and found green.
    targets: BTreeMap<String, Vec<String>>,
    green: BTreeSet<(String, Vec<String>)>,
    batches: Batches,
    crashes: bool,
}

/// What a made-up world has seen of them, so that it is not too tame.
#[derive(Debug, Default)]
struct Batches {
    landed: u32,
    red: u32,
    left_out: u32,
    overlaps: u32,
}

impl World {
    fn new(seed: u64, crashes: bool) -> World {
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
                0 => Status::Proposed,
                1 => Status::Failed,
                2 => Status::Completed,
                _ => Status::Pending,
            };
            let made = Item {
                priority: chance.pick(&Priority::ALL),
                estimate: chance.pick(&Estimate::ALL),
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
        }
    }

    fn policy(&self) -> Policy {
        let mut chance = Chance::keyed(self.seed, &[word("policy")]);
        Policy {
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
            ..Policy::default()
        }
    }

    /// Some items were begun by an earlier sprint.
    fn left(&self, item: &str) -> Option<Left> {
        let mut chance = Chance::keyed(self.seed, &[word(item), word("left")]);
        chance.percent(15).then(|| {
            let spent = chance.below(3 * DOLLAR);
            let budget_usd = chance.percent(70).then(|| Money(spent + chance.below(3 * DOLLAR)));
            Left { run_id: format!("{item}.old"), spent_usd: Money(spent), budget_usd }
        })
    }

    /// What a run does depends on the item and the attempt alone, so that it is the same after a crash.
    fn outcome(&self, id: &str, attempt: u64, landing: bool, budget: Option<Money>) -> RunEnd {
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

    fn perform(&mut self, sprint: &Sprint, seq: u64, order: &Event) -> Event {
        if let Some(done) = self.performed.get(&seq) {
            return done.clone();
        }
        let report = match order {
            Event::Claim { item } => {
                let other_was_quicker = Chance::keyed(self.seed, &[word(item), word("taken")]).percent(5);
                let (known, fence) = self.queue.get_mut(item).unwrap();
                let free = known.status == Status::Pending && !other_was_quicker;
                if free {
                    known.status = Status::Running;
                    *fence = Some(fence.unwrap_or(0) + 1);
                } else if known.status == Status::Pending {
                    known.status = Status::Completed;
                }
                let fence = fence.filter(|_| free);
                Event::Claimed { start_seq: seq, fence, left: self.left(item).filter(|_| free) }
            }
            Event::Run { item, attempt, budget_usd, .. } => Event::Ended {
                start_seq: seq,
                end: self.outcome(item, u64::from(*attempt), false, *budget_usd),
            },
            Event::Resume { item, run_id } => {
                let again = |entry: &&Entry| matches!(&entry.event, Event::Resume { item: other, .. } if other == item);
                let times = self.log.iter().filter(again).count() as u64;
                let attempt = u64::from(sprint.items[item].attempt) + 1_000 * times;
                let end = self.outcome(item, attempt, false, sprint.items[item].budget);
                // It tells what it cost altogether, also before this sprint.
                let before = self.left(item).filter(|left| left.run_id == *run_id);
                let cost_usd = end.cost_usd.plus(before.map_or(Money::ZERO, |left| left.spent_usd));
                Event::Ended { start_seq: seq, end: RunEnd { run_id: run_id.clone(), cost_usd, ..end } }
            }
            Event::Land { item, .. } => {
                let attempt = u64::from(sprint.items[item].attempt);
                let mut end = self.outcome(item, attempt, true, None);
                let red = Some(Reason::TestsFailed);
                if end.status == Some(RunStatus::Merged) && !self.is_green(sprint, &[item]) {
                    (end.status, end.reason) = (Some(RunStatus::Stopped), red);
                }
                if end.status == Some(RunStatus::Merged) {
                    self.moves(sprint, &[item]);
                }
                Event::Landed { start_seq: seq, end }
            }
            Event::BatchLand { candidates, .. } => {
                Event::BatchLanded { start_seq: seq, came: self.together(sprint, candidates) }
            }
            Event::Settle { item, fence, status, .. } => {
                let (known, held) = self.queue.get_mut(item).unwrap();
                assert!(fence.is_none() || fence == held, "seed {}: a stale claim settles {item}", self.seed);
                known.status = *status;
                Event::Settled { start_seq: seq }
            }
            other => panic!("nobody performs {other:?}"),
        };
        self.performed.insert(seq, report.clone());
        report
    }

    /// The chain as a host would build it: who conflicts stays behind, the last one carries it.
    fn together(&mut self, sprint: &Sprint, candidates: &[Candidate]) -> Together {
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
        let mut came = Together { alone: owned(&alone), took_ms: 1_000, ..Together::default() };
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
    fn is_green(&mut self, sprint: &Sprint, items: &[&str]) -> bool {
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
    fn moves(&mut self, sprint: &Sprint, items: &[&str]) {
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
    fn watch_branches(&mut self, sprint: &mut Sprint) {
        let live = sprint.items.values().filter(|known| {
            matches!(known.stand, Stand::Running | Stand::Ended | Stand::Landing) && known.attempt > 0
        });
        let live: Vec<(String, String)> =
            live.map(|known| (known.item.id.clone(), known.item.project.clone())).collect();
        for (a, project) in &live {
            for (b, _) in live.iter().filter(|(b, other)| b > a && other == project) {
                let file = Chance::keyed(self.seed, &[word(a), word(b), word("same")]).percent(12);
                if file && self.chance.percent(30) {
                    self.batches.overlaps += 1;
                    let files = if self.chance.percent(80) { vec!["same".to_owned()] } else { Vec::new() };
                    let event = Event::Overlap { a: a.clone(), b: b.clone(), files };
                    self.log.push(sprint.hear(0, event));
                }
            }
        }
    }

    fn look(&mut self, sprint: &mut Sprint) {
        let seen: Vec<Item> = self.queue.values().map(|(item, _)| item.clone()).collect();
        for item in seen {
            let known = sprint.items.get(&item.id);
            if known.is_none_or(|known| !known.stand.is_ours() && known.item != item) {
                let entry = sprint.hear(0, Event::Seen { item });
                self.log.push(entry);
            }
        }
    }

    /// The host's loop in miniature. A crash forgets everything but the log, the queue and what agents did.
    fn play(&mut self) -> Sprint {
        let mut sprint = Sprint::default();
        let policy = self.policy();
        let begin = Event::Start { policy, autonomous: true, version: "0".to_owned(), format: FORMAT };
        self.log.push(sprint.hear(0, begin));
        for _ in 0..10_000 {
            self.look(&mut sprint);
            self.watch_branches(&mut sprint);
            let room =
                if self.chance.percent(20) { Room { load_percent: 999, memory_mb: 0 } } else { Room::PLENTY };
            self.log.extend(sprint.settle(0, room));
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
                self.log.push(sprint.hear(0, Event::Due { account }));
                continue;
            }
            assert!(
                !sprint.open.is_empty(),
                "seed {}: it waits for nothing\n{:#?}",
                self.seed,
                self.log.last()
            );
            let open: Vec<(u64, Event)> =
                sprint.open.iter().map(|(seq, order)| (*seq, order.clone())).collect();
            // Tests take longer than most things, so that others come to wait.
            let slow = |order: &Event| matches!(order, Event::Land { .. } | Event::BatchLand { .. });
            let quick: Vec<(u64, Event)> = open.iter().filter(|(_, order)| !slow(order)).cloned().collect();
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
fn account_of(project: &str) -> String {
    if project.ends_with(['0', '2', '4']) { "even".to_owned() } else { "odd".to_owned() }
}

/// C6: which accounts are shut, which may be tried, and who tries.
#[derive(Default)]
struct Gate {
    accounts: BTreeMap<String, (bool, Option<String>)>,
    parked: BTreeMap<String, String>,
    known: BTreeSet<String>,
}

impl Gate {
    fn begins(&mut self, seed: u64, item: &Item, anew: bool) {
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

    fn ended(&mut self, item: &Item, end: &RunEnd) {
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

fn taken_by(project: &str, items: &BTreeMap<String, Item>, costs: &BTreeMap<String, u64>) -> u64 {
    let of_run = |run: &str| &items[run.split('.').next().unwrap()].project;
    costs.iter().filter(|(run, _)| of_run(run) == project).map(|(_, cost)| cost).sum()
}

fn promise_in(project: &str, items: &BTreeMap<String, Item>, order: &Event) -> Option<u64> {
    match order {
        Event::Run { item, budget_usd, .. } if items[item].project == project => Some((*budget_usd)?.0),
        _ => None,
    }
}

/// The promises, from the log and the queue alone.
///
/// Gives how many runs of an earlier sprint went on.
fn audit(seed: u64, world: &World, sprint: &Sprint) -> usize {
    let policy = world.policy();
    let mut open: BTreeMap<u64, Event> = BTreeMap::new();
    let mut items: BTreeMap<String, Item> = BTreeMap::new();
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
            Event::Seen { item } => {
                items.insert(item.id.clone(), item.clone());
            }
            Event::Claim { item } => {
                assert!(claims.insert(item.clone()), "seed {seed}: {item} is taken twice");
                assert!(!broken, "seed {seed}: {item} begins after a break");
                let this = &items[item];
                assert!(this.priority < Priority::P3 || policy.low_priority, "seed {seed}: {item} is P3");
                for on in &this.depends_on {
                    assert_eq!(items[on].status, Status::Completed, "seed {seed}: {item} before {on}");
                }
                for other in ours.iter().map(|other| &items[other]) {
                    let apart = other.project != this.project
                        || other.is_apart_from(this) && !before.is_kept_apart(item, &other.id);
                    assert!(apart, "seed {seed}: {item} beside {}", other.id);
                }
                ours.insert(item.clone());
                assert!(ours.len() - gate.parked.len() <= policy.slots as usize, "seed {seed}: too many");
                let large = ours.iter().filter(|id| items[*id].estimate.is_large()).count();
                assert!(large <= policy.large as usize, "seed {seed}: too many large ones");
            }
            Event::Claimed { fence: None, .. } => {
                if let Some(Event::Claim { item }) = &answered {
                    ours.remove(item);
                }
            }
            Event::Run { item, attempt, budget_usd, .. } => {
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
            Event::Ended { end, .. } => {
                if let Some(Event::Run { item, .. } | Event::Resume { item, .. }) = &answered {
                    gate.ended(&items[item], end);
                }
                if let Some(Event::Run { budget_usd, .. }) = &answered {
                    promised -= budget_usd.map_or(0, |money| money.0);
                }
                let left = end.run_id.strip_suffix(".old").and_then(|item| world.left(item));
                if let (Some(Event::Resume { item, .. }), Some(left)) = (&answered, &left)
                    && before.items[item].end.is_none()
                    && policy.budget_usd.is_some()
                {
                    promised -= left.promised().map_or(0, |money| money.0);
                }
                let cost = costs.entry(end.run_id.clone()).or_default();
                *cost = (*cost).max(end.cost_usd.0 - left.map_or(0, |left| left.spent_usd.0));
            }
            Event::Resume { item, run_id } => {
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
            Event::Due { account } => {
                if let Some((due, _)) = gate.accounts.get_mut(account) {
                    *due = true;
                }
            }
            Event::Land { item, .. } => lands_in_order(seed, &before, &[item]),
            Event::BatchLand { candidates, .. } => {
                let names: Vec<&str> = candidates.iter().map(|one| one.item.as_str()).collect();
                assert!((2..=policy.landing_batch as usize).contains(&names.len()), "seed {seed}: {names:?}");
                lands_in_order(seed, &before, &names);
            }
            Event::Settle { item, status, .. } => {
                let landed =
                    world.targets.get(&items[item].project).is_some_and(|target| target.contains(item));
                assert_eq!(*status == Status::Completed, landed, "seed {seed}: {item} is {}", status.name());
                ours.remove(item);
                gate.parked.remove(item);
                items.get_mut(item).unwrap().status = *status;
            }
            Event::Break { .. } => broken = true,
            Event::End { why, .. } => {
                assert!(open.is_empty() && ours.is_empty(), "seed {seed}: it ends in the middle");
                assert_eq!(*why != Stop::Done, broken, "seed {seed}");
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
    let done = sprint.end.as_ref().is_some_and(|(why, _)| *why == Stop::Done);
    for (id, (item, _)) in &world.queue {
        assert_ne!(item.status, Status::Running, "seed {seed}: {id} is left running");
        let status_of = |on: &String| world.queue[on].0.status;
        let lost = item.depends_on.iter().any(|on| matches!(status_of(on), Status::Failed | Status::Blocked));
        if lost && done {
            assert!(!matches!(item.status, Status::Pending), "seed {seed}: {id} waits for what failed");
        }
        let ready = item.depends_on.iter().all(|on| status_of(on) == Status::Completed);
        let wanted = item.priority < Priority::P3 || policy.low_priority;
        let poor = budget::is_short(sprint, &item.project);
        let held = breaker::is_held(sprint, &item.project, &BTreeSet::new());
        if done && item.status == Status::Pending && ready && wanted && !poor && !held {
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
    assert!(here().all(|known| known.stand != Stand::Landing), "seed {seed}: two landings in one project");
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
        let ready = known.stand == Stand::Ended && approved && place(&known.item.id) < place(names[0]);
        ready && landing::waits_for(before, known).is_none()
    });
    assert!(in_red.is_some() || passed_over.count() == 0, "seed {seed}: somebody comes before {names:?}");
}

#[test]
fn m_n6_sprints_keep_their_promises_in_a_made_up_world() {
    let mut ends: BTreeMap<Stop, u32> = BTreeMap::new();
    let mut seen = Batches::default();
    let mut taken_up = 0;
    for seed in 0..2_000 {
        let mut world = World::new(seed, false);
        let sprint = world.play();
        taken_up += audit(seed, &world, &sprint);
        seen.landed += world.batches.landed;
        seen.red += world.batches.red;
        seen.left_out += world.batches.left_out;
        seen.overlaps += world.batches.overlaps;
        *ends.entry(sprint.end.unwrap().0).or_default() += 1;
    }
    for stop in [Stop::Done, Stop::TaskFailures, Stop::Budget, Stop::Quality] {
        assert!(ends.get(&stop).is_some_and(|n| *n > 10), "a world that is too tame: {ends:?}");
    }
    let all = [seen.landed, seen.red, seen.left_out, seen.overlaps];
    assert!(all.iter().all(|count| *count > 30), "a world that is too tame: {seen:?}");
    assert!(taken_up > 300, "a world that is too tame: {taken_up}");
}

/// Which of several that wait to be landed do land, which is refused, and how often tests run for it.
#[test]
fn i8_what_is_red_together_is_taken_apart() {
    // Items of one letter; red by themselves; red only with each other; at most so many at a time.
    for (items, red, together, most, landed, refused, tests) in [
        ("abc", "", "", 8, "abc", "", 1),
        ("abc", "", "", 1, "abc", "", 3),
        ("abcd", "", "", 2, "abcd", "", 2),
        ("abcd", "d", "", 8, "abc", "d", 4),
        ("abcd", "a", "", 8, "bcd", "a", 4),
        ("abcd", "", "bd", 8, "abc", "d", 4),
        ("abcd", "", "ab", 8, "acd", "b", 5),
        ("abcd", "", "cd", 8, "abc", "d", 4),
        ("abcdefgh", "c", "", 8, "abdefgh", "c", 5),
        ("abcdefgh", "h", "", 8, "abcdefg", "h", 5),
        ("abcdefgh", "ch", "", 8, "abdefg", "ch", 9),
        ("abcd", "abcd", "", 8, "", "abcd", 8),
        ("ab", "", "ab", 8, "a", "b", 3),
    ] {
        let found = taken_apart(items, red, together, most);
        assert_eq!(found, (landed.to_owned(), refused.to_owned(), tests), "{items} {red} {together} {most}");
    }
}

fn taken_apart(items: &str, red: &str, together: &str, most: u32) -> (String, String, u32) {
    let policy =
        Policy { slots: 26, landing_batch: most, failures: 100, checkpoint_tasks: 100, ..Policy::default() };
    let mut sprint = start(policy);
    for name in items.chars() {
        let files = vec![format!("{name}.rs")];
        sprint.hear(0, Event::Seen { item: Item { files, ..item(&name.to_string(), "p") } });
    }
    let (mut landed, mut refused, mut tests) = (String::new(), String::new(), 0);
    while sprint.settle(0, Room::PLENTY).iter().all(|entry| !matches!(entry.event, Event::End { .. })) {
        // All runs end before the first of them is landed.
        for (seq, order) in sprint.open.clone() {
            let mut tested = |names: &str| {
                tests += 1;
                let content = format!("{landed}{names}");
                let is_red = names.chars().any(|name| red.contains(name))
                    || !together.is_empty() && together.chars().all(|name| content.contains(name));
                landed.push_str(if is_red { "" } else { names });
                !is_red
            };
            let merged = |item: &str| ended(item, RunStatus::Merged, Reason::Approved);
            let report = match order {
                Event::Claim { .. } => Event::Claimed { start_seq: seq, fence: Some(1), left: None },
                Event::Run { item, .. } => {
                    let end = ended(&item, RunStatus::AwaitingMerge, Reason::Approved);
                    Event::Ended { start_seq: seq, end }
                }
                Event::Land { item, .. } if tested(&item) => {
                    Event::Landed { start_seq: seq, end: merged(&item) }
                }
                Event::Land { item, .. } => {
                    refused.push_str(&item);
                    Event::Landed {
                        start_seq: seq,
                        end: ended(&item, RunStatus::Stopped, Reason::TestsFailed),
                    }
                }
                Event::BatchLand { candidates, .. } => {
                    let names: Vec<String> = candidates.into_iter().map(|one| one.item).collect();
                    let mut came = Together::default();
                    if tested(&names.concat()) {
                        let end = |item: &String| ItemEnd { item: item.clone(), end: merged(item) };
                        came.ends = names.iter().map(end).collect();
                    } else {
                        came.red = names;
                    }
                    Event::BatchLanded { start_seq: seq, came }
                }
                _ => Event::Settled { start_seq: seq },
            };
            sprint.hear(0, report);
        }
    }
    (landed, refused, tests)
}

/// Two that change the same: the later one waits, and starts over if the other landed.
#[test]
fn bx_28_who_changes_the_same_waits_and_starts_over() {
    for (first, again) in
        [((RunStatus::Merged, Reason::Approved), true), ((RunStatus::Stopped, Reason::TestsFailed), false)]
    {
        let mut sprint = start(Policy::default());
        for name in ["a", "b"] {
            let files = vec![format!("{name}.rs")];
            sprint.hear(0, Event::Seen { item: Item { files, ..item(name, "p") } });
        }
        let find = |sprint: &Sprint, wanted: fn(&Event) -> bool, item: &str| {
            let about = |order: &Event| format!("{order:?}").contains(&format!("item: \"{item}\""));
            let mut open = sprint.open.iter();
            open.find(|(_, order)| wanted(order) && about(order)).map(|(seq, _)| *seq)
        };
        sprint.settle(0, Room::PLENTY);
        for (seq, _) in sprint.open.clone() {
            sprint.hear(0, Event::Claimed { start_seq: seq, fence: Some(1), left: None });
        }
        sprint.settle(0, Room::PLENTY);
        let is_run: fn(&Event) -> bool = |order| matches!(order, Event::Run { .. });
        let is_land: fn(&Event) -> bool = |order| matches!(order, Event::Land { .. });
        let files = vec!["price.txt".to_owned()];
        sprint.hear(0, Event::Overlap { a: "b".to_owned(), b: "a".to_owned(), files });
        let approved = |item: &str| ended(item, RunStatus::AwaitingMerge, Reason::Approved);
        let run_b = find(&sprint, is_run, "b").unwrap();
        sprint.hear(0, Event::Ended { start_seq: run_b, end: approved("b") });
        assert!(sprint.settle(0, Room::PLENTY).is_empty(), "b waits for a, which runs");
        let run_a = find(&sprint, is_run, "a").unwrap();
        sprint.hear(0, Event::Ended { start_seq: run_a, end: approved("a") });
        sprint.settle(0, Room::PLENTY);
        assert_eq!(find(&sprint, is_land, "b"), None, "b waits for a, which lands");
        let land_a = find(&sprint, is_land, "a").unwrap();
        sprint.hear(0, Event::Landed { start_seq: land_a, end: ended("a", first.0, first.1) });
        sprint.settle(0, Room::PLENTY);
        let settle = *sprint.open.keys().next().unwrap();
        sprint.hear(0, Event::Settled { start_seq: settle });
        sprint.settle(0, Room::PLENTY);
        assert_eq!(find(&sprint, is_run, "b").is_some(), again, "{first:?}");
        assert_eq!(find(&sprint, is_land, "b").is_some(), !again, "{first:?}");
        assert_eq!(sprint.streak, u32::from(!again), "starting over is no failure");
        assert!(sprint.is_kept_apart("a", "b"));
    }
}

#[test]
fn i6_a_crash_at_any_line_breaks_no_promise() {
    for seed in 0..1_000 {
        let mut world = World::new(seed, true);
        let sprint = world.play();
        audit(seed, &world, &sprint);
    }
}

#[test]
fn af_153_three_failures_in_a_row_are_a_hard_break() {
    for (outcomes, broke) in
        [("fff", true), ("ffcf", false), ("ffcfff", true), ("fnff", true), ("ffn", false)]
    {
        let mut sprint = start(Policy { slots: 1, checkpoint_tasks: 100, ..Policy::default() });
        for n in 0..outcomes.len() + 1 {
            sprint.hear(0, Event::Seen { item: item(&format!("i{n}"), "p") });
        }
        let mut left = outcomes.chars();
        while sprint.settle(0, Room::PLENTY).iter().all(|entry| !matches!(entry.event, Event::End { .. })) {
            let (seq, order) =
                sprint.open.first_key_value().map(|(seq, order)| (*seq, order.clone())).unwrap();
            let report = match order {
                Event::Claim { .. } => Event::Claimed { start_seq: seq, fence: Some(1), left: None },
                Event::Run { item, .. } => {
                    let end = match left.next() {
                        Some('f') => ended(&item, RunStatus::Stopped, Reason::MaxCycles),
                        Some('n') => ended(&item, RunStatus::AwaitingAnswer, Reason::NeedsContext),
                        _ => ended(&item, RunStatus::Merged, Reason::Approved),
                    };
                    Event::Ended { start_seq: seq, end }
                }
                _ => Event::Settled { start_seq: seq },
            };
            sprint.hear(0, report);
        }
        let hard = matches!(sprint.broke, Some((Stop::TaskFailures, true, _)));
        assert_eq!(hard, broke, "{outcomes}");
    }
}

/// A sprint that broke called a run in. The next one goes on with it if its purse bears that, and counts only what it
/// spends itself; what ended for good is not gone on with, and what never began again is not forgotten.
#[test]
fn bx_22_what_an_earlier_sprint_left_is_gone_on_with() {
    let dollars = |n: u64| Money(n * DOLLAR);
    let left = |most| Left { run_id: "old.a.1".to_owned(), spent_usd: dollars(3), budget_usd: most };
    let begun = |budget_usd, share: Option<u64>, left: Option<Left>| {
        let shares = share.map(|percent| ("p".to_owned(), percent)).into_iter().collect();
        let mut sprint = start(Policy { budget_usd, shares, ..Policy::default() });
        sprint.hear(0, Event::Seen { item: item("a", "p") });
        let claim = sprint.settle(0, Room::PLENTY);
        sprint.hear(0, Event::Claimed { start_seq: claim[0].seq, fence: Some(1), left });
        sprint
    };
    for (name, budget, share, found, goes_on) in [
        ("nothing was left", None, None, None, false),
        ("no bounds at all", None, None, Some(left(None)), true),
        ("bounded by itself", None, None, Some(left(Some(dollars(9)))), true),
        ("seven, and six are promised", Some(7), None, Some(left(Some(dollars(9)))), true),
        ("five, and six are promised", Some(5), None, Some(left(Some(dollars(9)))), false),
        ("a bound, and it has none", Some(50), None, Some(left(None)), false),
        ("half of ten is too little", Some(10), Some(50), Some(left(Some(dollars(9)))), false),
    ] {
        let mut sprint = begun(budget.map(dollars), share, found);
        let orders = sprint.settle(0, Room::PLENTY);
        let order = &orders[0].event;
        let resumed = matches!(order, Event::Resume { run_id, .. } if run_id == "old.a.1");
        let anew = matches!(order, Event::Run { attempt: 1, .. });
        assert_eq!((resumed, anew), (goes_on, !goes_on), "{name}: {order:?}");
        assert_eq!(sprint.items["a"].runs(), 1, "{name}");
    }

    let cost = |end: RunEnd| RunEnd { cost_usd: dollars(5), ..end };
    let stopped = RunEnd {
        stopped: true,
        status: None,
        reason: None,
        ..ended("old.a.1", RunStatus::Failed, Reason::Blocked)
    };
    let moved = ended("old.a.1", RunStatus::AwaitingMerge, Reason::BaseMoved);
    let red = ended("old.a.1", RunStatus::Stopped, Reason::TestsFailed);
    for (name, end, follows) in [
        ("called in once more", stopped, "pending old.a.1"),
        ("failed", red, "failed"),
        ("the target moved", moved, "anew"),
    ] {
        let mut sprint = begun(Some(dollars(50)), None, Some(left(Some(dollars(9)))));
        let orders = sprint.settle(0, Room::PLENTY);
        assert_eq!(budget::whole(&sprint).promised, dollars(6), "{name}");
        sprint.hear(0, Event::Ended { start_seq: orders[0].seq, end: cost(end) });
        assert_eq!(sprint.spent(), dollars(2), "{name}: three of five were spent before");
        let next = sprint.settle(0, Room::PLENTY).remove(0).event;
        let told = match &next {
            Event::Settle { status, run_id, .. } => {
                [status.name(), run_id.as_deref().unwrap_or_default()].join(" ").trim().to_owned()
            }
            Event::Run { attempt: 1, .. } => "anew".to_owned(),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(told, follows, "{name}");
    }

    let mut sprint = begun(None, None, Some(left(None)));
    let event = Event::Break { why: Stop::TaskFailures, hard: true, detail: String::new() };
    sprint.apply(&Entry { seq: sprint.lines + 1, at: 0, event });
    let given_back = &sprint.settle(0, Room::PLENTY)[0].event;
    let told = matches!(given_back, Event::Settle { run_id: Some(run), .. } if run == "old.a.1");
    assert!(told, "claimed and not begun: {given_back:?}");
}

/// A run that its provider turned away goes on when its time has come, alone at first, and is no failure.
#[test]
fn c6_a_busy_provider_holds_everybody_back_until_one_has_tried() {
    let mut sprint = start(Policy::default());
    for (id, project) in [("a", "p"), ("b", "q"), ("c", "r")] {
        sprint.hear(0, Event::Seen { item: item(id, project) });
    }
    let orders = |sprint: &mut Sprint| -> Vec<(u64, Event)> {
        let entries = sprint.settle(0, Room::PLENTY);
        entries.into_iter().map(|entry| (entry.seq, entry.event)).collect()
    };
    let claims = orders(&mut sprint);
    for (seq, _) in &claims {
        sprint.hear(0, Event::Claimed { start_seq: *seq, fence: Some(1), left: None });
    }
    let runs = orders(&mut sprint);
    assert_eq!(runs.len(), 3);
    let busy = |run: &str| RunEnd {
        accounts: vec!["claude".to_owned()],
        busy: Some(Busy { accounts: vec!["claude".to_owned()], until: Some(60_000) }),
        ..ended(run, RunStatus::Stopped, Reason::ProviderBusy)
    };
    sprint.hear(0, Event::Ended { start_seq: runs[0].0, end: busy("a.1") });
    sprint.hear(0, Event::Ended { start_seq: runs[1].0, end: busy("b.1") });
    sprint.hear(0, Event::Seen { item: item("d", "s") });
    assert_eq!(orders(&mut sprint), [], "nobody goes on and nobody begins");
    sprint.hear(0, Event::Due { account: "claude".to_owned() });
    let tries = orders(&mut sprint);
    let resume = |item: &str| Event::Resume { item: item.to_owned(), run_id: format!("{item}.1") };
    assert_eq!(tries.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>(), [resume("a")]);
    let mut refused = sprint.clone();
    refused.hear(0, Event::Ended { start_seq: tries[0].0, end: busy("a.1") });
    assert_eq!(orders(&mut refused), [], "it was too early");
    sprint.hear(0, Event::Served { account: "claude".to_owned() });
    let follow: Vec<Event> = orders(&mut sprint).into_iter().map(|(_, event)| event).collect();
    assert_eq!(follow[0], resume("b"));
    assert!(matches!(&follow[1], Event::Claim { item } if item == "d"), "{follow:?}");
    assert_eq!(sprint.streak, 0);
}

#[test]
fn af_003_a_person_is_asked_about_each_batch() {
    let mut sprint = Sprint::default();
    let begin = Event::Start {
        policy: Policy::default(),
        autonomous: false,
        version: "0".to_owned(),
        format: FORMAT,
    };
    sprint.hear(0, begin);
    for n in 0..5 {
        sprint.hear(0, Event::Seen { item: item(&format!("i{n}"), &format!("p{n}")) });
    }
    let busy = Room { load_percent: 999, memory_mb: 0 };
    let asked = sprint.settle(0, busy);
    let [Entry { seq, event: Event::Ask { items }, .. }] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(items.len(), 4);
    assert!(sprint.settle(0, Room::PLENTY).is_empty(), "nothing begins before the answer");
    let mut other = sprint.clone();
    sprint.hear(0, Event::Answered { start_seq: *seq, yes: true });
    let claims =
        |entries: &[Entry]| entries.iter().filter(|entry| matches!(entry.event, Event::Claim { .. })).count();
    assert_eq!(claims(&sprint.settle(0, busy)), 1, "a busy machine takes one");
    assert_eq!(claims(&sprint.settle(0, busy)), 0);
    assert_eq!(claims(&sprint.settle(0, Room::PLENTY)), 3, "and the others when it can");
    other.hear(0, Event::Answered { start_seq: *seq, yes: false });
    let end = other.settle(0, Room::PLENTY);
    assert!(matches!(&end[..], [Entry { event: Event::End { why: Stop::Declined, .. }, .. }]), "{end:?}");
}
