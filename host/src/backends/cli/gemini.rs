//! Gemini CLI: `gemini -o stream-json`.
//!
//! What to beware of: the exit code is the provider's status modulo 256, so 401 looks like a signal; a brief that does
//! not fit ends well, with an empty answer and without a request; without a model a second one is asked which to take;
//! asked to end, it exits with 0. The text comes in pieces.
//!
//! The folder it works in is never trusted: in one that is, the repository's settings, hooks, servers and variables
//! come first, and the variables may name another host. The price is that it runs no git commands.

use archeflow_core::event::{Failure, Tokens};
use archeflow_core::model::Tier;
use serde_json::Value;

use super::{
    Client, ClientFault, ClientOutput, CommandInputs, LinkedFile, Rest, Start, TOO_LONG, by_status,
    first_line, number, pairs, speaks_of, text,
};
use crate::backends::Invocation;

pub(super) const CLIENT: Client = Client {
    name: "gemini",
    form: "gemini[:<model>]",
    title: "Gemini CLI",
    vendor: "Google",
    program: "gemini",
    rest: Rest::Model,
    tried: [0, 61, 0],
    sign_in: "run `gemini` and sign in, or set GEMINI_API_KEY",
    own: &[
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_GENAI_USE_VERTEXAI",
        "GEMINI_CLI_HOME",
    ],
    names_itself_by: &[],
    needs: &["write_file", "replace"],
    counts_on: false,
    takes_schema: false,
    resumes_fragments: false,
    usage_files: &[".gemini/tmp/*/chats/*.jsonl"],
    count,
    command,
    hear,
};

const READING: &str = r#""read_file","read_many_files","grep_search","glob","list_directory""#;
const WRITING: &str = r#""write_file","replace","run_shell_command""#;

fn command(inputs: &CommandInputs<'_>) -> Start {
    let model = match (inputs.model, inputs.tier) {
        ("", Tier::Haiku) => "flash-lite",
        ("", Tier::Sonnet) => "flash",
        ("", Tier::Opus) => "pro",
        (named, _) => named,
    };
    let mut args: Vec<&str> = vec!["-m", model, "-o", "stream-json"];
    if let Some(session) = inputs.resumes {
        args.extend(["--resume", &session.id]);
    }
    let mut env = pairs(&[
        ("GEMINI_CLI_TRUST_WORKSPACE", "false"),
        ("GEMINI_CLI_NO_RELAUNCH", "true"),
        ("GEMINI_TELEMETRY_ENABLED", "false"),
        ("NO_BROWSER", "true"),
        ("NO_COLOR", "1"),
    ]);
    env.extend(inputs.owned(&CLIENT));
    env.push(("GEMINI_CLI_HOME".into(), inputs.home.into()));
    let folder = inputs.home.join(".gemini");
    let users = inputs.users_folder("GEMINI_CLI_HOME", "").map(|home| home.join(".gemini"));
    let logins = ["oauth_creds.json", "google_accounts.json"];
    let linked = users.iter().flat_map(|users| logins.map(|login| (users.join(login), folder.join(login))));
    Start {
        invocation: Invocation {
            program: CLIENT.program.into(),
            args: args.into_iter().map(Into::into).collect(),
        },
        env,
        linked: linked.map(|(from, to)| LinkedFile { from, to }).collect(),
        files: vec![
            (folder.join("settings.json"), settings(inputs)),
            (folder.join("policies/archeflow.toml"), policy(inputs.writes)),
        ],
    }
}

/// The tools it has, how it signs in, and as few tries as it can be talked into.
fn settings(inputs: &CommandInputs<'_>) -> String {
    let tools = if inputs.writes { format!("{READING},{WRITING}") } else { READING.to_owned() };
    let vertex = inputs.variable("GOOGLE_GENAI_USE_VERTEXAI").is_some_and(|value| value == "true");
    let sign_in = match inputs.variable("GEMINI_API_KEY") {
        _ if vertex => "vertex-ai",
        Some(_) => "gemini-api-key",
        None => "oauth-personal",
    };
    format!(
        r#"{{"security":{{"auth":{{"selectedType":"{sign_in}"}},"folderTrust":{{"enabled":false}}}},"general":{{"enableAutoUpdate":false,"enableAutoUpdateNotification":false,"maxAttempts":2}},"privacy":{{"usageStatisticsEnabled":false}},"telemetry":{{"enabled":false}},"skills":{{"enabled":false}},"tools":{{"core":[{tools}]}}}}"#
    )
}

/// There is no user to ask: the Maker's tools are allowed in advance.
fn policy(writes: bool) -> String {
    let (which, decision) = if writes { (WRITING, "allow") } else { (WRITING, "deny") };
    let more = if writes { "allowRedirection = true\n" } else { "" };
    format!("[[rule]]\ntoolName = [{which}]\ndecision = \"{decision}\"\npriority = 900\n{more}")
}

fn hear(line: &Value, heard: &mut ClientOutput) -> Option<String> {
    match text(line, "type") {
        "init" => {
            text(line, "session_id").clone_into(&mut heard.session);
            text(line, "model").clone_into(&mut heard.model);
            None
        }
        "message" if text(line, "role") == "assistant" => {
            heard.worked = true;
            heard.say(text(line, "content"));
            None
        }
        "tool_use" => {
            heard.worked = true;
            heard.acted = true;
            heard.anew = true;
            note(line)
        }
        "tool_result" => {
            let refused = matches!(
                line.pointer("/error/type").and_then(Value::as_str),
                Some("tool_not_registered" | "policy_violation")
            );
            // The id of the call begins with the name of the tool.
            let tool = text(line, "tool_id").split("__").next().filter(|_| refused)?;
            heard.denied.push(tool.to_owned());
            Some(format!("was refused {tool}"))
        }
        "result" => {
            close(line, heard);
            first_line(&heard.answer)
        }
        _ => None,
    }
}

/// What it is doing, for the live output.
fn note(line: &Value) -> Option<String> {
    let input = line.get("parameters").unwrap_or(&Value::Null);
    Some(match text(line, "tool_name") {
        "read_file" => format!("reads {}", text(input, "file_path")),
        "list_directory" => format!("reads {}", text(input, "dir_path")),
        "write_file" | "replace" => format!("edits {}", text(input, "file_path")),
        "grep_search" | "glob" => format!("searches {}", text(input, "pattern")),
        "run_shell_command" => format!("runs {}", first_line(text(input, "command"))?),
        name => format!("uses {name}"),
    })
}

fn close(line: &Value, heard: &mut ClientOutput) {
    heard.finished = true;
    let stats = line.get("stats").unwrap_or(&Value::Null);
    heard.tokens = Some(tokens(stats));
    // First it reports the name it was given; the actual model only here.
    let models = stats.get("models").and_then(Value::as_object);
    if let Some(model) = models.and_then(|models| models.keys().next()) {
        model.clone_into(&mut heard.model);
    }
    let unasked = !heard.worked && number(stats, "total_tokens") == 0;
    heard.fault = match text(line, "status") {
        "success" if unasked => {
            let said = "it ended without asking the model, as it does with a brief that is too long";
            Some(ClientFault::new(Failure::ContextTooLong, said))
        }
        "success" => None,
        _ => Some(fault(line.pointer("/error/message").and_then(Value::as_str).unwrap_or_default())),
    };
}

/// A line of its record of the chat: a message of the model, with what the request for it used.
fn count(line: &Value, heard: &mut ClientOutput) {
    if let Some(used) = line.get("tokens").filter(|_| text(line, "type") == "gemini") {
        text(line, "model").clone_into(&mut heard.model);
        let input = number(used, "input");
        let output = number(used, "total").saturating_sub(input).max(number(used, "output"));
        let used = Tokens { input, output, cache_read: number(used, "cached"), cache_write: 0 };
        heard.request(text(line, "id"), used);
    }
}

/// Thoughts are paid for as output, but counted only in the sum.
fn tokens(stats: &Value) -> Tokens {
    let input = number(stats, "input_tokens");
    let rest = number(stats, "total_tokens").saturating_sub(input);
    Tokens {
        input,
        output: rest.max(number(stats, "output_tokens")),
        cache_read: number(stats, "cached"),
        cache_write: 0,
    }
}

/// The provider's answer in brackets, as JSON or only its message. The client's own advice may follow.
fn fault(message: &str) -> ClientFault {
    let (said, advice) = message.split_once("]\n").unwrap_or((message, ""));
    let said = said.trim_start_matches("[API Error: ").trim_end_matches(']');
    let answer = serde_json::from_str::<Value>(said).unwrap_or_default();
    let error = answer.get("error").unwrap_or(&Value::Null);
    let plain = Some(text(error, "message")).filter(|plain| !plain.is_empty()).unwrap_or(said);
    let kind = match number(error, "code") {
        0 if speaks_of(said, &["quota", "exhausted"]) => Failure::Quota,
        0 if speaks_of(advice, &["try again later"]) => Failure::RateLimit,
        0 if speaks_of(said, &TOO_LONG) => Failure::ContextTooLong,
        0 if speaks_of(said, &["terminated", "fetch failed", "econn", "etimedout", "socket", "network"]) => {
            Failure::Network
        }
        0 if speaks_of(said, &["api key", "unauthenticated", "credentials"]) => Failure::Auth,
        0 if message.starts_with("[API Error") => Failure::Refused,
        0 => Failure::Exit,
        status => by_status(status, plain),
    };
    ClientFault::new(kind, plain)
}
