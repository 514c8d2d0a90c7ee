//! `archeflow rollback`: a run goes back to the end of a phase and on from there (M-03).

use serde_json::json;

use crate::harness::{Outcome, TASK, Test, each, review};

const FINDING: &str =
    "src/app.txt:1 | WARNING | reliability | The line is never closed | Close the line | `line 1`";

/// A run that a break stopped after two cycles: the Guardian rejects the first time it looks in each, and approves the next.
fn stopped() -> (Test, Outcome) {
    let scenes = review("guardian cycle=1 attempt=1", "REJECTED", &[FINDING])
        + &review("guardian cycle=2 attempt=1", "REJECTED", &[FINDING]);
    let test = Test::new().unshadowed().play(&scenes).config("max_cycles:\n  fast: 2\n");
    let run = test.go(&["--auto-merge"]).ended("wiggum_break", "stop_identical_findings", 10);
    (test, run)
}

/// The ref that names what existed at the end of a phase.
fn commit_at(test: &Test, id: &str, end: &str) -> String {
    test.git(["rev-parse", &format!("refs/archeflow/keep/{id}/{end}")])
}

#[test]
fn m_03_a_run_goes_back_to_the_end_of_any_phase_and_lands() {
    // What the landed file says of the cycles and attempts that made it.
    let rows = [
        ("1:plan", &["cycle 1 attempt 2"][..]),
        ("1:do", &["cycle 1 attempt 1"]),
        ("1:check", &["cycle 1 attempt 1", "cycle 2 attempt 2"]),
        ("1:act", &["cycle 1 attempt 1", "cycle 2 attempt 2"]),
        ("2:plan", &["cycle 1 attempt 1", "cycle 2 attempt 2"]),
        ("2:do", &["cycle 1 attempt 1", "cycle 2 attempt 1"]),
    ];
    each(rows, |(to, made)| {
        let (test, stopped) = stopped();
        let (work, second) = (commit_at(&test, &stopped.id, "1/do"), commit_at(&test, &stopped.id, "2/do"));
        assert_ne!(work, second);
        for end in ["1/plan", "1/check", "1/act", "2/plan", "2/check", "2/act"] {
            commit_at(&test, &stopped.id, end);
        }
        let merged = test.run(&["rollback", &stopped.id, "--to", to]).ended("merged", "approved", 0);
        let lines: Vec<String> = test
            .read("src/app.txt")
            .lines()
            .filter_map(|line| line.strip_prefix("made in "))
            .map(str::to_owned)
            .collect();
        assert_eq!(lines, made, "{to}\n{merged}");
        // What was taken back stays reachable, in the journal and on disk.
        test.git(["cat-file", "-e", &second]);
        assert!(test.git(["for-each-ref", "--contains", &second]).contains("refs/archeflow/keep/"), "{to}");
        let (cycle, phase) = to.split_once(':').unwrap();
        let back = merged.events("run.rolled_back");
        assert_eq!(back, [&json!({ "cycle": cycle.parse::<u32>().unwrap(), "phase": phase })], "{to}");
        assert!(merged.journal.starts_with(&stopped.journal), "{to}");
        let said = format!("back to the end of {phase} in cycle {cycle}");
        for command in [
            &["show", &merged.id][..],
            &["show", &merged.id, "--why"],
            &["replay", "timeline", &merged.id],
            &["report", &merged.id],
        ] {
            let shown = test.run(command);
            let text = format!("{}{}", shown.stdout, shown.stderr);
            assert!(shown.code == 0 && text.contains(&said), "{to} {command:?}\n{shown}");
        }
        test.run(&["rollback", &merged.id, "--to", to]).refused(2, &["has landed", "archeflow revert"]);
    });
}

#[test]
fn m_03_findings_of_later_phases_are_open_no_more_and_money_stays_spent() {
    let scenes = review("guardian cycle=1 attempt=1", "REJECTED", &[FINDING])
        + &review("guardian cycle=2 attempt=1", "REJECTED", &[FINDING]);
    let scenes = scenes.replace(" ==\nsay", " ==\nusage 10 10 0.5\nsay");
    let test = Test::new().unshadowed().play(&scenes).config("max_cycles:\n  fast: 2\n");
    let stopped = test.go(&[]).ended("wiggum_break", "stop_identical_findings", 10);
    assert_eq!((stopped.unresolved().len(), &stopped.json["cost_usd"]), (1, &json!(1.0)), "{stopped}");
    let waits = test.run(&["rollback", &stopped.id, "--to", "1:do"]).ended("awaiting_merge", "approved", 10);
    assert_eq!((waits.unresolved().len(), &waits.json["cost_usd"]), (0, &json!(1.0)), "{waits}");
    let branch = test.git(["rev-parse", &format!("archeflow/{}", waits.id)]);
    assert_eq!(branch, commit_at(&test, &waits.id, "1/do"));
    // It waits, and can go back once more.
    let again = test.run(&["rollback", &waits.id, "--to", "1:plan"]).ended("awaiting_merge", "approved", 10);
    assert_eq!(again.events("run.rolled_back").len(), 2);
    test.run(&["merge", &again.id]).ended("merged", "approved", 0);
    assert!(test.read("src/app.txt").ends_with("made in cycle 1 attempt 2\n"));
}

#[test]
fn m_03_what_can_t_go_back_is_refused_and_stays() {
    let (test, stopped) = stopped();
    let before = test.journal_bytes(&stopped.id);
    for (to, said) in [
        ("3:do", "never was at the end of do in cycle 3"),
        ("0:plan", "never was"),
        ("1", "is no phase of a cycle"),
        ("1:review", "is no phase of a cycle"),
    ] {
        let ways = "It can go back to: 1:plan, 1:do, 1:check, 1:act, 2:plan, 2:do, 2:check, 2:act";
        test.run(&["rollback", &stopped.id, "--to", to]).refused(2, &[said, ways]);
    }
    // Somebody looks at its branch.
    test.git(["checkout", "-q", &format!("archeflow/{}", stopped.id)]);
    let refused = test.beside(&["rollback", &stopped.id, "--to", "1:do"]);
    assert!(refused.code == 10 && refused.stderr.contains("checked out"), "{refused}");
    test.git(["checkout", "-q", "main"]);
    // What the Creator wrote is nowhere any more, or no longer what it was.
    let (plans, hidden) = (["plan-creator.md", "cycle-1/plan-creator.md"], test.base().join("hidden"));
    let text = std::fs::read(stopped.artifacts.join(plans[1])).unwrap();
    let attempts = stopped.artifacts.join("attempts");
    plans.iter().for_each(|plan| std::fs::write(stopped.artifacts.join(plan), "changed").unwrap());
    std::fs::rename(&attempts, &hidden).unwrap();
    test.run(&["rollback", &stopped.id, "--to", "1:do"]).refused(2, &["plan-creator.md", "is not as it was"]);
    std::fs::rename(&hidden, &attempts).unwrap();
    plans.iter().for_each(|plan| std::fs::write(stopped.artifacts.join(plan), &text).unwrap());
    assert_eq!(test.journal_bytes(&stopped.id), before, "nothing was written");
    test.run(&["discard", &stopped.id]).ended("stopped", "discarded", 0);
    test.run(&["rollback", &stopped.id, "--to", "1:do"]).refused(2, &["was discarded"]);

    // A review has no phases to go back to.
    test.file("src/app.txt", "changed\n");
    let reviewed = test.look(&["--json"]);
    test.run(&["rollback", &reviewed.id, "--to", "1:check"]).refused(2, &["has not ended a phase"]);
}

#[test]
fn m_03_a_run_that_somebody_drives_is_left_alone() {
    let waits = "== guardian ==\nsh touch {base}/working\nsh while [ ! -e {base}/go ]; do sleep 0.05; done\n\
                 say <<END\nVERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().unshadowed().play(waits);
    let arguments = test.arguments(TASK, &["--auto-merge"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let merged = test.during(&arguments, |_| {
        test.wait_for_file("working");
        let refused = test.beside(&["rollback", "last", "--to", "1:plan"]);
        assert!(refused.code == 21 && refused.stderr.contains("held by"), "{refused}");
        std::fs::write(test.base().join("go"), "").unwrap();
    });
    assert_eq!(merged.ended("merged", "approved", 0).events("run.rolled_back").len(), 0);
}

#[test]
fn m_03_killed_anywhere_a_rollback_is_completed_or_was_never_begun() {
    let mut points: Vec<String> =
        (1..=5).flat_map(|n| [format!("recorded:{n}"), format!("performed:{n}")]).collect();
    points.extend(
        ["rollback.files:1", "projected:1", "observed:1", "caught_up:1", "agent.housed:1"].map(str::to_owned),
    );
    let rows = points.into_iter().enumerate().map(|(n, point)| (point, ["1:do", "1:plan"][n % 2]));
    each(rows, |(point, to)| {
        let (test, stopped) = stopped();
        let test = test.env("ARCHEFLOW_FAILPOINT", &point);
        let first = test.run(&["rollback", &stopped.id, "--to", to]);
        let test = test.env("ARCHEFLOW_FAILPOINT", "");
        let merged = if first.killed { test.run(&["resume", &stopped.id]) } else { first };
        let merged = merged.ended("merged", "approved", 0);
        let made = if to == "1:do" { "made in cycle 1 attempt 1\n" } else { "made in cycle 1 attempt" };
        let text = test.read("src/app.txt");
        assert!(
            text.contains(made) && text.matches("made in").count() == 1,
            "{point} {to}\n{text}\n{merged}"
        );
        let folders = std::fs::read_dir(&merged.artifacts).unwrap().flatten();
        let left = folders.filter(|one| one.file_name().to_string_lossy().ends_with(".part")).count();
        assert_eq!(left, 0, "{point}");
    });
}
