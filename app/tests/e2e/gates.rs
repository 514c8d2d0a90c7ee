//! The gates between phases, and what findings are worth.

use serde_json::json;

use crate::harness::{Test, each, proposal, review, says};

#[test]
fn a2_a_clean_guardian_spares_the_others_but_not_in_the_first_thorough_cycle() {
    let info = "src/app.txt:1 | INFO | quality | A matter of taste | - | `src/app.txt:1`";
    let warning = "src/app.txt:3 | WARNING | reliability | The third line breaks | Guard | `src/app.txt:3`";
    let all = ["guardian", "sage", "skeptic"];
    for (workflow, guardian, reviewers) in [
        ("standard", review("guardian", "APPROVED", &[]), &["guardian"][..]),
        ("standard", review("guardian", "APPROVED", &[info]), &["guardian"]),
        ("standard", review("guardian", "APPROVED", &[warning]), &all),
        ("thorough", review("guardian", "APPROVED", &[]), &["guardian", "sage", "skeptic", "trickster"]),
        // D-02, D-04: no fast path on an answer without a token.
        ("standard", says("guardian", "VERDICT: APPROVED\nFINDINGS: 0"), &all),
    ] {
        let merged = Test::new().unshadowed().play(&guardian).go(&["--workflow", workflow, "--auto-merge"]);
        let merged = merged.ended("merged", "approved", 0);
        let mut sent: Vec<String> = merged
            .events("agent.start")
            .iter()
            .filter(|start| matches!(start["role"].as_str(), Some("gatekeeper" | "reviewer")))
            .map(|start| start["archetype"].as_str().unwrap_or_default().to_owned())
            .collect();
        sent.sort();
        assert_eq!(sent, reviewers, "{workflow}\n{guardian}");
    }
}

#[test]
fn a2_applies_from_the_second_thorough_cycle_on() {
    let row = "src/app.txt:3 | CRITICAL | security | The third line leaks | Remove | `src/app.txt:3`";
    let test = Test::new().play(&review("guardian cycle=1", "REJECTED", &[row]));
    let merged = test.go(&["--workflow", "thorough", "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!((merged.times("guardian"), merged.times("trickster"), merged.times("sage")), (2, 1, 1));
}

#[test]
fn a1_two_criticals_escalate_a_fast_run() {
    let a = "src/app.txt:3 | CRITICAL | security | The third line leaks | Remove | Output: the third line";
    let b = "README.md:1 | CRITICAL | breaking-change | The title changed its meaning | Keep | Output: another title";
    let test = Test::new().play(&review("guardian cycle=1", "REJECTED", &[a, b]));
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.events("workflow.escalated")[0]["rule"], "A1");
    assert_eq!(
        (merged.times("explorer"), merged.times("skeptic"), merged.times("sage")),
        (1, 1, 1),
        "sticky, no A2"
    );
    assert_eq!(merged.json["workflow"], "standard");
}

#[test]
fn a3_low_completeness_makes_a_fast_run_standard() {
    let test = Test::new().play(&proposal("creator attempt=1", ["0.9", "0.4", "0.9"]));
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.sent()[..4], ["creator/work", "explorer/work", "creator/work", "maker/work"]);
    assert!(merged.briefs("creator")[1].contains("EXPLORED"));
    assert_eq!(merged.json["workflow"], "standard");
}

#[test]
fn a3_low_risk_coverage_sends_the_mini_explorer() {
    let test = Test::new().play(&proposal("creator", ["0.9", "0.9", "0.1"]));
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.sent()[..3], ["creator/work", "explorer/research", "maker/work"]);
    assert!(merged.artifact("plan-mini-explorer.md").contains("EXPLORED-RISK"));
    let brief = &merged.briefs("explorer")[0];
    assert!(brief.contains("RISK-NAMED") && !brief.contains("Rationale: asked for"), "{brief}");
    // CL-12: it may fail without stopping the run.
    let scenes = proposal("creator", ["0.9", "0.9", "0.1"]) + "== explorer ==\nexit 1\n\n";
    Test::new().play(&scenes).go(&["--auto-merge"]).ended("merged", "approved", 0);
}

#[test]
fn af_053_m_d9_an_unreadable_confidence_table_asks() {
    let scene = proposal("creator", ["high", "NaN", "90 %"]);
    Test::new().play(&scene).go(&["--auto-merge"]).ended("awaiting_answer", "low_confidence", 10);
}

#[test]
fn af063_no_tests_means_exactly_one_extra_maker_call() {
    let bare = |attempt: &str| {
        format!(
            "== maker{attempt} ==\nsh echo x >> src/app.txt\ncommit More\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n"
        )
    };
    let merged = Test::new().play(&bare("")).go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.sent()[1..3], ["maker/work", "maker/tests"]);
    assert_eq!(merged.times("maker"), 2, "no third call");
    let merged = Test::new().play(&bare(" attempt=1")).go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.times("maker/tests"), 1);
    // In writing nobody asks for tests; without a strategy it is only noted.
    let merged = Test::new()
        .play(&bare(""))
        .go(&["--auto-merge", "--domain", "writing"])
        .ended("merged", "approved", 0);
    assert_eq!(merged.times("maker"), 1);
    let plan =
        proposal("creator", ["0.9", "0.9", "0.9"]).replace("## Test strategy\n\n- it is there\n\n", "");
    let merged = Test::new().play(&(plan + &bare(""))).go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.times("maker"), 1);
    assert!(merged.decided("AF-063")["decision"].as_str().unwrap_or_default().contains("WARNING"));
}

#[test]
fn d05_af073_what_has_no_evidence_counts_as_info() {
    for (row, reason) in [
        ("gone.txt:3 | CRITICAL | reliability | The file breaks | Fix | `gone.txt:3`", "citation_not_found"),
        (
            "src/app.txt:9999 | CRITICAL | reliability | The line breaks | Fix | `src/app.txt:9999`",
            "citation_not_found",
        ),
        (
            "src/app.txt:3 | CRITICAL | reliability | It breaks | Fix | `src/app.txt:3` `let x = unwrap_everything();`",
            "citation_not_found",
        ),
        (
            "src/app.txt | WARNING | reliability | It might be broken somewhere | Fix | ",
            "hedge_without_evidence",
        ),
        ("src/app.txt | WARNING | reliability | It is broken somewhere | Fix | ", "no_evidence"),
        (
            "../../etc/passwd:1 | CRITICAL | reliability | It is read | Fix | `../../etc/passwd:1`",
            "no_evidence",
        ),
    ] {
        let test = Test::new().play(&review("guardian", "REJECTED", &[row]));
        let asked = test.go(&["--auto-merge"]).ended("awaiting_answer", "rejected_without_evidence", 10);
        let downgrades = asked.events("evidence.downgrade");
        assert_eq!(downgrades.len(), 2, "once for each answer\n{row}\n{asked}");
        for downgrade in &downgrades {
            let what = (&downgrade["to"], &downgrade["reason"]);
            assert_eq!(what, (&json!("INFO"), &json!(reason)), "{row}");
        }
        assert!(asked.artifact("check-guardian.md").contains("REJECTED"), "AF-074: the artifact stays");
    }
    // A hedge with evidence counts.
    let row = "src/app.txt:3 | CRITICAL | reliability | It might be broken | Fix | `src/app.txt:3` `line 3`";
    let test = Test::new().play(&review("guardian", "REJECTED", &[row]));
    test.go(&["--auto-merge"]).ended("stopped", "max_cycles", 14);
}

#[test]
fn d05_a_security_critical_without_evidence_is_shown_at_the_merge_question() {
    let row = "src/app.txt | CRITICAL | security | It leaks somewhere | Fix | ";
    let test = Test::new().play(&review("guardian", "REJECTED", &[row]));
    let waiting = test.go(&["--auto-merge"]).ended("awaiting_answer", "rejected_without_evidence", 10);
    let waiting = test.run(&["answer", &waiting.id, "land", "--auto-merge"]);
    let waiting = waiting.ended("awaiting_merge", "security_downgraded", 10);
    assert!(waiting.json["question"]["details"].to_string().contains("It leaks somewhere"), "{waiting}");
    test.run(&["merge", &waiting.id]).ended("merged", "approved", 0);
}

#[test]
fn d_07_m_f14_m_e32_what_the_program_sees_no_model_can_waive() {
    let maker = |actions: &str| {
        format!(
            "== maker ==\nsh echo x >> src/app.txt; mkdir -p tests; echo y >> tests/check_test.sh\n{actions}\ncommit Do it\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n"
        )
    };
    let rows = [
        ("delete tests/old_test.py", "tests_removed"),
        ("sh grep -v assert tests/old_test.py > t; cat t > tests/old_test.py; rm t", "tests_weakened"),
        ("write .github/workflows/ci.yml <<END\non: push\nEND", "ci_changed"),
        ("write .archeflow/config.yaml <<END\nworkflow: fast\nEND", "own_state_changed"),
        ("sh printf 'key = AKIA%s\\n' IOSFODNN7REALKEY >> src/app.txt", "credential"),
        ("sh ln -s /etc/passwd link", "symlink_added"),
        ("sh head -c 2000000 /dev/zero > big.bin", "large_binary"),
        (
            "sh git init -q sub; cd sub; git commit -q --allow-empty -m x; cd ..; git add sub",
            "submodule_changed",
        ),
        // M-E28: a name that must be quoted does not hide what is in the file.
        ("sh printf 'key = AKIA%s\\n' IOSFODNN7REALKEY > 'naïve \"file\".txt'", "credential"),
        ("sh mkdir -p .github/workflows; echo on: push > '.github/workflows/ünï.yml'", "ci_changed"),
        // M-E32: attributes in the change do not blind the program.
        (
            "sh echo '* -diff -text' > .gitattributes; printf 'key = AKIA%s\\n' IOSFODNN7REALKEY > k.txt",
            "credential",
        ),
        (
            "sh echo '* binary' > .gitattributes; printf 'key = AKIA%s\\n' IOSFODNN7REALKEY > k.txt",
            "credential",
        ),
    ];
    each(rows, |(actions, sign)| {
        let test = Test::new().unshadowed().play(&maker(actions));
        test.file("tests/old_test.py", "def test_a():\n    assert add(1, 1) == 2\n");
        test.commit("Tests");
        let stopped = test.go(&["--auto-merge"]).ended("stopped", "max_cycles", 14);
        let raised = stopped.events("finding.raised");
        assert!(raised.iter().any(|raised| raised["sign"] == sign), "{sign}\n{stopped}");
        assert!(stopped.unresolved().iter().all(|finding| finding["source"] == "program"), "{stopped}");
    });
}

#[test]
fn af190_the_pipeline_is_linear_and_shows_its_own_tags() {
    let test = Test::new().play("");
    let merged = test.go(&["--strategy", "pipeline", "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(
        merged.sent(),
        ["creator/work", "maker/work", "guardian/work", "sage/work"],
        "no Skeptic: clean"
    );
    for tag in ["[Plan]", "[Implement]", "[Spec]", "[Quality]", "[Verify]"] {
        assert!(merged.stderr.contains(tag), "AF-192: {tag}\n{merged}");
    }
    assert!(merged.briefs("creator")[0].contains("Mini-reflection"), "AF-051");
}

#[test]
fn af191_a_critical_gets_one_targeted_fix_and_warnings_never_block() {
    let critical = "src/app.txt:3 | CRITICAL | security | The third line leaks | Remove | `src/app.txt:3`";
    let warning = "src/app.txt:3 | WARNING | reliability | The third line is odd | Reword | `src/app.txt:3`";
    let test = Test::new().play(&review("guardian", "REJECTED", &[warning]));
    let merged = test.go(&["--strategy", "pipeline", "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!((merged.times("skeptic"), merged.times("maker")), (1, 1));

    let test = Test::new().play(&review("guardian attempt=1", "REJECTED", &[critical]));
    let merged = test.go(&["--strategy", "pipeline", "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!((merged.times("maker/fix"), merged.times("guardian")), (1, 2));
    assert!(merged.briefs("maker")[1].contains("The third line leaks"));

    let test = Test::new().play(&review("guardian", "REJECTED", &[critical]));
    let stopped = test.go(&["--strategy", "pipeline", "--auto-merge"]);
    assert_eq!((stopped.code, stopped.times("maker/fix")), (14, 1), "exactly one\n{stopped}");
    assert!(stopped.stderr.contains(&format!("archeflow/{}", stopped.id)), "the branch is named");

    // Red tests are a CRITICAL of the program: one fix, then green.
    let test = Test::new().play("").without_preflight().tests("grep -q 'attempt 2' src/app.txt");
    let merged = test.go(&["--strategy", "pipeline", "--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.times("maker/fix"), 1);
}

#[test]
fn cl12_a_reviewer_that_fails_is_gone_without() {
    let row = "src/app.txt:3 | WARNING | reliability | The third line is odd | Reword | `src/app.txt:3`";
    let scenes = review("guardian", "APPROVED", &[row]) + "== sage ==\nexit 1\n\n";
    let merged = Test::new().play(&scenes).go(&["--workflow", "standard", "--auto-merge"]);
    let merged = merged.ended("merged", "approved", 0);
    assert_eq!(merged.times("sage"), 1);
    assert!(merged.events("agent.skipped").iter().any(|skipped| skipped["archetype"] == "sage"));
    assert!(merged.stderr.to_lowercase().contains("sage"), "and it is said");
}

#[test]
fn m_05_a_paper_is_research_and_its_prose_needs_no_tests() {
    let writes = |path: &str| {
        let plan = proposal("creator", ["0.9", "0.9", "0.9"]).replace("src/app.txt", path);
        let work = format!("sh echo x >> {path}\ncommit More\nsay <<END\nDone.\n\nSTATUS: DONE\nEND\n\n");
        format!("{plan}== maker ==\n{work}")
    };
    let test = Test::new().play(&writes("paper/main.tex"));
    test.file("paper/main.tex", "\\section{One}\n");
    test.file("paper/refs.bib", "@book{a, title = {A}}\n");
    test.commit("A paper");
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.decided("AF-004")["decision"], "domain research");
    assert_eq!(merged.times("maker"), 1, "prose is not sent back for tests");
    let merged = Test::new()
        .play(&writes("src/plot.py"))
        .go(&["--auto-merge", "--domain", "research"])
        .ended("merged", "approved", 0);
    assert_eq!(merged.times("maker/tests"), 1, "code is");
}
