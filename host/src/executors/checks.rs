//! Runs the test command and the hooks: commands the user typed or approved, in a scratch copy or beside the run.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use archeflow_core::event::{HookDone, HookStart, Tested, TestsDone, TestsStart};
use archeflow_core::model::{HookPoint, Seq};

use crate::failpoint;
use crate::git::ObjectId;
use crate::git::workspace::WorkspaceKind;
use crate::proc::{self, Cause, Job, JobLimits, NotStarted, Sink};
use crate::sandbox::{SandboxFacts, SandboxPolicy};
use crate::world::World;

const TAIL: u64 = 1_500;

/// The test command on a checkout of exactly the candidate commit.
pub(super) fn tests(world: &World, seq: Seq, start: &TestsStart) -> TestsDone {
    let artifact = format!("act-tests-{seq}.log");
    let log = world.artifacts().join(&artifact);
    let done = |result, exit, duration_ms, tail| TestsDone {
        start_seq: seq,
        tree: start.tree.clone(),
        result,
        exit,
        duration_ms,
        artifact: artifact.clone(),
        tail,
    };
    let commit = match ObjectId::parse(start.commit.as_bytes()) {
        Ok(commit) => commit,
        Err(error) => return done(Tested::Broken, None, 0, error.to_string()),
    };
    let slot = match world.pool.take(WorkspaceKind::Scratch, &world.run_id, &commit) {
        Ok(slot) => slot,
        Err(error) => return done(Tested::Broken, None, 0, format!("no scratch copy: {error}")),
    };
    let ended = in_copy(world, seq, &start.command, &slot.tree(), &log, start.limit_ms);
    failpoint::pass("tests.ran");
    let duration_ms = millis(ended.duration);
    let tail = tail(&log);
    match ended.cause {
        Cause::Exited(0) => done(Tested::Passed, Some(0), duration_ms, tail),
        Cause::Exited(code @ (126 | 127)) => done(Tested::Broken, Some(code), duration_ms, tail),
        Cause::Exited(code) => done(Tested::Failed, Some(code), duration_ms, tail),
        Cause::Signaled(signal) => {
            done(Tested::Failed, None, duration_ms, format!("{tail}\nkilled by signal {signal}"))
        }
        Cause::Silent | Cause::TooLong => done(
            Tested::TimedOut,
            None,
            duration_ms,
            format!("{tail}\nstopped after {} s", start.limit_ms / 1_000),
        ),
        Cause::OverLimit(what) => done(Tested::Failed, None, duration_ms, format!("{tail}\nstopped: {what}")),
        Cause::Stopped => done(Tested::Broken, None, duration_ms, "stopped by the user".to_owned()),
        Cause::NotStarted(
            NotStarted::NotFound(why) | NotStarted::Permission(why) | NotStarted::Other(why),
        ) => done(Tested::Broken, None, duration_ms, why),
    }
}

/// A hook, in the repository's root, as BX-18 has it.
pub(super) fn hook(world: &World, seq: Seq, start: &HookStart, limit_ms: u64) -> HookDone {
    let log = world.artifacts().join(format!("hook-{}-{seq}.log", start.point.name()));
    let env = std::iter::once(("ARCHEFLOW_RUN_ID".into(), world.run_id.clone().into()))
        .chain(start.env.iter().map(|(name, value)| (name.into(), value.into())))
        .collect();
    let git = world.repo.common_dir();
    let policy = |facts: SandboxFacts<'_>| SandboxPolicy::for_hook(facts, git);
    let ended = shell(world, seq, &start.command, world.places.root(), &log, limit_ms, env, policy);
    let (ok, reason) = match ended.cause {
        Cause::Exited(0) => (true, "ok".to_owned()),
        Cause::Exited(code) => (false, format!("exit {code}: {}", last_line(&tail(&log)))),
        Cause::Signaled(signal) => (false, format!("killed by signal {signal}")),
        Cause::Silent | Cause::TooLong => (false, format!("stopped after {} s", limit_ms / 1_000)),
        Cause::OverLimit(what) => (false, format!("stopped: {what}")),
        Cause::Stopped => (false, "stopped by the user".to_owned()),
        Cause::NotStarted(
            NotStarted::NotFound(why) | NotStarted::Permission(why) | NotStarted::Other(why),
        ) => (false, why),
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
    let policy = |facts: SandboxFacts<'_>| SandboxPolicy::for_command(facts, tree);
    shell(world, seq, command, tree, log, limit_ms, Vec::new(), policy)
}

/// A command line, both its streams into one log, in a folder.
#[expect(clippy::too_many_arguments, reason = "everything that differs between the commands we run")]
fn shell(
    world: &World,
    seq: Seq,
    command: &str,
    cwd: &Path,
    log: &Path,
    limit_ms: u64,
    more: Vec<(OsString, OsString)>,
    policy: impl FnOnce(SandboxFacts<'_>) -> SandboxPolicy,
) -> proc::JobEnd {
    let scratch = world.state.join("tmp").join(format!("{}.{seq}", world.tag));
    let _ = std::fs::create_dir_all(&scratch);
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
    let _ = std::fs::remove_dir_all(&scratch);
    ended
}

fn tail(log: &Path) -> String {
    String::from_utf8_lossy(&super::tail(log, TAIL)).trim().to_owned()
}

fn last_line(text: &str) -> &str {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no output")
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
