//! Every decision of a run in order (AF-180).

use crate::event::{Decision, DecisionRecord, Entry, Event, RunRolledBack};

use super::decision::{self, ExplainedDecision};

pub fn of(log: &[Entry]) -> Vec<ExplainedDecision> {
    let mut cycle = 0;
    let mut decisions = Vec::new();
    for entry in log {
        if let Event::Decision(Decision::PhaseTransition(transition)) = &entry.event {
            cycle = transition.cycle;
        }
        if let Some(back) = entry.event.body::<RunRolledBack>() {
            cycle = back.cycle;
        }
        if let Some(record) = entry.event.body::<DecisionRecord>() {
            let point = decisions
                .iter_mut()
                .rev()
                .find(|point: &&mut ExplainedDecision| entry.parent.contains(&point.seq));
            if let Some(point) = point {
                point.alternatives.clone_from(&record.alternatives);
                point.rationale.clone_from(&record.rationale);
            }
        }
        decisions.extend(decision::of(entry, cycle));
    }
    decisions
}
