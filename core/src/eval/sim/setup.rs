//! What simulated agents know of one trial: the file of `sim:<file>`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::population::SimPopulation;

/// A file that the Maker changes with each attempt. It counts as a test, and no test runner reads it.
pub const NOTES: &str = "tests/sim-notes.txt";

/// One trial. `right` and `wrong` have the whole content of each file of the two solutions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimSetup {
    pub v: u32,
    pub seed: u64,
    pub population: SimPopulation,
    /// The reference solution.
    pub right: BTreeMap<String, String>,
    /// The wrong solution. Empty for a task that has none: a wrong Maker then leaves the base as it is, and right work
    /// is never broken.
    pub wrong: BTreeMap<String, String>,
}

/// How far the work is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkState {
    /// Neither solution is there.
    Untouched,
    Right,
    Wrong,
}

/// A place in a file, counted from 1, and the line there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CitedLine {
    pub(super) path: String,
    pub(super) line: usize,
    pub(super) code: String,
}

impl SimSetup {
    /// A setup in which both solutions name the same files: what one of them leaves alone has the content of the base.
    /// `base` gives the content of a file there. A file that only the other solution has, and not the base, is removed
    /// when the Maker changes from one to the other.
    pub fn new(
        seed: u64,
        population: SimPopulation,
        base: impl Fn(&str) -> Option<String>,
        right: BTreeMap<String, String>,
        wrong: BTreeMap<String, String>,
    ) -> SimSetup {
        let mut setup = SimSetup { v: 1, seed, population, right, wrong };
        if !setup.wrong.is_empty() {
            for path in setup.paths() {
                let Some(text) = base(&path) else { continue };
                setup.right.entry(path.clone()).or_insert_with(|| text.clone());
                setup.wrong.entry(path).or_insert(text);
            }
        }
        setup
    }

    /// Reads the file of `sim:<file>`.
    pub fn read(text: &str) -> Result<SimSetup, String> {
        let setup: SimSetup = serde_json::from_str(text)
            .map_err(|error| format!("not a setup of simulated agents: {error}"))?;
        setup.check()?;
        Ok(setup)
    }

    fn check(&self) -> Result<(), String> {
        if self.v != 1 {
            return Err(format!("v is {}; this program reads version 1", self.v));
        }
        if self.right.is_empty() {
            return Err("right is empty; give the files of the reference solution".to_owned());
        }
        if let Some(path) = self.paths().iter().find(|path| !is_inside(path)) {
            return Err(format!("the path '{path}' leads out of the working copy; give a path inside of it"));
        }
        self.population.check().map_err(|fault| format!("population: {fault}"))
    }

    /// All files of both solutions.
    pub fn paths(&self) -> BTreeSet<String> {
        self.right.keys().chain(self.wrong.keys()).cloned().collect()
    }

    /// What `work` has; paths without an entry are not there.
    pub fn state(&self, work: &BTreeMap<String, String>) -> WorkState {
        if self.flawed(work).is_some() {
            WorkState::Wrong
        } else if self.right.iter().all(|(path, text)| work.get(path) == Some(text)) {
            WorkState::Right
        } else {
            WorkState::Untouched
        }
    }

    /// The first file of the wrong solution that is in the work.
    fn flawed(&self, work: &BTreeMap<String, String>) -> Option<&str> {
        let is_flawed = |path: &str, text: &String| {
            work.get(path) == Some(text) && self.right.get(path).is_none_or(|right| right != text)
        };
        self.wrong.iter().find(|(path, text)| is_flawed(path, text)).map(|(path, _)| path.as_str())
    }

    /// Where a finding about the flaw points to: the first line in which wrong and right differ.
    pub(super) fn flaw(&self, work: &BTreeMap<String, String>) -> CitedLine {
        let Some(path) = self.flawed(work) else { return notes() };
        let text = work.get(path).map(String::as_str).unwrap_or_default();
        let right = self.right.get(path).map(String::as_str).unwrap_or_default();
        let same = text.lines().zip(right.lines()).take_while(|(one, other)| one == other).count();
        // Where the wrong one merely ends too early, its last line is the place.
        let line = same.min(text.lines().count().saturating_sub(1));
        cited(path, text, line)
    }

    /// A line of the change for a finding that names no flaw; `number` chooses among them.
    pub(super) fn any_line(&self, work: &BTreeMap<String, String>, number: usize) -> CitedLine {
        let is_changed = |path: &&String, text: &String| {
            self.right.get(*path) == Some(text) || self.wrong.get(*path) == Some(text)
        };
        let changed = work.iter().find(|(path, text)| is_changed(path, text) && !text.trim().is_empty());
        let Some((path, text)) = changed else { return notes() };
        let full: Vec<usize> =
            text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(|(at, _)| at).collect();
        let at = number.checked_rem(full.len()).and_then(|at| full.get(at)).copied().unwrap_or(0);
        cited(path, text, at)
    }
}

fn notes() -> CitedLine {
    CitedLine { path: NOTES.to_owned(), line: 1, code: String::new() }
}

fn cited(path: &str, text: &str, at: usize) -> CitedLine {
    let code = text.lines().nth(at).unwrap_or_default().trim().to_owned();
    CitedLine { path: path.to_owned(), line: at + 1, code }
}

/// Relative, without a way up, and not in git's own folder.
fn is_inside(path: &str) -> bool {
    let is_plain =
        |part: &str| !part.is_empty() && part != "." && part != ".." && !part.eq_ignore_ascii_case(".git");
    !path.contains(['\\', '\0']) && path.split('/').all(is_plain)
}
