//! A repository with recorded runs, a server, and a browser that was let in.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use archeflow_core::event::{Entry, Event};
use archeflow_core::model::Phase;
use archeflow_host::store::index::{self, IndexEntry};
use archeflow_host::store::journal::Journal;
use archeflow_host::{clock, log, repositories};
use archeflow_serve::{Limits, ServeError, ServeOptions, Server, Stopper};
use serde_json::Value;

/// The lines of a recorded journal.
pub(crate) fn recorded(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A line as an entry; nothing if its data are none of its type.
pub(crate) fn entry(seq: u64, line: &Value) -> Option<Entry> {
    Some(Entry {
        seq,
        at: clock::read(line["ts"].as_str().unwrap()),
        parent: Vec::new(),
        phase: Phase::parse(line["phase"].as_str().unwrap()).unwrap(),
        agent: None,
        event: Event::read(line["type"].as_str().unwrap(), &line["data"])?.ok()?,
    })
}

/// A folder with the user's state, and a repository that is known there.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        let world = World { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(world.state()).unwrap();
        fs::create_dir_all(world.events()).unwrap();
        repositories::remember(&world.state(), &world.root()).unwrap();
        world
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("shop")
    }

    fn events(&self) -> PathBuf {
        self.root().join(".archeflow/events")
    }

    pub(crate) fn journal(&self, id: &str, entries: &[Entry]) {
        let mut journal = Journal::create(&self.events(), id).unwrap();
        for part in entries.chunks(1_000) {
            log::append(&mut journal, part).unwrap();
        }
    }

    pub(crate) fn list(&self, id: &str, status: &str, task: &str) {
        let ts = "2026-01-01T00:00:00Z".to_owned();
        let (run_id, status, task) = (id.to_owned(), status.to_owned(), task.to_owned());
        let entry = IndexEntry { run_id, status, task, ts, reopens_at: None, reverted_at: None };
        index::append(&self.events(), &entry).unwrap();
    }

    pub(crate) fn serve(&self) -> Served {
        let server = Server::bind(ServeOptions {
            port: 0,
            host: None,
            fleet: None,
            read_only: false,
            program: Path::new("/bin/false").to_owned(),
            cwd: self.folder.path().join("nowhere"),
            idle_exit: None,
            state: Some(self.state()),
            metrics_key: None,
            version: "test",
            limits: Limits::default(),
        })
        .unwrap();
        let (address, stopper) = (server.address(), server.stopper());
        let port = address.split(':').nth(2).unwrap().split('/').next().unwrap().parse().unwrap();
        let thread = Some(std::thread::spawn(move || server.run()));
        let mut served = Served { port, cookie: String::new(), stopper, thread };
        let entered = served.get(&address[address.find("/in").unwrap()..]);
        let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        cookie.split(';').next().unwrap().clone_into(&mut served.cookie);
        served
    }
}

pub(crate) struct Served {
    port: u16,
    cookie: String,
    stopper: Stopper,
    thread: Option<JoinHandle<Result<(), ServeError>>>,
}

impl Served {
    pub(crate) fn get(&self, path: &str) -> String {
        let (port, cookie) = (self.port, &self.cookie);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(600))).unwrap();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\nCookie: {cookie}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// The address of a run that is listed.
    pub(crate) fn run(&self, id: &str) -> String {
        let pages = ["/runs", "/runs?from=900"].map(|page| self.get(page)).concat();
        let end = format!("/{id}\"");
        let found = pages.split("href=\"").find(|part| part.starts_with("/run/") && part.contains(&end));
        found.unwrap().split('"').next().unwrap().to_owned()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stopper.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
