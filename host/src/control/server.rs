//! The end of the socket that the driving process has. Everything is bounded: connections, lines, time.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{ControlRefusal, LONGEST_LINE, Request, Steering, private_folder, reply_line};
use crate::platform::files::set_mode;
use crate::platform::socket::{SocketPeer, UnixListener, UnixStream, peer};
use crate::proc;

const CONNECTIONS: usize = 8;
const REQUESTS_PER_CONNECTION: usize = 64;
/// A whole line has to arrive within this time.
const LINE: Duration = Duration::from_secs(10);
const WRITE: Duration = Duration::from_secs(5);
/// The driver replies between two steps, and a step may write to a slow disk.
const REPLY: Duration = Duration::from_secs(30);
/// Between two requests that reach the driver: a flood must not fill the journal.
const BETWEEN: Duration = Duration::from_millis(20);
/// How often a connection that waits for a reply looks whether the run is over.
const LOOK: Duration = Duration::from_millis(20);
/// At the end of a run, replies that are on their way have this long to be written.
const LAST_REPLIES: Duration = Duration::from_secs(2);

/// Listens until dropped.
pub struct Server {
    path: PathBuf,
    shared: Arc<Shared>,
}

/// Gives a request to the driver; `false` if there is none any more.
type Post = Box<dyn Fn(Steering) -> bool + Send + Sync>;

/// What all connections share.
struct Shared {
    post: Post,
    open: AtomicUsize,
    /// Requests whose reply is not written yet.
    unanswered: AtomicUsize,
    /// One request at a time reaches the driver; this is when the last one did.
    turn: Mutex<Option<Instant>>,
    /// The run is driven no longer.
    over: AtomicBool,
}

/// Opens the socket of a run. The caller holds the run's journal, so a socket of that name belongs to a process that
/// is gone, and is replaced.
pub fn serve(path: &Path, post: impl Fn(Steering) -> bool + Send + Sync + 'static) -> io::Result<Server> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidFilename)?;
    private_folder(folder)?;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    // Nobody else can enter the folder in between.
    set_mode(path, 0o600)?;
    let shared = Arc::new(Shared {
        post: Box::new(post),
        open: AtomicUsize::new(0),
        unanswered: AtomicUsize::new(0),
        turn: Mutex::new(None),
        over: AtomicBool::new(false),
    });
    let server = Server { path: path.to_owned(), shared: Arc::clone(&shared) };
    thread::Builder::new().name("control".into()).spawn(move || accept(&listener, &shared))?;
    Ok(server)
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts.
        let _ = UnixStream::connect(&self.path);
        let _ = fs::remove_file(&self.path);
        // The program may end now, and with it the threads: the client that asked for the stop should get its reply first.
        let until = Instant::now() + LAST_REPLIES;
        while self.shared.unanswered.load(Ordering::SeqCst) > 0 && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

fn accept(listener: &UnixListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.over.load(Ordering::SeqCst) {
            return;
        }
        match stream {
            Ok(stream) => receive(stream, shared),
            // No more file descriptors, for example: it may get better.
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    }
}

fn receive(mut stream: UnixStream, shared: &Arc<Shared>) {
    if shared.open.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS {
        shared.open.fetch_sub(1, Ordering::SeqCst);
        let _ = stream.set_nonblocking(true);
        let _ = stream.write(reply_line(&Err(ControlRefusal::TooMany)).as_bytes());
        return;
    }
    let own = Arc::clone(shared);
    let serve = move || {
        // A client that hangs up or falls silent only ends its own connection.
        let _ = converse(&mut stream, &own);
        own.open.fetch_sub(1, Ordering::SeqCst);
    };
    if thread::Builder::new().name("steering".into()).spawn(serve).is_err() {
        shared.open.fetch_sub(1, Ordering::SeqCst);
    }
}

fn converse(stream: &mut UnixStream, shared: &Shared) -> io::Result<()> {
    stream.set_write_timeout(Some(WRITE))?;
    if let Some(refusal) = may_not_steer(stream) {
        return stream.write_all(reply_line(&Err(refusal)).as_bytes());
    }
    let mut rest = Vec::new();
    for _ in 0..REQUESTS_PER_CONNECTION {
        let line = match read_line(stream, &mut rest)? {
            NextLine::Line(line) => Ok(line),
            NextLine::TooLong => Err(ControlRefusal::TooLong),
            NextLine::End => return Ok(()),
        };
        shared.unanswered.fetch_add(1, Ordering::SeqCst);
        let reply = line.and_then(|line| Request::parse(&line)).and_then(|request| shared.ask(request));
        let written = stream.write_all(reply_line(&reply).as_bytes());
        shared.unanswered.fetch_sub(1, Ordering::SeqCst);
        written?;
        if reply == Err(ControlRefusal::TooLong) {
            return Ok(());
        }
    }
    Ok(())
}

fn may_not_steer(stream: &UnixStream) -> Option<ControlRefusal> {
    let Ok(peer) = peer(stream) else { return Some(ControlRefusal::OtherUser) };
    refusal(&peer, crate::platform::process::acting_user(), proc::is_descendant)
}

pub(super) fn refusal(peer: &SocketPeer, us: u32, is_inside: impl Fn(i32) -> bool) -> Option<ControlRefusal> {
    if peer.user != us {
        return Some(ControlRefusal::OtherUser);
    }
    peer.process.is_some_and(is_inside).then_some(ControlRefusal::FromInside)
}

impl Shared {
    fn ask(&self, request: Request) -> Result<Value, ControlRefusal> {
        let mut last = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = last.map_or(Duration::ZERO, |last| BETWEEN.saturating_sub(last.elapsed()));
        thread::sleep(rest);
        let (reply, replies) = sync_channel(1);
        if !(self.post)(Steering { request, reply }) {
            return Err(ControlRefusal::Ended);
        }
        let begun = Instant::now();
        let reply = loop {
            // Looked at first: what the driver replied before it ended still counts.
            let over = self.over.load(Ordering::SeqCst);
            match replies.recv_timeout(LOOK) {
                Ok(reply) => break reply,
                Err(RecvTimeoutError::Disconnected) => break Err(ControlRefusal::Ended),
                Err(RecvTimeoutError::Timeout) if over => break Err(ControlRefusal::Ended),
                Err(RecvTimeoutError::Timeout) if begun.elapsed() >= REPLY => {
                    break Err(ControlRefusal::NoReply);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        };
        *last = Some(Instant::now());
        reply
    }
}

enum NextLine {
    Line(Vec<u8>),
    TooLong,
    End,
}

/// The next line, without its break. `rest` keeps what came after it.
fn read_line(stream: &mut UnixStream, rest: &mut Vec<u8>) -> io::Result<NextLine> {
    let until = Instant::now() + LINE;
    let mut searched = 0;
    loop {
        if let Some(at) = rest.iter().skip(searched).position(|byte| *byte == b'\n') {
            let mut line: Vec<u8> = rest.drain(..=searched + at).collect();
            line.pop();
            return Ok(NextLine::Line(line));
        }
        searched = rest.len();
        if searched >= LONGEST_LINE {
            return Ok(NextLine::TooLong);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(NextLine::End),
            Ok(count) => rest.extend_from_slice(buffer.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
