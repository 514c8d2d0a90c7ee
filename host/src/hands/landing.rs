//! Builds merge candidates, moves the target branch, takes a landing back.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use archeflow_core::event::{
    Built, Event, MergeBuilt, MergeIntent, MergeRefused, MergeStart, Refusal, RevertIntent, RevertRefused,
    RunMerged, RunReverted,
};
use archeflow_core::words::{Change, MergeStrategy, Seq};

use crate::failpoint;
use crate::git::Oid;
use crate::git::change::{changed, quote_path};
use crate::git::land::{self, Landed, Move, Recovered, Strategy, Work};
use crate::store::lock::{self, Lock};
use crate::world::World;

/// How long another landing on the same target is waited for.
const WAIT: Duration = Duration::from_secs(120);

/// D-03: a merge commit off to the side, on the target as it is now.
pub(super) fn build(world: &World, seq: Seq, start: &MergeStart) -> MergeBuilt {
    let built = try_build(world, start).unwrap_or_else(|what| Built::Fault { what });
    MergeBuilt { start_seq: seq, built }
}

fn try_build(world: &World, start: &MergeStart) -> Result<Built, String> {
    let (work, base) = (oid(&start.work)?, oid(&start.base)?);
    let Some(target) = world.repo.resolve(&start.target).map_err(text)? else {
        return Ok(Built::BaseGone { now: "deleted".to_owned() });
    };
    let message = format!("archeflow: merge run {}\n", world.run_id);
    let keep = world.keep_ref(&format!("merge-{}", start.attempt));
    let request = Work {
        target: &target,
        work: &work,
        base: &base,
        message: &message,
        identity: world.repo.identity(),
        keep: &keep,
    };
    let strategy = match start.strategy {
        MergeStrategy::NoFf => Strategy::NoFf,
        MergeStrategy::Squash => Strategy::Squash,
        MergeStrategy::Rebase => Strategy::Rebase,
    };
    let built = land::build(&world.repo, strategy, &request).map_err(text)?;
    failpoint::pass("merge.built");
    Ok(match built {
        land::Built::Commit { oid, tree } => {
            Built::Candidate { old: target.to_string(), commit: oid.to_string(), tree: tree.to_string() }
        }
        land::Built::Conflict { paths } => {
            Built::Conflict { paths: paths.iter().map(|path| quote_path(path)).collect() }
        }
        land::Built::Nothing => Built::Nothing,
        land::Built::BaseGone => Built::BaseGone { now: target.to_string() },
    })
}

/// Moves the branch from exactly the recorded old commit to exactly the tested one, under the repository's lock.
/// What a crash left half done is completed first (P9).
pub(super) fn land(
    world: &World,
    seq: Seq,
    intent: &MergeIntent,
    work: Option<&Change>,
    since: Option<SystemTime>,
) -> Event {
    let refused = |why, detail: String| Event::from(MergeRefused { start_seq: seq, why, detail });
    let step = match step(&intent.target, &intent.old, &intent.new) {
        Ok(step) => step,
        Err(what) => return refused(Refusal::Fault, what),
    };
    let _lock = match lock(world, &intent.target) {
        Ok(lock) => lock,
        Err(what) => return refused(Refusal::Busy, what),
    };
    let moved = match carry_out(world, &step, since) {
        Ok(moved) => moved,
        Err((why, detail)) => return refused(why, detail),
    };
    if let Err(what) = verify(world, &step, intent, work) {
        return refused(Refusal::Fault, format!("the landed branch is not what was tested: {what}"));
    }
    RunMerged {
        start_seq: seq,
        base: intent.target.clone(),
        strategy: intent.strategy,
        old: intent.old.clone(),
        commit: intent.new.clone(),
        tree: intent.tree.clone(),
        moved,
    }
    .into()
}

fn carry_out(world: &World, step: &Move, since: Option<SystemTime>) -> Result<u32, (Refusal, String)> {
    let fault = |error: land::Error| (Refusal::Fault, error.to_string());
    // Only what an earlier session began can have been left half done; any lock beside that is somebody else's.
    if let Some(since) = since {
        match land::recover(&world.repo, step, since).map_err(fault)? {
            Recovered::AlreadyDone | Recovered::Completed => return Ok(0),
            Recovered::NotStarted => {}
            Recovered::Stopped { path, why } if path.ends_with(b".lock") => {
                return Err((Refusal::Busy, format!("{}: {why}", quote_path(&path))));
            }
            Recovered::Stopped { path, why } => {
                return Err((Refusal::Dirty, format!("{} was changed since: {why}", quote_path(&path))));
            }
            // It had landed before a crash, and somebody has gone on from there.
            Recovered::BranchMoved { now: Some(now) } if contains(world, &now, &step.new) => return Ok(0),
            Recovered::BranchMoved { now } => return Err((Refusal::Moved, moved_to(step, now.as_ref()))),
        }
    }
    match land::land(&world.repo, step).map_err(fault)? {
        Landed::Moved { trees } => Ok(u32::try_from(trees.len()).unwrap_or(u32::MAX)),
        Landed::BranchMoved { now } => Err((Refusal::Moved, moved_to(step, now.as_ref()))),
        Landed::Dirty { paths } => {
            let paths: Vec<String> = paths.iter().take(5).map(|path| quote_path(path)).collect();
            let detail = format!(
                "your checkout has changes on paths this merge touches ({}); commit or move them, then land",
                paths.join(", ")
            );
            Err((Refusal::Dirty, detail))
        }
        Landed::Busy { what } => Err((Refusal::Busy, what)),
    }
}

fn contains(world: &World, tip: &Oid, commit: &Oid) -> bool {
    world.repo.is_ancestor(commit, tip).unwrap_or(false)
}

fn moved_to(step: &Move, now: Option<&Oid>) -> String {
    match now {
        Some(now) => format!("{} moved to {now} meanwhile", step.branch),
        None => format!("{} is gone", step.branch),
    }
}

/// I8: tested equals landed, nothing lost, nothing touched that the work does not touch.
fn verify(world: &World, step: &Move, intent: &MergeIntent, work: Option<&Change>) -> Result<(), String> {
    let tested = oid(&intent.tree)?;
    let allowed = match work {
        Some(work) => {
            let (Some(base), tip) = (merge_base(world, step, work)?, oid(&work.commit)?) else {
                return Err("no common base".to_owned());
            };
            let paths = changed(&world.repo, &base, &tip).map_err(text)?;
            Some(paths.into_iter().map(|path| path.path).collect::<BTreeSet<_>>())
        }
        None => None,
    };
    land::verify(&world.repo, step, &tested, allowed.as_ref()).map_err(text)
}

fn merge_base(world: &World, step: &Move, work: &Change) -> Result<Option<Oid>, String> {
    crate::git::change::merge_base(&world.repo, &step.old, &oid(&work.commit)?).map_err(text)
}

/// M-F3, M-F4: a new commit that undoes the landing, if nothing was built on it that stands in the way.
pub(super) fn revert(world: &World, seq: Seq, intent: &RevertIntent, since: Option<SystemTime>) -> Event {
    match try_revert(world, intent, since) {
        Ok(commit) => RunReverted { start_seq: seq, commit }.into(),
        Err(detail) => RevertRefused { start_seq: seq, detail }.into(),
    }
}

fn try_revert(world: &World, intent: &RevertIntent, since: Option<SystemTime>) -> Result<String, String> {
    let _lock = lock(world, &intent.target)?;
    let keep = world.keep_ref("revert");
    let (landed, old) = (oid(&intent.landed)?, oid(&intent.old)?);
    let Some(tip) = world.repo.resolve(&intent.target).map_err(text)? else {
        return Err(format!("{} is gone", intent.target));
    };
    // Built before a crash: then the tip is still the landing, or the revert and whatever came after.
    if let Some(reverted) = world.repo.resolve(&keep).map_err(text)?
        && contains(world, &tip, &reverted)
    {
        return Ok(reverted.to_string());
    }
    let message = format!("archeflow: revert run {}\n\nThe tests failed after landing.\n", world.run_id);
    let identity = world.repo.identity();
    let built = land::revert(&world.repo, &tip, &landed, &old, &message, identity, &keep).map_err(text)?;
    failpoint::pass("revert.built");
    let land::Built::Commit { oid: new, .. } = built else {
        return Err("later commits stand in the way of a clean revert".to_owned());
    };
    let step = Move { branch: intent.target.clone(), old: tip, new: new.clone() };
    carry_out(world, &step, since).map(|_| new.to_string()).map_err(|(_, detail)| detail)
}

fn lock(world: &World, target: &str) -> Result<Lock, String> {
    let name = lock::name_for(world.repo.common_dir(), target);
    let folder = world.state.join("locks");
    std::fs::create_dir_all(&folder).map_err(text)?;
    Lock::take(&folder, &name, WAIT).map_err(text)
}

fn step(branch: &str, old: &str, new: &str) -> Result<Move, String> {
    Ok(Move { branch: branch.to_owned(), old: oid(old)?, new: oid(new)? })
}

fn oid(name: &str) -> Result<Oid, String> {
    Oid::parse(name.as_bytes()).map_err(text)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
