//! What it costs to start a command in the sandbox.

use std::path::Path;
use std::time::Duration;

use archeflow_host::proc::{self, Cause, Job, JobLimits, Sink, Watch};
use archeflow_host::sandbox::{
    PrivateFolders, Sandbox, SandboxChoice, SandboxFacts, SandboxLevel, SandboxPolicy, probe,
};

use super::startup::children_cpu;
use super::{Bench, Goal, Row, Rows, ms};

const STARTS: u32 = 100;

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
    let without = cpu(&tree, None)?;
    if matches!(level, SandboxLevel::Absent { .. }) {
        return Ok(Vec::new());
    }
    let policy = SandboxPolicy::for_command(facts, &tree);
    let with = cpu(&tree, Some(&Sandbox { level, policy, me: bench.program.clone() }))?;
    Ok(vec![Row {
        what: format!("sandbox ({name}): CPU time of a start beyond none"),
        floor: None,
        ours: ms(with.saturating_sub(without)),
        unit: "ms",
        goal: Goal::AtMost(5.0),
    }])
}

/// The CPU time of one start of a program that does nothing.
fn cpu(tree: &Path, sandbox: Option<&Sandbox>) -> Result<Duration, Box<dyn std::error::Error>> {
    let before = children_cpu()?;
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
    Ok(children_cpu()?.saturating_sub(before) / STARTS)
}
