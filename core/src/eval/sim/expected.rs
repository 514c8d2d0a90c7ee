//! What a population comes to, computed instead of measured.

use serde::{Deserialize, Serialize};

use super::population::SimPopulation;

/// The form of a run: equal reviewers who judge independently of each other, and a limit of cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimShape {
    /// 0 is a single agent.
    pub reviewers: u32,
    pub cycles: u32,
    /// From this cycle on, the other reviewers are skipped if the first one has no finding: 1 in a standard run with its
    /// Guardian, 2 in a thorough one.
    pub first_alone_from: Option<u32>,
    /// Findings without evidence don't count.
    pub evidence: bool,
}

impl SimShape {
    /// All reviewers in every cycle, with the rule of evidence.
    pub fn new(reviewers: u32, cycles: u32) -> SimShape {
        SimShape { reviewers, cycles, first_alone_from: None, evidence: true }
    }
}

/// Shares of the runs; together they are 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ExpectedRates {
    pub solved: f64,
    pub wrongly_landed: f64,
    /// Held back after the last cycle, and wrong.
    pub rightly_held_back: f64,
    /// Held back after the last cycle, and right.
    pub wrongly_held_back: f64,
}

/// What a cycle makes of one state of the work.
struct Judged {
    lands: f64,
    /// Sent back with a finding about the flaw.
    named: f64,
    /// Sent back without one.
    unnamed: f64,
}

/// The exact rates of runs that land when no finding counts and are held back after the last cycle, with the rates of
/// `population.reviewer` for all reviewers.
///
/// Not in it: shadows, stops for lack of convergence before the last cycle, and findings that the program raises itself. The visible
/// tests are taken to pass for both solutions. With two cycles a stop for convergence comes when no cycle is left, so it changes nothing.
pub fn expected(population: &SimPopulation, shape: SimShape) -> ExpectedRates {
    let maker = &population.maker;
    let (mut right, mut wrong) = (1.0 - maker.wrong, maker.wrong);
    let mut rates = ExpectedRates::default();
    for cycle in 1..=shape.cycles {
        let first_alone = shape.first_alone_from.is_some_and(|from| cycle >= from);
        let of_right = judged(population, shape, first_alone, 0.0);
        let of_wrong = judged(population, shape, first_alone, population.reviewer.recall);
        rates.solved += right * of_right.lands;
        rates.wrongly_landed += wrong * of_wrong.lands;
        let right_back = right * (of_right.named + of_right.unnamed);
        let (named, unnamed) = (wrong * of_wrong.named, wrong * of_wrong.unnamed);
        if cycle == shape.cycles {
            rates.wrongly_held_back += right_back;
            rates.rightly_held_back += named + unnamed;
        }
        let fixed = named * maker.fixes + unnamed * maker.fixes_unasked;
        let broken = right_back * maker.breaks;
        right = right_back - broken + fixed;
        wrong = named + unnamed - fixed + broken;
    }
    rates
}

/// `recall` is 0 for right work.
fn judged(population: &SimPopulation, shape: SimShape, first_alone: bool, recall: f64) -> Judged {
    let reviewer = &population.reviewer;
    let others = f64::from(shape.reviewers.saturating_sub(1));
    let unfounded = if shape.evidence { reviewer.unfounded } else { 0.0 };
    let counting_alarm = reviewer.false_alarms * (1.0 - unfounded);
    // Of one reviewer: no finding that counts, and no finding about the flaw.
    let (passes, misses) = ((1.0 - recall) * (1.0 - counting_alarm), 1.0 - recall);
    let (lands, unnamed) = if shape.reviewers == 0 {
        (1.0, 0.0)
    } else if first_alone {
        let silent = misses * (1.0 - reviewer.false_alarms);
        let dismissed = misses * reviewer.false_alarms * unfounded;
        let lands = silent + dismissed * passes.powf(others);
        let no_name = misses * reviewer.false_alarms * misses.powf(others);
        (lands, no_name - dismissed * passes.powf(others))
    } else {
        let lands = passes.powf(others + 1.0);
        (lands, misses.powf(others + 1.0) - lands)
    };
    Judged { lands, named: 1.0 - lands - unnamed, unnamed }
}
