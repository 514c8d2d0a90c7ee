//! What an order waits for before it is given: money in a budget that is shared with others, and accounts of providers that
//! turned somebody away.

use std::thread;
use std::time::Duration;

use archeflow_core::model::Money;
use archeflow_core::sprint::event::RunEnd;
use archeflow_host::clock;

use super::{Shared, Unordered};
use crate::accounts::{Accounts, Gate};
use crate::ledger::{Ledger, Reserved};

/// Between two questions.
const ASK_AGAIN: Duration = Duration::from_secs(2);
/// How long an account is left alone that did not say when it serves again.
const UNSAID_MS: u64 = 15 * 60_000;

impl Shared {
    /// Waits until the run's money is reserved and its accounts are open.
    pub(super) fn pass_gates(
        &self,
        project: &str,
        run_id: &str,
        most: Option<Money>,
    ) -> Result<(), Unordered> {
        let ledger = self.how.ledger.as_deref().zip(most);
        if let Some((name, most)) = ledger {
            self.until(|| match Ledger::new(&*self.bus, name).reserve(run_id, most) {
                Ok(Reserved::Held) => Ok(()),
                Ok(Reserved::Short { free }) => Err(format!(
                    "the budget {name} has {} left: {run_id} waits for {}",
                    free.shown(),
                    most.shown()
                )),
                Err(error) => Err(format!("the budget {name} can't be asked: {error}")),
            })?;
        }
        let known = self.desk().accounts.get(project).cloned().unwrap_or_default();
        for account in known {
            self.until(|| match Accounts::new(&*self.bus).may_begin(&account, run_id, clock::now()) {
                Ok(Gate::Open | Gate::Trial) => Ok(()),
                Ok(Gate::Shut { until }) => {
                    Err(format!("{run_id} waits for {account}, until {}", clock::written(until)))
                }
                Err(error) => Err(format!("the account {account} can't be asked: {error}")),
            })?;
        }
        Ok(())
    }

    /// Asks again until it is so, and says once why not.
    pub(super) fn until(&self, mut is_so: impl FnMut() -> Result<(), String>) -> Result<(), Unordered> {
        let mut was_shown = false;
        loop {
            let Err(why) = is_so() else { return Ok(()) };
            if !std::mem::replace(&mut was_shown, true) {
                self.warn(why);
            }
            {
                let desk = self.desk();
                if desk.is_stopping || desk.is_over {
                    return Err(Unordered::Stopped);
                }
            }
            thread::sleep(ASK_AGAIN);
        }
    }

    /// What a report shows about money and accounts. Repeated with the same report, it changes nothing.
    pub(super) fn settle(&self, project: &str, run_id: &str, has_reserved: bool, end: &RunEnd) {
        // A run that is resumed later keeps what is reserved for it.
        let is_final = end.busy.is_none() && !end.stopped;
        if let Some(name) = self.how.ledger.as_deref().filter(|_| has_reserved && is_final)
            && let Err(error) = Ledger::new(&*self.bus, name).settle(run_id, end.cost_usd)
        {
            self.warn(format!("what {run_id} spent is not in the budget {name}: {error}"));
        }
        if !end.accounts.is_empty() {
            self.desk().accounts.insert(project.to_owned(), end.accounts.clone());
        }
        let accounts = Accounts::new(&*self.bus);
        let said = match &end.busy {
            Some(busy) => {
                let until = busy.until.unwrap_or_else(|| clock::now().saturating_add(UNSAID_MS));
                busy.accounts.iter().try_for_each(|account| accounts.turned_away(account, until))
            }
            None if end.status.is_some() => {
                end.accounts.iter().try_for_each(|account| accounts.served(account, run_id))
            }
            None => Ok(()),
        };
        if let Err(error) = said {
            self.warn(format!("others don't learn how {run_id} was served: {error}"));
        }
    }
}
