//! The interval of a single rate.

use serde::Serialize;

use super::special::beta_quantile;

/// A closed interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bounds {
    pub lower: f64,
    pub upper: f64,
}

impl Bounds {
    /// Both ends belong to it. A value next to an end by no more than the rounding of the arithmetic is on it.
    pub fn contains(self, value: f64) -> bool {
        let rounding = 1e-9 * (self.lower.abs() + self.upper.abs());
        self.lower - rounding <= value && value <= self.upper + rounding
    }

    pub fn width(self) -> f64 {
        self.upper - self.lower
    }
}

/// The interval of Clopper and Pearson for a rate of which `hits` of `tries` were seen: all rates under which this
/// result, or one further away, is not rarer than the confidence allows.
///
/// It covers the true rate at least as often as stated, for every rate and number of tries. Wilson's interval is
/// narrower and covers as stated on average over all rates, but below it for rates near 0 (`ev_06`), and rates near 0
/// are what wrongly landed changes are about: a guard with it would raise false alarms.
///
/// `hits` may be a fraction, where each try is an average. Without tries every rate is possible.
pub fn clopper_pearson(hits: f64, tries: f64, confidence: f64) -> Bounds {
    let tail = 0.5 * (1.0 - checked_confidence(confidence));
    let hits = hits.clamp(0.0, tries.max(0.0));
    let misses = tries - hits;
    Bounds {
        lower: if hits > 0.0 { beta_quantile(tail, hits, misses + 1.0) } else { 0.0 },
        upper: if misses > 0.0 { beta_quantile(1.0 - tail, hits + 1.0, misses) } else { 1.0 },
    }
}

/// 0.95 for what is no confidence.
pub(super) fn checked_confidence(confidence: f64) -> f64 {
    if (0.5..=0.999_9).contains(&confidence) { confidence } else { 0.95 }
}
