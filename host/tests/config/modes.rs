//! The settings of sprints.

use super::*;

/// Without a file the configuration says what the core says by itself; with one, every key arrives.
#[test]
fn bx_22_every_setting_of_a_sprint_reaches_its_policy() {
    assert_eq!(Test::new().settings().sprint(), sprint::SprintPolicy::default());
    let settings = Test::new()
        .user(
            "sprint: {slots: 7, large: 1, low_priority: true, load_percent: 90, memory_mb: 1, checkpoint_tasks: 5, \
             checkpoint_minutes: 6, quality_percent: 8, failures: 9, budget_usd: 2.5, shares: ['shop=40%', till=5], \
             checkpoint_budget_percent: 10, last_budget_percent: 11, reruns: 12, busy_minutes: 13, patience_minutes: 14, landing_batch: 15, \
             warn_budget_percent: 16, standard_below_percent: 17, fast_below_percent: 18}\n",
        )
        .settings();
    let wanted = sprint::SprintPolicy {
        slots: 7,
        large: 1,
        low_priority: true,
        load_percent: 90,
        memory_mb: 1,
        checkpoint_tasks: 5,
        checkpoint_minutes: 6,
        quality_percent: 8,
        failures: 9,
        budget_usd: Some(Money(2_500_000)),
        shares: [("shop".to_owned(), 40), ("till".to_owned(), 5)].into(),
        checkpoint_budget_percent: 10,
        last_budget_percent: 11,
        reruns: 12,
        busy_minutes: 13,
        patience_minutes: 14,
        landing_batch: 15,
        warn_budget_percent: 16,
        standard_below_percent: 17,
        fast_below_percent: 18,
    };
    assert_eq!(settings.sprint(), wanted);
    let fault = Test::new().user("sprint: {autonomous: true}\n").faults();
    assert!(fault.contains("unknown key `sprint.autonomous`"), "{fault}");
}
