//! The conductor: the crew of a sprint whose orders are performed by workers of a fleet.
//!
//! Each order is published and then waited for on a thread of its own. Reports are taken by another thread and handed to the
//! one that waits; they are acknowledged when the sprint's log has them, so none is lost when this process is killed. An order
//! that was answered before is not counted twice: further reports of it are acknowledged and dropped.

mod desk;
mod gates;
mod rounds;
mod sources;
mod trials;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use archeflow_core::model::{Money, Reason, Seq};
use archeflow_core::run::Run;
use archeflow_core::sprint::event::{BatchLanding, Candidate, ItemEnd, RunEnd, SprintEvent, UnfinishedRun};
use archeflow_core::sprint::policy::Room;
use archeflow_core::sprint::queue::{ItemStatus, QueueItem};
use archeflow_core::sprint::{ItemStage, Sprint};
use archeflow_host::sprint::crew::{BranchOverlap, NotKept, SprintCrew, UnlandedRun};
use archeflow_host::sprint::drive::SprintMessage;
use archeflow_host::sprint::local_crew::{unfinished, unstarted};

use crate::bus::{Bus, BusError, Expect, Lease, Put, PutEnd};
use crate::journal::JournalFault;
use crate::message::{self, FORMAT, FleetOrder, Work};
use crate::names;
use crate::sprint_log::SprintLog;

use desk::Desk;
use sources::{Repositories, RunsOnBus};

pub use trials::{EvaluationFault, FleetEvaluation, FleetTrials, TrialRemotes, Trialling};

/// Before something that failed is tried again.
const NAP: Duration = Duration::from_secs(1);
/// From this number of open orders on, reports arrive continuously, and those of one moment are recorded together.
const MANY: usize = 64;
const GATHERS: Duration = Duration::from_millis(50);
/// Ends in a row without a beginning after which a repository is held back.
const IN_A_ROW: u32 = 3;
/// Orders that one session gives again get numbers below this, and the next session's begin above: the server drops messages
/// whose number it knows.
const AGAIN: u32 = 1_000;

/// What the orders of one session are like.
#[derive(Debug, Clone)]
pub struct Conducting {
    pub sprint: String,
    /// The number of this session in the sprint's log, from 1.
    pub session: u64,
    /// The folder of the projects, whose remotes the workers use.
    pub projects: PathBuf,
    /// What a worker must offer.
    pub needs: BTreeSet<String>,
    /// Arguments for every run.
    pub said: Vec<String>,
    pub lease: Duration,
    /// The budget shared with others that runs reserve from.
    pub ledger: Option<String>,
    /// The most items under way, if fewer than the workers have slots for.
    pub most: Option<u32>,
}

/// Runs of a sprint on the workers of a fleet.
pub struct FleetCrew {
    shared: Arc<Shared>,
}

struct Shared {
    bus: Arc<dyn Bus>,
    how: Conducting,
    /// Without one, what follows from a report is kept by the one who asked for it.
    log: Option<SprintLog>,
    begun: Instant,
    desk: Mutex<Desk>,
    runs: Mutex<RunsOnBus>,
    repositories: Mutex<Repositories>,
    post: Mutex<Option<Sender<SprintMessage>>>,
}

impl FleetCrew {
    /// `open` are the orders that an earlier session left without an answer. What the server has of them is found here: an
    /// order that waits or is held is not given again.
    pub fn new(
        bus: Arc<dyn Bus>,
        how: Conducting,
        log: SprintLog,
        open: &BTreeMap<Seq, SprintEvent>,
    ) -> Result<FleetCrew, BusError> {
        let is_ours = |order: &SprintEvent| {
            matches!(order, SprintEvent::Run { .. } | SprintEvent::Resume { .. } | SprintEvent::Land { .. })
        };
        let left: BTreeSet<Seq> =
            open.iter().filter(|(_, order)| is_ours(order)).map(|(seq, _)| *seq).collect();
        Ok(FleetCrew { shared: Arc::new(Shared::new(bus, how, Some(log), left)?) })
    }

    /// Listens to workers from now on. The loop is woken through `post`.
    pub fn start(&self, post: Sender<SprintMessage>) {
        *self.shared.post.lock().unwrap_or_else(PoisonError::into_inner) = Some(post);
        rounds::start(&self.shared);
    }

    /// Lets go of everything; the runs continue. What was waited for ends as stopped.
    pub fn abandon(&self) {
        self.shared.abandon();
    }
}

impl Drop for FleetCrew {
    fn drop(&mut self) {
        self.abandon();
    }
}

impl Shared {
    /// `left` are orders of earlier sessions that may be under way, or answered.
    fn new(
        bus: Arc<dyn Bus>,
        how: Conducting,
        log: Option<SprintLog>,
        left: BTreeSet<Seq>,
    ) -> Result<Shared, BusError> {
        let lease_ms = u64::try_from(how.lease.as_millis()).unwrap_or(u64::MAX);
        let desk = Desk::new(&how.sprint, lease_ms, left);
        let shared = Shared {
            bus,
            repositories: Mutex::new(Repositories::below(&how.projects)),
            how,
            log,
            begun: Instant::now(),
            desk: Mutex::new(desk),
            runs: Mutex::default(),
            post: Mutex::new(None),
        };
        if !shared.desk().left.is_empty() {
            shared.find_left()?;
        }
        Ok(shared)
    }

    fn abandon(&self) {
        let unrecorded = self.desk().abandon();
        // The next conductor gets them at once.
        for token in unrecorded {
            let _ = self.bus.lease(&token, Lease::Back(Duration::ZERO));
        }
    }

    /// The number of the first copy of an order that this session gives.
    fn again(&self) -> u32 {
        u32::try_from(self.how.session.saturating_sub(1)).unwrap_or(u32::MAX).saturating_mul(AGAIN)
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Milliseconds of this process' own clock.
    fn now(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn wake(&self) {
        if let Some(post) = &*self.post.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = post.send(SprintMessage::RoomChanged);
        }
    }

    fn warn(&self, text: String) {
        self.desk().warnings.push(text);
        self.wake();
    }

    /// An order from here to its report. `most` is what the run may spend, if its money is to be reserved.
    fn perform(&self, seq: Seq, item: &QueueItem, run_id: &str, work: Work, most: Option<Money>) -> RunEnd {
        let project = &item.project;
        let answer = self.answer_to(seq, || {
            let repository = self.repository(project)?;
            self.pass_gates(project, run_id, most)?;
            Ok(FleetOrder {
                v: FORMAT,
                sprint: self.how.sprint.clone(),
                seq,
                again: self.again(),
                work,
                repository,
                needs: self.how.needs.clone(),
                said: self.how.said.clone(),
                min_version: env!("CARGO_PKG_VERSION").to_owned(),
            })
        });
        match answer {
            Ok(end) => {
                self.settle(project, run_id, most.is_some(), &end);
                self.judged(project, end)
            }
            Err(why) => unreported(run_id, why),
        }
    }

    /// What is reported of an order. It is only made if no worker has it from an earlier session.
    fn answer_to(
        &self,
        seq: Seq,
        order: impl FnOnce() -> Result<FleetOrder, Unordered>,
    ) -> Result<RunEnd, Unordered> {
        let (tell, end) = channel();
        let is_given = match self.desk().wait_for(seq, tell, self.now()) {
            desk::Waits::Over => return Err(Unordered::Stopped),
            desk::Waits::ForReport => true,
            desk::Waits::ForOrder => false,
        };
        if !is_given {
            let begun = order().and_then(|order| {
                if !self.desk().give(&order, self.now()) {
                    return Err(Unordered::Stopped);
                }
                self.publish(&order)
            });
            if let Err(why) = begun {
                self.desk().forget(seq);
                return Err(why);
            }
        }
        end.recv().map_err(|_| Unordered::Stopped)
    }

    /// Publishes an order, again while there is no answer.
    fn publish(&self, order: &FleetOrder) -> Result<(), Unordered> {
        let mut was_shown = false;
        loop {
            match put(&*self.bus, order) {
                Ok(copy) => {
                    self.desk().published(order.seq, copy);
                    return Ok(());
                }
                Err(error) if !was_shown => {
                    was_shown = true;
                    self.warn(format!("orders can't be given: {error}"));
                }
                Err(_) => {}
            }
            if !self.desk().is_waited_for(order.seq) {
                return Ok(());
            }
            std::thread::sleep(NAP);
        }
    }

    fn repository(&self, project: &str) -> Result<message::Repository, Unordered> {
        if let Some(why) = self.desk().held_back(project) {
            return Err(Unordered::Unusable(format!("held back: {why}")));
        }
        let mut known = self.repositories.lock().unwrap_or_else(PoisonError::into_inner);
        known.find(project).map_err(Unordered::Unusable)
    }

    /// An order that no worker could begin says something about its repository, not about its task.
    fn judged(&self, project: &str, mut end: RunEnd) -> RunEnd {
        // A run that was given up without a result failed by itself.
        let is_given_up = end.status.is_none() && end.reason.is_some();
        if end.stopped || is_given_up {
            return end;
        }
        let is_unusable = end.status.is_none() && end.cycles == 0;
        if is_unusable {
            end.reason = Some(Reason::GitFault);
        }
        if self.desk().judge(project, is_unusable, &end.detail) == IN_A_ROW {
            self.warn(format!(
                "{project} is held back: {IN_A_ROW} orders in a row could not be begun, the last one: {}",
                end.detail
            ));
        }
        end
    }

    fn run(&self, run_id: &str) -> Option<Arc<Run>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).find(&*self.bus, run_id)
    }
}

/// Why an order was not given.
enum Unordered {
    Stopped,
    /// For a person.
    Unusable(String),
}

/// Returns where the server has put it.
fn put(bus: &dyn Bus, order: &FleetOrder) -> Result<u64, BusError> {
    let bytes = serde_json::to_vec(order).map_err(|error| BusError::Wrong(error.to_string()))?;
    let subject = names::orders(&message::class(&order.needs));
    let id = format!("{}:{}:{}", order.sprint, order.seq, order.again);
    match bus.put(Put {
        subject: &subject,
        expect: Expect::Anything,
        id: Some(&id),
        headers: &[],
        bytes: &bytes,
    })? {
        PutEnd::Kept(seq) => Ok(seq),
        PutEnd::Refused => Err(BusError::Wrong("the server refused an order".to_owned())),
    }
}

fn stopped(run_id: &str) -> RunEnd {
    RunEnd { stopped: true, ..unstarted(run_id, "it was stopped".to_owned()) }
}

/// In place of a report.
fn unreported(run_id: &str, why: Unordered) -> RunEnd {
    match why {
        Unordered::Stopped => stopped(run_id),
        Unordered::Unusable(why) => unusable(run_id, why),
    }
}

fn unusable(run_id: &str, why: String) -> RunEnd {
    RunEnd { reason: Some(Reason::GitFault), ..unstarted(run_id, why) }
}

impl SprintCrew for FleetCrew {
    fn run(&self, seq: Seq, item: &QueueItem, run_id: &str, budget: Option<Money>) -> RunEnd {
        let attempt = run_id.rsplit_once('.').and_then(|(_, attempt)| attempt.parse().ok()).unwrap_or(1);
        let work = Work::Run { item: item.clone(), attempt, budget_usd: budget };
        self.shared.perform(seq, item, run_id, work, budget)
    }

    fn resume(&self, seq: Seq, item: &QueueItem, run_id: &str) -> RunEnd {
        let work = Work::Resume { item: item.clone(), run: run_id.to_owned() };
        let limit = |run: &Run| run.limits().iter().find(|limit| limit.name == "run").map(|limit| limit.cap);
        let has_ledger = self.shared.how.ledger.is_some();
        let most = has_ledger.then(|| self.shared.run(run_id).and_then(|run| limit(&run))).flatten();
        self.shared.perform(seq, item, run_id, work, most)
    }

    fn land(&self, seq: Seq, item: &QueueItem, run_id: &str) -> RunEnd {
        let work = Work::Land { item: item.clone(), run: run_id.to_owned() };
        self.shared.perform(seq, item, run_id, work, None)
    }

    /// A fleet lands one run at a time; a log of another policy is not continued.
    fn land_together(&self, _: Seq, _: &str, candidates: &[Candidate]) -> BatchLanding {
        let alone = |one: &Candidate| ItemEnd {
            item: one.item.clone(),
            end: unstarted(&one.run_id, "a fleet lands one run at a time".to_owned()),
        };
        BatchLanding { ends: candidates.iter().map(alone).collect(), ..BatchLanding::default() }
    }

    fn left(&self, item: &QueueItem, run_id: &str) -> Option<UnfinishedRun> {
        unfinished(item, run_id, || self.shared.run(run_id).map(Arc::unwrap_or_clone))
    }

    fn room(&self) -> Room {
        let shared = &self.shared;
        let slots = shared.desk().dispatch.room(&shared.how.needs, shared.now());
        let slots = shared.how.most.map_or(slots, |most| most.min(slots));
        Room { slots: Some(slots), ..Room::PLENTY }
    }

    fn overlaps(&self, _: &str, _: &[UnlandedRun]) -> Vec<BranchOverlap> {
        Vec::new()
    }

    fn show_run(&self, _: &str, run_id: &str, show: &mut dyn FnMut(&Run)) {
        if let Some(run) = self.shared.run(run_id) {
            show(&run);
        }
    }

    fn recorded(&self, lines: u64, answered: &[Seq]) -> Result<(), NotKept> {
        let kept = self.shared.log.as_ref().map_or(Ok(()), |log| log.publish(lines));
        if let Err(NotKept::Fenced(_)) = &kept {
            self.abandon();
        }
        kept?;
        let tokens = self.shared.desk().recorded(answered);
        self.shared.bus.done_with(&tokens);
        Ok(())
    }

    fn gathers(&self, open: usize) -> Duration {
        if open < MANY { Duration::ZERO } else { GATHERS }
    }

    fn warnings(&self, sprint: &Sprint) -> Vec<String> {
        let (lack, mut warnings) = {
            let mut desk = self.shared.desk();
            (desk.lack.take(), std::mem::take(&mut desk.warnings))
        };
        if let Some(lack) = lack {
            let is_pending = |known: &&archeflow_core::sprint::ItemState| {
                known.stand == ItemStage::Waiting && known.item.status == ItemStatus::Pending
            };
            let waiting = sprint.items.values().filter(is_pending).count() + self.shared.desk().count_open();
            let items =
                if waiting == 1 { "1 item waits".to_owned() } else { format!("{waiting} items wait") };
            warnings.push(format!("{lack}; {items}"));
        }
        warnings
    }

    fn project_folder(&self, project: &str) -> Option<PathBuf> {
        self.shared.how.projects.join(project).canonicalize().ok()
    }

    /// Workers end what is theirs.
    fn clear_away(&self, _: &str) {}

    fn stop(&self) {
        let mut desk = self.shared.desk();
        desk.is_stopping = true;
    }

    fn kill_now(&self) {
        self.abandon();
    }

    /// Nothing ends with this process. What it has cancelled is waited for.
    fn is_over(&self, within: Duration) -> bool {
        let begun = Instant::now();
        loop {
            {
                let desk = self.shared.desk();
                if !desk.is_stopping || !desk.is_waiting() {
                    return true;
                }
            }
            if begun.elapsed() >= within {
                return false;
            }
            std::thread::sleep(NAP.min(within));
        }
    }
}

/// What the bus has of a sprint's log.
pub fn kept_log(bus: &dyn Bus, sprint: &str) -> Result<crate::journal::Found, JournalFault> {
    crate::journal::read(bus, &names::sprint_journal(sprint))
}
