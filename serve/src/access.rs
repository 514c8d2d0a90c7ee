//! Which requests are answered at all. Another program of this user could start `archeflow` just as well, so this keeps out
//! other users of the machine and pages of other sites in the user's own browser.
//!
//! Pure: the facts of a request go in, a refusal or nothing comes out. The limits of sizes and times are in `server.rs`.

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};

/// Sent with every answer.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                                 form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// 256 random bits, as text.
#[derive(Clone)]
pub(crate) struct Secret(String);

impl Secret {
    pub(crate) fn new(bits: [u8; 32]) -> Secret {
        Secret(bits.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    /// Takes the same time wherever the two differ.
    pub(crate) fn is(&self, other: &str) -> bool {
        let (mine, other) = (self.0.as_bytes(), other.as_bytes());
        let differ =
            mine.iter().zip(other).fold(0_u8, |differ, (a, b)| std::hint::black_box(differ | (a ^ b)));
        mine.len() == other.len() && differ == 0
    }
}

/// What a request is compared with. All secrets are new at every start.
pub(crate) struct Access {
    port: u16,
    /// One more name that the server is reached by, through a tunnel of the user's.
    host: Option<String>,
    /// In the address that is printed, and in no other.
    pub(crate) token: Secret,
    /// In the cookie that the token is exchanged for.
    pub(crate) session: Secret,
    /// In every form.
    pub(crate) form: Secret,
    /// Opens [`METRICS`] and nothing else. It stays the same, since Prometheus has it in its configuration.
    pub(crate) metrics: Option<Secret>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The address names a server, as for a proxy.
    AbsoluteAddress,
    Host,
    OtherSite,
    Origin,
    NoToken,
    NoSession,
    FormToken,
}

impl Refusal {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Refusal::AbsoluteAddress => StatusCode::BAD_REQUEST,
            Refusal::Host => StatusCode::MISDIRECTED_REQUEST,
            Refusal::OtherSite | Refusal::Origin | Refusal::FormToken => StatusCode::FORBIDDEN,
            Refusal::NoToken | Refusal::NoSession => StatusCode::UNAUTHORIZED,
        }
    }

    pub(crate) fn words(self) -> &'static str {
        match self {
            Refusal::AbsoluteAddress => "This server is no proxy.",
            Refusal::Host => {
                "This server is not reached by that name. `archeflow ui --host <name>` adds one."
            }
            Refusal::OtherSite => "A page of another site asked for this. Type the address yourself.",
            Refusal::Origin => "The request does not come from a page of this server.",
            Refusal::NoToken => "This is not the address that `archeflow ui` printed when it started.",
            Refusal::FormToken => {
                "The page is from before the server was started. Reload it and decide again."
            }
            Refusal::NoSession => "Open the address that `archeflow ui` printed when it started.",
        }
    }
}

impl Access {
    pub(crate) fn new(
        port: u16,
        host: Option<String>,
        secrets: [Secret; 3],
        metrics: Option<Secret>,
    ) -> Access {
        let [token, session, form] = secrets;
        Access { port, host, token, session, form, metrics }
    }

    /// Cookies do not know ports, so the name does.
    pub(crate) fn cookie_name(&self) -> String {
        format!("archeflow-{}", self.port)
    }

    pub(crate) fn cookie(&self) -> String {
        format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie_name(), self.session.text())
    }

    /// The request may be for anything but [`IN`], which needs no session.
    pub(crate) fn check(&self, request: &Parts) -> Result<(), Refusal> {
        if request.uri.authority().is_some() {
            return Err(Refusal::AbsoluteAddress);
        }
        let host = only(&request.headers, header::HOST).ok_or(Refusal::Host)?;
        if !self.is_own_host(host) {
            return Err(Refusal::Host);
        }
        let gets = matches!(request.method, Method::GET | Method::HEAD);
        let entering = gets && request.uri.path() == IN;
        // Only who has the token gets in, wherever the link was.
        if !entering && !is_from_here(&request.headers) {
            return Err(Refusal::OtherSite);
        }
        match only(&request.headers, header::ORIGIN) {
            Some(origin) if self.is_origin_of(origin, host) => {}
            None if gets && !request.headers.contains_key(header::ORIGIN) => {}
            Some(_) | None => return Err(Refusal::Origin),
        }
        let scraping = gets && request.uri.path() == METRICS && self.has_metrics_key(&request.headers);
        if entering || scraping || self.has_session(&request.headers) {
            Ok(())
        } else {
            Err(Refusal::NoSession)
        }
    }

    fn has_metrics_key(&self, headers: &HeaderMap) -> bool {
        let key = only(headers, header::AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer "));
        self.metrics.as_ref().zip(key).is_some_and(|(metrics, key)| metrics.is(key))
    }

    fn is_own_host(&self, host: &str) -> bool {
        let port = self.port;
        host == format!("127.0.0.1:{port}")
            || host.eq_ignore_ascii_case(&format!("localhost:{port}"))
            || self.host.as_ref().is_some_and(|name| host.eq_ignore_ascii_case(name))
    }

    /// A page that was reached by one name posts to the same.
    fn is_origin_of(&self, origin: &str, host: &str) -> bool {
        let plain = origin.strip_prefix("http://");
        let tunnel = self
            .host
            .as_ref()
            .and_then(|name| origin.strip_prefix("https://").filter(|_| host.eq_ignore_ascii_case(name)));
        plain.or(tunnel).is_some_and(|name| name.eq_ignore_ascii_case(host))
    }

    fn has_session(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let cookies = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let found = pairs.filter(|(known, _)| *known == name).map(|(_, value)| self.session.is(value));
        found.fold(false, |any, good| any | good)
    }
}

/// Numbers for Prometheus.
pub(crate) const METRICS: &str = "/metrics";

/// Where the token is exchanged for a cookie.
pub(crate) const IN: &str = "/in";

/// A browser says which site a request comes from. A page on another port is the same site, and still another page.
fn is_from_here(headers: &HeaderMap) -> bool {
    let mut said = headers.get_all("sec-fetch-site").into_iter();
    said.all(|value| {
        value == HeaderValue::from_static("same-origin") || value == HeaderValue::from_static("none")
    })
}

/// The value of a header that is there exactly once.
fn only(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).into_iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use axum::http::Request;

    use super::*;

    fn access() -> Access {
        let secrets = [1, 2, 3].map(|n| Secret::new([n; 32]));
        Access::new(7777, Some("box.example".to_owned()), secrets, Some(Secret::new([4; 32])))
    }

    fn checked(method: &str, path: &str, headers: &[(&str, &str)]) -> Result<(), Refusal> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        access().check(&request.body(()).unwrap().into_parts().0)
    }

    #[test]
    fn u_16_a_request_is_answered_only_with_host_origin_and_session() {
        let cookie = format!("other=1; archeflow-7777={}", "02".repeat(32));
        let wrong = format!("archeflow-7777={}", "01".repeat(32));
        let host = ("host", "127.0.0.1:7777");
        let session = ("cookie", cookie.as_str());
        let origin = ("origin", "http://127.0.0.1:7777");
        use Refusal::{AbsoluteAddress, Host, NoSession, Origin, OtherSite};
        type Row<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, Result<(), Refusal>);
        let rows: Vec<Row<'_>> = vec![
            ("GET", "/", vec![host, session], Ok(())),
            ("GET", "/", vec![("host", "LOCALHOST:7777"), session], Ok(())),
            ("GET", "/", vec![("host", "box.example"), session, ("origin", "https://box.example")], Ok(())),
            (
                "GET",
                "/",
                vec![("host", "localhost:7777"), session, ("origin", "https://localhost:7777")],
                Err(Origin),
            ),
            ("GET", "/", vec![host, session, ("sec-fetch-site", "none")], Ok(())),
            ("GET", "/", vec![host, session, ("sec-fetch-site", "same-site")], Err(OtherSite)),
            ("GET", "/", vec![host, session, ("sec-fetch-site", "cross-site")], Err(OtherSite)),
            ("GET", "/", vec![session], Err(Host)),
            ("GET", "/", vec![host, host, session], Err(Host)),
            ("GET", "/", vec![("host", "127.0.0.1"), session], Err(Host)),
            ("GET", "/", vec![("host", "127.0.0.1:7778"), session], Err(Host)),
            ("GET", "/", vec![("host", "evil.example:7777"), session], Err(Host)),
            ("GET", "http://127.0.0.1:7777/", vec![host, session], Err(AbsoluteAddress)),
            ("GET", "/", vec![host], Err(NoSession)),
            ("GET", "/", vec![host, ("cookie", wrong.as_str())], Err(NoSession)),
            ("GET", "/", vec![host, ("cookie", "archeflow-7777=")], Err(NoSession)),
            ("GET", "/in?t=x", vec![host, ("sec-fetch-site", "cross-site")], Ok(())),
            ("POST", "/in?t=x", vec![host, origin], Err(NoSession)),
            ("POST", "/do", vec![host, session, origin], Ok(())),
            ("POST", "/do", vec![host, session], Err(Origin)),
            ("POST", "/do", vec![host, session, ("origin", "null")], Err(Origin)),
            ("POST", "/do", vec![host, session, ("origin", "http://localhost:7777")], Err(Origin)),
            ("POST", "/do", vec![host, session, ("origin", "http://127.0.0.1:8000")], Err(Origin)),
            ("GET", "/", vec![host, session, origin, ("origin", "http://evil.example")], Err(Origin)),
        ];
        for (method, path, headers, expected) in rows {
            assert_eq!(checked(method, path, &headers), expected, "{method} {path} {headers:?}");
        }
    }

    #[test]
    fn otel_the_key_for_prometheus_opens_its_numbers_and_nothing_else() {
        let host = ("host", "127.0.0.1:7777");
        let (key, token) = (format!("Bearer {}", "04".repeat(32)), format!("Bearer {}", "01".repeat(32)));
        let cookie = format!("archeflow-7777={}", "02".repeat(32));
        let good = ("authorization", key.as_str());
        use Refusal::{Host, NoSession, Origin, OtherSite};
        type Row<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, Result<(), Refusal>);
        let rows: Vec<Row<'_>> = vec![
            ("GET", "/metrics", vec![host, good], Ok(())),
            ("GET", "/metrics", vec![host, ("cookie", cookie.as_str())], Ok(())),
            ("GET", "/metrics", vec![host], Err(NoSession)),
            ("GET", "/metrics", vec![host, ("authorization", token.as_str())], Err(NoSession)),
            ("GET", "/metrics", vec![host, ("authorization", "Bearer ")], Err(NoSession)),
            ("GET", "/metrics", vec![host, good, good], Err(NoSession)),
            ("GET", "/metrics", vec![("host", "evil.example:7777"), good], Err(Host)),
            ("GET", "/metrics", vec![host, good, ("sec-fetch-site", "cross-site")], Err(OtherSite)),
            ("GET", "/metrics", vec![host, good, ("origin", "http://evil.example")], Err(Origin)),
            ("GET", "/", vec![host, good], Err(NoSession)),
            ("GET", "/metrics/", vec![host, good], Err(NoSession)),
            ("POST", "/metrics", vec![host, good, ("origin", "http://127.0.0.1:7777")], Err(NoSession)),
            ("POST", "/do", vec![host, good, ("origin", "http://127.0.0.1:7777")], Err(NoSession)),
        ];
        for (method, path, headers, expected) in rows {
            assert_eq!(checked(method, path, &headers), expected, "{method} {path} {headers:?}");
        }
    }

    #[test]
    fn u_16_a_secret_is_equal_to_itself_only() {
        let secret = Secret::new([7; 32]);
        let text = secret.text().to_owned();
        assert!(secret.is(&text));
        for other in ["", "07", &format!("{text}0"), &text[1..], &text.replace('7', "8")] {
            assert!(!secret.is(other), "{other}");
        }
    }
}
