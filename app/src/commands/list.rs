//! `archeflow list`: the runs here and in every repository the user has run in.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use archeflow_core::projections::inbox;
use archeflow_core::projections::view::Tone;
use archeflow_core::run::Run;
use archeflow_host::git::repo;
use archeflow_host::open::{self, Project};
use archeflow_host::store::{index, journal::Journal, own_runs::RepositoryRuns, places::Places};
use archeflow_host::{clock, log, repositories};
use serde_json::{Value, json};

use crate::args::{CommonArgs, ListArgs};
use crate::commands::process_env;
use crate::commands::views::{self, FleetView};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::summary;
use crate::render::text::{Paint, cut, pad, pad_after, safe_line, stdout_width};

/// They wait for the disk more than they compute, and the disk is one.
const MOST_WORKERS: usize = 8;

pub(crate) fn list(args: &ListArgs) -> Result<CommandOutput, Failure> {
    if let Some(fleet) = FleetView::asked_for(&args.view)? {
        return views::list::list(&fleet, args.limit, args.place.json);
    }
    let around = look_around(&args.place, args.all)?;
    let all = args.all || around.here.is_none();
    let mut runs = around.runs(all);
    let skip = args.limit.map_or(0, |limit| runs.len().saturating_sub(limit));
    let runs = runs.split_off(skip);
    if args.place.json {
        let missing: Vec<String> = around.missing.iter().map(|path| path.display().to_string()).collect();
        let runs: Vec<Value> = runs.iter().map(ListedRun::json).collect();
        return Ok(CommandOutput::json(json!({ "runs": runs, "missing_repositories": missing })));
    }
    let mut out = String::new();
    if runs.is_empty() {
        let place = if all { "No runs yet." } else { "No runs in this repository yet." };
        put!(out, "{place} Start one: archeflow run \"<task>\" --agent <spec>");
    } else {
        table(&mut out, &runs, all);
    }
    around.print_missing();
    Ok(CommandOutput::text(out))
}

/// The current repository and the others with runs.
pub(super) struct Around {
    pub(super) here: Option<Project>,
    pub(super) elsewhere: Vec<PathBuf>,
    /// Noted once, and not there any more.
    pub(super) missing: Vec<PathBuf>,
    /// The user's state folder, where there is one.
    state: Option<PathBuf>,
}

/// What the index of a repository says about a run.
#[derive(Clone)]
pub(super) struct UncheckedRun {
    pub(super) root: Arc<Path>,
    pub(super) entry: index::IndexEntry,
    at: u64,
}

/// A run of a repository, from its index, and what can be seen of it now.
#[derive(Clone)]
pub(super) struct ListedRun {
    pub(super) root: Arc<Path>,
    pub(super) entry: index::IndexEntry,
    pub(super) at: u64,
    /// It has not ended and no process drives it.
    pub(super) interrupted: bool,
    /// This machine did not start it: it is shown and never executed.
    pub(super) foreign: bool,
}

/// The repository around us, if there is one, and the others if they are wanted.
pub(super) fn look_around(place: &CommonArgs, others: bool) -> Result<Around, Failure> {
    let env = process_env()?;
    let dir = place.repo.clone().unwrap_or_else(|| env.cwd.clone());
    let here = match Project::open_to_read(env.clone(), &dir, false) {
        Err(
            open::Error::Repo(repo::Error::NotARepository { .. } | repo::Error::InsideGitDir { .. })
            | open::Error::Bare { .. },
        ) if place.repo.is_none() => None,
        project => Some(project?),
    };
    let state = match &here {
        Some(project) => Some(project.state.clone()),
        None => Places::state_dir_elsewhere(&env.places())?,
    };
    let mut around = Around { here, elsewhere: Vec::new(), missing: Vec::new(), state };
    if others || around.here.is_none() {
        let known = around.state.as_deref().map_or(Ok(Vec::new()), repositories::read)?;
        let root = around.here.as_ref().map(|project| project.places.root().to_owned());
        let others = known.into_iter().filter(|path| Some(path) != root.as_ref());
        (around.elsewhere, around.missing) = others.partition(|path| !repositories::is_gone(path));
    }
    Ok(around)
}

#[cfg(test)]
thread_local! {
    /// Runs that this thread has looked into.
    pub(super) static CHECKED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
impl Around {
    /// These repositories, seen from outside.
    pub(super) fn at(elsewhere: Vec<PathBuf>) -> Around {
        Around { here: None, elsewhere, missing: Vec::new(), state: None }
    }
}

impl Around {
    /// Every run, by the time of its last news.
    fn runs(&self, all: bool) -> Vec<ListedRun> {
        self.read(all, |root, entries| self.checked(root, entries))
    }

    /// The same from the indexes alone; see [`Around::check`].
    pub(super) fn entries(&self, all: bool) -> Vec<UncheckedRun> {
        let unchecked = |root: &Path, entries: Vec<index::IndexEntry>| {
            let root: Arc<Path> = root.into();
            entries.into_iter().map(|entry| UncheckedRun::of(&root, entry)).collect()
        };
        self.read(all, unchecked)
    }

    /// Whether a run was begun here, and whether it still runs.
    pub(super) fn check(&self, run: &UncheckedRun) -> ListedRun {
        let mut checked = self.checked(&run.root, vec![run.entry.clone()]);
        checked.pop().unwrap_or_else(|| ListedRun::of(run.clone(), false, true))
    }

    fn checked(&self, root: &Path, entries: Vec<index::IndexEntry>) -> Vec<ListedRun> {
        #[cfg(test)]
        CHECKED.with(|checked| checked.set(checked.get() + entries.len()));
        let events = root.join(".archeflow/events");
        let own = self.state.as_deref().and_then(|state| RepositoryRuns::open(state, root, &events));
        let root: Arc<Path> = root.into();
        let checked = entries.into_iter().map(|entry| {
            let interrupted = entry.status == "running" && Journal::driver(&events, &entry.run_id).is_none();
            let foreign = !own.as_ref().is_some_and(|own| own.is_own(&entry.run_id));
            ListedRun::of(UncheckedRun::of(&root, entry), interrupted, foreign)
        });
        checked.collect()
    }

    /// All repositories, some at the same time. What can't be read is not listed: the folder may belong to something
    /// else by now.
    fn read<T: Send + HasTime>(
        &self,
        all: bool,
        of: impl Fn(&Path, Vec<index::IndexEntry>) -> Vec<T> + Sync,
    ) -> Vec<T> {
        let here = self.here.as_ref().map(|project| project.places.root());
        let others = self.elsewhere.iter().filter(|_| all).map(PathBuf::as_path);
        let roots: Vec<&Path> = here.into_iter().chain(others).collect();
        let one = |root: &Path| {
            let known = index::read(&root.join(".archeflow/events")).unwrap_or_default();
            of(root, known.runs)
        };
        let mut runs: Vec<T> = at_once(&roots, one).into_iter().flatten().collect();
        runs.sort_by_key(HasTime::at);
        runs
    }

    /// One line, however many there are.
    pub(super) fn print_missing(&self) {
        let Some((first, others)) = self.missing.split_first() else { return };
        let first = safe_line(&first.display().to_string());
        match others.len() {
            0 => tell!(
                "note: {first} is gone or has no runs any more; skipped. Take it off the list: archeflow forget --gone"
            ),
            more => tell!(
                "note: {first} and {more} more are gone or have no runs any more; skipped. Take them off the list: archeflow forget --gone"
            ),
        }
    }
}

/// The landing was taken back.
const REVERTED: &str = "merged, reverted";

/// The answers for all of them, in their order.
fn at_once<T: Send>(roots: &[&Path], one: impl Fn(&Path) -> T + Sync) -> Vec<T> {
    let workers = thread::available_parallelism().map_or(1, usize::from).min(MOST_WORKERS);
    // A thread costs more than a few repositories.
    if workers == 1 || roots.len() < 2 * workers {
        return roots.iter().map(|root| one(root)).collect();
    }
    let one = &one;
    thread::scope(|scope| {
        let parts = roots.chunks(roots.len().div_ceil(workers));
        let begun: Vec<_> = parts
            .map(|part| scope.spawn(move || part.iter().map(|root| one(root)).collect::<Vec<T>>()))
            .collect();
        begun.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

trait HasTime {
    fn at(&self) -> u64;
}

impl HasTime for ListedRun {
    fn at(&self) -> u64 {
        self.at
    }
}

impl HasTime for UncheckedRun {
    fn at(&self) -> u64 {
        self.at
    }
}

impl UncheckedRun {
    fn of(root: &Arc<Path>, entry: index::IndexEntry) -> UncheckedRun {
        UncheckedRun { root: Arc::clone(root), at: clock::read(&entry.ts), entry }
    }
}

impl ListedRun {
    fn of(run: UncheckedRun, interrupted: bool, foreign: bool) -> ListedRun {
        ListedRun { root: run.root, entry: run.entry, at: run.at, interrupted, foreign }
    }

    pub(super) fn status(&self) -> &str {
        match () {
            () if self.foreign => "foreign",
            () if self.interrupted => "interrupted",
            () if self.entry.reverted_at.is_some() && self.entry.status == "merged" => REVERTED,
            () => &self.entry.status,
        }
    }

    pub(super) fn tone(&self) -> Tone {
        if self.status() == REVERTED { Tone::Caution } else { inbox::tone(self.status()) }
    }

    pub(super) fn name(&self) -> String {
        let name = self.root.file_name().unwrap_or(self.root.as_os_str());
        cut(&safe_line(&name.to_string_lossy()), 24)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "run_id": self.entry.run_id, "status": self.entry.status, "task": self.entry.task, "ts": self.entry.ts,
            "repository": self.root.display().to_string(), "interrupted": self.interrupted,
            "reopens_at": self.entry.reopens_at, "reverted_at": self.entry.reverted_at, "foreign": self.foreign,
        })
    }
}

/// On a terminal as wide as it is, with times as people say them; elsewhere in full, for other programs.
fn table(out: &mut String, runs: &[ListedRun], all: bool) {
    let (paint, wide) = (Paint::for_stdout(), stdout_width());
    let widest = |text: fn(&ListedRun) -> usize, title: &str| {
        runs.iter().map(text).max().unwrap_or(0).max(title.len())
    };
    let repository = if all { widest(|seen| seen.name().chars().count(), "REPOSITORY") + 2 } else { 0 };
    let run = widest(|seen| safe_line(&seen.entry.run_id).chars().count(), "RUN");
    let status = widest(|seen| seen.status().len(), "STATUS");
    let now = clock::now();
    let when = |seen: &ListedRun| if wide.is_some() { ago(now, seen.at) } else { safe_line(&seen.entry.ts) };
    let last = runs.iter().map(|seen| when(seen).chars().count()).max().unwrap_or(0).max(4);
    let room = wide.map_or(60, |wide| wide.saturating_sub(repository + run + status + last + 6));
    let heading = format!(
        "{}{}  {}  {}  TASK",
        if all { pad("REPOSITORY", repository) } else { String::new() },
        pad("RUN", run),
        pad("STATUS", status),
        pad("LAST", last)
    );
    put!(out, "{}", paint.dim(&heading));
    for seen in runs {
        let word = safe_line(seen.status());
        let name = if all { pad(&seen.name(), repository) } else { String::new() };
        let line = format!(
            "{name}{}  {}  {}  {}",
            pad(&safe_line(&seen.entry.run_id), run),
            pad_after(&word, &paint.tone(seen.tone(), &word), status),
            paint.dim(&pad(&when(seen), last)),
            if room < 8 { String::new() } else { cut(&safe_line(&seen.entry.task), room) }
        );
        put!(out, "{}", line.trim_end());
        if let Some(at) = seen.entry.reopens_at.as_deref() {
            put!(
                out,
                "{}",
                paint.dim(&format!(
                    "{}  parked until {}",
                    pad("", repository),
                    summary::when(clock::read(at))
                ))
            );
        }
    }
}

/// `5 min ago`; after a month the day.
pub(super) fn ago(now: u64, then: u64) -> String {
    let seconds = now.saturating_sub(then) / 1_000;
    match seconds {
        0..=59 => "just now".to_owned(),
        60..=3_599 => format!("{} min ago", seconds / 60),
        3_600..=86_399 => format!("{} h ago", seconds / 3_600),
        86_400..=172_799 => "yesterday".to_owned(),
        172_800..=2_591_999 => format!("{} days ago", seconds / 86_400),
        _ => clock::date(then),
    }
}

/// The state of a run, read without disturbing the process that drives it.
pub(crate) fn fold(project: &Project, id: &str) -> Result<Run, Failure> {
    Ok(log::fold(&text(project, id)?)?)
}

pub(crate) fn text(project: &Project, id: &str) -> Result<archeflow_host::store::journal::Text, Failure> {
    Ok(Journal::read(&known(project, id)?)?)
}

/// The journal of a run there is.
pub(crate) fn known(project: &Project, id: &str) -> Result<PathBuf, Failure> {
    if !archeflow_host::store::names::valid_name(id) {
        return Err(open::Error::BadId { id: id.to_owned() }.into());
    }
    let path = project.places.events().join(format!("{id}.jsonl"));
    if !path.exists() {
        return Err(open::Error::NoRun { id: id.to_owned() }.into());
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::ago;

    #[test]
    fn times_are_printed_in_words() {
        const DAY: u64 = 86_400_000;
        let now = 20_000 * DAY;
        for (before, told) in [
            (0, "just now"),
            (59_999, "just now"),
            (60_000, "1 min ago"),
            (3_600_000, "1 h ago"),
            (DAY, "yesterday"),
            (2 * DAY, "2 days ago"),
            (40 * DAY, "2024-08-25"),
        ] {
            assert_eq!(ago(now, now - before), told);
        }
        assert_eq!(ago(0, 5_000), "just now", "a clock that went back");
    }
}
