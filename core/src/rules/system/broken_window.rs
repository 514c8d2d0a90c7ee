//! AF-146: what every run leaves for the next one.

use super::Situation;
use crate::model::{Sighting, counted};
use crate::rules::shadows::sighting;

pub(super) const REMEDY: &str = "Plan a run that does nothing but clear them up, before the next feature.";

pub(super) fn check(now: &Situation<'_>, limit: Option<u32>) -> Option<Sighting> {
    let (limit, left) = (limit?, now.deferred_warnings);
    (left >= limit.max(1)).then(|| {
        let detail =
            format!("{} left open by runs of this project one after the other", counted(left, "WARNING"));
        sighting("broken_window", left, limit, detail)
    })
}
