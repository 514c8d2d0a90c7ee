//! A conversation with a model, independent of the provider: the messages so far, the request, and the reply.

use std::collections::BTreeMap;

use archeflow_core::event::Tokens;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One part of a conversation, as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum ConversationPart {
    User { text: String },
    Model { text: String, calls: Vec<ToolCall> },
    Tools { results: Vec<ToolResult> },
}

/// A tool the model wants used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    /// As the model wrote it: it should be a JSON object and need not be.
    pub input: String,
}

impl ToolCall {
    /// What the model wants it used with; nothing where that can't be read.
    pub fn object(&self) -> Option<Map<String, Value>> {
        match serde_json::from_str(if self.input.trim().is_empty() { "{}" } else { &self.input }) {
            Ok(Value::Object(object)) => Some(object),
            Ok(_) | Err(_) => None,
        }
    }
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    pub id: String,
    pub name: String,
    pub text: String,
    pub failed: bool,
}

/// A tool as it is described to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    pub name: &'static str,
    pub about: &'static str,
    /// A JSON schema.
    pub input: Value,
}

/// One request.
#[derive(Debug, Clone, Copy)]
pub struct ModelRequest<'a> {
    pub model: &'a str,
    pub system: &'a str,
    pub said: &'a [ConversationPart],
    pub tools: &'a [ToolSpec],
    /// Tools may be used; without, an answer is wanted.
    pub may_call: bool,
    /// The most an answer may have; nothing for what the server thinks right.
    pub tokens: Option<u64>,
    /// How much the model takes in at once, where that can be set.
    pub context: u64,
}

/// Why the model stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyEnd {
    Done,
    /// The answer was longer than it may be.
    Cut,
    /// It will not do this.
    Refused(String),
}

/// What has come back so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelReply {
    pub text: String,
    /// By the number the provider gives them.
    pub calls: BTreeMap<u64, ToolCall>,
    /// The model as the provider calls it.
    pub model: String,
    pub tokens: Option<Tokens>,
    /// The count is the last word on this request.
    pub counted: bool,
    pub stop: Option<ReplyEnd>,
    /// An error in the middle of an answer that began well: what its status would have been, and its words.
    pub fault: Option<(u64, String)>,
    /// Bytes the model has written, shown or not: an upper bound of its tokens.
    pub written: u64,
    /// Something came that is no part of an answer.
    pub garbled: bool,
}

impl ModelReply {
    pub(super) fn say(&mut self, text: &str) {
        self.written += text.len() as u64;
        self.text.push_str(text);
    }

    /// Thoughts are paid for and not kept.
    pub(super) fn think(&mut self, text: &str) {
        self.written += text.len() as u64;
    }

    pub(super) fn call(&mut self, number: u64) -> &mut ToolCall {
        let empty = || ToolCall { id: String::new(), name: String::new(), input: String::new() };
        self.calls.entry(number).or_insert_with(empty)
    }
}

pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn number(value: &Value, name: &str) -> Option<u64> {
    value.get(name).and_then(Value::as_u64)
}
