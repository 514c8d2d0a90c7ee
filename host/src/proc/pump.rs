//! Moves bytes: the given input to the child, its output to the sinks, never waiting for one while another is ready.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::thread;
use std::time::Duration;

use super::clock::PipeState;
use super::job::Stream;
use super::leader::Leader;
use super::sink::{Keeper, SinkReport};
use super::watch::{Asked, Watch};
use crate::platform::Errno;
use crate::platform::poll::{self, PollFd, PollFlags};
use crate::platform::session::SessionLeader;
use crate::secrets::{Secrets, SecretsMask};

const CHUNK: usize = 64 * 1024;

/// Most bytes left in a pipe after all its writers are dead.
const REST: usize = 1024 * 1024;

/// How often to look when the system had no descriptor to wake us with.
const PATROL: Duration = Duration::from_millis(50);

pub(super) struct Pump {
    feed: Option<Feed>,
    stdout: Tap<ChildStdout>,
    stderr: Tap<ChildStderr>,
    buffer: Box<[u8]>,
    exited: bool,
    asked: Option<Asked>,
}

struct Feed {
    pipe: ChildStdin,
    bytes: Vec<u8>,
    fed: usize,
}

struct Tap<P> {
    stream: Stream,
    pipe: Option<P>,
    keeper: Keeper,
    mask: SecretsMask,
}

impl Pump {
    pub(super) fn new(
        child: &mut SessionLeader,
        stdin: Vec<u8>,
        (stdout, stderr): (Keeper, Keeper),
        secrets: &Secrets,
    ) -> Self {
        let feed = child.stdin.take().and_then(|pipe| Feed::open(pipe, stdin));
        Self {
            feed,
            stdout: Tap::open(Stream::Stdout, child.stdout.take(), stdout, secrets),
            stderr: Tap::open(Stream::Stderr, child.stderr.take(), stderr, secrets),
            buffer: vec![0; CHUNK].into_boxed_slice(),
            exited: false,
            asked: None,
        }
    }

    /// Waits until something can be done or the time is up, and does it, a chunk at most per pipe.
    pub(super) fn turn(
        &mut self,
        leader: &Leader,
        watch: &Watch,
        timeout: Option<Duration>,
        on_output: &mut dyn FnMut(Stream, &[u8]),
    ) -> PipeState {
        let blind = leader.exit_fd().is_none() || watch.is_deaf();
        let timeout = if blind { Some(timeout.map_or(PATROL, |given| given.min(PATROL))) } else { timeout };
        let ready = self.wait(leader, watch, timeout);
        self.asked = watch.asked();
        if !self.exited && (ready.exit || leader.exit_fd().is_none()) && leader.is_gone() {
            self.exited = true;
            self.feed = None;
        }
        if ready.stdin && self.feed.as_mut().is_some_and(|feed| !feed.push()) {
            self.feed = None;
        }
        let out = if ready.stdout { self.stdout.pull(&mut self.buffer, on_output) } else { 0 };
        let err = if ready.stderr { self.stderr.pull(&mut self.buffer, on_output) } else { 0 };
        PipeState { heard: out + err > 0, exited: self.exited, closed: self.is_closed(), asked: self.asked }
    }

    /// Reads what is left in the pipes, without waiting, and passes on what was held back.
    pub(super) fn rest(&mut self, on_output: &mut dyn FnMut(Stream, &[u8])) {
        self.stdout.rest(&mut self.buffer, on_output);
        self.stderr.rest(&mut self.buffer, on_output);
    }

    pub(super) fn close(self) -> (SinkReport, SinkReport) {
        (self.stdout.keeper.close(), self.stderr.keeper.close())
    }

    fn is_closed(&self) -> bool {
        self.stdout.pipe.is_none() && self.stderr.pipe.is_none()
    }

    fn wait(&self, leader: &Leader, watch: &Watch, timeout: Option<Duration>) -> Ready {
        let exit = leader.exit_fd().filter(|_| !self.exited);
        let stdin = self.feed.as_ref().map(|feed| feed.pipe.as_fd());
        let mut fds = Vec::with_capacity(6);
        let exit = enlist(&mut fds, exit, PollFlags::IN);
        let stdin = enlist(&mut fds, stdin, PollFlags::OUT);
        let stdout = enlist(&mut fds, self.stdout.fd(), PollFlags::IN);
        let stderr = enlist(&mut fds, self.stderr.fd(), PollFlags::IN);
        fds.extend(watch.ears(self.asked).map(|ear| PollFd::from_borrowed_fd(ear, PollFlags::IN)));
        // A failed or interrupted wait shows nothing; the caller looks again.
        if let Err(error) = poll::wait(&mut fds, timeout) {
            thread::sleep(if error == Errno::INTR { Duration::ZERO } else { PATROL });
            return Ready::default();
        }
        let ready =
            |at: Option<usize>| at.and_then(|at| fds.get(at)).is_some_and(|fd| !fd.revents().is_empty());
        Ready { exit: ready(exit), stdin: ready(stdin), stdout: ready(stdout), stderr: ready(stderr) }
    }
}

#[derive(Default)]
struct Ready {
    exit: bool,
    stdin: bool,
    stdout: bool,
    stderr: bool,
}

fn enlist<'fd>(fds: &mut Vec<PollFd<'fd>>, fd: Option<BorrowedFd<'fd>>, flags: PollFlags) -> Option<usize> {
    fds.push(PollFd::from_borrowed_fd(fd?, flags));
    Some(fds.len() - 1)
}

impl Feed {
    fn open(pipe: ChildStdin, bytes: Vec<u8>) -> Option<Self> {
        // A pipe that could block us is worse than a child without input.
        poll::never_block(&pipe).ok()?;
        Some(Self { pipe, bytes, fed: 0 })
    }

    /// Whether there is more to feed. A child that closed its input has all it wants.
    fn push(&mut self) -> bool {
        match self.pipe.write(self.bytes.get(self.fed..).unwrap_or_default()) {
            Ok(written) => {
                self.fed += written;
                self.fed < self.bytes.len()
            }
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }
}

impl<P: Read + AsFd> Tap<P> {
    fn open(stream: Stream, pipe: Option<P>, keeper: Keeper, secrets: &Secrets) -> Self {
        let pipe = pipe.filter(|pipe| poll::never_block(pipe).is_ok());
        Self { stream, pipe, keeper, mask: SecretsMask::new(secrets.clone()) }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(P::as_fd)
    }

    /// Reads one chunk and returns its length; at the end of the pipe it is closed.
    fn pull(&mut self, buffer: &mut [u8], on_output: &mut dyn FnMut(Stream, &[u8])) -> usize {
        let Some(pipe) = self.pipe.as_mut() else { return 0 };
        let length = match pipe.read(buffer) {
            Ok(length) => length,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return 0,
            Err(_) => 0,
        };
        let Some(chunk) = buffer.get(..length).filter(|chunk| !chunk.is_empty()) else {
            self.pipe = None;
            return 0;
        };
        let known = self.mask.next(chunk);
        if !known.is_empty() {
            self.keeper.keep(&known);
            on_output(self.stream, &known);
        }
        length
    }

    fn rest(&mut self, buffer: &mut [u8], on_output: &mut dyn FnMut(Stream, &[u8])) {
        let mut taken = 0;
        while taken < REST {
            match self.pull(buffer, on_output) {
                0 => break,
                length => taken += length,
            }
        }
        let held = self.mask.rest();
        if !held.is_empty() {
            self.keeper.keep(&held);
            on_output(self.stream, &held);
        }
    }
}
