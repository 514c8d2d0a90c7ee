//! Tries each task in each arm: real runs in fresh repositories, several at a time, as a sprint runs its items.
//!
//! An evaluation is a folder:
//!
//! | Path | Content |
//! |---|---|
//! | `eval.json` | the plan ([`EvalPlan`]) |
//! | `trials.jsonl` | a line for each trial that is over ([`EvalTrial`]) |
//! | `arms/<arm>/` | the configuration of each arm |
//! | `journals/<trial>.jsonl` | the journal of each run |
//! | `trials/<trial>/` | the repository of a trial, until it is over |
//! | `state/` | the state folder of the runs |
//!
//! A trial is over when its line is written. Whatever the program is doing when it is killed, the next start resumes runs
//! that have begun, measures runs that have ended, and begins the others.

mod crew;
mod folder;
mod local;
mod measure;
mod rules_only;
mod simulated;
mod trial;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use archeflow_core::eval::sim::SimPopulation;
use archeflow_core::eval::{EvalPlan, EvalTrial, TrialKey, TrialSet};
use archeflow_core::model::Money;

use super::check::{self, CheckError, Sources};
use super::confined::CommandWorld;
use super::copy::ScratchFolder;
use super::{EvalSuite, EvalTask};
use crate::nonce::nonce;
use crate::proc;
use crate::store::files;

pub use crew::{TrialAgent, TrialCrew, TrialRun, TrialRunEnd};
pub use folder::{EvalFolder, FolderError, suite_digest};
pub use local::LocalTrials;
pub use rules_only::{RulesOnly, sample_agents};
pub use trial::{
    SampleRepository, TrialProgress, only_item, run_progress, sample_repository, task_repository,
};

/// Between two looks at the crew.
const LOOK: Duration = Duration::from_millis(250);
/// So long may runs take to save their work when an evaluation is stopped.
const EXIT_AT_MOST: Duration = Duration::from_secs(90);

/// What trials run with.
#[derive(Debug)]
pub struct EvalOptions {
    /// Repositories that are made or measured at a time.
    pub jobs: usize,
    pub world: CommandWorld,
    /// Repositories stay when their trial is over.
    pub keep: bool,
    pub agents: TrialAgents,
}

/// Who plays the roles.
#[derive(Debug)]
pub enum TrialAgents {
    /// An agent as it is typed for a run.
    Named(String),
    /// Agents that know both solutions and choose by chance; each trial has a seed of its own.
    Simulated(Box<SimPopulation>),
}

/// How far an evaluation is.
#[derive(Debug, Clone, Copy)]
pub struct EvalProgress<'a> {
    pub key: &'a TrialKey,
    /// Of a trial that is over; `None` if it begins.
    pub trial: Option<&'a EvalTrial>,
    /// Trials that are over, those of earlier sessions included.
    pub done: usize,
    pub spent: Money,
}

/// Hears how an evaluation goes on.
pub trait EvalObserver: Sync {
    fn progress(&self, now: EvalProgress<'_>);
    fn warn(&self, text: &str);
}

/// Why an evaluation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EvalEnd {
    /// All trials are over.
    Complete,
    /// The rest does not fit into the budget.
    Budget,
    /// Some wait until their provider serves them again, or were interrupted by something that was reported.
    Waiting,
    Stopped,
}

#[derive(Debug, thiserror::Error)]
pub enum EvalRunError {
    #[error(transparent)]
    Store(#[from] files::Error),
    #[error("{0}")]
    Machine(String),
    /// It would be the same for every other trial.
    #[error("{trial} did not start: {why}")]
    NotStarted { trial: String, why: String },
    #[error("the task {0} is not in the suite")]
    NoTask(String),
}

/// All that trials share.
struct Bench<'a> {
    folder: &'a EvalFolder,
    plan: &'a EvalPlan,
    options: &'a EvalOptions,
    crew: &'a dyn TrialCrew,
    observer: &'a dyn EvalObserver,
    /// How many of [`EvalOptions::jobs`] are free.
    free_jobs: (Mutex<usize>, Condvar),
    tasks: BTreeMap<&'a str, &'a EvalTask>,
    sources: Sources,
    /// What commands of the suite are shown empty.
    seal: PathBuf,
    scratch: ScratchFolder,
}

/// What is still to do, and what it may cost.
struct Desk {
    waiting: VecDeque<TrialKey>,
    running: usize,
    done: usize,
    spent: Money,
    /// What running trials may cost.
    reserved: Money,
    /// Trials that were left for later.
    left: usize,
    end: Option<Result<EvalEnd, EvalRunError>>,
}

/// Runs all trials of the plan that are not over.
///
/// # Errors
/// If the folder can't be written, or no run can be started. What is over by then is kept.
pub fn run(
    folder: &EvalFolder,
    plan: &EvalPlan,
    suite: &EvalSuite,
    over: &TrialSet,
    options: &EvalOptions,
    crew: &dyn TrialCrew,
    observer: &dyn EvalObserver,
) -> Result<EvalEnd, EvalRunError> {
    // What a killed session left running would go on beside its own successor.
    proc::kill_leftovers(&folder.tag());
    proc::wake_git(&folder.tag());
    for trial in over.iter().filter(|_| !options.keep) {
        folder.remove_repository(&trial.key);
        crew.remove(&trial.key);
    }
    let scratch = ScratchFolder::new(&format!("archeflow-eval-{}", nonce()))
        .map_err(|error| EvalRunError::Machine(format!("no temporary folder: {error}")))?;
    let sources = match check::sources(suite, &options.world, scratch.path()) {
        Ok(sources) => sources,
        Err(CheckError::Stopped) => return Ok(EvalEnd::Stopped),
        Err(CheckError::Machine(why)) => return Err(EvalRunError::Machine(why)),
    };
    let tasks: BTreeMap<&str, &EvalTask> =
        suite.tasks.iter().map(|task| (task.name.as_str(), task)).collect();
    if let Some(missing) = plan.tasks.iter().find(|task| !tasks.contains_key(task.name.as_str())) {
        return Err(EvalRunError::NoTask(missing.name.clone()));
    }
    let seal = suite.root.clone().unwrap_or_else(|| scratch.path().join("none"));
    let free_jobs = (Mutex::new(options.jobs.max(1)), Condvar::new());
    let bench = Bench { folder, plan, options, crew, observer, free_jobs, tasks, sources, seal, scratch };
    let waiting: VecDeque<TrialKey> = plan.trials().filter(|key| over.get(key).is_none()).collect();
    let spent = over.iter().map(|trial| trial.money).sum();
    let desk =
        Desk { waiting, running: 0, done: over.len(), spent, reserved: Money::ZERO, left: 0, end: None };
    let (desk, changed) = (Mutex::new(desk), Condvar::new());
    let is_over = AtomicBool::new(false);
    let threads = crew.most().max(1).min(lock(&desk).waiting.len().max(1));
    std::thread::scope(|scope| {
        scope.spawn(|| bench.attend(&is_over));
        let _ends = SetWhenDropped(&is_over);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| bench.work(&desk, &changed));
            }
        });
    });
    let desk = desk.into_inner().unwrap_or_else(PoisonError::into_inner);
    match desk.end {
        Some(end) => end,
        None if desk.left > 0 => Ok(EvalEnd::Waiting),
        None => Ok(EvalEnd::Complete),
    }
}

/// How the attempt at a trial ended.
enum Tried {
    Over(Box<EvalTrial>),
    /// Its provider is busy, or for the reason given.
    Later(Option<String>),
    Stopped,
}

/// Ends the thread that attends to the crew, however the others end.
pub(super) struct SetWhenDropped<'a>(pub(super) &'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Bench<'_> {
    /// Shows what the crew warns of, and passes on that the evaluation is stopped.
    fn attend(&self, is_over: &AtomicBool) {
        let mut stopped_at: Option<Instant> = None;
        while !is_over.load(Ordering::SeqCst) {
            self.crew.warnings().iter().for_each(|text| self.observer.warn(text));
            let watch = &self.options.world.watch;
            match stopped_at {
                None if watch.is_stopping() => {
                    stopped_at = Some(Instant::now());
                    self.crew.stop();
                }
                Some(at) if at.elapsed() >= EXIT_AT_MOST || watch.is_killing() => self.crew.abandon(),
                Some(_) | None => {}
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Work of this machine, not more of it at a time than it has jobs for.
    fn at_work<T>(&self, work: impl FnOnce() -> T) -> T {
        let (free, changed) = &self.free_jobs;
        let mut now = free.lock().unwrap_or_else(PoisonError::into_inner);
        while *now == 0 {
            now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
        }
        *now -= 1;
        drop(now);
        let done = work();
        *free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        changed.notify_one();
        done
    }

    /// One after the other, until there is none left or something ends the evaluation.
    fn work(&self, desk: &Mutex<Desk>, changed: &Condvar) {
        while let Some((key, reserved)) = self.next(desk, changed) {
            let (done, spent) = now(desk);
            self.observer.progress(EvalProgress { key: &key, trial: None, done, spent });
            let tried = self.trial(&key).and_then(|tried| self.keep(&key, tried));
            let mut desk = lock(desk);
            desk.running -= 1;
            desk.reserved = Money(desk.reserved.0.saturating_sub(reserved.0));
            match tried {
                Ok(Tried::Over(trial)) => {
                    desk.done += 1;
                    desk.spent = desk.spent.plus(trial.money);
                    let (done, spent) = (desk.done, desk.spent);
                    self.observer.progress(EvalProgress { key: &key, trial: Some(&trial), done, spent });
                }
                Ok(Tried::Later(why)) => {
                    desk.left += 1;
                    if let Some(why) = why {
                        self.observer.warn(&format!("{} is not over: {why}", trial::shown(&key)));
                    }
                }
                Ok(Tried::Stopped) => desk.end = Some(Ok(EvalEnd::Stopped)),
                // The first error is the one that tells most.
                Err(error) if !matches!(desk.end, Some(Err(_))) => desk.end = Some(Err(error)),
                Err(_) => {}
            }
            changed.notify_all();
        }
    }

    /// The next trial and what it may cost, once the budget has room for it.
    fn next(&self, desk: &Mutex<Desk>, changed: &Condvar) -> Option<(TrialKey, Money)> {
        let mut desk = lock(desk);
        loop {
            if self.options.world.watch.is_stopping() && desk.end.is_none() {
                desk.end = Some(Ok(EvalEnd::Stopped));
            }
            if desk.end.is_some() {
                return None;
            }
            let key = desk.waiting.front()?;
            if desk.running >= self.crew.room() {
                // Nobody says when there is more room.
                desk =
                    changed.wait_timeout(desk, LOOK).map_or_else(|poison| poison.into_inner().0, |now| now.0);
                continue;
            }
            let cost = self.tasks.get(key.task.as_str()).and_then(|task| task.dollars).unwrap_or(Money::ZERO);
            let fits = |budget: Money| desk.spent.plus(desk.reserved).plus(cost) <= budget;
            if self.plan.budget.is_none_or(fits) {
                desk.running += 1;
                desk.reserved = desk.reserved.plus(cost);
                return desk.waiting.pop_front().map(|key| (key, cost));
            }
            if desk.running == 0 {
                desk.end = Some(Ok(EvalEnd::Budget));
                changed.notify_all();
                return None;
            }
            desk = changed.wait(desk).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Writes the line of a trial that is over. The journal comes first and the repository goes last, so that a kill in
    /// between loses nothing.
    fn keep(&self, key: &TrialKey, tried: Tried) -> Result<Tried, EvalRunError> {
        match &tried {
            Tried::Over(trial) => {
                self.folder.keep_journal(key, &self.crew.journal(key))?;
                self.folder.append(trial)?;
                self.crew.recorded(key);
                if !self.options.keep {
                    self.folder.remove_repository(key);
                    self.crew.remove(key);
                }
            }
            Tried::Later(_) => self.crew.recorded(key),
            Tried::Stopped => {}
        }
        Ok(tried)
    }
}

fn now(desk: &Mutex<Desk>) -> (usize, Money) {
    let desk = lock(desk);
    (desk.done, desk.spent)
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}
