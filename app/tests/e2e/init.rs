//! Set up in one go (U-13): `init` in a terminal, a run that offers to trust, and what `doctor` says between them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::harness::{TASK, Test};
use crate::screen::Pty;

const SIZE: (u16, u16) = (160, 60);
const CONFIG: &str = ".archeflow/config.yaml";

/// A project whose files suggest commands, and an agent that answers.
fn test() -> Test {
    let test = Test::new().without_tests();
    test.file("Makefile", "test:\n\tsh tests/check.sh\n");
    test.commit("A Makefile");
    let agent = test.base().join("agents/answers.sh");
    fs::write(&agent, "cat >/dev/null; printf 'READY\\n\\nSTATUS: DONE\\n'\n").unwrap();
    fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).unwrap();
    test
}

fn agent(test: &Test) -> String {
    format!("cmd:sh {}", test.base().join("agents/answers.sh").display())
}

#[test]
fn u_13_four_questions_configure_try_commit_and_approve() {
    let test = test();
    let pty = Pty::start(&test, &["init"], SIZE);
    pty.see("1/4").see("to see that it answers").press(&format!("{}\n", agent(&test)));
    pty.see("answered after").see("2/4").press("\n");
    pty.see("3/4").see("the Makefile has a test target").see("[make test]").press("\n");
    pty.see("passed (").see("4/4").see("approve it?").press("\n");
    let (code, _) = pty.says("archeflow run \"<what is to be done>\"");
    assert_eq!(code, 0);
    assert_eq!(
        test.git(["log", "-1", "--format=%s %an", "--name-only"]),
        format!("Configure archeflow {}\n\n{CONFIG}", test.git(["config", "user.name"]))
    );
    assert!(test.read(CONFIG).contains("test_command: make test"), "{}", test.read(CONFIG));
    assert_eq!(test.git(["status", "--porcelain"]), "");
    let shown = test.run(&["trust", "--show"]);
    assert!(shown.stdout.contains("You approved exactly this already"), "{shown}");
    let doctor = test.run(&["doctor"]);
    assert_eq!(doctor.code, 0, "{doctor}");
    let estimate = test.run(&["run", TASK, "--estimate"]);
    assert!(estimate.code == 0 && estimate.stdout.contains("Tests:    make test"), "{estimate}");
}

#[test]
fn u_13_what_fails_is_explained_and_asked_again() {
    let test = test();
    let pty = Pty::start(&test, &["init"], SIZE);
    pty.see("to see that it answers").press("nobody\n");
    pty.see("unknown agent 'nobody'").press("cmd:/no/such/agent\n");
    pty.see("did not answer").see("Enter keeps it all the same").press("-\n");
    pty.see("2/4").press("echo a-dependency-is-missing; exit 1\n");
    pty.see("3/4").press("\n");
    pty.see("setup FAILED").see("base-setup.log").see("Change the commands?").press("\n");
    pty.see("2/4  Setup").press("-\n");
    pty.see("[make test]").press("sh tests/check.sh\n");
    pty.see("passed (").see("approve it?").press("w\n");
    let (code, _) = pty.says("archeflow trust");
    assert_eq!(code, 0);
    let config = test.read(CONFIG);
    assert!(
        config.contains("test_command: sh tests/check.sh") && !config.contains("\nsetup_command"),
        "{config}"
    );
    let doctor = test.run(&["doctor"]);
    assert!(doctor.code == 30 && doctor.stdout.contains("config.yaml is not committed"), "{doctor}");
    test.commit("Configure");
    let doctor = test.run(&["doctor"]);
    assert!(doctor.code == 30 && doctor.stdout.contains("run: archeflow trust"), "{doctor}");
}

#[test]
fn u_13_whoever_leaves_early_leaves_nothing_behind() {
    let test = test();
    for (presses, code) in
        [(&["-\n", "-\n", "-\n", "n\n"][..], 0), (&["\u{4}"], 130), (&["-\n", "\u{3}"], 130)]
    {
        let pty = Pty::start(&test, &["init"], SIZE);
        let mut questions = ["it answers", "2/4", "3/4", "approve it?"].into_iter();
        for press in presses {
            pty.see(questions.next().unwrap()).press(press);
        }
        let (ended, _) =
            pty.says(if code == 0 { "No configuration was written" } else { "no configuration was written" });
        assert_eq!(ended, code, "{presses:?}");
        assert_eq!(test.read(CONFIG), "", "{presses:?}");
        assert_eq!(test.git(["status", "--porcelain"]), "");
    }
}

#[test]
fn u_13_without_a_terminal_the_proposals_are_written() {
    let test = Test::new();
    test.file("package.json", r#"{"scripts":{"test":"node --test"}}"#).file("package-lock.json", "{}");
    let written = test.run(&["init"]);
    assert_eq!(written.code, 0, "{written}");
    let config = test.read(CONFIG);
    for said in ["test_command: npm test", "setup_command: npm ci", "there is a package-lock.json"] {
        assert!(config.contains(said), "{said}: {config}");
    }
    let again = test.run(&["init"]);
    assert!(again.code == 2 && again.stderr.contains("exists already"), "{again}");
}

#[test]
fn u_13_a_run_in_a_terminal_offers_to_trust() {
    for (answer, code, approved) in [("n\n", 20, false), ("y\n", 0, true)] {
        let test = Test::new().play("").without_tests();
        test.file(CONFIG, "test_command: sh tests/check.sh\n");
        test.commit("Configure");
        let agent = format!("script:{}", test.base().join("agents/agents.play").display());
        let pty = Pty::start(&test, &["run", TASK, "--agent", &agent, "--auto-merge"], SIZE);
        pty.see("test_command = sh tests/check.sh").see("Approve exactly this?").press(answer);
        let (ended, _) = pty.says(if approved { "merged" } else { "not approved" });
        assert_eq!(ended, code);
        let shown = test.run(&["trust", "--show"]);
        assert_eq!(shown.stdout.contains("You approved exactly this already"), approved, "{shown}");
    }
}

#[test]
fn u_16_an_estimate_starts_and_pays_nothing() {
    let test = Test::new().play("");
    let agent = test.base().join("agents/agents.play");
    let spec = format!("cmd:sh {}", agent.display());
    let told = test.run(&[
        "run",
        TASK,
        "--estimate",
        "--agent",
        &spec,
        "--test-command",
        "make test",
        "--workflow",
        "fast",
    ]);
    assert_eq!(told.code, 0, "{told}");
    for said in ["Workflow fast, at most 1 cycle", "maker", "Tests:    make test", "Nothing was started"] {
        assert!(told.stdout.contains(said), "{said}: {told}");
    }
    assert!(!test.repo.join(".archeflow/events").exists(), "{told}");
    let json = test.run(&["run", TASK, "--estimate", "--agent", &spec, "--json", "--workflow", "fast"]);
    assert!(json.json["most_usd"].as_f64().is_some_and(|most| most > 0.0), "{json}");
    // What a run would refuse is refused here.
    test.run(&["run", TASK, "--estimate", "--agent", "nobody"]).refused(2, &["`nobody` is not allowed"]);
}
