//! Every decision of a run in order (AF-180).

use crate::event::{Decision, Entry, Event};

use super::decision::{self, ExplainedDecision};

pub fn of(log: &[Entry]) -> Vec<ExplainedDecision> {
    let mut cycle = 0;
    let mut decisions = Vec::new();
    for entry in log {
        if let Event::Decision(Decision::PhaseTransition(transition)) = &entry.event {
            cycle = transition.cycle;
        }
        decisions.extend(decision::of(entry, cycle));
    }
    decisions
}
