//! Ship or block under other reviewer weights (AF-180, BX-12).
//!
//! Strict is how the program decides: every reviewer that does not approve blocks. Weighted adds up the reviewers that do not: the
//! share of their weight in all of it, compared crosswise with the threshold (D-13).

use std::collections::BTreeMap;

use crate::event::{Decision, Entry, Event};
use crate::model::{Millionths, Money, Verdict};

/// In millionths, so that 0.5 is exact.
pub type Weight = u64;

/// The weight of a reviewer that is not named.
pub const USUAL: Weight = 1_000_000;

/// Half of all weight blocks.
pub const THRESHOLD: Millionths = 500_000;

/// The heaviest weight that is taken: sums stay exact.
const HEAVIEST: Weight = 1_000_000 * USUAL;

/// A decimal from 0 to a million. Amounts are written the same way.
pub fn weight(text: &str) -> Option<Weight> {
    Money::parse(text).map(|parsed| parsed.0).filter(|weight| *weight <= HEAVIEST)
}

/// A decimal from 0 to 1.
pub fn threshold(text: &str) -> Option<Millionths> {
    weight(text).and_then(|share| Millionths::try_from(share).ok()).filter(|share| *share <= 1_000_000)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ship {
    Ship,
    Block,
}

impl Ship {
    pub fn name(self) -> &'static str {
        match self {
            Ship::Ship => "SHIP",
            Ship::Block => "BLOCK",
        }
    }

    fn blocked(blocks: bool) -> Ship {
        if blocks { Ship::Block } else { Ship::Ship }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedReviewer {
    pub archetype: String,
    pub verdict: Verdict,
    pub weight: Weight,
}

impl WeightedReviewer {
    /// Only an approval does not block.
    pub fn is_strict(&self) -> bool {
        self.verdict != Verdict::Approved
    }

    pub fn contributes(&self) -> Weight {
        if self.is_strict() { self.weight } else { 0 }
    }
}

/// Both outcomes, and who brought them about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weighed {
    pub threshold: Millionths,
    pub reviewers: Vec<WeightedReviewer>,
    pub strict: Ship,
    pub weighted: Ship,
    /// In thousandths, rounded; for people.
    pub strictness: u64,
}

/// Why nothing can be weighed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WeighingError {
    /// Nobody has reviewed in this run.
    NoVerdict,
    /// A weight was given to an archetype that did not review.
    Stranger { named: String, known: Vec<String> },
    /// All weights are 0.
    Weightless,
}

/// The last verdict of each reviewer, in alphabetical order. Only Check has verdicts, though those of reviews that were
/// brought along are written down later.
pub fn last_verdicts(log: &[Entry]) -> BTreeMap<String, Verdict> {
    let mut last = BTreeMap::new();
    for entry in log {
        if let Event::Decision(Decision::ReviewVerdict(review)) = &entry.event {
            last.insert(review.archetype.clone(), review.verdict);
        }
    }
    last
}

pub fn weigh(
    log: &[Entry],
    weights: &BTreeMap<String, Weight>,
    threshold: Millionths,
) -> Result<Weighed, WeighingError> {
    let last = last_verdicts(log);
    if last.is_empty() {
        return Err(WeighingError::NoVerdict);
    }
    if let Some(named) = weights.keys().find(|name| !last.contains_key(*name)) {
        return Err(WeighingError::Stranger { named: named.clone(), known: last.into_keys().collect() });
    }
    let reviewers: Vec<WeightedReviewer> = last
        .into_iter()
        .map(|(archetype, verdict)| {
            let weight = weights.get(&archetype).copied().unwrap_or(USUAL);
            WeightedReviewer { archetype, verdict, weight }
        })
        .collect();
    let sum =
        |of: fn(&WeightedReviewer) -> Weight| reviewers.iter().map(|one| u128::from(of(one))).sum::<u128>();
    let (against, all) = (sum(WeightedReviewer::contributes), sum(|one| one.weight));
    if all == 0 {
        return Err(WeighingError::Weightless);
    }
    let strictness = u64::try_from((against * 1_000 * 2 + all) / (all * 2)).unwrap_or(u64::MAX);
    Ok(Weighed {
        threshold,
        strict: Ship::blocked(reviewers.iter().any(WeightedReviewer::is_strict)),
        weighted: Ship::blocked(against * 1_000_000 >= u128::from(threshold) * all),
        strictness,
        reviewers,
    })
}
