//! Reviewers without whose approval a change lands, in words.

use crate::event::{PassedOver, PassedOverBy};
use crate::model::counted;

/// `1 rejection passed over (sage: WARNINGs do not block in a pipeline)`, `skeptic failed`.
pub fn passed_over(reviewers: &[PassedOver]) -> Option<String> {
    let (failed, rejecting): (Vec<&PassedOver>, Vec<&PassedOver>) =
        reviewers.iter().partition(|one| one.why == PassedOverBy::Failed);
    let mut parts = Vec::new();
    if !rejecting.is_empty() {
        let each: Vec<String> =
            rejecting.iter().map(|one| format!("{}: {}", one.archetype, one.why.told())).collect();
        let count = counted(u32::try_from(rejecting.len()).unwrap_or(u32::MAX), "rejection");
        parts.push(format!("{count} passed over ({})", each.join("; ")));
    }
    if !failed.is_empty() {
        let names: Vec<&str> = failed.iter().map(|one| one.archetype.as_str()).collect();
        parts.push(format!("no review by {}", names.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
