//! The proof of sprints: sixty items over twenty repositories, with agents that succeed, fail, hang, meet in one place
//! and cost too much; once in peace, and once killed at fifty moments. A step of its own, since it takes minutes.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "proof_sprint/found.rs"]
mod found;
#[path = "harness/hub.rs"]
#[expect(dead_code, reason = "what the other tests of sprints need is in it as well")]
mod hub;
#[path = "proof_sprint/two.rs"]
mod two;
#[path = "harness/user.rs"]
#[expect(dead_code, reason = "what the other end-to-end tests need is in it as well")]
mod user;
#[path = "proof_sprint/watcher.rs"]
mod watcher;
#[path = "proof_sprint/world.rs"]
mod world;

use std::fs;
use std::io::Write;
use std::process::Child;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use watcher::{Seen, Watcher};
use world::{World, sixty};

const KILLS: usize = 50;
/// After every so manyth kill of the sprint, a run inside it is killed as well.
const EVERY: usize = 4;
/// Every so manyth is asked to stop instead.
const ASKED: usize = 10;
const SEED: u64 = 0x5eed_0060_0020_0050;
/// So often one that is about to start something is looked for, before any will do, and so often in all.
const HUNTS: [usize; 2] = [20, 200];
/// No sprint here takes so long; one that does is stuck.
const PATIENCE: Duration = Duration::from_secs(1_800);

#[test]
#[ignore = "takes minutes: cargo xtask test sprint"]
fn bx_22_sixty_items_come_to_their_right_ends_in_peace_and_under_fifty_kills() {
    let begun = Instant::now();
    let calm = Arc::new(World::new(sixty()));
    let watcher = Watcher::start(&calm);
    let code = finish(&calm, &mut calm.start().0);
    let seen = watcher.stop();
    tell(&format!("in peace: {:.1} s, {seen:?}", begun.elapsed().as_secs_f64()));
    check(&calm, code, &seen);
    met_in_one_place(&calm);

    let begun = Instant::now();
    let killed = Arc::new(World::new(sixty()));
    let watcher = Watcher::start(&killed);
    let (code, toll) = under_fire(&killed, calm.progress());
    let seen = watcher.stop();
    tell(&format!("under fire: {:.1} s, {toll:?}, {seen:?}", begun.elapsed().as_secs_f64()));
    check(&killed, code, &seen);
    assert!(toll.runs > 5 && toll.amid_runs > 20 && toll.amid_landings > 5, "hardly a fire: {toll:?}");
    assert!(toll.killed >= KILLS, "{toll:?}");
}

fn finish(world: &World, sprint: &mut Child) -> Option<i32> {
    let begun = Instant::now();
    loop {
        if let Some(status) = sprint.try_wait().unwrap() {
            return status.code();
        }
        if begun.elapsed() > PATIENCE {
            sprint.kill().unwrap();
            sprint.wait().unwrap();
            panic!("the sprint is stuck\n{}", world.said());
        }
        thread::sleep(Duration::from_millis(10));
    }
}

/// What was killed, and amid what.
#[derive(Debug, Default)]
struct Toll {
    killed: usize,
    /// To stop, instead of being killed.
    asked: usize,
    /// Inside a sprint that lived on.
    runs: usize,
    amid_runs: usize,
    amid_landings: usize,
}

/// Kills the sprint at moments spread over all it writes, and starts it again each time. Gives its exit code in the
/// end.
fn under_fire(world: &World, whole: u64) -> (Option<i32>, Toll) {
    let mut chance = Chance(seed());
    let mut moments: Vec<u64> = (0..KILLS + KILLS / ASKED + 1).map(|_| chance.below(whole)).collect();
    moments.sort_unstable();
    let mut toll = Toll::default();
    for (n, moment) in moments.into_iter().enumerate() {
        let mut started = world.start();
        let sprint = &mut started.0;
        let moment = moment.max(world.progress() + chance.below(4_000));
        let with_a_run = n % EVERY == EVERY - 1 && {
            wait_for(world, sprint, moment);
            kill_a_run(world, sprint, &mut chance)
        };
        toll.runs += usize::from(with_a_run);
        if with_a_run && n % (2 * EVERY) == EVERY - 1 {
            // While it sweeps up after the run.
            thread::sleep(Duration::from_micros(chance.below(3_000)));
        } else {
            wait_for(world, sprint, moment + chance.below(2_000));
        }
        if n % ASKED == ASKED - 1 {
            call_in(world, sprint);
            toll.asked += 1;
        } else {
            sprint.kill().unwrap();
            sprint.wait().unwrap();
            toll.killed += 1;
        }
        dies_with_it(world);
        let open = world.open_orders();
        toll.amid_runs += usize::from(open.iter().any(|(kind, _)| kind == "item.run"));
        toll.amid_landings += usize::from(open.iter().any(|(kind, _)| kind.contains("land")));
    }
    (finish(world, &mut world.start().0), toll)
}

/// A sprint that is asked to stop comes in by itself, with everybody, and says so.
fn call_in(world: &World, sprint: &mut Child) {
    rustix::process::kill_process(rustix::process::Pid::from_child(sprint), rustix::process::Signal::TERM)
        .unwrap();
    let code = finish(world, sprint);
    assert_eq!(code, Some(143), "{}", world.said());
}

/// Till so much is written. A sprint that is over before can't be killed any more, and then the moments are wrong.
fn wait_for(world: &World, sprint: &mut Child, moment: u64) {
    let begun = Instant::now();
    while world.progress() < moment {
        if let Some(status) = sprint.try_wait().unwrap() {
            panic!("it ended ({status}) before it could be killed\n{}", world.said());
        }
        assert!(begun.elapsed() < PATIENCE, "nothing is written any more\n{}", world.said());
        thread::sleep(Duration::from_millis(3));
    }
}

/// One of the runs below the sprint, if there is one just now: one that is about to start something, if one can be caught
/// at that. Its child then has the locks of the run and looks like it, but for the session; and a run whose git is killed
/// instead of itself has every right to fail.
fn kill_a_run(world: &World, sprint: &Child, chance: &mut Chance) -> bool {
    let sprint = i32::try_from(sprint.id()).unwrap();
    for hunt in 0..HUNTS[1] {
        let us = world.programs();
        let runs: Vec<i32> = us
            .iter()
            .map(|(pid, _)| *pid)
            .filter(|pid| *pid != sprint && session(*pid) == Some(*pid))
            .collect();
        let unborn = us.iter().filter(|(pid, _)| session(*pid) != Some(*pid));
        let about_to_start = unborn.filter_map(|(pid, _)| session(*pid)).find(|run| runs.contains(run));
        let any = usize::try_from(chance.below(runs.len().max(1) as u64)).unwrap();
        let any = runs.get(any).copied().filter(|_| hunt >= HUNTS[0]);
        if let Some(victim) = about_to_start.or(any) {
            let victim = rustix::process::Pid::from_raw(victim).unwrap();
            return rustix::process::kill_process(victim, rustix::process::Signal::KILL).is_ok();
        }
    }
    false
}

/// Of a process. Runs have one of their own.
fn session(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(3)?.parse().ok()
}

/// Without the sprint no run goes on.
fn dies_with_it(world: &World) {
    let begun = Instant::now();
    loop {
        let left = world.programs();
        if left.is_empty() {
            return;
        }
        let status = |pid: i32| fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let told =
            || left.iter().map(|(pid, words)| format!("{words}\n{}", status(*pid))).collect::<String>();
        assert!(begun.elapsed() < PATIENCE, "runs go on without their sprint:\n{}", told());
        thread::sleep(Duration::from_millis(5));
    }
}

fn check(world: &World, code: Option<i32>, seen: &Seen) {
    let said = world.said();
    assert_eq!(seen.faults, Vec::<String>::new(), "{said}");
    assert_eq!(world.fields("status"), world.expected(), "{said}\n{:#?}", world.fields("notes"));
    assert_eq!(code, Some(10), "some failed: {said}");
    for project in world.projects() {
        let history = world.git(&project, &["log", "-p", "--first-parent", "-m", "--format=%n%h %s", "main"]);
        assert_eq!(world.tree(&project), world.tree_wanted(&project), "{project}\n{said}\n{history}");
        nothing_is_left(world, &project);
    }
    assert!(!world.stage().join("twice").exists(), "{:?}", fs::read_to_string(world.stage().join("twice")));
    assert_eq!(world.processes(), [], "{said}\n{:#?}", world.fields("notes"));
    let names = |folder: &str| {
        let entries = fs::read_dir(world.base().join(folder)).unwrap().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    assert_eq!(names("tmp"), [""; 0]);
    assert_eq!(names("hub/docs/orchestra"), ["control-center.md", "queue.json", "session-log.md"]);
    notes_name_run_and_cause(world);
    assert!(seen.clean > 40 && seen.commits > 40 && seen.queues > 20, "the watcher hardly looked: {seen:?}");
}

/// No working copy, no lock, and no branch but those of the runs.
fn nothing_is_left(world: &World, project: &str) {
    let worktrees = world.git(project, &["worktree", "list", "--porcelain"]);
    assert_eq!(worktrees.matches("worktree ").count(), 1, "{worktrees}");
    let locks = world.own("find").args([project, "-name", "*.lock", "-path", "*/.git/*"]).output().unwrap();
    assert!(locks.stdout.is_empty(), "{}", user::printed(&locks));
    let names = world.git(project, &["for-each-ref", "--format=%(refname:short)", "refs/heads"]);
    let of_runs = |name: &str| {
        let run = name.strip_prefix("archeflow/").and_then(|run| run.split_once('.'));
        run.is_some_and(|(_, run)| {
            let row = world
                .rows
                .iter()
                .find(|row| run.strip_prefix(row.id.as_str()).is_some_and(|n| matches!(n, ".1" | ".2")));
            row.is_some_and(|row| row.project == project)
        })
    };
    let strange: Vec<&str> = names.lines().filter(|name| *name != "main" && !of_runs(name)).collect();
    assert!(strange.is_empty(), "{project}: {strange:?}");
}

/// Who reads the queue knows what happened and where to look further.
fn notes_name_run_and_cause(world: &World) {
    let notes = world.fields("notes");
    for row in &world.rows {
        let note = &notes[&row.id];
        let cause = match (row.kind(), row.ends.as_str()) {
            (_, "completed" | "pending") => {
                assert_eq!(note, "", "{}", row.id);
                continue;
            }
            (_, "blocked") => "waits for",
            ("no", _) => "max_cycles",
            ("red", _) => "tests_failed",
            // On a busy machine somebody else is silent for a second as well.
            ("hang" | "slow", _) => "silent|tests_failed",
            ("dear", _) => "budget",
            (kind, ends) => panic!("{kind} {ends}"),
        };
        assert!(cause.split('|').any(|cause| note.contains(cause)), "{}: {note}", row.id);
        assert!(row.ends == "blocked" || note.contains(&format!(".{}.", row.id)), "{}: {note}", row.id);
    }
}

/// The neighbours really were in each other's way, and so was the person.
fn met_in_one_place(world: &World) {
    let log = world.log();
    let again = log.iter().filter(|line| line["type"] == "item.run" && line["data"]["attempt"] == 2);
    let again: Vec<&str> = again.map(|line| line["data"]["item"].as_str().unwrap()).collect();
    for pair in [["row-05a", "row-05b"], ["moved-08a", ""], ["moved-09a", ""]] {
        assert!(pair.iter().any(|item| again.contains(item)), "{pair:?}: {again:?}");
    }
}

/// `ARCHEFLOW_PROOF_SEED=<number>` looks for other moments.
fn seed() -> u64 {
    let asked = std::env::var("ARCHEFLOW_PROOF_SEED").ok().and_then(|text| text.parse::<u64>().ok());
    asked.map_or(SEED, |seed| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
}

/// A small generator whose numbers are the same everywhere.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }
}

/// Past the test harness, so that the figures are seen also when all is well.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
