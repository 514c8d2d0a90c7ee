//! Events of a loop between a person, a Planner, an Actor and a Judge: messages, turns, the cycle file, the Judge's checks.

use serde::{Deserialize, Serialize};

use super::Artifact;
use crate::model::{
    Alert, CheckEnd, LoopState, Millis, Oid, Risk, Seq, Speaker, Token, TurnEvent, TurnSignal, Word,
};
use crate::strategies::agent_loop::cyclefile::Ending;

/// A loop begins: whose it is, what is wanted, and the file people read and write it in. The host reports it once, after
/// `session.start`, as `review.opened` is reported for a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct LoopOpened {
    pub project: String,
    /// `YYYY-MM-DD-NNN`.
    pub cycle_id: String,
    /// The cycle file, relative to the repository.
    pub path: String,
    /// The seal of the file's past ([`crate::strategies::agent_loop::cyclefile::CycleFileParts::seal`]) and how many of our blocks it has.
    pub seal: String,
    #[serde(default)]
    pub blocks: u32,
    pub goal: String,
    /// The person wrote the goal into the file; it is not appended to it once more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_file: bool,
    /// All loops are planned first, and a person approves that plan (MX-02).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upfront: bool,
    /// The names in `docs/agent_docs`, without ending; the core says who gets which (PJ-31).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<String>,
    /// Digest of what stood behind the last mark when the loop began: the goal, or nothing that concerns it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub heard: String,
    /// [`crate::model::LOOP_RULES`] when it began.
    #[serde(default, skip_serializing_if = "is_first")]
    pub rules: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_first(rules: &u32) -> bool {
    *rules == 0
}

/// A person spoke: by a command, or by a block behind the last mark of the cycle file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct LoopHeard {
    /// The question this answers. A `stop` needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_seq: Option<Seq>,
    /// Set by a command that names it (PC-04).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<Word>,
    /// The last block of the text, where it was read from the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoken: Option<Box<TurnSignal>>,
    /// The person's own words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Digest of the text after the last mark, so that the same text is not read twice.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// How the words came: `ui` from a page; empty if they were typed or written.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

/// The meaning of a message, and the state of the loop after it. Every step of the state machine is one of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopTurn {
    /// The line this is about: the answer of an agent, the words of a person, the report of a landing.
    pub line: Seq,
    /// The sender; none where the program itself reports the result of a landing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Speaker>,
    /// Nothing where the words were refused: then nothing changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<TurnEvent>,
    pub from: LoopState,
    pub to: LoopState,
    /// INSUFFICIENT in a row, after this.
    pub insufficient: u32,
    /// Failures of the Actor in a row, after this; nothing in loops that do not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// What the block itself says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Token>,
    /// A plan: the higher of the stated risk and the risk of its kinds of work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<Risk>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Why it was refused, or what the program holds against it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
    /// How the block differs from the grammar.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<String>,
}

/// Append a block of ours to the cycle file. Answered by `loop.appended` or `loop.edited`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopAppend {
    pub speaker: Speaker,
    /// The number this block gets, counted from 1; if it is already there, it was appended before.
    pub number: u32,
    /// The seal the file must have before ([`crate::strategies::agent_loop::cyclefile::CycleFileParts::seal`]).
    pub seal: String,
    /// An agent's answer, as in the artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// What follows it, or all there is: a person's words, or what the program makes of an answer it overrules.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What the program found out, above the answer: the results of its checks (M-02).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub above: String,
    /// The step whose diff is shown above the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<StepRange>,
}

/// The two commits a step is between.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRange {
    pub from: Oid,
    pub to: Oid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopAppended {
    pub start_seq: Seq,
    /// The seal and the number of blocks after it.
    pub seal: String,
    pub blocks: u32,
    /// What a person had written before it and was not read yet, for example while an agent worked.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub theirs: String,
}

/// The past of the file is not what it was, or the file can't be written: nothing was appended (PJ-32).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopEdited {
    pub start_seq: Seq,
    /// The lines, counted from 1; 0 where it is not about lines.
    pub first: u32,
    pub last: u32,
    pub what: String,
}

/// Run the Judge's checks on the step (PJ-44): tests, linter and formatter, credential scan. Answered by `battery.done`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatteryStart {
    pub commit: Oid,
    /// The commit the run began from: the scan looks at everything that would land.
    pub base: Oid,
    /// The approved test command; where there is none, tests are missing. The linter is the host's to find.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_command: Option<String>,
    /// For each command.
    pub limit_ms: u64,
    /// From 1. The second time the tests crashed before (PJ-50).
    pub attempt: u32,
    /// The command runs only some of the tests, since all of them crashed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub part: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatteryDone {
    pub start_seq: Seq,
    pub commit: Oid,
    pub tests: Checked,
    pub linter: Checked,
    pub security: Checked,
    /// The tests from before the loop on the new code, where the step changed or removed some of them (L-09).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_tests: Option<Checked>,
    pub duration_ms: Millis,
    /// The whole output, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub artifact: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Checked {
    pub end: CheckEnd,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Only some of what should have been run was: all of it crashed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub part: bool,
    /// Counts, if the output has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<u32>,
    /// The end of the output, or what the scan found, a line each.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tail: String,
    /// The lines that say what fails and did not fail before, at most ten (L-03).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// Those that failed before, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines_before: Vec<String>,
    /// How the same command ended on the commit the run began from; nothing where it was not run there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<CheckEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_before: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed_before: Option<u32>,
}

impl Checked {
    /// It fails, but no more than before: what the step is not to blame for.
    pub fn failed_before_too(&self) -> bool {
        let more = self.failed.zip(self.failed_before).is_some_and(|(now, before)| now > before);
        self.end == CheckEnd::Failed
            && self.before == Some(CheckEnd::Failed)
            && self.lines.is_empty()
            && !more
    }
}

/// Something people should know; it stops nothing (PC-11).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopAlert {
    pub alert: Alert,
    pub detail: String,
}

/// Take a snapshot of the cycle file into the archive (PJ-55..PJ-57). Answered by `loop.archived`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopArchive {
    pub ending: Ending,
    /// Told below the snapshot of a loop that did not succeed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopArchived {
    pub start_seq: Seq,
    /// Relative to the repository; empty where it could not be written.
    pub path: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub trouble: String,
}
