//! A language server for editors: the findings of the newest review as diagnostics, which follow their lines, with actions
//! to accept a finding and to show its evidence.
//!
//! It reads journals and starts commands, as pages do: it has no way of its own to decide. One thread reads messages; this
//! one handles them and looks at the files in between. Described for users in `docs/editors.md`.

mod actions;
mod address;
mod client;
mod diagnostics;
mod document;
mod line_map;
mod repository;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use archeflow_core::text::short_line;
use archeflow_host::open::ProcessEnv;
use archeflow_host::platform::table::Process;
use lsp_server::{ErrorCode, Message, Notification, Request, RequestId, Response};
use lsp_types::{
    Diagnostic, DidChangeTextDocumentParams, DidCloseTextDocumentParams, DidOpenTextDocumentParams,
    MessageType, Uri,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use actions::{AcceptCommand, Accepting, WantedActions};
use address::path_of;
use client::EditorClient;
use document::OpenDocument;
use repository::{FileStamp, ReviewedRepository};
use wire::{Heard, Wire};

/// How often the files are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often a command that was started is looked at.
const SOON: Duration = Duration::from_millis(100);
/// Repositories that are looked at; an editor with more of them shows the first.
const MOST_REPOSITORIES: usize = 32;
const MOST_SAID: usize = 500;

/// Serves one client until it says `exit` or is gone. Gives the exit code.
pub(crate) fn serve(env: ProcessEnv, out: impl Write) -> Result<u8, String> {
    let heard = wire::listen().map_err(|error| format!("no thread could be started: {error}"))?;
    let mut server = LanguageServer::new(env, out);
    let mut look_at = Instant::now() + LOOK;
    loop {
        // What was typed in the meantime is taken in before anything is drawn.
        let next = match heard.try_recv() {
            Ok(next) => Ok(next),
            Err(_) => {
                if server.flush().is_err() {
                    return Ok(server.code());
                }
                let wait = look_at.saturating_duration_since(Instant::now());
                heard.recv_timeout(if server.is_waiting() { wait.min(SOON) } else { wait })
            }
        };
        let kept = match next {
            Ok(Heard::Lost(why)) => return Err(format!("the editor's messages can't be read: {why}")),
            Ok(heard) => server.hear(heard),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => return Ok(server.code()),
        };
        // A client that reads no more is gone.
        if kept.is_err() || server.ended {
            return Ok(server.code());
        }
        if server.collect().is_err() {
            return Ok(server.code());
        }
        if Instant::now() >= look_at {
            look_at = Instant::now() + LOOK;
            if server.is_orphan() {
                return Ok(server.code());
            }
            server.look();
        }
    }
}

/// How far the conversation has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begun,
    Ready,
    ShutDown,
}

pub(super) struct LanguageServer<W> {
    env: ProcessEnv,
    client: EditorClient,
    wire: Wire<W>,
    stage: Stage,
    ended: bool,
    /// By the path that the file system has.
    documents: BTreeMap<PathBuf, OpenDocument>,
    repositories: Vec<ReviewedRepository>,
    /// Folders around which there is no repository.
    elsewhere: BTreeSet<PathBuf>,
    /// What the client shows, by file.
    published: BTreeMap<PathBuf, (Uri, Vec<Diagnostic>)>,
    /// Files whose diagnostics may be others now.
    stale: BTreeSet<PathBuf>,
    /// Files that are not open, as they were when they were read.
    stamps: BTreeMap<PathBuf, Option<FileStamp>>,
    /// Questions to the client that are not answered yet, by their number.
    asked: BTreeMap<RequestId, Accepting>,
    running: Vec<AcceptCommand>,
    last_request: i32,
}

impl<W: Write> LanguageServer<W> {
    fn new(env: ProcessEnv, out: W) -> LanguageServer<W> {
        LanguageServer {
            env,
            client: EditorClient::default(),
            wire: Wire(out),
            stage: Stage::Begun,
            ended: false,
            documents: BTreeMap::new(),
            repositories: Vec::new(),
            elsewhere: BTreeSet::new(),
            published: BTreeMap::new(),
            stale: BTreeSet::new(),
            stamps: BTreeMap::new(),
            asked: BTreeMap::new(),
            running: Vec::new(),
            last_request: 0,
        }
    }

    /// An end without `shutdown` is none that the client meant.
    fn code(&self) -> u8 {
        u8::from(self.stage != Stage::ShutDown)
    }

    /// A command was started and has not ended.
    fn is_waiting(&self) -> bool {
        !self.running.is_empty()
    }

    fn is_orphan(&self) -> bool {
        self.client.parent.is_some_and(|parent| Process::read(parent).is_none_or(|process| process.dead))
    }

    fn hear(&mut self, heard: Heard) -> io::Result<()> {
        match heard {
            Heard::Message(Message::Request(request)) => self.answer(request),
            Heard::Message(Message::Notification(note)) => self.note(note),
            Heard::Message(Message::Response(response)) => self.answered(response),
            Heard::Unreadable { id: Some(id), why } => self.refuse(id, ErrorCode::InvalidRequest, &why),
            Heard::Unreadable { id: None, why } => self.log(&format!("a message can't be read: {why}")),
            Heard::Lost(_) => Ok(()),
        }
    }

    fn answer(&mut self, request: Request) -> io::Result<()> {
        let id = request.id;
        match (self.stage, request.method.as_str()) {
            (Stage::Begun, "initialize") => {
                self.stage = Stage::Ready;
                self.client = EditorClient::read(&request.params);
                // A number that means nothing here comes from outside of a container.
                if self.is_orphan() {
                    self.client.parent = None;
                }
                let ready = self.ready();
                self.wire.send(Response { id, response_result: Ok(ready) })
            }
            (Stage::Begun, _) => self.refuse(id, ErrorCode::ServerNotInitialized, "`initialize` comes first"),
            (Stage::ShutDown, _) => {
                self.refuse(id, ErrorCode::InvalidRequest, "after `shutdown` comes `exit`")
            }
            (Stage::Ready, "initialize") => self.refuse(id, ErrorCode::InvalidRequest, "it was initialized"),
            (Stage::Ready, "shutdown") => {
                self.stage = Stage::ShutDown;
                self.wire.send(Response { id, response_result: Ok(Value::Null) })
            }
            (Stage::Ready, "textDocument/codeAction") => {
                self.with(id, request.params, |server, wanted: WantedActions| server.offer(&wanted))
            }
            (Stage::Ready, "workspace/executeCommand") => self.with(id, request.params, Self::execute),
            (Stage::Ready, other) => {
                let why = format!("{} is not offered", short_line(other, 80));
                self.refuse(id, ErrorCode::MethodNotFound, &why)
            }
        }
    }

    /// Answers a request with what the function gives.
    fn with<P: DeserializeOwned>(
        &mut self,
        id: RequestId,
        params: Value,
        act: impl FnOnce(&mut Self, P) -> io::Result<Result<Value, String>>,
    ) -> io::Result<()> {
        match serde_json::from_value(params) {
            Err(error) => self.refuse(id, ErrorCode::InvalidParams, &error.to_string()),
            Ok(params) => match act(self, params)? {
                Ok(result) => self.wire.send(Response { id, response_result: Ok(result) }),
                Err(why) => self.refuse(id, ErrorCode::RequestFailed, &why),
            },
        }
    }

    fn ready(&self) -> Value {
        json!({
            "capabilities": {
                "positionEncoding": self.client.unit.name(),
                "textDocumentSync": { "openClose": true, "change": 2 },
                "codeActionProvider": { "codeActionKinds": ["quickfix"] },
                "executeCommandProvider": { "commands": [actions::ACCEPT, actions::EVIDENCE] },
                "workspace": { "workspaceFolders": { "supported": true, "changeNotifications": true } },
            },
            "serverInfo": { "name": diagnostics::SOURCE, "version": self.env.version },
        })
    }

    fn note(&mut self, note: Notification) -> io::Result<()> {
        let method = note.method.as_str();
        if method == "exit" {
            self.ended = true;
            return Ok(());
        }
        if self.stage != Stage::Ready {
            return Ok(());
        }
        let unread = match method {
            "initialized" => {
                for folder in std::mem::take(&mut self.client.folders) {
                    self.watch(&folder);
                }
                None
            }
            "workspace/didChangeWorkspaceFolders" => {
                let added = note.params["event"]["added"].as_array();
                let added = added.into_iter().flatten().filter_map(|folder| path_of(folder["uri"].as_str()?));
                for folder in added.collect::<Vec<_>>() {
                    self.watch(&folder);
                }
                None
            }
            "textDocument/didOpen" => read(note.params).map(|params| self.open(params)).err(),
            "textDocument/didChange" => read(note.params).map(|params| self.change(params)).err(),
            "textDocument/didClose" => read(note.params).map(|params| self.close(&params)).err(),
            _ => None,
        };
        unread
            .map_or(Ok(()), |why| self.log(&format!("{} can't be read: {why}", short_line(&note.method, 80))))
    }

    fn open(&mut self, params: DidOpenTextDocumentParams) {
        let document = params.text_document;
        let Some(path) = path_of(document.uri.as_str()) else { return };
        if let Some(folder) = path.parent() {
            // It may have become a repository since.
            self.elsewhere.remove(&real(folder));
            self.watch(folder);
        }
        let path = real(&path);
        self.stale.insert(path.clone());
        let open = OpenDocument { uri: document.uri, version: document.version, text: document.text };
        self.documents.insert(path, open);
    }

    fn change(&mut self, params: DidChangeTextDocumentParams) {
        let Some(path) = path_of(params.text_document.uri.as_str()).map(|path| real(&path)) else { return };
        let Some(open) = self.documents.get_mut(&path) else { return };
        open.version = params.text_document.version;
        open.change(params.content_changes, self.client.unit);
        self.stale.insert(path);
    }

    fn close(&mut self, params: &DidCloseTextDocumentParams) {
        let Some(path) = path_of(params.text_document.uri.as_str()).map(|path| real(&path)) else { return };
        self.documents.remove(&path);
        self.stale.insert(path);
    }

    /// Looks at the repository around a folder from now on.
    fn watch(&mut self, folder: &Path) {
        let place = real(folder);
        let known = self.repositories.iter().any(|known| place.starts_with(&known.root));
        let nested = place.join(".git").exists() && self.repositories.iter().all(|known| known.root != place);
        if (known && !nested)
            || self.elsewhere.contains(&place)
            || self.repositories.len() >= MOST_REPOSITORIES
        {
            return;
        }
        let found = ReviewedRepository::around(folder, &self.env);
        match found.filter(|found| self.repositories.iter().all(|known| known.root != found.root)) {
            Some(mut found) => {
                found.look();
                self.stale.extend(found.files());
                self.repositories.push(found);
            }
            None => drop(self.elsewhere.insert(place)),
        }
    }

    /// Whether a review, a baseline or a file that has findings is another than before.
    fn look(&mut self) {
        for repository in &mut self.repositories {
            let before = repository.files();
            if repository.look() {
                self.stale.extend(before);
                self.stale.extend(repository.files());
            }
        }
        let changed = self
            .stamps
            .iter()
            .filter(|(path, stamp)| !self.documents.contains_key(*path) && FileStamp::of(path) != **stamp);
        self.stale.extend(changed.map(|(path, _)| path.clone()));
    }

    /// Sends the diagnostics of files that may have others.
    fn flush(&mut self) -> io::Result<()> {
        for path in std::mem::take(&mut self.stale) {
            self.publish(&path)?;
        }
        Ok(())
    }

    fn publish(&mut self, path: &Path) -> io::Result<()> {
        let stamp = FileStamp::of(path);
        let (uri, now) = self.drawn(path);
        if now.is_empty() && !self.repositories.iter().any(|known| known.files().contains(path)) {
            self.stamps.remove(path);
        } else {
            self.stamps.insert(path.to_owned(), stamp);
        }
        let before = self.published.remove(path);
        let Some(uri) = uri.or_else(|| before.as_ref().map(|(uri, _)| uri.clone())) else { return Ok(()) };
        let same = match &before {
            Some((shown_at, shown)) => *shown == now && *shown_at == uri,
            None => now.is_empty(),
        };
        if let Some((old, _)) = before.filter(|(old, _)| *old != uri) {
            self.send_diagnostics(&old, &[], None)?;
        }
        if !same {
            let version = self.documents.get(path).map(|open| open.version);
            self.send_diagnostics(&uri, &now, version)?;
        }
        if !now.is_empty() {
            self.published.insert(path.to_owned(), (uri, now));
        }
        Ok(())
    }

    fn drawn(&self, path: &Path) -> (Option<Uri>, Vec<Diagnostic>) {
        let Some((repository, file)) = self.home(path) else { return (None, Vec::new()) };
        (self.uri(repository, file), self.diagnose(repository, file))
    }

    /// The repository a file is in, the innermost one, and its path there.
    fn home<'a>(&'a self, path: &'a Path) -> Option<(&'a ReviewedRepository, &'a str)> {
        let around = self.repositories.iter().filter(|known| path.starts_with(&known.root));
        let home = around.max_by_key(|known| known.root.as_os_str().len())?;
        Some((home, home.relative(path)?))
    }

    fn send_diagnostics(
        &mut self,
        uri: &Uri,
        diagnostics: &[Diagnostic],
        version: Option<i32>,
    ) -> io::Result<()> {
        let mut params = json!({ "uri": uri, "diagnostics": diagnostics });
        if let Some(version) = version {
            params["version"] = version.into();
        }
        self.tell("textDocument/publishDiagnostics", params)
    }

    /// A message that the client shows.
    fn show(&mut self, typ: MessageType, message: &str) -> io::Result<()> {
        self.tell("window/showMessage", json!({ "type": typ, "message": message }))
    }

    /// A message for the client's log.
    fn log(&mut self, message: &str) -> io::Result<()> {
        let message = short_line(message, MOST_SAID);
        self.tell("window/logMessage", json!({ "type": MessageType::WARNING, "message": message }))
    }

    fn tell(&mut self, method: &str, params: Value) -> io::Result<()> {
        self.wire.send(Notification { method: method.to_owned(), params })
    }

    /// Asks the client; its answer comes with this number.
    fn ask(&mut self, method: &str, params: Value) -> io::Result<RequestId> {
        self.last_request = self.last_request.wrapping_add(1);
        let id = RequestId::from(self.last_request);
        self.wire.send(Request { id: id.clone(), method: method.to_owned(), params })?;
        Ok(id)
    }

    fn refuse(&mut self, id: RequestId, code: ErrorCode, why: &str) -> io::Result<()> {
        self.wire.send(Response::new_err(id, code as i32, short_line(why, MOST_SAID)))
    }
}

fn read<P: DeserializeOwned>(params: Value) -> Result<P, String> {
    serde_json::from_value(params).map_err(|error| error.to_string())
}

/// The path that the file system has; a file that is not there yet is below a folder that is.
fn real(path: &Path) -> PathBuf {
    let whole = std::fs::canonicalize(path).ok();
    let beneath = || Some(std::fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?));
    whole.or_else(beneath).unwrap_or_else(|| path.to_owned())
}
