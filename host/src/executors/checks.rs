//! Runs the test command and the hooks: commands the user typed or approved, in a scratch copy or beside the run.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use archeflow_core::event::{HookDone, HookStart, Tested, TestsDone, TestsRan, TestsStart};
use archeflow_core::model::{HookPoint, Seq};
use archeflow_core::read::{self, named_tests};
use archeflow_core::rules::decisive::decisive;
use archeflow_core::rules::red_base::unproven;

use super::preflight::{BASE_LOG, PassedTests};
use super::{build_cache, old_tests, setup};
use crate::failpoint;
use crate::git::ObjectId;
use crate::git::workspace::WorkspaceKind;
use crate::platform::files as os;
use crate::platform::removal::remove_tree;
use crate::proc::{self, Cause, Job, JobLimits, Sink};
use crate::sandbox::{SandboxFacts, SandboxPolicy};
use crate::world::World;

const TAIL: u64 = 1_500;
const OUTPUT: u64 = 4 << 20;
/// Lines kept of what fails.
pub(super) const LINES: usize = 10;

/// The test command on a checkout of exactly the candidate commit, and then with the test files that it changes as they were in
/// `old`.
pub(super) fn tests(world: &World, seq: Seq, start: &TestsStart, old: Option<&str>) -> TestsDone {
    let artifact = format!("act-tests-{seq}.log");
    let log = world.artifacts().join(&artifact);
    let done = |result, exit, duration_ms, tail| TestsDone {
        start_seq: seq,
        tree: start.tree.clone(),
        setup: None,
        cache: Vec::new(),
        result,
        exit,
        duration_ms,
        artifact: artifact.clone(),
        tail,
        lines: Vec::new(),
        failing: Vec::new(),
        ran: TestsRan::default(),
    };
    let commit = match ObjectId::parse(start.commit.as_bytes()) {
        Ok(commit) => commit,
        Err(error) => return done(Tested::Broken, None, 0, error.to_string()),
    };
    // What a candidate before left is not to land.
    let _ = build_cache::drop_of_run(world);
    let mut slot = match world.pool.take(WorkspaceKind::Scratch, &world.run_id, &commit) {
        Ok(slot) => slot,
        Err(error) => return done(Tested::Broken, None, 0, format!("no scratch copy: {error}")),
    };
    let tree = slot.tree();
    let setup = setup::prepare(world, seq, &commit, &mut slot, &format!("act-setup-{seq}.log"));
    if let Some(setup) = setup.as_ref().filter(|setup| setup.result != Tested::Passed) {
        // The setup worked on the base commit: what it does not cope with is in the change.
        let what = setup.lines.join("\n");
        return TestsDone {
            setup: Some(setup.clone()),
            artifact: setup.artifact.clone(),
            lines: setup.lines.clone(),
            ..done(Tested::Failed, None, setup.duration_ms, format!("the setup command fails:\n{what}"))
        };
    }
    let cache = build_cache::lay(world, &commit, &tree);
    let ended = in_copy(world, seq, &start.command, &tree, &log, start.limit_ms);
    failpoint::pass("tests.ran");
    let tested = tested(&ended, &log, start.limit_ms);
    let mut ran = TestsRan { changed: slot.changed_files(), ..tested.ran };
    if tested.result == Tested::Passed
        && let Some(passed) = PassedTests::of(world, &commit, &start.command)
    {
        passed.note(&ran);
    }
    if tested.result == Tested::Passed && !start.post_merge {
        build_cache::set_aside(world, &commit, &tree);
    }
    drop(slot);
    if let Some(old) = old.filter(|_| tested.result == Tested::Passed) {
        ran.old = old_tests::run(world, seq, start, old, &commit);
    }
    if tested.result == Tested::Failed {
        // Read only where tests failed before the change.
        let before = named_tests(&output(&world.artifacts().join(BASE_LOG)));
        ran.unproven = unproven(&before, &named_tests(&output(&log)), &start.command);
    }
    TestsDone {
        setup,
        cache,
        ran,
        lines: tested.lines,
        failing: tested.failing,
        ..done(tested.result, tested.exit, tested.duration_ms, tested.tail)
    }
}

/// How a test command ended, with what its output says.
pub(super) struct TestEnd {
    pub(super) result: Tested,
    pub(super) exit: Option<i32>,
    pub(super) duration_ms: u64,
    pub(super) tail: String,
    pub(super) lines: Vec<String>,
    pub(super) failing: Vec<String>,
    pub(super) ran: TestsRan,
}

pub(super) fn tested(ended: &proc::JobEnd, log: &Path, limit_ms: u64) -> TestEnd {
    let end = self::ended(&ended.cause, limit_ms);
    let tail = [Some(tail(log)), end.why.clone()].into_iter().flatten().collect::<Vec<_>>().join("\n");
    let (mut lines, mut failing) = (Vec::new(), Vec::new());
    let output = output(log);
    let ran = TestsRan { counts: read::test_counts(&output), ..TestsRan::default() };
    if end.result != Tested::Passed {
        lines.extend(decisive(&output).into_iter().take(LINES));
        lines.extend(end.why);
        failing = read::failing_tests(&output);
    }
    let duration_ms = millis(ended.duration);
    TestEnd { result: end.result, exit: end.exit, duration_ms, tail, lines, failing, ran }
}

/// What the end of a command means.
pub(super) struct CommandEnd {
    pub(super) result: Tested,
    pub(super) exit: Option<i32>,
    /// What its output does not say.
    pub(super) why: Option<String>,
}

pub(super) fn ended(cause: &Cause, limit_ms: u64) -> CommandEnd {
    let (result, exit, why) = match cause {
        Cause::Exited(0) => (Tested::Passed, Some(0), None),
        Cause::Exited(code @ (126 | 127)) => (Tested::Broken, Some(*code), None),
        Cause::Exited(code) => (Tested::Failed, Some(*code), None),
        Cause::Signaled(signal) => (Tested::Failed, None, Some(format!("killed by signal {signal}"))),
        Cause::Silent | Cause::TooLong => {
            (Tested::TimedOut, None, Some(format!("stopped after {} s", limit_ms / 1_000)))
        }
        Cause::OverLimit(what) => (Tested::Failed, None, Some(format!("stopped: {what}"))),
        Cause::Stopped => (Tested::Broken, None, Some("stopped by the user".to_owned())),
        Cause::NotStarted(why) => (Tested::Broken, None, Some(why.to_string())),
    };
    CommandEnd { result, exit, why }
}

/// A hook, in the repository's root, as BX-18 has it.
pub(super) fn hook(world: &World, seq: Seq, start: &HookStart, limit_ms: u64) -> HookDone {
    let log = world.artifacts().join(format!("hook-{}-{seq}.log", start.point.name()));
    let env = std::iter::once(("ARCHEFLOW_RUN_ID".into(), world.run_id.clone().into()))
        .chain(start.env.iter().map(|(name, value)| (name.into(), value.into())))
        .collect();
    let git = world.repo.common_dir();
    let policy = |facts: SandboxFacts<'_>| SandboxPolicy::for_hook(facts, git);
    let job =
        ShellJob { seq, command: &start.command, cwd: world.places.root(), log: &log, limit_ms, more: env };
    let ended = shell(world, job, policy);
    let (ok, reason) = match ended.cause {
        Cause::Exited(0) => (true, "ok".to_owned()),
        Cause::Exited(code) => (false, format!("exit {code}: {}", last_line(&tail(&log)))),
        Cause::Signaled(signal) => (false, format!("killed by signal {signal}")),
        Cause::Silent | Cause::TooLong => (false, format!("stopped after {} s", limit_ms / 1_000)),
        Cause::OverLimit(what) => (false, format!("stopped: {what}")),
        Cause::Stopped => (false, "stopped by the user".to_owned()),
        Cause::NotStarted(why) => (false, why.to_string()),
    };
    let point: HookPoint = start.point;
    HookDone { start_seq: seq, point, ok, reason }
}

/// A command line in a working copy, which is all it can change.
pub(crate) fn in_copy(
    world: &World,
    seq: Seq,
    command: &str,
    tree: &Path,
    log: &Path,
    limit_ms: u64,
) -> proc::JobEnd {
    let dependencies = world.dependencies();
    if let Err(error) = dependencies.as_ref().map_or(Ok(()), |found| found.make_places(tree)) {
        return proc::JobEnd::not_started(&error);
    }
    let policy = |facts: SandboxFacts<'_>| {
        let mut policy = SandboxPolicy::for_command(facts, tree);
        dependencies.iter().for_each(|found| found.show(&mut policy, tree));
        policy
    };
    shell(world, ShellJob { seq, command, cwd: tree, log, limit_ms, more: Vec::new() }, policy)
}

/// A command line, both its streams into one log, in a folder.
pub(super) struct ShellJob<'a> {
    pub(super) seq: Seq,
    pub(super) command: &'a str,
    pub(super) cwd: &'a Path,
    pub(super) log: &'a Path,
    pub(super) limit_ms: u64,
    pub(super) more: Vec<(OsString, OsString)>,
}

pub(super) fn shell(
    world: &World,
    job: ShellJob<'_>,
    policy: impl FnOnce(SandboxFacts<'_>) -> SandboxPolicy,
) -> proc::JobEnd {
    let ShellJob { seq, command, cwd, log, limit_ms, more } = job;
    let scratch = world.state.join("tmp").join(format!("{}.{seq}", world.tag));
    let _ = os::make_private(&scratch);
    let sandbox = match world.sandbox_for(&scratch, policy) {
        Ok(sandbox) => sandbox,
        Err(error) => return proc::JobEnd::not_started(&error),
    };
    let mut env = world.env.clone();
    env.push(("TMPDIR".into(), scratch.clone().into()));
    env.extend(more);
    let job = Job {
        program: "/bin/sh".into(),
        // Both streams in one log, in the order they came.
        args: vec!["-c".into(), "exec 2>&1\neval \"$1\"".into(), "sh".into(), command.into()],
        env,
        cwd: cwd.to_path_buf(),
        stdin: Vec::new(),
        stdout: Sink::file(log),
        stderr: Sink::nothing(),
        limits: JobLimits { total: Duration::from_millis(limit_ms), ..JobLimits::default() },
        tag: format!("{}.{seq}", world.tag),
        sandbox,
    };
    let ended = proc::run(job, &world.watch, &mut |_, _| {});
    let _ = remove_tree(&scratch);
    ended
}

fn tail(log: &Path) -> String {
    String::from_utf8_lossy(&super::tail(log, TAIL)).trim().to_owned()
}

/// The end of a log, from which lines are chosen.
pub(super) fn output(log: &Path) -> String {
    String::from_utf8_lossy(&super::tail(log, OUTPUT)).into_owned()
}

fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no output")
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
