//! How a sprint is bounded: plain numbers with defaults.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::Money;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SprintPolicy {
    /// How many tasks run at a time (BX-22).
    pub slots: u32,
    /// How many of them may be L or XL.
    pub large: u32,
    /// From which priority on a task is left out: P3 is only run on request.
    pub low_priority: bool,
    /// No further task begins above this load, in percent of the processors; the first always does.
    pub load_percent: u32,
    /// Nor with less memory than this available, in megabytes.
    pub memory_mb: u64,
    /// AF-150: a checkpoint after N tasks, or this much work.
    pub checkpoint_tasks: u32,
    pub checkpoint_minutes: u64,
    /// AF-150: at a checkpoint the last task must be at least so good as the first, in percent.
    pub quality_percent: u64,
    /// AF-153: N tasks that fail in a row are a hard break.
    pub failures: u32,
    /// What all runs together may cost.
    pub budget_usd: Option<Money>,
    /// What a project may spend of it at most, in percent. Projects not named have no cap.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub shares: BTreeMap<String, u64>,
    /// AF-150: no further task above this at a checkpoint, in percent of the budget.
    pub checkpoint_budget_percent: u64,
    /// AF-151: no further task above this at any time.
    pub last_budget_percent: u64,
    /// How often a task is run again because its files changed on the target meanwhile.
    pub reruns: u32,
    /// The wait before a busy provider is tried again, if it gave no time.
    pub busy_minutes: u64,
    /// A longer wait for a provider is not waited for.
    pub patience_minutes: u64,
    /// How many candidates of a project land in one step at most; 1 lands each by itself.
    pub landing_batch: u32,
    /// AF-151: the percentage of the budget at which a warning is given.
    pub warn_budget_percent: u64,
    /// BX-28: with less than this left of the budget, in percent, no task begins as thorough by its size alone.
    pub standard_below_percent: u64,
    /// And with less than this, all begin as fast.
    pub fast_below_percent: u64,
}

impl Default for SprintPolicy {
    fn default() -> SprintPolicy {
        SprintPolicy {
            slots: 4,
            large: 2,
            low_priority: false,
            load_percent: 300,
            memory_mb: 256,
            checkpoint_tasks: 3,
            checkpoint_minutes: 45,
            quality_percent: 50,
            failures: 3,
            budget_usd: None,
            shares: BTreeMap::new(),
            checkpoint_budget_percent: 80,
            last_budget_percent: 95,
            reruns: 1,
            busy_minutes: 15,
            patience_minutes: 360,
            landing_batch: 8,
            warn_budget_percent: 50,
            standard_below_percent: 50,
            fast_below_percent: 25,
        }
    }
}

/// How busy the machine is, from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    pub load_percent: u32,
    pub memory_mb: u64,
}

impl Room {
    pub const PLENTY: Room = Room { load_percent: 0, memory_mb: u64::MAX };
}

impl SprintPolicy {
    pub fn admits(&self, room: Room) -> bool {
        room.load_percent <= self.load_percent && room.memory_mb >= self.memory_mb
    }

    /// Whether at least N percent of the budget is spent.
    pub fn is_spent(&self, spent: Money, percent: u64) -> bool {
        self.budget_usd.is_some_and(|budget| {
            u128::from(spent.0) * 100 >= u128::from(budget.0) * u128::from(percent) && spent > Money::ZERO
        })
    }
}
