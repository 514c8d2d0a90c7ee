//! When a run is stopped (`c_sequences.jsonl`, and the histories of this repository): right, too early or too late.

use serde_json::Value;

use super::{Measure, Measures, text};

#[path = "../../../core/tests/common/stop_rules.rs"]
mod stop_rules;

use stop_rules::{CycleOfHistory, StopHistory, StopRule, finding_at, histories, tally};

pub(super) fn measure(items: &[Value]) -> Measures {
    let own = histories(include_str!("../../../core/tests/corpus/stops/histories.md"));
    let given: Vec<StopHistory> = items.iter().map(sequence).collect();
    Ok(vec![row("stops, real sequences", &given), row("stops, own histories", &own)])
}

fn row(what: &str, histories: &[StopHistory]) -> Measure {
    let ours = tally(histories, StopRule::Ours);
    let others: Vec<_> =
        StopRule::ALL.into_iter().skip(1).map(|rule| (rule, tally(histories, rule))).collect();
    let best = others.iter().map(|(_, other)| other.right).max().unwrap_or(0);
    let baseline: Vec<String> =
        others.iter().map(|(rule, other)| format!("{}: {other}", rule.name())).collect();
    Measure {
        what: format!("{what} ({})", histories.len()),
        baseline: baseline.join("; "),
        figure: ours.to_string(),
        goal: "as good as the best simple rule".to_owned(),
        met: ours.right >= best,
        mistakes: ours.mistakes,
    }
}

/// Letters are identities: each gets a file and words of its own.
fn sequence(item: &Value) -> StopHistory {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let cycles = item.get("cycles").map(list).unwrap_or_default();
    let finding = |found: &Value| {
        let letter = text(found, "f");
        let critical = found.get("critical").and_then(Value::as_bool).unwrap_or(false);
        finding_at(&format!("src/{letter}.rs"), 10, critical, &format!("input{letter} breaks parser{letter}"))
    };
    let right = item.get("ok").map(list).unwrap_or_default();
    StopHistory {
        name: text(item, "id").to_owned(),
        cycles: cycles
            .iter()
            .map(|cycle| CycleOfHistory {
                findings: list(cycle).iter().map(finding).collect(),
                touched: None,
                diff: String::new(),
            })
            .collect(),
        right: right.iter().filter_map(|n| usize::try_from(n.as_u64()?).ok()).collect(),
    }
}
