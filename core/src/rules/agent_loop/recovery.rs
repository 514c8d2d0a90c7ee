//! What follows when something goes wrong in a step (PJ-46, PJ-50..PJ-52, PC-03).

use crate::model::LoopPolicy;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoopFault {
    ReadTimeout,
    Network,
    TestCrash,
    FileNotFound,
    Unparsable,
    ForbiddenCommand,
    Unrecoverable,
    WriteFailed,
    UnclearInstructions,
    PartialStep,
    LimitExceeded,
}

impl LoopFault {
    pub const ALL: [LoopFault; 11] = [
        LoopFault::ReadTimeout,
        LoopFault::Network,
        LoopFault::TestCrash,
        LoopFault::FileNotFound,
        LoopFault::Unparsable,
        LoopFault::ForbiddenCommand,
        LoopFault::Unrecoverable,
        LoopFault::WriteFailed,
        LoopFault::UnclearInstructions,
        LoopFault::PartialStep,
        LoopFault::LimitExceeded,
    ];

    pub fn name(self) -> &'static str {
        match self {
            LoopFault::ReadTimeout => "read_timeout",
            LoopFault::Network => "network",
            LoopFault::TestCrash => "test_crash",
            LoopFault::FileNotFound => "file_not_found",
            LoopFault::Unparsable => "unparsable",
            LoopFault::ForbiddenCommand => "forbidden_command",
            LoopFault::Unrecoverable => "unrecoverable",
            LoopFault::WriteFailed => "write_failed",
            LoopFault::UnclearInstructions => "unclear_instructions",
            LoopFault::PartialStep => "partial_step",
            LoopFault::LimitExceeded => "limit_exceeded",
        }
    }

    pub fn parse(word: &str) -> Option<LoopFault> {
        LoopFault::ALL.into_iter().find(|trouble| trouble.name() == word)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    Retry,
    /// After a pause of so many milliseconds.
    RetryAfter(u64),
    /// With some of the tests.
    RetryWithFewer,
    /// FAIL, and the Planner adjusts. What was done is kept as a partial result.
    ToPlanner,
    /// FAIL, and a person decides.
    ToHuman,
    /// Told, and sent again once; the next agent has nothing to go on without it.
    AskAgain,
}

impl Remedy {
    pub fn said(self) -> String {
        match self {
            Remedy::Retry => "retry".to_owned(),
            Remedy::RetryAfter(ms) => format!("retry after {ms} ms"),
            Remedy::RetryWithFewer => "retry with fewer tests".to_owned(),
            Remedy::ToPlanner => "fail to Planner".to_owned(),
            Remedy::ToHuman => "fail to Human".to_owned(),
            Remedy::AskAgain => "ask again".to_owned(),
        }
    }
}

/// What to do, given how often it was tried again for the same trouble in this step.
pub fn remedy(trouble: LoopFault, retries: u32, policy: &LoopPolicy) -> Remedy {
    match (trouble, retries) {
        (LoopFault::ReadTimeout, 0) => Remedy::Retry,
        (LoopFault::Network, n) if n < policy.network_retries => {
            Remedy::RetryAfter(policy.first_pause_ms.saturating_mul(1 << n.min(16)))
        }
        (LoopFault::TestCrash, 0) => Remedy::RetryWithFewer,
        (LoopFault::Unparsable, n) if n < policy.unread_retries => Remedy::AskAgain,
        (LoopFault::ForbiddenCommand | LoopFault::Unrecoverable | LoopFault::Unparsable, _) => {
            Remedy::ToHuman
        }
        (
            LoopFault::ReadTimeout
            | LoopFault::Network
            | LoopFault::TestCrash
            | LoopFault::FileNotFound
            | LoopFault::WriteFailed
            | LoopFault::UnclearInstructions
            | LoopFault::PartialStep
            | LoopFault::LimitExceeded,
            _,
        ) => Remedy::ToPlanner,
    }
}
