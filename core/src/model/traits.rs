//! What the text of an answer is like, counted when it is read. Shadows are detected by these numbers, so the log has
//! to hold them: the text itself is an artifact.

use serde::{Deserialize, Serialize};

/// All zero and false for an answer that shows nothing; a role fills in only what its shadow is detected by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Traits {
    // The Explorer.
    /// It has a recommendation, under a heading or a label.
    #[serde(skip_serializing_if = "is_false")]
    pub recommendation: bool,
    /// Lines that are off topic by their own account.
    #[serde(skip_serializing_if = "is_zero")]
    pub tangents: u32,
    /// Distinct files named.
    #[serde(skip_serializing_if = "is_zero")]
    pub files: u32,
    /// Those among them that are never named with a word about why.
    #[serde(skip_serializing_if = "is_zero")]
    pub bare_files: u32,
    /// It names what the files have in common.
    #[serde(skip_serializing_if = "is_false")]
    pub patterns: bool,
    /// There is a conclusion in the last quarter of the text.
    #[serde(skip_serializing_if = "is_false")]
    pub synthesis: bool,

    // The Creator.
    /// Distinct traits, factories, layers and the like that the plan brings in.
    #[serde(skip_serializing_if = "is_zero")]
    pub abstractions: u32,
    /// Reasons about the future.
    #[serde(skip_serializing_if = "is_zero")]
    pub future_proof: u32,
    /// Items of work, and those among them that go beyond the task by the plan's own account.
    #[serde(skip_serializing_if = "is_zero")]
    pub items: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub items_beyond: u32,
    /// Distinct new packages.
    #[serde(skip_serializing_if = "is_zero")]
    pub packages: u32,

    // The Maker.
    /// It shows that tests were run.
    #[serde(skip_serializing_if = "is_false")]
    pub test_run: bool,
    /// Files outside of the plan that it names, with the reason why they had to change.
    #[serde(skip_serializing_if = "is_zero")]
    pub deviations: u32,

    // Reviewers. What is counted here are findings.
    /// Those with a fix, or with an alternative in their description.
    #[serde(skip_serializing_if = "is_zero")]
    pub remedied: u32,
    /// The same among those above INFO.
    #[serde(skip_serializing_if = "is_zero")]
    pub grave_remedied: u32,
    /// Above INFO, presupposing a system that is taken over already, and showing nothing.
    #[serde(skip_serializing_if = "is_zero")]
    pub compromised: u32,
    /// The most repetitions of one concern in other words.
    #[serde(skip_serializing_if = "is_zero")]
    pub reworded: u32,
    /// Above INFO, about what can't happen.
    #[serde(skip_serializing_if = "is_zero")]
    pub impossible: u32,
    /// Above INFO, without steps that lead there.
    #[serde(skip_serializing_if = "is_zero")]
    pub without_steps: u32,
    /// "Consider" without anything to do, in findings and beside them.
    #[serde(skip_serializing_if = "is_zero")]
    pub considers: u32,
    /// Above INFO, demanding documentation of what explains itself.
    #[serde(skip_serializing_if = "is_zero")]
    pub trivial_docs: u32,
    /// Findings with a file and a fix, and the words spent on them.
    #[serde(skip_serializing_if = "is_zero")]
    pub actionable: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub actionable_words: u32,
}

impl Traits {
    pub fn is_plain(&self) -> bool {
        *self == Traits::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_false(is: &bool) -> bool {
    !*is
}
