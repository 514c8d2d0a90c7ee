//! `list`, `show`, `status`, `watch` and `ui` with `--fleet`, as a person on another machine types them: the real program and a
//! real `nats-server`.

#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

#[path = "../../fleet/tests/common/program.rs"]
mod program;
#[path = "../../fleet/tests/common/settings.rs"]
mod settings;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use archeflow_fleet::join::{FleetRole, JoinFile};
use archeflow_fleet::journal::{self, JournalWriter, LocalLines};
use archeflow_fleet::nats::{NatsBus, NatsOptions};
use archeflow_fleet::server::{FleetFolder, FleetServer};
use archeflow_fleet::{files, names};
use archeflow_host::replica::parts;
use serde_json::Value;
use tempfile::TempDir;

use program::server_program;
use settings::one_server;

/// Only a fault takes this long.
const LONG: Duration = Duration::from_secs(300);
/// A recorded run that stopped with open findings.
const RUN: &str = "2026-11-15-greet-people-by-name";

struct World {
    dir: TempDir,
    fleet: FleetFolder,
    server: Option<FleetServer>,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().unwrap();
        let (fleet, _) = FleetFolder::init(&dir.path().join("fleet"), &one_server(200_000_000)).unwrap();
        for (role, name) in [(FleetRole::Worker, "w7"), (FleetRole::Person, "jo")] {
            fleet.add(role, name, None).unwrap();
        }
        std::fs::create_dir(dir.path().join("home")).unwrap();
        let server = Some(FleetServer::start(&fleet, &server_program()).unwrap());
        World { dir, fleet, server }
    }

    fn join(&self, name: &str) -> String {
        self.fleet.path().join(format!("{name}.join")).display().to_string()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_archeflow"));
        command.args(words).current_dir(self.dir.path().join("home"));
        command.env("HOME", self.dir.path().join("home"));
        for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
        command
    }

    /// As the person types it.
    fn typed(&self, words: &[&str]) -> Output {
        let fleet = self.join("jo");
        self.command(&[words, &["--fleet", &fleet]].concat()).output().unwrap()
    }

    fn printed(&self, words: &[&str]) -> String {
        let output = self.typed(words);
        assert!(output.status.success(), "{words:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn object(&self, words: &[&str]) -> Value {
        serde_json::from_str(&self.printed(words)).unwrap()
    }

    fn bus(&self, name: &str) -> NatsBus {
        let join = JoinFile::read(Path::new(&self.join(name))).unwrap();
        NatsBus::connect(&join, NatsOptions::default()).unwrap()
    }

    /// The worker publishes the recorded run up to a line.
    fn publish(&self, up_to: usize) {
        let bus = self.bus("w7");
        let subject = names::run_journal(RUN);
        let found = journal::read(&bus, &subject).unwrap();
        let mut writer = JournalWriter::new(&bus, subject, "w7:1".to_owned(), &found);
        writer.publish(&Recorded(up_to), up_to as u64).unwrap();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn recorded() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/recorded/{RUN}.jsonl"));
    std::fs::read_to_string(path).unwrap()
}

/// The first lines of the recorded run.
struct Recorded(usize);

impl LocalLines for Recorded {
    fn lines_from(&self, first: u64, _: usize) -> Result<Vec<u8>, String> {
        let all = recorded();
        let lines = all.split_inclusive('\n').take(self.0).skip(first as usize - 1);
        Ok(lines.collect::<String>().into_bytes())
    }
}

#[test]
fn fl_104_runs_of_a_fleet_are_listed_shown_and_found_by_short_names() {
    let world = World::new();
    assert!(world.printed(&["list"]).contains("no runs yet"));
    let all = recorded().lines().count();
    world.publish(all);
    let listed = world.printed(&["list"]);
    for word in ["REPOSITORY", "WORKER", "COST", RUN, "w7", "stopped"] {
        assert!(listed.contains(word), "{word} is not in {listed}");
    }
    let runs = world.object(&["list", "--json"])["runs"].clone();
    assert_eq!((runs[0]["run_id"].as_str(), runs[0]["worker"].as_str()), (Some(RUN), Some("w7")));
    // Beginnings of ids and words of tasks name it, and so does nothing at all.
    for name in [&["show", "--json"][..], &["show", "--json", "greet"], &["show", "--json", RUN]] {
        let shown = world.object(name);
        assert_eq!((shown["run_id"].as_str(), shown["events"].as_array().unwrap().len()), (Some(RUN), all));
    }
    let shown = world.typed(&["show", RUN]);
    assert!(text(&shown.stderr).contains("typed on w7"), "{}", text(&shown.stderr));
    let output = world.typed(&["show", "nonsense"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.contains("no run 'nonsense'") && said.contains("archeflow list --fleet"), "{said}");
}

#[test]
fn fl_105_status_says_what_waits_and_where_its_command_is_typed() {
    let world = World::new();
    world.publish(10);
    let running = world.printed(&["status"]);
    assert!(
        running.contains("Nothing in the fleet waits for you") && running.contains("Running"),
        "{running}"
    );
    assert!(running.contains(&format!("archeflow show {RUN} --fleet ")), "{running}");
    world.publish(recorded().lines().count());
    let waiting = world.printed(&["status"]);
    for word in ["Waiting for you", "archeflow continue", "on w7, in its clone of"] {
        assert!(waiting.contains(word), "{word} is not in {waiting}");
    }
    let object = world.object(&["status", "--json"]);
    assert_eq!(object["runs"][0]["group"], "waiting");
    assert_eq!(object["runs"][0]["next_on"], "w7");
    let one = world.object(&["status", RUN, "--json"]);
    assert_eq!((one["status"].as_str(), one["worker"].as_str()), (Some("stopped"), Some("w7")));
}

#[test]
fn fl_106_nothing_can_be_done_with_a_copy() {
    let world = World::new();
    world.publish(recorded().lines().count());
    world.printed(&["list"]);
    let copies = world.dir.path().join("home/.local/state/archeflow/fleet");
    let view = std::fs::read_dir(copies).unwrap().next().unwrap().unwrap().path();
    let project = view.join("projects/unknown");
    let journal = project.join(format!(".archeflow/events/{RUN}.jsonl"));
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), recorded());
    // Also where the home folder is a repository.
    for is_repository in [false, true] {
        if is_repository {
            let home = world.dir.path().join("home");
            assert!(Command::new("git").args(["init", "-q"]).current_dir(home).status().unwrap().success());
        }
        let place = project.display().to_string();
        for words in [
            &["resume", RUN][..],
            &["merge", RUN],
            &["discard", RUN],
            &["continue", RUN, "--one-more-cycle"],
            &["answer", RUN, "yes"],
        ] {
            let output = world.command(&[words, &["--repo", &place]].concat()).output().unwrap();
            assert!(!output.status.success(), "{words:?} did something: {}", text(&output.stderr));
        }
    }
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), recorded());
    let output = world.command(&["list", "--all", "--json"]).output().unwrap();
    assert!(!text(&output.stdout).contains(RUN), "it was taken for a run of this machine");
}

#[test]
fn fl_107_a_server_that_is_away_and_a_key_of_another_role_are_named() {
    let mut world = World::new();
    let worker = world.join("w7");
    let output = world.command(&["list", "--fleet", &worker]).output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("is for a worker") && said.contains("fleet add person"), "{said}");
    let output = world.typed(&["list", "--offline"]);
    assert!(text(&output.stderr).contains("nothing was read"), "{}", text(&output.stderr));

    world.publish(20);
    world.printed(&["list"]);
    drop(world.server.take());
    let output = world.typed(&["list"]);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(30));
    assert!(said.contains("can't be reached") && said.contains("--offline"), "{said}");
    let output = world.typed(&["list", "--offline"]);
    assert!(output.status.success() && text(&output.stdout).contains(RUN), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("Read from the server"), "{}", text(&output.stderr));
}

#[test]
fn fl_108_a_watched_run_of_a_fleet_is_followed_to_its_end() {
    let world = World::new();
    world.publish(20);
    let fleet = world.join("jo");
    let mut child = world
        .command(&["watch", RUN, "--fleet", &fleet, "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has shown what is there; the rest comes while it looks.
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    lines.next().unwrap().unwrap();
    world.publish(recorded().lines().count());
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(14), "{rest:#?}");
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((object["run_id"].as_str(), object["status"].as_str()), (Some(RUN), Some("stopped")));
    assert!(rest.iter().any(|line| line.contains("typed on w7")), "{rest:#?}");
}

/// A terminal of 100 columns and 30 rows.
struct OnTerminal {
    program: Child,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl OnTerminal {
    fn start(world: &World, words: &[&str]) -> OnTerminal {
        let line =
            format!("stty cols 100 rows 30; exec '{}' {}", env!("CARGO_BIN_EXE_archeflow"), words.join(" "));
        let mut command = world.command(&[]);
        let environment: Vec<_> =
            command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
        let folder = command.get_current_dir().unwrap().to_owned();
        command = Command::new("script");
        command.args(["-qfec", &line, "/dev/null"]).current_dir(folder).env("TERM", "xterm-256color");
        for (name, value) in environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(
            NonZero::new(30).unwrap(),
            NonZero::new(100).unwrap(),
            0,
        )));
        let (mut from, to) = (program.stdout.take().unwrap(), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = from.read(&mut bytes) {
                to.lock().unwrap().process(&bytes[..n]);
            }
        });
        OnTerminal { program, screen }
    }

    fn press(&mut self, keys: &str) {
        let keyboard = self.program.stdin.as_mut().unwrap();
        keyboard.write_all(keys.as_bytes()).unwrap();
        keyboard.flush().unwrap();
    }

    fn shows(&self, words: &str) {
        let begun = Instant::now();
        loop {
            let text = self.screen.lock().unwrap().screen().contents();
            if text.contains(words) {
                return;
            }
            assert!(begun.elapsed() < LONG, "no {words} in\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn fl_110_a_run_of_a_fleet_is_watched_on_the_whole_screen_and_not_steered() {
    let mut world = World::new();
    world.publish(20);
    let fleet = world.join("jo");
    let mut terminal = OnTerminal::start(&world, &["watch", RUN, "--fleet", &fleet]);
    terminal.shows("running on w7");
    terminal.press("s");
    terminal.shows("are typed on w7");
    terminal.press(" ");
    world.server = None;
    terminal.shows("No news, asked again every second");
    world.server = Some(FleetServer::start(&world.fleet, &server_program()).unwrap());
    terminal.shows("answers again");
    world.publish(recorded().lines().count());
    terminal.shows("stopped (");
    terminal.press("q");
    assert!(terminal.program.wait().unwrap().success());
}

/// Ends with the test.
struct Pages(Child);

impl Drop for Pages {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn fl_109_pages_of_a_fleet_show_its_runs_and_decide_nothing() {
    let world = World::new();
    world.publish(recorded().lines().count());
    let fleet = world.join("jo");
    let words = ["ui", "--fleet", &fleet, "--port", "0"];
    let mut pages = Pages(world.command(&words).stderr(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(pages.0.stderr.take().unwrap()).lines();
    let address = lines.map(Result::unwrap).find(|line| line.contains("http://")).unwrap();
    let (host, token) = address.trim().strip_prefix("http://").unwrap().split_once("/in?t=").unwrap();
    let get = |path: &str, cookie: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n{cookie}Connection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let entered = get(&format!("/in?t={token}"), "");
    let set = entered.lines().find(|line| line.to_lowercase().starts_with("set-cookie:")).unwrap();
    let cookie = set.split_once(':').unwrap().1.split(';').next().unwrap().trim();
    let cookie = format!("Cookie: {cookie}\r\n");
    let runs = get("/runs", &cookie);
    assert!(runs.contains(RUN) && runs.contains("stopped"), "{runs}");
    assert!(!runs.contains("foreign"), "{runs}");
    let at = runs.find("/run/").unwrap();
    let page = runs[at..].split('"').next().unwrap();
    let run = get(page, &cookie);
    assert!(run.contains("of the fleet: shown only") && run.contains("--fleet"), "{run}");
    for page in [&runs, &run, &get("/", &cookie)] {
        assert!(!page.to_lowercase().contains("method=\"post\""), "a page decides: {page}");
    }
    // Its change is not here, so the page says where it is.
    assert!(run.contains("git fetch origin"), "{run}");
    let list = get(&format!("{page}/artifacts"), &cookie);
    assert!(list.contains("do-maker-files.txt"), "{list}");
    let artifact =
        |cycle: u32, name: &str| get(&format!("{page}/artifact?cycle={cycle}&name={name}"), &cookie);
    let away = artifact(1, "do-maker-files.txt");
    assert!(away.contains("or gone"), "{away}");
    // Both cycles wrote under one name; and one that is not what the journal says.
    let lines = |name: &str| -> Vec<u64> {
        let all = parts::placed(RUN, recorded().as_bytes()).unwrap();
        all.iter().filter(|placed| placed.artifact.name == name).map(|placed| placed.artifact.line).collect()
    };
    let bus = world.bus("w7");
    for (n, line) in lines("do-maker-files.txt").into_iter().enumerate() {
        files::put(&bus, RUN, line, "do-maker-files.txt", format!("written by line {n}").as_bytes()).unwrap();
    }
    for line in lines("plan-creator.md") {
        files::put(&bus, RUN, line, "plan-creator.md", b"another plan").unwrap();
    }
    let (first, second) = (artifact(1, "do-maker-files.txt"), artifact(2, "do-maker-files.txt"));
    assert!(first.contains("written by line 0"), "{first}");
    assert!(second.contains("written by line 1"), "{second}");
    let forged = artifact(1, "plan-creator.md");
    assert!(forged.contains("or gone") && !forged.contains("another plan"), "{forged}");
    let object = get(&format!("/api{page}"), &cookie);
    assert!(object.contains(&format!("\"run_id\":\"{RUN}\"")) || object.contains(RUN), "{object}");
}
