//! What a step of the suite computes, and how much it may: the time that it takes would say as much about what else the
//! machine does.

use std::time::Duration;

use super::Step;

/// What all commands so far computed, in user and kernel mode.
pub(super) fn computed() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program, in brackets, may contain anything.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let [user, system] = [ticks(13)?, ticks(14)?];
    Some(Duration::from_millis(user.saturating_add(system).saturating_mul(1000) / TICKS_A_SECOND))
}

/// Of the times in `/proc`, on all processors that Linux knows.
const TICKS_A_SECOND: u64 = 100;

/// A step that computes twice as much as it did has a reason.
pub(super) fn over(step: &Step, computed: Duration) -> Option<String> {
    let (minutes, most) = (computed.as_secs() / 60, step.minutes.saturating_mul(2));
    (minutes >= most).then(|| {
        format!(
            "it computed for {minutes} minutes, twice the {} that it has: find the cause, or change its budget \
             in xtask/src/test.rs",
            step.minutes
        )
    })
}
