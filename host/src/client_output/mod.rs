//! The output of clients, whatever the client: the answer, usage and failure read from it so far, and the failure that
//! an HTTP status or an error text means. Clients ([`crate::backends`]), the bridge ([`crate::acp`]) and the model
//! agent ([`crate::model_agent`]) all read it.

pub mod own;
pub(crate) mod usage_files;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

use archeflow_core::event::{Failure, Tokens};
use archeflow_core::rules::ledger::Stated;
use serde_json::Value;

/// The longest line that is read; clients print whole files on one.
pub(crate) const LINE_AT_MOST: u64 = 16 * 1024 * 1024;

/// What was read from a client's output so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientOutput {
    /// The last message, in full.
    pub answer: String,
    /// For text that comes in pieces: the next piece begins a new message.
    pub anew: bool,
    /// The answer as JSON, for clients that report a structured answer beside the text.
    pub form: Option<String>,
    /// The line that closes a conversation was read. Without it the answer is incomplete, whatever the exit code.
    pub finished: bool,
    /// The model has answered at least once, so something was used.
    pub worked: bool,
    /// The model has used a tool. Only of clients for which that decides something.
    pub acted: bool,
    pub session: String,
    pub model: String,
    /// The client's version, if it reports one.
    pub version: String,
    /// As the client counts, in the line that closes the conversation or adds up what came before.
    pub tokens: Option<Tokens>,
    /// What its requests used up to here, and the sum of it.
    pub requests: BTreeMap<String, Tokens>,
    pub seen: Option<Tokens>,
    pub cost: Stated,
    /// Tool calls that were refused.
    pub denied: Vec<String>,
    /// Why it gave up.
    pub fault: Option<ClientFault>,
    /// The failure it was retrying after when it last printed something.
    pub hitch: Option<ClientFault>,
}

impl ClientOutput {
    /// A request has used this. What is reported of one request again replaces what was reported before, if it is
    /// more.
    pub(crate) fn request(&mut self, id: &str, used: Tokens) {
        let known = self.requests.entry(id.to_owned()).or_default();
        let before = *known;
        *known = before.or_more(used);
        self.seen = Some(self.seen.unwrap_or_default().plus(known.minus(before)));
    }

    /// Appends a piece of the answer.
    pub(crate) fn say(&mut self, piece: &str) {
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
    /// Seconds until the provider serves again, if it reports them.
    pub reopens: Option<u64>,
}

impl ClientFault {
    pub fn new(kind: Failure, said: impl Into<String>) -> ClientFault {
        ClientFault { kind, said: said.into(), reopens: None }
    }
}

/// Reads one line. Of a line that is too long only the beginning is kept, which is not JSON and therefore ignored.
pub(crate) fn read_line(lines: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<usize> {
    line.clear();
    let read = lines.by_ref().take(LINE_AT_MOST).read_until(b'\n', line)?;
    if read as u64 == LINE_AT_MOST {
        lines.skip_until(b'\n')?;
    }
    Ok(read)
}

/// The failure that an HTTP status and its text mean.
pub(crate) fn by_status(status: u64, said: &str) -> Failure {
    match status {
        401 => Failure::Auth,
        403 if !speaks_of(said, &NO_CREDIT) => Failure::Auth,
        402 => Failure::Quota,
        429 if speaks_of(said, &["quota", "usage limit", "credit"]) => Failure::Quota,
        400..=499 if speaks_of(said, &NO_CREDIT) => Failure::Quota,
        429 => Failure::RateLimit,
        _ if speaks_of(said, &TOO_LONG) => Failure::ContextTooLong,
        400..=499 => Failure::Refused,
        500..=599 => Failure::Overload,
        _ => Failure::Exit,
    }
}

/// The failure that an error text means, if there is no status: a status in the text, or the usual phrases.
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
        (&["usage limit", "quota"], Failure::Quota),
        (&NO_CREDIT, Failure::Quota),
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

/// A number between 400 and 599, not part of a longer word or number.
fn status_in(said: &str) -> Option<u64> {
    let words = said.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    let numbers = words.filter(|word| word.len() == 3).filter_map(|word| word.parse().ok());
    numbers.into_iter().find(|number| (400..600).contains(number))
}

/// An account without money, whatever the status: Anthropic's is 400.
pub(crate) const NO_CREDIT: [&str; 4] =
    ["credit balance", "insufficient_quota", "insufficient credit", "insufficient funds"];

pub(crate) const TOO_LONG: [&str; 5] =
    ["too long", "context window", "context_length_exceeded", "maximum length", "maximum number of tokens"];

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

/// The first line of a message, for the live output.
pub(crate) fn first_line(said: &str) -> Option<String> {
    let line = said.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
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
    fn c_05_an_account_without_credit_is_a_quota_whatever_the_status() {
        let said = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing";
        for status in [400, 402, 403, 429] {
            assert_eq!(by_status(status, said), Failure::Quota, "{status}");
        }
        for said in [
            format!("API Error: 400 {said}"),
            "Credit balance is too low".to_owned(),
            format!("unexpected status 400 Bad Request: {said}"),
        ] {
            assert_eq!(by_text(&said), Failure::Quota, "{said}");
        }
    }

    #[test]
    fn c_03_a_request_that_is_reported_twice_counts_once() {
        let of = |input, output| Tokens { input, output, ..Tokens::default() };
        let mut heard = ClientOutput::default();
        for (id, used, sum) in
            [("a", of(100, 1), of(100, 1)), ("b", of(200, 1), of(300, 2)), ("a", of(100, 50), of(300, 51))]
        {
            heard.request(id, used);
            assert_eq!(heard.seen, Some(sum));
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
}
