//! Workers: an order to its end, machines that die, pause and come back, and what keeps a worker from beginning.

use std::collections::BTreeMap;
use std::fs;

use archeflow_core::model::RunStatus;
use archeflow_fleet::bus::{Bus, Expect, Put};
use archeflow_fleet::join::JoinFile;
use archeflow_fleet::message::{FleetOrder, Work};
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_fleet::{files, names};
use serde_json::json;

use crate::user::{PROGRAM, parse_lines, wait_until};
use crate::world::{CAST, World, refused};

/// Each role was sent as often as this.
fn sent(roles: &[(&str, usize)]) -> BTreeMap<String, usize> {
    roles.iter().map(|(role, times)| ((*role).to_owned(), *times)).collect()
}

const EACH_ONCE: [(&str, usize); 3] = [("creator", 1), ("guardian", 1), ("maker", 1)];

#[test]
fn fl_112_an_order_is_performed_reported_and_landed_on_the_remote() {
    let world = World::new();
    let worker = world.worker("w1");
    world.order_run(3, "tax");
    let end = world.end(3);
    assert_eq!(end.status, Some(RunStatus::AwaitingMerge), "{end:?}\n{}", world.said());
    assert_eq!((world.landed("tax"), world.bill("tax")), (0, sent(&EACH_ONCE)));
    world.order_landing(4, "tax");
    let end = world.end(4);
    assert_eq!(end.status, Some(RunStatus::Merged), "{end:?}\n{}", world.said());
    let tip = world.git(&["rev-parse", "main"]);
    assert_eq!((world.landed("tax"), end.landed_as), (1, Some(tip)));
    // The server has every line, and the remote the work.
    let here = parse_lines(&world.journal_of("w1", "tax"));
    assert!(!here.is_empty());
    assert_eq!(world.journal("tax"), here);
    let kept = world.git(&["for-each-ref", &format!("refs/archeflow/keep/{}", World::run_id("tax"))]);
    assert!(!kept.is_empty());
    // The same order again changes nothing.
    world.give(&world.order(5, Work::Land { item: World::item("tax"), run: World::run_id("tax") }));
    assert_eq!(world.end(5).status, Some(RunStatus::Merged));
    assert_eq!((world.landed("tax"), world.bill("tax")), (1, sent(&EACH_ONCE)));
    let words = worker.said();
    for word in ["w1 works for", "begins (shop)", "is to land (shop)", "merged"] {
        assert!(words.contains(word), "{word}\n{words}");
    }
    worker.signal("TERM");
    assert_eq!(worker.ended(), Some(0));
}

#[test]
fn fl_113_a_worker_killed_in_the_middle_is_replaced_and_finished_steps_are_not_repeated() {
    let world = World::new();
    world.hold("tax", "guardian");
    let first = world.worker("w1");
    world.order_run(3, "tax");
    world.wait_for_agent("tax", "guardian");
    first.kill();
    let _second = world.worker("w2");
    wait_until(|| world.bill("tax").get("guardian") == Some(&2), || world.said());
    world.let_go("tax", "guardian");
    let end = world.end(3);
    assert_eq!(end.status, Some(RunStatus::AwaitingMerge), "{end:?}\n{}", world.said());
    assert_eq!(world.bill("tax"), sent(&[("creator", 1), ("guardian", 2), ("maker", 1)]));
    world.order_landing(4, "tax");
    assert_eq!(world.end(4).status, Some(RunStatus::Merged), "{}", world.said());
    assert_eq!(world.landed("tax"), 1);
    assert_eq!(world.journal("tax"), parse_lines(&world.journal_of("w2", "tax")));
    // Of what was finished nothing was repeated, and what was running is counted.
    let status = world.status();
    let of =
        |name: &str| status["workers"].as_array().unwrap().iter().find(|one| one["name"] == name).cloned();
    assert_eq!(
        of("w2").unwrap()["done"],
        json!({ "orders": 2, "taken_over": 1, "steps_repeated": 1 }),
        "{status}"
    );
}

#[test]
fn fl_114_a_worker_that_was_paused_begins_nothing_and_lands_nothing() {
    let world = World::new();
    world.hold("tax", "maker");
    let first = world.worker("w1");
    world.order_run(3, "tax");
    world.wait_for_agent("tax", "maker");
    first.signal("STOP");
    let second = world.worker("w2");
    wait_until(|| world.bill("tax").get("maker") == Some(&2), || world.said());
    world.let_go("tax", "maker");
    let end = world.end(3);
    assert_eq!(end.status, Some(RunStatus::AwaitingMerge), "{end:?}\n{}", world.said());
    world.order_landing(4, "tax");
    assert_eq!(world.end(4).status, Some(RunStatus::Merged), "{}", world.said());
    let journal = world.journal("tax");
    first.signal("CONT");
    first.wait_for_words("was continued by another worker");
    assert_eq!(world.bill("tax"), sent(&[("creator", 1), ("guardian", 1), ("maker", 2)]));
    assert_eq!((world.landed("tax"), world.journal("tax")), (1, journal.clone()));
    assert!(world.no_report_waits());
    // What it wrote for itself is set aside, and its journal is the beginning of the one that counts.
    let here = parse_lines(&world.journal_of("w1", "tax"));
    assert!(journal.starts_with(&here) && here.len() < journal.len());
    drop(second);
}

/// A conductor gives an order again when nobody seems to have it; the server does when its lease has ended.
#[test]
fn fl_33_an_order_that_comes_again_to_the_worker_that_performs_it_is_not_begun_a_second_time() {
    let world = World::new();
    world.hold("tax", "maker");
    let worker = world.worker_with("w1", &["--slots", "2"]);
    world.order_run(3, "tax");
    world.wait_for_agent("tax", "maker");
    let work = Work::Run { item: World::item("tax"), attempt: 1, budget_usd: None };
    world.give(&FleetOrder { again: 1, ..world.order(3, work) });
    worker.wait_for_words("was handed out again, and continues here");
    world.let_go("tax", "maker");
    let end = world.end(3);
    assert_eq!(end.status, Some(RunStatus::AwaitingMerge), "{end:?}\n{}", world.said());
    assert_eq!(world.bill("tax"), sent(&EACH_ONCE));
    let sessions = world.journal("tax").iter().filter(|line| line["type"] == "session.start").count();
    assert_eq!(sessions, 1);
    let held = world.base().join("home-w1/state/held");
    wait_until(|| fs::read_dir(&held).unwrap().next().is_none(), || "the order is still held".to_owned());
    assert!(world.no_report_waits());
}

#[test]
fn fl_115_a_worker_that_is_started_again_within_its_lease_continues_its_order() {
    let world = World::new();
    world.hold("tax", "guardian");
    let first = world.worker("w1");
    world.order_run(3, "tax");
    world.wait_for_agent("tax", "guardian");
    first.kill();
    let again = world.worker("w1");
    wait_until(|| world.bill("tax").get("guardian") == Some(&2), || world.said());
    world.let_go("tax", "guardian");
    let end = world.end(3);
    assert_eq!(end.status, Some(RunStatus::AwaitingMerge), "{end:?}\n{}", world.said());
    assert_eq!(world.bill("tax"), sent(&[("creator", 1), ("guardian", 2), ("maker", 1)]));
    let held = world.base().join("home-w1/state/held");
    wait_until(|| fs::read_dir(&held).unwrap().next().is_none(), || "the order is still held".to_owned());
    assert!(world.no_report_waits());
    drop(again);
}

#[test]
fn fl_116_a_worker_that_drains_ends_what_it_has_and_takes_nothing_new() {
    let world = World::new();
    world.hold("tax", "maker");
    let worker = world.worker("w1");
    world.order_run(3, "tax");
    world.wait_for_agent("tax", "maker");
    let mut drain = world.command(crate::user::PROGRAM);
    drain.args(["worker", "drain", "w1", "--join", world.join_file("boss").to_str().unwrap()]);
    refused(&drain.output().unwrap(), 0, &["w1 takes nothing new; 1 under way"]);
    world.order_run(5, "ship");
    world.let_go("tax", "maker");
    assert_eq!(world.end(3).status, Some(RunStatus::AwaitingMerge), "{}", world.said());
    assert_eq!(worker.ended(), Some(0), "{}", world.said());
    assert_eq!(world.bill("ship"), BTreeMap::new());
    // Another worker takes what it left.
    let _other = world.worker("w2");
    assert_eq!(world.end(5).status, Some(RunStatus::AwaitingMerge), "{}", world.said());
}

#[test]
fn fl_117_an_order_that_is_cancelled_is_reported_as_stopped_and_its_work_is_kept() {
    let world = World::new();
    world.hold("tax", "guardian");
    let _worker = world.worker("w1");
    world.order_run(3, "tax");
    world.wait_for_agent("tax", "guardian");
    world.cancel("w1", 99);
    world.cancel("w1", 3);
    let end = world.end(3);
    assert!(end.status.is_none() && end.stopped, "{end:?}\n{}", world.said());
    assert_eq!(world.journal("tax"), parse_lines(&world.journal_of("w1", "tax")));
    world.let_go("tax", "guardian");
    world.give(&world.order(6, Work::Resume { item: World::item("tax"), run: World::run_id("tax") }));
    assert_eq!(world.end(6).status, Some(RunStatus::AwaitingMerge), "{}", world.said());
    assert_eq!(world.bill("tax"), sent(&[("creator", 1), ("guardian", 2), ("maker", 1)]));
}

#[test]
fn fl_117_a_worker_that_is_stopped_hands_its_order_to_another() {
    let world = World::new();
    world.hold("tax", "maker");
    let first = world.worker("w1");
    world.order_run(3, "tax");
    world.wait_for_agent("tax", "maker");
    first.signal("INT");
    first.wait_for_words("is handed back: this worker stops");
    assert_eq!(first.ended(), Some(0), "{}", world.said());
    let _second = world.worker("w2");
    wait_until(|| world.bill("tax").get("maker") == Some(&2), || world.said());
    world.let_go("tax", "maker");
    assert_eq!(world.end(3).status, Some(RunStatus::AwaitingMerge), "{}", world.said());
}

#[test]
fn fl_118_what_nobody_approved_is_not_begun_and_names_the_remedy() {
    let world = World::with_files(&[(".archeflow/config.yaml", "setup_command: touch ran\n")]);
    let _worker = world.worker("w1");
    world.order_run(3, "tax");
    let end = world.end(3);
    assert!(end.status.is_none() && !end.stopped, "{end:?}");
    for word in ["archeflow trust --fleet", "shop", &world.digest()] {
        assert!(end.detail.contains(word), "{word}: {}", end.detail);
    }
    assert_eq!((world.bill("tax"), world.journal("tax").len()), (BTreeMap::new(), 0));
    world.approve();
    world.order_run(4, "tax");
    let end = world.end(4);
    assert_eq!(end.status, Some(RunStatus::AwaitingMerge), "{end:?}\n{}", world.said());
    world.order_landing(5, "tax");
    assert_eq!(world.end(5).status, Some(RunStatus::Merged), "{}", world.said());
}

#[test]
fn fl_119_what_keeps_a_worker_from_working_is_said_in_words() {
    let world = World::new();
    let as_worker = |name: &str| world.worker_command(name, &[]).output().unwrap();
    refused(&as_worker("jo"), 2, &["is that of a person", "archeflow fleet add worker"]);
    refused(&as_worker("nobody"), 2, &["nobody.join", "can't be read"]);
    // A repository that is gone.
    let mut order = world.order(3, Work::Run { item: World::item("tax"), attempt: 1, budget_usd: None });
    order.repository.url = world.base().join("gone.git").display().to_string();
    let worker = world.worker_with("w1", &["--label", "gpu", "--slots", "2"]);
    world.give(&order);
    let end = world.end(3);
    assert!(end.status.is_none() && end.detail.contains("gone.git"), "{end:?}");
    // A remote that accepts branches only.
    let hook = world.remote().join("hooks/update");
    let script = "#!/bin/sh\ncase \"$1\" in refs/archeflow/*) echo 'only branches' >&2; exit 1;; esac\n";
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, script).unwrap();
    archeflow_host::platform::files::set_mode(&hook, 0o755).unwrap();
    world.order_run(4, "tax");
    let end = world.end(4);
    let words = ["only branches", "refs/archeflow/keep/"];
    assert!(end.status.is_none() && words.iter().all(|word| end.detail.contains(word)), "{end:?}");
    fs::remove_file(&hook).unwrap();
    // A class that appears later, and one that this worker can't serve.
    let mut order = world.order(7, Work::Run { item: World::item("odd"), attempt: 1, budget_usd: None });
    order.needs = ["label:gold".to_owned()].into();
    world.give(&order);
    let mut order = world.order(8, Work::Run { item: World::item("ship"), attempt: 1, budget_usd: None });
    order.needs = ["label:gpu".to_owned(), format!("os:{}", std::env::consts::OS)].into();
    world.give(&order);
    assert_eq!(world.end(8).status, Some(RunStatus::AwaitingMerge), "{}", world.said());
    assert_eq!(world.bill("odd"), BTreeMap::new());
    // One that needs a newer version.
    let mut order = world.order(9, Work::Run { item: World::item("new"), attempt: 1, budget_usd: None });
    order.min_version = "99.0.0".to_owned();
    world.give(&order);
    worker.wait_for_words("needs a newer version");
    assert_eq!(world.bill("new"), BTreeMap::new());
}

#[test]
fn fl_111_files_come_back_as_they_were_put_and_putting_them_twice_is_harmless() {
    let world = World::new();
    let join = JoinFile::read(&world.join_file("w1")).unwrap();
    let bus = NatsBus::connect(&join, NatsOptions::default()).unwrap();
    let large: Vec<u8> = (0..1_300_000_u32).map(|n| (n % 251) as u8).collect();
    let all = [(3, "large.md", &large[..]), (4, "empty.md", &b""[..]), (7, "plan é.md", &b"plan"[..])];
    for _ in 0..2 {
        for (line, name, bytes) in all {
            files::put(&bus, "a.run.1", line, name, bytes).unwrap();
        }
    }
    let put_before = bus.stream_info(names::FILES).unwrap()["state"]["messages"].clone();
    assert_eq!(put_before, 3 + 1 + 3, "parts and names, each once");
    let found = files::list(&bus, "a.run.1").unwrap();
    let named: Vec<(u64, &str)> = found.iter().map(|file| (file.line, file.name.as_str())).collect();
    assert_eq!(named, [(3, "large.md"), (4, "empty.md"), (7, "plan é.md")]);
    for (file, (_, _, bytes)) in found.iter().zip(all) {
        assert_eq!(files::get(&bus, file).unwrap().as_deref(), Some(bytes), "{file:?}");
        assert!(file.is(&archeflow_host::store::files::digest(bytes)) && !file.is("0000") && !file.is(""));
    }
    assert_eq!(files::list(&bus, "a.run.10").unwrap(), []);
    // What is not what its name says is nothing.
    let part = names::file_part(&blake3_of(&bus, 7), 0);
    bus.put(Put { subject: &part, expect: Expect::Anything, id: None, headers: &[], bytes: b"nalp" })
        .unwrap();
    assert_eq!(files::get(&bus, &found[2]).unwrap(), None);
}

/// The name of the content that a line of the run names.
fn blake3_of(bus: &NatsBus, line: u64) -> String {
    let subject = names::named_files("a.run.1").replace('>', &format!("{line}.*"));
    let kept = bus.next_from(names::FILES, &subject, 1).unwrap().unwrap();
    let text: serde_json::Value = serde_json::from_slice(&kept.bytes).unwrap();
    text["hash"].as_str().unwrap().to_owned()
}

/// A worker passes on what a person approved; what its runs start must not.
#[test]
fn fl_123_an_agent_of_a_worker_s_run_passes_on_no_approval() {
    let world = World::new();
    let tries = format!(
        "if [ \"$ARCHEFLOW_ROLE\" = creator ]; then\n\
         {PROGRAM} run x --approved shop=abc --agent cmd:true --json > \"{{base}}/inside\" 2>&1\n\
         echo \"exit $?\" >> \"{{base}}/inside\"\nfi\n"
    );
    world.write("cast.sh", &(tries + CAST));
    let _worker = world.worker("w1");
    world.order_run(3, "tax");
    let end = world.end(3);
    assert_eq!(end.status, Some(RunStatus::AwaitingMerge), "{end:?}\n{}", world.said());
    let inside = fs::read_to_string(world.base().join("inside")).unwrap();
    assert!(inside.contains("exit 21") && inside.contains("from_inside"), "{inside}");
}
