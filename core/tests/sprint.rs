//! Sprints in a made-up world: items that wait for each other, runs that end in every way, landings that conflict, other
//! sprints that take items away, and a crash after any line. The promises are checked on the log alone.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a promise is about some lines")]

#[path = "sim/chance.rs"]
#[expect(dead_code, reason = "the other simulation uses all of it")]
mod chance;

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::sprint::event::{Entry, Event, FORMAT, RunEnd, Stop};
use archeflow_core::sprint::policy::{Policy, Room};
use archeflow_core::sprint::queue::{Estimate, Item, Priority, Status};
use archeflow_core::sprint::standing::{Follows, after};
use archeflow_core::sprint::{Sprint, budget, decide};
use archeflow_core::words::{Money, Reason, RunStatus};
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
    crashes: bool,
}

impl World {
    fn new(seed: u64, crashes: bool) -> World {
        let mut chance = Chance::keyed(seed, &[word("queue")]);
        let mut queue = BTreeMap::new();
        let count = chance.number(1, 24);
        for n in 0..count {
            let id = format!("i{n:02}");
            let depends_on = (0..n).filter(|_| chance.percent(8)).map(|on| format!("i{on:02}")).collect();
            let files = if chance.percent(30) { vec![format!("f{}", chance.below(3))] } else { Vec::new() };
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
                ..item(&id, &format!("p{}", chance.below(6)))
            };
            queue.insert(id, (made, None));
        }
        World { seed, chance, queue, log: Vec::new(), performed: BTreeMap::new(), crashes }
    }

    fn policy(&self) -> Policy {
        let mut chance = Chance::keyed(self.seed, &[word("policy")]);
        Policy {
            slots: chance.number(1, 5),
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

    /// What a run does depends on the item and the attempt alone, so that it is the same after a crash.
    fn outcome(&self, id: &str, attempt: u64, landing: bool, budget: Option<Money>) -> RunEnd {
        let key = [word(id), attempt, u64::from(landing)];
        let mut chance = Chance::keyed(self.seed, &key);
        let run_id = format!("{id}.{attempt}");
        let cost = Money(chance.below(2 * DOLLAR));
        let base = |status, reason| RunEnd {
            cost_usd: budget.map_or(cost, |most| cost.min(most)),
            ..ended(&run_id, status, reason)
        };
        match (landing, chance.below(10)) {
            (false, 0) => RunEnd { status: None, reason: None, ..base(RunStatus::Failed, Reason::Blocked) },
            (false, 1) => base(RunStatus::Stopped, Reason::MaxCycles),
            (false, 2) => base(RunStatus::AwaitingAnswer, Reason::NeedsContext),
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
                Event::Claimed { start_seq: seq, fence: fence.filter(|_| free) }
            }
            Event::Run { item, attempt, budget_usd } => Event::Ended {
                start_seq: seq,
                end: self.outcome(item, u64::from(*attempt), false, *budget_usd),
            },
            Event::Land { item, .. } => {
                let attempt = u64::from(sprint.items[item].attempt);
                Event::Landed { start_seq: seq, end: self.outcome(item, attempt, true, None) }
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
            let room =
                if self.chance.percent(20) { Room { load_percent: 999, memory_mb: 0 } } else { Room::PLENTY };
            self.log.extend(sprint.settle(0, room));
            if sprint.end.is_some() {
                return sprint;
            }
            assert!(
                !sprint.open.is_empty(),
                "seed {}: it waits for nothing\n{:#?}",
                self.seed,
                self.log.last()
            );
            let open: Vec<(u64, Event)> =
                sprint.open.iter().map(|(seq, order)| (*seq, order.clone())).collect();
            let (seq, order) = self.chance.pick(&open);
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
fn audit(seed: u64, world: &World, sprint: &Sprint) {
    let policy = world.policy();
    let mut open: BTreeMap<u64, Event> = BTreeMap::new();
    let mut items: BTreeMap<String, Item> = BTreeMap::new();
    let mut claims: BTreeSet<String> = BTreeSet::new();
    let mut ours: BTreeSet<String> = BTreeSet::new();
    let mut runs: BTreeSet<(String, u32)> = BTreeSet::new();
    let mut broken = false;
    let mut promised = 0_u64;
    let mut costs: BTreeMap<String, u64> = BTreeMap::new();
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
                    let apart = other.project != this.project || other.is_apart_from(this);
                    assert!(apart, "seed {seed}: {item} beside {}", other.id);
                }
                ours.insert(item.clone());
                assert!(ours.len() <= policy.slots as usize, "seed {seed}: too many");
                let large = ours.iter().filter(|id| items[*id].estimate.is_large()).count();
                assert!(large <= policy.large as usize, "seed {seed}: too many large ones");
            }
            Event::Claimed { fence: None, .. } => {
                if let Some(Event::Claim { item }) = &answered {
                    ours.remove(item);
                }
            }
            Event::Run { item, attempt, budget_usd } => {
                assert!(ours.contains(item), "seed {seed}: {item} runs and is not ours");
                assert!(runs.insert((item.clone(), *attempt)), "seed {seed}: {item} runs twice");
                assert!(*attempt <= policy.reruns + 1, "seed {seed}: {item} runs too often");
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
                if let Some(Event::Run { budget_usd, .. }) = &answered {
                    promised -= budget_usd.map_or(0, |money| money.0);
                }
                let cost = costs.entry(end.run_id.clone()).or_default();
                *cost = (*cost).max(end.cost_usd.0);
            }
            Event::Land { item, .. } => {
                let beside = open.values().any(|order| {
                    matches!(order, Event::Land { item: other, .. } if items[other].project == items[item].project)
                });
                assert!(!beside, "seed {seed}: two landings in one project");
            }
            Event::Settle { item, status, .. } => {
                ours.remove(item);
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
        if done && item.status == Status::Pending && ready && wanted && !poor {
            assert!(claims.contains(id), "seed {seed}: {id} was forgotten");
        }
    }
}

#[test]
fn m_n6_sprints_keep_their_promises_in_a_made_up_world() {
    let mut ends: BTreeMap<Stop, u32> = BTreeMap::new();
    for seed in 0..1_000 {
        let mut world = World::new(seed, false);
        let sprint = world.play();
        audit(seed, &world, &sprint);
        *ends.entry(sprint.end.unwrap().0).or_default() += 1;
    }
    for stop in [Stop::Done, Stop::TaskFailures, Stop::Budget, Stop::Quality] {
        assert!(ends.get(&stop).is_some_and(|n| *n > 10), "a world that is too tame: {ends:?}");
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
                Event::Claim { .. } => Event::Claimed { start_seq: seq, fence: Some(1) },
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
    let asked = sprint.settle(0, Room::PLENTY);
    let [Entry { seq, event: Event::Ask { items }, .. }] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(items.len(), 4);
    assert!(sprint.settle(0, Room::PLENTY).is_empty(), "nothing begins before the answer");
    let mut other = sprint.clone();
    sprint.hear(0, Event::Answered { start_seq: *seq, yes: true });
    let claims = sprint.settle(0, Room::PLENTY);
    assert_eq!(claims.iter().filter(|entry| matches!(entry.event, Event::Claim { .. })).count(), 4);
    other.hear(0, Event::Answered { start_seq: *seq, yes: false });
    let end = other.settle(0, Room::PLENTY);
    assert!(matches!(&end[..], [Entry { event: Event::End { why: Stop::Declined, .. }, .. }]), "{end:?}");
}
