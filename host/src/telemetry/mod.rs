//! Sends a run to a collector of OpenTelemetry, when a person asks for it and while the run is driven
//! (docs/telemetry.md). What is sent follows from the journal ([`archeflow_core::projections::telemetry`]).
//!
//! OTLP over HTTP with protobuf, by the program's own way to the network: no gRPC and no runtime of its own.

mod encode;
mod live;
mod send;
mod target;
pub(crate) mod tools;

use std::collections::BTreeMap;
use std::path::Path;

use archeflow_core::event::{AgentStart, Entry};
use archeflow_core::projections::telemetry::{Telemetry, TelemetryInputs};
use serde_json::Value;

use crate::store::names::valid_name;

pub use live::{LiveTelemetry, finish};
pub use send::{Sent, SentSignal, export};
pub use target::{OtlpSignal, OtlpTarget, resource};

/// Why nothing, or not everything, was sent. Addresses are shown without their path, headers never.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    #[error("there is no address to send telemetry to")]
    NoAddress,
    #[error("{from} {why}")]
    Address { from: String, why: String },
    #[error("{name} is not of the form name=value,name=value")]
    Headers { name: String },
    #[error("OTEL_EXPORTER_OTLP_PROTOCOL is `{protocol}`, and only http/protobuf is spoken here")]
    Protocol { protocol: String },
    #[error("{address} was not reached: {why}")]
    Unreachable { address: String, why: String },
    /// An answer that is no success.
    #[error("{address} answers {status} to {signal}{said}")]
    Refused { address: String, signal: &'static str, status: u16, said: String },
    #[error("{address} answers {signal} with what is no OTLP: {why}")]
    Nonsense { address: String, signal: &'static str, why: String },
    /// It took some and refused others.
    #[error("{address} refused {rejected} of the {signal}{said}")]
    Partial { address: String, signal: &'static str, rejected: i64, said: String },
    #[error("{0}")]
    Certificates(String),
}

impl TelemetryError {
    pub fn remedy(&self) -> &'static str {
        match self {
            TelemetryError::NoAddress => {
                "Name it: --to http://127.0.0.1:4318, OTEL_EXPORTER_OTLP_ENDPOINT, or telemetry.otlp in your own configuration"
            }
            TelemetryError::Address { .. } => {
                "Example: http://127.0.0.1:4318; v1/traces, v1/logs and v1/metrics are added"
            }
            TelemetryError::Headers { .. } => {
                "Example: OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer%20<key>'; write a comma as %2C"
            }
            TelemetryError::Protocol { .. } => {
                "Unset it or set it to http/protobuf, and use the collector's HTTP port, usually 4318"
            }
            TelemetryError::Unreachable { .. } => {
                "Is the collector running? OTLP over HTTP is usually on port 4318; 4317 is for gRPC"
            }
            TelemetryError::Refused { status, .. } => match status {
                300..=399 => {
                    "It redirects elsewhere, which is not followed: name the address it redirects to"
                }
                401 | 403 => "Set its key: OTEL_EXPORTER_OTLP_HEADERS='authorization=Bearer%20<key>'",
                404 | 405 => "Name the address before /v1/traces, e.g. http://127.0.0.1:4318",
                413 => "Raise the collector's limit for the size of a request",
                415 => "It takes no protobuf over HTTP: use a collector in between",
                429 | 502..=504 => "Try again later; what arrived already is not added twice",
                _ => "The collector's own log says more",
            },
            TelemetryError::Nonsense { .. } => {
                "Is this the address of a collector? OTLP over HTTP is usually on port 4318"
            }
            TelemetryError::Partial { .. } => "The collector's own log says which and why",
            TelemetryError::Certificates(_) => "Correct OTEL_EXPORTER_OTLP_CERTIFICATE or SSL_CERT_FILE",
        }
    }
}

/// The telemetry of a run, with the tools its agents used as far as their folders are still there.
pub fn of_run(run_id: &str, entries: &[Entry], artifacts: &Path, content: bool) -> Telemetry {
    let starts = entries.iter().filter_map(|entry| Some((entry.seq, entry.event.body::<AgentStart>()?)));
    // A journal can come with a repository.
    let starts = starts.filter(|(_, start)| valid_name(&start.archetype));
    let tools: BTreeMap<_, _> = starts
        .map(|(seq, start)| {
            (seq, tools::read(&artifacts.join("attempts").join(format!("{seq}-{}", start.archetype))))
        })
        .filter(|(_, used)| !used.is_empty())
        .collect();
    Telemetry::of(TelemetryInputs { run_id, entries, tools: &tools, content })
}

/// What would be sent, as the JSON of OTLP: `traces`, `logs` and `metrics`, each a list of messages.
pub fn as_json(telemetry: &Telemetry, resource: &[(String, String)]) -> Result<Value, serde_json::Error> {
    let mut lists = BTreeMap::from(OtlpSignal::ALL.map(|signal| (signal.name(), Vec::new())));
    for message in encode::messages(telemetry, resource) {
        let json = message.json()?;
        lists.entry(send::signal(&message).name()).or_default().push(json);
    }
    serde_json::to_value(lists)
}
