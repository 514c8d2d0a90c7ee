//! A review of a change that is there already (AF-003): only Check, once for every part of the diff, everybody side by
//! side, and nothing lands.

use std::cmp::Reverse;

use crate::event::{
    AgentFailed, Conclusion, CycleBoundary, EvidenceStart, NextAction, ReviewOpened, Stop, fitting,
};
use crate::model::{
    Finding, PROGRAM, Participant, Phase, Purpose, Reason, Role, RunStatus, Seq, Severity, Sign, Strategy,
    Workflow, counted, review_team,
};
use crate::rules::convergence;
use crate::run::{Cycle, Run};

use crate::steps::{self, budget, check, enter, finish, point, rejections, send, stop, system};
use crate::strategies::StrategyRules;

use super::{ReviewStrategy, of_finding};

impl StrategyRules for ReviewStrategy {
    fn seats_key(&self, _: Workflow) -> &'static str {
        Strategy::Review.name()
    }

    fn team(&self, _: Workflow) -> Vec<Participant> {
        review_team()
    }

    /// Some reviewers look at the whole change once, with its first part.
    fn skips(&self, run: &Run, archetype: &str) -> bool {
        run.number() > 1
            && run.review.as_ref().is_some_and(|opened| opened.once.iter().any(|name| name == archetype))
    }

    fn begin(&self, run: &Run) -> Vec<Conclusion> {
        run.review.as_ref().map_or_else(Vec::new, |opened| begin(run, opened))
    }

    fn next(&self, run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
        steps::before_phase(run, cycle).unwrap_or_else(|| match cycle.phase {
            Phase::Plan | Phase::Do | Phase::Check => check_part(run, cycle),
            Phase::Act => act(run, cycle),
        })
    }

    fn is_opened(&self, run: &Run) -> bool {
        run.review.is_some()
    }

    /// Nothing of a review ever lands (AF-003).
    fn lands(&self) -> bool {
        false
    }

    fn can_roll_back(&self) -> bool {
        false
    }

    fn cycles_are_parts(&self) -> bool {
        true
    }

    fn takes_shadowed_answers(&self) -> bool {
        true
    }

    /// Where no gatekeeper has to answer, a change nobody looked at would count as approved.
    fn needs_reviewer(&self, run: &Run, cycle: &Cycle, failed: &AgentFailed) -> bool {
        !spares(run, cycle, &failed.archetype)
    }

    /// One phase and nothing that could land: it ends again as it ended.
    fn asked_to_land(&self, run: &mut Run, _: Seq) -> bool {
        run.reopen();
        true
    }

    fn reentered(&self, run: &mut Run) -> bool {
        run.reopen();
        true
    }
}

/// Before the first part: what is reviewed, by whom, in how many parts.
fn begin(run: &Run, opened: &ReviewOpened) -> Vec<Conclusion> {
    let change = &opened.change;
    let files = u32::try_from(change.files.len()).unwrap_or(u32::MAX).saturating_add(change.files_left_out);
    let names: Vec<String> = run.seats().iter().map(|seat| seat.archetype.clone()).collect();
    let bytes: u64 = opened.parts.iter().map(|part| part.bytes).sum();
    let mut plan = format!("{}, a diff of {bytes} bytes", counted(files, "file"));
    if opened.summarised > 0 {
        plan.push_str(&format!("; {} told in a line each", counted(opened.summarised, "file")));
    }
    let parts = counted(parts(run), "part");
    vec![
        point(PROGRAM, "AF-003", opened.subject.label(), format!("a review by {}", names.join(", "))),
        point(PROGRAM, "R17", plan, format!("shown in {parts}")),
        enter(run, "start", 1, Phase::Check),
    ]
}

fn check_part(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    // What the program sees concerns the whole change, not this part of its diff.
    if cycle.number == 1 {
        let raised = check::raise(run, cycle);
        if !raised.is_empty() {
            return raised;
        }
    }
    let seats = run.seats();
    let waiting: Vec<&Participant> = seats.iter().filter(|seat| !cycle.settled(&seat.archetype)).collect();
    if !waiting.is_empty() {
        return waiting.iter().map(|seat| send(run, cycle, seat, Purpose::Work, String::new())).collect();
    }
    if cycle.answers.is_empty() {
        let detail = "nobody is left who could look at the change".to_owned();
        return finish(run, RunStatus::Stopped, Reason::ShadowStrikes, detail);
    }
    if let Some(order) = prove(run, cycle) {
        return vec![order];
    }
    let downgrades = check::weigh(run, cycle);
    if !downgrades.is_empty() {
        return downgrades;
    }
    if let Some(asked) = rejections::in_review(run, cycle) {
        return asked;
    }
    let whole = parts(run) == 1;
    let seen = if whole { system::after_check(run, cycle) } else { None };
    seen.unwrap_or_else(|| vec![enter(run, "check", cycle.number, Phase::Act)])
}

/// The next reproduction to run, one after the other: they may well use the same ports and files. The gravest findings
/// come first, whoever made them and in whatever order they were written (D-13): there may be more than are run.
fn prove(run: &Run, cycle: &Cycle) -> Option<Conclusion> {
    let opened = run.review.as_ref().filter(|opened| opened.verify)?;
    let policy = &run.policy().review;
    let tried = u32::try_from(cycle.trials.len()).unwrap_or(u32::MAX);
    if tried >= policy.trials {
        return None;
    }
    let all = cycle.reviewers().into_iter().flat_map(|(name, review)| {
        (0_u32..).zip(&review.findings).map(move |(n, finding)| (name, n, finding))
    });
    let waiting = all.filter(|(name, index, finding)| {
        finding.reproduction.is_some() && !cycle.trials.contains_key(&((*name).to_owned(), *index))
    });
    let (name, index, finding) =
        waiting.min_by_key(|(name, index, finding)| (Reverse(finding.severity), *finding, *name, *index))?;
    let reproduction = finding.reproduction.clone()?;
    let base = || run.request.as_ref().map(|request| request.base.commit.clone());
    let order = EvidenceStart {
        archetype: name.to_owned(),
        index,
        cycle: cycle.number,
        change: opened.change.commit.clone(),
        base: reproduction.regression.then(base).flatten(),
        reproduction,
        total_ms: policy.trial_ms,
    };
    Some(order.into())
}

fn act(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let Some(boundary) = &cycle.boundary else { return conclude(run, cycle) };
    match (boundary.next_action, &boundary.stop) {
        (NextAction::CycleBack, _) if cycle.number < parts(run) => {
            match run.corrections.winding_down.clone().or_else(|| budget::last_cycle(run)) {
                Some(why) => stop(run, &unfinished(run, cycle, &why)),
                None => vec![enter(run, "act", cycle.number + 1, Phase::Check)],
            }
        }
        (NextAction::CycleBack | NextAction::Merge | NextAction::Stop, why) => {
            let why = why.clone().unwrap_or_else(|| verdict(run, against(run)));
            finish(run, RunStatus::Reviewed, why.reason, why.detail)
        }
    }
}

fn parts(run: &Run) -> u32 {
    let parts = run.review.as_ref().map_or(0, |opened| opened.parts.len());
    u32::try_from(parts).unwrap_or(u32::MAX).max(1)
}

/// Findings above INFO in all parts that are concluded.
fn against(run: &Run) -> u32 {
    run.cycles.iter().filter_map(|cycle| cycle.boundary.as_ref()).map(|end| end.critical + end.warning).sum()
}

/// What was not looked at is said.
fn unfinished(run: &Run, cycle: &Cycle, why: &Stop) -> Stop {
    let left = parts(run).saturating_sub(cycle.number);
    Stop {
        detail: format!("{}; {} of the diff not reviewed", why.detail, counted(left, "part")),
        ..why.clone()
    }
}

/// The end of a part. Findings of parts are not compared with each other: they are about different code.
fn conclude(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let standing = standing(run, cycle);
    let policy = &run.policy().convergence;
    let (open, _) = convergence::follow(convergence::merge(&standing, policy), &[], policy);
    let tally = |severity| {
        let found = standing.iter().filter(|finding| finding.severity == severity).count();
        u32::try_from(found).unwrap_or(u32::MAX)
    };
    let (critical, warning) = (tally(Severity::Critical), tally(Severity::Warning));
    let last = cycle.number >= parts(run);
    let against = against(run) + critical + warning;
    let why = last.then(|| verdict(run, against));
    let boundary = CycleBoundary {
        extra_cycle: false,
        cycle: cycle.number,
        max_cycles: run.max_cycles,
        exit_condition: if last { "reviewed" } else { "parts_left" }.to_owned(),
        met: last && against == 0,
        fixes_applied: 0,
        next_action: if last { NextAction::Stop } else { NextAction::CycleBack },
        critical,
        warning,
        info: tally(Severity::Info),
        convergence: None,
        stop: why,
        open: fitting(open, usize::MAX),
        passed_over: Vec::new(),
    };
    let decided = point(
        PROGRAM,
        "AF-080",
        format!(
            "{critical} CRITICAL, {warning} WARNING, {} INFO; part {} of {}",
            boundary.info, cycle.number, run.max_cycles
        ),
        boundary.stop.as_ref().map_or_else(|| "on to the next part".to_owned(), |why| why.detail.clone()),
    );
    vec![decided, boundary.into()]
}

fn verdict(run: &Run, against: u32) -> Stop {
    let (reason, said) = match against {
        0 => (Reason::Approved, nothing_counts(run)),
        n => (Reason::FindingsOpen, format!("{} above INFO", counted(n, "finding"))),
    };
    let missing: Vec<&str> = run
        .cycles
        .iter()
        .flat_map(|cycle| cycle.absent.keys())
        .map(String::as_str)
        .collect::<std::collections::BTreeSet<_>>()
        .into_iter()
        .collect();
    let detail = match missing.as_slice() {
        [] => said,
        names => format!("{said}; not heard: {}", names.join(", ")),
    };
    Stop { reason, detail, breaks: None }
}

fn nothing_counts(run: &Run) -> String {
    let rejecting: Vec<&str> = run.cycle().into_iter().flat_map(Cycle::rejecting).collect();
    match rejecting.as_slice() {
        [] => "nothing above INFO stands against the change".to_owned(),
        names => format!("nothing above INFO counts against the change; rejected by {}", names.join(", ")),
    }
}

/// What counts, without what people accepted beforehand.
fn standing(run: &Run, cycle: &Cycle) -> Vec<Finding> {
    let accepted = run.review.as_ref().map_or(&[][..], |opened| opened.accepted.as_slice());
    let is_accepted = |finding: &Finding| {
        let sign = sign_of(cycle, finding);
        let fingerprint = of_finding(finding, sign);
        accepted.iter().any(|known| known.fingerprint == fingerprint)
    };
    let mut weighed = cycle.weighed();
    weighed.retain(|finding| accepted.is_empty() || !is_accepted(finding));
    weighed
}

fn sign_of(cycle: &Cycle, finding: &Finding) -> Option<Sign> {
    let of_program = finding.source == PROGRAM;
    cycle.raised.iter().find(|(_, raised)| of_program && raised == finding).map(|(sign, _)| *sign)
}

/// Whether a review can do without this one: somebody else is there who has answered, or still may. Whoever failed
/// beside it is no help: together they would leave a change that nobody looked at.
fn spares(run: &Run, cycle: &Cycle, archetype: &str) -> bool {
    run.seats().iter().any(|seat| {
        let name = &seat.archetype;
        let heard = cycle.answers.contains_key(name) || cycle.shadowed.contains_key(name);
        let may_be = !cycle.absent.contains_key(name) && !cycle.last_failure.contains_key(name);
        seat.role == Role::Reviewer && name != archetype && (heard || may_be)
    })
}
