//! Whether a finding explains how to reproduce it.

use std::sync::LazyLock;

use crate::model::Finding;
use crate::rules::phrases::Phrases;

/// Words that describe an action or its result.
pub(crate) const STEPS: [&str; 40] = [
    "repro", "run ", "runs ", "running ", "call ", "calls ", "calling ", "send ", "sends ", "sending ",
    "post ", "pass ", "passing ", "given ", "input", "submit", "invoke", "returns", "returned", "panic",
    "throws", "raises", "prints", "when ", "with `", "set `", "start ", "upload", "open ", "type ", "enter ",
    "delete ", "twice", "then ", "first ", "after ", "yields", "produces", "crashes", "kill ",
];

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| Phrases::new(&[(1, &STEPS)]));

const READ: usize = 400;

/// Steps are under `Evidence`, or the description says what was done and the result: two such words, or an
/// arrow between the two.
pub(crate) fn shows_steps(finding: &Finding) -> bool {
    if !finding.evidence.is_empty() {
        return true;
    }
    let text = beginning(&finding.description);
    let mut said = 0;
    PHRASES.each(text, |_, _| said += 1);
    said >= 2 || shows_arrow(text)
}

pub(crate) fn shows_arrow(text: &str) -> bool {
    ["->", "=>", "→", "$ "].iter().any(|mark| text.contains(mark))
}

/// As much of a text as is looked at.
pub(crate) fn beginning(text: &str) -> &str {
    let end = (0..=READ.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}
