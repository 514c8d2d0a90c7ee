//! Deterministic simulation: the host's loop in miniature, with a made-up world instead of agents, git and people.
//!
//! Every seed is lived through calmly and with crashes, and both must come to the same decisions (I6); a part of them
//! once more with everything in another order (D-13). Promises are checked from the log alone (`sim/promises.rs`).
//!
//!     cargo test --release -p archeflow-core --test simulation -- --nocapture
//!     ARCHEFLOW_SEEDS=100000 …    more of them
//!     ARCHEFLOW_SEED=4711 …       one of them, with its log
//!
//! A seed that ever failed goes into `seeds.txt`.
//!
//! Bugs planted by hand in the core, one at a time, and who caught them (seed, promise). Two survived at first and
//! became promises, marked +. A survivor becomes a promise: keep it so.
//!
//! | planted | seed | caught by |
//! |---|---|---|
//! | no tests before the intent | 4 | tested is landed (I8) |
//! | A2 ignores the escalation | 11 | nobody is spared when escalated |
//! | A2 in a thorough run's first cycle | 26 | nobody is spared in a thorough run's first cycle |
//! | A2 on an unverified answer | 49931 | nobody is spared on an unverified answer |
//! | retries without bound | 7 | at most so many failures of a seat |
//! | moved base: the old test result is kept | 85 | tested is landed (I8) |
//! | downgraded findings count | 1366 | what counts is counted |
//! | a transition has one parent only | 4 | a transition fans in what was completed |
//! | merges over a doubtful security downgrade | 87 | landing needs an agreement |
//! | merges untested without asking | 0 | landing needs an agreement |
//! | a lost agent stays out for ever | 7 | the Maker never starts before a proposal |
//! | merged findings in order of arrival | 9 | order changes no decision (D-13) |
//! | pairs the worst overlap first | 1 | + the same words keep their name |
//! | one cycle too many | 286 | cycles never exceed their number |
//! | no guardian before the reviewers | – | a rule that feeds itself (the core's own bound) |
//! | an answer to a stale order is taken | 4 | a late report changes nothing |
//! | the Maker goes for tests again and again | 382 | at most one Maker run for tests in a cycle |
//! | low understanding is not asked about | 53 | A3: the Maker never starts on a misunderstood task |
//! | a persistent CRITICAL cycles on | 12904 | what stays grave for two cycles goes to a person |
//! | the break is not written | 1366 | a break comes before its end |
//! | a revert is forgotten in the end | 229 | the end says what landed |
//! | convergence from cycle 1 | 4 | convergence is compared from cycle 2 |
//! | an escalation forgets its cycles | 14301 | a boundary knows how many cycles there are |
//! | signs in order of arrival | 5 | + what the program saw stands in one order |
//! | a CRITICAL beside APPROVED passes | 570 | no approval that was not said |
//! | parallel agents as a chain of parents | 26 | agents sent in parallel share one parent |
//! | the pre-merge hook does not run | 570 | the pre-merge hook comes before the merge |
//! | failures counted as they come back | 1366 | a crash changes no decision (I6), and D-13 |
//! | a dry run builds | 844 | a dry run builds nothing |
//! | MaxCycles exits with 10 | 286 | the exit code matches the outcome |
//! | strikes in a row are never reset | 89337 | the ladder (AF-138, CL-03) |
//! | an escalation is ignored where nobody is there | 286 | nobody is sent while a person decides |
//! | the answer in its shadow counts, not the corrected one | 7 | no approval that was not said |
//! | an answer that counts after all is lost | 9 | no reviewer before the gatekeeper |
//! | a checkpoint's stop is ignored | 1996 | no cycle begins after a checkpoint that says stop |
//! | several find out whether an account serves again | 26 | one attempt finds out (C6) |
//! | a limited account is not waited for | 15 | no agent starts into an open breaker (C6) |
//! | the whole ramp again after a break | 953 | who comes back is turned away twice at most (C6) |
//! | a correction goes while others on its account are out | 1801 | a crash changes no decision (I6) |
//! | what a person accepted counts as fixed (found) | 12904 | what a person accepted is not repaired |
//! | a merged finding is fixed though an author did not look (found) | 89337 | what is repaired was looked at by its authors |
//!
//! Bugs that would lose an objection are planted in `objections.rs`, in logs of the rows of `docs/rules/objections.md`.
//!
//! And in reviews, which have a world of their own (`reviews.rs`); most of these were there before it was:
//!
//! | planted or found | review | caught by |
//! |---|---|---|
//! | a merge that is asked for lands the reviewed change | 0 | a review lands nothing and makes nothing |
//! | accepted findings count | 1 | what counts is counted |
//! | refuted findings count | 3 | what counts is counted |
//! | the end tells of the last part only | 3 | the end lists what stands against the change |
//! | who missed an earlier part is forgotten | 13 | who was not heard in some part is said |
//! | two who fail side by side are both gone without | 29 | what nobody looked at is not concluded |
//! | reproductions in the order they were written | 232 | order changes no decision (D-13) |
//! | a trial outlives the answer it was about | 763 | every reproduction is run, up to the limit |
//! | a correction goes out with others on its account | 1779 | a crash changes no decision (I6) |
//!
//! And in loops (`loops.rs`, and `loops/audit.rs`, which the scripts of `agent_loop_run.rs` keep too):
//!
//! | planted or found | loop | caught by |
//! |---|---|---|
//! | objections of the battery are ignored | 0 | no PASS over a finding of the scan |
//! | the battery of the step before counts | 10 | the battery has run on what the Judge sees |
//! | a stop leaves agents out | 2100 | what was said stands in the file before the next one speaks |
//! | a failed step stays in the work | 4 | + everybody sees what the loop stands on |
//! | a block that could not be appended is ordered beside itself | 5 | blocks are numbered one by one |
//! | a gated plan is acted upon | 2 | + a plan that needs a yes waits for it |
//! | nobody can stop a loop that has not begun | 89 | comes to an end |
//!
//! Two more changed nothing at all and tell of lines that are not needed: `raised.clear()` when the Maker comes back,
//! and `.max(number())` when a person continues.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::wildcard_enum_match_arm,
    reason = "a test that says why it fails, and is told how long to run"
)]

#[path = "loops/audit.rs"]
mod loops_audit;
mod sim;

use std::collections::BTreeMap;
use std::time::Instant;

use archeflow_core::event::{
    CycleBoundary, Decision, Entry, Event, Failure, NextAction, Order, QuestionKind, Report, Tracked,
};
use archeflow_core::model::{Purpose, Reason, SYSTEM, Severity, ShadowAction};

use sim::chance::{Chance, word};
use sim::corrections;
use sim::life::{Life, Schedule};
use sim::loops;
use sim::projection::{decisions, difference};
use sim::promises::audit;
use sim::reviews;
use sim::world::World;

/// As many as make the rarest ending sure; a debug build gets fewer.
const SEEDS: u64 = if cfg!(debug_assertions) { 3_000 } else { 4_000 };

fn seeds() -> std::ops::Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match number("ARCHEFLOW_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ARCHEFLOW_SEEDS").unwrap_or(SEEDS),
    }
}

fn formerly_failing() -> impl Iterator<Item = u64> {
    include_str!("seeds.txt").lines().filter_map(|line| line.split_whitespace().next()?.parse().ok())
}

#[test]
fn m_a1_m_c27_every_seed_keeps_the_promises_with_and_without_crashes() {
    let began = Instant::now();
    let mut runs = 0_u32;
    let mut lines = 0;
    let mut seen = Seen::default();
    for seed in formerly_failing().chain(seeds()) {
        let calm = lived(World::new(seed), Schedule::Calm, "calm");
        let crashed =
            lived(World::new(seed), Schedule::Crashing(Chance::keyed(seed, &[word("crash")])), "crashing");
        match crashed.parted {
            true => *seen.0.entry("parted by a limit".to_owned()).or_default() += 1,
            false => same("a crash changes no decision (I6)", &calm, &crashed),
        }
        for life in [&calm, &crashed] {
            runs += 1;
            lines += life.log.len();
            seen.read(&life.log);
            for (mishap, times) in &life.mishaps {
                *seen.0.entry((*mishap).to_owned()).or_default() += times;
            }
        }
    }
    println!("{}", seen.table());
    println!(
        "{runs} runs, {lines} lines, {:.0} runs a second",
        f64::from(runs) / began.elapsed().as_secs_f64()
    );
    if std::env::var("ARCHEFLOW_SEED").is_err() {
        seen.is_wild_enough();
    }
}

/// INFO is advice, and what a person accepts is told apart by place.
fn is_objection(open: &Tracked) -> bool {
    open.severity > Severity::Info
}

/// A bug that loses an objection, planted at every boundary of some runs, is found there.
#[test]
fn objections_that_a_boundary_loses_are_found() {
    type Bug = fn(&mut CycleBoundary);
    let bugs: [(&str, Bug); 4] = [
        ("forgets a finding", |end| {
            let at = end.open.iter().rposition(is_objection);
            at.into_iter().for_each(|at| drop(end.open.remove(at)));
        }),
        ("forgets an author", |end| end.open.iter_mut().for_each(|found| found.source.clear())),
        ("counts one fix more", |end| end.fixes_applied += 1),
        ("lands", |end| end.next_action = NextAction::Merge),
    ];
    let mut tally: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for seed in 0..400 {
        let life = lived(World::new(seed), Schedule::Calm, "calm");
        let is_boundary =
            |at: &usize| matches!(&life.log[*at].event, Event::Decision(Decision::CycleBoundary(_)));
        for at in (0..life.log.len()).filter(is_boundary) {
            for (name, bug) in bugs {
                let mut log = life.log[..=at].to_vec();
                let Event::Decision(Decision::CycleBoundary(end)) = &mut log[at].event else { continue };
                let none = !end.open.iter().any(is_objection);
                if end.next_action == NextAction::Merge && name == "lands" || none {
                    continue;
                }
                bug(end);
                let (planted, found) = tally.entry(name).or_default();
                *planted += 1;
                *found += u32::from(audit(&log).is_err());
            }
        }
    }
    println!("{tally:?}");
    assert_eq!(tally.len(), bugs.len());
    for (name, (planted, found)) in tally {
        assert!(planted > 50 && found == planted, "{name}: {found} of {planted}");
    }
}

/// D-13: neither the order of findings and signs nor the order in which anybody comes back changes a decision.
#[test]
fn m_d14_order_changes_no_decision() {
    let all = seeds();
    let part = all.start..all.start + (all.end - all.start).div_ceil(4);
    for seed in formerly_failing().chain(part) {
        let calm = lived(World::new(seed), Schedule::Calm, "calm");
        let order = Chance::keyed(seed, &[word("order")]);
        let shuffled = lived(World::new(seed).shuffled(seed), Schedule::AnyOrder(order), "shuffled");
        same("order changes no decision (D-13)", &calm, &shuffled);
    }
}

/// A thousand crashes, each followed by a restart. `cargo xtask soak` asks for as many as a night has room for.
#[test]
fn i3_i4_i6_i8_m_a3_m_a4_soak_of_crash_restarts() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("ARCHEFLOW_SOAK_SEED").unwrap_or(SEEDS);
    let count = number("ARCHEFLOW_SOAK_COUNT").unwrap_or(1_000);
    let (mut seed, mut restarts, mut mark) = (first, 0, 0);
    while restarts < count {
        let _reproduce = Reproduce(seed);
        restarts += restarts_of(seed);
        seed = seed.wrapping_add(1);
        if restarts * 20 / count > mark {
            mark = restarts * 20 / count;
            println!("{restarts} crash-restarts, seeds {first} to {}", seed.wrapping_sub(1));
        }
    }
}

/// A run, a review and a loop of one seed, calm and with crashes; how often the program came back.
fn restarts_of(seed: u64) -> u64 {
    let crashing = || Schedule::Crashing(Chance::keyed(seed, &[word("soak")]));
    let calm = lived(World::new(seed), Schedule::Calm, "calm");
    let run = lived(World::new(seed), crashing(), "crashing");
    if !run.parted {
        same("a crash changes no decision (I6)", &calm, &run);
    }
    let calm = reviewed(World::of_review(seed), Schedule::Calm, "calm");
    let review = reviewed(World::of_review(seed), crashing(), "crashing");
    if !review.went_apart() {
        same("a crash changes no decision (I6)", &calm, &review);
    }
    let calm = looped(World::of_loop(seed), Schedule::Calm, "calm");
    let agent_loop = looped(World::of_loop(seed), crashing(), "crashing");
    if !agent_loop.went_apart() {
        same("a crash changes no decision (I6)", &calm, &agent_loop);
    }
    [run, review, agent_loop].iter().map(|life| u64::from(life.crashes)).sum()
}

/// Says how a failure is repeated.
struct Reproduce(u64);

impl Drop for Reproduce {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("failed at seed {0}; to repeat: cargo xtask soak --seed {0} --count 1", self.0);
        }
    }
}

/// Order follows the numbers of events, whatever the clock says: the promises hold, though what waits for a time may
/// wait longer or shorter.
#[test]
fn m_h12_a_clock_that_jumps_breaks_no_promise() {
    let all = seeds();
    for seed in all.start..all.start + (all.end - all.start).div_ceil(8) {
        let crashing = Schedule::Crashing(Chance::keyed(seed, &[word("jump")]));
        for (schedule, how) in [(Schedule::Calm, "calm"), (crashing, "crashing")] {
            let (life, result) = Life::live_through_jumps(World::new(seed), schedule);
            if let Err(why) = result.and_then(|()| audit(&life.log)) {
                panic!("seed {seed}, {how}, with a clock that jumps: {why}\n{}", told(&life.log));
            }
        }
    }
}

/// AF-003, D-05: the same people look at a change that is there already.
#[test]
fn every_review_keeps_its_promises_with_crashes_and_in_any_order() {
    let mut seen = Seen::default();
    let all = seeds();
    let part = all.start..all.start + (all.end - all.start).div_ceil(2);
    for seed in part {
        let chance = |what| Chance::keyed(seed, &[word(what)]);
        let calm = reviewed(World::of_review(seed), Schedule::Calm, "calm");
        let crashed = reviewed(World::of_review(seed), Schedule::Crashing(chance("crash")), "crashing");
        let order = Schedule::AnyOrder(chance("order"));
        let shuffled = reviewed(World::of_review(seed).shuffled(seed), order, "shuffled");
        same("order changes no decision (D-13)", &calm, &shuffled);
        if !crashed.went_apart() {
            same("a crash changes no decision (I6)", &calm, &crashed);
        }
        for life in [&calm, &crashed, &shuffled] {
            seen.read(&life.log);
            reviews::read(&life.log, &mut seen.0);
        }
    }
    println!("{}", seen.table());
    if std::env::var("ARCHEFLOW_SEED").is_err() {
        let missing: Vec<&&str> = reviews::WANTED
            .iter()
            .filter(|wanted| !seen.0.keys().any(|seen| seen.starts_with(**wanted)))
            .collect();
        assert!(missing.is_empty(), "the made-up reviews are too tame, they never had: {missing:?}");
    }
}

/// PJ-01..PJ-17: the same people in a loop.
#[test]
fn every_loop_keeps_its_promises_with_crashes_and_in_any_order() {
    let mut seen = Seen::default();
    for seed in seeds() {
        let chance = |what| Chance::keyed(seed, &[word(what)]);
        let calm = looped(World::of_loop(seed), Schedule::Calm, "calm");
        let crashed = looped(World::of_loop(seed), Schedule::Crashing(chance("crash")), "crashing");
        let order = Schedule::AnyOrder(chance("order"));
        let shuffled = looped(World::of_loop(seed).shuffled(seed), order, "shuffled");
        same("order changes no decision (D-13)", &calm, &shuffled);
        if !crashed.went_apart() {
            same("a crash changes no decision (I6)", &calm, &crashed);
        }
        for life in [&calm, &crashed, &shuffled] {
            seen.read(&life.log);
            loops::read(&life.log, &mut seen.0);
        }
    }
    println!("{}", seen.table());
    if std::env::var("ARCHEFLOW_SEED").is_err() {
        let missing: Vec<&&str> = loops::WANTED
            .iter()
            .filter(|wanted| !seen.0.keys().any(|seen| seen.starts_with(**wanted)))
            .collect();
        assert!(missing.is_empty(), "the made-up loops are too tame, they never had: {missing:?}");
    }
}

fn lived(world: World, schedule: Schedule, how: &str) -> Life {
    let seed = world.seed;
    let (life, result) = Life::live(world, schedule);
    if let Err(why) = result.and_then(|()| audit(&life.log)).and_then(|()| corrections::audit(&life.log)) {
        panic!("seed {seed}, {how}: {why}\n{}", told(&life.log));
    }
    life
}

fn reviewed(world: World, schedule: Schedule, how: &str) -> Life {
    let seed = world.seed;
    let (life, result) = Life::live(world, schedule);
    if let Err(why) = result.and_then(|()| reviews::audit(&life.log)) {
        panic!("review {seed}, {how}: {why}\n{}", told(&life.log));
    }
    life
}

fn looped(world: World, schedule: Schedule, how: &str) -> Life {
    let seed = world.seed;
    let (life, result) = Life::live(world, schedule);
    if let Err(why) = result.and_then(|()| loops_audit::audit(&life.log)) {
        panic!("loop {seed}, {how}: {why}\n{}", told(&life.log));
    }
    life
}

fn same(promise: &str, one: &Life, other: &Life) {
    if let Some(what) = difference(&decisions(&one.log), &decisions(&other.log)) {
        let seed = one.world.seed;
        panic!("seed {seed}: {promise}: {what}\n{}\n{}", told(&one.log), told(&other.log));
    }
}

/// The log, a line each, as short as it can be understood.
fn told(log: &[Entry]) -> String {
    let mut text = String::new();
    for entry in log {
        let line = match &entry.event {
            Event::Order(Order::AgentStart(start)) => {
                format!("{} {:?}, cycle {}", start.archetype, start.purpose, start.cycle)
            }
            Event::Report(Report::AgentComplete(complete)) => {
                format!("{} {:?}", complete.archetype, complete.answer.status)
            }
            Event::Decision(Decision::DecisionPoint(point)) => {
                format!("{} {}: {}", point.archetype, point.rule, point.decision)
            }
            event => format!("{event:?}").chars().take(220).collect(),
        };
        text.push_str(&format!("{:4} {:?} {} {line}\n", entry.seq, entry.parent, entry.event.name()));
    }
    text
}

/// What happened over all seeds.
#[derive(Default)]
struct Seen(BTreeMap<String, u32>);

impl Seen {
    fn read(&mut self, log: &[Entry]) {
        for entry in log {
            let what = match &entry.event {
                Event::Decision(Decision::RunComplete(complete)) if complete.reopens_at.is_some() => {
                    "end parked".to_owned()
                }
                Event::Decision(Decision::RunComplete(complete)) => {
                    format!("end {} {}", complete.reason.name(), complete.status.name())
                }
                Event::Report(Report::AgentFailed(failed)) => format!("failure {:?}", failed.kind),
                Event::Report(Report::AgentTimeout(failed)) => format!("failure {:?}", failed.0.kind),
                Event::Order(Order::AgentStart(start)) => format!("purpose {:?}", start.purpose),
                Event::Decision(Decision::AgentSkipped(skipped)) if skipped.failed => "given up".to_owned(),
                Event::Decision(Decision::AgentSkipped(_)) => "spared".to_owned(),
                Event::Order(Order::QuestionAsked(question)) => format!("question {:?}", question.kind),
                Event::Decision(Decision::WorkflowEscalated(escalated)) => {
                    format!("escalated {}", escalated.rule)
                }
                Event::Report(Report::MergeBuilt(_) | Report::TestsDone(_) | Report::PreflightDone(_))
                | Event::Report(Report::HookDone(_) | Report::MergeRefused(_)) => {
                    continue;
                }
                Event::Report(
                    Report::RunReverted(_)
                    | Report::RevertRefused(_)
                    | Report::RunReentered(_)
                    | Report::RunRolledBack(_),
                )
                | Event::Decision(Decision::FixApplied(_)) => entry.event.name().to_owned(),
                Event::Decision(Decision::ShadowDetected(seen)) if seen.archetype == SYSTEM => {
                    format!("system shadow {:?}", seen.action)
                }
                Event::Decision(Decision::ShadowDetected(seen)) => format!("shadow {:?}", seen.action),
                Event::Decision(Decision::PolicyCheckpoint(checkpoint)) if checkpoint.stops.is_some() => {
                    "checkpoint that stops".to_owned()
                }
                Event::Decision(Decision::PolicyCheckpoint(_)) => "checkpoint that goes on".to_owned(),
                Event::Decision(Decision::DecisionPoint(point)) if point.rule == "AF-138" => {
                    "restored".to_owned()
                }
                Event::Decision(Decision::DecisionPoint(point)) if point.rule == "C6" => {
                    "taken over".to_owned()
                }
                Event::Report(Report::RunContinued(continued)) if !continued.accept.is_empty() => {
                    "accepted".to_owned()
                }
                Event::Report(
                    Report::RunContinued(_)
                    | Report::MergeRequested(_)
                    | Report::RevertRequested(_)
                    | Report::QuestionDeferred(_),
                ) => entry.event.name().to_owned(),
                _ => continue,
            };
            *self.0.entry(what).or_default() += 1;
        }
    }

    fn table(&self) -> String {
        self.0.iter().map(|(what, times)| format!("{times:>9}  {what}\n")).collect()
    }

    /// A world that is too tame proves nothing.
    fn is_wild_enough(&self) {
        // A lost agent counts with what was set aside for it, so a crash does change what a budget decides: budgets
        // have a simulation of their own (`budget.rs`). So have reviews and loops, above.
        let loops = [Reason::LoopPaused, Reason::LoopFailed, Reason::LoopStopped, Reason::LoopEdited];
        let elsewhere = [&[Reason::Budget, Reason::FindingsOpen][..], &loops[..]].concat();
        let here = Reason::ALL.iter().filter(|reason| !elsewhere.contains(reason));
        let mut wanted: Vec<String> = here.map(|reason| format!("end {} ", reason.name())).collect();
        let failures = [
            Failure::NotStarted,
            Failure::Exit,
            Failure::Signal,
            Failure::Empty,
            Failure::Garbled,
            Failure::NoWork,
            Failure::Busy,
            Failure::Silence,
            Failure::TooLong,
            Failure::WorkspaceGone,
            Failure::Auth,
            Failure::Quota,
            Failure::RateLimit,
            Failure::Overload,
            Failure::ContextTooLong,
            Failure::Refused,
            Failure::Network,
            Failure::PermissionDenied,
        ];
        wanted.extend(failures.iter().map(|kind| format!("failure {kind:?}")));
        let kinds = [
            QuestionKind::NeedsContext,
            QuestionKind::LowConfidence,
            QuestionKind::Merge,
            QuestionKind::DryRun,
            QuestionKind::RedBase,
            QuestionKind::Shadow,
        ];
        wanted.extend(kinds.iter().map(|kind| format!("question {kind:?}")));
        let purposes = [
            Purpose::Work,
            Purpose::Correct,
            Purpose::Replace,
            Purpose::Retry,
            Purpose::Tests,
            Purpose::Research,
            Purpose::Fix,
        ];
        wanted.extend(purposes.iter().map(|purpose| format!("purpose {purpose:?}")));
        let actions = [
            ShadowAction::Note,
            ShadowAction::Correct,
            ShadowAction::Replace,
            ShadowAction::Escalate,
            ShadowAction::Break,
        ];
        wanted.extend(actions.iter().map(|action| format!("shadow {action:?}")));
        // The system's third strike needs a person who says more at the second; that is too rare for a few runs.
        let rare = |action: &ShadowAction| *action == ShadowAction::Break && cfg!(debug_assertions);
        let of_system = actions.iter().filter(|action| !rare(action));
        wanted.extend(of_system.map(|action| format!("system shadow {action:?}")));
        let others = [
            "checkpoint that stops",
            "checkpoint that goes on",
            "restored",
            "taken over",
            "end parked",
            "accepted",
            "escalated A1",
            "escalated A3",
            "spared",
            "given up",
            "run.reverted",
            "revert.refused",
            "run.reentered",
            "run.rolled_back",
            "run.continued",
            "merge.requested",
            "revert.requested",
            "question.deferred",
            "fix.applied",
            "late report",
            "agent lost",
            "interrupted",
            "crash before a batch",
            "crash within a batch",
            "crash after a batch",
            "crash between batches",
        ];
        wanted.extend(others.iter().map(|other| (*other).to_owned()));
        let missing: Vec<&String> = wanted
            .iter()
            .filter(|wanted| !self.0.keys().any(|seen| seen.starts_with(wanted.as_str())))
            .collect();
        assert!(missing.is_empty(), "the made-up world is too tame, it never had: {missing:?}");
    }
}
