//! OpenCode: `opencode run --format json`.
//!
//! What to beware of: there is no closing line, a step that does not end with tool calls is the last one; tokens and
//! cost are on each step and are added up; a conversation that is too long is summarised and retried without end;
//! without a network it neither ends nor reports it. Our plugin prints what the lines
//! leave out, and stops it where it would retry for ever.
//!
//! It has no folder of its own but those of the XDG variables. They are the client's while it runs; the commands it
//! runs get the user's again, from the companion.

use std::path::Path;

use archeflow_core::event::{Failure, Tokens};
use archeflow_core::model::Money;
use archeflow_core::rules::ledger::Stated;
use serde_json::{Value, json};

use super::{
    Client, ClientFault, ClientOutput, CommandInputs, LinkedFile, Rest, Start, by_status, counts_nothing,
    first_line, number, pairs, speaks_of, text,
};
use crate::backends::Invocation;

pub(super) const CLIENT: Client = Client {
    name: "opencode",
    form: "opencode[:<provider>/<model>]",
    title: "OpenCode",
    vendor: "OpenCode",
    program: "opencode",
    rest: Rest::Model,
    tried: [1, 18, 33],
    sign_in: "run `opencode auth login`, or set the key of its provider, and name the model: opencode:<provider>/<model>",
    own: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "DEEPSEEK_API_KEY",
        "GEMINI_API_KEY",
        "GOOGLE_GENERATIVE_AI_API_KEY",
        "GROQ_API_KEY",
        "MISTRAL_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENCODE_API_KEY",
        "OPENCODE_CONFIG",
        "OPENCODE_CONFIG_CONTENT",
        "OPENROUTER_API_KEY",
        "XAI_API_KEY",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
    ],
    names_itself_by: &[],
    needs: &["write", "edit", "apply_patch", "bash"],
    counts_on: false,
    takes_schema: false,
    resumes_fragments: true,
    usage_files: &[],
    count: counts_nothing,
    command,
    hear,
};

/// The name of the agent in its settings.
const PLAYER: &str = "archeflow";
const FOLDERS: [(&str, &str, &str); 3] = [
    ("XDG_CONFIG_HOME", "config", ".config"),
    ("XDG_DATA_HOME", "data", ".local/share"),
    ("XDG_STATE_HOME", "state", ".local/state"),
];

fn command(inputs: &CommandInputs<'_>) -> Start {
    let mut args: Vec<&str> = vec!["run", "--format", "json", "--agent", PLAYER];
    if !inputs.model.is_empty() {
        args.extend(["-m", inputs.model]);
    }
    if let Some(session) = inputs.resumes {
        args.extend(["-s", &session.id]);
    }
    let mut env = pairs(&[
        ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
        ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
        ("OPENCODE_DISABLE_PROJECT_CONFIG", "1"),
        ("OPENCODE_DISABLE_CLAUDE_CODE", "1"),
        ("OPENCODE_DISABLE_EXTERNAL_SKILLS", "1"),
    ]);
    let settings =
        inputs.variable("OPENCODE_CONFIG_CONTENT").map(|text| text.to_string_lossy()).unwrap_or_default();
    env.extend(inputs.owned_for(&CLIENT, &provider(inputs.model, &settings), &settings));
    env.extend(FOLDERS.map(|(name, folder, _)| (name.into(), inputs.home.join(folder).into())));
    // Where it looks for what it shares with other programs.
    env.push(("OPENCODE_TEST_HOME".into(), inputs.home.into()));
    let args = args.into_iter().map(Into::into).collect();
    Start {
        invocation: Invocation { program: CLIENT.program.into(), args },
        env,
        linked: linked(inputs),
        files: files(inputs),
    }
}

/// The provider that is asked: of the model that is named, or that the user's settings name. Unknown where only the
/// client knows which model was used last.
fn provider(model: &str, settings: &str) -> String {
    let settings = serde_json::from_str::<Value>(settings).unwrap_or_default();
    let model = if model.is_empty() { text(&settings, "model") } else { model };
    model.split_once('/').map(|(provider, _)| provider.to_owned()).unwrap_or_default()
}

/// The login, and which model was used last.
fn linked(inputs: &CommandInputs<'_>) -> Vec<LinkedFile> {
    let files = ["", "auth.json", "model.json"];
    let link_file = |((variable, folder, usual), file): ((&str, &str, &str), &str)| {
        let users = inputs.users_folder(variable, usual)?;
        let (from, to) = (users.join("opencode"), inputs.home.join(folder).join("opencode"));
        (!file.is_empty()).then(|| LinkedFile { from: from.join(file), to: to.join(file) })
    };
    FOLDERS.into_iter().zip(files).filter_map(link_file).collect()
}

fn files(inputs: &CommandInputs<'_>) -> Vec<(std::path::PathBuf, String)> {
    let folder = inputs.home.join("config/opencode");
    let companion = inputs.home.join("companion.js");
    // It fetches a package for plugins from the network, which ours does not need, unless it seems to be there.
    let package = r#"{"@opencode-ai/plugin":"*"}"#;
    vec![
        (folder.join("opencode.json"), settings(inputs, &companion)),
        (folder.join("package.json"), format!(r#"{{"dependencies":{package}}}"#)),
        (
            folder.join("package-lock.json"),
            format!(r#"{{"lockfileVersion":3,"packages":{{"":{{"dependencies":{package}}}}}}}"#),
        ),
        (folder.join("node_modules/.keep"), String::new()),
        (companion, companion_text(inputs)),
    ]
}

/// OpenCode can start further sessions of its own (its `task` tool). Their tokens are not in the output we read, so only
/// the tools listed here are allowed.
fn settings(inputs: &CommandInputs<'_>, companion: &Path) -> String {
    let mut may = json!({"*": "deny", "read": "allow", "glob": "allow", "grep": "allow", "list": "allow"});
    if inputs.writes {
        for tool in ["edit", "bash", "todowrite", "external_directory"] {
            may[tool] = json!("allow");
        }
    }
    // Its makers' own provider is free without an account. No code is sent there unasked.
    let unasked: &[&str] = if inputs.model.starts_with("opencode/") { &[] } else { &["opencode"] };
    json!({
        "autoupdate": false,
        "share": "disabled",
        "snapshot": false,
        "formatter": false,
        "lsp": false,
        "disabled_providers": unasked,
        "plugin": [format!("file://{}", companion.display())],
        // Generating a title would be a request to the model that is not counted.
        "agent": {PLAYER: {"mode": "primary", "permission": may}, "title": {"disable": true}},
    })
    .to_string()
}

/// Our plugin: the user's folders for the commands it runs, and lines about what the others leave out. The note
/// it leaves in the git directory goes, or a reader would seem to have changed its checkout.
fn companion_text(inputs: &CommandInputs<'_>) -> String {
    let folders = FOLDERS.map(|(name, _, _)| {
        let value = inputs.variable(name).map(|value| Value::from(value.to_string_lossy().into_owned()));
        format!("{name}: {}", value.map_or_else(|| "undefined".to_owned(), |value| value.to_string()))
    });
    COMPANION.replace("FOLDERS", &folders.join(", "))
}

const COMPANION: &str = r#"import { rmSync } from "node:fs"
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n")
let model = "", said = "", overflows = 0
export const Companion = async ({ worktree }) => {
  process.on("exit", () => rmSync(`${worktree}/.git/opencode`, { force: true }))
  return hooks
}
const hooks = {
  "shell.env": async (_, output) => { Object.assign(output.env, { FOLDERS }) },
  event: async ({ event }) => {
    const about = event.properties ?? {}
    if (event.type === "message.updated" && about.info?.role === "assistant") {
      const now = `${about.info.providerID}/${about.info.modelID}`
      if (now !== model) say({ type: "player", model: (model = now) })
      if (about.info.finish === "tool-calls") overflows = 0
    }
    if (event.type === "session.status" && about.status?.type === "retry") {
      const { attempt, message } = about.status
      if (message !== said) say({ type: "retry", message: (said = message) })
      if (attempt >= (/connect|network|fetch|socket/i.test(message) ? 3 : 6)) process.exit(1)
    }
    if (event.type === "session.error" && about.error?.name === "ContextOverflowError") {
      if (++overflows > 1) {
        say({ type: "too_long", message: about.error.data?.message ?? "" })
        setTimeout(() => process.exit(1), 500)
      }
    }
  },
}
"#;

fn hear(line: &Value, heard: &mut ClientOutput) -> Option<String> {
    if !text(line, "sessionID").is_empty() {
        text(line, "sessionID").clone_into(&mut heard.session);
    }
    let part = line.get("part").unwrap_or(&Value::Null);
    match text(line, "type") {
        "step_start" => {
            heard.worked = true;
            heard.finished = false;
            None
        }
        // It has summarised the conversation and continues.
        "text" if part.get("synthetic").is_some() => {
            heard.hitch = None;
            heard.finished = false;
            Some("sums up what it has read".to_owned())
        }
        "text" => {
            text(part, "text").clone_into(&mut heard.answer);
            first_line(&heard.answer)
        }
        "tool_use" => tool(part, heard),
        "step_finish" => {
            step(part, heard);
            None
        }
        "error" => {
            fault(line.get("error")?, heard);
            None
        }
        "player" => {
            text(line, "model").clone_into(&mut heard.model);
            None
        }
        // It would sum up once more, and may have begun to when it is ended: that changes nothing any more.
        "too_long" => {
            heard.fault = Some(ClientFault::new(Failure::ContextTooLong, text(line, "message")));
            None
        }
        "retry" => {
            let said = text(line, "message");
            heard.hitch = Some(ClientFault::new(hitch(said), said));
            Some(format!("waits for its provider: {said}"))
        }
        _ => None,
    }
}

/// What it has done, for the live output; and what it was refused.
fn tool(part: &Value, heard: &mut ClientOutput) -> Option<String> {
    let state = part.get("state").unwrap_or(&Value::Null);
    let input = state.get("input").unwrap_or(&Value::Null);
    let refused = match text(part, "tool") {
        "invalid" => Some(text(input, "tool")),
        tool if speaks_of(
            text(state, "error"),
            &["rejected permission", "prevents you from using", "unavailable tool"],
        ) =>
        {
            Some(tool)
        }
        _ => None,
    };
    if let Some(tool) = refused {
        heard.denied.push(tool.to_owned());
        return Some(format!("was refused {tool}"));
    }
    Some(match text(part, "tool") {
        "read" | "list" => format!("reads {}", text(input, "filePath")),
        "write" | "edit" => format!("edits {}", text(input, "filePath")),
        "glob" | "grep" => format!("searches {}", text(input, "pattern")),
        "bash" => format!("runs {}", first_line(text(input, "command"))?),
        name => format!("uses {name}"),
    })
}

fn step(part: &Value, heard: &mut ClientOutput) {
    heard.tokens = Some(plus(heard.tokens.unwrap_or_default(), part.get("tokens").unwrap_or(&Value::Null)));
    heard.cost = more(heard.cost, part.get("cost").unwrap_or(&Value::Null));
    // The step after one that was too long is the summing up, not the work.
    let sums_up = heard.hitch.as_ref().is_some_and(|hitch| hitch.kind == Failure::ContextTooLong);
    if sums_up {
        return;
    }
    heard.hitch = None;
    heard.finished = text(part, "reason") != "tool-calls";
    if text(part, "reason") == "content-filter" {
        heard.fault = Some(ClientFault::new(Failure::Refused, "the model declined the task"));
    }
}

/// Cached tokens are counted beside the input, and thoughts beside the output.
fn plus(sum: Tokens, step: &Value) -> Tokens {
    let cache = step.get("cache").unwrap_or(&Value::Null);
    let (read, write) = (number(cache, "read"), number(cache, "write"));
    let input = number(step, "input").saturating_add(read).saturating_add(write);
    let output = number(step, "output").saturating_add(number(step, "reasoning"));
    Tokens {
        input: sum.input.saturating_add(input),
        output: sum.output.saturating_add(output),
        cache_read: sum.cache_read.saturating_add(read),
        cache_write: sum.cache_write.saturating_add(write),
    }
}

/// A model without a known price costs 0 there, which is no statement.
fn more(sum: Stated, cost: &Value) -> Stated {
    match (sum, Stated::read(&cost.to_string())) {
        (sum, Stated::Amount(Money::ZERO) | Stated::Nothing) => sum,
        (Stated::Amount(sum), Stated::Amount(cost)) => Stated::Amount(Money(sum.0.saturating_add(cost.0))),
        (Stated::Nothing, cost) => cost,
        (Stated::Unusable, _) | (_, Stated::Unusable) => Stated::Unusable,
    }
}

const MAYBE: &str =
    "Perhaps it does not know the model: name one as opencode:<provider>/<model>, and sign in there";

fn fault(error: &Value, heard: &mut ClientOutput) {
    let data = error.get("data").unwrap_or(&Value::Null);
    let said = text(data, "message");
    let kind = match (text(error, "name"), number(data, "statusCode")) {
        ("ContextOverflowError", _) => {
            heard.hitch = Some(ClientFault::new(Failure::ContextTooLong, said));
            heard.finished = false;
            return;
        }
        ("ProviderAuthError", _) => Failure::Auth,
        ("MessageOutputLengthError", _) => Failure::Garbled,
        ("APIError", 0) => Failure::Network,
        // Its only message for an unknown model, and for none at all.
        ("UnknownError", 0) if !heard.worked => Failure::Refused,
        (_, 0) => Failure::Exit,
        (_, status) => by_status(status, &format!("{said} {}", text(data, "responseBody"))),
    };
    let lost = text(error, "name") == "UnknownError" && kind == Failure::Refused;
    let said = if lost { format!("{said} {MAYBE}") } else { said.to_owned() };
    let wait = data.pointer("/responseHeaders/retry-after").and_then(Value::as_str);
    heard.finished = true;
    heard.fault = Some(ClientFault { kind, said, reopens: wait.and_then(|wait| wait.trim().parse().ok()) });
}

/// What it tries to get over has no status, only words.
fn hitch(said: &str) -> Failure {
    match said {
        said if speaks_of(said, &["connect", "network", "fetch", "socket"]) => Failure::Network,
        said if speaks_of(said, &["quota", "usage limit", "credit"]) => Failure::Quota,
        said if speaks_of(said, &["rate limit", "too many"]) => Failure::RateLimit,
        said if speaks_of(said, &["does not exist", "not found", "no such"]) => Failure::Refused,
        _ => Failure::Overload,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_4_what_is_too_long_for_ever_stays_so_while_it_is_ended() {
        let overflow = json!({"type": "error", "error": {"name": "ContextOverflowError", "data": {"message": "too much"}}});
        let goes_on =
            json!({"type": "text", "part": {"synthetic": true, "text": "The previous request exceeded"}});
        let mut heard = ClientOutput::default();
        for line in
            [&overflow, &goes_on, &overflow, &json!({"type": "too_long", "message": "too much"}), &goes_on]
        {
            hear(line, &mut heard);
        }
        assert_eq!(heard.fault, Some(ClientFault::new(Failure::ContextTooLong, "too much")));
        assert!(COMPANION.contains(r#"type: "too_long""#), "the plugin prints these words");
    }
}
