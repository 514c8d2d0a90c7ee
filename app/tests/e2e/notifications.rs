//! Messages to a person who does not look (docs/notifications.md): what is sent, when, over which channel, and that a run
//! never waits for it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use ring::hmac;
use serde_json::{Value, json};

use crate::control::WAITS;
use crate::harness::{LONG, Test, as_strs, review, says};
use crate::hub::{ENDS, PLANS, Projects, ROOM};
use crate::screen::Pty;
use crate::ui::Browser;
use crate::user::{PROGRAM, parse_lines, printed, wait_until};

/// Each message is a line of the file `mail`.
const MAIL: &str = "command: 'cat >> {base}/mail && echo >> {base}/mail'";

fn mail(base: &Path) -> Vec<Value> {
    parse_lines(&fs::read(base.join("mail")).unwrap_or_default())
}

fn events(base: &Path) -> Vec<String> {
    let word = |line: &Value| line["event"].as_str().unwrap_or_default().to_owned();
    mail(base).iter().map(word).collect()
}

/// A run that waits to be merged.
fn waits(test: &Test) -> String {
    test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10).id
}

/// The file that says which message was sent last.
fn record(test: &Test) -> std::path::PathBuf {
    let folder = test.home().join(".local/state/archeflow/notified");
    let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let file = files.next().unwrap();
    assert!(files.next().is_none());
    file
}

/// A server on this machine that hands on what it is sent, and answers with this; nothing means never.
struct Hook {
    port: u16,
    requests: Receiver<HookRequest>,
}

struct HookRequest {
    /// Names in lower case.
    headers: BTreeMap<String, String>,
    first: String,
    body: Vec<u8>,
}

impl Hook {
    fn answering(status: Option<&'static str>) -> Hook {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (send, requests) = channel();
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let request = Hook::read(&stream);
                if let Some(status) = status {
                    let answer = format!(
                        "HTTP/1.1 {status}\r\nlocation: http://127.0.0.1:{port}/elsewhere\r\ncontent-length: 0\r\n\r\n"
                    );
                    let _ = (&stream).write_all(answer.as_bytes());
                }
                held.push(stream);
                let _ = send.send(request);
            }
        });
        Hook { port, requests }
    }

    fn read(stream: &TcpStream) -> HookRequest {
        stream.set_read_timeout(Some(LONG)).unwrap();
        let mut reader = BufReader::new(stream);
        let mut first = String::new();
        reader.read_line(&mut first).unwrap();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        HookRequest { headers, first: first.trim().to_owned(), body }
    }

    fn got(&self) -> HookRequest {
        self.requests.recv_timeout(LONG).unwrap()
    }
}

#[test]
fn notify_what_waits_is_sent_once_with_its_command_and_again_after_an_hour() {
    let test = Test::new().play("").config(&format!("notify:\n  {MAIL}\n"));
    let base = test.base();
    let id = waits(&test);
    let sent = mail(&base);
    let [message] = sent.as_slice() else { panic!("{sent:?}") };
    let keys: Vec<&String> = message.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["at", "command", "event", "question", "repository", "run", "title"]);
    assert_eq!(message["event"], "decision");
    assert_eq!(message["run"], id.as_str());
    assert_eq!(message["repository"], test.repo.display().to_string());
    assert_eq!(message["title"], format!("archeflow: Decision needed ({id})"));
    assert_eq!(message["command"], format!("archeflow merge {id} --repo {}", test.repo.display()));

    let resume = || test.run(&["resume", &id, "--unattended"]).refused(2, &["has ended"]);
    resume();
    resume();
    assert_eq!(mail(&base).len(), 1, "it is the same question");
    let file = record(&test);
    let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    record["sent_at"] = json!(record["sent_at"].as_u64().unwrap() - 3_600_000);
    fs::write(&file, record.to_string()).unwrap();
    resume();
    resume();
    assert_eq!(mail(&base).len(), 2, "an hour later, once more");
    // A program that was killed before it had sent anything leaves no record.
    fs::remove_file(&file).unwrap();
    resume();
    assert_eq!(mail(&base).len(), 3);
    test.run(&["merge", &id]).ended("merged", "approved", 0);
    assert_eq!(mail(&base).len(), 3, "nothing waits any more");
}

#[test]
fn notify_only_about_what_needs_a_person_and_what_was_asked_for() {
    let oscillates = [
        review("guardian cycle=1", "REJECTED", &[FIRST]),
        review("guardian cycle=2", "REJECTED", &[LAST]),
        review("guardian cycle=3", "REJECTED", &[FIRST]),
    ];
    let max = "max_cycles:\n  thorough: 5\n";
    let rows = [
        ("", "", &["--auto-merge"][..], &[][..]),
        ("", "", &["--unattended"], &["decision"]),
        ("", "  on: [break, budget]\n", &["--unattended"], &[]),
        ("", "  on: []\n", &["--unattended"], &[]),
        (&oscillates.concat(), "", &["--workflow", "thorough", "--auto-merge"], &["break"]),
        ("== creator ==\nexit 1\n\n", "", &["--auto-merge"], &["break"]),
    ];
    for (scenes, on, arguments, expected) in rows {
        let test = Test::new().play(scenes).config(&format!("{max}notify:\n  {MAIL}\n{on}"));
        let ended = test.go(arguments);
        assert_eq!(events(&test.base()), expected, "{on}\n{ended}");
    }
}

#[test]
fn notify_a_fault_that_stops_the_program() {
    let scene =
        "== maker ==\nsh git -C {repo} config user.name Somebody\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().play(scene).config(&format!("notify:\n  {MAIL}\n")).unaudited();
    let id = test.go(&["--auto-merge"]).refused(21, &["changed while the maker worked"]).id;
    let sent = mail(&test.base());
    assert_eq!(sent[0]["title"], format!("archeflow: Run interrupted ({id})"), "{sent:?}");
    assert_eq!(sent[0]["command"], format!("archeflow resume {id} --repo {}", test.repo.display()));
    assert_eq!(events(&test.base()), ["break"]);
}

const FIRST: &str = "src/app.txt:1 | WARNING | reliability | First line breaks empty input parsing | Guard the first line | `src/app.txt:1`";
const LAST: &str = "src/app.txt:20 | WARNING | security | Last line exposes internal hostname value | Hide the host | `src/app.txt:20`";

#[test]
fn notify_a_webhook_is_signed_and_ntfy_has_its_headers() {
    let (hook, ntfy) = (Hook::answering(Some("204 No Content")), Hook::answering(Some("200 OK")));
    let test = Test::new().play("").env("HOOK_KEY", "a key of the user").config(&format!(
        "notify:\n  webhook: http://127.0.0.1:{}/in?key=hidden\n  webhook_secret: HOOK_KEY\n  ntfy: http://127.0.0.1:{}/topic\n  link: https://box.example.org/\n",
        hook.port, ntfy.port
    ));
    let id = waits(&test);
    let posted = hook.got();
    assert_eq!(posted.first, "POST /in?key=hidden HTTP/1.1");
    assert_eq!(posted.headers["content-type"], "application/json");
    let signature = posted.headers["x-archeflow-signature"].strip_prefix("sha256=").unwrap();
    let tag: Vec<u8> = (0..signature.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&signature[at..at + 2], 16).unwrap())
        .collect();
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"a key of the user");
    hmac::verify(&key, &posted.body, &tag).unwrap();
    let message: Value = serde_json::from_slice(&posted.body).unwrap();
    assert_eq!((&message["run"], &message["link"]), (&json!(id), &json!("https://box.example.org/")));
    let pushed = ntfy.got();
    let header = |name: &str| pushed.headers[name].as_str();
    assert_eq!(pushed.first, "POST /topic HTTP/1.1");
    assert_eq!(header("title"), format!("archeflow: Decision needed ({id})"));
    assert_eq!((header("priority"), header("tags")), ("4", "question"));
    assert_eq!(header("click"), "https://box.example.org/");
    assert!(String::from_utf8(pushed.body).unwrap().contains(&format!("archeflow merge {id}")));
    let shown = test.run(&["config", "show"]);
    assert!(shown.stdout.contains("/…") && !shown.stdout.contains("hidden"), "{shown}");
}

/// The run ends as it would have, the result is printed, and the address is not.
#[test]
fn notify_a_channel_that_fails_is_reported_once_and_changes_nothing() {
    let elsewhere = Hook::answering(Some("307 Temporary Redirect"));
    let broken = Hook::answering(Some("500 Internal Server Error"));
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = |port: u16| format!("http://127.0.0.1:{port}/hidden");
    let rows = [
        (format!("webhook: {}", at(elsewhere.port)), "a message by webhook", "it redirects elsewhere"),
        (format!("ntfy: {}", at(broken.port)), "a message by ntfy", "it answers with status 500"),
        (format!("ntfy: {}", at(closed)), "a message by ntfy", "refused"),
        (
            format!("webhook: {}\n  webhook_secret: NO_SUCH_KEY", at(broken.port)),
            "a message by webhook",
            "`NO_SUCH_KEY` (notify.webhook_secret) is not set",
        ),
    ];
    for (channel, name, why) in rows {
        let test = Test::new().play("").config(&format!("notify:\n  {channel}\n  {MAIL}\n"));
        let ended = test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10);
        assert_eq!(ended.stderr.matches("could not be sent").count(), 1, "{ended}");
        for words in [name, why, "archeflow notify test"] {
            assert!(ended.stderr.contains(words), "'{words}' is not in it\n{ended}");
        }
        assert!(!ended.stderr.contains("hidden"), "{ended}");
        assert_eq!(events(&test.base()), ["decision"], "the other channel works");
    }
    assert!(elsewhere.requests.try_iter().count() == 1, "a redirect is not followed");
}

#[test]
fn notify_a_server_that_never_answers_is_not_waited_for() {
    let silent = Hook::answering(None);
    let hook = format!("notify:\n  webhook: http://127.0.0.1:{}/hidden\n", silent.port);
    let test = Test::new().play("").config(&hook);
    fs::write(test.overdue(), "").unwrap();
    let ended = test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10);
    assert_eq!(silent.got().first, "POST /hidden HTTP/1.1");
    let words = format!(
        "a message by webhook could not be sent: http://127.0.0.1:{}/…: no answer within 5 s",
        silent.port
    );
    assert!(ended.stderr.contains(&words), "{ended}");
}

#[test]
fn notify_a_command_that_never_ends_is_ended_with_all_it_started() {
    let test =
        Test::new().play("").config("notify:\n  command: 'sleep 100000 & echo $! > {base}/pid; wait'\n");
    fs::write(test.overdue(), "").unwrap();
    let ended = test.go(&["--unattended"]).ended("awaiting_merge", "approved", 10);
    assert!(
        ended.stderr.contains("a message by command could not be sent: it took longer than 5 s"),
        "{ended}"
    );
    let pid = fs::read_to_string(test.base().join("pid")).unwrap();
    // Where nobody collects the dead they stay in the table, without a command line.
    let command_line = Path::new("/proc").join(pid.trim()).join("cmdline");
    let is_gone = || fs::read(&command_line).unwrap_or_default().is_empty();
    wait_until(is_gone, || format!("{} is still there", pid.trim()));
}

#[test]
fn notify_a_repository_can_not_set_it() {
    let test = Test::new().play("");
    test.file(".archeflow/config.yaml", "notify:\n  command: touch pwned\n").commit("Notify me");
    let words = [".archeflow/config.yaml:2", "notify.command", "a repository can't set it"];
    test.go(&["--unattended"]).refused(2, &words);
}

#[test]
fn notify_text_of_an_agent_stays_text() {
    let hostile =
        "Which $(touch {base}/pwned) `x` \"y\" <b>&amp; \u{1b}]0;z\u{7} --help \\033[2J \u{202e}end?";
    let test = Test::new()
        .play(&says("maker attempt=1", &format!("{hostile}\n\nSTATUS: NEEDS_CONTEXT")))
        .config(&format!("notify:\n  desktop: true\n  {MAIL}\n"));
    let bin = test.base().join("bin");
    fs::create_dir(&bin).unwrap();
    let script = "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\" > {base}/desktop\n"
        .replace("{base}", &test.base().display().to_string());
    fs::write(bin.join("notify-send"), script).unwrap();
    fs::set_permissions(bin.join("notify-send"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let test = test.env("PATH", path);
    let id = test.go(&["--unattended"]).ended("awaiting_answer", "needs_context", 10).id;
    let sent = mail(&test.base());
    let question = sent[0]["question"].as_str().unwrap();
    assert!(question.contains("$(touch ") && question.ends_with("end?"), "{question}");
    assert!(!question.contains(|c: char| c.is_control() || c == '\u{202e}'), "{question:?}");
    let shown = fs::read_to_string(test.base().join("desktop")).unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines[..4], ["5", "--app-name=archeflow", "--urgency=critical", "--"], "{shown}");
    assert_eq!(lines[4], format!("archeflow: Decision needed ({id})"));
    assert!(lines[5].contains("&lt;b&gt;") && lines[5].contains(r"\\033[2J"), "{shown}");
    assert!(lines[6].starts_with(&format!("archeflow answer {id}")), "{shown}");
    assert!(!test.base().join("pwned").exists());
}

#[test]
fn notify_nothing_while_somebody_watches() {
    for page in [None, Some("inbox"), Some("run")] {
        let test = Test::new().play(WAITS).config(&format!("notify:\n  {MAIL}\n"));
        let base = test.base();
        let mut watchers = (None, None, None);
        let arguments = test.arguments("Add a line to the app", &["--unattended"]);
        let ended = test.during(&as_strs(&arguments), |_| {
            test.wait_for_file("working");
            match page {
                None => {
                    let pty = Pty::start(&test, &["watch"], (100, 30));
                    pty.see("implementing");
                    watchers.0 = Some(pty);
                }
                Some(page) => {
                    let browser = Browser::open(&test, &[]);
                    let of =
                        if page == "inbox" { page.to_owned() } else { browser.run_page()[1..].to_owned() };
                    let mut stream = browser.send(&format!("GET /events?of={of} HTTP/1.1"), "");
                    let mut first = [0; 12];
                    stream.read_exact(&mut first).unwrap();
                    assert_eq!(&first, b"HTTP/1.1 200");
                    (watchers.1, watchers.2) = (Some(browser), Some(stream));
                }
            }
            fs::write(base.join("go"), "").unwrap();
        });
        let id = ended.ended("awaiting_merge", "approved", 10).id;
        assert_eq!(events(&base), [""; 0], "{page:?}");
        drop(watchers);
        test.run(&["resume", &id, "--unattended"]).refused(2, &["has ended"]);
        assert_eq!(events(&base), ["decision"], "{page:?}: nobody looks any more");
    }
}

#[test]
fn notify_test_says_how_each_channel_went() {
    let ntfy = Hook::answering(Some("200 OK"));
    let broken = Hook::answering(Some("403 Forbidden"));
    let good = format!("notify:\n  ntfy: http://127.0.0.1:{}/t\n  {MAIL}\n", ntfy.port);
    let bad = format!("{good}  webhook: http://127.0.0.1:{}/hidden\n", broken.port);
    let test = Test::new();
    test.run(&["notify", "test"]).refused(2, &["no channel is set", "notify: {desktop: true}"]);
    test.configure(&good);
    let sent = test.run(&["notify", "test"]);
    assert_eq!((sent.code, sent.stdout.as_str()), (0, "ntfy      sent\ncommand   sent\n"), "{sent}");
    assert_eq!(events(&test.base()), ["test"]);
    test.configure(&bad);
    let failed = test.run(&["notify", "test", "--json"]);
    let object: Value = serde_json::from_str(&failed.stdout).unwrap();
    assert_eq!(failed.code, 30, "{failed}");
    let why = format!("http://127.0.0.1:{}/…: it answers with status 403", broken.port);
    assert_eq!(object["channels"][0], json!({ "channel": "webhook", "sent": false, "error": why }));
    assert_eq!(object["channels"][1]["sent"], true);
    let terminal = "notify:\n  terminal: osc9\n";
    test.configure(terminal);
    test.run(&["notify", "test"]).refused(30, &[]);
    let (code, bytes) = Pty::start(&test, &["notify", "test"], (80, 24)).says("terminal  sent");
    let bytes = String::from_utf8_lossy(&bytes).into_owned();
    assert!(code == 0 && bytes.contains("\x1b]9;archeflow: test message: "), "{bytes:?}");
}

#[test]
fn notify_nothing_is_sent_from_inside_of_a_run() {
    let scene = format!(
        "== maker ==\nsh cd {{repo}}; {PROGRAM} notify test; echo $? > {{base}}/code\n\
         sh cd {{repo}}; env -u ARCHEFLOW_TAG {PROGRAM} notify test; echo $? >> {{base}}/code\n\
         sh echo y >> src/app.txt; echo y >> tests/check_test.sh\ncommit Work\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n"
    );
    let test = Test::new().play(&scene).config(&format!("notify:\n  {MAIL}\n"));
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(fs::read_to_string(test.base().join("code")).unwrap(), "21\n21\n");
    assert_eq!(events(&test.base()), [""; 0]);
}

/// The runs of a sprint leave it to the sprint, which knows what it lands or resumes by itself.
#[test]
fn notify_a_sprint_speaks_for_its_runs() {
    const MAKES: &str = "\n== maker ==\nsh mkdir -p src tests && echo made >> \"src/$(echo \"$ARCHEFLOW_RUN_ID\" | cut -d. -f2).txt\"\n\
        sh echo true >> tests/work_test.sh\nsh case \"$ARCHEFLOW_RUN_ID\" in *.red*) echo red > src/red;; esac";
    let world = Projects::new(&["shop", "till"]);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    world.write("agents.play", &[PLANS, MAKES, ENDS].concat());
    world.configure(&format!(
        "sprint: {{{ROOM}}}\nnotify:\n  ntfy: http://127.0.0.1:{closed}/hidden\n  {MAIL}\n"
    ));
    world.add("good", "shop", &[]);
    world.add("red", "till", &[]);
    let output = world.begin("test ! -e src/red", &[], &[]).wait_with_output().unwrap();
    let text = printed(&output);
    assert_eq!(
        world.statuses(),
        [("good", "completed"), ("red", "failed")].map(|(a, b)| (a.to_owned(), b.to_owned())).into(),
        "{text}"
    );
    assert_eq!(events(&world.base()), ["break", "sprint_done"], "{text}");
    let sent = mail(&world.base());
    assert_eq!(sent[0]["repository"], world.hub().join("till").display().to_string());
    assert_eq!(
        sent[1]["question"].as_str().unwrap().split(':').next(),
        Some("1 completed, 1 failed"),
        "{sent:?}"
    );
    assert_eq!(text.matches("could not be sent").count(), 1, "reported once\n{text}");
}
