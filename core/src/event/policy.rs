//! Corrections: shadows seen, budget steps passed, checkpoints.

use serde::{Deserialize, Serialize};

use super::Stop;
use crate::model::{Money, ShadowAction, Sighting};

/// A virtue has turned into its shadow (AF-130..AF-147).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShadowDetected {
    /// The archetype, or `system`.
    pub archetype: String,
    pub shadow: String,
    /// The first trigger that fired; the others are in `sightings`.
    pub trigger: String,
    pub measured: u64,
    pub threshold: u64,
    pub action: ShadowAction,
    pub cycle: u32,
    /// Detections of this shadow at this archetype in the run, this one included, and in the cycle (CL-03).
    pub count: u32,
    pub count_in_cycle: u32,
    pub sightings: Vec<Sighting>,
    /// What follows, in words: the correction, or what a person has to decide.
    pub detail: String,
    /// The attempt whose answer was looked at; 0 for a shadow of the system.
    #[serde(default)]
    pub looked_at: u64,
    /// For a system shadow: the archetype that is started again, or the lesson concerned.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Set when the action is to break.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
}

/// Spending has passed a budget step (AF-151).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetStep {
    /// 50, 80, 95 or 100.
    pub step: u32,
    pub effect: BudgetEffect,
    pub spent_usd: Money,
    pub budget_usd: Money,
    /// Which limit it is: `run` or `day`.
    pub limit: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BudgetEffect {
    Warn,
    /// Reviewers get the next cheaper tier.
    Downgrade,
    /// This cycle is finished, no other begins.
    FinishThenStop,
    StopNow,
}

/// Where the cost of an attempt comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// Reported by the agent.
    Reported,
    /// Tokens it reported, times the price of its tier.
    Priced,
    /// Nothing is known: the reservation counts (I4).
    Reserved,
}

/// AF-150: the state of the run, for the person who takes over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyCheckpoint {
    pub number: u32,
    pub why: String,
    /// Time agents worked since the last one.
    pub worked_ms: u64,
    pub spent_usd: Money,
    /// Percent of the budget, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_percent: Option<u32>,
    /// Findings above INFO at the end of the first and of the last cycle.
    pub first_findings: u32,
    pub last_findings: u32,
    /// Why no other cycle begins, if none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stops: Option<Stop>,
}
