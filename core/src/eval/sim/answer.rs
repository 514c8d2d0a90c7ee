//! What a simulated agent prints and writes, in the formats of real agents.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::chance::SimChance;
use super::population::SimUsage;
use super::review;
use super::setup::{NOTES, SimSetup, WorkState};
use crate::rules::signs::is_test_path;

/// One start of an agent.
#[derive(Debug, Clone, Copy)]
pub struct SimCall<'a> {
    /// In lower case.
    pub archetype: &'a str,
    /// `plan`, `do` or `check`: decides the role of an archetype that is not built in.
    pub phase: &'a str,
    pub cycle: u32,
    pub purpose: &'a str,
    pub attempt: u32,
    /// Files of the working copy: those of the setup's paths that are there.
    pub work: &'a BTreeMap<String, String>,
    /// Read for feedback, and for the code that ends the deciding lines.
    pub prompt: &'a str,
}

#[derive(Debug, Clone, PartialEq)]
pub struct SimAnswer {
    pub text: String,
    /// Paths with their new content, one commit each.
    pub write: Vec<(String, String)>,
    pub remove: Vec<String>,
    pub usage: SimUsage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SimRole {
    Explorer,
    /// Also an archetype of Plan whose role is not known: a proposal with a recommendation serves as research too.
    Creator,
    Maker,
    Reviewer,
}

/// The answer of an agent. The same input gives the same answer.
pub fn answer(setup: &SimSetup, call: SimCall<'_>) -> SimAnswer {
    let tokens = &setup.population.tokens;
    let reads = |text, usage| SimAnswer { text, write: Vec::new(), remove: Vec::new(), usage };
    match role(call) {
        SimRole::Explorer => reads(research(setup, call), tokens.explorer),
        SimRole::Creator => reads(proposal(setup, call), tokens.creator),
        SimRole::Reviewer => reads(review::text(setup, call), tokens.reviewer),
        SimRole::Maker => made(setup, call),
    }
}

fn role(call: SimCall<'_>) -> SimRole {
    match (call.archetype, call.phase, call.purpose) {
        ("explorer", ..) | (_, "plan", "research") => SimRole::Explorer,
        ("creator", ..) => SimRole::Creator,
        ("maker", ..) => SimRole::Maker,
        ("guardian" | "skeptic" | "sage" | "trickster", ..) => SimRole::Reviewer,
        (_, "plan", _) => SimRole::Creator,
        (_, "do", _) => SimRole::Maker,
        _ => SimRole::Reviewer,
    }
}

/// The code that the prompt asks for at the end of deciding lines, with a space before it.
pub(super) fn code(prompt: &str) -> String {
    let asked = prompt.rsplit_once(" with the code ").and_then(|(_, rest)| rest.split_once(", as in"));
    let is_code =
        |code: &&str| !code.is_empty() && code.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
    asked.map(|(code, _)| code).filter(is_code).map(|code| format!(" {code}")).unwrap_or_default()
}

fn research(setup: &SimSetup, call: SimCall<'_>) -> String {
    let mut text = "## Affected files and functions\n".to_owned();
    for path in setup.paths() {
        let _ = writeln!(text, "- `{path}`: the task changes what it does.");
    }
    let _ = write!(
        text,
        "\n## Dependencies\n- None found.\n\n## Test coverage\n- The visible tests run it. No test covers the case of \
         the task.\n\n## Patterns\n- One small change in place.\n\n## Recommendation\nChange these files where the task \
         says, and keep the rest.\n\nSTATUS: DONE{}\n",
        code(call.prompt)
    );
    text
}

/// Lists the files of both solutions, so that neither leaves the plan.
fn proposal(setup: &SimSetup, call: SimCall<'_>) -> String {
    let mut text = String::new();
    if call.prompt.contains("`Mini-reflection`") {
        text.push_str(
            "## Mini-reflection\nRestatement: do what the task describes.\nAssumptions: the files are the right ones; the \
             tests can be run; callers stay as they are.\nMost damaging risk: a case of the task is overlooked.\n\n",
        );
    }
    text.push_str("## Architecture\nChange the present code in place.");
    if let Some(flaw) = review::named_flaw(call.prompt) {
        let _ = write!(text, " The last review says: {flaw}. Remove this.");
    }
    text.push_str("\n\n## Files\n");
    for path in setup.paths() {
        let _ = writeln!(text, "- `{path}`: do what the task describes. (5 min)");
    }
    let _ = writeln!(text, "- `{NOTES}`: note which examples were tried. (2 min)");
    let _ = write!(
        text,
        "\n## Alternatives\n- Leave it as it is: rejected, the task asks for a change.\n- Write it anew: rejected, the \
         change is small.\n\n## Test strategy\n- The example of the task gives the result that the task names.\n\n\
         ## Confidence\n| Axis | Score |\n|---|---|\n| Task understanding | 0.9 |\n| Solution completeness | 0.9 |\n\
         | Risk coverage | 0.9 |\n\n## Risks\n- A case of the task is overlooked. Mitigation: the review looks for it.\n\
         {}\n## Recommendation\nCarry out this proposal.\n\nSTATUS: DONE{}\n",
        prior_issues(call.prompt),
        code(call.prompt)
    );
    text
}

/// A line for each issue of the feedback, as it asks for.
fn prior_issues(prompt: &str) -> String {
    let is_item = |line: &&str| line.contains("**CRITICAL**") || line.contains("**WARNING**");
    let items =
        prompt.lines().filter(is_item).filter_map(|line| line.trim().strip_prefix("- `")?.split_once('`'));
    // A paragraph of themes has no ids at the start of its lines.
    let ids: BTreeSet<&str> =
        items.map(|(id, _)| id).filter(|id| !id.contains(char::is_whitespace)).collect();
    if ids.is_empty() {
        return String::new();
    }
    let lines: String = ids.iter().map(|id| format!("- {id}: Fixed, see the change.\n")).collect();
    format!("\n## Prior issues\n{lines}")
}

fn made(setup: &SimSetup, call: SimCall<'_>) -> SimAnswer {
    let state = next_state(setup, call);
    let (files, others) = match state {
        WorkState::Untouched => (None, None),
        WorkState::Right => (Some(&setup.right), Some(&setup.wrong)),
        WorkState::Wrong => (Some(&setup.wrong), Some(&setup.right)),
    };
    let mut write: Vec<(String, String)> = files
        .into_iter()
        .flatten()
        .filter(|(path, text)| call.work.get(*path) != Some(*text))
        .map(|(path, text)| (path.clone(), text.clone()))
        .collect();
    // Tests first, as asked of Makers.
    write.sort_by_key(|(path, _)| !is_test_path(path));
    // A task without a wrong solution leaves the base as it is, so nothing of it is removed.
    let is_left_over = |path: &&String| {
        !setup.wrong.is_empty()
            && files.is_some_and(|files| !files.contains_key(*path))
            && call.work.contains_key(*path)
    };
    let remove = others.into_iter().flat_map(BTreeMap::keys).filter(is_left_over).cloned().collect();
    write.insert(0, (NOTES.to_owned(), notes(call)));
    let mut text = "## Summary\nThe change does what the proposal describes.\n\n## Changes\n".to_owned();
    for (path, _) in &write {
        let _ = writeln!(text, "- `{path}`: changed as planned.");
    }
    let _ = write!(
        text,
        "\n## Tests\n- `{NOTES}`: the examples that were tried.\n- All tests were run: 3 passed, 0 failed.\n{}\nSTATUS: DONE{}\n",
        prior_issues(call.prompt),
        code(call.prompt)
    );
    SimAnswer { text, write, remove, usage: setup.population.tokens.maker }
}

/// Which solution the Maker leaves behind. Its chance has no part of the attempt: an attempt that is repeated ends
/// as the first one.
fn next_state(setup: &SimSetup, call: SimCall<'_>) -> WorkState {
    let maker = &setup.population.maker;
    let state_if = |is_wrong: bool| if is_wrong { WorkState::Wrong } else { WorkState::Right };
    let first = || state_if(SimChance::new(setup.seed, "maker", 1).happens("wrong", maker.wrong));
    // Without a wrong solution, untouched work is the wrong one once the Maker was there.
    let present = match setup.state(call.work) {
        WorkState::Untouched if setup.wrong.is_empty() && is_sent_back(call) => WorkState::Wrong,
        WorkState::Untouched => first(),
        state @ (WorkState::Right | WorkState::Wrong) => state,
    };
    // Asked for tests or for another form of the answer only.
    if matches!(call.purpose, "tests" | "correct") {
        return present;
    }
    if !is_sent_back(call) {
        return first();
    }
    let chance = SimChance::new(setup.seed, "maker", call.cycle);
    let chance = if call.purpose == "fix" { chance.of("fix") } else { chance };
    match present {
        WorkState::Right | WorkState::Untouched => state_if(chance.happens("breaks", maker.breaks)),
        WorkState::Wrong => {
            let is_named = review::named_flaw(call.prompt).is_some();
            let rate = if is_named { maker.fixes } else { maker.fixes_unasked };
            state_if(!chance.happens("fixes", rate))
        }
    }
}

fn is_sent_back(call: SimCall<'_>) -> bool {
    call.cycle > 1 || call.purpose == "fix"
}

/// Differs between attempts: a Maker that changes nothing would be started again.
fn notes(call: SimCall<'_>) -> String {
    let mut text = String::new();
    for cycle in 1..=call.cycle {
        let _ = writeln!(text, "Cycle {cycle}: the examples of the task were tried.");
    }
    if call.attempt > 1 {
        let _ = writeln!(text, "Attempt {}: tried again.", call.attempt);
    }
    text
}
