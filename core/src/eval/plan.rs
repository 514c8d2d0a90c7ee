//! What an evaluation is about: written before its first run, and the same for all of its trials.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::trial::TrialKey;
use crate::model::{Millis, Money};

/// The file `eval.json` of an evaluation. Fields that this version does not know are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalPlan {
    /// Format of the file: [`EvalPlan::FORMAT`].
    pub v: u32,
    pub suite: String,
    #[serde(default)]
    pub about: String,
    /// Of all files of the suite: with another one, trials can't be added.
    pub suite_digest: String,
    pub tasks: Vec<PlannedTask>,
    pub arms: Vec<PlannedArm>,
    pub repeats: u32,
    /// As it was typed.
    pub agent: String,
    /// Simulated agents, not a model.
    #[serde(default)]
    pub simulated: bool,
    /// Of the population of simulated agents: its file may be another one by now.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub population: String,
    /// Runs in memory, without repositories, tests and processes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rules_only: bool,
    pub seed: u64,
    /// The most that all trials together may cost.
    #[serde(default)]
    pub budget: Option<Money>,
    /// The program that was evaluated.
    pub version: String,
    pub started: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTask {
    pub name: String,
    #[serde(default)]
    pub language: Option<String>,
    #[serde(default)]
    pub traps: BTreeSet<String>,
    #[serde(default)]
    pub dollars: Option<Money>,
    pub seconds: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedArm {
    pub name: String,
    #[serde(default)]
    pub about: String,
    /// Of the arm's files.
    pub digest: String,
}

impl EvalPlan {
    pub const FORMAT: u32 = 1;

    /// All trials, one repeat after the other and in each of them task by task, so that an evaluation that is stopped early
    /// has tried all arms equally often.
    pub fn trials(&self) -> impl Iterator<Item = TrialKey> {
        (1..=self.repeats).flat_map(move |repeat| {
            self.tasks.iter().flat_map(move |task| {
                self.arms.iter().map(move |arm| TrialKey {
                    task: task.name.clone(),
                    arm: arm.name.clone(),
                    repeat,
                })
            })
        })
    }
}
