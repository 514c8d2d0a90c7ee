//! Which role gets a finding in the next cycle (AF-090, AF-091, CL-25).

use crate::model::{Destination, EXPERTISE, Finding, Flaw, PROGRAM};

/// The table of `docs/rules/routing.md`. Pairs that are not in it go by the nature of the category.
pub fn route(finding: &Finding) -> Destination {
    let flaw = match finding.flaw {
        Some(Flaw::DesignFlaw) => Destination::Creator,
        Some(Flaw::TestGap) => Destination::Maker,
        None => Destination::Creator,
    };
    if finding.source == PROGRAM {
        return Destination::Maker;
    }
    let knows = |(reviewer, categories, _): &&(&str, &[&str], Destination)| {
        *reviewer == finding.source && categories.contains(&finding.category.as_str())
    };
    if let Some((.., destination)) = EXPERTISE.iter().find(knows) {
        return *destination;
    }
    match finding.category.as_str() {
        "reliability" => flaw,
        "quality" | "consistency" | "testing" => Destination::Maker,
        _ => Destination::Creator,
    }
}
