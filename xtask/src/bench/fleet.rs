//! A fleet on one machine: a real server, the program as conductor, and made-up workers (`fleet/examples/crowd.rs`) that
//! report each order at once. So the rates are those of server and conductor; agents and git are measured elsewhere. Then the
//! same with orders that take a while, so that about 200 come in a second.

use std::fs::{self, create_dir_all};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{Bench, Goal, Row, Rows};
use crate::{nats_server, test};

const ITEMS: usize = 10_000;
const REPOSITORIES: usize = 500;
const WORKERS: usize = 50;
const SLOTS: u32 = 4;
/// Of 20,000 orders: a run and a landing for each item.
const ORDERS: f64 = 2.0 * ITEMS as f64;
/// How long an order takes when they are paced: with all slots busy, and what lies between two orders of a slot, somewhat more
/// than 200 a second.
const PACE: Duration = Duration::from_millis(750);
/// Appends a second, and how many.
const APPENDS: [&str; 2] = ["50", "1500"];
const PATIENCE: Duration = Duration::from_secs(120);

type Fault = Box<dyn std::error::Error>;

pub(super) fn measure(bench: &Bench) -> Rows {
    let server = nats_server::fetch(&bench.root)?;
    let words = ["cargo", "build", "--profile", "dist", "-p", "archeflow-fleet", "--example", "crowd"];
    test::through(&bench.root, &words, &[])?;
    let crowd = PathBuf::from(test::built(&bench.root, "dist", "examples/crowd"));
    let place = FleetBench::make(bench, server)?;
    let _server = place.serve()?;
    let appends = Command::new(&crowd).arg("appends").args(APPENDS).arg(place.join("w0")).output()?;
    let appends: Value = serde_json::from_slice(&appends.stdout)?;
    let worker = place.worker_memory()?;
    let sprint = place.sprint(&crowd, Duration::ZERO)?;
    let paced = place.sprint(&crowd, PACE)?;
    let ack = appends["append_ms"]["p99"].as_f64().ok_or("nothing was appended")?;
    let row = |what: String, ours, unit, goal| Row { what, floor: None, ours, unit, goal };
    let what = format!("{ITEMS} items, {REPOSITORIES} repositories, {WORKERS} workers");
    let paced_what = format!("orders of {} ms", PACE.as_millis());
    Ok(vec![
        row(format!("{what}: dispatch, p99"), sprint.wait("dispatch_ms")?, "ms", Goal::AtMost(250.0)),
        row(format!("{what}: orders a second"), ORDERS / sprint.seconds, "/s", Goal::AtLeast(200.0)),
        row(format!("{what}: conductor, of a core"), sprint.share * 100.0, "%", Goal::AtMost(20.0)),
        row(
            format!("{paced_what}: dispatch to a free slot, p99"),
            paced.wait("with_free_slot_ms")?,
            "ms",
            Goal::AtMost(250.0),
        ),
        row(format!("{paced_what}: dispatch, p99"), paced.wait("dispatch_ms")?, "ms", Goal::AtMost(250.0)),
        row(format!("{paced_what}: orders a second"), ORDERS / paced.seconds, "/s", Goal::None),
        row(format!("{paced_what}: conductor, of a core"), paced.share * 100.0, "%", Goal::AtMost(20.0)),
        row(format!("a worker without runs, {SLOTS} slots: the most"), worker.most, "MB", Goal::AtMost(10.0)),
        row("what it has at rest".to_owned(), worker.rest, "MB", Goal::AtMost(10.0)),
        row("of it, its own and not the program's".to_owned(), worker.own, "MB", Goal::None),
        row(format!("appends, {} a second: p99", APPENDS[0]), ack, "ms", Goal::AtMost(50.0)),
    ])
}

struct FleetBench {
    folder: PathBuf,
    program: PathBuf,
    server: String,
}

struct FleetSprint {
    seconds: f64,
    /// Processor time of the conductor against the time that passed.
    share: f64,
    /// What the workers measured.
    crowd: Value,
}

impl FleetSprint {
    fn wait(&self, which: &str) -> Result<f64, Fault> {
        Ok(self.crowd[which]["p99"].as_f64().ok_or("nothing was dispatched")?)
    }
}

/// In MB.
struct WorkerMemory {
    most: f64,
    rest: f64,
    own: f64,
}

/// Ends with this value.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        let _ = self.0.wait();
    }
}

impl FleetBench {
    fn make(bench: &Bench, server: String) -> Result<FleetBench, Fault> {
        let folder = bench.folder.path().join("fleet-bench");
        create_dir_all(folder.join("hub/docs/orchestra"))?;
        let place = FleetBench { folder, program: bench.program.clone(), server };
        let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        place.fleet(&["init", "--listen", &listen, "--disk", "8GB"])?;
        place.fleet(&["add", "conductor", "boss"])?;
        for n in 0..WORKERS {
            place.fleet(&["add", "worker", &format!("w{n}")])?;
        }
        place.fleet(&["add", "worker", "real"])?;
        for n in 0..REPOSITORIES {
            place.repository(&format!("p{n:03}"))?;
        }
        Ok(place)
    }

    fn queue(&self, name: &str) -> Result<(), Fault> {
        let item = |n: usize| {
            json!({ "id": format!("{name}-{n:06}"), "project": format!("p{:03}", n % REPOSITORIES),
                    "task": format!("Make part {n} of the greeting polite"), "priority": "P1", "estimate": "S",
                    "status": "pending" })
        };
        let items: Vec<Value> = (0..ITEMS).map(item).collect();
        let queue = serde_json::to_string_pretty(&json!({ "version": 1, "items": items }))?;
        Ok(fs::write(self.folder.join("hub/docs/orchestra/queue.json"), queue)?)
    }

    /// What a conductor asks of a project: its remote and its branch. Nobody clones it here.
    fn repository(&self, name: &str) -> Result<(), Fault> {
        let git = self.folder.join("hub").join(name).join(".git");
        create_dir_all(git.join("objects"))?;
        create_dir_all(git.join("refs/heads"))?;
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
        let url = self.folder.join("remotes").join(name);
        let remote = format!(
            "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = {}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
            url.display()
        );
        Ok(fs::write(git.join("config"), remote)?)
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env("HOME", self.folder.join("home"));
        command.env_remove("XDG_STATE_HOME").env_remove("XDG_CONFIG_HOME").env("GIT_CONFIG_NOSYSTEM", "1");
        command.env(nats_server::VARIABLE, &self.server);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn fleet(&self, words: &[&str]) -> Result<(), Fault> {
        let mut command = self.command();
        let ended = command.arg("fleet").args(words).arg("--folder").arg(self.fleet_folder()).output()?;
        if ended.status.success() {
            return Ok(());
        }
        Err(format!("fleet {}: {}", words.join(" "), String::from_utf8_lossy(&ended.stderr)).into())
    }

    fn fleet_folder(&self) -> PathBuf {
        self.folder.join("fleet")
    }

    fn join(&self, name: &str) -> PathBuf {
        self.fleet_folder().join(format!("{name}.join"))
    }

    /// Until it takes connections.
    fn serve(&self) -> Result<Running, Fault> {
        let running =
            Running(self.command().args(["fleet", "serve", "--folder"]).arg(self.fleet_folder()).spawn()?);
        let begun = Instant::now();
        loop {
            let mut command = self.command();
            let asked =
                command.args(["fleet", "gc", "--dry-run", "--fleet"]).arg(self.join("boss")).status()?;
            if asked.success() {
                return Ok(running);
            }
            if begun.elapsed() > PATIENCE {
                return Err("the server did not start".into());
            }
            sleep(Duration::from_millis(100));
        }
    }

    /// The memory of a worker that is known to the fleet and has nothing to do.
    fn worker_memory(&self) -> Result<WorkerMemory, Fault> {
        let mut command = self.command();
        command.args(["worker", "--slots", &SLOTS.to_string(), "--join"]).arg(self.join("real"));
        let output = fs::File::create(self.folder.join("worker.log"))?;
        let worker = Running(command.stderr(output).spawn()?);
        let begun = Instant::now();
        while fs::metadata(self.folder.join("worker.log")).is_ok_and(|meta| meta.len() == 0) {
            if begun.elapsed() > PATIENCE {
                return Err("the worker said nothing".into());
            }
            sleep(Duration::from_millis(50));
        }
        // Its first heartbeats and looks for orders.
        sleep(Duration::from_secs(5));
        let status = fs::read_to_string(format!("/proc/{}/status", worker.0.id()))?;
        let figure = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such figure")?;
            let kilobytes: f64 = line.trim().trim_end_matches(" kB").trim().parse()?;
            Ok::<f64, Fault>(kilobytes / 1024.0)
        };
        Ok(WorkerMemory { most: figure("VmHWM:")?, rest: figure("VmRSS:")?, own: figure("RssAnon:")? })
    }

    fn sprint(&self, crowd: &Path, takes: Duration) -> Result<FleetSprint, Fault> {
        self.queue(&format!("item-{}", takes.as_millis()))?;
        let mut workers = Command::new(crowd);
        workers.args(["work", &SLOTS.to_string(), &takes.as_millis().to_string()]);
        workers.args((0..WORKERS).map(|n| self.join(&format!("w{n}"))));
        let mut workers = workers.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut command = self.command();
        command
            .args(["sprint", "run", "--autonomous", "--json", "--root", "hub", "--fleet"])
            .arg(self.join("boss"));
        let begun = Instant::now();
        let said = self.folder.join("sprint.log");
        let mut conductor = command.stderr(fs::File::create(&said)?).spawn()?;
        let mut used = 0.0;
        let ended = loop {
            // Of all its threads, also those that have ended.
            used = processor_time(conductor.id()).unwrap_or(used);
            match conductor.try_wait()? {
                Some(ended) => break ended,
                None => sleep(Duration::from_millis(100)),
            }
        };
        let seconds = begun.elapsed().as_secs_f64();
        drop(workers.stdin.take());
        let output = workers.wait_with_output()?;
        if !ended.success() {
            let said = fs::read_to_string(said)?;
            let last: Vec<&str> = said.lines().rev().take(3).collect();
            return Err(format!("the sprint ended with {ended}: {last:?}").into());
        }
        Ok(FleetSprint { seconds, share: used / seconds, crowd: serde_json::from_slice(&output.stdout)? })
    }
}

/// In seconds.
fn processor_time(pid: u32) -> Option<f64> {
    // The unit of this file on Linux, whatever the kernel's own clock.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut numbers = stat.rsplit(')').next()?.split_whitespace().skip(11).map(str::parse::<f64>);
    Some((numbers.next()?.ok()? + numbers.next()?.ok()?) / TICKS)
}
