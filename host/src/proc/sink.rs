//! Where output goes, and how much of it is kept: the head as it comes, the last part from a ring, and in between
//! a line with the number of bytes left out. Memory stays small whatever the child prints; bytes are never changed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use super::ring::Ring;
use crate::platform::files::with_mode;

/// At most this much of the end of a stream is held in memory.
const TAIL: u64 = 1024 * 1024;

const FILE: u64 = 64 * 1024 * 1024;
const MEMORY: u64 = 1024 * 1024;

/// Where one output stream goes, and the most that is kept of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// A new file, readable by the owner alone; what was there is replaced.
    File { path: PathBuf, keep: u64 },
    /// Handed back in [`SinkReport::bytes`].
    Memory { keep: u64 },
}

impl Sink {
    /// A file of at most 64 MiB.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::File { path: path.into(), keep: FILE }
    }

    /// At most 1 MiB in memory.
    pub fn memory() -> Self {
        Self::Memory { keep: MEMORY }
    }

    /// Counts the bytes and keeps none.
    pub fn nothing() -> Self {
        Self::Memory { keep: 0 }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SinkReport {
    /// What the child printed.
    pub bytes_total: u64,
    /// What of it was kept; the line that marks the gap is not counted.
    pub bytes_kept: u64,
    pub truncated: bool,
    /// The kept bytes, when the sink is memory.
    pub bytes: Vec<u8>,
    /// Why the file could not be written to its end (a full disk); the child was not disturbed by it.
    pub error: Option<String>,
}

/// Takes in one stream.
pub(super) struct Keeper {
    head: Head,
    /// How much more the head may take.
    room: u64,
    tail: Ring,
    total: u64,
    /// How much came after the head was full.
    beyond: u64,
    kept: u64,
    error: Option<io::Error>,
}

enum Head {
    File(File),
    Memory(Vec<u8>),
}

impl Keeper {
    pub(super) fn open(sink: &Sink) -> io::Result<Self> {
        let (head, keep) = match sink {
            Sink::File { path, keep } => {
                let mut options = OpenOptions::new();
                options.write(true).create(true).truncate(true);
                let file = with_mode(&mut options, 0o600).open(path);
                let named =
                    |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
                (Head::File(file.map_err(named)?), *keep)
            }
            Sink::Memory { keep } => (Head::Memory(Vec::new()), *keep),
        };
        let tail = TAIL.min(keep / 2);
        let ring = Ring::new(usize::try_from(tail).unwrap_or(0));
        Ok(Self { head, room: keep - tail, tail: ring, total: 0, beyond: 0, kept: 0, error: None })
    }

    pub(super) fn keep(&mut self, chunk: &[u8]) {
        self.total += chunk.len() as u64;
        let fits = usize::try_from(self.room).unwrap_or(usize::MAX).min(chunk.len());
        let (first, rest) = chunk.split_at(fits);
        self.room -= fits as u64;
        self.beyond += rest.len() as u64;
        self.kept += self.write(first);
        self.tail.push(rest);
    }

    pub(super) fn close(mut self) -> SinkReport {
        let tail = std::mem::replace(&mut self.tail, Ring::new(0));
        let gap = self.beyond - tail.len() as u64;
        if gap > 0 {
            self.write(format!("\n[archeflow: {gap} bytes left out]\n").as_bytes());
        }
        for run in tail.runs() {
            self.kept += self.write(run);
        }
        let bytes = match self.head {
            Head::Memory(bytes) => bytes,
            Head::File(_) => Vec::new(),
        };
        SinkReport {
            bytes_total: self.total,
            bytes_kept: self.kept,
            truncated: self.kept < self.total,
            bytes,
            error: self.error.map(|error| error.to_string()),
        }
    }

    /// How many bytes are now kept. After the first failure nothing more is tried: a file with a hole in an
    /// unknown place would be worse than one that ends early.
    fn write(&mut self, bytes: &[u8]) -> u64 {
        if self.error.is_some() {
            return 0;
        }
        let written = match &mut self.head {
            Head::File(file) => file.write_all(bytes),
            Head::Memory(memory) => memory.write_all(bytes),
        };
        match written {
            Ok(()) => bytes.len() as u64,
            Err(error) => {
                self.error = Some(error);
                0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(keep: u64, stream: &[u8], chunk: usize) -> io::Result<SinkReport> {
        let mut keeper = Keeper::open(&Sink::Memory { keep })?;
        stream.chunks(chunk).for_each(|piece| keeper.keep(piece));
        Ok(keeper.close())
    }

    #[test]
    fn what_fits_is_whole_for_every_chunking() -> io::Result<()> {
        let stream: Vec<u8> = (0..=255).collect();
        for keep in [256, 257, 300, 511, 512, 10_000] {
            for chunk in 1..=17 {
                let report = fill(keep, &stream, chunk)?;
                assert_eq!(report.bytes, stream, "keep {keep}, chunk {chunk}");
                assert!(!report.truncated);
            }
        }
        Ok(())
    }

    #[test]
    fn what_does_not_fit_is_head_gap_and_tail() -> io::Result<()> {
        let stream: Vec<u8> = (0..=255).collect();
        for (keep, head, tail) in
            [(0, 0, 0), (1, 1, 0), (2, 1, 1), (17, 9, 8), (100, 50, 50), (255, 128, 127)]
        {
            for chunk in 1..=40 {
                let report = fill(keep, &stream, chunk)?;
                let mut expected = stream[..head].to_vec();
                expected.extend(format!("\n[archeflow: {} bytes left out]\n", 256 - keep).as_bytes());
                expected.extend(&stream[256 - tail..]);
                assert_eq!(report.bytes, expected, "keep {keep}, chunk {chunk}");
                assert_eq!((report.bytes_total, report.bytes_kept, report.truncated), (256, keep, true));
            }
        }
        Ok(())
    }

    #[test]
    fn m_b5_a_full_disk_is_reported_and_the_count_continues() -> io::Result<()> {
        let mut keeper = Keeper::open(&Sink::file("/dev/full"))?;
        keeper.keep(b"one");
        keeper.keep(b"two");
        let report = keeper.close();
        assert_eq!((report.bytes_total, report.bytes_kept, report.truncated), (6, 0, true));
        assert!(report.error.is_some());
        Ok(())
    }
}
