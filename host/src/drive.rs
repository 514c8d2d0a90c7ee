//! The driver loop: record, apply, perform, wait. It knows nothing of what the events mean.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use archeflow_core::event::{
    AgentStart, Entry, Event, Order, QuestionAnswered, QuestionAsked, QuestionDeferred, Report, SessionEnd,
};
use archeflow_core::model::{Outcome, Seq};
use archeflow_core::run::Run;
use archeflow_core::settings::NotifySettings;

use crate::control::{self, ControlRefusal, Effect, Steering};
use crate::executors::{self, DeskError, ExecutorFault, Message};
use crate::notify::Notifier;
use crate::store::{files, journal::Journal};
use crate::world::World;
use crate::{clock, failpoint, handoff, hands, log, proc, projections, rollback, strategies};

/// Watches a run while it is driven. It can't influence the run, except by answering questions.
pub trait RunObserver {
    /// A line was written and applied to `run`.
    fn wrote(&mut self, run: &Run, entry: &Entry);
    /// A line an agent printed.
    fn agent_line(&mut self, order: Seq, text: &str);
    /// Time passes.
    fn tick(&mut self, run: &Run);
    fn warn(&mut self, text: &str);
    /// Asks a person. Called only in attended sessions. `elsewhere` returns true once another process has steered the
    /// run; the observer polls it while it waits.
    fn ask(&mut self, run: &Run, question: &QuestionAsked, elsewhere: &mut dyn FnMut() -> bool) -> Asked;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Answer(String),
    /// Nobody answered; the run ends with the question open.
    Left,
    /// A signal arrived instead.
    Interrupted,
    /// `elsewhere` said so.
    Elsewhere,
}

/// How driving ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriveEnd {
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
    Trouble(#[from] ExecutorFault),
    #[error("an artifact could not be written: {0}")]
    Artifact(#[from] files::Error),
    #[error(transparent)]
    Rollback(#[from] rollback::Error),
    #[error("the run waits for nothing and has not ended; this is a bug in archeflow. Its log is intact")]
    Stuck,
    #[error(
        "the run was let go of and can't be driven any more; this is a bug in archeflow. Its log is intact"
    )]
    LetGo,
}

/// One run with its log, being driven.
pub struct Driver {
    pub world: Arc<World>,
    pub run: Run,
    /// Agents that were named for this session only.
    pub agents: BTreeMap<String, String>,
    /// Notifies a person who does not look that the run waits.
    pub notifier: Option<Notifier>,
    /// How it is to do so.
    pub notify: NotifySettings,
    /// Until the run is let go of.
    journal: Option<Journal>,
    inbox: Inbox,
    post: Sender<Message>,
}

/// The messages to the driver, in their order.
struct Inbox {
    messages: Receiver<Message>,
    /// Arrived while a question was open; handled afterwards.
    early: VecDeque<Message>,
}

impl Inbox {
    fn next(&mut self, wait: Duration) -> Result<Message, RecvTimeoutError> {
        self.early.pop_front().map_or_else(|| self.messages.recv_timeout(wait), Ok)
    }

    /// The next request of another process, ahead of other messages.
    fn steering(&mut self) -> Option<Steering> {
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::Steer(steering) => return Some(steering),
                other @ (Message::Report { .. }
                | Message::AgentLine { .. }
                | Message::Trouble(_)
                | Message::Signal(_)) => self.early.push_back(other),
            }
        }
        None
    }
}

const TICK: Duration = Duration::from_millis(100);
/// The signal that a request to stop stands for.
const SIGINT: i32 = 2;
/// How long processes that still run at the end may take to exit.
const EXIT_AT_MOST: Duration = Duration::from_secs(30);

impl Driver {
    pub fn new(world: World, run: Run, journal: Journal) -> Driver {
        let (post, messages) = channel();
        let inbox = Inbox { messages, early: VecDeque::new() };
        Driver {
            world: Arc::new(world),
            run,
            agents: BTreeMap::new(),
            notifier: None,
            notify: NotifySettings::default(),
            journal: Some(journal),
            inbox,
            post,
        }
    }

    /// Lets other processes drive the run, while this one only shows how it ended. Nothing can be recorded afterwards.
    pub fn let_go(&mut self) {
        self.journal = None;
    }

    /// Where signals are to be posted.
    pub fn post(&self) -> Sender<Message> {
        self.post.clone()
    }

    /// Records reports from outside the loop: the request, a session, a person's answer.
    pub fn tell(&mut self, observer: &mut dyn RunObserver, reports: Vec<Report>) -> Result<(), Error> {
        let now = clock::now();
        let entries: Vec<Entry> = reports.into_iter().map(|report| self.run.hear(now, report)).collect();
        self.record(observer, &entries)
    }

    /// Drives the run until it ends or waits for a person who is not there, and leaves no process behind (I5). A job
    /// that still runs then, such as tests cut short by a signal, would die with the thread that started it, but its
    /// descendants would not.
    pub fn drive(&mut self, observer: &mut dyn RunObserver) -> Result<DriveEnd, Error> {
        let ended = self.go(observer);
        hands::all_removed(EXIT_AT_MOST);
        if !proc::all_over(Duration::ZERO) {
            self.world.stop();
            if !proc::all_over(EXIT_AT_MOST) {
                self.world.kill_now();
                proc::all_over(EXIT_AT_MOST);
            }
        }
        ended
    }

    fn go(&mut self, observer: &mut dyn RunObserver) -> Result<DriveEnd, Error> {
        projections::catch_up(&self.world, &self.run)?;
        rollback::carry_out(&self.world, &self.run)?;
        failpoint::pass("caught_up");
        self.notify_person(observer, &[]);
        let left_open: Vec<(Seq, Order)> =
            self.run.open.iter().map(|(seq, order)| (*seq, order.clone())).collect();
        for (seq, order) in left_open {
            executors::perform(&self.world, &self.run, seq, &order, true, &self.post)?;
        }
        let mut heard: Vec<Entry> = Vec::new();
        loop {
            let now = clock::now();
            heard.extend(self.run.settle(now));
            let entries = std::mem::take(&mut heard);
            self.record_only(&entries)?;
            let mut orders = entries.iter().filter_map(order_of);
            let begun = orders.try_for_each(|(seq, order)| {
                executors::perform(&self.world, &self.run, seq, order, false, &self.post)
            });
            // What only watches is written while the agents start.
            self.show(observer, &entries);
            begun?;
            for seq in &self.run.ledger.used_up {
                self.world.end_attempt(*seq);
            }
            if self.run.broke.is_some() && self.run.open_agents().next().is_some() {
                self.world.agents_watch.stop();
            }
            if let Some(outcome) = &self.run.outcome {
                executors::remove_homes(&self.world, outcome);
                return Ok(DriveEnd::Outcome(outcome.clone()));
            }
            if self.run.open.is_empty() && self.run.paused.is_none() {
                return Err(Error::Stuck);
            }
            if let Some((seq, question)) = self.run.question() {
                if let Some(report) = self.written(observer) {
                    heard.push(self.run.hear(clock::now(), report));
                    continue;
                }
                let mut steered = None;
                let asked = observer.ask(&self.run, question, &mut || {
                    steered = steered.take().or_else(|| {
                        self.inbox
                            .steering()
                            .and_then(|steering| takes_effect(&self.run, &self.world, steering))
                    });
                    steered.is_some()
                });
                if let Some(steering) = steered {
                    // An answer that was typed at the same moment came second.
                    match self.steer(observer, steering)? {
                        Some(signal) => return self.interrupted(observer, signal),
                        None => continue,
                    }
                }
                let report = match asked {
                    // The answer is in a file, and the person only says that it is done.
                    Asked::Answer(text) if text.is_empty() && self.run.answers_in_file() => {
                        self.written(observer).unwrap_or_else(|| QuestionDeferred { start_seq: seq }.into())
                    }
                    Asked::Answer(text) => {
                        Report::from(QuestionAnswered { start_seq: seq, text, by: String::new() })
                    }
                    Asked::Left => QuestionDeferred { start_seq: seq }.into(),
                    Asked::Interrupted => {
                        let signal = self.pending_signal();
                        return self.interrupted(observer, signal);
                    }
                    Asked::Elsewhere => continue,
                };
                heard.push(self.run.hear(clock::now(), report));
                continue;
            }
            match self.wait(observer)? {
                Woken::Report(order, report) => {
                    if self.run.open.contains_key(&order) {
                        heard.push(self.run.hear(clock::now(), report));
                    }
                }
                Woken::Signal(signal) => return self.interrupted(observer, signal),
                Woken::Steered(steering) => {
                    if let Some(signal) = self.steer(observer, steering)? {
                        return self.interrupted(observer, signal);
                    }
                }
            }
        }
    }

    /// Does what another process asks, and replies once it is on disk. Returns a signal if the request is to stop.
    fn steer(&mut self, observer: &mut dyn RunObserver, steering: Steering) -> Result<Option<i32>, Error> {
        let Some(steering) = takes_effect(&self.run, &self.world, steering) else { return Ok(None) };
        match control::effect(&self.run, &self.world.run_id, &steering.request) {
            Ok(Effect::Write(report)) => {
                let entry = self.run.hear(clock::now(), report);
                self.record(observer, &[entry])?;
                steering.reply(Ok(serde_json::json!({})));
                Ok(None)
            }
            Ok(Effect::Stop) => {
                steering.reply(Ok(serde_json::json!({})));
                Ok(Some(SIGINT))
            }
            Ok(Effect::Reply(_)) | Err(_) => Ok(None),
        }
    }

    /// The answer to the open question that a person wrote into a file.
    fn written(&self, observer: &mut dyn RunObserver) -> Option<Report> {
        strategies::answer_in_file(&self.world, &self.run).unwrap_or_else(|why| {
            observer.warn(&why);
            None
        })
    }

    /// On disk first, then everything that follows from it.
    fn record(&mut self, observer: &mut dyn RunObserver, entries: &[Entry]) -> Result<(), Error> {
        self.record_only(entries)?;
        self.show(observer, entries);
        Ok(())
    }

    /// Everything that has to be there before orders are performed.
    fn record_only(&mut self, entries: &[Entry]) -> Result<(), Error> {
        if entries.is_empty() {
            return Ok(());
        }
        let journal = self.journal.as_mut().ok_or(Error::LetGo)?;
        // Known as this machine's own before it could be resumed; a crash in between leaves a run that never began.
        if let Some(digest) = log::first_digest(journal, entries)? {
            self.world.own_run().remember(1, &digest)?;
        }
        log::append(journal, entries)?;
        failpoint::pass("recorded");
        projections::write(&self.world, &self.run, entries)?;
        failpoint::pass("projected");
        Ok(())
    }

    /// What follows from entries for people and for the lists.
    fn show(&self, observer: &mut dyn RunObserver, entries: &[Entry]) {
        if entries.is_empty() {
            return;
        }
        for entry in entries {
            observer.wrote(&self.run, entry);
        }
        for warning in handoff::write(&self.world, &self.run, entries) {
            observer.warn(&warning);
        }
        for warning in projections::observe(&self.world, &self.run, entries) {
            observer.warn(&warning);
        }
        failpoint::pass("observed");
        self.notify_person(observer, entries);
    }

    /// Notifies a person who does not look that the run waits, or that it no longer does. Nothing waits for that here.
    pub fn notify_person(&self, observer: &mut dyn RunObserver, entries: &[Entry]) {
        let Some(notifier) = &self.notifier else { return };
        let typed = |entry: &Entry| {
            entry.event.body::<QuestionAnswered>().is_some_and(|answered| answered.by.is_empty())
        };
        if entries.iter().any(typed) {
            notifier.acted();
        }
        notifier.about_run(self.world.places.root(), &self.world.run_id, &self.run);
        notifier.troubles().iter().for_each(|trouble| observer.warn(trouble));
    }

    fn wait(&mut self, observer: &mut dyn RunObserver) -> Result<Woken, Error> {
        loop {
            match self.inbox.next(TICK) {
                Ok(Message::Report { order, report }) => {
                    failpoint::pass("performed");
                    return Ok(Woken::Report(order, report));
                }
                Ok(Message::AgentLine { order, text }) => observer.agent_line(order, &text),
                Ok(Message::Trouble(trouble)) => {
                    self.end_agents();
                    return Err(trouble.into());
                }
                Ok(Message::Signal(signal)) => return Ok(Woken::Signal(signal)),
                Ok(Message::Steer(steering)) => return Ok(Woken::Steered(steering)),
                Err(RecvTimeoutError::Timeout) => {
                    let troubles = self.notifier.as_ref().map(Notifier::troubles);
                    troubles.iter().flatten().for_each(|trouble| observer.warn(trouble));
                    observer.tick(&self.run);
                }
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Stuck),
            }
        }
    }

    fn pending_signal(&mut self) -> i32 {
        while let Ok(message) = self.inbox.next(Duration::ZERO) {
            if let Message::Signal(signal) = message {
                return signal;
            }
        }
        SIGINT
    }

    /// SIGINT once: agents are stopped, their work is kept, the journal says so, and the run can be resumed.
    fn interrupted(&mut self, observer: &mut dyn RunObserver, signal: i32) -> Result<DriveEnd, Error> {
        observer.warn("stopping agents; their work is saved. Press again to stop at once");
        self.world.stop();
        let mut entries = Vec::new();
        while self.run.open_agents().next().is_some() || self.is_landing() {
            // A landing may wait for another one and for a slow disk.
            let patience = Duration::from_secs(if self.is_landing() { 300 } else { 30 });
            match self.inbox.next(patience) {
                Ok(Message::Steer(steering)) => steering.reply(Err(ControlRefusal::Stopping)),
                Ok(Message::Report { order, report }) if self.run.open.contains_key(&order) => {
                    entries.push(self.run.hear(clock::now(), report));
                }
                Ok(Message::Signal(_)) => self.world.kill_now(),
                Ok(Message::Report { .. } | Message::AgentLine { .. }) => {}
                Ok(Message::Trouble(_)) | Err(_) => break,
            }
        }
        entries.push(self.run.hear(clock::now(), SessionEnd { signal }));
        self.record(observer, &entries)?;
        Ok(DriveEnd::Signal(signal))
    }

    /// M-H8: a branch and its checkout are being moved; that is finished whatever happens.
    fn is_landing(&self) -> bool {
        self.run.open.values().any(|order| matches!(order, Order::MergeIntent(_) | Order::RevertIntent(_)))
    }

    /// Stops every running agent and waits for its executor.
    fn end_agents(&mut self) {
        self.world.stop();
        let out = self.run.open_agents().count().saturating_sub(1);
        for _ in 0..out {
            if self.inbox.next(Duration::from_secs(30)).is_err() {
                break;
            }
        }
    }

    /// The order an agent's report answers, for observers.
    pub fn started(run: &Run, seq: Seq) -> Option<&AgentStart> {
        run.open_agents().find(|(open, _)| *open == seq).map(|(_, start)| start)
    }
}

fn order_of(entry: &Entry) -> Option<(Seq, &Order)> {
    match &entry.event {
        Event::Order(order) => Some((entry.seq, order)),
        Event::Decision(_) | Event::Report(_) => None,
    }
}

enum Woken {
    Report(Seq, Report),
    Signal(i32),
    Steered(Steering),
}

/// Replies at once to a request that changes nothing, and returns any other.
fn takes_effect(run: &Run, world: &World, steering: Steering) -> Option<Steering> {
    match control::effect(run, &world.run_id, &steering.request) {
        Ok(Effect::Write(_) | Effect::Stop) => return Some(steering),
        Ok(Effect::Reply(reply)) => steering.reply(Ok(reply)),
        Err(refusal) => steering.reply(Err(refusal)),
    }
    None
}
