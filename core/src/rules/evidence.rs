//! Which findings count (AF-073, D-05): a claim graver than INFO needs evidence, and what it cites must be there. The
//! table is `docs/rules/evidence.md`.
//!
//! Evidence counts wherever the reviewer put it: in a column of its own, in the description, in a file that it names.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::event::Unfounded;
use crate::model::{Citation, Finding, PROGRAM, Proof, Severity};
use crate::rules::phrases::Phrases;
use crate::rules::shadows::Places;

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

/// Why a finding counts for less than its reviewer gave it; `None` when it counts.
pub fn weigh(finding: &Finding) -> Option<Unfounded> {
    if finding.severity == Severity::Info || finding.source == PROGRAM {
        return None;
    }
    // Either is enough; the quotation is found sooner.
    if quotes_code(finding) || shows_a_run(finding) {
        return None;
    }
    if cites_a_line(finding) {
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

/// A CRITICAL with nothing to show but lines that have no word in common with it (J-07). It counts; but where a
/// WARNING would not block, its author is asked for the code.
pub fn is_unrelated(finding: &Finding) -> bool {
    finding.severity == Severity::Critical
        && finding.source != PROGRAM
        && !quotes_code(finding)
        && !shows_a_run(finding)
        && cites_a_line(finding)
        && lines(finding).all(|citation| citation.related == Some(false))
}

/// Whether a finding is about a file that the change does not touch, and shows neither a line of the change that causes it nor a
/// run.
pub(crate) fn is_beside(finding: &Finding, changed: &Places<'_>) -> bool {
    let in_the_change = |citation: &Citation| {
        citation.line > 0 && citation.holds != Some(false) && changed.hold(&citation.file)
    };
    finding.severity > Severity::Info
        && finding.source != PROGRAM
        && !finding.file.is_empty()
        && !changed.is_empty()
        && !changed.hold(&finding.file)
        && !finding.citations.iter().any(in_the_change)
        && !shows_a_run(finding)
}

/// Whether a finding counts and was verified: its place was looked up and found, or it shows something.
pub fn is_verified(finding: &Finding) -> bool {
    let found = finding.citations.iter().any(|citation| citation.line > 0 && citation.holds == Some(true));
    let shows = !finding.evidence.trim().is_empty() || finding.reproduction.is_some();
    weigh(finding).is_none() && !is_unrelated(finding) && (found || shows || finding.source == PROGRAM)
}

/// Whether the author shows what it means, beside a place.
pub(crate) fn shows_something(finding: &Finding) -> bool {
    !finding.evidence.trim().is_empty() || quotes_code(finding) || shows_a_run(finding)
}

/// The same where lenses ask for more: every kind of evidence they name for the category has to be there.
pub fn weigh_by(finding: &Finding, required: &BTreeMap<String, BTreeSet<Proof>>) -> Option<Unfounded> {
    let shows = |proof: &Proof| match proof {
        Proof::Line => cites_a_line(finding),
        Proof::Run => shows_a_run(finding),
        Proof::Quote => quotes_code(finding),
    };
    let exempt = finding.severity == Severity::Info || finding.source == PROGRAM;
    let lacks = || {
        let wanted = required.get(&finding.category).filter(|_| !exempt)?;
        (!wanted.iter().all(shows)).then_some(Unfounded::RequiredEvidenceMissing)
    };
    weigh(finding).or_else(lacks)
}

/// A line reference that was not found wanting. Where it could not be checked, the reference is accepted. Beside code
/// that is not in the file it is none: who invents the code has not looked at the line.
fn cites_a_line(finding: &Finding) -> bool {
    lines(finding).next().is_some()
}

fn lines(finding: &Finding) -> impl Iterator<Item = &Citation> {
    let verified =
        finding.citations.iter().any(|citation| citation.quote.is_some() && citation.holds == Some(true));
    let invented = move |citation: &Citation| {
        !verified
            && finding
                .citations
                .iter()
                .any(|other| other.file == citation.file && is_invented(finding, other))
    };
    finding
        .citations
        .iter()
        .filter(|citation| citation.line > 0 && citation.holds != Some(false))
        .filter(move |citation| citation.quote.is_some() || !invented(citation))
}

/// Code claimed to be there that is not: quoted at a place, or all that is given as evidence but for a few words. Code amid other words may
/// be a proposal, a message or an abbreviation.
fn is_invented(finding: &Finding, citation: &Citation) -> bool {
    let Some(quote) = citation.quote.as_deref().filter(|_| citation.holds == Some(false)) else {
        return false;
    };
    citation.line > 0
        || (spans(&finding.evidence).any(|span| span.trim() == quote.trim()) && is_bare(finding))
}

/// Words beside quoted code that only introduce it: *the code is*.
const INTRODUCTION: usize = 3;

fn is_bare(finding: &Finding) -> bool {
    let beside = finding.evidence.split('`').step_by(2).flat_map(str::split_whitespace);
    beside.filter(|word| word.chars().any(char::is_alphanumeric)).count() <= INTRODUCTION
}

/// Command output or steps to reproduce, in the evidence or the description.
fn shows_a_run(finding: &Finding) -> bool {
    if finding.reproduction.is_some() {
        return true;
    }
    static SIGNS: LazyLock<Phrases> =
        LazyLock::new(|| Phrases::anywhere(&[(ANYWHERE, &SHOWN), (IN_EVIDENCE, &SHOWN_AS_EVIDENCE)]));
    let (evidence, description) = (small(&finding.evidence), small(&finding.description));
    SIGNS.all(&evidence) != 0
        || SIGNS.all(&description) & ANYWHERE != 0
        || reports_a_run(&evidence)
        || reports_a_run(&description)
}

const ANYWHERE: u32 = 1;
const IN_EVIDENCE: u32 = 2;

/// A text in lower case, without a copy where it is.
fn small(text: &str) -> Cow<'_, str> {
    let large = |byte: u8| u8::from(!byte.is_ascii() | byte.is_ascii_uppercase());
    // Without a way out in the middle, many bytes are looked at in one step.
    if text.bytes().fold(0, |any, byte| any | large(byte)) == 0 {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.to_lowercase())
    }
}

/// Words that begin the report of a run, and words that say what came of it.
const RUNNING: [&str; 9] =
    ["running", "ran", "calling", "called", "executing", "executed", "invoking", "evaluating", "with input"];
const RESULTS: [&str; 22] = [
    "raises", "raised", "returns", "returned", "prints", "printed", "gives", "gave", "yields", "fails",
    "failed", "panics", "panicked", "crashes", "crashed", "throws", "threw", "exits", "exited", "shows",
    "outputs", "hangs",
];

/// How lines of test runners begin that report a failure without a number in front.
const FAILURES: [&str; 4] = ["--- fail: ", "failed (failures=", "failed (errors=", "test result: failed"];

/// Whether a text shows a run: a command with its output, a test result, an exit code, a stack trace. Stricter than
/// what counts in a cell of evidence, because the fence may show anything: a command alone is a proposal, and a program
/// may print tracebacks.
pub(crate) fn is_transcript(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_prompt = |line: &str| line.starts_with("$ ") || line.starts_with(">>> ");
    let commands = text.lines().any(|line| line.trim().starts_with("$ "));
    if commands {
        return lines.any(is_prompt) && lines.any(|line| !is_prompt(line));
    }
    text.contains("traceback (most recent") || text.contains("panicked at") || reports_a_run(&text)
}

/// Whether all that a transcript reports is success: it shows no finding by itself.
pub(crate) fn shows_success_only(transcript: &str) -> bool {
    let mut text = transcript.to_lowercase();
    for none in ["0 failed", "0 failures", "0 errors", "0 error", "failures: 0", "errors: 0"] {
        text = without_number(&text, none);
    }
    let passed = ["passed", "test result: ok", "all tests pass", "exit code 0", "no issues found"];
    let failed = ["fail", "error", "panicked", "traceback", "exception", "not ok", "segmentation", "abort"];
    passed.iter().any(|word| text.contains(word)) && !failed.iter().any(|word| text.contains(word))
}

/// A text without a count of none; `10 failed` is no `0 failed`.
fn without_number(text: &str, none: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut from = 0;
    for (at, found) in text.match_indices(none) {
        let (before, after) = (text.get(..at).unwrap_or(""), text.get(at + found.len()..).unwrap_or(""));
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit() || c == '.');
        if !digit(before.chars().next_back()) && !after.starts_with(|c: char| c.is_ascii_digit()) {
            left.push_str(text.get(from..at).unwrap_or(""));
            from = at + found.len();
        }
    }
    left.push_str(text.get(from..).unwrap_or(""));
    left
}

/// A run with its result in running text: `running sub(None, 1) raises TypeError`, `pytest fails: 1 failed`, `exit code
/// 2`. What was run, or what came of it, has to be there in detail; *running it fails* is a claim. The text is in lower
/// case.
fn reports_a_run(text: &str) -> bool {
    static SIGNS: LazyLock<Phrases> = LazyLock::new(|| {
        // Part of every text that shows a run.
        let others: &[&str] = &["$ ", "fail", "passed", "errors", "exit"];
        Phrases::anywhere(&[(1, others), (1, &RUNNING)])
    });
    if SIGNS.all(text) == 0 {
        return false;
    }
    let prompts = |line: &str| line.trim_start_matches(['`', ' ', '>']).starts_with("$ ");
    if text.lines().any(prompts) || text.contains("`$ ") {
        return true;
    }
    if runs_inline(text) {
        return true;
    }
    if text.lines().any(|line| FAILURES.iter().any(|start| line.trim_start().starts_with(start))) {
        return true;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    fn bare(word: &str) -> &str {
        word.trim_matches(|c: char| !c.is_alphanumeric())
    }
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
    for (at, pair) in words.windows(2).enumerate() {
        let [first, second] = pair else { continue };
        let ends = second.ends_with(['.', ',', ';', ')', '`', ':']) || at + 2 == words.len();
        let next = words.get(at + 2).map(|word| bare(word)).unwrap_or_default();
        let (first, second) = (bare(first), bare(second));
        if is_number(first)
            && matches!(second, "failed" | "failures" | "passed" | "errors")
            && (ends || next == "in" || next == "and" || is_number(next))
        {
            return true;
        }
        let code = matches!(second, "code" | "status");
        if matches!(first, "exit" | "exited" | "exits" | "exiting") && (code || is_number(second)) {
            let number = if code { next } else { second };
            if is_number(number) {
                return true;
            }
        }
    }
    text.split('\n').flat_map(|line| line.split(". ")).any(|sentence| {
        let Some(rest) = found_word(sentence, &RUNNING).and_then(|at| sentence.get(at..)) else {
            return false;
        };
        let Some(result) = found_word(rest, &RESULTS) else { return false };
        rest.get(..result).is_some_and(|run| run.contains(['(', '`', '/', '=', '"']) || run.contains("--"))
    })
}

/// A command behind a prompt at the beginning of a sentence, with its result after it: a cell of a table has no lines of its own
/// (D12).
fn runs_inline(text: &str) -> bool {
    text.match_indices("$ ").any(|(at, prompt)| {
        let before = text.get(..at).unwrap_or_default().trim_end();
        let begins = before.is_empty() || before.ends_with(['.', ':', ';', '!', '?', '\n']);
        let rest = text.get(at + prompt.len()..).unwrap_or_default();
        begins && found_word(rest, &RESULTS).is_some_and(|result| result > 0)
    })
}

/// Where the first of these words begins in a text, as a whole word. One of them may be two words.
fn found_word(text: &str, words: &[&str]) -> Option<usize> {
    let is_edge = |c: char| !c.is_alphanumeric() && c != '_';
    let mut start = 0;
    text.split_inclusive(is_edge).find_map(|piece| {
        let (at, word) = (start, piece.strip_suffix(is_edge).unwrap_or(piece));
        start += piece.len();
        let goes_on = |rest: &str| {
            let rest =
                rest.strip_prefix(' ').and_then(|rest| text.get(at + word.len() + 1..)?.strip_prefix(rest));
            piece.ends_with(' ') && rest.is_some_and(|rest| !rest.starts_with(|c: char| !is_edge(c)))
        };
        let is_one =
            |known: &&&str| known.strip_prefix(word).is_some_and(|rest| rest.is_empty() || goes_on(rest));
        words.iter().find(is_one).filter(|_| !word.is_empty()).map(|_| at)
    })
}

/// Code quoted as evidence: a span that is more than a name. A quotation that was looked up and not found is none,
/// nor is the location repeated: a place outside of the tree can't be looked up and must not count for that. Where
/// none of the places is there, the code claimed to be in them is not either. In a description a quotation counts once
/// it was found.
fn quotes_code(finding: &Finding) -> bool {
    let nowhere = finding.citations.iter().all(|citation| citation.holds == Some(false));
    if nowhere && !finding.citations.is_empty() {
        return false;
    }
    let is_code = |span: &str| {
        span.len() >= 8
            && span.chars().any(|c| !c.is_alphanumeric() && c != '_')
            && span.trim() != finding.location.trim()
    };
    let refuted = |span: &str| {
        finding.citations.iter().any(|citation| {
            citation.holds == Some(false) && (quoted(citation, span) || names(citation, span))
        })
    };
    let found = |span: &str| {
        finding.citations.iter().any(|citation| citation.holds == Some(true) && quoted(citation, span))
    };
    spans(&finding.evidence).any(|span| is_code(span) && !refuted(span))
        || spans(&finding.description).any(|span| is_code(span) && found(span))
}

fn quoted(citation: &Citation, span: &str) -> bool {
    citation.quote.as_deref().is_some_and(|quote| quote.trim() == span.trim())
}

fn names(citation: &Citation, span: &str) -> bool {
    span.starts_with(citation.file.as_str())
}

/// The texts between backticks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
