//! Whether a cycle is good enough to land, by the condition the team or workflow names.

use crate::model::ExitWhen;

/// The objections to a change at the end of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Against {
    /// A CRITICAL of any reviewer.
    pub critical: bool,
    /// A CRITICAL the program itself raised, which no agent can waive (D-07).
    pub critical_by_program: bool,
    /// A reviewer rejected, with a WARNING or worse that counts.
    pub rejected: bool,
    /// A person let a rejection count that shows nothing.
    pub upheld: bool,
    /// The findings are fewer and fewer: the cycle's trend is `converging`.
    pub converging: bool,
}

pub fn met(exit: ExitWhen, against: Against) -> bool {
    if against.upheld {
        return false;
    }
    match exit {
        ExitWhen::AllApproved => !against.critical && !against.rejected,
        ExitWhen::NoCritical => !against.critical,
        ExitWhen::Convergence => !against.critical && (!against.rejected || against.converging),
        ExitWhen::Always => !against.critical_by_program,
    }
}
