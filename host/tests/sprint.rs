//! The queue file: what people and other tools wrote stays, and nobody takes what another one has.

#![expect(clippy::unwrap_used, reason = "a test that can't set up its world should stop at once")]

use std::fs;
use std::path::Path;

use archeflow_core::sprint::queue::{ItemStatus, QueueItem};
use archeflow_host::git;
use archeflow_host::sprint::drive::{self, OpenedSprint};
use archeflow_host::sprint::queue::{Claim, Error, Extra, Queue, QueueFolder};
use archeflow_host::sprint::scan;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A folder with this queue.
fn with(text: &str) -> (TempDir, QueueFolder) {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("docs/orchestra")).unwrap();
    fs::write(dir.path().join("docs/orchestra/queue.json"), text).unwrap();
    let place = QueueFolder::at(dir.path());
    (dir, place)
}

fn item(id: &str, status: &str) -> Value {
    json!({ "id": id, "project": "shop", "task": format!("Do {id}"), "priority": "P1", "estimate": "S", "status": status })
}

fn queue_of(items: &[Value]) -> (TempDir, QueueFolder) {
    with(&json!({ "items": items }).to_string())
}

fn read(place: &QueueFolder) -> Value {
    serde_json::from_slice(&fs::read(place.file()).unwrap()).unwrap()
}

fn status(place: &QueueFolder, id: &str) -> ItemStatus {
    place.read().unwrap().get(id).unwrap().status
}

#[test]
fn schemas_3_what_we_do_not_know_keeps_its_text_and_its_place() {
    let (_dir, place) = with(
        r#"{ "mode": "ATTENDED", "x-number": 12345678901234567890.10, "items": [
             { "zeta": 1.50, "id": "a", "project": "p", "task": "t", "priority": "P0", "estimate": "XL",
               "status": "pending", "gnap_state": "ready", "deep": {"b": 1e400, "a": [ ]} } ],
            "version": 7 }"#,
    );
    place.change(|queue| queue.cancel("a")).unwrap();
    let text = fs::read_to_string(place.file()).unwrap();
    for kept in
        ["12345678901234567890.10", "1.50", r#"{"b": 1e400, "a": [ ]}"#, "\"ready\"", "\"version\": 8"]
    {
        assert!(text.contains(kept), "{kept} in\n{text}");
    }
    let order =
        ["mode", "x-number", "items", "zeta", "\"id\"", "\"cancelled\"", "gnap_state", "deep", "version"];
    let places: Vec<usize> = order.iter().map(|word| text.find(word).unwrap()).collect();
    assert!(places.is_sorted(), "{text}");
    let again = text.clone();
    place.change(|_| Ok(())).unwrap();
    assert_eq!(fs::read_to_string(place.file()).unwrap(), again, "no change, no new version");
}

#[test]
fn schemas_3_a_second_list_of_items_is_kept_as_it_is() {
    let one = item("a", "pending");
    let (_dir, place) = with(&format!(r#"{{"items": [{one}], "x": 1, "items": [{{"id": "b"}}, 3]}}"#));
    assert_eq!(place.read().unwrap().items().count(), 1);
    place.change(|queue| queue.cancel("a")).unwrap();
    let text = fs::read_to_string(place.file()).unwrap();
    assert!(text.contains(r#"[{"id": "b"}, 3]"#) && text.contains("\"cancelled\""), "{text}");
}

#[test]
fn m_n8_what_can_not_be_read_is_named_and_left_alone() {
    let good = item("good", "pending");
    let without = |field: &str| {
        let mut item = item("odd", "pending");
        item.as_object_mut().unwrap().remove(field);
        item
    };
    let but = |field: &str, value: Value| {
        let mut item = item("odd", "pending");
        item[field] = value;
        item
    };
    for (odd, why) in [
        (without("priority"), "missing field `priority`"),
        (without("id"), "missing field `id`"),
        (but("priority", json!("P9")), "P9"),
        (but("status", json!("done")), "done"),
        (but("id", json!("../etc")), "no name"),
        (but("id", json!("a b")), "no name"),
        (but("project", json!("../other")), "no folder below"),
        (but("project", json!("/etc")), "no folder below"),
        (but("project", json!("")), "no folder below"),
        (but("task", json!("  ")), "task"),
        (but("id", json!("good")), "there twice"),
        (but("depends_on", json!("good")), "depends_on"),
    ] {
        let (_dir, place) = queue_of(&[good.clone(), odd.clone()]);
        let queue = place.read().unwrap();
        let faults = queue.faults();
        // serde names the type it met and not always the field.
        let told =
            faults.iter().any(|fault| fault.number == 2 && (fault.why.contains(why) || why == "depends_on"));
        assert!(told, "{odd}: {faults:?}");
        assert_eq!(queue.items().count(), 1, "{odd}");
        place.change(|queue| queue.cancel("good")).unwrap();
        assert_eq!(read(&place)["items"][1], odd, "it stays as it was");
    }
}

#[test]
fn m_n8_a_file_that_is_no_queue_is_refused_and_not_touched() {
    for text in ["", "{", "[]", "{}", r#"{"items": 3}"#, r#"{"items": ["a"]}"#, "nonsense"] {
        let (_dir, place) = with(text);
        assert!(matches!(place.read(), Err(Error::Malformed { .. })), "{text}");
        let added = place.change(|queue| queue.cancel("a"));
        assert!(matches!(added, Err(Error::Malformed { .. })), "{text}");
        assert_eq!(fs::read_to_string(place.file()).unwrap(), text);
    }
}

#[test]
fn m_n8_a_hundred_thousand_items_are_read() {
    let items: Vec<Value> = (0..100_000).map(|n| item(&format!("i{n}"), "pending")).collect();
    let (_dir, place) = queue_of(&items);
    assert_eq!(place.read().unwrap().items().count(), 100_000);
}

#[test]
fn a_link_in_place_of_the_queue_is_refused() {
    let elsewhere = tempfile::tempdir().unwrap();
    for link in ["docs", "docs/orchestra", "docs/orchestra/queue.json"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(link);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("planted"), &path).unwrap();
        let place = QueueFolder::at(dir.path());
        let item: QueueItem = serde_json::from_value(item("a", "pending")).unwrap();
        let added = place.change(|queue| queue.add(item, &Extra::default()));
        assert!(added.is_err(), "{link}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0, "{link}");
    }
}

#[test]
fn statuses_move_only_where_they_may() {
    type Move = fn(&mut Queue, &str) -> Result<(), Error>;
    let moves: [(&str, Move, &[&str], ItemStatus); 3] = [
        ("approve", Queue::approve, &["proposed"], ItemStatus::Pending),
        ("cancel", Queue::cancel, &["proposed", "pending", "blocked", "failed"], ItemStatus::Cancelled),
        ("retry", Queue::retry, &["failed", "blocked", "cancelled"], ItemStatus::Pending),
    ];
    for (name, change, from, to) in moves {
        for before in ItemStatus::ALL {
            let (_dir, place) = queue_of(&[item("a", before.name())]);
            let moved = place.change(|queue| change(queue, "a"));
            assert_eq!(moved.is_ok(), from.contains(&before.name()), "{name} from {}", before.name());
            let now = if moved.is_ok() { to } else { before };
            assert_eq!(status(&place, "a"), now, "{name} from {}", before.name());
        }
    }
}

#[test]
fn bx_22_only_what_is_pending_can_be_taken_and_only_once() {
    for before in ItemStatus::ALL {
        let (_dir, place) = queue_of(&[item("a", before.name())]);
        let claim = place.change(|queue| queue.claim("a", "one")).unwrap();
        assert_eq!(claim.is_some(), before == ItemStatus::Pending, "{}", before.name());
        let other = place.change(|queue| queue.claim("a", "two")).unwrap();
        assert_eq!(other, None);
        let again = place.change(|queue| queue.claim("a", "one")).unwrap();
        assert_eq!(again, claim, "what is ours stays ours after a crash");
    }
}

#[test]
fn m_n10_a_claim_that_is_over_settles_nothing() {
    let (_dir, place) = queue_of(&[item("a", "pending")]);
    let take = |sprint: &str| place.change(|queue| queue.claim("a", sprint)).unwrap().unwrap();
    let settle = |claim: &Claim, to| place.change(|queue| queue.settle("a", Some(claim), to, "why")).unwrap();
    let old = take("one");
    assert!(settle(&old, ItemStatus::Pending), "it was given back");
    let new = take("two");
    assert_eq!(new.fence, old.fence + 1);
    assert!(!settle(&old, ItemStatus::Completed), "a late word of the first one");
    assert_eq!(status(&place, "a"), ItemStatus::Running);
    assert!(settle(&new, ItemStatus::Completed));
    assert!(settle(&new, ItemStatus::Completed), "said twice after a crash");
    assert_eq!(status(&place, "a"), ItemStatus::Completed);
    assert_eq!(read(&place)["items"][0]["notes"], "why");
}

/// Two sprints at once: every item is taken by one of them, and no change of either is lost.
#[test]
fn bx_22_many_takers_never_get_the_same_item() {
    let items: Vec<Value> = (0..40).map(|n| item(&format!("i{n}"), "pending")).collect();
    let (dir, _place) = queue_of(&items);
    let taken: Vec<(String, String)> = std::thread::scope(|scope| {
        let takers: Vec<_> = ["one", "two", "three", "four"]
            .into_iter()
            .map(|sprint| {
                let place = QueueFolder::at(dir.path());
                scope.spawn(move || {
                    let mut mine = Vec::new();
                    for n in 0..40 {
                        let id = format!("i{n}");
                        if place.change(|queue| queue.claim(&id, sprint)).unwrap().is_some() {
                            mine.push((id, sprint.to_owned()));
                        }
                    }
                    mine
                })
            })
            .collect();
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect()
    });
    assert_eq!(taken.len(), 40);
    let place = QueueFolder::at(dir.path());
    let queue = place.read().unwrap();
    for (id, sprint) in taken {
        assert_eq!(queue.claim_of(&id).unwrap().sprint, sprint, "{id}");
    }
    assert_eq!(read(&place)["version"], 40);
}

/// One of them may find the other's file before it is locked, and take it for one that was killed before it began.
#[test]
fn bx_22_sprints_that_begin_at_once_get_a_journal_each() {
    for _ in 0..200 {
        let (dir, _place) = queue_of(&[]);
        let begin = std::sync::Barrier::new(3);
        let opened: Vec<OpenedSprint> = std::thread::scope(|scope| {
            let opening = || {
                let place = QueueFolder::at(dir.path());
                begin.wait();
                drive::open(&place)
            };
            let sprints: Vec<_> = (0..3).map(|_| scope.spawn(opening)).collect();
            let ended: Vec<_> = sprints.into_iter().map(|sprint| sprint.join().unwrap()).collect();
            ended.into_iter().map(Result::unwrap).collect()
        });
        let mut ids: Vec<&str> = opened.iter().map(|sprint| sprint.journal.run_id()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3);
    }
}

#[test]
fn bx_23_a_circle_is_never_added() {
    let mut waiting = item("a", "pending");
    waiting["depends_on"] = json!(["b"]);
    let (_dir, place) = queue_of(&[waiting]);
    let mut other = item("b", "pending");
    other["depends_on"] = json!(["a"]);
    let other: QueueItem = serde_json::from_value(other).unwrap();
    let added = place.change(|queue| queue.add(other, &Extra::default()));
    let Err(Error::Circle { circle }) = added else { panic!("{added:?}") };
    assert_eq!(circle, ["a", "b"]);
    assert_eq!(place.read().unwrap().items().count(), 1);
}

#[test]
fn bx_28_m_n4_a_list_is_taken_over_once() {
    let list = "- [ ] First | fast\n- [x] Before\n- [ ] Second | depends: First, Before | done: it works\n\
                - [ ] Third | depends: Nobody\n- [?] odd\n";
    let (_dir, place) = queue_of(&[]);
    let imported = place.change(|queue| queue.import(list, "shop", ItemStatus::Proposed)).unwrap();
    let told: Vec<(&str, &str, &str)> =
        imported.added.iter().map(|item| (&*item.id, item.status.name(), item.estimate.name())).collect();
    assert_eq!(
        told,
        [
            ("shop-first", "proposed", "S"),
            ("shop-before", "completed", "M"),
            ("shop-second", "proposed", "M")
        ]
    );
    assert_eq!(imported.added[2].depends_on, ["shop-first", "shop-before"]);
    assert_eq!(imported.faults.iter().map(|fault| fault.line).collect::<Vec<_>>(), [5, 4]);
    assert_eq!(place.read().unwrap().extra("shop-second").notes.as_deref(), Some("done: it works"));
    let again = place.change(|queue| queue.import(list, "shop", ItemStatus::Proposed)).unwrap();
    assert_eq!((again.added.len(), again.known.len()), (0, 3), "M-N4: {again:?}");
}

fn sh(dir: &Path, script: &str) {
    let done = std::process::Command::new("sh").args(["-ec", script]).current_dir(dir).status().unwrap();
    assert!(done.success(), "{script}");
}

const COMMIT: &str = "git -c user.name=t -c user.email=t@example.com commit -q";

#[test]
fn bx_21_a_scan_proposes_marks_and_stale_projects_and_nothing_twice() {
    let (dir, place) = queue_of(&[]);
    let state = tempfile::tempdir().unwrap();
    sh(
        dir.path(),
        &format!(
            "mkdir few many && cd few && git init -q && printf 'x\\n// TODO: later\\nTODOS\\n' > a.c && git add . \
             && {COMMIT} -m x && cd ../many && git init -q && seq -f 'FIXME %g' 6 > b.txt && git add . \
             && GIT_COMMITTER_DATE=2020-01-01T00:00:00Z {COMMIT} -m x"
        ),
    );
    let env = git::GitEnv::of_process();
    let scan = |now| {
        let look = |name| scan::project(dir.path(), name, state.path(), &env, now).unwrap();
        let found = ["few", "many"].into_iter().flat_map(look).collect();
        place.change(|queue| scan::propose(queue, found)).unwrap()
    };
    let now = archeflow_host::clock::now();
    let told: Vec<(String, &str, ItemStatus)> =
        scan(now).into_iter().map(|item| (item.id, item.priority.name(), item.status)).collect();
    let expected = [
        ("few-a-c-2-todo-later", "P3"),
        ("many-clear-up-6-todo-and-fixme-marks-the-first", "P2"),
        ("many-look-after-this-project-nothing-was", "P3"),
    ];
    assert_eq!(told, expected.map(|(id, priority)| (id.to_owned(), priority, ItemStatus::Proposed)));
    assert_eq!(scan(now), [], "nothing is proposed twice");
    assert!(scan::project(dir.path(), "nowhere", state.path(), &env, now).is_err());
}
