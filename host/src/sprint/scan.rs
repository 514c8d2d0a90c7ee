//! A look at the projects: what could be done there, as proposals. It reads what is committed and the journals that are
//! there, and runs nothing of the project (BX-21).

use std::path::Path;

use archeflow_core::model::Reason;
use archeflow_core::run::Run;
use archeflow_core::sprint::queue::{ItemStatus, Priority, QueueItem, TaskSize};

use super::queue::{Extra, Queue, wish};
use crate::git::survey::Mark;
use crate::git::{self, Repo};
use crate::log;
use crate::store::index;
use crate::store::journal::Journal;

/// A project without a commit for N days is stale.
pub const STALE_DAYS: u64 = 30;
/// From N marks on, clearing them up is proposed.
pub const MANY_MARKS: usize = 5;
const DAY_MS: u64 = 86_400_000;
const LONGEST_MARK: usize = 200;

/// What was found in one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScannedTask {
    pub item: QueueItem,
    /// Where, as `<project>/<file>:<line>`.
    pub source: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Repo(#[from] git::repo::Error),
    #[error(transparent)]
    Git(#[from] git::runner::Error),
}

/// Everything there is to propose for a project. Nothing is written.
pub fn project(
    root: &Path,
    name: &str,
    state: &Path,
    env: &git::GitEnv,
    now: u64,
) -> Result<Vec<ScannedTask>, Error> {
    let repo = Repo::open(&root.join(name), state, env)?;
    let Some(head) = repo.resolve("HEAD")? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    found.extend(red(&root.join(name), name));
    found.extend(marks(&repo, &head, name)?);
    found.extend(stale(&repo, &head, name, now)?);
    Ok(found)
}

/// Puts what is new into the queue, as `proposed`. Gives what was added.
pub fn propose(queue: &mut Queue, found: Vec<ScannedTask>) -> Result<Vec<QueueItem>, super::queue::Error> {
    let mut added = Vec::new();
    for ScannedTask { mut item, source } in found {
        let known = queue.items().any(|known| {
            known.project == item.project
                && known.status.is_open()
                && queue.extra(&known.id).source.as_ref() == Some(&source)
        });
        if known || queue.same_task(&item.project, &item.task).is_some() {
            continue;
        }
        item.id = queue.free_id(&item.id);
        queue.add(item.clone(), &Extra { notes: None, source: Some(source) })?;
        added.push(item);
    }
    Ok(added)
}

/// The last run ended because tests failed.
fn red(root: &Path, name: &str) -> Option<ScannedTask> {
    let events = root.join(".archeflow/events");
    let last = index::read(&events).ok()?.runs.pop()?;
    let run: Run = log::fold(&Journal::read(&events.join(format!("{}.jsonl", last.run_id))).ok()?).ok()?;
    let outcome = run.outcome?;
    if !matches!(outcome.reason, Reason::TestsFailed | Reason::PostMergeTests | Reason::TestCommandBroken) {
        return None;
    }
    let task = format!("Make the tests pass: {}", outcome.detail);
    Some(found(name, task, Priority::P1, TaskSize::M, &format!(".archeflow/events/{}.jsonl", last.run_id)))
}

/// Marks people leave for later. A few become one task each, many become one task.
fn marks(repo: &Repo, head: &git::ObjectId, name: &str) -> Result<Vec<ScannedTask>, Error> {
    let marks = repo.marks(head)?;
    match marks.first() {
        Some(first) if marks.len() > MANY_MARKS => {
            let (file, line) = (&first.file, first.line);
            let task = format!("Clear up {} TODO and FIXME marks, the first at {file}:{line}", marks.len());
            Ok(vec![found(name, task, Priority::P2, TaskSize::L, "TODO")])
        }
        Some(_) | None => Ok(marks.iter().map(|mark| one(name, mark)).collect()),
    }
}

fn one(name: &str, mark: &Mark) -> ScannedTask {
    let place = format!("{}:{}", mark.file, mark.line);
    let text: String = mark.text.chars().take(LONGEST_MARK).collect();
    found(name, format!("{place}: {text}"), Priority::P3, TaskSize::S, &place)
}

fn stale(repo: &Repo, head: &git::ObjectId, name: &str, now: u64) -> Result<Option<ScannedTask>, Error> {
    let days = now.saturating_sub(repo.committed_at(head)?) / DAY_MS;
    if days <= STALE_DAYS {
        return Ok(None);
    }
    let task = "Look after this project: nothing was committed for a long time. Update what it depends on, \
                run its tests, and say what is worth doing next"
        .to_owned();
    Ok(Some(found(name, task, Priority::P3, TaskSize::M, "stale")))
}

fn found(project: &str, task: String, priority: Priority, estimate: TaskSize, source: &str) -> ScannedTask {
    let item = QueueItem {
        id: wish(project, &task),
        project: project.to_owned(),
        task,
        priority,
        estimate,
        status: ItemStatus::Proposed,
        depends_on: Vec::new(),
        workflow: None,
        files: Vec::new(),
    };
    ScannedTask { item, source: format!("{project}/{source}") }
}
