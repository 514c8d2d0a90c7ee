//! How many tests passed and failed, as far as a known runner prints it at the end of its output (PJ-43).

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub passed: u32,
    pub failed: u32,
}

/// The sum over all lines that count. Nothing where no line does: no number is better than a wrong one.
pub fn counts(output: &str) -> Option<Counts> {
    let found = output.lines().filter_map(of_line);
    found.reduce(|sum, more| Counts {
        passed: sum.passed.saturating_add(more.passed),
        failed: sum.failed.saturating_add(more.failed),
    })
}

/// `14 passed; 0 failed`, `5 passed, 1 failed in 0.3s`, `Tests: 1 failed, 5 passed, 6 total`, `# pass 3`, `# fail 1`.
fn of_line(line: &str) -> Option<Counts> {
    let clean: String =
        line.chars().map(|c| if matches!(c, ';' | ',' | '=' | ':' | '.') { ' ' } else { c }).collect();
    let words: Vec<&str> = clean.split_whitespace().collect();
    if let ["#", "pass" | "fail", number] = words.as_slice() {
        let number = number.parse().ok()?;
        let passes = words.get(1) == Some(&"pass");
        return Some(Counts {
            passed: if passes { number } else { 0 },
            failed: if passes { 0 } else { number },
        });
    }
    // A jest run counts suites and tests; only tests are.
    if line.trim_start().starts_with("Test Suites:") || line.trim_start().starts_with("Snapshots:") {
        return None;
    }
    let before = |names: &[&str]| {
        let pairs = words.windows(2).find(|pair| pair.get(1).is_some_and(|word| names.contains(word)));
        pairs.and_then(|pair| pair.first()?.parse::<u32>().ok())
    };
    let (passed, failed) = (before(&["passed", "passing"]), before(&["failed", "failing", "failures"]));
    let errors = before(&["error", "errors"]).unwrap_or(0);
    match (passed, failed) {
        (None, None) => None,
        (passed, failed) => {
            Some(Counts { passed: passed.unwrap_or(0), failed: failed.unwrap_or(0).saturating_add(errors) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, counts};

    #[test]
    fn pj_43_tests_are_counted_where_the_runner_says_so() {
        let some = |passed, failed| Some(Counts { passed, failed });
        for (output, expected) in [
            ("test result: ok. 14 passed; 0 failed; 0 ignored", some(14, 0)),
            ("test result: ok. 2 passed; 0 failed\ntest result: FAILED. 3 passed; 1 failed", some(5, 1)),
            ("===== 1 failed, 5 passed in 0.31s =====", some(5, 1)),
            ("5 passed, 2 errors in 1s", some(5, 2)),
            ("Test Suites: 1 failed, 1 total\nTests:       1 failed, 5 passed, 6 total", some(5, 1)),
            ("  7 passing (20ms)\n  1 failing", some(7, 1)),
            ("# tests 4\n# pass 3\n# fail 1", some(3, 1)),
            ("ok", None),
            ("", None),
            ("all passed", None),
        ] {
            assert_eq!(counts(output), expected, "{output}");
        }
    }
}
