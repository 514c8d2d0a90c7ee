//! What is tried on the base commit before the first agent is paid (U-10).

use serde::{Deserialize, Serialize};

use crate::model::{Oid, Seq};

use super::{Tested, TestsRan};

/// Set the base commit up and test it, in the kind of checkout and sandbox that is used later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreflightStart {
    pub commit: Oid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup_command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_command: Option<String>,
    pub setup_limit_ms: u64,
    pub tests_limit_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreflightDone {
    pub start_seq: Seq,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetupRun>,
    /// None if there is no test command, or the setup failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<BaseTests>,
}

impl PreflightDone {
    /// The setup worked and all tests passed.
    pub fn is_passed(&self) -> bool {
        let setup = self.setup.as_ref().map(|setup| setup.result);
        let tests = self.tests.as_ref().map(|tests| tests.result);
        setup.into_iter().chain(tests).all(|result| result == Tested::Passed)
    }
}

/// How the setup command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetupRun {
    pub result: Tested,
    /// What was set up before for the same tree is used.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reused: bool,
    /// The commit that was set up then. None in journals from before setups were kept by tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Oid>,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub artifact: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
}

/// How the test command ended on the base commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BaseTests {
    pub result: Tested,
    /// The exit code, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// The command passed on the same tree before and was not run again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reused: bool,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub artifact: String,
    /// The lines of the output that say what fails.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// The failing tests by name, where the output names them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failing: Vec<String>,
    #[serde(default, skip_serializing_if = "TestsRan::is_empty")]
    pub ran: TestsRan,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cache: Vec<CachedFolder>,
}

/// A folder of `cache` in the copy of a test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedFolder {
    pub folder: String,
    /// The landed commit whose tests left what is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Oid>,
    /// Why there is nothing in it otherwise.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cold: String,
}
