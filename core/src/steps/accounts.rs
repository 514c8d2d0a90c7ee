//! One circuit breaker per provider account (C6). After a limit, no agent is started on the account until it is
//! available again; then one attempt probes it, and the others follow if that succeeds. If the wait is too long, a
//! fallback agent takes over, if there is one.

use std::collections::BTreeSet;

use crate::event::{AgentFailed, Conclusion, Failure, Order};
use crate::model::Participant;
use crate::projections::view::seconds;
use crate::rules::breaker::{self, AccountRefusal, BreakerAction};
use crate::run::{Breaker, Cycle, Run};

use super::point;
use super::settle::park_until;

/// The gate before every start: an agent on a limited account waits, and starts alone.
pub(crate) fn admit(run: &Run, events: Vec<Conclusion>) -> Vec<Conclusion> {
    if run.accounts.open.is_empty() {
        return events;
    }
    let mut taken: BTreeSet<String> = run.open_agents().map(|(_, start)| run.billed(start)).collect();
    let (mut kept, mut started, mut refused) = (Vec::new(), false, None);
    for mut event in events {
        let Conclusion::Order(Order::AgentStart(start)) = &mut event else {
            kept.push(event);
            continue;
        };
        let account = run.billed(start);
        match run.accounts.open.get(&account) {
            None => {}
            Some(_) if taken.contains(&account) => continue,
            Some(breaker) => match remaining(run, breaker) {
                BreakerAction::Wait(wait_ms) => start.wait_ms = wait_ms,
                BreakerAction::Park(after_ms) => {
                    refused = refused.or(Some((start.archetype.clone(), account, after_ms)));
                    continue;
                }
            },
        }
        taken.insert(account);
        started = true;
        kept.push(event);
    }
    match refused {
        None => kept,
        Some(_) if started => kept,
        Some(_) if run.open_agents().next().is_some() => vec![],
        Some((archetype, account, after_ms)) => {
            let detail = format!("the account {account} is limited and the {archetype} would need it");
            let taken_over = hand_over(run, &archetype, &detail);
            taken_over.map_or_else(|| park(run, &account, detail, after_ms), |event| vec![event])
        }
    }
}

/// The rest of the wait for an account, by the times in the journal. A clock that was set back does not prolong it.
fn remaining(run: &Run, breaker: &Breaker) -> BreakerAction {
    let whole = breaker::wait(refusal(breaker), &run.policy().retries, salt(run, breaker.times));
    let now = run.last / 1_000 * 1_000;
    let left = whole.saturating_sub(now.saturating_sub(breaker.at));
    if left > run.policy().retries.park_after_ms {
        BreakerAction::Park(Some(whole))
    } else {
        BreakerAction::Wait(left)
    }
}

/// What follows from this number of refusals in a row.
pub(crate) fn refused(run: &Run, archetype: &str, failed: &AgentFailed, times: u32) -> BreakerAction {
    let breaker = run.accounts.failed.get(archetype).and_then(|account| run.accounts.open.get(account));
    let refusal = AccountRefusal {
        quota: failed.kind == Failure::Quota,
        told_ms: failed.reopens_in_ms,
        times,
        parked: breaker.is_some_and(|breaker| breaker.parked),
    };
    breaker::verdict(refusal, &run.policy().retries, salt(run, times))
}

fn refusal(breaker: &Breaker) -> AccountRefusal {
    let Breaker { quota, told_ms, times, parked, .. } = *breaker;
    AccountRefusal { quota, told_ms, times, parked }
}

/// Nothing a crash changes is part of it, or it would change decisions (I6).
fn salt(run: &Run, times: u32) -> u64 {
    let name = run.request.as_ref().map(|request| request.branch.as_str()).unwrap_or_default();
    breaker::salt(name, times)
}

/// Whether a retry has to wait for another agent's attempt.
pub(crate) fn is_held(run: &Run, archetype: &str, asked: &mut BTreeSet<String>) -> bool {
    let account = run.account_of(&run.agent_for(archetype));
    run.accounts.open.contains_key(&account) && !asked.insert(account)
}

/// A correction waits for running agents on the same account, so that what follows from a refusal does not depend on
/// which agent ended first (D-13). The agent that was refused is the one that probes.
pub(crate) fn must_wait(run: &Run, cycle: &Cycle, seat: &Participant) -> bool {
    let account = run.account_of(&run.agent_for(&seat.archetype));
    let out = || run.open_agents().any(|(_, start)| run.billed(start) == account);
    let turned_away = |(name, failed): (&String, &AgentFailed)| {
        failed.kind.is_busy() && !cycle.settled(name) && run.accounts.failed.get(name) == Some(&account)
    };
    (cycle.shadowed.contains_key(&seat.archetype) && out())
        || (run.accounts.open.contains_key(&account) && cycle.last_failure.iter().any(turned_away))
}

/// The same among agents that are about to start together, as after a crash.
pub(crate) fn corrections_wait(run: &Run, cycle: &Cycle, going: &mut Vec<Participant>) {
    let account = |seat: &Participant| run.account_of(&run.agent_for(&seat.archetype));
    let anew = |seat: &Participant| cycle.shadowed.contains_key(&seat.archetype);
    let first: BTreeSet<String> = going.iter().filter(|seat| !anew(seat)).map(account).collect();
    going.retain(|seat| !anew(seat) || !first.contains(&account(seat)));
}

/// The archetype last failed on an account that was given up since, and there is a fallback.
pub(crate) fn is_replaced(run: &Run, archetype: &str) -> bool {
    let now = run.account_of(&run.agent_for(archetype));
    let failed = run.accounts.failed.get(archetype);
    failed.is_some_and(|failed| *failed != now && run.accounts.given_up.contains(failed))
}

/// The next fallback takes over for all agents on the account, for the rest of the run.
pub(crate) fn hand_over(run: &Run, archetype: &str, why: &str) -> Option<Conclusion> {
    let from = run.agent_for(archetype);
    let account = run.account_of(&from);
    let others = run.line_of(archetype);
    let to = others.iter().find(|agent| {
        let other = run.account_of(agent);
        other != account && !run.accounts.given_up.contains(&other)
    })?;
    let decision = format!("{to} takes over from {from} for the rest of the run");
    Some(point(archetype, "C6", why.to_owned(), decision))
}

pub(crate) fn park(run: &Run, account: &str, detail: String, after_ms: Option<u64>) -> Vec<Conclusion> {
    let Some(after_ms) = after_ms else { return park_until(run, detail, None) };
    let since = run.accounts.open.get(account).map_or(run.last, |breaker| breaker.at);
    let detail = format!("{detail}; {account} serves again {} later", seconds(after_ms));
    park_until(run, detail, Some(since.saturating_add(after_ms)))
}
