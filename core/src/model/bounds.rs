//! The bounds of costs, memory and prompts. Part of the policy, so frozen into the first line of a log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Money, Tier};
use crate::settings::settings;

settings! {
    /// What a run may cost (AF-151, BX-24).
    pub struct Costs at "costs." in (run.costs) {
        #[serde(skip_serializing_if = "Option::is_none")]
        budget_usd: Option<Money> = None, "budget_usd", Dollars(1_000_000), Inert,
            "Budget of a run. Warning at 50 %, cheaper reviewers from 80 %, no further cycle from 95 %, stop at 100 %.", unset "none";
        #[serde(skip_serializing_if = "Option::is_none")]
        per_agent_usd: Option<Money> = None, "per_agent_usd", Dollars(1_000_000), Guarded,
            "Amount reserved for each attempt until its cost is known.", unset "what the role usually costs";
        #[serde(skip_serializing_if = "Option::is_none")]
        daily_usd: Option<Money> = None, "daily_usd", Dollars(1_000_000), Inert,
            "Budget of all runs in this repository per day (UTC).", unset "none";
        warn_at_percent: u32 = 50, "warn_at_percent", Whole(1, 100), GuardedAbove, "Warn when N percent of a budget is spent.";
        /// From here on reviewers get the next cheaper tier.
        downgrade_at_percent: u32 = 80;
        /// From here on no other cycle begins.
        finish_at_percent: u32 = 95;
        /// A reported cost of one attempt above this is ignored.
        absurd_usd: Money = Money(1_000_000_000);
        /// What each tier costs, as it was when the run began.
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        prices: BTreeMap<Tier, Price> = BTreeMap::new();
    }
}

/// Dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Price {
    pub model: String,
    pub input: Money,
    pub output: Money,
    pub cache_read: Money,
    pub cache_write: Money,
    /// Tokens a prompt and its answer may have together.
    pub context_window: u64,
}

settings! {
    /// How much of the past is remembered and given to agents (BX-30, AF-112, AF-156, AF-175).
    pub struct Memory at "memory." in (run.memory) {
        enabled: bool = true, "enabled", Switch, Inert, "Learn lessons from runs and give them to later ones; off: nothing is read or written.";
        inject_threshold: u32 = 2, "inject_threshold", Whole(1, 100), Inert, "Give a lesson seen in N runs to matching domains and archetypes.";
        always_threshold: u32 = 5, "always_threshold", Whole(1, 1_000), Inert, "Give a lesson seen in N runs to all agents.";
        max_lessons: u32 = 10, "max_lessons", Whole(0, 50), GuardedAbove, "Most lessons in one prompt.";
        decay_after_runs: u32 = 10, "decay_after_runs", Whole(1, 1_000), Inert,
            "Lower the count of a lesson not seen for N runs by one; at zero it is archived.";
        /// CL-18.
        match_percent: u32 = 50, "match_percent", Whole(1, 100), Inert,
            "Least word overlap of a finding and a lesson that count as the same issue, in percent.";
        ineffective_percent: u32 = 30, "ineffective_percent", Whole(1, 100), Inert,
            "Least word overlap from which a lesson that was given did not help, in percent.";
        /// AF-145.
        ineffective_limit: u32 = 2, "ineffective_limit", Whole(1, 20), Inert, "Archive a lesson that did not help N times.";
        /// AF-112.
        persistent_cycles: u32 = 2, "persistent_cycles", Whole(2, 10), Inert, "A finding open for N cycles counts for more.";
        persistent_boost: u32 = 2, "persistent_boost", Whole(1, 10), Inert, "Weight of such a finding.";
        share: bool = false, "share", Switch, Own,
            "Also use the lessons you keep for all repositories (`archeflow memory add --shared`).";
    }
}

settings! {
    /// AF-150 and AF-156.
    pub struct Boundaries at "boundaries." in (run.boundaries) {
        checkpoint_ms: u64 = 45 * 60_000, "checkpoint_minutes", Minutes(1, 1_440), GuardedAbove, "Checkpoint after N minutes of agents' work.";
        checkpoint_cycles: u32 = 3, "checkpoint_cycles", Whole(1, 100), GuardedAbove, "Checkpoint after N finished cycles.";
        lessons_at_most: u32 = 15, "lessons_at_most", Whole(1, 100), Inert, "Cut the lessons of one prompt if there are more than N.";
        lessons_kept: u32 = 5, "lessons_kept", Whole(1, 100), Inert, "Lessons kept by such a cut.";
        findings_at_most: u32 = 20, "findings_at_most", Whole(1, 1_000), Inert, "Group open findings into themes if there are more than N.";
        themes: u32 = 5, "themes", Whole(1, 50), Inert, "Most themes.";
        prompt_percent: u32 = 50, "prompt_percent", Whole(1, 100), Inert, "Drop the examples of a prompt above N percent of the context window.";
        /// CL-26.
        rising_cycles: u32 = 2, "rising_cycles", Whole(0, 10), GuardedAbove,
            "Stop the run after N cycles in a row with more findings each; 0: never.";
    }
}
