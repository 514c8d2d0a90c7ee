//! The state of a run: a fold over its log. It remembers; it never decides.

use std::collections::{BTreeMap, BTreeSet};

use crate::decide::decide;
use crate::event::{
    AgentComplete, AgentFailed, AgentStart, Artifact, Built, CycleBoundary, Entry, Event, Failure, HookDone,
    Imported, MergeIntent, Money, NextAction, QuestionAsked, QuestionKind, Refusal, RunComplete,
    RunReentered, RunStart, SessionStart, Tested, Tracked, Trend, Unfounded, Verb,
};
use crate::words::{
    Answer, Change, Finding, HookPoint, Oid, Outcome, Phase, Policy, Proposal, Purpose, Review, Role, Said,
    Seat, Seq, Severity, Sign, Status, Strategy, Verdict, Workflow, pipeline_team, team,
};

/// More conclusions than this from one report is a rule that feeds itself.
const CONCLUSIONS_AT_MOST: usize = 5_000;

/// The key under which the pipeline's seats stand in `run.start`.
pub const PIPELINE: &str = "pipeline";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Run {
    pub lines: Seq,
    pub began: u64,
    pub last: u64,
    pub request: Option<Box<RunStart>>,
    pub session: Option<Box<SessionStart>>,
    pub workflow: Option<Workflow>,
    pub escalated: bool,
    pub max_cycles: u32,
    pub cycles: Vec<Cycle>,
    /// Ordered, not yet reported.
    pub open: BTreeMap<Seq, Event>,
    pub landing: Landing,
    /// The Maker's latest accepted work.
    pub work: Option<Change>,
    /// What people told the agents when asked.
    pub clarifications: Vec<Clarification>,
    pub questions: BTreeMap<QuestionKind, u32>,
    /// A person let the confidence gate pass as it is.
    pub waved_through: bool,
    pub dry_run_passed: bool,
    /// Attempts that ended since nobody was out last, by archetype: so that the order they come back in, or are sent
    /// again in after a crash, does not matter.
    pub ended: BTreeMap<String, bool>,
    pub failures_in_a_row: u32,
    pub agents_total: u32,
    pub fixes_total: u32,
    pub spent: Money,
    pub broke: Option<Seq>,
    pub hooks: BTreeMap<HookPoint, HookDone>,
    pub discarded: bool,
    /// Landings taken back because tests failed afterwards (CL-11).
    pub reverts: u32,
    pub outcome: Option<Outcome>,
    pub complete: Option<Box<RunComplete>>,
    causes: Causes,
}

/// What the parents of the next lines follow from (AF-161).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Causes {
    anchor: Seq,
    trigger: Seq,
    starts: BTreeMap<String, Seq>,
    completed: Vec<Seq>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clarification {
    pub archetype: String,
    pub question: String,
    pub answer: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    pub number: u32,
    pub phase: Phase,
    pub answers: BTreeMap<String, Answered>,
    pub mini_explorer: Option<Answered>,
    pub mini_explorer_gone: bool,
    pub starts: BTreeMap<String, u32>,
    pub failures: BTreeMap<String, u32>,
    pub busy: BTreeMap<String, u32>,
    pub last_failure: BTreeMap<String, AgentFailed>,
    /// Spared or given up, with the reason.
    pub absent: BTreeMap<String, String>,
    pub verdicts: BTreeMap<String, Verdict>,
    pub downgrades: BTreeMap<(String, u32), Unfounded>,
    pub raised: Vec<(Sign, Finding)>,
    pub tests_asked: bool,
    pub tests_warned: bool,
    pub fix_asked: bool,
    /// What the Maker was sent back for and has not delivered yet.
    pub errand: Option<(Purpose, String)>,
    /// Sent, lost in a crash, and not sent again yet.
    pub lost: BTreeSet<String>,
    /// To be tried again, and not sent yet.
    pub owed: BTreeSet<String>,
    /// Findings written down as fixed in this cycle; a cycle that is concluded anew does not count them again.
    pub fixed: BTreeSet<String>,
    pub changed: bool,
    pub upgraded: bool,
    pub gate_noted: bool,
    /// Answers whose status was remarked on.
    pub noted: BTreeSet<String>,
    pub boundary: Option<Box<CycleBoundary>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub start_seq: Seq,
    pub seq: Seq,
    pub answer: Answer,
    pub artifact: Artifact,
    pub duration_ms: u64,
    pub purpose: Purpose,
    pub notes: Vec<String>,
}

/// The way of the change into the target branch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Landing {
    pub attempts: u32,
    pub built: Option<Built>,
    pub tested: Option<(Tested, String)>,
    pub asked: bool,
    pub answer: Option<bool>,
    /// A person said yes, here or by `archeflow merge`.
    pub agreed: bool,
    pub intent: Option<MergeIntent>,
    /// When the last step that moves the target was written down.
    pub since: u64,
    pub merged: Option<Merged>,
    pub refused: Option<(Refusal, String)>,
    pub retested: Option<(Tested, String)>,
    pub reverted: Option<Oid>,
    pub revert_refused: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    pub old: Oid,
    pub commit: Oid,
    pub target: String,
    pub moved: u32,
}

impl Run {
    pub fn replay<'a>(log: impl IntoIterator<Item = &'a Entry>) -> Run {
        let mut run = Run::default();
        log.into_iter().for_each(|entry| run.apply(entry));
        run
    }

    /// Takes in one report. The entry is the caller's to write down.
    pub fn hear(&mut self, at: u64, report: impl Into<Event>) -> Entry {
        let event = report.into();
        debug_assert_eq!(event.verb(), Verb::Reported);
        self.write(at, event)
    }

    /// Draws every conclusion that follows from the facts so far.
    ///
    /// The caller writes the entries down first, and only then performs the orders among them.
    pub fn settle(&mut self, at: u64) -> Vec<Entry> {
        let mut entries = Vec::new();
        loop {
            let events = decide(self);
            if events.is_empty() {
                return entries;
            }
            entries.extend(events.into_iter().map(|event| self.write(at, event)));
            assert!(entries.len() <= CONCLUSIONS_AT_MOST, "a rule feeds itself: {:?}", entries.last());
        }
    }

    fn write(&mut self, at: u64, event: Event) -> Entry {
        let (phase, agent) = (self.phase_of(&event), agent_of(&event));
        let parent = self.parents(&event, agent.as_deref());
        let entry = Entry { seq: self.lines + 1, at, parent, phase, agent, event };
        self.apply(&entry);
        entry
    }

    /// Takes in a line that is on disk already, or about to be.
    pub fn apply(&mut self, entry: &Entry) {
        self.lines = entry.seq;
        if self.began == 0 {
            self.began = entry.at;
        }
        self.last = entry.at;
        if entry.event.answers().is_some_and(|order| !self.open.contains_key(&order)) {
            return;
        }
        self.remember_causes(entry);
        match entry.event.verb() {
            Verb::Ordered => {
                self.open.insert(entry.seq, entry.event.clone());
                self.apply_order(entry);
            }
            Verb::Decided => self.apply_decision(entry),
            Verb::Reported => self.apply_report(entry),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other verbs have functions of their own")]
    fn apply_order(&mut self, entry: &Entry) {
        match &entry.event {
            Event::AgentStart(start) => {
                self.agents_total += 1;
                let cycle = self.cycle_mut();
                *cycle.starts.entry(start.archetype.clone()).or_default() += 1;
                cycle.lost.remove(&start.archetype);
                cycle.owed.remove(&start.archetype);
                if matches!(start.purpose, Purpose::Tests | Purpose::Fix) {
                    cycle.errand = Some((start.purpose, start.note.clone()));
                }
                match start.purpose {
                    Purpose::Tests => cycle.tests_asked = true,
                    Purpose::Fix => {
                        cycle.fix_asked = true;
                        cycle.forget_reviews();
                        self.landing = Landing { attempts: self.landing.attempts, ..Landing::default() };
                    }
                    Purpose::Work
                    | Purpose::Correct
                    | Purpose::Replace
                    | Purpose::Retry
                    | Purpose::Research => {}
                }
            }
            Event::MergeIntent(intent) => {
                self.landing.intent = Some((**intent).clone());
                self.landing.since = entry.at;
            }
            Event::RevertIntent(_) => self.landing.since = entry.at,
            Event::MergeStart(start) => {
                let (agreed, answer, asked) = (self.landing.agreed, self.landing.answer, self.landing.asked);
                self.landing =
                    Landing { attempts: start.attempt, agreed, answer, asked, ..Landing::default() };
                self.hooks.remove(&HookPoint::PreMerge);
            }
            Event::QuestionAsked(question) => {
                *self.questions.entry(question.kind).or_default() += 1;
                if question.kind == QuestionKind::Merge {
                    self.landing.asked = true;
                }
            }
            _ => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other verbs have functions of their own")]
    fn apply_decision(&mut self, entry: &Entry) {
        match &entry.event {
            Event::PhaseTransition(transition) => match transition.to {
                Phase::Plan => {
                    self.cycles.push(Cycle::new(transition.cycle));
                    self.landing = Landing::default();
                }
                Phase::Do | Phase::Check | Phase::Act => self.cycle_mut().phase = transition.to,
            },
            Event::WorkflowEscalated(escalated) => {
                self.workflow = Some(escalated.to);
                self.escalated = true;
                self.max_cycles = self.max_cycles.max(escalated.max_cycles);
                let cycle = self.cycle_mut();
                if cycle.phase == Phase::Plan {
                    cycle.upgraded = true;
                    cycle.answers.remove("creator");
                    cycle.gate_noted = false;
                }
            }
            Event::DecisionPoint(point) => match point.rule.as_str() {
                "AF-063" => {
                    let cycle = self.cycle_mut();
                    cycle.tests_warned = true;
                    if matches!(cycle.errand, Some((Purpose::Tests, _))) {
                        cycle.errand = None;
                        cycle.last_failure.remove(&point.archetype);
                        cycle.failures.remove(&point.archetype);
                    }
                }
                "A3" => self.cycle_mut().gate_noted = true,
                "CL-12" => {
                    let cycle = self.cycle_mut();
                    if !cycle.absent.contains_key(&point.archetype) {
                        cycle.owed.insert(point.archetype.clone());
                    }
                }
                "AF-040" | "D-02" => {
                    let archetype = point.archetype.clone();
                    self.cycle_mut().noted.insert(archetype);
                }
                _ => {}
            },
            Event::AgentSkipped(skipped) => {
                let cycle = self.cycle_mut();
                if skipped.archetype == "mini-explorer" {
                    cycle.mini_explorer_gone = true;
                } else {
                    cycle.absent.insert(skipped.archetype.clone(), skipped.reason.clone());
                }
            }
            Event::ReviewVerdict(verdict) => {
                self.cycle_mut().verdicts.insert(verdict.archetype.clone(), verdict.verdict);
            }
            Event::EvidenceDowngrade(downgrade) => {
                let key = (downgrade.archetype.clone(), downgrade.index);
                self.cycle_mut().downgrades.insert(key, downgrade.reason);
            }
            Event::FindingRaised(raised) => {
                let pair = (raised.sign, raised.finding.clone());
                let cycle = self.cycle_mut();
                cycle.raised.push(pair);
                if raised.sign == Sign::TestsFailing {
                    cycle.boundary = None;
                    self.landing = Landing::default();
                    self.hooks.remove(&HookPoint::PreMerge);
                    self.hooks.remove(&HookPoint::PostMerge);
                }
            }
            Event::FixApplied(fix) => {
                self.fixes_total += 1;
                self.cycle_mut().fixed.insert(fix.finding.clone());
            }
            Event::CycleBoundary(boundary) => self.cycle_mut().boundary = Some(boundary.clone()),
            Event::WiggumBreak(_) => self.broke = Some(entry.seq),
            Event::RunComplete(complete) => {
                self.outcome = Some(complete.outcome());
                self.complete = Some(complete.clone());
            }
            _ => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other verbs have functions of their own")]
    fn apply_report(&mut self, entry: &Entry) {
        match &entry.event {
            Event::RunStart(start) => {
                self.workflow = Some(start.workflow);
                self.max_cycles = start.max_cycles;
                self.request = Some(start.clone());
            }
            Event::SessionStart(session) => self.session = Some(session.clone()),
            Event::RunReentered(reentered) => self.reenter(entry.seq, reentered),
            Event::RunContinued(continued) => {
                self.reopen();
                self.max_cycles = self.max_cycles.max(self.number()) + continued.cycles;
                self.failures_in_a_row = 0;
                self.hooks.retain(|_, done| done.ok);
                self.landing = Landing::default();
                self.open.retain(|_, order| !matches!(order, Event::QuestionAsked(_)));
                let again = continued.cycles > 0;
                let Some(cycle) = self.cycles.last_mut() else { return };
                cycle.failures.clear();
                cycle.busy.clear();
                cycle.last_failure.clear();
                cycle.lost.clear();
                cycle.owed.clear();
                let waiting: Vec<String> = cycle
                    .answers
                    .iter()
                    .filter(|(_, found)| {
                        matches!(found.answer.status, Status::Blocked | Status::NeedsContext)
                    })
                    .map(|(name, _)| name.clone())
                    .collect();
                waiting.iter().for_each(|name| cycle.forget(name));
                if again && let Some(boundary) = &mut cycle.boundary {
                    boundary.next_action = NextAction::CycleBack;
                    boundary.stop = None;
                }
            }
            Event::RunDiscarded(_) => {
                self.reopen();
                self.discarded = true;
                self.open.clear();
            }
            Event::MergeRequested(_) => {
                self.reopen();
                self.landing = Landing { agreed: true, ..Landing::default() };
                self.open.retain(|_, order| !matches!(order, Event::QuestionAsked(_)));
            }
            Event::AgentComplete(complete) => self.apply_answer(entry.seq, complete),
            Event::AgentFailed(failed) => self.apply_failure(failed),
            Event::AgentTimeout(failed) => self.apply_failure(&failed.0),
            Event::AgentLost(lost) => {
                self.open.remove(&lost.start_seq);
                self.cycle_mut().lost.insert(lost.archetype.clone());
            }
            Event::MergeBuilt(built) => {
                self.open.remove(&built.start_seq);
                self.landing.built = Some(built.built.clone());
            }
            Event::TestsDone(done) => {
                if let Some(Event::TestsStart(start)) = self.open.remove(&done.start_seq) {
                    let result = Some((done.result, done.tail.clone()));
                    if start.post_merge {
                        self.landing.retested = result;
                    } else {
                        self.landing.tested = result;
                    }
                }
            }
            Event::HookDone(done) => {
                self.open.remove(&done.start_seq);
                self.hooks.insert(done.point, (**done).clone());
            }
            Event::RunMerged(merged) => {
                self.open.remove(&merged.start_seq);
                let (old, commit, target) = (merged.old.clone(), merged.commit.clone(), merged.base.clone());
                self.landing.merged = Some(Merged { old, commit, target, moved: merged.moved });
            }
            Event::MergeRefused(refused) => {
                self.open.remove(&refused.start_seq);
                self.landing.refused = Some((refused.why, refused.detail.clone()));
            }
            Event::RunReverted(reverted) => {
                self.open.remove(&reverted.start_seq);
                self.landing.reverted = Some(reverted.commit.clone());
                self.reverts += 1;
            }
            Event::RevertRefused(refused) => {
                self.open.remove(&refused.start_seq);
                self.landing.revert_refused = Some(refused.detail.clone());
            }
            Event::QuestionAnswered(answered) => {
                if let Some(Event::QuestionAsked(question)) = self.open.remove(&answered.start_seq) {
                    self.reopen();
                    self.apply_words(&question, &answered.text);
                }
            }
            Event::QuestionDeferred(_) => {
                if let Some(session) = &mut self.session {
                    session.attended = false;
                }
            }
            _ => {}
        }
    }

    fn apply_answer(&mut self, seq: Seq, complete: &AgentComplete) {
        let Some(Event::AgentStart(start)) = self.open.remove(&complete.start_seq) else { return };
        self.ended.insert(complete.archetype.clone(), true);
        self.spent.0 += complete.estimated_cost_usd.unwrap_or_default().0;
        if let Some(change) = &complete.change {
            self.work = Some(change.clone());
        }
        let answered = Answered {
            start_seq: complete.start_seq,
            seq,
            answer: complete.answer.clone(),
            artifact: Artifact {
                name: complete.artifacts.first().cloned().unwrap_or_default(),
                digest: complete.digest.clone(),
            },
            duration_ms: complete.duration_ms,
            purpose: start.purpose,
            notes: complete.notes.clone(),
        };
        let cycle = self.cycle_mut();
        cycle.busy.remove(&complete.archetype);
        cycle.last_failure.remove(&complete.archetype);
        if start.purpose == Purpose::Research {
            cycle.mini_explorer = Some(answered);
            self.count_attempts();
            return;
        }
        if start.role == Role::Maker {
            cycle.changed = true;
            cycle.errand = None;
            cycle.raised.clear();
        }
        if start.role == Role::Creator {
            cycle.gate_noted = false;
        }
        cycle.failures.remove(&complete.archetype);
        cycle.noted.remove(&complete.archetype);
        cycle.verdicts.remove(&complete.archetype);
        cycle.downgrades.retain(|(archetype, _), _| *archetype != complete.archetype);
        cycle.answers.insert(complete.archetype.clone(), answered);
        self.count_attempts();
    }

    fn apply_failure(&mut self, failed: &AgentFailed) {
        let Some(Event::AgentStart(_)) = self.open.remove(&failed.start_seq) else { return };
        self.spent.0 += failed.estimated_cost_usd.unwrap_or_default().0;
        let busy = failed.kind == Failure::Busy;
        if !busy {
            self.ended.insert(failed.archetype.clone(), false);
        }
        let cycle = self.cycle_mut();
        let tally = if busy { &mut cycle.busy } else { &mut cycle.failures };
        *tally.entry(failed.archetype.clone()).or_default() += 1;
        cycle.last_failure.insert(failed.archetype.clone(), failed.clone());
        self.count_attempts();
    }

    /// CL-28, counted in one order once all of them are back.
    fn count_attempts(&mut self) {
        if self.open_agents().next().is_none() && self.stragglers().is_empty() {
            for good in std::mem::take(&mut self.ended).into_values() {
                self.failures_in_a_row = if good { 0 } else { self.failures_in_a_row + 1 };
            }
        }
    }

    /// What a person's answer means depends on the question.
    fn apply_words(&mut self, question: &QuestionAsked, text: &str) {
        match question.kind {
            QuestionKind::Merge => {
                self.landing.answer = Some(is_yes(text));
                self.landing.agreed = self.landing.agreed || is_yes(text);
            }
            QuestionKind::DryRun => self.dry_run_passed = is_yes(text),
            QuestionKind::NeedsContext => {
                self.cycle_mut().forget(&question.archetype);
                self.clarify(question, text);
            }
            QuestionKind::LowConfidence => {
                if matches!(text.trim().to_lowercase().as_str(), "proceed" | "go on" | "continue") {
                    self.waved_through = true;
                } else {
                    self.cycle_mut().answers.remove("creator");
                    self.clarify(question, text);
                }
            }
        }
    }

    fn clarify(&mut self, question: &QuestionAsked, text: &str) {
        self.clarifications.push(Clarification {
            archetype: question.archetype.clone(),
            question: question.question.clone(),
            answer: text.to_owned(),
        });
    }

    fn reenter(&mut self, seq: Seq, reentered: &RunReentered) {
        self.reopen();
        self.open.clear();
        self.landing = Landing::default();
        self.failures_in_a_row = 0;
        self.ended.clear();
        self.dry_run_passed = true;
        if self.cycles.is_empty() || reentered.phase == Phase::Plan {
            let number = self.number() + 1;
            self.max_cycles = self.max_cycles.max(number);
            self.cycles.push(Cycle::new(number));
        }
        if let Some(change) = &reentered.change {
            self.work = Some(change.clone());
        }
        let changed = self.work.is_some();
        let cycle = self.cycle_mut();
        let kept = Cycle::new(cycle.number);
        *cycle = Cycle { starts: std::mem::take(&mut cycle.starts), phase: reentered.phase, changed, ..kept };
        cycle.gate_noted = true;
        cycle.tests_asked = true;
        let imported = reentered.proposal.iter().chain(&reentered.making).chain(&reentered.reviews);
        for Imported { archetype, artifact, answer } in imported {
            let answered = Answered {
                start_seq: seq,
                seq,
                answer: answer.clone(),
                artifact: artifact.clone(),
                duration_ms: 0,
                purpose: Purpose::Work,
                notes: Vec::new(),
            };
            cycle.answers.insert(archetype.clone(), answered);
        }
    }

    fn reopen(&mut self) {
        self.outcome = None;
        self.complete = None;
        self.broke = None;
        self.hooks.remove(&HookPoint::RunComplete);
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only a few kinds of line cause others")]
    fn remember_causes(&mut self, entry: &Entry) {
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
    fn parents(&self, event: &Event, agent: Option<&str>) -> Vec<Seq> {
        if self.lines == 0 {
            return Vec::new();
        }
        let of_agent = || agent.and_then(|name| self.causes.starts.get(name)).copied();
        let parent = match event {
            Event::PhaseTransition(_) if !self.causes.completed.is_empty() => {
                return self.causes.completed.clone();
            }
            Event::ReviewVerdict(_) | Event::EvidenceDowngrade(_) | Event::DecisionPoint(_) => {
                of_agent().unwrap_or(self.causes.anchor)
            }
            Event::CycleBoundary(_) | Event::FixApplied(_) | Event::FindingRaised(_) => self.causes.anchor,
            _ => event.answers().unwrap_or(self.causes.trigger),
        };
        vec![parent.max(1)]
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "only a transition is in the phase it leads to")]
    fn phase_of(&self, event: &Event) -> Phase {
        match event {
            Event::PhaseTransition(transition) => transition.to,
            _ => self.cycles.last().map_or(Phase::Plan, |cycle| cycle.phase),
        }
    }

    /// The cycle under way. A run that has not begun one has nothing that concerns a cycle.
    fn cycle_mut(&mut self) -> &mut Cycle {
        if self.cycles.is_empty() {
            self.cycles.push(Cycle::new(1));
        }
        let last = self.cycles.len() - 1;
        &mut self.cycles[last]
    }

    pub fn cycle(&self) -> Option<&Cycle> {
        self.cycles.last()
    }

    pub fn number(&self) -> u32 {
        self.cycles.last().map_or(0, |cycle| cycle.number)
    }

    /// The request; every rule that asks for it comes after the first line.
    pub fn policy(&self) -> &Policy {
        static DEFAULT: std::sync::LazyLock<Policy> = std::sync::LazyLock::new(Policy::default);
        self.request.as_ref().map_or(&DEFAULT, |request| &request.config)
    }

    pub fn strategy(&self) -> Strategy {
        self.request.as_ref().map_or(Strategy::Pdca, |request| request.strategy)
    }

    pub fn current_workflow(&self) -> Workflow {
        self.workflow.unwrap_or(Workflow::Standard)
    }

    pub fn attended(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.attended)
    }

    pub fn auto_merge(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.auto_merge)
    }

    /// The seats of the present workflow, as frozen in the first line.
    pub fn seats(&self) -> Vec<Seat> {
        let workflow = self.current_workflow();
        let (key, default) = match self.strategy() {
            Strategy::Pdca => (workflow.name(), team(workflow)),
            Strategy::Pipeline => (PIPELINE, pipeline_team()),
        };
        self.request.as_ref().and_then(|request| request.seats.get(key).cloned()).unwrap_or(default)
    }

    /// Reviewers who should be out beside the others and are not: a crash lost them, or the line that sent them.
    pub fn stragglers(&self) -> Vec<Seat> {
        let Some(cycle) = self.cycle().filter(|cycle| cycle.phase == Phase::Check) else { return Vec::new() };
        if self.strategy() == Strategy::Pipeline {
            return Vec::new();
        }
        let mut seats = self.seats();
        if seats.iter().any(|seat| seat.role == Role::Gatekeeper && !cycle.settled(&seat.archetype)) {
            return Vec::new();
        }
        seats.retain(|seat| seat.role == Role::Reviewer);
        let out: BTreeSet<&str> = self.open_agents().map(|(_, start)| start.archetype.as_str()).collect();
        let sent = |seat: &Seat| {
            let name = seat.archetype.as_str();
            out.contains(name) || cycle.answers.contains_key(name) || cycle.last_failure.contains_key(name)
        };
        if !seats.iter().any(sent) {
            return Vec::new();
        }
        let lost = |seat: &Seat| {
            let name = &seat.archetype;
            cycle.lost.contains(name) || (!out.is_empty() && cycle.owed.contains(name))
        };
        seats.retain(|seat| (!sent(seat) || lost(seat)) && !cycle.absent.contains_key(&seat.archetype));
        seats
    }

    /// The commit the next agent looks at.
    pub fn tip(&self) -> Oid {
        let base = || self.request.as_ref().map(|request| request.base.commit.clone()).unwrap_or_default();
        self.work.as_ref().map_or_else(base, |work| work.commit.clone())
    }

    /// The trends of the cycles before this one, oldest first.
    pub fn earlier_trends(&self) -> Vec<&Trend> {
        let before = self.cycles.len().saturating_sub(1);
        self.cycles.iter().take(before).filter_map(|c| c.boundary.as_ref()?.convergence.as_ref()).collect()
    }

    /// The findings open at the end of each earlier cycle, oldest first.
    pub fn history(&self) -> Vec<&[Tracked]> {
        let before = self.cycles.len().saturating_sub(1);
        self.cycles
            .iter()
            .take(before)
            .map(|cycle| cycle.boundary.as_ref().map_or(&[][..], |boundary| boundary.open.as_slice()))
            .collect()
    }

    /// The question waiting for a person, if any.
    #[expect(clippy::wildcard_enum_match_arm, reason = "looks for one kind of order")]
    pub fn question(&self) -> Option<(Seq, &QuestionAsked)> {
        self.open.iter().find_map(|(seq, order)| match order {
            Event::QuestionAsked(question) => Some((*seq, &**question)),
            _ => None,
        })
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "looks for one kind of order")]
    pub fn open_agents(&self) -> impl Iterator<Item = (Seq, &AgentStart)> {
        self.open.iter().filter_map(|(seq, order)| match order {
            Event::AgentStart(start) => Some((*seq, &**start)),
            _ => None,
        })
    }

    /// Every artifact of the present cycle by name.
    pub fn artifacts(&self) -> Vec<String> {
        let Some(cycle) = self.cycle() else { return Vec::new() };
        let mut names: Vec<String> = cycle
            .answers
            .values()
            .chain(&cycle.mini_explorer)
            .map(|answered| answered.artifact.name.clone())
            .collect();
        names.sort();
        names
    }
}

impl Cycle {
    fn new(number: u32) -> Cycle {
        Cycle {
            number,
            phase: Phase::Plan,
            answers: BTreeMap::new(),
            mini_explorer: None,
            mini_explorer_gone: false,
            starts: BTreeMap::new(),
            failures: BTreeMap::new(),
            busy: BTreeMap::new(),
            last_failure: BTreeMap::new(),
            absent: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            downgrades: BTreeMap::new(),
            raised: Vec::new(),
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
            boundary: None,
        }
    }

    pub fn settled(&self, archetype: &str) -> bool {
        self.answers.contains_key(archetype) || self.absent.contains_key(archetype)
    }

    pub fn proposal(&self) -> Option<&Proposal> {
        match self.answers.get("creator").map(|answered| &answered.answer.said) {
            Some(Said::Proposal(proposal)) => Some(proposal),
            Some(Said::Prose | Said::Review(_)) | None => None,
        }
    }

    pub fn review(&self, archetype: &str) -> Option<&Review> {
        match self.answers.get(archetype).map(|answered| &answered.answer.said) {
            Some(Said::Review(review)) => Some(review),
            Some(Said::Prose | Said::Proposal(_)) | None => None,
        }
    }

    /// The reviewers that answered, in alphabetical order.
    pub fn reviewers(&self) -> Vec<(&str, &Review)> {
        self.answers.keys().filter_map(|name| Some((name.as_str(), self.review(name)?))).collect()
    }

    /// Every finding of this cycle with the severity it counts with: downgraded ones as INFO, the program's own too.
    pub fn weighed(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, review) in self.reviewers() {
            for (index, finding) in review.findings.iter().enumerate() {
                let mut finding = finding.clone();
                let key = (name.to_owned(), u32::try_from(index).unwrap_or(u32::MAX));
                if self.downgrades.contains_key(&key) {
                    finding.severity = Severity::Info;
                }
                findings.push(finding);
            }
        }
        findings.extend(self.raised.iter().map(|(_, finding)| finding.clone()));
        findings
    }

    /// An answer that has to be given anew. Where the cycle had gone on, as after a re-entry, it goes back.
    fn forget(&mut self, archetype: &str) {
        let Some(answered) = self.answers.remove(archetype) else { return };
        let phase = match (&answered.answer.said, archetype) {
            (Said::Review(_), _) => Phase::Check,
            (Said::Prose, "maker") => Phase::Do,
            (Said::Prose | Said::Proposal(_), _) => Phase::Plan,
        };
        self.phase = self.phase.min(phase);
    }

    fn forget_reviews(&mut self) {
        let reviewers: BTreeSet<String> =
            self.reviewers().iter().map(|(name, _)| (*name).to_owned()).collect();
        self.answers.retain(|name, _| !reviewers.contains(name));
        self.absent.clear();
        self.failures.clear();
        self.busy.clear();
        self.last_failure.clear();
        self.verdicts.clear();
        self.downgrades.clear();
        self.raised.clear();
        self.boundary = None;
    }
}

/// Everything but a clear yes is a no.
pub fn is_yes(text: &str) -> bool {
    matches!(text.trim().to_lowercase().as_str(), "y" | "yes" | "ja" | "ok" | "merge" | "land")
}

#[expect(clippy::wildcard_enum_match_arm, reason = "events that concern no agent")]
fn agent_of(event: &Event) -> Option<String> {
    let name = match event {
        Event::AgentStart(body) => &body.archetype,
        Event::AgentComplete(body) => &body.archetype,
        Event::AgentFailed(body) => &body.archetype,
        Event::AgentTimeout(body) => &body.0.archetype,
        Event::AgentLost(body) => &body.archetype,
        Event::AgentSkipped(body) => &body.archetype,
        Event::ReviewVerdict(body) => &body.archetype,
        Event::EvidenceDowngrade(body) => &body.archetype,
        Event::DecisionPoint(body) if body.archetype != crate::words::PROGRAM => &body.archetype,
        Event::QuestionAsked(body) if !body.archetype.is_empty() => &body.archetype,
        _ => return None,
    };
    Some(name.clone())
}
