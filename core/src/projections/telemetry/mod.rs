//! A run as OpenTelemetry sees it: spans, log records and metrics, computed from its journal (docs/decisions/084).
//!
//! Plain values; the host encodes and sends them. Ids and times follow from the journal, so the same line gives the same
//! span however often it is sent. A span is here once it is over: what was sent never changes.

mod metrics;
pub mod names;
mod records;
mod steps;
mod values;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::digest::sha256;
use crate::event::{
    AgentLost, AgentStart, CycleBoundary, Entry, Event, Order, PhaseTransition, Report, ReviewVerdict,
    RunComplete, RunStart, SessionStart,
};
use crate::model::{RunStatus, Seq, Strategy};

pub use values::{
    Attributes, HistogramPoint, MetricPoints, NumberPoint, SpanId, TelemetryKind, TelemetryMetric,
    TelemetryRecord, TelemetrySeverity, TelemetrySpan, TelemetryValue, TraceId,
};

/// One use of a tool by an agent, as its client reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolUse {
    pub id: String,
    pub name: String,
    /// Milliseconds since 1970.
    pub began: u64,
    pub ended: Option<u64>,
    pub failed: bool,
}

/// What is sent about a run.
#[derive(Clone, Copy)]
pub struct TelemetryInputs<'a> {
    pub run_id: &'a str,
    pub entries: &'a [Entry],
    /// By the line of the agent's start.
    pub tools: &'a BTreeMap<Seq, Vec<ToolUse>>,
    /// Task, paths and words of agents and people are sent, too.
    pub content: bool,
}

/// A run up to its last line.
#[derive(Debug, Clone, PartialEq)]
pub struct Telemetry {
    pub trace: TraceId,
    /// Without the words of the task that are in a run's id.
    pub run: String,
    /// The release that wrote the first line.
    pub version: String,
    /// By the line that ended them.
    pub spans: Vec<TelemetrySpan>,
    pub records: Vec<TelemetryRecord>,
    pub metrics: Vec<TelemetryMetric>,
    /// Spans that are not over and so not here, the run's own included.
    pub open: usize,
    /// The times of the first and the last line, in nanoseconds.
    pub began: u64,
    pub last: u64,
    /// The number of the last line.
    pub line: Seq,
}

impl Telemetry {
    pub fn of(inputs: TelemetryInputs<'_>) -> Telemetry {
        let mut fold = Fold::new(inputs);
        for (entry, at) in inputs.entries.iter().zip(times(inputs.entries)) {
            fold.take(entry, at);
        }
        fold.done()
    }

    /// Only what is new after this line. Metrics count from the beginning in any case.
    #[must_use]
    pub fn after(mut self, line: Seq) -> Telemetry {
        self.spans.retain(|span| span.line > line);
        self.records.retain(|record| record.line > line);
        self
    }

    pub fn trace_text(&self) -> String {
        hex(&self.trace)
    }
}

/// Each line's time in nanoseconds, and a microsecond after the line before if the clock does not say more: journals had
/// whole seconds once, and clocks are set back.
pub fn times(entries: &[Entry]) -> Vec<u64> {
    let mut last = 0_u64;
    let next = |entry: &Entry| {
        last = entry.at.saturating_mul(1_000_000).max(last.saturating_add(1_000));
        last
    };
    entries.iter().map(next).collect()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The first bytes of a digest. All zeros mean "none" to OpenTelemetry.
fn id<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let digest = sha256(&parts.join(&0_u8));
    let mut id = [0; N];
    for (to, from) in id.iter_mut().zip(digest) {
        *to = from;
    }
    if id == [0; N]
        && let Some(last) = id.last_mut()
    {
        *last = 1;
    }
    id
}

/// As a journal writes an enum: the word, or the name of the variant that holds more.
fn word(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(text)) => text,
        Ok(serde_json::Value::Object(fields)) => fields.keys().next().cloned().unwrap_or_default(),
        Ok(_) | Err(_) => String::new(),
    }
}

/// A span that is not over.
#[derive(Debug, Clone)]
struct Begun {
    id: SpanId,
    parent: Option<SpanId>,
    name: String,
    kind: TelemetryKind,
    at: u64,
    attributes: Attributes,
    /// An agent, for its metrics.
    agent: Option<Box<AgentStart>>,
}

struct Fold<'a> {
    inputs: TelemetryInputs<'a>,
    trace: TraceId,
    run: String,
    request: Option<&'a RunStart>,
    spans: Vec<TelemetrySpan>,
    records: Vec<TelemetryRecord>,
    metrics: metrics::Meter,
    /// The run, from its first line or from the line that made an ended run go on.
    part: Option<Begun>,
    parts: u32,
    root: Option<SpanId>,
    phase: Option<Begun>,
    orders: BTreeMap<Seq, Begun>,
    /// Of agents, by the line of their start: a verdict names that line.
    agents: BTreeMap<Seq, SpanId>,
    cycle: u32,
    began: u64,
    last: u64,
    line: Seq,
    /// When the session before the present one wrote its last line, and when the present one began.
    sessions: Option<(u64, u64)>,
}

impl<'a> Fold<'a> {
    fn new(inputs: TelemetryInputs<'a>) -> Fold<'a> {
        let first = inputs.entries.first();
        let request = first.and_then(|entry| entry.event.body::<RunStart>());
        let at = first.map_or(0, |entry| entry.at).to_be_bytes();
        let base = request.map_or("", |request| request.base.commit.as_str());
        let trace = id(&[b"archeflow run", inputs.run_id.as_bytes(), &at, base.as_bytes()]);
        // The date stays readable.
        let date = inputs.run_id.get(..10).filter(|date| {
            date.chars()
                .enumerate()
                .all(|(n, c)| if n == 4 || n == 7 { c == '-' } else { c.is_ascii_digit() })
        });
        let digest = hex(&trace).chars().take(8).collect::<String>();
        let run = date.map_or_else(|| digest.clone(), |date| format!("{date}-{digest}"));
        Fold {
            inputs,
            trace,
            run,
            request,
            spans: Vec::new(),
            records: Vec::new(),
            metrics: metrics::Meter::default(),
            part: None,
            parts: 0,
            root: None,
            phase: None,
            orders: BTreeMap::new(),
            agents: BTreeMap::new(),
            cycle: 0,
            began: 0,
            last: 0,
            line: 0,
            sessions: None,
        }
    }

    fn take(&mut self, entry: &'a Entry, at: u64) {
        if self.line == 0 {
            self.began = at;
        }
        if self.part.is_none() {
            self.begin_part(entry.seq, at);
        }
        if entry.event.body::<SessionStart>().is_some() {
            self.sessions = Some((self.last, at));
        }
        let answered = entry.event.answers().and_then(|order| Some((order, self.orders.remove(&order)?)));
        if let Event::Order(order) = &entry.event {
            self.begin_order(entry, order, at);
        } else if let Some(to) = entry.event.body::<PhaseTransition>() {
            self.begin_phase(entry.seq, to, at);
        } else if let Some(complete) = entry.event.body::<RunComplete>() {
            self.end_part(entry.seq, complete, at);
        } else if let (Event::Report(report), Some((order, begun))) = (&entry.event, answered) {
            self.end_order(entry, order, begun, report, at);
        } else {
            self.record(entry, at);
        }
        self.last = at;
        self.line = entry.seq;
    }

    fn attributes(&self) -> Attributes {
        Attributes::new(self.inputs.content).with(names::RUN_ID, self.run.as_str())
    }

    fn span_id(&self, what: &str, seq: Seq, more: u64) -> SpanId {
        id(&[&self.trace, what.as_bytes(), &seq.to_be_bytes(), &more.to_be_bytes()])
    }

    /// What the next span belongs to.
    fn around(&self) -> Option<SpanId> {
        self.phase.as_ref().or(self.part.as_ref()).map(|begun| begun.id)
    }

    fn begin_part(&mut self, seq: Seq, at: u64) {
        self.parts += 1;
        let workflow = self.request.map_or("run", |request| match request.strategy {
            Strategy::Pdca | Strategy::Pipeline => request.workflow.name(),
            Strategy::Review | Strategy::Loop => request.strategy.name(),
        });
        let mut attributes = self
            .attributes()
            .with(names::OPERATION, "invoke_workflow")
            .with(names::WORKFLOW, workflow)
            .with(names::RUN_PART, self.parts)
            .said(names::RUN_NAME, self.inputs.run_id);
        if let Some(request) = self.request {
            attributes = attributes
                .with(names::STRATEGY, request.strategy.name())
                .said(names::TASK, &request.task)
                .said(names::BRANCH, &request.branch);
        }
        let begun = Begun {
            id: self.span_id("run", seq, 0),
            parent: self.root,
            name: format!("invoke_workflow {workflow}"),
            kind: TelemetryKind::Internal,
            at,
            attributes,
            agent: None,
        };
        self.root.get_or_insert(begun.id);
        self.part = Some(begun);
    }

    fn begin_phase(&mut self, seq: Seq, to: &PhaseTransition, at: u64) {
        self.end_phase(seq, at);
        self.cycle = to.cycle;
        let attributes = self.attributes().with(names::PHASE, to.to.name()).with(names::CYCLE, to.cycle);
        self.phase = Some(Begun {
            id: self.span_id("phase", seq, 0),
            parent: self.part.as_ref().map(|part| part.id),
            name: to.to.name().to_owned(),
            kind: TelemetryKind::Internal,
            at,
            attributes,
            agent: None,
        });
    }

    fn end_phase(&mut self, seq: Seq, at: u64) {
        if let Some(phase) = self.phase.take() {
            self.end(phase, |attributes| (attributes, None), at, seq);
        }
    }

    fn end_part(&mut self, seq: Seq, complete: &RunComplete, at: u64) {
        self.end_phase(seq, at);
        let Some(part) = self.part.take() else { return };
        let failed = (complete.status == RunStatus::Failed).then(|| complete.reason.name().to_owned());
        let more = |attributes: Attributes| {
            let attributes = attributes
                .with(names::STATUS, complete.status.name())
                .with(names::REASON, complete.reason.name())
                .with(names::EXIT_CODE, u32::from(complete.exit_code))
                .with(names::CYCLES, complete.cycles)
                .with(names::AGENTS, complete.agents_total)
                .said(names::DETAIL, &complete.detail);
            (attributes, failed)
        };
        self.end(part, more, at, seq);
    }

    fn begin_order(&mut self, entry: &Entry, order: &Order, at: u64) {
        let cycle = if self.cycle > 0 { Some(self.cycle) } else { None };
        let shared = self.attributes().with(names::PHASE, entry.phase.name()).maybe(names::CYCLE, cycle);
        let Some(begun) = steps::begun(order, shared) else { return };
        let (name, kind, attributes) = begun;
        let agent = if let Order::AgentStart(start) = order { Some(start.clone()) } else { None };
        let begun = Begun {
            id: self.span_id("order", entry.seq, 0),
            parent: self.around(),
            name,
            kind,
            at,
            attributes,
            agent,
        };
        self.orders.insert(entry.seq, begun);
    }

    fn end_order(&mut self, entry: &Entry, order: Seq, begun: Begun, report: &Report, at: u64) {
        // The program died while it ran: it was over before the session that found it.
        let at = match self.sessions.filter(|_| report.body::<AgentLost>().is_some()) {
            Some((before, since)) if begun.at < since => before.max(begun.at),
            Some(_) | None => at,
        };
        let more = |attributes| steps::ended(report, attributes);
        if let Some(start) = &begun.agent {
            self.agents.insert(order, begun.id);
            self.metrics.agent(start, report);
            self.tools(order, &begun, at, entry.seq);
        }
        self.end(begun, more, at, entry.seq);
    }

    fn tools(&mut self, order: Seq, agent: &Begun, ended: u64, line: Seq) {
        let Some(tools) = self.inputs.tools.get(&order) else { return };
        let mut last = agent.at;
        for (n, tool) in tools.iter().enumerate() {
            let began = tool.began.saturating_mul(1_000_000).max(last.saturating_add(1_000)).min(ended);
            last = began;
            let over = tool.ended.map_or(ended, |at| at.saturating_mul(1_000_000)).clamp(began, ended);
            let begun = Begun {
                id: self.span_id("tool", order, n as u64),
                parent: Some(agent.id),
                name: format!("execute_tool {}", steps::plain_name(&tool.name)),
                kind: TelemetryKind::Internal,
                at: began,
                attributes: self
                    .attributes()
                    .with(names::OPERATION, "execute_tool")
                    .with(names::TOOL, steps::plain_name(&tool.name))
                    .with(names::TOOL_CALL, steps::plain_name(&tool.id)),
                agent: None,
            };
            let error = tool.failed.then(|| "tool_error".to_owned());
            self.end(begun, |attributes| (attributes, error), over, line);
        }
    }

    fn end(
        &mut self,
        begun: Begun,
        more: impl FnOnce(Attributes) -> (Attributes, Option<String>),
        at: u64,
        line: Seq,
    ) {
        let (attributes, error) = more(begun.attributes);
        let attributes = attributes.maybe(names::ERROR, error.clone());
        self.spans.push(TelemetrySpan {
            id: begun.id,
            parent: begun.parent,
            name: begun.name,
            kind: begun.kind,
            began: begun.at,
            ended: at.max(begun.at),
            attributes,
            error,
            line,
        });
    }

    fn record(&mut self, entry: &Entry, at: u64) {
        let Some((name, severity, attributes)) = records::of(entry, self.attributes()) else { return };
        if let Some(boundary) = entry.event.body::<CycleBoundary>() {
            self.metrics.boundary(boundary);
        }
        let agent = entry
            .event
            .body::<ReviewVerdict>()
            .and_then(|_| entry.parent.iter().rev().find_map(|line| self.agents.get(line).copied()));
        let Some(span) = agent.or(self.part.as_ref().map(|part| part.id)) else { return };
        let uid = hex(&id::<16>(&[&self.trace, b"record", &entry.seq.to_be_bytes()]));
        let attributes = attributes
            .with(names::SEQ, entry.seq)
            .with(names::PHASE, entry.phase.name())
            .with(names::RECORD_ID, uid);
        self.records.push(TelemetryRecord { at, name, severity, span, attributes, line: entry.seq });
    }

    fn done(self) -> Telemetry {
        let open = usize::from(self.part.is_some()) + usize::from(self.phase.is_some()) + self.orders.len();
        Telemetry {
            trace: self.trace,
            run: self.run,
            version: self.request.map(|request| request.version.clone()).unwrap_or_default(),
            spans: self.spans,
            records: self.records,
            metrics: self.metrics.metrics(self.inputs.content),
            open,
            began: self.began,
            last: self.last,
            line: self.line,
        }
    }
}
