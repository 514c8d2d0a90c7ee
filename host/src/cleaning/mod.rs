//! Removes what nothing needs any more (U-14): `archeflow gc`, and the bounds that the end of a run enforces. What is
//! kept is decided in [`archeflow_core::rules::keeping`]; here the facts are found and the decisions carried out.
//! `docs/cleaning-up.md` lists every place the program writes to.
//!
//! - **Locks.** What has a lock (copies, journals, dependencies) is removed by its holder. What has none is listed
//!   first and its run looked at afterwards, so that a folder of a process that begins in between is never taken for a
//!   leftover.
//! - **Crashes.** A folder gets a temporary name in one step before anything in it is removed, so no half of one is ever
//!   used; the next cleaning removes what has such a name. The journal of a run goes last.
//! - **Links.** None is followed. One in the place of a folder of ours is left alone.

mod copies;
pub(crate) mod disk;
mod fates;
mod leftovers;
mod runs;
mod shared;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use archeflow_core::rules::keeping::{self, KeepDecision};
use archeflow_core::settings::KeepSettings;

use crate::clock;
use crate::drive::Driver;
use crate::git::Repo;
use crate::store::places::Places;
use crate::world::World;

pub(crate) use shared::review_stores;

use disk::usage;
use fates::Fates;

/// A kind of thing that is cleaned up, in the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CleanedKind {
    Copy,
    Run,
    Ref,
    ReviewStore,
    Setup,
    BuildCache,
    Home,
    Temporary,
    Passed,
    Record,
}

impl CleanedKind {
    /// In the plural.
    pub fn name(self) -> &'static str {
        match self {
            CleanedKind::Copy => "working copies",
            CleanedKind::Run => "runs",
            CleanedKind::Ref => "refs without a run",
            CleanedKind::ReviewStore => "changes under review",
            CleanedKind::Setup => "installed dependencies",
            CleanedKind::BuildCache => "build results",
            CleanedKind::Home => "homes of clients",
            CleanedKind::Temporary => "temporary files",
            CleanedKind::Passed => "test results",
            CleanedKind::Record => "records of runs",
        }
    }
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CleanedItem {
    pub kind: CleanedKind,
    pub path: PathBuf,
    /// On disk; not measured at the end of a run.
    pub bytes: u64,
    pub why: &'static str,
}

#[derive(Debug, Default)]
pub struct CleaningReport {
    pub removed: Vec<CleanedItem>,
    pub kept: Vec<CleanedItem>,
    /// What could not be removed, and why.
    pub failed: Vec<(PathBuf, String)>,
}

/// A repository whose runs are looked at.
pub struct CleanedRepository {
    pub places: Places,
    pub repo: Repo,
}

/// What to clean and how.
pub struct CleaningRequest<'a> {
    pub state: &'a Path,
    pub repositories: &'a [CleanedRepository],
    /// Also what belongs to no repository in the list.
    pub all: bool,
    pub keep: &'a KeepSettings,
    /// Find out what would be removed.
    pub dry_run: bool,
}

/// At the end of a run no more old runs than this are removed: the person waits.
const RUNS_AT_AN_END: usize = 20;

/// What a person asked for.
pub fn clean(request: &CleaningRequest<'_>) -> CleaningReport {
    let roots = request.repositories.iter().map(|one| one.places.root().to_path_buf()).collect();
    let mut cleaner = Cleaner {
        state: request.state,
        keep: request.keep,
        asked: true,
        dry_run: request.dry_run,
        now: clock::now(),
        fates: Fates::new(request.state, request.keep.days, roots, None),
        report: CleaningReport::default(),
    };
    for one in request.repositories {
        cleaner.copies(&copies::pool(request.state, one.repo.id()));
        cleaner.review_stores(&shared::review_stores(request.state, one.repo.id()));
        cleaner.runs(one, usize::MAX);
        cleaner.loose_refs(one);
    }
    if request.all {
        cleaner.everybodys();
    }
    cleaner.shared();
    cleaner.report
}

/// The bounds, at the end of a run that is still held by this process. Returns what could not be removed.
///
/// Large working copies take minutes. `wait` is called every now and then until everything is removed, or until it says that
/// nobody waits any longer: the next cleaning removes the rest.
pub fn after_run(driver: &Driver, mut wait: impl FnMut() -> bool) -> Vec<(PathBuf, String)> {
    if !driver.world.keep.automatic {
        return Vec::new();
    }
    let world = Arc::clone(&driver.world);
    let (done, removed) = channel();
    // It ends with the process.
    let thread = thread::Builder::new().name("cleaning".into());
    let begun = thread.spawn(move || done.send(bounded(&world)).is_ok());
    while begun.is_ok() && wait() {
        match removed.recv_timeout(LOOK) {
            Ok(failed) => return failed,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Vec::new()
}

/// How soon a signal is noticed.
const LOOK: Duration = Duration::from_millis(50);

fn bounded(world: &World) -> Vec<(PathBuf, String)> {
    world.release();
    let root = world.places.root().to_path_buf();
    let mut cleaner = Cleaner {
        state: &world.state,
        keep: &world.keep,
        asked: false,
        dry_run: false,
        now: clock::now(),
        fates: Fates::new(
            &world.state,
            world.keep.days,
            vec![root.clone()],
            Some((root, world.run_id.clone())),
        ),
        report: CleaningReport::default(),
    };
    let here = CleanedRepository { places: world.places.clone(), repo: world.repo.clone() };
    cleaner.copies(&copies::pool(&world.state, world.repo.id()));
    cleaner.review_stores(&shared::review_stores(&world.state, world.repo.id()));
    cleaner.runs(&here, RUNS_AT_AN_END);
    cleaner.shared();
    cleaner.report.failed
}

struct Cleaner<'a> {
    state: &'a Path,
    keep: &'a KeepSettings,
    asked: bool,
    dry_run: bool,
    /// Milliseconds since 1970.
    now: u64,
    fates: Fates,
    report: CleaningReport,
}

impl Cleaner<'_> {
    /// Carries a decision out and records it.
    fn settle(
        &mut self,
        kind: CleanedKind,
        path: &Path,
        decided: KeepDecision,
        remove: impl FnOnce() -> io::Result<()>,
    ) {
        let bytes = if self.asked { usage(path) } else { 0 };
        let item = |why| CleanedItem { kind, path: path.to_path_buf(), bytes, why };
        match decided {
            KeepDecision::Keep(why) => self.report.kept.push(item(why)),
            KeepDecision::Remove(why) if self.dry_run => self.report.removed.push(item(why)),
            KeepDecision::Remove(why) => match remove() {
                Ok(()) => self.report.removed.push(item(why)),
                Err(error) => self.report.failed.push((path.to_path_buf(), error.to_string())),
            },
        }
    }

    /// Removes what an earlier cleaning left in a folder.
    fn finish_earlier(&mut self, folder: &Path) {
        for path in disk::entries(folder).filter(|path| disk::is_trash(path)) {
            self.settle(CleanedKind::Temporary, &path, keeping::temporary(false), || disk::remove(&path));
        }
    }

    fn days_since(&self, then: u64) -> u64 {
        self.now.saturating_sub(then) / 86_400_000
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

    use std::fs;

    use super::*;
    use crate::store::journal::Journal;
    use crate::store::own_runs::OwnRun;

    /// The runs of an evaluation have one id, one state folder, and a repository each.
    #[test]
    fn u_14_a_run_that_begins_during_a_cleaning_keeps_its_folders_though_its_id_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state");
        let begin = |name: &str| {
            let root = folder.path().join(name);
            let places = Places::at(&root).unwrap();
            places.make().unwrap();
            let journal = Journal::create(&places.events(), "trial").unwrap();
            OwnRun { state: &state, root: &root, run_id: "trial" }.remember(1, "digest").unwrap();
            journal
        };
        fs::create_dir_all(&state).unwrap();
        fs::create_dir_all(folder.path().join("first")).unwrap();
        fs::create_dir_all(folder.path().join("second")).unwrap();
        drop(begin("first"));
        let keep = KeepSettings::default();
        let mut cleaner = Cleaner {
            state: &state,
            keep: &keep,
            asked: true,
            dry_run: false,
            now: clock::now(),
            fates: Fates::new(&state, 0, Vec::new(), None),
            report: CleaningReport::default(),
        };
        assert_ne!(cleaner.fates.of_id("trial").fate, keeping::RunFate::Driven);
        let _second = begin("second");
        let made = [state.join("tmp/trial.0011.3"), state.join("homes/trial")];
        made.iter().for_each(|path| fs::create_dir_all(path).unwrap());
        cleaner.shared();
        assert!(made.iter().all(|path| path.exists()), "{:?}", cleaner.report.removed);
    }
}
