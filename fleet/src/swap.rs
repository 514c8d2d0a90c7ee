//! Changes of shared state under one key, by compare-and-swap.

use std::time::Duration;

use crate::bus::{Bus, BusError, Expect, Kept, Put, PutEnd};

/// Every refusal means that somebody else succeeded, so this many are a fault.
const MOST_REFUSALS: u64 = 2_000;
const MOST_UNANSWERED: usize = 3;
/// After a refusal, in milliseconds: a server that lags behind the others needs a moment.
const LONGEST_PAUSE: u64 = 20;

/// What becomes of a key.
pub(crate) enum Change<T> {
    Leave(T),
    Write(Vec<u8>, T),
}

/// Reads, decides and writes until nobody else wrote in between. After a lost answer it is read and decided again, so `decide`
/// must leave what already is as it wants it; that is how a change whose answer was lost is recognised.
pub(crate) fn change<T>(
    bus: &dyn Bus,
    subject: &str,
    mut decide: impl FnMut(Option<&Kept>) -> Result<Change<T>, BusError>,
) -> Result<T, BusError> {
    let (mut refusals, mut unanswered) = (0, 0);
    loop {
        let kept = bus.last(subject);
        let put = kept.and_then(|kept| match decide(kept.as_ref())? {
            Change::Leave(end) => Ok((PutEnd::Kept(0), end)),
            Change::Write(bytes, end) => {
                let expect = Expect::Last(kept.map_or(0, |kept| kept.seq));
                let put = bus.put(Put { subject, expect, id: None, headers: &[], bytes: &bytes })?;
                Ok((put, end))
            }
        });
        match put {
            Ok((PutEnd::Kept(_), end)) => return Ok(end),
            Ok((PutEnd::Refused, _)) if refusals < MOST_REFUSALS => {
                refusals += 1;
                std::thread::sleep(Duration::from_millis(refusals.min(LONGEST_PAUSE)));
            }
            Ok((PutEnd::Refused, _)) => {
                return Err(BusError::NoAnswer(format!("{subject} changes faster than it can be read")));
            }
            Err(BusError::NoAnswer(_)) if unanswered < MOST_UNANSWERED => unanswered += 1,
            Err(error) => return Err(error),
        }
    }
}
