//! The loop of a sprint: look at the queue, decide, write down, perform, wait. The same as a run's, one floor up.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use archeflow_core::event::Verb;
use archeflow_core::model::Seq;
use archeflow_core::projections::notice::Notice;
use archeflow_core::run::Run;
use archeflow_core::sprint::event::{FORMAT, SprintEntry, SprintEvent, SprintStop};
use archeflow_core::sprint::policy::{Room, SprintPolicy};
use archeflow_core::sprint::{ItemStage, Sprint, decide, run_id};

use super::center::ControlCenter;
use super::clerk::{QueueClerk, QueueOrder};
use super::crew::{NotKept, SprintCrew, SprintSetup, UnlandedRun};
use super::log as lines;
pub use super::opening::{OpenedSprint, open};
use super::queue;
use super::queue_watch::QueueWatch;
use crate::notify::Notifier;
use crate::store::journal::{self, Journal};
use crate::store::presence::Watched;
use crate::{clock, log};

/// So long may runs that are still out at the end take to call their agents in.
const EXIT_AT_MOST: Duration = Duration::from_secs(90);
/// Between two questions whether the log is kept.
const ASK_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Queue(#[from] queue::Error),
    #[error("{why}; nothing was ordered since")]
    Fenced { why: String },
    #[error("stopped while the log could not be kept: {why}")]
    NotKept { why: String },
}

/// Shows a sprint, and asks the user.
pub trait SprintObserver {
    fn wrote(&mut self, sprint: &Sprint, entry: &SprintEntry);
    /// Whether these may begin; nothing if a signal came before the answer.
    fn ask(&mut self, sprint: &Sprint, items: &[String]) -> Option<bool>;
    fn warn(&mut self, text: &str);
}

pub enum SprintMessage {
    Report(Seq, Result<SprintEvent, queue::Error>),
    Signal(i32),
    /// The file of the queue may be another.
    QueueChanged,
    /// The crew has more room, or less.
    RoomChanged,
}

/// How driving ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SprintEnded {
    Over(SprintStop),
    Signal(i32),
}

/// One sprint with its log, being driven.
pub struct SprintDriver {
    pub sprint: Sprint,
    /// Notifies a person who does not look of what waits. The runs of a sprint leave that to it.
    pub notifier: Option<Notifier>,
    setup: SprintSetup,
    crew: Arc<dyn SprintCrew>,
    clerk: QueueClerk,
    center: ControlCenter,
    journal: Journal,
    inbox: Receiver<SprintMessage>,
    post: Sender<SprintMessage>,
    /// Messages that came while another was waited for.
    set_by: VecDeque<SprintMessage>,
    /// The sprint is being interrupted.
    is_leaving: bool,
    queue: QueueWatch,
    /// Items of ours that are different in the queue.
    postponed: BTreeSet<String>,
    /// The last error of reading the queue, which is not repeated.
    told_unreadable: String,
    /// The user knows that the machine is too busy for more. Forgotten when something begins.
    told_busy: bool,
}

impl SprintDriver {
    pub fn new(opened: OpenedSprint, setup: SprintSetup, crew: Arc<dyn SprintCrew>) -> SprintDriver {
        let (post, inbox) = channel();
        let (sprint, journal) = (opened.sprint, opened.journal);
        let (queue, postponed) = (QueueWatch::default(), BTreeSet::new());
        let clerk = QueueClerk::start(setup.clone(), Arc::clone(&crew), queue.copy(), post.clone());
        let center = ControlCenter::default();
        let (told_unreadable, told_busy) = (String::new(), false);
        SprintDriver {
            sprint,
            notifier: None,
            setup,
            crew,
            clerk,
            center,
            journal,
            inbox,
            post,
            set_by: VecDeque::new(),
            is_leaving: false,
            queue,
            postponed,
            told_unreadable,
            told_busy,
        }
    }

    pub fn post(&self) -> Sender<SprintMessage> {
        self.post.clone()
    }

    pub fn crew(&self) -> Arc<dyn SprintCrew> {
        Arc::clone(&self.crew)
    }

    /// Starts, or resumes what an earlier session left open, with the limits given now.
    pub fn begin(
        &mut self,
        observer: &mut dyn SprintObserver,
        policy: SprintPolicy,
        autonomous: bool,
        version: &str,
    ) -> Result<(), Error> {
        if !self.sprint.tag.is_empty() {
            self.crew.clear_away(&self.sprint.tag);
        }
        let mut reports = Vec::new();
        // Permission to run unattended is given per session (BX-22).
        if !self.sprint.begun || self.sprint.autonomous != autonomous || self.sprint.policy != policy {
            reports.push(SprintEvent::Start {
                policy,
                autonomous,
                version: version.to_owned(),
                format: FORMAT,
            });
        }
        reports.push(SprintEvent::Session { fence: self.sprint.fence + 1, tag: self.setup.tag.clone() });
        self.record_reports(observer, reports)
    }

    /// To its end, or till a signal or an error. No run continues afterwards: running ones are stopped first (I5).
    pub fn drive(&mut self, observer: &mut dyn SprintObserver) -> Result<SprintEnded, Error> {
        let ended = self.go(observer);
        if !self.crew.is_over(Duration::ZERO) {
            self.crew.stop();
            if !self.crew.is_over(EXIT_AT_MOST) {
                self.crew.kill_now();
                self.crew.is_over(EXIT_AT_MOST);
            }
        }
        ended
    }

    fn go(&mut self, observer: &mut dyn SprintObserver) -> Result<SprintEnded, Error> {
        self.look(observer)?;
        self.notify_again();
        let left_open: BTreeMap<Seq, SprintEvent> = self.sprint.open.clone();
        left_open.iter().for_each(|(seq, order)| self.perform(*seq, order));
        let mut at_rest = None;
        loop {
            let room = self.crew.room();
            let bears = (self.sprint.policy.admits(room), room.slots);
            // Of the crew, decisions depend on this alone: nothing follows from the same state a second time.
            if at_rest != Some((self.sprint.lines, bears)) {
                let entries = self.sprint.settle(clock::now(), room);
                let orders = self.record(observer, entries)?;
                self.tell_busy(observer, room, &orders);
                orders.iter().for_each(|(seq, order)| self.perform(*seq, order));
                at_rest = Some((self.sprint.lines, bears));
            }
            if let Some((why, _)) = &self.sprint.end {
                return Ok(SprintEnded::Over(*why));
            }
            if self.sprint.broke.as_ref().is_some_and(|(_, hard, _)| *hard) {
                self.crew.stop();
            }
            if let Some(answer) = self.asked(observer) {
                self.record_reports(observer, vec![answer])?;
                continue;
            }
            match self.next_message(self.patience()) {
                Ok(SprintMessage::Report(seq, report)) => self.on_reports(observer, seq, report)?,
                Ok(SprintMessage::Signal(signal)) => return self.interrupted(observer, signal),
                Ok(SprintMessage::QueueChanged | SprintMessage::RoomChanged)
                | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.look(observer)?;
            self.ask_providers(observer)?;
            self.show_center(observer);
            let troubles = self.notifier.as_ref().map(Notifier::troubles);
            troubles.iter().flatten().for_each(|trouble| observer.warn(trouble));
            self.crew.warnings(&self.sprint).iter().for_each(|warning| observer.warn(warning));
        }
    }

    /// Waits for further reports as long as the crew asks for; a signal ends it.
    fn gather(&mut self) {
        let until = Instant::now() + self.crew.gathers(self.sprint.open.len());
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let Ok(message) = self.inbox.recv_timeout(left) else { return };
            let is_signal = matches!(message, SprintMessage::Signal(_));
            self.set_by.push_back(message);
            if is_signal {
                return;
            }
        }
    }

    fn is_signalled(&self) -> bool {
        self.set_by.iter().any(|message| matches!(message, SprintMessage::Signal(_)))
    }

    fn next_message(&mut self, wait: Duration) -> Result<SprintMessage, RecvTimeoutError> {
        self.set_by.pop_front().map_or_else(|| self.inbox.recv_timeout(wait), Ok)
    }

    /// Until the next look at the queue and the machine, or until an account is to be tried.
    fn patience(&self) -> Duration {
        let waiting = self.sprint.breakers.values().filter(|breaker| !breaker.due);
        let next = waiting.map(|breaker| breaker.until).min();
        let due = next.map(|at| Duration::from_millis(at.saturating_sub(clock::now())));
        due.map_or(self.queue.tick(), |due| due.min(self.queue.tick()))
    }

    /// Says once that items wait for the machine (U-15).
    fn tell_busy(&mut self, observer: &mut dyn SprintObserver, room: Room, orders: &[(Seq, SprintEvent)]) {
        if orders.iter().any(|(_, order)| matches!(order, SprintEvent::Claim { .. })) {
            self.told_busy = false;
        }
        if !self.told_busy && decide::waits_for_machine(&self.sprint, room) {
            self.told_busy = true;
            observer.warn(&self.sprint.policy.too_busy(room));
        }
    }

    /// Which accounts are to be tried now, and which have served again.
    fn ask_providers(&mut self, observer: &mut dyn SprintObserver) -> Result<(), Error> {
        let now = clock::now();
        let mut news = Vec::new();
        for (account, breaker) in &self.sprint.breakers {
            if !breaker.due && breaker.until <= now {
                news.push(SprintEvent::Due { account: account.clone() });
            }
            let trial = breaker.trial.as_ref().and_then(|item| self.sprint.items.get(item));
            let Some((known, end)) = trial.and_then(|known| Some((known, known.end.as_ref()?))) else {
                continue;
            };
            let mut is_served = false;
            self.crew.show_run(&known.item.project, &end.run_id, &mut |run| {
                is_served = !run.accounts.open.contains_key(account);
            });
            if is_served {
                news.push(SprintEvent::Served { account: account.clone() });
            }
        }
        self.record_reports(observer, news)
    }

    /// The question a person has to answer, answered.
    fn asked(&mut self, observer: &mut dyn SprintObserver) -> Option<SprintEvent> {
        let open = self.sprint.open.iter().find_map(|(seq, order)| {
            if let SprintEvent::Ask { items } = order { Some((*seq, items.clone())) } else { None }
        });
        let (start_seq, items) = open?;
        // Resuming an interrupted sprint unattended answers the question of an earlier session.
        let yes = self.sprint.autonomous || observer.ask(&self.sprint, &items)?;
        Some(SprintEvent::Answered { start_seq, yes })
    }

    /// What is new in the queue (M-N8). A file that can't be read just now changes nothing.
    fn look(&mut self, observer: &mut dyn SprintObserver) -> Result<(), Error> {
        self.queue.listen(&self.setup.place, &self.post);
        let is_news = match self.queue.news(&self.setup.place, clock::now()) {
            Ok(is_news) => is_news,
            Err(error) => {
                let error = error.to_string();
                if error != self.told_unreadable {
                    observer.warn(&error);
                    self.told_unreadable = error;
                }
                return Ok(());
            }
        };
        let mut news = Vec::new();
        let copy = self.queue.known();
        // What is ours is ours to change. When it no longer is, what others made of it is news.
        let (ours, free) = mem::take(&mut self.postponed).into_iter().partition(|id| self.is_ours(id));
        self.postponed = ours;
        if is_news {
            self.told_unreadable.clear();
            self.postponed.clear();
            for item in copy.queue.items() {
                match self.sprint.items.get(&item.id) {
                    Some(known) if known.item == *item => {}
                    Some(known) if known.stand.is_ours() => drop(self.postponed.insert(item.id.clone())),
                    Some(_) | None => news.push(SprintEvent::Seen { item: item.clone() }),
                }
            }
        } else {
            let free: BTreeSet<String> = free;
            for item in free.iter().filter_map(|id| copy.queue.get(id)) {
                if self.sprint.items.get(&item.id).is_none_or(|known| known.item != *item) {
                    news.push(SprintEvent::Seen { item: item.clone() });
                }
            }
        }
        drop(copy);
        news.extend(self.overlaps());
        self.record_reports(observer, news)
    }

    /// New or ended overlaps between runs, where several are under way in a project.
    fn overlaps(&self) -> Vec<SprintEvent> {
        let mut projects: BTreeMap<&str, Vec<UnlandedRun>> = BTreeMap::new();
        for stage in [ItemStage::Running, ItemStage::Ended, ItemStage::Landing] {
            for known in self.sprint.items.at_stage(stage) {
                let (item, run_id) = (known.item.id.clone(), known.run_id(&self.setup.sprint_id));
                let one = UnlandedRun { item, run_id, moves: stage == ItemStage::Running };
                projects.entry(&known.item.project).or_default().push(one);
            }
        }
        let mut news = Vec::new();
        for (project, mut live) in projects.into_iter().filter(|(_, live)| live.len() > 1) {
            live.sort_by(|one, other| one.item.cmp(&other.item));
            for found in self.crew.overlaps(project, &live) {
                // Only if what is known about the two is no longer true.
                if self.sprint.overlap(&found.a, &found.b) == found.files.is_empty() {
                    news.push(SprintEvent::Overlap { a: found.a, b: found.b, files: found.files });
                }
            }
        }
        news
    }

    fn is_ours(&self, id: &str) -> bool {
        self.sprint.items.get(id).is_some_and(|known| known.stand.is_ours())
    }

    /// A report with all others that are there already: they are written in one append.
    fn on_reports(
        &mut self,
        observer: &mut dyn SprintObserver,
        seq: Seq,
        report: Result<SprintEvent, queue::Error>,
    ) -> Result<(), Error> {
        self.gather();
        let mut reports = vec![(seq, report)];
        for message in self.set_by.drain(..).chain(self.inbox.try_iter()).collect::<Vec<_>>() {
            // What comes behind a signal may be its consequence: a run that was stopped is not reported.
            let is_signalled = self.is_signalled();
            match message {
                SprintMessage::Report(seq, report) if !is_signalled => reports.push((seq, report)),
                other @ (SprintMessage::Report(..)
                | SprintMessage::Signal(_)
                | SprintMessage::QueueChanged
                | SprintMessage::RoomChanged) => self.set_by.push_back(other),
            }
        }
        let mut failed = None;
        let mut events: BTreeMap<Seq, SprintEvent> = BTreeMap::new();
        for (seq, report) in reports {
            match report {
                Ok(event) if self.sprint.open.contains_key(&seq) => {
                    events.entry(seq).or_insert(event);
                }
                Ok(_) => {}
                // The order stays open: the next session performs it again.
                Err(error) => failed = Some(error),
            }
        }
        self.record_reports(observer, events.into_values().collect())?;
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    fn record_reports(
        &mut self,
        observer: &mut dyn SprintObserver,
        reports: Vec<SprintEvent>,
    ) -> Result<(), Error> {
        let now = clock::now();
        let entries = reports.into_iter().map(|report| self.sprint.hear(now, report)).collect();
        self.record(observer, entries).map(drop)
    }

    /// On disk first, then everything that follows from it.
    fn record(
        &mut self,
        observer: &mut dyn SprintObserver,
        entries: Vec<SprintEntry>,
    ) -> Result<Vec<(Seq, SprintEvent)>, Error> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        lines::append(&mut self.journal, &entries)?;
        let answered: Vec<Seq> = entries.iter().filter_map(|entry| entry.event.answers()).collect();
        self.keep(observer, &answered)?;
        entries.iter().for_each(|entry| observer.wrote(&self.sprint, entry));
        if entries.iter().any(|entry| concerns_people(&entry.event)) {
            let is_more = |entry: &SprintEntry| !matches!(entry.event, SprintEvent::Checkpoint { .. });
            self.center.is_due(entries.iter().any(|entry| concerns_people(&entry.event) && is_more(entry)));
            self.show_center(observer);
        }
        entries.iter().for_each(|entry| self.notify_person(entry));
        let orders = entries.into_iter().filter(|entry| entry.event.verb() == Verb::Ordered);
        Ok(orders.map(|entry| (entry.seq, entry.event)).collect())
    }

    /// Waits until the crew has kept the log, or a signal comes.
    fn keep(&mut self, observer: &mut dyn SprintObserver, answered: &[Seq]) -> Result<(), Error> {
        let mut was_shown = false;
        loop {
            let why = match self.crew.recorded(self.sprint.lines, answered) {
                Ok(()) => return Ok(()),
                Err(NotKept::Fenced(why)) => return Err(Error::Fenced { why }),
                // Nothing follows any more, and the next session keeps what this one has written.
                Err(NotKept::Yet(_)) if self.is_leaving => return Ok(()),
                Err(NotKept::Yet(why)) => why,
            };
            if !mem::replace(&mut was_shown, true) {
                observer.warn(&format!("the sprint waits: {why}"));
            }
            // It may have come while reports were gathered.
            if self.is_signalled() {
                return Err(Error::NotKept { why });
            }
            match self.inbox.recv_timeout(ASK_AGAIN) {
                Ok(SprintMessage::Signal(_)) => return Err(Error::NotKept { why }),
                Ok(other) => self.set_by.push_back(other),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    fn show_center(&mut self, observer: &mut dyn SprintObserver) {
        let warnings = self.center.keep(&self.setup, &self.queue);
        warnings.iter().for_each(|warning| observer.warn(warning));
    }

    /// Notifies a person who does not look of what waits for them since this line. Nothing waits for that here.
    fn notify_person(&self, entry: &SprintEntry) {
        let Some(notifier) = &self.notifier else { return };
        let (root, id) = (self.setup.place.root(), self.setup.sprint_id.as_str());
        let place = root.display().to_string();
        let watched = Watched::sprint(&self.setup.place.folder(), id);
        match &entry.event {
            SprintEvent::Settle { item, .. } => self.notify_item(item),
            SprintEvent::Ask { items } if !self.sprint.autonomous => {
                notifier.about_sprint(root, watched, Notice::of_batch(items, id, &place, entry.seq));
            }
            SprintEvent::Answered { .. } => {
                notifier.acted();
                notifier.closed(root, id);
            }
            SprintEvent::End { .. } => {
                let notice = Notice::of_sprint_end(&self.sprint, id, &place);
                notice.into_iter().for_each(|notice| notifier.about_sprint(root, watched.clone(), notice));
            }
            SprintEvent::Start { .. }
            | SprintEvent::Session { .. }
            | SprintEvent::Seen { .. }
            | SprintEvent::Ask { .. }
            | SprintEvent::Claim { .. }
            | SprintEvent::Claimed { .. }
            | SprintEvent::Run { .. }
            | SprintEvent::Resume { .. }
            | SprintEvent::Ended { .. }
            | SprintEvent::Land { .. }
            | SprintEvent::Landed { .. }
            | SprintEvent::BatchLand { .. }
            | SprintEvent::BatchLanded { .. }
            | SprintEvent::Overlap { .. }
            | SprintEvent::Settled { .. }
            | SprintEvent::Due { .. }
            | SprintEvent::Served { .. }
            | SprintEvent::Checkpoint { .. }
            | SprintEvent::Warning { .. }
            | SprintEvent::Break { .. }
            | SprintEvent::Interrupted { .. } => {}
        }
    }

    /// What an earlier session of this sprint left waiting.
    fn notify_again(&self) {
        if self.notifier.is_some() {
            let settled = self.sprint.items.values().filter(|known| known.stand == ItemStage::Settled);
            let settled: Vec<String> = settled.map(|known| known.item.id.clone()).collect();
            settled.iter().for_each(|id| self.notify_item(id));
        }
    }

    /// The run of an item that is settled may wait for a person. One that the sprint resumes by itself does not.
    fn notify_item(&self, item: &str) {
        let (Some(notifier), Some(known)) = (&self.notifier, self.sprint.items.get(item)) else { return };
        let Some(end) = known.end.as_ref().filter(|end| !end.stopped && end.busy.is_none()) else { return };
        let project = &known.item.project;
        let Some(folder) = self.crew.project_folder(project) else { return };
        self.crew.show_run(project, &end.run_id, &mut |run| {
            let sprint = Watched::sprint(&self.setup.place.folder(), &self.setup.sprint_id);
            let (crew, project, id) = (self.crew(), project.clone(), end.run_id.clone());
            let look = move |waits: &dyn Fn(&Run) -> bool| {
                let mut still = false;
                crew.show_run(&project, &id, &mut |run| still = waits(run));
                still
            };
            notifier.about_item(&folder, &end.run_id, run, sprint, look);
        });
    }

    /// What goes into the queue is the clerk's. Runs and landings are the crew's, each on a thread of its own, which ends
    /// with one report.
    fn perform(&self, seq: Seq, order: &SprintEvent) {
        if let SprintEvent::Claim { item } = order {
            return self.clerk.give(seq, QueueOrder::Claim { item: item.clone() });
        }
        if let SprintEvent::Settle { item, fence, status, note, run_id } = order {
            let (item, note, run) = (item.clone(), note.clone(), run_id.clone());
            let order = QueueOrder::Settle { item, fence: *fence, status: *status, note, run };
            return self.clerk.give(seq, order);
        }
        let (crew, post, order) = (self.crew(), self.post(), order.clone());
        let sprint_id = self.setup.sprint_id.clone();
        let item = order.item().and_then(|id| self.sprint.items.get(id)).map(|known| known.item.clone());
        thread::spawn(move || {
            let report = match (&order, item) {
                (SprintEvent::Run { attempt, budget_usd, workflow, .. }, Some(mut item)) => {
                    if let Some(smaller) = workflow {
                        item.workflow = Some(smaller.name().to_owned());
                    }
                    let id = run_id(&sprint_id, &item.id, *attempt);
                    SprintEvent::Ended { start_seq: seq, end: crew.run(seq, &item, &id, *budget_usd) }
                }
                (SprintEvent::Resume { run_id, .. }, Some(item)) => {
                    SprintEvent::Ended { start_seq: seq, end: crew.resume(seq, &item, run_id) }
                }
                (SprintEvent::Land { run_id, .. }, Some(item)) => {
                    SprintEvent::Landed { start_seq: seq, end: crew.land(seq, &item, run_id) }
                }
                (SprintEvent::BatchLand { project, candidates }, _) => {
                    let came = crew.land_together(seq, project, candidates);
                    SprintEvent::BatchLanded { start_seq: seq, came }
                }
                // A question is answered by the observer.
                (SprintEvent::Ask { .. }, _) => return,
                // An item that is not in the sprint is not run.
                (SprintEvent::Run { .. } | SprintEvent::Resume { .. } | SprintEvent::Land { .. }, None) => {
                    return;
                }
                // These are no orders for a crew.
                (
                    SprintEvent::Claim { .. }
                    | SprintEvent::Settle { .. }
                    | SprintEvent::Start { .. }
                    | SprintEvent::Session { .. }
                    | SprintEvent::Seen { .. }
                    | SprintEvent::Answered { .. }
                    | SprintEvent::Claimed { .. }
                    | SprintEvent::Ended { .. }
                    | SprintEvent::Landed { .. }
                    | SprintEvent::BatchLanded { .. }
                    | SprintEvent::Overlap { .. }
                    | SprintEvent::Settled { .. }
                    | SprintEvent::Due { .. }
                    | SprintEvent::Served { .. }
                    | SprintEvent::Checkpoint { .. }
                    | SprintEvent::Warning { .. }
                    | SprintEvent::Break { .. }
                    | SprintEvent::Interrupted { .. }
                    | SprintEvent::End { .. },
                    _,
                ) => return,
            };
            let _ = post.send(SprintMessage::Report(seq, Ok(report)));
        });
    }

    /// Stops all runs and records it, so that the sprint can be resumed. Stopped runs are not reported: they continue
    /// where they stopped.
    fn interrupted(&mut self, observer: &mut dyn SprintObserver, signal: i32) -> Result<SprintEnded, Error> {
        observer.warn("stopping runs, their work is saved; press again to stop at once");
        self.is_leaving = true;
        self.crew.stop();
        let busy = |order: &&SprintEvent| {
            matches!(
                order,
                SprintEvent::Run { .. }
                    | SprintEvent::Resume { .. }
                    | SprintEvent::Land { .. }
                    | SprintEvent::BatchLand { .. }
            )
        };
        let mut out = self.sprint.open.values().filter(busy).count();
        while out > 0 {
            match self.next_message(Duration::from_secs(120)) {
                Ok(SprintMessage::Report(seq, report)) => {
                    let was_run = self.sprint.open.get(&seq).as_ref().is_some_and(busy);
                    out -= usize::from(was_run);
                    // One at a time: each is counted, and those that were stopped are left out.
                    match report {
                        Ok(event) if was_run && !was_stopped(&event) => {
                            self.record_reports(observer, vec![event])?;
                        }
                        Ok(event) if !was_run && self.sprint.open.contains_key(&seq) => {
                            self.record_reports(observer, vec![event])?;
                        }
                        Ok(_) => {}
                        Err(error) => return Err(error.into()),
                    }
                }
                Ok(SprintMessage::Signal(_)) => self.crew.kill_now(),
                Ok(SprintMessage::QueueChanged | SprintMessage::RoomChanged) => {}
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        self.record_reports(observer, vec![SprintEvent::Interrupted { signal }])?;
        Ok(SprintEnded::Signal(signal))
    }
}

/// Whether the control center is written again after this line (AF-150).
fn concerns_people(event: &SprintEvent) -> bool {
    matches!(
        event,
        SprintEvent::Session { .. }
            | SprintEvent::Checkpoint { .. }
            | SprintEvent::Break { .. }
            | SprintEvent::Interrupted { .. }
            | SprintEvent::End { .. }
    )
}

fn was_stopped(report: &SprintEvent) -> bool {
    report.ends().iter().any(|end| end.stopped)
}
