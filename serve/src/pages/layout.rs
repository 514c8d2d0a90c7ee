//! What every page has: the list of pages, the repositories, and a frame around its own content.

use archeflow_core::text::short_line;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{DOCTYPE, Markup, html};

use super::page;
use crate::catalog::{Overview, Repository};
use crate::server::Ui;

/// The pages in the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Inbox,
    Runs,
    Sprints,
    Loops,
    Reviews,
    Memory,
    Scores,
}

/// The pages below the inbox and the runs.
const OTHERS: [(Place, &str, &str); 5] = [
    (Place::Sprints, "/sprints", "Sprints"),
    (Place::Loops, "/loops", "Loops"),
    (Place::Reviews, "/reviews", "Reviews"),
    (Place::Memory, "/memory", "Memory"),
    (Place::Scores, "/scores", "Scores"),
];

pub(crate) struct Frame<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) overview: &'a Overview,
    pub(crate) place: Option<Place>,
    pub(crate) title: &'a str,
    /// What the page is told about while it is open, and from which byte on.
    pub(crate) events: Option<(String, Option<u64>)>,
    /// The item that is shown beside a list.
    pub(crate) shown: Option<String>,
}

impl<'a> Frame<'a> {
    pub(crate) fn new(ui: &'a Ui, overview: &'a Overview, place: Option<Place>, title: &'a str) -> Frame<'a> {
        Frame { ui, overview, place, title, events: None, shown: None }
    }
}

impl Frame<'_> {
    pub(crate) fn draw(&self, main: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (self.title) " · archeflow" }
                    link rel="stylesheet" href="/style.css";
                    script src="/ui.js" defer {}
                }
                body data-events=[self.events.as_ref().map(|(of, _)| of)] data-from=[self.events.as_ref().and_then(|(_, from)| *from)] data-shown=[self.shown.as_ref()] {
                    a.skip href="#main" { "Skip to content" }
                    (self.rail())
                    main #main tabindex="-1" { (main) }
                }
            }
        }
    }

    fn rail(&self) -> Markup {
        let waiting = self.overview.waiting.len();
        let current = |place: Place| (self.place == Some(place)).then_some("page");
        html! {
            nav.rail aria-label="Main" {
                div.brand { (mark()) span { "archeflow" } }
                a.nav href="/" aria-current=[current(Place::Inbox)] {
                    "Inbox"
                    @if waiting > 0 {
                        span.count.hot.num aria-label={ (waiting) " waiting" } { (waiting) }
                    }
                }
                a.nav href="/runs" aria-current=[current(Place::Runs)] {
                    "Runs" @if !self.overview.all.is_empty() { span.count.num { (self.overview.all.len()) } }
                }
                @for (place, path, name) in OTHERS {
                    a.nav href=(path) aria-current=[current(place)] { (name) }
                }
                (self.repositories())
                div.foot {
                    span.live { (under_way(self.overview.running.len())) }
                    span { "127.0.0.1:" (self.ui.port) ", this machine only" }
                    span { "archeflow " (self.ui.version) }
                }
            }
        }
    }

    fn repositories(&self) -> Markup {
        let there =
            || self.overview.repositories.iter().filter(|known| !known.missing && !known.runs.is_empty());
        html! {
            @if there().next().is_some() {
                h2 { "Repositories" }
                @for repository in there().take(30) {
                    a.nav.repo href={ "/runs?repository=" (repository.key) } title=(short_line(&repository.root.display().to_string(), 200)) {
                        (self.name_of(repository)) span.muted.num.small { (repository.runs.len()) }
                    }
                }
            }
        }
    }
}

impl Frame<'_> {
    /// With the folder around it, where another repository has the same name.
    fn name_of(&self, repository: &Repository) -> String {
        let same =
            self.overview.repositories.iter().filter(|known| !known.missing && known.name == repository.name);
        let around = repository.root.parent().and_then(|parent| parent.file_name());
        match around.filter(|_| same.count() > 1) {
            Some(around) => short_line(&format!("{}/{}", around.to_string_lossy(), repository.name), 60),
            None => repository.name.clone(),
        }
    }
}

fn under_way(running: usize) -> String {
    match running {
        0 => "Nothing is running".to_owned(),
        1 => "1 run is running".to_owned(),
        many => format!("{many} runs are running"),
    }
}

fn mark() -> Markup {
    html! {
        svg viewBox="0 0 20 20" fill="none" stroke="currentColor" stroke-width="2.2" stroke-linecap="round" aria-hidden="true" {
            path d="M16.6 7A7 7 0 1 0 17 11" {}
            path d="M17 3v4.4h-4.4" {}
        }
    }
}

/// Nothing is there under this address.
pub(crate) fn missing(ui: &Ui, words: &str) -> Response {
    let overview = ui.catalog.overview();
    let frame = Frame::new(ui, &overview, None, "Not found");
    let main = html! {
        div.title { div { h1 { "Not found" } div.facts { span { (words) } } } }
        p { a.btn href="/" { "Go to the inbox" } }
    };
    page(StatusCode::NOT_FOUND, frame.draw(&main))
}
