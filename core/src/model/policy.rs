//! The thresholds and choices a run is judged by. Frozen into the first line of its log, so that a replay needs
//! no configuration and a change under review can't alter the rules that judge it (D-08).
//!
//! The host reads these from its configuration layers; the defaults here are the defaults of the specification.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Boundaries, Costs, LoopPolicy, Memory, Millionths, Reviewing, Severity, Shadows, Sign, SystemShadows,
    Tier, Workflow,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Policy {
    pub models: Models,
    pub agents: Agents,
    pub limits: Limits,
    pub retries: Retries,
    pub convergence: Convergence,
    pub raised: Raised,
    pub git: Git,
    /// The approved command that decides whether a tree is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_command: Option<String>,
    /// The user said, for this run, that landing without tests is meant.
    pub no_tests: bool,
    pub hooks: Vec<Hook>,
    /// Cycles allowed, where the configuration differs from the workflow's own number.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub max_cycles: BTreeMap<Workflow, u32>,
    /// A score below this opens the confidence gate (A3).
    pub confidence_floor: ConfidenceFloor,
    pub shadows: Shadows,
    pub system_shadows: SystemShadows,
    pub costs: Costs,
    pub memory: Memory,
    pub boundaries: Boundaries,
    #[serde(skip_serializing_if = "Reviewing::is_default")]
    pub review: Reviewing,
    /// What a loop is held to; written down where it differs from the defaults.
    #[serde(skip_serializing_if = "LoopPolicy::is_default")]
    pub looping: LoopPolicy,
}

/// A newtype only for its default of 0.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfidenceFloor(pub Millionths);

impl Default for ConfidenceFloor {
    fn default() -> Self {
        ConfidenceFloor(500_000)
    }
}

impl Policy {
    pub fn cycles(&self, workflow: Workflow) -> u32 {
        self.max_cycles.get(&workflow).copied().unwrap_or(workflow.max_cycles())
    }
}

/// Which tier a role gets; resolved in [`crate::rules::tiers`] (AF-014).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Models {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Tier>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub archetypes: BTreeMap<String, Tier>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub workflows: BTreeMap<Workflow, WorkflowModels>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct WorkflowModels {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Tier>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub archetypes: BTreeMap<String, Tier>,
}

/// Which program plays which archetype.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Agents {
    pub default: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_archetype: BTreeMap<String, String>,
    /// Who takes over, in this order, where an account can't serve.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fallback: Vec<String>,
    /// The provider account behind each of these programs, where that is not the program itself (C6).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, String>,
    /// Clients that can are given a schema.
    pub structured: bool,
}

impl Default for Agents {
    fn default() -> Self {
        Agents {
            default: String::new(),
            by_archetype: BTreeMap::new(),
            fallback: Vec::new(),
            accounts: BTreeMap::new(),
            structured: true,
        }
    }
}

impl Agents {
    pub fn of(&self, archetype: &str) -> &str {
        self.by_archetype.get(archetype).map_or(&self.default, String::as_str)
    }
}

/// D-09: silence and total, in milliseconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Limits {
    pub silence_ms: u64,
    pub maker_ms: u64,
    pub other_ms: u64,
    /// AF-056.
    pub mini_explorer_ms: u64,
    pub tests_ms: u64,
    pub hook_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        const MINUTE: u64 = 60_000;
        Limits {
            silence_ms: 5 * MINUTE,
            maker_ms: 45 * MINUTE,
            other_ms: 15 * MINUTE,
            mini_explorer_ms: 5 * MINUTE,
            tests_ms: 5 * MINUTE,
            hook_ms: MINUTE,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Retries {
    /// Further attempts after a failed one of a role the run can't do without (CL-12).
    pub attempts: u32,
    /// So many failures in a row, over all roles, are a hard break (CL-28).
    pub failures_in_a_row: u32,
    /// Waits, in milliseconds, before a busy account is tried again; after the last the run stops.
    pub busy_waits_ms: Vec<u64>,
    /// Up to so much is added to each of these waits, so that runs do not come back all at once (C6).
    pub jitter_percent: u32,
    /// A longer wait is not waited for: the run is parked.
    pub park_after_ms: u64,
    /// Times a candidate is rebuilt and tested anew because the target moved meanwhile.
    pub moved_base: u32,
    /// Times the same question may be asked.
    pub questions: u32,
}

impl Default for Retries {
    fn default() -> Self {
        Retries {
            attempts: 1,
            failures_in_a_row: 3,
            busy_waits_ms: vec![2_000, 10_000, 30_000, 60_000, 120_000],
            jitter_percent: 20,
            park_after_ms: 300_000,
            moved_base: 3,
            questions: 3,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Convergence {
    /// Lines between two findings that may still be the same one (AF-102).
    pub line_window: u32,
    /// Keyword overlap, in percent, from which two findings can be the same one.
    pub overlap_percent: u32,
    pub overlap: Overlap,
    /// Above this a run is converging.
    pub converging_above_percent: u32,
    /// Below this it is diverging; between the two it is stalling.
    pub diverging_below_percent: u32,
    /// Diverging so many cycles running stops the run.
    pub diverging_cycles: u32,
    pub zero_policy: ZeroPolicy,
    /// Stop on a score of 0 although the cycle before was clean (CL-07).
    pub stop_without_baseline: bool,
    /// So many oscillating findings are a hard break (AF-107).
    pub oscillating: u32,
    /// A finding this grave that stays open two cycles goes to a person (CL-09).
    pub persistent_floor: Severity,
    /// Graver or equal findings are tracked; the rest is advice.
    pub tracked: Severity,
}

impl Default for Convergence {
    fn default() -> Self {
        Convergence {
            line_window: 10,
            overlap_percent: 50,
            overlap: Overlap::Min,
            converging_above_percent: 80,
            diverging_below_percent: 50,
            diverging_cycles: 2,
            zero_policy: ZeroPolicy::Immediate,
            stop_without_baseline: false,
            oscillating: 2,
            persistent_floor: Severity::Critical,
            tracked: Severity::Warning,
        }
    }
}

/// The denominator of keyword overlap (CL-18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    Min,
    Jaccard,
}

/// CL-06.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZeroPolicy {
    Immediate,
    TwoConsecutive,
}

/// How grave the program's own findings are (D-07); CRITICAL unless approved configuration says less.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Raised {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub severity: BTreeMap<Sign, Severity>,
    pub binary_bytes: u64,
}

impl Default for Raised {
    fn default() -> Self {
        Raised { severity: BTreeMap::new(), binary_bytes: 1_000_000 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Git {
    pub merge_strategy: MergeStrategy,
    /// Run the test command once more after landing, as a second net.
    pub post_merge_test: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_post_merge_failure: Option<OnPostMergeFailure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum MergeStrategy {
    #[default]
    NoFf,
    Squash,
    Rebase,
}

impl MergeStrategy {
    pub fn name(self) -> &'static str {
        match self {
            MergeStrategy::NoFf => "no-ff",
            MergeStrategy::Squash => "squash",
            MergeStrategy::Rebase => "rebase",
        }
    }
}

/// CL-11.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnPostMergeFailure {
    Halt,
    CycleBack,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hook {
    pub point: HookPoint,
    pub command: String,
    pub fail_action: FailAction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookPoint {
    RunStart,
    PreMerge,
    PostMerge,
    RunComplete,
}

impl HookPoint {
    pub const ALL: [HookPoint; 4] =
        [HookPoint::RunStart, HookPoint::PreMerge, HookPoint::PostMerge, HookPoint::RunComplete];

    pub fn name(self) -> &'static str {
        match self {
            HookPoint::RunStart => "run-start",
            HookPoint::PreMerge => "pre-merge",
            HookPoint::PostMerge => "post-merge",
            HookPoint::RunComplete => "run-complete",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FailAction {
    Warn,
    Abort,
}
