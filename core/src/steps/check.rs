//! Check: findings of the program, the gatekeeper, the fast path (A2), the other reviewers in parallel, evidence.

use crate::event::{Conclusion, EvidenceDowngrade, FindingRaised, Unfounded};
use crate::model::{
    Finding, Participant, Phase, Purpose, ReproductionResult, Role, Severity, Status, Verdict,
};
use crate::rules::gates::{self, Clearance};
use crate::rules::shadows::Places;
use crate::rules::{evidence, raised};
use crate::run::{Cycle, Run};

use super::{onward, point, rejections, send, skip, system};

pub(crate) fn check(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let raised = raise(run, cycle);
    if !raised.is_empty() {
        return raised;
    }
    let seats = run.seats();
    let gatekeeper = seats.iter().find(|seat| seat.role == Role::Gatekeeper);
    if let Some(seat) = gatekeeper.filter(|seat| !cycle.settled(&seat.archetype)) {
        return vec![send(run, cycle, seat, Purpose::Work, String::new())];
    }
    let waiting: Vec<&Participant> =
        seats.iter().filter(|seat| seat.role == Role::Reviewer && !cycle.settled(&seat.archetype)).collect();
    if !waiting.is_empty() {
        // A team without a gatekeeper has no fast path.
        let Some(gatekeeper) = gatekeeper.map(|seat| seat.archetype.as_str()) else {
            return waiting.iter().map(|seat| send(run, cycle, seat, Purpose::Work, String::new())).collect();
        };
        return run.rules().reviewers(run, cycle, gatekeeper, &waiting);
    }
    let downgrades = weigh(run, cycle);
    if !downgrades.is_empty() {
        return downgrades;
    }
    if let Some(events) = rejections::in_check(run, cycle) {
        return events;
    }
    system::after_check(run, cycle).unwrap_or_else(|| onward(run, cycle, Phase::Act))
}

/// Required before a cycle is concluded, also if it was entered after Check.
pub(crate) fn owed(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let mut events = raise(run, cycle);
    events.extend(weigh(run, cycle));
    events
}

/// D-07: findings that the program raises, each once.
pub(crate) fn raise(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let Some(work) = &run.work else { return vec![] };
    raised::findings(&work.signs, &run.policy().raised)
        .into_iter()
        .filter(|pair| !cycle.raised.contains(pair))
        .map(|(sign, finding)| FindingRaised { sign, finding }.into())
        .collect()
}

/// A2, then all reviewers at once.
pub(crate) fn in_parallel(
    run: &Run,
    cycle: &Cycle,
    gatekeeper: &str,
    waiting: &[&Participant],
) -> Vec<Conclusion> {
    let facts = clearance(run, cycle, gatekeeper);
    match gates::fast_path(facts) {
        Ok(()) => {
            let reason = format!("the {gatekeeper} found nothing above INFO (A2)");
            let owes = |seat: &&&Participant| looks_again(cycle, &seat.archetype);
            let owners: Vec<&str> = waiting.iter().filter(owes).map(|seat| seat.archetype.as_str()).collect();
            let decision = match owners.as_slice() {
                [] => "fast path: other reviewers skipped".to_owned(),
                names => format!("fast path: only authors of open findings look again: {}", names.join(", ")),
            };
            let mut events = vec![point(gatekeeper, "A2", described(facts), decision)];
            let skipped = waiting.iter().filter(|seat| !looks_again(cycle, &seat.archetype));
            events.extend(skipped.map(|seat| skip(&seat.archetype, &reason, false)));
            events.extend(waiting.iter().filter(owes).map(|seat| send_to_own_findings(run, cycle, seat)));
            events
        }
        Err(why) => {
            let mut events = Vec::new();
            let seats = run.seats();
            let mut reviewers = seats.iter().filter(|seat| seat.role == Role::Reviewer);
            if reviewers.all(|seat| !cycle.starts.contains_key(&seat.archetype)) {
                events.push(point(gatekeeper, "A2", described(facts), format!("all reviewers run: {why}")));
            }
            events.extend(waiting.iter().map(|seat| send(run, cycle, seat, Purpose::Work, String::new())));
            events
        }
    }
}

/// A reviewer that objected to the version before, or has answered and has to answer again: without another look, its findings
/// would be gone (`docs/rules/objections.md`).
pub(crate) fn looks_again(cycle: &Cycle, archetype: &str) -> bool {
    cycle.owes_a_look(archetype) || cycle.shadowed.contains_key(archetype)
}

/// One short attempt: only the findings that are open.
pub(crate) fn send_to_own_findings(run: &Run, cycle: &Cycle, seat: &Participant) -> Conclusion {
    let own = cycle.inherited.findings.iter().filter(|finding| finding.source == seat.archetype);
    let own: Vec<String> = own
        .map(|finding| format!("- {} {}: {}", finding.severity.name(), finding.location, finding.description))
        .collect();
    let note = if own.is_empty() {
        "You rejected the version before this one. Look only at whether your objection still holds."
            .to_owned()
    } else {
        format!(
            "These findings of yours on the version before this one are open:\n{}\n\nLook only at them. Repeat each that still \
             holds, with its evidence in the present version. A finding that you do not repeat counts as resolved.",
            own.join("\n")
        )
    };
    send(run, cycle, seat, Purpose::Work, note)
}

fn clearance(run: &Run, cycle: &Cycle, gatekeeper: &str) -> Clearance {
    let verified = |role: Role| {
        cycle.answer_of(role).is_some_and(|answered| answered.answer.status != Status::Unverified)
    };
    Clearance {
        approved: cycle.verdicts.get(gatekeeper) == Some(&Verdict::Approved),
        gravest: cycle.review(gatekeeper).and_then(|review| review.findings.iter().map(|f| f.severity).max()),
        verified: verified(Role::Gatekeeper) && verified(Role::Maker),
        raised_by_program: !cycle.raised.is_empty(),
        workflow: run.current_workflow(),
        escalated: run.escalated,
        cycle: cycle.number,
    }
}

fn described(facts: Clearance) -> String {
    format!(
        "{}, gravest finding {}, workflow {}{}, cycle {}",
        if facts.approved { "APPROVED" } else { "REJECTED" },
        facts.gravest.map_or("none", Severity::name),
        facts.workflow.name(),
        if facts.escalated { " (escalated)" } else { "" },
        facts.cycle
    )
}

/// AF-073, AF-074: after all reviewers, what has no evidence counts as INFO, unless evidence is switched off. The artifacts stay as they
/// are.
pub(crate) fn weigh(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let mut events = Vec::new();
    if !run.policy().evidence.enabled {
        return events;
    }
    let required = &run.overlay().evidence;
    let changed = rejections::changed(run);
    for (name, review) in cycle.reviewers().into_iter().filter(|(name, _)| !cycle.upheld.contains(*name)) {
        for (index, finding) in review.findings.iter().enumerate() {
            let index = u32::try_from(index).unwrap_or(u32::MAX);
            // A reproduced failure needs no more evidence.
            let tried = || cycle.trials.get(&(name.to_owned(), index)).map(|(trial, ..)| *trial);
            if !cycle.trials.is_empty() && tried() == Some(ReproductionResult::Confirmed) {
                continue;
            }
            let asked = || after_asking(cycle, name, finding, changed.as_ref());
            let Some(reason) = evidence::weigh_by(finding, required).or_else(asked) else { continue };
            if cycle.downgrades.contains_key(&(name.to_owned(), index)) {
                continue;
            }
            events.push(
                EvidenceDowngrade {
                    archetype: name.to_owned(),
                    index,
                    from: finding.severity,
                    to: reason.counts_as(),
                    reason,
                    file: finding.file.clone(),
                    line: finding.line,
                    category: finding.category.clone(),
                    description: finding.description.clone(),
                }
                .into(),
            );
        }
    }
    events
}

/// Where a finding loses effect after its reviewer was asked for evidence, or a person passed over it.
fn after_asking(
    cycle: &Cycle,
    name: &str,
    finding: &Finding,
    changed: Option<&Places<'_>>,
) -> Option<Unfounded> {
    if cycle.overruled.contains(name) && evidence::is_unrelated(finding) {
        return Some(Unfounded::LineUnrelated);
    }
    let beside = cycle.evidence_asked.contains(name) && rejections::is_beside(finding, changed);
    beside.then_some(Unfounded::BesideTheChange)
}
