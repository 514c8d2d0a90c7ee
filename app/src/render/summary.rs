//! The end of a run: for people on standard error, for machines on standard output.

use archeflow_core::model::{Outcome, RunStatus};
use archeflow_core::projections::view;
use archeflow_core::projections::view::preflight::failing_command;
use archeflow_core::rules::players;
use archeflow_core::run::Run;
use archeflow_host::clock;
use serde_json::json;

use super::costs;
use super::text::{Paint, pad, safe_line, width};

/// I12: the cause, what was kept and where, and the next command.
pub(crate) fn print(run_id: &str, run: &Run, outcome: &Outcome, took_ms: u64) {
    let paint = Paint::for_stderr();
    let cycles = match run.number() {
        1 => "1 cycle".to_owned(),
        n => format!("{n} cycles"),
    };
    let word = match outcome.status {
        RunStatus::Merged => "Complete",
        RunStatus::DryRun => "Planned",
        RunStatus::Reviewed => "Reviewed",
        RunStatus::AwaitingMerge | RunStatus::AwaitingAnswer => "Waiting for you",
        RunStatus::Stopped | RunStatus::Failed | RunStatus::WiggumBreak => "Stopped",
    };
    let title = format!("━━━ {word}: {}, {cycles} ", view::seconds(took_ms));
    let fill = "━".repeat(width().min(100).saturating_sub(title.chars().count()).max(3));
    tell!("\n{}", paint.bold(&format!("{title}{fill}")));
    tell!("Artifacts: .archeflow/artifacts/{}/", run_id);
    tell!("Journal:   .archeflow/events/{}.jsonl", run_id);
    tell!("Report:    archeflow report {}", run_id);
    if let (Some(request), Some(_), None) = (&run.request, &run.work, &run.review) {
        tell!("Branch:    {}", safe_line(&request.branch));
    }
    if let Some(failing) = failing_command(run) {
        tell!("\nFails: {}", safe_line(failing.command));
        failing.lines.iter().for_each(|line| tell!("  {}", safe_line(line)));
        if !failing.log.is_empty() {
            tell!("  Log: .archeflow/artifacts/{run_id}/{}", safe_line(failing.log));
        }
        if !failing.remedy.is_empty() {
            tell!("{}", failing.remedy);
        }
    }
    let unresolved = run.complete.as_ref().map(|complete| complete.unresolved.as_slice()).unwrap_or_default();
    if !unresolved.is_empty() {
        tell!("\nOpen findings:");
        for finding in unresolved {
            tell!(
                "  {} {} {} ({}): {}",
                pad(finding.severity.name(), 8),
                safe_line(&finding.location),
                safe_line(&finding.category),
                safe_line(&finding.source),
                safe_line(&finding.description)
            );
        }
    }
    let same = judged_by_author(run);
    if !same.is_empty() {
        tell!("\nReviewed by the model or agent that wrote it: {}", safe_line(&same.join(", ")));
    }
    if let Some(line) = parked(run) {
        tell!("\n{}", paint.tone(view::Tone::Caution, &line));
    }
    if let Some(line) = reverted(run) {
        tell!("\n{}", paint.tone(view::Tone::Caution, &line));
    }
    let costs = costs::table(run);
    if !costs.is_empty() {
        tell!("\n{}", costs.join("\n"));
    }
    if let Some((_, question)) = run.question() {
        tell!("\nQuestion: {}", safe_line(&question.question));
        for detail in &question.details {
            tell!("  {}", safe_line(detail));
        }
    }
    let steps = view::next_steps(run_id, run, outcome);
    if !steps.is_empty() {
        tell!("\nNext:");
        let widest = steps.iter().map(|(command, _)| command.chars().count()).max().unwrap_or(0);
        for (command, meaning) in &steps {
            tell!("  {}  {}", paint.accent(&pad(&safe_line(command), widest)), paint.dim(meaning));
        }
    }
    let tone = view::outcome_tone(outcome.status, view::gravest_open(run));
    let made = run.work.is_some() && run.review.is_none();
    let kept = if made { "work kept on its branch" } else { "nothing was changed" };
    let kept = if outcome.status == RunStatus::Merged { String::new() } else { format!("; {kept}") };
    let next = steps.first().map(|(command, _)| format!("; next: {command}")).unwrap_or_default();
    let last =
        format!("{} ({}): {}{kept}{next}", outcome.status.name(), outcome.reason.name(), outcome.detail);
    tell!("\n{}", paint.tone(tone, &safe_line(&last)));
}

/// When a parked run can be resumed.
pub(crate) fn parked(run: &Run) -> Option<String> {
    let reopens_at = run.complete.as_ref()?.reopens_at?;
    Some(format!("Parked:    its account serves again at {}", when(reopens_at)))
}

/// When the landing was taken back, and by which commit.
pub(crate) fn reverted(run: &Run) -> Option<String> {
    let commit = run.landing.reverted.as_ref()?;
    Some(format!("Reverted:  {} by {commit}", when(run.landing.reverted_at)))
}

/// `2026-04-08 14:30:00 UTC (in 2h 10m)`.
pub(crate) fn when(ms: u64) -> String {
    let date = clock::written(ms).replace('T', " ").replace('Z', " UTC");
    match ms.checked_sub(clock::now()) {
        Some(left) if left > 0 => format!("{date} (in {})", view::seconds(left.div_ceil(1_000) * 1_000)),
        Some(_) | None => date,
    }
}

/// The archetypes of the present cycle whose review came from the Maker's own model.
fn judged_by_author(run: &Run) -> Vec<String> {
    let (Some(author), Some(cycle)) = (&run.author, run.cycle()) else { return Vec::new() };
    let judges = cycle.answers.iter().filter(|(name, _)| cycle.review(name).is_some());
    let same = judges.filter(|(_, answered)| players::same_model(author, &answered.author));
    same.map(|(name, _)| name.clone()).collect()
}

/// The object of INTERFACES section 1.
pub(crate) fn json(
    root: &std::path::Path,
    run_id: &str,
    run: &Run,
    outcome: Option<&Outcome>,
    code: u8,
    signal: Option<i32>,
) -> serde_json::Value {
    let unresolved = run.complete.as_ref().map(|complete| complete.unresolved.as_slice()).unwrap_or_default();
    let question = run.question().map(|(seq, question)| {
        json!({ "seq": seq, "kind": question.kind, "question": question.question, "details": question.details })
    });
    let status = match (outcome, signal) {
        (Some(outcome), _) => outcome.status.name(),
        (None, Some(_)) => "stopped",
        (None, None) => "running",
    };
    let reason = match (outcome, signal) {
        (Some(outcome), _) => outcome.reason.name(),
        (None, Some(_)) => "interrupted",
        (None, None) => "running",
    };
    let steps: Vec<String> = outcome
        .map(|outcome| view::next_steps(run_id, run, outcome))
        .unwrap_or_default()
        .into_iter()
        .map(|(c, _)| c)
        .collect();
    json!({
        "run_id": run_id,
        "status": status,
        "exit_code": code,
        "reason": reason,
        "detail": outcome.map(|outcome| outcome.detail.clone()),
        "cycles": run.number(),
        "branch": run.request.as_ref().map(|request| request.branch.clone()),
        "reopens_at": run.complete.as_ref().and_then(|complete| complete.reopens_at).map(clock::written),
        "same_model_reviews": judged_by_author(run),
        "merged_oid": run.complete.as_ref().and_then(|complete| complete.merged_oid.clone()),
        "reverted_oid": run.landing.reverted.clone(),
        "reverted_at": run.landing.reverted.as_ref().map(|_| clock::written(run.landing.reverted_at)),
        "artifacts": root.join(format!(".archeflow/artifacts/{run_id}")).to_string_lossy(),
        "events": root.join(format!(".archeflow/events/{run_id}.jsonl")).to_string_lossy(),
        "cost_usd": run.spent,
        "costs": costs::json(run),
        "fixes_total": run.fixes_total,
        "unresolved": unresolved,
        "planned_missing": run.corrections.unmade,
        "change_notes": run.corrections.change_notes,
        "question": question,
        "next": steps,
        "workflow": run.current_workflow(),
        "strategy": run.strategy(),
    })
}
