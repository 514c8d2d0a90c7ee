//! The Maker: did it run the tests, and does it own up to what the plan did not list?

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::{files, number};
use crate::model::Traits;
use crate::read::lines::LineKind;
use crate::read::sections::SectionedText;
use crate::rules::phrases::Phrases;

const RUN: u32 = 1;
const RESULT: u32 = 2;
const INTENT: u32 = 4;
const NOT_RUN: u32 = 8;
const DEVIATES: u32 = 16;
const REASON: u32 = 32;

/// Commands and words that report a run.
const RUNS: [&str; 62] = [
    "cargo test",
    "cargo nextest",
    "cargo t ",
    "npm test",
    "npm t ",
    "npm run test",
    "yarn test",
    "pnpm test",
    "pnpm run test",
    "bun test",
    "deno test",
    "pytest",
    "py.test",
    "go test",
    "mvn test",
    "mvn verify",
    "mvn -q",
    "gradle test",
    "gradlew",
    "make test",
    "make check",
    "ctest",
    "rspec",
    "phpunit",
    "jest",
    "vitest",
    "mocha",
    "dotnet test",
    "swift test",
    "mix test",
    "tox",
    "nox",
    "rake test",
    "rake spec",
    "rails test",
    "bats",
    "zig build test",
    "sbt test",
    "flutter test",
    "playwright test",
    "cypress run",
    "unittest",
    "just test",
    "bazel test",
    "meson test",
    "stack test",
    "cabal test",
    "ran the test",
    "ran all",
    "ran tests",
    "ran it",
    "tests ran",
    "tests run",
    "test run",
    "test suite",
    "suite ",
    "tests bestanden",
    "alle tests",
    "testlauf",
    "tests laufen",
    "shellcheck",
    "ran the suite",
];

/// Words that report a result.
const RESULTS: [&str; 30] = [
    "test result",
    "tests pass",
    "test passes",
    "tests passed",
    "tests are passing",
    "tests are green",
    "tests green",
    "all green",
    "all tests",
    "all pass",
    "tests ok",
    "tests are ok",
    "tests still pass",
    "test still pass",
    "tests succeed",
    "tests stay green",
    "failed, 0",
    "passed, 0",
    "passed;",
    "passing",
    "build success",
    "both pass",
    "pass now",
    "now pass",
    "now passes",
    "passes now",
    "ok (",
    "grün",
    "tests: ok",
    "everything passes",
];

const INTENTS: [&str; 14] = [
    "please run",
    "you can run",
    "to verify, run",
    "run it with",
    "should pass",
    "should be run",
    "can be run",
    "will pass",
    "to run the tests",
    "to be run",
    "need to run",
    "needs to run",
    "ci will",
    "remains to be",
];

const NOT_RUNS: [&str; 18] = [
    "not run",
    "did not run",
    "didn't run",
    "have not run",
    "haven't run",
    "could not run",
    "couldn't run",
    "not been run",
    "were not run",
    "untested",
    "skipped running",
    "no tests were run",
    "without running",
    "not executed",
    "not verified by",
    "tests not run",
    "no test run",
    "not tested",
];

const DEVIATIONS: [&str; 22] = [
    "not in the proposal",
    "not listed",
    "outside the proposal",
    "outside of the proposal",
    "beyond the proposal",
    "not in the plan",
    "unlisted",
    "deviat",
    "also had to",
    "had to touch",
    "had to change",
    "had to update",
    "had to adapt",
    "not planned",
    "unplanned",
    "proposal does not list",
    "proposal does not mention",
    "proposal doesn't list",
    "plan does not list",
    "plan doesn't list",
    "missing from the proposal",
    "missing from the plan",
];

const REASONS: [&str; 22] = [
    "because",
    "since",
    "otherwise",
    "no longer",
    "had to",
    "required",
    "needed",
    "broke",
    "breaks",
    "would not",
    "wouldn't",
    "does not compile",
    "did not compile",
    "doesn't compile",
    "fails without",
    "so that",
    "calls",
    "implements",
    "uses the",
    "depends on",
    "as its",
    "constructs",
];

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    Phrases::new(&[
        (RUN, &RUNS),
        (RESULT, &RESULTS),
        (INTENT, &INTENTS),
        (NOT_RUN, &NOT_RUNS),
        (DEVIATES, &DEVIATIONS),
        (REASON, &REASONS),
    ])
});

pub(super) fn traits(page: &SectionedText<'_>) -> Traits {
    let (mut ran, mut came_out, mut not_run) = (false, false, false);
    let mut deviations: BTreeSet<&str> = BTreeSet::new();
    // Quoted text counts as much as own text: the output of a run is mostly in a fence.
    for line in page.lines.iter().filter(|line| !matches!(line.kind, LineKind::Blank | LineKind::Comment)) {
        let bits = PHRASES.all(line.text);
        let means_it = bits & (INTENT | NOT_RUN) == 0;
        not_run |= bits & NOT_RUN != 0;
        ran |= means_it && bits & RUN != 0;
        came_out |= means_it && (bits & RESULT != 0 || counts_results(line.text));
        if bits & DEVIATES != 0 && bits & REASON != 0 {
            files::each(line.text, |file| _ = deviations.insert(file));
        }
    }
    Traits {
        // After a statement that tests were not run, only a result counts as a run.
        test_run: came_out || (ran && !not_run),
        deviations: number(deviations.len()),
        ..Traits::default()
    }
}

/// `48 passed`, `OK, 12 tests`, `ok 3 - opens`, `PASS: limit`, `3/3`.
fn counts_results(line: &str) -> bool {
    let may = line.bytes().any(|b| b.is_ascii_digit() || b >= 0x80)
        || line.contains("PASS")
        || line.contains("ok ");
    if !may && !line.contains("OK ") {
        return false;
    }
    let mut before = "";
    for word in
        line.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | '(' | ')' | ':' | '*' | '`'))
    {
        if word.is_empty() {
            continue;
        }
        let counted = before.bytes().next().is_some_and(|b| b.is_ascii_digit());
        let verb = ["passed", "passing", "pass", "ok", "green", "tests", "specs", "examples", "assertions"];
        if counted && verb.iter().any(|verb| word.trim_end_matches('.').eq_ignore_ascii_case(verb)) {
            return true;
        }
        if matches!(before, "ok" | "OK" | "PASS" | "PASSED")
            || matches!(word, "PASS" | "PASSED" | "✓" | "✔" | "✅")
        {
            return true;
        }
        before = word;
    }
    false
}
