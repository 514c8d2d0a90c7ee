//! Runs that land in one step: what the one that carries it needs to know of the others, and they of it. It is read from
//! their logs; nothing is claimed and nothing written.

use archeflow_core::event::{Companion, Together};
use archeflow_core::model::{HookPoint, Policy, Reason, RunStatus};
use archeflow_core::projections::commit_message;
use archeflow_core::run::Run;

use crate::log;
use crate::store::journal::{self, Journal};
use crate::store::own_runs::OwnRun;
use crate::store::{names, places::Places};
use crate::world::World;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("'{id}' can't be the name of a run")]
    BadId { id: String },
    #[error("{id} does not wait to be landed")]
    NotWaiting { id: String },
    #[error("{id} can't land together with others: {why}")]
    Unlike { id: String, why: &'static str },
    #[error("the run '{id}' is foreign: its journal was not written by you on this machine")]
    Foreign { id: String },
    #[error("{id} did not land with {lead}")]
    NotLanded { id: String, lead: String },
    #[error(transparent)]
    Log(#[from] log::Error),
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

/// What lands with a run is judged by its journal alone, so that has to be this machine's own (S-01).
pub fn check_own<'a>(world: &World, ids: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
    for id in ids {
        if !names::valid_name(id) {
            return Err(Error::BadId { id: id.to_owned() });
        }
        let text = Journal::read(&world.places.events().join(format!("{id}.jsonl")))?;
        if !(OwnRun { run_id: id, ..world.own_run() }).wrote(&text).map_err(journal::Error::from)? {
            return Err(Error::Foreign { id: id.to_owned() });
        }
    }
    Ok(())
}

/// The runs that may land before `lead`, in the same step.
pub fn companions(places: &Places, lead: &Run, ids: &[String]) -> Result<Vec<Companion>, Error> {
    ids.iter().map(|id| companion(places, lead, id)).collect()
}

fn companion(places: &Places, lead: &Run, id: &str) -> Result<Companion, Error> {
    let run = read(places, id)?;
    let waits = run.outcome.as_ref().is_some_and(|outcome| {
        (outcome.status, outcome.reason) == (RunStatus::AwaitingMerge, Reason::Approved)
    });
    let (Some(work), Some(request)) = (run.work.as_ref().filter(|_| waits), &run.request) else {
        return Err(Error::NotWaiting { id: id.to_owned() });
    };
    let target = |run: &Run| run.request.as_ref().map(|request| request.base.target.clone());
    let unlike = match () {
        () if target(&run) != target(lead) => Some("it has another target"),
        () if run.policy().test_command != lead.policy().test_command => Some("it is tested otherwise"),
        () if run.policy().test_command.is_none() => Some("it is not tested"),
        () if is_watched(run.policy()) || is_watched(lead.policy()) => {
            Some("a hook before each landing or tests after it are configured")
        }
        () => None,
    };
    match unlike {
        Some(why) => Err(Error::Unlike { id: id.to_owned(), why }),
        None => Ok(Companion {
            run_id: id.to_owned(),
            work: work.commit.clone(),
            base: request.base.commit.clone(),
            strategy: run.policy().git.merge_strategy,
            message: commit_message::landing(&run, id),
        }),
    }
}

/// Somebody wants to see each landing by itself.
fn is_watched(policy: &Policy) -> bool {
    policy.git.post_merge_test || policy.hooks.iter().any(|hook| hook.point == HookPoint::PreMerge)
}

/// Where the landing of `lead` has brought `run`, by the log of `lead`. Whether it is there is checked by the code that
/// writes it down.
pub fn together(places: &Places, run: &Run, id: &str, lead: &str) -> Result<Together, Error> {
    let other = read(places, lead)?;
    let work = run.work.as_ref().map(|work| work.commit.as_str());
    let link = other.landing.chain.iter().find(|link| link.run_id == id && Some(link.work.as_str()) == work);
    let merged = other.landing.merged.as_ref().filter(|_| other.landing.reverted.is_none());
    match (link, merged) {
        (Some(link), Some(merged)) => Ok(Together {
            run_id: lead.to_owned(),
            old: link.old.clone(),
            commit: link.commit.clone(),
            tree: link.tree.clone(),
            tip: merged.commit.clone(),
        }),
        _ => Err(Error::NotLanded { id: id.to_owned(), lead: lead.to_owned() }),
    }
}

fn read(places: &Places, id: &str) -> Result<Run, Error> {
    if !names::valid_name(id) {
        return Err(Error::BadId { id: id.to_owned() });
    }
    Ok(log::fold(&Journal::read(&places.events().join(format!("{id}.jsonl")))?)?)
}
