//! The replica of a run: a second copy of its journal, kept by the process that started this one (a worker of a fleet). It
//! has a line before anything follows from that line, so another machine can resume the run where this one ended.
//!
//! One connection for each process, over a Unix socket. A message is a line of JSON, and behind an append the lines of
//! the journal themselves, byte for byte:
//!
//! ```text
//! run     {"v":1,"hello":"<run id>","have":<lines of the journal here>}
//! replica {"ok":true,"have":<lines it has>}      the run sends the rest first
//! run     {"append":<number of the first line>,"lines":<n>,"bytes":<n>}, then these bytes
//! replica {"ok":true}                            it has them: go on
//! replica {"fenced":"<why>"}                     to either: another session has the run
//! ```
//!
//! Fields that are not known are ignored. The replica may take as long as it likes; a connection that ends is a session that
//! ends. The driver decides what follows ([`crate::drive`]); what a line needs besides the journal is in [`parts`].
//!
//! Absent on purpose: retries and reconnecting. The next session sends what is missing.

pub mod parts;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use serde::Deserialize;
use serde_json::json;

use crate::executors::Message;
use crate::platform::socket::{self, UnixStream};

const VERSION: u32 = 1;
/// The longest answer.
const LONGEST_ANSWER: u64 = 64 * 1024;
/// The most that is sent at once, unless a single line is longer.
const LARGEST_APPEND: usize = 512 * 1024;

/// What the replica says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplicaAnswer {
    /// It has everything that was sent. Only the first answer says how many lines that are.
    Acknowledged { have: Option<u64> },
    /// Another session has the run.
    Fenced { why: String },
    /// Nothing more will come.
    Lost { why: String },
}

/// Some lines of a journal, byte for byte, each with its line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lines<'a> {
    /// The number of the first one.
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Lines<'a> {
    /// The same in pieces that are sent one after the other.
    pub(crate) fn pieces(self) -> Vec<Lines<'a>> {
        let mut pieces: Vec<Lines<'a>> = Vec::new();
        let (mut start, mut end, mut count, mut first) = (0, 0, 0, self.first);
        for line in self.bytes.split_inclusive(|byte| *byte == b'\n') {
            if count > 0 && end - start + line.len() > LARGEST_APPEND {
                pieces.push(Lines { first, count, bytes: self.bytes.get(start..end).unwrap_or_default() });
                (first, count, start) = (first + count, 0, end);
            }
            (end, count) = (end + line.len(), count + 1);
        }
        if count > 0 {
            pieces.push(Lines { first, count, bytes: self.bytes.get(start..end).unwrap_or_default() });
        }
        pieces
    }
}

/// The connection to it.
#[derive(Debug)]
pub(crate) struct ReplicaLink {
    stream: UnixStream,
    to_send: Sender<Vec<u8>>,
    /// Where the lines that it has end in the journal here.
    pub(crate) acknowledged_end: u64,
}

impl ReplicaLink {
    /// Connects. Answers are posted as they come, and so is the end of the connection.
    pub(crate) fn connect(socket: &Path, post: Sender<Message>) -> io::Result<ReplicaLink> {
        let stream = socket::connect(socket)?;
        let (reading, mut writing) = (stream.try_clone()?, stream.try_clone()?);
        let (to_send, queue) = channel::<Vec<u8>>();
        let lost = post.clone();
        // Neither blocks the driver, however slow the other side is.
        thread::Builder::new().name("replica".into()).spawn(move || {
            for bytes in queue {
                if let Err(error) = writing.write_all(&bytes) {
                    let _ = lost.send(Message::Replica(ReplicaAnswer::Lost { why: error.to_string() }));
                    return;
                }
            }
        })?;
        thread::Builder::new().name("replica answers".into()).spawn(move || receive(reading, &post))?;
        Ok(ReplicaLink { stream, to_send, acknowledged_end: 0 })
    }

    pub(crate) fn hello(&self, run_id: &str, have: usize) {
        self.send(format!("{}\n", json!({ "v": VERSION, "hello": run_id, "have": have })).into_bytes());
    }

    pub(crate) fn append(&self, lines: Lines<'_>) {
        let Lines { first, count, bytes } = lines;
        let header = json!({ "append": first, "lines": count, "bytes": bytes.len() });
        self.send([format!("{header}\n").as_bytes(), bytes].concat());
    }

    /// A thread that is gone has said so.
    fn send(&self, bytes: Vec<u8>) {
        let _ = self.to_send.send(bytes);
    }
}

impl Drop for ReplicaLink {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Posts what is received until nothing more comes, or nobody listens.
fn receive(stream: UnixStream, post: &Sender<Message>) {
    let mut stream = BufReader::new(stream);
    loop {
        let answer = next_answer(&mut stream).unwrap_or_else(|why| ReplicaAnswer::Lost { why });
        let is_last = matches!(answer, ReplicaAnswer::Lost { .. });
        if post.send(Message::Replica(answer)).is_err() || is_last {
            return;
        }
    }
}

fn next_answer(stream: &mut impl BufRead) -> Result<ReplicaAnswer, String> {
    let mut line = Vec::new();
    stream.take(LONGEST_ANSWER).read_until(b'\n', &mut line).map_err(|error| error.to_string())?;
    match line.strip_suffix(b"\n") {
        Some(line) => read_answer(line),
        None if line.is_empty() => Err("it was closed".to_owned()),
        None => Err("an answer has no end".to_owned()),
    }
}

fn read_answer(line: &[u8]) -> Result<ReplicaAnswer, String> {
    #[derive(Deserialize)]
    struct Raw {
        ok: Option<bool>,
        have: Option<u64>,
        fenced: Option<String>,
    }
    let raw: Raw =
        serde_json::from_slice(line).map_err(|error| format!("an answer can't be read: {error}"))?;
    match raw {
        Raw { fenced: Some(why), .. } => Ok(ReplicaAnswer::Fenced { why }),
        Raw { ok: Some(true), have, .. } => Ok(ReplicaAnswer::Acknowledged { have }),
        Raw { .. } => Err("an answer says neither `ok` nor `fenced`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_20_answers_are_read_strictly_and_what_is_none_ends_the_session() {
        let acknowledged = |have| ReplicaAnswer::Acknowledged { have };
        let rows: [(&[u8], Result<ReplicaAnswer, &str>); 9] = [
            (b"{\"ok\":true}\n", Ok(acknowledged(None))),
            (b"{\"ok\":true,\"have\":7,\"new\":[]}\n", Ok(acknowledged(Some(7)))),
            (b"{\"fenced\":\"w2\"}\n", Ok(ReplicaAnswer::Fenced { why: "w2".to_owned() })),
            (b"{\"ok\":true,\"fenced\":\"w2\"}\n", Ok(ReplicaAnswer::Fenced { why: "w2".to_owned() })),
            (b"{\"ok\":false}\n", Err("neither")),
            (b"{}\n", Err("neither")),
            (b"hello\n", Err("can't be read")),
            (b"{\"ok\":true}", Err("no end")),
            (b"", Err("closed")),
        ];
        for (bytes, expected) in rows {
            let mut stream = bytes;
            match (next_answer(&mut stream), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(why), Err(words)) => assert!(why.contains(words), "{why}"),
                (found, expected) => panic!("{bytes:?}: {found:?} instead of {expected:?}"),
            }
        }
        let endless = vec![b' '; 1 << 20];
        assert!(next_answer(&mut endless.as_slice()).is_err());
    }

    #[test]
    fn fl_20_many_lines_are_sent_in_pieces_that_make_up_the_whole() {
        for lengths in [vec![], vec![10], vec![400_000, 300_000, 10], vec![600_000, 5], vec![200_000; 9]] {
            let bytes: Vec<u8> =
                lengths.iter().flat_map(|n| [vec![b'x'; n - 1], b"\n".to_vec()].concat()).collect();
            let count = lengths.len() as u64;
            let pieces = Lines { first: 5, count, bytes: &bytes }.pieces();
            let mut next = 5;
            for piece in &pieces {
                assert_eq!(piece.first, next);
                assert_eq!(piece.bytes.iter().filter(|byte| **byte == b'\n').count() as u64, piece.count);
                assert!(piece.count == 1 || piece.bytes.len() <= LARGEST_APPEND);
                next += piece.count;
            }
            assert_eq!(next, 5 + count);
            assert_eq!(pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect::<Vec<_>>(), bytes);
        }
    }
}
