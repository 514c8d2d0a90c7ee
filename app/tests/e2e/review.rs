//! `archeflow review` through the front door. The auditor behind every start proves that nothing of the user's is
//! touched; what is said about findings is in the corpus.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::harness::{Outcome, Test, each, review, says};
use crate::shadows::falls;

/// The finding every row here is about.
const FINDING: &str =
    "src/app.txt:2 | CRITICAL | reliability | The second line is wrong. | Put it right. | `line two`";

fn test() -> Test {
    Test::new().play(&review("guardian", "REJECTED", &[FINDING]))
}

/// The second line is changed, and nothing else.
fn edit(test: &Test) -> &Test {
    let text = test.read("src/app.txt").replace("line 2\n", "line two\n");
    test.file("src/app.txt", text)
}

fn json(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|error| panic!("{error}\n{outcome}"))
}

struct Row {
    name: &'static str,
    make: fn(&Test),
    args: &'static [&'static str],
    /// Stands in the diff the Guardian is shown.
    sees: &'static [&'static str],
    never: &'static [&'static str],
}

/// A stand-in for the forge's client: an account would cost money.
const FORGE: &str = r#"#!/bin/sh
case "$1 $2" in
"pr view") cat "$HOME/pr.json" ;;
"pr diff") cat "$HOME/pr.diff" ;;
*) exit 1 ;;
esac
"#;

#[test]
fn issue_5_every_subject_is_reviewed() {
    let rows = [
        Row {
            name: "working tree",
            make: |test| {
                edit(test).file("new.txt", "untracked words\n");
                test.file("README.md", "# The staged app\n");
                test.git(["add", "README.md"]);
            },
            args: &[],
            sees: &["+line two", "+untracked words", "+# The staged app"],
            never: &[],
        },
        Row {
            name: "staged",
            make: |test| {
                edit(test);
                test.git(["add", "-A"]);
                test.file("README.md", "# Not staged\n");
            },
            args: &["--staged"],
            sees: &["+line two"],
            never: &["Not staged"],
        },
        Row {
            name: "branch",
            make: |test| {
                test.git(["checkout", "-q", "-b", "topic"]);
                edit(test).commit("Change the second line");
                test.git(["checkout", "-q", "main"]);
                test.file("README.md", "# Moved on\n").commit("Elsewhere");
            },
            args: &["--branch", "topic", "--base", "main"],
            sees: &["+line two"],
            never: &["Moved on"],
        },
        Row {
            name: "one commit",
            make: |test| {
                edit(test).commit("Change the second line");
                test.file("README.md", "# Later\n").commit("Later");
            },
            args: &["--commit", "HEAD~1"],
            sees: &["+line two"],
            never: &["# Later"],
        },
        Row {
            name: "commits",
            make: |test| {
                edit(test).commit("Change the second line");
                test.file("README.md", "# Later\n").commit("Later");
            },
            args: &["--commit", "HEAD~2..HEAD"],
            sees: &["+line two", "+# Later"],
            never: &[],
        },
        Row {
            name: "patch",
            make: |test| {
                edit(test);
                let patch = test.git(["diff"]);
                test.git(["checkout", "-q", "."]);
                fs::write(test.base().join("agents/some.patch"), patch + "\n").unwrap();
            },
            args: &["--patch", "../agents/some.patch"],
            sees: &["+line two"],
            never: &[],
        },
        Row {
            name: "pull request",
            make: |test| {
                let base = test.git(["rev-parse", "HEAD"]);
                edit(test);
                fs::write(test.home().join("pr.diff"), test.git(["diff"]) + "\n").unwrap();
                test.git(["checkout", "-q", "."]);
                let told = serde_json::json!({
                    "number": 7, "title": "Second line", "body": "As agreed.", "baseRefOid": base.trim(),
                    "headRefOid": "1234567890123456789012345678901234567890", "baseRefName": "main",
                    "headRefName": "topic",
                });
                fs::write(test.home().join("pr.json"), told.to_string()).unwrap();
            },
            args: &["--pr", "7"],
            sees: &["+line two"],
            never: &[],
        },
    ];
    each(rows, |row| {
        let test = test();
        let forge = test.base().join("agents/gh");
        fs::write(&forge, FORGE).unwrap();
        fs::set_permissions(&forge, fs::Permissions::from_mode(0o755)).unwrap();
        let path = format!("{}:{}", test.base().join("agents").display(), std::env::var("PATH").unwrap());
        let test = test.env("PATH", path);
        (row.make)(&test);
        let outcome = test.look(&[row.args, &["--format", "json"]].concat());
        assert_eq!(outcome.code, 0, "{}\n{outcome}", row.name);
        let found = json(&outcome);
        assert_eq!(found["findings"].as_array().map(Vec::len), Some(1), "{}\n{outcome}", row.name);
        assert_eq!(found["findings"][0]["severity"], "CRITICAL", "{}\n{outcome}", row.name);
        let brief = outcome.briefs("guardian").remove(0);
        for words in row.sees {
            assert!(brief.contains(words), "{}: '{words}' is not shown\n{brief}", row.name);
        }
        for words in row.never {
            assert!(!brief.contains(words), "{}: '{words}' is shown\n{brief}", row.name);
        }
        assert_eq!(outcome.sent(), ["guardian/work"], "{}", row.name);
    });
}

#[test]
fn af_003_nothing_of_a_review_lands() {
    let test = test();
    edit(&test);
    let outcome = test.look(&[]);
    let id = outcome.id;
    test.run(&["merge", &id]).refused(2, &["is a review"]);
    test.run(&["continue", &id, "--one-more-cycle"]).refused(2, &["has ended (reviewed)"]);
    test.run(&["resume", &id]).refused(2, &["has ended (reviewed)"]);
    test.run(&["run", "--start-from", "act", "--run", &id, "x"]).refused(2, &["is needed"]);
}

#[test]
fn d_16_a_review_fails_only_where_it_was_asked_to() {
    let rows: [(&str, &[&str], i32); 6] = [
        ("CRITICAL", &[], 0),
        ("CRITICAL", &["--fail-on", "critical"], 14),
        ("WARNING", &["--fail-on", "critical"], 0),
        ("WARNING", &["--fail-on", "warning"], 14),
        ("INFO", &["--fail-on", "warning"], 0),
        ("CRITICAL", &["--fail-on", "info"], 2),
    ];
    each(rows, |(severity, args, code)| {
        let row = FINDING.replace("CRITICAL", severity);
        let verdict = if severity == "INFO" { "APPROVED" } else { "REJECTED" };
        let test = Test::new().play(&review("guardian", verdict, &[&row]));
        edit(&test);
        let outcome = test.look(args);
        assert_eq!(outcome.code, code, "{severity} {args:?}\n{outcome}");
    });
}

#[test]
fn d_14_reviewers_see_what_they_may_and_all_look_at_once() {
    let test =
        Test::new().play(&says("*", "VERDICT: APPROVED\nFINDINGS: 0\n\nMARKER-OF-ANOTHER\n\nSTATUS: DONE"));
    test.git(["checkout", "-q", "-b", "topic"]);
    edit(&test).commit("Say what the second line is");
    let outcome = test.look(&["--branch", "topic", "--base", "main", "--workflow", "thorough"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    let mut sent = outcome.sent();
    sent.sort();
    assert_eq!(sent, ["guardian/work", "sage/work", "skeptic/work", "trickster/work"]);
    for (who, diff, about) in [
        ("guardian", true, false),
        ("skeptic", false, true),
        ("sage", true, true),
        ("trickster", true, false),
    ] {
        let brief = outcome.briefs(who).remove(0);
        assert_eq!(brief.contains("+line two"), diff, "{who}\n{brief}");
        assert_eq!(brief.contains("Say what the second line is"), about, "{who}\n{brief}");
        assert!(!brief.contains("MARKER-OF-ANOTHER"), "{who}");
    }
}

/// Whoever sees nothing of the diff has nothing new to look at in the next part of it.
#[test]
fn d_14_who_sees_no_diff_is_asked_once() {
    let answer = "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE";
    let test = Test::new().play(&says("*", answer)).config("review:\n  part_bytes: 8192\n");
    let line = |n: usize| format!("{n} and so on and so forth until it is long enough\n");
    test.file("long.txt", (0..400).map(line).collect::<String>());
    let outcome = test.look(&["--reviewers", "guardian,skeptic", "--fail-on", "warning", "--format", "json"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    let parts = outcome.events("review.opened")[0]["parts"].as_array().map_or(0, Vec::len);
    assert!(parts > 1, "{outcome}");
    assert_eq!((outcome.times("guardian"), outcome.times("skeptic")), (parts, 1), "{outcome}");
    let plan = outcome.artifact("plan.md");
    assert!(
        plan.contains("| guardian | every part |") && plan.contains("| skeptic | what the change"),
        "{plan}"
    );
    let only = test.look(&["--reviewers", "skeptic"]);
    assert_eq!((only.code, only.times("skeptic")), (0, 1), "{only}");
}

/// A change can't bring along the rules it is judged by.
#[test]
fn r4_the_rules_are_those_of_the_base() {
    let test = test();
    test.git(["checkout", "-q", "-b", "topic"]);
    edit(&test).file(".archeflow/config.yaml", "nonsense: true\n");
    test.file(".archeflow/archetypes/guardian.md", "# Nothing to see\n");
    test.file(".archeflow/baseline.json", "no json at all");
    test.git(["add", "-f", ".archeflow"]);
    test.git(["commit", "-q", "-m", "Judge me by these"]);
    let outcome = test.look(&["--branch", "topic", "--base", "main", "--format", "json"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    let rules: Vec<String> = json(&outcome)["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|found| found["rule"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(rules.iter().any(|rule| rule == "own_state_changed"), "{rules:?}");
    assert!(rules.iter().any(|rule| rule == "reliability"), "{rules:?}");
}

#[test]
fn wrong_words_are_answered_with_the_known_ones() {
    let test = test();
    edit(&test);
    let rows: [(&[&str], &[&str]); 7] = [
        (&["--branch", "nowhere"], &["nowhere", "main"]),
        (&["--branch", "--hostile"], &["hostile"]),
        (&["--reviewers", "maker"], &["'maker' is no reviewer", "guardian, sage, skeptic, trickster"]),
        (&["--format", "yaml"], &["yaml", "sarif"]),
        (&["--base", "main"], &["--base says nothing"]),
        (&["--patch", "nowhere.patch"], &["nowhere.patch"]),
        (&["--run", "nowhere"], &["nowhere"]),
    ];
    for (args, words) in rows {
        test.look(args).refused(2, words);
    }
    assert!(test.run_ids().is_empty(), "nothing was begun");
    let clean = Test::new().play("");
    let outcome = clean.look(&["--format", "json"]);
    assert_eq!((outcome.code, outcome.stdout.trim()), (0, "null"), "{outcome}");
}

/// 100 MB of diff in 20,000 files. Every file is in some part or told by name, and our own memory stays small.
#[test]
fn r17_a_very_large_change_is_reviewed_in_bounded_memory() {
    const FILES: usize = 20_000;
    let answer = "VERDICT: APPROVED\\nFINDINGS: 0\\n\\nSTATUS: DONE\\n";
    let test = Test::new()
        .cmd(&format!("{{sign}}printf '{answer}' | sign\n"))
        .config("review:\n  part_bytes: 4000000\n")
        .unaudited();
    test.git(["checkout", "-q", "-b", "topic"]);
    for n in 0..FILES {
        let line =
            |k: usize| format!("file {n} line {k} and some more words to make it as long as lines are\n");
        test.file(format!("many/{}/file-{n}.txt", n / 200), (0..75).map(line).collect::<String>());
    }
    test.git(["add", "-A"]);
    test.git(["commit", "-q", "-m", "Add a great many files"]);
    let agent = test.agent();
    let mut peak = 0;
    let arguments = ["review", "--branch", "topic", "--base", "main", "--agent", &agent];
    let outcome = test.during(&arguments, |child| {
        let status = format!("/proc/{}/status", child.id());
        while child.try_wait().unwrap().is_none() {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let now = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let now = now.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
            peak = peak.max(now.unwrap_or(0));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let found: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let parts = outcome.events("review.opened")[0]["parts"].as_array().unwrap().len();
    assert!(parts > 20, "{parts} parts");
    assert_eq!(outcome.events("agent.complete").len(), parts, "one look at each");
    assert_eq!(found["change"]["files"].as_u64().or(found["files"].as_u64()), Some(FILES as u64));
    let shown: usize = (1..=parts)
        .map(|n| outcome.artifact(&format!("part-{n:04}.diff")).matches("\ndiff --git ").count())
        .sum();
    assert_eq!(shown, FILES, "every file is in a part");
    assert!(peak > 0 && peak < 200 * 1024, "peak {peak} KiB");
}

/// D6: that the successor of a replaced Guardian approves does not answer the CRITICALs of the one before.
#[test]
fn d_06_what_a_replaced_reviewer_found_is_in_the_review() {
    let fall = falls().into_iter().find(|fall| fall.who == "guardian").unwrap();
    let scenes = fall.sick("purpose=work", "SICK-ONE") + &fall.sick("purpose=correct attempt=2", "SICK-TWO");
    let test = Test::new().play(&scenes);
    edit(&test);
    let outcome = test.look(&["--json", "--fail-on", "critical"]);
    assert_eq!(outcome.code, 14, "{outcome}");
    let reviewed = json(&outcome);
    let found = reviewed["findings"].as_array().unwrap();
    assert!(found.iter().any(|found| found["description"] == "The part has no header."), "{outcome}");
}
