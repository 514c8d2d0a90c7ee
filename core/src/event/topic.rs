//! The types of lines by what they are about, for readers that want few of them. A match over [`Topic`] stays short
//! and names everything nevertheless: a new type of line belongs to one topic, and who reads that topic has to say
//! what becomes of it.

use super::{
    AgentComplete, AgentFailed, AgentLost, AgentSkipped, AgentStart, AgentTimeout, AgentUsage, BatteryDone,
    BatteryStart, BudgetStep, CycleBoundary, Decision, DecisionPoint, DecisionRecord, Event, EvidenceDone,
    EvidenceDowngrade, EvidenceStart, FindingRaised, FixApplied, HookDone, HookStart, LoopAlert, LoopAppend,
    LoopAppended, LoopArchive, LoopArchived, LoopEdited, LoopHeard, LoopOpened, LoopTurn, MergeBuilt,
    MergeIntent, MergeRefused, MergeRequested, MergeStart, Order, PhaseTransition, PolicyCheckpoint,
    PreflightDone, PreflightStart, QuestionAnswered, QuestionAsked, QuestionDeferred, Report, RevertBuilt,
    RevertIntent, RevertRefused, RevertRequested, RevertStart, ReviewOpened, ReviewVerdict, RunComplete,
    RunContinued, RunDiscarded, RunMerged, RunPaused, RunReentered, RunResumed, RunReverted, RunRolledBack,
    RunStart, SessionEnd, SessionStart, ShadowDetected, TestsDone, TestsStart, WiggumBreak,
    WorkflowEscalated,
};

macro_rules! topics {
    ($($(#[$about:meta])* $topic:ident $lines:ident { $($verb:ident $body:ident,)* })*) => {
        /// What a line is about.
        #[derive(Debug, Clone, Copy)]
        pub enum Topic<'a> {
            $($(#[$about])* $topic($lines<'a>),)*
        }

        $($(#[$about])*
        #[derive(Debug, Clone, Copy)]
        pub enum $lines<'a> {
            $($body(&'a $body),)*
        })*

        impl Event {
            pub fn topic(&self) -> Topic<'_> {
                match self {
                    $($(Event::$verb($verb::$body(body)) => Topic::$topic($lines::$body(body)),)*)*
                }
            }
        }
    };
}

topics! {
    /// A run as a whole: its beginning and end, its sessions, what people did with it.
    Run RunLine {
        Report RunStart,
        Report SessionStart,
        Report SessionEnd,
        Report RunPaused,
        Report RunResumed,
        Report RunReentered,
        Report RunRolledBack,
        Report RunContinued,
        Report RunDiscarded,
        Order PreflightStart,
        Report PreflightDone,
        Decision RunComplete,
    }
    /// An agent, from its start to its end.
    Agent AgentLine {
        Order AgentStart,
        Report AgentComplete,
        Report AgentFailed,
        Report AgentTimeout,
        Report AgentLost,
        Report AgentUsage,
        Decision AgentSkipped,
    }
    /// What reviewers found, and what it counts for.
    Review ReviewLine {
        Report ReviewOpened,
        Decision ReviewVerdict,
        Decision EvidenceDowngrade,
        Decision FindingRaised,
        Order EvidenceStart,
        Report EvidenceDone,
    }
    /// The way through phases and cycles.
    Cycle CycleLine {
        Decision PhaseTransition,
        Decision DecisionPoint,
        Decision DecisionRecord,
        Decision WorkflowEscalated,
        Decision FixApplied,
        Decision CycleBoundary,
    }
    /// What corrects or stops a run.
    Correction CorrectionLine {
        Decision ShadowDetected,
        Decision BudgetStep,
        Decision PolicyCheckpoint,
        Decision WiggumBreak,
    }
    /// Questions to people.
    Question QuestionLine {
        Order QuestionAsked,
        Report QuestionAnswered,
        Report QuestionDeferred,
    }
    /// Building, testing and landing a merge, and taking it back.
    Landing LandingLine {
        Report MergeRequested,
        Order MergeStart,
        Report MergeBuilt,
        Order TestsStart,
        Report TestsDone,
        Order HookStart,
        Report HookDone,
        Order MergeIntent,
        Report RunMerged,
        Report MergeRefused,
        Report RevertRequested,
        Order RevertStart,
        Report RevertBuilt,
        Order RevertIntent,
        Report RunReverted,
        Report RevertRefused,
    }
    /// The loop of Planner, Actor and Judge.
    Loop LoopLine {
        Report LoopOpened,
        Report LoopHeard,
        Decision LoopTurn,
        Decision LoopAlert,
        Order LoopAppend,
        Report LoopAppended,
        Report LoopEdited,
        Order BatteryStart,
        Report BatteryDone,
        Order LoopArchive,
        Report LoopArchived,
    }
}
