//! Who performs what a sprint orders. The loop of a sprint claims, decides and settles; its crew runs and lands. On one
//! machine each run is a process started here ([`super::local_crew::LocalCrew`]); a fleet gives orders to workers.
//!
//! Everyone here looks before acting, since an order may be performed twice.

use std::path::PathBuf;
use std::time::Duration;

use archeflow_core::model::{Money, Seq};
use archeflow_core::run::Run;
use archeflow_core::sprint::Sprint;
use archeflow_core::sprint::event::{BatchLanding, Candidate, RunEnd, UnfinishedRun};
use archeflow_core::sprint::policy::Room;
use archeflow_core::sprint::queue::QueueItem;

use super::queue::QueueFolder;

/// What a sprint is about, whoever performs it.
#[derive(Debug, Clone)]
pub struct SprintSetup {
    pub sprint_id: String,
    pub place: QueueFolder,
    /// The folder of the projects.
    pub projects: PathBuf,
    /// The mark of this session, which [`SprintCrew::clear_away`] of the next one gets.
    pub tag: String,
}

/// A run that may still land.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnlandedRun {
    pub item: String,
    pub run_id: String,
    /// Its branch may still move.
    pub moves: bool,
}

/// The files that two items of a project both change; none if they no longer do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchOverlap {
    pub a: String,
    pub b: String,
    pub files: Vec<String>,
}

/// Why nothing may follow from a line of the sprint's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotKept {
    /// It is asked again until it is kept.
    Yet(String),
    /// Another process has the sprint: this one ends.
    Fenced(String),
}

/// What a crew has to do. Orders are performed on threads of their own, and may take hours; the rest is asked by the
/// sprint's loop and answered at once. `seq` is the order's line in the sprint's log: the same order has the same number
/// when it is performed again.
pub trait SprintCrew: Send + Sync {
    /// A run from its beginning, or from where an earlier session left it, to its end.
    fn run(&self, seq: Seq, item: &QueueItem, run_id: &str, budget: Option<Money>) -> RunEnd;

    /// A run that was parked or left, from there to its end.
    fn resume(&self, seq: Seq, item: &QueueItem, run_id: &str) -> RunEnd;

    /// Lands a run that is approved: built on the target as it is now, tested, and only then moved.
    fn land(&self, seq: Seq, item: &QueueItem, run_id: &str) -> RunEnd;

    /// Lands several runs of a project in one step, each on top of the one before.
    fn land_together(&self, seq: Seq, project: &str, candidates: &[Candidate]) -> BatchLanding;

    /// The run that an earlier sprint began for this item, if it is still useful. Anybody may write into the queue, so it
    /// must be one that a sprint began for this very task.
    fn left(&self, item: &QueueItem, run_id: &str) -> Option<UnfinishedRun>;

    /// How much more can run now. A crew whose room changes between two looks posts
    /// [`super::drive::SprintMessage::RoomChanged`].
    fn room(&self) -> Room;

    /// What runs under way in one project both change, for the pairs that were looked at anew.
    fn overlaps(&self, project: &str, live: &[UnlandedRun]) -> Vec<BranchOverlap>;

    /// Shows a run as it is now. One that can't be read is not shown.
    fn show_run(&self, project: &str, run_id: &str, show: &mut dyn FnMut(&Run));

    /// The sprint's log on this machine has this many lines now, and the last of them answer these orders. A crew that keeps
    /// the log elsewhere too does so before it returns: nothing follows from a line before that.
    fn recorded(&self, _lines: u64, _answered: &[Seq]) -> Result<(), NotKept> {
        Ok(())
    }

    /// How long to wait for further reports after one, by the number of open orders. What follows from several reports is
    /// written in one step, and writing is most of the work.
    fn gathers(&self, _open: usize) -> Duration {
        Duration::ZERO
    }

    /// What a person should know now and was not shown yet.
    fn warnings(&self, _sprint: &Sprint) -> Vec<String> {
        Vec::new()
    }

    /// Where a person finds the runs of a project.
    fn project_folder(&self, project: &str) -> Option<PathBuf>;

    /// Ends what a session with this mark left behind when it was killed.
    fn clear_away(&self, tag: &str);

    /// Asks all runs to end; they save their work first.
    fn stop(&self);

    /// Ends all runs at once.
    fn kill_now(&self);

    /// Whether everything that ends with this process is over, after waiting for so long at most.
    fn is_over(&self, within: Duration) -> bool;
}
