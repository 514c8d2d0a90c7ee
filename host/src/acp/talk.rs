//! One conversation with an agent, from the greeting to the end of its turn: a state machine that is fed lines and
//! returns what to do. It keeps no time and knows no pipe.
//!
//! The turn's answer is the last message. Agents send messages in pieces; a piece belongs to another message when it
//! carries another name, or when a tool was used since.

use std::collections::BTreeMap;
use std::path::PathBuf;

use archeflow_core::event::{Failure, Tokens};
use serde_json::{Value, json};

use super::permission::{AcpMode, AcpToolCall, Permission, PermissionAnswer};
use super::signs;
use super::transcript::TranscriptFolder;
use crate::client_output::own::OwnRecord;
use crate::client_output::{ClientFault, first_line, text};

/// The version of the protocol that is spoken here.
const VERSION: u64 = 1;

/// The longest answer that is passed on. It has to fit into one line whatever it is made of.
const LONGEST: usize = 2_000_000;

/// The longest title that is kept of a tool's use.
const TITLE: usize = 2_000;

/// How often an agent that ended its turn over a refusal is asked to continue.
const TURNS_MORE: u32 = 3;

/// The protocol's error code for a method that is not implemented.
const NO_SUCH_METHOD: i64 = -32_601;

/// What the agent is started for.
#[derive(Debug, Clone)]
pub struct AcpTask {
    pub permission: Permission,
    /// The working copy.
    pub tree: PathBuf,
    /// The session to resume.
    pub resumes: Option<String>,
    pub brief: String,
    /// Where clients keep transcripts of sessions.
    pub transcripts: Vec<TranscriptFolder>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum AcpAction {
    /// To the agent.
    Say(Value),
    /// To the process that started us.
    Tell(OwnRecord),
    /// The conversation is over.
    End,
}

#[derive(Debug)]
pub struct Talk {
    task: AcpTask,
    waits: Wait,
    /// The number of the last request. There is only ever one without an answer.
    asked: u64,
    session: String,
    resumable: bool,
    model: String,
    version: String,
    calls: BTreeMap<String, TrackedCall>,
    message: Message,
    /// How many messages there were.
    messages: usize,
    worked: bool,
    /// What it was refused last, as long as nothing has followed.
    stuck: Option<String>,
    /// How many turns were begun after a refusal.
    turns_more: u32,
    /// What earlier turns used.
    used: Tokens,
    /// The agent has reported that it failed.
    broken: bool,
    cancelled: bool,
    out: Vec<AcpAction>,
}

/// The request that is not answered yet.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wait {
    Greeting,
    Session,
    Mode,
    Turn,
    Nothing,
}

#[derive(Debug, Default)]
struct TrackedCall {
    call: AcpToolCall,
    told: bool,
}

#[derive(Debug, Default)]
struct Message {
    id: String,
    text: String,
    /// A tool was used since: what comes next is another message.
    closed: bool,
    too_long: bool,
}

impl Talk {
    /// No files and no terminals are offered: every agent works on the disk itself, and some get lost otherwise.
    pub fn begin(task: AcpTask) -> (Talk, Vec<AcpAction>) {
        let mut talk = Talk {
            task,
            waits: Wait::Nothing,
            asked: 0,
            session: String::new(),
            resumable: false,
            model: String::new(),
            version: String::new(),
            calls: BTreeMap::new(),
            message: Message::default(),
            messages: 0,
            worked: false,
            stuck: None,
            turns_more: 0,
            used: Tokens::default(),
            broken: false,
            cancelled: false,
            out: Vec::new(),
        };
        let offers = json!({"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false});
        let who = json!({"name": "archeflow", "version": env!("CARGO_PKG_VERSION")});
        talk.ask(
            Wait::Greeting,
            "initialize",
            &json!({"protocolVersion": VERSION, "clientCapabilities": offers, "clientInfo": who}),
        );
        let out = std::mem::take(&mut talk.out);
        (talk, out)
    }

    /// Takes in one line. What is no message changes nothing: some agents greet people on the same stream.
    pub fn hear(&mut self, line: &str) -> Vec<AcpAction> {
        if let Ok(message) = serde_json::from_str::<Value>(line.trim()) {
            match (message.get("method").and_then(Value::as_str), message.get("id")) {
                (Some(method), Some(id)) => self.serve(method, id, message.get("params")),
                (Some("session/update"), None) => self.update(message.get("params")),
                (Some(_), None) | (None, None) => {}
                (None, Some(id)) => self.answered(id, &message),
            }
        }
        std::mem::take(&mut self.out)
    }

    /// The session, once it is known.
    pub(super) fn session(&self) -> Option<&str> {
        Some(self.session.as_str()).filter(|session| !session.is_empty())
    }

    pub(super) fn version(&self) -> &str {
        &self.version
    }

    /// Calls the turn off. Without one there is nothing to wait for.
    pub fn cancel(&mut self) -> Vec<AcpAction> {
        if self.cancelled || self.waits != Wait::Turn {
            return vec![AcpAction::End];
        }
        self.cancelled = true;
        let session = &self.session;
        vec![AcpAction::Say(json!({
            "jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session},
        }))]
    }

    fn ask(&mut self, waits: Wait, method: &str, params: &Value) {
        self.asked += 1;
        self.waits = waits;
        let id = self.asked;
        self.out
            .push(AcpAction::Say(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})));
    }

    fn emit(&mut self, line: OwnRecord) {
        self.out.push(AcpAction::Tell(line));
    }

    fn answered(&mut self, id: &Value, message: &Value) {
        if id.as_u64() != Some(self.asked) {
            return;
        }
        let waits = std::mem::replace(&mut self.waits, Wait::Nothing);
        let result = message.get("result").unwrap_or(&Value::Null);
        match (waits, message.get("error").filter(|error| !error.is_null())) {
            (Wait::Nothing, _) => {}
            (Wait::Mode, error) => self.moded(error),
            (Wait::Greeting | Wait::Session | Wait::Turn, Some(error)) => self.give_up(signs::fault(error)),
            (Wait::Greeting, None) => self.greeted(result),
            (Wait::Session, None) => self.opened(result),
            (Wait::Turn, None) => self.closed(result),
        }
    }

    fn greeted(&mut self, result: &Value) {
        let spoken = result.get("protocolVersion").and_then(Value::as_u64);
        if spoken != Some(VERSION) {
            let spoken = spoken.map_or_else(|| "none".to_owned(), |version| version.to_string());
            let said = format!("the agent uses version {spoken} of the protocol, not {VERSION}");
            return self.give_up(ClientFault::new(Failure::Exit, said));
        }
        let info = result.get("agentInfo").unwrap_or(&Value::Null);
        let name = text(info, "name").rsplit('/').next().unwrap_or_default();
        format!("{name} {}", text(info, "version")).trim().clone_into(&mut self.version);
        let loads = result.pointer("/agentCapabilities/loadSession").and_then(Value::as_bool);
        self.resumable = loads.unwrap_or(false);
        let tree = self.task.tree.display().to_string();
        match self.task.resumes.clone() {
            Some(session) => {
                let params = json!({"sessionId": session, "cwd": tree, "mcpServers": []});
                self.session = session;
                self.ask(Wait::Session, "session/load", &params);
            }
            None => self.ask(Wait::Session, "session/new", &json!({"cwd": tree, "mcpServers": []})),
        }
    }

    fn opened(&mut self, result: &Value) {
        if !text(result, "sessionId").is_empty() {
            text(result, "sessionId").clone_into(&mut self.session);
        }
        if self.resumable {
            self.emit(OwnRecord::Session { id: self.session.clone() });
        }
        let model = result.pointer("/models/currentModelId").or_else(|| current(result, "model"));
        self.introduce(model.and_then(Value::as_str).unwrap_or_default().to_owned());
        match self.mode(result) {
            Some((method, params)) => self.ask(Wait::Mode, method, &params),
            None => self.prompt(),
        }
    }

    /// Agents list modes in two ways: as modes, or as one of many settings.
    fn mode(&self, result: &Value) -> Option<(&'static str, Value)> {
        let (permission, session) = (&self.task.permission, &self.session);
        if let Some(modes) = result.get("modes").filter(|modes| modes.is_object()) {
            let offered = AcpMode::list(modes.get("availableModes"));
            let mode = permission.mode(text(modes, "currentModeId"), &offered)?;
            return Some(("session/set_mode", json!({"sessionId": session, "modeId": mode})));
        }
        let setting = setting(result, "mode")?;
        let mode = permission.mode(text(setting, "currentValue"), &AcpMode::list(setting.get("options")))?;
        let params = json!({"sessionId": session, "configId": text(setting, "id"), "value": mode});
        Some(("session/set_config_option", params))
    }

    /// An agent that will not change its mode still has to ask, and its copy is still write-protected.
    fn moded(&mut self, error: Option<&Value>) {
        if let Some(error) = error {
            let text = format!("could not be put into another mode: {}", signs::fault(error).said);
            self.emit(OwnRecord::Note { text });
        }
        self.prompt();
    }

    fn prompt(&mut self) {
        let brief = std::mem::take(&mut self.task.brief);
        self.turn(&brief);
    }

    fn turn(&mut self, text: &str) {
        let prompt = json!([{"type": "text", "text": text}]);
        let params = json!({"sessionId": self.session, "prompt": prompt});
        self.ask(Wait::Turn, "session/prompt", &params);
    }

    /// Some end their turn when a tool is refused: the text before that is no answer. A reader has lost nothing by
    /// it and is asked to continue.
    fn closed(&mut self, result: &Value) {
        self.finish_message();
        if let Some(model) = signs::model(result) {
            self.introduce(model);
        }
        if let Some(tokens) = signs::used(result) {
            let tokens = plus(self.used, tokens);
            self.used = tokens;
            self.emit(OwnRecord::Used { tokens, cost_usd: None });
        }
        if self.cancelled {
            self.out.push(AcpAction::End);
            return;
        }
        let answer = std::mem::take(&mut self.message.text);
        if self.stuck.is_some() && !self.task.permission.writes && self.turns_more < TURNS_MORE {
            self.turns_more += 1;
            self.stuck = None;
            return self.turn(
                "That was refused: you may read and search, and nothing else. Continue without it, and give your \
                 whole answer in the format that was asked for.",
            );
        }
        if let Some(tool) = &self.stuck {
            let said = format!("it stopped when it was refused {tool}");
            return self.give_up(ClientFault::new(Failure::PermissionDenied, said));
        }
        if let Some(fault) = signs::unanswered(result, &answer, self.broken) {
            return self.give_up(fault);
        }
        if self.message.too_long {
            let said = format!("its answer has more than {LONGEST} bytes");
            return self.give_up(ClientFault::new(Failure::Garbled, said));
        }
        self.work();
        self.emit(OwnRecord::Answer { text: answer });
        self.out.push(AcpAction::End);
    }

    fn give_up(&mut self, fault: ClientFault) {
        let ClientFault { kind, said, reopens } = fault;
        self.emit(OwnRecord::Fault { kind, said, reopens });
        self.out.push(AcpAction::End);
    }

    /// Emits the model; again when more is known.
    fn introduce(&mut self, model: String) {
        if model != self.model || (model.is_empty() && !self.version.is_empty()) {
            self.model.clone_from(&model);
            self.emit(OwnRecord::Player { model, version: self.version.clone() });
        }
    }

    /// The agent's own requests. Whatever is not known is refused, not left waiting.
    fn serve(&mut self, method: &str, id: &Value, params: Option<&Value>) {
        let answer = match (method, params) {
            ("session/request_permission", Some(params)) => {
                let outcome = self.permit(params);
                json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})
            }
            _ => {
                let message = format!("{method} is not offered");
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": NO_SUCH_METHOD, "message": message}})
            }
        };
        self.out.push(AcpAction::Say(answer));
    }

    fn permit(&mut self, params: &Value) -> Value {
        let about = params.get("toolCall").unwrap_or(&Value::Null);
        self.learn(about);
        let call = self.calls.get(text(about, "toolCallId")).map(|known| known.call.clone());
        let options = params.get("options").unwrap_or(&Value::Null);
        let chosen = match self.task.permission.judge(&call.unwrap_or_default(), options) {
            _ if self.cancelled => None,
            PermissionAnswer::Granted(option) => Some(option),
            PermissionAnswer::Refused { option, tool } => {
                self.stuck = Some(tool.clone());
                self.emit(OwnRecord::Denied { tool });
                option
            }
        };
        chosen.map_or_else(
            || json!({"outcome": "cancelled"}),
            |option| json!({"outcome": "selected", "optionId": option}),
        )
    }

    /// What it does in its turn. Before the turn, agents repeat the messages of a resumed session.
    fn update(&mut self, params: Option<&Value>) {
        let Some(update) = params.and_then(|params| params.get("update")) else { return };
        let session = params.map(|params| text(params, "sessionId")).unwrap_or_default();
        if self.waits != Wait::Turn || session != self.session {
            return;
        }
        match text(update, "sessionUpdate") {
            "agent_message_chunk" => self.piece(update),
            "tool_call" | "tool_call_update" => {
                self.learn(update);
                self.watch(update);
            }
            "usage_update" if update.get("used").and_then(Value::as_u64).is_some_and(|used| used > 0) => {
                self.work();
            }
            "session_info_update" => self.broken = signs::broken(update).unwrap_or(self.broken),
            _ => {}
        }
    }

    fn piece(&mut self, update: &Value) {
        let content = update.get("content").unwrap_or(&Value::Null);
        let (id, piece) = (text(update, "messageId"), text(content, "text"));
        let another = !id.is_empty() && !self.message.id.is_empty() && id != self.message.id;
        if piece.is_empty() {
            return;
        }
        self.stuck = None;
        if self.message.closed || another {
            self.finish_message();
            self.message = Message::default();
        }
        if self.message.text.is_empty() {
            self.messages += 1;
        }
        // A single message before anything is done may be an error in prose.
        if self.messages > 1 {
            self.work();
        }
        id.clone_into(&mut self.message.id);
        if self.message.text.len() + piece.len() > LONGEST {
            self.message.too_long = true;
        } else {
            self.message.text.push_str(piece);
        }
    }

    fn finish_message(&mut self) {
        if std::mem::replace(&mut self.message.closed, true) {
            return;
        }
        if let Some(text) = first_line(&self.message.text) {
            self.emit(OwnRecord::Note { text });
        }
    }

    /// A new tool call ends the message before it.
    fn learn(&mut self, about: &Value) {
        let id = text(about, "toolCallId");
        if !self.calls.contains_key(id) {
            self.finish_message();
            self.stuck = None;
            self.work();
        }
        let known = self.calls.entry(id.to_owned()).or_default();
        known.call.learn(about);
        if let Some((end, _)) = known.call.title.char_indices().nth(TITLE) {
            known.call.title.truncate(end);
        }
    }

    /// Adds a tool to the live output, once it is known what for.
    fn watch(&mut self, about: &Value) {
        let Some(known) = self.calls.get_mut(text(about, "toolCallId")) else { return };
        let input = about.get("rawInput").and_then(Value::as_object).is_some_and(|input| !input.is_empty());
        let begun = match text(about, "status") {
            "" => input,
            status => status != "pending",
        };
        if begun && !known.told {
            known.told = true;
            let text = note(&known.call);
            self.emit(OwnRecord::Note { text });
        }
    }

    /// From here on something was used, whether or not the amount is reported.
    fn work(&mut self) {
        if !self.worked {
            self.worked = true;
            self.emit(OwnRecord::Worked);
        }
    }
}

fn plus(one: Tokens, other: Tokens) -> Tokens {
    Tokens {
        input: one.input.saturating_add(other.input),
        output: one.output.saturating_add(other.output),
        cache_read: one.cache_read.saturating_add(other.cache_read),
        cache_write: one.cache_write.saturating_add(other.cache_write),
    }
}

/// One of the settings a session comes with.
fn setting<'a>(result: &'a Value, category: &str) -> Option<&'a Value> {
    let settings = result.get("configOptions")?.as_array()?;
    settings.iter().find(|setting| text(setting, "category") == category)
}

fn current<'a>(result: &'a Value, category: &str) -> Option<&'a Value> {
    setting(result, category)?.get("currentValue")
}

fn note(call: &AcpToolCall) -> String {
    let title = first_line(&call.title).unwrap_or_default();
    let place = call.paths.first().map_or_else(|| title.clone(), |path| path.display().to_string());
    match call.kind.as_str() {
        "read" => format!("reads {place}"),
        "edit" => format!("edits {place}"),
        "delete" => format!("deletes {place}"),
        "move" => format!("moves {place}"),
        "search" => format!("searches {title}"),
        "execute" => format!("runs {title}"),
        _ => format!("uses {title}"),
    }
}
