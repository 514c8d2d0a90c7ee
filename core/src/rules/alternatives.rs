//! What else could have been decided (AF-160, CL-31): the choices people ask about, with their options. A choice without
//! an entry here has a `decision.point` and no `decision`.

use crate::event::{DecisionPoint, DecisionRecord};
use crate::model::Workflow;

/// A choice of the program and its options.
struct Choice {
    rule: &'static str,
    what: &'static str,
    /// What a decision for an option begins with, and the option where it is an alternative. Nothing begins with an
    /// empty text: such an option is never written down.
    options: &'static [(&'static [&'static str], &'static str)],
    /// Why the program decides this by itself, after the facts it looked at.
    because: &'static str,
}

const CHOICES: [Choice; 11] = [
    Choice {
        rule: "AF-020",
        what: "strategy",
        options: &[(&["strategy pdca"], "strategy pdca"), (&["strategy pipeline"], "strategy pipeline")],
        because: "a request has precedence over the words of the task",
    },
    Choice {
        rule: "AF-022",
        what: "workflow",
        options: &[
            (&["workflow fast"], "workflow fast"),
            (&["workflow standard"], "workflow standard"),
            (&["workflow thorough"], "workflow thorough"),
        ],
        because: "a request has precedence over the words of the task",
    },
    Choice {
        rule: "AF-004",
        what: "domain",
        options: &[
            (&["domain code"], "domain code"),
            (&["domain writing"], "domain writing"),
            (&["domain research"], "domain research"),
        ],
        because: "a request has precedence over the project's files",
    },
    Choice {
        rule: "A3",
        what: "what follows the plan",
        options: &[
            (&["on to Do"], "on to Do"),
            (&["ask the user"], "ask the user"),
            (&[UPGRADE], UPGRADE),
            (&["send the mini-Explorer"], "send the mini-Explorer"),
        ],
        because: "a plan is built as it is only if its confidence reaches the floor",
    },
    Choice {
        rule: "AF-063",
        what: "a change without tests",
        options: &[
            (&["back for tests"], "back for tests, once"),
            (&["WARNING noted"], "note a WARNING and go on"),
        ],
        because: "tests are asked for where the proposal has a test strategy",
    },
    Choice {
        rule: "A2",
        what: "the other reviewers",
        options: &[
            (&["fast path"], "skip the other reviewers"),
            (&["all reviewers run"], "all reviewers run"),
        ],
        because: "a clean first review is enough, unless something speaks against trusting it",
    },
    Choice {
        rule: "A1",
        what: "workflow of the next cycles",
        options: &[(&["escalate fast to standard"], "standard"), (&[], "stay with fast")],
        because: "several CRITICALs mean that the task was not small",
    },
    Choice {
        rule: "AF-109",
        what: "what follows the cycle",
        options: &[
            (&["approved"], "land it"),
            (&["findings open", "converging at the limit"], "one more cycle"),
            (&["stop"], "stop"),
        ],
        because: "a change lands when it is approved, and another cycle begins only if it can help",
    },
    Choice {
        rule: "AF-191",
        what: "what follows the review",
        options: &[(&["one targeted fix"], "one targeted fix"), (&[], "stop")],
        because: "the pipeline mends CRITICALs once before it gives up",
    },
    Choice {
        rule: "CL-12",
        what: "a failed attempt",
        options: &[
            (&["tried again"], "try again"),
            (&["the run goes on without it"], "go on without it"),
            (&[], "end the run"),
        ],
        because: "a role the run needs is tried again as often as the settings allow",
    },
    Choice {
        rule: "AF-152",
        what: "kind of break",
        options: &[(&["hard break"], "hard break"), (&["soft break"], "soft break")],
        because: "a hard break halts now, a soft one lets the cycle end",
    },
];

const UPGRADE: &str = "fast becomes standard";

/// The choice behind a point with the options that were not taken; `None` where there were none to tell.
pub fn of(point: &DecisionPoint, workflow: Workflow) -> Option<DecisionRecord> {
    let choice = CHOICES.iter().find(|choice| choice.rule == point.rule)?;
    let taken = |begins: &[&str]| {
        begins.iter().any(|text| {
            point.decision.starts_with(text) || point.decision.split(", ").any(|part| part == *text)
        })
    };
    let open = |option: &str| option != UPGRADE || workflow == Workflow::Fast;
    let (mut is_chosen, mut alternatives) = (false, Vec::new());
    for (begins, option) in choice.options {
        if taken(begins) {
            is_chosen = true;
        } else if open(option) {
            alternatives.push((*option).to_owned());
        }
    }
    (is_chosen && !alternatives.is_empty()).then(|| DecisionRecord {
        archetype: point.archetype.clone(),
        rule: point.rule.clone(),
        what: choice.what.to_owned(),
        chosen: point.decision.clone(),
        alternatives,
        rationale: if point.input.is_empty() {
            choice.because.to_owned()
        } else {
            format!("{}; {}", point.input, choice.because)
        },
    })
}
