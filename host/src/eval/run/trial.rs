//! One trial: a repository, a run in it, and what came of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archeflow_core::eval::{EvalTrial, TrialEnd, TrialKey};
use archeflow_core::event::{CycleBoundary, Entry, Event, QuestionAsked, Report, ReviewVerdict, Tokens};
use archeflow_core::model::{Change, Reason, Review, RunStatus};
use archeflow_core::run::{Cycle, Run};
use archeflow_core::sprint::queue::{ItemStatus, Priority, QueueItem, TaskSize};

use super::crew::{TrialAgent, TrialRun};
use super::folder::REPOSITORY;
use super::{Bench, EvalRunError, TrialAgents, Tried};
use crate::eval::copy::{self, CopyFault, ScratchFolder};
use crate::eval::{EvalTask, TaskOrigin};
use crate::git::fresh::{CommitSource, FreshError, FreshRepository};
use crate::git::remove_beneath;
use crate::log;
use crate::nonce::nonce;
use crate::platform::files as os;
use crate::store::files;
use crate::store::journal::Journal;

/// How often a trial is begun in one session.
const BEGINNINGS: u32 = 3;
/// Says that the repository of a trial is whole.
const READY: &str = "ready";

/// What the journal of a run says.
pub(super) struct RunFacts {
    pub(super) run: Run,
    /// While a process drove it.
    pub(super) active: Duration,
    questions: u32,
    /// The last session was ended by a signal.
    was_stopped: bool,
    pub(super) reviewed: Vec<ReviewedWork>,
}

impl RunFacts {
    /// Its provider was busy, so it waits to be resumed.
    pub(super) fn is_busy(&self) -> bool {
        self.run.outcome.as_ref().is_some_and(|outcome| outcome.reason == Reason::ProviderBusy)
    }
}

/// What the reviewers of a cycle were shown, and what they said in the end.
pub(super) struct ReviewedWork {
    pub(super) made: Change,
    pub(super) reviews: BTreeMap<String, Review>,
}

impl Bench<'_> {
    pub(super) fn task(&self, key: &TrialKey) -> Result<&EvalTask, EvalRunError> {
        self.tasks.get(key.task.as_str()).copied().ok_or_else(|| EvalRunError::NoTask(key.task.clone()))
    }

    /// The objects that the task's repository borrows.
    pub(super) fn source(&self, task: &EvalTask) -> Option<&CommitSource> {
        match &task.origin {
            TaskOrigin::Files(_) => None,
            TaskOrigin::Commit { place, .. } => self.sources.get(place)?.as_ref().ok(),
        }
    }

    /// From wherever an earlier session left it to its end. Begun anew a few times if the machine was at fault.
    pub(super) fn trial(&self, key: &TrialKey) -> Result<Tried, EvalRunError> {
        for _ in 1..BEGINNINGS {
            let tried = self.attempt(key)?;
            let is_anew = matches!(tried, Tried::Later(Some(_))) && !self.folder.trial(key).exists();
            if !is_anew {
                return Ok(tried);
            }
        }
        self.attempt(key)
    }

    fn attempt(&self, key: &TrialKey) -> Result<Tried, EvalRunError> {
        let task = self.task(key)?;
        self.at_work(|| self.make_repository(key, task))?;
        let agent = match &self.options.agents {
            TrialAgents::Named(agent) => TrialAgent::Named(agent.clone()),
            TrialAgents::Simulated(population) => {
                TrialAgent::Simulated(self.simulated(key, task, population)?)
            }
        };
        let repository = self.folder.trial(key).join(REPOSITORY);
        let arm = self.folder.arm(&key.arm);
        let end = self.crew.run(&TrialRun { key, task, repository: &repository, arm: &arm, agent: &agent });
        if self.options.world.watch.is_stopping() {
            return Ok(Tried::Stopped);
        }
        let told = told(&self.crew.journal(key));
        let outcome = told.as_ref().and_then(|told| told.run.outcome.as_ref());
        let not_started = |why: String| {
            // The next session begins it anew.
            self.crew.recorded(key);
            Err(EvalRunError::NotStarted { trial: shown(key), why })
        };
        let ended = match outcome.map(|outcome| (outcome.status, outcome.reason)) {
            Some((_, Reason::ProviderBusy)) => return Ok(Tried::Later(None)),
            Some((_, Reason::NotSignedIn)) => {
                return not_started(outcome.map(|outcome| outcome.detail.clone()).unwrap_or_default());
            }
            Some((_, reason)) if is_of_machine(reason) && self.crew.begins_anew() => {
                // Nothing of it counts, so it is begun anew.
                let why = outcome.map(|outcome| outcome.detail.clone()).unwrap_or_default();
                self.crew.recorded(key);
                self.folder.remove_repository(key);
                return Ok(Tried::Later(Some(why)));
            }
            Some((status, reason)) => end_of(status, reason),
            None if end.is_late => TrialEnd::OverLimit,
            // Nothing was written, so nothing began: the reason is the same for all.
            None if told.is_none() => return not_started(end.detail),
            None if told.as_ref().is_some_and(|told| told.was_stopped) => {
                return Ok(Tried::Later(Some("a signal stopped its run".to_owned())));
            }
            None if end.goes_on => return Ok(Tried::Later(Some(end.detail))),
            None => TrialEnd::Failed,
        };
        let measured = self.at_work(|| self.measured(key, task, told.as_ref()))?;
        let Some(measured) = measured else { return Ok(Tried::Stopped) };
        let mut trial = match &told {
            Some(told) => trial_of(key, ended, measured.hidden_pass, told),
            None => EvalTrial::new(key.clone(), ended, measured.hidden_pass),
        };
        trial.traps_set = task.traps.iter().map(|trap| trap.name.clone()).collect();
        trial.traps_fallen = measured.traps_fallen;
        trial.reviewers = measured.reviewers;
        Ok(Tried::Over(Box::new(trial)))
    }

    /// A repository that a killed session left unfinished is made again.
    fn make_repository(&self, key: &TrialKey, task: &EvalTask) -> Result<(), EvalRunError> {
        let folder = self.folder.trial(key);
        if folder.join(READY).exists() {
            return Ok(());
        }
        let failed = |why: String| EvalRunError::Machine(format!("no repository for {}: {why}", shown(key)));
        if folder.exists() {
            remove_beneath(&folder).map_err(|error| failed(error.to_string()))?;
        }
        os::private_directory().recursive(true).create(&folder).map_err(|error| failed(error.to_string()))?;
        let made = copy::make(&folder.join(REPOSITORY), task, self.source(task), None, &|| false);
        made.map_err(|fault| match fault {
            CopyFault::NoCommit => failed("the commit is not in the repository".to_owned()),
            CopyFault::Patch(field, why) => failed(format!("{field} can't be applied: {why}")),
            CopyFault::HiddenThere => failed("it has a folder hidden/ already".to_owned()),
            CopyFault::Machine(why) => failed(why),
        })?;
        set_author(&folder.join(REPOSITORY)).map_err(|error| failed(error.to_string()))?;
        Ok(files::write_atomic(&folder.join(READY), b"")?)
    }
}

/// The queue item of a run that no queue has.
pub fn only_item(id: &str, project: &str, task: &str) -> QueueItem {
    QueueItem {
        id: id.to_owned(),
        project: project.to_owned(),
        task: task.to_owned(),
        priority: Priority::P1,
        estimate: TaskSize::M,
        status: ItemStatus::Running,
        depends_on: Vec::new(),
        workflow: None,
        files: Vec::new(),
    }
}

pub(super) fn shown(key: &TrialKey) -> String {
    format!("{} in {}, repeat {}", key.task, key.arm, key.repeat)
}

/// How far a run was driven, by its journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrialProgress {
    /// While a process drove it.
    pub active: Duration,
    /// Its provider was busy, so it waits to be resumed.
    pub is_busy: bool,
}

/// How far the run of a trial has come. One without a journal has not begun.
pub fn run_progress(journal: &Path) -> TrialProgress {
    told(journal).map_or_else(TrialProgress::default, |told| TrialProgress {
        active: told.active,
        is_busy: told.is_busy(),
    })
}

pub(super) fn told(journal: &Path) -> Option<RunFacts> {
    let text = Journal::read(journal).ok().filter(|text| !text.is_empty())?;
    let mut reader = RunReader::default();
    let run = log::fold_seeing(&text, |run, entry| reader.see(run, entry)).ok()?;
    Some(reader.facts(run))
}

/// Collects what the lines of a journal say about a trial.
#[derive(Default)]
pub(super) struct RunReader {
    active: u64,
    last: Option<u64>,
    questions: u32,
    was_stopped: bool,
    /// A run forgets the reviews of a cycle when the next one begins.
    cycles: BTreeMap<u32, ReviewedWork>,
}

impl RunReader {
    /// `run` is as it is after the line.
    pub(super) fn see(&mut self, run: &Run, entry: &Entry) {
        if let Some((number, reviewed)) =
            run.cycles.last().and_then(reviewed).filter(|_| is_review(&entry.event))
        {
            self.cycles.insert(number, reviewed);
        }
        // Between the last line of a session and the first of the next nobody worked.
        let is_new_session = matches!(&entry.event, Event::Report(Report::SessionStart(_)));
        if let Some(last) = self.last.filter(|_| !is_new_session) {
            self.active += entry.at.saturating_sub(last);
        }
        self.last = Some(entry.at);
        self.was_stopped = matches!(&entry.event, Event::Report(Report::SessionEnd(_)));
        self.questions += u32::from(is_question(&entry.event));
    }

    pub(super) fn facts(self, run: Run) -> RunFacts {
        let reviewed = self.cycles.into_values().collect();
        let (questions, was_stopped) = (self.questions, self.was_stopped);
        RunFacts { run, active: Duration::from_millis(self.active), questions, was_stopped, reviewed }
    }
}

/// Not the work of an arm: a trial has its repository for itself, so nobody else is in its way, and the suite was checked, so
/// the tests pass on its base.
fn is_of_machine(reason: Reason) -> bool {
    matches!(reason, Reason::GitFault | Reason::TargetBusy | Reason::RedBase)
}

fn end_of(status: RunStatus, reason: Reason) -> TrialEnd {
    match (status, reason) {
        (RunStatus::Merged, _) => TrialEnd::Landed,
        (_, Reason::Budget) => TrialEnd::OverLimit,
        (RunStatus::Failed, _) => TrialEnd::Failed,
        (_, _) => TrialEnd::HeldBack,
    }
}

/// Of a run that has ended.
pub(super) fn trial_end(run: &Run) -> TrialEnd {
    let outcome = run.outcome.as_ref();
    outcome.map_or(TrialEnd::Failed, |outcome| end_of(outcome.status, outcome.reason))
}

/// What the journal alone says about a trial.
pub(super) fn trial_of(
    key: &TrialKey,
    ended: TrialEnd,
    hidden_pass: Option<bool>,
    facts: &RunFacts,
) -> EvalTrial {
    let mut trial = EvalTrial::new(key.clone(), ended, hidden_pass);
    trial.cycles = facts.run.number();
    trial.money = facts.run.spent;
    trial.tokens = tokens(&facts.run);
    trial.seconds = Some(facts.active.as_secs());
    trial.decisions = facts.questions + u32::from(waits_for_person(&facts.run));
    trial
}

fn reviewed(cycle: &Cycle) -> Option<(u32, ReviewedWork)> {
    let reviews = cycle.reviewers().into_iter().map(|(name, review)| (name.to_owned(), review.clone()));
    let made = cycle.made.clone()?;
    Some((cycle.number, ReviewedWork { made, reviews: reviews.collect() }))
}

fn is_review(event: &Event) -> bool {
    event.body::<ReviewVerdict>().is_some() || event.body::<CycleBoundary>().is_some()
}

fn is_question(event: &Event) -> bool {
    event.body::<QuestionAsked>().is_some()
}

/// Approved but not landed, or stopped for a decision.
fn waits_for_person(run: &Run) -> bool {
    let status = run.outcome.as_ref().map(|outcome| outcome.status);
    matches!(status, Some(RunStatus::AwaitingMerge | RunStatus::WiggumBreak))
}

fn tokens(run: &Run) -> Tokens {
    let mut all = Tokens::default();
    for account in run.ledger.accounts.values() {
        all = all.plus(account.tokens);
    }
    all
}

/// A repository that is like the one of a trial, removed with this value.
#[derive(Debug)]
pub struct SampleRepository {
    scratch: ScratchFolder,
}

impl SampleRepository {
    pub fn path(&self) -> PathBuf {
        self.scratch.path().join(REPOSITORY)
    }
}

/// For questions about the configuration of an arm. It has no files: a trial's own repository may be large.
///
/// # Errors
/// If the temporary folder can't be used.
pub fn sample_repository() -> Result<SampleRepository, EvalRunError> {
    let failed = |why: String| EvalRunError::Machine(format!("no temporary repository: {why}"));
    let scratch =
        ScratchFolder::new(&format!("archeflow-eval-{}", nonce())).map_err(|e| failed(e.to_string()))?;
    let sample = SampleRepository { scratch };
    let path = sample.path();
    os::private_directory().recursive(true).create(&path).map_err(|error| failed(error.to_string()))?;
    FreshRepository::of_files(&path).map_err(|error| failed(error.to_string()))?;
    set_author(&path).map_err(|error| failed(error.to_string()))?;
    Ok(sample)
}

/// A repository with the files of a task, removed with this value.
///
/// # Errors
/// If the task has no files, or the temporary folder can't be used.
pub fn task_repository(task: &EvalTask) -> Result<SampleRepository, EvalRunError> {
    let failed = |why: String| EvalRunError::Machine(format!("no repository for {}: {why}", task.name));
    let scratch =
        ScratchFolder::new(&format!("archeflow-eval-{}", nonce())).map_err(|e| failed(e.to_string()))?;
    let sample = SampleRepository { scratch };
    copy::make(&sample.path(), task, None, None, &|| false)
        .map_err(|_| failed("it has no folder base/".to_owned()))?;
    set_author(&sample.path()).map_err(|error| failed(error.to_string()))?;
    Ok(sample)
}

/// Commits of trials are nobody's: a machine that only evaluates need not know a person.
fn set_author(repository: &Path) -> Result<(), FreshError> {
    FreshRepository::at(repository).set_author("archeflow eval", "eval@localhost")
}
