//! Ollama's own interface, a JSON value on each line.
//!
//! Its imitation of OpenAI's would be less to write, but has no field for the context size: what
//! is too long for Ollama's small default is then cut off at the front, brief first, without a word.

use archeflow_core::event::Tokens;
use serde_json::{Value, json};

use super::openai;
use super::talk::{ConversationPart, ModelReply, ModelRequest, ReplyEnd, number, text};

pub(super) fn body(ask: &ModelRequest<'_>) -> Value {
    let mut messages = vec![json!({"role": "system", "content": ask.system})];
    messages.extend(ask.said.iter().flat_map(messages_of));
    let mut options = json!({"num_ctx": ask.context});
    if let Some(tokens) = ask.tokens {
        options["num_predict"] = json!(tokens);
    }
    let mut body = json!({"model": ask.model, "stream": true, "messages": messages, "options": options});
    // There is no way to offer tools that may not be used.
    if ask.may_call {
        body["tools"] = ask.tools.iter().map(openai::offer).collect();
    }
    body
}

fn messages_of(said: &ConversationPart) -> Vec<Value> {
    match said {
        ConversationPart::User { text } => vec![json!({"role": "user", "content": text})],
        ConversationPart::Model { text, calls } => {
            let call = |call: &super::talk::ToolCall| {
                let arguments = call.object().unwrap_or_default();
                json!({"function": {"name": call.name, "arguments": arguments}})
            };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            let mut message = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                message["tool_calls"] = Value::Array(calls);
            }
            vec![message]
        }
        ConversationPart::Tools { results } => results
            .iter()
            .map(|result| json!({"role": "tool", "tool_name": result.name, "content": result.text}))
            .collect(),
    }
}

pub(super) fn hear(line: &Value, reply: &mut ModelReply) {
    if let Some(error) = line.get("error") {
        let words = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
        reply.fault = Some((500, words));
        return;
    }
    if !text(line, "model").is_empty() {
        text(line, "model").clone_into(&mut reply.model);
    }
    let message = line.get("message").unwrap_or(&Value::Null);
    reply.say(text(message, "content"));
    reply.think(text(message, "thinking"));
    for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
        let function = call.get("function").unwrap_or(&Value::Null);
        let at = reply.calls.len() as u64;
        let input = function.get("arguments").map(ToString::to_string).unwrap_or_default();
        reply.written += input.len() as u64;
        let kept = reply.call(at);
        kept.id = format!("call-{at}");
        text(function, "name").clone_into(&mut kept.name);
        kept.input = input;
    }
    if line.get("done").and_then(Value::as_bool) == Some(true) {
        reply.stop = Some(if text(line, "done_reason") == "length" { ReplyEnd::Cut } else { ReplyEnd::Done });
        // A prompt it still has in memory is not counted again, and then not reported.
        let output = number(line, "eval_count");
        let input = number(line, "prompt_eval_count").unwrap_or(0);
        reply.tokens = output.map(|output| Tokens { input, output, ..Tokens::default() });
        reply.counted = reply.tokens.is_some();
    }
}
