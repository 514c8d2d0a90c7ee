//! Plan: Explorer, Creator, then the confidence gate (A3).

use crate::event::{Conclusion, QuestionAsked, QuestionKind, Share, WorkflowEscalated};
use crate::model::{
    Confidence, Millionths, Outcome, PROGRAM, Participant, Phase, Purpose, Reason, Role, RunStatus, Workflow,
    counted,
};
use crate::rules::{estimate, gates, memory, prices};
use crate::run::{Cycle, Run};

use super::{asks, enter, finish, onward, point, send, skip, sure_point};

/// Before the first cycle: why this strategy and this workflow.
pub(crate) fn begin(run: &Run) -> Vec<Conclusion> {
    let Some(request) = &run.request else { return vec![] };
    let against = match request.chosen.against.as_slice() {
        [] => String::new(),
        against => format!("; against it: {}", against.join(", ")),
    };
    let strategy = point(
        PROGRAM,
        "AF-020",
        format!("{}{against}", request.chosen.strategy_by),
        format!("strategy {}", request.strategy.name()),
    );
    let workflow = point(
        PROGRAM,
        "AF-022",
        request.chosen.workflow_by.clone(),
        format!("workflow {}, at most {}", request.workflow.name(), counted(request.max_cycles, "cycle")),
    );
    let mut events = vec![strategy, workflow];
    if !request.chosen.domain_by.is_empty() {
        let domain = format!("domain {}", request.domain.name());
        events.push(point(PROGRAM, "AF-004", request.chosen.domain_by.clone(), domain));
    }
    let lessons = memory::decision_points(&request.past, &request.team, &request.config.boundaries);
    events.extend(lessons.into_iter().map(|(rule, input, decision)| point(PROGRAM, rule, input, decision)));
    events.push(enter(run, "start", 1, Phase::Plan));
    events
}

pub(crate) fn plan(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let seats = run.seats();
    let waiting = seats
        .iter()
        .filter(|seat| matches!(seat.role, Role::Explorer | Role::Creator))
        .find(|seat| !cycle.settled(&seat.archetype));
    if let Some(seat) = waiting {
        if seat.role == Role::Explorer && run.corrections.research_over {
            return vec![skip(&seat.archetype, "no more research: ship with known gaps (AF-144)", false)];
        }
        return vec![send(run, cycle, seat, Purpose::Work, String::new())];
    }
    let Some(proposal) = cycle.proposal() else {
        if !run.is_planned() {
            return unplanned(run, cycle);
        }
        let detail = "the Creator gave no proposal".to_owned();
        return finish(run, RunStatus::Failed, Reason::AgentFailures, detail);
    };
    let table = proposal.confidence;
    let gate = gates::confidence(table, run.current_workflow(), run.policy().confidence_floor.0);
    if !cycle.gate_noted {
        return vec![note(run, cycle, table, gate)];
    }
    if gate.upgrade && !cycle.upgraded && run.rules().upgrades() {
        let to = Workflow::Standard;
        let max_cycles = run.policy().cycles(to);
        return vec![
            WorkflowEscalated { from: Workflow::Fast, to, max_cycles, rule: "A3".to_owned() }.into(),
        ];
    }
    if gate.ask && !run.waved_through {
        return ask(run, table);
    }
    if gate.research
        && !run.corrections.research_over
        && cycle.mini_explorer.is_none()
        && !cycle.mini_explorer_gone
    {
        return research(run, cycle);
    }
    if run.request.as_ref().is_some_and(|request| request.dry_run) && !run.dry_run_passed {
        return dry_run(run, cycle, Some(table));
    }
    onward(run, cycle, Phase::Do)
}

/// A team without a Creator: the Maker works from the task, and there is no confidence to judge.
fn unplanned(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    if run.request.as_ref().is_some_and(|request| request.dry_run) && !run.dry_run_passed {
        return dry_run(run, cycle, None);
    }
    onward(run, cycle, Phase::Do)
}

fn note(run: &Run, cycle: &Cycle, table: Confidence, gate: gates::ConfidenceGate) -> Conclusion {
    let mut outcomes = Vec::new();
    if gate.upgrade && !cycle.upgraded && run.rules().upgrades() {
        outcomes.push("fast becomes standard");
    }
    if gate.ask {
        outcomes.push(if run.waved_through {
            "task understanding low, waved through"
        } else {
            "ask the user"
        });
    }
    if gate.research {
        outcomes.push(if run.corrections.research_over {
            "research is over: on with known gaps"
        } else {
            "send the mini-Explorer"
        });
    }
    if outcomes.is_empty() {
        outcomes.push("on to Do");
    }
    let lowest = [table.task_understanding, table.solution_completeness, table.risk_coverage]
        .map(|score| score.unwrap_or(0))
        .into_iter()
        .min()
        .unwrap_or(0);
    sure_point(&run.sitting(Role::Creator), "A3", scores(table), outcomes.join(", "), Share(lowest))
}

fn ask(run: &Run, table: Confidence) -> Vec<Conclusion> {
    let score = written(table.task_understanding);
    let detail = format!("the Creator's task understanding is {score}, below the floor");
    let unanswered =
        Outcome { status: RunStatus::AwaitingAnswer, reason: Reason::LowConfidence, detail: detail.clone() };
    let question = QuestionAsked {
        kind: QuestionKind::LowConfidence,
        archetype: run.sitting(Role::Creator),
        question: format!(
            "The Creator does not understand the task well enough (task understanding {score}). \
             Say more about what is wanted, or answer 'proceed' to go on with the plan as it is."
        ),
        details: vec![format!("confidence: {}", scores(table))],
        unanswered,
    };
    asks(run, question, RunStatus::Stopped, Reason::LowConfidence)
}

fn research(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let seat = Participant { archetype: run.sitting(Role::Explorer), role: Role::Explorer };
    if cycle.last_failure.contains_key(&seat.archetype) {
        return vec![
            skip("mini-explorer", "the mini-Explorer failed; the run goes on without it", true),
            point(
                &seat.archetype,
                "AF-056",
                "the mini-Explorer failed".to_owned(),
                "on without it".to_owned(),
            ),
        ];
    }
    let note =
        "Risk coverage is low. Research ONLY the risks listed below: is each real, and what mitigates it?";
    vec![send(run, cycle, &seat, Purpose::Research, note.to_owned())]
}

/// AF-185: show the plan, ask, go on at Do.
fn dry_run(run: &Run, cycle: &Cycle, table: Option<Confidence>) -> Vec<Conclusion> {
    if run.questions.get(&QuestionKind::DryRun).copied().unwrap_or(0) > 0 {
        return finish(run, RunStatus::DryRun, Reason::DryRun, "planned only, as asked".to_owned());
    }
    let remaining: Vec<String> = run
        .seats()
        .iter()
        .filter(|seat| !cycle.settled(&seat.archetype))
        .map(|seat| seat.archetype.clone())
        .collect();
    let details = vec![
        format!("strategy {}, workflow {}", run.strategy().name(), run.current_workflow().name()),
        format!("domain {}", in_domain(run)),
        table.map_or_else(
            || "no plan: the team has no Creator".to_owned(),
            |table| format!("confidence: {}", scores(table)),
        ),
        format!("agents still to run per cycle: {} ({})", remaining.len(), remaining.join(", ")),
        format!("cycles at most: {}", run.max_cycles),
        estimated(run),
    ];
    let unanswered = Outcome {
        status: RunStatus::DryRun,
        reason: Reason::DryRun,
        detail: "planned only, as asked; answer yes to go on with Do".to_owned(),
    };
    let question = QuestionAsked {
        kind: QuestionKind::DryRun,
        archetype: String::new(),
        question: match table {
            Some(_) => "This was a dry run: the plan is made, nothing is built. Go on with Do?".to_owned(),
            None => "This was a dry run: nothing is built. Go on with Do?".to_owned(),
        },
        details,
        unanswered,
    };
    vec![question.into()]
}

/// Cycles still to come cost what a whole cycle usually does; what planning has cost is known.
fn estimated(run: &Run) -> String {
    let own = run.request.as_ref().map(|request| &request.tiers).cloned().unwrap_or_default();
    let workflow = run.current_workflow();
    let estimate = estimate::before(run.policy(), &run.seats(), &own, workflow, run.max_cycles);
    format!(
        "estimated cost: {} a cycle, at most {} (prices of {}); planning has cost {}",
        estimate.cycle.shown(),
        estimate.most.shown(),
        prices::built_in().as_of,
        run.spent.shown()
    )
}

fn in_domain(run: &Run) -> String {
    let Some(request) = &run.request else { return String::new() };
    let lenses = match request.lenses.as_slice() {
        [] => String::new(),
        lenses => format!(", seen through {}", lenses.join(", ")),
    };
    let by = match request.chosen.domain_by.as_str() {
        "" => String::new(),
        by => format!(" ({by})"),
    };
    format!("{}{by}{lenses}", request.domain.name())
}

fn scores(table: Confidence) -> String {
    format!(
        "task understanding {}, solution completeness {}, risk coverage {}",
        written(table.task_understanding),
        written(table.solution_completeness),
        written(table.risk_coverage)
    )
}

fn written(score: Option<Millionths>) -> String {
    match score {
        None => "unreadable (0.0)".to_owned(),
        Some(score) => {
            let decimal = format!("{}.{:06}", score / 1_000_000, score % 1_000_000);
            let trimmed = decimal.trim_end_matches('0');
            if trimmed.ends_with('.') { format!("{trimmed}0") } else { trimmed.to_owned() }
        }
    }
}
