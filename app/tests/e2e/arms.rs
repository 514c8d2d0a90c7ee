//! Teams without a plan or a review, and configuration folders, through whole runs.

use archeflow_host::eval::arms;

use crate::harness::{Test, review};

/// Writes a built-in arm beside the repository, as an evaluation does.
fn arm(test: &Test, name: &str) -> String {
    for (path, bytes) in arms::find(name).unwrap().files {
        let place = test.base().join("arm").join(path);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, bytes).unwrap();
    }
    test.base().join("arm").to_str().unwrap().to_owned()
}

#[test]
fn ev_75_a_single_agent_lands_by_its_tests_alone() {
    let test = Test::new().play("");
    let folder = arm(&test, "single");
    let merged = test.go(&["--config", &folder, "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.sent(), ["maker/work"], "{merged}");
    let brief = &merged.briefs("maker")[0];
    assert!(brief.contains("You are a software developer") && !brief.contains("PROPOSED"), "{brief}");
    let stopped = Test::new().without_preflight().tests("false").play("");
    let folder = arm(&stopped, "single");
    stopped.go(&["--config", &folder, "--auto-merge"]).ended("stopped", "tests_failed", 13);
}

#[test]
fn ev_76_without_a_plan_all_feedback_goes_to_the_maker() {
    let design =
        "src/app.txt:3 | CRITICAL | design | FOUND the third line is misplaced | FIXED-SO | `src/app.txt:3`";
    let scenes =
        review("self-reviewer cycle=1", "REJECTED", &[design]) + &review("self-reviewer", "APPROVED", &[]);
    let test = Test::new().play(&scenes);
    let folder = arm(&test, "self-review");
    let merged = test.go(&["--config", &folder, "--auto-merge"]).ended("merged", "approved", 0);
    let sent = ["maker/work", "self-reviewer/work", "maker/work", "self-reviewer/work"];
    assert_eq!(merged.sent(), sent, "{merged}");
    assert!(merged.briefs("maker")[1].contains("FOUND the third line"), "{merged}");
    let brief = &merged.briefs("self-reviewer")[0];
    assert!(
        brief.contains(crate::harness::TASK) && brief.contains("DIFFED") && brief.contains("SUMMED"),
        "{brief}"
    );
}
