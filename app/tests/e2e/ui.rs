//! The pages of `archeflow ui`: what they show of real runs, that they keep up, and that a person can decide there.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::control::{WAITS, driver};
use crate::harness::{LONG, TASK, Test, parse_lines, review, says};
use crate::user::{run_ids, wait_until};

const A: &str = "src/app.txt:1 | WARNING | reliability | First line breaks <script>alert(1)</script> parsing | Guard the first line | `src/app.txt:1`";
const B: &str = "README.md:1 | WARNING | dependency | Title names unmaintained library package | Rename the title | `README.md:1`";
const C: &str = "src/app.txt:20 | WARNING | security | Last line exposes internal hostname value | Hide the host | `src/app.txt:20`";

/// A server, and a browser that was let in.
pub(super) struct Browser {
    child: Child,
    pub(super) port: u16,
    pub(super) token: String,
    cookie: String,
}

impl Browser {
    pub(super) fn open(test: &Test, more: &[&str]) -> Browser {
        Browser::of(test.command(env!("CARGO_BIN_EXE_archeflow")), more)
    }

    pub(super) fn of(mut program: Command, more: &[&str]) -> Browser {
        let mut child = program
            .args(["ui", "--port", "0"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.map_while(Result::ok).find(|line| line.contains("/in?t=")).unwrap();
        let (place, token) = address.trim().split_once("/in?t=").unwrap();
        let port = place.rsplit_once(':').unwrap().1.parse().unwrap();
        let mut browser = Browser { child, port, token: token.to_owned(), cookie: String::new() };
        let entered = browser.get(&format!("/in?t={token}"));
        let cookie = entered.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
        browser.cookie = cookie.split(';').next().unwrap().to_owned();
        browser
    }

    pub(super) fn send(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let (port, cookie) = (self.port, &self.cookie);
        let request = format!(
            "{head}\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }

    pub(super) fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn get(&self, path: &str) -> String {
        all(self.send(&format!("GET {path} HTTP/1.1"), ""))
    }

    fn post(&self, fields: &[(&str, &str)]) -> String {
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let body = body.join("&");
        let head = format!(
            "POST /do HTTP/1.1\r\nOrigin: http://127.0.0.1:{}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}",
            self.port,
            body.len()
        );
        all(self.send(&head, &body))
    }

    /// The address of the only run, and the fields that its forms carry.
    pub(super) fn run_page(&self) -> String {
        let runs = self.get("/runs");
        let at = runs.find("href=\"/run/").unwrap() + 6;
        runs[at..].split('"').next().unwrap().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn all(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("closed")
}

/// The value of a hidden field.
fn hidden<'a>(page: &'a str, name: &str) -> &'a str {
    let mark = format!("name=\"{name}\" value=\"");
    page.split(&mark).nth(1).unwrap_or_else(|| panic!("no {name} in {page}")).split('"').next().unwrap()
}

/// The number of the choice whose command has these words.
fn choice(page: &str, words: &str) -> String {
    let labels = page.split("class=\"opt\"").skip(1);
    let at = labels.clone().position(|label| label.split("</label>").next().unwrap().contains(words));
    at.unwrap_or_else(|| panic!("no choice with {words} in {page}")).to_string()
}

pub(super) fn journal(test: &Test, id: &str) -> Vec<Value> {
    parse_lines(&test.journal_bytes(id))
}

pub(super) fn wait_for_end(test: &Test, id: &str) -> Vec<Value> {
    let ended = || journal(test, id).last().is_some_and(|line| line["type"] == "run.complete");
    wait_until(ended, || format!("{:?}", journal(test, id).last()));
    journal(test, id)
}

pub(super) fn broken() -> (Test, String) {
    let scenes = review("guardian cycle=1", "REJECTED", &[A, B])
        + &review("guardian cycle=2", "REJECTED", &[C])
        + &review("guardian cycle=3", "REJECTED", &[A, B])
        + &review("guardian cycle=4", "APPROVED", &[]);
    let test = Test::new().play(&scenes).config("max_cycles:\n  thorough: 5\n");
    let broke = test.go(&["--workflow", "thorough", "--auto-merge"]).ended("wiggum_break", "oscillation", 10);
    let id = broke.id.clone();
    (test, id)
}

#[test]
fn u_16_the_pages_show_a_run_and_a_ruling_is_made_there() {
    let (test, id) = broken();
    let browser = Browser::open(&test, &[]);
    let inbox = browser.get("/");
    assert_eq!(status(&inbox), "200");
    for words in [
        "One run waits for you",
        TASK,
        "--ruling",
        "First line breaks &lt;script&gt;",
        "while the other was gone",
    ] {
        assert!(inbox.contains(words), "{words}\n{inbox}");
    }
    let path = browser.run_page();
    for (part, words) in [
        ("", "Cited line found. </b><code>src/app.txt:1</code>"),
        ("/findings", "Last line exposes internal hostname value"),
        ("/agents", "Guardian"),
        ("/why", "AF-155"),
        ("/costs", "guardian"),
        ("/artifacts", "check-guardian.md"),
        ("/journal", "wiggum.break"),
        ("/report", "The run stopped by itself"),
        ("/artifact?cycle=1&name=check-guardian.md", "VERDICT: REJECTED"),
    ] {
        let page = browser.get(&format!("{path}{part}"));
        assert_eq!(status(&page), "200", "{part}");
        assert!(page.to_lowercase().contains(&words.to_lowercase()), "{part}: {words}\n{page}");
        assert!(!page.contains("<script>alert"), "{part}");
    }
    for wrong in ["/nothing", "/artifact?cycle=1&name=../../../config.yaml", "/artifact?cycle=9&name=x"] {
        assert_eq!(status(&browser.get(&format!("{path}{wrong}"))), "404", "{wrong}");
    }

    // A page that was left open while somebody else decided.
    let page = browser.get(&path);
    let (csrf, run, at) = (hidden(&page, "csrf"), hidden(&page, "run"), hidden(&page, "at"));
    let rules = choice(&page, "--ruling");
    let decide = |csrf: &str, at: &str, text: &str| {
        browser.post(&[("csrf", csrf), ("run", run), ("at", at), ("choice", &rules), ("text", text)])
    };
    let before = test.journal_bytes(&id);
    assert_eq!(status(&decide("", at, "x")), "403", "without the page's token");
    assert_eq!(status(&decide(&browser.token, at, "x")), "403", "with another");
    assert_eq!(status(&decide(csrf, "1", "x")), "409", "about another line");
    assert_eq!(status(&decide(csrf, at, " ")), "422", "without a text");
    assert_eq!(status(&decide(csrf, at, "a\0b")), "422", "with a NUL");
    let gives_up = choice(&page, "archeflow discard");
    let fields = [("csrf", csrf), ("run", run), ("at", at), ("choice", &gives_up), ("text", "because")];
    let dropped = browser.post(&fields);
    assert!(status(&dropped) == "422" && dropped.contains("because"), "words are not dropped: {dropped}");
    assert_eq!(test.journal_bytes(&id), before, "nothing was done");
    let done = decide(csrf, at, "RULED: it's the guard; $(touch x) `y` \"z\"\n--auto-merge");
    assert_eq!(status(&done), "303", "{done}");
    let events = wait_for_end(&test, &id);
    let continued = events.iter().find(|line| line["type"] == "run.continued").unwrap();
    assert_eq!(continued["data"]["by"], "ui");
    assert_eq!(continued["data"]["ruling"], "RULED: it's the guard; $(touch x) `y` \"z\"\n--auto-merge");
    assert_eq!(events.last().unwrap()["data"]["status"], "merged");
    let late = decide(csrf, at, "once more");
    assert_eq!(status(&late), "409", "{late}");
    assert!(late.contains("has moved since the page was drawn"), "the page as it is now\n{late}");
}

#[test]
fn u_16_landing_and_discarding_are_asked_once_more() {
    let test = Test::new().play("");
    let waits = test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10);
    let browser = Browser::open(&test, &[]);
    let page = browser.get(&browser.run_page());
    let fields = |choice: &'static str| {
        let (csrf, run, at) = (hidden(&page, "csrf"), hidden(&page, "run"), hidden(&page, "at"));
        vec![("csrf", csrf), ("run", run), ("at", at), ("choice", choice)]
    };
    let (merge, discard) = (choice(&page, "archeflow merge"), choice(&page, "archeflow discard"));
    assert_eq!((merge.as_str(), discard.as_str()), ("0", "1"));
    let asked = browser.post(&fields("0"));
    let commit = journal(&test, &waits.id)
        .iter()
        .rev()
        .find_map(|line| line["data"]["change"]["commit"].as_str().map(str::to_owned));
    assert!(
        status(&asked) == "200" && asked.contains(&commit.unwrap()) && asked.contains("Land it"),
        "{asked}"
    );
    assert!(journal(&test, &waits.id).iter().all(|line| line["type"] != "merge.requested"));
    let mut sure = fields("0");
    sure.push(("sure", "yes"));
    assert_eq!(status(&browser.post(&sure)), "303");
    let events = wait_for_end(&test, &waits.id);
    let requested = events.iter().find(|line| line["type"] == "merge.requested").unwrap();
    assert_eq!(requested["data"]["by"], "ui");
    assert_eq!(events.last().unwrap()["data"]["status"], "merged");
}

#[test]
fn u_16_of_two_browsers_that_decide_at_once_one_is_refused() {
    let (test, id) = broken();
    let browsers = [Browser::open(&test, &[]), Browser::open(&test, &[])];
    let forms: Vec<(String, String)> = browsers
        .iter()
        .map(|browser| {
            let page = browser.get(&browser.run_page());
            let fields = ["csrf", "run", "at"].map(|name| (name, hidden(&page, name).to_owned()));
            let body = fields.map(|(name, value)| format!("{name}={}", encoded(&value))).join("&");
            (choice(&page, "--ruling"), body)
        })
        .collect();
    let answers: Vec<String> = std::thread::scope(|scope| {
        let posts: Vec<_> = browsers
            .iter()
            .zip(&forms)
            .map(|(browser, (choice, body))| {
                scope.spawn(move || {
                    let body = format!("{body}&choice={choice}&text=mine+at+{}", browser.port);
                    let head = format!(
                        "POST /do HTTP/1.1\r\nOrigin: http://127.0.0.1:{}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}",
                        browser.port,
                        body.len()
                    );
                    all(browser.send(&head, &body))
                })
            })
            .collect();
        posts.into_iter().map(|post| post.join().unwrap()).collect()
    });
    let events = wait_for_end(&test, &id);
    let continued: Vec<&Value> = events.iter().filter(|line| line["type"] == "run.continued").collect();
    assert_eq!(continued.len(), 1, "{answers:?}");
    // A browser whose decision was refused gets its text back.
    for (browser, answer) in browsers.iter().zip(&answers) {
        let text = format!("mine at {}", browser.port);
        let heard = continued[0]["data"]["ruling"] == *text;
        assert_eq!(status(answer), if heard { "303" } else { "409" }, "{text}: {answer}");
        assert!(heard || answer.contains(&text), "{answer}");
    }
}

#[test]
fn r_13_of_the_same_decision_sent_at_once_one_counts_and_the_others_are_told() {
    let test = Test::new().play("");
    let waits = test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10);
    let browser = Browser::open(&test, &[]);
    let page = browser.get(&browser.run_page());
    let (csrf, run, at) = (hidden(&page, "csrf"), hidden(&page, "run"), hidden(&page, "at"));
    let discard = choice(&page, "archeflow discard");
    let fields = [("csrf", csrf), ("run", run), ("at", at), ("choice", &discard), ("sure", "yes")];
    let answers: Vec<String> = std::thread::scope(|scope| {
        let posts: Vec<_> = (0..4).map(|_| scope.spawn(|| browser.post(&fields))).collect();
        posts.into_iter().map(|post| post.join().unwrap()).collect()
    });
    let mut codes: Vec<&str> = answers.iter().map(|answer| status(answer)).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["303", "409", "409", "409"], "{answers:?}");
    let refused = answers.iter().filter(|answer| status(answer) == "409");
    for answer in refused {
        assert!(answer.contains("came first") || answer.contains("has moved"), "{answer}");
    }
    let events = wait_for_end(&test, &waits.id);
    assert_eq!(events.iter().filter(|line| line["type"] == "run.discarded").count(), 1);
}

#[test]
fn u_16_a_stream_has_every_line_with_its_byte_and_resumes_there() {
    let test = Test::new().play(WAITS);
    let (mut child, id) = driver(&test);
    let browser = Browser::open(&test, &[]);
    let path = browser.run_page();
    assert!(browser.get(&path).contains("Stop the run"));
    let of = path.trim_start_matches('/').to_owned();
    let stream = |from: u64| {
        let head = format!("GET /events?of={of}&from={from} HTTP/1.1\r\nAccept: text/event-stream");
        BufReader::new(browser.send(&head, "")).lines().map_while(Result::ok)
    };
    let ends: Vec<u64> = {
        let mut lines = stream(0);
        // The first change of the page comes before the run goes on.
        assert!(lines.any(|line| line == "event: parts"));
        fs::write(test.base().join("go"), "").unwrap();
        let mut seen = Vec::new();
        let (mut last, mut end) = (0, false);
        while let Some(line) = lines.next().filter(|_| !end) {
            last = line.strip_prefix("id: ").map_or(last, |id| id.parse().unwrap());
            if line == "event: line" {
                seen.push(last);
                end = lines.next().unwrap().contains("run.complete");
            }
        }
        seen
    };
    assert!(child.wait().unwrap().success());
    let bytes = test.journal_bytes(&id);
    let real: Vec<u64> =
        bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u64 + 1).collect();
    // Lines from before the stream was opened came before its parts, and were read over.
    assert!(!ends.is_empty() && real.ends_with(&ends), "{ends:?} of {real:?}");
    let from = real[real.len() - 4];
    let resumed: Vec<String> = stream(from).filter(|line| line.starts_with("id: ")).take(3).collect();
    let expected: Vec<String> = real[real.len() - 3..].iter().map(|end| format!("id: {end}")).collect();
    assert_eq!(resumed, expected);
    let mut beyond = stream(u64::MAX);
    assert!(beyond.any(|line| line == "event: reload"), "another journal than the page's");
}

#[test]
fn u_16_a_run_that_a_page_started_survives_the_server_and_a_killed_run_is_said() {
    let held = "== guardian cycle=4 ==\nsh touch {base}/held\nsh while [ ! -e {base}/go ]; do sleep 0.05; done\n\
        say <<END\nVERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\nEND\n\n";
    let scenes = held.to_owned()
        + &review("guardian cycle=1", "REJECTED", &[A, B])
        + &review("guardian cycle=2", "REJECTED", &[C])
        + &review("guardian cycle=3", "REJECTED", &[A, B]);
    let test = Test::new().play(&scenes).config("max_cycles:\n  thorough: 5\n");
    let broke = test.go(&["--workflow", "thorough", "--auto-merge"]).ended("wiggum_break", "oscillation", 10);
    let mut browser = Browser::open(&test, &[]);
    let page = browser.get(&browser.run_page());
    let fields = ["csrf", "run", "at"].map(|name| (name, hidden(&page, name)));
    let rules = choice(&page, "--ruling");
    let done = browser.post(&[&fields[..], &[("choice", &rules), ("text", "x")]].concat());
    assert_eq!(status(&done), "303");
    test.wait_for_file("held");
    browser.child.kill().unwrap();
    browser.child.wait().unwrap();
    fs::write(test.base().join("go"), "").unwrap();
    let events = wait_for_end(&test, &broke.id);
    assert_eq!(events.last().unwrap()["data"]["status"], "merged", "the run did not need the server");

    let other = Test::new().play(WAITS);
    let (mut child, _) = driver(&other);
    let browser = Browser::open(&other, &[]);
    let path = browser.run_page();
    assert!(browser.get(&path).contains("Implementing, cycle 1"));
    child.kill().unwrap();
    child.wait().unwrap();
    let killed = browser.get(&path);
    assert!(killed.contains("Interrupted in do") && killed.contains("archeflow resume"), "{killed}");
    fs::write(other.base().join("go"), "").unwrap();
}

#[test]
fn u_16_a_question_is_answered_on_a_page() {
    let test = Test::new()
        .play(&says("maker attempt=1", "Does a half pallet count as one?\n\nSTATUS: NEEDS_CONTEXT"));
    let asks = test.go(&["--auto-merge", "--unattended"]);
    assert_eq!(asks.json["status"], "awaiting_answer", "{asks}");
    let browser = Browser::open(&test, &[]);
    let page = browser.get(&browser.run_page());
    assert!(page.contains("half pallet"), "{page}");
    let fields = ["csrf", "run", "at"].map(|name| (name, hidden(&page, name)));
    let answer = choice(&page, "archeflow answer");
    let done = browser.post(&[&fields[..], &[("choice", &answer), ("text", "--yes, it does")]].concat());
    assert_eq!(status(&done), "303", "{done}");
    let answered = || journal(&test, &asks.id).into_iter().find(|line| line["type"] == "question.answered");
    wait_until(|| answered().is_some(), || format!("{:?}", journal(&test, &asks.id).last()));
    let answered = answered().unwrap();
    assert_eq!(
        (&answered["data"]["by"], &answered["data"]["text"]),
        (&"ui".into(), &"--yes, it does".into())
    );
}

#[test]
fn u_16_a_step_of_a_loop_is_approved_on_a_page() {
    let world = crate::agent_loop::World::new();
    world.start(&[]).is("approval", 10);
    let browser = Browser::of(world.command(env!("CARGO_BIN_EXE_archeflow")), &[]);
    assert!(browser.get("/loops").contains("Show the prices with tax"));
    let page = browser.get(&browser.run_page());
    let fields = ["csrf", "run", "at"].map(|name| (name, hidden(&page, name)));
    let (approve, reject) = (choice(&page, "archeflow loop approve"), choice(&page, "archeflow loop reject"));
    let decide = |more: &[(&str, &str)]| browser.post(&[&fields[..], more].concat());
    assert_eq!(status(&decide(&[("choice", &reject)])), "422", "a rejection needs words");
    let asked = decide(&[("choice", &approve)]);
    assert!(status(&asked) == "200" && asked.contains("Land it"), "{asked}");
    let done = decide(&[("choice", &approve), ("sure", "yes")]);
    assert_eq!(status(&done), "303", "{done}");
    wait_until(|| world.price() == "2", || world.price());
    let events = world.root().join(".archeflow/events");
    let id = run_ids(&world.root()).remove(0);
    let lines = parse_lines(&fs::read(events.join(format!("{id}.jsonl"))).unwrap());
    let heard = lines.iter().find(|line| line["type"] == "loop.heard").unwrap();
    assert_eq!((&heard["data"]["by"], &heard["data"]["word"]), (&"ui".into(), &"approve".into()));
}

#[test]
fn u_16_a_sprint_is_a_board_and_takes_tasks() {
    let test = Test::new().play("");
    let agent = test.agent();
    let sprint = |arguments: &[&str]| {
        let output = test
            .command(env!("CARGO_BIN_EXE_archeflow"))
            .arg("sprint")
            .args(arguments)
            .current_dir(&test.repo)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    sprint(&["add", ".", TASK, "--estimate", "S", "--priority", "P1"]);
    test.git(["add", "-A"]);
    test.git(["-c", "user.name=a", "-c", "user.email=b", "commit", "-qm", "queue"]);
    sprint(&["run", "--autonomous", "--agent", &agent, "--test-command", "true"]);
    let browser = Browser::open(&test, &[]);
    let list = browser.get("/sprints");
    let path = list
        .split("href=\"")
        .find(|part| part.starts_with("/sprint/"))
        .unwrap()
        .split('"')
        .next()
        .unwrap()
        .to_owned();
    let board = browser.get(&path);
    assert!(board.contains("Landed") && board.contains(TASK) && board.contains("P1"), "{board}");
    let add = |text: &str, priority: &str| {
        let (csrf, named) = (hidden(&board, "csrf"), hidden(&board, "sprint"));
        browser.post(&[
            ("csrf", csrf),
            ("sprint", named),
            ("verb", "add"),
            ("project", "."),
            ("text", text),
            ("priority", priority),
            ("estimate", "M"),
        ])
    };
    assert_eq!(status(&add("--help <b>more</b>", "P0")), "303");
    assert_eq!(status(&add("another", "P9")), "409", "the command says why");
    assert_eq!(status(&add(" ", "P0")), "409");
    let board = browser.get(&path);
    assert!(board.contains("--help &lt;b&gt;more&lt;/b&gt;") && !board.contains("<b>more"), "{board}");
    let cancel = |shown: &str| {
        let fields = ["csrf", "sprint", "item"].map(|name| (name, hidden(&board, name)));
        browser.post(&[&fields[..], &[("verb", "cancel"), ("status", shown)]].concat())
    };
    assert_eq!(status(&cancel("failed")), "409", "not as the page showed it");
    assert_eq!(status(&cancel("pending")), "303");
    assert_eq!(status(&cancel("pending")), "409");
    for page in ["/loops", "/reviews", "/memory", "/scores", "/sprint/0/0", "/sprints/x"] {
        let expected = if page.starts_with("/sprint") { "404" } else { "200" };
        assert_eq!(status(&browser.get(page)), expected, "{page}");
    }
}

#[test]
fn u_16_a_queue_takes_tasks_before_its_first_sprint() {
    let test = Test::new().play("");
    let here = |arguments: &[&str]| {
        let mut command = test.command(env!("CARGO_BIN_EXE_archeflow"));
        command.args(arguments).current_dir(&test.repo);
        command
    };
    assert!(here(&["sprint", "add", ".", TASK]).output().unwrap().status.success());
    let browser = Browser::of(here(&[]), &[]);
    let page = browser.get("/sprints");
    assert!(page.contains(TASK) && page.contains("No sprint has run yet"), "{page}");
    let add = |priority: &str| {
        let fields = ["csrf", "sprint"].map(|name| (name, hidden(&page, name)));
        let more = [
            ("verb", "add"),
            ("project", "."),
            ("text", "One more"),
            ("priority", priority),
            ("estimate", "M"),
        ];
        browser.post(&[&fields[..], &more[..]].concat())
    };
    let refused = add("P9");
    assert!(status(&refused) == "409" && refused.contains("Nothing was done"), "{refused}");
    assert_eq!(status(&add("P1")), "303");
    assert!(browser.get("/sprints").contains("One more"));
}

#[test]
fn u_16_a_lesson_is_forgotten_on_a_page() {
    let test = Test::new().play("");
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    test.run(&["memory", "add", "Write tests first"]);
    let browser = Browser::open(&test, &[]);
    let page = browser.get("/memory");
    assert!(page.contains("Write tests first"), "{page}");
    let fields = ["csrf", "repository", "lesson"].map(|name| (name, hidden(&page, name)));
    assert_eq!(status(&browser.post(&[fields[0], fields[1], ("lesson", "m-999")])), "409", "no such lesson");
    assert_eq!(status(&browser.post(&fields)), "303");
    assert!(!browser.get("/memory").contains("Write tests first"));
    assert_eq!(status(&browser.post(&fields)), "409", "it is gone already");
    let read_only = Browser::open(&test, &["--read-only"]);
    assert!(!read_only.get("/memory").contains("<form"));
}

#[test]
fn u_16_what_a_page_shows_is_there_as_the_command_prints_it() {
    let (test, id) = broken();
    let browser = Browser::open(&test, &[]);
    let page = browser.run_page();
    let key = page.split('/').nth(2).unwrap();
    let object = |path: &str| -> Value {
        let answer = browser.get(path);
        assert_eq!(status(&answer), "200", "{path}: {answer}");
        serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap()
    };
    let run = object(&format!("/api/run/{key}/{id}"));
    assert_eq!(run, test.run(&["show", &id, "--json"]).json);
    assert_eq!(object("/api/repositories")["repositories"][0]["repository"], *key);
    let inbox = object("/api/inbox").to_string();
    assert!(inbox.contains(&id) && object("/api/runs").to_string().contains(&id), "{inbox}");
    for list in ["loops", "memory", "scores"] {
        assert!(object(&format!("/api/{list}?repository={key}")).is_object(), "{list}");
        assert_eq!(status(&browser.get(&format!("/api/{list}"))), "400");
        assert_eq!(status(&browser.get(&format!("/api/{list}?repository=0"))), "404");
    }
    assert_eq!(status(&browser.get(&format!("/api/run/{key}/--help"))), "404");
    assert_eq!(status(&browser.get(&format!("/api/sprint/{key}/x"))), "404");
}

#[test]
fn u_16_a_pause_on_a_page_is_in_the_journal_as_one() {
    let test = Test::new().play(WAITS);
    let (mut child, _) = driver(&test);
    let browser = Browser::open(&test, &[]);
    let steer = |word: &str| {
        let page = browser.get(&browser.run_page());
        let fields = ["csrf", "run"].map(|name| (name, hidden(&page, name)));
        browser.post(&[&fields[..], &[("steer", word)]].concat())
    };
    let paused = steer("Pause");
    assert_eq!(status(&paused), "303", "{paused}");
    assert_eq!(status(&steer("Pause")), "409", "it is paused already");
    let page = browser.get(&browser.run_page());
    let fields = ["csrf", "run", "at"].map(|name| (name, hidden(&page, name)));
    let resumes = choice(&page, "archeflow resume");
    assert_eq!(status(&browser.post(&[&fields[..], &[("choice", &resumes)]].concat())), "303");
    fs::write(test.base().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    let lines = journal(&test, &test.run_ids()[0]);
    for kind in ["run.paused", "run.resumed"] {
        let line = lines.iter().find(|line| line["type"] == kind);
        assert_eq!(line.unwrap_or_else(|| panic!("no {kind}"))["data"]["by"], "ui");
    }
}

/// Files that may not grow, as on a full disk.
#[test]
fn u_16_on_a_full_disk_a_decision_is_refused_and_nothing_is_lost() {
    let (test, id) = broken();
    let before = test.journal_bytes(&id);
    let mut full = test.command("sh");
    full.args(["-c", "ulimit -f 1; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_archeflow")]);
    let decide = |browser: &Browser| {
        let page = browser.get(&browser.run_page());
        assert!(page.contains("--ruling"), "the page is drawn: {page}");
        let fields = ["csrf", "run", "at"].map(|name| (name, hidden(&page, name)));
        let rules = choice(&page, "--ruling");
        browser.post(&[&fields[..], &[("choice", &rules), ("text", "The first one is right")]].concat())
    };
    let refused = decide(&Browser::of(full, &[]));
    assert!(status(&refused) == "409" && refused.contains("Nothing was done"), "{refused}");
    assert_eq!(test.journal_bytes(&id), before);
    assert_eq!(status(&decide(&Browser::open(&test, &[]))), "303");
    let events = wait_for_end(&test, &id);
    assert_eq!(events.last().unwrap()["data"]["status"], "merged");
}

#[test]
fn u_16_a_review_and_a_long_file_show_their_lines() {
    let long: String = (1..=1_500).map(|n| format!("added {n}\n")).collect();
    let test = Test::new().play(&review("guardian", "REJECTED", &[A]));
    test.file("src/app.txt", &long);
    test.file("src/two words.txt", &long);
    assert_eq!(test.run(&["review", "--agent", &test.agent()]).code, 0);
    let browser = Browser::open(&test, &[]);
    let page = browser.get(&browser.run_page());
    assert!(page.contains("added 700<") && !page.contains("added 1400<"), "a part of it: {page}");
    assert!(page.contains("First line breaks"), "with the finding");
    let files = page.split("href=\"").skip(1).map(|part| part.split('"').next().unwrap());
    let links: Vec<&str> = files.filter(|link| link.contains("/file?path=")).collect();
    assert_eq!(links.len(), 2, "{links:?}");
    for link in links {
        let alone = browser.get(link);
        assert!(status(&alone) == "200" && alone.contains("added 1400<"), "{alone}");
    }
    let wrong = browser.get(&format!("{}/file?path=..%2F..%2Fetc%2Fpasswd", browser.run_page()));
    assert!(wrong.contains("is not in the part of the change that is read"), "{wrong}");
}

#[test]
fn u_16_a_read_only_server_has_no_way_to_decide() {
    let test = Test::new().play("");
    test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10);
    let browser = Browser::open(&test, &["--read-only"]);
    let page = browser.get(&browser.run_page());
    assert!(!page.contains("<form") && page.contains("archeflow merge"), "{page}");
    assert_eq!(status(&browser.post(&[("choice", "0")])), "404");
}

#[test]
fn u_16_what_is_damaged_torn_or_gone_is_said() {
    let test = Test::new().play("");
    let ended = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let browser = Browser::open(&test, &[]);
    let path = browser.run_page();
    let journal = test.repo.join(format!(".archeflow/events/{}.jsonl", ended.id));
    let whole = fs::read(&journal).unwrap();
    let lines = whole.iter().filter(|byte| **byte == b'\n').count();
    fs::write(&journal, &whole[..whole.len() - 20]).unwrap();
    let torn = browser.get(&format!("{path}/journal"));
    assert!(torn.contains(&format!("lines 1 to {} of {}", lines - 1, lines - 1)), "{torn}");
    let mut bent = whole.clone();
    bent[whole.len() / 2] ^= 1;
    fs::write(&journal, &bent).unwrap();
    let damaged = browser.get(&path);
    assert!(status(&damaged) == "200" && damaged.contains("can't be read to its end"), "{damaged}");
    fs::rename(test.repo.join(".archeflow"), test.repo.join("gone")).unwrap();
    assert_eq!(status(&browser.get(&path)), "404");
    let inbox = browser.get("/");
    assert!(status(&inbox) == "200" && inbox.contains("archeflow forget --gone"), "{inbox}");
    fs::rename(test.repo.join("gone"), test.repo.join(".archeflow")).unwrap();
    fs::write(&journal, &whole).unwrap();
    assert_eq!(status(&browser.get(&path)), "200");
}

#[test]
fn u_16_a_run_that_waits_stays_in_the_inbox_when_its_journal_is_damaged() {
    let (test, id) = broken();
    let browser = Browser::open(&test, &[]);
    let journal = test.repo.join(format!(".archeflow/events/{id}.jsonl"));
    let whole = fs::read(&journal).unwrap();
    let bend = |at: usize| {
        let mut bent = whole.clone();
        bent[at] ^= 1;
        fs::write(&journal, &bent).unwrap();
    };
    for at in [whole.len() / 2, 40] {
        bend(at);
        let inbox = browser.get("/");
        assert!(inbox.contains("journal can") && inbox.contains(TASK) && !inbox.contains("<form"), "{inbox}");
        let listed = test.command(env!("CARGO_BIN_EXE_archeflow")).arg("status").output().unwrap();
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(listed.contains(&id) && listed.contains("its journal can't be read"), "{listed}");
    }
    fs::write(&journal, &whole).unwrap();
    assert!(browser.get("/").contains("--ruling"));
}

#[test]
fn u_16_a_page_begins_again_when_its_journal_is_replaced() {
    let (test, id) = broken();
    let browser = Browser::open(&test, &[]);
    let of = browser.run_page().trim_start_matches('/').to_owned();
    let journal = test.repo.join(format!(".archeflow/events/{id}.jsonl"));
    let whole = fs::read(&journal).unwrap();
    let head = format!("GET /events?of={of}&from={} HTTP/1.1\r\nAccept: text/event-stream", whole.len());
    let mut lines = BufReader::new(browser.send(&head, "")).lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "event: parts"));
    // Cut in place.
    let second = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    fs::write(&journal, &whole[..second]).unwrap();
    assert!(lines.any(|line| line == "event: reload"));
    // Replaced by another file.
    let other = journal.with_extension("other");
    fs::write(&other, &whole).unwrap();
    fs::rename(&other, &journal).unwrap();
    assert!(lines.any(|line| line == "event: reload"));
    assert!(browser.get(&browser.run_page()).contains("--ruling"));
}

/// A repository can hold anything where a journal should be; a thread that waits for it would be lost.
#[test]
fn u_16_a_pipe_in_place_of_a_journal_holds_nobody_up() {
    let (test, id) = broken();
    let browser = Browser::open(&test, &[]);
    let journal = test.repo.join(format!(".archeflow/events/{id}.jsonl"));
    let aside = journal.with_extension("aside");
    fs::rename(&journal, &aside).unwrap();
    assert!(Command::new("mkfifo").arg(&journal).status().unwrap().success());
    // More often than the server has threads.
    for _ in 0..3 {
        for page in ["/loops", "/", "/runs", "/reviews", "/memory", "/scores"] {
            assert_eq!(status(&browser.get(page)), "200", "{page}");
        }
    }
    fs::remove_file(&journal).unwrap();
    fs::rename(&aside, &journal).unwrap();
    assert!(browser.get("/").contains("--ruling"));
}

#[test]
fn u_16_agents_serve_no_pages() {
    let inside = "== maker ==\nsh {program} ui --port 0 2> {base}/said; echo $? > {base}/code\nsh echo made >> src/app.txt; echo case >> tests/check_test.sh\ncommit Add\nsay <<END\n## Summary\n\nA line.\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().unsandboxed().play(&inside.replace("{program}", env!("CARGO_BIN_EXE_archeflow")));
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(fs::read_to_string(test.base().join("code")).unwrap().trim(), "21");
    assert!(fs::read_to_string(test.base().join("said")).unwrap().contains("can't serve pages"));
}
