//! The state of a sprint, in Markdown: the parts of which `control-center.md`, the session log and the report are
//! made. Everything in it follows from the log and the queue; other people's text is made harmless on its way.

use std::fmt::Write;
use std::path::Path;

use archeflow_core::model::{Money, Reason, RunStatus, Share, counted};
use archeflow_core::projections::view::seconds;
use archeflow_core::sprint::budget::{self, SprintBudget};
use archeflow_core::sprint::chronicle::{SprintSession, SprintSessionEnd};
use archeflow_core::sprint::queue::{DependencyState, Graph, ItemStatus, QueueItem};
use archeflow_core::sprint::{ItemStage, ItemState};
use archeflow_core::text::{code_span, markdown, safe_line, shell_word};

use super::queue::{Queue, QueueFolder};
use super::reading::SprintReader;
use crate::clock;

/// The longest quote from an agent or client on the page.
const SENTENCE: usize = 240;
/// The most rows of a table; the rest is counted.
const ROWS: usize = 200;

/// What a page is made of.
pub struct PageFacts<'a> {
    pub reading: &'a SprintReader,
    pub queue: &'a Queue,
    pub place: &'a QueueFolder,
    /// The folder of the projects.
    pub projects: &'a Path,
    pub now: u64,
}

/// For a person who returns: what needs them first (AF-150, AF-159).
pub fn center(facts: &PageFacts<'_>) -> String {
    let mut out = String::from("# Control center\n\n");
    let _ = writeln!(out, "{}\n", standing(facts));
    needs(&mut out, facts);
    under_way(&mut out, facts);
    landed(&mut out, facts);
    failed(&mut out, facts);
    money(&mut out, facts);
    quality(&mut out, facts);
    next(&mut out, facts);
    out
}

/// Everything about one sprint.
pub fn report(facts: &PageFacts<'_>) -> String {
    let mut out = format!("# Sprint {}\n\n", facts.reading.id);
    let _ = writeln!(out, "{}\n", standing(facts));
    items(&mut out, facts);
    needs(&mut out, facts);
    money(&mut out, facts);
    quality(&mut out, facts);
    breaks(&mut out, facts);
    runs(&mut out, facts);
    let _ = writeln!(out, "## Sessions\n");
    for session in &facts.reading.chronicle.sessions {
        let _ = writeln!(out, "- {}", session_line(facts, session));
    }
    let _ = writeln!(
        out,
        "\n---\n\nMade from the log of `{}`, {} lines.",
        facts.reading.id, facts.reading.sprint.lines
    );
    out
}

/// One session, for the session log.
pub fn session(facts: &PageFacts<'_>, session: &SprintSession) -> String {
    let mut out = format!("{}\n\n", session_line(facts, session));
    for (item, status) in &session.settled {
        let known = facts.reading.sprint.items.get(item);
        let note = facts.reading.chronicle.notes.get(item).map_or("", String::as_str);
        let _ = writeln!(
            out,
            "- {} ({}): {}{}",
            code(item),
            known.map_or(String::new(), |known| markdown(&known.item.project, 80)),
            status.name(),
            if note.is_empty() { String::new() } else { format!(". {}", markdown(note, SENTENCE)) }
        );
    }
    if session.settled.is_empty() {
        let _ = writeln!(out, "- No task came to its end.");
    }
    out
}

fn session_line(facts: &PageFacts<'_>, session: &SprintSession) -> String {
    let spent: Money = session.spent.values().copied().sum();
    let over = match &session.over {
        SprintSessionEnd::Open if is_last(facts, session) && facts.reading.is_driven() => {
            "is running".to_owned()
        }
        SprintSessionEnd::Open => "was killed".to_owned(),
        SprintSessionEnd::Interrupted(signal) => format!("was interrupted (signal {signal})"),
        SprintSessionEnd::Ended(why, detail) => {
            format!("ended ({}): {}", why.name(), markdown(detail, SENTENCE))
        }
    };
    format!(
        "Session {}, {}: {} to {}, {} spent; {over}",
        session.number,
        if session.autonomous { "autonomous" } else { "attended" },
        when(session.began),
        when(session.last),
        spent.shown()
    )
}

fn is_last(facts: &PageFacts<'_>, session: &SprintSession) -> bool {
    facts.reading.chronicle.sessions.last().is_some_and(|last| last.number == session.number)
}

fn standing(facts: &PageFacts<'_>) -> String {
    let SprintReader { id, sprint, chronicle, .. } = facts.reading;
    let how = match (&sprint.end, &sprint.broke) {
        (Some((why, detail)), _) => format!("It ended ({}): {}.", why.name(), markdown(detail, SENTENCE)),
        (None, Some((why, _, detail))) => {
            format!("It is stopping ({}): {}.", why.name(), markdown(detail, SENTENCE))
        }
        (None, None) if facts.reading.is_driven() => "It is under way: `archeflow watch`.".to_owned(),
        (None, None) => "It was interrupted. Resume it: `archeflow sprint run`.".to_owned(),
    };
    let since = when(chronicle.began);
    format!("Sprint `{id}`, begun {since}, as of {}. {how}", when(facts.now))
}

/// What only a person can do, with the command for it.
fn needs(out: &mut String, facts: &PageFacts<'_>) {
    let wants: Vec<String> = wants(facts);
    let _ = writeln!(out, "## Needs you\n");
    if wants.is_empty() {
        let _ = writeln!(out, "Nothing.");
    }
    for want in wants.iter().take(ROWS) {
        let _ = writeln!(out, "- {want}");
    }
    left_out(out, wants.len());
    let _ = writeln!(out);
}

/// The same as a list.
pub fn wants(facts: &PageFacts<'_>) -> Vec<String> {
    let sprint = &facts.reading.sprint;
    let mut wants: Vec<String> = ours(facts).into_iter().filter_map(|known| want(facts, known)).collect();
    let proposed: Vec<&str> = facts
        .queue
        .items()
        .filter(|item| item.status == ItemStatus::Proposed)
        .map(|item| item.id.as_str())
        .collect();
    if !proposed.is_empty() {
        let ids = proposed.iter().take(5).copied().collect::<Vec<_>>().join(" ");
        let more = if proposed.len() > 5 { " …" } else { "" };
        wants.push(format!("{} proposed: `archeflow sprint approve {ids}{more}`", proposed.len()));
    }
    let poor = |project: &str| budget::is_used_up(sprint, project);
    let mut starved: Vec<&str> = facts
        .queue
        .items()
        .filter(|item| item.status == ItemStatus::Pending && poor(&item.project))
        .map(|item| item.project.as_str())
        .collect();
    starved.sort_unstable();
    starved.dedup();
    for project in starved {
        wants.push(format!(
            "{} has spent all of its share and has pending items: `archeflow sprint run --share {project}=<percent>`",
            markdown(project, 80)
        ));
    }
    wants
}

/// What an item needs, if its sprint can do no more for it.
fn want(facts: &PageFacts<'_>, known: &ItemState) -> Option<String> {
    let item = &known.item;
    let now = facts.queue.get(&item.id).map_or(item.status, |now| now.status);
    if known.stand.is_ours() || !matches!(now, ItemStatus::Failed | ItemStatus::Pending) {
        return None;
    }
    let told = format!("{} ({})", code(&item.id), markdown(&item.project, 80));
    let again = format!("`archeflow sprint retry {}`", item.id);
    let Some(end) = &known.end else {
        return (now == ItemStatus::Failed).then(|| format!("{told} failed: {again}"));
    };
    let repo = repo(facts, item);
    let show = format!("`archeflow show {} --repo {repo}`", end.run_id);
    let why = markdown(&end.detail, SENTENCE);
    Some(match (end.status, end.reason) {
        (Some(RunStatus::AwaitingAnswer), _) => {
            format!("{told} asks: {why}. Answer: `archeflow answer {} --repo {repo} '<text>'`", end.run_id)
        }
        (_, Some(Reason::NotSignedIn)) => format!("{told} could not sign in: {why}. See {show}"),
        (Some(RunStatus::AwaitingMerge), _) => format!(
            "{told} did not land: {why}. See {show}; land it: `archeflow merge {} --repo {repo}`, or run it again: {again}",
            end.run_id
        ),
        // The next sprint resumes it by itself.
        (None, _) if now == ItemStatus::Pending => return None,
        (None, _) => format!("{told} could not run: {why}. Then {again}"),
        (Some(_), _) if now == ItemStatus::Failed => {
            format!("{told} failed: {why}. See {show}; run it again: {again}")
        }
        (Some(_), _) => format!("{told} waits: {why}. See {show}"),
    })
}

fn under_way(out: &mut String, facts: &PageFacts<'_>) {
    let busy: Vec<&ItemState> = ours(facts).into_iter().filter(|known| known.stand.is_ours()).collect();
    if busy.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Under way\n\n| Item | Project | State | Since | Run |\n|---|---|---|---|---|");
    for known in busy {
        let told = facts.reading.chronicle.run_of(&known.item.id);
        let run = told.map_or(String::new(), |told| told.run_id(&facts.reading.id));
        let since = told.map_or(String::new(), |told| when(told.began));
        let state =
            if known.stand == ItemStage::Settling { known.item.status.name() } else { known.stand.name() };
        let _ = writeln!(
            out,
            "| {} | {} | {state} | {since} | {} |",
            code(&known.item.id),
            markdown(&known.item.project, 80),
            code(&run)
        );
    }
    let _ = writeln!(out);
}

fn landed(out: &mut String, facts: &PageFacts<'_>) {
    let some = with_status(facts, ItemStatus::Completed);
    let _ = writeln!(out, "## Landed\n");
    if some.is_empty() {
        let _ = writeln!(out, "Nothing yet.\n");
        return;
    }
    let _ = writeln!(
        out,
        "| Item | Project | Task | Cycles | Cost | Took | Commit |\n|---|---|---|---:|---:|---:|---|"
    );
    for known in some.iter().take(ROWS) {
        let (item, end) = (&known.item, known.end.as_ref());
        let told = facts.reading.chronicle.run_of(&item.id);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            code(&item.id),
            markdown(&item.project, 80),
            markdown(&item.task, 120),
            end.map_or(0, |end| end.cycles),
            end.map_or(Money::ZERO, |end| end.cost_usd).shown(),
            told.map_or(String::new(), |told| seconds(told.took_ms)),
            commit(known)
        );
    }
    left_out(out, some.len());
    let _ = writeln!(out);
}

fn failed(out: &mut String, facts: &PageFacts<'_>) {
    let some: Vec<&ItemState> = [ItemStatus::Failed, ItemStatus::Blocked]
        .iter()
        .flat_map(|status| with_status(facts, *status))
        .collect();
    if some.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Failed\n\n| Item | Project | | Why | Run |\n|---|---|---|---|---|");
    for known in some.iter().take(ROWS) {
        let item = &known.item;
        let note = facts.reading.chronicle.notes.get(&item.id).map_or("", String::as_str);
        let why = known.end.as_ref().map_or(note, |end| &end.detail);
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            code(&item.id),
            markdown(&item.project, 80),
            item.status.name(),
            markdown(why, SENTENCE),
            code(known.end.as_ref().map_or("", |end| &end.run_id))
        );
    }
    left_out(out, some.len());
    let _ = writeln!(out);
}

fn money(out: &mut String, facts: &PageFacts<'_>) {
    let sprint = &facts.reading.sprint;
    let _ = writeln!(
        out,
        "## Budget\n\n| Project | Spent | Promised | May spend | Used |\n|---|---:|---:|---:|---:|"
    );
    for (project, purse) in budget::by_project(sprint) {
        purse_row(out, &markdown(project, 80), purse);
    }
    purse_row(out, "**all**", budget::whole(sprint));
    let _ = writeln!(out);
}

fn purse_row(out: &mut String, name: &str, purse: SprintBudget) {
    let _ = writeln!(
        out,
        "| {name} | {} | {} | {} | {} |",
        purse.spent.shown(),
        purse.promised.shown(),
        purse.most.map_or("all there is".to_owned(), Money::shown),
        purse.percent().map_or(String::new(), |percent| format!("{percent} %"))
    );
}

/// AF-150: the last task against the first.
fn quality(out: &mut String, facts: &PageFacts<'_>) {
    let SprintReader { sprint, chronicle, .. } = facts.reading;
    let _ = writeln!(out, "## Quality\n");
    match (sprint.first, sprint.last) {
        (Some(first), Some(last)) => {
            let _ = writeln!(
                out,
                "First task {}, last task {} (100 % is one cycle, 0 % a failure). A checkpoint stops below {} % of the first.\n",
                percent(first),
                percent(last),
                sprint.policy.quality_percent
            );
        }
        _ => {
            let _ = writeln!(out, "No task has come to its end.\n");
        }
    }
    if chronicle.checkpoints.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "| Checkpoint | Tasks | Work | Spent so far | First task | Last task |\n|---|---:|---:|---:|---:|---:|"
    );
    for point in &chronicle.checkpoints {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            when(point.at),
            point.tasks,
            seconds(point.work_ms),
            point.spent.shown(),
            percent(point.first),
            percent(point.last)
        );
    }
    let _ = writeln!(out);
}

/// What would begin, in its order, and what each waits for.
fn next(out: &mut String, facts: &PageFacts<'_>) {
    const SHOWN: usize = 10;
    let graph = Graph::of(facts.queue.items());
    let mut pending: Vec<&QueueItem> =
        facts.queue.items().filter(|item| item.status == ItemStatus::Pending).collect();
    pending.sort_by_key(|item| (graph.standing(item) != DependencyState::Ready, item.priority));
    let _ = writeln!(out, "## Next\n");
    if pending.is_empty() {
        let _ = writeln!(out, "Nothing is pending.");
    }
    for item in pending.iter().take(SHOWN) {
        let waits = match graph.standing(item) {
            DependencyState::Waits(on) => format!(" (waits for {})", markdown(&on.join(", "), 120)),
            DependencyState::Lost(on) => format!(" (waits for {}, which will not come)", markdown(&on, 80)),
            DependencyState::Ready => String::new(),
        };
        let _ = writeln!(
            out,
            "1. {} {} {} ({}): {}{waits}",
            item.priority.name(),
            item.estimate.name(),
            code(&item.id),
            markdown(&item.project, 80),
            markdown(&item.task, 120)
        );
    }
    if pending.len() > SHOWN {
        let _ = writeln!(out, "\nAnd {} more: `archeflow sprint list`.", pending.len() - SHOWN);
    }
}

/// All the sprint ever took, in the order of the queue.
fn items(out: &mut String, facts: &PageFacts<'_>) {
    let _ = writeln!(
        out,
        "## Items\n\n| Item | Project | Status | Attempts | Cycles | Cost | Took | Commit | Task |\n|---|---|---|---:|---:|---:|---:|---|---|"
    );
    let all = ours(facts);
    for known in &all {
        let (item, end) = (&known.item, known.end.as_ref());
        let runs = facts.reading.chronicle.runs.iter().filter(|told| told.item == item.id);
        let took: u64 = runs.clone().map(|told| told.took_ms).sum();
        let cost: Money = runs.filter_map(|told| told.end.as_ref()).map(|end| end.cost_usd).sum();
        let state = if known.stand.is_ours() { known.stand.name() } else { item.status.name() };
        let _ = writeln!(
            out,
            "| {} | {} | {state} | {} | {} | {} | {} | {} | {} |",
            code(&item.id),
            markdown(&item.project, 80),
            known.runs(),
            end.map_or(0, |end| end.cycles),
            cost.shown(),
            if took == 0 { String::new() } else { seconds(took) },
            commit(known),
            markdown(&item.task, 120)
        );
    }
    let sprint = &facts.reading.sprint;
    let count = |status| with_status(facts, status).len();
    let _ = writeln!(
        out,
        "\n{}: {} completed, {} failed, {} blocked; {} of work, {} spent.\n",
        counted(all.len(), "item"),
        count(ItemStatus::Completed),
        count(ItemStatus::Failed),
        count(ItemStatus::Blocked),
        seconds(sprint.work_ms),
        sprint.spent().shown()
    );
}

fn breaks(out: &mut String, facts: &PageFacts<'_>) {
    let breaks = &facts.reading.chronicle.breaks;
    if breaks.is_empty() {
        return;
    }
    let _ = writeln!(out, "## Breaks\n");
    for broke in breaks {
        let hard = if broke.hard { "hard" } else { "soft" };
        let detail = markdown(&broke.detail, SENTENCE);
        let _ = writeln!(out, "- {}, {hard} ({}): {detail}", when(broke.at), broke.why.name());
    }
    let _ = writeln!(out);
}

fn runs(out: &mut String, facts: &PageFacts<'_>) {
    let _ = writeln!(
        out,
        "## Runs\n\n| Run | Project | Began | Took | Cost | Came out |\n|---|---|---|---:|---:|---|"
    );
    for told in &facts.reading.chronicle.runs {
        let project = facts.reading.sprint.items.get(&told.item).map_or("", |known| &known.item.project);
        let came_out = told.end.as_ref().map_or("under way".to_owned(), |end| {
            let (status, reason) =
                (end.status.map_or("left no end", RunStatus::name), end.reason.map_or("", Reason::name));
            format!("{status} {reason}: {}", markdown(&end.detail, 120))
        });
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {came_out} |",
            code(&told.run_id(&facts.reading.id)),
            markdown(project, 80),
            when(told.began),
            seconds(told.took_ms),
            told.end.as_ref().map_or(Money::ZERO, |end| end.cost_usd).shown()
        );
    }
    let _ = writeln!(out);
}

/// What this sprint had to do with, in the order in which it saw it.
fn ours<'a>(facts: &PageFacts<'a>) -> Vec<&'a ItemState> {
    let took = |known: &&ItemState| {
        known.end.is_some()
            || known.fence.is_some()
            || facts.reading.chronicle.notes.contains_key(&known.item.id)
    };
    let mut some: Vec<&ItemState> = facts.reading.sprint.items.values().filter(took).collect();
    some.sort_by_key(|known| known.number);
    some
}

fn with_status<'a>(facts: &PageFacts<'a>, status: ItemStatus) -> Vec<&'a ItemState> {
    ours(facts).into_iter().filter(|known| known.item.status == status && !known.stand.is_ours()).collect()
}

/// The path of a project, as it is typed from the folder of the queue.
fn repo(facts: &PageFacts<'_>, item: &QueueItem) -> String {
    let path = facts.projects.join(&item.project);
    let path = path.strip_prefix(facts.place.root()).unwrap_or(&path);
    let text = path.display().to_string();
    if text.is_empty() { ".".to_owned() } else { shell_word(&safe_line(&text)) }
}

fn commit(known: &ItemState) -> String {
    let oid = known.end.as_ref().and_then(|end| end.landed_as.as_deref());
    oid.map_or(String::new(), |oid| code(oid.get(..10).unwrap_or(oid)))
}

fn percent(share: Share) -> String {
    format!("{} %", share.0 / 10_000)
}

fn when(ms: u64) -> String {
    clock::written(ms).replace('T', " ").replace('Z', " UTC")
}

fn left_out(out: &mut String, count: usize) {
    if count > ROWS {
        let _ = writeln!(out, "\nAnd {} more: `archeflow sprint report`.", count - ROWS);
    }
}

/// No angle bracket either: a quoted end mark would end our part of the page.
fn code(text: &str) -> String {
    code_span(text, 160).replace('<', "(").replace('>', ")")
}
