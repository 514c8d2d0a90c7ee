//! The result of the Judge's checks (PJ-43..PJ-45). They are really executed; a PASS of the Judge does not override
//! them.

use super::limits::Scope;
use crate::model::LoopPolicy;

/// How one check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    Passed,
    Failed,
    /// It failed before the step as well, in the same places: that is shown and held against nobody (L-03).
    FailedBefore,
    /// The project has none; that is noted.
    Missing,
}

impl Check {
    pub fn parse(word: &str) -> Option<Check> {
        match word {
            "passed" => Some(Check::Passed),
            "failed" => Some(Check::Failed),
            "failed_before" => Some(Check::FailedBefore),
            "missing" => Some(Check::Missing),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Battery {
    pub tests: Check,
    pub linter: Check,
    pub security: Check,
    pub scope: Scope,
    /// The Judge's own verdict; `None` where that is unclear.
    pub judge: Option<bool>,
}

/// Why a step is not sufficient; empty for a PASS. Security comes first: it also blocks the commit.
pub fn objections(battery: Battery, policy: &LoopPolicy) -> Vec<&'static str> {
    let mut against = Vec::new();
    match battery.security {
        Check::Failed => against.push("security issue, nothing is committed"),
        // The scan is the program's own: where it did not run, nothing was checked.
        Check::Missing => against.push("security was not looked at"),
        Check::Passed | Check::FailedBefore => {}
    }
    if battery.tests == Check::Failed {
        against.push("tests fail");
    }
    if battery.linter == Check::Failed && policy.linter_counts {
        let passed = battery.tests == Check::Passed;
        against.push(if passed { "tests pass, the linter fails" } else { "the linter fails" });
    }
    if battery.scope == Scope::Exceeded {
        against.push("scope exceeded");
    }
    match battery.judge {
        Some(true) => {}
        Some(false) => against.push("the Judge objects"),
        None => against.push("the Judge's verdict is unclear"),
    }
    against
}
