//! Limited accounts, seen from outside: a stand-in called `claude` prints what the real one was recorded to print, and
//! is limited, cramped or fine as the test says.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Outcome, SIGN, Test};

/// Reads the brief, counts itself, and says what `say/<role>-<nth>` holds, else what `say/<role>` does.
const CLAUDE: &str = r#"#!/bin/sh
{sign}role=$ARCHEFLOW_ROLE
nth=$(($(cat "{base}/say/$role.times" 2>/dev/null || echo 0) + 1))
echo $nth > "{base}/say/$role.times"
if [ -f "{base}/say/$role-$nth" ]; then cat "{base}/say/$role-$nth"; exit 1; fi
if [ "$role" = maker ]; then
    echo made >> src/app.txt
    echo 'grep -q made src/app.txt' > tests/app_test.sh
    seq 1 4000 > src/many.txt
fi
sign < "{base}/say/$role"
"#;

const PROPOSAL: &str = "## Architecture\n\nA line. Rationale: asked for.\n\n## Files\n\n- `src/app.txt`\n\
    - `src/many.txt`\n- `tests/app_test.sh`\n\n## Alternatives\n\n- none: rejected\n\n## Test strategy\n\n\
    - the line is there\n\n## Confidence\n\n| Axis | Score |\n|---|---|\n| Task understanding | 0.95 |\n\
    | Solution completeness | 0.9 |\n| Risk coverage | 0.9 |\n\n## Risks\n\n- None.\n\nSTATUS: DONE\n";
const MADE: &str = "I added the line and its test.\n\nSTATUS: DONE\n";
const APPROVED: &str = "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n";

/// A test whose user has the stand-in for `claude`.
pub(super) fn test() -> Test {
    let test = Test::new().unshadowed();
    test.open_base();
    let (bin, say) = (test.base().join("bin"), test.base().join("say"));
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::create_dir_all(&say).unwrap();
    let program = bin.join("claude");
    std::fs::write(
        &program,
        CLAUDE.replace("{sign}", SIGN).replace("{base}", &test.base().display().to_string()),
    )
    .unwrap();
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    for (role, text, model) in
        [("creator", PROPOSAL, "opus-9"), ("maker", MADE, "sonnet-9"), ("guardian", APPROVED, "sonnet-9")]
    {
        says(&test, role, model, text);
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    test.env("PATH", path)
}

fn lines(model: &str, closing: &Value) -> String {
    let init = json!({"type": "system", "subtype": "init", "session_id": "s", "model": model,
        "claude_code_version": "2.1.325"});
    let said = json!({"type": "assistant", "message": {"model": model, "content": []}});
    format!("{init}\n{said}\n{closing}\n")
}

fn says(test: &Test, role: &str, model: &str, text: &str) {
    let closing = json!({"type": "result", "subtype": "success", "is_error": false, "result": text,
        "session_id": "s", "usage": {"input_tokens": 10, "output_tokens": 2}});
    std::fs::write(say(test, role), lines(model, &closing)).unwrap();
}

/// The nth attempt of this role ends with an error of the provider's.
fn fails(test: &Test, role: &str, nth: u32, error: &Value) {
    let mut closing = json!({"type": "result", "subtype": "success", "is_error": true, "session_id": "s",
        "terminal_reason": "api_error"});
    for (name, value) in error.as_object().unwrap() {
        closing[name] = value.clone();
    }
    let init = json!({"type": "system", "subtype": "init", "session_id": "s", "model": "sonnet-9"});
    std::fs::write(say(test, &format!("{role}-{nth}")), format!("{init}\n{closing}\n")).unwrap();
}

fn say(test: &Test, name: &str) -> PathBuf {
    test.base().join("say").join(name)
}

fn used_up(until: &str) -> Value {
    json!({"api_error_status": 429, "result": format!("You have hit your usage limit. Try again in {until}.")})
}

fn started(test: &Test, role: &str) -> String {
    std::fs::read_to_string(say(test, &format!("{role}.times"))).unwrap_or_default().trim().to_owned()
}

fn go(test: &Test) -> Outcome {
    test.go(&["--agent", "claude", "--auto-merge"])
}

#[test]
fn c6_m_g3_a_used_up_account_parks_the_run_and_says_until_when() {
    let test = test();
    fails(&test, "maker", 1, &used_up("3 hours"));
    let parked = go(&test).ended("stopped", "provider_busy", 31);
    let failed = parked.events("agent.failed")[0];
    assert_eq!(
        (&failed["kind"], &failed["reopens_in_ms"]),
        (&json!("quota"), &json!(10_800_000)),
        "{parked}"
    );
    let reopens_at = parked.fresh("run.complete").unwrap()["reopens_at"].as_u64().unwrap();
    assert!(reopens_at > 10_800_000, "{parked}");
    let when = parked.json["reopens_at"].as_str().unwrap().replace('T', " ").replace('Z', " UTC");
    assert!(parked.stderr.contains(&when) && parked.stderr.contains("--wait"), "{parked}");
    for (command, words) in [("status", "Parked:"), ("list", "parked until"), ("show", "Parked:")] {
        let id = (command != "list").then_some(parked.id.as_str());
        let looked = test.run(&[command].into_iter().chain(id).collect::<Vec<_>>());
        let said = format!("{}{}", looked.stdout, looked.stderr);
        assert!(said.contains(words) && said.contains(&when), "{command}: {said}");
    }
    let before = test.journal_bytes(&parked.id);
    test.run(&["resume", &parked.id]).refused(31, &["parked", &when, "--wait"]);
    assert_eq!(test.journal_bytes(&parked.id), before, "nothing is written by asking too early");
    assert_eq!(started(&test, "maker"), "1");
}

#[test]
fn c6_a_parked_run_resumes_when_its_account_serves_again() {
    let test = test();
    fails(&test, "maker", 1, &used_up("1 second"));
    let parked = go(&test).ended("stopped", "provider_busy", 31);
    let landed = test.run(&["resume", &parked.id, "--wait"]).ended("merged", "approved", 0);
    assert_eq!(landed.sent(), ["creator/work", "maker/work", "maker/work", "guardian/work"], "{landed}");
    assert!(test.read("src/app.txt").ends_with("made\n"));
}

#[test]
fn c6_another_run_is_not_sent_into_the_same_wall() {
    let test = test();
    fails(&test, "maker", 1, &used_up("3 hours"));
    go(&test).ended("stopped", "provider_busy", 31);
    let second = go(&test).ended("stopped", "provider_busy", 31);
    assert_eq!(started(&test, "creator"), "1", "nobody was started\n{second}");
    let failed = second.events("agent.failed")[0];
    assert_eq!((&failed["kind"], &failed["estimated_cost_usd"]), (&json!("busy"), &json!(0.0)), "{second}");
    assert!(failed["reopens_in_ms"].as_u64().unwrap() > 3_600_000, "{second}");
}

#[test]
fn c6_the_configured_fallback_takes_over() {
    let test = test();
    let stand_in = test.base().join("agents/other.sh");
    let script = format!(
        "#!/bin/sh\n{SIGN}if [ $ARCHEFLOW_ROLE = maker ]; then echo made >> src/app.txt; echo true > \
         tests/app_test.sh; cat {0}/made; else cat {0}/approved; fi | sign\n",
        test.base().join("say").display()
    );
    std::fs::write(&stand_in, script).unwrap();
    std::fs::set_permissions(&stand_in, PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(say(&test, "made"), MADE).unwrap();
    std::fs::write(say(&test, "approved"), APPROVED).unwrap();
    let test = test.config(&format!(
        "agents:\n  fallback: ['cmd:{}']\nshadows:\n  enabled: false\n",
        stand_in.display()
    ));
    fails(&test, "maker", 1, &used_up("3 hours"));
    let landed = go(&test).ended("merged", "approved", 0);
    let point = landed.decided("C6");
    assert!(point["decision"].as_str().unwrap().contains("takes over from claude"), "{landed}");
    assert!(landed.stderr.contains("takes over from claude"), "{landed}");
    let agents: Vec<&str> =
        landed.events("agent.start").iter().map(|start| start["agent"].as_str().unwrap()).collect();
    assert_eq!(agents.iter().filter(|agent| **agent == "claude").count(), 2, "{agents:?}");
    assert_eq!(agents.len(), 4);
    let verdict = landed.events("review.verdict")[0];
    assert_eq!(verdict["same_model"], json!(true), "the label follows whoever plays\n{landed}");
}

#[test]
fn m_g5_a_brief_that_does_not_fit_is_divided_once() {
    let test = test();
    let too_long = json!({"terminal_reason": "prompt_too_long", "result": "Prompt is too long"});
    fails(&test, "guardian", 1, &too_long);
    let landed = go(&test).ended("merged", "approved", 0);
    let first = &landed.briefs("guardian")[0];
    let parts = landed.part_briefs("guardian", 1);
    assert!(parts.len() > 1, "{landed}");
    for part in &parts {
        assert!(part.len() * 2 < first.len() + 2_000, "{} {}", first.len(), part.len());
    }
    for n in 1..=4_000 {
        let line = format!("\n+{n}\n");
        assert_eq!(
            parts.iter().filter(|part| part.contains(&line)).count(),
            1,
            "{n}: all of it is shown, once"
        );
    }
    let sizes = [&landed.events("agent.failed")[0]["brief_chars"], &reviewed(&landed)["brief_chars"]];
    let longest = parts.iter().map(|part| part.chars().count()).max().unwrap_or(0);
    assert_eq!(sizes.map(|size| size.as_u64().unwrap()), [first.chars().count(), longest].map(|n| n as u64));
    let note = reviewed(&landed)["notes"].to_string();
    assert!(note.contains(&first.chars().count().to_string()), "{note}");
    let before = 1 + u32::try_from(parts.len()).unwrap();
    fails(&test, "guardian", before + 1, &too_long);
    fails(&test, "guardian", before + 2, &too_long);
    go(&test).ended("failed", "agent_failures", 30);
    assert_eq!(started(&test, "guardian"), (before + 2).to_string(), "not a third time");
}

fn reviewed(outcome: &Outcome) -> &Value {
    let complete = outcome.events("agent.complete");
    complete.into_iter().find(|complete| complete["archetype"] == "guardian").unwrap()
}

#[test]
fn issue_4_5_the_model_is_recorded_and_a_review_by_the_same_model_is_marked() {
    let test = test();
    let same = go(&test).ended("merged", "approved", 0);
    let played = json!({"vendor": "Anthropic", "model": "sonnet-9", "version": "2.1.325"});
    assert_eq!(reviewed(&same)["played"], played, "{same}");
    assert_eq!(same.events("review.verdict")[0]["same_model"], json!(true));
    assert!(same.stderr.contains("reviewed by the model that wrote it"), "{same}");
    assert_eq!(same.json["same_model_reviews"], json!(["guardian"]));
    let shown = test.run(&["show", &same.id]);
    assert!(shown.stderr.contains("reviewed by the model that wrote it"), "{shown}");
    says(&test, "guardian", "opus-9", APPROVED);
    let other = go(&test).ended("merged", "approved", 0);
    assert_eq!(other.events("review.verdict")[0]["same_model"], Value::Null);
    assert!(!other.stderr.contains("model that wrote it"), "{other}");
}
