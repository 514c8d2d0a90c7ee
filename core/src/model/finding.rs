//! What a reviewer, or the program itself, holds against a change.

use serde::{Deserialize, Serialize};

use super::Reproduction;
use super::named::named;

/// The source of findings that no model can waive (D-07).
pub const PROGRAM: &str = "program";

/// The categories every reviewer may use; a lens can add its own.
pub const CATEGORIES: [&str; 9] = [
    "security",
    "reliability",
    "breaking-change",
    "dependency",
    "design",
    "scalability",
    "quality",
    "consistency",
    "testing",
];

named! {
    /// Graver compares greater.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum Severity {
        Info = "INFO",
        Warning = "WARNING",
        Critical = "CRITICAL",
    }
}

/// The kind of flaw in a Trickster's reliability finding: it decides the route (AF-090).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Flaw {
    DesignFlaw,
    TestGap,
}

named! {
    /// The role that gets a finding in the next cycle. The Creator is the higher destination (AF-094).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Destination {
        Maker = "maker",
        Creator = "creator",
    }
}

/// A place in the reviewed tree that a finding points at, and whether it is really there (D-05).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Citation {
    pub file: String,
    /// 0 when only the file is named.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u32,
    /// The code that is there according to the reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quote: Option<String>,
    /// Filled in by the host, which can look: `None` until then, and when there was no tree to look in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// Whether the lines there have a word in common with the finding. Filled in by the host, for lines that hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub related: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Finding {
    /// The archetype, or [`PROGRAM`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
    /// As the reviewer wrote it, usually `file:line`.
    pub location: String,
    /// Read out of the location; empty when it names none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub line: u32,
    pub severity: Severity,
    pub category: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<Flaw>,
    pub description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// A digest of the code it is about, by which it is known again elsewhere. Filled in by the host, in reviews.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub anchor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reproduction: Option<Reproduction>,
}

/// What another reviewer wrote about the same finding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Remark {
    pub source: String,
    pub description: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}
