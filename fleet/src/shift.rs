//! What a worker does from its start to its end: it takes orders that it can perform, as many at a time as it has slots, keeps
//! their leases, and hands back what it can't finish.
//!
//! Which queues there are is seen from the subjects that have orders, so a class that nobody had before is noticed by itself.

mod held;
mod lines;
mod patience;
mod place;
mod pulse;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use archeflow_core::sprint::event::RunEnd;
use archeflow_host::open::ProcessEnv;
use archeflow_host::platform::files as os;
use archeflow_host::platform::machine;
use archeflow_host::platform::removal::remove_tree;
use archeflow_host::store::lock::{self, Lock};
use archeflow_host::{probe, proc};

use crate::bus::{Bus, BusError, Lease};
use crate::clones::Clones;
use crate::join::{JoinError, JoinFile};
use crate::message::{self, FleetOrder, WorkerCounts};
use crate::names;
use crate::nats::{NatsBus, NatsOptions};
use crate::worker::{self, Served};

use held::HeldOrder;
use place::{OrderPlace, Task};
use trial::Evaluations;

/// Between two looks at the queues.
const LOOK: Duration = Duration::from_millis(250);
/// While the server is away.
const AWAY: Duration = Duration::from_secs(1);
/// When an order comes back that came again while its run is being stopped here.
const ENDING: Duration = Duration::from_secs(5);
/// The lease of a queue that says none.
const USUAL_LEASE: Duration = Duration::from_secs(60);

/// What a worker is started with.
#[derive(Debug, Clone)]
pub struct ShiftSetup {
    pub join: JoinFile,
    /// Where clones and what is under way are kept.
    pub folder: PathBuf,
    pub slots: u32,
    pub labels: Vec<String>,
    pub env: ProcessEnv,
    /// A server that can't be reached is waited for.
    pub waits: bool,
}

/// Ends a worker: first cleanly, then at once.
#[derive(Debug, Default)]
pub struct ShiftStop {
    level: AtomicU8,
}

impl ShiftStop {
    /// Runs are stopped, their work is saved, and orders are handed back; the second time everything is killed.
    pub fn ask(&self) {
        let _ = self
            .level
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |level| Some(level.saturating_add(1)));
    }

    pub fn is_asked(&self) -> bool {
        self.level.load(Ordering::SeqCst) > 0
    }

    fn at_once(&self) -> bool {
        self.level.load(Ordering::SeqCst) > 1
    }
}

/// Hears what a worker does.
pub trait ShiftObserver: Sync {
    fn note(&self, text: &str);
    fn warn(&self, text: &str);
    fn began(&self, order: &FleetOrder, run: &str);
    /// `end` is what was reported, if anything was.
    fn ended(&self, run: &str, served: &Served, end: Option<&RunEnd>);
}

#[derive(Debug, thiserror::Error)]
pub enum ShiftFault {
    #[error(transparent)]
    Join(#[from] JoinError),
    #[error("another worker uses {}: {source}", folder.display())]
    InUse { folder: PathBuf, source: lock::Error },
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

/// What all orders of a worker share.
struct Shop {
    bus: Arc<dyn Bus>,
    join: JoinFile,
    clones: Clones,
    evaluations: Evaluations,
    /// Of the processes that this worker starts, also from one start to the next.
    tag: String,
    scratch: ScratchFolder,
    done: Mutex<WorkerCounts>,
    notices: Arc<Notices>,
}

/// What the threads of orders say, until the one that prints takes it.
#[derive(Default)]
struct Notices(Mutex<Vec<String>>);

impl Notices {
    fn add(&self, text: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shop {
    fn done(&self) -> MutexGuard<'_, WorkerCounts> {
        self.done.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A folder for one order.
    fn scratch(&self) -> std::io::Result<ScratchFolder> {
        ScratchFolder::make(self.scratch.path().join(place::random()))
    }
}

/// A folder that is removed when dropped, and by the next worker if this one is killed.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn make(path: PathBuf) -> std::io::Result<ScratchFolder> {
        if path.exists() {
            remove_tree(&path)?;
        }
        os::private_directory().create(&path)?;
        Ok(ScratchFolder(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = remove_tree(&self.0);
    }
}

struct Shift<'a> {
    shop: &'a Shop,
    folder: PathBuf,
    stop: Arc<ShiftStop>,
    slots: u32,
    offers: BTreeSet<String>,
    draining: AtomicBool,
    /// In milliseconds, the shortest that is known.
    lease_ms: AtomicU64,
    under_way: Mutex<Vec<(HeldOrder, Arc<Task>)>>,
}

/// Takes and performs orders until it is asked to stop, or has drained.
pub fn work(
    setup: &ShiftSetup,
    stop: &Arc<ShiftStop>,
    observer: &dyn ShiftObserver,
) -> Result<(), ShiftFault> {
    let (repos, held) = (setup.folder.join("repos"), setup.folder.join("held"));
    for path in [&repos, &held] {
        let made = os::private_directory().recursive(true).create(path);
        made.map_err(|source| ShiftFault::Io { path: path.clone(), source })?;
    }
    let _alone = Lock::take(&setup.folder, "worker", Duration::ZERO)
        .map_err(|source| ShiftFault::InUse { folder: setup.folder.clone(), source })?;
    // Most of what was needed until now is not needed again, and a worker may wait for days.
    machine::release_program();
    let Some((bus, pulse)) = connect(setup, stop, observer)? else { return Ok(()) };
    machine::release_program();
    let place = blake3::hash(os::bytes(setup.folder.as_os_str())).to_hex();
    let place = place.get(..8).unwrap_or_default();
    let tag = format!("worker.{}.{place}", setup.join.name);
    // Of a worker that was killed.
    proc::become_subreaper();
    proc::kill_leftovers(&format!("{tag}."));
    proc::wake_git(&format!("{tag}."));
    // Sockets need a short path.
    let path = std::env::temp_dir().join(format!("archeflow-worker-{place}"));
    let scratch = ScratchFolder::make(path.clone()).map_err(|source| ShiftFault::Io { path, source })?;
    let bus = Arc::new(bus);
    let shop = Shop {
        bus: Arc::<NatsBus>::clone(&bus),
        join: setup.join.clone(),
        clones: Clones::new(repos, setup.env.clone()),
        evaluations: Evaluations::new(setup.folder.join("evaluations"), setup.env.clone()),
        tag,
        scratch,
        done: Mutex::default(),
        notices: Arc::default(),
    };
    let still_held = held::left(&held).into_iter();
    let still_held = still_held.filter_map(|one| message::read_order(&one.hold.begun_with().bytes).ok());
    shop.evaluations.clean(&still_held.collect::<Vec<FleetOrder>>());
    let shift = Shift {
        shop: &shop,
        folder: held,
        stop: Arc::clone(stop),
        slots: setup.slots,
        offers: offers(setup),
        draining: AtomicBool::new(false),
        lease_ms: AtomicU64::new(milliseconds(USUAL_LEASE)),
        under_way: Mutex::default(),
    };
    machine::release_program();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _ends = SetWhenDropped(&over);
        scope.spawn(|| shift.pulse(&pulse, &over, observer));
        thread::scope(|scope| shift.take_orders(scope, &bus, observer));
    });
    proc::finish_all();
    Ok(())
}

/// Ends the thread that extends leases, however the others end.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// One connection for orders and one for leases. Nothing if the worker was stopped meanwhile.
fn connect(
    setup: &ShiftSetup,
    stop: &ShiftStop,
    observer: &dyn ShiftObserver,
) -> Result<Option<(NatsBus, NatsBus)>, ShiftFault> {
    let mut is_told = false;
    loop {
        let once = || NatsBus::connect(&setup.join, NatsOptions::default());
        match once().and_then(|bus| Ok((bus, once()?))) {
            Ok(both) => return Ok(Some(both)),
            Err(error @ JoinError::Unreachable { .. }) if setup.waits => {
                if !is_told {
                    observer.note(&format!("waits: {error}"));
                    is_told = true;
                }
                thread::sleep(AWAY);
            }
            Err(error) => return Err(error.into()),
        }
        if stop.is_asked() {
            return Ok(None);
        }
    }
}

/// What orders can ask for and this machine has.
fn offers(setup: &ShiftSetup) -> BTreeSet<String> {
    let agents = probe::on_path(&setup.env.variables).into_iter().map(|name| format!("agent:{name}"));
    let labels = setup.labels.iter().map(|label| format!("label:{label}"));
    let own = [format!("os:{}", std::env::consts::OS), message::exactly(setup.env.version)];
    own.into_iter().chain(agents).chain(labels).collect()
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl<'a> Shift<'a> {
    fn list(&self) -> MutexGuard<'_, Vec<(HeldOrder, Arc<Task>)>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> Vec<HeldOrder> {
        self.list().iter().map(|(held, _)| held.clone()).collect()
    }

    fn tasks(&self) -> Vec<Arc<Task>> {
        self.list().iter().map(|(_, task)| Arc::clone(task)).collect()
    }

    fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms.load(Ordering::SeqCst))
    }

    fn is_draining(&self) -> bool {
        self.draining.load(Ordering::SeqCst) || self.stop.is_asked()
    }

    /// Whether it drained already.
    fn drain(&self) -> bool {
        self.draining.swap(true, Ordering::SeqCst)
    }

    fn take_orders<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        bus: &'scope NatsBus,
        observer: &'scope dyn ShiftObserver,
    ) {
        for held in held::left(&self.folder) {
            if held.hold.extend(bus) {
                self.lease_ms.fetch_min(milliseconds(held.lease), Ordering::SeqCst);
                self.begin(scope, bus, observer, held);
            }
        }
        let mut queues = BTreeMap::new();
        let mut is_away = false;
        loop {
            let free = (self.slots as usize).saturating_sub(self.list().len());
            if self.stop.is_asked() {
                let at_once = self.stop.at_once();
                self.tasks().iter().for_each(|task| if at_once { task.kill_now() } else { task.stop() });
            }
            if self.is_draining() && self.list().is_empty() {
                return;
            }
            if self.is_draining() || free == 0 {
                thread::sleep(LOOK);
                continue;
            }
            match self.next(bus, &mut queues) {
                Ok(Some(held)) => self.begin(scope, bus, observer, held),
                Ok(None) if queues.is_empty() => thread::sleep(LOOK),
                Ok(None) => {}
                Err(error) => {
                    if !is_away {
                        observer.warn(&format!("no orders: {error}"));
                    }
                    is_away = true;
                    thread::sleep(AWAY);
                    continue;
                }
            }
            if is_away {
                observer.note("the server answers again");
                is_away = false;
            }
        }
    }

    /// The next order that this worker can perform. `queues` has the leases of those that are known.
    fn next(
        &self,
        bus: &NatsBus,
        queues: &mut BTreeMap<String, Duration>,
    ) -> Result<Option<HeldOrder>, BusError> {
        for subject in bus.subjects(names::ORDERS, &names::orders(">"))?.into_keys() {
            if !self.can_take(&subject) {
                continue;
            }
            let lease = match queues.get(&subject) {
                Some(lease) => *lease,
                None => {
                    let info = bus.queue_info(&subject)?;
                    let lease = info["config"]["ack_wait"].as_u64().map_or(USUAL_LEASE, Duration::from_nanos);
                    queues.insert(subject.clone(), lease);
                    self.lease_ms.fetch_min(milliseconds(lease), Ordering::SeqCst);
                    lease
                }
            };
            if let Some(delivery) = bus.take(&subject, Duration::ZERO)? {
                return Ok(Some(HeldOrder::new(&self.folder, delivery, lease)));
            }
        }
        // Nothing is there now. What comes next comes most likely to a queue that had orders before, and is taken at once.
        let wait = LOOK / u32::try_from(queues.len().max(1)).unwrap_or(1);
        for (subject, lease) in queues.iter() {
            if let Some(delivery) = bus.take(subject, wait)? {
                return Ok(Some(HeldOrder::new(&self.folder, delivery, *lease)));
            }
        }
        Ok(None)
    }

    /// Whether this worker has what a class needs.
    fn can_take(&self, subject: &str) -> bool {
        let Some(class) = subject.strip_prefix(&names::orders("")) else { return false };
        let has = |need: &str| self.offers.iter().any(|offer| names::token(offer) == need);
        class == message::class(&BTreeSet::new()) || class.split('+').all(has)
    }

    /// An order that came again while this worker performs it is not begun a second time.
    fn has_already(&self, bus: &NatsBus, observer: &dyn ShiftObserver, again: &HeldOrder) -> bool {
        let (Some(order), delivery) = (again.order.as_deref(), again.hold.begun_with()) else { return false };
        let which = worker::held(order);
        let here: Vec<(HeldOrder, Arc<Task>)> =
            self.list().iter().filter(|(_, task)| task.held == which).cloned().collect();
        // Once this run has been reported as stopped, the order may be wanted again.
        if here.iter().any(|(_, task)| task.is_cancelled()) {
            let _ = bus.lease(&delivery.token, Lease::Back(ENDING));
            return true;
        }
        let Some((held, _)) = here.iter().find(|(held, _)| held.hold.adopt(&which, delivery)) else {
            return false;
        };
        observer.note(&format!("{} was handed out again, and continues here", worker::run_of(order)));
        // Otherwise it is written when its lease is extended.
        let _ = held.keep();
        again.forget();
        true
    }

    fn begin<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        bus: &'scope NatsBus,
        observer: &'scope dyn ShiftObserver,
        held: HeldOrder,
    ) {
        if self.has_already(bus, observer, &held) {
            return;
        }
        // What can't be read is answered by `serve` itself.
        let order = held.order.clone();
        let task = order.as_deref().map(|order| Arc::new(Task::new(order)));
        let run = order.as_deref().map(worker::run_of).unwrap_or_default();
        if let Err(why) = held.keep() {
            observer.warn(&format!("this worker could not continue {run} after a restart: {why}"));
        }
        let task = task.unwrap_or_else(|| Arc::new(Task::unreadable()));
        self.list().push((held.clone(), Arc::clone(&task)));
        self.shop.done().orders += 1;
        if let Some(order) = &order {
            observer.began(order, &run);
        }
        scope.spawn(move || {
            let place = OrderPlace::new(self.shop, &self.stop, task, &run);
            let served = worker::serve(bus, &place, &self.shop.join.name, &held.hold);
            if let (Ok(Served::Reported), Some(order)) = (&served, &order) {
                place.forget(order);
            }
            held.forget();
            self.list().retain(|(one, _)| !Arc::ptr_eq(&one.hold, &held.hold));
            let end = place.end.borrow();
            match served {
                Ok(served) => observer.ended(&run, &served, end.as_ref()),
                Err(error) => observer.ended(&run, &Served::GaveUp(error.to_string()), None),
            }
        });
    }
}
