//! What is reported about loops: alerts while one runs (PJ-60..PJ-63, PC-11), figures over all of them with their goals
//! (PJ-64..PJ-68). Alerts stop nothing.

use crate::model::named::named;
use crate::model::{LoopPolicy, Risk};

/// A loop at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopSnapshot {
    /// Rounds from Planner to Planner since a person last spoke.
    pub rounds_alone: u32,
    pub risk: Option<Risk>,
    /// A person approved the plan at hand.
    pub approved: bool,
    /// INSUFFICIENT in a row.
    pub insufficient: u32,
    pub since_checkpoint_ms: u64,
}

pub use crate::model::Alert;

pub fn alerts(moment: LoopSnapshot, policy: &LoopPolicy) -> Vec<Alert> {
    let found = [
        (moment.rounds_alone >= policy.stuck_after, Alert::Stuck),
        (moment.risk == Some(Risk::High) && !moment.approved, Alert::HighRisk),
        (moment.insufficient >= policy.pause_after, Alert::Paused),
        (moment.since_checkpoint_ms > policy.checkpoint_ms, Alert::Duration),
    ];
    found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, alert)| alert).collect()
}

/// All cycles that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub succeeded: u32,
    pub incomplete: u32,
    pub failed: u32,
    pub iterations: u32,
    pub passes: u32,
    pub insufficient: u32,
    /// Cycles that paused at least once, however they ended.
    pub paused: u32,
    pub approvals: u32,
    pub approval_ms: u64,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Light {
        Green = "green",
        Red = "red",
        /// Nothing to measure yet.
        Dark = "-",
    }
}

impl Light {
    fn of(any: u32, good: bool) -> Light {
        match (any, good) {
            (0, _) => Light::Dark,
            (_, true) => Light::Green,
            (_, false) => Light::Red,
        }
    }
}

impl Tally {
    pub fn cycles(self) -> u32 {
        self.succeeded.saturating_add(self.incomplete).saturating_add(self.failed)
    }

    /// PJ-64.
    pub fn iterations(self, policy: &LoopPolicy) -> Light {
        let most = u64::from(self.cycles()) * u64::from(policy.goals.iterations);
        Light::of(self.cycles(), u64::from(self.iterations) <= most)
    }

    /// PJ-65.
    pub fn pass_rate(self, policy: &LoopPolicy) -> Light {
        let all = self.passes.saturating_add(self.insufficient);
        Light::of(all, u64::from(self.passes) * 100 >= u64::from(all) * u64::from(policy.goals.pass_rate))
    }

    /// PJ-66, in milliseconds, rounded down.
    pub fn approval_latency(self) -> Option<u64> {
        self.approval_ms.checked_div(u64::from(self.approvals))
    }

    /// PJ-67.
    pub fn pause_rate(self, policy: &LoopPolicy) -> Light {
        let few =
            u64::from(self.paused) * 100 < u64::from(self.cycles()) * u64::from(policy.goals.pause_rate);
        Light::of(self.cycles(), few)
    }
}
