//! Which run, loop or sprint a command is about: a name as a person types it, or none. The rules are in
//! [`archeflow_core::rules::run_names`]; here the runs are read and the choice is printed.

use std::path::Path;

use archeflow_core::rules::run_names::{self, Meaning, NamedRun, RunState, RunUse};
use archeflow_host::log;
use archeflow_host::open::{self, Project};
use archeflow_host::store::index::{self, IndexEntry};
use archeflow_host::store::journal::Journal;
use archeflow_host::store::names::valid_name;
use archeflow_host::store::own_runs::OwnRun;

use crate::failure::Failure;
use crate::render::text::{cut, safe_line};

/// More runs than this are not read to find the one that a command without a name is about.
const MOST_READ: usize = 200;
/// Candidates that are listed.
const MOST_LISTED: usize = 10;
/// Columns of a task beside an id.
const TASK: usize = 60;

/// The id of the run that is named, or that the command acts on where none is.
pub(crate) fn run_id(project: &Project, name: Option<&str>, usage: RunUse) -> Result<String, Failure> {
    match name {
        Some(name) => named(project, name),
        None => unnamed(project, usage),
    }
}

/// The id of the run that is named.
pub(crate) fn named(project: &Project, name: &str) -> Result<String, Failure> {
    if is_run(project, name) {
        return Ok(name.to_owned());
    }
    let runs = runs(project)?;
    match run_names::resolve(name, &runs) {
        Meaning::One(at) => Ok(chosen(&runs[at])),
        Meaning::Several(found) => Err(several("run", &format!("'{name}' fits"), &runs, &found)),
        Meaning::None(near) => Err(unknown(name, &runs, &near)),
    }
}

/// Whether this is the id of a run, letter by letter.
pub(crate) fn is_run(project: &Project, name: &str) -> bool {
    valid_name(name) && project.places.events().join(format!("{name}.jsonl")).exists()
}

fn unnamed(project: &Project, usage: RunUse) -> Result<String, Failure> {
    let mut runs = runs(project)?;
    if usage != RunUse::Show {
        let newest = runs.iter_mut().rev().filter(|run| run.state != RunState::Closed);
        newest.take(MOST_READ).for_each(|run| look(project, run));
    }
    match run_names::default(usage, &runs) {
        Meaning::One(at) => Ok(chosen(&runs[at])),
        Meaning::Several(found) => {
            let which = format!("'{}' without a name fits", usage.name());
            Err(several("run", &which, &runs, &found))
        }
        Meaning::None(_) if runs.is_empty() => Err(Failure::usage(
            "there is no run in this repository",
            "Start one: archeflow run \"<task>\" --agent <spec>",
        )),
        Meaning::None(_) => Err(Failure::usage(
            format!("no run here {}", wanted(usage)),
            "Name the run. What there is: archeflow status",
        )),
    }
}

/// The end of "no run here …".
fn wanted(usage: RunUse) -> &'static str {
    match usage {
        RunUse::Show | RunUse::Watch => "can be shown",
        RunUse::Merge => "waits for a merge",
        RunUse::Resume => "is interrupted, paused or failed at a step",
        RunUse::Answer => "has an open question",
        RunUse::Continue => "was stopped",
        RunUse::Pause | RunUse::Stop => "is running",
        RunUse::Discard => "can be discarded",
    }
}

/// The runs of a repository, the newest last, with what its index knows of their states.
pub(crate) fn runs(project: &Project) -> Result<Vec<NamedRun>, Failure> {
    let events = project.places.events();
    index::read(&events)?;
    Ok(runs_in(&events))
}

/// The same for a folder that may belong to something else by now.
pub(crate) fn runs_in(events: &Path) -> Vec<NamedRun> {
    let known = index::read(events).unwrap_or_default().runs;
    let there = known
        .into_iter()
        .filter(|entry| valid_name(&entry.run_id) && events.join(format!("{}.jsonl", entry.run_id)).exists());
    there.map(listed).collect()
}

/// Runs that have ended for good need not be read: their state does not change any more.
fn listed(entry: IndexEntry) -> NamedRun {
    let state = match entry.status.as_str() {
        "merged" | "reviewed" => RunState::Closed,
        _ => RunState::Interrupted,
    };
    NamedRun { id: entry.run_id, task: entry.task, state, asks: false }
}

/// The journal is the truth; a run that can't be read or was not started here is nothing to act on.
fn look(project: &Project, run: &mut NamedRun) {
    let events = project.places.events();
    let path = events.join(format!("{}.jsonl", run.id));
    let own = OwnRun { state: &project.state, root: project.places.root(), run_id: &run.id };
    let folded = Journal::read(&path).ok().and_then(|text| log::fold(&text).ok());
    let folded = folded.filter(|_| own.begins(&path));
    let driven = Journal::driver(&events, &run.id).is_some();
    run.state = folded.as_ref().map_or(RunState::Closed, |folded| RunState::of(folded, driven));
    run.asks = folded.is_some_and(|folded| folded.question().is_some());
}

/// Says which run it is, for people, and gives its id.
pub(crate) fn chosen(run: &NamedRun) -> String {
    tell!("Run: {}{}", safe_line(&run.id), task(run));
    run.id.clone()
}

fn task(run: &NamedRun) -> String {
    if run.task.is_empty() { String::new() } else { format!(" ({})", cut(&safe_line(&run.task), TASK)) }
}

/// A name, or none, that fits more than one.
pub(crate) fn several(kind: &str, which: &str, all: &[NamedRun], found: &[usize]) -> Failure {
    let mut lines = vec!["Name one of them:".to_owned()];
    let listed = found.iter().take(MOST_LISTED).filter_map(|at| all.get(*at));
    lines.extend(listed.map(|run| format!("  {}{}", run.id, task(run))));
    if found.len() > MOST_LISTED {
        lines.push(format!("  and {} more: archeflow list", found.len() - MOST_LISTED));
    }
    Failure::usage(format!("{which} {} {kind}s", found.len()), lines.join("\n  "))
}

fn unknown(name: &str, runs: &[NamedRun], near: &[usize]) -> Failure {
    let id = name.to_owned();
    let mut failure = Failure::from(open::Error::NoRun { id });
    failure.hint = did_you_mean(runs, near).unwrap_or(failure.hint);
    failure
}

/// The nearest names, if there are any.
pub(crate) fn did_you_mean(all: &[NamedRun], near: &[usize]) -> Option<String> {
    let names: Vec<&str> = near.iter().filter_map(|at| all.get(*at)).map(|run| run.id.as_str()).collect();
    (!names.is_empty()).then(|| format!("Did you mean {}?", names.join(" or ")))
}

/// A list of ids without tasks, as sprints have them.
pub(crate) fn bare(ids: &[String]) -> Vec<NamedRun> {
    let run =
        |id: &String| NamedRun { id: id.clone(), task: String::new(), state: RunState::Closed, asks: false };
    ids.iter().map(run).collect()
}
