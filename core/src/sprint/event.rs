//! The language of a sprint's log. The same three verbs and the same frame as a run's, in a table of its own: what is
//! promised about runs stays as it is, and a sprint has no events of a run.

use serde::{Deserialize, Serialize};

use super::policy::SprintPolicy;
use super::queue::{ItemStatus, QueueItem};
use crate::event::Verb;
use crate::model::named::named;
use crate::model::{Money, Reason, RunStatus, Seq, Share, Workflow};

/// The format of the log. A reader refuses a log with a greater number.
pub const FORMAT: u32 = 1;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SprintEntry {
    pub seq: Seq,
    /// Milliseconds since 1970; decoration, never compared.
    pub at: u64,
    pub event: SprintEvent,
}

/// Everything that can be written in a sprint's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum SprintEvent {
    #[serde(rename = "sprint.start")]
    Start { policy: SprintPolicy, autonomous: bool, version: String, format: u32 },
    #[serde(rename = "sprint.session")]
    Session { fence: u64, tag: String },
    /// An item as the queue has it now; written again when it changed there.
    #[serde(rename = "item.seen")]
    Seen { item: QueueItem },
    /// A person is asked before these begin.
    #[serde(rename = "batch.ask")]
    Ask { items: Vec<String> },
    #[serde(rename = "batch.answered")]
    Answered { start_seq: Seq, yes: bool },
    #[serde(rename = "item.claim")]
    Claim { item: String },
    /// Without a fence another sprint has it.
    #[serde(rename = "item.claimed")]
    Claimed {
        start_seq: Seq,
        fence: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left: Option<UnfinishedRun>,
    },
    #[serde(rename = "item.run")]
    Run {
        item: String,
        attempt: u32,
        budget_usd: Option<Money>,
        /// A smaller workflow than that of its size, since little of the budget is left (BX-28).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workflow: Option<Workflow>,
    },
    /// Resumes a run that was parked, or left by an earlier sprint.
    #[serde(rename = "item.resume")]
    Resume { item: String, run_id: String },
    #[serde(rename = "item.ended")]
    Ended { start_seq: Seq, end: RunEnd },
    #[serde(rename = "item.land")]
    Land { item: String, run_id: String },
    #[serde(rename = "item.landed")]
    Landed { start_seq: Seq, end: RunEnd },
    /// These land together, each on top of the one before.
    #[serde(rename = "batch.land")]
    BatchLand { project: String, candidates: Vec<Candidate> },
    #[serde(rename = "batch.landed")]
    BatchLanded { start_seq: Seq, came: BatchLanding },
    /// Two that run side by side change the same files; without files they no longer do.
    #[serde(rename = "item.overlap")]
    Overlap { a: String, b: String, files: Vec<String> },
    #[serde(rename = "item.settle")]
    Settle {
        item: String,
        fence: Option<u64>,
        status: ItemStatus,
        note: String,
        /// The run that the next owner of the item resumes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        run_id: Option<String>,
    },
    #[serde(rename = "item.settled")]
    Settled { start_seq: Seq },
    /// It is time to try an account again.
    #[serde(rename = "provider.due")]
    Due { account: String },
    /// It has served a run again.
    #[serde(rename = "provider.served")]
    Served { account: String },
    #[serde(rename = "sprint.checkpoint")]
    Checkpoint { tasks: u32, work_ms: u64, spent_usd: Money, first: Share, last: Share },
    /// AF-151: a warning that much of the budget is spent.
    #[serde(rename = "sprint.warning")]
    Warning { spent_usd: Money, percent: u64 },
    #[serde(rename = "sprint.break")]
    Break { why: SprintStop, hard: bool, detail: String },
    #[serde(rename = "sprint.interrupted")]
    Interrupted { signal: i32 },
    #[serde(rename = "sprint.end")]
    End { why: SprintStop, detail: String },
}

/// The result of a run, or of its landing. Without a status there is none: it could not be started, or crashed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    pub run_id: String,
    pub status: Option<RunStatus>,
    pub reason: Option<Reason>,
    pub detail: String,
    pub cycles: u32,
    /// Of the whole run so far.
    pub cost_usd: Money,
    pub took_ms: u64,
    /// The sprint itself stopped it; not a failure.
    #[serde(default)]
    pub stopped: bool,
    /// The commit it landed as.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub landed_as: Option<String>,
    /// The provider accounts it worked with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounts: Vec<String>,
    /// It waits for a provider, and can be resumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<Busy>,
}

/// A run that an earlier sprint began and could not finish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedRun {
    pub run_id: String,
    pub spent_usd: Money,
    /// What it may spend altogether; what it has spent, where its work is done.
    pub budget_usd: Option<Money>,
}

impl UnfinishedRun {
    /// What it may still spend; nothing if it has no bound of its own.
    pub fn promised(&self) -> Option<Money> {
        Some(Money(self.budget_usd?.0.saturating_sub(self.spent_usd.0)))
    }
}

/// Accounts that refused a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Busy {
    pub accounts: Vec<String>,
    /// When they serve again, in milliseconds since 1970, if reported.
    pub until: Option<u64>,
}

/// An approved run that waits to be landed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    pub item: String,
    pub run_id: String,
}

/// The result of landing several at a time. Items not named here wait as before.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchLanding {
    /// Runs that ended: landed, or refused for a reason of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<ItemEnd>,
    /// Items that are red together, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub red: Vec<String>,
    /// Items that are to be landed by themselves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alone: Vec<String>,
    pub took_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemEnd {
    pub item: String,
    pub end: RunEnd,
}

named! {
    /// Why a sprint stops.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SprintStop {
        /// Nothing is left that could be run.
        Done = "done",
        /// A person declined a batch.
        Declined = "declined",
        TaskFailures = "task_failures",
        Budget = "budget",
        Quality = "quality",
    }
}

impl SprintEvent {
    pub fn verb(&self) -> Verb {
        match self {
            SprintEvent::Ask { .. }
            | SprintEvent::Claim { .. }
            | SprintEvent::Run { .. }
            | SprintEvent::Resume { .. }
            | SprintEvent::Land { .. }
            | SprintEvent::BatchLand { .. }
            | SprintEvent::Settle { .. } => Verb::Ordered,
            SprintEvent::Checkpoint { .. }
            | SprintEvent::Warning { .. }
            | SprintEvent::Break { .. }
            | SprintEvent::End { .. } => Verb::Decided,
            SprintEvent::Start { .. }
            | SprintEvent::Session { .. }
            | SprintEvent::Seen { .. }
            | SprintEvent::Answered { .. }
            | SprintEvent::Claimed { .. }
            | SprintEvent::Ended { .. }
            | SprintEvent::Landed { .. }
            | SprintEvent::BatchLanded { .. }
            | SprintEvent::Overlap { .. }
            | SprintEvent::Settled { .. }
            | SprintEvent::Due { .. }
            | SprintEvent::Served { .. }
            | SprintEvent::Interrupted { .. } => Verb::Reported,
        }
    }

    /// The order a report answers.
    #[expect(clippy::wildcard_enum_match_arm, reason = "everything else answers nothing")]
    pub fn answers(&self) -> Option<Seq> {
        match self {
            SprintEvent::Answered { start_seq, .. }
            | SprintEvent::Claimed { start_seq, .. }
            | SprintEvent::Ended { start_seq, .. }
            | SprintEvent::Landed { start_seq, .. }
            | SprintEvent::BatchLanded { start_seq, .. }
            | SprintEvent::Settled { start_seq } => Some(*start_seq),
            _ => None,
        }
    }
}
