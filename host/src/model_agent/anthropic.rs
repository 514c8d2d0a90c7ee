//! The Messages interface of Anthropic.
//!
//! What to beware of: what was read from a cache and put into one is counted beside the input; the count at the
//! beginning is a first guess of the output; an account without credit is reported with status 400.

use archeflow_core::event::Tokens;
use serde_json::{Value, json};

use super::talk::{ConversationPart, ModelReply, ModelRequest, ReplyEnd, number, text};

/// The default maximum of an answer; the API requires a number.
const TOKENS: u64 = 16_000;

pub(super) fn body(ask: &ModelRequest<'_>) -> Value {
    let tools: Vec<Value> = ask
        .tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.about, "input_schema": tool.input}))
        .collect();
    let mut messages: Vec<Value> = ask.said.iter().map(message).collect();
    // What stays the same from turn to turn is read from the cache: the rules, the brief, and all up to the last word.
    let last = messages.len().saturating_sub(1);
    for (n, message) in messages.iter_mut().enumerate() {
        if (n == 0 || n == last)
            && let Some(block) = message["content"].as_array_mut().and_then(|blocks| blocks.last_mut())
        {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
    }
    json!({
        "model": ask.model,
        "max_tokens": ask.tokens.unwrap_or(TOKENS),
        "stream": true,
        "system": [{"type": "text", "text": ask.system, "cache_control": {"type": "ephemeral"}}],
        "tools": tools,
        "tool_choice": {"type": if ask.may_call { "auto" } else { "none" }},
        "messages": messages,
    })
}

fn message(said: &ConversationPart) -> Value {
    match said {
        ConversationPart::User { text } => {
            json!({"role": "user", "content": [{"type": "text", "text": text}]})
        }
        ConversationPart::Model { text, calls } => {
            let mut blocks = Vec::new();
            if !text.trim().is_empty() {
                blocks.push(json!({"type": "text", "text": text.trim_end()}));
            }
            blocks.extend(calls.iter().map(|call| {
                let input = call.object().unwrap_or_default();
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
            }));
            json!({"role": "assistant", "content": blocks})
        }
        ConversationPart::Tools { results } => {
            let blocks: Vec<Value> = results
                .iter()
                .map(|result| {
                    json!({
                        "type": "tool_result", "tool_use_id": result.id, "content": result.text,
                        "is_error": result.failed,
                    })
                })
                .collect();
            json!({"role": "user", "content": blocks})
        }
    }
}

pub(super) fn hear(event: &Value, reply: &mut ModelReply) {
    let at = number(event, "index").unwrap_or_default();
    match text(event, "type") {
        "message_start" => {
            let message = event.get("message").unwrap_or(&Value::Null);
            text(message, "model").clone_into(&mut reply.model);
            count(message, reply);
        }
        "content_block_start" => block(at, event.get("content_block").unwrap_or(&Value::Null), reply),
        "content_block_delta" => {
            let delta = event.get("delta").unwrap_or(&Value::Null);
            match text(delta, "type") {
                "text_delta" => reply.say(text(delta, "text")),
                "input_json_delta" => {
                    let part = text(delta, "partial_json");
                    reply.written += part.len() as u64;
                    reply.call(at).input.push_str(part);
                }
                _ => reply.think(text(delta, "thinking")),
            }
        }
        "message_delta" => {
            close(event.get("delta").unwrap_or(&Value::Null), reply);
            count(event, reply);
            reply.counted = reply.tokens.is_some();
        }
        "message" => {
            text(event, "model").clone_into(&mut reply.model);
            let blocks = event.get("content").and_then(Value::as_array).into_iter().flatten();
            for (at, content) in (0..).zip(blocks) {
                block(at, content, reply);
            }
            close(event, reply);
            count(event, reply);
            reply.counted = reply.tokens.is_some();
        }
        "error" => reply.fault = Some(fault(event)),
        // Pings, ends of blocks, and future events.
        _ => {}
    }
}

fn block(at: u64, block: &Value, reply: &mut ModelReply) {
    match text(block, "type") {
        "text" => reply.say(text(block, "text")),
        "tool_use" => {
            let call = reply.call(at);
            text(block, "id").clone_into(&mut call.id);
            text(block, "name").clone_into(&mut call.name);
            // An empty object precedes input that comes in pieces.
            if let Some(input) = block.get("input").filter(|input| **input != json!({})) {
                call.input = input.to_string();
            }
        }
        _ => {}
    }
}

fn close(end: &Value, reply: &mut ModelReply) {
    let stop = match text(end, "stop_reason") {
        "" => return,
        "max_tokens" | "model_context_window_exceeded" => ReplyEnd::Cut,
        "refusal" => ReplyEnd::Refused("the model declined the task".to_owned()),
        _ => ReplyEnd::Done,
    };
    reply.stop = Some(stop);
}

/// Later counts replace earlier ones where they are greater. Cached tokens are part of the input here.
fn count(holder: &Value, reply: &mut ModelReply) {
    let Some(usage) = holder.get("usage").filter(|usage| usage.is_object()) else { return };
    let before = reply.tokens.unwrap_or_default();
    let told = |name: &str, before: u64| number(usage, name).unwrap_or(0).max(before);
    let cache_read = told("cache_read_input_tokens", before.cache_read);
    let cache_write = told("cache_creation_input_tokens", before.cache_write);
    let cached = before.cache_read.saturating_add(before.cache_write);
    let plain = told("input_tokens", before.input.saturating_sub(cached));
    let input = plain.saturating_add(cache_read).saturating_add(cache_write);
    let output = told("output_tokens", before.output);
    reply.tokens = Some(Tokens { input, output, cache_read, cache_write });
}

/// What an error means as a status, and its words.
fn fault(event: &Value) -> (u64, String) {
    let error = event.get("error").unwrap_or(event);
    let status = match text(error, "type") {
        "authentication_error" => 401,
        "permission_error" => 403,
        "billing_error" => 402,
        "rate_limit_error" => 429,
        "overloaded_error" => 529,
        "invalid_request_error" | "not_found_error" => 400,
        "request_too_large" => 413,
        _ => 500,
    };
    (status, text(error, "message").to_owned())
}
