//! What reviewers and the program hold against a change, and what of it counts.

use serde::{Deserialize, Serialize};

use super::Artifact;
use crate::model::{
    AcceptedFinding, Change, Finding, Oid, Reproduction, ReviewPart, Seq, Severity, Sign, Subject, Verdict,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewVerdict {
    pub archetype: String,
    pub verdict: Verdict,
    pub findings: Vec<FindingLine>,
    /// The model that wrote the change also judged it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub same_model: bool,
}

/// A finding as other programs read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingLine {
    pub location: String,
    pub severity: Severity,
    pub category: String,
    pub description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceDowngrade {
    pub archetype: String,
    /// Which of the reviewer's findings, counted from 0.
    pub index: u32,
    pub from: Severity,
    pub to: Severity,
    pub reason: Unfounded,
    pub file: String,
    pub line: u32,
    pub category: String,
    pub description: String,
}

/// Why a finding does not count as more than advice (AF-073, D-05).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfounded {
    HedgeWithoutEvidence,
    NoEvidence,
    /// It cites a place that is not in the reviewed tree.
    CitationNotFound,
    /// A lens asks for more than it shows.
    RequiredEvidenceMissing,
    /// All it shows is a line that has nothing in common with it (J-07), and a person passed over it. In journals from before that
    /// was asked about, it was set down at once.
    LineUnrelated,
    /// About a file that the change does not touch; its reviewer was asked and named no line of the change that causes it.
    BesideTheChange,
}

impl Unfounded {
    /// The most a finding counts with that was found wanting in this way.
    pub fn counts_as(self) -> Severity {
        match self {
            Unfounded::HedgeWithoutEvidence
            | Unfounded::NoEvidence
            | Unfounded::CitationNotFound
            | Unfounded::RequiredEvidenceMissing
            | Unfounded::BesideTheChange => Severity::Info,
            Unfounded::LineUnrelated => Severity::Warning,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Unfounded::HedgeWithoutEvidence => "hedge_without_evidence",
            Unfounded::NoEvidence => "no_evidence",
            Unfounded::CitationNotFound => "citation_not_found",
            Unfounded::RequiredEvidenceMissing => "required_evidence_missing",
            Unfounded::LineUnrelated => "line_unrelated",
            Unfounded::BesideTheChange => "beside_the_change",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingRaised {
    pub sign: Sign,
    pub finding: Finding,
}

/// Somebody brought a change along. Nobody planned or made it here, and nothing of it will land.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewOpened {
    pub subject: Subject,
    pub change: Change,
    /// The change's own description, in place of the proposal.
    pub about: Artifact,
    /// The diff, in as many parts as it takes: a cycle each.
    pub parts: Vec<ReviewPart>,
    /// Reviewers who see nothing of the diff: they are asked with the first part, and not again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub once: Vec<String>,
    /// Which parts each reviewer got and which files were only summarised, for people.
    pub plan: Artifact,
    /// Files that no part shows line by line.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub summarised: u32,
    /// Findings of the reviews of the same subject before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Artifact>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<AcceptedFinding>,
    /// A person allowed reproductions to be run.
    pub verify: bool,
}

/// A reviewer's reproduction is to be run, in scratch copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceStart {
    pub archetype: String,
    /// Which of the reviewer's findings, counted from 0.
    pub index: u32,
    pub cycle: u32,
    pub reproduction: Reproduction,
    pub change: Oid,
    /// Where it has to pass, for a regression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Oid>,
    pub total_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceDone {
    pub start_seq: Seq,
    pub change: Ran,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Ran>,
}

/// One execution of a reproduction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Ran {
    /// `None` where it was not started, or ended by a signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    /// Why there is no exit code.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The end of what it printed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
    pub duration_ms: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}
