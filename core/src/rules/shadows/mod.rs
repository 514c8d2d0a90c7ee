//! Archetype shadows (AF-130..AF-136): whether an answer shows its archetype's virtue pushed too far.
//!
//! One file per shadow with everything about it: name, archetype, thresholds with their settings, one function per trigger,
//! and the correction. One line in `shadows!` below makes it known. The text was looked at when the answer was read
//! (`read/traits`); here numbers are compared, exactly and in whole numbers (D-13).
//!
//! **Immunity (AF-137).** Intensity alone is no shadow. Every file says what a genuine, intense answer looks like
//! and takes it out before anything is counted. Two exemptions hold everywhere: an INFO is advice and costs
//! no cycle, so it counts only where all findings are counted; and what is tied to the change, by a place in it or
//! by evidence, is the work that was asked for.
//!
//! Deliberately absent: what follows from a detection. Those are the escalation steps, in `steps`.

#[macro_use]
mod list;
mod places;
pub(crate) mod steps;

pub(crate) use places::{Places, is_code, is_in, is_tail};
pub(crate) use rogue::outside;

use crate::model::{
    Answer, AnswerBody, Change, Domain, Finding, Proposal, Review, Severity, ShadowSet, Sighting,
};

shadows! {
    mod rabbit_hole is RabbitHole;
    mod over_architect is OverArchitect;
    mod rogue is Rogue;
    mod paranoid is Paranoid;
    mod paralytic is Paralytic;
    mod false_alarm is FalseAlarm;
    mod bureaucrat is Bureaucrat;
}

/// What the program knows of a shadow beside its triggers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Its name in a sentence.
    pub title: &'static str,
    /// The archetype whose virtue it is, pushed too far.
    pub archetype: &'static str,
    /// It shows in a review, which has a verdict of its own.
    pub in_review: bool,
    /// What the agent is asked to do now.
    pub correction: &'static str,
}

impl Shadow {
    /// By its name, however it is spelled: `over-architect`, `False Alarm`.
    pub fn parse(word: &str) -> Option<Shadow> {
        let plain = word.trim().to_lowercase().replace(['-', ' '], "_");
        Shadow::ALL.iter().copied().find(|shadow| shadow.name() == plain)
    }
}

/// What a check looks at. All from the log.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub answer: &'a Answer,
    /// The Maker's work: just made, or under review.
    pub change: Option<&'a Change>,
    /// Of this cycle.
    pub proposal: Option<&'a Proposal>,
    /// What this cycle's proposal lists; `proposal` may hold what earlier ones did as well.
    pub items: u32,
    pub task: &'a str,
    pub domain: Domain,
    /// Rejections of this archetype in a row, this review included, that have no finding with evidence. In journals from
    /// before evidence counted: its reviews in this run without an approval; 0 once it approved.
    pub reviews_without_approval: u32,
}

/// The triggers of a shadow that fire on an answer, most severe first. None: the answer is healthy.
pub fn check(shadow: Shadow, facts: &Facts<'_>, policy: &Shadows) -> Vec<Sighting> {
    if policy.enabled { shadow.triggers(facts, policy) } else { Vec::new() }
}

/// The first of an archetype's shadows that an answer shows. One answer is one strike: an agent is asked to correct one
/// thing at a time, and its next answer is checked for all of them again.
pub fn first(
    ShadowSet(shadows): &ShadowSet,
    facts: &Facts<'_>,
    policy: &Shadows,
) -> Option<(Shadow, Vec<Sighting>)> {
    let mut seen = shadows.iter().map(|shadow| (*shadow, check(*shadow, facts, policy)));
    seen.find(|(_, sightings)| !sightings.is_empty())
}

/// The correction prompt: the shadow by name, what was detected, and what to do now. A fresh agent has not answered yet and
/// is given another's answer.
pub fn correction(shadow: Shadow, sightings: &[Sighting], fresh: bool) -> String {
    let About { title, correction, in_review, .. } = shadow.about();
    let whose = if fresh { "The answer before yours showed" } else { "Your answer shows" };
    let mut text = format!("{whose} the shadow of your role: {title}. What was seen:\n\n");
    for sighting in sightings {
        text += &format!("- {}\n", sighting.detail);
    }
    text += if fresh { "\nWhat was asked for then holds for you from the start:\n\n" } else { "\n" };
    text = text + correction + "\n";
    if in_review {
        text += "\nYour verdict is your own. This is about what a finding shows, not about approving: a rejection whose \
                 findings have evidence is right, however often it is given.\n";
    }
    text
}

/// A trigger that fired.
pub(crate) fn sighting(trigger: &str, measured: u32, threshold: u32, detail: String) -> Sighting {
    Sighting {
        trigger: trigger.to_owned(),
        measured: u64::from(measured),
        threshold: u64::from(threshold),
        detail,
    }
}

/// The review in an answer, where it is one.
fn review<'a>(facts: &Facts<'a>) -> Option<&'a Review> {
    match &facts.answer.said {
        AnswerBody::Review(review) => Some(review),
        AnswerBody::Prose | AnswerBody::Proposal(_) => None,
    }
}

/// Findings above INFO in files that are not part of the change, and that cite none that is, in the order of their
/// places: which one a detail names does not depend on the order of the answer (D-13).
fn strays<'a>(review: &'a Review, changed: &Places) -> Vec<&'a Finding> {
    let is_stray = |finding: &&Finding| {
        finding.severity > Severity::Info && !finding.file.is_empty() && !changed.touch(finding)
    };
    let all = review.findings.iter().filter(|_| !changed.is_empty());
    let mut strays: Vec<&Finding> = all.filter(is_stray).collect();
    strays.sort_by_key(|finding| (finding.file.as_str(), finding.line));
    strays
}

/// The words in the first bytes of a text. A hyphen stays inside its word.
fn words_of(text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let start = text.get(..end).unwrap_or_default();
    start.split(|c: char| !c.is_alphanumeric() && c != '-').filter(|word| !word.is_empty())
}

/// Whether a word begins with a stem, in any case.
fn begins(word: &str, stem: &str) -> bool {
    word.get(..stem.len()).is_some_and(|start| start.eq_ignore_ascii_case(stem))
}

fn count<'a>(findings: &'a [Finding], wanted: impl Fn(&&'a Finding) -> bool) -> u32 {
    number(findings.iter().filter(wanted).count())
}

/// How many would have been no shadow.
pub(crate) fn at_most(limit: u32) -> String {
    format!("where at most {limit} {} fine", if limit == 1 { "is" } else { "are" })
}

pub(crate) fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
