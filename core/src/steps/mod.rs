//! The steps that strategies share, in the order of the cycle: Plan, Do, Check, Act, and what can come between them.
//!
//! Nothing here knows a strategy. Where they differ, a step asks the rules of the one at hand.

pub(crate) mod accounts;
pub(crate) mod act;
pub(crate) mod boundary;
pub(crate) mod budget;
pub(crate) mod check;
pub(crate) mod land;
pub(crate) mod make;
pub(crate) mod plan;
pub(crate) mod preflight;
pub(crate) mod rejections;
pub(crate) mod send;
pub(crate) mod settle;
pub(crate) mod shadows;
pub(crate) mod system;
pub(crate) mod undo;

use crate::event::{AgentSkipped, Conclusion, DecisionPoint, PhaseTransition, ReviewVerdict, Share};
use crate::model::{AnswerBody, Phase, Severity, Status, Verdict};
use crate::rules::players;
use crate::run::{Cycle, Run};

pub(crate) use send::send;
pub(crate) use settle::{asks, finish, hook, line, stop};

/// What comes before the work of a phase: a landing that was agreed to, failures, shadows, questions, a checkpoint.
pub(crate) fn before_phase(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    if land::is_agreed(run) {
        return Some(land::land(run, cycle));
    }
    settle::failures(run, cycle)
        .or_else(|| shadows::consequence(run, cycle))
        .or_else(|| settle::statuses(run, cycle))
        .or_else(|| shadows::too_many(run, cycle))
        .or_else(|| boundary::checkpoint(run).map(|checkpoint| vec![checkpoint]))
}

/// The work of the phase at hand, for strategies that go through all four.
pub(crate) fn phase(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    before_phase(run, cycle).unwrap_or_else(|| match cycle.phase {
        Phase::Plan => plan::plan(run, cycle),
        Phase::Do => make::make(run, cycle),
        Phase::Check => check::check(run, cycle),
        Phase::Act => act::act(run, cycle),
    })
}

/// Judges every new answer: its shadow, the verdict of a review, concerns, a missing token.
pub(crate) fn judge(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let mut events = Vec::new();
    for (name, answered) in &cycle.answers {
        if let Some(seen) = shadows::look(run, cycle, name, answered) {
            return seen;
        }
        if let AnswerBody::Review(review) = &answered.answer.said
            && !cycle.verdicts.contains_key(name)
        {
            let critical = review.findings.iter().any(|finding| finding.severity == Severity::Critical);
            let verdict = match (review.verdict, critical) {
                (Some(Verdict::Approved), false) => Verdict::Approved,
                (Some(Verdict::Approved), true) | (Some(Verdict::Rejected) | None, _) => Verdict::Rejected,
            };
            let findings = review.findings.iter().map(line).collect();
            let same_model =
                run.author.as_ref().is_some_and(|author| players::same_model(author, &answered.author));
            events.push(ReviewVerdict { archetype: name.clone(), verdict, findings, same_model }.into());
        }
        match answered.answer.status {
            Status::DoneWithConcerns | Status::Unverified if cycle.noted.contains(name) => {}
            Status::DoneWithConcerns => {
                let input = answered.answer.remark.clone();
                events.push(point(name, "AF-040", input, "concerns noted, the run goes on".to_owned()));
            }
            Status::Unverified => {
                let input = "no final status token".to_owned();
                events.push(point(
                    name,
                    "D-02",
                    input,
                    "taken as DONE, unverified: no fast path on it".to_owned(),
                ));
            }
            Status::Done | Status::NeedsContext | Status::Blocked => {}
        }
    }
    events
}

pub(crate) fn enter(run: &Run, from: &str, cycle: u32, to: Phase) -> Conclusion {
    PhaseTransition { from: from.to_owned(), to, cycle, artifacts_so_far: run.artifacts() }.into()
}

/// On to the next phase of the same cycle.
pub(crate) fn onward(run: &Run, cycle: &Cycle, to: Phase) -> Vec<Conclusion> {
    vec![enter(run, cycle.phase.name(), cycle.number, to)]
}

/// A choice of the program, written down with its rule and what it looked at (AF-180).
pub(crate) fn point(archetype: &str, rule: &str, input: String, decision: String) -> Conclusion {
    sure_point(archetype, rule, input, decision, Share::ONE)
}

pub(crate) fn sure_point(
    archetype: &str,
    rule: &str,
    input: String,
    decision: String,
    confidence: Share,
) -> Conclusion {
    DecisionPoint { archetype: archetype.to_owned(), rule: rule.to_owned(), input, decision, confidence }
        .into()
}

pub(crate) fn skip(archetype: &str, reason: &str, failed: bool) -> Conclusion {
    AgentSkipped { archetype: archetype.to_owned(), reason: reason.to_owned(), failed }.into()
}
