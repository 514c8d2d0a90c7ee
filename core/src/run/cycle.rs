//! One cycle: who answered what, what was raised and weighed, how it ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::event::{AgentFailed, Artifact, CycleBoundary, Session, Unfounded};
use crate::model::{
    Answer, AnswerBody, Change, Finding, PROGRAM, Phase, Proposal, Purpose, Reason, ReproductionResult,
    Review, Role, SYSTEM, Seq, Severity, Sign, Verdict,
};

use super::{Author, Key, Shadowed};

/// The outcome of a run that is ended by a shadow of this archetype.
pub(crate) fn reason_of(archetype: &str) -> Reason {
    if archetype == SYSTEM { Reason::SystemShadow } else { Reason::ShadowStrikes }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    pub number: u32,
    pub phase: Phase,
    /// Shared with the ends of phases that a person can go back to.
    pub answers: BTreeMap<String, Arc<Answered>>,
    pub mini_explorer: Option<Arc<Answered>>,
    pub mini_explorer_gone: bool,
    pub starts: BTreeMap<String, u32>,
    /// Started at least once since the cycle began or was re-entered.
    pub sent: BTreeSet<String>,
    pub failures: BTreeMap<String, u32>,
    pub busy: BTreeMap<String, u32>,
    pub last_failure: BTreeMap<String, AgentFailed>,
    /// How often the brief of each archetype was too long for it, and how long the first of them was.
    pub cramped: BTreeMap<String, (u32, u64)>,
    /// Skipped or given up, with the reason.
    pub absent: BTreeMap<String, String>,
    /// Those of them that failed.
    pub failed: BTreeSet<String>,
    pub verdicts: BTreeMap<String, Verdict>,
    pub downgrades: BTreeMap<(String, u32), Unfounded>,
    /// Reviewers that were asked for evidence because they reject and nothing of it counts (J-04).
    pub evidence_asked: BTreeSet<String>,
    /// A person accepted some of what was open and lets the run go on: the end of this cycle is judged again.
    pub judged_anew: bool,
    /// Rejections without evidence that a person passed over, and those that a person let count.
    pub overruled: BTreeSet<String>,
    pub upheld: BTreeSet<String>,
    pub raised: Vec<(Sign, Finding)>,
    /// The result of a reproduction in words, and the end of its output.
    pub trials: BTreeMap<(String, u32), (ReproductionResult, String, String)>,
    pub tests_asked: bool,
    pub tests_warned: bool,
    pub fix_asked: bool,
    /// What the Maker was sent back for and has not delivered yet.
    pub errand: Option<(Purpose, String)>,
    /// Started, lost in a crash, and not started again yet.
    pub lost: BTreeSet<String>,
    /// To be tried again, and not started yet.
    pub owed: BTreeSet<String>,
    /// Findings written down as fixed in this cycle; a cycle that is concluded anew does not count them again.
    pub fixed: BTreeSet<String>,
    pub changed: bool,
    pub upgraded: bool,
    pub gate_noted: bool,
    /// Answers whose status was noted in a decision.
    pub noted: BTreeSet<String>,
    /// Detections in this cycle, by archetype and shadow.
    pub strikes: BTreeMap<Key, u32>,
    /// Answers in a shadow, until the archetype has answered again.
    pub shadowed: BTreeMap<String, Shadowed>,
    /// The work as the Maker last delivered it in this cycle.
    pub made: Option<Change>,
    /// Answers that count despite a detected shadow.
    pub passed: BTreeSet<Seq>,
    /// Shadows of the system that were seen in this cycle; each is acted upon once.
    pub system: BTreeSet<String>,
    /// Research that came back, the mini-Explorer's and corrections included. What a crash took is not counted.
    pub explored: u32,
    /// Time the agents of each phase took.
    pub worked: BTreeMap<Phase, u64>,
    pub boundary: Option<Box<CycleBoundary>>,
    pub inherited: Inherited,
    /// CRITICALs of a reviewer that was replaced or skipped for a shadow, unless the answer that counts repeats them. The next
    /// version is their author's to look at.
    pub kept: Vec<Finding>,
    /// Those of them that their successor was asked about (J-04), until it has answered.
    pub asked_about: Vec<Finding>,
    /// What their rejections said beside. It blocks nothing, and is named where the change lands.
    pub set_aside: BTreeMap<String, RejectionSetAside>,
}

/// Objections to the version before this one. Each is open until its author has looked at this version
/// (`docs/rules/objections.md`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inherited {
    /// Above INFO, as they counted.
    pub findings: Vec<Finding>,
    /// Reviewers that rejected it.
    pub rejections: BTreeSet<String>,
    pub set_aside: BTreeMap<String, RejectionSetAside>,
}

/// Rejections of a reviewer that was replaced or skipped for a shadow.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RejectionSetAside {
    /// WARNINGs that counted and that the answer that counts does not repeat.
    pub findings: Vec<Finding>,
    /// One of them had nothing that counted.
    pub bare: bool,
    /// Another answered in its place.
    pub replaced: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The role of the archetype, whatever its name.
    pub role: Role,
    pub start_seq: Seq,
    pub seq: Seq,
    pub answer: Answer,
    pub artifact: Artifact,
    pub duration_ms: u64,
    pub purpose: Purpose,
    pub notes: Vec<String>,
    pub session: Option<Session>,
    pub author: Author,
}

impl Answered {
    /// Imported at a re-entry.
    pub fn is_imported(&self) -> bool {
        self.seq == self.start_seq
    }
}

impl Cycle {
    pub(super) fn new(number: u32) -> Cycle {
        Cycle {
            number,
            phase: Phase::Plan,
            answers: BTreeMap::new(),
            mini_explorer: None,
            mini_explorer_gone: false,
            starts: BTreeMap::new(),
            sent: BTreeSet::new(),
            failures: BTreeMap::new(),
            busy: BTreeMap::new(),
            last_failure: BTreeMap::new(),
            cramped: BTreeMap::new(),
            absent: BTreeMap::new(),
            failed: BTreeSet::new(),
            verdicts: BTreeMap::new(),
            downgrades: BTreeMap::new(),
            evidence_asked: BTreeSet::new(),
            judged_anew: false,
            overruled: BTreeSet::new(),
            upheld: BTreeSet::new(),
            raised: Vec::new(),
            trials: BTreeMap::new(),
            tests_asked: false,
            tests_warned: false,
            fix_asked: false,
            errand: None,
            lost: BTreeSet::new(),
            owed: BTreeSet::new(),
            fixed: BTreeSet::new(),
            changed: false,
            upgraded: false,
            gate_noted: false,
            noted: BTreeSet::new(),
            strikes: BTreeMap::new(),
            shadowed: BTreeMap::new(),
            made: None,
            passed: BTreeSet::new(),
            system: BTreeSet::new(),
            explored: 0,
            worked: BTreeMap::new(),
            boundary: None,
            inherited: Inherited::default(),
            kept: Vec::new(),
            asked_about: Vec::new(),
            set_aside: BTreeMap::new(),
        }
    }

    /// What later cycles and people still ask for: how it ended, who was not heard, what was made, and what a mini-Explorer found. The
    /// rest is in the log.
    pub(super) fn close(&mut self) {
        let (mini_explorer, boundary) = (self.mini_explorer.take(), self.boundary.take());
        let (absent, made) = (std::mem::take(&mut self.absent), self.made.take());
        *self = Cycle { phase: self.phase, absent, mini_explorer, made, boundary, ..Cycle::new(self.number) };
    }

    pub fn settled(&self, archetype: &str) -> bool {
        self.answers.contains_key(archetype) || self.absent.contains_key(archetype)
    }

    /// The answer of the Explorer, Creator, Maker or Gatekeeper; there is at most one of each.
    pub fn answer_of(&self, role: Role) -> Option<&Answered> {
        self.answers.values().find(|answered| answered.role == role).map(|answered| &**answered)
    }

    pub fn proposal(&self) -> Option<&Proposal> {
        match self.answer_of(Role::Creator).map(|answered| &answered.answer.said) {
            Some(AnswerBody::Proposal(proposal)) => Some(proposal),
            Some(AnswerBody::Prose | AnswerBody::Review(_)) | None => None,
        }
    }

    pub fn review(&self, archetype: &str) -> Option<&Review> {
        match self.answers.get(archetype).map(|answered| &answered.answer.said) {
            Some(AnswerBody::Review(review)) => Some(review),
            Some(AnswerBody::Prose | AnswerBody::Proposal(_)) | None => None,
        }
    }

    /// The reviewers that answered, in alphabetical order.
    pub fn reviewers(&self) -> Vec<(&str, &Review)> {
        let mut reviewers = Vec::new();
        for (name, answered) in &self.answers {
            if let AnswerBody::Review(review) = &answered.answer.said {
                reviewers.push((name.as_str(), review));
            }
        }
        reviewers
    }

    /// Objected to the version before, and has not looked at this one.
    pub fn owes_a_look(&self, archetype: &str) -> bool {
        let raised = || self.inherited.findings.iter().any(|finding| finding.source == archetype);
        !self.answers.contains_key(archetype) && (self.inherited.rejections.contains(archetype) || raised())
    }

    pub fn has_raised(&self, sign: Sign) -> bool {
        self.raised.iter().any(|(raised, _)| *raised == sign)
    }

    /// The verdict of this reviewer, or of its last look, is a rejection.
    pub fn rejects(&self, archetype: &str) -> bool {
        self.verdicts.get(archetype) == Some(&Verdict::Rejected)
            || (self.inherited.rejections.contains(archetype) && self.owes_a_look(archetype))
    }

    /// Every reviewer whose verdict is a rejection, by name.
    pub fn rejecting(&self) -> BTreeSet<&str> {
        let names = self.verdicts.keys().chain(&self.inherited.rejections);
        names.map(String::as_str).filter(|name| self.rejects(name)).collect()
    }

    /// Findings of earlier answers that are open: their authors have not looked since.
    pub fn still_open(&self) -> impl Iterator<Item = &Finding> {
        let unseen =
            self.inherited.findings.iter().filter(|finding| !self.answers.contains_key(&finding.source));
        unseen.chain(self.left_behind())
    }

    /// CRITICALs of reviewers that were replaced or skipped.
    pub fn left_behind(&self) -> impl Iterator<Item = &Finding> {
        self.kept.iter().chain(&self.asked_about)
    }

    /// Rejections that were set aside, those of the version before too until their author has looked at this one.
    pub fn set_aside_rejections(&self) -> BTreeMap<&str, &RejectionSetAside> {
        let mut before = self.inherited.set_aside.iter().collect::<BTreeMap<_, _>>();
        before.retain(|name, _| !self.answers.contains_key(*name));
        before.extend(&self.set_aside);
        before.into_iter().map(|(name, rejection)| (name.as_str(), rejection)).collect()
    }

    /// What the next version inherits from this one. Findings of the program are raised anew.
    pub(super) fn objections(&self) -> Inherited {
        let mut findings = self.weighed();
        findings.retain(|finding| finding.severity > Severity::Info && finding.source != PROGRAM);
        let rejecting = self.rejecting().into_iter().filter(|name| !self.overruled.contains(*name));
        let set_aside = self.set_aside_rejections().into_iter();
        Inherited {
            findings,
            rejections: rejecting.map(str::to_owned).collect(),
            set_aside: set_aside.map(|(name, rejection)| (name.to_owned(), rejection.clone())).collect(),
        }
    }

    /// The findings of this cycle that count as more than INFO, in the order of [`Cycle::weighed`].
    pub fn grave(&self) -> Vec<&Finding> {
        let mut findings = Vec::new();
        for (name, review) in self.reviewers() {
            let of_name = self
                .downgrades
                .iter()
                .filter(|((archetype, _), reason)| archetype == name && reason.counts_as() == Severity::Info);
            let mut advice: BTreeSet<u32> = of_name.map(|((_, index), _)| *index).collect();
            advice.extend(self.refuted(name));
            let counts = |(index, finding): &(u32, &Finding)| {
                finding.severity > Severity::Info && !advice.contains(index)
            };
            findings.extend((0..).zip(&review.findings).filter(counts).map(|(_, finding)| finding));
        }
        findings.extend(self.still_open());
        let raised = self.raised.iter().map(|(_, finding)| finding);
        findings.extend(raised.filter(|finding| finding.severity > Severity::Info));
        findings
    }

    fn refuted<'a>(&'a self, archetype: &'a str) -> impl Iterator<Item = u32> + 'a {
        let of_name = self.trials.iter().filter(move |((name, _), _)| name == archetype);
        of_name.filter(|(_, (trial, ..))| *trial == ReproductionResult::Refuted).map(|((_, index), _)| *index)
    }

    /// Every finding of this cycle with the severity it counts with: downgraded ones as INFO, the program's own too.
    pub fn weighed(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, review) in self.reviewers() {
            for (index, finding) in review.findings.iter().enumerate() {
                let mut finding = finding.clone();
                if self.trials.is_empty() && self.downgrades.is_empty() {
                    findings.push(finding);
                    continue;
                }
                let key = (name.to_owned(), u32::try_from(index).unwrap_or(u32::MAX));
                let refuted =
                    self.trials.get(&key).is_some_and(|(trial, ..)| *trial == ReproductionResult::Refuted);
                if let Some(reason) = self.downgrades.get(&key) {
                    finding.severity = finding.severity.min(reason.counts_as());
                }
                if refuted {
                    finding.severity = Severity::Info;
                }
                findings.push(finding);
            }
        }
        findings.extend(self.still_open().cloned());
        findings.extend(self.raised.iter().map(|(_, finding)| finding.clone()));
        findings
    }

    /// What reviewers wrote, and those whose answer does not count because of a shadow, and what the program raised.
    pub fn reviews_with_shadowed(&self) -> Vec<Finding> {
        let own = |(name, answered): (&String, &Arc<Answered>)| match &answered.answer.said {
            AnswerBody::Review(review) => (name.clone(), review.findings.clone()),
            AnswerBody::Prose | AnswerBody::Proposal(_) => (name.clone(), Vec::new()),
        };
        let aside = self.shadowed.iter().map(|(name, shadowed)| own((name, &shadowed.answered)));
        let mut by_name: BTreeMap<String, Vec<Finding>> = aside.collect();
        by_name.extend(self.answers.iter().map(own));
        let mut findings: Vec<Finding> = by_name.into_values().flatten().collect();
        findings.extend(self.raised.iter().map(|(_, finding)| finding.clone()));
        findings
    }

    /// Drops an answer that has to be given again. If the cycle was further on, as after a re-entry, it goes back.
    pub(crate) fn forget(&mut self, archetype: &str) {
        let Some(answered) = self.answers.remove(archetype) else { return };
        self.phase = self.phase.min(crate::persona::phase(answered.role));
    }

    /// The Creator has to write another proposal.
    pub(super) fn forget_proposal(&mut self) {
        self.answers.retain(|_, answered| answered.role != Role::Creator);
    }

    /// The Maker delivers another version: what is open is inherited by it.
    pub(super) fn forget_reviews(&mut self) {
        self.inherited = self.objections();
        self.kept.clear();
        self.asked_about.clear();
        self.set_aside.clear();
        let reviewers: BTreeSet<String> =
            self.reviewers().iter().map(|(name, _)| (*name).to_owned()).collect();
        self.answers.retain(|name, _| !reviewers.contains(name));
        self.absent.clear();
        self.failed.clear();
        self.failures.clear();
        self.busy.clear();
        self.last_failure.clear();
        self.cramped.clear();
        self.verdicts.clear();
        self.downgrades.clear();
        self.evidence_asked.clear();
        self.overruled.clear();
        self.upheld.clear();
        self.raised.clear();
        self.trials.clear();
        self.boundary = None;
    }
}
