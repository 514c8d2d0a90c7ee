//! What a fleet meets beside deaths: networks that are cut, remotes that are away, a server without room, a task that ends its
//! workers, keys that nobody knows, messages of newer versions, and clocks that are wrong.

use std::fs;
use std::process::Command;

use archeflow_core::model::RunStatus;
use archeflow_fleet::bus::{Bus, BusError, Expect, Put};
use archeflow_fleet::join::FleetRole;
use archeflow_fleet::message::Work;
use archeflow_fleet::names;
use archeflow_fleet::server::FleetFolder;
use serde_json::{Value, json};

use crate::proxy::Proxy;
use crate::sprint::{conductor, each_landed_once, everything, fields, queue, words};
use crate::user::{LONG, PROGRAM, parse_lines, printed, wait_until};
use crate::world::{CAST, Started, World, refused};

const CLOCK: &str = "ARCHEFLOW_FAILPOINT_CLOCK";

/// From now on, this member reaches the server through the proxy only.
fn behind_proxy(world: &World, name: &str) -> Proxy {
    let server = world.fleet().settings().unwrap().listen;
    let proxy = Proxy::to(&server);
    let path = world.join_file(name);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(&server), "{server} is not in the join file");
    fs::write(&path, text.replace(&server, &proxy.address.to_string())).unwrap();
    proxy
}

/// Agents of an item that have ended, as a worker knows it, whether or not it could tell the server.
fn agents_ended(world: &World, worker: &str, item: &str) -> usize {
    let clones = fs::read_dir(world.base().join(format!("home-{worker}/state/repos")));
    let events = clones.into_iter().flatten().flatten().map(|clone| clone.path().join(".archeflow/events"));
    let files = events.filter_map(|events| fs::read_dir(events).ok()).flatten().flatten();
    let of_item = files.filter(|file| file.file_name().to_string_lossy().contains(&format!(".{item}.1.")));
    let texts = of_item.filter(|file| file.path().extension().is_some_and(|end| end == "jsonl"));
    let lines = texts.flat_map(|file| parse_lines(&fs::read(file.path()).unwrap_or_default()));
    lines.filter(|line| line["type"] == "agent.complete" || line["type"] == "agent.failed").count()
}

/// The program as the user starts it.
fn program(world: &World, arguments: &[&str]) -> Command {
    let mut command = world.command(PROGRAM);
    command.args(arguments);
    command
}

#[test]
fn fl_130_a_worker_cut_off_from_the_server_begins_nothing_and_its_run_is_continued_elsewhere() {
    let (world, items) = (World::new(), ["a", "b"]);
    queue(&world, &items);
    world.hold("a", "maker");
    let proxy = behind_proxy(&world, "w1");
    let first = world.worker_with("w1", &["--slots", "1"]);
    let boss = conductor(&world);
    world.wait_for_agent("a", "maker");
    proxy.cut();
    let _second = world.worker("w2");
    wait_until(|| world.bill("a").get("maker") == Some(&2), || everything(&world));
    world.let_go("a", "maker");
    assert_eq!(boss.ended(), Some(0), "{}", everything(&world));
    // Its own Maker has ended, too (what continues a run ends all that is left of it on the machine), and nothing may follow.
    wait_until(|| agents_ended(&world, "w1", "a") == 2, || everything(&world));
    first.wait_for_words(".a.1 waits: no answer from the server");
    each_landed_once(&world, &items, &[("a", "maker")]);
    proxy.mend();
    first.wait_for_words(".a.1 was continued by another worker");
    each_landed_once(&world, &items, &[("a", "maker")]);
}

#[test]
fn fl_131_a_run_whose_remote_is_away_is_given_back_and_landed_by_the_next_sprint() {
    let world = World::new();
    queue(&world, &["a"]);
    world.hold("a", "maker");
    let worker = world.worker("w1");
    let boss = conductor(&world);
    world.wait_for_agent("a", "maker");
    let away = world.base().join("away.git");
    fs::rename(world.remote(), &away).unwrap();
    world.let_go("a", "maker");
    assert_ne!(boss.ended(), Some(0), "{}", everything(&world));
    assert_eq!(fields(&world, "status")["a"], "pending", "{}", everything(&world));
    let note = fields(&world, "notes")["a"].clone();
    assert!(note.contains("shop.git"), "{}", everything(&world));
    worker.wait_for_words(".a.1 has no result: ");
    assert_eq!(world.bill("a").get("guardian"), None);
    fs::rename(&away, world.remote()).unwrap();
    let boss = conductor(&world);
    assert_eq!(boss.ended(), Some(0), "{}", everything(&world));
    each_landed_once(&world, &["a"], &[]);
}

#[test]
fn fl_132_a_worker_cut_off_from_server_and_remote_continues_when_both_are_back() {
    let world = World::new();
    queue(&world, &["a"]);
    world.hold("a", "maker");
    let proxy = behind_proxy(&world, "w1");
    let _worker = world.worker_with("w1", &["--slots", "2"]);
    let boss = conductor(&world);
    world.wait_for_agent("a", "maker");
    let away = world.base().join("away.git");
    proxy.cut();
    fs::rename(world.remote(), &away).unwrap();
    world.let_go("a", "maker");
    wait_until(|| agents_ended(&world, "w1", "a") == 2, || everything(&world));
    // Nobody was heard of for three leases.
    boss.wait_for_words("no worker is there");
    assert_eq!(world.bill("a").get("guardian"), None);
    fs::rename(&away, world.remote()).unwrap();
    proxy.mend();
    assert_eq!(boss.ended(), Some(0), "{}", everything(&world));
    each_landed_once(&world, &["a"], &[]);
}

/// Until not even the shortest message fits.
fn fill(world: &World, subject: impl Fn(usize) -> String) {
    let bus = world.bus_of("w2");
    let (mut size, mut n) = (256 * 1024, 0);
    while size > 0 {
        n += 1;
        let (subject, bytes) = (subject(n), vec![b'x'; size]);
        let put = Put { subject: &subject, expect: Expect::Anything, id: None, headers: &[], bytes: &bytes };
        match bus.put(put) {
            Ok(_) => {}
            Err(BusError::Full(_)) => size /= 4,
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn fl_133_a_full_server_is_named_with_its_remedy_and_the_sprint_ends_well_when_there_is_room() {
    let (mut world, items) = (World::on_disk(20_000_000, &[]), ["a", "b"]);
    queue(&world, &items);
    world.hold("a", "creator");
    world.hold("a", "maker");
    let worker = world.worker("w1");
    let boss = conductor(&world);
    world.wait_for_agent("a", "creator");
    fill(&world, |n| names::file_part(&format!("{n:064x}"), 0));
    world.let_go("a", "creator");
    worker.wait_for_words(".a.1 waits: the server is full: AF_FILES");
    for word in ["archeflow fleet gc", "a larger disk"] {
        assert!(worker.said().contains(word), "{word}\n{}", world.said());
    }
    assert_eq!(world.bill("a").get("maker"), None, "the plan is not kept");
    let join = world.join_file("boss").display().to_string();
    let mut gc = program(&world, &["fleet", "gc", "--fleet", &join, "--older-than", "1"]);
    refused(&gc.env(CLOCK, "172800").output().unwrap(), 0, &["Removed"]);
    world.wait_for_agent("a", "maker");
    fill(&world, |_| names::run_journal("another.run.1"));
    world.let_go("a", "maker");
    worker.wait_for_words(".a.1 waits: the server is full: AF_JOURNAL");
    assert_eq!(world.bill("a").get("guardian"), None, "the end of the Maker is not kept");
    // As docs/fleet-operations.md says.
    let path = world.fleet().path().join("fleet.json");
    let mut settings: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    settings["disk"] = json!(40_000_000);
    fs::write(&path, settings.to_string()).unwrap();
    let folder = world.fleet().path().display().to_string();
    refused(&program(&world, &["fleet", "init", "--folder", &folder]).output().unwrap(), 0, &[]);
    world.kill_server();
    world.start_server();
    assert_eq!(boss.ended(), Some(0), "{}", everything(&world));
    each_landed_once(&world, &items, &[]);
}

/// The Maker of the item `a` ends its worker, each time it is sent.
const POISON: &str = r#"
item=$(echo "$ARCHEFLOW_RUN_ID" | cut -d. -f2)
if [ "$item $ARCHEFLOW_ROLE" = "a maker" ]; then
    echo "a maker" >> "{base}/bill"
    pid=$PPID
    while ! tr '\0' ' ' < "/proc/$pid/cmdline" | grep -q ' worker --join '; do
        pid=$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$pid/status")
    done
    kill -9 "$pid"
    sleep 600
fi
"#;

#[test]
fn fl_134_a_task_that_ends_its_worker_each_time_is_given_up_and_the_others_land() {
    let world = World::new();
    queue(&world, &["a", "b", "c"]);
    world.write("cast.sh", &format!("{POISON}{CAST}"));
    // As a service does, it comes back each time.
    let (mut worker, mut deaths) = (world.worker("w1"), 0);
    let mut boss = conductor(&world);
    let mut code = None;
    wait_until_mut(
        || {
            if worker.child.try_wait().unwrap().is_some() {
                deaths += 1;
                worker = world.worker("w1");
            }
            code = boss.child.try_wait().unwrap();
            code.is_some()
        },
        || everything(&world),
    );
    assert!(code.is_some_and(|code| !code.success()), "{}", everything(&world));
    // The first session ended the Creator's step; five more ended none.
    assert_eq!((deaths, world.bill("a").get("maker")), (6, Some(&6)), "{}", everything(&world));
    assert_eq!((world.bill("a").get("creator"), world.landed("a")), (Some(&1), 0));
    assert_eq!(fields(&world, "status")["a"], "failed", "{}", everything(&world));
    let note = fields(&world, "notes")["a"].clone();
    assert!(note.contains("5 sessions in a row") && note.contains("archeflow show"), "{note}");
    each_landed_once(&world, &["b", "c"], &[]);
}

#[track_caller]
fn wait_until_mut(mut is: impl FnMut() -> bool, else_told: impl Fn() -> String) {
    let is = std::cell::RefCell::new(&mut is);
    wait_until(|| (is.borrow_mut())(), else_told);
}

#[test]
fn fl_135_a_key_that_the_server_does_not_know_is_refused_in_words() {
    let world = World::new();
    queue(&world, &["a"]);
    // Another fleet at the same address.
    let settings = world.fleet().settings().unwrap();
    let others = archeflow_fleet::server::FleetSettings { members: Vec::new(), ..settings };
    let (other, _) = FleetFolder::init(&world.base().join("other"), &others).unwrap();
    let join = |role, name: &str| {
        let path = other.add(role, name, None).unwrap();
        fs::copy(&path, world.join_file(name)).unwrap();
        path.display().to_string()
    };
    join(FleetRole::Worker, "w1");
    join(FleetRole::Conductor, "boss");
    let jo = join(FleetRole::Person, "jo");
    let said = |name: &str| format!("does not know the key of {name}");
    for more in [&[][..], &["--wait"]] {
        let worker = world.worker_command("w1", more).output().unwrap();
        refused(&worker, worker.status.code().unwrap(), &[&said("w1"), "archeflow fleet add worker w1"]);
        assert!(!worker.status.success());
    }
    let ours = words(&world);
    let ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    for (arguments, name, role) in [
        (ours, "boss", "conductor"),
        (vec!["fleet", "status", "--fleet", &jo], "jo", "person"),
        (vec!["status", "--fleet", &jo], "jo", "person"),
        (vec!["list", "--fleet", &jo], "jo", "person"),
    ] {
        let output = program(&world, &arguments).output().unwrap();
        assert!(!output.status.success(), "{}", printed(&output));
        let remedy = format!("archeflow fleet add {role} {name}");
        refused(&output, output.status.code().unwrap(), &[&said(name), &remedy]);
    }
    assert_eq!(fields(&world, "status")["a"], "pending");
}

#[test]
fn fl_136_an_order_of_a_newer_format_is_left_to_a_newer_worker_and_stops_nobody() {
    let world = World::new();
    let worker = world.worker("w1");
    let order = world.order(3, Work::Run { item: World::item("new"), attempt: 1, budget_usd: None });
    let mut newer = serde_json::to_value(&order).unwrap();
    newer["v"] = json!(3);
    newer["work"] = json!({ "order": "something_new" });
    let (subject, bytes) = (names::orders("any"), newer.to_string().into_bytes());
    let put = Put { subject: &subject, expect: Expect::Anything, id: None, headers: &[], bytes: &bytes };
    world.bus.put(put).unwrap();
    worker.wait_for_words("an order needs a newer version of archeflow, and is handed back");
    world.bus.say(&names::control("w1"), br#"{"v":2,"command":"dance"}"#).unwrap();
    worker.wait_for_words("a message to this worker is ignored: it was written by a newer version (format 2");
    world.order_run(4, "tax");
    assert_eq!(world.end(4).status, Some(RunStatus::AwaitingMerge), "{}", world.said());
    // Printed once the order is acknowledged: else that one would come back, too.
    worker.wait_for_words(".tax.1 awaiting_merge");
    worker.kill();
    // It is still there for one that can read it.
    let delivery = world.bus_of("w2").take(&subject, LONG).unwrap().unwrap();
    assert_eq!(delivery.bytes, bytes);
}

#[test]
fn fl_137_reports_and_heartbeats_of_a_newer_format_are_named_kept_and_stop_no_sprint() {
    let world = World::new();
    queue(&world, &["a"]);
    world.hold("a", "guardian");
    let _worker = world.worker("w1");
    let boss = conductor(&world);
    world.wait_for_agent("a", "guardian");
    let newer = world.bus_of("w2");
    newer.say(&names::heartbeat("w2"), br#"{"v":2,"worker":"w2"}"#).unwrap();
    let journal = world.bus.subjects(names::JOURNALS, "af1.j.sprint.>").unwrap().into_keys().next().unwrap();
    let subject = journal.replace("af1.j.sprint.", "af1.r.");
    let report = br#"{"v":2,"start_seq":1,"worker":"w2","event":{"type":"something.new"}}"#;
    let put = Put { subject: &subject, expect: Expect::Anything, id: None, headers: &[], bytes: report };
    newer.put(put).unwrap();
    boss.wait_for_words("a report was written by a newer version: update archeflow here");
    world.let_go("a", "guardian");
    assert_eq!(boss.ended(), Some(0), "{}", everything(&world));
    each_landed_once(&world, &["a"], &[]);
    let kept = world.bus.next_from(names::REPORTS, &subject, 1).unwrap().unwrap();
    assert_eq!(kept.bytes, report);
}

#[test]
fn fl_138_workers_whose_clocks_are_wrong_are_shown_and_land_each_item_once() {
    let (world, items) = (World::new(), ["a", "b"]);
    queue(&world, &items);
    world.hold("a", "guardian");
    let start = |name: &str, seconds: &str| -> Started {
        let mut command = world.worker_command(name, &[]);
        command.env(CLOCK, seconds);
        world.start_worker(name, command)
    };
    let join = world.join_file("jo").display().to_string();
    let status = || printed(&program(&world, &["fleet", "status", "--fleet", &join]).output().unwrap());
    let is_shown = |name: &str, words: &str| {
        let text = status();
        text.lines().any(|line| line.starts_with(&format!("{name} ")) && line.contains(words))
    };
    let first = start("w1", "3600");
    let boss = conductor(&world);
    world.wait_for_agent("a", "guardian");
    wait_until(|| is_shown("w1", "min ahead"), status);
    first.kill();
    // The server's clock ends the lease.
    let _second = start("w2", "-3600");
    wait_until(|| world.bill("a").get("guardian") == Some(&2), || everything(&world));
    wait_until(|| is_shown("w2", "min behind"), status);
    world.let_go("a", "guardian");
    assert_eq!(boss.ended(), Some(0), "{}", everything(&world));
    each_landed_once(&world, &items, &[("a", "guardian")]);
}
