//! What ran of the tests, before a change and with it. Weakened tests pass; that fewer of them ran shows only in the
//! numbers. The rows are in `docs/rules/raised.md`.

use crate::event::{Tested, TestsRan};
use crate::model::{Counted, Sign, TestCounts};

/// What a passing run of the tests shows less than the one on the base; nothing where the base's counts nothing. Tests that are
/// skipped or expected to fail did not run.
pub fn weaker(before: &TestsRan, now: &TestsRan) -> Option<Counted> {
    let detail = fewer(before, now).or_else(|| rewritten(before, now))?;
    Some(Counted { sign: Sign::TestsWeakened, path: String::new(), line: 0, detail })
}

const OLD_LOGS: &str = "act-old-tests-*.log";

/// The tests as they were before the change, where they do not pass on the new code. A change of what is wanted changes its tests
/// rightly, so a person has to look.
pub fn old_fail(now: &TestsRan) -> Option<Counted> {
    let old = now.old.as_ref()?;
    let failed = |counts: Option<TestCounts>| counts.map_or(0, |counts| counts.failed);
    let count = failed(old.counts);
    let end = match old.result {
        Tested::Passed if count <= failed(now.counts) => return None,
        Tested::Passed | Tested::Failed => "fail",
        Tested::TimedOut => "do not end in time",
        Tested::Broken => "can't be run",
    };
    // The number of the log is in the journal: it differs where a run was resumed, and words that decide must not.
    let told = if count > 0 { format!("{count} failed (see {OLD_LOGS})") } else { format!("see {OLD_LOGS}") };
    let detail = format!("the tests as they were before the change {end} on the new code: {told}");
    Some(Counted { sign: Sign::OldTestsFail, path: String::new(), line: 0, detail })
}

fn fewer(before: &TestsRan, now: &TestsRan) -> Option<String> {
    let old = before.counts.filter(|old| old.ran() > 0)?;
    let Some(new) = now.counts else {
        return Some(format!(
            "the test command counts no tests any more; before the change {} ran",
            old.ran()
        ));
    };
    if new.failed > old.failed {
        let told = format!("the test command passed, although its output counts {} failed", new.failed);
        return Some(format!("{told} (before the change: {})", old.failed));
    }
    (new.ran() < old.ran()).then(|| {
        format!(
            "fewer tests ran than before the change: {} to {} (skipped or expected to fail: {} to {})",
            old.ran(),
            new.ran(),
            old.skipped,
            new.skipped
        )
    })
}

/// Files that the tests did not change before: what passed is not what lands.
fn rewritten(before: &TestsRan, now: &TestsRan) -> Option<String> {
    let new: Vec<&str> =
        now.changed.iter().filter(|path| !before.changed.contains(path)).map(String::as_str).collect();
    let (first, rest) = new.split_first()?;
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    Some(format!("the tests changed files of the commit while they ran: {first}{more}"))
}
