//! What should happen now.
//!
//! Only this function decides, with the [`crate::steps`] that all strategies share and the rules of the strategy at hand
//! ([`crate::strategies`]). It is pure: deciding twice on the same facts gives the same answer twice.

use crate::event::{Conclusion, Entry, Order};
use crate::model::{HookPoint, PROGRAM, Phase, Strategy, counted};
use crate::rules::memory;
use crate::run::Run;
use crate::steps::{
    accounts, act, boundary, budget, check, enter, hook, judge, land, make, plan, point, settle, shadows,
};
use crate::strategies::agent_loop::decide as agent_loop;
use crate::strategies::review::decide as review;

/// What follows from the facts so far, in the order it should be written down.
///
/// An empty answer means: wait for the world. Never contains a report.
pub fn decide(run: &Run) -> Vec<Conclusion> {
    let conclusions = budget::admit(run, accounts::admit(run, follows(run)));
    if run.paused.is_some() && !may_be_ordered_while_paused(&conclusions) { vec![] } else { conclusions }
}

/// A paused run still draws conclusions, such as a verdict or a break, but orders nothing, with two exceptions:
///
/// - the rest of a landing whose target branch has already moved: its tests, and the revert if they fail. Until then
///   the branch holds a merge that nobody has tested.
/// - the hook of a run that ends: a run whose person has left does not wait for one to end its pause.
///
/// A batch with an order in it waits as a whole: the same one follows once the run is resumed.
fn may_be_ordered_while_paused(conclusions: &[Conclusion]) -> bool {
    conclusions.iter().all(|conclusion| match conclusion {
        Conclusion::Decision(_) => true,
        Conclusion::Order(Order::TestsStart(tests)) => tests.post_merge,
        Conclusion::Order(Order::HookStart(hook)) => hook.point == HookPoint::RunComplete,
        Conclusion::Order(Order::RevertIntent(_)) => true,
        Conclusion::Order(
            Order::AgentStart(_)
            | Order::EvidenceStart(_)
            | Order::LoopAppend(_)
            | Order::BatteryStart(_)
            | Order::LoopArchive(_)
            | Order::MergeStart(_)
            | Order::MergeIntent(_)
            | Order::QuestionAsked(_),
        ) => false,
    })
}

fn follows(run: &Run) -> Vec<Conclusion> {
    let (Some(_), Some(_), None) = (&run.request, &run.session, &run.outcome) else { return vec![] };
    if run.open.values().any(|order| matches!(order, Order::HookStart(_))) {
        return vec![];
    }
    if run.discarded {
        return settle::discard(run);
    }
    if run.cycles.is_empty() {
        return begin(run);
    }
    let Some(cycle) = run.cycle() else { return vec![] };
    if let Some((seq, question)) = run.question() {
        return if run.attended() { vec![] } else { settle::park(run, seq, question) };
    }
    let judged = judge(run, cycle);
    if !judged.is_empty() {
        return judged;
    }
    if let Some(events) = budget::watch(run) {
        return events;
    }
    // Nothing of a review ever lands (AF-003).
    let landing = run.landing.agreed && run.work.is_some() && run.review.is_none();
    let mut stragglers = run.stragglers();
    stragglers.retain(|seat| !accounts::must_wait(run, cycle, seat));
    accounts::corrections_wait(run, cycle, &mut stragglers);
    if !stragglers.is_empty() && !landing {
        return stragglers.iter().map(|seat| settle::send_again(run, cycle, seat)).collect();
    }
    if !run.open.is_empty() {
        return vec![];
    }
    if let Some(agent_loop) = &run.agent_loop {
        return agent_loop::next(run, cycle, agent_loop);
    }
    if landing {
        return land::land(run, cycle);
    }
    if let Some(events) = settle::failures(run, cycle) {
        return events;
    }
    if let Some(events) = shadows::consequence(run, cycle) {
        return events;
    }
    if let Some(events) = settle::statuses(run, cycle) {
        return events;
    }
    if let Some(events) = shadows::too_many(run, cycle) {
        return events;
    }
    if let Some(checkpoint) = boundary::checkpoint(run) {
        return vec![checkpoint];
    }
    match (cycle.phase, &run.review) {
        (Phase::Plan | Phase::Do | Phase::Check, Some(_)) => return review::check(run, cycle),
        (Phase::Act, Some(_)) => return review::act(run, cycle),
        (_, None) => {}
    }
    match cycle.phase {
        Phase::Plan => plan::plan(run, cycle),
        Phase::Do => make::make(run, cycle),
        Phase::Check => check::check(run, cycle),
        Phase::Act => act::act(run, cycle),
    }
}

/// More conclusions than this from one report is a rule that feeds itself.
const CONCLUSIONS_AT_MOST: usize = 5_000;

impl Run {
    /// Draws every conclusion that follows from the facts so far.
    ///
    /// The caller writes the entries down first, and only then performs the orders among them.
    pub fn settle(&mut self, at: u64) -> Vec<Entry> {
        let mut entries = Vec::new();
        loop {
            let events = decide(self);
            if events.is_empty() {
                return entries;
            }
            entries.extend(events.into_iter().map(|event| self.write(at, event)));
            assert!(entries.len() <= CONCLUSIONS_AT_MOST, "a rule feeds itself: {:?}", entries.last());
        }
    }
}

/// Before the first cycle: the hook, then why this strategy and this workflow.
fn begin(run: &Run) -> Vec<Conclusion> {
    if !run.open.is_empty() {
        return vec![];
    }
    if let Some(events) = hook(run, HookPoint::RunStart) {
        return events;
    }
    let Some(request) = &run.request else { return vec![] };
    if request.strategy == Strategy::Review {
        return run.review.as_ref().map_or_else(Vec::new, |opened| review::begin(run, opened));
    }
    if request.strategy == Strategy::Loop {
        return run
            .agent_loop
            .as_ref()
            .map_or_else(Vec::new, |agent_loop| agent_loop::begin(run, agent_loop));
    }
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
