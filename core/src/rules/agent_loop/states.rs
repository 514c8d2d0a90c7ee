//! The states of a loop (PJ-01..PJ-17). Whatever has no row in `docs/rules/loop.md` is refused and changes nothing.

pub use crate::model::{Heard, LoopState as State};

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
        (State::Failed | State::Archived | State::Stopped, Heard::Stop) => None,
        (_, Heard::Stop) => to(State::Stopped),
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
        (State::Evaluate, Heard::PassOn) => afresh(State::Align),
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
