//! `archeflow score`: how reviewers have done lately, by archetype and tier.

use archeflow_core::model::Millionths;
use archeflow_core::rules::scoring::{self, Advice, LOOKED_AT, ScoreSummary};
use archeflow_host::scores;
use serde_json::json;

use crate::args::ScoreArgs;
use crate::commands::open_project;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{pad, safe_line};

pub(crate) fn run(args: &ScoreArgs) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.place, None, false)?;
    let found = scores::read(project.places.root())?;
    let mut records = found.records();
    if let Some(wanted) = &args.archetype {
        records.retain(|record| record.archetype == *wanted);
    }
    let standings = scoring::report(&records);
    if args.place.json {
        let all: Vec<serde_json::Value> = standings.iter().map(shown).collect();
        return Ok(CommandOutput::json(
            json!({ "scores": all, "runs_needed": LOOKED_AT, "unreadable_lines": found.skipped }),
        ));
    }
    if standings.is_empty() {
        let none = "No reviewer has been scored here yet. Scores are written when a run ends.\n";
        return Ok(CommandOutput::text(none.to_owned()));
    }
    let mut out = String::new();
    put!(
        out,
        "{}  {}  {}  {}  {}  {}",
        pad("ARCHETYPE", 10),
        pad("MODEL", 6),
        pad("RUNS", 4),
        pad("SCORE", 5),
        pad("SIGNAL", 6),
        "TREND"
    );
    for standing in &standings {
        put!(
            out,
            "{}  {}  {}  {}  {}  {}",
            pad(&safe_line(&standing.archetype), 10),
            pad(standing.model.name(), 6),
            pad(&standing.runs.to_string(), 4),
            pad(&decimal(standing.mean), 5),
            pad(&decimal(standing.signal), 6),
            standing.trend.map_or("-", scoring::Course::name)
        );
        advice(&mut out, standing);
    }
    Ok(CommandOutput::text(out))
}

/// CL-29: both readings, and which of them is ours.
fn advice(out: &mut String, standing: &ScoreSummary) {
    let Some(Advice { value, upgrade, promote }) = standing.advice else {
        put!(out, "            no advice before {LOOKED_AT} runs; {} so far", standing.runs);
        return;
    };
    put!(out, "            {}", value.name().replace('_', " "));
    if let Some(tier) = upgrade {
        put!(out, "            recommended: the score is low, try it on {}", tier.name());
    }
    if let Some(tier) = promote {
        put!(
            out,
            "            the founding text's reading: the signal is high, promote it to {}",
            tier.name()
        );
    }
}

fn shown(standing: &ScoreSummary) -> serde_json::Value {
    let advice = standing.advice.map(|advice| {
        json!({
            "recommendation": advice.value.name(),
            "low_score_try": advice.upgrade,
            "high_signal_promote": advice.promote,
        })
    });
    json!({
        "archetype": standing.archetype, "model": standing.model, "runs": standing.runs,
        "composite_score": archeflow_core::model::Share(standing.mean),
        "signal_to_noise": archeflow_core::model::Share(standing.signal),
        "trend": standing.trend.map(scoring::Course::name), "advice": advice,
    })
}

/// Two places, rounded down.
fn decimal(score: Millionths) -> String {
    format!("{}.{:02}", score / 1_000_000, score % 1_000_000 / 10_000)
}
