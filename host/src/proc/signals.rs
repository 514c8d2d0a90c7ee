//! The signals by which a user or the system asks this program to end.
//!
//! They are handled, not blocked: a handler is reset by exec, so children start with the usual behaviour and there
//! is no mask to undo.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::platform::process::is_ignored;

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

/// For a view that has changed the terminal's modes: it must restore them before the program pauses.
pub struct Pauses {
    /// The terminal asked this program to pause. While this is held, the view does it.
    pub asked: Arc<AtomicBool>,
    /// The program was continued.
    pub over: Arc<AtomicBool>,
    free: Arc<AtomicBool>,
}

impl Pauses {
    /// From here on until [`Pauses::release`] a pause is only noted. There is one terminal, so there is one of these.
    pub fn hold() -> io::Result<&'static Pauses> {
        static ONLY: OnceLock<Pauses> = OnceLock::new();
        static MAKING: Mutex<()> = Mutex::new(());
        let _making = MAKING.lock();
        let pauses = match ONLY.get() {
            Some(pauses) => pauses,
            None => {
                let pauses = Pauses::listen()?;
                ONLY.get_or_init(|| pauses)
            }
        };
        for flag in [&pauses.free, &pauses.asked, &pauses.over] {
            flag.store(false, Ordering::SeqCst);
        }
        Ok(pauses)
    }

    /// Pauses are the system's business again.
    pub fn release(&self) {
        self.free.store(true, Ordering::SeqCst);
    }

    fn listen() -> io::Result<Pauses> {
        let [asked, over, free] = [const { AtomicBool::new(false) }; 3].map(Arc::new);
        flag::register_conditional_default(SIGTSTP, Arc::clone(&free))?;
        flag::register(SIGTSTP, Arc::clone(&asked))?;
        flag::register(SIGCONT, Arc::clone(&over))?;
        Ok(Pauses { asked, over, free })
    }
}

/// A write beyond the limit on file sizes fails like any other instead of ending the program: any handler does that, and
/// children start without it (S-10).
pub fn survive_size_limits() {
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
}

/// A program may be started with SIGCHLD ignored, and the kernel then throws away how its children ended. Any
/// handler at all undoes that.
pub(super) fn keep_exit_codes() {
    if is_ignored(SIGCHLD) {
        let _ = flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)));
    }
}
