//! The gates between phases: confidence (A3), test-first, the Guardian's fast path (A2), escalation (A1).

use crate::model::{Change, Confidence, Domain, Millionths, Proposal, Severity, Workflow};
use crate::rules::domain;

/// What the confidence gate asks for (AF-054..AF-056).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConfidenceGate {
    /// Pause and ask a person.
    pub ask: bool,
    /// A fast run becomes a standard one.
    pub upgrade: bool,
    /// Send the focused mini-Explorer.
    pub research: bool,
}

pub fn confidence(table: Confidence, workflow: Workflow, floor: Millionths) -> ConfidenceGate {
    let low = |score: Option<Millionths>| score.unwrap_or(0) < floor;
    ConfidenceGate {
        ask: low(table.task_understanding),
        upgrade: low(table.solution_completeness) && workflow == Workflow::Fast,
        research: low(table.risk_coverage),
    }
}

/// AF-063.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestFirst {
    Passes,
    SendBack,
    Warn,
}

/// `prose_passes` is false in runs from before prose in research needed no tests (M-05).
pub fn test_first(
    change: &Change,
    proposal: Option<&Proposal>,
    domain: Domain,
    prose_passes: bool,
) -> TestFirst {
    let is_prose = change.files_left_out == 0
        && !change.files.is_empty()
        && change.files.iter().all(|file| domain::is_prose(&file.path));
    let strategy = proposal.is_some_and(|proposal| proposal.has_test_strategy);
    match (domain, change.test_files, strategy) {
        (Domain::Writing, _, _) => TestFirst::Passes,
        (Domain::Research, _, _) if is_prose && prose_passes => TestFirst::Passes,
        (_, 0, true) => TestFirst::SendBack,
        (_, 0, false) => TestFirst::Warn,
        (_, _, _) => TestFirst::Passes,
    }
}

/// What the fast path depends on (AF-071, D-02, D-04).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clearance {
    pub approved: bool,
    pub gravest: Option<Severity>,
    /// Guardian and Maker both ended with a proper status token.
    pub verified: bool,
    pub raised_by_program: bool,
    pub workflow: Workflow,
    pub escalated: bool,
    pub cycle: u32,
}

/// A2: why the other reviewers are needed, or that they are not.
pub fn fast_path(facts: Clearance) -> Result<(), &'static str> {
    if !facts.approved {
        return Err("the Guardian did not approve");
    }
    if facts.gravest > Some(Severity::Info) {
        return Err("the Guardian has findings above INFO");
    }
    if facts.raised_by_program {
        return Err("the program itself raised a finding");
    }
    if !facts.verified {
        return Err("an answer came without a proper status token");
    }
    if facts.escalated {
        return Err("the workflow was escalated");
    }
    if facts.workflow == Workflow::Thorough && facts.cycle == 1 {
        return Err("first cycle of a thorough run");
    }
    Ok(())
}

/// A1 (AF-081): how many CRITICALs of the Guardian turn a fast run into a standard one.
pub const ESCALATING_CRITICALS: u32 = 2;

pub fn escalates(workflow: Workflow, guardian_criticals: u32) -> bool {
    workflow == Workflow::Fast && guardian_criticals >= ESCALATING_CRITICALS
}
