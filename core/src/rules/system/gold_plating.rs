//! AF-143: polishing while something CRITICAL is open. What the Maker calls fixed and no reviewer held against the change
//! counts, as long as a CRITICAL that was routed to the Maker is not among what it fixed. Who fixed all of them
//! may polish.

use std::collections::BTreeSet;

use super::Situation;
use crate::event::Tracked;
use crate::model::{Destination, Disposition, Prior, Severity, Sighting, counted};
use crate::rules::convergence::keywords;
use crate::rules::shadows::{number, sighting};

pub(super) const REMEDY: &str =
    "Fix the CRITICALs first, and leave everything below WARNING alone until they are gone.";

pub(super) fn check(now: &Situation<'_>, limit: Option<u32>) -> Option<Sighting> {
    let limit = limit?;
    let fixed: Vec<(&Prior, BTreeSet<String>)> = now
        .maker_prior
        .iter()
        .filter(|prior| prior.disposition == Disposition::Fixed)
        .map(|prior| (prior, keywords(&prior.text)))
        .collect();
    let means = |open: &Tracked| {
        let words = keywords(&open.description);
        fixed.iter().any(|(prior, said)| names(prior, said, open, &words))
    };
    let is_ours =
        |open: &&Tracked| open.severity == Severity::Critical && open.routes_to == Destination::Maker;
    let burning = now.open_before.iter().filter(is_ours).find(|open| !means(open))?;
    let asked: Vec<(&Tracked, BTreeSet<String>)> = now
        .open_before
        .iter()
        .filter(|open| open.severity >= Severity::Warning)
        .map(|open| (open, keywords(&open.description)))
        .collect();
    let unasked = |(prior, said): &&(&Prior, BTreeSet<String>)| {
        !asked.iter().any(|(open, words)| names(prior, said, open, words))
    };
    let polished = number(fixed.iter().filter(unasked).count());
    (polished >= limit.max(1)).then(|| {
        let detail = format!(
            "The Maker fixed {} nobody had to fix, while the CRITICAL {} is open",
            counted(polished, "thing"),
            burning.id
        );
        sighting("gold_plating", polished, limit, detail)
    })
}

/// A disposition means a finding if it names its id or its place, or shares half of its words.
fn names(prior: &Prior, said: &BTreeSet<String>, open: &Tracked, words: &BTreeSet<String>) -> bool {
    let place = format!("{}:{}", open.file, open.line);
    let of = said.len().min(words.len());
    let alike = of > 0 && said.intersection(words).count() * 2 >= of;
    let named = !open.id.is_empty() && prior.text.contains(open.id.as_str());
    let placed = !open.file.is_empty() && open.line > 0 && prior.text.contains(&place);
    named || placed || alike
}
