//! Act: count findings, escalate (A1), compare with earlier cycles, then land, begin another cycle, or stop.

use crate::event::{
    Conclusion, CycleBoundary, FixApplied, Hardness, NextAction, PassedOver, PassedOverBy, Stop, Tracked,
    Trend, TrendStatus, WorkflowEscalated, fitting,
};
use crate::model::{
    Convergence, Destination, Finding, PROGRAM, Phase, Reason, Role, Severity, Sign, Workflow, counted,
};
use crate::rules::exit::{self, Against};
use crate::rules::{convergence, gates, memory};
use crate::run::{Cycle, RejectionSetAside, Run};

use super::land::land;
use super::{boundary, budget, check, rejections, system};
use super::{enter, onward, point, stop};

pub(crate) fn act(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let Some(boundary) = &cycle.boundary else { return conclude(run, cycle) };
    match (boundary.next_action, &boundary.stop) {
        (NextAction::Merge, _) => land(run, cycle),
        (NextAction::CycleBack, _) => match budget::last_cycle(run).or_else(|| wind_down(run)) {
            Some(why) => stop(run, &why),
            None => vec![enter(run, "act", cycle.number + 1, Phase::Plan)],
        },
        (NextAction::Stop, Some(why)) => stop(run, why),
        (NextAction::Stop, None) => vec![],
    }
}

/// The end of a cycle: its counts, its trend, and what follows.
fn conclude(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let seats = run.seats();
    if seats.iter().any(|seat| seat.role == Role::Gatekeeper && !cycle.settled(&seat.archetype)) {
        return onward(run, cycle, Phase::Check);
    }
    let owed = check::owed(run, cycle);
    if !owed.is_empty() {
        return owed;
    }
    if let Some(events) = escalate(run, cycle).or_else(|| rejections::in_act(run, cycle)) {
        return events;
    }
    let mut weighed = standing(run, cycle);
    let policy = &run.policy().convergence;
    let (mut open, trend) = convergence::follow(convergence::merge(&weighed, policy), &run.history(), policy);
    let trend = trend.map(|trend| Trend { untried: !tried(run, cycle, &open, &trend), ..trend });
    let back = route_and_mark(run, &mut open);
    let approved = approved(run, cycle, &weighed, trend.as_ref());
    if let Some(events) = run.rules().before_conclusion(run, cycle, approved, &open) {
        return events;
    }
    let fixes = fixes(run, cycle, &open, trend.as_ref());
    let above_info = count(weighed.iter().filter(|finding| finding.severity > Severity::Info).count());
    let (mut next_action, mut why) = next(run, cycle, approved, above_info, &open, trend.as_ref());
    let extra_cycle = is_granted(run, why.as_ref(), trend.as_ref());
    if extra_cycle {
        (next_action, why) = (NextAction::CycleBack, None);
    }
    let max_cycles = run.max_cycles + u32::from(extra_cycle);
    let (passed_over, warnings) = (passed_over(run, cycle, &weighed), system::warnings(&open));
    let aside = set_aside(run, cycle);
    if next_action == NextAction::Merge && !aside.is_empty() {
        weighed.extend(aside);
        (open, _) = convergence::follow(convergence::merge(&weighed, policy), &run.history(), policy);
        route_and_mark(run, &mut open);
    }
    let tally = |severity| count(weighed.iter().filter(|finding| finding.severity == severity).count());
    let exit_condition = match (next_action, &why) {
        (NextAction::Merge, _) => "approved",
        (NextAction::CycleBack, _) => "findings_open",
        (NextAction::Stop, Some(Stop { reason: Reason::MaxCycles, .. })) => "max_cycles",
        (NextAction::Stop, Some(Stop { breaks: Some(_), .. })) => "wiggum_break",
        (NextAction::Stop, _) => "escalated",
    };
    let boundary = CycleBoundary {
        cycle: cycle.number,
        max_cycles,
        extra_cycle,
        exit_condition: exit_condition.to_owned(),
        met: next_action == NextAction::Merge,
        fixes_applied: count(cycle.fixed.len() + fixes.len()),
        next_action,
        critical: tally(Severity::Critical),
        warning: tally(Severity::Warning),
        info: tally(Severity::Info),
        convergence: trend.map(|trend| advised(trend, next_action, why.as_ref())),
        stop: why,
        open: fitting(open, usize::MAX),
        passed_over: if next_action == NextAction::Merge { passed_over } else { vec![] },
    };
    let decided = point(
        PROGRAM,
        "AF-109",
        format!(
            "{} CRITICAL, {} WARNING, {} INFO; cycle {} of {}",
            boundary.critical, boundary.warning, boundary.info, cycle.number, run.max_cycles
        ),
        match (&boundary.next_action, &boundary.stop) {
            (NextAction::Merge, _) => "approved: land it".to_owned(),
            (NextAction::CycleBack, _) if extra_cycle => {
                "converging at the limit: one of the extra cycles (extra_cycles)".to_owned()
            }
            (NextAction::CycleBack, _) => "findings open: one more cycle".to_owned(),
            (NextAction::Stop, why) => {
                format!("stop: {}", why.as_ref().map_or("", |why| why.detail.as_str()))
            }
        },
    );
    let mut events = fixes;
    if boundary.next_action != NextAction::CycleBack {
        events.extend(system::at_end(run, cycle, warnings));
    }
    events.extend(back);
    events.push(decided);
    events.push(boundary.into());
    events
}

/// Reviewers without whose approval the change lands, and why.
fn passed_over(run: &Run, cycle: &Cycle, weighed: &[Finding]) -> Vec<PassedOver> {
    let why = |name: &str| {
        let counts =
            weighed.iter().any(|finding| finding.source == name && finding.severity > Severity::Info);
        match run.rules().exit_of_strategy() {
            _ if cycle.overruled.contains(name) || !counts => PassedOverBy::Person,
            Some(_) => PassedOverBy::Pipeline,
            None => PassedOverBy::ExitCondition,
        }
    };
    let mut rejecting = cycle.rejecting();
    // Also where only a CRITICAL of the reviewer before it stood against the change.
    rejecting.extend(cycle.overruled.iter().map(String::as_str));
    let rejections =
        rejecting.iter().map(|name| PassedOver { archetype: (*name).to_owned(), why: why(name) });
    let mut aside = cycle.set_aside_rejections();
    aside.retain(|name, _| !rejecting.contains(name));
    let failed = cycle
        .failed
        .iter()
        .filter(|name| !rejecting.contains(name.as_str()) && !aside.contains_key(name.as_str()));
    let failed = failed.map(|name| PassedOver { archetype: name.clone(), why: PassedOverBy::Failed });
    let in_its_place = |aside: &RejectionSetAside| {
        let accepted = !aside.bare && aside.findings.iter().all(|finding| is_accepted(run, finding));
        match aside.replaced {
            _ if accepted => PassedOverBy::Person,
            true => PassedOverBy::Replaced,
            false => PassedOverBy::SetAside,
        }
    };
    let set_aside = aside
        .iter()
        .map(|(name, aside)| PassedOver { archetype: (*name).to_owned(), why: in_its_place(aside) });
    let mut all: Vec<PassedOver> = rejections.chain(failed).chain(set_aside).collect();
    all.sort();
    all
}

/// J-09: whether the Maker did anything where the findings are that persist. Only the work of two cycles can say so.
fn tried(run: &Run, cycle: &Cycle, open: &[Tracked], trend: &Trend) -> bool {
    let before = run.cycles.len().checked_sub(2).and_then(|at| run.cycles.get(at)?.made.as_ref());
    let (Some(before), Some(now)) = (before, cycle.made.as_ref()) else { return true };
    let persist: Vec<&str> = open
        .iter()
        .filter(|found| trend.persistent_ids.contains(&found.id))
        .map(|found| found.file.as_str())
        .collect();
    persist.is_empty() || now.touched_since(before, persist)
}

/// Whether a cycle beyond the limit was granted beforehand for a run that gets there.
fn is_granted(run: &Run, why: Option<&Stop>, trend: Option<&Trend>) -> bool {
    let at_limit = why.is_some_and(|why| why.reason == Reason::MaxCycles);
    let used =
        run.cycles.iter().filter_map(|cycle| cycle.boundary.as_ref()).filter(|b| b.extra_cycle).count();
    at_limit
        && count(used) < run.policy().extra_cycles
        && trend.is_some_and(convergence::gets_there)
        && budget::last_cycle(run).is_none()
}

/// What counts against the change, without what a person accepted as it is.
pub(crate) fn standing(run: &Run, cycle: &Cycle) -> Vec<Finding> {
    let mut weighed = cycle.weighed();
    weighed.retain(|finding| !is_accepted(run, finding));
    weighed
}

fn is_accepted(run: &Run, finding: &Finding) -> bool {
    let policy = &run.policy().convergence;
    run.corrections.accepted.iter().any(|known| convergence::is_same(finding, known, policy))
}

/// WARNINGs of rejections that were set aside: they are named where the change lands.
fn set_aside(run: &Run, cycle: &Cycle) -> Vec<Finding> {
    let aside = cycle.set_aside_rejections().into_values().flat_map(|aside| &aside.findings);
    aside.filter(|finding| !is_accepted(run, finding)).cloned().collect()
}

fn route_and_mark(run: &Run, open: &mut [Tracked]) -> Option<Conclusion> {
    if !run.is_planned() && run.rules().lands() {
        open.iter_mut().for_each(|found| found.routes_to = Destination::Maker);
    }
    regressions(run, open)
}

/// Whether the change would be approved with what is open now, before any comparison with earlier cycles.
pub(crate) fn standing_now(run: &Run, cycle: &Cycle) -> (bool, Vec<Tracked>) {
    let weighed = standing(run, cycle);
    let policy = &run.policy().convergence;
    let (open, _) = convergence::follow(convergence::merge(&weighed, policy), &run.history(), policy);
    (approved(run, cycle, &weighed, None), open)
}

/// AF-121: findings an earlier run of this project had resolved are marked as such.
fn regressions(run: &Run, open: &mut [Tracked]) -> Option<Conclusion> {
    let past = &run.request.as_ref()?.past.resolved;
    memory::mark(open, past, &run.policy().memory);
    let back: Vec<String> = open
        .iter()
        .filter_map(|found| Some(format!("{} (resolved in {})", found.id, found.regression_of.as_ref()?)))
        .collect();
    if back.is_empty() {
        return None;
    }
    let decision = "regression: comes before fresh findings".to_owned();
    Some(point(PROGRAM, "AF-121", back.join(", "), decision))
}

/// A1 (AF-081): sticky, and with the cycles a standard run has (CL-14).
fn escalate(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    if !run.rules().upgrades() || run.current_workflow() != Workflow::Fast {
        return None;
    }
    let seats = run.seats();
    let gatekeeper = &seats.iter().find(|seat| seat.role == Role::Gatekeeper)?.archetype;
    let criticals = cycle
        .weighed()
        .iter()
        .filter(|finding| finding.source == *gatekeeper && finding.severity == Severity::Critical)
        .count();
    if !gates::escalates(run.current_workflow(), count(criticals)) {
        return None;
    }
    let to = Workflow::Standard;
    let max_cycles = run.policy().cycles(to);
    let decision = format!("escalate fast to standard, at most {}", counted(max_cycles, "cycle"));
    Some(vec![
        point(gatekeeper, "A1", format!("{criticals} CRITICAL in a fast run"), decision),
        WorkflowEscalated { from: Workflow::Fast, to, max_cycles, rule: "A1".to_owned() }.into(),
    ])
}

/// No objection that counts is open. A CRITICAL blocks whatever the verdict says. The strategy, a team or a workflow may name another
/// condition; whether a person has to be asked first is for [`rejections`] to say.
fn approved(run: &Run, cycle: &Cycle, weighed: &[Finding], trend: Option<&Trend>) -> bool {
    let converging = trend.is_some_and(|trend| trend.status == TrendStatus::Converging);
    exit::met(run.rules().exit(run), Against { converging, ..against(cycle, weighed) })
}

/// Whether a change with these findings would land.
pub(crate) fn would_land(run: &Run, cycle: &Cycle, weighed: &[Finding]) -> bool {
    exit::met(run.rules().exit(run), against(cycle, weighed))
}

fn against(cycle: &Cycle, weighed: &[Finding]) -> Against {
    let critical = |finding: &&Finding| finding.severity == Severity::Critical;
    // The WARNINGs of a reviewer that a person passed over are named.
    let rejects = |name: &str| cycle.rejects(name) && !cycle.overruled.contains(name);
    let counts = |finding: &Finding| finding.severity >= Severity::Warning && rejects(&finding.source);
    Against {
        critical: weighed.iter().any(|finding| critical(&finding)),
        critical_by_program: weighed.iter().filter(critical).any(|finding| finding.source == PROGRAM),
        rejected: weighed.iter().any(counts),
        upheld: !cycle.upheld.is_empty(),
        converging: false,
    }
}

/// What happens next, and why it stops if it does. The order is AF-109: convergence first, unless it is switched off, then the exit logic;
/// a stop overrides another cycle, not an approval, except that findings that undo each other stop everything.
fn next(
    run: &Run,
    cycle: &Cycle,
    approved: bool,
    above_info: u32,
    open: &[Tracked],
    trend: Option<&Trend>,
) -> (NextAction, Option<Stop>) {
    let policy = &run.policy().convergence;
    let trend_counts = trend.filter(|_| policy.enabled);
    let convergence = trend_counts.and_then(|trend| convergence::stop(trend, &run.earlier_trends(), policy));
    let hard = convergence.as_ref().is_some_and(|why| why.breaks == Some(Hardness::Hard));
    if hard {
        return (NextAction::Stop, convergence);
    }
    if approved {
        return (NextAction::Merge, None);
    }
    // A person who knows of the trend and goes on is not stopped by it again at once.
    let convergence = convergence.filter(|_| !cycle.judged_anew);
    let rising = || boundary::rising(run, above_info).filter(|_| policy.enabled);
    let breaks = convergence.or_else(rising).or_else(|| wind_down(run));
    let last = run.rules().is_last_cycle(run, cycle);
    let untried = trend.is_some_and(|trend| trend.untried);
    let persistent = open
        .iter()
        .filter(|_| !untried && policy.enabled)
        .find(|found| found.cycles_open >= 2 && found.severity >= policy.persistent_floor);
    if let Some((_, failing)) = cycle.raised.iter().find(|(sign, _)| *sign == Sign::TestsFailing)
        && (last || breaks.is_some() || persistent.is_some())
    {
        let detail = failing.description.clone();
        return (NextAction::Stop, Some(Stop { reason: Reason::TestsFailed, detail, breaks: None }));
    }
    if breaks.is_some() {
        return (NextAction::Stop, breaks);
    }
    if let Some(found) = persistent {
        let detail = format!(
            "{} is open for the {} cycle running: {}",
            found.id,
            ordinal(found.cycles_open),
            found.description
        );
        return (NextAction::Stop, Some(Stop { reason: Reason::PersistentCritical, detail, breaks: None }));
    }
    if last {
        let mut detail = format!(
            "{} still open after {} of {}",
            counted(count(open.len()), "finding"),
            cycle.number,
            counted(run.max_cycles, "cycle")
        );
        if let Some(trend) = trend.filter(|trend| convergence::gets_there(trend))
            && policy.offers_a_cycle
            && budget::last_cycle(run).is_none()
        {
            detail += &format!(
                "; the run was converging ({} resolved, {} new): one more cycle may be enough",
                trend.resolved,
                trend.new + trend.regressed
            );
        }
        return (NextAction::Stop, Some(Stop { reason: Reason::MaxCycles, detail, breaks: None }));
    }
    if let Some(why) = budget::last_cycle(run) {
        return (NextAction::Stop, Some(why));
    }
    (NextAction::CycleBack, None)
}

/// A boundary of policy was passed on the way: this cycle was the last.
fn wind_down(run: &Run) -> Option<Stop> {
    run.corrections.winding_down.clone()
}

/// CL-34: findings that are gone, because their authors looked at the new version and do not repeat them. What a person accepted as
/// it is was not fixed.
fn fixes(run: &Run, cycle: &Cycle, open: &[Tracked], trend: Option<&Trend>) -> Vec<Conclusion> {
    let resolved = match trend {
        Some(trend) => trend.resolved_findings.clone(),
        None if cycle.fix_asked => fixed_in_cycle(run, cycle, open),
        None => Vec::new(),
    };
    let accepted = &run.corrections.accepted;
    let resolved = gone(resolved, accepted, &run.policy().convergence);
    let is_accepted = |found: &Tracked| accepted.iter().any(|known| known.id == found.id);
    let fix = |found: &Tracked| {
        let (file, line) = (found.file.clone(), found.line);
        FixApplied { source: found.source.join("+"), finding: found.id.clone(), file, line }.into()
    };
    resolved
        .iter()
        // Of several that are alike, another may have been taken for the accepted one.
        .filter(|found| !is_accepted(found))
        // Whether failing tests are fixed shows only when they run again.
        .filter(|found| !found.file.is_empty() || found.source != [PROGRAM])
        .filter(|found| found.severity > Severity::Info && !cycle.fixed.contains(&found.id))
        .filter(|found| found.source.iter().all(|name| name == PROGRAM || cycle.answers.contains_key(name)))
        .map(fix)
        .collect()
}

/// What the targeted fix of a pipeline resolved: its cycle has no other to be compared with.
fn fixed_in_cycle(run: &Run, cycle: &Cycle, open: &[Tracked]) -> Vec<Tracked> {
    let policy = &run.policy().convergence;
    let (before, _) = convergence::follow(convergence::merge(&cycle.inherited.findings, policy), &[], policy);
    gone(before, open, policy)
}

/// The findings of a list that another one does not have.
fn gone(before: Vec<Tracked>, now: &[Tracked], policy: &Convergence) -> Vec<Tracked> {
    if now.is_empty() {
        return before;
    }
    let (_, trend) = convergence::follow(now.to_vec(), &[&before], policy);
    trend.map(|trend| trend.resolved_findings).unwrap_or_default()
}

fn advised(mut trend: Trend, next: NextAction, why: Option<&Stop>) -> Trend {
    let (recommendation, reason) = match (next, why) {
        (NextAction::Merge, _) => ("continue", "nothing stands against landing".to_owned()),
        (NextAction::CycleBack, _) => ("continue", format!("{}, cycles remain", trend.status.name())),
        (NextAction::Stop, Some(why)) => ("stop", why.detail.clone()),
        (NextAction::Stop, None) => ("stop", String::new()),
    };
    trend.recommendation = recommendation.to_owned();
    trend.reason = reason;
    trend
}

fn ordinal(n: u32) -> String {
    match n {
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => format!("{n}th"),
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
