//! Which findings count (AF-073, D-05): a claim graver than INFO needs evidence, and what it cites must be there.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Unfounded;
use crate::model::{Finding, PROGRAM, Proof, Severity};

/// Phrases that make a claim a guess.
pub const HEDGES: [&str; 5] = ["might be", "could potentially", "appears to", "seems like", "may not"];

/// Words around output and reproduction steps, wherever they are.
const SHOWN: [&str; 8] = [
    "steps to reproduce",
    "reproduce:",
    "repro:",
    "reproduction:",
    "output:",
    "panicked at",
    "traceback",
    "stack trace",
];

/// Words that report a run where evidence is given; in a description they may be part of the claim.
const SHOWN_AS_EVIDENCE: [&str; 8] =
    ["to reproduce", "$ ", "prints ", "printed ", "exit code", "exits with", "fails with", "returned "];

/// Why a finding counts as advice only; `None` when it counts.
pub fn weigh(finding: &Finding) -> Option<Unfounded> {
    if finding.severity == Severity::Info || finding.source == PROGRAM {
        return None;
    }
    if cites_a_line(finding) || shows_a_run(finding) || quotes_code(finding) {
        return None;
    }
    let text = finding.description.to_lowercase();
    if HEDGES.iter().any(|hedge| text.contains(hedge)) {
        return Some(Unfounded::HedgeWithoutEvidence);
    }
    if finding.citations.iter().any(|citation| citation.holds == Some(false)) {
        return Some(Unfounded::CitationNotFound);
    }
    Some(Unfounded::NoEvidence)
}

/// The same where lenses ask for more: every kind of evidence they name for the category has to be there.
pub fn weigh_by(finding: &Finding, required: &BTreeMap<String, BTreeSet<Proof>>) -> Option<Unfounded> {
    let shows = |proof: &Proof| match proof {
        Proof::Line => cites_a_line(finding),
        Proof::Run => shows_a_run(finding),
        Proof::Quote => quotes_code(finding),
    };
    let exempt = finding.severity == Severity::Info || finding.source == PROGRAM;
    weigh(finding).or_else(|| {
        let wanted = required.get(&finding.category).filter(|_| !exempt)?;
        (!wanted.iter().all(shows)).then_some(Unfounded::RequiredEvidenceMissing)
    })
}

/// A line reference that was not found wanting. Where it could not be checked, the reference is accepted.
fn cites_a_line(finding: &Finding) -> bool {
    finding.citations.iter().any(|citation| citation.line > 0 && citation.holds != Some(false))
}

/// Command output or steps to reproduce, in the evidence or the description.
fn shows_a_run(finding: &Finding) -> bool {
    if finding.reproduction.is_some() {
        return true;
    }
    let (evidence, description) = (finding.evidence.to_lowercase(), finding.description.to_lowercase());
    SHOWN.iter().any(|words| evidence.contains(words) || description.contains(words))
        || SHOWN_AS_EVIDENCE.iter().any(|words| evidence.contains(words))
}

/// Code quoted as evidence: a span that is more than a name. A quotation that was looked up and not found is none,
/// nor is the location repeated: a place outside of the tree can't be looked up and must not count for that. Where
/// none of the places is there, the code claimed to be in them is not either.
fn quotes_code(finding: &Finding) -> bool {
    let nowhere = finding.citations.iter().all(|citation| citation.holds == Some(false));
    if nowhere && !finding.citations.is_empty() {
        return false;
    }
    spans(&finding.evidence).any(|span| {
        let is_code = span.len() >= 8
            && span.chars().any(|c| !c.is_alphanumeric() && c != '_')
            && span.trim() != finding.location.trim();
        let refuted = finding.citations.iter().any(|citation| {
            citation.holds == Some(false) && (quoted(citation, span) || names(citation, span))
        });
        is_code && !refuted
    })
}

fn quoted(citation: &crate::model::Citation, span: &str) -> bool {
    citation.quote.as_deref().is_some_and(|quote| quote.trim() == span.trim())
}

fn names(citation: &crate::model::Citation, span: &str) -> bool {
    span.starts_with(citation.file.as_str())
}

/// The texts between backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
