//! Steering a run from another process.
//!
//! The process that drives a run listens on a unix socket: one JSON object per line in, one out. Only its own user may
//! connect, and no process that the run itself started: an agent must not approve its own work. Requests become
//! messages in the driver's inbox, so a client can at most make the run write a line, never delay it.

pub mod client;
mod server;
mod steer;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;

use archeflow_core::model::Seq;
use serde_json::{Value, json};

use crate::platform::files as platform;
use crate::platform::process::acting_user;
use crate::store::files;

pub use server::{Server, serve};
pub(crate) use steer::{Effect, effect};

/// The longest line either side reads, with its line break.
pub const LONGEST_LINE: usize = 64 * 1024;

/// `sun_path` has 104 bytes on some systems, 108 on Linux.
const LONGEST_PATH: usize = 100;

/// Where a request comes from. Only a page and the server for coding agents say so of themselves; everything else that comes
/// by the socket is called that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Requester {
    #[default]
    Socket,
    Page,
    /// A person's answer that a client of the server for coding agents brought.
    Mcp,
}

impl Requester {
    /// `by` in the journal.
    pub const fn name(self) -> &'static str {
        match self {
            Requester::Socket => "control",
            Requester::Page => "ui",
            Requester::Mcp => "mcp",
        }
    }

    /// Of a decision that a command was given with `--by`.
    pub fn of(by: Option<&str>) -> Requester {
        let known = [Requester::Page, Requester::Mcp];
        known.into_iter().find(|known| by == Some(known.name())).unwrap_or_default()
    }
}

/// What another process may ask of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Answer the open question. With `question`, only if it is the one with that number.
    Answer {
        text: String,
        question: Option<Seq>,
        by: Requester,
    },
    /// The same as the first SIGINT.
    Stop,
    Pause {
        by: Requester,
    },
    Resume {
        by: Requester,
    },
    Status,
}

/// Why a request was refused. The reasons are for scripts, the messages for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ControlRefusal {
    #[error("the line is not a JSON object with a field \"request\": {why}")]
    Malformed { why: String },
    #[error("a line may have {LONGEST_LINE} bytes at most")]
    TooLong,
    #[error("unknown request {name:?}; known are {}", Request::NAMES.join(", "))]
    Unknown { name: String },
    #[error("another user drives this run")]
    OtherUser,
    #[error("processes that a run started can't steer it")]
    FromInside,
    #[error("too many connections; try again")]
    TooMany,
    #[error("nothing is being asked")]
    NothingAsked,
    #[error("that question is no longer open")]
    OtherQuestion,
    #[error("the answer is empty")]
    EmptyAnswer,
    #[error("the run is already paused")]
    AlreadyPaused,
    #[error("the run is not paused")]
    NotPaused,
    #[error("the run is being stopped")]
    Stopping,
    #[error("the run has ended")]
    Ended,
    #[error("the run did not reply in time; it may still carry the request out")]
    NoReply,
}

impl ControlRefusal {
    pub fn reason(&self) -> &'static str {
        match self {
            ControlRefusal::Malformed { .. } => "malformed",
            ControlRefusal::TooLong => "too_long",
            ControlRefusal::Unknown { .. } => "unknown_request",
            ControlRefusal::OtherUser => "other_user",
            ControlRefusal::FromInside => "from_inside",
            ControlRefusal::TooMany => "too_many_connections",
            ControlRefusal::NothingAsked => "nothing_asked",
            ControlRefusal::OtherQuestion => "other_question",
            ControlRefusal::EmptyAnswer => "empty_answer",
            ControlRefusal::AlreadyPaused => "already_paused",
            ControlRefusal::NotPaused => "not_paused",
            ControlRefusal::Stopping => "stopping",
            ControlRefusal::Ended => "ended",
            ControlRefusal::NoReply => "no_reply",
        }
    }
}

/// A request on its way to the driver, and where its reply goes.
#[derive(Debug)]
pub struct Steering {
    pub request: Request,
    reply: SyncSender<Result<Value, ControlRefusal>>,
}

impl Steering {
    /// A reply to a client that went away is dropped.
    pub(crate) fn reply(self, reply: Result<Value, ControlRefusal>) {
        let _ = self.reply.try_send(reply);
    }
}

impl Request {
    const NAMES: [&'static str; 5] = ["answer", "stop", "pause", "resume", "status"];

    fn parse(line: &[u8]) -> Result<Request, ControlRefusal> {
        let malformed = |why: &str| ControlRefusal::Malformed { why: why.to_owned() };
        let value: Value = serde_json::from_slice(line).map_err(|error| malformed(&error.to_string()))?;
        let name = value.get("request").and_then(Value::as_str).ok_or_else(|| malformed("there is none"))?;
        let by = Requester::of(value.get("by").and_then(Value::as_str));
        match name {
            "answer" => {
                let text = value.get("text").and_then(Value::as_str);
                let text = text.ok_or_else(|| malformed("an answer needs a \"text\""))?.trim().to_owned();
                let question = match value.get("question") {
                    None | Some(Value::Null) => None,
                    Some(seq) => Some(seq.as_u64().ok_or_else(|| malformed("\"question\" is no number"))?),
                };
                if text.is_empty() {
                    Err(ControlRefusal::EmptyAnswer)
                } else {
                    Ok(Request::Answer { text, question, by })
                }
            }
            "stop" => Ok(Request::Stop),
            "pause" => Ok(Request::Pause { by }),
            "resume" => Ok(Request::Resume { by }),
            "status" => Ok(Request::Status),
            other => Err(ControlRefusal::Unknown { name: other.chars().take(40).collect() }),
        }
    }

    fn line(&self) -> String {
        let (mut object, by) = match self {
            Request::Answer { text, question, by } => {
                (json!({ "request": "answer", "text": text, "question": question }), *by)
            }
            Request::Stop => (json!({ "request": "stop" }), Requester::Socket),
            Request::Pause { by } => (json!({ "request": "pause" }), *by),
            Request::Resume { by } => (json!({ "request": "resume" }), *by),
            Request::Status => (json!({ "request": "status" }), Requester::Socket),
        };
        if by != Requester::Socket {
            object["by"] = by.name().into();
        }
        format!("{object}\n")
    }
}

fn reply_line(reply: &Result<Value, ControlRefusal>) -> String {
    let object = match reply {
        Ok(value) => {
            let mut object = value.clone();
            object["ok"] = true.into();
            object
        }
        Err(refusal) => json!({ "ok": false, "reason": refusal.reason(), "message": refusal.to_string() }),
    };
    format!("{object}\n")
}

/// Where the socket of a run is: in the user's state directory; if that path would be too long for a socket, in
/// `runtime` ($XDG_RUNTIME_DIR), else in a folder of this user's below `/tmp`. The name is a hash, so it has one length
/// for every repository and run.
pub fn socket(state: &Path, runtime: Option<&Path>, events: &Path, run_id: &str) -> PathBuf {
    let mut key = events.as_os_str().as_encoded_bytes().to_vec();
    key.push(0);
    key.extend_from_slice(run_id.as_bytes());
    let name: String = files::digest(&key).chars().filter(char::is_ascii_hexdigit).take(24).collect();
    let name = format!("{name}.sock");
    let folders = [Some(state.join("control")), runtime.map(|folder| folder.join("archeflow"))];
    let fits = |path: &PathBuf| path.as_os_str().len() <= LONGEST_PATH;
    let path = folders.into_iter().flatten().map(|folder| folder.join(&name)).find(fits);
    path.unwrap_or_else(|| PathBuf::from(format!("/tmp/archeflow-{}", acting_user())).join(&name))
}

/// A folder that only this user can enter.
fn private_folder(folder: &Path) -> io::Result<()> {
    match platform::private_directory().create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let metadata = fs::symlink_metadata(folder)?;
    let ours = platform::owner(&metadata) == acting_user();
    if metadata.is_dir() && ours && platform::mode(&metadata) & 0o077 == 0 {
        return Ok(());
    }
    let why = format!("{} is not a folder of yours alone (mode 0700)", folder.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, why))
}

#[cfg(test)]
mod tests;
