//! What a run cost, by archetype, beside what it was expected to cost and what its tiers saved.

use archeflow_core::model::{Money, counted};
use archeflow_core::rules::estimate::{self, CostEstimate};
use archeflow_core::rules::prices;
use archeflow_core::run::Run;
use serde_json::json;

use super::text::{pad, safe_line};

/// For people; nothing where nothing is known.
pub(crate) fn table(run: &Run) -> Vec<String> {
    let known = run.spent > Money::ZERO || run.ledger.accounts.values().any(|account| account.counted > 0);
    if !known {
        return Vec::new();
    }
    let mut lines = vec!["Costs:".to_owned()];
    for ((archetype, tier), account) in &run.ledger.accounts {
        let unknown = match account.unknown {
            0 => String::new(),
            n => format!(", {n} unknown"),
        };
        lines.push(format!(
            "  {} {} {} {}{unknown}",
            pad(&safe_line(archetype), 10),
            pad(tier.name(), 7),
            pad(&account.cost.shown(), 9),
            counted(account.attempts, "attempt")
        ));
    }
    lines.push(format!("  {} {} {}", pad("all", 10), pad("", 7), run.spent.shown()));
    if let Some(limit) = run.limits().first() {
        lines.push(format!("  of {} allowed ({})", limit.cap.shown(), limit.name));
    }
    let estimate = estimate(run);
    if estimate.cycle > Money::ZERO {
        lines.push(format!("  expected: {}", expectation(run, &estimate)));
    }
    if let Some(saved) = estimate::saved(&run.policy().costs, &run.ledger.accounts) {
        lines.push(format!(
            "  tiers: {} instead of {} all at opus, {} % less (tokens of {} of {} attempts are known)",
            saved.used.shown(),
            saved.premium.shown(),
            saved.percent(),
            saved.counted,
            saved.attempts
        ));
    }
    lines
}

pub(crate) fn expectation(run: &Run, estimate: &CostEstimate) -> String {
    format!(
        "{} a cycle, {} for {} (usual token counts, prices of {})",
        estimate.cycle.shown(),
        estimate.most.shown(),
        counted(run.max_cycles, "cycle"),
        prices::built_in().as_of
    )
}

fn estimate(run: &Run) -> CostEstimate {
    let own = run.request.as_ref().map(|request| request.tiers.clone()).unwrap_or_default();
    estimate::before(run.policy(), &run.seats(), &own, run.current_workflow(), run.max_cycles)
}

/// For machines: the field `costs`.
pub(crate) fn json(run: &Run) -> serde_json::Value {
    let accounts = run.ledger.accounts.iter().map(|((archetype, tier), account)| {
        json!({
            "archetype": archetype, "model": tier, "attempts": account.attempts, "cost_usd": account.cost,
            "unknown": account.unknown, "tokens_known": account.counted, "tokens": account.tokens,
        })
    });
    let estimate = estimate(run);
    let agents = estimate
        .agents
        .iter()
        .map(|(archetype, tier, cost)| json!({ "archetype": archetype, "model": tier, "cost_usd": cost }));
    let saved = estimate::saved(&run.policy().costs, &run.ledger.accounts).map(|saved| {
        json!({
            "used_usd": saved.used, "premium_usd": saved.premium, "percent": saved.percent(),
            "attempts_counted": saved.counted, "attempts": saved.attempts,
        })
    });
    let limits = run.limits();
    let limits = limits
        .iter()
        .map(|limit| json!({ "limit": limit.name, "cap_usd": limit.cap, "spent_usd": limit.spent }));
    json!({
        "by_archetype": accounts.collect::<Vec<_>>(),
        "actual_usd": run.spent,
        "limits": limits.collect::<Vec<_>>(),
        "estimate": {
            "cycle_usd": estimate.cycle, "most_usd": estimate.most, "cycles": run.max_cycles,
            "prices_as_of": prices::built_in().as_of, "agents": agents.collect::<Vec<_>>(),
        },
        "savings": saved,
    })
}
