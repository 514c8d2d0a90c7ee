//! Which address is which page. A page is drawn on a thread of its own from what the disk has now, and is readable without
//! script. Every text of others passes [`archeflow_core::text`] and is escaped by the markup.

mod act;
mod api;
mod decide;
pub(crate) mod inbox;
mod layout;
mod lists;
mod metrics;
pub(crate) mod run;
mod runs;
pub(crate) mod sprints;
mod words;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{RawQuery, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::Response;
use axum::routing::{get, post};
use maud::{DOCTYPE, Markup, html};

use crate::access::{IN, METRICS, POLICY, Refusal};
use crate::feeds::{self, Subject};
use crate::server::{Connection, Ui};

const STYLE: &str = include_str!("../assets/style.css");
const SCRIPT: &str = include_str!("../assets/ui.js");

pub(crate) fn router(ui: Arc<Ui>) -> Router {
    let mut router = Router::new();
    if !ui.read_only {
        router = router.route("/do", post(act::act));
    }
    if ui.access.metrics.is_some() {
        router = router.route(METRICS, get(metrics::page));
    }
    router
        .route(IN, get(enter))
        .route("/style.css", get(style))
        .route("/ui.js", get(script))
        .route("/events", get(events))
        .route("/", get(inbox::page))
        .route("/runs", get(runs::page))
        .route("/sprints", get(sprints::list))
        .route("/sprint/{folder}/{id}", get(sprints::one))
        .route("/loops", get(lists::loops))
        .route("/reviews", get(lists::reviews))
        .route("/memory", get(lists::memory))
        .route("/scores", get(lists::score))
        .route("/run/{repository}/{id}", get(run::first))
        .route("/run/{repository}/{id}/{part}", get(run::part))
        .route("/api/inbox", get(api::inbox))
        .route("/api/repositories", get(api::repositories))
        .route("/api/runs", get(api::runs))
        .route("/api/run/{repository}/{id}", get(api::run))
        .route("/api/sprint/{folder}/{id}", get(api::sprint))
        .route("/api/loops", get(api::loops))
        .route("/api/memory", get(api::memory))
        .route("/api/scores", get(api::scores))
        .fallback(nowhere)
        .method_not_allowed_fallback(no_method)
        .layer(middleware::from_fn_with_state(Arc::clone(&ui), guard))
        .with_state(ui)
}

/// Every request passes here first, and every answer last.
async fn guard(State(ui): State<Arc<Ui>>, request: Request, next: Next) -> Response {
    let in_use = ui.in_use();
    let (parts, body) = request.into_parts();
    let mut response = match ui.access.check(&parts) {
        Ok(()) if !has_place(&parts) => {
            plain(StatusCode::SERVICE_UNAVAILABLE, "Too many connections are open. Close some pages.")
        }
        Ok(()) => next.run(Request::from_parts(parts, body)).await,
        Err(refusal) => refused(refusal),
    };
    drop(in_use);
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "same-origin"),
        (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

/// Whoever passed the door has a place of their own from then on; entering needs none.
fn has_place(request: &Parts) -> bool {
    let connection = request.extensions.get::<Connection>();
    request.uri.path() == IN || connection.is_none_or(Connection::admit)
}

pub(crate) fn refused(refusal: Refusal) -> Response {
    plain(refusal.status(), refusal.words())
}

pub(crate) fn plain(status: StatusCode, words: &str) -> Response {
    with_type(status, "text/plain; charset=utf-8", format!("{words}\n"))
}

pub(crate) fn page(status: StatusCode, page: Markup) -> Response {
    with_type(status, "text/html; charset=utf-8", page.into_string())
}

fn with_type(status: StatusCode, kind: &'static str, text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// Draws where waiting for the disk holds up nobody else.
pub(crate) async fn drawn(ui: Arc<Ui>, draw: impl FnOnce(&Ui) -> Response + Send + 'static) -> Response {
    let drawn = tokio::task::spawn_blocking(move || draw(&ui)).await;
    drawn.unwrap_or_else(|_| {
        plain(StatusCode::INTERNAL_SERVER_ERROR, "The page could not be drawn. Nothing was changed.")
    })
}

/// The fields of an address or a form; the first of a name counts.
pub(crate) struct Fields(Vec<(String, String)>);

impl Fields {
    pub(crate) fn read(text: &[u8]) -> Fields {
        Fields(form_urlencoded::parse(text).into_owned().collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Exchanges the token for a cookie. A page of another site that held the link would not be sent the cookie with a
/// redirect, so the next address is asked for by a page of ours.
async fn enter(State(ui): State<Arc<Ui>>, RawQuery(query): RawQuery) -> Response {
    let fields = Fields::read(query.unwrap_or_default().as_bytes());
    if !fields.get("t").is_some_and(|token| ui.access.token.is(token)) {
        return refused(Refusal::NoToken);
    }
    let mut response = page(
        StatusCode::OK,
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="refresh" content="0; url=/";
                    title { "archeflow" }
                }
                body { p { a href="/" { "Go to your inbox" } } }
            }
        },
    );
    if let Ok(cookie) = HeaderValue::from_str(&ui.access.cookie()) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

async fn style() -> Response {
    with_type(StatusCode::OK, "text/css; charset=utf-8", STYLE.to_owned())
}

async fn script() -> Response {
    with_type(StatusCode::OK, "text/javascript; charset=utf-8", SCRIPT.to_owned())
}

/// A browser that comes back says where it was in `Last-Event-ID`; a page that was drawn, in `from`.
async fn events(State(ui): State<Arc<Ui>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    let fields = Fields::read(query.unwrap_or_default().as_bytes());
    let Some(subject) = fields.get("of").and_then(Subject::parse) else {
        return plain(StatusCode::BAD_REQUEST, "There are no events of that.");
    };
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).or(fields.get("from"));
    feeds::stream(ui, subject, last.and_then(|byte| byte.parse().ok())).await
}

async fn nowhere(State(ui): State<Arc<Ui>>) -> Response {
    drawn(ui, |ui| layout::missing(ui, "There is no such page.")).await
}

async fn no_method(method: Method) -> Response {
    plain(StatusCode::METHOD_NOT_ALLOWED, &format!("{} is not answered here.", short_method(&method)))
}

fn short_method(method: &Method) -> String {
    archeflow_core::text::short_line(method.as_str(), 20)
}
