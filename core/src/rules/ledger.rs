//! The budget as a ledger (AF-151, I4): what is reserved for an attempt before it starts, what it counts with when it
//! has ended, and which escalation step a sum has reached. Whole numbers only; what can't be known exactly is
//! rounded against the user's wallet, never in its favour.

use crate::event::{BudgetEffect, CostSource, Tokens};
use crate::model::{Costs, Money, Price, Role, Tier};

use super::prices;

/// The usage an agent reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Usage {
    pub tokens: Option<Tokens>,
    pub cost: Stated,
    /// The model it worked with, as its vendor calls it; empty when it is not reported.
    pub model: String,
}

/// The cost an agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stated {
    #[default]
    Nothing,
    Amount(Money),
    /// Negative, not a number, or out of this world (M-D12).
    Unusable,
}

impl Stated {
    pub fn read(text: &str) -> Stated {
        Money::parse(text.trim()).map_or(Stated::Unusable, Stated::Amount)
    }
}

/// More tokens than any attempt can have used.
const TOKENS_AT_MOST: u64 = 1_000_000_000_000;

/// What an attempt that has ended counts with, and how that is known; `None` when nothing is known and nothing was set
/// reserved. A reported cost of 0 is treated as unknown (M-G10).
pub fn cost(usage: &Usage, costs: &Costs, tier: Tier, reserved: Money) -> Option<(Money, CostSource)> {
    let tokens = usage.tokens.filter(|tokens| is_statement(*tokens));
    let price = prices::charged(costs, tier, &usage.model);
    let priced = tokens.zip(price).map(|(tokens, (price, _))| priced(tokens, &price));
    let stated = match usage.cost {
        Stated::Amount(amount) if amount > costs.absurd_usd => Stated::Unusable,
        stated @ (Stated::Nothing | Stated::Amount(_) | Stated::Unusable) => stated,
    };
    let set_aside = (reserved > Money::ZERO).then_some((reserved, CostSource::Reserved));
    match (stated, priced) {
        (Stated::Amount(amount), _) if amount > Money::ZERO => Some((amount, CostSource::Reported)),
        (Stated::Amount(_) | Stated::Nothing, Some(priced)) => Some((priced, CostSource::Priced)),
        (Stated::Amount(nothing), None) => set_aside.or(Some((nothing, CostSource::Reported))),
        (Stated::Nothing, None) => set_aside,
        // An agent that reports an impossible cost is charged at least what was expected.
        (Stated::Unusable, Some(priced)) if priced > reserved => Some((priced, CostSource::Priced)),
        (Stated::Unusable, _) => set_aside,
    }
}

fn is_statement(tokens: Tokens) -> bool {
    let all = [tokens.input, tokens.output, tokens.cache_read, tokens.cache_write];
    all.iter().any(|n| *n > 0) && all.iter().all(|n| *n <= TOKENS_AT_MOST)
}

/// Tokens times their rates, rounded up to a millionth of a dollar. Cached tokens are part of the input; where an
/// agent counts them apart, so that they are more than it, they come on top.
pub fn priced(tokens: Tokens, price: &Price) -> Money {
    let cached = tokens.cache_read.saturating_add(tokens.cache_write);
    let plain = tokens.input.checked_sub(cached).unwrap_or(tokens.input);
    let sum: u128 = [
        (plain, price.input),
        (tokens.cache_read, price.cache_read),
        (tokens.cache_write, price.cache_write),
        (tokens.output, price.output),
    ]
    .into_iter()
    .map(|(n, rate)| u128::from(n) * u128::from(rate.0))
    .sum();
    Money(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

/// What is reserved for an attempt: what one agent may cost where that is limited, else what its role usually costs on
/// this tier. Nothing for a play file, which costs nothing.
pub fn reservation(costs: &Costs, agent: &str, role: Role, tier: Tier) -> Money {
    if is_free(agent) {
        return Money::ZERO;
    }
    costs.per_agent_usd.unwrap_or_else(|| typical(costs, role, tier))
}

/// A play file and a simulated agent cost nothing, unless they report a cost; a model on the user's own machine never
/// does.
pub fn is_free(agent: &str) -> bool {
    agent.starts_with("script:") || is_simulated(agent) || is_unpaid(agent)
}

/// An agent that acts by chance, with known error rates.
pub fn is_simulated(agent: &str) -> bool {
    agent.starts_with("sim:")
}

/// A model on the user's own machine (BX-16): it costs nothing, whatever it used.
pub fn is_unpaid(agent: &str) -> bool {
    agent.split([':', '@']).next() == Some("ollama")
}

/// What an attempt of a role usually costs on a tier.
pub fn typical(costs: &Costs, role: Role, tier: Tier) -> Money {
    let Some((price, _)) = prices::charged(costs, tier, "") else { return Money::ZERO };
    let usual = prices::built_in().typical.get(&role).copied().unwrap_or_default();
    priced(Tokens { input: usual.input, output: usual.output, ..Tokens::default() }, &price)
}

/// The same for an agent that names its model, where the price of that model is known.
pub fn usual(costs: &Costs, role: Role, tier: Tier, model: &str) -> Money {
    let Some((price, true)) = prices::charged(costs, tier, model).filter(|_| !model.is_empty()) else {
        return typical(costs, role, tier);
    };
    let usual = prices::built_in().typical.get(&role).copied().unwrap_or_default();
    priced(Tokens { input: usual.input, output: usual.output, ..Tokens::default() }, &price)
}

/// Whether an attempt may start: what is spent and reserved, with its own share, stays within the limit.
pub fn admits(committed: Money, reserved: Money, cap: Money) -> bool {
    committed.plus(reserved) <= cap
}

/// What a running attempt may cost at most: what a limit leaves when the amount spent and what the other running
/// agents hold is taken off.
pub fn share(spent: Money, held_by_others: Money, cap: Money) -> Money {
    Money(cap.0.saturating_sub(spent.plus(held_by_others).0))
}

/// Whether an attempt is to be stopped: it has used all of its share. It always has what was reserved for it.
pub fn is_used_up(used: Money, reserved: Money, share: Option<Money>) -> bool {
    used > Money::ZERO && share.is_some_and(|share| used >= share.max(reserved))
}

/// Whether N percent of a limit are spent (CL-13: at it, not only above it).
pub fn reaches(spent: Money, cap: Money, percent: u32) -> bool {
    u128::from(spent.0) * 100 >= u128::from(cap.0) * u128::from(percent)
}

/// The escalation steps, lowest first.
pub fn steps(costs: &Costs) -> [(u32, BudgetEffect); 4] {
    [
        (costs.warn_at_percent, BudgetEffect::Warn),
        (costs.downgrade_at_percent, BudgetEffect::Downgrade),
        (costs.finish_at_percent, BudgetEffect::FinishThenStop),
        (100, BudgetEffect::StopNow),
    ]
}

/// The strongest effect in force.
pub fn effect(costs: &Costs, spent: Money, cap: Money) -> Option<BudgetEffect> {
    let reached = steps(costs).into_iter().filter(|(percent, _)| reaches(spent, cap, *percent));
    reached.map(|(_, effect)| effect).max()
}

/// For people and for checkpoints: whole percent, rounded down. All of a limit of nothing is spent.
pub fn percent(spent: Money, cap: Money) -> u32 {
    let share = (u128::from(spent.0) * 100).checked_div(u128::from(cap.0)).unwrap_or(100);
    u32::try_from(share).unwrap_or(u32::MAX)
}

/// The next cheaper tier; the cheapest stays what it is.
pub fn cheaper(tier: Tier) -> Tier {
    match tier {
        Tier::Opus => Tier::Sonnet,
        Tier::Sonnet | Tier::Haiku => Tier::Haiku,
    }
}
