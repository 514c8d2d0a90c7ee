//! The bus against a real `nats-server`: what it promises, and what it says when the server is away, killed, wiped or full.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "common/program.rs"]
mod program;
#[path = "common/settings.rs"]
mod settings;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use archeflow_core::sprint::event::SprintEvent;
use archeflow_fleet::bus::{Bus, BusError, Delivery, Expect, Lease, Put, PutEnd};
use archeflow_fleet::hold::Hold;
use archeflow_fleet::join::{FleetRole, JoinError, JoinFile};
use archeflow_fleet::journal::{Found, LocalLines};
use archeflow_fleet::keys::FleetKey;
use archeflow_fleet::message::{FleetOrder, Heartbeat, Held, WorkerCounts};
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_fleet::server::{FleetFolder, FleetServer, FleetSettings, ServerEnd, ServerFault, find_server};
use archeflow_fleet::worker::{NotEnded, Place, Served, serve};
use archeflow_fleet::{cleaning, names, status};
use tempfile::TempDir;

use program::server_program;
use settings::one_server;

/// Only a fault takes this long.
const LONG: Duration = Duration::from_secs(300);
/// Enough for all that a test keeps.
const DISK: u64 = 200_000_000;

struct World {
    dir: TempDir,
    fleet: FleetFolder,
    server: Option<FleetServer>,
}

impl World {
    fn new() -> World {
        World::with_disk(DISK)
    }

    fn with_disk(disk: u64) -> World {
        let mut world = World::without_server(disk);
        world.start();
        world
    }

    /// A fleet whose server does not run. Its port was free a moment ago.
    fn without_server(disk: u64) -> World {
        let dir = tempfile::tempdir().unwrap();
        let (fleet, is_new) = FleetFolder::init(&dir.path().join("fleet"), &one_server(disk)).unwrap();
        assert!(is_new);
        for (role, name) in [
            (FleetRole::Conductor, "boss"),
            (FleetRole::Worker, "w1"),
            (FleetRole::Worker, "w2"),
            (FleetRole::Person, "jo"),
        ] {
            fleet.add(role, name, None).unwrap();
        }
        World { dir, fleet, server: None }
    }

    fn start(&mut self) {
        assert!(self.server.is_none());
        self.server = Some(FleetServer::start(&self.fleet, &server_program()).unwrap());
    }

    /// As a power cut would.
    fn kill(&mut self) {
        let mut server = self.server.take().unwrap();
        assert!(Command::new("kill").args(["-9", &server.id().to_string()]).status().unwrap().success());
        assert_eq!(server.wait(LONG), ServerEnd::Ended);
    }

    fn wipe(&self) {
        std::fs::remove_dir_all(self.fleet.path().join("data")).unwrap();
    }

    fn join(&self, name: &str) -> JoinFile {
        JoinFile::read(&self.fleet.path().join(format!("{name}.join"))).unwrap()
    }

    fn bus(&self, name: &str) -> NatsBus {
        self.bus_with(name, NatsOptions::default())
    }

    fn bus_with(&self, name: &str, options: NatsOptions) -> NatsBus {
        NatsBus::connect(&self.join(name), options).unwrap()
    }
}

/// Does not wait long for a server that is away.
const HASTY: NatsOptions = NatsOptions { limit: Duration::from_secs(1), lease: Duration::from_secs(60) };

fn message<'a>(subject: &'a str, expect: Expect, bytes: &'a [u8]) -> Put<'a> {
    Put { subject, expect, id: None, headers: &[], bytes }
}

fn put(bus: &NatsBus, subject: &str, expect: Expect, bytes: &[u8]) -> Result<PutEnd, BusError> {
    bus.put(message(subject, expect, bytes))
}

fn kept(bus: &NatsBus, subject: &str, bytes: &[u8]) -> u64 {
    match put(bus, subject, Expect::Anything, bytes).unwrap() {
        PutEnd::Kept(seq) => seq,
        PutEnd::Refused => panic!("{subject} was refused"),
    }
}

fn take(bus: &NatsBus, queue: &str) -> Delivery {
    bus.take(queue, LONG).unwrap().expect("a delivery")
}

fn is_empty(bus: &NatsBus, queue: &str) -> bool {
    bus.take(queue, Duration::ZERO).unwrap().is_none()
}

/// Asks again while the server is away, and returns the first other answer.
fn again<T>(mut ask: impl FnMut() -> Result<T, BusError>) -> Result<T, BusError> {
    let begun = Instant::now();
    loop {
        match ask() {
            Err(BusError::NoAnswer(why)) if begun.elapsed() > LONG => panic!("no answer: {why}"),
            Err(BusError::NoAnswer(_)) => {}
            end => return end,
        }
    }
}

fn no_answer<T: std::fmt::Debug>(end: &Result<T, BusError>) {
    assert!(matches!(end, Err(BusError::NoAnswer(_))), "{end:?}");
}

#[test]
fn fl_50_messages_are_kept_with_expectations_and_read() {
    let world = World::new();
    let bus = world.bus("w1");
    let subject = "af1.j.run.r1";
    assert_eq!(bus.last(subject).unwrap(), None);
    assert_eq!(bus.next_from("AF_JOURNAL", "af1.j.run.>", 0).unwrap(), None);

    let first = Put {
        headers: &[("Af-Session", "s1"), ("Af-First", "1")],
        id: Some("s1:1"),
        ..message(subject, Expect::Last(0), b"one\n")
    };
    let PutEnd::Kept(one) = bus.put(first).unwrap() else { panic!("refused") };
    // The answer was lost, and the one who sent it asks again: refused, though it is ours.
    assert_eq!(bus.put(first).unwrap(), PutEnd::Refused);
    let last = bus.last(subject).unwrap().unwrap();
    assert_eq!((last.seq, last.bytes.as_slice(), last.subject.as_str()), (one, &b"one\n"[..], subject));
    assert_eq!((last.header("Af-Session"), last.header("Af-First")), (Some("s1"), Some("1")));
    assert_eq!(last.headers.len(), 2, "{:?}", last.headers);
    // By the server's clock, which is this machine's.
    let now = archeflow_host::clock::now();
    assert!(last.at <= now && last.at > now - 3_600_000, "{} {now}", last.at);

    assert_eq!(put(&bus, subject, Expect::Last(0), b"x").unwrap(), PutEnd::Refused);
    assert_eq!(put(&bus, subject, Expect::Last(one + 7), b"x").unwrap(), PutEnd::Refused);
    // Others on the stream do not count.
    kept(&bus, "af1.j.run.r2", b"other");
    let PutEnd::Kept(two) = put(&bus, subject, Expect::Last(one), b"two\n").unwrap() else { panic!() };
    assert!(two > one + 1);
    let next = bus.next_from("AF_JOURNAL", subject, one + 1).unwrap().unwrap();
    assert_eq!((next.seq, next.bytes.as_slice()), (two, &b"two\n"[..]));
    let other = bus.next_from("AF_JOURNAL", "af1.j.run.>", one + 1).unwrap().unwrap();
    assert_eq!(other.subject, "af1.j.run.r2");
    assert_eq!(bus.next_from("AF_JOURNAL", subject, two + 1).unwrap(), None);

    // The same id without an expectation is dropped, and the first one's number returned.
    let with_id = Put { id: Some("s1:9"), ..message("af1.r.s", Expect::Anything, b"report") };
    let end = bus.put(with_id).unwrap();
    assert_eq!(bus.put(with_id).unwrap(), end);

    // A part of a file: there already is as good as put.
    let part: Vec<u8> = (0..512 * 1024).map(|n: u32| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
    let end = put(&bus, "af1.f.abc.0", Expect::Last(0), &part).unwrap();
    assert!(matches!(end, PutEnd::Kept(_)));
    assert_eq!(put(&bus, "af1.f.abc.0", Expect::Last(0), &part).unwrap(), PutEnd::Refused);
    assert_eq!(bus.last("af1.f.abc.0").unwrap().unwrap().bytes, part);
    // Larger than the server takes.
    let end = put(&bus, "af1.f.abc.1", Expect::Anything, &vec![0; 2_000_000]);
    assert!(matches!(end, Err(BusError::Wrong(_))), "{end:?}");

    let boss = world.bus("boss");
    let revisions: Vec<u64> = (0..12).map(|n| kept(&boss, "$KV.AF_LEDGER.all", &[n])).collect();
    let oldest = boss.next_from("KV_AF_LEDGER", "$KV.AF_LEDGER.all", 0).unwrap().unwrap();
    assert_eq!(oldest.seq, revisions[4], "eight revisions are kept");
    assert_eq!(boss.last("$KV.AF_LEDGER.all").unwrap().unwrap().bytes, [11]);
}

#[test]
fn fl_51_a_delivery_is_leased_and_comes_again() {
    let world = World::new();
    let boss =
        world.bus_with("boss", NatsOptions { lease: Duration::from_secs(1), ..NatsOptions::default() });
    let (one, two) = (world.bus("w1"), world.bus("w2"));
    assert!(is_empty(&one, "linux"), "a queue that nobody made is empty");

    let order = Put { headers: &[("Af-Order", "7")], ..message("af1.o.linux", Expect::Anything, b"order") };
    let PutEnd::Kept(seq) = boss.put(order).unwrap() else { panic!() };
    let first = take(&one, "linux");
    assert_eq!((first.seq, first.times, first.bytes.as_slice()), (seq, 1, &b"order"[..]));
    assert_eq!(first.subject, "af1.o.linux");
    assert_eq!(first.headers, [("Af-Order".to_owned(), "7".to_owned())]);
    // Its lease ends, and another worker gets it.
    let second = take(&two, "af1.o.linux");
    assert_eq!((second.seq, second.times), (seq, 2));
    // The token is valid for another connection of the same member, as after a restart.
    world.bus("w2").lease(&second.token, Lease::Done).unwrap();
    assert_eq!(boss.stream_info("AF_ORDERS").unwrap()["state"]["messages"], 0);
    // Twice is as good as once.
    two.lease(&second.token, Lease::Done).unwrap();

    kept(&boss, "af1.o.linux", b"back");
    let given = take(&one, "linux");
    one.lease(&given.token, Lease::Back(Duration::ZERO)).unwrap();
    let given = take(&two, "linux");
    assert_eq!(given.times, 2);
    two.lease(&given.token, Lease::Back(Duration::from_secs(3600))).unwrap();
    assert!(one.take("linux", Duration::from_secs(3)).unwrap().is_none(), "given back for an hour");
    assert_eq!(boss.queue_info("linux").unwrap()["num_ack_pending"], 1);
    boss.remove("AF_ORDERS", given.seq).unwrap();
    boss.remove("AF_ORDERS", given.seq).unwrap();

    kept(&boss, "af1.o.linux", b"poison");
    let given = take(&one, "linux");
    one.lease(&given.token, Lease::Never).unwrap();
    assert!(one.take("linux", Duration::from_secs(3)).unwrap().is_none());
    assert_eq!(boss.stream_info("AF_ORDERS").unwrap()["state"]["messages"], 0);

    for wrong in ["", "af1.o.linux", "$JS.ACK.x", "$JS.API.STREAM.DELETE.AF_ORDERS"] {
        let end = one.lease(wrong, Lease::Done);
        assert!(matches!(end, Err(BusError::Wrong(_))), "{wrong}: {end:?}");
    }
}

/// By the server when its lease ended, and by the conductor as a second message.
#[test]
fn fl_33_what_is_handed_out_again_is_held_and_acknowledged_with_the_first_delivery() {
    let world = World::new();
    let lease = Duration::from_secs(1);
    let boss = world.bus_with("boss", NatsOptions { lease, ..NatsOptions::default() });
    let worker = world.bus("w1");
    // Nobody can read it, so it is handed back as it is.
    kept(&boss, "af1.o.linux", b"{\"v\":99}");
    let which = Held { sprint: "s".to_owned(), seq: 3 };
    let hold = Hold::new(Some(which.clone()), take(&worker, "linux"));
    let again = take(&worker, "linux");
    assert_eq!(again.times, 2);
    assert!(!hold.adopt(&Held { seq: 4, ..which.clone() }, &again), "another order");
    assert!(hold.adopt(&which, &again));
    // In a queue where its lease does not end meanwhile.
    kept(&world.bus("boss"), "af1.o.macos", b"{\"v\":99}");
    assert!(hold.adopt(&which, &take(&worker, "macos")));
    assert_eq!(boss.stream_info("AF_ORDERS").unwrap()["state"]["messages"], 2);
    assert!(hold.extend(&worker));
    assert_eq!(serve(&worker, &NoPlace, "w1", &hold), Ok(Served::NotForUs));
    // Of two copies one is handed back.
    assert_eq!(boss.stream_info("AF_ORDERS").unwrap()["state"]["messages"], 1);
    assert!(!hold.adopt(&which, &again), "it is no longer performed");
    assert!(is_empty(&world.bus("w2"), "macos"), "it is handed back for a while");
}

/// Performs nothing.
struct NoPlace;

impl Place for NoPlace {
    fn take_over(&self, _: &FleetOrder, _: &str, _: &Found) -> Result<(), NotEnded> {
        Err(NotEnded::Fenced)
    }

    fn local(&self, _: &FleetOrder, _: &str) -> Box<dyn LocalLines> {
        unreachable!("nothing is taken over")
    }

    fn perform(
        &self,
        _: &FleetOrder,
        _: &str,
        _: &mut dyn FnMut(u64) -> Result<(), NotEnded>,
    ) -> Result<SprintEvent, NotEnded> {
        Err(NotEnded::Fenced)
    }

    fn be_patient(&self, _: u32, _: &BusError) -> bool {
        false
    }

    fn session(&self) -> String {
        "w1.s".to_owned()
    }
}

#[test]
fn fl_52_an_extended_lease_does_not_end() {
    let world = World::new();
    let lease = Duration::from_secs(6);
    let boss = world.bus_with("boss", NatsOptions { lease, ..NatsOptions::default() });
    let (worker, beats, other) = (world.bus("w1"), world.bus("w1"), world.bus("w2"));
    kept(&boss, "af1.o.linux", b"long");
    let given = take(&worker, "linux");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                beats.lease(&given.token, Lease::Extend).unwrap();
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let end = other.take("linux", lease * 2).unwrap();
        over.store(true, Ordering::SeqCst);
        assert!(end.is_none(), "it was handed out twice");
    });
    // Without beats it comes again.
    assert_eq!(take(&other, "linux").times, 2);
}

#[test]
fn fl_53_reports_are_taken_by_the_conductor_and_submissions_too() {
    let world = World::new();
    let (boss, worker, person) = (world.bus("boss"), world.bus("w1"), world.bus("jo"));
    // Before anybody made the queue.
    kept(&worker, "af1.r.sprint-1", b"report");
    let report = take(&boss, "af1.r.sprint-1");
    assert_eq!(report.bytes, b"report");
    boss.lease(&report.token, Lease::Done).unwrap();
    assert!(is_empty(&boss, "af1.r.sprint-1"));
    assert!(is_empty(&boss, "af1.r.sprint-2"));
    kept(&person, "af1.s.jo", b"task");
    let task = take(&boss, "af1.s.>");
    assert_eq!((task.subject.as_str(), task.bytes.as_slice()), ("af1.s.jo", &b"task"[..]));
    boss.lease(&task.token, Lease::Done).unwrap();
    assert!(is_empty(&boss, "af1.s.>"));
    // Submissions are kept for the audit.
    assert_eq!(person.last("af1.s.jo").unwrap().unwrap().bytes, b"task");
    let end = boss.take("af1.hb.w1", Duration::ZERO);
    assert!(matches!(end, Err(BusError::Wrong(_))), "{end:?}");
}

#[test]
fn fl_54_many_threads_take_from_many_queues() {
    let world = World::new();
    let boss = world.bus("boss");
    let classes = ["a", "b", "c"];
    for n in 0..30_u8 {
        kept(&boss, &format!("af1.o.{}", classes[usize::from(n) % 3]), &[n]);
    }
    let worker = world.bus("w1");
    let mut all: Vec<u8> = std::thread::scope(|scope| {
        let taken = classes.map(|class| [0; 2].map(|_| class)).concat().into_iter().map(|class| {
            let worker = &worker;
            scope.spawn(move || {
                let mut mine = Vec::new();
                while let Some(given) = worker.take(class, Duration::ZERO).unwrap() {
                    worker.lease(&given.token, Lease::Done).unwrap();
                    mine.extend(given.bytes);
                }
                mine
            })
        });
        let threads: Vec<_> = taken.collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    all.sort_unstable();
    assert_eq!(all, (0..30).collect::<Vec<u8>>(), "each order once");
}

#[test]
fn fl_55_what_is_said_is_heard_by_who_may() {
    let world = World::new();
    let (boss, worker, person) = (world.bus("boss"), world.bus("w1"), world.bus("jo"));
    let beats = boss.hear("af1.hb.>").unwrap();
    let prints = person.hear("af1.m.run-1").unwrap();
    let commands = worker.hear("af1.c.w1").unwrap();
    worker.say("af1.hb.w1", b"beat").unwrap();
    worker.say("af1.m.run-1", b"words").unwrap();
    boss.say("af1.c.w1", b"drain").unwrap();
    let heard = beats.recv_timeout(LONG).unwrap();
    assert_eq!((heard.subject.as_str(), heard.bytes.as_slice()), ("af1.hb.w1", &b"beat"[..]));
    assert_eq!(prints.recv_timeout(LONG).unwrap().bytes, b"words");
    assert_eq!(commands.recv_timeout(LONG).unwrap().bytes, b"drain");
    // One who no longer listens costs nobody anything.
    drop(beats);
    worker.say("af1.hb.w1", b"beat").unwrap();
    assert_eq!(boss.last("af1.o.none").unwrap(), None);
}

#[test]
fn fl_56_a_killed_server_gives_no_answer_and_then_goes_on() {
    let mut world = World::new();
    let (boss, worker) = (world.bus_with("boss", HASTY), world.bus_with("w1", HASTY));
    let beats = boss.hear("af1.hb.w1").unwrap();
    let subject = "af1.j.run.r1";
    kept(&worker, subject, b"one");
    kept(&boss, "af1.o.linux", b"order");
    let given = take(&worker, "linux");
    // One is waiting when it happens.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| worker.take("linux", LONG));
        // It is known to wait when the server says so.
        while boss.queue_info("linux").unwrap()["num_waiting"] != 1 {}
        world.kill();
        no_answer(&waiting.join().unwrap());
    });
    no_answer(&put(&worker, subject, Expect::Anything, b"never"));
    no_answer(&worker.last(subject));
    no_answer(&worker.next_from("AF_JOURNAL", subject, 0));
    no_answer(&worker.take("linux", Duration::ZERO));
    no_answer(&worker.lease(&given.token, Lease::Extend));
    no_answer(&worker.say("af1.hb.w1", b"beat"));
    no_answer(&worker.hear("af1.c.w1"));
    world.start();
    // What got no answer while there was no server does not arrive later.
    let last = again(|| worker.last(subject)).unwrap().unwrap();
    assert_eq!(last.bytes, b"one");
    let end = again(|| put(&worker, subject, Expect::Last(last.seq), b"two")).unwrap();
    assert!(matches!(end, PutEnd::Kept(_)));
    again(|| worker.lease(&given.token, Lease::Done)).unwrap();
    assert_eq!(again(|| boss.stream_info("AF_ORDERS")).unwrap()["state"]["messages"], 0);
    again(|| put(&boss, "af1.o.linux", Expect::Anything, b"next")).unwrap();
    assert_eq!(again(|| worker.take("linux", LONG)).unwrap().unwrap().bytes, b"next");
    // Who listened before listens again.
    worker.say("af1.hb.w1", b"beat").unwrap();
    assert_eq!(beats.recv_timeout(LONG).unwrap().bytes, b"beat");
    world.kill();
    world.start();
    assert_eq!(again(|| worker.last(subject)).unwrap().unwrap().bytes, b"two");
}

#[test]
fn fl_57_a_wiped_server_is_filled_again() {
    let mut world = World::new();
    let (boss, worker) = (world.bus_with("boss", HASTY), world.bus_with("w1", HASTY));
    let subject = "af1.j.run.r1";
    let one = kept(&worker, subject, b"one");
    kept(&boss, "af1.o.linux", b"order");
    let given = take(&worker, "linux");
    world.kill();
    world.wipe();
    world.start();
    assert_eq!(again(|| worker.last(subject)).unwrap(), None);
    assert_eq!(again(|| put(&worker, subject, Expect::Last(one), b"two")).unwrap(), PutEnd::Refused);
    assert!(matches!(put(&worker, subject, Expect::Last(0), b"one"), Ok(PutEnd::Kept(_))));
    let end = worker.lease(&given.token, Lease::Done);
    assert!(matches!(end, Err(BusError::Wrong(_))), "{end:?}");
    // The conductor makes the queue anew by giving an order.
    again(|| put(&boss, "af1.o.linux", Expect::Anything, b"again")).unwrap();
    assert_eq!(take(&worker, "linux").bytes, b"again");
}

#[test]
fn fl_58_a_full_stream_says_so_at_once() {
    let world = World::with_disk(50_000_000);
    let person = world.bus("jo");
    let task = vec![0; 300_000];
    let mut ends = (0..10).map(|_| put(&person, "af1.s.jo", Expect::Anything, &task));
    assert!(ends.next().unwrap().is_ok());
    let full = ends.find_map(Result::err).expect("the stream has a limit");
    assert!(matches!(full, BusError::Full(_)), "{full:?}");
    // Others have room.
    kept(&world.bus("w1"), "af1.j.run.r1", b"one");
}

#[test]
fn fl_59_a_server_without_streams_is_named() {
    let world = World::without_server(DISK);
    let mut server = Command::new(server_program())
        .args(["-c", "server.conf"])
        .current_dir(world.fleet.path())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let bus = loop {
        match NatsBus::connect(&world.join("boss"), NatsOptions::default()) {
            Ok(bus) => break bus,
            Err(error) => assert!(begun.elapsed() < LONG, "{error}"),
        }
    };
    assert!(bus.server_version().starts_with("2."), "{}", bus.server_version());
    let wrong = |end: BusError| assert!(matches!(end, BusError::Wrong(_)), "{end:?}");
    wrong(put(&bus, "af1.j.sprint.s", Expect::Last(0), b"x").unwrap_err());
    wrong(put(&bus, "af1.o.linux", Expect::Last(0), b"x").unwrap_err());
    wrong(bus.last("af1.j.sprint.s").unwrap_err());
    wrong(bus.take("af1.r.s", Duration::ZERO).unwrap_err());
    wrong(world.bus("w1").take("linux", LONG).unwrap_err());
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn fl_60_who_is_not_let_in_learns_why() {
    let mut world = World::new();
    let stranger = JoinFile { key: FleetKey::generate().unwrap(), ..world.join("w1") };
    let refused = |join: &JoinFile| NatsBus::connect(join, NatsOptions::default()).err().expect("an error");
    let error = refused(&stranger);
    assert!(matches!(error, JoinError::Refused { .. }), "{error}");
    assert!(error.to_string().contains("does not know the key of w1"), "{error}");
    assert!(error.remedy().contains("archeflow fleet add"), "{}", error.remedy());

    // A key under another name is let in and can't hear its answers.
    let renamed = JoinFile { name: "w2".to_owned(), ..world.join("w1") };
    let end = NatsBus::connect(&renamed, HASTY).unwrap().last("af1.j.run.r1");
    assert!(matches!(end, Err(BusError::Denied(_))), "{end:?}");

    // Added and removed while the server runs.
    let late = world.dir.path().join("late.join");
    assert_eq!(world.fleet.add(FleetRole::Worker, "late", Some(&late)).unwrap(), late);
    assert!(world.fleet.reload());
    let begun = Instant::now();
    let bus = loop {
        match NatsBus::connect(&JoinFile::read(&late).unwrap(), HASTY) {
            Ok(bus) => break bus,
            Err(error) => assert!(begun.elapsed() < LONG, "{error}"),
        }
    };
    kept(&bus, "af1.j.run.r9", b"one");
    world.fleet.remove("late").unwrap();
    assert!(world.fleet.reload());
    while !matches!(bus.last("af1.j.run.r9"), Err(BusError::NoAnswer(_))) {
        assert!(begun.elapsed() < LONG, "a removed member is still let in");
    }
    assert!(matches!(refused(&JoinFile::read(&late).unwrap()), JoinError::Refused { .. }));

    world.kill();
    let error = refused(&world.join("w1"));
    assert!(matches!(error, JoinError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("nats://127.0.0.1:"), "{error}");
    assert!(!world.fleet.reload(), "there is no server to tell");
    let nowhere =
        JoinFile { servers: vec!["nats://no-such-host.invalid:4222".to_owned()], ..world.join("w1") };
    assert!(matches!(refused(&nowhere), JoinError::Unreachable { .. }));
}

/// Every role, what it does, and whether it may.
#[test]
fn fl_61_each_role_may_do_its_own_and_nothing_else() {
    let world = World::new();
    let names = ["w1", "jo", "boss"];
    let buses = names.map(|name| world.bus(name));
    // Who may, in the order of the names.
    let puts = [
        ("af1.o.linux", [false, false, true]),
        ("af1.r.s1", [true, false, false]),
        ("af1.j.run.r1", [true, false, false]),
        ("af1.j.sprint.s1", [false, false, true]),
        ("af1.f.abc.0", [true, false, true]),
        ("af1.s.jo", [false, true, false]),
        ("af1.a.jo.shop.abc", [false, true, false]),
        ("af1.s.w1", [false, false, false]),
        ("af1.a.boss.shop.abc", [false, false, false]),
        ("$KV.AF_LEDGER.all", [false, false, true]),
        ("$KV.AF_ACCOUNT.a", [true, false, true]),
        ("$KV.AF_TRUST.a", [false, false, true]),
        ("$KV.AF_REPO.a", [false, false, true]),
    ];
    for (subject, may) in puts {
        for ((bus, name), may) in buses.iter().zip(names).zip(may) {
            let end = put(bus, subject, Expect::Anything, b"x");
            assert_eq!(end.is_ok(), may, "{name} puts {subject}: {end:?}");
            assert!(may || matches!(end, Err(BusError::Denied(_))), "{name} puts {subject}: {end:?}");
        }
    }
    let reads = [
        ("AF_JOURNAL", [true, true, true]),
        ("AF_FILES", [true, true, true]),
        ("AF_SUBMIT", [true, true, true]),
        ("AF_ORDERS", [false, false, true]),
        ("AF_REPORTS", [false, false, true]),
        ("KV_AF_LEDGER", [false, true, true]),
        ("KV_AF_ACCOUNT", [true, true, true]),
        ("KV_AF_TRUST", [true, true, true]),
        ("KV_AF_REPO", [true, true, true]),
    ];
    for (stream, may) in reads {
        for ((bus, name), may) in buses.iter().zip(names).zip(may) {
            let end = bus.next_from(stream, ">", 0);
            assert_eq!(end.is_ok(), may, "{name} reads {stream}: {end:?}");
            assert!(may || matches!(end, Err(BusError::Denied(_))), "{name} reads {stream}: {end:?}");
        }
    }
    let hears = [
        ("af1.hb.>", [false, true, true]),
        ("af1.m.>", [false, true, true]),
        ("af1.c.w1", [true, false, false]),
        ("af1.c.w2", [false, false, false]),
        ("af1.o.>", [false, false, false]),
        ("af1.j.>", [false, false, false]),
        (">", [false, false, false]),
        ("_INBOX.>", [false, false, false]),
        ("_INBOX.w1.>", [true, false, false]),
        ("_INBOX.jo.x", [false, true, false]),
        ("$JS.ACK.>", [false, false, false]),
    ];
    for (subject, may) in hears {
        for ((bus, name), may) in buses.iter().zip(names).zip(may) {
            let end = bus.hear(subject);
            assert_eq!(end.is_ok(), may, "{name} hears {subject}: {end:?}");
            assert!(may || matches!(end, Err(BusError::Denied(_))), "{name} hears {subject}: {end:?}");
        }
    }
    let beats = buses[2].hear("af1.hb.>").unwrap();
    let says = [
        ("af1.hb.w1", [true, false, false]),
        ("af1.hb.w2", [false, false, false]),
        ("af1.m.run-1", [true, false, false]),
        ("af1.c.w1", [false, false, true]),
        ("_INBOX.w1.x", [false, false, false]),
        ("_INBOX.jo.x", [false, false, false]),
    ];
    for (subject, may) in says {
        for ((bus, name), may) in buses.iter().zip(names).zip(may) {
            bus.say(subject, b"x").unwrap();
            // What the server says about it comes before its next answer.
            bus.last("$KV.AF_TRUST.a").unwrap();
            let end = bus.say(subject, b"x");
            assert_eq!(end.is_ok(), may, "{name} says {subject}: {end:?}");
        }
    }
    assert_eq!(beats.recv_timeout(LONG).unwrap().subject, "af1.hb.w1");
    let denied = |end: Result<(), BusError>| matches!(end, Err(BusError::Denied(_)));
    for (bus, name, is_boss) in
        [(&buses[0], "w1", false), (&buses[1], "jo", false), (&buses[2], "boss", true)]
    {
        assert!(denied(bus.lay_out(1_000_000, 1)), "{name} makes streams");
        assert_eq!(denied(bus.make_queue("macos")), !is_boss, "{name} makes queues");
        assert_eq!(denied(bus.purge("AF_JOURNAL", "af1.j.run.none")), !is_boss, "{name} purges");
        assert!(denied(bus.purge("AF_SUBMIT", "af1.s.>")), "{name} removes the audit");
        assert_eq!(denied(bus.remove("AF_ORDERS", 99)), !is_boss, "{name} removes orders");
        assert!(denied(bus.remove("AF_SUBMIT", 1)), "{name} removes submissions");
    }
    // Orders are the workers', reports the conductor's.
    assert_eq!(take(&buses[0], "linux").bytes, b"x");
    for (bus, queue) in
        [(&buses[1], "linux"), (&buses[2], "linux"), (&buses[0], "af1.r.s1"), (&buses[0], "af1.s.>")]
    {
        let end = bus.take(queue, Duration::ZERO);
        assert!(matches!(end, Err(BusError::Denied(_))), "{queue}: {end:?}");
    }
}

#[test]
fn fl_62_a_folder_is_made_once_and_keys_stay() {
    let world = World::new();
    let settings = world.fleet.settings().unwrap();
    let key = world.join("w1").key.public();
    let (again, is_new) =
        FleetFolder::init(world.fleet.path(), &FleetSettings { disk: 1, ..settings.clone() }).unwrap();
    assert!(!is_new);
    assert_eq!(again.settings().unwrap(), settings);
    assert_eq!(world.join("w1").key.public(), key);
    // The server has public halves only.
    let seed = world.join("w1").key.seed().unwrap();
    for file in ["server.conf", "fleet.json"] {
        let text = std::fs::read_to_string(world.fleet.path().join(file)).unwrap();
        assert!(text.contains(&key) && !text.contains(&seed), "{file}");
    }
    for (role, name, said) in [
        (FleetRole::Worker, "w1", "w1 is a worker"),
        (FleetRole::Person, "w1", "w1 is a worker"),
        (FleetRole::Worker, "a.b", "can't name a member"),
        (FleetRole::Worker, "*", "can't name a member"),
        (FleetRole::Worker, "", "can't name a member"),
    ] {
        let error = again.add(role, name, None).unwrap_err();
        assert!(error.to_string().contains(said), "{name}: {error}");
        assert!(!error.remedy().is_empty());
    }
    assert!(matches!(again.remove("serve"), Err(ServerFault::Needed { .. })));
    let unknown = again.remove("nobody").unwrap_err();
    assert!(unknown.to_string().contains("boss"), "{unknown}");
    assert!(matches!(FleetFolder::open(world.dir.path()), Err(ServerFault::NoFleet { .. })));
    // Two servers never have one folder.
    let error = FleetServer::start(&world.fleet, &server_program()).err().expect("it is in use");
    assert!(matches!(error, ServerFault::Lock(_)), "{error}");
}

#[test]
fn fl_63_the_server_is_found_and_its_version_checked() {
    let dir = tempfile::tempdir().unwrap();
    let fake = |name: &str, says: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\necho '{says}'\n")).unwrap();
        archeflow_host::platform::files::set_mode(&path, 0o755).unwrap();
        path
    };
    let nothing = |_: &str| None;
    let (_, version) = find_server(Some(&server_program()), nothing).unwrap();
    assert!(version.starts_with("2."), "{version}");
    let by_variable =
        find_server(None, |name| (name == "ARCHEFLOW_NATS_SERVER").then(|| server_program().into()));
    assert_eq!(by_variable.unwrap().0, server_program());
    let good = fake("nats-server", "nats-server: v2.15.1");
    let by_path = find_server(None, |name| (name == "PATH").then(|| dir.path().into()));
    assert_eq!(by_path.unwrap(), (good, "2.15.1".to_owned()));
    assert!(matches!(find_server(None, nothing), Err(ServerFault::NoServer)));
    for (name, says, said) in [
        ("old", "nats-server: v2.9.10", "nats-server 2.9.10"),
        ("new", "nats-server: v3.0.0", "nats-server 3.0.0"),
        ("other", "hello", "no nats-server"),
    ] {
        let error = find_server(Some(&fake(name, says)), nothing).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
        assert!(error.remedy().contains("versions 2.11 up to 2.x"), "{}", error.remedy());
    }
    let missing = find_server(Some(&dir.path().join("none")), nothing).unwrap_err();
    assert!(missing.to_string().contains("none"), "{missing}");
}

#[test]
fn fl_85_status_shows_workers_classes_streams_and_sprints() {
    let world = World::new();
    let (boss, person, worker) = (world.bus("boss"), world.bus("jo"), world.bus("w1"));
    kept(&boss, "af1.o.any", b"order");
    kept(&boss, "af1.o.label=3agpu", b"order");
    kept(&boss, "af1.j.sprint.2026-11-18-fleet", b"{\"type\":\"sprint.start\"}\n");
    kept(&boss, "af1.j.sprint.2026-11-17-fleet", b"{\"type\":\"sprint.end\"}\n");
    take(&worker, "any");
    let beat = Heartbeat {
        v: 1,
        worker: "w1".to_owned(),
        version: "0.4.0".to_owned(),
        slots: 2,
        draining: false,
        offers: ["os:linux".to_owned()].into(),
        holds: Vec::new(),
        free_bytes: 1_000,
        done: WorkerCounts::default(),
        at: archeflow_host::clock::now(),
    };
    let beat = serde_json::to_vec(&beat).unwrap();
    let over = AtomicBool::new(false);
    let expected = BTreeSet::from(["w1".to_owned()]);
    let found = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                worker.say("af1.hb.w1", &beat).unwrap();
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        // It ends as soon as all were heard, and not after this time.
        let found = status::look(&person, &expected, LONG);
        over.store(true, Ordering::SeqCst);
        found.unwrap()
    });
    assert_eq!((found.workers.len(), found.silent.len()), (1, 0));
    assert!(found.workers[0].skew_ms.abs() < 30_000 && found.oldest_order_at.is_some());
    let classes: Vec<(usize, u64, u64, usize)> =
        found.classes.iter().map(|one| (one.needs.len(), one.waiting, one.leased, one.workers)).collect();
    assert!(classes.contains(&(0, 0, 1, 1)) && classes.contains(&(1, 1, 0, 0)), "{classes:?}");
    assert_eq!(found.streams.len(), 9);
    assert!(found.streams.iter().all(|stream| stream.limit > 0 && stream.copies == 1));
    let sprints: Vec<(&str, bool)> =
        found.sprints.iter().map(|one| (one.sprint.as_str(), one.ended)).collect();
    assert_eq!(sprints, [("2026-11-18-fleet", false), ("2026-11-17-fleet", true)]);
    // Nobody is heard any more.
    let silent = status::look(&boss, &BTreeSet::from(["w2".to_owned()]), Duration::from_millis(200)).unwrap();
    assert_eq!(silent.silent, ["w2"]);
    let end = status::look(&worker, &expected, Duration::ZERO);
    assert!(matches!(end, Err(BusError::Denied(_))), "{end:?}");
}

#[test]
fn fl_86_old_ended_journals_go_whole_with_the_files_that_only_they_name() {
    const RUN: &str = "2026-11-15-greet-people-by-name";
    const UNFINISHED: &str = "2026-11-15-greet-people-by-name-2";
    let world = World::new();
    let (boss, worker) = (world.bus("boss"), world.bus("w1"));
    let recorded = |run: &str| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../app/tests/recorded");
        std::fs::read_to_string(folder.join(format!("{run}.jsonl"))).unwrap()
    };
    let text = recorded(RUN);
    let journal = |bus: &NatsBus, subject: &str, text: &str| {
        let count = text.lines().count().to_string();
        let headers = [("Af-Session", "s"), ("Af-First", "1"), ("Af-Lines", count.as_str())];
        let put = Put { headers: &headers, ..message(subject, Expect::Last(0), text.as_bytes()) };
        assert!(matches!(bus.put(put), Ok(PutEnd::Kept(_))));
    };
    let run = names::run_journal(RUN);
    journal(&worker, &run, &text);
    // Of another run than its lines say, and one that has not ended.
    journal(&worker, "af1.j.run.damaged", &text);
    let whole = recorded(UNFINISHED);
    let begun: String = whole.split_inclusive('\n').take(whole.lines().count() / 2).collect();
    let unfinished = names::run_journal(UNFINISHED);
    journal(&worker, &unfinished, &begun);
    journal(&boss, "af1.j.sprint.over", "{\"type\":\"sprint.end\"}\n");
    journal(&boss, "af1.j.sprint.going", "{\"type\":\"sprint.start\"}\n");
    let name = |run: &str, hash: &str| {
        let subject = format!("af1.f.n.{}.1.file", names::token(run));
        kept(&worker, &subject, format!("{{\"v\":1,\"hash\":\"{hash}\"}}").as_bytes());
        kept(&worker, &format!("af1.f.{hash}.0"), hash.as_bytes());
    };
    name(RUN, "aaa");
    name("damaged", "bbb");
    name(RUN, "ccc");
    kept(&worker, "af1.f.n.damaged.2.file", b"{\"v\":1,\"hash\":\"ccc\"}");
    kept(&worker, "af1.f.ddd.0", b"named by nobody");
    // Reports of an ended sprint that nobody took.
    let queues = || boss.queue_infos(names::REPORTS).unwrap().len();
    kept(&worker, &names::reports("over"), b"late");
    boss.make_queue(&names::reports("over")).unwrap();
    boss.make_queue(&names::reports("going")).unwrap();
    assert_eq!(queues(), 2);
    // Everything is too new.
    let plan = cleaning::plan(&boss, 1).unwrap();
    assert_eq!((plan.runs.len(), plan.sprints.len(), plan.files.len(), plan.kept), (0, 0, 0, 5));
    let later = archeflow_host::clock::now() + 60_000;
    let plan = cleaning::plan(&boss, later).unwrap();
    assert_eq!(
        (plan.runs.as_slice(), plan.sprints.as_slice()),
        (&[RUN.to_owned()][..], &["over".to_owned()][..])
    );
    assert_eq!(plan.files, ["aaa", "ddd"]);
    assert_eq!((plan.unreadable.len(), plan.kept), (1, 2), "{plan:?}");
    assert!(boss.last(&run).unwrap().is_some(), "planning removes nothing");
    assert!(matches!(cleaning::carry_out(&world.bus("jo"), &plan), Err(BusError::Denied(_))));
    assert!(cleaning::carry_out(&boss, &plan).unwrap().is_empty());
    assert_eq!(boss.last(&run).unwrap(), None);
    assert_eq!(queues(), 1);
    assert_eq!(boss.stream_info(names::REPORTS).unwrap()["state"]["messages"], 0);
    for stays in ["af1.j.run.damaged", &unfinished, "af1.j.sprint.going", "af1.f.bbb.0", "af1.f.ccc.0"] {
        assert!(boss.last(stays).unwrap().is_some(), "{stays}");
    }
    for goes in
        ["af1.j.sprint.over", "af1.f.aaa.0", "af1.f.ddd.0", &format!("af1.f.n.{}.1.file", names::token(RUN))]
    {
        assert_eq!(boss.last(goes).unwrap(), None, "{goes}");
    }
    let again = cleaning::plan(&boss, later).unwrap();
    assert_eq!((again.runs.len(), again.sprints.len(), again.files.len()), (0, 0, 0));
}
