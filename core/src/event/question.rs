//! Questions to a person, and their answers.

use serde::{Deserialize, Serialize};

use crate::words::{Outcome, Seq};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAsked {
    pub kind: QuestionKind,
    /// Who needs it, for a question of an agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub archetype: String,
    pub question: String,
    /// Facts to look at before answering, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// What the run ends with when nobody is there to answer.
    pub unanswered: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    NeedsContext,
    LowConfidence,
    Merge,
    DryRun,
    /// Correcting did not help against a shadow.
    Shadow,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    pub start_seq: Seq,
    pub text: String,
}

/// The person left without answering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionDeferred {
    pub start_seq: Seq,
}
