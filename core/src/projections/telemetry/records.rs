//! Decisions, verdicts and what people did, as log records.

use super::values::{Attributes, TelemetrySeverity};
use super::{names, steps, word};
use crate::event::{
    CycleBoundary, Decision, DecisionPoint, Entry, Event, FindingLine, NextAction, Report, ReviewVerdict,
};
use crate::model::{PROGRAM, SYSTEM, Severity};

/// Rules whose choice is a phrase of the program. What others choose can name paths, findings or commands.
const PLAIN_CHOICES: &[&str] = &[
    "A1", "A2", "A3", "AF-003", "AF-004", "AF-020", "AF-022", "AF-040", "AF-056", "AF-063", "AF-109",
    "AF-121", "AF-138", "AF-151", "AF-152", "AF-190", "AF-191", "CL-03", "CL-12", "D-02", "I4", "J-04",
    "R17", "U-10",
];

/// Name, severity and attributes; nothing for lines that are spans, or say the same as another.
pub(super) fn of(entry: &Entry, attributes: Attributes) -> Option<(String, TelemetrySeverity, Attributes)> {
    use TelemetrySeverity::{Info, Warn};
    let (severity, attributes) = match &entry.event {
        Event::Decision(decision) => match decision {
            Decision::ReviewVerdict(verdict) => {
                return Some(("gen_ai.evaluation.result".to_owned(), Info, verdict_of(verdict, attributes)));
            }
            Decision::DecisionPoint(point) => (Info, choice(point, attributes)),
            Decision::CycleBoundary(end) => (Info, boundary(end, attributes)),
            Decision::WiggumBreak(broke) => (
                Warn,
                attributes
                    .with(names::REASON, broke.trigger.name())
                    .with(names::RESULT, word(&broke.hardness))
                    .said(names::DETAIL, &broke.detail),
            ),
            Decision::ShadowDetected(shadow) => (
                Warn,
                attributes
                    .with(names::AGENT, steps::plain_name(&shadow.archetype))
                    .with(names::SHADOW, steps::plain_name(&shadow.shadow))
                    .with(names::ACTION, shadow.action.name())
                    .with(names::CYCLE, shadow.cycle)
                    .said(names::DETAIL, &shadow.detail),
            ),
            Decision::BudgetStep(step) => (
                Warn,
                attributes
                    .with(names::STEP, step.step)
                    .with(names::ACTION, word(&step.effect))
                    .with(names::COST, step.spent_usd),
            ),
            Decision::PolicyCheckpoint(point) => (Info, attributes.with(names::COST, point.spent_usd)),
            Decision::WorkflowEscalated(to) => {
                (Info, attributes.with(names::RULE, to.rule.as_str()).with(names::CHOICE, to.to.name()))
            }
            Decision::AgentSkipped(skipped) => (
                if skipped.failed { Warn } else { Info },
                attributes
                    .with(names::AGENT, steps::plain_name(&skipped.archetype))
                    .said(names::DETAIL, &skipped.reason),
            ),
            Decision::EvidenceDowngrade(down) => (
                Info,
                attributes
                    .with(names::AGENT, steps::plain_name(&down.archetype))
                    .with(names::SEVERITY, down.to.name())
                    .with(names::RESULT, down.reason.name())
                    .said(names::FINDING, &format!("{}:{} {}", down.file, down.line, down.description)),
            ),
            Decision::FindingRaised(raised) => (
                Info,
                attributes
                    .with(names::SEVERITY, raised.finding.severity.name())
                    .said(names::FINDING, &raised.finding.description),
            ),
            Decision::FixApplied(fix) => (
                Info,
                attributes
                    .with(names::AGENT, steps::plain_name(&fix.source))
                    .said(names::FINDING, &format!("{}:{} {}", fix.file, fix.line, fix.finding)),
            ),
            Decision::LoopTurn(_) => (Info, attributes),
            Decision::LoopAlert(_) => (Warn, attributes),
            // The same choice as the line before, in words for people.
            Decision::DecisionRecord(_) | Decision::PhaseTransition(_) | Decision::RunComplete(_) => {
                return None;
            }
        },
        Event::Report(report) => match report {
            Report::SessionStart(start) => (
                Info,
                attributes
                    .with(names::FENCE, start.fence)
                    .maybe(names::SANDBOX, Some(start.sandbox.as_str()).filter(|text| !text.is_empty())),
            ),
            Report::SessionEnd(end) => {
                (Info, attributes.with(names::RESULT, format!("signal {}", end.signal)))
            }
            Report::RunPaused(paused) => (Info, by(attributes, &paused.by)),
            Report::RunResumed(resumed) => (Info, by(attributes, &resumed.by)),
            Report::RunContinued(more) => (Info, by(attributes, &more.by).said(names::DETAIL, &more.ruling)),
            Report::RunDiscarded(discarded) => (Info, by(attributes, &discarded.by)),
            Report::MergeRequested(request) => (Info, by(attributes, &request.by)),
            Report::RunReentered(entered) => (Info, attributes.with(names::RESULT, entered.phase.name())),
            Report::RunRolledBack(back) => {
                (Info, attributes.with(names::RESULT, back.phase.name()).with(names::CYCLE, back.cycle))
            }
            Report::RevertRequested(_) | Report::QuestionAnswered(_) | Report::LoopHeard(_) => {
                (Info, attributes)
            }
            Report::RunStart(_)
            | Report::ReviewOpened(_)
            | Report::LoopOpened(_)
            | Report::PreflightDone(_)
            | Report::AgentComplete(_)
            | Report::AgentFailed(_)
            | Report::AgentTimeout(_)
            | Report::AgentLost(_)
            | Report::AgentUsage(_)
            | Report::EvidenceDone(_)
            | Report::LoopAppended(_)
            | Report::LoopEdited(_)
            | Report::BatteryDone(_)
            | Report::LoopArchived(_)
            | Report::MergeBuilt(_)
            | Report::TestsDone(_)
            | Report::HookDone(_)
            | Report::RunMerged(_)
            | Report::MergeRefused(_)
            | Report::RevertBuilt(_)
            | Report::RunReverted(_)
            | Report::RevertRefused(_)
            | Report::QuestionDeferred(_) => return None,
        },
        Event::Order(_) => return None,
    };
    Some((format!("archeflow.{}", entry.event.name()), severity, attributes))
}

fn by(attributes: Attributes, by: &str) -> Attributes {
    attributes.maybe(names::BY, Some(by).filter(|by| !by.is_empty()))
}

fn choice(point: &DecisionPoint, attributes: Attributes) -> Attributes {
    let plain = PLAIN_CHOICES.contains(&point.rule.as_str());
    let choice = match (attributes.sends_content(), plain) {
        (true, _) => Some(point.decision.as_str()),
        // Why it stops can name findings.
        (false, true) if point.decision.starts_with("stop:") => Some("stop"),
        (false, true) => Some(point.decision.as_str()),
        (false, false) => None,
    };
    let agent = Some(point.archetype.as_str()).filter(|name| ![PROGRAM, SYSTEM].contains(name));
    attributes
        .with(names::RULE, point.rule.as_str())
        .maybe(names::AGENT, agent)
        .maybe(names::CHOICE, choice)
        .with(names::CONFIDENCE, f64::from(point.confidence.0) / 1e6)
        .said(names::FACTS, &point.input)
}

fn boundary(end: &CycleBoundary, attributes: Attributes) -> Attributes {
    let next = match end.next_action {
        NextAction::Merge => "merge",
        NextAction::CycleBack => "cycle_back",
        NextAction::Stop => "stop",
    };
    let open: Vec<&str> = end.open.iter().map(|open| open.id.as_str()).collect();
    attributes
        .with(names::CYCLE, end.cycle)
        .with(names::NEXT, next)
        .with(names::CRITICAL, end.critical)
        .with(names::WARNING, end.warning)
        .with(names::INFO, end.info)
        .maybe(names::SCORE, end.convergence.as_ref().map(|trend| f64::from(trend.score.0) / 1e6))
        .maybe(names::TREND, end.convergence.as_ref().map(|trend| trend.status.name()))
        .maybe(names::REASON, end.stop.as_ref().map(|stop| stop.reason.name()))
        .said(names::FINDING, &open.join(", "))
}

fn verdict_of(verdict: &ReviewVerdict, attributes: Attributes) -> Attributes {
    let count = |severity| {
        u64::try_from(verdict.findings.iter().filter(|found| found.severity == severity).count()).unwrap_or(0)
    };
    let line = |found: &FindingLine| {
        format!("{} {} {}: {}", found.location, found.severity.name(), found.category, found.description)
    };
    let lines: Vec<String> = verdict.findings.iter().map(line).collect();
    attributes
        .with(names::EVALUATION, steps::plain_name(&verdict.archetype))
        .with(names::EVALUATION_LABEL, verdict.verdict.name())
        .with(names::CRITICAL, count(Severity::Critical))
        .with(names::WARNING, count(Severity::Warning))
        .with(names::INFO, count(Severity::Info))
        .said(names::EVALUATION_WORDS, &lines.join("\n"))
}
