//! A log reduced to what was decided, so that two lives of the same world can be compared (I6, D-13).
//!
//! Within a stretch between two marks (a boundary, a person's act, an end) the order of decisions about different
//! agents is the order they came back in, and is not compared.

use archeflow_core::event::{Decision, Entry, Event, FindingLine, Order, Report};

pub(crate) fn decisions(log: &[Entry]) -> Vec<String> {
    let mut decisions = Vec::new();
    let mut stretch: Vec<String> = Vec::new();
    for entry in log {
        let Some((line, mark)) = decision(&entry.event) else { continue };
        stretch.push(line);
        if mark {
            let last = stretch.pop();
            stretch.sort();
            decisions.append(&mut stretch);
            decisions.extend(last);
        }
    }
    stretch.sort();
    decisions.append(&mut stretch);
    decisions
}

/// The first place where two lives part.
pub(crate) fn difference(one: &[String], other: &[String]) -> Option<String> {
    if one == other {
        return None;
    }
    let at = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let show = |list: &[String]| list.get(at).cloned().unwrap_or_else(|| "nothing more".to_owned());
    Some(format!("decision {at}:\n  {}\n  {}", show(one), show(other)))
}

fn decision(event: &Event) -> Option<(String, bool)> {
    let line = match event {
        Event::Decision(Decision::ReviewVerdict(body)) => {
            format!("verdict {} {:?} {}", body.archetype, body.verdict, sorted(&body.findings))
        }
        Event::Decision(Decision::EvidenceDowngrade(body)) => format!(
            "downgrade {} {:?} {:?} {}:{} {} {}",
            body.archetype, body.from, body.reason, body.file, body.line, body.category, body.description
        ),
        Event::Decision(Decision::FindingRaised(body)) => {
            format!("raised {:?} {:?}", body.sign, body.finding)
        }
        Event::Decision(Decision::WorkflowEscalated(body)) => format!("{body:?}"),
        Event::Decision(Decision::AgentSkipped(body)) => format!("{body:?}"),
        Event::Decision(Decision::FixApplied(body)) => format!("{body:?}"),
        Event::Order(Order::MergeIntent(body)) => format!("{body:?}"),
        Event::Decision(Decision::LoopTurn(body)) => format!(
            "turn {:?} {:?} {:?} to {:?} {} {:?} {:?} {}",
            body.by, body.heard, body.from, body.to, body.insufficient, body.risk, body.why, body.summary
        ),
        Event::Decision(Decision::LoopAlert(body)) => format!("{body:?}"),
        Event::Order(Order::LoopAppend(body)) => format!("{body:?}"),
        Event::Order(Order::LoopArchive(body)) => format!("{body:?}"),
        Event::Order(Order::BatteryStart(body)) => format!("{body:?}"),
        Event::Order(Order::RevertStart(body)) => format!("{body:?}"),
        Event::Order(Order::RevertIntent(body)) => format!("{body:?}"),
        Event::Order(Order::QuestionAsked(body)) => {
            let mut details = body.details.clone();
            details.sort();
            format!("{:?} {} {details:?}", body.kind, body.question)
        }
        Event::Decision(Decision::WiggumBreak(body)) => {
            format!("break {:?} {:?} {}", body.trigger, body.hardness, sorted(&body.unresolved_findings))
        }
        Event::Decision(Decision::ShadowDetected(body)) => format!(
            "shadow {} {} {:?} {} {} {} of {}: {}",
            body.archetype,
            body.shadow,
            body.action,
            body.target,
            body.cycle,
            body.count_in_cycle,
            body.count,
            body.detail
        ),
        Event::Decision(Decision::PolicyCheckpoint(body)) => format!("{body:?}"),
        Event::Decision(Decision::CycleBoundary(body)) => return Some((format!("{body:?}"), true)),
        Event::Decision(Decision::RunComplete(body)) => {
            return Some((
                format!(
                    "complete {:?} {:?} {} {} cycles {} fixes {} {:?} {} {}",
                    body.status,
                    body.reason,
                    body.detail,
                    body.exit_code,
                    body.cycles,
                    body.fixes_total,
                    body.merged_oid,
                    body.question.is_some(),
                    sorted(&body.unresolved)
                ),
                true,
            ));
        }
        Event::Report(Report::RunContinued(_) | Report::MergeRequested(_) | Report::RevertRequested(_))
        | Event::Report(Report::RunDiscarded(_) | Report::RunReentered(_) | Report::RunRolledBack(_)) => {
            return Some((event.name().to_owned(), true));
        }
        _ => return None,
    };
    Some((line, false))
}

fn sorted(findings: &[FindingLine]) -> String {
    let mut lines: Vec<String> = findings.iter().map(|finding| format!("{finding:?}")).collect();
    lines.sort();
    lines.join(", ")
}
