//! A run is steered by a process that does not drive it: pause, resume, stop, and who may not.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::harness::{TASK, Test, parse_lines};

/// A Maker that makes a file when it starts, and waits for another one before it finishes.
pub(super) const WAITS: &str = "== maker ==\nsh touch {base}/working\nsh while [ ! -e {base}/go ]; do sleep 0.05; done\n\
    sh echo made >> src/app.txt; echo case >> tests/check_test.sh\ncommit Add the line\n\
    say <<END\n## Summary\n\nA line.\n\nSTATUS: DONE\nEND\n\n";

/// A run with that Maker, once it works.
pub(super) fn driver(test: &Test) -> (Child, String) {
    let child = test
        .command(env!("CARGO_BIN_EXE_archeflow"))
        .args(test.arguments(TASK, &["--auto-merge"]))
        .current_dir(&test.repo)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    test.wait_for_file("working");
    (child, test.run_ids().remove(0))
}

fn go(test: &Test) {
    fs::write(test.base().join("go"), "").unwrap();
}

/// The socket of the only run, if it is there. Where it is depends on how long the path of the test's folder is.
fn sockets(test: &Test) -> Vec<PathBuf> {
    let state = test.home().join(".local/state/archeflow");
    let events = test.repo.join(".archeflow/events");
    let path = archeflow_host::control::socket(&state, None, &events, &test.run_ids()[0]);
    path.exists().then_some(path).into_iter().collect()
}

fn says(stream: &UnixStream) -> Value {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

fn journal(test: &Test, id: &str) -> Vec<Value> {
    parse_lines(&test.journal_bytes(id))
}

#[test]
fn a_paused_run_orders_nothing_and_continues_when_it_is_resumed() {
    let test = Test::new().play(WAITS);
    let (mut child, id) = driver(&test);
    let paused = test.beside(&["pause", &id]);
    assert_eq!((paused.code, &paused.json["reason"]), (0, &json!("paused")), "{paused}");
    for (arguments, code, why) in [
        (vec!["pause", &id], 21, "the run is already paused"),
        (vec!["answer", &id, "yes"], 21, "nothing is being asked"),
        (vec!["pause", "no-such-run"], 2, "there is no run"),
    ] {
        let refused = test.beside(&arguments);
        assert_eq!(refused.code, code, "{refused}");
        assert!(refused.stderr.contains(why), "{why}: {refused}");
    }
    go(&test);
    test.wait_for("agent.complete", Some("maker"));
    // The driver replies after it has settled what the Maker's answer means.
    let stream = UnixStream::connect(&sockets(&test)[0]).unwrap();
    (&stream).write_all(b"{\"request\":\"status\"}\n").unwrap();
    let status = says(&stream);
    assert_eq!(
        (&status["ok"], &status["paused"], &status["agents"]),
        (&json!(true), &json!(true), &json!([]))
    );
    let ordered = |line: &Value| line["type"].as_str().is_some_and(|kind| kind.ends_with(".start"));
    let after_pause = journal(&test, &id).into_iter().skip_while(|line| line["type"] != "run.paused");
    assert_eq!(after_pause.filter(ordered).count(), 0);
    let resumed = test.beside(&["resume", &id]);
    assert_eq!((resumed.code, &resumed.json["reason"]), (0, &json!("resumed")), "{resumed}");
    assert!(child.wait().unwrap().success());
    assert_eq!(sockets(&test), [] as [PathBuf; 0], "the socket goes with its process");
    let refused = test.beside(&["pause", &id]);
    assert!(refused.code == 2 && refused.stderr.contains("no process drives"), "{refused}");
}

#[test]
fn a_pause_outlives_the_process_that_was_paused() {
    let test = Test::new().play(WAITS);
    let (mut child, id) = driver(&test);
    assert_eq!(test.beside(&["pause", &id]).code, 0);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(sockets(&test).len(), 1, "nobody was left to remove it");
    go(&test);
    let resumed = test.run(&["resume", &id]).ended("merged", "approved", 0);
    assert!(resumed.stderr.contains("the run was paused"), "{resumed}");
    assert_eq!(resumed.events("run.resumed")[0]["by"], "resume");
    assert_eq!(sockets(&test), [] as [PathBuf; 0]);
}

#[test]
fn stop_is_the_first_sigint_and_comes_back_when_the_run_is_free() {
    let test = Test::new().play(WAITS);
    let (mut child, id) = driver(&test);
    let stopped = test.beside(&["stop", &id]);
    assert_eq!((stopped.code, &stopped.json["status"]), (0, &json!("stopped")), "{stopped}");
    let last = journal(&test, &id).pop().unwrap();
    assert_eq!((&last["type"], &last["data"]["signal"]), (&json!("session.end"), &json!(2)));
    go(&test);
    test.run(&["resume", &id]).ended("merged", "approved", 0);
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn hostile_clients_are_refused_and_do_not_delay_the_run() {
    let test = Test::new().play(WAITS);
    let (mut child, id) = driver(&test);
    let socket = sockets(&test).remove(0);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    // Silent, half a line, a line without end, noise, and more of them than there is room for.
    let silent: Vec<UnixStream> = (0..30).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    for (n, mut stream) in silent.iter().enumerate() {
        let _ = stream.write_all(match n % 3 {
            0 => &b"{\"request\":"[..],
            1 => &b"\xff\xff\xff\xff\n\n\n"[..],
            _ => &[b' '; 70_000],
        });
    }
    let crowded = test.beside(&["pause", &id]);
    assert!(crowded.code == 0 || crowded.stderr.contains("too many connections"), "{crowded}");
    drop(silent);
    if crowded.code == 0 {
        assert_eq!(test.beside(&["resume", &id]).code, 0);
    }
    go(&test);
    assert!(child.wait().unwrap().success());
}

#[test]
fn m_s8_an_agent_can_not_steer_the_run_it_works_for() {
    let program = env!("CARGO_BIN_EXE_archeflow");
    let steers = format!(
        "== maker ==\nsh cd {{base}}; {program} pause --repo \"$REPO\" \"$RUN\" > {{base}}/said 2>&1; touch {{base}}/working\n\
         sh echo made >> src/app.txt; echo case >> tests/check_test.sh\ncommit Add the line\n\
         say <<END\n## Summary\n\nA line.\n\nSTATUS: DONE\nEND\n\n"
    );
    let test = Test::new();
    let repo = test.repo.to_string_lossy().into_owned();
    let run = format!("$(cd '{repo}/.archeflow/events' && ls *.jsonl | grep -v index | sed 's/.jsonl//')");
    let test = test.play(&steers.replace("$REPO", &repo).replace("$RUN", &run)).unsandboxed();
    let outcome = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let said = fs::read_to_string(test.base().join("said")).unwrap();
    assert!(said.contains("processes that a run started can't steer it"), "{said}");
    assert!(outcome.events("run.paused").is_empty());
}
