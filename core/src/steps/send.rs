//! Starting an agent: the order with everything its executor needs.

use crate::event::{AgentStart, Artifact, Conclusion, Session};
use crate::model::{Participant, Purpose, Role, ShadowAction, Tier};
use crate::rules::tiers;
use crate::run::{Cycle, Run};

use super::budget;

pub(crate) fn send(
    run: &Run,
    cycle: &Cycle,
    seat: &Participant,
    purpose: Purpose,
    note: String,
) -> Conclusion {
    let policy = run.policy();
    let name = seat.archetype.as_str();
    let Assignment { purpose, note, earlier, resumes } = told(cycle, name, purpose, note);
    let resumes = resumes.or_else(|| interrupted(run, cycle, name, purpose));
    let own =
        run.request.as_ref().and_then(|request| request.tiers.get(name)).copied().unwrap_or(Tier::Sonnet);
    let total_ms = match (seat.role, purpose) {
        (_, Purpose::Research) => policy.limits.mini_explorer_ms,
        (Role::Maker, _) => policy.limits.maker_ms,
        (Role::Explorer | Role::Creator | Role::Gatekeeper | Role::Reviewer, _) => policy.limits.other_ms,
    };
    let resolved = tiers::resolve(&policy.models, run.current_workflow(), name, own);
    let (model, agent) = (budget::tier(run, seat.role, resolved), run.agent_for(name));
    let reserved_usd = budget::reserve(run, &agent, seat.role, model);
    AgentStart {
        archetype: name.to_owned(),
        role: seat.role,
        model,
        prompt_summary: summary(run, cycle, seat, purpose),
        purpose,
        attempt: cycle.starts.get(name).copied().unwrap_or(0) + 1,
        cycle: cycle.number,
        account: run.account_of(&agent),
        agent,
        at: run.tip(),
        silence_ms: policy.limits.silence_ms.min(total_ms),
        total_ms,
        wait_ms: 0,
        note,
        earlier,
        reserved_usd,
        resumes,
    }
    .into()
}

struct Assignment {
    purpose: Purpose,
    note: String,
    earlier: Option<Artifact>,
    resumes: Option<Session>,
}

/// The conversation of an attempt that its provider cut short (C-09).
fn interrupted(run: &Run, cycle: &Cycle, name: &str, purpose: Purpose) -> Option<Session> {
    let failed = cycle.last_failure.get(name).filter(|_| purpose == Purpose::Retry)?;
    let cut = failed.session.as_ref().filter(|cut| cut.agent == run.agent_for(name))?;
    Some(cut.session.clone())
}

/// An agent that has to answer again is given the reason and its own answer, unless it was replaced (AF-138). Only a
/// correction resumes the conversation here; an attempt that failed starts over, unless [`interrupted`] knows better.
fn told(cycle: &Cycle, name: &str, purpose: Purpose, note: String) -> Assignment {
    let fresh = |purpose, note| Assignment { purpose, note, earlier: None, resumes: None };
    let Some(shadowed) = cycle.shadowed.get(name) else { return fresh(purpose, note) };
    let earlier = || Some(shadowed.answered.artifact.clone());
    let (anew, earlier, session) = match shadowed.action {
        ShadowAction::Correct => (Purpose::Correct, earlier(), shadowed.answered.session.clone()),
        ShadowAction::Replace | ShadowAction::Escalate | ShadowAction::Break | ShadowAction::Note => {
            (Purpose::Replace, None, None)
        }
    };
    match purpose {
        Purpose::Work => Assignment { purpose: anew, note: shadowed.note.clone(), earlier, resumes: session },
        Purpose::Retry => {
            Assignment { purpose, note: format!("{note}\n\n{}", shadowed.note), earlier, resumes: None }
        }
        Purpose::Correct | Purpose::Replace | Purpose::Tests | Purpose::Research | Purpose::Fix => {
            fresh(purpose, note)
        }
    }
}

fn summary(run: &Run, cycle: &Cycle, seat: &Participant, purpose: Purpose) -> String {
    let work = run.rules().work(run, seat.role);
    match purpose {
        Purpose::Work => format!("{work} (cycle {})", cycle.number),
        Purpose::Correct | Purpose::Replace | Purpose::Retry => {
            format!("{work} (cycle {}, again)", cycle.number)
        }
        Purpose::Tests => "add the tests the proposal asks for".to_owned(),
        Purpose::Research => "research only the named risks".to_owned(),
        Purpose::Fix => "fix the critical findings".to_owned(),
    }
}

/// What a role does in a plain run.
pub(crate) fn work(run: &Run, role: Role) -> &'static str {
    match role {
        Role::Explorer => "research the context",
        Role::Creator if run.reflects_first() => "reflect briefly, then design a proposal",
        Role::Creator => "design a proposal",
        Role::Maker if !run.is_planned() => "carry out the task",
        Role::Maker => "implement the proposal",
        Role::Gatekeeper => "review the diff for risks",
        Role::Reviewer => "review",
    }
}
