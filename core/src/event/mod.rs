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
mod preflight;
mod question;
mod review;
mod room;
mod start;
mod topic;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model::{PROGRAM, Phase, SYSTEM, Seq};

pub use crate::model::{Money, Share};

pub use agent::{
    AgentComplete, AgentFailed, AgentLost, AgentSkipped, AgentStart, AgentTimeout, AgentUsage, Failure,
    InterruptedSession, Player, Session, Tokens,
};
pub use agent_loop::{
    BatteryDone, BatteryStart, Checked, LoopAlert, LoopAppend, LoopAppended, LoopArchive, LoopArchived,
    LoopEdited, LoopHeard, LoopOpened, LoopTurn, StepRange,
};
pub use cycle::{
    CycleBoundary, DecisionPoint, DecisionRecord, FixApplied, Hardness, NextAction, PassedOver, PassedOverBy,
    PhaseTransition, RunComplete, Stop, StuckKind, Tracked, Trend, TrendStatus, WiggumBreak,
    WorkflowEscalated,
};
pub use landing::{
    Built, Companion, HookDone, HookStart, LeftOut, Link, MergeBuilt, MergeIntent, MergeRefused, MergeStart,
    OldTests, Refusal, RevertBuilt, RevertIntent, RevertMove, RevertRefused, RevertRequested, RevertStart,
    RunMerged, RunReverted, Tested, TestsDone, TestsRan, TestsStart, Together,
};
pub use policy::{BudgetEffect, BudgetStep, CostSource, PolicyCheckpoint, ShadowDetected};
pub use preflight::{BaseTests, CachedFolder, PreflightDone, PreflightStart, SetupRun};
pub use question::{QuestionAnswered, QuestionAsked, QuestionDeferred, QuestionKind};
pub use review::{
    EvidenceDone, EvidenceDowngrade, EvidenceStart, FindingLine, FindingRaised, Ran, ReviewOpened,
    ReviewVerdict, Unfounded,
};
pub(crate) use room::{fitting, written};
pub use start::{
    Artifact, Base, Chosen, Imported, MergeRequested, Past, RunContinued, RunDiscarded, RunPaused,
    RunReentered, RunResumed, RunRolledBack, RunStart, SessionEnd, SessionStart,
};

pub use topic::{
    AgentLine, CorrectionLine, CycleLine, LandingLine, LoopLine, QuestionLine, ReviewLine, RunLine, Topic,
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

/// What a line of one type holds; `V` is its verb, or all lines.
pub trait BodyOf<V>: Sized {
    fn body_of(line: &V) -> Option<&Self>;
}

/// The line number of the order that a report answers. A person's word may answer none.
trait StartSeq {
    fn get(&self) -> Option<Seq>;
    fn set(&mut self, order: Seq);
}

impl StartSeq for Seq {
    fn get(&self) -> Option<Seq> {
        Some(*self)
    }

    fn set(&mut self, order: Seq) {
        *self = order;
    }
}

impl StartSeq for Option<Seq> {
    fn get(&self) -> Option<Seq> {
        *self
    }

    fn set(&mut self, order: Seq) {
        *self = self.map(|_| order);
    }
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
    ($(#[$doc:meta])* $verb:ident { $($name:literal $body:ident $([$($marks:tt)*])?,)* }) => {
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
        }

        impl BodyOf<$verb> for $body {
            fn body_of(line: &$verb) -> Option<&$body> {
                if let $verb::$body(body) = line { Some(body) } else { None }
            }
        }

        impl BodyOf<Event> for $body {
            fn body_of(line: &Event) -> Option<&$body> {
                if let Event::$verb(inner) = line { inner.body() } else { None }
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

            /// The body, if it is of this type.
            pub fn body<B: BodyOf<$verb>>(&self) -> Option<&B> {
                B::body_of(self)
            }

            /// The name in the body's `archetype`, where the row is marked `agent`.
            fn archetype(&self) -> Option<&str> {
                match self {
                    $($verb::$body(_body) => marked!(agent _body.archetype.as_str(), $($($marks)*)?),)*
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

/// What the marks of a row say: the value, or `None` for a row without the mark.
macro_rules! marked {
    (agent $value:expr, $(answers)? agent) => {
        Some($value)
    };
    (answers $value:expr, answers $(agent)?) => {
        Some($value)
    };
    ($mark:ident $value:expr, $(answers)? $(agent)?) => {
        None
    };
}

macro_rules! language {
    (
        Decision { $($decision:literal $decided:ident $([$($decision_marks:tt)*])?,)* }
        Order { $($order:literal $ordered:ident $([$($order_marks:tt)*])?,)* }
        Report { $($report:literal $reported:ident $([$($report_marks:tt)*])?,)* }
    ) => {
        verb! {
            /// What the core concluded. Nothing has to be done for it.
            Decision { $($decision $decided $([$($decision_marks)*])?,)* }
        }
        verb! {
            /// What the core wants done. One executor carries it out, and one report answers it.
            Order { $($order $ordered $([$($order_marks)*])?,)* }
        }
        verb! {
            /// What happened outside the core: the answer to an order, a session, a person's decision.
            Report { $($report $reported $([$($report_marks)*])?,)* }
        }

        impl Report {
            /// The order a report answers. A report to an order that is not open comes too late and changes nothing.
            pub fn answers(&self) -> Option<Seq> {
                let order: Option<&dyn StartSeq> = match self {
                    $(Report::$reported(_body) => marked!(answers &_body.start_seq, $($($report_marks)*)?),)*
                };
                order.and_then(StartSeq::get)
            }

            /// The same report as the answer to another order; unchanged if it answers none.
            pub fn to_order(mut self, order: Seq) -> Report {
                let start_seq: Option<&mut dyn StartSeq> = match &mut self {
                    $(Report::$reported(_body) => {
                        marked!(answers &mut _body.start_seq, $($($report_marks)*)?)
                    })*
                };
                if let Some(start_seq) = start_seq {
                    start_seq.set(order);
                }
                self
            }
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

// `answers`: the body's `start_seq` is the order it answers. `agent`: the body's `archetype` is the agent it is about.
language! {
    Decision {
        "phase.transition" PhaseTransition,
        "decision.point" DecisionPoint [agent],
        "decision" DecisionRecord [agent],
        "workflow.escalated" WorkflowEscalated,
        "agent.skipped" AgentSkipped [agent],
        "review.verdict" ReviewVerdict [agent],
        "evidence.downgrade" EvidenceDowngrade [agent],
        "finding.raised" FindingRaised,
        "fix.applied" FixApplied,
        "cycle.boundary" CycleBoundary,
        "shadow.detected" ShadowDetected [agent],
        "budget.step" BudgetStep,
        "policy.checkpoint" PolicyCheckpoint,
        "loop.turn" LoopTurn,
        "loop.alert" LoopAlert,
        "wiggum.break" WiggumBreak,
        "run.complete" RunComplete,
    }

    Order {
        "preflight.start" PreflightStart,
        "agent.start" AgentStart [agent],
        "evidence.start" EvidenceStart,
        "loop.append" LoopAppend,
        "battery.start" BatteryStart,
        "loop.archive" LoopArchive,
        "merge.start" MergeStart,
        "tests.start" TestsStart,
        "hook.start" HookStart,
        "merge.intent" MergeIntent,
        "revert.start" RevertStart,
        "revert.intent" RevertIntent,
        "question.asked" QuestionAsked [agent],
    }

    Report {
        "run.start" RunStart,
        "session.start" SessionStart,
        "session.end" SessionEnd,
        "run.paused" RunPaused,
        "run.resumed" RunResumed,
        "run.reentered" RunReentered,
        "run.rolled_back" RunRolledBack,
        "review.opened" ReviewOpened,
        "loop.opened" LoopOpened,
        "loop.heard" LoopHeard [answers],
        "run.continued" RunContinued,
        "run.discarded" RunDiscarded,
        "merge.requested" MergeRequested,
        "revert.requested" RevertRequested,
        "preflight.done" PreflightDone [answers],
        "agent.complete" AgentComplete [answers agent],
        "agent.failed" AgentFailed [answers agent],
        "agent.timeout" AgentTimeout [answers agent],
        "agent.lost" AgentLost [answers agent],
        "agent.usage" AgentUsage [agent],
        "evidence.done" EvidenceDone [answers],
        "loop.appended" LoopAppended [answers],
        "loop.edited" LoopEdited [answers],
        "battery.done" BatteryDone [answers],
        "loop.archived" LoopArchived [answers],
        "merge.built" MergeBuilt [answers],
        "tests.done" TestsDone [answers],
        "hook.done" HookDone [answers],
        "run.merged" RunMerged [answers],
        "merge.refused" MergeRefused [answers],
        "revert.built" RevertBuilt [answers],
        "run.reverted" RunReverted [answers],
        "revert.refused" RevertRefused [answers],
        "question.answered" QuestionAnswered [answers],
        "question.deferred" QuestionDeferred [answers],
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

    /// The body, if it is of this type. For a question about one type of line; a reader of several matches.
    pub fn body<B: BodyOf<Event>>(&self) -> Option<&B> {
        B::body_of(self)
    }

    /// The agent this line is about, if it is about one.
    pub fn agent(&self) -> Option<&str> {
        let name = match self {
            Event::Decision(decision) => decision.archetype(),
            Event::Order(order) => order.archetype(),
            Event::Report(report) => report.archetype(),
        };
        name.filter(|name| !["", PROGRAM, SYSTEM].contains(name))
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
