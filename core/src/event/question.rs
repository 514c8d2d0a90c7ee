//! Questions to a person, and their answers.

use serde::{Deserialize, Serialize};

use crate::model::{Outcome, Seq};

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
    /// The outcome of the run if there is nobody to answer.
    pub unanswered: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    NeedsContext,
    LowConfidence,
    Merge,
    DryRun,
    /// The tests fail before anything was changed (U-10).
    RedBase,
    /// Correcting did not help against a shadow.
    Shadow,
    /// A reviewer rejects the change and shows no evidence, also when asked for it.
    Rejection,
    /// A loop: the goal says too little, or the Planner asks, or a verdict or an answer can't be read (PJ-02, PJ-51).
    GoalQuestions,
    /// A loop: a plan that a person must approve first (MX-02, MX-06).
    PlanApproval,
    /// A loop: the Judge passes and nothing objects; a yes lands it (PJ-08, PJ-11).
    StepApproval,
    /// A loop: nothing passes any more (PJ-10); a restart continues it, everything else ends it.
    LoopPaused,
    /// A loop: the past of its cycle file was edited, or the file can't be written (PJ-32).
    LoopEdited,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    pub start_seq: Seq,
    pub text: String,
    /// `control` if the answer came by the control socket, `ui` if from a page, `mcp` if from a client of the server for coding agents; empty if it was typed at the question.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

/// The person left without answering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionDeferred {
    pub start_seq: Seq,
}
