//! The crew of a sprint on one machine: each order is this program started again.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use archeflow_core::model::{Money, Reason, RunStatus, Seq};
use archeflow_core::run::Run;
use archeflow_core::sprint::event::{BatchLanding, Busy, Candidate, RunEnd, UnfinishedRun};
use archeflow_core::sprint::policy::Room;
use archeflow_core::sprint::queue::QueueItem;
use archeflow_core::text::shell_word;

use super::crew::{BranchOverlap, SprintCrew, UnlandedRun};
use super::lookout::Lookout;
use super::runs::Runs;
use crate::log;
use crate::platform::machine;
use crate::proc::{self, Cause, Job, JobEnd, JobLimits, Sink, Watch};
use crate::store::journal::{self, Journal};
use crate::store::names;

/// A run that is asked to end calls its agents in and keeps their work first.
const GRACE: Duration = Duration::from_secs(60);
/// The most that is kept of a run's last output, in case it left no log.
const TAIL: u64 = 8 * 1024;
/// A run that is killed is resumed at most this many times.
const REVIVALS: u32 = 5;

/// How runs are started here.
#[derive(Debug)]
pub struct LocalRuns {
    /// The folder of the projects.
    pub projects: PathBuf,
    pub me: PathBuf,
    /// The user's current directory: agents are looked up from there.
    pub cwd: PathBuf,
    pub env: Vec<(OsString, OsString)>,
    /// Arguments for every run, e.g. the agent.
    pub said: Vec<OsString>,
    /// Flags of every command, also of those that resume or land a run.
    pub always: Vec<OsString>,
    /// Somebody typed that commands are to run without a sandbox.
    pub no_sandbox: bool,
    /// Runs have the workflow of their configuration, not that of the item.
    pub own_workflow: bool,
    /// The longest time of one process of a run.
    pub limit: Option<Duration>,
    pub tag: String,
}

/// Runs of a sprint as processes of this machine, each this program started again.
pub struct LocalCrew {
    pub(super) runs: LocalRuns,
    pub(super) watch: Watch,
    lookout: Mutex<Lookout>,
    /// The runs that somebody looked at while they were under way.
    seen: Mutex<Runs>,
}

impl SprintCrew for LocalCrew {
    fn run(&self, seq: Seq, item: &QueueItem, run_id: &str, budget: Option<Money>) -> RunEnd {
        self.to_its_end(|| self.run_once(seq, item, run_id, budget))
    }

    fn resume(&self, seq: Seq, item: &QueueItem, run_id: &str) -> RunEnd {
        self.to_its_end(|| self.resume_once(seq, item, run_id))
    }

    fn land(&self, seq: Seq, item: &QueueItem, run_id: &str) -> RunEnd {
        self.to_its_end(|| self.land_once(seq, item, run_id))
    }

    fn land_together(&self, seq: Seq, project: &str, candidates: &[Candidate]) -> BatchLanding {
        self.land_batch(seq, project, candidates)
    }

    fn left(&self, item: &QueueItem, run_id: &str) -> Option<UnfinishedRun> {
        let events = self.runs.projects.join(&item.project).join(".archeflow/events");
        let read = || log::fold(&Journal::read(&events.join(format!("{run_id}.jsonl"))).ok()?).ok();
        unfinished(item, run_id, read)
    }

    /// How busy the machine is. Unknown values are taken as idle.
    fn room(&self) -> Room {
        let processors = thread::available_parallelism().map_or(1, usize::from) as u64;
        let (load, memory) = (machine::load(), machine::available_memory());
        Room {
            load_percent: load.map_or(0, |load| u32::try_from(load / processors).unwrap_or(u32::MAX)),
            memory_mb: memory.map_or(u64::MAX, |kb| kb / 1024),
            slots: None,
        }
    }

    fn overlaps(&self, project: &str, live: &[UnlandedRun]) -> Vec<BranchOverlap> {
        self.lookout.lock().unwrap_or_else(PoisonError::into_inner).look(&self.runs, project, live)
    }

    fn show_run(&self, project: &str, run_id: &str, show: &mut dyn FnMut(&Run)) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let run = seen.look(&self.runs.projects.join(project), run_id);
        if let Some(run) = run {
            show(run);
        }
        let is_over = run.is_some_and(|run| run.outcome.is_some());
        if is_over {
            seen.forget(run_id);
        }
    }

    fn project_folder(&self, project: &str) -> Option<PathBuf> {
        self.runs.projects.join(project).canonicalize().ok()
    }

    fn clear_away(&self, tag: &str) {
        proc::kill_leftovers(&format!("{tag}."));
        proc::wake_git(&format!("{tag}."));
    }

    fn stop(&self) {
        self.watch.stop();
    }

    fn kill_now(&self) {
        self.watch.kill_now();
    }

    fn is_over(&self, within: Duration) -> bool {
        proc::all_over(within)
    }
}

impl LocalCrew {
    pub fn new(runs: LocalRuns) -> LocalCrew {
        LocalCrew::under(runs, Watch::new())
    }

    /// A crew that ends with this watch.
    pub fn under(runs: LocalRuns, watch: Watch) -> LocalCrew {
        let (lookout, seen) = (Mutex::new(Lookout::default()), Mutex::new(Runs::default()));
        LocalCrew { runs, watch, lookout, seen }
    }

    fn run_once(&self, seq: Seq, item: &QueueItem, id: &str, budget: Option<Money>) -> Stretch {
        let dir = self.runs.projects.join(&item.project);
        let args = match look(&dir, id) {
            Looked::Over(run) => return Stretch::last(end_of(id, &run, 0)),
            Looked::Begun => words(["resume", id, "--unattended", "--json"]),
            Looked::Nothing => {
                let mut args = words(["run", "--as", id, "--unattended", "--json"]);
                if !self.runs.own_workflow {
                    args.extend(words(["--workflow", item.workflow()]));
                }
                args.extend(budget.into_iter().flat_map(|most| ["--budget".into(), dollars(most).into()]));
                args.extend(self.runs.said.iter().cloned());
                args
            }
        };
        let task =
            if args.first().is_some_and(|word| word == "run") { Some(item.task.as_str()) } else { None };
        self.start(seq, &dir, id, args, task)
    }

    fn resume_once(&self, seq: Seq, item: &QueueItem, id: &str) -> Stretch {
        let dir = self.runs.projects.join(&item.project);
        match look(&dir, id) {
            Looked::Over(run) if busy(&run).is_none() => Stretch::last(end_of(id, &run, 0)),
            Looked::Over(_) | Looked::Begun | Looked::Nothing => {
                self.start(seq, &dir, id, words(["resume", id, "--unattended", "--json"]), None)
            }
        }
    }

    fn land_once(&self, seq: Seq, item: &QueueItem, id: &str) -> Stretch {
        let dir = self.runs.projects.join(&item.project);
        let args = match look(&dir, id) {
            Looked::Over(run)
                if run.complete.as_ref().is_some_and(|complete| complete.merged_oid.is_some()) =>
            {
                return Stretch::last(end_of(id, &run, 0));
            }
            // The yes is in its log already, and it was killed on the way.
            Looked::Begun => words(["resume", id, "--unattended", "--json"]),
            Looked::Over(_) | Looked::Nothing => words(["merge", id, "--unattended", "--json"]),
        };
        let stretch = self.start(seq, &dir, id, args, None);
        // Cut short before the yes was written down, it waits as it did before: there is no result yet.
        if stretch.cut && stretch.end.status == Some(RunStatus::AwaitingMerge) {
            let detail = format!("the landing was cut short; archeflow merge {id}");
            let stopped = self.watch.is_stopping();
            let end = RunEnd { status: None, reason: None, detail, stopped, ..stretch.end };
            return Stretch { end, ..stretch };
        }
        stretch
    }

    /// Resumes it when its process is killed from outside, a limited number of times.
    pub(super) fn to_its_end(&self, once: impl Fn() -> Stretch) -> RunEnd {
        let mut took_ms = 0_u64;
        let mut stretch = once();
        for _ in 0..REVIVALS {
            took_ms = took_ms.saturating_add(stretch.end.took_ms);
            if stretch.is_over() || self.watch.is_stopping() {
                return RunEnd { took_ms, ..stretch.end };
            }
            stretch = once();
        }
        RunEnd { took_ms: took_ms.saturating_add(stretch.end.took_ms), ..stretch.end }
    }

    pub(super) fn start(
        &self,
        seq: Seq,
        dir: &Path,
        id: &str,
        args: Vec<OsString>,
        task: Option<&str>,
    ) -> Stretch {
        self.start_under(&self.watch, seq, dir, id, args, task)
    }

    pub(super) fn start_under(
        &self,
        watch: &Watch,
        seq: Seq,
        dir: &Path,
        id: &str,
        mut args: Vec<OsString>,
        task: Option<&str>,
    ) -> Stretch {
        if !dir.join(".git").exists() {
            return Stretch::last(unstarted(id, format!("{} is no repository", dir.display())));
        }
        args.extend(self.runs.always.iter().cloned());
        args.extend(self.runs.no_sandbox.then(|| "--unsafe-no-sandbox".into()));
        args.extend(["--repo".into(), dir.into()]);
        args.extend(task.into_iter().flat_map(|task| ["--".into(), task.into()]));
        let job = Job {
            program: self.runs.me.clone().into(),
            args,
            env: self.runs.env.clone(),
            cwd: self.runs.cwd.clone(),
            stdin: Vec::new(),
            stdout: Sink::nothing(),
            stderr: Sink::Memory { keep: TAIL },
            limits: match self.runs.limit {
                Some(total) => JobLimits { grace: GRACE, total, ..JobLimits::default() },
                None => JobLimits { grace: GRACE, ..JobLimits::default() },
            },
            tag: format!("{}.{seq}", self.runs.tag),
            sandbox: None,
        };
        let ended = proc::run(job, watch, &mut |_, _| {});
        let cut = matches!(ended.cause, Cause::Signaled(_) | Cause::Stopped);
        Stretch { end: self.run_end(dir, id, &ended), cut }
    }

    /// The result from the run's own log; without one, its last output.
    fn run_end(&self, dir: &Path, id: &str, ended: &JobEnd) -> RunEnd {
        let took = u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX);
        match look(dir, id) {
            Looked::Over(run) => end_of(id, &run, took),
            looked @ (Looked::Begun | Looked::Nothing) => {
                let more = if matches!(looked, Looked::Begun) {
                    format!("; archeflow resume {id}")
                } else {
                    String::new()
                };
                // What only a person can do comes first: what follows may be cut.
                let first = if ended.cause == Cause::Exited(NOT_APPROVED) {
                    format!("archeflow trust --repo {}; ", shell_word(&dir.to_string_lossy()))
                } else {
                    String::new()
                };
                RunEnd {
                    took_ms: took,
                    stopped: self.watch.is_stopping(),
                    ..unstarted(id, first + &last_output(ended) + &more)
                }
            }
        }
    }
}

/// D-16: the repository's configuration is not approved.
const NOT_APPROVED: i32 = 20;

/// One process of a run, and whether it was killed from outside.
pub(super) struct Stretch {
    end: RunEnd,
    cut: bool,
}

impl Stretch {
    pub(super) fn last(end: RunEnd) -> Stretch {
        Stretch { end, cut: false }
    }

    fn is_over(&self) -> bool {
        self.end.status.is_some() || !self.cut
    }
}

pub(super) enum Looked {
    Nothing,
    Begun,
    Over(Box<Run>),
}

/// How far a run has come, by its log.
pub(super) fn look(dir: &Path, id: &str) -> Looked {
    let path = dir.join(".archeflow/events").join(format!("{id}.jsonl"));
    match Journal::read(&path) {
        Err(journal::Error::Missing { .. }) => Looked::Nothing,
        Ok(text) if text.is_empty() => Looked::Nothing,
        Ok(text) => match log::fold(&text) {
            Ok(run) if run.outcome.is_some() => Looked::Over(Box::new(run)),
            // Unreadable logs are reported by the run itself when it is started.
            Ok(_) | Err(_) => Looked::Begun,
        },
        Err(_) => Looked::Begun,
    }
}

/// A run that an earlier sprint began, if it is still useful: it can be resumed, or a person finished it by hand. A run
/// that was discarded, failed, or is missing is started again. Anybody may write into the queue, so the
/// run must be one that a sprint began for this very task.
pub fn unfinished(item: &QueueItem, id: &str, read: impl FnOnce() -> Option<Run>) -> Option<UnfinishedRun> {
    let (begun_for, _attempt) = id.rsplit_once('.')?;
    if !names::valid_name(id) || !begun_for.ends_with(&format!(".{}", item.id)) {
        return None;
    }
    let run = read()?;
    run.request.as_ref().filter(|request| request.task == item.task)?;
    let goes_on = run.outcome.is_none() || busy(&run).is_some();
    let done = run.outcome.as_ref().is_some_and(|outcome| {
        let approved = (outcome.status, outcome.reason) == (RunStatus::AwaitingMerge, Reason::Approved);
        outcome.status == RunStatus::Merged || approved
    });
    let limit = || run.limits().iter().find(|limit| limit.name == "run").map(|limit| limit.cap);
    let budget_usd = if done { Some(run.spent) } else { limit() };
    (goes_on || done).then_some(UnfinishedRun { run_id: id.to_owned(), spent_usd: run.spent, budget_usd })
}

pub(super) fn end_of(id: &str, run: &Run, took_ms: u64) -> RunEnd {
    let outcome = run.outcome.as_ref();
    RunEnd {
        run_id: id.to_owned(),
        status: outcome.map(|outcome| outcome.status),
        reason: outcome.map(|outcome| outcome.reason),
        detail: outcome.map(|outcome| outcome.detail.clone()).unwrap_or_default(),
        cycles: run.number(),
        cost_usd: run.spent,
        took_ms,
        stopped: false,
        landed_as: landed_as(run),
        accounts: accounts(run),
        busy: busy(run),
    }
}

fn landed_as(run: &Run) -> Option<String> {
    run.complete.as_ref()?.merged_oid.clone()
}

fn accounts(run: &Run) -> Vec<String> {
    let all: BTreeSet<&String> = run.accounts.last.values().chain(run.accounts.open.keys()).collect();
    all.into_iter().cloned().collect()
}

/// Whom it waits for, if it waits for a provider.
fn busy(run: &Run) -> Option<Busy> {
    run.outcome.as_ref().filter(|outcome| outcome.reason == Reason::ProviderBusy)?;
    let open: Vec<String> = run.accounts.open.keys().cloned().collect();
    let accounts = if open.is_empty() { accounts(run) } else { open };
    Some(Busy { accounts, until: run.complete.as_ref().and_then(|complete| complete.reopens_at) })
}

/// The end of a run that was not started.
pub fn unstarted(id: &str, detail: String) -> RunEnd {
    RunEnd {
        run_id: id.to_owned(),
        status: None,
        reason: None,
        detail,
        cycles: 0,
        cost_usd: Money::ZERO,
        took_ms: 0,
        stopped: false,
        landed_as: None,
        accounts: Vec::new(),
        busy: None,
    }
}

fn last_output(ended: &JobEnd) -> String {
    let said = String::from_utf8_lossy(&ended.stderr.bytes).into_owned();
    let error = said.lines().rev().find_map(|line| line.strip_prefix("error: "));
    let last = || said.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let said = error.or_else(last).unwrap_or("it printed nothing").to_owned();
    match &ended.cause {
        Cause::Exited(code) => format!("exit {code}: {said}"),
        Cause::Signaled(signal) => format!("killed by signal {signal}: {said}"),
        Cause::Silent | Cause::TooLong | Cause::Stopped => "it was stopped".to_owned(),
        Cause::OverLimit(what) => what.clone(),
        Cause::NotStarted(why) => why.to_string(),
    }
}

pub(super) fn words<const N: usize>(words: [&str; N]) -> Vec<OsString> {
    words.into_iter().map(OsString::from).collect()
}

/// As the command line reads it.
fn dollars(money: Money) -> String {
    format!("{}.{:06}", money.0 / 1_000_000, money.0 % 1_000_000)
}
