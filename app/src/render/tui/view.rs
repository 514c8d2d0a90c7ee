//! What the screen shows, as plain data: a fold over the journal and over what agents murmur. Texts of others are
//! bounded here and cleaned where they are drawn.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use archeflow_core::event::{
    AgentComplete, AgentStart, CycleBoundary, Decision, Entry, Event, EvidenceDowngrade, FindingLine, Order,
    Report, ReviewVerdict, Tokens,
};
use archeflow_core::model::{Finding, Money, Phase, Seq, Severity};
use archeflow_core::run::Run;
use archeflow_core::view::{self, Tone};

use super::page::Page;
use crate::render::text::{cut, safe_line};

/// No text of others is kept longer than this; nobody reads more of it in one row.
const LONGEST: usize = 600;
/// Choices and deeds that are kept; the journal has all of them.
const CHOICES: usize = 2_000;

/// Who drives the run that is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) enum Driven {
    /// This process.
    Here,
    /// Another one, by its words.
    Elsewhere { pid: u32, host: String },
    #[default]
    Nobody,
}

#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) run_id: String,
    pub(crate) run: Run,
    pub(crate) driven: Driven,
    /// A question was put to the person at this terminal.
    pub(crate) asked: bool,
    pub(crate) now: u64,
    /// Turns while agents are out.
    pub(crate) frame: usize,
    pub(crate) colour: bool,
    /// Columns and rows.
    pub(crate) size: (u16, u16),
    pub(crate) agents: Vec<Agent>,
    pub(crate) findings: Vec<Found>,
    pub(crate) cycles: Vec<CycleLine>,
    pub(crate) choices: VecDeque<Chosen>,
    /// Shown for a while from then on.
    pub(crate) warning: Option<(u64, String)>,
    /// The lines are still being read for the first time.
    pub(crate) catching_up: bool,
    pub(crate) pane: Pane,
    /// The row each pane stands on; at the end of the list while there is none.
    pub(crate) at: [Option<usize>; Pane::ALL.len()],
    pub(crate) over: Over,
    out: BTreeMap<Seq, usize>,
    starts: BTreeMap<Seq, AgentStart>,
}

/// One start of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Agent {
    pub(crate) seq: Seq,
    pub(crate) cycle: u32,
    pub(crate) phase: Phase,
    pub(crate) archetype: String,
    /// `Guardian reviewing...`
    pub(crate) doing: String,
    pub(crate) since: u64,
    /// What it did last, in its own words.
    pub(crate) murmur: String,
    pub(crate) ended: Option<(Tone, String)>,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) cost: Option<Money>,
    pub(crate) artifact: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) cycle: u32,
    pub(crate) source: String,
    pub(crate) severity: Severity,
    /// What it was before its evidence did not hold.
    pub(crate) downgraded: Option<Severity>,
    pub(crate) place: String,
    pub(crate) category: String,
    pub(crate) description: String,
    pub(crate) resolved: bool,
    /// Which of its reviewer's findings.
    index: u32,
}

/// How a cycle ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CycleLine {
    pub(crate) number: u32,
    pub(crate) counts: [u32; 3],
    /// Millionths.
    pub(crate) score: Option<u32>,
    pub(crate) words: String,
}

/// A decision with its rule, or something the program did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) seq: Seq,
    pub(crate) phase: Phase,
    pub(crate) rule: String,
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pane {
    #[default]
    Agents,
    Findings,
    Decisions,
}

impl Pane {
    pub(crate) const ALL: [Pane; 3] = [Pane::Agents, Pane::Findings, Pane::Decisions];

    pub(crate) fn index(self) -> usize {
        match self {
            Pane::Agents => 0,
            Pane::Findings => 1,
            Pane::Decisions => 2,
        }
    }
}

/// What lies over the panes.
#[derive(Debug, Default)]
pub(crate) enum Over {
    #[default]
    Nothing,
    Page(Page),
    Answer(Answering),
    /// A question about the view itself.
    Choose(Choice),
    /// Something to know; any key takes it away.
    Note(Vec<String>),
}

/// An answer in the making. The last row is for words of one's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answering {
    pub(crate) choices: &'static [&'static str],
    pub(crate) chosen: usize,
    pub(crate) text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Stop the run?
    Stop,
    /// Leave the view of a run this process drives?
    Leave,
}

impl View {
    pub(crate) fn new(run_id: &str, driven: Driven, colour: bool) -> View {
        View { run_id: run_id.to_owned(), driven, colour, size: (80, 24), ..View::default() }
    }

    /// Takes in the next line of the journal.
    pub(crate) fn wrote(&mut self, entry: &Entry) {
        self.run.apply(entry);
        self.note_agent(entry);
        self.note_review(entry);
        self.note_choice(entry);
    }

    /// What an agent that is out does now.
    pub(crate) fn murmur(&mut self, order: Seq, text: &str) {
        if let Some(agent) = self.out.get(&order).and_then(|at| self.agents.get_mut(*at)) {
            agent.murmur = bounded(text);
        }
    }

    fn note_agent(&mut self, entry: &Entry) {
        if let Event::Order(Order::AgentStart(start)) = &entry.event {
            self.sent(entry, start);
        }
        if let Event::Decision(Decision::AgentSkipped(skipped)) = &entry.event {
            let tone = if skipped.failed { Tone::Caution } else { Tone::Plain };
            let mut agent = self.agent(entry, &skipped.archetype);
            agent.doing = view::capital(&bounded(&skipped.archetype));
            agent.ended = Some((tone, format!("skipped: {}", bounded(&skipped.reason))));
            self.agents.push(agent);
        }
        let Some(order) = entry.event.answers() else { return };
        let Some(start) = self.starts.remove(&order) else { return };
        self.came_back(entry, order, &start);
    }

    fn agent(&self, entry: &Entry, archetype: &str) -> Agent {
        Agent {
            seq: entry.seq,
            cycle: self.run.number().max(1),
            phase: entry.phase,
            archetype: bounded(archetype),
            doing: String::new(),
            since: entry.at,
            murmur: String::new(),
            ended: None,
            tokens: None,
            cost: None,
            artifact: None,
        }
    }

    fn sent(&mut self, entry: &Entry, start: &AgentStart) {
        let mut agent = self.agent(entry, &start.archetype);
        agent.doing = bounded(&view::doing(start));
        self.out.insert(entry.seq, self.agents.len());
        self.starts.insert(entry.seq, start.clone());
        self.agents.push(agent);
    }

    fn came_back(&mut self, entry: &Entry, order: Seq, start: &AgentStart) {
        let line = view::line(&self.run, entry, Some(start));
        let Some(agent) = self.out.remove(&order).and_then(|at| self.agents.get_mut(at)) else { return };
        agent.ended =
            Some(line.map_or((Tone::Plain, String::new()), |line| (line.tone, bounded(&line.outcome))));
        if let Event::Report(Report::AgentComplete(complete)) = &entry.event {
            let AgentComplete { tokens, estimated_cost_usd, artifacts, .. } = &**complete;
            agent.tokens = *tokens;
            agent.cost = *estimated_cost_usd;
            agent.artifact = artifacts.first().cloned();
        }
    }

    fn note_review(&mut self, entry: &Entry) {
        let Event::Decision(decision) = &entry.event else { return };
        if let Decision::ReviewVerdict(verdict) = decision {
            self.reviewed(verdict);
        } else if let Decision::EvidenceDowngrade(downgrade) = decision {
            self.downgraded(downgrade);
        } else if let Decision::FindingRaised(raised) = decision {
            self.raised(&raised.finding);
        } else if let Decision::CycleBoundary(boundary) = decision {
            self.cycle_ended(boundary);
        }
    }

    /// A reviewer that was sent again has said something else instead.
    fn reviewed(&mut self, verdict: &ReviewVerdict) {
        let cycle = self.run.number();
        let source = bounded(&verdict.archetype);
        let begins = self.findings.iter().rposition(|found| found.cycle != cycle).map_or(0, |at| at + 1);
        let of_cycle = self.findings.split_off(begins);
        self.findings.extend(of_cycle.into_iter().filter(|found| found.source != source));
        for (finding, index) in verdict.findings.iter().zip(0..) {
            let FindingLine { location, severity, category, description, .. } = finding;
            self.findings.push(Found {
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
        let same = |found: &&mut Found| {
            found.cycle == cycle && found.source == source && found.index == downgrade.index
        };
        if let Some(found) = self.findings.iter_mut().rev().find(same) {
            found.downgraded = Some(downgrade.from);
            found.severity = downgrade.to;
        }
    }

    fn raised(&mut self, finding: &Finding) {
        self.findings.push(Found {
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
        self.cycles.push(CycleLine {
            number: boundary.cycle,
            counts: [boundary.critical, boundary.warning, boundary.info],
            score: trend.map(|trend| trend.score.0),
            words,
        });
    }

    /// Choices say their rule; what the program did itself stands among them.
    fn note_choice(&mut self, entry: &Entry) {
        let (seq, phase) = (entry.seq, entry.phase);
        let chosen = if let Some(why) = view::why(entry) {
            let text = format!("{}: {}", bounded(&why.who), bounded(&why.decision));
            Chosen { seq, phase, rule: bounded(&why.rule), text, tone: Tone::Plain }
        } else if matches!(
            entry.event,
            Event::Decision(
                Decision::EvidenceDowngrade(_) | Decision::FindingRaised(_) | Decision::AgentSkipped(_)
            )
        ) {
            return;
        } else if let Some(line) = view::line(&self.run, entry, None) {
            let text = format!("{} -> {}", bounded(&line.doing), bounded(&line.outcome));
            Chosen { seq, phase, rule: String::new(), text, tone: line.tone }
        } else {
            return;
        };
        if self.choices.len() == CHOICES {
            self.choices.pop_front();
        }
        self.choices.push_back(chosen);
    }

    pub(crate) fn rows(&self, pane: Pane) -> usize {
        match pane {
            Pane::Agents => self.agents.len(),
            Pane::Findings => self.findings.len(),
            Pane::Decisions => self.choices.len(),
        }
    }

    /// The row a pane stands on: the last, unless somebody went elsewhere.
    pub(crate) fn row(&self, pane: Pane) -> usize {
        let last = self.rows(pane).saturating_sub(1);
        self.at[pane.index()].map_or(last, |at| at.min(last))
    }

    pub(crate) fn is_out(&self, agent: &Agent) -> bool {
        self.out.contains_key(&agent.seq)
    }

    /// Something on the screen moves by itself.
    pub(crate) fn moves(&self) -> bool {
        !self.out.is_empty() && self.driven != Driven::Nobody
    }

    /// Milliseconds since the run began; until its end, where it has one.
    pub(crate) fn elapsed(&self) -> u64 {
        let live = self.run.outcome.is_none() && self.driven != Driven::Nobody;
        let until = if live { self.now.max(self.run.last) } else { self.run.last };
        until.saturating_sub(self.run.began)
    }

    /// The reviewer's artifact of a cycle.
    pub(crate) fn artifact_of(&self, cycle: u32, archetype: &str) -> Option<&Agent> {
        let of =
            |agent: &&Agent| agent.cycle == cycle && agent.archetype == archetype && agent.artifact.is_some();
        self.agents.iter().rev().find(of)
    }

    /// The commits between which the change lies: what landed, or else what the Maker last made.
    pub(crate) fn span(&self) -> Option<(String, String)> {
        let run = &self.run;
        let landed = run.landing.merged.as_ref().map(|merged| (merged.old.clone(), merged.commit.clone()));
        let made = || Some((run.request.as_ref()?.base.commit.clone(), run.work.as_ref()?.commit.clone()));
        landed.or_else(made)
    }
}

/// Text of others on one line of bounded length, through the filter.
pub(crate) fn bounded(text: &str) -> String {
    let some: String = text.chars().take(LONGEST * 4).collect();
    cut(&safe_line(&some), LONGEST)
}

/// `till.sh` of `till.sh:8`.
fn file_of(place: &str) -> &str {
    match place.rsplit_once(':') {
        Some((file, line)) if line.chars().all(|c| c.is_ascii_digit() || c == '-') => file,
        Some(_) | None => place,
    }
}
