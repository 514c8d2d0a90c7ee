//! One line of a journal: how it is written and how it is read.
//!
//! ```text
//! {"ts":"…","ms":7,"run_id":"…","seq":1,"parent":[],"type":"…","phase":"…","agent":null,"data":{…},"prev":"…","crc":"…"}
//! ```
//!
//! `ms` is the millisecond within the second of `ts`; older journals have none, and their
//! lines are written again without it. `crc` covers every byte before `,"crc"`; `prev` is the start of the hash of the whole line before this one. So a
//! line cannot change, move or vanish without the reader noticing. `data` is never parsed here.

use std::fmt;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A line to be written. The words must be plain (no quotes, backslashes or control characters).
#[derive(Debug, Clone, Copy)]
pub struct JournalLine<'a> {
    pub ts: &'a str,
    /// 0 to 999; `None` writes a line as it was before there were milliseconds.
    pub ms: Option<u16>,
    pub run_id: &'a str,
    pub seq: u64,
    pub parent: &'a [u64],
    pub kind: &'a str,
    pub phase: &'a str,
    pub agent: Option<&'a str>,
    pub data: &'a RawValue,
}

/// A line that was read, borrowed from the bytes of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Read<'a> {
    pub ts: &'a str,
    /// 0 to 999; `None` in old journals.
    pub ms: Option<u16>,
    pub run_id: &'a str,
    pub seq: u64,
    /// The numbers between the brackets, unparsed; [`Read::parents`] reads them.
    pub parent: &'a str,
    pub kind: &'a str,
    pub phase: &'a str,
    pub agent: Option<&'a str>,
    /// A raw JSON object.
    pub data: &'a str,
}

impl<'a> Read<'a> {
    pub fn parents(&self) -> impl Iterator<Item = u64> + use<'a> {
        self.parent.split(',').filter_map(|number| number.trim_ascii().parse().ok())
    }
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineFault {
    NotARecord,
    Nul,
    Crc,
    /// A record that is whole and yet followed by something else than a line break.
    Glued,
    NotJson(String),
    TooLong,
    OtherRun(String),
    Seq {
        expected: u64,
        found: u64,
    },
    Prev,
}

impl LineFault {
    /// An unfinished write explains the flaw. Everything else can only be the work of a fault or of a hand.
    pub(crate) fn may_be_torn(&self) -> bool {
        match self {
            LineFault::NotARecord | LineFault::Nul | LineFault::Crc => true,
            LineFault::Glued
            | LineFault::NotJson(_)
            | LineFault::TooLong
            | LineFault::OtherRun(_)
            | LineFault::Seq { .. }
            | LineFault::Prev => false,
        }
    }
}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineFault::NotARecord => f.write_str("this is not a sealed record"),
            LineFault::Nul => f.write_str("there are NUL bytes where a record should be"),
            LineFault::Crc => f.write_str("the bytes do not match their checksum"),
            LineFault::Glued => f.write_str("the record is not followed by a line break"),
            LineFault::NotJson(what) => write!(f, "the record cannot be read ({what})"),
            LineFault::TooLong => f.write_str("the line is longer than any record may be"),
            LineFault::OtherRun(id) => write!(f, "the record belongs to run {id:?}"),
            LineFault::Seq { expected, found } if found < expected => {
                write!(f, "record {found} appears again where {expected} should be")
            }
            LineFault::Seq { expected, found } => write!(f, "record {expected} is missing, {found} follows"),
            LineFault::Prev => f.write_str("the record does not continue the one before it"),
        }
    }
}

/// The start of the hash of a line, in hexadecimal digits as it is written.
pub(crate) type Link = [u8; 16];
pub(crate) const FIRST: Link = [b'0'; 16];

pub(crate) fn link(line: &[u8]) -> Link {
    let hash = blake3::hash(line);
    let mut link = FIRST;
    for (pair, byte) in link.chunks_exact_mut(2).zip(hash.as_bytes()) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    link
}

/// Adds the line and its line break to `into` and returns the link for the next one, or the name of a field that
/// cannot be written.
pub(crate) fn encode(line: &JournalLine<'_>, prev: &Link, into: &mut Vec<u8>) -> Result<Link, &'static str> {
    let start = into.len();
    word(into, "{\"ts\":\"", line.ts).ok_or("ts")?;
    into.push(b'"');
    if let Some(ms) = line.ms {
        if ms > LAST_MS {
            return Err("ms");
        }
        into.extend_from_slice(b",\"ms\":");
        into.extend_from_slice(ms.to_string().as_bytes());
    }
    word(into, ",\"run_id\":\"", line.run_id).ok_or("run_id")?;
    into.extend_from_slice(b"\",\"seq\":");
    into.extend_from_slice(line.seq.to_string().as_bytes());
    into.extend_from_slice(b",\"parent\":[");
    for (i, parent) in line.parent.iter().enumerate() {
        into.extend_from_slice(if i == 0 { b"" } else { b"," });
        into.extend_from_slice(parent.to_string().as_bytes());
    }
    word(into, "],\"type\":\"", line.kind).ok_or("type")?;
    word(into, "\",\"phase\":\"", line.phase).ok_or("phase")?;
    match line.agent {
        Some(agent) => {
            word(into, "\",\"agent\":\"", agent).ok_or("agent")?;
            into.push(b'"');
        }
        None => into.extend_from_slice(b"\",\"agent\":null"),
    }
    into.extend_from_slice(b",\"data\":");
    object(into, line.data).ok_or("data")?;
    into.extend_from_slice(b",\"prev\":\"");
    into.extend_from_slice(prev);
    into.push(b'"');
    let crc = crc32fast::hash(&into[start..]);
    into.extend_from_slice(b",\"crc\":\"");
    into.extend((0..8).rev().map(|i| digit((crc >> (4 * i)) as u8 & 15)));
    into.extend_from_slice(b"\"}");
    let link = link(&into[start..]);
    into.push(b'\n');
    Ok(link)
}

const LAST_MS: u16 = 999;

fn word(into: &mut Vec<u8>, key: &str, value: &str) -> Option<()> {
    if value.bytes().any(|b| b < b' ' || b == b'"' || b == b'\\') {
        return None;
    }
    into.extend_from_slice(key.as_bytes());
    into.extend_from_slice(value.as_bytes());
    Some(())
}

/// A line break in raw JSON can only be white space between tokens, so a blank may replace it.
fn object(into: &mut Vec<u8>, data: &RawValue) -> Option<()> {
    let data = data.get();
    if !data.starts_with('{') {
        return None;
    }
    into.extend(data.bytes().map(|b| if b == b'\n' || b == b'\r' { b' ' } else { b }));
    Some(())
}

fn digit(value: u8) -> u8 {
    b"0123456789abcdef"[usize::from(value)]
}

/// A line whose checksum holds.
pub(crate) struct Frame<'a> {
    pub(crate) read: Read<'a>,
    pub(crate) prev: &'a str,
}

/// Checks the seal of a line (without its line break), then reads it.
pub(crate) fn decode(line: &[u8]) -> Result<Frame<'_>, LineFault> {
    let Some((covered, crc)) = sealed(line) else {
        return Err(if line.contains(&0) { LineFault::Nul } else { LineFault::NotARecord });
    };
    if crc32fast::hash(covered) != crc {
        return Err(if line.contains(&0) { LineFault::Nul } else { LineFault::Crc });
    }
    read(line)
}

/// Reads a line that was checked before, or is checked by the caller.
pub(crate) fn read(line: &[u8]) -> Result<Frame<'_>, LineFault> {
    let text = str::from_utf8(line).map_err(|e| LineFault::NotJson(e.to_string()))?;
    match exact(text) {
        Some(frame) => Ok(frame),
        None => foreign(text),
    }
}

/// Does the line begin with a whole record and then continue? A torn write cannot look like this.
pub(crate) fn glued(line: &[u8]) -> bool {
    const KEY: &[u8] = b",\"crc\":\"";
    let keys = line.windows(KEY.len()).enumerate().filter(|(_, window)| *window == KEY);
    keys.filter_map(|(at, _)| line.split_at_checked(at + SEAL)).any(|(whole, rest)| {
        rest.iter().any(|b| *b != 0)
            && sealed(whole).is_some_and(|(covered, crc)| crc32fast::hash(covered) == crc)
    })
}

/// `,"crc":"01234567"}` and `,"prev":"0123456789abcdef"`.
const SEAL: usize = 18;
const PREV: usize = 26;

/// The bytes the checksum covers, and the checksum.
fn sealed(line: &[u8]) -> Option<(&[u8], u32)> {
    if let Some((covered, seal)) = line.len().checked_sub(SEAL).and_then(|at| line.split_at_checked(at))
        && let Some(hex) = seal.strip_prefix(b",\"crc\":\"").and_then(|seal| seal.strip_suffix(b"\"}"))
    {
        return Some((covered, number(hex)?));
    }
    spaced(line)
}

/// The same with white space between the tokens, as other writers leave it.
fn spaced(line: &[u8]) -> Option<(&[u8], u32)> {
    let rest = line.trim_ascii_end().strip_suffix(b"}")?.trim_ascii_end().strip_suffix(b"\"")?;
    let (rest, hex) = rest.split_at_checked(rest.len().checked_sub(8)?)?;
    let rest = rest.strip_suffix(b"\"")?.trim_ascii_end().strip_suffix(b":")?.trim_ascii_end();
    let covered = rest.strip_suffix(b"\"crc\"")?.trim_ascii_end().strip_suffix(b",")?;
    Some((covered, number(hex)?))
}

/// Eight digits. Capitals are not ours, and accepting them would let a changed bit pass.
fn number(hex: &[u8]) -> Option<u32> {
    hex.iter().try_fold(0, |sum: u32, digit| match digit {
        b'0'..=b'9' => Some(sum << 4 | u32::from(digit - b'0')),
        b'a'..=b'f' => Some(sum << 4 | u32::from(digit - b'a' + 10)),
        _ => None,
    })
}

/// The layout that [`encode`] writes, byte for byte.
fn exact(text: &str) -> Option<Frame<'_>> {
    let (head, seal) = text.split_at_checked(text.len().checked_sub(PREV + SEAL)?)?;
    let prev = seal.strip_prefix(",\"prev\":\"")?.get(..16)?;
    if seal.as_bytes()[PREV - 1] != b'"' || !seal[PREV..].starts_with(",\"crc\":\"") {
        return None;
    }

    let (ts, rest) = up_to(head.strip_prefix("{\"ts\":\"")?, b'"')?;
    let rest = rest.strip_prefix('"')?;
    let (ms, rest) = match rest.strip_prefix(",\"ms\":") {
        Some(rest) => {
            let (ms, rest) = up_to(rest, b',')?;
            (Some(millisecond(ms)?), rest)
        }
        None => (None, rest),
    };
    let (run_id, rest) = up_to(rest.strip_prefix(",\"run_id\":\"")?, b'"')?;
    let (seq, rest) = up_to(rest.strip_prefix("\",\"seq\":")?, b',')?;
    let (parent, rest) = up_to(rest.strip_prefix(",\"parent\":[")?, b']')?;
    let (kind, rest) = up_to(rest.strip_prefix("],\"type\":\"")?, b'"')?;
    let (phase, rest) = up_to(rest.strip_prefix("\",\"phase\":\"")?, b'"')?;
    let rest = rest.strip_prefix("\",\"agent\":")?;
    let (agent, rest) = match rest.strip_prefix("null") {
        Some(rest) => (None, rest),
        None => {
            let (agent, rest) = up_to(rest.strip_prefix('"')?, b'"')?;
            (Some(agent), rest.strip_prefix('"')?)
        }
    };
    let data = rest.strip_prefix(",\"data\":")?;
    let plain = numbers(parent) && data.starts_with('{') && data.ends_with('}');
    let seq = seq.parse().ok()?;
    plain.then_some(Frame { read: Read { ts, ms, run_id, seq, parent, kind, phase, agent, data }, prev })
}

/// A number from 0 to 999 as [`encode`] writes it: without leading zeros or a sign.
fn millisecond(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|b| b.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|ms| plain && *ms <= LAST_MS)
}

/// The text before the first `end`, and the rest with it. An escape is for the thorough reader.
fn up_to(text: &str, end: u8) -> Option<(&str, &str)> {
    let at = memchr::memchr2(end, b'\\', text.as_bytes())?;
    (text.as_bytes()[at] == end).then(|| text.split_at(at))
}

fn numbers(list: &str) -> bool {
    let number = |n: &[u8]| (1..=19).contains(&n.len()) && n.iter().all(u8::is_ascii_digit);
    list.is_empty() || list.as_bytes().split(|b| *b == b',').all(number)
}

/// A record in another order, with other spacing or with fields we do not know.
#[derive(Deserialize)]
struct Foreign<'a> {
    ts: &'a str,
    #[serde(default)]
    ms: Option<u16>,
    run_id: &'a str,
    seq: u64,
    #[serde(borrow)]
    parent: &'a RawValue,
    #[serde(rename = "type")]
    kind: &'a str,
    phase: &'a str,
    agent: Option<&'a str>,
    #[serde(borrow)]
    data: &'a RawValue,
    prev: &'a str,
}

fn foreign(text: &str) -> Result<Frame<'_>, LineFault> {
    let Foreign { ts, ms, run_id, seq, parent, kind, phase, agent, data, prev } =
        serde_json::from_str(text).map_err(|e| LineFault::NotJson(e.to_string()))?;
    if serde_json::from_str::<Vec<u64>>(parent.get()).is_err() {
        return Err(LineFault::NotJson("`parent` is not a list of numbers".to_owned()));
    }
    if ms.is_some_and(|ms| ms > LAST_MS) {
        return Err(LineFault::NotJson("`ms` is not a number from 0 to 999".to_owned()));
    }
    if !data.get().starts_with('{') {
        return Err(LineFault::NotJson("`data` is not an object".to_owned()));
    }
    let parent = parent.get().trim_start_matches('[').trim_end_matches(']');
    Ok(Frame { read: Read { ts, ms, run_id, seq, parent, kind, phase, agent, data: data.get() }, prev })
}
