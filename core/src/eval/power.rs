//! What a suite of this size can show, and what size it would take.

use super::special::t_quantile;

/// More tasks than anybody has.
const MOST_TASKS: u64 = 10_000_000;

/// The smallest true difference that is found with the chance `power`: the mean of `tasks` differences whose standard
/// deviation is `spread`. Student's t stands for both the test's threshold and the chance to pass it, as in the usual
/// tables of sample sizes for pairs.
///
/// `None` where nothing can be said: fewer than two tasks, or a spread of 0.
pub fn detectable_difference(spread: f64, tasks: u64, alpha: f64, power: f64) -> Option<f64> {
    if tasks < 2 || !spread.is_finite() || spread <= 0.0 {
        return None;
    }
    let freedom = (tasks - 1) as f64;
    let steps = t_quantile(1.0 - 0.5 * alpha, freedom) + t_quantile(power, freedom);
    Some(steps * spread / (tasks as f64).sqrt())
}

/// The number of tasks for which `difference` is detectable. `None` for a difference or spread of 0, and if no
/// reasonable number is enough.
pub fn tasks_needed(difference: f64, spread: f64, alpha: f64, power: f64) -> Option<u64> {
    let enough = |tasks| {
        detectable_difference(spread, tasks, alpha, power).is_some_and(|least| least <= difference.abs())
    };
    if !enough(MOST_TASKS) {
        return None;
    }
    let (mut too_few, mut many) = (1, MOST_TASKS);
    while many - too_few > 1 {
        let middle = u64::midpoint(too_few, many);
        if enough(middle) { many = middle } else { too_few = middle }
    }
    Some(many)
}

/// The number of tasks that must differ, all in favour of the same arm, before the exact tests can be significant in
/// the strictest of this many comparisons.
pub fn fewest_differing(alpha: f64, comparisons: usize) -> u32 {
    let strictest = alpha / comparisons.max(1) as f64;
    (1..=1_000).find(|differing| 2.0 * 0.5_f64.powi(*differing) < strictest).map_or(1_000, i32::unsigned_abs)
}
