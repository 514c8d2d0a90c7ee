//! A review of a change that is there already (AF-003): only Check, once for every part of the diff. Nothing lands.

mod decide;
mod results;
mod state;
mod threads;
mod unused;
mod view;

pub(crate) use results::of_finding;
pub use results::{
    Frame, KnownFinding, Listed, Reviewed, Reviewer, Since, Standing, Tried, compare, fingerprint, of,
    remember,
};

pub use threads::{
    LeftAlone, OnlyInSummary, RequestFacts, THREADS_AT_MOST, ThreadAction, ThreadFacts, ThreadPlan,
    ThreadWord, thread_plan,
};
pub use unused::uses;

pub(crate) struct ReviewStrategy;
