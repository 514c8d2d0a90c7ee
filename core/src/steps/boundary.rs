//! Boundaries of policy that are asked about between steps: checkpoints, and findings that only grow (AF-150, CL-26).

use crate::event::{Conclusion, Hardness, PolicyCheckpoint, Stop};
use crate::model::{Reason, counted};
use crate::projections::view::seconds;
use crate::run::Run;

/// The share of the budget above which a checkpoint lets nothing new begin (CL-13).
const SPENT_PERCENT: u32 = 80;

/// AF-150. Time is the time agents worked, as the log has it: a replay comes to the same (D-13).
pub(crate) fn checkpoint(run: &Run) -> Option<Conclusion> {
    let policy = &run.policy().boundaries;
    let corrections = &run.corrections;
    let finished = run.finished_cycles().saturating_sub(corrections.cycles_at_checkpoint);
    let why = if corrections.worked_ms >= policy.checkpoint_ms {
        format!("{} of work since the last checkpoint", seconds(corrections.worked_ms))
    } else if finished >= policy.checkpoint_cycles && !run.rules().cycles_are_parts() {
        format!("{} since the last checkpoint", counted(finished, "cycle"))
    } else {
        return None;
    };
    let counts = findings_by_cycle(run);
    let (first, last) = (counts.first().copied().unwrap_or(0), counts.last().copied().unwrap_or(0));
    let percent = run.budget_percent();
    let stops = if percent.is_some_and(|percent| percent > SPENT_PERCENT) {
        Some(format!("{}% of the budget is spent at a checkpoint", percent.unwrap_or(0)))
    } else if counts.len() > 1
        && last > first
        && run.policy().convergence.enabled
        && !run.rules().cycles_are_parts()
    {
        Some(format!("quality falls: {} above INFO at first, {last} now", counted(first, "finding")))
    } else {
        None
    };
    let stop = |detail| Stop { reason: Reason::Checkpoint, detail, breaks: Some(Hardness::Soft) };
    Some(
        PolicyCheckpoint {
            number: corrections.checkpoints + 1,
            why,
            worked_ms: corrections.worked_ms,
            spent_usd: run.spent,
            budget_percent: percent,
            first_findings: first,
            last_findings: last,
            stops: stops.map(stop),
        }
        .into(),
    )
}

/// More findings in each of the last cycles than in the one before it (CL-26).
pub(crate) fn rising(run: &Run, now: u32) -> Option<Stop> {
    let wanted = usize::try_from(run.policy().boundaries.rising_cycles).unwrap_or(usize::MAX);
    let mut counts = findings_by_cycle(run);
    counts.push(now);
    let from = counts.len().checked_sub(wanted.saturating_add(1))?;
    let last = counts.get(from..)?;
    let rises = last.windows(2).all(|pair| matches!(pair, [before, after] if after > before));
    let told: Vec<String> = last.iter().map(u32::to_string).collect();
    (wanted > 0 && rises).then(|| Stop {
        reason: Reason::FindingsRising,
        detail: format!("reviewers find more in every cycle: {}", told.join(", then ")),
        breaks: Some(Hardness::Soft),
    })
}

/// Findings above INFO at the end of each finished cycle.
fn findings_by_cycle(run: &Run) -> Vec<u32> {
    run.cycles
        .iter()
        .filter_map(|cycle| cycle.boundary.as_ref())
        .map(|boundary| boundary.critical + boundary.warning)
        .collect()
}
