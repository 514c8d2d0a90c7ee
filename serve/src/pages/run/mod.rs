//! `/run/<repository>/<id>`: one run, from its journal. The parts of it are addresses of their own, so that each is
//! drawn alone and all work without script.

mod change;
mod journal;
mod panels;
mod parts;

use std::sync::Arc;

use archeflow_core::event::Entry;
use archeflow_core::model::counted;
use archeflow_core::text::short_line;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use maud::{Markup, html};

use super::layout::{Frame, Place, missing};
use super::{Fields, decide, drawn, page, words};
use crate::changes;
use crate::report::diff::Diff;
use crate::report::html as report;
use crate::report::{self as reports, Report};
use crate::run_model::{RunModel, Standing};
use crate::server::Ui;

/// The parts of a run, in the order of their tabs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Change,
    Findings,
    Agents,
    Why,
    Costs,
    Artifacts,
    Journal,
    /// One file of the change, which has no tab.
    File,
}

impl Part {
    const TABS: [Part; 7] =
        [Part::Change, Part::Findings, Part::Agents, Part::Why, Part::Costs, Part::Artifacts, Part::Journal];

    fn name(self) -> &'static str {
        match self {
            Part::Change => "Change",
            Part::Findings => "Findings",
            Part::Agents => "Agents",
            Part::Why => "Why",
            Part::Costs => "Costs",
            Part::Artifacts => "Artifacts",
            Part::Journal => "Journal",
            Part::File => "File",
        }
    }

    /// Behind the address of the run.
    fn path(self) -> String {
        if self == Part::Change { String::new() } else { format!("/{}", self.name().to_lowercase()) }
    }

    fn parse(text: &str) -> Option<Part> {
        Part::TABS.into_iter().chain([Part::File]).find(|part| part.path().trim_start_matches('/') == text)
    }
}

type Query = RawQuery;

pub(crate) async fn first(
    ui: State<Arc<Ui>>,
    Path((key, id)): Path<(String, String)>,
    query: Query,
) -> Response {
    show(ui, key, id, Part::Change, query).await
}

pub(crate) async fn part(
    ui: State<Arc<Ui>>,
    Path((key, id, part)): Path<(String, String, String)>,
    query: Query,
) -> Response {
    match Part::parse(&part) {
        Some(part) => show(ui, key, id, part, query).await,
        None if part == "report" => whole_report(ui, key, id).await,
        None if part == "artifact" => artifact(ui, key, id, query).await,
        None => drawn(ui.0, |ui| missing(ui, "A run has no such part.")).await,
    }
}

/// The run that an address names.
pub(crate) fn model(ui: &Ui, key: &str, id: &str) -> Option<RunModel> {
    let repository = ui.catalog.by_key(key)?;
    let foreign = ui.catalog.is_foreign(&repository, id);
    RunModel::read(&repository, id, foreign)
}

async fn show(
    State(ui): State<Arc<Ui>>,
    key: String,
    id: String,
    part: Part,
    RawQuery(query): Query,
) -> Response {
    drawn(ui, move |ui| {
        let fields = Fields::read(query.unwrap_or_default().as_bytes());
        match model(ui, &key, &id) {
            Some(run) => page(StatusCode::OK, whole(ui, &run, part, &fields, &html! {})),
            None => missing(ui, NO_RUN),
        }
    })
    .await
}

const NO_RUN: &str =
    "There is no such run, or its repository is gone. `archeflow list --all` lists all runs.";

/// `alert` is said above everything.
pub(crate) fn whole(ui: &Ui, run: &RunModel, part: Part, fields: &Fields, alert: &Markup) -> Markup {
    let overview = ui.catalog.overview();
    let task = short_line(&run.story.overview.task, 120);
    let mut frame = Frame::new(ui, &overview, Some(Place::Runs), &task);
    frame.events = Some((format!("run/{}/{}", run.repository.key, run.id), Some(run.end())));
    let file = fields.get("path").filter(|_| part == Part::File);
    let diff = match (part, file) {
        (_, Some(path)) => Arc::new(changes::one_file(ui.catalog.state(), run, path)),
        (Part::Change, None) => ui.changes.of(ui.catalog.state(), run),
        (_, None) => Arc::default(),
    };
    let main = html! {
        (crumbs(run))
        (head(ui, run))
        (alert)
        @if let Some(damage) = &run.damage { (damaged(run, damage)) }
        div data-part="decide" { (decide::draw(ui, run, true)) }
        div data-part="track" { (panels::track(run)) }
        div.cols {
            div {
                (tabs(run, part))
                (content(ui, run, part, &diff, fields))
            }
            div.stack {
                div data-part="agents" { (panels::agents(run)) }
                div data-part="lives" { (panels::lives(run)) }
                div data-part="why" { (panels::why(run)) }
                div data-part="cost" { (panels::cost(run)) }
            }
        }
    };
    frame.draw(&main)
}

fn crumbs(run: &RunModel) -> Markup {
    html! {
        div.crumbs {
            a href={ "/runs?repository=" (run.repository.key) } { (run.repository.name) }
            span aria-hidden="true" { "/" }
            a href="/runs" { "Runs" }
            span aria-hidden="true" { "/" }
            code { (run.id) }
        }
    }
}

/// The parts of the page that change while the run goes on, by name, as JSON.
pub(crate) fn parts_of(ui: &Ui, run: &RunModel) -> String {
    let parts = [
        ("facts", facts(run)),
        ("steering", decide::steering(ui, run)),
        ("decide", decide::draw(ui, run, true)),
        ("track", panels::track(run)),
        ("agents", panels::agents(run)),
        ("lives", panels::lives(run)),
        ("why", panels::why(run)),
        ("cost", panels::cost(run)),
    ];
    let drawn = parts.into_iter().map(|(name, part)| (name.to_owned(), part.into_string().into()));
    serde_json::Value::Object(drawn.collect()).to_string()
}

/// A line of the journal.
pub(crate) fn journal_row(entry: &Entry) -> String {
    journal::row(entry).into_string()
}

fn head(ui: &Ui, run: &RunModel) -> Markup {
    let overview = &run.story.overview;
    html! {
        div.title {
            div {
                h1 { (short_line(&overview.task, 300)) }
                div data-part="facts" { (facts(run)) }
            }
            div.actions {
                a.btn href={ (run.address()) "/report" } { "Report" }
                div.actions data-part="steering" { (decide::steering(ui, run)) }
            }
        }
    }
}

fn facts(run: &RunModel) -> Markup {
    let (overview, state) = (&run.story.overview, run.run());
    let label = archeflow_core::projections::view::label(overview.strategy, overview.workflow);
    html! {
        div.facts {
            (standing(run))
            span { b { (label) } " workflow" }
            span.num { b { (words::span(run.live.elapsed())) } @if run.is_live() { " since the start" } @else { " in all" } }
            span.num {
                b { (overview.spent.shown()) }
                @if let Some(limit) = overview.limit { " of " (limit.shown()) }
            }
            @if let Some(landed) = &overview.landed {
                span { "landed on " b { (short_line(&overview.target, 80)) } " as " code { (words::short(&landed.commit)) } }
            } @else if !overview.target.is_empty() {
                span { "for " b { (short_line(&overview.target, 80)) } " at " code { (words::short(&overview.base)) } }
            }
            @if overview.unsandboxed { span.chip.warn { "without sandbox" } }
            @if run.repository.is_copy {
                span.chip.info { "of the fleet: shown only" }
            } @else if run.foreign {
                span.chip.info { "foreign: shown, never executed" }
            }
            @if let Some(usual) = run.live.against_usual() { span.num { (usual) } }
            @if state.paused.is_some() && run.is_live() { span.chip.warn { "paused" } }
        }
    }
}

/// The first fact: what the run does now, or how it ended.
fn standing(run: &RunModel) -> Markup {
    let state = run.run();
    let cycle = format!("cycle {} of {}", state.number().max(1), state.max_cycles.max(1));
    let phase = state.cycle().map_or("plan", |cycle| cycle.phase.name());
    match run.standing() {
        Standing::Running => html! {
            span.chip.run { span.dot.on {} (words::doing(phase)) ", " (cycle) }
        },
        Standing::Asks => html! { span.chip.warn { "Waits for an answer" } },
        Standing::Paused => html! { span.chip.warn { "Paused in " (phase) ", " (cycle) } },
        Standing::Interrupted => html! { span.chip.warn { "Interrupted in " (phase) ", " (cycle) } },
        Standing::Ended(status) => {
            let tone = words::tone(run.story.tone());
            let reason = run.story.reason().replace('_', " ");
            html! {
                span class={ "chip " (tone) } { (words::status(Some(status))) }
                span { (reason) }
            }
        }
    }
}

fn damaged(run: &RunModel, why: &str) -> Markup {
    html! {
        div.alert role="alert" {
            b { "The journal can't be read to its end." }
            " " (short_line(why, 400)) " Shown is what comes before it, up to line " (run.last_seq()) "."
        }
    }
}

fn tabs(run: &RunModel, current: Part) -> Markup {
    let story = &run.story;
    let closed = story.lives.iter().filter(|life| !life.is_open()).count();
    let found = run.open_findings().len() + closed;
    let files = story.change.as_ref().map(|change| change.files.len() + change.files_left_out as usize);
    let count = |part: Part| match part {
        Part::Change => files.map(|n| counted(n, "file")),
        Part::Findings => Some(found).filter(|n| *n > 0).map(|n| n.to_string()),
        Part::Agents | Part::Why | Part::Costs | Part::Artifacts | Part::Journal | Part::File => None,
    };
    html! {
        nav.tabs aria-label="Parts of this run" {
            @for part in Part::TABS {
                a href={ (run.address()) (part.path()) } aria-current=[(part == current).then_some("page")] {
                    (part.name())
                    @if let Some(count) = count(part) { " " span.count.num { (count) } }
                }
            }
        }
    }
}

fn content(ui: &Ui, run: &RunModel, part: Part, diff: &Diff, fields: &Fields) -> Markup {
    let story = &run.story;
    match part {
        Part::Change => change::draw(ui, run, diff),
        Part::Findings => parts::findings(ui, run),
        Part::Agents => parts::agents(run),
        Part::Why => panel("Decisions and their reasons", &report::why(story)),
        Part::Costs => panel("Cost by archetype", &report::costs(story)),
        Part::Artifacts => parts::artifacts(run),
        Part::Journal => journal::draw(run, fields),
        Part::File => change::draw_file(ui, run, diff),
    }
}

pub(super) fn panel(title: &str, inner: &Markup) -> Markup {
    html! { section.panel { header { h2 { (title) } } div.body.drawn tabindex="0" role="region" aria-label=(title) { (inner) } } }
}

/// The document that `archeflow report --html` writes. Its own policy allows its own style sheet.
async fn whole_report(State(ui): State<Arc<Ui>>, key: String, id: String) -> Response {
    drawn(ui, move |ui| {
        let Some(run) = model(ui, &key, &id) else { return missing(ui, NO_RUN) };
        let diff = ui.changes.of(ui.catalog.state(), &run);
        let report =
            Report { story: &run.story, diff: &diff, dag: None, written: archeflow_host::clock::written };
        let mut response = page(StatusCode::OK, maud::PreEscaped(reports::html::draw(&report)));
        if let Ok(policy) = HeaderValue::from_str(&reports::html::policy()) {
            response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        response
    })
    .await
}

/// What an agent delivered, as text.
async fn artifact(State(ui): State<Arc<Ui>>, key: String, id: String, RawQuery(query): Query) -> Response {
    drawn(ui, move |ui| {
        let fields = Fields::read(query.unwrap_or_default().as_bytes());
        let Some(run) = model(ui, &key, &id) else { return missing(ui, NO_RUN) };
        // What can't be brought is shown as missing, with the reason.
        let brought = ui.fleet.as_ref().map_or(Ok(()), |fleet| (fleet.bring)(&run.id));
        let Some(main) = parts::artifact(&run, &fields, brought.err().as_deref()) else {
            return missing(ui, "The run has no such artifact any more.");
        };
        let overview = ui.catalog.overview();
        let task = short_line(&run.story.overview.task, 120);
        let frame = Frame::new(ui, &overview, Some(Place::Runs), &task);
        page(
            StatusCode::OK,
            frame.draw(&html! { (crumbs(&run)) (head(ui, &run)) (tabs(&run, Part::Artifacts)) (main) }),
        )
    })
    .await
}
