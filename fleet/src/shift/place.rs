//! Where this worker performs orders: a clone for each repository, and this program started again for each run.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use archeflow_core::event::Order;
use archeflow_core::model::Reason;
use archeflow_core::sprint::event::{BatchLanding, ItemEnd, RunEnd, SprintEvent};
use archeflow_core::sprint::queue::QueueItem;
use archeflow_core::text::safe_line;
use archeflow_host::config::trust::Offer;
use archeflow_host::git::{ObjectId, remote};
use archeflow_host::log;
use archeflow_host::open::Project;
use archeflow_host::platform::{machine, socket};
use archeflow_host::replica::parts;
use archeflow_host::sprint::crew::SprintCrew;
use archeflow_host::sprint::local_crew::{LocalCrew, LocalRuns, unstarted};
use archeflow_host::store::files as disk;
use archeflow_host::store::journal::{self, Journal};
use archeflow_host::transfer::{RunParts, TakeOver};

use super::lines::{RunLines, refs_at};
use super::patience::Patience;
use super::trial::{Evaluation, NotReady, ReadyTrial, at_limit};
use super::{ShiftStop, Shop};
use crate::approvals;
use crate::bus::BusError;
use crate::clones::{Clones, ReadyClone};
use crate::files;
use crate::journal::{Found, LocalLines};
use crate::message::{FleetOrder, Held, Work};
use crate::replica::RunReplica;
use crate::worker::{self, NotEnded, Place};

/// A run that had as many sessions without a step that ended is given up.
const FUTILE: usize = 5;

/// An order under way, as others of this worker reach it.
pub(super) struct Task {
    pub(super) held: Held,
    crew: Mutex<Option<Arc<LocalCrew>>>,
    cancelled: AtomicBool,
}

impl Task {
    pub(super) fn new(order: &FleetOrder) -> Task {
        let held = worker::held(order);
        Task { held, crew: Mutex::default(), cancelled: AtomicBool::new(false) }
    }

    /// Of an order that can't be read.
    pub(super) fn unreadable() -> Task {
        let held = Held { sprint: String::new(), seq: 0 };
        Task { held, crew: Mutex::default(), cancelled: AtomicBool::new(false) }
    }

    fn crew(&self) -> Option<Arc<LocalCrew>> {
        self.crew.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the run: its work is saved, and it is reported as stopped.
    pub(super) fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.stop();
    }

    pub(super) fn stop(&self) {
        if let Some(crew) = self.crew() {
            crew.stop();
        }
    }

    pub(super) fn kill_now(&self) {
        if let Some(crew) = self.crew() {
            crew.kill_now();
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }
}

/// The place of one order.
pub(super) struct OrderPlace<'a> {
    shop: &'a Shop,
    stop: Arc<ShiftStop>,
    task: Arc<Task>,
    patience: Rc<Patience>,
    /// Of an order with a trial.
    evaluation: RefCell<Option<Arc<Evaluation>>>,
    clone: RefCell<Option<ReadyClone>>,
    /// Lines that were published before this session.
    have: Cell<u64>,
    /// Why the order can't be performed by anybody, in words for a person.
    trouble: Rc<RefCell<Option<String>>>,
    /// The trouble is with the task itself, not with its repository.
    is_given_up: Cell<bool>,
    /// How the run ended, for the worker's own output.
    pub(super) end: RefCell<Option<RunEnd>>,
}

impl<'a> OrderPlace<'a> {
    pub(super) fn new(shop: &'a Shop, stop: &Arc<ShiftStop>, task: Arc<Task>, run: &str) -> OrderPlace<'a> {
        OrderPlace {
            shop,
            stop: Arc::clone(stop),
            task,
            patience: Rc::new(Patience::new(Arc::clone(stop), Arc::clone(&shop.notices), run)),
            evaluation: RefCell::default(),
            clone: RefCell::default(),
            have: Cell::new(0),
            trouble: Rc::default(),
            is_given_up: Cell::new(false),
            end: RefCell::default(),
        }
    }

    /// Does something with the clones that this order uses one of.
    fn with_clones<T>(&self, what: impl FnOnce(&Clones) -> T) -> T {
        match &*self.evaluation.borrow() {
            Some(evaluation) => what(&evaluation.clones),
            None => what(&self.shop.clones),
        }
    }

    fn project(&self) -> Result<Project, String> {
        let clone = self.clone.borrow().clone().ok_or("there is no clone")?;
        self.with_clones(|clones| clones.project(&clone))
    }

    /// Removes what is kept of an order that was reported and is not followed by another one for the same run.
    pub(super) fn forget(&self, order: &FleetOrder) {
        if !matches!(order.work, Work::Trial { .. }) {
            return;
        }
        if let Some(evaluation) = &*self.evaluation.borrow() {
            evaluation.forget(&Clones::name_of(&order.repository), &worker::run_of(order));
        }
    }

    /// Everything that can be wrong with an order before anything of it begins.
    fn prepare(&self, order: &FleetOrder, run: &str, found: &Found) -> Result<(), Fault> {
        if matches!(order.work, Work::Batch { .. }) {
            return Err("this worker lands one run at a time".to_owned().into());
        }
        if futile_sessions(&found.text) >= FUTILE {
            self.is_given_up.set(true);
            let why = format!(
                "given up: {FUTILE} sessions in a row ended before a step of the run did; archeflow show {run} --fleet <join file>"
            );
            return Err(why.into());
        }
        if matches!(order.work, Work::Trial { .. }) {
            *self.evaluation.borrow_mut() = Some(self.shop.evaluations.of(&order.sprint)?);
        }
        let clone = self.with_clones(|clones| clones.ready(&order.repository))?;
        *self.clone.borrow_mut() = Some(clone);
        let project = self.project()?;
        let local = local_journal(&project, run)?;
        if local.starts_with(&found.text) {
            return match &order.work {
                Work::Trial { trial } if local.is_empty() => self.is_at(&project, &trial.base),
                Work::Resume { .. } | Work::Land { .. } | Work::Batch { .. } if local.is_empty() => {
                    Err(format!("the journal of {run} is lost").into())
                }
                Work::Run { .. }
                | Work::Resume { .. }
                | Work::Land { .. }
                | Work::Batch { .. }
                | Work::Trial { .. } => Ok(()),
            };
        }
        self.fetch_run(&project, order, run, found)
    }

    /// A trial that begins must not build on what an earlier run of it has landed.
    fn is_at(&self, project: &Project, base: &str) -> Result<(), Fault> {
        let branch = self.clone.borrow().as_ref().map(|clone| clone.branch.clone()).unwrap_or_default();
        let tip = project.repo.resolve(&format!("refs/heads/{branch}")).map_err(|error| error.to_string())?;
        match tip {
            Some(tip) if tip.as_str() == base => Ok(()),
            Some(_) | None => Err("the repository of the trial was used before".to_owned().into()),
        }
    }

    /// Brings the run here as it is on the server and on the remote.
    fn fetch_run(
        &self,
        project: &Project,
        order: &FleetOrder,
        run: &str,
        found: &Found,
    ) -> Result<(), Fault> {
        let bus = &*self.shop.bus;
        let all = self.patience.ask(|| files::list(bus, run))?;
        let refs = refs_at(bus, &self.patience, &all, found)?;
        let commits: BTreeSet<ObjectId> = refs.values().cloned().collect();
        self.patience.git(|| remote::fetch_kept(&project.repo, remote::ORIGIN, run, &commits))?;
        let folder = self.shop.scratch().map_err(|error| error.to_string())?;
        let mut artifacts = BTreeMap::new();
        let placed = parts::placed(run, &found.text).map_err(|error| error.to_string())?;
        for (n, placed) in placed.into_iter().enumerate() {
            let Some(file) = files::find(&all, &placed.artifact) else { continue };
            if let Some(content) = self.patience.ask(|| files::get(bus, file))? {
                let path = folder.path().join(n.to_string());
                disk::write_new(&path, &content).map_err(|error| error.to_string())?;
                artifacts.insert(placed.place, path);
            }
        }
        let parts = RunParts { run_id: run, journal: &found.text, artifacts: &artifacts, refs: &refs };
        // Opened again: it has commits now that it did not have before.
        let taken = self.project()?.take_over(parts, TakeOver { is_own: true, sets_aside: true });
        taken.map_err(|error| error.to_string())?;
        let known = journal::check(run, found.text.clone()).ok().and_then(|text| log::fold(&text).ok());
        let open = known.map(|run| run.open).unwrap_or_default();
        let is_at_work = |order: &Order| !matches!(order, Order::QuestionAsked(_));
        // A run that waits is landed or resumed by whichever worker is free, which is no takeover.
        if matches!(order.work, Work::Run { .. } | Work::Trial { .. }) || open.values().any(is_at_work) {
            let agents = open.values().filter(|order| matches!(order, Order::AgentStart(_))).count();
            let mut done = self.shop.done();
            done.taken_over += 1;
            done.steps_repeated += agents as u64;
        }
        Ok(())
    }

    /// What would be approved: the configuration at the commit that the run began at or, if it is new, at the tip of its branch.
    fn offer(&self, run: &str) -> Result<Offer, String> {
        let project = self.project()?;
        let journal = Journal::read(&RunLines::path(&project, run));
        let base = match journal {
            Ok(text) => log::fold(&text).ok().and_then(|run| run.request.map(|request| request.base.commit)),
            Err(journal::Error::Missing { .. }) => None,
            Err(error) => return Err(error.to_string()),
        };
        let text = |error: archeflow_host::open::Error| error.to_string();
        match base.and_then(|base| ObjectId::parse(base.as_bytes()).ok()) {
            Some(base) => project.offer_at(&base).map_err(text),
            None => {
                let branch = self.clone.borrow().as_ref().map(|clone| clone.branch.clone());
                Ok(project.onto_remote(remote::ORIGIN, branch.as_deref()).map_err(text)?.offer)
            }
        }
    }

    /// The flag for what a person has approved; none if the repository brings nothing that needs it.
    fn approval(&self, order: &FleetOrder, run: &str) -> Result<Option<OsString>, Fault> {
        let (offer, name) = (self.offer(run)?, &order.repository.name);
        if offer.files.is_empty() && offer.instructions.is_empty() {
            return Ok(None);
        }
        if matches!(order.work, Work::Trial { .. }) {
            let why = "the repository has a configuration of its own; tasks of an evaluation can't have one";
            return Err(why.to_owned().into());
        }
        let (bus, digest) = (&*self.shop.bus, offer.named_digest(name));
        match self.patience.ask(|| approvals::find(bus, &self.shop.join, name, &digest))? {
            Some(_) => Ok(Some(format!("{name}={digest}").into())),
            None => Err(format!(
                "archeflow trust --fleet <join file> {name}; nobody has approved its configuration (digest {digest})"
            )
            .into()),
        }
    }

    /// What an order with a trial brings along.
    fn trial(&self, order: &FleetOrder, run: &str) -> Result<Option<ReadyTrial>, Fault> {
        let Work::Trial { trial } = &order.work else { return Ok(None) };
        let evaluation = self.evaluation.borrow().clone().ok_or_else(|| "there is no folder".to_owned())?;
        let journal = RunLines::path(&self.project()?, run);
        let ready = evaluation.ready(&*self.shop.bus, &self.patience, run, trial, &journal);
        ready.map(Some).map_err(|fault| match fault {
            NotReady::Bus(error) => error.into(),
            NotReady::Unusable(why) => why.into(),
        })
    }

    fn crew(
        &self,
        order: &FleetOrder,
        trial: Option<&ReadyTrial>,
        socket: &std::path::Path,
        approved: Option<OsString>,
    ) -> Result<LocalCrew, String> {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let branch = self.clone.borrow().as_ref().map(|clone| clone.branch.clone()).unwrap_or_default();
        let mut said: Vec<OsString> = match trial {
            Some(trial) => trial.said.clone(),
            None => flags_of(&order.said)?,
        };
        said.extend(["--remote", remote::ORIGIN, "--target", &branch].map(OsString::from));
        let mut always: Vec<OsString> = vec!["--replica".into(), socket.into()];
        always.extend(approved.into_iter().flat_map(|approved| ["--approved".into(), approved]));
        always.extend(trial.into_iter().flat_map(|trial| trial.always.iter().cloned()));
        let (projects, env) = self.with_clones(|clones| (clones.folder().to_owned(), clones.env().clone()));
        Ok(LocalCrew::new(LocalRuns {
            projects,
            me: env.me,
            cwd: env.cwd,
            env: env.variables,
            said,
            always,
            no_sandbox: env.no_sandbox,
            own_workflow: trial.is_some(),
            limit: trial.map(|trial| trial.limit),
            tag: format!("{}.{}", self.shop.tag, NUMBER.fetch_add(1, Ordering::Relaxed)),
        }))
    }

    /// The report of an order.
    fn event(&self, order: &FleetOrder, end: RunEnd) -> SprintEvent {
        *self.end.borrow_mut() = Some(end.clone());
        let start_seq = order.seq;
        match &order.work {
            Work::Run { .. } | Work::Resume { .. } | Work::Trial { .. } => {
                SprintEvent::Ended { start_seq, end }
            }
            Work::Land { .. } => SprintEvent::Landed { start_seq, end },
            Work::Batch { candidates } => {
                let ends = candidates.iter().map(|one| ItemEnd {
                    item: one.item.clone(),
                    end: RunEnd { run_id: one.run_id.clone(), ..end.clone() },
                });
                SprintEvent::BatchLanded {
                    start_seq,
                    came: BatchLanding { ends: ends.collect(), ..BatchLanding::default() },
                }
            }
        }
    }

    fn fetched_lines(&self, run: &str) -> Result<u64, String> {
        let local = local_journal(&self.project()?, run)?;
        Ok(local.iter().filter(|byte| **byte == b'\n').count() as u64)
    }

    fn drive(
        &self,
        order: &FleetOrder,
        run: &str,
        publish: &mut dyn FnMut(u64) -> Result<(), NotEnded>,
    ) -> Result<RunEnd, Fault> {
        if let Some(why) = self.trouble.take() {
            return Err(Fault::Trouble(why));
        }
        let approved = self.approval(order, run)?;
        let trial = self.trial(order, run)?;
        if trial.as_ref().is_some_and(|trial| trial.limit.is_zero()) {
            publish(self.fetched_lines(run)?).map_err(Fault::NotEnded)?;
            return Ok(at_limit(unstarted(run, String::new()), Duration::ZERO));
        }
        let folder = self.shop.scratch().map_err(|error| error.to_string())?;
        let path = folder.path().join("replica");
        let listener = socket::bind(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let crew = Arc::new(self.crew(order, trial.as_ref(), &path, approved)?);
        *self.task.crew.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&crew));
        // Asked before there was anybody to hear it.
        if self.task.is_cancelled() || self.stop.is_asked() {
            crew.stop();
        }
        let clone = self.clone.borrow().as_ref().map(|clone| clone.name.clone()).unwrap_or_default();
        let mut replica = RunReplica { run, socket: &path, have: self.have.get() };
        let (end, fault) = replica.attend(&listener, publish, || match (&order.work, &trial) {
            (Work::Trial { .. }, None) => unstarted(run, "it has no trial".to_owned()),
            (Work::Trial { .. }, Some(ReadyTrial { item, is_busy: true, limit, .. })) => {
                at_limit(crew.resume(order.seq, &in_clone(item, &clone), run), *limit)
            }
            (Work::Trial { trial }, Some(ReadyTrial { item, limit, .. })) => {
                let budget = trial.budget_usd;
                at_limit(crew.run(order.seq, &in_clone(item, &clone), run, budget), *limit)
            }
            (Work::Run { item, budget_usd, .. }, _) => {
                crew.run(order.seq, &in_clone(item, &clone), run, *budget_usd)
            }
            (Work::Resume { item, .. }, _) => crew.resume(order.seq, &in_clone(item, &clone), run),
            (Work::Land { item, .. }, _) => crew.land(order.seq, &in_clone(item, &clone), run),
            (Work::Batch { .. }, _) => unstarted(run, "this worker lands one run at a time".to_owned()),
        });
        let end = end.unwrap_or_else(|| unstarted(run, "the worker failed".to_owned()));
        match fault {
            None => {}
            Some(NotEnded::Fenced) => return Err(Fault::NotEnded(NotEnded::Fenced)),
            Some(gave_up @ NotEnded::GaveUp(_)) => {
                return Err(self.trouble.take().map_or(Fault::NotEnded(gave_up), Fault::Trouble));
            }
        }
        // What a session wrote at its very end, or one before it that was killed.
        publish(self.fetched_lines(run)?).map_err(Fault::NotEnded)?;
        if end.status.is_none() && self.stop.is_asked() && !self.task.is_cancelled() {
            return Err(Fault::NotEnded(NotEnded::GaveUp("this worker stops".to_owned())));
        }
        Ok(end)
    }
}

/// Why an order was not performed to its end.
enum Fault {
    /// Another worker may do it.
    NotEnded(NotEnded),
    /// No worker can before a person has done something.
    Trouble(String),
}

impl From<BusError> for Fault {
    fn from(error: BusError) -> Fault {
        Fault::NotEnded(NotEnded::GaveUp(error.to_string()))
    }
}

impl From<String> for Fault {
    fn from(why: String) -> Fault {
        Fault::Trouble(why)
    }
}

impl Place for OrderPlace<'_> {
    fn take_over(&self, order: &FleetOrder, run: &str, found: &Found) -> Result<(), NotEnded> {
        self.have.set(found.lines);
        match self.prepare(order, run, found) {
            Ok(()) => Ok(()),
            Err(Fault::NotEnded(not_ended)) => Err(not_ended),
            // Reported in place of an end.
            Err(Fault::Trouble(why)) => {
                *self.trouble.borrow_mut() = Some(why);
                Ok(())
            }
        }
    }

    fn local(&self, _order: &FleetOrder, run: &str) -> Box<dyn LocalLines> {
        match self.project() {
            Ok(project) => Box::new(RunLines {
                bus: Arc::clone(&self.shop.bus),
                project,
                run: run.to_owned(),
                patience: Rc::clone(&self.patience),
                trouble: Rc::clone(&self.trouble),
                pushed: RefCell::default(),
            }),
            Err(why) => Box::new(NoLines { why }),
        }
    }

    fn perform(
        &self,
        order: &FleetOrder,
        run: &str,
        publish: &mut dyn FnMut(u64) -> Result<(), NotEnded>,
    ) -> Result<SprintEvent, NotEnded> {
        match self.drive(order, run, publish) {
            Ok(end) => Ok(self.event(order, end)),
            Err(Fault::Trouble(why)) => {
                let reason = self.is_given_up.get().then_some(Reason::AgentFailures);
                Ok(self.event(order, RunEnd { reason, ..unstarted(run, why) }))
            }
            Err(Fault::NotEnded(not_ended)) => Err(not_ended),
        }
    }

    fn be_patient(&self, tries: u32, why: &BusError) -> bool {
        self.patience.wait(tries, &why.to_string())
    }

    fn session(&self) -> String {
        format!("{}.{}", self.shop.join.name, random())
    }

    fn version(&self) -> &str {
        self.shop.clones.env().version
    }
}

/// The item with the folder of its clone as its project.
fn in_clone(item: &QueueItem, clone: &str) -> QueueItem {
    QueueItem { project: clone.to_owned(), ..item.clone() }
}

/// In place of lines that can't be read.
struct NoLines {
    why: String,
}

impl LocalLines for NoLines {
    fn lines_from(&self, _first: u64, _bytes: usize) -> Result<Vec<u8>, String> {
        Err(self.why.clone())
    }
}

/// Sixteen random hexadecimal digits.
pub(super) fn random() -> String {
    let mut bytes = [0_u8; 8];
    if machine::random(&mut bytes).is_err() {
        bytes = archeflow_host::clock::now().to_le_bytes();
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn local_journal(project: &Project, run: &str) -> Result<Vec<u8>, String> {
    let path: PathBuf = RunLines::path(project, run);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// What ends a step; a run that has one more of these has come further.
const ENDED: [&str; 9] = [
    "preflight.done",
    "agent.complete",
    "agent.failed",
    "agent.timeout",
    "evidence.done",
    "merge.built",
    "tests.done",
    "run.merged",
    "run.complete",
];

/// Sessions since a step ended.
fn futile_sessions(journal: &[u8]) -> usize {
    #[derive(serde::Deserialize)]
    struct Line {
        #[serde(rename = "type")]
        kind: String,
    }
    let lines = journal.split(|byte| *byte == b'\n');
    let kinds = lines.filter_map(|line| serde_json::from_slice::<Line>(line).ok()).map(|line| line.kind);
    kinds.fold(0, |sessions, kind| match kind.as_str() {
        "session.start" => sessions + 1,
        kind if ENDED.contains(&kind) => 0,
        _ => sessions,
    })
}

/// Flags with a value that an order of a sprint may give to a run. Others are this machine's business: an order must not turn
/// the sandbox off, for example.
const FLAGS: [&str; 3] = ["--agent", "--agent-for", "--test-command"];

fn flags_of(said: &[String]) -> Result<Vec<OsString>, String> {
    let (pairs, rest) = said.as_chunks::<2>();
    let unknown = pairs.iter().map(|[flag, _]| flag).find(|flag| !FLAGS.contains(&flag.as_str()));
    match unknown.or(rest.first()) {
        Some(flag) => Err(format!(
            "the order asks for {}, which a worker takes from nobody; it takes {}",
            safe_line(flag),
            FLAGS.join(", ")
        )),
        None => Ok(said.iter().map(OsString::from).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fl_139_an_order_gives_a_run_no_flags_but_those_of_a_sprint() {
        for (said, refused) in [
            (&[][..], None),
            (&["--agent", "claude", "--agent-for", "maker=codex", "--test-command", "make test"], None),
            (&["--agent", "claude", "--unsafe-no-sandbox"], Some("--unsafe-no-sandbox")),
            (&["--unsafe-no-sandbox", "--agent"], Some("--unsafe-no-sandbox")),
            (&["--config", "/etc/arms.yaml"], Some("--config")),
            (&["--agent=claude"], Some("--agent=claude")),
            (&["--agent"], Some("--agent")),
        ] {
            let said: Vec<String> = said.iter().map(|word| (*word).to_owned()).collect();
            let flags = flags_of(&said);
            match refused {
                None => assert_eq!(flags.map(|flags| flags.len()), Ok(said.len())),
                Some(word) => assert!(flags.is_err_and(|why| why.contains(word)), "{said:?}"),
            }
        }
    }

    #[test]
    fn fl_134_sessions_without_a_step_that_ended_are_counted() {
        let lines = |kinds: &[&str]| {
            let lines: Vec<String> = kinds.iter().map(|kind| format!("{{\"type\":\"{kind}\"}}\n")).collect();
            lines.concat().into_bytes()
        };
        let (start, end) = ("session.start", "session.end");
        for (kinds, expected) in [
            (&[][..], 0),
            (&["run.start", start, "agent.start"], 1),
            (&[start, "agent.start", end, start, "agent.lost", "agent.start"], 2),
            (&[start, start, "agent.complete"], 0),
            (&[start, start, "agent.complete", start], 1),
            (&[start, "run.complete", start, "merge.built", start], 1),
        ] {
            assert_eq!(futile_sessions(&lines(kinds)), expected, "{kinds:?}");
        }
    }
}
