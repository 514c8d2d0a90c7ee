//! `/sprints` and `/sprint/<folder>/<id>`: queues of tasks, and a sprint as a board.

use std::sync::Arc;

use archeflow_core::model::Money;
use archeflow_core::projections::board::BoardRow;
use archeflow_core::projections::view::capital;
use archeflow_core::sprint::budget;
use archeflow_core::sprint::queue::{ItemStatus, QueueItem};
use archeflow_core::text::short_line;
use archeflow_host::sprint::reading::SprintReader;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use super::layout::{Frame, Place, missing};
use super::{drawn, page, words};
use crate::catalog::key;
use crate::report::blocks;
use crate::run_model::address;
use crate::server::Ui;
use crate::sprints::{self, SprintFolder};

/// Cards in one lane.
const CARDS: usize = 60;

pub(crate) async fn list(State(ui): State<Arc<Ui>>) -> Response {
    drawn(ui, |ui| all_queues(ui, StatusCode::OK, &html! {})).await
}

/// `alert` is said above everything.
pub(crate) fn all_queues(ui: &Ui, status: StatusCode, alert: &Markup) -> Response {
    let overview = ui.catalog.overview();
    let frame = Frame::new(ui, &overview, Some(Place::Sprints), "Sprints");
    page(status, frame.draw(&all(ui, &sprints::folders(ui), alert)))
}

fn all(ui: &Ui, folders: &[SprintFolder], alert: &Markup) -> Markup {
    html! {
        div.title { div { h1 { "Sprints" } div.facts { span { "Queues where the server was started, in your repositories and around them" } } } }
        (alert)
        @if folders.is_empty() {
            section.panel { p.empty { "There is no queue yet. Add a task: " code { "archeflow sprint add <project> \"<task>\"" } } }
        }
        div.stack {
            @for folder in folders {
                section.panel {
                    header {
                        h2 { (name(folder)) }
                        span.small.muted { code { (short_line(&folder.root().display().to_string(), 200)) } }
                    }
                    div.body {
                        @if folder.sprints.is_empty() {
                            p.muted { "No sprint has run yet: " code { "archeflow sprint run" } }
                            (queued(folder))
                        }
                        ul.links {
                            @for id in folder.sprints.iter().take(20) {
                                li { a.link href={ "/sprint/" (folder.key) "/" (id) } { (short_line(id, 80)) } }
                            }
                        }
                        @if folder.sprints.is_empty() && !ui.read_only {
                            details { summary { "Add a task" } (task_form(ui, folder, "")) }
                        }
                    }
                }
            }
        }
    }
}

/// The tasks of a queue that no sprint has run yet.
fn queued(folder: &SprintFolder) -> Markup {
    let Some(queue) = folder.queue() else { return html! { p { "Its file can't be read." } } };
    let items: Vec<_> = queue.items().take(CARDS).collect();
    html! {
        @if !items.is_empty() {
            div.scroll tabindex="0" role="region" aria-label={ "Tasks of " (name(folder)) } {
                table.plain {
                    thead { tr { th scope="col" { "Task" } th scope="col" { "Project" } th scope="col" { "Priority" } th scope="col" { "State" } } }
                    tbody {
                        @for item in items {
                            tr {
                                td { (short_line(&item.task, 200)) code.under { (short_line(&item.id, 80)) } }
                                td { (short_line(&item.project, 80)) }
                                td { (item.priority.name()) }
                                td { (item.status.name().replace('_', " ")) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn name(folder: &SprintFolder) -> String {
    let root = folder.root();
    short_line(&root.file_name().unwrap_or(root.as_os_str()).to_string_lossy(), 60)
}

pub(crate) async fn one(State(ui): State<Arc<Ui>>, Path((folder, id)): Path<(String, String)>) -> Response {
    drawn(ui, move |ui| match sprints::by_key(ui, &folder) {
        Some(folder) if id == "center" => center(ui, &folder),
        Some(folder) => board_page(ui, &folder, &id, StatusCode::OK, &html! {}),
        None => missing(ui, NO_SPRINT),
    })
    .await
}

const NO_SPRINT: &str = "There is no such sprint, or its folder is gone.";

/// `alert` is said above everything.
pub(crate) fn board_page(
    ui: &Ui,
    folder: &SprintFolder,
    id: &str,
    status: StatusCode,
    alert: &Markup,
) -> Response {
    let Some((reader, board)) = sprints::read(folder, id) else { return missing(ui, NO_SPRINT) };
    let overview = ui.catalog.overview();
    let title = format!("Sprint {}", short_line(id, 80));
    let mut frame = Frame::new(ui, &overview, Some(Place::Sprints), &title);
    frame.events = Some((format!("sprint/{}/{id}", folder.key), None));
    let main = html! {
        div.crumbs {
            a href="/sprints" { (name(folder)) } span aria-hidden="true" { "/" }
            a href="/sprints" { "Sprints" } span aria-hidden="true" { "/" } code { (short_line(id, 80)) }
        }
        div.title {
            div { h1 { (title) } div data-part="facts" { (facts(&reader, &board.heading.state, &board.heading.counts)) } }
            div.actions { @if folder.center().is_some() { a.btn href={ "/sprint/" (folder.key) "/center" } { "Control center" } } }
        }
        (alert)
        div data-part="stats" { (stats(&reader, &board.rows)) }
        div data-part="board" { (lanes(ui, folder, &reader, &board.rows)) }
        (adding(ui, folder, id))
    };
    page(status, frame.draw(&main))
}

/// The parts of the page that change by themselves, by name, as JSON.
pub(crate) fn parts(ui: &Ui, key: &str, id: &str) -> Option<String> {
    let folder = sprints::by_key(ui, key)?;
    let (reader, board) = sprints::read(&folder, id)?;
    let parts = [
        ("facts", facts(&reader, &board.heading.state, &board.heading.counts)),
        ("stats", stats(&reader, &board.rows)),
        ("board", lanes(ui, &folder, &reader, &board.rows)),
    ];
    let drawn = parts.into_iter().map(|(name, part)| (name.to_owned(), part.into_string().into()));
    Some(serde_json::Value::Object(drawn.collect()).to_string())
}

fn facts(reader: &SprintReader, state: &str, counts: &str) -> Markup {
    let (chip, word) = match (reader.sprint.end.is_some(), reader.is_driven()) {
        (true, _) => ("info", "Ended"),
        (false, true) => ("run", "Under way"),
        (false, false) => ("warn", "Interrupted"),
    };
    html! {
        div.facts {
            span class={ "chip " (chip) } { @if chip == "run" { span.dot.on {} } (word) }
            span { (short_line(state, 200)) }
            span.num { (short_line(counts, 200)) }
        }
    }
}

fn stats(reader: &SprintReader, rows: &[BoardRow]) -> Markup {
    let purse = budget::whole(&reader.sprint);
    let lanes: Vec<Lane> = rows.iter().map(lane).collect();
    let count = |wanted: Lane| lanes.iter().filter(|lane| **lane == wanted).count();
    let share = |part: Money, whole: Money| (part.0.saturating_mul(100) / whole.0.max(1)).min(100);
    html! {
        div.stats {
            section.stat {
                h2 { "Budget" }
                div.big { (purse.spent.shown()) @if let Some(most) = purse.most { " " small { "of " (most.shown()) } } }
                @if let Some(most) = purse.most {
                    @let (spent, promised) = (share(purse.spent, most), share(purse.promised, most));
                    svg.bar viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={ (spent) " percent spent, " (promised) " percent reserved" } {
                        rect.a width=(spent) height="8" {}
                        rect.b x=(spent) width=(promised.min(100 - spent)) height="8" opacity=".55" {}
                    }
                }
                p.small.muted.num { @if purse.promised.0 > 0 { (purse.promised.shown()) " is reserved for running runs" } @else if purse.most.is_none() { "No limit was set" } }
            }
            section.stat { h2 { "Landed" } div.big { (count(Lane::Landed)) " " small { "of " (rows.len()) " tasks" } } p.small.muted { "each tested as it landed" } }
            section.stat { h2 { "Running" } div.big { (count(Lane::Running)) " " small { "of " (reader.sprint.policy.slots) " places" } } }
            section.stat { h2 { "Needs you" } div.big { (count(Lane::NeedsYou)) } p.small.muted { (count(Lane::Waiting)) " not started yet" } }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lane {
    Waiting,
    Running,
    NeedsYou,
    Landing,
    Landed,
}

impl Lane {
    const ALL: [(Lane, &'static str, &'static str); 5] = [
        (Lane::Waiting, "Waiting", "lane"),
        (Lane::Running, "Running", "lane on"),
        (Lane::NeedsYou, "Needs you", "lane need"),
        (Lane::Landing, "Landing", "lane land"),
        (Lane::Landed, "Landed", "lane"),
    ];
}

fn lane(row: &BoardRow) -> Lane {
    match row.state {
        "starting" | "running" | "parked" => Lane::Running,
        "ready to land" | "landing" | "settling" => Lane::Landing,
        "completed" => Lane::Landed,
        "failed" | "blocked" | "proposed" => Lane::NeedsYou,
        _ => Lane::Waiting,
    }
}

fn lanes(ui: &Ui, folder: &SprintFolder, reader: &SprintReader, rows: &[BoardRow]) -> Markup {
    let queue = folder.queue();
    let of = |row: &BoardRow| CardItem {
        queued: queue.as_ref().and_then(|queue| queue.get(&row.item)),
        known: reader.sprint.items.get(&row.item).map(|known| &known.item),
    };
    html! {
        div.board tabindex="0" role="region" aria-label="Board" {
            @for (which, title, class) in Lane::ALL {
                @let cards: Vec<&BoardRow> = rows.iter().filter(|row| lane(row) == which).collect();
                section class=(class) aria-label=(title) {
                    header { span { (title) } span.muted.num { (cards.len()) } }
                    ul { @for row in cards.iter().take(CARDS) { li { (card(ui, folder, reader, row, which, &of(row))) } } }
                    @if cards.len() > CARDS { p.small.muted { "and " (cards.len() - CARDS) " more" } }
                }
            }
        }
    }
}

/// An item as the queue has it now, and as the sprint has seen it.
struct CardItem<'a> {
    queued: Option<&'a QueueItem>,
    known: Option<&'a QueueItem>,
}

fn card(
    ui: &Ui,
    folder: &SprintFolder,
    reader: &SprintReader,
    row: &BoardRow,
    lane: Lane,
    both: &CardItem<'_>,
) -> Markup {
    let item = both.known.or(both.queued);
    let task = item.map_or(row.text.as_str(), |item| item.task.as_str());
    let link = row.run.as_ref().map(|run| address(&key(&folder.root().join(&row.project)), run));
    let quiet = lane == Lane::Landed;
    html! {
        article.card.quiet[quiet].wait[lane == Lane::NeedsYou] {
            div.top {
                b { (short_line(&row.project, 40)) }
                @if let Some(item) = item {
                    span {
                        span class={ "pp " (item.priority.name().to_lowercase()) } { (item.priority.name()) } " "
                        span.muted { (item.estimate.name()) }
                    }
                }
            }
            h3 {
                @if let Some(link) = link { a href=(link) { (short_line(task, 160)) } } @else { (short_line(task, 160)) }
            }
            @if !row.phase.is_empty() { (mini(row.phase)) }
            @if row.text != task { div.line { (short_line(&came_of_it(&row.text), 200)) } }
            @else if let Some(item) = item.filter(|item| lane == Lane::Waiting && !item.depends_on.is_empty()) {
                div.line { "after " (short_line(&item.depends_on.join(", "), 120)) }
            }
            @if row.run.is_some() {
                div.bot.num {
                    span {
                        @if let Some(cycle) = row.cycle.filter(|cycle| *cycle > 0) { "cycle " (cycle) }
                        @if let Some(findings) = row.findings.filter(|n| *n > 0) { ", " (findings) " open" }
                    }
                    span { @if let Some(took) = row.elapsed { (words::span(took)) ", " } (row.cost.shown()) }
                }
            }
            @if !ui.read_only { (buttons(ui, folder, reader, row, both.queued)) }
        }
    }
}

/// A note of the queue without the names for scripts and the command: the card has a link. `wiggum_break (oscillation): a
/// finding came back; archeflow show …` is `A finding came back`.
fn came_of_it(note: &str) -> String {
    let is_name = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    let named = note.split_once("): ").filter(|(names, _)| {
        names.split_once(" (").is_some_and(|(status, reason)| is_name(status) && is_name(reason))
    });
    let words = named.map_or(note, |(_, words)| words);
    capital(words.split("; archeflow ").next().unwrap_or(words))
}

/// How far the run of an item is.
fn mini(phase: &str) -> Markup {
    let at = ["plan", "do", "check", "act"].iter().position(|name| *name == phase).unwrap_or(0);
    let class = |n: usize| match n.cmp(&at) {
        std::cmp::Ordering::Less => "d",
        std::cmp::Ordering::Equal => "o",
        std::cmp::Ordering::Greater => "",
    };
    html! { div.mini role="img" aria-label={ (phase) " is under way" } { @for n in 0..4 { i class=(class(n)) {} } } }
}

/// What can be done to an item in its present state.
pub(crate) fn verbs(status: ItemStatus) -> &'static [&'static str] {
    match status {
        ItemStatus::Failed | ItemStatus::Blocked => &["retry", "cancel"],
        ItemStatus::Cancelled => &["retry"],
        ItemStatus::Proposed => &["approve", "cancel"],
        ItemStatus::Pending => &["cancel"],
        ItemStatus::Running | ItemStatus::Completed => &[],
    }
}

fn buttons(
    ui: &Ui,
    folder: &SprintFolder,
    reader: &SprintReader,
    row: &BoardRow,
    queued: Option<&QueueItem>,
) -> Markup {
    html! {
        @if let Some(status) = queued.map(|item| item.status).filter(|status| !verbs(*status).is_empty()) {
            div.verbs {
                @for verb in verbs(status) {
                    form method="post" action="/do" {
                        (hidden(ui, folder, &reader.id))
                        input type="hidden" name="verb" value=(verb);
                        input type="hidden" name="item" value=(row.item);
                        input type="hidden" name="status" value=(status.name());
                        button.btn.plain type="submit" title={ "archeflow sprint " (verb) " " (row.item) } { (capital(verb)) }
                    }
                }
            }
        }
    }
}

fn hidden(ui: &Ui, folder: &SprintFolder, id: &str) -> Markup {
    html! {
        input type="hidden" name="csrf" value=(ui.access.form.text());
        input type="hidden" name="sprint" value={ (folder.key) "/" (id) };
    }
}

/// The form for one more task.
fn adding(ui: &Ui, folder: &SprintFolder, id: &str) -> Markup {
    if ui.read_only {
        return html! {};
    }
    html! {
        section.panel.add {
            header { h2 { "Add a task" } span.small.muted { code { "archeflow sprint add <project> \"<task>\"" } } }
            (task_form(ui, folder, id))
        }
    }
}

fn task_form(ui: &Ui, folder: &SprintFolder, id: &str) -> Markup {
    html! {
        form.body method="post" action="/do" {
            (hidden(ui, folder, id))
            input type="hidden" name="verb" value="add";
            div.fields {
                label { span.lab { "Project folder" } input type="text" name="project" required maxlength="200" placeholder="."; }
                label { span.lab { "Priority" } select name="priority" { @for name in ["P0", "P1", "P2", "P3"] { option selected[name == "P2"] { (name) } } } }
                label { span.lab { "Size" } select name="estimate" { @for name in ["S", "M", "L", "XL"] { option selected[name == "M"] { (name) } } } }
            }
            label { span.lab { "Task" } textarea name="text" required maxlength="20000" {} }
            div.row { span.actions { button.btn.go type="submit" { "Add it" } } }
        }
    }
}

/// The page that sprints write for people.
fn center(ui: &Ui, folder: &SprintFolder) -> Response {
    let Some(text) = folder.center() else { return missing(ui, "There is no control center yet.") };
    let overview = ui.catalog.overview();
    let frame = Frame::new(ui, &overview, Some(Place::Sprints), "Control center");
    let main = html! {
        div.crumbs { a href="/sprints" { (name(folder)) } span aria-hidden="true" { "/" } a href="/sprints" { "Sprints" } }
        div.title { div { h1 { "Control center" } } }
        section.panel {
            header { h2 { "As the sprints wrote it" } span.small.muted { code { "docs/orchestra/control-center.md" } } }
            div.body.drawn { (blocks::draw(&text)) }
        }
    };
    page(StatusCode::OK, frame.draw(&main))
}

#[cfg(test)]
mod tests {
    use super::came_of_it;

    #[test]
    fn u_16_a_card_says_what_came_of_it_in_words() {
        for (note, shown) in [
            ("wiggum_break (oscillation): a finding came back; archeflow show r", "A finding came back"),
            ("failed (agent_failed): no answer", "No answer"),
            ("needs a person: which one (a): b", "Needs a person: which one (a): b"),
            ("", ""),
        ] {
            assert_eq!(came_of_it(note), shown);
        }
    }
}
