//! Looks at everything while a sprint runs: whatever a target ever pointed at must be green, a person's checkout is
//! clean whenever nothing lands there, and the queue can be read at every moment. It also plays the person who commits.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::world::{Row, World};

const PAUSE: Duration = Duration::from_millis(15);

#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) faults: Vec<String>,
    /// Commits that targets pointed at, and that were tried.
    pub(crate) commits: usize,
    /// Looks at checkouts when nothing was landing there.
    pub(crate) clean: usize,
    pub(crate) queues: usize,
}

pub(crate) struct Watcher {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

impl Watcher {
    pub(crate) fn start(world: &Arc<World>) -> Watcher {
        let stop = Arc::new(AtomicBool::new(false));
        let (world, until) = (Arc::clone(world), Arc::clone(&stop));
        let thread = thread::spawn(move || watch(&world, &until));
        Watcher { stop, thread }
    }

    pub(crate) fn stop(self) -> Seen {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap()
    }
}

fn watch(world: &World, until: &AtomicBool) -> Seen {
    let mut seen = Seen::default();
    let mut known: BTreeSet<String> = BTreeSet::new();
    let projects: Vec<String> = world.projects().into_iter().collect();
    for turn in 0.. {
        // One more look after the end.
        let last = until.load(Ordering::SeqCst);
        look_at_targets(world, &projects, &mut known, &mut seen);
        look_at_queue(world, &mut seen);
        world.rows.iter().filter(|row| row.kind() == "moved").for_each(|row| be_the_person(world, row));
        let slow = world.rows.iter().filter(|row| row.kind() == "slow");
        if slow.into_iter().any(|row| world.is_checked(row)) {
            let _ = fs::write(world.stage().join("overdue"), "");
        }
        if last {
            projects.iter().for_each(|project| look_at_checkout(world, project, &mut seen));
            break;
        }
        look_at_checkout(world, &projects[turn % projects.len()], &mut seen);
        thread::sleep(PAUSE);
    }
    seen.commits = known.len();
    seen
}

/// The reflog has every value the branch ever had, also those between two looks.
fn look_at_targets(world: &World, projects: &[String], known: &mut BTreeSet<String>, seen: &mut Seen) {
    for project in projects {
        let git = world.repo(project).join(".git");
        let log = fs::read_to_string(git.join("logs/refs/heads/main")).unwrap_or_default();
        let logged = log.lines().filter_map(|line| line.split(' ').nth(1));
        let now = fs::read_to_string(git.join("refs/heads/main")).unwrap_or_default();
        for commit in logged.chain([now.trim()]).filter(|commit| commit.len() == 40) {
            if known.insert(format!("{project} {commit}")) && !is_green(world, project, commit) {
                seen.faults.push(format!("{project}: main was red at {commit}"));
            }
        }
    }
}

/// By the project's own check, on a copy of exactly that tree.
fn is_green(world: &World, project: &str, commit: &str) -> bool {
    let script = r#"
        rm -rf "$HOME/tree" && mkdir "$HOME/tree"
        git -C "$1" archive --format=tar "$2" | tar -x -C "$HOME/tree"
        cd "$HOME/tree" && timeout 600 sh check.sh
    "#;
    world.own("sh").args(["-ec", script, "sh", project, commit]).output().unwrap().status.success()
}

fn look_at_queue(world: &World, seen: &mut Seen) {
    seen.queues += 1;
    match world.queue() {
        Err(why) => seen.faults.push(format!("the queue can't be read: {why}")),
        Ok(queue) if queue["items"].as_array().map_or(0, Vec::len) < world.rows.len() => {
            seen.faults.push(format!("the queue lost items: {queue}"));
        }
        Ok(_) => {}
    }
}

fn look_at_checkout(world: &World, project: &str, seen: &mut Seen) {
    if landing(world, project) {
        return;
    }
    let status = world.git(project, &["status", "--porcelain", "--untracked-files=all"]);
    // The first run in a project makes its ignore file; till that is there, its making can be seen.
    let status: String = status.lines().filter(|line| !line.contains("/..gitignore.")).collect();
    if landing(world, project) {
        return;
    }
    seen.clean += 1;
    if !status.is_empty() {
        seen.faults.push(format!("{project}: dirty while nothing lands there:\n{status}"));
    }
}

/// Whether a landing was ordered there and not reported yet.
fn landing(world: &World, project: &str) -> bool {
    let open: Vec<(String, String)> =
        world.open_orders().into_iter().filter(|(kind, _)| kind.contains("land")).collect();
    let about = |item: &String| open.iter().any(|(_, data)| data.contains(&format!("\"{item}\"")));
    world.fields("project").iter().any(|(item, home)| home == project && about(item))
}

/// Once, when the Maker is at work on the item.
fn be_the_person(world: &World, row: &Row) {
    let mark = |word: &str| world.stage().join(format!("{}.{word}", row.id));
    if mark("here").exists() && !mark("moved").exists() {
        world.commit_as_person(row);
    }
}
