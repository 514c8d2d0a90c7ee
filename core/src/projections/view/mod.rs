//! What a face shows of a run (AF-122): plain text in pieces, so that every face says the same words.

mod open;
mod passed_over;
pub mod preflight;

use crate::event::{
    AgentStart, BudgetEffect, BudgetStep, Built, CostSource, Decision, Entry, Event, MergeBuilt, Order,
    QuestionKind, Report, RunRolledBack, ShadowDetected, Tested, Tracked,
};
use crate::feedback;
use crate::model::{
    AnswerBody, Domain, Money, Outcome, Phase, Purpose, Reason, ReproductionResult, Role, RunStatus, SYSTEM,
    Severity, ShadowAction, Strategy, Verdict, counted,
};
use crate::rules::signs::masked;
use crate::rules::{players, trial};
use crate::run::{Cycle, Run};
use serde::Serialize;

use crate::strategies::of;
use crate::text::{branch_name, one_line};

pub use open::{open_counts, open_tally};
pub use passed_over::passed_over;

/// How a line should feel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    Plain,
    Good,
    Caution,
    Bad,
}

/// How the end of a run should feel. A run that did what it should is still no good news while it leaves findings
/// open: a review with an open CRITICAL is not green.
pub fn outcome_tone(status: RunStatus, gravest_open: Option<Severity>) -> Tone {
    match (status, gravest_open) {
        (RunStatus::Stopped | RunStatus::Failed | RunStatus::WiggumBreak, _) => Tone::Bad,
        (RunStatus::Reviewed, Some(Severity::Critical)) => Tone::Bad,
        (RunStatus::Reviewed, Some(Severity::Warning)) => Tone::Caution,
        (RunStatus::AwaitingMerge | RunStatus::AwaitingAnswer, _) => Tone::Caution,
        (RunStatus::Merged | RunStatus::DryRun | RunStatus::Reviewed, _) => Tone::Good,
    }
}

/// The severity of the gravest finding that a run which has ended leaves open.
pub fn gravest_open(run: &Run) -> Option<Severity> {
    run.complete.as_ref()?.unresolved.iter().map(|finding| finding.severity).max()
}

/// One line of progress: `[Tag] doing... -> outcome`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgressLine {
    pub tag: String,
    pub doing: String,
    pub outcome: String,
    pub tone: Tone,
}

/// The words above everything.
pub fn header(run: &Run) -> (String, String) {
    let Some(request) = &run.request else { return (String::new(), String::new()) };
    let what = run.rules().title();
    let mut second = run.rules().subtitle(run);
    let overlay = &request.overlay;
    let named = [overlay.team.as_str(), overlay.workflow.as_str()].into_iter().find(|name| !name.is_empty());
    second.extend(named.map(|name| format!(" | Team: {name}")));
    if request.domain != Domain::Code {
        second.push_str(&format!(" | Domain: {}", request.domain.name()));
    }
    if !request.lenses.is_empty() {
        second.push_str(&format!(" | Lenses: {}", request.lenses.join(", ")));
    }
    (format!("{what}: {}", one_line(&request.task)), second)
}

/// Said of a review by whoever wrote what it reviews.
const SAME_MODEL: &str = "reviewed by the model that wrote it";
const SAME_AGENT: &str = "reviewed by the agent that wrote it; its model is not known";

fn same_model(run: &Run, archetype: &str) -> &'static str {
    let judge = run.cycle().and_then(|cycle| cycle.answers.get(archetype)).map(|answered| &answered.author);
    let known = run
        .author
        .as_ref()
        .zip(judge)
        .is_some_and(|(author, judge)| players::models_are_known(author, judge));
    if known { SAME_MODEL } else { SAME_AGENT }
}

/// `[Plan]` and the like.
pub fn tag(run: &Run, phase: Phase, archetype: &str) -> String {
    format!("[{}]", run.rules().phase(phase, archetype))
}

/// The short name of a run: its workflow, or its strategy.
pub fn label(strategy: Strategy, workflow: &'static str) -> &'static str {
    of(strategy).label(workflow)
}

/// Above the lines of a cycle that is not the first.
pub fn cycle_heading(run: &Run, number: u32) -> String {
    run.rules().cycle_heading(number, run.max_cycles)
}

/// What an agent that is out is doing.
pub fn doing(start: &AgentStart) -> String {
    let who = capital(&start.archetype);
    let verb = match (start.role, start.purpose, start.archetype.as_str()) {
        (_, Purpose::Research, _) => "researching risks",
        (Role::Maker, Purpose::Tests, _) => "adding tests",
        (Role::Maker, Purpose::Fix, _) => "fixing",
        (_, _, "planner") => "planning a step",
        (_, _, "actor") => "acting",
        (_, _, "judge") => "judging",
        (Role::Explorer, _, _) => "researching",
        (Role::Creator, _, _) => "designing proposal",
        (Role::Maker, _, _) => "implementing",
        (_, _, "skeptic") => "challenging",
        (_, _, "trickster") => "attacking",
        (Role::Gatekeeper | Role::Reviewer, _, _) => "reviewing",
    };
    let again = match start.purpose {
        Purpose::Retry => " again",
        Purpose::Correct => ", corrected",
        Purpose::Replace => ", replaced",
        Purpose::Work | Purpose::Tests | Purpose::Research | Purpose::Fix => "",
    };
    format!("{who} {verb}{again}...")
}

/// The line an entry is worth, if any. `run` has taken the entry in already.
pub fn line(run: &Run, entry: &Entry, start: Option<&AgentStart>) -> Option<ProgressLine> {
    let phase = entry.phase;
    let act = |doing: &str, outcome: String, tone: Tone| {
        Some(ProgressLine { tag: tag(run, phase, ""), doing: doing.to_owned(), outcome, tone })
    };
    match &entry.event {
        Event::Report(Report::AgentComplete(complete)) => {
            let start = start?;
            let (outcome, tone) = answered(run.cycle()?, start, complete);
            Some(ProgressLine { tag: tag(run, phase, &start.archetype), doing: doing(start), outcome, tone })
        }
        Event::Decision(Decision::ReviewVerdict(verdict)) if verdict.same_model => Some(ProgressLine {
            tag: tag(run, phase, &verdict.archetype),
            doing: format!("{}'s review", capital(&verdict.archetype)),
            outcome: same_model(run, &verdict.archetype).to_owned(),
            tone: Tone::Caution,
        }),
        Event::Decision(Decision::DecisionPoint(point)) if point.rule == "C6" => Some(ProgressLine {
            tag: tag(run, phase, &point.archetype),
            doing: format!("{}'s agent", capital(&point.archetype)),
            outcome: one_line(&point.decision),
            tone: Tone::Caution,
        }),
        Event::Decision(Decision::DecisionPoint(point)) if point.rule == "I4" => Some(ProgressLine {
            tag: tag(run, phase, &point.archetype),
            doing: format!("{}'s share of the budget", capital(&point.archetype)),
            outcome: format!("used up: {}", one_line(&point.input)),
            tone: Tone::Bad,
        }),
        Event::Report(Report::AgentFailed(failed)) => {
            let charged = charged(failed.estimated_cost_usd, failed.cost_source);
            agent_failed(run, phase, start?, &failed.reason, &charged)
        }
        Event::Report(Report::AgentTimeout(failed)) => {
            let charged = charged(failed.estimated_cost_usd, failed.cost_source);
            agent_failed(run, phase, start?, &failed.reason, &charged)
        }
        Event::Report(Report::AgentLost(lost)) => {
            let charged = charged(lost.estimated_cost_usd, lost.cost_source);
            agent_failed(run, phase, start?, &lost.reason, &charged)
        }
        Event::Decision(Decision::AgentSkipped(skipped)) => Some(ProgressLine {
            tag: tag(run, phase, &skipped.archetype),
            doing: format!("{} skipped", capital(&skipped.archetype)),
            outcome: skipped.reason.clone(),
            tone: if skipped.failed { Tone::Caution } else { Tone::Plain },
        }),
        Event::Decision(Decision::EvidenceDowngrade(downgrade)) => Some(ProgressLine {
            tag: tag(run, phase, &downgrade.archetype),
            doing: format!("Evidence of the {}", capital(&downgrade.archetype)),
            outcome: format!(
                "{} to {}, {}: {}",
                downgrade.from.name(),
                downgrade.to.name(),
                downgrade.reason.name().replace('_', " "),
                one_line(&masked(&downgrade.description))
            ),
            tone: Tone::Caution,
        }),
        Event::Report(Report::RunPaused(_)) => act(
            "Paused",
            "running agents finish, nothing new starts until the run is resumed".to_owned(),
            Tone::Caution,
        ),
        Event::Report(Report::RunResumed(_)) => act("Resumed", "the pause is over".to_owned(), Tone::Plain),
        Event::Report(Report::ReviewOpened(opened)) => {
            let change = &opened.change;
            let files =
                u32::try_from(change.files.len()).unwrap_or(u32::MAX).saturating_add(change.files_left_out);
            let parts = u32::try_from(opened.parts.len()).unwrap_or(u32::MAX);
            Some(ProgressLine {
                tag: "[Check]".to_owned(),
                doing: capital(&opened.subject.label()),
                outcome: format!("{}, {}", counted(files, "file"), counted(parts, "part")),
                tone: Tone::Plain,
            })
        }
        Event::Order(Order::EvidenceStart(start)) => Some(ProgressLine {
            tag: tag(run, phase, &start.archetype),
            doing: format!("Trying what the {} says", capital(&start.archetype)),
            outcome: format!("$ {}", one_line(&start.reproduction.command)),
            tone: Tone::Plain,
        }),
        Event::Report(Report::EvidenceDone(done)) => {
            // The base is looked at only where it decides.
            let (trial, why) = trial::judge(done.base.is_some(), done);
            Some(ProgressLine {
                tag: tag(run, phase, "program"),
                doing: "The reproduction".to_owned(),
                outcome: format!("{}: {why}", trial.name().replace('_', " ")),
                tone: if trial == ReproductionResult::Confirmed { Tone::Caution } else { Tone::Plain },
            })
        }
        Event::Decision(Decision::FindingRaised(raised)) => Some(ProgressLine {
            tag: tag(run, phase, "program"),
            doing: "The program itself".to_owned(),
            outcome: format!(
                "{} {}",
                raised.finding.severity.name(),
                one_line(&masked(&raised.finding.description))
            ),
            tone: Tone::Bad,
        }),
        Event::Decision(Decision::WorkflowEscalated(escalated)) => act(
            "Workflow",
            format!("{} becomes {} ({})", escalated.from.name(), escalated.to.name(), escalated.rule),
            Tone::Caution,
        ),
        Event::Decision(Decision::CycleBoundary(boundary)) => {
            let (doing, tone) = run.rules().boundary(boundary)?;
            let counts = format!(
                "{}{}{}{}",
                open_counts(boundary),
                passed_over(&boundary.passed_over).map_or_else(String::new, |over| format!("; {over}")),
                regressions(&boundary.open),
                boundary.convergence.as_ref().map_or_else(String::new, |trend| format!(
                    "; {} {}",
                    trend.status.name(),
                    feedback::score(trend)
                ))
            );
            act(doing, counts, tone)
        }
        Event::Report(Report::MergeBuilt(built)) => match &built.built {
            Built::Candidate { commit, .. } => act(
                "Building merge commit...",
                format!("candidate {}{}", short(commit), taken_along(built)),
                Tone::Plain,
            ),
            Built::Conflict { paths } => {
                act("Building the merge...", format!("conflict in {}", paths.join(", ")), Tone::Bad)
            }
            Built::Nothing => act("Building the merge...", "nothing to merge".to_owned(), Tone::Caution),
            Built::BaseGone { .. } => act("Building the merge...", "the base is gone".to_owned(), Tone::Bad),
            Built::NotSigned { what } => act("Signing the merge...", one_line(what), Tone::Bad),
            Built::Fault { what } => act("Building the merge...", one_line(what), Tone::Bad),
        },
        Event::Report(Report::PreflightDone(done)) => Some(preflight::line(done)),
        Event::Report(Report::RunRolledBack(back)) => act("Rolled back", rolled_back(back), Tone::Caution),
        Event::Report(Report::TestsDone(done)) => {
            let took = format!("{}{}", seconds(done.duration_ms), preflight::cached(&done.cache));
            match done.result {
                Tested::Passed => act("Testing exactly that tree...", format!("passed ({took})"), Tone::Good),
                Tested::Failed => act("Testing exactly that tree...", format!("FAILED ({took})"), Tone::Bad),
                Tested::TimedOut => {
                    act("Testing exactly that tree...", format!("timed out ({took})"), Tone::Bad)
                }
                Tested::Broken => {
                    act("Testing exactly that tree...", "the command can't be run".to_owned(), Tone::Bad)
                }
            }
        }
        Event::Report(Report::HookDone(done)) => {
            let tone = if done.ok { Tone::Plain } else { Tone::Bad };
            act(&format!("Hook {}...", done.point.name()), one_line(&done.reason), tone)
        }
        Event::Report(Report::RunMerged(merged)) => {
            let target = branch_name(&merged.base);
            act("Landing...", format!("merged to {target} ({})", short(&merged.commit)), Tone::Good)
        }
        Event::Report(Report::MergeRefused(refused)) => {
            act("Landing...", one_line(&refused.detail), Tone::Bad)
        }
        Event::Report(Report::RevertBuilt(built)) => match &built.built {
            Built::Candidate { commit, .. } => {
                act("Building the revert...", format!("candidate {}", short(commit)), Tone::Plain)
            }
            Built::Conflict { paths } => {
                act("Building the revert...", format!("conflict in {}", paths.join(", ")), Tone::Bad)
            }
            Built::Nothing => act("Building the revert...", "nothing to revert".to_owned(), Tone::Caution),
            Built::BaseGone { .. } => {
                act("Building the revert...", "the landing is not in the branch".to_owned(), Tone::Bad)
            }
            Built::NotSigned { what } | Built::Fault { what } => {
                act("Building the revert...", one_line(what), Tone::Bad)
            }
        },
        Event::Report(Report::RunReverted(reverted)) => {
            act("Taking the merge back...", short(&reverted.commit).to_owned(), Tone::Bad)
        }
        Event::Report(Report::RevertRefused(refused)) => {
            act("Taking the merge back...", one_line(&refused.detail), Tone::Bad)
        }
        Event::Decision(Decision::ShadowDetected(seen)) => Some(shadow(run, phase, seen)),
        Event::Decision(Decision::BudgetStep(step)) => {
            let tone = if step.effect < BudgetEffect::FinishThenStop { Tone::Caution } else { Tone::Bad };
            act("Budget", budget_step(step), tone)
        }
        Event::Decision(Decision::PolicyCheckpoint(checkpoint)) => {
            let stops = checkpoint.stops.as_ref().map(|stop| format!("; {}", stop.detail));
            let tone = if stops.is_some() { Tone::Bad } else { Tone::Plain };
            let number = checkpoint.number;
            act("Checkpoint", format!("{number}: {}{}", checkpoint.why, stops.unwrap_or_default()), tone)
        }
        Event::Decision(Decision::WiggumBreak(wiggum)) => {
            act("Wiggum Break", one_line(&wiggum.detail), Tone::Bad)
        }
        other @ (Event::Decision(
            Decision::PhaseTransition(_)
            | Decision::DecisionPoint(_)
            | Decision::DecisionRecord(_)
            | Decision::ReviewVerdict(_)
            | Decision::FixApplied(_)
            | Decision::LoopTurn(_)
            | Decision::LoopAlert(_)
            | Decision::RunComplete(_),
        )
        | Event::Order(
            Order::PreflightStart(_)
            | Order::AgentStart(_)
            | Order::LoopAppend(_)
            | Order::BatteryStart(_)
            | Order::LoopArchive(_)
            | Order::MergeStart(_)
            | Order::TestsStart(_)
            | Order::HookStart(_)
            | Order::MergeIntent(_)
            | Order::RevertStart(_)
            | Order::RevertIntent(_)
            | Order::QuestionAsked(_),
        )
        | Event::Report(
            Report::RunStart(_)
            | Report::SessionStart(_)
            | Report::SessionEnd(_)
            | Report::RunReentered(_)
            | Report::AgentUsage(_)
            | Report::LoopOpened(_)
            | Report::LoopHeard(_)
            | Report::RunContinued(_)
            | Report::RunDiscarded(_)
            | Report::MergeRequested(_)
            | Report::RevertRequested(_)
            | Report::LoopAppended(_)
            | Report::LoopEdited(_)
            | Report::BatteryDone(_)
            | Report::LoopArchived(_)
            | Report::QuestionAnswered(_)
            | Report::QuestionDeferred(_),
        )) => run.rules().line(other, &tag(run, phase, "")),
    }
}

fn shadow(run: &Run, phase: Phase, seen: &ShadowDetected) -> ProgressLine {
    let what: Vec<&str> = seen.sightings.iter().map(|sighting| sighting.detail.as_str()).collect();
    let who = if seen.archetype == SYSTEM { "process".to_owned() } else { capital(&seen.archetype) };
    let acts = matches!(seen.action, ShadowAction::Correct | ShadowAction::Replace);
    let follows =
        if acts && seen.archetype == SYSTEM { remedied(run, seen) } else { follows(seen.action).to_owned() };
    ProgressLine {
        tag: tag(run, phase, &seen.archetype),
        doing: format!("Shadow of the {who}: {}", seen.shadow.replace('_', " ")),
        outcome: format!("{follows}: {}", one_line(&what.join("; "))),
        tone: if seen.action < ShadowAction::Escalate { Tone::Caution } else { Tone::Bad },
    }
}

/// What is done about a shadow, in a few words.
pub(crate) fn follows(action: ShadowAction) -> &'static str {
    match action {
        ShadowAction::Note => "noted",
        ShadowAction::Correct => "corrected",
        ShadowAction::Replace => "replaced by a fresh one",
        ShadowAction::Escalate => "a person has to decide",
        ShadowAction::Break => "the run breaks",
    }
}

/// Who has to make up for a shadow of the process; a lesson or the next plan is nobody.
fn remedied(run: &Run, seen: &ShadowDetected) -> String {
    let sent = run.seats().iter().any(|seat| seat.archetype == seen.target);
    if sent { format!("the {} is sent again", capital(&seen.target)) } else { "acted upon".to_owned() }
}

/// AF-121: said first, because somebody has paid for it already.
fn regressions(open: &[Tracked]) -> String {
    let back = open.iter().filter(|found| found.regression_of.is_some()).count();
    if back == 0 { String::new() } else { format!("; {}", counted(back, "REGRESSION")) }
}

/// Whose work lands in the same step.
fn taken_along(built: &MergeBuilt) -> String {
    let others: Vec<&str> = built.chain.iter().map(|link| link.run_id.as_str()).collect();
    if others.is_empty() { String::new() } else { format!(" on top of {}", others.join(", ")) }
}

/// `$4.05 of $5.00 spent: reviewers get the next cheaper tier`.
fn budget_step(step: &BudgetStep) -> String {
    let follows = match step.effect {
        BudgetEffect::Warn => "a warning, nothing else",
        BudgetEffect::Downgrade => "reviewers get the next cheaper tier",
        BudgetEffect::FinishThenStop => "this cycle is finished, no other begins",
        BudgetEffect::StopNow => "all agents are stopped",
    };
    let of = if step.limit == "day" { " a day" } else { "" };
    format!("{} of {}{of} spent: {follows}", step.spent_usd.shown(), step.budget_usd.shown())
}

/// What an attempt without an answer is charged, and how that is known; nothing for journals that don't say.
fn charged(cost: Option<Money>, source: Option<CostSource>) -> String {
    let (Some(cost), Some(source)) = (cost.filter(|cost| *cost > Money::ZERO), source) else {
        return String::new();
    };
    let cost = cost.shown();
    match source {
        CostSource::Reported => format!(" ({cost} charged, as it reported)"),
        CostSource::Priced => format!(" ({cost} charged for the tokens it reported)"),
        CostSource::Reserved => format!(" (it reported no usage: its reservation of {cost} is charged)"),
    }
}

fn agent_failed(
    run: &Run,
    phase: Phase,
    start: &AgentStart,
    reason: &str,
    charged: &str,
) -> Option<ProgressLine> {
    let tag = tag(run, phase, &start.archetype);
    Some(ProgressLine {
        tag,
        doing: doing(start),
        outcome: format!("failed: {}{charged}", one_line(reason)),
        tone: Tone::Bad,
    })
}

/// `done (25s, confidence: 0.8)`, `APPROVED (1 INFO)`, …
fn answered(cycle: &Cycle, start: &AgentStart, complete: &crate::event::AgentComplete) -> (String, Tone) {
    let took = seconds(complete.duration_ms);
    match &complete.answer.said {
        AnswerBody::Review(review) => {
            let verdict = cycle.verdicts.get(&start.archetype).copied().or(review.verdict);
            let (word, tone) = match verdict {
                Some(Verdict::Approved) => ("APPROVED", Tone::Good),
                Some(Verdict::Rejected) | None => ("REJECTED", Tone::Caution),
            };
            let counts: Vec<String> = [Severity::Critical, Severity::Warning, Severity::Info]
                .into_iter()
                .map(|severity| (severity, review.findings.iter().filter(|f| f.severity == severity).count()))
                .filter(|(_, n)| *n > 0)
                .map(|(severity, n)| format!("{n} {}", severity.name()))
                .collect();
            let counts = if counts.is_empty() { String::new() } else { format!(", {}", counts.join(", ")) };
            (format!("{word} ({took}{counts})"), tone)
        }
        AnswerBody::Proposal(proposal) => {
            let lowest = [
                proposal.confidence.task_understanding,
                proposal.confidence.solution_completeness,
                proposal.confidence.risk_coverage,
            ]
            .map(|score| score.unwrap_or(0))
            .into_iter()
            .min()
            .unwrap_or(0);
            let hundredths = lowest / 10_000;
            (format!("done ({took}, confidence: {}.{:02})", hundredths / 100, hundredths % 100), Tone::Plain)
        }
        AnswerBody::Prose => match &complete.change {
            Some(change) => {
                let files = change.files.len() + change.files_left_out as usize;
                let tests = change.test_files;
                (
                    format!(
                        "done ({took}, {}, {})",
                        counted(files, "file"),
                        counted(tests as usize, "test file")
                    ),
                    Tone::Plain,
                )
            }
            None => (format!("done ({took})"), Tone::Plain),
        },
    }
}

/// A choice of the program, for whoever asks why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    pub rule: String,
    pub who: String,
    pub input: String,
    pub decision: String,
}

/// The reason a line gives, if it is a choice: what it looked at, and what was decided.
pub fn why(entry: &Entry) -> Option<Why> {
    if let Some(back) = entry.event.body::<RunRolledBack>() {
        let (rule, who) = ("AF-188".to_owned(), "person".to_owned());
        return Some(Why { rule, who, input: "archeflow rollback".to_owned(), decision: rolled_back(back) });
    }
    let Event::Decision(decision) = &entry.event else { return None };
    why_of(decision)
}

fn rolled_back(back: &RunRolledBack) -> String {
    format!("back to the end of {} in cycle {}", back.phase.name(), back.cycle)
}

pub(crate) fn why_of(decision: &Decision) -> Option<Why> {
    let why = |rule: &str, who: &str, input: String, decision: String| {
        Some(Why { rule: rule.to_owned(), who: who.to_owned(), input, decision })
    };
    match decision {
        Decision::DecisionPoint(point) => {
            why(&point.rule, &point.archetype, point.input.clone(), point.decision.clone())
        }
        Decision::ShadowDetected(seen) => {
            let told: Vec<String> = seen
                .sightings
                .iter()
                .map(|one| {
                    format!("{} {} against {}: {}", one.trigger, one.measured, one.threshold, one.detail)
                })
                .collect();
            let strikes =
                format!("detection {} in the run, {} in the cycle", seen.count, seen.count_in_cycle);
            let rule = if seen.archetype == SYSTEM { "AF-147" } else { "AF-138" };
            let input = format!("{}, {}; {strikes}", seen.shadow, told.join("; "));
            // What was seen stands in the input already; the last paragraph says what is to be done.
            let asked = seen.detail.trim().rsplit("\n\n").next().unwrap_or_default();
            why(rule, &seen.archetype, input, format!("{}: {}", seen.action.name(), one_line(asked)))
        }
        Decision::BudgetStep(step) => {
            why("AF-151", "program", format!("limit of the {}", step.limit), budget_step(step))
        }
        Decision::PolicyCheckpoint(checkpoint) => {
            let decision = checkpoint.stops.as_ref().map_or("go on", |stop| stop.detail.as_str());
            why("AF-150", "program", checkpoint.why.clone(), decision.to_owned())
        }
        Decision::WiggumBreak(broke) => {
            let kind = if broke.hard { "hard" } else { "soft" };
            why("AF-155", "program", broke.detail.clone(), format!("{kind} break ({})", broke.trigger.name()))
        }
        Decision::PhaseTransition(_)
        | Decision::DecisionRecord(_)
        | Decision::WorkflowEscalated(_)
        | Decision::AgentSkipped(_)
        | Decision::ReviewVerdict(_)
        | Decision::EvidenceDowngrade(_)
        | Decision::FindingRaised(_)
        | Decision::FixApplied(_)
        | Decision::CycleBoundary(_)
        | Decision::LoopTurn(_)
        | Decision::LoopAlert(_)
        | Decision::RunComplete(_) => None,
    }
}

/// What a person can type next, most likely first.
pub fn next_steps(run_id: &str, run: &Run, outcome: &Outcome) -> Vec<(String, &'static str)> {
    run.rules().next_steps(run_id, run, outcome)
}

/// The same for a plain run.
pub(crate) fn plain_next_steps(run_id: &str, run: &Run, outcome: &Outcome) -> Vec<(String, &'static str)> {
    let branch = run.request.as_ref().map(|request| request.branch.clone()).unwrap_or_default();
    let answer = || (format!("archeflow answer {run_id} \"…\""), "answer the question and continue");
    let merge = || (format!("archeflow merge {run_id}"), "land it as it is");
    let again = || (format!("archeflow continue {run_id} --one-more-cycle"), "one more cycle");
    let discard = || (format!("archeflow discard {run_id}"), "give it up, keeping the work under a ref");
    let look = || (format!("git diff HEAD...{branch}"), "look at the change");
    let resume = || (format!("archeflow resume {run_id}"), "try again from where it stopped");
    let parked = run.complete.as_ref().is_some_and(|complete| complete.reopens_at.is_some());
    let wait =
        || (format!("archeflow resume {run_id} --wait"), "resume as soon as the account is available again");
    let show = || (format!("archeflow show {run_id}"), "see the run in full");
    let has_work = run.work.is_some();
    let trend = run.cycle().and_then(|cycle| cycle.boundary.as_ref()?.convergence.as_ref());
    let gets_there = trend.is_some_and(crate::rules::convergence::gets_there);
    let more = || {
        (format!("archeflow continue {run_id} --one-more-cycle"), "one more cycle: the run was converging")
    };
    match (outcome.status, outcome.reason) {
        (RunStatus::Merged | RunStatus::Reviewed, _) => vec![show()],
        (RunStatus::DryRun, _) => {
            vec![(format!("archeflow answer {run_id} yes"), "continue with Do"), show()]
        }
        (_, Reason::Discarded) => vec![show()],
        (RunStatus::AwaitingAnswer, Reason::RedBase) => {
            vec![(format!("archeflow answer {run_id} yes"), "start although the tests fail"), discard()]
        }
        (RunStatus::AwaitingAnswer, _) => vec![answer(), discard()],
        (RunStatus::AwaitingMerge, _) => vec![look(), merge(), discard()],
        (RunStatus::Failed, _) => vec![resume(), show()],
        (RunStatus::Stopped, Reason::ProviderBusy) if parked => vec![wait(), show()],
        (RunStatus::Stopped, Reason::ProviderBusy | Reason::NotSignedIn) => vec![resume(), show()],
        (RunStatus::WiggumBreak, trigger) => {
            let choices = crate::projections::handoff::choices(run_id, run, trigger);
            let mut steps: Vec<_> = choices.into_iter().map(|choice| (choice.command, choice.what)).collect();
            steps.push(show());
            steps
        }
        (RunStatus::Stopped, Reason::MaxCycles) if gets_there => vec![more(), look(), merge(), discard()],
        (RunStatus::Stopped, _) if has_work => {
            vec![look(), again(), merge(), discard()]
        }
        (RunStatus::Stopped, _) => vec![show(), again(), discard()],
    }
}

/// Which word invites an answer.
pub fn prompt(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::Merge | QuestionKind::DryRun | QuestionKind::RedBase => "[y/N]",
        QuestionKind::NeedsContext
        | QuestionKind::LowConfidence
        | QuestionKind::Shadow
        | QuestionKind::Rejection
        | QuestionKind::GoalQuestions
        | QuestionKind::LoopPaused
        | QuestionKind::LoopEdited => "answer:",
        QuestionKind::PlanApproval | QuestionKind::StepApproval => "[approve, or what to change]",
    }
}

pub fn seconds(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms}ms"),
        1_000..=9_999 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        10_000..=59_999 => format!("{}s", ms / 1_000),
        60_000..=3_599_999 => format!("{}m {}s", ms / 60_000, ms / 1_000 % 60),
        _ => format!("{}h {}m", ms / 3_600_000, ms / 60_000 % 60),
    }
}

pub fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn short(oid: &str) -> &str {
    oid.get(..10).unwrap_or(oid)
}

#[cfg(test)]
mod tests {
    use super::{RunStatus, Severity, Tone, outcome_tone};

    #[test]
    fn u_17_what_is_left_open_decides_how_a_review_feels() {
        for (status, open, tone) in [
            (RunStatus::Reviewed, None, Tone::Good),
            (RunStatus::Reviewed, Some(Severity::Info), Tone::Good),
            (RunStatus::Reviewed, Some(Severity::Warning), Tone::Caution),
            (RunStatus::Reviewed, Some(Severity::Critical), Tone::Bad),
            (RunStatus::Merged, None, Tone::Good),
            (RunStatus::AwaitingMerge, Some(Severity::Critical), Tone::Caution),
            (RunStatus::Stopped, None, Tone::Bad),
        ] {
            assert_eq!(outcome_tone(status, open), tone, "{status:?} {open:?}");
        }
    }
}
