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

/// What the marks of a row say: `answers` names the order that a report answers, `item` the item that an order is
/// about, `end` and `ends` how runs ended. Nothing for a row without the mark.
macro_rules! marked {
    (answers, answers $seq:ident) => { Some(*$seq) };
    (item, item $item:ident) => { Some($item.as_str()) };
    (ends, end $end:ident) => { vec![$end] };
    (ends, ends $came:ident) => { $came.ends.iter().map(|one| &one.end).collect() };
    (answers, answers $seq:ident $mark:ident $other:ident) => {{
        let _ = $other;
        Some(*$seq)
    }};
    (ends, answers $seq:ident $mark:ident $end:ident) => {{
        let _ = $seq;
        marked!(ends, $mark $end)
    }};
    ($question:ident, $($mark:ident $field:ident)*) => {{
        $(let _ = $field;)*
        Default::default()
    }};
}

/// The enum of all lines, with the verb of each and what its marks say.
macro_rules! sprint_events {
    ($(#[$meta:meta])* pub enum $type:ident {
        $(
            $(#[$about:meta])*
            $verb:ident $name:literal $variant:ident {
                $($(#[$field_meta:meta])* $field:ident: $field_type:ty),* $(,)?
            } $([$($mark:ident $marked:ident)*])?,
        )*
    }) => {
        $(#[$meta])*
        pub enum $type {
            $(
                $(#[$about])*
                #[serde(rename = $name)]
                $variant { $($(#[$field_meta])* $field: $field_type),* },
            )*
        }

        impl $type {
            pub fn verb(&self) -> Verb {
                match self {
                    $($type::$variant { .. } => Verb::$verb,)*
                }
            }

            /// The order a report answers.
            pub fn answers(&self) -> Option<Seq> {
                match self {
                    $($type::$variant { $($($marked,)*)? .. } => marked!(answers, $($($mark $marked)*)?),)*
                }
            }

            /// The item an order is about; `None` for orders about several.
            pub fn item(&self) -> Option<&str> {
                match self {
                    $($type::$variant { $($($marked,)*)? .. } => marked!(item, $($($mark $marked)*)?),)*
                }
            }

            /// How runs ended, where a report says so.
            pub fn ends(&self) -> Vec<&RunEnd> {
                match self {
                    $($type::$variant { $($($marked,)*)? .. } => marked!(ends, $($($mark $marked)*)?),)*
                }
            }
        }
    };
}

sprint_events! {
    /// Everything that can be written in a sprint's log.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "type", content = "data")]
    pub enum SprintEvent {
        Reported "sprint.start" Start { policy: SprintPolicy, autonomous: bool, version: String, format: u32 },
        Reported "sprint.session" Session { fence: u64, tag: String },
        /// An item as the queue has it now; written again when it changed there.
        Reported "item.seen" Seen { item: QueueItem },
        /// A person is asked before these begin.
        Ordered "batch.ask" Ask { items: Vec<String> },
        Reported "batch.answered" Answered { start_seq: Seq, yes: bool } [answers start_seq],
        Ordered "item.claim" Claim { item: String } [item item],
        /// Without a fence another sprint has it.
        Reported "item.claimed" Claimed {
            start_seq: Seq,
            fence: Option<u64>,
            #[serde(default, skip_serializing_if = "Option::is_none")]
            left: Option<UnfinishedRun>,
        } [answers start_seq],
        Ordered "item.run" Run {
            item: String,
            attempt: u32,
            budget_usd: Option<Money>,
            /// A smaller workflow than that of its size, since little of the budget is left (BX-28).
            #[serde(default, skip_serializing_if = "Option::is_none")]
            workflow: Option<Workflow>,
        } [item item],
        /// Resumes a run that was parked, or left by an earlier sprint.
        Ordered "item.resume" Resume { item: String, run_id: String } [item item],
        Reported "item.ended" Ended { start_seq: Seq, end: RunEnd } [answers start_seq end end],
        Ordered "item.land" Land { item: String, run_id: String } [item item],
        Reported "item.landed" Landed { start_seq: Seq, end: RunEnd } [answers start_seq end end],
        /// These land together, each on top of the one before.
        Ordered "batch.land" BatchLand { project: String, candidates: Vec<Candidate> },
        Reported "batch.landed" BatchLanded { start_seq: Seq, came: BatchLanding } [answers start_seq ends came],
        /// Two that run side by side change the same files; without files they no longer do.
        Reported "item.overlap" Overlap { a: String, b: String, files: Vec<String> },
        Ordered "item.settle" Settle {
            item: String,
            fence: Option<u64>,
            status: ItemStatus,
            note: String,
            /// The run that the next owner of the item resumes.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            run_id: Option<String>,
        } [item item],
        Reported "item.settled" Settled { start_seq: Seq } [answers start_seq],
        /// It is time to try an account again.
        Reported "provider.due" Due { account: String },
        /// It has served a run again.
        Reported "provider.served" Served { account: String },
        Decided "sprint.checkpoint" Checkpoint { tasks: u32, work_ms: u64, spent_usd: Money, first: Share, last: Share },
        /// AF-151: a warning that much of the budget is spent.
        Decided "sprint.warning" Warning { spent_usd: Money, percent: u64 },
        Decided "sprint.break" Break { why: SprintStop, hard: bool, detail: String },
        Reported "sprint.interrupted" Interrupted { signal: i32 },
        Decided "sprint.end" End { why: SprintStop, detail: String },
    }
}

/// The result of a run, or of its landing. Without a status there is none: it could not be started, or crashed. With the
/// reason `git_fault` its repository could not be used, which does not count as a failure of the task.
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
