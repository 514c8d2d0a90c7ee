//! J-04, M-01: a rejection is never passed over, and evidence counts where the reviewer put it.

use serde_json::Value;

use crate::harness::{Test, each, says};

fn review(rows: &str, below: &str) -> String {
    format!(
        "VERDICT: REJECTED\nFINDINGS: {}\n\n| Location | Severity | Category | Description | Fix |\n|---|---|---|---|---|\n\
         {rows}\n{below}\nSTATUS: DONE",
        rows.lines().count()
    )
}

const NOWHERE: &str = "| src/app.txt | CRITICAL | reliability | The line is in the wrong place | Move it |";

#[test]
fn j_04_a_rejection_without_evidence_is_asked_about_and_a_person_decides() {
    let insists = says("guardian", &review(NOWHERE, ""));
    let test = Test::new().unshadowed().play(&insists);
    let main = test.git(["rev-parse", "main"]);
    let waiting = test.go(&["--auto-merge"]).ended("awaiting_answer", "rejected_without_evidence", 10);
    assert_eq!(test.git(["rev-parse", "main"]), main, "nothing lands\n{waiting}");
    let briefs = waiting.briefs("guardian");
    assert_eq!(briefs.len(), 2, "asked once\n{waiting}");
    for words in ["The line is in the wrong place", "no line, no output", "a person decides"] {
        assert!(briefs[1].contains(words), "{words}\n{}", briefs[1]);
    }
    assert_eq!(waiting.json["question"]["kind"], "rejection", "{waiting}");
    let landed = test.run(&["answer", &waiting.id, "land"]).ended("merged", "approved", 0);
    assert_eq!(landed.times("guardian"), 2, "{landed}");

    let test = Test::new().unshadowed().play(&insists);
    let waiting = test.go(&["--auto-merge"]).ended("awaiting_answer", "rejected_without_evidence", 10);
    test.run(&["answer", &waiting.id, "stop"]).ended("stopped", "rejected_without_evidence", 10);

    // What a person lets count goes back to the Maker; here there is no cycle left.
    let test = Test::new().unshadowed().play(&insists);
    let waiting = test.go(&["--auto-merge"]).ended("awaiting_answer", "rejected_without_evidence", 10);
    let counted = test.run(&["answer", &waiting.id, "fix"]).ended("stopped", "max_cycles", 14);
    assert_eq!(counted.json["unresolved"].as_array().map(Vec::len), Some(1), "{counted}");
}

#[test]
fn j_04_a_reviewer_that_shows_evidence_or_withdraws_is_heard() {
    let withdraws = says("guardian attempt=1", &review(NOWHERE, ""));
    let merged =
        Test::new().unshadowed().play(&withdraws).go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.times("guardian"), 2, "{merged}");

    let shows = "| src/app.txt:1 | CRITICAL | reliability | The line is in the wrong place | Move it |";
    let shows = withdraws.clone() + &says("guardian attempt=2", &review(shows, ""));
    let test = Test::new().unshadowed().play(&shows);
    let stopped = test.go(&["--auto-merge"]).ended("stopped", "max_cycles", 14);
    assert_eq!(stopped.times("guardian"), 2, "{stopped}");
}

#[test]
fn m_01_evidence_in_the_description_counts() {
    for description in [
        "Running `sh tests/check_test.sh` fails with an empty file",
        "The check fails: 1 failed, 0 passed",
        "thread 'main' panicked at src/app.txt",
    ] {
        let row = format!("| src/app.txt | CRITICAL | reliability | {description} | Fix it |");
        let test = Test::new().unshadowed().play(&says("guardian", &review(&row, "")));
        let stopped = test.go(&["--auto-merge"]).ended("stopped", "max_cycles", 14);
        assert_eq!(stopped.times("guardian"), 1, "{description}\n{stopped}");
    }
}

#[test]
fn m_01_a_transcript_below_the_table_counts() {
    let transcript =
        "How I saw it:\n\n```console\n$ sh tests/check_test.sh\nsrc/app.txt: nothing there\n```\n";
    let test = Test::new().unshadowed().play(&says("guardian", &review(NOWHERE, transcript)));
    let stopped = test.go(&["--auto-merge"]).ended("stopped", "max_cycles", 14);
    assert_eq!(stopped.times("guardian"), 1, "it is not asked for evidence\n{stopped}");
}

/// What `make test` and `npm test` run, and what the test script reads in from beside it, is part of the test command (R-07).
#[test]
fn r_07_what_the_test_command_leads_to_is_part_of_it() {
    let rows = [
        ("make", "Makefile", "test:\n\tsh ci/check.sh\n", "make test"),
        ("npm", "package.json", "{\"scripts\": {\"test\": \"sh ci/check.sh\"}}\n", "npm test"),
        ("source", "ci/all.sh", ". \"$(dirname \"$0\")/check.sh\"\n", "sh ci/all.sh"),
    ];
    each(rows, |(name, path, text, command)| {
        let maker = "== maker ==\nsh echo x >> src/app.txt; echo y >> tests/check_test.sh; echo true > ci/check.sh\n\
                     commit Do it\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
        let test = Test::new().unshadowed();
        test.file("ci/check.sh", "grep -q 'line 1' src/app.txt\n").file(path, text);
        test.commit("Checks");
        let ended = test.play(maker).without_preflight().tests(command).go(&["--unattended"]);
        let raised = ended.events("finding.raised");
        let found = raised.iter().find(|raised| raised["sign"] == "test_command_changed");
        let found = found.unwrap_or_else(|| panic!("{name}\n{ended}"));
        assert_eq!(found["finding"]["file"], "ci/check.sh", "{name}\n{found}");
    });
}

/// A change to what judges it is pointed out in runs, and does not keep it from landing.
#[test]
fn l_09_a_run_that_changes_its_own_judges_says_so() {
    let maker = "== maker ==\nsh echo x >> src/app.txt; echo y >> tests/check_test.sh\n\
                 sh echo '[lint]' > ruff.toml; mkdir ci; echo true > ci/all.sh\n\
                 commit Do it\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().unshadowed().play(maker).without_preflight().tests("sh ci/all.sh");
    let merged = test.go(&["--auto-merge"]);
    let merged = merged.ended("merged", "approved", 0);
    let raised = merged.events("finding.raised");
    for (sign, path, severity) in
        [("linter_changed", "ruff.toml", "INFO"), ("test_command_changed", "ci/all.sh", "WARNING")]
    {
        let found = raised.iter().find(|raised| raised["sign"] == sign);
        let found = found.unwrap_or_else(|| panic!("{sign}\n{merged}"));
        assert_eq!(found["finding"]["file"], path, "{found}");
        assert_eq!(found["finding"]["severity"], severity, "{found}");
    }
    for command in [["show", &merged.id], ["report", &merged.id]] {
        let shown = test.run(&command);
        let said = format!("{}{}", shown.stdout, shown.stderr);
        assert!(said.contains("what the test command runs changed: ci/all.sh"), "{command:?}\n{shown}");
    }
}

#[test]
fn explain_answer_and_same_say_how_they_judge() {
    let test = Test::new();
    let base = test.base().clone();
    std::fs::create_dir_all(base.join("tree/src")).unwrap();
    std::fs::write(base.join("tree/src/calc.py"), "def sub(a, b):\n    return a - b\n").unwrap();
    let rows = "| calc.py:2 | HIGH | reliability | sub fails for None | check |\n\
                | src/calc.py | WARNING | quality | the name is odd | rename |";
    std::fs::write(base.join("review.md"), review(rows, "")).unwrap();
    let (file, tree) = (base.join("review.md"), base.join("tree"));
    let (file, tree) = (file.to_str().unwrap(), tree.to_str().unwrap());
    let shown = test.run(&["explain", "answer", file, "--role", "skeptic", "--repo", tree, "--json"]);
    assert_eq!(shown.code, 0, "{shown}");
    let answer: &Value = &shown.json;
    assert_eq!(answer["verdict"], "REJECTED", "{shown}");
    assert_eq!(answer["accepted"], true, "{shown}");
    let findings = answer["findings"].as_array().unwrap();
    assert_eq!(findings[0]["file"], "src/calc.py", "J-04: the only file that ends so\n{shown}");
    assert_eq!((&findings[0]["standing"], &findings[0]["line"]), (&"counts".into(), &2.into()), "{shown}");
    assert_eq!(findings[1]["why"], "no_evidence", "{shown}");

    let finding = |line: u32, description: &str| {
        serde_json::json!({ "file": "a.py", "line": line, "category": "quality", "severity": "WARNING",
                            "description": description, "source": "guardian" })
    };
    let given = [
        ("a.json", finding(3, "the cache is never closed")),
        ("b.json", finding(9, "cache never gets closed")),
        ("c.json", finding(3, "an index is off by one")),
    ];
    for (name, value) in &given {
        std::fs::write(base.join(name), value.to_string()).unwrap();
    }
    let path = |name: &str| base.join(name).to_str().unwrap().to_owned();
    let same = test.run(&["explain", "same", &path("a.json"), &path("b.json"), "--json"]);
    assert_eq!(same.json["same"], true, "{same}");
    let other = test.run(&["explain", "same", &path("a.json"), &path("c.json"), "--json"]);
    assert_eq!(other.json["same"], false, "{other}");
    std::fs::write(base.join("d.json"), "[1]").unwrap();
    test.run(&["explain", "same", &path("a.json"), &path("d.json")]).refused(2, &["d.json", "object"]);
    test.run(&["explain", "same", &path("a.json")]).refused(2, &["two findings"]);
    test.run(&["explain", "answer", file, "--role", "wizard"]).refused(2, &["wizard", "guardian"]);
    test.run(&["explain", "answer", "/nowhere/at/all"]).refused(2, &["/nowhere/at/all"]);
}

#[test]
fn every_description_of_a_finding_is_shown_and_why_it_is_the_same_as_before() {
    let mine = "src/app.txt:3 | WARNING | security | The session token is written to the third line | Mask it | `src/app.txt:3`";
    let theirs = "src/app.txt:3 | WARNING | security | Session token written to the third line in clear | Mask it | `src/app.txt:3`";
    let others = [
        "src/app.txt:1 | WARNING | reliability | First line breaks parsing of empty input | Guard it | `src/app.txt:1`",
        "src/app.txt:2 | WARNING | quality | Name of the second entry misleads readers | Rename it | `src/app.txt:2`",
    ];
    let [guardian, skeptic] = [("guardian", vec![mine, others[0], others[1]]), ("skeptic", vec![theirs])]
        .map(|(who, rows)| crate::harness::review(who, "REJECTED", &rows));
    let test = Test::new().play(&(guardian + &skeptic));
    let run = test.go(&["--unattended", "--workflow", "thorough"]);
    let theirs = "Session token written to the third line in clear";
    assert!(
        run.briefs("maker").iter().chain(&run.briefs("creator")).any(|brief| brief.contains(theirs)),
        "{run}"
    );
    for format in [&[][..], &["--html"], &["--json"]] {
        let report = test.run(&[&["report", run.id.as_str()][..], format].concat());
        assert!(report.stdout.contains(theirs), "{format:?}: {report}");
    }
    let why = test.run(&["show", &run.id, "--why", "AF-109"]);
    assert!(why.stdout.contains(&format!("writes about it: {theirs}")), "{why}");
    assert!(why.stdout.contains("the same as src/app.txt:security of the cycle before: "), "{why}");
    assert!(why.stdout.contains("words +"), "{why}");
}
