//! How a sprint is bounded: plain numbers with defaults.

use std::collections::BTreeMap;

use crate::model::Money;
use crate::settings::settings;

settings! {
    pub struct SprintPolicy at "sprint." in (sprint) {
        /// BX-22.
        slots: u32 = 4, "slots", Whole(1, 128), GuardedAbove, "Most tasks of a sprint that run at the same time.";
        large: u32 = 2, "large", Whole(0, 128), GuardedAbove, "Most L or XL tasks among them.";
        low_priority: bool = false, "low_priority", Switch, Guarded, "Also run P3 tasks.";
        load_percent: u32 = 300, "load_percent", Whole(1, 100_000), GuardedAbove,
            "Start no further task above this load, in percent of the processors; one always runs.";
        memory_mb: u64 = 256, "memory_mb", Whole(0, 10_000_000), GuardedBelow, "Start no further task with less than N MB of memory available.";
        /// AF-150.
        checkpoint_tasks: u32 = 3, "checkpoint_tasks", Whole(1, 1_000), GuardedAbove, "Checkpoint after N tasks.";
        checkpoint_minutes: u64 = 45, "checkpoint_minutes", Whole(1, 10_000), GuardedAbove, "Checkpoint after N minutes of work.";
        /// AF-150.
        quality_percent: u64 = 50, "quality_percent", Whole(0, 100), GuardedBelow,
            "Stop at a checkpoint if the last task's quality is below N percent of the first one's.";
        /// AF-153.
        failures: u32 = 3, "failures", Whole(1, 100), GuardedAbove, "Stop the sprint after N failed tasks in a row.";
        budget_usd: Option<Money> = None, "budget_usd", Dollars(1_000_000), Inert, "Budget of all runs of a sprint together.", unset "none";
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        shares: BTreeMap<String, u64> = BTreeMap::new(), "shares", Shares(1_000), Inert,
            "Cap on a project's part of the budget: `shop=40%`. Projects without a share have no cap.";
        /// AF-150.
        checkpoint_budget_percent: u64 = 80, "checkpoint_budget_percent", Whole(1, 100), GuardedAbove,
            "Stop at a checkpoint once N percent of the budget is spent.";
        /// AF-151.
        last_budget_percent: u64 = 95, "last_budget_percent", Whole(1, 100), GuardedAbove, "Start no further task once N percent of the budget is spent.";
        reruns: u32 = 1, "reruns", Whole(0, 20), GuardedAbove, "Rerun a task at most N times because the target changed in the same places.";
        busy_minutes: u64 = 15, "busy_minutes", Whole(1, 1_440), Inert,
            "Retry a run that waits for a provider after N minutes, if the provider did not say when.";
        patience_minutes: u64 = 360, "patience_minutes", Whole(0, 10_080), GuardedAbove,
            "Put an item back into the queue instead of waiting longer than N minutes for a provider.";
        landing_batch: u32 = 8, "landing_batch", Whole(1, 128), Inert, "Most changes of a project that land in one step; 1: each by itself.";
        /// AF-151.
        warn_budget_percent: u64 = 50, "warn_budget_percent", Whole(1, 100), Inert, "Report spending once N percent of the budget is spent.";
        /// BX-28.
        standard_below_percent: u64 = 50, "standard_below_percent", Whole(0, 100), GuardedAbove,
            "With less than N percent of the budget left, choose at most `standard` for a task's size.";
        fast_below_percent: u64 = 25, "fast_below_percent", Whole(0, 100), GuardedAbove,
            "With less than N percent left, choose `fast` for all tasks whose workflow was not named.";
    }
}

/// How much more can run, from outside: how busy the machine is, and how many items a fleet takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub load_percent: u32,
    pub memory_mb: u64,
    /// The most items under way that a fleet has slots for, in place of `sprint.slots`; none on one machine.
    pub slots: Option<u32>,
}

impl Room {
    pub const PLENTY: Room = Room { load_percent: 0, memory_mb: u64::MAX, slots: None };
}

impl SprintPolicy {
    pub fn admits(&self, room: Room) -> bool {
        room.load_percent <= self.load_percent && room.memory_mb >= self.memory_mb
    }

    /// The most items that may be under way.
    pub fn most_at_once(&self, room: Room) -> u32 {
        room.slots.unwrap_or(self.slots)
    }

    /// Why no further task begins.
    pub fn too_busy(&self, room: Room) -> String {
        let why = if room.load_percent > self.load_percent {
            let (load, most) = (room.load_percent, self.load_percent);
            format!("the load is {load} % of the processors (sprint.load_percent: {most})")
        } else {
            let (left, least) = (room.memory_mb, self.memory_mb);
            format!("{left} MB of memory are left (sprint.memory_mb: {least})")
        };
        format!("the machine is busy, so further tasks wait: {why}")
    }

    /// Whether at least N percent of the budget is spent.
    pub fn is_spent(&self, spent: Money, percent: u64) -> bool {
        self.budget_usd.is_some_and(|budget| {
            u128::from(spent.0) * 100 >= u128::from(budget.0) * u128::from(percent) && spent > Money::ZERO
        })
    }
}
