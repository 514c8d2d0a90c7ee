//! The lines printed by clients that are part of this program: the bridge to agents that speak a protocol, and the loop
//! around a model without a client. They run as processes of their own, so that limits, kills and sweeps are the same
//! for all agents.

use archeflow_core::event::{Failure, Tokens};
use archeflow_core::model::Money;
use archeflow_core::rules::ledger::Stated;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ClientFault, ClientOutput};

/// One line. Later lines replace earlier ones; the answer comes last and closes the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum OwnRecord {
    /// The conversation, so that it can be resumed.
    Session { id: String },
    /// The model that answers and its version, by its own account.
    Player { model: String, version: String },
    /// Progress, for the live output.
    Note { text: String },
    /// The model has answered: something was used, whether or not the amount is reported.
    Worked,
    /// All that this attempt has used up to here.
    Used { tokens: Tokens, cost_usd: Option<Money> },
    /// A tool call that was refused.
    Denied { tool: String },
    /// A failure it retries after.
    Hitch { kind: Failure, said: String, reopens: Option<u64> },
    /// Why it gave up.
    Fault { kind: Failure, said: String, reopens: Option<u64> },
    /// The whole answer.
    Answer { text: String },
}

impl OwnRecord {
    /// As it is printed, with its end.
    pub fn print(&self) -> String {
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}

pub fn hear(line: &Value, heard: &mut ClientOutput) -> Option<String> {
    match OwnRecord::deserialize(line).ok()? {
        OwnRecord::Session { id } => heard.session = id,
        OwnRecord::Player { model, version } => (heard.model, heard.version) = (model, version),
        OwnRecord::Note { text } => {
            heard.hitch = None;
            return Some(text);
        }
        OwnRecord::Worked => heard.worked = true,
        OwnRecord::Used { tokens, cost_usd } => {
            heard.worked = true;
            heard.tokens = Some(tokens);
            heard.cost = cost_usd.map_or(Stated::Nothing, Stated::Amount);
        }
        OwnRecord::Denied { tool } => {
            let note = format!("was refused {tool}");
            heard.denied.push(tool);
            return Some(note);
        }
        OwnRecord::Hitch { kind, said, reopens } => {
            let note = format!("waits for its provider: {said}");
            heard.hitch = Some(ClientFault { kind, said, reopens });
            return Some(note);
        }
        OwnRecord::Fault { kind, said, reopens } => heard.fault = Some(ClientFault { kind, said, reopens }),
        OwnRecord::Answer { text } => {
            heard.answer = text;
            heard.finished = true;
            heard.hitch = None;
        }
    }
    None
}
