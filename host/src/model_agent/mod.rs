//! Models without a client: a small loop of our own around a provider's interface. It is a client that is part of this
//! program, started as a process of its own (`archeflow __model`), so that limits, kills and sweeps are those of all.
//!
//! Requests and responses are built and read without effects, a file for each provider ([`talk`] is what they have
//! in common); [`place`] determines the address and the key; `http.rs` alone knows the network, `tools` alone the
//! working copy, and `turn.rs` puts them together. The lines it prints are those of
//! [`crate::client_output::own`]. Absent: a judgement of the answer.

mod anthropic;
mod fault;
pub mod frames;
pub(crate) mod http;
mod ollama;
mod openai;
pub mod place;
pub mod talk;
#[cfg(test)]
mod tests;
pub mod tools;
mod turn;
mod unkeyed;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::client_output::own::OwnRecord;
use crate::platform::confine;
use frames::Form;
use talk::{ModelReply, ModelRequest};

/// Whose interface is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    Anthropic,
    Openai,
    Ollama,
}

impl Provider {
    pub const ALL: [Provider; 3] = [Provider::Anthropic, Provider::Openai, Provider::Ollama];

    pub fn name(self) -> &'static str {
        match self {
            Provider::Anthropic => "anthropic",
            Provider::Openai => "openai",
            Provider::Ollama => "ollama",
        }
    }

    pub fn find(name: &str) -> Option<Provider> {
        Provider::ALL.into_iter().find(|provider| provider.name() == name)
    }

    fn url(self) -> &'static str {
        match self {
            Provider::Anthropic => "https://api.anthropic.com",
            Provider::Openai => "https://api.openai.com/v1",
            Provider::Ollama => "http://127.0.0.1:11434",
        }
    }

    fn host(self) -> &'static str {
        match self {
            Provider::Anthropic => "api.anthropic.com",
            Provider::Openai => "api.openai.com",
            Provider::Ollama => "127.0.0.1",
        }
    }

    /// The variable that holds its key, and the one that names another place for it.
    fn key(self) -> Option<&'static str> {
        match self {
            Provider::Anthropic => Some("ANTHROPIC_API_KEY"),
            Provider::Openai => Some("OPENAI_API_KEY"),
            Provider::Ollama => None,
        }
    }

    fn base(self) -> Option<&'static str> {
        match self {
            Provider::Anthropic => Some("ANTHROPIC_BASE_URL"),
            Provider::Openai => Some("OPENAI_BASE_URL"),
            Provider::Ollama => None,
        }
    }

    /// Where answers are asked for, below an address as people write it.
    fn chat(self, base: &str) -> String {
        match self {
            Provider::Anthropic => format!("{}/v1/messages", base.trim_end_matches("/v1")),
            Provider::Openai => format!("{}/chat/completions", versioned(base)),
            Provider::Ollama => format!("{base}/api/chat"),
        }
    }

    /// Where it is asked which models there are.
    fn models(self, base: &str) -> String {
        match self {
            Provider::Anthropic => format!("{}/v1/models", base.trim_end_matches("/v1")),
            Provider::Openai => format!("{}/models", versioned(base)),
            Provider::Ollama => format!("{base}/api/tags"),
        }
    }

    fn form(self) -> Form {
        match self {
            Provider::Anthropic | Provider::Openai => Form::Events,
            Provider::Ollama => Form::Lines,
        }
    }

    fn body(self, ask: &ModelRequest<'_>, url: &str) -> Value {
        match self {
            Provider::Anthropic => anthropic::body(ask),
            Provider::Openai => openai::body(ask, url.starts_with(self.url())),
            Provider::Ollama => ollama::body(ask),
        }
    }

    fn hear(self, event: &Value, reply: &mut ModelReply) {
        match self {
            Provider::Anthropic => anthropic::hear(event, reply),
            Provider::Openai => openai::hear(event, reply),
            Provider::Ollama => ollama::hear(event, reply),
        }
    }

    fn headers(self, key: Option<&str>) -> Vec<(&'static str, String)> {
        match (self, key) {
            (Provider::Anthropic, key) => {
                let key = key.map(|key| ("x-api-key", key.to_owned()));
                key.into_iter().chain([("anthropic-version", "2023-06-01".to_owned())]).collect()
            }
            (Provider::Openai | Provider::Ollama, Some(key)) => {
                vec![("authorization", format!("Bearer {key}"))]
            }
            (Provider::Openai | Provider::Ollama, None) => Vec::new(),
        }
    }
}

/// People write the address of a server with and without the version of its interface.
fn versioned(base: &str) -> String {
    let path = base.split_once("://").and_then(|(_, rest)| rest.split_once('/'));
    if path.is_some() { base.to_owned() } else { format!("{base}/v1") }
}

/// The user's settings for models, as far as the loop needs them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSettings {
    /// Requests an attempt may make.
    pub turns: u32,
    /// The most an answer may have.
    pub tokens: Option<u64>,
    /// The waits before each retry.
    pub waits_ms: Vec<u64>,
    /// The longest a provider may be silent.
    pub patience_ms: u64,
    /// How much a model of Ollama's takes in.
    pub context: u64,
    pub ollama_url: Option<String>,
    pub ollama_remote: bool,
    /// The Ollama model of a tier.
    pub mapping: BTreeMap<String, String>,
}

impl Default for ModelSettings {
    fn default() -> ModelSettings {
        let mapping = [("haiku", "qwen3:8b"), ("sonnet", "qwen3:14b"), ("opus", "qwen3:14b")];
        ModelSettings {
            turns: 60,
            tokens: None,
            waits_ms: vec![1_000, 4_000],
            patience_ms: 180_000,
            context: 32_768,
            ollama_url: None,
            ollama_remote: false,
            mapping: mapping.into_iter().map(|(tier, model)| (tier.to_owned(), model.to_owned())).collect(),
        }
    }
}

impl ModelSettings {
    pub(crate) fn read(text: Option<&OsStr>) -> ModelSettings {
        text.and_then(OsStr::to_str).and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// As it is handed on among the user's variables.
    pub fn written(&self) -> (OsString, OsString) {
        (place::SETTINGS.into(), serde_json::to_string(self).unwrap_or_default().into())
    }
}

/// The variable with the key, for the loop only.
pub const KEY: &str = "ARCHEFLOW_MODEL_KEY";

/// All that the loop is started with, but for the brief and the key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub provider: Provider,
    pub model: String,
    pub url: String,
    /// Only the Maker may change its working copy.
    pub writes: bool,
    /// A folder of its own, where conversations are kept.
    pub home: PathBuf,
    /// The conversation to resume.
    pub resumes: Option<String>,
    pub settings: ModelSettings,
    /// Why nothing can be asked at all, and whether it is for want of a key.
    pub wrong: Option<(String, bool)>,
}

impl Task {
    pub fn written(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(self.settings.patience_ms)
    }
}

/// What the loop is given by the process around it.
pub struct ModelAgentEnv<'a> {
    pub tree: &'a Path,
    pub brief: String,
    /// All variables of the process; commands get them without the key.
    pub variables: Vec<(OsString, OsString)>,
    pub print: &'a mut dyn FnMut(&OwnRecord),
}

/// Asks, does what is asked for, and asks again, until there is an answer or a reason why there is none.
pub fn run<'a>(task: &'a Task, ground: ModelAgentEnv<'a>) {
    // The key is in our environment; the commands that the model runs get another.
    confine::hide_memory();
    let ModelAgentEnv { tree, brief, variables, print } = ground;
    let key =
        variables.iter().find(|(name, _)| name == KEY).map(|(_, key)| key.to_string_lossy().into_owned());
    let key = key.unwrap_or_default();
    let mut print_unkeyed = |record: &OwnRecord| print(&unkeyed::unkeyed(record, &key));
    turn::run(task, ModelAgentEnv { tree, brief, variables, print: &mut print_unkeyed });
}
