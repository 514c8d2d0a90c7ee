//! The driver loop: record, apply, perform, wait. It knows nothing of what the events mean.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use archeflow_core::event::{
    AgentStart, Entry, Event, Order, QuestionAnswered, QuestionAsked, QuestionDeferred, Report, SessionEnd,
};
use archeflow_core::model::{Outcome, Seq};
use archeflow_core::run::Run;
use archeflow_core::settings::{NotifySettings, TelemetrySettings};

use crate::control::{self, ControlRefusal, Effect, Steering};
use crate::executors::{self, DeskError, ExecutorFault, Message};
use crate::notify::Notifier;
use crate::replica::{Lines, ReplicaAnswer, ReplicaLink};
use crate::store::{files, journal::Journal};
use crate::telemetry::LiveTelemetry;
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
    #[error("the replica of the run can't be used: {why}")]
    Replica { why: String },
    #[error("the replica of the run has {there} lines of its journal, and here are {here}")]
    Behind { here: u64, there: u64 },
    #[error("another session has the run: {why}")]
    Fenced {
        why: String,
        /// Where the lines are that only this session had.
        set_aside: Option<PathBuf>,
    },
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
    /// Sends the run to a collector while it is driven.
    pub live_telemetry: Option<LiveTelemetry>,
    /// Where to, and how much of it.
    pub telemetry: TelemetrySettings,
    /// Until the run is let go of.
    journal: Option<Journal>,
    /// Has every line before anything follows from it.
    replica: Option<ReplicaLink>,
    /// The session ends with this signal: it came while the replica was waited for, or the replica is lost. The replica
    /// gets the last lines in the next session.
    halted: Option<i32>,
    /// Another session has the run, as the replica says.
    fenced: Option<String>,
    /// Orders that the replica has not acknowledged; they are not performed.
    withheld: BTreeSet<Seq>,
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
                | Message::Replica(_)
                | Message::Signal(_)) => self.early.push_back(other),
            }
        }
        None
    }

    /// A signal that came while a question was open.
    fn early_signal(&mut self) -> Option<i32> {
        let at = self.early.iter().position(|message| matches!(message, Message::Signal(_)))?;
        match self.early.remove(at) {
            Some(Message::Signal(signal)) => Some(signal),
            Some(_) | None => None,
        }
    }
}

const TICK: Duration = Duration::from_millis(100);
/// The signal that a lost connection stands for.
const SIGHUP: i32 = 1;
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
            live_telemetry: None,
            telemetry: TelemetrySettings::default(),
            journal: Some(journal),
            replica: None,
            halted: None,
            fenced: None,
            withheld: BTreeSet::new(),
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

    /// From now on the replica at this socket has every line before anything follows from it. It is sent what it lacks first.
    /// Called before anything posts messages to the driver.
    pub fn join_replica(&mut self, socket: &Path) -> Result<(), Error> {
        let failed = |why: String| Error::Replica { why };
        let connected = ReplicaLink::connect(socket, self.post.clone());
        let mut link = connected.map_err(|error| failed(format!("{}: {error}", socket.display())))?;
        let text = self.journal.as_ref().ok_or(Error::LetGo)?.text().map_err(log::Error::from)?;
        link.acknowledged_end = text.bytes().len() as u64;
        link.hello(&self.world.run_id, text.len());
        let said = self.answered_at_start(&link)?;
        let here = text.len() as u64;
        let there = said.ok_or_else(|| failed("it does not say how many lines it has".to_owned()))?;
        let known = usize::try_from(there).ok().filter(|there| *there <= text.len());
        let known = known.ok_or(Error::Behind { here, there })?;
        let mut end = text.end_of(known);
        let bytes = text.bytes().get(end..).unwrap_or_default();
        let count = here - there;
        for piece in (Lines { first: there + 1, count, bytes }).pieces() {
            link.acknowledged_end = end as u64;
            link.append(piece);
            failpoint::pass("replica.sent");
            self.answered_at_start(&link)?;
            failpoint::pass("replica.answered");
            end += piece.bytes.len();
        }
        link.acknowledged_end = end as u64;
        self.replica = Some(link);
        Ok(())
    }

    /// The answer of the replica while nothing else can happen.
    fn answered_at_start(&mut self, link: &ReplicaLink) -> Result<Option<u64>, Error> {
        let Ok(Message::Replica(answer)) = self.inbox.messages.recv() else { return Err(Error::Stuck) };
        match answer {
            ReplicaAnswer::Acknowledged { have } => Ok(have),
            ReplicaAnswer::Lost { why } => {
                Err(Error::Replica { why: format!("the connection is lost: {why}") })
            }
            ReplicaAnswer::Fenced { why } => Err(self.set_aside(why, link.acknowledged_end)),
        }
    }

    fn fenced(&mut self, why: String) -> Error {
        let end = self.replica.take().map_or(u64::MAX, |link| link.acknowledged_end);
        self.set_aside(why, end)
    }

    /// Lets go of the journal, which then ends where the replica's did when it was still this session's.
    fn set_aside(&mut self, why: String, acknowledged_end: u64) -> Error {
        let Some(journal) = self.journal.take() else { return Error::Fenced { why, set_aside: None } };
        match journal.cut_behind(acknowledged_end) {
            Ok(set_aside) => Error::Fenced { why, set_aside },
            Err(error) => log::Error::from(error).into(),
        }
    }

    /// Sends the last append to the replica and waits until it has it. Agents continue meanwhile and their reports are kept. A
    /// signal or a lost connection ends the waiting and, soon after, the session.
    fn replicate(&mut self, observer: &mut dyn RunObserver, entries: &[Entry]) -> Result<(), Error> {
        if self.replica.is_none() {
            return Ok(());
        }
        self.withheld.extend(entries.iter().filter_map(order_of).map(|(seq, _)| seq));
        if self.halted.is_some() {
            return Ok(());
        }
        let first = entries.first().map_or(0, |entry| entry.seq);
        let bytes = self.journal.as_ref().map(|journal| journal.last_append().to_vec()).unwrap_or_default();
        for piece in (Lines { first, count: entries.len() as u64, bytes: &bytes }).pieces() {
            let Some(link) = &self.replica else { return Ok(()) };
            link.append(piece);
            failpoint::pass("replica.sent");
            if !self.is_acknowledged(observer)? {
                return Ok(());
            }
            failpoint::pass("replica.answered");
            if let Some(link) = &mut self.replica {
                link.acknowledged_end += piece.bytes.len() as u64;
            }
        }
        self.withheld.clear();
        Ok(())
    }

    /// Waits for the replica's answer; `false` if the session is to end instead.
    fn is_acknowledged(&mut self, observer: &mut dyn RunObserver) -> Result<bool, Error> {
        self.halted = self.inbox.early_signal();
        while self.halted.is_none() {
            match self.inbox.messages.recv_timeout(TICK) {
                Ok(Message::Replica(ReplicaAnswer::Acknowledged { .. })) => return Ok(true),
                Ok(Message::Replica(answer)) => self.take_answer(observer, answer)?,
                Ok(Message::Signal(signal)) => self.halted = Some(signal),
                Ok(Message::AgentLine { order, text }) => observer.agent_line(order, &text),
                Ok(Message::Steer(steering)) => {
                    let Some(steering) = takes_effect(&self.run, &self.world, steering) else { continue };
                    match control::effect(&self.run, &self.world.run_id, &steering.request) {
                        Ok(Effect::Stop) => {
                            steering.reply(Ok(serde_json::json!({})));
                            self.halted = Some(SIGINT);
                        }
                        Ok(Effect::Write(_) | Effect::Reply(_)) | Err(_) => {
                            self.inbox.early.push_back(Message::Steer(steering));
                        }
                    }
                }
                Ok(other @ (Message::Report { .. } | Message::Trouble(_))) => {
                    self.inbox.early.push_back(other);
                }
                Err(RecvTimeoutError::Timeout) => observer.tick(&self.run),
                Err(RecvTimeoutError::Disconnected) => return Err(Error::Stuck),
            }
        }
        Ok(false)
    }

    /// What the replica says without being asked, or instead of what it was asked for.
    fn take_answer(&mut self, observer: &mut dyn RunObserver, answer: ReplicaAnswer) -> Result<(), Error> {
        match answer {
            ReplicaAnswer::Acknowledged { .. } => Ok(()),
            ReplicaAnswer::Lost { why } => {
                observer.warn(&format!("the connection to the replica of the run is lost: {why}"));
                self.halted = Some(SIGHUP);
                Ok(())
            }
            ReplicaAnswer::Fenced { why } => {
                observer.warn("another session has the run; stopping agents");
                self.world.stop();
                self.last_reports();
                Err(self.fenced(why))
            }
        }
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
        if let Some(signal) = self.halted {
            self.withheld.extend(self.run.open.keys());
            return self.interrupted(observer, signal);
        }
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
            self.record_only(observer, &entries)?;
            if let Some(signal) = self.halted {
                self.show(observer, &entries);
                return self.interrupted(observer, signal);
            }
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
                match self.halted {
                    Some(_) => steering.reply(Err(ControlRefusal::Stopping)),
                    None => steering.reply(Ok(serde_json::json!({}))),
                }
                Ok(self.halted)
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
        self.record_only(observer, entries)?;
        self.show(observer, entries);
        Ok(())
    }

    /// Everything that has to be there before orders are performed.
    fn record_only(&mut self, observer: &mut dyn RunObserver, entries: &[Entry]) -> Result<(), Error> {
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
        self.replicate(observer, entries)?;
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
        if let Some(live) = &self.live_telemetry {
            live.wrote(entries);
            live.troubles().iter().for_each(|trouble| observer.warn(trouble));
        }
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
                Ok(Message::Replica(answer)) => {
                    self.take_answer(observer, answer)?;
                    if let Some(signal) = self.halted {
                        return Ok(Woken::Signal(signal));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let troubles = self.notifier.as_ref().map(Notifier::troubles);
                    let unsent = self.live_telemetry.as_ref().map(LiveTelemetry::troubles);
                    let all = troubles.iter().chain(&unsent).flatten();
                    all.for_each(|trouble| observer.warn(trouble));
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
        let mut entries = self.last_reports();
        if let Some(why) = self.fenced.take() {
            return Err(self.fenced(why));
        }
        entries.push(self.run.hear(clock::now(), SessionEnd { signal }));
        self.record(observer, &entries)?;
        Ok(DriveEnd::Signal(signal))
    }

    /// Waits for the agents that are being stopped, and for a landing, and returns what they report.
    fn last_reports(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        while self.is_waited_for() {
            // A landing may wait for another one and for a slow disk.
            let patience = Duration::from_secs(if self.is_landing() { 300 } else { 30 });
            match self.inbox.next(patience) {
                Ok(Message::Steer(steering)) => steering.reply(Err(ControlRefusal::Stopping)),
                Ok(Message::Report { order, report }) if self.run.open.contains_key(&order) => {
                    entries.push(self.run.hear(clock::now(), report));
                }
                Ok(Message::Signal(_)) => self.world.kill_now(),
                Ok(Message::Replica(ReplicaAnswer::Fenced { why })) => self.fenced = Some(why),
                Ok(Message::Replica(ReplicaAnswer::Lost { .. })) => {
                    self.halted = self.halted.or(Some(SIGHUP));
                }
                Ok(
                    Message::Report { .. }
                    | Message::AgentLine { .. }
                    | Message::Replica(ReplicaAnswer::Acknowledged { .. }),
                ) => {}
                Ok(Message::Trouble(_)) | Err(_) => break,
            }
        }
        entries
    }

    /// An agent or a landing was begun and has not reported.
    fn is_waited_for(&self) -> bool {
        self.run.open_agents().any(|(seq, _)| !self.withheld.contains(&seq)) || self.is_landing()
    }

    /// M-H8: a branch and its checkout are being moved; that is finished whatever happens.
    fn is_landing(&self) -> bool {
        let mut begun = self.run.open.iter().filter(|(seq, _)| !self.withheld.contains(seq));
        begun.any(|(_, order)| matches!(order, Order::MergeIntent(_) | Order::RevertIntent(_)))
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
