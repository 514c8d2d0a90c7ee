//! A rejection with nothing behind it that counts (J-04). It is not passed over: the reviewer is asked once, with what
//! became of each of its findings; if it insists, a person decides.
//!
//! Asked only where the change would land otherwise. Where it goes into another cycle anyway, the rejection has had its
//! way.

use crate::event::{Conclusion, QuestionAsked, QuestionKind, Unfounded};
use crate::model::{
    Finding, Outcome, Reason, ReproductionResult, Review, RunStatus, Severity, Verdict, counted,
};
use crate::rules::exit::{self, Against};
use crate::run::{Cycle, Run};

use super::{act, asks, point};

/// Findings named in a question, and characters of each.
const NAMED: usize = 20;
const WORDS: usize = 300;

/// While the reviewers can still be asked.
pub(crate) fn in_check(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    let (name, review) = unanswered(run, cycle)?;
    if cycle.evidence_asked.contains(name) {
        return Some(ask_a_person(run, cycle, name, review));
    }
    let note = format!(
        "You rejected the change, and none of your findings counts against it:\n\n{}\n\nShow for each of them that holds what \
         is wrong: a line of the reviewed tree (`path:line`), the code as it is there, or a command with its output. Withdraw \
         the others. Your verdict is your own: if you still reject the change without evidence, a person decides.",
        became(cycle, name, review).join("\n")
    );
    let decision = format!("the {name} is asked for evidence once before the change lands");
    Some(vec![point(name, "J-04", note, decision)])
}

/// Where a cycle is concluded that was entered after Check.
pub(crate) fn in_act(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    let (name, review) = unanswered(run, cycle)?;
    Some(ask_a_person(run, cycle, name, review))
}

/// The first reviewer by name that rejects a change which would land.
fn unanswered<'a>(run: &Run, cycle: &'a Cycle) -> Option<(&'a str, &'a Review)> {
    // Where a rejection does not keep a change from landing, it need not be asked about.
    let rejected = Against { critical: false, critical_by_program: false, rejected: true, converging: false };
    if run.rules().cycles_are_parts() || exit::met(run.rules().exit(run), rejected) {
        return None;
    }
    let grave = cycle.grave();
    let counts = |name: &str| grave.iter().any(|finding| finding.source == name);
    let mut rejecting = cycle.reviewers().into_iter().filter(|(name, review)| {
        review.verdict == Some(Verdict::Rejected) && !cycle.overruled.contains(*name) && !counts(name)
    });
    let first = rejecting.next()?;
    let (approved, _) = act::standing_now(run, cycle);
    approved.then_some(first)
}

fn ask_a_person(run: &Run, cycle: &Cycle, name: &str, review: &Review) -> Vec<Conclusion> {
    let findings = counted(u32::try_from(review.findings.len()).unwrap_or(u32::MAX), "finding");
    let detail = format!("the {name} rejects the change with {findings} and no evidence that counts");
    let reason = Reason::RejectedWithoutEvidence;
    let question = QuestionAsked {
        kind: QuestionKind::Rejection,
        archetype: name.to_owned(),
        question: format!(
            "The {name} rejects the change and shows no evidence that counts. What now? 'land' passes over the rejection; \
             'fix' lets its findings count as they are; 'stop' ends the run; anything else lets them count and is told to the \
             agents."
        ),
        details: became(cycle, name, review),
        unanswered: Outcome { status: RunStatus::AwaitingAnswer, reason, detail },
    };
    asks(run, question, RunStatus::Stopped, reason)
}

/// Each finding, and why it does not count.
fn became(cycle: &Cycle, name: &str, review: &Review) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // The order in which they were written decides nothing (D-13).
    let mut findings: Vec<(u32, &Finding)> = (0_u32..).zip(&review.findings).collect();
    findings.sort_by(|(_, a), (_, b)| b.severity.cmp(&a.severity).then_with(|| a.cmp(b)));
    for (index, finding) in findings.into_iter().take(NAMED) {
        let key = (name.to_owned(), index);
        let tried = cycle.trials.get(&key).map(|(trial, ..)| *trial);
        let why = match (tried, cycle.downgrades.get(&key)) {
            (Some(ReproductionResult::Refuted), _) => "its reproduction shows the contrary",
            (_, Some(Unfounded::NoEvidence)) => "no line, no output, no steps and no code to show it",
            (_, Some(Unfounded::CitationNotFound)) => {
                "the place or the code it cites is not in the reviewed tree"
            }
            (_, Some(Unfounded::HedgeWithoutEvidence)) => "a guess by its own words, with nothing to show it",
            (_, Some(Unfounded::RequiredEvidenceMissing)) => "lacks the kind of evidence its category needs",
            (_, Some(Unfounded::LineUnrelated)) => "the cited line has nothing in common with it",
            (_, None) if finding.severity == Severity::Info => "INFO is advice",
            (_, None) => "accepted by a person",
        };
        let description: String = finding.description.chars().take(WORDS).collect();
        let number = lines.len() + 1;
        let place = if finding.location.is_empty() { "no place" } else { finding.location.as_str() };
        lines.push(format!("{number}. {} {place}: {description} ({why})", finding.severity.name()));
    }
    if lines.is_empty() {
        lines.push("It has no findings.".to_owned());
    }
    let more = review.findings.len().saturating_sub(NAMED);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}
