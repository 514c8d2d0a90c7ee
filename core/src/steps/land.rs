//! Landing (D-03): build the merge, test exactly that tree, ask, record the intent, move the branch, test again.

use crate::event::{
    Built, Conclusion, FindingRaised, MergeIntent, MergeStart, QuestionAsked, QuestionKind, Refusal,
    RevertIntent, Tested, TestsStart,
};
use crate::model::{
    Counted, Finding, HookPoint, Oid, OnPostMergeFailure, Outcome, PROGRAM, Reason, RunStatus, Severity,
    Sign, counted,
};
use crate::rules::red_base::{AddedFailures, added_failures};
use crate::rules::unmade::unmade_line;
use crate::rules::{evidence, raised, ran};
use crate::run::{Cycle, LandingTests, Merged, Run};

use super::act::standing;
use super::point;
use super::preflight::told;
use super::settle::{self, hook};
use crate::text::{branch_name, one_line};

/// A person asked for the landing, and there is something to land.
pub(crate) fn is_agreed(run: &Run) -> bool {
    run.landing.agreed && run.work.is_some() && run.rules().lands()
}

pub(crate) fn land(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let landing = &run.landing;
    if let Some(merged) = &landing.merged {
        return landed(run, cycle, merged);
    }
    let Some(built) = &landing.built else { return build(run, 1) };
    let (old, commit, tree) = match built {
        Built::Candidate { old, commit, tree } => (old, commit, tree),
        // The obstacle may be permanent: try again without the other runs.
        Built::Conflict { .. } | Built::Nothing if !landing.chain.is_empty() => {
            return wait(run, "it does not go together with the others");
        }
        Built::Conflict { paths } => {
            let detail = format!("the change conflicts with the target in {}", listed(paths));
            return run.rules().not_landed(run, RunStatus::Stopped, Reason::MergeConflict, detail);
        }
        Built::Nothing => {
            let detail = "nothing to merge: the target has this content already".to_owned();
            return run.rules().not_landed(run, RunStatus::Stopped, Reason::NoChange, detail);
        }
        Built::BaseGone { now } => {
            let detail =
                format!("the target no longer contains the commit the run began from (it is at {now})");
            return run.rules().not_landed(run, RunStatus::Stopped, Reason::BaseMoved, detail);
        }
        Built::NotSigned { what } => {
            let detail = format!("the commit could not be signed, so nothing landed: {what}");
            return run.rules().not_landed(run, RunStatus::AwaitingMerge, Reason::SigningFailed, detail);
        }
        Built::Fault { what } => {
            return run.rules().not_landed(run, RunStatus::Failed, Reason::GitFault, what.clone());
        }
    };
    if let Some((why, detail)) = &landing.refused {
        return refused(run, *why, detail);
    }
    if let Some(command) = &run.policy().test_command {
        let Some(tested) = &landing.tested else { return vec![tests(run, commit, tree, command, false)] };
        match judged(run, tested) {
            Judged::Pass | Judged::Unknown => {}
            Judged::AsBefore if landing.red_noted => {}
            Judged::AsBefore => return vec![as_before(tested)],
            Judged::Broken => {
                let detail = format!("the test command can't be run ({command}): {}", told(&tested.lines));
                return run.rules().not_landed(run, RunStatus::Failed, Reason::TestCommandBroken, detail);
            }
            Judged::Fail(added) => return tests_failed(run, cycle, command, tested, &added),
        }
        if let Some(events) = weaker(run, cycle, tested).or_else(|| old_tests(run, cycle, tested)) {
            return events;
        }
    }
    if let Some(events) = hook(run, HookPoint::PreMerge) {
        return events;
    }
    if let Some(events) = agree(run, cycle, old, commit) {
        return events;
    }
    let target = run.request.as_ref().map(|request| request.base.target.clone()).unwrap_or_default();
    let (old, new, tree) = (old.clone(), commit.clone(), tree.clone());
    vec![MergeIntent { target, old, new, tree, strategy: run.policy().git.merge_strategy }.into()]
}

fn build(run: &Run, attempt: u32) -> Vec<Conclusion> {
    let (Some(request), Some(work)) = (&run.request, &run.work) else {
        return run.rules().not_landed(
            run,
            RunStatus::Stopped,
            Reason::NoChange,
            "there is no work to land".to_owned(),
        );
    };
    let start = MergeStart {
        work: work.commit.clone(),
        base: request.base.commit.clone(),
        target: request.base.target.clone(),
        strategy: run.policy().git.merge_strategy,
        attempt,
        before: run.landing.before.clone(),
        with: run.landing.with.clone(),
    };
    vec![start.into()]
}

/// Approved as before, and not landed: the obstacle concerns several runs, and the sprint that combined them separates
/// them.
fn wait(run: &Run, why: &str) -> Vec<Conclusion> {
    let others: Vec<&str> = run.landing.chain.iter().map(|link| link.run_id.as_str()).collect();
    let detail = format!("not landed together with {}: {why}", others.join(", "));
    settle::finish(run, RunStatus::AwaitingMerge, Reason::Approved, detail)
}

pub(super) fn tests(run: &Run, commit: &Oid, tree: &Oid, command: &str, post_merge: bool) -> Conclusion {
    let (commit, tree, command) = (commit.clone(), tree.clone(), command.to_owned());
    TestsStart { commit, tree, command, limit_ms: run.policy().limits.tests_ms, post_merge }.into()
}

/// What the tests of a candidate mean for landing it.
pub(super) enum Judged {
    Pass,
    /// They fail, and each failing test failed before the change (U-10).
    AsBefore,
    /// They fail as they did before the change. The output does not show whether in the same tests, or whether the others ran.
    Unknown,
    /// These failing tests are new, where the output names them.
    Fail(Vec<String>),
    Broken,
}

pub(super) fn judged(run: &Run, tests: &LandingTests) -> Judged {
    let before = run.preflight.as_ref().and_then(|done| done.tests.as_ref());
    let red = before.filter(|before| run.accepts_red_base() && before.result == Tested::Failed);
    match (tests.result, red) {
        (Tested::Passed, _) => Judged::Pass,
        (Tested::Broken, _) => Judged::Broken,
        (Tested::TimedOut, _) | (Tested::Failed, None) => Judged::Fail(Vec::new()),
        (Tested::Failed, Some(before)) => match added_failures(&before.failing, &tests.failing) {
            AddedFailures::None if tests.ran.unproven.is_empty() => Judged::AsBefore,
            AddedFailures::None => Judged::Unknown,
            AddedFailures::Some(added) => Judged::Fail(added),
            AddedFailures::Unknown => Judged::Unknown,
        },
    }
}

/// The failing tests by name, with the first lines that say why.
pub(super) fn what_fails(tests: &LandingTests) -> String {
    match tests.failing.as_slice() {
        [] => told(&tests.lines),
        failing => {
            let unnamed = |line: &&String| !failing.iter().any(|name| line.contains(name.as_str()));
            let why: Vec<String> = tests.lines.iter().filter(unnamed).cloned().collect();
            format!("{}: {}", told(failing), told(&why))
        }
    }
}

fn as_before(tests: &LandingTests) -> Conclusion {
    let input = format!("{} failing, before the change, too", counted(tests.failing.len(), "test"));
    point(PROGRAM, "U-10", input, "no failing test is added: the tests count as passed".to_owned())
}

fn refused(run: &Run, why: Refusal, detail: &str) -> Vec<Conclusion> {
    match why {
        Refusal::Moved if run.landing.attempts < run.policy().retries.moved_base => {
            build(run, run.landing.attempts + 1)
        }
        Refusal::Moved => {
            let detail = format!("the target kept moving; tried {} times ({detail})", run.landing.attempts);
            run.rules().not_landed(run, RunStatus::Stopped, Reason::BaseMoved, detail)
        }
        Refusal::Dirty => {
            run.rules().not_landed(run, RunStatus::AwaitingMerge, Reason::DirtyTree, detail.to_owned())
        }
        Refusal::Busy => {
            run.rules().not_landed(run, RunStatus::AwaitingMerge, Reason::TargetBusy, detail.to_owned())
        }
        Refusal::Fault => run.rules().not_landed(run, RunStatus::Failed, Reason::GitFault, detail.to_owned()),
    }
}

/// A failed test command is a finding of the program (D-07), and the cycle is concluded again with it. A person who
/// asked for the merge is shown the failure instead.
fn tests_failed(
    run: &Run,
    cycle: &Cycle,
    command: &str,
    tests: &LandingTests,
    added: &[String],
) -> Vec<Conclusion> {
    let what = if added.is_empty() { what_fails(tests) } else { told(added) };
    let detail = match added {
        [] => format!("the test command fails on the merged tree ({command}): {what}"),
        added => {
            let count = counted(added.len(), "test");
            format!("{count} that did not fail before fail on the merged tree ({command}): {what}")
        }
    };
    if !run.landing.chain.is_empty() {
        return wait(run, &detail);
    }
    if run.rules().agreed_to_land(run) {
        return run.rules().not_landed(run, RunStatus::Stopped, Reason::TestsFailed, detail);
    }
    raise_tests(run, cycle, detail)
}

/// Fewer tests ran than on the base: a finding of the program. A person who asked for the merge decides alone.
fn weaker(run: &Run, cycle: &Cycle, tested: &LandingTests) -> Option<Vec<Conclusion>> {
    let before = run.preflight.as_ref()?.tests.as_ref()?;
    if run.rules().agreed_to_land(run) {
        return None;
    }
    let is_known =
        |(sign, finding): &&(Sign, Finding)| *sign == Sign::TestsWeakened && finding.file.is_empty();
    if let Some((_, known)) = cycle.raised.iter().find(is_known) {
        // The user holds it for less, or a person accepted it, or it is still there.
        let counts = known.severity == Severity::Critical && standing(run, cycle).contains(known);
        let detail = known.description.clone();
        let not_landed = || run.rules().not_landed(run, RunStatus::Stopped, Reason::TestsFailed, detail);
        return counts.then(not_landed);
    }
    let counted = ran::weaker(&before.ran, &tested.ran)?;
    if !run.landing.chain.is_empty() {
        return Some(wait(run, &counted.detail));
    }
    let finding = raised::finding(&counted, &run.policy().raised);
    Some(vec![FindingRaised { sign: Sign::TestsWeakened, finding }.into()])
}

/// The tests from before the change do not pass on it: a finding of the program, once in a cycle.
fn old_tests(run: &Run, cycle: &Cycle, tested: &LandingTests) -> Option<Vec<Conclusion>> {
    if cycle.has_raised(Sign::OldTestsFail) || run.rules().agreed_to_land(run) {
        return None;
    }
    let counted = ran::old_fail(&tested.ran)?;
    let finding = raised::finding(&counted, &run.policy().raised);
    Some(vec![FindingRaised { sign: Sign::OldTestsFail, finding }.into()])
}

fn raise_tests(run: &Run, cycle: &Cycle, detail: String) -> Vec<Conclusion> {
    if cycle.has_raised(Sign::TestsFailing) {
        return run.rules().not_landed(run, RunStatus::Stopped, Reason::TestsFailed, detail);
    }
    let counted = Counted { sign: Sign::TestsFailing, path: String::new(), line: 0, detail };
    let mut finding = raised::finding(&counted, &run.policy().raised);
    finding.description = format!("integration test failure: {}", finding.description);
    vec![FindingRaised { sign: Sign::TestsFailing, finding }.into()]
}

/// The merge question (BX-03, D-05): asked unless the user agreed in advance and there is no objection.
fn agree(run: &Run, cycle: &Cycle, old: &Oid, commit: &Oid) -> Option<Vec<Conclusion>> {
    let landing = &run.landing;
    if run.rules().agreed_to_land(run) {
        return None;
    }
    let doubts = if run.policy().evidence.enabled { doubtful(cycle) } else { Vec::new() };
    let unclear = landing.tested.as_ref().filter(|tests| matches!(judged(run, tests), Judged::Unknown));
    let untested = run.policy().test_command.is_none() && !run.policy().no_tests;
    if run.auto_merge() && doubts.is_empty() && unclear.is_none() && !untested {
        return None;
    }
    let (reason, detail) = match (untested, doubts.is_empty()) {
        (false, _) if unclear.is_some() => {
            (Reason::RedBase, unclear.map_or_else(String::new, unclear_failure))
        }
        (true, _) => (
            Reason::NoTestCommand,
            "approved, but there is no test command: landing needs your yes".to_owned(),
        ),
        (false, false) => (
            Reason::SecurityDowngraded,
            "approved, but a security CRITICAL was set aside for lack of evidence".to_owned(),
        ),
        (false, true) => (Reason::Approved, "approved; landing needs your yes".to_owned()),
    };
    if landing.answer == Some(false) {
        let detail = "approved; you said no to landing it now".to_owned();
        return Some(run.rules().not_landed(run, RunStatus::AwaitingMerge, Reason::Approved, detail));
    }
    let target = run.request.as_ref().map(|request| request.base.target.as_str()).unwrap_or_default();
    let target = branch_name(target);
    let mut details = vec![format!("{target}: {} -> {}", short(old), short(commit))];
    if let Some(work) = &run.work {
        let files = counted(work.files.len() + work.files_left_out as usize, "file");
        details.push(format!("{files} changed"));
    }
    details.extend(unmade_line(&run.corrections.unmade));
    details.extend(run.corrections.change_notes.iter().map(|note| one_line(note)));
    let red = landing.tested.as_ref().filter(|tests| tests.result != Tested::Passed);
    details.push(match (&run.policy().test_command, untested) {
        (Some(command), _) if unclear.is_some() => {
            format!("TESTS FAIL, as they did before the change: {command}")
        }
        (Some(command), _) if red.is_some() => {
            let count = counted(red.map_or(0, |tests| tests.failing.len()), "test");
            format!("no test fails on exactly this tree that did not before ({count} do): {command}")
        }
        (Some(command), _) => format!("tests passed on exactly this tree: {command}"),
        (None, true) => "NOT TESTED: there is no test command".to_owned(),
        (None, false) => "not tested, as you asked (--no-tests)".to_owned(),
    });
    details.extend(unclear.iter().flat_map(|tests| tests.lines.iter().take(3).cloned()));
    details.extend(unclear.map(|tests| tests.ran.unproven.clone()).filter(|why| !why.is_empty()));
    let old = cycle.raised.iter().filter(|(sign, _)| *sign == Sign::OldTestsFail);
    details.extend(old.map(|(_, finding)| format!("{}: {}", finding.severity.name(), finding.description)));
    details.extend(doubts.into_iter().map(|doubt| format!("set aside for lack of evidence: {doubt}")));
    let question = QuestionAsked {
        kind: QuestionKind::Merge,
        archetype: String::new(),
        question: format!("Land this change on {target}?"),
        details,
        unanswered: Outcome { status: RunStatus::AwaitingMerge, reason, detail },
    };
    Some(vec![question.into()])
}

/// Why a person has to look at tests that fail as they did before.
fn unclear_failure(tests: &LandingTests) -> String {
    let why = match tests.ran.unproven.as_str() {
        "" => "their output does not name which",
        why => why,
    };
    format!("approved, but the tests fail as they did before, and {why}")
}

/// D-05: security CRITICALs that were downgraded for lack of evidence.
fn doubtful(cycle: &Cycle) -> Vec<String> {
    let mut doubts = Vec::new();
    for (name, review) in cycle.reviewers() {
        for finding in &review.findings {
            let grave = finding.severity == Severity::Critical && finding.category == "security";
            if grave && evidence::weigh(finding).is_some() {
                doubts.push(format!("{name}: {} {}", finding.location, finding.description));
            }
        }
    }
    doubts
}

/// After the branch has moved: the hook, the tests again, the end.
fn landed(run: &Run, cycle: &Cycle, merged: &Merged) -> Vec<Conclusion> {
    if let Some(events) = hook(run, HookPoint::PostMerge) {
        return events;
    }
    if let Some(events) = second_net(run, cycle, merged) {
        return events;
    }
    run.rules().landed(run)
}

/// The end of a run whose change is in its branch.
pub(crate) fn landed_for_good(run: &Run) -> Vec<Conclusion> {
    let mut detail = run.landing.merged.as_ref().map_or(String::new(), |merged| {
        let target = branch_name(&merged.target);
        format!("landed on {target} as {}", short(&merged.commit))
    });
    if let Some(with) = &run.landing.with {
        detail.push_str(&format!(", tested as {} with {}", short(&with.tip), with.run_id));
    }
    settle::finish(run, RunStatus::Merged, Reason::Approved, detail)
}

/// AF-084, AF-085, CL-11: tests once more if configured. A failure is reverted with a new commit; then the run stops, or
/// begins another cycle if a person is there.
fn second_net(run: &Run, cycle: &Cycle, merged: &Merged) -> Option<Vec<Conclusion>> {
    let command = run.policy().test_command.as_ref().filter(|_| run.policy().git.post_merge_test)?;
    let landing = &run.landing;
    let Some(Built::Candidate { tree, .. }) = &landing.built else { return None };
    let Some(retested) = &landing.retested else {
        return Some(vec![tests(run, &merged.commit, tree, command, true)]);
    };
    // Where nobody can tell, a person has agreed to the landing.
    let Judged::Fail(added) = judged(run, retested) else { return None };
    let what = if added.is_empty() { what_fails(retested) } else { told(&added) };
    let detail = format!("the tests fail after landing: {what}");
    if let Some(why) = &landing.revert_refused {
        let detail = format!("{detail}; the merge could not be taken back: {why}");
        return Some(settle::break_off(run, Reason::PostMergeTests, detail));
    }
    if landing.reverted.is_none() {
        let (target, landed, old) = (merged.target.clone(), merged.commit.clone(), merged.old.clone());
        return Some(vec![RevertIntent { target, landed, old, tested: None }.into()]);
    }
    if !landing.chain.is_empty() {
        // Which of the runs it was, only landing them one by one can show.
        return Some(wait(run, &format!("{detail}; the merge was taken back")));
    }
    Some(run.rules().taken_back(run, cycle, detail))
}

/// The merge was reverted: a finding for another cycle, or a break.
pub(crate) fn after_revert(run: &Run, cycle: &Cycle, detail: String) -> Vec<Conclusion> {
    let cycles_left = cycle.number < run.max_cycles;
    let by_default =
        if run.attended() && cycles_left { OnPostMergeFailure::CycleBack } else { OnPostMergeFailure::Halt };
    let first = run.reverts < 2;
    match run.policy().git.on_post_merge_failure.unwrap_or(by_default) {
        OnPostMergeFailure::CycleBack if first && cycles_left => raise_tests(run, cycle, detail),
        OnPostMergeFailure::CycleBack | OnPostMergeFailure::Halt => {
            let detail = format!("{detail}; the merge was taken back");
            settle::break_off(run, Reason::PostMergeTests, detail)
        }
    }
}

pub(super) fn listed(paths: &[String]) -> String {
    match paths {
        [] => "files git did not name".to_owned(),
        [a, b, c, rest @ ..] if !rest.is_empty() => format!("{a}, {b}, {c} and {} more", rest.len()),
        paths => paths.join(", "),
    }
}

pub(super) fn short(oid: &str) -> &str {
    oid.get(..10).unwrap_or(oid)
}
