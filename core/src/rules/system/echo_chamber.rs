//! AF-141 and CL-02: reviewers who say the same, or agree before they can have looked. With one reviewer there is
//! nothing to echo (CL-33).

use std::collections::{BTreeMap, BTreeSet};

use super::Situation;
use crate::model::{Finding, Overlap, Review, Severity, Sighting, Verdict, Workflow};
use crate::rules::evidence;
use crate::rules::identity::{self, FindingClaim};
use crate::rules::shadows::{number, sighting};
use crate::settings::settings;

pub(super) fn remedy(trigger: &str) -> &'static str {
    match trigger {
        "fast_consensus" => {
            "This agreement came suspiciously fast. Review again as an adversary: assume that the change is wrong, and \
             show where."
        }
        _ => "The reviewers see the same through different lenses. Look where the others do not.",
    }
}

settings! {
    /// AF-141 and CL-02.
    #[derive(Copy)]
    pub struct EchoChamber at "system_shadows.echo_chamber." in (run.system_shadows.echo_chamber) {
        duplicate_findings: Option<u32> = Some(60), "duplicate_findings", Limit(0, 100), GuardedAbove, "More than N percent of the findings are raised by two reviewers.";
        fast_consensus: Option<u32> = Some(30), "fast_consensus", Limit(1, 86_400), GuardedBelow, "All approved without a finding in less than N seconds.";
        reviewers: u32 = 2, "reviewers", Whole(2, 100), GuardedAbove, "Least reviewers that must have run.";
        /// Agreement on a CRITICAL that was verified is met with a second look once, and is never a reason to stop. Not so in
        /// journals from before it was.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_evidence: bool = true;
    }
}

pub(super) fn check(now: &Situation<'_>, policy: &EchoChamber) -> Vec<Sighting> {
    if number(now.reviews.len()) < policy.reviewers.max(2) {
        return Vec::new();
    }
    [duplicate_findings(now, policy), fast_consensus(now, policy)].into_iter().flatten().collect()
}

/// The share of findings, before they are merged, that two reviewers raised. Without a file two findings can't be known
/// to be the same.
fn duplicate_findings(now: &Situation<'_>, policy: &EchoChamber) -> Option<Sighting> {
    let limit = policy.duplicate_findings?;
    let (shared, all, which) = match now.overlap {
        Overlap::Weighed => raised_twice(now),
        Overlap::Min | Overlap::Jaccard => raised_at_one_place(now),
    };
    (shared * 100 > u64::from(limit) * all).then(|| Sighting {
        trigger: "duplicate_findings".to_owned(),
        measured: shared * 100 / all.max(1),
        threshold: u64::from(limit),
        detail: format!("{shared} of {all} findings {which}"),
    })
}

/// Whether reviewers who say the same have shown something CRITICAL: they confirm each other, and don't echo.
pub fn agrees_on_evidence<'a>(
    reviews: impl IntoIterator<Item = &'a Review>,
    sighting: &Sighting,
    policy: &EchoChamber,
) -> bool {
    let of_reviews = reviews.into_iter().flat_map(|review| &review.findings);
    let above: Vec<&Finding> = of_reviews.filter(|finding| finding.severity > Severity::Info).collect();
    policy.by_evidence
        && sighting.trigger == "duplicate_findings"
        && above.iter().any(|finding| finding.severity == Severity::Critical)
        && above.into_iter().all(evidence::is_verified)
}

/// From this many on, findings are compared within their file only.
const FLOOD: usize = 400;

fn raised_twice(now: &Situation<'_>) -> (u64, u64, &'static str) {
    let findings: Vec<(&str, &Finding)> = now
        .reviews
        .iter()
        .flat_map(|(who, review, _)| review.findings.iter().map(|finding| (*who, finding)))
        .collect();
    let placed: Vec<(&str, &Finding)> =
        findings.iter().filter(|(_, finding)| !finding.file.is_empty()).copied().collect();
    let flood = placed.len() > FLOOD;
    let claims: Vec<(&str, FindingClaim<'_>)> = comparable(&placed)
        .into_iter()
        .map(|(who, finding)| {
            let Finding { file, line, category, description, .. } = finding;
            (who, FindingClaim::new(file, *line, category, description).by([who]))
        })
        .collect();
    let twice = |(who, claim): &&(&str, FindingClaim<'_>)| {
        claims.iter().any(|(other, its)| {
            other != who && (!flood || its.is_in_file_of(claim)) && claim.points_if_same(its).is_some()
        })
    };
    let shared = claims.iter().filter(twice).count() as u64;
    (shared, findings.len() as u64, "were raised by another reviewer too")
}

/// The findings that another reviewer's can be the same as: about one file, or with names of code that they may share.
/// Most are about a file that nobody else writes about, and their words need not be read.
fn comparable<'a>(findings: &[(&'a str, &'a Finding)]) -> Vec<(&'a str, &'a Finding)> {
    let several = |who: &BTreeSet<&str>| who.len() >= 2;
    let mut by_file: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (who, finding) in findings {
        by_file.entry(&finding.file).or_default().insert(who);
    }
    let named: Vec<bool> =
        findings.iter().map(|(_, finding)| identity::may_name(&finding.description)).collect();
    let named_by = findings.iter().zip(&named).filter(|(_, named)| **named).map(|((who, _), _)| *who);
    let by_name = several(&named_by.collect());
    let is_comparable = |((_, finding), named): &(&(&str, &Finding), &bool)| {
        by_file.get(finding.file.as_str()).is_some_and(several) || (by_name && **named)
    };
    findings.iter().zip(&named).filter(is_comparable).map(|(found, _)| *found).collect()
}

/// As runs from before [`Overlap::Weighed`] count: by file and category alone.
fn raised_at_one_place(now: &Situation<'_>) -> (u64, u64, &'static str) {
    let mut raised: BTreeMap<(&str, &str), (u64, BTreeSet<&str>)> = BTreeMap::new();
    let mut all = 0;
    for (who, review, _) in &now.reviews {
        for finding in &review.findings {
            all += 1;
            if !finding.file.is_empty() {
                let place = raised.entry((&finding.file, &finding.category)).or_default();
                place.0 += 1;
                place.1.insert(who);
            }
        }
    }
    let shared: u64 = raised.values().filter(|(_, who)| who.len() >= 2).map(|(count, _)| count).sum();
    (shared, all, "have a file and category that another reviewer raised too")
}

/// Who objected to the version before and approves now, after a look at its own findings, is no echo of the others.
fn fast_consensus(now: &Situation<'_>, policy: &EchoChamber) -> Option<Sighting> {
    let seconds = policy.fast_consensus?;
    let objected =
        |who: &str| now.open_before.iter().any(|open| open.source.iter().any(|source| source == who));
    if now.reviews.iter().filter(|(who, ..)| !objected(who)).count() < 2 {
        return None;
    }
    let unanimous = now
        .reviews
        .iter()
        .all(|(_, review, verdict)| *verdict == Verdict::Approved && review.findings.is_empty());
    let fast = now.check_ms < u64::from(seconds) * 1000;
    (unanimous && fast && now.workflow != Workflow::Fast).then(|| {
        let took = u32::try_from(now.check_ms / 1000).unwrap_or(u32::MAX);
        let detail = format!(
            "{} reviewers approved without a finding in {took} s, which is less than {seconds} s",
            now.reviews.len()
        );
        sighting("fast_consensus", took, seconds, detail)
    })
}
