//! The other side of `--replica`: a socket on which the processes of one run report each append. They get their answer when
//! the lines were published, and begin nothing before it. The messages are in `archeflow_host::replica`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use archeflow_host::platform::socket::{self, UnixListener, UnixStream};
use serde::Deserialize;
use serde_json::json;

use crate::worker::NotEnded;

/// The longest first line of a message, and the most bytes behind it.
const LONGEST_HEADER: u64 = 64 * 1024;
const LARGEST_APPEND: u64 = 256 << 20;

/// What happens at the socket, in its order.
enum Came {
    Connection(UnixStream),
    /// The run's last process has ended.
    Over,
}

/// What one connection sends: that it is there, or that it has appended.
#[derive(Deserialize)]
struct Header {
    hello: Option<String>,
    append: Option<u64>,
    #[serde(default)]
    lines: u64,
    #[serde(default)]
    bytes: u64,
}

/// The replica of one run.
pub struct RunReplica<'a> {
    pub run: &'a str,
    pub socket: &'a Path,
    /// Number of lines that were published.
    pub have: u64,
}

impl RunReplica<'_> {
    /// Performs the work, on a thread of its own, and answers its processes here meanwhile. Also returns why the run could not
    /// be continued, if that is so.
    pub fn attend<T: Send>(
        &mut self,
        listener: &UnixListener,
        publish: &mut dyn FnMut(u64) -> Result<(), NotEnded>,
        work: impl FnOnce() -> T + Send,
    ) -> (Option<T>, Option<NotEnded>) {
        let (post, inbox) = channel();
        thread::scope(|scope| {
            let connections = post.clone();
            scope.spawn(move || accept(listener, &connections));
            let work = scope.spawn(move || {
                let done = work();
                let _ = post.send(Came::Over);
                done
            });
            let mut fault = None;
            for came in inbox {
                match came {
                    Came::Connection(stream) => {
                        // A process that breaks off is not the run's end: the next one sends what is missing.
                        let _ = self.converse(&stream, publish, &mut fault);
                        let _ = stream.shutdown(Shutdown::Both);
                    }
                    Came::Over => break,
                }
            }
            // The thread that accepts finds that nobody listens, and ends.
            let _ = socket::connect(self.socket);
            (work.join().ok(), fault)
        })
    }

    fn converse(
        &mut self,
        stream: &UnixStream,
        publish: &mut dyn FnMut(u64) -> Result<(), NotEnded>,
        fault: &mut Option<NotEnded>,
    ) -> io::Result<()> {
        let mut lines = BufReader::new(stream);
        loop {
            let mut header = Vec::new();
            (&mut lines).take(LONGEST_HEADER).read_until(b'\n', &mut header)?;
            if header.is_empty() {
                return Ok(());
            }
            let header: Header = serde_json::from_slice(&header).map_err(io::Error::other)?;
            if header.bytes > LARGEST_APPEND {
                return Err(io::Error::other("an append is too long"));
            }
            io::copy(&mut (&mut lines).take(header.bytes), &mut io::sink())?;
            if header.hello.as_ref().is_some_and(|run| run != self.run) {
                return Err(io::Error::other("another run was expected"));
            }
            let last = header.append.map(|first| (first + header.lines).saturating_sub(1));
            let published = match (&fault, last) {
                (Some(fault), _) => Err(fault.clone()),
                (None, None) => Ok(()),
                // The lines are read from the journal itself, which has them already.
                (None, Some(last)) => publish(last).inspect(|()| self.have = self.have.max(last)),
            };
            let answer = match published {
                Ok(()) if header.append.is_none() => json!({"ok": true, "have": self.have}),
                Ok(()) => json!({"ok": true}),
                Err(NotEnded::Fenced) => {
                    *fault = Some(NotEnded::Fenced);
                    json!({"fenced": "another worker has continued the run"})
                }
                Err(gave_up @ NotEnded::GaveUp(_)) => {
                    *fault = Some(gave_up);
                    return Ok(());
                }
            };
            let mut to = stream;
            to.write_all(format!("{answer}\n").as_bytes())?;
        }
    }
}

fn accept(listener: &UnixListener, to: &Sender<Came>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { return };
        if to.send(Came::Connection(stream)).is_err() {
            return;
        }
    }
}
