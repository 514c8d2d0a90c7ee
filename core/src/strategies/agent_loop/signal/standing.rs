//! Whether a result stands: words around it can strike it out, question, withdraw or hedge it (L-02). A verdict is never
//! guessed, so whatever is not understood beside a PASS makes it unclear. The phrases are rows of `docs/rules/signals.md`.

use crate::model::Token;

/// What the words around a result do to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    Stands,
    /// A condition, a doubt, or words beside a PASS that are not known to be harmless.
    Hedged,
    /// Struck out, questioned, or taken back.
    Withdrawn,
}

/// Words that say of a block that it was taken back. `supersedes` says so of another one.
const WITHDRAWN: [&str; 6] = ["WITHDRAWN", "REVOKED", "RETRACTED", "RESCINDED", "SUPERSEDED", "SUPERCEDED"];

/// Beside a result and its next agent these say so, too; in a heading they are as likely a subject.
const WITHDRAWN_BESIDE: [&str; 8] =
    ["OBSOLETE", "OVERTURNED", "INVALIDATED", "INVALID", "CANCELLED", "CANCELED", "VOID", "DISREGARD"];

/// Below a block, together with a word for the block.
const WITHDRAWING: [&str; 6] = ["WITHDRAW", "REVOKE", "RETRACT", "RESCIND", "DISREGARD", "IGNORE"];
const OF_A_BLOCK: [&str; 9] =
    ["PASS", "VERDICT", "RESULT", "BLOCK", "PLAN", "SIGNAL", "APPROVAL", "SUCCESS", "ABOVE"];

/// Before a result they deny it.
const DENYING: [&str; 9] = ["NOT", "NO", "NEVER", "ALMOST", "NEARLY", "NON", "CANNOT", "WOULD", "SHOULD"];

/// Anywhere beside a result that claims something, they doubt it or make it depend on something.
const HEDGING: [&str; 37] = [
    "NOT",
    "NEVER",
    "CANNOT",
    "IF",
    "UNLESS",
    "UNTIL",
    "PENDING",
    "ONCE",
    "EXCEPT",
    "PROVIDED",
    "PROVIDING",
    "ASSUMING",
    "SUBJECT",
    "BUT",
    "HOWEVER",
    "THOUGH",
    "ALTHOUGH",
    "CONDITIONAL",
    "CONDITIONALLY",
    "TENTATIVE",
    "TENTATIVELY",
    "PROVISIONAL",
    "PROVISIONALLY",
    "PRELIMINARY",
    "MAYBE",
    "PERHAPS",
    "PROBABLY",
    "POSSIBLY",
    "LIKELY",
    "PARTIAL",
    "PARTIALLY",
    "PARTLY",
    "MOSTLY",
    "UNSURE",
    "UNVERIFIED",
    "UNTESTED",
    "DRAFT",
];

/// How a result stands in the value it was found in. `words` are those of the value, in capitals, and `at` is where the
/// result is among them.
pub(super) fn standing(value: &str, words: &[String], at: usize, token: Token) -> Standing {
    let denied = words.iter().take(at).any(|word| DENYING.contains(&word.as_str()));
    if is_struck_out(value) || value.contains(['?', '？']) || withdraws(value) {
        return Standing::Withdrawn;
    }
    let claims = claims(token);
    let contracted = ["n't", "n’t"].iter().any(|not| value.to_lowercase().contains(not));
    let hedged = contracted || words.iter().any(|word| HEDGING.contains(&word.as_str()));
    if denied || (claims && hedged) {
        return Standing::Hedged;
    }
    if token == Token::Pass && !beside(value).iter().all(|phrase| is_harmless(phrase)) {
        return Standing::Hedged;
    }
    Standing::Stands
}

/// Whether the value of a field takes back what it is about.
pub(super) fn withdraws(value: &str) -> bool {
    has_any(value, &WITHDRAWN) || has_any(value, &WITHDRAWN_BESIDE)
}

/// Whether a heading says that what is below it was taken back.
pub(super) fn is_withdrawn_heading(heading: &str) -> bool {
    is_struck_out(heading) || has_any(heading, &WITHDRAWN)
}

/// Whether a line below a block takes that block back.
pub(super) fn withdraws_a_block(line: &str) -> bool {
    (has_any(line, &WITHDRAWN) || has_any(line, &WITHDRAWING)) && has_any(line, &OF_A_BLOCK)
}

fn has_any(text: &str, listed: &[&str]) -> bool {
    let text = text.to_uppercase();
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    words.any(|word| listed.contains(&word))
}

/// `~~PASS~~`, also in HTML.
pub(super) fn is_struck_out(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    ["~~", "<s>", "<del>", "<strike>"].iter().any(|mark| lower.contains(mark))
}

/// A result on which something is done. Doubts beside a failure only say why it is one.
fn claims(token: Token) -> bool {
    match token {
        Token::Fail | Token::Insufficient | Token::ClarificationNeeded | Token::RevisionRequested => false,
        Token::Init
        | Token::PlanCreated
        | Token::PlanUpdated
        | Token::Success
        | Token::Pass
        | Token::FinalPlanCreated
        | Token::Approved
        | Token::MergeApproved
        | Token::DeleteApproved
        | Token::PrMerged
        | Token::GoalCycleComplete => true,
    }
}

/// The phrases of a value, split at punctuation, in capitals.
fn beside(value: &str) -> Vec<Vec<String>> {
    let value = value.to_uppercase();
    let phrases = value.split([',', ';', ':', '(', ')', '[', ']', '–', '—', '-']);
    phrases.map(words_of).filter(|words| !words.is_empty()).collect()
}

fn words_of(phrase: &str) -> Vec<String> {
    // A point inside a number belongs to it: `loop 2.1`.
    let split = phrase.split(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '_'));
    let bare = split.map(|word| word.trim_matches(|c: char| matches!(c, '.' | '/' | '_')).to_owned());
    bare.filter(|word| !word.is_empty()).collect()
}

const OBJECTIONS: [&str; 12] = [
    "FINDINGS",
    "FINDING",
    "ISSUES",
    "ISSUE",
    "OBJECTIONS",
    "OBJECTION",
    "PROBLEMS",
    "BLOCKERS",
    "CONCERNS",
    "DEFECTS",
    "ERRORS",
    "REGRESSIONS",
];
const CHECKED: [&str; 7] = ["TESTS", "TEST", "CHECKS", "CRITERIA", "REQUIREMENTS", "GATES", "CONDITIONS"];
const HELD: [&str; 8] = ["PASS", "PASSED", "PASSING", "GREEN", "MET", "OK", "SATISFIED", "FULFILLED"];
const COUNTED: [&str; 6] = ["STEP", "LOOP", "GOAL", "CYCLE", "ROUND", "ITERATION"];
const ENDED: [&str; 5] = ["COMPLETE", "COMPLETED", "DONE", "FINISHED", "FINAL"];

/// Phrases beside a PASS that take nothing from it: the word itself, `no findings`, `all tests pass`, `14 passed`,
/// `loop 2.1/5`, `goal 2 complete`.
fn is_harmless(phrase: &[String]) -> bool {
    let words: Vec<&str> = phrase.iter().map(String::as_str).collect();
    let is_number =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '/'));
    match words.as_slice() {
        ["PASS" | "PASSED" | "SUFFICIENT"] => true,
        ["NO" | "ZERO" | "0", "FAILED" | "FAILURES" | "FAILURE" | "FAILING"] => true,
        ["NO" | "ZERO" | "0", objections] => OBJECTIONS.contains(objections),
        ["NO" | "ZERO" | "0", "NEW" | "OPEN" | "FURTHER" | "REMAINING", objections] => {
            OBJECTIONS.contains(objections)
        }
        ["ALL", checked, held] | ["ALL", _, checked, held] => {
            (CHECKED.contains(checked) && HELD.contains(held))
                && words.get(1).is_some_and(|word| CHECKED.contains(word) || is_number(word))
        }
        [number, "PASS" | "PASSED" | "PASSING"] => is_whole(number),
        [number, "TESTS" | "TEST", held] => is_whole(number) && HELD.contains(held),
        [what, number] => COUNTED.contains(what) && is_number(number),
        [what, number, ended] => COUNTED.contains(what) && is_number(number) && ENDED.contains(ended),
        _ => false,
    }
}

fn is_whole(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())
}
