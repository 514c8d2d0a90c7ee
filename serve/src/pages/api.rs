//! `GET /api/…`: the object that a command prints with `--json`, printed by that command. So there is one place that knows
//! how it looks, and a script that reads it here and one that starts the program read the same.

use std::path::Path;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path as Segments, RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;

use super::run::model;
use super::{Fields, drawn, with_type};
use crate::catalog::Overview;
use crate::server::Ui;
use crate::{sprints, starting};

pub(crate) async fn inbox(State(ui): State<Arc<Ui>>) -> Response {
    drawn(ui, |ui| printed_of_fleet(ui, &["status", "--json"], &ui.cwd)).await
}

pub(crate) async fn runs(State(ui): State<Arc<Ui>>) -> Response {
    drawn(ui, |ui| printed_of_fleet(ui, &["list", "--all", "--json"], &ui.cwd)).await
}

/// The repositories with the names that they have in addresses.
pub(crate) async fn repositories(State(ui): State<Arc<Ui>>) -> Response {
    drawn(ui, |ui| {
        let Overview { repositories, .. } = ui.catalog.overview();
        let known = repositories.iter().map(|known| {
            json!({
                "repository": known.key,
                "path": known.root.display().to_string(),
                "runs": known.runs.len(),
                "missing": known.missing,
            })
        });
        let list = json!({ "repositories": known.collect::<Vec<_>>() });
        with_type(StatusCode::OK, JSON, format!("{list}\n"))
    })
    .await
}

pub(crate) async fn run(
    State(ui): State<Arc<Ui>>,
    Segments((repository, id)): Segments<(String, String)>,
) -> Response {
    drawn(ui, move |ui| match model(ui, &repository, &id) {
        Some(run) => printed_of_fleet(ui, &["show", &run.id, "--json"], &run.repository.root),
        None => failed(StatusCode::NOT_FOUND, "there is no such run"),
    })
    .await
}

pub(crate) async fn sprint(
    State(ui): State<Arc<Ui>>,
    Segments((folder, id)): Segments<(String, String)>,
) -> Response {
    drawn(ui, move |ui| {
        let known = sprints::by_key(ui, &folder).filter(|folder| folder.sprints.contains(&id));
        match known {
            Some(_) if ui.fleet.is_some() => failed(StatusCode::NOT_FOUND, "not there for a fleet"),
            Some(folder) => printed(ui, &["sprint", "watch", "--json", "--", &id], folder.root()),
            None => failed(StatusCode::NOT_FOUND, "there is no such sprint"),
        }
    })
    .await
}

pub(crate) async fn loops(ui: State<Arc<Ui>>, query: RawQuery) -> Response {
    of_repository(ui, query, &["loop", "metrics", "--json"]).await
}

pub(crate) async fn memory(ui: State<Arc<Ui>>, query: RawQuery) -> Response {
    of_repository(ui, query, &["memory", "list", "--json"]).await
}

pub(crate) async fn scores(ui: State<Arc<Ui>>, query: RawQuery) -> Response {
    of_repository(ui, query, &["score", "--json"]).await
}

/// What a command prints in the repository that the address names.
async fn of_repository(
    State(ui): State<Arc<Ui>>,
    RawQuery(query): RawQuery,
    words: &'static [&'static str],
) -> Response {
    drawn(ui, move |ui| {
        let fields = Fields::read(query.unwrap_or_default().as_bytes());
        let Some(key) = fields.get("repository") else {
            return failed(StatusCode::BAD_REQUEST, "say which: ?repository=…, as in /api/repositories");
        };
        match ui.catalog.by_key(key).filter(|known| !known.missing) {
            Some(known) => printed(ui, words, &known.root),
            None => failed(StatusCode::NOT_FOUND, "there is no such repository; see /api/repositories"),
        }
    })
    .await
}

const JSON: &str = "application/json";

fn failed(status: StatusCode, words: &str) -> Response {
    with_type(status, JSON, format!("{}\n", json!({ "error": words })))
}

/// The same command about the fleet, if one is shown. Its journals are copied all the time, so the server is not asked.
fn printed_of_fleet(ui: &Ui, words: &[&str], folder: &Path) -> Response {
    match ui.fleet.as_ref().map(|fleet| fleet.file.display().to_string()) {
        Some(fleet) => printed(ui, &[words, &["--fleet", &fleet, "--offline"]].concat(), folder),
        None => printed(ui, words, folder),
    }
}

/// An object on standard output is the answer, whatever the exit code says about the run.
fn printed(ui: &Ui, words: &[&str], folder: &Path) -> Response {
    let Some(state) = ui.catalog.state() else {
        return failed(StatusCode::INTERNAL_SERVER_ERROR, "there is no state folder");
    };
    let arguments: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    match starting::printed(&ui.program, &arguments, folder, state) {
        Err(words) => failed(StatusCode::INTERNAL_SERVER_ERROR, &words),
        Ok(output) => {
            let mut response = Response::new(Body::from(output));
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
            response
        }
    }
}
