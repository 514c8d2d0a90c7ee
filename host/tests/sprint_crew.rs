//! The loop of a sprint with a crew that is none of this machine: it starts no process, and what it reports counts.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its world should stop at once")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use archeflow_core::model::{Money, Reason, RunStatus, Seq};
use archeflow_core::run::Run;
use archeflow_core::sprint::Sprint;
use archeflow_core::sprint::event::{
    BatchLanding, Candidate, ItemEnd, RunEnd, SprintEntry, SprintEvent, SprintStop, UnfinishedRun,
};
use archeflow_core::sprint::policy::{Room, SprintPolicy};
use archeflow_core::sprint::queue::{ItemStatus, QueueItem};
use archeflow_host::proc;
use archeflow_host::sprint::crew::{BranchOverlap, NotKept, SprintCrew, SprintSetup, UnlandedRun};
use archeflow_host::sprint::drive::{self, SprintDriver, SprintEnded, SprintMessage, SprintObserver};
use archeflow_host::sprint::opening::{self, OpenedSprint};
use archeflow_host::sprint::queue::{Extra, QueueFolder};
use serde_json::{Value, json};
use tempfile::TempDir;

/// Workers elsewhere, made up.
#[derive(Default)]
struct Fleet {
    seen: Mutex<Seen>,
    changed: Condvar,
    post: Mutex<Option<Sender<SprintMessage>>>,
    /// What [`SprintCrew::room`] does each time before it answers.
    script: Option<fn(&Fleet, &mut Seen)>,
    /// Runs end when they are stopped, and not before.
    waits: bool,
    place: Option<QueueFolder>,
    /// Another process takes the sprint over with this line.
    fenced_at: Option<u64>,
    /// How often the log can't be kept yet.
    not_yet: Mutex<u32>,
    /// A signal comes while reports are gathered, and from then on the log can't be kept.
    is_left: bool,
    /// Orders whose answers are in the log.
    answered: Mutex<Vec<Seq>>,
}

#[derive(Default)]
struct Seen {
    slots: u32,
    /// Each order with its number and its run.
    orders: Vec<(Seq, String)>,
    active: u32,
    most_active: u32,
    /// The most room there ever was.
    most_slots: u32,
    looks: u32,
    /// Items that the sprint knows of.
    items: BTreeSet<String>,
    was_stopped: bool,
}

impl Fleet {
    fn say(&self, message: SprintMessage) {
        if let Some(post) = &*self.post.lock().unwrap() {
            post.send(message).unwrap();
        }
    }

    fn perform(&self, seq: Seq, run_id: &str, status: RunStatus) -> RunEnd {
        let mut seen = self.seen.lock().unwrap();
        seen.orders.push((seq, run_id.to_owned()));
        seen.active += 1;
        seen.most_active = seen.most_active.max(seen.active);
        if self.waits {
            self.say(SprintMessage::Signal(15));
            seen = self.changed.wait_while(seen, |seen| !seen.was_stopped).unwrap();
        }
        seen.active -= 1;
        RunEnd {
            run_id: run_id.to_owned(),
            status: (!seen.was_stopped).then_some(status),
            reason: (!seen.was_stopped).then_some(Reason::Approved),
            detail: "from afar".to_owned(),
            cycles: 1,
            cost_usd: Money(7),
            took_ms: 1,
            stopped: seen.was_stopped,
            landed_as: None,
            accounts: Vec::new(),
            busy: None,
        }
    }
}

impl SprintCrew for Fleet {
    fn run(&self, seq: Seq, _: &QueueItem, run_id: &str, _: Option<Money>) -> RunEnd {
        self.perform(seq, run_id, RunStatus::AwaitingMerge)
    }

    fn resume(&self, seq: Seq, _: &QueueItem, run_id: &str) -> RunEnd {
        self.perform(seq, run_id, RunStatus::AwaitingMerge)
    }

    fn land(&self, seq: Seq, _: &QueueItem, run_id: &str) -> RunEnd {
        self.perform(seq, run_id, RunStatus::Merged)
    }

    fn land_together(&self, seq: Seq, _: &str, candidates: &[Candidate]) -> BatchLanding {
        let land = |one: &Candidate| ItemEnd {
            item: one.item.clone(),
            end: self.perform(seq, &one.run_id, RunStatus::Merged),
        };
        BatchLanding { ends: candidates.iter().map(land).collect(), ..BatchLanding::default() }
    }

    fn left(&self, _: &QueueItem, _: &str) -> Option<UnfinishedRun> {
        None
    }

    fn room(&self) -> Room {
        let mut seen = self.seen.lock().unwrap();
        seen.looks += 1;
        if let Some(script) = self.script {
            script(self, &mut seen);
        }
        seen.most_slots = seen.most_slots.max(seen.slots);
        Room { slots: Some(seen.slots), ..Room::PLENTY }
    }

    fn overlaps(&self, _: &str, _: &[UnlandedRun]) -> Vec<BranchOverlap> {
        Vec::new()
    }

    fn show_run(&self, _: &str, _: &str, _: &mut dyn FnMut(&Run)) {}

    fn recorded(&self, lines: u64, answered: &[Seq]) -> Result<(), NotKept> {
        if self.fenced_at.is_some_and(|line| lines >= line) {
            return Err(NotKept::Fenced("boss-2 has taken it over".to_owned()));
        }
        let mut not_yet = self.not_yet.lock().unwrap();
        if *not_yet > 0 {
            *not_yet -= 1;
            return Err(NotKept::Yet("the server is away".to_owned()));
        }
        self.answered.lock().unwrap().extend(answered);
        Ok(())
    }

    fn gathers(&self, _: usize) -> Duration {
        if !self.is_left {
            return Duration::ZERO;
        }
        *self.not_yet.lock().unwrap() = u32::MAX;
        self.say(SprintMessage::Signal(15));
        Duration::from_secs(3600)
    }

    fn project_folder(&self, _: &str) -> Option<PathBuf> {
        None
    }

    fn clear_away(&self, _: &str) {}

    fn stop(&self) {
        self.seen.lock().unwrap().was_stopped = true;
        self.changed.notify_all();
    }

    fn kill_now(&self) {
        self.stop();
    }

    fn is_over(&self, _: Duration) -> bool {
        true
    }
}

struct Watcher(Arc<Fleet>);

impl SprintObserver for Watcher {
    fn wrote(&mut self, _: &Sprint, entry: &SprintEntry) {
        if let SprintEvent::Seen { item } = &entry.event {
            self.0.seen.lock().unwrap().items.insert(item.id.clone());
        }
    }

    fn ask(&mut self, _: &Sprint, _: &[String]) -> Option<bool> {
        None
    }

    fn warn(&mut self, _: &str) {}
}

fn item(id: &str, project: &str, priority: &str) -> Value {
    json!({ "id": id, "project": project, "task": format!("Do {id}"), "priority": priority, "estimate": "S",
            "status": "pending" })
}

/// So many items in projects that are nowhere on this machine.
fn queue_of(count: usize, projects: usize) -> (TempDir, QueueFolder) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("docs/orchestra")).unwrap();
    let items: Vec<Value> =
        (0..count).map(|n| item(&format!("i{n:02}"), &format!("p{}", n % projects), "P1")).collect();
    let place = QueueFolder::at(dir.path());
    fs::write(place.file(), json!({ "items": items }).to_string()).unwrap();
    (dir, place)
}

/// Drives the sprint of this queue with this crew until it ends.
fn drive(place: &QueueFolder, fleet: &Arc<Fleet>) -> (SprintEnded, Sprint) {
    drive_opened(place, fleet, drive::open(place).unwrap()).unwrap()
}

fn drive_opened(
    place: &QueueFolder,
    fleet: &Arc<Fleet>,
    opened: OpenedSprint,
) -> Result<(SprintEnded, Sprint), drive::Error> {
    let setup = SprintSetup {
        sprint_id: opened.journal.run_id().to_owned(),
        place: place.clone(),
        projects: place.root().join("nowhere"),
        tag: "a-fleet".to_owned(),
    };
    let mut driver = SprintDriver::new(opened, setup, Arc::clone(fleet) as Arc<dyn SprintCrew>);
    *fleet.post.lock().unwrap() = Some(driver.post());
    let mut watcher = Watcher(Arc::clone(fleet));
    let policy = SprintPolicy { slots: 1, quality_percent: 0, ..SprintPolicy::default() };
    driver.begin(&mut watcher, policy, true, "0")?;
    let ended = driver.drive(&mut watcher)?;
    Ok((ended, driver.sprint))
}

fn statuses(place: &QueueFolder) -> BTreeMap<ItemStatus, usize> {
    let mut statuses = BTreeMap::new();
    for item in place.read().unwrap().items() {
        *statuses.entry(item.status).or_default() += 1;
    }
    statuses
}

#[test]
fn bx_22_another_crew_performs_a_sprint_without_a_process() {
    let (_dir, place) = queue_of(30, 6);
    let fleet =
        Arc::new(Fleet { seen: Mutex::new(Seen { slots: 4, ..Seen::default() }), ..Fleet::default() });
    let (ended, sprint) = drive(&place, &fleet);
    assert_eq!(ended, SprintEnded::Over(SprintStop::Done));
    assert_eq!(statuses(&place), BTreeMap::from([(ItemStatus::Completed, 30)]));
    assert_eq!(sprint.spent(), Money(30 * 7), "what was reported counts");
    let seen = fleet.seen.lock().unwrap();
    assert!(seen.most_active <= 4, "{} at once", seen.most_active);
    assert!(proc::all_over(Duration::ZERO), "no process");
    assert!(!place.root().join("nowhere").exists());
}

/// Two loops without room, then something urgent, then room.
#[test]
fn bx_22_a_crew_without_room_gets_no_orders_and_what_came_late_and_matters_goes_first() {
    let (_dir, place) = queue_of(12, 12);
    let script = |fleet: &Fleet, seen: &mut Seen| {
        if seen.slots == 0 {
            assert!(seen.orders.is_empty(), "orders without room: {:?}", seen.orders);
            fleet.say(SprintMessage::RoomChanged);
        }
        if seen.looks == 3 {
            let urgent: QueueItem = serde_json::from_value(item("urgent", "q", "P0")).unwrap();
            let place = fleet.place.as_ref().unwrap();
            place.change(|queue| queue.add(urgent, &Extra::default())).unwrap();
        }
        if seen.items.contains("urgent") && seen.slots < 3 {
            seen.slots += 1;
        }
    };
    let fleet = Arc::new(Fleet { script: Some(script), place: Some(place.clone()), ..Fleet::default() });
    let (ended, sprint) = drive(&place, &fleet);
    assert_eq!(ended, SprintEnded::Over(SprintStop::Done));
    assert_eq!(statuses(&place), BTreeMap::from([(ItemStatus::Completed, 13)]));
    let seen = fleet.seen.lock().unwrap();
    // By their numbers: each order is performed by a thread of its own, and the first given need not begin first.
    let (_, first) = seen.orders.iter().min().unwrap();
    assert!(seen.looks > 3 && first.contains(".urgent."), "{:?}", seen.orders);
    assert!(seen.most_active <= seen.most_slots, "{} orders at once", seen.most_active);
    assert!(sprint.items.reindexed() == sprint.items, "indices");
}

/// A signal stops the crew. The next session gives it the same order with the same number.
#[test]
fn i5_another_crew_is_stopped_and_goes_on_with_the_same_order() {
    let (_dir, place) = queue_of(1, 1);
    let seen = || Mutex::new(Seen { slots: 1, ..Seen::default() });
    let stopped = Arc::new(Fleet { waits: true, seen: seen(), ..Fleet::default() });
    let (ended, sprint) = drive(&place, &stopped);
    assert_eq!(ended, SprintEnded::Signal(15));
    assert_eq!(sprint.open.len(), 1, "the run is to be performed again");
    assert_eq!(statuses(&place), BTreeMap::from([(ItemStatus::Running, 1)]));
    let fleet = Arc::new(Fleet { seen: seen(), ..Fleet::default() });
    let (ended, _) = drive(&place, &fleet);
    assert_eq!(ended, SprintEnded::Over(SprintStop::Done));
    assert_eq!(statuses(&place), BTreeMap::from([(ItemStatus::Completed, 1)]));
    let (before, after) = (&stopped.seen.lock().unwrap().orders, &fleet.seen.lock().unwrap().orders);
    assert_eq!(before.first(), after.first());
}

/// Nothing follows from a line that is not kept, and what is answered is in the log before the crew learns of it.
#[test]
fn fl_78_nothing_follows_from_a_line_that_is_not_kept() {
    let (_dir, place) = queue_of(4, 4);
    let seen = || Mutex::new(Seen { slots: 4, ..Seen::default() });
    // The two lines of the beginning are kept, what was seen in the queue is not.
    let fenced = Arc::new(Fleet { seen: seen(), fenced_at: Some(3), ..Fleet::default() });
    let error = drive_opened(&place, &fenced, opening::open_of_fleet(&place).unwrap()).err().unwrap();
    assert!(matches!(&error, drive::Error::Fenced { why } if why.contains("boss-2")), "{error}");
    assert!(fenced.seen.lock().unwrap().orders.is_empty(), "an order was given");
    assert_eq!(statuses(&place), BTreeMap::from([(ItemStatus::Pending, 4)]), "nothing was claimed");

    let late = Arc::new(Fleet { seen: seen(), not_yet: Mutex::new(2), ..Fleet::default() });
    let (ended, sprint) = drive_opened(&place, &late, opening::open_of_fleet(&place).unwrap()).unwrap();
    assert_eq!(ended, SprintEnded::Over(SprintStop::Done));
    assert_eq!(sprint.fence, 2, "the same sprint");
    let answered = late.answered.lock().unwrap();
    // Claim, run, landing and result of each.
    assert_eq!(answered.len(), 16);
}

/// The signal is read with the reports; what is written next is never kept.
#[test]
fn fl_78_a_signal_among_reports_ends_a_sprint_whose_log_is_not_kept() {
    let (dir, place) = queue_of(2, 2);
    let seen = Mutex::new(Seen { slots: 2, ..Seen::default() });
    let fleet = Arc::new(Fleet { seen, is_left: true, ..Fleet::default() });
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let opened = opening::open_of_fleet(&place).unwrap();
        tell.send(drive_opened(&place, &fleet, opened).err().map(|error| error.to_string())).unwrap();
    });
    let error = told.recv_timeout(Duration::from_secs(600)).expect("it waits for ever");
    assert_eq!(error.as_deref(), Some("stopped while the log could not be kept: the server is away"));
    drop(dir);
}

#[test]
fn fl_79_a_log_is_brought_to_what_the_server_has() {
    let (_here, here) = queue_of(3, 3);
    let (_there, there) = queue_of(3, 3);
    let fleet =
        || Arc::new(Fleet { seen: Mutex::new(Seen { slots: 3, ..Seen::default() }), ..Fleet::default() });
    let opened = opening::open_of_fleet(&here).unwrap();
    let (id, file) = (opened.journal.run_id().to_owned(), opened.journal.path().to_owned());
    assert!(opening::is_of_fleet(&id) && !opening::is_of_fleet("2026-11-18-sprint"));
    let (_, sprint) = drive_opened(&here, &fleet(), opened).unwrap();
    let whole = fs::read(&file).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    // Nothing of it there, then a part of it.
    drop(opening::open_as_kept(&there, &id, lines[..5].concat()).unwrap());
    let continued = opening::open_as_kept(&there, &id, whole.clone()).unwrap();
    assert_eq!(continued.sprint, sprint);
    let copy = continued.journal.path().to_owned();
    drop(continued);
    assert_eq!(fs::read(&copy).unwrap(), whole);
    // Less on the server: what is here continues it.
    drop(opening::open_as_kept(&there, &id, lines[..5].concat()).unwrap());
    assert_eq!(fs::read(&copy).unwrap(), whole);
    // Another continuation is set aside.
    fs::write(&copy, lines[..5].concat()).unwrap();
    drop(drive_opened(&there, &fleet(), opening::open_as_kept(&there, &id, Vec::new()).unwrap()));
    let other = fs::read(&copy).unwrap();
    assert!(other != whole && other.len() > lines[..5].concat().len());
    drop(opening::open_as_kept(&there, &id, whole.clone()).unwrap());
    assert_eq!(fs::read(&copy).unwrap(), whole);
    let aside = copy.with_file_name(format!("{id}.fenced-1"));
    assert!(other.ends_with(&fs::read(&aside).unwrap()), "{}", aside.display());
    // What is no log adds nothing.
    drop(opening::open_as_kept(&there, &id, b"nonsense\n".to_vec()).unwrap());
    assert_eq!(fs::read(&copy).unwrap(), whole);
    // A sprint of one machine leaves it alone.
    assert_eq!(drive::open(&there).unwrap().journal.run_id().len(), "2026-11-18-sprint".len());
}
