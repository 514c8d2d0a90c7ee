//! A run as it happens, as plain data: a fold over the journal and over what its agents print. A terminal, a web page
//! and a protocol server draw the same value. Texts of others are bounded and filtered here.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;

use crate::event::{
    AgentComplete, AgentSkipped, AgentStart, CycleBoundary, Decision, Entry, Event, EvidenceDowngrade,
    FindingLine, ReviewLine, ReviewVerdict, Tokens, Topic, Tracked,
};
use crate::model::{Finding, Money, Phase, Seq, Severity};
use crate::projections::usual_time::{UsualTime, WorkClock};
use crate::projections::view::{self, Tone};
use crate::read::place::place;
use crate::run::Run;
use crate::text::short_line;

/// No text of others is kept longer than this; one row has no space for more.
const LONGEST: usize = 600;
/// Decisions and deeds that are kept; the journal has all of them.
const DECISIONS: usize = 2_000;

/// Who drives the run that is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum Driven {
    /// This process.
    Here,
    /// Another one, by its words.
    Elsewhere { pid: u32, host: String },
    /// A worker of a fleet, if anybody does: its run can be looked at from here and not steered.
    Fleet { worker: String, repository: String },
    #[default]
    Nobody,
}

/// Everything there is to show of a run while it lasts, and afterwards.
#[derive(Debug, Default, Serialize)]
pub struct LiveRun {
    pub run_id: String,
    /// The state that follows from the journal so far.
    #[serde(skip)]
    pub run: Run,
    pub driven: Driven,
    pub now: u64,
    /// The journal is still being read for the first time.
    pub catching_up: bool,
    pub agents: Vec<LiveAgent>,
    pub findings: Vec<LiveFinding>,
    pub cycles: Vec<LiveCycle>,
    pub decisions: VecDeque<LiveDecision>,
    /// What runs like this one took, if enough of them are known.
    pub usual: Option<UsualTime>,
    #[serde(skip)]
    work: WorkClock,
    #[serde(skip)]
    running: BTreeMap<Seq, usize>,
    #[serde(skip)]
    starts: BTreeMap<Seq, AgentStart>,
}

/// One start of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LiveAgent {
    pub seq: Seq,
    pub cycle: u32,
    pub phase: Phase,
    pub archetype: String,
    /// Which start of the archetype in this cycle, from 1; 0 if it was skipped.
    pub attempt: u32,
    /// `Guardian reviewing...`
    pub doing: String,
    pub since: u64,
    /// What it printed last.
    pub live_output: String,
    pub ended: Option<(Tone, String)>,
    pub tokens: Option<Tokens>,
    pub cost: Option<Money>,
    pub artifact: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LiveFinding {
    pub cycle: u32,
    pub source: String,
    pub severity: Severity,
    /// What it was before its evidence did not hold.
    pub downgraded: Option<Severity>,
    pub place: String,
    pub category: String,
    pub description: String,
    pub resolved: bool,
    /// Which of its reviewer's findings.
    #[serde(skip)]
    index: u32,
    /// The file its location names, as convergence compares it: without code marks and line number.
    #[serde(skip)]
    pub file: String,
    #[serde(skip)]
    pub line: u32,
    /// The finding it became at the end of its cycle, where that is known.
    #[serde(skip)]
    tracked: String,
}

/// How a cycle ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LiveCycle {
    pub number: u32,
    pub counts: [u32; 3],
    /// Millionths.
    pub score: Option<u32>,
    pub words: String,
}

/// A decision with its rule, or something the program did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LiveDecision {
    pub seq: Seq,
    pub phase: Phase,
    pub rule: String,
    pub text: String,
    pub tone: Tone,
}

impl LiveRun {
    pub fn new(run_id: &str, driven: Driven) -> LiveRun {
        LiveRun { run_id: run_id.to_owned(), driven, ..LiveRun::default() }
    }

    /// Takes in the next line of the journal.
    pub fn take(&mut self, entry: &Entry) {
        self.run.apply(entry);
        self.work.take(entry);
        self.note_agent(entry);
        self.note_review(entry);
        self.note_decision(entry);
    }

    /// What a running agent printed last.
    pub fn heard(&mut self, order: Seq, text: &str) {
        if let Some(agent) = self.running.get(&order).and_then(|at| self.agents.get_mut(*at)) {
            agent.live_output = bounded(text);
        }
    }

    fn note_agent(&mut self, entry: &Entry) {
        if let Some(start) = entry.event.body::<AgentStart>() {
            self.agent_started(entry, start);
        }
        if let Some(skipped) = entry.event.body::<AgentSkipped>() {
            let tone = if skipped.failed { Tone::Caution } else { Tone::Plain };
            let mut agent = self.agent(entry, &skipped.archetype);
            agent.doing = view::capital(&bounded(&skipped.archetype));
            agent.ended = Some((tone, format!("skipped: {}", bounded(&skipped.reason))));
            self.agents.push(agent);
        }
        let Some(order) = entry.event.answers() else { return };
        let Some(start) = self.starts.remove(&order) else { return };
        self.agent_ended(entry, order, &start);
    }

    fn agent(&self, entry: &Entry, archetype: &str) -> LiveAgent {
        LiveAgent {
            seq: entry.seq,
            cycle: self.run.number().max(1),
            phase: entry.phase,
            archetype: bounded(archetype),
            attempt: 0,
            doing: String::new(),
            since: entry.at,
            live_output: String::new(),
            ended: None,
            tokens: None,
            cost: None,
            artifact: None,
        }
    }

    fn agent_started(&mut self, entry: &Entry, start: &AgentStart) {
        let mut agent = self.agent(entry, &start.archetype);
        agent.attempt = start.attempt;
        agent.doing = bounded(&view::doing(start));
        self.running.insert(entry.seq, self.agents.len());
        self.starts.insert(entry.seq, start.clone());
        self.agents.push(agent);
    }

    fn agent_ended(&mut self, entry: &Entry, order: Seq, start: &AgentStart) {
        let line = view::line(&self.run, entry, Some(start));
        let Some(agent) = self.running.remove(&order).and_then(|at| self.agents.get_mut(at)) else { return };
        agent.ended =
            Some(line.map_or((Tone::Plain, String::new()), |line| (line.tone, bounded(&line.outcome))));
        if let Some(AgentComplete { tokens, estimated_cost_usd, artifacts, .. }) = entry.event.body() {
            agent.tokens = *tokens;
            agent.cost = *estimated_cost_usd;
            agent.artifact = artifacts.first().cloned();
        }
    }

    fn note_review(&mut self, entry: &Entry) {
        if let Some(boundary) = entry.event.body::<CycleBoundary>() {
            self.cycle_ended(boundary);
        }
        let Topic::Review(line) = entry.event.topic() else { return };
        match line {
            ReviewLine::ReviewVerdict(verdict) => self.reviewed(verdict),
            ReviewLine::EvidenceDowngrade(downgrade) => self.downgraded(downgrade),
            ReviewLine::FindingRaised(raised) => self.raised(&raised.finding),
            ReviewLine::ReviewOpened(_) | ReviewLine::EvidenceStart(_) | ReviewLine::EvidenceDone(_) => {}
        }
    }

    /// A reviewer that was started again has given another answer instead.
    fn reviewed(&mut self, verdict: &ReviewVerdict) {
        let cycle = self.run.number();
        let source = bounded(&verdict.archetype);
        let begins = self.findings.iter().rposition(|found| found.cycle != cycle).map_or(0, |at| at + 1);
        let of_cycle = self.findings.split_off(begins);
        self.findings.extend(of_cycle.into_iter().filter(|found| found.source != source));
        let answered = self.run.cycle().and_then(|cycle| cycle.review(&verdict.archetype));
        let answered = answered.map_or(&[][..], |review| &review.findings);
        let mut found = Vec::new();
        for (at, finding) in verdict.findings.iter().enumerate() {
            let FindingLine { location, severity, category, description, .. } = finding;
            // The answer has the file as it was looked up; an answer that is gone leaves what was written.
            let same = answered.get(at).filter(|same| same.location == *location);
            let (file, line) = same.map_or_else(|| place(location), |same| (same.file.clone(), same.line));
            found.push(LiveFinding {
                cycle,
                source: source.clone(),
                severity: *severity,
                downgraded: None,
                place: shown_place(location, &file, line),
                category: bounded(category),
                description: bounded(description),
                resolved: false,
                index: u32::try_from(at).unwrap_or(u32::MAX),
                file: bounded(&file),
                line,
                tracked: String::new(),
            });
        }
        self.findings.extend(found);
    }

    fn downgraded(&mut self, downgrade: &EvidenceDowngrade) {
        let cycle = self.run.number();
        let source = bounded(&downgrade.archetype);
        let same = |found: &&mut LiveFinding| {
            found.cycle == cycle && found.source == source && found.index == downgrade.index
        };
        if let Some(found) = self.findings.iter_mut().rev().find(same) {
            found.downgraded = Some(downgrade.from);
            found.severity = downgrade.to;
        }
    }

    fn raised(&mut self, finding: &Finding) {
        self.findings.push(LiveFinding {
            cycle: self.run.number(),
            source: bounded(&finding.source),
            severity: finding.severity,
            downgraded: None,
            place: shown_place(&finding.location, &finding.file, finding.line),
            category: bounded(&finding.category),
            description: bounded(&finding.description),
            resolved: false,
            index: u32::MAX,
            file: bounded(&finding.file),
            line: finding.line,
            tracked: String::new(),
        });
    }

    fn cycle_ended(&mut self, boundary: &CycleBoundary) {
        let trend = boundary.convergence.as_ref();
        for found in self.findings.iter_mut().filter(|found| found.cycle == boundary.cycle) {
            found.tracked = found.is_one_of(&boundary.open).map(|same| same.id.clone()).unwrap_or_default();
        }
        let gone = trend.map_or(&[][..], |trend| &trend.resolved_findings);
        for found in self.findings.iter_mut().filter(|found| found.cycle < boundary.cycle) {
            let is_gone = match found.tracked.as_str() {
                "" => found.is_one_of(gone).is_some(),
                id => gone.iter().any(|one| one.id == id),
            };
            found.resolved = found.resolved || is_gone;
        }
        let words = trend.map_or_else(String::new, |trend| {
            format!(
                "{}: {} resolved, {} new, {} persist",
                trend.status.name(),
                trend.resolved,
                trend.new,
                trend.persistent
            )
        });
        self.cycles.retain(|line| line.number != boundary.cycle);
        self.cycles.push(LiveCycle {
            number: boundary.cycle,
            counts: view::open_tally(boundary),
            score: trend.map(|trend| trend.score.0),
            words,
        });
    }

    /// Decisions with their rule, and between them what the program did itself.
    fn note_decision(&mut self, entry: &Entry) {
        let (seq, phase) = (entry.seq, entry.phase);
        let decision = if let Some(why) = view::why(entry) {
            let text = format!("{}: {}", bounded(&why.who), bounded(&why.decision));
            LiveDecision { seq, phase, rule: bounded(&why.rule), text, tone: Tone::Plain }
        } else if matches!(
            entry.event,
            Event::Decision(
                Decision::EvidenceDowngrade(_) | Decision::FindingRaised(_) | Decision::AgentSkipped(_)
            )
        ) {
            return;
        } else if let Some(line) = view::line(&self.run, entry, None) {
            let text = format!("{} -> {}", bounded(&line.doing), bounded(&line.outcome));
            LiveDecision { seq, phase, rule: String::new(), text, tone: line.tone }
        } else {
            return;
        };
        if self.decisions.len() == DECISIONS {
            self.decisions.pop_front();
        }
        self.decisions.push_back(decision);
    }

    pub fn is_running(&self, agent: &LiveAgent) -> bool {
        self.running.contains_key(&agent.seq)
    }

    /// Something on the screen moves by itself.
    pub fn moves(&self) -> bool {
        !self.running.is_empty() && self.driven != Driven::Nobody
    }

    /// Milliseconds since the run began; until its end, where it has one.
    pub fn elapsed(&self) -> u64 {
        let live = self.run.outcome.is_none() && self.driven != Driven::Nobody;
        let until = if live { self.now.max(self.run.last) } else { self.run.last };
        until.saturating_sub(self.run.began)
    }

    /// The time that something was done so far, beside what is usual; while the run is under way.
    pub fn against_usual(&self) -> Option<String> {
        let usual = self.usual.filter(|_| self.run.outcome.is_none() && self.driven != Driven::Nobody)?;
        Some(usual.against(self.work.worked_ms(self.now.max(self.run.last))))
    }

    /// The reviewer's artifact of a cycle.
    pub fn artifact_of(&self, cycle: u32, archetype: &str) -> Option<&LiveAgent> {
        let of = |agent: &&LiveAgent| {
            agent.cycle == cycle && agent.archetype == archetype && agent.artifact.is_some()
        };
        self.agents.iter().rev().find(of)
    }

    /// The two commits of the change: what landed, or else what the Maker last made.
    pub fn span(&self) -> Option<(String, String)> {
        let run = &self.run;
        let landed = run.landing.merged.as_ref().map(|merged| (merged.old.clone(), merged.commit.clone()));
        let made = || Some((run.request.as_ref()?.base.commit.clone(), run.work.as_ref()?.commit.clone()));
        landed.or_else(made)
    }
}

/// Text of others on one line of bounded length, through the filter.
pub fn bounded(text: &str) -> String {
    short_line(text, LONGEST)
}

impl LiveFinding {
    /// The one among these that it became: at the same file and of the same category, in the same words if possible,
    /// else the nearest. Advice is followed by nobody, so it is not taken for its neighbour.
    fn is_one_of<'a>(&self, tracked: &'a [Tracked]) -> Option<&'a Tracked> {
        let is_here =
            |one: &&Tracked| bounded(&one.file) == self.file && bounded(&one.category) == self.category;
        let said_so = |one: &&Tracked| {
            let mut words = one.also.iter().map(|remark| &remark.description).chain([&one.description]);
            words.any(|words| bounded(words) == self.description)
        };
        let here = || tracked.iter().filter(is_here);
        let nearest = || here().min_by_key(|one| one.line.abs_diff(self.line));
        here().find(said_so).or_else(|| nearest().filter(|_| self.severity > Severity::Info))
    }
}

/// `till.sh:8` of whatever the reviewer wrote; its words where they name no file.
fn shown_place(location: &str, file: &str, line: u32) -> String {
    match (file, line) {
        ("", _) => bounded(location),
        (file, 0) => bounded(file),
        (file, line) => bounded(&format!("{file}:{line}")),
    }
}
