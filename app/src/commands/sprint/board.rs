//! All items of a sprint at a glance, one row each: from its log, and from the journals of its runs.

use std::path::{Path, PathBuf};

use archeflow_core::model::{Money, Phase};
use archeflow_core::run::Run;
use archeflow_core::sprint::budget;
use archeflow_core::sprint::queue::ItemStatus;
use archeflow_core::sprint::{ItemStage, ItemState};
use archeflow_core::view::{Tone, seconds};
use archeflow_host::sprint::reading::SprintReader;
use archeflow_host::sprint::runs::Runs;

/// One item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) item: String,
    pub(crate) project: String,
    pub(crate) state: &'static str,
    pub(crate) tone: Tone,
    pub(crate) phase: &'static str,
    pub(crate) cycle: String,
    pub(crate) findings: String,
    pub(crate) cost: Money,
    pub(crate) elapsed: Option<u64>,
    /// Its last run and where that lies, if there was one.
    pub(crate) run: Option<(String, PathBuf)>,
    /// What it is about, or why it came out as it did.
    pub(crate) text: String,
}

/// What stands above the rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) tone: Tone,
    pub(crate) counts: String,
}

pub(crate) fn head(reading: &SprintReader, now: u64) -> Head {
    let SprintReader { id, sprint, chronicle, .. } = reading;
    let (state, tone) = match (&sprint.end, &sprint.broke) {
        (Some((why, detail)), broke) => {
            let tone = if broke.is_some() { Tone::Bad } else { Tone::Plain };
            (format!("ended ({}): {detail}", why.name()), tone)
        }
        (None, Some((why, _, detail))) => (format!("stopping ({}): {detail}", why.name()), Tone::Bad),
        (None, None) if reading.is_driven() => (
            format!("under way for {}", seconds(now.saturating_sub(chronicle.began) / 1_000 * 1_000)),
            Tone::Good,
        ),
        (None, None) => ("interrupted; next: archeflow sprint run".to_owned(), Tone::Caution),
    };
    let count = |status| {
        sprint.items.values().filter(|known| known.item.status == status && !known.stand.is_ours()).count()
    };
    let purse = budget::whole(sprint);
    let most = purse.most.map_or(String::new(), |most| format!(" of {}", most.shown()));
    let counts = format!(
        "{} under way, {} completed, {} failed, {} blocked, {} pending; {}{most} spent",
        sprint.ours().count(),
        count(ItemStatus::Completed),
        count(ItemStatus::Failed),
        count(ItemStatus::Blocked),
        count(ItemStatus::Pending),
        purse.spent.shown()
    );
    Head { id: id.clone(), state, tone, counts }
}

/// What is under way first, then what went wrong, what waits, and what is done.
pub(crate) fn rows(reading: &SprintReader, runs: &mut Runs, projects: &Path, now: u64) -> Vec<Row> {
    let taken = |known: &&ItemState| {
        known.end.is_some()
            || known.fence.is_some()
            || known.stand.is_ours()
            || matches!(known.item.status, ItemStatus::Pending | ItemStatus::Blocked)
    };
    let mut items: Vec<&ItemState> = reading.sprint.items.values().filter(taken).collect();
    items.sort_by_key(|known| (rank(known), known.number));
    items.into_iter().map(|known| row(reading, runs, projects, now, known)).collect()
}

fn rank(known: &ItemState) -> u8 {
    match known.item.status {
        _ if known.stand.is_ours() => 0,
        ItemStatus::Failed => 1,
        ItemStatus::Blocked => 2,
        ItemStatus::Pending | ItemStatus::Running | ItemStatus::Proposed => 3,
        ItemStatus::Completed | ItemStatus::Cancelled => 4,
    }
}

fn row(reading: &SprintReader, runs: &mut Runs, projects: &Path, now: u64, known: &ItemState) -> Row {
    let item = &known.item;
    let repository = projects.join(&item.project);
    let told = reading.chronicle.run_of(&item.id);
    let run_name = told.map(|told| told.run_id(&reading.id));
    let run = run_name.as_ref().and_then(|name| runs.look(&repository, name));
    let ours = known.stand.is_ours();
    let elapsed = told.map(|told| match told.ended {
        Some(_) if !ours => told.took_ms,
        Some(_) | None => now.saturating_sub(told.began) / 1_000 * 1_000,
    });
    let note = reading.chronicle.notes.get(&item.id).filter(|note| !note.is_empty() && !ours);
    let end = known.end.as_ref();
    Row {
        item: item.id.clone(),
        project: item.project.clone(),
        state: if ours { known.stand.name() } else { item.status.name() },
        tone: if ours { Tone::Plain } else { super::run::tone(item.status) },
        phase: run.filter(|_| known.stand == ItemStage::Running).map_or("", phase),
        cycle: run.map_or(String::new(), |run| run.number().to_string()),
        findings: run.map_or(String::new(), |run| findings(run).to_string()),
        cost: run.map(|run| run.spent).or(end.map(|end| end.cost_usd)).unwrap_or_default(),
        elapsed,
        run: run_name.map(|name| (name, repository)),
        text: note.unwrap_or(&item.task).clone(),
    }
}

fn phase(run: &Run) -> &'static str {
    match run.cycle().map(|cycle| cycle.phase) {
        Some(Phase::Plan) => "plan",
        Some(Phase::Do) => "do",
        Some(Phase::Check) => "check",
        Some(Phase::Act) => "act",
        None => "",
    }
}

/// Of the present cycle.
fn findings(run: &Run) -> usize {
    run.cycle().map_or(0, |cycle| cycle.reviewers().iter().map(|(_, review)| review.findings.len()).sum())
}
