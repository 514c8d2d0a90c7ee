//! A line of the log in words: who decided or ordered what, by which rule, on what.

use crate::event::{Entry, Event, FindingLine, QuestionKind, Share, Verb};
use crate::model::{PROGRAM, Phase, Seq, Severity, Speaker, TurnEvent, Verdict, counted};
use crate::view;

/// A choice of the program, as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub seq: Seq,
    pub at: u64,
    /// 0 before the first cycle.
    pub cycle: u32,
    pub phase: Phase,
    pub rule: String,
    pub who: String,
    /// How sure it is, where the line says so.
    pub confidence: Option<Share>,
    pub input: String,
    pub decision: String,
}

/// The decision a line holds, if it holds one. A step of the budget and the boundary of a cycle are told by the
/// `decision.point` that is written with them, and a change of phase is a heading.
pub fn of(entry: &Entry, cycle: u32) -> Option<Decision> {
    let event = &entry.event;
    let told_elsewhere =
        matches!(event, Event::PhaseTransition(_) | Event::CycleBoundary(_) | Event::BudgetStep(_));
    if event.verb() != Verb::Decided || told_elsewhere {
        return None;
    }
    let Told { rule, who, confidence, input, decision } = told(event);
    let (seq, at, phase) = (entry.seq, entry.at, entry.phase);
    Some(Decision { seq, at, cycle, phase, rule, who, confidence, input, decision })
}

/// What a line says, whatever it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Told {
    /// Empty where no rule of its own stands behind it.
    pub rule: String,
    pub who: String,
    pub confidence: Option<Share>,
    pub input: String,
    pub decision: String,
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "a report decides nothing; some decisions have their words in `view`"
)]
pub fn told(event: &Event) -> Told {
    if event.verb() == Verb::Ordered {
        return Told { who: PROGRAM.to_owned(), decision: ordered(event), ..Told::default() };
    }
    let told = |rule: &str, who: &str, input: String, decision: String| Told {
        rule: rule.to_owned(),
        who: who.to_owned(),
        confidence: None,
        input,
        decision,
    };
    match event {
        Event::DecisionPoint(point) => {
            let told = told(&point.rule, &point.archetype, point.input.clone(), point.decision.clone());
            Told { confidence: Some(point.confidence), ..told }
        }
        Event::PhaseTransition(transition) => told(
            "",
            PROGRAM,
            format!("{} is settled", transition.from),
            format!("on to {} (cycle {})", view::capital(transition.to.name()), transition.cycle),
        ),
        Event::WorkflowEscalated(escalated) => told(
            &escalated.rule,
            PROGRAM,
            format!("the workflow was {}", escalated.from.name()),
            format!(
                "{} from now on, at most {}",
                escalated.to.name(),
                counted(escalated.max_cycles, "cycle")
            ),
        ),
        Event::AgentSkipped(skipped) => {
            let decision = if skipped.failed { "given up" } else { "spared" };
            let rule = if skipped.failed { "CL-12" } else { in_brackets(&skipped.reason) };
            told(rule, &skipped.archetype, skipped.reason.clone(), decision.to_owned())
        }
        Event::ReviewVerdict(review) => {
            told("AF-080", &review.archetype, counts(&review.findings), verdict(review.verdict).to_owned())
        }
        Event::EvidenceDowngrade(downgrade) => told(
            "AF-073",
            &downgrade.archetype,
            format!("{}: {}", place(&downgrade.file, downgrade.line), downgrade.description),
            format!(
                "{} counts as {}: {}",
                downgrade.from.name(),
                downgrade.to.name(),
                downgrade.reason.name().replace('_', " ")
            ),
        ),
        Event::FindingRaised(raised) => told(
            "D-07",
            PROGRAM,
            raised.finding.description.clone(),
            format!("{} raised by the program ({})", raised.finding.severity.name(), raised.sign.name()),
        ),
        Event::FixApplied(fix) => told(
            "CL-34",
            PROGRAM,
            format!("{} is gone, and somebody said it was fixed", fix.finding),
            "counted as a fix".to_owned(),
        ),
        Event::CycleBoundary(boundary) => told(
            "AF-109",
            PROGRAM,
            format!("{} CRITICAL, {} WARNING, {} INFO", boundary.critical, boundary.warning, boundary.info),
            match &boundary.stop {
                Some(stop) => format!("stop: {}", stop.detail),
                None => format!(
                    "{}; {} followed",
                    boundary.exit_condition.replace('_', " "),
                    counted(u32::try_from(boundary.open.len()).unwrap_or(u32::MAX), "finding")
                ),
            },
        ),
        Event::RunComplete(complete) => told(
            "D-16",
            PROGRAM,
            complete.detail.clone(),
            format!(
                "ends: {} ({}), exit {}",
                complete.status.name(),
                complete.reason.name(),
                complete.exit_code
            ),
        ),
        Event::LoopTurn(turn) => {
            let who = turn.by.map_or(PROGRAM, Speaker::name).to_lowercase();
            let said = std::iter::once(turn.summary.clone()).chain(turn.why.iter().cloned());
            let said: Vec<String> = said.filter(|text| !text.is_empty()).collect();
            let heard = turn.heard.map_or("not heard".to_owned(), |heard| heard.name().replace('_', " "));
            told(turn_rule(turn.heard), &who, said.join("; "), format!("{heard}: {}", turn.to.name()))
        }
        Event::LoopAlert(alert) => {
            told("PJ-60", PROGRAM, alert.detail.clone(), format!("alert: {}", alert.alert.name()))
        }
        other => match view::why_of(other) {
            Some(why) => told(&why.rule, &why.who, why.input, why.decision),
            None => told("", PROGRAM, String::new(), other.name().to_owned()),
        },
    }
}

/// The transition behind a turn of a loop.
fn turn_rule(heard: Option<TurnEvent>) -> &'static str {
    match heard {
        None | Some(TurnEvent::Unclear) => "PJ-22",
        Some(TurnEvent::Goal) => "PJ-01",
        Some(TurnEvent::Questions | TurnEvent::Answer) => "PJ-02",
        Some(TurnEvent::Plan) => "PJ-04",
        Some(TurnEvent::GatedPlan) => "MX-06",
        Some(TurnEvent::Success) => "PJ-05",
        Some(TurnEvent::Fail) => "PJ-06",
        Some(TurnEvent::GraveFail) => "PJ-07",
        Some(TurnEvent::Pass) => "PJ-08",
        Some(TurnEvent::PassOn) => "MX-01",
        Some(TurnEvent::Insufficient) => "PJ-09",
        Some(TurnEvent::Approve | TurnEvent::Landed | TurnEvent::NotLanded) => "PJ-11",
        Some(TurnEvent::RequestChanges) => "PJ-12",
        Some(TurnEvent::Restart | TurnEvent::Clear) => "PJ-13",
        Some(TurnEvent::Stop) => "PJ-14",
    }
}

/// What is to be done, for whoever reads it.
#[expect(clippy::wildcard_enum_match_arm, reason = "only orders are to be done")]
pub fn ordered(order: &Event) -> String {
    match order {
        Event::AgentStart(start) => format!(
            "send the {} ({}, cycle {}, attempt {})",
            start.archetype,
            start.purpose.name(),
            start.cycle,
            start.attempt
        ),
        Event::MergeStart(_) => "build the merge".to_owned(),
        Event::TestsStart(start) if start.post_merge => format!("test after landing: {}", start.command),
        Event::TestsStart(start) => format!("test exactly that tree: {}", start.command),
        Event::HookStart(start) => format!("run the {} hook", start.point.name()),
        Event::MergeIntent(intent) => format!("land on {}", branch(&intent.target)),
        Event::RevertIntent(intent) => format!("take the merge on {} back", branch(&intent.target)),
        Event::QuestionAsked(asked) => {
            let about = match asked.kind {
                QuestionKind::NeedsContext => "what an agent needs to know",
                QuestionKind::LowConfidence => "whether the task is understood",
                QuestionKind::Merge => "whether to land it",
                QuestionKind::DryRun => "whether to go on after the plan",
                QuestionKind::Shadow => "what becomes of a shadow",
                QuestionKind::GoalQuestions => "what the loop needs to know",
                QuestionKind::PlanApproval => "whether to act on the plan",
                QuestionKind::StepApproval => "whether to land what passed",
                QuestionKind::LoopPaused => "whether to start the loop again",
                QuestionKind::LoopEdited => "what became of the cycle file",
            };
            format!("ask a person {about}")
        }
        other => other.name().to_owned(),
    }
}

fn branch(target: &str) -> &str {
    target.strip_prefix("refs/heads/").unwrap_or(target)
}

/// The rule a reason ends with, as in `no more research (AF-144)`.
fn in_brackets(reason: &str) -> &str {
    reason.rsplit_once('(').and_then(|(_, rest)| rest.strip_suffix(')')).unwrap_or_default()
}

pub fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Approved => "APPROVED",
        Verdict::Rejected => "REJECTED",
    }
}

fn counts(findings: &[FindingLine]) -> String {
    let of = |severity: Severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let told: Vec<String> = [Severity::Critical, Severity::Warning, Severity::Info]
        .into_iter()
        .map(|severity| (of(severity), severity.name()))
        .filter(|(number, _)| *number > 0)
        .map(|(number, name)| format!("{number} {name}"))
        .collect();
    if told.is_empty() { "no findings".to_owned() } else { told.join(", ") }
}

fn place(file: &str, line: u32) -> String {
    match (file, line) {
        ("", _) => "no place".to_owned(),
        (file, 0) => file.to_owned(),
        (file, line) => format!("{file}:{line}"),
    }
}
