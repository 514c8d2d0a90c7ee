//! The words of five interfaces to models, as far as clients listen to them: one reply in, the text on the line out.

use serde_json::{Value, json};

use crate::model::Reply;

/// Every answer uses the same, so that sums are told at a glance: input, output.
pub(crate) const USED: (u64, u64) = (100, 20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses.
    Responses,
    /// OpenAI's Chat Completions, and everybody's who is compatible with it.
    Chat,
    Gemini,
    Ollama,
}

/// Paths that are no requests to say something, and what is found there.
pub(crate) fn beside(path: &str) -> Value {
    let path = path.split('?').next().unwrap_or_default();
    match path {
        _ if path.ends_with("/count_tokens") => json!({"input_tokens": 10}),
        _ if path.ends_with(":countTokens") => json!({"totalTokens": 10}),
        _ if path.ends_with("/api/version") => json!({"version": "0.14.0"}),
        _ if path.ends_with("/api/tags") => {
            json!({"models": [{"name": "scripted:latest", "model": "scripted:latest", "size": 1}]})
        }
        _ if path.ends_with("/api/show") => json!({
            "details": {"family": "x"}, "capabilities": ["completion", "tools"],
            "model_info": {"general.architecture": "x", "x.context_length": 128_000},
        }),
        _ if path.ends_with("/models") => {
            json!({"object": "list", "data": [{"id": "scripted", "object": "model", "owned_by": "nobody"}]})
        }
        _ => json!({}),
    }
}

impl Interface {
    /// Which interface a request is made by, and whether it asks for a stream.
    pub(crate) fn of(path: &str, body: &Value) -> Option<(Interface, bool)> {
        let path = path.split('?').next().unwrap_or_default();
        let streams = body["stream"] == true;
        match path {
            _ if path.ends_with("/messages") => Some((Interface::Messages, streams)),
            _ if path.ends_with("/responses") => Some((Interface::Responses, streams)),
            _ if path.ends_with("/chat/completions") => Some((Interface::Chat, streams)),
            _ if path.ends_with(":streamGenerateContent") => Some((Interface::Gemini, true)),
            _ if path.ends_with(":generateContent") => Some((Interface::Gemini, false)),
            _ if path.ends_with("/api/chat") => Some((Interface::Ollama, body["stream"] != false)),
            _ => None,
        }
    }

    pub(crate) fn kind(self, streams: bool) -> &'static str {
        match (streams, self) {
            (true, Interface::Ollama) => "application/x-ndjson",
            (true, _) => "text/event-stream",
            (false, _) => "application/json",
        }
    }

    /// The whole answer at once.
    pub(crate) fn whole(self, reply: &Reply) -> Value {
        match self {
            Interface::Messages => message(reply),
            Interface::Responses => response(reply),
            Interface::Chat => completion(reply),
            Interface::Gemini => gemini(reply),
            Interface::Ollama => ollama(reply, true),
        }
    }

    /// The same as a stream, event by event. The second event is never the last.
    pub(crate) fn stream(self, reply: &Reply) -> Vec<String> {
        let named = |event: Value| {
            format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
        };
        let unnamed = |event: Value| format!("data: {event}\n\n");
        match self {
            Interface::Messages => message_events(reply).into_iter().map(named).collect(),
            Interface::Responses => response_events(reply).into_iter().map(named).collect(),
            Interface::Chat => {
                let done = "data: [DONE]\n\n".to_owned();
                chunks(reply).into_iter().map(unnamed).chain([done]).collect()
            }
            Interface::Gemini => gemini_chunks(reply).into_iter().map(unnamed).collect(),
            Interface::Ollama => ollama_lines(reply).into_iter().map(|line| format!("{line}\n")).collect(),
        }
    }

    /// A request that is turned away: the status and the words.
    pub(crate) fn refusal(self, reply: &Reply) -> (u16, Value) {
        let (status, code, said) = match reply {
            Reply::Status(status) | Reply::Later(status, _) => (*status, code(*status), words(*status)),
            Reply::Quota => (
                429,
                "insufficient_quota",
                "You exceeded your current quota, please check your plan and billing details",
            ),
            Reply::NoCredit => (
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to \
                 upgrade or purchase credits.",
            ),
            Reply::TooLong => (400, "context_length_exceeded", self.too_long()),
            Reply::Say(_) | Reply::Use(..) | Reply::Hang | Reply::Stall | Reply::Drop => (500, "", ""),
        };
        let text = match self {
            Interface::Messages => json!({"type": "error", "error": {"type": kind(status), "message": said}}),
            Interface::Responses | Interface::Chat => json!({
                "error": {"type": kind(status), "code": code, "message": said, "param": null},
            }),
            Interface::Gemini => {
                json!({"error": {"code": status, "message": said, "status": gemini_status(status)}})
            }
            Interface::Ollama => json!({"error": said}),
        };
        (status, text)
    }

    /// As each provider says it.
    fn too_long(self) -> &'static str {
        match self {
            Interface::Messages => "prompt is too long: 250000 tokens > 200000 maximum",
            Interface::Responses => {
                "Your input exceeds the context window of this model. Please adjust your input and try again."
            }
            Interface::Chat => {
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 250000 \
                 tokens. Please reduce the length of the messages."
            }
            Interface::Gemini => {
                "The input token count (2500000) exceeds the maximum number of tokens allowed (1048576)."
            }
            Interface::Ollama => "input length exceeds the context length",
        }
    }
}

fn kind(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    }
}

/// What providers say, more or less.
fn words(status: u16) -> &'static str {
    match status {
        401 => "Incorrect API key provided, as the script says",
        429 => "Rate limit reached for requests, as the script says",
        529 => "Overloaded, as the script says",
        500..=599 => "The server had an error while processing your request, as the script says",
        _ => "as the script says",
    }
}

fn code(status: u16) -> &'static str {
    match status {
        401 => "invalid_api_key",
        404 => "model_not_found",
        429 => "rate_limit_exceeded",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    }
}

fn gemini_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    }
}

/// One number for every block, call and answer: unique as long as the process lives.
fn fresh() -> u64 {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)
}

/// What is said; nothing where a tool is wanted.
fn said(reply: &Reply) -> &str {
    match reply {
        Reply::Say(text) => text,
        Reply::Use(..)
        | Reply::Status(_)
        | Reply::Later(..)
        | Reply::Quota
        | Reply::NoCredit
        | Reply::TooLong
        | Reply::Hang
        | Reply::Stall
        | Reply::Drop => "",
    }
}

/// The tool that is wanted, with its input.
fn wanted(reply: &Reply) -> Option<(&'static str, &Value)> {
    match reply {
        Reply::Use(name, input) => Some((name, input)),
        Reply::Say(_)
        | Reply::Status(_)
        | Reply::Later(..)
        | Reply::Quota
        | Reply::NoCredit
        | Reply::TooLong
        | Reply::Hang
        | Reply::Stall
        | Reply::Drop => None,
    }
}

fn message(reply: &Reply) -> Value {
    let (block, stop) = match wanted(reply) {
        Some((name, input)) => (
            json!({"type": "tool_use", "id": format!("toolu_{}", fresh()), "name": name, "input": input}),
            "tool_use",
        ),
        None => (json!({"type": "text", "text": said(reply)}), "end_turn"),
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
    let delta = if let Some((_, input)) = wanted(reply) {
        empty["input"] = json!({});
        json!({"type": "input_json_delta", "partial_json": input.to_string()})
    } else {
        empty["text"] = json!("");
        json!({"type": "text_delta", "text": said(reply)})
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

fn response(reply: &Reply) -> Value {
    let id = fresh();
    let item = match wanted(reply) {
        Some((name, Value::String(input))) => json!({
            "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": format!("call_{id}"), "name": name,
            "input": input, "status": "completed",
        }),
        Some((name, input)) => {
            let mut call = json!({
                "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"), "name": name,
                "arguments": input.to_string(), "status": "completed",
            });
            // Codex groups the tools of a server.
            if let Some((server, tool)) = name.split_once("::") {
                call["namespace"] = server.into();
                call["name"] = tool.into();
            }
            call
        }
        None => json!({
            "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": said(reply), "annotations": []}],
        }),
    };
    let usage = json!({
        "input_tokens": USED.0, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": USED.1,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": USED.0 + USED.1,
    });
    json!({
        "id": format!("resp_{id}"), "object": "response", "status": "completed", "model": "scripted",
        "output": [item], "usage": usage,
    })
}

fn response_events(reply: &Reply) -> Vec<Value> {
    let whole = response(reply);
    let item = whole["output"][0].clone();
    let mut opened = whole.clone();
    opened["status"] = json!("in_progress");
    opened["output"] = json!([]);
    opened["usage"] = Value::Null;
    vec![
        json!({"type": "response.created", "response": opened}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": item}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
        json!({"type": "response.completed", "response": whole}),
    ]
}

fn chat_usage() -> Value {
    json!({
        "prompt_tokens": USED.0, "completion_tokens": USED.1, "total_tokens": USED.0 + USED.1,
        "prompt_tokens_details": {"cached_tokens": 0},
    })
}

fn completion(reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": said(reply)});
    if let Some((name, input)) = wanted(reply) {
        let function = json!({"name": name, "arguments": input.to_string()});
        message["content"] = Value::Null;
        message["tool_calls"] =
            json!([{"id": format!("call_{}", fresh()), "type": "function", "function": function}]);
    }
    json!({
        "id": format!("chatcmpl-{}", fresh()), "object": "chat.completion", "created": 1, "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": finish(reply)}], "usage": chat_usage(),
    })
}

fn finish(reply: &Reply) -> &'static str {
    if wanted(reply).is_some() { "tool_calls" } else { "stop" }
}

fn chunks(reply: &Reply) -> Vec<Value> {
    let id = format!("chatcmpl-{}", fresh());
    let chunk = |choices: Value| json!({"id": id, "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": choices});
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let mut all = vec![delta(json!({"role": "assistant", "content": ""}))];
    if let Some((name, input)) = wanted(reply) {
        let call = |function: Value| json!({"index": 0, "type": "function", "function": function});
        let mut opened = call(json!({"name": name, "arguments": ""}));
        opened["id"] = json!(format!("call_{}", fresh()));
        all.push(delta(json!({"tool_calls": [opened]})));
        all.push(delta(json!({"tool_calls": [call(json!({"arguments": input.to_string()}))]})));
    } else {
        let (first, second) = halves(said(reply));
        all.push(delta(json!({"content": first})));
        all.push(delta(json!({"content": second})));
    }
    all.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish(reply)}])));
    let mut used = chunk(json!([]));
    used["usage"] = chat_usage();
    all.push(used);
    all
}

/// In two, between words, so that a short answer can be looked for in what was sent.
fn halves(text: &str) -> (&str, &str) {
    text.char_indices().nth(40).map_or((text, ""), |(at, _)| text.split_at(at))
}

fn gemini(reply: &Reply) -> Value {
    let part = match wanted(reply) {
        Some((name, input)) => {
            json!({"functionCall": {"id": format!("fc_{}", fresh()), "name": name, "args": input}})
        }
        None => json!({"text": said(reply)}),
    };
    let content = json!({"role": "model", "parts": [part]});
    json!({
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": "scripted",
        "responseId": format!("r{}", fresh()),
        "usageMetadata": {
            "promptTokenCount": USED.0, "candidatesTokenCount": USED.1, "totalTokenCount": USED.0 + USED.1,
        },
    })
}

fn gemini_chunks(reply: &Reply) -> Vec<Value> {
    let whole = gemini(reply);
    let part = |text: &str| {
        let content = json!({"role": "model", "parts": [{"text": text}]});
        json!({"candidates": [{"content": content, "index": 0}], "modelVersion": "scripted"})
    };
    if wanted(reply).is_some() {
        return vec![whole];
    }
    let (first, second) = halves(said(reply));
    let mut last = whole;
    last["candidates"][0]["content"]["parts"] = json!([{"text": ""}]);
    vec![part(first), part(second), last]
}

fn ollama(reply: &Reply, done: bool) -> Value {
    let mut message = json!({"role": "assistant", "content": said(reply)});
    if let Some((name, input)) = wanted(reply) {
        message["tool_calls"] = json!([{"function": {"name": name, "arguments": input}}]);
    }
    let mut line =
        json!({"model": "scripted", "created_at": "2026-01-01T00:00:00Z", "message": message, "done": done});
    if done {
        line["done_reason"] = json!("stop");
        line["prompt_eval_count"] = json!(USED.0);
        line["eval_count"] = json!(USED.1);
    }
    line
}

fn ollama_lines(reply: &Reply) -> Vec<Value> {
    let end = ollama(&Reply::Say(String::new()), true);
    if wanted(reply).is_some() {
        return vec![ollama(reply, false), end];
    }
    let (first, second) = halves(said(reply));
    let part = |text: &str| ollama(&Reply::Say(text.to_owned()), false);
    vec![part(first), part(second), end]
}

/// The code that a brief asks for, in a prompt or a request that has it. A session has several; the last one counts.
pub(crate) fn code_in(prompt: &str) -> &str {
    const BEFORE: &str = "as in `STATUS: DONE ";
    let behind = prompt.rfind(BEFORE).and_then(|at| prompt.get(at + BEFORE.len()..));
    behind.and_then(|rest| rest.split('`').next()).unwrap_or_default()
}

/// An answer with the code of its brief where a model that follows it writes it.
pub(crate) fn signed(answer: &str, prompt: &str) -> String {
    let code = code_in(prompt);
    let deciding = |line: &str| line.starts_with("VERDICT: ") || line.starts_with("STATUS: ");
    let lines = answer.split('\n').map(|line| match deciding(line) && !code.is_empty() {
        true => format!("{line} {code}"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
