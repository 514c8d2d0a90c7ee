//! Codex: `codex exec --json` with its stream of events.
//!
//! What to beware of: an `error` event is an attempt to get over something, only `turn.failed` is the end; without a
//! network it never ends by itself; it does not check a schema it was given; it has no prices; in a resumed
//! conversation it counts all tokens of it.

use std::path::{Path, PathBuf};

use archeflow_core::event::{Failure, Tokens};
use archeflow_core::model::Tier;
use serde_json::Value;

use super::{
    Client, ClientFault, ClientOutput, CommandInputs, LinkedFile, NO_CREDIT, Rest, Start, TOO_LONG,
    by_status, first_line, number, speaks_of, text,
};
use crate::backends::Invocation;

pub(super) const CLIENT: Client = Client {
    name: "codex",
    form: "codex[:<model>]",
    title: "Codex",
    vendor: "OpenAI",
    program: "codex",
    rest: Rest::Model,
    tried: [0, 166, 0],
    sign_in: "run `codex login`, or set CODEX_API_KEY",
    own: &["CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "CODEX_HOME"],
    names_itself_by: &[],
    needs: &["apply_patch"],
    counts_on: true,
    takes_schema: true,
    resumes_fragments: true,
    usage_files: &["sessions/*/*/*/*.jsonl"],
    count,
    command,
    hear,
};

fn command(inputs: &CommandInputs<'_>) -> Start {
    let mut args: Vec<std::ffi::OsString> = Vec::new();
    args.extend(["exec", "--json", "--skip-git-repo-check", "--ignore-user-config"].map(Into::into));
    args.extend(["-C".into(), inputs.tree.into()]);
    match inputs.readable.filter(|_| !inputs.writes) {
        // `-s read-only` reads every file that the user can (C-07).
        Some(readable) => {
            let name = r#"default_permissions="archeflow""#.into();
            args.extend(["-c".into(), name, "-c".into(), profile(inputs.tree, readable).into()]);
        }
        None => {
            let sandbox = if inputs.writes { "workspace-write" } else { "read-only" };
            args.extend(["-s", sandbox].map(Into::into));
        }
    }
    args.extend(["-c", r#"approval_policy="never""#].map(Into::into));
    // Neither instructions nor skills, be they the repository's or the user's; no keys for the commands it runs. Settings
    // of git go whole: git refuses to work when it finds their number and not their keys.
    args.extend(["-c", "project_doc_max_bytes=0", "-c", "skills.include_instructions=false"].map(Into::into));
    args.extend(
        ["-c", r#"shell_environment_policy.exclude=["*KEY*","*TOKEN*","*SECRET*","GIT_CONFIG_*"]"#]
            .map(Into::into),
    );
    if let Some(model) = model(inputs) {
        args.extend(["-m".into(), model.into()]);
    }
    if let Some(url) = inputs.variable("OPENAI_BASE_URL").and_then(|url| url.to_str()) {
        args.extend(["-c".into(), r#"model_provider="archeflow""#.into(), "-c".into(), provider(url).into()]);
    }
    let schema = inputs.schema.map(|schema| (inputs.home.join("answer.schema.json"), schema.to_owned()));
    if let Some((path, _)) = &schema {
        args.extend(["--output-schema".into(), path.into()]);
    }
    if let Some(session) = inputs.resumes {
        args.extend(["resume".into(), session.id.clone().into()]);
    }
    args.push("-".into());
    let mut env = vec![("CODEX_HOME".into(), inputs.home.into())];
    let key = inputs.variable("CODEX_API_KEY").or_else(|| inputs.variable("OPENAI_API_KEY"));
    env.extend(key.map(|key| ("CODEX_API_KEY".into(), key.to_owned())));
    let login = inputs.users_folder("CODEX_HOME", ".codex");
    let linked =
        login.map(|folder| LinkedFile { from: folder.join("auth.json"), to: inputs.home.join("auth.json") });
    Start {
        invocation: Invocation { program: CLIENT.program.into(), args },
        env,
        linked: linked.into_iter().collect(),
        files: schema.into_iter().collect(),
    }
}

/// A permission profile that reads the working copy, these paths and what every program needs, and writes nothing.
fn profile(tree: &Path, readable: &[PathBuf]) -> String {
    let paths = readable.iter().map(PathBuf::as_path).chain([tree]).filter_map(Path::to_str).map(toml_text);
    let rules: Vec<String> =
        paths.chain([toml_text(":minimal")]).map(|path| format!("{path}=\"read\"")).collect();
    format!("permissions.archeflow={{filesystem={{{}}}}}", rules.join(","))
}

/// What the client itself calls affordable, its workhorse, and made for the most demanding work. What another provider
/// has is not known here.
fn model<'a>(inputs: &CommandInputs<'a>) -> Option<&'a str> {
    match (inputs.model, inputs.tier) {
        ("", _) if inputs.variable("OPENAI_BASE_URL").is_some() && !inputs.usual_provider => None,
        ("", Tier::Haiku) => Some("gpt-6-luna"),
        ("", Tier::Sonnet) => Some("gpt-6.1-sol"),
        ("", Tier::Opus) => Some("gpt-6-astra"),
        (named, _) => Some(named),
    }
}

/// A provider at an address of the user's, asked few times: trying again is our own affair.
fn provider(url: &str) -> String {
    let url = toml_text(url);
    format!(
        "model_providers.archeflow={{name=\"archeflow\",base_url={url},wire_api=\"responses\",\
         env_key=\"CODEX_API_KEY\",request_max_retries=1,stream_max_retries=1,stream_idle_timeout_ms=120000}}"
    )
}

fn toml_text(text: &str) -> String {
    // A JSON string is a TOML one, but for control characters, which an address has not.
    Value::String(text.chars().filter(|c| !c.is_control()).collect()).to_string()
}

fn hear(line: &Value, heard: &mut ClientOutput) -> Option<String> {
    match text(line, "type") {
        "thread.started" => {
            text(line, "thread_id").clone_into(&mut heard.session);
            None
        }
        "item.started" | "item.completed" => {
            heard.hitch = None;
            item(line.get("item")?, text(line, "type") == "item.completed", heard)
        }
        "error" => {
            let said = text(line, "message").to_owned();
            let note = format!("waits for its provider: {said}");
            heard.hitch = Some(ClientFault::new(kind(&said), said));
            Some(note)
        }
        "turn.completed" => {
            heard.finished = true;
            heard.tokens = line.get("usage").map(tokens);
            None
        }
        "turn.failed" => {
            heard.finished = true;
            let said = line.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
            heard.fault = Some(ClientFault::new(kind(said), plain(said)));
            None
        }
        _ => None,
    }
}

fn item(item: &Value, completed: bool, heard: &mut ClientOutput) -> Option<String> {
    heard.worked |= text(item, "type") != "error";
    match (text(item, "type"), completed) {
        ("agent_message", true) => {
            text(item, "text").clone_into(&mut heard.answer);
            let in_a_form = heard.answer.starts_with('{');
            if in_a_form { Some("gives its answer".to_owned()) } else { first_line(&heard.answer) }
        }
        ("command_execution", false) => {
            first_line(shell_line(text(item, "command"))).map(|command| format!("runs {command}"))
        }
        ("file_change", false) => Some(format!("edits {}", item.pointer("/changes/0/path")?.as_str()?)),
        ("file_change", true) if text(item, "status") != "completed" => {
            heard.denied.push("apply_patch".to_owned());
            None
        }
        ("web_search", false) => Some("searches the web".to_owned()),
        _ => None,
    }
}

/// Commands are shown as the shell gets them.
fn shell_line(command: &str) -> &str {
    let inner = command.split_once(" -lc ").map_or(command, |(_, inner)| inner);
    inner.trim_matches(['\'', '"'])
}

/// A line of its rollout: the sum of all requests and what the last of them used, or the model it asks. The sum tells
/// requests apart, for the same figures may be written again.
fn count(line: &Value, heard: &mut ClientOutput) {
    let payload = line.get("payload").unwrap_or(&Value::Null);
    match (text(line, "type"), text(payload, "type")) {
        ("event_msg", "token_count") => {
            let (Some(sum), Some(last)) =
                (payload.pointer("/info/total_token_usage"), payload.pointer("/info/last_token_usage"))
            else {
                return;
            };
            heard.request(&number(sum, "total_tokens").to_string(), tokens(last));
        }
        ("turn_context", _) => text(payload, "model").clone_into(&mut heard.model),
        _ => {}
    }
}

fn tokens(usage: &Value) -> Tokens {
    Tokens {
        input: number(usage, "input_tokens"),
        output: number(usage, "output_tokens"),
        cache_read: number(usage, "cached_input_tokens"),
        cache_write: number(usage, "cache_write_input_tokens"),
    }
}

/// It passes on the provider's message, sometimes with the status in the middle of a sentence.
fn kind(said: &str) -> Failure {
    let status = ["unexpected status ", "last status: "].iter().find_map(|before| {
        let (_, rest) = said.split_once(before)?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    });
    match status {
        Some(status) => by_status(status, said),
        None if speaks_of(said, &["environment variable", "not logged in", "log in again"]) => Failure::Auth,
        None if speaks_of(said, &TOO_LONG) => Failure::ContextTooLong,
        None if speaks_of(said, &["usage limit", "quota"]) || speaks_of(said, &NO_CREDIT) => Failure::Quota,
        None if speaks_of(said, &["rate limit"]) => Failure::RateLimit,
        None if speaks_of(said, &["high demand", "overloaded", "at capacity"]) => Failure::Overload,
        None if speaks_of(said, &["incomplete response"]) => Failure::Garbled,
        None if speaks_of(said, &["network", "connection", "stream disconnected", "timeout"]) => {
            Failure::Network
        }
        None => Failure::Exit,
    }
}

/// Some messages are the provider's JSON as it came.
fn plain(said: &str) -> String {
    let value = serde_json::from_str::<Value>(said).ok();
    let inner = value.as_ref().and_then(|value| value.pointer("/error/message")).and_then(Value::as_str);
    inner.unwrap_or(said).to_owned()
}
