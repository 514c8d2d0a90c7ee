//! What is counted over a run: tokens, durations, cost, open findings.

use std::collections::BTreeMap;

use super::names::{self, DURATION_BOUNDS, TOKEN_BOUNDS, TelemetryName};
use super::steps::{AgentEnd, plain_name, provider, request_model};
use super::values::{Attributes, HistogramPoint, MetricPoints, NumberPoint, TelemetryMetric, dollars};
use super::word;
use crate::event::{AgentStart, CycleBoundary, Report};
use crate::model::{Money, Severity};

/// What tells one row of numbers from another.
type Key = Vec<(&'static str, String)>;

#[derive(Debug, Default)]
pub(super) struct Meter {
    tokens: BTreeMap<Key, Vec<f64>>,
    durations: BTreeMap<Key, Vec<f64>>,
    cost: BTreeMap<Key, Money>,
    findings: Option<[u32; 3]>,
}

impl Meter {
    pub(super) fn agent(&mut self, start: &AgentStart, report: &Report) {
        let Some(end) = AgentEnd::of(report) else { return };
        let key: Key = vec![
            (names::OPERATION.name, "invoke_agent".to_owned()),
            (names::PROVIDER.name, provider(start)),
            (names::REQUEST_MODEL.name, request_model(start)),
            (names::AGENT.name, plain_name(&start.archetype)),
        ];
        let with = |more: Option<(TelemetryName, &str)>| {
            let more = more.map(|(name, value)| (name.name, value.to_owned()));
            key.iter().cloned().chain(more).collect::<Key>()
        };
        if let Some(tokens) = end.tokens {
            for (kind, count) in [("input", tokens.input), ("output", tokens.output)] {
                let key = with(Some((names::TOKEN_TYPE, kind)));
                self.tokens.entry(key).or_default().push(count as f64);
            }
        }
        if let Some(ms) = end.duration_ms {
            let key = with(end.error.as_deref().map(|error| (names::ERROR, error)));
            self.durations.entry(key).or_default().push(ms as f64 / 1e3);
        }
        if let Some(cost) = end.cost {
            let source = end.source.map(|source| word(&source));
            let key = with(source.as_deref().map(|source| (names::COST_SOURCE, source)));
            let sum = self.cost.entry(key).or_default();
            *sum = sum.plus(cost);
        }
    }

    pub(super) fn boundary(&mut self, end: &CycleBoundary) {
        self.findings = Some([end.critical, end.warning, end.info]);
    }

    /// A metric without numbers is left out.
    pub(super) fn metrics(self, content: bool) -> Vec<TelemetryMetric> {
        let attributes = |key: Key| {
            let mut list = Attributes::new(content);
            for (name, value) in key {
                list = list.named(name, value);
            }
            list
        };
        let histogram = |name, bounds: &'static [f64], rows: BTreeMap<Key, Vec<f64>>| {
            let points: Vec<HistogramPoint> =
                rows.into_iter().map(|(key, values)| histogram(attributes(key), bounds, &values)).collect();
            (!points.is_empty())
                .then_some(TelemetryMetric { name, points: MetricPoints::Histogram { bounds, points } })
        };
        let cost: Vec<NumberPoint> = self
            .cost
            .into_iter()
            .map(|(key, cost)| NumberPoint { attributes: attributes(key), value: dollars(cost) })
            .collect();
        let findings = self.findings.map(|counts| {
            let severities = [Severity::Critical, Severity::Warning, Severity::Info];
            let points = severities.into_iter().zip(counts).map(|(severity, count)| NumberPoint {
                attributes: attributes(vec![(names::SEVERITY.name, severity.name().to_owned())]),
                value: f64::from(count),
            });
            TelemetryMetric { name: names::FINDINGS, points: MetricPoints::Gauge(points.collect()) }
        });
        let all = [
            histogram(names::TOKEN_USAGE, TOKEN_BOUNDS, self.tokens),
            histogram(names::DURATION, DURATION_BOUNDS, self.durations),
            (!cost.is_empty())
                .then_some(TelemetryMetric { name: names::RUN_COST, points: MetricPoints::Sum(cost) }),
            findings,
        ];
        all.into_iter().flatten().collect()
    }
}

/// A value on a bound counts below it.
fn histogram(attributes: Attributes, bounds: &[f64], values: &[f64]) -> HistogramPoint {
    let mut buckets = vec![0_u64; bounds.len() + 1];
    for value in values {
        let at = bounds.partition_point(|bound| bound < value);
        if let Some(bucket) = buckets.get_mut(at) {
            *bucket += 1;
        }
    }
    HistogramPoint {
        attributes,
        count: values.len() as u64,
        sum: values.iter().sum(),
        least: values.iter().copied().fold(f64::INFINITY, f64::min),
        most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        buckets,
    }
}
