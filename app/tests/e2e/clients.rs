//! Real clients against a scripted model: whole runs through the front door. They need the clients that `cargo xtask
//! clients` fetches into `target/clients`, so they are asked for by name:
//!
//! ```sh
//! cargo xtask clients && cargo test -p archeflow --test e2e clients -- --ignored
//! ```

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Outcome, Test, signal};
use crate::model::{Model, Reply};

const PROPOSAL: &str = "## Architecture\n\nA line. Rationale: asked for.\n\n## Files\n\n- `src/app.txt`\n- `tests/app_test.sh`\n\n\
    ## Alternatives\n\n- none: rejected\n\n## Test strategy\n\n- the line is there\n\n## Confidence\n\n\
    | Axis | Score |\n|---|---|\n| Task understanding | 0.95 |\n| Solution completeness | 0.9 |\n\
    | Risk coverage | 0.9 |\n\n## Risks\n\n- None.\n\nSTATUS: DONE\n";
const MADE: &str = "I added the line and its test.\n\nSTATUS: DONE\n";
const APPROVED: &str = "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n";
const WORK: &str = "echo made >> src/app.txt; echo 'grep -q made src/app.txt' > tests/app_test.sh";
const EVIL: &str = "echo evil > evil.txt; echo evil > src/evil.txt";

/// A client as the tests start it: its spec, its program below `target/clients`, and how it is told to run a command.
struct Row {
    spec: &'static str,
    program: &'static str,
    shell: fn(&str) -> Reply,
    /// How it would write a file, if it could.
    write: fn() -> Reply,
}

const ROWS: [Row; 2] = [
    Row {
        spec: "claude",
        program: "claude/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
        shell: |command| Reply::Use("Bash", json!({"command": command, "description": "work"})),
        write: || Reply::Use("Write", json!({"file_path": "evil.txt", "content": "evil"})),
    },
    Row {
        spec: "codex:gpt-5.5",
        program: "codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        shell: |command| Reply::Use("exec_command", json!({"cmd": command})),
        write: || Reply::Use("exec_command", json!({"cmd": EVIL})),
    },
];

fn say(text: &str) -> Reply {
    Reply::Say(text.to_owned())
}

/// A test whose user has just this client, and a key that the model takes.
fn test(row: &Row, model: &Model) -> Test {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clients").join(row.program);
    assert!(place.is_file(), "{} is not there: run `cargo xtask clients`", place.display());
    let test = Test::new().config("retries:\n  busy_waits_seconds: [0]\nlimits:\n  silence_seconds: 5\n");
    let bin = test.base().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(place, bin.join(row.spec.split(':').next().unwrap())).unwrap();
    let mut path: OsString = bin.into();
    path.push(":/usr/local/bin:/usr/bin:/bin");
    test.env("PATH", path)
        .env("ANTHROPIC_API_KEY", "test")
        .env("ANTHROPIC_BASE_URL", &model.address)
        .env("CODEX_API_KEY", "test")
        .env("OPENAI_BASE_URL", format!("{}/v1", model.address))
}

fn lines<'a>(outcome: &'a Outcome, kind: &str, who: &str) -> Vec<&'a Value> {
    outcome.journal.iter().filter(|line| line["type"] == kind && line["agent"] == who).collect()
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_a_whole_run_lands_and_a_reviewer_can_write_nothing() {
    for row in ROWS {
        let model = Model::new(&[
            ("creator", &[say(PROPOSAL)]),
            ("maker", &[(row.shell)(WORK), say(MADE)]),
            ("guardian", &[(row.write)(), (row.shell)(EVIL), say(APPROVED)]),
        ]);
        let test = test(&row, &model);
        let outcome = test.go(&["--agent", row.spec, "--auto-merge"]).ended("merged", "approved", 0);
        assert!(test.read("src/app.txt").ends_with("made\n"), "{outcome}");
        assert!(!test.repo.join("evil.txt").exists() && !test.repo.join("src/evil.txt").exists());
        assert_eq!(model.asked_by("guardian").len(), 3, "{}: it did try", row.spec);
        for who in ["creator", "maker", "guardian"] {
            let complete = lines(&outcome, "agent.complete", who);
            let [complete] = complete.as_slice() else { panic!("{who}: {outcome}") };
            let asked = model.asked_by(who).len() as u64;
            assert_eq!(
                complete["data"]["tokens"],
                json!({"input": 100 * asked, "output": 20 * asked}),
                "{who}"
            );
            assert!(complete["data"]["session"]["id"].is_string(), "{who}");
            assert!(
                !complete["data"]["notes"].to_string().contains("read-only"),
                "{who} changed its checkout"
            );
        }
        for folder in [".claude", ".claude.json", ".codex"] {
            assert!(!test.home().join(folder).exists(), "{folder} appeared in the user's home");
        }
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn af_138_a_correction_reaches_the_same_session() {
    for row in ROWS {
        let model = Model::new(&[
            ("creator", &[say(PROPOSAL)]),
            (
                "maker",
                &[
                    (row.shell)(&format!("{WORK}; echo stray > src/stray.txt")),
                    say(MADE),
                    (row.shell)("rm src/stray.txt"),
                    say(MADE),
                ],
            ),
            ("guardian", &[say(APPROVED)]),
        ]);
        let test = test(&row, &model);
        let outcome = test.go(&["--agent", row.spec, "--auto-merge"]).ended("merged", "approved", 0);
        let complete = lines(&outcome, "agent.complete", "maker");
        let [first, corrected] = complete.as_slice() else { panic!("{outcome}") };
        let starts = lines(&outcome, "agent.start", "maker");
        assert_eq!(starts[1]["data"]["purpose"], "correct");
        assert_eq!(starts[1]["data"]["resumes"], first["data"]["session"], "{}", row.spec);
        assert_eq!(first["data"]["session"]["id"], corrected["data"]["session"]["id"], "{}", row.spec);
        assert_eq!(
            corrected["data"]["tokens"],
            json!({"input": 200, "output": 40}),
            "{}: its own only",
            row.spec
        );
        let last = model.asked_by("maker").pop().unwrap().to_string();
        assert!(last.contains("stray > src/stray.txt") && last.contains("# Correction"), "one conversation");
        assert!(!test.repo.join("src/stray.txt").exists());
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_a_limit_that_passes_is_waited_for() {
    for row in ROWS {
        let limited = vec![Reply::Status(429); 5];
        let replies = [limited, vec![say(PROPOSAL)]].concat();
        let model = Model::new(&[
            ("creator", &replies),
            ("maker", &[(row.shell)(WORK), say(MADE)]),
            ("guardian", &[say(APPROVED)]),
        ]);
        let test = test(&row, &model).config("retries:\n  busy_waits_seconds: [0, 0, 0, 0, 0]\n");
        let outcome = test.go(&["--agent", row.spec, "--auto-merge"]).ended("merged", "approved", 0);
        let failed = lines(&outcome, "agent.failed", "creator");
        assert!(
            !failed.is_empty() && failed.iter().all(|line| line["data"]["kind"] == "rate_limit"),
            "{outcome}"
        );
        assert_eq!(failed[0]["data"]["estimated_cost_usd"], 0.0, "what never began has cost nothing");
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_faults_of_a_provider_are_told_apart_within_our_clocks() {
    for row in ROWS {
        for (what, replies, (status, reason, code), kind) in [
            ("401", vec![Reply::Status(401)], ("stopped", "not_signed_in", 31), "auth"),
            ("429 for ever", vec![Reply::Status(429)], ("stopped", "provider_busy", 31), "rate_limit"),
            ("500 for ever", vec![Reply::Status(500)], ("stopped", "provider_busy", 31), "overload"),
            ("too long", vec![Reply::TooLong], ("failed", "agent_failures", 30), "context_too_long"),
            ("hangs", vec![Reply::Hang], ("failed", "agent_failures", 30), "silence"),
        ] {
            let began = Instant::now();
            let model = Model::new(&[("creator", &replies)]);
            let outcome = test(&row, &model).go(&["--agent", row.spec, "--auto-merge"]);
            let said = (outcome.json["status"].as_str(), outcome.json["reason"].as_str(), outcome.code);
            assert_eq!(said, (Some(status), Some(reason), code), "{} {what}: {outcome}", row.spec);
            let ends = outcome.journal.iter().filter(|line| line["data"]["kind"] == kind);
            assert!(ends.count() > 0, "{} {what}: {outcome}", row.spec);
            assert!(began.elapsed() < Duration::from_secs(60), "{} {what}: {:?}", row.spec, began.elapsed());
        }
    }
}

/// Whether any process on the machine has this word in its command line.
fn alive(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines.into_iter().any(|line| String::from_utf8_lossy(&line).contains(word))
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_a_stopped_client_leaves_nothing_running() {
    for row in ROWS {
        let word = format!("left-behind-{}-{}", std::process::id(), row.spec.len());
        let model = Model::new(&[
            ("creator", &[say(PROPOSAL)]),
            (
                "maker",
                &[
                    (row.shell)(&format!("{WORK}; touch {word}; setsid tail -f {word} & tail -f {word}")),
                    (row.shell)(WORK),
                    say(MADE),
                ],
            ),
            ("guardian", &[say(APPROVED)]),
        ]);
        let test = test(&row, &model);
        let arguments = test.arguments("Add a line", &["--agent", row.spec, "--auto-merge"]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let stopped = test.during(&arguments, |child| {
            let begun = Instant::now();
            while !alive(&format!("-f\0{word}")) {
                assert!(begun.elapsed() < Duration::from_secs(60), "{}: no command ran", row.spec);
                std::thread::sleep(Duration::from_millis(20));
            }
            signal(child, "TERM");
        });
        assert_eq!(stopped.code, 143, "{stopped}");
        assert!(!alive(&word), "{}: something was left running", row.spec);
        assert!(test.git(["log", "--all", "-p"]).contains("+made"), "I2: what it had done is kept");
        test.run(&["resume", &stopped.id]).ended("merged", "approved", 0);
    }
}
