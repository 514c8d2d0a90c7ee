//! Chat Completions, as defined by OpenAI and implemented by others: llama.cpp, vLLM, OpenRouter and many more.
//!
//! What to beware of: the count comes after the end, in a piece without choices, and from some never; calls come in
//! pieces with an index, which some leave out; an error may come in the middle of a stream.

use archeflow_core::event::Tokens;
use serde_json::{Value, json};

use super::talk::{ConversationPart, ModelReply, ModelRequest, ReplyEnd, number, text};

/// `strict` is OpenAI itself, which has a name of its own for the most an answer may have.
pub(super) fn body(ask: &ModelRequest<'_>, strict: bool) -> Value {
    let mut messages = vec![json!({"role": "system", "content": ask.system})];
    messages.extend(ask.said.iter().flat_map(messages_of));
    let mut body = json!({
        "model": ask.model,
        "stream": true,
        "stream_options": {"include_usage": true},
        "messages": messages,
    });
    if !ask.tools.is_empty() {
        let tools: Vec<Value> = ask.tools.iter().map(offer).collect();
        body["tools"] = Value::Array(tools);
        body["tool_choice"] = json!(if ask.may_call { "auto" } else { "none" });
    }
    if let Some(tokens) = ask.tokens {
        body[if strict { "max_completion_tokens" } else { "max_tokens" }] = json!(tokens);
    }
    body
}

pub(super) fn offer(tool: &super::talk::ToolSpec) -> Value {
    let function = json!({"name": tool.name, "description": tool.about, "parameters": tool.input});
    json!({"type": "function", "function": function})
}

fn messages_of(said: &ConversationPart) -> Vec<Value> {
    match said {
        ConversationPart::User { text } => vec![json!({"role": "user", "content": text})],
        ConversationPart::Model { text, calls } if calls.is_empty() => {
            vec![json!({"role": "assistant", "content": text})]
        }
        ConversationPart::Model { text, calls } => {
            let call = |call: &super::talk::ToolCall| {
                let arguments = if call.object().is_some() { call.input.as_str() } else { "{}" };
                let function = json!({"name": call.name, "arguments": arguments});
                json!({"id": call.id, "type": "function", "function": function})
            };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            vec![json!({"role": "assistant", "content": text, "tool_calls": calls})]
        }
        ConversationPart::Tools { results } => results
            .iter()
            .map(|result| json!({"role": "tool", "tool_call_id": result.id, "content": result.text}))
            .collect(),
    }
}

/// A piece of a stream, or a whole answer: they differ in one name.
pub(super) fn hear(event: &Value, reply: &mut ModelReply) {
    if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
        reply.fault = Some(fault(error));
        return;
    }
    if !text(event, "model").is_empty() {
        text(event, "model").clone_into(&mut reply.model);
    }
    if let Some(choice) = event.pointer("/choices/0") {
        let part = choice.get("delta").or_else(|| choice.get("message")).unwrap_or(&Value::Null);
        reply.say(text(part, "content"));
        reply.think(text(part, "reasoning_content"));
        reply.think(text(part, "reasoning"));
        let calls = part.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
        for (n, call) in (0..).zip(calls) {
            take_call(call, n, reply);
        }
        close(choice, part, reply);
    }
    if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
        reply.tokens = tokens(usage);
        reply.counted = reply.tokens.is_some();
    }
}

fn take_call(call: &Value, n: u64, reply: &mut ModelReply) {
    let function = call.get("function").unwrap_or(&Value::Null);
    let id = text(call, "id");
    // Providers that leave the index out send whole calls, one after the other.
    let at = number(call, "index").unwrap_or_else(|| {
        let known = reply.calls.iter().find(|(_, known)| !id.is_empty() && known.id == id);
        known.map_or(reply.calls.len() as u64 + n, |(at, _)| *at)
    });
    let input = match function.get("arguments") {
        Some(Value::String(text)) => text.clone(),
        Some(object @ Value::Object(_)) => object.to_string(),
        Some(_) | None => String::new(),
    };
    reply.written += input.len() as u64;
    let kept = reply.call(at);
    if !id.is_empty() {
        id.clone_into(&mut kept.id);
    }
    if kept.name.is_empty() {
        text(function, "name").clone_into(&mut kept.name);
    }
    kept.input.push_str(&input);
}

fn close(choice: &Value, part: &Value, reply: &mut ModelReply) {
    let stop = match text(choice, "finish_reason") {
        "" => return,
        "length" => ReplyEnd::Cut,
        "content_filter" => ReplyEnd::Refused("the provider's filter stopped it".to_owned()),
        _ if !text(part, "refusal").is_empty() => ReplyEnd::Refused(text(part, "refusal").to_owned()),
        _ => ReplyEnd::Done,
    };
    reply.stop = Some(stop);
}

/// Cached tokens are part of the input already. Both numbers, or it is no count.
fn tokens(usage: &Value) -> Option<Tokens> {
    let (input, output) = (number(usage, "prompt_tokens")?, number(usage, "completion_tokens")?);
    let cached = usage.pointer("/prompt_tokens_details/cached_tokens").and_then(Value::as_u64);
    Some(Tokens { input, output, cache_read: cached.unwrap_or(0), cache_write: 0 })
}

fn fault(error: &Value) -> (u64, String) {
    let code = text(error, "code");
    let words = if error.is_string() { error.as_str().unwrap_or_default() } else { text(error, "message") };
    let status = match (number(error, "code"), code, text(error, "type")) {
        (Some(status), _, _) => status,
        (_, "rate_limit_exceeded" | "insufficient_quota", _) => 429,
        (_, "invalid_api_key", _) => 401,
        (_, "context_length_exceeded", _) | (_, _, "invalid_request_error") => 400,
        _ => 500,
    };
    let told = if code.is_empty() { words.to_owned() } else { format!("{words} ({code})") };
    (status, told)
}
