//! Translators between an errand and a command line. A backend starts nothing and, beyond a look at the program it
//! is given, opens nothing: it returns the command as a value, and `hands/agent.rs` does the rest for all of them.
//!
//! One file per client, one line in [`KNOWN`].

mod cmd;
pub mod script;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    pub program: OsString,
    pub args: Vec<OsString>,
}

/// Who plays an archetype.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Agent {
    /// Any command line, through the shell.
    Cmd(String),
    /// A file that plays all roles.
    Script(PathBuf),
}

/// The prefix or name of each backend, and what stands behind it.
pub const KNOWN: [(&str, &str); 2] = [
    ("cmd:<command line>", "any program that reads the brief on standard input"),
    ("script:<file>", "a play file, for demos and tests"),
];

/// Backends the specification names that this version does not drive.
const LATER: [&str; 8] = ["claude", "codex", "gemini", "opencode", "goose", "anthropic", "openai", "ollama"];

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("unknown agent '{name}'. Known: {}", known())]
    Unknown { name: String },
    #[error("the agent '{name}' is not driven by this version yet. Known: {}", known())]
    Later { name: String },
    #[error("'{spec}' names no {what}. Known: {}", known())]
    Empty { spec: String, what: &'static str },
    #[error("no play file at {path}. Give the path of an existing file: script:<file>")]
    NoScript { path: String },
}

fn known() -> String {
    KNOWN.iter().map(|(form, _)| *form).collect::<Vec<_>>().join(", ")
}

impl Agent {
    /// Reads a spec as typed; relative play files are looked up from `from`.
    pub fn parse(spec: &str, from: &Path) -> Result<Agent, Error> {
        let spec = spec.trim();
        let empty = |what| Error::Empty { spec: spec.to_owned(), what };
        match spec.split_once(':') {
            Some(("cmd", command)) if command.trim().is_empty() => Err(empty("command")),
            Some(("cmd", command)) => Ok(Agent::Cmd(cmd::from(command.trim(), from))),
            Some(("script", file)) if file.trim().is_empty() => Err(empty("file")),
            Some(("script", file)) => {
                let path = from.join(file.trim());
                let path =
                    path.canonicalize().map_err(|_| Error::NoScript { path: path.display().to_string() })?;
                Ok(Agent::Script(path))
            }
            Some(("acp", _)) => Err(Error::Later { name: "acp".to_owned() }),
            _ => {
                let name = spec.split([':', '@']).next().unwrap_or(spec).to_owned();
                if LATER.contains(&name.as_str()) {
                    Err(Error::Later { name })
                } else {
                    Err(Error::Unknown { name })
                }
            }
        }
    }

    /// The program this will start, where that can be told beforehand: to say so before anything is spent.
    pub fn missing(&self, path: Option<&std::ffi::OsStr>) -> Option<String> {
        match self {
            Agent::Cmd(command) => cmd::missing(command, path),
            Agent::Script(_) => None,
        }
    }

    /// The spec in full, as it is frozen in the log.
    pub fn spec(&self) -> String {
        match self {
            Agent::Cmd(command) => format!("cmd:{command}"),
            Agent::Script(path) => format!("script:{}", path.display()),
        }
    }

    /// The command to start; `me` is this program, which plays the scripts.
    pub fn invocation(&self, me: &Path) -> Invocation {
        match self {
            Agent::Cmd(command) => cmd::invocation(command),
            Agent::Script(path) => script::invocation(path, me),
        }
    }
}
