//! Answers in a form, with real clients: what comes through `--json-schema` and `--output-schema` is read as the same
//! review, and what does not fit is not. They need the clients, like everything in `clients`.

use std::ffi::OsString;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Outcome, Test};
use crate::model::{Model, Reply};

const MADE: &str = "I added the line and its test.\n\nSTATUS: DONE\n";
const APPROVED: &str = "VERDICT: APPROVED\nFINDINGS: 0\n\nSTATUS: DONE\n";
const WORK: &str = "echo made >> src/app.txt; echo 'grep -q made src/app.txt' > tests/app_test.sh";

/// A client that takes a schema: its spec, its program below `target/clients`, how its model runs a command, and how it
/// gives a form.
struct Row {
    spec: &'static str,
    program: &'static str,
    shell: fn(&str) -> Reply,
    form: fn(&Value) -> Reply,
}

const ROWS: [Row; 2] = [
    Row {
        spec: "claude",
        program: "claude/node_modules/@anthropic-ai/claude-code-linux-x64/claude",
        shell: |command| Reply::Use("Bash", json!({"command": command, "description": "work"})),
        form: |form| Reply::Use("StructuredOutput", form.clone()),
    },
    Row {
        spec: "codex:gpt-5.5",
        program: "codex/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        shell: |command| Reply::Use("exec_command", json!({"cmd": command})),
        form: |form| Reply::Say(form.to_string()),
    },
];

fn say(text: &str) -> Reply {
    Reply::Say(text.to_owned())
}

/// A test whose user has just this client, and a key that the model takes.
fn test(row: &Row, model: &Model, agents: &str) -> Test {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/clients").join(row.program);
    assert!(place.is_file(), "{} is not there: run `cargo xtask clients`", place.display());
    let test = Test::new().config(agents);
    let bin = test.base().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(place, bin.join(row.spec.split(':').next().unwrap())).unwrap();
    let mut path: OsString = bin.into();
    path.push(":/usr/local/bin:/usr/bin:/bin");
    test.env("PATH", path)
        .env("ANTHROPIC_API_KEY", "test")
        .env("ANTHROPIC_BASE_URL", &model.address)
        .env("CODEX_API_KEY", "test")
        .env("OPENAI_BASE_URL", format!("{}/v1", model.address))
}

fn lines<'a>(outcome: &'a Outcome, kind: &str, who: &str) -> Vec<&'a Value> {
    outcome.journal.iter().filter(|line| line["type"] == kind && line["agent"] == who).collect()
}

fn proposal() -> Value {
    json!({
        "mini_reflection": "Restatement: a line.", "architecture": "A line. Rationale: asked for.",
        "files": [{"path": "src/app.txt", "work": "a line"}, {"path": "tests/app_test.sh", "work": "its test"}],
        "alternatives": [{"option": "none", "rejected_because": "nothing else is asked for"}],
        "test_strategy": ["the line is there"],
        "confidence": {"task_understanding": 0.95, "solution_completeness": 0.9, "risk_coverage": 0.9},
        "risks": [], "prior_issues": [], "remark": "", "status": "DONE",
    })
}

fn review(verdict: &str, findings: &Value) -> Value {
    json!({"verdict": verdict, "findings": findings, "remark": "", "status": "DONE"})
}

fn finding() -> Value {
    json!({"location": "src/app.txt:1", "severity": "WARNING", "category": "quality",
           "description": "The line | has no end.", "fix": "End it.", "evidence": "src/app.txt:1 has none"})
}

fn answer<'a>(outcome: &'a Outcome, who: &str) -> &'a Value {
    &lines(outcome, "agent.complete", who)[0]["data"]["answer"]
}

/// A file of the first attempt of an archetype.
fn kept(outcome: &Outcome, who: &str, name: &str) -> Option<String> {
    let seq = lines(outcome, "agent.start", who)[0]["seq"].as_u64().unwrap();
    let path = outcome.artifacts.join(format!("attempts/{seq}-{who}/{name}"));
    std::fs::read_to_string(path).ok()
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_a_form_lands_as_findings() {
    for row in ROWS {
        let rejected = review("REJECTED", &json!([finding()]));
        let model = Model::new(&[
            ("creator", &[(row.form)(&proposal())]),
            ("maker", &[(row.shell)(WORK), say(MADE)]),
            ("guardian", &[(row.form)(&rejected)]),
        ]);
        let test = test(&row, &model, "");
        let outcome = test.go(&["--agent", row.spec, "--auto-merge"]);
        assert_eq!(outcome.code, 14, "{outcome}");
        let said = &answer(&outcome, "creator")["said"]["proposal"];
        assert_eq!(said["files"], json!(["src/app.txt", "tests/app_test.sh"]), "{}", row.spec);
        assert_eq!(said["confidence"]["task_understanding"], 950_000, "{}", row.spec);
        let said = answer(&outcome, "guardian");
        assert_eq!(
            (&said["status"], &said["said"]["review"]["verdict"]),
            (&json!("DONE"), &json!("REJECTED"))
        );
        let found = &said["said"]["review"]["findings"][0];
        assert_eq!(found["file"], "src/app.txt", "{}: {outcome}", row.spec);
        assert_eq!(found["description"], "The line | has no end.", "{}", row.spec);
        let form: Value = serde_json::from_str(&kept(&outcome, "guardian", "answer.json").unwrap()).unwrap();
        assert_eq!(form, rejected, "{}: as it was given", row.spec);
        assert!(
            kept(&outcome, "guardian", "answer.md").unwrap().starts_with("VERDICT: REJECTED\nFINDINGS: 1\n")
        );
        assert!(kept(&outcome, "maker", "answer.json").is_none(), "a Maker answers in prose");
        assert!(
            kept(&outcome, "maker", "brief.md")
                .unwrap()
                .contains("STATUS: BLOCKED`. End this line with the code")
        );
        let told = kept(&outcome, "guardian", "brief.md").unwrap();
        assert!(told.contains("given a schema"), "{told}");
        assert!(!kept(&outcome, "maker", "brief.md").unwrap().contains("given a schema"));
        // The schema reached the model.
        let asked = model.asked_by("guardian")[0].to_string();
        assert!(asked.contains("additionalProperties") && asked.contains("evidence"), "{}", row.spec);
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_markdown_answers_are_read_as_before() {
    for row in ROWS {
        let model = Model::new(&[
            ("creator", &[(row.form)(&proposal())]),
            ("maker", &[(row.shell)(WORK), say(MADE)]),
            ("guardian", &[say(APPROVED)]),
        ]);
        let test = test(&row, &model, "");
        let outcome = test.go(&["--agent", row.spec, "--auto-merge"]).ended("merged", "approved", 0);
        assert!(kept(&outcome, "guardian", "answer.json").is_none(), "{}", row.spec);
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn d_04_a_form_that_does_not_fit_is_garbled() {
    for row in ROWS {
        let wrong = json!({"verdict": "fine", "findings": "none"});
        let model = Model::new(&[
            ("creator", &[(row.form)(&proposal())]),
            ("maker", &[(row.shell)(WORK), say(MADE)]),
            ("guardian", &[(row.form)(&wrong)]),
        ]);
        let test = test(&row, &model, "");
        let outcome = test.go(&["--agent", row.spec, "--auto-merge"]);
        assert_eq!(
            (outcome.json["reason"].as_str(), outcome.code),
            (Some("unparsable_review"), 14),
            "{outcome}"
        );
        let failed = lines(&outcome, "agent.failed", "guardian");
        assert!(
            !failed.is_empty() && failed.iter().all(|line| line["data"]["kind"] == "garbled"),
            "{outcome}"
        );
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn issue_4_without_the_setting_no_client_gets_a_schema() {
    for row in ROWS {
        let model = Model::new(&[("creator", &[say("## Nothing\n\nSTATUS: BLOCKED\n")])]);
        let test = test(&row, &model, "agents:\n  structured: false\n");
        let outcome = test.go(&["--agent", row.spec, "--auto-merge"]);
        assert!(!kept(&outcome, "creator", "brief.md").unwrap().contains("given a schema"), "{outcome}");
        assert!(!model.asked_by("creator")[0].to_string().contains("rejected_because"), "{}", row.spec);
    }
}
