//! A run that lands on a branch of a remote, by a push (fleet, part 2).

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Outcome, Test, each};
use crate::transfer::{at, cloned_from, file, git, moved};
use crate::user::{printed, wait_until};

const PROGRAM: &str = env!("CARGO_BIN_EXE_archeflow");
const LAND: [&str; 3] = ["--auto-merge", "--remote", "origin"];

/// A repository whose `main` is on a remote.
fn scene() -> (Test, PathBuf) {
    let test = Test::new().play("");
    let origin = test.repo.with_file_name("origin.git");
    test.sh(&format!("git init -q --bare -b main {}", origin.display()));
    test.git(["remote", "add", "origin", origin.to_str().unwrap()]);
    test.git(["push", "-q", "origin", "main"]);
    (test, origin)
}

/// How many merges of runs are in the remote's branch, and its commit.
fn landed(origin: &Path) -> (usize, String) {
    let merges = git(origin, &["log", "--format=%H", "--grep=archeflow", "-i", "main"]);
    let made = git(origin, &["show", "main:src/app.txt"]).matches("made in").count();
    assert_eq!(merges.lines().count().min(1), made, "{merges}");
    (made, git(origin, &["rev-parse", "main"]))
}

fn turn(origin: &Path, id: &str) -> String {
    git(origin, &["for-each-ref", "--format=%(objectname)", &format!("refs/archeflow/turn/{id}")])
}

fn somebody_pushes(test: &Test, origin: &Path, name: &str) -> String {
    let clone = test.repo.with_file_name(format!("colleague-{name}"));
    cloned_from(test, origin, &clone);
    fs::write(clone.join(name), "theirs\n").unwrap();
    git(&clone, &["add", "."]);
    git(&clone, &["commit", "-q", "-m", "theirs"]);
    git(&clone, &["push", "-q", "origin", "main"]);
    git(&clone, &["rev-parse", "HEAD"])
}

#[test]
fn fl_10_a_run_lands_on_the_remote_and_leaves_the_local_branch_alone() {
    let (test, origin) = scene();
    let here = test.git(["rev-parse", "main"]);
    // The remote is ahead of what is here.
    let theirs = somebody_pushes(&test, &origin, "a");
    let run = test.go(&LAND).ended("merged", "approved", 0);
    let (count, tip) = landed(&origin);
    assert_eq!((count, run.json["merged_oid"].as_str()), (1, Some(tip.as_str())), "{run}");
    assert_eq!(git(&origin, &["rev-parse", "main^1"]), theirs);
    assert_eq!(run.journal[0]["data"]["base"]["target"], "refs/remotes/origin/main");
    assert_eq!((test.git(["rev-parse", "main"]), turn(&origin, &run.id)), (here, tip), "{run}");
    let shown = test.run(&["show", &run.id]);
    assert!(shown.stderr.contains("merged to origin/main"), "{shown}");
    // Taking it back is a push, too.
    test.run(&["revert", &run.id]).ended("merged", "reverted", 0);
    assert!(!git(&origin, &["show", "main:src/app.txt"]).contains("made in"));
    assert!(git(&origin, &["log", "--format=%s", "main"]).contains("theirs"));
}

#[test]
fn fl_11_a_branch_that_moves_meanwhile_is_built_on_and_tested_anew() {
    let (test, origin) = scene();
    let stop = file(&test, "pause");
    let test = test.env("ARCHEFLOW_FAILPOINT_PAUSE", format!("land.begun={stop}"));
    let arguments = test.arguments(crate::harness::TASK, &LAND);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let run = test.during(&arguments, |_| {
        wait_for(&stop);
        somebody_pushes(&test, &origin, "b");
        fs::remove_file(&stop).unwrap();
    });
    // At the same place once more, with nobody in between.
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(run.events("merge.refused").len(), 1, "{run}");
    assert_eq!(run.events("tests.done").len(), 2, "{run}");
    let tested = run.events("tests.done")[1]["tree"].as_str().unwrap().to_owned();
    assert_eq!(git(&origin, &["rev-parse", "main^{tree}"]), tested, "{run}");
    assert_eq!(landed(&origin).0, 1);
    assert_eq!(git(&origin, &["show", "main:b"]), "theirs");
}

fn killed(test: Test, point: &str) -> (Test, Outcome) {
    let test = test.env("ARCHEFLOW_FAILPOINT", point);
    let killed = test.go(&LAND);
    assert!(killed.killed, "{point}\n{killed}");
    (test.env("ARCHEFLOW_FAILPOINT", ""), killed)
}

const POINTS: [&str; 6] =
    ["turn.taken:1", "merge.built:1", "tests.ran:1", "land.begun:1", "land.committed:1", "performed:6"];

#[test]
fn fl_12_killed_anywhere_it_lands_once() {
    each(POINTS, |point| {
        let (test, origin) = scene();
        let (test, run) = killed(test, point);
        test.run(&["resume", &run.id]).ended("merged", "approved", 0);
        let (count, tip) = landed(&origin);
        assert_eq!((count, turn(&origin, &run.id)), (1, tip), "{point}");
    });
}

#[test]
fn fl_13_two_copies_of_a_run_land_once() {
    each(POINTS, |point| {
        let (test, origin) = scene();
        let (test, run) = killed(test, point);
        let clone = test.repo.with_file_name("other");
        cloned_from(&test, &origin, &clone);
        moved(&test, &run.id, &clone);
        let there = at(&test, &clone, &["resume", &run.id]);
        assert!(there.status.success(), "{point}\n{}", printed(&there));
        let (count, tip) = landed(&origin);
        assert_eq!(count, 1, "{point}");
        // The first copy finds that it has landed.
        let here = test.run(&["resume", &run.id]).ended("merged", "approved", 0);
        assert_eq!(here.json["merged_oid"].as_str(), Some(tip.as_str()), "{point}\n{here}");
        assert_eq!((landed(&origin), turn(&origin, &run.id)), ((1, tip.clone()), tip), "{point}");
    });
}

#[test]
fn fl_14_a_session_that_slept_can_t_land_what_another_has() {
    // Before its push, and before its commit is recorded: then the other session builds one of its own.
    each(["land.begun", "merge.built"], |place| {
        let (test, origin) = scene();
        let (stop, bundle) = (file(&test, "pause"), file(&test, "copy.bundle"));
        let test = test.env("ARCHEFLOW_FAILPOINT_PAUSE", format!("{place}={stop}"));
        let arguments = test.arguments(crate::harness::TASK, &LAND);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (clone, copy) = (test.repo.with_file_name("other"), test.repo.with_file_name("copy"));
        let slept = test.during(&arguments, |_| {
            wait_for(&stop);
            cloned_from(&test, &origin, &clone);
            // Exporting a run that is driven is refused; this is what a backup of its folder would have.
            let id = test.run_ids().pop().unwrap();
            test.sh(&format!("cp -a {} {}", test.repo.display(), copy.display()));
            fs::remove_file(copy.join(format!(".archeflow/events/{id}.holder"))).unwrap();
            let there = |clone: &Path, words: &[&str]| {
                let mut command = test.command(PROGRAM);
                let command = command.args(words).current_dir(clone).env("ARCHEFLOW_FAILPOINT_PAUSE", "");
                let done = command.output().unwrap();
                assert!(done.status.success(), "{words:?}\n{}", printed(&done));
            };
            there(&copy, &["export", "run", &id, "-o", &bundle]);
            there(&clone, &["import", &bundle]);
            there(&clone, &["trust", "--run", &id, "--yes"]);
            there(&clone, &["resume", &id]);
            fs::remove_file(&stop).unwrap();
        });
        let (count, tip) = landed(&origin);
        assert_eq!(count, 1, "{place}\n{slept}");
        assert_eq!(
            (slept.code, slept.json["merged_oid"].as_str()),
            (0, Some(tip.as_str())),
            "{place}\n{slept}"
        );
    });
}

fn wait_for(file: &str) {
    wait_until(|| Path::new(file).exists(), || format!("{file} did not appear"));
}

#[test]
fn fl_15_remotes_that_refuse_refs_or_pushes_are_understood() {
    // Only branches are accepted: the turn is one, and git keeps a copy of it as of any branch.
    let (test, origin) = scene();
    let test = test.unaudited();
    let hook = origin.join("hooks/update");
    let refuse = |what: &str, words: &str| {
        let script = format!("#!/bin/sh\ncase \"$1\" in {what}) echo '{words}' >&2; exit 1;; esac\n");
        fs::write(&hook, script).unwrap();
        test.sh(&format!("chmod +x {}", hook.display()));
    };
    refuse("refs/archeflow/*", "only branches");
    let run = test.go(&LAND).ended("merged", "approved", 0);
    assert_eq!(git(&origin, &["rev-parse", &format!("archeflow/turn/{}", run.id)]), landed(&origin).1);
    // A protected branch: what the remote says is passed on, and nothing is lost.
    let (test, origin) = scene();
    let hook = origin.join("hooks/update");
    fs::write(
        &hook,
        "#!/bin/sh\ncase \"$1\" in refs/heads/main) echo 'main is protected' >&2; exit 1;; esac\n",
    )
    .unwrap();
    test.sh(&format!("chmod +x {}", hook.display()));
    let run = test.go(&LAND).ended("failed", "git_fault", 30);
    assert!(run.json["detail"].as_str().unwrap().contains("main is protected"), "{run}");
    assert_eq!(landed(&origin).0, 0);
    fs::remove_file(&hook).unwrap();
    test.run(&["resume", &run.id]).ended("merged", "approved", 0);
    assert_eq!(landed(&origin).0, 1);
}

#[test]
fn fl_16_a_remote_that_is_not_there_is_said_before_anything_starts() {
    let (test, origin) = scene();
    let start = |remote: &str| test.go(&["--remote", remote]);
    start("upstream").refused(30, &["upstream: there is no remote of this name", "git remote -v"]);
    start("--mirror").refused(2, &["--remote"]);
    test.git(["checkout", "-q", "-b", "feature"]);
    start("origin").refused(30, &["it has no branch feature"]);
    test.git(["checkout", "-q", "main"]);
    fs::rename(&origin, origin.with_extension("away")).unwrap();
    start("origin").refused(30, &["does not appear to be a git repository", "Nothing was started"]);
    assert_eq!(test.run_ids(), Vec::<String>::new());
}
