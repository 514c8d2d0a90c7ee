//! Sprints in a made-up world: items that wait for each other, runs that end in every way, landings that conflict, other
//! sprints that take items away, and a crash after any line. The promises are checked on the log alone.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]
#![expect(clippy::wildcard_enum_match_arm, reason = "a promise is about some lines")]

#[path = "sprint/audit.rs"]
mod audit;
#[path = "sim/chance.rs"]
#[expect(dead_code, reason = "the other simulation uses all of it")]
mod chance;
#[path = "sprint/full_scan.rs"]
mod full_scan;
#[path = "sprint/world.rs"]
mod world;

use std::collections::BTreeMap;

use archeflow_core::model::{Money, Reason, RunStatus, Workflow};
use archeflow_core::sprint::event::{
    BatchLanding, Busy, FORMAT, ItemEnd, RunEnd, SprintEntry, SprintEvent, SprintStop, UnfinishedRun,
};
use archeflow_core::sprint::items::looks;
use archeflow_core::sprint::policy::{Room, SprintPolicy};
use archeflow_core::sprint::queue::{ItemStatus, Priority, QueueItem, TaskSize};
use archeflow_core::sprint::standing::{Follows, after};
use archeflow_core::sprint::{Sprint, budget, decide};
use audit::audit;
use world::{Batches, World};

const DOLLAR: u64 = 1_000_000;

fn item(id: &str, project: &str) -> QueueItem {
    QueueItem {
        id: id.to_owned(),
        project: project.to_owned(),
        task: format!("Do {id}"),
        priority: Priority::P1,
        estimate: TaskSize::S,
        status: ItemStatus::Pending,
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

fn start(policy: SprintPolicy) -> Sprint {
    let mut sprint = Sprint::default();
    sprint.hear(0, SprintEvent::Start { policy, autonomous: true, version: "0".to_owned(), format: FORMAT });
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
        ("a p P1 S|b q P1 S", Room { load_percent: 301, memory_mb: 9_000, slots: None }, "a"),
        ("a p P1 S|b q P1 S", Room { load_percent: 0, memory_mb: 255, slots: None }, "a"),
        ("a p P1 S|b q P1 S", Room { load_percent: 300, memory_mb: 256, slots: None }, "a b"),
        ("a p P1 S|b q P0 S", Room { slots: Some(1), ..Room::PLENTY }, "b"),
        ("a p P1 S|b q P0 S", Room { slots: Some(0), ..Room::PLENTY }, ""),
        (
            "a p P1 S|b q P1 S|c r P1 S|d s P1 S|e t P1 S",
            Room { slots: Some(5), ..Room::PLENTY },
            "a b c d e",
        ),
        ("a p P1 S|b q P1 S", Room { load_percent: 301, memory_mb: 9_000, slots: Some(2) }, "a"),
        ("a p P1 L|b p P1 S x.rs|c p P2 S y.rs|d p P3 S z.rs", Room::PLENTY, "a"),
        ("b p P2 S x.rs|a p P1 L y.rs|c p P2 L z.rs|d p P2 S|e p P2 S w.rs", Room::PLENTY, "a b c e"),
    ] {
        let mut sprint = start(SprintPolicy::default());
        for row in items.split('|') {
            let words: Vec<&str> = row.split(' ').collect();
            let seen = QueueItem {
                priority: Priority::parse(words[2]).unwrap(),
                estimate: TaskSize::parse(words[3]).unwrap(),
                files: words[4..].iter().map(|file| (*file).to_owned()).collect(),
                ..item(words[0], words[1])
            };
            sprint.hear(0, SprintEvent::Seen { item: seen });
        }
        let next: Vec<&str> = decide::next(&sprint, room).iter().map(|item| &*item.id).collect();
        assert_eq!(next.join(" "), picked, "{items}");
    }
}

/// Of ten dollars so many are spent: what a task of this size, with or without a workflow that was named, begins as, and
/// whether that is worth a word.
#[test]
fn bx_28_af_151_with_little_left_less_is_done() {
    let (small, middle, large) = (TaskSize::S, TaskSize::M, TaskSize::L);
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
        let mut sprint =
            Sprint { autonomous: true, ..start(SprintPolicy { budget_usd, ..SprintPolicy::default() }) };
        let workflow = named.map(str::to_owned);
        sprint.hear(0, SprintEvent::Seen { item: QueueItem { estimate, workflow, ..item("a", "p") } });
        sprint.spent.note("before", "", Money(spent * DOLLAR / 1_000));
        let mut events: Vec<SprintEvent> =
            sprint.settle(0, Room::PLENTY).into_iter().map(|entry| entry.event).collect();
        let start_seq = *sprint.open.keys().next().unwrap();
        sprint.hear(0, SprintEvent::Claimed { start_seq, fence: Some(1), left: None });
        events.extend(sprint.settle(0, Room::PLENTY).into_iter().map(|entry| entry.event));
        let run = events.iter().find_map(|event| match event {
            SprintEvent::Run { workflow, .. } => Some(*workflow),
            _ => None,
        });
        assert_eq!(run, Some(begins_as), "{spent} of 10,000, {}", estimate.name());
        let words = events.iter().filter(|event| matches!(event, SprintEvent::Warning { .. })).count();
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
        let mut sprint = start(SprintPolicy { budget_usd, shares, ..SprintPolicy::default() });
        for (id, project) in [("a", "p"), ("b", "q")] {
            sprint.hear(0, SprintEvent::Seen { item: item(id, project) });
        }
        if let Some((id, dollars)) = spent.split_once(' ') {
            let cost = Money(dollars.parse::<u64>().unwrap() * DOLLAR);
            let project = sprint.items[id].item.project.clone();
            sprint.spent.note(id, &project, cost);
        }
        let found =
            ["p", "q"].map(|project| Some(budget::allowance(&sprint, project, Room::PLENTY)?.0 / 1_000));
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
        (Merged, Reason::Approved, false, 0, settle(ItemStatus::Completed)),
        (AwaitingMerge, Reason::Approved, false, 0, ("land", None)),
        (AwaitingMerge, Reason::Approved, true, 0, settle(ItemStatus::Failed)),
        (AwaitingMerge, Reason::NoTestCommand, false, 0, settle(ItemStatus::Failed)),
        (AwaitingMerge, Reason::MergeConflict, true, 1, ("rerun", None)),
        (AwaitingMerge, Reason::MergeConflict, true, 0, settle(ItemStatus::Failed)),
        (Stopped, Reason::BaseMoved, true, 1, ("rerun", None)),
        (Failed, Reason::TestsFailed, true, 1, settle(ItemStatus::Failed)),
        (AwaitingAnswer, Reason::NeedsContext, false, 1, settle(ItemStatus::Pending)),
        (Stopped, Reason::ProviderBusy, false, 1, settle(ItemStatus::Pending)),
        (WiggumBreak, Reason::Oscillation, false, 1, settle(ItemStatus::Failed)),
        (Stopped, Reason::MaxCycles, false, 1, settle(ItemStatus::Failed)),
    ] {
        let found = match after(&ended("r", status, reason), landing, reruns) {
            Follows::Land => ("land", None),
            Follows::Rerun => ("rerun", None),
            Follows::Settle(status, _) => ("settle", Some(status)),
        };
        assert_eq!(found, follows, "{} {} {landing} {reruns}", status.name(), reason.name());
    }
    let crashed = RunEnd { status: None, reason: None, ..ended("r", Failed, Reason::Blocked) };
    assert!(matches!(after(&crashed, false, 1), Follows::Settle(ItemStatus::Failed, _)));
    let called_in = RunEnd { stopped: true, ..crashed };
    assert!(matches!(after(&called_in, false, 1), Follows::Settle(ItemStatus::Pending, _)));
}

#[test]
fn m_n6_sprints_keep_their_promises_in_a_made_up_world() {
    let mut ends: BTreeMap<SprintStop, u32> = BTreeMap::new();
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
    for stop in [SprintStop::Done, SprintStop::TaskFailures, SprintStop::Budget, SprintStop::Quality] {
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
    let policy = SprintPolicy {
        slots: 26,
        landing_batch: most,
        failures: 100,
        checkpoint_tasks: 100,
        ..SprintPolicy::default()
    };
    let mut sprint = start(policy);
    for name in items.chars() {
        let files = vec![format!("{name}.rs")];
        sprint.hear(0, SprintEvent::Seen { item: QueueItem { files, ..item(&name.to_string(), "p") } });
    }
    let (mut landed, mut refused, mut tests) = (String::new(), String::new(), 0);
    while sprint.settle(0, Room::PLENTY).iter().all(|entry| !matches!(entry.event, SprintEvent::End { .. })) {
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
                SprintEvent::Claim { .. } => {
                    SprintEvent::Claimed { start_seq: seq, fence: Some(1), left: None }
                }
                SprintEvent::Run { item, .. } => {
                    let end = ended(&item, RunStatus::AwaitingMerge, Reason::Approved);
                    SprintEvent::Ended { start_seq: seq, end }
                }
                SprintEvent::Land { item, .. } if tested(&item) => {
                    SprintEvent::Landed { start_seq: seq, end: merged(&item) }
                }
                SprintEvent::Land { item, .. } => {
                    refused.push_str(&item);
                    SprintEvent::Landed {
                        start_seq: seq,
                        end: ended(&item, RunStatus::Stopped, Reason::TestsFailed),
                    }
                }
                SprintEvent::BatchLand { candidates, .. } => {
                    let names: Vec<String> = candidates.into_iter().map(|one| one.item).collect();
                    let mut came = BatchLanding::default();
                    if tested(&names.concat()) {
                        let end = |item: &String| ItemEnd { item: item.clone(), end: merged(item) };
                        came.ends = names.iter().map(end).collect();
                    } else {
                        came.red = names;
                    }
                    SprintEvent::BatchLanded { start_seq: seq, came }
                }
                _ => SprintEvent::Settled { start_seq: seq },
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
        let mut sprint = start(SprintPolicy::default());
        for name in ["a", "b"] {
            let files = vec![format!("{name}.rs")];
            sprint.hear(0, SprintEvent::Seen { item: QueueItem { files, ..item(name, "p") } });
        }
        let find = |sprint: &Sprint, wanted: fn(&SprintEvent) -> bool, item: &str| {
            let about = |order: &SprintEvent| format!("{order:?}").contains(&format!("item: \"{item}\""));
            let mut open = sprint.open.iter();
            open.find(|(_, order)| wanted(order) && about(order)).map(|(seq, _)| *seq)
        };
        sprint.settle(0, Room::PLENTY);
        for (seq, _) in sprint.open.clone() {
            sprint.hear(0, SprintEvent::Claimed { start_seq: seq, fence: Some(1), left: None });
        }
        sprint.settle(0, Room::PLENTY);
        let is_run: fn(&SprintEvent) -> bool = |order| matches!(order, SprintEvent::Run { .. });
        let is_land: fn(&SprintEvent) -> bool = |order| matches!(order, SprintEvent::Land { .. });
        let files = vec!["price.txt".to_owned()];
        sprint.hear(0, SprintEvent::Overlap { a: "b".to_owned(), b: "a".to_owned(), files });
        let approved = |item: &str| ended(item, RunStatus::AwaitingMerge, Reason::Approved);
        let run_b = find(&sprint, is_run, "b").unwrap();
        sprint.hear(0, SprintEvent::Ended { start_seq: run_b, end: approved("b") });
        assert!(sprint.settle(0, Room::PLENTY).is_empty(), "b waits for a, which runs");
        let run_a = find(&sprint, is_run, "a").unwrap();
        sprint.hear(0, SprintEvent::Ended { start_seq: run_a, end: approved("a") });
        sprint.settle(0, Room::PLENTY);
        assert_eq!(find(&sprint, is_land, "b"), None, "b waits for a, which lands");
        let land_a = find(&sprint, is_land, "a").unwrap();
        sprint.hear(0, SprintEvent::Landed { start_seq: land_a, end: ended("a", first.0, first.1) });
        sprint.settle(0, Room::PLENTY);
        let settle = *sprint.open.keys().next().unwrap();
        sprint.hear(0, SprintEvent::Settled { start_seq: settle });
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
        let mut sprint = start(SprintPolicy { slots: 1, checkpoint_tasks: 100, ..SprintPolicy::default() });
        for n in 0..outcomes.len() + 1 {
            sprint.hear(0, SprintEvent::Seen { item: item(&format!("i{n}"), "p") });
        }
        let mut left = outcomes.chars();
        while sprint
            .settle(0, Room::PLENTY)
            .iter()
            .all(|entry| !matches!(entry.event, SprintEvent::End { .. }))
        {
            let (seq, order) =
                sprint.open.first_key_value().map(|(seq, order)| (*seq, order.clone())).unwrap();
            let report = match order {
                SprintEvent::Claim { .. } => {
                    SprintEvent::Claimed { start_seq: seq, fence: Some(1), left: None }
                }
                SprintEvent::Run { item, .. } => {
                    let end = match left.next() {
                        Some('f') => ended(&item, RunStatus::Stopped, Reason::MaxCycles),
                        Some('n') => ended(&item, RunStatus::AwaitingAnswer, Reason::NeedsContext),
                        _ => ended(&item, RunStatus::Merged, Reason::Approved),
                    };
                    SprintEvent::Ended { start_seq: seq, end }
                }
                _ => SprintEvent::Settled { start_seq: seq },
            };
            sprint.hear(0, report);
        }
        let hard = matches!(sprint.broke, Some((SprintStop::TaskFailures, true, _)));
        assert_eq!(hard, broke, "{outcomes}");
    }
}

/// A sprint that broke called a run in. The next one goes on with it if its purse bears that, and counts only what it
/// spends itself; what ended for good is not gone on with, and what never began again is not forgotten.
#[test]
fn bx_22_what_an_earlier_sprint_left_is_gone_on_with() {
    let dollars = |n: u64| Money(n * DOLLAR);
    let left = |most| UnfinishedRun { run_id: "old.a.1".to_owned(), spent_usd: dollars(3), budget_usd: most };
    let begun = |budget_usd, share: Option<u64>, left: Option<UnfinishedRun>| {
        let shares = share.map(|percent| ("p".to_owned(), percent)).into_iter().collect();
        let mut sprint = start(SprintPolicy { budget_usd, shares, ..SprintPolicy::default() });
        sprint.hear(0, SprintEvent::Seen { item: item("a", "p") });
        let claim = sprint.settle(0, Room::PLENTY);
        sprint.hear(0, SprintEvent::Claimed { start_seq: claim[0].seq, fence: Some(1), left });
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
        let resumed = matches!(order, SprintEvent::Resume { run_id, .. } if run_id == "old.a.1");
        let anew = matches!(order, SprintEvent::Run { attempt: 1, .. });
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
        sprint.hear(0, SprintEvent::Ended { start_seq: orders[0].seq, end: cost(end) });
        assert_eq!(sprint.spent(), dollars(2), "{name}: three of five were spent before");
        let next = sprint.settle(0, Room::PLENTY).remove(0).event;
        let told = match &next {
            SprintEvent::Settle { status, run_id, .. } => {
                [status.name(), run_id.as_deref().unwrap_or_default()].join(" ").trim().to_owned()
            }
            SprintEvent::Run { attempt: 1, .. } => "anew".to_owned(),
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(told, follows, "{name}");
    }

    let mut sprint = begun(None, None, Some(left(None)));
    let event = SprintEvent::Break { why: SprintStop::TaskFailures, hard: true, detail: String::new() };
    sprint.apply(&SprintEntry { seq: sprint.lines + 1, at: 0, event });
    let given_back = &sprint.settle(0, Room::PLENTY)[0].event;
    let told = matches!(given_back, SprintEvent::Settle { run_id: Some(run), .. } if run == "old.a.1");
    assert!(told, "claimed and not begun: {given_back:?}");
}

/// A run that its provider turned away goes on when its time has come, alone at first, and is no failure.
#[test]
fn c6_a_busy_provider_holds_all_runs_until_one_has_tried() {
    let mut sprint = start(SprintPolicy::default());
    for (id, project) in [("a", "p"), ("b", "q"), ("c", "r")] {
        sprint.hear(0, SprintEvent::Seen { item: item(id, project) });
    }
    let orders = |sprint: &mut Sprint| -> Vec<(u64, SprintEvent)> {
        let entries = sprint.settle(0, Room::PLENTY);
        entries.into_iter().map(|entry| (entry.seq, entry.event)).collect()
    };
    let claims = orders(&mut sprint);
    for (seq, _) in &claims {
        sprint.hear(0, SprintEvent::Claimed { start_seq: *seq, fence: Some(1), left: None });
    }
    let runs = orders(&mut sprint);
    assert_eq!(runs.len(), 3);
    let busy = |run: &str| RunEnd {
        accounts: vec!["claude".to_owned()],
        busy: Some(Busy { accounts: vec!["claude".to_owned()], until: Some(60_000) }),
        ..ended(run, RunStatus::Stopped, Reason::ProviderBusy)
    };
    sprint.hear(0, SprintEvent::Ended { start_seq: runs[0].0, end: busy("a.1") });
    sprint.hear(0, SprintEvent::Ended { start_seq: runs[1].0, end: busy("b.1") });
    sprint.hear(0, SprintEvent::Seen { item: item("d", "s") });
    assert_eq!(orders(&mut sprint), [], "nobody goes on and nobody begins");
    sprint.hear(0, SprintEvent::Due { account: "claude".to_owned() });
    let tries = orders(&mut sprint);
    let resume = |item: &str| SprintEvent::Resume { item: item.to_owned(), run_id: format!("{item}.1") };
    assert_eq!(tries.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>(), [resume("a")]);
    let mut refused = sprint.clone();
    refused.hear(0, SprintEvent::Ended { start_seq: tries[0].0, end: busy("a.1") });
    assert_eq!(orders(&mut refused), [], "it was too early");
    sprint.hear(0, SprintEvent::Served { account: "claude".to_owned() });
    let follow: Vec<SprintEvent> = orders(&mut sprint).into_iter().map(|(_, event)| event).collect();
    assert_eq!(follow[0], resume("b"));
    assert!(matches!(&follow[1], SprintEvent::Claim { item } if item == "d"), "{follow:?}");
    assert_eq!(sprint.streak, 0);
}

#[test]
fn af_003_a_person_is_asked_about_each_batch() {
    let mut sprint = Sprint::default();
    let begin = SprintEvent::Start {
        policy: SprintPolicy::default(),
        autonomous: false,
        version: "0".to_owned(),
        format: FORMAT,
    };
    sprint.hear(0, begin);
    for n in 0..5 {
        sprint.hear(0, SprintEvent::Seen { item: item(&format!("i{n}"), &format!("p{n}")) });
    }
    let busy = Room { load_percent: 999, memory_mb: 0, slots: None };
    let asked = sprint.settle(0, busy);
    let [SprintEntry { seq, event: SprintEvent::Ask { items }, .. }] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!(items.len(), 4);
    assert!(sprint.settle(0, Room::PLENTY).is_empty(), "nothing begins before the answer");
    let mut other = sprint.clone();
    sprint.hear(0, SprintEvent::Answered { start_seq: *seq, yes: true });
    let claims = |entries: &[SprintEntry]| {
        entries.iter().filter(|entry| matches!(entry.event, SprintEvent::Claim { .. })).count()
    };
    assert_eq!(claims(&sprint.settle(0, busy)), 1, "a busy machine takes one");
    assert_eq!(claims(&sprint.settle(0, busy)), 0);
    assert_eq!(claims(&sprint.settle(0, Room::PLENTY)), 3, "and the others when it can");
    other.hear(0, SprintEvent::Answered { start_seq: *seq, yes: false });
    let end = other.settle(0, Room::PLENTY);
    assert!(
        matches!(&end[..], [SprintEntry { event: SprintEvent::End { why: SprintStop::Declined, .. }, .. }]),
        "{end:?}"
    );
}

/// A fleet without a slot gets no order and its sprint goes on; what comes late and matters more goes first.
#[test]
fn bx_22_a_fleet_gets_as_many_orders_as_it_has_slots() {
    let slots = |slots| Room { slots: Some(slots), ..Room::PLENTY };
    let mut sprint = start(SprintPolicy { slots: 1, ..SprintPolicy::default() });
    for n in 0..20 {
        sprint.hear(0, SprintEvent::Seen { item: item(&format!("i{n:02}"), &format!("p{n}")) });
    }
    assert!(sprint.settle(0, slots(0)).is_empty(), "it waits");
    let urgent = QueueItem { priority: Priority::P0, ..item("urgent", "q") };
    sprint.hear(0, SprintEvent::Seen { item: urgent });
    let claims = |entries: Vec<SprintEntry>| -> Vec<String> {
        entries.iter().filter_map(|entry| entry.event.item().map(str::to_owned)).collect()
    };
    assert_eq!(claims(sprint.settle(0, slots(3))), ["urgent", "i00", "i01"]);
    assert!(sprint.settle(0, slots(3)).is_empty());
    assert!(sprint.settle(0, slots(0)).is_empty(), "fewer slots take nothing back");
    assert_eq!(claims(sprint.settle(0, slots(4))), ["i02"]);
}

/// A sprint with this number of items in 50 projects, a hundred of which are finished: how often an item is looked at
/// until all are known, and for the hundred.
fn looks_of(count: usize) -> Option<(u64, u64)> {
    let budget_usd = Some(Money(1_000_000 * DOLLAR));
    let mut sprint = start(SprintPolicy { slots: 8, budget_usd, failures: 1_000, ..SprintPolicy::default() });
    let begun = looks()?;
    // One in ten failed before, and one in three waits for the one before it.
    for n in 0..count {
        let depends_on = if n % 3 == 2 { vec![format!("i{:06}", n - 1)] } else { Vec::new() };
        let status = if n % 10 == 9 { ItemStatus::Failed } else { ItemStatus::Pending };
        let seen = QueueItem { depends_on, status, ..item(&format!("i{n:06}"), &format!("p{}", n % 50)) };
        sprint.hear(0, SprintEvent::Seen { item: seen });
    }
    let mut settled = 0;
    sprint.settle(0, Room::PLENTY);
    let known = looks()?;
    while settled < 100 {
        let (start_seq, order) = sprint.open.iter().next().map(|(seq, order)| (*seq, order.clone())).unwrap();
        let report = match order {
            SprintEvent::Claim { .. } => SprintEvent::Claimed { start_seq, fence: Some(1), left: None },
            SprintEvent::Run { item, .. } => {
                let end = ended(&format!("s.{item}.1"), RunStatus::AwaitingMerge, Reason::Approved);
                SprintEvent::Ended { start_seq, end }
            }
            SprintEvent::Land { run_id, .. } => {
                SprintEvent::Landed { start_seq, end: ended(&run_id, RunStatus::Merged, Reason::Approved) }
            }
            SprintEvent::Settle { fence, .. } => {
                settled += usize::from(fence.is_some());
                SprintEvent::Settled { start_seq }
            }
            other => panic!("{other:?}"),
        };
        sprint.hear(0, report);
        sprint.settle(0, Room::PLENTY);
    }
    Some((known - begun, looks()? - known))
}

/// Taking in a queue grows in proportion to it, and what follows from a report does not grow at all.
#[test]
fn bx_22_a_decision_costs_what_changed() {
    // Only debug builds count.
    let Some((small_queue, small)) = looks_of(1_000) else { return };
    for times in [2, 4, 8] {
        let (queue, steps) = looks_of(1_000 * times).unwrap();
        let most = small_queue * times as u64 * 11 / 10;
        assert!(queue <= most, "{queue} looks at {times},000 items, {small_queue} at 1,000");
        assert!(
            steps <= small * 3 / 2,
            "{steps} looks for 100 of {times},000 items, {small} for 100 of 1,000"
        );
    }
}
