//! Commands that only look, and what reaches the terminal.

use serde_json::Value;

use crate::harness::{Test, review};

/// Without any agent `doctor` is red.
const AN_AGENT: &str = "agents:\n  default: cmd:true\n";

#[test]
fn every_command_that_shows_speaks_json_and_words() {
    let test = Test::new().play("").config(AN_AGENT);
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    let id = waiting.id.as_str();
    for (command, in_json, in_words) in [
        (&["list"][..], "runs", id),
        (&["status"], "run_id", id),
        (&["status", id], "run_id", "archeflow merge"),
        (&["show", id], "events", ""),
        (&["show", id, "--why"], "events", "AF-109"),
        (&["report", id], "findings", "AF-109"),
        (&["report", id, "--summary"], "findings", "awaiting_merge"),
        (&["dag", id], "nodes", "#1 run.start"),
        (&["doctor"], "", "git"),
        (&["config", "show"], "settings", "limits.silence_seconds"),
        (&["explain", "guardian"], "text", "guardian"),
        (&["explain", "standard"], "text", "skeptic"),
        (&["explain", "max_cycles"], "text", "cycle"),
        (&["explain", "14"], "text", "reviewers"),
        (&["explain", "pipeline"], "text", "sage"),
        (&["trust", "--show"], "guarded", ""),
        (&["init", "--dry-run"], "content", "test_command"),
    ] {
        let words = test.run(command);
        assert_eq!(words.code, 0, "{command:?}\n{words}");
        assert!(words.stdout.contains(in_words), "{command:?}\n{words}");
        let json = test.run(&[command, &["--json"]].concat());
        assert_eq!((json.code, json.stdout.lines().count()), (0, 1), "{command:?}\n{json}");
        let object: Value = serde_json::from_str(&json.stdout).unwrap_or_default();
        assert!(in_json.is_empty() || object.get(in_json).is_some(), "{command:?}: {}", json.stdout);
    }
    let status = test.run(&["status", id, "--json"]);
    assert_eq!((&status.json["status"], &status.json["exit_code"]), (&"awaiting_merge".into(), &10.into()));
    let shown = test.run(&["show", id, "--json"]);
    assert_eq!(shown.json["events"].as_array().map(Vec::len), Some(waiting.journal.len()));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(test.run(&["completions", shell]).stdout.contains("archeflow"), "{shell}");
    }
    assert!(test.run(&["--version"]).stdout.starts_with("archeflow "));
    assert!(test.run(&["--help"]).stdout.contains("archeflow demo"));
}

#[test]
fn looking_at_an_empty_repository_is_no_error() {
    let test = Test::new().config(AN_AGENT);
    for command in
        [&["list"][..], &["status"], &["list", "--json"], &["status", "--json"], &["trust"], &["doctor"]]
    {
        assert_eq!(test.run(command).code, 0, "{command:?}");
    }
    assert!(!test.repo.join(".archeflow").exists(), "looking writes nothing");
}

#[test]
fn json_is_one_object_also_when_refused() {
    let test = Test::new();
    assert_eq!(test.run(&["init", "--json"]).code, 0);
    for (command, code) in [
        (&["init", "--json"][..], 2),
        (&["show", "nowhere", "--json"], 2),
        (&["explain", "everything", "--json"], 2),
        (&["trust", "--revoke", "--json"], 0),
        (&["explain", "sage", "--eject", "--json"], 0),
    ] {
        let outcome = test.run(command);
        assert_eq!(outcome.code, code, "{command:?}\n{outcome}");
        assert_eq!(outcome.stdout.lines().count(), 1, "{command:?}\n{outcome}");
        assert!(
            serde_json::from_str::<Value>(&outcome.stdout).is_ok_and(|value| value.is_object()),
            "{outcome}"
        );
    }
}

#[test]
fn u_13_init_proposes_a_test_command_and_overwrites_nothing() {
    for (file, command) in [("Cargo.toml", "cargo test"), ("package.json", "npm test"), ("go.mod", "go test")]
    {
        let test = Test::new();
        test.file(file, "");
        assert!(test.run(&["init"]).stdout.contains(command));
        assert!(test.read(".archeflow/config.yaml").contains(command));
        test.run(&["init"]).refused(2, &["exists already"]);
    }
    // What init writes is what a run reads once committed and approved.
    let test = Test::new().play("").without_tests();
    assert_eq!(
        test.run(&["init", "--test-command", "sh tests/check.sh && echo 'it''s: fine # really'"]).code,
        0
    );
    test.commit("Configure");
    assert_eq!(test.run(&["trust", "--yes"]).code, 0);
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(
        merged.events("tests.start")[0]["command"],
        "sh tests/check.sh && echo 'it''s: fine # really'"
    );
}

#[test]
fn m_s12_hostile_text_never_reaches_the_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{202e}\r";
    let row = format!(
        "src/{evil}app.txt:3 | WARNING | relia{evil}bility | Line {evil} leaks | Fix {evil} | `src/app.txt:3`"
    );
    let scenes = review("guardian", "REJECTED", &[&row])
        .replace("VERDICT", &format!("Hello {evil}\n\nVERDICT"))
        + &format!(
            "== maker ==\ncomplain <<END\n{evil}\nEND\nsh echo x >> src/app.txt; echo y >> tests/check_test.sh\ncommit {evil}\nsay <<END\nDone {evil}\n\nSTATUS: DONE\nEND\n\n"
        );
    let test = Test::new().play(&scenes).tests("printf '\\033]0;owned\\007\\r\\302\\2331m'; false");
    let arguments = test.arguments(&format!("Add {evil} a line"), &["--auto-merge"]);
    let ended = test.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(!ended.id.is_empty(), "{ended}");
    // The auditor looks at both streams of every one of these.
    test.run(&["show", &ended.id]);
    test.run(&["show", &ended.id, "--why"]);
    test.run(&["status", &ended.id]);
    test.run(&["list"]);
    test.run(&["list", "--json"]);
    test.run(&["list", "--all"]);
    test.run(&["status"]);
    for more in [&[][..], &["--html"], &["--summary"], &["--json"], &["--dag"]] {
        test.run(&[&["report", ended.id.as_str()][..], more].concat());
    }
    for more in [&[][..], &["--dot"], &["--mermaid"], &["--json"]] {
        test.run(&[&["dag", ended.id.as_str()][..], more].concat());
    }
    test.run(&["merge", &ended.id]);
    test.run(&["resume", &format!("x{evil}")]).refused(2, &[]);
    test.run(&["explain", evil]).refused(2, &[]);
    test.run(&["run", "x", "--agent", &format!("wizard{evil}")]).refused(2, &[]);
    let progress = test.read(".archeflow/progress.md");
    assert!(!progress.contains('\u{1b}'), "{progress:?}");
}

#[test]
fn the_demo_shows_a_whole_run() {
    let test = Test::new().unaudited();
    let folder = test.base().join("demo");
    let demo = test.run(&["demo", "--quick", "--dir", folder.to_str().unwrap(), "--json"]);
    assert_eq!(
        (demo.code, &demo.json["status"], &demo.json["cycles"]),
        (0, &"merged".into(), &2.into()),
        "{demo}"
    );
    assert!(!demo.stderr.contains("failed") && !demo.stderr.contains("The program itself"), "{demo}");
}

#[test]
fn doctor_says_what_is_wrong() {
    let test = Test::empty("repo").unaudited();
    let sick = test.run(&["doctor"]);
    assert_eq!(sick.code, 30, "{sick}");
    assert!(sick.stdout.contains("BAD"), "{sick}");
}
