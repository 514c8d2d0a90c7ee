//! How a run ends: one reason, from which status and exit code follow (D-16).

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Merged,
    AwaitingMerge,
    AwaitingAnswer,
    Stopped,
    Failed,
    WiggumBreak,
    DryRun,
    /// A review came to its end, whatever it found.
    Reviewed,
}

impl RunStatus {
    pub fn name(self) -> &'static str {
        match self {
            RunStatus::Merged => "merged",
            RunStatus::AwaitingMerge => "awaiting_merge",
            RunStatus::AwaitingAnswer => "awaiting_answer",
            RunStatus::Stopped => "stopped",
            RunStatus::Failed => "failed",
            RunStatus::WiggumBreak => "wiggum_break",
            RunStatus::DryRun => "dry_run",
            RunStatus::Reviewed => "reviewed",
        }
    }
}

/// Why a run ended. The word is a promise to scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Approved,
    DryRun,
    MaxCycles,
    PersistentCritical,
    ConvergedStopDiverging,
    StopStuck,
    StopIdenticalFindings,
    Oscillation,
    FindingsRising,
    ShadowStrikes,
    SystemShadow,
    Checkpoint,
    Budget,
    AgentFailures,
    ProviderBusy,
    NotSignedIn,
    UnparsableReview,
    NoChange,
    TestsFailed,
    TestCommandBroken,
    PostMergeTests,
    MergeConflict,
    BaseMoved,
    DirtyTree,
    TargetBusy,
    NoTestCommand,
    SecurityDowngraded,
    HookAbort,
    NeedsContext,
    LowConfidence,
    Blocked,
    GitFault,
    Discarded,
    FindingsOpen,
    LoopPaused,
    LoopFailed,
    LoopStopped,
    LoopEdited,
}

impl Reason {
    pub const ALL: [Reason; 38] = [
        Reason::Approved,
        Reason::DryRun,
        Reason::MaxCycles,
        Reason::PersistentCritical,
        Reason::ConvergedStopDiverging,
        Reason::StopStuck,
        Reason::StopIdenticalFindings,
        Reason::Oscillation,
        Reason::FindingsRising,
        Reason::ShadowStrikes,
        Reason::SystemShadow,
        Reason::Checkpoint,
        Reason::Budget,
        Reason::AgentFailures,
        Reason::ProviderBusy,
        Reason::NotSignedIn,
        Reason::UnparsableReview,
        Reason::NoChange,
        Reason::TestsFailed,
        Reason::TestCommandBroken,
        Reason::PostMergeTests,
        Reason::MergeConflict,
        Reason::BaseMoved,
        Reason::DirtyTree,
        Reason::TargetBusy,
        Reason::NoTestCommand,
        Reason::SecurityDowngraded,
        Reason::HookAbort,
        Reason::NeedsContext,
        Reason::LowConfidence,
        Reason::Blocked,
        Reason::GitFault,
        Reason::Discarded,
        Reason::FindingsOpen,
        Reason::LoopPaused,
        Reason::LoopFailed,
        Reason::LoopStopped,
        Reason::LoopEdited,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Reason::Approved => "approved",
            Reason::DryRun => "dry_run",
            Reason::MaxCycles => "max_cycles",
            Reason::PersistentCritical => "persistent_critical",
            Reason::ConvergedStopDiverging => "converged_stop_diverging",
            Reason::StopStuck => "stop_stuck",
            Reason::StopIdenticalFindings => "stop_identical_findings",
            Reason::Oscillation => "oscillation",
            Reason::FindingsRising => "findings_rising",
            Reason::ShadowStrikes => "shadow_strikes",
            Reason::SystemShadow => "system_shadow",
            Reason::Checkpoint => "checkpoint",
            Reason::Budget => "budget",
            Reason::AgentFailures => "agent_failures",
            Reason::ProviderBusy => "provider_busy",
            Reason::NotSignedIn => "not_signed_in",
            Reason::UnparsableReview => "unparsable_review",
            Reason::NoChange => "no_change",
            Reason::TestsFailed => "tests_failed",
            Reason::TestCommandBroken => "test_command_broken",
            Reason::PostMergeTests => "post_merge_tests",
            Reason::MergeConflict => "merge_conflict",
            Reason::BaseMoved => "base_moved",
            Reason::DirtyTree => "dirty_tree",
            Reason::TargetBusy => "target_busy",
            Reason::NoTestCommand => "no_test_command",
            Reason::SecurityDowngraded => "security_downgraded",
            Reason::HookAbort => "hook_abort",
            Reason::NeedsContext => "needs_context",
            Reason::LowConfidence => "low_confidence",
            Reason::Blocked => "blocked",
            Reason::GitFault => "git_fault",
            Reason::Discarded => "discarded",
            Reason::FindingsOpen => "findings_open",
            Reason::LoopPaused => "loop_paused",
            Reason::LoopFailed => "loop_failed",
            Reason::LoopStopped => "loop_stopped",
            Reason::LoopEdited => "loop_edited",
        }
    }
}

/// The end of a run, as recorded in its last line. A person may open it again: answer, continue, merge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub status: RunStatus,
    pub reason: Reason,
    /// One sentence for people, with the numbers.
    pub detail: String,
}

impl Outcome {
    /// D-16. The table is in `docs/rules/outcomes.md`.
    pub fn exit_code(&self) -> u8 {
        match (self.status, self.reason) {
            (RunStatus::Merged | RunStatus::DryRun | RunStatus::Reviewed, _) | (_, Reason::Discarded) => 0,
            (_, Reason::Budget) => 11,
            (_, Reason::MergeConflict | Reason::BaseMoved) => 12,
            (_, Reason::TestsFailed | Reason::PostMergeTests) => 13,
            (_, Reason::MaxCycles | Reason::UnparsableReview) => 14,
            (RunStatus::Failed, Reason::AgentFailures) => 30,
            (_, Reason::TestCommandBroken | Reason::GitFault) => 30,
            (_, Reason::ProviderBusy | Reason::NotSignedIn) => 31,
            (
                RunStatus::AwaitingMerge
                | RunStatus::AwaitingAnswer
                | RunStatus::Stopped
                | RunStatus::Failed
                | RunStatus::WiggumBreak,
                _,
            ) => 10,
        }
    }
}
