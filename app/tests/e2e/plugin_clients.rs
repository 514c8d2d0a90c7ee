//! What `archeflow init --client` writes, in the clients it is for: their own checks of it, and Claude Code with a scripted
//! model, as the manual says.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::clients::{CLAUDE, CODEX, GEMINI, OPENCODE, Row, say};
use crate::harness::Test;
use crate::mcp_clients::{output, test_with, tried};
use crate::model::{Model, Reply};

/// A user of this client whose model is scripted.
fn user_of(row: &Row, model: &Model, more: &str) -> Test {
    let variables = (row.model)(&model.address);
    variables.into_iter().fold(test_with(Some(row), more), |test, (name, value)| test.env(name, value))
}

fn set_up(test: &Test, client: &str) -> String {
    output(test, &["archeflow", "init", "--client", client, "--yes"], "")
}

fn silent_model() -> Model {
    Model::new(&[("*", &[say("Nothing.")])])
}

/// Set up as the manual says: what is printed is typed.
fn with_plugin(test: &Test) {
    let printed = set_up(test, "claude");
    let commands: Vec<&str> = printed.lines().filter(|line| line.starts_with("  claude ")).collect();
    assert_eq!(commands.len(), 2, "{printed}");
    for command in commands {
        output(test, &["sh", "-c", command], "");
    }
    let listed = output(test, &["claude", "plugin", "list"], "");
    assert!(listed.contains("archeflow@archeflow") && listed.contains("enabled"), "{listed}");
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn pl_20_claude_code_and_gemini_cli_find_the_pieces_valid() {
    let test = user_of(&CLAUDE, &silent_model(), "");
    set_up(&test, "claude");
    let folder = test.home().join(".local/share/archeflow/claude");
    let valid = |what: &Path| tried(&test, &["claude", "plugin", "validate", what.to_str().unwrap()], "");
    for what in [folder.clone(), folder.join("archeflow")] {
        let output = valid(&what);
        assert!(output.status.success(), "{}", crate::user::printed(&output));
    }
    let manifest = folder.join("archeflow/.claude-plugin/plugin.json");
    fs::write(&manifest, fs::read_to_string(&manifest).unwrap().replace("\"name\"", "\"nam\"")).unwrap();
    assert!(!valid(&folder.join("archeflow")).status.success(), "a broken one is noticed");

    let test = user_of(&GEMINI, &silent_model(), "");
    set_up(&test, "gemini");
    let folder = test.home().join(".gemini/extensions/archeflow");
    let valid = || tried(&test, &["gemini", "extensions", "validate", folder.to_str().unwrap()], "");
    let output = valid();
    assert!(output.status.success(), "{}", crate::user::printed(&output));
    let listed = tried(&test, &["gemini", "extensions", "list"], "");
    let listed = crate::user::printed(&listed);
    assert!(listed.contains("archeflow (") && listed.contains("Enabled (User): true"), "{listed}");
    fs::write(folder.join("gemini-extension.json"), "{ \"name\": 7 ").unwrap();
    assert!(!valid().status.success(), "a broken one is noticed");
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn pl_21_codex_and_opencode_list_the_server() {
    let test = user_of(&CODEX, &silent_model(), "");
    let config = test.home().join(".codex/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "# mine\n[mcp_servers.other]\ncommand = \"true\"\n").unwrap();
    set_up(&test, "codex");
    let listed = output(&test, &["codex", "mcp", "list"], "");
    assert!(listed.contains("archeflow") && listed.contains("other"), "{listed}");
    let prompt = output(&test, &["codex", "debug", "prompt-input", "hello"], "");
    assert!(prompt.contains("quality-loop: Have work reviewed"), "{prompt}");

    let test = user_of(&OPENCODE, &silent_model(), "");
    let config = test.home().join(".config/opencode/opencode.json");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(&config, "{\n  // mine\n  \"share\": \"disabled\",\n}\n").unwrap();
    set_up(&test, "opencode");
    let listed = output(&test, &["opencode", "mcp", "list"], "");
    assert!(listed.contains("archeflow") && listed.contains("connected"), "{listed}");
    let resolved = output(&test, &["opencode", "debug", "config"], "");
    assert!(resolved.contains("\"af-review\"") && resolved.contains("\"share\": \"disabled\""), "{resolved}");
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn pl_22_a_session_of_claude_code_reviews_by_the_command_of_the_plugin() {
    let review = Reply::Use("mcp__plugin_archeflow_archeflow__review", json!({}));
    let model = Model::new(&[("*", &[review, say("All read.")])]);
    let test = user_of(&CLAUDE, &model, "domain: writing\n");
    with_plugin(&test);
    output(&test, &["claude", "-p"], "/archeflow:af-review staged or not");
    let asked = model.asked_by("*");
    let (first, last) = (asked.first().unwrap().to_string(), asked.last().unwrap().to_string());
    assert!(first.contains("archeflow: the domain of this repository is writing."), "{first}");
    assert!(first.contains("What to review: staged or not"), "{first}");
    assert!(last.contains("The second line is wrong.") && last.contains("src/app.txt"), "{last}");
    assert_eq!(test.run_ids().len(), 1);
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn pl_23_a_session_of_claude_code_goes_on_with_findings_when_it_would_stop() {
    let model = Model::new(&[("*", &[say("Done."), say("Seen.")])]);
    let test = user_of(&CLAUDE, &model, "client:\n  review_on_stop: true\n");
    with_plugin(&test);
    let said = output(&test, &["claude", "-p"], "Say that you are done");
    let asked = model.asked_by("*");
    assert_eq!(asked.len(), 2, "it goes on once: {said}");
    let last = asked[1].to_string();
    assert!(last.contains("archeflow reviewed what is not committed: 1 finding."), "{last}");
    assert!(last.contains("CRITICAL src/app.txt:2") && said.contains("Seen."), "{said} {last}");
    assert_eq!(test.run_ids().len(), 1);
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn pl_24_a_session_of_opencode_reviews_by_the_command() {
    let model = Model::new(&[("*", &[Reply::Use("archeflow_review", json!({})), say("All read.")])]);
    let test = user_of(&OPENCODE, &model, "");
    set_up(&test, "opencode");
    output(
        &test,
        &["opencode", "run", "--model", "local/scripted", "--command", "af-review", "everything"],
        "",
    );
    gets_the_finding(&test, &model);
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn pl_25_a_session_of_gemini_cli_reviews_by_the_command() {
    let model = Model::new(&[("*", &[Reply::Use("mcp_archeflow_review", json!({})), say("All read.")])]);
    let test = user_of(&GEMINI, &model, "");
    set_up(&test, "gemini");
    let sign_in = json!({ "security": { "auth": { "selectedType": "gemini-api-key" } } });
    fs::write(test.home().join(".gemini/settings.json"), sign_in.to_string()).unwrap();
    // Without a model it asks one which to use, in a form that is not scripted.
    output(
        &test,
        &["gemini", "-m", "gemini-2.5-flash", "--skip-trust", "--yolo", "-p", "/af:review everything"],
        "",
    );
    gets_the_finding(&test, &model);
}

/// The command was taken for what it is, and the model was given the finding.
fn gets_the_finding(test: &Test, model: &Model) {
    let asked = model.asked_by("*");
    let (first, last) = (asked.first().unwrap().to_string(), asked.last().unwrap().to_string());
    assert!(first.contains("What to review: everything"), "{first}");
    assert!(last.contains("The second line is wrong.") && last.contains("src/app.txt"), "{last}");
    assert_eq!(test.run_ids().len(), 1);
}
