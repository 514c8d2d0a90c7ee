//! How an agent's process ended, in a form that outlives this one.

use serde::{Deserialize, Serialize};

use crate::proc::{Cause, JobEnd, NotStarted};

/// What is known of a process that has ended, kept beside its output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) end: End,
    pub(super) duration_ms: u64,
    pub(super) leftovers: usize,
    pub(super) said_bytes: u64,
    pub(super) cut: bool,
    pub(super) tampered_copy: bool,
    /// Hosts that it asked for in vain, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused_hosts: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    Exited(i32),
    Signaled(i32),
    Silent,
    TooLong,
    Stopped,
    /// Its share of the budget was used up.
    UsedUp,
    OverLimit(String),
    NotStarted(String),
    /// Its sandbox could not be set up, which may work the next time.
    NoSandbox(String),
}

impl Done {
    pub(super) fn of(ended: &JobEnd) -> Done {
        let end = match &ended.cause {
            Cause::Exited(code) => End::Exited(*code),
            Cause::Signaled(signal) => End::Signaled(*signal),
            Cause::Silent => End::Silent,
            Cause::TooLong => End::TooLong,
            Cause::Stopped => End::Stopped,
            Cause::OverLimit(what) => End::OverLimit(what.clone()),
            Cause::NotStarted(NotStarted::Sandbox(why)) => End::NoSandbox(why.clone()),
            Cause::NotStarted(why) => End::NotStarted(why.to_string()),
        };
        Done {
            end,
            duration_ms: u64::try_from(ended.duration.as_millis()).unwrap_or(u64::MAX),
            leftovers: ended.leftovers,
            said_bytes: ended.stdout.bytes_total,
            cut: ended.stdout.truncated,
            tampered_copy: false,
            refused_hosts: None,
        }
    }

    pub(super) fn not_started(why: String) -> Done {
        Done {
            end: End::NotStarted(why),
            duration_ms: 0,
            leftovers: 0,
            said_bytes: 0,
            cut: false,
            tampered_copy: false,
            refused_hosts: None,
        }
    }
}
