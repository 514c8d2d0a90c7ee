//! The other end: one request, one reply.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::{LONGEST_LINE, Request};
use crate::platform::socket::{UnixStream, peer};

/// Longer than the other side waits for its driver.
const PATIENCE: Duration = Duration::from_secs(40);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No process listens: it has ended, was killed, or could not open its socket.
    #[error("the process that drives this run can't be reached by its control socket ({0})")]
    Unreachable(io::Error),
    #[error("{message}")]
    Refused { reason: String, message: String },
    #[error("the control socket belongs to another user; nothing was sent")]
    OtherUser,
    #[error("the process that drives this run hung up or did not reply ({0})")]
    NoReply(io::Error),
    #[error("the reply on the control socket can't be read")]
    Garbled,
}

/// Sends a request and waits for its reply.
pub fn send(socket: &Path, request: &Request) -> Result<Value, Error> {
    let mut stream = UnixStream::connect(socket).map_err(Error::Unreachable)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(Error::NoReply)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(Error::NoReply)?;
    let us = crate::platform::process::acting_user();
    if peer(&stream).map_err(Error::NoReply)?.user != us {
        return Err(Error::OtherUser);
    }
    // Whoever refuses a connection may close it before it reads; the refusal is there all the same.
    let sent = stream.write_all(request.line().as_bytes());
    let mut line = Vec::new();
    let limit = u64::try_from(4 * LONGEST_LINE).unwrap_or(u64::MAX);
    let read = BufReader::new(Read::take(&stream, limit)).read_until(b'\n', &mut line);
    if line.is_empty() {
        sent.and(read).map_err(Error::NoReply)?;
        return Err(Error::NoReply(io::ErrorKind::UnexpectedEof.into()));
    }
    let reply: Value = serde_json::from_slice(&line).map_err(|_| Error::Garbled)?;
    let text = |name: &str| reply.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    match reply.get("ok").and_then(Value::as_bool) {
        Some(true) => Ok(reply),
        Some(false) => Err(Error::Refused { reason: text("reason"), message: text("message") }),
        None => Err(Error::Garbled),
    }
}
