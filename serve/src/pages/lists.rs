//! Pages that are lists over all repositories: loops, reviews, lessons, scores.

use std::sync::Arc;

use archeflow_core::model::{Millionths, counted};
use archeflow_core::projections::view::capital;
use archeflow_core::rules::scoring::{self, Course, ScoreSummary};
use archeflow_core::text::short_line;
use archeflow_host::agent_loop::open::journals;
use archeflow_host::store::memory::MemoryStore;
use archeflow_host::store::places::Places;
use archeflow_host::{clock, scores};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use super::layout::{Frame, Place};
use super::{drawn, page, words};
use crate::catalog::{Overview, Repository};
use crate::run_model::address;
use crate::server::Ui;

/// Rows of one repository.
const ROWS: usize = 200;

pub(crate) async fn loops(ui: State<Arc<Ui>>) -> Response {
    show(ui, Place::Loops, "Loops", "archeflow loop start \"<goal>\"", loops_of).await
}

pub(crate) async fn reviews(ui: State<Arc<Ui>>) -> Response {
    show(ui, Place::Reviews, "Reviews", "archeflow review", reviews_of).await
}

pub(crate) async fn memory(State(ui): State<Arc<Ui>>) -> Response {
    drawn(ui, |ui| lessons(ui, StatusCode::OK, &html! {})).await
}

/// `alert` is said above everything.
pub(crate) fn lessons(ui: &Ui, status: StatusCode, alert: &Markup) -> Response {
    let overview = ui.catalog.overview();
    let frame = Frame::new(ui, &overview, Some(Place::Memory), "Memory");
    let tables = tables(ui, &overview, "Memory", "archeflow memory add", lessons_of);
    page(status, frame.draw(&html! { (alert) (tables) }))
}

pub(crate) async fn score(ui: State<Arc<Ui>>) -> Response {
    show(ui, Place::Scores, "Scores", "archeflow score", scores_of).await
}

/// A table for each repository that has one, with the number of its rows.
type Table = fn(&Ui, &Repository) -> Option<(usize, Markup)>;

async fn show(
    State(ui): State<Arc<Ui>>,
    place: Place,
    title: &'static str,
    command: &'static str,
    table: Table,
) -> Response {
    drawn(ui, move |ui| {
        let overview = ui.catalog.overview();
        let frame = Frame::new(ui, &overview, Some(place), title);
        page(StatusCode::OK, frame.draw(&tables(ui, &overview, title, command, table)))
    })
    .await
}

fn tables(ui: &Ui, overview: &Overview, title: &str, command: &str, table: Table) -> Markup {
    let there = overview.repositories.iter().filter(|known| !known.missing);
    let drawn: Vec<(&Repository, usize, Markup)> =
        there.filter_map(|known| table(ui, known).map(|(rows, markup)| (&**known, rows, markup))).collect();
    html! {
        div.title { div { h1 { (title) } div.facts { span { "Over all repositories" } } } }
        @if drawn.is_empty() { section.panel { p.empty { "None yet. " code { (command) } } } }
        div.stack {
            @for (repository, rows, markup) in drawn {
                section.panel.table aria-label=(repository.name) {
                    header {
                        h2 { (repository.name) }
                        span.small.muted.num { (rows) @if rows > ROWS { ", the first " (ROWS) } }
                    }
                    div.scroll tabindex="0" role="region" aria-label={ (title) " of " (repository.name) } { (markup) }
                }
            }
        }
    }
}

fn loops_of(ui: &Ui, repository: &Repository) -> Option<(usize, Markup)> {
    let places = Places::at(&repository.root).ok()?;
    let found = journals(&places);
    let rows = found.iter().rev().take(ROWS).filter_map(|(id, path)| Some((id, ui.catalog.fold(path)?)));
    let rows: Vec<_> = rows.collect();
    let markup = html! {
        table.plain {
            thead { tr { th scope="col" { "Goal" } th scope="col" { "State" } th.num scope="col" { "Steps" } th.num scope="col" { "Last news" } } }
            tbody {
                @for (id, run) in &rows {
                    tr {
                        td { a.link href=(address(&repository.key, id)) { (short_line(&run.task(), 160)) } code.under { (id) } }
                        td { (words::status(run.outcome.as_ref().map(|outcome| outcome.status))) }
                        td.num { (run.number()) }
                        td.num.muted { (words::ago(clock::now(), run.last)) }
                    }
                }
            }
        }
    };
    (!rows.is_empty()).then_some((found.len(), markup))
}

fn reviews_of(ui: &Ui, repository: &Repository) -> Option<(usize, Markup)> {
    let found: Vec<_> = repository.runs.iter().rev().filter(|entry| entry.status == "reviewed").collect();
    let open = |id: &str| {
        let run = ui.catalog.fold(&repository.events().join(format!("{id}.jsonl")))?;
        let open = run.complete.as_ref().map_or(0, |complete| complete.unresolved.len());
        Some(if open == 0 { ("ok", "nothing open".to_owned()) } else { ("warn", counted(open, "finding")) })
    };
    let markup = html! {
        table.plain {
            thead { tr { th scope="col" { "What" } th scope="col" { "Open" } th.num scope="col" { "When" } } }
            tbody {
                @for entry in found.iter().take(ROWS.min(50)) {
                    tr {
                        td { a.link href=(address(&repository.key, &entry.run_id)) { (short_line(&entry.task, 160)) } code.under { (short_line(&entry.run_id, 120)) } }
                        td { @if let Some((tone, word)) = open(&entry.run_id) { span class={ "chip " (tone) } { (word) } } }
                        td.num.muted { (words::ago(clock::now(), clock::read(&entry.ts))) }
                    }
                }
            }
        }
    };
    (!found.is_empty()).then_some((found.len(), markup))
}

fn lessons_of(ui: &Ui, repository: &Repository) -> Option<(usize, Markup)> {
    let store = MemoryStore::of(&Places::at(&repository.root).ok()?, ui.catalog.state()?);
    let files = store.read().ok()?;
    let lessons: Vec<_> = files.lessons.values().collect();
    let markup = html! {
        @if !store.is_own() { p.empty { "These came with the repository or were edited, and reach no prompt before " code { "archeflow trust" } "." } }
        table.plain {
            thead { tr { th scope="col" { "Lesson" } th scope="col" { "Kind" } th scope="col" { "From" } th.num scope="col" { "Seen" } @if !ui.read_only { th scope="col" { "Decide" } } } }
            tbody {
                @for lesson in lessons.iter().rev().take(ROWS) {
                    tr {
                        td { (short_line(&lesson.description, 300)) code.under { (short_line(&lesson.id, 40)) } }
                        td { (lesson.kind.name().replace('_', " ")) }
                        td { (short_line(&lesson.source, 40)) }
                        td.num { (lesson.frequency) }
                        @if !ui.read_only { td { (forgetting(ui, repository, &lesson.id)) } }
                    }
                }
            }
        }
    };
    (!lessons.is_empty()).then_some((lessons.len(), markup))
}

/// A lesson that is wrong is archived for good, as the command does.
fn forgetting(ui: &Ui, repository: &Repository, id: &str) -> Markup {
    html! {
        form method="post" action="/do" {
            input type="hidden" name="csrf" value=(ui.access.form.text());
            input type="hidden" name="repository" value=(repository.key);
            input type="hidden" name="lesson" value=(id);
            button.btn.plain type="submit" title={ "archeflow memory forget " (id) } aria-label={ "Forget " (short_line(id, 40)) } { "Forget" }
        }
    }
}

fn scores_of(_: &Ui, repository: &Repository) -> Option<(usize, Markup)> {
    let found = scores::read(&repository.root).ok()?;
    let standings: Vec<ScoreSummary> = scoring::report(&found.records());
    let decimal = |score: Millionths| format!("{}.{:02}", score / 1_000_000, score % 1_000_000 / 10_000);
    let markup = html! {
        table.plain {
            thead { tr { th scope="col" { "Archetype" } th scope="col" { "Tier" } th.num scope="col" { "Runs" } th.num scope="col" { "Score" } th.num scope="col" { "Signal" } th scope="col" { "Trend" } } }
            tbody {
                @for standing in standings.iter().take(ROWS) {
                    tr {
                        td { (short_line(&capital(&standing.archetype), 40)) }
                        td { (standing.model.name()) }
                        td.num { (standing.runs) }
                        td.num { (decimal(standing.mean)) }
                        td.num { (decimal(standing.signal)) }
                        td { (standing.trend.map_or("", Course::name)) }
                    }
                }
            }
        }
    };
    (!standings.is_empty()).then_some((standings.len(), markup))
}
