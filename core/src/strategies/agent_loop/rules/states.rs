//! The states of a loop (PJ-01..PJ-17). Whatever has no row in `docs/rules/loop.md` is refused and changes nothing.

pub use crate::model::{LoopState as State, TurnEvent};

/// A loop, as far as its states go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopPosition {
    pub state: State,
    /// INSUFFICIENT in a row (PJ-09, PJ-10).
    pub insufficient: u32,
    /// Failures of the Actor in a row (L-07); nothing in loops of rules that do not count them.
    pub failed: Option<u32>,
}

/// Where a loop is after this; nothing where it can't happen here.
pub fn after(place: LoopPosition, heard: TurnEvent, pause_after: u32) -> Option<LoopPosition> {
    let to = |state: State| Some(LoopPosition { state, ..place });
    let afresh =
        |state: State| Some(LoopPosition { state, insufficient: 0, failed: place.failed.map(|_| 0) });
    let counted_anew = |state: State| Some(LoopPosition { state, failed: place.failed.map(|_| 0), ..place });
    match (place.state, heard) {
        (State::Failed | State::Archived | State::Stopped, TurnEvent::Stop) => None,
        (_, TurnEvent::Stop) => to(State::Stopped),
        (State::Idle, TurnEvent::Goal) => afresh(State::Align),
        (State::Align, TurnEvent::Questions) => to(State::Waiting),
        (State::Align, TurnEvent::GatedPlan) => to(State::Gate),
        (State::Align, TurnEvent::Plan) | (State::Gate, TurnEvent::Approve) => to(State::Execute),
        (State::Waiting, TurnEvent::Answer) | (State::Gate | State::Approval, TurnEvent::RequestChanges) => {
            counted_anew(State::Align)
        }
        (State::Execute, TurnEvent::Fail) => {
            let failed = place.failed.map(|failed| failed.saturating_add(1));
            let state =
                if failed.is_some_and(|failed| failed >= pause_after) { State::Paused } else { State::Align };
            Some(LoopPosition { state, failed, ..place })
        }
        (State::Execute, TurnEvent::Success) => counted_anew(State::Evaluate),
        (State::Execute, TurnEvent::NeedsPerson) => to(State::Waiting),
        (State::Execute, TurnEvent::GraveFail) => to(State::Failed),
        (State::Evaluate, TurnEvent::Pass) => afresh(State::Approval),
        (State::Evaluate, TurnEvent::PassOn) => afresh(State::Align),
        // Without a PASS there is nothing to approve.
        (State::Evaluate, TurnEvent::Unclear) => to(State::Waiting),
        (State::Evaluate, TurnEvent::Insufficient) => {
            let insufficient = place.insufficient.saturating_add(1);
            let state = if insufficient >= pause_after { State::Paused } else { State::Align };
            Some(LoopPosition { state, insufficient, ..place })
        }
        (State::Approval, TurnEvent::Approve) => to(State::Landing),
        (State::Landing, TurnEvent::Landed) => to(State::Archived),
        (State::Landing, TurnEvent::NotLanded) => to(State::Approval),
        (State::Paused, TurnEvent::Restart) => afresh(State::Align),
        (State::Paused | State::Failed | State::Archived | State::Stopped, TurnEvent::Clear) => {
            afresh(State::Idle)
        }
        _ => None,
    }
}
