//! A copy of the queue in memory, with the text it was read from or written as. A long queue takes time to take apart, so
//! that is done only when the file has other bytes. They are compared, since a claim must not trust the time of a file.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::queue::{Error, PATIENCE, Queue, QueueFolder};
use super::queue_watch::{FileStamp, LastLook};
use crate::clock;
use crate::store::files;
use crate::store::lock::Lock;

/// The queue as this process last read or wrote it.
#[derive(Debug, Default)]
pub(super) struct QueueCopy {
    /// Whether it is the queue at all. It is not before the first look, and after an error.
    is_known: bool,
    /// Nothing where there is no file.
    text: Option<Vec<u8>>,
    pub(super) queue: Queue,
    /// How often it was found to be another than it was left here.
    pub(super) version: u64,
    pub(super) last: Option<LastLook>,
}

impl QueueFolder {
    /// Reads the file into a copy of it. It is taken apart only if somebody else changed it.
    pub(super) fn refresh(&self, copy: &mut QueueCopy, now: u64) -> Result<(), Error> {
        copy.last = None;
        let at = Instant::now();
        let (bytes, stamp) = match self.open()? {
            None => (None, None),
            Some(file) => {
                let io = |error| files::Error::io("read", &self.file(), error);
                let stamp = FileStamp::of(&file.metadata().map_err(io)?);
                (Some(self.bytes_of(file)?), Some(stamp))
            }
        };
        if !copy.is_known || bytes != copy.text {
            *copy = QueueCopy { version: copy.version + 1, ..QueueCopy::default() };
            copy.queue = bytes.as_deref().map_or(Ok(Queue::default()), |bytes| self.parse(bytes))?;
            (copy.text, copy.is_known) = (bytes, true);
        }
        let is_sure = !stamp.is_some_and(|stamp| stamp.is_fresh(now));
        copy.last = Some(LastLook { stamp, at, is_sure });
        Ok(())
    }

    /// The same as [`QueueFolder::change`], with a copy of the file as it was last read or written here.
    pub(super) fn change_copy<T>(
        &self,
        copy: &Mutex<QueueCopy>,
        change: impl FnOnce(&mut Queue) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let _lock = Lock::take(&self.sprints()?, "queue", PATIENCE)?;
        let mut copy = copy.lock().unwrap_or_else(PoisonError::into_inner);
        self.refresh(&mut copy, clock::now())?;
        let done = change(&mut copy.queue).and_then(|result| {
            if let Some(text) = self.write(&mut copy.queue)? {
                copy.text = Some(text.into_bytes());
                copy.last = Some(LastLook { stamp: self.stamp()?, at: Instant::now(), is_sure: false });
            }
            Ok(result)
        });
        if done.is_err() {
            // Half of it may be in the copy.
            *copy = QueueCopy { version: copy.version, ..QueueCopy::default() };
        }
        done
    }
}
