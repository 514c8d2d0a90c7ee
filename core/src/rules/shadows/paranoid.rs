//! The Guardian's shadow (AF-133, CL-16): vigilance that blocks everything.
//!
//! **Immune:** a genuine CRITICAL, which is one that cites a line in a changed file, says what to do and shows
//! evidence. It counts towards no ratio, however many there are; and a rejection with a finding above INFO that
//! was verified is never one too many: evidence heals, an approval is never asked for. An approval blocks nothing, so
//! missing fixes in it do not count. A finding that presupposes a compromised system is valid if it shows a run or
//! quotes code.

use super::{About, Facts, Places, count, review, sighting};
use crate::model::{Citation, Finding, Review, Severity, Sighting, Verdict, counted};
use crate::rules::evidence;
use crate::settings::settings;

/// What is known of it.
pub(super) const ABOUT: About = About {
    title: "paranoid",
    archetype: "guardian",
    in_review: true,
    correction: "Ask of every CRITICAL whether a senior engineer would block the change for it. If \
    not, grade it lower or drop it. If so, keep it and prove it: cite the line, quote the code, or show the command and its \
    output. Give every finding above INFO a specific fix, and assume no attacker who already owns \
    the system. Then answer again with the whole review.",
};

settings! {
    /// AF-133 and CL-16.
    #[derive(Copy)]
    pub struct Paranoid at "shadows.paranoid." in (run.shadows.paranoid) {
        criticals: Option<u32> = Some(3), "criticals", Limit(1, 1_000), GuardedAbove, "Guardian: at least N CRITICALs, and more than `ratio` for each WARNING.";
        ratio: u32 = 2, "ratio", Whole(1, 100), GuardedAbove, "Guardian: see `criticals`.";
        no_approvals: Option<u32> = Some(3), "no_approvals", Limit(1, 1_000), GuardedAbove, "Guardian: at least N rejections in one run, in a row, without a verified finding.";
        fixes: Option<u32> = Some(50), "fixes", Limit(1, 100), GuardedBelow, "Guardian: fixes for less than N percent of the findings above INFO.";
        fixes_floor: u32 = 3, "fixes_floor", Whole(1, 1_000), GuardedAbove, "Guardian: least findings for this percentage.";
        /// Refusals are counted by their evidence, not by their verdict. Not so in journals from before it was.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_evidence: bool = true;
        compromised: Option<u32> = Some(1), "compromised", Limit(1, 1_000), GuardedAbove, "Guardian: at least N findings that presuppose a compromised system.";
    }
}

pub(super) fn check(facts: &Facts<'_>, policy: &Paranoid) -> Vec<Sighting> {
    let Some(review) = review(facts) else { return Vec::new() };
    let changed = facts.change.map(Places::of_change).unwrap_or_default();
    [
        criticals(review, &changed, policy),
        no_approvals(facts, review, &changed, policy),
        fixes(facts, review, policy),
        compromised(facts, policy),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn criticals(review: &Review, changed: &Places, policy: &Paranoid) -> Option<Sighting> {
    let limit = policy.criticals?;
    let is_claim =
        |finding: &&Finding| finding.severity == Severity::Critical && !is_proven(finding, changed, policy);
    let criticals = count(&review.findings, is_claim);
    let warnings = count(&review.findings, |finding| finding.severity == Severity::Warning);
    let heavy = u64::from(criticals) > u64::from(policy.ratio) * u64::from(warnings);
    (criticals >= limit.max(1) && heavy).then(|| {
        let placed = count(&review.findings, |finding| is_claim(finding) && cites(finding, changed));
        let detail = format!(
            "{} that show too little ({} without a line in the change, {placed} without evidence or a fix), against {}: more \
             than {} to 1",
            counted(criticals, "CRITICAL"),
            criticals.saturating_sub(placed),
            counted(warnings, "WARNING"),
            policy.ratio
        );
        sighting("criticals", criticals, limit, detail)
    })
}

fn no_approvals(facts: &Facts<'_>, review: &Review, changed: &Places, policy: &Paranoid) -> Option<Sighting> {
    let (limit, reviews) = (policy.no_approvals?, facts.reviews_without_approval);
    let above = |finding: &&Finding| finding.severity > Severity::Info;
    let mut above = review.findings.iter().filter(above);
    if policy.by_evidence {
        let rejects = review.verdict != Some(Verdict::Approved);
        return (rejects && reviews >= limit.max(1) && !above.any(evidence::is_verified)).then(|| {
            let detail =
                format!("{} in a row without a verified finding above INFO", counted(reviews, "rejection"));
            sighting("no_approvals", reviews, limit, detail)
        });
    }
    let right = above.any(|finding| is_genuine(finding, changed));
    (reviews >= limit.max(1) && !right).then(|| {
        let detail = format!("{} in this run and no approval among them", counted(reviews, "review"));
        sighting("no_approvals", reviews, limit, detail)
    })
}

/// Of findings above INFO in a review that does not approve.
fn fixes(facts: &Facts<'_>, review: &Review, policy: &Paranoid) -> Option<Sighting> {
    let limit = policy.fixes?;
    let grave = count(&review.findings, |finding| finding.severity > Severity::Info);
    let fixed = facts.answer.traits.grave_remedied;
    let few = u64::from(fixed) * 100 < u64::from(limit) * u64::from(grave);
    let blocks = review.verdict != Some(Verdict::Approved) && grave >= policy.fixes_floor;
    (blocks && few).then(|| {
        let detail = format!("a fix for {fixed} of {grave} findings above INFO, fewer than {limit} %");
        sighting("fixes", fixed * 100 / grave.max(1), limit, detail)
    })
}

fn compromised(facts: &Facts<'_>, policy: &Paranoid) -> Option<Sighting> {
    let (limit, found) = (policy.compromised?, facts.answer.traits.compromised);
    (found >= limit.max(1)).then(|| {
        let detail = format!(
            "{} about a system that is already taken over, and no evidence",
            counted(found, "finding")
        );
        sighting("compromised", found, limit, detail)
    })
}

/// A place in the change that was not found wanting, a fix, and evidence.
fn is_genuine(finding: &Finding, changed: &Places) -> bool {
    is_shown(finding, changed) && !finding.fix.is_empty()
}

/// The same, where a missing fix does not make what was shown a mere claim.
fn is_proven(finding: &Finding, changed: &Places, policy: &Paranoid) -> bool {
    if policy.by_evidence { is_shown(finding, changed) } else { is_genuine(finding, changed) }
}

fn is_shown(finding: &Finding, changed: &Places) -> bool {
    cites(finding, changed) && !finding.evidence.is_empty()
}

fn cites(finding: &Finding, changed: &Places) -> bool {
    let holds = |citation: &Citation| {
        citation.line > 0 && citation.holds != Some(false) && changed.hold(&citation.file)
    };
    finding.citations.iter().any(holds)
}
