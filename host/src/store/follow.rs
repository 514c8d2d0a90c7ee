//! A journal read as it grows, for viewers of a run that another process drives.
//!
//! The same reader as for a whole journal, one line at a time: every line is checked against the one before it, and
//! nothing is read twice. It takes no lock and writes nothing. An unfinished write at the end is left alone until it
//! is finished or cut off; a flaw with lines after it is damage.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::files;
use super::frame::{self, LineFault, Read};
use super::journal::{Error, existing, locate};
use super::verify::{LONGEST, step};
use crate::platform::files::{self as os, OFlags};

/// How much is read at once. Longer than the longest line, so that every reading brings at least one.
const CHUNK: usize = 2 * LONGEST;

/// The position up to which a journal was read.
#[derive(Debug)]
pub struct Follower {
    file: File,
    path: PathBuf,
    run_id: String,
    /// Where the lines that were read end.
    end: u64,
    lines: u64,
    /// The last line with its number.
    last: Option<(Vec<u8>, u64)>,
    buffer: Vec<u8>,
}

impl Follower {
    pub fn open(events: &Path, run_id: &str) -> Result<Follower, Error> {
        let (dir, name, path) = locate(events, run_id)?;
        let file = existing(&dir, &name, &path, OFlags::RDONLY)?;
        let run_id = run_id.to_owned();
        Ok(Follower { file, path, run_id, end: 0, lines: 0, last: None, buffer: Vec::new() })
    }

    /// Whether the journal was cut, replaced or removed since it was opened.
    pub fn is_another_file(&self) -> bool {
        let (Ok(open), Ok(named)) = (self.file.metadata(), std::fs::symlink_metadata(&self.path)) else {
            return true;
        };
        open.len() < self.end || os::identity(&open) != os::identity(&named)
    }

    /// Hands over the whole lines that were added, a bounded number of them. Says whether there were any; then there
    /// may be more.
    pub fn more(&mut self, mut see: impl FnMut(&Read<'_>)) -> Result<bool, Error> {
        self.more_with_ends(|line, _| see(line))
    }

    /// The same, each line with the byte after it.
    pub fn more_with_ends(&mut self, mut see: impl FnMut(&Read<'_>, u64)) -> Result<bool, Error> {
        self.fill()?;
        let bytes = std::mem::take(&mut self.buffer);
        let mut used = 0;
        let mut flaw = None;
        while let Some(length) = bytes[used..].iter().position(|byte| *byte == b'\n') {
            let line = &bytes[used..used + length];
            let before = self.last.as_ref().map(|(line, seq)| (line.as_slice(), *seq));
            match step(line, before, &self.run_id) {
                Ok(Some(seq)) => {
                    let read = frame::read(line).map_err(|why| self.damaged(used, why))?;
                    see(&read.read, self.end + (used + length + 1) as u64);
                    self.last = Some((line.to_owned(), seq));
                }
                Ok(None) => {}
                Err(why) => {
                    flaw = Some((length, why));
                    break;
                }
            }
            self.lines += 1;
            used += length + 1;
        }
        let rest = bytes.len() - used;
        let damage = match flaw {
            // What is at the very end may be half written; the next look knows.
            Some((length, why)) if length + 1 < rest || !why.may_be_torn() => Some(why),
            None if rest > LONGEST => Some(LineFault::TooLong),
            Some(_) | None => None,
        };
        self.buffer = bytes;
        if let Some(why) = damage {
            return Err(self.damaged(used, why));
        }
        self.end += used as u64;
        Ok(used > 0)
    }

    /// The bytes after the lines that were read, up to a limit.
    fn fill(&mut self) -> Result<(), Error> {
        let io = |error| files::Error::io("read", &self.path, error);
        let length = self.file.metadata().map_err(io)?.len();
        self.buffer.clear();
        if length < self.end {
            return Err(Error::Changed { file: self.path.clone() });
        }
        let fresh = usize::try_from(length - self.end).unwrap_or(CHUNK).min(CHUNK);
        self.buffer.resize(fresh, 0);
        let mut got = 0;
        while got < fresh {
            match os::read_at(&self.file, &mut self.buffer[got..], self.end + got as u64) {
                Ok(0) => break,
                Ok(n) => got += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io(error).into()),
            }
        }
        self.buffer.truncate(got);
        Ok(())
    }

    fn damaged(&self, used: usize, why: LineFault) -> Error {
        Error::Damaged { file: self.path.clone(), line: self.lines + 1, byte: self.end + used as u64, why }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;
    use crate::store::journal::{Journal, JournalLine};

    fn append(journal: &mut Journal, seq: u64) {
        let data = serde_json::value::RawValue::from_string(format!("{{\"n\":{seq}}}")).unwrap();
        let line = JournalLine {
            ts: "2026-04-08T10:00:00Z",
            ms: Some(7),
            run_id: "r",
            seq,
            parent: &[],
            kind: "run.start",
            phase: "plan",
            agent: None,
            data: &data,
        };
        journal.append(&[line]).unwrap();
    }

    fn numbers(follower: &mut Follower) -> Result<Vec<u64>, Error> {
        let mut numbers = Vec::new();
        while follower.more(|line| numbers.push(line.seq))? {}
        Ok(numbers)
    }

    #[test]
    fn af_122_lines_come_once_and_in_order_while_the_journal_grows() {
        let temp = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(temp.path(), "r").unwrap();
        let mut follower = Follower::open(temp.path(), "r").unwrap();
        assert!(numbers(&mut follower).unwrap().is_empty());
        append(&mut journal, 1);
        append(&mut journal, 2);
        assert_eq!(numbers(&mut follower).unwrap(), [1, 2]);
        assert!(numbers(&mut follower).unwrap().is_empty());
        append(&mut journal, 3);
        assert_eq!(numbers(&mut follower).unwrap(), [3]);
    }

    #[test]
    fn u_16_each_line_has_the_byte_after_it() {
        let temp = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(temp.path(), "r").unwrap();
        let mut follower = Follower::open(temp.path(), "r").unwrap();
        let mut ends = Vec::new();
        for seq in 1..=3 {
            append(&mut journal, seq);
            if seq != 1 {
                while follower.more_with_ends(|line, end| ends.push((line.seq, end))).unwrap() {}
            }
        }
        let whole = std::fs::read(journal.path()).unwrap();
        let after = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u64 + 1);
        assert_eq!(ends, (1..).zip(after).collect::<Vec<_>>());
    }

    #[test]
    fn m_b_a_half_written_line_waits_and_a_flaw_with_lines_behind_it_is_damage() {
        let temp = tempfile::tempdir().unwrap();
        let mut journal = Journal::create(temp.path(), "r").unwrap();
        append(&mut journal, 1);
        append(&mut journal, 2);
        append(&mut journal, 3);
        let path = journal.path().to_owned();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        std::fs::write(&path, &whole[..second + 20]).unwrap();
        let mut follower = Follower::open(temp.path(), "r").unwrap();
        assert_eq!(numbers(&mut follower).unwrap(), [1]);
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(numbers(&mut follower).unwrap(), [2, 3]);
        std::fs::write(&path, &whole[..second]).unwrap();
        assert!(matches!(numbers(&mut follower), Err(Error::Changed { .. })));

        let mut bent = whole.clone();
        bent[second + 30] ^= 1;
        std::fs::write(&path, &bent).unwrap();
        let mut follower = Follower::open(temp.path(), "r").unwrap();
        assert!(matches!(numbers(&mut follower), Err(Error::Damaged { line: 2, .. })));
    }
}
