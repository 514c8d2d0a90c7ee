//! Archetypes in their shadows, and what is done about it: the ladder from the answer to the break (AF-130..AF-138).

use serde_json::{Value, json};

use crate::harness::{Outcome, Test, each, inside_and_outside, review};

/// Everybody agrees at once in these plays, which would be a shadow of its own.
pub(crate) const NO_ECHO: &str = "system_shadows:\n  echo_chamber:\n    fast_consensus: off\n";

/// One archetype that falls into its shadow.
pub(crate) struct Fall {
    pub(crate) who: &'static str,
    shadow: &'static str,
    trigger: &'static str,
    measured: u64,
    threshold: u64,
    workflow: &'static str,
    /// The sick answer; `MARK` in it stands for the attempt.
    answer: String,
    /// What the sick agent does before it answers, and a healthy one to make up for it.
    deed: &'static str,
    undo: &'static str,
    /// What the correction asks for.
    asks: &'static str,
    /// What comes of it besides the ladder.
    after: &'static [&'static str],
}

fn table(count: usize, rows: &str) -> String {
    format!(
        "MARK\n\nVERDICT: REJECTED\nFINDINGS: {count}\n\n\
         | Location | Severity | Category | Description | Fix | Evidence |\n|---|---|---|---|---|---|\n{rows}\n"
    )
}

pub(crate) fn falls() -> Vec<Fall> {
    let base = Fall {
        who: "",
        shadow: "",
        trigger: "",
        measured: 0,
        threshold: 0,
        workflow: "thorough",
        answer: String::new(),
        deed: "",
        undo: "",
        asks: "",
        after: &[],
    };
    let files: String = (1..=16).map(|n| format!("- `src/part{n}.rs`\n")).collect();
    let doubts: String = ["users", "bots", "time zones", "leap days", "moons", "tides", "taxes", "fonts"]
        .iter()
        .zip(1..)
        .map(|(what, n)| format!("| src/app.txt:{n} | WARNING | design | What about {what}? |  |  |\n"))
        .collect();
    let claims: String =
        [("quality", "has no header"), ("design", "has two blank lines"), ("testing", "is bad")]
            .iter()
            .zip(1..)
            .map(|((kind, what), n)| {
                format!("| src/app.txt:{n} | CRITICAL | {kind} | The part {what}. | Mend it. |  |\n")
            })
            .collect();
    let elsewhere =
        "| README.md:1 | WARNING | quality | The title is dull. | Write a better one. | Line 1 |\n";
    vec![
        Fall {
            who: "explorer",
            shadow: "rabbit_hole",
            trigger: "files",
            measured: 16,
            threshold: 15,
            answer: format!("MARK\n\n{files}"),
            asks: "Stop exploring.",
            after: &["system correct"],
            ..base
        },
        Fall {
            who: "creator",
            shadow: "over_architect",
            trigger: "abstractions",
            measured: 3,
            threshold: 2,
            workflow: "fast",
            answer: "## Architecture\n\nMARK We create a `LineManager`, a `RuleManager` and a `RateProvider`.\n\n\
                     ## Files\n\n- `src/app.txt`\n- `tests/check_test.sh`\n\n## Alternatives\n\n- none: rejected\n\
                     - two: rejected\n\n## Test strategy\n\n- it is there\n\n## Confidence\n\n| Axis | Score |\n\
                     |---|---|\n| Task understanding | 0.9 |\n| Solution completeness | 0.9 |\n\
                     | Risk coverage | 0.9 |\n\n## Risks\n\n- It could break.\n"
                .to_owned(),
            asks: "Plan for the present order of magnitude only.",
            ..base
        },
        Fall {
            who: "maker",
            shadow: "rogue",
            trigger: "outside_files",
            measured: 1,
            threshold: 1,
            workflow: "fast",
            answer: "## Summary\n\nMARK I gave the theme a cleaner structure while I was in there.\n\n## Tests\n\nall pass\n"
                .to_owned(),
            deed: "write src/theme.txt <<FILE\nMARK\nFILE\nsh echo one >> tests/check_test.sh\ncommit Tidy up\n",
            undo: "sh rm -f src/theme.txt\nsh echo line >> src/app.txt\nsh echo two >> tests/check_test.sh\ncommit Add it\n",
            asks: "take back every file it does not list",
            ..base
        },
        Fall {
            who: "guardian",
            shadow: "paranoid",
            trigger: "criticals",
            measured: 3,
            threshold: 3,
            workflow: "fast",
            answer: table(3, &claims),
            asks: "whether a senior engineer would block the change",
            ..base
        },
        Fall {
            who: "skeptic",
            shadow: "paralytic",
            trigger: "challenges",
            measured: 8,
            threshold: 7,
            answer: table(8, &doubts),
            asks: "Rank your challenges",
            ..base
        },
        Fall {
            who: "trickster",
            shadow: "false_alarm",
            trigger: "untouched",
            measured: 1,
            threshold: 1,
            answer: table(1, elsewhere),
            asks: "Delete every finding outside of the diff",
            ..base
        },
        Fall {
            who: "sage",
            shadow: "bureaucrat",
            trigger: "outside",
            measured: 1,
            threshold: 1,
            answer: table(1, elsewhere),
            asks: "somebody will stumble over in six months",
            ..base
        },
    ]
}

impl Fall {
    /// A scene in which the archetype is sick.
    pub(crate) fn sick(&self, when: &str, mark: &str) -> String {
        let scene = format!(
            "== {} {when} ==\n{}say <<END\n{}\nSTATUS: DONE\nEND\n\n",
            self.who, self.deed, self.answer
        );
        scene.replace("MARK", mark)
    }

    fn healed(&self, when: &str) -> String {
        if self.undo.is_empty() {
            return String::new();
        }
        format!(
            "== {} {when} ==\n{}say <<END\nDone as planned.\n\n## Tests\n\nall pass\n\nSTATUS: DONE\nEND\n\n",
            self.who, self.undo
        )
    }

    fn started<'a>(&self, outcome: &'a Outcome) -> Vec<&'a Value> {
        let starts = outcome.events("agent.start").into_iter();
        starts.filter(|start| start["archetype"] == self.who).collect()
    }
}

/// The lines `shadow.detected`: who, and what was done.
pub(crate) fn actions(outcome: &Outcome) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let seen = outcome.events("shadow.detected");
    seen.iter().map(|seen| format!("{} {}", word(&seen["archetype"]), word(&seen["action"]))).collect()
}

#[test]
fn af138_who_falls_into_a_shadow_is_corrected_then_replaced_then_lands() {
    each(falls(), |fall| {
        let who = fall.who;
        let scenes = fall.sick("purpose=work", "SICK-ONE")
            + &fall.sick("purpose=correct attempt=2", "SICK-TWO")
            + &fall.healed("purpose=replace");
        let test = Test::new().play(&scenes).config(NO_ECHO);
        let merged = test.go(&["--workflow", fall.workflow, "--auto-merge"]).ended("merged", "approved", 0);
        let ladder = [format!("{who} correct"), format!("{who} replace")];
        let expected: Vec<&str> =
            ladder.iter().map(String::as_str).chain(fall.after.iter().copied()).collect();
        assert_eq!(actions(&merged), expected, "{merged}");
        for (seen, count) in merged.events("shadow.detected").iter().zip(1..=2) {
            let told = (&seen["shadow"], &seen["trigger"], &seen["measured"], &seen["threshold"]);
            let wanted =
                (&json!(fall.shadow), &json!(fall.trigger), &json!(fall.measured), &json!(fall.threshold));
            assert_eq!(told, wanted, "{merged}");
            assert_eq!((&seen["count"], &seen["count_in_cycle"]), (&json!(count), &json!(count)), "{merged}");
        }
        let starts = fall.started(&merged);
        let sent: Vec<_> = starts.iter().map(|start| (&start["purpose"], &start["attempt"])).collect();
        // D6: the fresh Guardian is asked about the CRITICALs of the one before, since they name places in the change.
        let asked = (who == "guardian").then_some((json!("correct"), json!(4)));
        let ladder = [("work", 1), ("correct", 2), ("replace", 3)];
        let ladder = ladder.into_iter().map(|(purpose, attempt)| (json!(purpose), json!(attempt)));
        let wanted: Vec<_> = ladder.chain(asked).collect();
        assert_eq!(
            sent,
            wanted.iter().map(|(purpose, attempt)| (purpose, attempt)).collect::<Vec<_>>(),
            "{merged}"
        );
        let briefs = merged.briefs(who);
        let (inside, outside) = inside_and_outside(&briefs[1]);
        assert!(outside.contains("Your earlier answer was not taken."), "{who}: {outside}");
        assert!(inside.contains("Your answer shows the shadow of your role"), "{who}: {inside}");
        assert!(inside.contains(fall.asks), "{who}: {inside}");
        assert!(
            inside.contains("SICK-ONE") && !outside.contains("SICK-ONE"),
            "{who}: its own answer, fenced"
        );
        let (inside, outside) = inside_and_outside(&briefs[2]);
        assert!(outside.contains("## You replace another agent"), "{who}: {outside}");
        assert!(!outside.contains("Your earlier answer") && !inside.contains("Your answer shows"), "{who}");
        assert!(inside.contains(fall.asks), "{who}: {inside}");
        assert!(!briefs[2].contains("SICK-ONE") && !briefs[2].contains("SICK-TWO"), "{who}: {}", briefs[2]);
        let why = test.run(&["show", &merged.id, "--why"]).stdout;
        for words in [
            format!("{} {} against {}", fall.trigger, fall.measured, fall.threshold),
            "detection 1 in the run, 1 in the cycle".to_owned(),
            "detection 2 in the run, 2 in the cycle".to_owned(),
            "=> correct: ".to_owned(),
            "=> replace: ".to_owned(),
        ] {
            assert!(why.contains("AF-138") && why.contains(&words), "'{words}' is not said:\n{why}");
        }
    });
}

#[test]
fn af153_the_third_strike_in_a_cycle_breaks_hard_and_keeps_the_work() {
    each(falls(), |fall| {
        let who = fall.who;
        let test = Test::new().play(&fall.sick("", "SICK")).config(NO_ECHO);
        let broke = test.go(&["--workflow", fall.workflow, "--auto-merge"]).ended(
            "wiggum_break",
            "shadow_strikes",
            10,
        );
        let ladder = [format!("{who} correct"), format!("{who} replace"), format!("{who} break")];
        assert_eq!(actions(&broke), ladder, "{broke}");
        assert_eq!(broke.times(who), 3, "no fourth strike");
        let last = broke.events("shadow.detected")[2];
        assert_eq!((&last["count"], &last["count_in_cycle"]), (&json!(3), &json!(3)));
        assert_eq!(broke.events("wiggum.break")[0]["hard"], json!(true));
        let page = broke.artifact("wiggum-break.md");
        let name = fall.shadow.replace('_', " ");
        for words in [
            "Hard break",
            "| shadow_strikes |",
            &format!("- Shadow of the {}, {name}: ", who[..1].to_uppercase() + &who[1..]),
            &format!("**The {who} fell into its shadow ({name}) 3 times in this cycle: "),
            "(corrected)",
            "(replaced by a fresh one)",
            "(the run breaks)",
            &format!("archeflow continue {}", broke.id),
            &format!("archeflow discard {}", broke.id),
        ] {
            assert!(page.contains(words), "{who}: the page does not say '{words}':\n{page}");
        }
        if broke.times("maker") > 0 {
            let branch = format!("archeflow/{}", broke.id);
            assert!(page.contains(&format!("branch `{branch}`")), "{who}: {page}");
            let kept = test.git(["diff", "--name-only", &format!("main...{branch}")]);
            assert!(kept.contains("tests/check_test.sh"), "{who}: {kept}");
        }
        assert!(broke.events("run.merged").is_empty(), "{who}");
    });
}

#[test]
fn af138_the_third_time_in_a_run_is_for_a_person() {
    // Once in each of three cycles, with a clean answer in between.
    let claims = falls().into_iter().find(|fall| fall.who == "guardian").unwrap();
    let open = [
        "src/app.txt:1 | WARNING | reliability | First line breaks empty input parsing | Guard it | `src/app.txt:1`",
        "src/app.txt:2 | WARNING | design | Second value overflows its counter | Widen it | `src/app.txt:2`",
    ];
    // The same claims in two cycles would be a CRITICAL that persists.
    let others = claims.sick("cycle=3 purpose=work", "SICK");
    let others =
        others.replace("has no header", "leaks sockets").replace("has two blank lines", "sorts wrongly");
    let others = others.replace("is bad", "ignores signals").replace("The part", "Every caller");
    let others = others.replace("quality", "reliability").replace("design", "performance");
    let scenes = review("guardian cycle=4", "APPROVED", &[])
        + &others
        + &claims.sick("purpose=work", "SICK")
        + &review("guardian cycle=1", "REJECTED", &open[..1])
        + &review("guardian cycle=2", "REJECTED", &open[1..]);
    let config = format!("{NO_ECHO}boundaries:\n  checkpoint_cycles: 50\n");
    let test = Test::new().play(&scenes).config(&config);
    let broke = test.go(&["--workflow", "thorough", "--auto-merge", "--unattended"]);
    let broke = broke.ended("wiggum_break", "shadow_strikes", 10);
    let ladder = ["guardian correct", "guardian replace", "guardian escalate"];
    assert_eq!(actions(&broke), ladder, "{broke}");
    assert_eq!(broke.events("wiggum.break")[0]["hard"], json!(false), "nobody is there: a soft break");
    let page = broke.artifact("wiggum-break.md");
    let told =
        "**The guardian fell into its shadow (paranoid) 3 times in this run, and correcting did not help: ";
    assert!(page.contains(told) && page.contains("Accept the answer as it is"), "{page}");
    let before = broke.events("review.verdict").len();
    let merged = test.run(&["continue", &broke.id, "--one-more-cycle"]).ended("merged", "approved", 0);
    assert_eq!(merged.json["cycles"], 4, "the answer counted, and one more cycle answered to it\n{merged}");
    let counted = merged.events("review.verdict")[before];
    assert_eq!(
        (&counted["archetype"], &counted["verdict"]),
        (&json!("guardian"), &json!("REJECTED")),
        "{merged}"
    );
    assert_eq!(actions(&merged), ladder, "{merged}");
}

#[test]
fn cl03_three_archetypes_in_one_cycle_break_if_so_configured() {
    let sick: String = falls()
        .iter()
        .filter(|fall| ["explorer", "creator", "guardian"].contains(&fall.who))
        .map(|fall| fall.sick("purpose=work", "SICK"))
        .collect();
    let standard = ["--workflow", "standard", "--auto-merge"];
    let told = Test::new().play(&sick).go(&standard).ended("merged", "approved", 0);
    assert!(told.decided("CL-03")["decision"].as_str().unwrap().contains("broken down"), "{told}");
    let test = Test::new().play(&sick).config("shadows:\n  distinct_breaks: true\n");
    let broke = test.go(&standard).ended("wiggum_break", "shadow_strikes", 10);
    assert_eq!(broke.events("wiggum.break")[0]["hard"], json!(true));
    assert!(broke.artifact("wiggum-break.md").contains("3 archetypes fell into their shadows"), "{broke}");
}

#[test]
fn af137_healthy_agents_cast_no_shadow() {
    let test = Test::new().unaudited();
    let folder = test.base().join("demo");
    let demo = test.run(&["demo", "--quick", "--dir", folder.to_str().unwrap(), "--json"]);
    assert_eq!(demo.json["status"], "merged", "{demo}");
    let artifacts = demo.json["artifacts"].as_str().unwrap();
    let journal = artifacts.replace("/artifacts/", "/events/") + ".jsonl";
    let told = std::fs::read_to_string(journal).unwrap();
    assert!(told.contains("\"run.complete\"") && !told.contains("\"shadow.detected\""), "{demo}");
    for workflow in ["fast", "standard"] {
        let merged = Test::new().play("").go(&["--workflow", workflow, "--auto-merge"]);
        assert_eq!(actions(&merged.ended("merged", "approved", 0)), Vec::<String>::new(), "{workflow}");
    }
}

#[test]
fn shadows_can_be_switched_off_for_one_start() {
    each(falls().into_iter().filter(|fall| fall.who != "guardian"), |fall| {
        let test = Test::new().play(&fall.sick("cycle=1", "SICK")).unshadowed();
        let run = test.go(&["--workflow", fall.workflow, "--auto-merge"]);
        assert_eq!(actions(&run), Vec::<String>::new(), "{}\n{run}", fall.who);
        let again = run.sent().iter().any(|sent| sent.ends_with("/correct") || sent.ends_with("/replace"));
        // What is beside the change is asked about, shadows or no shadows.
        let asked = matches!(fall.who, "trickster" | "sage");
        assert!(run.times(fall.who) > 0 && again == asked, "{}\n{run}", fall.who);
    });
}
