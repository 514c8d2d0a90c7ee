//! J-09: our rules for stopping against simple ones, on histories written for it.

#[path = "common/stop_rules.rs"]
mod stop_rules;

use stop_rules::{StopRule, finding_at, histories, tally};

#[test]
fn j_09_stop_rules_against_the_corpus() {
    let histories = histories(include_str!("corpus/stops/histories.md"));
    assert!(histories.len() >= 60, "{}", histories.len());
    assert!(histories.iter().all(|history| history.cycles.len() >= 2 && !history.right.is_empty()));
    let ours = tally(&histories, StopRule::Ours);
    assert_eq!(ours.right + ours.false_stop + ours.late, histories.len());
    for rule in StopRule::ALL.into_iter().skip(1) {
        let other = tally(&histories, rule);
        assert!(ours.right > other.right, "{} is as good: {other}, ours {ours}", rule.name());
    }
    assert_eq!(ours.false_stop, 0, "slow successes are stopped:\n{}", ours.mistakes.join("\n"));
    assert_eq!(finding_at("a.rs", 1, true, "x").location, "a.rs:1");
}
