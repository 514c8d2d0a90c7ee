//! A fleet in a folder: its server, its members, a bare repository, agents that write a bill, and workers as processes.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::Duration;

use archeflow_core::model::Seq;
use archeflow_core::sprint::event::RunEnd;
use archeflow_core::sprint::queue::QueueItem;
use archeflow_fleet::approvals;
use archeflow_fleet::bus::{Bus, Expect, Lease, Put};
use archeflow_fleet::join::{FleetRole, JoinFile};
use archeflow_fleet::journal;
use archeflow_fleet::message::{
    self, Control, ControlCommand, FleetOrder, FleetReport, Held, Repository, Work,
};
use archeflow_fleet::names;
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_fleet::server::{FleetFolder, FleetServer, ServerEnd};
use archeflow_host::open::{ProcessEnv, Project};
use serde_json::{Value, json};

use crate::program::server_program;
use crate::settings::one_server;
use crate::user::{LONG, PROGRAM, TestUser, parse_lines, printed, wait_until};

pub(crate) const SPRINT: &str = "2026-11-18-fleet";
/// Short, so that a worker that is gone is noticed soon.
pub(crate) const LEASE: Duration = Duration::from_secs(6);
pub(crate) const CAST: &str = include_str!("cast.sh");
const DISK: u64 = 200_000_000;

pub(crate) struct World {
    user: TestUser,
    fleet: FleetFolder,
    server: Option<FleetServer>,
    /// The conductor's.
    pub(crate) bus: NatsBus,
}

impl Deref for World {
    type Target = TestUser;

    fn deref(&self) -> &TestUser {
        &self.user
    }
}

impl World {
    pub(crate) fn new() -> World {
        World::with_files(&[])
    }

    /// With these files in the repository, beside those that are always there.
    pub(crate) fn with_files(more: &[(&str, &str)]) -> World {
        World::on_disk(DISK, more)
    }

    /// With a server that may use this much.
    pub(crate) fn on_disk(bytes: u64, more: &[(&str, &str)]) -> World {
        let user = TestUser::new();
        let (fleet, _) = FleetFolder::init(&user.base().join("fleet"), &one_server(bytes)).unwrap();
        let members = [
            (FleetRole::Conductor, "boss"),
            (FleetRole::Worker, "w1"),
            (FleetRole::Worker, "w2"),
            (FleetRole::Person, "jo"),
        ];
        for (role, name) in members {
            fleet.add(role, name, None).unwrap();
        }
        let server = FleetServer::start(&fleet, &server_program()).unwrap();
        user.write("cast.sh", CAST);
        let join = JoinFile::read(&fleet.path().join("boss.join")).unwrap();
        let bus = NatsBus::connect(&join, NatsOptions { lease: LEASE, ..NatsOptions::default() }).unwrap();
        let world = World { user, fleet, server: Some(server), bus };
        let files = [&[("src/app.txt", "1\n"), ("check.sh", "test -e src/app.txt\n")], more].concat();
        world.repository(&world.base().join("shop"), &files);
        world.git_in(&world.base(), ["clone", "-q", "--bare", "shop", "shop.git"]);
        world
    }

    /// As a power cut would.
    pub(crate) fn kill_server(&mut self) {
        let mut server = self.server.take().unwrap();
        let sent = Command::new("kill").args(["-9", &server.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(server.wait(LONG), ServerEnd::Ended);
    }

    pub(crate) fn wipe_server(&self) {
        fs::remove_dir_all(self.fleet.path().join("data")).unwrap();
    }

    pub(crate) fn start_server(&mut self) {
        self.server = Some(FleetServer::start(&self.fleet, &server_program()).unwrap());
    }

    /// The folder of the fleet's server.
    pub(crate) fn fleet(&self) -> &FleetFolder {
        &self.fleet
    }

    /// What a member of this name may do.
    pub(crate) fn bus_of(&self, name: &str) -> NatsBus {
        let join = JoinFile::read(&self.join_file(name)).unwrap();
        NatsBus::connect(&join, NatsOptions::default()).unwrap()
    }

    pub(crate) fn join_file(&self, name: &str) -> PathBuf {
        self.fleet.path().join(format!("{name}.join"))
    }

    pub(crate) fn remote(&self) -> PathBuf {
        self.base().join("shop.git")
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_in(&self.remote(), arguments).trim().to_owned()
    }

    /// A worker as on a machine of its own: with a home of its own.
    pub(crate) fn worker_command(&self, name: &str, more: &[&str]) -> Command {
        let home = self.base().join(format!("home-{name}"));
        fs::create_dir_all(&home).unwrap();
        let mut command = self.command(PROGRAM);
        command.env("HOME", &home).env("ARCHEFLOW_SHADOWS", "off");
        command.args(["worker", "--join", self.join_file(name).to_str().unwrap()]);
        command.args(["--folder", home.join("state").to_str().unwrap(), "--unsafe-no-sandbox"]).args(more);
        command
    }

    pub(crate) fn worker(&self, name: &str) -> Started {
        self.worker_with(name, &[])
    }

    pub(crate) fn worker_with(&self, name: &str, more: &[&str]) -> Started {
        self.start_worker(name, self.worker_command(name, more))
    }

    /// What it prints is kept.
    pub(crate) fn start_worker(&self, name: &str, mut command: Command) -> Started {
        let said = self.base().join(format!("said-{name}"));
        let log = fs::File::options().create(true).append(true).open(&said).unwrap();
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Started { child, said }
    }

    /// What `fleet status` prints for other programs.
    pub(crate) fn status(&self) -> Value {
        let mut command = self.command(PROGRAM);
        let output = command
            .args(["fleet", "status", "--json", "--fleet"])
            .arg(self.join_file("jo"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", printed(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    pub(crate) fn run_id(item: &str) -> String {
        archeflow_core::sprint::run_id(SPRINT, item, 1)
    }

    pub(crate) fn item(item: &str) -> QueueItem {
        let item = json!({
            "id": item, "project": "shop", "task": format!("Work on {item}"),
            "priority": "P1", "estimate": "S", "status": "running", "workflow": "fast",
        });
        serde_json::from_value(item).unwrap()
    }

    pub(crate) fn order(&self, seq: Seq, work: Work) -> FleetOrder {
        let agent = format!("cmd:sh {}", self.base().join("cast.sh").display());
        let said = ["--agent", &agent, "--test-command", "sh check.sh"].map(str::to_owned);
        let url = self.remote().display().to_string();
        let repository = Repository { name: "shop".to_owned(), url, branch: "refs/heads/main".to_owned() };
        FleetOrder {
            v: 1,
            sprint: SPRINT.to_owned(),
            seq,
            again: 0,
            work,
            repository,
            needs: BTreeSet::new(),
            said: said.to_vec(),
            min_version: "0.0.1".to_owned(),
        }
    }

    pub(crate) fn give(&self, order: &FleetOrder) {
        let (subject, bytes) =
            (names::orders(&message::class(&order.needs)), serde_json::to_vec(order).unwrap());
        let id = format!("{}:{}:{}", order.sprint, order.seq, order.again);
        let put =
            Put { subject: &subject, expect: Expect::Anything, id: Some(&id), headers: &[], bytes: &bytes };
        self.bus.put(put).unwrap();
    }

    pub(crate) fn order_run(&self, seq: Seq, item: &str) {
        self.give(&self.order(seq, Work::Run { item: World::item(item), attempt: 1, budget_usd: None }));
    }

    pub(crate) fn order_landing(&self, seq: Seq, item: &str) {
        self.give(&self.order(seq, Work::Land { item: World::item(item), run: World::run_id(item) }));
    }

    /// The next report.
    #[track_caller]
    pub(crate) fn report(&self) -> FleetReport {
        let taken = self.bus.take(&names::reports(SPRINT), LONG).unwrap();
        let delivery = taken.unwrap_or_else(|| panic!("no report came\n{}", self.said()));
        self.bus.lease(&delivery.token, Lease::Done).unwrap();
        message::read(&delivery.bytes).unwrap()
    }

    /// How the next run that is reported ended.
    #[track_caller]
    pub(crate) fn end(&self, seq: Seq) -> RunEnd {
        let report = self.report();
        assert_eq!((report.start_seq, report.event.answers()), (seq, Some(seq)), "{report:?}");
        report.event.ends().first().map(|end| (*end).clone()).unwrap()
    }

    pub(crate) fn no_report_waits(&self) -> bool {
        self.bus.take(&names::reports(SPRINT), Duration::ZERO).unwrap().is_none()
    }

    pub(crate) fn cancel(&self, name: &str, seq: Seq) {
        let command = ControlCommand::Cancel(Held { sprint: SPRINT.to_owned(), seq });
        let bytes = serde_json::to_vec(&Control { v: 1, command }).unwrap();
        self.bus.say(&names::control(name), &bytes).unwrap();
    }

    /// The journal of a run on the server.
    pub(crate) fn journal(&self, item: &str) -> Vec<Value> {
        parse_lines(&journal::read(&self.bus, &names::run_journal(&World::run_id(item))).unwrap().text)
    }

    pub(crate) fn journal_of(&self, worker: &str, item: &str) -> Vec<u8> {
        let clones = fs::read_dir(self.base().join(format!("home-{worker}/state/repos"))).unwrap();
        let clone = clones.flatten().next().unwrap().path();
        fs::read(clone.join(format!(".archeflow/events/{}.jsonl", World::run_id(item)))).unwrap_or_default()
    }

    /// How often each role was sent for an item.
    pub(crate) fn bill(&self, item: &str) -> BTreeMap<String, usize> {
        let mut bill = BTreeMap::new();
        let text = fs::read_to_string(self.base().join("bill")).unwrap_or_default();
        for role in text.lines().filter_map(|line| line.strip_prefix(item)?.strip_prefix(' ')) {
            *bill.entry(role.to_owned()).or_default() += 1;
        }
        bill
    }

    /// This role waits until it is let go.
    pub(crate) fn hold(&self, item: &str, role: &str) {
        self.write(&format!("hold-{item}-{role}"), "");
    }

    pub(crate) fn wait_for_agent(&self, item: &str, role: &str) {
        let waits = self.base().join(format!("waits-{item}-{role}"));
        wait_until(|| waits.exists(), || format!("{role} was not sent\n{}", self.said()));
    }

    pub(crate) fn let_go(&self, item: &str, role: &str) {
        fs::remove_file(self.base().join(format!("hold-{item}-{role}"))).unwrap();
    }

    /// What the branch has of an item.
    pub(crate) fn landed(&self, item: &str) -> usize {
        let subject = format!("src/{item}.txt");
        self.git(&["log", "--format=%H", "--first-parent", "main", "--", &subject]).lines().count()
    }

    pub(crate) fn said(&self) -> String {
        let said =
            |name: &str| fs::read_to_string(self.base().join(format!("said-{name}"))).unwrap_or_default();
        format!("w1:\n{}\nw2:\n{}\n{}", said("w1"), said("w2"), running_in(&self.base()))
    }

    /// The digest of the repository's configuration.
    pub(crate) fn digest(&self) -> String {
        let command = self.command(PROGRAM);
        let variables = command.get_envs().filter_map(|(name, value)| Some((name.into(), value?.into())));
        let env = ProcessEnv {
            cwd: self.base(),
            me: PROGRAM.into(),
            variables: variables.collect(),
            version: "0.1.0",
            no_sandbox: false,
        };
        let project = Project::open(env, &self.base().join("shop"), None, false).unwrap();
        project.offer.named_digest("shop")
    }

    /// Jo approves the configuration of the repository.
    pub(crate) fn approve(&self) {
        let join = JoinFile::read(&self.join_file("jo")).unwrap();
        let bus = NatsBus::connect(&join, NatsOptions::default()).unwrap();
        approvals::approve(&bus, &join, "shop", &self.digest()).unwrap();
    }
}

/// A worker that does not outlive its test.
pub(crate) struct Started {
    pub(crate) child: Child,
    pub(crate) said: PathBuf,
}

impl Started {
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end and gives the exit code.
    #[track_caller]
    pub(crate) fn ended(mut self) -> Option<i32> {
        let (said, child) = (self.said.clone(), RefCell::new(&mut self.child));
        let is_over = || child.borrow_mut().try_wait().unwrap().is_some();
        wait_until(is_over, || {
            let words = fs::read_to_string(&said).unwrap_or_default();
            format!("the worker has not ended\n{words}\n{}", running_in(said.parent().unwrap()))
        });
        child.into_inner().wait().unwrap().code()
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    pub(crate) fn wait_for_words(&self, words: &str) {
        wait_until(|| self.said().contains(words), || format!("{words}\n{}", self.said()));
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // Also one that was paused.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processes that name a folder, and what each of them waits for in the kernel.
fn running_in(base: &Path) -> String {
    let listing = Command::new("ps").args(["-eo", "pid,ppid,stat,wchan:24,etimes,args"]).output();
    let listing = listing.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let base = base.display().to_string();
    let found: Vec<String> = listing
        .unwrap_or_default()
        .lines()
        .filter(|line| line.contains(&base))
        .map(|line| line.chars().take(400).collect())
        .collect();
    format!("still running:\n{}", found.join("\n"))
}

#[track_caller]
pub(crate) fn refused(output: &Output, code: i32, words: &[&str]) {
    let text = printed(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    for word in words {
        assert!(text.contains(word), "{word}\n{text}");
    }
}
