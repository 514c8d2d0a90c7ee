//! What is open at the end of a cycle, in numbers.

use crate::event::CycleBoundary;
use crate::model::Severity;

/// How many findings are open of each severity: critical, warning, info. Findings that are one count once (M-09), also those
/// of reviewers that did not look again; those of INFO are not tracked.
pub fn open_tally(boundary: &CycleBoundary) -> [u32; 3] {
    let tally = |severity| boundary.open.iter().filter(|finding| finding.severity == severity).count();
    let [critical, warning] = [Severity::Critical, Severity::Warning].map(tally);
    let [critical, warning] = [critical, warning].map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    [critical, warning, boundary.info]
}

/// The same in words.
pub fn open_counts(boundary: &CycleBoundary) -> String {
    let [critical, warning, info] = open_tally(boundary);
    format!("{critical} CRITICAL, {warning} WARNING, {info} INFO")
}
