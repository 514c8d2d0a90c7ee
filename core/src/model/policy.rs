//! The thresholds and choices a run is judged by. Frozen into the first line of its log, so that a replay needs
//! no configuration and a change under review can't alter the rules that judge it (D-08).
//!
//! One line is one setting, with its default: see [`crate::settings`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Boundaries, Costs, LoopPolicy, Memory, Millionths, Reviewing, Severity, Shadows, Sign, SystemShadows,
    Tier, Workflow,
};
use crate::settings::settings;

settings! {
    pub struct Policy at "" in (run) {
        models: Models = Models::default();
        agents: Agents = Agents::default();
        limits: Limits = Limits::default();
        retries: Retries = Retries::default();
        convergence: Convergence = Convergence::default();
        #[serde(skip_serializing_if = "EvidencePolicy::is_default")]
        evidence: EvidencePolicy = EvidencePolicy::default();
        raised: Raised = Raised::default();
        git: Git = Git::default();
        #[serde(skip_serializing_if = "Option::is_none")]
        test_command: Option<String> = None, "test_command", Command, Guarded,
            "Command that tests a tree. Run before landing.", unset "none";
        #[serde(skip_serializing_if = "Option::is_none")]
        setup_command: Option<String> = None, "setup_command", Command, Guarded,
            "Command that installs what the tests need, such as `npm ci`. Run once per tree.", unset "none";
        #[serde(skip_serializing_if = "Vec::is_empty")]
        cache: Vec<String> = Vec::new(), "cache", Folders(8), Guarded,
            "Folders of build results that come back in later tests, as far as that is safe: [warm builds](landing.md#warm-builds).";
        /// U-10. Not so in journals from before it was.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        preflight: bool = true, "preflight", Switch, Guarded,
            "Run `setup_command` and `test_command` on the base commit before the first agent starts.";
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        allow_red_base: bool = false, "allow_red_base", Switch, Guarded,
            "Start although tests fail on the base commit, and land if no other test fails then. `--allow-red-base` sets it for one run.";
        /// The folder of the repository that the task is about, from its root; empty for all of it (U-16).
        #[serde(default, skip_serializing_if = "String::is_empty")]
        folder: String = String::new();
        /// The user allowed, for this run, landing without tests.
        no_tests: bool = false;
        /// M-05: research that changes prose only is not sent back for tests. Not so in journals from before it was.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        prose_passes: bool = true;
        /// M-07: choices are followed by their alternatives. Not so in journals from before they were.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        records_alternatives: bool = true;
        hooks: Vec<Hook> = Vec::new();
        /// Cycles allowed, where the configuration differs from the workflow's own number.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        max_cycles: BTreeMap<Workflow, u32> = BTreeMap::new();
        #[serde(skip_serializing_if = "is_zero")]
        extra_cycles: u32 = 0, "extra_cycles", Whole(0, 5), GuardedAbove,
            "Cycles beyond the limit for runs that are converging when they reach it. `--extra-cycles` sets it for one run.";
        /// A3.
        confidence_floor: ConfidenceFloor = ConfidenceFloor::default(), "confidence_floor", Share, GuardedBelow,
            "Open the confidence gate when a proposal scores below this.";
        shadows: Shadows = Shadows::default();
        system_shadows: SystemShadows = SystemShadows::default();
        costs: Costs = Costs::default();
        memory: Memory = Memory::default();
        boundaries: Boundaries = Boundaries::default();
        #[serde(skip_serializing_if = "Reviewing::is_default")]
        review: Reviewing = Reviewing::default();
        /// The bounds of a loop; written down where they differ from the defaults.
        #[serde(skip_serializing_if = "LoopPolicy::is_default")]
        looping: LoopPolicy = LoopPolicy::default();
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(n: &u32) -> bool {
    *n == 0
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

settings! {
    /// Which tier a role gets; resolved in [`crate::rules::tiers`] (AF-014).
    pub struct Models at "models." in (run.models) {
        #[serde(skip_serializing_if = "Option::is_none")]
        default: Option<Tier> = None, "default", Tier, Inert, "Tier of all archetypes.", unset "by the archetype";
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        archetypes: BTreeMap<String, Tier> = BTreeMap::new();
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        workflows: BTreeMap<Workflow, WorkflowModels> = BTreeMap::new();
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct WorkflowModels {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Tier>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub archetypes: BTreeMap<String, Tier>,
}

settings! {
    /// Which agent each archetype has.
    pub struct Agents at "agents." in (run.agents) {
        default: String = String::new(), "default", Agent, Guarded,
            "Agent for all archetypes without one of their own.", unset "none; name one with --agent";
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        by_archetype: BTreeMap<String, String> = BTreeMap::new();
        #[serde(skip_serializing_if = "Vec::is_empty")]
        fallback: Vec<String> = Vec::new(), "fallback", Agents(8), Guarded,
            "Agents to switch to, in this order, when an account is unavailable.";
        /// The provider account behind each of these programs, where that is not the program itself (C6).
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        accounts: BTreeMap<String, String> = BTreeMap::new();
        #[serde(skip_serializing_if = "Vec::is_empty")]
        instructions: Vec<String> = Vec::new(), "instructions", Phrases(16), Guarded,
            "Files of the repository with the project's conventions, such as `CLAUDE.md`, shown to agents as text. Their content needs approval, whoever lists them.";
        structured: bool = true, "structured", Switch, Inert,
            "Ask clients that accept a schema for structured answers instead of Markdown (Creator and reviewers).";
        #[serde(skip_serializing_if = "Vec::is_empty")]
        uncoded: Vec<String> = Vec::new(), "uncoded", Agents(8), Guarded,
            "Agents that can't repeat the code of their brief, such as a command with a fixed answer: their answers count without it, and without a closing line.";
    }
}

impl Agents {
    pub fn of(&self, archetype: &str) -> &str {
        self.by_archetype.get(archetype).map_or(&self.default, String::as_str)
    }
}

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;

const USUAL_SETUP: u64 = 15 * MINUTE;

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_usual_setup(ms: &u64) -> bool {
    *ms == USUAL_SETUP
}

settings! {
    /// Time limits (D-09).
    pub struct Limits at "limits." in (run.limits) {
        silence_ms: u64 = 5 * MINUTE, "silence_seconds", Seconds(1, 7_200), GuardedAbove, "Stop an agent that prints nothing for N seconds.";
        maker_ms: u64 = 45 * MINUTE, "maker_minutes", Minutes(1, 1_440), GuardedAbove, "Time limit of one Maker attempt.";
        other_ms: u64 = 15 * MINUTE, "other_minutes", Minutes(1, 1_440), GuardedAbove, "Time limit of one attempt of any other archetype.";
        /// AF-056.
        mini_explorer_ms: u64 = 5 * MINUTE, "mini_explorer_minutes", Minutes(1, 240), GuardedAbove, "Time limit of the research at the confidence gate.";
        tests_ms: u64 = 5 * MINUTE, "tests_seconds", Seconds(1, 86_400), GuardedAbove, "Time limit of the test command.";
        #[serde(skip_serializing_if = "is_usual_setup")]
        setup_ms: u64 = USUAL_SETUP, "setup_seconds", Seconds(1, 86_400), GuardedAbove, "Time limit of the setup command.";
        hook_ms: u64 = MINUTE, "hook_seconds", Seconds(1, 3_600), GuardedAbove, "Time limit of a hook.";
    }
}

settings! {
    pub struct Retries at "retries." in (run.retries) {
        /// CL-12.
        attempts: u32 = 1, "attempts", Whole(0, 10), GuardedAbove, "Retries for an archetype the run needs.";
        /// CL-28.
        failures_in_a_row: u32 = 3, "failures_in_a_row", Whole(1, 20), GuardedAbove, "Stop the run after N failures in a row, over all archetypes.";
        busy_waits_ms: Vec<u64> = vec![2_000, 10_000, 30_000, 60_000, 120_000], "busy_waits_seconds", Waits(20, 0, 3_600), GuardedAbove,
            "Waits before a busy account is retried; after the last one the run stops.";
        /// C6.
        jitter_percent: u32 = 20, "jitter_percent", Whole(0, 100), Inert,
            "Jitter: up to N percent added to each wait, so that runs do not all retry at once.";
        park_after_ms: u64 = 300 * SECOND, "park_after_seconds", Seconds(0, 86_400), GuardedAbove,
            "Stop the run instead of waiting longer than N seconds for an account; it prints when to resume.";
        moved_base: u32 = 3, "moved_base", Whole(0, 20), GuardedAbove, "Rebuild and retest at most N times because the target branch moved.";
        questions: u32 = 3, "questions", Whole(1, 20), GuardedAbove, "Ask the same question at most N times.";
    }
}

settings! {
    /// Whether findings have to be shown.
    #[derive(Copy)]
    pub struct EvidencePolicy at "evidence." in (run.evidence) {
        enabled: bool = true, "enabled", Switch, Guarded,
            "Count findings without evidence as INFO; off: findings count as their reviewers give them.";
    }
}

impl EvidencePolicy {
    fn is_default(&self) -> bool {
        *self == EvidencePolicy::default()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_on(switch: &bool) -> bool {
    *switch
}

settings! {
    pub struct Convergence at "convergence." in (run.convergence) {
        #[serde(skip_serializing_if = "is_on")]
        enabled: bool = true, "enabled", Switch, Guarded,
            "Stop runs that do not converge; off: only approval, the number of cycles, the budget and faults end a run.";
        /// AF-102.
        line_window: u32 = 10, "line_window", Whole(0, 1_000), Inert, "Most lines between two findings that count as the same one, unless `overlap` is `weighed`.";
        overlap_percent: u32 = 50, "overlap_percent", Whole(1, 100), Inert, "Least keyword overlap of two findings that count as the same one, in percent, unless `overlap` is `weighed`.";
        overlap: Overlap = Overlap::Weighed, "overlap", Words(&["weighed", "min", "jaccard"]), Inert,
            "How findings are compared: by words, code and place together (`weighed`), or by file, category and the share of common words of the shorter one (`min`) or of both (`jaccard`).";
        converging_above_percent: u32 = 80, "converging_above_percent", Whole(0, 100), GuardedBelow, "A run is converging above this score.";
        diverging_below_percent: u32 = 50, "diverging_below_percent", Whole(0, 100), GuardedBelow, "A run is diverging below this score; in between it is stalling.";
        diverging_cycles: u32 = 2, "diverging_cycles", Whole(1, 10), GuardedAbove, "Stop the run after N diverging cycles in a row.";
        zero_policy: ZeroPolicy = ZeroPolicy::Immediate, "zero_policy", Words(&["immediate", "two_consecutive"]), GuardedAbove,
            "When a score of 0 stops the run; `two_consecutive` needs approval.";
        /// CL-07.
        stop_without_baseline: bool = false, "stop_without_baseline", Switch, Inert, "Stop on a score of 0 even if the cycle before was clean.";
        /// AF-107.
        oscillating: u32 = 2, "oscillating", Whole(1, 20), GuardedAbove, "Stop the run at N findings that keep disappearing and coming back.";
        /// J-09. Not so in journals from before it was.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        one_oscillates: bool = true, "one_oscillates", Switch, Inert, "Stop after the cycle in which one finding that was gone comes back.";
        /// Whether the end at the limit of cycles says that the run was converging. Not so in journals from before it did.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        offers_a_cycle: bool = true;
        /// CL-09.
        persistent_floor: Severity = Severity::Critical, "persistent_floor", Words(&["INFO", "WARNING", "CRITICAL"]), Inert,
            "Ask a person about findings of at least this severity that stay open for two cycles.";
        tracked: Severity = Severity::Warning, "tracked", Words(&["INFO", "WARNING", "CRITICAL"]), GuardedAbove,
            "Track findings of at least this severity over the cycles; the rest is advice.";
    }
}

/// How two findings are compared. Runs from before `Weighed` go on with what they recorded (CL-18).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// [`crate::rules::identity`].
    Weighed,
    /// Keywords against those of the shorter finding.
    Min,
    /// Keywords against those of both.
    Jaccard,
}

/// CL-06.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ZeroPolicy {
    Immediate,
    TwoConsecutive,
}

settings! {
    /// Severity of the program's own findings (D-07); CRITICAL unless approved configuration says less.
    pub struct Raised at "raised." in (run.raised) {
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        severity: BTreeMap<Sign, Severity> = BTreeMap::new();
        binary_bytes: u64 = 1_000_000, "binary_bytes", Whole(0, 1_000_000_000), GuardedAbove, "A binary file of more than N bytes counts as `large_binary`.";
    }
}

settings! {
    pub struct Git at "git." in (run.git) {
        merge_strategy: MergeStrategy = MergeStrategy::NoFf, "merge_strategy", Words(&["no-ff", "squash", "rebase"]), Inert, "How a change is merged.";
        post_merge_test: bool = false, "post_merge_test", Switch, Inert, "Run the test command again after landing.";
        #[serde(skip_serializing_if = "Option::is_none")]
        on_post_merge_failure: Option<OnPostMergeFailure> = None, "on_post_merge_failure", Words(&["halt", "cycle_back"]), Inert,
            "What to do when tests fail after landing; the landing is undone in any case.", unset "cycle_back when attended, else halt";
    }
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
