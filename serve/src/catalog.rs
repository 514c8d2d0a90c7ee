//! The runs of all repositories the user has run in, as their indexes and journals have them now. What was read is kept
//! as long as the file has the same length and time, so a page costs a look at each file and no more.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use archeflow_core::digest;
use archeflow_core::projections::inbox::{DamagedRun, InboxItem, InboxRun};
use archeflow_core::run::Run;
use archeflow_core::text::short_line;
use archeflow_host::platform::files;
use archeflow_host::store::index::{self, IndexEntry};
use archeflow_host::store::journal::Journal;
use archeflow_host::store::own_runs::RepositoryRuns;
use archeflow_host::{clock, log, repositories};

/// More runs that wait or are under way are not looked into.
const FOLDED: usize = 100;
/// States of runs that are kept between two requests.
const MOST_KEPT: usize = 128;

/// A repository with runs.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// Names it in addresses, which hold no path.
    pub(crate) key: String,
    pub(crate) name: String,
    pub(crate) root: PathBuf,
    /// It was noted once and is not there any more.
    pub(crate) missing: bool,
    /// Its journals are copies of those of a fleet: another machine drives them, and nothing is decided here.
    pub(crate) is_copy: bool,
    pub(crate) runs: Arc<Vec<IndexEntry>>,
}

impl Repository {
    pub(crate) fn events(&self) -> PathBuf {
        self.root.join(".archeflow/events")
    }
}

/// A run as its index has it, and what can be seen of it now.
#[derive(Debug, Clone)]
pub(crate) struct CatalogRun {
    pub(crate) repository: Arc<Repository>,
    pub(crate) entry: IndexEntry,
    /// It has not ended and no process drives it.
    pub(crate) interrupted: bool,
    /// This machine did not start it: it is shown and never executed.
    pub(crate) foreign: bool,
}

/// A run that is under way or waits for a person.
#[derive(Debug, Clone)]
pub(crate) struct ActiveRun {
    pub(crate) seen: CatalogRun,
    pub(crate) run: Arc<Run>,
    pub(crate) item: InboxItem,
}

/// Everything that is shown beside every page.
#[derive(Debug, Default)]
pub(crate) struct Overview {
    pub(crate) repositories: Vec<Arc<Repository>>,
    pub(crate) waiting: Vec<ActiveRun>,
    pub(crate) running: Vec<ActiveRun>,
    /// The newest first.
    pub(crate) all: Vec<(Arc<Repository>, IndexEntry)>,
}

pub(crate) struct Catalog {
    state: Option<PathBuf>,
    is_copy: bool,
    indexes: Mutex<Kept<Vec<IndexEntry>>>,
    runs: Mutex<Kept<Run>>,
}

/// What was read of a file, and how the file was then.
type Kept<T> = HashMap<PathBuf, (Stamp, Arc<T>)>;

/// A file that has the same is taken to be the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(path: &Path) -> Option<Stamp> {
        let meta = std::fs::metadata(path).ok()?;
        Some(Stamp { length: meta.len(), modified: meta.modified().ok() })
    }
}

impl Catalog {
    pub(crate) fn new(state: Option<PathBuf>) -> Catalog {
        Catalog { state, is_copy: false, indexes: Mutex::default(), runs: Mutex::default() }
    }

    /// The copies of a fleet's journals. The folder has a list of repositories of its own.
    pub(crate) fn of_copies(folder: PathBuf) -> Catalog {
        Catalog { is_copy: true, ..Catalog::new(Some(folder)) }
    }

    pub(crate) fn state(&self) -> Option<&Path> {
        self.state.as_deref()
    }

    /// Why the list of repositories can't be read.
    pub(crate) fn trouble(&self) -> Option<String> {
        let state = self.state.as_deref()?;
        if !state.is_dir() {
            return Some(format!("{} is gone", state.display()));
        }
        repositories::read(state).err().map(|error| error.to_string())
    }

    /// What can't be read is missing here: the folder may belong to something else by now.
    pub(crate) fn repositories(&self) -> Vec<Arc<Repository>> {
        let known = self.state.as_deref().and_then(|state| repositories::read(state).ok());
        known.unwrap_or_default().into_iter().map(|root| Arc::new(self.repository(root))).collect()
    }

    pub(crate) fn by_key(&self, key: &str) -> Option<Arc<Repository>> {
        self.repositories().into_iter().find(|known| known.key == key)
    }

    /// The repository here, also before its first run.
    pub(crate) fn at(&self, root: &Path) -> Arc<Repository> {
        Arc::new(self.repository(root.to_owned()))
    }

    fn repository(&self, root: PathBuf) -> Repository {
        let name = root.file_name().unwrap_or(root.as_os_str()).to_string_lossy();
        let name = short_line(&name, 40);
        let missing = repositories::is_gone(&root);
        let runs = if missing { Arc::default() } else { self.index(&root.join(".archeflow/events")) };
        Repository { key: key(&root), name, missing, is_copy: self.is_copy, runs, root }
    }

    fn index(&self, events: &Path) -> Arc<Vec<IndexEntry>> {
        let path = events.join("index.jsonl");
        let Some(stamp) = Stamp::of(&path) else { return Arc::default() };
        if let Some((_, known)) = lock(&self.indexes).get(&path).filter(|(known, _)| *known == stamp) {
            return Arc::clone(known);
        }
        let runs = Arc::new(index::read(events).unwrap_or_default().runs);
        lock(&self.indexes).insert(path, (stamp, Arc::clone(&runs)));
        runs
    }

    /// The state of a run; nothing if its journal can't be read.
    pub(crate) fn fold(&self, journal: &Path) -> Option<Arc<Run>> {
        let stamp = Stamp::of(journal)?;
        if let Some((_, known)) = lock(&self.runs).get(journal).filter(|(known, _)| *known == stamp) {
            return Some(Arc::clone(known));
        }
        let run = Arc::new(log::fold(&Journal::read(journal).ok()?).ok()?);
        let mut runs = lock(&self.runs);
        if runs.len() >= MOST_KEPT {
            runs.clear();
        }
        runs.insert(journal.to_owned(), (stamp, Arc::clone(&run)));
        Some(run)
    }

    pub(crate) fn overview(&self) -> Overview {
        let repositories = self.repositories();
        let mut all: Vec<(u64, Arc<Repository>, IndexEntry)> = repositories
            .iter()
            .flat_map(|repository| {
                let runs = repository.runs.iter();
                runs.map(|entry| (clock::read(&entry.ts), Arc::clone(repository), entry.clone()))
            })
            .collect();
        all.sort_by_key(|(at, ..)| std::cmp::Reverse(*at));
        let mut overview = Overview { repositories, ..Overview::default() };
        let mut reviews = std::collections::HashSet::new();
        let unsettled = all.iter().filter(|(_, repository, entry)| {
            // A review is replaced by the next one of the same change.
            let replaced = entry.status == "reviewed" && !reviews.insert((&repository.key, &entry.task));
            !replaced && !matches!(entry.status.as_str(), "merged" | "dry_run")
        });
        for (_, repository, entry) in unsettled.take(FOLDED) {
            let Some(active) = self.active(self.look(repository, entry)) else { continue };
            let group = if active.item.waiting { &mut overview.waiting } else { &mut overview.running };
            group.push(active);
        }
        overview.waiting.sort_by_key(|active| (urgency(&active.run), active.run.last));
        overview.all = all.into_iter().map(|(_, repository, entry)| (repository, entry)).collect();
        overview
    }

    pub(crate) fn look(&self, repository: &Arc<Repository>, entry: &IndexEntry) -> CatalogRun {
        let driven = || Journal::driver(&repository.events(), &entry.run_id).is_some();
        let interrupted = entry.status == "running" && !repository.is_copy && !driven();
        let foreign = self.is_foreign(repository, &entry.run_id);
        CatalogRun { repository: Arc::clone(repository), entry: entry.clone(), interrupted, foreign }
    }

    /// Whether this machine did not start it.
    pub(crate) fn is_foreign(&self, repository: &Repository, id: &str) -> bool {
        let events = repository.events();
        let own =
            self.state.as_deref().and_then(|state| RepositoryRuns::open(state, &repository.root, &events));
        !own.is_some_and(|own| own.is_own(id))
    }

    fn active(&self, seen: CatalogRun) -> Option<ActiveRun> {
        let id = &seen.entry.run_id;
        let journal = seen.repository.events().join(format!("{id}.jsonl"));
        let Some(run) = self.fold(&journal) else { return damaged(seen, &journal) };
        let mut item = InboxItem::of(InboxRun {
            run_id: id,
            name: id,
            repository: &seen.repository.root.display().to_string(),
            here: seen.repository.is_copy,
            interrupted: seen.interrupted,
            run: &run,
        })?;
        if seen.foreign && !seen.repository.is_copy {
            item.detail =
                "Foreign: this machine did not start it, so it is shown and never executed.".to_owned();
            item.next = format!("archeflow trust --run {id}");
        }
        Some(ActiveRun { seen, run, item })
    }
}

/// A person has to look at it; one whose journal was removed is in the way of nothing.
fn damaged(seen: CatalogRun, journal: &Path) -> Option<ActiveRun> {
    let read = Journal::read(journal).map_err(|error| error.to_string());
    let why = read.and_then(|text| log::fold(&text).map_err(|error| error.to_string())).err()?;
    let id = seen.entry.run_id.clone();
    let repository = &seen.repository.root.display().to_string();
    let item =
        DamagedRun { run_id: &id, name: &id, repository, here: false, why: &short_line(&why, 300) }.into();
    // When it was last heard of is all that is known.
    let mut run = Run::default();
    run.last = clock::read(&seen.entry.ts);
    journal.exists().then(|| ActiveRun { seen, run: Arc::new(run), item })
}

/// What matters most comes first: a question, then a run that stopped by itself, a change to land, and the rest.
fn urgency(run: &Run) -> u8 {
    use archeflow_core::model::RunStatus;
    match run.outcome.as_ref().map(|outcome| outcome.status) {
        _ if run.question().is_some() => 0,
        Some(RunStatus::AwaitingAnswer) => 0,
        Some(RunStatus::WiggumBreak) => 1,
        Some(RunStatus::AwaitingMerge) => 2,
        Some(RunStatus::Stopped | RunStatus::Failed) => 3,
        None => 4,
        Some(RunStatus::Merged | RunStatus::Reviewed | RunStatus::DryRun) => 5,
    }
}

/// The first 12 digits of a digest of the path.
pub(crate) fn key(root: &Path) -> String {
    let digest = digest::sha256(files::bytes(root));
    digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}

/// What is kept may be half written by a thread that panicked; it is only a copy.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
