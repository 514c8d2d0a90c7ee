//! Where telemetry goes, from what was typed, the standard variables and the user's own settings.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use archeflow_core::settings::TelemetrySettings;

use super::TelemetryError;

/// The three kinds of OTLP messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OtlpSignal {
    Traces,
    Logs,
    Metrics,
}

impl OtlpSignal {
    pub const ALL: [OtlpSignal; 3] = [OtlpSignal::Traces, OtlpSignal::Logs, OtlpSignal::Metrics];

    pub fn name(self) -> &'static str {
        match self {
            OtlpSignal::Traces => "traces",
            OtlpSignal::Logs => "logs",
            OtlpSignal::Metrics => "metrics",
        }
    }
}

/// Where each kind of message goes. It holds keys, so it can't be shown.
pub struct OtlpTarget {
    ways: Vec<OtlpWay>,
    /// What the user calls the sender.
    pub(super) resource: Vec<(String, String)>,
    /// Certificates to trust instead of those that come with the program.
    pub(super) roots: Option<PathBuf>,
    /// The longest one request may take.
    pub(super) limit: Duration,
}

pub(super) struct OtlpWay {
    pub(super) signal: OtlpSignal,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
}

/// As OpenTelemetry's programs have it.
const LIMIT: Duration = Duration::from_secs(10);

impl OtlpTarget {
    /// Precedence, highest first: `to`, which was typed; the variables of OpenTelemetry; the user's own setting.
    pub fn of(
        to: Option<&str>,
        settings: &TelemetrySettings,
        variables: &[(OsString, OsString)],
    ) -> Result<OtlpTarget, TelemetryError> {
        let resource = resource(variables)?;
        let variables = Variables(variables);
        if let Some(protocol) = variables.get("OTEL_EXPORTER_OTLP_PROTOCOL")
            && !protocol.starts_with("http/")
        {
            return Err(TelemetryError::Protocol { protocol });
        }
        let base = match to {
            Some(to) => Some((to.to_owned(), "--to")),
            None => variables
                .get("OTEL_EXPORTER_OTLP_ENDPOINT")
                .map(|base| (base, "OTEL_EXPORTER_OTLP_ENDPOINT"))
                .or_else(|| settings.otlp.clone().map(|base| (base, "telemetry.otlp"))),
        };
        let mut ways = Vec::new();
        for signal in OtlpSignal::ALL {
            let upper = signal.name().to_uppercase();
            if variables.get(&format!("OTEL_{upper}_EXPORTER")).is_some_and(|word| word == "none") {
                continue;
            }
            let own = format!("OTEL_EXPORTER_OTLP_{upper}_ENDPOINT");
            let own_address = variables.get(&own).filter(|_| to.is_none());
            let url = match (own_address, &base) {
                // One that is for this signal is taken as it is.
                (Some(address), _) => checked(&address, &own)?,
                (None, Some((base, from))) => {
                    format!("{}/v1/{}", checked(base, from)?.trim_end_matches('/'), signal.name())
                }
                (None, None) => continue,
            };
            let own = format!("OTEL_EXPORTER_OTLP_{upper}_HEADERS");
            let (name, text) = match variables.get(&own) {
                Some(text) => (own, Some(text)),
                None => {
                    let name = "OTEL_EXPORTER_OTLP_HEADERS".to_owned();
                    let text = variables.get(&name);
                    (name, text)
                }
            };
            let headers = headers(&name, text.as_deref().unwrap_or_default())?;
            ways.push(OtlpWay { signal, url, headers });
        }
        if ways.is_empty() {
            return Err(TelemetryError::NoAddress);
        }
        let limit = variables.get("OTEL_EXPORTER_OTLP_TIMEOUT").and_then(|ms| ms.parse().ok());
        let roots =
            variables.get("OTEL_EXPORTER_OTLP_CERTIFICATE").or_else(|| variables.get("SSL_CERT_FILE"));
        Ok(OtlpTarget {
            ways,
            resource,
            roots: roots.map(PathBuf::from),
            limit: limit.filter(|ms| *ms > 0).map_or(LIMIT, Duration::from_millis),
        })
    }

    pub(super) fn way(&self, signal: OtlpSignal) -> Option<&OtlpWay> {
        self.ways.iter().find(|way| way.signal == signal)
    }
}

/// Whether live export is wanted: its address is set, and nothing switches it off.
pub(super) fn is_live(settings: &TelemetrySettings, variables: &[(OsString, OsString)]) -> bool {
    let off = Variables(variables).get("OTEL_SDK_DISABLED");
    settings.otlp.is_some() && !off.is_some_and(|word| word.eq_ignore_ascii_case("true"))
}

/// An empty variable counts as not set.
struct Variables<'a>(&'a [(OsString, OsString)]);

impl Variables<'_> {
    fn get(&self, name: &str) -> Option<String> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.to_string_lossy().trim().to_owned()).filter(|text| !text.is_empty())
    }
}

/// What a request can be sent to.
fn checked(address: &str, from: &str) -> Result<String, TelemetryError> {
    let wrong = |why: &str| Err(TelemetryError::Address { from: from.to_owned(), why: why.to_owned() });
    let Some(rest) = address.strip_prefix("http://").or_else(|| address.strip_prefix("https://")) else {
        return wrong("does not begin with http:// or https://");
    };
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return wrong("names no host");
    }
    if address.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return wrong("has a blank in it");
    }
    if rest.contains(['?', '#']) {
        return wrong("has a `?` or `#` in it");
    }
    if host.contains('@') {
        return wrong("holds a name and a password; put them into OTEL_EXPORTER_OTLP_HEADERS instead");
    }
    Ok(address.to_owned())
}

/// `name=value,name=value`, the values as in an address.
fn pairs(text: &str) -> Option<Vec<(String, String)>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=')?;
            let name = name.trim();
            (!name.is_empty()).then_some(())?;
            Some((name.to_owned(), decoded(value.trim())?))
        })
        .collect()
}

/// `%2C` as a comma; nothing for what is no text then.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let code = more.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let code = code.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| *first == b'%');
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { more.get(2..).unwrap_or_default() } else { more };
    }
    String::from_utf8(bytes).ok()
}

/// An error names the variable and never its value.
fn headers(name: &str, text: &str) -> Result<Vec<(String, String)>, TelemetryError> {
    let wrong = || TelemetryError::Headers { name: name.to_owned() };
    let pairs = pairs(text).ok_or_else(wrong)?;
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    let good = |(name, value): &(String, String)| {
        name.chars().all(token) && !value.contains(|c: char| c.is_control() || !c.is_ascii())
    };
    if pairs.iter().all(good) { Ok(pairs) } else { Err(wrong()) }
}

/// What the user calls the sender.
pub fn resource(variables: &[(OsString, OsString)]) -> Result<Vec<(String, String)>, TelemetryError> {
    let variables = Variables(variables);
    let name = "OTEL_RESOURCE_ATTRIBUTES";
    let text = variables.get(name).unwrap_or_default();
    let mut all = pairs(&text).ok_or_else(|| TelemetryError::Headers { name: name.to_owned() })?;
    all.extend(variables.get("OTEL_SERVICE_NAME").map(|value| ("service.name".to_owned(), value)));
    Ok(all)
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use super::*;

    fn target(
        to: Option<&str>,
        own: Option<&str>,
        set: &[(&str, &str)],
    ) -> Result<OtlpTarget, TelemetryError> {
        let settings = TelemetrySettings { otlp: own.map(str::to_owned), content: false };
        let variables: Vec<(OsString, OsString)> =
            set.iter().map(|(name, value)| (name.into(), value.into())).collect();
        OtlpTarget::of(to, &settings, &variables)
    }

    #[test]
    fn otel_an_address_is_typed_or_in_the_environment_or_the_users_own() {
        const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
        type Row<'a> = (Option<&'a str>, Option<&'a str>, &'a [(&'a str, &'a str)], [&'a str; 3]);
        let rows: [Row<'_>; 7] = [
            (
                Some("http://a:1"),
                Some("http://b"),
                &[(ENDPOINT, "http://c")],
                ["http://a:1/v1/traces", "http://a:1/v1/logs", "http://a:1/v1/metrics"],
            ),
            (
                None,
                Some("http://b/x/"),
                &[(ENDPOINT, "http://c/")],
                ["http://c/v1/traces", "http://c/v1/logs", "http://c/v1/metrics"],
            ),
            (
                None,
                Some("https://b/x/"),
                &[(ENDPOINT, " ")],
                ["https://b/x/v1/traces", "https://b/x/v1/logs", "https://b/x/v1/metrics"],
            ),
            (
                None,
                Some("http://b"),
                &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/as/it/is")],
                ["http://t/as/it/is", "http://b/v1/logs", "http://b/v1/metrics"],
            ),
            (None, None, &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t")], ["http://t", "", ""]),
            (
                Some("http://a"),
                None,
                &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t")],
                ["http://a/v1/traces", "http://a/v1/logs", "http://a/v1/metrics"],
            ),
            (
                Some("http://a"),
                None,
                &[("OTEL_LOGS_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")],
                ["http://a/v1/traces", "", ""],
            ),
        ];
        for (to, own, set, urls) in rows {
            let target = target(to, own, set).unwrap();
            let found = OtlpSignal::ALL.map(|signal| target.way(signal).map_or("", |way| way.url.as_str()));
            assert_eq!(found, urls, "{to:?} {own:?} {set:?}");
        }
    }

    #[test]
    fn otel_headers_and_the_name_of_the_sender_come_from_the_environment() {
        let set = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20a%2Cb, x-team = red"),
            ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "x-logs=1"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=other"),
            ("OTEL_SERVICE_NAME", "mine"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "1500"),
        ];
        let target = target(None, None, &set).unwrap();
        let headers = |signal| target.way(signal).unwrap().headers.clone();
        let owned = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
        };
        assert_eq!(headers(OtlpSignal::Traces), owned(&[("authorization", "Bearer a,b"), ("x-team", "red")]));
        assert_eq!(headers(OtlpSignal::Logs), owned(&[("x-logs", "1")]));
        let resource =
            [("deployment.environment.name", "test"), ("service.name", "other"), ("service.name", "mine")];
        assert_eq!(target.resource, owned(&resource));
        assert_eq!(target.limit, Duration::from_millis(1_500));
    }

    #[test]
    fn otel_a_wrong_address_or_header_is_named_without_its_secret() {
        let secret = "s3cr3t";
        let rows: [(&[(&str, &str)], &str); 9] = [
            (&[], "no address"),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "s3cr3t:4318")], "OTEL_EXPORTER_OTLP_ENDPOINT does not begin"),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://")], "names no host"),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h/?key=s3cr3t")], "`?`"),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://u:s3cr3t@h")], "OTEL_EXPORTER_OTLP_HEADERS"),
            (
                &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h"), ("OTEL_EXPORTER_OTLP_HEADERS", "s3cr3t")],
                "name=value",
            ),
            (
                &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h"), ("OTEL_EXPORTER_OTLP_HEADERS", "a=s3cr3t%0A")],
                "name=value",
            ),
            (
                &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h"), ("OTEL_RESOURCE_ATTRIBUTES", "s3cr3t")],
                "name=value",
            ),
            (&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")], "grpc"),
        ];
        for (set, words) in rows {
            let error = target(None, None, set).err().unwrap();
            let all = format!("{error} {}", error.remedy());
            assert!(all.contains(words) && !all.contains(secret), "{set:?}: {all}");
        }
    }
}
