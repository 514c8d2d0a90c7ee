//! The arithmetic of `archeflow eval`: what the runs of a suite of tasks show about the arms that were compared.
//!
//! Read in this order: [`trial`] (the record of one run), [`measure`] (figures of one arm), [`paired`] (two arms over the
//! same tasks, and whether one is better). The others are the methods: [`interval`] for one rate, [`resample`] for means,
//! [`exact`] for tests, [`power`] for what a suite can show at all.
//!
//! This is the one place of the core where statistics need floating-point numbers. Every input is a count, so no figure
//! is NaN or infinite, and nothing here feeds a decision of a run. Chance is a seed that the caller gives.

pub mod exact;
pub mod interval;
pub mod measure;
pub mod paired;
pub mod power;
pub mod random;
pub mod resample;
mod special;
#[cfg(test)]
mod tests;
pub mod trial;

pub use interval::Bounds;
pub use measure::{ArmMeasures, EvalMeasure};
pub use paired::{ArmConclusion, PairedComparison, compare};
pub use random::SeededRandom;
pub use resample::SamplingOptions;
pub use trial::{EvalTrial, TrialEnd, TrialKey, TrialOutcome, TrialSet};
