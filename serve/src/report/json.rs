//! The report for machines.

use archeflow_core::model::Outcome;
use archeflow_core::projections::story::{Ended, Step, Story};
use serde_json::{Value, json};

use super::diff::Diff;

pub fn draw(story: &Story, diff: &Diff) -> Value {
    let overview = &story.overview;
    let outcome = overview.outcome.as_ref();
    let files = diff.files.iter().map(|file| {
        json!({ "path": file.path, "from": file.from, "what": file.word, "added": file.added, "deleted": file.deleted })
    });
    json!({
        "run_id": story.run_id,
        "task": overview.task,
        "status": story.status(),
        "reason": story.reason(),
        "exit_code": outcome.map(Outcome::exit_code),
        "detail": outcome.map(|outcome| outcome.detail.clone()),
        "fixes_total": overview.fixes,
        "workflow": overview.workflow,
        "strategy": overview.strategy,
        "team": overview.team,
        "agents": overview.agents,
        "models": overview.models,
        "duration_ms": story.took_ms(),
        "worked_ms": overview.worked_ms,
        "cost_usd": overview.spent,
        "branch": overview.branch,
        "target": overview.target,
        "base": overview.base,
        "merged_oid": overview.landed.as_ref().map(|landed| landed.commit.clone()),
        "reverted_oid": overview.landed.as_ref().and_then(|landed| landed.reverted.clone()),
        "events": overview.events,
        "cycles": story.cycles.iter().map(cycle).collect::<Vec<_>>(),
        "findings": story.lives.iter().map(|life| json!({
            "id": life.id, "file": life.file, "line": life.line, "category": life.category, "severity": life.severity,
            "source": life.source, "description": life.description, "also": life.also, "fix": life.fix,
            "states": life.states.iter().map(|state| state.name()).collect::<Vec<_>>(), "open": life.is_open(),
            "regression_of": life.regression_of,
        })).collect::<Vec<_>>(),
        "set_aside": story.set_aside.iter().map(|aside| json!({ "seq": aside.seq, "cycle": aside.cycle, "finding": aside.what })).collect::<Vec<_>>(),
        "raised": story.raised.iter().map(|raised| json!({ "seq": raised.seq, "cycle": raised.cycle, "finding": raised.finding })).collect::<Vec<_>>(),
        "costs": story.costs.iter().map(|cost| json!({
            "archetype": cost.archetype, "model": cost.model, "attempts": cost.attempts, "cost_usd": cost.cost,
            "unknown": cost.unknown, "tokens": cost.tokens, "worked_ms": cost.worked_ms,
        })).collect::<Vec<_>>(),
        "decisions": story.decisions.iter().map(|choice| json!({
            "seq": choice.seq, "cycle": choice.cycle, "phase": choice.phase, "rule": choice.why.rule,
            "who": choice.why.who, "input": choice.why.input, "decision": choice.why.decision,
            "confidence": choice.confidence, "alternatives": choice.alternatives, "rationale": choice.rationale,
        })).collect::<Vec<_>>(),
        "corrections": story.corrections.iter().map(|seen| json!({
            "seq": seen.seq, "cycle": seen.cycle, "archetype": seen.archetype, "shadow": seen.shadow,
            "action": seen.action, "seen": seen.seen, "detail": seen.detail,
        })).collect::<Vec<_>>(),
        "questions": story.questions.iter().map(|question| json!({
            "seq": question.seq, "question": question.text, "answer": question.answer,
        })).collect::<Vec<_>>(),
        "break_page": story.page,
        "change": { "files": files.collect::<Vec<_>>(), "files_left_out": diff.files_left_out, "missing": diff.missing },
        "planned_missing": story.planned_missing,
        "change_notes": story.change_notes,
        "artifacts": story.artifacts.iter().map(|kept| json!({ "cycle": kept.cycle, "name": kept.name, "by": kept.by, "seq": kept.seq })).collect::<Vec<_>>(),
        "next": story.next.iter().map(|(command, _)| command).collect::<Vec<_>>(),
    })
}

fn cycle(cycle: &archeflow_core::projections::story::CycleStory) -> Value {
    let end = cycle.end.as_ref().map(|end| {
        json!({
            "seq": end.seq, "critical": end.critical, "warning": end.warning, "info": end.info,
            "next_action": end.next, "exit_condition": end.exit_condition, "stop": end.stop, "passed_over": end.passed_over, "convergence": end.trend,
        })
    });
    json!({ "cycle": cycle.number, "steps": cycle.steps.iter().map(step).collect::<Vec<_>>(), "end": end })
}

fn step(step: &Step) -> Value {
    let (result, reason) = match &step.result {
        Ended::Out => ("out", None),
        Ended::Done => ("done", None),
        Ended::Verdict(verdict) => (verdict.name(), None),
        Ended::Failed(reason) => ("failed", Some(reason)),
        Ended::Skipped(reason) => ("skipped", Some(reason)),
    };
    json!({
        "phase": step.phase, "archetype": step.archetype, "result": result, "reason": reason,
        "attempts": step.attempts.len(), "duration_ms": step.took_ms(),
        "critical": step.found[0], "warning": step.found[1], "info": step.found[2],
    })
}
