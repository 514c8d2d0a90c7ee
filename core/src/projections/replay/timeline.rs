//! Every decision of a run in order (AF-180).

use crate::event::{Entry, Event};

use super::decision::{self, Decision};

pub fn of(log: &[Entry]) -> Vec<Decision> {
    let mut cycle = 0;
    let mut decisions = Vec::new();
    for entry in log {
        if let Event::PhaseTransition(transition) = &entry.event {
            cycle = transition.cycle;
        }
        decisions.extend(decision::of(entry, cycle));
    }
    decisions
}
