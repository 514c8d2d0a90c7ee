//! Corrections so far: strikes, escalations, people's rulings, working time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::{QuestionAsked, RunContinued, ShadowDetected, Stop, Tracked};
use crate::model::{
    AnswerBody, Change, Finding, Outcome, Proposal, Role, SYSTEM, Seq, Severity, ShadowAction, SystemShadow,
    Verdict,
};
use crate::rules::identity::FindingClaim;
use crate::rules::{evidence, unmade};

use super::{Answered, Clarification, Run};

/// Counters are kept for each shadow of each archetype (CL-03).
pub type Key = (String, String);

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Corrections {
    pub strikes: BTreeMap<Key, Strikes>,
    /// Answers of each archetype in the run.
    pub completions: BTreeMap<String, u32>,
    /// Shadows a person accepted for the rest of the run.
    pub tolerated: BTreeSet<Key>,
    /// What waits for a person, with the reason. They are asked in this order, whatever order it came up in.
    pub escalated: BTreeMap<Key, String>,
    /// Breaks that are decided; they happen once all running agents have ended.
    pub due: BTreeMap<Key, Stop>,
    /// Reviews of each reviewer without an approval so far; `None` once it approved.
    pub unapproving: BTreeMap<String, Option<u32>>,
    /// Rejections of each reviewer in a row, up to the cycle before, of which nothing kept its weight.
    pub unfounded: BTreeMap<String, u32>,
    /// AF-144: no more research.
    pub research_over: bool,
    /// Lessons that were given and did not help (AF-145).
    pub ineffective: BTreeSet<String>,
    /// Time agents worked since the last checkpoint, and how many there were.
    pub worked_ms: u64,
    pub checkpoints: u32,
    pub cycles_at_checkpoint: u32,
    /// Why this cycle is the last one, whatever comes of it.
    pub winding_down: Option<Stop>,
    /// Files that proposals of earlier cycles listed, or that were in the work when this cycle began: nobody leaves the plan
    /// by keeping them.
    pub planned: BTreeSet<String>,
    /// Files that a plan names and that no work of the run has touched so far.
    pub unmade: Vec<String>,
    /// What was odd when work was collected, such as files that were left out of it; each once.
    pub change_notes: Vec<String>,
    /// Findings a person accepted as they are.
    pub accepted: Vec<Tracked>,
    /// The scope a person gave the task after a break.
    pub scope: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strikes {
    pub count: u32,
    /// With no clean answer in between.
    pub in_a_row: u32,
    /// Which answer the last one was.
    at: u32,
}

/// An answer in a shadow, and the correction its archetype is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shadowed {
    pub answered: Arc<Answered>,
    pub action: ShadowAction,
    pub note: String,
}

impl Run {
    /// Detections in the run, in the cycle, and in a row, once there is one more.
    pub fn struck_once_more(&self, key: &Key) -> (u32, u32, u32) {
        let known = self.corrections.strikes.get(key).copied().unwrap_or_default();
        let answers = self.corrections.completions.get(&key.0).copied().unwrap_or(0);
        let in_cycle = self.cycle().and_then(|cycle| cycle.strikes.get(key)).copied().unwrap_or(0);
        let follows = known.count > 0 && answers == known.at + 1;
        (known.count + 1, in_cycle + 1, if follows { known.in_a_row + 1 } else { 1 })
    }

    /// The proposal of this cycle, with all that was planned or let pass before.
    pub fn plan(&self) -> Option<Proposal> {
        let mut plan = self.cycle()?.proposal()?.clone();
        let earlier = self.corrections.planned.iter().filter(|file| !plan.files.contains(file));
        let earlier: Vec<String> = earlier.cloned().collect();
        plan.files.extend(earlier);
        Some(plan)
    }

    /// A new cycle begins: what the last one planned and made is the ground it stands on.
    pub(super) fn keep_the_plan(&mut self) {
        self.count_unfounded();
        let planned = self.cycle().and_then(|cycle| cycle.proposal()).map(|proposal| proposal.files.clone());
        self.corrections.planned.extend(planned.unwrap_or_default());
        let made = self.work.iter().flat_map(|work| &work.files).map(|file| file.path.clone());
        self.corrections.planned.extend(made);
    }

    /// New work: what this cycle's plan names and it does not touch, and what earlier plans named and nothing touched. A file
    /// that was in the work once was given up on purpose.
    pub(super) fn note_unmade(&mut self) {
        let Some(work) = &self.work else { return };
        let planned =
            self.cycle().and_then(|cycle| cycle.proposal()).map(|proposal| proposal.files.as_slice());
        let planned = planned.unwrap_or_default().iter().chain(&self.corrections.unmade);
        self.corrections.unmade = unmade::unmade(planned.map(String::as_str), work);
    }

    /// A Maker's work, which is the run's from now on.
    pub(super) fn take_work(&mut self, change: Change) {
        for note in &change.notes {
            if !self.corrections.change_notes.contains(note) {
                self.corrections.change_notes.push(note.clone());
            }
        }
        self.cycle_mut().made = Some(change.clone());
        self.work = Some(change);
        self.note_unmade();
    }

    /// The task, in the scope a person may have given it since.
    pub fn task(&self) -> String {
        let task = self.request.as_ref().map(|request| request.task.clone()).unwrap_or_default();
        match self.corrections.scope.as_str() {
            "" => task,
            scope => format!("{task}\n\nThe scope, as decided by a person since: {scope}"),
        }
    }

    pub(super) fn apply_shadow(&mut self, seen: &ShadowDetected) {
        let key = (seen.archetype.clone(), seen.shadow.clone());
        let (count, in_cycle, in_a_row) = self.struck_once_more(&key);
        let at = self.corrections.completions.get(&key.0).copied().unwrap_or(0);
        // A shadow of the system that is only reported does not escalate (CL-04, AF-147).
        if seen.archetype != SYSTEM || seen.action != ShadowAction::Note {
            self.corrections.strikes.insert(key.clone(), Strikes { count, in_a_row, at });
        }
        let cycle = self.cycle_mut();
        cycle.strikes.insert(key.clone(), in_cycle);
        if seen.archetype == SYSTEM {
            self.apply_system_shadow(key, seen);
            return;
        }
        match seen.action {
            ShadowAction::Note | ShadowAction::Break => drop(cycle.passed.insert(seen.looked_at)),
            action @ (ShadowAction::Correct | ShadowAction::Replace | ShadowAction::Escalate) => {
                cycle.set_aside(&seen.archetype, action, &seen.detail);
            }
        }
        self.conclude_shadow(key, seen);
    }

    fn apply_system_shadow(&mut self, key: Key, seen: &ShadowDetected) {
        let cycle = self.cycle_mut();
        cycle.system.insert(seen.shadow.clone());
        if matches!(seen.action, ShadowAction::Correct | ShadowAction::Replace) && !seen.target.is_empty() {
            cycle.set_aside(&seen.target, seen.action, &seen.detail);
        }
        match SystemShadow::parse(&seen.shadow) {
            Some(SystemShadow::AnalysisParalysis) => self.corrections.research_over = true,
            Some(SystemShadow::CargoCult) => drop(self.corrections.ineffective.insert(seen.target.clone())),
            Some(
                SystemShadow::TunnelVision
                | SystemShadow::EchoChamber
                | SystemShadow::GoldPlating
                | SystemShadow::BrokenWindow
                | SystemShadow::ScopeCreep,
            )
            | None => {}
        }
        self.conclude_shadow(key, seen);
    }

    fn conclude_shadow(&mut self, key: Key, seen: &ShadowDetected) {
        match seen.action {
            ShadowAction::Escalate => {
                self.corrections.escalated.insert(key, seen.detail.clone());
            }
            ShadowAction::Break => self.corrections.due.extend(seen.stop.clone().map(|stop| (key, stop))),
            ShadowAction::Note | ShadowAction::Correct | ShadowAction::Replace => {}
        }
    }

    /// A person's decision about a shadow that was not corrected.
    pub(super) fn apply_shadow_words(&mut self, text: &str) {
        let Some((key, detail)) = self.corrections.escalated.pop_first() else { return };
        let archetype = key.0.clone();
        match text.trim().to_lowercase().as_str() {
            "accept" | "go on" | "proceed" | "continue" | "yes" | "y" | "ok" => self.tolerate(key),
            // Only reviewers can be skipped.
            "skip" | "without" if self.is_reviewer(&archetype) => {
                // It takes part in the next cycle, and escalation starts over.
                self.forget_strikes(&key);
                if self.cycle_mut().shadowed.contains_key(&archetype) {
                    self.leave_out(&archetype, "a person goes on without it", false);
                }
            }
            "stop" => {
                let reason = super::cycle::reason_of(&archetype);
                self.corrections.due.insert(key, Stop { reason, detail, breaks: None });
            }
            _ => {
                self.forget_strikes(&key);
                let cycle = self.cycle_mut();
                if let Some(shadowed) = cycle.shadowed.get_mut(&archetype) {
                    shadowed.action = ShadowAction::Replace;
                }
                let whom = if archetype == SYSTEM { String::new() } else { archetype };
                self.clarifications.push(Clarification {
                    archetype: whom,
                    question: detail,
                    answer: text.to_owned(),
                });
            }
        }
    }

    /// A reviewer is skipped, also one whose answer was set aside.
    pub(super) fn leave_out(&mut self, archetype: &str, reason: &str, failed: bool) {
        let cycle = self.cycle_mut();
        if failed {
            cycle.failed.insert(archetype.to_owned());
        }
        let earlier = cycle.shadowed.remove(archetype);
        cycle.absent.insert(archetype.to_owned(), reason.to_owned());
        if let Some(earlier) = earlier {
            self.keep_objections(archetype, &earlier.answered);
        }
    }

    /// CRITICALs that count, of an answer that its author does not give again, stay open unless the answer that counts repeats
    /// them (D6). Of a rejection the rest is named.
    pub(super) fn keep_objections(&mut self, archetype: &str, earlier: &Answered) {
        let AnswerBody::Review(review) = &earlier.answer.said else { return };
        let counts =
            |finding: &&Finding| finding.severity > Severity::Info && evidence::weigh(finding).is_none();
        let (kept, named): (Vec<Finding>, Vec<Finding>) = review
            .findings
            .iter()
            .filter(counts)
            .cloned()
            .partition(|finding| finding.severity == Severity::Critical);
        let bare = kept.is_empty() && named.is_empty();
        let cycle = self.cycle_mut();
        cycle.kept.extend(kept);
        if review.verdict == Some(Verdict::Rejected) && (bare || !named.is_empty()) {
            let replaced = cycle.answers.contains_key(archetype);
            let aside = cycle.set_aside.entry(archetype.to_owned()).or_default();
            aside.findings.extend(named);
            aside.bare |= bare;
            aside.replaced = replaced;
        }
        self.forget_repeated(archetype);
    }

    /// Reviews are weighed at the end of Check (AF-073). A run that is re-entered before has not come to that, and what shows nothing
    /// must not become an objection to the next version.
    pub(super) fn weigh_before_reentry(&mut self) {
        if !self.policy().evidence.enabled {
            return;
        }
        let required = self.overlay().evidence.clone();
        let Some(cycle) = self.cycles.last_mut() else { return };
        let mut unfounded = Vec::new();
        for (name, review) in cycle.reviewers().into_iter().filter(|(name, _)| !cycle.upheld.contains(*name))
        {
            for (index, finding) in (0..).zip(&review.findings) {
                let reason = evidence::weigh_by(finding, &required);
                unfounded.extend(reason.map(|reason| ((name.to_owned(), index), reason)));
            }
        }
        for (key, reason) in unfounded {
            cycle.downgrades.entry(key).or_insert(reason);
        }
    }

    /// What the present answer of this archetype has itself is not kept beside it.
    pub(super) fn forget_repeated(&mut self, archetype: &str) {
        let cycle = self.cycle_mut();
        let Some(review) = cycle.review(archetype) else { return };
        let repeats = |finding: &Finding| {
            let claim = FindingClaim::of(finding);
            review.findings.iter().any(|other| claim.compare(&FindingClaim::of(other)).is_same())
        };
        let mut kept = cycle.kept.clone();
        kept.retain(|finding| finding.source != archetype || !repeats(finding));
        let mut aside = cycle.set_aside.get(archetype).cloned();
        if let Some(aside) = &mut aside {
            aside.findings.retain(|finding| !repeats(finding));
        }
        cycle.kept = kept;
        cycle.set_aside.remove(archetype);
        let aside = aside.filter(|aside| aside.bare || !aside.findings.is_empty());
        cycle.set_aside.extend(aside.map(|aside| (archetype.to_owned(), aside)));
    }

    /// A person's decision about a rejection without evidence (J-04).
    pub(super) fn apply_rejection_words(&mut self, question: &QuestionAsked, text: &str) {
        let archetype = question.archetype.clone();
        let cycle = self.cycle_mut();
        match text.trim().to_lowercase().as_str() {
            // A yes could mean either, so it is none of these.
            "land" | "accept" | "go on" | "proceed" | "continue" => {
                let kept = cycle.kept.iter_mut().chain(&mut cycle.asked_about);
                kept.filter(|finding| finding.source == archetype)
                    .for_each(|finding| finding.severity = Severity::Warning);
                cycle.overruled.insert(archetype);
            }
            "stop" => {
                let Outcome { reason, detail, .. } = question.unanswered.clone();
                let key = (archetype, "rejection".to_owned());
                self.corrections.due.insert(key, Stop { reason, detail, breaks: None });
            }
            words => {
                cycle.downgrades.retain(|(name, _), _| *name != archetype);
                cycle.upheld.insert(archetype);
                if words != "fix" {
                    self.clarifications.push(Clarification {
                        archetype: String::new(),
                        question: question.question.clone(),
                        answer: text.to_owned(),
                    });
                }
            }
        }
    }

    /// Escalation starts over, except for shadows of the system: a person was their second step, and the third ends the
    /// run (AF-147).
    fn forget_strikes(&mut self, key: &Key) {
        if key.0 == SYSTEM {
            return;
        }
        self.corrections.strikes.remove(key);
        self.cycle_mut().strikes.remove(key);
    }

    fn is_reviewer(&self, archetype: &str) -> bool {
        self.seats().iter().any(|seat| seat.archetype == archetype && seat.role == Role::Reviewer)
    }

    fn tolerate(&mut self, key: Key) {
        self.cycle_mut().restore(&key.0);
        self.corrections.tolerated.insert(key);
    }

    /// A person takes over: decided breaks are cancelled.
    pub(super) fn overrule(&mut self) {
        self.corrections.due.clear();
        self.corrections.winding_down = None;
        self.corrections.escalated.clear();
        self.corrections.strikes.clear();
        if let Some(cycle) = self.cycles.last_mut() {
            cycle.strikes.clear();
        }
    }

    /// A person continues the run: breaks are cancelled, and all agents are given the decision.
    pub(super) fn apply_ruling(&mut self, continued: &RunContinued) {
        for key in std::mem::take(&mut self.corrections.escalated).into_keys() {
            self.tolerate(key);
        }
        self.overrule();
        if let Some(cycle) = self.cycles.last_mut() {
            let open = cycle.boundary.as_ref().map(|boundary| boundary.open.clone()).unwrap_or_default();
            let accepted = open.into_iter().filter(|found| continued.accept.contains(&found.id));
            self.corrections.accepted.extend(accepted);
        }
        if !continued.rescope.is_empty() {
            self.corrections.scope.clone_from(&continued.rescope);
        }
        if !continued.ruling.is_empty() {
            self.clarifications.push(Clarification {
                archetype: String::new(),
                question: "What holds from now on, where opinions differed?".to_owned(),
                answer: continued.ruling.clone(),
            });
        }
    }

    /// Rejections of this archetype in earlier cycles, in a row, without a finding that kept its weight.
    pub fn unfounded_rejections(&self, archetype: &str) -> u32 {
        self.corrections.unfounded.get(archetype).copied().unwrap_or(0)
    }

    /// A cycle is over: its rejections are counted by what they showed. An approval neither counts nor heals: evidence does.
    fn count_unfounded(&mut self) {
        let Some(cycle) = self.cycle() else { return };
        let grave = cycle.grave();
        let rejected = cycle.verdicts.iter().filter(|(_, verdict)| **verdict == Verdict::Rejected);
        let counted: Vec<(String, bool)> = rejected
            .map(|(name, _)| (name.clone(), grave.iter().any(|finding| finding.source == *name)))
            .collect();
        for (name, founded) in counted {
            let count = self.corrections.unfounded.entry(name).or_default();
            *count = if founded { 0 } else { *count + 1 };
        }
    }

    /// Reviews of this archetype so far that were no approval, with one more that is not; 0 once it approved.
    pub fn reviews_without_approval(&self, archetype: &str) -> u32 {
        match self.corrections.unapproving.get(archetype) {
            None => 1,
            Some(Some(count)) => count + 1,
            Some(None) => 0,
        }
    }
}

impl super::Cycle {
    /// Marks an answer that has to be given again.
    pub(super) fn set_aside(&mut self, archetype: &str, action: ShadowAction, note: &str) {
        let Some(answered) = self.answers.remove(archetype) else { return };
        self.verdicts.remove(archetype);
        self.downgrades.retain(|(name, _), _| name != archetype);
        self.trials.retain(|(name, _), _| name != archetype);
        let note = note.to_owned();
        self.shadowed.insert(archetype.to_owned(), Shadowed { answered, action, note });
    }

    /// The answer counts after all.
    pub(super) fn restore(&mut self, archetype: &str) {
        let Some(Shadowed { answered, .. }) = self.shadowed.remove(archetype) else { return };
        self.passed.insert(answered.start_seq);
        self.last_failure.remove(archetype);
        self.failures.remove(archetype);
        self.answers.insert(archetype.to_owned(), answered);
    }

    /// Whether this answer's shadow was seen and let pass.
    pub fn is_passed(&self, start_seq: Seq) -> bool {
        self.passed.contains(&start_seq)
    }
}
