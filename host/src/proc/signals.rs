//! The signals by which a user or the system asks this program to end.
//!
//! They are handled, not blocked: a handler is reset by exec, so children start with the usual behaviour and there
//! is no mask to undo.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP};
use signal_hook::iterator::Signals;

/// Calls back on a thread of its own for every SIGINT, SIGTERM and SIGHUP, with the number of the signal.
///
/// The first should end the program cleanly, the second at once: counting is the caller's. A SIGHUP that was
/// ignored when the program started (`nohup`) stays ignored.
pub fn listen(mut on_signal: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    let mut wanted = vec![SIGINT, SIGTERM];
    if !is_ignored(SIGHUP) {
        wanted.push(SIGHUP);
    }
    let mut signals = Signals::new(wanted)?;
    let listen = move || signals.forever().for_each(&mut on_signal);
    thread::Builder::new().name("signals".into()).spawn(listen)?;
    Ok(())
}

/// Flags that are raised when the terminal asks this program to pause, and when it may go on. A face that has changed
/// how the terminal works must put that back before it pauses, so from here on pausing is its business.
pub fn pauses() -> io::Result<(Arc<AtomicBool>, Arc<AtomicBool>)> {
    let (asked, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    signal_hook::flag::register(SIGTSTP, Arc::clone(&asked))?;
    signal_hook::flag::register(SIGCONT, Arc::clone(&over))?;
    Ok((asked, over))
}

/// A program may be started with SIGCHLD ignored, and the kernel then throws away how its children ended. Any
/// handler at all undoes that.
pub(super) fn keep_exit_codes() {
    if is_ignored(SIGCHLD) {
        let _ = signal_hook::flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)));
    }
}

/// As the kernel tells it; a system that does not tell is taken to ignore nothing.
fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0);
    mask & (1 << (signal - 1)) != 0
}
