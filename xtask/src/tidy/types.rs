//! Names of types: a search for one finds one, and the name says what it holds.

use std::collections::BTreeMap;

use super::scan::{self, SourceLine};
use super::{Complaint, Tree, complaint};

const SOURCES: [&str; 4] = ["core/src/", "host/src/", "app/src/", "xtask/src/"];

/// Idiomatic in every module.
const SHARED: [&str; 1] = ["Error"];

/// Words that do not say what a type holds.
const EMPTY: [&str; 7] = ["Found", "Known", "Said", "Told", "Seen", "Place", "Line"];

/// Public types have names of their own in the whole workspace; no type, private ones included, has an empty name.
pub(super) fn names(tree: &Tree) -> Vec<Complaint> {
    let mut found = Vec::new();
    let mut first: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for (path, text) in tree.under(&SOURCES, ".rs") {
        for line in scan::without_tests(scan::lines(text)) {
            let Some((is_public, name)) = declared(&line) else { continue };
            if EMPTY.contains(&name) {
                found.push(complaint(
                    path,
                    line.number,
                    format!("`{name}` does not say what the type holds"),
                ));
            } else if is_public && !SHARED.contains(&name) {
                match first.get(name) {
                    Some((before, at)) => {
                        let what = format!("`{name}` is a public type at {before}:{at} already");
                        found.push(complaint(path, line.number, what));
                    }
                    None => drop(first.insert(name.to_owned(), (path.to_owned(), line.number))),
                }
            }
        }
    }
    found
}

/// The type a line declares, and whether it is public.
fn declared(line: &SourceLine) -> Option<(bool, &str)> {
    let code = line.code.trim_start();
    let (is_public, rest) = match code.strip_prefix("pub ") {
        Some(rest) => (true, rest),
        None => (
            false,
            code.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")).map_or(code, |(_, rest)| rest),
        ),
    };
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (keyword, rest) = rest.split_once(' ')?;
    // An indented `type` belongs to a trait or an impl.
    let is_type = match keyword {
        "struct" | "enum" | "trait" | "union" => true,
        "type" => code.len() == line.code.len(),
        _ => false,
    };
    let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
    (is_type && end > 0).then(|| (is_public, &rest[..end]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::complains;
    use super::*;

    #[test]
    fn names_that_are_taken() {
        let one = ("core/src/a.rs", "pub struct Budget {}\npub(crate) enum Step {}\npub enum Error {}");
        complains(
            names,
            &[one, ("host/src/b.rs", "pub struct Ledger;\nenum Budget {}\npub enum Error {}")],
            &[],
        );
        complains(names, &[one, ("host/src/b.rs", "\npub trait Budget<T> {}")], &["host/src/b.rs:2"]);
        complains(names, &[one, ("host/src/b.rs", "pub type Budget = u64;")], &["host/src/b.rs:1"]);
        complains(names, &[one, ("host/src/b.rs", "impl X for Y {\n    type Budget = u64;\n}")], &[]);
        complains(names, &[one, ("host/tests/b.rs", "pub struct Budget;")], &[]);
    }

    #[test]
    fn names_that_say_nothing() {
        complains(
            names,
            &[("app/src/a.rs", "struct Found;\n// struct Line\nstruct Lines;")],
            &["app/src/a.rs:1"],
        );
        complains(names, &[("core/src/a.rs", "pub(super) enum Said {}")], &["core/src/a.rs:1"]);
        complains(names, &[("core/src/a.rs", "#[cfg(test)]\nmod tests {\n    struct Told;\n}")], &[]);
    }
}
