//! Whose turn it is after a signal block of the Human/Planner/Actor/Judge loop, as written in practice.

use archeflow_core::model::{LoopPolicy, Speaker};
use archeflow_core::strategies::agent_loop::signal::spoken;
use serde_json::Value;

use super::{Measure, Measures, share, text};

const GOAL: f64 = 0.97;

pub(super) fn measure(items: &[Value]) -> Measures {
    let (mut right, mut asked_back, mut misrouted, mut trivial) = (0, 0, 0, 0);
    let mut mistakes = Vec::new();
    for item in items {
        let (block, expected) = (text(item, "text"), text(item, "expected_next"));
        let expected = Speaker::parse(expected)
            .ok_or_else(|| format!("{}: nobody is called '{expected}'", text(item, "id")))?;
        let read = spoken(block, &LoopPolicy::default());
        let next = read.next.filter(|_| read.fault.is_empty());
        trivial += u32::from(last_next_line(block) == Some(expected));
        match next {
            Some(next) if next == expected => right += 1,
            Some(next) => {
                misrouted += 1;
                mistakes.push(format!(
                    "{}: {} instead of {}",
                    text(item, "id"),
                    next.name(),
                    expected.name()
                ));
            }
            None => {
                asked_back += 1;
                mistakes.push(format!("{}: asked back: {}", text(item, "id"), read.fault));
            }
        }
    }
    let all = u32::try_from(items.len()).unwrap_or(u32::MAX);
    Ok(vec![Measure {
        what: "signal blocks routed right".to_owned(),
        baseline: format!("{trivial} of {all}"),
        figure: format!("{right} of {all}, {asked_back} asked back, {misrouted} wrong"),
        goal: "97 %, the others asked back".to_owned(),
        met: share(right, all) >= GOAL && misrouted == 0,
        mistakes,
    }])
}

/// The trivial rule: the last line `Next: X` with nothing else on it.
fn last_next_line(block: &str) -> Option<Speaker> {
    let line = block.lines().rev().find_map(|line| line.trim_start_matches("- ").strip_prefix("Next:"));
    line.and_then(|name| Speaker::parse(name.trim()))
}
