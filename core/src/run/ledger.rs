//! What a run has spent and what is set aside for agents that are out (I4). Only remembers; `rules/ledger.rs` has the
//! rules and `steps/budget.rs` what follows from them.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{AgentStart, BudgetEffect, BudgetStep, Tokens};
use crate::model::{Money, Tier};
use crate::rules::ledger;

use super::Run;

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ledger {
    /// What a person allowed this run; it stands in place of every limit of the policy.
    pub allowed: Option<Money>,
    /// Steps of the ladder that are written down, by limit.
    pub steps: BTreeSet<(String, BudgetEffect)>,
    /// What ended attempts count with, by archetype and tier.
    pub accounts: BTreeMap<(String, Tier), Account>,
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
        let today = self.request.as_ref().map(|request| request.past.spent_today_usd).unwrap_or_default();
        let of_day = |cap| Limit { name: "day", cap, spent: today.plus(self.spent) };
        costs.budget_usd.map(of_run).into_iter().chain(costs.daily_usd.map(of_day)).collect()
    }

    /// Whether anything limits what this run costs; only then is something set aside.
    pub fn is_limited(&self) -> bool {
        self.policy().costs.per_agent_usd.is_some() || !self.limits().is_empty()
    }

    /// Set aside for the agents that are out.
    pub fn set_aside(&self) -> Money {
        self.open_agents().map(|(_, start)| start.reserved_usd).sum()
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

    /// An attempt has ended. What it did not say counts as what was set aside for it.
    pub(super) fn settle_cost(&mut self, start: &AgentStart, said: Option<Money>, tokens: Option<Tokens>) {
        let cost = said.unwrap_or(start.reserved_usd);
        self.spent = self.spent.plus(cost);
        let account = self.ledger.accounts.entry((start.archetype.clone(), start.model)).or_default();
        account.attempts += 1;
        account.cost = account.cost.plus(cost);
        account.unknown += u32::from(said.is_none() && start.reserved_usd == Money::ZERO);
        if let Some(tokens) = tokens {
            account.counted += 1;
            account.tokens.input = account.tokens.input.saturating_add(tokens.input);
            account.tokens.output = account.tokens.output.saturating_add(tokens.output);
            account.tokens.cache_read = account.tokens.cache_read.saturating_add(tokens.cache_read);
            account.tokens.cache_write = account.tokens.cache_write.saturating_add(tokens.cache_write);
        }
    }

    /// Agents nobody waits for any more: what was set aside for them is spent, for all we know.
    pub(crate) fn settle_open(&mut self) {
        let out: Vec<AgentStart> = self.open_agents().map(|(_, start)| start.clone()).collect();
        out.iter().for_each(|start| self.settle_cost(start, None, None));
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
