//! Files that follow from the log: feedback, findings, convergence, fixes, archives, index, progress. They are
//! written after the lines they follow from and can be made again at any time.
//!
//! Artifacts must be written before the next agent starts, so a failure there stops the run (AF-162). Progress and
//! index only watch: what goes wrong with them is a warning (D-01).

use std::path::Path;

use archeflow_core::event::{
    CycleBoundary, Decision, Entry, Event, NextAction, Order, PhaseTransition, Report,
};
use archeflow_core::feedback;
use archeflow_core::model::{Phase, Reason, RunStatus};
use archeflow_core::projections::view;
use archeflow_core::run::Run;
use archeflow_core::text::{one_line, safe};
use serde_json::json;

use crate::platform::files::{self as os, Mode, OFlags};
use crate::store::{files, index};
use crate::world::World;
use crate::{clock, costs, memory, repositories, review, rollback, scores};

/// Writes what these entries make necessary.
pub fn write(world: &World, run: &Run, entries: &[Entry]) -> Result<(), files::Error> {
    let folder = world.artifacts();
    let mut fixes = Vec::new();
    for entry in entries {
        if let Event::Decision(Decision::CycleBoundary(boundary)) = &entry.event {
            boundary_files(&folder, boundary)?;
        }
        fixes.extend(fix_line(&world.run_id, run, entry));
        if let Event::Decision(Decision::PhaseTransition(transition)) = &entry.event
            && begins_a_cycle(transition)
        {
            archive(&folder, transition.cycle - 1)?;
        }
    }
    for fix in fixes {
        files::append_line_locked(&folder.join(FIXES), &fix)?;
    }
    Ok(())
}

/// A new cycle, or the next part of a review. The first has nothing before it to put away.
fn begins_a_cycle(transition: &PhaseTransition) -> bool {
    let next_part = transition.to == Phase::Check && transition.from == Phase::Act.name();
    transition.cycle > 1 && (transition.to == Phase::Plan || next_part)
}

const FIXES: &str = "act-fixes.jsonl";

/// The line of `act-fixes.jsonl` an entry makes, if it does.
pub(crate) fn fix_line(run_id: &str, run: &Run, entry: &Entry) -> Option<String> {
    let Event::Decision(Decision::FixApplied(fix)) = &entry.event else { return None };
    let line = json!({
        "ts": clock::written(entry.at), "run_id": run_id, "cycle": run.number(), "source": fix.source,
        "finding": fix.finding, "file": fix.file, "line": fix.line,
    });
    Some(line.to_string())
}

/// Observers: warnings, never a stop.
pub fn observe(world: &World, run: &Run, entries: &[Entry]) -> Vec<String> {
    let mut warnings = Vec::new();
    let ends = entries.iter().any(|entry| matches!(entry.event, Event::Decision(Decision::RunComplete(_))));
    let starts = entries.iter().any(|entry| matches!(entry.event, Event::Report(Report::SessionStart(_))));
    if (ends || starts)
        && let Err(error) = list(world, run)
    {
        warnings.push(format!("the index of runs was not written: {error}"));
    }
    if starts && let Err(error) = repositories::remember(&world.state, world.places.root()) {
        warnings.push(format!("the list of repositories was not written: {error}"));
    }
    let pauses = entries.iter().any(|entry| matches!(entry.event, Event::Report(Report::SessionEnd(_))));
    if (ends || pauses)
        && let Err(error) = costs::write(world.places.root(), &world.run_id, run)
    {
        warnings.push(format!("the day's costs were not written: {error}"));
    }
    if ends && let Err(error) = score(world, run) {
        warnings.push(format!("the reviewers' scores were not written: {error}"));
    }
    let leaves = entries.iter().any(|entry| {
        matches!(entry.event, Event::Decision(Decision::PhaseTransition(_) | Decision::RunComplete(_)))
    });
    if leaves && let Err(error) = rollback::keep_phases(world, run) {
        warnings.push(format!("no ref keeps the end of the phase: {error}"));
    }
    let progress = world.places.root().join(PROGRESS);
    if let Err(error) = write_plain(&progress, &safe(&progress_text(world, run)))
        && (ends || starts)
    {
        warnings.push(format!("{} was not written: {error}", progress.display()));
    }
    if entries.iter().any(|entry| matches!(entry.event, Event::Report(Report::RunStart(_)))) {
        warnings.extend(memory::begun(world, run));
    }
    warnings.extend(memory::sent(world, run, entries.iter().filter_map(sent)));
    if ends {
        warnings.extend(memory::ended(world, run));
        warnings.extend(review::ended(world, run));
    }
    warnings
}

/// A run that was only planned, or discarded, has no result for its reviewers.
fn score(world: &World, run: &Run) -> Result<(), scores::Error> {
    let told = run
        .outcome
        .as_ref()
        .is_some_and(|end| end.status != RunStatus::DryRun && end.reason != Reason::Discarded);
    if told { scores::write(world.places.root(), &world.run_id) } else { Ok(()) }
}

/// The archetype an entry sends.
fn sent(entry: &Entry) -> Option<&str> {
    let Event::Order(Order::AgentStart(start)) = &entry.event else { return None };
    Some(&start.archetype)
}

/// Overwrites a file that only watches, for its owner alone. Nothing is synced; a link in its place is not followed, and a
/// pipe neither waited for nor written to (M-S11, S-06).
fn write_plain(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = std::fs::File::from(os::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    os::set_mode_of(&file, 0o600)?;
    file.set_len(0)?;
    file.write_all(text.as_bytes())
}

const PROGRESS: &str = ".archeflow/progress.md";

fn list(world: &World, run: &Run) -> Result<(), files::Error> {
    enter(&world.places.events(), &world.run_id, run)
}

/// Puts a run on the list of runs, as it is now.
pub(crate) fn enter(events: &Path, run_id: &str, run: &Run) -> Result<(), files::Error> {
    index::append(events, &index_entry(run_id, run))
}

/// The line of a run in the list of runs.
pub fn index_entry(run_id: &str, run: &Run) -> index::IndexEntry {
    index::IndexEntry {
        run_id: run_id.to_owned(),
        status: status(run).to_owned(),
        task: run.request.as_ref().map(|request| request.task.clone()).unwrap_or_default(),
        ts: clock::written(run.last),
        reverted_at: run.landing.reverted.as_ref().map(|_| clock::written(run.landing.reverted_at)),
        reopens_at: run.complete.as_ref().and_then(|end| end.reopens_at).map(clock::written),
    }
}

fn status(run: &Run) -> &'static str {
    run.outcome.as_ref().map_or("running", |outcome| outcome.status.name())
}

/// Files that a crash may have prevented: made again from the state.
pub fn catch_up(world: &World, run: &Run) -> Result<(), files::Error> {
    let folder = world.artifacts();
    sweep(&folder);
    for cycle in &run.cycles {
        let over = cycle.number < run.number();
        if over && is_archived(&folder, cycle.number) {
            continue;
        }
        if let Some(boundary) = &cycle.boundary {
            boundary_files(&folder, boundary)?;
        }
        if over {
            archive(&folder, cycle.number)?;
        }
    }
    Ok(())
}

/// The files about the ends of all cycles.
pub(crate) fn boundaries(folder: &Path, run: &Run) -> Result<(), files::Error> {
    run.cycles
        .iter()
        .filter_map(|cycle| cycle.boundary.as_ref())
        .try_for_each(|end| boundary_files(folder, end))
}

/// Removes what unfinished writes left behind. No other process writes here while we hold the journal.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && name.ends_with(".tmp") {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Makes `act-fixes.jsonl` again when it is not what the log says.
pub fn catch_up_fixes(world: &World, fixes: &[String]) -> Result<(), files::Error> {
    let path = world.artifacts().join(FIXES);
    let text: String = fixes.iter().map(|fix| format!("{fix}\n")).collect();
    let written = files::read_capped(&path, 64 << 20).unwrap_or_default();
    if written == text.as_bytes() { Ok(()) } else { files::write_atomic(&path, text.as_bytes()) }
}

/// Adds an end that the index does not have. The index is a convenience, so errors are ignored.
pub fn catch_up_index(world: &World, run: &Run) {
    let known = index::read(&world.places.events()).unwrap_or_default();
    let stale = known
        .runs
        .iter()
        .find(|entry| entry.run_id == world.run_id)
        .is_none_or(|entry| entry.status != status(run));
    if run.outcome.is_some() {
        let _ = costs::write(world.places.root(), &world.run_id, run);
        let _ = score(world, run);
    }
    if run.outcome.is_some() && stale {
        let _ = list(world, run);
        let _ = write_plain(&world.places.root().join(PROGRESS), &progress_text(world, run));
    }
}

fn boundary_files(folder: &Path, boundary: &CycleBoundary) -> Result<(), files::Error> {
    let cycle = boundary.cycle;
    let open = serde_json::to_vec_pretty(&boundary.open).unwrap_or_default();
    files::write_atomic(&folder.join(format!("findings-cycle-{cycle}.json")), &open)?;
    if boundary.next_action != NextAction::Merge || !boundary.open.is_empty() {
        files::write_atomic(&folder.join("act-feedback.md"), feedback::document(boundary).as_bytes())?;
    }
    if let Some(trend) = &boundary.convergence {
        let action = match (boundary.next_action, trend.status.name()) {
            (NextAction::Stop, _) => "stop_immediately",
            (_, "stalling") => "continue_with_caution",
            (_, "diverging") => "stop_if_2_consecutive",
            (NextAction::Merge | NextAction::CycleBack, _) => "continue",
        };
        let record = json!({
            "cycle": cycle, "convergence_score": trend.score, "status": trend.status, "action": action,
            "resolved": trend.resolved, "new": trend.new, "persistent": trend.persistent, "regressed": trend.regressed,
            "oscillating": trend.oscillating, "stuck_kind": trend.stuck_kind, "recommendation": trend.recommendation,
            "reason": trend.reason,
        });
        let text = serde_json::to_vec_pretty(&record).unwrap_or_default();
        files::write_atomic(&folder.join(format!("convergence-cycle-{cycle}.json")), &text)?;
        let report = feedback::report(boundary, trend);
        files::write_atomic(&folder.join(format!("convergence-cycle-{cycle}.md")), report.as_bytes())?;
    }
    Ok(())
}

/// Moves a finished cycle's artifacts to `cycle-<n>/` (AF-086). The folder gets its name when everything is in it: so
/// a second try after a crash finishes the first, and one that comes later leaves the next cycle's artifacts alone.
fn archive(folder: &Path, cycle: u32) -> Result<(), files::Error> {
    if is_archived(folder, cycle) {
        return Ok(());
    }
    let into = folder.join(format!("cycle-{cycle}.part"));
    let io = |path: &Path, source| files::Error::Io { doing: "archive to", path: path.to_path_buf(), source };
    std::fs::create_dir_all(&into).map_err(|error| io(&into, error))?;
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let text = name.to_string_lossy();
        let of_cycle = is_of_cycle(&text);
        let feedback = text == "act-feedback.md";
        let to = into.join(&name);
        if of_cycle && !to.exists() {
            std::fs::rename(entry.path(), &to).map_err(|error| io(&to, error))?;
        } else if feedback {
            // Copied again each time: a crash may have cut the first copy short.
            std::fs::copy(entry.path(), &to).map_err(|error| io(&to, error))?;
        }
    }
    let whole = folder.join(format!("cycle-{cycle}"));
    std::fs::rename(&into, &whole).map_err(|error| io(&whole, error))
}

/// Whether an artifact of this name is archived with its cycle.
pub(crate) fn is_of_cycle(name: &str) -> bool {
    ["plan-", "do-", "check-"].iter().any(|start| name.starts_with(start))
}

fn is_archived(folder: &Path, cycle: u32) -> bool {
    folder.join(format!("cycle-{cycle}")).is_dir()
}

/// `.archeflow/progress.md`: the run at a glance.
fn progress_text(world: &World, run: &Run) -> String {
    use std::fmt::Write;
    let (title, second) = view::header(run);
    let status = status(run);
    let mut text = format!("# {title}\n\nRun ID: {} | {second}\n\nStatus: {status}\n\n", world.run_id);
    let latest = run.cycle().map(|cycle| cycle.number);
    for cycle in &run.cycles {
        let is_latest = latest == Some(cycle.number);
        let phase = if is_latest { cycle.phase.name() } else { "ended" };
        let _ = writeln!(text, "## Cycle {} of {}, {phase}\n", cycle.number, run.max_cycles);
        // Of earlier cycles only the end is kept.
        for seat in run.seats().iter().filter(|_| is_latest) {
            let name = &seat.archetype;
            let mark = if cycle.answers.contains_key(name) { "x" } else { " " };
            let works = || run.open_agents().any(|(_, start)| start.archetype == *name);
            let note = match (cycle.verdicts.get(name), cycle.absent.get(name)) {
                (Some(verdict), _) => format!(" {}", verdict.name()),
                (None, Some(reason)) => format!(" skipped: {}", one_line(reason)),
                (None, None) if works() => " working".to_owned(),
                (None, None) => String::new(),
            };
            let _ = writeln!(text, "- [{mark}] {}{note}", view::capital(name));
        }
        if let Some(boundary) = &cycle.boundary {
            let gap = if is_latest { "\n" } else { "" };
            let _ = writeln!(text, "{gap}Open: {}", view::open_counts(boundary));
        }
        text.push('\n');
    }
    if let Some((_, question)) = run.question() {
        let _ = write!(text, "## Waiting for you\n\n{}\n\n", question.question);
    }
    if let Some(outcome) = &run.outcome {
        let _ = write!(
            text,
            "## End\n\n{} ({}): {}\n\n",
            outcome.status.name(),
            outcome.reason.name(),
            outcome.detail
        );
    }
    let _ = writeln!(
        text,
        "Events: {} | Agents: {} | Updated: {}",
        run.lines,
        run.agents_total,
        clock::written(run.last)
    );
    text
}
