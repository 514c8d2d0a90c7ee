//! Claude Code: `claude -p` with its stream of JSON lines.
//!
//! What to beware of: `subtype` is success even when the provider refused; a run that ends without a `result` line
//! has failed, also with exit code 0; of the usage on `assistant` lines only the input is final, the output is in its
//! transcript; in a resumed conversation
//! `total_cost_usd` is the sum of all of it.

use archeflow_core::event::{Failure, Tokens};
use archeflow_core::model::{Money, Tier};
use archeflow_core::rules::ledger::Stated;
use serde_json::Value;

use super::{
    Client, ClientFault, ClientOutput, CommandInputs, LinkedFile, Rest, Start, by_status, first_line, number,
    pairs, speaks_of, text,
};
use crate::backends::Invocation;

pub(super) const CLIENT: Client = Client {
    name: "claude",
    form: "claude[:<model>]",
    title: "Claude Code",
    vendor: "Anthropic",
    program: "claude",
    rest: Rest::Model,
    tried: [2, 1, 325],
    sign_in: "run `claude` and sign in with /login, or set ANTHROPIC_API_KEY",
    own: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CONFIG_DIR",
    ],
    names_itself_by: &[],
    needs: &WRITING,
    counts_on: false,
    takes_schema: true,
    resumes_fragments: true,
    usage_files: &["projects/*/*.jsonl"],
    count: request,
    command,
    hear,
};

const READING: &str = "Read,Grep,Glob";
const WRITING: [&str; 4] = ["Bash", "Edit", "Write", "NotebookEdit"];

fn command(inputs: &CommandInputs<'_>) -> Start {
    let tools = if inputs.writes { format!("{READING},{}", WRITING.join(",")) } else { READING.to_owned() };
    let model = match (inputs.model, inputs.tier) {
        ("", Tier::Haiku) => "haiku",
        ("", Tier::Sonnet) => "sonnet",
        ("", Tier::Opus) => "opus",
        (named, _) => named,
    };
    let mode = if inputs.writes { "acceptEdits" } else { "default" };
    let mut args: Vec<&str> = vec!["-p", "--output-format", "stream-json", "--verbose", "--model", model];
    args.extend(["--tools", &tools, "--permission-mode", mode]);
    if inputs.writes {
        // The tools it has are those it may use: there is no user to ask. A reader who may use none without being
        // asked still reads its checkout, and nothing outside of it.
        args.extend(["--allowedTools", &tools]);
    }
    // Neither the user's nor the repository's settings, hooks and servers; no advertising in commits.
    args.extend(["--setting-sources", "", "--strict-mcp-config"]);
    args.extend(["--settings", r#"{"attribution":{"commit":"","pr":""}}"#]);
    if let Some(schema) = inputs.schema {
        args.extend(["--json-schema", schema]);
    }
    if let Some(session) = inputs.resumes {
        args.extend(["--resume", &session.id]);
    }
    // A resumed session counts on from its earlier cost, which the limit would include.
    let share = inputs.share.filter(|_| inputs.resumes.is_none()).map(Money::written);
    if let Some(share) = &share {
        args.extend(["--max-budget-usd", share]);
    }
    let mut env = pairs(&[
        ("CLAUDE_CODE_MAX_RETRIES", "2"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
        ("DISABLE_TELEMETRY", "1"),
        ("DISABLE_ERROR_REPORTING", "1"),
    ]);
    env.extend(inputs.owned(&CLIENT));
    env.push(("CLAUDE_CONFIG_DIR".into(), inputs.home.into()));
    let login = inputs.users_folder("CLAUDE_CONFIG_DIR", ".claude");
    let linked = login.map(|folder| LinkedFile {
        from: folder.join(".credentials.json"),
        to: inputs.home.join(".credentials.json"),
    });
    let args = args.into_iter().map(Into::into).collect();
    Start {
        invocation: Invocation { program: CLIENT.program.into(), args },
        env,
        linked: linked.into_iter().collect(),
        files: Vec::new(),
    }
}

fn hear(line: &Value, heard: &mut ClientOutput) -> Option<String> {
    match (text(line, "type"), text(line, "subtype")) {
        ("system", "init") => {
            text(line, "session_id").clone_into(&mut heard.session);
            text(line, "model").clone_into(&mut heard.model);
            text(line, "claude_code_version").clone_into(&mut heard.version);
            None
        }
        ("system", "api_retry") => {
            let said = format!("{} ({})", text(line, "error"), number(line, "error_status"));
            let kind = match number(line, "error_status") {
                0 => Failure::Network,
                status => by_status(status, &said),
            };
            let note = format!("waits for its provider: {said}");
            heard.hitch = Some(ClientFault::new(kind, said));
            Some(note)
        }
        ("system", "permission_denied") => Some(format!("was refused {}", text(line, "tool_name"))),
        ("assistant", _) => {
            heard.hitch = None;
            heard.worked |= line.pointer("/message/model").and_then(Value::as_str) != Some("<synthetic>");
            request(line, heard);
            line.pointer("/message/content")?.as_array()?.iter().find_map(note)
        }
        ("result", _) => {
            close(line, heard);
            None
        }
        _ => None,
    }
}

/// What one request used: in its output when the request begins, in its transcript when it has ended.
fn request(line: &Value, heard: &mut ClientOutput) {
    let message = line.get("message").unwrap_or(&Value::Null);
    let asked = text(message, "model") != "<synthetic>" && text(line, "type") == "assistant";
    if let Some(usage) = message.get("usage").filter(|_| asked) {
        text(message, "model").clone_into(&mut heard.model);
        heard.request(text(message, "id"), tokens(usage));
    }
}

/// What it is doing, for the live output.
fn note(block: &Value) -> Option<String> {
    let input = block.get("input").unwrap_or(&Value::Null);
    match (text(block, "type"), text(block, "name")) {
        ("text", _) => first_line(text(block, "text")),
        ("tool_use", "Read") => Some(format!("reads {}", text(input, "file_path"))),
        ("tool_use", "Write" | "Edit") => Some(format!("edits {}", text(input, "file_path"))),
        ("tool_use", "NotebookEdit") => Some(format!("edits {}", text(input, "notebook_path"))),
        ("tool_use", "Grep" | "Glob") => Some(format!("searches {}", text(input, "pattern"))),
        ("tool_use", "Bash") => first_line(text(input, "command")).map(|command| format!("runs {command}")),
        ("tool_use", "StructuredOutput") => Some("gives its answer".to_owned()),
        ("tool_use", name) => Some(format!("uses {name}")),
        _ => None,
    }
}

fn close(line: &Value, heard: &mut ClientOutput) {
    heard.finished = true;
    text(line, "result").clone_into(&mut heard.answer);
    heard.form = line.get("structured_output").filter(|form| !form.is_null()).map(Value::to_string);
    if !text(line, "session_id").is_empty() {
        text(line, "session_id").clone_into(&mut heard.session);
    }
    heard.tokens = line.get("usage").map(tokens);
    heard.cost = cost(line);
    let denials = line.get("permission_denials").and_then(Value::as_array).into_iter().flatten();
    heard.denied = denials.map(|denied| text(denied, "tool_name").to_owned()).collect();
    let failed = line.get("is_error").and_then(Value::as_bool).unwrap_or(true);
    heard.fault = if failed {
        Some(fault(line))
    } else {
        match text(line, "stop_reason") {
            "refusal" => Some(ClientFault::new(Failure::Refused, "the model declined the task")),
            "max_tokens" => {
                Some(ClientFault::new(Failure::Garbled, "its answer was cut off at the model's limit"))
            }
            _ => None,
        }
    };
}

/// The provider counts cached tokens beside the input; here they are part of it.
fn tokens(usage: &Value) -> Tokens {
    let cache_read = number(usage, "cache_read_input_tokens");
    let cache_write = number(usage, "cache_creation_input_tokens");
    let input = number(usage, "input_tokens").saturating_add(cache_read).saturating_add(cache_write);
    Tokens { input, output: number(usage, "output_tokens"), cache_read, cache_write }
}

/// What this call cost, model by model. A model without a known price has a guessed cost, which is worth less than
/// our own reckoning.
fn cost(line: &Value) -> Stated {
    let Some(models) = line.get("model_usage_since_last_result").and_then(Value::as_object) else {
        return Stated::Nothing;
    };
    let mut sum = Money::ZERO;
    for model in models.values() {
        if text(model, "costBasis") == "unknown" {
            return Stated::Nothing;
        }
        match model.get("costUSD").map_or(Stated::Nothing, |cost| Stated::read(&cost.to_string())) {
            Stated::Amount(amount) => sum = Money(sum.0.saturating_add(amount.0)),
            other @ (Stated::Nothing | Stated::Unusable) => return other,
        }
    }
    if models.is_empty() { Stated::Nothing } else { Stated::Amount(sum) }
}

fn fault(line: &Value) -> ClientFault {
    let errors = || line.pointer("/errors/0").and_then(Value::as_str).unwrap_or_default();
    let said = Some(text(line, "result")).filter(|said| !said.is_empty()).unwrap_or_else(errors);
    if text(line, "subtype") == "error_max_budget_usd" {
        return ClientFault::new(Failure::Budget, "it has used up its share of the budget");
    }
    let kind = match (text(line, "terminal_reason"), number(line, "api_error_status")) {
        ("prompt_too_long" | "blocking_limit", _) => Failure::ContextTooLong,
        ("structured_output_retry_exhausted", _) => Failure::Garbled,
        ("api_error", 0) if speaks_of(said, &["logged in", "/login", "api key"]) => Failure::Auth,
        ("api_error", 0) => Failure::Network,
        (_, 0) => Failure::Exit,
        (_, status) => by_status(status, said),
    };
    ClientFault::new(kind, said)
}
