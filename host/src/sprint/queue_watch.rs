//! Waiting for changes of the queue without reading it again and again.
//!
//! The system reports a change of the file where it can; a thread passes that on. Reports can be lost, and some file
//! systems make none, so the file is also looked at on every tick, which costs a few system calls: it is read only when
//! it is another file, or has another size or time than the one that was read last. A file that was written at the very
//! moment it was read could change once more without another time, so it is read again until its time is past.

use std::ffi::OsStr;
use std::fs::Metadata;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::drive::SprintMessage;
use super::queue::{Error, NAME, QueueFolder};
use super::queue_copy::QueueCopy;
use crate::platform::files as os;
use crate::platform::folder_watch::FolderWatch;

/// The coarsest time of any file system is two seconds.
const COARSEST_MS: u64 = 2_000;
/// How long a look may be away where the system reports changes, and where it does not.
const TICK: Duration = Duration::from_millis(500);
const TICK_ALONE: Duration = Duration::from_millis(50);

/// What tells one state of a file from another. The last time can't be set by hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileStamp {
    identity: (u64, u64),
    size: u64,
    times: [i64; 4],
}

impl FileStamp {
    pub(super) fn of(meta: &Metadata) -> FileStamp {
        FileStamp { identity: os::identity(meta), size: meta.len(), times: os::times(meta) }
    }

    /// Whether a change at this moment could leave the stamp as it is.
    pub(super) fn is_fresh(&self, now: u64) -> bool {
        let [_, _, seconds, nanoseconds] = self.times;
        let changed = u64::try_from(seconds.saturating_mul(1_000).saturating_add(nanoseconds / 1_000_000));
        changed.is_ok_and(|changed| now.abs_diff(changed) <= COARSEST_MS)
    }
}

/// What the file was when it was last read or written here.
#[derive(Debug, Clone, Copy)]
pub(super) struct LastLook {
    pub(super) stamp: Option<FileStamp>,
    pub(super) at: Instant,
    /// Every later change has another stamp.
    pub(super) is_sure: bool,
}

#[derive(Debug, Default)]
pub(super) struct QueueWatch {
    copy: Arc<Mutex<QueueCopy>>,
    /// The version of the copy that was reported last.
    reported: u64,
    is_told: Arc<AtomicBool>,
}

impl QueueWatch {
    /// Lets changes be reported from now on, if they are not yet.
    pub(super) fn listen(&self, place: &QueueFolder, post: &Sender<SprintMessage>) {
        if self.is_told.load(Ordering::Acquire) {
            return;
        }
        let file = place.file();
        let Some(watch) = file.parent().and_then(FolderWatch::of) else { return };
        self.is_told.store(true, Ordering::Release);
        let (is_told, post) = (Arc::clone(&self.is_told), post.clone());
        thread::spawn(move || {
            watch.follow(OsStr::new(NAME), || post.send(SprintMessage::QueueChanged).is_ok());
            is_told.store(false, Ordering::Release);
        });
    }

    /// How long the queue may go without a look.
    pub(super) fn tick(&self) -> Duration {
        if self.is_told.load(Ordering::Acquire) { TICK } else { TICK_ALONE }
    }

    /// The copy of the queue, which others here change too.
    pub(super) fn copy(&self) -> Arc<Mutex<QueueCopy>> {
        Arc::clone(&self.copy)
    }

    /// The queue as it was when last looked at, or written here.
    pub(super) fn known(&self) -> MutexGuard<'_, QueueCopy> {
        self.copy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue as it is now.
    pub(super) fn now(&self, place: &QueueFolder, now: u64) -> Result<MutexGuard<'_, QueueCopy>, Error> {
        let mut copy = self.known();
        let is_same = match copy.last {
            Some(last) if last.is_sure || last.at.elapsed() < TICK => last.stamp == place.stamp()?,
            Some(_) | None => false,
        };
        if !is_same {
            place.refresh(&mut copy, now)?;
        }
        Ok(copy)
    }

    /// Whether somebody else has changed the queue since the last time.
    pub(super) fn news(&mut self, place: &QueueFolder, now: u64) -> Result<bool, Error> {
        let version = self.now(place, now)?.version;
        let is_news = version != self.reported;
        self.reported = version;
        Ok(is_news)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use std::fs;
    use std::sync::mpsc::channel;

    use archeflow_core::sprint::queue::ItemStatus;

    use super::super::queue::Queue;
    use super::*;
    use crate::clock;

    const ITEM: &str =
        r#"{"id": "a", "project": "p", "task": "t", "priority": "P1", "estimate": "S", "status": "pending"}"#;

    fn queue_of(items: &str) -> (tempfile::TempDir, QueueFolder) {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("docs/orchestra")).unwrap();
        let place = QueueFolder::at(dir.path());
        fs::write(place.file(), format!("{{\"items\": [{items}]}}")).unwrap();
        (dir, place)
    }

    #[test]
    fn m_n8_a_queue_that_is_the_same_is_read_once_and_one_that_is_another_at_once() {
        let (_dir, place) = queue_of("");
        let mut watch = QueueWatch::default();
        // Long after it was written.
        let later = clock::now() + 60_000;
        let mut items = |place: &QueueFolder| {
            watch.news(place, later).unwrap().then(|| watch.known().queue.items().count())
        };
        assert_eq!(items(&place), Some(0));
        assert!((0..1_000).all(|_| items(&place).is_none()), "nothing changed");
        fs::write(place.file(), format!("{{\"items\": [{ITEM}]}}")).unwrap();
        assert_eq!(items(&place), Some(1), "written in place");
        assert_eq!(items(&place), None);
        let next = place.file().with_extension("next");
        fs::write(&next, format!("{{\"items\": [{ITEM}]}}")).unwrap();
        fs::rename(next, place.file()).unwrap();
        assert_eq!(items(&place), None, "another file with the same text");
        fs::remove_file(place.file()).unwrap();
        assert_eq!(items(&place), Some(0), "removed");
        assert_eq!(items(&place), None);
    }

    #[test]
    fn m_n8_a_file_that_could_change_without_another_time_is_read_again() {
        let (_dir, place) = queue_of("");
        let stamp = place.stamp().unwrap().unwrap();
        let changed = u64::try_from(stamp.times[2] * 1_000 + stamp.times[3] / 1_000_000).unwrap();
        for (now, fresh) in [
            (changed, true),
            (changed + 2_000, true),
            (changed + 2_001, false),
            (changed - 2_001, false),
            (0, false),
        ] {
            assert_eq!(stamp.is_fresh(now), fresh, "{now} against {changed}");
        }
        let mut watch = QueueWatch::default();
        assert!(watch.news(&place, changed).unwrap());
        let last = watch.known().last.unwrap();
        assert!(!last.is_sure, "it was just written");
        watch.known().last = Some(LastLook { at: last.at.checked_sub(TICK).unwrap(), ..last });
        assert!(!watch.news(&place, changed + 2_001).unwrap(), "it has the same text");
        assert!(watch.known().last.unwrap().is_sure, "it was read again");
    }

    /// What is written here is no news here, and is taken apart by nobody.
    #[test]
    fn m_n8_only_what_others_changed_is_news() {
        let (_dir, place) = queue_of(ITEM);
        let mut watch = QueueWatch::default();
        assert!(watch.news(&place, clock::now()).unwrap());
        let copy = watch.copy();
        let entry = |watch: &QueueWatch| watch.known().queue.claim_of("a").map(|claim| claim.sprint);
        place.change_copy(&copy, |queue| queue.claim("a", "ours")).unwrap();
        assert!(!watch.news(&place, clock::now()).unwrap(), "a claim of ours");
        assert_eq!(entry(&watch).as_deref(), Some("ours"));
        let text = fs::read_to_string(place.file()).unwrap();
        place.change_copy(&copy, |queue| queue.claim("a", "ours")).unwrap();
        assert_eq!(fs::read_to_string(place.file()).unwrap(), text, "nothing changed");
        let both = |queue: &mut Queue| {
            queue.settle("a", queue.claim_of("a").as_ref(), ItemStatus::Pending, "")?;
            queue.claim("a", "ours")
        };
        place.change_copy(&copy, both).unwrap();
        let text = fs::read_to_string(place.file()).unwrap();
        assert!(text.contains("\"version\": 3"), "changes that are written together count each: {text}");
        assert!(place.change_copy(&copy, |queue| queue.retry("a")).is_err());
        fs::write(place.file(), text.replace("ours", "another")).unwrap();
        place.change_copy(&copy, |queue| queue.claim("a", "third")).unwrap();
        assert!(watch.news(&place, clock::now()).unwrap(), "somebody else wrote it");
        assert_eq!(entry(&watch).as_deref(), Some("another"));
        assert_eq!(place.read().unwrap().claim_of("a").map(|claim| claim.sprint).as_deref(), Some("another"));
    }

    #[test]
    fn m_n8_a_queue_that_can_not_be_read_is_tried_again() {
        let (_dir, place) = queue_of("");
        let mut watch = QueueWatch::default();
        fs::write(place.file(), "{").unwrap();
        assert!(watch.news(&place, 0).is_err());
        assert!(watch.news(&place, 0).is_err());
        fs::write(place.file(), "{\"items\": []}").unwrap();
        assert!(watch.news(&place, 0).unwrap());
    }

    /// Whatever else is written beside it. Where the system reports nothing, a look is due sooner.
    #[test]
    fn m_n8_changes_are_reported_until_the_folder_is_gone() {
        let (dir, place) = queue_of("");
        let (post, inbox) = channel();
        let watch = QueueWatch::default();
        watch.listen(&place, &post);
        if cfg!(not(target_os = "linux")) {
            return assert_eq!(watch.tick(), TICK_ALONE);
        }
        assert_eq!(watch.tick(), TICK);
        fs::write(place.file().with_file_name("notes.md"), "nothing of ours").unwrap();
        fs::rename(place.file(), place.file().with_extension("old")).unwrap();
        assert!(matches!(inbox.recv().unwrap(), SprintMessage::QueueChanged));
        fs::rename(dir.path().join("docs/orchestra"), dir.path().join("docs/elsewhere")).unwrap();
        while watch.is_told.load(Ordering::Acquire) {
            thread::yield_now();
        }
        assert_eq!(watch.tick(), TICK_ALONE);
        fs::rename(dir.path().join("docs/elsewhere"), dir.path().join("docs/orchestra")).unwrap();
        watch.listen(&place, &post);
        assert_eq!(watch.tick(), TICK);
    }
}
