//! The parts of telemetry, as plain values.

use super::names::{MetricName, TelemetryName};
use crate::model::{Money, Seq};
use crate::strategies::agent_loop::rules::leaks::{LeakKind, leaks_in};
use crate::text::{safe, short_line, short_text};

pub type TraceId = [u8; 16];
pub type SpanId = [u8; 8];

/// The longest text that is sent.
const TEXT: usize = 4_000;
/// The longest name.
const NAME: usize = 120;

#[derive(Debug, Clone, PartialEq)]
pub enum TelemetryValue {
    Text(String),
    Whole(i64),
    Number(f64),
}

impl From<&str> for TelemetryValue {
    fn from(text: &str) -> TelemetryValue {
        TelemetryValue::Text(short_line(text, NAME))
    }
}

impl From<String> for TelemetryValue {
    fn from(text: String) -> TelemetryValue {
        text.as_str().into()
    }
}

impl From<u64> for TelemetryValue {
    fn from(number: u64) -> TelemetryValue {
        TelemetryValue::Whole(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for TelemetryValue {
    fn from(number: u32) -> TelemetryValue {
        TelemetryValue::Whole(number.into())
    }
}

impl From<i32> for TelemetryValue {
    fn from(number: i32) -> TelemetryValue {
        TelemetryValue::Whole(number.into())
    }
}

impl From<f64> for TelemetryValue {
    fn from(number: f64) -> TelemetryValue {
        TelemetryValue::Number(number)
    }
}

impl From<Money> for TelemetryValue {
    fn from(money: Money) -> TelemetryValue {
        TelemetryValue::Number(dollars(money))
    }
}

pub(super) fn dollars(money: Money) -> f64 {
    money.0 as f64 / 1e6
}

/// Words of a task, an agent or a person: bounded, without control characters, and without lines that hold a secret.
pub(super) struct QuotedWords<'a>(pub(super) &'a str);

impl From<QuotedWords<'_>> for TelemetryValue {
    fn from(said: QuotedWords<'_>) -> TelemetryValue {
        let lines = said.0.lines().map(|line| {
            let leaks = leaks_in("", line);
            let secret = leaks.into_iter().find(|leak| leak.class == LeakKind::Credential);
            secret.map_or_else(|| line.to_owned(), |leak| format!("[a line with a {}]", leak.kind))
        });
        let lines: Vec<String> = lines.collect();
        TelemetryValue::Text(short_text(&safe(&lines.join("\n")), TEXT))
    }
}

/// Attributes in the order in which they were added.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Attributes {
    /// Values that can hold content are taken, too.
    content: bool,
    list: Vec<(&'static str, TelemetryValue)>,
}

impl Attributes {
    pub(super) fn new(content: bool) -> Attributes {
        Attributes { content, list: Vec::new() }
    }

    /// The only way in: what can hold content is left out unless the user wants it sent.
    #[must_use]
    pub(super) fn with(mut self, name: TelemetryName, value: impl Into<TelemetryValue>) -> Attributes {
        if self.content || !name.content {
            self.list.push((name.name, value.into()));
        }
        self
    }

    #[must_use]
    pub(super) fn maybe(self, name: TelemetryName, value: Option<impl Into<TelemetryValue>>) -> Attributes {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Nothing for an empty text.
    #[must_use]
    pub(super) fn said(self, name: TelemetryName, text: &str) -> Attributes {
        if text.trim().is_empty() { self } else { self.with(name, QuotedWords(text)) }
    }

    /// A name of the table that holds no content.
    #[must_use]
    pub(super) fn named(mut self, name: &'static str, value: String) -> Attributes {
        self.list.push((name, value.into()));
        self
    }

    pub(super) fn sends_content(&self) -> bool {
        self.content
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &TelemetryValue)> {
        self.list.iter().map(|(name, value)| (*name, value))
    }

    pub fn get(&self, name: TelemetryName) -> Option<&TelemetryValue> {
        self.list.iter().find(|(known, _)| *known == name.name).map(|(_, value)| value)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TelemetryKind {
    Internal,
    /// It waits for another process or a service.
    Client,
}

/// Something that took time and is over.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetrySpan {
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub name: String,
    pub kind: TelemetryKind,
    /// Nanoseconds since 1970.
    pub began: u64,
    pub ended: u64,
    pub attributes: Attributes,
    /// What went wrong, in one word.
    pub error: Option<String>,
    /// The line of the journal that ended it.
    pub line: Seq,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TelemetrySeverity {
    Info,
    Warn,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryRecord {
    pub at: u64,
    pub name: String,
    pub severity: TelemetrySeverity,
    pub span: SpanId,
    pub attributes: Attributes,
    pub line: Seq,
}

#[derive(Debug, Clone, PartialEq)]
pub struct TelemetryMetric {
    pub name: MetricName,
    pub points: MetricPoints,
}

/// All count from the beginning of the run.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricPoints {
    Histogram { bounds: &'static [f64], points: Vec<HistogramPoint> },
    Sum(Vec<NumberPoint>),
    Gauge(Vec<NumberPoint>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct NumberPoint {
    pub attributes: Attributes,
    pub value: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct HistogramPoint {
    pub attributes: Attributes,
    pub count: u64,
    pub sum: f64,
    pub least: f64,
    pub most: f64,
    /// One more than there are bounds.
    pub buckets: Vec<u64>,
}
