//! The state of a run, folded from its journal. It never decides.

mod accounts;
mod causes;
mod corrections;
mod cycle;
mod fold;
mod ledger;
mod rollback;
mod tally;

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::event::{
    AgentStart, Built, Companion, DecisionRecord, Entry, Event, HookDone, LeftOut, Link, MergeIntent, Money,
    Order, PreflightDone, QuestionAsked, QuestionKind, Refusal, Report, ReviewOpened, RunComplete, RunStart,
    SessionStart, Tested, TestsDone, TestsRan, TestsStart, Together, Tracked, Trend,
};
use crate::model::{
    Change, HookPoint, Oid, Outcome, Overlay, Participant, Phase, Policy, Role, Seq, Sign, Strategy, Workflow,
};
use crate::persona;

use causes::Causes;

pub use crate::strategies::agent_loop::{AgentLoop, Note, Owed, PersonMessage, Plan};
pub use accounts::{Accounts, Author, Breaker};
pub use corrections::{Corrections, Key, Shadowed};
pub use cycle::{Answered, Cycle, RejectionSetAside};
pub use ledger::{Account, Ledger, Limit};
pub use rollback::{PhaseEnd, Rollback};

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
    pub open: BTreeMap<Seq, Order>,
    /// How the base commit was before the first agent started.
    pub preflight: Option<Box<PreflightDone>>,
    /// A person's answer to a base commit on which tests fail.
    pub red_base: Option<bool>,
    pub landing: Landing,
    /// How the tests of the latest candidate ended, also once the landing was given up.
    pub last_tests: Option<LandingTests>,
    /// The Maker's latest accepted work.
    pub work: Option<Change>,
    /// People's answers to questions of agents.
    pub clarifications: Vec<Clarification>,
    pub questions: BTreeMap<QuestionKind, u32>,
    /// A person overrode the confidence gate.
    pub waved_through: bool,
    pub dry_run_passed: bool,
    /// How the last attempt of each archetype ended in the step under way. Reviewers side by side are one step, their
    /// corrections included, so that the order in which they end, or are started again after a crash, does not matter.
    pub ended: BTreeMap<String, bool>,
    /// Before the step under way.
    pub failures_in_a_row: u32,
    pub agents_total: u32,
    pub fixes_total: u32,
    /// The cost of all ended attempts.
    pub spent: Money,
    pub corrections: Corrections,
    pub ledger: Ledger,
    pub accounts: Accounts,
    /// The author of the present work, if known.
    pub author: Option<Author>,
    /// The change under review, if this is a review.
    pub review: Option<Box<ReviewOpened>>,
    /// The state of the loop, if this is one.
    pub agent_loop: Option<Box<AgentLoop>>,
    pub broke: Option<Seq>,
    /// What the last choice could have been instead, until that is written down. A torn batch may end in between.
    pub unexplained: Option<DecisionRecord>,
    /// Set while the run is paused: how the request came.
    pub paused: Option<String>,
    pub hooks: BTreeMap<HookPoint, HookDone>,
    pub discarded: bool,
    /// Landings reverted because tests failed afterwards (CL-11).
    pub reverts: u32,
    /// A person's request to take the landing back, while it is carried out.
    pub undo: Option<Undo>,
    /// The run as it was at the end of each phase, for a person who takes it back to there (M-03).
    pub phase_ends: BTreeMap<(u32, Phase), Box<PhaseEnd>>,
    /// The last time a person did.
    pub rollback: Option<Rollback>,
    /// Attempts of each archetype in each cycle, those that were taken back included: refs are named after them.
    pub attempts: BTreeMap<(u32, String), u32>,
    pub outcome: Option<Outcome>,
    pub complete: Option<Box<RunComplete>>,
    causes: Causes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clarification {
    pub archetype: String,
    pub question: String,
    pub answer: String,
}

/// The state of the landing: from building the merge to testing it again afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Landing {
    pub attempts: u32,
    pub built: Option<Built>,
    pub tested: Option<LandingTests>,
    /// Of the candidate before, which is built again because its message has another finding.
    pub tested_before: Option<LandingTests>,
    /// That the tests fail as they did before is written down.
    pub red_noted: bool,
    pub asked: bool,
    pub answer: Option<bool>,
    /// A person said yes, here or by `archeflow merge`.
    pub agreed: bool,
    /// Runs to be landed in the same step, if possible.
    pub before: Vec<Companion>,
    /// This run was landed together with another one.
    pub with: Option<Together>,
    /// The companions in the candidate, in their order.
    pub chain: Vec<Link>,
    pub left_out: Vec<LeftOut>,
    pub intent: Option<MergeIntent>,
    /// When the last step that moves the target was written down.
    pub since: u64,
    pub merged: Option<Merged>,
    pub refused: Option<(Refusal, String)>,
    pub retested: Option<LandingTests>,
    pub reverted: Option<Oid>,
    pub reverted_at: u64,
    pub revert_refused: Option<String>,
}

/// How the test command ended on a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandingTests {
    pub tree: Oid,
    pub result: Tested,
    /// The lines that say what fails.
    pub lines: Vec<String>,
    /// The failing tests, where the output names them.
    pub failing: Vec<String>,
    /// The file with the whole output.
    pub artifact: String,
    pub ran: TestsRan,
}

impl LandingTests {
    /// In journals from before its lines were kept, the last line of the output stands for them.
    fn of(done: TestsDone) -> LandingTests {
        let last = || done.tail.lines().rev().map(str::trim).find(|line| !line.is_empty());
        let lines =
            if done.lines.is_empty() { last().map(str::to_owned).into_iter().collect() } else { done.lines };
        let TestsDone { tree, result, failing, artifact, ran, .. } = done;
        LandingTests { tree, result, lines, failing, artifact, ran }
    }
}

impl Landing {
    /// What was tested is the tree: one that was tested is not tested again.
    fn take_over_tests(&mut self) {
        let tested = self.tested_before.take();
        let Some(Built::Candidate { tree, .. }) = &self.built else { return };
        self.tested = tested.filter(|tested| tested.tree == *tree);
    }
}

/// How far the revert is that a person asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Undo {
    pub attempts: u32,
    pub built: Option<Built>,
    pub tested: Option<LandingTests>,
    pub refused: Option<(Refusal, String)>,
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

    /// Applies one report. The caller writes the entry to the journal.
    pub fn hear(&mut self, at: u64, report: impl Into<Report>) -> Entry {
        self.write(at, report.into(), false)
    }

    /// `is_explained`: the next line says what else the choice in this one could have been.
    pub(crate) fn write(&mut self, at: u64, event: impl Into<Event>, is_explained: bool) -> Entry {
        let event = event.into();
        let (phase, agent) = (self.phase_of(&event), event.agent().map(str::to_owned));
        let parent = self.parents(&event, agent.as_deref());
        let entry = Entry { seq: self.lines + 1, at, parent, phase, agent, event };
        self.apply_in(&entry, is_explained);
        entry
    }

    /// The current cycle; the first one is begun if there is none.
    pub(crate) fn cycle_mut(&mut self) -> &mut Cycle {
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

    /// The changes that domain, lenses and team make to archetypes.
    pub fn overlay(&self) -> &Overlay {
        static NONE: std::sync::LazyLock<Overlay> = std::sync::LazyLock::new(Overlay::default);
        self.request.as_ref().map_or(&NONE, |request| &request.overlay)
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

    /// The commit whose tests have to run on a candidate, too. Where they failed there, or a person has agreed to the landing or
    /// knows how they end, they say nothing more.
    pub fn old_tests_of(&self, start: &TestsStart) -> Option<&Oid> {
        let Some(Built::Candidate { old, .. }) = &self.landing.built else { return None };
        let before = self.preflight.as_ref().and_then(|done| done.tests.as_ref());
        let is_known = self.cycle().is_some_and(|cycle| cycle.has_raised(Sign::OldTestsFail));
        let has_use = before.is_none_or(|before| before.result == Tested::Passed)
            && !(start.post_merge || self.undo.is_some() || is_known || self.rules().agreed_to_land(self));
        has_use.then_some(old)
    }

    /// A landing may leave those tests failing that failed before.
    pub fn accepts_red_base(&self) -> bool {
        self.policy().allow_red_base || self.red_base == Some(true)
    }

    /// The participants of the current cycle, as fixed in the first line.
    pub fn seats(&self) -> Cow<'_, [Participant]> {
        self.rules().seats(self)
    }

    /// The participant in a role that has at most one.
    pub fn seat(&self, role: Role) -> Option<Participant> {
        self.seats().iter().find(|seat| seat.role == role).cloned()
    }

    /// The archetype in this role; the built-in one if the role is empty.
    pub fn sitting(&self, role: Role) -> String {
        self.seat(role).map_or_else(|| persona::first_of(role).to_owned(), |seat| seat.archetype)
    }

    /// A Creator plans each cycle. Teams for comparison may do without.
    pub fn is_planned(&self) -> bool {
        self.seats().iter().any(|seat| seat.role == Role::Creator)
    }

    /// Where no Explorer runs, the Creator reflects first (AF-051, AF-190).
    pub fn reflects_first(&self) -> bool {
        self.seats().iter().all(|seat| seat.role != Role::Explorer)
    }

    /// Reviewers that should be running with the others and are not, because of a crash.
    pub fn missing_reviewers(&self) -> Vec<Participant> {
        let Some(cycle) = self.cycle().filter(|cycle| cycle.phase == Phase::Check) else { return Vec::new() };
        if !self.rules().reviews_in_parallel() {
            return Vec::new();
        }
        let seats = self.seats();
        if seats.iter().any(|seat| seat.role == Role::Gatekeeper && !cycle.settled(&seat.archetype)) {
            return Vec::new();
        }
        let seats = seats.iter().filter(|seat| seat.role == Role::Reviewer && !self.waits(&seat.archetype));
        let out: Vec<&str> = self.open_agents().map(|(_, start)| start.archetype.as_str()).collect();
        let sent = |seat: &Participant| {
            let name = seat.archetype.as_str();
            out.contains(&name) || cycle.answers.contains_key(name) || cycle.last_failure.contains_key(name)
        };
        // An imported review was never started with the others.
        let brought = |name: &str| cycle.answers.get(name).is_some_and(|answered| answered.is_imported());
        let begun = |seat: &Participant| {
            let name = &seat.archetype;
            (sent(seat) && !brought(name)) || cycle.lost.contains(name) || cycle.shadowed.contains_key(name)
        };
        if !seats.clone().any(begun) {
            return Vec::new();
        }
        let lost = |seat: &Participant| {
            let name = &seat.archetype;
            cycle.lost.contains(name) || (!out.is_empty() && cycle.owed.contains(name))
        };
        let missing =
            seats.filter(|seat| (!sent(seat) || lost(seat)) && !cycle.absent.contains_key(&seat.archetype));
        missing.cloned().collect()
    }

    /// CL-28: failed attempts in a row; those of one step in alphabetical order.
    pub fn failing_in_a_row(&self) -> u32 {
        self.ended.values().fold(self.failures_in_a_row, |row, good| if *good { 0 } else { row + 1 })
    }

    pub fn finished_cycles(&self) -> u32 {
        let finished = self.cycles.iter().filter(|cycle| cycle.boundary.is_some()).count();
        u32::try_from(finished).unwrap_or(u32::MAX)
    }

    /// Whether a person has to decide about this archetype, or a decided break is due.
    fn waits(&self, archetype: &str) -> bool {
        let Corrections { escalated, due, .. } = &self.corrections;
        escalated.keys().chain(due.keys()).any(|(who, _)| who == archetype)
    }

    /// Reviewers that were started together in this cycle and have no final answer yet.
    pub fn unheard_reviewers(&self) -> Vec<Participant> {
        let Some(cycle) = self.cycle().filter(|cycle| cycle.phase == Phase::Check) else { return Vec::new() };
        let seats = self.seats();
        let gate = |seat: &Participant| seat.role == Role::Gatekeeper && !cycle.settled(&seat.archetype);
        if !self.rules().reviews_in_parallel() || seats.iter().any(gate) {
            return Vec::new();
        }
        let is_unheard = |seat: &&Participant| {
            let name = &seat.archetype;
            seat.role == Role::Reviewer
                && cycle.sent.contains(name)
                && !cycle.settled(name)
                && !self.waits(name)
        };
        seats.iter().filter(is_unheard).cloned().collect()
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
    pub fn question(&self) -> Option<(Seq, &QuestionAsked)> {
        self.open.iter().find_map(|(seq, order)| {
            let Order::QuestionAsked(question) = order else { return None };
            Some((*seq, &**question))
        })
    }

    /// The line that a decision made now is about: that of the open question, else the last. A decision about another
    /// line is about something that has moved.
    pub fn decision_line(&self) -> Seq {
        self.question().map_or(self.lines, |(seq, _)| seq)
    }

    pub fn open_agents(&self) -> impl Iterator<Item = (Seq, &AgentStart)> {
        self.open.iter().filter_map(|(seq, order)| {
            let Order::AgentStart(start) = order else { return None };
            Some((*seq, &**start))
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

/// Everything but a clear yes is a no.
pub fn is_yes(text: &str) -> bool {
    matches!(text.trim().to_lowercase().as_str(), "y" | "yes" | "ja" | "ok" | "merge" | "land")
}
