//! Lessons against rivals, crashes, damage and prepared places. Names begin with the rule they prove.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Barrier;
use std::thread;

use archeflow_core::event::{Past, Tracked};
use archeflow_core::model::{Destination, Lesson, LessonKind, Memory as Policy, RunStatus, Severity};
use archeflow_core::rules::memory::Lived;
use archeflow_host::memory::{Written, add, forget, restore, take_in};
use archeflow_host::store::memory::{Error, LESSONS_AT_MOST, MemoryFiles, MemoryStore};
use serde_json::Value;
use tempfile::TempDir;

const LEAK: &str = "The session token is written to the access log";

struct Desk {
    temp: TempDir,
    memory: MemoryStore,
}

impl Desk {
    fn new() -> Desk {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join(".archeflow")).unwrap();
        let memory = MemoryStore::at(temp.path().join(".archeflow/memory"));
        Desk { temp, memory }
    }

    /// With these lines in `lessons.jsonl`.
    fn with(lines: &str) -> Desk {
        let desk = Desk::new();
        desk.write("lessons.jsonl", lines);
        desk
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::create_dir_all(self.memory.folder()).unwrap();
        fs::write(self.memory.folder().join(name), text).unwrap();
    }

    fn text(&self, name: &str) -> String {
        let bytes = fs::read(self.memory.folder().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn queue(&self) -> PathBuf {
        self.temp.path().join(".archeflow/queue.md")
    }

    fn shelf(&self) -> MemoryFiles {
        self.memory.read().unwrap()
    }

    fn live(&self, lived: &Lived) {
        let warnings = take_in(&self.memory, lived, &self.queue()).unwrap();
        assert_eq!(warnings, Vec::<String>::new());
    }

    fn frequency(&self, id: &str) -> Option<u32> {
        self.shelf().lessons.values().find(|lesson| lesson.id == id).map(|lesson| lesson.frequency)
    }

    fn audit(&self, kind: &str) -> Vec<Value> {
        self.shelf().audit.values().filter(|line| line["type"] == kind).cloned().collect()
    }

    /// Everything in the folder but the lock.
    fn snapshot(&self) -> Vec<(String, String)> {
        let entries = fs::read_dir(self.memory.folder()).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut all: Vec<(String, String)> =
            names.filter(|name| name != "memory.lock").map(|name| (name.clone(), self.text(&name))).collect();
        all.sort();
        all
    }
}

fn lived(run_id: &str, findings: &[(&str, u32)]) -> Lived {
    let tracked = |(n, (description, cycles_open)): (usize, &(&str, u32))| Tracked {
        id: format!("src/a.rs:security:{n}"),
        file: "src/a.rs".to_owned(),
        line: 3,
        category: "security".to_owned(),
        severity: Severity::Warning,
        source: vec!["guardian".to_owned()],
        description: (*description).to_owned(),
        fix: String::new(),
        routes_to: Destination::Maker,
        cycles_open: *cycles_open,
        regression_of: None,
        anchor: String::new(),
        also: Vec::new(),
    };
    Lived {
        run_id: run_id.to_owned(),
        ts: "2026-04-08T10:00:00Z".to_owned(),
        domain: "code".to_owned(),
        status: Some(RunStatus::Stopped),
        findings: findings.iter().enumerate().map(tracked).collect(),
        warnings: u32::try_from(findings.len()).unwrap(),
        ..Lived::default()
    }
}

fn written(text: &str) -> Written {
    let (domain, kind) = ("general".to_owned(), LessonKind::Preference);
    Written { kind, text: text.to_owned(), domain, archetype: None, tags: Vec::new() }
}

fn line(id: &str, frequency: u32, more: &str) -> String {
    format!(
        "{{\"id\":\"{id}\",\"ts\":\"t\",\"run_id\":\"r\",\"type\":\"pattern\",\"source\":\"guardian\",\
         \"description\":\"{LEAK}\",\"frequency\":{frequency},\"severity\":\"WARNING\",\"domain\":\"code\"{more}}}\n"
    )
}

#[test]
fn af_175_the_second_run_makes_a_habit_of_it() {
    let desk = Desk::new();
    desk.live(&lived("one", &[(LEAK, 1)]));
    assert_eq!(desk.frequency("m-001"), Some(1));
    desk.live(&lived("two", &[("access log: the session token is written there", 1)]));
    assert_eq!(desk.frequency("m-001"), Some(2));
    assert_eq!(desk.shelf().lessons.values().count(), 1);
    let lesson = desk.shelf().lessons.values().next().unwrap().clone();
    assert_eq!((lesson.domain.as_str(), lesson.last_seen_run.as_str()), ("code", "two"));
}

#[test]
fn af_175_a_run_teaches_once_however_often_it_ends() {
    let desk = Desk::with(&line("m-007", 3, ",\"runs_since_last_seen\":4"));
    let mut run = lived("one", &[("Nobody checks whether cycles overlap", 1)]);
    run.broken_window = true;
    desk.live(&run);
    let once = desk.snapshot();
    let queue = fs::read_to_string(desk.queue()).unwrap();
    assert_eq!(queue, "- [ ] Clean up the warning that runs left open (noticed in run one) | standard\n");
    desk.live(&run);
    assert_eq!(desk.snapshot(), once);
    assert_eq!(fs::read_to_string(desk.queue()).unwrap(), queue);
    let seven = desk.shelf().lessons.values().find(|lesson| lesson.id == "m-007").unwrap().clone();
    assert_eq!(seven.runs_since_last_seen, 5);
    // One more cycle brings one more finding.
    desk.live(&lived("one", &[("Nobody checks whether cycles overlap", 1), (LEAK, 1)]));
    assert_eq!(desk.frequency("m-007"), Some(4));
    assert_eq!(desk.frequency("m-008"), Some(1));
    assert_eq!(desk.audit("learned").len(), 2);
}

#[test]
fn af_175_a_crash_between_two_files_is_finished_by_the_next_process() {
    // What every step of a commit leaves behind, made by hand: the note is there, and so many files are replaced.
    let plan = Desk::with(&line("m-001", 1, ""));
    plan.live(&lived("one", &[(LEAK, 1), ("Nobody checks whether cycles overlap", 1)]));
    let after = plan.snapshot();
    let mut note = "archeflow memory 1\n".to_owned();
    for (name, text) in &after {
        note += &format!("{name} {}\n{text}", text.len());
    }
    for replaced in 0..=after.len() {
        let desk = Desk::with(&line("m-001", 1, ""));
        desk.write("pending", &note);
        desk.write(".lessons.jsonl.4711-0.tmp", "half a li");
        desk.write(".effectiveness.jsonl.4711-0.tmp", "somebody else's");
        for (name, text) in after.iter().take(replaced) {
            desk.write(name, text);
        }
        assert_eq!(desk.frequency("m-001"), Some(2), "a reader finishes it too");
        forget(&desk.memory, "m-999").unwrap();
        let left = desk.memory.folder().join(".effectiveness.jsonl.4711-0.tmp");
        fs::remove_file(left).unwrap();
        assert_eq!(desk.snapshot(), after, "{replaced} files were replaced");
        desk.live(&lived("one", &[(LEAK, 1), ("Nobody checks whether cycles overlap", 1)]));
        assert_eq!(desk.snapshot(), after, "and the resumed run does not teach it again");
    }
}

#[test]
fn a_note_that_is_not_ours_changes_nothing() {
    for note in [
        "",
        "archeflow memory 2\n",
        "archeflow memory 1\nlessons.jsonl 99\nx",
        "archeflow memory 1\n../../x 1\ny",
    ] {
        let desk = Desk::with(&line("m-001", 1, ""));
        desk.write("pending", note);
        let before = desk.snapshot();
        let refused = add(&desk.memory, 'm', &written("x"));
        assert!(matches!(refused, Err(Error::Pending { .. })), "{note:?}");
        assert_eq!(desk.snapshot(), before);
    }
}

#[test]
fn rivals_wait_for_each_other() {
    const THREADS: usize = 8;
    const EACH: usize = 12;
    let desk = Desk::new();
    let start = Barrier::new(THREADS);
    thread::scope(|scope| {
        for n in 0..THREADS {
            let (memory, start, queue) = (desk.memory.clone(), &start, desk.queue());
            scope.spawn(move || {
                start.wait();
                for i in 0..EACH {
                    if n % 2 == 0 {
                        add(&memory, 'm', &written(&format!("preference{n}x{i}"))).unwrap();
                    } else {
                        take_in(&memory, &lived(&format!("run-{n}-{i}"), &[(LEAK, 1)]), &queue).unwrap();
                    }
                }
            });
        }
    });
    let shelf = desk.shelf();
    let ids: BTreeSet<&str> = shelf.lessons.values().map(|lesson| lesson.id.as_str()).collect();
    assert_eq!(ids.len(), THREADS / 2 * EACH + 1, "nobody's lesson is lost and no name is given twice");
    let habit = shelf.lessons.values().find(|lesson| lesson.kind == LessonKind::Pattern).unwrap();
    assert_eq!(habit.frequency as usize, THREADS / 2 * EACH, "every run counts once");
    assert_eq!(shelf.debts.values().count(), THREADS / 2 * EACH);
    assert_eq!(shelf.damage(), []);
}

#[test]
fn unreadable_lines_are_reported_and_kept() {
    let bad = [
        "{\"id\": \"m-0",
        "not json at all",
        "{\"id\":\"m-009\"}",
        "[]",
        "{\"id\":\"m-010\",\"ts\":\"t\",\"run_id\":\"r\",\"type\":\"pattern\",\"source\":\"s\",\"description\":\"d\",\"frequency\":-1,\"severity\":\"\",\"domain\":\"code\"}",
    ];
    let mut text = line("m-001", 1, "").into_bytes();
    text.extend_from_slice(bad.join("\n").as_bytes());
    text.extend_from_slice(b"\n\xff\xfe\n\n");
    let desk = Desk::new();
    desk.write("lessons.jsonl", &text);
    let damage: Vec<usize> = desk.shelf().damage().iter().map(|damage| damage.line).collect();
    assert_eq!(damage, [2, 3, 4, 5, 6, 7], "an empty line is no damage");
    let told = desk.shelf().damage()[1].to_string();
    assert!(told.contains("lessons.jsonl:3: this line can't be read and is left as it is"), "{told}");
    desk.live(&lived("one", &[(LEAK, 1)]));
    let after = fs::read(desk.memory.folder().join("lessons.jsonl")).unwrap();
    let lines: Vec<&[u8]> = after.split(|byte| *byte == b'\n').collect();
    for (n, raw) in bad.iter().enumerate() {
        assert_eq!(lines[n + 1], raw.as_bytes());
    }
    assert_eq!(lines[6], b"\xff\xfe");
    assert_eq!(desk.frequency("m-001"), Some(2));
}

#[test]
fn what_others_wrote_beside_stays() {
    let untouched =
        line("m-002", 2, ", \"mood\" : \"good\"").replace(LEAK, "Nobody checks whether cycles overlap");
    let desk = Desk::with(&(line("m-001", 1, ",\"embedding\":[1,2],\"x\":{\"y\":null}") + &untouched));
    let preference = forget(&desk.memory, "m-999").unwrap();
    assert_eq!(preference, None);
    assert!(desk.text("lessons.jsonl").ends_with(&untouched), "nothing changed, nothing is rewritten");
    desk.live(&lived("one", &[(LEAK, 1)]));
    let first: Value = serde_json::from_str(desk.text("lessons.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["frequency"], &first["embedding"], &first["x"]["y"]),
        (&2.into(), &serde_json::json!([1, 2]), &Value::Null)
    );
    // On the way to the archive and back, too.
    forget(&desk.memory, "m-001").unwrap().unwrap();
    let archived: Value = serde_json::from_str(desk.text("archive.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!((&archived["archived_because"], &archived["embedding"][0]), (&"forgotten".into(), &1.into()));
    desk.live(&lived("two", &[(LEAK, 1)]));
    assert_eq!(desk.shelf().lessons.values().count(), 1, "what was forgotten is not learned anew");
    let back = restore(&desk.memory, "m-001", &Policy::default()).unwrap().unwrap();
    assert_eq!(back.frequency, 2);
    let last: Value = serde_json::from_str(desk.text("lessons.jsonl").lines().last().unwrap()).unwrap();
    assert_eq!((&last["archived_because"], &last["embedding"][1]), (&Value::Null, &2.into()));
}

#[test]
fn af_145_af_177_the_audit_says_what_became_of_a_lesson() {
    let desk = Desk::with(&line("m-001", 2, ",\"ineffective\":1"));
    let told: Lesson = desk.shelf().lessons.values().next().unwrap().clone();
    let mut run = lived("one", &[(LEAK, 1)]);
    run.past = Past {
        lessons: vec![told],
        told: [
            ("guardian".to_owned(), vec!["m-001".to_owned()]),
            ("sage".to_owned(), vec!["m-001".to_owned()]),
        ]
        .into(),
        ..Past::default()
    };
    run.sent.insert("guardian".to_owned());
    run.blamed.insert("m-001".to_owned());
    desk.live(&run);
    let shelf = desk.shelf();
    let injected: Vec<&Value> =
        shelf.audit.values().filter(|line| !line["lessons_injected"].is_null()).collect();
    assert_eq!(injected.len(), 1, "who was not sent was told nothing");
    assert_eq!(injected[0]["archetype"], "guardian");
    assert_eq!(
        (&injected[0]["lesson_count"], &injected[0]["why"]["m-001"]),
        (&1.into(), &"recurring".into())
    );
    let effect = &desk.audit("effectiveness_check")[0];
    assert_eq!(
        (&effect["effectiveness"], &effect["keyword_overlap_pct"]),
        (&"ineffective".into(), &100.into())
    );
    let learned = &desk.audit("learned")[0]["lessons"][0];
    assert_eq!((&learned["what"], &learned["archived"]), (&"ineffective".into(), &"ineffective".into()));
    assert_eq!(desk.frequency("m-001"), None);
    assert!(desk.text("archive.jsonl").contains("\"archived_because\":\"ineffective\""));
}

#[test]
fn af_121_only_what_landed_was_resolved_and_the_newest_are_kept() {
    let desk = Desk::new();
    let mut run = lived("one", &[(LEAK, 1)]);
    run.resolved = run.findings.clone();
    desk.live(&run);
    assert_eq!(desk.shelf().resolved.values().count(), 0);
    run.status = Some(RunStatus::Merged);
    desk.live(&run);
    desk.live(&Lived { run_id: "two".to_owned(), ..run.clone() });
    let runs: Vec<String> = desk.shelf().resolved.values().map(|old| old.run_id.clone()).collect();
    assert_eq!(runs, ["two"], "resolved again, remembered once");
    let many: Vec<(String, u32)> = (0..600).map(|n| (format!("unlike{n}"), 1)).collect();
    let many: Vec<(&str, u32)> = many.iter().map(|(text, n)| (text.as_str(), *n)).collect();
    let mut run = lived("three", &many);
    (run.resolved, run.status) = (run.findings.clone(), Some(RunStatus::Merged));
    desk.live(&run);
    assert_eq!(desk.shelf().resolved.values().count(), 500);
    assert!(desk.shelf().lessons.values().count() <= LESSONS_AT_MOST);
    assert!(desk.text("archive.jsonl").contains("crowded_out"));
}

#[test]
fn m_s11_a_prepared_place_is_refused() {
    let desk = Desk::new();
    let elsewhere = desk.temp.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, desk.memory.folder()).unwrap();
    add(&desk.memory, 'm', &written("x")).unwrap_err();
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    fs::remove_file(desk.memory.folder()).unwrap();
    fs::create_dir(desk.memory.folder()).unwrap();
    symlink(elsewhere.join("file"), desk.memory.folder().join("lessons.jsonl")).unwrap();
    add(&desk.memory, 'm', &written("x")).unwrap_err();
    assert!(!elsewhere.join("file").exists());
}
