//! The members of a simulated fleet: a conductor and workers, with a model of a run and the code under test around it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

use archeflow_core::model::{Money, Reason, RunStatus, Seq};
use archeflow_core::sprint::event::{RunEnd, SprintEvent};
use archeflow_core::sprint::queue::{ItemStatus, Priority, QueueItem, TaskSize};
use archeflow_fleet::bus::{Bus, BusError, BusSeq, Delivery, Expect, Heard, Kept, Lease, Put, PutEnd};
use archeflow_fleet::dispatch::Dispatch;
use archeflow_fleet::hold::Hold;
use archeflow_fleet::journal::{Found, LocalLines};
use archeflow_fleet::message::{
    self, FORMAT, FleetOrder, FleetReport, Heartbeat, Repository, Work, WorkerCounts,
};
use archeflow_fleet::names;
use archeflow_fleet::worker::{self, NotEnded, Place};

use super::world::{Faults, Killed, LEASE_MS, SimBus, State, Violation, World, landed};

const SPRINT: &str = "sim-sprint";
const ITEMS: [&str; 4] = ["a", "b", "c", "d"];
const WORKERS: usize = 3;
const STEPS: [&str; 3] = ["plan", "make", "review"];
/// So often something is asked again before one gives up.
const TRIES: u32 = 8;

/// A mistake that somebody could make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plant {
    Nothing,
    /// Goes on when the server refuses a line.
    PublishRegardless,
    /// Appends without saying what is expected.
    NoExpectation,
    /// Pushes the target without the turn.
    LandWithoutTurn,
    /// Pays first and writes down later.
    ActBeforeWriting,
    /// Continues what is on its own disk, whatever the bus has.
    StartFromLocal,
    /// Pushes what was tested on a commit that is no longer the target.
    LandUntested,
    /// Never gives an order a second time.
    NeverAgain,
    /// Begins what its own worker is performing.
    BeginTwice,
}

impl Plant {
    pub(crate) const BUGS: [Plant; 7] = [
        Plant::PublishRegardless,
        Plant::NoExpectation,
        Plant::LandWithoutTurn,
        Plant::ActBeforeWriting,
        Plant::StartFromLocal,
        Plant::LandUntested,
        Plant::NeverAgain,
    ];
}

/// One fleet from its beginning to its end. The conductor has a machine of its own; `slots` is per worker.
pub(crate) fn simulate(seed: u64, faults: Faults, slots: usize, plant: Plant) -> Result<(), Violation> {
    let machines: Vec<usize> = (0..=WORKERS * slots).map(|me| me.div_ceil(slots)).collect();
    let world = World::new(seed, faults, &machines);
    thread::scope(|scope| {
        for (me, machine) in machines.iter().enumerate() {
            let world = &world;
            scope.spawn(move || live(world, me, *machine, plant));
        }
    });
    let state = world.state();
    if let Some(violation) = &state.violation {
        return Err(violation.clone());
    }
    if let Some(missing) = ITEMS.iter().find(|item| !landed(&state).contains(run_id(item).as_str())) {
        return Err(Violation::NeverLanded((*missing).to_owned()));
    }
    if faults == Faults::NONE && state.paid_again() > 0 {
        return Err(Violation::PaidAgain("in peace".to_owned()));
    }
    Ok(())
}

/// One life after the other, until all is over.
fn live(world: &Arc<World>, me: usize, machine: usize, plant: Plant) {
    world.enter(me);
    loop {
        let life = || if me == 0 { conduct(world, plant) } else { work(world, me, machine, plant) };
        match catch_unwind(AssertUnwindSafe(life)) {
            Ok(()) => break,
            Err(killed) if killed.is::<Killed>() && !world.state().is_over => {}
            Err(killed) if killed.is::<Killed>() => break,
            Err(bug) => {
                world.state().fail(Violation::Stuck("a member panicked".to_owned()));
                world.leave(me);
                std::panic::resume_unwind(bug);
            }
        }
    }
    world.leave(me);
}

fn run_id(item: &str) -> String {
    archeflow_core::sprint::run_id(SPRINT, item, 1)
}

fn bus_of(world: &Arc<World>, me: usize, plant: Plant) -> Planted {
    Planted { bus: SimBus { world: Arc::clone(world), me }, plant }
}

/// The bus with a mistake of its user's.
struct Planted {
    bus: SimBus,
    plant: Plant,
}

impl Bus for Planted {
    fn put(&self, mut put: Put<'_>) -> Result<PutEnd, BusError> {
        if self.plant == Plant::NoExpectation {
            put.expect = Expect::Anything;
        }
        match self.bus.put(put)? {
            PutEnd::Refused if self.plant == Plant::PublishRegardless => Ok(PutEnd::Kept(1)),
            end @ (PutEnd::Kept(_) | PutEnd::Refused) => Ok(end),
        }
    }

    fn last(&self, subject: &str) -> Result<Option<Kept>, BusError> {
        self.bus.last(subject)
    }

    fn next_from(&self, stream: &str, subject: &str, seq: BusSeq) -> Result<Option<Kept>, BusError> {
        self.bus.next_from(stream, subject, seq)
    }

    fn take(&self, queue: &str, wait: Duration) -> Result<Option<Delivery>, BusError> {
        self.bus.take(queue, wait)
    }

    fn lease(&self, token: &str, lease: Lease) -> Result<(), BusError> {
        self.bus.lease(token, lease)
    }

    fn say(&self, subject: &str, bytes: &[u8]) -> Result<(), BusError> {
        self.bus.say(subject, bytes)
    }

    fn hear(&self, subject: &str) -> Result<Receiver<Heard>, BusError> {
        self.bus.hear(subject)
    }
}

// The conductor.

fn conduct(world: &Arc<World>, plant: Plant) {
    let bus = bus_of(world, 0, plant);
    let heard = bus.hear("af1.hb.>").unwrap();
    let mut dispatch = Dispatch::new(SPRINT, LEASE_MS);
    let left: Vec<(Seq, String)> = {
        let state = world.turn(0);
        let open = state.log.iter().filter(|(_, (_, answered))| !answered);
        open.map(|(seq, (what, _))| (*seq, what.clone())).collect()
    };
    // An earlier life had given them.
    for (seq, what) in left {
        give(world, &bus, &mut dispatch, seq, &what);
    }
    loop {
        let now = world.turn(0).now;
        heard
            .try_iter()
            .filter_map(|heard| message::read(&heard.bytes).ok())
            .for_each(|beat| dispatch.heard(beat, now));
        if plant != Plant::NeverAgain {
            dispatch.overdue(now).iter().for_each(|order| publish_order(&bus, order));
        }
        while let Ok(Some(delivery)) = bus.take(&names::reports(SPRINT), Duration::ZERO) {
            let report: FleetReport = message::read(&delivery.bytes).unwrap();
            hear_report(&mut world.turn(0), &report);
            dispatch.answered(report.start_seq);
            let _ = bus.lease(&delivery.token, Lease::Done);
        }
        let next = {
            let mut state = world.turn(0);
            let next = next(&state);
            if let Some(what) = &next {
                let seq = state.log.len() as u64 + 1;
                state.log.insert(seq, (what.clone(), false));
            } else if state.log.values().filter(|(what, _)| what.starts_with("landed")).count() == ITEMS.len()
            {
                state.is_over = true;
                return;
            }
            next.map(|what| (state.log.len() as u64, what))
        };
        if let Some((seq, what)) = next {
            give(world, &bus, &mut dispatch, seq, &what);
        }
    }
}

/// A report that answers an open order is written down, once.
fn hear_report(state: &mut State, report: &FleetReport) {
    let Some((what, answered)) = state.log.get_mut(&report.start_seq) else { return };
    if *answered {
        return;
    }
    *answered = true;
    if let SprintEvent::Landed { end, .. } = &report.event
        && end.status == Some(RunStatus::Merged)
    {
        *what = what.replace("land ", "landed ");
    }
}

/// All runs at once, and one landing after the other.
fn next(state: &State) -> Option<String> {
    let is = |what: &str| state.log.values().any(|(known, _)| known == what);
    if let Some(item) = ITEMS.iter().find(|item| !is(&format!("run {item}"))) {
        return Some(format!("run {item}"));
    }
    if state.log.values().any(|(what, answered)| what.starts_with("land ") && !answered) {
        return None;
    }
    let ready = |item: &&&str| {
        let ran = state.log.values().any(|(what, answered)| *what == format!("run {item}") && *answered);
        ran && !is(&format!("landed {item}"))
    };
    ITEMS.iter().find(ready).map(|item| format!("land {item}"))
}

fn give(world: &World, bus: &dyn Bus, dispatch: &mut Dispatch, seq: Seq, what: &str) {
    let (kind, item) = what.split_once(' ').unwrap();
    let run = run_id(item);
    let item = QueueItem {
        id: item.to_owned(),
        project: "p".to_owned(),
        task: "t".to_owned(),
        priority: Priority::P2,
        estimate: TaskSize::S,
        status: ItemStatus::Running,
        depends_on: Vec::new(),
        workflow: None,
        files: Vec::new(),
    };
    let work = match kind {
        "run" => Work::Run { item, attempt: 1, budget_usd: None },
        _ => Work::Land { item, run },
    };
    let (name, url, branch) = ("p".to_owned(), "file:///p".to_owned(), "main".to_owned());
    let order = FleetOrder {
        v: FORMAT,
        sprint: SPRINT.to_owned(),
        seq,
        again: 0,
        work,
        repository: Repository { name, url, branch },
        needs: Default::default(),
        said: Vec::new(),
        min_version: "0.1.0".to_owned(),
    };
    let now = world.turn(0).now;
    dispatch.give(order.clone(), now);
    publish_order(bus, &order);
}

/// One that is lost on the way is given again when it is overdue.
fn publish_order(bus: &dyn Bus, order: &FleetOrder) {
    let subject = names::orders(&message::class(&order.needs));
    let bytes = serde_json::to_vec(order).unwrap();
    let _ =
        bus.put(Put { subject: &subject, expect: Expect::Anything, id: None, headers: &[], bytes: &bytes });
}

// Workers.

fn work(world: &Arc<World>, me: usize, machine: usize, plant: Plant) {
    let bus = bus_of(world, me, plant);
    let place = SimPlace { world: Arc::clone(world), bus: &bus, me, machine, plant };
    loop {
        place.beat();
        let Ok(Some(delivery)) = bus.take(&names::orders("any"), Duration::ZERO) else { continue };
        let which = worker::held(&message::read::<FleetOrder>(&delivery.bytes).unwrap());
        let hold = {
            let mut state = world.state();
            let holds = state.holds.entry(machine).or_default();
            if plant != Plant::BeginTwice && holds.iter().any(|hold| hold.adopt(&which, &delivery)) {
                continue;
            }
            let hold = Arc::new(Hold::new(Some(which), delivery));
            holds.push(Arc::clone(&hold));
            hold
        };
        let _ = worker::serve(&bus, &place, &format!("w{machine}"), &hold);
        let mut state = world.state();
        state.holds.entry(machine).or_default().retain(|one| !Arc::ptr_eq(one, &hold));
    }
}

struct SimPlace<'a> {
    world: Arc<World>,
    bus: &'a Planted,
    me: usize,
    machine: usize,
    plant: Plant,
}

/// A journal on a simulated disk.
struct SimLines {
    world: Arc<World>,
    key: (usize, String),
}

impl LocalLines for SimLines {
    fn lines_from(&self, first: u64, _bytes: usize) -> Result<Vec<u8>, String> {
        let state = self.world.state();
        let lines = state.disks.get(&self.key).map(Vec::as_slice).unwrap_or_default();
        let rest = &lines[usize::try_from(first - 1).unwrap().min(lines.len())..];
        Ok(rest.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes())
    }
}

type Publish<'a> = &'a mut dyn FnMut(u64) -> Result<(), NotEnded>;

impl SimPlace<'_> {
    /// What the thread beside the runs does.
    fn beat(&self) {
        let holds = self.world.state().holds.get(&self.machine).cloned().unwrap_or_default();
        for hold in &holds {
            hold.extend(self.bus);
        }
        let held = holds.iter().filter_map(|hold| message::read(&hold.begun_with().bytes).ok());
        let beat = Heartbeat {
            v: FORMAT,
            worker: format!("w{}", self.machine),
            version: "0.1.0".to_owned(),
            slots: self.world.state().slots_of(self.machine),
            draining: false,
            offers: Default::default(),
            holds: held.map(|order: FleetOrder| worker::held(&order)).collect(),
            free_bytes: 0,
            done: WorkerCounts::default(),
            at: 0,
        };
        let _ = self.bus.say(&names::heartbeat(&beat.worker), &serde_json::to_vec(&beat).unwrap());
    }

    fn lines(&self, run: &str) -> Vec<String> {
        self.world.state().disks.get(&(self.machine, run.to_owned())).cloned().unwrap_or_default()
    }

    fn has(&self, run: &str, line: &str) -> bool {
        self.lines(run).iter().any(|known| known == line)
    }

    /// To the local disk, then to the bus.
    fn append(&self, run: &str, line: String, publish: Publish<'_>) -> Result<(), NotEnded> {
        let count = {
            let mut state = self.world.turn(self.me);
            let lines = state.disks.entry((self.machine, run.to_owned())).or_default();
            lines.push(line);
            lines.len() as u64
        };
        publish(count)
    }

    fn make(&self, run: &str, session: &str, publish: Publish<'_>) -> Result<(), NotEnded> {
        let subject = names::run_journal(run);
        for step in STEPS {
            if self.has(run, &format!("done {step}")) {
                continue;
            }
            self.beat();
            if self.plant == Plant::ActBeforeWriting {
                self.world.turn(self.me).pay(run, step, session, &subject);
            }
            self.append(run, format!("order {step} {session}"), publish)?;
            if self.plant != Plant::ActBeforeWriting {
                self.world.turn(self.me).pay(run, step, session, &subject);
            }
            self.beat();
            self.append(run, format!("done {step}"), publish)?;
        }
        Ok(())
    }

    fn land(&self, run: &str, session: &str, publish: Publish<'_>) -> Result<bool, NotEnded> {
        for tries in 1.. {
            if self.has(run, "landed") {
                return Ok(true);
            }
            self.beat();
            let turn = self.world.turn(self.me).take_turn(self.me, run);
            match turn {
                Ok(Some(mine)) => {
                    // Fetching takes its time.
                    self.beat();
                    self.beat();
                    let tested_on = self.world.turn(self.me).tip();
                    self.beat();
                    let is_careless = self.plant == Plant::LandUntested;
                    let old = if is_careless { self.world.turn(self.me).tip() } else { tested_on };
                    self.append(run, format!("intent {old} {session}"), publish)?;
                    let mine = (self.plant != Plant::LandWithoutTurn).then_some(mine);
                    let pushed = self.world.turn(self.me).push(self.me, run, (old, tested_on), mine);
                    if pushed == Ok(true) {
                        self.append(run, "landed".to_owned(), publish)?;
                    }
                }
                Ok(None) => self.append(run, "landed".to_owned(), publish)?,
                Err(()) => {}
            }
            if tries > TRIES {
                break;
            }
        }
        Ok(self.has(run, "landed"))
    }
}

impl Place for SimPlace<'_> {
    fn take_over(&self, _order: &FleetOrder, run: &str, found: &Found) -> Result<(), NotEnded> {
        let theirs: Vec<String> = String::from_utf8_lossy(&found.text).lines().map(str::to_owned).collect();
        let mut state = self.world.turn(self.me);
        let ours = state.disks.entry((self.machine, run.to_owned())).or_default();
        if self.plant != Plant::StartFromLocal && !ours.starts_with(&theirs) {
            *ours = theirs;
        }
        Ok(())
    }

    fn local(&self, _order: &FleetOrder, run: &str) -> Box<dyn LocalLines> {
        Box::new(SimLines { world: Arc::clone(&self.world), key: (self.machine, run.to_owned()) })
    }

    fn perform(&self, order: &FleetOrder, run: &str, publish: Publish<'_>) -> Result<SprintEvent, NotEnded> {
        self.world.state().begins(self.machine, order.seq);
        let end = self.drive(order, run, publish);
        self.world.state().ends(self.machine, order.seq);
        end
    }

    fn be_patient(&self, tries: u32, _why: &BusError) -> bool {
        self.beat();
        tries < TRIES
    }

    fn session(&self) -> String {
        format!("s{}", self.world.state().next_session())
    }
}

impl SimPlace<'_> {
    fn drive(&self, order: &FleetOrder, run: &str, publish: Publish<'_>) -> Result<SprintEvent, NotEnded> {
        let session = self.session();
        self.append(run, format!("session {session}"), publish)?;
        let (start_seq, status) = (order.seq, RunStatus::AwaitingMerge);
        // A landing finds a run that is not at its end if the server forgot some of it.
        self.make(run, &session, publish)?;
        if matches!(order.work, Work::Run { .. }) {
            return Ok(SprintEvent::Ended { start_seq, end: end(run, status) });
        }
        let landed = self.land(run, &session, publish)?;
        let status = if landed { RunStatus::Merged } else { status };
        Ok(SprintEvent::Landed { start_seq, end: end(run, status) })
    }
}

fn end(run: &str, status: RunStatus) -> RunEnd {
    RunEnd {
        run_id: run.to_owned(),
        status: Some(status),
        reason: Some(Reason::Approved),
        detail: String::new(),
        cycles: 1,
        cost_usd: Money::ZERO,
        took_ms: 0,
        stopped: false,
        landed_as: None,
        accounts: Vec::new(),
        busy: None,
    }
}
