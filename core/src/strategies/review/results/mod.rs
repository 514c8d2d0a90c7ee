//! The result of a review: every finding once, with what it counts for and why, in the order people should read them.
//!
//! A view of the log like [`crate::projections::story`]: nothing here decides, and the same log always gives the same list.

mod collect;
mod delta;
mod merge;

use serde::{Deserialize, Serialize};

use crate::digest;
use crate::event::{Player, Tokens, Unfounded};
use crate::model::{Money, Oid, Outcome, Remark, ReproductionResult, ReviewPart, Severity, Subject, Verdict};
use crate::rules::signs::masked;

pub use collect::of;
pub(crate) use collect::of_finding;
pub use delta::{compare, remember};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reviewed {
    pub subject: Subject,
    /// One line about the change.
    pub title: String,
    pub base: Oid,
    pub commit: Oid,
    pub files: u32,
    pub added: u64,
    pub deleted: u64,
    pub parts: Vec<ReviewPart>,
    /// How many of them were looked at to the end.
    pub parts_done: u32,
    /// Files that are only summarised.
    pub summarised: u32,
    pub verify: bool,
    pub reviewers: Vec<Reviewer>,
    /// Confirmed ones first, then by severity, what does not count behind, what was refuted last.
    pub findings: Vec<Listed>,
    /// What an earlier review of the same subject saw and this one no longer does.
    pub resolved: Vec<KnownFinding>,
    /// There was an earlier review to compare with.
    pub compared: bool,
    /// `None` while it is under way.
    pub outcome: Option<Outcome>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reviewer {
    pub archetype: String,
    /// The worst over all parts; `None` where it never answered.
    pub verdict: Option<Verdict>,
    pub findings: u32,
    /// More of them, which were too much to be kept.
    pub left_out: u32,
    /// Parts it gave no answer to, with the last reason.
    pub missed: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub missed_why: String,
    /// The command or client it ran with.
    pub agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<Player>,
    pub tokens: Tokens,
    pub cost: Money,
}

/// A finding in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// By which it is known again in another review, and accepted in a baseline.
    pub fingerprint: String,
    /// Its category, or the name of the sign the program saw.
    pub rule: String,
    /// What it counts as.
    pub severity: Severity,
    /// What its reviewer called it.
    pub said: Severity,
    pub standing: Standing,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trial: Option<Tried>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Since>,
    /// The fingerprint it was first seen with, if that was another: its file was renamed, or it was worded differently.
    #[serde(skip)]
    pub known_as: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    /// 0 where only a file, or nothing, is named.
    pub line: u32,
    pub location: String,
    pub category: String,
    pub description: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fix: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// The archetypes that raised it, or the program, sorted.
    pub sources: Vec<String>,
    /// Other reports of the same finding, by others or elsewhere.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Remark>,
    /// The digest of the code it is about; empty where it names none.
    #[serde(skip)]
    pub anchor: String,
    /// Other places in the reviewed tree that it rests on: file and line.
    #[serde(skip)]
    pub places: Vec<(String, u32)>,
}

/// Lines of the reviewed tree around what a finding cites, as the host read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The number of the first of them.
    pub first: u32,
    pub lines: Vec<String>,
}

/// Whether a finding counts against the change, and why it doesn't.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "counts", content = "why")]
pub enum Standing {
    /// It counts with its severity.
    Yes,
    /// No evidence for it was given or found (AF-073, D-05): advice.
    Unfounded(Unfounded),
    /// People know it and live with it, for this reason.
    Accepted(String),
    /// Its own reproduction passes.
    Refuted,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tried {
    pub trial: ReproductionResult,
    pub detail: String,
    pub command: String,
    /// The end of what it printed on the change.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

impl Listed {
    /// D-07: no format prints a key that a review found.
    fn mask(&mut self) {
        let texts = [&mut self.location, &mut self.description, &mut self.fix, &mut self.evidence];
        let also = self.also.iter_mut().map(|remark| &mut remark.description);
        let tried =
            self.trial.iter_mut().flat_map(|tried| [&mut tried.detail, &mut tried.command, &mut tried.tail]);
        for text in texts.into_iter().chain(also).chain(tried) {
            *text = masked(text);
        }
    }
}

/// A finding compared with earlier reviews of the same subject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Since {
    New,
    /// It was resolved once and is back.
    Regressed,
    Persistent,
}

impl Since {
    pub fn name(self) -> &'static str {
        match self {
            Since::New => "new",
            Since::Regressed => "regressed",
            Since::Persistent => "persistent",
        }
    }
}

/// A finding as the next review of the same subject will look for it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KnownFinding {
    pub fingerprint: String,
    pub rule: String,
    pub file: String,
    pub line: u32,
    pub severity: Severity,
    pub description: String,
    pub sources: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub anchor: String,
    /// The fingerprint it was first seen with, if that was another.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub known_as: String,
    /// It was gone in the last review.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resolved: bool,
}

impl Listed {
    pub fn counts(&self) -> bool {
        self.standing == Standing::Yes
    }

    /// By which the same finding is known over all reviews of a subject.
    pub fn identity(&self) -> &str {
        if self.known_as.is_empty() { &self.fingerprint } else { &self.known_as }
    }

    /// `file:line`, or what its reviewer wrote.
    pub fn place(&self) -> String {
        match (self.file.as_str(), self.line) {
            ("", _) => self.location.clone(),
            (file, 0) => file.to_owned(),
            (file, line) => format!("{file}:{line}"),
        }
    }
}

impl Reviewed {
    /// Findings that count, with this severity or a graver one.
    pub fn against(&self, floor: Severity) -> usize {
        self.findings.iter().filter(|found| found.counts() && found.severity >= floor).count()
    }

    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|found| found.counts() && found.severity == severity).count()
    }

    /// Reviewers whose rejection has no answer (J-04): none of their findings counts above INFO, and neither has a person accepted nor
    /// a reproduction refuted all they hold against the change.
    pub fn unanswered(&self) -> Vec<&str> {
        let is_unanswered = |reviewer: &&Reviewer| {
            let own = || self.findings.iter().filter(|found| found.sources.contains(&reviewer.archetype));
            let counts = own().any(|found| found.counts() && found.severity > Severity::Info);
            let graver = || own().filter(|found| found.said > Severity::Info);
            let answered =
                |found: &Listed| matches!(found.standing, Standing::Accepted(_) | Standing::Refuted);
            let all_answered = graver().count() > 0 && graver().all(answered);
            reviewer.verdict == Some(Verdict::Rejected) && !counts && !all_answered
        };
        self.reviewers.iter().filter(is_unanswered).map(|reviewer| reviewer.archetype.as_str()).collect()
    }

    /// Nothing of this severity or graver counts, no rejection is without an answer, and everything was looked at.
    pub fn passes(&self, floor: Severity) -> bool {
        self.against(floor) == 0 && self.unanswered().is_empty() && self.is_whole()
    }

    /// Every part was reviewed by every reviewer.
    pub fn is_whole(&self) -> bool {
        let parts = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        self.parts_done >= parts && self.reviewers.iter().all(|reviewer| reviewer.missed == 0)
    }

    /// Something changed since the last review.
    pub fn has_news(&self) -> bool {
        !self.compared
            || !self.resolved.is_empty()
            || self.findings.iter().any(|found| found.since != Some(Since::Persistent) && found.counts())
    }
}

/// Anchored on the code a finding is about, its file and its rule; not on line numbers or wording. Where it cites no
/// code that is there, its words have to do.
pub fn fingerprint(rule: &str, file: &str, anchor: &str, description: &str) -> String {
    let text = match anchor {
        "" => format!("{rule}\n{file}\nwords\n{}", crate::rules::convergence::canonical(description)),
        anchor => format!("{rule}\n{file}\ncode\n{anchor}"),
    };
    digest::sha256(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}
