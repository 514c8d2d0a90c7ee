//! The threads that perform orders, and what can be done beside them. A thread that has finished waits for more work,
//! since starting one takes longer than handing work over.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::cleaning::disk;

type Work = Box<dyn FnOnce() + Send>;

/// Reading an index calls itself once for each folder in a folder, as deep as a path can be. What is not used costs
/// nothing.
const STACK: usize = 4 << 20;

/// Threads that wait for work, each by the channel it waits at.
struct IdleThreads(Mutex<Vec<Sender<Work>>>);

static IDLE: IdleThreads = IdleThreads(Mutex::new(Vec::new()));

/// Does this on a thread of its own, which may have done other work before.
pub(crate) fn start(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    IDLE.start(Box::new(work))
}

impl IdleThreads {
    fn start(&'static self, mut work: Work) -> io::Result<()> {
        let idle = self.list().pop();
        if let Some(idle) = idle {
            match idle.send(work) {
                Ok(()) => return Ok(()),
                Err(unsent) => work = unsent.0,
            }
        }
        let (send, receive) = channel();
        let thread = std::thread::Builder::new().name("hand".to_owned()).stack_size(STACK);
        thread.spawn(move || self.serve(work, &send, &receive)).map(drop)
    }

    fn serve(&self, first: Work, send: &Sender<Work>, receive: &Receiver<Work>) {
        first();
        loop {
            self.list().push(send.clone());
            let Ok(work) = receive.recv() else { return };
            work();
        }
    }

    fn list(&self) -> MutexGuard<'_, Vec<Sender<Work>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How many files are synced at once besides one.
const HELPERS: usize = 3;

/// Syncs files that were written. The file system puts syncs that it is asked for at the same time on disk together.
pub(crate) fn sync_together(mut files: Vec<File>) -> io::Result<()> {
    let Some(own) = files.pop() else { return Ok(()) };
    let helpers = files.len().min(HELPERS);
    let left = Arc::new(Mutex::new(files));
    let (send, receive) = channel();
    let mut begun = 0;
    for _ in 0..helpers {
        let (left, send) = (Arc::clone(&left), send.clone());
        begun += usize::from(start(move || drop(send.send(sync_each(&left)))).is_ok());
    }
    let mut done = own.sync_all().and_then(|()| sync_each(&left));
    for _ in 0..begun {
        // A helper that panicked has synced nothing.
        let lost = || Err(io::Error::other("a thread that syncs has ended"));
        let helped = receive.recv_timeout(SYNC_AT_MOST).unwrap_or_else(|_| lost());
        done = done.and(helped);
    }
    done
}

/// A disk that takes longer has lost what was written.
const SYNC_AT_MOST: Duration = Duration::from_secs(600);

fn sync_each(files: &Mutex<Vec<File>>) -> io::Result<()> {
    let next = || files.lock().unwrap_or_else(PoisonError::into_inner).pop();
    while let Some(file) = next() {
        file.sync_all()?;
    }
    Ok(())
}

/// How many folders are being removed.
static REMOVALS: (Mutex<usize>, Condvar) = (Mutex::new(0), Condvar::new());

/// Removes a folder while the run goes on. Its name is free at once.
pub(crate) fn remove_folder(folder: &Path) {
    let Ok(gone) = disk::put_aside(folder) else {
        let _ = disk::remove(folder);
        return;
    };
    *removals() += 1;
    let removal = Removal(gone);
    // Dropped, and with that done, by whichever side has it last.
    let _ = start(move || drop(removal));
}

struct Removal(PathBuf);

impl Drop for Removal {
    fn drop(&mut self) {
        let _ = disk::remove(&self.0);
        *removals() -= 1;
        REMOVALS.1.notify_all();
    }
}

fn removals() -> MutexGuard<'static, usize> {
    REMOVALS.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits till no folder is being removed any more.
pub(crate) fn all_removed(at_most: Duration) {
    let wait = REMOVALS.1.wait_timeout_while(removals(), at_most, |count| *count > 0);
    drop(wait);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i15_a_thread_that_has_finished_is_used_again() {
        static OWN: IdleThreads = IdleThreads(Mutex::new(Vec::new()));
        let (send, receive) = channel();
        let mut threads = std::collections::HashSet::new();
        for _ in 0..8 {
            let send = send.clone();
            let work = move || send.send(std::thread::current().id()).expect("the test waits");
            OWN.start(Box::new(work)).expect("a thread");
            threads.insert(receive.recv().expect("it ran"));
            while OWN.list().is_empty() {
                std::thread::yield_now();
            }
        }
        assert_eq!(threads.len(), 1, "{threads:?}");
    }

    #[test]
    fn i15_a_panic_costs_one_thread_and_no_work() {
        let (send, receive) = channel();
        start(|| panic!("as expected")).expect("a thread");
        start(move || send.send(()).expect("the test waits")).expect("a thread");
        receive.recv().expect("it ran");
    }

    #[test]
    fn i15_a_folder_is_free_at_once_and_gone_in_the_end() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("scratch");
        for _ in 0..3 {
            std::fs::create_dir_all(folder.join("deep/er")).expect("made");
            std::fs::write(folder.join("deep/file"), "x").expect("written");
            remove_folder(&folder);
            assert!(!folder.exists());
        }
        all_removed(Duration::from_secs(60));
        assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 0);
    }
}
