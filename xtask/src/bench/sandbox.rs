//! What it costs to start a command: under our supervision, and in the sandbox.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use archeflow_host::platform::children;
use archeflow_host::proc::{self, Cause, Job, JobLimits, Sink, Watch};
use archeflow_host::sandbox::{
    PrivateFolders, Sandbox, SandboxChoice, SandboxFacts, SandboxLevel, SandboxPolicy, probe,
};

use super::startup::children_cpu;
use super::{Bench, Goal, Row, Rows, ms};

const STARTS: u32 = 25;

/// The quickest of these counts: the others were disturbed by something else.
const ROUNDS: u32 = 5;

pub(super) fn measure(bench: &Bench) -> Rows {
    let at = |name: &str| bench.folder.path().join(name);
    let private = PrivateFolders { home: at("sandbox/home"), tmp: at("sandbox/tmp") };
    let (tree, user) = (at("sandbox/tree"), at("sandbox/user"));
    for folder in [&private.home, &private.tmp, &tree, &user] {
        std::fs::create_dir_all(folder)?;
    }
    let env: Vec<_> = std::env::vars_os().collect();
    let choice = SandboxChoice::default();
    let facts = SandboxFacts { env: &env, private: &private, objects: &[], checkout: &user, choice: &choice };
    let level = probe(&bench.program);
    let name = level.name();
    let mut rows = vec![supervision(&tree)?];
    let without = cpu(&tree, None)?;
    if matches!(level, SandboxLevel::Absent { .. }) {
        return Ok(rows);
    }
    let policy = SandboxPolicy::for_command(facts, &tree);
    let with = cpu(&tree, Some(&Sandbox { level, policy, me: bench.program.clone(), decoys: Vec::new() }))?;
    rows.push(Row {
        what: format!("sandbox ({name}): CPU time of a start beyond none"),
        floor: None,
        ours: ms(with.saturating_sub(without)),
        unit: "ms",
        goal: Goal::AtMost(5.0),
    });
    Ok(rows)
}

/// Our own CPU time for a supervised start, beyond that for starting a program and waiting for it.
fn supervision(tree: &Path) -> Result<Row, Box<dyn std::error::Error>> {
    let begun = own_cpu()?;
    for _ in 0..STARTS {
        let mut plain = Command::new("/bin/true");
        plain.env_clear();
        children::wait(&mut children::spawn(&mut plain)?)?;
    }
    let plain = own_cpu()?.saturating_sub(begun) / STARTS;
    let begun = own_cpu()?;
    round(tree, None)?;
    let ours = own_cpu()?.saturating_sub(begun) / STARTS;
    Ok(Row {
        what: "supervision: own CPU time of a start beyond a plain one".to_owned(),
        floor: None,
        ours: ms(ours.saturating_sub(plain)),
        unit: "ms",
        goal: Goal::AtMost(1.0),
    })
}

fn own_cpu() -> Result<Duration, std::num::TryFromIntError> {
    Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime))
}

/// The CPU time of one start of a program that does nothing: ours and that of everything that was started.
fn cpu(tree: &Path, sandbox: Option<&Sandbox>) -> Result<Duration, Box<dyn std::error::Error>> {
    let mut least = round(tree, sandbox)?;
    for _ in 1..ROUNDS {
        least = least.min(round(tree, sandbox)?);
    }
    Ok(least)
}

fn round(tree: &Path, sandbox: Option<&Sandbox>) -> Result<Duration, Box<dyn std::error::Error>> {
    let now = || Ok::<_, Box<dyn std::error::Error>>(children_cpu()? + own_cpu()?);
    let before = now()?;
    for at in 0..STARTS {
        let job = Job {
            program: "/bin/true".into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: tree.to_path_buf(),
            stdin: Vec::new(),
            stdout: Sink::nothing(),
            stderr: Sink::nothing(),
            limits: JobLimits::default(),
            tag: format!("bench-{at}"),
            sandbox: sandbox.cloned(),
        };
        let ended = proc::run(job, &Watch::new(), &mut |_, _| {});
        if ended.cause != Cause::Exited(0) {
            return Err(format!("/bin/true ended with {:?}", ended.cause).into());
        }
    }
    Ok(now()?.saturating_sub(before) / STARTS)
}
