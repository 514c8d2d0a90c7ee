//! A run whose journal is kept a second time by the process that started it, and is resumed from there (fleet, part 4).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use archeflow_host::git::ObjectId;
use archeflow_host::open::{ProcessEnv, Project};
use archeflow_host::replica::parts;
use archeflow_host::transfer::{RunParts, TakeOver};
use serde_json::{Value, json};

use crate::harness::{Outcome, TASK, Test, as_strs, each, review, signal};
use crate::transfer::{at, cloned_from, file, git, journal, steps};
use crate::user::{PROGRAM, parse_lines, printed, wait_until};

/// What the replica does with a message that it is sent.
enum Act {
    Acknowledge,
    Fence,
    Close,
    /// Answers when the file is removed that it makes here.
    Hold(PathBuf),
}

type Rule = Box<dyn Fn(&Received) -> Act + Send + Sync>;

/// What was sent: the hello, or some lines.
struct Received {
    is_hello: bool,
    lines: Vec<Value>,
}

impl Received {
    fn names(&self, kind: &str, agent: &str) -> bool {
        self.lines.iter().any(|line| line["type"] == kind && line["agent"] == agent)
    }
}

#[derive(Default)]
struct Kept {
    journal: Vec<u8>,
    /// By line and name.
    artifacts: BTreeMap<(u64, String), Vec<u8>>,
    /// What the program did that it must not.
    faults: Vec<String>,
}

/// A replica in memory, as a worker has one: it also keeps what the lines name.
struct Replica {
    socket: PathBuf,
    /// A repository that has the refs.
    refs: PathBuf,
    kept: Arc<Mutex<Kept>>,
    rule: Arc<Mutex<Rule>>,
    /// Where the run is, if what its lines name is to be kept.
    project: Arc<Mutex<Option<Project>>>,
}

impl Replica {
    fn new(test: &Test) -> Replica {
        let (socket, refs) = (test.base().join("replica.sock"), test.base().join("refs.git"));
        test.sh(&format!("git init -q --bare {}", refs.display()));
        let listener = UnixListener::bind(&socket).unwrap();
        let replica = Replica {
            socket,
            refs,
            kept: Arc::default(),
            rule: Arc::new(Mutex::new(Box::new(|_| Act::Acknowledge))),
            project: Arc::default(),
        };
        let own = replica.shared();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.shared();
                std::thread::spawn(move || own.serve(&stream));
            }
        });
        replica
    }

    fn shared(&self) -> Replica {
        let (socket, refs) = (self.socket.clone(), self.refs.clone());
        let (kept, rule) = (Arc::clone(&self.kept), Arc::clone(&self.rule));
        Replica { socket, refs, kept, rule, project: Arc::clone(&self.project) }
    }

    fn rule(&self, rule: impl Fn(&Received) -> Act + Send + Sync + 'static) {
        *self.rule.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(rule);
    }

    fn flag(&self) -> String {
        self.socket.display().to_string()
    }

    fn journal(&self) -> Vec<u8> {
        let kept = self.kept.lock().unwrap();
        assert!(kept.faults.is_empty(), "{:?}", kept.faults);
        kept.journal.clone()
    }

    fn serve(&self, mut stream: &UnixStream) {
        let mut lines = BufReader::new(stream);
        loop {
            let mut header = String::new();
            if lines.read_line(&mut header).unwrap_or(0) == 0 {
                return;
            }
            let header: Value = serde_json::from_str(&header).unwrap();
            let mut bytes = vec![0; usize::try_from(header["bytes"].as_u64().unwrap_or(0)).unwrap()];
            if lines.read_exact(&mut bytes).is_err() {
                return;
            }
            let received = Received { is_hello: header["hello"].is_string(), lines: parse_lines(&bytes) };
            let act = self.rule.lock().unwrap_or_else(PoisonError::into_inner)(&received);
            match act {
                Act::Close => {
                    let _ = stream.shutdown(std::net::Shutdown::Both);
                    return;
                }
                Act::Fence => {
                    let _ = stream.write_all(b"{\"fenced\":\"w2 has turn 2\"}\n");
                    continue;
                }
                Act::Hold(file) => {
                    fs::write(&file, "").unwrap();
                    wait_until(|| !file.exists(), || "nobody let go of it".to_owned());
                }
                Act::Acknowledge => {}
            }
            let answer = if received.is_hello { self.hello() } else { self.append(&header, &bytes) };
            if stream.write_all(format!("{answer}\n").as_bytes()).is_err() {
                return;
            }
        }
    }

    fn hello(&self) -> Value {
        json!({ "ok": true, "have": parse_lines(&self.kept.lock().unwrap().journal).len() })
    }

    fn append(&self, header: &Value, bytes: &[u8]) -> Value {
        let mut kept = self.kept.lock().unwrap();
        let (had, new) = (parse_lines(&kept.journal).len(), parse_lines(bytes));
        let whole = bytes.ends_with(b"\n") && header["lines"] == new.len();
        if header["append"] != had + 1 || !whole || new[0]["seq"] != had + 1 {
            kept.faults.push(format!("{header} behind line {had}"));
        }
        let project = self.project.lock().unwrap();
        if let Some(project) = &*project {
            let id = new[0]["run_id"].as_str().unwrap();
            let named = parts::named_in(id, bytes).unwrap();
            for artifact in named.artifacts {
                match project.artifact_file(id, &artifact) {
                    Some(path) => {
                        kept.artifacts.insert((artifact.line, artifact.name), fs::read(path).unwrap());
                    }
                    None if artifact.digest.is_none() => {}
                    None => kept.faults.push(format!("{artifact:?} is not there")),
                }
            }
            if named.has_commits {
                for (name, commit) in project.run_refs(id).unwrap() {
                    git(
                        project.places.root(),
                        &["push", "-q", self.refs.to_str().unwrap(), &format!("+{commit}:{name}")],
                    );
                }
            }
        }
        kept.journal.extend_from_slice(bytes);
        json!({ "ok": true })
    }

    /// What was kept of a run, brought to a clone.
    fn fetched(&self, test: &Test, id: &str, clone: &Path) -> Fetched {
        let journal = self.journal();
        git(clone, &["fetch", "-q", self.refs.to_str().unwrap(), "+refs/*:refs/fetched/*"]);
        let listed = git(&self.refs, &["for-each-ref", "--format=%(refname)"]);
        let project = project(test, clone);
        let resolve = |name: &str| project.repo.resolve(&name.replacen("refs/", "refs/fetched/", 1));
        let refs = listed.lines().map(|name| (name.to_owned(), resolve(name).unwrap().unwrap())).collect();
        let folder = clone.with_extension("parts");
        fs::create_dir_all(&folder).unwrap();
        let mut artifacts = BTreeMap::new();
        for (n, placed) in parts::placed(id, &journal).unwrap().into_iter().enumerate() {
            let key = (placed.artifact.line, placed.artifact.name);
            if let Some(bytes) = self.kept.lock().unwrap().artifacts.get(&key) {
                let path = folder.join(n.to_string());
                fs::write(&path, bytes).unwrap();
                artifacts.insert(placed.place, path);
            }
        }
        Fetched { journal, artifacts, refs }
    }

    /// Makes the run known in a clone, from what was kept.
    fn taken_over(&self, test: &Test, id: &str, clone: &Path, how: TakeOver) -> Result<usize, String> {
        let fetched = self.fetched(test, id, clone);
        let taken = project(test, clone).take_over(fetched.parts(id), how);
        taken.map(|taken| taken.lines).map_err(|error| error.to_string())
    }
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Fetched {
    journal: Vec<u8>,
    artifacts: BTreeMap<String, PathBuf>,
    refs: BTreeMap<String, ObjectId>,
}

impl Fetched {
    fn parts<'a>(&'a self, run_id: &'a str) -> RunParts<'a> {
        RunParts { run_id, journal: &self.journal, artifacts: &self.artifacts, refs: &self.refs }
    }
}

/// What a worker sees of a clone.
fn project(test: &Test, clone: &Path) -> Project {
    let command = test.command(PROGRAM);
    let variables = command.get_envs().filter_map(|(name, value)| Some((name.into(), value?.into())));
    project_of(variables.collect(), clone)
}

fn project_of(variables: Vec<(OsString, OsString)>, clone: &Path) -> Project {
    let env = ProcessEnv {
        cwd: clone.to_owned(),
        me: PROGRAM.into(),
        variables,
        version: "0.1.0",
        no_sandbox: false,
    };
    Project::open(env, clone, None, false).unwrap()
}

const OWN: TakeOver = TakeOver { is_own: true, sets_aside: false };
const OWN_ALONE: TakeOver = TakeOver { is_own: true, sets_aside: true };

fn scene() -> (Test, Replica) {
    let test = Test::new().play("");
    let replica = Replica::new(&test);
    (test, replica)
}

fn go(test: &Test, replica: &Replica) -> Outcome {
    test.go(&["--auto-merge", "--replica", &replica.flag()])
}

/// Resumes it to its end: then both have the same, and nobody who had ended was sent again.
#[track_caller]
fn resumed(test: &Test, replica: &Replica, id: &str, what: &str) -> Outcome {
    let before = parse_lines(&replica.journal());
    let local = parse_lines(&test.journal_bytes(id));
    let run = test.run(&["resume", id, "--auto-merge", "--replica", &replica.flag()]);
    assert_eq!((run.code, &run.json["status"]), (0, &json!("merged")), "{what}\n{run}");
    assert_eq!(replica.journal(), test.journal_bytes(id), "{what}");
    assert!(run.journal.starts_with(&before) && run.journal.starts_with(&local), "{what}\n{run}");
    let started = steps(&run.journal, "agent.start");
    for (agent, times) in steps(&local, "agent.complete") {
        assert_eq!(started.get(&agent), Some(&times), "{what}: {agent} was sent again\n{run}");
    }
    run
}

#[test]
fn fl_21_a_replica_has_every_line() {
    let (test, replica) = scene();
    let run = go(&test, &replica).ended("merged", "approved", 0);
    assert_eq!(replica.journal(), test.journal_bytes(&run.id));
    // A run that was begun without a replica is sent to it as a whole when it is resumed.
    let (test, replica) = scene();
    let run = test.go(&[]).ended("awaiting_merge", "approved", 10);
    test.run(&["merge", &run.id, "--replica", &replica.flag()]).ended("merged", "approved", 0);
    assert_eq!(replica.journal(), test.journal_bytes(&run.id));
    // Nobody is there.
    let nowhere = file(&test, "nowhere.sock");
    test.go(&["--replica", &nowhere]).refused(30, &["nowhere.sock", "resume"]);
}

#[test]
fn fl_22_nothing_begins_before_the_answer_and_a_signal_ends_the_waiting() {
    each(["creator", "maker", "guardian"], |agent| {
        let (test, replica) = scene();
        let held = test.base().join("held");
        let at = held.clone();
        replica.rule(move |received| match received.names("agent.start", agent) {
            true => Act::Hold(at.clone()),
            false => Act::Acknowledge,
        });
        let arguments = test.arguments(TASK, &["--auto-merge", "--replica", &replica.flag()]);
        let stopped = test.during(&as_strs(&arguments), |child| {
            wait_until(|| held.exists(), || "it was not asked".to_owned());
            signal(child, "INT");
            child.wait().unwrap();
        });
        assert_eq!(stopped.code, 130, "{agent}\n{stopped}");
        let started =
            stopped.journal.iter().find(|line| line["type"] == "agent.start" && line["agent"] == agent);
        let folder = stopped.artifacts.join(format!("attempts/{}-{agent}", started.unwrap()["seq"]));
        assert!(!folder.exists(), "{agent} was started before it was acknowledged\n{stopped}");
        assert_eq!(stopped.journal.last().unwrap()["type"], "session.end", "{agent}\n{stopped}");
        // The answer comes too late to be heard.
        replica.rule(|_| Act::Acknowledge);
        fs::remove_file(&held).unwrap();
        let is_there = || {
            let lines = parse_lines(&replica.journal());
            lines.iter().any(|line| line["type"] == "agent.start" && line["agent"] == agent)
        };
        wait_until(is_there, || "what was held did not arrive".to_owned());
        let (here, there) = (test.journal_bytes(&stopped.id), replica.journal());
        assert!(here.len() > there.len() && here.starts_with(&there), "{agent}");
        resumed(&test, &replica, &stopped.id, agent);
    });
}

#[test]
fn fl_22_agents_continue_and_their_reports_are_kept_while_it_waits() {
    let (test, replica) = scene();
    let held = test.base().join("held");
    let at = held.clone();
    // The first reviewer's report; the other one is out.
    replica.rule(move |received| {
        let first = ["skeptic", "sage"].iter().any(|agent| received.names("agent.complete", agent));
        let is_held = first && !at.with_extension("once").exists();
        if is_held {
            fs::write(at.with_extension("once"), "").unwrap();
        }
        if is_held { Act::Hold(at.clone()) } else { Act::Acknowledge }
    });
    let arguments =
        test.arguments(TASK, &["--workflow", "thorough", "--auto-merge", "--replica", &replica.flag()]);
    let run = test.during(&as_strs(&arguments), |_| {
        wait_until(|| held.exists(), || "it was not asked".to_owned());
        let id = test.run_ids().pop().unwrap();
        let lines = journal(&test.repo, &id);
        let starts = lines.iter().filter(|line| line["type"] == "agent.start");
        let done = |line: &Value| {
            let name = format!("attempts/{}-{}/done.json", line["seq"], line["agent"].as_str().unwrap());
            test.repo.join(".archeflow/artifacts").join(&id).join(name)
        };
        for start in starts {
            wait_until(|| done(start).exists(), || format!("{start} has not ended"));
        }
        fs::remove_file(&held).unwrap();
    });
    assert_eq!(run.code, 0, "{run}");
    assert_eq!(replica.journal(), test.journal_bytes(&run.id));
    assert_eq!(steps(&run.journal, "agent.start"), steps(&run.journal, "agent.complete"), "{run}");
}

#[test]
fn fl_23_a_session_that_lost_the_run_sets_its_lines_aside_and_stops() {
    each(
        [("agent.start", "creator"), ("agent.complete", "creator"), ("agent.complete", "maker")],
        |(kind, agent)| {
            let (test, replica) = scene();
            replica.rule(move |received| match received.names(kind, agent) {
                true => Act::Fence,
                false => Act::Acknowledge,
            });
            let fenced = go(&test, &replica).refused(21, &["w2 has turn 2", "another session has the run"]);
            assert_eq!(fenced.json["reason"], "fenced", "{fenced}");
            assert_eq!(test.journal_bytes(&fenced.id), replica.journal(), "{kind} {agent}");
            let aside = test.repo.join(format!(".archeflow/events/{}.fenced-1", fenced.id));
            let aside = parse_lines(&fs::read(aside).unwrap());
            assert!(aside.iter().any(|line| line["type"] == kind && line["agent"] == agent), "{fenced}");
            assert_eq!(aside[0]["seq"], fenced.journal.len() + 1, "{fenced}");
            // The run is whole, and no list takes the lines for another one.
            assert_eq!(test.run_ids(), std::slice::from_ref(&fenced.id));
            replica.rule(|_| Act::Acknowledge);
            resumed(&test, &replica, &fenced.id, kind);
        },
    );
    // It lost the run before it began.
    let (test, replica) = scene();
    replica.rule(|received| if received.is_hello { Act::Fence } else { Act::Acknowledge });
    let fenced = go(&test, &replica).refused(21, &["w2 has turn 2"]);
    assert_eq!(test.journal_bytes(&fenced.id), b"", "{fenced}");
    let (test, replica) = scene();
    let waits = test.go(&[]).ended("awaiting_merge", "approved", 10);
    replica.rule(|received| if received.is_hello { Act::Fence } else { Act::Acknowledge });
    let before = test.journal_bytes(&waits.id);
    test.run(&["merge", &waits.id, "--replica", &replica.flag()]).refused(21, &["w2 has turn 2"]);
    assert_eq!(test.journal_bytes(&waits.id), before);
    // Another one has gone on.
    replica.rule(|_| Act::Acknowledge);
    replica.kept.lock().unwrap().journal = [before.clone(), b"{}\n".to_vec()].concat();
    test.run(&["merge", &waits.id, "--replica", &replica.flag()]).refused(21, &["up to date"]);
    assert_eq!(test.journal_bytes(&waits.id), before);
}

#[test]
fn fl_24_a_lost_connection_ends_the_session_and_the_next_sends_what_is_missing() {
    let points = [
        ("run.start", None),
        ("agent.start", Some("creator")),
        ("agent.complete", Some("maker")),
        ("run.complete", None),
    ];
    each(points, |(kind, agent)| {
        let (test, replica) = scene();
        replica.rule(move |received| {
            let is_it =
                |line: &Value| line["type"] == kind && agent.is_none_or(|agent| line["agent"] == agent);
            if received.lines.iter().any(is_it) { Act::Close } else { Act::Acknowledge }
        });
        let lost = go(&test, &replica);
        assert_eq!(lost.code, 129, "{kind} {agent:?}\n{lost}");
        assert!(lost.stderr.contains("connection to the replica"), "{lost}");
        let here = test.journal_bytes(&lost.id);
        assert!(here.len() > replica.journal().len() && here.starts_with(&replica.journal()), "{kind}");
        replica.rule(|_| Act::Acknowledge);
        if kind == "run.complete" {
            // It has ended, which only the replica has not heard of.
            test.run(&["resume", &lost.id, "--replica", &replica.flag()]).refused(2, &["has ended"]);
            assert_eq!(replica.journal(), here);
        } else {
            resumed(&test, &replica, &lost.id, kind);
        }
    });
}

#[test]
fn fl_25_killed_between_journal_replica_and_effect_no_step_is_repeated() {
    let places = ["recorded", "replica.sent", "replica.answered", "projected"];
    let mut points: Vec<String> = (3..=8).flat_map(|n| places.map(|place| format!("{place}:{n}"))).collect();
    points.extend(
        ["agent.done:1", "work.published:1", "merge.built:1", "tests.ran:1", "land.committed:1"]
            .map(str::to_owned),
    );
    each(points, |point| {
        let test = Test::new().play("").env("ARCHEFLOW_FAILPOINT", &point);
        let replica = Replica::new(&test);
        let killed = go(&test, &replica);
        assert!(killed.killed, "{point}\n{killed}");
        let test = test.env("ARCHEFLOW_FAILPOINT", "");
        assert!(test.journal_bytes(&killed.id).starts_with(&replica.journal()), "{point}");
        let run = resumed(&test, &replica, &killed.id, &point);
        assert!(test.git(["show", "main:src/app.txt"]).matches("made in").count() == 1, "{point}\n{run}");
    });
    // At its last batch there is nothing to resume, and still something to send.
    each(places, |place| {
        let test = Test::new().play("").env("ARCHEFLOW_FAILPOINT", format!("{place}:9"));
        let replica = Replica::new(&test);
        let killed = go(&test, &replica);
        assert_eq!((killed.killed, killed.events("run.complete").len()), (true, 1), "{place}\n{killed}");
        let test = test.env("ARCHEFLOW_FAILPOINT", "");
        test.run(&["resume", &killed.id, "--replica", &replica.flag()]).refused(2, &["has ended (merged)"]);
        assert_eq!(replica.journal(), test.journal_bytes(&killed.id), "{place}");
    });
}

const FINDING: &str =
    "src/app.txt:1 | CRITICAL | correctness | the line is wrong | write it right | `line 1` is there";

#[test]
fn fl_26_killed_anywhere_a_run_is_taken_over_from_its_parts() {
    let scenes = review("guardian cycle=1", "REJECTED", &[FINDING]);
    let mut points: Vec<String> = (2..=16).map(|n| format!("recorded:{n}")).collect();
    points.extend((2..=16).step_by(3).map(|n| format!("replica.answered:{n}")));
    points.extend((1..=5).map(|n| format!("agent.done:{n}")));
    points.extend(
        ["work.collected:1", "work.published:2", "merge.built:1", "tests.ran:1", "land.begun:1"]
            .map(str::to_owned),
    );
    each(points, |point| {
        let test = Test::new().play(&scenes).env("ARCHEFLOW_FAILPOINT", &point);
        let replica = Replica::new(&test);
        *replica.project.lock().unwrap() = Some(project(&test, &test.repo));
        let killed = test.go(&["--workflow", "standard", "--auto-merge", "--replica", &replica.flag()]);
        assert!(killed.killed, "{point}\n{killed}");
        let test = test.env("ARCHEFLOW_FAILPOINT", "");
        let id = killed.id.clone();
        let before = parse_lines(&replica.journal());
        if before.is_empty() {
            return;
        }
        let clone = test.base().join("other");
        cloned_from(&test, &test.repo, &clone);
        let taken = replica.taken_over(&test, &id, &clone, OWN);
        assert_eq!(taken, Ok(before.len()), "{point}");
        // And once more.
        assert_eq!(replica.taken_over(&test, &id, &clone, OWN), Ok(before.len()), "{point}");
        *replica.project.lock().unwrap() = Some(project(&test, &clone));
        let resumed = at(&test, &clone, &["resume", &id, "--auto-merge", "--replica", &replica.flag()]);
        assert!(resumed.status.success(), "{point}\n{}", printed(&resumed));
        let after = journal(&clone, &id);
        assert_eq!(parse_lines(&replica.journal()), after, "{point}");
        assert!(after.starts_with(&before), "{point}");
        let started = steps(&after, "agent.start");
        for (agent, times) in &steps(&before, "agent.complete") {
            // Sent once more in the second cycle, if that had not begun.
            let cycles =
                after.iter().filter(|line| line["type"] == "agent.complete" && line["agent"] == **agent);
            assert!(started.get(agent) >= Some(times), "{point}");
            let lost = after.iter().filter(|line| line["type"] == "agent.lost" && line["agent"] == **agent);
            let ended = cycles.count() + lost.count();
            assert_eq!(started.get(agent), Some(&ended), "{point}: {agent} was sent again");
        }
        for (agent, times) in steps(&after, "agent.complete") {
            assert!(times <= 2, "{point}: {agent} has worked {times} times in two cycles");
        }
        assert!(git(&clone, &["show", "main:src/app.txt"]).contains("made in cycle 2"), "{point}");
    });
}

#[test]
fn fl_27_what_is_here_gives_way_only_when_told_so() {
    let (test, replica) = scene();
    *replica.project.lock().unwrap() = Some(project(&test, &test.repo));
    replica.rule(|received| match received.names("agent.complete", "creator") {
        true => Act::Close,
        false => Act::Acknowledge,
    });
    let lost = go(&test, &replica);
    assert_eq!(lost.code, 129, "{lost}");
    let (id, here) = (lost.id.clone(), test.journal_bytes(&lost.id));
    // It is longer here: nothing to take over, and nothing lost.
    let older = replica.taken_over(&test, &id, &test.repo, OWN).unwrap_err();
    assert!(older.contains("longer than"), "{older}");
    assert_eq!(test.journal_bytes(&id), here);
    // Elsewhere it is continued from what was kept.
    replica.rule(|_| Act::Acknowledge);
    let clone = test.base().join("other");
    cloned_from(&test, &test.repo, &clone);
    // Nobody vouches for it: then it is foreign.
    let foreign = TakeOver { is_own: false, sets_aside: false };
    replica.taken_over(&test, &id, &clone, foreign).unwrap();
    let refused = at(&test, &clone, &["resume", &id]);
    assert_eq!(refused.status.code(), Some(21), "{}", printed(&refused));
    assert!(printed(&refused).contains("trust --run"), "{}", printed(&refused));
    replica.taken_over(&test, &id, &clone, OWN).unwrap();
    *replica.project.lock().unwrap() = Some(project(&test, &clone));
    let resumed = at(&test, &clone, &["resume", &id, "--auto-merge", "--replica", &replica.flag()]);
    assert!(resumed.status.success(), "{}", printed(&resumed));
    // Here the two differ now.
    let differs = replica.taken_over(&test, &id, &test.repo, OWN).unwrap_err();
    assert!(differs.contains("another run"), "{differs}");
    assert_eq!(test.journal_bytes(&id), here);
    replica.taken_over(&test, &id, &test.repo, OWN_ALONE).unwrap();
    assert_eq!(test.journal_bytes(&id), replica.journal());
    let aside = fs::read(test.repo.join(format!(".archeflow/events/{id}.fenced-1"))).unwrap();
    assert!(here.ends_with(&aside) && !aside.is_empty());
    let shown = test.run(&["status", &id, "--json"]);
    assert_eq!(shown.json["status"], "merged", "{shown}");

    // What is no run changes nothing.
    let fresh = test.base().join("fresh");
    cloned_from(&test, &test.repo, &fresh);
    let good = replica.journal();
    let artifacts = std::mem::take(&mut replica.kept.lock().unwrap().artifacts);
    let missing = replica.taken_over(&test, &id, &fresh, OWN).unwrap_err();
    assert!(missing.contains("is missing or another one"), "{missing}");
    replica.kept.lock().unwrap().artifacts = artifacts;
    replica.kept.lock().unwrap().journal.pop();
    let torn = replica.taken_over(&test, &id, &fresh, OWN).unwrap_err();
    assert!(torn.contains("middle of a line"), "{torn}");
    replica.kept.lock().unwrap().journal = good;
    assert!(!fresh.join(format!(".archeflow/events/{id}.jsonl")).exists());
    assert_eq!(replica.taken_over(&test, &id, &fresh, OWN), Ok(journal(&clone, &id).len()));
}

#[test]
fn fl_28_an_approval_holds_for_a_name_and_exactly_this_content_wherever_it_is() {
    let test = Test::new().play("").without_tests().unsandboxed();
    test.file(".archeflow/config.yaml", format!("test_command: touch {}/ran\n", test.base().display()));
    test.commit("Configure");
    let digest = |at: &Path, name: &str| format!("{name}={}", project(&test, at).offer.named_digest(name));
    let shop = digest(&test.repo, "shop");
    test.go(&["--auto-merge"]).refused(20, &["test_command"]);
    let other = digest(&test.repo, "other").replace("other=", "shop=");
    test.go(&["--auto-merge", "--approved", &other]).refused(20, &["test_command"]);
    test.go(&["--auto-merge", "--approved", "shop=1234"]).refused(2, &["--approved"]);
    assert!(!test.base().join("ran").exists());
    // Another place has the same digest, and an approval is for this one start.
    let clone = test.base().join("clone");
    cloned_from(&test, &test.repo, &clone);
    assert_eq!(digest(&clone, "shop"), shop);
    let waits = test.go(&["--approved", &shop]).ended("awaiting_merge", "approved", 10);
    assert!(test.base().join("ran").exists(), "in force");
    test.go(&["--auto-merge"]).refused(20, &["test_command"]);
    test.run(&["merge", &waits.id, "--approved", &shop]).ended("merged", "approved", 0);
    // One byte more is something else.
    test.file(".archeflow/config.yaml", format!("{}\n", test.read(".archeflow/config.yaml")));
    test.commit("One byte");
    assert_ne!(digest(&test.repo, "shop"), shop);
    test.go(&["--auto-merge", "--approved", &shop]).refused(20, &["test_command"]);
}

/// Names the file with what is to be taken over, for a process that may be killed meanwhile.
const TAKE_OVER: &str = "ARCHEFLOW_TEST_TAKE_OVER";

#[test]
fn fl_29_takes_over_as_a_process_of_its_own() {
    let Some(file) = std::env::var_os(TAKE_OVER) else { return };
    let (id, clone, fetched): (String, PathBuf, Fetched) =
        serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    project_of(std::env::vars_os().collect(), &clone).take_over(fetched.parts(&id), OWN_ALONE).unwrap();
}

#[test]
fn fl_29_killed_while_taking_over_it_is_done_again() {
    each(["import.refs:1", "import.files:1"], |point| {
        let (test, replica) = scene();
        *replica.project.lock().unwrap() = Some(project(&test, &test.repo));
        let waits = test.go(&["--replica", &replica.flag()]).ended("awaiting_merge", "approved", 10);
        let clone = test.base().join("other");
        cloned_from(&test, &test.repo, &clone);
        let list = test.base().join("parts.json");
        let what = (&waits.id, &clone, replica.fetched(&test, &waits.id, &clone));
        fs::write(&list, serde_json::to_vec(&what).unwrap()).unwrap();
        let mut child = test.command(std::env::current_exe().unwrap().to_str().unwrap());
        let child = child.args(["--exact", "replica::fl_29_takes_over_as_a_process_of_its_own"]);
        let killed = child.env(TAKE_OVER, &list).env("ARCHEFLOW_FAILPOINT", point).output().unwrap();
        assert_eq!(killed.status.code(), None, "{point}\n{}", printed(&killed));
        assert!(!clone.join(format!(".archeflow/events/{}.jsonl", waits.id)).exists(), "{point}");
        assert_eq!(replica.taken_over(&test, &waits.id, &clone, OWN), Ok(waits.journal.len()), "{point}");
        let merged = at(&test, &clone, &["merge", &waits.id, "--replica", &replica.flag()]);
        assert!(merged.status.success(), "{point}\n{}", printed(&merged));
        assert_eq!(parse_lines(&replica.journal()), journal(&clone, &waits.id), "{point}");
    });
}
