//! The language of the log: one table of everything that can be written down.
//!
//! Three verbs. The core *decides* and *orders*; the world *reports*. An order is answered by exactly one report
//! that carries the order's line number as `start_seq`; an order without an answer is what a resumed run
//! performs again. The dotted names are a promise to scripts and are never renamed.

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
    /// Milliseconds since 1970; whole seconds in lines of old journals.
    pub at: u64,
    /// The lines that caused this one (AF-161).
    pub parent: Vec<Seq>,
    pub phase: Phase,
    pub agent: Option<String>,
    pub event: Event,
}

/// The kind of event in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Decided,
    Ordered,
    Reported,
}

/// The enum of one verb: a variant for each row, named after the body it holds.
macro_rules! verb {
    ($(#[$doc:meta])* $verb:ident { $($name:literal $body:ident,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $verb {
            $($body(Box<$body>),)*
        }

        $(impl From<$body> for $verb {
            fn from(body: $body) -> $verb {
                $verb::$body(Box::new(body))
            }
        }

        impl From<$body> for Event {
            fn from(body: $body) -> Event {
                Event::$verb(body.into())
            }
        })*

        impl From<$verb> for Event {
            fn from(inner: $verb) -> Event {
                Event::$verb(inner)
            }
        }

        impl $verb {
            /// The dotted type name.
            pub fn name(&self) -> &'static str {
                match self {
                    $($verb::$body(_) => $name,)*
                }
            }

            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($verb::$body(body) => body.serialize(serializer),)*
                }
            }
        }
    };
}

macro_rules! language {
    (
        Decision { $($decision:literal $decided:ident,)* }
        Order { $($order:literal $ordered:ident,)* }
        Report { $($report:literal $reported:ident,)* }
    ) => {
        verb! {
            /// What the core concluded. Nothing has to be done for it.
            Decision { $($decision $decided,)* }
        }
        verb! {
            /// What the core wants done. One executor carries it out, and one report answers it.
            Order { $($order $ordered,)* }
        }
        verb! {
            /// What happened outside the core: the answer to an order, a session, a person's decision.
            Report { $($report $reported,)* }
        }

        $(impl From<$decided> for Conclusion {
            fn from(body: $decided) -> Conclusion {
                Conclusion::Decision(body.into())
            }
        })*

        $(impl From<$ordered> for Conclusion {
            fn from(body: $ordered) -> Conclusion {
                Conclusion::Order(body.into())
            }
        })*

        impl Event {
            /// Every type of line, with its verb.
            pub const TYPES: &'static [(&'static str, Verb)] = &[
                $(($decision, Verb::Decided),)*
                $(($order, Verb::Ordered),)*
                $(($report, Verb::Reported),)*
            ];

            /// Reads the `data` object of a line of the given type; `None` for a type this version does not know.
            pub fn read<'de, D: Deserializer<'de>>(name: &str, data: D) -> Option<Result<Event, D::Error>> {
                match name {
                    $($decision => Some(<$decided>::deserialize(data).map(Event::from)),)*
                    $($order => Some(<$ordered>::deserialize(data).map(Event::from)),)*
                    $($report => Some(<$reported>::deserialize(data).map(Event::from)),)*
                    _ => None,
                }
            }
        }
    };
}

language! {
    Decision {
        "phase.transition" PhaseTransition,
        "decision.point" DecisionPoint,
        "workflow.escalated" WorkflowEscalated,
        "agent.skipped" AgentSkipped,
        "review.verdict" ReviewVerdict,
        "evidence.downgrade" EvidenceDowngrade,
        "finding.raised" FindingRaised,
        "fix.applied" FixApplied,
        "cycle.boundary" CycleBoundary,
        "shadow.detected" ShadowDetected,
        "budget.step" BudgetStep,
        "policy.checkpoint" PolicyCheckpoint,
        "loop.turn" LoopTurn,
        "loop.alert" LoopAlert,
        "wiggum.break" WiggumBreak,
        "run.complete" RunComplete,
    }

    Order {
        "agent.start" AgentStart,
        "evidence.start" EvidenceStart,
        "loop.append" LoopAppend,
        "battery.start" BatteryStart,
        "loop.archive" LoopArchive,
        "merge.start" MergeStart,
        "tests.start" TestsStart,
        "hook.start" HookStart,
        "merge.intent" MergeIntent,
        "revert.intent" RevertIntent,
        "question.asked" QuestionAsked,
    }

    Report {
        "run.start" RunStart,
        "session.start" SessionStart,
        "session.end" SessionEnd,
        "run.paused" RunPaused,
        "run.resumed" RunResumed,
        "run.reentered" RunReentered,
        "review.opened" ReviewOpened,
        "loop.opened" LoopOpened,
        "loop.heard" LoopHeard,
        "run.continued" RunContinued,
        "run.discarded" RunDiscarded,
        "merge.requested" MergeRequested,
        "agent.complete" AgentComplete,
        "agent.failed" AgentFailed,
        "agent.timeout" AgentTimeout,
        "agent.lost" AgentLost,
        "evidence.done" EvidenceDone,
        "loop.appended" LoopAppended,
        "loop.edited" LoopEdited,
        "battery.done" BatteryDone,
        "loop.archived" LoopArchived,
        "merge.built" MergeBuilt,
        "tests.done" TestsDone,
        "hook.done" HookDone,
        "run.merged" RunMerged,
        "merge.refused" MergeRefused,
        "run.reverted" RunReverted,
        "revert.refused" RevertRefused,
        "question.answered" QuestionAnswered,
        "question.deferred" QuestionDeferred,
    }
}

/// Everything that can be written in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Decision(Decision),
    Order(Order),
    Report(Report),
}

impl Event {
    /// The dotted type name.
    pub fn name(&self) -> &'static str {
        match self {
            Event::Decision(decision) => decision.name(),
            Event::Order(order) => order.name(),
            Event::Report(report) => report.name(),
        }
    }

    pub fn verb(&self) -> Verb {
        match self {
            Event::Decision(_) => Verb::Decided,
            Event::Order(_) => Verb::Ordered,
            Event::Report(_) => Verb::Reported,
        }
    }

    /// The order this line answers, if it is a report that answers one.
    pub fn answers(&self) -> Option<Seq> {
        match self {
            Event::Report(report) => report.answers(),
            Event::Decision(_) | Event::Order(_) => None,
        }
    }

    /// Writes the `data` object.
    pub fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Event::Decision(decision) => decision.write(serializer),
            Event::Order(order) => order.write(serializer),
            Event::Report(report) => report.write(serializer),
        }
    }
}

/// What follows from the facts: the core decides and orders, and never reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conclusion {
    Decision(Decision),
    Order(Order),
}

impl From<Conclusion> for Event {
    fn from(conclusion: Conclusion) -> Event {
        match conclusion {
            Conclusion::Decision(decision) => Event::Decision(decision),
            Conclusion::Order(order) => Event::Order(order),
        }
    }
}

impl Report {
    /// The order a report answers. A report to an order that is not open comes too late and changes nothing.
    pub fn answers(&self) -> Option<Seq> {
        match self {
            Report::AgentComplete(body) => Some(body.start_seq),
            Report::AgentFailed(body) => Some(body.start_seq),
            Report::AgentTimeout(body) => Some(body.0.start_seq),
            Report::AgentLost(body) => Some(body.start_seq),
            Report::EvidenceDone(body) => Some(body.start_seq),
            Report::LoopHeard(body) => body.start_seq,
            Report::LoopAppended(body) => Some(body.start_seq),
            Report::LoopEdited(body) => Some(body.start_seq),
            Report::BatteryDone(body) => Some(body.start_seq),
            Report::LoopArchived(body) => Some(body.start_seq),
            Report::MergeBuilt(body) => Some(body.start_seq),
            Report::TestsDone(body) => Some(body.start_seq),
            Report::HookDone(body) => Some(body.start_seq),
            Report::RunMerged(body) => Some(body.start_seq),
            Report::MergeRefused(body) => Some(body.start_seq),
            Report::RunReverted(body) => Some(body.start_seq),
            Report::RevertRefused(body) => Some(body.start_seq),
            Report::QuestionAnswered(body) => Some(body.start_seq),
            Report::QuestionDeferred(body) => Some(body.start_seq),
            Report::RunStart(_)
            | Report::SessionStart(_)
            | Report::SessionEnd(_)
            | Report::RunPaused(_)
            | Report::RunResumed(_)
            | Report::RunReentered(_)
            | Report::ReviewOpened(_)
            | Report::LoopOpened(_)
            | Report::RunContinued(_)
            | Report::RunDiscarded(_)
            | Report::MergeRequested(_) => None,
        }
    }

    /// The same report as the answer to another order; unchanged if it answers none.
    pub fn to_order(mut self, order: Seq) -> Report {
        match &mut self {
            Report::AgentComplete(body) => body.start_seq = order,
            Report::AgentFailed(body) => body.start_seq = order,
            Report::AgentTimeout(body) => body.0.start_seq = order,
            Report::AgentLost(body) => body.start_seq = order,
            Report::EvidenceDone(body) => body.start_seq = order,
            Report::LoopHeard(body) => body.start_seq = body.start_seq.map(|_| order),
            Report::LoopAppended(body) => body.start_seq = order,
            Report::LoopEdited(body) => body.start_seq = order,
            Report::BatteryDone(body) => body.start_seq = order,
            Report::LoopArchived(body) => body.start_seq = order,
            Report::MergeBuilt(body) => body.start_seq = order,
            Report::TestsDone(body) => body.start_seq = order,
            Report::HookDone(body) => body.start_seq = order,
            Report::RunMerged(body) => body.start_seq = order,
            Report::MergeRefused(body) => body.start_seq = order,
            Report::RunReverted(body) => body.start_seq = order,
            Report::RevertRefused(body) => body.start_seq = order,
            Report::QuestionAnswered(body) => body.start_seq = order,
            Report::QuestionDeferred(body) => body.start_seq = order,
            Report::RunStart(_)
            | Report::SessionStart(_)
            | Report::SessionEnd(_)
            | Report::RunPaused(_)
            | Report::RunResumed(_)
            | Report::RunReentered(_)
            | Report::ReviewOpened(_)
            | Report::LoopOpened(_)
            | Report::RunContinued(_)
            | Report::RunDiscarded(_)
            | Report::MergeRequested(_) => {}
        }
        self
    }
}
