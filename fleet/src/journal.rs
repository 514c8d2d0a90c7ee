//! A journal on the bus: who may write to it, and what to make of a refusal.
//!
//! A session appends with the expectation that the last message is the one it knows. A session that takes a run over appends
//! as well, and from then on everything of the one before is refused. Since a run begins nothing before its line is
//! acknowledged, a session that was overtaken begins nothing more.
//!
//! A refusal is looked at before it is believed. The answer to an append may have been lost, and the server may have
//! forgotten what it had acknowledged: then the last message is ours, and what is missing is published again from the local
//! journal. Only a message of another session means that this one is over.

use crate::bus::{Bus, BusError, BusSeq, Expect, Kept, Put, PutEnd};
use crate::names::{FIRST, JOURNALS, LINES, SESSION};

/// The most bytes in one message. A single line may have more than that and is sent alone.
const PIECE: usize = 512 * 1024;
/// How often a look at the last message may be followed by a refusal. Every refusal but the last has a cause of its own (a
/// lost answer, forgotten messages), so more than these mean that something is wrong with the server.
const LOOKS: usize = 100;

/// The lines of the journal on this machine.
pub trait LocalLines {
    /// Lines from this one on (the first is 1) in whole, each with its newline; as many as there are in about `bytes`, but at
    /// least one if there is one.
    fn lines_from(&self, first: u64, bytes: usize) -> Result<Vec<u8>, String>;
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JournalFault {
    /// Another session has it now.
    #[error("{by} has taken it over")]
    Fenced { by: String },
    #[error(transparent)]
    Bus(#[from] BusError),
    #[error("the local journal can't be read: {0}")]
    Local(String),
    #[error("{subject} can't be read: {why}")]
    Broken { subject: String, why: String },
}

/// A journal as it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    pub text: Vec<u8>,
    pub lines: u64,
    pieces: Vec<KnownPiece>,
}

/// A message that was there when this session began. Positions begin anew when a server has lost everything; the server's
/// clock tells such messages apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KnownPiece {
    seq: BusSeq,
    at: u64,
    /// Number of lines up to here that are still part of the journal.
    lines: u64,
}

/// Reads a journal from its beginning to its end.
pub fn read(bus: &dyn Bus, subject: &str) -> Result<Found, JournalFault> {
    let mut found = Found::default();
    let mut next = 1;
    while let Some(kept) = bus.next_from(JOURNALS, subject, next)? {
        next = kept.seq + 1;
        found.take(&kept)?;
    }
    Ok(found)
}

impl Found {
    /// A journal that is already here in whole lines.
    pub(crate) fn already(text: Vec<u8>) -> Found {
        Found { lines: count_lines(&text), text, pieces: Vec::new() }
    }

    /// The next message of its subject. Says whether its lines are part of the journal.
    pub(crate) fn take(&mut self, kept: &Kept) -> Result<bool, JournalFault> {
        let piece = Piece::of(kept)?;
        // Published again after the server had forgotten it.
        if piece.first <= self.lines {
            self.cut_to(piece.first - 1);
        }
        // If the server has forgotten what comes before, and given its positions to others, what follows from it is lost too.
        let is_next = piece.first == self.lines + 1;
        if is_next {
            self.text.extend_from_slice(&kept.bytes);
            self.lines = piece.last();
        }
        self.pieces.push(KnownPiece { seq: kept.seq, at: kept.at, lines: self.lines });
        Ok(is_next)
    }

    fn cut_to(&mut self, lines: u64) {
        let count = usize::try_from(lines).unwrap_or(usize::MAX);
        let end: usize = self.text.split_inclusive(|byte| *byte == b'\n').take(count).map(<[u8]>::len).sum();
        self.text.truncate(end);
        self.lines = lines;
        // Should the server forget the one that replaces them, they hold other lines than the local journal from here on.
        self.pieces.iter_mut().for_each(|piece| piece.lines = piece.lines.min(lines));
    }
}

/// What a message says about itself.
struct Piece<'a> {
    session: &'a str,
    first: u64,
    lines: u64,
}

impl<'a> Piece<'a> {
    fn of(kept: &'a Kept) -> Result<Piece<'a>, JournalFault> {
        let broken = |why: String| JournalFault::Broken {
            subject: kept.subject.clone(),
            why: format!("message {}: {why}", kept.seq),
        };
        let number = |name: &str| {
            let value =
                kept.header(name).and_then(|value| value.parse::<u64>().ok()).filter(|value| *value > 0);
            value.ok_or_else(|| broken(format!("no number {name}")))
        };
        let session = kept.header(SESSION).ok_or_else(|| broken(format!("no {SESSION}")))?;
        let (first, lines) = (number(FIRST)?, number(LINES)?);
        if count_lines(&kept.bytes) != lines || kept.bytes.last() != Some(&b'\n') {
            return Err(broken(format!("{lines} lines are not in it")));
        }
        Ok(Piece { session, first, lines })
    }

    fn last(&self) -> u64 {
        self.first + self.lines - 1
    }
}

/// One session that writes to a journal.
pub struct JournalWriter<'a> {
    bus: &'a dyn Bus,
    subject: String,
    /// Unique among all sessions there ever are.
    session: String,
    /// What was there before this session.
    before: Vec<KnownPiece>,
    last: BusSeq,
    /// Number of lines on the bus, as far as is known.
    lines: u64,
}

impl<'a> JournalWriter<'a> {
    /// A session that continues from what was found. Nobody is overtaken before its first line.
    pub fn new(bus: &'a dyn Bus, subject: String, session: String, found: &Found) -> JournalWriter<'a> {
        let last = found.pieces.last().map_or(0, |piece| piece.seq);
        JournalWriter { bus, subject, session, before: found.pieces.clone(), last, lines: found.lines }
    }

    /// Number of lines on the bus.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Publishes what the local journal has up to a line. When this returns, all of it was acknowledged to this session. After
    /// a fault of the bus it can be called again.
    pub fn publish(&mut self, local: &dyn LocalLines, up_to: u64) -> Result<(), JournalFault> {
        let mut looks = 0;
        while self.lines < up_to {
            let bytes = local.lines_from(self.lines + 1, PIECE).map_err(JournalFault::Local)?;
            let (first, lines) = (self.lines + 1, count_lines(&bytes));
            if lines == 0 {
                return Err(JournalFault::Local(format!("it ends before line {first}")));
            }
            let (first_text, lines_text) = (first.to_string(), lines.to_string());
            let id = format!("{}:{}:{first}", self.subject, self.session);
            let headers = [(SESSION, self.session.as_str()), (FIRST, &first_text), (LINES, &lines_text)];
            let put = Put {
                subject: &self.subject,
                expect: Expect::Last(self.last),
                id: Some(&id),
                headers: &headers,
                bytes: &bytes,
            };
            match self.bus.put(put)? {
                PutEnd::Kept(seq) => (self.last, self.lines) = (seq, first + lines - 1),
                PutEnd::Refused if looks < LOOKS => {
                    looks += 1;
                    self.look()?;
                }
                PutEnd::Refused => {
                    let why = "appends are refused, and there is no reason for it".to_owned();
                    return Err(JournalFault::Broken { subject: self.subject.clone(), why });
                }
            }
        }
        Ok(())
    }

    /// Where the journal on the bus ends, and whether this session wrote that.
    fn look(&mut self) -> Result<(), JournalFault> {
        match self.bus.last(&self.subject)? {
            // The server has lost all of it.
            None => (self.last, self.lines) = (0, 0),
            Some(kept) => {
                let piece = Piece::of(&kept)?;
                let known = self.before.iter().find(|known| (known.seq, known.at) == (kept.seq, kept.at));
                (self.last, self.lines) = match known {
                    _ if piece.session == self.session => (kept.seq, piece.last()),
                    // One from before this session: the server has forgotten everything since.
                    Some(known) => (kept.seq, known.lines),
                    None => return Err(JournalFault::Fenced { by: piece.session.to_owned() }),
                };
            }
        }
        Ok(())
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}
