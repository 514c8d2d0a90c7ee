//! What-if over simulated runs: without a change nothing differs, with a change that does not matter nothing differs
//! either, and what is said to be known is what happens when the same world is lived through under the other policy.

use archeflow_core::event::{Decision, Entry, Event, Report, RunStart};
use archeflow_core::model::{Outcome, Severity, Workflow, ZeroPolicy};
use archeflow_core::projections::replay::whatif::{End, PolicyChange, WhatIf, refold};
use archeflow_core::projections::replay::{rulebook, timeline};
use archeflow_core::run::Run;

use super::chance::{Chance, word};
use super::life::{Life, Schedule};
use super::world::World;

const SEEDS: u64 = if cfg!(debug_assertions) { 250 } else { 5_000 };

fn started(log: &[Entry]) -> RunStart {
    match &log[0].event {
        Event::Report(Report::RunStart(start)) => (**start).clone(),
        other => unreachable!("a log begins with its request, not with {}", other.name()),
    }
}

fn what_if(log: &[Entry], change: impl FnOnce(&mut RunStart)) -> WhatIf {
    let mut start = started(log);
    change(&mut start);
    refold(log, &PolicyChange { start, auto_merge: None })
}

/// Every seed calmly, in any order, and with crashes; and a loop of each.
fn lives() -> impl Iterator<Item = Life> {
    let runs = (0..SEEDS).flat_map(|seed| {
        let chance = |what| Chance::keyed(seed, &[word(what)]);
        [Schedule::Calm, Schedule::AnyOrder(chance("order")), Schedule::Crashing(chance("crash"))]
            .map(|schedule| Life::live(World::new(seed), schedule).0)
    });
    runs.chain((0..SEEDS).map(|seed| Life::live(World::of_loop(seed), Schedule::Calm).0))
}

#[test]
fn af_180_without_a_change_nothing_differs() {
    for life in lives() {
        let seed = life.world.seed;
        let same = what_if(&life.log, |_| {});
        assert_eq!(same.differences, [], "seed {seed}");
        assert_eq!(same.used, same.facts, "seed {seed}");
        assert!(same.run == Run::replay(&life.log), "seed {seed}: another run came of it");
        let ended = Run::replay(&life.log).outcome;
        let wanted = ended.map_or(End::StillOpen, End::Known);
        assert_eq!(same.end, wanted, "seed {seed}");
    }
}

#[test]
fn af_180_a_change_that_does_not_matter_changes_nothing() {
    for life in lives() {
        let seed = life.world.seed;
        let same = what_if(&life.log, |start| {
            start.config.raised.binary_bytes += 1;
            start.config.limits.maker_ms += 1_000_000;
            start.config.limits.hook_ms += 1;
            start.config.memory.decay_after_runs += 1;
            start.config.costs.warn_at_percent += 1;
            start.config_hash.push('x');
        });
        let timed_out =
            life.log.iter().any(|entry| matches!(entry.event, Event::Report(Report::AgentTimeout(_))));
        if !timed_out {
            assert_eq!(same.differences, [], "seed {seed}");
            assert_eq!(same.used, same.facts, "seed {seed}");
        }
    }
}

/// A decision nobody can explain is none.
#[test]
fn af_196_every_decision_has_a_rule_that_is_written_somewhere() {
    for life in lives() {
        for decision in timeline::of(&life.log) {
            assert!(rulebook::find(&decision.rule).is_some(), "seed {}: {decision:?}", life.world.seed);
        }
    }
}

/// The first end of a run.
fn first_end(log: &[Entry]) -> Option<Outcome> {
    log.iter().find_map(|entry| match &entry.event {
        Event::Decision(Decision::RunComplete(complete)) => Some(complete.outcome()),
        _ => None,
    })
}

/// The world answers by what is asked: so the other policy can be lived through, and what-if has to have said so.
#[test]
fn af_180_what_a_replay_reports_as_known_happens() {
    type Alter = fn(&mut RunStart);
    let alterations: [(&str, Alter); 8] = [
        ("two zeros", |start| start.config.convergence.zero_policy = ZeroPolicy::TwoConsecutive),
        ("one zero", |start| start.config.convergence.zero_policy = ZeroPolicy::Immediate),
        ("one cycle", |start| start.max_cycles = 1),
        ("one more cycle", |start| start.max_cycles += 1),
        ("warnings persist", |start| start.config.convergence.persistent_floor = Severity::Warning),
        ("diverging once", |start| start.config.convergence.diverging_cycles = 1),
        ("rising once", |start| start.config.boundaries.rising_cycles = 1),
        ("a lighter workflow", |start| start.workflow = Workflow::Fast),
    ];
    let (mut known, mut unknown, mut other) = (0, 0, 0);
    for (name, alter) in alterations {
        for seed in 0..SEEDS {
            let recorded = Life::live(World::new(seed), Schedule::Calm).0;
            // What people do when a run has ended depends on how it did.
            let ended = recorded
                .log
                .iter()
                .position(|entry| matches!(entry.event, Event::Decision(Decision::RunComplete(_))));
            let log = &recorded.log[..ended.map_or(recorded.log.len(), |at| at + 1)];
            let result = what_if(log, alter);
            let mut world = World::new(seed);
            alter(&mut world.request);
            let real = first_end(&Life::live(world, Schedule::Calm).0.log);
            match result.end {
                End::Known(outcome) => {
                    known += 1;
                    other += u32::from(first_end(log).as_ref() != Some(&outcome));
                    assert_eq!(Some(outcome), real, "seed {seed}, {name}");
                }
                End::StillOpen => assert_eq!(real, None, "seed {seed}, {name}"),
                End::Unknown(_) => unknown += 1,
            }
        }
    }
    assert!(known > 0 && other > 10 && unknown > 20, "too tame: {known} {other} {unknown}");
}
