//! Figures of one arm.
//!
//! Repeats of a task are averaged first, and every figure is about these averages: the tasks are the sample, not the
//! runs. Repeats of one task resemble each other, so counting each as a result of its own would pretend to know more
//! tasks than there are, and the intervals would be too narrow.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::interval::{Bounds, clopper_pearson};
use super::resample::{SamplingOptions, mean_interval, share_interval};
use super::trial::{EvalTrial, TrialOutcome, TrialSet};
use crate::model::named::named;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum EvalMeasure {
        Solved = "solved",
        WronglyLanded = "wrongly_landed",
        RightlyHeldBack = "rightly_held_back",
        WronglyHeldBack = "wrongly_held_back",
        Failed = "failed",
        /// Fell into at least one trap; only tasks that contain one count.
        Trapped = "trapped",
        Cycles = "cycles",
        /// Input and output; input includes what came from a cache.
        Tokens = "tokens",
        Dollars = "dollars",
        Minutes = "minutes",
        /// Decisions asked of people.
        Decisions = "decisions",
    }
}

/// Which value of a measure is the better one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BetterSide {
    Higher,
    Lower,
}

impl EvalMeasure {
    /// Whether a single trial has 0 or 1.
    pub fn is_rate(self) -> bool {
        match self {
            EvalMeasure::Solved
            | EvalMeasure::WronglyLanded
            | EvalMeasure::RightlyHeldBack
            | EvalMeasure::WronglyHeldBack
            | EvalMeasure::Failed
            | EvalMeasure::Trapped => true,
            EvalMeasure::Cycles
            | EvalMeasure::Tokens
            | EvalMeasure::Dollars
            | EvalMeasure::Minutes
            | EvalMeasure::Decisions => false,
        }
    }

    /// `None` for changes rightly held back: more of them may mean better reviewers or worse Makers.
    pub fn better_side(self) -> Option<BetterSide> {
        match self {
            EvalMeasure::Solved => Some(BetterSide::Higher),
            EvalMeasure::RightlyHeldBack => None,
            EvalMeasure::WronglyLanded
            | EvalMeasure::WronglyHeldBack
            | EvalMeasure::Failed
            | EvalMeasure::Trapped
            | EvalMeasure::Cycles
            | EvalMeasure::Tokens
            | EvalMeasure::Dollars
            | EvalMeasure::Minutes
            | EvalMeasure::Decisions => Some(BetterSide::Lower),
        }
    }

    /// `None` if this trial can't be measured so.
    pub fn value(self, trial: &EvalTrial) -> Option<f64> {
        let outcome = trial.outcome();
        let share = |of: TrialOutcome| {
            (outcome != TrialOutcome::Unmeasured).then(|| f64::from(u8::from(outcome == of)))
        };
        match self {
            EvalMeasure::Solved => share(TrialOutcome::Solved),
            EvalMeasure::WronglyLanded => share(TrialOutcome::WronglyLanded),
            EvalMeasure::RightlyHeldBack => share(TrialOutcome::RightlyHeldBack),
            EvalMeasure::WronglyHeldBack => share(TrialOutcome::WronglyHeldBack),
            EvalMeasure::Failed => share(TrialOutcome::Failed),
            EvalMeasure::Trapped => {
                let fell = !trial.traps_fallen.is_empty();
                (fell || !trial.traps_set.is_empty()).then(|| f64::from(u8::from(fell)))
            }
            EvalMeasure::Cycles => Some(f64::from(trial.cycles)),
            EvalMeasure::Tokens => Some(trial.tokens.input.saturating_add(trial.tokens.output) as f64),
            EvalMeasure::Dollars => Some(trial.money.0 as f64 / 1e6),
            EvalMeasure::Minutes => trial.seconds.map(|seconds| seconds as f64 / 60.0),
            EvalMeasure::Decisions => Some(f64::from(trial.decisions)),
        }
    }
}

/// The average over the repeats of one task.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TaskMean {
    pub mean: f64,
    /// At least 1.
    pub repeats: u32,
}

/// One average per task of the arm; tasks without a measurable trial are left out.
pub fn task_means<'a>(
    trials: &'a TrialSet,
    arm: &'a str,
    measure: EvalMeasure,
) -> BTreeMap<&'a str, TaskMean> {
    let mut sums: BTreeMap<&str, (f64, u32)> = BTreeMap::new();
    for trial in trials.of_arm(arm) {
        if let Some(value) = measure.value(trial) {
            let (sum, repeats) = sums.entry(&trial.key.task).or_default();
            *sum += value;
            *repeats += 1;
        }
    }
    let mean = |(sum, repeats)| TaskMean { mean: sum / f64::from(repeats), repeats };
    sums.into_iter().map(|(task, counted)| (task, mean(counted))).collect()
}

/// One measure of one arm, over its tasks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeasureFigure {
    pub tasks: usize,
    pub mean: f64,
    pub median: f64,
    /// Of a rate: [`clopper_pearson`] with the tasks as tries and their averages as hits. Averages over repeats vary
    /// less than single tries, so the interval is rather too wide than too narrow.
    ///
    /// Of an amount: [`mean_interval`], only in [`ArmMeasures::sampled`] and for at least two tasks.
    pub interval: Option<Bounds>,
}

/// One reviewer in one arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Default)]
pub struct ReviewerMeasures {
    pub confirmed: u64,
    pub refuted: u64,
    pub missed: u64,
    /// The share of its findings that are right. Counts are averaged per task before they are added up, so that a task
    /// with more repeats has no more weight. `None` without findings.
    pub precision: Option<f64>,
    /// [`share_interval`], only in [`ArmMeasures::sampled`] and for at least two tasks.
    pub precision_interval: Option<Bounds>,
    /// The share of the flaws that it found, averaged in the same way. `None` without flaws.
    pub recall: Option<f64>,
    pub recall_interval: Option<Bounds>,
}

/// All figures of one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmMeasures {
    pub arm: String,
    pub tasks: usize,
    pub trials: usize,
    /// Trials whose hidden tests could not be run.
    pub unmeasured: usize,
    /// A measure that no trial has is absent.
    pub figures: BTreeMap<EvalMeasure, MeasureFigure>,
    pub reviewers: BTreeMap<String, ReviewerMeasures>,
}

impl ArmMeasures {
    /// With the intervals that need no chance: those of rates.
    pub fn of(trials: &TrialSet, arm: &str, confidence: f64) -> ArmMeasures {
        ArmMeasures::counted(trials, arm, confidence, None)
    }

    /// With all intervals. Those of amounts and of reviewers are found by drawing tasks again.
    pub fn sampled(trials: &TrialSet, arm: &str, options: SamplingOptions) -> ArmMeasures {
        let options = options.checked();
        ArmMeasures::counted(trials, arm, options.confidence, Some(options))
    }

    fn counted(
        trials: &TrialSet,
        arm: &str,
        confidence: f64,
        sampling: Option<SamplingOptions>,
    ) -> ArmMeasures {
        let tasks: BTreeSet<&str> = trials.of_arm(arm).map(|trial| trial.key.task.as_str()).collect();
        let figures = EvalMeasure::ALL.into_iter().filter_map(|measure| {
            let values: Vec<f64> = task_means(trials, arm, measure).values().map(|task| task.mean).collect();
            let tasks = values.len();
            let rate = measure.is_rate();
            (tasks > 0).then(|| {
                let mean = mean(&values);
                let hits = values.iter().sum::<f64>();
                let interval = if rate {
                    Some(clopper_pearson(hits, tasks as f64, confidence))
                } else {
                    sampling.and_then(|options| mean_interval(&values, None, options))
                };
                (measure, MeasureFigure { tasks, mean, median: median(&values), interval })
            })
        });
        ArmMeasures {
            arm: arm.to_owned(),
            tasks: tasks.len(),
            trials: trials.of_arm(arm).count(),
            unmeasured: trials
                .of_arm(arm)
                .filter(|trial| trial.outcome() == TrialOutcome::Unmeasured)
                .count(),
            figures: figures.collect(),
            reviewers: reviewers(trials, arm, sampling),
        }
    }
}

fn reviewers(
    trials: &TrialSet,
    arm: &str,
    sampling: Option<SamplingOptions>,
) -> BTreeMap<String, ReviewerMeasures> {
    #[derive(Default)]
    struct TaskCounts {
        trials: u32,
        confirmed: u64,
        refuted: u64,
        missed: u64,
    }
    let mut counts: BTreeMap<&str, BTreeMap<&str, TaskCounts>> = BTreeMap::new();
    for trial in trials.of_arm(arm) {
        for (reviewer, found) in &trial.reviewers {
            let task = counts.entry(reviewer).or_default().entry(&trial.key.task).or_default();
            task.trials += 1;
            task.confirmed += u64::from(found.confirmed);
            task.refuted += u64::from(found.refuted);
            task.missed += u64::from(found.missed);
        }
    }
    let measured = |tasks: &BTreeMap<&str, TaskCounts>| {
        let total = |count: fn(&TaskCounts) -> u64| tasks.values().map(count).sum::<u64>();
        // The right ones and the others of each task, averaged over its trials.
        let averaged = |others: fn(&TaskCounts) -> u64| -> Vec<(f64, f64)> {
            let mean = |count: u64, trials: u32| count as f64 / f64::from(trials);
            let of = |task: &TaskCounts| (mean(task.confirmed, task.trials), mean(others(task), task.trials));
            tasks.values().map(of).collect()
        };
        let (findings, flaws) = (averaged(|task| task.refuted), averaged(|task| task.missed));
        let interval = |tasks| sampling.and_then(|options| share_interval(tasks, options));
        ReviewerMeasures {
            confirmed: total(|task| task.confirmed),
            refuted: total(|task| task.refuted),
            missed: total(|task| task.missed),
            precision: share(&findings),
            precision_interval: interval(&findings),
            recall: share(&flaws),
            recall_interval: interval(&flaws),
        }
    };
    counts.into_iter().map(|(reviewer, tasks)| (reviewer.to_owned(), measured(&tasks))).collect()
}

/// The first of each pair as a share of both, over all. `None` if there is nothing to share.
pub(super) fn share(pairs: &[(f64, f64)]) -> Option<f64> {
    let (hits, others) =
        pairs.iter().fold((0.0, 0.0), |(hits, others), (hit, other)| (hits + hit, others + other));
    (hits + others > 0.0).then(|| hits / (hits + others))
}

/// 0 for nothing.
pub(super) fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The middle one, or halfway between the two in the middle; 0 for nothing.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let lower = sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0.0);
    f64::midpoint(lower, upper)
}
