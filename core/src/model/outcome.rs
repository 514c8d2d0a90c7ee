//! How a run ends: one reason, from which status and exit code follow (D-16).

use serde::{Deserialize, Serialize};

use super::named::named;

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RunStatus {
        Merged = "merged",
        AwaitingMerge = "awaiting_merge",
        AwaitingAnswer = "awaiting_answer",
        Stopped = "stopped",
        Failed = "failed",
        WiggumBreak = "wiggum_break",
        DryRun = "dry_run",
        /// A review is complete, whatever it found.
        Reviewed = "reviewed",
    }
}

named! {
    /// Why a run ended. The word is a promise to scripts.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Reason {
        Approved = "approved",
        DryRun = "dry_run",
        MaxCycles = "max_cycles",
        PersistentCritical = "persistent_critical",
        ConvergedStopDiverging = "converged_stop_diverging",
        StopStuck = "stop_stuck",
        StopIdenticalFindings = "stop_identical_findings",
        Oscillation = "oscillation",
        FindingsRising = "findings_rising",
        ShadowStrikes = "shadow_strikes",
        SystemShadow = "system_shadow",
        Checkpoint = "checkpoint",
        Budget = "budget",
        AgentFailures = "agent_failures",
        ProviderBusy = "provider_busy",
        NotSignedIn = "not_signed_in",
        UnparsableReview = "unparsable_review",
        RejectedWithoutEvidence = "rejected_without_evidence",
        NoChange = "no_change",
        TestsFailed = "tests_failed",
        TestCommandBroken = "test_command_broken",
        RedBase = "red_base",
        SetupFailed = "setup_failed",
        PostMergeTests = "post_merge_tests",
        MergeConflict = "merge_conflict",
        BaseMoved = "base_moved",
        DirtyTree = "dirty_tree",
        TargetBusy = "target_busy",
        SigningFailed = "signing_failed",
        NoTestCommand = "no_test_command",
        SecurityDowngraded = "security_downgraded",
        HookAbort = "hook_abort",
        NeedsContext = "needs_context",
        LowConfidence = "low_confidence",
        Blocked = "blocked",
        GitFault = "git_fault",
        /// A person took the landing back.
        Reverted = "reverted",
        Discarded = "discarded",
        FindingsOpen = "findings_open",
        LoopPaused = "loop_paused",
        LoopFailed = "loop_failed",
        LoopStopped = "loop_stopped",
        LoopEdited = "loop_edited",
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
            (_, Reason::TestsFailed | Reason::PostMergeTests | Reason::RedBase) => 13,
            (_, Reason::MaxCycles | Reason::UnparsableReview) => 14,
            (RunStatus::Failed, Reason::AgentFailures) => 30,
            (_, Reason::TestCommandBroken | Reason::SetupFailed | Reason::GitFault) => 30,
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
