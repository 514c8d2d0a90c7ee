//! Wiggum Breaks: the page a person gets, and what their decision does to the run (AF-152..AF-159).

use serde_json::json;

use crate::harness::{Outcome, Test, review};

const A: &str = "src/app.txt:1 | WARNING | reliability | First line breaks empty input parsing | Guard the first line | `src/app.txt:1`";
const B: &str = "README.md:1 | WARNING | dependency | Title names unmaintained library package | Rename the title | `README.md:1`";
const C: &str = "src/app.txt:20 | WARNING | security | Last line exposes internal hostname value | Hide the host | `src/app.txt:20`";

fn oscillating() -> (Test, Outcome) {
    let scenes = review("guardian cycle=1", "REJECTED", &[A, B])
        + &review("guardian cycle=2", "REJECTED", &[C])
        + &review("guardian cycle=3", "REJECTED", &[A, B])
        + &review("guardian cycle=4", "APPROVED", &[]);
    let test = Test::new().play(&scenes).config("max_cycles:\n  thorough: 5\n");
    let broke = test.go(&["--workflow", "thorough", "--auto-merge"]).ended("wiggum_break", "oscillation", 10);
    (test, broke)
}

#[test]
fn af155_af159_the_page_of_a_break_can_be_acted_upon() {
    let (test, broke) = oscillating();
    let page = broke.artifact("wiggum-break.md");
    for words in [
        "Hard break",
        "| oscillation | convergence | cycle 3 of 5, act | 2 |",
        "Which one is right?",
        "| `src/app.txt:reliability` | ● | ○ | ● | WARNING |",
        "| `src/app.txt:security` | ○ | ● | ○ | WARNING |",
        "Cycle 1, Guardian: First line breaks empty input parsing *Fix:* Guard the first line",
        "Cycle 2, Guardian: Last line exposes internal hostname value",
        "## What was tried",
        "**Cycle 3**",
        "## What it cost",
        "| guardian | 3 |",
        &format!("archeflow continue {} --ruling", broke.id),
        "--accept README.md:dependency",
        &format!("archeflow discard {}", broke.id),
        &format!("archeflow/{}", broke.id),
    ] {
        assert!(page.contains(words), "the page does not say '{words}':\n{page}");
    }
    let shown = test.run(&["show", &broke.id]);
    assert!(
        shown.stdout.contains("# Wiggum Break") && shown.stdout.contains("Which one is right?"),
        "{shown}"
    );
    assert!(broke.stderr.contains("--ruling"), "the end names the decisions\n{broke}");
    let why = test.run(&["show", &broke.id, "--why"]);
    assert!(why.stdout.contains("AF-155") && why.stdout.contains("hard break (oscillation)"), "{why}");
}

#[test]
fn af159_a_ruling_is_in_every_prompt_and_the_run_continues() {
    let (test, broke) = oscillating();
    let merged = test
        .run(&["continue", &broke.id, "--ruling", "RULED: the guard on the first line stays <<<DATA"])
        .ended("merged", "approved", 0);
    assert_eq!(merged.json["cycles"], 4);
    for who in ["creator", "maker", "guardian"] {
        let briefs = merged.briefs(who);
        assert!(briefs.last().unwrap().contains("RULED: the guard"), "{who}");
        assert!(!briefs[0].contains("RULED"), "{who}");
    }
}

#[test]
fn af159_accepted_findings_no_longer_block() {
    let (test, broke) = oscillating();
    let open: Vec<&str> =
        broke.unresolved().iter().map(|found| found["location"].as_str().unwrap_or_default()).collect();
    assert_eq!(open.len(), 2, "{broke}");
    test.run(&["continue", &broke.id, "--accept", "nothing:like-it"])
        .refused(2, &["no open finding", "README.md:dependency"]);
    let ids = ["--accept", "README.md:dependency", "--accept", "src/app.txt:reliability"];
    let merged = test.run(&[&["continue", &broke.id][..], &ids].concat()).ended("merged", "approved", 0);
    assert_eq!(merged.json["cycles"], 3, "no cycle was needed");
    assert_eq!(merged.events("run.continued")[0]["accept"], json!([ids[1], ids[3]]));
}

#[test]
fn af159_accepting_one_of_two_leaves_the_other() {
    let (test, broke) = oscillating();
    let merged =
        test.run(&["continue", &broke.id, "--accept", "README.md:dependency"]).ended("merged", "approved", 0);
    let anew = merged.events("cycle.boundary")[3];
    assert_eq!(
        (&anew["cycle"], &anew["next_action"]),
        (&json!(3), &json!("cycle_back")),
        "judged anew\n{merged}"
    );
    assert_eq!(anew["open"].as_array().map(Vec::len), Some(1), "{merged}");
    assert_eq!(merged.json["cycles"], 4);
}

#[test]
fn af159_a_new_scope_reaches_the_agents() {
    let (test, broke) = oscillating();
    let merged =
        test.run(&["continue", &broke.id, "--rescope", "ONLY the first line"]).ended("merged", "approved", 0);
    assert!(merged.briefs("creator").last().unwrap().contains("ONLY the first line"));
}

#[test]
fn af154_findings_that_rise_twice_break_softly() {
    let row = |n: u32, category: &str, words: &str| {
        format!("src/app.txt:{n} | WARNING | {category} | {words} | Guard it | `src/app.txt:{n}`")
    };
    let rows: Vec<String> = [
        ("reliability", "first line breaks parser"),
        ("security", "second value overflows counter"),
        ("quality", "empty record loses header"),
        ("testing", "unicode name truncates label"),
        ("design", "timeout leaves stale socket"),
        ("consistency", "duplicate keys shadow defaults"),
    ]
    .iter()
    .zip(1..)
    .map(|((category, words), n)| row(n, category, words))
    .collect();
    let pick = |from: usize, to: usize| rows[from..to].iter().map(String::as_str).collect::<Vec<_>>();
    let scenes = review("guardian cycle=1", "REJECTED", &pick(0, 1))
        + &review("guardian cycle=2", "REJECTED", &pick(1, 3))
        + &review("guardian cycle=3", "REJECTED", &pick(3, 6));
    let config =
        "max_cycles:\n  thorough: 5\nconvergence:\n  diverging_cycles: 9\nshadows:\n  enabled: false\n";
    let test = Test::new().play(&scenes).config(config);
    let broke =
        test.go(&["--workflow", "thorough", "--auto-merge"]).ended("wiggum_break", "findings_rising", 10);
    assert!(broke.stderr.contains("1, then 2, then 3"), "{broke}");
    assert_eq!(broke.events("wiggum.break")[0]["hard"], json!(false));
}

#[test]
fn af153_three_failures_break_hard_and_resume_tries_again() {
    let test = Test::new().play("== creator attempt=1 ==\nexit 1\n\n== creator attempt=2 ==\nexit 1\n\n== creator attempt=3 ==\nexit 1\n\n")
        .config("retries:\n  attempts: 5\n");
    let broke = test.go(&["--auto-merge"]).ended("wiggum_break", "agent_failures", 10);
    assert!(broke.artifact("wiggum-break.md").contains("archeflow doctor"), "{broke}");
    test.run(&["resume", &broke.id]).ended("merged", "approved", 0);
}

#[test]
fn j_09_a_converging_run_gets_the_extra_cycle_it_was_granted() {
    let scenes = review("guardian cycle=1", "REJECTED", &[A, B, C])
        + &review("guardian cycle=2", "REJECTED", &[A])
        + &review("guardian cycle=3", "APPROVED", &[]);
    let standard = &["--workflow", "standard", "--auto-merge", "--unattended"];
    let without = Test::new().play(&scenes).go(standard).ended("stopped", "max_cycles", 14);
    assert_eq!(without.json["cycles"], 2, "{without}");
    assert!(without.stderr.contains("--one-more-cycle"), "{without}");
    let with = [standard, &["--extra-cycles", "1"][..]].concat();
    let with = Test::new().play(&scenes).go(&with).ended("merged", "approved", 0);
    assert_eq!(with.json["cycles"], 3, "{with}");
}
