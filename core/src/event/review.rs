//! What reviewers and the program hold against a change, and what of it counts.

use serde::{Deserialize, Serialize};

use crate::words::{Finding, Severity, Sign, Verdict};

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
}

impl Unfounded {
    pub fn name(self) -> &'static str {
        match self {
            Unfounded::HedgeWithoutEvidence => "hedge_without_evidence",
            Unfounded::NoEvidence => "no_evidence",
            Unfounded::CitationNotFound => "citation_not_found",
            Unfounded::RequiredEvidenceMissing => "required_evidence_missing",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingRaised {
    pub sign: Sign,
    pub finding: Finding,
}
