//! What domains, lenses, teams and workflows lay over the archetypes of a run. Frozen into the first line, so that
//! every brief of the run is written from the same words.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::named::named;
use super::{Phase, Sight, Tier};

/// Hundredths, so that 1.5 is kept exactly (D-13).
pub type Hundredths = u32;

/// A focus for all reviewers of the change (BX-07).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lens {
    /// One name, or several when lenses are stacked.
    pub names: Vec<String>,
    pub finding_categories: Vec<String>,
    pub context: BTreeMap<FileTiming, Vec<String>>,
    pub attention: BTreeMap<String, Attention>,
    /// Thresholds of shadows: archetype, parameter, value as written.
    pub shadow_overrides: BTreeMap<(String, String), String>,
    pub evidence: BTreeMap<String, BTreeSet<Proof>>,
    pub model_overrides: BTreeMap<String, Tier>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Attention {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<Hundredths>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub extra_focus: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_categories: Vec<String>,
}

named! {
    /// When a file of the project is shown to an agent.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum FileTiming {
        Always = "always",
        Plan = "plan",
        Check = "check",
    }
}

impl FileTiming {
    pub fn holds_in(self, phase: Phase) -> bool {
        match self {
            FileTiming::Always => true,
            FileTiming::Plan => phase == Phase::Plan,
            FileTiming::Check => phase == Phase::Check,
        }
    }
}

named! {
    /// A kind of evidence that a lens can ask for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Proof {
        /// A line reference that was not found wanting.
        Line = "line",
        /// Output of a command, or steps to reproduce.
        Run = "run",
        /// A quotation of the text in question.
        Quote = "quote",
    }
}

named! {
    /// When a cycle is good enough to land.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
    #[serde(rename_all = "snake_case")]
    pub enum ExitWhen {
        #[default]
        AllApproved = "all_approved",
        NoCritical = "no_critical",
        Convergence = "convergence",
        Always = "always",
    }
}

/// Everything that was laid over the archetypes of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Overlay {
    /// The team or workflow file that selects the agents.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub team: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub workflow: String,
    pub exit: ExitWhen,
    /// The workflow's text for a phase.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub phases: BTreeMap<Phase, String>,
    /// Narrows what a phase's archetypes see; a phase that is not named is not narrowed.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<Phase, BTreeSet<Sight>>,
    /// The domain's word for a programming term.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub concepts: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<String>,
    /// By archetype: what it attends to, from the domain and the lenses.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub attention: BTreeMap<String, Attention>,
    /// Paths in the base commit whose content is put before agents, as data.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<FileTiming, Vec<String>>,
    /// Voice profiles, for agents that write and review prose.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub voice: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub evidence: BTreeMap<String, BTreeSet<Proof>>,
}

impl Overlay {
    pub fn is_empty(&self) -> bool {
        *self == Overlay::default()
    }
}

/// The domains' own data (AF-004, AF-005), and the built-in lenses. Read by the host, like a user's files.
pub const DOMAINS: [(&str, &str); 3] = [
    ("code", include_str!("../../domains/code.yaml")),
    ("writing", include_str!("../../domains/writing.yaml")),
    ("research", include_str!("../../domains/research.yaml")),
];

pub const LENSES: [(&str, &str); 3] = [
    ("security", include_str!("../../lenses/security.yaml")),
    ("compliance-gdpr", include_str!("../../lenses/compliance-gdpr.yaml")),
    ("prose-voice", include_str!("../../lenses/prose-voice.yaml")),
];
