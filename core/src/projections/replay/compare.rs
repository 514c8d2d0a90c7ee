//! Runs side by side: what each was, what its reviewers found, how findings developed, what it cost.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{CycleBoundary, Decision, Entry, Event, Order, Share, TrendStatus};
use crate::model::{Money, Outcome, Strategy, Verdict, Workflow};
use crate::run::Run;

use super::decision::ExplainedDecision;

/// One run, as a column of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    pub task: String,
    pub strategy: Strategy,
    pub workflow: Workflow,
    pub max_cycles: u32,
    /// Agent and tiers by archetype.
    pub agents: BTreeMap<String, BTreeSet<(String, &'static str)>>,
    pub attempts: u32,
    pub cycles: Vec<CycleSide>,
    pub fixes: u32,
    /// Archetype, shadow and what was done about it, in their order.
    pub shadows: Vec<(String, String, &'static str)>,
    pub cost: Money,
    /// From the first line to the last.
    pub took_ms: u64,
    /// `None`: not ended.
    pub outcome: Option<Outcome>,
}

/// One cycle of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CycleSide {
    pub number: u32,
    /// The last of each reviewer.
    pub verdicts: BTreeMap<String, Verdict>,
    /// Where the cycle ended.
    pub end: Option<ComparedCycle>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ComparedCycle {
    pub critical: u32,
    pub warning: u32,
    pub info: u32,
    pub new: u32,
    pub resolved: u32,
    pub persistent: u32,
    pub regressed: u32,
    /// From the second cycle on.
    pub trend: Option<(Share, TrendStatus)>,
}

pub fn side(log: &[Entry]) -> Side {
    let run = Run::replay(log);
    let request = run.request.as_ref();
    Side {
        task: request.map(|request| request.task.clone()).unwrap_or_default(),
        strategy: run.strategy(),
        workflow: run.current_workflow(),
        max_cycles: run.max_cycles,
        agents: agents(log),
        attempts: run.agents_total,
        cycles: cycles(log),
        fixes: run.fixes_total,
        shadows: shadows(log),
        cost: run.spent,
        took_ms: run.last.saturating_sub(run.began),
        outcome: run.outcome,
    }
}

fn agents(log: &[Entry]) -> BTreeMap<String, BTreeSet<(String, &'static str)>> {
    let mut agents: BTreeMap<String, BTreeSet<(String, &'static str)>> = BTreeMap::new();
    for entry in log {
        if let Event::Order(Order::AgentStart(start)) = &entry.event {
            let played = (start.agent.clone(), start.model.name());
            agents.entry(start.archetype.clone()).or_default().insert(played);
        }
    }
    agents
}

fn cycles(log: &[Entry]) -> Vec<CycleSide> {
    let mut cycles: Vec<CycleSide> = Vec::new();
    for entry in log {
        let Event::Decision(decision) = &entry.event else { continue };
        if let Decision::PhaseTransition(transition) = decision
            && cycles.last().is_none_or(|last| last.number != transition.cycle)
        {
            cycles.push(CycleSide { number: transition.cycle, ..CycleSide::default() });
        }
        let Some(cycle) = cycles.last_mut() else { continue };
        if let Decision::ReviewVerdict(review) = decision {
            cycle.verdicts.insert(review.archetype.clone(), review.verdict);
        }
        if let Decision::CycleBoundary(boundary) = decision {
            cycle.end = Some(end(boundary));
        }
    }
    cycles
}

fn end(boundary: &CycleBoundary) -> ComparedCycle {
    let counts = ComparedCycle {
        critical: boundary.critical,
        warning: boundary.warning,
        info: boundary.info,
        ..ComparedCycle::default()
    };
    match &boundary.convergence {
        Some(trend) => ComparedCycle {
            new: trend.new,
            resolved: trend.resolved,
            persistent: trend.persistent,
            regressed: trend.regressed,
            trend: Some((trend.score, trend.status)),
            ..counts
        },
        None => ComparedCycle { new: u32::try_from(boundary.open.len()).unwrap_or(u32::MAX), ..counts },
    }
}

fn shadows(log: &[Entry]) -> Vec<(String, String, &'static str)> {
    let mut shadows = Vec::new();
    for entry in log {
        if let Event::Decision(Decision::ShadowDetected(seen)) = &entry.event {
            shadows.push((seen.archetype.clone(), seen.shadow.clone(), seen.action.name()));
        }
    }
    shadows
}

/// The first decision that one run took and the other did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parting<'a> {
    pub one: Option<&'a ExplainedDecision>,
    pub other: Option<&'a ExplainedDecision>,
}

/// Where two runs part. Reviewers come back in any order: within a phase the order of decisions means nothing.
pub fn parting<'a>(one: &'a [ExplainedDecision], other: &'a [ExplainedDecision]) -> Option<Parting<'a>> {
    let phases = |decisions: &'a [ExplainedDecision]| -> Vec<&'a [ExplainedDecision]> {
        decisions.chunk_by(|a, b| (a.cycle, a.phase) == (b.cycle, b.phase)).collect()
    };
    let (mut ones, mut others) = (phases(one).into_iter(), phases(other).into_iter());
    loop {
        let (mine, theirs) = match (ones.next(), others.next()) {
            (None, None) => return None,
            (mine, theirs) => (mine.unwrap_or_default(), theirs.unwrap_or_default()),
        };
        let (only_one, only_other) = (first_missing(mine, theirs), first_missing(theirs, mine));
        if only_one.is_some() || only_other.is_some() {
            return Some(Parting { one: only_one, other: only_other });
        }
    }
}

fn first_missing<'a>(
    some: &'a [ExplainedDecision],
    others: &[ExplainedDecision],
) -> Option<&'a ExplainedDecision> {
    let mut left: Vec<_> = others.iter().map(key).collect();
    some.iter().find(|decision| match left.iter().position(|other| *other == key(decision)) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    })
}

fn key(decision: &ExplainedDecision) -> (u32, &str, &str, &str) {
    (decision.cycle, &decision.rule, &decision.who, &decision.decision)
}
