//! Tests that failed before a change (U-10): whether a failing test command shows anything new. The rows are in
//! `docs/rules/preflight.md`.

use std::collections::BTreeSet;

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
