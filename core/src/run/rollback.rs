//! The ends of phases, and going back to one (M-03). Money stays spent, and the journal keeps every line; findings of
//! later phases are open no more.

use std::collections::BTreeMap;

use crate::event::RunRolledBack;
use crate::model::{Change, HookPoint, Phase, Seq, Workflow};

use super::{Author, Clarification, Corrections, Cycle, Landing, Run};

/// What a run knew when a phase had ended, and forgets when it goes back to there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseEnd {
    /// With the phase that follows; after Act with the end of the cycle. Without its attempts.
    pub cycle: Cycle,
    pub work: Option<Change>,
    workflow: Option<Workflow>,
    escalated: bool,
    max_cycles: u32,
    clarifications: Vec<Clarification>,
    waved_through: bool,
    corrections: Corrections,
    author: Option<Author>,
    fixes_total: u32,
}

/// A run went back to the end of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollback {
    pub seq: Seq,
    pub cycle: u32,
    pub phase: Phase,
    /// Nothing was started since: files and branch may still be those from before.
    pub is_fresh: bool,
}

impl Run {
    /// Remembers the end of the phase that is left, or of the cycle.
    pub(super) fn note_phase_end(&mut self, phase: Phase) {
        let rules = self.rules();
        let Some(cycle) = self.cycles.last_mut().filter(|_| rules.can_roll_back()) else { return };
        // Attempts are counted apart, see `starts_in`.
        let starts = std::mem::take(&mut cycle.starts);
        let kept = cycle.clone();
        cycle.starts = starts;
        let number = cycle.number;
        let end = PhaseEnd {
            cycle: kept,
            work: self.work.clone(),
            workflow: self.workflow,
            escalated: self.escalated,
            max_cycles: self.max_cycles,
            clarifications: self.clarifications.clone(),
            waved_through: self.waved_through,
            corrections: self.corrections.clone(),
            author: self.author.clone(),
            fixes_total: self.fixes_total,
        };
        self.phase_ends.insert((number, phase), Box::new(end));
    }

    /// The ends of phases that the run can go back to, the first one first. None once it has landed or was discarded.
    pub fn ways_back(&self) -> Vec<(u32, Phase)> {
        if self.landing.merged.is_some() || self.discarded {
            return Vec::new();
        }
        self.phase_ends.keys().copied().collect()
    }

    pub(super) fn roll_back(&mut self, seq: Seq, back: &RunRolledBack) {
        let RunRolledBack { cycle: number, phase } = *back;
        if !self.ways_back().contains(&(number, phase)) {
            return;
        }
        let Some(end) = self.phase_ends.get(&(number, phase)).cloned() else { return };
        self.phase_ends.retain(|key, _| *key <= (number, phase));
        self.reopen();
        self.settle_open();
        self.open.clear();
        self.cycles.retain(|cycle| cycle.number < number);
        let starts = self.starts_in(number);
        self.cycles.push(Cycle { starts, ..end.cycle });
        self.work = end.work;
        self.workflow = end.workflow;
        self.escalated = end.escalated;
        self.max_cycles = end.max_cycles;
        self.clarifications = end.clarifications;
        self.waved_through = end.waved_through;
        self.corrections = end.corrections;
        self.author = end.author;
        self.fixes_total = end.fixes_total;
        self.landing = Landing::default();
        self.last_tests = None;
        self.undo = None;
        self.unexplained = None;
        self.accounts.given_up.clear();
        self.failures_in_a_row = 0;
        self.questions.clear();
        self.ended.clear();
        for point in [HookPoint::PreMerge, HookPoint::PostMerge] {
            self.hooks.remove(&point);
        }
        self.causes.anchor = seq;
        self.causes.completed.clear();
        self.rollback = Some(Rollback { seq, cycle: number, phase, is_fresh: true });
    }

    /// Attempts in a cycle so far, also before the run went back.
    pub(super) fn starts_in(&self, number: u32) -> BTreeMap<String, u32> {
        let from_cycle = self.attempts.range((number, String::new())..);
        let of_cycle = from_cycle.take_while(|((cycle, _), _)| *cycle == number);
        of_cycle.map(|((_, archetype), count)| (archetype.clone(), *count)).collect()
    }
}
