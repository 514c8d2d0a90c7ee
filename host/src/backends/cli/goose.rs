//! Goose: `goose run --output-format stream-json`.
//!
//! What to beware of: it exits with 0 whatever the provider does; a failure is a message without an id, and a closing
//! line without a number of tokens. In a resumed conversation it counts all tokens of it. Its own tool for
//! working with files is all or nothing, so readers get the one that looks at the structure of code.

use archeflow_core::event::{Failure, Tokens};
use serde_json::Value;

use super::{
    Client, ClientFault, ClientOutput, CommandInputs, LinkedFile, NO_CREDIT, Rest, Start, TOO_LONG,
    first_line, number, pairs, speaks_of, text,
};
use crate::backends::Invocation;

pub(super) const CLIENT: Client = Client {
    name: "goose",
    form: "goose[:<provider>/<model>]",
    title: "Goose",
    vendor: "Goose",
    program: "goose",
    rest: Rest::Model,
    tried: [1, 34, 0],
    sign_in: "name provider and model (goose:<provider>/<model>, or GOOSE_PROVIDER and GOOSE_MODEL), and run \
              `goose configure` or set the provider's key",
    own: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_HOST",
        "DATABRICKS_HOST",
        "DATABRICKS_TOKEN",
        "DBUS_SESSION_BUS_ADDRESS",
        "GOOGLE_API_KEY",
        "GOOSE_DISABLE_KEYRING",
        "GOOSE_MODEL",
        "GOOSE_PATH_ROOT",
        "GOOSE_PROVIDER",
        "GROQ_API_KEY",
        "OLLAMA_HOST",
        "OPENAI_API_KEY",
        "OPENAI_BASE_PATH",
        "OPENAI_HOST",
        "OPENROUTER_API_KEY",
        "XAI_API_KEY",
        "XDG_CONFIG_HOME",
    ],
    names_itself_by: &["GOOSE_PROVIDER"],
    needs: &["write", "edit", "shell"],
    counts_on: true,
    takes_schema: false,
    resumes_fragments: true,
    usage_files: &["state/logs/llm_request.*.jsonl"],
    count,
    command,
    hear,
};

/// Every conversation has this name. The last one is resumed: the home belongs to one archetype.
const CONVERSATION: &str = "archeflow";

fn command(inputs: &CommandInputs<'_>) -> Start {
    let tools = if inputs.writes { "developer" } else { "analyze" };
    let mut args: Vec<&str> = vec!["run", "-q", "--output-format", "stream-json"];
    args.extend(["--no-profile", "--with-builtin", tools]);
    let (provider, model) = inputs.model.split_once('/').unwrap_or(("", inputs.model));
    for (flag, value) in [("--provider", provider), ("--model", model)] {
        if !value.is_empty() {
            args.extend([flag, value]);
        }
    }
    let name = inputs.resumes.map_or(CONVERSATION, |session| &session.id);
    args.extend(["-n", name]);
    if inputs.resumes.is_some() {
        args.push("-r");
    }
    args.extend(["-i", "-"]);
    let mut env = pairs(&[
        ("GOOSE_MODE", "auto"),
        ("GOOSE_TELEMETRY_ENABLED", "false"),
        ("GOOSE_TELEMETRY_OFF", "1"),
        ("GOOSE_DISABLE_SESSION_NAMING", "true"),
        // How long a provider asks to wait is our own affair: it would wait in silence, for hours if told so.
        ("GOOSE_PROVIDER_SKIP_BACKOFF", "true"),
        // No instructions from the repository.
        ("CONTEXT_FILE_NAMES", "[]"),
    ]);
    let set = || inputs.variable("GOOSE_PROVIDER").and_then(|name| name.to_str()).unwrap_or_default();
    let asked = if provider.is_empty() { set() } else { provider };
    env.extend(inputs.owned_for(&CLIENT, asked, ""));
    env.push(("GOOSE_PATH_ROOT".into(), inputs.home.into()));
    let linked = secrets(inputs).map(|from| LinkedFile { from, to: inputs.home.join("config/secrets.yaml") });
    Start {
        invocation: Invocation {
            program: CLIENT.program.into(),
            args: args.into_iter().map(Into::into).collect(),
        },
        env,
        linked: linked.into_iter().collect(),
        files: Vec::new(),
    }
}

/// The file with keys, for users who keep them in one.
fn secrets(inputs: &CommandInputs<'_>) -> Option<std::path::PathBuf> {
    let folder = match inputs.variable("GOOSE_PATH_ROOT") {
        Some(root) => std::path::Path::new(root).join("config"),
        None => inputs.users_folder("XDG_CONFIG_HOME", ".config")?.join("goose"),
    };
    Some(folder.join("secrets.yaml"))
}

fn hear(line: &Value, heard: &mut ClientOutput) -> Option<String> {
    if let Some(said) = line.as_str().and_then(|line| line.strip_prefix("error: ")) {
        heard.hitch = Some(ClientFault::new(kind(said), said));
        return first_line(said);
    }
    match text(line, "type") {
        "message" => {
            let message = line.get("message")?;
            let own_words = message.get("id").is_some_and(Value::is_null);
            let blocks = message.get("content")?.as_array()?;
            blocks.iter().filter_map(|block| read_block(block, own_words, heard)).last()
        }
        "complete" => {
            close(line, heard);
            first_line(&heard.answer)
        }
        _ => None,
    }
}

/// One block of a message. What has no id comes from the client and not from the model.
fn read_block(block: &Value, own_words: bool, heard: &mut ClientOutput) -> Option<String> {
    match text(block, "type") {
        "text" if own_words => {
            let said = text(block, "text");
            heard.hitch = Some(ClientFault::new(kind(said), plain(said)));
            first_line(said)
        }
        "systemNotification" => {
            let said = text(block, "msg");
            if speaks_of(said, &["unable to continue"]) {
                heard.fault = Some(ClientFault::new(kind(said), said));
            }
            first_line(said)
        }
        "text" => {
            heard.worked = true;
            heard.hitch = None;
            heard.say(text(block, "text"));
            None
        }
        "toolRequest" => {
            heard.worked = true;
            heard.hitch = None;
            heard.anew = true;
            note(block.pointer("/toolCall/value")?)
        }
        "toolResponse" => {
            heard.anew = true;
            let error = block.pointer("/toolResult/error").and_then(Value::as_str).unwrap_or_default();
            let (_, rest) = error.split_once("Tool '")?;
            let tool = rest.split('\'').next().filter(|_| rest.contains("not found"))?;
            heard.denied.push(tool.to_owned());
            Some(format!("was refused {tool}"))
        }
        _ => None,
    }
}

/// What it is doing, for the live output.
fn note(call: &Value) -> Option<String> {
    let input = call.get("arguments").unwrap_or(&Value::Null);
    Some(match text(call, "name") {
        "analyze" | "tree" => format!("reads {}", text(input, "path")),
        "write" | "edit" => format!("edits {}", text(input, "path")),
        "shell" => format!("runs {}", first_line(text(input, "command"))?),
        name => format!("uses {name}"),
    })
}

fn close(line: &Value, heard: &mut ClientOutput) {
    heard.finished = true;
    CONVERSATION.clone_into(&mut heard.session);
    let counted = line.get("total_tokens").is_some_and(Value::is_u64);
    heard.worked |= counted;
    heard.tokens = counted.then(|| Tokens {
        input: number(line, "input_tokens"),
        output: number(line, "output_tokens"),
        ..Tokens::default()
    });
    // Its last message is the reason it stopped.
    let last = heard.hitch.take();
    let silent =
        || (!counted).then(|| ClientFault::new(Failure::Exit, "it closed without having counted a token"));
    heard.fault = heard.fault.take().or(last).or_else(silent);
}

/// A line of its record of a request: the model that is asked, then pieces of the answer, the last with the usage.
fn count(line: &Value, heard: &mut ClientOutput) {
    if let Some(model) = line.pointer("/model_config/model_name").and_then(Value::as_str) {
        model.clone_into(&mut heard.model);
    }
    let Some(usage) = line.get("usage").filter(|usage| usage.is_object()) else { return };
    let id = line.pointer("/data/id").and_then(Value::as_str).map(str::to_owned);
    let id = id.unwrap_or_else(|| format!("request {}", heard.requests.len()));
    let used = Tokens {
        input: number(usage, "input_tokens"),
        output: number(usage, "output_tokens"),
        cache_read: number(usage, "cache_read_input_tokens"),
        cache_write: number(usage, "cache_write_input_tokens"),
    };
    heard.request(&id, used);
}

fn kind(said: &str) -> Failure {
    match said {
        said if speaks_of(said, &TOO_LONG) || speaks_of(said, &["context limit", "context length"]) => {
            Failure::ContextTooLong
        }
        said if speaks_of(
            said,
            &["authentication error", "401", "403 forbidden", "provider configured", "value not found"],
        ) =>
        {
            Failure::Auth
        }
        said if speaks_of(said, &["quota", "credits", "usage limit"]) || speaks_of(said, &NO_CREDIT) => {
            Failure::Quota
        }
        said if speaks_of(said, &["rate limit"]) => Failure::RateLimit,
        said if speaks_of(said, &["server error"]) => Failure::Overload,
        said if speaks_of(
            said,
            &["network error", "stream decode error", "could not connect", "timed out"],
        ) =>
        {
            Failure::Network
        }
        said if speaks_of(said, &["request failed", "unknown provider"]) => Failure::Refused,
        _ => Failure::Exit,
    }
}

/// Without what it wraps every failure in.
fn plain(said: &str) -> &str {
    let said = said.trim_start_matches("Ran into this error: ");
    said.split_once("\n\nPlease re").map_or(said, |(said, _)| said).trim_end_matches('.')
}
