//! One breaker for each provider account, shared by all runs of a sprint (C6). A run that ended because its provider
//! was busy is parked and not a failure; no other run starts with that account until its time has come. Then one tries,
//! parked runs before new ones, and the others follow if it succeeds.
//!
//! When the time has come is a report like any other, so a sprint that is replayed decides the same.

use std::collections::BTreeSet;

use super::event::RunEnd;
use super::fold::{ItemStage, ItemState, Sprint};

/// An account that refused a run of the sprint, and has served none since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SprintBreaker {
    /// When it is to be tried, in milliseconds since 1970.
    pub until: u64,
    /// That time has come.
    pub due: bool,
    /// The item that finds out.
    pub trial: Option<String>,
}

impl SprintBreaker {
    fn may_be_tried(&self) -> bool {
        self.due && self.trial.is_none()
    }
}

/// A parked run whose accounts serve again, or that may find out.
pub fn may_go_on(sprint: &Sprint, known: &ItemState) -> bool {
    let accounts = known.end.as_ref().and_then(|end| end.busy.as_ref()).map(|busy| &busy.accounts);
    let open = |account: &String| sprint.breakers.get(account).is_none_or(SprintBreaker::may_be_tried);
    known.stand == ItemStage::Parked && accounts.is_some_and(|accounts| accounts.iter().all(open))
}

/// The accounts that keep a project from beginning anything. `trials` are those that another run is about to try.
pub fn is_held(sprint: &Sprint, project: &str, trials: &BTreeSet<&String>) -> bool {
    !sprint.breakers.is_empty() && is_held_beside(sprint, project, trials, &parked_accounts(sprint))
}

/// The same with the accounts that parked runs wait for, for many projects in a row.
pub(super) fn is_held_beside(
    sprint: &Sprint,
    project: &str,
    trials: &BTreeSet<&String>,
    parked: &BTreeSet<&String>,
) -> bool {
    sprint.breakers.iter().any(|(account, breaker)| {
        let free = breaker.may_be_tried() && !trials.contains(account) && !parked.contains(account);
        concerns(sprint, project, account) && !free
    })
}

pub(super) fn parked_accounts(sprint: &Sprint) -> BTreeSet<&String> {
    let parked = sprint.items.at_stage(ItemStage::Parked);
    let busy = parked.filter_map(|known| known.end.as_ref()?.busy.as_ref());
    busy.flat_map(|busy| &busy.accounts).collect()
}

/// The open breakers that a run started in this project would try.
pub fn tried_by<'a>(sprint: &'a Sprint, project: &str) -> impl Iterator<Item = &'a String> {
    sprint.breakers.keys().filter(|account| concerns(sprint, project, account))
}

/// Whether runs of a project work with an account. One of which nothing is known is taken to work with what all others
/// work with.
fn concerns(sprint: &Sprint, project: &str, account: &str) -> bool {
    match sprint.accounts.get(project) {
        Some(known) => known.contains(account),
        None => sprint.accounts.values().all(|known| known.contains(account)),
    }
}

impl Sprint {
    /// What the end of a run shows about accounts.
    pub(super) fn note_accounts(&mut self, item: &str, end: &RunEnd, at: u64) {
        let Some(project) = self.items.get(item).map(|known| known.item.project.clone()) else { return };
        if !end.accounts.is_empty() {
            self.accounts.insert(project, end.accounts.iter().cloned().collect());
        }
        let tried = |breaker: &SprintBreaker| breaker.trial.as_deref() == Some(item);
        let told = end.status.is_some() && !end.stopped;
        // A run that was stopped, crashed, or used another account, shows nothing.
        self.breakers.retain(|account, breaker| !(told && tried(breaker) && end.accounts.contains(account)));
        self.breakers.values_mut().filter(|breaker| tried(breaker)).for_each(|breaker| breaker.trial = None);
        let Some(busy) = &end.busy else { return };
        let until = self.reopens(busy.until, at);
        for account in &busy.accounts {
            let known = self.breakers.get(account).map_or(0, |known| known.until);
            let breaker = SprintBreaker { until: until.max(known), due: false, trial: None };
            self.breakers.insert(account.clone(), breaker);
        }
    }

    /// Whether a run is worth waiting for.
    pub(super) fn is_parked(&self, end: &RunEnd, at: u64) -> bool {
        let patience = self.policy.patience_minutes.saturating_mul(60_000);
        let busy = end.busy.as_ref().filter(|_| !end.stopped && self.broke.is_none());
        busy.is_some_and(|busy| self.reopens(busy.until, at).saturating_sub(at) <= patience)
    }

    fn reopens(&self, told: Option<u64>, at: u64) -> u64 {
        told.unwrap_or_else(|| at.saturating_add(self.policy.busy_minutes.saturating_mul(60_000)))
    }

    /// The run that starts while an account is to be tried is its trial.
    pub(super) fn note_trial(&mut self, item: &str, accounts: &[String]) {
        for account in accounts {
            if let Some(breaker) = self.breakers.get_mut(account).filter(|breaker| breaker.may_be_tried()) {
                breaker.trial = Some(item.to_owned());
            }
        }
    }

    pub(super) fn note_due(&mut self, account: &str) {
        if let Some(breaker) = self.breakers.get_mut(account) {
            breaker.due = true;
        }
    }
}
