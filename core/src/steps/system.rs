//! Shadows of the whole system, checked between phases (AF-140..AF-147), each with its correction.

use crate::event::{Conclusion, Hardness, ShadowDetected, Stop};
use crate::model::{
    Phase, Proposal, Reason, Role, SYSTEM, Severity, ShadowAction, Sighting, SystemShadow, Verdict,
};
use crate::rules::ledger;
use crate::rules::system::{self, Situation};
use crate::run::{Cycle, Key, Run};

/// Scope creep, gold plating, analysis paralysis.
pub(crate) fn after_do(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    if !run.policy().shadows.enabled {
        return None;
    }
    let plan = run.plan();
    let situation = situation(run, cycle, plan.as_ref());
    let seen = system::after_do(&situation, &run.policy().system_shadows);
    act_upon(run, cycle, seen)
}

/// Tunnel vision, echo chamber, cargo cult.
pub(crate) fn after_check(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    if !run.policy().shadows.enabled {
        return None;
    }
    let seen = system::after_check(&situation(run, cycle, None), &run.policy().system_shadows);
    act_upon(run, cycle, seen)
}

/// Broken window: WARNINGs that run after run leaves open. Nothing in this run can fix it.
pub(crate) fn at_end(run: &Run, cycle: &Cycle, warnings: u32) -> Vec<Conclusion> {
    if !run.policy().shadows.enabled {
        return vec![];
    }
    let mut situation = situation(run, cycle, None);
    situation.deferred_warnings += warnings;
    system::at_end(&situation, &run.policy().system_shadows)
        .into_iter()
        .filter(|(shadow, _)| !cycle.system.contains(shadow.name()))
        .map(|(shadow, sighting)| detected(run, cycle, shadow, sighting, ShadowAction::Note, String::new()))
        .collect()
}

fn situation<'a>(run: &'a Run, cycle: &'a Cycle, plan: Option<&'a Proposal>) -> Situation<'a> {
    let worked = |phase: Phase| cycle.worked.get(&phase).copied().unwrap_or(0);
    let reviews: Vec<_> = cycle
        .reviewers()
        .into_iter()
        .map(|(name, review)| (name, review, cycle.verdicts.get(name).copied().unwrap_or(Verdict::Rejected)))
        .collect();
    let maker = seat(run, Role::Maker);
    let past = run.request.as_ref().map(|request| &request.past);
    Situation {
        workflow: run.rules().depth(run),
        check_ms: wall_time(run, cycle),
        reviews,
        change: run.work.as_ref(),
        proposal: plan,
        plan_ms: worked(Phase::Plan),
        do_ms: worked(Phase::Do),
        explorer_starts: cycle.explored,
        open_before: run.history().last().copied().unwrap_or(&[]),
        maker_prior: cycle.answers.get(&maker).map_or(&[], |answered| answered.answer.prior.as_slice()),
        lessons: past.map_or(&[], |past| past.lessons.as_slice()),
        grave: cycle.grave(),
        deferred_warnings: past.map_or(0, |past| past.deferred_warnings),
        overlap: run.policy().convergence.overlap,
    }
}

/// The Guardian reviews first, the others side by side.
fn wall_time(run: &Run, cycle: &Cycle) -> u64 {
    let gatekeeper = seat(run, Role::Gatekeeper);
    // They answer at once, however careful the reviewers are that they stand for.
    let agents = &run.policy().agents;
    if cycle.reviewers().into_iter().all(|(name, _)| ledger::is_simulated(agents.of(name))) {
        return u64::MAX;
    }
    let took = |name: &str| cycle.answers.get(name).map_or(0, |answered| answered.duration_ms);
    let others = cycle.reviewers().into_iter().filter(|(name, _)| *name != gatekeeper);
    took(&gatekeeper) + others.map(|(name, _)| took(name)).max().unwrap_or(0)
}

fn seat(run: &Run, role: Role) -> String {
    run.seat(role).map(|seat| seat.archetype).unwrap_or_default()
}

/// Each shadow at most once a cycle: its correction needs time to work.
fn act_upon(run: &Run, cycle: &Cycle, seen: Vec<(SystemShadow, Sighting)>) -> Option<Vec<Conclusion>> {
    let (shadow, sighting) = seen.into_iter().find(|(shadow, sighting)| {
        !cycle.system.contains(shadow.name()) && !is_settled(run, *shadow, sighting)
    })?;
    let key: Key = (SYSTEM.to_owned(), shadow.name().to_owned());
    let target = target(run, cycle, shadow, &sighting);
    let action = match run.struck_once_more(&key).0 {
        _ if run.corrections.tolerated.contains(&key) => ShadowAction::Note,
        _ if is_informational(run, shadow, &sighting) => ShadowAction::Note,
        1 => remedy_by(shadow),
        _ if is_confirmation(run, cycle, shadow, &sighting) => ShadowAction::Note,
        2 => ShadowAction::Escalate,
        _ => ShadowAction::Break,
    };
    Some(vec![detected(run, cycle, shadow, sighting, action, target)])
}

/// CL-04: the lower of the two levels of scope creep is only reported.
fn is_informational(run: &Run, shadow: SystemShadow, sighting: &Sighting) -> bool {
    let escalates = run.policy().system_shadows.scope_creep.escalates.name();
    shadow == SystemShadow::ScopeCreep && sighting.trigger != escalates
}

/// A second look at what the reviewers agree on was taken, and what they agree on was verified: the Maker has to act.
fn is_confirmation(run: &Run, cycle: &Cycle, shadow: SystemShadow, sighting: &Sighting) -> bool {
    let policy = &run.policy().system_shadows.echo_chamber;
    let reviews = cycle.reviewers().into_iter().map(|(_, review)| review);
    shadow == SystemShadow::EchoChamber && system::agrees_on_evidence(reviews, sighting, policy)
}

/// A lesson is found ineffective once.
fn is_settled(run: &Run, shadow: SystemShadow, sighting: &Sighting) -> bool {
    shadow == SystemShadow::CargoCult && run.corrections.ineffective.contains(&lesson_of(sighting))
}

/// A second opinion must not be shown the first: the adversarial Guardian starts afresh.
fn remedy_by(shadow: SystemShadow) -> ShadowAction {
    match shadow {
        SystemShadow::EchoChamber => ShadowAction::Replace,
        SystemShadow::TunnelVision
        | SystemShadow::GoldPlating
        | SystemShadow::AnalysisParalysis
        | SystemShadow::CargoCult
        | SystemShadow::ScopeCreep => ShadowAction::Correct,
        SystemShadow::BrokenWindow => ShadowAction::Note,
    }
}

/// Who is sent again, or which lesson it is about.
fn target(run: &Run, cycle: &Cycle, shadow: SystemShadow, sighting: &Sighting) -> String {
    match shadow {
        SystemShadow::TunnelVision => {
            let gatekeeper = seat(run, Role::Gatekeeper);
            // A review brought along may be by somebody who has no seat here and can't be sent.
            let mut others: Vec<String> = run.seats().iter().map(|seat| seat.archetype.clone()).collect();
            others.retain(|name| *name != gatekeeper && cycle.review(name).is_some());
            others.into_iter().min().unwrap_or(gatekeeper)
        }
        SystemShadow::EchoChamber => seat(run, Role::Gatekeeper),
        SystemShadow::GoldPlating | SystemShadow::ScopeCreep => seat(run, Role::Maker),
        SystemShadow::CargoCult => lesson_of(sighting),
        SystemShadow::AnalysisParalysis | SystemShadow::BrokenWindow => String::new(),
    }
}

/// The detail of a cargo cult begins with the lesson's id.
fn lesson_of(sighting: &Sighting) -> String {
    sighting.detail.split(':').next().unwrap_or_default().to_owned()
}

fn detected(
    run: &Run,
    cycle: &Cycle,
    shadow: SystemShadow,
    sighting: Sighting,
    action: ShadowAction,
    target: String,
) -> Conclusion {
    let key: Key = (SYSTEM.to_owned(), shadow.name().to_owned());
    let (count, count_in_cycle, _) = run.struck_once_more(&key);
    let name = shadow.name().replace('_', " ");
    let detail = match action {
        ShadowAction::Note if shadow != SystemShadow::BrokenWindow => format!("{name}: {}", sighting.detail),
        ShadowAction::Note | ShadowAction::Correct | ShadowAction::Replace => {
            system::remedy(shadow, &sighting)
        }
        ShadowAction::Escalate => {
            format!("{name} again, after it was acted upon once: {}", sighting.detail)
        }
        ShadowAction::Break => {
            format!("{name} {count} times in this run, a systemic issue: {}", sighting.detail)
        }
    };
    let breaks = (action == ShadowAction::Break).then(|| Stop {
        reason: Reason::SystemShadow,
        detail: detail.clone(),
        breaks: Some(Hardness::Soft),
    });
    ShadowDetected {
        archetype: SYSTEM.to_owned(),
        shadow: shadow.name().to_owned(),
        trigger: sighting.trigger.clone(),
        measured: sighting.measured,
        threshold: sighting.threshold,
        action,
        cycle: cycle.number,
        count,
        count_in_cycle,
        sightings: vec![sighting],
        detail,
        looked_at: 0,
        target,
        stop: breaks,
    }
    .into()
}

/// WARNINGs that stay open when nothing follows.
pub(crate) fn warnings(open: &[crate::event::Tracked]) -> u32 {
    let warnings = open.iter().filter(|found| found.severity == Severity::Warning).count();
    u32::try_from(warnings).unwrap_or(u32::MAX)
}
