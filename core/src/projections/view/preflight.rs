//! How the setup and test commands ended (U-10): on the base commit in a line, and what fails with its log and a remedy.

use crate::event::{BaseTests, CachedFolder, PreflightDone, SetupRun, Tested};
use crate::model::{Reason, counted};
use crate::run::Run;

use super::{ProgressLine, Tone, seconds};

pub(super) fn line(done: &PreflightDone) -> ProgressLine {
    let doing = match (&done.setup, &done.tests) {
        (Some(_), None) => "Setting up before any change...",
        (None, _) => "Testing before any change...",
        (Some(_), Some(_)) => "Setting up and testing before any change...",
    };
    ProgressLine {
        tag: "[Base]".to_owned(),
        doing: doing.to_owned(),
        outcome: outcome(done),
        tone: tone(done),
    }
}

/// What came of it, in a few words.
pub fn outcome(done: &PreflightDone) -> String {
    let parts: Vec<String> = done.setup.iter().map(set_up).chain(done.tests.iter().map(tested)).collect();
    parts.join(", ")
}

/// A command that keeps a run from going on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailingCommand<'a> {
    pub command: &'a str,
    /// The lines of its output that say what fails.
    pub lines: &'a [String],
    /// The artifact with all of its output; empty if there is none.
    pub log: &'a str,
    /// What a person can do about it.
    pub remedy: &'static str,
}

/// The command that the run ended for, if it did for one.
pub fn failing_command(run: &Run) -> Option<FailingCommand<'_>> {
    let outcome = run.outcome.as_ref()?;
    let policy = run.policy();
    let test_command = policy.test_command.as_deref().unwrap_or_default();
    let of_tests = |lines, log, remedy| FailingCommand { command: test_command, lines, log, remedy };
    let base = run.preflight.as_ref();
    let base_tests = base.and_then(|done| done.tests.as_ref());
    #[expect(clippy::wildcard_enum_match_arm, reason = "the other reasons are no command's")]
    match outcome.reason {
        Reason::SetupFailed => {
            let setup = base?.setup.as_ref()?;
            let command = policy.setup_command.as_deref().unwrap_or_default();
            Some(FailingCommand { command, lines: &setup.lines, log: &setup.artifact, remedy: SETUP })
        }
        Reason::TestCommandBroken if run.cycles.is_empty() => {
            base_tests.map(|tests| of_tests(&tests.lines, &tests.artifact, BROKEN))
        }
        Reason::RedBase if run.last_tests.is_none() => {
            base_tests.map(|tests| of_tests(&tests.lines, &tests.artifact, RED))
        }
        Reason::TestCommandBroken | Reason::TestsFailed | Reason::RedBase => {
            let tests = run.last_tests.as_ref().filter(|tests| tests.result != Tested::Passed)?;
            Some(of_tests(&tests.lines, &tests.artifact, ""))
        }
        _ => None,
    }
}

const SETUP: &str = "Try it in a fresh clone. It runs in the sandbox, first offline and then with the public registries; \
                     allow others with sandbox.setup_hosts.";
const BROKEN: &str = "Name another one with --test-command or test_command. What it needs is installed by setup_command; \
                      a program outside of the system's folders has to be in sandbox.read.";
const RED: &str = "Repair the tests and run again, or accept them: the change then lands if no other test fails. \
                   --allow-red-base accepts them beforehand.";

fn tone(done: &PreflightDone) -> Tone {
    let setup = done.setup.as_ref().map(|setup| setup.result);
    let tests = done.tests.as_ref().map(|tests| tests.result);
    match (setup.unwrap_or(Tested::Passed), tests.unwrap_or(Tested::Passed)) {
        (Tested::Passed, Tested::Passed) => Tone::Good,
        (Tested::Passed, Tested::Failed) => Tone::Caution,
        (_, _) => Tone::Bad,
    }
}

fn set_up(setup: &SetupRun) -> String {
    let took = seconds(setup.duration_ms);
    match setup.result {
        Tested::Passed if setup.reused => match &setup.from {
            Some(from) => format!("set up before from {}", from.get(..10).unwrap_or(from)),
            None => "set up before".to_owned(),
        },
        Tested::Passed => format!("set up ({took})"),
        Tested::Failed => format!("setup FAILED ({took})"),
        Tested::TimedOut => format!("setup timed out ({took})"),
        Tested::Broken => "the setup command can't be run".to_owned(),
    }
}

/// The folders of `cache` of a test, after its duration.
pub(super) fn cached(folders: &[CachedFolder]) -> String {
    let one = |found: &CachedFolder| match &found.from {
        Some(from) => format!("; {} from {}", found.folder, from.get(..10).unwrap_or(from)),
        None => format!("; {} empty: {}", found.folder, found.cold),
    };
    folders.iter().map(one).collect()
}

fn tested(tests: &BaseTests) -> String {
    let took = format!("{}{}", seconds(tests.duration_ms), cached(&tests.cache));
    match (tests.result, tests.failing.len()) {
        (Tested::Passed, _) if tests.reused => "passed earlier on this tree".to_owned(),
        (Tested::Passed, _) => format!("passed ({took})"),
        (Tested::Failed, 0) => format!("FAILED ({took})"),
        (Tested::Failed, many) => format!("{} FAILED ({took})", counted(many, "test")),
        (Tested::TimedOut, _) => format!("timed out ({took})"),
        (Tested::Broken, _) => "the command can't be run".to_owned(),
    }
}
