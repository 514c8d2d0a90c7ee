//! The tests that ran, by name, in the output of common test runners. A runner that names only what fails says
//! nothing about what ran. The rows are in `docs/rules/preflight.md`.

use std::collections::BTreeSet;

use super::test_output::{cargo, failing_test, go, gradle, marked, tap, without_colours, without_time};

/// Names kept of one output.
const AT_MOST: usize = 50_000;

/// The tests that an output names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamedTests {
    pub passed: BTreeSet<String>,
    pub failed: BTreeSet<String>,
    /// A test passed after the last one that failed, so the run did not end there.
    pub went_on: bool,
    /// The runner says that it left tests out because one failed.
    pub ended_early: bool,
}

impl NamedTests {
    pub fn has_run(&self, name: &str) -> bool {
        self.passed.contains(name) || self.failed.contains(name)
    }
}

pub fn named_tests(output: &str) -> NamedTests {
    let mut named = NamedTests { ended_early: ended_early(output), ..NamedTests::default() };
    for line in output.lines() {
        let line = without_colours(line);
        if named.passed.len() + named.failed.len() >= AT_MOST {
            break;
        }
        if let Some(name) = passing(&line) {
            named.passed.insert(name.to_owned());
            // Go lists the parts of a test behind the whole.
            let is_part = line.starts_with(' ') && line.trim_start().starts_with("--- ");
            named.went_on |= !named.failed.is_empty() && !is_part;
        } else if let Some(name) = failing(&line) {
            named.went_on &= !named.failed.insert(name.to_owned());
        } else if let Some(name) = failing_test(&line) {
            // Listed once more at the end.
            named.failed.insert(name.to_owned());
        }
    }
    named
}

fn passing(line: &str) -> Option<&str> {
    let text = line.trim();
    let cargo = || text.strip_prefix("test ")?.strip_suffix(" ... ok");
    let nextest = || text.strip_prefix("PASS [")?.split_once(']').map(|(_, name)| name.trim());
    let go =
        || text.strip_prefix("--- PASS: ").map(|rest| rest.split_once(" (").map_or(rest, |(name, _)| name));
    let tap = || {
        let rest = text.strip_prefix("ok ").filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
        let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let rest = rest.strip_prefix("- ").unwrap_or(rest);
        (!rest.contains(" # ") && !rest.starts_with('#')).then_some(rest)
    };
    let marks = ["✓ ", "✔ ", "√ "];
    let node = || marks.iter().find_map(|mark| text.strip_prefix(mark)).map(without_time);
    let gradle =
        || text.strip_suffix(" PASSED").filter(|name| name.contains(" > ") && !name.starts_with('>'));
    let found =
        cargo().or_else(nextest).or_else(|| pytest(text, "PASSED")).or_else(|| unittest(text, &["ok"]));
    found.or_else(go).or_else(tap).or_else(node).or_else(gradle).filter(|name| !name.is_empty())
}

/// Where it ran, not where failures are listed.
fn failing(line: &str) -> Option<&str> {
    let text = line.trim();
    let pytest = pytest(text, "FAILED").or_else(|| pytest(text, "ERROR"));
    let found = pytest.or_else(|| unittest(text, &["FAIL", "ERROR"])).or_else(|| cargo(text));
    found.or_else(|| go(text)).or_else(|| tap(text)).or_else(|| marked(text)).or_else(|| gradle(text))
}

/// `tests/test_till.py::test_sum PASSED [ 50%]`, `[gw0] [ 50%] PASSED tests/test_till.py::test_sum`.
fn pytest<'a>(text: &'a str, how: &str) -> Option<&'a str> {
    let at = text.find(how)?;
    let (before, after) = (text[..at].trim(), text[at + how.len()..].trim());
    let is_name = |name: &&str| name.contains(".py::") && !name.starts_with('[');
    Some(before)
        .filter(is_name)
        .or_else(|| Some(after).filter(|name| is_name(name) && before.starts_with("[gw")))
}

/// `test_sum (tests.TillTest.test_sum) ... ok`.
fn unittest<'a>(text: &'a str, ends: &[&str]) -> Option<&'a str> {
    let (test, end) = text.rsplit_once(" ... ")?;
    let (name, place) = test.split_once(" (")?;
    (ends.contains(&end) && !name.contains(' ') && place.ends_with(')')).then_some(test)
}

fn ended_early(output: &str) -> bool {
    const MARKS: [&str; 8] = [
        "stopping after ",
        "!!! Interrupted: ",
        "Bail out!",
        "Cancelling due to ",
        "not run due to ",
        "not run because ",
        "Stopping on failure",
        "due to fail-fast",
    ];
    // Cargo ends at the first program with a failing test, unless it says at the end which ones failed.
    let cargo = output.contains("error: test failed, to rerun pass ")
        && !output.contains(" target failed:")
        && !output.contains(" targets failed:");
    cargo || MARKS.iter().any(|mark| output.contains(mark))
}
