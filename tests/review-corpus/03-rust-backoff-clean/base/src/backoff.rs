//! How long to wait before the next try.

use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub struct Policy {
    pub first_ms: u64,
    pub most_ms: u64,
    pub tries: u32,
}

impl Policy {
    pub const GENTLE: Policy = Policy { first_ms: 200, most_ms: 30_000, tries: 6 };
}

/// Calls `attempt` until it succeeds or the tries are used up.
pub fn with_retries<T, E>(
    policy: Policy,
    mut wait: impl FnMut(Duration),
    mut attempt: impl FnMut(u32) -> Result<T, E>,
) -> Result<T, E> {
    let mut number = 0;
    loop {
        match attempt(number) {
            Ok(value) => return Ok(value),
            Err(error) if number + 1 >= policy.tries => return Err(error),
            Err(_) => {
                let factor = 1_u64.checked_shl(number).unwrap_or(u64::MAX);
                let pause = policy.first_ms.saturating_mul(factor).min(policy.most_ms);
                wait(Duration::from_millis(pause));
                number += 1;
            }
        }
    }
}
