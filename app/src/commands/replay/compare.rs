//! `archeflow replay compare`: runs side by side.

use archeflow_core::projections::replay::compare::{self, ComparedCycle, CycleSide, Parting, Side};
use archeflow_core::projections::replay::decision::{ExplainedDecision, verdict};
use archeflow_core::projections::replay::timeline;
use archeflow_core::projections::view;
use serde_json::{Value, json};

use crate::args::ReplayCompare;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{cut, pad, safe_line};

use super::{entries, outcome_json, paint, two_places};

/// One run with its column and its decisions.
struct Column {
    id: String,
    side: Side,
    decisions: Vec<ExplainedDecision>,
}

pub(super) fn run(args: &ReplayCompare) -> Result<CommandOutput, Failure> {
    let mut columns = Vec::new();
    for id in &args.ids {
        let (id, log) = entries(&args.place, Some(id))?;
        columns.push(Column { id, side: compare::side(&log), decisions: timeline::of(&log) });
    }
    if args.place.json {
        let runs: Vec<Value> = columns.iter().map(column_json).collect();
        let partings: Vec<Value> = partings(&columns).iter().map(parting_json).collect();
        return Ok(CommandOutput::json(json!({ "runs": runs, "first_differences": partings })));
    }
    Ok(CommandOutput::text(drawn(&columns)))
}

/// Where each run parts from the first one, if they had the same task.
fn partings(columns: &[Column]) -> Vec<(&Column, &Column, Option<Parting<'_>>)> {
    let Some((first, others)) = columns.split_first() else { return Vec::new() };
    let same_task = others.iter().filter(|other| other.side.task == first.side.task);
    same_task.map(|other| (first, other, compare::parting(&first.decisions, &other.decisions))).collect()
}

/// A column is at most so wide.
const WIDEST: usize = 44;

fn drawn(columns: &[Column]) -> String {
    let paint = paint();
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    let mut row = |what: &str, of: &dyn Fn(&Side) -> String| {
        rows.push((what.to_owned(), columns.iter().map(|column| of(&column.side)).collect()));
    };
    row("task", &|side| side.task.clone());
    row("workflow", &workflow);
    row("agents", &agents);
    row("attempts", &|side| side.attempts.to_string());
    row("cycles", &|side| format!("{} of {}", side.cycles.len(), side.max_cycles));
    let most = columns.iter().map(|column| column.side.cycles.len()).max().unwrap_or(0);
    for at in 0..most {
        let of = |tell: &dyn Fn(&CycleSide) -> String, side: &Side| {
            side.cycles.get(at).map_or_else(|| "-".to_owned(), tell)
        };
        let ends = |tell: &dyn Fn(&ComparedCycle) -> String, side: &Side| {
            of(&|cycle| cycle.end.as_ref().map_or_else(|| "not ended".to_owned(), tell), side)
        };
        let number = at + 1;
        row(&format!("cycle {number}: verdicts"), &|side| of(&verdicts, side));
        row("  findings", &|side| ends(&severities, side));
        row("  life", &|side| ends(&life, side));
        row("  convergence", &|side| ends(&convergence, side));
    }
    row("fixes", &|side| side.fixes.to_string());
    row("shadows", &shadows);
    row("cost", &|side| side.cost.shown());
    row("time", &|side| view::seconds(side.took_ms));
    row("outcome", &|side| {
        side.outcome.as_ref().map_or_else(
            || "not ended".to_owned(),
            |outcome| format!("{} ({})", outcome.status.name(), outcome.reason.name()),
        )
    });
    let widths: Vec<usize> =
        columns.iter().enumerate().map(|(at, column)| width(column, at, &rows)).collect();
    let names: Vec<String> = columns.iter().map(|column| column.id.clone()).collect();
    let mut out = String::new();
    put!(out, "{}", paint.bold(&written("", &names, &widths)));
    for (what, cells) in &rows {
        put!(out, "{}", written(what, cells, &widths));
    }
    for parting in partings(columns) {
        draw_parting(&mut out, &parting);
    }
    out
}

fn width(column: &Column, at: usize, rows: &[(String, Vec<String>)]) -> usize {
    let cells =
        rows.iter().filter_map(|(_, cells)| cells.get(at)).map(|cell| safe_line(cell).chars().count());
    cells.chain([column.id.chars().count()]).max().unwrap_or(0).min(WIDEST)
}

fn written(what: &str, cells: &[String], widths: &[usize]) -> String {
    let mut line = pad(what, 18);
    for (cell, width) in cells.iter().zip(widths) {
        line.push_str("  ");
        line.push_str(&pad(&cut(&safe_line(cell), *width), *width));
    }
    line.trim_end().to_owned()
}

fn workflow(side: &Side) -> String {
    view::label(side.strategy, side.workflow.name()).to_owned()
}

/// `all: claude (haiku, sonnet)`, or who differs.
fn agents(side: &Side) -> String {
    let mut programs: Vec<(&str, Vec<&str>)> = Vec::new();
    for (program, tier) in side.agents.values().flatten() {
        let program = program.rsplit('/').next().unwrap_or(program);
        match programs.iter_mut().find(|(known, _)| *known == program) {
            Some((_, tiers)) if tiers.contains(tier) => {}
            Some((_, tiers)) => tiers.push(tier),
            None => programs.push((program, vec![tier])),
        }
    }
    let told = programs.iter().map(|(program, tiers)| format!("{program} ({})", tiers.join(", ")));
    told.collect::<Vec<_>>().join("; ")
}

fn verdicts(cycle: &CycleSide) -> String {
    let told: Vec<String> =
        cycle.verdicts.iter().map(|(name, said)| format!("{name} {}", &verdict(*said)[..3])).collect();
    if told.is_empty() { "none".to_owned() } else { told.join(", ") }
}

fn severities(end: &ComparedCycle) -> String {
    format!("{} CRITICAL, {} WARNING, {} INFO", end.critical, end.warning, end.info)
}

fn life(end: &ComparedCycle) -> String {
    format!(
        "{} new, {} resolved, {} persistent, {} regressed",
        end.new, end.resolved, end.persistent, end.regressed
    )
}

fn convergence(end: &ComparedCycle) -> String {
    end.trend
        .map_or_else(|| "-".to_owned(), |(score, status)| format!("{} {}", status.name(), two_places(score)))
}

fn shadows(side: &Side) -> String {
    let told = side.shadows.iter().map(|(who, shadow, action)| format!("{who} {shadow} {action}"));
    let told: Vec<String> = told.collect();
    if told.is_empty() { "none".to_owned() } else { told.join(", ") }
}

fn draw_parting(out: &mut String, (first, other, parting): &(&Column, &Column, Option<Parting<'_>>)) {
    put!(out);
    let Some(parting) = parting else {
        put!(out, "{} and {} took the same decisions.", first.id, other.id);
        return;
    };
    let earlier = parting.one.or(parting.other);
    let place = earlier.map_or_else(String::new, |decision| match decision.cycle {
        0 => " before the first cycle".to_owned(),
        cycle => format!(" in cycle {cycle}, {}", view::capital(decision.phase.name())),
    });
    put!(out, "The same task; they part{place}:");
    for (column, decision) in [(first, parting.one), (other, parting.other)] {
        let told = decision.map_or_else(
            || "nothing of the kind".to_owned(),
            |one| format!("#{} {} {}: {}", one.seq, one.rule, one.who, one.decision),
        );
        put!(out, "  {}  {}", safe_line(&column.id), safe_line(&told));
    }
}

fn column_json(column: &Column) -> Value {
    let side = &column.side;
    let cycles: Vec<Value> = side.cycles.iter().map(cycle_json).collect();
    let agents: serde_json::Map<String, Value> = side
        .agents
        .iter()
        .map(|(name, played)| {
            let played = played.iter().map(|(agent, tier)| json!({ "agent": agent, "model": tier }));
            (name.clone(), Value::Array(played.collect()))
        })
        .collect();
    let shadows: Vec<Value> = side
        .shadows
        .iter()
        .map(|(who, shadow, action)| json!({ "archetype": who, "shadow": shadow, "action": action }))
        .collect();
    json!({
        "run_id": column.id, "task": side.task, "strategy": side.strategy.name(),
        "workflow": side.workflow.name(), "max_cycles": side.max_cycles, "agents": agents,
        "agents_total": side.attempts, "cycles": cycles, "fixes_total": side.fixes, "shadows": shadows,
        "cost_usd": side.cost, "duration_ms": side.took_ms, "outcome": outcome_json(side.outcome.as_ref()),
    })
}

fn cycle_json(cycle: &CycleSide) -> Value {
    let verdicts: serde_json::Map<String, Value> =
        cycle.verdicts.iter().map(|(name, said)| (name.clone(), verdict(*said).into())).collect();
    let mut object =
        json!({ "cycle": cycle.number, "verdicts": verdicts, "findings": null, "convergence": null });
    if let Some(end) = &cycle.end {
        object["findings"] = json!({
            "critical": end.critical, "warning": end.warning, "info": end.info, "new": end.new,
            "resolved": end.resolved, "persistent": end.persistent, "regressed": end.regressed,
        });
        object["convergence"] = end
            .trend
            .map_or(Value::Null, |(score, status)| json!({ "score": score, "status": status.name() }));
    }
    object
}

fn parting_json((first, other, parting): &(&Column, &Column, Option<Parting<'_>>)) -> Value {
    let told = |decision: Option<&ExplainedDecision>| {
        decision.map_or(Value::Null, |one| {
            json!({
                "seq": one.seq, "cycle": one.cycle, "phase": one.phase.name(), "rule": one.rule,
                "archetype": one.who, "decision": one.decision,
            })
        })
    };
    json!({
        "runs": [first.id, other.id], "same": parting.is_none(),
        "first": told(parting.as_ref().and_then(|parting| parting.one)),
        "other": told(parting.as_ref().and_then(|parting| parting.other)),
    })
}
