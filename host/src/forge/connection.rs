//! Sends requests to a forge: one host, a token in a header, limits for every wait, and no redirect.

use std::path::Path;
use std::time::Duration;

use archeflow_core::text::log_line;
use serde_json::Value;

use super::remote::ForgeAddress;
use super::token::{Token, TokenError};
use super::{Ask, Forge, ForgeRequest, RequestState, RequestView, gitea, github, gitlab};
use crate::clock;
use crate::failpoint;
use crate::git::Repo;
use crate::model_agent::http::Http;

/// The longest one request may take.
const LIMIT: Duration = Duration::from_secs(60);
/// A forge that asks for more patience than this is asked another time.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a request is repeated that the forge did not perform, because it limits how many there are.
const AGAIN: usize = 3;

#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    #[error("this repository is on no forge: its remote `origin` names no owner and repository")]
    NoForge,
    #[error("{host} is no forge that archeflow knows")]
    UnknownHost { host: String },
    #[error(transparent)]
    Token(#[from] TokenError),
    #[error("{0}")]
    Git(String),
    /// No answer.
    #[error("{host} was not reached ({request}): {why}")]
    Unreachable { host: String, request: String, why: String },
    /// An answer that is no success.
    #[error("{host} answers {status} to {request}{said}")]
    Refused { host: String, request: String, status: u16, said: String },
    /// Too many requests, and for longer than one waits.
    #[error("{host} takes no more requests for now ({request}); it says to try again in {seconds} s")]
    Limited { host: String, request: String, seconds: u64 },
    #[error("the answer to {request} can't be read: {why}")]
    Nonsense { request: String, why: String },
    /// No comment was taken at the lines of these findings.
    #[error("{why}")]
    Lines { fingerprints: Vec<String>, why: String },
    #[error("{0}")]
    Record(String),
}

impl ForgeError {
    pub(super) fn nonsense(request: &ForgeRequest, why: &str) -> ForgeError {
        ForgeError::Nonsense { request: request.label(), why: why.to_owned() }
    }

    /// The status that the forge answered with.
    pub fn status(&self) -> Option<u16> {
        match self {
            ForgeError::Refused { status, .. } => Some(*status),
            ForgeError::Limited { .. } => Some(429),
            ForgeError::NoForge
            | ForgeError::UnknownHost { .. }
            | ForgeError::Token(_)
            | ForgeError::Git(_)
            | ForgeError::Unreachable { .. }
            | ForgeError::Nonsense { .. }
            | ForgeError::Lines { .. }
            | ForgeError::Record(_) => None,
        }
    }
}

impl ForgeRequest {
    /// For a message: the method and the path, without a query.
    fn label(&self) -> String {
        log_line(&format!("{} {}", self.method, self.path.split('?').next().unwrap_or_default()), 200)
    }
}

/// A request that was sent, or would be.
#[derive(Debug, Clone, PartialEq)]
pub struct SentRequest {
    pub method: &'static str,
    pub url: String,
    pub body: Option<Value>,
}

/// A repository on a forge that requests can be sent to.
pub struct Connection {
    pub address: ForgeAddress,
    token: Token,
    http: Http,
    /// Requests that change something are collected instead of sent.
    is_dry: bool,
    collected: Vec<SentRequest>,
}

impl Connection {
    /// Finds the token. Nothing is sent yet.
    pub fn open(
        repo: &Repo,
        address: ForgeAddress,
        variables: &[(std::ffi::OsString, std::ffi::OsString)],
        is_dry: bool,
    ) -> Result<Connection, ForgeError> {
        let token = Token::find(repo, &address, variables)?;
        let roots = variables.iter().find(|(name, value)| name == "SSL_CERT_FILE" && !value.is_empty());
        let roots = roots.map(|(_, value)| Path::new(value));
        let http = Http::new(limit(), roots, None).map_err(ForgeError::Git)?;
        Ok(Connection { address, token, http, is_dry, collected: Vec::new() })
    }

    pub(super) fn forge(&self) -> Box<dyn Forge> {
        let address = self.address.clone();
        match self.address.kind {
            super::ForgeKind::Github => Box::new(github::Github { address }),
            super::ForgeKind::Gitlab => Box::new(gitlab::Gitlab { address }),
            super::ForgeKind::Gitea | super::ForgeKind::Forgejo => Box::new(gitea::Gitea { address }),
        }
    }

    pub fn view(&mut self, number: u32) -> Result<RequestView, ForgeError> {
        let forge = self.forge();
        self.with(|ask| forge.view(number, ask))
    }

    pub fn state(&mut self, number: u32) -> Result<RequestState, ForgeError> {
        let forge = self.forge();
        self.with(|ask| forge.state(number, ask))
    }

    pub(super) fn with<T>(&mut self, act: impl FnOnce(Ask<'_>) -> T) -> T {
        act(&mut |request| self.ask(request))
    }

    /// What would have been sent.
    pub fn collected(&self) -> &[SentRequest] {
        &self.collected
    }

    pub(super) fn is_dry(&self) -> bool {
        self.is_dry
    }

    /// Sends a request; one that the forge did not take because there were too many is repeated after a while.
    pub(super) fn ask(&mut self, request: &ForgeRequest) -> Result<Value, ForgeError> {
        let url = format!("{}{}", self.address.origin, request.path);
        if self.is_dry && !request.reads {
            self.collected.push(SentRequest { method: request.method, url, body: request.body.clone() });
            return Ok(Value::Null);
        }
        let body = request.body.as_ref().map(|body| body.to_string().into_bytes());
        let mut headers = vec![("authorization", self.token.header(self.address.kind))];
        headers.push(("accept", accepted(self.address.kind).to_owned()));
        if body.is_some() {
            headers.push(("content-type", "application/json".to_owned()));
        }
        if self.address.kind == super::ForgeKind::Github {
            headers.push(("x-github-api-version", "2022-11-28".to_owned()));
        }
        let host = self.address.host.clone();
        let mut tries = 0;
        loop {
            tries += 1;
            let answered = self.http.exchange(request.method, &url, &headers, body.as_deref(), limit());
            let (head, bytes) = answered.map_err(|why| ForgeError::Unreachable {
                host: host.clone(),
                request: request.label(),
                why,
            })?;
            let status = u16::try_from(head.status).unwrap_or(0);
            if let Some(wait) = asks_to_wait(status, &head.headers, &bytes, clock::now()) {
                if tries < AGAIN && wait <= PATIENCE {
                    std::thread::sleep(wait);
                    continue;
                }
                let seconds = wait.as_secs();
                return Err(ForgeError::Limited { host, request: request.label(), seconds });
            }
            return answer(request, (status, &head.headers), &bytes, host);
        }
    }
}

fn limit() -> Duration {
    failpoint::notification_limit(LIMIT)
}

fn accepted(kind: super::ForgeKind) -> &'static str {
    match kind {
        super::ForgeKind::Github => "application/vnd.github+json",
        super::ForgeKind::Gitlab | super::ForgeKind::Gitea | super::ForgeKind::Forgejo => "application/json",
    }
}

fn header<'a>(headers: &'a [(String, String)], wanted: &str) -> Option<&'a str> {
    headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.trim())
}

/// How long a forge that limits requests wants to be left alone. GitHub says so with 403 as well, by which it also refuses
/// what a token may not do: the remaining requests, or its words, tell them apart. `now` is in milliseconds.
fn asks_to_wait(status: u16, headers: &[(String, String)], body: &[u8], now: u64) -> Option<Duration> {
    let number = |name: &str| header(headers, name).and_then(|value| value.parse::<u64>().ok());
    let after = number("retry-after");
    let used_up = number("x-ratelimit-remaining") == Some(0);
    let says_so = || {
        let said = String::from_utf8_lossy(body.get(..body.len().min(2_000)).unwrap_or_default());
        said.to_lowercase().contains("rate limit")
    };
    let is_limit = match status {
        429 => true,
        403 => after.is_some() || used_up || says_so(),
        503 => after.is_some(),
        _ => false,
    };
    let reset = || number("x-ratelimit-reset").filter(|_| used_up).map(|at| at.saturating_sub(now / 1_000));
    is_limit.then(|| Duration::from_secs(after.or_else(reset).unwrap_or(PATIENCE.as_secs() + 1)))
}

/// What a person can do about a status.
fn remedy(status: u16, headers: &[(String, String)]) -> String {
    let needed = header(headers, "x-accepted-github-permissions").filter(|needed| !needed.is_empty());
    match (status, needed) {
        (401, _) => "; is the token valid?".to_owned(),
        (403, Some(needed)) => format!("; the token needs {}", log_line(needed, 200)),
        (403, None) => "; may the token do this?".to_owned(),
        (404, _) => "; is it there, and may the token see it?".to_owned(),
        _ => String::new(),
    }
}

fn answer(
    request: &ForgeRequest,
    (status, headers): (u16, &[(String, String)]),
    bytes: &[u8],
    host: String,
) -> Result<Value, ForgeError> {
    let value: Result<Value, serde_json::Error> = serde_json::from_slice(bytes);
    match status {
        200..=299 if bytes.iter().all(u8::is_ascii_whitespace) => Ok(Value::Null),
        200..=299 => {
            let value = value.map_err(|error| ForgeError::nonsense(request, &error.to_string()))?;
            graphql_error(&value).map_or(Ok(value), |said| {
                Err(ForgeError::Refused { host, request: request.label(), status, said })
            })
        }
        300..=399 => {
            let said =
                ": it redirects elsewhere, which is not followed; was the repository renamed?".to_owned();
            Err(ForgeError::Refused { host, request: request.label(), status, said })
        }
        _ => {
            let said = value.map(|value| reasons(&value)).unwrap_or_default();
            let said = if said.is_empty() { said } else { format!(": {said}") };
            let said = said + &remedy(status, headers);
            Err(ForgeError::Refused { host, request: request.label(), status, said })
        }
    }
}

/// GraphQL answers 200 to what it refuses.
fn graphql_error(value: &Value) -> Option<String> {
    let errors = value.get("errors")?.as_array().filter(|errors| !errors.is_empty())?;
    let messages = errors.iter().filter_map(|error| error.get("message").and_then(Value::as_str));
    Some(format!(": {}", log_line(&messages.collect::<Vec<_>>().join("; "), 400)))
}

/// What a forge says about an error: `message`, and `errors` where there are some.
fn reasons(value: &Value) -> String {
    let mut said = Vec::new();
    for name in ["message", "error", "errors"] {
        match value.get(name) {
            Some(Value::String(text)) => said.push(text.clone()),
            Some(Value::Array(all)) if !all.is_empty() => said.push(Value::Array(all.clone()).to_string()),
            Some(object @ Value::Object(_)) => said.push(object.to_string()),
            Some(_) | None => {}
        }
    }
    log_line(&said.join("; "), 400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f_23_answers_that_are_no_success_say_which_request_and_why() {
        let request = ForgeRequest::get("/repos/o/r/pulls/7?secret=x".to_owned());
        let rows: [(u16, &str, &str); 8] = [
            (
                401,
                r#"{"message":"Bad credentials"}"#,
                "f.org answers 401 to GET /repos/o/r/pulls/7: Bad credentials",
            ),
            (403, r#"{"message":"no"}"#, "answers 403 to GET /repos/o/r/pulls/7: no"),
            (404, "<html>", "answers 404 to GET /repos/o/r/pulls/7"),
            (
                422,
                r#"{"message":"Validation","errors":[{"field":"line"}]}"#,
                r#"Validation; [{"field":"line"}]"#,
            ),
            (500, "", "answers 500"),
            (301, "", "renamed?"),
            (200, "<html>", "the answer to GET /repos/o/r/pulls/7 can't be read"),
            (200, r#"{"data":null,"errors":[{"message":"No such node"}]}"#, "No such node"),
        ];
        for (status, body, wanted) in rows {
            let error = answer(&request, (status, &[]), body.as_bytes(), "f.org".to_owned())
                .map_err(|error| error.to_string());
            let error = error.err().unwrap_or_default();
            assert!(error.contains(wanted) && !error.contains("secret"), "{status}: {error}");
        }
        assert_eq!(answer(&request, (204, &[]), b"", String::new()).ok(), Some(Value::Null));
        let needs = [("x-accepted-github-permissions".to_owned(), "pull_requests=write".to_owned())];
        let refused = answer(&request, (403, &needs), b"{}", "f.org".to_owned());
        let refused = refused.map_err(|error| error.to_string()).err().unwrap_or_default();
        assert!(refused.ends_with("; the token needs pull_requests=write"), "{refused}");
    }

    #[test]
    fn f_27_a_forge_that_never_answers_or_never_ends_is_not_waited_for()
    -> Result<(), Box<dyn std::error::Error>> {
        let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/repos/o/r", listener.local_addr()?);
        let limit = Duration::from_secs(1);
        let http = Http::new(limit, None, None)?;
        let late = http.exchange("POST", &url, &[], Some(b"{}"), limit).map(|_| ());
        assert_eq!(late, Err("no answer within 1 s".to_owned()));
        // A byte now and then: every wait is short, and all of them are not.
        let drips = std::thread::spawn(move || {
            use std::io::Write as _;
            for (mut stream, _) in std::iter::from_fn(|| listener.accept().ok()).take(2) {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n");
                while stream.write_all(b" ").is_ok() {
                    std::thread::sleep(Duration::from_millis(20));
                }
            }
        });
        let slow = http.exchange("GET", &url, &[], None, limit).map(|_| ());
        assert_eq!(slow, Err("no answer within 1 s".to_owned()));
        drips.join().map_err(|_| "the server failed")?;
        let gone = http.exchange("GET", &url, &[], None, limit).map(|_| ());
        assert!(gone.as_ref().is_err_and(|why| !why.contains("/repos")), "{gone:?}");
        Ok(())
    }

    #[test]
    fn f_24_a_forge_that_limits_requests_is_given_time() {
        let after = |seconds: &str| vec![("retry-after".to_owned(), seconds.to_owned())];
        let used_up = |reset: &str| {
            let remaining = ("x-ratelimit-remaining".to_owned(), "0".to_owned());
            vec![remaining, ("x-ratelimit-reset".to_owned(), reset.to_owned())]
        };
        let left = vec![("x-ratelimit-remaining".to_owned(), "17".to_owned())];
        let rows = [
            (429, after("3"), "", Some(3)),
            (403, after("7"), "", Some(7)),
            (503, after("1"), "", Some(1)),
            (429, Vec::new(), "", Some(61)),
            (429, after("Wed, 21 Oct 2015 07:28:00 GMT"), "", Some(61)),
            (403, used_up("1030"), "", Some(30)),
            (429, used_up("1030"), "", Some(30)),
            (403, used_up("900"), "", Some(0)),
            (403, left.clone(), r#"{"message":"You have exceeded a secondary rate limit."}"#, Some(61)),
            (403, left, r#"{"message":"Resource not accessible by integration"}"#, None),
            (403, Vec::new(), "", None),
            (404, after("3"), "", None),
        ];
        for (status, headers, body, expected) in rows {
            assert_eq!(
                asks_to_wait(status, &headers, body.as_bytes(), 1_000_000),
                expected.map(Duration::from_secs),
                "{status} {headers:?} {body}"
            );
        }
    }
}
