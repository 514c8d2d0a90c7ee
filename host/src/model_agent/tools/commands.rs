//! Running commands. They are supervised like an agent: a session of their own, limits, and nothing left behind.

use std::time::Duration;

use super::{Bench, Input, needed, whole};
use crate::proc::{self, Cause, Job, JobLimits, Sink, TAG, Watch};

const USUAL: usize = 120;
const LONGEST: usize = 600;
const KEPT: u64 = 256 * 1024;

pub(super) fn run(bench: &Bench, input: &Input) -> Result<String, String> {
    let command = needed(input, "command")?;
    let total = Duration::from_secs(whole(input, "seconds", USUAL, LONGEST) as u64);
    let tag = bench.variables.iter().find(|(name, _)| name == TAG);
    let job = Job {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), format!("exec 2>&1; {command}").into()],
        env: bench.variables.clone(),
        cwd: bench.tree.root().to_owned(),
        stdin: Vec::new(),
        stdout: Sink::Memory { keep: KEPT },
        stderr: Sink::Memory { keep: KEPT },
        limits: JobLimits { total, silence: bench.patience, ..JobLimits::default() },
        tag: tag.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default(),
        sandbox: None,
    };
    let ended = proc::run(job, &Watch::new(), &mut |_, _| {});
    let said = String::from_utf8_lossy(&ended.stdout.bytes).into_owned();
    let how = match ended.cause {
        Cause::Exited(0) => {
            return Ok(if said.trim().is_empty() { "exit 0, nothing printed".to_owned() } else { said });
        }
        Cause::Exited(code) => format!("exit {code}"),
        Cause::Signaled(signal) => format!("killed by signal {signal}"),
        Cause::TooLong => format!("stopped after {} s; set `seconds` if it needs longer", total.as_secs()),
        Cause::Silent => format!("stopped: no output for {} s", bench.patience.as_secs()),
        Cause::OverLimit(what) => format!("stopped: {what}"),
        Cause::Stopped => "stopped".to_owned(),
        Cause::NotStarted(why) => why.to_string(),
    };
    Err(format!("{how}\n{said}"))
}
