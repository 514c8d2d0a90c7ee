//! `archeflow loop metrics`: figures over all loops of a repository, with their goals (PJ-64..PJ-68).

use archeflow_core::model::{LoopPolicy, counted};
use archeflow_core::projections::view::{Tone, seconds};
use archeflow_core::strategies::agent_loop::rules::metrics::{Light, Tally};
use archeflow_host::agent_loop::figures::{self, Figures};
use archeflow_host::config::Flags;
use serde_json::{Value, json};

use crate::args::LoopPlace;
use crate::commands::open_project;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::{Paint, pad};

pub(super) fn run(args: &LoopPlace) -> Result<CommandOutput, Failure> {
    let project = open_project(&args.place, None, false)?;
    let policy = project.settings(&Flags::default(), args.place.config.as_deref())?.looping();
    let figures = figures::of(&project.places);
    Ok(match args.place.json {
        true => CommandOutput::json(object(&figures, &policy)),
        false => CommandOutput::text(drawn(&figures, &policy)),
    })
}

/// Name, value, goal and light.
type Row = (&'static str, String, String, Light);

fn rows(tally: Tally, policy: &LoopPolicy) -> [Row; 4] {
    let goals = &policy.goals;
    let judged = tally.passes.saturating_add(tally.insufficient);
    let latency = tally.approval_latency().map_or("-".to_owned(), seconds);
    [
        (
            "iterations per cycle",
            tenths(tally.iterations, tally.cycles()),
            format!("at most {}", goals.iterations),
            tally.iterations(policy),
        ),
        (
            "PASS among verdicts",
            percent(tally.passes, judged),
            format!("at least {} %", goals.pass_rate),
            tally.pass_rate(policy),
        ),
        (
            "cycles that paused",
            percent(tally.paused, tally.cycles()),
            format!("less than {} %", goals.pause_rate),
            tally.pause_rate(policy),
        ),
        ("PASS to approval", latency, "-".to_owned(), Light::Dark),
    ]
}

/// One digit behind the point, rounded down; a display, nothing is decided by it.
fn tenths(all: u32, by: u32) -> String {
    match (u64::from(all) * 10).checked_div(u64::from(by)) {
        Some(tenths) => format!("{}.{}", tenths / 10, tenths % 10),
        None => "-".to_owned(),
    }
}

fn percent(part: u32, all: u32) -> String {
    (u64::from(part) * 100)
        .checked_div(u64::from(all))
        .map_or("-".to_owned(), |percent| format!("{percent} %"))
}

fn drawn(figures: &Figures, policy: &LoopPolicy) -> String {
    let mut out = String::new();
    let (paint, tally) = (Paint::for_stdout(), figures.tally);
    put!(out, "{} {} {} light", pad("figure", 22), pad("value", 9), pad("goal", 14));
    for (name, value, goal, light) in rows(tally, policy) {
        let shown = match light {
            Light::Green => paint.tone(Tone::Good, light.name()),
            Light::Red => paint.tone(Tone::Bad, light.name()),
            Light::Dark => light.name().to_owned(),
        };
        put!(out, "{} {} {} {shown}", pad(name, 22), pad(&value, 9), pad(&goal, 14));
    }
    let of = |n: u32| format!("{n} ({})", percent(n, tally.cycles()));
    put!(out);
    put!(
        out,
        "{} ended: {} landed, {} incomplete, {} failed; {} open",
        counted(tally.cycles(), "cycle"),
        of(tally.succeeded),
        of(tally.incomplete),
        of(tally.failed),
        figures.open
    );
    if figures.unread > 0 {
        put!(out, "{} could not be read", counted(figures.unread, "cycle"));
    }
    out
}

fn object(figures: &Figures, policy: &LoopPolicy) -> Value {
    let tally = figures.tally;
    let rows: Vec<Value> = rows(tally, policy)
        .into_iter()
        .map(|(name, value, goal, light)| json!({ "figure": name, "value": value, "goal": goal, "light": light.name() }))
        .collect();
    json!({
        "figures": rows,
        "cycles": tally.cycles(),
        "succeeded": tally.succeeded,
        "incomplete": tally.incomplete,
        "failed": tally.failed,
        "open": figures.open,
        "unread": figures.unread,
        "iterations": tally.iterations,
        "passes": tally.passes,
        "insufficient": tally.insufficient,
        "paused": tally.paused,
        "approvals": tally.approvals,
        "approval_latency_ms": tally.approval_latency(),
    })
}
