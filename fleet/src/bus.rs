//! What the fleet needs of a message server, and no more: append with an expectation, read, work queues with leases, and
//! messages that may be lost. Every call blocks; a caller that must not wait uses a thread.

use std::sync::mpsc::Receiver;
use std::time::Duration;

/// The position of a message in its stream; greater is later.
pub type BusSeq = u64;

/// A message that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub subject: String,
    pub seq: BusSeq,
    /// When the server took it, in milliseconds since 1970 by its clock.
    pub at: u64,
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
}

impl Kept {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What an append expects of its subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// The last message on the subject is this one; none, for 0.
    Last(BusSeq),
    Anything,
}

/// A message to be kept.
#[derive(Debug, Clone, Copy)]
pub struct Put<'a> {
    pub subject: &'a str,
    pub expect: Expect,
    /// The server drops a second message with the same id for a while. Only a help: see [`PutEnd::Refused`].
    pub id: Option<&'a str>,
    pub headers: &'a [(&'a str, &'a str)],
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutEnd {
    /// On the server's disk.
    Kept(BusSeq),
    /// The subject's last message is another than expected. It may be this very one: an append that is repeated because its
    /// answer was lost is refused as well. Read the last message before believing it.
    Refused,
}

/// A message of a work queue, leased to the one who took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub subject: String,
    pub seq: BusSeq,
    /// How often it was handed out, this time included.
    pub times: u64,
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
    /// Names this delivery to the server; valid also after a restart of the one who took it.
    pub token: String,
}

/// What becomes of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lease {
    /// Being worked on: the lease begins anew.
    Extend,
    /// Done with; removed from the queue.
    Done,
    /// Somebody else should have it, after this time.
    Back(Duration),
    /// Nobody will ever manage it; removed from the queue.
    Never,
}

/// A message that nobody keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heard {
    pub subject: String,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// No answer: it may have happened, or not.
    #[error("no answer from the server: {0}")]
    NoAnswer(String),
    /// This key may not do that.
    #[error("the server does not allow it: {0}")]
    Denied(String),
    /// Nothing more is kept until there is room.
    #[error("the server is full: {0}")]
    Full(String),
    /// What was asked for makes no sense to the server, e.g. a stream that is not there.
    #[error("{0}")]
    Wrong(String),
}

/// A server, as one member of the fleet sees it.
pub trait Bus: Send + Sync {
    fn put(&self, put: Put<'_>) -> Result<PutEnd, BusError>;

    /// The last message on a subject.
    fn last(&self, subject: &str) -> Result<Option<Kept>, BusError>;

    /// The first message on a subject (which may have wildcards) at or after a position.
    fn next_from(&self, stream: &str, subject: &str, seq: BusSeq) -> Result<Option<Kept>, BusError>;

    /// Makes a work queue before its first message, so that those who take from it wait there already. Only a help: it is made
    /// with its first message otherwise.
    fn prepare(&self, _queue: &str) -> Result<(), BusError> {
        Ok(())
    }

    /// The next message of a work queue, leased; `None` if there was none in this time.
    fn take(&self, queue: &str, wait: Duration) -> Result<Option<Delivery>, BusError>;

    /// Says what becomes of a delivery, and waits until the server knows.
    fn lease(&self, token: &str, lease: Lease) -> Result<(), BusError>;

    /// The same for several: waits for the first, and takes along what else is there.
    fn take_some(&self, queue: &str, _most: usize, wait: Duration) -> Result<Vec<Delivery>, BusError> {
        Ok(self.take(queue, wait)?.into_iter().collect())
    }

    /// Done with these, without waiting until the server knows. A delivery of which it never learns comes again.
    fn done_with(&self, tokens: &[String]) {
        for token in tokens {
            let _ = self.lease(token, Lease::Done);
        }
    }

    /// Removes one message of a stream, if it is still there.
    fn remove(&self, stream: &str, _seq: BusSeq) -> Result<(), BusError> {
        Err(BusError::Wrong(format!("messages of {stream} can't be removed here")))
    }

    /// To all who listen just now.
    fn say(&self, subject: &str, bytes: &[u8]) -> Result<(), BusError>;

    /// Everything that is said on a subject (which may have wildcards) from now on.
    fn hear(&self, subject: &str) -> Result<Receiver<Heard>, BusError>;
}
