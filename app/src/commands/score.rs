//! `archeflow score`: how reviewers have done lately, by archetype and tier.

use std::process::ExitCode;

use archeflow_core::model::Millionths;
use archeflow_core::rules::scoring::{self, Advice, LOOKED_AT, ScoreSummary};
use archeflow_host::scores;
use serde_json::json;

use crate::args::ScoreArgs;
use crate::commands::{house, print_json};
use crate::failure::Failure;
use crate::render::text::{pad, safe_line};

pub(crate) fn run(args: &ScoreArgs) -> Result<ExitCode, Failure> {
    let house = house(&args.place, None, false)?;
    let found = scores::read(house.places.root())?;
    let mut records = found.records();
    if let Some(wanted) = &args.archetype {
        records.retain(|record| record.archetype == *wanted);
    }
    let standings = scoring::report(&records);
    if args.place.json {
        let all: Vec<serde_json::Value> = standings.iter().map(shown).collect();
        print_json(&json!({ "scores": all, "runs_needed": LOOKED_AT, "unreadable_lines": found.skipped }));
        return Ok(ExitCode::SUCCESS);
    }
    if standings.is_empty() {
        out!("No reviewer has been scored here yet. Scores are written when a run ends.");
        return Ok(ExitCode::SUCCESS);
    }
    out!(
        "{}  {}  {}  {}  {}  {}",
        pad("ARCHETYPE", 10),
        pad("MODEL", 6),
        pad("RUNS", 4),
        pad("SCORE", 5),
        pad("SIGNAL", 6),
        "TREND"
    );
    for standing in &standings {
        out!(
            "{}  {}  {}  {}  {}  {}",
            pad(&safe_line(&standing.archetype), 10),
            pad(standing.model.name(), 6),
            pad(&standing.runs.to_string(), 4),
            pad(&decimal(standing.mean), 5),
            pad(&decimal(standing.signal), 6),
            standing.trend.map_or("-", scoring::Course::name)
        );
        advice(standing);
    }
    Ok(ExitCode::SUCCESS)
}

/// CL-29: both readings, and which of them is ours.
fn advice(standing: &ScoreSummary) {
    let Some(Advice { value, upgrade, promote }) = standing.advice else {
        out!("            no advice before {LOOKED_AT} runs; {} so far", standing.runs);
        return;
    };
    out!("            {}", value.name().replace('_', " "));
    if let Some(tier) = upgrade {
        out!("            recommended: the score is low, try it on {}", tier.name());
    }
    if let Some(tier) = promote {
        out!("            the founding text's reading: the signal is high, promote it to {}", tier.name());
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
