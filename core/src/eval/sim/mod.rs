//! Simulated agents (`sim:<file>`): they take every role of a run by chance, with a seed and with error rates that are
//! known. What `archeflow eval` measures can therefore be compared with the truth.
//!
//! - [`SimPopulation`]: the rates.
//! - [`SimSetup`]: the rates with a seed, the right and the wrong solution of one task.
//! - [`answer`]: what an agent prints and writes. It depends on the seed, the role, the cycle, the purpose, the attempt
//!   and the state of the work; never on the arm or the clock, so two arms meet the same Maker.
//! - [`expected`]: solved and wrongly landed changes, computed.

mod answer;
mod chance;
mod expected;
mod population;
mod review;
mod setup;
#[cfg(test)]
mod tests;

pub use answer::{SimAnswer, SimCall, answer};
pub use expected::{ExpectedRates, SimShape, expected};
pub use population::{SimMaker, SimPopulation, SimReviewer, SimTokens, SimUsage, built_in_populations};
pub use setup::{NOTES, SimSetup, WorkState};
