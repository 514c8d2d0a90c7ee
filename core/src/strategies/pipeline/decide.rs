//! The phases are the shared steps; reviewers come one by one, and CRITICAL findings lead to one targeted fix.

use crate::event::{Conclusion, Tracked};
use crate::model::{
    ExitWhen, PROGRAM, Participant, Phase, Purpose, Role, Severity, Strategy, Workflow, only_on_findings,
    pipeline_team,
};
use crate::projections::view::capital;
use crate::run::{Cycle, Run};
use crate::steps::{self, act, check, enter, plan, point, send, skip};
use crate::strategies::StrategyRules;

use super::Pipeline;

impl StrategyRules for Pipeline {
    fn seats_key(&self, _: Workflow) -> &'static str {
        Strategy::Pipeline.name()
    }

    fn team(&self, _: Workflow) -> Vec<Participant> {
        pipeline_team()
    }

    fn begin(&self, run: &Run) -> Vec<Conclusion> {
        plan::begin(run)
    }

    fn next(&self, run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
        steps::phase(run, cycle)
    }

    fn reviews_in_parallel(&self) -> bool {
        false
    }

    fn reviewers(
        &self,
        run: &Run,
        cycle: &Cycle,
        gatekeeper: &str,
        waiting: &[&Participant],
    ) -> Vec<Conclusion> {
        one_by_one(run, cycle, gatekeeper, waiting)
    }

    /// Warnings pass (AF-191).
    fn exit_of_strategy(&self) -> Option<ExitWhen> {
        Some(ExitWhen::NoCritical)
    }

    fn is_last_cycle(&self, _: &Run, _: &Cycle) -> bool {
        true
    }

    fn before_conclusion(
        &self,
        run: &Run,
        cycle: &Cycle,
        approved: bool,
        open: &[Tracked],
    ) -> Option<Vec<Conclusion>> {
        targeted_fix(run, cycle, approved, open)
    }

    fn unsent(&self, run: &Run, cycle: &Cycle) -> Option<Conclusion> {
        if cycle.reviewers().is_empty() {
            return None;
        }
        let (approved, open) = act::standing_now(run, cycle);
        targeted_fix(run, cycle, approved, &open)?.pop()
    }
}

/// AF-190: some reviewers only when the gatekeeper has findings, the others in any case.
fn one_by_one(run: &Run, cycle: &Cycle, gatekeeper: &str, waiting: &[&Participant]) -> Vec<Conclusion> {
    let clean =
        cycle.review(gatekeeper).is_some_and(|review| review.findings.is_empty()) && cycle.raised.is_empty();
    let Some(seat) = waiting.first() else { return vec![] };
    let name = &seat.archetype;
    if only_on_findings(name) && clean && check::looks_again(cycle, name) {
        return vec![check::send_to_own_findings(run, cycle, seat)];
    }
    if only_on_findings(name) && clean {
        return vec![
            point(
                gatekeeper,
                "AF-190",
                "the Guardian has no findings".to_owned(),
                format!("no {}", capital(name)),
            ),
            skip(name, "the Guardian has no findings (AF-190)", false),
        ];
    }
    vec![send(run, cycle, seat, Purpose::Work, String::new())]
}

/// AF-191: exactly one targeted fix, then everything is reviewed and tested again.
fn targeted_fix(run: &Run, cycle: &Cycle, approved: bool, open: &[Tracked]) -> Option<Vec<Conclusion>> {
    if approved || cycle.fix_asked {
        return None;
    }
    let maker = run.seat(Role::Maker)?;
    let is_upheld = |found: &Tracked| found.source.iter().any(|name| cycle.upheld.contains(name));
    let critical = open.iter().filter(|found| found.severity == Severity::Critical).count();
    let listed: Vec<String> = open
        .iter()
        .filter(|found| found.severity == Severity::Critical || is_upheld(found))
        .map(|found| format!("- {}: {} Fix: {}", found.id, found.description, found.fix))
        .collect();
    let note = format!("Fix these critical findings and nothing else:\n{}", listed.join("\n"));
    Some(vec![
        point(PROGRAM, "AF-191", format!("{critical} CRITICAL"), "one targeted fix".to_owned()),
        enter(run, "act", cycle.number, Phase::Do),
        send(run, cycle, &maker, Purpose::Fix, note),
    ])
}
