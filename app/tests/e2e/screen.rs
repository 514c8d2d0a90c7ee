//! The live view on a real terminal: a pty, its modes, keys, sizes and signals. What the terminal shows is read by a
//! small emulator, and what was sent to it byte by byte.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};

use crate::harness::{LONG, TASK, Test, review};

const CLEAR: &str = "\x1b[2J";

/// A terminal with a program in it.
pub(crate) struct Pty {
    master: OwnedFd,
    /// Held open, so that the modes stay there to be looked at.
    _slave: OwnedFd,
    modes: String,
    child: Child,
    sent: Arc<Mutex<Vec<u8>>>,
    size: (u16, u16),
}

impl Pty {
    /// The program in a session of its own, as a terminal emulator starts it.
    pub(crate) fn start(test: &Test, arguments: &[&str], size: (u16, u16)) -> Pty {
        let program = [&[env!("CARGO_BIN_EXE_archeflow")], arguments].concat();
        Pty::run(test, &program, size)
    }

    pub(crate) fn run(test: &Test, program: &[&str], size: (u16, u16)) -> Pty {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap();
        tcsetwinsize(&master, winsize(size)).unwrap();
        let modes = modes(&master);
        let end = || Stdio::from(slave.try_clone().unwrap());
        // A suite that was started with `nohup` ignores hang-ups, and with it everything below it.
        let child = test
            .command("env")
            .args(["--default-signal=HUP", "setsid", "--ctty"])
            .args(program)
            .current_dir(&test.repo)
            .stdin(end())
            .stdout(end())
            .stderr(end())
            .spawn()
            .unwrap();
        let sent = Arc::new(Mutex::new(Vec::new()));
        let (mut reader, heard) = (File::from(master.try_clone().unwrap()), Arc::clone(&sent));
        std::thread::spawn(move || {
            let mut bytes = [0; 65_536];
            while let Ok(n) = reader.read(&mut bytes) {
                heard.lock().unwrap().extend_from_slice(&bytes[..n]);
            }
        });
        Pty { master, _slave: slave, modes, child, sent, size }
    }

    pub(crate) fn press(&self, keys: &str) -> &Pty {
        rustix::io::write(&self.master, keys.as_bytes()).unwrap();
        self
    }

    fn resize(&mut self, size: (u16, u16)) {
        self.size = size;
        tcsetwinsize(&self.master, winsize(size)).unwrap();
    }

    fn sent(&self) -> Vec<u8> {
        self.sent.lock().unwrap().clone()
    }

    /// What a person sees.
    fn screen(&self) -> String {
        let (columns, rows) = (self.size.0.try_into().unwrap(), self.size.1.try_into().unwrap());
        let sent = self.sent();
        // Everything is drawn anew after the size has changed.
        let from = position(&sent, CLEAR).pop().unwrap_or(0);
        let mut parser = vt100::Parser::new(rows, columns, 0);
        parser.process(&sent[from..]);
        parser.screen().contents()
    }

    /// Waits until this is on the screen.
    #[track_caller]
    pub(crate) fn see(&self, words: &str) -> &Pty {
        self.until(words, |screen| screen.contains(words))
    }

    /// Waits until these bytes were sent so often.
    #[track_caller]
    fn hear(&self, words: &str, times: usize) -> &Pty {
        self.until(words, |_| position(&self.sent(), words).len() >= times)
    }

    #[track_caller]
    fn until(&self, what: &str, is: impl Fn(&str) -> bool) -> &Pty {
        let begun = Instant::now();
        while !is(&self.screen()) {
            assert!(begun.elapsed() < LONG, "'{what}' is never seen:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end; the terminal must be as it was before. Gives the exit code and all that was sent.
    #[track_caller]
    fn ends(mut self) -> (i32, Vec<u8>) {
        let code = self.code();
        self.settle();
        let sent = self.sent();
        assert_eq!(position(&sent, "\x1b[?1049l").len(), position(&sent, "\x1b[?1049h").len());
        for (on, off) in
            [("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?2004h", "\x1b[?2004l"), ("\x1b[?25l", "\x1b[?25h")]
        {
            assert!(
                position(&sent, off).last() > position(&sent, on).last(),
                "{off:?} is the last word on it"
            );
        }
        (code, sent)
    }

    /// The same without the view: nothing was switched that would have to be switched back.
    #[track_caller]
    pub(crate) fn says(mut self, last: &str) -> (i32, Vec<u8>) {
        self.see(last);
        let code = self.code();
        (code, self.sent())
    }

    #[track_caller]
    fn code(&mut self) -> i32 {
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < LONG, "it does not end:\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(modes(&self.master), self.modes, "the modes of the terminal are as they were");
        status.code().unwrap_or(-1)
    }

    /// Waits until what was sent has arrived here.
    fn settle(&self) {
        let mark = "\x1b[?25h".as_bytes();
        let begun = Instant::now();
        while !self.sent().windows(mark.len()).any(|window| window == mark) && begun.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut length = 0;
        while self.sent().len() != length {
            length = self.sent().len();
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn winsize((columns, rows): (u16, u16)) -> Winsize {
    Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 }
}

fn modes(terminal: &OwnedFd) -> String {
    format!("{:?}", tcgetattr(terminal).unwrap())
}

fn position(bytes: &[u8], words: &str) -> Vec<usize> {
    let windows = bytes.windows(words.len()).enumerate();
    windows.filter(|(_, window)| *window == words.as_bytes()).map(|(at, _)| at).collect()
}

/// Everything in it that could make a terminal do something which our own faces never ask for.
fn foreign(sent: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(sent).into_owned();
    let mut faults = Vec::new();
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        if c == '\u{1b}' {
            let body = rest.strip_prefix('[').unwrap_or("");
            let end = body.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0);
            let (parameters, last) = (&body[..end], body[end..].chars().next().unwrap_or(' '));
            let known = match last {
                'm' | 'H' | 'A' => parameters.chars().all(|c| c.is_ascii_digit() || c == ';'),
                'J' => parameters.is_empty() || parameters == "2",
                'h' | 'l' => ["?25", "?1049", "?2004"].contains(&parameters),
                _ => false,
            };
            if !known {
                faults.push(rest.chars().take(20).collect());
            }
        } else if archeflow_core::text::is_unsafe(c) && !matches!(c, '\n' | '\r') {
            faults.push(format!("{c:?}"));
        }
    }
    faults
}

/// A run that is under way until somebody makes the file `go`.
const WAITS: &str = "== maker ==\nsh touch {base}/working\nsh while [ ! -e {base}/go ]; do sleep 0.05; done\n\
    sh echo made >> src/app.txt; echo case >> tests/check_test.sh\ncommit Add the line\n\
    say <<END\n## Summary\n\nA line.\n\nSTATUS: DONE\nEND\n\n";

fn go(test: &Test) {
    std::fs::write(test.base().join("go"), "").unwrap();
}

/// A run driven by another process, without a terminal.
fn elsewhere(test: &Test) -> Child {
    let arguments = test.arguments(TASK, &["--auto-merge"]);
    let child = test
        .command(env!("CARGO_BIN_EXE_archeflow"))
        .args(&arguments)
        .current_dir(&test.repo)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    test.wait_for_file("working");
    child
}

fn ended(test: &Test, mut driver: Child) {
    go(test);
    assert!(driver.wait().unwrap().success());
}

#[test]
fn af_122_watch_ends_in_every_way_and_leaves_the_terminal_as_it_was() {
    let test = Test::new().play(WAITS);
    let driver = elsewhere(&test);
    for (how, code) in [("q", 0), ("TERM", 143), ("HUP", 129), ("INT", 130), ("\x03", 130)] {
        let pty = Pty::start(&test, &["watch"], (100, 30));
        pty.see("Maker").see("running");
        if how.len() == 1 {
            pty.press(how);
        } else {
            pty.signal(how);
        }
        assert_eq!(pty.ends().0, code, "{how}");
    }
    let before = test.journal_bytes(&test.run_ids()[0]);
    let pty = Pty::start(&test, &["watch"], (100, 30));
    pty.see("Maker").press("s").see("Stop the run?").press("n").press("q");
    assert_eq!(pty.ends().0, 0);
    assert_eq!(test.journal_bytes(&test.run_ids()[0]), before, "watching writes nothing");
    ended(&test, driver);
}

#[test]
fn af_122_watch_shows_what_comes_and_survives_any_size() {
    let test = Test::new().play(WAITS);
    let driver = elsewhere(&test);
    let mut pty = Pty::start(&test, &["watch"], (120, 40));
    pty.see("implementing").see("Decisions");
    for (size, words) in
        [((30, 5), "too small"), ((90, 30), "implementing"), ((40, 10), "Agents"), ((200, 60), "Convergence")]
    {
        pty.resize(size);
        pty.see(words);
    }
    for size in [(1, 1), (3, 1), (1, 50), (65_535, 65_535), (0, 0)] {
        let before = position(&pty.sent(), CLEAR).len();
        tcsetwinsize(&pty.master, winsize(size)).unwrap();
        pty.hear(CLEAR, before + 1);
    }
    pty.resize((100, 30));
    pty.see("implementing").press("?").see("this help").press("\x1b");
    ended(&test, driver);
    pty.see("merged (approved)").press("d").see("+made").press("q").press("q");
    assert_eq!(pty.ends().0, 0);
}

#[test]
fn af_122_m_h5_a_pause_gives_the_terminal_back_and_takes_it_again() {
    let test = Test::new().play(WAITS);
    let driver = elsewhere(&test);
    let script =
        "set -m; \"$0\" watch; echo PAUSED; stty -a | grep -q ' icanon' && echo USUAL; fg; echo OVER $?";
    let pty = Pty::run(&test, &["sh", "-c", script, env!("CARGO_BIN_EXE_archeflow")], (100, 30));
    pty.see("implementing")
        .press("\x1a")
        .hear("PAUSED", 1)
        .hear("USUAL", 1)
        .hear("\x1b[?1049h", 2)
        .see("implementing");
    pty.press("q").see("OVER 0");
    let (code, sent) = pty.ends();
    assert_eq!((code, position(&sent, "\x1b[?1049h").len()), (0, 2));
    ended(&test, driver);

    // Once the view is left for plain lines, pausing is what it always was.
    let test = Test::new().play(WAITS);
    let script = "set -m; \"$@\"; echo PAUSED; fg; echo OVER $?";
    let arguments = test.arguments(TASK, &["--auto-merge", "--tui"]);
    let mut program = vec!["sh", "-c", script, "sh", env!("CARGO_BIN_EXE_archeflow")];
    program.extend(arguments.iter().map(String::as_str));
    let pty = Pty::run(&test, &program, (100, 30));
    pty.see("implementing")
        .press("q")
        .see("plain lines")
        .press("p")
        .see("Run ID:")
        .press("\x1a")
        .hear("PAUSED", 1);
    go(&test);
    pty.hear("OVER 0", 1);
    assert_eq!(pty.ends().0, 0);
}

#[test]
fn af_122_m_a7_a_panic_puts_the_terminal_back() {
    let test = Test::new().play(WAITS).env("ARCHEFLOW_PANIC", "1");
    let driver = elsewhere(&test);
    let (code, sent) = Pty::start(&test, &["watch"], (80, 24)).ends();
    assert_eq!(code, 101);
    assert!(String::from_utf8_lossy(&sent).contains("a test asked for this"));
    ended(&test, driver);

    // In the process that drives, the run goes on in plain lines.
    let test = Test::new().play("").env("ARCHEFLOW_PANIC", "1");
    let arguments = test.arguments(TASK, &["--auto-merge", "--tui"]);
    let pty = Pty::start(&test, &arguments.iter().map(String::as_str).collect::<Vec<_>>(), (80, 24));
    let (code, sent) = pty.ends();
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&sent));
}

fn driven(test: &Test, more: &[&str]) -> Pty {
    let arguments = test.arguments(TASK, &[&["--tui"], more].concat());
    Pty::start(test, &arguments.iter().map(String::as_str).collect::<Vec<_>>(), (110, 32))
}

#[test]
fn af_122_a_run_with_the_view_asks_before_it_is_left_or_stopped() {
    // Plain lines from here on.
    let test = Test::new().play(WAITS);
    let pty = driven(&test, &["--auto-merge"]);
    pty.see("implementing").press("q").see("continue in plain lines").press("p").see("Run ID:");
    go(&test);
    let (code, sent) = pty.ends();
    assert_eq!(code, 0);
    assert!(String::from_utf8_lossy(&sent).contains("merged (approved)"));

    // Stopped, and only after a yes.
    let test = Test::new().play(WAITS);
    let pty = driven(&test, &["--auto-merge"]);
    pty.see("implementing")
        .press("s")
        .see("Stop the run?")
        .press("n")
        .press("s")
        .see("Stop the run?")
        .press("y");
    let (code, sent) = pty.ends();
    assert_eq!(code, 130);
    assert!(String::from_utf8_lossy(&sent).contains("archeflow resume"));

    // A signal from outside.
    let test = Test::new().play(WAITS);
    let pty = driven(&test, &["--auto-merge"]);
    pty.see("implementing").signal("TERM");
    assert_eq!(pty.ends().0, 143);
}

/// U-16: the end is there to be read; the exit code and the summary are the same as without the view.
#[test]
fn u_16_the_view_stays_when_the_run_ends() {
    let summary = |sent: &[u8]| {
        let left = position(sent, "\x1b[?1049l").pop().unwrap();
        String::from_utf8_lossy(&sent[left..]).into_owned()
    };
    // Looked at, then left; meanwhile another process can use the run.
    let test = Test::new().play("");
    let pty = driven(&test, &["--auto-merge"]);
    pty.see("The run has ended").see("merged (approved)").see("q, Esc or Enter leaves");
    let id = test.run_ids()[0].clone();
    let reverted = test.beside(&["revert", &id]);
    assert_eq!(reverted.code, 0, "{reverted}");
    // Two at once would be one key.
    pty.press("\t\t").press("d").see("+made").press("\x1b").see("Decisions").press("\x1b");
    let (code, sent) = pty.ends();
    assert_eq!(code, 0);
    let said = summary(&sent);
    assert!(said.contains("Complete") && said.contains("merged (approved)"), "{said}");

    // A run that did not end well keeps its code, and Enter leaves.
    let scenes =
        review("guardian", "REJECTED", &["src/app.txt:1 | CRITICAL | security | Never | Fix it | `line 1`"]);
    let test = Test::new().unshadowed().play(&scenes);
    let pty = driven(&test, &["--auto-merge"]);
    pty.see("The run has ended").see("1 finding open").see("archeflow ").press("\r");
    let (code, sent) = pty.ends();
    let plain = Test::new().unshadowed().play(&scenes);
    assert_eq!(code, plain.go(&["--auto-merge"]).code);
    assert!(summary(&sent).contains("Open findings:"), "{}", summary(&sent));

    // A signal does not wait for a key.
    let test = Test::new().play("");
    let pty = driven(&test, &["--auto-merge"]);
    pty.see("The run has ended").signal("TERM");
    assert_eq!(pty.ends().0, 0, "the run had ended by then");
}

/// U-17: colours only where they are wanted, and then only those that can be read on any background.
#[test]
fn u_17_colours_follow_no_color_and_a_dumb_terminal() {
    for (setting, coloured) in [("NO_COLOR=1", false), ("TERM=dumb", false), ("TERM=xterm", true)] {
        let test = Test::new().play("");
        let arguments = test.arguments(TASK, &["--auto-merge", "--unattended"]);
        let program = ["env", setting, env!("CARGO_BIN_EXE_archeflow")].into_iter();
        let program: Vec<&str> = program.chain(arguments.iter().map(String::as_str)).collect();
        let (code, sent) = Pty::run(&test, &program, (110, 32)).says("merged (approved)");
        let text = String::from_utf8_lossy(&sent).into_owned();
        assert_eq!((code, text.contains('\u{1b}')), (0, coloured), "{setting}: {text}");
        let seen = ["38;5;2m", "38;5;5m"].map(|code| text.contains(code));
        assert_eq!(seen, [coloured; 2], "{text}");
        let others = ["38;5;3m", "38;5;4m", "38;5;6m", "[48;", "[33m", "[36m"];
        assert!(!others.iter().any(|code| text.contains(code)), "{text}");
    }
    let test = Test::new().play("");
    let arguments = test.arguments(TASK, &["--auto-merge", "--tui"]);
    let program = ["env", "TERM=dumb", env!("CARGO_BIN_EXE_archeflow")].into_iter();
    let program: Vec<&str> = program.chain(arguments.iter().map(String::as_str)).collect();
    assert_eq!(Pty::run(&test, &program, (110, 32)).says("--tui needs a terminal").0, 2);
}

/// U-16: from the third run of a kind on, the next one says at its start what they took.
#[test]
fn u_16_the_start_says_what_such_runs_took() {
    let test = Test::new().play(WAITS).unaudited();
    go(&test);
    let says = |more: &[&str]| {
        let arguments = test.arguments(TASK, &[&["--auto-merge", "--unattended"], more].concat());
        let ran = test.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(ran.code, 0, "{ran}");
        ran.stderr.lines().find(|line| line.starts_with("Time: ")).map(str::to_owned)
    };
    for _ in 0..3 {
        assert_eq!(says(&[]), None);
    }
    let line = says(&[]).unwrap();
    assert!(
        line.starts_with("Time: usually ") && line.ends_with(" with these agents, from 3 runs"),
        "{line}"
    );
    assert_eq!(says(&["--workflow", "standard"]), None, "another kind of run");
    // A journal that can't be read is no reason to fail, nor to count it.
    let events = test.repo.join(".archeflow/events");
    std::fs::write(events.join(format!("{}.jsonl", test.run_ids()[0])), "torn").unwrap();
    assert!(says(&[]).unwrap().ends_with("from 3 runs"));

    std::fs::remove_file(test.base().join("go")).unwrap();
    std::fs::remove_file(test.base().join("working")).unwrap();
    let pty = driven(&test, &["--auto-merge"]);
    pty.see("implementing").see("usual");
    Pty::start(&test, &["watch"], (110, 32)).see("implementing").see("usual");
    go(&test);
    pty.see("The run has ended").press("q");
    assert_eq!(pty.ends().0, 0);
}

#[test]
fn r20_the_question_is_answered_on_the_screen_or_later_in_watch() {
    let test = Test::new().play("");
    let pty = driven(&test, &[]);
    pty.see("waits for an answer")
        .press("a")
        .see("Land this change")
        .press("\x1b[A\x1b[A")
        .see("▸ yes")
        .press("\r")
        .see("The run has ended")
        .press("q");
    let (code, sent) = pty.ends();
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&sent));

    let test = Test::new().play("");
    assert_eq!(test.go(&["--unattended"]).code, 10);
    let pty = Pty::start(&test, &["watch"], (110, 32));
    pty.see("awaiting").press("a").see("▸ or your words").press("yes\r").see("The run has ended").press("\r");
    let (code, sent) = pty.ends();
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&sent));
    assert_eq!(test.git(["log", "-1", "--format=%P"]).split(' ').count(), 2, "it has landed");
}

#[test]
fn r20_a_question_is_answered_from_another_process() {
    for view in [&["--tui"][..], &[]] {
        let test = Test::new().play("");
        let arguments = test.arguments(TASK, view);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let pty = Pty::start(&test, &arguments, (110, 32));
        let asked = test.wait_for("question.asked", None);
        let id = test.run_ids()[0].clone();
        // A pause in between takes nothing away from the question.
        assert_eq!(test.beside(&["pause", &id]).code, 0);
        assert_eq!(test.beside(&["resume", &id]).code, 0);
        let answered = test.beside(&["answer", &id, "yes"]);
        assert_eq!((answered.code, &answered.json["reason"]), (0, &"answered".into()), "{answered}");
        if !view.is_empty() {
            pty.see("The run has ended").press("q");
        }
        let (code, sent) = if view.is_empty() { pty.says("Complete") } else { pty.ends() };
        assert_eq!(code, 0, "{}", String::from_utf8_lossy(&sent));
        let line = test.wait_for("question.answered", None);
        assert_eq!((&line["data"]["by"], &line["data"]["start_seq"]), (&"control".into(), &asked["seq"]));
        assert_eq!(test.git(["log", "-1", "--format=%P"]).split(' ').count(), 2, "it has landed");
    }
}

#[test]
fn af_122_watch_pauses_resumes_and_stops_the_run_of_another_process() {
    let test = Test::new().play(WAITS);
    let mut driver = elsewhere(&test);
    let pty = Pty::start(&test, &["watch"], (100, 30));
    pty.see("Maker").press("p").see("The run is paused").press("\x1b").see("paused");
    pty.press("p").see("The run is resumed").press("\x1b").see("running");
    pty.press("s").see("Stop the run?").press("y").see("The run is being stopped");
    assert_eq!(driver.wait().unwrap().code(), Some(130));
    pty.press("\x1b").see("interrupted").press("q");
    assert_eq!(pty.ends().0, 0);
    let kinds = ["run.paused", "run.resumed", "session.end"];
    assert!(kinds.iter().all(|kind| test.wait_for(kind, None)["type"] == *kind));
}

const ESCAPES: &str = "\u{1b}]0;owned\u{7}\u{1b}]52;c;b3duZWQ=\u{7}\u{1b}[3J\u{1b}[?1000h\u{1b}Pq#0;2;0;0;0#0~~\u{1b}\\\u{9b}31m\u{202e}\u{2066}\u{200b}\u{feff}\r\u{8}\u{7}end";

/// R14: in the bytes on the terminal there is nothing an agent could have meant as an order to it.
#[test]
fn r14_m_d2_m_s12_what_agents_print_can_not_drive_the_terminal() {
    let long = "y".repeat(100_000);
    let flood = format!("z{}", "\u{301}".repeat(5_000));
    // A line break would end the row of a table.
    let inline = ESCAPES.replace('\r', "");
    let row = format!("OWNED {inline} 漢字{flood} {long}");
    let words = format!("{long} {flood}\nOWNED 漢字 {ESCAPES}");
    let scenes = format!(
        "== explorer ==\nsay <<END\n{words}\n\nSTATUS: DONE\nEND\n\n\
         == maker ==\ncomplain <<END\n{words}\nEND\nsay <<END\n{words}\nEND\nsleep 500\nsay <<END\nOWNED 漢字 {ESCAPES}\nEND\nsh touch {{base}}/working\n\
         sh while [ ! -e {{base}}/go ]; do sleep 0.05; done\n\
         sh echo made >> src/app.txt; echo case >> tests/check_test.sh\ncommit Add\n\
         say <<END\n## Summary\n\n{words}\n\nSTATUS: DONE\nEND\n\n{}",
        review(
            "guardian",
            "REJECTED",
            &[&format!("src/app.txt:1 | CRITICAL | security | {row} | Fix {inline} | `line 1`")]
        )
    );
    let test = Test::new().unshadowed().play(&scenes);
    let task = format!("Add a line {ESCAPES}");
    let arguments = test.arguments(&task, &["--tui", "--unattended"]);
    let pty = Pty::start(&test, &arguments.iter().map(String::as_str).collect::<Vec<_>>(), (110, 32));
    pty.see("implementing").see("OWNED").press("\r").see("attempt");
    let watching = Pty::start(&test, &["watch"], (80, 24));
    watching.see("implementing").see("OWNED").press("\x1b");
    pty.press("\x1b");
    go(&test);
    watching
        .see("stopped (")
        .press("\t")
        .press("\r")
        .see("check-guardian.md")
        .press("q")
        .press("\t")
        .press("q");
    for (pty, what) in [(watching, "watch"), (pty, "run --tui")] {
        let (_, sent) = pty.ends();
        assert_eq!(foreign(&sent), Vec::<String>::new(), "{what}");
        assert!(sent.len() < 2_000_000, "{} bytes", sent.len());
    }
    let checked =
        foreign("\u{1b}]0;x\u{7}a\u{1b}[3J\u{9b}\u{202e}\u{1b}Pq\u{1b}[2J\u{1b}[0;31m\u{1b}[3;4H".as_bytes());
    assert_eq!(checked.len(), 6, "the check sees what it looks for: {checked:?}");
}

/// The same for the list of a review, with colours and frames of hostile code.
#[test]
fn r14_what_reviewers_and_code_say_can_not_drive_the_terminal() {
    let inline = ESCAPES.replace('\r', "");
    let row =
        format!("src/app.txt:2 | CRITICAL | security | OWNED {inline} 漢字 | Fix {inline} | `line two`");
    let test = Test::new().unshadowed().play(&review("guardian", "REJECTED", &[&row]));
    test.file("src/app.txt", format!("line 1 {ESCAPES}\nline two {ESCAPES}\nline 3 \u{1b}[2J\n"));
    test.file(format!("odd {}.txt", ESCAPES.replace(['/', '\r'], "")), "odd\n");
    let agent = test.agent();
    let pty = Pty::start(&test, &["review", "--agent", &agent], (100, 40));
    let (code, sent) = pty.says("The whole change was looked at");
    assert_eq!(code, 0, "{}", String::from_utf8_lossy(&sent));
    assert!(String::from_utf8_lossy(&sent).contains("OWNED"), "it is told");
    assert_eq!(foreign(&sent), Vec::<String>::new());
}

#[test]
fn af_122_m_h9_without_a_terminal_the_view_is_refused_and_watch_prints_lines() {
    let test = Test::new().play(WAITS);
    test.go(&["--tui"]).refused(2, &["--tui needs a terminal", "archeflow watch"]);
    assert_eq!(test.run_ids(), Vec::<String>::new(), "nothing was begun");
    test.run(&["watch"]).refused(2, &["no run"]);

    let mut driver = elsewhere(&test);
    let watch = |arguments: &[&str]| {
        let mut command = test.command(env!("CARGO_BIN_EXE_archeflow"));
        command.args(arguments).current_dir(&test.repo).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let watching = watch(&["watch", "--json"]);
    go(&test);
    assert!(driver.wait().unwrap().success());
    let told = watching.wait_with_output().unwrap();
    let lines = String::from_utf8_lossy(&told.stderr).into_owned();
    assert_eq!(told.status.code(), Some(0), "{lines}");
    for words in ["Run ID:", "Maker implementing...", "merged to main", "merged (approved)"] {
        assert!(lines.contains(words), "{words}: {lines}");
    }
    let object: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((&object["status"], &object["exit_code"]), (&"merged".into(), &0.into()));
}

#[test]
fn af_122_watch_in_lines_ends_when_no_process_drives_any_more() {
    let test = Test::new().play(WAITS);
    let mut driver = elsewhere(&test);
    driver.kill().unwrap();
    driver.wait().unwrap();
    go(&test);
    let watched = test.run(&["watch"]);
    assert_eq!(watched.code, 10, "{watched}");
    assert!(watched.stderr.contains("archeflow resume"), "{watched}");
}
