//! Numbers about sprints and runs in the text format of Prometheus, version 0.0.4. No task, path or run is named; projects
//! of a sprint are.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::model::Money;
use crate::projections::board::{RunProgress, SprintBoard, SprintFacts};
use crate::sprint::budget;
use crate::text::short_line;

/// As an answer names the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is counted over all repositories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunCounts {
    pub repositories: usize,
    /// As their indexes say.
    pub by_status: BTreeMap<String, usize>,
    pub waiting: usize,
    pub running: usize,
    /// Of runs that wait or are under way.
    pub spent: Money,
}

/// The numbers of all runs.
pub fn runs(counts: &RunCounts) -> String {
    let mut text = PrometheusText::default();
    text.gauge("archeflow_repositories", "Repositories with runs.");
    text.sample(&[], whole(counts.repositories));
    text.gauge("archeflow_runs", "Runs by status.");
    for (status, count) in &counts.by_status {
        text.sample(&[("status", status)], whole(*count));
    }
    text.gauge("archeflow_runs_waiting", "Runs that wait for a person.");
    text.sample(&[], whole(counts.waiting));
    text.gauge("archeflow_runs_running", "Runs that a process drives.");
    text.sample(&[], whole(counts.running));
    text.gauge("archeflow_active_cost_usd", "Cost so far of runs that wait or are under way, in dollars.");
    text.sample(&[], dollars(counts.spent));
    text.out
}

/// The numbers of one sprint.
pub fn sprint(
    facts: SprintFacts<'_>,
    now: u64,
    look: impl FnMut(&str, &str) -> Option<RunProgress>,
) -> String {
    let SprintFacts { id, sprint, chronicle, driven } = facts;
    let board = SprintBoard::of(facts, now, look);
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &board.rows {
        *states.entry(row.state).or_default() += 1;
    }
    let all = budget::whole(sprint);
    let of = [("sprint", id)];
    let mut text = PrometheusText::default();
    text.gauge("archeflow_sprint_items", "Items of the sprint by state.");
    for (state, count) in states {
        text.sample(&[("sprint", id), ("state", state)], whole(count));
    }
    text.gauge("archeflow_sprint_driven", "1 while a process drives the sprint.");
    text.sample(&of, f64::from(u8::from(driven)));
    text.gauge("archeflow_sprint_ended", "1 once the sprint has ended.");
    text.sample(&of, f64::from(u8::from(sprint.end.is_some())));
    text.gauge("archeflow_sprint_failed_in_a_row", "Items that failed one after the other.");
    text.sample(&of, f64::from(sprint.streak));
    text.counter("archeflow_sprint_runs_total", "Runs that were started.");
    text.sample(&of, whole(chronicle.runs.len()));
    text.counter("archeflow_sprint_work_seconds_total", "Time that runs and landings took altogether.");
    text.sample(&of, sprint.work_ms as f64 / 1e3);
    text.counter("archeflow_sprint_cost_usd_total", "Cost of all runs, in dollars.");
    text.sample(&of, dollars(all.spent));
    text.gauge("archeflow_sprint_reserved_usd", "Reserved for runs under way, in dollars.");
    text.sample(&of, dollars(all.promised));
    if let Some(most) = all.most {
        text.gauge("archeflow_sprint_budget_usd", "Cost limit of the sprint, in dollars.");
        text.sample(&of, dollars(most));
    }
    let projects = budget::by_project(sprint);
    if !projects.is_empty() {
        text.counter("archeflow_sprint_project_cost_usd_total", "Cost of a project's runs, in dollars.");
        for (project, purse) in projects {
            text.sample(&[("sprint", id), ("project", project)], dollars(purse.spent));
        }
    }
    text.out
}

pub fn whole(count: usize) -> f64 {
    count as f64
}

pub fn dollars(money: Money) -> f64 {
    money.0 as f64 / 1e6
}

/// Metric after metric, each with its help, its type and its samples.
#[derive(Debug, Default)]
pub struct PrometheusText {
    out: String,
    name: &'static str,
}

impl PrometheusText {
    pub fn gauge(&mut self, name: &'static str, help: &str) {
        self.metric(name, "gauge", help);
    }

    pub fn counter(&mut self, name: &'static str, help: &str) {
        self.metric(name, "counter", help);
    }

    pub fn finish(self) -> String {
        self.out
    }

    fn metric(&mut self, name: &'static str, kind: &str, help: &str) {
        self.name = name;
        // Writing to a string can't fail.
        let _ = write!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    pub fn sample(&mut self, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", label(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(self.out, "{}{labels} {value}", self.name);
    }
}

/// A label's value, which others may have chosen.
fn label(value: &str) -> String {
    short_line(value, 120).replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn otel_prometheus_text_has_help_type_and_samples_in_their_order() {
        let mut counts = RunCounts { repositories: 2, waiting: 1, running: 3, ..RunCounts::default() };
        counts.spent = Money(1_250_000);
        counts.by_status.insert("merged".to_owned(), 12);
        counts.by_status.insert("st\"a\\t\nus".to_owned(), 1);
        let text = runs(&counts);
        let expected = "# HELP archeflow_repositories Repositories with runs.\n\
                        # TYPE archeflow_repositories gauge\n\
                        archeflow_repositories 2\n\
                        # HELP archeflow_runs Runs by status.\n\
                        # TYPE archeflow_runs gauge\n\
                        archeflow_runs{status=\"merged\"} 12\n\
                        archeflow_runs{status=\"st\\\"a\\\\t us\"} 1\n";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("\narcheflow_active_cost_usd 1.25\n"), "{text}");
    }
}
