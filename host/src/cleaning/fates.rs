//! What can still happen to a run, by its journal. Folders in the state folder have the ids of runs and not their
//! repositories, so every repository with a run of that id counts.

use std::path::{Path, PathBuf};

use archeflow_core::rules::keeping::RunFate;
use archeflow_core::rules::run_names::RunState;
use archeflow_core::run::Run;

use super::disk;
use crate::store::journal::{self, Journal};
use crate::store::own_runs::{OwnRun, RecordedRun, RecordedRuns};
use crate::store::places::Places;
use crate::{clock, log};

/// A run as its files show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenRun {
    pub(super) fate: RunFate,
    /// Its last event, in milliseconds since 1970; 0 if there is none.
    pub(super) last: u64,
}

impl SeenRun {
    fn new(fate: RunFate) -> SeenRun {
        SeenRun { fate, last: 0 }
    }
}

pub(super) struct Fates {
    state: PathBuf,
    /// A repository that is not there may be on a disk that is not mounted: for so long its runs count as unknown.
    patience_days: u64,
    /// The run whose journal this process holds, at its end.
    own: Option<(PathBuf, String)>,
    /// Where a run may be that was not started here.
    roots: Vec<PathBuf>,
    records: RecordedRuns,
    /// Something was listed since the records were read. A run has its record before its first folder, so what was listed
    /// has its record now.
    is_behind: bool,
}

impl Fates {
    pub(super) fn new(
        state: &Path,
        patience_days: u64,
        roots: Vec<PathBuf>,
        own: Option<(PathBuf, String)>,
    ) -> Fates {
        Fates {
            state: state.to_path_buf(),
            patience_days,
            own,
            roots,
            records: RecordedRuns::default(),
            is_behind: true,
        }
    }

    pub(super) fn is_own(&self, root: &Path, run_id: &str) -> bool {
        self.own.as_ref().is_some_and(|(own, id)| own == root && id == run_id)
    }

    /// To be called when something was listed (or reserved) and before its run is asked for. That a run of the same id is
    /// known already proves nothing: the runs of an evaluation all have the same one, each in a repository of its own.
    pub(super) fn listed(&mut self) {
        self.is_behind = true;
    }

    pub(super) fn records(&mut self) -> &RecordedRuns {
        if std::mem::take(&mut self.is_behind) {
            self.records.look(&self.state);
        }
        &self.records
    }

    /// The run of this id, wherever it is; of several the one that needs the most.
    pub(super) fn of_id(&mut self, run_id: &str) -> SeenRun {
        let records: Vec<RecordedRun> = self.records().of_id(run_id).cloned().collect();
        let journal = Path::new(".archeflow/events").join(format!("{run_id}.jsonl"));
        if records.is_empty() && self.roots.iter().any(|root| disk::exists(&root.join(&journal))) {
            return SeenRun::new(RunFate::Unknown);
        }
        let seen = records.iter().map(|record| self.of_record(record));
        seen.max_by_key(|seen| (need(seen.fate), seen.last)).unwrap_or(SeenRun::new(RunFate::Gone))
    }

    pub(super) fn of_record(&self, record: &RecordedRun) -> SeenRun {
        let age = clock::now().saturating_sub(disk::changed_at(&record.file)) / 86_400_000;
        if !disk::is_real_folder(&record.root) && age < self.patience_days {
            return SeenRun::new(RunFate::Unknown);
        }
        self.of_run(&record.root, &record.run_id)
    }

    pub(super) fn of_run(&self, root: &Path, run_id: &str) -> SeenRun {
        let Ok(places) = Places::at(root) else { return SeenRun::new(RunFate::Gone) };
        if places.check_owner().is_err() {
            return SeenRun::new(RunFate::Unknown);
        }
        let events = places.events();
        let text = match Journal::read(&events.join(format!("{run_id}.jsonl"))) {
            Err(journal::Error::Missing { .. }) => return SeenRun::new(RunFate::Gone),
            Err(_) => return SeenRun::new(RunFate::Unknown),
            Ok(text) => text,
        };
        let driven = Journal::driver(&events, run_id).is_some() && !self.is_own(root, run_id);
        if driven {
            return SeenRun::new(RunFate::Driven);
        }
        let own = OwnRun { state: &self.state, root: places.root(), run_id };
        match log::fold(&text) {
            Ok(run) if own.wrote(&text).unwrap_or(false) => SeenRun::of(&run),
            Ok(_) | Err(_) => SeenRun::new(RunFate::Unknown),
        }
    }
}

impl SeenRun {
    /// Of a run that no other process drives.
    pub(super) fn of(run: &Run) -> SeenRun {
        SeenRun { fate: RunFate::of(RunState::of(run, false)), last: run.last }
    }
}

/// How much of its files a run needs.
fn need(fate: RunFate) -> u8 {
    match fate {
        RunFate::Gone => 0,
        RunFate::Closed => 1,
        RunFate::Waiting => 2,
        RunFate::Unknown => 3,
        RunFate::Interrupted => 4,
        RunFate::Driven => 5,
    }
}
