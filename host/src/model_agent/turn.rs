//! The loop: ask, use the tools that are wanted, ask again. Everything is printed at once, so that an
//! attempt that is cut short has reported its progress and usage.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use archeflow_core::event::{Failure, Tokens};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::fault::{self, ErrorReply};
use super::frames::{Form, Frames, StreamFrame};
use super::http::{Broken, Http, HttpRequest, ResponseHead};
use super::talk::{ConversationPart, ModelReply, ModelRequest, ReplyEnd, ToolCall, ToolSpec};
use super::tools::{self, Bench};
use super::{KEY, ModelAgentEnv, Provider, Task};
use crate::client_output::ClientFault;
use crate::client_output::own::OwnRecord;
use crate::clock;
use crate::nonce::nonce;
use crate::sandbox::proxy;
use crate::store::files;

/// The system prompt for every brief; role and task are in the brief.
const SYSTEM: &str = "You work in a copy of a repository, through the tools you are given and nothing else. Paths are \
from the root of the copy. Look at files before you speak about them. Use as many calls as the task needs and no \
more. Your last message, the one without a call, is your answer: it has to be complete in itself and in the form the \
brief asks for.";
const READING: &str = " You may read and search, and you can't change anything.";
const MAKING: &str =
    " You may change files and run commands. What the copy contains at the end is your work.";

/// Sent with the last tool results an attempt can have.
const LAST: &str = "\n[This was your last use of tools. Answer now, with what you know.]";

/// A wait that is asked for and longer than this is the run's to wait for, not ours.
const WAIT_AT_MOST: u64 = 20;

/// How much of a refusal is read.
const REFUSAL: usize = 64 * 1024;

/// A conversation as it is kept between an answer and its correction.
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    id: String,
    provider: Provider,
    said: Vec<ConversationPart>,
}

const KEPT_AT_MOST: u64 = 256 * 1024 * 1024;

pub(super) fn run<'a>(task: &'a Task, ground: ModelAgentEnv<'a>) {
    let http = match ready(task, &ground) {
        Ok(http) => http,
        Err(fault) => return (ground.print)(&fault_line(&fault)),
    };
    let mut talk = Talk::new(task, http, ground);
    match talk.converse() {
        Ok(answer) => (talk.print)(&OwnRecord::Answer { text: answer }),
        Err(fault) => {
            talk.settle();
            (talk.print)(&fault_line(&fault));
        }
    }
}

/// Whether anything can be asked at all.
fn ready(task: &Task, ground: &ModelAgentEnv<'_>) -> Result<Http, ClientFault> {
    if let Some((why, for_a_key)) = &task.wrong {
        let kind = if *for_a_key { Failure::Auth } else { Failure::Refused };
        return Err(ClientFault::new(kind, why.clone()));
    }
    let roots = variable(&ground.variables, "SSL_CERT_FILE").map(PathBuf::from);
    let out = variable(&ground.variables, proxy::VARIABLE).and_then(|address| address.to_str());
    // A model on this machine is at the same port within.
    let local = proxy::of_url(&task.url).is_some_and(|(host, _)| proxy::is_loopback(&host));
    Http::new(task.patience(), roots.as_deref(), out.filter(|_| !local))
        .map_err(|why| ClientFault::new(Failure::Network, why))
}

fn variable<'a>(variables: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsString> {
    variables.iter().find(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value)
}

fn fault_line(ClientFault { kind, said, reopens }: &ClientFault) -> OwnRecord {
    OwnRecord::Fault { kind: *kind, said: said.clone(), reopens: *reopens }
}

struct Talk<'a> {
    task: &'a Task,
    http: Http,
    headers: Vec<(&'static str, String)>,
    bench: Bench,
    offers: Vec<ToolSpec>,
    system: String,
    kept: Kept,
    model: String,
    /// The usage up to here, and whether it was reported.
    used: Tokens,
    stated: bool,
    /// Usage that was not reported, estimated high.
    guessed: Tokens,
    last_line: Instant,
    hitched: bool,
    print: &'a mut dyn FnMut(&OwnRecord),
}

/// The result of one request.
struct Answered {
    reply: ModelReply,
    /// Why there is no answer, or only half of one.
    fault: Option<ClientFault>,
}

impl<'a> Talk<'a> {
    fn new(task: &'a Task, http: Http, ground: ModelAgentEnv<'a>) -> Talk<'a> {
        let ModelAgentEnv { tree, brief, variables, print } = ground;
        let key = variable(&variables, KEY).and_then(|key| key.to_str());
        let headers = task.provider.headers(key.map(str::trim));
        let mut kept = Kept::open(task);
        kept.said.push(ConversationPart::User { text: brief });
        let bench = Bench::new(tree, task.writes, for_commands(variables), task.patience());
        Talk {
            task,
            http,
            headers,
            bench,
            offers: tools::offers(task.writes),
            system: format!("{SYSTEM}{}", if task.writes { MAKING } else { READING }),
            kept,
            model: task.model.clone(),
            used: Tokens::default(),
            stated: false,
            guessed: Tokens::default(),
            last_line: Instant::now(),
            hitched: false,
            print,
        }
    }

    fn converse(&mut self) -> Result<String, ClientFault> {
        self.say(&OwnRecord::Session { id: self.kept.id.clone() });
        if self.model.is_empty() {
            self.model = self.only_model()?;
        }
        let (model, version) = (self.model.clone(), String::new());
        self.say(&OwnRecord::Player { model, version });
        self.note(format!("asks {} at {}", self.model, self.task.url));
        let turns = self.task.settings.turns;
        for turn in 1..=turns {
            let last = turn == turns;
            let reply = self.ask(!last)?;
            self.player(&reply.model);
            let calls = numbered(reply.calls, self.kept.said.len());
            match reply.stop {
                Some(ReplyEnd::Refused(why)) => return Err(ClientFault::new(Failure::Refused, why)),
                Some(ReplyEnd::Cut) => return Err(self.cut()),
                Some(ReplyEnd::Done) | None => {}
            }
            let text = reply.text;
            if calls.is_empty() && text.trim().is_empty() {
                return Err(ClientFault::new(Failure::Garbled, "the model returned no text"));
            }
            self.kept.said.push(ConversationPart::Model { text: text.clone(), calls: calls.clone() });
            if calls.is_empty() {
                self.keep();
                return Ok(text);
            }
            if last {
                break;
            }
            let results = self.work(&calls, turn + 1 == turns);
            self.kept.said.push(results);
        }
        Err(ClientFault::new(Failure::Exit, format!("no answer within {turns} turns (`models.max_turns`)")))
    }

    fn cut(&self) -> ClientFault {
        let most =
            self.task.settings.tokens.map_or_else(String::new, |tokens| format!(" of {tokens} tokens"));
        ClientFault::new(
            Failure::Garbled,
            format!("the answer was cut off at the limit{most} (`models.max_tokens`)"),
        )
    }

    fn work(&mut self, calls: &[ToolCall], last: bool) -> ConversationPart {
        let mut results = Vec::new();
        for call in calls {
            self.note(Bench::note(call));
            let used = self.bench.work(call);
            if used.denied {
                self.say(&OwnRecord::Denied { tool: call.name.clone() });
            }
            results.push(used.outcome);
        }
        if let Some(result) = results.last_mut().filter(|_| last) {
            result.text.push_str(LAST);
        }
        ConversationPart::Tools { results }
    }

    /// One answer, with a few tries where something is likely to pass.
    fn ask(&mut self, may_call: bool) -> Result<ModelReply, ClientFault> {
        let mut waits = self.task.settings.waits_ms.clone().into_iter();
        loop {
            let Answered { reply, fault } = self.request(may_call);
            self.count(&reply, fault.is_some());
            let Some(fault) = fault else {
                if std::mem::take(&mut self.hitched) {
                    self.note("continues".to_owned());
                }
                return Ok(reply);
            };
            let asked = fault.reopens.filter(|seconds| *seconds > WAIT_AT_MOST);
            let Some(wait) = waits.next().filter(|_| asked.is_none() && fault::may_pass(fault.kind)) else {
                return Err(fault);
            };
            let (kind, said, reopens) = (fault.kind, fault.said, fault.reopens);
            self.hitched = true;
            self.say(&OwnRecord::Hitch { kind, said, reopens });
            let wait = wait.max(reopens.unwrap_or(0).saturating_mul(1_000));
            std::thread::sleep(Duration::from_millis(wait).min(self.task.patience()));
        }
    }

    fn request(&mut self, may_call: bool) -> Answered {
        let (provider, patience) = (self.task.provider, self.task.patience());
        let settings = &self.task.settings;
        let ask = ModelRequest {
            model: &self.model,
            system: &self.system,
            said: &self.kept.said,
            tools: &self.offers,
            may_call,
            tokens: settings.tokens,
            context: settings.context,
        };
        let url = provider.chat(&self.task.url);
        let body = provider.body(&ask, &url).to_string();
        let request = HttpRequest { url: &url, headers: &self.headers, body: Some(body.as_bytes()) };
        let mut listener = Listener::new(provider);
        let (print, last_line) = (&mut self.print, &mut self.last_line);
        let beat = (patience / 2).min(Duration::from_secs(10));
        let sent = self.http.send(&request, patience, &mut |head, bytes| {
            listener.hear(head, bytes);
            if last_line.elapsed() > beat {
                *last_line = Instant::now();
                print(&OwnRecord::Note { text: format!("writes ({} bytes so far)", listener.reply.written) });
            }
        });
        let mut answered = listener.end(sent);
        if let Some(fault) = answered.fault.as_mut().filter(|fault| fault.kind == Failure::Network) {
            fault.said = format!("{} ({})", fault.said, self.task.url);
        }
        let reply = &mut answered.reply;
        if reply.tokens.is_none_or(|tokens| tokens.input == 0)
            && provider != Provider::Ollama
            && reply.written > 0
        {
            // A third of the bytes is more than the tokens of any text we send.
            let input = body.len() as u64 / 3;
            let known = reply.tokens.unwrap_or_default();
            reply.tokens = Some(Tokens { input, ..known });
            reply.counted = false;
        }
        if provider == Provider::Ollama && answered.fault.is_none() && overflowed(reply, settings.context) {
            let said =
                format!("the conversation fills all {} tokens of `models.ollama.context`", settings.context);
            answered.fault = Some(ClientFault::new(Failure::ContextTooLong, said));
        }
        answered
    }

    /// What a request used, as it was counted; half an answer without a count is estimated by its length.
    fn count(&mut self, reply: &ModelReply, broken: bool) {
        let Some(tokens) = reply.tokens else { return };
        if reply.counted {
            add(&mut self.used, tokens);
            self.stated = true;
        } else {
            let output = tokens.output.max(reply.written);
            add(&mut self.guessed, Tokens { output, ..tokens });
        }
        if self.stated || broken {
            self.stated = true;
            self.emit_usage();
        }
    }

    /// Before an error is reported: usage that was not counted counts all the same.
    fn settle(&mut self) {
        if !self.stated && self.guessed != Tokens::default() {
            self.emit_usage();
        }
    }

    fn emit_usage(&mut self) {
        let mut tokens = self.used;
        add(&mut tokens, self.guessed);
        self.say(&OwnRecord::Used { tokens, cost_usd: None });
    }

    /// The model that answers, if it is another than the one requested. A day or a number behind the name is no other.
    fn player(&mut self, told: &str) {
        if !told.is_empty() && !told.starts_with(&self.model) {
            let (model, version) = (told.to_owned(), String::new());
            self.say(&OwnRecord::Player { model, version });
        }
    }

    /// A server that has one model needs no name.
    fn only_model(&mut self) -> Result<String, ClientFault> {
        let url = self.task.provider.models(&self.task.url);
        let request = HttpRequest { url: &url, headers: &self.headers, body: None };
        let mut body = Vec::new();
        let sent =
            self.http.send(&request, self.task.patience(), &mut |_, bytes| body.extend_from_slice(bytes));
        let head = sent.map_err(|broken| ClientFault::new(Failure::Network, broken.to_string()))?;
        if head.status != 200 {
            return Err(refusal(&head, &body));
        }
        let listing: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let models: Vec<&str> = listing
            .get("data")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|model| model.get("id")?.as_str())
            .collect();
        match models.as_slice() {
            [only] => Ok((*only).to_owned()),
            [] => Err(ClientFault::new(
                Failure::Refused,
                format!("{url} names no model; name one: openai:<model>@<url>"),
            )),
            several => {
                let known: Vec<&str> = several.iter().take(20).copied().collect();
                let said = format!(
                    "there are several models; name one (openai:<model>@<url>): {}",
                    known.join(", ")
                );
                Err(ClientFault::new(Failure::Refused, said))
            }
        }
    }

    fn keep(&mut self) {
        let path = Kept::path(&self.task.home, &self.kept.id);
        let text = serde_json::to_vec(&self.kept).unwrap_or_default();
        if let Err(error) = files::write_atomic(&path, &text) {
            self.note(format!("can't keep its conversation: {error}"));
        }
    }

    fn note(&mut self, text: String) {
        self.say(&OwnRecord::Note { text });
    }

    fn say(&mut self, line: &OwnRecord) {
        self.last_line = Instant::now();
        (self.print)(line);
    }
}

impl Kept {
    /// The conversation to resume; a new one where there is none.
    fn open(task: &Task) -> Kept {
        let known =
            task.resumes.as_deref().filter(|id| id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'));
        let kept = known.and_then(|id| files::read_capped(&Kept::path(&task.home, id), KEPT_AT_MOST).ok());
        let kept = kept.and_then(|bytes| serde_json::from_slice::<Kept>(&bytes).ok());
        let same = kept.filter(|kept| kept.provider == task.provider);
        same.unwrap_or_else(|| Kept { id: nonce(), provider: task.provider, said: Vec::new() })
    }

    fn path(home: &Path, id: &str) -> PathBuf {
        home.join(format!("{id}.json"))
    }
}

/// Puts together what comes.
struct Listener {
    provider: Provider,
    frames: Option<Frames>,
    reply: ModelReply,
    /// The text of a refusal.
    refusal: Vec<u8>,
}

impl Listener {
    fn new(provider: Provider) -> Listener {
        Listener { provider, frames: None, reply: ModelReply::default(), refusal: Vec::new() }
    }

    fn hear(&mut self, head: &ResponseHead, bytes: &[u8]) {
        if head.status != 200 {
            let room = REFUSAL.saturating_sub(self.refusal.len());
            self.refusal.extend(bytes.iter().take(room));
            return;
        }
        let form = form(self.provider, head);
        let frames = self.frames.get_or_insert_with(|| Frames::new(form)).feed(bytes);
        frames.into_iter().for_each(|frame| self.take(frame));
    }

    fn take(&mut self, frame: StreamFrame) {
        match frame {
            StreamFrame::Value(value) => {
                self.provider.hear(&value, &mut self.reply);
            }
            StreamFrame::Done => {
                self.reply.stop.get_or_insert(ReplyEnd::Done);
            }
            StreamFrame::Garbled => self.reply.garbled = true,
        }
    }

    fn end(mut self, sent: Result<ResponseHead, Broken>) -> Answered {
        if let Some(frame) = self.frames.as_mut().filter(|_| sent.is_ok()).and_then(Frames::end) {
            self.take(frame);
        }
        let reply = self.reply;
        let fault = match sent {
            Ok(head) if head.status != 200 => Some(refusal(&head, &self.refusal)),
            Ok(head) => match &reply {
                ModelReply { fault: Some((status, said)), .. } => {
                    let (status, headers) = (*status, head.headers.as_slice());
                    Some(fault::of(&ErrorReply { status, said, headers, now_ms: clock::now() }))
                }
                ModelReply { garbled: true, .. } => {
                    Some(ClientFault::new(Failure::Garbled, "the answer is not what was to come"))
                }
                nothing if *nothing == ModelReply::default() => {
                    Some(ClientFault::new(Failure::Garbled, "there is no answer in what came"))
                }
                ModelReply { stop: None, .. } => {
                    Some(ClientFault::new(Failure::Network, "the answer broke off in the middle"))
                }
                ModelReply { .. } => None,
            },
            // All of it was there before the line broke.
            Err(_) if reply.stop.is_some() && reply.counted && reply.fault.is_none() => None,
            Err(broken @ Broken::TooMuch) => Some(ClientFault::new(Failure::Garbled, broken.to_string())),
            Err(broken @ (Broken::Line(_) | Broken::Stalled(_))) => {
                Some(ClientFault::new(Failure::Network, broken.to_string()))
            }
        };
        Answered { reply, fault }
    }
}

/// Some answer whole although they were asked to stream.
fn form(provider: Provider, head: &ResponseHead) -> Form {
    let kind = head.headers.iter().find(|(name, _)| name == "content-type").map(|(_, kind)| kind.as_str());
    let whole = kind.is_some_and(|kind| kind.contains("application/json") || kind.contains("text/html"));
    if whole && provider != Provider::Ollama { Form::Whole } else { provider.form() }
}

/// What a status other than 200 means, with the provider's own words.
fn refusal(head: &ResponseHead, body: &[u8]) -> ClientFault {
    let value: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
    let error = value.get("error").unwrap_or(&value);
    let words = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let said = match error.as_str() {
        Some(text) => text.to_owned(),
        None if words("message").is_empty() => String::new(),
        None => {
            let kind = [words("code"), words("type")].into_iter().find(|word| !word.is_empty());
            let kind = kind.map(|kind| format!(" [{kind}]")).unwrap_or_default();
            format!("{}{kind}", words("message"))
        }
    };
    fault::of(&ErrorReply { status: head.status, said: &said, headers: &head.headers, now_ms: clock::now() })
}

/// Ollama cuts off what does not fit without reporting it; a count that fills all there is gives it away.
fn overflowed(reply: &ModelReply, context: u64) -> bool {
    reply.tokens.is_some_and(|tokens| tokens.input.saturating_add(tokens.output) >= context)
}

/// Calls in the order they came, each with a name of its own: not every server gives them one.
fn numbered(calls: BTreeMap<u64, ToolCall>, turn: usize) -> Vec<ToolCall> {
    let named = |(n, mut call): (usize, ToolCall)| {
        if call.id.is_empty() || call.id.starts_with("call-") {
            call.id = format!("call-{turn}-{n}");
        }
        call
    };
    calls.into_values().filter(|call| !call.name.is_empty()).enumerate().map(named).collect()
}

fn add(sum: &mut Tokens, more: Tokens) {
    sum.input = sum.input.saturating_add(more.input);
    sum.output = sum.output.saturating_add(more.output);
    sum.cache_read = sum.cache_read.saturating_add(more.cache_read);
    sum.cache_write = sum.cache_write.saturating_add(more.cache_write);
}

/// Commands see what every agent's commands see, and no key (R6).
fn for_commands(variables: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    variables.into_iter().filter(|(name, _)| name != KEY).collect()
}
