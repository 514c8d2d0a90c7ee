//! Detected shadows and their escalation (AF-138, CL-03).
//!
//! Correct, replace, escalate: the agent is first told its shadow, then replaced by a new session, then a person
//! decides. Until then the answer does not count.

use std::collections::BTreeSet;

use crate::event::{Conclusion, Hardness, QuestionAsked, QuestionKind, ShadowDetected, Stop};
use crate::model::{
    AnswerBody, Finding, Outcome, PROGRAM, Phase, Reason, Role, RunStatus, SYSTEM, Severity, Shadow,
    ShadowAction, Sighting, Status, Verdict, counted,
};
use crate::persona::phase;
use crate::rules::shadows::{self, Facts};
use crate::rules::{convergence, evidence};
use crate::run::{Answered, Cycle, Key, Run};

use super::settle::{send_again, stop};
use super::{asks, point};

/// The shadow of an answer that was not judged yet (AF-158: after each agent).
pub(crate) fn look(run: &Run, cycle: &Cycle, name: &str, answered: &Answered) -> Option<Vec<Conclusion>> {
    let policy = &run.policy().shadows;
    let set = run.request.as_ref()?.shadows.get(name).filter(|_| policy.enabled)?;
    if phase(answered.role) < cycle.phase {
        return None;
    }
    let asks = matches!(answered.answer.status, Status::NeedsContext | Status::Blocked);
    let judged = cycle.verdicts.contains_key(name) || cycle.is_passed(answered.start_seq);
    if answered.is_imported() || asks || judged {
        return None;
    }
    let (task, plan) = (run.task(), run.plan());
    let facts = Facts { task: &task, proposal: plan.as_ref(), ..facts(run, cycle, name, answered) };
    let (shadow, sightings) = shadows::first(set, &facts, policy)?;
    Some(strike(run, cycle, name, shadow, answered, sightings))
}

fn facts<'a>(run: &'a Run, cycle: &Cycle, name: &str, answered: &'a Answered) -> Facts<'a> {
    let approves = match &answered.answer.said {
        AnswerBody::Review(review) => review.verdict == Some(Verdict::Approved),
        AnswerBody::Prose | AnswerBody::Proposal(_) => false,
    };
    let plans =
        matches!(answered.answer.said, AnswerBody::Proposal(_)) || cycle.phase == crate::model::Phase::Plan;
    Facts {
        answer: &answered.answer,
        change: run.work.as_ref().filter(|_| !plans),
        proposal: None,
        items: cycle.proposal().map_or(0, |plan| u32::try_from(plan.files.len()).unwrap_or(u32::MAX)),
        task: "",
        domain: run.request.as_ref().map(|request| request.domain).unwrap_or_default(),
        reviews_without_approval: match run.policy().shadows.paranoid.by_evidence {
            true => run.unfounded_rejections(name) + 1,
            false if approves => 0,
            false => run.reviews_without_approval(name),
        },
    }
}

fn strike(
    run: &Run,
    cycle: &Cycle,
    name: &str,
    shadow: Shadow,
    answered: &Answered,
    sightings: Vec<Sighting>,
) -> Vec<Conclusion> {
    let key: Key = (name.to_owned(), shadow.name().to_owned());
    let (count, count_in_cycle, in_a_row) = run.struck_once_more(&key);
    let action = step(run, &key);
    let seen: Vec<&str> = sightings.iter().map(|sighting| sighting.detail.as_str()).collect();
    let seen = seen.join("; ");
    let fell = format!("the {name} fell into its shadow ({})", shadow.name().replace('_', " "));
    let detail = match action {
        ShadowAction::Correct | ShadowAction::Replace => {
            shadows::correction(shadow, &sightings, action == ShadowAction::Replace)
        }
        ShadowAction::Note if run.rules().takes_shadowed_answers() => {
            format!("{fell} {}; its answer is taken as it is: {seen}", counted(count, "time"))
        }
        ShadowAction::Note => format!("{fell}, which a person lets pass: {seen}"),
        ShadowAction::Escalate => {
            format!("{fell} {} in this run, and correcting did not help: {seen}", counted(count, "time"))
        }
        ShadowAction::Break => {
            let in_cycle = count_in_cycle >= run.policy().shadows.strikes_in_cycle;
            let (often, within) =
                if in_cycle { (count_in_cycle, "cycle") } else { (in_a_row, "run, in a row") };
            format!("{fell} {} in this {within}: {seen}", counted(often, "time"))
        }
    };
    let breaks = (action == ShadowAction::Break).then(|| Stop {
        reason: Reason::ShadowStrikes,
        detail: detail.clone(),
        breaks: Some(Hardness::Hard),
    });
    let (trigger, measured, threshold) = sightings
        .first()
        .map(|first| (first.trigger.clone(), first.measured, first.threshold))
        .unwrap_or_default();
    let mut events = vec![
        ShadowDetected {
            archetype: name.to_owned(),
            shadow: shadow.name().to_owned(),
            trigger,
            measured,
            threshold,
            action,
            cycle: cycle.number,
            count,
            count_in_cycle,
            sightings,
            detail,
            looked_at: answered.start_seq,
            target: String::new(),
            stop: breaks,
        }
        .into(),
    ];
    events.extend(many(run, cycle, &key));
    events
}

/// CL-03. A shadow that a person accepted is only noted; there is no fourth strike.
///
/// Where nobody acts upon an answer there is nothing to stop: an agent that can't be corrected is heard, with its shadow
/// written down beside it, and its findings need evidence like all others.
fn step(run: &Run, key: &Key) -> ShadowAction {
    let policy = &run.policy().shadows;
    let (count, in_cycle, in_a_row) = run.struck_once_more(key);
    if run.rules().takes_shadowed_answers() && count > 2 {
        return ShadowAction::Note;
    }
    if run.corrections.tolerated.contains(key) {
        ShadowAction::Note
    } else if in_cycle >= policy.strikes_in_cycle
        || (policy.consecutive_break && in_a_row >= policy.strikes_in_cycle)
    {
        ShadowAction::Break
    } else {
        match count {
            1 => ShadowAction::Correct,
            2 => ShadowAction::Replace,
            _ => ShadowAction::Escalate,
        }
    }
}

/// Several archetypes in their shadows at once say something about the task, not about them.
fn many(run: &Run, cycle: &Cycle, key: &Key) -> Option<Conclusion> {
    let policy = &run.policy().shadows;
    let known: BTreeSet<&Key> = cycle.strikes.keys().filter(|(archetype, _)| archetype != SYSTEM).collect();
    let before = u32::try_from(known.len()).unwrap_or(u32::MAX);
    if known.contains(key) || before + 1 != policy.distinct_in_cycle {
        return None;
    }
    let input = format!("{} different shadows in cycle {}", policy.distinct_in_cycle, cycle.number);
    let decision = "told to the user: the task may need to be broken down";
    Some(point(PROGRAM, "CL-03", input, decision.to_owned()))
}

/// So many different shadows in one cycle, where the configuration makes that a break.
pub(crate) fn too_many(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    let policy = &run.policy().shadows;
    let known = cycle.strikes.keys().filter(|(archetype, _)| archetype != SYSTEM).count();
    if !policy.distinct_breaks
        || u64::try_from(known).unwrap_or(u64::MAX) < u64::from(policy.distinct_in_cycle)
    {
        return None;
    }
    let detail = format!("{known} archetypes fell into their shadows in cycle {}", cycle.number);
    Some(stop(run, &Stop { reason: Reason::ShadowStrikes, detail, breaks: Some(Hardness::Hard) }))
}

/// The consequence of a strike, once all parallel reviewers have ended: they are one step, and the order in which they
/// end decides nothing (D-13).
pub(crate) fn consequence(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    let corrections = &run.corrections;
    if corrections.due.is_empty() && corrections.escalated.is_empty() {
        return None;
    }
    let beside = run.unheard_reviewers();
    if !beside.is_empty() {
        return Some(beside.iter().map(|seat| send_again(run, cycle, seat)).collect());
    }
    // The gravest first; among equals the order of names.
    let due = corrections.due.values().rev().max_by_key(|due| due.breaks);
    let escalated = corrections.escalated.iter().next();
    due.map(|due| stop(run, &weightiest(run, cycle, due)))
        .or_else(|| escalated.map(|(key, detail)| escalate(run, key, detail)))
}

/// J-03: a reviewer that is replaced or given up in the end may have been right all the time. Where its findings, or those of the
/// others, go to and fro, do not move, or are open with evidence, that is the reason of the end, and the strike is named beside it.
fn weightiest(run: &Run, cycle: &Cycle, due: &Stop) -> Stop {
    let strikes = due.reason == Reason::ShadowStrikes && due.breaks.is_some();
    let weighs = run.policy().shadows.weightier_cause && run.policy().convergence.enabled;
    if !strikes || !weighs || cycle.phase < Phase::Check {
        return due.clone();
    }
    let mut shown = cycle.reviews_with_shadowed();
    shown.retain(|finding| finding.severity > Severity::Info && evidence::is_verified(finding));
    let policy = &run.policy().convergence;
    let (open, trend) = convergence::follow(convergence::merge(&shown, policy), &run.history(), policy);
    let persistent =
        open.iter().find(|found| found.cycles_open >= 2 && found.severity >= policy.persistent_floor);
    let cause = trend
        .and_then(|trend| convergence::stop(&trend, &run.earlier_trends(), policy))
        .map(|why| (why.reason, why.detail))
        .or_else(|| {
            let found = persistent?;
            let detail = format!("{} is open for more than one cycle: {}", found.id, found.description);
            Some((Reason::PersistentCritical, detail))
        })
        .or_else(|| {
            // Of an agent in its shadow, only a finding in the change that shows something stands: a place alone does
            // not tell it from a complaint.
            let changed = run.work.as_ref().map(shadows::Places::of_change).unwrap_or_default();
            let struck = |finding: &&Finding| cycle.strikes.keys().any(|(name, _)| *name == finding.source);
            let proven = |finding: &&Finding| !finding.evidence.trim().is_empty() && changed.touch(finding);
            let stands = |finding: &&Finding| !struck(finding) || proven(finding);
            let stands: Vec<Finding> = shown.iter().filter(stands).cloned().collect();
            let left = u32::try_from(convergence::merge(&stands, policy).len()).unwrap_or(u32::MAX);
            let detail = || format!("{} with evidence left", counted(left, "finding"));
            (left > 0).then(|| (Reason::FindingsOpen, detail()))
        });
    match cause {
        Some((reason, detail)) => {
            Stop { reason, detail: format!("{detail}; {}", due.detail), breaks: due.breaks }
        }
        None => due.clone(),
    }
}

/// The third step: a person decides. An unattended run stops with the question open.
fn escalate(run: &Run, (archetype, _): &Key, detail: &str) -> Vec<Conclusion> {
    let system = archetype == SYSTEM;
    let reviewer = run.seats().iter().any(|seat| seat.archetype == *archetype && seat.role == Role::Reviewer);
    let reason = if system { Reason::SystemShadow } else { Reason::ShadowStrikes };
    if !run.attended() && !system {
        let stopped = Stop { reason, detail: detail.to_owned(), breaks: Some(Hardness::Soft) };
        return stop(run, &run.cycle().map_or(stopped.clone(), |cycle| weightiest(run, cycle, &stopped)));
    }
    let mut choices = vec!["'accept' takes the answer as it is"];
    if system {
        choices = vec!["'go on' lets it pass"];
    } else if reviewer {
        choices.push("'skip' goes on without this reviewer");
    }
    choices.push("'stop' ends the run");
    choices.push(if system {
        "anything else is told to everybody from now on"
    } else {
        "anything else is told to whoever tries once more"
    });
    let question = QuestionAsked {
        kind: QuestionKind::Shadow,
        archetype: if system { String::new() } else { archetype.clone() },
        question: format!("{detail}. What now? {}.", choices.join("; ")),
        details: Vec::new(),
        unanswered: Outcome { status: RunStatus::AwaitingAnswer, reason, detail: detail.to_owned() },
    };
    asks(run, question, RunStatus::Stopped, reason)
}
