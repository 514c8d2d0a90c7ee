//! AF-144: planning in place of doing. A plan that was quick in itself is none, however quick the doing was; nor is
//! one for which nothing was done yet.

use super::Situation;
use crate::model::{Sighting, counted};
use crate::rules::shadows::sighting;
use crate::settings::settings;

pub(super) const REMEDY: &str =
    "Stop researching. Ship a proposal now, and write its known gaps under `Risks` instead of closing them.";

settings! {
    /// AF-144.
    #[derive(Copy)]
    pub struct AnalysisParalysis at "system_shadows.analysis_paralysis." in (run.system_shadows.analysis_paralysis) {
        plan_ratio: Option<u32> = Some(2), "plan_ratio", Limit(1, 1_000), GuardedAbove, "Plan took more than N times as long as Do.";
        plan_floor_seconds: u32 = 300, "plan_floor_seconds", Whole(0, 86_400), GuardedAbove, "A plan of at most N seconds is quick, whatever Do took.";
        explorer_starts: Option<u32> = Some(3), "explorer_starts", Limit(1, 1_000), GuardedAbove, "At least N starts of the Explorer in one cycle.";
    }
}

pub(super) fn check(now: &Situation<'_>, policy: &AnalysisParalysis) -> Vec<Sighting> {
    [plan_ratio(now, policy), explorer_starts(now, policy)].into_iter().flatten().collect()
}

fn plan_ratio(now: &Situation<'_>, policy: &AnalysisParalysis) -> Option<Sighting> {
    let ratio = policy.plan_ratio?;
    let long = now.plan_ms > u64::from(policy.plan_floor_seconds) * 1000;
    let limit = now.do_ms.saturating_mul(u64::from(ratio));
    (now.do_ms > 0 && long && now.plan_ms > limit).then(|| Sighting {
        trigger: "plan_ratio".to_owned(),
        measured: now.plan_ms,
        threshold: limit,
        detail: format!(
            "Planning took {} s and doing {} s: more than {ratio} times as long",
            now.plan_ms / 1000,
            now.do_ms / 1000
        ),
    })
}

fn explorer_starts(now: &Situation<'_>, policy: &AnalysisParalysis) -> Option<Sighting> {
    let (limit, starts) = (policy.explorer_starts?, now.explorer_starts);
    (starts >= limit.max(1)).then(|| {
        sighting(
            "explorer_starts",
            starts,
            limit,
            format!("The Explorer was sent {} in this cycle", counted(starts, "time")),
        )
    })
}
