//! Which lines cause which (AF-161).

use std::collections::BTreeMap;

use crate::event::{Entry, Event, Verb};
use crate::model::{Phase, Seq};

use super::Run;

/// What the parents of the next lines follow from (AF-161).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Causes {
    pub(super) anchor: Seq,
    pub(super) trigger: Seq,
    pub(super) starts: BTreeMap<String, Seq>,
    pub(super) completed: Vec<Seq>,
}

impl Run {
    #[expect(clippy::wildcard_enum_match_arm, reason = "only a few kinds of line cause others")]
    pub(super) fn remember_causes(&mut self, entry: &Entry) {
        match &entry.event {
            Event::RunStart(_) | Event::PhaseTransition(_) | Event::CycleBoundary(_) => {
                self.causes.anchor = entry.seq;
                self.causes.trigger = entry.seq;
                self.causes.completed.clear();
            }
            Event::AgentStart(start) => {
                self.causes.starts.insert(start.archetype.clone(), entry.seq);
            }
            Event::AgentComplete(_) => {
                self.causes.completed.push(entry.seq);
                self.causes.trigger = entry.seq;
            }
            event if event.verb() == Verb::Reported => self.causes.trigger = entry.seq,
            _ => {}
        }
    }

    /// AF-161 and the automatic rules of the event schema.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "what has no rule of its own follows from the trigger"
    )]
    pub(super) fn parents(&self, event: &Event, agent: Option<&str>) -> Vec<Seq> {
        if self.lines == 0 {
            return Vec::new();
        }
        let of_agent = || agent.and_then(|name| self.causes.starts.get(name)).copied();
        let parent = match event {
            Event::PhaseTransition(_) if !self.causes.completed.is_empty() => {
                return self.causes.completed.clone();
            }
            Event::ReviewVerdict(_)
            | Event::EvidenceDowngrade(_)
            | Event::DecisionPoint(_)
            | Event::ShadowDetected(_) => of_agent().unwrap_or(self.causes.anchor),
            Event::CycleBoundary(_) | Event::FixApplied(_) | Event::FindingRaised(_) => self.causes.anchor,
            _ => event.answers().unwrap_or(self.causes.trigger),
        };
        vec![parent.max(1)]
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only a transition is in the phase it leads to")]
    pub(super) fn phase_of(&self, event: &Event) -> Phase {
        match event {
            Event::PhaseTransition(transition) => transition.to,
            _ => self.cycles.last().map_or(Phase::Plan, |cycle| cycle.phase),
        }
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "events that concern no agent")]
pub(super) fn agent_of(event: &Event) -> Option<String> {
    let name = match event {
        Event::AgentStart(body) => &body.archetype,
        Event::AgentComplete(body) => &body.archetype,
        Event::AgentFailed(body) => &body.archetype,
        Event::AgentTimeout(body) => &body.0.archetype,
        Event::AgentLost(body) => &body.archetype,
        Event::AgentSkipped(body) => &body.archetype,
        Event::ReviewVerdict(body) => &body.archetype,
        Event::EvidenceDowngrade(body) => &body.archetype,
        Event::ShadowDetected(body) if body.archetype != crate::model::SYSTEM => &body.archetype,
        Event::DecisionPoint(body) if body.archetype != crate::model::PROGRAM => &body.archetype,
        Event::QuestionAsked(body) if !body.archetype.is_empty() => &body.archetype,
        _ => return None,
    };
    Some(name.clone())
}
