//! thousands of nested folders, made by agents, tests and commits.

use std::fs;

use serde_json::Value;

use crate::harness::{Outcome, Test, each};

/// Makes 4,000 folders in folders below its argument, longer than a path can be.
const DEEP: &str = "chdir $ARGV[0] or die; for (1..4000) { mkdir 'd'; chdir 'd' or die }\n";

fn with_deep_folders() -> Test {
    let test = Test::new();
    test.file("tests/deep.pl", DEEP);
    test.commit("Folders");
    test
}

fn made(first: &str) -> String {
    format!(
        "== maker ==\n{first}\nsh echo made >> src/app.txt; echo case >> tests/check_test.sh\ncommit Work\n\
         say <<END\n## Summary\n\nDone.\n\n## Tests\n\nall pass\n\nSTATUS: DONE\nEND\n\n"
    )
}

fn reviewed(first: &str) -> String {
    format!("== guardian ==\n{first}\nsay <<END\nVERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\nEND\n\n")
}

#[test]
fn r_09_m_c31_folders_nested_by_the_thousand_do_not_end_the_program() {
    let rows = [
        ("maker's copy", made("sh perl tests/deep.pl ."), ""),
        ("maker's folders", made("sh perl tests/deep.pl \"$TMPDIR\" && perl tests/deep.pl ~"), ""),
        ("reviewer", reviewed("sh perl tests/deep.pl \"$TMPDIR\" && perl tests/deep.pl ~"), ""),
        ("tests", String::new(), "perl tests/deep.pl . && perl tests/deep.pl \"$TMPDIR\" && "),
    ];
    each(rows, |(who, scenes, command)| {
        let test = with_deep_folders().play(&scenes).tests(&format!("{command}sh tests/check.sh"));
        let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        assert!(!test.repo.join("d").exists(), "{who}");
        if who == "maker's copy" {
            let change = &merged
                .events("agent.complete")
                .iter()
                .find(|one| one["archetype"] == "maker")
                .unwrap()["change"];
            told_everywhere(&test, &merged, &change["notes"]);
        }
        let again = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        assert!(again.code == 0, "{who}: {again}");
        let cleaned = test.run(&["gc"]);
        assert_eq!(cleaned.code, 0, "{who}: {cleaned}");
    });
}

/// What was left out of the work is on the screen, in the report, and in what programs read, in the words of the journal.
fn told_everywhere(test: &Test, ended: &Outcome, notes: &Value) {
    let note = notes[0].as_str().unwrap();
    assert!(note.contains("nested too deep"), "{ended}");
    let report = test.run(&["report", &ended.id, "--json"]);
    let status = test.run(&["status", &ended.id, "--json"]);
    for json in [&ended.json, &report.json, &status.json] {
        assert_eq!(json["change_notes"], *notes, "{ended}");
    }
    let shown = test.run(&["show", &ended.id]);
    let page = test.run(&["report", &ended.id]);
    for text in [&ended.stderr, &shown.stderr, &page.stdout] {
        assert!(text.lines().any(|line| line.contains(note)), "{note}\n{text}");
    }
}

/// A file in 1,500 folders, as git can keep it.
const TRACKED: &str = "i=$(echo hi | git hash-object -w --stdin); p=$(perl -e \"print 'a/' x 1500 . 'x'\"); \
    printf '100644 %s\\t%s\\n' $i $p | git update-index --index-info; git commit -qm Deep";

#[test]
fn r_09_m_c31_a_tracked_path_of_very_many_folders_is_refused_and_does_not_end_the_program() {
    let test = Test::new().play("");
    test.git(["checkout", "-q", "-b", "topic"]);
    test.sh(TRACKED);
    test.git(["symbolic-ref", "HEAD", "refs/heads/main"]);
    test.git(["read-tree", "HEAD"]);
    let looked = test.look(&["--branch", "topic", "--base", "main", "--reviewers", "guardian"]);
    assert!(looked.code != 0 && looked.stderr.contains("nested too deep"), "{looked}");
    let scenes = made(&format!("sh {TRACKED}"));
    let test = test.play(&scenes);
    let ended = test.go(&["--auto-merge"]);
    assert!([0, 13, 14, 20, 21, 30].contains(&ended.code), "{ended}");
    let resumed = test.run(&["resume", "last"]);
    assert!(resumed.code != 134 && fs::read_dir(&test.repo).is_ok(), "{resumed}");
}
