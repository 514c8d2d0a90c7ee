//! What runs share about a provider account (C6). It only avoids attempts that would be refused, so
//! errors while reading or writing it are ignored.

use crate::clock;
use crate::store::breakers;
use crate::world::World;

/// For how many milliseconds the account is limited by what another run found out.
pub(super) fn shut_for(world: &World, account: &str) -> Option<u64> {
    breakers::shut_for(&world.state, account, &world.run_id, clock::now())
}

/// This run has found it limited.
pub(super) fn share_limit(world: &World, account: &str, reopens_in_ms: u64) {
    if !account.is_empty() {
        let reopens_at = clock::now().saturating_add(reopens_in_ms);
        let _ = breakers::open(&world.state, account, reopens_at, &world.run_id);
    }
}

/// It has served this run.
pub(super) fn served(world: &World, account: &str) {
    breakers::close(&world.state, account);
}
