//! A sprint with agents that do nothing, against a bare loop of `git worktree add`, agent and merge.
//!
//! The loop is what one would write in a shell to run tasks side by side: as many at a time as the sprint,
//! a working copy each, the agents of the workflow one after the other, a commit, and a merge. It reviews nothing that
//! it would act upon, tests nothing, and is lost when it is killed.
//!
//! Then a hundred tasks at once, whose agents wait until all hundred are there: what the sprint itself holds in memory.
//! A task that never begins, or that is overtaken by more than there are slots, is an error and no figure.

use std::fs::{File, create_dir_all, write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;
use serde_json::{Value, json};

use super::engine::sample;
use super::memory::high_water_kb;
use super::{Bench, Goal, Row, Rows};

/// Tasks of the race, each in a repository of its own.
const TASKS: usize = 40;
const SLOTS: usize = 4;
const TRIES: u32 = 3;
const CROWD: usize = 100;
/// Till all of them must be there.
const PATIENCE: Duration = Duration::from_secs(120);
/// However busy the machine is: the measurement is what makes it busy.
const ANY_LOAD: &str = "sprint: {load_percent: 100000, memory_mb: 0, quality_percent: 0}\n";

pub(super) fn measure(bench: &Bench) -> Rows {
    let (mut floor, mut ours) = (Duration::MAX, Duration::MAX);
    for n in 0..TRIES {
        floor = floor.min(bare_loop(&Hub::new(bench, &format!("bare-{n}"), TASKS)?)?);
        let hub = Hub::new(bench, &format!("sprint-{n}"), TASKS)?;
        ours = ours.min(hub.sprint(SLOTS, &hub.agent(), || {})?.took);
    }
    let crowd = crowd(&Hub::new(bench, "crowd", CROWD)?)?;
    let each = |time: Duration| super::ms(time) / TASKS as f64;
    let row = |what: &str, floor, ours, unit, goal| Row { what: what.to_owned(), floor, ours, unit, goal };
    Ok(vec![
        row("a task of a sprint against a bare loop", Some(each(floor)), each(ours), "ms", Goal::Times(2.0)),
        row("tasks a bare loop does", None, 1e3 / each(floor), "/s", Goal::None),
        row("tasks a sprint does", None, 1e3 / each(ours), "/s", Goal::AtLeast(35.0)),
        row("peak memory of a sprint, 100 agents at once", None, crowd.peak_mb, "MB", Goal::AtMost(60.0)),
    ])
}

/// Everybody's first agent waits at a gate that is opened when all are there.
fn crowd(hub: &Hub) -> Result<Went, Box<dyn std::error::Error>> {
    let (here, gate) = (hub.home.join("here"), hub.home.join("gate"));
    create_dir_all(&here)?;
    let mut lock = Some(File::create(&gate)?);
    lock.iter().try_for_each(|file| rustix::fs::flock(file, FlockOperation::LockExclusive))?;
    let wait = format!(": > {}/$ARCHEFLOW_RUN_ID && flock -s {} true", here.display(), gate.display());
    let begun = Instant::now();
    let mut most = 0;
    let went = hub.sprint(CROWD, &format!("{wait} && {}", hub.agent()), || {
        most = std::fs::read_dir(&here).map_or(0, Iterator::count);
        if most == CROWD || begun.elapsed() > PATIENCE {
            lock = None;
        }
    })?;
    if most == CROWD { Ok(went) } else { Err(format!("only {most} agents were there at once").into()) }
}

/// Repositories with a task each.
struct Hub {
    folder: PathBuf,
    home: PathBuf,
    seen: PathBuf,
    program: PathBuf,
    me: PathBuf,
    count: usize,
}

/// How a sprint went.
struct Went {
    took: Duration,
    peak_mb: f64,
}

impl Hub {
    fn new(bench: &Bench, name: &str, count: usize) -> Result<Hub, Box<dyn std::error::Error>> {
        let base = bench.folder.path().join(format!("sprint-{name}"));
        let (folder, home, seen) = (base.join("hub"), base.join("home"), base.join("seen"));
        create_dir_all(home.join(".config/archeflow"))?;
        write(home.join(".config/archeflow/config.yaml"), ANY_LOAD)?;
        create_dir_all(&seen)?;
        create_dir_all(folder.join("docs/orchestra"))?;
        let names: Vec<String> = (0..count).map(|n| format!("p{n:03}")).collect();
        for name in &names {
            sample(&folder.join(name))?;
        }
        let item = |name: &String| json!({ "id": name, "project": name, "task": "Greet everybody", "priority": "P1", "estimate": "S", "status": "pending" });
        let items: Vec<Value> = names.iter().map(item).collect();
        write(folder.join("docs/orchestra/queue.json"), json!({ "version": 1, "items": items }).to_string())?;
        Ok(Hub { folder, home, seen, program: bench.program.clone(), me: bench.me.clone(), count })
    }

    /// In its second cycle it approves.
    fn agent(&self) -> String {
        format!("ARCHEFLOW_CYCLE=2 {} __noop-agent {}", self.me.display(), self.seen.display())
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.env("HOME", &self.home).env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_AUTHOR_NAME", "Bench").env("GIT_AUTHOR_EMAIL", "bench@example.invalid");
        // Its proposal is not about what it does.
        command.env("ARCHEFLOW_SHADOWS", "off");
        command
    }

    /// `looks` is called now and then while it runs.
    fn sprint(
        &self,
        slots: usize,
        agent: &str,
        mut looks: impl FnMut(),
    ) -> Result<Went, Box<dyn std::error::Error>> {
        let mut command = self.command(&self.program);
        command.args(["sprint", "run", "--autonomous", "--slots", &slots.to_string()]);
        command.args(["--agent", &format!("cmd:{agent}"), "--test-command", "true"]);
        // What a sandbox adds to a start is a measure of its own.
        command.arg("--unsafe-no-sandbox");
        let begun = Instant::now();
        let mut child = command.stderr(Stdio::null()).spawn()?;
        let mut peak = 0;
        while child.try_wait()?.is_none() {
            // The kernel keeps the high-water mark; the last look before the end has it.
            peak = peak.max(high_water_kb(child.id()).unwrap_or(0));
            looks();
            sleep(Duration::from_millis(10));
        }
        let took = begun.elapsed();
        self.all_completed()?;
        self.in_turn(slots)?;
        #[expect(clippy::cast_precision_loss, reason = "a size for people")]
        Ok(Went { took, peak_mb: peak as f64 * 1024.0 / 1e6 })
    }

    fn all_completed(&self) -> Result<(), Box<dyn std::error::Error>> {
        let queue: Value =
            serde_json::from_slice(&std::fs::read(self.folder.join("docs/orchestra/queue.json"))?)?;
        let items = queue["items"].as_array().ok_or("a queue without items")?;
        match items.iter().find(|item| item["status"] != "completed") {
            None if items.len() == self.count => Ok(()),
            None => Err("items are lost".into()),
            Some(item) => Err(format!("not everything was completed: {item}").into()),
        }
    }

    /// Nobody is overtaken by more than can run at a time.
    fn in_turn(&self, slots: usize) -> Result<(), Box<dyn std::error::Error>> {
        let mut logs =
            std::fs::read_dir(self.folder.join(".archeflow/sprints"))?.flatten().map(|entry| entry.path());
        let path = logs.find(|path| path.extension().is_some_and(|end| end == "jsonl")).ok_or("no log")?;
        let text = std::fs::read_to_string(path)?;
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let begun = lines.filter(|line| line["type"] == "item.run").map(|line| line["data"]["item"].clone());
        for (place, item) in begun.enumerate() {
            let number =
                item.as_str().and_then(|id| id.strip_prefix('p')?.parse::<usize>().ok()).ok_or("no item")?;
            if place > number + slots {
                return Err(format!("{item} began as number {place} of all").into());
            }
        }
        Ok(())
    }
}

/// The same agents in the same order, by a shell, as many at a time as the sprint has slots.
fn bare_loop(hub: &Hub) -> Result<Duration, Box<dyn std::error::Error>> {
    let task = r#"
        set -e
        cd "$1"
        git worktree add -q -b work ../work-"$1"
        cd ../work-"$1"
        for role in creator maker guardian; do
            echo "Greet everybody" | ARCHEFLOW_ROLE=$role sh -c "$AGENT" > /dev/null
        done
        git add -A && git commit -q -m "Greet everybody"
        cd ../"$1"
        git merge -q --no-ff -m "Greet everybody" work
        git worktree remove ../work-"$1"
    "#;
    let mut command = hub.command("sh".as_ref());
    command.env("AGENT", hub.agent()).env("TASK", task);
    command.env("GIT_AUTHOR_NAME", "Bench").env("GIT_AUTHOR_EMAIL", "bench@example.invalid");
    command.env("GIT_COMMITTER_NAME", "Bench").env("GIT_COMMITTER_EMAIL", "bench@example.invalid");
    command.args(["-ec", &format!("ls -d p* | xargs -P {SLOTS} -I @ sh -c \"$TASK\" sh @")]);
    let begun = Instant::now();
    let output = command.output()?;
    let took = begun.elapsed();
    if !output.status.success() {
        return Err(format!("the bare loop failed: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let landed = (0..hub.count).filter(|n| hub.folder.join(format!("p{n:03}/work-2.txt")).exists()).count();
    if landed == hub.count { Ok(took) } else { Err(format!("the bare loop landed {landed}").into()) }
}
