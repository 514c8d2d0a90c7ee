//! Real clients against a scripted model: whole runs through the front door, and everything a provider can do wrong.
//! They need the clients that `cargo xtask clients` fetches into `target/clients`, so they are asked for by name:
//!
//! ```sh
//! cargo xtask test clients matrix
//! ARCHEFLOW_CASE=401 cargo test -p archeflow --test e2e claude_goes -- --ignored
//! ```
//!
//! One test per client, which goes through its cases one after the other and prints a line for each. So no client
//! ever waits for another of its kind, and a slow one does not hold up the rest.

use std::ffi::OsString;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{LONG, Outcome, TASK, Test, as_strs, running, signal};
use crate::model::{Kind, Model, Reply};

const PROPOSAL: &str = "## Architecture\n\nA line. Rationale: asked for.\n\n## Files\n\n- `src/app.txt`\n- `tests/app_test.sh`\n\n\
    ## Alternatives\n\n- none: rejected\n\n## Test strategy\n\n- the line is there\n\n## Confidence\n\n\
    | Axis | Score |\n|---|---|\n| Task understanding | 0.95 |\n| Solution completeness | 0.9 |\n\
    | Risk coverage | 0.9 |\n\n## Risks\n\n- None.\n\nSTATUS: DONE\n";
const MADE: &str = "I added the line and its test.\n\nSTATUS: DONE\n";
const APPROVED: &str = "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n";
const WORK: &str = "echo made >> src/app.txt; echo 'grep -q made src/app.txt' > tests/app_test.sh";
const EVIL: &str = "echo evil > evil.txt; echo evil > src/evil.txt";

/// A client as the tests start it: its spec, its program below `target/clients`, and the tools its model asks for.
struct Row {
    spec: &'static str,
    program: &'static str,
    shell: fn(&str) -> Reply,
    /// How it writes a file: the path, which is relative, and the text.
    write: fn(&str, &str) -> Reply,
    /// Where its model is, in the words of its user's environment.
    model: fn(&str) -> Vec<(&'static str, String)>,
    /// After this number of refusals it is taken to retry without end. OpenCode does, and doubles its wait each time.
    tries: usize,
    /// Cases that end in another way than they usually do.
    differs: &'static [(&'static str, &'static [&'static str])],
}

const CLAUDE: Row = Row {
    spec: "claude",
    program: "claude/node_modules/@anthropic-ai/claude-code-linux-{arch}/claude",
    shell: |command| Reply::Use("Bash", json!({"command": command, "description": "work"})),
    write: |path, text| Reply::Use("Write", json!({"file_path": path, "content": text})),
    model: |address| {
        vec![("ANTHROPIC_API_KEY", "test".to_owned()), ("ANTHROPIC_BASE_URL", address.to_owned())]
    },
    tries: 6,
    differs: &[],
};

const CODEX: Row = Row {
    spec: "codex:gpt-5.5",
    program: "codex/node_modules/@openai/codex-linux-{arch}/vendor/{triple}-unknown-linux-musl/bin/codex",
    shell: |command| Reply::Use("exec_command", json!({"cmd": command})),
    write: |path, text| {
        let lines: String = text.lines().map(|line| format!("+{line}\n")).collect();
        let patch = format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n");
        Reply::Use("apply_patch", json!(patch))
    },
    model: |address| vec![("CODEX_API_KEY", "test".to_owned()), ("OPENAI_BASE_URL", format!("{address}/v1"))],
    tries: 6,
    differs: &[],
};

const GEMINI: Row = Row {
    spec: "gemini",
    program: "gemini/node_modules/@google/gemini-cli/bundle/gemini.js",
    shell: |command| Reply::Use("run_shell_command", json!({"command": command, "description": "work"})),
    write: |path, text| Reply::Use("write_file", json!({"file_path": path, "content": text})),
    model: |address| {
        vec![("GEMINI_API_KEY", "test".to_owned()), ("GOOGLE_GEMINI_BASE_URL", address.to_owned())]
    },
    tries: 6,
    differs: &[],
};

const GOOSE: Row = Row {
    spec: "goose:openai/scripted",
    program: "goose/node_modules/@aaif/goose-binary-linux-{arch}/bin/goose",
    shell: |command| Reply::Use("shell", json!({"command": command})),
    write: |path, text| Reply::Use("write", json!({"path": path, "content": text})),
    model: |address| {
        vec![
            ("OPENAI_API_KEY", "test".to_owned()),
            ("OPENAI_HOST", address.to_owned()),
            ("OPENAI_BASE_PATH", "v1/chat/completions".to_owned()),
        ]
    },
    tries: 6,
    differs: &[],
};

const OPENCODE: Row = Row {
    spec: "opencode:local/scripted",
    program: "opencode/node_modules/opencode-linux-{arch}/bin/opencode",
    shell: |command| Reply::Use("bash", json!({"command": command, "description": "work"})),
    write: |path, text| Reply::Use("write", json!({"filePath": path, "content": text})),
    model: |address| {
        let options = json!({"baseURL": format!("{address}/v1"), "apiKey": "test"});
        let models = json!({"scripted": {"limit": {"context": 128_000, "output": 8_000}, "tool_call": true}});
        let local = json!({"npm": "@ai-sdk/openai-compatible", "options": options, "models": models});
        let settings = json!({"small_model": "local/scripted", "provider": {"local": local}});
        vec![("OPENCODE_CONFIG_CONTENT", settings.to_string())]
    },
    tries: 3,
    differs: &[],
};

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_claude_goes_through_everything() {
    CLAUDE.goes_through_everything();
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_codex_goes_through_everything() {
    CODEX.goes_through_everything();
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_gemini_goes_through_everything() {
    GEMINI.goes_through_everything();
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_goose_goes_through_everything() {
    GOOSE.goes_through_everything();
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_opencode_goes_through_everything() {
    OPENCODE.goes_through_everything();
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_author_and_judge_may_be_of_different_houses() {
    let model = Model::new(&[
        ("creator", &[say(PROPOSAL)]),
        ("maker", &[(CLAUDE.shell)(WORK), say(MADE)]),
        ("guardian", &[(CODEX.shell)("cat src/app.txt"), say(APPROVED)]),
    ]);
    let test = test_of(&[&CLAUDE, &CODEX], &model.address, &Clocks::default());
    let mixed = ["--agent", CLAUDE.spec, "--agent-for", "guardian=codex:gpt-5.5", "--auto-merge"];
    let outcome = test.go(&mixed).ended("merged", "approved", 0);
    let has = |who: &str, field: &str| model.asked_by(who).iter().all(|body| body[field].is_array());
    assert!(
        has("maker", "messages") && has("guardian", "input"),
        "each asks in its own house's way\n{outcome}"
    );
    assert!(test.read("src/app.txt").ends_with("made\n"), "{outcome}");
}

/// The same finding from both is listed once, with both names.
#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_5_two_houses_review_a_change_side_by_side() {
    let found = "VERDICT: REJECTED\nFINDINGS: 1\n\n\
        | Location | Severity | Category | Description | Fix | Evidence |\n|---|---|---|---|---|---|\n\
        | src/app.txt:21 | WARNING | quality | The last line says nothing. | Drop it. | `made by hand` |\n\n\
        STATUS: DONE\n";
    let model =
        Model::new(&[("guardian", &[say(found)]), ("sage", &[(CODEX.shell)("cat src/app.txt"), say(found)])]);
    let test = test_of(&[&CLAUDE, &CODEX], &model.address, &Clocks::default());
    test.file("src/app.txt", test.read("src/app.txt") + "made by hand\n");
    let mixed = ["--agent", CLAUDE.spec, "--agent-for", "sage=codex:gpt-5.5", "--format", "json"];
    let outcome = test.run(&[&["review", "--reviewers", "guardian,sage"], &mixed[..]].concat());
    assert_eq!(outcome.code, 0, "{outcome}");
    let result: Value =
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}\n{outcome}"));
    let findings = result["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(findings.len(), 1, "{result:#}\n{outcome}");
    assert_eq!(findings[0]["sources"], json!(["guardian", "sage"]), "{result:#}");
    assert_eq!(findings[0]["severity"], "WARNING", "{result:#}");
    for (who, words) in [("guardian", "made by hand"), ("sage", "made by hand")] {
        let asked = model.asked_by(who);
        assert!(asked.iter().any(|body| body.to_string().contains(words)), "the {who} saw the diff");
    }
}

/// What happens, what the model does, and how the run ends: status, reason and exit code, and what stands in the
/// journal as the kind of the failure.
struct Fault {
    what: &'static str,
    replies: &'static [Reply],
    ends: (&'static str, &'static str, i32),
    kinds: &'static [&'static str],
}

const FAILED: (&str, &str, i32) = ("failed", "agent_failures", 30);
const BUSY: (&str, &str, i32) = ("stopped", "provider_busy", 31);

const FAULTS: [Fault; 9] = [
    Fault {
        what: "401",
        replies: &[Reply::Status(401)],
        ends: ("stopped", "not_signed_in", 31),
        kinds: &["auth"],
    },
    Fault { what: "429 for ever", replies: &[Reply::Later(429, 1)], ends: BUSY, kinds: &["rate_limit"] },
    Fault { what: "nothing left", replies: &[Reply::Quota], ends: BUSY, kinds: &["quota"] },
    Fault { what: "500 for ever", replies: &[Reply::Status(500)], ends: BUSY, kinds: &["overload"] },
    Fault { what: "too long", replies: &[Reply::TooLong], ends: FAILED, kinds: &["context_too_long"] },
    Fault { what: "hangs", replies: &[Reply::Hang], ends: FAILED, kinds: &["silence", "network"] },
    Fault { what: "stalls", replies: &[Reply::Stall], ends: FAILED, kinds: &["silence", "network"] },
    Fault { what: "drops", replies: &[Reply::Drop], ends: FAILED, kinds: &["network"] },
    Fault { what: "nobody there", replies: &[], ends: FAILED, kinds: &["network"] },
];

impl Row {
    fn goes_through_everything(&self) {
        let mut failed: Vec<&str> = Vec::new();
        failed.extend(self.told("a whole run lands", || self.lands()));
        failed.extend(self.told("a correction reaches the same session", || self.is_corrected()));
        failed.extend(self.told("429, then recovery", || self.recovers("rate_limit", Reply::Status(429))));
        failed.extend(self.told("a dropped stream, then recovery", || self.recovers("network", Reply::Drop)));
        failed.extend(self.told("stopped in the middle of a command", || self.is_stopped()));
        for fault in &FAULTS {
            failed.extend(self.told(fault.what, || self.suffers(fault)));
        }
        assert!(failed.is_empty(), "{}: {}", self.spec, failed.join(", "));
    }

    /// Goes through one case and says so, past the capture of the test: whoever waits sees that it goes on.
    fn told(&self, what: &'static str, case: impl FnOnce()) -> Option<&'static str> {
        let only = std::env::var("ARCHEFLOW_CASE").unwrap_or_default();
        if !what.contains(&only) {
            return None;
        }
        let begun = Instant::now();
        let good = catch_unwind(AssertUnwindSafe(case)).is_ok();
        let word = if good { "ok" } else { "FAILED" };
        let line = format!("  {}: {what}: {word} ({:.1} s)\n", self.spec, begun.elapsed().as_secs_f64());
        let _ = std::io::stdout().write_all(line.as_bytes());
        (!good).then_some(what)
    }

    fn test(&self, model: &Model, clocks: &Clocks) -> Test {
        test_of(&[self], &model.address, clocks)
    }

    fn lands(&self) {
        let model = Model::new(&[
            ("creator", &[say(PROPOSAL)]),
            (
                "maker",
                &[
                    (self.shell)("echo made >> src/app.txt"),
                    (self.write)("tests/app_test.sh", "grep -q made src/app.txt\n"),
                    say(MADE),
                ],
            ),
            ("guardian", &[(self.write)("evil.txt", "evil\n"), (self.shell)(EVIL), say(APPROVED)]),
        ]);
        let test = self.test(&model, &Clocks::default());
        let outcome = test.go(&self.arguments()).ended("merged", "approved", 0);
        assert!(test.read("src/app.txt").ends_with("made\n"), "{outcome}");
        assert_eq!(test.read("tests/app_test.sh"), "grep -q made src/app.txt\n", "{outcome}");
        assert!(!test.repo.join("evil.txt").exists() && !test.repo.join("src/evil.txt").exists());
        assert!(!test.git(["log", "--all", "-p"]).contains("evil"), "it was not even kept");
        // Who answers in Markdown where a form was wanted may be asked for it once more.
        assert!((3..=4).contains(&model.asked_by("guardian").len()), "{}: it did try", self.spec);
        for who in ["creator", "maker", "guardian"] {
            let complete = lines(&outcome, "agent.complete", who);
            let [complete] = complete.as_slice() else { panic!("{who}: {outcome}") };
            let charged = model.charged(who, &[Kind::Answered]);
            let tokens = json!({"input": charged.input, "output": charged.output});
            assert_eq!(complete["data"]["tokens"], tokens, "{who}");
            assert!(complete["data"]["session"]["id"].is_string(), "{who}");
            let notes = complete["data"]["notes"].to_string();
            assert!(!notes.contains("read-only"), "{who} changed its checkout: {notes}");
        }
        self.is_counted(&model, &outcome);
        left_alone(&test);
    }

    fn is_corrected(&self) {
        let model = Model::new(&[
            ("creator", &[say(PROPOSAL)]),
            (
                "maker",
                &[
                    (self.shell)(&format!("{WORK}; echo stray > src/stray.txt")),
                    say(MADE),
                    (self.shell)("rm src/stray.txt"),
                    say(MADE),
                ],
            ),
            ("guardian", &[say(APPROVED)]),
        ]);
        let test = self.test(&model, &Clocks::default());
        let outcome = test.go(&self.arguments()).ended("merged", "approved", 0);
        let complete = lines(&outcome, "agent.complete", "maker");
        let [first, corrected] = complete.as_slice() else { panic!("{outcome}") };
        let starts = lines(&outcome, "agent.start", "maker");
        assert_eq!(starts[1]["data"]["purpose"], "correct");
        assert_eq!(starts[1]["data"]["resumes"], first["data"]["session"], "{}", self.spec);
        assert_eq!(first["data"]["session"]["id"], corrected["data"]["session"]["id"], "{}", self.spec);
        assert_eq!(
            corrected["data"]["tokens"],
            json!({"input": 200, "output": 40}),
            "its own only\n{outcome}"
        );
        let last = model.asked_by("maker").pop().unwrap().to_string();
        // On a busy machine Goose may drop a tool call and its result when it loads a session; texts stay.
        let (before, after) = last.split_once("# Correction").unwrap_or_default();
        let answered = before.contains("I added the line and its test.");
        assert!(last.contains("you are the maker.") && answered, "brief and answer are still known\n{last}");
        assert!(after.contains("rm src/stray.txt"), "the work of the correction follows it\n{last}");
        assert!(!test.repo.join("src/stray.txt").exists());
        self.is_counted(&model, &outcome);
    }

    /// One fault less than that, and then an answer: clients that give up by themselves are started again.
    fn recovers(&self, kind: &str, fault: Reply) {
        let replies = [vec![fault; self.tries - 1], vec![say(PROPOSAL)]].concat();
        let model = Model::new(&[
            ("creator", &replies),
            ("maker", &[(self.shell)(WORK), say(MADE)]),
            ("guardian", &[say(APPROVED)]),
        ]);
        let clocks = Clocks { attempts: 5, busy: "[0, 0, 0, 0, 0]", ..Clocks::default() };
        let outcome = self.test(&model, &clocks).go(&self.arguments()).ended("merged", "approved", 0);
        let failed = lines(&outcome, "agent.failed", "creator");
        assert!(failed.iter().all(|line| line["data"]["kind"] == kind), "{outcome}");
        let turned_away = model.charged("creator", &[Kind::Begun, Kind::Aside]).requests == 0;
        // OpenCode tries again and again until it is cut short, and what it was at then proves nothing.
        let proven = turned_away && !self.spec.starts_with("opencode");
        let free = failed.iter().all(|line| line["data"]["estimated_cost_usd"] == 0.0);
        assert!(!proven || free, "what never began has cost nothing\n{outcome}");
        self.is_counted(&model, &outcome);
    }

    fn suffers(&self, fault: &Fault) {
        // Also for whoever has forgotten the brief: some sum up what was too long and go on without it.
        let model = Model::new(&[("creator", fault.replies), ("*", fault.replies)]);
        let nobody = Model::nobody();
        let refused = fault.replies.is_empty();
        let address = if refused { &nobody.address } else { &model.address };
        let waits = fault.replies.iter().any(|reply| matches!(reply, Reply::Hang | Reply::Stall));
        let silence = if waits { 10 } else { 600 };
        let test = test_of(&[self], address, &Clocks { silence, ..Clocks::default() });
        model.makes_overdue(test.overdue(), self.tries);
        let arguments = test.arguments(TASK, &self.arguments());
        let arguments = as_strs(&arguments);
        let outcome = test.during(&arguments, |child| {
            if refused {
                overdue_when_it_complains(&test, child);
            }
        });
        let ends = fault.ends;
        let outcome = outcome.ended(ends.0, ends.1, ends.2);
        let differs = self.differs.iter().find(|(what, _)| *what == fault.what);
        let kinds = differs.map_or(fault.kinds, |(_, kinds)| *kinds);
        let failed = outcome
            .journal
            .iter()
            .filter(|line| line["data"]["kind"].is_string() && line["agent"] == "creator");
        let found: Vec<&str> = failed.filter_map(|line| line["data"]["kind"].as_str()).collect();
        assert!(!found.is_empty() && found.iter().all(|kind| kinds.contains(kind)), "{found:?}\n{outcome}");
        assert!(refused || !model.asked_by("creator").is_empty(), "it never asked\n{outcome}");
        if fault.what == "401" {
            assert!(outcome.stdout.contains("To sign in"), "the remedy is told\n{outcome}");
        }
        self.is_counted(&model, &outcome);
    }

    fn is_stopped(&self) {
        let word = format!("left-behind-{}-{}", std::process::id(), self.name());
        let command = format!("{WORK}; touch {word}; setsid tail -f {word} & tail -f {word}");
        let model = Model::new(&[
            ("creator", &[say(PROPOSAL)]),
            ("maker", &[(self.shell)(&command), (self.shell)(WORK), say(MADE)]),
            ("guardian", &[say(APPROVED)]),
        ]);
        let test = self.test(&model, &Clocks::default());
        let arguments = test.arguments("Add a line", &self.arguments());
        let arguments = as_strs(&arguments);
        let stopped = test.during(&arguments, |child| {
            let begun = Instant::now();
            while running(&format!("-f\0{word}")).len() < 2 {
                assert!(begun.elapsed() < LONG, "no command ran");
                std::thread::sleep(Duration::from_millis(20));
            }
            signal(child, "TERM");
        });
        assert_eq!(stopped.code, 143, "{stopped}");
        assert_eq!(running(&word), [""; 0], "something was left running");
        assert!(test.git(["log", "--all", "-p"]).contains("+made"), "I2: what it had done is kept");
        self.is_counted(&model, &stopped);
        let outcome = test.run(&["resume", &stopped.id]).ended("merged", "approved", 0);
        self.is_counted(&model, &outcome);
    }

    /// I4: never less than the model charged, at the price of the cheapest model any client here works with.
    fn is_counted(&self, model: &Model, outcome: &Outcome) {
        let all =
            ["creator", "maker", "guardian"].map(|who| model.charged(who, &[Kind::Answered, Kind::Begun]));
        let charged: f64 =
            all.iter().map(|used| 0.3e-6 * used.input as f64 + 2.5e-6 * used.output as f64).sum();
        let counted = outcome.json["cost_usd"].as_f64().unwrap_or_default();
        assert!(counted >= charged, "{}: counted {counted}, charged {charged}\n{outcome}", self.spec);
    }

    fn name(&self) -> &'static str {
        self.spec.split(':').next().unwrap_or_default()
    }

    fn arguments(&self) -> [&'static str; 5] {
        ["--agent", self.spec, "--auto-merge", "--budget", "50"]
    }
}

/// With nobody to ask, a client may try for ever; it is overdue from its first word about it on.
fn overdue_when_it_complains(test: &Test, child: &mut Child) {
    let complains = || {
        let mut said = files_below(&test.repo.join(".archeflow/artifacts"));
        said.retain(|path| !path.ends_with("brief.md"));
        said.iter().any(|path| {
            let text = String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).to_lowercase();
            ["error", "refused", "connect", "retry"].iter().any(|word| text.contains(word))
        })
    };
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if complains() {
            std::fs::write(test.overdue(), "").unwrap();
            return;
        }
        assert!(begun.elapsed() < LONG, "it says nothing and does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

/// The limits a case runs under: how long whoever is overdue may be silent, and how often it is tried again.
struct Clocks {
    silence: u64,
    attempts: u32,
    busy: &'static str,
}

impl Default for Clocks {
    fn default() -> Clocks {
        Clocks { silence: 600, attempts: 0, busy: "[]" }
    }
}

fn say(text: &str) -> Reply {
    Reply::Say(text.to_owned())
}

/// A test whose user has just these clients, and a key that the model takes.
fn test_of(rows: &[&Row], address: &str, clocks: &Clocks) -> Test {
    let Clocks { silence, attempts, busy } = clocks;
    let test = Test::new().config(&format!(
        "retries:\n  attempts: {attempts}\n  failures_in_a_row: 20\n  busy_waits_seconds: {busy}\n\
         limits:\n  silence_seconds: {silence}\n  other_minutes: 1\n  maker_minutes: 1\n"
    ));
    let bin = test.base().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    for row in rows {
        std::os::unix::fs::symlink(fetched(row.program), bin.join(row.name())).unwrap();
    }
    let node = clients().join("node22/node_modules/node/bin");
    let mut path: OsString = bin.into();
    path.push(format!(":{}:/usr/local/bin:/usr/bin:/bin", node.display()));
    let variables = rows.iter().flat_map(|row| (row.model)(address));
    variables.fold(test.env("PATH", path), |test, (name, value)| test.env(name, value))
}

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clients")
}

/// The place of a program, which npm and Rust call after the machine in different ways.
fn fetched(program: &str) -> PathBuf {
    let (arch, triple) = if cfg!(target_arch = "aarch64") { ("arm64", "aarch64") } else { ("x64", "x86_64") };
    let place = clients().join(program.replace("{arch}", arch).replace("{triple}", triple));
    assert!(place.is_file(), "{} is not there: run `cargo xtask clients`", place.display());
    place
}

/// What is in the user's home is ours, or a cache: no client left settings, logins or conversations there.
fn left_alone(test: &Test) {
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(test.home().join(folder)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    for (folder, ours) in [
        (".", &[".cache", ".config", ".local"][..]),
        (".config", &["archeflow"]),
        (".local", &["share", "state"]),
        (".local/share", &["archeflow"]),
        (".local/state", &["archeflow"]),
    ] {
        let strange: Vec<_> =
            names(folder).into_iter().filter(|name| !ours.contains(&name.as_str())).collect();
        assert!(strange.is_empty(), "in {folder} of the user's home: {strange:?}");
    }
}

fn lines<'a>(outcome: &'a Outcome, kind: &str, who: &str) -> Vec<&'a Value> {
    outcome.journal.iter().filter(|line| line["type"] == kind && line["agent"] == who).collect()
}
