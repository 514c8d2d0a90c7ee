//! A model that says what it is told to: a small server on the loopback that speaks as much of five interfaces as
//! clients need (`wire` has their words). Who is asking is told from the brief in the request, so the
//! order of requests does not matter. Requests without tools, and for suggestions, are side errands of a client and get
//! a word.
//!
//! It keeps its own book of what it was asked and what it charged, so that a test can hold the program's against it.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::wire::{self, Interface, signed};

/// What the model does when it is asked.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Say(String),
    /// Wants a tool used, with this input. Text as input is for the tools of Codex that take no JSON.
    Use(&'static str, Value),
    /// The provider refuses with this status.
    Status(u16),
    /// The same, and says in how many seconds it will serve again.
    Later(u16, u64),
    /// The account has nothing left.
    Quota,
    /// The account has no money left, in the words and with the status of Anthropic's.
    NoCredit,
    /// The request does not fit into the model's memory.
    TooLong,
    /// No answer at all, not even a head.
    Hang,
    /// The stream begins and then says nothing more.
    Stall,
    /// The stream begins, and the line is cut.
    Drop,
}

/// Replies by archetype, in order; the last one stays. The archetype `*` is anybody who has no replies of its own.
type Script = BTreeMap<String, VecDeque<Reply>>;

/// Tokens the model charged for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Charged {
    pub(crate) requests: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// How a request was dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Answered in full.
    Answered,
    /// Begun and cut off or left hanging; a provider charges for what it had read and said by then.
    Begun,
    /// A side errand of the client's, answered with a word.
    Aside,
    /// Turned away or left without an answer: nothing is charged.
    Refused,
}

struct Asked {
    who: String,
    body: Value,
    kind: Kind,
}

pub(crate) struct Model {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

struct Shared {
    script: Mutex<Script>,
    asked: Mutex<Vec<Asked>>,
    heads: Mutex<Vec<String>>,
    overdue: Mutex<Option<Overdue>>,
    closed: AtomicBool,
}

/// From when on a client is overdue.
struct Overdue {
    file: PathBuf,
    /// Requests that were turned away or cut off till then.
    after: usize,
}

impl Model {
    pub(crate) fn new(script: &[(&str, &[Reply])]) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let script =
            script.iter().map(|(who, replies)| ((*who).to_owned(), replies.iter().cloned().collect()));
        let script = Mutex::new(script.collect());
        let (asked, heads, overdue) = Default::default();
        let shared = Arc::new(Shared { script, asked, heads, overdue, closed: AtomicBool::new(false) });
        let answering = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if answering.closed.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&answering);
                std::thread::spawn(move || shared.serve(&stream));
            }
        });
        Model { address, shared }
    }

    /// An address at which nobody listens, and nobody else will as long as this is kept.
    pub(crate) fn nobody() -> Nobody {
        let bound = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = bound.local_addr().unwrap().port();
        // The other end of a connection holds the port without listening on it.
        let other = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (held, _) = bound.accept().unwrap();
        Nobody { address: format!("http://127.0.0.1:{port}"), _held: (held, other) }
    }

    /// Makes this file, with which time limits begin to count, when a client waits for an answer that never comes, or
    /// when so many of its requests were turned away or cut off that it is trying for ever.
    pub(crate) fn makes_overdue(&self, file: PathBuf, after: usize) {
        *self.shared.overdue() = Some(Overdue { file, after });
    }

    /// What this archetype's clients have sent, in order.
    pub(crate) fn asked_by(&self, who: &str) -> Vec<Value> {
        let asked = self.shared.asked();
        let main = asked.iter().filter(|asked| asked.who == who && asked.kind != Kind::Aside);
        main.map(|asked| asked.body.clone()).collect()
    }

    /// The heads of all requests, in order.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.shared.heads.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What this archetype was charged with, for requests of these kinds.
    pub(crate) fn charged(&self, who: &str, kinds: &[Kind]) -> Charged {
        let asked = self.shared.asked();
        let fitting = asked.iter().filter(|asked| asked.who == who && kinds.contains(&asked.kind));
        fitting.fold(Charged::default(), |sum, asked| {
            let (input, output) = match asked.kind {
                Kind::Answered => wire::USED,
                Kind::Begun => (wire::USED.0, 1),
                Kind::Aside => (1, 1),
                Kind::Refused => (0, 0),
            };
            Charged { requests: sum.requests + 1, input: sum.input + input, output: sum.output + output }
        })
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address.trim_start_matches("http://"));
    }
}

pub(crate) struct Nobody {
    pub(crate) address: String,
    _held: (TcpStream, TcpStream),
}

impl Shared {
    fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: &TcpStream) {
        let Some((asked, body)) = request(stream) else { return };
        let path = asked.split(' ').nth(1).unwrap_or_default().to_owned();
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).push(asked);
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let Some((interface, streams)) = Interface::of(&path, &body) else {
            return send(stream, "200 OK", "application/json", &wire::beside(&path).to_string());
        };
        let reply = self.next(&body);
        self.note_overdue(&reply);
        match &reply {
            Reply::Hang => wait_for_end(stream),
            Reply::Stall | Reply::Drop => {
                let whole = interface.stream(&Reply::Say("This is never said in full.".to_owned()));
                let events = whole.concat();
                let begun = whole.get(..2).unwrap_or(&whole).concat();
                let head = head("200 OK", interface.kind(true), events.len(), "");
                write(stream, &(head + &begun));
                if matches!(reply, Reply::Stall) {
                    wait_for_end(stream);
                }
            }
            Reply::Status(_) | Reply::Later(..) | Reply::Quota | Reply::NoCredit | Reply::TooLong => {
                let (status, text) = interface.refusal(&reply);
                let mut later = String::new();
                if let Reply::Later(_, seconds) = reply {
                    later = format!("retry-after: {seconds}\r\n");
                }
                let text = text.to_string();
                let head = head(&format!("{status} Refused"), "application/json", text.len(), &later);
                write(stream, &(head + &text));
            }
            Reply::Say(_) | Reply::Use(..) if streams => {
                send(stream, "200 OK", interface.kind(true), &interface.stream(&reply).concat());
            }
            Reply::Say(_) | Reply::Use(..) => {
                send(stream, "200 OK", interface.kind(false), &interface.whole(&reply).to_string());
            }
        }
    }

    fn overdue(&self) -> MutexGuard<'_, Option<Overdue>> {
        self.overdue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_overdue(&self, reply: &Reply) {
        let failed =
            self.asked().iter().filter(|asked| matches!(asked.kind, Kind::Refused | Kind::Begun)).count();
        let waits = matches!(reply, Reply::Hang | Reply::Stall);
        if let Some(overdue) = self.overdue().as_ref().filter(|overdue| waits || failed >= overdue.after) {
            let _ = std::fs::write(&overdue.file, "");
        }
    }

    /// What the script has for whoever is asking, and a line in the book.
    fn next(&self, body: &Value) -> Reply {
        let text = body.to_string();
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let known = script.keys().find(|who| text.contains(&format!("you are the {who}."))).cloned();
        let who = known.unwrap_or_else(|| "*".to_owned());
        let main = body["tools"].as_array().is_some_and(|tools| !tools.is_empty()) && !suggests(body);
        let reply = match script.get_mut(&who) {
            _ if !main => Reply::Say("ok".to_owned()),
            Some(replies) if replies.len() > 1 => replies.pop_front().unwrap_or(Reply::Status(400)),
            Some(replies) => replies.front().cloned().unwrap_or(Reply::Status(400)),
            None => Reply::Status(400),
        };
        let kind = match &reply {
            _ if !main => Kind::Aside,
            Reply::Say(_) | Reply::Use(..) => Kind::Answered,
            Reply::Stall | Reply::Drop => Kind::Begun,
            Reply::Status(_)
            | Reply::Later(..)
            | Reply::Quota
            | Reply::NoCredit
            | Reply::TooLong
            | Reply::Hang => Kind::Refused,
        };
        self.asked().push(Asked { who, body: body.clone(), kind });
        if let Reply::Say(said) = &reply { Reply::Say(signed(said, &text)) } else { reply }
    }
}

/// Whether a client that has its answer asks what its user might want next. It comes after the turn, with all tools, if
/// there is time for it before the client is told to end.
fn suggests(body: &Value) -> bool {
    let last = body["messages"].as_array().and_then(|messages| messages.last());
    last.is_some_and(|last| last.to_string().contains("Reply with ONLY the suggestion"))
}

/// The head and the body of one request.
fn request(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut head = line.clone();
    let (mut length, mut chunked) = (0, false);
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        head.push_str(&line);
        let header = line.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        chunked |= header.starts_with("transfer-encoding:") && header.contains("chunked");
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    if chunked {
        return Some((head, chunks(&mut reader)?));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

fn chunks(reader: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let length = usize::from_str_radix(line.trim().split(';').next()?, 16).ok()?;
        let mut chunk = vec![0; length];
        reader.read_exact(&mut chunk).ok()?;
        reader.read_line(&mut line).ok()?;
        if length == 0 {
            return Some(body);
        }
        body.extend(chunk);
    }
}

fn send(stream: &TcpStream, status: &str, kind: &str, body: &str) {
    write(stream, &(head(status, kind, body.len(), "") + body));
}

fn head(status: &str, kind: &str, length: usize, more: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n{more}connection: close\r\n\r\n"
    )
}

fn write(mut stream: &TcpStream, text: &str) {
    let _ = stream.write_all(text.as_bytes());
}

/// Until the other side has had enough.
fn wait_for_end(mut stream: &TcpStream) {
    let mut byte = [0];
    while stream.read(&mut byte).is_ok_and(|read| read > 0) {}
}

/// The server is a test's only witness, so it is looked at itself.
#[test]
fn issue_4_the_scripted_model_speaks_five_interfaces_and_keeps_its_book() {
    use serde_json::json;

    let asks = |text: &str| json!({"stream": true, "tools": [{"name": "t"}], "text": text});
    let brief = asks("you are the maker. Go.");
    for (path, wanted) in [
        ("/v1/messages?beta=true", "\"text_delta\""),
        ("/v1/responses", "response.completed"),
        ("/v1/chat/completions", "chat.completion.chunk"),
        ("/v1beta/models/m:streamGenerateContent?alt=sse", "usageMetadata"),
        ("/api/chat", "\"done\":true"),
    ] {
        let model = Model::new(&[
            (
                "maker",
                &[Reply::Status(401), Reply::Later(429, 7), Reply::Drop, Reply::Say("Said.".to_owned())],
            ),
            ("*", &[Reply::Say("Anybody.".to_owned())]),
        ]);
        let ask = |body: &Value| ask(&model.address, path, body);
        assert!(ask(&brief).starts_with("HTTP/1.1 401"), "{path}");
        assert!(ask(&brief).contains("retry-after: 7\r\n"), "{path}");
        let cut = ask(&brief);
        let (head, body) = cut.split_once("\r\n\r\n").unwrap();
        let promised = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()).unwrap();
        assert!(!body.is_empty() && body.len() < promised.parse::<usize>().unwrap(), "{path}: {cut}");
        let said = ask(&brief);
        assert!(said.contains("Said.") && said.contains(wanted), "{path}: {said}");
        assert!(ask(&asks("no brief")).contains("Anybody."), "{path}");
        assert!(ask(&json!({"stream": true, "text": "you are the maker."})).contains("ok"), "{path}");
        let book = |kinds: &[Kind]| model.charged("maker", kinds);
        assert_eq!(book(&[Kind::Refused]), Charged { requests: 2, input: 0, output: 0 });
        assert_eq!(book(&[Kind::Begun]), Charged { requests: 1, input: 100, output: 1 });
        assert_eq!(book(&[Kind::Answered]), Charged { requests: 1, input: 100, output: 20 });
        assert_eq!(book(&[Kind::Aside]).requests, 1);
        assert_eq!(model.asked_by("maker").len(), 4, "{path}");
    }
    let model = Model::new(&[("maker", &[Reply::Quota, Reply::TooLong, Reply::Stall])]);
    assert!(ask(&model.address, "/v1/chat/completions", &brief).contains("exceeded your current quota"));
    assert!(ask(&model.address, "/v1/chat/completions", &brief).contains("context_length_exceeded"));
    let mut stalled = TcpStream::connect(model.address.trim_start_matches("http://")).unwrap();
    post(&stalled, "/v1/chat/completions", &brief);
    stalled.read_exact(&mut [0; 200]).unwrap();
    drop(stalled);
    assert_eq!(model.charged("maker", &[Kind::Begun]).requests, 1);
    let nobody = Model::nobody();
    assert!(TcpStream::connect(nobody.address.trim_start_matches("http://")).is_err());
}

/// One request, as the simplest of clients makes it.
fn ask(address: &str, path: &str, body: &Value) -> String {
    let mut stream = TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    post(&stream, path, body);
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    said
}

fn post(stream: &TcpStream, path: &str, body: &Value) {
    let body = body.to_string();
    write(stream, &format!("POST {path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n{body}", body.len()));
}
