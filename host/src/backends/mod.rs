//! From an agent spec to a command line. A backend starts nothing and, beyond a look at the program
//! or the setup it is given, opens nothing: it returns the command as a value, and `executors/agent` does the rest for all of them.
//!
//! One file per client, one line in [`cli::ALL`]: every other list of agents follows from [`forms`].

pub mod cli;
mod cmd;
pub mod held_keys;
pub mod needs;
pub mod script;
pub mod sim;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use archeflow_core::model::Tier;
use archeflow_core::rules::client_files::CLIENT_FILES;
use cli::{Client, Rest};

use crate::model_agent::Provider;
use crate::model_agent::place::{self, ModelChoice, Wrong};

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    pub program: OsString,
    pub args: Vec<OsString>,
}

/// The agent of an archetype, from its spec.
#[derive(Debug, Clone)]
pub enum AgentBackend {
    /// Any command line, through the shell.
    Cmd(String),
    /// A file with the answers for all roles.
    Script(PathBuf),
    /// A file with the error rates of simulated agents.
    Sim(PathBuf),
    /// A client with a name of its own, and the model it is to use; empty for what the tier means to it.
    Cli(&'static Client, String),
}

/// How each agent is written as a spec, and what it is: the clients, then what needs none.
pub fn forms() -> Vec<(&'static str, &'static str)> {
    let clients = cli::ALL.iter().map(|client| (client.form, client.title));
    let others = [
        ("cmd:<command line>", "any program that reads the prompt on standard input"),
        ("script:<file>", "a play file, for demos and tests"),
        ("sim:<file>", "simulated agents with known error rates, for evaluations"),
    ];
    clients.chain(others).collect()
}

/// The page of the manual with the list of agents written again between its two marks; `None` without them.
pub fn in_manual(page: &str) -> Option<String> {
    const BEGIN: &str = "<!-- agents: written by `cargo xtask docs` -->\n";
    const END: &str = "<!-- end of agents -->\n";
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let rows: String = forms().iter().map(|(form, title)| format!("| `{form}` | {title} |\n")).collect();
    client_files_in(&format!("{before}{BEGIN}| Spec | Agent |\n|---|---|\n{rows}{END}{after}"))
}

/// The same page with the table of the files that are kept from agents.
fn client_files_in(page: &str) -> Option<String> {
    const BEGIN: &str = "<!-- client files: written by `cargo xtask docs` -->\n";
    const END: &str = "<!-- end of client files -->\n";
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let names = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let rows: String =
        CLIENT_FILES.iter().map(|(client, all)| format!("| {client} | {} |\n", names(all))).collect();
    Some(format!("{before}{BEGIN}| Client | Files and folders |\n|---|---|\n{rows}{END}{after}"))
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("unknown agent '{name}'. Known: {}", known_forms())]
    Unknown { name: String },
    #[error("'{spec}' names no {what}. Known: {}", known_forms())]
    Empty { spec: String, what: &'static str },
    #[error("'{model}' is no name of a model for {name}")]
    Model { name: String, model: String },
    #[error("the agent '{1}' can't be used: {0}")]
    Place(Wrong, String),
    #[error("no play file at {path}. Give the path of an existing file: script:<file>")]
    NoScript { path: String },
    #[error("{fault}. Give the path of a setup of simulated agents: sim:<file>")]
    Sim { fault: String },
}

fn known_forms() -> String {
    forms().iter().map(|(form, _)| *form).collect::<Vec<_>>().join(", ")
}

impl AgentBackend {
    /// Reads a spec as typed; relative files of `script:` and `sim:` are looked up from `from`.
    pub fn parse(spec: &str, from: &Path) -> Result<AgentBackend, Error> {
        let spec = spec.trim();
        let empty = |what| Error::Empty { spec: spec.to_owned(), what };
        match spec.split_once(':') {
            Some(("cmd", command)) if command.trim().is_empty() => Err(empty("command")),
            Some(("cmd", command)) => Ok(AgentBackend::Cmd(cmd::from(command.trim(), from))),
            Some(("script", file)) if file.trim().is_empty() => Err(empty("file")),
            Some(("script", file)) => {
                let path = from.join(file.trim());
                let path =
                    path.canonicalize().map_err(|_| Error::NoScript { path: path.display().to_string() })?;
                Ok(AgentBackend::Script(path))
            }
            Some(("sim", file)) if file.trim().is_empty() => Err(empty("file")),
            Some(("sim", file)) => {
                let path = from.join(file.trim());
                let path = path.canonicalize().unwrap_or(path);
                sim::read(&path).map_err(|error| Error::Sim { fault: error.to_string() })?;
                Ok(AgentBackend::Sim(path))
            }
            Some((name @ "acp", command)) => {
                bridged(name, cmd::from(command.trim(), from)).ok_or(empty("command"))
            }
            _ => named(spec),
        }
    }

    /// The program this will start, where that is known beforehand: to report a missing one before anything is spent.
    pub fn missing(&self, path: Option<&std::ffi::OsStr>) -> Option<String> {
        match self {
            AgentBackend::Cmd(command) => cmd::missing(command, path),
            AgentBackend::Script(_) | AgentBackend::Sim(_) => None,
            AgentBackend::Cli(client, command) if client.rest == Rest::Command => cmd::missing(command, path),
            AgentBackend::Cli(client, _) => cmd::missing(client.program, path),
        }
    }

    /// Where its model is asked and with which key, if it is one without a client.
    pub fn settled(&self, variables: &[(OsString, OsString)]) -> Option<Result<ModelChoice, Wrong>> {
        match self {
            AgentBackend::Cli(client, rest) => {
                let provider = Provider::find(client.name)?;
                Some(place::settle(provider, rest, Tier::Sonnet, variables))
            }
            AgentBackend::Cmd(_) | AgentBackend::Script(_) | AgentBackend::Sim(_) => None,
        }
    }

    /// The spec in full, as it is frozen in the log.
    pub fn spec(&self) -> String {
        match self {
            AgentBackend::Cmd(command) => format!("cmd:{command}"),
            AgentBackend::Script(path) => format!("script:{}", path.display()),
            AgentBackend::Sim(path) => format!("sim:{}", path.display()),
            AgentBackend::Cli(client, model) if model.is_empty() => client.name.to_owned(),
            AgentBackend::Cli(client, place) if place.starts_with('@') => format!("{}{place}", client.name),
            AgentBackend::Cli(client, model) => format!("{}:{model}", client.name),
        }
    }

    /// The provider account this works with, as far as its name shows: agents on one account share its limits (C6).
    pub fn account(&self) -> String {
        match self {
            AgentBackend::Cmd(_) | AgentBackend::Script(_) | AgentBackend::Sim(_) => self.spec(),
            AgentBackend::Cli(client, rest) => match (client.rest, rest.split_once('@')) {
                (Rest::Model, _) | (Rest::ModelAt, None) => client.name.to_owned(),
                (Rest::ModelAt, Some((_, place))) => format!("{}@{place}", client.name),
                (Rest::Command, _) => self.spec(),
            },
        }
    }

    /// The command to start; `me` is this program, which runs scripts and simulated agents. What clients need beyond their name is
    /// in [`Client::command`].
    pub fn invocation(&self, me: &Path) -> Invocation {
        match self {
            AgentBackend::Cmd(command) => cmd::invocation(command),
            AgentBackend::Script(path) => script::invocation(path, me),
            AgentBackend::Sim(path) => sim::invocation(path, me),
            AgentBackend::Cli(client, _) => Invocation { program: client.program.into(), args: Vec::new() },
        }
    }
}

/// A client of our own that drives what the command line starts.
fn bridged(name: &str, command: String) -> Option<AgentBackend> {
    let client = cli::find(name).filter(|client| client.rest.takes(&command))?;
    Some(AgentBackend::Cli(client, command))
}

/// `<client>` or `<client>:<model>`.
fn named(spec: &str) -> Result<AgentBackend, Error> {
    let (name, rest) = spec.split_at(spec.find([':', '@']).unwrap_or(spec.len()));
    let model = rest.strip_prefix(':').unwrap_or(rest);
    if let Some(client) = cli::find(name) {
        if client.rest == Rest::Command {
            return Err(Error::Empty { spec: spec.to_owned(), what: "command" });
        }
        if !client.rest.takes(model) {
            return Err(Error::Model { name: name.to_owned(), model: model.to_owned() });
        }
        return Ok(AgentBackend::Cli(client, model.to_owned()));
    }
    let name = spec.split([':', '@']).next().unwrap_or(spec).to_owned();
    Err(Error::Unknown { name })
}

#[cfg(test)]
mod tests {
    use super::{AgentBackend, Error};
    use std::path::Path;

    #[test]
    fn interfaces_1_a_spec_names_a_client_and_perhaps_a_model() {
        for (spec, wanted) in [
            ("claude", Ok("claude")),
            (" codex ", Ok("codex")),
            ("claude:opus", Ok("claude:opus")),
            ("codex:gpt-5.5", Ok("codex:gpt-5.5")),
            ("claude:", Ok("claude")),
            ("claude:--dangerously", Err("Model")),
            ("claude:a b", Err("Model")),
            ("gemini:pro", Ok("gemini:pro")),
            ("opencode:local/qwen3:8b", Ok("opencode:local/qwen3:8b")),
            ("goose:openai/gpt-5.5", Ok("goose:openai/gpt-5.5")),
            ("acp: agent --acp ", Ok("acp:agent --acp")),
            ("acp:", Err("other")),
            ("acp", Err("other")),
            ("claudette", Err("Unknown")),
            ("claude@https://example.org", Err("Model")),
            ("anthropic", Ok("anthropic")),
            ("anthropic:claude-x", Ok("anthropic:claude-x")),
            ("openai:gpt-5@https://example.org/v1", Ok("openai:gpt-5@https://example.org/v1")),
            ("openai@http://127.0.0.1:8080", Ok("openai@http://127.0.0.1:8080")),
            (
                "openai:meta/llama-3:free@https://example.org",
                Ok("openai:meta/llama-3:free@https://example.org"),
            ),
            ("ollama:qwen3:8b", Ok("ollama:qwen3:8b")),
            ("ollama:-x", Err("Model")),
            ("openai@http://a b", Err("Model")),
            ("openai@https://me:secret@example.org", Err("Model")),
        ] {
            let found =
                AgentBackend::parse(spec, Path::new("/")).map(|agent| agent.spec()).map_err(|error| {
                    match error {
                        Error::Model { .. } => "Model",
                        Error::Unknown { .. } => "Unknown",
                        Error::Empty { .. }
                        | Error::NoScript { .. }
                        | Error::Sim { .. }
                        | Error::Place(..) => "other",
                    }
                });
            assert_eq!(found.as_deref().map_err(|error| *error), wanted, "{spec}");
        }
    }

    #[test]
    fn c6_models_of_one_client_share_its_account() -> Result<(), Error> {
        for (spec, account) in [
            ("claude", "claude"),
            ("claude:opus", "claude"),
            ("codex:gpt-5.5", "codex"),
            ("cmd:my agent", "cmd:my agent"),
        ] {
            assert_eq!(AgentBackend::parse(spec, Path::new("/"))?.account(), account, "{spec}");
        }
        Ok(())
    }
}
