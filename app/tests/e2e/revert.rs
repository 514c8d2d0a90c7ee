//! `archeflow revert`: a landing is taken back by a tested commit, and later work stays.

use serde_json::Value;

use crate::harness::{Outcome, Test, each};

/// One landed run.
fn landed(test: &Test) -> Outcome {
    test.go(&["--auto-merge"]).ended("merged", "approved", 0)
}

fn tree(test: &Test, commit: &str) -> String {
    test.git(["rev-parse", &format!("{commit}^{{tree}}")])
}

#[test]
fn u_19_a_landing_is_taken_back_by_a_tested_commit() {
    for strategy in ["no-ff", "squash", "rebase"] {
        let test = Test::new().play("").config(&format!("git:\n  merge_strategy: {strategy}\n"));
        let base = test.git(["rev-parse", "main"]);
        let merged = landed(&test);
        let oid = test.git(["rev-parse", "main"]);
        // Work of the user since then stays.
        test.file("notes.txt", "mine\n");
        test.commit("My own");
        let shown = test.beside(&["revert", &merged.id, "--dry-run"]);
        let paths: Vec<&Value> =
            shown.json["changes"].as_array().unwrap().iter().map(|change| &change["path"]).collect();
        assert_eq!(paths, ["src/app.txt", "tests/check_test.sh"], "{strategy}\n{shown}");
        let tip = test.git(["rev-parse", "main"]);

        let reverted = test.run(&["revert", &merged.id]).ended("merged", "reverted", 0);
        let main = test.git(["rev-parse", "main"]);
        assert_eq!(reverted.json["reverted_oid"], main.as_str());
        assert_eq!(reverted.json["merged_oid"], oid.as_str(), "{strategy}");
        assert_eq!(test.git(["rev-parse", "main^"]), tip);
        assert_eq!(test.git(["status", "--porcelain"]), "");
        assert_eq!(test.git(["diff", "--name-only", &base, "main"]), "notes.txt", "{strategy}");
        assert!(!test.read("src/app.txt").contains("made in"), "{strategy}");
        let trailer = test.git(["log", "-1", "--format=%(trailers:key=Archeflow-Reverts,valueonly)"]);
        assert_eq!(trailer, oid);
        assert_eq!(test.git(["log", "-1", "--format=%s"]), "Revert \"Add a line to the app\"");

        // Everybody says so, and nothing opens it again.
        let listed = test.run(&["list"]).stdout;
        assert!(listed.contains("merged, reverted"), "{listed}");
        for command in ["status", "show"] {
            let shown = test.run(&[command, &merged.id]);
            assert!(
                [&shown.stdout, &shown.stderr].iter().any(|text| text.contains("Reverted:  20")),
                "{shown}"
            );
        }
        test.run(&["revert", &merged.id]).refused(2, &["was reverted already", "git revert"]);
        for command in [
            &["merge", &merged.id][..],
            &["discard", &merged.id],
            &["continue", &merged.id, "--one-more-cycle"],
            &["resume", &merged.id],
            &["run", "--start-from", "check", "--run", &merged.id],
        ] {
            test.run(command).refused(2, &["error:"]);
        }
    }
}

#[test]
fn u_19_what_can_t_be_reverted_is_refused_and_stays_merged() {
    // Not landed.
    let test = Test::new().play("");
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    test.run(&["revert", &waiting.id]).refused(2, &["has not landed"]);
    test.run(&["revert", "2026-01-01-none"]).refused(2, &["no run"]);

    // A later commit changed the same lines.
    let test = Test::new().play("");
    let merged = landed(&test);
    test.file("src/app.txt", test.read("src/app.txt").replace("made in", "rewritten in"));
    let tip = test.commit("Over it");
    let shown = test.beside(&["revert", &merged.id, "--dry-run"]);
    assert_eq!((shown.code, &shown.json["conflicts"][0]), (12, &Value::from("src/app.txt")), "{shown}");
    let refused = test.run(&["revert", &merged.id]).refused(12, &["src/app.txt", "later commits"]);
    assert_eq!(refused.json["reason"], "merge_conflict");
    assert_eq!(test.git(["rev-parse", "main"]), tip);
    let status = test.beside(&["status", &merged.id]);
    assert_eq!((&status.json["status"], &status.json["reason"]), (&"merged".into(), &"approved".into()));

    // Without the change the tests fail.
    let test = Test::new().play("");
    let merged = landed(&test);
    test.file("tests/check.sh", "grep -q made src/app.txt || { echo 'test_made FAILED'; exit 1; }\n");
    let tip = test.commit("Need it");
    let refused = test.run(&["revert", &merged.id]).refused(13, &["test_made FAILED"]);
    assert_eq!(refused.json["reason"], "tests_failed");
    assert_eq!(test.git(["rev-parse", "main"]), tip);
    // It can be tried again once they pass.
    test.file("tests/check.sh", "true\n");
    test.commit("Need it no more");
    test.run(&["revert", &merged.id]).ended("merged", "reverted", 0);

    // The user has changes on the same paths.
    let test = Test::new().play("");
    let merged = landed(&test);
    test.file("src/app.txt", "half done\n");
    test.run(&["revert", &merged.id]).refused(10, &["src/app.txt"]);
    assert_eq!(test.read("src/app.txt"), "half done\n");
    test.git(["checkout", "-q", "src/app.txt"]);
    test.run(&["revert", &merged.id]).ended("merged", "reverted", 0);
}

#[test]
fn u_19_killed_anywhere_a_revert_is_completed_or_was_never_begun() {
    let mut points: Vec<String> =
        (1..=6).flat_map(|n| [format!("recorded:{n}"), format!("performed:{n}")]).collect();
    points.extend(["revert.built:1", "tests.ran:1", "land.begun:1", "land.prepared:1"].map(str::to_owned));
    points.extend(["land.moved:1", "land.committed:1", "projected:4", "observed:4"].map(str::to_owned));
    each(points, |point| {
        let test = Test::new().play("");
        let base = tree(&test, "main");
        let merged = landed(&test);
        let tip = test.git(["rev-parse", "main"]);
        let test = test.env("ARCHEFLOW_FAILPOINT", &point);
        let first = test.run(&["revert", &merged.id]);
        let test = test.env("ARCHEFLOW_FAILPOINT", "");
        let again = test.run(&["revert", &merged.id]);
        // Killed after the last line, there is nothing left to do, and that is said.
        if !(again.code == 2 && again.stderr.contains("was reverted already")) {
            again.ended("merged", "reverted", 0);
        }
        assert_eq!(tree(&test, "main"), base, "{point}\n{first}");
        assert_eq!(test.git(["rev-parse", "main^"]), tip, "{point}: not one commit on top");
        assert_eq!(test.git(["status", "--porcelain"]), "", "{point}");
    });
}
