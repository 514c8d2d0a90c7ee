//! Accounts of providers that turned a run away. No run of any sprint begins with such an account until its time has come; then
//! one tries, and the others follow once it was served.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bus::{Bus, BusError, Kept};
use crate::ledger::{bytes, read_text};
use crate::names;
use crate::swap::{Change, change};

const FORMAT: u32 = 1;
/// How long one run may try alone, in milliseconds since the server took its message. Then its machine may have died. Clocks
/// that differ by seconds cost nothing here: at worst two runs try.
pub const TRIAL_MS: u64 = 30 * 60_000;

pub struct Accounts<'a> {
    bus: &'a dyn Bus,
}

/// Whether a run may begin with an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    Open,
    /// It may, and the others wait for [`Accounts::served`] or [`Accounts::turned_away`].
    Trial,
    /// Not before this time, in milliseconds since 1970.
    Shut {
        until: u64,
    },
}

/// An account that turned somebody away and has served nobody since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShutAccount {
    pub account: String,
    pub until: u64,
    /// The run that tries.
    pub trial: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct AccountText {
    v: u32,
    account: String,
    until: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trial: Option<String>,
}

impl<'a> Accounts<'a> {
    pub fn new(bus: &'a dyn Bus) -> Accounts<'a> {
        Accounts { bus }
    }

    /// Shuts an account. The later time wins; with a later one a trial has failed.
    pub fn turned_away(&self, account: &str, until: u64) -> Result<(), BusError> {
        self.change(account, |known| {
            if known.is_some_and(|(known, _)| known.until >= until) {
                return Ok(Change::Leave(()));
            }
            let text = AccountText { v: FORMAT, account: account.to_owned(), until, trial: None };
            Ok(Change::Write(bytes(&text)?, ()))
        })
    }

    /// Whether a run may begin with this account now. The first to ask after its time has the trial.
    pub fn may_begin(&self, account: &str, run: &str, now: u64) -> Result<Gate, BusError> {
        self.change(account, |known| {
            let Some((mut text, at)) = known else { return Ok(Change::Leave(Gate::Open)) };
            let trial_ends = at.saturating_add(TRIAL_MS);
            match text.trial.as_deref() {
                Some(known) if known == run => return Ok(Change::Leave(Gate::Trial)),
                Some(_) if now < trial_ends => return Ok(Change::Leave(Gate::Shut { until: trial_ends })),
                Some(_) | None => {}
            }
            if now < text.until {
                return Ok(Change::Leave(Gate::Shut { until: text.until }));
            }
            text.trial = Some(run.to_owned());
            Ok(Change::Write(bytes(&text)?, Gate::Trial))
        })
    }

    /// Opens an account that served the run which tried it. Other runs may have been served before it was shut.
    pub fn served(&self, account: &str, run: &str) -> Result<(), BusError> {
        self.change(account, |known| match known {
            // An empty message: the key has no value any more.
            Some((text, _)) if text.trial.as_deref() == Some(run) => Ok(Change::Write(Vec::new(), ())),
            Some(_) | None => Ok(Change::Leave(())),
        })
    }

    /// All that are shut, by their names, and why others can't be read: every worker can write there, so what one wrote hides
    /// nothing of the others.
    pub fn all(&self) -> Result<(Vec<ShutAccount>, Vec<String>), BusError> {
        let (mut all, mut seq) = (BTreeMap::new(), 0);
        while let Some(kept) = self.bus.next_from(names::ACCOUNTS, "$KV.AF_ACCOUNT.>", seq)? {
            seq = kept.seq + 1;
            let shut = read(Some(&kept)).map(|found| {
                let AccountText { account, until, trial, .. } = found?.0;
                Some(ShutAccount { account, until, trial })
            });
            all.insert(kept.subject, shut);
        }
        let (mut shut, mut unreadable) = (Vec::new(), Vec::new());
        for found in all.into_values() {
            match found {
                Ok(account) => shut.extend(account),
                Err(error) => unreadable.push(error.to_string()),
            }
        }
        shut.sort_by(|one, other| one.account.cmp(&other.account));
        Ok((shut, unreadable))
    }

    fn change<T>(
        &self,
        account: &str,
        mut decide: impl FnMut(Option<(AccountText, u64)>) -> Result<Change<T>, BusError>,
    ) -> Result<T, BusError> {
        change(self.bus, &names::account(account), |kept| decide(read(kept)?))
    }
}

/// With the server's time of it, which is when a trial began.
fn read(kept: Option<&Kept>) -> Result<Option<(AccountText, u64)>, BusError> {
    let kept = kept.filter(|kept| !kept.bytes.is_empty());
    kept.map(|kept| Ok((read_text(kept)?, kept.at))).transpose()
}
