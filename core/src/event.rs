//! The language of the log: one table of everything that can be written down.
//!
//! Three verbs. The core *decides* and *orders*; the world *reports*. An order is answered by exactly one report
//! that carries the order's line number as `start_seq`; what was ordered and never answered is what a resumed run
//! has to look after. The dotted names are a promise to scripts and are never renamed.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words::{
    Answer, Change, Domain, FailAction, Finding, HookPoint, MergeStrategy, Millionths, Oid, Outcome, Phase,
    Policy, Purpose, Reason, Role, RunStatus, Seat, Seq, Severity, Strategy, Tier, Verdict, Workflow,
};

/// The format of the log. A reader refuses a log with a greater number.
pub const FORMAT: u32 = 1;

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub seq: Seq,
    /// Milliseconds since 1970, whole seconds; decoration, never compared.
    pub at: u64,
    /// The lines that caused this one (AF-161).
    pub parent: Vec<Seq>,
    pub phase: Phase,
    pub agent: Option<String>,
    pub event: Event,
}

/// Who speaks in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Decided,
    Ordered,
    Reported,
}

macro_rules! language {
    ($($verb:ident $name:literal $variant:ident($body:ty),)*) => {
        /// Everything that can be written in a log.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Event {
            $($variant(Box<$body>),)*
        }

        $(impl From<$body> for Event {
            fn from(body: $body) -> Event {
                Event::$variant(Box::new(body))
            }
        })*

        impl Event {
            /// Every type of line, with its verb.
            pub const TYPES: &'static [(&'static str, Verb)] = &[$(($name, Verb::$verb),)*];

            /// The dotted type name.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Event::$variant(_) => $name,)*
                }
            }

            pub fn verb(&self) -> Verb {
                match self {
                    $(Event::$variant(_) => Verb::$verb,)*
                }
            }

            /// Writes the `data` object.
            pub fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Event::$variant(body) => body.serialize(serializer),)*
                }
            }

            /// Reads the `data` object of a line of the given type; `None` for a type this version does not know.
            pub fn read<'de, D: Deserializer<'de>>(name: &str, data: D) -> Option<Result<Event, D::Error>> {
                match name {
                    $($name => Some(<$body>::deserialize(data).map(Event::from)),)*
                    _ => None,
                }
            }
        }
    };
}

language! {
    Reported "run.start" RunStart(RunStart),
    Reported "session.start" SessionStart(SessionStart),
    Reported "session.end" SessionEnd(SessionEnd),
    Reported "run.reentered" RunReentered(RunReentered),
    Reported "run.continued" RunContinued(RunContinued),
    Reported "run.discarded" RunDiscarded(RunDiscarded),
    Reported "merge.requested" MergeRequested(MergeRequested),

    Decided "phase.transition" PhaseTransition(PhaseTransition),
    Decided "decision.point" DecisionPoint(DecisionPoint),
    Decided "workflow.escalated" WorkflowEscalated(WorkflowEscalated),
    Decided "agent.skipped" AgentSkipped(AgentSkipped),
    Decided "review.verdict" ReviewVerdict(ReviewVerdict),
    Decided "evidence.downgrade" EvidenceDowngrade(EvidenceDowngrade),
    Decided "finding.raised" FindingRaised(FindingRaised),
    Decided "fix.applied" FixApplied(FixApplied),
    Decided "cycle.boundary" CycleBoundary(CycleBoundary),
    Decided "wiggum.break" WiggumBreak(WiggumBreak),
    Decided "run.complete" RunComplete(RunComplete),

    Ordered "agent.start" AgentStart(AgentStart),
    Reported "agent.complete" AgentComplete(AgentComplete),
    Reported "agent.failed" AgentFailed(AgentFailed),
    Reported "agent.timeout" AgentTimeout(AgentTimeout),
    Reported "agent.lost" AgentLost(AgentLost),

    Ordered "merge.start" MergeStart(MergeStart),
    Reported "merge.built" MergeBuilt(MergeBuilt),
    Ordered "tests.start" TestsStart(TestsStart),
    Reported "tests.done" TestsDone(TestsDone),
    Ordered "hook.start" HookStart(HookStart),
    Reported "hook.done" HookDone(HookDone),
    Ordered "merge.intent" MergeIntent(MergeIntent),
    Reported "run.merged" RunMerged(RunMerged),
    Reported "merge.refused" MergeRefused(MergeRefused),
    Ordered "revert.intent" RevertIntent(RevertIntent),
    Reported "run.reverted" RunReverted(RunReverted),
    Reported "revert.refused" RevertRefused(RevertRefused),
    Ordered "question.asked" QuestionAsked(QuestionAsked),
    Reported "question.answered" QuestionAnswered(QuestionAnswered),
    Reported "question.deferred" QuestionDeferred(QuestionDeferred),
}

impl Event {
    /// The order a report answers. A report to an order that is not open comes too late and changes nothing.
    #[expect(clippy::wildcard_enum_match_arm, reason = "everything else answers nothing")]
    pub fn answers(&self) -> Option<Seq> {
        match self {
            Event::AgentComplete(body) => Some(body.start_seq),
            Event::AgentFailed(body) => Some(body.start_seq),
            Event::AgentTimeout(body) => Some(body.0.start_seq),
            Event::AgentLost(body) => Some(body.start_seq),
            Event::MergeBuilt(body) => Some(body.start_seq),
            Event::TestsDone(body) => Some(body.start_seq),
            Event::HookDone(body) => Some(body.start_seq),
            Event::RunMerged(body) => Some(body.start_seq),
            Event::MergeRefused(body) => Some(body.start_seq),
            Event::RunReverted(body) => Some(body.start_seq),
            Event::RevertRefused(body) => Some(body.start_seq),
            Event::QuestionAnswered(body) => Some(body.start_seq),
            Event::QuestionDeferred(body) => Some(body.start_seq),
            _ => None,
        }
    }
}

/// The first line: the request with everything a replay needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStart {
    pub task: String,
    pub workflow: Workflow,
    pub max_cycles: u32,
    pub strategy: Strategy,
    pub domain: Domain,
    pub team: Vec<String>,
    /// The team with roles, and those an escalation would bring in.
    pub seats: BTreeMap<String, Vec<Seat>>,
    /// The archetypes' own tiers, from their headers.
    pub tiers: BTreeMap<String, Tier>,
    /// Digest of each persona's text, so that the log says what was used.
    pub personas: BTreeMap<String, String>,
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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Signals that pointed elsewhere (CL-21).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub against: Vec<String>,
}

/// A process began to drive the run. Numbered, so that a stale driver can be told from the present one (I7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStart {
    pub fence: u32,
    pub why: String,
    /// A person is there to answer questions.
    pub attended: bool,
    pub auto_merge: bool,
    pub version: String,
    /// Marks every process of this session.
    pub tag: String,
    /// Agents given anew on the command line of this session.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnd {
    pub signal: i32,
}

/// `--start-from`: earlier artifacts stand in for the phases before.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunContinued {
    pub cycles: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunDiscarded {
    /// Where the work stays reachable.
    pub kept_as: Vec<String>,
}

/// A person says: land it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRequested {}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTransition {
    pub from: String,
    pub to: Phase,
    pub cycle: u32,
    pub artifacts_so_far: Vec<String>,
}

/// A choice of the program, with the rule and what it looked at (AF-180).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionPoint {
    /// The archetype concerned, or `program`.
    pub archetype: String,
    pub rule: String,
    pub input: String,
    pub decision: String,
    pub confidence: Share,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowEscalated {
    pub from: Workflow,
    pub to: Workflow,
    pub max_cycles: u32,
    pub rule: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSkipped {
    pub archetype: String,
    pub reason: String,
    /// It failed and the run goes on without it, rather than being spared.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewVerdict {
    pub archetype: String,
    pub verdict: Verdict,
    pub findings: Vec<FindingLine>,
}

/// A finding as other programs read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingLine {
    pub location: String,
    pub severity: Severity,
    pub category: String,
    pub description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceDowngrade {
    pub archetype: String,
    /// Which of the reviewer's findings, counted from 0.
    pub index: u32,
    pub from: Severity,
    pub to: Severity,
    pub reason: Unfounded,
    pub file: String,
    pub line: u32,
    pub category: String,
    pub description: String,
}

/// Why a finding does not count as more than advice (AF-073, D-05).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unfounded {
    HedgeWithoutEvidence,
    NoEvidence,
    /// It cites a place that is not in the reviewed tree.
    CitationNotFound,
}

impl Unfounded {
    pub fn name(self) -> &'static str {
        match self {
            Unfounded::HedgeWithoutEvidence => "hedge_without_evidence",
            Unfounded::NoEvidence => "no_evidence",
            Unfounded::CitationNotFound => "citation_not_found",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindingRaised {
    pub sign: crate::words::Sign,
    pub finding: Finding,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FixApplied {
    pub source: String,
    pub finding: String,
    pub file: String,
    pub line: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleBoundary {
    pub cycle: u32,
    pub max_cycles: u32,
    pub exit_condition: String,
    pub met: bool,
    pub fixes_applied: u32,
    pub next_action: NextAction,
    pub critical: u32,
    pub warning: u32,
    pub info: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub convergence: Option<Trend>,
    /// Set when the next action is to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    /// The findings that are open, as they will be compared with the next cycle's.
    pub open: Vec<Tracked>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NextAction {
    Merge,
    CycleBack,
    Stop,
}

/// A reason to stop cycling, with the sentence for people. `hard` and `soft` breaks are Wiggum Breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub reason: Reason,
    pub detail: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaks: Option<Hardness>,
}

/// A soft break lets what is under way finish; a hard one does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hardness {
    Soft,
    Hard,
}

/// A finding as it is followed over the cycles: merged over reviewers, routed, numbered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Tracked {
    /// `<file>:<category>[:n]`, unique within the cycle.
    pub id: String,
    pub file: String,
    pub line: u32,
    pub category: String,
    pub severity: Severity,
    /// The archetypes that raised it, sorted.
    pub source: Vec<String>,
    pub description: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub fix: String,
    pub routes_to: crate::words::Destination,
    pub cycles_open: u32,
}

/// How the findings moved between two cycles (AF-103..AF-110).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trend {
    /// For people; decisions use the counts.
    pub score: Share,
    pub status: TrendStatus,
    pub resolved: u32,
    pub new: u32,
    pub regressed: u32,
    pub persistent: u32,
    pub oscillating: Vec<String>,
    pub recommendation: String,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stuck_kind: Option<StuckKind>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolved_findings: Vec<Tracked>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub new_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub persistent_ids: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub regressed_ids: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrendStatus {
    Converging,
    Stalling,
    Diverging,
    Stuck,
}

impl TrendStatus {
    pub fn name(self) -> &'static str {
        match self {
            TrendStatus::Converging => "converging",
            TrendStatus::Stalling => "stalling",
            TrendStatus::Diverging => "diverging",
            TrendStatus::Stuck => "stuck",
        }
    }
}

/// CL-05.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StuckKind {
    AllPersistent,
    NoResolutionWithNew,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WiggumBreak {
    pub trigger: Reason,
    #[serde(rename = "type")]
    pub hardness: Hardness,
    pub hard: bool,
    pub layer: String,
    pub detail: String,
    pub run_state: String,
    pub unresolved_findings: Vec<FindingLine>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunComplete {
    pub status: RunStatus,
    pub reason: Reason,
    pub detail: String,
    pub exit_code: u8,
    pub cycles: u32,
    pub agents_total: u32,
    pub fixes_total: u32,
    pub branch: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged_oid: Option<Oid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<Seq>,
    pub unresolved: Vec<FindingLine>,
}

impl RunComplete {
    pub fn outcome(&self) -> Outcome {
        Outcome { status: self.status, reason: self.reason, detail: self.detail.clone() }
    }
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
    /// The program that plays it.
    pub agent: String,
    /// The commit its working copy shows.
    pub at: Oid,
    pub silence_ms: u64,
    pub total_ms: u64,
    /// Wait before starting: the last attempt found the agent busy.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub wait_ms: u64,
    /// What this attempt is told beyond its ordinary brief.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
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
    /// Odd things seen: processes left behind, files a reader changed, output cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
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
    /// It said nothing.
    Empty,
    /// What it said can't be read as the answer it owes.
    Garbled,
    /// A Maker that changed nothing.
    NoWork,
    /// Exit 75: try later. Not counted as a failure.
    Busy,
    /// Nothing heard for too long.
    Silence,
    /// Took too long altogether.
    TooLong,
    /// Its working copy is gone or can't be read.
    WorkspaceGone,
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
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentTimeout(pub AgentFailed);

/// The program died, or was told to stop, while this agent was out. Nobody's failure; it is sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentLost {
    pub archetype: String,
    pub start_seq: Seq,
    pub reason: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_as: Option<String>,
}

/// Build the merge commit off to the side (D-03).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeStart {
    pub work: Oid,
    pub base: Oid,
    pub target: String,
    pub strategy: MergeStrategy,
    pub attempt: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeBuilt {
    pub start_seq: Seq,
    pub built: Built,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Built {
    Candidate {
        old: Oid,
        commit: Oid,
        tree: Oid,
    },
    Conflict {
        paths: Vec<String>,
    },
    /// The target has it already.
    Nothing,
    /// The target no longer contains the commit the run began from.
    BaseGone {
        now: String,
    },
    Fault {
        what: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestsStart {
    pub commit: Oid,
    pub tree: Oid,
    pub command: String,
    pub limit_ms: u64,
    /// After landing, as the second net.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub post_merge: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestsDone {
    pub start_seq: Seq,
    pub tree: Oid,
    pub result: Tested,
    /// The exit code, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<i32>,
    pub duration_ms: u64,
    pub artifact: String,
    /// The end of the output, for feedback.
    pub tail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tested {
    Passed,
    Failed,
    TimedOut,
    /// Exit 126 or 127, or it could not be started: the command is wrong, not the change (BX-05).
    Broken,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookStart {
    pub point: HookPoint,
    pub command: String,
    pub fail_action: FailAction,
    pub env: BTreeMap<String, String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookDone {
    pub start_seq: Seq,
    pub point: HookPoint,
    pub ok: bool,
    pub reason: String,
}

/// The target branch is about to move (I1). Whoever finds this without an answer completes it first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeIntent {
    #[serde(rename = "ref")]
    pub target: String,
    pub old: Oid,
    pub new: Oid,
    pub tree: Oid,
    pub strategy: MergeStrategy,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunMerged {
    pub start_seq: Seq,
    pub base: String,
    pub strategy: MergeStrategy,
    pub old: Oid,
    pub commit: Oid,
    pub tree: Oid,
    /// Checked-out trees that were moved along.
    pub moved: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeRefused {
    pub start_seq: Seq,
    pub why: Refusal,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The target moved between test and landing.
    Moved,
    /// The user's checkout has changes on paths the merge touches.
    Dirty,
    /// An operation is under way in the user's checkout.
    Busy,
    Fault,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertIntent {
    #[serde(rename = "ref")]
    pub target: String,
    pub landed: Oid,
    pub old: Oid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReverted {
    pub start_seq: Seq,
    pub commit: Oid,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevertRefused {
    pub start_seq: Seq,
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAsked {
    pub kind: QuestionKind,
    /// Who needs it, for a question of an agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub archetype: String,
    pub question: String,
    /// Facts to look at before answering, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// What the run ends with when nobody is there to answer.
    pub unanswered: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    NeedsContext,
    LowConfidence,
    Merge,
    DryRun,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    pub start_seq: Seq,
    pub text: String,
}

/// The person left without answering.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionDeferred {
    pub start_seq: Seq,
}

/// A number between 0 and 1, written as a decimal. Held in millionths so that equality is exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share(pub Millionths);

impl Share {
    pub const ONE: Share = Share(1_000_000);

    /// `part` of `whole`, truncated; 0 for 0 of 0.
    pub fn of(part: u64, whole: u64) -> Share {
        Share((part * 1_000_000).checked_div(whole).and_then(|n| u32::try_from(n).ok()).unwrap_or(0))
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(f64::from(self.0) / 1e6)
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Share, D::Error> {
        let number = f64::deserialize(deserializer)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to 0..=1e6 first"
        )]
        Ok(Share((number * 1e6).round().clamp(0.0, 1e6) as u32))
    }
}

/// Dollars in millionths, written as a decimal number of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Money(pub u64);

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[expect(clippy::cast_precision_loss, reason = "exact below nine billion dollars")]
        serializer.serialize_f64(self.0 as f64 / 1e6)
    }
}

impl<'de> Deserialize<'de> for Money {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Money, D::Error> {
        let number = f64::deserialize(deserializer)?;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped first")]
        Ok(Money((number * 1e6).round().clamp(0.0, 9e15) as u64))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's skip_serializing_if passes a reference")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
