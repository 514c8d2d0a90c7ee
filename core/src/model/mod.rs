//! The nouns: plain data with public fields. Everything in the log and on the screen is made of them.

mod answer;
mod archetype;
mod bounds;
mod change;
mod count;
mod finding;
mod lesson;
mod loop_policy;
pub(crate) mod named;
mod number;
mod outcome;
mod overlay;
mod policy;
mod review;
mod shadow;
mod signal;
mod splitting;
mod test_counts;
mod traits;
mod turns;
mod workflow;

pub use answer::{Answer, AnswerBody, Confidence, Disposition, Prior, Proposal, Review, Status, Verdict};
pub use archetype::{ARCHETYPES, Archetype, EXPERTISE, Persona, Role, Sight, Tier};
pub use bounds::{Boundaries, Costs, Memory, Price};
pub use change::{Change, ChangedFile, Counted, FileStatus, Sign, Signs};
pub use count::counted;
pub use finding::{CATEGORIES, Citation, Destination, Finding, Flaw, PROGRAM, Remark, Severity};
pub use lesson::{Lesson, LessonKind, Resolved};
pub use loop_policy::{Approval, Goals, LimitMode, LoopPolicy, Risks};
pub use number::{Money, Share};
pub use outcome::{Outcome, Reason, RunStatus};
pub use overlay::{Attention, DOMAINS, ExitWhen, FileTiming, Hundredths, LENSES, Lens, Overlay, Proof};
pub use policy::{
    Agents, ConfidenceFloor, Convergence, EvidencePolicy, FailAction, Git, Hook, HookPoint, Limits,
    MergeStrategy, Models, OnPostMergeFailure, Overlap, Policy, Raised, Retries, WorkflowModels, ZeroPolicy,
};
pub use review::{
    AcceptedFinding, Reproduction, ReproductionResult, ReviewPart, Reviewing, Scratch, Subject, SubjectKind,
};
pub use shadow::{SYSTEM, ShadowAction, ShadowSet, Sighting, SystemShadow};
pub use signal::{Risk, Speaker, Token};
pub use splitting::Splitting;
pub use test_counts::TestCounts;
pub use traits::Traits;
pub use turns::{Alert, CheckEnd, LOOP_RULES, LoopState, StepSize, TurnEvent, TurnSignal, Word};
pub use workflow::{
    Domain, Participant, Phase, Purpose, Strategy, Workflow, loop_team, only_on_findings, pipeline_team,
    review_team, reviews_quality, team,
};

/// A shadow and its thresholds are declared in its own file.
pub use crate::rules::shadows::{Shadow, Shadows};
pub use crate::rules::system::SystemShadows;

/// Milliseconds since 1970, for display only: no rule compares two of them.
pub type Millis = u64;

/// The number of a line in the log, counted from 1. An order is known by the line it was written on.
pub type Seq = u64;

/// A git object name in hexadecimal.
pub type Oid = String;

/// A probability or score in millionths, so that 0.5 is exactly 500 000 and nothing is ever rounded into a pass.
pub type Millionths = u32;
