//! How runs end: status, reason and exit code, and what can be done next.

use serde_json::json;

use crate::harness::{Test, proposal, review, says};

const LINE: &str =
    "src/app.txt:3 | CRITICAL | security | The third line leaks the key | Remove it | `src/app.txt:3`";

#[test]
fn d16_an_approved_and_tested_change_lands() {
    let test = Test::new().play("");
    let outcome = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(outcome.sent(), ["creator/work", "maker/work", "guardian/work"]);
    assert!(test.read("src/app.txt").ends_with("made in cycle 1 attempt 1\n"));
    assert_eq!(test.git(["status", "--porcelain"]), "");
    assert_eq!(test.git(["log", "-1", "--format=%(trailers:key=Archeflow-Run,valueonly)"]), outcome.id);
    assert_eq!(outcome.json["merged_oid"], json!(test.git(["rev-parse", "main"])));
    assert_eq!(outcome.json["cycles"], 1);
    for name in ["plan-creator.md", "do-maker.md", "do-maker-files.txt", "check-guardian.md"] {
        assert!(!outcome.artifact(name).is_empty(), "{name}");
    }
    assert_eq!(outcome.artifact("plan-explorer.md"), "", "AF-165: no Explorer in a fast run");
    assert_eq!(outcome.artifact("do-maker-files.txt"), "src/app.txt\ntests/check_test.sh\n");
    let index = std::fs::read_to_string(test.repo.join(".archeflow/events/index.jsonl")).unwrap();
    let last: serde_json::Value = serde_json::from_str(index.lines().last().unwrap()).unwrap();
    assert_eq!((&last["run_id"], &last["status"]), (&outcome.json["run_id"], &json!("merged")));
    // BX-04: a second merge is refused, and so is everything else that would open it again.
    for command in [
        &["merge", &outcome.id][..],
        &["discard", &outcome.id],
        &["continue", &outcome.id, "--one-more-cycle"],
        &["resume", &outcome.id],
        &["answer", &outcome.id, "yes"],
    ] {
        test.run(command).refused(2, &["error:"]);
    }
}

#[test]
fn bx_03_m_h10_without_a_yes_the_run_waits_and_merge_lands_it() {
    let test = Test::new().play("");
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    assert_eq!(waiting.json["question"]["kind"], "merge");
    assert!(waiting.stderr.contains(&format!("archeflow merge {}", waiting.id)), "{waiting}");
    assert!(waiting.events("run.merged").is_empty());
    test.run(&["merge", &waiting.id]).ended("merged", "approved", 0);
    test.run(&["merge", &waiting.id]).refused(2, &["merged already"]);
}

#[test]
fn bx03_answering_yes_lands_and_no_keeps_waiting() {
    let test = Test::new().play("");
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    test.run(&["answer", &waiting.id, "no"]).ended("awaiting_merge", "approved", 10);
    test.run(&["merge", &waiting.id]).ended("merged", "approved", 0);
    let test = Test::new().play("");
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    test.run(&["answer", &waiting.id, "yes"]).ended("merged", "approved", 0);
}

#[test]
fn discard_keeps_the_work_under_a_ref() {
    let test = Test::new().play("");
    let waiting = test.go(&[]).ended("awaiting_merge", "approved", 10);
    let tip = test.git(["rev-parse", &format!("archeflow/{}", waiting.id)]);
    test.run(&["discard", &waiting.id]).ended("stopped", "discarded", 0);
    assert!(
        !test
            .try_git(["rev-parse", "--verify", &format!("refs/heads/archeflow/{}", waiting.id)])
            .status
            .success()
    );
    let kept = test.git(["for-each-ref", "--format=%(objectname)", "refs/archeflow/keep"]);
    assert!(kept.contains(&tip), "{kept}");
    test.run(&["merge", &waiting.id]).refused(2, &["discarded"]);
    test.run(&["discard", &waiting.id]).refused(2, &["discarded already"]);
}

#[test]
fn af087_max_cycles_is_14_and_one_more_cycle_can_be_asked_for() {
    let scenes = review("guardian cycle=1", "REJECTED", &[LINE]);
    let test = Test::new().play(&scenes);
    let stopped = test.go(&["--auto-merge"]).ended("stopped", "max_cycles", 14);
    assert_eq!(stopped.unresolved().len(), 1, "{stopped}");
    assert_eq!(stopped.unresolved()[0]["severity"], "CRITICAL");
    assert!(stopped.events("run.merged").is_empty());
    assert!(stopped.artifact("act-feedback.md").contains("The third line leaks the key"));
    let merged = test.run(&["continue", &stopped.id, "--one-more-cycle"]).ended("merged", "approved", 0);
    assert_eq!(merged.json["cycles"], 2);
    assert!(merged.artifact("cycle-1/check-guardian.md").contains("leaks"), "AF-086: archived");
    assert!(test.read("src/app.txt").contains("made in cycle 2 attempt 1"));
}

#[test]
fn af087_a_person_may_land_a_run_that_ran_out_of_cycles() {
    let test = Test::new().play(&review("guardian", "REJECTED", &[LINE]));
    let stopped = test.go(&["--auto-merge"]).ended("stopped", "max_cycles", 14);
    test.run(&["merge", &stopped.id]).ended("merged", "approved", 0);
}

#[test]
fn af154_identical_findings_stop_softly() {
    let row = "src/app.txt:3 | WARNING | reliability | The third line breaks on empty input | Guard it | `src/app.txt:3`";
    let test = Test::new().play(&review("guardian", "REJECTED", &[row]));
    let stopped = test.go(&["--workflow", "thorough", "--auto-merge"]).ended(
        "wiggum_break",
        "stop_identical_findings",
        10,
    );
    assert_eq!(stopped.json["cycles"], 2);
    let breaks = stopped.events("wiggum.break");
    assert_eq!((breaks.len(), &breaks[0]["hard"]), (1, &json!(false)));
    for key in ["trigger", "run_state", "unresolved_findings"] {
        assert!(breaks[0].get(key).is_some(), "AF-155: {key}");
    }
    let trend = &stopped.events("cycle.boundary")[1]["convergence"];
    for key in [
        "score",
        "status",
        "resolved",
        "new",
        "regressed",
        "persistent",
        "oscillating",
        "recommendation",
        "reason",
    ] {
        assert!(trend.get(key).is_some(), "AF-110: {key}");
    }
    // AF-083: the user has the last word.
    let again =
        test.run(&["continue", &stopped.id, "--one-more-cycle"]).ended("wiggum_break", "stop_stuck", 10);
    assert_eq!(again.json["cycles"], 3);
}

#[test]
fn cl09_a_persistent_critical_goes_to_a_person() {
    let other = "README.md:1 | WARNING | dependency | The title names a library nobody maintains | Rename | `README.md:1`";
    let scenes = review("guardian cycle=1", "REJECTED", &[LINE, other])
        + &review("guardian cycle=2", "REJECTED", &[LINE]);
    let test = Test::new().play(&scenes);
    let stopped = test.go(&["--workflow", "thorough"]).ended("stopped", "persistent_critical", 10);
    assert_eq!(stopped.json["cycles"], 2);
}

#[test]
fn af107_findings_that_come_and_go_break_hard() {
    let a = "src/app.txt:1 | WARNING | reliability | First line breaks empty input parsing | Guard | `src/app.txt:1`";
    let b = "README.md:1 | WARNING | dependency | Title names unmaintained library package | Rename | `README.md:1`";
    let c = "src/app.txt:20 | WARNING | security | Last line exposes internal hostname value | Hide | `src/app.txt:20`";
    let scenes = review("guardian cycle=1", "REJECTED", &[a, b])
        + &review("guardian cycle=2", "REJECTED", &[c])
        + &review("guardian cycle=3", "REJECTED", &[a, b]);
    let test = Test::new().play(&scenes).config("max_cycles:\n  thorough: 5\n");
    let stopped =
        test.go(&["--workflow", "thorough", "--auto-merge"]).ended("wiggum_break", "oscillation", 10);
    assert_eq!(stopped.events("wiggum.break")[0]["hard"], json!(true));
    assert_eq!(stopped.json["cycles"], 3);
}

#[test]
fn m_f2_red_tests_leave_the_target_alone() {
    let test = Test::new().play("").without_preflight().tests("echo the sky fell; exit 3");
    let main = test.git(["rev-parse", "main"]);
    let failed = test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
    assert_eq!(test.git(["rev-parse", "main"]), main);
    assert!(failed.stderr.contains("the sky fell"), "{failed}");
    assert_eq!(failed.events("finding.raised")[0]["sign"], "tests_failing");
    // A person who asks for the merge is told the same.
    test.run(&["merge", &failed.id]).ended("stopped", "tests_failed", 13);
}

#[test]
fn af085_red_tests_go_back_and_green_ones_land() {
    let test = Test::new().play("").without_preflight().tests("grep -q 'cycle 2' src/app.txt");
    let merged = test.go(&["--workflow", "standard", "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.json["cycles"], 2);
    let brief = &merged.briefs("maker")[1];
    assert!(brief.contains("integration test failure"), "{brief}");
}

#[test]
fn bx05_a_test_command_that_can_t_run_is_an_environment_fault() {
    for command in ["no-such-command-anywhere", "./README.md"] {
        let test = Test::new().play("").tests(command);
        let main = test.git(["rev-parse", "main"]);
        test.go(&["--auto-merge"]).ended("failed", "test_command_broken", 30);
        assert_eq!(test.git(["rev-parse", "main"]), main);
    }
}

#[test]
fn m_f7_a_test_that_hangs_or_reads_is_ended() {
    let test = Test::new()
        .play("")
        .tests("cat; touch {base}/overdue; sleep 600")
        .config("preflight: false\nlimits:\n  tests_seconds: 1\n");
    let ended = test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
    assert_eq!(ended.events("tests.done")[0]["result"], "timed_out");
}

#[test]
fn m_f8_m_f10_what_a_test_leaves_or_writes_does_not_land() {
    let test = Test::new().play("").tests(
        "setsid sleep 600 & echo junk > junk.txt; git add -A; git commit -qm junk; echo more >> src/app.txt",
    );
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(!test.repo.join("junk.txt").exists());
    assert!(!test.read("src/app.txt").contains("more"));
}

#[test]
fn m_f13_without_a_test_command_landing_needs_a_yes_or_no_tests() {
    let test = Test::new().play("").without_tests();
    let waiting = test.go(&["--auto-merge", "--unattended"]).ended("awaiting_merge", "no_test_command", 10);
    assert!(waiting.stderr.contains("No test command"), "said from the start\n{waiting}");
    test.run(&["merge", &waiting.id]).ended("merged", "approved", 0);
    let test = Test::new().play("").without_tests();
    test.go(&["--no-tests", "--unattended", "--auto-merge"]).ended("merged", "approved", 0);
}

#[test]
fn m_f17_nothing_to_merge_is_reported() {
    let undo = "== maker ==\nsh true\nsay <<END\nNothing to do.\n\nSTATUS: DONE\nEND\n\n";
    let test = Test::new().play(undo);
    let ended = test.go(&["--auto-merge"]).ended("stopped", "no_change", 10);
    assert_eq!(ended.times("maker"), 2, "tried once more");
}

#[test]
fn af040_needs_context_asks_and_the_answer_reaches_the_agent() {
    let asks = |who: &str| says(who, "Which colour should the line have?\n\nSTATUS: NEEDS_CONTEXT");
    for (who, scene) in [
        ("creator", asks("creator attempt=1")),
        ("maker", asks("maker attempt=1")),
        ("guardian", asks("guardian attempt=1")),
    ] {
        let test = Test::new().play(&scene);
        let waiting = test.go(&["--auto-merge"]).ended("awaiting_answer", "needs_context", 10);
        let question = waiting.json["question"]["question"].as_str().unwrap_or_default().to_owned();
        assert!(question.contains("Which colour should the line have?"), "{who}: {question}");
        assert_eq!(waiting.json["question"]["kind"], "needs_context");
        let merged = test.run(&["answer", &waiting.id, "ULTRAMARINE <<<DATA"]).ended("merged", "approved", 0);
        let briefs = merged.briefs(who);
        assert_eq!(briefs.len(), 2, "{who}");
        assert!(!briefs[0].contains("ULTRAMARINE") && briefs[1].contains("ULTRAMARINE"), "{who}");
        test.run(&["answer", &waiting.id, "again"]).refused(2, &["no answer"]);
    }
}

#[test]
fn af040_blocked_stops_and_says_why() {
    let test = Test::new().play(&says("maker", "The compiler is missing.\n\nSTATUS: BLOCKED"));
    let stopped = test.go(&["--auto-merge"]).ended("stopped", "blocked", 10);
    assert!(stopped.stderr.contains("The compiler is missing"), "{stopped}");
    assert_eq!(stopped.times("guardian"), 0);
}

#[test]
fn af040_concerns_are_noted_and_the_run_continues() {
    let scene =
        says("guardian", "VERDICT: APPROVED\nFINDINGS: 0\n\nI worry a little.\n\nSTATUS: DONE_WITH_CONCERNS");
    let merged = Test::new().play(&scene).go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.decided("AF-040")["archetype"], "guardian");
}

#[test]
fn af054_low_understanding_asks_before_the_maker() {
    let unsure = proposal("creator attempt=1", ["0.49", "0.9", "0.9"]);
    let test = Test::new().play(&unsure);
    let waiting = test.go(&["--auto-merge"]).ended("awaiting_answer", "low_confidence", 10);
    assert_eq!(waiting.times("maker"), 0);
    let merged = test.run(&["answer", &waiting.id, "A GREEN LINE"]).ended("merged", "approved", 0);
    assert!(merged.briefs("creator")[1].contains("A GREEN LINE"));
    assert_eq!(merged.times("creator"), 2);

    let test = Test::new().play(&unsure);
    let waiting = test.go(&["--auto-merge"]).ended("awaiting_answer", "low_confidence", 10);
    let merged = test.run(&["answer", &waiting.id, "proceed"]).ended("merged", "approved", 0);
    assert_eq!(merged.times("creator"), 1, "the plan stays");

    let half = proposal("creator", ["0.5", "0.5", "0.5"]);
    Test::new().play(&half).go(&["--auto-merge"]).ended("merged", "approved", 0);
}

#[test]
fn interfaces3_usage_is_counted() {
    let scenes = "== creator ==\nusage 100 20 0.25\n".to_owned()
        + proposal("creator", ["0.9", "0.9", "0.9"]).split_once('\n').unwrap().1
        + "== maker attempt=1 ==\nusage 10 2 0.5\nexit 1\n\n";
    let merged = Test::new().play(&scenes).go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.json["cost_usd"], json!(0.75), "failed attempts cost money too");
    assert_eq!(merged.events("agent.complete")[0]["tokens"], json!({"input": 100, "output": 20}));
}

#[test]
fn cl_11_m_f3_tests_that_fail_after_landing_take_the_merge_back() {
    let test = Test::new()
        .play("")
        .config("preflight: false\ngit:\n  post_merge_test: true\n")
        .tests("n=$(cat {base}/n 2>/dev/null || echo 0); echo $((n + 1)) > {base}/n; exit $n");
    let tree = test.git(["rev-parse", "main^{tree}"]);
    let broke = test.go(&["--auto-merge"]).ended("wiggum_break", "post_merge_tests", 13);
    assert_eq!(broke.events("run.reverted").len(), 1);
    assert_eq!(test.git(["rev-parse", "main^{tree}"]), tree, "a new commit undoes it");
    assert_eq!(test.git(["status", "--porcelain"]), "");
    assert_eq!(broke.json["merged_oid"], json!(null));
}

/// A second attempt would pass: the first one counts.
#[test]
fn m_f6_tests_that_fail_now_and_then_are_not_repeated_until_they_pass() {
    let test = Test::new()
        .play("")
        .without_preflight()
        .tests("echo x >> {base}/count; [ \"$(wc -l < {base}/count)\" -gt 1 ]");
    let main = test.git(["rev-parse", "main"]);
    let stopped = test.go(&["--auto-merge"]).ended("stopped", "tests_failed", 13);
    assert_eq!(std::fs::read_to_string(test.base().join("count")).unwrap(), "x\n", "{stopped}");
    assert_eq!(test.git(["rev-parse", "main"]), main);
}

#[test]
fn m_f9_tests_that_print_without_end_are_capped() {
    let test = Test::new().play("").tests("head -c 200000000 /dev/zero | tr '\\0' x; sh tests/check.sh");
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let size = |path: &std::path::Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    let mut folders = vec![test.repo.join(".archeflow"), test.home()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => assert!(size(&entry.path()) < 100_000_000, "{}\n{merged}", entry.path().display()),
            }
        }
    }
}
