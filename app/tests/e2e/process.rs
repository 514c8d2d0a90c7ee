//! Shadows of the process, checkpoints and full briefs: what goes wrong between the agents, and what is really done about
//! it (AF-140..AF-147, AF-150, AF-154, AF-156).

use serde_json::json;

use crate::harness::{Outcome, Test, each, proposal, review, says};
use crate::shadows::{NO_ECHO, actions, falls};

/// One shadow of the process, in a play in which it shows up in two cycles.
struct Muddle {
    shadow: &'static str,
    trigger: &'static str,
    action: &'static str,
    target: &'static str,
    config: &'static str,
    scenes: String,
    /// What must have been done about it.
    done: fn(&Test, &Outcome),
}

const FIRST: &str = "src/app.txt:1 | WARNING | reliability | First line breaks empty input parsing | Guard it | `src/app.txt:1`";

fn muddles() -> Vec<Muddle> {
    vec![
        Muddle {
            shadow: "tunnel_vision",
            trigger: "category",
            action: "correct",
            target: "sage",
            config: NO_ECHO,
            scenes: review(
                "guardian cycle=1",
                "REJECTED",
                &[
                    FIRST,
                    "tests/check_test.sh:1 | INFO | reliability | Case is brittle | Mend | `tests/check_test.sh:1`",
                    "src/app.txt:9 | INFO | reliability | Ninth line is fragile | Mend | `src/app.txt:9`",
                ],
            ) + &review(
                "guardian",
                "REJECTED",
                &[
                    "src/app.txt:5 | WARNING | design | Fifth value overflows its counter | Widen | `src/app.txt:5`",
                    "src/app.txt:6 | INFO | design | Sixth value is odd | Mend | `src/app.txt:6`",
                    "tests/check_test.sh:1 | INFO | design | Case is lonely | Mend | `tests/check_test.sh:1`",
                ],
            ),
            done: |_, run| {
                assert_eq!(run.sent().iter().filter(|sent| *sent == "sage/correct").count(), 1, "{run}");
                let brief = &run.briefs("sage")[1];
                assert!(brief.contains("Attention is stuck in one place"), "{brief}");
                assert!(brief.contains("all 3 findings are of one category, reliability"), "{brief}");
            },
        },
        Muddle {
            shadow: "echo_chamber",
            trigger: "duplicate_findings",
            action: "replace",
            target: "guardian",
            config: "",
            scenes: review("guardian cycle=1 purpose=work", "REJECTED", &[FIRST])
                + &review("skeptic cycle=1", "REJECTED", &[FIRST])
                + &review("guardian cycle=1 purpose=replace", "APPROVED", &[])
                + &review("guardian", "REJECTED", &[OTHER])
                + &review("skeptic", "REJECTED", &[OTHER]),
            done: |_, run| {
                let brief = &run.briefs("guardian")[1];
                assert!(brief.contains("Look where the others do not"), "{brief}");
                assert!(brief.contains("2 of 2 findings were raised by another reviewer too"), "{brief}");
                assert!(!brief.contains("First line breaks"), "the first opinion is not shown: {brief}");
            },
        },
        Muddle {
            shadow: "gold_plating",
            trigger: "gold_plating",
            action: "correct",
            target: "maker",
            config: NO_ECHO,
            scenes: review(
                "guardian cycle=1",
                "REJECTED",
                &[
                    "src/app.txt:1 | CRITICAL | quality | Counter overflows at the window edge | Widen it | Output: overflow",
                ],
            ) + &review(
                "guardian cycle=2",
                "REJECTED",
                &[
                    "tests/check_test.sh:1 | CRITICAL | quality | Empty record loses its header | Keep it | Output: no header",
                ],
            ) + &polishing("cycle=2 purpose=work", "helper variables nicely renamed: Fixed")
                + &polishing("cycle=2 purpose=correct", "Counter overflows at the window edge: Fixed")
                + &polishing("cycle=3 purpose=work", "comments lined up prettily: Fixed"),
            done: |_, run| {
                let brief = &run.briefs("maker")[2];
                assert!(brief.contains("Fix the CRITICALs first"), "{brief}");
                assert!(brief.contains("The Maker fixed 1 thing nobody had to fix"), "{brief}");
                assert!(brief.contains("helper variables nicely renamed"), "its own answer: {brief}");
            },
        },
        Muddle {
            shadow: "analysis_paralysis",
            trigger: "plan_ratio",
            action: "correct",
            target: "",
            config: "system_shadows:\n  analysis_paralysis:\n    plan_floor_seconds: 0\n    plan_ratio: 1\n  echo_chamber:\n    fast_consensus: off\n",
            scenes: review("guardian cycle=1", "REJECTED", &[FIRST])
                + &slow("explorer")
                + &slow("creator cycle=2"),
            done: |_, run| {
                assert_eq!(run.times("explorer"), 1, "no research in the second cycle\n{run}");
                assert_eq!(run.times("creator"), 2, "{run}");
            },
        },
        Muddle {
            shadow: "cargo_cult",
            trigger: "cargo_cult",
            action: "correct",
            target: "m-001",
            config: NO_ECHO,
            scenes: review("guardian cycle=1", "REJECTED", &[FIRST])
                + &review("guardian", "REJECTED", &[OTHER]),
            done: |_, run| {
                for who in ["creator", "maker", "guardian"] {
                    let briefs = run.briefs(who);
                    assert!(
                        briefs[0].contains("m-001") && briefs[0].contains("m-002"),
                        "{who}: {}",
                        briefs[0]
                    );
                    assert!(
                        !briefs[1].contains("m-001") && briefs[1].contains("m-002"),
                        "{who}: {}",
                        briefs[1]
                    );
                }
            },
        },
        Muddle {
            shadow: "scope_creep",
            trigger: "double",
            action: "correct",
            target: "maker",
            config: "shadows:\n  rogue:\n    outside_files: off\nsystem_shadows:\n  echo_chamber:\n    fast_consensus: off\n",
            scenes: review("guardian cycle=1", "REJECTED", &[FIRST])
                + "== maker purpose=correct ==\nsh rm -f src/extra*\ncommit Take it back\nsay <<END\nBack to the plan.\n\nSTATUS: DONE\nEND\n\n"
                + "== maker ==\nsh for n in 1 2 3; do echo \"$ARCHEFLOW_CYCLE\" > \"src/extra$n.txt\"; done\n"
                + "sh echo \"cycle $ARCHEFLOW_CYCLE\" >> src/app.txt\nsh echo \"$ARCHEFLOW_CYCLE\" >> tests/check_test.sh\n"
                + "commit Do more\nsay <<END\nAnd more.\n\nall pass\n\nSTATUS: DONE\nEND\n\n",
            done: |_, run| {
                let brief = &run.briefs("maker")[1];
                assert!(brief.contains("Go back to the scope of the proposal"), "{brief}");
                assert!(
                    brief.contains("5 files changed and 2 planned: more than 2 times as many"),
                    "{brief}"
                );
            },
        },
    ]
}

const OTHER: &str =
    "src/app.txt:7 | WARNING | quality | Empty record loses its header | Keep it | `src/app.txt:7`";

/// A Maker that says what became of earlier findings.
fn polishing(when: &str, prior: &str) -> String {
    format!(
        "== maker {when} ==\nsh echo \"cycle $ARCHEFLOW_CYCLE $ARCHEFLOW_ATTEMPT\" >> src/app.txt\n\
         sh echo \"$ARCHEFLOW_CYCLE $ARCHEFLOW_ATTEMPT\" >> tests/check_test.sh\ncommit Go on\n\
         say <<END\n## Summary\n\nA line.\n\n## Prior issues\n\n- {prior}\n\n## Tests\n\nall pass\n\nSTATUS: DONE\nEND\n\n"
    )
}

/// Somebody who plans for longer than anybody does, with the words of a healthy one.
fn slow(who: &str) -> String {
    let said = if who.starts_with("explorer") {
        says(who, "## Recommendation\n\nAppend a line.\n\nSTATUS: DONE")
    } else {
        proposal(who, ["0.9", "0.9", "0.9"])
    };
    said.replace(" ==\nsay", " ==\nsleep 8000\nsay")
}

#[test]
fn af_147_m_c25_a_shadow_of_the_process_is_acted_upon_and_then_asked_about() {
    each(muddles(), |row| {
        let test = Test::new().play(&row.scenes).config(row.config);
        if row.shadow == "cargo_cult" {
            test.run(&["memory", "add", "First line breaks empty input parsing"]);
            test.run(&["memory", "add", "Empty record loses its header"]);
        }
        let waiting = test.go(&["--workflow", "thorough", "--auto-merge"]);
        let waiting = waiting.ended("awaiting_answer", "system_shadow", 10);
        let seen = waiting.events("shadow.detected");
        assert_eq!(
            actions(&waiting),
            [format!("system {}", row.action), "system escalate".to_owned()],
            "{waiting}"
        );
        assert_eq!((&seen[0]["shadow"], &seen[0]["trigger"]), (&json!(row.shadow), &json!(row.trigger)));
        assert_eq!(seen[0]["target"].as_str().unwrap_or_default(), row.target, "{waiting}");
        assert!(seen[0]["measured"].is_u64() && seen[0]["threshold"].is_u64(), "{waiting}");
        assert_eq!((&seen[1]["count"], &seen[1]["count_in_cycle"]), (&json!(2), &json!(1)), "{waiting}");
        (row.done)(&test, &waiting);
        let question = &waiting.json["question"];
        assert_eq!(question["kind"], "shadow", "{waiting}");
        let words = question["question"].as_str().unwrap_or_default();
        let again = format!("{} again, after it was acted upon once", row.shadow.replace('_', " "));
        assert!(words.to_lowercase().contains(&again) && words.contains("'go on' lets it pass"), "{words}");
        let went_on = test.run(&["answer", &waiting.id, "go on"]);
        let lines = went_on.journal.len();
        assert!(lines > waiting.journal.len() + 2 && went_on.json["reason"] != "system_shadow", "{went_on}");
        let why = test.run(&["show", &waiting.id, "--why"]).stdout;
        assert!(why.contains("AF-147") && why.contains(row.trigger), "{why}");
        if row.shadow == "cargo_cult" {
            let kept =
                test.read(".archeflow/memory/lessons.jsonl") + &test.read(".archeflow/memory/archive.jsonl");
            assert_eq!(kept.matches("\"ineffective\":1").count(), 2, "{kept}\n{went_on}");
        }
    });
}

#[test]
fn af147_the_third_time_stops_softly() {
    let categories = ["reliability", "design", "quality"];
    let all_alike = |cycle: usize, kind: &str| {
        let rows: Vec<String> = [("WARNING", 1), ("INFO", 5), ("INFO", 9)]
            .iter()
            .map(|(severity, line)| {
                let at = line + cycle;
                format!("src/app.txt:{at} | {severity} | {kind} | Line {at} is {kind} {cycle} | Mend | `src/app.txt:{at}`")
            })
            .collect();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        review(&format!("guardian cycle={cycle}"), "REJECTED", &rows)
    };
    let scenes: String = categories.iter().zip(1..).map(|(kind, cycle)| all_alike(cycle, kind)).collect();
    let test = Test::new().play(&scenes).config(NO_ECHO);
    let waiting = test.go(&["--workflow", "thorough"]).ended("awaiting_answer", "system_shadow", 10);
    let words = "Look at the tests too";
    let third = test.run(&["answer", &waiting.id, words]).ended("wiggum_break", "system_shadow", 10);
    assert!(third.briefs("maker").last().unwrap().contains(words), "told to everybody\n{third}");
    assert_eq!(actions(&third), ["system correct", "system escalate", "system break"], "{third}");
    assert_eq!(third.events("wiggum.break")[0]["hard"], json!(false), "{third}");
    let page = third.artifact("wiggum-break.md");
    assert!(page.contains("**Tunnel vision 3 times in this run, a systemic issue: all 3 findings"), "{page}");
}

#[test]
fn af141_agreement_that_comes_too_fast_is_looked_at_by_an_adversary() {
    let adverse = review("guardian purpose=replace", "REJECTED", &[FIRST]);
    let test = Test::new().play(&adverse);
    let merged = test.go(&["--workflow", "thorough", "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(actions(&merged), ["system replace"], "{merged}");
    let seen = merged.events("shadow.detected")[0];
    assert_eq!((&seen["shadow"], &seen["trigger"]), (&json!("echo_chamber"), &json!("fast_consensus")));
    let brief = &merged.briefs("guardian")[1];
    assert!(
        brief.contains("Review again as an adversary") && !brief.contains("## Your earlier answer"),
        "{brief}"
    );
    assert_eq!(merged.json["cycles"], 2, "what the adversary found counts\n{merged}");
    assert!(merged.briefs("creator")[1].contains("First line breaks"), "{merged}");
}

#[test]
fn af144_three_looks_of_the_explorer_are_enough_research() {
    let explorer = falls().into_iter().find(|fall| fall.who == "explorer").unwrap();
    let scenes = explorer.sick("purpose=work", "SICK")
        + &explorer.sick("purpose=correct", "SICK")
        + &review("guardian cycle=1", "REJECTED", &[FIRST]);
    let test = Test::new().play(&scenes).config(NO_ECHO);
    let merged = test.go(&["--workflow", "standard", "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(actions(&merged), ["explorer correct", "explorer replace", "system correct"], "{merged}");
    assert_eq!(merged.json["cycles"], 2);
    assert_eq!(merged.times("explorer"), 3, "none in the second cycle\n{merged}");
    assert!(merged.stderr.contains("The Explorer was sent 3 times in this cycle"), "{merged}");
}

#[test]
fn af146_what_every_run_leaves_becomes_an_item_to_do() {
    let test = Test::new()
        .play(&review("guardian", "REJECTED", &[FIRST]))
        .config("system_shadows:\n  cargo_cult: off\n");
    for _ in 0..2 {
        let left = test.go(&["--unattended"]).ended("stopped", "max_cycles", 14);
        assert_eq!((actions(&left), test.read(".archeflow/queue.md")), (vec![], String::new()));
    }
    let third = test.go(&["--unattended"]).ended("stopped", "max_cycles", 14);
    assert_eq!(actions(&third), ["system note"], "{third}");
    assert!(third.stderr.contains("3 WARNINGs left open by runs of this project"), "{third}");
    let queue = test.read(".archeflow/queue.md");
    let item =
        format!("- [ ] Clean up the 3 warnings that runs left open (noticed in run {}) | standard", third.id);
    assert_eq!(queue.trim_end(), item);
}

#[test]
fn af154_a_trend_below_half_for_two_cycles_stops_softly() {
    let row = |n: u32, kind: &str, words: &str| {
        format!("src/app.txt:{n} | WARNING | {kind} | {words} | Mend it | `src/app.txt:{n}`")
    };
    let rows = [
        row(1, "reliability", "first line breaks parser"),
        row(2, "security", "second value overflows counter"),
        row(3, "quality", "empty record loses header"),
        row(4, "testing", "unicode name truncates label"),
        row(5, "design", "timeout leaves stale socket"),
        row(6, "consistency", "duplicate keys hide defaults"),
        row(7, "dependency", "pinned package lacks maintainer"),
    ];
    let pick = |from: usize, to: usize| rows[from..to].iter().map(String::as_str).collect::<Vec<_>>();
    let scenes = review("guardian cycle=1", "REJECTED", &pick(0, 1))
        + &review("guardian cycle=2", "REJECTED", &pick(1, 3))
        + &review("guardian cycle=3", "REJECTED", &pick(3, 7));
    let config = format!("{NO_ECHO}max_cycles:\n  thorough: 5\nboundaries:\n  rising_cycles: 0\n");
    let test = Test::new().play(&scenes).config(&config);
    let broke = test.go(&["--workflow", "thorough"]).ended("wiggum_break", "converged_stop_diverging", 10);
    assert_eq!(broke.events("wiggum.break")[0]["hard"], json!(false));
    assert_eq!(broke.json["cycles"], 3);
}

#[test]
fn af150_a_checkpoint_says_where_things_stand_and_stops_when_quality_falls() {
    let other =
        "src/app.txt:9 | WARNING | design | Ninth value overflows its counter | Widen | `src/app.txt:9`";
    let config = format!("{NO_ECHO}boundaries:\n  checkpoint_cycles: 1\n  rising_cycles: 0\n");
    let better = review("guardian cycle=1", "REJECTED", &[FIRST]);
    let test = Test::new().play(&better).config(&config);
    let merged = test.go(&["--workflow", "standard", "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.events("policy.checkpoint").len(), 2, "{merged}");
    assert!(merged.stderr.contains("1: 1 cycle since the last checkpoint"), "{merged}");
    let center = test.read(".archeflow/control-center.md");
    for words in [
        "# Control center",
        &format!("Run {}: Add a line to the app", merged.id),
        "- Checkpoint 2: 1 cycle since the last checkpoint; continue",
        "- Findings above INFO: 1 after the first cycle, 0 after the last",
        "**Cycle 1**",
        &format!("archeflow resume {}", merged.id),
    ] {
        assert!(center.contains(words), "'{words}' is missing:\n{center}");
    }
    let worse = better + &review("guardian cycle=2", "REJECTED", &[OTHER, other]);
    let test = Test::new().play(&worse).config(&config);
    let broke = test.go(&["--workflow", "thorough", "--auto-merge"]).ended("wiggum_break", "checkpoint", 10);
    assert_eq!(broke.json["cycles"], 2, "no cycle begins after it\n{broke}");
    assert_eq!(broke.events("wiggum.break")[0]["hard"], json!(false));
    assert!(broke.stderr.contains("quality falls: 1 finding above INFO at first, 2 now"), "{broke}");
    assert!(test.read(".archeflow/control-center.md").contains("quality falls"), "{broke}");
    test.run(&["continue", &broke.id, "--one-more-cycle"]).ended("merged", "approved", 0);
}

#[test]
fn af156_too_many_findings_become_themes() {
    let kinds = ["quality", "testing", "consistency"];
    let found = |n: usize| {
        let (kind, severity) = (kinds[n % 3], if n < 2 { "CRITICAL" } else { "WARNING" });
        let word = |at: usize| ["alpha", "bravo", "delta", "gamma", "kappa", "lambda", "omega"][at % 7];
        let said = format!("{}{} {}{} case{n}", word(n), n, word(n + 3), n * 7);
        format!("src/f{n}.txt:1 | {severity} | {kind} | {said} | Mend it | Output: {n}")
    };
    let files: String = (0..21).map(|n| format!("sh echo f > src/f{n}.txt\n")).collect();
    let maker = format!(
        "== maker cycle=1 ==\n{files}sh echo t >> tests/check_test.sh\ncommit Many\nsay <<END\nMany.\n\nSTATUS: DONE\nEND\n\n"
    );
    let rows: Vec<String> = (0..21).map(found).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    let scenes = maker + &review("guardian cycle=1", "REJECTED", &rows);
    let test = Test::new().play(&scenes).unshadowed();
    let merged = test.go(&["--workflow", "standard", "--auto-merge"]).ended("merged", "approved", 0);
    let brief = &merged.briefs("maker")[1];
    assert!(brief.contains("21 findings are open, too many to list"), "{brief}");
    for words in ["alpha0 gamma0 case0", "bravo1 kappa7 case1"] {
        assert!(brief.contains(words), "a CRITICAL is told by itself: '{words}'\n{brief}");
    }
    assert!(!brief.contains("delta2"), "{brief}");
    for theme in ["**WARNING** 6 findings of quality in 6 files", "of testing in", "of consistency in"] {
        assert!(brief.contains(theme), "'{theme}' is missing:\n{brief}");
    }
}

#[test]
fn af156_a_brief_that_fills_the_window_loses_its_examples() {
    let window = "models:\n  prices:\n    sonnet:\n      context_window: 1000\n";
    let notes = |outcome: &Outcome| outcome.events("agent.complete")[0].to_string();
    let test = Test::new().play("");
    let roomy = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert!(roomy.briefs("creator")[0].contains("```") && !notes(&roomy).contains("AF-156"), "{roomy}");
    let test = Test::new().play("").config(window);
    let tight = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let brief = &tight.briefs("creator")[0];
    assert!(brief.contains("(example left out)") && !brief.contains("```"), "{brief}");
    assert!(notes(&tight).contains("examples were left out (AF-156)"), "{tight}");
}
