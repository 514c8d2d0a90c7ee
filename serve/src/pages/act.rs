//! `POST /do`: starts the command that a person chose on a page, as if it had been typed in the run's repository, and shows
//! what came of it. A decision about something that has moved is refused with the page as it is now.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use archeflow_core::text::short_text;
use archeflow_host::control::Requester;
use archeflow_host::detached::Detached;
use axum::body::{Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use maud::{Markup, html};

use super::layout::{Frame, Place, missing};
use super::run::{Part, model, whole};
use super::{Fields, decide, drawn, page, plain, refused};
use crate::access::Refusal;
use crate::offers::{self, Offer};
use crate::run_model::RunModel;
use crate::server::Ui;
use crate::sprints;
use crate::starting::{Came, Decision, FIRST_LINE, LOOK, decision_options};

/// Of a form.
const BYTES: usize = 64 * 1024;
const BODY_TIME: Duration = Duration::from_secs(15);
/// Of a person's text.
const TEXT: usize = 20_000;

pub(crate) async fn act(State(ui): State<Arc<Ui>>, request: Request) -> Response {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_form = kind.and_then(|kind| kind.split(';').next()) == Some("application/x-www-form-urlencoded");
    if !is_form {
        return plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "This is no form of a page.");
    }
    let length = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    if length.and_then(|length| length.parse::<usize>().ok()).is_some_and(|length| length > BYTES) {
        return plain(StatusCode::PAYLOAD_TOO_LARGE, "The form is longer than 64 KiB.");
    }
    let body = match tokio::time::timeout(BODY_TIME, to_bytes(request.into_body(), BYTES)).await {
        Ok(Ok(body)) => body,
        Ok(Err(_)) => {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "The form is longer than 64 KiB, or broke off.");
        }
        Err(_) => return plain(StatusCode::REQUEST_TIMEOUT, "The form did not arrive in time."),
    };
    drawn(ui, move |ui| decided(ui, &body)).await
}

fn decided(ui: &Ui, body: &Bytes) -> Response {
    let fields = Fields::read(body);
    if !fields.get("csrf").is_some_and(|said| ui.access.form.is(said)) {
        return refused(Refusal::FormToken);
    }
    if let Some(sprint) = fields.get("sprint") {
        return sprint_decided(ui, sprint, &fields);
    }
    if let Some(lesson) = fields.get("lesson") {
        return lesson_forgotten(ui, lesson, &fields);
    }
    let named = fields.get("run").and_then(|run| run.split_once('/'));
    let Some(run) = named.and_then(|(key, id)| model(ui, key, id)) else {
        return missing(ui, "There is no such run any more.");
    };
    let at = fields.get("at").and_then(|at| at.parse::<u64>().ok());
    let steers = fields.get("steer");
    let text = fields.get("text").unwrap_or_default().replace("\r\n", "\n");
    // A run that is stopped or paused is meant as it is, whatever it has done meanwhile.
    if steers.is_none() && at != Some(run.run().decision_line()) {
        return answer(ui, &run, StatusCode::CONFLICT, &moved(), &text);
    }
    let choice = fields.get("choice").unwrap_or_default();
    let offer = match (steers, fields.get("accept")) {
        (Some(title), _) => offers::steering(&run).into_iter().find(|offer| offer.title == *title),
        (None, Some(finding)) => offers::accepting(&run, finding),
        (None, None) => choice.parse::<usize>().ok().and_then(|n| offers::decisions(&run).into_iter().nth(n)),
    };
    let Some(offer) = offer else {
        let words =
            html! { b { "Nothing was done: there is no such choice any more." } " This is how it is now." };
        return answer(ui, &run, StatusCode::CONFLICT, &words, &text);
    };
    if let Some(why) = wrong_text(&offer, &text) {
        let words = html! { b { "Nothing was done." } " " (why) };
        return answer(ui, &run, StatusCode::UNPROCESSABLE_ENTITY, &words, &text);
    }
    if offer.asks_again && fields.get("sure") != Some("yes") {
        let overview = ui.catalog.overview();
        let frame = Frame::new(ui, &overview, Some(Place::Runs), "Confirm");
        return page(StatusCode::OK, frame.draw(&decide::confirmation(ui, &run, choice, &offer)));
    }
    if steers.is_some() {
        return start(ui, &run, &offer, text.trim(), true);
    }
    let Some(_turn) = ui.deciding.begin(&run.address()) else {
        let words = html! { b { "Nothing was done: another decision about this run came first." } " This is how it is now." };
        return answer(ui, &run, StatusCode::CONFLICT, &words, &text);
    };
    // One that came first may have ended since the run was read.
    match RunModel::read(&run.repository, &run.id, run.foreign) {
        Some(now) if now.run().decision_line() != run.run().decision_line() => {
            answer(ui, &now, StatusCode::CONFLICT, &moved(), &text)
        }
        Some(_) | None => start(ui, &run, &offer, text.trim(), false),
    }
}

/// What a person writes is passed on whole, or they are told why not.
fn wrong_text(offer: &Offer, text: &str) -> Option<&'static str> {
    let empty = text.trim().is_empty();
    if offer.needs_text && empty {
        Some("This choice needs a text.")
    } else if !offer.needs_text && !empty {
        Some("This choice passes no text on. Choose one that does, or empty the field.")
    } else if let Some(why) = offer.wrong_amount(text) {
        Some(why)
    } else if text.chars().count() > TEXT {
        Some("The text is longer than 20,000 characters.")
    } else if text.contains('\0') {
        Some("The text has a NUL character, which no command can be given.")
    } else {
        None
    }
}

fn moved() -> Markup {
    html! { b { "The run has moved since the page was drawn, so nothing was done." } " This is how it is now." }
}

/// The page of the run, with what is to be said about the decision.
fn answer(ui: &Ui, run: &RunModel, status: StatusCode, words: &Markup, text: &str) -> Response {
    let alert = html! {
        div.alert role="alert" {
            (words)
            @if !text.trim().is_empty() { p { "What you wrote:" } pre.text { (short_text(text, TEXT)) } }
        }
    };
    page(status, whole(ui, run, Part::Change, &Fields::read(b""), &alert))
}

fn start(ui: &Ui, run: &RunModel, offer: &Offer, text: &str, steers: bool) -> Response {
    let at = (!steers).then(|| run.run().decision_line());
    let arguments = offer.arguments(&decision_options(run, offer, Requester::Page, at), text);
    let Some(state) = ui.catalog.state() else { return missing(ui, "There is no state folder.") };
    let root = &run.repository.root;
    let started = match Detached::start(&ui.program, &arguments, root, state) {
        Ok(started) => started,
        Err(error) => {
            let words = html! { b { "The command could not be started: " } (error) };
            return answer(ui, run, StatusCode::INTERNAL_SERVER_ERROR, &words, text);
        }
    };
    match (Decision { run, offer, text, by: Requester::Page, steers }).outcome(&started) {
        Came::Begun => to(&run.address()),
        Came::Refused(code) => {
            let now = RunModel::read(&run.repository, &run.id, run.foreign);
            let words = html! {
                b { "Nothing was done: " code { (offer.command) } " ended" @if let Some(code) = code { " with " (code) } "." }
                pre.text { (short_text(&started.said(), 4_000)) }
            };
            answer(ui, now.as_ref().unwrap_or(run), StatusCode::CONFLICT, &words, text)
        }
    }
}

/// Adds a task to a queue, or does something to an item that is still as the page showed it.
fn sprint_decided(ui: &Ui, sprint: &str, fields: &Fields) -> Response {
    let named = sprint.split_once('/');
    let Some((folder, id)) = named.and_then(|(key, id)| Some((sprints::by_key(ui, key)?, id))) else {
        return missing(ui, "There is no such sprint any more.");
    };
    let text = fields.get("text").unwrap_or_default().trim();
    if ["text", "project", "item"]
        .iter()
        .any(|name| fields.get(name).is_some_and(|value| value.contains('\0')))
    {
        return plain(StatusCode::UNPROCESSABLE_ENTITY, "A field has a NUL character. Nothing was done.");
    }
    let refuse = |words: &Markup| {
        let alert = html! { div.alert role="alert" { (words) } };
        // A queue that no sprint has run yet has no board.
        if id.is_empty() {
            return super::sprints::all_queues(ui, StatusCode::CONFLICT, &alert);
        }
        super::sprints::board_page(ui, &folder, id, StatusCode::CONFLICT, &alert)
    };
    let mut arguments = vec!["sprint".to_owned()];
    match fields.get("verb").unwrap_or_default() {
        "add" => {
            let field = |name: &str| fields.get(name).unwrap_or_default().trim().to_owned();
            if text.is_empty() || text.chars().count() > TEXT {
                return refuse(
                    &html! { b { "Nothing was done." } " A task needs a text of at most " (TEXT) " characters." },
                );
            }
            let (priority, estimate) = (field("priority"), field("estimate"));
            arguments.extend([
                "add".to_owned(),
                format!("--priority={priority}"),
                format!("--estimate={estimate}"),
            ]);
            // Behind this nothing is taken for an option.
            arguments.extend(["--".to_owned(), field("project"), text.to_owned()]);
        }
        verb => {
            let item = fields.get("item").unwrap_or_default();
            let status = folder.queue().and_then(|queue| queue.get(item).map(|item| item.status));
            let as_shown = status.filter(|status| fields.get("status") == Some(status.name()));
            if !as_shown.is_some_and(|status| super::sprints::verbs(status).contains(&verb)) {
                return refuse(
                    &html! { b { "The item has changed since the page was drawn, so nothing was done." } },
                );
            }
            arguments.extend([verb.to_owned(), "--".to_owned(), item.to_owned()]);
        }
    }
    match to_its_end(ui, &arguments, folder.root()) {
        Ok(()) if id.is_empty() => to("/sprints"),
        Ok(()) => to(&format!("/sprint/{}/{id}", folder.key)),
        Err(words) => refuse(&words),
    }
}

/// Archives a lesson that is still there.
fn lesson_forgotten(ui: &Ui, lesson: &str, fields: &Fields) -> Response {
    let repository = fields.get("repository").and_then(|key| ui.catalog.by_key(key));
    let Some(repository) = repository.filter(|known| !known.missing) else {
        return missing(ui, "There is no such repository any more.");
    };
    if lesson.contains('\0') {
        return plain(StatusCode::UNPROCESSABLE_ENTITY, "The name has a NUL character. Nothing was done.");
    }
    let arguments = ["memory", "forget", "--", lesson].map(str::to_owned);
    match to_its_end(ui, &arguments, &repository.root) {
        Ok(()) => to("/memory"),
        Err(words) => {
            let alert = html! { div.alert role="alert" { (words) } };
            super::lists::lessons(ui, StatusCode::CONFLICT, &alert)
        }
    }
}

/// Runs a short command. One that takes longer is under way, and its page shows what came of it.
fn to_its_end(ui: &Ui, arguments: &[String], folder: &Path) -> Result<(), Markup> {
    let Some(state) = ui.catalog.state() else { return Err(html! { b { "There is no state folder." } }) };
    let started = Detached::start(&ui.program, arguments, folder, state)
        .map_err(|error| html! { b { "The command could not be started: " } (error) })?;
    let begun = Instant::now();
    while begun.elapsed() < FIRST_LINE {
        match started.ended() {
            Some(Some(0)) => return Ok(()),
            Some(_) => {
                let said = short_text(&started.said(), 4_000);
                return Err(html! { b { "Nothing was done." } pre.text { (said) } });
            }
            None => std::thread::sleep(LOOK),
        }
    }
    Ok(())
}

fn to(address: &str) -> Response {
    let mut response = plain(StatusCode::SEE_OTHER, "Done.");
    if let Ok(address) = HeaderValue::from_str(address) {
        response.headers_mut().insert(header::LOCATION, address);
    }
    response
}
