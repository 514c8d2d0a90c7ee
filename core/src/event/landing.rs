//! The way into the target branch: build, test, hooks, intent, landing, revert.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CachedFolder, SetupRun};
use crate::model::{FailAction, HookPoint, MergeStrategy, Oid, Seq, TestCounts};

/// Build the merge commit in a separate worktree (D-03).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeStart {
    pub work: Oid,
    pub base: Oid,
    pub target: String,
    pub strategy: MergeStrategy,
    pub attempt: u32,
    /// Work of other runs that comes first, so that all of it is tested once and lands in one step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Companion>,
    /// Look first: the work landed with another run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Together>,
}

/// A run whose work is to land before that of another, in the same step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Companion {
    pub run_id: String,
    pub work: Oid,
    pub base: Oid,
    pub strategy: MergeStrategy,
    /// The message of its commit; empty in journals from before.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// One companion's place in the candidate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub run_id: String,
    pub work: Oid,
    pub old: Oid,
    pub commit: Oid,
    pub tree: Oid,
}

/// A companion that could not come along.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub run_id: String,
    pub why: String,
}

/// Where a run landed that another one took along: as which commit, and tested as which.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    /// Whose landing it was.
    pub run_id: String,
    pub old: Oid,
    pub commit: Oid,
    pub tree: Oid,
    pub tip: Oid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeBuilt {
    pub start_seq: Seq,
    pub built: Built,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Link>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Built {
    Candidate {
        old: Oid,
        commit: Oid,
        tree: Oid,
    },
    Conflict {
        paths: Vec<String>,
    },
    /// The target has it already.
    Nothing,
    /// The target no longer contains the commit the run began from.
    BaseGone {
        now: String,
    },
    /// The user's git could not sign the commit.
    NotSigned {
        what: String,
    },
    Fault {
        what: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestsStart {
    pub commit: Oid,
    pub tree: Oid,
    pub command: String,
    pub limit_ms: u64,
    /// After landing, as the second net.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub post_merge: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestsDone {
    pub start_seq: Seq,
    pub tree: Oid,
    /// How the copy was set up, where there is a setup command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<SetupRun>,
    pub result: Tested,
    /// The exit code, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    pub duration_ms: u64,
    pub artifact: String,
    /// The end of the output, for feedback.
    pub tail: String,
    /// The lines of the output that say what fails. None in journals from before they were kept.
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

/// What a run of the tests says about which of them ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TestsRan {
    /// As far as the output counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<TestCounts>,
    /// Where tests fail that failed before: why the output does not show that the others ran.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unproven: String,
    /// Files of the commit that are not as they were after the tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The tests as they were before the change, on the candidate that passed its own; nothing where they did not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<OldTests>,
}

/// How the tests from before a change ended on the new code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldTests {
    pub result: Tested,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<TestCounts>,
    /// The file with the whole output.
    pub artifact: String,
}

impl TestsRan {
    pub fn is_empty(&self) -> bool {
        *self == TestsRan::default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tested {
    Passed,
    Failed,
    TimedOut,
    /// Exit 126 or 127, or it could not be started: the command is wrong, not the change (BX-05).
    Broken,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookStart {
    pub point: HookPoint,
    pub command: String,
    pub fail_action: FailAction,
    pub env: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookDone {
    pub start_seq: Seq,
    pub point: HookPoint,
    pub ok: bool,
    pub reason: String,
}

/// The target branch is about to move (I1). Whoever finds this without an answer completes it first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeIntent {
    #[serde(rename = "ref")]
    pub target: String,
    pub old: Oid,
    pub new: Oid,
    pub tree: Oid,
    pub strategy: MergeStrategy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMerged {
    pub start_seq: Seq,
    pub base: String,
    pub strategy: MergeStrategy,
    pub old: Oid,
    pub commit: Oid,
    pub tree: Oid,
    /// Checked-out trees that were moved along.
    pub moved: u32,
}

impl RunMerged {
    /// The order that was carried out as it was given.
    pub fn by(start_seq: Seq, intent: &MergeIntent, moved: u32) -> RunMerged {
        RunMerged {
            start_seq,
            base: intent.target.clone(),
            strategy: intent.strategy,
            old: intent.old.clone(),
            commit: intent.new.clone(),
            tree: intent.tree.clone(),
            moved,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRefused {
    pub start_seq: Seq,
    pub why: Refusal,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The target moved between test and landing.
    Moved,
    /// The user's checkout has changes on paths the merge touches.
    Dirty,
    /// An operation is under way in the user's checkout.
    Busy,
    Fault,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertIntent {
    #[serde(rename = "ref")]
    pub target: String,
    pub landed: Oid,
    pub old: Oid,
    /// The revert that was built and tested. Without one it is built on the way: the tests after a landing failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tested: Option<RevertMove>,
}

/// Where the target is to move from and to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertMove {
    pub old: Oid,
    pub new: Oid,
    pub tree: Oid,
}

/// A person asks to take the landing back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertRequested {}

/// Build the commit that takes a landing back, on the target as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertStart {
    pub target: String,
    pub landed: Oid,
    /// The commit that the landing was built on.
    pub old: Oid,
    pub attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertBuilt {
    pub start_seq: Seq,
    pub built: Built,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReverted {
    pub start_seq: Seq,
    pub commit: Oid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertRefused {
    pub start_seq: Seq,
    /// Where the revert had been built and tested before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Refusal>,
    pub detail: String,
}
