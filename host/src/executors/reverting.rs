//! Takes landings back: at once, because the tests fail after it, or later, because a person asks for it.

use std::collections::BTreeSet;
use std::time::SystemTime;

use archeflow_core::event::{
    Built, Refusal, Report, RevertBuilt, RevertIntent, RevertMove, RevertRefused, RevertStart, RunReverted,
};
use archeflow_core::model::Seq;

use super::build_cache;
use super::landing::{carry_out, contains, identity, lock, oid, quoted, signing, step, target_now, text};
use crate::failpoint;
use crate::git::change::changed;
use crate::git::land::{self, BuildResult, Committer, Move};
use crate::world::World;

/// The commit that takes a landing back, on the target as it is now. Nothing is moved.
pub(super) fn build(world: &World, seq: Seq, start: &RevertStart, message: &str) -> RevertBuilt {
    let built = try_build(world, start, message).unwrap_or_else(|what| Built::Fault { what });
    failpoint::pass("revert.built");
    RevertBuilt { start_seq: seq, built }
}

fn try_build(world: &World, start: &RevertStart, message: &str) -> Result<Built, String> {
    let (landed, old) = (oid(&start.landed)?, oid(&start.old)?);
    let Some(tip) = target_now(world, &start.target)? else {
        return Ok(Built::BaseGone { now: "deleted".to_owned() });
    };
    if !contains(world, &tip, &landed) {
        return Ok(Built::BaseGone { now: tip.to_string() });
    }
    let signing = match signing(world)? {
        Ok(signing) => signing,
        Err(what) => return Ok(Built::NotSigned { what }),
    };
    let by = Committer { identity: identity(world)?, signing: signing.as_ref() };
    let keep = world.keep_ref(&format!("revert-{}", start.attempt));
    let built = land::revert(&world.repo, &tip, &landed, &old, message, by, &keep).map_err(text)?;
    Ok(match built {
        BuildResult::Commit { oid, tree } => {
            Built::Candidate { old: tip.to_string(), commit: oid.to_string(), tree: tree.to_string() }
        }
        BuildResult::Conflict { paths } => Built::Conflict { paths: quoted(&paths) },
        BuildResult::Nothing => Built::Nothing,
        BuildResult::BaseGone => Built::BaseGone { now: tip.to_string() },
        BuildResult::Unsigned { what } => Built::NotSigned { what },
    })
}

/// Moves the branch to exactly the tested revert, as a landing does; it changes no path that the landing did not.
fn move_to(
    world: &World,
    intent: &RevertIntent,
    tested: &RevertMove,
    since: Option<SystemTime>,
) -> Result<String, (Refusal, String)> {
    let fault = |what: String| (Refusal::Fault, what);
    let _lock = lock(world, &intent.target).map_err(|what| (Refusal::Busy, what))?;
    let step = step(&intent.target, &tested.old, &tested.new).map_err(fault)?;
    carry_out(world, &step, since, false)?;
    let verified = || -> Result<(), String> {
        let (old, landed) = (oid(&intent.old)?, oid(&intent.landed)?);
        let paths = changed(&world.repo, &old, &landed).map_err(text)?;
        let allowed: BTreeSet<Vec<u8>> = paths.into_iter().map(|path| path.path).collect();
        land::verify(&world.repo, &step, &oid(&tested.tree)?, Some(&allowed)).map_err(text)
    };
    verified().map_err(|what| fault(format!("the branch is not what was tested: {what}")))?;
    Ok(tested.new.clone())
}

/// M-F3, M-F4: a new commit that undoes the landing, if no later commit prevents it.
pub(super) fn revert(
    world: &World,
    seq: Seq,
    intent: &RevertIntent,
    message: &str,
    since: Option<SystemTime>,
) -> Report {
    build_cache::forget(world);
    if let Some(tested) = &intent.tested {
        return match move_to(world, intent, tested, since) {
            Ok(commit) => RunReverted { start_seq: seq, commit }.into(),
            Err((why, detail)) => RevertRefused { start_seq: seq, why: Some(why), detail }.into(),
        };
    }
    match try_revert(world, intent, message, since) {
        Ok(commit) => RunReverted { start_seq: seq, commit }.into(),
        Err(detail) => RevertRefused { start_seq: seq, why: None, detail }.into(),
    }
}

fn try_revert(
    world: &World,
    intent: &RevertIntent,
    message: &str,
    since: Option<SystemTime>,
) -> Result<String, String> {
    let _lock = lock(world, &intent.target)?;
    let keep = world.keep_ref("revert");
    let (landed, old) = (oid(&intent.landed)?, oid(&intent.old)?);
    let Some(tip) = target_now(world, &intent.target)? else {
        return Err(format!("{} is gone", intent.target));
    };
    // Built before a crash: then the tip is still the landing, or the revert and whatever came after.
    if let Some(reverted) = world.repo.resolve(&keep).map_err(text)?
        && contains(world, &tip, &reverted)
    {
        return Ok(reverted.to_string());
    }
    let signing = signing(world)??;
    let by = Committer { identity: identity(world)?, signing: signing.as_ref() };
    let built = land::revert(&world.repo, &tip, &landed, &old, message, by, &keep).map_err(text)?;
    failpoint::pass("revert.built");
    let new = match built {
        land::BuildResult::Commit { oid, .. } => oid,
        land::BuildResult::Unsigned { what } => return Err(what),
        land::BuildResult::Conflict { .. } | land::BuildResult::Nothing | land::BuildResult::BaseGone => {
            return Err("later commits prevent a clean revert".to_owned());
        }
    };
    let step = Move { branch: intent.target.clone(), old: tip, new: new.clone() };
    carry_out(world, &step, since, false).map(|_| new.to_string()).map_err(|(_, detail)| detail)
}
