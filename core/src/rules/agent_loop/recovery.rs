//! What follows when something goes wrong in a step (PJ-46, PJ-50..PJ-52, PC-03).

use crate::model::LoopPolicy;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
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

impl Trouble {
    pub const ALL: [Trouble; 11] = [
        Trouble::ReadTimeout,
        Trouble::Network,
        Trouble::TestCrash,
        Trouble::FileNotFound,
        Trouble::Unparsable,
        Trouble::ForbiddenCommand,
        Trouble::Unrecoverable,
        Trouble::WriteFailed,
        Trouble::UnclearInstructions,
        Trouble::PartialStep,
        Trouble::LimitExceeded,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Trouble::ReadTimeout => "read_timeout",
            Trouble::Network => "network",
            Trouble::TestCrash => "test_crash",
            Trouble::FileNotFound => "file_not_found",
            Trouble::Unparsable => "unparsable",
            Trouble::ForbiddenCommand => "forbidden_command",
            Trouble::Unrecoverable => "unrecoverable",
            Trouble::WriteFailed => "write_failed",
            Trouble::UnclearInstructions => "unclear_instructions",
            Trouble::PartialStep => "partial_step",
            Trouble::LimitExceeded => "limit_exceeded",
        }
    }

    pub fn parse(word: &str) -> Option<Trouble> {
        Trouble::ALL.into_iter().find(|trouble| trouble.name() == word)
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
pub fn remedy(trouble: Trouble, retries: u32, policy: &LoopPolicy) -> Remedy {
    match (trouble, retries) {
        (Trouble::ReadTimeout, 0) => Remedy::Retry,
        (Trouble::Network, n) if n < policy.network_retries => {
            Remedy::RetryAfter(policy.first_pause_ms.saturating_mul(1 << n.min(16)))
        }
        (Trouble::TestCrash, 0) => Remedy::RetryWithFewer,
        (Trouble::Unparsable, n) if n < policy.unread_retries => Remedy::AskAgain,
        (Trouble::ForbiddenCommand | Trouble::Unrecoverable | Trouble::Unparsable, _) => Remedy::ToHuman,
        (
            Trouble::ReadTimeout
            | Trouble::Network
            | Trouble::TestCrash
            | Trouble::FileNotFound
            | Trouble::WriteFailed
            | Trouble::UnclearInstructions
            | Trouble::PartialStep
            | Trouble::LimitExceeded,
            _,
        ) => Remedy::ToPlanner,
    }
}
