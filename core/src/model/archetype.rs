//! Archetypes are open data; roles are the closed set the program distinguishes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::named::named;
use super::{Destination, Phase};

/// What the machine must know of an archetype. All else about it is its Markdown file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Explorer,
    Creator,
    Maker,
    /// Reviews alone and first; a clean bill from it can spare the others (A2).
    Gatekeeper,
    Reviewer,
}

named! {
    /// A price class of model. The names of one vendor's models are accepted and written, as in the founding documents.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Tier {
        #[serde(alias = "cheap")]
        Haiku = "haiku",
        #[serde(alias = "standard")]
        Sonnet = "sonnet",
        #[serde(alias = "premium")]
        Opus = "opus",
    }
}

impl Tier {
    pub const NAMES: &'static str = "haiku (cheap), sonnet (standard), opus (premium)";

    pub fn parse(word: &str) -> Option<Tier> {
        match word {
            "haiku" | "cheap" => Some(Tier::Haiku),
            "sonnet" | "standard" => Some(Tier::Sonnet),
            "opus" | "premium" => Some(Tier::Opus),
            _ => None,
        }
    }
}

named! {
    /// One thing an agent may be shown. What is not in this list (other reviews above all) can't be shown to any agent.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Sight {
        Task = "task",
        Research = "research",
        Proposal = "proposal",
        Risks = "risks",
        Diff = "diff",
        Summary = "summary",
        Feedback = "feedback",
    }
}

/// An archetype as the header of its Markdown file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archetype {
    pub name: String,
    pub role: Role,
    pub phase: Phase,
    pub tier: Tier,
    pub virtue: String,
    pub shadow: String,
    pub sees: BTreeSet<Sight>,
    pub summary: String,
}

/// An archetype with the text its agent is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persona {
    pub archetype: Archetype,
    pub prompt: String,
}

/// Categories that a built-in reviewer knows best, and the role that gets such a finding (AF-090).
pub const EXPERTISE: [(&str, &[&str], Destination); 4] = [
    ("guardian", &["security", "breaking-change", "reliability", "dependency"], Destination::Creator),
    ("skeptic", &["design", "scalability"], Destination::Creator),
    ("sage", &["quality", "consistency", "testing"], Destination::Maker),
    ("trickster", &["testing"], Destination::Maker),
];

/// The built-in archetypes (AF-001), in the order of the cycle: name and Markdown.
pub const ARCHETYPES: [(&str, &str); 7] = [
    ("explorer", include_str!("../../archetypes/explorer.md")),
    ("creator", include_str!("../../archetypes/creator.md")),
    ("maker", include_str!("../../archetypes/maker.md")),
    ("guardian", include_str!("../../archetypes/guardian.md")),
    ("skeptic", include_str!("../../archetypes/skeptic.md")),
    ("sage", include_str!("../../archetypes/sage.md")),
    ("trickster", include_str!("../../archetypes/trickster.md")),
];
