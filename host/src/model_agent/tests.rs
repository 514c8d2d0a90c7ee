//! Streams of each provider, cut at every byte, and what is asked of each.

use archeflow_core::event::Tokens;
use serde_json::{Value, json};

use super::frames::{Frames, StreamFrame};
use super::talk::{ConversationPart, ModelReply, ModelRequest, ReplyEnd, ToolCall, ToolResult, ToolSpec};
use super::{Provider, anthropic, ollama, openai};

/// The reply of a stream that arrives in these pieces.
fn heard(provider: Provider, pieces: &[&[u8]]) -> ModelReply {
    let (mut frames, mut reply) = (Frames::new(provider.form()), ModelReply::default());
    let found: Vec<StreamFrame> = pieces.iter().flat_map(|piece| frames.feed(piece)).collect();
    for frame in found.into_iter().chain(frames.end()) {
        match frame {
            StreamFrame::Value(value) => provider.hear(&value, &mut reply),
            StreamFrame::Done => drop(reply.stop.get_or_insert(ReplyEnd::Done)),
            StreamFrame::Garbled => reply.garbled = true,
        }
    }
    reply
}

fn events(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: x\ndata: {event}\n\n")).collect()
}

fn anthropic_stream() -> String {
    events(&[
        json!({"type": "message_start", "message": {"model": "claude-x-20990101", "usage":
            {"input_tokens": 5, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 25, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Grüße, "}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "日本"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t1", "name": "read", "input": {}}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"path\":"}}),
        json!({"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "\"ä\"}"}}),
        json!({"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t2", "name": "list", "input": {}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ])
}

fn openai_stream() -> String {
    let chunk = |delta: Value, stop: Value| json!({"model": "gpt-x", "choices": [{"delta": delta, "finish_reason": stop}]});
    let mut text = events(&[
        chunk(json!({"role": "assistant", "content": ""}), Value::Null),
        chunk(json!({"content": "Grüße, "}), Value::Null),
        chunk(json!({"content": "日本"}), Value::Null),
        chunk(
            json!({"tool_calls": [{"index": 0, "id": "t1", "function": {"name": "read", "arguments": "{\"path\":"}}]}),
            Value::Null,
        ),
        chunk(json!({"tool_calls": [{"index": 0, "function": {"arguments": "\"ä\"}"}}]}), Value::Null),
        chunk(
            json!({"tool_calls": [{"index": 1, "id": "t2", "function": {"name": "list", "arguments": ""}}]}),
            Value::Null,
        ),
        chunk(json!({}), json!("tool_calls")),
        json!({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 70}}}),
    ]);
    text.push_str(": bye\n\ndata: [DONE]\n\n");
    text
}

fn ollama_stream() -> String {
    let line = |message: Value| json!({"model": "qwen", "message": message, "done": false});
    let call =
        |name: &str, input: Value| json!({"tool_calls": [{"function": {"name": name, "arguments": input}}]});
    let lines = [
        line(json!({"content": "Grüße, "})),
        line(json!({"content": "日本", "thinking": "hm"})),
        line(call("read", json!({"path": "ä"}))),
        line(call("list", json!({}))),
        json!({"model": "qwen", "message": {"content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 100, "eval_count": 20}),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

#[test]
fn m_g6_an_answer_is_the_same_wherever_its_stream_is_cut() {
    for (provider, stream, model, cached) in [
        (Provider::Anthropic, anthropic_stream(), "claude-x-20990101", (70, 25)),
        (Provider::Openai, openai_stream(), "gpt-x", (70, 0)),
        (Provider::Ollama, ollama_stream(), "qwen", (0, 0)),
    ] {
        let bytes = stream.as_bytes();
        let whole = heard(provider, &[bytes]);
        assert_eq!((whole.text.as_str(), whole.model.as_str()), ("Grüße, 日本", model), "{provider:?}");
        let tokens = Tokens { input: 100, output: 20, cache_read: cached.0, cache_write: cached.1 };
        assert_eq!((whole.tokens, whole.counted, &whole.stop), (Some(tokens), true, &Some(ReplyEnd::Done)));
        let calls: Vec<(&str, Value)> = whole
            .calls
            .values()
            .map(|call| (call.name.as_str(), Value::Object(call.object().unwrap_or_default())))
            .collect();
        assert_eq!(calls, [("read", json!({"path": "ä"})), ("list", json!({}))], "{provider:?}");
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(heard(provider, &[left, right]), whole, "{provider:?} cut at {cut}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(heard(provider, &single), whole, "{provider:?} byte by byte");
        // A stream that ends early is never taken for one that is complete with its count.
        for end in 0..bytes.len() - 24 {
            let part = heard(provider, &[bytes.get(..end).unwrap_or_default()]);
            assert!(part.stop.is_none() || !part.counted || part == whole, "{provider:?} ends at {end}");
        }
    }
}

#[test]
fn m_g6_an_answer_that_does_not_stream_is_the_same() {
    let tokens = Some(Tokens { input: 7, output: 3, ..Tokens::default() });
    for (provider, answer) in [
        (
            Provider::Anthropic,
            json!({"type": "message", "model": "m", "stop_reason": "end_turn", "usage": {"input_tokens": 7, "output_tokens": 3},
                "content": [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "1", "name": "read", "input": {"path": "a"}}]}),
        ),
        (
            Provider::Openai,
            json!({"model": "m", "usage": {"prompt_tokens": 7, "completion_tokens": 3}, "choices": [{"finish_reason": "stop", "message":
                {"content": "hi", "tool_calls": [{"id": "1", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]}}]}),
        ),
    ] {
        let mut reply = ModelReply::default();
        provider.hear(&answer, &mut reply);
        assert_eq!((reply.text.as_str(), reply.tokens, reply.stop), ("hi", tokens, Some(ReplyEnd::Done)));
        let call = reply.calls.into_values().next();
        assert_eq!(
            call.map(|call| (call.name.clone(), call.input)),
            Some(("read".to_owned(), "{\"path\":\"a\"}".to_owned()))
        );
    }
}

#[test]
fn m_g6_m_g7_text_in_the_middle_of_a_stream_is_read() {
    for (provider, event, wanted) in [
        (
            Provider::Anthropic,
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}),
            Some(529),
        ),
        (Provider::Anthropic, json!({"type": "error", "error": {"type": "rate_limit_error"}}), Some(429)),
        (Provider::Anthropic, json!({"type": "error"}), Some(500)),
        (Provider::Openai, json!({"error": {"message": "x", "code": 502}}), Some(502)),
        (Provider::Openai, json!({"error": {"message": "x", "code": "insufficient_quota"}}), Some(429)),
        (Provider::Openai, json!({"error": "x"}), Some(500)),
        (Provider::Openai, json!({"error": null, "choices": []}), None),
        (Provider::Ollama, json!({"error": "out of memory"}), Some(500)),
        // Nothing here is what it should be, and nothing may fall over it.
        (Provider::Anthropic, json!([1, "x"]), None),
        (Provider::Anthropic, json!({"type": "message_start", "message": 5}), None),
        (Provider::Anthropic, json!({"type": "content_block_delta", "index": "x", "delta": []}), None),
        (Provider::Anthropic, json!({"type": "message_delta", "usage": {"output_tokens": -4}}), None),
        (
            Provider::Openai,
            json!({"choices": [{"delta": {"tool_calls": [7, {"index": 1e99}]}}], "usage": 3}),
            None,
        ),
        (Provider::Openai, json!({"choices": {"0": 1}}), None),
        (Provider::Ollama, json!({"message": {"tool_calls": [{"function": 3}]}, "done": "yes"}), None),
        (Provider::Ollama, Value::Null, None),
    ] {
        let mut reply = ModelReply::default();
        provider.hear(&event, &mut reply);
        assert_eq!(reply.fault.map(|(status, _)| status), wanted, "{event}");
    }
}

#[test]
fn issue_4_each_provider_is_asked_in_its_own_words() {
    let call = |id: &str, input: &str| ToolCall {
        id: id.to_owned(),
        name: "read".to_owned(),
        input: input.to_owned(),
    };
    let result = |id: &str| ToolResult {
        id: id.to_owned(),
        name: "read".to_owned(),
        text: "1\tx".to_owned(),
        failed: false,
    };
    let said = [
        ConversationPart::User { text: "the brief".to_owned() },
        ConversationPart::Model {
            text: String::new(),
            calls: vec![call("1", "{\"path\":\"a\"}"), call("2", "not JSON")],
        },
        ConversationPart::Tools { results: vec![result("1"), result("2")] },
    ];
    let tools = [ToolSpec { name: "read", about: "reads", input: json!({"type": "object"}) }];
    let ask = ModelRequest {
        model: "m",
        system: "rules",
        said: &said,
        tools: &tools,
        may_call: true,
        tokens: Some(9),
        context: 4_096,
    };

    let body = anthropic::body(&ask);
    assert_eq!((&body["max_tokens"], &body["tool_choice"]["type"]), (&json!(9), &json!("auto")));
    assert_eq!(body["messages"][1]["content"][1]["input"], json!({}), "an input is always an object");
    assert_eq!(body["messages"][2]["content"][1]["tool_use_id"], "2");
    let marks = body.to_string().matches("cache_control").count();
    assert_eq!(marks, 3, "rules, brief and last word; four are allowed");

    let body = openai::body(&ask, false);
    assert_eq!((&body["max_tokens"], &body["messages"][0]["role"]), (&json!(9), &json!("system")));
    assert_eq!(body["messages"][2]["tool_calls"][1]["function"]["arguments"], "{}");
    assert_eq!(body["messages"][4]["tool_call_id"], "2");
    assert_eq!(openai::body(&ask, true)["max_completion_tokens"], 9);
    let last = ModelRequest { may_call: false, tokens: None, ..ask };
    assert_eq!(
        (&openai::body(&last, false)["tool_choice"], &openai::body(&last, false)["max_tokens"]),
        (&json!("none"), &Value::Null)
    );
    assert_eq!(anthropic::body(&last)["tool_choice"]["type"], "none");

    let body = ollama::body(&ask);
    assert_eq!(body["options"], json!({"num_ctx": 4_096, "num_predict": 9}));
    assert_eq!(body["messages"][3]["tool_name"], "read");
    assert_eq!(ollama::body(&last)["tools"], Value::Null);
}

#[test]
fn interfaces_1_an_address_is_taken_as_people_write_it() {
    for (provider, base, wanted) in [
        (Provider::Anthropic, "https://a", "https://a/v1/messages"),
        (Provider::Anthropic, "https://a/v1", "https://a/v1/messages"),
        (Provider::Openai, "http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/chat/completions"),
        (Provider::Openai, "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"),
        (Provider::Openai, "https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1/chat/completions"),
        (Provider::Ollama, "http://127.0.0.1:11434", "http://127.0.0.1:11434/api/chat"),
    ] {
        assert_eq!(provider.chat(base), wanted);
    }
}
