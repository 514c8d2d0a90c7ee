//! Orders, reports and heartbeats, as they are sent. Unknown fields are ignored, so that versions can work side by side; a
//! greater `v` is refused.

use std::collections::BTreeSet;

use archeflow_core::model::{Money, Seq};
use archeflow_core::sprint::event::{Candidate, SprintEvent};
use archeflow_core::sprint::queue::QueueItem;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The format of all messages but those of [`TRIAL_FORMAT`].
pub const FORMAT: u32 = 1;
/// The format of orders with a trial. Workers that do not know them leave them to others.
pub const TRIAL_FORMAT: u32 = 2;

/// What a conductor wants done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetOrder {
    pub v: u32,
    pub sprint: String,
    /// The line of the sprint's log that this order is.
    pub seq: Seq,
    /// How often it was given before.
    #[serde(default)]
    pub again: u32,
    pub work: Work,
    pub repository: Repository,
    /// What a worker must have, e.g. `agent:claude`, `os:linux`, `label:gpu`.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub needs: BTreeSet<String>,
    /// Arguments for the run, e.g. the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<String>,
    /// The oldest version that may perform it.
    pub min_version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "order")]
pub enum Work {
    Run {
        item: QueueItem,
        attempt: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_usd: Option<Money>,
    },
    Resume {
        item: QueueItem,
        run: String,
    },
    Land {
        item: QueueItem,
        run: String,
    },
    Batch {
        candidates: Vec<Candidate>,
    },
    /// A run of an evaluation. It uses nothing of [`FleetOrder::said`].
    Trial {
        trial: TrialWork,
    },
}

/// What a worker has to know of a trial. It has no arguments for a command line: the worker makes that itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialWork {
    /// Unique in its evaluation; the run is named after it.
    pub name: String,
    pub task: String,
    /// The commit at which the branch of its repository is before the run.
    pub base: String,
    /// The packed arm, by the hash of its content. It is kept with the files of the run.
    pub arm: String,
    pub agent: TrialPlayer,
    /// Without one, the run has no tests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test_command: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Money>,
    /// How long the run may be driven, all workers together. One that has used it up is reported with
    /// [`archeflow_core::model::Reason::Budget`] and without a status.
    pub limit_ms: u64,
}

/// Who plays all roles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialPlayer {
    /// An agent as it is typed for a run.
    Named(String),
    /// Simulated agents, by the hash of their setup. It is kept with the files of the run.
    Simulated(String),
}

/// A repository as every machine of the fleet reaches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repository {
    pub name: String,
    pub url: String,
    pub branch: String,
}

/// What came of an order: the event of the sprint's log that answers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetReport {
    pub v: u32,
    pub start_seq: Seq,
    pub worker: String,
    pub event: SprintEvent,
}

/// What a worker says of itself every ten seconds, and may be lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    pub v: u32,
    pub worker: String,
    pub version: String,
    pub slots: u32,
    /// It takes nothing new.
    #[serde(default)]
    pub draining: bool,
    /// What it can offer, in the words of [`FleetOrder::needs`].
    pub offers: BTreeSet<String>,
    /// Orders under way.
    #[serde(default)]
    pub holds: Vec<Held>,
    pub free_bytes: u64,
    #[serde(default)]
    pub done: WorkerCounts,
    /// Milliseconds since 1970 by its clock, to notice a clock that is wrong. Nothing is decided by it.
    pub at: u64,
}

/// What a worker has done since it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerCounts {
    /// Orders that it took.
    #[serde(default)]
    pub orders: u64,
    /// Runs that it continued after another worker.
    #[serde(default)]
    pub taken_over: u64,
    /// Agents that were running when it took a run over, and so are paid twice.
    #[serde(default)]
    pub steps_repeated: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Held {
    pub sprint: String,
    pub seq: Seq,
}

/// What a worker is asked to do, on a subject of its own. It may be lost, so it is said again until it shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    pub v: u32,
    pub command: ControlCommand,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ControlCommand {
    /// Take nothing new, and end when what is under way has ended.
    Drain,
    /// Stop this order: save the work, and report the run as stopped.
    Cancel(Held),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("it was written by a newer version (format {found}; this one reads {reads})")]
    Newer { found: u64, reads: u32 },
    #[error("it can't be read: {0}")]
    Broken(String),
}

#[derive(Deserialize)]
struct Version {
    v: u64,
}

/// Reads one of the messages above, but no order.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    read_up_to(FORMAT, bytes)
}

pub fn read_order(bytes: &[u8]) -> Result<FleetOrder, Unreadable> {
    read_up_to(TRIAL_FORMAT, bytes)
}

fn read_up_to<T: DeserializeOwned>(newest: u32, bytes: &[u8]) -> Result<T, Unreadable> {
    let broken = |error: serde_json::Error| Unreadable::Broken(error.to_string());
    let version: Version = serde_json::from_slice(bytes).map_err(broken)?;
    if version.v > u64::from(newest) {
        return Err(Unreadable::Newer { found: version.v, reads: newest });
    }
    serde_json::from_slice(bytes).map_err(broken)
}

/// What a worker of this version offers, and nobody else: trials that are compared are performed by one version.
pub fn exactly(version: &str) -> String {
    format!("version:{version}")
}

/// The name of what an order needs: one queue for all orders that need the same.
pub fn class(needs: &BTreeSet<String>) -> String {
    if needs.is_empty() {
        return "any".to_owned();
    }
    needs.iter().map(|need| crate::names::token(need)).collect::<Vec<_>>().join("+")
}

/// Whether a worker that offers these things may take an order.
pub fn satisfies(offers: &BTreeSet<String>, needs: &BTreeSet<String>) -> bool {
    needs.is_subset(offers)
}
