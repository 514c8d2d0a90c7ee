//! A loop between a person, a Planner, an Actor and a Judge from its log: its state, the events, the signals and
//! steps, and the alerts.

use serde::{Deserialize, Serialize};

use super::named::named;
use super::{Risk, Speaker, Token};

/// The rules that new loops begin with. `loop.opened` records them, and a loop keeps its own: 0 is every loop before they
/// were recorded, in which an Actor that needed a person ended the loop and its failures paused nothing.
pub const LOOP_RULES: u32 = 1;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum LoopState {
        Idle = "idle",
        /// The Planner plans.
        Align = "align",
        /// The Planner asked, or a verdict is unclear; a person answers.
        Waiting = "waiting",
        /// A plan that a person must approve before it is carried out (MX-02, MX-06).
        Gate = "gate",
        Execute = "execute",
        Evaluate = "evaluate",
        Approval = "approval",
        /// Approved, on its way into the branch.
        Landing = "landing",
        Paused = "paused",
        Failed = "failed",
        Archived = "archived",
        Stopped = "stopped",
    }
}

impl LoopState {
    /// Nothing follows from it any more. An idle loop is closed if it had begun.
    pub fn is_closed(self, had_begun: bool) -> bool {
        match self {
            LoopState::Archived | LoopState::Failed | LoopState::Stopped => true,
            LoopState::Idle => had_begun,
            LoopState::Align
            | LoopState::Waiting
            | LoopState::Gate
            | LoopState::Execute
            | LoopState::Evaluate
            | LoopState::Approval
            | LoopState::Landing
            | LoopState::Paused => false,
        }
    }

    /// Whose turn it is; `None` while the program itself lands.
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

named! {
    /// An event of a loop: a signal of a person or agent, or something that happened.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum TurnEvent {
        /// A goal that is not empty, signed by a person.
        Goal = "goal",
        Questions = "questions",
        Answer = "answer",
        Plan = "plan",
        /// A plan that needs a person's yes.
        GatedPlan = "gated_plan",
        Success = "success",
        Fail = "fail",
        /// Forbidden, or nothing can be done about it (PC-03).
        GraveFail = "grave_fail",
        /// The Actor can't go on without a person (L-05).
        NeedsPerson = "needs_person",
        Pass = "pass",
        /// A PASS in the middle of a goal that is asked about only at its end (MX-01).
        PassOn = "pass_on",
        Insufficient = "insufficient",
        /// The verdict is unclear: a person looks.
        Unclear = "unclear",
        Approve = "approve",
        RequestChanges = "request_changes",
        Landed = "landed",
        NotLanded = "not_landed",
        Restart = "restart",
        Clear = "clear",
        Stop = "stop",
    }
}

named! {
    /// Printed while a loop runs; it stops nothing (PJ-60..PJ-63).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Alert {
        Stuck = "stuck",
        HighRisk = "high_risk",
        /// Expected, not an error.
        Paused = "paused",
        Duration = "duration",
    }
}

named! {
    /// A person's command that needs no block (PC-04).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Word {
        Answer = "answer",
        Approve = "approve",
        Reject = "reject",
        Restart = "restart",
        Clear = "clear",
        Stop = "stop",
    }
}

/// The last block of a text as it was read, and what the program itself observed beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct TurnSignal {
    /// The agent the block names as its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Speaker>,
    /// The result; `None` where it is unclear.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Token>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Speaker>,
    /// Why it has no next agent: there is no block, or one that can't be routed (PJ-22). Empty where it does.
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
    /// Files a step changed that its plan does not name, where the plan names files at all (L-09).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unplanned: Vec<String>,
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

named! {
    /// How one of the Judge's checks ended.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
    #[serde(rename_all = "snake_case")]
    pub enum CheckEnd {
        Passed = "passed",
        Failed = "failed",
        /// The project has none.
        #[default]
        Missing = "missing",
        /// It broke off: killed, timed out, or the command can't be run. Tried again once (PJ-50).
        Crashed = "crashed",
    }
}
