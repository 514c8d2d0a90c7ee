//! `archeflow status` as an inbox, and the list of repositories it looks at (U-11); discarding a review (U-04) and what
//! the end of a run prints (U-16).

use crate::harness::{Outcome, Test, review};

fn started(test: &Test, task: &str, more: &[&str]) -> Outcome {
    let arguments = test.arguments(task, more);
    test.run(&arguments.iter().map(String::as_str).collect::<Vec<_>>())
}

fn groups(status: &Outcome) -> Vec<(String, String)> {
    let runs = status.json["runs"].as_array().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    runs.iter().map(|run| (text(&run["group"]), text(&run["run_id"]))).collect()
}

#[test]
fn u_11_status_lists_what_waits_first_then_what_ended_last() {
    let test = Test::new().play("");
    let mut merged = Vec::new();
    for n in 1..=6 {
        let ended = started(&test, &format!("Write part {n}"), &["--auto-merge"]);
        merged.push(ended.ended("merged", "approved", 0).id);
    }
    let waiting = started(&test, "Fix the login", &["--unattended"]).ended("awaiting_merge", "approved", 10);
    let given_up = started(&test, "Fix the logout", &["--unattended"]);
    test.run(&["discard", "fix-the-logout"]);
    let status = test.run(&["status"]);
    let place =
        |text: &str| status.stdout.find(text).unwrap_or_else(|| panic!("{text} is missing\n{status}"));
    assert!(place("Waiting for you") < place(&waiting.id), "{status}");
    assert!(place("\n    archeflow merge fix-the-login\n") < place("Finished"), "{status}");
    assert!(place("Finished") < place(&given_up.id) && place("discarded") < place("merged"), "{status}");
    assert!(!status.stdout.contains(&merged[0]) && !status.stdout.contains(&merged[1]), "five\n{status}");
    // The command does what it says.
    test.run(&["merge", "fix-the-login"]).ended("merged", "approved", 0);
    let after = test.run(&["status"]);
    assert!(after.stdout.starts_with("Nothing waits for you."), "{after}");

    let json = test.run(&["status", "--json"]);
    let finished: Vec<(String, String)> = [&waiting.id, &given_up.id, &merged[5], &merged[4], &merged[3]]
        .map(|id| ("finished".to_owned(), id.clone()))
        .into();
    let mut found = groups(&json);
    found.sort();
    let mut expected = finished;
    expected.sort();
    assert_eq!(found, expected, "{json}");
    assert_eq!(json.json["run_id"], given_up.id, "the newest run, as before\n{json}");
}

#[test]
fn u_11_u_04_a_clean_review_waits_for_nobody() {
    let finding = "src/app.txt:1 | WARNING | quality | The first line is odd | Change it | `line`";
    let test = Test::new().play(&review("guardian", "REJECTED", &[finding]));
    test.file("src/app.txt", "line\nmore\n");
    test.look(&[]);
    let [first] = test.run_ids().try_into().unwrap();
    let [(group, id)] = groups(&test.run(&["status", "--json"])).try_into().unwrap();
    assert_eq!((group.as_str(), &id), ("waiting", &first), "its findings are to be seen to");
    let status = test.run(&["status"]);
    assert!(status.stdout.contains("archeflow review --run "), "{status}");

    // A later review of the same change takes its place, and a clean one waits for nobody.
    let clean = test.play(&review("guardian", "APPROVED", &[]));
    clean.look(&[]);
    let found = groups(&clean.run(&["status", "--json"]));
    assert!(found.len() == 2 && found.iter().all(|(group, _)| group == "finished"), "{found:?}");
    assert!(clean.run(&["status"]).stdout.starts_with("Nothing waits for you."));

    // U-04: a review has no branch to put away.
    let discarded = clean.run(&["discard", &first]);
    assert_eq!((discarded.code, &discarded.json["reason"]), (0, &"discarded".into()), "{discarded}");
    clean.run(&["discard", &first]).refused(2, &["was discarded already"]);
}

#[test]
fn u_11_repositories_that_are_gone_are_told_in_one_line_and_forgotten() {
    let test = Test::new().play("");
    started(&test, "Fix the login", &["--auto-merge"]).ended("merged", "approved", 0);
    let mut others = Vec::new();
    for name in ["one", "two"] {
        let other = test.base().join(name);
        test.git(["clone", "--quiet", ".", other.to_str().unwrap()]);
        for (key, value) in [("user.name", "Ann"), ("user.email", "ann@example.org")] {
            test.git(["-C", other.to_str().unwrap(), "config", key, value]);
        }
        started(&test, "Do it there", &["--auto-merge", "--repo", other.to_str().unwrap()]);
        std::fs::remove_dir_all(&other).unwrap();
        others.push(other);
    }
    let status = test.run(&["status"]);
    let lines: Vec<&str> = status.stderr.lines().filter(|line| line.contains("gone")).collect();
    assert!(lines.len() == 1 && lines[0].contains("archeflow forget --gone"), "{status}");
    let json = test.run(&["status", "--json"]);
    assert_eq!(json.json["missing_repositories"].as_array().map(Vec::len), Some(2), "{json}");

    test.run(&["forget"]).refused(2, &["DIR"]);
    test.run(&["forget", "/nowhere"]).refused(2, &["/nowhere is not on the list"]);
    let one = test.run(&["forget", others[0].to_str().unwrap(), "--json"]);
    assert_eq!(one.json["forgotten"], serde_json::json!([others[0].to_str().unwrap()]), "{one}");
    let rest = test.run(&["forget", "--gone"]);
    assert!(rest.code == 0 && rest.stdout.contains("two") && !rest.stdout.contains("one"), "{rest}");
    assert!(test.run(&["forget", "--gone"]).stdout.contains("No repository"));
    let quiet = test.run(&["status"]);
    assert!(!quiet.stderr.contains("gone"), "{quiet}");
    assert!(quiet.stdout.contains("fix-the-login"), "what is there stays\n{quiet}");
    assert_eq!(test.run(&["forget", "."]).code, 0);
}

/// Also where an earlier version wrote the list of what git does not see.
#[test]
fn u_09_no_file_of_a_run_shows_up_in_git() {
    let before = "/events/\n/artifacts/\n/runs/\n/memory/\n/costs/\n/progress.md\n/.gitignore\n/.*.tmp\n";
    for ignored in [None, Some(before)] {
        let test = Test::new().play("").config("boundaries:\n  checkpoint_cycles: 1\n");
        if let Some(text) = ignored {
            test.file(".archeflow/.gitignore", text);
        }
        test.go(&["--auto-merge"]).ended("merged", "approved", 0);
        assert!(test.read(".archeflow/control-center.md").contains("# Control center"));
        assert_eq!(test.git(["status", "--porcelain", "--untracked-files=all"]), "", "{ignored:?}");
    }
    // A list that people changed is theirs.
    let test = Test::new().play("");
    test.file(".archeflow/.gitignore", "*\n");
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(test.read(".archeflow/.gitignore"), "*\n");
}

#[test]
fn u_16_the_end_of_a_run_names_a_report_for_people_and_how_long_it_took() {
    let test = Test::new().play("");
    let ended = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(ended.stderr.contains(&format!("Report:    archeflow report {}\n", ended.id)), "{ended}");
    let shown = test.run(&["show", &ended.id]);
    assert!(shown.stderr.contains("Complete: ") && !shown.stderr.contains("Complete: 0ms"), "{shown}");
}
