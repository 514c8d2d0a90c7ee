//! A run moves to another clone: `archeflow export run` and `archeflow import` (fleet, part 1).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;

use crate::harness::{Test, each};
use crate::user::{parse_lines, printed};

const PROGRAM: &str = env!("CARGO_BIN_EXE_archeflow");

/// The program in another clone of the test's repository, as the same user.
pub(super) fn at(test: &Test, clone: &Path, arguments: &[&str]) -> Output {
    test.command(PROGRAM).args(arguments).current_dir(clone).output().unwrap()
}

pub(super) fn git(clone: &Path, arguments: &[&str]) -> String {
    let output = std::process::Command::new("git").arg("-C").arg(clone).args(arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}\n{}", printed(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn cloned(test: &Test, name: &str) -> PathBuf {
    let clone = test.repo.with_file_name(name);
    cloned_from(test, &test.repo, &clone);
    clone
}

pub(super) fn cloned_from(test: &Test, from: &Path, clone: &Path) {
    test.git(["clone", "-q", from.to_str().unwrap(), clone.to_str().unwrap()]);
    git(clone, &["config", "user.name", "A Developer"]);
    git(clone, &["config", "user.email", "dev@example.org"]);
}

pub(super) fn file(test: &Test, name: &str) -> String {
    test.repo.with_file_name(name).to_str().unwrap().to_owned()
}

pub(super) fn journal(clone: &Path, id: &str) -> Vec<Value> {
    parse_lines(&fs::read(clone.join(format!(".archeflow/events/{id}.jsonl"))).unwrap())
}

/// How often each agent was started, and how often one has ended with an answer.
pub(super) fn steps(lines: &[Value], kind: &str) -> BTreeMap<String, usize> {
    let mut steps = BTreeMap::new();
    for line in lines.iter().filter(|line| line["type"] == kind) {
        *steps.entry(line["agent"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    steps
}

fn refused(output: &Output, code: i32, words: &[&str]) {
    let text = printed(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "{word}\n{text}");
    }
}

pub(super) fn moved(test: &Test, id: &str, clone: &Path) {
    let bundle = file(test, &format!("{}.bundle", clone.file_name().unwrap().to_str().unwrap()));
    let exported = test.beside(&["export", "run", id, "-o", &bundle]);
    assert_eq!(exported.code, 0, "{exported}");
    let imported = at(test, clone, &["import", &bundle]);
    assert!(imported.status.success(), "{}", printed(&imported));
    let listed = at(test, clone, &["list"]);
    assert!(printed(&listed).contains(id), "{}", printed(&listed));
    // Nobody has looked at its commands here.
    refused(&at(test, clone, &["resume", id]), 21, &["trust --run"]);
    let trusted = at(test, clone, &["trust", "--run", id, "--yes"]);
    assert!(trusted.status.success(), "{}", printed(&trusted));
}

#[test]
fn fl_01_killed_anywhere_a_run_is_resumed_in_a_fresh_clone_without_repeating_what_had_ended() {
    let mut points: Vec<String> = (3..=8).map(|n| format!("recorded:{n}")).collect();
    points.extend((1..=3).map(|n| format!("agent.done:{n}")));
    points.extend(
        ["work.collected:1", "work.published:1", "merge.built:1", "tests.ran:1", "land.begun:1"]
            .map(str::to_owned),
    );
    each(points, |point| {
        let test = Test::new().play("").env("ARCHEFLOW_FAILPOINT", &point);
        let killed = test.go(&["--auto-merge"]);
        assert!(killed.killed, "{point}\n{killed}");
        let test = test.env("ARCHEFLOW_FAILPOINT", "");
        let id = test.run_ids().pop().unwrap();
        let before = journal(&test.repo, &id);
        let clone = cloned(&test, "other");
        moved(&test, &id, &clone);
        let resumed = at(&test, &clone, &["resume", &id, "--auto-merge"]);
        assert!(resumed.status.success(), "{point}\n{}", printed(&resumed));
        let after = journal(&clone, &id);
        assert!(after.starts_with(&before), "{point}");
        let (started, ended) = (steps(&after, "agent.start"), steps(&before, "agent.complete"));
        for (agent, times) in &ended {
            assert_eq!(started.get(agent), Some(times), "{point}: {agent} was started again");
        }
        assert!(git(&clone, &["show", "main:src/app.txt"]).contains("made in"), "{point}");
        // The clone it came from is as it was.
        assert_eq!(journal(&test.repo, &id), before, "{point}");
        assert!(!test.git(["show", "main:src/app.txt"]).contains("made in"), "{point}");
    });
}

/// A run that was killed when its Maker had ended, and its file.
fn exported(more: &[&str]) -> (Test, String, String) {
    let test = Test::new().play("").env("ARCHEFLOW_FAILPOINT", "work.published:1");
    test.go(more);
    let test = test.env("ARCHEFLOW_FAILPOINT", "");
    let id = test.run_ids().pop().unwrap();
    let bundle = file(&test, "run.bundle");
    let exported = test.beside(&["export", "run", &id, "-o", &bundle]);
    assert_eq!(exported.code, 0, "{exported}");
    (test, id, bundle)
}

/// Everything an import could change.
fn content(clone: &Path) -> (String, Vec<(PathBuf, u64)>) {
    let mut files = Vec::new();
    let mut folders = vec![clone.join(".archeflow")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata().unwrap() {
                meta if meta.is_dir() => folders.push(entry.path()),
                meta => files.push((entry.path(), meta.len())),
            }
        }
    }
    files.sort();
    (git(clone, &["for-each-ref"]), files)
}

#[test]
fn fl_02_a_file_that_is_no_run_changes_nothing() {
    let (test, id, bundle) = exported(&["--auto-merge"]);
    // The bundle in a repository of its own, to be changed and written again.
    let rewritten = |name: &str, change: &str| {
        let (folder, bundle) = (file(&test, name), &bundle);
        let script = format!(
            "set -e; git init -q --bare {folder}; cd {folder}
             git fetch -q {bundle} refs/archeflow/run:refs/archeflow/run; git read-tree refs/archeflow/run
             put() {{ git update-index --add --cacheinfo \"${{2:-100644}},$(git hash-object -w --stdin),$1\"; }}
             {change}
             new=$(git -c user.name=x -c user.email=x@x commit-tree $(git write-tree) $(git rev-parse refs/archeflow/run^@ | sed 's/^/-p /') -m x)
             git update-ref refs/archeflow/run $new; git bundle create -q {folder}/b ${{REF:-refs/archeflow/run}}"
        );
        test.sh(&script);
        format!("{folder}/b")
    };
    let manifest =
        |sed: &str| format!("git show refs/archeflow/run:manifest.json | sed '{sed}' | put manifest.json");
    let journal =
        |sed: &str| format!("git show refs/archeflow/run:journal.jsonl | sed '{sed}' | put journal.jsonl");
    let bytes = fs::read(&bundle).unwrap();
    let written = |name: &str, bytes: &[u8]| {
        let path = file(&test, name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let mut flipped = bytes.clone();
    let last = flipped.len() - 300;
    flipped[last] ^= 0x40;
    let elsewhere = "git update-ref refs/heads/main refs/archeflow/run; REF=refs/heads/main";
    let rows = [
        (file(&test, "nowhere"), "No such file"),
        (file(&test, ""), "not a regular file"),
        (written("empty", b""), "not those of a git bundle"),
        (written("text", b"hello\n"), "not a git bundle"),
        (written("cut", &bytes[..bytes.len() / 2]), "is damaged"),
        (written("flipped", &flipped), "is damaged"),
        (rewritten("same", ""), ""),
        (rewritten("newer", &manifest("s/\"v\": 1/\"v\": 2/")), "newer version"),
        (rewritten("nonsense", "echo hello | put manifest.json"), "manifest.json: expected"),
        (
            rewritten("climbing", &manifest("s/\"run_id\": \".*\"/\"run_id\": \"..\"/")),
            "can't be the name of a run",
        ),
        (
            rewritten("renamed", &manifest("s/\"run_id\": \".*\"/\"run_id\": \"other\"/")),
            "is damaged at byte",
        ),
        (
            rewritten("main", &manifest("s,refs/heads/archeflow/[^\"]*,refs/heads/main,")),
            "not the run's: refs/heads/main",
        ),
        (rewritten("others", &manifest("s,keep/[^/]*/1/plan,keep/other/1/plan,")), "not the run's"),
        (rewritten("commit", &manifest("s,1/plan\": \".\\{8\\},1/plan\": \"00000000,")), "lacks the commit"),
        (rewritten("lines", &manifest("s/\"lines\": [0-9]*/\"lines\": 3/")), "not as long as it says"),
        (rewritten("edited", &journal("1s/tests/TESTS/")), "is damaged at byte"),
        (
            rewritten(
                "headless",
                "git rm -q --cached journal.jsonl 2>/dev/null || git update-index --force-remove journal.jsonl",
            ),
            "has no journal.jsonl",
        ),
        (rewritten("linked", "printf /etc/passwd | put artifacts/link 120000"), "is not a plain file"),
        (rewritten("hidden", "echo x | put artifacts/.x"), "no run has: 'artifacts/.x'"),
        (rewritten("stray", "echo x | put config.yaml"), "no run has: 'config.yaml'"),
        (rewritten("branch", elsewhere), "a ref that no run has: "),
    ];
    let clone = cloned(&test, "other");
    let before = content(&clone);
    for (bundle, words) in rows {
        if words.is_empty() {
            // Written again without a change it is one: what is refused below is refused for the change.
            let twin = cloned(&test, "twin");
            let imported = at(&test, &twin, &["import", &bundle]);
            assert!(imported.status.success(), "{}", printed(&imported));
            continue;
        }
        let output = at(&test, &clone, &["import", &bundle]);
        assert!([2, 30].contains(&output.status.code().unwrap()), "{bundle}\n{}", printed(&output));
        refused(&output, output.status.code().unwrap(), &[words]);
        assert_eq!(content(&clone), before, "{bundle}");
    }
    // It builds on what only another repository has.
    let far = cloned(&test, "far");
    let imported = at(&test, &far, &["import", &bundle]);
    assert!(imported.status.success(), "{}", printed(&imported));
    let thin = file(&test, "thin.bundle");
    let exported = at(&test, &far, &["export", "run", &id, "-o", &thin]);
    assert!(exported.status.success(), "{}", printed(&exported));
    assert!(fs::metadata(&thin).unwrap().len() < bytes.len() as u64, "what a remote has is left out");
    let stranger = test.repo.with_file_name("stranger");
    test.sh(&format!(
        "git init -q {0}; git -C {0} -c user.name=x -c user.email=x@x commit -q --allow-empty -m x",
        stranger.display()
    ));
    refused(&at(&test, &stranger, &["import", &thin]), 2, &["commits that are not here", "git fetch"]);
}

#[test]
fn fl_03_killed_while_importing_a_second_import_completes_it() {
    each(["import.refs:1", "import.files:1"], |point| {
        let (test, id, bundle) = exported(&["--auto-merge"]);
        let clone = cloned(&test, "other");
        let killed = test
            .command(PROGRAM)
            .args(["import", &bundle])
            .current_dir(&clone)
            .env("ARCHEFLOW_FAILPOINT", point)
            .output();
        assert_eq!(killed.unwrap().status.code(), None, "{point}");
        assert!(!clone.join(format!(".archeflow/events/{id}.jsonl")).exists(), "{point}");
        moved(&test, &id, &clone);
        let resumed = at(&test, &clone, &["resume", &id, "--auto-merge"]);
        assert!(resumed.status.success(), "{point}\n{}", printed(&resumed));
    });
}

#[test]
fn fl_04_a_run_that_comes_back_is_foreign_until_its_new_lines_were_seen() {
    let (test, id, _) = exported(&[]);
    let clone = cloned(&test, "other");
    moved(&test, &id, &clone);
    let resumed = at(&test, &clone, &["resume", &id]);
    assert_eq!(resumed.status.code(), Some(10), "{}", printed(&resumed));
    let back = file(&test, "back.bundle");
    let exported = at(&test, &clone, &["export", "run", &id, "-o", &back, "--json"]);
    let told: Value = serde_json::from_slice(&exported.stdout).unwrap();
    assert_eq!(told["lines"], journal(&clone, &id).len(), "{told}");
    let imported = test.beside(&["import", &back]);
    assert_eq!((imported.code, &imported.json["approved"]), (0, &Value::Bool(false)), "{imported}");
    test.run(&["merge", &id]).refused(21, &["trust --run"]);
    assert_eq!(test.beside(&["trust", "--run", &id, "--yes"]).code, 0);
    // Once more, with nothing new: it stays the user's own.
    let again = test.beside(&["import", &back]);
    assert_eq!((again.code, &again.json["approved"]), (0, &Value::Bool(true)), "{again}");
    test.run(&["merge", &id]).ended("merged", "approved", 0);
    // What is here has gone on since.
    test.run(&["import", &back]).refused(2, &["longer than the imported one", "Nothing was changed"]);
}

#[test]
fn fl_05_what_can_t_be_exported_or_joined_is_said() {
    let (test, id, bundle) = exported(&["--auto-merge"]);
    test.run(&["export", "run", &id, "-o", &bundle]).refused(2, &["exists already", "-o <file>"]);
    test.run(&["export", "run", "nothing-like-it"]).refused(2, &["nothing-like-it"]);
    // Another run with the same id.
    let clone = cloned(&test, "other");
    let other = Test::new().play("");
    other.go(&["--auto-merge"]);
    fs::create_dir_all(clone.join(".archeflow/events")).unwrap();
    fs::write(
        clone.join(format!(".archeflow/events/{id}.jsonl")),
        other.journal_bytes(&other.run_ids().pop().unwrap()),
    )
    .unwrap();
    refused(&at(&test, &clone, &["import", &bundle]), 2, &["another run with the id", "Nothing was changed"]);
    // A review has no branch of its own.
    test.file("src/app.txt", "line 1\nline two\n");
    let reviewed = test.look(&["--json"]);
    assert_ne!(reviewed.id, "", "{reviewed}");
    test.run(&["export", "run", &reviewed.id]).refused(2, &["is a review"]);
}
