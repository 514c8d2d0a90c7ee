//! Telemetry as the messages of OTLP, in the types that OpenTelemetry generates.

use archeflow_core::projections::telemetry::names::SCHEMA_URL;
use archeflow_core::projections::telemetry::{
    Attributes, HistogramPoint, MetricPoints, NumberPoint, Telemetry, TelemetryKind, TelemetryMetric,
    TelemetryRecord, TelemetrySeverity, TelemetrySpan, TelemetryValue,
};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics,
    ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status, span, status};
use prost::Message;

/// Spans, records or rows of numbers in one message, at most: collectors refuse what is too large.
const IN_ONE: usize = 200;

/// The trace is sampled, and it is known whether a parent is remote: it never is.
const FLAGS: u32 = 0x101;

/// One message, whichever signal it is of.
pub(super) enum OtlpMessage {
    Traces(ExportTraceServiceRequest),
    Logs(ExportLogsServiceRequest),
    Metrics(ExportMetricsServiceRequest),
}

impl OtlpMessage {
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            OtlpMessage::Traces(message) => message.encode_to_vec(),
            OtlpMessage::Logs(message) => message.encode_to_vec(),
            OtlpMessage::Metrics(message) => message.encode_to_vec(),
        }
    }

    /// The JSON of OTLP, which has ids in hexadecimal and large numbers as text.
    pub(super) fn json(&self) -> serde_json::Result<serde_json::Value> {
        match self {
            OtlpMessage::Traces(message) => serde_json::to_value(message),
            OtlpMessage::Logs(message) => serde_json::to_value(message),
            OtlpMessage::Metrics(message) => serde_json::to_value(message),
        }
    }
}

/// The messages of a run, traces first. `resource`: what the user calls the sender, besides what is known.
pub(super) fn messages(telemetry: &Telemetry, resource: &[(String, String)]) -> Vec<OtlpMessage> {
    let frame = Frame { telemetry, resource };
    let traces = telemetry.spans.chunks(IN_ONE).map(|spans| frame.traces(spans));
    let logs = telemetry.records.chunks(IN_ONE).map(|records| frame.logs(records));
    let metrics = telemetry.metrics.chunks(IN_ONE).map(|metrics| frame.metrics(metrics));
    traces.chain(logs).chain(metrics).collect()
}

struct Frame<'a> {
    telemetry: &'a Telemetry,
    resource: &'a [(String, String)],
}

impl Frame<'_> {
    /// A later name replaces an earlier one. The instance is the run: what is counted from its beginning is counted once.
    fn resource(&self) -> Option<Resource> {
        let mut all: Vec<(String, String)> = [
            ("service.name", "archeflow".to_owned()),
            ("service.version", self.telemetry.version.clone()),
            ("service.instance.id", self.telemetry.trace_text()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        for (name, value) in self.resource {
            all.retain(|(known, _)| known != name);
            all.push((name.clone(), value.clone()));
        }
        let attributes =
            all.into_iter().map(|(name, value)| key_value(&name, any_value::Value::StringValue(value)));
        Some(Resource { attributes: attributes.collect(), ..Resource::default() })
    }

    fn scope(&self) -> Option<InstrumentationScope> {
        Some(InstrumentationScope {
            name: "archeflow".to_owned(),
            version: self.telemetry.version.clone(),
            ..InstrumentationScope::default()
        })
    }

    fn traces(&self, spans: &[TelemetrySpan]) -> OtlpMessage {
        let spans = spans.iter().map(|span| self.span(span)).collect();
        let scope_spans = vec![ScopeSpans { scope: self.scope(), spans, schema_url: SCHEMA_URL.to_owned() }];
        let resource_spans =
            vec![ResourceSpans { resource: self.resource(), scope_spans, schema_url: SCHEMA_URL.to_owned() }];
        OtlpMessage::Traces(ExportTraceServiceRequest { resource_spans })
    }

    fn span(&self, span: &TelemetrySpan) -> Span {
        let kind = match span.kind {
            TelemetryKind::Internal => span::SpanKind::Internal,
            TelemetryKind::Client => span::SpanKind::Client,
        };
        let status = span
            .error
            .as_ref()
            .map(|error| Status { message: error.clone(), code: status::StatusCode::Error.into() });
        Span {
            trace_id: self.telemetry.trace.to_vec(),
            span_id: span.id.to_vec(),
            parent_span_id: span.parent.map(|id| id.to_vec()).unwrap_or_default(),
            flags: FLAGS,
            name: span.name.clone(),
            kind: kind.into(),
            start_time_unix_nano: span.began,
            end_time_unix_nano: span.ended,
            attributes: key_values(&span.attributes),
            status: Some(status.unwrap_or_default()),
            ..Span::default()
        }
    }

    fn logs(&self, records: &[TelemetryRecord]) -> OtlpMessage {
        let log_records = records.iter().map(|record| self.record(record)).collect();
        let scope_logs =
            vec![ScopeLogs { scope: self.scope(), log_records, schema_url: SCHEMA_URL.to_owned() }];
        let resource_logs =
            vec![ResourceLogs { resource: self.resource(), scope_logs, schema_url: SCHEMA_URL.to_owned() }];
        OtlpMessage::Logs(ExportLogsServiceRequest { resource_logs })
    }

    fn record(&self, record: &TelemetryRecord) -> LogRecord {
        let (number, text) = match record.severity {
            TelemetrySeverity::Info => (SeverityNumber::Info, "INFO"),
            TelemetrySeverity::Warn => (SeverityNumber::Warn, "WARN"),
        };
        LogRecord {
            time_unix_nano: record.at,
            observed_time_unix_nano: record.at,
            severity_number: number.into(),
            severity_text: text.to_owned(),
            // Lists of records show the body.
            body: Some(AnyValue { value: Some(any_value::Value::StringValue(record.name.clone())) }),
            attributes: key_values(&record.attributes),
            flags: 1,
            trace_id: self.telemetry.trace.to_vec(),
            span_id: record.span.to_vec(),
            event_name: record.name.clone(),
            ..LogRecord::default()
        }
    }

    fn metrics(&self, metrics: &[TelemetryMetric]) -> OtlpMessage {
        let metrics = metrics.iter().map(|metric| self.metric(metric)).collect();
        let scope_metrics =
            vec![ScopeMetrics { scope: self.scope(), metrics, schema_url: SCHEMA_URL.to_owned() }];
        let resource_metrics = vec![ResourceMetrics {
            resource: self.resource(),
            scope_metrics,
            schema_url: SCHEMA_URL.to_owned(),
        }];
        OtlpMessage::Metrics(ExportMetricsServiceRequest { resource_metrics })
    }

    fn metric(&self, metric: &TelemetryMetric) -> Metric {
        let (name, unit, description) = metric.name;
        let numbers = |points: &[NumberPoint]| points.iter().map(|point| self.number(point)).collect();
        let cumulative = AggregationTemporality::Cumulative.into();
        let data = match &metric.points {
            MetricPoints::Histogram { bounds, points } => metric::Data::Histogram(Histogram {
                data_points: points.iter().map(|point| self.histogram(point, bounds)).collect(),
                aggregation_temporality: cumulative,
            }),
            MetricPoints::Sum(points) => metric::Data::Sum(Sum {
                data_points: numbers(points),
                aggregation_temporality: cumulative,
                is_monotonic: true,
            }),
            MetricPoints::Gauge(points) => metric::Data::Gauge(Gauge { data_points: numbers(points) }),
        };
        Metric {
            name: name.to_owned(),
            description: description.to_owned(),
            unit: unit.to_owned(),
            data: Some(data),
            ..Metric::default()
        }
    }

    fn number(&self, point: &NumberPoint) -> NumberDataPoint {
        NumberDataPoint {
            attributes: key_values(&point.attributes),
            start_time_unix_nano: self.telemetry.began,
            time_unix_nano: self.telemetry.last,
            value: Some(number_data_point::Value::AsDouble(point.value)),
            ..NumberDataPoint::default()
        }
    }

    fn histogram(&self, point: &HistogramPoint, bounds: &[f64]) -> HistogramDataPoint {
        HistogramDataPoint {
            attributes: key_values(&point.attributes),
            start_time_unix_nano: self.telemetry.began,
            time_unix_nano: self.telemetry.last,
            count: point.count,
            sum: Some(point.sum),
            bucket_counts: point.buckets.clone(),
            explicit_bounds: bounds.to_vec(),
            min: Some(point.least),
            max: Some(point.most),
            ..HistogramDataPoint::default()
        }
    }
}

fn key_values(attributes: &Attributes) -> Vec<KeyValue> {
    let value = |value: &TelemetryValue| match value {
        TelemetryValue::Text(text) => any_value::Value::StringValue(text.clone()),
        TelemetryValue::Whole(number) => any_value::Value::IntValue(*number),
        TelemetryValue::Number(number) => any_value::Value::DoubleValue(*number),
    };
    attributes.iter().map(|(name, known)| key_value(name, value(known))).collect()
}

fn key_value(name: &str, value: any_value::Value) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
