//! How long an account is avoided that has refused a request, and when that is too long to wait for (C6,
//! M-G3, M-G4). There is no clock and no chance in it: what looks like chance is drawn from the name of the run and how
//! often it was refused.

use crate::model::Retries;

/// What follows from an account's refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerAction {
    /// Retry after N milliseconds.
    Wait(u64),
    /// The run ends, and can be resumed after N milliseconds, where that is known.
    Park(Option<u64>),
}

/// What is known of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountRefusal {
    /// The account has nothing left, rather than no time.
    pub quota: bool,
    /// The time after which the provider serves again, by its own account.
    pub told_ms: Option<u64>,
    /// How often in a row, this time included, the same agent was refused.
    pub times: u32,
    /// The account has ended this run before, and served no request since.
    pub parked: bool,
}

pub fn verdict(refusal: AccountRefusal, retries: &Retries, salt: u64) -> BreakerAction {
    let waits = u32::try_from(retries.busy_waits_ms.len()).unwrap_or(u32::MAX);
    // After a break there is one more attempt, not the whole ramp again.
    let patience = if refusal.parked { waits.min(1) } else { waits };
    if refusal.quota || refusal.times > patience {
        return BreakerAction::Park(refusal.told_ms);
    }
    let wait = wait(refusal, retries, salt);
    if wait > retries.park_after_ms { BreakerAction::Park(Some(wait)) } else { BreakerAction::Wait(wait) }
}

/// The provider's word, but never less than our own ramp: a provider that repeatedly says "at once" is not to be
/// believed.
pub fn wait(refusal: AccountRefusal, retries: &Retries, salt: u64) -> u64 {
    let step = refusal.times.saturating_sub(1) as usize;
    let own = retries.busy_waits_ms.get(step).map_or(0, |wait| jittered(*wait, retries.jitter_percent, salt));
    refusal.told_ms.unwrap_or(0).max(own)
}

/// Up to N percent more.
fn jittered(wait: u64, percent: u32, salt: u64) -> u64 {
    let most = wait.saturating_mul(u64::from(percent)) / 100;
    wait.saturating_add(if most == 0 { 0 } else { salt % (most + 1) })
}

/// A number that is the same for the same run and refusal, and differs between runs (FNV-1a).
pub fn salt(name: &str, times: u32) -> u64 {
    let bytes = name.bytes().chain(times.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
