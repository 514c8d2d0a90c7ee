//! A fleet with a real server.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use archeflow_fleet::bus::{Bus, Kept};
use archeflow_fleet::join::{FleetRole, JoinFile};
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_fleet::server::{FleetFolder, FleetServer, ServerEnd};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::server_program;
use crate::settings::one_server;

/// Only a fault takes this long.
pub(crate) const LONG: Duration = Duration::from_secs(300);

pub(crate) struct World {
    _dir: TempDir,
    pub(crate) fleet: FleetFolder,
    server: Option<FleetServer>,
}

impl World {
    pub(crate) fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let (fleet, _) = FleetFolder::init(&dir.path().join("fleet"), &one_server(200_000_000)).unwrap();
        for (role, name) in [
            (FleetRole::Conductor, "boss"),
            (FleetRole::Worker, "w1"),
            (FleetRole::Person, "jo"),
            (FleetRole::Person, "kim"),
        ] {
            fleet.add(role, name, None).unwrap();
        }
        let mut world = World { _dir: dir, fleet, server: None };
        world.start();
        world
    }

    pub(crate) fn start(&mut self) {
        assert!(self.server.is_none());
        self.server = Some(FleetServer::start(&self.fleet, &server_program()).unwrap());
    }

    /// As a power cut would.
    pub(crate) fn kill(&mut self) {
        let mut server = self.server.take().unwrap();
        assert!(Command::new("kill").args(["-9", &server.id().to_string()]).status().unwrap().success());
        assert_eq!(server.wait(LONG), ServerEnd::Ended);
    }

    pub(crate) fn wipe(&self) {
        std::fs::remove_dir_all(self.fleet.path().join("data")).unwrap();
    }

    pub(crate) fn join(&self, name: &str) -> JoinFile {
        JoinFile::read(&self.fleet.path().join(format!("{name}.join"))).unwrap()
    }

    pub(crate) fn bus(&self, name: &str) -> NatsBus {
        NatsBus::connect(&self.join(name), NatsOptions::default()).unwrap()
    }

    /// Uses the key of a worker to ask for a message that the server keeps, and to have the answer sent to a subject that
    /// the worker may not write to. Waits until it is kept there.
    pub(crate) fn make_appear(&self, original: &Kept, stream: &str, subject: &str) -> Kept {
        let look = self.bus("kim");
        let before = look.last(subject).unwrap().map(|kept| kept.seq);
        self.ask_as_worker(&format!("$JS.API.DIRECT.GET.{stream}"), subject, &json!({"seq": original.seq}));
        let begun = Instant::now();
        loop {
            let last = look.last(subject).unwrap().filter(|last| Some(last.seq) != before);
            if let Some(last) = last {
                assert_eq!(
                    last.bytes, original.bytes,
                    "the trick no longer works, and the test shows nothing"
                );
                return last;
            }
            assert!(begun.elapsed() < LONG, "nothing appears on {subject}");
        }
    }

    fn ask_as_worker(&self, question: &str, answer_to: &str, body: &Value) {
        let worker = self.join("w1");
        let mut stream = TcpStream::connect(self.fleet.settings().unwrap().listen).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map(Result::unwrap);
        let info: Value = serde_json::from_str(lines.next().unwrap().strip_prefix("INFO ").unwrap()).unwrap();
        let signature = worker.key.sign(info["nonce"].as_str().unwrap().as_bytes()).unwrap();
        let connect = json!({
            "verbose": false, "pedantic": false, "tls_required": false, "headers": true, "lang": "test", "version": "1",
            "protocol": 1, "nkey": worker.key.public(), "sig": URL_SAFE_NO_PAD.encode(signature),
        });
        let body = body.to_string();
        let said =
            format!("CONNECT {connect}\r\nPUB {question} {answer_to} {}\r\n{body}\r\nPING\r\n", body.len());
        stream.write_all(said.as_bytes()).unwrap();
        for line in lines {
            assert!(!line.starts_with("-ERR"), "{line}");
            if line == "PONG" {
                return;
            }
        }
        panic!("the server closed the connection");
    }
}
