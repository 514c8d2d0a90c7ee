//! Objections that would be passed over, or that alone keep a change from landing, with too little to show (J-04, J-07): a
//! rejection of which nothing counts, a CRITICAL at a line that has nothing in common with it, a finding beside the change, and a
//! CRITICAL with nothing but a place that the successor of its author does not have. The reviewer is asked once, with what became
//! of each of its findings. If it insists, a person decides; a finding beside the change then counts as INFO.
//! `docs/rules/objections.md`.
//!
//! Asked only where the answer decides. Where the change goes into another cycle anyway, the objection has had its way.

use std::collections::BTreeSet;

use crate::event::{Conclusion, QuestionAsked, QuestionKind, Unfounded};
use crate::model::{Finding, Outcome, Reason, ReproductionResult, Review, RunStatus, Severity, counted};
use crate::rules::evidence;
use crate::rules::shadows::Places;
use crate::run::{Cycle, Run};

use super::{act, asks, point};

/// Findings named in a question, and characters of each.
const NAMED: usize = 20;
const WORDS: usize = 300;

/// While the reviewers can still be asked.
pub(crate) fn in_check(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    let objection = unanswered(run, cycle)?;
    let name = objection.archetype;
    let Some(review) = cycle.review(name).filter(|_| !cycle.evidence_asked.contains(name)) else {
        return Some(ask_a_person(run, cycle, &objection));
    };
    let note = format!(
        "{}:\n\n{}\n\nShow for each of them that holds what is wrong: a line of the reviewed tree (`path:line`) with the code as it \
         is there, or a command with its output. For a file that the change does not touch, name the line of the change that \
         causes the problem. Withdraw the others. Your verdict is your own: if you still object without evidence, a person \
         decides.",
        objection.problem(),
        became(run, cycle, name, Some(review)).join("\n")
    );
    let decision = format!("the {name} is asked for evidence once before the change lands");
    Some(vec![point(name, "J-04", note, decision)])
}

/// In a review nothing lands, and a CRITICAL stays one. Only a finding beside the change is asked about, because it loses effect.
pub(crate) fn in_review(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    let changed = changed(run);
    let is_beside = |finding: &&Finding| is_beside(finding, changed.as_ref());
    let mut asked = cycle.reviewers().into_iter().filter(|(name, _)| !cycle.evidence_asked.contains(*name));
    let (name, review) = asked.find(|(name, _)| unproven(run, cycle, name).iter().any(&is_beside))?;
    let note = format!(
        "Findings of yours are about files that the change does not touch:\n\n{}\n\nFor each of them that holds, name the line \
         of the change that causes the problem (`path:line`), or show a command with its output. Withdraw the others.",
        became(run, cycle, name, Some(review)).join("\n")
    );
    Some(vec![point(name, "J-04", note, format!("the {name} is asked for evidence once"))])
}

/// Where a cycle is concluded that was entered after Check.
pub(crate) fn in_act(run: &Run, cycle: &Cycle) -> Option<Vec<Conclusion>> {
    Some(ask_a_person(run, cycle, &unanswered(run, cycle)?))
}

struct Objection<'a> {
    archetype: &'a str,
    rejects: bool,
    /// Some of its findings count, though too little shows them.
    has_findings_that_count: bool,
    /// All of these are of the reviewer before it.
    left_behind: bool,
}

impl Objection<'_> {
    fn problem(&self) -> &'static str {
        if self.left_behind {
            "You review in place of another, and nothing but a CRITICAL of that review holds the change"
        } else if self.has_findings_that_count {
            "The change is held by findings of yours that show too little"
        } else {
            "You rejected the change, and none of your findings counts against it"
        }
    }
}

/// The first reviewer by name whose objection decides and shows too little: if a CRITICAL at an unrelated line were a WARNING, and
/// a finding beside the change advice, the change would land.
fn unanswered<'a>(run: &Run, cycle: &'a Cycle) -> Option<Objection<'a>> {
    if run.rules().cycles_are_parts() {
        return None;
    }
    let names: BTreeSet<&str> =
        cycle.reviewers().into_iter().map(|(name, _)| name).chain(cycle.rejecting()).collect();
    let names: BTreeSet<&str> =
        cycle.left_behind().map(|finding| finding.source.as_str()).chain(names).collect();
    // A rejection whose findings a person accepted has its answer.
    let (weighed, stated) = (act::standing(run, cycle), cycle.weighed());
    let lands_with_all = act::would_land(run, cycle, &weighed);
    let (mut objections, mut shown) = (Vec::new(), weighed.clone());
    for name in names {
        if cycle.overruled.contains(name) || cycle.upheld.contains(name) {
            continue;
        }
        let weak = unproven(run, cycle, name);
        let counts = |finding: &&Finding| finding.source == name && finding.severity > Severity::Info;
        let proven = stated.iter().filter(counts).filter(|finding| !weak.contains(finding)).count();
        let bare = cycle.rejects(name) && proven == 0;
        // A weak finding that does not keep the change from landing is only named.
        if bare || (!weak.is_empty() && !lands_with_all) {
            let has_findings_that_count = !weak.is_empty();
            objections.push(Objection {
                archetype: name,
                rejects: cycle.rejects(name),
                has_findings_that_count,
                left_behind: has_findings_that_count
                    && weak.iter().all(|finding| is_left_behind(cycle, finding)),
            });
            shown.iter_mut().filter(|finding| weak.contains(&&**finding)).for_each(|finding| {
                finding.severity =
                    if evidence::is_unrelated(finding) { Severity::Warning } else { Severity::Info };
            });
        }
    }
    let first = (!objections.is_empty()).then(|| objections.swap_remove(0))?;
    act::would_land(run, cycle, &shown).then_some(first)
}

/// The findings of a reviewer that count and show too little, but for those that a reproduction confirms or a person accepted.
fn unproven<'a>(run: &Run, cycle: &'a Cycle, name: &str) -> Vec<&'a Finding> {
    if !run.policy().evidence.enabled || cycle.upheld.contains(name) || cycle.overruled.contains(name) {
        return Vec::new();
    }
    let changed = changed(run);
    let findings = cycle.review(name).map_or(&[][..], |review| review.findings.as_slice());
    let weak = (0_u32..).zip(findings).filter(|(index, finding)| {
        let key = (name.to_owned(), *index);
        let tried = cycle.trials.get(&key).map(|(trial, ..)| *trial);
        tried != Some(ReproductionResult::Confirmed)
            && tried != Some(ReproductionResult::Refuted)
            && !cycle.downgrades.contains_key(&key)
            && (evidence::is_unrelated(finding) || is_beside(finding, changed.as_ref()))
    });
    let left_behind = cycle.left_behind().filter(|finding| finding.source == name);
    let bare = left_behind
        .filter(|finding| !(shows(finding) && changed.as_ref().is_some_and(|all| all.touch(finding))));
    weak.map(|(_, finding)| finding).chain(bare).collect()
}

/// Verified, and its author shows more than a place: a place alone does not tell it from a complaint.
fn shows(finding: &Finding) -> bool {
    evidence::shows_something(finding) && evidence::is_verified(finding)
}

fn is_left_behind(cycle: &Cycle, finding: &Finding) -> bool {
    cycle.left_behind().any(|left| left == finding)
}

/// The files of the work, where they are known.
pub(crate) fn changed(run: &Run) -> Option<Places<'_>> {
    let change = run.review.as_ref().map(|opened| &opened.change).or(run.work.as_ref())?;
    Some(Places::of_change(change))
}

pub(crate) fn is_beside(finding: &Finding, changed: Option<&Places<'_>>) -> bool {
    changed.is_some_and(|changed| evidence::is_beside(finding, changed))
}

fn ask_a_person(run: &Run, cycle: &Cycle, objection: &Objection<'_>) -> Vec<Conclusion> {
    let name = objection.archetype;
    let review = cycle.review(name);
    let count = review.map_or(0, |review| review.findings.len());
    let findings = counted(u32::try_from(count).unwrap_or(u32::MAX), "finding");
    let holds = if objection.rejects { "rejects the change" } else { "holds the change" };
    let detail = match (review, objection.has_findings_that_count) {
        (_, _) if objection.left_behind => {
            format!("the {name} was replaced or skipped with a CRITICAL that nobody has shown or withdrawn")
        }
        (None, _) => format!("the {name} rejected the version before and did not look at this one"),
        (Some(_), true) => format!("the {name} {holds} with {findings}, and the CRITICAL shows too little"),
        (Some(_), false) => {
            format!("the {name} rejects the change with {findings} and no evidence that counts")
        }
    };
    let reason = Reason::RejectedWithoutEvidence;
    let question = QuestionAsked {
        kind: QuestionKind::Rejection,
        archetype: name.to_owned(),
        question: format!(
            "{}. What now? 'land' passes over the objection; 'fix' lets its findings count as they are; 'stop' ends the run; \
             anything else lets them count and is passed on to the agents.",
            crate::projections::view::capital(&detail)
        ),
        details: if review.is_some() || objection.left_behind {
            became(run, cycle, name, review)
        } else {
            Vec::new()
        },
        unanswered: Outcome { status: RunStatus::AwaitingAnswer, reason, detail },
    };
    asks(run, question, RunStatus::Stopped, reason)
}

/// Each finding, and why it does not count.
fn became(run: &Run, cycle: &Cycle, name: &str, review: Option<&Review>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let changed = changed(run);
    let accepted = !run.corrections.accepted.is_empty();
    // The order in which they were written decides nothing (D-13).
    let own = review.map_or(&[][..], |review| review.findings.as_slice());
    let mut findings: Vec<(u32, &Finding)> = (0_u32..).zip(own).collect();
    // Their numbers are no answer's.
    let left_behind = cycle.left_behind().filter(|finding| finding.source == name);
    findings.extend(left_behind.map(|finding| (u32::MAX, finding)));
    findings.sort_by(|(_, a), (_, b)| b.severity.cmp(&a.severity).then_with(|| a.cmp(b)));
    let all = findings.len();
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
            (_, Some(Unfounded::BesideTheChange)) => "beside the change",
            (_, None) if index == u32::MAX => "of the reviewer that was replaced or skipped",
            (_, None) if finding.severity == Severity::Info => "INFO is advice",
            (_, None) if evidence::is_unrelated(finding) => "the cited line has nothing in common with it",
            (_, None) if is_beside(finding, changed.as_ref()) => {
                "the change does not touch this file, and no line of it is named as the cause"
            }
            (_, None) if !accepted => "it counts",
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
    let more = all.saturating_sub(NAMED);
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}
