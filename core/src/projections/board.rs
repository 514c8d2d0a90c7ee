//! All items of a sprint at a glance, one row each: from its log, and from the states of its runs.

use serde::Serialize;

use crate::model::{Money, Phase};
use crate::projections::view::{Tone, seconds};
use crate::run::Run;
use crate::sprint::chronicle::Chronicle;
use crate::sprint::queue::ItemStatus;
use crate::sprint::{ItemStage, ItemState, Sprint, budget};

/// A sprint as its log has it.
#[derive(Clone, Copy)]
pub struct SprintFacts<'a> {
    pub id: &'a str,
    pub sprint: &'a Sprint,
    pub chronicle: &'a Chronicle,
    /// Whether a process drives it now.
    pub driven: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SprintBoard {
    pub heading: BoardHeading,
    #[serde(rename = "items")]
    pub rows: Vec<BoardRow>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoardHeading {
    #[serde(rename = "sprint_id")]
    pub id: String,
    pub state: String,
    pub tone: Tone,
    pub counts: String,
}

/// One item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BoardRow {
    #[serde(rename = "id")]
    pub item: String,
    pub project: String,
    pub state: &'static str,
    #[serde(skip)]
    pub tone: Tone,
    pub phase: &'static str,
    pub cycle: Option<u32>,
    pub findings: Option<usize>,
    #[serde(rename = "cost_usd")]
    pub cost: Money,
    #[serde(rename = "elapsed_ms")]
    pub elapsed: Option<u64>,
    /// Its last run, if there was one.
    #[serde(rename = "run_id")]
    pub run: Option<String>,
    /// The task, or why it came out as it did.
    pub text: String,
}

/// How far a run has come, as a row shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunProgress {
    phase: &'static str,
    cycle: u32,
    findings: usize,
    spent: Money,
}

impl RunProgress {
    /// The findings are those of the present cycle.
    pub fn of(run: &Run) -> RunProgress {
        let reviews = run.cycle().map(|cycle| cycle.reviewers());
        let findings = reviews.map_or(0, |reviews| reviews.iter().map(|(_, it)| it.findings.len()).sum());
        let phase = run.cycle().map_or("", |cycle| Phase::name(cycle.phase));
        RunProgress { phase, cycle: run.number(), findings, spent: run.spent }
    }
}

impl SprintBoard {
    /// `look` finds a run by its project and id, if it has a journal.
    pub fn of(
        facts: SprintFacts<'_>,
        now: u64,
        look: impl FnMut(&str, &str) -> Option<RunProgress>,
    ) -> SprintBoard {
        SprintBoard { heading: heading(facts, now), rows: rows(facts, now, look) }
    }
}

fn heading(facts: SprintFacts<'_>, now: u64) -> BoardHeading {
    let SprintFacts { id, sprint, chronicle, driven } = facts;
    let (state, tone) = match (&sprint.end, &sprint.broke) {
        (Some((why, detail)), broke) => {
            let tone = if broke.is_some() { Tone::Bad } else { Tone::Plain };
            (format!("ended ({}): {detail}", why.name()), tone)
        }
        (None, Some((why, _, detail))) => (format!("stopping ({}): {detail}", why.name()), Tone::Bad),
        (None, None) if driven => (
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
    BoardHeading { id: id.to_owned(), state, tone, counts }
}

/// Running items first, then failed, waiting and completed ones.
fn rows(
    facts: SprintFacts<'_>,
    now: u64,
    mut look: impl FnMut(&str, &str) -> Option<RunProgress>,
) -> Vec<BoardRow> {
    let taken = |known: &&ItemState| {
        known.end.is_some()
            || known.fence.is_some()
            || known.stand.is_ours()
            || matches!(known.item.status, ItemStatus::Pending | ItemStatus::Blocked)
    };
    let mut items: Vec<&ItemState> = facts.sprint.items.values().filter(taken).collect();
    items.sort_by_key(|known| (rank(known), known.number));
    items.into_iter().map(|known| row(facts, now, known, &mut look)).collect()
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

fn row(
    facts: SprintFacts<'_>,
    now: u64,
    known: &ItemState,
    look: &mut impl FnMut(&str, &str) -> Option<RunProgress>,
) -> BoardRow {
    let item = &known.item;
    let told = facts.chronicle.run_of(&item.id);
    let run_id = told.map(|told| told.run_id(facts.id));
    let run = run_id.as_ref().and_then(|id| look(&item.project, id));
    let ours = known.stand.is_ours();
    let elapsed = told.map(|told| match told.ended {
        Some(_) if !ours => told.took_ms,
        Some(_) | None => now.saturating_sub(told.began) / 1_000 * 1_000,
    });
    let note = facts.chronicle.notes.get(&item.id).filter(|note| !note.is_empty() && !ours);
    let end = known.end.as_ref();
    BoardRow {
        item: item.id.clone(),
        project: item.project.clone(),
        state: if ours { known.stand.name() } else { item.status.name() },
        tone: if ours { Tone::Plain } else { tone(item.status) },
        phase: run.filter(|_| known.stand == ItemStage::Running).map_or("", |run| run.phase),
        cycle: run.map(|run| run.cycle),
        findings: run.map(|run| run.findings),
        cost: run.map(|run| run.spent).or(end.map(|end| end.cost_usd)).unwrap_or_default(),
        elapsed,
        run: run_id,
        text: note.unwrap_or(&item.task).clone(),
    }
}

/// How the status of an item should feel.
pub fn tone(status: ItemStatus) -> Tone {
    match status {
        ItemStatus::Completed => Tone::Good,
        ItemStatus::Failed => Tone::Bad,
        ItemStatus::Blocked | ItemStatus::Pending | ItemStatus::Proposed => Tone::Caution,
        ItemStatus::Running | ItemStatus::Cancelled => Tone::Plain,
    }
}
