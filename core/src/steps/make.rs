//! Do: the Maker alone in its own working copy, then the test-first gate.

use crate::event::Conclusion;
use crate::model::{Domain, Phase, Purpose, Reason, Role, RunStatus};
use crate::rules::gates::{self, TestFirst};
use crate::run::{Cycle, Run};

use super::{finish, onward, point, send, system};

pub(crate) fn make(run: &Run, cycle: &Cycle) -> Vec<Conclusion> {
    let seats = run.seats();
    let Some(maker) = seats.iter().find(|seat| seat.role == Role::Maker) else {
        return finish(run, RunStatus::Failed, Reason::AgentFailures, "the team has no Maker".to_owned());
    };
    if !cycle.settled(&maker.archetype) {
        return vec![send(run, cycle, maker, Purpose::Work, String::new())];
    }
    if let Some((purpose, note)) = &cycle.errand {
        return vec![send(run, cycle, maker, *purpose, note.clone())];
    }
    if let Some(unsent) = run.rules().unsent(run, cycle) {
        return vec![unsent];
    }
    let Some(change) = &run.work else {
        return finish(run, RunStatus::Stopped, Reason::NoChange, "the Maker changed nothing".to_owned());
    };
    let domain = run.request.as_ref().map_or(Domain::Code, |request| request.domain);
    match gates::test_first(change, cycle.proposal(), domain, run.policy().prose_passes) {
        TestFirst::SendBack if !cycle.tests_asked => {
            let note = "No test file is among the changes, though the proposal has a test strategy. \
                        Write those tests now, on top of what you have done. Change nothing else."
                .to_owned();
            vec![
                point(
                    &maker.archetype,
                    "AF-063",
                    "no test file in the change".to_owned(),
                    "back for tests, once".to_owned(),
                ),
                send(run, cycle, maker, Purpose::Tests, note),
            ]
        }
        TestFirst::Warn if !cycle.tests_warned => {
            let input = match run.is_planned() {
                true => "no test file in the change and no test strategy in the proposal",
                false => "no test file in the change and no proposal with a test strategy",
            };
            let decision = "WARNING noted, the run goes on".to_owned();
            vec![point(&maker.archetype, "AF-063", input.to_owned(), decision)]
        }
        TestFirst::SendBack | TestFirst::Warn | TestFirst::Passes => {
            system::after_do(run, cycle).unwrap_or_else(|| onward(run, cycle, Phase::Check))
        }
    }
}
