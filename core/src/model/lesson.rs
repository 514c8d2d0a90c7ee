//! What earlier runs taught (AF-175).

use serde::{Deserialize, Serialize};

use super::named::named;

/// A lesson as it is kept in `.archeflow/memory/lessons.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lesson {
    /// `m-001`.
    pub id: String,
    pub ts: String,
    /// The run it comes from, or `manual`.
    pub run_id: String,
    #[serde(rename = "type")]
    pub kind: LessonKind,
    /// The archetype it comes from, or `user_feedback`.
    pub source: String,
    pub description: String,
    pub frequency: u32,
    pub severity: String,
    pub domain: String,
    #[serde(default)]
    pub tags: Vec<String>,
    /// Only for this archetype.
    #[serde(default)]
    pub archetype: Option<String>,
    #[serde(default)]
    pub last_seen_run: String,
    #[serde(default)]
    pub runs_since_last_seen: u32,
    /// Times it was injected and the same finding came back (AF-145).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ineffective: u32,
}

named! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum LessonKind {
        Pattern = "pattern",
        Preference = "preference",
        ArchetypeHint = "archetype_hint",
        AntiPattern = "anti_pattern",
    }
}

impl LessonKind {
    pub fn parse(word: &str) -> Option<LessonKind> {
        LessonKind::ALL.into_iter().find(|kind| kind.name() == word)
    }
}

/// A finding an earlier run of this project resolved; when it comes back it is a regression (AF-121).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolved {
    pub run_id: String,
    pub file: String,
    pub line: u32,
    pub category: String,
    pub description: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
}
