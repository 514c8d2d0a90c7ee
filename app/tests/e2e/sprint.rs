//! Sprints through the front door: real repositories, real processes, scripted agents.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::hub::{ENDS, PLANS, Projects, ROOM};
use crate::user::{PROGRAM, logs_in, printed, processes, wait_until};

/// What an agent does follows from the name of its item: `red-…` breaks the tests, the others add a file of their own.
const MAKES: &str = r#"
== maker ==
sh mkdir -p src tests && echo made >> "src/$(echo "$ARCHEFLOW_RUN_ID" | cut -d. -f2).txt"
sh echo true >> "tests/$(echo "$ARCHEFLOW_RUN_ID" | cut -d. -f2)_test.sh"
sh case "$ARCHEFLOW_RUN_ID" in *.red-*) echo red > src/red;; esac"#;

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
    fn new(projects: &[&str]) -> World {
        let world = World { projects: Projects::new(projects) };
        world.write("agents.play", &[PLANS, MAKES, ENDS].concat());
        world
    }

    fn start(&self) -> Child {
        self.start_with(&[])
    }

    fn start_with(&self, more: &[&str]) -> Child {
        self.begin("test ! -e src/red", &[], more)
    }

    fn run(&self) -> Output {
        self.start().wait_with_output().unwrap()
    }

    /// Every commit the target ever stood at is green, and every item landed once at most. Gives those that did.
    fn landed(&self, project: &str) -> Vec<String> {
        let git = |arguments: &[&str]| self.git(project, arguments);
        for commit in git(&["rev-list", "--first-parent", "main"]).lines() {
            let red = git(&["ls-tree", "-r", "--name-only", commit, "src/red"]);
            assert_eq!(red, "", "{project} was red at {commit}");
        }
        let of_run = "--format=%(trailers:key=Archeflow-Run,valueonly)";
        let runs = git(&["log", "--first-parent", of_run, "main"]);
        let landed = runs.lines().filter(|run| !run.is_empty());
        let mut items: Vec<String> = landed.map(|run| run.split('.').nth(1).unwrap().to_owned()).collect();
        items.sort();
        let count = items.len();
        items.dedup();
        assert_eq!(items.len(), count, "{project}: landed twice\n{runs}");
        assert_eq!(git(&["status", "--porcelain", "--untracked-files=no"]), "", "{project} is dirty");
        items
    }

    fn landed_anywhere(&self) -> Vec<String> {
        let mut landed: Vec<String> = PROJECTS.iter().flat_map(|project| self.landed(project)).collect();
        landed.sort();
        landed
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

const PROJECTS: [&str; 3] = ["shop", "till", "bank"];

/// Items that land, that are red, that wait for others, and one whose project is not there; and what they must become.
fn mixed(world: &World) -> BTreeMap<String, String> {
    let rows: [(&str, &str, &[&str], &str); 8] = [
        ("base", "shop", &["--priority", "P0"], "completed"),
        ("red-tax", "till", &["--priority", "P1"], "failed"),
        ("on-base", "bank", &["--after", "base"], "completed"),
        ("on-red", "shop", &["--after", "red-tax"], "blocked"),
        ("on-on-red", "shop", &["--after", "on-red"], "blocked"),
        ("more", "shop", &[], "completed"),
        ("lost", "nowhere", &[], "failed"),
        ("someday", "till", &["--priority", "P3"], "pending"),
    ];
    rows.iter().for_each(|(id, project, more, _)| world.add(id, project, more));
    rows.iter().map(|(id, _, _, status)| ((*id).to_owned(), (*status).to_owned())).collect()
}

#[test]
fn bx_22_m_n7_every_item_comes_to_its_right_end_and_nothing_lands_red() {
    let world = World::new(&PROJECTS);
    let expected = mixed(&world);
    let output = world.run();
    assert_eq!(world.statuses(), expected, "{}", printed(&output));
    assert_eq!(world.landed_anywhere(), ["base", "more", "on-base"]);
    assert_eq!(output.status.code(), Some(10), "{}", printed(&output));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["reason"], "done");
    let again = world.run();
    assert_eq!(again.status.code(), Some(0), "nothing is left: {}", printed(&again));
    assert_eq!(world.statuses(), expected);
}

/// I6: however often it is killed, wherever it is, the end is the same.
#[test]
fn i6_a_sprint_that_is_killed_again_and_again_ends_the_same() {
    let world = World::new(&PROJECTS);
    let expected = mixed(&world);
    for wait in [40, 150, 320, 480, 700, 900, 1_300, 1_700] {
        let mut child = world.start();
        std::thread::sleep(Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let output = world.run();
    let queue = fs::read_to_string(world.hub().join("docs/orchestra/queue.json")).unwrap();
    assert_eq!(world.statuses(), expected, "{}\n{queue}", printed(&output));
    assert_eq!(world.landed_anywhere(), ["base", "more", "on-base"]);
}

/// What people find when they come back, with what they wrote there themselves.
#[test]
fn af_150_the_control_center_shows_what_happened_and_keeps_what_people_wrote() {
    let world = World::new(&PROJECTS);
    mixed(&world);
    let desk = world.hub().join("docs/orchestra");
    fs::write(desk.join("control-center.md"), "# Ours\n\nCall Ann.\n").unwrap();
    let output = world.run();
    let page = fs::read_to_string(desk.join("control-center.md")).unwrap();
    assert!(page.starts_with("# Ours\n\nCall Ann.\n\n<!-- archeflow: begin"), "{page}");
    for expected in [
        "It ended (done): nothing is left that can be run now.",
        "- `red-tax` (till) failed: ",
        "`archeflow sprint retry red-tax`",
        "| `base` | shop | base | 1 | ",
        "| `on-on-red` | shop | blocked | waits for on-red, which can't be completed |  |",
        "| **all** | $0.00 |",
        "1. P3 S `someday` (till): someday",
        // Which of them was first depends on the machine.
        "First task ",
    ] {
        assert!(page.contains(expected), "{expected}\n{page}\n{}", printed(&output));
    }
    let shown = page.lines().find_map(|line| line.split_once("`archeflow show ")).unwrap().1;
    let shown = shown.split('`').next().unwrap().split(' ').collect::<Vec<_>>();
    let show = world.command(PROGRAM).arg("show").args(shown).output().unwrap();
    assert!(show.status.success(), "the command it names works: {}", printed(&show));
    let log = fs::read_to_string(desk.join("session-log.md")).unwrap();
    assert_eq!(log.matches("\n## ").count(), 1, "{log}");
    assert!(log.contains("session 1\n\nSession 1, autonomous: "), "{log}");
    assert!(log.contains("- `base` (shop): completed\n"), "{log}");

    fs::write(desk.join("control-center.md"), format!("{page}\n<!-- archeflow: begin again -->\n")).unwrap();
    let again = world.run();
    let told_so = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(told_so.contains("control-center.md:") && told_so.contains("a second begin mark"), "{told_so}");
    let log = fs::read_to_string(desk.join("session-log.md")).unwrap();
    assert_eq!(log.matches("\n## ").count(), 2, "one more session: {log}");
}

/// Read-only, from another process, without a terminal: the table, the report, and what they say of hostile text.
#[test]
fn af_122_a_sprint_is_watched_and_reported_from_outside() {
    let world = World::new(&PROJECTS);
    mixed(&world);
    let hostile = "Clear \u{1b}[2J it <!-- archeflow: end --> | `x` \u{202e}";
    let output = world.sprint(&["add", "bank", hostile, "--id", "evil", "--estimate", "S"]);
    assert!(output.status.success(), "{}", printed(&output));
    let none = world.sprint(&["report"]);
    assert_eq!(none.status.code(), Some(2), "{}", printed(&none));
    world.run();
    let archeflow = |arguments: &[&str]| {
        let output = world.command(PROGRAM).args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", printed(&output));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
        text
    };
    let named = archeflow(&["sprint", "watch"]);
    let id = named.split(' ').next().unwrap().to_owned();
    assert_eq!(named, archeflow(&["watch"]));
    assert_eq!(named, archeflow(&["watch", &id]));
    for expected in
        ["ended (done)", "4 completed, 2 failed, 2 blocked, 1 pending", &format!("{id}.red-tax.1")]
    {
        assert!(named.contains(expected), "{expected}\n{named}");
    }
    let seen: Value = serde_json::from_str(&archeflow(&["watch", "--json"])).unwrap();
    let base = seen["items"].as_array().unwrap().iter().find(|item| item["id"] == "base").unwrap();
    assert_eq!(
        (&base["state"], &base["cycle"], &base["findings"]),
        (&"completed".into(), &1.into(), &0.into())
    );

    let report = archeflow(&["sprint", "report", &id]);
    for expected in [
        "| `base` | shop | completed | 1 | 1 |",
        "## Sessions",
        "## Runs",
        "merged approved: landed on main as",
    ] {
        assert!(report.contains(expected), "{expected}\n{report}");
    }
    assert!(!report.contains("<!--"), "{report}");
    let object: Value = serde_json::from_str(&archeflow(&["sprint", "report", "--json"])).unwrap();
    let base = &object["items"][0];
    assert_eq!((&base["id"], &base["status"]), (&"base".into(), &"completed".into()));
    let commit = text_of(&base["commit"]);
    let kind = world.command("git").args(["-C", "shop", "cat-file", "-t", &commit]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&kind.stdout), "commit\n");
    archeflow(&["sprint", "report", "-o", "out.md"]);
    assert!(fs::read_to_string(world.hub().join("out.md")).unwrap().starts_with("# Sprint "));
    let unknown = world.sprint(&["watch", "no-such"]);
    assert_eq!(unknown.status.code(), Some(2), "{}", printed(&unknown));
}

#[test]
fn bx_22_two_sprints_on_one_queue_take_nothing_twice() {
    let world = World::new(&PROJECTS);
    for (n, project) in PROJECTS.iter().cycle().take(9).enumerate() {
        world.add(&format!("i{n}"), project, &[]);
    }
    let (one, two) = (world.start(), world.start());
    let outputs = [one, two].map(|child| child.wait_with_output().unwrap());
    let all = outputs.each_ref().map(printed).join("\n");
    assert!(world.statuses().values().all(|status| status == "completed"), "{all}");
    assert_eq!(world.landed_anywhere().len(), 9, "{all}");
    let taken = outputs.iter().map(|output| {
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        object["items"].as_array().unwrap().len()
    });
    assert_eq!(taken.sum::<usize>(), 9, "{all}");
}

/// What is asked for wrongly is said before there is a sprint, and one that was killed before it began is used.
#[test]
fn bx_22_a_wrong_bound_begins_nothing() {
    let world = World::new(&["shop"]);
    world.add("base", "shop", &[]);
    let sprints = world.hub().join(".archeflow/sprints");
    let logs = || {
        let entries = fs::read_dir(&sprints).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "jsonl")).count()
    };
    for wrong in [
        ["--slots", "0"],
        ["--slots", "129"],
        ["--batch", "0"],
        ["--budget", "much"],
        ["--share", "shop=140%"],
    ] {
        let output = world.sprint(&["run", "--autonomous", wrong[0], wrong[1]]);
        assert_eq!(output.status.code(), Some(2), "{}", printed(&output));
        assert!(String::from_utf8_lossy(&output.stderr).contains(wrong[1]), "{}", printed(&output));
        assert_eq!(logs(), 0, "{wrong:?}");
    }
    fs::create_dir_all(&sprints).unwrap();
    fs::write(sprints.join("2020-01-01-sprint.jsonl"), "").unwrap();
    // Whoever keeps the whole home in a repository has the state folder inside it; that is none of a sprint's business.
    let around = world.command("git").args(["init", "-q"]).current_dir(world.base()).status().unwrap();
    assert!(around.success());
    let output = world.run();
    assert!(output.status.success(), "{}", printed(&output));
    assert_eq!(logs(), 1, "the empty one was used");
}

#[test]
fn bx_22_a_file_can_not_grant_autonomy() {
    let world = World::new(&["shop"]);
    world.add("base", "shop", &[]);
    let path = world.hub().join("docs/orchestra/queue.json");
    let text = fs::read_to_string(&path).unwrap();
    for (mode, more, code) in [("AUTONOMOUS", &[][..], 2), ("PAUSED", &["--autonomous"][..], 21)] {
        fs::write(&path, text.replacen('{', &format!("{{\"mode\": \"{mode}\","), 1)).unwrap();
        let output = world.sprint(&[&["run"][..], more].concat());
        assert_eq!(output.status.code(), Some(code), "{mode}: {}", printed(&output));
        assert_eq!(world.statuses()["base"], "pending", "{mode}");
    }
}

/// What the page tells a newcomer to type works as it stands.
#[test]
fn the_examples_of_the_page_work() {
    let page = include_str!("../../../docs/sprint.md");
    let section = page.split("## In five minutes").nth(1).unwrap();
    let script = section.split("```sh\n").nth(1).unwrap().split("\n```").next().unwrap();
    let world = World::new(&[]);
    let program = Path::new(PROGRAM).parent().unwrap().to_owned();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = world.command("sh");
    let output =
        shell.args(["-ec", script]).env("PATH", path).env_remove("ARCHEFLOW_SHADOWS").output().unwrap();
    assert!(output.status.success(), "{}", printed(&output));
    assert!(world.statuses().values().all(|status| status == "completed"), "{}", printed(&output));
}

impl World {
    /// Agents do this before the Maker's work, and the user's own file says this.
    fn staged(&self, maker: &str, config: &str) {
        let makes = MAKES.replacen("== maker ==\n", &format!("{maker}\n"), 1);
        assert_ne!(makes, MAKES);
        self.write("agents.play", &[PLANS, &makes, ENDS].concat());
        self.configure(&format!("sprint: {{{ROOM}}}\n{config}"));
    }

    fn sprint_id(&self) -> String {
        let logs = logs_in(&self.hub().join(".archeflow/sprints"));
        logs[0].file_stem().unwrap().to_str().unwrap().to_owned()
    }

    /// The kinds of the lines of the only sprint, with its items.
    fn kinds(&self) -> Vec<(String, String)> {
        let logs = logs_in(&self.hub().join(".archeflow/sprints"));
        assert_eq!(logs.len(), 1, "{logs:?}");
        let item = |line: &Value| line["data"]["item"].as_str().unwrap_or_default().to_owned();
        self.log().iter().map(|line| (text_of(&line["type"]), item(line))).collect()
    }

    fn count(&self, kind: &str, item: &str) -> usize {
        self.kinds().iter().filter(|(known, of)| known == kind && of == item).count()
    }
}

#[test]
fn af_153_m_n6_three_tasks_that_fail_in_a_row_stop_the_sprint() {
    let world = World::new(&["shop"]);
    for id in ["red-1", "red-2", "red-3"] {
        world.add(id, "shop", &["--priority", "P0"]);
    }
    world.add("fine", "shop", &[]);
    let output = world.run();
    assert_eq!(output.status.code(), Some(10), "{}", printed(&output));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["reason"], "task_failures", "{object}");
    let statuses = world.statuses();
    assert_eq!((&*statuses["red-3"], &*statuses["fine"]), ("failed", "pending"));
    let page = fs::read_to_string(world.hub().join("docs/orchestra/control-center.md")).unwrap();
    assert!(
        page.contains("It ended (task\\_failures)") || page.contains("It ended (task_failures)"),
        "{page}"
    );
}

/// A break calls in whoever runs, and that is nobody's failure: the next sprint goes on with it, counts what somebody
/// finished by hand in between, and begins anew what somebody threw away.
#[test]
fn af_153_runs_stopped_by_a_break_are_resumed() {
    let ways = [("", 1, true), ("resume", 1, true), ("discard", 2, false), ("another task", 2, false)];
    for (by_hand, runs, same) in ways {
        let world = World::new(&["shop", "till"]);
        let waits = "sh case $ARCHEFLOW_RUN_ID in *.slow.*) touch {base}/began; while ! test -e {base}/go; do sleep 0.05; done;; \
                     *) while ! test -e {base}/began; do sleep 0.05; done;; esac";
        world.staged(&format!("== maker ==\n{waits}"), "");
        world.add("slow", "till", &[]);
        for id in ["red-1", "red-2", "red-3"] {
            world.add(id, "shop", &[]);
        }
        let output = world.run();
        assert_eq!(output.status.code(), Some(10), "{}", printed(&output));
        assert_eq!(world.statuses()["slow"], "pending", "{}", printed(&output));
        let page = fs::read_to_string(world.hub().join("docs/orchestra/control-center.md")).unwrap();
        assert!(page.contains("sprint retry red-1") && !page.contains("sprint retry slow"), "{page}");
        let run = format!("{}.slow.1", world.sprint_id());
        fs::write(world.base().join("go"), "").unwrap();
        if by_hand == "another task" {
            let file = world.hub().join("docs/orchestra/queue.json");
            let queue = fs::read_to_string(&file).unwrap();
            fs::write(&file, queue.replace("\"task\": \"slow\"", "\"task\": \"slower\"")).unwrap();
            assert_ne!(fs::read_to_string(&file).unwrap(), queue);
        } else if !by_hand.is_empty() {
            let repo = world.hub().join("till");
            let mut command = world.command(PROGRAM);
            let output = command.args([by_hand, &run, "--unattended", "--repo"]).arg(repo).output().unwrap();
            assert!(output.status.code().is_some_and(|code| code < 20), "{}", printed(&output));
        }
        // What is done already costs nothing, so a small purse does not have it done twice.
        let purse: &[&str] = if by_hand == "resume" { &["--budget", "1"] } else { &[] };
        let output = world.start_with(purse).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{by_hand}: {}", printed(&output));
        assert_eq!((&*world.statuses()["slow"], world.landed("till").len()), ("completed", 1), "{by_hand}");
        let logs = fs::read_dir(world.hub().join("till/.archeflow/events")).unwrap().flatten();
        let logs = logs.filter(|entry| entry.file_name().to_string_lossy().contains(".slow."));
        assert_eq!(logs.count(), runs, "{by_hand}");
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        let slow = said["items"].as_array().unwrap().iter().find(|item| item["id"] == "slow").unwrap();
        assert_eq!((slow["run_id"] == run, &slow["attempts"]), (same, &Value::from(1)), "{said}");
        let queue = fs::read_to_string(world.hub().join("docs/orchestra/queue.json")).unwrap();
        assert!(!queue.contains("\"run\":"), "nothing is left to go on with: {queue}");
    }
}

/// A sprint whose only Maker works until it may `go`.
fn at_work() -> (World, Child) {
    let world = World::new(&["shop"]);
    world.staged("== maker ==\nsh touch {base}/began; while ! test -e {base}/go; do sleep 0.05; done", "");
    world.add("base", "shop", &[]);
    let child = world.start();
    world.wait_for_file("began");
    (world, child)
}

/// A sprint that has nothing to do but wait notices what is added, however that is done.
#[test]
fn m_n8_a_sprint_that_waits_acts_on_every_change_of_its_queue() {
    let world = World::new(&["shop", "till"]);
    let waits = "sh case $ARCHEFLOW_RUN_ID in *.base.*) touch {base}/began; while ! test -e {base}/go; do sleep 0.05; done;; esac";
    world.staged(&format!("== maker ==\n{waits}"), "");
    world.add("base", "shop", &[]);
    let child = world.start();
    world.wait_for_file("began");
    let completed = |id: &str| {
        let is_so = || {
            let items = world.queue().ok().and_then(|queue| queue["items"].as_array().cloned());
            items.is_some_and(|items| {
                items.iter().any(|item| item["id"] == id && item["status"] == "completed")
            })
        };
        wait_until(is_so, || format!("{id} was not done: {:?}", world.queue()));
    };
    world.add("by-command", "till", &[]);
    completed("by-command");
    // As an editor that keeps the file would write it.
    let queue = fs::read_to_string(world.queue_file()).unwrap();
    let more = |id: &str| {
        format!(
            r#"{{"id": "{id}", "project": "till", "task": "{id}", "priority": "P1", "estimate": "S", "status": "pending"}},"#
        )
    };
    fs::write(
        world.queue_file(),
        queue.replacen("\"items\": [", &format!("\"items\": [{}", more("in-place")), 1),
    )
    .unwrap();
    completed("in-place");
    // As a checkout of another branch would: the folder is another one.
    let folder = world.hub().join("docs/orchestra");
    let queue = fs::read_to_string(world.queue_file()).unwrap();
    fs::rename(&folder, world.hub().join("docs/before")).unwrap();
    fs::create_dir(&folder).unwrap();
    fs::write(
        world.queue_file(),
        queue.replacen("\"items\": [", &format!("\"items\": [{}", more("other-folder")), 1),
    )
    .unwrap();
    completed("other-folder");
    world.add("at-last", "till", &[]);
    completed("at-last");
    fs::write(world.base().join("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert!(world.statuses().values().all(|status| status == "completed"), "{}", printed(&output));
    assert_eq!(world.landed("till"), ["at-last", "by-command", "in-place", "other-folder"]);
}

#[test]
fn i6_ctrl_c_stops_runs_and_the_next_sprint_resumes_them() {
    let (world, child) = at_work();
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", printed(&output));
    assert_eq!(world.statuses()["base"], "running", "it is still ours: {}", printed(&output));
    let log = fs::read_to_string(world.hub().join("docs/orchestra/session-log.md")).unwrap();
    assert!(log.contains("was interrupted (signal 2)"), "{log}");
    fs::write(world.base().join("go"), "").unwrap();
    let output = world.run();
    assert_eq!(world.statuses()["base"], "completed", "{}", printed(&output));
    assert_eq!(world.count("item.run", "base"), 1, "it was not begun anew");
    assert_eq!(world.count("item.claim", "base"), 1);
}

/// Whoever kills a run of a sprint only makes it go on.
#[test]
fn i6_m_n9_a_killed_run_is_resumed_within_its_sprint() {
    let (world, child) = at_work();
    let base = world.base().display().to_string();
    let is_run = |line: &[u8]| {
        let line = String::from_utf8_lossy(line);
        line.contains("\0run\0--as\0") && line.contains(&base)
    };
    let runs = processes("cmdline").into_iter().filter(|(_, line)| is_run(line));
    let runs: Vec<i32> = runs.map(|(pid, _)| pid).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    fs::write(world.base().join("go"), "").unwrap();
    let pid = rustix::process::Pid::from_raw(runs[0]).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(world.statuses()["base"], "completed", "{}", printed(&output));
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert_eq!((world.count("item.run", "base"), world.landed("shop").len()), (1, 1));
}

/// Two that said they would not meet, and did: the second is run anew on what the first left.
#[test]
fn bx_13_a_conflict_at_landing_starts_a_new_run() {
    let world = World::new(&["shop"]);
    let both = "sh case $ARCHEFLOW_RUN_ID in *.1) touch {base}/began.$ARCHEFLOW_RUN_ID; \
                while test $(ls {base}/began.* | wc -l) -lt 2; do sleep 0.05; done;; esac";
    world.staged(&format!("== maker ==\n{both}\nsh echo $ARCHEFLOW_RUN_ID > src/app.txt"), "");
    world.add("one", "shop", &["--file", "src/one.txt"]);
    world.add("two", "shop", &["--file", "src/two.txt"]);
    let output = world.run();
    assert!(world.statuses().values().all(|status| status == "completed"), "{}", printed(&output));
    assert_eq!(world.landed("shop"), ["one", "two"]);
    let runs = ["one", "two"].map(|id| world.count("item.run", id));
    assert_eq!(runs.iter().sum::<usize>(), 3, "one of them twice: {runs:?}\n{}", printed(&output));
}

#[test]
fn c6_a_run_with_a_busy_provider_resumes_by_itself() {
    let world = World::new(&["shop", "till"]);
    let busy = "== maker attempt=1 ==\ncomplain <<END\ntoo many requests\nEND\nexit 75\n\n== maker ==";
    world.staged(busy, "retries: {busy_waits_seconds: [2], jitter_percent: 0, park_after_seconds: 1}\n");
    world.add("base", "shop", &[]);
    world.add("more", "till", &[]);
    let output = world.run();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    assert!(world.statuses().values().all(|status| status == "completed"), "{}", printed(&output));
    assert_eq!((world.count("item.run", "base"), world.count("item.run", "more")), (1, 1));
    assert!(world.count("item.resume", "base") > 0, "{:?}", world.kinds());
    assert!(world.kinds().iter().any(|(kind, _)| kind == "provider.due"));
}

/// What was blocked by an item runs when that is tried again, and a sprint that blocks something is no success.
#[test]
fn u_02_what_an_item_blocked_runs_when_it_is_tried_again() {
    let world = World::new(&["shop"]);
    world.add("red-a", "shop", &[]);
    world.add("b", "shop", &["--after", "red-a"]);
    world.add("c", "shop", &["--after", "b"]);
    let lost = world.run();
    let stood = |id: &str| world.statuses()[id].clone();
    assert_eq!(lost.status.code(), Some(10), "{}", printed(&lost));
    assert_eq!(
        [stood("red-a"), stood("b"), stood("c")],
        ["failed", "blocked", "blocked"],
        "{}",
        printed(&lost)
    );
    let repaired = MAKES.replace("echo red > src/red", "true");
    world.write("agents.play", &[PLANS, &repaired, ENDS].concat());
    let retried = world.sprint(&["retry", "red-a"]);
    assert!(retried.status.success(), "{}", printed(&retried));
    assert_eq!([stood("red-a"), stood("b"), stood("c")], ["pending", "pending", "pending"]);
    let done = world.run();
    assert_eq!(done.status.code(), Some(0), "{}", printed(&done));
    assert_eq!(world.landed("shop"), ["b", "c", "red-a"]);
}

#[test]
fn u_15_a_sprint_says_that_it_waits_for_the_machine() {
    let world = World::new(&["shop", "site"]);
    world.configure("sprint: {load_percent: 100000, memory_mb: 10000000}\n");
    world.add("base", "shop", &[]);
    world.add("page", "site", &[]);
    let output = world.run();
    assert_eq!(output.status.code(), Some(0), "{}", printed(&output));
    let said = printed(&output);
    assert!(
        said.contains("the machine is busy, so further tasks wait") && said.contains("sprint.memory_mb"),
        "{said}"
    );
}

#[test]
fn u_15_what_needs_approval_is_told_with_the_command() {
    let world = World::new(&["shop"]);
    let config = world.hub().join("shop/.archeflow/config.yaml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "agents: {env: [SECRET]}\n").unwrap();
    world.git("shop", &["add", "-A"]);
    world.git("shop", &["commit", "-qm", "Configure"]);
    world.add("base", "shop", &[]);
    let output = world.run();
    assert_eq!(world.statuses()["base"], "failed", "{}", printed(&output));
    let center = fs::read_to_string(world.hub().join("docs/orchestra/control-center.md")).unwrap();
    assert!(center.contains("archeflow trust --repo"), "{center}\n{}", printed(&output));
}

/// A person at a terminal is asked about each batch, and a no begins nothing.
#[test]
fn af_003_a_batch_is_shown_and_asked_about_in_a_terminal() {
    for (answer, status, code, words) in [
        ("y\n", "completed", 0, "base (shop)"),
        ("\n", "pending", 10, "declined"),
        ("\u{3}", "pending", 130, "interrupted"),
    ] {
        let world = World::new(&["shop"]);
        world.add("base", "shop", &[]);
        let (seen, exit) = in_a_terminal(&world, "Let them run?", answer);
        assert_eq!((exit, &*world.statuses()["base"]), (Some(code), status), "{answer:?}: {seen}");
        assert!(seen.contains("P2 S base (shop): base") && seen.contains(words), "{answer:?}: {seen}");
        if code == 130 {
            let output = world.run();
            assert_eq!(world.statuses()["base"], "completed", "{}", printed(&output));
        }
    }
}

/// Lets a sprint run in a terminal, answers when it asks, and gives what was to be seen.
fn in_a_terminal(world: &World, question: &str, answer: &str) -> (String, Option<i32>) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use std::io::Read;
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let slave = rustix::fs::open(name.as_c_str(), flags, rustix::fs::Mode::empty()).unwrap();
    let end = || Stdio::from(slave.try_clone().unwrap());
    let agent = format!("script:{}", world.base().join("agents.play").display());
    let mut child = world
        .command("setsid")
        .args(["--ctty", "--wait", PROGRAM, "sprint", "run", "--agent", &agent])
        .args(["--test-command", "test ! -e src/red"])
        .stdin(end())
        .stdout(end())
        .stderr(end())
        .spawn()
        .unwrap();
    drop(slave);
    let mut reader = fs::File::from(master.try_clone().unwrap());
    let (mut seen, mut bytes, mut answered) = (Vec::new(), [0; 4_096], false);
    // The terminal ends when nobody has it open any more.
    while let Ok(count @ 1..) = reader.read(&mut bytes) {
        seen.extend_from_slice(&bytes[..count]);
        if !answered && String::from_utf8_lossy(&seen).contains(question) {
            rustix::io::write(&master, answer.as_bytes()).unwrap();
            answered = true;
        }
    }
    (String::from_utf8_lossy(&seen).into_owned(), child.wait().unwrap().code())
}
