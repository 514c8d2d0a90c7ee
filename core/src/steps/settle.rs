//! Failures and retries, status tokens, questions, breaks, hooks, the end of a run.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{
    AgentFailed, Conclusion, Failure, FindingLine, Hardness, HookStart, Order, QuestionAsked, QuestionKind,
    RunComplete, Stop, WiggumBreak, fitting,
};
use crate::model::{
    FailAction, Finding, HookPoint, Outcome, PROGRAM, Participant, Purpose, Reason, Role, RunStatus, Seq,
    Severity, Status,
};
use crate::rules::breaker::BreakerAction;
use crate::run::{Cycle, Run};

use crate::strategies::Patience;

use super::{accounts, budget, point, send, skip};

/// Failed attempts: retried, skipped, or the end of the run (CL-12, CL-28).
pub(crate) fn failures(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    let all_well = cycle.last_failure.is_empty();
    if let Some(handed_over) = (!all_well).then(|| hand_over(run, cycle)).flatten() {
        return Some(vec![handed_over]);
    }
    let failing = run.failing_in_a_row();
    if failing >= run.policy().retries.failures_in_a_row {
        let told: Vec<String> = cycle
            .last_failure
            .values()
            .map(|failed| format!("{}: {}", failed.archetype, failed.reason))
            .collect();
        let detail = format!("{failing} agent failures in a row; the last: {}", told.join("; "));
        return Some(break_off(run, Reason::AgentFailures, detail));
    }
    if all_well {
        return None;
    }
    let seats = run.seats();
    let (mut events, mut starts) = (Vec::new(), Vec::new());
    let mut asked = BTreeSet::new();
    for seat in seats.iter() {
        let name = &seat.archetype;
        let Some(failed) = cycle.last_failure.get(name).filter(|_| owes(cycle, seat)) else { continue };
        if failed.kind == Failure::NoWork && matches!(cycle.errand, Some((Purpose::Tests, _))) {
            let decision = "no tests came; the run goes on".to_owned();
            events.push(point(name, "AF-063", failed.reason.clone(), decision));
            continue;
        }
        match verdict_on(run, cycle, seat, failed) {
            Next::Again if accounts::is_held(run, name, &mut asked) => {}
            Next::Again => {
                events.push(point(name, "CL-12", failed.reason.clone(), tried_again(failed)));
                let note = retry_note(cycle, seat, failed);
                let tried = cycle.failures.get(name).copied().unwrap_or(0);
                let mut start = send(run, cycle, seat, Purpose::Retry, note);
                if let (Conclusion::Order(Order::AgentStart(start)), Some(Patience::RetryAfter(ms))) =
                    (&mut start, run.rules().patience(run, failed.kind, tried))
                {
                    start.wait_ms = ms;
                }
                starts.push(start);
            }
            Next::Without if cycle.shadowed.contains_key(name) => {
                let decision = "no corrected answer came; the earlier one counts".to_owned();
                events.push(point(name, "AF-138", failed.reason.clone(), decision));
            }
            Next::Without => {
                events.push(skip(name, &format!("failed: {}", failed.reason), true));
                let decision = "the run goes on without it".to_owned();
                events.push(point(name, "CL-12", failed.reason.clone(), decision));
            }
            Next::End(status, reason) => {
                let detail = format!("the {name} failed: {}", failed.reason);
                return Some(finish(run, status, reason, detail));
            }
            Next::UsedUp => return Some(stop(run, &budget::without(name, &failed.reason))),
            Next::Park(after_ms) => {
                let detail = format!("the {name} failed: {}", failed.reason);
                return Some(accounts::park(run, &run.account_of(&run.agent_for(name)), detail, after_ms));
            }
        }
    }
    events.append(&mut starts);
    (!events.is_empty()).then_some(events)
}

/// An agent lost in a crash is started again as it was.
pub(crate) fn send_again(run: &Run, cycle: &Cycle, seat: &Participant) -> Conclusion {
    let Some(failed) = cycle.last_failure.get(&seat.archetype) else {
        return send(run, cycle, seat, Purpose::Work, String::new());
    };
    send(run, cycle, seat, Purpose::Retry, retry_note(cycle, seat, failed))
}

/// C6: if an account is not available and there is a fallback, it takes over.
fn hand_over(run: &Run, cycle: &Cycle) -> Option<Conclusion> {
    run.seats().iter().filter(|seat| owes(cycle, seat)).find_map(|seat| {
        let failed = cycle.last_failure.get(&seat.archetype)?;
        let out_of_reach = match verdict_on(run, cycle, seat, failed) {
            Next::Park(_) => true,
            Next::Without | Next::End(..) => is_of_account(failed.kind),
            Next::Again | Next::UsedUp => false,
        };
        accounts::hand_over(run, &seat.archetype, &failed.reason).filter(|_| out_of_reach)
    })
}

/// An agent on another account may succeed.
fn is_of_account(kind: Failure) -> bool {
    kind.is_busy() || matches!(kind, Failure::Auth | Failure::NotStarted)
}

fn tried_again(failed: &AgentFailed) -> String {
    match (failed.kind, failed.brief_chars) {
        (Failure::ContextTooLong, 0) => "tried again with a shorter brief (AF-156)".to_owned(),
        (Failure::ContextTooLong, chars) => {
            format!("tried again with a shorter brief than the {chars} characters of the last (AF-156)")
        }
        (_, _) => "tried again".to_owned(),
    }
}

/// What went wrong, and what the Maker is still to do.
fn retry_note(cycle: &Cycle, seat: &Participant, failed: &AgentFailed) -> String {
    let errand =
        cycle.errand.as_ref().filter(|_| seat.role == Role::Maker).map_or("", |(_, note)| note.as_str());
    if failed.kind.is_busy() {
        return errand.to_owned();
    }
    let kept = failed.kept_as.as_ref().map(|kept| format!(" What it had done is kept as {kept}."));
    let note = format!("Your last attempt could not be used: {}.{}", failed.reason, kept.unwrap_or_default());
    if errand.is_empty() { note } else { format!("{note}\n\n{errand}") }
}

/// A Maker sent back for tests or a fix has an answer already; its failure still counts.
fn owes(cycle: &Cycle, seat: &Participant) -> bool {
    !cycle.absent.contains_key(&seat.archetype)
        && (!cycle.answers.contains_key(&seat.archetype) || seat.role == Role::Maker)
}

enum Next {
    Again,
    Without,
    End(RunStatus, Reason),
    /// It was stopped for its cost, and the cycle can't do without it.
    UsedUp,
    /// The account is out of reach, for so long where that is known.
    Park(Option<u64>),
}

fn verdict_on(run: &Run, cycle: &Cycle, seat: &Participant, failed: &AgentFailed) -> Next {
    let retries = &run.policy().retries;
    let tried = |tally: &BTreeMap<String, u32>| tally.get(&seat.archetype).copied().unwrap_or(0);
    if is_of_account(failed.kind) && accounts::is_replaced(run, &seat.archetype) {
        return Next::Again;
    }
    // No agent on the same account would succeed, and asking again makes it worse.
    if failed.kind == Failure::Auth {
        return Next::End(RunStatus::Stopped, Reason::NotSignedIn);
    }
    if failed.kind.is_busy() {
        return match accounts::refused(run, &seat.archetype, failed, tried(&cycle.busy)) {
            BreakerAction::Wait(_) => Next::Again,
            BreakerAction::Park(after_ms) => Next::Park(after_ms),
        };
    }
    // The same prompt would not fit a third time either (M-G5).
    if failed.kind == Failure::ContextTooLong
        && cycle.cramped.get(&seat.archetype).is_none_or(|(times, _)| *times <= 1)
        && tried(&cycle.failures) <= retries.attempts
    {
        return Next::Again;
    }
    match run.rules().patience(run, failed.kind, tried(&cycle.failures)) {
        Some(Patience::RetryAfter(_)) => return Next::Again,
        Some(Patience::Exhausted) => return Next::End(RunStatus::Failed, Reason::AgentFailures),
        None => {}
    }
    let needed = match seat.role {
        Role::Explorer | Role::Creator | Role::Maker | Role::Gatekeeper => true,
        Role::Reviewer => run.rules().needs_reviewer(run, cycle, failed),
    };
    // Another attempt would cost as much again.
    if failed.kind == Failure::Budget {
        return if needed { Next::UsedUp } else { Next::Without };
    }
    // A review that can't be read is worth another attempt, also where others have been read.
    let unread = failed.kind == Failure::Garbled;
    if !needed && unread && tried(&cycle.failures) <= retries.attempts {
        return Next::Again;
    }
    if !needed {
        return Next::Without;
    }
    if failed.kind == Failure::NotStarted {
        return Next::End(RunStatus::Failed, Reason::AgentFailures);
    }
    if tried(&cycle.failures) <= retries.attempts && failed.kind != Failure::ContextTooLong {
        return Next::Again;
    }
    match (seat.role, failed.kind) {
        (Role::Gatekeeper | Role::Reviewer, Failure::Garbled | Failure::Empty) => {
            Next::End(RunStatus::Failed, Reason::UnparsableReview)
        }
        (_, Failure::NoWork) => Next::End(RunStatus::Stopped, Reason::NoChange),
        (_, _) => Next::End(RunStatus::Failed, Reason::AgentFailures),
    }
}

/// AF-040: an agent that needs something from a person, or is blocked.
pub(crate) fn statuses(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    for (name, answered) in &cycle.answers {
        match answered.answer.status {
            Status::Blocked => {
                let detail = format!("the {name} is blocked: {}", or_unsaid(&answered.answer.remark));
                return Some(finish(run, RunStatus::Stopped, Reason::Blocked, detail));
            }
            Status::NeedsContext => {
                let question = format!("The {name} needs to know: {}", or_unsaid(&answered.answer.remark));
                let unanswered = Outcome {
                    status: RunStatus::AwaitingAnswer,
                    reason: Reason::NeedsContext,
                    detail: question.clone(),
                };
                let asked = QuestionAsked {
                    kind: QuestionKind::NeedsContext,
                    archetype: name.clone(),
                    question,
                    details: Vec::new(),
                    unanswered,
                };
                return Some(asks(run, asked, RunStatus::Stopped, Reason::NeedsContext));
            }
            Status::Unverified | Status::Done | Status::DoneWithConcerns => {}
        }
    }
    None
}

fn or_unsaid(remark: &str) -> &str {
    if remark.is_empty() { "it did not say what" } else { remark }
}

/// Asks, unless the same has been asked too often already.
pub(crate) fn asks(run: &Run, question: QuestionAsked, status: RunStatus, reason: Reason) -> Vec<Conclusion> {
    let times = run.questions.get(&question.kind).copied().unwrap_or(0);
    if times >= run.policy().retries.questions {
        let detail = format!("asked {times} times and still open: {}", question.question);
        return finish(run, status, reason, detail);
    }
    vec![question.into()]
}

/// Unattended: the run ends with the question open.
pub(crate) fn park(run: &Run, seq: Seq, question: &QuestionAsked) -> Vec<Conclusion> {
    let mut complete = completed(run, question.unanswered.clone());
    complete.question = Some(seq);
    with_last_hook(run, complete)
}

/// The account is not available: the run ends, and can be resumed once it is.
pub(crate) fn park_until(run: &Run, detail: String, reopens_at: Option<u64>) -> Vec<Conclusion> {
    let outcome = Outcome { status: RunStatus::Stopped, reason: Reason::ProviderBusy, detail };
    let mut complete = completed(run, outcome);
    complete.reopens_at = reopens_at;
    with_last_hook(run, complete)
}

pub(crate) fn discard(run: &Run) -> Vec<Conclusion> {
    let detail = "discarded; the work stays under the keep refs".to_owned();
    finish(run, RunStatus::Stopped, Reason::Discarded, detail)
}

/// Stops for a reason found at the end of a cycle, with a Wiggum Break where it is one.
pub(crate) fn stop(run: &Run, why: &Stop) -> Vec<Conclusion> {
    match why.breaks {
        None => finish(run, RunStatus::Stopped, why.reason, why.detail.clone()),
        Some(hardness) => wiggum(run, why.reason, why.detail.clone(), hardness),
    }
}

pub(crate) fn break_off(run: &Run, reason: Reason, detail: String) -> Vec<Conclusion> {
    wiggum(run, reason, detail, Hardness::Hard)
}

/// AF-155: the break is written before the end.
fn wiggum(run: &Run, trigger: Reason, detail: String, hardness: Hardness) -> Vec<Conclusion> {
    if run.broke.is_some() {
        return finish(run, RunStatus::WiggumBreak, trigger, detail);
    }
    let phase = run.cycle().map_or("plan", |cycle| cycle.phase.name());
    let event = WiggumBreak {
        trigger,
        hardness,
        hard: hardness == Hardness::Hard,
        layer: layer(trigger).to_owned(),
        run_state: format!("cycle {} of {}, {phase}", run.number(), run.max_cycles),
        unresolved_findings: unresolved(run),
        detail,
    };
    vec![point(PROGRAM, "AF-152", event.detail.clone(), format!("{} break", name(hardness))), event.into()]
}

fn name(hardness: Hardness) -> &'static str {
    match hardness {
        Hardness::Soft => "soft",
        Hardness::Hard => "hard",
    }
}

/// CL-30: one circuit breaker, and which layer triggered it.
fn layer(trigger: Reason) -> &'static str {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rest is about findings that do not go away")]
    match trigger {
        Reason::ShadowStrikes => "archetype",
        Reason::SystemShadow => "system",
        Reason::AgentFailures | Reason::PostMergeTests | Reason::Checkpoint | Reason::Budget => "policy",
        _ => "convergence",
    }
}

pub(crate) fn finish(run: &Run, status: RunStatus, reason: Reason, detail: String) -> Vec<Conclusion> {
    with_last_hook(run, completed(run, Outcome { status, reason, detail }))
}

fn completed(run: &Run, outcome: Outcome) -> RunComplete {
    let exit_code = outcome.exit_code();
    let lands = run.landing.reverted.is_none() || outcome.reason == Reason::Reverted;
    let merged_oid = run.landing.merged.as_ref().filter(|_| lands).map(|merged| merged.commit.clone());
    RunComplete {
        status: outcome.status,
        reason: outcome.reason,
        detail: outcome.detail,
        exit_code,
        cycles: run.number(),
        agents_total: run.agents_total,
        fixes_total: run.fixes_total,
        branch: run.request.as_ref().map(|request| request.branch.clone()).unwrap_or_default(),
        merged_oid,
        question: None,
        unresolved: unresolved(run),
        reopens_at: None,
        revert_refused: None,
    }
}

/// A person's request to take the landing back is refused: the run is merged as before.
pub(crate) fn still_merged(run: &Run, why: Reason, detail: String) -> Vec<Conclusion> {
    let mut complete =
        completed(run, Outcome { status: RunStatus::Merged, reason: Reason::Approved, detail });
    complete.revert_refused = Some(why);
    with_last_hook(run, complete)
}

fn with_last_hook(run: &Run, complete: RunComplete) -> Vec<Conclusion> {
    match order_hook(run, HookPoint::RunComplete, Some(&complete)) {
        Some(order) => vec![order],
        None => vec![complete.into()],
    }
}

/// A hook that has not run yet, or the end because it failed and may abort.
pub(crate) fn hook(run: &Run, at: HookPoint) -> Option<Vec<Conclusion>> {
    if let Some(order) = order_hook(run, at, None) {
        return Some(vec![order]);
    }
    let done = run.hooks.get(&at)?;
    if at == HookPoint::PostMerge {
        // The change has landed: nothing to abort.
        return None;
    }
    let aborts =
        run.policy().hooks.iter().any(|hook| hook.point == at && hook.fail_action == FailAction::Abort);
    if done.ok || !aborts {
        return None;
    }
    let detail = format!("the {} hook stopped the run: {}", at.name(), done.reason);
    let (status, reason) = (RunStatus::Stopped, Reason::HookAbort);
    Some(match at {
        HookPoint::PreMerge => run.rules().not_landed(run, status, reason, detail),
        HookPoint::RunStart | HookPoint::PostMerge | HookPoint::RunComplete => {
            finish(run, status, reason, detail)
        }
    })
}

fn order_hook(run: &Run, at: HookPoint, complete: Option<&RunComplete>) -> Option<Conclusion> {
    let hook = run.policy().hooks.iter().find(|hook| hook.point == at)?;
    if run.hooks.contains_key(&at) {
        return None;
    }
    let mut env = BTreeMap::new();
    let mut set = |name: &str, value: String| env.insert(format!("ARCHEFLOW_{name}"), value);
    let request = run.request.as_ref()?;
    match at {
        HookPoint::RunStart => {
            set("WORKFLOW", request.workflow.name().to_owned());
        }
        HookPoint::PreMerge | HookPoint::PostMerge => {
            set("BRANCH", request.branch.clone());
            set("TARGET", request.base.target.clone());
        }
        HookPoint::RunComplete => {
            set("STATUS", complete.map(|complete| complete.status.name().to_owned()).unwrap_or_default());
            set("CYCLES", run.number().to_string());
        }
    }
    let (command, fail_action) = (hook.command.clone(), hook.fail_action);
    Some(HookStart { point: at, command, fail_action, env }.into())
}

/// The open findings: for the person who decides, and those with which a change landed.
pub(crate) fn unresolved(run: &Run) -> Vec<FindingLine> {
    // Parts are about different code: what was found in one of them is still open.
    let cycles = if run.rules().cycles_are_parts() { 0 } else { run.cycles.len().saturating_sub(1) };
    run.cycles.iter().skip(cycles).flat_map(unresolved_in).collect()
}

fn unresolved_in(cycle: &Cycle) -> Vec<FindingLine> {
    match &cycle.boundary {
        Some(boundary) => boundary
            .open
            .iter()
            .map(|found| FindingLine {
                location: place(&found.file, found.line),
                severity: found.severity,
                category: found.category.clone(),
                description: found.description.clone(),
                fix: found.fix.clone(),
                source: found.source.join("+"),
            })
            .collect(),
        None => {
            let mut weighed = cycle.weighed();
            weighed.sort();
            let grave = weighed.iter().filter(|finding| finding.severity > Severity::Info);
            fitting(grave.map(line).collect(), usize::MAX)
        }
    }
}

pub(crate) fn line(finding: &Finding) -> FindingLine {
    FindingLine {
        location: finding.location.clone(),
        severity: finding.severity,
        category: finding.category.clone(),
        description: finding.description.clone(),
        fix: finding.fix.clone(),
        source: finding.source.clone(),
    }
}

fn place(file: &str, line: u32) -> String {
    match (file, line) {
        ("", _) => "-".to_owned(),
        (file, 0) => file.to_owned(),
        (file, line) => format!("{file}:{line}"),
    }
}
