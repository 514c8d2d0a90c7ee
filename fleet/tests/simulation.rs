//! A fleet in one process: the code of workers and of the conductor's dispatch, on a bus in memory that loses answers,
//! refuses, hands out twice and forgets; with members that are killed, paused and cut off. Every order of events follows from
//! a seed: `FLEET_SEED=<n>` repeats one, `FLEET_SEEDS=<n>` tries so many.

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

/// What was broken by any of the seeds, with the first seed that broke it.
fn broken(faults: Faults, plant: Plant) -> Option<(u64, Violation)> {
    let count = if plant == Plant::Nothing { variable("FLEET_SEEDS").unwrap_or(SEEDS) } else { HUNT };
    seeds(count)
        .into_iter()
        .find_map(|seed| members::simulate(seed, faults, plant).err().map(|broken| (seed, broken)))
}

#[test]
fn fl_31_every_item_lands_exactly_once_while_answers_are_lost_and_members_die() {
    assert_eq!(broken(Faults::DEATHS, Plant::Nothing), None);
}

#[test]
fn fl_31_every_item_lands_exactly_once_while_the_server_forgets_and_loses_everything() {
    assert_eq!(broken(Faults::AMNESIA, Plant::Nothing), None);
}

#[test]
fn fl_31_nothing_is_lost_or_paid_twice_in_peace() {
    assert_eq!(broken(Faults::NONE, Plant::Nothing), None);
}

/// The simulation is worth something only if it finds what is wrong.
#[test]
fn fl_32_planted_bugs_are_found() {
    for plant in Plant::BUGS {
        let found = broken(Faults::DEATHS, plant).or_else(|| broken(Faults::AMNESIA, plant));
        assert!(found.is_some(), "{plant:?} was not found");
    }
}
