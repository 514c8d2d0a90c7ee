//! For programs: everything, in a shape that is promised (`docs/schemas/review.schema.json`).

use archeflow_core::model::{Severity, Verdict};
use archeflow_core::strategies::review::{Frame, KnownFinding, Listed, Reviewer};
use serde_json::{Value, json};

use super::{Sheet, words};

/// Raised when a reader of the shape before could misread the one after.
const SCHEMA: u32 = 1;

pub(super) fn draw(sheet: &Sheet<'_>) -> Value {
    let reviewed = sheet.reviewed;
    json!({
        "schema": SCHEMA,
        "tool": { "name": "archeflow", "version": sheet.version },
        "run_id": sheet.run_id,
        "subject": { "kind": reviewed.subject.kind, "name": reviewed.subject.name, "key": reviewed.subject.key },
        "title": reviewed.title,
        "base": reviewed.base,
        "commit": reviewed.commit,
        "change": { "files": reviewed.files, "added": reviewed.added, "deleted": reviewed.deleted },
        "coverage": {
            "whole": reviewed.is_whole(),
            "parts": reviewed.parts.len(),
            "parts_done": reviewed.parts_done,
            "summarised": reviewed.summarised,
            "gaps": words::gaps(reviewed),
            "plan": filled(sheet.plan),
        },
        "verify": reviewed.verify,
        "compared": reviewed.compared,
        "since_last": sheet.since_last,
        "counts": counts(sheet),
        "unanswered_rejections": reviewed.unanswered(),
        "reviewers": reviewed.reviewers.iter().map(reviewer).collect::<Vec<_>>(),
        "findings": sheet.shown().map(|(found, frame)| finding(found, frame)).collect::<Vec<_>>(),
        "resolved": reviewed.resolved.iter().map(known).collect::<Vec<_>>(),
        "outcome": reviewed.outcome.as_ref().map(|outcome| json!({
            "status": outcome.status.name(), "reason": outcome.reason.name(), "detail": outcome.detail,
        })),
    })
}

/// Of all findings, also of those a sheet of news does not list.
fn counts(sheet: &Sheet<'_>) -> Value {
    let reviewed = sheet.reviewed;
    let standing =
        |word: &str| reviewed.findings.iter().filter(|found| words::standing(found) == word).count();
    json!({
        "critical": reviewed.count(Severity::Critical),
        "warning": reviewed.count(Severity::Warning),
        "info": reviewed.count(Severity::Info),
        "advice": standing("advice"),
        "accepted": standing("accepted"),
        "refuted": standing("refuted"),
        "persistent": sheet.persistent(),
        "resolved": reviewed.resolved.len(),
    })
}

fn reviewer(reviewer: &Reviewer) -> Value {
    let player = reviewer.player.as_ref();
    json!({
        "archetype": reviewer.archetype,
        "verdict": reviewer.verdict.map(Verdict::name),
        "findings": reviewer.findings,
        "missed_parts": reviewer.missed,
        "missed_why": filled(&reviewer.missed_why),
        "agent": reviewer.agent,
        "vendor": player.and_then(|player| filled(&player.vendor)),
        "model": player.and_then(|player| filled(&player.model)),
        "client_version": player.and_then(|player| filled(&player.version)),
        "tokens": {
            "input": reviewer.tokens.input, "output": reviewer.tokens.output,
            "cache_read": reviewer.tokens.cache_read, "cache_write": reviewer.tokens.cache_write,
        },
        "cost_usd": reviewer.cost,
    })
}

fn finding(found: &Listed, frame: Option<&Frame>) -> Value {
    json!({
        "fingerprint": found.fingerprint,
        "rule": found.rule,
        "category": found.category,
        "severity": found.severity.name(),
        "said": found.said.name(),
        "standing": words::standing(found),
        "why": words::why(found),
        "since": found.since.map(words::since),
        "trial": found.trial.as_ref().map(|tried| json!({
            "result": tried.trial.name(), "detail": tried.detail, "command": tried.command, "tail": tried.tail,
        })),
        "file": filled(&found.file),
        "line": (found.line > 0).then_some(found.line),
        "location": found.location,
        "description": found.description,
        "fix": filled(&found.fix),
        "evidence": filled(&found.evidence),
        "sources": found.sources,
        "also": found.also.iter().map(|remark| json!({
            "source": remark.source, "description": remark.description,
        })).collect::<Vec<_>>(),
        "frame": frame.map(|frame| json!({ "first": frame.first, "lines": frame.lines })),
    })
}

fn known(known: &KnownFinding) -> Value {
    json!({
        "fingerprint": known.fingerprint,
        "rule": known.rule,
        "severity": known.severity.name(),
        "file": filled(&known.file),
        "line": (known.line > 0).then_some(known.line),
        "description": known.description,
        "sources": known.sources,
    })
}

/// What is empty is not there.
fn filled(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
