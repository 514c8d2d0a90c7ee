//! `/runs`: every run of every repository, the newest first.

use std::sync::Arc;

use archeflow_core::projections::inbox;
use archeflow_core::projections::view::Tone;
use archeflow_core::text::short_line;
use archeflow_host::clock;
use archeflow_host::store::index::IndexEntry;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use super::layout::{Frame, Place};
use super::{Fields, drawn, words};
use crate::catalog::{CatalogRun, Overview, Repository};
use crate::run_model::address;
use crate::server::Ui;

/// Runs on one page.
const LISTED: usize = 100;

pub(crate) async fn page(State(ui): State<Arc<Ui>>, RawQuery(query): RawQuery) -> Response {
    drawn(ui, move |ui| {
        let fields = Fields::read(query.unwrap_or_default().as_bytes());
        let overview = ui.catalog.overview();
        let frame = Frame::new(ui, &overview, Some(Place::Runs), "Runs");
        super::page(StatusCode::OK, frame.draw(&list(ui, &overview, &fields)))
    })
    .await
}

fn list(ui: &Ui, overview: &Overview, fields: &Fields) -> Markup {
    let only = fields.get("repository").filter(|key| !key.is_empty());
    let name = only.and_then(|key| overview.repositories.iter().find(|known| known.key == key));
    let all: Vec<&(Arc<Repository>, IndexEntry)> =
        overview.all.iter().filter(|(repository, _)| only.is_none_or(|key| repository.key == key)).collect();
    let from = fields.get("from").and_then(|from| from.parse::<usize>().ok()).unwrap_or(0).min(all.len());
    let shown = all.iter().skip(from).take(LISTED);
    let query = only.map(|key| format!("repository={key}&")).unwrap_or_default();
    html! {
        div.title {
            div {
                h1 { @match name { Some(repository) => { "Runs in " (repository.name) } None => "Runs" } }
                div.facts {
                    span.num { b { (all.len()) } " in all" }
                    @if let Some(repository) = name { span { code { (short_line(&repository.root.display().to_string(), 200)) } } a.link href="/runs" { "all repositories" } }
                }
            }
        }
        @if all.is_empty() {
            section.panel {
                p.empty { (if name.is_some_and(|known| known.missing) { "This repository is not there any more." } else { "No run was started here yet." }) }
            }
        } @else {
            section.panel.table {
                div.scroll tabindex="0" role="region" aria-label="Runs" {
                    table.plain.runs {
                        thead { tr { th scope="col" { "Task" } th scope="col" { "Repository" } th scope="col" { "Status" } th.num scope="col" { "Last news" } } }
                        tbody { @for (repository, entry) in shown { (row(ui, repository, entry)) } }
                    }
                }
            }
            div.pages {
                @if from > 0 { a.btn href={ "/runs?" (query) "from=" (from.saturating_sub(LISTED)) } { "Newer" } }
                @if from + LISTED < all.len() { a.btn href={ "/runs?" (query) "from=" (from + LISTED) } { "Older" } }
            }
        }
    }
}

fn row(ui: &Ui, repository: &Arc<Repository>, entry: &IndexEntry) -> Markup {
    let at = clock::read(&entry.ts);
    let seen = ui.catalog.look(repository, entry);
    let (word, tone) = status(&seen);
    html! {
        tr {
            td { a.link href=(address(&repository.key, &entry.run_id)) { (short_line(&entry.task, 160)) } code.under { (short_line(&entry.run_id, 120)) } }
            td { (repository.name) }
            td { span class={ "chip " (tone) } { (word) } }
            td.num.muted { (words::ago(clock::now(), at)) }
        }
    }
}

fn status(seen: &CatalogRun) -> (String, &'static str) {
    match () {
        () if seen.foreign && !seen.repository.is_copy => ("foreign".to_owned(), "info"),
        () if seen.interrupted => ("interrupted".to_owned(), "warn"),
        () if seen.entry.status == "running" => ("running".to_owned(), "run"),
        () if seen.entry.reverted_at.is_some() && seen.entry.status == "merged" => {
            ("merged, reverted".to_owned(), "warn")
        }
        () => {
            let tone = match inbox::tone(&seen.entry.status) {
                Tone::Plain => "info",
                tone @ (Tone::Good | Tone::Caution | Tone::Bad) => words::tone(tone),
            };
            (short_line(&seen.entry.status.replace('_', " "), 40), tone)
        }
    }
}
