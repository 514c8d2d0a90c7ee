//! What earlier runs teach the next ones (AF-013, AF-112, AF-121, AF-175..AF-177, BX-30).
//!
//! Four questions, a file each: which lessons an agent gets ([`tell`]), what a finished run changes ([`learn`]),
//! whether a lesson helped ([`effects`]), and whether something is back that was resolved before ([`regressions`]).
//! They are arithmetic on words and whole numbers; files, locks and ids are the host's. Lessons are other people's
//! text: they are shown as data, and nothing here acts on their content (D-15).

mod effect;
mod learn;
mod lived;
mod regress;
mod tell;

use std::collections::BTreeSet;

use crate::rules::convergence::keywords;

pub use effect::{LessonEffect, effects};
pub use learn::{Archived, LessonChange, LessonUpdate, crowded_out, learn, retires, tags};
pub use lived::Lived;
pub use regress::{Regression, mark, regressions};
pub use tell::{LessonReason, Telling, decision_points, lessons_section, select, tell};

/// The domain of a lesson that holds everywhere.
pub const GENERAL: &str = "general";

/// The run id of a lesson a person wrote.
pub const MANUAL: &str = "manual";

/// And its source.
pub const USER: &str = "user_feedback";

/// Words two texts have in common, and how many the shorter of them has (CL-18).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shared {
    pub words: usize,
    pub of: usize,
}

impl Shared {
    pub fn between(a: &str, b: &str) -> Shared {
        Shared::of(&keywords(a), &keywords(b))
    }

    fn of(a: &BTreeSet<String>, b: &BTreeSet<String>) -> Shared {
        Shared { words: a.intersection(b).count(), of: a.len().min(b.len()) }
    }

    /// Two texts without words have nothing in common.
    pub fn reaches(self, percent: u32) -> bool {
        self.of > 0 && self.words * 100 >= self.of * percent as usize
    }

    /// Rounded down, for people and for the audit.
    pub fn percent(self) -> u32 {
        u32::try_from(self.words * 100 / self.of.max(1)).unwrap_or(u32::MAX)
    }

    /// A greater share compares greater.
    fn compare(self, other: Shared) -> std::cmp::Ordering {
        (self.words * other.of.max(1)).cmp(&(other.words * self.of.max(1)))
    }
}

/// WARNINGs that were left open, given what each completed run left, oldest first: the sum since the last run that
/// left none (AF-146).
pub fn deferred(left: &[u32]) -> u32 {
    left.iter()
        .rev()
        .take_while(|warnings| **warnings > 0)
        .fold(0, |sum, warnings| sum.saturating_add(*warnings))
}
