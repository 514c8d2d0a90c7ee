//! The conductor with a real `nats-server`: every item is settled once, whatever is lost, repeated, killed or wiped.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "common/program.rs"]
mod program;
#[path = "common/settings.rs"]
mod settings;
#[path = "conductor/world.rs"]
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

use archeflow_core::model::Money;
use archeflow_core::sprint::event::SprintStop;
use archeflow_core::sprint::queue::ItemStatus;
use archeflow_fleet::bus::Bus;
use archeflow_fleet::message::Work;
use archeflow_host::sprint::drive::{Error, SprintEnded};
use archeflow_host::sprint::queue::QueueFolder;

use world::{Behaviour, Conductor, Workers, World, statuses, until};

const PROJECTS: [&str; 3] = ["shop", "till", "site"];

fn all_completed(place: &QueueFolder, items: usize) {
    assert_eq!(statuses(place), BTreeMap::from([(ItemStatus::Completed, items)]));
}

#[test]
fn fl_71_every_item_is_settled_once_though_reports_repeat_and_workers_vanish() {
    let world = World::new();
    let place = world.queue(20, &PROJECTS);
    let workers = Workers::start(&world, &["w1", "w2"], 3, |order, times| match order.seq % 5 {
        0 => Behaviour::Repeat,
        1 if times == 1 && order.again == 0 => Behaviour::Vanish,
        _ => Behaviour::Answer,
    });
    let conductor = Conductor::start(&world, &place, &["os:linux"]);
    let (sprint, ends) = (conductor.sprint.clone(), conductor.ends.clone());
    let is_unique = |id: &str| id.len() == "2026-11-18-fleet-101500-0a1b2c".len() && id.contains("-fleet-");
    assert!(is_unique(&sprint), "{sprint}");
    drop(workers);
    // Nobody takes orders with this need: the class is another.
    conductor.signal();
    let (ended, _) = conductor.join().unwrap();
    assert_eq!(ended, SprintEnded::Signal(15));
    assert!(ends.lock().unwrap().is_empty());

    let workers = Workers::start(&world, &["w1", "w2"], 3, |order, times| match order.seq % 5 {
        0 => Behaviour::Repeat,
        1 if times == 1 && order.again % 1_000 == 0 => Behaviour::Vanish,
        _ => Behaviour::Answer,
    });
    let conductor = Conductor::start(&world, &place, &[]);
    assert_eq!(conductor.sprint, sprint, "it is continued");
    let ends = conductor.ends.clone();
    let (ended, sprint) = conductor.join().unwrap();
    assert_eq!(ended, SprintEnded::Over(SprintStop::Done));
    all_completed(&place, 20);
    assert_eq!(sprint.spent(), Money(20 * 7), "the last report of each run counts");
    let ends = ends.lock().unwrap();
    let orders: BTreeSet<u64> = ends.iter().map(|(seq, _)| *seq).collect();
    assert_eq!((ends.len(), orders.len()), (40, 40), "one run and one landing each");
    let taken = workers.floor.taken.lock().unwrap().len();
    assert!(taken > 40, "nobody vanished: {taken}");
}

#[test]
fn fl_72_a_conductor_that_was_killed_is_continued_and_no_report_is_lost() {
    let world = World::new();
    let place = world.queue(12, &PROJECTS);
    let workers = Workers::start(&world, &["w1", "w2"], 3, |order, _| match order.work {
        Work::Land { .. } => Behaviour::Wait,
        Work::Run { .. } | Work::Resume { .. } | Work::Batch { .. } | Work::Trial { .. } => Behaviour::Answer,
    });
    let conductor = Conductor::start(&world, &place, &[]);
    let sprint = conductor.sprint.clone();
    let landing =
        |floor: &world::Floor| floor.taken.lock().unwrap().len() - floor.answered.lock().unwrap().len();
    until("three landings", || landing(&workers.floor) >= 3);
    conductor.kill();
    // They end while nobody conducts.
    workers.floor.go_on.store(true, Ordering::SeqCst);
    until("the landings end", || landing(&workers.floor) == 0);
    let conductor = Conductor::start(&world, &place, &[]);
    assert_eq!(conductor.sprint, sprint);
    let (ended, sprint) = conductor.join().unwrap();
    assert_eq!(ended, SprintEnded::Over(SprintStop::Done));
    all_completed(&place, 12);
    assert_eq!(sprint.fence, 2);
    let answered = workers.floor.answered.lock().unwrap();
    let orders: BTreeSet<u64> = answered.iter().map(|(seq, _, _)| *seq).collect();
    assert_eq!(answered.len(), orders.len(), "an order was performed twice: {answered:?}");
    until("answered orders are gone", || {
        world.bus("boss").stream_info("AF_ORDERS").unwrap()["state"]["messages"] == 0
    });
}

#[test]
fn fl_73_a_server_that_lost_everything_gets_log_and_orders_again() {
    let mut world = World::new();
    let place = world.queue(9, &PROJECTS);
    let workers = Workers::start(&world, &["w1", "w2"], 2, |order, times| match order.work {
        Work::Land { .. } => Behaviour::Wait,
        _ if times == 1 && order.seq % 2 == 0 && order.again == 0 => Behaviour::Vanish,
        Work::Run { .. } | Work::Resume { .. } | Work::Batch { .. } | Work::Trial { .. } => Behaviour::Answer,
    });
    let conductor = Conductor::start(&world, &place, &[]);
    let sprint = conductor.sprint.clone();
    until("orders are out", || workers.floor.taken.lock().unwrap().len() >= 4);
    world.kill_and_wipe();
    workers.floor.go_on.store(true, Ordering::SeqCst);
    world.start();
    let (ended, state) = conductor.join().unwrap();
    assert_eq!(ended, SprintEnded::Over(SprintStop::Done));
    all_completed(&place, 9);
    let found = archeflow_fleet::conductor::kept_log(&world.bus("boss"), &sprint).unwrap();
    assert_eq!(found.lines, state.lines, "the log was published again from its beginning");
}

#[test]
fn fl_74_what_nobody_offers_is_named() {
    let world = World::new();
    let place = world.queue(2, &PROJECTS);
    let has = |conductor: &Conductor, text: &str| {
        let warnings = conductor.warnings.lock().unwrap();
        warnings.iter().any(|warning| warning == text)
    };
    let conductor = Conductor::start(&world, &place, &[]);
    until("no worker", || has(&conductor, "no worker is there; 2 items wait"));
    conductor.signal();
    conductor.join().unwrap();
    let _workers = Workers::start(&world, &["w1"], 1, |_, _| Behaviour::Answer);
    let conductor = Conductor::start(&world, &place, &["agent:claude", "label:gpu", "os:linux"]);
    until("nobody offers it", || has(&conductor, "no worker offers agent:claude, label:gpu; 2 items wait"));
    conductor.signal();
    assert_eq!(conductor.join().unwrap().0, SprintEnded::Signal(15));
    assert_eq!(statuses(&place), BTreeMap::from([(ItemStatus::Pending, 2)]));
}

#[test]
fn fl_75_a_second_conductor_fences_the_first() {
    let world = World::new();
    let place = world.queue(6, &PROJECTS);
    let workers = Workers::start(&world, &["w1", "w2"], 3, |_, _| Behaviour::Wait);
    let first = Conductor::start(&world, &place, &[]);
    until("orders are out", || workers.floor.taken.lock().unwrap().len() >= 6);
    // Another machine with a copy of the queue, and without the log.
    let there = world.dir.path().join("there");
    let copied = std::process::Command::new("cp").arg("-r").arg(place.root()).arg(&there).status().unwrap();
    assert!(copied.success());
    std::fs::remove_dir_all(there.join(".archeflow")).unwrap();
    let there = QueueFolder::at(&there);
    let second = Conductor::open(&world, &there, &[], Some(&first.sprint));
    until("the second has the log", || {
        let found = archeflow_fleet::conductor::kept_log(&world.bus("boss"), &second.sprint).unwrap();
        String::from_utf8_lossy(&found.text).matches("sprint.session").count() == 2
    });
    workers.floor.go_on.store(true, Ordering::SeqCst);
    let (ended, _) = second.join().unwrap();
    assert_eq!(ended, SprintEnded::Over(SprintStop::Done));
    all_completed(&there, 6);
    // It learns of it with its next line, which is the first report that it gets.
    let sprint = first.sprint.clone();
    let error = first.join().expect_err("the first one is over");
    assert!(matches!(&error, Error::Fenced { why } if why.contains(&sprint)), "{error}");
    let answered = workers.floor.answered.lock().unwrap();
    let orders: BTreeSet<u64> = answered.iter().map(|(seq, _, _)| *seq).collect();
    assert_eq!(orders.len(), 12, "a run and a landing each: {answered:?}");
}

#[test]
fn fl_76_a_repository_that_cannot_be_used_is_held_back_and_others_go_on() {
    let world = World::new();
    let place = world.queue(15, &PROJECTS);
    let dir = place.root().join("site");
    let git =
        std::process::Command::new("git").arg("-C").arg(&dir).args(["remote", "remove", "origin"]).status();
    assert!(git.unwrap().success());
    let workers = Workers::start(&world, &["w1", "w2"], 2, |order, _| {
        if order.repository.name == "till" { Behaviour::Unusable } else { Behaviour::Answer }
    });
    let conductor = Conductor::start(&world, &place, &[]);
    let warnings = conductor.warnings.clone();
    let (ended, sprint) = conductor.join().unwrap();
    assert_eq!(ended, SprintEnded::Over(SprintStop::Done), "{:?}", sprint.broke);
    let expected = BTreeMap::from([(ItemStatus::Pending, 10), (ItemStatus::Completed, 5)]);
    assert_eq!(statuses(&place), expected);
    let text = std::fs::read_to_string(place.file()).unwrap();
    assert!(text.contains("fatal: Could not read from remote repository."), "git's words are in the queue");
    assert!(text.contains("held back: ") && text.contains("remote add origin"), "{text}");
    let warnings = warnings.lock().unwrap();
    assert!(warnings.iter().any(|warning| warning.starts_with("till is held back: ")), "{warnings:?}");
    drop(workers);
}

#[test]
fn fl_77_an_interrupted_sprint_cancels_its_orders_and_is_continued() {
    let world = World::new();
    let place = world.queue(4, &["shop"]);
    let workers = Workers::start(&world, &["w1"], 3, |_, _| Behaviour::Hold);
    let conductor = Conductor::start(&world, &place, &[]);
    until("orders are out", || workers.floor.taken.lock().unwrap().len() >= 3);
    conductor.signal();
    let (ended, sprint) = conductor.join().unwrap();
    assert_eq!(ended, SprintEnded::Signal(15));
    assert!(sprint.open.len() >= 3, "{:?}", sprint.open);
    until("they were cancelled", || workers.floor.answered.lock().unwrap().len() == 3);
    assert_eq!(
        world.bus("boss").next_from("AF_ORDERS", "af1.o.>", 1).unwrap(),
        None,
        "one is left in the queue"
    );
    drop(workers);
    let _workers = Workers::start(&world, &["w1"], 3, |_, _| Behaviour::Answer);
    let (ended, _) = Conductor::start(&world, &place, &[]).join().unwrap();
    assert_eq!(ended, SprintEnded::Over(SprintStop::Done));
    all_completed(&place, 4);
}
