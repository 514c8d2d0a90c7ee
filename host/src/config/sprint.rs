//! The bounds of a sprint, out of the settings. Leave to run without asking is none of them: it is given on the command
//! line alone (BX-22).

use archeflow_core::sprint::policy::SprintPolicy;

use super::keys::{Setting, share_of};
use super::layers::{Settings, narrow};

impl Settings {
    pub fn sprint(&self) -> SprintPolicy {
        let whole = |name: &str| self.whole(&format!("sprint.{name}"));
        let number = |name: &str| narrow(whole(name));
        SprintPolicy {
            slots: number("slots"),
            large: number("large"),
            low_priority: self.switch("sprint.low_priority"),
            load_percent: number("load_percent"),
            memory_mb: whole("memory_mb"),
            checkpoint_tasks: number("checkpoint_tasks"),
            checkpoint_minutes: whole("checkpoint_minutes"),
            quality_percent: whole("quality_percent"),
            failures: number("failures"),
            budget_usd: self.money("sprint.budget_usd"),
            shares: match self.get("sprint.shares") {
                Some(Setting::Names(shares)) => shares.iter().filter_map(|text| share_of(text)).collect(),
                _ => Default::default(),
            },
            checkpoint_budget_percent: whole("checkpoint_budget_percent"),
            last_budget_percent: whole("last_budget_percent"),
            reruns: number("reruns"),
            busy_minutes: whole("busy_minutes"),
            patience_minutes: whole("patience_minutes"),
            landing_batch: number("landing_batch"),
            warn_budget_percent: whole("warn_budget_percent"),
            standard_below_percent: whole("standard_below_percent"),
            fast_below_percent: whole("fast_below_percent"),
        }
    }
}
