//! `/`: what waits for a person, over all repositories, and what runs now.

use std::sync::Arc;

use archeflow_core::event::QuestionKind;
use archeflow_core::model::{Reason, RunStatus, counted};
use archeflow_core::projections::view::capital;
use archeflow_core::run::Run;
use archeflow_core::text::{branch_name, short_line};
use archeflow_host::clock;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};

use super::layout::{Frame, Place};
use super::{Fields, decide, drawn, words};
use crate::catalog::{ActiveRun, Overview};
use crate::run_model::{RunModel, address};
use crate::server::Ui;

/// More that waits is counted, not listed.
const LISTED: usize = 100;

pub(crate) async fn page(State(ui): State<Arc<Ui>>, RawQuery(query): RawQuery) -> Response {
    drawn(ui, move |ui| {
        let fields = Fields::read(query.unwrap_or_default().as_bytes());
        let overview = ui.catalog.overview();
        let shown = chosen(&overview, fields.get("run"));
        let title = heading(overview.waiting.len());
        let mut frame = Frame::new(ui, &overview, Some(Place::Inbox), &title);
        frame.events = Some(("inbox".to_owned(), None));
        frame.shown = shown.map(address_of);
        super::page(StatusCode::OK, frame.draw(&inbox(ui, &overview, shown, &title)))
    })
    .await
}

/// The run that is named, else the first.
fn chosen<'a>(overview: &'a Overview, named: Option<&str>) -> Option<&'a ActiveRun> {
    let is_named = |active: &&ActiveRun| named.is_some_and(|name| *name == address_of(active));
    overview.waiting.iter().find(is_named).or_else(|| overview.waiting.first())
}

fn address_of(active: &ActiveRun) -> String {
    format!("{}/{}", active.seen.repository.key, active.seen.entry.run_id)
}

fn heading(waiting: usize) -> String {
    match waiting {
        0 => "Nothing waits for you".to_owned(),
        1 => "One run waits for you".to_owned(),
        many => format!("{many} runs wait for you"),
    }
}

/// The parts of the page that change by themselves, by name, as JSON.
pub(crate) fn parts(overview: &Overview) -> String {
    let parts = [("waiting", waiting(overview, None)), ("running", running(overview))];
    let drawn = parts.into_iter().map(|(name, part)| (name.to_owned(), part.into_string().into()));
    serde_json::Value::Object(drawn.collect()).to_string()
}

fn waiting(overview: &Overview, shown: Option<&ActiveRun>) -> Markup {
    let now = clock::now();
    html! {
        @for active in overview.waiting.iter().take(LISTED) {
            (item(active, shown.is_some_and(|shown| std::ptr::eq(active, shown)), now))
        }
        @if overview.waiting.len() > LISTED {
            p.empty { "And " (overview.waiting.len() - LISTED) " more: " code { "archeflow status" } }
        }
        @if overview.waiting.is_empty() { p.empty { "Nothing waits for you." } }
    }
}

/// What is to be decided about the run that is shown.
fn detail(ui: &Ui, active: &ActiveRun) -> Markup {
    let seen = &active.seen;
    match RunModel::read(&seen.repository, &seen.entry.run_id, seen.foreign) {
        Some(run) if run.damage.is_none() => decide::draw(ui, &run, false),
        _ => html! {
            section.panel {
                div.body {
                    p { "Its journal can't be read to its end, so nothing can be decided about it here." }
                    p.muted { (short_line(&active.item.detail, 400)) }
                    p { code { (short_line(&active.item.next, 400)) } }
                    p { a.btn href=(address(&seen.repository.key, &seen.entry.run_id)) { "See what can be read" } }
                }
            }
        },
    }
}

fn inbox(ui: &Ui, overview: &Overview, shown: Option<&ActiveRun>, title: &str) -> Markup {
    html! {
        div.title {
            div {
                h1 { (title) }
                div.facts { span { (subtitle(overview)) } }
            }
        }
        @if let Some(why) = ui.catalog.trouble() {
            div.alert role="alert" { b { "The list of your repositories can't be read, so nothing is shown: " } (short_line(&why, 300)) }
        }
        @if let Some(shown) = shown {
            div.inbox {
                section.panel.list aria-label="What waits" data-part="waiting" { (waiting(overview, Some(shown))) }
                div { (detail(ui, shown)) }
            }
        }
        div data-part="running" { (running(overview)) }
        @if overview.waiting.is_empty() && overview.running.is_empty() { (nothing(overview)) }
        (gone(overview))
    }
}

fn subtitle(overview: &Overview) -> String {
    let repositories = overview.repositories.iter().filter(|known| !known.missing).count();
    match (repositories, overview.waiting.is_empty()) {
        (0, _) => "No repository is known yet.".to_owned(),
        (n, true) => format!("Looked into {}", words::repositories(n)),
        (n, false) => {
            format!("From {}; what matters most first, then the longest wait", words::repositories(n))
        }
    }
}

fn item(active: &ActiveRun, is_shown: bool, now: u64) -> Markup {
    let (seen, run) = (&active.seen, &active.run);
    html! {
        a.item href={ "/?run=" (address_of(active)) } data-run=(address_of(active)) aria-current=[is_shown.then_some("true")] {
            span.s {
                b { (seen.repository.name) }
                span.num { "waits " (words::span(now.saturating_sub(run.last))) }
            }
            span.t { (short_line(&first_sentence(&asks(active)), 110)) }
            span.s.more {
                span { (short_line(&seen.entry.task, 120)) }
                (chip(active))
            }
        }
    }
}

/// What is wanted of the person, in a line.
pub(crate) fn asks(active: &ActiveRun) -> String {
    let (run, item) = (&active.run, &active.item);
    if let Some((_, question)) = run.question() {
        return match question.kind {
            QuestionKind::Merge => "Land it?".to_owned(),
            QuestionKind::DryRun => "Continue with this plan?".to_owned(),
            QuestionKind::RedBase => "The tests fail before any change. Start nevertheless?".to_owned(),
            QuestionKind::NeedsContext
            | QuestionKind::LowConfidence
            | QuestionKind::Shadow
            | QuestionKind::Rejection
            | QuestionKind::GoalQuestions
            | QuestionKind::PlanApproval
            | QuestionKind::StepApproval
            | QuestionKind::LoopPaused
            | QuestionKind::LoopEdited => question.question.clone(),
        };
    }
    match run.outcome.as_ref().map(|outcome| (outcome.status, outcome.reason)) {
        _ if active.seen.foreign && !active.seen.repository.is_copy => {
            "This machine did not start it".to_owned()
        }
        _ if item.interrupted => "Interrupted. Resume it?".to_owned(),
        _ if item.paused && run.outcome.is_none() => "Paused. Resume it?".to_owned(),
        Some((RunStatus::WiggumBreak, Reason::Oscillation)) => {
            "Two findings undo each other. Which side is right?".to_owned()
        }
        Some((RunStatus::AwaitingMerge, _)) => format!("Land it on {}?", target(run)),
        Some(_) | None => item.detail.clone(),
    }
}

/// A question as far as its question mark; the rest is beside the list.
fn first_sentence(text: &str) -> String {
    let end = text.find("? ").map_or(text.len(), |at| at + 1);
    capital(text.get(..end).unwrap_or(text))
}

pub(crate) fn target(run: &Run) -> String {
    let target = run.request.as_ref().map_or("", |request| request.base.target.as_str());
    short_line(branch_name(target), 80)
}

fn chip(active: &ActiveRun) -> Markup {
    let (tone, word) = state(active);
    html! { span class={ "chip " (tone) } { (word) } }
}

/// The state of a run that is under way or waits, with its colour.
pub(crate) fn state(active: &ActiveRun) -> (&'static str, String) {
    let status = active.run.outcome.as_ref().map(|outcome| outcome.status);
    match status {
        _ if active.seen.foreign && !active.seen.repository.is_copy => ("info", "foreign".to_owned()),
        _ if active.seen.interrupted => ("warn", "interrupted".to_owned()),
        None if active.item.paused => ("warn", "paused".to_owned()),
        None if active.run.question().is_some() => ("warn", "asks".to_owned()),
        None => ("run", "running".to_owned()),
        Some(RunStatus::WiggumBreak) => ("crit", "stopped itself".to_owned()),
        Some(RunStatus::Stopped | RunStatus::Failed) => ("crit", words::status(status)),
        Some(RunStatus::AwaitingMerge | RunStatus::AwaitingAnswer) => ("warn", words::status(status)),
        Some(RunStatus::Merged | RunStatus::DryRun | RunStatus::Reviewed) => ("ok", words::status(status)),
    }
}

fn running(overview: &Overview) -> Markup {
    let now = clock::now();
    if overview.running.is_empty() {
        return html! {};
    }
    html! {
        h2.section { "Running" }
        section.panel.list aria-label="Running" {
            @for active in overview.running.iter().take(LISTED) {
                a.item href=(address(&active.seen.repository.key, &active.seen.entry.run_id)) {
                    span.s {
                        b { (active.seen.repository.name) }
                        span.num { (words::span(now.saturating_sub(active.run.began))) }
                    }
                    span.t { (short_line(&active.seen.entry.task, 200)) }
                    span.s.more { span { (short_line(&active.item.detail, 200)) } (chip(active)) }
                }
            }
        }
    }
}

fn nothing(overview: &Overview) -> Markup {
    html! {
        section.panel {
            div.body {
                @if overview.all.is_empty() {
                    p { "No run was started yet. Start one in a repository:" }
                    p { code { "archeflow run \"<task>\"" } }
                    p.muted { "or see a whole run without any account: " code { "archeflow demo" } }
                } @else {
                    p { "All " (counted(overview.all.len(), "run")) " have ended." }
                }
            }
        }
    }
}

fn gone(overview: &Overview) -> Markup {
    let missing: Vec<_> = overview.repositories.iter().filter(|known| known.missing).collect();
    html! {
        @if !missing.is_empty() {
            p.small.muted.note {
                "Gone or without runs now: "
                @for (n, repository) in missing.iter().take(5).enumerate() {
                    @if n > 0 { ", " }
                    code { (short_line(&repository.root.display().to_string(), 200)) }
                }
                ". Take them off the list: " code { "archeflow forget --gone" }
            }
        }
    }
}
