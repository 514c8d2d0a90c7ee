//! `archeflow eval run`: trials as real runs with simulated agents, killed and resumed, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Stdio;

use archeflow_core::eval::sim::{SimPopulation, SimShape, expected};
use archeflow_core::eval::{ArmMeasures, EvalMeasure, EvalTrial, SamplingOptions, TrialSet, compare};
use serde_json::{Value, json};

use crate::eval::TinySuite;
use crate::harness::{Outcome, SIGN, Test, signal};
use crate::user::{processes, wait_until};

/// A Maker that is wrong half of the time, and reviewers that notice most of it.
const MIXED: &str = "maker:\n  wrong: 0.5\n  fixes: 0.8\nreviewer:\n  recall: 0.7\n";

impl TinySuite {
    fn population(&self, name: &str, yaml: &str) -> String {
        let path = self.test.base().join(name);
        fs::write(&path, yaml).unwrap();
        format!("sim:{}", path.display())
    }

    fn folder(&self) -> PathBuf {
        self.test.base().join("evaluation")
    }

    fn arguments(&self, agent: &str, arms: &str, more: &[&str]) -> Vec<String> {
        let (root, folder) = (self.root.display().to_string(), self.folder().display().to_string());
        let words = ["eval", "run", &root, "--agent", agent, "--arms", arms, "--output", &folder];
        words.iter().chain(more).map(|word| (*word).to_owned()).collect()
    }

    pub(crate) fn evaluate(&self, agent: &str, arms: &str, more: &[&str]) -> Outcome {
        let words = self.arguments(agent, arms, more);
        self.test.run(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The lines of `trials.jsonl` without what differs from run to run, by task, arm and repeat.
    pub(crate) fn trials(&self) -> BTreeMap<(String, String, u64), Value> {
        let text = fs::read_to_string(self.folder().join("trials.jsonl")).unwrap_or_default();
        let mut found = BTreeMap::new();
        for line in text.lines() {
            let mut trial: Value = serde_json::from_str(line).unwrap();
            trial["seconds"] = json!(0);
            let word = |name: &str| trial[name].as_str().unwrap().to_owned();
            let key = (word("task"), word("arm"), trial["repeat"].as_u64().unwrap());
            assert!(found.insert(key, trial.clone()).is_none(), "written twice: {line}");
        }
        found
    }
}

fn share(outcome: &Outcome, arm: &str, measure: &str) -> f64 {
    let arms = outcome.json["arms"].as_array().unwrap();
    let found = arms.iter().find(|one| one["arm"] == arm).unwrap();
    found["figures"][measure]["mean"].as_f64().unwrap()
}

#[test]
fn ev_140_trials_are_real_runs_judged_by_tests_that_no_agent_sees() {
    let suite = TinySuite::of(Test::new().unaudited());
    let before = listed(&suite.root);
    let wrong = suite.population("wrong.yaml", "maker:\n  wrong: 1\n  fixes: 1\nreviewer:\n  recall: 1\n");
    let outcome = suite.evaluate(&wrong, "single,self-review", &["--repeat", "2", "--json"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    assert_eq!((&outcome.json["trials"], &outcome.json["planned"]), (&json!(4), &json!(4)), "{outcome}");
    // Alone it lands what is wrong; a reviewer that always notices sends it back.
    assert!((share(&outcome, "single", "wrongly_landed") - 1.0).abs() < 1e-9, "{outcome}");
    assert!((share(&outcome, "self-review", "solved") - 1.0).abs() < 1e-9, "{outcome}");
    assert!((share(&outcome, "self-review", "cycles") - 2.0).abs() < 1e-9, "{outcome}");
    for trial in suite.trials().values() {
        let reviewers = trial["reviewers"].as_object().unwrap();
        match trial["arm"].as_str() {
            Some("single") => assert!(reviewers.is_empty(), "{trial}"),
            _ => assert!(
                reviewers.values().all(|one| *one == json!({"confirmed": 1, "refuted": 0, "missed": 0})),
                "{trial}"
            ),
        }
        assert!(
            trial["money"].as_f64().unwrap() > 0.0 && trial["tokens"]["input"].as_u64().unwrap() > 0,
            "{trial}"
        );
    }
    assert_eq!(listed(&suite.root), before, "the suite was changed");
    let left: Vec<_> = fs::read_dir(suite.folder().join("trials")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(fs::read_dir(suite.folder().join("journals")).unwrap().count(), 4);
}

#[test]
fn r_13_an_agent_that_would_be_shown_the_suite_is_refused() {
    let mut suite = TinySuite::of(Test::new().unaudited());
    let nest = suite.test.base().join("nest");
    fs::create_dir_all(&nest).unwrap();
    fs::rename(&suite.root, nest.join("suite")).unwrap();
    suite.root = nest.join("suite");
    let script = |path: PathBuf| {
        fs::write(&path, "echo hello\n").unwrap();
        format!("cmd:sh {}", path.display())
    };
    let apart = suite.test.base().join("apart");
    fs::create_dir_all(&apart).unwrap();
    std::os::unix::fs::symlink(suite.root.join("agent.sh"), apart.join("link.sh")).unwrap();
    let within = script(suite.root.join("agent.sh"));
    let above = script(nest.join("agent.sh"));
    let link = format!("cmd:sh {}", apart.join("link.sh").display());
    for agent in [within, above, link] {
        let refused = suite.evaluate(&agent, "single", &["--repeat", "1", "--yes"]);
        assert_eq!(refused.code, 2, "{agent}: {refused}");
        assert!(refused.stderr.contains("the agent would be shown"), "{agent}: {refused}");
        assert!(!suite.folder().exists(), "{agent}: nothing was begun");
    }
}

#[test]
fn ev_141_traps_are_tried_on_what_was_landed() {
    let suite = TinySuite::of(Test::new().unaudited());
    // The trap of the suite is the constant 4, as the wrong solution has it here.
    suite.write("double/trap/double.sh", "echo 4\n");
    let wrong = suite.population("wrong.yaml", "maker:\n  wrong: 1\n");
    let outcome = suite.evaluate(&wrong, "single", &["--repeat", "1", "--json"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    let trials = suite.trials();
    let trial = trials.values().next().unwrap();
    assert_eq!(
        (&trial["traps_set"], &trial["traps_fallen"]),
        (&json!(["constant"]), &json!(["constant"])),
        "{trial}"
    );
    let right = TinySuite::of(Test::new().unaudited());
    let agent = right.population("right.yaml", "maker:\n  wrong: 0\n");
    right.evaluate(&agent, "single", &["--repeat", "1"]);
    let trials = right.trials();
    assert_eq!(trials.values().next().unwrap()["traps_fallen"], json!([]));
}

#[test]
fn ev_142_killed_at_any_time_and_resumed_it_comes_to_the_same() {
    let whole = TinySuite::of(Test::new().unaudited());
    whole.another("again");
    let more = ["--repeat", "2", "--jobs", "2", "--seed", "7"];
    let outcome = whole.evaluate(&whole.population("p.yaml", MIXED), "single,self-review", &more);
    assert_eq!(outcome.code, 0, "{outcome}");
    let cut = TinySuite::of(Test::new().unaudited());
    cut.another("again");
    let agent = cut.population("p.yaml", MIXED);
    let words = cut.arguments(&agent, "single,self-review", &more);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    for already in [0, 1, 4] {
        // Killed while a run of a trial is under way.
        let mut program = cut.test.command(env!("CARGO_BIN_EXE_archeflow"));
        let program = program.args(&words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut program = program.spawn().unwrap();
        let begun = || cut.trials().len() >= already && any_journal(&cut);
        wait_until(|| begun() || cut.trials().len() == 8, || "no trial began".to_owned());
        signal(&program, "KILL");
        program.wait().unwrap();
    }
    let outcome = cut.evaluate(&agent, "single,self-review", &more);
    assert_eq!(outcome.code, 0, "{outcome}");
    assert_eq!(cut.trials(), whole.trials());
    let folder = cut.folder().display().to_string();
    let left = || {
        let all =
            processes("cmdline").into_iter().map(|(_, words)| String::from_utf8_lossy(&words).into_owned());
        all.filter(|words| words.contains(&folder)).collect::<Vec<_>>()
    };
    wait_until(|| left().is_empty(), || format!("{:?} are left", left()));
}

fn any_journal(suite: &TinySuite) -> bool {
    let trials = fs::read_dir(suite.folder().join("trials")).into_iter().flatten().flatten();
    trials.into_iter().any(|trial| trial.path().join("repo/.archeflow/events/trial.jsonl").exists())
}

#[test]
fn ev_143_everything_that_is_wrong_is_said_at_once_and_nothing_runs() {
    let suite = TinySuite::of(Test::new().unaudited());
    suite.change("double/hidden/run.sh", "= 42", "!= 7");
    let outcome =
        suite.evaluate("sim:fair", "single,sinlge,nowhere.yaml", &["--tasks", "double,tripel", "--json"]);
    assert_eq!(outcome.code, 2, "{outcome}");
    let said = outcome.json["faults"].to_string();
    for words in ["sinlge", "nowhere.yaml", "tripel"] {
        assert!(said.contains(words), "{words} is not in {said}");
    }
    assert!(!suite.folder().exists(), "{outcome}");
    let outcome = suite.evaluate("sim:fair", "single", &["--json"]);
    assert_eq!(outcome.code, 2, "{outcome}");
    assert!(outcome.json["faults"].to_string().contains("the base passes the hidden command"), "{outcome}");
    assert!(!suite.folder().exists(), "{outcome}");
    for (agent, words) in [("sim:nobody", "no population"), ("nonsense", "nonsense")] {
        let suite = TinySuite::of(Test::new().unaudited());
        let outcome = suite.evaluate(agent, "single", &["--repeat", "1", "--yes"]);
        assert_ne!(outcome.code, 0, "{outcome}");
        assert!(outcome.stderr.contains(words), "{outcome}");
        assert!(suite.trials().is_empty(), "{outcome}");
    }
}

#[test]
fn ev_144_trials_can_be_added_and_another_evaluation_is_not_mixed_in() {
    let suite = TinySuite::of(Test::new().unaudited());
    let agent = suite.population("p.yaml", MIXED);
    let first = suite.evaluate(&agent, "single", &["--repeat", "1"]);
    assert_eq!(first.code, 0, "{first}");
    let one = suite.trials();
    for (agent, more, word) in [
        ("sim:fair", &["--repeat", "1"][..], "--agent"),
        (&agent, &["--repeat", "1", "--seed", "9"], "--seed"),
    ] {
        let outcome = suite.evaluate(agent, "single", more);
        assert_eq!(outcome.code, 2, "{outcome}");
        assert!(outcome.stderr.contains(word), "{outcome}");
    }
    let more = suite.evaluate(&agent, "single,self-review", &["--repeat", "2", "--json"]);
    assert_eq!((more.code, &more.json["trials"]), (0, &json!(4)), "{more}");
    let all = suite.trials();
    assert!(one.iter().all(|(key, trial)| all.get(key) == Some(trial)), "{one:?}\n{all:?}");
}

#[test]
fn ev_145_a_budget_ends_an_evaluation_before_it_is_overspent() {
    let suite = TinySuite::of(Test::new().unaudited());
    let agent = suite.population("p.yaml", MIXED);
    // Each trial reserves 1.50, the limit of the task.
    let outcome = suite.evaluate(&agent, "single", &["--repeat", "3", "--budget", "1.60", "--json"]);
    assert_eq!(outcome.code, 11, "{outcome}");
    assert_eq!(outcome.json["ended"], "budget", "{outcome}");
    let spent: f64 = suite.trials().values().map(|trial| trial["money"].as_f64().unwrap()).sum();
    assert!(spent <= 1.6 && outcome.json["trials"].as_u64().unwrap() >= 1, "{outcome}");
    let outcome = suite.evaluate(&agent, "single", &["--repeat", "3", "--budget", "50", "--json"]);
    assert_eq!((outcome.code, &outcome.json["trials"]), (0, &json!(3)), "{outcome}");
}

#[test]
fn ev_146_agents_find_neither_hidden_tests_nor_other_trials() {
    let suite = TinySuite::of(Test::new().unaudited());
    let script = suite.test.base().join("nosy.sh");
    let (root, folder) = (suite.root.display().to_string(), suite.folder().display().to_string());
    // Whatever it finds becomes part of its work.
    fs::write(
        &script,
        format!(
            "{SIGN}for f in {root}/double/hidden/run.sh {root}/double/reference/double.sh {folder}/eval.json; do\n\
             test -e \"$f\" && echo \"seen $f\" >> seen.txt\ndone\necho done >> double.sh\necho x > tests/more.sh\n\
             git add -A; git commit -qm Work\nprintf '## Summary\\n\\nDone.\\n\\n## Tests\\n\\nall pass\\n\\nSTATUS: DONE\\n' | sign\n"
        ),
    )
    .unwrap();
    let agent = format!("cmd:sh {}", script.display());
    let outcome = suite.evaluate(&agent, "single", &["--repeat", "1", "--keep", "--yes"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    let trials = fs::read_dir(suite.folder().join("trials")).unwrap().flatten();
    let repository = trials.map(|trial| trial.path().join("repo")).next().unwrap();
    assert!(
        fs::read_to_string(repository.join("double.sh")).unwrap().contains("done"),
        "nothing landed: {outcome}"
    );
    let seen = fs::read_to_string(repository.join("seen.txt")).unwrap_or_default();
    assert_eq!(seen, "", "{outcome}");
}

/// A client whose account is limited for a second, the first time that it is asked.
const LIMITED: &str = r###"#!/bin/sh
{sign}init='{"type":"system","subtype":"init","session_id":"s","model":"sonnet-9","claude_code_version":"2.1.325"}'
result='"type":"result","subtype":"success","session_id":"s","usage":{"input_tokens":10,"output_tokens":2}'
echo "$init"
if ! [ -e "{base}/asked" ]; then
    : > "{base}/asked"
    printf '%s\n' "{$result,\"is_error\":true,\"terminal_reason\":\"api_error\",\"api_error_status\":429,\"result\":\"You have hit your usage limit. Try again in 1 second.\"}"
    exit 1
fi
echo 'echo $(($1 * 2))' > double.sh
echo 'test "$(sh double.sh 3)" = 6' >> tests/run.sh
printf '%s\n' "{$result,\"is_error\":false,\"result\":\"## Summary\\n\\nDone.\\n\\n## Tests\\n\\nall pass\\n\\nSTATUS: DONE\"}" | sign
"###;

#[test]
fn ev_159_a_trial_whose_provider_was_busy_is_resumed() {
    let suite = TinySuite::of(Test::new().unaudited().unshadowed());
    suite.change("double/task.yaml", "dollars: 1.50", "dollars: 20");
    suite.test.open_base();
    let bin = suite.test.base().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let text = LIMITED.replace("{sign}", SIGN).replace("{base}", &suite.test.base().display().to_string());
    fs::write(bin.join("claude"), text).unwrap();
    fs::set_permissions(bin.join("claude"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let suite = TinySuite { test: suite.test.env("PATH", path), root: suite.root };
    let waits = suite.evaluate("claude", "single", &["--repeat", "1", "--yes"]);
    assert_eq!(waits.code, 10, "{waits}");
    // It is asked again as soon as its account is open.
    let resumed = || suite.evaluate("claude", "single", &["--repeat", "1", "--yes"]).code == 0;
    wait_until(resumed, || format!("it was never resumed\n{waits}"));
    let trials = suite.trials();
    let trial = trials.values().next().unwrap();
    assert_eq!((trials.len(), &trial["end"]), (1, &json!("landed")), "{trial}");
}

/// The share of wrong landings that was recorded when the rules were last changed on purpose, as an interval.
const GUARD: &str = include_str!("../../../evals/guard.json");

/// A regression guard: rules that let more wrong changes land than before fail here, whatever else they improve. If that is
/// wanted, write the new interval into `evals/guard.json` and say why in the commit.
#[test]
fn ev_147_the_rules_let_no_more_wrong_changes_land_than_recorded() {
    let record: Value = serde_json::from_str(GUARD).unwrap();
    let number = |name: &str| record[name].to_string();
    let suite = TinySuite::of(Test::new().unaudited());
    suite.change("double/task.yaml", "dollars: 1.50", "dollars: 5");
    for task in 1..record["tasks"].as_u64().unwrap() {
        suite.another(&format!("double-{task}"));
        suite.change(&format!("double-{task}/task.yaml"), "dollars: 1.50", "dollars: 5");
    }
    // The same agents where reviews are advice only: the guard must notice such a change of rules.
    let arm = suite.test.base().join("advice");
    fs::create_dir_all(arm.join("teams")).unwrap();
    fs::write(arm.join("config.yaml"), "# Reviews are advice.\nteam: advice\n").unwrap();
    let team = "name: advice\nplan: [creator]\ndo: [maker]\ncheck: [guardian]\nexit: always\n";
    fs::write(arm.join("teams/advice.yaml"), team).unwrap();
    let agent = format!("sim:{}", record["population"].as_str().unwrap());
    let arms = format!("full,{}", arm.display());
    let (repeat, seed) = (number("repeats"), number("seed"));
    let outcome = suite.evaluate(&agent, &arms, &["--repeat", &repeat, "--seed", &seed, "--json"]);
    assert_eq!(outcome.code, 0, "{outcome}");
    let high = record["wrongly_landed"]["high"].as_f64().unwrap();
    let (full, advice) =
        (share(&outcome, "full", "wrongly_landed"), share(&outcome, "advice", "wrongly_landed"));
    assert!(full <= high, "{full} of the changes landed wrongly, recorded are at most {high}\n{outcome}");
    assert!(advice > high, "the guard does not notice {advice}\n{outcome}");
    assert!(share(&outcome, "full", "solved") > 0.0, "nothing lands any more\n{outcome}");
}

/// Everything that simulated agents can do, so that all rules have work.
const UNRULY: &str = "maker:\n  wrong: 0.6\n  fixes: 0.6\n  breaks: 0.3\n\
    reviewer:\n  recall: 0.6\n  false_alarms: 0.5\n  rewords: 0.5\n  shadow: 0.2\n";

const ALL_ARMS: &str =
    "single,self-review,reviewers-only,pdca-generic,no-shadows,no-evidence,no-convergence,full";

#[test]
fn ev_170_trials_in_memory_end_as_the_same_trials_in_real_runs() {
    let suite = TinySuite::of(Test::new().unaudited());
    // Where a run ends for want of money, it depends on the time which of several agents was still started.
    suite.change("double/task.yaml", "dollars: 1.50", "dollars: 9");
    suite.another("again");
    suite.change("again/task.yaml", "dollars: 1.50", "dollars: 9");
    let agent = suite.population("unruly.yaml", UNRULY);
    let more = ["--repeat", "2", "--seed", "5"];
    let real = suite.evaluate(&agent, ALL_ARMS, &[&more[..], &["--quiet"]].concat());
    assert_eq!(real.code, 0, "{real}");
    // Which traps the work fell into is found out by commands, and those are not run in memory.
    let without_traps = |suite: &TinySuite| {
        let mut trials = suite.trials();
        for trial in trials.values_mut() {
            (trial["traps_set"], trial["traps_fallen"]) = (json!([]), json!([]));
        }
        trials
    };
    let trials = without_traps(&suite);
    let refused = suite.evaluate(&agent, ALL_ARMS, &[&more[..], &["--rules-only"]].concat());
    assert_eq!(refused.code, 2, "{refused}");
    assert!(refused.stderr.contains("--rules-only"), "{refused}");
    let wrong = suite.evaluate("cmd:true", "full", &["--rules-only"]);
    assert_eq!(wrong.code, 2, "{wrong}");
    fs::rename(suite.folder(), suite.test.base().join("real")).unwrap();
    let memory = suite.evaluate(&agent, ALL_ARMS, &[&more[..], &["--rules-only"]].concat());
    assert_eq!(memory.code, 0, "{memory}");
    let in_memory = without_traps(&suite);
    assert_eq!(in_memory.len(), 32, "{memory}");
    for (key, trial) in &trials {
        assert_eq!(in_memory.get(key), Some(trial), "{key:?}");
    }
    let report = suite.test.run(&["eval", "report", &suite.folder().display().to_string()]);
    assert!(report.stdout.contains("rules only"), "{report}");
    // No figure where nothing was measured.
    let lines = fs::read_to_string(suite.folder().join("trials.jsonl")).unwrap();
    assert!(lines.lines().all(|line| line.contains(r#""seconds":null"#)), "{lines}");
}

#[test]
fn ev_171_trials_in_memory_are_resumed_and_added_to() {
    let suite = TinySuite::of(Test::new().unaudited());
    let agent = suite.population("unruly.yaml", UNRULY);
    let all = suite.evaluate(&agent, "single,full", &["--repeat", "600", "--rules-only"]);
    assert_eq!(all.code, 0, "{all}");
    let whole = suite.trials();
    assert_eq!(whole.len(), 1_200);
    // As a kill leaves it: some lines, the last one cut off.
    let path = suite.folder().join("trials.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let kept: usize = text.split_inclusive('\n').take(300).map(str::len).sum();
    fs::write(&path, &text[..kept + 40]).unwrap();
    let more = suite.evaluate(&agent, "single,full", &["--repeat", "600", "--rules-only", "--jobs", "1"]);
    assert_eq!(more.code, 0, "{more}");
    assert!(more.stderr.contains("900 trials to run"), "{more}");
    let lines = fs::read_to_string(&path).unwrap();
    let readable = lines.lines().filter_map(|line| EvalTrial::read(line).ok());
    let mut resumed = TrialSet::default();
    let added = readable.filter(|trial| resumed.add(trial.clone())).count();
    assert_eq!(added, 1_200);
    for (key, trial) in &whole {
        let trial = EvalTrial { seconds: None, ..EvalTrial::read(&trial.to_string()).unwrap() };
        assert_eq!(resumed.get(&trial.key), Some(&trial), "{key:?}");
    }
}

#[test]
fn ev_172_what_would_mix_or_lose_trials_is_refused() {
    let suite = TinySuite::of(Test::new().unaudited());
    let agent = suite.population("own.yaml", "maker:\n  wrong: 0\n");
    let more = ["--repeat", "2", "--rules-only"];
    assert_eq!(suite.evaluate(&agent, "single", &more).code, 0);
    let record = suite.folder().join("trials.jsonl");
    let before = fs::read_to_string(&record).unwrap();
    // Another population under the same name.
    suite.population("own.yaml", "maker:\n  wrong: 1\n");
    let other = suite.evaluate(&agent, "single", &["--repeat", "4", "--rules-only"]);
    assert_eq!(other.code, 2, "{other}");
    assert!(other.stderr.contains("the population of the agents"), "{other}");
    // A report over what it was made from.
    let folder = suite.folder().display().to_string();
    let over = suite.test.run(&["eval", "report", &folder, "-o", &record.display().to_string()]);
    assert_eq!(over.code, 2, "{over}");
    assert_eq!(fs::read_to_string(&record).unwrap(), before);
    // Trials of nobody knows what.
    fs::remove_file(suite.folder().join("eval.json")).unwrap();
    let orphaned = suite.evaluate(&agent, "single", &more);
    assert_eq!(orphaned.code, 2, "{orphaned}");
    assert!(orphaned.stderr.contains("no eval.json"), "{orphaned}");
    assert_eq!(fs::read_to_string(&record).unwrap(), before);
    // A folder in the suite becomes part of it.
    let inside = suite.root.join("double/base/evaluation").display().to_string();
    let root = suite.root.display().to_string();
    let words =
        ["eval", "run", &root, "--agent", "sim:fair", "--arms", "single", "--rules-only", "-o", &inside];
    let inside = suite.test.run(&words);
    assert_eq!(inside.code, 2, "{inside}");
    assert!(inside.stderr.contains("is in the suite"), "{inside}");
    // What is no file is not waited for.
    let pipe = suite.test.base().join("pipe.yaml");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let piped = suite.evaluate(&format!("sim:{}", pipe.display()), "single", &more);
    assert_eq!(piped.code, 2, "{piped}");
}

#[test]
fn ev_174_a_run_that_a_signal_stops_is_no_result_and_is_resumed() {
    let suite = TinySuite::of(Test::new().unaudited());
    // The agent that was stopped is paid as expected, and so is the next one.
    suite.change("double/task.yaml", "dollars: 1.50", "dollars: 5");
    let gate = suite.test.base().join("go");
    let script = suite.test.base().join("slow.sh");
    // It does the task as soon as it may.
    fs::write(
        &script,
        format!(
            "{SIGN}while [ ! -e \"$1\" ]; do sleep 0.05; done\n\
         echo 'echo $(($1 * 2))' > double.sh; echo x > tests/more.sh\ngit add -A; git commit -qm Work\n\
         printf '## Summary\\n\\nDone.\\n\\n## Tests\\n\\nall pass\\n\\nSTATUS: DONE\\n' | sign\n"
        ),
    )
    .unwrap();
    let agent = format!("cmd:sh {} {}", script.display(), gate.display());
    let words = suite.arguments(&agent, "single", &["--repeat", "1", "--yes", "--unsafe-no-sandbox"]);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let stopped = suite.test.during(&words, |_| {
        let run = || {
            let all = processes("cmdline").into_iter();
            let mut runs = all.filter(|(_, words)| {
                let words = String::from_utf8_lossy(words).replace('\0', " ");
                words.contains("--as trial") && words.contains(&gate.display().to_string())
            });
            runs.next().map(|(pid, _)| pid)
        };
        let agents = || {
            let name = script.display().to_string();
            processes("cmdline").iter().any(|(_, words)| {
                let words = String::from_utf8_lossy(words).replace('\0', " ");
                words.starts_with("sh ") && words.contains(&name)
            })
        };
        wait_until(|| run().is_some() && agents(), || "the run did not begin".to_owned());
        let ended =
            std::process::Command::new("kill").args(["-s", "TERM", &run().unwrap().to_string()]).status();
        assert!(ended.unwrap().success());
    });
    assert_eq!(stopped.code, 10, "{stopped}");
    assert!(stopped.stderr.contains("a signal stopped its run"), "{stopped}");
    assert!(suite.trials().is_empty(), "{stopped}");
    fs::write(&gate, "").unwrap();
    let more = ["--repeat", "1", "--yes", "--unsafe-no-sandbox", "--json"];
    let resumed = suite.evaluate(&agent, "single", &more);
    assert_eq!(resumed.code, 0, "{resumed}");
    assert!((share(&resumed, "single", "solved") - 1.0).abs() < 1e-9, "{resumed}");
}

/// The proof of the instrument: 200 evaluations of populations whose rates can be computed, each with intervals of 95 %. In
/// memory; `ev_170` shows that real runs come to the same.
#[test]
fn ev_148_intervals_cover_the_truth_at_the_stated_rate() {
    const CARELESS: &str = "maker:\n  wrong: 0.8\n  fixes: 0.5\nreviewer:\n  recall: 0.4\n";
    for (name, yaml, population) in [
        ("mixed", MIXED, json!({"maker": {"wrong": 0.5, "fixes": 0.8}, "reviewer": {"recall": 0.7}})),
        ("careless", CARELESS, json!({"maker": {"wrong": 0.8, "fixes": 0.5}, "reviewer": {"recall": 0.4}})),
    ] {
        proof_of_coverage(name, yaml, &SimPopulation::from_value(population).unwrap(), 12, true);
    }
}

/// The same with real runs. Takes a quarter of an hour:
///
///     cargo test --release -p archeflow --test e2e ev_173 -- --ignored --nocapture
#[test]
#[ignore = "2,400 runs"]
fn ev_173_intervals_cover_the_truth_in_real_runs() {
    let population = json!({"maker": {"wrong": 0.5, "fixes": 0.8}, "reviewer": {"recall": 0.7}});
    proof_of_coverage("mixed", MIXED, &SimPopulation::from_value(population).unwrap(), 6, false);
}

#[expect(clippy::print_stdout, reason = "it says how far intervals and truth are apart")]
fn proof_of_coverage(name: &str, yaml: &str, population: &SimPopulation, tasks: u32, in_memory: bool) {
    const REPETITIONS: u32 = 200;
    let suite = TinySuite::of(Test::new().unaudited());
    (1..tasks).for_each(|task| suite.another(&format!("double-{task}")));
    let agent = suite.population("p.yaml", yaml);
    let repeat = REPETITIONS.to_string();
    let mut more = vec!["--repeat", &repeat, "--quiet", "--json"];
    more.extend(in_memory.then_some("--rules-only"));
    let outcome = suite.evaluate(&agent, "single,self-review", &more);
    assert_eq!(outcome.code, 0, "{outcome}");
    let truth = [("single", SimShape::new(0, 1)), ("self-review", SimShape::new(1, 2))]
        .map(|(arm, shape)| (arm, expected(population, shape)));
    // Each repeat is an evaluation of its own.
    let mut sets: Vec<TrialSet> = (0..REPETITIONS).map(|_| TrialSet::default()).collect();
    for line in fs::read_to_string(suite.folder().join("trials.jsonl")).unwrap().lines() {
        let trial = EvalTrial::read(line).unwrap();
        let set = sets.get_mut(usize::try_from(trial.key.repeat - 1).unwrap()).unwrap();
        set.add(trial);
    }
    for (arm, rates) in truth {
        for (measure, truth) in
            [(EvalMeasure::Solved, rates.solved), (EvalMeasure::WronglyLanded, rates.wrongly_landed)]
        {
            let figure = |set: &TrialSet| ArmMeasures::of(set, arm, 0.95).figures[&measure];
            let covered = sets.iter().filter(|set| {
                let interval = figure(set).interval.unwrap();
                interval.lower <= truth && truth <= interval.upper
            });
            let (covered, all) = (covered.count(), sets.iter().map(|set| figure(set).mean).sum::<f64>());
            let mean = all / f64::from(REPETITIONS);
            println!(
                "{name}: {arm}, {}: truth {truth:.4}, mean {mean:.4}, covered {covered} of 200",
                measure.name()
            );
            // 183 or fewer of 200 have a probability below 2 % at a true rate of 95 %.
            assert!(covered >= 184, "{arm}, {}: {covered} of 200 cover {truth}", measure.name());
            let spread = (truth * (1.0 - truth) / f64::from(REPETITIONS * tasks)).sqrt();
            assert!((mean - truth).abs() < 4.0 * spread, "{arm}, {}: {mean} is not {truth}", measure.name());
        }
    }
    let difference = truth[1].1.solved - truth[0].1.solved;
    let covered = sets.iter().filter(|set| {
        let options = SamplingOptions::default();
        let found = compare(set, EvalMeasure::Solved, "single", &["self-review"], options);
        let interval = found[0].interval.unwrap();
        interval.lower <= difference && difference <= interval.upper
    });
    let covered = covered.count();
    println!("{name}: self-review minus single, solved: truth {difference:.4}, covered {covered} of 200");
    assert!(covered >= 184, "{covered} of 200 cover {difference}");
}

/// All files below a folder with their content.
fn listed(root: &std::path::Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    found
}
