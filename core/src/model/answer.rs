//! The answer of an agent, once read.

use serde::{Deserialize, Serialize};

use super::named::named;
use super::{Finding, Millionths, Traits, TurnSignal};

named! {
    /// The status token on the last line of an answer (AF-040).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum Status {
        /// No token, two different ones, or one that is not final: taken as done (D-02).
        #[default]
        Unverified = "UNVERIFIED",
        Done = "DONE",
        DoneWithConcerns = "DONE_WITH_CONCERNS",
        NeedsContext = "NEEDS_CONTEXT",
        Blocked = "BLOCKED",
    }
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum Verdict {
        Approved = "APPROVED",
        Rejected = "REJECTED",
    }
}

/// An answer as its reader understood it. Reading never fails: what could not be read is in `problems`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Answer {
    pub status: Status,
    /// The text beside a status that needs a person: what is missing, what blocks, which concerns.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
    #[serde(default)]
    pub words: u32,
    /// One line for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub said: AnswerBody,
    #[serde(default, skip_serializing_if = "Traits::is_plain")]
    pub traits: Traits,
    /// The block of a role in a loop; other agents have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoken: Option<Box<TurnSignal>>,
    /// Dispositions of earlier findings, from a `Prior issues` section.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prior: Vec<Prior>,
    /// What the reader could not make sense of, each with its line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

fn is_nothing(said: &AnswerBody) -> bool {
    *said == AnswerBody::Prose
}

/// The part of an answer that depends on the role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum AnswerBody {
    /// Explorer and Maker: the text is the answer.
    #[default]
    Prose,
    Proposal(Proposal),
    Review(Review),
}

/// What the machine must know of a Creator's proposal; the text itself is the artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Proposal {
    /// The paths listed under `Files`.
    pub files: Vec<String>,
    pub confidence: Confidence,
    pub has_test_strategy: bool,
    /// Rejected alternatives counted.
    pub alternatives: u32,
    /// The required headings (AF-052) that are not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// `None` is a row that is missing or unreadable and counts as 0.0 (AF-053).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Confidence {
    pub task_understanding: Option<Millionths>,
    pub solution_completeness: Option<Millionths>,
    pub risk_coverage: Option<Millionths>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Review {
    /// The word; `None` when it is missing or given both ways.
    pub verdict: Option<Verdict>,
    /// `FINDINGS: n`, when given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<u32>,
    pub findings: Vec<Finding>,
    /// Findings beyond those that are kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u32,
    /// What of the review itself could not be read. A status token that can't be read is another matter (D-02).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
}

/// What became of an earlier finding, in the words of the agent that was given it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prior {
    pub disposition: Disposition,
    /// The line it is on: names the finding by id or in words.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Disposition {
    Fixed,
    Deferred,
    Accepted,
    Disputed,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}
