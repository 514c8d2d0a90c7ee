//! Which role gets a finding in the next cycle (AF-090, AF-091, CL-25).

use crate::model::{Destination, Finding, Flaw, PROGRAM};

/// The table of `docs/rules/routing.md`. Pairs that are not in it go by the nature of the category.
pub fn route(finding: &Finding) -> Destination {
    let flaw = match finding.flaw {
        Some(Flaw::DesignFlaw) => Destination::Creator,
        Some(Flaw::TestGap) => Destination::Maker,
        None => Destination::Creator,
    };
    match (finding.source.as_str(), finding.category.as_str()) {
        (PROGRAM, _) => Destination::Maker,
        ("guardian", "security" | "breaking-change" | "reliability" | "dependency") => Destination::Creator,
        ("skeptic", "design" | "scalability") => Destination::Creator,
        ("sage", "quality" | "consistency" | "testing") => Destination::Maker,
        ("trickster", "testing") => Destination::Maker,
        (_, "reliability") => flaw,
        (_, "quality" | "consistency" | "testing") => Destination::Maker,
        (_, _) => Destination::Creator,
    }
}
