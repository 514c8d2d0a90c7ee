//! Which role gets a finding in the next cycle (AF-090, AF-091, CL-25).

use crate::model::{Destination, EXPERTISE, Finding, Flaw, PROGRAM};

/// The table of `docs/rules/routing.md`. Pairs that are not in it go by the nature of the category. What a finding's words
/// say about missing tests counts before.
pub fn route(finding: &Finding) -> Destination {
    if lacks_a_test(finding) { Destination::Maker } else { route_by_category(finding) }
}

/// The same without the words, as in runs from before they counted (M-08).
pub fn route_by_category(finding: &Finding) -> Destination {
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

/// What the Trickster writes where a test is missing, in whatever category (M-08).
pub const MISSING_TEST: [&str; 8] = [
    "test gap",
    "add a test",
    "add tests",
    "missing test",
    "no test covers",
    "not covered by a test",
    "write a test",
    "untested",
];

fn lacks_a_test(finding: &Finding) -> bool {
    let tests_only = |(reviewer, categories, _): &(&str, &[&str], Destination)| {
        *reviewer == finding.source && *categories == ["testing"]
    };
    if !EXPERTISE.iter().any(tests_only) || finding.flaw == Some(Flaw::DesignFlaw) {
        return false;
    }
    let texts = [&finding.category, &finding.description, &finding.fix];
    texts.iter().any(|text| {
        let text = text.to_lowercase().replace(['-', '_'], " ");
        MISSING_TEST.iter().any(|words| text.contains(words))
    })
}
