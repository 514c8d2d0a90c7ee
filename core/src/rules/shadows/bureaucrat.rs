//! The Sage's shadow (AF-136, CL-27): rules in place of judgment.
//!
//! **Immune:** a review that is short in itself, whatever the diff; the words of findings that are in the change and have
//! a fix, for these are the work; a demand for a test in a test file that was not changed; advice (INFO) outside of
//! the change; a "consider" that names what to do; documentation of what is public, unsafe or can fail.

use super::{About, Facts, Places, at_most, count, number, review, sighting};
use crate::model::{Change, Finding, Review, Sighting, counted};
use crate::rules::signs::is_test_path;
use crate::settings::settings;

/// What is known of it.
pub(super) const ABOUT: About = About {
    title: "bureaucrat",
    archetype: "sage",
    in_review: true,
    correction: "Keep only what somebody will stumble over in six months, inside the changed files. Give \
    every finding one specific action, drop what merely asks to consider or to document the obvious, and be quicker to read \
    than the diff. Then answer again with the whole review.",
};

settings! {
    /// AF-136 and CL-27.
    #[derive(Copy)]
    pub struct Bureaucrat at "shadows.bureaucrat." in (run.shadows.bureaucrat) {
        words: Option<u32> = Some(2), "words", Limit(1, 1_000), GuardedAbove, "Sage: more than N words for each line of the diff.";
        words_floor: u32 = 150, "words_floor", Whole(0, 100_000), GuardedAbove, "Sage: a review of at most N words is short, whatever the diff.";
        outside: Option<u32> = Some(1), "outside", Limit(1, 1_000), GuardedAbove, "Sage: at least N findings in files that were not changed.";
        considers: Option<u32> = Some(2), "considers", Limit(0, 1_000), GuardedAbove, "Sage: more than N \"consider\" without an action.";
        trivial_docs: Option<u32> = Some(1), "trivial_docs", Limit(1, 1_000), GuardedAbove, "Sage: at least N demands to document what explains itself.";
    }
}

pub(super) fn check(facts: &Facts<'_>, policy: &Bureaucrat) -> Vec<Sighting> {
    let Some(review) = review(facts) else { return Vec::new() };
    let changed = facts.change.map(Places::of_change).unwrap_or_default();
    [
        outside(review, &changed, policy),
        words(facts, review, &changed, policy),
        considers(facts, policy),
        trivial_docs(facts, policy),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn words(facts: &Facts<'_>, review: &Review, changed: &Places, policy: &Bureaucrat) -> Option<Sighting> {
    let (ratio, change) = (policy.words?, facts.change?);
    let (lines, spent) = (lines(change), tied_words(facts, review, changed));
    let words = facts.answer.words.saturating_sub(spent);
    let limit = lines.saturating_mul(ratio);
    (words > policy.words_floor && words > limit).then(|| {
        let detail = format!(
            "{} beside findings in the change that say what to do, for a diff of {}: more than {ratio} for each",
            counted(words, "word"),
            counted(lines, "line")
        );
        sighting("words", words, limit, detail)
    })
}

/// Lines added and deleted. What the log does not hold of a change counts as long.
fn lines(change: &Change) -> u32 {
    if change.files_left_out > 0 {
        return u32::MAX;
    }
    change.files.iter().fold(0, |sum, file| sum.saturating_add(file.added).saturating_add(file.deleted))
}

/// The share of the words of findings with a fix that belongs to those in the change.
fn tied_words(facts: &Facts<'_>, review: &Review, changed: &Places) -> u32 {
    let traits = &facts.answer.traits;
    let is_tied =
        |finding: &&Finding| !finding.file.is_empty() && !finding.fix.is_empty() && changed.touch(finding);
    let tied = u64::from(count(&review.findings, is_tied));
    let share = u64::from(traits.actionable_words) * tied / u64::from(traits.actionable.max(1));
    u32::try_from(share).unwrap_or(u32::MAX)
}

fn outside(review: &Review, changed: &Places, policy: &Bureaucrat) -> Option<Sighting> {
    let limit = policy.outside?;
    let mut strays = super::strays(review, changed);
    strays.retain(|finding| finding.category != "testing" || !is_test_path(&finding.file));
    let (outside, first) = (number(strays.len()), strays.first()?);
    (outside >= limit.max(1)).then(|| {
        let place = &first.location;
        let detail = format!("{} outside of the changed files, such as {place}", counted(outside, "finding"));
        sighting("outside", outside, limit, detail)
    })
}

fn considers(facts: &Facts<'_>, policy: &Bureaucrat) -> Option<Sighting> {
    let (limit, found) = (policy.considers?, facts.answer.traits.considers);
    (found > limit).then(|| {
        let detail = format!("{} \"consider\" without an action, {}", counted(found, "time"), at_most(limit));
        sighting("considers", found, limit, detail)
    })
}

fn trivial_docs(facts: &Facts<'_>, policy: &Bureaucrat) -> Option<Sighting> {
    let (limit, found) = (policy.trivial_docs?, facts.answer.traits.trivial_docs);
    (found >= limit.max(1)).then(|| {
        let detail = format!("{} to document what explains itself", counted(found, "demand"));
        sighting("trivial_docs", found, limit, detail)
    })
}
