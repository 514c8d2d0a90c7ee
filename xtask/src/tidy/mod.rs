//! Conventions that no compiler checks. Each is a function from the tree to a list of complaints, so
//! that its tests can hand it a tree that breaks it.
//!
//! Deliberately absent: anything clippy can say.

mod docs;
mod events;
pub(crate) mod faults;
mod layout;
mod numbers;
mod scan;
mod strategies;
mod types;
mod writers;

use std::path::Path;
use std::process::{Command, ExitCode};

/// Every file of the repository that is text, by its path from the root.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: Vec<(String, String)>,
}

/// Where a rule is broken, and how.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Complaint {
    path: String,
    line: usize,
    what: String,
}

type Check = fn(&Tree) -> Vec<Complaint>;

/// The rules, in the order they are printed.
const CHECKS: [(&str, Check); 21] = [
    ("no destructive git (R10)", writers::destructive_git),
    ("processes start in known places (R14)", writers::processes),
    ("only app and xtask print (R14)", writers::printing),
    ("results are printed in one place", writers::results),
    ("files are written in known places (R14)", writers::file_writes),
    ("the operating system is in host/src/platform", layout::system_imports),
    ("every archetype is in ARCHETYPES", layout::archetypes),
    ("no archetype is named where something is decided", strategies::archetypes),
    ("what all strategies share knows none of them", strategies::shared),
    ("every page of rules is tested", docs::rule_pages),
    ("matches over events name every type", events::wildcards),
    ("every module is declared", layout::orphans),
    ("no file without end", layout::long_files),
    ("no leftovers", layout::leftovers),
    ("no task without an issue", layout::tasks),
    ("tests are skipped for a reason", layout::skipped_tests),
    ("numbers lead to a row", numbers::specified),
    ("each fault has a test or a reason", faults::matrix),
    ("links lead somewhere", docs::links),
    ("no path of one machine", docs::machine_paths),
    ("names of types are unique and telling", types::names),
];

pub(crate) fn run(root: &Path) -> ExitCode {
    report(&CHECKS, root)
}

fn report(checks: &[(&'static str, Check)], root: &Path) -> ExitCode {
    match complaints(checks, root) {
        Ok(found) if found.is_empty() => {
            println!("tidy: {} rules hold", checks.len());
            ExitCode::SUCCESS
        }
        Ok(found) => {
            for (rule, Complaint { path, line, what }) in &found {
                println!("{path}:{line}: {what} [{rule}]");
            }
            println!("tidy: {} complaints", found.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("tidy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn complaints(
    checks: &[(&'static str, Check)],
    root: &Path,
) -> std::io::Result<Vec<(&'static str, Complaint)>> {
    let tree = Tree::read(root)?;
    let mut found = Vec::new();
    for (rule, check) in checks {
        found.extend(check(&tree).into_iter().map(|complaint| (*rule, complaint)));
    }
    Ok(found)
}

impl Tree {
    /// What git tracks or would track; ignored files are skipped.
    pub(crate) fn read(root: &Path) -> std::io::Result<Tree> {
        let listing = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()?;
        if !listing.status.success() {
            return Err(std::io::Error::other(String::from_utf8_lossy(&listing.stderr).into_owned()));
        }
        let mut files = Vec::new();
        for path in listing.stdout.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
            let path = String::from_utf8_lossy(path).into_owned();
            // A file that was removed and not yet committed is listed; one that is not text, a picture, has no lines.
            if let Ok(bytes) = std::fs::read(root.join(&path)) {
                files.push((path, String::from_utf8(bytes).unwrap_or_default()));
            }
        }
        files.sort();
        files.dedup();
        Ok(Tree { files })
    }

    fn get(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|(known, _)| known == path).map(|(_, text)| text.as_str())
    }

    fn under<'a>(&'a self, folders: &'a [&str], ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let files = self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()));
        files.filter(move |(path, _)| {
            path.ends_with(ending) && folders.iter().any(|folder| path.starts_with(folder))
        })
    }

    /// Rust files below these folders, taken apart; modules that are only for tests are left out.
    fn sources<'a>(&'a self, folders: &'a [&str]) -> impl Iterator<Item = (&'a str, Vec<scan::SourceLine>)> {
        // A file of this name is declared below `#[cfg(test)]`.
        let files = self.under(folders, ".rs").filter(|(path, _)| !path.ends_with("/tests.rs"));
        files.map(|(path, text)| (path, scan::without_tests(scan::lines(text))))
    }
}

fn complaint(path: &str, line: usize, what: impl Into<String>) -> Complaint {
    Complaint { path: path.to_owned(), line, what: what.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The one door of every rule's tests: the rule complains about exactly these lines of this tree.
    pub(super) fn complains(check: Check, files: &[(&str, &str)], expected: &[&str]) {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        let found = check(&Tree { files });
        let places: Vec<String> = found.iter().map(|one| format!("{}:{}", one.path, one.line)).collect();
        assert_eq!(places, expected, "{found:#?}");
    }

    #[test]
    fn the_repository_is_tidy() {
        let found = complaints(&CHECKS, &crate::root()).unwrap_or_default();
        assert!(found.is_empty(), "{found:#?}");
    }
}
