//! A model that says what it is told to: a small server on the loopback that speaks as much of the Anthropic Messages
//! and OpenAI Responses interfaces as clients need. Who is asking is told from the brief in the request, so the order
//! of requests does not matter. Requests without tools are side errands of a client and get a word.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// What the model does when it is asked.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Say(String),
    /// Wants a tool used, with this input.
    Use(&'static str, Value),
    /// The provider refuses with this status.
    Status(u16),
    /// The request does not fit into the model's memory.
    TooLong,
    /// No answer at all.
    Hang,
}

/// Replies by archetype, in order; the last one stays.
type Script = BTreeMap<String, VecDeque<Reply>>;

pub(crate) struct Model {
    pub(crate) address: String,
    shared: Arc<Shared>,
}

struct Shared {
    script: Mutex<Script>,
    asked: Mutex<Vec<(String, Value)>>,
}

impl Model {
    pub(crate) fn new(script: &[(&str, &[Reply])]) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let script =
            script.iter().map(|(who, replies)| ((*who).to_owned(), replies.iter().cloned().collect()));
        let shared = Arc::new(Shared { script: Mutex::new(script.collect()), asked: Mutex::default() });
        let answering = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&answering);
                std::thread::spawn(move || shared.serve(&stream));
            }
        });
        Model { address, shared }
    }

    /// What this archetype's clients have sent, in order.
    pub(crate) fn asked_by(&self, who: &str) -> Vec<Value> {
        let asked = self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.iter().filter(|(asking, _)| asking == who).map(|(_, body)| body.clone()).collect()
    }
}

impl Shared {
    fn serve(&self, stream: &TcpStream) {
        let Some((path, body)) = request(stream) else { return };
        let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
        let main = body["tools"].as_array().is_some_and(|tools| !tools.is_empty());
        let reply = if main { self.next(&body) } else { Reply::Say("ok".to_owned()) };
        match reply {
            Reply::Hang => std::thread::sleep(Duration::from_secs(600)),
            Reply::Status(status) => {
                let text = json!({"type": "error", "error": {"type": kind(status), "message": "as the script says"}});
                send(stream, &format!("{status} Refused"), "application/json", &text.to_string());
            }
            Reply::TooLong => {
                let error = json!({
                    "type": "invalid_request_error", "code": "context_length_exceeded", "param": "input",
                    "message": "prompt is too long: 250000 tokens > 200000 maximum",
                });
                let text = json!({"type": "error", "error": error});
                send(stream, "400 Bad Request", "application/json", &text.to_string());
            }
            Reply::Say(_) | Reply::Use(..) if path.contains("/messages/count_tokens") => {
                send(stream, "200 OK", "application/json", "{\"input_tokens\": 10}");
            }
            Reply::Say(_) | Reply::Use(..) if path.contains("/messages") && body["stream"] != true => {
                send(stream, "200 OK", "application/json", &message(&reply).to_string());
            }
            Reply::Say(_) | Reply::Use(..) if path.contains("/messages") => {
                send(stream, "200 OK", "text/event-stream", &events(&message_events(&reply)));
            }
            Reply::Say(_) | Reply::Use(..) if path.contains("/responses") => {
                send(stream, "200 OK", "text/event-stream", &events(&response_events(&reply)));
            }
            Reply::Say(_) | Reply::Use(..) => send(stream, "200 OK", "application/json", "{}"),
        }
    }

    fn next(&self, body: &Value) -> Reply {
        let text = body.to_string();
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let who = script.keys().find(|who| text.contains(&format!("you are the {who}."))).cloned();
        let who = who.unwrap_or_default();
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push((who.clone(), body.clone()));
        let Some(replies) = script.get_mut(&who) else { return Reply::Status(400) };
        let last = replies.len() == 1;
        let reply = if last { replies.front().cloned() } else { replies.pop_front() };
        reply.unwrap_or(Reply::Status(400))
    }
}

/// The path and the body of one request.
fn request(stream: &TcpStream) -> Option<(String, Vec<u8>)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let header = line.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, body))
}

fn send(mut stream: &TcpStream, status: &str, kind: &str, body: &str) {
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
}

fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        429 => "rate_limit_error",
        _ => "api_error",
    }
}

fn events(events: &[Value]) -> String {
    let one =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default());
    events.iter().map(one).collect()
}

/// One number for every block, call and answer: unique as long as the process lives.
fn fresh() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// Every answer uses the same, so that sums are told at a glance.
const USED: (u64, u64) = (100, 20);

fn message(reply: &Reply) -> Value {
    let (block, stop) = match reply {
        Reply::Use(name, input) => (
            json!({"type": "tool_use", "id": format!("toolu_{}", fresh()), "name": name, "input": input}),
            "tool_use",
        ),
        Reply::Say(text) => (json!({"type": "text", "text": text}), "end_turn"),
        Reply::Status(_) | Reply::TooLong | Reply::Hang => (Value::Null, "end_turn"),
    };
    json!({
        "id": format!("msg_{}", fresh()), "type": "message", "role": "assistant", "model": "scripted",
        "content": [block], "stop_reason": stop, "stop_sequence": null,
        "usage": {"input_tokens": USED.0, "output_tokens": USED.1},
    })
}

fn message_events(reply: &Reply) -> Vec<Value> {
    let whole = message(reply);
    let mut opened = whole.clone();
    opened["content"] = json!([]);
    opened["stop_reason"] = Value::Null;
    opened["usage"]["output_tokens"] = json!(1);
    let mut empty = whole["content"][0].clone();
    let delta = match reply {
        Reply::Use(_, input) => {
            empty["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": input.to_string()})
        }
        Reply::Say(text) => {
            empty["text"] = json!("");
            json!({"type": "text_delta", "text": text})
        }
        Reply::Status(_) | Reply::TooLong | Reply::Hang => Value::Null,
    };
    vec![
        json!({"type": "message_start", "message": opened}),
        json!({"type": "content_block_start", "index": 0, "content_block": empty}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta", "usage": {"output_tokens": USED.1},
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": null},
        }),
        json!({"type": "message_stop"}),
    ]
}

fn response_events(reply: &Reply) -> Vec<Value> {
    let id = fresh();
    let item = match reply {
        Reply::Use(name, input) => json!({
            "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "name": name,
            "arguments": input.to_string(), "status": "completed",
        }),
        Reply::Say(text) => json!({
            "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
        Reply::Status(_) | Reply::TooLong | Reply::Hang => Value::Null,
    };
    let usage = json!({
        "input_tokens": USED.0, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": USED.1,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": USED.0 + USED.1,
    });
    let response = |status: &str, output: Value, usage: &Value| {
        json!({
            "id": format!("resp_{id}"), "object": "response", "status": status, "model": "scripted",
            "output": output, "usage": usage,
        })
    };
    vec![
        json!({"type": "response.created", "response": response("in_progress", json!([]), &Value::Null)}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": response("completed", json!([item]), &usage)}),
    ]
}
