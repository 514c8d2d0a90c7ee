//! The only place that talks to a network. One request, its answer handed on as it comes.
//!
//! Nothing here is left to chance or to the surroundings: no redirect is followed, so a key stays with the host it
//! was meant for; no proxy is taken from the environment but that of our own sandbox; what comes is bounded; every wait has an end.

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// More than any answer has.
const ANSWER_AT_MOST: u64 = 32 * 1024 * 1024;

const CONNECT: Duration = Duration::from_secs(20);

pub(crate) struct Http {
    agent: ureq::Agent,
}

/// One request to a provider. It holds a key, so it can't be shown.
pub(super) struct HttpRequest<'a> {
    pub(super) url: &'a str,
    pub(super) headers: &'a [(&'static str, String)],
    /// A question without a body is a GET.
    pub(super) body: Option<&'a [u8]>,
}

/// A request of somebody else's that is passed on. It holds a key, so it can't be shown.
pub(crate) struct ForwardedRequest<'a> {
    pub(crate) method: &'a str,
    pub(crate) url: &'a str,
    pub(crate) headers: &'a [(String, Vec<u8>)],
    /// Read as it is sent, with its length if that is known.
    pub(crate) body: Option<(&'a mut dyn Read, Option<u64>)>,
}

/// How an answer begins.
#[derive(Debug, Clone)]
pub(crate) struct ResponseHead {
    pub(crate) status: u64,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
}

/// Why an answer never came, or ended in the middle.
#[derive(Debug, thiserror::Error)]
pub(super) enum Broken {
    #[error("{0}")]
    Line(String),
    #[error("no data for {} s", .0.as_secs())]
    Stalled(Duration),
    #[error("the answer has more than {ANSWER_AT_MOST} bytes")]
    TooMuch,
}

impl Http {
    /// `roots` is a file with the certificates to trust instead of those that come with the program; `proxy` is the way
    /// out of our own sandbox.
    pub(crate) fn new(patience: Duration, roots: Option<&Path>, proxy: Option<&str>) -> Result<Http, String> {
        let proxy = proxy.map(ureq::Proxy::new).transpose().map_err(|error| error.to_string())?;
        let mut tls = TlsConfig::builder();
        if let Some(path) = roots {
            tls = tls.root_certs(read_roots(path)?);
        }
        let config = ureq::Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy)
            .accept_encoding("identity")
            .user_agent(concat!("archeflow/", env!("CARGO_PKG_VERSION")))
            // Between two requests commands may run for minutes: a connection kept that long is a broken one.
            .max_idle_connections(0)
            .timeout_resolve(Some(CONNECT.min(patience)))
            .timeout_connect(Some(CONNECT.min(patience)))
            .timeout_per_read(Some(patience))
            .timeout_per_write(Some(patience))
            .build();
        Ok(Http { agent: config.new_agent() })
    }

    /// Sends a request and passes on the response, piece by piece.
    pub(super) fn send(
        &self,
        request: &HttpRequest<'_>,
        patience: Duration,
        take: &mut dyn FnMut(&ResponseHead, &[u8]),
    ) -> Result<ResponseHead, Broken> {
        let broken = |error: &ureq::Error| broken(error, patience);
        let answered = match request.body {
            Some(body) => {
                let post = self.agent.post(request.url).header("content-type", "application/json");
                let post = request.headers.iter().fold(post, |post, (name, value)| post.header(*name, value));
                post.send(body)
            }
            None => {
                let get = self.agent.get(request.url);
                request.headers.iter().fold(get, |get, (name, value)| get.header(*name, value)).call()
            }
        };
        let response = answered.map_err(|error| broken(&error))?;
        let head = ResponseHead::of(&response);
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 16 * 1024];
        let mut total = 0_u64;
        loop {
            let read = body.read(&mut buffer).map_err(|error| broken(&ureq::Error::from(error)))?;
            if read == 0 {
                return Ok(head);
            }
            total += read as u64;
            if total > ANSWER_AT_MOST {
                return Err(Broken::TooMuch);
            }
            take(&head, buffer.get(..read).unwrap_or_default());
        }
    }
}

impl Http {
    /// Passes a request on and hands back the answer, piece by piece and whatever its length. The head comes first, with
    /// an empty piece.
    pub(crate) fn forward(
        &self,
        request: ForwardedRequest<'_>,
        take: &mut dyn FnMut(&ResponseHead, &[u8]) -> io::Result<()>,
    ) -> Result<(), String> {
        let build = ureq::http::Request::builder().method(request.method).uri(request.url);
        let build = request
            .headers
            .iter()
            .fold(build, |build, (name, value)| build.header(name.as_str(), value.as_slice()));
        let wrong = |error: ureq::http::Error| error.to_string();
        let answered = match request.body {
            None => self.agent.run(build.body(()).map_err(wrong)?),
            Some((reader, length)) => {
                let length = length.map(|length| ("content-length", length.to_string()));
                let build = length.iter().fold(build, |build, (name, value)| build.header(*name, value));
                self.agent.run(build.body(ureq::SendBody::from_reader(reader)).map_err(wrong)?)
            }
        };
        let response = answered.map_err(|error| error.to_string())?;
        let head = ResponseHead::of(&response);
        take(&head, &[]).map_err(|error| error.to_string())?;
        let mut body = response.into_body().into_reader();
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = body.read(&mut buffer).map_err(|error| error.to_string())?;
            if read == 0 {
                return Ok(());
            }
            take(&head, buffer.get(..read).unwrap_or_default()).map_err(|error| error.to_string())?;
        }
    }
}

impl Http {
    /// One message to a server that is no provider. Only the status of the answer counts, and an error never holds the
    /// address, which may be a secret.
    pub(crate) fn post(
        &self,
        url: &str,
        headers: &[(&str, String)],
        body: &[u8],
        limit: Duration,
    ) -> Result<u16, String> {
        let post = self.agent.post(url).config().timeout_global(Some(limit)).build();
        let post = headers.iter().fold(post, |post, (name, value)| post.header(*name, value));
        let answered = post.send(body).map_err(|error| without_address(&error, limit))?;
        Ok(answered.status().as_u16())
    }
}

impl Http {
    /// One request with a method of its own, and its whole answer. An error never holds the address.
    pub(crate) fn exchange(
        &self,
        method: &str,
        url: &str,
        headers: &[(&str, String)],
        body: Option<&[u8]>,
        limit: Duration,
    ) -> Result<(ResponseHead, Vec<u8>), String> {
        let build = ureq::http::Request::builder().method(method).uri(url);
        let build = headers.iter().fold(build, |build, (name, value)| build.header(*name, value));
        let wrong = |error: ureq::http::Error| error.to_string();
        let lost = |error: ureq::Error| without_address(&error, limit);
        let answered = match body {
            Some(body) => {
                let request = build.body(body).map_err(wrong)?;
                self.agent.run(self.agent.configure_request(request).timeout_global(Some(limit)).build())
            }
            None => {
                let request = build.body(()).map_err(wrong)?;
                self.agent.run(self.agent.configure_request(request).timeout_global(Some(limit)).build())
            }
        };
        let response = answered.map_err(lost)?;
        let head = ResponseHead::of(&response);
        let mut bytes = Vec::new();
        let read = response.into_body().into_reader().take(ANSWER_AT_MOST + 1).read_to_end(&mut bytes);
        read.map_err(|error| lost(ureq::Error::from(error)))?;
        if bytes.len() as u64 > ANSWER_AT_MOST {
            return Err(Broken::TooMuch.to_string());
        }
        Ok((head, bytes))
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "other errors of the crate may hold the address")]
fn without_address(error: &ureq::Error, limit: Duration) -> String {
    match error {
        ureq::Error::Timeout(_) => format!("no answer within {} s", limit.as_secs()),
        ureq::Error::HostNotFound => "its host is not found".to_owned(),
        ureq::Error::ConnectionFailed => "no connection".to_owned(),
        ureq::Error::Io(error) => error.to_string(),
        ureq::Error::Rustls(error) => format!("the connection can't be trusted: {error}"),
        _ => "the request failed".to_owned(),
    }
}

impl ResponseHead {
    fn of(response: &ureq::http::Response<ureq::Body>) -> ResponseHead {
        let text = |value: &ureq::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers = response.headers().iter().map(|(name, value)| (name.as_str().to_owned(), text(value)));
        ResponseHead { status: response.status().as_u16().into(), headers: headers.collect() }
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the errors of another crate are reported with its own text"
)]
fn broken(error: &ureq::Error, patience: Duration) -> Broken {
    match error {
        ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => {
            Broken::Line("it can't be reached in time".to_owned())
        }
        ureq::Error::Timeout(_) => Broken::Stalled(patience),
        other => Broken::Line(other.to_string()),
    }
}

fn read_roots(path: &Path) -> Result<RootCerts, String> {
    let wrong =
        |why: String| format!("the certificates in {} (SSL_CERT_FILE) can't be used: {why}", path.display());
    let text = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let mut certificates = Vec::new();
    for item in parse_pem(&text).flatten() {
        if let PemItem::Certificate(certificate) = item {
            certificates.push(certificate);
        }
    }
    if certificates.is_empty() { Err(wrong("there are none".to_owned())) } else { Ok(certificates.into()) }
}
