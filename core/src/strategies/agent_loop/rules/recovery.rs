//! What follows when something goes wrong in a step (PJ-46, PJ-50..PJ-52, PC-03).

use crate::model::LoopPolicy;
use crate::model::named::named;

named! {
    /// What went wrong.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum LoopFault {
        ReadTimeout = "read_timeout",
        Network = "network",
        TestCrash = "test_crash",
        FileNotFound = "file_not_found",
        Unparsable = "unparsable",
        ForbiddenCommand = "forbidden_command",
        Unrecoverable = "unrecoverable",
        WriteFailed = "write_failed",
        UnclearInstructions = "unclear_instructions",
        PartialStep = "partial_step",
        LimitExceeded = "limit_exceeded",
    }
}

impl LoopFault {
    pub fn parse(word: &str) -> Option<LoopFault> {
        LoopFault::ALL.into_iter().find(|trouble| trouble.name() == word)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    Retry,
    /// After a pause of N milliseconds.
    RetryAfter(u64),
    /// With some of the tests.
    RetryWithFewer,
    /// FAIL, and the Planner adjusts. What was done is kept as a partial result.
    ToPlanner,
    /// FAIL, and a person decides.
    ToHuman,
    /// Reported, and started again once; the next agent can't work without it.
    AskAgain,
}

impl Remedy {
    pub fn describe(self) -> String {
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
