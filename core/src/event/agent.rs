//! Sending an agent out, and what comes back.

use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

use super::{Artifact, CostSource, Money};
use crate::model::{Answer, Change, Oid, Purpose, Role, Seq, Tier};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSkipped {
    pub archetype: String,
    pub reason: String,
    /// It failed and the run continues without it; it was not skipped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStart {
    pub archetype: String,
    pub role: Role,
    pub model: Tier,
    pub prompt_summary: String,
    pub purpose: Purpose,
    /// Counts every start of this archetype in this cycle, from 1.
    pub attempt: u32,
    pub cycle: u32,
    /// The agent spec it is started with.
    pub agent: String,
    /// The provider account behind that program; agents on one account share its limits (C6).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub account: String,
    /// The commit its working copy shows.
    pub at: Oid,
    pub silence_ms: u64,
    pub total_ms: u64,
    /// Wait before starting: the account is limited.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait_ms: u64,
    /// Added to the ordinary brief of this attempt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Its own earlier answer, which it is to correct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Artifact>,
    /// Reserved for it until its cost is known (I4).
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub reserved_usd: Money,
    /// The session to resume, if its client can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<Session>,
}

/// A client's session, so that an agent that has to correct its answer still has its context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// As the client calls it.
    pub id: String,
    /// What the client had counted in it so far. Some continue counting where they stopped (I4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Tokens>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentComplete {
    pub archetype: String,
    pub start_seq: Seq,
    pub duration_ms: u64,
    pub artifacts: Vec<String>,
    pub digest: String,
    pub summary: String,
    pub model: Tier,
    pub answer: Answer,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_cost_usd: Option<Money>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    /// Odd things seen: processes left behind, files a reader changed, output cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The conversation behind this answer, if it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Session>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<Player>,
    /// How long the brief was.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub brief_chars: u64,
}

/// The client and model that really worked; a field is empty if the client did not report it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Player {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub vendor: String,
    /// As its vendor calls it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// Of the client.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    /// Of the input, what came from a cache and what was put into one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write: u64,
}

impl Tokens {
    pub fn plus(self, more: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_add(more.input),
            output: self.output.saturating_add(more.output),
            cache_read: self.cache_read.saturating_add(more.cache_read),
            cache_write: self.cache_write.saturating_add(more.cache_write),
        }
    }

    /// What is left of each when the other is taken off, and nothing where that would be less.
    pub fn minus(self, less: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_sub(less.input),
            output: self.output.saturating_sub(less.output),
            cache_read: self.cache_read.saturating_sub(less.cache_read),
            cache_write: self.cache_write.saturating_sub(less.cache_write),
        }
    }

    /// The greater of each.
    pub fn or_more(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input.max(other.input),
            output: self.output.max(other.output),
            cache_read: self.cache_read.max(other.cache_read),
            cache_write: self.cache_write.max(other.cache_write),
        }
    }
}

/// Why an attempt failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// The program could not be started.
    NotStarted,
    /// It ended with another exit code than 0 or 75.
    Exit,
    Signal,
    /// It printed nothing.
    Empty,
    /// Its output can't be read as the required answer.
    Garbled,
    /// A Maker that changed nothing.
    NoWork,
    /// Exit 75: try later. Not counted as a failure.
    Busy,
    /// No output for too long.
    Silence,
    /// Took too long altogether.
    TooLong,
    /// Its working copy is gone or can't be read.
    WorkspaceGone,
    /// The provider does not know us: no key, a wrong one, no login. Nobody else would fare better.
    Auth,
    /// What the account may use is used up.
    Quota,
    /// Too many requests for the moment.
    RateLimit,
    /// The provider has trouble of its own.
    Overload,
    /// The brief, or what the agent read on the way, does not fit into its memory.
    ContextTooLong,
    /// The provider will not serve this request: a model it does not have, a task it declines.
    Refused,
    /// The provider can't be reached, or the line broke for good.
    Network,
    /// A Maker that was not allowed to do what it was sent for.
    PermissionDenied,
    /// It was stopped because it had used up its share of the budget.
    Budget,
}

impl Failure {
    /// No fault of the agent: the account is limited, and a retry may succeed later. Opens the
    /// breaker of the account (C6).
    pub fn is_busy(self) -> bool {
        match self {
            Failure::Busy | Failure::RateLimit | Failure::Overload | Failure::Quota => true,
            Failure::NotStarted
            | Failure::Exit
            | Failure::Signal
            | Failure::Empty
            | Failure::Garbled
            | Failure::NoWork
            | Failure::Silence
            | Failure::TooLong
            | Failure::WorkspaceGone
            | Failure::Auth
            | Failure::ContextTooLong
            | Failure::Refused
            | Failure::Network
            | Failure::PermissionDenied
            | Failure::Budget => false,
        }
    }

    /// The attempt was no use, but the account served it: its breaker has no reason to stay open.
    pub fn was_served(self) -> bool {
        match self {
            Failure::Garbled | Failure::NoWork | Failure::PermissionDenied | Failure::Budget => true,
            Failure::NotStarted
            | Failure::Exit
            | Failure::Signal
            | Failure::Empty
            | Failure::Busy
            | Failure::Silence
            | Failure::TooLong
            | Failure::WorkspaceGone
            | Failure::Auth
            | Failure::Quota
            | Failure::RateLimit
            | Failure::Overload
            | Failure::ContextTooLong
            | Failure::Refused
            | Failure::Network => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFailed {
    pub archetype: String,
    pub start_seq: Seq,
    pub kind: Failure,
    pub reason: String,
    pub duration_ms: u64,
    /// The ref that keeps what it had done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_as: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_cost_usd: Option<Money>,
    /// How that cost is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    /// What it had reported until it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// What its cost rests on, where that is not plain.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// After which time the provider will serve again, as it reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reopens_in_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub played: Option<Player>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub brief_chars: u64,
    /// The session it had begun to work in when the provider cut it short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<InterruptedSession>,
}

/// A session that the next attempt can resume, if it is still the same agent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptedSession {
    /// The agent spec it was started with.
    pub agent: String,
    #[serde(flatten)]
    pub session: Session,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentTimeout(pub AgentFailed);

impl Deref for AgentTimeout {
    type Target = AgentFailed;

    fn deref(&self) -> &AgentFailed {
        &self.0
    }
}

impl DerefMut for AgentTimeout {
    fn deref_mut(&mut self) -> &mut AgentFailed {
        &mut self.0
    }
}

/// The program died or was stopped while this agent was running. It counts as no failure and is started again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLost {
    pub archetype: String,
    pub start_seq: Seq,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_as: Option<String>,
    /// The cost it had reported until then, if more than was reserved for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_cost_usd: Option<Money>,
    /// How that cost is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
}

/// What a running agent has used so far. Reported only in runs with a limit, and only from the amount on that was
/// reserved for it: up to there nothing follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentUsage {
    pub archetype: String,
    /// The line of its start. It is not answered by this.
    pub attempt_seq: Seq,
    pub estimated_cost_usd: Money,
    pub cost_source: CostSource,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// The model, as the client reports it or as it was asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_nothing(money: &Money) -> bool {
    money.0 == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
