//! Landing several runs of a project in one step. The last of them lands all: its landing is what every landing is,
//! with the work of the others below its own, so there is one test, one intent and one move. Then each of the others
//! checks whether the target has its commit, and records it in its own log.

use std::path::Path;
use std::time::Instant;

use archeflow_core::event::Tested;
use archeflow_core::model::{Reason, RunStatus, Seq};
use archeflow_core::run::Run;
use archeflow_core::sprint::event::{BatchLanding, Candidate, ItemEnd, RunEnd};

use super::local_crew::{LocalCrew, Looked, Stretch, end_of, look, unstarted, words};
use crate::co_landing;
use crate::proc::Watch;
use crate::store::places::Places;

impl LocalCrew {
    pub(super) fn land_batch(&self, seq: Seq, project: &str, candidates: &[Candidate]) -> BatchLanding {
        let begun = Instant::now();
        let came = self.carried(seq, &self.runs.projects.join(project), candidates);
        let took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        BatchLanding { took_ms, ..came }
    }

    fn carried(&self, seq: Seq, dir: &Path, candidates: &[Candidate]) -> BatchLanding {
        let Some((lead, others)) = candidates.split_last() else { return BatchLanding::default() };
        let before: Vec<String> = others.iter().map(|one| one.run_id.clone()).collect();
        match look(dir, &lead.run_id) {
            Looked::Over(run) if !has_landed(&run) && !may_carry(dir, &run, &before) => {
                return each_alone(candidates);
            }
            Looked::Nothing => return each_alone(candidates),
            Looked::Over(_) | Looked::Begun => {}
        }
        let end = self.to_its_end(|| self.carry_once(seq, dir, &lead.run_id, &before));
        match look(dir, &lead.run_id) {
            Looked::Over(run) if has_landed(&run) => self.landed(seq, dir, &run, candidates),
            // Stopped before the others were in its log, it waits as before.
            Looked::Over(run) if self.watch.is_stopping() && !was_asked(&run, &before) => {
                BatchLanding { ends: stopped_ends(candidates), ..BatchLanding::default() }
            }
            Looked::Over(run) => refused(&run, candidates, &before),
            Looked::Begun | Looked::Nothing if end.stopped => {
                BatchLanding { ends: stopped_ends(candidates), ..BatchLanding::default() }
            }
            Looked::Begun | Looked::Nothing => {
                BatchLanding { ends: vec![item_end(lead, end)], ..BatchLanding::default() }
            }
        }
    }

    fn carry_once(&self, seq: Seq, dir: &Path, lead: &str, before: &[String]) -> Stretch {
        let args = match look(dir, lead) {
            Looked::Over(run) if has_landed(&run) => return Stretch::last(end_of(lead, &run, 0)),
            // The others are in its log already, and it was killed on the way.
            Looked::Begun => words(["resume", lead, "--unattended", "--json"]),
            Looked::Over(_) | Looked::Nothing => {
                let mut args = words(["merge", lead, "--unattended", "--json"]);
                args.extend(before.iter().flat_map(|id| ["--before".into(), id.into()]));
                args
            }
        };
        self.start(seq, dir, lead, args, None)
    }

    /// The runs that landed along record it themselves. That is quick, and done also while runs are being stopped: what
    /// has landed must not be taken for something that has not.
    fn landed(&self, seq: Seq, dir: &Path, lead: &Run, candidates: &[Candidate]) -> BatchLanding {
        let mut came = BatchLanding::default();
        let Some((carrier, others)) = candidates.split_last() else { return came };
        for one in others {
            let came_along = lead.landing.chain.iter().any(|link| link.run_id == one.run_id);
            if came_along {
                came.ends.push(item_end(one, self.record(seq, dir, &one.run_id, &carrier.run_id)));
            } else {
                came.alone.push(one.item.clone());
            }
        }
        came.ends.push(item_end(carrier, end_of(&carrier.run_id, lead, 0)));
        came
    }

    fn record(&self, seq: Seq, dir: &Path, id: &str, lead: &str) -> RunEnd {
        let watch = Watch::new();
        let end = self.to_its_end(|| {
            let args = match look(dir, id) {
                Looked::Over(run) if has_landed(&run) => return Stretch::last(end_of(id, &run, 0)),
                Looked::Begun => words(["resume", id, "--unattended", "--json"]),
                Looked::Over(_) | Looked::Nothing => {
                    words(["merge", id, "--landed-with", lead, "--unattended", "--json"])
                }
            };
            self.start_under(&watch, seq, dir, id, args, None)
        });
        RunEnd { took_ms: 0, ..end }
    }
}

fn has_landed(run: &Run) -> bool {
    run.complete.as_ref().is_some_and(|complete| complete.merged_oid.is_some())
}

fn was_asked(lead: &Run, before: &[String]) -> bool {
    lead.landing.before.iter().map(|one| &one.run_id).eq(before)
}

fn may_carry(dir: &Path, lead: &Run, before: &[String]) -> bool {
    Places::at(dir).is_ok_and(|places| co_landing::companions(&places, lead, before).is_ok())
}

/// It did not land. Failures of all of them are kept apart from failures of the one that landed them.
fn refused(lead: &Run, candidates: &[Candidate], before: &[String]) -> BatchLanding {
    let landing = &lead.landing;
    if !was_asked(lead, before) {
        return each_alone(candidates);
    }
    let Some((carrier, _)) = candidates.split_last() else { return BatchLanding::default() };
    let items = |wanted: &dyn Fn(&str) -> bool| -> Vec<String> {
        candidates.iter().filter(|one| wanted(&one.run_id)).map(|one| one.item.clone()).collect()
    };
    let in_chain = |id: &str| landing.chain.iter().any(|link| link.run_id == id);
    let mut came = BatchLanding {
        alone: items(&|id| landing.left_out.iter().any(|left| left.run_id == id)),
        ..BatchLanding::default()
    };
    let outcome = lead.outcome.as_ref().map(|outcome| (outcome.status, outcome.reason));
    let is_red = landing
        .tested
        .as_ref()
        .is_some_and(|tests| matches!(tests.result, Tested::Failed | Tested::TimedOut));
    match outcome {
        Some((RunStatus::AwaitingMerge, Reason::Approved)) if is_red => {
            came.red = items(&|id| in_chain(id) || id == carrier.run_id);
        }
        Some((RunStatus::AwaitingMerge, Reason::Approved)) => came.alone.push(carrier.item.clone()),
        Some((_, Reason::DirtyTree | Reason::TargetBusy | Reason::SigningFailed | Reason::BaseMoved)) => {
            return each_alone(candidates);
        }
        Some(_) | None => came.ends.push(item_end(carrier, end_of(&carrier.run_id, lead, 0))),
    }
    came
}

fn each_alone(candidates: &[Candidate]) -> BatchLanding {
    BatchLanding { alone: candidates.iter().map(|one| one.item.clone()).collect(), ..BatchLanding::default() }
}

fn stopped_ends(candidates: &[Candidate]) -> Vec<ItemEnd> {
    let stopped =
        |one: &Candidate| RunEnd { stopped: true, ..unstarted(&one.run_id, "it was stopped".to_owned()) };
    candidates.iter().map(|one| item_end(one, stopped(one))).collect()
}

fn item_end(one: &Candidate, end: RunEnd) -> ItemEnd {
    ItemEnd { item: one.item.clone(), end }
}
