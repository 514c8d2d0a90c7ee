//! Three real servers whose leaders are killed, and connections with TLS.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "common/program.rs"]
mod program;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use archeflow_fleet::bus::{Bus, BusError, Expect, Put, PutEnd};
use archeflow_fleet::join::{FleetRole, JoinError, JoinFile};
use archeflow_fleet::journal::{self, Found, JournalFault, JournalWriter, LocalLines};
use archeflow_fleet::names;
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_fleet::server::{
    ClusterNode, FleetCluster, FleetFolder, FleetServer, FleetSettings, RouteSecret, ServerEnd, TlsFiles,
};
use tempfile::TempDir;

use program::server_program;

/// Only a fault takes this long.
const LONG: Duration = Duration::from_secs(300);
const DISK: u64 = 200_000_000;
const HASTY: NatsOptions = NatsOptions { limit: Duration::from_secs(2), lease: Duration::from_secs(60) };

/// Ports that were free a moment ago, all different.
fn ports(count: usize) -> Vec<u16> {
    let held: Vec<TcpListener> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    held.iter().map(|one| one.local_addr().unwrap().port()).collect()
}

fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls").join(name)
}

fn tls() -> TlsFiles {
    TlsFiles { cert: certificate("server.pem"), key: certificate("server.key"), ca: certificate("ca.pem") }
}

fn settings(listen: String, tls: Option<TlsFiles>, cluster: Option<FleetCluster>) -> FleetSettings {
    let servers = match &cluster {
        Some(cluster) => cluster.nodes.iter().map(ClusterNode::address).collect(),
        None => vec![format!("nats://{listen}")],
    };
    FleetSettings { v: 1, listen, servers, disk: DISK, tls, cluster, members: Vec::new() }
}

fn made(dir: &TempDir, settings: &FleetSettings) -> FleetFolder {
    let (fleet, is_new) = FleetFolder::init(&dir.path().join("fleet"), settings).unwrap();
    assert!(is_new);
    for (role, name) in [(FleetRole::Conductor, "boss"), (FleetRole::Worker, "w1"), (FleetRole::Worker, "w2")]
    {
        fleet.add(role, name, None).unwrap();
    }
    fleet
}

fn join(fleet: &FleetFolder, name: &str) -> JoinFile {
    JoinFile::read(&fleet.path().join(format!("{name}.join"))).unwrap()
}

/// Asks again while nobody answers.
fn again<T>(mut ask: impl FnMut() -> Result<T, BusError>) -> T {
    let begun = Instant::now();
    loop {
        match ask() {
            Ok(found) => return found,
            Err(error) => assert!(begun.elapsed() < LONG, "{error}"),
        }
    }
}

fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A journal in memory.
#[derive(Default)]
struct Local(Mutex<Vec<String>>);

impl Local {
    fn text(&self, lines: usize) -> String {
        self.0.lock().unwrap().iter().take(lines).cloned().collect()
    }
}

impl LocalLines for Local {
    fn lines_from(&self, first: u64, _bytes: usize) -> Result<Vec<u8>, String> {
        let lines = self.0.lock().unwrap();
        Ok(lines.iter().skip(usize::try_from(first - 1).unwrap()).cloned().collect::<String>().into_bytes())
    }
}

/// Appends line after line until it is told to stop; every line must be acknowledged at last.
fn append(bus: &NatsBus, subject: &str, local: &Local, acknowledged: &AtomicU64, stop: &AtomicBool) {
    let mut writer =
        JournalWriter::new(bus, subject.to_owned(), format!("session of {subject}"), &Found::default());
    let mut line = 0;
    while !stop.load(Ordering::SeqCst) {
        line += 1;
        local.0.lock().unwrap().push(format!("{subject} {line}\n"));
        let begun = Instant::now();
        loop {
            match writer.publish(local, line) {
                Ok(()) => break,
                Err(JournalFault::Bus(error)) => assert!(begun.elapsed() < LONG, "{error}"),
                Err(fault) => panic!("line {line} of {subject}: {fault}"),
            }
        }
        acknowledged.store(line, Ordering::SeqCst);
    }
}

struct Trio {
    fleet: FleetFolder,
    servers: Vec<Option<FleetServer>>,
    _dir: TempDir,
}

impl Trio {
    fn start() -> Trio {
        let dir = tempfile::tempdir().unwrap();
        let ports = ports(6);
        let node =
            |pair: &[u16]| ClusterNode { host: "127.0.0.1".to_owned(), client: pair[0], cluster: pair[1] };
        let nodes = ports.chunks(2).map(node).collect();
        let cluster = FleetCluster { nodes, secret: RouteSecret("of-the-test".to_owned()) };
        let fleet = made(&dir, &settings("127.0.0.1:1".to_owned(), Some(tls()), Some(cluster)));
        let begin = |number: u8| {
            let fleet = fleet.clone();
            std::thread::spawn(move || start(&fleet, number))
        };
        // None is ready before all are there.
        let begun: Vec<_> = (1..=3).map(begin).collect();
        let servers = begun.into_iter().map(|one| Some(one.join().unwrap())).collect();
        Trio { fleet, servers, _dir: dir }
    }

    /// As a power cut would.
    fn kill(&mut self, number: u8) {
        let mut server = self.servers[usize::from(number) - 1].take().unwrap();
        assert!(Command::new("kill").args(["-9", &server.id().to_string()]).status().unwrap().success());
        assert_eq!(server.wait(LONG), ServerEnd::Ended);
    }
}

fn start(fleet: &FleetFolder, number: u8) -> FleetServer {
    FleetServer::start_node(fleet, &server_program(), Some(number), &AtomicBool::new(false)).unwrap()
}

#[test]
fn fl_81_leaders_of_three_servers_are_killed_and_nothing_acknowledged_is_lost() {
    let mut trio = Trio::start();
    let boss = NatsBus::connect(&join(&trio.fleet, "boss"), HASTY).unwrap();
    let info = again(|| boss.stream_info(names::JOURNALS));
    assert_eq!(info["config"]["num_replicas"], 3);
    assert_eq!(info["cluster"]["replicas"].as_array().unwrap().len(), 2, "{info}");
    assert_eq!(join(&trio.fleet, "w1").servers.len(), 3);
    let writers = [("w1", "af1.j.run.r1"), ("w2", "af1.j.run.r2")];
    let buses = writers.map(|(name, _)| NatsBus::connect(&join(&trio.fleet, name), HASTY).unwrap());
    let locals = [Local::default(), Local::default()];
    let acknowledged = [AtomicU64::new(0), AtomicU64::new(0)];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (((_, subject), bus), (local, count)) in
            writers.iter().zip(&buses).zip(locals.iter().zip(&acknowledged))
        {
            let stop = &stop;
            scope.spawn(move || append(bus, subject, local, count, stop));
        }
        let advance = || {
            let before = acknowledged.each_ref().map(|count| count.load(Ordering::SeqCst));
            wait_for("lines are acknowledged", || {
                acknowledged
                    .iter()
                    .zip(before)
                    .all(|(count, before)| count.load(Ordering::SeqCst) >= before + 20)
            });
        };
        // If an assertion fails in here, the writers must end all the same.
        let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            advance();
            let mut killed = Vec::new();
            for _ in 0..2 {
                let leader = again(|| {
                    let info = boss.stream_info(names::JOURNALS)?;
                    let name = info["cluster"]["leader"].as_str().unwrap_or_default();
                    let number = name.strip_prefix("archeflow-").and_then(|number| number.parse::<u8>().ok());
                    number.ok_or_else(|| BusError::NoAnswer("no leader".to_owned()))
                });
                trio.kill(leader);
                killed.push(leader);
                advance();
                trio.servers[usize::from(leader) - 1] = Some(start(&trio.fleet, leader));
                wait_for("the server has caught up", || {
                    let info = again(|| boss.stream_info(names::JOURNALS));
                    let others = info["cluster"]["replicas"].as_array().cloned().unwrap_or_default();
                    others.len() == 2
                        && others.iter().all(|one| one["current"] == true && one["offline"] != true)
                });
                advance();
            }
            killed
        }));
        stop.store(true, Ordering::SeqCst);
        assert_eq!(end.unwrap().len(), 2);
    });
    for ((_, subject), (local, count)) in writers.iter().zip(locals.iter().zip(&acknowledged)) {
        let lines = count.load(Ordering::SeqCst);
        let found = journal::read(&boss, subject).unwrap();
        assert_eq!(found.lines, lines);
        assert_eq!(String::from_utf8(found.text).unwrap(), local.text(usize::try_from(lines).unwrap()));
    }
    // Who does take over, overtakes.
    let (subject, local) = (writers[0].1, &locals[0]);
    let found = journal::read(&buses[1], subject).unwrap();
    let line = found.lines + 1;
    local.0.lock().unwrap().push(format!("{subject} {line}\n"));
    let mut first = JournalWriter::new(&buses[0], subject.to_owned(), "one".to_owned(), &found);
    let mut second = JournalWriter::new(&buses[1], subject.to_owned(), "two".to_owned(), &found);
    second.publish(local, line).unwrap();
    let end = first.publish(local, line);
    assert!(matches!(&end, Err(JournalFault::Fenced { by }) if by == "two"), "{end:?}");
}

#[test]
fn fl_82_tls_lets_in_who_trusts_the_right_certificate_and_says_what_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let listen = format!("127.0.0.1:{}", ports(1)[0]);
    let fleet = made(&dir, &settings(listen, Some(tls()), None));
    let _server = FleetServer::start(&fleet, &server_program()).unwrap();
    let right = join(&fleet, "w1");
    assert!(right.ca.is_some());
    let bus = NatsBus::connect(&right, NatsOptions::default()).unwrap();
    let put =
        Put { subject: "af1.j.run.r1", expect: Expect::Last(0), id: None, headers: &[], bytes: b"one\n" };
    assert!(matches!(bus.put(put), Ok(PutEnd::Kept(_))));

    let error = |join: &JoinFile| NatsBus::connect(join, NatsOptions::default()).err().expect("an error");
    let other = std::fs::read_to_string(certificate("other-ca.pem")).unwrap();
    let wrong = error(&JoinFile { ca: Some(other), ..right.clone() });
    assert!(matches!(wrong, JoinError::Tls { .. }), "{wrong:?}");
    assert!(wrong.to_string().contains("certificate"), "{wrong}");
    assert!(wrong.remedy().contains("join file"), "{}", wrong.remedy());
    let plain = error(&JoinFile { ca: None, ..right.clone() });
    assert!(matches!(plain, JoinError::Tls { .. }), "{plain:?}");
    assert!(plain.to_string().contains("TLS"), "{plain}");
    let nonsense = error(&JoinFile { ca: Some("nonsense".to_owned()), ..right });
    assert!(matches!(nonsense, JoinError::Certificate { .. }), "{nonsense:?}");
}

#[test]
fn fl_82_a_server_without_tls_is_named_to_who_expects_it() {
    let dir = tempfile::tempdir().unwrap();
    let listen = format!("127.0.0.1:{}", ports(1)[0]);
    let fleet = made(&dir, &settings(listen, None, None));
    let _server = FleetServer::start(&fleet, &server_program()).unwrap();
    let ca = Some(std::fs::read_to_string(certificate("ca.pem")).unwrap());
    let error =
        NatsBus::connect(&JoinFile { ca, ..join(&fleet, "w1") }, NatsOptions::default()).err().unwrap();
    assert!(matches!(error, JoinError::Tls { .. }), "{error:?}");
}
