//! Memory at work: the lessons a run gets from earlier runs when it begins, and those it adds when it has ended.
//!
//! The rules are [`archeflow_core::rules::memory`], the files [`crate::store::memory`]. A run can do without either, so
//! whatever goes wrong here is a warning (AF-162). What a run teaches is read from its log alone and noted by its id:
//! a run that is resumed, or ends a second time, does not teach the same thing twice.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

use archeflow_core::event::RunStart;
use archeflow_core::model::{Lesson, LessonKind, Memory as Policy, Resolved};
use archeflow_core::rules::memory::{
    self as rules, Archived, LessonChange, LessonUpdate, Lived, MANUAL, USER, crowded_out, deferred, effects,
    retires,
};
use archeflow_core::run::Run;
use archeflow_core::text::short_line;
use serde_json::{Value, json};

use crate::store::journal::{self, Journal};
use crate::store::memory::{Debt, Error as StoreError, LESSONS_AT_MOST, MemoryFiles, MemoryStore};
use crate::store::{files, names, places::Places};
use crate::world::World;
use crate::{clock, log};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Journal(#[from] journal::Error),
    #[error(transparent)]
    Log(#[from] log::Error),
}

/// The first line of a log holds all of this, and a line has an end.
const TOLD_BYTES: usize = 64 << 10;
const RESOLVED_BYTES: usize = 64 << 10;
const LONGEST_TEXT: usize = 300;
const LONGEST_WORD: usize = 80;

/// Fills in the lessons of earlier runs. Unreadable files are reported when the run begins.
pub fn recall(places: &Places, state: &Path, request: &mut RunStart) {
    if !request.config.memory.enabled {
        return;
    }
    let mut lessons = Vec::new();
    let memory = MemoryStore::of(places, state);
    if memory.is_own()
        && let Ok(shelf) = memory.read()
    {
        lessons.extend(shelf.lessons.values().filter_map(printable));
        let left: Vec<u32> = shelf.debts.values().map(|debt| debt.warnings).collect();
        request.past.deferred_warnings = deferred(&left);
        request.past.resolved = newest(shelf.resolved.values());
    }
    if request.config.memory.share
        && let Ok(shelf) = MemoryStore::shared(state).read()
    {
        lessons.extend(shelf.lessons.values().filter_map(printable));
    }
    let (policy, past) = (&request.config, &mut request.past);
    rules::select(&lessons, request.domain.name(), request.personas.keys(), policy, past);
    past.lessons.sort_by_key(|lesson| (Reverse(lesson.frequency), lesson.id.len(), lesson.id.clone()));
    let mut bytes = 0;
    past.lessons.retain(|lesson| {
        bytes += serde_json::to_string(lesson).map_or(0, |text| text.len());
        bytes <= TOLD_BYTES
    });
    for ids in past.told.values_mut() {
        ids.retain(|id| past.lessons.iter().any(|lesson| lesson.id == *id));
    }
}

/// A lesson as it may appear in a log and on a screen. One without a usable name is left out.
fn printable(lesson: &Lesson) -> Option<Lesson> {
    let word = |text: &str| short_line(text, LONGEST_WORD);
    names::valid_name(&lesson.id).then(|| Lesson {
        ts: word(&lesson.ts),
        run_id: word(&lesson.run_id),
        source: word(&lesson.source),
        description: short_line(&lesson.description, LONGEST_TEXT),
        severity: word(&lesson.severity),
        domain: word(&lesson.domain),
        tags: lesson.tags.iter().take(5).map(|tag| word(tag)).collect(),
        archetype: lesson.archetype.as_deref().map(word),
        last_seen_run: word(&lesson.last_seen_run),
        ..lesson.clone()
    })
}

/// The newest that fit, oldest first.
fn newest<'a>(resolved: impl DoubleEndedIterator<Item = &'a Resolved>) -> Vec<Resolved> {
    let mut bytes = 0;
    let mut kept: Vec<Resolved> = resolved
        .rev()
        .take_while(|old| {
            bytes += serde_json::to_string(old).map_or(0, |text| text.len());
            bytes <= RESOLVED_BYTES
        })
        .cloned()
        .collect();
    kept.reverse();
    kept
}

/// Reports what could not be read when a run begins.
pub fn begun(world: &World, run: &Run) -> Vec<String> {
    if !run.policy().memory.enabled {
        return Vec::new();
    }
    let memory = MemoryStore::of(&world.places, &world.state);
    match memory.read() {
        Ok(_) if !memory.is_own() => vec![
            "the lessons in .archeflow/memory came with the repository or were edited, so they are not used; look at them and approve them: archeflow trust".to_owned(),
        ],
        Ok(shelf) => shelf.damage().iter().map(ToString::to_string).collect(),
        Err(error) => vec![format!("what earlier runs taught can't be used: {error}")],
    }
}

/// Records the lessons in each agent's prompt, the first time it is started (AF-013, AF-177). Returns warnings.
pub fn sent<'a>(world: &World, run: &Run, archetypes: impl Iterator<Item = &'a str>) -> Vec<String> {
    let Some(request) = run.request.as_ref().filter(|request| request.config.memory.enabled) else {
        return Vec::new();
    };
    let sent: BTreeSet<String> =
        archetypes.filter(|name| request.past.told.contains_key(*name)).map(str::to_owned).collect();
    if sent.is_empty() {
        return Vec::new();
    }
    let lived = Lived {
        run_id: world.run_id.clone(),
        ts: clock::written(run.last),
        domain: request.domain.name().to_owned(),
        past: request.past.clone(),
        policy: request.config.clone(),
        sent,
        ..Lived::default()
    };
    match MemoryStore::of(&world.places, &world.state).change(|shelf| record_injected(shelf, &lived)) {
        Ok(()) => Vec::new(),
        Err(error) => vec![format!("the lessons in the agents' prompts were not recorded: {error}")],
    }
}

/// Learns from a run that has ended. Returns warnings.
pub fn ended(world: &World, run: &Run) -> Vec<String> {
    if run.outcome.is_none() || !run.policy().memory.enabled {
        return Vec::new();
    }
    match learn(world, run) {
        Ok(warnings) => warnings,
        Err(error) => vec![format!("nothing was learned from this run: {error}")],
    }
}

fn learn(world: &World, run: &Run) -> Result<Vec<String>, Error> {
    let path = world.places.events().join(format!("{}.jsonl", world.run_id));
    let entries = log::entries(&Journal::read(&path)?)?;
    let lived = Lived::of(&world.run_id, &clock::written(run.last), &entries);
    let memory = MemoryStore::of(&world.places, &world.state);
    if !lived.is_over() || (leaves_nothing(&lived) && is_blank(&memory.read()?)) {
        return Ok(Vec::new());
    }
    let queue = world.places.root().join(QUEUE);
    Ok(take_in(&memory, &lived, &queue)?)
}

/// Learns from what a run lived through. Returns warnings.
pub fn take_in(memory: &MemoryStore, lived: &Lived, queue: &Path) -> Result<Vec<String>, StoreError> {
    memory.change(|shelf| teach(shelf, lived, queue))
}

fn leaves_nothing(lived: &Lived) -> bool {
    lived.findings.is_empty()
        && lived.warnings == 0
        && lived.injected_lessons().is_empty()
        && !lived.broken_window
}

fn is_blank(shelf: &MemoryFiles) -> bool {
    shelf.lessons.values().next().is_none() && shelf.debts.values().next().is_none()
}

/// Everything one run changes, in one step. Its own line in the audit marks it as done.
fn teach(shelf: &mut MemoryFiles, lived: &Lived, queue: &Path) -> Vec<String> {
    let before = taught_before(shelf, &lived.run_id);
    record_injected(shelf, lived);
    if before.is_none() {
        note_effects(shelf, lived);
    }
    let known: Vec<Lesson> = shelf.lessons.values().cloned().collect();
    let steps = rules::learn(lived, &known, &retired(shelf), before.as_ref(), shelf.next_number('m'));
    for step in &steps {
        take_step(shelf, step, &lived.ts);
    }
    make_room(shelf, &lived.ts);
    if lived.landed() {
        remember_resolved(shelf, lived);
    }
    note_debt(shelf, lived);
    let cleaned = if lived.broken_window { clean_up(shelf, lived, queue) } else { Ok(()) };
    note_taught(shelf, lived, &steps, before, lived.broken_window && cleaned.is_ok());
    let warning = |error| format!("no clean-up item was added: {error}");
    cleaned.err().map(warning).into_iter().collect()
}

/// The findings earlier ends of this run have taught; nothing when it has not taught anything yet.
fn taught_before(shelf: &MemoryFiles, run_id: &str) -> Option<BTreeSet<String>> {
    let mut lines = of_run(shelf, run_id).filter(|line| line["type"] == LEARNED).peekable();
    lines.peek()?;
    let ids = lines.flat_map(|line| line["findings"].as_array().cloned().unwrap_or_default());
    Some(ids.filter_map(|id| id.as_str().map(str::to_owned)).collect())
}

const LEARNED: &str = "learned";
const EFFECT: &str = "effectiveness_check";

fn of_run<'a>(shelf: &'a MemoryFiles, run_id: &'a str) -> impl Iterator<Item = &'a Value> {
    shelf.audit.values().filter(move |line| line["run_id"] == run_id)
}

/// A line for every agent whose prompt has lessons, once for each.
fn record_injected(shelf: &mut MemoryFiles, lived: &Lived) {
    for (archetype, ids) in &lived.past.told {
        let noted = of_run(shelf, &lived.run_id)
            .any(|line| line["archetype"] == archetype.as_str() && !line["lessons_injected"].is_null());
        if noted || ids.is_empty() || !lived.sent.contains(archetype) {
            continue;
        }
        let telling = rules::tell(
            &lived.past.lessons,
            &lived.domain,
            archetype,
            &lived.policy.memory,
            &lived.policy.boundaries,
        );
        let why: serde_json::Map<String, Value> = telling
            .lessons
            .iter()
            .filter(|(lesson, _)| ids.contains(&lesson.id))
            .map(|(lesson, why)| (lesson.id.clone(), why.name().into()))
            .collect();
        shelf.audit.push(json!({
            "ts": lived.ts, "run_id": lived.run_id, "domain": lived.domain, "archetype": archetype,
            "lessons_injected": ids, "lesson_count": ids.len(), "why": why,
            "fitted": lived.past.fitted.get(archetype),
        }));
    }
}

fn note_effects(shelf: &mut MemoryFiles, lived: &Lived) {
    let told = lived.injected_lessons();
    let lessons = lived.past.lessons.iter().filter(|lesson| told.contains_key(lesson.id.as_str()));
    for effect in effects(lessons, &lived.findings, &lived.policy.memory) {
        shelf.audit.push(json!({
            "ts": lived.ts, "run_id": lived.run_id, "type": EFFECT, "lesson_id": effect.lesson_id,
            "lesson_desc": effect.lesson_desc,
            "effectiveness": if effect.helpful { "helpful" } else { "ineffective" },
            "keyword_overlap_pct": effect.keyword_overlap_pct,
            "told_to": told.get(effect.lesson_id.as_str()),
        }));
    }
}

/// What must not be learned again.
fn retired(shelf: &MemoryFiles) -> Vec<Lesson> {
    let stays_away =
        |because: Option<String>| because.and_then(|word| Archived::parse(&word)).is_some_and(retires);
    let items = shelf.archive.items().filter(|(item, _)| stays_away(item.text(BECAUSE)));
    items.map(|(_, lesson)| lesson.clone()).collect()
}

const BECAUSE: &str = "archived_because";
const SINCE: &str = "archived_ts";

fn take_step(shelf: &mut MemoryFiles, step: &LessonUpdate, ts: &str) {
    let same = |lesson: &Lesson| lesson.id == step.lesson.id;
    match (step.what, step.archived) {
        (LessonChange::Created, _) => shelf.lessons.push(step.lesson.clone()),
        (_, Some(why)) => {
            if let Some(item) = shelf.lessons.take(same) {
                put_away(shelf, item.with(step.lesson.clone()), why, ts);
            }
        }
        (_, None) => {
            shelf.lessons.replace(same, step.lesson.clone());
        }
    }
}

fn put_away(shelf: &mut MemoryFiles, item: crate::store::memory::Item<Lesson>, why: Archived, ts: &str) {
    shelf.archive.put(item, &[(BECAUSE, why.name().into()), (SINCE, ts.into())]);
}

fn make_room(shelf: &mut MemoryFiles, ts: &str) {
    let lessons: Vec<Lesson> = shelf.lessons.values().cloned().collect();
    for id in crowded_out(&lessons, LESSONS_AT_MOST) {
        if let Some(item) = shelf.lessons.take(|lesson| lesson.id == id) {
            put_away(shelf, item, Archived::CrowdedOut, ts);
        }
    }
}

/// What is resolved once more is remembered as resolved last.
fn remember_resolved(shelf: &mut MemoryFiles, lived: &Lived) {
    for found in &lived.resolved {
        let resolved = Resolved {
            run_id: lived.run_id.clone(),
            file: found.file.clone(),
            line: found.line,
            category: found.category.clone(),
            description: short_line(&found.description, LONGEST_TEXT),
        };
        let same = |old: &Resolved| Resolved { run_id: lived.run_id.clone(), ..old.clone() } == resolved;
        let _ = shelf.resolved.take(same);
        shelf.resolved.push(resolved);
    }
}

fn note_debt(shelf: &mut MemoryFiles, lived: &Lived) {
    let debt = Debt { ts: lived.ts.clone(), run_id: lived.run_id.clone(), warnings: lived.warnings };
    let noted = shelf.debts.values().find(|old| old.run_id == lived.run_id).map(|old| old.warnings);
    match noted {
        None => shelf.debts.push(debt),
        Some(warnings) if warnings != debt.warnings => {
            shelf.debts.replace(|old| old.run_id == lived.run_id, debt);
        }
        Some(_) => {}
    }
}

const QUEUE: &str = ".archeflow/queue.md";

/// AF-146: one item in the list of things to do, once for a run.
fn clean_up(shelf: &MemoryFiles, lived: &Lived, queue: &Path) -> Result<(), files::Error> {
    if of_run(shelf, &lived.run_id).any(|line| line["cleanup"] == true) {
        return Ok(());
    }
    let left: Vec<u32> = shelf.debts.values().map(|debt| debt.warnings).collect();
    // After a run that left none, those it was begun with.
    let warnings = deferred(&left).max(lived.past.deferred_warnings);
    let mark = format!("(noticed in run {})", lived.run_id);
    let there = files::read_capped(queue, 16 << 20).unwrap_or_default();
    if !String::from_utf8_lossy(&there).contains(&mark) {
        let what = if warnings == 1 { "warning".to_owned() } else { format!("{warnings} warnings") };
        let item = format!("- [ ] Clean up the {what} that runs left open {mark} | standard");
        files::append_line_locked(queue, &item)?;
    }
    Ok(())
}

fn note_taught(
    shelf: &mut MemoryFiles,
    lived: &Lived,
    steps: &[LessonUpdate],
    before: Option<BTreeSet<String>>,
    tidied: bool,
) {
    const MOST: usize = 500;
    let ids: Vec<&str> = lived.findings.iter().take(MOST).map(|found| found.id.as_str()).collect();
    let lessons: Vec<Value> = steps
        .iter()
        .filter(|step| step.what != LessonChange::Unseen)
        .map(|step| {
            json!({
                "id": step.lesson.id, "what": step.what.name(), "frequency": step.lesson.frequency,
                "archived": step.archived.map(Archived::name),
            })
        })
        .collect();
    let again = before.is_some_and(|before| ids.iter().all(|id| before.contains(*id)));
    if again && lessons.is_empty() {
        return;
    }
    shelf.audit.push(json!({
        "ts": lived.ts, "run_id": lived.run_id, "type": LEARNED, "findings": ids, "lessons": lessons,
        "cleanup": tidied,
    }));
}

// What people do.

/// A lesson a person adds. It is in prompts from the next run on.
#[derive(Debug, Clone)]
pub struct Written {
    pub kind: LessonKind,
    pub text: String,
    pub domain: String,
    pub archetype: Option<String>,
    pub tags: Vec<String>,
}

/// Adds a lesson under a name of its own: `m-` here, `u-` among those for all repositories.
pub fn add(memory: &MemoryStore, letter: char, written: &Written) -> Result<Lesson, StoreError> {
    memory.change(|shelf| {
        let lesson = Lesson {
            id: format!("{letter}-{:03}", shelf.next_number(letter)),
            ts: clock::written(clock::now()),
            run_id: MANUAL.to_owned(),
            kind: written.kind,
            source: USER.to_owned(),
            description: short_line(&written.text, LONGEST_TEXT),
            frequency: 1,
            severity: "INFO".to_owned(),
            domain: written.domain.clone(),
            tags: written.tags.clone(),
            archetype: written.archetype.clone(),
            last_seen_run: MANUAL.to_owned(),
            runs_since_last_seen: 0,
            ineffective: 0,
        };
        shelf.lessons.push(lesson.clone());
        make_room(shelf, &lesson.ts);
        lesson
    })
}

/// Archives a lesson. `None` when there is none of that name.
pub fn forget(memory: &MemoryStore, id: &str) -> Result<Option<Lesson>, StoreError> {
    if !memory.folder().is_dir() {
        return Ok(None);
    }
    memory.change(|shelf| {
        let item = shelf.lessons.take(|lesson| lesson.id == id)?;
        put_away(shelf, item, Archived::Forgotten, &clock::written(clock::now()));
        shelf.archive.values().next_back().cloned()
    })
}

/// Takes a lesson back out of the archive, at least as strong as is needed to be in a prompt.
pub fn restore(memory: &MemoryStore, id: &str, policy: &Policy) -> Result<Option<Lesson>, StoreError> {
    if !memory.folder().is_dir() {
        return Ok(None);
    }
    memory.change(|shelf| {
        let item = shelf.archive.take(|lesson| lesson.id == id)?;
        let mut lesson = shelf_lesson(&item)?;
        lesson.frequency = lesson.frequency.max(policy.inject_threshold);
        lesson.runs_since_last_seen = 0;
        shelf.lessons.put(item.without(&[BECAUSE, SINCE, "ineffective"]).with(lesson.clone()), &[]);
        Some(lesson)
    })
}

fn shelf_lesson(item: &crate::store::memory::Item<Lesson>) -> Option<Lesson> {
    let lesson: Lesson = serde_json::from_value(Value::Object(item.fields())).ok()?;
    Some(Lesson { ineffective: 0, ..lesson })
}
