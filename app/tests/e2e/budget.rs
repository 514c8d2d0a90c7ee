//! What a run may cost: every step of the ladder, the gate, the stop, and going on after it.

use serde_json::{Value, json};

use crate::harness::{Outcome, TASK, Test, as_strs, review, signal};

/// An agent that does its part, says what `$COST` is, and with `$SLOW` works for hours where it is a sage.
const PAID: &str = r#"#!/bin/sh
{sign}say() { printf '{"input_tokens": 1000, "output_tokens": 100, "cost_usd": %s}' "$1" > "$ARCHEFLOW_USAGE_FILE"; }
. "{base}/costs.sh"
case "$ARCHEFLOW_ROLE" in
explorer) printf '## Recommendation\n\nAppend a line.\n\nSTATUS: DONE\n' ;;
creator)
  printf '## Architecture\n\nA line. Rationale: asked for.\n\n## Files\n\n- `src/app.txt`\n\n## Alternatives\n\n- none: rejected\n- two: rejected\n\n'
  printf '## Test strategy\n\n- it is there\n\n## Confidence\n\n| Axis | Score |\n|---|---|\n| Task understanding | 0.9 |\n'
  printf '| Solution completeness | 0.9 |\n| Risk coverage | 0.9 |\n\n## Risks\n\n- none\n\nSTATUS: DONE\n' ;;
maker)
  echo "made $ARCHEFLOW_CYCLE $ARCHEFLOW_ATTEMPT" >> src/app.txt
  echo "case" >> tests/check_test.sh
  [ -z "$HANG" ] || sleep 6000
  printf 'Done.\n\nSTATUS: DONE\n' ;;
guardian)
  if [ -n "$REJECT" ] && [ "$ARCHEFLOW_CYCLE" = 1 ]; then
    printf 'VERDICT: REJECTED\nFINDINGS: 1\n\n| Location | Severity | Category | Description | Fix | Evidence |\n|---|---|---|---|---|---|\n'
    printf '| src/app.txt:1 | WARNING | quality | the line is wrong | mend it | `line 1` |\n\nSTATUS: DONE\n'
  else
    printf 'VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n'
  fi ;;
skeptic) printf 'VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n' ;;
*)
  [ -z "$SLOW" ] || sleep 6000
  printf 'VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n' ;;
esac | sign
"#;

/// So little is set aside that the gate stays out of the way.
const LITTLE: &str = "costs:\n  per_agent_usd: 0.01\n";

/// Agents that cost what this piece of shell says.
fn paid(costs: &str) -> Test {
    let test = Test::new();
    set_costs(&test, costs);
    test.cmd(PAID)
}

fn set_costs(test: &Test, costs: &str) {
    std::fs::write(test.base().join("costs.sh"), format!("{costs}\n")).unwrap();
}

/// The steps of the ladder in the log: `50 warn`.
fn words(outcome: &Outcome) -> Vec<String> {
    let read = |step: &&Value| format!("{} {}", step["step"], step["effect"].as_str().unwrap_or_default());
    outcome.events("budget.step").iter().map(read).collect()
}

#[test]
fn af151_at_50_percent_there_is_a_warning() {
    let merged =
        paid("say 0.2").config(LITTLE).go(&["--auto-merge", "--budget", "1"]).ended("merged", "approved", 0);
    assert_eq!(words(&merged), ["50 warn"]);
    assert_eq!(merged.json["cost_usd"], json!(0.6));
    assert!(merged.stderr.contains("$0.60 of $1.00 spent"), "{merged}");
}

#[test]
fn af151_at_80_percent_reviewers_get_cheaper() {
    let test = paid("case $ARCHEFLOW_ROLE in guardian) say 0.05;; *) say 0.4;; esac").config(LITTLE);
    let merged = test.go(&["--auto-merge", "--budget", "1"]).ended("merged", "approved", 0);
    assert_eq!(words(&merged), ["50 warn", "80 downgrade"]);
    let models: Vec<_> = merged.events("agent.start").iter().map(|start| start["model"].clone()).collect();
    assert_eq!(models, ["sonnet", "sonnet", "haiku"]);
}

#[test]
fn af151_at_95_percent_the_cycle_is_finished_and_no_other_begins() {
    let test = paid("REJECT=1; say 0.16").config(LITTLE);
    let args = ["--auto-merge", "--budget", "1", "--workflow", "standard"];
    let broke = test.go(&args).ended("wiggum_break", "budget", 11);
    assert_eq!(words(&broke), ["50 warn", "80 downgrade", "95 finish_then_stop"]);
    assert_eq!(broke.events("wiggum.break")[0]["hard"], json!(false));
    assert_eq!(broke.json["cycles"], json!(1));
    let id = broke.json["run_id"].as_str().unwrap().to_owned();
    let next = format!("archeflow continue {id} --one-more-cycle --budget 2");
    assert_eq!(broke.json["next"][0], json!(next));
    let merged = test
        .run(&["continue", &id, "--one-more-cycle", "--budget", "5", "--auto-merge"])
        .ended("merged", "approved", 0);
    assert_eq!(merged.json["cycles"], json!(2));
    assert_eq!(merged.json["cost_usd"], json!(1.6), "what was spent stays spent");
}

/// M-G11: a Skeptic comes back with a bill that uses the budget up while the Sage is still out.
#[test]
fn af_151_m_g11_at_100_percent_all_agents_are_stopped() {
    let test =
        paid("REJECT=1; SLOW=1; case $ARCHEFLOW_ROLE in skeptic) say 0.9;; sage) ;; *) say 0.05;; esac");
    let args = ["--auto-merge", "--budget", "1", "--workflow", "standard"];
    let broke = test.go(&args).ended("wiggum_break", "budget", 11);
    assert_eq!(words(&broke).last().unwrap(), "100 stop_now");
    assert_eq!(broke.events("wiggum.break")[0]["hard"], json!(true));
    let lost = broke.events("agent.lost");
    assert_eq!(
        (lost[0]["archetype"].clone(), lost[0]["reason"].clone()),
        (json!("sage"), json!("stopped by the program"))
    );
    let kinds: Vec<&str> = broke.journal.iter().filter_map(|line| line["type"].as_str()).collect();
    let at = |kind: &str| kinds.iter().rposition(|known| *known == kind).unwrap();
    assert!(at("agent.start") < at("wiggum.break") && at("wiggum.break") < at("agent.lost"), "{kinds:?}");
    let id = broke.json["run_id"].as_str().unwrap().to_owned();
    // The Sage never said what it cost: what was set aside for it counts.
    assert!(broke.json["cost_usd"].as_f64().unwrap() > 1.1, "{}", broke.json["cost_usd"]);
    assert_eq!(test.git(["status", "--porcelain"]), "");
    assert!(test.git(["log", "--format=%s", &format!("archeflow/{id}")]).contains("work of the maker"));
    let again = test.run(&["resume", &id]);
    assert_eq!(again.code, 2, "it has ended: {again}");
    set_costs(&test, "say 0.01");
    let merged = test
        .run(&["continue", &id, "--one-more-cycle", "--budget", "5", "--auto-merge"])
        .ended("merged", "approved", 0);
    assert!(merged.json["cost_usd"].as_f64().unwrap() > 1.1, "a resumed run never forgets what it spent");
}

#[test]
fn i4_m_g15_no_agent_starts_beyond_the_budget() {
    let test = paid(":");
    let broke = test.go(&["--auto-merge", "--budget", "1"]).ended("wiggum_break", "budget", 11);
    let who: Vec<_> = broke.events("agent.start").iter().map(|start| start["archetype"].clone()).collect();
    assert_eq!(who, ["creator"], "0.21 for the Creator are counted, 0.825 for the Maker do not fit");
    assert_eq!(broke.events("agent.start")[0]["reserved_usd"], json!(0.21));
    assert_eq!(broke.json["cost_usd"], json!(0.21));
    assert_eq!(broke.events("agent.complete")[0]["cost_source"], json!("reserved"));
    assert_eq!(broke.events("wiggum.break")[0]["hard"], json!(false));
    let none = paid(":").go(&["--auto-merge", "--budget", "0"]).ended("wiggum_break", "budget", 11);
    assert!(none.events("agent.start").is_empty());
}

#[test]
fn m_d12_garbage_costs_count_as_set_aside() {
    let test = paid("say -1").config("costs:\n  per_agent_usd: 0.25\n");
    let merged = test.go(&["--auto-merge", "--budget", "5"]).ended("merged", "approved", 0);
    assert_eq!(merged.json["cost_usd"], json!(0.75));
    let test = paid(
        "echo '{\"input_tokens\": 10000, \"output_tokens\": 1000, \"cost_usd\": 0}' > \"$ARCHEFLOW_USAGE_FILE\"",
    );
    let merged = test.go(&["--auto-merge", "--budget", "5"]).ended("merged", "approved", 0);
    assert_eq!(merged.json["cost_usd"], json!(0.135), "zero is no statement; tokens have their price");
    assert_eq!(merged.events("agent.complete")[0]["cost_source"], json!("priced"));
}

#[test]
fn bx24_the_day_has_a_limit_of_its_own() {
    let test = paid("say 0.3").config("costs:\n  daily_usd: 2\n  per_agent_usd: 0.3\n");
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let broke = test.go(&["--auto-merge"]).ended("wiggum_break", "budget", 11);
    assert_eq!(broke.events("budget.step")[0]["limit"], json!("day"));
    assert!(broke.json["detail"].as_str().unwrap().contains("day's budget"), "{broke}");
    let files: Vec<_> = std::fs::read_dir(test.repo.join(".archeflow/costs")).unwrap().flatten().collect();
    assert_eq!(files.len(), 1);
    let text = std::fs::read_to_string(files[0].path()).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let costs: Vec<_> = lines.iter().map(|line| line["cost"].clone()).collect();
    assert_eq!(costs, [json!(0.9), json!(0.9), json!(0.0)]);
    assert_eq!((lines[0]["tokens"].clone(), lines[0]["domain"].clone()), (json!(3300), json!("code")));
    assert_eq!(lines[0]["models"], json!(["sonnet"]));
}

#[test]
fn models_prices_are_the_users_to_say() {
    let usage = "echo '{\"input_tokens\": 100000, \"output_tokens\": 0}' > \"$ARCHEFLOW_USAGE_FILE\"";
    let test = paid(usage).config("models:\n  prices:\n    standard:\n      input: 10\n");
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    assert_eq!(merged.json["cost_usd"], json!(3.0));
    let prices = &merged.events("run.start")[0]["config"]["costs"]["prices"]["sonnet"];
    assert_eq!((prices["input"].clone(), prices["cache_read"].clone()), (json!(10.0), json!(1.0)));
    let wrong = paid(usage).config("costs:\n  budget_usd: much\n").go(&[]);
    wrong.refused(2, &["config.yaml:2: `costs.budget_usd` is `much`; allowed: dollars from 0 to 1000000"]);
    paid(usage).go(&["--budget", "3 euros"]).refused(2, &["--budget", "dollars from 0"]);
}

#[test]
fn script_agents_cost_nothing_unless_they_say_so() {
    let scenes = review("guardian", "APPROVED", &[]).replacen(
        "== guardian ==\n",
        "== guardian ==\nusage 10 2 0.4\n",
        1,
    );
    let merged =
        Test::new().play(&scenes).go(&["--auto-merge", "--budget", "0.5"]).ended("merged", "approved", 0);
    assert_eq!(merged.json["cost_usd"], json!(0.4));
    assert_eq!(words(&merged), ["50 warn", "80 downgrade"]);
}

#[test]
fn bx24_a_dry_run_says_what_the_run_would_cost() {
    let test = paid("say 0.02");
    let planned = test.go(&["--dry-run", "--workflow", "standard"]).ended("dry_run", "dry_run", 0);
    let costs = &planned.json["costs"];
    assert_eq!(costs["estimate"]["cycle_usd"], json!(1.515), "{costs}");
    assert_eq!(costs["estimate"]["most_usd"], json!(3.03));
    assert_eq!(
        costs["estimate"]["agents"][0],
        json!({"archetype": "explorer", "model": "haiku", "cost_usd": 0.08})
    );
    assert_eq!(costs["actual_usd"], json!(0.04));
    let details = planned.json["question"]["details"].to_string();
    assert!(details.contains("estimated cost: $1.52 a cycle, at most $3.03"), "{details}");
    assert!(planned.stderr.contains("planning has cost $0.04"), "{planned}");
}

#[test]
fn af008_what_the_tiers_saved_comes_from_the_runs_own_tokens() {
    let usage = "printf '{\"input_tokens\": 100000, \"output_tokens\": 10000}' > \"$ARCHEFLOW_USAGE_FILE\"";
    let test = paid(&format!("[ $ARCHEFLOW_ROLE = guardian ] || {usage}"));
    let merged = test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let costs = &merged.json["costs"];
    assert_eq!(costs["by_archetype"][0]["archetype"], json!("creator"));
    assert_eq!(costs["by_archetype"][0]["cost_usd"], json!(0.45));
    let wanted = json!({
        "used_usd": 0.9, "premium_usd": 1.5, "percent": 40, "attempts_counted": 2, "attempts": 3
    });
    assert_eq!(costs["savings"], wanted, "the Guardian said nothing");
    let told = "tiers: $0.90 instead of $1.50 all at opus, 40 % less (tokens of 2 of 3 attempts are known)";
    assert!(merged.stderr.contains(told), "{merged}");
    let shown = test.run(&["show", &merged.id]);
    assert!(shown.stderr.contains(told) && shown.stderr.contains("creator    sonnet  $0.45"), "{shown}");
}

fn scored(test: &Test, archetype: &str) -> Value {
    let shown = test.run(&["score", "--json", "--archetype", archetype]);
    assert_eq!(shown.code, 0, "{shown}");
    shown.json["scores"].clone()
}

#[test]
fn af171_advice_comes_with_the_tenth_run() {
    let test = Test::new().play("");
    assert!(test.run(&["score"]).stdout.contains("No reviewer has been scored here yet"));
    for _ in 0..9 {
        test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    }
    let nine = scored(&test, "guardian");
    assert_eq!((nine[0]["runs"].clone(), nine[0]["advice"].clone()), (json!(9), json!(null)));
    assert_eq!(nine[0]["composite_score"], json!(0.8));
    test.go(&["--auto-merge"]).ended("merged", "approved", 0);
    let ten = scored(&test, "guardian");
    let advice = json!({"recommendation": "keep", "low_score_try": null, "high_signal_promote": null});
    assert_eq!((ten[0]["runs"].clone(), ten[0]["advice"].clone()), (json!(10), advice));
    assert_eq!(ten[0]["trend"], json!("steady"));
    assert_eq!(scored(&test, "sage"), json!([]));
    let shown = test.run(&["score"]);
    assert!(shown.stdout.contains("guardian") && shown.stdout.contains("keep"), "{shown}");
}

#[test]
fn af170_a_run_that_ends_twice_is_scored_once() {
    let finding = "src/app.txt:1 | WARNING | quality | the first line is wrong | mend it | `line 1`";
    let scenes = review("guardian cycle=1", "REJECTED", &[finding]);
    let test = Test::new().play(&scenes).config("models:\n  archetypes:\n    guardian: cheap\n");
    let waits = test.go(&["--workflow", "standard"]).ended("awaiting_merge", "approved", 10);
    test.run(&["merge", &waits.id]).ended("merged", "approved", 0);
    let text = test.read(".archeflow/memory/effectiveness.jsonl");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let who: Vec<&str> = lines.iter().filter_map(|line| line["archetype"].as_str()).collect();
    assert_eq!(who, ["guardian", "sage", "skeptic"], "{text}");
    let guardian = &lines[0];
    for (field, wanted) in [
        ("run_id", json!(waits.id)),
        ("model", json!("haiku")),
        ("findings_total", json!(1)),
        ("findings_useful", json!(1)),
        ("fixes_applied", json!(1)),
        ("signal_to_noise", json!(1.0)),
        ("fix_rate", json!(1.0)),
        ("cost_efficiency", json!(null)),
        ("accuracy", json!(1.0)),
        ("cycle_impact", json!(true)),
        ("findings_info", json!(0)),
        ("composite_score", json!(0.8)),
        ("cost_usd", json!(0.0)),
        ("tokens", json!(0)),
    ] {
        assert_eq!(guardian[field], wanted, "{field} in {guardian}");
    }
    assert_eq!(scored(&test, "guardian")[0]["runs"], json!(1));
}

/// M-G12: who was out when the program was stopped counts with what was set aside, and going on forgets nothing.
#[test]
fn i4_m_g12_a_stopped_run_keeps_what_was_set_aside() {
    let test = paid("HANG=1").config("costs:\n  per_agent_usd: 0.3\n");
    let arguments = test.arguments(TASK, &["--auto-merge", "--budget", "5"]);
    let arguments = as_strs(&arguments);
    let stopped = test.during(&arguments, |child| {
        test.wait_for("agent.start", Some("maker"));
        signal(child, "INT");
    });
    assert_eq!((stopped.code, stopped.json["cost_usd"].clone()), (130, json!(0.6)), "{stopped}");
    assert_eq!(day(&test), [json!(0.6)]);
    set_costs(&test, ":");
    let merged = test.run(&["resume", &stopped.id]).ended("merged", "approved", 0);
    assert_eq!(merged.json["cost_usd"], json!(1.2), "the Maker twice");
    assert_eq!(day(&test), [json!(0.6), json!(1.2)], "the last line counts");
}

/// The costs in the day's file, in order.
fn day(test: &Test) -> Vec<Value> {
    let mut files: Vec<_> =
        std::fs::read_dir(test.repo.join(".archeflow/costs")).unwrap().flatten().collect();
    files.sort_by_key(std::fs::DirEntry::path);
    let text: String = files.iter().map(|file| std::fs::read_to_string(file.path()).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["cost"].clone()).collect()
}

/// Landing costs nothing: what was approved with the last cent is a person's to land.
#[test]
fn af151_what_was_approved_at_100_percent_can_be_landed() {
    let test = paid("say 0.4").config(LITTLE);
    let broke = test.go(&["--auto-merge", "--budget", "1.2"]).ended("wiggum_break", "budget", 11);
    assert_eq!(broke.events("wiggum.break")[0]["hard"], json!(true));
    let why = test.run(&["show", &broke.id, "--why"]).stdout;
    assert!(why.contains("AF-151") && why.contains("95 % of the budget: $1.20 of $1.20 spent"), "{why}");
    let merged = test.run(&["merge", &broke.id]).ended("merged", "approved", 0);
    assert_eq!(merged.json["cost_usd"], json!(1.2));
}
