//! `doctor` and the choice of an agent, with stand-ins for clients: scripts that know their version and play a
//! recording of the real one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::harness::{Outcome, Test};

const NEW: [(&str, &str); 2] = [("claude", "2.1.325 (Claude Code)"), ("codex", "codex-cli 0.166.0")];
const OLD: [(&str, &str); 2] = [("claude", "2.0.1 (Claude Code)"), ("codex", "codex-cli 0.1.0")];

/// A user with nothing on the path but what is put there.
fn test() -> Test {
    let test = Test::new();
    let bin = test.base().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    test.env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
}

/// A stand-in that says this version, and otherwise plays a recording and ends with this code.
fn stand_in(test: &Test, name: &str, version: &str, recording: &str, code: i32) {
    let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../host/tests/captures");
    let play = captures.join(name).join(format!("{recording}.jsonl"));
    assert!(play.is_file(), "{}", play.display());
    let asked = test.base().join(format!("{name}-was-asked"));
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then\n  \
         touch \"${{CODEX_HOME:-${{CLAUDE_CONFIG_DIR:-${{GOOSE_PATH_ROOT:-$HOME}}}}}}/left-behind\"; echo '{version}'; exit 0\nfi\n\
         cat >/dev/null; pwd >> {}; cat {}; exit {code}\n",
        asked.display(),
        play.display()
    );
    let path = test.base().join("bin").join(name);
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn asked(test: &Test, name: &str) -> bool {
    test.base().join(format!("{name}-was-asked")).exists()
}

fn says(outcome: &Outcome, what: &str, mark: &str, words: &str) {
    let line = outcome.stdout.lines().find(|line| line.get(5..).is_some_and(|line| line.starts_with(what)));
    let line = line.unwrap_or_else(|| panic!("no line about {what}: {outcome}"));
    assert!(line.starts_with(mark) && line.contains(words), "{line}");
}

#[test]
fn issue_4_doctor_lists_versions_logins_and_the_default_agent() {
    let key = ("CODEX_API_KEY", "sk-test");
    let both_keys = [("ANTHROPIC_API_KEY", "sk-test"), key];
    let [claude, codex] = NEW;
    let [old, _] = OLD;
    for (what, there, keys, taken, because, code) in [
        ("nobody", &[][..], &[][..], None, "none is installed and no agent is configured", 30),
        ("both", &[claude, codex], &both_keys, Some("claude"), "key in ANTHROPIC_API_KEY", 0),
        ("one without a login", &[claude, codex], &[key], Some("codex"), "key in CODEX_API_KEY", 0),
        ("one too old", &[old, codex], &both_keys, Some("codex"), "0.166.0", 0),
        (
            "nobody signed in",
            &[claude, codex],
            &[],
            Some("claude"),
            "first that is installed, but no login",
            30,
        ),
        (
            "one that can't say",
            &[("claude", "no idea")],
            &both_keys,
            Some("claude"),
            "it says no version",
            30,
        ),
        ("only an old one", &[old], &both_keys, Some("claude"), "older than 2.1.325", 30),
    ] {
        let mut test = test();
        for (name, version) in there {
            stand_in(&test, name, version, "success", 0);
        }
        for (name, value) in keys {
            test = test.env(name, value);
        }
        let doctor = test.run(&["doctor"]);
        assert_eq!(doctor.code, code, "{what}: {doctor}");
        match taken {
            Some(taken) => says(&doctor, "without --agent", "ok", &format!("run takes {taken}: ")),
            None => assert!(!doctor.stdout.contains("without --agent"), "{doctor}"),
        }
        assert!(doctor.stdout.contains(because), "{what}: {doctor}");
        assert!(!doctor.stdout.contains("sk-test"), "keys are not shown");
        assert!(!test.home().join("left-behind").exists(), "{what}: the user's home is left alone");
        assert!(!asked(&test, "claude") && !asked(&test, "codex"), "{what}: nothing is spent unasked");
        if let Some(taken) = taken {
            // The stand-ins play recordings of this repository and leave marks in the user's home.
            let run = ["run", "Add a line", "--no-tests", "--unattended", "--json", "--unsafe-no-sandbox"];
            let run = test.run(&run);
            let told = format!("no agent was named; using {taken} for all archetypes: ");
            assert!(run.stderr.contains(&told) && run.stderr.contains(because), "{what}: {run}");
            assert!(asked(&test, taken), "{what}: {run}");
        }
    }
}

#[test]
fn c_12_doctor_is_red_when_nothing_can_run_and_says_what_was_tried() {
    // An agent that is configured can run, installed clients or not.
    let configured = test().config("agents:\n  default: cmd:echo hello\n");
    let doctor = configured.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor}");
    says(&doctor, "your agents", "ok", "cmd:echo hello");
    let missing = test().config("agents:\n  default: claude\n");
    assert_eq!(missing.run(&["doctor"]).code, 30);
    // Newer than tried is not tried.
    let newer = test().env("ANTHROPIC_API_KEY", "sk-test");
    stand_in(&newer, "claude", "2.2.0 (Claude Code)", "success", 0);
    let doctor = newer.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor}");
    says(&doctor, "claude", "ok", "newer than 2.1.325, the newest that was tried");
    assert!(!doctor.stdout.contains("supported"), "{doctor}");
    // A key without a provider is not enough for Goose.
    for (provider, code, mark) in [("", 30, "BAD"), ("openai", 0, "ok")] {
        let goose = test().env("OPENAI_API_KEY", "sk-test").env("GOOSE_PROVIDER", provider);
        stand_in(&goose, "goose", " 1.34.0", "success", 0);
        let doctor = goose.run(&["doctor"]);
        assert_eq!(doctor.code, code, "{doctor}");
        says(
            &doctor,
            "goose",
            mark,
            if code == 0 { "key in OPENAI_API_KEY" } else { "GOOSE_PROVIDER is not set" },
        );
    }
}

#[test]
fn issue_4_a_login_file_is_found_and_its_content_is_not_printed() {
    let test = test();
    stand_in(&test, "codex", NEW[1].1, "success", 0);
    let folder = test.home().join(".codex");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("auth.json"), "a secret").unwrap();
    let doctor = test.run(&["doctor"]);
    says(&doctor, "codex", "ok", "login in");
    assert!(doctor.stdout.contains(".codex/auth.json") && !doctor.stdout.contains("secret"), "{doctor}");
}

#[test]
fn d_16_a_trial_says_what_came_of_it() {
    for (name, recording, ends, code, fault, words) in [
        ("claude", "success", 0, 0, "", "answered after"),
        ("claude", "e401-r1", 1, 31, "auth", "To sign in, run `claude`"),
        ("claude", "e429-r1", 1, 31, "rate_limit", "is overloaded or limits requests"),
        ("claude", "refused", 1, 30, "network", "can't reach its provider"),
        ("claude", "sigint-wait", 0, 30, "exit", "without an answer"),
        ("codex", "success", 0, 0, "", "answered after"),
        ("codex", "401", 1, 31, "auth", "codex login"),
        ("codex", "maxtok", 1, 30, "garbled", "gave up"),
    ] {
        let test = test();
        let version = NEW.iter().find(|(known, _)| *known == name).unwrap().1;
        stand_in(&test, name, version, recording, ends);
        let test = test.env("ANTHROPIC_API_KEY", "test").env("CODEX_API_KEY", "test");
        let doctor = test.run(&["doctor", "--try"]);
        assert_eq!(doctor.code, code, "{name}/{recording}: {doctor}");
        says(&doctor, "tried", if code == 0 { "ok" } else { "BAD" }, words);
        assert!(doctor.stdout.contains(fault), "{name}/{recording}: {doctor}");
        let doctor = test.run(&["doctor", "--try", name, "--json"]);
        let tried = &doctor.json["tried"];
        assert_eq!((&tried["agent"], &tried["answered"]), (&name.into(), &(code == 0).into()), "{doctor}");
        assert_eq!(tried["fault"].as_str().unwrap_or_default(), fault, "{doctor}");
        if (name, recording) == ("claude", "success") {
            assert_eq!(tried["cost_usd"], 0.01736, "{doctor}");
        }
        let place = std::fs::read_to_string(test.base().join(format!("{name}-was-asked"))).unwrap();
        assert!(
            !place.contains("/repo") && !Path::new(place.lines().next().unwrap()).exists(),
            "a folder of its own"
        );
    }
}

#[test]
fn d_16_any_command_can_be_tried() {
    for (command, code, words) in [
        ("cmd:echo READY", 0, "answered"),
        ("cmd:true", 30, "printed nothing"),
        ("cmd:sh -c 'exit 3'", 30, "exit code 3"),
        ("cmd:sh -c 'exit 75'", 31, "busy"),
        ("claudette", 2, "unknown agent"),
    ] {
        let doctor = test().run(&["doctor", "--try", command]);
        assert_eq!(doctor.code, code, "{command}: {doctor}");
        assert!(format!("{}{}", doctor.stdout, doctor.stderr).contains(words), "{command}: {doctor}");
    }
    let none = test().run(&["doctor", "--try"]);
    assert_eq!(none.code, 2, "{none}");
}
