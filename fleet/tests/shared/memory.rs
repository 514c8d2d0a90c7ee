//! A bus in memory that loses requests and answers.

use std::sync::mpsc::Receiver;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use archeflow_fleet::bus::{Bus, BusError, BusSeq, Delivery, Expect, Heard, Kept, Lease, Put, PutEnd};

#[derive(Default)]
pub(crate) struct MemoryBus(Mutex<State>);

#[derive(Default)]
struct State {
    kept: Vec<Kept>,
    /// In milliseconds since 1970.
    now: u64,
    chance: u64,
    /// How many of a hundred requests are lost, and as many answers.
    lost: u64,
}

impl State {
    fn is_lost(&mut self) -> bool {
        self.chance =
            self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) % 100 < self.lost
    }
}

impl MemoryBus {
    pub(crate) fn losing(seed: u64, lost: u64) -> MemoryBus {
        MemoryBus(Mutex::new(State { chance: seed, lost, ..State::default() }))
    }

    pub(crate) fn lose_no_more(&self) {
        self.state().lost = 0;
    }

    pub(crate) fn set_now(&self, now: u64) {
        self.state().now = now;
    }

    pub(crate) fn messages(&self) -> usize {
        self.state().kept.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call<T>(&self, act: impl FnOnce(&mut State) -> T) -> Result<T, BusError> {
        let mut state = self.state();
        let lost = Err(BusError::NoAnswer("lost".to_owned()));
        if state.is_lost() {
            return lost;
        }
        let end = act(&mut state);
        if state.is_lost() { lost } else { Ok(end) }
    }
}

fn matches(pattern: &str, subject: &str) -> bool {
    let (mut pattern, mut subject) = (pattern.split('.'), subject.split('.'));
    loop {
        match (pattern.next(), subject.next()) {
            (Some(">"), Some(_)) | (None, None) => return true,
            (Some(wanted), Some(part)) if wanted == "*" || wanted == part => {}
            (Some(_), Some(_)) | (Some(_), None) | (None, Some(_)) => return false,
        }
    }
}

impl Bus for MemoryBus {
    fn put(&self, put: Put<'_>) -> Result<PutEnd, BusError> {
        self.call(|state| {
            let last = state.kept.iter().rev().find(|kept| kept.subject == put.subject);
            let last = last.map_or(0, |kept| kept.seq);
            if matches!(put.expect, Expect::Last(expected) if expected != last) {
                return PutEnd::Refused;
            }
            let seq = state.kept.len() as BusSeq + 1;
            let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            let headers = put.headers.iter().map(own).collect();
            let (subject, bytes, at) = (put.subject.to_owned(), put.bytes.to_vec(), state.now);
            state.kept.push(Kept { subject, seq, at, headers, bytes });
            PutEnd::Kept(seq)
        })
    }

    fn last(&self, subject: &str) -> Result<Option<Kept>, BusError> {
        self.call(|state| state.kept.iter().rev().find(|kept| kept.subject == subject).cloned())
    }

    fn next_from(&self, _stream: &str, subject: &str, seq: BusSeq) -> Result<Option<Kept>, BusError> {
        self.call(|state| {
            state.kept.iter().find(|kept| kept.seq >= seq && matches(subject, &kept.subject)).cloned()
        })
    }

    fn take(&self, _queue: &str, _wait: Duration) -> Result<Option<Delivery>, BusError> {
        Ok(None)
    }

    fn lease(&self, _token: &str, _lease: Lease) -> Result<(), BusError> {
        Ok(())
    }

    fn say(&self, _subject: &str, _bytes: &[u8]) -> Result<(), BusError> {
        Ok(())
    }

    fn hear(&self, _subject: &str) -> Result<Receiver<Heard>, BusError> {
        Err(BusError::Wrong("nothing is said here".to_owned()))
    }
}
