//! The arithmetic of `archeflow eval`: what the runs of a suite of tasks show about the arms that were compared.
//!
//! Read in this order: [`plan`] (what is tried), [`trial`] (the record of one run), [`measure`] (figures of one arm),
//! [`paired`] (two arms over the same tasks, and whether one is better), [`report`] (all of it for a reader), [`across`] (two
//! evaluations). The others are the methods: [`interval`] for one rate, [`resample`] for means, [`exact`] for tests,
//! [`power`] for what a suite can show at all. [`sim`] has agents whose error rates are known.
//!
//! This is the one place of the core where statistics need floating-point numbers. Every input is a count, so no figure
//! is NaN or infinite, and nothing here feeds a decision of a run. Chance is a seed that the caller gives.

pub mod across;
pub mod exact;
pub mod interval;
pub mod measure;
pub mod paired;
pub mod plan;
pub mod power;
pub mod random;
pub mod report;
#[cfg(test)]
mod report_tests;
pub mod resample;
pub mod sim;
mod special;
#[cfg(test)]
mod tests;
pub mod trial;

pub use across::EvalDifference;
pub use interval::Bounds;
pub use measure::{ArmMeasures, EvalMeasure};
pub use paired::{ArmConclusion, PairedComparison, compare};
pub use plan::{EvalPlan, PlannedArm, PlannedTask};
pub use random::SeededRandom;
pub use report::EvalReport;
pub use resample::SamplingOptions;
pub use trial::{EvalTrial, TrialEnd, TrialKey, TrialOutcome, TrialSet};
