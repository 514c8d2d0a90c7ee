//! Simulated agents (`sim:<file>`) through whole runs: what lands, after how many cycles, and that the seed decides.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Outcome, Test, each};

const RIGHT: &str = "echo $(($1 * 2))\n";
const WRONG: &str = "echo $(($1 + 2))\n";

/// A repository with a program that should double a number; the visible test passes for both solutions.
fn repository() -> Test {
    let test = Test::empty("repo").tests("sh tests/run.sh");
    test.file("double.sh", "echo \"$1\"\n");
    test.file("tests/run.sh", "test -n \"$(sh double.sh 2)\"\n");
    test.commit("First commit");
    test
}

/// `archeflow run` with agents of these rates; those that are not given are 0.
fn simulated(test: &Test, seed: u64, maker: &Value, reviewer: &Value, more: &[&str]) -> Outcome {
    let filled = |rates: &Value, keys: &[&str]| -> Value {
        keys.iter().map(|key| ((*key).to_owned(), rates.get(key).cloned().unwrap_or(json!(0)))).collect()
    };
    let setup = json!({
        "v": 1,
        "seed": seed,
        "population": {
            "maker": filled(maker, &["wrong", "fixes", "fixes_unasked", "breaks"]),
            "reviewer": filled(reviewer, &["recall", "false_alarms", "unfounded", "alarm_critical", "rewords", "shadow"]),
        },
        "right": {"double.sh": RIGHT},
        "wrong": {"double.sh": WRONG},
    });
    let file = test.base().join("agents/setup.json");
    fs::write(&file, setup.to_string()).unwrap();
    let agent = format!("sim:{}", file.display());
    let all = [&["--agent", &agent, "--auto-merge", "--unattended"], more].concat();
    let workflow: &[&str] = if more.is_empty() { &["--workflow", "standard"] } else { &[] };
    test.go(&[all.as_slice(), workflow].concat())
}

/// Reviewer, severity, place and words of all findings, in the order of the journal.
fn findings(outcome: &Outcome) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for answer in outcome.events("agent.complete") {
        let list = answer["answer"]["said"]["review"]["findings"].as_array();
        all.extend(list.into_iter().flatten().map(|finding| {
            format!(
                "{} {} {} {}",
                finding["source"], finding["severity"], finding["location"], finding["description"]
            )
        }));
    }
    all.sort();
    all
}

fn cycles(outcome: &Outcome) -> usize {
    outcome.times("maker/work")
}

#[test]
fn ev_102_known_rates_decide_what_lands_and_after_how_many_cycles() {
    each(
        [
            ("found and fixed", json!({"wrong": 1, "fixes": 1}), json!({"recall": 1}), RIGHT, 2),
            ("not found", json!({"wrong": 1}), json!({}), WRONG, 1),
            ("right at once", json!({}), json!({"recall": 1}), RIGHT, 1),
            ("alarms without evidence", json!({}), json!({"false_alarms": 1, "unfounded": 1}), RIGHT, 1),
        ],
        |(what, maker, reviewer, landed, took)| {
            let test = repository();
            let outcome = simulated(&test, 1, &maker, &reviewer, &[]).ended("merged", "approved", 0);
            assert_eq!(
                (test.read("double.sh").as_str(), cycles(&outcome)),
                (landed, took),
                "{what}\n{outcome}"
            );
            assert_eq!(outcome.times("maker"), took, "{what}: nobody is sent back within a cycle\n{outcome}");
        },
    );
}

#[test]
fn ev_103_work_that_stays_wrong_and_right_work_under_alarms_are_held_back() {
    each(
        [
            ("never fixed", json!({"wrong": 1}), json!({"recall": 1})),
            ("alarms with evidence", json!({}), json!({"false_alarms": 1})),
        ],
        |(what, maker, reviewer)| {
            let test = repository();
            let outcome = simulated(&test, 2, &maker, &reviewer, &[]);
            assert_ne!(outcome.json["status"], "merged", "{what}\n{outcome}");
            assert_eq!(
                (cycles(&outcome), test.read("double.sh").as_str()),
                (2, "echo \"$1\"\n"),
                "{what}\n{outcome}"
            );
        },
    );
}

#[test]
fn ev_104_the_seed_decides_and_nothing_else() {
    let run = |seed| {
        let test = repository();
        let rates = json!({"recall": 0.5, "false_alarms": 0.5, "unfounded": 0.5, "rewords": 0.5});
        let outcome =
            simulated(&test, seed, &json!({"wrong": 0.5, "fixes": 0.5}), &rates, &["--workflow", "thorough"]);
        (findings(&outcome), outcome.sent(), test.read("double.sh"))
    };
    let first = run(5);
    assert_eq!(first, run(5));
    assert!((6..12).any(|seed| run(seed).0 != first.0), "no seed changes the findings");
}

#[test]
fn ev_105_reviewers_in_their_shadow_are_seen() {
    let test = repository();
    let outcome = simulated(&test, 1, &json!({}), &json!({"shadow": 1}), &[]);
    let seen = outcome.events("shadow.detected");
    assert!(!seen.is_empty() && seen.iter().all(|seen| seen["shadow"] == "paranoid"), "{outcome}");
    assert_eq!(outcome.json["reason"], "shadow_strikes", "{outcome}");
    // Where nobody looks for shadows, the same claims are taken for findings.
    let test = repository().unshadowed();
    let outcome = simulated(&test, 1, &json!({}), &json!({"shadow": 1}), &[]);
    assert!(outcome.events("shadow.detected").is_empty(), "{outcome}");
    assert_ne!(outcome.json["status"], "merged", "{outcome}");
}

#[test]
fn ev_106_a_setup_that_is_missing_or_wrong_is_refused_before_anything_runs() {
    let test = repository();
    let file = test.base().join("agents/setup.json");
    let agent = format!("sim:{}", file.display());
    test.go(&["--agent", &agent]).refused(2, &["setup.json", "sim:<file>"]);
    for (text, part) in [
        ("{", "not a setup of simulated agents"),
        (r#"{"v": 1, "seed": 1, "population": {}, "right": {"../a": ""}, "wrong": {}}"#, "'../a' leads out"),
        (
            r#"{"v": 1, "seed": 1, "population": {"maker": {"wrong": 7}}, "right": {"a": ""}, "wrong": {}}"#,
            "population: maker.wrong is 7; give a decimal from 0 to 1",
        ),
    ] {
        fs::write(&file, text).unwrap();
        test.go(&["--agent", &agent]).refused(2, &["setup.json", part]);
    }
    test.go(&["--agent", "sim:"]).refused(2, &["is not allowed"]);
    assert!(test.run_ids().is_empty());
}
