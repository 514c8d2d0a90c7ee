//! AF-140 and CL-01: all reviewers look at one spot. With too few files for a fifth of them to be one, or with one
//! reviewer, the question is not asked (CL-33).

use std::collections::{BTreeMap, BTreeSet};

use super::Situation;
use crate::model::{Finding, Sighting};
use crate::rules::shadows::{Places, number, sighting};
use crate::settings::settings;

pub(super) const REMEDY: &str = "Attention is stuck in one place. Ask anew whether quality, tests, design or the other changed \
    files hold something nobody has looked at.";

settings! {
    /// AF-140 and CL-01.
    #[derive(Copy)]
    pub struct TunnelVision at "system_shadows.tunnel_vision." in (run.system_shadows.tunnel_vision) {
        files: Option<u32> = Some(80), "files", Limit(1, 100), GuardedAbove, "More than N percent of the findings are in a few of the changed files.";
        files_percent: u32 = 20, "files_percent", Whole(1, 100), GuardedBelow, "A few are fewer than N percent of the changed files.";
        findings_floor: u32 = 3, "findings_floor", Whole(1, 1_000), GuardedAbove, "Least findings for this percentage.";
        category: Option<u32> = Some(3), "category", Limit(1, 1_000), GuardedAbove, "At least N findings, all of one category.";
        reviewers: u32 = 2, "reviewers", Whole(2, 100), GuardedAbove, "Least reviewers that must have run for `category`.";
    }
}

pub(super) fn check(now: &Situation<'_>, policy: &TunnelVision) -> Vec<Sighting> {
    [files(now, policy), category(now, policy)].into_iter().flatten().collect()
}

/// Fewer than N percent of the changed files hold more than M percent of the findings. The fullest files
/// are taken first, so if any such set fires, this one does.
fn files(now: &Situation<'_>, policy: &TunnelVision) -> Option<Sighting> {
    let (limit, change) = (policy.files?, now.change?);
    let places = Places::of_change(change);
    let findings: Vec<&Finding> = now.reviews.iter().flat_map(|(_, review, _)| &review.findings).collect();
    let mut held: BTreeMap<&str, u64> = BTreeMap::new();
    for finding in findings.iter().filter(|finding| places.hold(&finding.file)) {
        *held.entry(&finding.file).or_default() += 1;
    }
    let mut fullest: Vec<u64> = held.into_values().collect();
    fullest.sort_unstable_by(|a, b| b.cmp(a));
    let all = number(change.files.len()).saturating_add(change.files_left_out);
    let share = u64::from(policy.files_percent) * u64::from(all);
    let few = (0..=fullest.len()).rev().find(|n| u64::from(number(*n)) * 100 < share)?;
    let inside: u64 = fullest.iter().take(few).sum();
    let total = u64::from(number(findings.len()));
    let enough = total >= u64::from(policy.findings_floor);
    (few > 0 && enough && inside * 100 > u64::from(limit) * total).then(|| Sighting {
        trigger: "files".to_owned(),
        measured: inside * 100 / total.max(1),
        threshold: u64::from(limit),
        detail: format!("{inside} of {total} findings lie in {few} of {all} changed files"),
    })
}

fn category(now: &Situation<'_>, policy: &TunnelVision) -> Option<Sighting> {
    let limit = policy.category?;
    let findings = now.reviews.iter().flat_map(|(_, review, _)| &review.findings);
    let kinds: Vec<&str> = findings.map(|finding| finding.category.as_str()).collect();
    let one = kinds.iter().collect::<BTreeSet<_>>().len() == 1;
    let enough = number(now.reviews.len()) >= policy.reviewers && number(kinds.len()) >= limit.max(1);
    (one && enough).then(|| {
        let kind = kinds.first().copied().unwrap_or_default();
        let detail = format!("all {} findings are of one category, {kind}", kinds.len());
        sighting("category", number(kinds.len()), limit, detail)
    })
}
