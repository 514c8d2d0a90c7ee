//! `archeflow list` and `archeflow status`, here and in every repository the user has run in.

use std::path::{Path, PathBuf};

use archeflow_core::model::Outcome;
use archeflow_core::projections::inbox::{self, InboxItem, InboxRun};
use archeflow_core::projections::view::{self, Tone};
use archeflow_core::run::Run;
use archeflow_host::git::repo;
use archeflow_host::open::{self, Project};
use archeflow_host::store::{index, journal::Journal, own_runs::OwnRun, places::Places};
use archeflow_host::{clock, log, repositories};
use serde_json::{Value, json};

use crate::args::{CommonArgs, ListArgs, StatusArgs};
use crate::commands::{open_project, process_env};
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::summary;
use crate::render::text::{Paint, cut, pad, pad_after, safe_line, stdout_width};

pub(crate) fn list(args: &ListArgs) -> Result<CommandOutput, Failure> {
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

pub(crate) fn status(args: &StatusArgs) -> Result<CommandOutput, Failure> {
    if let Some(id) = &args.id {
        let project = open_project(&args.place, None, false)?;
        let run = fold(&project, id)?;
        if args.place.json {
            return Ok(CommandOutput::json(one_json(&project, id, &run)));
        }
        let mut out = String::new();
        one(&mut out, project.is_own(id), id, &run);
        return Ok(CommandOutput::text(out));
    }
    let around = look_around(&args.place, args.place.repo.is_none())?;
    let now = around.now(args.place.repo.is_none());
    let latest = around.here.as_ref().and_then(|project| Some((project, latest_of(project)?)));
    if args.place.json {
        let mut object = match &latest {
            Some((project, id)) => one_json(project, id, &fold(project, id)?),
            None => json!({ "run_id": null, "status": "none" }),
        };
        object["now"] = now.iter().map(Active::json).collect();
        return Ok(CommandOutput::json(object));
    }
    let mut out = String::new();
    print_now(&mut out, &now, around.here.as_ref());
    match latest {
        Some((_, id)) if now.iter().any(|active| active.seen.entry.run_id == id) => {}
        Some((project, id)) => {
            if !now.is_empty() {
                put!(out);
            }
            one(&mut out, project.is_own(&id), &id, &fold(project, &id)?);
        }
        None if now.is_empty() && around.here.is_some() => put!(out, "No runs in this repository yet."),
        None if now.is_empty() => put!(out, "Nothing runs or waits for you."),
        None => {}
    }
    around.print_missing();
    Ok(CommandOutput::text(out))
}

/// The current repository and the others with runs.
struct Around {
    here: Option<Project>,
    elsewhere: Vec<PathBuf>,
    /// Noted once, and not there any more.
    missing: Vec<PathBuf>,
    /// The user's state folder, where there is one.
    state: Option<PathBuf>,
}

/// A run of a repository, from its index.
struct ListedRun {
    root: PathBuf,
    entry: index::IndexEntry,
    at: u64,
    /// It has not ended and no process drives it.
    interrupted: bool,
    /// This machine did not start it: it is shown and never executed.
    foreign: bool,
}

/// A run that is under way or waits, folded.
struct Active {
    seen: ListedRun,
    item: InboxItem,
}

/// The repository around us, if there is one, and the others if they are wanted.
fn look_around(place: &CommonArgs, others: bool) -> Result<Around, Failure> {
    let env = process_env()?;
    let dir = place.repo.clone().unwrap_or_else(|| env.cwd.clone());
    let here = match Project::open(env.clone(), &dir, None, false) {
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
        (around.elsewhere, around.missing) = others.partition(|path| path.join(".archeflow/events").is_dir());
    }
    Ok(around)
}

impl Around {
    /// Every run, by the time of its last news.
    fn runs(&self, all: bool) -> Vec<ListedRun> {
        let here = self.here.as_ref().map(|project| project.places.root().to_owned());
        let others = self.elsewhere.iter().filter(|_| all).cloned();
        let mut runs: Vec<ListedRun> =
            here.into_iter().chain(others).flat_map(|root| runs_of(&root, self.state.as_deref())).collect();
        runs.sort_by_key(|seen| seen.at);
        runs
    }

    /// What runs or waits, the newest first.
    fn now(&self, all: bool) -> Vec<Active> {
        let mut runs = self.runs(all);
        runs.retain(|seen| seen.entry.status != "merged" && seen.entry.status != "dry_run");
        let here = self.here.as_ref().map(|project| project.places.root());
        runs.into_iter().rev().filter_map(|seen| active(seen, here)).take(MOST).collect()
    }

    fn print_missing(&self) {
        for path in &self.missing {
            tell!(
                "note: {} has no runs any more or is gone; skipped",
                safe_line(&path.display().to_string())
            );
        }
    }
}

fn latest_of(project: &Project) -> Option<String> {
    Some(index::read(&project.places.events()).ok()?.runs.last()?.run_id.clone())
}

/// What is said about a run that is only shown.
const FOREIGN: &str = "foreign: this machine did not start it, so it is shown and never executed";

/// More runs than this that wait are not folded; `list` has them.
const MOST: usize = 50;

/// What can't be read is not listed: the folder may belong to something else by now.
fn runs_of(root: &Path, state: Option<&Path>) -> Vec<ListedRun> {
    let events = root.join(".archeflow/events");
    let known = index::read(&events).unwrap_or_default();
    let seen = known.runs.into_iter().map(|entry| {
        let interrupted = entry.status == "running" && Journal::driver(&events, &entry.run_id).is_none();
        let known = |state| {
            OwnRun { state, root, run_id: &entry.run_id }
                .begins(&events.join(format!("{}.jsonl", entry.run_id)))
        };
        let foreign = !state.is_some_and(known);
        ListedRun { root: root.to_owned(), at: clock::read(&entry.ts), entry, interrupted, foreign }
    });
    seen.collect()
}

/// The run with what to do about it, unless there is nothing.
fn active(seen: ListedRun, here: Option<&Path>) -> Option<Active> {
    let path = seen.root.join(".archeflow/events").join(format!("{}.jsonl", seen.entry.run_id));
    let run = log::fold(&Journal::read(&path).ok()?).ok()?;
    let mut item = InboxItem::of(InboxRun {
        run_id: &seen.entry.run_id,
        repository: &seen.root.display().to_string(),
        here: here == Some(seen.root.as_path()),
        interrupted: seen.interrupted,
        run: &run,
    })?;
    if seen.foreign {
        FOREIGN.clone_into(&mut item.detail);
        item.next = format!("archeflow trust --run {}", seen.entry.run_id);
    }
    Some(Active { seen, item })
}

impl ListedRun {
    fn status(&self) -> &str {
        match () {
            () if self.foreign => "foreign",
            () if self.interrupted => "interrupted",
            () => &self.entry.status,
        }
    }

    fn tone(&self) -> Tone {
        inbox::tone(self.status())
    }

    fn name(&self) -> String {
        let name = self.root.file_name().unwrap_or(self.root.as_os_str());
        cut(&safe_line(&name.to_string_lossy()), 24)
    }

    fn json(&self) -> Value {
        json!({
            "run_id": self.entry.run_id, "status": self.entry.status, "task": self.entry.task, "ts": self.entry.ts,
            "repository": self.root.display().to_string(), "interrupted": self.interrupted,
            "reopens_at": self.entry.reopens_at, "foreign": self.foreign,
        })
    }
}

impl Active {
    fn json(&self) -> Value {
        let mut object = self.seen.json();
        let item = serde_json::to_value(&self.item).unwrap_or_default();
        if let (Value::Object(object), Value::Object(item)) = (&mut object, item) {
            object.extend(item);
        }
        object
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

fn print_now(out: &mut String, now: &[Active], here: Option<&Project>) {
    let (paint, moment) = (Paint::for_stdout(), clock::now());
    let here = here.map(|project| project.places.root());
    let is_running = |active: &&Active| !active.item.waiting;
    let (running, waiting): (Vec<&Active>, Vec<&Active>) = now.iter().partition(is_running);
    for (title, some) in [("Running", running), ("Waiting for you", waiting)] {
        if some.is_empty() {
            continue;
        }
        put!(out, "{}", paint.bold(title));
        for active in some {
            let seen = &active.seen;
            let place =
                if here == Some(seen.root.as_path()) { String::new() } else { format!("{}: ", seen.name()) };
            let word = if active.item.paused && !seen.interrupted {
                "paused".to_owned()
            } else {
                seen.status().replace('_', " ")
            };
            let wide = stdout_width().unwrap_or(200).saturating_sub(4);
            put!(out, "  {}  {}", paint.tone(seen.tone(), &word), paint.dim(&ago(moment, seen.at)));
            put!(out, "    {}", cut(&format!("{place}{}", safe_line(&seen.entry.task)), wide));
            put!(out, "    {}", paint.dim(&cut(&safe_line(&active.item.detail), wide)));
            put!(out, "    {}", paint.cyan(&safe_line(&active.item.next)));
        }
    }
}

/// `5 min ago`; after a month the day.
fn ago(now: u64, then: u64) -> String {
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

fn one_json(project: &Project, id: &str, run: &Run) -> Value {
    let code = run.outcome.as_ref().map_or(0, Outcome::exit_code);
    let mut object = summary::json(project.places.root(), id, run, run.outcome.as_ref(), code, None);
    if !project.is_own(id) {
        object["foreign"] = true.into();
    }
    object
}

fn one(out: &mut String, own: bool, id: &str, run: &Run) {
    let (title, second) = view::header(run);
    put!(out, "{}", safe_line(&title));
    put!(out, "Run ID: {id} | {second}");
    if !own {
        put!(out, "{FOREIGN}");
        put!(out, "  archeflow trust --run {id}  see what it would execute; take it over if it is yours");
        return;
    }
    match (&run.outcome, run.cycle()) {
        (Some(outcome), _) => {
            put!(
                out,
                "{} ({}): {}",
                outcome.status.name(),
                outcome.reason.name(),
                safe_line(&outcome.detail)
            );
            if let Some(line) = summary::parked(run) {
                put!(out, "{line}");
            }
            for (command, meaning) in view::next_steps(id, run, outcome) {
                put!(out, "  {}  {meaning}", safe_line(&command));
            }
        }
        (None, Some(cycle)) => {
            let state = if run.paused.is_some() { "paused" } else { "not ended" };
            put!(out, "{state}: cycle {} of {}, {}", cycle.number, run.max_cycles, cycle.phase.name());
            for (_, start) in run.open_agents() {
                put!(out, "  {}", view::doing(start));
            }
            match &run.paused {
                Some(_) => put!(out, "  archeflow resume {id}"),
                None => put!(out, "  if no process drives it any more: archeflow resume {id}"),
            }
        }
        (None, None) => put!(out, "not begun: archeflow resume {id}"),
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
