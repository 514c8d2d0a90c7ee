//! Every process this program starts is started here, so that the sweep for what agents leave behind can tell
//! our own children from adopted ones.
//!
//! The program is a *subreaper*: a descendant that loses its parent becomes our child. While the registry is
//! locked nothing can be forked, so a listing taken under the lock is exact.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{process, watcher};

static OURS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Starts a process and registers it as ours.
pub fn spawn(command: &mut Command) -> io::Result<Child> {
    let mut ours = lock();
    let child = command.spawn()?;
    ours.insert(child.id());
    Ok(child)
}

/// Waits for a process started by [`spawn`] and forgets it.
///
/// The long wait leaves the dead process in the table; reaping and forgetting then happen together under the
/// lock, so the number cannot be given to a new child in between.
pub fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    drop(child.stdin.take());
    await_death(child.id());
    let mut ours = lock();
    let status = child.wait();
    ours.remove(&child.id());
    watcher::uncover(child.id());
    status
}

/// The processes we started and have not waited for; nothing is forked while the guard is held.
pub fn lock() -> MutexGuard<'static, BTreeSet<u32>> {
    OURS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks every process we started to end. None of them was waited for yet, so no number is another process's by now.
pub fn ask_all_to_end() {
    let ours = lock();
    for pid in ours.iter().filter_map(|id| process::numbered(*id)) {
        // It has ended already: nothing to ask.
        let _ = process::kill_process(pid, process::Signal::TERM);
    }
}

/// Waits till it has ended and leaves it in the table.
pub fn await_death(id: u32) {
    if let Some(pid) = process::numbered(id) {
        process::await_death(pid);
    }
}
