//! Lines that begin something: the request, a session, a person who opens a run again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::landing::{Companion, Together};
use crate::model::{
    Answer, Change, Domain, Lesson, Money, Oid, Overlay, Participant, Phase, Policy, Resolved, ShadowSet,
    Strategy, Tier, Workflow,
};

/// The first line: the request with everything a replay needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct RunStart {
    pub task: String,
    pub workflow: Workflow,
    pub max_cycles: u32,
    pub strategy: Strategy,
    pub domain: Domain,
    pub team: Vec<String>,
    /// The team with roles, and those an escalation would bring in.
    pub seats: BTreeMap<String, Vec<Participant>>,
    /// The archetypes' own tiers, from their headers.
    pub tiers: BTreeMap<String, Tier>,
    /// Digest of each persona's text, so that the log records what was used.
    pub personas: BTreeMap<String, String>,
    /// The shadows of each archetype, as far as the program can detect them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shadows: BTreeMap<String, ShadowSet>,
    /// The lenses laid over the archetypes, left to right (BX-07).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lenses: Vec<String>,
    /// Categories the lenses add to [`crate::model::CATEGORIES`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
    /// What domain, lenses, team and workflow lay over the archetypes.
    #[serde(default, skip_serializing_if = "Overlay::is_empty")]
    pub overlay: Overlay,
    /// What earlier runs of this project left behind.
    #[serde(default, skip_serializing_if = "Past::is_empty")]
    pub past: Past,
    pub config: Policy,
    /// Digest over every configuration byte that took part.
    pub config_hash: String,
    pub base: Base,
    pub branch: String,
    pub dry_run: bool,
    /// How strategy and workflow were chosen.
    pub chosen: Chosen,
    pub format: u32,
    pub version: String,
}

/// Read once, before the first line: a run is judged by the past as it was then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Past {
    /// The lessons that agents may be given (AF-013).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lessons: Vec<Lesson>,
    /// Which of them are given to which archetype, by id, the most frequent first (AF-177).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub told: BTreeMap<String, Vec<String>>,
    /// How many would have matched, if more than are given (AF-156).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub fitted: BTreeMap<String, u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resolved: Vec<Resolved>,
    /// Warnings that consecutive runs before this one left open (AF-146).
    pub deferred_warnings: u32,
    /// What runs of this project have cost today.
    pub spent_today_usd: Money,
}

impl Past {
    pub fn is_empty(&self) -> bool {
        *self == Past::default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Base {
    /// The full name of the branch the change is for.
    pub target: String,
    pub commit: Oid,
}

/// The reasons behind strategy and workflow, for the first decision points.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Chosen {
    pub strategy_by: String,
    pub workflow_by: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub domain_by: String,
    /// Signals that pointed elsewhere (CL-21).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
}

/// A process began to drive the run. Numbered, so that a stale driver can be distinguished from the present one (I7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct SessionStart {
    pub fence: u32,
    pub why: String,
    /// A person is there to answer questions.
    pub attended: bool,
    pub auto_merge: bool,
    pub version: String,
    /// Marks every process of this session.
    pub tag: String,
    /// Agents that the command line of this session replaces.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, String>,
    /// Their accounts, by spec.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accounts: BTreeMap<String, String>,
    /// What held commands to their policy in this session: `bubblewrap`, `landlock`, `seatbelt` or `none`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sandbox: String,
}

impl SessionStart {
    /// `sandbox` where somebody typed that commands are to run without one.
    pub const NO_SANDBOX: &'static str = "none";
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnd {
    pub signal: i32,
}

/// A person paused the run: nothing is ordered until it is resumed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPaused {
    /// How the request came, e.g. `control` for the control socket.
    pub by: String,
}

/// The pause is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunResumed {
    /// How the request came: `control`, or the command that drives the run again.
    pub by: String,
}

/// `--start-from`: earlier artifacts replace the phases before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReentered {
    pub phase: Phase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Imported>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub making: Option<Imported>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Imported>,
}

/// A person takes the run back to the end of a phase (M-03).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRolledBack {
    pub cycle: u32,
    pub phase: Phase,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    pub archetype: String,
    pub artifact: Artifact,
    pub answer: Answer,
}

/// A file under the run's artifact folder, with the digest it must still have when used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    pub name: String,
    pub digest: String,
}

/// A person asks for one more cycle in spite of a stop (AF-083).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct RunContinued {
    pub cycles: u32,
    /// What a person decided where reviewers contradict each other; in every prompt from now on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ruling: String,
    /// Findings that are accepted and no longer block, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accept: Vec<String>,
    /// The task in its new scope.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub rescope: String,
    /// A new limit, where the old one stopped the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_usd: Option<Money>,
    /// Why the findings are accepted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How the decision came: `ui` from a page; empty if it was typed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDiscarded {
    /// Where the work stays reachable.
    pub kept_as: Vec<String>,
    /// How the decision came: `ui` from a page; empty if it was typed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}

/// A person asks to land it, or a sprint does, which may land several runs at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRequested {
    /// Runs whose work this landing takes along, in the order in which they come before its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Companion>,
    /// Another run's landing took this one along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<Together>,
    /// How the decision came: `ui` from a page; empty if it was typed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
}
