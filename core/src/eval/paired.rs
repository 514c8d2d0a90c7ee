//! Two arms over the same tasks.
//!
//! Tasks differ far more than arms do, so arms are compared task by task: each task's difference is one observation, and
//! easy and hard tasks cancel out. Tasks that only one arm has are left out and counted.

use serde::Serialize;

use super::exact::{TestResult, holm, mcnemar, sign_flip};
use super::interval::Bounds;
use super::measure::{BetterSide, EvalMeasure, mean, task_means};
use super::power::detectable_difference;
use super::resample::{SamplingOptions, mean_interval, padded};
use super::trial::TrialSet;

/// One task as two arms did it.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedTask {
    pub task: String,
    /// Averages over repeats.
    pub baseline: f64,
    pub arm: f64,
    /// Of the arm that has fewer.
    pub repeats: u32,
}

impl PairedTask {
    pub fn difference(&self) -> f64 {
        let difference = self.arm - self.baseline;
        // Means of the same values in another order differ in their last digits.
        let noise = 1e-9 * self.arm.abs().max(self.baseline.abs());
        if difference.abs() <= noise { 0.0 } else { difference }
    }
}

/// Why no winner is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UndecidedReason {
    NoTasksInCommon,
    /// A single task shows nothing about others.
    SingleTask,
    /// An end of the interval at 0 is included.
    IntervalContainsZero,
    /// The corrected p is not below alpha.
    NotSignificant,
    /// More of this measure is neither better nor worse.
    NoBetterSide,
}

/// Whether the arm is better than the baseline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "is")]
pub enum ArmConclusion {
    Better,
    Worse,
    Undecided { because: Vec<UndecidedReason> },
}

/// An arm and the baseline in one measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairedComparison {
    pub measure: EvalMeasure,
    pub baseline: String,
    pub arm: String,
    /// Tasks that both have.
    pub tasks: usize,
    /// Tasks that only one of them has.
    pub unpaired: usize,
    /// Tasks in which they differ.
    pub differing: usize,
    /// Arm minus baseline. `None` without tasks in common.
    pub mean_difference: Option<f64>,
    /// [`mean_interval`]. `None` for fewer than two tasks.
    pub interval: Option<Bounds>,
    #[serde(flatten)]
    pub test: TestResult,
    /// Corrected for all arms that were compared with the baseline ([`holm`]).
    pub p_corrected: f64,
    /// The number of arms that were compared with the baseline.
    pub comparisons: usize,
    /// The standard deviation of the differences, of rates with the same padding as the interval.
    pub spread: Option<f64>,
    /// The smallest true difference that this comparison would probably find, in the strictest step of the correction.
    pub detectable: Option<f64>,
    pub conclusion: ArmConclusion,
}

/// Two arms, task by task. They may be the same arm of two evaluations.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedArms {
    pub baseline: String,
    pub arm: String,
    pub pairs: Vec<PairedTask>,
    /// Tasks that only one of them has.
    pub unpaired: usize,
}

impl PairedArms {
    /// The tasks that both have, by name.
    pub fn of(
        measure: EvalMeasure,
        (first, baseline): (&TrialSet, &str),
        (second, arm): (&TrialSet, &str),
    ) -> PairedArms {
        let (left, right) = (task_means(first, baseline, measure), task_means(second, arm, measure));
        let both = left.iter().filter_map(|(task, first)| {
            let second = right.get(task)?;
            let repeats = first.repeats.min(second.repeats);
            Some(PairedTask { task: (*task).to_owned(), baseline: first.mean, arm: second.mean, repeats })
        });
        let pairs: Vec<PairedTask> = both.collect();
        let unpaired = left.len() + right.len() - 2 * pairs.len();
        PairedArms { baseline: baseline.to_owned(), arm: arm.to_owned(), pairs, unpaired }
    }
}

/// Compares each arm with the baseline. The baseline itself and arms named twice are skipped.
///
/// The correction is over the arms, not over measures: choose the measure that decides before looking at the figures,
/// and read the others as hints.
pub fn compare(
    trials: &TrialSet,
    measure: EvalMeasure,
    baseline: &str,
    arms: &[&str],
    options: SamplingOptions,
) -> Vec<PairedComparison> {
    let mut others: Vec<&str> = Vec::new();
    for arm in arms {
        if *arm != baseline && !others.contains(arm) {
            others.push(arm);
        }
    }
    let paired = others.iter().map(|arm| PairedArms::of(measure, (trials, baseline), (trials, arm)));
    compare_pairs(measure, paired.collect(), options)
}

/// Compares the arms of each pair, corrected for the number of pairs.
pub fn compare_pairs(
    measure: EvalMeasure,
    paired: Vec<PairedArms>,
    options: SamplingOptions,
) -> Vec<PairedComparison> {
    let options = options.checked();
    let tests: Vec<TestResult> = paired.iter().map(|arms| test(&arms.pairs, measure, options)).collect();
    let corrected = holm(&tests.iter().map(|test| test.p).collect::<Vec<f64>>());
    let comparisons = paired.len();
    let rows = paired.into_iter().zip(tests.iter().zip(corrected));
    rows.map(|(PairedArms { baseline, arm, pairs, unpaired }, (test, p_corrected))| {
        let differences: Vec<f64> = pairs.iter().map(PairedTask::difference).collect();
        let padding = padding(&pairs, measure);
        let interval = mean_interval(&differences, padding, options).map(|found| in_range(found, measure));
        let spread = spread(&differences, padding);
        let alpha = options.alpha() / comparisons as f64;
        let mean_difference = (!differences.is_empty()).then(|| mean(&differences));
        PairedComparison {
            measure,
            baseline,
            arm,
            tasks: pairs.len(),
            unpaired,
            differing: differences.iter().filter(|one| one.abs() > 0.0).count(),
            mean_difference,
            interval,
            test: *test,
            p_corrected,
            comparisons,
            spread,
            detectable: spread.and_then(|spread| {
                detectable_difference(spread, differences.len() as u64, alpha, options.power)
            }),
            conclusion: conclude(measure, mean_difference, interval, p_corrected, options.alpha()),
        }
    })
    .collect()
}

/// A winner is named only if the interval excludes 0 and the corrected p is below alpha.
pub fn conclude(
    measure: EvalMeasure,
    mean_difference: Option<f64>,
    interval: Option<Bounds>,
    p_corrected: f64,
    alpha: f64,
) -> ArmConclusion {
    let undecided = |because| ArmConclusion::Undecided { because };
    let (difference, interval) = match (mean_difference, interval) {
        (None, _) => return undecided(vec![UndecidedReason::NoTasksInCommon]),
        (Some(_), None) => return undecided(vec![UndecidedReason::SingleTask]),
        (Some(difference), Some(interval)) => (difference, interval),
    };
    let mut because = Vec::new();
    if interval.contains(0.0) {
        because.push(UndecidedReason::IntervalContainsZero);
    }
    // Not `p >= alpha`: whatever is not surely below is not significant.
    let significant = p_corrected < alpha;
    if !significant {
        because.push(UndecidedReason::NotSignificant);
    }
    match (measure.better_side(), because.is_empty()) {
        (Some(BetterSide::Higher), true) if difference > 0.0 => ArmConclusion::Better,
        (Some(BetterSide::Lower), true) if difference < 0.0 => ArmConclusion::Better,
        (Some(BetterSide::Higher | BetterSide::Lower), true) => ArmConclusion::Worse,
        (None, true) => undecided(vec![UndecidedReason::NoBetterSide]),
        (_, false) => undecided(because),
    }
}

/// McNemar's where every task has one trial in each arm with yes or no, else the sign-flip test.
fn test(pairs: &[PairedTask], measure: EvalMeasure, options: SamplingOptions) -> TestResult {
    if measure.is_rate() && pairs.iter().all(is_single) {
        let only = |is_ahead: fn(f64) -> bool| {
            pairs.iter().filter(|pair| is_ahead(pair.difference())).count() as u64
        };
        return mcnemar(only(|difference| difference < 0.0), only(|difference| difference > 0.0));
    }
    let differences: Vec<f64> = pairs.iter().map(PairedTask::difference).collect();
    sign_flip(&differences, options.resamples, options.seed)
}

/// Yes or no in both arms. If one arm has more repeats, they all agree, which is like a single result.
fn is_single(pair: &PairedTask) -> bool {
    let is_whole = |value: f64| value <= 0.0 || value >= 1.0;
    pair.repeats == 1 && is_whole(pair.baseline) && is_whole(pair.arm)
}

/// The least by which the averages of a task can differ.
fn padding(pairs: &[PairedTask], measure: EvalMeasure) -> Option<f64> {
    let repeats = pairs.iter().map(|pair| pair.repeats).min()?;
    measure.is_rate().then(|| 1.0 / f64::from(repeats.max(1)))
}

/// Two rates differ by at most 1.
fn in_range(found: Bounds, measure: EvalMeasure) -> Bounds {
    if measure.is_rate() {
        Bounds { lower: found.lower.max(-1.0), upper: found.upper.min(1.0) }
    } else {
        found
    }
}

/// The standard deviation, with the padding. `None` for fewer than two tasks.
fn spread(differences: &[f64], padding: Option<f64>) -> Option<f64> {
    if differences.len() < 2 {
        return None;
    }
    let pool = padded(differences, padding);
    let center = mean(&pool);
    let squares: f64 = pool.iter().map(|one| (one - center) * (one - center)).sum();
    Some((squares / (pool.len() - 1) as f64).sqrt())
}
