//! Sends messages and reads what the collector says to them.

use std::time::{Duration, Instant};

use archeflow_core::projections::telemetry::Telemetry;
use archeflow_core::text::log_line;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use prost::Message;
use serde_json::Value;

use super::TelemetryError;
use super::encode::{self, OtlpMessage};
use super::target::{OtlpSignal, OtlpTarget, OtlpWay};
use crate::config::kinds::host_only;
use crate::model_agent::http::Http;

/// How often a request is repeated that the collector could not take just now.
const AGAIN: u32 = 2;
/// The longest wait before that.
const PATIENCE: Duration = Duration::from_secs(5);

/// What became of one signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SentSignal {
    /// This many spans, records or metrics.
    Taken(usize),
    /// This address takes none of them.
    NotTaken,
    /// There were none, or no address is set for them.
    Nothing,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    pub signals: Vec<(OtlpSignal, SentSignal)>,
    /// Where the first went, without its path.
    pub address: String,
}

pub(super) fn signal(message: &OtlpMessage) -> OtlpSignal {
    match message {
        OtlpMessage::Traces(_) => OtlpSignal::Traces,
        OtlpMessage::Logs(_) => OtlpSignal::Logs,
        OtlpMessage::Metrics(_) => OtlpSignal::Metrics,
    }
}

/// Sends everything, the traces first. `within`: all of it together may take so long, and nothing is repeated.
pub fn export(
    telemetry: &Telemetry,
    target: &OtlpTarget,
    within: Option<Duration>,
) -> Result<Sent, TelemetryError> {
    let until = within.map(|within| Instant::now() + within);
    let limit = within.map_or(target.limit, |within| within.min(target.limit));
    let http = Http::new(limit, target.roots.as_deref(), None).map_err(TelemetryError::Certificates)?;
    let counts = [telemetry.spans.len(), telemetry.records.len(), telemetry.metrics.len()];
    let mut signals: Vec<(OtlpSignal, SentSignal)> = OtlpSignal::ALL
        .into_iter()
        .zip(counts)
        .map(|(signal, count)| match (count, target.way(signal)) {
            (0, _) | (_, None) => (signal, SentSignal::Nothing),
            (count, Some(_)) => (signal, SentSignal::Taken(count)),
        })
        .collect();
    for message in encode::messages(telemetry, &target.resource) {
        let kind = signal(&message);
        let Some(way) = target.way(kind) else { continue };
        let Some((_, state)) = signals.iter_mut().find(|(signal, _)| *signal == kind) else { continue };
        if *state == SentSignal::NotTaken {
            continue;
        }
        let limit = until.map_or(limit, |until| until.saturating_duration_since(Instant::now()));
        match post(&http, way, &message.bytes(), limit, until.is_none()) {
            Ok(()) => {}
            // Some take traces and nothing else.
            Err(TelemetryError::Refused { status: 404 | 405 | 415 | 501, .. })
                if kind != OtlpSignal::Traces =>
            {
                *state = SentSignal::NotTaken;
            }
            Err(error) => return Err(error),
        }
    }
    let first = OtlpSignal::ALL.into_iter().find_map(|signal| target.way(signal));
    Ok(Sent { signals, address: first.map(|way| origin(&way.url)).unwrap_or_default() })
}

/// An address without its path, which may hold a key.
fn origin(url: &str) -> String {
    host_only(url).trim_end_matches("/…").to_owned()
}

fn post(
    http: &Http,
    way: &OtlpWay,
    body: &[u8],
    limit: Duration,
    patient: bool,
) -> Result<(), TelemetryError> {
    let address = origin(&way.url);
    let mut headers = vec![("content-type", "application/x-protobuf".to_owned())];
    headers.extend(way.headers.iter().map(|(name, value)| (name.as_str(), value.clone())));
    let mut tries = 0;
    loop {
        if limit.is_zero() {
            return Err(TelemetryError::Unreachable { address, why: "there was no time left".to_owned() });
        }
        let (head, bytes) = http
            .exchange("POST", &way.url, &headers, Some(body), limit)
            .map_err(|why| TelemetryError::Unreachable { address: address.clone(), why })?;
        let status = u16::try_from(head.status).unwrap_or_default();
        let header = |name: &str| {
            let found = head.headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.as_str()).unwrap_or_default()
        };
        if matches!(status, 429 | 502..=504) && patient && tries < AGAIN {
            tries += 1;
            let wait = header("retry-after").parse().map_or(Duration::from_secs(1), Duration::from_secs);
            if wait <= PATIENCE {
                std::thread::sleep(wait);
                continue;
            }
        }
        return answer(way.signal, &address, status, header("content-type"), &bytes);
    }
}

/// What a collector's answer means.
fn answer(
    signal: OtlpSignal,
    address: &str,
    status: u16,
    content_type: &str,
    bytes: &[u8],
) -> Result<(), TelemetryError> {
    let address = address.to_owned();
    let name = signal.name();
    if !(200..=299).contains(&status) {
        let said = reason(content_type, bytes);
        let said = if said.is_empty() { said } else { format!(": {said}") };
        return Err(TelemetryError::Refused { address, signal: name, status, said });
    }
    let (rejected, said) = partial(signal, content_type, bytes).map_err(|why| TelemetryError::Nonsense {
        address: address.clone(),
        signal: name,
        why,
    })?;
    if rejected > 0 {
        let said = log_line(&said, 300);
        let said = if said.is_empty() { said } else { format!(": {said}") };
        return Err(TelemetryError::Partial { address, signal: name, rejected, said });
    }
    Ok(())
}

/// How many were refused, and why.
fn partial(signal: OtlpSignal, content_type: &str, bytes: &[u8]) -> Result<(i64, String), String> {
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok((0, String::new()));
    }
    match kind.as_str() {
        "application/x-protobuf" | "application/protobuf" => {
            let wrong = |error: prost::DecodeError| error.to_string();
            Ok(match signal {
                OtlpSignal::Traces => ExportTraceServiceResponse::decode(bytes)
                    .map_err(wrong)?
                    .partial_success
                    .map_or_else(Default::default, |some| (some.rejected_spans, some.error_message)),
                OtlpSignal::Logs => ExportLogsServiceResponse::decode(bytes)
                    .map_err(wrong)?
                    .partial_success
                    .map_or_else(Default::default, |some| (some.rejected_log_records, some.error_message)),
                OtlpSignal::Metrics => ExportMetricsServiceResponse::decode(bytes)
                    .map_err(wrong)?
                    .partial_success
                    .map_or_else(Default::default, |some| (some.rejected_data_points, some.error_message)),
            })
        }
        "application/json" => {
            let value: Value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
            let Some(some) = value.get("partialSuccess") else { return Ok((0, String::new())) };
            let count = ["rejectedSpans", "rejectedLogRecords", "rejectedDataPoints"]
                .into_iter()
                .find_map(|name| some.get(name))
                .and_then(|count| count.as_i64().or_else(|| count.as_str()?.parse().ok()));
            let said = some.get("errorMessage").and_then(Value::as_str).unwrap_or_default();
            Ok((count.unwrap_or(0), said.to_owned()))
        }
        "" => Ok((0, String::new())),
        other => Err(format!("it is {}", log_line(other, 60))),
    }
}

/// Why a request was refused: a status message of OTLP, or a plain text.
fn reason(content_type: &str, bytes: &[u8]) -> String {
    let bytes = bytes.get(..2_000).unwrap_or(bytes);
    if content_type.starts_with("application/json") {
        let value: Option<Value> = serde_json::from_slice(bytes).ok();
        let said = value.and_then(|value| {
            ["message", "detail", "error"]
                .iter()
                .find_map(|name| value.get(*name)?.as_str().map(str::to_owned))
        });
        return log_line(&said.unwrap_or_default(), 300);
    }
    if content_type.starts_with("text/plain") {
        return log_line(&String::from_utf8_lossy(bytes), 300);
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn otel_answers_that_are_no_success_say_where_and_what_to_do() {
        let proto = "application/x-protobuf";
        let partial = ExportTraceServiceResponse {
            partial_success: Some(
                opentelemetry_proto::tonic::collector::trace::v1::ExportTracePartialSuccess {
                    rejected_spans: 3,
                    error_message: "too old".to_owned(),
                },
            ),
        }
        .encode_to_vec();
        type Row<'a> = (u16, &'a str, &'a [u8], &'a str, &'a str);
        let rows: [Row<'_>; 12] = [
            (401, "", b"", "http://c answers 401 to traces", "OTEL_EXPORTER_OTLP_HEADERS"),
            (404, "text/html", b"<html>", "http://c answers 404 to traces", "before /v1/traces"),
            (413, "text/plain", b"too\nlarge", "answers 413 to traces: too large", "limit"),
            (415, "", b"", "415", "takes no protobuf"),
            (429, "application/json", br#"{"message":"slow down"}"#, "429 to traces: slow down", "later"),
            (500, "", b"", "500", "own log"),
            (503, "", b"", "503", "later"),
            (302, "", b"", "302", "not followed"),
            (200, "text/html", b"<html>", "no OTLP: it is text/html", "4318"),
            (200, proto, b"\xff\xff", "no OTLP", "4318"),
            (200, proto, &partial, "refused 3 of the traces: too old", "which and why"),
            (200, "application/json", br#"{"partialSuccess":{"rejectedSpans":"2"}}"#, "refused 2", "which"),
        ];
        for (status, kind, body, words, remedy) in rows {
            let error = answer(OtlpSignal::Traces, "http://c", status, kind, body).err();
            let shown = error.as_ref().map(ToString::to_string).unwrap_or_default();
            assert!(shown.contains(words), "{status} {kind}: {shown}");
            assert!(error.is_some_and(|error| error.remedy().contains(remedy)), "{status} {kind}");
        }
        let good: [(u16, &str, &[u8]); 5] = [
            (200, proto, b""),
            (202, "", b""),
            (200, "application/json", b"{}"),
            (200, "application/json", br#"{"partialSuccess":{}}"#),
            (200, "text/plain", b" "),
        ];
        for (status, kind, body) in good {
            assert!(answer(OtlpSignal::Logs, "http://c", status, kind, body).is_ok(), "{status} {kind}");
        }
    }
}
