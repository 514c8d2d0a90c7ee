//! The words that all formats share.

pub(super) use archeflow_core::model::counted as count;
use archeflow_core::model::{ReproductionResult, Severity, Verdict};
use archeflow_core::strategies::review::{Listed, Reviewed, Reviewer, Since, Standing, Tried};

use super::most;
use archeflow_core::text::log_line;

pub(super) fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

/// `2 critical, 1 warning, 3 info; 1 refuted, 2 without evidence, 1 accepted`.
pub(super) fn counts(reviewed: &Reviewed) -> String {
    let graves = [Severity::Critical, Severity::Warning, Severity::Info];
    let counted: Vec<String> = graves
        .into_iter()
        .map(|grave| (reviewed.count(grave), severity(grave)))
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    let aside: Vec<String> = [Aside::Refuted, Aside::Advice, Aside::Accepted]
        .into_iter()
        .map(|aside| (reviewed.findings.iter().filter(|found| aside.holds(found)).count(), aside.count()))
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    let rejections = unanswered(reviewed);
    let counted = match (counted.is_empty(), &rejections) {
        (true, Some(rejections)) => rejections.clone(),
        (true, None) => "nothing found".to_owned(),
        (false, Some(rejections)) => format!("{}, {rejections}", counted.join(", ")),
        (false, None) => counted.join(", "),
    };
    if aside.is_empty() { counted } else { format!("{counted}; {}", aside.join(", ")) }
}

/// `1 rejection without an answer (guardian)`.
fn unanswered(reviewed: &Reviewed) -> Option<String> {
    let names = reviewed.unanswered();
    let (one, many) = ("1 rejection", format!("{} rejections", names.len()));
    let count = if names.len() == 1 { one } else { many.as_str() };
    (!names.is_empty()).then(|| format!("{count} without an answer ({})", names.join(", ")))
}

/// Why a finding does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Aside {
    Advice,
    Accepted,
    Refuted,
}

impl Aside {
    pub(super) const ALL: [Aside; 3] = [Aside::Advice, Aside::Accepted, Aside::Refuted];

    pub(super) fn holds(self, found: &Listed) -> bool {
        match &found.standing {
            Standing::Yes => false,
            Standing::Unfounded(_) => self == Aside::Advice,
            Standing::Accepted(_) => self == Aside::Accepted,
            Standing::Refuted => self == Aside::Refuted,
        }
    }

    pub(super) fn heading(self) -> &'static str {
        match self {
            Aside::Advice => "advice (no evidence)",
            Aside::Accepted => "accepted",
            Aside::Refuted => "refuted",
        }
    }

    fn count(self) -> &'static str {
        match self {
            Aside::Advice => "without evidence",
            Aside::Accepted => "accepted",
            Aside::Refuted => "refuted",
        }
    }
}

/// One word for machines.
pub(super) fn standing(found: &Listed) -> &'static str {
    match &found.standing {
        Standing::Yes => "counts",
        Standing::Unfounded(_) => "advice",
        Standing::Accepted(_) => "accepted",
        Standing::Refuted => "refuted",
    }
}

/// Why it does not count.
pub(super) fn why(found: &Listed) -> Option<&str> {
    match &found.standing {
        Standing::Yes => None,
        Standing::Unfounded(why) => Some(why.name()),
        Standing::Accepted(reason) => Some(reason),
        Standing::Refuted => found.trial.as_ref().map(|tried| tried.detail.as_str()),
    }
}

/// `confirmed: fails on the change, passes on the base ($ cargo test)`.
pub(super) fn trial(tried: &Tried) -> String {
    let word = match tried.trial {
        ReproductionResult::Confirmed => "confirmed",
        ReproductionResult::NotReproduced => "not reproduced",
        ReproductionResult::Refuted => "refuted",
    };
    let detail = log_line(&tried.detail, most::SENTENCE);
    let command = log_line(&tried.command, most::SENTENCE);
    match (detail.as_str(), command.as_str()) {
        ("", "") => word.to_owned(),
        (detail, "") => format!("{word}: {detail}"),
        ("", command) => format!("{word} ($ {command})"),
        (detail, command) => format!("{word}: {detail} ($ {command})"),
    }
}

/// The message for machines that read plain text: the claim, its evidence, and the fix.
pub(super) fn message(found: &Listed) -> String {
    let mut parts = vec![log_line(&found.description, most::PARAGRAPH)];
    if !found.evidence.is_empty() {
        parts.push(format!("Evidence: {}", log_line(&found.evidence, most::SENTENCE)));
    }
    if let Some(tried) = &found.trial {
        parts.push(format!("Tried: {}", trial(tried)));
    }
    if !found.fix.is_empty() {
        parts.push(format!("Fix: {}", log_line(&found.fix, most::PARAGRAPH)));
    }
    parts.push(format!("Raised by {}.", sources(found)));
    parts.join("\n")
}

pub(super) fn sources(found: &Listed) -> String {
    log_line(&found.sources.join(", "), most::SENTENCE)
}

pub(super) fn since(since: Since) -> &'static str {
    since.name()
}

/// `12 files, +340 −12`.
pub(super) fn size(reviewed: &Reviewed) -> String {
    format!("{}, +{} −{}", count(reviewed.files as usize, "file"), reviewed.added, reviewed.deleted)
}

pub(super) fn subject(reviewed: &Reviewed) -> String {
    log_line(&reviewed.subject.label(), most::SENTENCE)
}

/// Whether all of it was reviewed; what was not comes first.
pub(super) fn coverage(reviewed: &Reviewed) -> Vec<String> {
    let mut said = gaps(reviewed);
    if said.is_empty() {
        let parts = reviewed.parts.len();
        let where_from = if parts > 1 { format!(", in {parts} parts") } else { String::new() };
        said.push(format!("The whole change was looked at{where_from}."));
    }
    if reviewed.summarised > 0 {
        let files = count(reviewed.summarised as usize, "file");
        said.push(format!("{files} summarised only (generated, vendored, lock files)."));
    }
    said
}

/// What was not looked at or is not listed, a sentence each.
pub(super) fn gaps(reviewed: &Reviewed) -> Vec<String> {
    let mut gaps = Vec::new();
    let parts = reviewed.parts.len();
    let done = usize::try_from(reviewed.parts_done).unwrap_or(usize::MAX);
    if done < parts {
        gaps.push(format!("Only {done} of {} looked at.", were(parts, "part")));
    }
    for reviewer in reviewed.reviewers.iter().filter(|reviewer| reviewer.missed > 0) {
        gaps.push(format!("{} gave no answer to {}.", log_line(&reviewer.archetype, 60), missed(reviewer)));
    }
    for reviewer in reviewed.reviewers.iter().filter(|reviewer| reviewer.left_out > 0) {
        let more = count(reviewer.left_out as usize, "more finding");
        gaps.push(format!(
            "{} had {more}, none graver than those listed.",
            log_line(&reviewer.archetype, 60)
        ));
    }
    gaps
}

fn missed(reviewer: &Reviewer) -> String {
    let parts = count(reviewer.missed as usize, "part");
    match log_line(&reviewer.missed_why, most::SENTENCE) {
        why if why.is_empty() => parts,
        why => format!("{parts} ({})", why.trim_end_matches('.')),
    }
}

fn were(n: usize, noun: &str) -> String {
    if n == 1 { format!("1 {noun} was") } else { format!("{n} {noun}s were") }
}

/// The beginning of a commit's name.
pub(super) fn short(oid: &str) -> String {
    log_line(oid, 200).chars().take(10).collect()
}

pub(super) fn verdict(reviewer: &Reviewer) -> &'static str {
    reviewer.verdict.map_or("no answer", Verdict::name)
}

pub(super) fn tokens(reviewer: &Reviewer) -> String {
    match reviewer.tokens.input.saturating_add(reviewer.tokens.output) {
        0 => "—".to_owned(),
        n => thousands(n),
    }
}

fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

pub(super) fn cost(reviewer: &Reviewer) -> String {
    if reviewer.cost.0 == 0 { "—".to_owned() } else { reviewer.cost.shown() }
}
