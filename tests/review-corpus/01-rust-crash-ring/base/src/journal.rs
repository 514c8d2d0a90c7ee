//! Writes the ring to disk when the process is about to go down.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::ring::Ring;

pub struct Journal {
    folder: PathBuf,
    written: u32,
}

impl Journal {
    pub fn open(folder: &Path) -> io::Result<Journal> {
        std::fs::create_dir_all(folder)?;
        Ok(Journal { folder: folder.to_owned(), written: 0 })
    }

    /// One file per crash, named by its number.
    pub fn dump(&mut self, ring: &Ring) -> io::Result<PathBuf> {
        let path = self.folder.join(format!("crash-{:04}.log", self.written));
        let mut file = File::create(&path)?;
        for entry in ring.latest(ring.len()) {
            writeln!(file, "{} {}", entry.at_ms, entry.text)?;
        }
        file.sync_all()?;
        self.written += 1;
        Ok(path)
    }
}
