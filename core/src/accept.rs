//! Whether an answer is one at all. What is not is a failed attempt, never a clean bill (D-02, D-04).

use crate::event::Failure;
use crate::model::{Answer, AnswerBody, Review, Role, Severity, Status, Verdict};

/// Checks the output of a process that exited 0 and printed something.
///
/// `changed` is whether the Maker's copy differs from the run's base.
pub fn accept(role: Role, answer: &Answer, changed: bool) -> Result<(), (Failure, String)> {
    if matches!(answer.status, Status::NeedsContext | Status::Blocked) {
        return Ok(());
    }
    match (role, &answer.said) {
        (Role::Maker, _) if !changed => {
            Err((Failure::NoWork, "it says it is done but changed nothing".to_owned()))
        }
        (Role::Creator, AnswerBody::Proposal(proposal)) if proposal.missing.len() >= SECTIONS => {
            Err((Failure::Garbled, "none of the proposal's sections is there".to_owned()))
        }
        (Role::Gatekeeper | Role::Reviewer, AnswerBody::Review(Review { unread: Some(what), .. })) => {
            Err((Failure::Garbled, format!("the review can't be read: {what}")))
        }
        (Role::Gatekeeper | Role::Reviewer, AnswerBody::Review(review)) if contradicts_itself(review) => {
            Err((Failure::Garbled, "it rejects, but none of its findings is above INFO".to_owned()))
        }
        (Role::Explorer | Role::Creator | Role::Maker | Role::Gatekeeper | Role::Reviewer, _) => Ok(()),
    }
}

/// M-D6: a rejection that names nothing to change.
fn contradicts_itself(review: &Review) -> bool {
    review.verdict == Some(Verdict::Rejected)
        && review.findings.iter().all(|finding| finding.severity == Severity::Info)
}

/// The headings a proposal must have (AF-052).
const SECTIONS: usize = 6;
