//! Reviews of simulated agents.

use std::fmt::Write;

use super::answer::{SimCall, code};
use super::chance::SimChance;
use super::population::SimReviewer;
use super::setup::{CitedLine, SimSetup, WorkState};

/// Descriptions of the flaw. They share words, as those of a model would, and none of them is in a prompt otherwise.
const FLAWS: [&str; 4] = [
    "The result is wrong for inputs of the task that the visible tests leave out",
    "Inputs of the task that no visible test covers still give a wrong result",
    "The visible tests pass and yet the task's own inputs lead to a wrong result",
    "A wrong result remains for those inputs of the task that are outside of the visible tests",
];

/// Findings that name no flaw: category, description and fix.
const ALARMS: [(&str, &str, &str); 6] = [
    ("quality", "The name hides what the value stands for", "Rename it after its unit."),
    ("reliability", "The call has no bound and blocks the caller", "Give it a limit."),
    ("design", "The decision belongs to the layer above", "Move it there."),
    ("consistency", "The order of the arguments differs from the neighbours", "Swap them."),
    ("scalability", "The work grows with the square of the entries", "Keep an index."),
    ("testing", "No test covers the empty value", "Add one."),
];

/// What a reviewer in its shadow claims.
const CLAIMS: [&str; 8] = [
    "The part has no header",
    "The part is too long",
    "The wording is unusual",
    "The layout is uneven",
    "The style is dated",
    "The purpose is unclear",
    "The structure is flat",
    "The tone is careless",
];

/// What a reviewer comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SimJudgement {
    pub(super) in_shadow: bool,
    pub(super) finds_flaw: bool,
    pub(super) false_alarm: bool,
    pub(super) unfounded: bool,
    /// The false alarm is advice only.
    pub(super) withdrawn: bool,
}

/// A description of the flaw that is in a text.
pub(super) fn named_flaw(prompt: &str) -> Option<&'static str> {
    FLAWS.into_iter().find(|flaw| prompt.contains(flaw))
}

/// A reviewer judges once per cycle: further attempts repeat it, because asking again brings no new knowledge. Another agent in its place
/// judges for itself.
fn chance(setup: &SimSetup, call: SimCall<'_>) -> SimChance {
    let chance = SimChance::new(setup.seed, call.archetype, call.cycle);
    if call.purpose == "replace" { chance.of("replace").of(&call.attempt.to_string()) } else { chance }
}

pub(super) fn judgement(setup: &SimSetup, call: SimCall<'_>) -> SimJudgement {
    let rates = setup.population.reviewer(call.archetype);
    let chance = chance(setup, call);
    let of_attempt = chance.of(call.purpose).of(&call.attempt.to_string());
    let is_wrong = match setup.state(call.work) {
        WorkState::Wrong => true,
        WorkState::Untouched => setup.wrong.is_empty(),
        WorkState::Right => false,
    };
    let unfounded = chance.happens("unfounded", rates.unfounded);
    SimJudgement {
        in_shadow: of_attempt.happens("shadow", rates.shadow),
        finds_flaw: is_wrong && chance.happens("recall", rates.recall),
        false_alarm: chance.happens("false alarm", rates.false_alarms),
        unfounded,
        // A reviewer that was asked for evidence and has none keeps the claim as advice.
        withdrawn: unfounded && call.purpose == "correct",
    }
}

struct Row {
    place: String,
    severity: &'static str,
    category: &'static str,
    description: &'static str,
    fix: &'static str,
    evidence: String,
}

pub(super) fn text(setup: &SimSetup, call: SimCall<'_>) -> String {
    let judgement = judgement(setup, call);
    let rows = if judgement.in_shadow { shadow(setup, call) } else { findings(setup, call, judgement) };
    let code = code(call.prompt);
    let verdict = if rows.iter().all(|row| row.severity == "INFO") { "APPROVED" } else { "REJECTED" };
    let mut text = format!("VERDICT: {verdict}{code}\nFINDINGS: {}\n", rows.len());
    if !rows.is_empty() {
        text.push_str("\n| Location | Severity | Category | Description | Fix | Evidence |\n|---|---|---|---|---|---|\n");
    }
    for Row { place, severity, category, description, fix, evidence } in rows {
        let _ = writeln!(text, "| {place} | {severity} | {category} | {description} | {fix} | {evidence} |");
    }
    let _ = write!(text, "\nSTATUS: DONE{code}\n");
    text
}

fn findings(setup: &SimSetup, call: SimCall<'_>, judgement: SimJudgement) -> Vec<Row> {
    let rates = setup.population.reviewer(call.archetype);
    let chance = chance(setup, call);
    let mut rows = Vec::new();
    if judgement.finds_flaw {
        let cited = setup.flaw(call.work);
        rows.push(Row {
            place: format!("{}:{}", cited.path, cited.line),
            severity: "CRITICAL",
            category: category(call.archetype),
            description: wording(setup, call, rates),
            fix: "Handle these inputs as the task says.",
            evidence: evidence(&cited),
        });
    }
    if judgement.false_alarm {
        let number = chance.pick("alarm", ALARMS.len());
        let (category, description, fix) = ALARMS.get(number).copied().unwrap_or_default();
        let cited = setup.any_line(call.work, chance.pick("line", 1_000));
        let critical = chance.happens("critical", rates.alarm_critical);
        rows.push(Row {
            place: if judgement.unfounded {
                cited.path.clone()
            } else {
                format!("{}:{}", cited.path, cited.line)
            },
            severity: match (judgement.withdrawn, critical) {
                (true, _) => "INFO",
                (false, true) => "CRITICAL",
                (false, false) => "WARNING",
            },
            category,
            description,
            fix,
            evidence: if judgement.unfounded { String::new() } else { evidence(&cited) },
        });
    }
    rows
}

/// A reviewer has words of its own, and now and then others.
fn wording(setup: &SimSetup, call: SimCall<'_>, rates: &SimReviewer) -> &'static str {
    let own = SimChance::new(setup.seed, call.archetype, 0).pick("wording", FLAWS.len());
    let chance = chance(setup, call);
    let reworded = call.cycle > 1 && chance.happens("rewords", rates.rewords);
    let step = if reworded { 1 + chance.pick("other wording", FLAWS.len() - 1) } else { 0 };
    FLAWS.get((own + step) % FLAWS.len()).copied().unwrap_or_default()
}

/// Categories that lead to the Maker. They differ between reviewers: several findings of one category would be taken for
/// tunnel vision.
fn category(archetype: &str) -> &'static str {
    match archetype {
        "guardian" => "testing",
        "skeptic" => "consistency",
        _ => "quality",
    }
}

/// The quoted line, and steps: short lines are no evidence by themselves.
fn evidence(cited: &CitedLine) -> String {
    let steps = "Steps to reproduce: run it with the example of the task.";
    let can_be_quoted = !cited.code.is_empty() && !cited.code.contains(['`', '|', '\\']);
    if can_be_quoted { format!("Line {}: `{}`. {steps}", cited.line, cited.code) } else { steps.to_owned() }
}

/// Claims about lines of the change, without evidence: enough of them, and of the kind, that the archetype's shadow is
/// seen. Without that rule they count.
fn shadow(setup: &SimSetup, call: SimCall<'_>) -> Vec<Row> {
    let (count, severity, fix) = match call.archetype {
        "skeptic" => (8, "WARNING", ""),
        "sage" => (3, "WARNING", "Consider another way."),
        "trickster" => (5, "WARNING", "Improve it."),
        _ => (3, "CRITICAL", ""),
    };
    let categories = ["quality", "design", "testing"];
    let row = |(number, description): (usize, &'static str)| {
        let cited = setup.any_line(call.work, number);
        Row {
            place: format!("{}:{}", cited.path, cited.line),
            severity,
            category: categories.get(number % categories.len()).copied().unwrap_or("quality"),
            description,
            fix,
            evidence: String::new(),
        }
    };
    CLAIMS.into_iter().enumerate().take(count).map(row).collect()
}
