//! The states of a loop (PJ-01..PJ-17). Whatever has no row in `docs/rules/loop.md` is refused and changes nothing.

use crate::words::Speaker;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
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

impl State {
    pub const ALL: [State; 12] = [
        State::Idle,
        State::Align,
        State::Waiting,
        State::Gate,
        State::Execute,
        State::Evaluate,
        State::Approval,
        State::Landing,
        State::Paused,
        State::Failed,
        State::Archived,
        State::Stopped,
    ];

    pub fn name(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Align => "align",
            State::Waiting => "waiting",
            State::Gate => "gate",
            State::Execute => "execute",
            State::Evaluate => "evaluate",
            State::Approval => "approval",
            State::Landing => "landing",
            State::Paused => "paused",
            State::Failed => "failed",
            State::Archived => "archived",
            State::Stopped => "stopped",
        }
    }

    /// Who has to do something now; nobody while the program itself lands.
    pub fn whose(self) -> Option<Speaker> {
        match self {
            State::Align => Some(Speaker::Planner),
            State::Execute => Some(Speaker::Actor),
            State::Evaluate => Some(Speaker::Judge),
            State::Landing => None,
            State::Idle
            | State::Waiting
            | State::Gate
            | State::Approval
            | State::Paused
            | State::Failed
            | State::Archived
            | State::Stopped => Some(Speaker::Human),
        }
    }

    /// PJ-16: how a loop ends.
    pub fn is_end(self) -> bool {
        matches!(self, State::Paused | State::Failed | State::Archived | State::Stopped)
    }
}

/// What was said or happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heard {
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

impl Heard {
    pub const ALL: [Heard; 18] = [
        Heard::Goal,
        Heard::Questions,
        Heard::Answer,
        Heard::Plan,
        Heard::GatedPlan,
        Heard::Success,
        Heard::Fail,
        Heard::GraveFail,
        Heard::Pass,
        Heard::Insufficient,
        Heard::Unclear,
        Heard::Approve,
        Heard::RequestChanges,
        Heard::Landed,
        Heard::NotLanded,
        Heard::Restart,
        Heard::Clear,
        Heard::Stop,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Heard::Goal => "goal",
            Heard::Questions => "questions",
            Heard::Answer => "answer",
            Heard::Plan => "plan",
            Heard::GatedPlan => "gated_plan",
            Heard::Success => "success",
            Heard::Fail => "fail",
            Heard::GraveFail => "grave_fail",
            Heard::Pass => "pass",
            Heard::Insufficient => "insufficient",
            Heard::Unclear => "unclear",
            Heard::Approve => "approve",
            Heard::RequestChanges => "request_changes",
            Heard::Landed => "landed",
            Heard::NotLanded => "not_landed",
            Heard::Restart => "restart",
            Heard::Clear => "clear",
            Heard::Stop => "stop",
        }
    }
}

/// A loop, as far as its states go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub state: State,
    /// INSUFFICIENT in a row (PJ-09, PJ-10).
    pub insufficient: u32,
}

/// Where a loop is after this; nothing where it can't happen here.
pub fn after(place: Place, heard: Heard, pause_after: u32) -> Option<Place> {
    let to = |state: State| Some(Place { state, ..place });
    let afresh = |state: State| Some(Place { state, insufficient: 0 });
    match (place.state, heard) {
        (state, Heard::Stop) => to(State::Stopped).filter(|_| state != State::Idle && !state.is_end()),
        (State::Idle, Heard::Goal) => afresh(State::Align),
        (State::Align, Heard::Questions) => to(State::Waiting),
        (State::Align, Heard::GatedPlan) => to(State::Gate),
        (State::Align, Heard::Plan) | (State::Gate, Heard::Approve) => to(State::Execute),
        (State::Waiting, Heard::Answer)
        | (State::Gate | State::Approval, Heard::RequestChanges)
        | (State::Execute, Heard::Fail) => to(State::Align),
        (State::Execute, Heard::Success) => to(State::Evaluate),
        (State::Execute, Heard::GraveFail) => to(State::Failed),
        (State::Evaluate, Heard::Pass) => afresh(State::Approval),
        // Without a PASS there is nothing to approve.
        (State::Evaluate, Heard::Unclear) => to(State::Waiting),
        (State::Evaluate, Heard::Insufficient) => {
            let insufficient = place.insufficient.saturating_add(1);
            let state = if insufficient >= pause_after { State::Paused } else { State::Align };
            Some(Place { state, insufficient })
        }
        (State::Approval, Heard::Approve) => to(State::Landing),
        (State::Landing, Heard::Landed) => to(State::Archived),
        (State::Landing, Heard::NotLanded) => to(State::Approval),
        (State::Paused, Heard::Restart) => afresh(State::Align),
        (State::Paused | State::Failed | State::Archived | State::Stopped, Heard::Clear) => {
            afresh(State::Idle)
        }
        _ => None,
    }
}
