//! The page a person gets when the program stops by itself (AF-155, AF-159): what happened, in numbers; the findings
//! side by side over the cycles, in the reviewers' own words; what was tried and what it cost; and the decisions that
//! are possible, each with its command. Written to be acted upon in a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::event::{
    AgentLine, CorrectionLine, CycleBoundary, CycleLine, Entry, Hardness, Money, PhaseTransition,
    PolicyCheckpoint, ReviewVerdict, Topic, Tracked, WiggumBreak,
};
use crate::model::{Finding, Reason, RunStatus, SYSTEM, ShadowAction};
use crate::projections::view::{capital, follows, open_tally, seconds};
use crate::rules::convergence;
use crate::run::Run;
use crate::text::{one_line, shell_word, table_cell};

/// More findings than this are counted, not listed.
const FINDINGS_AT_MOST: usize = 8;

/// One thing a person can decide, and what to type for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub what: &'static str,
    pub command: String,
}

/// The page of a run that broke; `None` for any other.
pub fn page(run_id: &str, run: &Run, log: &[Entry]) -> Option<String> {
    let broke = last_break(run, log)?;
    let mut text = String::new();
    heading(&mut text, run_id, run, broke);
    choices_section(&mut text, run_id, run, broke);
    findings_section(&mut text, run, broke, log);
    tried_section(&mut text, log);
    cost_section(&mut text, log);
    places_section(&mut text, run_id, run);
    Some(text)
}

/// AF-150: the state of a run at a checkpoint.
pub fn standing(run_id: &str, run: &Run, log: &[Entry]) -> String {
    let mut text = format!("# Control center\n\nRun {run_id}: {}\n\n", one_line(&run.task()));
    let phase = run.cycle().map_or("plan", |cycle| cycle.phase.name());
    let _ = writeln!(text, "- Cycle {} of {}, {phase}", run.number(), run.max_cycles);
    let budget =
        run.budget_percent().map(|percent| format!(", {percent}% of the budget")).unwrap_or_default();
    let _ = writeln!(text, "- Spent: {}{budget}", run.spent.shown());
    if let Some(checkpoint) = checkpoints(log).last() {
        let stops = checkpoint.stops.as_ref().map_or("continue", |stop| stop.detail.as_str());
        let _ = writeln!(text, "- Checkpoint {}: {}; {stops}", checkpoint.number, checkpoint.why);
        let _ = writeln!(
            text,
            "- Findings above INFO: {} after the first cycle, {} after the last",
            checkpoint.first_findings, checkpoint.last_findings
        );
    }
    tried_section(&mut text, log);
    cost_section(&mut text, log);
    places_section(&mut text, run_id, run);
    let _ = writeln!(text, "- Take over: `archeflow status {run_id}`, `archeflow resume {run_id}`");
    text
}

fn checkpoints(log: &[Entry]) -> Vec<&PolicyCheckpoint> {
    log.iter().filter_map(|entry| entry.event.body()).collect()
}

/// The break this run ended with.
fn last_break<'a>(run: &Run, log: &'a [Entry]) -> Option<&'a WiggumBreak> {
    if run.outcome.as_ref().map(|outcome| outcome.status) != Some(RunStatus::WiggumBreak) {
        return None;
    }
    log.iter().rev().find_map(|entry| entry.event.body())
}

fn heading(text: &mut String, run_id: &str, run: &Run, broke: &WiggumBreak) {
    let kind = match broke.hardness {
        Hardness::Hard => "Hard break: halted at once.",
        Hardness::Soft => "Soft break: what was under way was finished, nothing new was begun.",
    };
    let task = run.request.as_ref().map(|request| one_line(&request.task)).unwrap_or_default();
    let _ = write!(
        text,
        "# Wiggum Break: {run_id}\n\nTask: {task}\n\n**{}**\n\n{}\n\n\
         | trigger | layer | where | open findings |\n|---|---|---|---|\n| {} | {} | {} | {} |\n",
        table_cell(&capital(&broke.detail)),
        kind,
        broke.trigger.name(),
        broke.layer,
        broke.run_state,
        broke.unresolved_findings.len()
    );
}

fn choices_section(text: &mut String, run_id: &str, run: &Run, broke: &WiggumBreak) {
    let _ = write!(text, "\n## Your decision\n\n{}\n\n", question(broke.trigger));
    for choice in choices(run_id, run, broke.trigger) {
        let _ = writeln!(text, "- {}:\n  `{}`", choice.what, choice.command);
    }
}

/// What needs judgement, in one sentence.
#[expect(clippy::wildcard_enum_match_arm, reason = "the rest are findings that do not go away")]
fn question(trigger: Reason) -> &'static str {
    match trigger {
        Reason::Oscillation => {
            "Fixing one finding brings another back: the reviewers' demands contradict each other. Which one is right?"
        }
        Reason::ShadowStrikes => {
            "An agent kept misbehaving after corrections. The task is probably too large or too vague for one run."
        }
        Reason::SystemShadow => {
            "The process itself keeps going wrong in the same way. Is this the right task for it?"
        }
        Reason::AgentFailures => {
            "Agents fail one after another. That is rarely the task: look at the agent first."
        }
        Reason::PostMergeTests => {
            "The tests failed after landing and the merge was reverted. Is the change wrong, or the tests?"
        }
        Reason::Checkpoint => "A limit you set was reached. Is it worth continuing?",
        Reason::FindingsRising | Reason::ConvergedStopDiverging => {
            "Cycles add more findings than they resolve. Try another approach or a smaller task, or accept what is left."
        }
        _ => "Another cycle would find the same again. Accept what is left, or change the task?",
    }
}

/// The two to four things that make sense now, most likely first.
#[expect(clippy::wildcard_enum_match_arm, reason = "the rest are findings that do not go away")]
pub fn choices(run_id: &str, run: &Run, trigger: Reason) -> Vec<Choice> {
    let go_on = format!("archeflow continue {run_id}");
    let ids: Vec<&str> = open(run).iter().map(|found| found.id.as_str()).take(3).collect();
    let choice = |what, command| Choice { what, command };
    let rule =
        || choice("Decide which side is right, and run one more cycle", format!("{go_on} --ruling \"…\""));
    let accept = || {
        let ids = ids.iter().map(|id| format!(" --accept {}", shell_word(id))).collect::<String>();
        choice("Accept these findings; the rest is reviewed again", format!("{go_on}{ids}"))
    };
    let once_more = || choice("One more cycle, as it is", format!("{go_on} --one-more-cycle"));
    let rescope =
        || choice("Make the task smaller, and run one more cycle", format!("{go_on} --rescope \"…\""));
    let merge = || choice("Land it as it is", format!("archeflow merge {run_id}"));
    let discard =
        || choice("Discard it; the commits are kept under a ref", format!("archeflow discard {run_id}"));
    let has_findings = !ids.is_empty();
    let mut choices = match trigger {
        Reason::Oscillation => vec![rule()],
        Reason::AgentFailures => {
            vec![
                choice("See what is wrong with the agents", "archeflow doctor".to_owned()),
                choice("Try again from where it stopped", format!("archeflow resume {run_id}")),
            ]
        }
        Reason::Budget => {
            let most = run.limits().iter().map(|limit| limit.cap).chain([run.spent, Money::DOLLAR]).max();
            let budget = most.unwrap_or(Money::DOLLAR).0.div_ceil(1_000_000) * 2;
            let command = format!("{go_on} --one-more-cycle --budget {budget}");
            vec![choice("Raise the budget of the whole run, and continue", command)]
        }
        Reason::ShadowStrikes => {
            vec![
                rescope(),
                choice("Accept the answer as it is, and continue", format!("{go_on} --one-more-cycle")),
            ]
        }
        Reason::SystemShadow => vec![rescope(), once_more()],
        Reason::LoopPaused => {
            return vec![
                choice(
                    "Say what to do differently, and start again",
                    "archeflow loop restart \"…\"".to_owned(),
                ),
                choice("End it; the work is kept on its branch", "archeflow loop stop".to_owned()),
            ];
        }
        _ => vec![rescope()],
    };
    if has_findings {
        choices.push(accept());
        if !matches!(trigger, Reason::Oscillation | Reason::Budget) && choices.len() < 3 {
            choices.push(once_more());
        }
    } else if run.work.is_some() && trigger != Reason::AgentFailures {
        choices.push(merge());
    }
    choices.push(discard());
    choices
}

fn open(run: &Run) -> &[Tracked] {
    let boundary = run.cycle().and_then(|cycle| cycle.boundary.as_ref());
    boundary.map_or(&[], |boundary| boundary.open.as_slice())
}

/// The cycles in which a finding was open, and what each reviewer wrote about it.
fn findings_section(text: &mut String, run: &Run, broke: &WiggumBreak, log: &[Entry]) {
    let cycles: Vec<&[Tracked]> = run
        .cycles
        .iter()
        .filter_map(|cycle| cycle.boundary.as_ref())
        .map(|boundary| boundary.open.as_slice())
        .collect();
    let told = findings_to_show(run, &cycles);
    if told.is_empty() {
        plain_findings(text, broke);
        return;
    }
    text.push_str("\n## The findings over the cycles\n\n| finding |");
    for (number, _) in cycles.iter().enumerate() {
        let _ = write!(text, " {} |", number + 1);
    }
    text.push_str(" severity |\n|---|");
    cycles.iter().for_each(|_| text.push_str("---|"));
    text.push_str("---|\n");
    for found in told.iter().take(FINDINGS_AT_MOST) {
        let _ = write!(text, "| `{}` |", table_cell(&found.id));
        for cycle in &cycles {
            let there = cycle.iter().any(|other| other.id == found.id);
            text.push_str(if there { " ● |" } else { " ○ |" });
        }
        let _ = writeln!(text, " {} |", found.severity.name());
    }
    text.push_str("\n● open at the end of that cycle, ○ not there\n");
    for found in told.iter().take(FINDINGS_AT_MOST) {
        words_about(text, run, found, log);
    }
    if told.len() > FINDINGS_AT_MOST {
        let _ = writeln!(text, "\nAnd {} more.", told.len() - FINDINGS_AT_MOST);
    }
}

/// What was never tracked because the cycle did not end.
fn plain_findings(text: &mut String, broke: &WiggumBreak) {
    if broke.unresolved_findings.is_empty() {
        return;
    }
    text.push_str("\n## Open findings\n\n");
    for line in broke.unresolved_findings.iter().take(FINDINGS_AT_MOST) {
        let (severity, place) = (line.severity.name(), table_cell(&line.location));
        let _ = writeln!(text, "- {severity} {place} ({}): {}", line.source, one_line(&line.description));
    }
}

/// Those that came back first, then those that stayed, then the rest of what is open.
fn findings_to_show<'a>(run: &Run, cycles: &[&'a [Tracked]]) -> Vec<&'a Tracked> {
    let Some(last) = cycles.last() else { return Vec::new() };
    let trend = run.cycle().and_then(|cycle| cycle.boundary.as_ref()?.convergence.as_ref());
    let came_back = |id: &str| trend.is_some_and(|trend| trend.oscillating.iter().any(|other| other == id));
    let mut told: Vec<&Tracked> = last.iter().collect();
    // What the oscillating ones alternate with is the other half of the contradiction.
    if told.iter().any(|found| came_back(&found.id)) {
        let before = cycles.len().checked_sub(2).and_then(|at| cycles.get(at)).copied().unwrap_or(&[]);
        let known: BTreeSet<&str> = told.iter().map(|found| found.id.as_str()).collect();
        told.extend(before.iter().filter(|found| !known.contains(found.id.as_str())));
    }
    told.sort_by_key(|found| {
        let back = came_back(&found.id);
        (!back, std::cmp::Reverse(found.severity), std::cmp::Reverse(found.cycles_open), found.id.clone())
    });
    told
}

fn words_about(text: &mut String, run: &Run, found: &Tracked, log: &[Entry]) {
    let _ = write!(text, "\n### `{}`\n\n", table_cell(&found.id));
    let mut said: Vec<String> = Vec::new();
    for (cycle, verdict) in verdicts(log) {
        for line in &verdict.findings {
            let finding = Finding {
                source: verdict.archetype.clone(),
                location: line.location.clone(),
                file: found_file(&line.location),
                line: found_line(&line.location),
                severity: line.severity,
                category: line.category.clone(),
                flaw: None,
                description: line.description.clone(),
                fix: line.fix.clone(),
                evidence: String::new(),
                citations: Vec::new(),
                anchor: String::new(),
                reproduction: None,
            };
            if convergence::is_same(&finding, found, &run.policy().convergence) {
                let fix = if line.fix.is_empty() {
                    String::new()
                } else {
                    format!(" *Fix:* {}", one_line(&line.fix))
                };
                said.push(format!(
                    "- Cycle {cycle}, {}: {}{fix}",
                    capital(&verdict.archetype),
                    one_line(&line.description)
                ));
            }
        }
    }
    if said.is_empty() {
        said.push(format!("- {}: {}", capital(&found.source.join(", ")), one_line(&found.description)));
    }
    said.dedup();
    let _ = writeln!(text, "{}", said.join("\n"));
}

fn found_file(location: &str) -> String {
    location.rsplit_once(':').map_or(location, |(file, _)| file).to_owned()
}

fn found_line(location: &str) -> u32 {
    location.rsplit_once(':').and_then(|(_, line)| line.parse().ok()).unwrap_or(0)
}

/// Every verdict with the number of its cycle.
fn verdicts(log: &[Entry]) -> Vec<(u32, &ReviewVerdict)> {
    let mut cycle = 1;
    let mut found = Vec::new();
    for entry in log {
        cycle = entry.event.body::<PhaseTransition>().map_or(cycle, |transition| transition.cycle);
        found.extend(entry.event.body().map(|verdict| (cycle, verdict)));
    }
    found
}

/// Cycle by cycle: what was planned and made, and what had to be corrected.
fn tried_section(text: &mut String, log: &[Entry]) {
    text.push_str("\n## What was tried\n\n");
    let mut cycle = 0;
    for entry in log {
        match entry.event.topic() {
            Topic::Cycle(line) => match line {
                CycleLine::PhaseTransition(transition) if transition.cycle != cycle => {
                    cycle = transition.cycle;
                    let _ = writeln!(text, "**Cycle {cycle}**\n");
                }
                CycleLine::CycleBoundary(boundary) => came_to(text, boundary),
                CycleLine::PhaseTransition(_)
                | CycleLine::DecisionPoint(_)
                | CycleLine::DecisionRecord(_)
                | CycleLine::WorkflowEscalated(_)
                | CycleLine::FixApplied(_) => {}
            },
            Topic::Agent(line) => tried_agent(text, line),
            Topic::Correction(line) => match line {
                CorrectionLine::ShadowDetected(seen) if seen.action != ShadowAction::Note => {
                    let who = if seen.archetype == SYSTEM {
                        "process".to_owned()
                    } else {
                        capital(&seen.archetype)
                    };
                    let what: Vec<&str> = seen.sightings.iter().map(|one| one.detail.as_str()).collect();
                    let _ = writeln!(
                        text,
                        "- Shadow of the {who}, {}: {} ({})",
                        seen.shadow.replace('_', " "),
                        one_line(&what.join("; ")),
                        follows(seen.action)
                    );
                }
                CorrectionLine::ShadowDetected(_)
                | CorrectionLine::BudgetStep(_)
                | CorrectionLine::PolicyCheckpoint(_)
                | CorrectionLine::WiggumBreak(_) => {}
            },
            Topic::Run(_) | Topic::Review(_) | Topic::Question(_) | Topic::Landing(_) | Topic::Loop(_) => {}
        }
    }
}

fn tried_agent(text: &mut String, line: AgentLine<'_>) {
    let mut failed = |archetype: &str, reason: &str| {
        let _ = writeln!(text, "- {} failed: {}", capital(archetype), one_line(reason));
    };
    match line {
        AgentLine::AgentComplete(complete) => {
            let creates = complete.artifacts.iter().any(|name| name.contains("creator"));
            let said =
                format!("- {}: {}\n", capital(&complete.archetype), one_line(&complete.answer.summary));
            if (complete.change.is_some() || creates) && !text.ends_with(&said) {
                text.push_str(&said);
            }
        }
        AgentLine::AgentFailed(body) => failed(&body.archetype, &body.reason),
        AgentLine::AgentTimeout(body) => failed(&body.archetype, &body.reason),
        AgentLine::AgentStart(_)
        | AgentLine::AgentLost(_)
        | AgentLine::AgentUsage(_)
        | AgentLine::AgentSkipped(_) => {}
    }
}

fn came_to(text: &mut String, boundary: &CycleBoundary) {
    let trend = boundary.convergence.as_ref();
    let trend = trend.map(|trend| format!(", {}", trend.status.name())).unwrap_or_default();
    let [critical, warning, _] = open_tally(boundary);
    let _ = writeln!(text, "- Came to {critical} CRITICAL, {warning} WARNING{trend}\n");
}

#[derive(Default)]
struct Sum {
    attempts: u32,
    duration_ms: u64,
    cost: Money,
    unknown: u32,
}

/// Time and cost per archetype. Attempts without a known cost are counted, not guessed.
fn cost_section(text: &mut String, log: &[Entry]) {
    let mut sums: BTreeMap<&str, Sum> = BTreeMap::new();
    for entry in log {
        let Topic::Agent(line) = entry.event.topic() else { continue };
        let (name, took, cost) = match line {
            AgentLine::AgentComplete(done) => (&done.archetype, done.duration_ms, done.estimated_cost_usd),
            AgentLine::AgentFailed(failed) => {
                (&failed.archetype, failed.duration_ms, failed.estimated_cost_usd)
            }
            AgentLine::AgentTimeout(failed) => {
                (&failed.archetype, failed.duration_ms, failed.estimated_cost_usd)
            }
            AgentLine::AgentStart(_)
            | AgentLine::AgentLost(_)
            | AgentLine::AgentUsage(_)
            | AgentLine::AgentSkipped(_) => continue,
        };
        let sum = sums.entry(name).or_default();
        sum.attempts += 1;
        sum.duration_ms += took;
        sum.cost.0 += cost.unwrap_or_default().0;
        sum.unknown += u32::from(cost.is_none());
    }
    if sums.is_empty() {
        return;
    }
    text.push_str("\n## What it cost\n\n| agent | attempts | time | cost |\n|---|---|---|---|\n");
    for (name, sum) in &sums {
        let unknown = if sum.unknown > 0 { format!(" ({} unknown)", sum.unknown) } else { String::new() };
        let (time, cost) = (seconds(sum.duration_ms), sum.cost.shown());
        let _ = writeln!(text, "| {name} | {} | {time} | {cost}{unknown} |", sum.attempts);
    }
    let all = Money(sums.values().map(|sum| sum.cost.0).sum());
    let time = seconds(sums.values().map(|sum| sum.duration_ms).sum());
    let attempts: u32 = sums.values().map(|sum| sum.attempts).sum();
    let _ = writeln!(text, "| **all** | {attempts} | {time} | {} |", all.shown());
}

fn places_section(text: &mut String, run_id: &str, run: &Run) {
    let branch = run.request.as_ref().map(|request| request.branch.as_str()).unwrap_or_default();
    text.push_str("\n## Where it is\n\n");
    if let Some(opened) = &run.review {
        let _ = writeln!(
            text,
            "- The change: {}, as `about.md` and the parts beside it show it",
            opened.subject.label()
        );
    } else if run.work.is_some() {
        let _ = writeln!(text, "- The change: branch `{branch}`, see `git diff HEAD...{branch}`");
    } else {
        text.push_str("- Nothing was changed.\n");
    }
    let _ = writeln!(text, "- All artifacts: `.archeflow/artifacts/{run_id}/`");
    let _ = writeln!(text, "- Every decision with its reason: `archeflow show {run_id} --why`");
}
