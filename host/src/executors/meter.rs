//! Counts what an agent uses while it runs, and reports it once it is more than was reserved (C-03). What follows from
//! it, the core decides.
//!
//! What was counted is kept beside the attempt's output, so that an attempt that is killed, or outlives this program, is
//! charged for it.

use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;

use archeflow_core::event::{AgentStart, AgentUsage, CostSource, Money, Tokens};
use archeflow_core::model::{Costs, Seq};
use archeflow_core::rules::ledger::{self, Usage};
use serde::{Deserialize, Serialize};

use super::{Message, report};
use crate::store::files;

/// The file with what was counted.
const COUNTED: &str = "counted.json";

/// What was counted so far, as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CountedUsage {
    pub(super) tokens: Option<Tokens>,
    pub(super) model: String,
}

impl CountedUsage {
    pub(super) fn read(folder: &Path) -> CountedUsage {
        let bytes = files::read_capped(&folder.join(COUNTED), super::usage::LARGEST).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }
}

/// What an attempt counts with, by what is known of its usage.
pub(super) fn charged(
    start: &AgentStart,
    costs: &Costs,
    usage: &Usage,
    reserved: Money,
) -> Option<(Money, CostSource)> {
    if ledger::is_unpaid(&start.agent) {
        return Some((Money::ZERO, CostSource::Reported));
    }
    ledger::cost(usage, costs, start.model, reserved)
}

/// What an attempt used on earlier parts of a diff.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EarlierParts {
    pub(super) count: usize,
    pub(super) cost: Money,
    pub(super) tokens: Option<Tokens>,
}

impl EarlierParts {
    /// All tokens, with those of the part that is running.
    pub(super) fn with(self, tokens: Option<Tokens>) -> Option<Tokens> {
        match (self.tokens, tokens) {
            (Some(before), Some(now)) => Some(before.plus(now)),
            (before, now) => before.or(now),
        }
    }
}

/// The meter of one attempt.
pub(super) struct UsageMeter<'a> {
    pub(super) order: Seq,
    pub(super) start: &'a AgentStart,
    pub(super) costs: &'a Costs,
    /// The run has a limit. Without one nothing follows from what is used.
    pub(super) limited: bool,
    pub(super) folder: PathBuf,
    pub(super) send: Sender<Message>,
    pub(super) last: Usage,
    pub(super) earlier: EarlierParts,
    pub(super) told: Money,
}

impl UsageMeter<'_> {
    /// All that the attempt has used up to here, and whether it may still use more.
    pub(super) fn note(&mut self, usage: Usage, running: bool) {
        if usage == self.last {
            return;
        }
        let counted = CountedUsage { tokens: usage.tokens, model: usage.model.clone() };
        if let Ok(json) = serde_json::to_vec(&counted) {
            let _ = files::write_atomic(&self.folder.join(COUNTED), &json);
        }
        self.last = usage;
        let Some((cost, source)) = charged(self.start, self.costs, &self.last, Money::ZERO) else { return };
        let cost = self.earlier.cost.plus(cost);
        if !running || !self.limited || cost < self.start.reserved_usd || cost <= self.told {
            return;
        }
        self.told = cost;
        let usage = AgentUsage {
            archetype: self.start.archetype.clone(),
            attempt_seq: self.order,
            estimated_cost_usd: cost,
            cost_source: source,
            tokens: self.earlier.with(self.last.tokens),
            model: self.last.model.clone(),
        };
        report(&self.send, self.order, usage);
    }
}
