//! Asks an agent one small question, to see whether it answers at all. An answer costs money, so this runs only on
//! request. Home, limits and the reading of its lines are those of a run; its working directory is empty.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::event::Failure;
use archeflow_core::model::{Money, Policy, Tier};
use archeflow_core::rules::ledger::{self, Usage};

use crate::backends::cli::{Client, CommandInputs, Start};
use crate::backends::{AgentBackend, Invocation};
use crate::client_output::ClientOutput;
use crate::executors::client::{fault_message, listen, unlink_file, write_home};
use crate::platform::removal::remove_tree;
use crate::proc::{self, Cause, Job, JobEnd, JobLimits, Sink, Watch};

/// All that is asked.
const BRIEF: &str = "This is a check whether you can be reached; you are the tester. Read nothing and change nothing. \
                     Answer with these two lines:\n\nREADY\n\nSTATUS: DONE\n";

/// The dearest thing such a question is taken for: a few words to a model of the middle tier.
const TIER: Tier = Tier::Sonnet;

/// What an agent is tried with.
#[derive(Debug)]
pub struct Around<'a> {
    /// For its home and its folder; everything in it is removed.
    pub state: &'a Path,
    pub me: &'a Path,
    pub env: &'a [(OsString, OsString)],
    pub own: &'a [(OsString, OsString)],
    pub policy: &'a Policy,
}

/// What came of it.
#[derive(Debug)]
pub struct Trial {
    /// The first line of its answer, or what went wrong.
    pub answer: Result<String, (Failure, String)>,
    pub took: Duration,
    pub cost: Option<Money>,
    /// As the client calls it; may be empty.
    pub model: String,
}

impl Trial {
    /// D-16: who has to act.
    pub fn exit_code(&self) -> u8 {
        use Failure::{Auth, Busy, Overload, Quota, RateLimit};
        match &self.answer {
            Ok(_) => 0,
            Err((Auth | Quota | RateLimit | Overload | Busy, _)) => 31,
            Err(_) => 30,
        }
    }
}

pub fn ask(agent: &AgentBackend, around: &Around<'_>) -> io::Result<Trial> {
    let folder = around.state.join("tmp").join(format!("try.{}", std::process::id()));
    let asked = ask_in(agent, around, &folder);
    let _ = remove_tree(&folder);
    asked
}

fn ask_in(agent: &AgentBackend, around: &Around<'_>, folder: &Path) -> io::Result<Trial> {
    let (tree, home, stream) = (folder.join("tree"), folder.join("home"), folder.join("stream"));
    std::fs::create_dir_all(&tree)?;
    std::fs::create_dir_all(&home)?;
    let start = match agent {
        AgentBackend::Cli(client, model) => client.command(&CommandInputs {
            writes: false,
            tier: TIER,
            model,
            tree: &tree,
            home: &home,
            me: around.me,
            resumes: None,
            schema: None,
            share: None,
            variables: around.own,
            usual_provider: false,
            readable: None,
        }),
        AgentBackend::Cmd(_) | AgentBackend::Script(_) | AgentBackend::Sim(_) => {
            bare(agent.invocation(around.me))
        }
    };
    write_home(&home, &start)?;
    let ended = run(&start, around, &tree, &stream);
    start.linked.iter().for_each(|linked| unlink_file(&home, linked));
    Ok(match agent {
        AgentBackend::Cli(client, _) => of_client(client, &ended, listen(client, &stream), around),
        AgentBackend::Cmd(_) | AgentBackend::Script(_) | AgentBackend::Sim(_) => of_command(&ended, &stream),
    })
}

fn bare(invocation: Invocation) -> Start {
    Start { invocation, env: Vec::new(), linked: Vec::new(), files: Vec::new() }
}

fn run(start: &Start, around: &Around<'_>, tree: &Path, stream: &Path) -> JobEnd {
    let mut env = around.env.to_vec();
    env.extend(
        [("ARCHEFLOW_ROLE", "tester"), ("ARCHEFLOW_MODEL", TIER.name())].map(|(n, v)| (n.into(), v.into())),
    );
    env.extend(start.env.iter().cloned());
    let limits = &around.policy.limits;
    let job = Job {
        program: start.invocation.program.clone(),
        args: start.invocation.args.clone(),
        env,
        cwd: PathBuf::from(tree),
        stdin: BRIEF.as_bytes().to_vec(),
        stdout: Sink::file(stream.to_path_buf()),
        stderr: Sink::memory(),
        limits: JobLimits {
            silence: Duration::from_millis(limits.silence_ms),
            total: Duration::from_millis(limits.other_ms),
            ..JobLimits::default()
        },
        tag: format!("try.{}", std::process::id()),
        sandbox: None,
    };
    proc::run(job, &Watch::new(), &mut |_, _| {})
}

fn of_client(client: &'static Client, ended: &JobEnd, heard: ClientOutput, around: &Around<'_>) -> Trial {
    let hitch = heard.hitch.as_ref().filter(|_| !heard.finished);
    let answer = match heard.fault.as_ref().or(hitch) {
        Some(fault) => Err((fault.kind, fault_message(client, fault.kind, &fault.said))),
        None if !heard.finished => Err(cut_short(ended)),
        None => first_line(&heard.answer),
    };
    let usage: Usage = client.usage(&heard, None);
    let cost = ledger::cost(&usage, &around.policy.costs, TIER, Money::ZERO).map(|(cost, _)| cost);
    Trial { answer, took: ended.duration, cost: cost.filter(|_| heard.worked), model: heard.model }
}

fn of_command(ended: &JobEnd, stream: &Path) -> Trial {
    let said = std::fs::read(stream).unwrap_or_default();
    let answer = match ended.cause {
        Cause::Exited(0) => first_line(&String::from_utf8_lossy(&said)),
        Cause::Exited(_)
        | Cause::Signaled(_)
        | Cause::Silent
        | Cause::TooLong
        | Cause::Stopped
        | Cause::OverLimit(_)
        | Cause::NotStarted(_) => Err(cut_short(ended)),
    };
    Trial { answer, took: ended.duration, cost: None, model: String::new() }
}

fn first_line(said: &str) -> Result<String, (Failure, String)> {
    let line = said.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.map(|line| line.chars().take(80).collect());
    line.ok_or_else(|| (Failure::Empty, "it exited with code 0 but printed nothing".to_owned()))
}

/// By how its process ended, with its last words.
fn cut_short(ended: &JobEnd) -> (Failure, String) {
    let words = String::from_utf8_lossy(&ended.stderr.bytes);
    let words = words.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let words =
        words.map(|line| format!(": {}", line.chars().take(300).collect::<String>())).unwrap_or_default();
    match &ended.cause {
        Cause::Exited(75) => (Failure::Busy, format!("it asks to be retried later (exit 75){words}")),
        Cause::Exited(code) => {
            (Failure::Exit, format!("it ended with exit code {code} without an answer{words}"))
        }
        Cause::Signaled(signal) => (Failure::Signal, format!("it was killed by signal {signal}{words}")),
        Cause::Silent => (Failure::Silence, format!("it fell silent{words}")),
        Cause::TooLong => (Failure::TooLong, format!("it took too long{words}")),
        Cause::Stopped => (Failure::Signal, "it was stopped".to_owned()),
        Cause::OverLimit(what) => (Failure::Signal, what.clone()),
        Cause::NotStarted(why) => (Failure::NotStarted, format!("it can't be started ({why})")),
    }
}
