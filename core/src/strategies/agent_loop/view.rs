//! The lines of a loop between a person, a Planner, an Actor and a Judge, and what a person can type next.

use std::fmt::Write;

use crate::event::{BatteryDone, Checked, CycleBoundary, Decision, Event, LoopTurn, QuestionKind, Report};
use crate::model::{
    CheckEnd, LoopState, Outcome, Phase, Reason, RunStatus, Speaker, Strategy, TurnEvent, counted,
};
use crate::run::{AgentLoop, Run};
use crate::strategies::StrategyView;
use crate::text::one_line;

use super::LoopStrategy;
use super::turns::step_scope;
use crate::projections::view::{ProgressLine, Tone};

impl StrategyView for LoopStrategy {
    fn title(&self) -> &'static str {
        "ArcheFlow Loop"
    }

    fn subtitle(&self, run: &Run) -> String {
        format!("Loop: {} | Step: {}", run.loop_state().name(), run.number().max(1))
    }

    fn label(&self, _: &'static str) -> &'static str {
        Strategy::Loop.name()
    }

    fn phase(&self, phase: Phase, _: &str) -> &'static str {
        match phase {
            Phase::Plan => "Plan",
            Phase::Do => "Act",
            Phase::Check => "Judge",
            Phase::Act => "Land",
        }
    }

    fn cycle_heading(&self, number: u32, _: u32) -> String {
        format!("Step {number}")
    }

    /// The turns of a step say what it came to.
    fn boundary(&self, _: &CycleBoundary) -> Option<(&'static str, Tone)> {
        None
    }

    fn line(&self, event: &Event, tag: &str) -> Option<ProgressLine> {
        line(event, tag)
    }

    fn next_steps(&self, run_id: &str, run: &Run, outcome: &Outcome) -> Vec<(String, &'static str)> {
        next_steps(run_id, run, Some(outcome))
    }

    fn is_closed(&self, run: &Run) -> bool {
        run.agent_loop.is_some() && !is_open(run)
    }
}

/// Whether a loop still needs a person.
pub fn is_open(run: &Run) -> bool {
    !run.loop_state().is_closed(run.outcome.is_some())
}

/// The line an entry of a loop is worth, if any; `tag` is the one of its phase.
fn line(event: &Event, tag: &str) -> Option<ProgressLine> {
    let say = |doing: &str, outcome: String, tone: Tone| {
        Some(ProgressLine { tag: tag.to_owned(), doing: doing.to_owned(), outcome: one_line(&outcome), tone })
    };
    if let Event::Decision(Decision::LoopTurn(turn)) = event {
        return Some(turned(turn, tag));
    }
    if let Event::Decision(Decision::LoopAlert(alert)) = event {
        return say("Alert", alert.detail.clone(), Tone::Caution);
    }
    let Event::Report(report) = event else { return None };
    if let Report::BatteryDone(done) = report {
        let checks = [&done.tests, &done.linter, &done.security];
        let fails = checks.iter().any(|check| is_bad(check) && !check.failed_before_too());
        let told: Vec<String> = std::iter::once(battery(done)).chain(what_fails(done)).collect();
        return say("Running checks...", told.join("; "), if fails { Tone::Bad } else { Tone::Good });
    }
    if let Report::LoopAppended(appended) = report
        && !appended.theirs.is_empty()
    {
        let told = format!("passed on: {}", appended.theirs);
        return say("You wrote meanwhile", told, Tone::Plain);
    }
    if let Report::LoopEdited(edited) = report {
        if edited.first == 0 {
            return say("The cycle file", edited.what.clone(), Tone::Bad);
        }
        let place = format!("lines {} to {}: {}", edited.first, edited.last, edited.what);
        return say("The cycle file was edited", place, Tone::Bad);
    }
    if let Report::LoopArchived(archived) = report {
        return match archived.trouble.as_str() {
            "" => say("Keeping the cycle...", archived.path.clone(), Tone::Plain),
            trouble => say("Keeping the cycle...", trouble.to_owned(), Tone::Bad),
        };
    }
    None
}

fn turned(turn: &LoopTurn, tag: &str) -> ProgressLine {
    let tag = tag.to_owned();
    let who = turn.by.map_or("The program", Speaker::name);
    let why = turn.why.join("; ");
    let Some(heard) = turn.heard else {
        let doing = format!("{who} is ignored");
        return ProgressLine { tag, doing, outcome: one_line(&why), tone: Tone::Caution };
    };
    let tone = match heard {
        TurnEvent::Pass | TurnEvent::PassOn | TurnEvent::Approve | TurnEvent::Landed => Tone::Good,
        TurnEvent::Fail | TurnEvent::GraveFail | TurnEvent::NotLanded | TurnEvent::Stop => Tone::Bad,
        TurnEvent::Insufficient
        | TurnEvent::NeedsPerson
        | TurnEvent::Unclear
        | TurnEvent::GatedPlan
        | TurnEvent::Questions
        | TurnEvent::RequestChanges => Tone::Caution,
        TurnEvent::Goal
        | TurnEvent::Answer
        | TurnEvent::Plan
        | TurnEvent::Success
        | TurnEvent::Restart
        | TurnEvent::Clear => Tone::Plain,
    };
    let said = if why.is_empty() { turn.summary.clone() } else { format!("{}; {why}", turn.summary) };
    let said = match said.trim_start_matches("; ") {
        "" => format!("on to {}", turn.to.name()),
        said => said.to_owned(),
    };
    let then = if turn.to == LoopState::Paused { " (paused)" } else { "" };
    let doing = format!("{who}: {}{then}", heard.name().replace('_', " "));
    ProgressLine { tag, doing, outcome: one_line(&said), tone }
}

fn is_bad(check: &Checked) -> bool {
    matches!(check.end, CheckEnd::Failed | CheckEnd::Crashed)
}

/// `tests passed (14 passed), linter missing, security passed`.
pub fn battery(done: &BatteryDone) -> String {
    let checks = [("tests", &done.tests), ("linter", &done.linter), ("security", &done.security)];
    let mut told = checks.map(|(name, check)| format!("{name} {}", came_out(check))).to_vec();
    told.extend(done.old_tests.as_ref().map(|check| format!("old tests {}", came_out(check))));
    told.join(", ")
}

/// How one check came out, with its counts, and whether that is all of it.
pub fn came_out(check: &Checked) -> String {
    let count =
        |n: Option<u32>, word: &str| n.filter(|n| *n > 0 || word == "passed").map(|n| format!("{n} {word}"));
    let part = check.part.then(|| "only those of the change".to_owned());
    let before = check.failed_before_too().then(|| "as before the loop began".to_owned());
    let told: Vec<String> = [count(check.passed, "passed"), count(check.failed, "failed"), part, before]
        .into_iter()
        .flatten()
        .collect();
    let end = check.end.name();
    if told.is_empty() { end.to_owned() } else { format!("{end} ({})", told.join(", ")) }
}

/// The lines that decide, of every check that fails because of the step (L-03).
pub fn what_fails(done: &BatteryDone) -> Vec<String> {
    let checks = [("tests", &done.tests), ("linter", &done.linter), ("security", &done.security)];
    let failing = checks.into_iter().filter(|(_, check)| is_bad(check) && !check.failed_before_too());
    failing
        .flat_map(|(name, check)| decisive_lines(check).map(move |line| format!("{name}: {line}")))
        .collect()
}

fn decisive_lines(check: &Checked) -> impl Iterator<Item = &str> {
    let (from_tail, from_lines) = if check.lines.is_empty() { (LINES, 0) } else { (0, LINES) };
    let tail = check.tail.lines().map(str::trim).filter(|line| !line.is_empty());
    let tail: Vec<&str> = tail.collect();
    let skipped = tail.len().saturating_sub(from_tail);
    check.lines.iter().map(String::as_str).take(from_lines).chain(tail.into_iter().skip(skipped))
}

/// So many lines of one check are shown beside its result.
const LINES: usize = 3;

/// What a person and the Judge should look at: a step that changed what judges it, or what nobody planned (L-09).
pub fn step_signs(run: &Run, agent_loop: &AgentLoop) -> Vec<String> {
    let mut signs = Vec::new();
    if let Some(done) = &agent_loop.battery {
        let total = |passed: Option<u32>, failed: Option<u32>| passed.map(|n| n + failed.unwrap_or(0));
        let now = total(done.tests.passed, done.tests.failed).filter(|_| !done.tests.part);
        let before = total(done.tests.passed_before, done.tests.failed_before);
        if let Some((now, before)) = now.zip(before).filter(|(now, before)| now < before) {
            signs.push(format!("{now} tests ran, {before} before the loop began"));
        }
        if done.tests.end == CheckEnd::Passed
            && before.is_some_and(|n| n > 0)
            && now.is_none()
            && !done.tests.part
        {
            signs.push("the tests print no count any more".to_owned());
        }
        if let Some(old) = done.old_tests.as_ref().filter(|old| is_bad(old) && !old.failed_before_too()) {
            let lines: Vec<&str> = decisive_lines(old).collect();
            let lines = if lines.is_empty() { String::new() } else { format!(": {}", lines.join("; ")) };
            signs.push(format!("the tests as they were before the loop do not pass on the new code{lines}"));
        }
    }
    if !agent_loop.unplanned.is_empty() {
        signs.push(format!("changed and not planned: {}", agent_loop.unplanned.join(", ")));
    }
    let counted = run.work.iter().flat_map(|work| &work.signs.seen);
    let mut counted: Vec<String> = counted.map(|counted| counted.detail.clone()).collect();
    // In whichever order they were found (D-13).
    counted.sort();
    signs.extend(counted.into_iter().take(SIGNS));
    signs
}

const SIGNS: usize = 10;

/// M-02: what the program found out about a step, for the cycle file and its archive.
pub fn results(run: &Run, agent_loop: &AgentLoop) -> String {
    let Some(done) = &agent_loop.battery else { return String::new() };
    let mut text = "What the program ran on this step:\n\n".to_owned();
    for (name, check) in [("Tests", &done.tests), ("Linter", &done.linter), ("Security", &done.security)] {
        let _ = writeln!(text, "- {name}: {}", came_out(check));
        if is_bad(check) {
            for line in decisive_lines(check).chain(check.lines_before.iter().map(String::as_str)) {
                let _ = writeln!(text, "  - `{}`", line.replace('`', "'"));
            }
        }
    }
    if let Some(old) = &done.old_tests {
        let _ = writeln!(text, "- Tests as they were before the loop: {}", came_out(old));
    }
    if let Some(size) = agent_loop.size {
        let (lines, files) = (counted(size.lines, "line"), counted(size.files, "file"));
        let scope = step_scope(run, agent_loop, size);
        let _ = writeln!(text, "- Scope: {} ({lines} in {files})", scope.name());
    }
    for sign in step_signs(run, agent_loop) {
        let _ = writeln!(text, "- Look at: {}", one_line(&sign));
    }
    text
}

/// Why that was not all of it.
pub fn why_part(done: &BatteryDone) -> Option<String> {
    done.tests.part.then(|| "the whole suite crashed, so only the tests of the change were run".to_owned())
}

/// What a person can type, the most likely first. `outcome` is how it rests; nothing where it was interrupted.
pub fn next_steps(run_id: &str, run: &Run, outcome: Option<&Outcome>) -> Vec<(String, &'static str)> {
    let plain = |command: &str, meaning| (command.to_owned(), meaning);
    let stop = || plain("archeflow loop stop", "end it; the work is kept on its branch");
    let resume = || (format!("archeflow resume {run_id}"), "resume it");
    let reject = || plain("archeflow loop reject \"<what to change>\"", "back to the Planner");
    let asked = run.question().map(|(_, question)| question.kind);
    match (asked, run.loop_state()) {
        (Some(QuestionKind::StepApproval), _) => {
            vec![plain("archeflow loop approve", "it lands, tested as it will be"), reject(), stop()]
        }
        (Some(QuestionKind::PlanApproval), _) => {
            vec![plain("archeflow loop approve", "the Actor begins"), reject(), stop()]
        }
        (Some(QuestionKind::LoopPaused), _) => vec![
            plain("archeflow loop restart \"<what to do differently>\"", "reset the count"),
            plain("archeflow loop clear", "give it up and empty the file"),
        ],
        (Some(QuestionKind::LoopEdited), _) => {
            vec![plain("archeflow loop answer again", "once the file is as it was"), stop()]
        }
        (Some(_), _) => vec![
            plain("archeflow loop answer \"<text>\"", "send it to the Planner"),
            plain("archeflow loop answer", "use what you wrote below the last block of the file"),
            stop(),
        ],
        (None, LoopState::Archived | LoopState::Failed | LoopState::Stopped) => vec![
            plain("archeflow loop clear", "empty the file; the archive keeps it"),
            plain("archeflow loop start \"<goal>\"", "the next goal"),
        ],
        (None, _) => match outcome.map(|outcome| (outcome.status, outcome.reason)) {
            Some((_, Reason::Discarded)) => vec![plain("archeflow loop start \"<goal>\"", "the next goal")],
            Some((RunStatus::Stopped, Reason::Budget)) => vec![
                (
                    format!("archeflow continue {run_id} --one-more-cycle --budget <usd>"),
                    "continue with more",
                ),
                stop(),
            ],
            Some(_) | None => vec![resume(), stop()],
        },
    }
}
