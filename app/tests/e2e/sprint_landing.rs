//! The merge queue of a sprint through the front door: candidates that wait at the same time land as one, what is red
//! together is taken apart, and every commit the target ever stands at was tested.

use std::fs;
use std::ops::Deref;
use std::process::{Child, Output};
use std::time::Duration;

use serde_json::Value;

use crate::hub::{ENDS, PLANS, Projects, ROOM};
use crate::user::{PROGRAM, logs_in, printed, wait_until, whole_lines};

const MAKES: &str = r#"
== maker ==
sh sh {base}/make.sh "$(echo "$ARCHEFLOW_RUN_ID" | cut -d. -f2)""#;

/// Each item adds a file of its own, `same-…` change one file as well. Nobody but `first` ends before `first` is being
/// landed, and `same-b` makes nothing before `same-a` is being tested.
const MAKE: &str = r#"
until_there() { n=0; while [ ! -e "$1" ] && [ $n -lt 12000 ]; do sleep 0.1; n=$((n+1)); done; }
case "$1" in
  first|same-a) ;;
  same-b) until_there {base}/same-a.tested ;;
  *) until_there {base}/first.lands ;;
esac
mkdir -p src tests
echo "$1" >> "src/$1.txt"
echo true >> "tests/$1_test.sh"
case "$1" in same-*) echo "$1" >> src/shared.txt ;; esac
"#;

/// Writes down what it was run on. The landing of `first` takes until all others wait to be landed.
const CHECK: &str = r#"
files=$(ls src | tr '\n' ' ')
echo "$files" >> {base}/tests.log
log() { cat {base}/hub/.archeflow/sprints/*.jsonl; }
until_logged() { n=0; while [ "$(log | grep -c "\"$1\"")" -lt "$2" ] && [ $n -lt 12000 ]; do sleep 0.1; n=$((n+1)); done; }
if [ "$files" = "app.txt first.txt " ] && [ ! -e {base}/first.lands ] && [ "$(grep -c -x "$files" {base}/tests.log)" -ge 2 ]; then
  touch {base}/first.lands
  until_logged item.ended "$(cat {base}/count)"
  if [ -e {base}/meanwhile.sh ]; then sh {base}/meanwhile.sh; fi
fi
if [ "$files" = "app.txt same-a.txt shared.txt " ] && [ ! -e {base}/same-a.tested ]; then
  touch {base}/same-a.tested
  until_logged item.overlap 1
fi
if [ -e {base}/hold ] && [ "$files" = "a.txt app.txt b.txt c.txt first.txt " ]; then
  touch {base}/held
  n=0; while [ -e {base}/hold ] && [ $n -lt 12000 ]; do sleep 0.1; n=$((n+1)); done
fi
if [ -e src/left.txt ] && [ -e src/right.txt ]; then echo "left and right do not agree"; exit 1; fi
"#;

struct World {
    projects: Projects,
}

impl Deref for World {
    type Target = Projects;

    fn deref(&self) -> &Projects {
        &self.projects
    }
}

impl World {
    /// A project in which these are to be done side by side, in this order.
    fn new(items: &[&str]) -> World {
        let world = World { projects: Projects::new(&["shop"]) };
        world.configure(&format!("preflight: false\nsprint: {{slots: 8, checkpoint_tasks: 100, {ROOM}}}\n"));
        world.write("agents.play", &[PLANS, MAKES, ENDS].concat());
        world.write("make.sh", MAKE);
        world.write("check.sh", CHECK);
        world.write("count", &items.len().to_string());
        for (n, id) in items.iter().enumerate() {
            let (file, priority) = (format!("src/{id}.txt"), if n == 0 { "P0" } else { "P1" });
            world.add(id, "shop", &["--priority", priority, "--file", &file]);
        }
        world
    }

    fn start(&self, variables: &[(&str, &str)], more: &[&str]) -> Child {
        self.begin(&format!("sh {}", self.base().join("check.sh").display()), variables, more)
    }

    fn run(&self) -> Output {
        self.start(&[], &[]).wait_with_output().unwrap()
    }

    fn shop(&self, arguments: &[&str]) -> String {
        self.git("shop", arguments)
    }

    /// What the test command was run on, in order.
    fn tests(&self) -> Vec<String> {
        let log = fs::read_to_string(self.base().join("tests.log")).unwrap();
        log.lines().map(|line| line.trim().to_owned()).collect()
    }

    /// The items in the order in which they landed. Git has written down every commit the target ever stood at: each is
    /// green and was tested as it is. What landed says so in its own log, and nothing else does.
    fn landed(&self, moves: usize) -> Vec<String> {
        let landed = self.landed_somehow();
        let stood = self.shop(&["reflog", "show", "--format=%H", "main"]).lines().count();
        assert_eq!(stood, moves + 1, "{}", self.shop(&["log", "--graph", "--oneline", "main"]));
        landed
    }

    fn landed_somehow(&self) -> Vec<String> {
        let stood: Vec<String> =
            self.shop(&["reflog", "show", "--format=%H", "main"]).lines().map(str::to_owned).collect();
        let tests = self.tests();
        for commit in stood.iter().rev().skip(1) {
            let names =
                self.shop(&["ls-tree", "--name-only", commit, "src/"]).replace("src/", "").replace('\n', " ");
            assert!(!(names.contains("left.txt") && names.contains("right.txt")), "red at {commit}: {names}");
            let by_a_person = !self.shop(&["log", "-1", "--format=%b", commit]).contains("Archeflow-Run: ");
            assert!(
                by_a_person || tests.contains(&names.trim().to_owned()),
                "{names} was never tested: {tests:?}"
            );
        }
        assert_eq!(
            self.shop(&["status", "--porcelain", "--untracked-files=no"]),
            "",
            "the checkout is dirty"
        );
        let of_run = "--format=%H %(trailers:key=Archeflow-Run,valueonly,separator=)";
        let log = self.shop(&["log", "--first-parent", "--reverse", of_run, "main"]);
        let mut landed = Vec::new();
        let landings = log.lines().filter_map(|line| line.split_once(' ').filter(|(_, run)| !run.is_empty()));
        for (commit, run) in landings {
            let complete = self.last_complete(run);
            assert_eq!(complete["status"], "merged", "{run}: {complete}");
            assert_eq!(complete["merged_oid"], commit, "{run}: {complete}");
            landed.push(run.split('.').nth(1).unwrap().to_owned());
        }
        let runs = fs::read_dir(self.hub().join("shop/.archeflow/events")).unwrap().flatten();
        let runs =
            runs.filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".jsonl").map(str::to_owned));
        let runs = runs.filter(|run| run.contains("-sprint."));
        let merged = runs.filter(|run| self.last_complete(run)["status"] == "merged").count();
        assert_eq!(merged, landed.len(), "a run says that it landed and did not");
        landed
    }

    fn journal(&self, run: &str) -> Vec<Value> {
        let path = self.hub().join(format!("shop/.archeflow/events/{run}.jsonl"));
        whole_lines(&fs::read_to_string(path).unwrap())
    }

    fn last_complete(&self, run: &str) -> Value {
        let journal = self.journal(run);
        let complete = journal.iter().rev().find(|line| line["type"] == "run.complete");
        let told = || {
            let last: Vec<String> = journal.iter().rev().take(6).map(Value::to_string).collect();
            format!("{run} has not ended: {last:#?}\n{:#?}", self.fields("notes"))
        };
        complete.unwrap_or_else(|| panic!("{}", told()))["data"].clone()
    }

    /// Lines of one type in the sprint's log.
    fn logged(&self, kind: &str) -> Vec<Value> {
        self.log().into_iter().filter(|line| line["type"] == kind).map(|line| line["data"].clone()).collect()
    }
}

fn all_completed(world: &World, output: &Output) {
    assert!(world.statuses().values().all(|status| status == "completed"), "{}", printed(output));
}

#[test]
fn i8_candidates_that_wait_together_are_tested_once_and_land_in_one_step() {
    let world = World::new(&["first", "a", "b", "c"]);
    let output = world.run();
    all_completed(&world, &output);
    assert_eq!(world.landed(2), ["first", "a", "b", "c"], "{}", printed(&output));
    // Each run when it was approved, then the first landing, then the three.
    assert_eq!(world.tests().len(), 4 + 1 + 1, "{:?}", world.tests());
    let sprint = world.logged("batch.land");
    let detail =
        world.last_complete(sprint[0]["candidates"][0]["run_id"].as_str().unwrap())["detail"].to_string();
    let tip = world.shop(&["rev-parse", "main"]);
    assert!(detail.contains(&format!("tested as {}", &tip[..10])), "{detail}");
}

/// However a change comes onto the target. Where somebody wants to see each landing, each is one.
#[test]
fn i8_settings_of_the_user_hold_for_those_that_land_together() {
    for (file, config, moves, tests) in [
        ("config.yaml", "git: {merge_strategy: squash}", 2, 6),
        ("config.yaml", "git: {merge_strategy: rebase}", 2, 6),
        ("hooks.yaml", "pre-merge: {command: \"true\"}", 4, 8),
    ] {
        let world = World::new(&["first", "a", "b", "c"]);
        if file == "config.yaml" {
            let sprint = format!("sprint: {{slots: 8, checkpoint_tasks: 100, {ROOM}}}");
            world.configure(&format!("preflight: false\n{sprint}\n{config}"));
        } else {
            world.write(&format!("home/.config/archeflow/{file}"), config);
        }
        let output = world.run();
        all_completed(&world, &output);
        let stood = world.shop(&["reflog", "show", "--format=%H", "main"]).lines().count();
        assert_eq!(stood, moves + 1, "{config}: {}", printed(&output));
        assert_eq!(world.tests().len(), tests, "{config}: {:?}", world.tests());
        for run in world.logged("item.ended") {
            let complete = world.last_complete(run["end"]["run_id"].as_str().unwrap());
            assert_eq!(complete["status"], "merged", "{config}: {complete}");
            let commit = complete["merged_oid"].as_str().unwrap();
            world.shop(&["merge-base", "--is-ancestor", commit, "main"]);
        }
    }
}

#[test]
fn bx_28_what_blocks_one_run_is_reported_in_that_run() {
    let world = World::new(&["first", "a", "b", "c"]);
    world.write("meanwhile.sh", "echo mine > {base}/hub/shop/src/b.txt");
    let output = world.run();
    assert_eq!(world.statuses()["b"], "failed", "{}", printed(&output));
    assert_eq!(world.landed(3), ["first", "a", "c"], "{}", printed(&output));
    assert_eq!(fs::read_to_string(world.hub().join("shop/src/b.txt")).unwrap(), "mine\n");
    assert!(printed(&output).contains("dirty_tree"), "{}", printed(&output));
}

#[test]
fn i8_without_batches_each_is_tested_by_itself() {
    let world = World::new(&["first", "a", "b", "c"]);
    let output = world.start(&[], &["--batch", "1"]).wait_with_output().unwrap();
    all_completed(&world, &output);
    assert_eq!(world.landed(4), ["first", "a", "b", "c"], "{}", printed(&output));
    assert_eq!(world.tests().len(), 4 + 4, "{:?}", world.tests());
}

#[test]
fn i8_who_is_red_only_beside_another_is_found_and_the_others_land() {
    let world = World::new(&["first", "a", "left", "b", "right"]);
    let output = world.run();
    let statuses = world.statuses();
    assert_eq!(statuses["right"], "failed", "{}", printed(&output));
    assert_eq!(statuses.values().filter(|status| *status == "completed").count(), 4, "{}", printed(&output));
    assert_eq!(world.landed(3), ["first", "a", "left", "b"], "{}", printed(&output));
    // All four, the first two, the third, and the culprit for its refusal.
    assert_eq!(world.tests().len(), 5 + 1 + 4, "{:?}", world.tests());
    let right = world.logged("item.run").iter().any(|run| run["item"] == "right" && run["attempt"] == 2);
    assert!(!right, "what is red is not run again");
    assert!(printed(&output).contains("left and right do not agree"), "{}", printed(&output));
    assert!(
        printed(&output).contains("a, left, b, right are red together; taking them apart"),
        "{}",
        printed(&output)
    );
}

#[test]
fn bx_28_who_conflicts_stays_behind_and_is_run_again() {
    for conflicting in ["a", "c"] {
        let world = World::new(&["first", "a", "b", "c"]);
        let commit = "git -C {base}/hub/shop -c user.name=Jo -c user.email=jo@example.org commit -q";
        let mine = format!(
            "echo mine > {{base}}/hub/shop/src/{conflicting}.txt && git -C {{base}}/hub/shop add src && {commit} -m Mine"
        );
        world.write("meanwhile.sh", &mine);
        let output = world.run();
        all_completed(&world, &output);
        let others: Vec<&str> =
            ["first", "a", "b", "c"].into_iter().filter(|id| *id != conflicting).collect();
        let expected: Vec<&str> = others.into_iter().chain([conflicting]).collect();
        // A person's commit, first, two together, and the one that was run again.
        assert_eq!(world.landed(4), expected, "{}", printed(&output));
        let runs = world.logged("item.run");
        let again: Vec<&Value> = runs.iter().filter(|run| run["attempt"] == 2).collect();
        assert_eq!(again.len(), 1, "{}", printed(&output));
        assert_eq!(again[0]["item"], conflicting);
    }
}

#[test]
fn bx_28_two_that_change_the_same_are_seen_early_and_one_waits() {
    let world = World::new(&["same-a", "same-b"]);
    let output = world.run();
    all_completed(&world, &output);
    assert_eq!(world.landed(2), ["same-a", "same-b"], "{}", printed(&output));
    let seen = world.logged("item.overlap");
    assert_eq!(seen[0]["files"], serde_json::json!(["src/shared.txt"]));
    let line = "same-a and same-b both change src/shared.txt: same-b waits for same-a";
    assert!(printed(&output).contains(line), "{}", printed(&output));
    let runs = world.logged("item.ended");
    let first =
        runs.iter().map(|end| end["end"]["run_id"].as_str().unwrap()).find(|run| run.ends_with("same-b.1"));
    let tried = world.journal(first.unwrap()).iter().any(|line| line["type"] == "merge.requested");
    assert!(!tried, "a landing that is bound to conflict is not tried");
    let shared = world.shop(&["show", "main:src/shared.txt"]);
    assert_eq!(shared, "same-a\nsame-b\n");
}

/// The run that carries the others is killed right after it moved the target, and goes on; or the sprint is killed then
/// as well, and the next one finds what has landed.
#[test]
fn i6_killed_right_after_the_target_moved_all_runs_are_recorded_as_landed() {
    for place in ["land.moved:1", "land.committed:1"] {
        let world = World::new(&["first", "a", "b", "c"]);
        let output = world.start(&[("ARCHEFLOW_FAILPOINT", place)], &[]).wait_with_output().unwrap();
        all_completed(&world, &output);
        assert_eq!(world.landed(2), ["first", "a", "b", "c"], "{place}: {}", printed(&output));
        assert_eq!(world.tests().len(), 4 + 1 + 1, "{place}: {:?}", world.tests());
    }

    let world = World::new(&["first", "a", "b", "c"]);
    let pause = world.base().join("paused");
    let variable = format!("land.committed={}", pause.display());
    let mut child = world.start(&[("ARCHEFLOW_FAILPOINT_PAUSE", &variable)], &[]);
    let landed_together = || {
        let together = !world.logged("batch.land").is_empty();
        if pause.exists() && !together {
            // The landing of the first alone.
            fs::remove_file(&pause).unwrap();
        }
        pause.exists() && together
    };
    wait_until(landed_together, || "nothing landed together".to_owned());
    child.kill().unwrap();
    child.wait().unwrap();
    let output = world.run();
    all_completed(&world, &output);
    assert_eq!(world.landed(2), ["first", "a", "b", "c"], "{}", printed(&output));
    assert_eq!(world.tests().len(), 4 + 1 + 1, "{:?}", world.tests());
}

/// Ctrl-C while they are being tested: nobody is to blame, and the next sprint goes on.
#[test]
fn i6_stopped_amid_its_tests_a_batch_lands_later() {
    let world = World::new(&["first", "a", "b", "c"]);
    world.write("hold", "");
    let child = world.start(&[], &[]);
    world.wait_for_file("held");
    let pid = child.id().to_string();
    assert!(world.command("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", printed(&output));
    fs::remove_file(world.base().join("hold")).unwrap();
    let output = world.run();
    all_completed(&world, &output);
    assert_eq!(world.landed(2), ["first", "a", "b", "c"], "{}", printed(&output));
}

/// I6: however often a sprint is killed on its way, the end is the same.
#[test]
fn i6_a_merge_queue_that_is_killed_again_and_again_ends_the_same() {
    let world = World::new(&["first", "a", "left", "b", "right"]);
    let mut lives = 0;
    let output = loop {
        let mut child = world.start(&[], &[]);
        lives += 1;
        let until = lines_of(&world) + 3 + lives % 4;
        while child.try_wait().unwrap().is_none() && (lives > 40 || lines_of(&world) < until) {
            std::thread::sleep(Duration::from_millis(5));
        }
        if child.try_wait().unwrap().is_some() {
            break child.wait_with_output().unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
    };
    assert!(lives > 5, "it was hardly killed");
    let landed = world.landed_somehow();
    let mut sorted = landed.clone();
    sorted.sort();
    let refused = if landed.contains(&"left".to_owned()) { "right" } else { "left" };
    assert_eq!(world.statuses()[refused], "failed", "{lives} lives: {}", printed(&output));
    let others: Vec<&str> =
        ["a", "b", "first", "left", "right"].into_iter().filter(|id| *id != refused).collect();
    assert_eq!(sorted, others, "{lives} lives: {}", printed(&output));
}

fn lines_of(world: &World) -> usize {
    let logs = logs_in(&world.hub().join(".archeflow/sprints"));
    logs.iter().map(|path| fs::read_to_string(path).unwrap().lines().count()).sum()
}

/// What a sprint tells runs can be told by hand, and is not believed.
#[test]
fn i8_a_run_says_that_it_landed_only_if_it_did() {
    let world = World::new(&[]);
    world.open_base();
    world.write("first.lands", "");
    let archeflow = |arguments: &[&str]| {
        world.command(PROGRAM).args(arguments).args(["--repo", "shop"]).output().unwrap()
    };
    let agent = format!("script:{}", world.base().join("agents.play").display());
    for (run, test) in [("x.a.1", "true"), ("x.b.1", "true"), ("x.c.1", "true"), ("x.d.1", "test -e src")] {
        let output = archeflow(&[
            "run",
            "--as",
            run,
            "--workflow",
            "fast",
            "--unattended",
            "--agent",
            &agent,
            "--test-command",
            test,
            "Do it",
        ]);
        assert_eq!(world.last_complete(run)["reason"], "approved", "{}", printed(&output));
    }
    let old = world.shop(&["rev-parse", "main"]);
    let merge = |arguments: &[&str]| {
        let output = archeflow(&[&["merge", "--unattended"][..], arguments].concat());
        (output.status.code(), printed(&output))
    };
    let waits = |run: &str| assert_eq!(world.last_complete(run)["status"], "awaiting_merge", "{run}");
    let (code, text) = merge(&["x.c.1", "--before", "x.a.1", "--before", "x.d.1"]);
    assert!(code == Some(2) && text.contains("x.d.1 can't land together with others"), "{text}");
    let (code, text) = merge(&["x.a.1", "--landed-with", "x.c.1"]);
    assert!(code == Some(2) && text.contains("x.a.1 did not land with x.c.1"), "{text}");
    waits("x.a.1");
    waits("x.c.1");
    assert_eq!(world.shop(&["rev-parse", "main"]), old);
    let (code, text) = merge(&["x.c.1", "--before", "x.a.1", "--before", "x.b.1"]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = merge(&["x.b.1", "--landed-with", "x.c.1"]);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(world.last_complete("x.b.1")["status"], "merged", "{text}");
    // Somebody takes it all away before the other has looked.
    world.shop(&["reset", "-q", "--hard", old.trim()]);
    let (_, text) = merge(&["x.a.1", "--landed-with", "x.c.1"]);
    let complete = world.last_complete("x.a.1");
    assert_eq!(
        (&complete["status"], &complete["reason"]),
        (&"stopped".into(), &"base_moved".into()),
        "{text}"
    );
    assert!(complete["merged_oid"].is_null(), "{complete}");
}
