//! The budget (AF-151, CL-13, I4): steps of the ladder as they are passed, the gate before every start, and the stop.

use crate::event::{AgentStart, BudgetEffect, BudgetStep, Conclusion, Hardness, Order, Stop};
use crate::model::{Money, PROGRAM, Reason, Role, RunStatus, Seq, Tier};
use crate::rules::ledger;
use crate::run::{Limit, Run};

use super::settle::{break_off, stop};
use super::{finish, point};

/// What spending so far requires before anything else is decided. `Some` of an empty list: wait until all running
/// agents have ended.
pub(crate) fn watch(run: &Run) -> Option<Vec<Conclusion>> {
    let used_up = used_up(run);
    if !used_up.is_empty() {
        return Some(used_up);
    }
    let steps = passed(run);
    if !steps.is_empty() {
        return Some(steps);
    }
    let used_up = run.limits().into_iter().find(|limit| ledger::reaches(limit.spent, limit.cap, 100))?;
    if is_landing(run) {
        return None;
    }
    let detail = format!("the {} is used up: {}", name(used_up), figures(run, used_up));
    Some(match (run.broke, run.open_agents().next()) {
        (None, _) => break_off(run, Reason::Budget, detail),
        (Some(_), Some(_)) => vec![],
        (Some(_), None) => finish(run, RunStatus::WiggumBreak, Reason::Budget, detail),
    })
}

/// I4: a running agent that has used up its share is stopped, before it ends by itself.
fn used_up(run: &Run) -> Vec<Conclusion> {
    let stopped = |(seq, start): (Seq, &AgentStart)| {
        let (share, limit) = run.share_of(seq)?;
        let input = format!(
            "it has used {}; the {} leaves {} for it: {}",
            run.seen_of(seq).shown(),
            name(limit),
            share.shown(),
            figures(run, limit)
        );
        Some(point(&start.archetype, "I4", input, "it is stopped, its work is kept".to_owned()))
    };
    run.over_share().into_iter().filter_map(stopped).collect()
}

/// Landing costs nothing and is not interrupted.
fn is_landing(run: &Run) -> bool {
    let landing = &run.landing;
    let ordered = run.open.values().any(|order| !matches!(order, Order::AgentStart(_)));
    landing.agreed || landing.merged.is_some() || ordered
}

/// Steps that are reached and not written down yet, each once.
fn passed(run: &Run) -> Vec<Conclusion> {
    let costs = &run.policy().costs;
    let mut events = Vec::new();
    for limit in run.limits() {
        for (percent, effect) in ledger::steps(costs) {
            let written = run.ledger.steps.contains(&(limit.name.to_owned(), effect));
            if written || !ledger::reaches(limit.spent, limit.cap, percent) {
                continue;
            }
            let input = format!("{percent} % of the {}: {}", name(limit), figures(run, limit));
            events.push(point(PROGRAM, "AF-151", input, follows(effect).to_owned()));
            let (spent_usd, budget_usd) = (limit.spent, limit.cap);
            let step =
                BudgetStep { step: percent, effect, spent_usd, budget_usd, limit: limit.name.to_owned() };
            events.push(step.into());
        }
    }
    events
}

fn follows(effect: BudgetEffect) -> &'static str {
    match effect {
        BudgetEffect::Warn => "a warning",
        BudgetEffect::Downgrade => "reviewers get the next cheaper tier",
        BudgetEffect::FinishThenStop => "this cycle is finished, no other begins",
        BudgetEffect::StopNow => "everybody is called in, the run stops",
    }
}

/// I4: no agent starts if the amount spent and reserved, with its own reservation, exceeds a limit. While others run,
/// it waits for what they leave unspent; if none runs, the run ends.
pub(crate) fn admit(run: &Run, events: Vec<Conclusion>) -> Vec<Conclusion> {
    let limits = run.limits();
    if limits.is_empty()
        || !events.iter().any(|event| matches!(event, Conclusion::Order(Order::AgentStart(_))))
    {
        return events;
    }
    let mut set_aside = run.set_aside();
    let (mut kept, mut started, mut refused) = (Vec::new(), 0_u32, None);
    for event in events {
        let Conclusion::Order(Order::AgentStart(start)) = &event else {
            kept.push(event);
            continue;
        };
        let full =
            |limit: &&Limit| !ledger::admits(limit.spent.plus(set_aside), start.reserved_usd, limit.cap);
        if let Some(limit) = limits.iter().find(full) {
            refused = refused.or(Some((start.archetype.clone(), start.reserved_usd, *limit)));
            continue;
        }
        set_aside = set_aside.plus(start.reserved_usd);
        started += 1;
        kept.push(event);
    }
    match refused {
        None => kept,
        Some(_) if started > 0 => kept,
        Some(_) if run.open_agents().next().is_some() => vec![],
        Some((archetype, reserved, limit)) => stop(run, &no_room(run, &archetype, reserved, limit)),
    }
}

fn no_room(run: &Run, archetype: &str, reserved: Money, limit: Limit) -> Stop {
    let detail = format!(
        "the {} has no room for the {archetype}, for whom {} would be set aside: {}",
        name(limit),
        reserved.shown(),
        figures(run, limit)
    );
    Stop { reason: Reason::Budget, detail, breaks: Some(Hardness::Soft) }
}

/// An agent that the cycle can't do without was stopped because its share was used up.
pub(crate) fn without(archetype: &str, why: &str) -> Stop {
    let detail = format!("the {archetype} was stopped: {why}");
    Stop { reason: Reason::Budget, detail, breaks: Some(Hardness::Soft) }
}

/// AF-151: from 95 percent on, the cycle is finished and no other begins.
pub(crate) fn last_cycle(run: &Run) -> Option<Stop> {
    let costs = &run.policy().costs;
    let limit = run
        .limits()
        .into_iter()
        .find(|limit| ledger::effect(costs, limit.spent, limit.cap) >= Some(BudgetEffect::FinishThenStop))?;
    let detail = format!("the {} has no room for another cycle: {}", name(limit), figures(run, limit));
    Some(Stop { reason: Reason::Budget, detail, breaks: Some(Hardness::Soft) })
}

/// AF-151: from 80 percent on, reviewers get the next cheaper tier.
pub(crate) fn tier(run: &Run, role: Role, tier: Tier) -> Tier {
    match role {
        Role::Gatekeeper | Role::Reviewer if run.budget_effect() >= Some(BudgetEffect::Downgrade) => {
            ledger::cheaper(tier)
        }
        Role::Explorer | Role::Creator | Role::Maker | Role::Gatekeeper | Role::Reviewer => tier,
    }
}

/// The reservation for an attempt; none without a limit.
pub(crate) fn reserve(run: &Run, agent: &str, role: Role, tier: Tier) -> Money {
    if !run.is_limited() {
        return Money::ZERO;
    }
    ledger::reservation(&run.policy().costs, agent, role, tier)
}

fn name(limit: Limit) -> &'static str {
    if limit.name == "day" { "day's budget" } else { "budget" }
}

/// CL-13: the exact figure.
fn figures(run: &Run, limit: Limit) -> String {
    let set_aside = match run.set_aside() {
        Money::ZERO => String::new(),
        money => format!(", {} set aside", money.shown()),
    };
    format!(
        "{} of {} spent{set_aside} ({} %)",
        limit.spent.shown(),
        limit.cap.shown(),
        ledger::percent(limit.spent, limit.cap)
    )
}
