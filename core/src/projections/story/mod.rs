//! A run told from its log and nothing else (AF-196): what every report says, before anybody decides how it looks.
//!
//! Deliberately absent: colours, widths, escapes, the diff (git has it) and any bound on how much is told. Faces
//! draw a [`Story`] and say what they leave out. The events as a graph are in [`dag`], the lives of findings in
//! [`findings`], what was brought forward for them in [`evidence`].

pub mod dag;
pub mod evidence;
pub mod findings;
mod overview;

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{
    AgentComplete, AgentLine, AgentStart, CycleBoundary, Decision, DecisionPoint, DecisionRecord, Entry,
    Event, EvidenceDowngrade, Imported, LandingLine, LoopHeard, NextAction, PreflightDone, QuestionLine,
    Report, ReviewLine, ReviewVerdict, RunContinued, RunReentered, RunRolledBack, SessionStart,
    ShadowDetected, Share, Tokens, Topic, Tracked, Trend,
};
use crate::model::{
    AnswerBody, Change, Destination, Finding, Money, Oid, Outcome, Phase, Purpose, Seq, Severity,
    ShadowAction, Strategy, Tier, Verdict,
};
use crate::projections::handoff;
use crate::projections::view::{self, ProgressLine, Tone, Why};
use crate::run::Run;

pub use findings::{Life, State};

/// A whole run, in the order a reader wants it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    pub run_id: String,
    pub overview: Overview,
    pub cycles: Vec<CycleStory>,
    pub lives: Vec<Life>,
    /// Percent above which a trend converges and below which it diverges.
    pub bands: (u32, u32),
    /// Findings that were made advice because their evidence does not hold (AF-073, D-05).
    pub set_aside: Vec<SetAside>,
    /// Findings of the program itself (D-07).
    pub raised: Vec<RaisedInStory>,
    pub costs: Vec<Cost>,
    pub decisions: Vec<StoryDecision>,
    pub corrections: Vec<Correction>,
    pub questions: Vec<Question>,
    /// The page of a Wiggum Break, in Markdown.
    pub page: Option<String>,
    /// What a person can type next, most likely first.
    pub next: Vec<(String, &'static str)>,
    pub change: Option<Change>,
    /// Files that were planned and are not in the change.
    pub planned_missing: Vec<String>,
    /// What was odd when the work was collected.
    pub change_notes: Vec<String>,
    pub artifacts: Vec<Kept>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Overview {
    pub task: String,
    pub strategy: Strategy,
    pub workflow: &'static str,
    pub domain: &'static str,
    pub lenses: Vec<String>,
    pub team: Vec<String>,
    /// The programs that played the archetypes, each once.
    pub agents: BTreeSet<String>,
    pub models: BTreeSet<Tier>,
    /// `None` while the run goes on.
    pub outcome: Option<Outcome>,
    /// Milliseconds since 1970.
    pub began: u64,
    pub last: u64,
    /// Time agents worked, all together.
    pub worked_ms: u64,
    pub spent: Money,
    /// The first limit in force, if any.
    pub limit: Option<Money>,
    /// Attempts that said nothing about what they cost.
    pub unknown_costs: u32,
    pub attempts: u32,
    pub max_cycles: u32,
    pub fixes: u32,
    pub branch: String,
    /// The branch the change is for, without `refs/heads/`.
    pub target: String,
    pub base: Oid,
    pub landed: Option<Landed>,
    pub events: u64,
    pub version: String,
    /// Commands ran without a sandbox in some session.
    pub unsandboxed: bool,
    /// The severity of the gravest finding that is still open.
    pub gravest_open: Option<Severity>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    pub commit: Oid,
    pub old: Oid,
    /// Taken back by this commit.
    pub reverted: Option<Oid>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CycleStory {
    pub number: u32,
    pub steps: Vec<Step>,
    /// What the program did itself, mostly in Act: judging, building, testing, landing.
    pub deeds: Vec<Deed>,
    pub end: Option<CycleEnd>,
}

/// One archetype in one phase of one cycle, with all its attempts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub phase: Phase,
    pub archetype: String,
    pub attempts: Vec<Attempt>,
    /// How it stands after the last attempt.
    pub result: Ended,
    /// Findings of its last answer, by severity as the reviewer reported it: critical, warning, info.
    pub found: [u32; 3],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub seq: Seq,
    pub purpose: Purpose,
    pub model: Tier,
    pub agent: String,
    pub took_ms: u64,
    pub good: bool,
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// Started, and not finished yet.
    Out,
    Done,
    Verdict(Verdict),
    Failed(String),
    /// Skipped, with the reason.
    Skipped(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    pub seq: Seq,
    pub line: ProgressLine,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CycleEnd {
    pub seq: Seq,
    pub critical: u32,
    pub warning: u32,
    pub info: u32,
    pub next: NextAction,
    pub exit_condition: String,
    pub stop: Option<String>,
    /// Reviewers without whose approval the change lands, in words.
    pub passed_over: Option<String>,
    pub fixes: u32,
    /// Open findings that go to the Creator and to the Maker.
    pub to_creator: u32,
    pub to_maker: u32,
    pub trend: Option<Trend>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    pub seq: Seq,
    pub cycle: u32,
    pub what: EvidenceDowngrade,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RaisedInStory {
    pub seq: Seq,
    pub cycle: u32,
    pub finding: Finding,
}

/// What one archetype on one tier cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cost {
    pub archetype: String,
    pub model: Tier,
    pub attempts: u32,
    pub cost: Money,
    /// Attempts that did not say what they cost.
    pub unknown: u32,
    /// Attempts that reported their tokens, and those tokens.
    pub counted: u32,
    pub tokens: Tokens,
    pub worked_ms: u64,
}

/// A decision with its reason (AF-180).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoryDecision {
    pub seq: Seq,
    pub cycle: u32,
    pub phase: Phase,
    pub why: Why,
    pub confidence: Option<Share>,
    /// What else could have been decided, and why it was not (CL-31).
    pub alternatives: Vec<String>,
    pub rationale: String,
}

/// A shadow that was seen, and what was done about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    pub seq: Seq,
    pub cycle: u32,
    pub archetype: String,
    pub shadow: String,
    pub action: ShadowAction,
    pub seen: Vec<String>,
    /// The correction in words.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    pub seq: Seq,
    pub text: String,
    /// `None` while it waits, or if nobody answered.
    pub answer: Option<String>,
}

/// A file in the run's artifact folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub cycle: u32,
    pub name: String,
    pub by: String,
    pub seq: Seq,
}

impl Story {
    pub fn of(run_id: &str, log: &[Entry]) -> Story {
        let mut teller = Teller::default();
        log.iter().for_each(|entry| teller.hear(entry));
        teller.finish(run_id, log)
    }

    pub fn status(&self) -> &'static str {
        self.overview.outcome.as_ref().map_or("running", |outcome| outcome.status.name())
    }

    pub fn reason(&self) -> &'static str {
        self.overview.outcome.as_ref().map_or("running", |outcome| outcome.reason.name())
    }

    pub fn tone(&self) -> Tone {
        let outcome = self.overview.outcome.as_ref();
        outcome.map_or(Tone::Plain, |outcome| view::outcome_tone(outcome.status, self.overview.gravest_open))
    }

    /// From the first line to the last.
    pub fn took_ms(&self) -> u64 {
        self.overview.last.saturating_sub(self.overview.began)
    }

    /// The two commits of the change: what landed, or else what the Maker last made.
    pub fn span(&self) -> Option<(Oid, Oid)> {
        let overview = &self.overview;
        let landed = overview.landed.as_ref().map(|landed| (landed.old.clone(), landed.commit.clone()));
        landed.or_else(|| self.change.as_ref().map(|change| (overview.base.clone(), change.commit.clone())))
    }
}

/// Listens to the log, entry by entry.
#[derive(Default)]
struct Teller {
    run: Run,
    cycles: BTreeMap<u32, CycleStory>,
    starts: BTreeMap<Seq, AgentStart>,
    worked: BTreeMap<(String, Tier), u64>,
    agents: BTreeSet<String>,
    models: BTreeSet<Tier>,
    set_aside: Vec<SetAside>,
    raised: Vec<RaisedInStory>,
    decisions: Vec<StoryDecision>,
    corrections: Vec<Correction>,
    questions: Vec<Question>,
    artifacts: Vec<Kept>,
    /// The findings open at the last boundary.
    open: Vec<Tracked>,
    accepted: findings::Accepted,
    landed: Option<Landed>,
    unsandboxed: bool,
}

impl Teller {
    fn hear(&mut self, entry: &Entry) {
        self.run.apply(entry);
        let session = entry.event.body::<SessionStart>();
        self.unsandboxed |= session.is_some_and(|session| session.sandbox == SessionStart::NO_SANDBOX);
        self.note_agents(entry);
        self.note_words(entry);
        self.note_deed(entry);
        let cycle = self.run.number();
        if let Some(why) = view::why(entry) {
            let confidence = entry.event.body::<DecisionPoint>().map(|point| point.confidence);
            let (seq, phase, alternatives, rationale) = (entry.seq, entry.phase, Vec::new(), String::new());
            self.decisions.push(StoryDecision {
                seq,
                cycle,
                phase,
                why,
                confidence,
                alternatives,
                rationale,
            });
        }
        if let Some(record) = entry.event.body::<DecisionRecord>() {
            let point = self.decisions.iter_mut().rev().find(|point| entry.parent.contains(&point.seq));
            if let Some(point) = point {
                point.alternatives.clone_from(&record.alternatives);
                point.rationale.clone_from(&record.rationale);
            }
        }
    }

    fn cycle(&mut self) -> &mut CycleStory {
        let number = self.run.number().max(1);
        self.cycles.entry(number).or_insert_with(|| CycleStory { number, ..CycleStory::default() })
    }

    fn step(&mut self, phase: Phase, archetype: &str) -> &mut Step {
        let steps = &mut self.cycle().steps;
        let known = steps.iter().position(|step| step.phase == phase && step.archetype == archetype);
        let at = known.unwrap_or_else(|| {
            steps.push(Step {
                phase,
                archetype: archetype.to_owned(),
                attempts: Vec::new(),
                result: Ended::Out,
                found: [0; 3],
            });
            steps.len() - 1
        });
        &mut steps[at]
    }

    fn note_agents(&mut self, entry: &Entry) {
        match entry.event.topic() {
            Topic::Agent(line) => match line {
                AgentLine::AgentStart(start) => self.sent(entry, start),
                AgentLine::AgentComplete(complete) => self.answered(entry, complete),
                AgentLine::AgentFailed(failed) => {
                    self.failed(failed.start_seq, &failed.reason, failed.duration_ms);
                }
                AgentLine::AgentTimeout(failed) => {
                    self.failed(failed.start_seq, &failed.reason, failed.duration_ms);
                }
                AgentLine::AgentLost(lost) => self.failed(lost.start_seq, &lost.reason, 0),
                AgentLine::AgentUsage(_) => {}
                AgentLine::AgentSkipped(skipped) => {
                    let reason = skipped.reason.clone();
                    let result = if skipped.failed { Ended::Failed(reason) } else { Ended::Skipped(reason) };
                    self.step(entry.phase, &skipped.archetype).result = result;
                }
            },
            Topic::Review(_) => {
                if let Some(said) = entry.event.body::<ReviewVerdict>() {
                    self.step(entry.phase, &said.archetype).result = Ended::Verdict(said.verdict);
                }
            }
            Topic::Run(_) => {
                if let Some(again) = entry.event.body::<RunReentered>() {
                    let brought = again.proposal.iter().chain(&again.making).chain(&again.reviews);
                    for Imported { archetype, artifact, .. } in brought {
                        self.keep(entry.seq, &artifact.name, archetype);
                    }
                }
                if let Some(done) = entry.event.body::<PreflightDone>() {
                    self.note_preflight(entry.seq, done);
                }
            }
            Topic::Cycle(_)
            | Topic::Correction(_)
            | Topic::Question(_)
            | Topic::Landing(_)
            | Topic::Loop(_) => {}
        }
    }

    /// The logs of the commands that ran on the base commit.
    fn note_preflight(&mut self, seq: Seq, done: &PreflightDone) {
        let setup = done.setup.iter().map(|setup| (&setup.artifact, "setup"));
        let tests = done.tests.iter().map(|tests| (&tests.artifact, "tests"));
        for (name, by) in setup.chain(tests).filter(|(name, _)| !name.is_empty()) {
            self.keep(seq, name, by);
        }
    }

    fn sent(&mut self, entry: &Entry, start: &AgentStart) {
        self.agents.insert(start.agent.clone());
        self.models.insert(start.model);
        self.starts.insert(entry.seq, start.clone());
        let attempt = Attempt {
            seq: entry.seq,
            purpose: start.purpose,
            model: start.model,
            agent: start.agent.clone(),
            took_ms: 0,
            good: false,
            note: String::new(),
        };
        let step = self.step(entry.phase, &start.archetype);
        step.attempts.push(attempt);
        step.result = Ended::Out;
    }

    fn answered(&mut self, entry: &Entry, complete: &AgentComplete) {
        for name in &complete.artifacts {
            self.keep(entry.seq, name, &complete.archetype);
        }
        let review = match &complete.answer.said {
            AnswerBody::Review(review) => Some(review),
            AnswerBody::Prose | AnswerBody::Proposal(_) => None,
        };
        let found = [Severity::Critical, Severity::Warning, Severity::Info].map(|severity| {
            let of = |review: &crate::model::Review| {
                review.findings.iter().filter(|found| found.severity == severity).count()
            };
            u32::try_from(review.map_or(0, of)).unwrap_or(u32::MAX)
        });
        let verdict = review.and_then(|review| review.verdict);
        self.ended(complete.start_seq, complete.duration_ms, |step, attempt| {
            attempt.good = true;
            attempt.note.clone_from(&complete.summary);
            step.found = found;
            step.result = verdict.map_or(Ended::Done, Ended::Verdict);
        });
    }

    fn failed(&mut self, start: Seq, reason: &str, took_ms: u64) {
        self.ended(start, took_ms, |step, attempt| {
            attempt.note = reason.to_owned();
            step.result = Ended::Failed(reason.to_owned());
        });
    }

    /// Completes the entry of an attempt with its end.
    fn ended(&mut self, start: Seq, took_ms: u64, tell: impl FnOnce(&mut Step, &mut Attempt)) {
        let Some(sent) = self.starts.remove(&start) else { return };
        *self.worked.entry((sent.archetype.clone(), sent.model)).or_default() += took_ms;
        let Some(cycle) = self.cycles.get_mut(&sent.cycle) else { return };
        let of = |step: &&mut Step| step.attempts.iter().any(|attempt| attempt.seq == start);
        let Some(step) = cycle.steps.iter_mut().rev().find(of) else { return };
        let Some(at) = step.attempts.iter().position(|attempt| attempt.seq == start) else { return };
        let mut attempt = step.attempts.remove(at);
        attempt.took_ms = took_ms;
        tell(step, &mut attempt);
        step.attempts.insert(at, attempt);
    }

    fn keep(&mut self, seq: Seq, name: &str, by: &str) {
        let cycle = self.run.number().max(1);
        self.artifacts.push(Kept { cycle, name: name.to_owned(), by: by.to_owned(), seq });
    }

    fn note_words(&mut self, entry: &Entry) {
        let (seq, cycle) = (entry.seq, self.run.number());
        match entry.event.topic() {
            Topic::Review(line) => match line {
                ReviewLine::EvidenceDowngrade(what) => {
                    self.set_aside.push(SetAside { seq, cycle, what: what.clone() });
                }
                ReviewLine::FindingRaised(raised) => {
                    self.raised.push(RaisedInStory { seq, cycle, finding: raised.finding.clone() });
                }
                ReviewLine::ReviewOpened(_)
                | ReviewLine::ReviewVerdict(_)
                | ReviewLine::EvidenceStart(_)
                | ReviewLine::EvidenceDone(_) => {}
            },
            Topic::Correction(_) => {
                self.corrections.extend(entry.event.body().map(|seen| correction(seq, seen)));
            }
            Topic::Question(line) => match line {
                QuestionLine::QuestionAsked(asked) => {
                    self.questions.push(Question { seq, text: asked.question.clone(), answer: None });
                }
                QuestionLine::QuestionAnswered(answered) => self.heard(answered.start_seq, &answered.text),
                QuestionLine::QuestionDeferred(_) => {}
            },
            Topic::Loop(_) => {
                if let Some(heard) = entry.event.body::<LoopHeard>()
                    && let Some(order) = heard.start_seq
                {
                    let word = heard.word.map_or("", crate::model::Word::name);
                    self.heard(order, if heard.text.is_empty() { word } else { &heard.text });
                }
            }
            Topic::Cycle(_) => {
                if let Some(boundary) = entry.event.body::<CycleBoundary>() {
                    self.open.clone_from(&boundary.open);
                }
            }
            Topic::Run(_) => {
                if entry.event.body::<RunRolledBack>().is_some() {
                    let last = self.run.cycles.iter().rev().find_map(|cycle| cycle.boundary.as_ref());
                    self.open = last.map(|boundary| boundary.open.clone()).unwrap_or_default();
                }
                if let Some(continued) = entry.event.body::<RunContinued>() {
                    let taken = self.open.iter().filter(|found| continued.accept.contains(&found.id));
                    self.accepted.extend(taken.map(|found| (found.id.clone(), (cycle, found.clone()))));
                }
            }
            Topic::Landing(line) => self.note_landing(seq, line),
            Topic::Agent(_) => {}
        }
    }

    fn heard(&mut self, order: Seq, answer: &str) {
        if let Some(asked) = self.questions.iter_mut().find(|question| question.seq == order) {
            asked.answer = Some(answer.to_owned());
        }
    }

    fn note_landing(&mut self, seq: Seq, line: LandingLine<'_>) {
        match line {
            LandingLine::TestsDone(done) if !done.artifact.is_empty() => {
                self.keep(seq, &done.artifact, "tests");
            }
            LandingLine::RunMerged(merged) => {
                let (commit, old) = (merged.commit.clone(), merged.old.clone());
                self.landed = Some(Landed { commit, old, reverted: None });
            }
            LandingLine::RunReverted(reverted) => {
                if let Some(landed) = &mut self.landed {
                    landed.reverted = Some(reverted.commit.clone());
                }
            }
            LandingLine::MergeRequested(_)
            | LandingLine::MergeStart(_)
            | LandingLine::MergeBuilt(_)
            | LandingLine::TestsStart(_)
            | LandingLine::TestsDone(_)
            | LandingLine::HookStart(_)
            | LandingLine::HookDone(_)
            | LandingLine::MergeIntent(_)
            | LandingLine::MergeRefused(_)
            | LandingLine::RevertRequested(_)
            | LandingLine::RevertStart(_)
            | LandingLine::RevertBuilt(_)
            | LandingLine::RevertIntent(_)
            | LandingLine::RevertRefused(_) => {}
        }
    }

    /// What is worth a line on the screen and is not an agent's is a deed of the program.
    fn note_deed(&mut self, entry: &Entry) {
        let told_elsewhere = matches!(
            &entry.event,
            Event::Report(
                Report::AgentComplete(_)
                    | Report::AgentFailed(_)
                    | Report::AgentTimeout(_)
                    | Report::AgentLost(_)
            ) | Event::Decision(
                Decision::AgentSkipped(_)
                    | Decision::EvidenceDowngrade(_)
                    | Decision::FindingRaised(_)
                    | Decision::ShadowDetected(_)
            )
        );
        if told_elsewhere {
            return;
        }
        if let Some(boundary) = entry.event.body::<CycleBoundary>() {
            let to = |role: Destination| {
                let open = boundary.open.iter().filter(|found| found.routes_to == role).count();
                u32::try_from(open).unwrap_or(u32::MAX)
            };
            let [critical, warning, info] = view::open_tally(boundary);
            let end = CycleEnd {
                seq: entry.seq,
                critical,
                warning,
                info,
                next: boundary.next_action,
                exit_condition: boundary.exit_condition.clone(),
                stop: boundary.stop.as_ref().map(|stop| stop.detail.clone()),
                passed_over: view::passed_over(&boundary.passed_over),
                fixes: boundary.fixes_applied,
                to_creator: to(Destination::Creator),
                to_maker: to(Destination::Maker),
                trend: boundary.convergence.clone(),
            };
            self.cycle().end = Some(end);
        } else if let Some(line) = view::line(&self.run, entry, None) {
            self.cycle().deeds.push(Deed { seq: entry.seq, line });
        }
    }

    fn finish(self, run_id: &str, log: &[Entry]) -> Story {
        let overview = self.overview();
        let run = &self.run;
        let costs = run.ledger.accounts.iter().map(|((archetype, model), account)| Cost {
            archetype: archetype.clone(),
            model: *model,
            attempts: account.attempts,
            cost: account.cost,
            unknown: account.unknown,
            counted: account.counted,
            tokens: account.tokens,
            worked_ms: self.worked.get(&(archetype.clone(), *model)).copied().unwrap_or(0),
        });
        let next = run.outcome.as_ref().map(|outcome| view::next_steps(run_id, run, outcome));
        Story {
            run_id: run_id.to_owned(),
            lives: findings::lives(run, &self.accepted),
            bands: {
                let policy = &run.policy().convergence;
                (policy.converging_above_percent, policy.diverging_below_percent)
            },
            costs: costs.collect(),
            page: handoff::page(run_id, run, log),
            next: next.unwrap_or_default(),
            change: run.work.clone(),
            planned_missing: run.corrections.unmade.clone(),
            change_notes: run.corrections.change_notes.clone(),
            overview,
            cycles: self.cycles.into_values().collect(),
            set_aside: self.set_aside,
            raised: self.raised,
            decisions: self.decisions,
            corrections: self.corrections,
            questions: self.questions,
            artifacts: self.artifacts,
        }
    }
}

fn correction(seq: Seq, seen: &ShadowDetected) -> Correction {
    Correction {
        seq,
        cycle: seen.cycle,
        archetype: seen.archetype.clone(),
        shadow: seen.shadow.clone(),
        action: seen.action,
        seen: seen
            .sightings
            .iter()
            .map(|one| format!("{}: {} against {}", one.detail, one.measured, one.threshold))
            .collect(),
        detail: seen.detail.clone(),
    }
}

impl Step {
    pub fn took_ms(&self) -> u64 {
        self.attempts.iter().map(|attempt| attempt.took_ms).sum()
    }

    /// Whether it reviews: its result is a verdict or should be one.
    pub fn is_review(&self) -> bool {
        matches!(self.result, Ended::Verdict(_)) || self.phase == Phase::Check
    }
}
