//! The course of the cycle: transitions, choices, boundaries, breaks, the end.

use serde::{Deserialize, Serialize};

use super::{FindingLine, Share};
use crate::model::{Destination, Oid, Outcome, Phase, Reason, Remark, RunStatus, Seq, Severity, Workflow};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTransition {
    pub from: String,
    pub to: Phase,
    pub cycle: u32,
    pub artifacts_so_far: Vec<String>,
}

/// A choice of the program, with the rule and what it looked at (AF-180).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionPoint {
    /// The archetype concerned, or `program`.
    pub archetype: String,
    pub rule: String,
    pub input: String,
    pub decision: String,
    pub confidence: Share,
}

/// The same choice for people: what else could have been chosen, and why it was not (CL-31). Its parent is the line of
/// the choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord {
    /// The archetype concerned, or `program`.
    pub archetype: String,
    pub rule: String,
    pub what: String,
    pub chosen: String,
    pub alternatives: Vec<String>,
    pub rationale: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowEscalated {
    pub from: Workflow,
    pub to: Workflow,
    pub max_cycles: u32,
    pub rule: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixApplied {
    pub source: String,
    pub finding: String,
    pub file: String,
    pub line: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleBoundary {
    pub cycle: u32,
    pub max_cycles: u32,
    /// One of the extra cycles that were granted beforehand follows; `max_cycles` counts it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extra_cycle: bool,
    pub exit_condition: String,
    pub met: bool,
    pub fixes_applied: u32,
    pub next_action: NextAction,
    pub critical: u32,
    pub warning: u32,
    pub info: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convergence: Option<Trend>,
    /// Set when the next action is to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// The findings that are open, as they will be compared with the next cycle's.
    pub open: Vec<Tracked>,
    /// Where the change lands: rejections that do not keep it from landing, and reviewers that gave no review.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub passed_over: Vec<PassedOver>,
}

/// A reviewer without whose approval a change lands.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PassedOver {
    pub archetype: String,
    pub why: PassedOverBy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PassedOverBy {
    /// A person passed over the rejection, or accepted its findings.
    Person,
    /// The pipeline: its findings are WARNINGs, which do not block there.
    Pipeline,
    /// The exit condition of the team or workflow.
    ExitCondition,
    /// It failed; nobody looked in its place.
    Failed,
    /// Its rejection was set aside for a shadow, and who looked in its place does not repeat it.
    Replaced,
    /// The same, and no other reviewer looked in its place.
    SetAside,
}

impl PassedOverBy {
    pub fn told(self) -> &'static str {
        match self {
            PassedOverBy::Person => "passed over by a person",
            PassedOverBy::Pipeline => "WARNINGs do not block in a pipeline",
            PassedOverBy::ExitCondition => "passed over by the exit condition",
            PassedOverBy::Failed => "failed, not replaced",
            PassedOverBy::Replaced => "replaced",
            PassedOverBy::SetAside => "set aside, not replaced",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    Merge,
    CycleBack,
    Stop,
}

/// A reason to stop cycling, with the sentence for people. `hard` and `soft` breaks are Wiggum Breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub reason: Reason,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaks: Option<Hardness>,
}

/// A soft break lets what is under way finish; a hard one does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hardness {
    Soft,
    Hard,
}

/// A finding as it is followed over the cycles: merged over reviewers, routed, numbered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Tracked {
    /// `<file>:<category>[:n]`, unique within the cycle.
    pub id: String,
    pub file: String,
    pub line: u32,
    pub category: String,
    pub severity: Severity,
    /// The archetypes that raised it, sorted.
    pub source: Vec<String>,
    pub description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
    pub routes_to: Destination,
    pub cycles_open: u32,
    /// The earlier run of this project that had resolved it (AF-121).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regression_of: Option<String>,
    /// A digest of the code it is about, if known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub anchor: String,
    /// What the other reviewers wrote about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Remark>,
}

/// How the findings moved between two cycles (AF-103..AF-110).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trend {
    /// For people; decisions use the counts.
    pub score: Share,
    pub status: TrendStatus,
    pub resolved: u32,
    pub new: u32,
    pub regressed: u32,
    pub persistent: u32,
    pub oscillating: Vec<String>,
    pub recommendation: String,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck_kind: Option<StuckKind>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolved_findings: Vec<Tracked>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persistent_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regressed_ids: Vec<String>,
    /// The Maker changed nothing in the files of the findings that persist (J-09).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untried: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrendStatus {
    Converging,
    Stalling,
    Diverging,
    Stuck,
}

impl TrendStatus {
    pub fn name(self) -> &'static str {
        match self {
            TrendStatus::Converging => "converging",
            TrendStatus::Stalling => "stalling",
            TrendStatus::Diverging => "diverging",
            TrendStatus::Stuck => "stuck",
        }
    }
}

/// CL-05.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StuckKind {
    AllPersistent,
    NoResolutionWithNew,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WiggumBreak {
    pub trigger: Reason,
    #[serde(rename = "type")]
    pub hardness: Hardness,
    pub hard: bool,
    pub layer: String,
    pub detail: String,
    pub run_state: String,
    pub unresolved_findings: Vec<FindingLine>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunComplete {
    pub status: RunStatus,
    pub reason: Reason,
    pub detail: String,
    pub exit_code: u8,
    pub cycles: u32,
    pub agents_total: u32,
    pub fixes_total: u32,
    pub branch: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_oid: Option<Oid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Seq>,
    pub unresolved: Vec<FindingLine>,
    /// When the account that stopped the run serves again, in milliseconds since 1970: the run is parked until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopens_at: Option<u64>,
    /// Why the revert that a person asked for was not made; the run is merged as before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert_refused: Option<Reason>,
}

impl RunComplete {
    pub fn outcome(&self) -> Outcome {
        Outcome { status: self.status, reason: self.reason, detail: self.detail.clone() }
    }
}
