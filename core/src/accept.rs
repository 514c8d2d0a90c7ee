//! Whether an answer is one at all. What is not is a failed attempt, never a clean bill (D-02, D-04).

use crate::event::Failure;
use crate::model::{Answer, AnswerBody, Review, Role, Status};

/// Checks the output of a process that exited 0 and printed something.
///
/// `changed` is whether the Maker's copy differs from the run's base, `coded` whether the brief named a code: then an
/// answer without a closing line is not finished, whatever else it says.
pub fn accept(role: Role, answer: &Answer, changed: bool, coded: bool) -> Result<(), (Failure, String)> {
    match answer.status {
        Status::NeedsContext | Status::Blocked => return Ok(()),
        Status::Unverified if coded => {
            return Err((Failure::Garbled, "it has no closing line with the code of its brief".to_owned()));
        }
        Status::Unverified | Status::Done | Status::DoneWithConcerns => {}
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
        (Role::Explorer | Role::Creator | Role::Maker | Role::Gatekeeper | Role::Reviewer, _) => Ok(()),
    }
}

/// The headings a proposal must have (AF-052).
const SECTIONS: usize = 6;
