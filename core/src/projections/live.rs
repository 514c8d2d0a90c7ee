//! A run as it happens, as plain data: a fold over the journal and over what its agents print. A terminal, a web page
//! and a protocol server draw the same value. Texts of others are bounded and filtered here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Serialize;

use crate::event::{
    AgentComplete, AgentSkipped, AgentStart, CycleBoundary, Decision, Entry, Event, EvidenceDowngrade,
    FindingLine, ReviewLine, ReviewVerdict, Tokens, Topic,
};
use crate::model::{Finding, Money, Phase, Seq, Severity};
use crate::projections::view::{self, Tone};
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
        for (finding, index) in verdict.findings.iter().zip(0..) {
            let FindingLine { location, severity, category, description, .. } = finding;
            self.findings.push(LiveFinding {
                cycle,
                source: source.clone(),
                severity: *severity,
                downgraded: None,
                place: bounded(location),
                category: bounded(category),
                description: bounded(description),
                resolved: false,
                index,
            });
        }
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
            place: bounded(&finding.location),
            category: bounded(&finding.category),
            description: bounded(&finding.description),
            resolved: false,
            index: u32::MAX,
        });
    }

    fn cycle_ended(&mut self, boundary: &CycleBoundary) {
        let trend = boundary.convergence.as_ref();
        let gone = trend.iter().flat_map(|trend| &trend.resolved_findings);
        let gone: BTreeSet<(String, String)> =
            gone.map(|found| (bounded(&found.file), bounded(&found.category))).collect();
        for found in self.findings.iter_mut().filter(|found| found.cycle < boundary.cycle) {
            let key = (file_of(&found.place).to_owned(), found.category.clone());
            found.resolved = found.resolved || gone.contains(&key);
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
            counts: [boundary.critical, boundary.warning, boundary.info],
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

/// `till.sh` of `till.sh:8`.
fn file_of(place: &str) -> &str {
    match place.rsplit_once(':') {
        Some((file, line)) if line.chars().all(|c| c.is_ascii_digit() || c == '-') => file,
        Some(_) | None => place,
    }
}
