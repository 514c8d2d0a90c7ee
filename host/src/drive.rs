//! The loop: record, apply, perform, wait. It moves things and knows nothing of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use archeflow_core::event::{
    AgentStart, Entry, Event, Order, QuestionAnswered, QuestionAsked, QuestionDeferred, Report, SessionEnd,
};
use archeflow_core::model::{Outcome, Seq};
use archeflow_core::run::Run;

use crate::executors::{self, DeskError, Message, Trouble};
use crate::store::{files, journal::Journal};
use crate::world::World;
use crate::{agent_loop, clock, failpoint, handoff, log, proc, projections};

/// What looks at a run while it goes on. It can't influence it, except by answering when asked.
pub trait Face {
    /// A line was written; `run` has taken it in.
    fn wrote(&mut self, run: &Run, entry: &Entry);
    /// What an agent printed while it works.
    fn murmur(&mut self, order: Seq, text: &str);
    /// Time passes.
    fn tick(&mut self, run: &Run);
    fn warn(&mut self, text: &str);
    /// Puts a question to a person. Called only in attended sessions.
    fn ask(&mut self, run: &Run, question: &QuestionAsked) -> Asked;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Answer(String),
    /// Nobody answered; the run ends with the question open.
    Left,
    /// A signal came instead.
    Interrupted,
}

/// How driving ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    Outcome(Outcome),
    Signal(i32),
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Desk(#[from] DeskError),
    #[error(transparent)]
    Trouble(#[from] Trouble),
    #[error("an artifact could not be written: {0}")]
    Artifact(#[from] files::Error),
    #[error("the run waits for nothing and has not ended; this is a bug in archeflow. Its log is intact")]
    Stuck,
}

/// One run with its log, being driven.
pub struct Driver {
    pub world: Arc<World>,
    pub run: Run,
    /// Agents named anew for this session.
    pub agents: BTreeMap<String, String>,
    journal: Journal,
    inbox: Receiver<Message>,
    post: Sender<Message>,
}

const TICK: Duration = Duration::from_millis(100);
/// So long may whoever is still out at the end take to come home.
const LAST_ORDERS: Duration = Duration::from_secs(30);

impl Driver {
    pub fn new(world: World, run: Run, journal: Journal) -> Driver {
        let (post, inbox) = channel();
        Driver { world: Arc::new(world), run, agents: BTreeMap::new(), journal, inbox, post }
    }

    /// Where signals are to be posted.
    pub fn post(&self) -> Sender<Message> {
        self.post.clone()
    }

    /// Takes in reports from outside the loop: the request, a session, a person's word.
    pub fn tell(&mut self, face: &mut dyn Face, reports: Vec<Report>) -> Result<(), Error> {
        let now = clock::now();
        let entries = reports.into_iter().map(|report| self.run.hear(now, report)).collect();
        self.record(face, entries).map(drop)
    }

    /// Drives the run until it ends or waits for somebody who is not there, and leaves nobody running (I5): whoever
    /// is still out then, such as tests that a signal cut short, dies with the thread that started it, and what it
    /// had started itself would not.
    pub fn drive(&mut self, face: &mut dyn Face) -> Result<Ended, Error> {
        let ended = self.go(face);
        if !proc::all_over(Duration::ZERO) {
            self.world.stop();
            if !proc::all_over(LAST_ORDERS) {
                self.world.kill_now();
                proc::all_over(LAST_ORDERS);
            }
        }
        ended
    }

    fn go(&mut self, face: &mut dyn Face) -> Result<Ended, Error> {
        projections::catch_up(&self.world, &self.run)?;
        failpoint::pass("caught_up");
        let left_open: Vec<(Seq, Order)> =
            self.run.open.iter().map(|(seq, order)| (*seq, order.clone())).collect();
        for (seq, order) in left_open {
            executors::perform(&self.world, &self.run, seq, &order, true, &self.post)?;
        }
        let mut heard: Vec<Entry> = Vec::new();
        loop {
            let now = clock::now();
            heard.extend(self.run.settle(now));
            let orders = self.record(face, std::mem::take(&mut heard))?;
            for (seq, order) in orders {
                executors::perform(&self.world, &self.run, seq, &order, false, &self.post)?;
            }
            if self.run.broke.is_some() && self.run.open_agents().next().is_some() {
                self.world.errands.stop();
            }
            if let Some(outcome) = &self.run.outcome {
                executors::vacate(&self.world, outcome);
                return Ok(Ended::Outcome(outcome.clone()));
            }
            if self.run.open.is_empty() {
                return Err(Error::Stuck);
            }
            if let Some((seq, question)) = self.run.question() {
                if let Some(report) = self.written(face) {
                    heard.push(self.run.hear(clock::now(), report));
                    continue;
                }
                let report = match face.ask(&self.run, question) {
                    // Whoever writes into the cycle file of a loop only says that it is done.
                    Asked::Answer(text) if text.is_empty() && self.run.agent_loop.is_some() => {
                        self.written(face).unwrap_or_else(|| QuestionDeferred { start_seq: seq }.into())
                    }
                    Asked::Answer(text) => Report::from(QuestionAnswered { start_seq: seq, text }),
                    Asked::Left => QuestionDeferred { start_seq: seq }.into(),
                    Asked::Interrupted => return self.interrupted(face, self.pending_signal()),
                };
                heard.push(self.run.hear(clock::now(), report));
                continue;
            }
            match self.wait(face)? {
                Woken::Report(order, report) => {
                    if self.run.open.contains_key(&order) {
                        heard.push(self.run.hear(clock::now(), report));
                    }
                }
                Woken::Signal(signal) => return self.interrupted(face, signal),
            }
        }
    }

    /// What a person wrote into the cycle file of a loop that waits for one.
    fn written(&self, face: &mut dyn Face) -> Option<Report> {
        match agent_loop::hear::from_file(&self.world, &self.run) {
            Ok(heard) => heard.map(Report::from),
            Err(error) => {
                face.warn(&error.to_string());
                None
            }
        }
    }

    /// On disk first, then everything that follows from it.
    fn record(&mut self, face: &mut dyn Face, entries: Vec<Entry>) -> Result<Vec<(Seq, Order)>, Error> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        log::append(&mut self.journal, &entries)?;
        failpoint::pass("recorded");
        projections::write(&self.world, &self.run, &entries)?;
        failpoint::pass("projected");
        for entry in &entries {
            face.wrote(&self.run, entry);
        }
        for warning in handoff::write(&self.world, &self.run, &entries) {
            face.warn(&warning);
        }
        for warning in projections::observe(&self.world, &self.run, &entries) {
            face.warn(&warning);
        }
        failpoint::pass("observed");
        let orders = entries.into_iter().filter_map(|entry| match entry.event {
            Event::Order(order) => Some((entry.seq, order)),
            Event::Decision(_) | Event::Report(_) => None,
        });
        Ok(orders.collect())
    }

    fn wait(&self, face: &mut dyn Face) -> Result<Woken, Error> {
        loop {
            match self.inbox.recv_timeout(TICK) {
                Ok(Message::Report { order, report }) => {
                    failpoint::pass("performed");
                    return Ok(Woken::Report(order, report));
                }
                Ok(Message::Murmur { order, text }) => face.murmur(order, &text),
                Ok(Message::Trouble(trouble)) => {
                    self.call_in();
                    return Err(trouble.into());
                }
                Ok(Message::Signal(signal)) => return Ok(Woken::Signal(signal)),
                Err(RecvTimeoutError::Timeout) => face.tick(&self.run),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Stuck),
            }
        }
    }

    fn pending_signal(&self) -> i32 {
        while let Ok(message) = self.inbox.try_recv() {
            if let Message::Signal(signal) = message {
                return signal;
            }
        }
        2
    }

    /// SIGINT once: everybody comes home, what they did is kept, the log says so, and the run can be resumed.
    fn interrupted(&mut self, face: &mut dyn Face, signal: i32) -> Result<Ended, Error> {
        face.warn("stopping: agents are called in and their work is kept; press again to stop at once");
        self.world.stop();
        let mut entries = Vec::new();
        while self.run.open_agents().next().is_some() || self.is_landing() {
            // A landing may wait for another one and for a slow disk.
            let patience = Duration::from_secs(if self.is_landing() { 300 } else { 30 });
            match self.inbox.recv_timeout(patience) {
                Ok(Message::Report { order, report }) if self.run.open.contains_key(&order) => {
                    entries.push(self.run.hear(clock::now(), report));
                }
                Ok(Message::Signal(_)) => self.world.kill_now(),
                Ok(Message::Report { .. } | Message::Murmur { .. }) => {}
                Ok(Message::Trouble(_)) | Err(_) => break,
            }
        }
        entries.push(self.run.hear(clock::now(), SessionEnd { signal }));
        self.record(face, entries)?;
        Ok(Ended::Signal(signal))
    }

    /// M-H8: a branch and its checkout are on the move; that is finished whatever happens.
    fn is_landing(&self) -> bool {
        self.run.open.values().any(|order| matches!(order, Order::MergeIntent(_) | Order::RevertIntent(_)))
    }

    /// Ends every agent that is out, waiting for their hands to finish.
    fn call_in(&self) {
        self.world.stop();
        let out = self.run.open_agents().count().saturating_sub(1);
        for _ in 0..out {
            if self.inbox.recv_timeout(Duration::from_secs(30)).is_err() {
                break;
            }
        }
    }

    /// The order an agent's report answers, for faces.
    pub fn started(run: &Run, seq: Seq) -> Option<&AgentStart> {
        run.open_agents().find(|(open, _)| *open == seq).map(|(_, start)| start)
    }
}

enum Woken {
    Report(Seq, Report),
    Signal(i32),
}
