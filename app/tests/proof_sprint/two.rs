//! Two sprints on one queue, one of them killed and started again, and a person who adds and cancels meanwhile: nothing
//! runs twice, and no change is lost.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::Value;

use super::watcher::Watcher;
use super::world::{World, rows};
use crate::user::printed;

const PROJECTS: usize = 10;
const ITEMS: usize = 30;
/// Every third; some of them have begun by then.
const CANCELLED: usize = 3;
const ADDED: usize = 10;

#[test]
#[ignore = "takes minutes: cargo xtask test sprint"]
fn bx_22_two_sprints_and_a_person_on_one_queue_lose_nothing_and_do_nothing_twice() {
    let table = (0..ITEMS).fold(String::new(), |mut table, n| {
        let _ = writeln!(table, "ok-{n:02} q{} P1 completed", n % PROJECTS);
        table
    });
    let world = Arc::new(World::new(rows(&table)));
    let watcher = Watcher::start(&world);
    let mut sprints = [world.start(), world.start()];
    let changes = AtomicUsize::new(0);
    let (added, cancelled) = thread::scope(|scope| {
        let adder = scope.spawn(|| add(&world, &changes));
        let canceller = scope.spawn(|| cancel(&world, &changes));
        (adder.join().unwrap(), canceller.join().unwrap())
    });
    // Killed, and taken up again.
    sprints[0] = {
        sprints[0].0.kill().unwrap();
        sprints[0].0.wait().unwrap();
        world.start()
    };
    let codes = sprints.each_mut().map(|sprint| super::finish(&world, &mut sprint.0));
    // What was added when both were about to end is for the next.
    let last = super::finish(&world, &mut world.start().0);
    let seen = watcher.stop();
    let said = world.said();
    super::tell(&format!("two sprints: {} cancelled, {seen:?}", cancelled.len()));
    assert_eq!((codes, last), ([Some(0), Some(0)], Some(0)), "{said}");
    assert_eq!(seen.faults, [""; 0], "{said}");

    let statuses = world.fields("status");
    for (id, status) in &statuses {
        let wanted = if cancelled.contains(id) { "cancelled" } else { "completed" };
        assert_eq!(status, wanted, "{id}\n{said}");
    }
    assert_eq!(statuses.len(), ITEMS + ADDED);
    assert!(added.iter().all(|id| statuses.contains_key(id)), "an item that was added is lost: {statuses:?}");
    assert!(!cancelled.is_empty(), "the person was too slow");
    each_once(&world, &statuses);
    every_change_arrived(&world, changes.into_inner());
    assert_eq!(world.processes(), []);
}

fn add(world: &World, changes: &AtomicUsize) -> Vec<String> {
    let one = |n: usize| {
        let (id, project) = (format!("ok-late-{n}"), format!("q{}", n % PROJECTS));
        let output = world.sprint(&["add", &project, &id, "--id", &id, "--estimate", "S"]).output().unwrap();
        assert!(output.status.success(), "{}", printed(&output));
        changes.fetch_add(1, Ordering::SeqCst);
        id
    };
    (0..ADDED).map(one).collect()
}

/// What has begun by then can't be cancelled any more, and that is told.
fn cancel(world: &World, changes: &AtomicUsize) -> Vec<String> {
    let ids = (0..ITEMS).step_by(CANCELLED).map(|n| format!("ok-{n:02}"));
    ids.filter(|id| {
        let output = world.sprint(&["cancel", id]).output().unwrap();
        let done = output.status.success();
        assert!(
            done || printed(&output).contains("only what has not begun can be cancelled"),
            "{}",
            printed(&output)
        );
        changes.fetch_add(usize::from(done), Ordering::SeqCst);
        done
    })
    .collect()
}

/// Claimed by one sprint, run once, landed once.
fn each_once(world: &World, statuses: &BTreeMap<String, String>) {
    let log = world.log();
    let runs =
        |id: &str| log.iter().filter(|line| line["type"] == "item.run" && line["data"]["item"] == id).count();
    let mut sprints: Vec<&str> = log.iter().filter_map(|line| line["run_id"].as_str()).collect();
    sprints.sort_unstable();
    sprints.dedup();
    assert!(sprints.len() >= 2, "{sprints:?}");
    let busy =
        |sprint: &&str| log.iter().any(|line| line["run_id"] == **sprint && line["type"] == "item.run");
    assert!(sprints.iter().filter(|sprint| busy(sprint)).count() >= 2, "one of them did nothing");
    let merges: Vec<String> = (0..PROJECTS)
        .map(|n| {
            world.git(&format!("q{n}"), &["log", "--first-parent", "--format=%(trailers:key=Archeflow-Run)"])
        })
        .collect();
    for (id, status) in statuses {
        let wanted = usize::from(status == "completed");
        assert_eq!(runs(id), wanted, "{id} is {status}");
        let landed: usize = merges.iter().map(|log| log.matches(&format!(".{id}.")).count()).sum();
        assert_eq!(landed, wanted, "{id} is {status}");
    }
}

/// The file counts its changes: one for each the person made, and two for each item that ran.
fn every_change_arrived(world: &World, by_person: usize) {
    let log = world.log();
    let claims =
        log.iter().filter(|line| line["type"] == "item.claimed" && line["data"]["fence"] != Value::Null);
    let settled = log.iter().filter(|line| line["type"] == "item.settled");
    let counted = world.queue().unwrap()["version"].as_u64().unwrap();
    assert_eq!(counted, 1 + (by_person + claims.count() + settled.count()) as u64);
}
