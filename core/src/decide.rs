//! What should happen now.
//!
//! Only this function decides, with the [`crate::steps`] that all strategies share and the rules of the strategy at hand
//! ([`crate::strategies`]). It is pure: deciding twice on the same facts gives the same answer twice.

use crate::event::{Conclusion, Decision, DecisionPoint, Entry, Order};
use crate::model::HookPoint;
use crate::run::Run;
use crate::steps::{accounts, budget, hook, judge, land, preflight, settle, undo};

/// What follows from the facts so far, in the order it should be written down.
///
/// Empty: wait for a report. Never contains a report.
pub fn decide(run: &Run) -> Vec<Conclusion> {
    if let (Some(record), Some(_), None) = (&run.unexplained, &run.session, &run.outcome) {
        return vec![record.clone().into()];
    }
    let conclusions = explained(run, budget::admit(run, accounts::admit(run, follows(run))));
    if run.paused.is_some() && !may_be_ordered_while_paused(&conclusions) { vec![] } else { conclusions }
}

/// Each choice that had alternatives is followed by them (CL-31).
fn explained(run: &Run, conclusions: Vec<Conclusion>) -> Vec<Conclusion> {
    let mut explained = Vec::with_capacity(conclusions.len());
    for conclusion in conclusions {
        let point = match &conclusion {
            Conclusion::Decision(decision) => decision.body::<DecisionPoint>(),
            Conclusion::Order(_) => None,
        };
        let record = point.and_then(|point| run.alternatives_of(point));
        explained.push(conclusion);
        explained.extend(record.map(Conclusion::from));
    }
    explained
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
            Order::PreflightStart(_)
            | Order::AgentStart(_)
            | Order::EvidenceStart(_)
            | Order::LoopAppend(_)
            | Order::BatteryStart(_)
            | Order::LoopArchive(_)
            | Order::MergeStart(_)
            | Order::MergeIntent(_)
            | Order::RevertStart(_)
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
    if let Some(undoing) = &run.undo {
        return undo::undo(run, undoing);
    }
    if let Some((seq, question)) = run.question() {
        return if run.attended() { vec![] } else { settle::park(run, seq, question) };
    }
    let Some(cycle) = run.cycle() else { return begin(run) };
    // A run that was entered again may not have got this far before.
    let untried = || preflight::preflight(run).filter(|_| run.open.is_empty() && !land::is_agreed(run));
    if let Some(events) = untried() {
        return events;
    }
    let judged = judge(run, cycle);
    if !judged.is_empty() {
        return judged;
    }
    if let Some(events) = budget::watch(run) {
        return events;
    }
    let mut missing_reviewers = run.missing_reviewers();
    missing_reviewers.retain(|seat| !accounts::must_wait(run, cycle, seat));
    accounts::corrections_wait(run, cycle, &mut missing_reviewers);
    if !missing_reviewers.is_empty() && !land::is_agreed(run) {
        return missing_reviewers.iter().map(|seat| settle::send_again(run, cycle, seat)).collect();
    }
    if !run.open.is_empty() {
        return vec![];
    }
    run.rules().next(run, cycle)
}

/// More conclusions than this from one report mean that a rule triggers itself.
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
            let mut events = events.into_iter().peekable();
            while let Some(event) = events.next() {
                let next = events.peek();
                let is_explained = matches!(next, Some(Conclusion::Decision(Decision::DecisionRecord(_))));
                entries.push(self.write(at, event, is_explained));
            }
            assert!(entries.len() <= CONCLUSIONS_AT_MOST, "a rule feeds itself: {:?}", entries.last());
        }
    }
}

/// Before the first cycle: the hook, the trial of the base commit, then what the strategy begins with.
fn begin(run: &Run) -> Vec<Conclusion> {
    if !run.open.is_empty() {
        return vec![];
    }
    hook(run, HookPoint::RunStart)
        .or_else(|| preflight::preflight(run))
        .unwrap_or_else(|| run.rules().begin(run))
}
