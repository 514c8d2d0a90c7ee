//! `archeflow mcp` with clients that other people wrote: the official TypeScript client in all its modes, MCP Inspector, and
//! Claude Code, Codex and OpenCode with a scripted model, each registered as the manual says.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::clients::{CLAUDE, CODEX, OPENCODE, Row, clients, fetched, say};
use crate::harness::{Test, review};
use crate::mcp::{FINDING, configured};
use crate::model::{Model, Reply};
use crate::user::printed;

const PROGRAM: &str = env!("CARGO_BIN_EXE_archeflow");
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/e2e/mcp_client.mjs");

/// A repository with a change and a reviewer who finds something, and the programs on the path.
pub(super) fn test_with(row: Option<&Row>, more: &str) -> Test {
    // In a file that the change does not touch, so it names the line of the change that leads there.
    let finding = FINDING.replace("`line 2`", "`line 2`, which src/new.txt:1 reads");
    let test = configured(&review("guardian", "REJECTED", &[&finding]), more);
    test.file("src/new.txt", "new\n");
    let bin = test.base().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(PROGRAM, bin.join("archeflow")).unwrap();
    if let Some(row) = row {
        std::os::unix::fs::symlink(fetched(row.program), bin.join(row.name())).unwrap();
    }
    let node = clients().join("node22/node_modules/node/bin");
    let path = format!("{}:{}:/usr/local/bin:/usr/bin:/bin", bin.display(), node.display());
    test.env("PATH", path)
}

/// What a program of the path prints, with this on its standard input.
pub(super) fn output(test: &Test, words: &[&str], input: &str) -> String {
    let output = tried(test, words, input);
    assert!(output.status.success(), "{words:?}: {}", printed(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The same, however it ends.
pub(super) fn tried(test: &Test, words: &[&str], input: &str) -> Output {
    let mut command: Command = test.command("env");
    let mut child = command
        .args(words)
        .current_dir(&test.repo)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn mc_20_the_official_client_works_in_all_its_modes() {
    let folder = clients().join("mcp-client");
    assert!(folder.is_dir(), "run `cargo xtask clients`");
    let folder = folder.canonicalize().unwrap();
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("pinned", "2026-07-28")] {
        let test = test_with(None, "mcp:\n  decide: true\n");
        let text = output(&test, &["node", SCRIPT, folder.to_str().unwrap(), mode, "archeflow"], "");
        let got: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(got["version"], version, "{mode}: {got:#}");
        assert_eq!(got["tools"].as_array().unwrap().len(), 8, "{mode}");
        assert_eq!(
            got["review"]["findings"][0]["description"], "The second line is wrong.",
            "{mode}: {got:#}"
        );
        assert!(got["unknown"].as_str().unwrap().contains("no tool 'merge'"), "{mode}: {got:#}");
        assert_eq!(got["decided"]["status"], "decided", "{mode}: {got:#}");
        assert_eq!((&got["end"]["status"], &got["asked"]), (&"merged".into(), &1.into()), "{mode}: {got:#}");
        assert!(got["progress"].as_u64() > Some(0) && got["report"].as_u64() > Some(0), "{mode}: {got:#}");
    }
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn mc_21_the_inspector_lists_and_calls() {
    let test = test_with(None, "");
    let inspector = clients().join("mcp-inspector/node_modules/.bin/mcp-inspector");
    let inspect = |more: &[&str]| {
        let words =
            [&[inspector.to_str().unwrap(), "--cli", "archeflow", "mcp", "--method"][..], more].concat();
        serde_json::from_str::<Value>(&output(&test, &words, "")).unwrap()
    };
    assert_eq!(inspect(&["tools/list"])["tools"].as_array().unwrap().len(), 8);
    assert_eq!(inspect(&["prompts/list"])["prompts"].as_array().unwrap().len(), 2);
    assert_eq!(inspect(&["resources/list"])["resources"][0]["uri"], "archeflow://runs");
    let reviewed = inspect(&["tools/call", "--tool-name", "review"]);
    let finding = &reviewed["structuredContent"]["findings"][0];
    assert_eq!(finding["file"], "src/app.txt", "{reviewed:#}");
}

/// The model of a client asks for a review, and is given the finding.
fn gets_the_finding(row: &Row, tool: &'static str, go: impl FnOnce(&Test, &Model)) {
    let model = Model::new(&[("*", &[Reply::Use(tool, json!({})), say("All read.")])]);
    let variables = (row.model)(&model.address);
    let test =
        variables.into_iter().fold(test_with(Some(row), ""), |test, (name, value)| test.env(name, value));
    go(&test, &model);
    let last = model.asked_by("*").pop().unwrap().to_string();
    assert!(
        last.contains("The second line is wrong.") && last.contains("src/app.txt"),
        "{}\n{last}",
        row.spec
    );
    assert_eq!(test.run_ids().len(), 1);
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn mc_22_the_model_of_claude_code_gets_the_finding() {
    gets_the_finding(&CLAUDE, "mcp__archeflow__review", |test, _| {
        output(test, &["claude", "mcp", "add", "archeflow", "--", "archeflow", "mcp"], "");
        output(test, &["claude", "-p", "--allowedTools", "mcp__archeflow"], "Have my change reviewed");
    });
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn mc_22_the_model_of_codex_gets_the_finding() {
    gets_the_finding(&CODEX, "mcp__archeflow::review", |test, model| {
        output(test, &["codex", "mcp", "add", "archeflow", "--", "archeflow", "mcp"], "");
        let provider = format!(
            "model_providers.scripted={{name=\"scripted\",base_url=\"{}/v1\",wire_api=\"responses\",env_key=\"CODEX_API_KEY\"}}",
            model.address
        );
        let settings = [
            "model_provider=\"scripted\"",
            provider.as_str(),
            "mcp_servers.archeflow.tools.review.approval_mode=\"approve\"",
        ];
        let mut words = vec!["codex", "exec", "-m", "gpt-5.5"];
        words.extend(settings.iter().flat_map(|setting| ["-c", setting]));
        words.push("-");
        output(test, &words, "Have my change reviewed");
    });
}

#[test]
#[ignore = "needs the real clients: cargo xtask clients"]
fn mc_22_the_model_of_opencode_gets_the_finding() {
    gets_the_finding(&OPENCODE, "archeflow_review", |test, _| {
        let settings = json!({ "mcp": { "archeflow": { "type": "local", "command": ["archeflow", "mcp"], "enabled": true } } });
        let folder = test.home().join(".config/opencode");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("opencode.json"), settings.to_string()).unwrap();
        let listed = output(test, &["opencode", "mcp", "list"], "");
        assert!(listed.contains("connected"), "{listed}");
        output(test, &["opencode", "run", "--model", "local/scripted", "Have my change reviewed"], "");
    });
}
