//! A whole journal, read into memory and checked line by line.
//!
//! There is one reader. It yields the lines up to the first flaw and describes the flaw; nothing is ever skipped
//! to find more lines after it. Each line is checked against the bytes before it only, so a large journal is cut
//! into as many stretches as there are processors.

use std::fs::File;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::thread;

use super::files;
use super::frame::{self, LineFault, Read};
use crate::platform::files as os;

/// The longest line that is read. What is written is a good deal shorter; see `journal::LONGEST`.
pub(super) const LONGEST: usize = 1 << 20;
/// Below this a second thread costs more than it brings.
const STRETCH: usize = 1 << 20;

/// The verified lines of a journal.
#[derive(Debug, Default)]
pub struct Text {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    repeated: Vec<u64>,
    torn: usize,
}

#[derive(Debug, Clone, Copy)]
struct Row {
    start: usize,
    length: u32,
}

impl Text {
    /// A journal that came from elsewhere; nothing unless all of it is whole.
    pub fn whole(bytes: Vec<u8>, run_id: &str) -> Option<Text> {
        let checked = check(bytes, run_id);
        let is_whole = checked.damage.is_none() && checked.tail().is_empty();
        is_whole.then(|| checked.into_text())
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The line with `seq` = `index` + 1. Reading one does not depend on others, so threads can share the work.
    pub fn get(&self, index: usize) -> Option<Read<'_>> {
        self.rows.get(index).map(|row| self.read(*row))
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = Read<'_>> + DoubleEndedIterator {
        self.rows.iter().map(|row| self.read(*row))
    }

    /// Line numbers that repeat the line before them byte for byte and were ignored. Worth a note.
    pub fn repeated(&self) -> &[u64] {
        &self.repeated
    }

    /// Bytes of an unfinished write at the end, not part of the journal.
    pub fn torn(&self) -> usize {
        self.torn
    }

    fn read(&self, row: Row) -> Read<'_> {
        let line = &self.bytes[row.start..row.start + row.length as usize];
        frame::read(line).expect("the line was read when it was verified").read
    }

    /// All lines, byte for byte.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The digest of the first `lines` lines, byte for byte; nothing where there are fewer.
    pub(crate) fn digest_of(&self, lines: usize) -> Option<String> {
        let last = self.rows.get(lines.checked_sub(1)?)?;
        Some(files::digest(&self.bytes[..last.start + last.length as usize]))
    }

    /// Where the first `lines` lines end.
    pub(crate) fn end_of(&self, lines: usize) -> usize {
        self.rows.get(lines).map_or(self.bytes.len(), |row| row.start)
    }

    pub(crate) fn last_line(&self) -> Option<&[u8]> {
        self.rows.last().map(|row| &self.bytes[row.start..row.start + row.length as usize])
    }
}

/// Where a journal stops being one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalDamage {
    pub line: u64,
    pub byte: u64,
    pub why: LineFault,
}

pub(crate) struct Checked {
    pub(crate) text: Text,
    /// Where the verified lines end.
    pub(crate) end: usize,
    pub(crate) damage: Option<JournalDamage>,
}

impl Checked {
    /// What an unfinished write left behind.
    pub(crate) fn tail(&self) -> &[u8] {
        &self.text.bytes[self.end..]
    }

    pub(crate) fn into_text(mut self) -> Text {
        self.text.bytes.truncate(self.end);
        self.text
    }
}

pub(crate) fn load(file: &File, run_id: &str) -> io::Result<Checked> {
    Ok(check(read_all(file)?, run_id))
}

/// Reads what is there now. A file that shrinks meanwhile is read as far as it goes.
fn read_all(file: &File) -> io::Result<Vec<u8>> {
    let length = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    let share = length.div_ceil(threads(length));
    let got =
        if share == length { read_part(file, &mut bytes, 0)? } else { read_shares(file, &mut bytes, share)? };
    bytes.truncate(got);
    Ok(bytes)
}

fn read_shares(file: &File, bytes: &mut [u8], share: usize) -> io::Result<usize> {
    let parts: Vec<io::Result<usize>> = thread::scope(|scope| {
        let readers: Vec<_> = bytes
            .chunks_mut(share)
            .zip((0..).step_by(share))
            .map(|(part, from)| scope.spawn(move || read_part(file, part, from)))
            .collect();
        readers.into_iter().map(|reader| reader.join().expect("reading does not panic")).collect()
    });
    let mut got = 0;
    for part in parts {
        let part = part?;
        got += part;
        if part < share {
            break;
        }
    }
    Ok(got)
}

fn read_part(file: &File, mut part: &mut [u8], from: u64) -> io::Result<usize> {
    let mut got = 0;
    while !part.is_empty() {
        match os::read_at(file, part, from + got as u64) {
            Ok(0) => break,
            Ok(n) => {
                got += n;
                part = &mut part[n..];
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

pub(crate) fn check(bytes: Vec<u8>, run_id: &str) -> Checked {
    let whole = bytes.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    let found = gather(walk_all(&bytes[..whole], run_id));
    let (end, damage) = judge(&bytes, &found);
    let torn = if damage.is_none() { bytes.len() - end } else { 0 };
    Checked {
        text: Text { bytes, rows: found.rows, repeated: found.repeated, torn },
        end,
        damage: damage.map(|why| JournalDamage { line: found.lines + 1, byte: end as u64, why }),
    }
}

/// A flaw is a torn write if it is at the very end and an unfinished write explains it; otherwise it is damage.
fn judge(bytes: &[u8], found: &Stretch) -> (usize, Option<LineFault>) {
    let end = found.end;
    let rest = &bytes[end..];
    let last = rest.iter().position(|b| *b == b'\n').is_none_or(|at| at + 1 == rest.len());
    match &found.flaw {
        None if rest.is_empty() => (end, None),
        Some(why) if !last || !why.may_be_torn() => (end, Some(why.clone())),
        None | Some(_) if frame::glued(rest.strip_suffix(b"\n").unwrap_or(rest)) => {
            (end, Some(LineFault::Glued))
        }
        None | Some(_) => (end, None),
    }
}

/// What one thread found: lines up to `end`, then perhaps a flaw.
#[derive(Default)]
struct Stretch {
    rows: Vec<Row>,
    repeated: Vec<u64>,
    lines: u64,
    end: usize,
    flaw: Option<LineFault>,
}

fn gather(stretches: Vec<Stretch>) -> Stretch {
    let mut all = Stretch::default();
    for stretch in stretches {
        if all.rows.is_empty() {
            all.rows = stretch.rows;
        } else {
            all.rows.extend(stretch.rows);
        }
        all.repeated.extend(stretch.repeated.iter().map(|line| line + all.lines));
        all.lines += stretch.lines;
        all.end = stretch.end;
        all.flaw = stretch.flaw;
        if all.flaw.is_some() {
            break;
        }
    }
    all
}

/// `bytes` is empty or ends with a line break.
fn walk_all(bytes: &[u8], run_id: &str) -> Vec<Stretch> {
    let ranges = cut(bytes, threads(bytes.len()));
    if let [only] = ranges.as_slice() {
        return vec![walk(bytes, only.clone(), run_id)];
    }
    thread::scope(|scope| {
        let walkers: Vec<_> =
            ranges.into_iter().map(|range| scope.spawn(move || walk(bytes, range, run_id))).collect();
        walkers.into_iter().map(|walker| walker.join().expect("checking does not panic")).collect()
    })
}

fn threads(length: usize) -> usize {
    let most = thread::available_parallelism().map_or(1, NonZero::get).min(8);
    (length / STRETCH).clamp(1, most)
}

/// Equal shares, each beginning at the start of a line.
fn cut(bytes: &[u8], shares: usize) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for i in 1..=shares {
        let aim = (bytes.len() / shares * i).max(start);
        let end = if i == shares { bytes.len() } else { aim + line_length(&bytes[aim..]) };
        ranges.push(start..end);
        start = end;
    }
    ranges
}

fn walk(bytes: &[u8], range: Range<usize>, run_id: &str) -> Stretch {
    let mut found = Stretch { end: range.start, ..Stretch::default() };
    found.rows.reserve(range.len() / 300);
    let mut before = None;
    if range.start > 0 {
        let line = line_before(bytes, range.start);
        match frame::read(line) {
            Ok(frame) => before = Some((line, frame.read.seq)),
            // The stretch before this one ends with the flaw; nothing from here on counts.
            Err(_) => return found,
        }
    }
    while found.end < range.end {
        let length = line_length(&bytes[found.end..]);
        let line = &bytes[found.end..found.end + length - 1];
        match step(line, before, run_id) {
            Ok(Some(seq)) => {
                before = Some((line, seq));
                found.rows.push(Row { start: found.end, length: line.len() as u32 });
            }
            Ok(None) => found.repeated.push(found.lines + 1),
            Err(why) => {
                found.flaw = Some(why);
                return found;
            }
        }
        found.lines += 1;
        found.end += length;
    }
    found
}

/// Checks one line against the line before it. `None`: the same bytes once more, as a repeated write leaves them.
pub(super) fn step(
    line: &[u8],
    before: Option<(&[u8], u64)>,
    run_id: &str,
) -> Result<Option<u64>, LineFault> {
    if line.len() > LONGEST {
        return Err(LineFault::TooLong);
    }
    if before.is_some_and(|(bytes, _)| bytes == line) {
        return Ok(None);
    }
    let frame::Frame { read, prev } = frame::decode(line)?;
    if read.run_id != run_id {
        return Err(LineFault::OtherRun(read.run_id.chars().take(128).collect()));
    }
    let (link, expected) =
        before.map_or((frame::FIRST, 1), |(bytes, seq)| (frame::link(bytes), seq.wrapping_add(1)));
    if read.seq != expected {
        return Err(LineFault::Seq { expected, found: read.seq });
    }
    if prev.as_bytes() != link {
        return Err(LineFault::Prev);
    }
    Ok(Some(read.seq))
}

/// The length of the first line with its line break.
fn line_length(bytes: &[u8]) -> usize {
    memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1)
}

fn line_before(bytes: &[u8], end: usize) -> &[u8] {
    let line = &bytes[..end - 1];
    let start = line.iter().rposition(|b| *b == b'\n').map_or(0, |at| at + 1);
    &line[start..]
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    fn sample(lines: u64) -> Vec<u8> {
        let data = serde_json::value::RawValue::from_string(r#"{"a":"\"}","b":[]}"#.to_owned()).unwrap();
        let (mut bytes, mut prev) = (Vec::new(), frame::FIRST);
        for seq in 1..=lines {
            let (ts, kind, phase) = ("2026-04-08T10:00:00Z", "decision", "do");
            let line = frame::JournalLine {
                ts,
                ms: Some(7),
                run_id: "r",
                seq,
                parent: &[1],
                kind,
                phase,
                agent: Some("é"),
                data: &data,
            };
            prev = frame::encode(&line, &prev, &mut bytes).unwrap();
        }
        bytes
    }

    /// M-B3: every other value of every byte of the last line costs that line, and never passes.
    #[test]
    fn m_b3_every_value_of_every_byte() {
        let bytes = sample(2);
        assert_eq!(check(bytes.clone(), "r").text.len(), 2);
        for at in bytes.len() / 2..bytes.len() {
            for value in (0..=255).filter(|value| *value != bytes[at]) {
                let mut bad = bytes.clone();
                bad[at] = value;
                let checked = check(bad, "r");
                assert_eq!((checked.text.len(), checked.end), (1, bytes.len() / 2), "byte {at} = {value:#x}");
            }
        }
    }

    /// Any byte lost or added is noticed, too. The exception is white space around the very last checksum, which other
    /// writers may leave there; it changes nothing that is read.
    #[test]
    fn m_b3_every_lost_and_every_added_byte() {
        let bytes = sample(3);
        let seal = bytes.len() - ",\"crc\":\"01234567\"}\n".len();
        for at in 0..bytes.len() {
            let mut short = bytes.clone();
            short.remove(at);
            assert!(check(short, "r").text.len() < 3, "without byte {at}");
            for value in [0, b' ', b'\n', b'0', b'"', 0xff] {
                let mut long = bytes.clone();
                long.insert(at, value);
                let checked = check(long, "r");
                let noticed = checked.damage.is_some() || checked.text.torn > 0;
                let harmless = at >= seal && value == b' ' && checked.text.len() == 3;
                assert!(noticed || harmless, "with {value:#x} before byte {at}");
            }
        }
    }
}
