//! The thresholds of the Human/Planner/Actor/Judge loop. The defaults are those of its founding document.

use serde::{Deserialize, Serialize};

use crate::settings::settings;

settings! {
    pub struct LoopPolicy at "loop." in (run.looping) {
        /// PJ-30.
        lines: u32 = 150, "max_lines", Whole(1, 100_000), GuardedAbove, "Most lines a step may change, added and removed together.";
        files: u32 = 2, "max_files", Whole(1, 1_000), GuardedAbove, "Most files a step may change.";
        limit_mode: LimitMode = LimitMode::EitherSuffices, "limit_mode", Words(&["either_suffices", "both_required"]), Inert,
            "Whether one of the two limits is enough, or both bind.";
        /// PJ-52.
        docs_tolerance: u32 = 10, "docs_tolerance_percent", Whole(0, 100), GuardedAbove,
            "Tolerance over `max_lines` for a low-risk documentation step, in percent.";
        /// PJ-35.
        pause_after: u32 = 5, "pause_after", Whole(1, 100), GuardedAbove, "Pause a loop after N INSUFFICIENT in a row.";
        /// PJ-60.
        stuck_after: u32 = 3, "stuck_after", Whole(1, 100), GuardedAbove, "Print a notice after N rounds without human input.";
        /// The founding document has no such end: an Actor that always fails would continue for ever.
        rounds: u32 = 20, "max_rounds", Whole(1, 1_000), GuardedAbove, "Ask a person after N rounds without human input.";
        /// PJ-36, PJ-63.
        checkpoint_ms: u64 = 30 * 60_000, "checkpoint_minutes", Minutes(1, 10_080), GuardedAbove, "Print a notice after N minutes without human input.";
        approval: Approval = Approval::EveryPass, "approval", Words(&["step", "every_pass", "goal_complete"]), Guarded,
            "Ask a person after every step that passes (`step`, also written `every_pass`), or when the whole goal is done.";
        /// MX-03.
        confidence_floor: u32 = 5, "confidence_floor", Whole(0, 10), GuardedBelow, "Ask a person about a plan with a confidence below N of 10.";
        /// PJ-31.
        docs: u32 = 2, "docs", Whole(0, 20), GuardedAbove, "Most documents of docs/agent_docs given to an agent.";
        /// PJ-34. Letters after one dash may be in any order.
        forbidden: Vec<String> = list("rm -rf, DROP TABLE, DROP DATABASE, DELETE FROM .. WHERE 1=1"), "forbidden", Phrases(64), Guarded,
            "Commands that need a person's permission; `..` is a gap within a line.";
        risks: Risks = Risks::default();
        goals: Goals = Goals::default();
        linter_counts: bool = true, "linter_counts", Switch, Guarded, "A failing linter or formatter counts against a step.";
        /// PJ-50.
        network_retries: u32 = 3, "network_retries", Whole(0, 20), GuardedAbove, "Retries for an agent that can't reach its provider.";
        /// PJ-50.
        first_pause_ms: u64 = 2_000, "first_pause_seconds", Seconds(0, 3_600), GuardedAbove, "Wait before the first of these retries; it doubles each time.";
        /// PJ-01.
        goal_words: u32 = 2, "goal_words", Whole(1, 20), GuardedBelow, "Least words of a goal that carry meaning.";
        empty_words: Vec<String> = list(EMPTY), "empty_words", Names(256), Guarded, "Words that carry no meaning in a goal.";
        /// PJ-20.
        strict: bool = false, "strict", Switch, Inert, "Accept only signal blocks that match the grammar exactly.";
        /// PJ-51.
        unread_retries: u32 = 1, "unread_retries", Whole(0, 10), GuardedAbove, "Retries for an agent whose answer has no readable block.";
        #[serde(skip_serializing_if = "Option::is_none")]
        linter: Option<String> = None, "linter", Command, Guarded, "Linter that the Judge runs.", unset "detected from the project's files";
        #[serde(skip_serializing_if = "Option::is_none")]
        formatter: Option<String> = None, "formatter", Command, Guarded, "Formatter that the Judge runs, in checking mode.", unset "detected from the project's files";
        detect: bool = true, "detect", Switch, Guarded, "Detect linter and formatter from the project's files.";
    }
}

/// PC-01: whether either limit is enough, or both bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum LimitMode {
    #[default]
    EitherSuffices,
    BothRequired,
}

/// PC-06: whether a person is asked after every PASS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    #[default]
    EveryPass,
    GoalComplete,
}

settings! {
    /// MX-06: what kind of work has which risk.
    pub struct Risks at "loop.risks." in (run.looping.risks) {
        low: Vec<String> = list("refactor, documentation, tests, comments"), "low", Names(64), Guarded, "Kinds of work with low risk.";
        medium: Vec<String> = list("api_changes, schema_migrations, dependencies, configuration"), "medium", Names(64), Guarded,
            "Kinds of work with medium risk: a notice is printed.";
        high: Vec<String> = list("authentication, authorization, data_deletion, secrets_management, deployment"), "high", Names(64), Guarded,
            "Kinds of work with high risk: a person is asked first.";
    }
}

settings! {
    /// PJ-64..PJ-67.
    pub struct Goals at "loop.goals." in (run.looping.goals) {
        iterations: u32 = 3, "iterations", Whole(1, 100), Inert, "Most iterations of a cycle, on average, for a green metric.";
        pass_rate: u32 = 70, "pass_percent", Whole(0, 100), Inert, "Least share of PASS among the Judge's verdicts, in percent.";
        pause_rate: u32 = 10, "pause_percent", Whole(0, 100), Inert, "Share of cycles that pause: less than N percent.";
    }
}

const EMPTY: &str = "a, an, and, better, code, do, everything, fix, good, improve, it, make, of, on, please, project, some, \
                     something, stuff, that, the, them, thing, things, this, to, up, with, work, works";

fn list(words: &str) -> Vec<String> {
    words.split(", ").map(str::to_owned).collect()
}

impl LoopPolicy {
    pub fn is_default(&self) -> bool {
        *self == LoopPolicy::default()
    }
}
