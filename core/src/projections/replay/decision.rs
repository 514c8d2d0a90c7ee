//! A line of the log in words: who decided or ordered what, by which rule, on what.

use crate::event::{Decision, Entry, Event, FindingLine, Order, QuestionKind, RunRolledBack, Share};
use crate::model::{PROGRAM, Phase, Seq, Severity, Speaker, TurnEvent, Verdict, counted};
use crate::projections::view;
use crate::text::branch_name;

/// A choice of the program, as people read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExplainedDecision {
    pub seq: Seq,
    pub at: u64,
    /// 0 before the first cycle.
    pub cycle: u32,
    pub phase: Phase,
    pub rule: String,
    pub who: String,
    /// Its confidence, if the line has one.
    pub confidence: Option<Share>,
    pub input: String,
    pub decision: String,
    /// What else could have been decided, and why it was not; empty where nothing else is recorded (CL-31).
    pub alternatives: Vec<String>,
    pub rationale: String,
}

/// The decision a line holds, if it holds one. A step of the budget and the boundary of a cycle are text by the
/// `decision.point` that is written with them, a change of phase is a heading, and alternatives belong to the decision
/// they follow.
pub fn of(entry: &Entry, cycle: u32) -> Option<ExplainedDecision> {
    if let Some(back) = entry.event.body::<RunRolledBack>() {
        return rolled_back(entry, back);
    }
    let Event::Decision(decision) = &entry.event else { return None };
    let told_elsewhere = matches!(
        decision,
        Decision::PhaseTransition(_)
            | Decision::CycleBoundary(_)
            | Decision::BudgetStep(_)
            | Decision::DecisionRecord(_)
    );
    if told_elsewhere {
        return None;
    }
    let DecisionText { rule, who, confidence, input, decision } = decided(decision);
    let (seq, at, phase) = (entry.seq, entry.at, entry.phase);
    let (alternatives, rationale) = (Vec::new(), String::new());
    Some(ExplainedDecision {
        seq,
        at,
        cycle,
        phase,
        rule,
        who,
        confidence,
        input,
        decision,
        alternatives,
        rationale,
    })
}

/// A person's decision, which changes what follows.
fn rolled_back(entry: &Entry, back: &RunRolledBack) -> Option<ExplainedDecision> {
    let view::Why { rule, who, input, decision } = view::why(entry)?;
    Some(ExplainedDecision {
        seq: entry.seq,
        at: entry.at,
        cycle: back.cycle,
        phase: entry.phase,
        rule,
        who,
        confidence: None,
        input,
        decision,
        alternatives: Vec::new(),
        rationale: String::new(),
    })
}

/// Any event in words.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DecisionText {
    /// Empty if it has no rule of its own.
    pub rule: String,
    pub who: String,
    pub confidence: Option<Share>,
    pub input: String,
    pub decision: String,
}

pub fn describe(event: &Event) -> DecisionText {
    match event {
        Event::Decision(decision) => decided(decision),
        Event::Order(order) => DecisionText { decision: ordered(order), ..program() },
        Event::Report(report) => DecisionText { decision: report.name().to_owned(), ..program() },
    }
}

fn program() -> DecisionText {
    DecisionText { who: PROGRAM.to_owned(), ..DecisionText::default() }
}

fn decided(decision: &Decision) -> DecisionText {
    let text = |rule: &str, who: &str, input: String, decision: String| DecisionText {
        rule: rule.to_owned(),
        who: who.to_owned(),
        confidence: None,
        input,
        decision,
    };
    match decision {
        Decision::DecisionPoint(point) => {
            let text = text(&point.rule, &point.archetype, point.input.clone(), point.decision.clone());
            DecisionText { confidence: Some(point.confidence), ..text }
        }
        Decision::DecisionRecord(record) => {
            text(&record.rule, &record.archetype, record.rationale.clone(), record.chosen.clone())
        }
        Decision::PhaseTransition(transition) => text(
            "",
            PROGRAM,
            format!("{} is settled", transition.from),
            format!("on to {} (cycle {})", view::capital(transition.to.name()), transition.cycle),
        ),
        Decision::WorkflowEscalated(escalated) => text(
            &escalated.rule,
            PROGRAM,
            format!("the workflow was {}", escalated.from.name()),
            format!(
                "{} from now on, at most {}",
                escalated.to.name(),
                counted(escalated.max_cycles, "cycle")
            ),
        ),
        Decision::AgentSkipped(skipped) => {
            let decision = if skipped.failed { "given up" } else { "skipped" };
            let rule = if skipped.failed { "CL-12" } else { in_brackets(&skipped.reason) };
            text(rule, &skipped.archetype, skipped.reason.clone(), decision.to_owned())
        }
        Decision::ReviewVerdict(review) => {
            text("AF-080", &review.archetype, counts(&review.findings), verdict(review.verdict).to_owned())
        }
        Decision::EvidenceDowngrade(downgrade) => text(
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
        Decision::FindingRaised(raised) => text(
            "D-07",
            PROGRAM,
            raised.finding.description.clone(),
            format!("{} raised by the program ({})", raised.finding.severity.name(), raised.sign.name()),
        ),
        Decision::FixApplied(fix) => text(
            "CL-34",
            PROGRAM,
            format!("{} is no longer raised", fix.finding),
            "counted as a fix".to_owned(),
        ),
        Decision::CycleBoundary(boundary) => text(
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
        Decision::RunComplete(complete) => text(
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
        Decision::LoopTurn(turn) => {
            let who = turn.by.map_or(PROGRAM, Speaker::name).to_lowercase();
            let said = std::iter::once(turn.summary.clone()).chain(turn.why.iter().cloned());
            let said: Vec<String> = said.filter(|text| !text.is_empty()).collect();
            let heard = turn.heard.map_or("not heard".to_owned(), |heard| heard.name().replace('_', " "));
            text(turn_rule(turn.heard), &who, said.join("; "), format!("{heard}: {}", turn.to.name()))
        }
        Decision::LoopAlert(alert) => {
            text("PJ-60", PROGRAM, alert.detail.clone(), format!("alert: {}", alert.alert.name()))
        }
        Decision::ShadowDetected(_)
        | Decision::BudgetStep(_)
        | Decision::PolicyCheckpoint(_)
        | Decision::WiggumBreak(_) => match view::why_of(decision) {
            Some(why) => text(&why.rule, &why.who, why.input, why.decision),
            None => text("", PROGRAM, String::new(), decision.name().to_owned()),
        },
    }
}

/// The transition behind a turn of a loop.
fn turn_rule(heard: Option<TurnEvent>) -> &'static str {
    match heard {
        None | Some(TurnEvent::Unclear) => "PJ-22",
        Some(TurnEvent::Goal) => "PJ-01",
        Some(TurnEvent::Questions | TurnEvent::Answer | TurnEvent::NeedsPerson) => "PJ-02",
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

/// The order in words.
pub fn ordered(order: &Order) -> String {
    match order {
        Order::AgentStart(start) => format!(
            "send the {} ({}, cycle {}, attempt {})",
            start.archetype,
            start.purpose.name(),
            start.cycle,
            start.attempt
        ),
        Order::MergeStart(_) => "build the merge".to_owned(),
        Order::PreflightStart(_) => "try the setup and test commands on the base commit".to_owned(),
        Order::TestsStart(start) if start.post_merge => format!("test after landing: {}", start.command),
        Order::TestsStart(start) => format!("test exactly that tree: {}", start.command),
        Order::HookStart(start) => format!("run the {} hook", start.point.name()),
        Order::MergeIntent(intent) => format!("land on {}", branch(&intent.target)),
        Order::RevertStart(start) => format!("build the revert on {}", branch(&start.target)),
        Order::RevertIntent(intent) => format!("take the merge on {} back", branch(&intent.target)),
        Order::QuestionAsked(asked) => {
            let about = match asked.kind {
                QuestionKind::NeedsContext => "what an agent needs to know",
                QuestionKind::LowConfidence => "whether the task is understood",
                QuestionKind::Merge => "whether to land it",
                QuestionKind::DryRun => "whether to continue after the plan",
                QuestionKind::RedBase => "whether to start although tests fail",
                QuestionKind::Shadow => "what becomes of a shadow",
                QuestionKind::Rejection => "what becomes of a rejection without evidence",
                QuestionKind::GoalQuestions => "what the loop needs to know",
                QuestionKind::PlanApproval => "whether to act on the plan",
                QuestionKind::StepApproval => "whether to land what passed",
                QuestionKind::LoopPaused => "whether to start the loop again",
                QuestionKind::LoopEdited => "what became of the cycle file",
            };
            format!("ask a person {about}")
        }
        Order::EvidenceStart(_) | Order::LoopAppend(_) | Order::BatteryStart(_) | Order::LoopArchive(_) => {
            order.name().to_owned()
        }
    }
}

fn branch(target: &str) -> &str {
    branch_name(target)
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
    let text: Vec<String> = [Severity::Critical, Severity::Warning, Severity::Info]
        .into_iter()
        .map(|severity| (of(severity), severity.name()))
        .filter(|(number, _)| *number > 0)
        .map(|(number, name)| format!("{number} {name}"))
        .collect();
    if text.is_empty() { "no findings".to_owned() } else { text.join(", ") }
}

fn place(file: &str, line: u32) -> String {
    match (file, line) {
        ("", _) => "no place".to_owned(),
        (file, 0) => file.to_owned(),
        (file, line) => format!("{file}:{line}"),
    }
}
