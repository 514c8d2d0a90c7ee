//! Figures over all loops of a repository (PJ-64..PJ-68), from their logs. What they should be is decided in the core.

use archeflow_core::event::{Decision, Entry, Event};
use archeflow_core::model::{LoopState, TurnEvent};
use archeflow_core::strategies::agent_loop::rules::metrics::Tally;

use super::open::journals;
use crate::log;
use crate::store::journal::Journal;
use crate::store::places::Places;

/// The figures of all loops of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    pub tally: Tally,
    /// Loops that have not ended; they count for nothing yet.
    pub open: u32,
    /// Logs that can't be read.
    pub unread: u32,
}

pub fn of(places: &Places) -> Figures {
    let mut figures = Figures::default();
    for (_, path) in journals(places) {
        match Journal::read(&path).ok().and_then(|text| log::entries(&text).ok()) {
            Some(entries) => figures.add(&entries),
            None => figures.unread += 1,
        }
    }
    figures
}

impl Figures {
    /// One loop more.
    pub fn add(&mut self, entries: &[Entry]) {
        let mut tally = self.tally;
        let (mut state, mut paused, mut passed_at) = (LoopState::Idle, false, None);
        for entry in entries {
            let Event::Decision(Decision::LoopTurn(turn)) = &entry.event else { continue };
            let Some(heard) = turn.heard else { continue };
            state = turn.to;
            paused |= state == LoopState::Paused;
            tally.iterations += u32::from(ends_a_step(turn.from, heard));
            tally.passes += u32::from(matches!(heard, TurnEvent::Pass | TurnEvent::PassOn));
            tally.insufficient += u32::from(heard == TurnEvent::Insufficient);
            match (heard, passed_at) {
                (TurnEvent::Pass, _) => passed_at = Some(entry.at),
                (TurnEvent::Approve, Some(at)) if turn.from == LoopState::Approval => {
                    tally.approvals += 1;
                    tally.approval_ms = tally.approval_ms.saturating_add(entry.at.saturating_sub(at));
                    passed_at = None;
                }
                _ => {}
            }
        }
        match state {
            LoopState::Archived => tally.succeeded += 1,
            LoopState::Paused | LoopState::Stopped => tally.incomplete += 1,
            LoopState::Failed => tally.failed += 1,
            LoopState::Idle
            | LoopState::Align
            | LoopState::Waiting
            | LoopState::Gate
            | LoopState::Execute
            | LoopState::Evaluate
            | LoopState::Approval
            | LoopState::Landing => {
                self.open += 1;
                return;
            }
        }
        tally.paused += u32::from(paused);
        self.tally = tally;
    }
}

/// An iteration is a step with a verdict, or one that failed before it.
fn ends_a_step(from: LoopState, heard: TurnEvent) -> bool {
    let judged = from == LoopState::Evaluate && heard != TurnEvent::Stop;
    judged
        || (from == LoopState::Execute
            && matches!(heard, TurnEvent::Fail | TurnEvent::GraveFail | TurnEvent::NeedsPerson))
}
