//! Being woken when a file of a folder changes. A convenience: not every system or file system reports it, and a report
//! may be lost, so a caller polls as well, less often.

use std::ffi::OsStr;
use std::path::Path;

use super::system;

/// A folder whose changes are reported.
pub struct FolderWatch(system::FolderChanges);

impl FolderWatch {
    /// Nothing where the folder is missing or the system reports no changes.
    pub fn of(folder: &Path) -> Option<FolderWatch> {
        system::FolderChanges::of(folder).map(FolderWatch)
    }

    /// Calls `told` whenever this file of the folder may be another than before, until it returns false or the folder is
    /// no longer there.
    pub fn follow(self, file: &OsStr, told: impl FnMut() -> bool) {
        self.0.follow(file, told);
    }
}
