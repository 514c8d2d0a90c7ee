//! `archeflow replay timeline`: every decision in order.

use std::collections::BTreeMap;

use archeflow_core::event::{Decision, Entry, Event};
use archeflow_core::model::Phase;
use archeflow_core::projections::replay::decision::ExplainedDecision;
use archeflow_core::projections::replay::timeline;
use archeflow_core::projections::view;
use archeflow_core::run::Run;
use archeflow_host::clock;
use serde_json::json;

use crate::args::ReplayTimeline;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{Paint, pad, safe_line};

use super::{ended, entries, paint, two_places};

pub(super) fn run(args: &ReplayTimeline) -> Result<CommandOutput, Failure> {
    let (id, log) = entries(&args.place, args.id.as_deref())?;
    let decisions = timeline::of(&log);
    if args.place.json {
        let all: Vec<serde_json::Value> = decisions.iter().map(shown).collect();
        return Ok(CommandOutput::json(json!({ "run_id": id, "decisions": all })));
    }
    Ok(CommandOutput::text(drawn(&id, &log, &decisions)))
}

fn shown(decision: &ExplainedDecision) -> serde_json::Value {
    json!({
        "seq": decision.seq, "ts": clock::written(decision.at), "cycle": decision.cycle,
        "phase": decision.phase.name(), "rule": decision.rule, "archetype": decision.who,
        "confidence": decision.confidence, "input": decision.input, "decision": decision.decision,
        "alternatives": decision.alternatives, "rationale": decision.rationale,
    })
}

/// Where the words of a decision begin.
const INDENT: usize = 43;

fn drawn(id: &str, log: &[Entry], decisions: &[ExplainedDecision]) -> String {
    let (paint, run) = (paint(), Run::replay(log));
    let (title, second) = view::header(&run);
    let took = view::seconds(run.last.saturating_sub(run.began));
    let mut lines = vec![
        paint.bold(&safe_line(&title)),
        format!("Run ID: {id} | {}", safe_line(&second)),
        format!("Began: {} | Took: {took}", clock::written(run.began)),
        String::new(),
        paint.dim("  LINE  TIME      RULE    SURE  WHO        DECISION, and what it looked at"),
    ];
    let (trends, mut last) = (trends(log), None);
    for decision in decisions {
        let place = (decision.cycle, decision.phase);
        if last.replace(place) != Some(place) {
            lines.push(paint.bold(&heading(&trends, decision)));
        }
        line(paint, decision, &mut lines);
    }
    lines.push(String::new());
    lines.push(safe_line(&ended(run.outcome.as_ref())));
    format!("{}\n", lines.join("\n"))
}

/// How each cycle's findings moved, from the second one on.
fn trends(log: &[Entry]) -> BTreeMap<u32, String> {
    let mut trends = BTreeMap::new();
    for entry in log {
        if let Event::Decision(Decision::CycleBoundary(boundary)) = &entry.event
            && let Some(trend) = &boundary.convergence
        {
            trends.insert(boundary.cycle, format!("{} {}", trend.status.name(), two_places(trend.score)));
        }
    }
    trends
}

fn heading(trends: &BTreeMap<u32, String>, decision: &ExplainedDecision) -> String {
    if decision.cycle == 0 {
        return "Before the first cycle".to_owned();
    }
    let trend = trends.get(&decision.cycle).filter(|_| decision.phase == Phase::Act);
    let trend = trend.map(|trend| format!(": {trend}")).unwrap_or_default();
    format!("Cycle {}, {}{trend}", decision.cycle, view::capital(decision.phase.name()))
}

fn line(paint: Paint, decision: &ExplainedDecision, lines: &mut Vec<String>) {
    let time = clock::written(decision.at);
    let time = time.get(11..19).unwrap_or_default();
    let sure = decision.confidence.map(two_places).unwrap_or_default();
    lines.push(format!(
        "{}  {time}  {}  {}  {}  {}",
        paint.dim(&format!("{:>6}", format!("#{}", decision.seq))),
        paint.accent(&pad(&safe_line(&decision.rule), 6)),
        pad(&sure, 4),
        pad(&safe_line(&decision.who), 9),
        safe_line(&decision.decision)
    ));
    if !decision.input.is_empty() {
        lines.push(format!("{}{}", " ".repeat(INDENT), paint.dim(&safe_line(&decision.input))));
    }
    if !decision.alternatives.is_empty() {
        let text = format!("instead of: {}", safe_line(&decision.alternatives.join("; ")));
        lines.push(format!("{}{}", " ".repeat(INDENT), paint.dim(&text)));
    }
}
