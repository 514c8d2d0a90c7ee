//! AF-141 and CL-02: reviewers who say the same, or agree before they can have looked. With one reviewer there is
//! nothing to echo (CL-33).

use std::collections::{BTreeMap, BTreeSet};

use super::Situation;
use crate::model::{Overlap, Sighting, Verdict, Workflow};
use crate::rules::identity::FindingClaim;
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

/// From this many on, findings are compared within their file only.
const FLOOD: usize = 400;

fn raised_twice(now: &Situation<'_>) -> (u64, u64, &'static str) {
    let mut claims: Vec<(&str, &str, FindingClaim<'_>)> = Vec::new();
    let mut all = 0;
    for (who, review, _) in &now.reviews {
        for finding in &review.findings {
            all += 1;
            if !finding.file.is_empty() {
                let claim =
                    FindingClaim::new(&finding.file, finding.line, &finding.category, &finding.description);
                claims.push((who, &finding.file, claim.by([*who])));
            }
        }
    }
    let flood = claims.len() > FLOOD;
    let twice = |(who, file, claim): &&(&str, &str, FindingClaim<'_>)| {
        claims.iter().any(|(other, its_file, its)| {
            other != who && (!flood || its_file == file) && claim.compare(its).is_same()
        })
    };
    let shared = claims.iter().filter(twice).count() as u64;
    (shared, all, "were raised by another reviewer too")
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

fn fast_consensus(now: &Situation<'_>, policy: &EchoChamber) -> Option<Sighting> {
    let seconds = policy.fast_consensus?;
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
