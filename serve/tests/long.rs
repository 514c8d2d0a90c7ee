//! Long journals and many runs: the server cuts, and reads no more than it shows.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use archeflow_core::event::{Entry, Event};
use archeflow_core::model::Phase;
use archeflow_host::store::index::{self, IndexEntry};
use archeflow_host::store::journal::Journal;
use archeflow_host::{clock, log, repositories};
use archeflow_serve::{Limits, ServeOptions, Server};
use serde_json::Value;

const DEMO: &str = include_str!("../../app/tests/logs/demo.jsonl");

/// The recorded run, and then its last decision again and again.
fn entries(lines: usize) -> Vec<Entry> {
    let recorded: Vec<Value> = DEMO.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let again = recorded.iter().rposition(|line| line["type"] == "decision.point").unwrap();
    (0..lines)
        .map(|n| {
            let line = recorded.get(n).unwrap_or(&recorded[again]);
            Entry {
                seq: n as u64 + 1,
                at: clock::read(line["ts"].as_str().unwrap()),
                parent: Vec::new(),
                phase: Phase::parse(line["phase"].as_str().unwrap()).unwrap(),
                agent: None,
                event: Event::read(line["type"].as_str().unwrap(), &line["data"]).unwrap().unwrap(),
            }
        })
        .collect()
}

fn repository(root: &Path, lines: usize, runs: usize) {
    let events = root.join(".archeflow/events");
    fs::create_dir_all(&events).unwrap();
    let mut journal = Journal::create(&events, "long").unwrap();
    for part in entries(lines).chunks(1_000) {
        log::append(&mut journal, part).unwrap();
    }
    for n in 0..runs {
        let entry = IndexEntry {
            run_id: if n == 0 { "long".to_owned() } else { format!("run-{n}") },
            status: "merged".to_owned(),
            task: format!("Task {n}"),
            ts: "2026-01-01T00:00:00Z".to_owned(),
            reopens_at: None,
            reverted_at: None,
        };
        index::append(&events, &entry).unwrap();
    }
}

#[test]
fn u_16_long_journals_and_many_runs_are_cut_by_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let (state, root) = (folder.path().join("state"), folder.path().join("shop"));
    fs::create_dir_all(&state).unwrap();
    repository(&root, 10_000, 1_000);
    repositories::remember(&state, &root).unwrap();
    let server = Server::bind(ServeOptions {
        port: 0,
        host: None,
        read_only: false,
        program: "/bin/false".into(),
        cwd: "/nonexistent".into(),
        idle_exit: None,
        state: Some(state),
        version: "test",
        limits: Limits::default(),
    })
    .unwrap();
    let (address, stopper) = (server.address(), server.stopper());
    let port: u16 = address.split(':').nth(2).unwrap().split('/').next().unwrap().parse().unwrap();
    let thread = std::thread::spawn(move || server.run());
    let get = |path: &str, cookie: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let entered = get(&address[address.find("/in").unwrap()..], "");
    let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let ask = |path: &str| get(path, cookie);
    let inbox = ask("/");
    assert!(inbox.contains("All 1000 runs have ended"), "{inbox}");
    let runs = ask("/runs");
    assert_eq!(runs.matches("href=\"/run/").count(), 100);
    assert!(runs.contains("Older"));
    let path = runs.split("href=\"").find(|part| part.starts_with("/run/") && part.contains("/long\""));
    let last = ask("/runs?from=900");
    let path = path
        .or_else(|| last.split("href=\"").find(|part| part.starts_with("/run/") && part.contains("/long\"")));
    let path = path.unwrap().split('"').next().unwrap();
    let journal = ask(&format!("{path}/journal"));
    assert_eq!(journal.matches("<tr id=\"l").count(), 500);
    assert!(
        journal.contains("lines 9501 to 10000 of 10000") && journal.contains("Earlier lines"),
        "{journal}"
    );
    let earlier = ask(&format!("{path}/journal?to=9500"));
    assert!(earlier.contains("lines 9001 to 9500 of 10000") && earlier.contains("Later lines"));
    for to in ["0", "-1", "x", "99999999999999999999"] {
        assert_eq!(
            get(&format!("{path}/journal?to={to}"), cookie).matches("HTTP/1.1 200").count(),
            1,
            "{to}"
        );
    }
    let why = ask(&format!("{path}/why"));
    assert!(why.contains("left out"), "decisions are cut as in a report");
    stopper.stop();
    thread.join().unwrap().unwrap();
}
