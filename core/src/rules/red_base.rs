//! Tests that failed before a change (U-10): whether a failing test command shows anything new. The rows are in
//! `docs/rules/preflight.md`.

use std::collections::BTreeSet;

use crate::read::NamedTests;

/// What failing tests say about a change, given the tests that failed on its base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddedFailures {
    /// All of them failed before.
    None,
    /// These did not.
    Some(Vec<String>),
    /// One of the outputs names no failing test, so nobody can tell.
    Unknown,
}

/// Compares failing tests by name. An output that fails without naming a test leaves open what fails in it: a compiler
/// error, say, hides every test.
pub fn added_failures(before: &[String], now: &[String]) -> AddedFailures {
    if before.is_empty() || now.is_empty() {
        return AddedFailures::Unknown;
    }
    let before: BTreeSet<&String> = before.iter().collect();
    let added: Vec<String> = now.iter().filter(|name| !before.contains(name)).cloned().collect();
    if added.is_empty() { AddedFailures::None } else { AddedFailures::Some(added) }
}

/// Why an output does not show that the tests ran which ran on the base; empty if it does. A run that ends at its first
/// failing test, or whose output does not name the others, says nothing about them.
pub fn unproven(before: &NamedTests, now: &NamedTests, command: &str) -> String {
    if before.passed.is_empty() || now.passed.is_empty() {
        return "their output does not name the tests that passed".to_owned();
    }
    if now.ended_early || before.ended_early || ends_early(command) {
        return "the run ends at the first failure, so the tests behind it did not run".to_owned();
    }
    let missing: Vec<&str> = before
        .passed
        .iter()
        .chain(&before.failed)
        .filter(|name| !now.has_run(name))
        .map(String::as_str)
        .collect();
    if let [first, rest @ ..] = missing.as_slice() {
        let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
        return format!("tests that ran before the change did not run: {first}{more}");
    }
    if now.went_on { String::new() } else { "no test ran after the last one that fails".to_owned() }
}

/// Whether a command asks its runner to end at a failure.
fn ends_early(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let has =
        |known: &[&str]| words.iter().any(|word| known.contains(&word.split('=').next().unwrap_or(word)));
    let runs = |name: &str| words.iter().any(|word| word.rsplit('/').next() == Some(name));
    has(&["--exitfirst", "--maxfail", "--failfast", "--fail-fast", "-failfast", "--bail", "-test.failfast"])
        || (has(&["-x"]) && (runs("pytest") || runs("py.test")))
        || (has(&["-f"]) && runs("unittest"))
        || (has(&["-b"]) && runs("mocha"))
}
