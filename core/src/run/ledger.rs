//! What a run has spent and what is set aside for agents that are out (I4). Only remembers; `rules/ledger.rs` has the
//! rules and `steps/budget.rs` what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{AgentStart, AgentUsage, BudgetEffect, BudgetStep, Order, Tokens};
use crate::model::{Money, Seq, Tier};
use crate::rules::{ledger, players};

use super::Run;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// What a person allowed this run; it stands in place of every limit of the policy.
    pub allowed: Option<Money>,
    /// Steps of the ladder that are written down, by limit.
    pub steps: BTreeSet<(String, BudgetEffect)>,
    /// What ended attempts count with, by archetype and tier.
    pub accounts: BTreeMap<(String, Tier), Account>,
    /// What running agents have used so far, by the line of their start, as far as it was reported.
    pub seen: BTreeMap<Seq, Money>,
    /// Running agents that have used up their share and are stopped.
    pub used_up: BTreeSet<Seq>,
}

/// The attempts of one archetype on one tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Account {
    pub attempts: u32,
    pub cost: Money,
    /// Attempts that said nothing about their cost and had nothing set aside for them.
    pub unknown: u32,
    /// Attempts whose tokens are known, and those tokens.
    pub counted: u32,
    pub tokens: Tokens,
    /// Of those, the attempts whose model was the tier's, and their tokens.
    pub tiered: u32,
    pub tiered_tokens: Tokens,
}

/// One limit with what counts against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// `run` or `day`.
    pub name: &'static str,
    pub cap: Money,
    pub spent: Money,
}

impl Run {
    /// Every limit in force.
    pub fn limits(&self) -> Vec<Limit> {
        let of_run = |cap| Limit { name: "run", cap, spent: self.spent };
        if let Some(allowed) = self.ledger.allowed {
            return vec![of_run(allowed)];
        }
        let costs = &self.policy().costs;
        if costs.budget_usd.is_none() && costs.daily_usd.is_none() {
            return Vec::new();
        }
        let today = self.request.as_ref().map(|request| request.past.spent_today_usd).unwrap_or_default();
        let of_day = |cap| Limit { name: "day", cap, spent: today.plus(self.spent) };
        costs.budget_usd.map(of_run).into_iter().chain(costs.daily_usd.map(of_day)).collect()
    }

    /// Whether anything limits what this run costs; only then is something set aside.
    pub fn is_limited(&self) -> bool {
        self.policy().costs.per_agent_usd.is_some() || !self.limits().is_empty()
    }

    /// Held by the agents that are running: what is reserved for them, or what they have used if that is more.
    pub fn set_aside(&self) -> Money {
        self.open_agents().map(|(seq, start)| self.held_by(seq, start)).sum()
    }

    fn held_by(&self, seq: Seq, start: &AgentStart) -> Money {
        self.seen_of(seq).max(start.reserved_usd)
    }

    /// What a running agent has used, as far as it was reported.
    pub fn seen_of(&self, seq: Seq) -> Money {
        self.ledger.seen.get(&seq).copied().unwrap_or_default()
    }

    /// The most a running agent may cost: what every limit leaves when the amount spent and what the others hold is
    /// taken off, with the limit that leaves the least. `None` without a limit.
    pub fn share_of(&self, seq: Seq) -> Option<(Money, Limit)> {
        let others = self.open_agents().filter(|(open, _)| *open != seq);
        let held: Money = others.map(|(open, start)| self.held_by(open, start)).sum();
        let shares =
            self.limits().into_iter().map(|limit| (ledger::share(limit.spent, held, limit.cap), limit));
        shares.min_by_key(|(share, _)| *share)
    }

    /// The running agents that have used up their share and are not stopped yet.
    pub fn over_share(&self) -> Vec<(Seq, &AgentStart)> {
        let over = |(seq, start): &(Seq, &AgentStart)| {
            let used = self.seen_of(*seq);
            let share = self.share_of(*seq).map(|(share, _)| share);
            !self.ledger.used_up.contains(seq) && ledger::is_used_up(used, start.reserved_usd, share)
        };
        self.open_agents().filter(over).collect()
    }

    pub(super) fn note_usage(&mut self, usage: &AgentUsage) {
        if matches!(self.open.get(&usage.attempt_seq), Some(Order::AgentStart(_))) {
            let seen = self.ledger.seen.entry(usage.attempt_seq).or_default();
            *seen = (*seen).max(usage.estimated_cost_usd);
        }
    }

    /// This agent is stopped: it has used up its share.
    pub(super) fn note_used_up(&mut self, archetype: &str) {
        let running = self.open_agents().find(|(_, start)| start.archetype == archetype);
        if let Some(seq) = running.map(|(seq, _)| seq) {
            self.ledger.used_up.insert(seq);
        }
    }

    /// The gravest step any limit has reached.
    pub fn budget_effect(&self) -> Option<BudgetEffect> {
        let costs = &self.policy().costs;
        self.limits().into_iter().filter_map(|limit| ledger::effect(costs, limit.spent, limit.cap)).max()
    }

    /// Percent of the budget, or of the day's where there is only that, in whole numbers.
    pub fn budget_percent(&self) -> Option<u32> {
        self.limits().first().map(|limit| ledger::percent(limit.spent, limit.cap))
    }

    /// An attempt has ended. What it did not say counts as what was set aside for it, or as what it was seen to use.
    pub(super) fn settle_cost(
        &mut self,
        (seq, start): (Seq, &AgentStart),
        said: Option<Money>,
        tokens: Option<Tokens>,
    ) {
        let cost = said.unwrap_or_else(|| self.held_by(seq, start));
        self.ledger.seen.remove(&seq);
        self.ledger.used_up.remove(&seq);
        self.spent = self.spent.plus(cost);
        let account = self.ledger.accounts.entry((start.archetype.clone(), start.model)).or_default();
        account.attempts += 1;
        account.cost = account.cost.plus(cost);
        account.unknown += u32::from(said.is_none() && cost == Money::ZERO);
        if let Some(tokens) = tokens {
            account.counted += 1;
            account.tokens = account.tokens.plus(tokens);
            if players::follows_tier(&start.agent) {
                account.tiered += 1;
                account.tiered_tokens = account.tiered_tokens.plus(tokens);
            }
        }
    }

    /// Agents nobody waits for any more: what was set aside for them is spent, for all we know.
    pub(crate) fn settle_open(&mut self) {
        let out: Vec<(Seq, AgentStart)> =
            self.open_agents().map(|(seq, start)| (seq, start.clone())).collect();
        out.iter().for_each(|(seq, start)| self.settle_cost((*seq, start), None, None));
    }

    pub(super) fn note_step(&mut self, step: &BudgetStep) {
        self.ledger.steps.insert((step.limit.clone(), step.effect));
    }

    /// A person raises the limit: the ladder is climbed anew.
    pub(super) fn allow(&mut self, budget: Option<Money>) {
        if budget.is_some() {
            self.ledger.allowed = budget;
            self.ledger.steps.clear();
        }
    }
}
