//! The loop of a sprint: look at the queue, decide, write down, perform, wait. The same as a run's, one floor up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use archeflow_core::event::Verb;
use archeflow_core::model::Seq;
use archeflow_core::projections::notice::Notice;
use archeflow_core::run::Run;
use archeflow_core::sprint::event::{FORMAT, SprintEntry, SprintEvent, SprintStop};
use archeflow_core::sprint::policy::{Room, SprintPolicy};
use archeflow_core::sprint::{ItemStage, Sprint, decide};

use super::crew::Crew;
use super::log as lines;
use super::lookout::Lookout;
use super::queue::{self, QueueFolder};
use super::queue_watch::QueueWatch;
use super::runs::Runs;
use super::{center, reading};
use crate::notify::Notifier;
use crate::platform::machine;
use crate::store::journal::{self, Journal};
use crate::store::presence::Watched;
use crate::{clock, log, proc};

/// So long may runs that are still out at the end take to call their agents in.
const EXIT_AT_MOST: Duration = Duration::from_secs(90);
/// More sprints in a day than this mean that a loop has gone wrong.
const MOST: u32 = 10_000;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Queue(#[from] queue::Error),
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
}

/// How driving ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SprintEnded {
    Over(SprintStop),
    Signal(i32),
}

/// A sprint's log, claimed.
pub struct OpenedSprint {
    pub journal: Journal,
    pub sprint: Sprint,
}

/// The oldest sprint of this queue that has not ended and that no process drives, else a new one.
pub fn open(place: &QueueFolder) -> Result<OpenedSprint, Error> {
    let dir = place.sprints()?;
    for id in reading::listed(&dir) {
        match Journal::open(&dir, &id) {
            Ok(opened) => {
                let sprint = lines::fold(&opened.lines)?;
                // One that was killed before it began is as good as new.
                if sprint.end.is_none() {
                    return Ok(OpenedSprint { journal: opened.journal, sprint });
                }
            }
            Err(journal::Error::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let wish = format!("{}-sprint", clock::date(clock::now()));
    for n in 1..=MOST {
        let id = if n == 1 { wish.clone() } else { format!("{wish}-{n}") };
        match Journal::create(&dir, &id) {
            Ok(journal) => return Ok(OpenedSprint { journal, sprint: Sprint::default() }),
            // Held: another process has found the file before it was locked here, and uses it.
            Err(journal::Error::Exists { .. } | journal::Error::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(journal::Error::Exists { file: dir.join(wish) }.into())
}

/// One sprint with its log, being driven.
pub struct SprintDriver {
    pub sprint: Sprint,
    /// Notifies a person who does not look of what waits. The runs of a sprint leave that to it.
    pub notifier: Option<Notifier>,
    crew: Arc<Crew>,
    journal: Journal,
    inbox: Receiver<SprintMessage>,
    post: Sender<SprintMessage>,
    lookout: Lookout,
    runs: Runs,
    queue: QueueWatch,
    /// Items of ours that are different in the queue.
    postponed: BTreeSet<String>,
    /// The last error of reading the queue, which is not repeated.
    told_unreadable: String,
    /// The user knows that the machine is too busy for more. Forgotten when something begins.
    told_busy: bool,
}

impl SprintDriver {
    pub fn new(opened: OpenedSprint, crew: Crew) -> SprintDriver {
        let (post, inbox) = channel();
        let (crew, runs, lookout) = (Arc::new(crew), Runs::default(), Lookout::default());
        let (sprint, journal) = (opened.sprint, opened.journal);
        let (queue, postponed) = (QueueWatch::default(), BTreeSet::new());
        let (told_unreadable, told_busy) = (String::new(), false);
        SprintDriver {
            sprint,
            notifier: None,
            crew,
            journal,
            inbox,
            post,
            lookout,
            runs,
            queue,
            postponed,
            told_unreadable,
            told_busy,
        }
    }

    pub fn post(&self) -> Sender<SprintMessage> {
        self.post.clone()
    }

    pub fn crew(&self) -> Arc<Crew> {
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
            proc::kill_leftovers(&format!("{}.", self.sprint.tag));
            proc::wake_git(&format!("{}.", self.sprint.tag));
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
        reports.push(SprintEvent::Session { fence: self.sprint.fence + 1, tag: self.crew.tag.clone() });
        self.record_reports(observer, reports)
    }

    /// To its end, or till a signal or an error. No run continues afterwards: running ones are stopped first (I5).
    pub fn drive(&mut self, observer: &mut dyn SprintObserver) -> Result<SprintEnded, Error> {
        let ended = self.go(observer);
        if !proc::all_over(Duration::ZERO) {
            self.crew.watch.stop();
            if !proc::all_over(EXIT_AT_MOST) {
                self.crew.watch.kill_now();
                proc::all_over(EXIT_AT_MOST);
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
            let room = room();
            let admits = self.sprint.policy.admits(room);
            // Of the machine, decisions depend on this alone: nothing follows from the same state a second time.
            if at_rest != Some((self.sprint.lines, admits)) {
                let entries = self.sprint.settle(clock::now(), room);
                let orders = self.record(observer, entries)?;
                self.tell_busy(observer, room, &orders);
                orders.iter().for_each(|(seq, order)| self.perform(*seq, order));
                at_rest = Some((self.sprint.lines, admits));
            }
            if let Some((why, _)) = &self.sprint.end {
                return Ok(SprintEnded::Over(*why));
            }
            if self.sprint.broke.as_ref().is_some_and(|(_, hard, _)| *hard) {
                self.crew.watch.stop();
            }
            if let Some(answer) = self.asked(observer) {
                self.record_reports(observer, vec![answer])?;
                continue;
            }
            match self.inbox.recv_timeout(self.patience()) {
                Ok(SprintMessage::Report(seq, report)) => self.on_report(observer, seq, report)?,
                Ok(SprintMessage::Signal(signal)) => return self.interrupted(observer, signal),
                Ok(SprintMessage::QueueChanged)
                | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            self.look(observer)?;
            self.ask_providers(observer)?;
            let troubles = self.notifier.as_ref().map(Notifier::troubles);
            troubles.iter().flatten().for_each(|trouble| observer.warn(trouble));
        }
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
            let run = self.runs.look(&self.crew.projects.join(&known.item.project), &end.run_id);
            if run.is_some_and(|run| !run.accounts.open.contains_key(account)) {
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
        self.queue.listen(&self.crew.place, &self.post);
        if self.postponed.iter().any(|id| !self.is_ours(id)) {
            self.queue.forget();
        }
        let queue = match self.queue.news(&self.crew.place, clock::now()) {
            Ok(queue) => queue,
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
        if let Some(queue) = queue {
            self.told_unreadable.clear();
            self.postponed.clear();
            for item in queue.items() {
                match self.sprint.items.get(&item.id) {
                    Some(known) if known.item == *item => {}
                    // What is ours is ours to change. When it no longer is, this is news.
                    Some(known) if known.stand.is_ours() => drop(self.postponed.insert(item.id.clone())),
                    Some(_) | None => news.push(SprintEvent::Seen { item: item.clone() }),
                }
            }
        }
        news.extend(self.lookout.look(&self.crew, &self.sprint));
        self.record_reports(observer, news)
    }

    fn is_ours(&self, id: &str) -> bool {
        self.sprint.items.get(id).is_some_and(|known| known.stand.is_ours())
    }

    fn on_report(
        &mut self,
        observer: &mut dyn SprintObserver,
        seq: Seq,
        report: Result<SprintEvent, queue::Error>,
    ) -> Result<(), Error> {
        match report {
            Ok(report) if self.sprint.open.contains_key(&seq) => self.record_reports(observer, vec![report]),
            Ok(_) => Ok(()),
            // The order stays open: the next session performs it again.
            Err(error) => Err(error.into()),
        }
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
        entries.iter().for_each(|entry| observer.wrote(&self.sprint, entry));
        if entries.iter().any(|entry| concerns_people(&entry.event)) {
            let warnings = center::write(&self.crew.place, &self.crew.projects, &self.crew.sprint_id);
            warnings.iter().for_each(|warning| observer.warn(warning));
        }
        entries.iter().for_each(|entry| self.notify_person(entry));
        let orders = entries.into_iter().filter(|entry| entry.event.verb() == Verb::Ordered);
        Ok(orders.map(|entry| (entry.seq, entry.event)).collect())
    }

    /// Notifies a person who does not look of what waits for them since this line. Nothing waits for that here.
    fn notify_person(&mut self, entry: &SprintEntry) {
        let Some(notifier) = &self.notifier else { return };
        let (root, id) = (self.crew.place.root(), self.crew.sprint_id.as_str());
        let place = root.display().to_string();
        let watched = Watched::sprint(&self.crew.place.folder(), id);
        match &entry.event {
            SprintEvent::Settle { item, .. } => self.notify_item(&item.clone()),
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
    fn notify_again(&mut self) {
        if self.notifier.is_some() {
            let settled = self.sprint.items.values().filter(|known| known.stand == ItemStage::Settled);
            let settled: Vec<String> = settled.map(|known| known.item.id.clone()).collect();
            settled.iter().for_each(|id| self.notify_item(id));
        }
    }

    /// The run of an item that is settled may wait for a person. One that the sprint resumes by itself does not.
    fn notify_item(&mut self, item: &str) {
        let (Some(notifier), Some(known)) = (&self.notifier, self.sprint.items.get(item)) else { return };
        let Some(end) = known.end.as_ref().filter(|end| !end.stopped && end.busy.is_none()) else { return };
        let project = self.crew.projects.join(&known.item.project);
        let Ok(project) = project.canonicalize() else { return };
        let Some(run) = self.runs.look(&project, &end.run_id) else { return };
        let sprint = Watched::sprint(&self.crew.place.folder(), &self.crew.sprint_id);
        let (place, id) = (project.clone(), end.run_id.clone());
        let look = move |waits: &dyn Fn(&Run) -> bool| Runs::default().look(&place, &id).is_some_and(waits);
        notifier.about_item(&project, &end.run_id, run, sprint, look);
    }

    /// On a thread of its own, which ends with one report.
    fn perform(&self, seq: Seq, order: &SprintEvent) {
        let (crew, post, order) = (self.crew(), self.post(), order.clone());
        let item = order.item().and_then(|id| self.sprint.items.get(id)).map(|known| known.item.clone());
        thread::spawn(move || {
            let report = match (&order, item) {
                (SprintEvent::Claim { item }, _) => crew.claim(seq, item),
                (SprintEvent::Run { attempt, budget_usd, workflow, .. }, Some(mut item)) => {
                    if let Some(smaller) = workflow {
                        item.workflow = Some(smaller.name().to_owned());
                    }
                    Ok(SprintEvent::Ended {
                        start_seq: seq,
                        end: crew.run(seq, &item, *attempt, *budget_usd),
                    })
                }
                (SprintEvent::Resume { run_id, .. }, Some(item)) => {
                    Ok(SprintEvent::Ended { start_seq: seq, end: crew.resume(seq, &item, run_id) })
                }
                (SprintEvent::Land { run_id, .. }, Some(item)) => {
                    Ok(SprintEvent::Landed { start_seq: seq, end: crew.land(seq, &item, run_id) })
                }
                (SprintEvent::BatchLand { project, candidates }, _) => {
                    let came = crew.land_together(seq, project, candidates);
                    Ok(SprintEvent::BatchLanded { start_seq: seq, came })
                }
                (SprintEvent::Settle { item, fence, status, note, run_id }, _) => {
                    crew.settle(seq, item, *fence, *status, note, run_id.as_ref())
                }
                // A question is answered by the observer.
                (SprintEvent::Ask { .. }, _) => return,
                // An item that is not in the sprint is not run.
                (SprintEvent::Run { .. } | SprintEvent::Resume { .. } | SprintEvent::Land { .. }, None) => {
                    return;
                }
                // These are no orders.
                (
                    SprintEvent::Start { .. }
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
            let _ = post.send(SprintMessage::Report(seq, report));
        });
    }

    /// Stops all runs and records it, so that the sprint can be resumed. Stopped runs are not reported: they continue
    /// where they stopped.
    fn interrupted(&mut self, observer: &mut dyn SprintObserver, signal: i32) -> Result<SprintEnded, Error> {
        observer.warn("stopping runs, their work is saved; press again to stop at once");
        self.crew.watch.stop();
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
            match self.inbox.recv_timeout(Duration::from_secs(120)) {
                Ok(SprintMessage::Report(seq, report)) => {
                    let was_run = self.sprint.open.get(&seq).as_ref().is_some_and(busy);
                    out -= usize::from(was_run);
                    if !report.as_ref().is_ok_and(was_stopped) {
                        self.on_report(observer, seq, report)?;
                    }
                }
                Ok(SprintMessage::Signal(_)) => self.crew.watch.kill_now(),
                Ok(SprintMessage::QueueChanged) => {}
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

/// How busy the machine is. Unknown values are taken as idle.
fn room() -> Room {
    let processors = thread::available_parallelism().map_or(1, usize::from) as u64;
    let (load, memory) = (machine::load(), machine::available_memory());
    Room {
        load_percent: load.map_or(0, |load| u32::try_from(load / processors).unwrap_or(u32::MAX)),
        memory_mb: memory.map_or(u64::MAX, |kb| kb / 1024),
    }
}
