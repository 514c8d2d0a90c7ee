//! `archeflow sprint report`: what a sprint did, as one document made from its log and the queue.

use archeflow_core::sprint::budget::{self, SprintBudget};
use archeflow_host::clock;
use archeflow_host::sprint::page::{self, PageFacts};
use serde_json::{Value, json};

use super::{place, projects, watch};
use crate::args::SprintReport;
use crate::commands::process_env;
use crate::failure::Failure;
use crate::output::{CommandOutput, to_file};
use crate::render::text::{safe, safe_json, safe_line};

pub(super) fn run(args: &SprintReport) -> Result<CommandOutput, Failure> {
    let place = place(&args.place)?;
    let projects = projects(&args.place, &place)?;
    let reading = watch::open(&place, args.id.as_deref())?;
    let queue = place.read()?;
    let facts =
        PageFacts { reading: &reading, queue: &queue, place: &place, projects: &projects, now: clock::now() };
    let text = if args.prometheus {
        watch::prometheus(&reading, &projects, facts.now)
    } else if args.place.json {
        format!("{}\n", safe_json(&object(&facts)))
    } else {
        safe(&page::report(&facts))
    };
    match &args.output {
        Some(path) => {
            let path = process_env()?.cwd.join(path);
            to_file(&path, text.as_bytes(), "archeflow sprint report")?;
            tell!("Report: {}", safe_line(&path.display().to_string()));
            Ok(CommandOutput::done())
        }
        None => Ok(CommandOutput::text(text)),
    }
}

fn object(facts: &PageFacts<'_>) -> Value {
    let (sprint, chronicle) = (&facts.reading.sprint, &facts.reading.chronicle);
    let mut known: Vec<_> = sprint
        .items
        .values()
        .filter(|known| {
            known.end.is_some() || known.fence.is_some() || chronicle.notes.contains_key(&known.item.id)
        })
        .collect();
    known.sort_by_key(|known| known.number);
    let items: Vec<Value> = known
        .into_iter()
        .map(|known| {
            let (item, end) = (&known.item, known.end.as_ref());
            json!({
                "id": item.id, "project": item.project, "task": item.task, "status": item.status,
                "state": known.stand.name(), "attempts": known.runs(), "note": chronicle.notes.get(&item.id),
                "run_id": end.map(|end| &end.run_id), "cycles": end.map(|end| end.cycles),
                "commit": end.and_then(|end| end.landed_as.as_ref()),
            })
        })
        .collect();
    let runs: Vec<Value> = chronicle
        .runs
        .iter()
        .map(|told| {
            json!({
                "item": told.item, "attempt": told.attempt, "run_id": told.run_id(&facts.reading.id), "began": clock::written(told.began),
                "ended": told.ended.map(clock::written), "took_ms": told.took_ms, "budget_usd": told.budget,
                "end": told.end,
            })
        })
        .collect();
    let checkpoints: Vec<Value> = chronicle
        .checkpoints
        .iter()
        .map(|point| {
            json!({
                "at": clock::written(point.at), "tasks": point.tasks, "work_ms": point.work_ms,
                "spent_usd": point.spent, "first": point.first, "last": point.last,
            })
        })
        .collect();
    let breaks: Vec<Value> = chronicle
        .breaks
        .iter()
        .map(|broke| {
            json!({ "at": clock::written(broke.at), "why": broke.why, "hard": broke.hard, "detail": broke.detail })
        })
        .collect();
    let projects: serde_json::Map<String, Value> =
        budget::by_project(sprint).into_iter().map(|(name, purse)| (name.to_owned(), money(purse))).collect();
    let (reason, detail) =
        sprint.end.as_ref().map_or((None, None), |(why, detail)| (Some(why.name()), Some(detail)));
    json!({
        "sprint_id": facts.reading.id, "began": clock::written(chronicle.began), "last": clock::written(chronicle.last),
        "driven": facts.reading.is_driven(), "reason": reason, "detail": detail, "items": items, "runs": runs,
        "checkpoints": checkpoints, "breaks": breaks, "sessions": chronicle.sessions.len(),
        "budget": { "all": money(budget::whole(sprint)), "projects": projects },
        "work_ms": sprint.work_ms, "needs": page::wants(facts),
    })
}

fn money(purse: SprintBudget) -> Value {
    json!({ "spent_usd": purse.spent, "promised_usd": purse.promised, "most_usd": purse.most })
}
