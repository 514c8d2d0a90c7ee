//! Changes of a folder, by inotify.

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use super::super::Errno;

/// A file that is written in place, replaced, made or removed.
const CHANGES: WatchFlags = WatchFlags::MODIFY
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);

/// The folder is gone, or another one is in its place.
const LOST: ReadFlags =
    ReadFlags::IGNORED.union(ReadFlags::MOVE_SELF).union(ReadFlags::DELETE_SELF).union(ReadFlags::UNMOUNT);

pub(in super::super) struct FolderChanges {
    fd: OwnedFd,
}

impl FolderChanges {
    pub(in super::super) fn of(folder: &Path) -> Option<FolderChanges> {
        let fd = inotify::init(CreateFlags::CLOEXEC).ok()?;
        inotify::add_watch(&fd, folder, CHANGES).ok()?;
        Some(FolderChanges { fd })
    }

    /// One call for everything that the kernel hands over at once.
    pub(in super::super) fn follow(self, file: &OsStr, mut told: impl FnMut() -> bool) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&self.fd, &mut buffer);
        let (mut is_news, mut is_lost) = (false, false);
        loop {
            match reader.next() {
                Ok(event) => {
                    let named = event.file_name().is_some_and(|name| name.to_bytes() == file.as_bytes());
                    is_lost |= event.events().intersects(LOST);
                    is_news |= named || is_lost || event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                }
                Err(Errno::INTR) => continue,
                Err(_) => is_lost = true,
            }
            if !is_lost && !reader.is_buffer_empty() {
                continue;
            }
            if (is_news && !told()) || is_lost {
                return;
            }
            is_news = false;
        }
    }
}
