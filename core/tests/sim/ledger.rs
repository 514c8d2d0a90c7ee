//! What the world has to know of a log to act in it: how often what was reported. Read from lines only.

use std::collections::{BTreeMap, BTreeSet};

use archeflow_core::event::{Decision, Entry, Event, Order, QuestionKind, Report, Verb};
use archeflow_core::model::{Oid, Seq};

#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    orders: BTreeMap<Seq, (u32, String)>,
    /// Orders that have had their report.
    pub(crate) answered: BTreeSet<Seq>,
    /// Reports of an archetype in a cycle, without lost ones.
    pub(crate) attempts: BTreeMap<(u32, String), u64>,
    /// Reports of each other kind.
    pub(crate) reports: BTreeMap<&'static str, u64>,
    pub(crate) asked: BTreeMap<QuestionKind, u64>,
    /// What was asked last.
    pub(crate) last_asked: Option<QuestionKind>,
    /// What people did after an end.
    pub(crate) acts: u64,
    pub(crate) landed: Option<Oid>,
    pub(crate) fence: u32,
    /// A person has stopped a loop unasked.
    pub(crate) stopped: bool,
    ended: bool,
    pub(crate) cycle: u32,
    /// Findings open at the end of the present cycle, by id.
    pub(crate) open: Vec<String>,
}

impl Ledger {
    pub(crate) fn of(log: &[Entry]) -> Ledger {
        let mut ledger = Ledger::default();
        log.iter().for_each(|entry| ledger.read(entry));
        ledger
    }

    pub(crate) fn read(&mut self, entry: &Entry) {
        if let Some(order) = entry.event.answers()
            && !matches!(entry.event, Event::Report(Report::QuestionDeferred(_)))
            && !self.answered.insert(order)
        {
            return;
        }
        match &entry.event {
            Event::Order(Order::AgentStart(start)) => {
                self.orders.insert(entry.seq, (start.cycle, start.archetype.clone()));
                self.cycle = start.cycle;
            }
            Event::Report(Report::AgentComplete(_) | Report::AgentFailed(_) | Report::AgentTimeout(_)) => {
                let order = entry.event.answers().unwrap_or_default();
                if let Some(key) = self.orders.get(&order) {
                    *self.attempts.entry(key.clone()).or_default() += 1;
                }
            }
            Event::Order(Order::QuestionAsked(question)) => {
                *self.asked.entry(question.kind).or_default() += 1;
                self.last_asked = Some(question.kind);
            }
            Event::Report(Report::SessionStart(session)) => self.fence = session.fence,
            Event::Decision(Decision::RunComplete(_)) => self.ended = true,
            Event::Report(Report::LoopHeard(heard)) if heard.start_seq.is_none() => self.stopped = true,
            Event::Report(Report::RunContinued(_) | Report::RunDiscarded(_))
            | Event::Report(
                Report::MergeRequested(_)
                | Report::RunReentered(_)
                | Report::RunRolledBack(_)
                | Report::RevertRequested(_),
            )
            | Event::Report(Report::LoopHeard(_) | Report::QuestionAnswered(_)) => {
                self.acts += u64::from(std::mem::take(&mut self.ended));
                if matches!(entry.event, Event::Report(Report::RunReentered(_))) {
                    self.open.clear();
                }
                if let Event::Report(Report::RunRolledBack(back)) = &entry.event {
                    self.cycle = back.cycle;
                    self.open.clear();
                }
            }
            Event::Decision(Decision::FindingRaised(_)) => self.open.clear(),
            Event::Report(Report::RunMerged(merged)) => self.landed = Some(merged.commit.clone()),
            Event::Report(Report::RunReverted(_)) => self.landed = None,
            Event::Decision(Decision::PhaseTransition(transition)) => {
                self.cycle = transition.cycle;
                self.open.clear();
            }
            Event::Decision(Decision::CycleBoundary(boundary)) => {
                self.open = boundary.open.iter().map(|found| found.id.clone()).collect();
            }
            _ => {}
        }
        if entry.event.verb() == Verb::Reported {
            *self.reports.entry(entry.event.name()).or_default() += 1;
        }
    }

    pub(crate) fn count(&self, name: &'static str) -> u64 {
        self.reports.get(name).copied().unwrap_or(0)
    }
}
