//! The names of failing tests in the output of common test runners (U-10). A runner that is not known gives no name,
//! and then nothing is concluded from names. The rows are in `docs/rules/preflight.md`.

use std::collections::BTreeSet;

/// Names kept of one output.
const AT_MOST: usize = 2_000;
const LONGEST: usize = 300;

/// The failing tests that an output names, each once, in alphabetical order.
pub fn failing_tests(output: &str) -> Vec<String> {
    let mut names = BTreeSet::new();
    for line in output.lines() {
        let line = without_colours(line);
        let name = failing_test(&line).map(str::trim).filter(|name| !name.is_empty());
        if let Some(name) = name.filter(|_| names.len() < AT_MOST) {
            names.insert(name.chars().take(LONGEST).collect());
        }
    }
    names.into_iter().collect()
}

pub(super) fn failing_test(line: &str) -> Option<&str> {
    let text = line.trim();
    cargo(text)
        .or_else(|| pytest(text))
        .or_else(|| unittest(text))
        .or_else(|| go(text))
        .or_else(|| tap(text))
        .or_else(|| node(line))
        .or_else(|| rspec(text))
        .or_else(|| gradle(text))
}

/// `test parser::reads_empty ... FAILED`, and the same of nextest: `FAIL [ 0.005s] crate parser::reads_empty`.
pub(super) fn cargo(text: &str) -> Option<&str> {
    if let Some(rest) = text.strip_prefix("test ") {
        return rest.strip_suffix(" ... FAILED");
    }
    let rest = text.strip_prefix("FAIL [")?;
    rest.split_once(']').filter(|(time, _)| time.trim().ends_with('s')).map(|(_, name)| name)
}

/// `FAILED tests/test_till.py::test_sum - assert 1 == 2`, `ERROR tests/test_till.py - ImportError`.
fn pytest(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("FAILED ").or_else(|| text.strip_prefix("ERROR "))?;
    // A parameter in brackets may hold anything.
    let bracket = rest.find('[').and_then(|from| Some(from + rest[from..].find("] - ")? + 1));
    let end = bracket.or_else(|| rest.find(" - ").filter(|_| !rest.ends_with(']')));
    let name = end.map_or(rest, |end| &rest[..end]);
    let file = name.split("::").next().unwrap_or(name);
    (file.ends_with(".py") && !file.contains(' ')).then_some(name)
}

/// `FAIL: test_sum (tests.TillTest.test_sum)`, `ERROR: test_sum (tests.TillTest)`.
fn unittest(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("FAIL: ").or_else(|| text.strip_prefix("ERROR: "))?;
    let (name, place) = rest.split_once(" (")?;
    (!name.contains(' ') && place.ends_with(')')).then_some(rest)
}

/// `--- FAIL: TestSum/empty (0.00s)`.
pub(super) fn go(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("--- FAIL: ")?;
    Some(rest.split_once(" (").map_or(rest, |(name, _)| name))
}

/// `not ok 3 - sums up`, but not `# TODO` and `# SKIP`, which do not fail.
pub(super) fn tap(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("not ok ")?;
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
    let rest = rest.strip_prefix("- ").unwrap_or(rest);
    let (name, directive) = rest.split_once(" # ").unwrap_or((rest, ""));
    let directive = directive.to_ascii_lowercase();
    (!directive.starts_with("todo") && !directive.starts_with("skip")).then_some(name)
}

/// Jest, Vitest, node:test and Mocha: `● till › sums up`, `× sums up 3ms`, `✕ sums up (3 ms)`, `✖ sums up (1.2ms)`,
/// `FAIL  test/till.test.js > sums up`, `1) sums up:`.
fn node(line: &str) -> Option<&str> {
    let text = line.trim();
    if let Some(rest) = text.strip_prefix("● ") {
        return rest.contains(" › ").then_some(rest);
    }
    if let Some(rest) = text.strip_prefix("FAIL ") {
        return rest.contains(" > ").then_some(rest);
    }
    if ["× ", "✕ ", "✖ "].iter().any(|mark| text.starts_with(mark)) {
        return marked(text);
    }
    // Mocha indents its list by two and closes the path of a test with a colon.
    let (number, rest) = text.split_once(") ")?;
    let counted = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    (counted && line.starts_with("  ") && !rest.is_empty()).then(|| rest.trim_end_matches(':'))
}

/// `✕ sums up (3 ms)`.
pub(super) fn marked(text: &str) -> Option<&str> {
    let rest = ["× ", "✕ ", "✖ "].iter().find_map(|mark| text.strip_prefix(mark))?;
    Some(without_time(rest)).filter(|name| !name.ends_with(':') && !name.starts_with("failing"))
}

/// `rspec ./spec/till_spec.rb:3 # Till sums up`.
fn rspec(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("rspec ")?;
    rest.split_once(" # ").filter(|(place, _)| place.contains("_spec.rb")).map(|(_, name)| name)
}

/// `TillTest > sumsUp() FAILED`.
pub(super) fn gradle(text: &str) -> Option<&str> {
    text.strip_suffix(" FAILED").filter(|name| name.contains(" > ") && !name.starts_with('>'))
}

/// Without the duration that stands behind a name: `(3 ms)`, `3ms`, `(1.2s)`.
pub(super) fn without_time(name: &str) -> &str {
    let is_time = |text: &str| {
        let text = text.trim_matches(['(', ')']);
        let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
        let unit = text[number.len()..].trim();
        matches!(unit, "ms" | "s")
            && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            && number.bytes().any(|byte| byte.is_ascii_digit())
    };
    if let Some((before, time)) = name.rsplit_once(" (")
        && is_time(time)
    {
        return before.trim_end();
    }
    match name.rsplit_once(' ') {
        Some((before, time)) if is_time(time) => before.trim_end(),
        Some(_) | None => name,
    }
}

/// Without escape sequences that colour text.
pub(super) fn without_colours(line: &str) -> std::borrow::Cow<'_, str> {
    if !line.contains('\u{1b}') {
        return line.into();
    }
    let mut out = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            out.push(c);
        } else if chars.next() == Some('[') {
            chars.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    out.into()
}
