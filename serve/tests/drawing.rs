//! What the pages make of recorded journals: long ones, many of them, and hostile ones.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod common;

use archeflow_core::event::Entry;
use common::{World, entry, recorded};
use serde_json::Value;

const DEMO: &str = include_str!("../../app/tests/logs/demo.jsonl");
const BREAK: &str = include_str!("../../app/tests/logs/break.jsonl");

/// The recorded run, and then its last decision again and again.
fn long(lines: usize) -> Vec<Entry> {
    let recorded = recorded(DEMO);
    let again = recorded.iter().rposition(|line| line["type"] == "decision.point").unwrap();
    let line = |n: usize| recorded.get(n).unwrap_or(&recorded[again]);
    (0..lines).map(|n| entry(n as u64 + 1, line(n)).unwrap()).collect()
}

#[test]
fn u_16_long_journals_and_many_runs_are_cut_by_the_server() {
    let world = World::new();
    world.journal("long", &long(10_000));
    world.list("long", "merged", "Task");
    (1..1_000).for_each(|n| world.list(&format!("run-{n}"), "merged", "Task"));
    let served = world.serve();
    let inbox = served.get("/");
    assert!(inbox.contains("All 1000 runs have ended"), "{inbox}");
    let runs = served.get("/runs");
    assert_eq!(runs.matches("href=\"/run/").count(), 100);
    assert!(runs.contains("Older"));
    let path = served.run("long");
    let journal = served.get(&format!("{path}/journal"));
    assert_eq!(journal.matches("<tr id=\"l").count(), 500);
    assert!(
        journal.contains("lines 9501 to 10000 of 10000") && journal.contains("Earlier lines"),
        "{journal}"
    );
    let earlier = served.get(&format!("{path}/journal?to=9500"));
    assert!(earlier.contains("lines 9001 to 9500 of 10000") && earlier.contains("Later lines"));
    for to in ["0", "-1", "x", "99999999999999999999"] {
        assert!(served.get(&format!("{path}/journal?to={to}")).starts_with("HTTP/1.1 200"), "{to}");
    }
    let why = served.get(&format!("{path}/why"));
    assert!(why.contains("left out"), "decisions are cut as in a report");
}

/// Everything that could be more than text: elements, attributes, entities, a line of a stream, invisible characters.
const HOSTILE: &str = " \"'><script>own()</script><img src=x onerror=own()><svg onload=own()></svg></td></div><form action=//e.example>\
                       <a href=javascript:own()>x</a><style>*{}</style>\n\nevent: reload\ndata: x\r\n\u{202e}\u{200b}\u{1b}[2J &lt;";

/// Puts hostile words behind every text that its event still takes.
fn poison(line: &mut Value) {
    for path in texts(&line["data"], String::new()) {
        let mut tried = line.clone();
        let Some(Value::String(text)) = tried["data"].pointer_mut(&path) else { continue };
        text.push_str(HOSTILE);
        if entry(1, &tried).is_some() {
            *line = tried;
        }
    }
}

fn texts(value: &Value, path: String) -> Vec<String> {
    match value {
        Value::String(_) => vec![path],
        Value::Array(all) => {
            all.iter().enumerate().flat_map(|(n, one)| texts(one, format!("{path}/{n}"))).collect()
        }
        Value::Object(all) => all
            .iter()
            .flat_map(|(key, one)| {
                texts(one, format!("{path}/{}", key.replace('~', "~0").replace('/', "~1")))
            })
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

#[test]
fn r14_u_16_hostile_text_in_every_field_is_text_on_every_page() {
    let world = World::new();
    for (id, log) in [("demo", DEMO), ("break", BREAK)] {
        let mut lines = recorded(log);
        lines.iter_mut().for_each(poison);
        let entries: Vec<Entry> = (1..).zip(&lines).map(|(seq, line)| entry(seq, line).unwrap()).collect();
        assert!(entries.len() > 20);
        world.journal(id, &entries);
        world.list(id, "stopped", &format!("Task{HOSTILE}"));
    }
    let served = world.serve();
    let mut pages = vec!["/".to_owned(), "/runs".to_owned(), "/reviews".to_owned()];
    for id in ["demo", "break"] {
        let path = served.run(id);
        pages.push(format!("/?run={}", path.trim_start_matches("/run/")));
        for part in ["", "/findings", "/agents", "/why", "/costs", "/artifacts", "/journal"] {
            pages.push(format!("{path}{part}"));
        }
    }
    let (mut seen, clean) = (0, served.get("/scores"));
    let forms = clean.matches("<form").count();
    for path in pages {
        let page = served.get(&path);
        assert!(page.starts_with("HTTP/1.1 200"), "{path}");
        seen += page.matches("own()").count();
        assert_eq!(page.matches("<script").count(), 1, "only our own: {path}\n{page}");
        for bad in [
            "<img",
            "<svg onload",
            "<style",
            "<a href=javascript",
            "<form action=//",
            "\u{202e}",
            "\u{200b}",
            "\u{1b}",
        ] {
            assert!(!page.contains(bad), "{bad} on {path}\n{page}");
        }
        assert!(!page.contains("</td></div><"), "{path}");
        // Foreign runs are shown and never executed, so no page of theirs has a form.
        assert_eq!(page.matches("<form").count(), forms, "{path}");
    }
    assert!(seen > 50, "the poison is in there, as text: {seen}");
}
