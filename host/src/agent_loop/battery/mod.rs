//! The Judge's checks, really executed (PJ-43..PJ-45): tests, linter and formatter on a checkout of exactly the commit
//! at hand, and a look at every line it adds. What follows is decided in the core.

mod base;
mod old_tests;
mod scan;
mod tools;

use std::path::Path;

use archeflow_core::event::Tested;
use archeflow_core::model::{CheckEnd, LoopPolicy, Seq, TestCounts};
use archeflow_core::read::test_counts;
use archeflow_core::rules::decisive::{self, FailingLines};

pub use base::BaseRun;
pub(crate) use scan::added_text;
pub use scan::{Scan, Spotted};
pub use tools::{TOOLS, Tool, ToolKind, When, detected};

use crate::executors::checks::in_copy;
use crate::executors::{build_cache, setup, tail};
use crate::git::ObjectId;
use crate::git::workspace::{self, Slot};
use crate::proc::Cause;
use crate::world::World;

/// What of an output goes into the log.
const TAIL: u64 = 1_500;
/// What of an output is looked through for what fails.
const OUTPUT: u64 = 1_000_000;
/// Exit codes of a shell if there is no such program, or it can't be run.
const NOT_THERE: [i32; 2] = [126, 127];

/// The name of the tests as they were before the loop began.
pub(crate) const OLD_TESTS: &str = "old-tests";

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub seq: Seq,
    pub base: &'a str,
    pub commit: &'a str,
    /// The run's test command; nothing where it has none.
    pub tests: Option<&'a str>,
    /// It runs only some of the tests.
    pub part: bool,
    pub limit_ms: u64,
    pub policy: &'a LoopPolicy,
}

/// One command and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRun {
    /// `tests`, `linter`, `formatter` or `old-tests`.
    pub what: &'static str,
    /// Empty where the project has none.
    pub command: String,
    pub end: CheckEnd,
    pub exit: Option<i32>,
    /// Why there is no exit code, or why it counts as missing.
    pub why: String,
    pub tail: String,
    pub duration_ms: u64,
    pub counts: Option<TestCounts>,
    /// What fails, and whether it failed before.
    pub failing: FailingLines,
    /// The same command on the commit the run began from; nothing where it was not run there.
    pub before: Option<BaseRun>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatteryResults {
    pub ran: Vec<CheckRun>,
    /// Why the scan could not run, if it could not.
    pub scan: Result<Scan, String>,
}

impl BatteryResults {
    /// The worst of several; missing only if all are missing.
    pub fn end(&self, whats: &[&str]) -> CheckEnd {
        let of = |end| self.ran.iter().any(|ran| whats.contains(&ran.what) && ran.end == end);
        let gravest =
            [CheckEnd::Failed, CheckEnd::Crashed, CheckEnd::Passed].into_iter().find(|end| of(*end));
        gravest.unwrap_or(CheckEnd::Missing)
    }

    pub fn security(&self) -> CheckEnd {
        match &self.scan {
            Ok(scan) if scan.spotted.is_empty() => CheckEnd::Passed,
            Ok(_) => CheckEnd::Failed,
            Err(_) => CheckEnd::Missing,
        }
    }
}

/// Runs all checks; `None` if the user stopped them. They run again when the loop is resumed.
pub fn run(world: &World, wanted: Wanted<'_>) -> Option<BatteryResults> {
    let ids = ObjectId::parse(wanted.base.as_bytes())
        .and_then(|base| Ok((base, ObjectId::parse(wanted.commit.as_bytes())?)));
    let (base, commit) = match ids {
        Ok(ids) => ids,
        Err(error) => return Some(unable(&wanted, &error.to_string())),
    };
    let mut slot = match world.pool.take(workspace::WorkspaceKind::Scratch, &world.run_id, &commit) {
        Ok(slot) => slot,
        Err(error) => return Some(unable(&wanted, &format!("no scratch copy: {error}"))),
    };
    let tree = slot.tree();
    if let Err(why) = set_up(world, &wanted, &commit, &mut slot)? {
        return Some(unable(&wanted, &why));
    }
    let mut ran = vec![match wanted.tests {
        Some(command) => tests(world, &wanted, "tests", command, &tree)?,
        None => missing("tests", "no test command is set"),
    }];
    for kind in ToolKind::ALL {
        ran.push(match tools::command(kind, &tree, wanted.policy) {
            Some(command) => execute(world, &wanted, kind.name(), &command, &tree)?,
            None => missing(kind.name(), "none was found for this project"),
        });
    }
    drop(slot);
    if let Some(new) = ran.first() {
        let old = old_tests::run(world, &wanted, &base, &commit, new)?;
        ran.extend(old);
    }
    base::compare(world, &wanted, &base, &mut ran)?;
    Some(BatteryResults { ran, scan: scan::look(&world.repo, &base, &commit) })
}

/// Installs what the checks need, with build results that are kept; why that failed, if it did. `None` if the user stopped it.
fn set_up(
    world: &World,
    wanted: &Wanted<'_>,
    commit: &ObjectId,
    slot: &mut Slot,
) -> Option<Result<(), String>> {
    let artifact = format!("check-setup-{}.log", wanted.seq);
    let done = setup::prepare(world, wanted.seq, commit, slot, &artifact);
    let Some(done) = done.filter(|done| done.result != Tested::Passed) else {
        build_cache::lay(world, commit, &slot.tree());
        return Some(Ok(()));
    };
    let why = || Err(format!("the setup command fails:\n{}", done.lines.join("\n")));
    (!world.watch.is_stopping()).then(why)
}

/// Tests that can't be started are not a project without tests.
fn tests(
    world: &World,
    wanted: &Wanted<'_>,
    what: &'static str,
    command: &str,
    tree: &Path,
) -> Option<CheckRun> {
    let mut ran = execute(world, wanted, what, command, tree)?;
    if ran.end == CheckEnd::Missing {
        ran.end = CheckEnd::Crashed;
    }
    // A suite ended by a signal proves nothing about the change (PJ-50).
    if ran.exit.is_some_and(|code| (129..=159).contains(&code)) {
        ran.end = CheckEnd::Crashed;
    }
    Some(ran)
}

fn execute(
    world: &World,
    wanted: &Wanted<'_>,
    what: &'static str,
    command: &str,
    tree: &Path,
) -> Option<CheckRun> {
    let log = world.artifacts().join(format!("check-battery-{}-{what}.log", wanted.seq));
    let ended = in_copy(world, wanted.seq, command, tree, &log, wanted.limit_ms);
    let (end, exit, why) = match ended.cause {
        Cause::Exited(0) => (CheckEnd::Passed, Some(0), String::new()),
        Cause::Exited(code) if NOT_THERE.contains(&code) => {
            (CheckEnd::Missing, Some(code), "its program is not installed".to_owned())
        }
        Cause::Exited(code) => (CheckEnd::Failed, Some(code), String::new()),
        Cause::Signaled(signal) => (CheckEnd::Crashed, None, format!("killed by signal {signal}")),
        Cause::Silent | Cause::TooLong => {
            (CheckEnd::Crashed, None, format!("stopped after {} s", wanted.limit_ms / 1_000))
        }
        Cause::OverLimit(what) => (CheckEnd::Crashed, None, what),
        Cause::Stopped => return None,
        Cause::NotStarted(why) => (CheckEnd::Missing, None, why.to_string()),
    };
    let output = output(&log);
    let tail = String::from_utf8_lossy(&tail(&log, TAIL)).trim().to_owned();
    let duration_ms = u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX);
    let counts = if ["tests", OLD_TESTS].contains(&what) { test_counts(&output) } else { None };
    let failing =
        if end == CheckEnd::Failed { decisive::compared(&output, None) } else { FailingLines::default() };
    let (command, before) = (command.to_owned(), None);
    Some(CheckRun { what, command, end, exit, why, tail, duration_ms, counts, failing, before })
}

/// What of an output is looked through for counts and failures.
fn output(log: &Path) -> String {
    String::from_utf8_lossy(&tail(log, OUTPUT)).into_owned()
}

fn missing(what: &'static str, why: &str) -> CheckRun {
    CheckRun {
        what,
        command: String::new(),
        end: CheckEnd::Missing,
        exit: None,
        why: why.to_owned(),
        tail: String::new(),
        duration_ms: 0,
        counts: None,
        failing: FailingLines::default(),
        before: None,
    }
}

/// Nothing could be run. That is no pass: the tests count as failed and the scan as not done.
fn unable(wanted: &Wanted<'_>, why: &str) -> BatteryResults {
    let command = wanted.tests.unwrap_or_default().to_owned();
    let tests = CheckRun { end: CheckEnd::Crashed, command, ..missing("tests", why) };
    BatteryResults { ran: vec![tests], scan: Err(why.to_owned()) }
}
