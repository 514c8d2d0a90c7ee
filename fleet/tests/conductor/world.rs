//! A server, projects with remotes, a queue, and workers that answer without running anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use archeflow_core::model::{Money, Reason, RunStatus, Seq};
use archeflow_core::sprint::Sprint;
use archeflow_core::sprint::event::{RunEnd, SprintEntry, SprintEvent};
use archeflow_core::sprint::policy::SprintPolicy;
use archeflow_core::sprint::queue::ItemStatus;
use archeflow_fleet::bus::{Bus, BusError, BusSeq, Delivery, Expect, Heard, Kept, Lease, Put, PutEnd};
use archeflow_fleet::conductor::{Conducting, FleetCrew, kept_log};
use archeflow_fleet::join::{FleetRole, JoinFile};
use archeflow_fleet::message::{
    self, Control, ControlCommand, FleetOrder, FleetReport, Heartbeat, Held, Work, WorkerCounts,
};
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_fleet::server::{FleetFolder, FleetServer, ServerEnd};
use archeflow_fleet::sprint_log::SprintLog;
use archeflow_fleet::{names, worker};
use archeflow_host::sprint::crew::{SprintCrew, SprintSetup};
use archeflow_host::sprint::drive::{self, SprintDriver, SprintEnded, SprintMessage, SprintObserver};
use archeflow_host::sprint::opening;
use archeflow_host::sprint::queue::QueueFolder;
use serde_json::json;
use tempfile::TempDir;

use crate::program::server_program;
use crate::settings::one_server;

/// Only a fault takes this long.
pub(crate) const LONG: Duration = Duration::from_secs(300);
pub(crate) const LEASE: Duration = Duration::from_secs(2);
const OPTIONS: NatsOptions = NatsOptions { limit: Duration::from_secs(2), lease: LEASE };

/// Waits until something is so.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) struct World {
    pub(crate) dir: TempDir,
    fleet: FleetFolder,
    server: Option<FleetServer>,
}

impl World {
    pub(crate) fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let (fleet, _) = FleetFolder::init(&dir.path().join("fleet"), &one_server(200_000_000)).unwrap();
        fleet.add(FleetRole::Conductor, "boss", None).unwrap();
        ["w1", "w2"].iter().for_each(|name| drop(fleet.add(FleetRole::Worker, name, None).unwrap()));
        let mut world = World { dir, fleet, server: None };
        world.start();
        world
    }

    pub(crate) fn start(&mut self) {
        self.server = Some(FleetServer::start(&self.fleet, &server_program()).unwrap());
    }

    pub(crate) fn kill_and_wipe(&mut self) {
        let mut server = self.server.take().unwrap();
        assert!(Command::new("kill").args(["-9", &server.id().to_string()]).status().unwrap().success());
        assert_eq!(server.wait(LONG), ServerEnd::Ended);
        std::fs::remove_dir_all(self.fleet.path().join("data")).unwrap();
    }

    pub(crate) fn bus(&self, name: &str) -> NatsBus {
        let join = JoinFile::read(&self.fleet.path().join(format!("{name}.join"))).unwrap();
        NatsBus::connect(&join, OPTIONS).unwrap()
    }

    /// Items that may all run at the same time, in projects with a remote each.
    pub(crate) fn queue(&self, items: usize, projects: &[&str]) -> QueueFolder {
        let root = self.dir.path().join("root");
        std::fs::create_dir_all(root.join("docs/orchestra")).unwrap();
        for project in projects {
            let dir = root.join(project);
            git(&["init", "-q", "-b", "main", &dir.display().to_string()]);
            git(&["-C", &dir.display().to_string(), "remote", "add", "origin", &format!("../{project}.git")]);
        }
        let item = |n: usize| {
            json!({ "id": format!("i{n:02}"), "project": projects[n % projects.len()], "task": format!("Do {n}"),
                    "priority": "P1", "estimate": "S", "status": "pending", "files": [format!("f{n}")] })
        };
        let place = QueueFolder::at(&root);
        let items: Vec<_> = (0..items).map(item).collect();
        std::fs::write(place.file(), json!({ "items": items }).to_string()).unwrap();
        place
    }
}

fn git(args: &[&str]) {
    assert!(Command::new("git").args(args).status().unwrap().success(), "{args:?}");
}

pub(crate) fn statuses(place: &QueueFolder) -> BTreeMap<ItemStatus, usize> {
    let mut statuses = BTreeMap::new();
    for item in place.read().unwrap().items() {
        *statuses.entry(item.status).or_default() += 1;
    }
    statuses
}

/// What a worker does with an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Behaviour {
    Answer,
    /// Reports twice.
    Repeat,
    /// Takes it and is never heard of again with it.
    Vanish,
    /// Works on it until it is cancelled.
    Hold,
    /// Works on it until told to go on.
    Wait,
    /// Can't begin it.
    Unusable,
}

type Behave = fn(&FleetOrder, u64) -> Behaviour;

/// What workers saw and are to do, shared by all of them.
#[derive(Default)]
pub(crate) struct Floor {
    /// Orders that were answered, with how they were given.
    pub(crate) answered: Mutex<Vec<(Seq, u32, String)>>,
    pub(crate) taken: Mutex<Vec<Seq>>,
    pub(crate) go_on: AtomicBool,
    pub(crate) is_over: AtomicBool,
}

pub(crate) struct Workers {
    pub(crate) floor: Arc<Floor>,
    threads: Vec<JoinHandle<()>>,
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.floor.is_over.store(true, Ordering::SeqCst);
        self.floor.go_on.store(true, Ordering::SeqCst);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

#[derive(Default)]
struct Station {
    holds: Mutex<BTreeSet<Held>>,
    cancelled: Mutex<BTreeSet<Held>>,
}

impl Workers {
    pub(crate) fn start(world: &World, names: &[&str], slots: u32, behave: Behave) -> Workers {
        let floor = Arc::new(Floor::default());
        let mut threads = Vec::new();
        for name in names {
            let station = Arc::new(Station::default());
            let (beats, f, s, n) =
                (world.bus(name), Arc::clone(&floor), Arc::clone(&station), (*name).to_owned());
            threads.push(std::thread::spawn(move || beat(&beats, &f, &s, &n, slots)));
            let bus = Arc::new(world.bus(name));
            for _ in 0..slots {
                let (b, f, s, n) =
                    (Arc::clone(&bus), Arc::clone(&floor), Arc::clone(&station), (*name).to_owned());
                threads.push(std::thread::spawn(move || work(&b, &f, &s, &n, behave)));
            }
        }
        Workers { floor, threads }
    }
}

fn beat(bus: &NatsBus, floor: &Floor, station: &Station, name: &str, slots: u32) {
    let controls = bus.hear(&names::control(name)).unwrap();
    while !floor.is_over.load(Ordering::SeqCst) {
        for heard in controls.try_iter() {
            let control: Control = message::read(&heard.bytes).unwrap();
            if let ControlCommand::Cancel(held) = control.command {
                station.cancelled.lock().unwrap().insert(held);
            }
        }
        let beat = Heartbeat {
            v: 1,
            worker: name.to_owned(),
            version: "0".to_owned(),
            slots,
            draining: false,
            offers: BTreeSet::from(["os:linux".to_owned()]),
            holds: station.holds.lock().unwrap().iter().cloned().collect(),
            free_bytes: 0,
            done: WorkerCounts::default(),
            at: 0,
        };
        let _ = bus.say(&names::heartbeat(name), &serde_json::to_vec(&beat).unwrap());
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn work(bus: &NatsBus, floor: &Floor, station: &Station, name: &str, behave: Behave) {
    while !floor.is_over.load(Ordering::SeqCst) {
        let Ok(Some(delivery)) = bus.take("any", Duration::from_millis(500)) else { continue };
        let order: FleetOrder = message::read(&delivery.bytes).unwrap();
        assert!(order.repository.url.ends_with(&format!("{}.git", order.repository.name)), "{order:?}");
        assert!(
            Path::new(&order.repository.url).is_absolute() && order.repository.branch == "main",
            "{order:?}"
        );
        let held = Held { sprint: order.sprint.clone(), seq: order.seq };
        let behaviour = behave(&order, delivery.times);
        floor.taken.lock().unwrap().push(order.seq);
        if behaviour == Behaviour::Vanish {
            continue;
        }
        station.holds.lock().unwrap().insert(held.clone());
        let is_cancelled = || station.cancelled.lock().unwrap().contains(&held);
        let is_done = || match behaviour {
            Behaviour::Hold => false,
            Behaviour::Wait => floor.go_on.load(Ordering::SeqCst),
            Behaviour::Answer | Behaviour::Repeat | Behaviour::Vanish | Behaviour::Unusable => true,
        };
        while !is_done() && !is_cancelled() && !floor.is_over.load(Ordering::SeqCst) {
            let _ = bus.lease(&delivery.token, Lease::Extend);
            std::thread::sleep(Duration::from_millis(50));
        }
        let event = event(&order, behaviour, is_cancelled());
        report(bus, floor, name, &order, &event);
        if behaviour == Behaviour::Repeat {
            report(bus, floor, name, &FleetOrder { again: order.again + 500, ..order.clone() }, &event);
        }
        let _ = bus.lease(&delivery.token, Lease::Done);
        floor.answered.lock().unwrap().push((order.seq, order.again, worker::run_of(&order)));
        station.cancelled.lock().unwrap().remove(&held);
        station.holds.lock().unwrap().remove(&held);
    }
}

fn report(bus: &NatsBus, floor: &Floor, name: &str, order: &FleetOrder, event: &SprintEvent) {
    let report = FleetReport { v: 1, start_seq: order.seq, worker: name.to_owned(), event: event.clone() };
    let (subject, bytes) = (names::reports(&order.sprint), serde_json::to_vec(&report).unwrap());
    let id = format!("{}:{}:{}", order.sprint, order.seq, order.again);
    let put = Put { subject: &subject, expect: Expect::Anything, id: Some(&id), headers: &[], bytes: &bytes };
    while bus.put(put).is_err() && !floor.is_over.load(Ordering::SeqCst) {}
}

fn event(order: &FleetOrder, behaviour: Behaviour, is_cancelled: bool) -> SprintEvent {
    let is_landing = matches!(order.work, Work::Land { .. });
    let status = if is_landing { RunStatus::Merged } else { RunStatus::AwaitingMerge };
    let has_status = !is_cancelled && behaviour != Behaviour::Unusable;
    let end = RunEnd {
        run_id: worker::run_of(order),
        status: has_status.then_some(status),
        reason: has_status.then_some(Reason::Approved),
        detail: "fatal: Could not read from remote repository.".to_owned(),
        cycles: u32::from(has_status),
        cost_usd: Money(if is_landing { 7 } else { 5 }),
        took_ms: 1,
        stopped: is_cancelled,
        landed_as: None,
        accounts: Vec::new(),
        busy: None,
    };
    let start_seq = order.seq;
    if is_landing { SprintEvent::Landed { start_seq, end } } else { SprintEvent::Ended { start_seq, end } }
}

/// The bus of a conductor that may be cut off for ever, as if it were dead.
struct Cut {
    bus: NatsBus,
    is_cut: Arc<AtomicBool>,
}

impl Cut {
    fn alive(&self) -> Result<&NatsBus, BusError> {
        if self.is_cut.load(Ordering::SeqCst) {
            return Err(BusError::NoAnswer("cut off".to_owned()));
        }
        Ok(&self.bus)
    }
}

impl Bus for Cut {
    fn put(&self, put: Put<'_>) -> Result<PutEnd, BusError> {
        self.alive()?.put(put)
    }
    fn last(&self, subject: &str) -> Result<Option<Kept>, BusError> {
        self.alive()?.last(subject)
    }
    fn next_from(&self, stream: &str, subject: &str, seq: BusSeq) -> Result<Option<Kept>, BusError> {
        self.alive()?.next_from(stream, subject, seq)
    }
    fn take(&self, queue: &str, wait: Duration) -> Result<Option<Delivery>, BusError> {
        self.alive()?.take(queue, wait)
    }
    fn take_some(&self, queue: &str, most: usize, wait: Duration) -> Result<Vec<Delivery>, BusError> {
        self.alive()?.take_some(queue, most, wait)
    }
    fn done_with(&self, tokens: &[String]) {
        if let Ok(bus) = self.alive() {
            bus.done_with(tokens);
        }
    }
    fn remove(&self, stream: &str, seq: BusSeq) -> Result<(), BusError> {
        self.alive()?.remove(stream, seq)
    }
    fn lease(&self, token: &str, lease: Lease) -> Result<(), BusError> {
        self.alive()?.lease(token, lease)
    }
    fn say(&self, subject: &str, bytes: &[u8]) -> Result<(), BusError> {
        self.alive()?.say(subject, bytes)
    }
    fn hear(&self, subject: &str) -> Result<Receiver<Heard>, BusError> {
        self.alive()?.hear(subject)
    }
}

/// A conductor that drives a sprint on a thread of its own.
pub(crate) struct Conductor {
    pub(crate) sprint: String,
    pub(crate) warnings: Arc<Mutex<Vec<String>>>,
    /// Runs and landings that the log says have ended, with their order.
    pub(crate) ends: Arc<Mutex<Vec<(Seq, String)>>>,
    post: Sender<SprintMessage>,
    crew: Arc<FleetCrew>,
    is_cut: Arc<AtomicBool>,
    thread: JoinHandle<Result<(SprintEnded, Sprint), drive::Error>>,
}

impl Conductor {
    pub(crate) fn start(world: &World, place: &QueueFolder, needs: &[&str]) -> Conductor {
        Conductor::open(world, place, needs, None)
    }

    pub(crate) fn open(world: &World, place: &QueueFolder, needs: &[&str], taken: Option<&str>) -> Conductor {
        let is_cut = Arc::new(AtomicBool::new(false));
        let bus: Arc<dyn Bus> = Arc::new(Cut { bus: world.bus("boss"), is_cut: Arc::clone(&is_cut) });
        let id = match taken {
            Some(id) => id.to_owned(),
            None => opening::open_of_fleet(place).unwrap().journal.run_id().to_owned(),
        };
        let opened = opening::open_as_kept(place, &id, kept_log(&*bus, &id).unwrap().text).unwrap();
        let session = format!("boss-{}", rand());
        let found = kept_log(&*bus, &id).unwrap();
        let log = SprintLog::start(Arc::clone(&bus), &id, &session, found, opened.journal.path());
        let how = Conducting {
            sprint: id.clone(),
            session: opened.sprint.fence + 1,
            projects: place.root().to_owned(),
            needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            said: Vec::new(),
            lease: LEASE,
            ledger: None,
            most: None,
        };
        let crew = Arc::new(FleetCrew::new(bus, how, log, &opened.sprint.open).unwrap());
        let setup = SprintSetup {
            sprint_id: id.clone(),
            place: place.clone(),
            projects: place.root().to_owned(),
            tag: session,
        };
        let mut driver = SprintDriver::new(opened, setup, Arc::clone(&crew) as Arc<dyn SprintCrew>);
        let post = driver.post();
        crew.start(post.clone());
        let (warnings, ends) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<_>>>::default());
        let mut watcher = Watcher { warnings: Arc::clone(&warnings), ends: Arc::clone(&ends) };
        let thread = std::thread::spawn(move || {
            let policy = SprintPolicy { quality_percent: 0, landing_batch: 1, ..SprintPolicy::default() };
            driver.begin(&mut watcher, policy, true, "0")?;
            let ended = driver.drive(&mut watcher)?;
            Ok((ended, driver.sprint))
        });
        Conductor { sprint: id, warnings, ends, post, crew, is_cut, thread }
    }

    pub(crate) fn signal(&self) {
        self.post.send(SprintMessage::Signal(15)).unwrap();
    }

    /// As `kill -9`: nothing it does reaches anybody any more.
    pub(crate) fn kill(self) {
        self.is_cut.store(true, Ordering::SeqCst);
        let _ = self.post.send(SprintMessage::Signal(9));
        self.crew.abandon();
        let _ = self.thread.join().unwrap();
    }

    pub(crate) fn join(self) -> Result<(SprintEnded, Sprint), drive::Error> {
        let (tell, ended) = channel();
        std::thread::spawn(move || drop(tell.send(self.thread.join().unwrap())));
        ended.recv_timeout(LONG).expect("the sprint never ends")
    }
}

fn rand() -> u64 {
    let mut bytes = [0; 8];
    archeflow_host::platform::machine::random(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

struct Watcher {
    warnings: Arc<Mutex<Vec<String>>>,
    ends: Arc<Mutex<Vec<(Seq, String)>>>,
}

impl SprintObserver for Watcher {
    fn wrote(&mut self, _: &Sprint, entry: &SprintEntry) {
        let mut ends = self.ends.lock().unwrap();
        if let Some(seq) = entry.event.answers() {
            ends.extend(entry.event.ends().iter().map(|end| (seq, end.run_id.clone())));
        }
    }

    fn ask(&mut self, _: &Sprint, _: &[String]) -> Option<bool> {
        None
    }

    fn warn(&mut self, text: &str) {
        self.warnings.lock().unwrap().push(text.to_owned());
    }
}
