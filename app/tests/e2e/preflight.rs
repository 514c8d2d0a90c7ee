//! Before the first agent is paid: the setup and test commands on the base commit (U-10).

use std::fs;

use serde_json::json;

use crate::harness::Test;

/// Prints what cargo's test runner prints: the tests that fail are named by files in `red/`, and one always passes.
const RUNNER: &str = "bad=0; for file in red/*; do [ -e \"$file\" ] || continue; \
                      echo \"test ${file#red/} ... FAILED\"; bad=1; done; echo 'test others ... ok'; exit $bad";

#[test]
fn u_10_a_missing_test_command_is_found_before_any_agent_is_paid() {
    let test = Test::new().play("").tests("no-such-command --all");
    let ended = test.go(&["--auto-merge"]).ended("failed", "test_command_broken", 30);
    assert_eq!(ended.events("agent.start").len(), 0, "{ended}");
    for said in ["no-such-command", "[Base]", "Testing before any change", "base-tests.log", "--test-command"]
    {
        assert!(ended.stderr.contains(said), "{said}\n{ended}");
    }
}

#[test]
fn u_10_a_red_base_is_said_and_waits_for_an_answer() {
    let test = Test::new().play("").tests(RUNNER);
    fs::create_dir(test.repo.join("red")).unwrap();
    fs::write(test.repo.join("red/adds"), "").unwrap();
    test.git(["add", "-A"]);
    test.git(["commit", "-qm", "A test fails"]);
    let waits = test.go(&["--auto-merge", "--unattended"]).ended("awaiting_answer", "red_base", 13);
    assert_eq!(waits.events("agent.start").len(), 0, "{waits}");
    assert_eq!(waits.events("preflight.done")[0]["tests"]["failing"], json!(["adds"]));
    let answer = format!("archeflow answer {}", waits.id);
    assert!(waits.stderr.contains(&answer) && waits.stderr.contains("adds"), "{waits}");
    test.run(&["answer", &waits.id, "no", "--unattended"]).ended("stopped", "red_base", 13);
    let again = test.go(&["--auto-merge", "--unattended"]).ended("awaiting_answer", "red_base", 13);
    let merged = test.run(&["answer", &again.id, "yes", "--unattended", "--auto-merge"]);
    let merged = merged.ended("merged", "approved", 0);
    assert!(merged.stderr.contains("failing") || merged.stderr.contains("FAILED"), "{merged}");
    let why = test.run(&["show", &merged.id, "--why"]);
    assert!(why.stdout.contains("U-10"), "{why}");
}

#[test]
fn u_10_a_red_base_that_is_allowed_asks_only_that_no_test_is_added() {
    let maker = |name: &str| {
        format!(
            "== maker ==\nsh mkdir -p red; touch red/{name}; echo x >> src/app.txt; echo y >> tests/check_test.sh\n\
             commit Do it\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n"
        )
    };
    for (adds, status, reason, code) in
        [("adds", "merged", "approved", 0), ("divides", "stopped", "tests_failed", 13)]
    {
        let test = Test::new().unshadowed().play(&maker(adds)).tests(RUNNER);
        fs::create_dir(test.repo.join("red")).unwrap();
        fs::write(test.repo.join("red/adds"), "").unwrap();
        test.git(["add", "-A"]);
        test.git(["commit", "-qm", "A test fails"]);
        let ended = test.go(&["--auto-merge", "--allow-red-base"]).ended(status, reason, code);
        let added = ended.stderr.contains("1 test that did not fail before");
        assert_eq!(added, adds == "divides", "{ended}");
    }
}

#[test]
fn u_10_a_tree_that_passed_is_not_tested_again_before_the_next_run() {
    let test = Test::new().play("").tests("echo x >> {base}/count");
    let tests = || fs::read_to_string(test.base().join("count")).unwrap().lines().count();
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(tests(), 2, "the base, and what lands");
    let second = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(tests(), 4, "what landed is known to pass; what lands now, and the tests from before on it");
    assert_eq!(second.events("preflight.done")[0]["tests"]["reused"], true);
}

/// A run that ends at the first failure leaves tests out, which may fail, too.
#[test]
fn r_10_a_red_base_is_no_excuse_for_tests_that_did_not_run() {
    let runner = |ends: &str| {
        format!(
            "bad=0; for file in cases/*; do name=${{file#cases/}}; if sh $file; then echo \"test $name ... ok\"; else \
             echo \"test $name ... FAILED\"; bad=1; {ends}; fi; done; exit $bad"
        )
    };
    let maker = |deed: &str| {
        format!(
            "== maker ==\nsh {deed}; echo y >> tests/check_test.sh\ncommit Do it\nsay <<END\nDone.\n\n\
             STATUS: DONE\nEND\n\n"
        )
    };
    let breaks = "echo broken > src/app.txt";
    let hides = "echo broken > src/app.txt; git mv cases/b cases/x; echo exit 0 > cases/x";
    let (names_none, misses) = ("does not name the tests that passed", "did not run: b");
    for (what, ends, deed, status, reason, says) in [
        ("it goes on", ":", breaks, "stopped", "tests_failed", "b"),
        ("it ends at the first failure", "exit 1", breaks, "awaiting_merge", "red_base", names_none),
        ("it has another instead of one", ":", hides, "awaiting_merge", "red_base", misses),
    ] {
        let test = Test::new().unshadowed();
        test.file("cases/a", "exit 1\n").file("cases/b", "grep -q '^line 1$' src/app.txt\n");
        test.file("cases/c", "exit 0\n");
        test.commit("A test fails");
        let test = test.play(&maker(deed)).tests(&runner(ends));
        let ended = test.go(&["--auto-merge", "--allow-red-base", "--unattended"]);
        let end = (&ended.json["status"], &ended.json["reason"]);
        assert_eq!(end, (&json!(status), &json!(reason)), "{what}\n{ended}");
        assert!(ended.stderr.contains(says), "{what}\n{ended}");
        assert!(test.git(["show", "main:src/app.txt"]).contains("line 1\n"), "{what}: it landed");
    }
}

#[test]
fn u_10_a_setup_is_made_once_per_tree_and_shown_to_every_checkout() {
    let maker = "== maker ==\nsh cat deps/tool > seen.txt; ! echo x > deps/other\n\
                 sh echo x >> src/app.txt; echo y >> tests/check_test.sh; rm seen.txt\n\
                 commit Do it\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().unshadowed().play(maker).tests("grep -q made deps/tool && ! echo x > deps/x");
    fs::write(test.repo.join("package-lock.json"), "{}\n").unwrap();
    test.git(["add", "-A"]);
    test.git(["commit", "-qm", "A lock file"]);
    let setup = ["--auto-merge", "--setup-command", "mkdir deps && echo made by $PWD > deps/tool"];
    let merged = test.go(&setup).ended("merged", "approved", 0);
    let done = &merged.events("preflight.done")[0]["setup"];
    assert_eq!((&done["result"], &done["reused"]), (&json!("passed"), &json!(null)), "{merged}");
    let again = test.go(&setup).ended("merged", "approved", 0);
    let setup_again = &again.events("preflight.done")[0]["setup"];
    assert_eq!(setup_again["reused"], true, "{again}");
    let landed = &merged.events("run.merged")[0]["commit"];
    assert_eq!(&setup_again["from"], landed, "the journal says which commit was set up\n{again}");
    assert_eq!(test.git(["status", "--porcelain"]), "");
    assert_eq!(test.git(["ls-files", "deps"]), "", "it is no part of the change");
    fs::write(test.repo.join("package-lock.json"), "{\"a\": 1}\n").unwrap();
    test.git(["commit", "-qam", "Another lock file"]);
    let other = test.go(&setup).ended("merged", "approved", 0);
    assert_eq!(other.events("preflight.done")[0]["setup"]["reused"], json!(null), "{other}");
}

/// A package that is installed from the checkout itself must be the one under test, not the one that was set up.
#[test]
fn u_10_what_a_setup_links_to_the_checkout_is_the_checkout_under_test() {
    let maker = "== maker ==\nsh echo broken > src/app.txt; echo y >> tests/check_test.sh\n\
                 commit Do it\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    let test =
        Test::new().unshadowed().play(maker).tests("! grep -q broken \"$(cat deps/installed)/src/app.txt\"");
    let setup = ["--auto-merge", "--setup-command", "mkdir deps && pwd > deps/installed"];
    test.go(&setup).ended("stopped", "tests_failed", 13);
}

#[test]
fn u_10_a_setup_that_fails_says_what_and_where() {
    let test = Test::new().play("").tests("true");
    let failed = test.go(&["--setup-command", "echo 'error: no such package'; exit 3"]);
    let failed = failed.ended("failed", "setup_failed", 30);
    assert_eq!(failed.events("agent.start").len(), 0, "{failed}");
    for said in ["error: no such package", "base-setup.log"] {
        assert!(failed.stderr.contains(said), "{said}\n{failed}");
    }
}
