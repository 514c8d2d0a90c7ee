//! The language of the log: one table of everything that can be written down.
//!
//! Three verbs. The core *decides* and *orders*; the world *reports*. An order is answered by exactly one report
//! that carries the order's line number as `start_seq`; what was ordered and never answered is what a resumed run
//! has to look after. The dotted names are a promise to scripts and are never renamed.

mod agent;
mod agent_loop;
mod cycle;
mod landing;
mod policy;
mod question;
mod review;
mod room;
mod start;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::{Phase, Seq};

pub use crate::model::{Money, Share};

pub use agent::{
    AgentComplete, AgentFailed, AgentLost, AgentSkipped, AgentStart, AgentTimeout, Failure, Player, Session,
    Tokens,
};
pub use agent_loop::{
    BatteryDone, BatteryStart, Checked, LoopAlert, LoopAppend, LoopAppended, LoopArchive, LoopArchived,
    LoopEdited, LoopHeard, LoopOpened, LoopTurn,
};
pub use cycle::{
    CycleBoundary, DecisionPoint, FixApplied, Hardness, NextAction, PhaseTransition, RunComplete, Stop,
    StuckKind, Tracked, Trend, TrendStatus, WiggumBreak, WorkflowEscalated,
};
pub use landing::{
    Built, Companion, HookDone, HookStart, LeftOut, Link, MergeBuilt, MergeIntent, MergeRefused, MergeStart,
    Refusal, RevertIntent, RevertRefused, RunMerged, RunReverted, Tested, TestsDone, TestsStart, Together,
};
pub use policy::{BudgetEffect, BudgetStep, CostSource, PolicyCheckpoint, ShadowDetected};
pub use question::{QuestionAnswered, QuestionAsked, QuestionDeferred, QuestionKind};
pub use review::{
    EvidenceDone, EvidenceDowngrade, EvidenceStart, FindingLine, FindingRaised, Ran, ReviewOpened,
    ReviewVerdict, Unfounded,
};
pub(crate) use room::{fitting, written};
pub use start::{
    Artifact, Base, Chosen, Imported, MergeRequested, Past, RunContinued, RunDiscarded, RunPaused,
    RunReentered, RunResumed, RunStart, SessionEnd, SessionStart,
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
    Reported "run.paused" RunPaused(RunPaused),
    Reported "run.resumed" RunResumed(RunResumed),
    Reported "run.reentered" RunReentered(RunReentered),
    Reported "review.opened" ReviewOpened(ReviewOpened),
    Reported "loop.opened" LoopOpened(LoopOpened),
    Reported "loop.heard" LoopHeard(LoopHeard),
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
    Decided "shadow.detected" ShadowDetected(ShadowDetected),
    Decided "budget.step" BudgetStep(BudgetStep),
    Decided "policy.checkpoint" PolicyCheckpoint(PolicyCheckpoint),
    Decided "loop.turn" LoopTurn(LoopTurn),
    Decided "loop.alert" LoopAlert(LoopAlert),
    Decided "wiggum.break" WiggumBreak(WiggumBreak),
    Decided "run.complete" RunComplete(RunComplete),

    Ordered "agent.start" AgentStart(AgentStart),
    Reported "agent.complete" AgentComplete(AgentComplete),
    Reported "agent.failed" AgentFailed(AgentFailed),
    Reported "agent.timeout" AgentTimeout(AgentTimeout),
    Reported "agent.lost" AgentLost(AgentLost),

    Ordered "evidence.start" EvidenceStart(EvidenceStart),
    Reported "evidence.done" EvidenceDone(EvidenceDone),

    Ordered "loop.append" LoopAppend(LoopAppend),
    Reported "loop.appended" LoopAppended(LoopAppended),
    Reported "loop.edited" LoopEdited(LoopEdited),
    Ordered "battery.start" BatteryStart(BatteryStart),
    Reported "battery.done" BatteryDone(BatteryDone),
    Ordered "loop.archive" LoopArchive(LoopArchive),
    Reported "loop.archived" LoopArchived(LoopArchived),

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
            Event::EvidenceDone(body) => Some(body.start_seq),
            Event::LoopHeard(body) => body.start_seq,
            Event::LoopAppended(body) => Some(body.start_seq),
            Event::LoopEdited(body) => Some(body.start_seq),
            Event::BatteryDone(body) => Some(body.start_seq),
            Event::LoopArchived(body) => Some(body.start_seq),
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
