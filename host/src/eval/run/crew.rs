//! Who performs the runs of trials: processes of this machine ([`super::LocalTrials`]), or the workers of a fleet. Making
//! repositories, measuring and writing down what came of a trial is done here for all of them.

use std::path::{Path, PathBuf};

use archeflow_core::eval::TrialKey;

use crate::eval::EvalTask;

/// A trial whose run is to be performed.
#[derive(Debug, Clone, Copy)]
pub struct TrialRun<'a> {
    pub key: &'a TrialKey,
    pub task: &'a EvalTask,
    /// Its repository as it was made here. The run begins at its branch `main`.
    pub repository: &'a Path,
    /// The folder of the arm's configuration.
    pub arm: &'a Path,
    pub agent: &'a TrialAgent,
}

/// Who plays all roles of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrialAgent {
    /// As it is typed for a run.
    Named(String),
    /// Simulated agents with the setup in this file.
    Simulated(PathBuf),
}

/// How the run of a trial ended. Its result is in its journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrialRunEnd {
    /// For a person, if there is no result.
    pub detail: String,
    /// It reached the time limit of its task.
    pub is_late: bool,
    /// Without a result it is resumed by the next session: what ended it says nothing about the trial.
    pub goes_on: bool,
}

/// What a crew has to do. [`TrialCrew::run`] is called by several threads and may take hours; all others answer at once.
pub trait TrialCrew: Sync {
    /// The most trials that are ever under way at a time.
    fn most(&self) -> usize;

    /// How many may be under way now, at least one.
    fn room(&self) -> usize;

    /// From wherever an earlier session left it to its end.
    fn run(&self, trial: &TrialRun<'_>) -> TrialRunEnd;

    /// Where the journal of the run is, once it has ended.
    fn journal(&self, key: &TrialKey) -> PathBuf;

    /// The repository that has the run's commits, once it has ended.
    fn repository(&self, key: &TrialKey) -> PathBuf;

    /// Whether a trial whose run was ended by a fault of the machine can be begun anew, as if it had never begun.
    fn begins_anew(&self) -> bool {
        true
    }

    /// Everything that follows from how it ended is on disk.
    fn recorded(&self, _key: &TrialKey) {}

    /// Removes what is kept of a trial that is over, beside its folder.
    fn remove(&self, _key: &TrialKey) {}

    /// What a person should know now and was not shown yet.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// Asks all runs to end; they save their work first.
    fn stop(&self) {}

    /// Waits for none of them any more.
    fn abandon(&self) {}
}
