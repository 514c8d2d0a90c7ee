//! Two findings of two reviews of one change: are they the same (`b_pairs.jsonl`)?

use archeflow_core::rules::identity::FindingClaim;
use serde_json::Value;

use super::{Measure, Measures, Tally, number, text};

type Describe = fn(&Value) -> String;

/// How much of a finding's text is its description.
const DESCRIPTIONS: &[(&str, Describe)] =
    &[("title", title), ("title and a sentence", title_and_sentence), ("whole text", whole)];

pub(super) fn measure(items: &[Value]) -> Measures {
    let mut rows = Vec::new();
    for (name, describe) in DESCRIPTIONS.iter().copied() {
        for (question, sources) in
            [("cycles", ["guardian", "guardian"]), ("reviewers", ["guardian", "skeptic"])]
        {
            rows.push(compare(items, &format!("same finding, {question}, {name}"), describe, sources));
        }
    }
    Ok(rows)
}

fn compare(items: &[Value], what: &str, describe: fn(&Value) -> String, sources: [&str; 2]) -> Measure {
    let (mut ours, mut place, mut mistakes) = (Tally::default(), Tally::default(), Vec::new());
    for item in items {
        let (Some(a), Some(b)) = (item.get("a"), item.get("b")) else { continue };
        let truth = text(item, "label") == "same";
        let (left, right) = (describe(a), describe(b));
        let left = FindingClaim::new(text(a, "file"), number(a, "line"), "", &left).by([sources[0]]);
        let right = FindingClaim::new(text(b, "file"), number(b, "line"), "", &right).by([sources[1]]);
        let likeness = left.compare(&right);
        ours.add(truth, likeness.is_same());
        place.add(truth, text(a, "file") == text(b, "file"));
        if truth != likeness.is_same() {
            let id = text(item, "id");
            mistakes.push(format!("{id} is {} ({}): {likeness}", text(item, "label"), text(item, "kind")));
        }
    }
    let across_cycles = sources[0] == sources[1];
    let met =
        if across_cycles { ours.f1() >= 0.90 && ours.precision() >= 0.93 } else { ours.precision() >= 0.90 };
    let goal = if across_cycles { "F1 0.90, P 0.93" } else { "P 0.90" };
    Measure {
        what: what.to_owned(),
        baseline: format!("same file: {place}"),
        figure: ours.to_string(),
        goal: goal.to_owned(),
        met,
        mistakes,
    }
}

fn title(finding: &Value) -> String {
    text(finding, "title").to_owned()
}

fn title_and_sentence(finding: &Value) -> String {
    let issue = text(finding, "issue");
    let end = issue.find(". ").or_else(|| issue.find(".\n")).map_or(issue.len(), |at| at + 1);
    format!("{} {}", text(finding, "title"), issue.get(..end).unwrap_or(issue))
}

fn whole(finding: &Value) -> String {
    format!("{} {}", text(finding, "title"), text(finding, "issue"))
}
