//! How many tests ran, as far as a known runner prints it (PJ-43, R-07). The rows are in `docs/rules/preflight.md`.

use super::test_names::named_tests;
use super::test_output::without_colours;
use crate::model::TestCounts;

/// The sum over all lines that count; where none does, the tests that are named. Nothing where there are none either: no
/// number is better than a wrong one.
pub fn test_counts(output: &str) -> Option<TestCounts> {
    let mut sum: Option<TestCounts> = None;
    let mut ran = None;
    for line in output.lines() {
        let line = without_colours(line);
        if let Some(number) = unittest_ran(&line) {
            ran = Some(number);
        }
        let found = match ran.filter(|_| is_unittest_end(&line)) {
            Some(number) => {
                ran = None;
                Some(of_unittest(number, &line))
            }
            None => of_line(&line),
        };
        if let Some(found) = found {
            sum = Some(sum.unwrap_or_default().plus(found));
        }
    }
    sum.or_else(|| {
        let named = named_tests(output);
        let (passed, failed) = (number(named.passed.len()), number(named.failed.len()));
        (passed > 0).then_some(TestCounts { passed, failed, skipped: 0 })
    })
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// `Ran 3 tests in 0.001s`.
fn unittest_ran(line: &str) -> Option<u32> {
    let rest = line.strip_prefix("Ran ")?;
    let (number, rest) = rest.split_once(' ')?;
    (rest.starts_with("test in ") || rest.starts_with("tests in ")).then(|| number.parse().ok())?
}

fn is_unittest_end(line: &str) -> bool {
    line == "OK"
        || line.starts_with("OK (")
        || line.starts_with("FAILED (")
        || line.starts_with("NO TESTS RAN")
}

/// `OK (skipped=1, expected failures=1)`, `FAILED (failures=1)`: those that ran are all others.
fn of_unittest(ran: u32, line: &str) -> TestCounts {
    let of = |name: &str| {
        let parts = line.split(['(', ')', ',']).map(str::trim);
        let found = parts.filter_map(|part| part.strip_prefix(name)?.strip_prefix('=')?.parse::<u32>().ok());
        found.sum::<u32>()
    };
    let failed = of("failures").saturating_add(of("errors")).saturating_add(of("unexpected successes"));
    let skipped = of("skipped").saturating_add(of("expected failures"));
    TestCounts { passed: ran.saturating_sub(failed).saturating_sub(skipped), failed, skipped }
}

/// `14 passed; 0 failed`, `5 passed, 1 failed in 0.3s`, `Tests: 1 failed, 5 passed, 6 total`, `# pass 3`, `# fail 1`.
fn of_line(line: &str) -> Option<TestCounts> {
    let text = line.trim_start().trim_start_matches("[INFO] ").trim_start_matches("[ERROR] ");
    // A jest run counts suites and tests; only tests are. Maven counts each class, and then all.
    if ["Test Suites:", "Snapshots:"].iter().any(|start| text.starts_with(start))
        || text.contains("Time elapsed")
    {
        return None;
    }
    let clean: String = line
        .chars()
        .map(|c| if matches!(c, ';' | ',' | '=' | ':' | '.' | '(' | ')') { ' ' } else { c })
        .collect();
    let words: Vec<&str> = clean.split_whitespace().collect();
    if let ["#" | "ℹ", what, number] = words.as_slice() {
        let number: u32 = number.parse().ok()?;
        return match *what {
            "pass" => Some(TestCounts { passed: number, ..TestCounts::default() }),
            "fail" => Some(TestCounts { failed: number, ..TestCounts::default() }),
            "skipped" | "todo" => Some(TestCounts { skipped: number, ..TestCounts::default() }),
            _ => None,
        };
    }
    if text.starts_with("Tests run:") || (text.starts_with("Tests:") && text.contains("Assertions:")) {
        return keyed(text);
    }
    let before = |names: &[&str]| {
        let pairs = words.windows(2).filter(|pair| pair.get(1).is_some_and(|word| names.contains(word)));
        let mut numbers = pairs.filter_map(|pair| pair.first()?.parse::<u32>().ok()).peekable();
        numbers.peek().is_some().then(|| numbers.fold(0, u32::saturating_add))
    };
    let failed = before(&["failed", "failing", "failure", "failures"]);
    let failed_or_broken = failed.unwrap_or(0).saturating_add(before(&["error", "errors"]).unwrap_or(0));
    let skipped = before(&["ignored", "skipped", "pending", "todo", "xfailed", "deselected"]).unwrap_or(0);
    let all = before(&["examples", "example", "tests", "test"])
        .filter(|_| failed.is_some() || text.starts_with("OK ("));
    let passed = before(&["passed", "passing"])
        .or_else(|| all.map(|all| all.saturating_sub(failed_or_broken).saturating_sub(skipped)));
    // Mocha has a line for each.
    let is_alone = words.len() == 2 && words.get(1) == Some(&"pending") && skipped > 0;
    (passed.is_some() || failed.is_some() || is_alone).then(|| TestCounts {
        passed: passed.unwrap_or(0),
        failed: failed_or_broken,
        skipped,
    })
}

/// `Tests run: 5, Failures: 1, Errors: 0, Skipped: 1`, `Tests: 5, Assertions: 9, Failures: 1.`
fn keyed(text: &str) -> Option<TestCounts> {
    let of = |names: &[&str]| {
        let pairs = text.split([',', '.']).filter_map(|part| part.trim().split_once(": "));
        let found = pairs.filter(|(name, _)| names.contains(name));
        found.filter_map(|(_, number)| number.trim().parse::<u32>().ok()).fold(0, u32::saturating_add)
    };
    let all = of(&["Tests", "Tests run"]);
    let (failed, skipped) = (of(&["Failures", "Errors"]), of(&["Skipped", "Incomplete"]));
    (all > 0).then(|| TestCounts {
        passed: all.saturating_sub(failed).saturating_sub(skipped),
        failed,
        skipped,
    })
}
