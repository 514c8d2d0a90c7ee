//! What a run will cost, before it begins, and what its tiers saved, after it has ended (AF-008, BX-24). For people:
//! nothing is decided by these figures.

use std::collections::BTreeMap;

use crate::model::{Costs, Money, Participant, Policy, Tier, Workflow};
use crate::run::Account;

use super::{ledger, players, tiers};

/// What a run will cost if every attempt is a usual one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CostEstimate {
    /// Everybody of a cycle, with tier and cost.
    pub agents: Vec<(String, Tier, Money)>,
    pub cycle: Money,
    /// Over all cycles there may be.
    pub most: Money,
}

/// From the team alone: no failures, each agent once a cycle, play files cost nothing.
pub fn before(
    policy: &Policy,
    seats: &[Participant],
    own: &BTreeMap<String, Tier>,
    workflow: Workflow,
    cycles: u32,
) -> CostEstimate {
    let expected = |seat: &Participant| {
        let name = seat.archetype.as_str();
        let own = own.get(name).copied().unwrap_or(Tier::Sonnet);
        let tier = tiers::resolve(&policy.models, workflow, name, own);
        let agent = policy.agents.of(name);
        let model = players::named_model(agent).unwrap_or_default();
        let free = ledger::is_free(agent);
        let cost = if free { Money::ZERO } else { ledger::usual(&policy.costs, seat.role, tier, model) };
        (name.to_owned(), tier, cost)
    };
    let agents: Vec<(String, Tier, Money)> = seats.iter().map(expected).collect();
    let cycle: Money = agents.iter().map(|(_, _, cost)| *cost).sum();
    let most = Money(cycle.0.saturating_mul(u64::from(cycles)));
    CostEstimate { agents, cycle, most }
}

/// The run's own tokens at the tiers that were used, and the same tokens all at the premium tier. Only attempts whose
/// tokens are known take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Saved {
    pub used: Money,
    pub premium: Money,
    pub counted: u32,
    pub attempts: u32,
}

impl Saved {
    /// Percent of the premium price, rounded down; 0 where nothing was saved.
    pub fn percent(self) -> u64 {
        let saved = self.premium.0.saturating_sub(self.used.0);
        let percent = (u128::from(saved) * 100).checked_div(u128::from(self.premium.0)).unwrap_or(0);
        u64::try_from(percent).unwrap_or(100)
    }
}

/// Only attempts whose model was the tier's count. `None` where no tokens of any are known, or no prices.
pub fn saved(costs: &Costs, accounts: &BTreeMap<(String, Tier), Account>) -> Option<Saved> {
    let premium = costs.prices.get(&Tier::Opus)?;
    let mut saved = Saved::default();
    for ((_, tier), account) in accounts {
        saved.attempts += account.attempts;
        let Some(price) = costs.prices.get(tier).filter(|_| account.tiered > 0) else { continue };
        saved.counted += account.tiered;
        saved.used = saved.used.plus(ledger::priced(account.tiered_tokens, price));
        saved.premium = saved.premium.plus(ledger::priced(account.tiered_tokens, premium));
    }
    (saved.counted > 0).then_some(saved)
}
