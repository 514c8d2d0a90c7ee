//! System shadows (AF-140..AF-146): what goes wrong between the agents and belongs to none of them. Looked for at
//! the boundaries of the phases; one file each.
//!
//! Deliberately absent: the ladder and what is done about a shadow. That is in `decide`; here are only the words.

use crate::event::Tracked;
use crate::words::{
    Change, Finding, Lesson, Prior, Proposal, Review, Sighting, SystemShadow, SystemShadows, Verdict,
    Workflow,
};

/// Where a run stands at a boundary. All from the log.
#[derive(Debug, Clone)]
pub struct Situation<'a> {
    pub workflow: Workflow,
    /// Reviewers that answered in this cycle.
    pub reviews: Vec<(&'a str, &'a Review, Verdict)>,
    pub change: Option<&'a Change>,
    pub proposal: Option<&'a Proposal>,
    /// How long the agents of each phase took.
    pub check_ms: u64,
    pub plan_ms: u64,
    pub do_ms: u64,
    /// In the run, the mini-Explorer included.
    pub explorer_starts: u32,
    /// Open at the end of the last cycle.
    pub open_before: &'a [Tracked],
    /// What the Maker says became of them.
    pub maker_prior: &'a [Prior],
    /// Told in this run.
    pub lessons: &'a [Lesson],
    /// Of this cycle, weighed.
    pub findings: &'a [Finding],
    /// WARNINGs left open by the runs just before, and by this one.
    pub deferred_warnings: u32,
}

type Seen = Vec<(SystemShadow, Sighting)>;

/// Scope creep, gold plating, analysis paralysis.
pub fn after_do(_: &Situation<'_>, _: &SystemShadows) -> Seen {
    Vec::new()
}

/// Tunnel vision, echo chamber, cargo cult.
pub fn after_check(_: &Situation<'_>, _: &SystemShadows) -> Seen {
    Vec::new()
}

/// Broken window.
pub fn at_end(_: &Situation<'_>, _: &SystemShadows) -> Seen {
    Vec::new()
}

/// What the agent or the person concerned is told.
pub fn remedy(_: SystemShadow, _: &Sighting) -> String {
    String::new()
}
