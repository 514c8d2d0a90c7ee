//! Evaluations over a fleet: an evaluating process and workers that are this program. What they come to must be what one
//! machine comes to, however often any of them is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use archeflow_fleet::bus::Bus;
use serde_json::{Value, json};

use crate::user::{PROGRAM, printed, wait_until};
use crate::world::{Started, World, refused};

const TASK: &str = "language: shell\ntask: |\n  Print twice the number that is given.\nvisible: sh tests/run.sh\n\
    hidden: sh hidden/run.sh\nminutes: 10\ndollars: 1.50\ntraps:\n  - name: constant\n    kind: wrong_change\n    \
    text: The number of the visible test is in the program.\n    fallen: grep -q 'echo 4' double.sh\n";

const FILES: [(&str, &str); 6] = [
    ("task.yaml", TASK),
    ("base/double.sh", "echo \"$1\"\n"),
    ("base/tests/run.sh", "test -n \"$(sh double.sh 2)\"\n"),
    ("hidden/run.sh", "test \"$(sh double.sh 21)\" = 42\n"),
    ("reference/double.sh", "echo $(($1 * 2))\n"),
    ("trap/double.sh", "echo $(($1 + 2))\n"),
];

/// A Maker that is wrong half of the time, and reviewers that notice most of it.
const MIXED: &str = "maker:\n  wrong: 0.5\n  fixes: 0.8\nreviewer:\n  recall: 0.7\n";
const ARMS: &str = "single,self-review";

/// An agent that solves the task, once it may.
const SOLVER: &str = r#"cat > /dev/null
echo "$ARCHEFLOW_RUN_ID" >> "{base}/sent"
while [ -e "{base}/hold" ]; do sleep 0.05; echo waiting >&2; done
echo 'echo $(($1 * 2))' > double.sh
echo 'test "$(sh double.sh 3)" = 6' >> tests/run.sh
git add -A && git commit -qm Work
printf '## Summary\n\nDone.\n\n## Tests\n\nall pass\n\nSTATUS: DONE %s\n' "$ARCHEFLOW_CODE"
"#;

/// A suite of two tasks, and a folder for repositories.
fn world() -> World {
    let world = World::new();
    let suite = world.base().join("suite");
    for (path, text) in FILES {
        for task in ["double", "again"] {
            put(&suite.join(task).join(path), text);
        }
    }
    put(&suite.join("suite.yaml"), "name: tiny\nabout: Shell tasks of a test\n");
    put(&world.base().join("mixed.yaml"), MIXED);
    put(&world.base().join("solver.sh"), &SOLVER.replace("{base}", &world.base().display().to_string()));
    fs::create_dir(world.base().join("remotes")).unwrap();
    world
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn evaluation(world: &World, output: &str, more: &[&str]) -> Command {
    let mut command = world.command(PROGRAM);
    command.args(["eval", "run", "suite", "--output", output, "--unsafe-no-sandbox", "--yes"]).args(more);
    command
}

fn on_fleet(world: &World, more: &[&str]) -> Command {
    let mut command = evaluation(world, "evaluation", more);
    command.arg("--fleet").arg(world.join_file("boss"));
    command.args(["--remotes", "remotes", "--lease-seconds", "6"]);
    command
}

fn start(world: &World, mut command: Command) -> Started {
    let said = world.base().join("said-boss");
    let log = fs::File::options().create(true).append(true).open(&said).unwrap();
    let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
    Started { child, said }
}

fn everything(world: &World) -> String {
    let boss = fs::read_to_string(world.base().join("said-boss")).unwrap_or_default();
    format!("boss:\n{boss}\n{}", world.said())
}

#[track_caller]
fn ended(world: &World, output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}\n{}", printed(output), everything(world));
}

/// The lines of `trials.jsonl` without the time, by task, arm and repeat.
fn trials(world: &World, output: &str) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(world.base().join(output).join("trials.jsonl")).unwrap_or_default();
    let mut found = BTreeMap::new();
    for line in text.lines() {
        let mut trial: Value = serde_json::from_str(line).unwrap();
        trial["seconds"] = json!(0);
        let key = format!("{} {} {}", trial["task"], trial["arm"], trial["repeat"]);
        assert!(found.insert(key, trial).is_none(), "written twice: {line}");
    }
    found
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// Repositories of trials that exist for workers.
fn remotes(world: &World) -> Vec<PathBuf> {
    listed(&world.base().join("remotes")).iter().flat_map(|evaluation| listed(evaluation)).collect()
}

/// Nothing of trials that are over is left, neither here nor at these workers nor at the server.
fn is_clean(world: &World, workers: &[&str]) {
    assert_eq!(remotes(world), Vec::<PathBuf>::new());
    assert_eq!(listed(&world.base().join("evaluation/trials")), Vec::<PathBuf>::new());
    let clones = || -> Vec<PathBuf> {
        let homes = workers.iter().map(|name| world.base().join(format!("home-{name}/state/evaluations")));
        let evaluations = homes.flat_map(|home| listed(&home));
        evaluations.flat_map(|one| listed(&one.join("repos"))).collect()
    };
    wait_until(|| clones().is_empty(), || format!("{:?}\n{}", clones(), everything(world)));
    let waiting = || world.bus.next_from("AF_ORDERS", "af1.o.>", 1).unwrap().is_some();
    wait_until(|| !waiting(), || format!("an order is left\n{}", everything(world)));
}

#[test]
fn ev_160_a_fleet_comes_to_the_same_trials_as_one_machine() {
    let world = world();
    let more = ["--agent", "sim:mixed.yaml", "--arms", ARMS, "--repeat", "2", "--seed", "7"];
    let local = evaluation(&world, "local", &more).output().unwrap();
    ended(&world, &local, 0);
    let _workers = ["w1", "w2"].map(|name| world.worker_with(name, &["--slots", "2"]));
    let output = on_fleet(&world, &more).output().unwrap();
    ended(&world, &output, 0);
    assert_eq!(trials(&world, "evaluation"), trials(&world, "local"), "{}", everything(&world));
    assert_eq!(trials(&world, "evaluation").len(), 8);
    let names = |output: &str| {
        let mut names: Vec<_> = listed(&world.base().join(output).join("journals"))
            .iter()
            .map(|path| path.file_name().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("evaluation"), names("local"));
    is_clean(&world, &["w1", "w2"]);
    // It is extended on the fleet, and only there.
    let more =
        ["--agent", "sim:mixed.yaml", "--arms", ARMS, "--repeat", "3", "--seed", "7", "--tasks", "double"];
    let output = on_fleet(&world, &more).output().unwrap();
    ended(&world, &output, 0);
    let local = evaluation(&world, "local", &more).output().unwrap();
    ended(&world, &local, 0);
    assert_eq!(trials(&world, "evaluation"), trials(&world, "local"));
    let output = evaluation(&world, "evaluation", &more).output().unwrap();
    refused(&output, 2, &["was begun on a fleet", "--remotes"]);
    let mut command = evaluation(&world, "local", &more);
    command.arg("--fleet").arg(world.join_file("boss")).args(["--remotes", "remotes"]);
    refused(&command.output().unwrap(), 2, &["was begun on this machine"]);
}

#[test]
fn ev_161_whoever_is_killed_it_comes_to_the_same() {
    let world = world();
    let more = ["--agent", "sim:mixed.yaml", "--arms", ARMS, "--repeat", "2", "--seed", "7"];
    ended(&world, &evaluation(&world, "local", &more).output().unwrap(), 0);
    let mut workers = vec![world.worker("w1"), world.worker("w2")];
    for already in [0, 1, 3, 5] {
        let boss = start(&world, on_fleet(&world, &more));
        let is_far = || trials(&world, "evaluation").len() >= already && !remotes(&world).is_empty();
        let is_over = || trials(&world, "evaluation").len() == 8;
        wait_until(|| is_far() || is_over(), || everything(&world));
        boss.kill();
        let which = already % 2;
        workers.remove(which).kill();
        workers.insert(which, world.worker(["w1", "w2"][which]));
    }
    let output = on_fleet(&world, &more).output().unwrap();
    ended(&world, &output, 0);
    assert_eq!(trials(&world, "evaluation"), trials(&world, "local"), "{}", everything(&world));
    is_clean(&world, &["w1", "w2"]);
}

/// How often the agent was sent.
fn sent(world: &World) -> usize {
    fs::read_to_string(world.base().join("sent")).unwrap_or_default().lines().count()
}

fn solver(world: &World) -> String {
    format!("cmd:sh {}", world.base().join("solver.sh").display())
}

#[test]
fn ev_162_a_trial_under_way_is_found_again_by_the_next_session_and_the_next_worker() {
    let world = world();
    let (agent, hold) = (solver(&world), world.base().join("hold"));
    let more = ["--agent", &agent, "--arms", "single", "--repeat", "1", "--tasks", "double"];
    // What an agent that was interrupted may have cost counts.
    put(&world.base().join("suite/double/task.yaml"), &TASK.replace("dollars: 1.50", "dollars: 20"));
    fs::write(&hold, "").unwrap();
    let first = world.worker("w1");
    let boss = start(&world, on_fleet(&world, &more));
    wait_until(|| sent(&world) == 1, || everything(&world));
    // The worker goes on while nobody evaluates.
    boss.kill();
    let boss = start(&world, on_fleet(&world, &more));
    first.kill();
    let _second = world.worker("w2");
    wait_until(|| sent(&world) == 2, || everything(&world));
    // Ctrl-C saves the work at the worker, and the next session resumes the run.
    boss.signal("INT");
    assert_eq!(boss.ended(), Some(130), "{}", everything(&world));
    assert!(trials(&world, "evaluation").is_empty(), "{}", everything(&world));
    fs::remove_file(&hold).unwrap();
    let output = on_fleet(&world, &more).output().unwrap();
    ended(&world, &output, 0);
    let trials = trials(&world, "evaluation");
    let trial = trials.values().next().unwrap();
    let result = (trials.len(), &trial["end"], &trial["hidden_pass"]);
    assert_eq!(result, (1, &json!("landed"), &json!(true)), "{trial}\n{}", everything(&world));
    let runs = fs::read_to_string(world.base().join("sent")).unwrap();
    let runs: BTreeSet<&str> = runs.lines().collect();
    assert_eq!(runs.len(), 1, "it was begun anew: {runs:?}");
    // A worker that was killed removes its clone when it is started again.
    is_clean(&world, &["w2"]);
    let _first = world.worker("w1");
    is_clean(&world, &["w1", "w2"]);
}

#[test]
fn ev_163_what_is_wrong_is_said_before_anything_is_ordered() {
    let mut world = world();
    put(&world.base().join("open/config.yaml"), "sandbox:\n  network: full\n");
    put(&world.base().join("hooked/config.yaml"), "workflow: fast\n");
    put(&world.base().join("hooked/hooks.yaml"), "");
    let (boss, worker) = (world.join_file("boss"), world.join_file("w1"));
    let (boss, worker) = (boss.to_str().unwrap(), worker.to_str().unwrap());
    for (fleet, arm, more, code, words) in [
        (boss, "single", &["--remotes", "nowhere"][..], 2, &["nowhere", "No such file"][..]),
        (boss, "single", &["--remotes", "mixed.yaml"], 2, &["mixed.yaml", "no folder"]),
        (boss, "single", &["--remotes", "/proc"], 2, &["/proc"]),
        (boss, "single", &["--remotes", "ssh://git@host/x"], 2, &["only be created in a folder"]),
        (boss, "single", &[], 2, &["--remotes"]),
        (boss, "single", &["--remotes", "remotes", "--need", "gpu"], 2, &["nothing that a worker offers"]),
        (worker, "single", &["--remotes", "remotes"], 2, &["only a conductor"]),
        (boss, "open", &["--remotes", "remotes"], 2, &["the arm open", "sandbox.network"]),
        (boss, "hooked", &["--remotes", "remotes"], 2, &["the arm hooked", "hooks"]),
    ] {
        let mut command = evaluation(&world, "evaluation", &["--agent", "sim:fair", "--arms", arm]);
        let output = command.args(["--fleet", fleet]).args(more).output().unwrap();
        refused(&output, code, words);
        for file in ["eval.json", "fleet.json"] {
            assert!(!world.base().join("evaluation").join(file).exists(), "{words:?}");
        }
    }
    // Workers that lack something are waited for, and named.
    let more = ["--agent", "sim:fair", "--arms", "single", "--repeat", "1", "--tasks", "double"];
    let _worker = world.worker("w1");
    let boss = start(&world, on_fleet(&world, &[&more[..], &["--need", "label:gpu"]].concat()));
    boss.wait_for_words("no worker offers label:gpu; trials wait");
    boss.signal("INT");
    assert_eq!(boss.ended(), Some(130), "{}", everything(&world));
    let output = on_fleet(&world, &more).output().unwrap();
    ended(&world, &output, 0);
    is_clean(&world, &["w1"]);
    world.kill_server();
    let more = ["--agent", "sim:fair", "--arms", "single", "--repeat", "2"];
    refused(&on_fleet(&world, &more).output().unwrap(), 30, &["127.0.0.1"]);
}

#[test]
fn ev_164_workers_get_no_hidden_test_and_the_budget_holds() {
    let world = world();
    let _workers = ["w1", "w2"].map(|name| world.worker(name));
    // Each trial reserves 1.50, the limit of the task.
    let more = ["--agent", "sim:mixed.yaml", "--arms", ARMS, "--repeat", "3", "--tasks", "double", "--keep"];
    let output = on_fleet(&world, &[&more[..], &["--budget", "1.60", "--json"]].concat()).output().unwrap();
    ended(&world, &output, 11);
    let some = trials(&world, "evaluation");
    let spent: f64 = some.values().map(|trial| trial["money"].as_f64().unwrap()).sum();
    assert!(spent <= 1.6 && (1..6).contains(&some.len()), "{spent}: {some:?}");
    assert_eq!(remotes(&world).len(), some.len());
    for repository in remotes(&world) {
        let objects = world.git_in(&repository, ["rev-list", "--objects", "--all"]);
        assert!(objects.contains("tests/run.sh") && !objects.contains("hidden"), "{objects}");
    }
    let output = on_fleet(&world, &[&more[..], &["--budget", "50"]].concat()).output().unwrap();
    ended(&world, &output, 0);
    let all = trials(&world, "evaluation");
    assert_eq!(all.len(), 6);
    assert!(some.iter().all(|(key, trial)| all.get(key) == Some(trial)), "{some:?}\n{all:?}");
}
