//! Clients people already have, run without their screens: builds the command line, and reads the lines a client
//! prints. Nothing here opens, starts or writes anything; `executors/client.rs` does.
//!
//! One file per client, one line in [`ALL`]. What is known about each was observed, and the recordings are in
//! `host/tests/captures`; the table of faults in `docs/agents.md` is read against them.

mod acp;
mod api;
mod claude;
mod codex;
mod gemini;
mod goose;
mod opencode;
pub mod reopens;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use archeflow_core::event::{Failure, Session};
use archeflow_core::model::{Money, Tier};
use archeflow_core::rules::ledger::Usage;
use serde_json::Value;

use super::Invocation;
use crate::client_output::{
    ClientFault, ClientOutput, NO_CREDIT, TOO_LONG, by_status, first_line, number, own, speaks_of, text,
};

/// A client, as functions without effects.
#[derive(Debug)]
pub struct Client {
    /// The name it is asked for by.
    pub name: &'static str,
    /// How it is written as a spec, for people.
    pub form: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// The vendor, by which agents of different makers are recognised.
    pub vendor: &'static str,
    /// Empty for the clients that are part of this program ([`crate::client_output::own`]).
    pub program: &'static str,
    /// What may follow its name and a colon.
    pub rest: Rest,
    /// The version its recordings are from. Older ones were never tried.
    pub tried: [u32; 3],
    /// What its user has to do when the provider turns it away.
    pub sign_in: &'static str,
    /// Variables of the user's that are the client's own: its keys, its provider, its folder.
    pub own: &'static [&'static str],
    /// Variables without which it has no provider, unless the spec names one.
    pub names_itself_by: &'static [&'static str],
    /// Tools a Maker can't do without.
    needs: &'static [&'static str],
    /// In a resumed conversation it continues its token count.
    counts_on: bool,
    /// It can be held to a schema, and so answer in a form.
    pub takes_schema: bool,
    /// A session can be resumed whose first answer was cut short. Otherwise the model has to have used a tool before.
    resumes_fragments: bool,
    /// Files below its home in which it notes what it uses while it works, for clients that print it only at the end.
    usage_files: &'static [&'static str],
    /// Reads a line of them.
    count: fn(&Value, &mut ClientOutput),
    command: fn(&CommandInputs<'_>) -> Start,
    hear: fn(&Value, &mut ClientOutput) -> Option<String>,
}

/// What follows the colon in a spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// A model, or nothing for what the tier means to the client.
    Model,
    /// A model, and behind an `@` where it is served; each may be left out.
    ModelAt,
    /// A command line.
    Command,
}

impl Rest {
    /// Whether this can follow the colon. What looks like a flag could be taken for one.
    pub fn takes(self, rest: &str) -> bool {
        let word = |text: &str, more: &str| {
            !text.starts_with('-') && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
        };
        match self {
            Rest::Model => word(rest, "._-/[]:"),
            Rest::ModelAt => {
                let (model, place) = rest.split_once('@').unwrap_or((rest, ""));
                word(model, "._-/[]:") && word(place, "._-/[]:%~")
            }
            Rest::Command => !rest.trim().is_empty(),
        }
    }
}

pub const ALL: [&Client; 9] = [
    &claude::CLIENT,
    &codex::CLIENT,
    &gemini::CLIENT,
    &opencode::CLIENT,
    &goose::CLIENT,
    &acp::CLIENT,
    &api::ANTHROPIC,
    &api::OPENAI,
    &api::OLLAMA,
];

pub fn find(name: &str) -> Option<&'static Client> {
    ALL.into_iter().find(|client| client.name == name)
}

/// All that a command line depends on. The brief is not part of it: every client reads it on standard input.
#[derive(Debug, Clone, Copy)]
pub struct CommandInputs<'a> {
    /// Only the Maker may change its working copy.
    pub writes: bool,
    pub tier: Tier,
    /// Asked for by name; empty for whatever the tier means to the client.
    pub model: &'a str,
    pub tree: &'a Path,
    /// A folder of the client's own, in place of the one in the user's home.
    pub home: &'a Path,
    /// This program, for the clients that are part of it.
    pub me: &'a Path,
    pub resumes: Option<&'a Session>,
    /// The form the answer is to have, for clients that take one.
    pub schema: Option<&'a str>,
    /// What the attempt may cost at most, for clients that keep to a limit of their own.
    pub share: Option<Money>,
    /// The user's variables.
    pub variables: &'a [(OsString, OsString)],
    /// The address among them is that of our proxy, which asks the client's usual provider.
    pub usual_provider: bool,
    /// What a reader needs to read besides its working copy, where only the client's own sandbox can keep it to that.
    pub readable: Option<&'a [PathBuf]>,
}

impl CommandInputs<'_> {
    fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.variables.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_os_str())
    }

    /// The user's environment variables that belong to this client.
    fn owned(&self, client: &Client) -> impl Iterator<Item = (OsString, OsString)> {
        self.variables.iter().filter(|(name, _)| client.own.iter().any(|own| name == own)).cloned()
    }

    /// The same for a client of many providers: of the keys and addresses, those of the provider it asks. `settings`
    /// is what the user has set about providers; variables that it mentions are its own.
    fn owned_for(
        &self,
        client: &Client,
        provider: &str,
        settings: &str,
    ) -> impl Iterator<Item = (OsString, OsString)> {
        let keys = PROVIDER_VARIABLES.iter().flat_map(|(_, names)| *names);
        let set = self.owned(client).filter_map(|(name, _)| name.into_string().ok());
        let mut providers: Vec<&str> = set.filter_map(|name| provider_of(&name)).collect();
        providers.dedup();
        // Without a name it can only be the one there is a key for.
        let only = providers.first().copied().filter(|first| providers.iter().all(|other| other == first));
        let provider = if provider.is_empty() { only.unwrap_or_default() } else { provider }.to_owned();
        let keys: Vec<&str> = keys.copied().collect();
        let settings = settings.to_owned();
        self.owned(client).filter(move |(name, _)| {
            let Some(name) = name.to_str().filter(|name| keys.contains(name)) else { return true };
            settings.contains(name)
                || PROVIDER_VARIABLES
                    .iter()
                    .any(|(providers, names)| providers.contains(&provider.as_str()) && names.contains(&name))
        })
    }

    /// A folder the user keeps in the home directory, unless a variable names another.
    fn users_folder(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        let named = self.variable(variable).map(PathBuf::from);
        named.or_else(|| self.variable("HOME").map(|home| Path::new(home).join(usual)))
    }
}

/// Names of a provider, and the variables that hold its key and its address.
type ProviderVariables = (&'static [&'static str], &'static [&'static str]);

const PROVIDER_VARIABLES: [ProviderVariables; 11] = [
    (&["anthropic"], &["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_HOST"]),
    (&["openai"], &["OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_HOST", "OPENAI_BASE_PATH"]),
    (&["google", "gemini"], &["GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_API_KEY"]),
    (&["deepseek"], &["DEEPSEEK_API_KEY"]),
    (&["groq"], &["GROQ_API_KEY"]),
    (&["mistral"], &["MISTRAL_API_KEY"]),
    (&["openrouter"], &["OPENROUTER_API_KEY"]),
    (&["opencode"], &["OPENCODE_API_KEY"]),
    (&["xai"], &["XAI_API_KEY"]),
    (&["databricks"], &["DATABRICKS_HOST", "DATABRICKS_TOKEN"]),
    (&["ollama"], &["OLLAMA_HOST"]),
];

fn provider_of(variable: &str) -> Option<&'static str> {
    let row = PROVIDER_VARIABLES.iter().find(|(_, names)| names.contains(&variable))?;
    row.0.first().copied()
}

/// What to start, with which additions to the ordinary environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub invocation: Invocation,
    pub env: Vec<(OsString, OsString)>,
    pub linked: Vec<LinkedFile>,
    /// Settings of its own, written before it starts. They are in its home.
    pub files: Vec<(PathBuf, String)>,
}

/// A file of the user's that is shown to the client in its own folder: the login. A client that renews it renews the
/// user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedFile {
    pub from: PathBuf,
    pub to: PathBuf,
}

impl Client {
    pub fn command(&self, inputs: &CommandInputs<'_>) -> Start {
        (self.command)(inputs)
    }

    /// Reads one line; returns a note for the live output. Unknown lines change nothing.
    pub fn hear(&self, line: &str, heard: &mut ClientOutput) -> Option<String> {
        // A line that is not JSON is passed on as text: some clients report only so why they can't start.
        let value = serde_json::from_str(line.trim()).unwrap_or_else(|_| Value::from(line.trim()));
        (self.hear)(&value, heard)
    }

    /// Files below its home in which it notes what it uses, with one `*` at most in each name.
    /// Whether a conversation that was cut short has something to resume.
    pub fn can_resume(&self, heard: &ClientOutput) -> bool {
        if self.resumes_fragments { heard.worked } else { heard.acted }
    }

    pub fn usage_files(&self) -> &'static [&'static str] {
        self.usage_files
    }

    /// Reads a line of such a file.
    pub fn count(&self, line: &Value, heard: &mut ClientOutput) {
        (self.count)(line, heard);
    }

    /// What an end without a closing line means, by the last words on standard error.
    pub fn cut_short(last_words: &str) -> Failure {
        match last_words {
            words if speaks_of(words, &TOO_LONG) => Failure::ContextTooLong,
            words if speaks_of(words, &NOT_SIGNED_IN) => Failure::Auth,
            _ => Failure::Exit,
        }
    }

    /// Whether a Maker without this tool can't have done its work.
    pub fn needs(&self, tool: &str) -> bool {
        self.needs.contains(&tool)
    }

    /// It is part of this program, so there is nothing to install.
    pub fn is_own(&self) -> bool {
        self.program.is_empty()
    }

    /// What this attempt used. Some count the whole conversation: what was counted before it is taken off.
    pub fn usage(&self, heard: &ClientOutput, resumes: Option<&Session>) -> Usage {
        let before = resumes.and_then(|session| session.counted).filter(|_| self.counts_on);
        let closed = heard.tokens.map(|tokens| before.map_or(tokens, |before| tokens.minus(before)));
        // A client that failed may close with less than its requests had used.
        let tokens = match (closed, heard.seen) {
            (Some(closed), Some(seen)) => Some(closed.or_more(seen)),
            (closed, seen) => closed.or(seen),
        };
        Usage { tokens, cost: heard.cost, model: heard.model.clone() }
    }

    /// The conversation, if it can be resumed.
    pub fn session(&self, heard: &ClientOutput) -> Option<Session> {
        let counted = heard.tokens.filter(|_| self.counts_on);
        (!heard.session.is_empty()).then(|| Session { id: heard.session.clone(), counted })
    }
}

/// For clients that print what they use as they use it.
fn counts_nothing(_: &Value, _: &mut ClientOutput) {}

/// The last output of clients that could not start.
const NOT_SIGNED_IN: [&str; 4] = [
    "update your environment and try again",
    "authorization is required",
    "no provider configured",
    "auth method",
];

fn pairs(env: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_tell_what_a_client_was_stopped_by() {
        for (words, kind) in [
            (
                "Error: turn/start failed: Input exceeds the maximum length of 1048576 characters.",
                Failure::ContextTooLong,
            ),
            ("Error: no rollout found for thread id 01a1dca8", Failure::Exit),
            ("Update your environment and try again (no reload needed if using .env)!", Failure::Auth),
            ("error: No provider configured. Run 'goose configure' first.", Failure::Auth),
        ] {
            assert_eq!(Client::cut_short(words), kind, "{words}");
        }
    }

    use archeflow_core::event::Tokens;

    #[test]
    fn c_08_a_client_of_many_providers_gets_the_key_of_its_own() {
        let all = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_HOST", "GROQ_API_KEY", "XDG_CONFIG_HOME"];
        let settings =
            r#"{"model": "groq/x", "provider": {"own": {"options": {"apiKey": "{env:OPENAI_API_KEY}"}}}}"#;
        let one = ["ANTHROPIC_API_KEY"];
        for (client, model, set, more, wanted) in [
            (&goose::CLIENT, "openai/gpt", &all[..], ("", ""), &["OPENAI_API_KEY", "OPENAI_HOST"][..]),
            (&goose::CLIENT, "anthropic/claude", &all, ("", ""), &["ANTHROPIC_API_KEY"]),
            (&goose::CLIENT, "", &all, ("GOOSE_PROVIDER", "groq"), &["GROQ_API_KEY"]),
            (&goose::CLIENT, "", &all, ("", ""), &[]),
            (&goose::CLIENT, "", &one, ("", ""), &["ANTHROPIC_API_KEY"]),
            (&opencode::CLIENT, "anthropic/claude", &all, ("", ""), &["ANTHROPIC_API_KEY"]),
            (
                &opencode::CLIENT,
                "own/model",
                &all,
                ("OPENCODE_CONFIG_CONTENT", settings),
                &["OPENAI_API_KEY"],
            ),
            (
                &opencode::CLIENT,
                "",
                &all,
                ("OPENCODE_CONFIG_CONTENT", settings),
                &["OPENAI_API_KEY", "GROQ_API_KEY"],
            ),
            (&opencode::CLIENT, "own/model", &all, ("", ""), &[]),
        ] {
            let mut variables: Vec<(OsString, OsString)> =
                set.iter().map(|name| (OsString::from(name), OsString::from("set"))).collect();
            variables.push((more.0.into(), more.1.into()));
            let place = Path::new("/");
            let start = client.command(&CommandInputs {
                writes: true,
                tier: Tier::Sonnet,
                model,
                tree: place,
                home: place,
                me: place,
                resumes: None,
                schema: None,
                share: None,
                variables: &variables,
                usual_provider: false,
                readable: None,
            });
            let names = start.env.iter().filter_map(|(name, _)| name.to_str());
            let passed: Vec<&str> = names.filter(|name| provider_of(name).is_some()).collect();
            assert_eq!(passed, wanted, "{} {model} {more:?}", client.name);
        }
    }

    #[test]
    fn i4_what_was_counted_before_is_counted_once() {
        let tokens = |input, output| Tokens { input, output, ..Tokens::default() };
        let before = Session { id: "s".to_owned(), counted: Some(tokens(100, 20)) };
        let heard = ClientOutput {
            tokens: Some(tokens(150, 25)),
            session: "s".to_owned(),
            ..ClientOutput::default()
        };
        for (client, used, counted) in [
            (&codex::CLIENT, tokens(50, 5), Some(tokens(150, 25))),
            (&goose::CLIENT, tokens(50, 5), Some(tokens(150, 25))),
            (&claude::CLIENT, tokens(150, 25), None),
            (&opencode::CLIENT, tokens(150, 25), None),
        ] {
            assert_eq!(client.usage(&heard, Some(&before)).tokens, Some(used), "{}", client.name);
            assert_eq!(client.session(&heard).map(|session| session.counted), Some(counted));
            assert_eq!(client.usage(&heard, None).tokens, Some(tokens(150, 25)));
        }
    }
}
