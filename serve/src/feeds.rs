//! Server-sent events. One watcher per run serves all pages that show it, and ends when the last is closed: it looks at the
//! journal, draws what changed once, and every stream takes it from there.
//!
//! The id of an event is the byte after the journal line it came from, so a browser that comes back resumes exactly there.
//! Only whole lines are sent.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use archeflow_host::store::presence::{Presence, Watched};
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper::body::Frame;
use tokio::sync::{Semaphore, mpsc, watch};

use crate::pages;
use crate::run_model::RunModel;
use crate::server::Ui;
use crate::sprints;

/// How often a watcher looks.
const LOOK: Duration = Duration::from_millis(400);
/// The inbox reads the indexes of all repositories.
const LOOK_AROUND: Duration = Duration::from_secs(1);
/// So that a closed connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Lines that a watcher remembers for streams that come back; who was away longer loads the page again.
const REMEMBERED: usize = 500;
/// Streams at the same time, so that pages still get an answer.
const STREAMS: usize = 48;

pub(crate) struct Feeds {
    known: Mutex<HashMap<String, Weak<Feed>>>,
    places: Arc<Semaphore>,
}

impl Default for Feeds {
    fn default() -> Feeds {
        Feeds { known: Mutex::default(), places: Arc::new(Semaphore::new(STREAMS)) }
    }
}

/// What a watcher knows, for all its streams.
struct Feed {
    /// Counts changes.
    changed: watch::Sender<u64>,
    state: Mutex<FeedState>,
    /// While a page shows it, no message about it is sent.
    looks: OnceLock<Presence>,
}

#[derive(Default)]
struct FeedState {
    version: u64,
    /// The byte after the last line that was read.
    end: u64,
    /// The byte after each of the last lines, and its row in the journal.
    lines: VecDeque<(u64, Arc<str>)>,
    /// Lines up to this byte are remembered no more.
    forgotten: u64,
    /// The parts of the page, with the version of their last change.
    parts: (u64, Arc<str>),
    /// How often another journal has taken the place of this one.
    restarts: u64,
    /// What each agent printed last, by its start.
    heard: BTreeMap<u64, (u64, Arc<str>)>,
}

impl Feed {
    fn new() -> Arc<Feed> {
        Arc::new(Feed { changed: watch::Sender::new(0), state: Mutex::default(), looks: OnceLock::new() })
    }

    fn state(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Parts that are drawn anew at every look; only other ones are sent.
    fn show(&self, parts: String) {
        if *self.state().parts.1 != *parts {
            self.change(|state| state.parts = (state.version, parts.into()));
        }
    }

    fn change(&self, change: impl FnOnce(&mut FeedState)) {
        let mut state = self.state();
        state.version += 1;
        change(&mut state);
        let version = state.version;
        drop(state);
        self.changed.send_replace(version);
    }
}

/// Which page a stream is for.
pub(crate) enum Subject {
    Inbox,
    Run { key: String, id: String },
    Sprint { key: String, id: String },
}

impl Subject {
    pub(crate) fn parse(text: &str) -> Option<Subject> {
        if text == "inbox" {
            return Some(Subject::Inbox);
        }
        let (kind, rest) = text.split_once('/')?;
        let (key, id) = rest.split_once('/').map(|(key, id)| (key.to_owned(), id.to_owned()))?;
        match kind {
            "run" => Some(Subject::Run { key, id }),
            "sprint" => Some(Subject::Sprint { key, id }),
            _ => None,
        }
    }

    fn name(&self) -> String {
        match self {
            Subject::Inbox => "inbox".to_owned(),
            Subject::Run { key, id } => format!("run/{key}/{id}"),
            Subject::Sprint { key, id } => format!("sprint/{key}/{id}"),
        }
    }
}

/// A stream from this byte on.
pub(crate) async fn stream(ui: Arc<Ui>, subject: Subject, from: Option<u64>) -> Response {
    let Ok(place) = Arc::clone(&ui.feeds.places).try_acquire_owned() else {
        return pages::plain(StatusCode::SERVICE_UNAVAILABLE, "Too many pages are open.");
    };
    let Some(feed) = feed(&ui, &subject).await else {
        return pages::plain(StatusCode::NOT_FOUND, "There is no such run.");
    };
    let (send, receive) = mpsc::channel(4);
    let in_use = ui.in_use();
    tokio::spawn(async move {
        feed_stream(&feed, from, &send).await;
        drop((place, in_use));
    });
    let mut response = Response::new(Body::new(StreamBody(receive)));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

/// The watcher of this subject: the one there is, or a new one.
async fn feed(ui: &Arc<Ui>, subject: &Subject) -> Option<Arc<Feed>> {
    let name = subject.name();
    if let Some(known) = ui.feeds.known().get(&name).and_then(Weak::upgrade) {
        return Some(known);
    }
    let feed = Feed::new();
    let (reader, target, first) = (Arc::clone(ui), Arc::clone(&feed), subject.name());
    let watcher = tokio::task::spawn_blocking(move || {
        let subject = Subject::parse(&first)?;
        let mut watcher = Watcher::of(&reader, &subject)?;
        watcher.look(&reader, &target);
        let looks = watcher.watched(&reader).zip(reader.catalog.state());
        if let Some(looks) = looks.and_then(|(watched, state)| Presence::hold(state, &watched).ok()) {
            let _ = target.looks.set(looks);
        }
        Some(watcher)
    });
    let watcher = watcher.await.ok().flatten()?;
    let mut known = ui.feeds.known();
    known.retain(|_, feed| feed.strong_count() > 0);
    if let Some(other) = known.get(&name).and_then(Weak::upgrade) {
        return Some(other);
    }
    known.insert(name, Arc::downgrade(&feed));
    drop(known);
    tokio::spawn(watch_on(Arc::clone(ui), Arc::downgrade(&feed), watcher));
    Some(feed)
}

impl Feeds {
    fn known(&self) -> MutexGuard<'_, HashMap<String, Weak<Feed>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks until no stream is left.
async fn watch_on(ui: Arc<Ui>, feed: Weak<Feed>, mut watcher: Watcher) {
    let pause = watcher.pause();
    loop {
        tokio::time::sleep(pause).await;
        let Some(feed) = feed.upgrade() else { return };
        let ui = Arc::clone(&ui);
        let looked = tokio::task::spawn_blocking(move || {
            watcher.look(&ui, &feed);
            watcher
        });
        watcher = match looked.await {
            Ok(watcher) => watcher,
            Err(_) => return,
        };
    }
}

/// Reads what a subject has become, and draws it for all streams.
enum Watcher {
    Inbox,
    Sprint { key: String, id: String },
    Run { model: Box<RunModel>, sent: usize, drawn: bool },
}

impl Watcher {
    fn of(ui: &Ui, subject: &Subject) -> Option<Watcher> {
        match subject {
            Subject::Inbox => Some(Watcher::Inbox),
            Subject::Sprint { key, id } => {
                pages::sprints::parts(ui, key, id)?;
                Some(Watcher::Sprint { key: key.clone(), id: id.clone() })
            }
            Subject::Run { key, id } => {
                let model = Box::new(pages::run::model(ui, key, id)?);
                Some(Watcher::Run { model, sent: 0, drawn: false })
            }
        }
    }

    fn watched(&self, ui: &Ui) -> Option<Watched> {
        match self {
            Watcher::Inbox => Some(Watched::Inbox),
            Watcher::Sprint { key, id } => {
                let folder = sprints::by_key(ui, key)?;
                Some(Watched::sprint(&folder.place.folder(), id))
            }
            Watcher::Run { model, .. } => Some(Watched::run(&model.repository.root, &model.id)),
        }
    }

    fn pause(&self) -> Duration {
        match self {
            Watcher::Inbox | Watcher::Sprint { .. } => LOOK_AROUND,
            Watcher::Run { .. } => LOOK,
        }
    }

    fn look(&mut self, ui: &Ui, feed: &Feed) {
        match self {
            Watcher::Inbox => feed.show(pages::inbox::parts(&ui.catalog.overview())),
            Watcher::Sprint { key, id } => {
                if let Some(parts) = pages::sprints::parts(ui, key, id) {
                    feed.show(parts);
                }
            }
            Watcher::Run { model, sent, drawn } => {
                let restarts = model.restarts;
                let changed = model.refresh() || !*drawn;
                if model.restarts != restarts {
                    *sent = 0;
                    feed.change(FeedState::begin_again);
                }
                *drawn = true;
                for (seq, text) in model.listen() {
                    feed.change(|state| {
                        state.heard.insert(seq, (state.version, text.into()));
                    });
                }
                if changed {
                    let lines = new_lines(model, *sent);
                    *sent = model.entries.len();
                    let parts = pages::run::parts_of(ui, model);
                    feed.change(|state| state.grow(model, lines, parts));
                }
            }
        }
    }
}

/// The rows of lines that were not drawn yet; of a long journal only the last.
fn new_lines(model: &RunModel, sent: usize) -> Vec<(u64, Arc<str>)> {
    let from = sent.max(model.entries.len().saturating_sub(REMEMBERED));
    let lines = model.entries.iter().zip(&model.ends).skip(from);
    lines.map(|(entry, end)| (*end, pages::run::journal_row(entry).into())).collect()
}

impl FeedState {
    /// Another journal has taken the place of this one: every page has to be drawn anew.
    fn begin_again(&mut self) {
        self.lines.clear();
        self.heard.clear();
        (self.end, self.forgotten) = (0, 0);
        self.restarts += 1;
    }

    fn grow(&mut self, model: &RunModel, lines: Vec<(u64, Arc<str>)>, parts: String) {
        if self.lines.is_empty() {
            let before = model.entries.len().saturating_sub(REMEMBERED + 1);
            let skipped = model.entries.len() > REMEMBERED;
            self.forgotten = if skipped { model.ends.get(before).copied().unwrap_or(0) } else { 0 };
        }
        self.lines.extend(lines);
        while self.lines.len() > REMEMBERED {
            self.forgotten = self.lines.pop_front().map_or(self.forgotten, |(end, _)| end);
        }
        self.end = model.end();
        self.heard.retain(|seq, _| model.run().open.contains_key(seq));
        self.parts = (self.version, parts.into());
    }
}

async fn feed_stream(feed: &Arc<Feed>, from: Option<u64>, send: &mpsc::Sender<Bytes>) {
    let mut changes = feed.changed.subscribe();
    let mut at = from.unwrap_or_else(|| feed.state().end);
    let mut restarts = feed.state().restarts;
    // The page was just drawn: parts are sent when they have changed since.
    let mut seen = 0;
    loop {
        let text = {
            let state = feed.state();
            // No byte is before the beginning, so this makes the page load again.
            at = if state.restarts == restarts { at } else { u64::MAX };
            restarts = state.restarts;
            news(&state, &mut at, &mut seen)
        };
        if !text.is_empty() && send.send(Bytes::from(text)).await.is_err() {
            return;
        }
        let waiting = tokio::time::timeout(KEEP_ALIVE, changes.changed());
        match until_closed(waiting, send).await {
            Some(Ok(Ok(()))) => {}
            Some(Err(_)) => {
                if send.send(Bytes::from_static(b": still here\n\n")).await.is_err() {
                    return;
                }
            }
            Some(Ok(Err(_))) | None => return,
        }
    }
}

/// Nothing if the reader went away first.
async fn until_closed<T>(waiting: impl Future<Output = T>, send: &mpsc::Sender<Bytes>) -> Option<T> {
    let (mut waiting, mut closed) = (std::pin::pin!(waiting), std::pin::pin!(send.closed()));
    std::future::poll_fn(|context| {
        if closed.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        waiting.as_mut().poll(context).map(Some)
    })
    .await
}

/// What a stream has not sent yet.
fn news(state: &FeedState, at: &mut u64, seen: &mut u64) -> String {
    let mut out = String::new();
    if *at < state.forgotten || *at > state.end {
        // Away for too long, or another journal: the page has to be drawn anew.
        *at = state.end;
        event(&mut out, "reload", state.end, "");
    }
    for (end, row) in state.lines.iter().filter(|(end, _)| *end > *at) {
        event(&mut out, "line", *end, row);
    }
    *at = state.end;
    if state.parts.0 > *seen {
        event(&mut out, "parts", state.end, &state.parts.1);
    }
    for (seq, (_, text)) in state.heard.iter().filter(|(_, (version, _))| version > seen) {
        let data = serde_json::json!({ "agent": seq, "text": **text }).to_string();
        event(&mut out, "heard", state.end, &data);
    }
    *seen = state.version;
    out
}

/// One event. No line break of the data can begin another.
fn event(out: &mut String, name: &str, id: u64, data: &str) {
    out.push_str(&format!("id: {id}\nevent: {name}\n"));
    for line in data.split(['\n', '\r']) {
        out.push_str("data: ");
        out.push_str(line);
        out.push('\n');
    }
    out.push('\n');
}

/// The body of a stream: what its task sends.
struct StreamBody(mpsc::Receiver<Bytes>);

impl hyper::body::Body for StreamBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> FeedState {
        let lines = [(10, "a"), (20, "b"), (30, "c")].map(|(end, row)| (end, row.into()));
        FeedState { version: 3, end: 30, lines: lines.into(), parts: (2, "p".into()), ..FeedState::default() }
    }

    #[test]
    fn u_16_a_stream_resumes_at_its_byte() {
        for (from, lines) in [(0, vec![10, 20, 30]), (10, vec![20, 30]), (30, vec![]), (15, vec![20, 30])] {
            let (mut at, mut seen) = (from, 3);
            let text = news(&state(), &mut at, &mut seen);
            let ids: Vec<u64> =
                text.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect();
            assert_eq!((ids, at), (lines, 30), "{from}");
        }
        let mut forgotten = state();
        forgotten.forgotten = 5;
        for from in [0, 31] {
            let (mut at, mut seen) = (from, 3);
            assert!(news(&forgotten, &mut at, &mut seen).contains("event: reload"), "{from}");
        }
    }

    #[test]
    fn u_16_no_text_begins_an_event_of_its_own() {
        let mut out = String::new();
        event(&mut out, "line", 1, "a\n\nevent: reload\r\rdata: x");
        assert_eq!(out.matches("\n\n").count(), 1, "{out}");
        assert!(out.lines().all(|line| line.is_empty()
            || line.starts_with("id: ")
            || line == "event: line"
            || line.starts_with("data: ")));
    }
}
