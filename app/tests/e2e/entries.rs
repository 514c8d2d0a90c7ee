//! Ways into a run: dry runs, `--start-from`, flags and their errors.

use std::fs;

use crate::harness::{SIGN, TASK, Test, review};

#[test]
fn af185_a_dry_run_plans_only_and_can_be_gone_on_with() {
    let test = Test::new().play("");
    let main = test.git(["rev-parse", "main"]);
    let planned = test.go(&["--dry-run", "--auto-merge"]).ended("dry_run", "dry_run", 0);
    assert_eq!(planned.sent(), ["creator/work"]);
    assert_eq!(test.git(["rev-parse", "main"]), main);
    let said = planned.stderr.clone() + &planned.stdout;
    for word in ["fast", "0.9", "maker", "guardian"] {
        assert!(said.contains(word), "the plan shows {word}\n{planned}");
    }
    let merged = test.run(&["run", "--start-from", "do", "--run", &planned.id, "--auto-merge"]);
    let merged = merged.ended("merged", "approved", 0);
    assert_eq!(merged.id, planned.id);
    assert_eq!(merged.times("creator"), 1, "the plan is used, not made anew");

    let test = Test::new().play("");
    let planned = test.go(&["--dry-run", "--auto-merge"]).ended("dry_run", "dry_run", 0);
    test.run(&["answer", &planned.id, "yes"]).ended("merged", "approved", 0);
    let test = Test::new().play("");
    let planned = test.go(&["--dry-run"]).ended("dry_run", "dry_run", 0);
    test.run(&["answer", &planned.id, "no"]).ended("dry_run", "dry_run", 0);
}

#[test]
fn af186_starting_late_uses_what_is_there() {
    let row = "src/app.txt:3 | CRITICAL | security | The third line leaks | Remove | `src/app.txt:3`";
    let scene = review("guardian attempt=1", "REJECTED", &[row]);
    for (phase, sent) in [
        ("plan", &["creator", "maker", "guardian"][..]),
        ("do", &["maker", "guardian"]),
        ("check", &["guardian"]),
    ] {
        let test = Test::new().play(&scene);
        let stopped = test.go(&["--auto-merge"]).ended("stopped", "max_cycles", 14);
        let before = stopped.sent().len();
        let merged = test.run(&["run", "--start-from", phase, "--run", &stopped.id, "--auto-merge"]);
        let got: Vec<String> =
            merged.sent()[before..].iter().map(|sent| sent.split('/').next().unwrap().to_owned()).collect();
        assert_eq!(got, sent, "{phase}\n{merged}");
        // From plan it is a new cycle, in which the Guardian's first attempt rejects again.
        if phase != "plan" {
            merged.ended("merged", "approved", 0);
        }
    }
    // From act: the reviews are read again, here with the finding taken out by hand.
    let test = Test::new().play(&scene);
    let stopped = test.go(&["--auto-merge"]).ended("stopped", "max_cycles", 14);
    let review = stopped.artifacts.join("check-guardian.md");
    fs::write(&review, "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n").unwrap();
    let merged = test.run(&["run", "--start-from", "act", "--run", &stopped.id, "--auto-merge"]);
    assert_eq!(merged.ended("merged", "approved", 0).times("guardian"), 1);
}

#[test]
fn af186_a_missing_artifact_is_named_and_nothing_runs() {
    for (phase, missing) in [
        ("do", "plan-creator.md"),
        ("check", "plan-creator.md"),
        ("check", "do-maker.md"),
        ("check", "do-maker-files.txt"),
        ("act", "check-guardian.md"),
    ] {
        let test = Test::new().play("");
        let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
        fs::remove_file(waiting.artifacts.join(missing)).unwrap();
        let lines = waiting.journal.len();
        let refused = test.run(&["run", "--start-from", phase, "--run", &waiting.id]).refused(2, &[missing]);
        assert_eq!(refused.json["status"], "failed");
        assert_eq!(test.journal_bytes(&waiting.id).iter().filter(|byte| **byte == b'\n').count(), lines);
    }
    let test = Test::new().play("");
    test.run(&["run", "--start-from", "do", "--run", "2026-01-01-nowhere"])
        .refused(2, &["2026-01-01-nowhere"]);
    test.run(&["run", "--start-from", "tomorrow", "--run", "x"]).refused(2, &["plan, do, check, act"]);
}

#[test]
fn m_b18_an_artifact_that_was_changed_by_hand_is_not_used_silently() {
    let test = Test::new().play("== maker attempt=1 ==\nsay <<END\nWhich?\n\nSTATUS: NEEDS_CONTEXT\nEND\n\n");
    let waiting = test.go(&["--auto-merge"]).ended("awaiting_answer", "needs_context", 10);
    fs::write(waiting.artifacts.join("plan-creator.md"), "something else").unwrap();
    let refused = test.run(&["answer", &waiting.id, "this"]).refused(40, &["plan-creator.md"]);
    assert_eq!(refused.json["run_id"].as_str(), Some(waiting.id.as_str()), "{refused}");
}

#[test]
fn errors_of_the_command_line_say_what_is_known() {
    let test = Test::new().play("");
    for (arguments, words) in [
        (&["run", TASK, "--agent", "wizard"][..], &["wizard", "cmd:", "script:"][..]),
        (&["run", TASK, "--agent", "cmd:"], &["cmd:<command line>"]),
        (&["run", TASK, "--agent", "script:nowhere.play"], &["nowhere.play"]),
        (&["run", TASK], &["--agent"]),
        (&["run", "  ", "--agent", "cmd:true"], &["task is empty"]),
        (
            &["run", TASK, "--agent", "cmd:true", "--workflow", "quick"],
            &["quick", "fast", "standard", "thorough"],
        ),
        (
            &["run", TASK, "--agent", "cmd:true", "--strategy", "waterfall"],
            &["waterfall", "pdca", "pipeline"],
        ),
        (&["run", TASK, "--agent", "cmd:true", "--domain", "law"], &["law", "code", "writing", "research"]),
        (&["run", TASK, "--agent-for", "wizard=cmd:true"], &["wizard", "guardian"]),
        (&["run", TASK, "--agent-for", "guardian"], &["guardian=cmd:"]),
        (&["run", TASK, "--agnet", "cmd:true"], &["--agnet", "--agent"]),
        (&["resume", "nowhere"], &["nowhere", "archeflow list"]),
        (&["resume", "../../etc/passwd"], &["../../etc/passwd"]),
        (&["merge", "..%2f..%2fetc"], &["..%2f"]),
        (&["show", "a\u{2215}b"], &["there is no run 'a\u{2215}b'"]),
        (&["status", "-rf"], &["-r"]),
        (&["explain", "everything"], &["guardian", "max_cycles"]),
        (&["frobnicate"], &["frobnicate"]),
        (&["rollback", "nowhere"], &["--to <CYCLE:PHASE>"]),
        (&["rollback", "nowhere", "--to", "1:do"], &["nowhere", "archeflow list"]),
        (&["revert", "nowhere"], &["nowhere", "archeflow list"]),
        (&["gc", "everything"], &["everything"]),
        (&["forget", "/no/such/place"], &["/no/such/place", "archeflow list --all"]),
        (&["run", TASK, "--estimate", "--dry-run"], &["--estimate", "--dry-run"]),
        (&["run", "--estimate"], &["<TASK>"]),
        (&["init", "quick"], &["quick", "quick-fix", "archeflow init --list"]),
        (&["init", "--test-command", "make\ntest"], &["test_command", "a command on one line"]),
        (&["init", "--setup-command", "  "], &["setup_command", "a command on one line"]),
        (&["run", TASK, "--agent", "cmd:true", "--setup-command", ""], &["setup_command"]),
        (&["run", TASK, "--agent", "cmd:true", "--no-tests", "--test-command", "x"], &["--no-tests"]),
    ] {
        let refused = test.run(arguments).refused(2, words);
        assert!(test.run_ids().is_empty(), "nothing was started\n{refused}");
    }
}

#[test]
fn d_06_m_n4_the_same_task_twice_on_a_day_gets_a_number() {
    let test = Test::new().play("");
    let first = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let second = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(second.id, format!("{}-2", first.id));
    let (date, slug) = first.id.split_at(11);
    assert!(
        date.chars().all(|c| c.is_ascii_digit() || c == '-') && slug == "add-a-line-to-the-app",
        "{}",
        first.id
    );
    for task in ["../../etc", "ÄÖÜ 任务 🎉", "\u{1b}[31mred\u{202e}", &"long ".repeat(1_000), "-rf --agent"]
    {
        let arguments = test.arguments("placeholder", &["--dry-run"]);
        let mut arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        arguments.remove(1);
        arguments.extend(["--", task]);
        let mut with_json = arguments.clone();
        with_json.insert(1, "--json");
        let planned = test.run(&with_json).ended("dry_run", "dry_run", 0);
        let safe = planned.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
        assert!(safe && planned.id.len() <= 11 + 48 + 4, "{task}: {}", planned.id);
    }
}

#[test]
fn agents_can_be_given_one_by_one() {
    let test = Test::new().play("");
    let script = test.base().join("agents/other.sh");
    fs::write(&script, format!("#!/bin/sh\n{SIGN}echo OTHER-GUARDIAN\nprintf 'VERDICT: APPROVED\\nFINDINGS: 0\\n\\nSTATUS: DONE\\n' | sign\n")).unwrap();
    let spec = format!("guardian=cmd:sh '{}'", script.display());
    let merged = test.go(&["--auto-merge", "--agent-for", &spec]).ended("merged", "approved", 0);
    assert!(merged.artifact("check-guardian.md").contains("OTHER-GUARDIAN"));
}

#[test]
fn no_answer_opens_a_run_that_waits_for_none() {
    let test = Test::new().play("");
    test.run(&["answer", "2026-01-01-x", "yes"]).refused(2, &["2026-01-01-x"]);
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    test.run(&["resume", &waiting.id]).refused(2, &["archeflow merge"]);
}
