//! Everything that `archeflow eval report` shows, computed once and drawn in several formats.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::measure::{ArmMeasures, EvalMeasure};
use super::paired::{PairedComparison, compare};
use super::plan::EvalPlan;
use super::resample::SamplingOptions;
use super::trial::{EvalTrial, TrialOutcome, TrialSet};

/// What the reader chose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReportOptions<'a> {
    pub baseline: &'a str,
    /// The measure that decides; the others are hints.
    pub measure: EvalMeasure,
    pub sampling: SamplingOptions,
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvalReport {
    pub plan: EvalPlan,
    /// Trials of the plan.
    pub planned: u64,
    pub done: usize,
    pub baseline: String,
    pub measure: EvalMeasure,
    pub confidence: f64,
    /// The chance to see a detectable difference.
    pub power: f64,
    /// In the order of the plan.
    pub arms: Vec<ArmReport>,
    /// Each other arm with the baseline, in the measure that decides.
    pub comparisons: Vec<PairedComparison>,
    /// The same in the other measures.
    pub hints: Vec<PairedComparison>,
    /// In the order of the plan.
    pub tasks: Vec<TaskReport>,
    pub incomplete: Vec<IncompleteTask>,
}

/// One arm of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmReport {
    pub about: String,
    #[serde(flatten)]
    pub measures: ArmMeasures,
    /// Trials by outcome, each of them counted.
    pub outcomes: BTreeMap<TrialOutcome, u64>,
}

/// One task, arm by arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskReport {
    pub name: String,
    pub language: Option<String>,
    /// In the order of the plan.
    pub arms: Vec<TaskCell>,
    pub traps: Vec<TrapReport>,
}

/// One task in one arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct TaskCell {
    pub trials: u32,
    pub solved: u32,
    pub wrongly_landed: u32,
    /// Trials whose hidden tests could not be run.
    pub unmeasured: u32,
}

/// One trap of one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TrapReport {
    pub trap: String,
    /// In the order of the plan.
    pub arms: Vec<TrapCell>,
}

/// One trap in one arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
pub struct TrapCell {
    pub fallen: u32,
    pub trials: u32,
}

/// A task that lacks trials in an arm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IncompleteTask {
    pub task: String,
    pub arm: String,
    pub done: u32,
    pub planned: u32,
    /// Done, but without a result of the hidden tests.
    pub unmeasured: u32,
}

impl EvalReport {
    pub fn of(plan: &EvalPlan, trials: &TrialSet, options: ReportOptions<'_>) -> EvalReport {
        let sampling = options.sampling.checked();
        let names: Vec<&str> = plan.arms.iter().map(|arm| arm.name.as_str()).collect();
        let compared = |measure| compare(trials, measure, options.baseline, &names, sampling);
        let arms = plan.arms.iter().map(|arm| ArmReport {
            about: arm.about.clone(),
            measures: ArmMeasures::sampled(trials, &arm.name, sampling),
            outcomes: outcomes(trials, &arm.name),
        });
        let tasks = task_reports(plan, trials);
        EvalReport {
            planned: (plan.tasks.len() as u64)
                .saturating_mul(plan.arms.len() as u64)
                .saturating_mul(u64::from(plan.repeats)),
            done: trials.len(),
            baseline: options.baseline.to_owned(),
            measure: options.measure,
            confidence: sampling.confidence,
            power: sampling.power,
            arms: arms.collect(),
            comparisons: compared(options.measure),
            hints: EvalMeasure::ALL
                .into_iter()
                .filter(|measure| *measure != options.measure)
                .flat_map(compared)
                .filter(|one| one.tasks > 0)
                .collect(),
            incomplete: incomplete(plan, &tasks),
            tasks,
            plan: plan.clone(),
        }
    }
}

fn outcomes(trials: &TrialSet, arm: &str) -> BTreeMap<TrialOutcome, u64> {
    let mut counts: BTreeMap<TrialOutcome, u64> = BTreeMap::new();
    for trial in trials.of_arm(arm) {
        *counts.entry(trial.outcome()).or_default() += 1;
    }
    counts
}

fn task_reports(plan: &EvalPlan, trials: &TrialSet) -> Vec<TaskReport> {
    let mut cells: BTreeMap<(&str, &str), Vec<&EvalTrial>> = BTreeMap::new();
    for trial in trials.iter() {
        cells.entry((&trial.key.task, &trial.key.arm)).or_default().push(trial);
    }
    let one = |task: &super::plan::PlannedTask| {
        let of_arms: Vec<&[&EvalTrial]> = plan
            .arms
            .iter()
            .map(|arm| cells.get(&(task.name.as_str(), arm.name.as_str())).map_or(&[][..], Vec::as_slice))
            .collect();
        let recorded = of_arms.iter().flat_map(|trials| trials.iter());
        let traps: BTreeSet<&str> = recorded
            .flat_map(|trial| trial.traps_set.iter().chain(&trial.traps_fallen))
            .chain(&task.traps)
            .map(String::as_str)
            .collect();
        TaskReport {
            name: task.name.clone(),
            language: task.language.clone(),
            arms: of_arms.iter().map(|trials| task_cell(trials)).collect(),
            traps: traps
                .into_iter()
                .map(|trap| TrapReport {
                    trap: trap.to_owned(),
                    arms: of_arms.iter().map(|trials| trap_cell(trials, trap)).collect(),
                })
                .collect(),
        }
    };
    plan.tasks.iter().map(one).collect()
}

fn task_cell(trials: &[&EvalTrial]) -> TaskCell {
    let mut cell = TaskCell::default();
    for trial in trials {
        cell.trials += 1;
        match trial.outcome() {
            TrialOutcome::Solved => cell.solved += 1,
            TrialOutcome::WronglyLanded => cell.wrongly_landed += 1,
            TrialOutcome::Unmeasured => cell.unmeasured += 1,
            TrialOutcome::RightlyHeldBack | TrialOutcome::WronglyHeldBack | TrialOutcome::Failed => {}
        }
    }
    cell
}

fn trap_cell(trials: &[&EvalTrial], trap: &str) -> TrapCell {
    let mut cell = TrapCell::default();
    for trial in trials {
        let fell = trial.traps_fallen.contains(trap);
        if fell || trial.traps_set.contains(trap) {
            cell.trials += 1;
            cell.fallen += u32::from(fell);
        }
    }
    cell
}

fn incomplete(plan: &EvalPlan, tasks: &[TaskReport]) -> Vec<IncompleteTask> {
    let mut found = Vec::new();
    for task in tasks {
        for (arm, cell) in plan.arms.iter().zip(&task.arms) {
            if cell.trials < plan.repeats || cell.unmeasured > 0 {
                found.push(IncompleteTask {
                    task: task.name.clone(),
                    arm: arm.name.clone(),
                    done: cell.trials,
                    planned: plan.repeats,
                    unmeasured: cell.unmeasured,
                });
            }
        }
    }
    found
}
