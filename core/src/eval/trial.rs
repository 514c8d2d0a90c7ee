//! The record of one run of one task in one arm, and what it amounts to.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::event::Tokens;
use crate::model::Money;
use crate::model::named::named;

/// Which run of the evaluation this was.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TrialKey {
    pub task: String,
    pub arm: String,
    /// Counted from 1.
    pub repeat: u32,
}

named! {
    /// How the run ended, as the program under evaluation saw it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TrialEnd {
        Landed = "landed",
        /// The run stopped by its own rules and kept its work from the branch.
        HeldBack = "held_back",
        Failed = "failed",
        /// Stopped at the task's limit of time or money.
        OverLimit = "over_limit",
    }
}

named! {
    /// The end of a run, judged by the hidden tests.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TrialOutcome {
        /// Landed, and the hidden tests pass.
        Solved = "solved",
        /// Landed, and they fail.
        WronglyLanded = "wrongly_landed",
        /// Held back, and they fail on the work that was held back.
        RightlyHeldBack = "rightly_held_back",
        /// Held back, though they pass.
        WronglyHeldBack = "wrongly_held_back",
        /// Failed or went over a limit, whatever it had built by then.
        Failed = "failed",
        /// The hidden tests were not run, so right and wrong can't be distinguished. Counts in no rate of outcomes.
        Unmeasured = "unmeasured",
    }
}

/// The findings of one reviewer in one run, compared with what is known about the task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct ReviewerCounts {
    /// Findings that name a real flaw.
    pub confirmed: u32,
    /// Findings that name none.
    pub refuted: u32,
    /// Flaws in what the reviewer was shown, without a finding.
    pub missed: u32,
}

/// The record of one run. One line of JSON; fields that this version does not know are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvalTrial {
    /// Format of the record: [`EvalTrial::FORMAT`].
    pub v: u32,
    #[serde(flatten)]
    pub key: TrialKey,
    pub end: TrialEnd,
    /// Whether what the run built passes the hidden tests, also if it was held back. A run that built nothing has
    /// `false`, as the base fails them. `None` only if the tests could not be run.
    #[serde(default)]
    pub hidden_pass: Option<bool>,
    /// The traps that the task contains, by name.
    #[serde(default)]
    pub traps_set: BTreeSet<String>,
    /// The traps that this run fell into.
    #[serde(default)]
    pub traps_fallen: BTreeSet<String>,
    #[serde(default)]
    pub cycles: u32,
    #[serde(default)]
    pub tokens: Tokens,
    #[serde(default)]
    pub money: Money,
    /// `None` where only the rules were run.
    #[serde(default)]
    pub seconds: Option<u64>,
    /// Decisions asked of people.
    #[serde(default)]
    pub decisions: u32,
    #[serde(default)]
    pub reviewers: BTreeMap<String, ReviewerCounts>,
}

impl EvalTrial {
    pub const FORMAT: u32 = 1;

    /// A record in which nothing was spent and nothing was reviewed.
    pub fn new(key: TrialKey, end: TrialEnd, hidden_pass: Option<bool>) -> EvalTrial {
        EvalTrial {
            v: EvalTrial::FORMAT,
            key,
            end,
            hidden_pass,
            traps_set: BTreeSet::new(),
            traps_fallen: BTreeSet::new(),
            cycles: 0,
            tokens: Tokens::default(),
            money: Money::ZERO,
            seconds: Some(0),
            decisions: 0,
            reviewers: BTreeMap::new(),
        }
    }

    /// One line of JSON. The error is a sentence with the remedy; the caller knows file and line.
    pub fn read(line: &str) -> Result<EvalTrial, String> {
        let remedy = "remove the line, and the trial runs again";
        let trial: serde_json::Value =
            serde_json::from_str(line).map_err(|why| format!("no JSON: {why}; {remedy}"))?;
        match trial.get("v").and_then(serde_json::Value::as_u64) {
            Some(found) if found > u64::from(EvalTrial::FORMAT) => {
                Err(format!("a trial of format {found}, written by a newer version; update archeflow"))
            }
            Some(_) | None => {
                serde_json::from_value(trial).map_err(|why| format!("no trial: {why}; {remedy}"))
            }
        }
    }

    pub fn outcome(&self) -> TrialOutcome {
        match (self.end, self.hidden_pass) {
            (TrialEnd::Failed | TrialEnd::OverLimit, _) => TrialOutcome::Failed,
            (TrialEnd::Landed | TrialEnd::HeldBack, None) => TrialOutcome::Unmeasured,
            (TrialEnd::Landed, Some(true)) => TrialOutcome::Solved,
            (TrialEnd::Landed, Some(false)) => TrialOutcome::WronglyLanded,
            (TrialEnd::HeldBack, Some(true)) => TrialOutcome::WronglyHeldBack,
            (TrialEnd::HeldBack, Some(false)) => TrialOutcome::RightlyHeldBack,
        }
    }
}

/// Trials by their keys. Their order does not depend on the order in which they were recorded, so neither does any
/// figure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrialSet {
    trials: BTreeMap<TrialKey, EvalTrial>,
}

impl TrialSet {
    /// Returns false if there is a trial with this key: the first record of a run counts, so that a resumed evaluation
    /// can't replace a result by another try.
    pub fn add(&mut self, trial: EvalTrial) -> bool {
        if self.trials.contains_key(&trial.key) {
            return false;
        }
        self.trials.insert(trial.key.clone(), trial);
        true
    }

    pub fn len(&self) -> usize {
        self.trials.len()
    }

    pub fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    pub fn get(&self, key: &TrialKey) -> Option<&EvalTrial> {
        self.trials.get(key)
    }

    /// By task, arm and repeat.
    pub fn iter(&self) -> impl Iterator<Item = &EvalTrial> {
        self.trials.values()
    }

    pub fn arms(&self) -> BTreeSet<&str> {
        self.iter().map(|trial| trial.key.arm.as_str()).collect()
    }

    /// By task and repeat.
    pub fn of_arm<'a>(&'a self, arm: &'a str) -> impl Iterator<Item = &'a EvalTrial> {
        self.iter().filter(move |trial| trial.key.arm == arm)
    }
}

/// Of several trials with the same key, the first stays.
impl FromIterator<EvalTrial> for TrialSet {
    fn from_iter<I: IntoIterator<Item = EvalTrial>>(trials: I) -> TrialSet {
        let mut set = TrialSet::default();
        for trial in trials {
            set.add(trial);
        }
        set
    }
}
