//! Copies of a fleet's journals, from a real `nats-server`: complete, only what is new, and true after the server lost something.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "common/program.rs"]
mod program;
#[path = "common/settings.rs"]
mod settings;

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use archeflow_fleet::bus::{Bus, BusError, BusSeq, Delivery, Expect, Heard, Kept, Lease, Put, PutEnd};
use archeflow_fleet::join::{FleetRole, JoinFile};
use archeflow_fleet::journal::{self, JournalWriter, LocalLines};
use archeflow_fleet::mirror::{Mirror, Refreshed};
use archeflow_fleet::names;
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_fleet::server::{FleetFolder, FleetServer, ServerEnd};
use archeflow_host::platform::files as os;
use tempfile::TempDir;

use program::server_program;
use settings::one_server;

/// Only a fault takes this long.
const LONG: Duration = Duration::from_secs(300);
const DISK: u64 = 200_000_000;
const RUN: &str = "2026-11-15-give-the-discount-from-100-euros-on";

struct World {
    dir: TempDir,
    fleet: FleetFolder,
    server: Option<FleetServer>,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let (fleet, _) = FleetFolder::init(&dir.path().join("fleet"), &one_server(DISK)).unwrap();
        for (role, name) in [
            (FleetRole::Conductor, "boss"),
            (FleetRole::Worker, "w1"),
            (FleetRole::Worker, "w2"),
            (FleetRole::Person, "jo"),
        ] {
            fleet.add(role, name, None).unwrap();
        }
        let server = Some(FleetServer::start(&fleet, &server_program()).unwrap());
        World { dir, fleet, server }
    }

    fn join(&self, name: &str) -> JoinFile {
        JoinFile::read(&self.fleet.path().join(format!("{name}.join"))).unwrap()
    }

    fn bus(&self, name: &str) -> NatsBus {
        NatsBus::connect(&self.join(name), NatsOptions::default()).unwrap()
    }

    fn mirror(&self) -> Mirror {
        Mirror::open(&self.dir.path().join("state"), &self.join("jo")).unwrap()
    }

    /// The server starts again with nothing.
    fn lose_everything(&mut self) {
        let mut server = self.server.take().unwrap();
        assert!(Command::new("kill").args(["-9", &server.id().to_string()]).status().unwrap().success());
        assert_eq!(server.wait(LONG), ServerEnd::Ended);
        drop(server);
        std::fs::remove_dir_all(self.fleet.path().join("data")).unwrap();
        self.server = Some(FleetServer::start(&self.fleet, &server_program()).unwrap());
    }
}

/// Counts what is asked of the server.
struct Counting {
    bus: NatsBus,
    reads: AtomicU64,
}

impl Counting {
    fn new(bus: NatsBus) -> Counting {
        Counting { bus, reads: AtomicU64::new(0) }
    }

    /// Requests since the last call.
    fn reads(&self) -> u64 {
        self.reads.swap(0, Ordering::SeqCst)
    }
}

impl Bus for Counting {
    fn put(&self, put: Put<'_>) -> Result<PutEnd, BusError> {
        self.bus.put(put)
    }

    fn last(&self, subject: &str) -> Result<Option<Kept>, BusError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.bus.last(subject)
    }

    fn next_from(&self, stream: &str, subject: &str, seq: BusSeq) -> Result<Option<Kept>, BusError> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.bus.next_from(stream, subject, seq)
    }

    fn take(&self, queue: &str, wait: Duration) -> Result<Option<Delivery>, BusError> {
        self.bus.take(queue, wait)
    }

    fn lease(&self, token: &str, lease: Lease) -> Result<(), BusError> {
        self.bus.lease(token, lease)
    }

    fn say(&self, subject: &str, bytes: &[u8]) -> Result<(), BusError> {
        self.bus.say(subject, bytes)
    }

    fn hear(&self, subject: &str) -> Result<Receiver<Heard>, BusError> {
        self.bus.hear(subject)
    }
}

/// A journal in memory.
struct Lines(Vec<u8>);

impl LocalLines for Lines {
    fn lines_from(&self, first: u64, bytes: usize) -> Result<Vec<u8>, String> {
        let mut some = Vec::new();
        for line in self.0.split_inclusive(|byte| *byte == b'\n').skip(first as usize - 1) {
            if !some.is_empty() && some.len() + line.len() > bytes {
                break;
            }
            some.extend_from_slice(line);
        }
        Ok(some)
    }
}

fn count(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Lines of the recorded run of the demo, under any name.
fn recorded(run: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../app/tests/logs/demo.jsonl");
    String::from_utf8(std::fs::read(path).unwrap()).unwrap().replace(RUN, run).into_bytes()
}

/// A recorded journal whose lines are as the program checks them.
fn whole(run: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../app/tests/recorded/{run}.jsonl"));
    std::fs::read(path).unwrap()
}

fn first_lines(text: &[u8], lines: usize) -> Vec<u8> {
    text.split_inclusive(|byte| *byte == b'\n').take(lines).flatten().copied().collect()
}

/// One session publishes lines up to a number, one message each where `each`.
fn publish(bus: &dyn Bus, subject: &str, session: &str, text: &[u8], up_to: u64, each: bool) {
    let found = journal::read(bus, subject).unwrap();
    let mut writer = JournalWriter::new(bus, subject.to_owned(), session.to_owned(), &found);
    let begun = if each { writer.lines() + 1 } else { up_to };
    for line in begun..=up_to {
        let lines = Lines(first_lines(text, line as usize));
        writer.publish(&lines, line).unwrap();
    }
}

/// The log of a sprint that has seen an item, as far as a mirror reads it.
fn seen(sprint: &str, item: &str, project: &str) -> Vec<u8> {
    format!(
        "{{\"run_id\":\"{sprint}\",\"seq\":1,\"type\":\"item.seen\",\"data\":{{\"item\":{{\"id\":\"{item}\",\"project\":\"{project}\"}}}}}}\n"
    )
    .into_bytes()
}

fn runs(mirror: &Mirror) -> Vec<(String, String, String, Vec<u8>)> {
    let read = |run: archeflow_fleet::mirror::MirroredRun| {
        let text = std::fs::read(&run.path).unwrap();
        (run.id, run.project, run.session, text)
    };
    mirror.runs().unwrap().into_iter().map(read).collect()
}

#[test]
fn fl_100_journals_of_two_sessions_are_copied_whole_and_byte_by_byte() {
    let world = World::new();
    let (w1, w2, boss) = (world.bus("w1"), world.bus("w2"), world.bus("boss"));
    let log = seen("2026-11-18-fleet", "shop-tax", "group/shop");
    publish(&boss, &names::sprint_journal("2026-11-18-fleet"), "boss:1", &log, 1, false);
    let (one, other) = ("2026-11-18-fleet.shop-tax.1", "2026-11-15-greet-people-by-name");
    let (text, alone) = (recorded(one), whole(other));
    publish(&w1, &names::run_journal(one), "w1:a", &text, 20, true);
    publish(&w1, &names::run_journal(other), "w1:b", &alone, count(&alone), false);
    // Another worker takes it over.
    publish(&w2, &names::run_journal(one), "w2:a", &text, count(&text), true);

    let mirror = world.mirror();
    let done = mirror.refresh(&world.bus("jo")).unwrap();
    assert_eq!(done, Refreshed { messages: count(&text) + 2, replaced: 0 });
    let expected = vec![
        (other.to_owned(), "unknown".to_owned(), "w1:b".to_owned(), alone),
        (one.to_owned(), "group/shop".to_owned(), "w2:a".to_owned(), text),
    ];
    assert_eq!(runs(&mirror), expected);
    let mut known = mirror.runs().unwrap();
    let run = known.pop().unwrap();
    let entry = known.pop().unwrap().entry.unwrap();
    assert_eq!((entry.run_id.as_str(), entry.status.as_str()), (other, "stopped"));
    assert!(entry.task.to_lowercase().contains("greet"), "{}", entry.task);
    assert!(run.path.ends_with(format!("projects/group/shop/.archeflow/events/{one}.jsonl")));
    assert_eq!(
        std::fs::read(mirror.projects().join(".archeflow/sprints/2026-11-18-fleet.jsonl")).unwrap(),
        log
    );
    // For the user only.
    let mode = |path: &Path| os::mode(&std::fs::metadata(path).unwrap()) & 0o077;
    for path in [mirror.folder(), run.path.parent().unwrap(), &run.path] {
        assert_eq!(mode(path), 0, "{}", path.display());
    }
    // Another fleet has a folder of its own.
    let mut elsewhere = world.join("jo");
    elsewhere.servers = vec!["nats://other:4222".to_owned()];
    assert_ne!(Mirror::open(&world.dir.path().join("state"), &elsewhere).unwrap().folder(), mirror.folder());
}

#[test]
fn fl_101_a_refresh_reads_only_what_is_new_and_files_grow_in_place() {
    let world = World::new();
    let w1 = world.bus("w1");
    let text = recorded("r.1");
    let subject = names::run_journal("r.1");
    publish(&w1, &subject, "w1:a", &text, 30, true);
    let (mirror, jo) = (world.mirror(), Counting::new(world.bus("jo")));
    assert_eq!(mirror.refresh(&jo).unwrap().messages, 30);
    // The first message, all of them, and that there is no more.
    assert_eq!(jo.reads(), 32);
    let path = mirror.runs().unwrap().pop().unwrap().path;
    let before = os::identity(&std::fs::metadata(&path).unwrap());
    // Also for another process: what is known is in the folder.
    let mirror = world.mirror();
    assert_eq!(mirror.refresh(&jo).unwrap(), Refreshed::default());
    assert_eq!(jo.reads(), 3, "nothing is new");
    publish(&w1, &subject, "w1:a", &text, 34, true);
    assert_eq!(mirror.refresh(&jo).unwrap().messages, 4);
    assert_eq!(jo.reads(), 7, "four are new");
    assert_eq!(std::fs::read(&path).unwrap(), first_lines(&text, 34));
    assert_eq!(os::identity(&std::fs::metadata(&path).unwrap()), before, "it was replaced");

    // A copy that somebody changed is made again.
    std::fs::write(&path, b"{}\n").unwrap();
    publish(&w1, &subject, "w1:a", &text, 35, true);
    assert_eq!(mirror.refresh(&jo).unwrap(), Refreshed { messages: 1, replaced: 1 });
    assert_eq!(std::fs::read(&path).unwrap(), first_lines(&text, 35));
    // One that was killed while it wrote has written more than it noted.
    std::fs::write(&path, first_lines(&text, 36)).unwrap();
    publish(&w1, &subject, "w1:a", &text, 37, true);
    assert_eq!(mirror.refresh(&jo).unwrap(), Refreshed { messages: 2, replaced: 0 });
    assert_eq!(std::fs::read(&path).unwrap(), first_lines(&text, 37));
}

#[test]
fn fl_102_lines_that_were_published_again_replace_those_before() {
    let world = World::new();
    let (w1, text) = (world.bus("w1"), recorded("r.1"));
    let subject = names::run_journal("r.1");
    publish(&w1, &subject, "w1:a", &text, 10, true);
    let (mirror, jo) = (world.mirror(), world.bus("jo"));
    mirror.refresh(&jo).unwrap();
    // As a session does after the server had forgotten lines 6 to 10.
    let other: Vec<u8> = [first_lines(&text, 5), b"{\"another\":6}\n{\"another\":7}\n".to_vec()].concat();
    let headers = [(names::SESSION, "w2:a"), (names::FIRST, "6"), (names::LINES, "2")];
    let bytes = &other[first_lines(&text, 5).len()..];
    let put = Put { subject: &subject, expect: Expect::Anything, id: None, headers: &headers, bytes };
    assert!(matches!(w1.put(put).unwrap(), PutEnd::Kept(_)));
    assert_eq!(mirror.refresh(&jo).unwrap().messages, 1);
    assert_eq!(runs(&mirror)[0].3, other);
    assert_eq!(journal::read(&jo, &subject).unwrap().text, other);
    // A message that makes no sense is named, and hides no other journal.
    let put = Put { subject: &subject, expect: Expect::Anything, id: None, headers: &[], bytes: b"x" };
    assert!(matches!(w1.put(put).unwrap(), PutEnd::Kept(_)));
    publish(&w1, &names::run_journal("r.2"), "w1:b", &recorded("r.2"), 3, true);
    mirror.refresh(&jo).unwrap();
    let known = mirror.runs().unwrap();
    assert_eq!((known.len(), known[0].broken.is_some(), known[1].broken.is_some()), (2, true, false));
    // Names that are none of a run become no file.
    for subject in ["af1.j.run.index", "af1.j.run._", "af1.j.run.a=2fb", "af1.j.other.a"] {
        let put = Put { subject, expect: Expect::Anything, id: None, headers: &headers, bytes: b"x\ny\n" };
        let _ = w1.put(put);
    }
    mirror.refresh(&jo).unwrap();
    assert_eq!(mirror.runs().unwrap().len(), 2);
}

#[test]
fn fl_103_a_server_that_lost_its_data_is_noticed_also_at_the_same_positions() {
    let mut world = World::new();
    let text = recorded("r.1");
    let subject = names::run_journal("r.1");
    {
        let w1 = world.bus("w1");
        publish(&w1, &subject, "w1:a", &text, 10, true);
        publish(&w1, &names::run_journal("r.2"), "w1:b", &recorded("r.2"), 5, true);
    }
    let mirror = world.mirror();
    assert_eq!(mirror.refresh(&world.bus("jo")).unwrap().messages, 15);
    world.lose_everything();
    // Another run has the positions now, and more of them.
    let third = recorded("r.3");
    publish(&world.bus("w2"), &names::run_journal("r.3"), "w2:a", &third, 20, true);
    let done = mirror.refresh(&world.bus("jo")).unwrap();
    assert_eq!(done, Refreshed { messages: 20, replaced: 2 });
    let expected = vec![("r.3".to_owned(), "unknown".to_owned(), "w2:a".to_owned(), first_lines(&third, 20))];
    assert_eq!(runs(&mirror), expected);
    // Its worker publishes the first one again.
    publish(&world.bus("w1"), &subject, "w1:a", &text, 12, false);
    mirror.refresh(&world.bus("jo")).unwrap();
    assert_eq!(runs(&mirror)[0].3, first_lines(&text, 12));

    // Journals that were removed are gone here too, and the rest is not read again.
    let jo = Counting::new(world.bus("jo"));
    world.bus("boss").purge(names::JOURNALS, &names::run_journal("r.3")).unwrap();
    assert_eq!(mirror.refresh(&jo).unwrap(), Refreshed { messages: 0, replaced: 1 });
    assert!(jo.reads() <= 6);
    assert_eq!(runs(&mirror).into_iter().map(|run| run.0).collect::<Vec<_>>(), ["r.1"]);
    world.lose_everything();
    mirror.refresh(&world.bus("jo")).unwrap();
    assert_eq!(runs(&mirror), Vec::new());
}
