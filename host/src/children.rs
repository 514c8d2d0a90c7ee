//! Every process this program starts is started here, so that the sweep for what agents leave behind can tell
//! our own children from adopted ones.
//!
//! The program is a *subreaper*: a descendant that loses its parent becomes our child. While the registry is
//! locked nothing can be forked, so a listing taken under the lock is exact.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

static OURS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Starts a process and registers it as ours.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut ours = lock();
    let child = command.spawn()?;
    ours.insert(child.id());
    Ok(child)
}

/// Waits for a process started by [`spawn`] and forgets it.
pub fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    let status = child.wait();
    lock().remove(&child.id());
    status
}

/// The processes we started and have not waited for; nothing is forked while the guard is held.
pub fn lock() -> MutexGuard<'static, BTreeSet<u32>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}
