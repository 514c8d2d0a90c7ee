//! A fleet in one process: the code of workers and of the conductor's dispatch, on a bus in memory that loses answers,
//! refuses, hands out twice and forgets; with members that are killed, paused and cut off. Every order of events follows from
//! a seed: `FLEET_SEED=<n>` repeats one, `FLEET_SEEDS=<n>` tries N seeds.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "simulation/members.rs"]
mod members;
#[path = "simulation/world.rs"]
mod world;

use members::Plant;
use world::{Faults, Violation};

/// So many in the suite; `FLEET_SEEDS` asks for more.
const SEEDS: u64 = 400;
/// A planted mistake is looked for until it is found, in so many at most.
const HUNT: u64 = 3_000;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn seeds(count: u64) -> Vec<u64> {
    match variable("FLEET_SEED") {
        Some(seed) => vec![seed],
        None => (1..=count).collect(),
    }
}

/// What was broken by any of the seeds, with the first seed that broke it. `slots` is per worker.
fn broken(faults: Faults, slots: usize, plant: Plant) -> Option<(u64, Violation)> {
    let count = if plant == Plant::Nothing { variable("FLEET_SEEDS").unwrap_or(SEEDS) } else { HUNT };
    seeds(count)
        .into_iter()
        .find_map(|seed| members::simulate(seed, faults, slots, plant).err().map(|broken| (seed, broken)))
}

/// With workers of one slot, and of two.
fn broken_in_any_fleet(faults: Faults) -> Option<(u64, Violation)> {
    [1, 2].into_iter().find_map(|slots| broken(faults, slots, Plant::Nothing))
}

#[test]
fn fl_31_every_item_lands_exactly_once_while_answers_are_lost_and_members_die() {
    assert_eq!(broken_in_any_fleet(Faults::DEATHS), None);
}

#[test]
fn fl_31_every_item_lands_exactly_once_while_the_server_forgets_and_loses_everything() {
    assert_eq!(broken_in_any_fleet(Faults::AMNESIA), None);
}

#[test]
fn fl_31_nothing_is_lost_or_paid_twice_in_peace() {
    assert_eq!(broken_in_any_fleet(Faults::NONE), None);
}

/// The simulation is worth something only if it finds what is wrong.
#[test]
fn fl_32_planted_bugs_are_found() {
    for plant in Plant::BUGS {
        let found = broken(Faults::DEATHS, 1, plant).or_else(|| broken(Faults::AMNESIA, 1, plant));
        assert!(found.is_some(), "{plant:?} was not found");
    }
}

/// Its lease ended, or it seemed to be with nobody, and it is handed out to the worker that still performs it.
#[test]
fn fl_33_a_worker_does_not_begin_an_order_again_that_it_still_performs() {
    let found = broken(Faults::DEATHS, 2, Plant::BeginTwice);
    assert!(matches!(found, Some((_, Violation::BegunTwice(_)))), "{found:?}");
}
