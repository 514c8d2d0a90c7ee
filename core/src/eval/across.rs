//! Two evaluations of the same tasks: another date, model or version.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::measure::EvalMeasure;
use super::paired::{PairedArms, PairedComparison, compare_pairs};
use super::plan::EvalPlan;
use super::resample::SamplingOptions;
use super::trial::TrialSet;

/// What `archeflow eval compare` shows. `first` is A and `second` is B; every difference is B minus A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvalDifference {
    pub first: EvalPlan,
    pub second: EvalPlan,
    pub first_done: usize,
    pub second_done: usize,
    pub confidence: f64,
    pub measure: EvalMeasure,
    /// What else than chance may be behind a difference.
    pub changes: Vec<PlanChange>,
    /// Tasks of both plans, in the order of the first.
    pub tasks: Vec<String>,
    pub only_first: Vec<String>,
    pub only_second: Vec<String>,
    /// Arms of both plans that are compared, in the order of the first.
    pub arms: Vec<String>,
    pub arms_only_first: Vec<String>,
    pub arms_only_second: Vec<String>,
    /// In the measure that decides, one per arm.
    pub comparisons: Vec<PairedComparison>,
    /// In the other measures.
    pub hints: Vec<PairedComparison>,
}

/// Something that the two plans don't have in common.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanChange {
    pub what: ChangedPart,
    /// The arm, if it is about one.
    pub arm: Option<String>,
    pub first: String,
    pub second: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangedPart {
    Suite,
    /// The files of the suite: a task may have become another one.
    SuiteDigest,
    Agent,
    /// One was simulated.
    Simulated,
    Version,
    Seed,
    Repeats,
    ArmDigest,
}

impl EvalDifference {
    /// `only`: the one arm to compare.
    pub fn of(
        (first, first_trials): (&EvalPlan, &TrialSet),
        (second, second_trials): (&EvalPlan, &TrialSet),
        only: Option<&str>,
        measure: EvalMeasure,
        options: SamplingOptions,
    ) -> EvalDifference {
        let options = options.checked();
        let (left, right) = (task_names(first), task_names(second));
        let (left_arms, right_arms) = (arm_names(first), arm_names(second));
        let arms: Vec<&str> = common(&left_arms, &right_arms)
            .into_iter()
            .filter(|arm| only.is_none_or(|only| only == *arm))
            .collect();
        let compared = |measure| {
            let paired =
                arms.iter().map(|arm| PairedArms::of(measure, (first_trials, arm), (second_trials, arm)));
            compare_pairs(measure, paired.collect(), options)
        };
        let hints = EvalMeasure::ALL.into_iter().filter(|other| *other != measure).flat_map(compared);
        EvalDifference {
            changes: changes(first, second, &arms),
            tasks: owned(common(&left, &right)),
            only_first: owned(without(&left, &right)),
            only_second: owned(without(&right, &left)),
            arms_only_first: owned(without(&left_arms, &right_arms)),
            arms_only_second: owned(without(&right_arms, &left_arms)),
            comparisons: compared(measure),
            hints: hints.filter(|one| one.tasks > 0).collect(),
            arms: owned(arms),
            first: first.clone(),
            second: second.clone(),
            first_done: first_trials.len(),
            second_done: second_trials.len(),
            confidence: options.confidence,
            measure,
        }
    }

    /// The tasks may not be the same in spite of their names.
    pub fn is_other_suite(&self) -> bool {
        self.first.suite_digest != self.second.suite_digest
    }
}

fn task_names(plan: &EvalPlan) -> Vec<&str> {
    plan.tasks.iter().map(|task| task.name.as_str()).collect()
}

fn arm_names(plan: &EvalPlan) -> Vec<&str> {
    plan.arms.iter().map(|arm| arm.name.as_str()).collect()
}

fn common<'a>(left: &[&'a str], right: &[&str]) -> Vec<&'a str> {
    let right: BTreeSet<&str> = right.iter().copied().collect();
    left.iter().copied().filter(|name| right.contains(name)).collect()
}

fn without<'a>(left: &[&'a str], right: &[&str]) -> Vec<&'a str> {
    let right: BTreeSet<&str> = right.iter().copied().collect();
    left.iter().copied().filter(|name| !right.contains(name)).collect()
}

fn owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

fn changes(first: &EvalPlan, second: &EvalPlan, arms: &[&str]) -> Vec<PlanChange> {
    let words = |simulated: bool| if simulated { "simulated agents" } else { "a model" };
    let mut found: Vec<PlanChange> = Vec::new();
    let rows = [
        (ChangedPart::Suite, first.suite.clone(), second.suite.clone()),
        (ChangedPart::SuiteDigest, first.suite_digest.clone(), second.suite_digest.clone()),
        (ChangedPart::Agent, first.agent.clone(), second.agent.clone()),
        (ChangedPart::Simulated, words(first.simulated).to_owned(), words(second.simulated).to_owned()),
        (ChangedPart::Version, first.version.clone(), second.version.clone()),
        (ChangedPart::Seed, first.seed.to_string(), second.seed.to_string()),
        (ChangedPart::Repeats, first.repeats.to_string(), second.repeats.to_string()),
    ];
    for (what, first, second) in rows {
        if first != second {
            found.push(PlanChange { what, arm: None, first, second });
        }
    }
    let digests = |plan: &EvalPlan| -> BTreeMap<String, String> {
        plan.arms.iter().map(|arm| (arm.name.clone(), arm.digest.clone())).collect()
    };
    let (before, after) = (digests(first), digests(second));
    for arm in arms {
        if let (Some(first), Some(second)) = (before.get(*arm), after.get(*arm))
            && first != second
        {
            found.push(PlanChange {
                what: ChangedPart::ArmDigest,
                arm: Some((*arm).to_owned()),
                first: first.clone(),
                second: second.clone(),
            });
        }
    }
    found
}
