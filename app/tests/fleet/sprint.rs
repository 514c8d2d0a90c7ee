//! Whole sprints over a fleet: a conductor and workers that are this program, killed and robbed of their server on the way.
//! What must hold is read from git, from the queue and from the bill of the agents.

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;

use serde_json::{Value, json};

use crate::user::{PROGRAM, printed, wait_until};
use crate::world::{Started, World};

/// Roles that a task in the fast workflow sends, each once.
const ROLES: [&str; 3] = ["creator", "guardian", "maker"];

/// A queue of these tasks beside a clone of the repository. Each has files of its own, so that several run at a time.
pub(crate) fn queue(world: &World, items: &[&str]) {
    let hub = world.base().join("hub");
    fs::create_dir_all(hub.join("docs/orchestra")).unwrap();
    world.git_in(&hub, ["clone", "-q", world.remote().to_str().unwrap(), "shop"]);
    let item = |id: &&str| {
        json!({ "id": id, "project": "shop", "task": format!("Work on {id}"), "priority": "P1", "estimate": "S",
                "status": "pending", "workflow": "fast", "files": [format!("src/{id}.txt"), format!("tests/{id}_test.sh")] })
    };
    let items: Vec<Value> = items.iter().map(item).collect();
    fs::write(hub.join("docs/orchestra/queue.json"), json!({ "version": 1, "items": items }).to_string())
        .unwrap();
}

pub(crate) fn words(world: &World) -> Vec<String> {
    let agent = format!("cmd:sh {}", world.base().join("cast.sh").display());
    let join = world.join_file("boss").display().to_string();
    let words = [
        "sprint",
        "run",
        "--autonomous",
        "--root",
        "hub",
        "--fleet",
        &join,
        "--lease-seconds",
        "6",
        "--agent",
        &agent,
    ];
    words.into_iter().chain(["--test-command", "sh check.sh"]).map(str::to_owned).collect()
}

pub(crate) fn conductor(world: &World) -> Started {
    let said = world.base().join("said-boss");
    let log = fs::File::options().create(true).append(true).open(&said).unwrap();
    let mut command = world.command(PROGRAM);
    let child = command.args(words(world)).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    Started { child, said }
}

/// What the queue says of each item.
pub(crate) fn fields(world: &World, name: &str) -> BTreeMap<String, String> {
    let queue = fs::read(world.base().join("hub/docs/orchestra/queue.json")).unwrap();
    let queue: Value = serde_json::from_slice(&queue).unwrap();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let items = queue["items"].as_array().unwrap();
    items.iter().map(|item| (text(&item["id"]), text(&item[name]))).collect()
}

pub(crate) fn everything(world: &World) -> String {
    let boss = fs::read_to_string(world.base().join("said-boss")).unwrap_or_default();
    format!("boss:\n{boss}\n{}\n{:?}", world.said(), fields(world, "notes"))
}

/// All are completed, each landed once, and each role was sent once, but for these.
pub(crate) fn each_landed_once(world: &World, items: &[&str], again: &[(&str, &str)]) {
    let status = fields(world, "status");
    for item in items {
        assert_eq!(status[*item], "completed", "{item}\n{}", everything(world));
        assert_eq!(world.landed(item), 1, "{item}\n{}", everything(world));
        let bill = world.bill(item);
        for role in ROLES {
            let most = 1 + again.iter().filter(|row| **row == (*item, role)).count();
            let times = bill.get(role).copied().unwrap_or(0);
            assert!(
                (1..=most).contains(&times),
                "{role} of {item} was sent {times} times\n{}",
                everything(world)
            );
        }
    }
}

#[test]
fn fl_120_a_sprint_whose_worker_and_conductor_are_killed_lands_every_item_once() {
    let (world, items) = (World::new(), ["a", "b", "c"]);
    queue(&world, &items);
    world.hold("a", "guardian");
    let first = world.worker("w1");
    let boss = conductor(&world);
    world.wait_for_agent("a", "guardian");
    first.kill();
    boss.kill();
    let _second = world.worker("w2");
    let boss = conductor(&world);
    wait_until(|| world.bill("a").get("guardian") == Some(&2), || everything(&world));
    world.let_go("a", "guardian");
    assert_eq!(boss.ended(), Some(0), "{}", everything(&world));
    each_landed_once(&world, &items, &[("a", "guardian")]);
}

#[test]
fn fl_121_a_sprint_whose_server_loses_everything_lands_every_item_once() {
    let (mut world, items) = (World::new(), ["a", "b", "c"]);
    queue(&world, &items);
    world.hold("b", "maker");
    let _workers = ["w1", "w2"].map(|name| world.worker(name));
    let boss = conductor(&world);
    world.wait_for_agent("b", "maker");
    world.kill_server();
    world.wipe_server();
    world.start_server();
    world.let_go("b", "maker");
    assert_eq!(boss.ended(), Some(0), "{}", everything(&world));
    // What was being done when the data was lost may be ordered a second time; nothing may land a second time.
    let again: Vec<(&str, &str)> = items.iter().flat_map(|item| ROLES.map(|role| (*item, role))).collect();
    each_landed_once(&world, &items, &again);
}

#[test]
fn fl_122_what_a_person_approves_with_the_program_is_run_and_landed() {
    let config = (".archeflow/config.yaml", "test_command: sh check.sh\n");
    let world = World::with_files(&[config]);
    queue(&world, &["a"]);
    let _worker = world.worker("w1");
    let boss = conductor(&world);
    assert_ne!(boss.ended(), Some(0), "{}", everything(&world));
    let note = fields(&world, "notes")["a"].clone();
    assert!(note.contains("archeflow trust --fleet") && world.bill("a").is_empty(), "{}", everything(&world));
    let trust = |more: &[&str]| -> Output {
        let join = world.join_file("jo").display().to_string();
        let mut command = world.command(PROGRAM);
        command.args(["trust", "--fleet", &join, "--repo", "hub/shop"]).args(more).output().unwrap()
    };
    let shown = trust(&["--yes"]);
    assert!(shown.status.success(), "{}", printed(&shown));
    assert!(printed(&shown).contains("sh check.sh"), "{}", printed(&shown));
    let boss = conductor(&world);
    assert_eq!(boss.ended(), Some(0), "{}", everything(&world));
    each_landed_once(&world, &["a"], &[]);
    let revoked = trust(&["--revoke"]);
    assert!(revoked.status.success(), "{}", printed(&revoked));
}
