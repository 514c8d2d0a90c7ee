//! Clients people already have, driven without their screens: from an errand to a command line, and from the lines a
//! client prints to what they mean. Nothing here opens, starts or writes anything; `hands/client.rs` does.
//!
//! One file per client, one line in [`ALL`]. What is known about each was seen, and the recordings stand in
//! `host/tests/captures`; the table of faults in `docs/agents.md` is read against them.

mod acp;
mod api;
mod claude;
mod codex;
mod gemini;
mod goose;
mod opencode;
pub mod own;
pub mod reopens;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use archeflow_core::event::{Failure, Session, Tokens};
use archeflow_core::model::Tier;
use archeflow_core::rules::ledger::{Stated, Usage};
use serde_json::Value;

use super::Invocation;

/// A client, as functions without effects.
#[derive(Debug)]
pub struct Client {
    /// The name it is asked for by.
    pub name: &'static str,
    /// Who makes it, and so who plays the role.
    pub vendor: &'static str,
    /// Empty for the clients that are part of this program ([`own`]).
    pub program: &'static str,
    /// What may follow its name and a colon.
    pub rest: Rest,
    /// The version its recordings are from. Older ones were never tried.
    pub tried: [u32; 3],
    /// What its user has to do when the provider turns it away.
    pub sign_in: &'static str,
    /// Variables of the user's that are the client's own: its keys, its provider, its folder.
    pub own: &'static [&'static str],
    /// Tools a Maker can't do without.
    needs: &'static [&'static str],
    /// In a conversation taken up again it goes on counting tokens where it stopped.
    counts_on: bool,
    /// It can be held to a schema, and so answer in a form.
    pub takes_schema: bool,
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
    /// The Maker changes its working copy; nobody else may.
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
    /// The user's variables.
    pub variables: &'a [(OsString, OsString)],
}

impl CommandInputs<'_> {
    fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.variables.iter().find(|(known, value)| known == name && !value.is_empty());
        found.map(|(_, value)| value.as_os_str())
    }

    /// What the user's environment says that is this client's own.
    fn owned(&self, client: &Client) -> impl Iterator<Item = (OsString, OsString)> {
        self.variables.iter().filter(|(name, _)| client.own.iter().any(|own| name == own)).cloned()
    }

    /// A folder the user keeps in the home directory, unless a variable says where else.
    fn users_folder(&self, variable: &str, usual: &str) -> Option<PathBuf> {
        let named = self.variable(variable).map(PathBuf::from);
        named.or_else(|| self.variable("HOME").map(|home| Path::new(home).join(usual)))
    }
}

/// What to start, with which additions to the ordinary environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    pub invocation: Invocation,
    pub env: Vec<(OsString, OsString)>,
    pub lent: Vec<Lent>,
    /// Settings of its own, written before it starts. They lie in its home.
    pub files: Vec<(PathBuf, String)>,
}

/// A file of the user's that is shown to the client in its own folder: the login. A client that renews it renews the
/// user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lent {
    pub from: PathBuf,
    pub to: PathBuf,
}

/// What a client's lines have said so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientOutput {
    /// The last thing it said, in full.
    pub answer: String,
    /// Where the text comes in pieces: the next piece begins something new.
    pub anew: bool,
    /// The same as JSON, where the client tells an answer in a form from its text.
    pub form: Option<String>,
    /// The line that closes a conversation was there. Without it nothing is finished, whatever the exit code.
    pub finished: bool,
    /// The model has answered at least once, so something was used.
    pub worked: bool,
    pub session: String,
    pub model: String,
    /// The client's own version, if it says so.
    pub version: String,
    /// As the client counts.
    pub tokens: Option<Tokens>,
    pub cost: Stated,
    /// Tools it wanted and was refused.
    pub denied: Vec<String>,
    /// Why it gave up.
    pub fault: Option<ClientFault>,
    /// What it was trying to get over when it was last heard of.
    pub hitch: Option<ClientFault>,
}

impl ClientOutput {
    /// One more piece of what it says.
    fn say(&mut self, piece: &str) {
        if std::mem::take(&mut self.anew) {
            self.answer.clear();
        }
        self.answer.push_str(piece);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFault {
    pub kind: Failure,
    /// The client's own words.
    pub said: String,
    /// In how many seconds the provider will serve again, if it says so.
    pub reopens: Option<u64>,
}

impl ClientFault {
    pub fn new(kind: Failure, said: impl Into<String>) -> ClientFault {
        ClientFault { kind, said: said.into(), reopens: None }
    }
}

impl Client {
    pub fn command(&self, errand: &CommandInputs<'_>) -> Start {
        (self.command)(errand)
    }

    /// Takes in one line; returns what to tell people who watch. A line that is not ours to read changes nothing.
    pub fn hear(&self, line: &str, heard: &mut ClientOutput) -> Option<String> {
        // What is no JSON is handed on as text: some say only so why they can't begin.
        let value = serde_json::from_str(line.trim()).unwrap_or_else(|_| Value::from(line.trim()));
        (self.hear)(&value, heard)
    }

    /// What an end without a closing line means, by the last words on standard error.
    pub fn cut_short(last_words: &str) -> Failure {
        match last_words {
            words if speaks_of(words, &TOO_LONG) => Failure::ContextTooLong,
            words if speaks_of(words, &NOT_SIGNED_IN) => Failure::Auth,
            _ => Failure::Exit,
        }
    }

    /// Whether a Maker who is refused this tool can't have done its work.
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
        let tokens = heard.tokens.map(|tokens| before.map_or(tokens, |before| without(tokens, before)));
        Usage { tokens, cost: heard.cost, model: heard.model.clone() }
    }

    /// The conversation, if it can be gone on with.
    pub fn session(&self, heard: &ClientOutput) -> Option<Session> {
        let counted = heard.tokens.filter(|_| self.counts_on);
        (!heard.session.is_empty()).then(|| Session { id: heard.session.clone(), counted })
    }
}

fn without(tokens: Tokens, before: Tokens) -> Tokens {
    Tokens {
        input: tokens.input.saturating_sub(before.input),
        output: tokens.output.saturating_sub(before.output),
        cache_read: tokens.cache_read.saturating_sub(before.cache_read),
        cache_write: tokens.cache_write.saturating_sub(before.cache_write),
    }
}

/// What an HTTP status says, with the text beside it.
pub(crate) fn by_status(status: u64, said: &str) -> Failure {
    match status {
        401 | 403 => Failure::Auth,
        402 => Failure::Quota,
        429 if speaks_of(said, &["quota", "usage limit", "credit"]) => Failure::Quota,
        429 => Failure::RateLimit,
        _ if speaks_of(said, &TOO_LONG) => Failure::ContextTooLong,
        400..=499 => Failure::Refused,
        500..=599 => Failure::Overload,
        _ => Failure::Exit,
    }
}

/// What a client's own words say, where they are all there is: a status in them, or the usual phrases.
pub(crate) fn by_text(said: &str) -> Failure {
    if let Some(status) = status_in(said) {
        return by_status(status, said);
    }
    for (words, kind) in [
        (
            &["api key", "api-key", "unauthorized", "authenticat", "not logged in", "log in", "credentials"]
                [..],
            Failure::Auth,
        ),
        (&TOO_LONG, Failure::ContextTooLong),
        (&["usage limit", "quota", "credit balance", "insufficient funds"], Failure::Quota),
        (&["rate limit", "rate_limit", "too many requests"], Failure::RateLimit),
        (&["overloaded", "high demand", "at capacity", "server error", "unavailable"], Failure::Overload),
        (&["model not found", "does not exist", "unknown model", "not supported"], Failure::Refused),
        (
            &[
                "network",
                "connect",
                "timed out",
                "timeout",
                "econn",
                "enotfound",
                "socket",
                "fetch failed",
                "stream",
            ],
            Failure::Network,
        ),
    ] {
        if speaks_of(said, words) {
            return kind;
        }
    }
    Failure::Exit
}

/// A number between 400 and 599 that stands by itself.
fn status_in(said: &str) -> Option<u64> {
    let words = said.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let numbers = words.filter(|word| word.len() == 3).filter_map(|word| word.parse().ok());
    numbers.into_iter().find(|number| (400..600).contains(number))
}

const TOO_LONG: [&str; 5] =
    ["too long", "context window", "context_length_exceeded", "maximum length", "maximum number of tokens"];

/// What clients say at the end when they have not even begun.
const NOT_SIGNED_IN: [&str; 4] = [
    "update your environment and try again",
    "authorization is required",
    "no provider configured",
    "auth method",
];

pub(crate) fn speaks_of(said: &str, words: &[&str]) -> bool {
    let said = said.to_lowercase();
    words.iter().any(|word| said.contains(word))
}

pub(crate) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// The first line of what it says, for people who watch.
pub(crate) fn first_line(said: &str) -> Option<String> {
    let line = said.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
}

fn pairs(env: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_and_its_text_name_the_fault() {
        for (status, said, kind) in [
            (401, "", Failure::Auth),
            (403, "", Failure::Auth),
            (402, "", Failure::Quota),
            (429, "slow down", Failure::RateLimit),
            (429, "You exceeded your current Quota", Failure::Quota),
            (400, "prompt is too long", Failure::ContextTooLong),
            (413, "", Failure::Refused),
            (404, "no such model", Failure::Refused),
            (500, "", Failure::Overload),
            (529, "", Failure::Overload),
            (302, "", Failure::Exit),
        ] {
            assert_eq!(by_status(status, said), kind, "{status} {said}");
        }
    }

    #[test]
    fn issue_4_words_name_the_fault_where_nothing_else_does() {
        for (said, kind) in [
            ("Ran into this error: Authentication error: failed. Status: 401 Unauthorized.", Failure::Auth),
            ("Internal error: invalid x-api-key", Failure::Auth),
            ("unexpected status 429 Too Many Requests: slow down", Failure::RateLimit),
            ("Rate limit exceeded, retry after 20 s", Failure::RateLimit),
            ("You exceeded your current quota (429)", Failure::Quota),
            ("API Error: 500 oops", Failure::Overload),
            ("Server error: overloaded", Failure::Overload),
            ("prompt is too long: 250000 tokens > 200000 maximum", Failure::ContextTooLong),
            ("context_length_exceeded", Failure::ContextTooLong),
            (
                "The input token count (9) exceeds the maximum number of tokens allowed (8).",
                Failure::ContextTooLong,
            ),
            ("error sending request: Connection refused", Failure::Network),
            ("it broke after 4.404 s in 1401 lines", Failure::Exit),
            ("", Failure::Exit),
        ] {
            assert_eq!(by_text(said), kind, "{said}");
        }
    }

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
