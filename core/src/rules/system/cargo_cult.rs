//! AF-145: a lesson that was given and not learned. A finding is what a lesson warned of if half of the shorter one's
//! words are the other's too, the rule by which memory itself matches. Advice does not count as coming back.

use std::collections::BTreeSet;

use super::Situation;
use crate::model::{Finding, Lesson, Sighting};
use crate::rules::bag::{Bag, BagWords};
use crate::rules::convergence::keywords;
use crate::rules::shadows::number;

pub(super) const REMEDY: &str = "The lesson did not help: reword it, make it stronger, or forget it.";

pub(super) fn check(now: &Situation<'_>, limit: Option<u32>, percent: u32) -> Vec<Sighting> {
    let Some(limit) = limit.filter(|_| !now.lessons.is_empty()) else { return Vec::new() };
    let grave: Vec<(&Finding, Bag)> =
        now.grave.iter().map(|finding| (*finding, Bag::of(&finding.description))).collect();
    let is_back = |lesson: &Lesson, words: &BagWords, finding: &Finding, bag: &Bag| {
        bag.may_share(words, percent)
            && alike(&keywords(&lesson.description), &keywords(&finding.description), percent)
    };
    let returned: Vec<(&Lesson, &Finding)> = now
        .lessons
        .iter()
        .filter_map(|lesson| {
            let words = BagWords::of(&lesson.description);
            let back = grave.iter().find(|(finding, bag)| is_back(lesson, &words, finding, bag))?;
            Some((lesson, back.0))
        })
        .collect();
    let measured = number(returned.len());
    if measured < limit.max(1) {
        return Vec::new();
    }
    let told = |(lesson, finding): &(&Lesson, &Finding)| Sighting {
        trigger: "cargo_cult".to_owned(),
        measured: u64::from(measured),
        threshold: u64::from(limit),
        detail: format!("{}: told in this run and found again at {}", lesson.id, finding.location),
    };
    returned.iter().map(told).collect()
}

fn alike(a: &BTreeSet<String>, b: &BTreeSet<String>, percent: u32) -> bool {
    let of = a.len().min(b.len());
    of > 0 && a.intersection(b).count() * 100 >= of * percent as usize
}
