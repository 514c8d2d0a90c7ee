//! Which report belongs to which order, and what a run's end exits with.

use archeflow_core::event::{Event, Order, Report, RunComplete};
use archeflow_core::model::{Reason, RunStatus};

#[expect(clippy::unnested_or_patterns, reason = "one pair to a line")]
pub(super) fn fits(order: &Event, report: &Event) -> bool {
    matches!(
        (order, report),
        (Event::Order(Order::AgentStart(_)), Event::Report(Report::AgentComplete(_)))
            | (Event::Order(Order::AgentStart(_)), Event::Report(Report::AgentFailed(_)))
            | (Event::Order(Order::AgentStart(_)), Event::Report(Report::AgentTimeout(_)))
            | (Event::Order(Order::AgentStart(_)), Event::Report(Report::AgentLost(_)))
            | (Event::Order(Order::PreflightStart(_)), Event::Report(Report::PreflightDone(_)))
            | (Event::Order(Order::MergeStart(_)), Event::Report(Report::MergeBuilt(_)))
            | (Event::Order(Order::MergeStart(_)), Event::Report(Report::RunMerged(_)))
            | (Event::Order(Order::TestsStart(_)), Event::Report(Report::TestsDone(_)))
            | (Event::Order(Order::HookStart(_)), Event::Report(Report::HookDone(_)))
            | (Event::Order(Order::MergeIntent(_)), Event::Report(Report::RunMerged(_)))
            | (Event::Order(Order::MergeIntent(_)), Event::Report(Report::MergeRefused(_)))
            | (Event::Order(Order::RevertStart(_)), Event::Report(Report::RevertBuilt(_)))
            | (Event::Order(Order::RevertIntent(_)), Event::Report(Report::RunReverted(_)))
            | (Event::Order(Order::RevertIntent(_)), Event::Report(Report::RevertRefused(_)))
            | (Event::Order(Order::QuestionAsked(_)), Event::Report(Report::QuestionAnswered(_)))
            | (Event::Order(Order::QuestionAsked(_)), Event::Report(Report::QuestionDeferred(_)))
    )
}

/// D-16, written down a second time.
pub(super) fn exit_code(complete: &RunComplete) -> u8 {
    if matches!(complete.status, RunStatus::Merged | RunStatus::DryRun) {
        return 0;
    }
    match complete.reason {
        Reason::Discarded => 0,
        Reason::MergeConflict | Reason::BaseMoved => 12,
        Reason::TestsFailed | Reason::PostMergeTests | Reason::RedBase => 13,
        Reason::MaxCycles | Reason::UnparsableReview => 14,
        Reason::TestCommandBroken | Reason::SetupFailed | Reason::GitFault => 30,
        Reason::AgentFailures if complete.status == RunStatus::Failed => 30,
        Reason::ProviderBusy | Reason::NotSignedIn => 31,
        Reason::Budget => 11,
        _ => 10,
    }
}
