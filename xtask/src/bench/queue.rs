//! A long queue: what a sprint takes that waits, how soon it acts on a change of the queue, and what it takes to list it.
//!
//! The sprint has 10,000 items in 500 repositories. One of them runs, with an agent that waits at a gate, and all others
//! wait for a person; so nothing is to be done. The processor time is that of the sprint's own process. Then a person
//! approves one item after the other by replacing the file, as editors do, and the sprint's log tells when it was claimed.
//!
//! A decision is what follows from one report, in the core alone: with 10,000 items it must take what it takes with 400.

use std::fs::{self, File, create_dir_all, write};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use archeflow_core::model::{Money, Reason, RunStatus};
use archeflow_core::sprint::event::{FORMAT, RunEnd, SprintEvent};
use archeflow_core::sprint::policy::{Room, SprintPolicy};
use archeflow_core::sprint::{Sprint, run_id};
use rustix::fs::FlockOperation;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::engine::sample;
use super::{Bench, Goal, Row, Rows, best, ms};

const ITEMS: usize = 10_000;
const REPOSITORIES: usize = 500;
const LISTED: usize = 20_000;
/// A queue that anybody would call short.
const FEW: usize = 400;
/// Of the sprint that only decides.
const SLOTS: u32 = 50;
const STEPS: u32 = 1_000;
/// Items that are approved one after the other.
const CHANGES: usize = 5;
const WATCHED: Duration = Duration::from_secs(10);
/// A file that was just read is looked at again for two seconds.
const SETTLING: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(1);

type Fault = Box<dyn std::error::Error>;

pub(super) fn measure(bench: &Bench) -> Rows {
    let waiting = WaitingSprint::start(bench, ITEMS)?;
    let share = waiting.share_of_a_core()?;
    let mut claimed = Duration::ZERO;
    for n in 1..=CHANGES {
        claimed = claimed.max(waiting.approve(n)?);
    }
    waiting.end()?;
    let listed = list(bench, LISTED)?;
    let few = best(5, || decision(FEW))?;
    let many = best(5, || decision(ITEMS))?;
    let row =
        |what: String, ours, unit, goal| Row { what, floor: None, ours, unit, goal: Goal::AtMost(goal) };
    Ok(vec![
        row(format!("a sprint that waits, {ITEMS} items: of a core"), share * 100.0, "%", 2.0),
        row(format!("a change of its queue, longest of {CHANGES}"), ms(claimed), "ms", 100.0),
        row(format!("sprint list, {LISTED} items"), ms(listed), "ms", 60.0),
        Row {
            what: format!("a decision with {ITEMS} items against {FEW}"),
            floor: Some(ms(few) * 1e3),
            ours: ms(many) * 1e3,
            unit: "us",
            goal: Goal::Times(3.0),
        },
    ])
}

/// The time from a report to what follows from it, with so many items of which most wait. Items are claimed, run, landed
/// and settled one after the other.
fn decision(items: usize) -> Result<Duration, Fault> {
    let policy =
        SprintPolicy { slots: SLOTS, budget_usd: Some(Money(u64::MAX / 1_000)), ..SprintPolicy::default() };
    let mut sprint = Sprint::default();
    let version = "bench".to_owned();
    sprint.hear(0, SprintEvent::Start { policy, autonomous: true, version, format: FORMAT });
    for n in 0..items {
        let status = "pending";
        let item = json!({ "id": name(n), "project": project(n), "task": task(n), "priority": "P1", "estimate": "S", "status": status });
        sprint.hear(0, SprintEvent::Seen { item: serde_json::from_value(item)? });
    }
    sprint.settle(0, Room::PLENTY);
    let begun = Instant::now();
    let mut steps = 0;
    while steps < STEPS {
        let (start_seq, order) =
            sprint.open.iter().next().map(|(seq, order)| (*seq, order.clone())).ok_or("no order is open")?;
        sprint.hear(0, report(start_seq, &order)?);
        sprint.settle(0, Room::PLENTY);
        steps += 1;
    }
    Ok(begun.elapsed() / STEPS)
}

fn report(start_seq: u64, order: &SprintEvent) -> Result<SprintEvent, Fault> {
    let end = |run_id: &str, status| RunEnd {
        run_id: run_id.to_owned(),
        status: Some(status),
        reason: Some(Reason::Approved),
        detail: String::new(),
        cycles: 1,
        cost_usd: Money(1),
        took_ms: 1,
        stopped: false,
        landed_as: None,
        accounts: Vec::new(),
        busy: None,
    };
    if let SprintEvent::Claim { .. } = order {
        return Ok(SprintEvent::Claimed { start_seq, fence: Some(1), left: None });
    }
    if let SprintEvent::Run { item, attempt, .. } = order {
        let end = end(&run_id("bench", item, *attempt), RunStatus::AwaitingMerge);
        return Ok(SprintEvent::Ended { start_seq, end });
    }
    if let SprintEvent::Land { run_id, .. } = order {
        return Ok(SprintEvent::Landed { start_seq, end: end(run_id, RunStatus::Merged) });
    }
    if let SprintEvent::Settle { .. } = order {
        return Ok(SprintEvent::Settled { start_seq });
    }
    Err(format!("an order that is not expected: {order:?}").into())
}

/// The shortest of several times that `sprint list` takes for a queue of this length.
pub(super) fn list(bench: &Bench, items: usize) -> Result<Duration, Fault> {
    let folder = bench.folder.path().join(format!("listed-{items}"));
    create_dir_all(folder.join("docs/orchestra"))?;
    let item = |n: usize| {
        let on: Vec<String> = (n % 3 == 2).then(|| name(n - 1)).into_iter().collect();
        json!({ "id": name(n), "project": project(n), "task": task(n), "priority": "P2", "estimate": "M",
                "status": "pending", "depends_on": on, "notes": "a person asked for it" })
    };
    write_queue(&folder, &(0..items).map(item).collect::<Vec<Value>>())?;
    best(7, || {
        let begun = Instant::now();
        let status = command(bench, &folder).args(["sprint", "list"]).status()?;
        if status.success() { Ok(begun.elapsed()) } else { Err(format!("sprint list: {status}").into()) }
    })
}

fn name(n: usize) -> String {
    format!("item-{n:06}")
}

fn project(n: usize) -> String {
    format!("p{:03}", n % REPOSITORIES)
}

fn task(n: usize) -> String {
    format!("Make part {n} of the greeting polite to everybody who comes by, and test it")
}

fn write_queue(folder: &Path, items: &[Value]) -> Result<(), Fault> {
    let file = folder.join("docs/orchestra/queue.json");
    let next = file.with_extension("json.next");
    write(&next, serde_json::to_string_pretty(&json!({ "version": 1, "items": items }))?)?;
    Ok(fs::rename(next, file)?)
}

fn command(bench: &Bench, folder: &Path) -> Command {
    let home = bench.folder.path().join("home-queue");
    let mut command = Command::new(&bench.program);
    command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.env("HOME", home).env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME");
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_AUTHOR_NAME", "Bench").env("GIT_AUTHOR_EMAIL", "bench@example.invalid");
    command
}

/// A sprint in which one agent waits at a gate and everything else for a person.
pub(super) struct WaitingSprint {
    folder: PathBuf,
    child: Child,
    /// From the start of the process until its agent was there.
    pub(super) began: Duration,
    /// The gate is closed while this is locked.
    gate: File,
}

impl WaitingSprint {
    pub(super) fn start(bench: &Bench, items: usize) -> Result<WaitingSprint, Fault> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let base = bench.folder.path().join(format!("waiting-{items}-{number}"));
        let (folder, here) = (base.join("hub"), base.join("here"));
        create_dir_all(folder.join("docs/orchestra"))?;
        create_dir_all(&here)?;
        let home = bench.folder.path().join("home-queue/.config/archeflow");
        create_dir_all(&home)?;
        write(home.join("config.yaml"), "sprint: {load_percent: 100000, memory_mb: 0}\n")?;
        for n in 0..=CHANGES {
            sample(&folder.join(project(n)))?;
        }
        let gate = File::create(base.join("gate"))?;
        rustix::fs::flock(&gate, FlockOperation::LockExclusive)?;
        write_queue(&folder, &queue(items))?;
        let wait = format!(
            ": > {}/$ARCHEFLOW_RUN_ID; flock -s {} true",
            here.display(),
            base.join("gate").display()
        );
        let begun = Instant::now();
        let child = command(bench, &folder)
            .args(["sprint", "run", "--autonomous", "--slots", "16", "--unsafe-no-sandbox"])
            .args(["--agent", &format!("cmd:{wait}")])
            .spawn()?;
        let mut sprint = WaitingSprint { folder, child, began: Duration::ZERO, gate };
        let is_here = || fs::read_dir(&here).is_ok_and(|mut seen| seen.next().is_some());
        until("no agent came", is_here)?;
        sprint.began = begun.elapsed();
        Ok(sprint)
    }

    /// While nothing happens.
    pub(super) fn share_of_a_core(&self) -> Result<f64, Fault> {
        sleep(SETTLING);
        let (begun, before) = (Instant::now(), self.processor_time()?);
        sleep(WATCHED);
        Ok((self.processor_time()?.saturating_sub(before)).as_secs_f64() / begun.elapsed().as_secs_f64())
    }

    /// Of all threads that live, to the nanosecond.
    fn processor_time(&self) -> Result<Duration, Fault> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id()))?.flatten();
        let times = tasks.filter_map(|task| fs::read_to_string(task.path().join("schedstat")).ok());
        let nanoseconds = times.filter_map(|time| time.split_whitespace().next()?.parse::<u64>().ok());
        Ok(Duration::from_nanos(nanoseconds.sum()))
    }

    /// From the moment the file is another until the sprint's claim of the item is in its log.
    pub(super) fn approve(&self, n: usize) -> Result<Duration, Fault> {
        let mut log = File::open(self.log()?)?;
        log.seek(SeekFrom::End(0))?;
        let file = self.folder.join("docs/orchestra/queue.json");
        let mut queue: Value = serde_json::from_slice(&fs::read(&file)?)?;
        queue["items"][n]["status"] = "pending".into();
        let next = file.with_extension("json.next");
        write(&next, serde_json::to_string_pretty(&queue)?)?;
        let mut text = String::new();
        let mut says = |kind: &str| {
            let _ = log.read_to_string(&mut text);
            let item = format!("\"item\":\"{}\"", name(n));
            text.lines().any(|line| line.contains(kind) && line.contains(&item))
        };
        let begun = Instant::now();
        fs::rename(next, file)?;
        until("a change of the queue was not acted upon", || says("\"item.claim\""))?;
        let took = begun.elapsed();
        // Its claim is in the queue before the next change is made.
        until("a claimed item did not run", || says("\"item.run\""))?;
        Ok(took)
    }

    fn log(&self) -> Result<PathBuf, Fault> {
        let mut logs =
            fs::read_dir(self.folder.join(".archeflow/sprints"))?.flatten().map(|entry| entry.path());
        Ok(logs.find(|path| path.extension().is_some_and(|end| end == "jsonl")).ok_or("no log")?)
    }

    pub(super) fn end(mut self) -> Result<(), Fault> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        rustix::fs::flock(&self.gate, FlockOperation::Unlock)?;
        self.child.wait()?;
        Ok(())
    }
}

/// The first one may run, and the others wait for a person.
fn queue(items: usize) -> Vec<Value> {
    let item = |n: usize| {
        let status = if n == 0 { "pending" } else { "proposed" };
        json!({ "id": name(n), "project": project(n), "task": task(n), "priority": "P1", "estimate": "S", "status": status })
    };
    (0..items).map(item).collect()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), Fault> {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > PATIENCE {
            return Err(what.into());
        }
        sleep(LOOK);
    }
    Ok(())
}
