//! Before the first agent is paid (U-10): the setup and test commands on the base commit. A command that can't run ends
//! the run; tests that fail there are shown to a person, who may accept them.

use crate::event::{BaseTests, Conclusion, PreflightStart, QuestionAsked, QuestionKind, Tested};
use crate::model::{Outcome, Reason, RunStatus, counted};
use crate::run::Run;

use super::settle;

/// Failing tests that a question lists.
const LISTED: usize = 10;

/// What has to happen before the run begins; `None` once nothing has to.
pub(crate) fn preflight(run: &Run) -> Option<Vec<Conclusion>> {
    let policy = run.policy();
    let setup_command = policy.setup_command.clone();
    let test_command = policy.test_command.clone().filter(|_| run.rules().tests_base());
    let nothing = setup_command.is_none() && test_command.is_none();
    if !policy.preflight || nothing || !run.rules().lands() {
        return None;
    }
    let Some(done) = &run.preflight else {
        let start = PreflightStart {
            commit: run.tip(),
            setup_command,
            test_command,
            setup_limit_ms: policy.limits.setup_ms,
            tests_limit_ms: policy.limits.tests_ms,
        };
        return Some(vec![start.into()]);
    };
    if let Some(setup) = done.setup.as_ref().filter(|setup| setup.result != Tested::Passed) {
        let command = setup_command.unwrap_or_default();
        let what = match setup.result {
            Tested::Broken => "can't be run",
            Tested::TimedOut => "takes too long",
            Tested::Passed | Tested::Failed => "fails",
        };
        let detail = format!("the setup command {what} ({command}): {}", told(&setup.lines));
        return Some(settle::finish(run, RunStatus::Failed, Reason::SetupFailed, detail));
    }
    let tests = done.tests.as_ref()?;
    let command = test_command.unwrap_or_default();
    match tests.result {
        Tested::Passed => None,
        Tested::Broken => {
            let detail = format!("the test command can't be run ({command}): {}", told(&tests.lines));
            Some(settle::finish(run, RunStatus::Failed, Reason::TestCommandBroken, detail))
        }
        Tested::Failed | Tested::TimedOut => red(run, tests, &command),
    }
}

fn red(run: &Run, tests: &BaseTests, command: &str) -> Option<Vec<Conclusion>> {
    if run.accepts_red_base() {
        return None;
    }
    let detail = format!("{}: {}", happens(tests, command), told(&tests.lines));
    if run.red_base == Some(false) {
        return Some(settle::finish(run, RunStatus::Stopped, Reason::RedBase, detail));
    }
    let mut details: Vec<String> = tests.failing.iter().take(LISTED).cloned().collect();
    if details.is_empty() {
        details.extend(tests.lines.iter().take(LISTED).cloned());
        details.push("the output names no failing test: if the tests fail later, you decide".to_owned());
    }
    if tests.failing.len() > LISTED {
        details.push(format!("and {} more", tests.failing.len() - LISTED));
    }
    if !tests.artifact.is_empty() {
        details.push(format!("log: {}", tests.artifact));
    }
    let question = QuestionAsked {
        kind: QuestionKind::RedBase,
        archetype: String::new(),
        question: "Start although the tests fail already? The change lands if no other test fails then."
            .to_owned(),
        details,
        unanswered: Outcome { status: RunStatus::AwaitingAnswer, reason: Reason::RedBase, detail },
    };
    Some(vec![question.into()])
}

fn happens(tests: &BaseTests, command: &str) -> String {
    let commit = format!("before any change ({command})");
    match (tests.result, tests.failing.len()) {
        (Tested::TimedOut, _) => format!("the tests take too long {commit}"),
        (_, 0) => format!("the tests fail {commit}"),
        (_, 1) => format!("1 test fails {commit}"),
        (_, many) => format!("{} fail {commit}", counted(many, "test")),
    }
}

/// The first lines that say what fails.
pub(crate) fn told(lines: &[String]) -> String {
    let few: Vec<&str> = lines.iter().take(3).map(String::as_str).collect();
    if few.is_empty() { "no output".to_owned() } else { few.join("; ") }
}
