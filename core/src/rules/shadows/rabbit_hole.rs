//! The Explorer's shadow (AF-130): curiosity that has lost the question.
//!
//! **Immune:** a long answer that recommends something; many files, each with its reason, that lead to a
//! recommendation, as in a monorepo with scattered parts; an aside that explains its relation to the task,
//! or that is parked under a heading of its own; a recommendation that comes first, in an answer that is not
//! long; and an answer that ends with a question to a person instead of a recommendation.

use super::{About, Facts, at_most, sighting};
use crate::model::{Sighting, Status, counted};
use crate::settings::settings;

/// What is known of it.
pub(super) const ABOUT: About = About {
    title: "rabbit hole",
    archetype: "explorer",
    in_review: false,
    correction: "Stop exploring. Answer again with your three most important findings and \
    one recommendation, in at most 300 words, and end with the heading `Recommendation` and your status. Leave out \
    whatever would not change a plan.",
};

settings! {
    /// AF-130.
    #[derive(Copy)]
    pub struct RabbitHole at "shadows.rabbit_hole." in (run.shadows.rabbit_hole) {
        words: Option<u32> = Some(2_000), "words", Limit(1, 1_000_000), GuardedAbove, "Explorer: more than N words without a recommendation.";
        tangents: Option<u32> = Some(3), "tangents", Limit(1, 1_000), GuardedAbove, "Explorer: more than N tangents.";
        files: Option<u32> = Some(15), "files", Limit(1, 10_000), GuardedAbove, "Explorer: more than N files without a pattern among them.";
        synthesis: Option<u32> = Some(500), "synthesis", Limit(1, 1_000_000), GuardedAbove, "Explorer: more than N words without a conclusion in the last quarter.";
    }
}

pub(super) fn check(facts: &Facts<'_>, policy: &RabbitHole) -> Vec<Sighting> {
    if matches!(facts.answer.status, Status::NeedsContext | Status::Blocked) {
        return Vec::new();
    }
    [words(facts, policy), files(facts, policy), tangents(facts, policy), synthesis(facts, policy)]
        .into_iter()
        .flatten()
        .collect()
}

fn words(facts: &Facts<'_>, policy: &RabbitHole) -> Option<Sighting> {
    let (limit, words) = (policy.words?, facts.answer.words);
    let lost = words > limit && !facts.answer.traits.recommendation;
    lost.then(|| {
        let detail =
            format!("{words} words without a recommendation, where at most {limit} may go without one");
        sighting("words", words, limit, detail)
    })
}

fn files(facts: &Facts<'_>, policy: &RabbitHole) -> Option<Sighting> {
    let (limit, traits) = (policy.files?, &facts.answer.traits);
    // With a recommendation at the end, files that each have their reason were read for it.
    let astray = if traits.recommendation { traits.bare_files } else { traits.files };
    (astray > limit && !traits.patterns).then(|| {
        let detail = format!(
            "{} named and no pattern among them, where more than {limit} need one",
            counted(astray, "file")
        );
        sighting("files", astray, limit, detail)
    })
}

fn tangents(facts: &Facts<'_>, policy: &RabbitHole) -> Option<Sighting> {
    let (limit, tangents) = (policy.tangents?, facts.answer.traits.tangents);
    (tangents > limit).then(|| {
        let detail =
            format!("{} by the answer's own account, {}", counted(tangents, "tangent"), at_most(limit));
        sighting("tangents", tangents, limit, detail)
    })
}

fn synthesis(facts: &Facts<'_>, policy: &RabbitHole) -> Option<Sighting> {
    let (limit, words, traits) = (policy.synthesis?, facts.answer.words, &facts.answer.traits);
    let said_first = traits.recommendation && policy.words.is_none_or(|long| words <= long);
    (words > limit && !traits.synthesis && !said_first).then(|| {
        let detail = format!("{words} words, and nothing in their last quarter draws a conclusion");
        sighting("synthesis", words, limit, detail)
    })
}
