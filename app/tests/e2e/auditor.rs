//! The auditor audited: each of its checkers objects to a planted violation, and to nothing without one.

use serde_json::{Value, json};

use crate::audit::{self, Before};
use crate::harness::{Outcome, Test, parse_lines};

/// A run that landed, and the world before it.
fn landed() -> (Test, Before, Outcome) {
    let test = Test::new().play("");
    let before = Before::take(&test);
    let outcome = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(audit::after(&test, &before, &outcome), Vec::<String>::new());
    (test, before, outcome)
}

fn touch(test: &Test, path: &str) {
    test.file(path, "touched\n");
}

#[track_caller]
fn objects(faults: &[String], rule: &str, word: &str) {
    let found = faults.iter().any(|fault| fault.starts_with(rule) && fault.contains(word));
    assert!(found, "nobody says {rule} about {word}: {faults:?}");
}

#[test]
fn i1_sees_every_change_of_what_is_the_users() {
    type Deed = fn(&Test);
    let deeds: [(&str, Deed); 9] = [
        ("file:README.md", |test| touch(test, "README.md")),
        ("file:new.txt", |test| touch(test, "new.txt")),
        ("ref:refs/heads/other", |test| drop(test.git(["branch", "other"]))),
        ("ref:refs/tags/v1", |test| drop(test.git(["tag", "v1"]))),
        ("git:config", |test| drop(test.git(["config", "some.thing", "else"]))),
        ("git:hooks/pre-commit", |test| touch(test, ".git/hooks/pre-commit")),
        ("git:info/attributes", |test| touch(test, ".git/info/attributes")),
        ("home:.gitconfig", |test| std::fs::write(test.home().join(".gitconfig"), "").unwrap()),
        ("ref:refs/stash", |test| {
            test.file("src/app.txt", "dirty\n");
            test.git(["stash", "-q"]);
        }),
    ];
    for (word, deed) in deeds {
        let (test, before, outcome) = landed();
        deed(&test);
        objects(&audit::untouched(&test, &before.manifest, &audit::manifest(&test), &outcome), "I1", word);
    }
    // Without a merge in the journal, neither the target nor its files may move.
    let (test, before, mut outcome) = landed();
    outcome.journal.retain(|line| line["type"] != "run.merged");
    let faults = audit::untouched(&test, &before.manifest, &audit::manifest(&test), &outcome);
    objects(&faults, "I1", "ref:refs/heads/main");
    objects(&faults, "I1", "file:src/app.txt");
    objects(&faults, "I1", "git:index");
    // And with one, exactly to where it says.
    let (test, before, outcome) = landed();
    test.git(["update-ref", "refs/heads/main", "HEAD~1"]);
    objects(
        &audit::untouched(&test, &before.manifest, &audit::manifest(&test), &outcome),
        "I1",
        "not at the merge",
    );
}

#[test]
fn i2_sees_commits_without_a_ref() {
    let (test, _, mut outcome) = landed();
    let lost = test.git(["commit-tree", "HEAD^{tree}", "-m", "lost"]);
    assert_eq!(audit::reachable(&test, &outcome.journal), Vec::<String>::new());
    outcome.journal.push(json!({"data": {"deep": [{"commit": lost}]}}));
    objects(&audit::reachable(&test, &outcome.journal), "I2", &lost);
}

#[test]
fn i3_sees_every_damage_to_a_history() {
    let (test, _, outcome) = landed();
    let good = test.journal_bytes(&outcome.id);
    let rewritten = |change: &dyn Fn(&mut Vec<Value>)| -> Vec<u8> {
        let mut lines = parse_lines(&good);
        change(&mut lines);
        lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
    };
    let check = |bytes: &[u8]| audit::history(&outcome.id, &[], bytes);
    assert_eq!(check(&good), Vec::<String>::new());
    objects(&check(&rewritten(&|lines| drop(lines.remove(4)))), "I3", "says it is");
    objects(&check(&rewritten(&|lines| lines[4]["parent"] = json!([9]))), "AF-161", "not before it");
    objects(&check(&rewritten(&|lines| lines[4]["parent"] = json!([]))), "AF-161", "parents");
    objects(&check(&rewritten(&|lines| lines[4]["run_id"] = json!("other"))), "I3", "belongs to");
    objects(
        &check(&rewritten(&|lines| drop(lines[4].as_object_mut().unwrap().remove("phase")))),
        "SCHEMAS",
        "phase",
    );
    objects(&check(&good[..good.len() - 5]), "I3", "torn");
    objects(&check(&[&good[..], b"nonsense\n"].concat()), "I3", "no JSON");
    let mut changed = good.clone();
    changed[60] ^= 1;
    objects(&audit::history(&outcome.id, &good, &changed), "I3", "is not what it was");
    let twice = rewritten(&|lines| {
        let mut again = lines.iter().find(|line| line["type"] == "agent.complete").unwrap().clone();
        again["seq"] = json!(lines.len() + 1);
        lines.push(again);
    });
    objects(&check(&twice), "I3", "is answered by");
}

#[test]
fn i5_sees_left_over_processes() {
    let (_, _, outcome) = landed();
    assert_eq!(audit::orphans(&outcome.journal), Vec::<String>::new());
    let tag = outcome.events("session.start")[0]["tag"].as_str().unwrap().to_owned();
    let mut left = std::process::Command::new("sleep")
        .arg("3000")
        .env("ARCHEFLOW_TAG", format!("{tag}.7"))
        .spawn()
        .unwrap();
    let faults = audit::left_now(&outcome.journal);
    left.kill().unwrap();
    left.wait().unwrap();
    objects(&faults, "I5", "sleep 3000");
}

#[test]
fn i8_sees_what_was_not_tested() {
    let (test, _, outcome) = landed();
    assert_eq!(audit::landed(&test, &outcome.journal), Vec::<String>::new());
    let with = |kind: &str, key: &str, value: Value| {
        let mut journal = outcome.journal.clone();
        journal
            .iter_mut()
            .filter(|line| line["type"] == kind)
            .for_each(|line| line["data"][key] = value.clone());
        audit::landed(&test, &journal)
    };
    let other = test.git(["rev-parse", "HEAD~1^{tree}"]);
    let stray = test.git(["commit-tree", "HEAD^{tree}", "-m", "stray"]);
    objects(&with("tests.done", "tree", json!(other)), "I8", "tested");
    objects(&with("tests.done", "result", json!("failed")), "I8", "tested");
    objects(&with("run.merged", "tree", json!(other)), "I8", "has the tree");
    objects(&with("run.merged", "old", json!(stray)), "I8", "no ancestor");
}

#[test]
fn i12_sees_ends_that_do_not_agree() {
    let (_, _, mut outcome) = landed();
    assert_eq!(audit::honest(&outcome), Vec::<String>::new());
    outcome.code = 10;
    objects(&audit::honest(&outcome), "I12", "but the log ends with");
    outcome.code = 0;
    outcome.json["status"] = json!("stopped");
    objects(&audit::honest(&outcome), "I12", "with status");
    outcome.json["status"] = json!("merged");
    outcome.journal.pop();
    objects(&audit::honest(&outcome), "I12", "run.merged");
}

#[test]
fn interfaces1_sees_what_is_missing_from_the_object() {
    let (_, _, mut outcome) = landed();
    assert_eq!(audit::answer(&outcome), Vec::<String>::new());
    outcome.json.as_object_mut().unwrap().remove("cost_usd");
    objects(&audit::answer(&outcome), "INTERFACES 1", "cost_usd");
    outcome.json = Value::Null;
    objects(&audit::answer(&outcome), "INTERFACES 1", "not one JSON object");
}

#[test]
fn m_s12_sees_control_characters() {
    let (_, _, mut outcome) = landed();
    assert_eq!(audit::terminal(&outcome), Vec::<String>::new());
    for evil in ['\u{1b}', '\r', '\u{7}', '\u{9b}', '\u{202e}'] {
        outcome.stderr = format!("a{evil}b");
        objects(&audit::terminal(&outcome), "M-S12", "error");
    }
}
