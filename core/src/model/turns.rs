//! A loop between a person, a Planner, an Actor and a Judge as its log tells it: where it is, what was heard, what was said
//! and done, and what is told about it.

use serde::{Deserialize, Serialize};

use super::{Risk, Speaker, Token};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopState {
    Idle,
    /// The Planner plans.
    Align,
    /// The Planner asked, or a verdict can't be told; a person answers.
    Waiting,
    /// A plan that a person must approve before anybody acts on it (MX-02, MX-06).
    Gate,
    Execute,
    Evaluate,
    Approval,
    /// Approved, on its way into the branch.
    Landing,
    Paused,
    Failed,
    Archived,
    Stopped,
}

impl LoopState {
    pub const ALL: [LoopState; 12] = [
        LoopState::Idle,
        LoopState::Align,
        LoopState::Waiting,
        LoopState::Gate,
        LoopState::Execute,
        LoopState::Evaluate,
        LoopState::Approval,
        LoopState::Landing,
        LoopState::Paused,
        LoopState::Failed,
        LoopState::Archived,
        LoopState::Stopped,
    ];

    pub fn name(self) -> &'static str {
        match self {
            LoopState::Idle => "idle",
            LoopState::Align => "align",
            LoopState::Waiting => "waiting",
            LoopState::Gate => "gate",
            LoopState::Execute => "execute",
            LoopState::Evaluate => "evaluate",
            LoopState::Approval => "approval",
            LoopState::Landing => "landing",
            LoopState::Paused => "paused",
            LoopState::Failed => "failed",
            LoopState::Archived => "archived",
            LoopState::Stopped => "stopped",
        }
    }

    /// Who has to do something now; nobody while the program itself lands.
    pub fn whose(self) -> Option<Speaker> {
        match self {
            LoopState::Align => Some(Speaker::Planner),
            LoopState::Execute => Some(Speaker::Actor),
            LoopState::Evaluate => Some(Speaker::Judge),
            LoopState::Landing => None,
            LoopState::Idle
            | LoopState::Waiting
            | LoopState::Gate
            | LoopState::Approval
            | LoopState::Paused
            | LoopState::Failed
            | LoopState::Archived
            | LoopState::Stopped => Some(Speaker::Human),
        }
    }

    /// PJ-16: how a loop ends.
    pub fn is_end(self) -> bool {
        matches!(self, LoopState::Paused | LoopState::Failed | LoopState::Archived | LoopState::Stopped)
    }
}

/// What was said or happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnEvent {
    /// A goal that says something, signed by a person.
    Goal,
    Questions,
    Answer,
    Plan,
    /// A plan that needs a person's yes.
    GatedPlan,
    Success,
    Fail,
    /// Forbidden, or nothing can be done about it (PC-03).
    GraveFail,
    Pass,
    /// A PASS in the middle of a goal that is asked about only at its end (MX-01).
    PassOn,
    Insufficient,
    /// The verdict can't be told: a person looks.
    Unclear,
    Approve,
    RequestChanges,
    Landed,
    NotLanded,
    Restart,
    Clear,
    Stop,
}

impl TurnEvent {
    pub const ALL: [TurnEvent; 19] = [
        TurnEvent::Goal,
        TurnEvent::Questions,
        TurnEvent::Answer,
        TurnEvent::Plan,
        TurnEvent::GatedPlan,
        TurnEvent::Success,
        TurnEvent::Fail,
        TurnEvent::GraveFail,
        TurnEvent::Pass,
        TurnEvent::PassOn,
        TurnEvent::Insufficient,
        TurnEvent::Unclear,
        TurnEvent::Approve,
        TurnEvent::RequestChanges,
        TurnEvent::Landed,
        TurnEvent::NotLanded,
        TurnEvent::Restart,
        TurnEvent::Clear,
        TurnEvent::Stop,
    ];

    pub fn name(self) -> &'static str {
        match self {
            TurnEvent::Goal => "goal",
            TurnEvent::Questions => "questions",
            TurnEvent::Answer => "answer",
            TurnEvent::Plan => "plan",
            TurnEvent::GatedPlan => "gated_plan",
            TurnEvent::Success => "success",
            TurnEvent::Fail => "fail",
            TurnEvent::GraveFail => "grave_fail",
            TurnEvent::Pass => "pass",
            TurnEvent::PassOn => "pass_on",
            TurnEvent::Insufficient => "insufficient",
            TurnEvent::Unclear => "unclear",
            TurnEvent::Approve => "approve",
            TurnEvent::RequestChanges => "request_changes",
            TurnEvent::Landed => "landed",
            TurnEvent::NotLanded => "not_landed",
            TurnEvent::Restart => "restart",
            TurnEvent::Clear => "clear",
            TurnEvent::Stop => "stop",
        }
    }
}

/// Told while a loop runs; it stops nothing (PJ-60..PJ-63).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alert {
    Stuck,
    HighRisk,
    /// Expected, not an error.
    Paused,
    Duration,
}

impl Alert {
    pub fn name(self) -> &'static str {
        match self {
            Alert::Stuck => "stuck",
            Alert::HighRisk => "high_risk",
            Alert::Paused => "paused",
            Alert::Duration => "duration",
        }
    }
}

/// What a person says by a command, where no block has to be read for it (PC-04).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    Answer,
    Approve,
    Reject,
    Restart,
    Clear,
    Stop,
}

impl Word {
    pub const ALL: [Word; 6] =
        [Word::Answer, Word::Approve, Word::Reject, Word::Restart, Word::Clear, Word::Stop];

    pub fn name(self) -> &'static str {
        match self {
            Word::Answer => "answer",
            Word::Approve => "approve",
            Word::Reject => "reject",
            Word::Restart => "restart",
            Word::Clear => "clear",
            Word::Stop => "stop",
        }
    }
}

/// The last block of somebody's text as it was read, and what the program itself saw beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TurnSignal {
    /// In whose name the block speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Speaker>,
    /// What it amounts to; nothing for a result that nobody can tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Token>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Speaker>,
    /// Why it routes nobody: there is no block, or one that can't be routed (PJ-22). Empty where it does.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fault: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    /// 0 to 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<u32>,
    /// The kinds of work a plan names (MX-06).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// What the text asks, line by line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<String>,
    /// How the block differs from the grammar, each with its line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<String>,
    /// The first forbidden command of the text or of what a step added, with its place (PJ-34).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forbidden: Option<String>,
    /// What a step really changed; only an Actor has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<StepSize>,
}

/// The real diff of one step, counted (PJ-30).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct StepSize {
    /// Added and removed lines together.
    pub lines: u32,
    pub files: u32,
    /// Nothing but documentation.
    pub docs_only: bool,
}

/// How one check of the battery ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum CheckEnd {
    Passed,
    Failed,
    /// The project has none.
    #[default]
    Missing,
    /// It broke off: killed, timed out, or the command can't be run. Tried again once (PJ-50).
    Crashed,
}

impl CheckEnd {
    pub fn name(self) -> &'static str {
        match self {
            CheckEnd::Passed => "passed",
            CheckEnd::Failed => "failed",
            CheckEnd::Missing => "missing",
            CheckEnd::Crashed => "crashed",
        }
    }
}
