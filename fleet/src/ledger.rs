//! Budgets that many sprints spend from. Money is reserved before a run is ordered and settled with its report, both under the
//! name of the run, so repeating either changes nothing.
//!
//! What a run has spent must be known for as long as the ledger is there: a run may be resumed after weeks and reports its
//! whole cost, a conductor that took over settles again what it finds in its log, and after the server has lost its data
//! settling everything again must give the true sum. All of it in one message would soon be too large. So the message lists
//! the runs settled last; older ones are moved to keys of their own. A run's key is written before the message without the run
//! is, so who reads the message first and the key afterwards finds the run in one of them; and the message is only replaced if
//! it is still the one that was read.

use std::collections::BTreeMap;

use archeflow_core::model::Money;
use serde::{Deserialize, Serialize};

use crate::bus::{Bus, BusError, Kept};
use crate::names;
use crate::swap::{Change, change};

const FORMAT: u32 = 1;
/// How many settled runs a ledger lists, and how many of them are moved when there are more. A server that lags behind may not
/// have the key of a run that was moved just now; with this many runs in between it has.
const LISTED: usize = 200;
const MOVED: usize = 100;

/// A ledger on the server.
pub struct Ledger<'a> {
    bus: &'a dyn Bus,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// Reserved, now or before.
    Held,
    /// Nothing was reserved; this much is free.
    Short { free: Money },
}

/// What a ledger says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerState {
    pub name: String,
    /// Nothing for unlimited.
    pub cap: Option<Money>,
    pub spent: Money,
    /// Reserved, by run.
    pub held: BTreeMap<String, Money>,
    /// The runs settled last with their whole cost, oldest first.
    settled: Vec<(String, Money)>,
}

impl LedgerState {
    fn new(name: &str, cap: Option<Money>) -> LedgerState {
        let (held, settled) = (BTreeMap::new(), Vec::new());
        LedgerState { name: name.to_owned(), cap, spent: Money::ZERO, held, settled }
    }

    /// What can still be reserved; nothing for unlimited.
    pub fn free(&self) -> Option<Money> {
        let gone = self.held.values().copied().sum::<Money>().plus(self.spent);
        self.cap.map(|cap| Money(cap.0.saturating_sub(gone.0)))
    }
}

impl<'a> Ledger<'a> {
    pub fn new(bus: &'a dyn Bus, name: &str) -> Ledger<'a> {
        Ledger { bus, name: name.to_owned() }
    }

    /// Reserves what a run may spend. A run that was settled and is resumed is held again, for what it may still spend.
    pub fn reserve(&self, run: &str, most: Money) -> Result<Reserved, BusError> {
        self.change(|known| {
            // Unlimited, because the server has lost what it knew, would be a surprise.
            let mut state = known.ok_or_else(|| {
                BusError::Wrong(format!(
                    "the server has no budget '{}': none was made, or its data was lost; set it: archeflow fleet budget",
                    self.name
                ))
            })?;
            if state.held.contains_key(run) {
                return Ok((None, Reserved::Held));
            }
            if let Some(free) = state.free().filter(|free| *free < most) {
                return Ok((None, Reserved::Short { free }));
            }
            state.held.insert(run.to_owned(), most);
            Ok((Some(state), Reserved::Held))
        })
    }

    /// Notes what a run has spent so far, all in all, and frees what is reserved for it.
    pub fn settle(&self, run: &str, spent: Money) -> Result<(), BusError> {
        self.change(|known| {
            // A server that has lost its data has lost the cap too. Nothing is free until somebody sets it again.
            let mut state = known.unwrap_or_else(|| LedgerState::new(&self.name, Some(Money::ZERO)));
            let listed = state.settled.iter().position(|(known, _)| known == run);
            let before = match listed {
                Some(at) => state.settled.remove(at).1,
                None => self.moved(run)?,
            };
            let held = state.held.remove(run);
            if held.is_none() && spent <= before {
                return Ok((None, ()));
            }
            state.spent = state.spent.plus(Money(spent.0.saturating_sub(before.0)));
            state.settled.push((run.to_owned(), spent.max(before)));
            if state.settled.len() > LISTED {
                for (run, spent) in state.settled.drain(..MOVED) {
                    self.move_out(&run, spent)?;
                }
            }
            Ok((Some(state), ()))
        })
    }

    /// Sets what may be spent, all in all; nothing for unlimited. Makes the ledger if there is none.
    pub fn set_cap(&self, cap: Option<Money>) -> Result<(), BusError> {
        self.change(|known| match known {
            Some(state) if state.cap == cap => Ok((None, ())),
            Some(state) => Ok((Some(LedgerState { cap, ..state }), ())),
            None => Ok((Some(LedgerState::new(&self.name, cap)), ())),
        })
    }

    /// Nothing if there is no such ledger.
    pub fn read(&self) -> Result<Option<LedgerState>, BusError> {
        self.bus.last(&names::ledger(&self.name))?.as_ref().map(state).transpose()
    }

    /// All ledgers of a fleet, by their names.
    pub fn all(bus: &dyn Bus) -> Result<Vec<LedgerState>, BusError> {
        let (mut all, mut seq) = (BTreeMap::new(), 0);
        // One part only: keys of runs have another behind it.
        while let Some(kept) = bus.next_from(names::LEDGERS, "$KV.AF_LEDGER.*", seq)? {
            seq = kept.seq + 1;
            let state = state(&kept)?;
            all.insert(state.name.clone(), state);
        }
        Ok(all.into_values().collect())
    }

    fn change<T>(
        &self,
        mut decide: impl FnMut(Option<LedgerState>) -> Result<(Option<LedgerState>, T), BusError>,
    ) -> Result<T, BusError> {
        change(self.bus, &names::ledger(&self.name), |kept| match decide(kept.map(state).transpose()?)? {
            (Some(next), end) => Ok(Change::Write(bytes(&LedgerText::from(next))?, end)),
            (None, end) => Ok(Change::Leave(end)),
        })
    }

    /// What a run that is no longer listed has spent.
    fn moved(&self, run: &str) -> Result<Money, BusError> {
        let kept = self.bus.last(&names::ledger_run(&self.name, run))?;
        let text = kept.as_ref().map(read_text::<SettledText>).transpose()?;
        Ok(text.map_or(Money::ZERO, |text| text.spent.0))
    }

    fn move_out(&self, run: &str, spent: Money) -> Result<(), BusError> {
        let subject = names::ledger_run(&self.name, run);
        change(self.bus, &subject, |kept| {
            let before = kept.map(read_text::<SettledText>).transpose()?;
            // Another one may have moved a later state of it already.
            if before.is_some_and(|before| before.spent.0 >= spent) {
                return Ok(Change::Leave(()));
            }
            let text = SettledText { v: FORMAT, run: run.to_owned(), spent: Dollars(spent) };
            Ok(Change::Write(bytes(&text)?, ()))
        })
    }
}

/// Money as exact text.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
struct Dollars(Money);

impl From<Dollars> for String {
    fn from(dollars: Dollars) -> String {
        dollars.0.written()
    }
}

impl TryFrom<String> for Dollars {
    type Error = String;

    fn try_from(text: String) -> Result<Dollars, String> {
        Money::parse(&text).map(Dollars).ok_or_else(|| format!("'{text}' is no amount of money"))
    }
}

#[derive(Serialize, Deserialize)]
struct LedgerText {
    v: u32,
    name: String,
    cap: Option<Dollars>,
    spent: Dollars,
    held: BTreeMap<String, Dollars>,
    settled: Vec<(String, Dollars)>,
}

#[derive(Serialize, Deserialize)]
struct SettledText {
    v: u32,
    run: String,
    spent: Dollars,
}

impl From<LedgerState> for LedgerText {
    fn from(state: LedgerState) -> LedgerText {
        LedgerText {
            v: FORMAT,
            name: state.name,
            cap: state.cap.map(Dollars),
            spent: Dollars(state.spent),
            held: state.held.into_iter().map(|(run, money)| (run, Dollars(money))).collect(),
            settled: state.settled.into_iter().map(|(run, money)| (run, Dollars(money))).collect(),
        }
    }
}

impl From<LedgerText> for LedgerState {
    fn from(text: LedgerText) -> LedgerState {
        LedgerState {
            name: text.name,
            cap: text.cap.map(|cap| cap.0),
            spent: text.spent.0,
            held: text.held.into_iter().map(|(run, money)| (run, money.0)).collect(),
            settled: text.settled.into_iter().map(|(run, money)| (run, money.0)).collect(),
        }
    }
}

fn state(kept: &Kept) -> Result<LedgerState, BusError> {
    read_text::<LedgerText>(kept).map(LedgerState::from)
}

/// What can't be read is neither guessed nor overwritten.
pub(crate) fn read_text<T: for<'de> Deserialize<'de>>(kept: &Kept) -> Result<T, BusError> {
    #[derive(Deserialize)]
    struct Version {
        v: u32,
    }
    let wrong = |error: serde_json::Error| {
        BusError::Wrong(format!("{} on the server can't be read: {error}", kept.subject))
    };
    let version: Version = serde_json::from_slice(&kept.bytes).map_err(wrong)?;
    if version.v > FORMAT {
        let v = version.v;
        return Err(BusError::Wrong(format!(
            "{} on the server has format {v}; update archeflow on this machine",
            kept.subject
        )));
    }
    serde_json::from_slice(&kept.bytes).map_err(wrong)
}

pub(crate) fn bytes(text: &impl Serialize) -> Result<Vec<u8>, BusError> {
    serde_json::to_vec(text).map_err(|error| BusError::Wrong(format!("it can't be written: {error}")))
}
