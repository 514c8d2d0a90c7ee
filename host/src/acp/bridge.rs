//! The pipes and the process around the conversation: one thread per thing that can be waited for, all of which post to
//! one channel.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use archeflow_core::event::Failure;
use serde_json::Value;

use super::talk::{AcpAction, AcpTask, Talk};
use super::transcript::Transcripts;
use crate::backends::AgentBackend;
use crate::client_output::own::OwnRecord;
use crate::client_output::read_line;
use crate::platform::children;
use crate::platform::process::{self, Pid, Signal, kill_process_group};
use crate::platform::watcher;
use crate::proc::{self, signals};

/// How long an agent may take to give in when its turn is called off. Less than the supervisor waits for us.
const GIVES_IN: Duration = Duration::from_secs(2);

/// How long it may take to end when its input has ended. Some never do.
const ENDS: Duration = Duration::from_secs(1);

/// How long it may take when it was also asked to, so that it can put its session away.
const GOES: Duration = Duration::from_secs(4);

/// How long its last words may take after it is gone: something it left behind may hold the pipe open.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often a sign of life is passed on when there is no other output.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Lines that wait to be looked at. Beyond that the agent waits.
const WAITING: usize = 64;

/// What can happen.
enum Event {
    Line(Vec<u8>),
    /// Its output has ended.
    Silent,
    /// Its process has ended.
    Gone,
    /// We are asked to end.
    Stop,
}

/// Starts the agent and talks to it till the end. Returns our own exit code.
///
/// # Errors
///
/// When our own output can't be written: the reader is gone.
pub fn run(command: &str, task: AcpTask, out: &mut dyn Write) -> io::Result<u8> {
    let mut bridge = match Bridge::start(command, out) {
        Ok(bridge) => bridge,
        Err(error) => {
            let said = format!("'{command}' can't be started: {error}");
            out.write_all(fault(Failure::NotStarted, said).print().as_bytes())?;
            return Ok(1);
        }
    };
    let code = bridge.converse(task);
    bridge.end();
    code
}

fn fault(kind: Failure, said: String) -> OwnRecord {
    OwnRecord::Fault { kind, said, reopens: None }
}

struct Bridge<'a> {
    agent: Child,
    /// To the agent, by way of a thread: an agent that does not read must not keep us from ending.
    to: Option<Sender<Vec<u8>>>,
    events: Receiver<Event>,
    out: &'a mut dyn Write,
    told: Instant,
    /// Its process has ended, its output has.
    gone: bool,
    silent: bool,
    /// We were asked to end, and have little time.
    stopped: bool,
}

impl Bridge<'_> {
    fn start<'a>(command: &str, out: &'a mut dyn Write) -> io::Result<Bridge<'a>> {
        let invocation = AgentBackend::Cmd(command.to_owned()).invocation(Path::new(""));
        let mut starting = Command::new(invocation.program);
        starting.args(invocation.args).stdin(Stdio::piped()).stdout(Stdio::piped());
        process::own_session(&mut starting);
        let (post, events) = sync_channel(WAITING);
        let asked = post.clone();
        signals::listen(move |_| {
            let _ = asked.send(Event::Stop);
        })?;
        let mut agent = children::spawn(&mut starting)?;
        watcher::cover(Pid::from_child(&agent));
        let (to, sayings) = channel();
        if let (Some(input), Some(output)) = (agent.stdin.take(), agent.stdout.take()) {
            let (post, id) = (post.clone(), agent.id());
            thread::Builder::new().name("say".into()).spawn(move || say(input, &sayings))?;
            let listening = post.clone();
            thread::Builder::new().name("listen".into()).spawn(move || listen(output, &listening))?;
            thread::Builder::new().name("exit".into()).spawn(move || {
                children::await_death(id);
                let _ = post.send(Event::Gone);
            })?;
        }
        Ok(Bridge {
            agent,
            to: Some(to),
            events,
            out,
            told: Instant::now(),
            gone: false,
            silent: false,
            stopped: false,
        })
    }

    fn converse(&mut self, task: AcpTask) -> io::Result<u8> {
        let folders = task.transcripts.clone();
        let mut transcripts = None;
        let (mut talk, begun) = Talk::begin(task);
        let mut over = self.act(begun)?;
        // Set once the end is certain: the agent is gone, or was asked to give in.
        let mut until: Option<Instant> = None;
        while !(over || self.gone && self.silent) {
            match self.next(until) {
                Some(Event::Line(line)) => {
                    let out = talk.hear(&String::from_utf8_lossy(&line));
                    if transcripts.is_none() {
                        transcripts = talk.session().map(|session| Transcripts::open(&folders, session));
                    }
                    let used = transcripts.iter_mut().flat_map(|transcripts| transcripts.look(&talk));
                    let used: Vec<AcpAction> = used.map(AcpAction::Tell).collect();
                    self.act(used)?;
                    over = self.act(out)?;
                    self.sign_of_life()?;
                }
                Some(Event::Stop) if !self.stopped => {
                    self.stopped = true;
                    until = Some(Instant::now() + GIVES_IN);
                    over = self.act(talk.cancel())?;
                }
                Some(Event::Gone | Event::Silent) => until = until.or(Some(Instant::now() + LAST_WORDS)),
                Some(Event::Stop) | None => break,
            }
        }
        match (over, self.stopped) {
            (_, true) => Ok(143),
            (true, false) => Ok(0),
            (false, false) => self.left_early(),
        }
    }

    /// The next thing that happens, or nothing when it is too late.
    fn next(&mut self, until: Option<Instant>) -> Option<Event> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let event = match left {
            Some(left) => self.events.recv_timeout(left).ok()?,
            None => self.events.recv().ok()?,
        };
        self.gone |= matches!(event, Event::Gone);
        self.silent |= matches!(event, Event::Silent);
        Some(event)
    }

    /// Performs actions; returns whether the conversation is over.
    fn act(&mut self, out: Vec<AcpAction>) -> io::Result<bool> {
        for out in out {
            match out {
                AcpAction::Say(message) => self.say(&message),
                AcpAction::Tell(line) => {
                    self.out.write_all(line.print().as_bytes())?;
                    self.out.flush()?;
                    self.told = Instant::now();
                }
                AcpAction::End => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Writing to an agent that is gone has no effect; its end is reported separately.
    fn say(&self, message: &Value) {
        if let Some(to) = &self.to {
            let _ = to.send(format!("{message}\n").into_bytes());
        }
    }

    /// An agent that thinks aloud is not silent, even if nothing of it is passed on.
    fn sign_of_life(&mut self) -> io::Result<()> {
        if self.told.elapsed() >= SIGN_OF_LIFE {
            self.told = Instant::now();
            self.out.write_all(b"\n")?;
            self.out.flush()?;
        }
        Ok(())
    }

    /// The agent exited before its turn was over. Its last output on standard error is the reason.
    fn left_early(&mut self) -> io::Result<u8> {
        self.await_end(ENDS);
        let status = if self.gone { children::wait(&mut self.agent).ok() } else { None };
        let code = status.and_then(|status| status.code());
        let why = match (status, code, status.and_then(process::killed_by)) {
            (None, ..) => Some((Failure::Exit, "the agent stopped speaking".to_owned())),
            (_, Some(126 | 127), _) => Some((Failure::NotStarted, "its command can't be run".to_owned())),
            (_, None, Some(signal)) => {
                Some((Failure::Signal, format!("the agent was killed by signal {signal}")))
            }
            (Some(_), Some(_) | None, _) => None,
        };
        if let Some((kind, said)) = why {
            self.out.write_all(fault(kind, said).print().as_bytes())?;
        }
        Ok(code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code != 0).unwrap_or(1))
    }

    /// Lets it end by itself for a moment, so that it can put its session away; `None` if it does not.
    fn close(&mut self) -> Option<ExitStatus> {
        self.to = None;
        self.await_end(ENDS);
        if !self.gone && !self.stopped {
            let _ = kill_process_group(Pid::from_child(&self.agent), Signal::TERM);
            self.await_end(GOES);
        }
        if self.gone { children::wait(&mut self.agent).ok() } else { None }
    }

    fn await_end(&mut self, time: Duration) {
        let until = Some(Instant::now() + time);
        while !self.gone {
            match self.next(until) {
                Some(Event::Stop) => self.stopped = true,
                Some(Event::Line(_) | Event::Silent | Event::Gone) => continue,
                None => {}
            }
            break;
        }
    }

    /// Nothing of it stays, also of one that ends and leaves its family behind. What is not known to be of the family
    /// is found by the supervisor.
    fn end(mut self) {
        let family = proc::family(&self.agent);
        if self.close().is_none() {
            proc::kill_family(&self.agent);
            let _ = children::wait(&mut self.agent);
        }
        family.kill();
    }
}

fn say(mut input: ChildStdin, sayings: &Receiver<Vec<u8>>) {
    while let Ok(saying) = sayings.recv() {
        if input.write_all(&saying).and_then(|()| input.flush()).is_err() {
            break;
        }
    }
}

fn listen(output: impl Read, post: &SyncSender<Event>) {
    let mut lines = BufReader::new(output);
    let mut line = Vec::new();
    while read_line(&mut lines, &mut line).is_ok_and(|read| read > 0) {
        if post.send(Event::Line(std::mem::take(&mut line))).is_err() {
            return;
        }
    }
    let _ = post.send(Event::Silent);
}
