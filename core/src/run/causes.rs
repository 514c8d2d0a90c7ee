//! Which lines cause which (AF-161).

use std::collections::BTreeMap;

use crate::event::{Decision, Entry, Event, Order, Report};
use crate::model::{Phase, Seq};

use super::Run;

/// What the parents of the next lines follow from (AF-161).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Causes {
    pub(super) anchor: Seq,
    pub(super) trigger: Seq,
    pub(super) starts: BTreeMap<String, Seq>,
    pub(super) completed: Vec<Seq>,
    /// The last `decision.point`.
    pub(super) point: Seq,
}

impl Run {
    pub(super) fn remember_causes(&mut self, entry: &Entry) {
        let anchors = matches!(
            entry.event,
            Event::Decision(Decision::PhaseTransition(_) | Decision::CycleBoundary(_))
                | Event::Report(Report::RunStart(_))
        );
        if anchors {
            self.causes.anchor = entry.seq;
            self.causes.completed.clear();
        }
        if anchors || matches!(entry.event, Event::Report(_)) {
            self.causes.trigger = entry.seq;
        }
        if let Event::Report(Report::AgentComplete(_)) = &entry.event {
            self.causes.completed.push(entry.seq);
        }
        if let Event::Decision(Decision::DecisionPoint(_)) = &entry.event {
            self.causes.point = entry.seq;
        }
        if let Event::Order(Order::AgentStart(start)) = &entry.event {
            match self.causes.starts.get_mut(&start.archetype) {
                Some(last) => *last = entry.seq,
                None => drop(self.causes.starts.insert(start.archetype.clone(), entry.seq)),
            }
        }
    }

    /// AF-161 and the automatic rules of the event schema.
    pub(super) fn parents(&self, event: &Event, agent: Option<&str>) -> Vec<Seq> {
        if self.lines == 0 {
            return Vec::new();
        }
        let parent = match event {
            Event::Decision(Decision::PhaseTransition(_)) if !self.causes.completed.is_empty() => {
                return self.causes.completed.clone();
            }
            Event::Decision(decision) => self.parent_of(decision, agent),
            Event::Order(_) => self.causes.trigger,
            Event::Report(report) => report.answers().unwrap_or(self.causes.trigger),
        };
        vec![parent.max(1)]
    }

    fn parent_of(&self, decision: &Decision, agent: Option<&str>) -> Seq {
        let of_agent = || agent.and_then(|name| self.causes.starts.get(name)).copied();
        match decision {
            Decision::ReviewVerdict(_)
            | Decision::EvidenceDowngrade(_)
            | Decision::DecisionPoint(_)
            | Decision::ShadowDetected(_) => of_agent().unwrap_or(self.causes.anchor),
            Decision::DecisionRecord(_) => self.causes.point,
            Decision::CycleBoundary(_) | Decision::FixApplied(_) | Decision::FindingRaised(_) => {
                self.causes.anchor
            }
            Decision::PhaseTransition(_)
            | Decision::WorkflowEscalated(_)
            | Decision::AgentSkipped(_)
            | Decision::BudgetStep(_)
            | Decision::PolicyCheckpoint(_)
            | Decision::LoopTurn(_)
            | Decision::LoopAlert(_)
            | Decision::WiggumBreak(_)
            | Decision::RunComplete(_) => self.causes.trigger,
        }
    }

    /// A transition is in the phase it leads to, everything else in the phase under way.
    pub(super) fn phase_of(&self, event: &Event) -> Phase {
        if let Event::Decision(Decision::PhaseTransition(transition)) = event {
            return transition.to;
        }
        self.cycles.last().map_or(Phase::Plan, |cycle| cycle.phase)
    }
}
