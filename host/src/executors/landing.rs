//! Builds merge candidates and moves the target branch.

use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::time::{Duration, Instant, SystemTime};

use archeflow_core::event::{
    Built, LeftOut, Link, MergeBuilt, MergeIntent, MergeRefused, MergeStart, Refusal, Report, RunMerged,
    Together,
};
use archeflow_core::model::{Change, MergeStrategy, Seq};

use super::build_cache;
use crate::failpoint;
use crate::git::change::{changed, quote_path};
use crate::git::land::{self, BuildStrategy, Committer, LandAttempt, Move, Recovered, Work};
use crate::git::remote::{self, PushedLanding, RemoteBranch, Turn};
use crate::git::repo::NO_IDENTITY;
use crate::git::signing::{Signing, SigningFault};
use crate::git::{Identity, ObjectId};
use crate::store::files;
use crate::store::lock::{self, Lock};
use crate::world::World;

/// How long another landing on the same target is waited for.
const WAIT: Duration = Duration::from_secs(120);

/// How long the turn of another run is waited for: its tests and hooks have limits of their own. Then it is tried without.
const TURN_WAIT: Duration = Duration::from_secs(900);

/// Between two looks whether this run is to stop.
const TURN_NAP: Duration = Duration::from_millis(200);

/// D-03: a merge commit in a separate worktree, on the target as it is now. Work of other runs that is to land in the same
/// step comes first; what of it can't come along is left out. A run that landed with another finds that so.
pub(super) fn build(world: &World, seq: Seq, start: &MergeStart, message: &str) -> Report {
    let mut built =
        MergeBuilt { start_seq: seq, built: Built::Nothing, chain: Vec::new(), left_out: Vec::new() };
    let done = match &start.with {
        Some(with) => match landed_with(world, start, with) {
            Ok(Ok(())) => return merged_with(seq, start, with).into(),
            Ok(Err(now)) => Ok(Built::BaseGone { now }),
            Err(what) => Err(what),
        },
        None => match landed_elsewhere(world, seq, start) {
            Ok(None) => try_build(world, start, message, &mut built),
            Ok(Some(merged)) => return merged.into(),
            Err(what) => Err(what),
        },
    };
    built.built = done.unwrap_or_else(|what| Built::Fault { what });
    built.into()
}

fn try_build(
    world: &World,
    start: &MergeStart,
    message: &str,
    out: &mut MergeBuilt,
) -> Result<Built, String> {
    let (work, base) = (oid(&start.work)?, oid(&start.base)?);
    let Some(target) = target_now(world, &start.target)? else {
        return Ok(Built::BaseGone { now: "deleted".to_owned() });
    };
    let keep = world.keep_ref(&format!("merge-{}", start.attempt));
    let mut tip = target.clone();
    for one in &start.before {
        let (work, base) = (oid(&one.work)?, oid(&one.base)?);
        // Journals from before name no message.
        let plain = format!("archeflow: merge run {}\n", one.run_id);
        let message = if one.message.is_empty() { &plain } else { &one.message };
        let why = match commit_on(world, &tip, (&work, &base), message, one.strategy, &keep)? {
            land::BuildResult::Commit { oid, tree } => {
                let (old, commit) = (tip.to_string(), oid.to_string());
                let (run_id, work, tree) = (one.run_id.clone(), one.work.clone(), tree.to_string());
                out.chain.push(Link { run_id, work, old, commit, tree });
                tip = oid;
                continue;
            }
            land::BuildResult::Conflict { paths } => format!("conflict in {}", quoted(&paths).join(", ")),
            land::BuildResult::Nothing => "it is in the target already".to_owned(),
            land::BuildResult::BaseGone => "the target no longer contains what it began from".to_owned(),
            land::BuildResult::Unsigned { what } => return Ok(Built::NotSigned { what }),
        };
        out.left_out.push(LeftOut { run_id: one.run_id.clone(), why });
    }
    let built = commit_on(world, &tip, (&work, &base), message, start.strategy, &keep)?;
    failpoint::pass("merge.built");
    Ok(match built {
        land::BuildResult::Commit { oid, tree } => {
            Built::Candidate { old: target.to_string(), commit: oid.to_string(), tree: tree.to_string() }
        }
        land::BuildResult::Conflict { paths } => Built::Conflict { paths: quoted(&paths) },
        land::BuildResult::Nothing => Built::Nothing,
        land::BuildResult::BaseGone => Built::BaseGone { now: target.to_string() },
        land::BuildResult::Unsigned { what } => Built::NotSigned { what },
    })
}

/// Where the target is now; a branch of a remote is fetched first.
pub(super) fn target_now(world: &World, target: &str) -> Result<Option<ObjectId>, String> {
    match RemoteBranch::parse(target) {
        Some(branch) => remote::fetch(&world.repo, &branch),
        None => world.repo.resolve(target).map_err(text),
    }
}

fn turn(world: &World) -> Turn {
    Turn { run_id: world.run_id.clone(), tag: world.tag.clone() }
}

/// Takes the turn of a run that lands on a remote. A copy of the run that was continued elsewhere may have landed.
fn landed_elsewhere(world: &World, seq: Seq, start: &MergeStart) -> Result<Option<RunMerged>, String> {
    let Some(branch) = RemoteBranch::parse(&start.target) else { return Ok(None) };
    remote::fetch(&world.repo, &branch)?;
    let Some(commit) = turn(world).take(&world.repo, &branch)? else { return Ok(None) };
    let parent = remote::first_parent(&world.repo, &commit).map_err(text)?;
    let tree = world.repo.tree_of(&commit).map_err(text)?;
    Ok(Some(RunMerged {
        start_seq: seq,
        base: start.target.clone(),
        strategy: start.strategy,
        old: parent.map(|parent| parent.to_string()).unwrap_or_default(),
        commit: commit.to_string(),
        tree: tree.to_string(),
        moved: 0,
    }))
}

fn commit_on(
    world: &World,
    target: &ObjectId,
    (work, base): (&ObjectId, &ObjectId),
    message: &str,
    strategy: MergeStrategy,
    keep: &str,
) -> Result<land::BuildResult, String> {
    let signing = match signing(world)? {
        Ok(signing) => signing,
        Err(what) => return Ok(land::BuildResult::Unsigned { what }),
    };
    let by = Committer { identity: identity(world)?, signing: signing.as_ref() };
    let request = Work { target, work, base, message, by, keep };
    let strategy = match strategy {
        MergeStrategy::NoFf => BuildStrategy::NoFf,
        MergeStrategy::Squash => BuildStrategy::Squash,
        MergeStrategy::Rebase => BuildStrategy::Rebase,
    };
    land::build(&world.repo, strategy, &request).map_err(text)
}

/// Runs begin with an identity; it may be gone since.
pub(super) fn identity(world: &World) -> Result<&Identity, String> {
    match world.repo.identity() {
        known if known.configured => Ok(known),
        _ => Err(NO_IDENTITY.to_owned()),
    }
}

/// How the commit is signed, or why it can't be.
pub(super) fn signing(world: &World) -> Result<Result<Option<Signing>, String>, String> {
    match world.repo.signing() {
        Ok(signing) => Ok(Ok(signing)),
        Err(SigningFault::Git(error)) => Err(text(error)),
        Err(fault) => Ok(Err(fault.to_string())),
    }
}

pub(super) fn quoted(paths: &[Vec<u8>]) -> Vec<String> {
    paths.iter().map(|path| quote_path(path)).collect()
}

/// Whether the target holds what another run's landing is recorded to have merged, with this run's commit in it. If not,
/// where the target is.
fn landed_with(world: &World, start: &MergeStart, with: &Together) -> Result<Result<(), String>, String> {
    let (commit, tip) = (oid(&with.commit)?, oid(&with.tip)?);
    let Some(now) = target_now(world, &start.target)? else {
        return Ok(Err("deleted".to_owned()));
    };
    if world.repo.tree_of(&commit).map_err(text)?.as_str() != with.tree {
        return Err(format!("{} is not what {} landed", with.commit, with.run_id));
    }
    let is_in = contains(world, &now, &tip) && contains(world, &tip, &commit);
    Ok(if is_in { Ok(()) } else { Err(now.to_string()) })
}

fn merged_with(seq: Seq, start: &MergeStart, with: &Together) -> RunMerged {
    RunMerged {
        start_seq: seq,
        base: start.target.clone(),
        strategy: start.strategy,
        old: with.old.clone(),
        commit: with.commit.clone(),
        tree: with.tree.clone(),
        moved: 0,
    }
}

/// Moves the branch from exactly the recorded old commit to exactly the tested one, under the repository's lock.
/// What a crash left half done is completed first (I1).
pub(super) fn land(
    world: &World,
    seq: Seq,
    intent: &MergeIntent,
    (work, chain): (Option<&Change>, &[Link]),
    since: Option<SystemTime>,
) -> Report {
    let refused = |why, detail: String| Report::from(MergeRefused { start_seq: seq, why, detail });
    let step = match step(&intent.target, &intent.old, &intent.new) {
        Ok(step) => step,
        Err(what) => return refused(Refusal::Fault, what),
    };
    take_turn(world, &intent.target);
    let landed = move_target(world, &step, intent, since);
    // A run whose branch moved keeps the turn: no other run lands while it builds and tests again.
    if !matches!(landed, Err((Refusal::Moved, _))) {
        leave_turn(world);
    }
    let moved = match landed {
        Ok(moved) => moved,
        Err((why, detail)) => return refused(why, detail),
    };
    if let Err(what) = verify(world, &step, intent, work, chain) {
        return refused(Refusal::Fault, format!("the landed branch is not what was tested: {what}"));
    }
    build_cache::adopt(world, &intent.tree);
    RunMerged::by(seq, intent, moved).into()
}

fn move_target(
    world: &World,
    step: &Move,
    intent: &MergeIntent,
    since: Option<SystemTime>,
) -> Result<u32, (Refusal, String)> {
    let _lock = lock(world, &intent.target).map_err(|what| (Refusal::Busy, what))?;
    carry_out(world, step, since, true)
}

/// Waits until no other run of this machine is in the middle of landing on this branch once more. A remote has turns of its
/// own.
fn take_turn(world: &World, target: &str) {
    let mut turn = world.landing_turn.lock().unwrap_or_else(PoisonError::into_inner);
    if turn.is_some() || RemoteBranch::parse(target).is_some() {
        return;
    }
    let begun = Instant::now();
    while begun.elapsed() < TURN_WAIT && !world.watch.is_stopping() {
        match named_lock(world, &format!("turn {target}"), TURN_NAP) {
            Ok(lock) => {
                *turn = Some(lock);
                return;
            }
            Err(lock::Error::Held { .. }) => {}
            // The turn is a courtesy: the branch is moved by comparing, with it or without.
            Err(lock::Error::BadName { .. } | lock::Error::File(_)) => return,
        }
    }
}

/// For a run that does something else than build, test and land.
pub(super) fn leave_turn(world: &World) {
    *world.landing_turn.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

pub(super) fn carry_out(
    world: &World,
    step: &Move,
    since: Option<SystemTime>,
    takes_turn: bool,
) -> Result<u32, (Refusal, String)> {
    if let Some(branch) = RemoteBranch::parse(&step.branch) {
        let turn = takes_turn.then(|| turn(world));
        return push_out(world, &branch, step, since.is_some(), turn.as_ref());
    }
    let fault = |error: land::Error| (Refusal::Fault, error.to_string());
    // Only what an earlier session began can have been left half done; any other lock belongs to another process.
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
            // It had landed before a crash, and later commits were added.
            Recovered::BranchMoved { now: Some(now) } if contains(world, &now, &step.new) => return Ok(0),
            Recovered::BranchMoved { now } => return Err((Refusal::Moved, moved_to(step, now.as_ref()))),
        }
    }
    match land::land(&world.repo, step).map_err(fault)? {
        LandAttempt::Moved { trees } => Ok(u32::try_from(trees.len()).unwrap_or(u32::MAX)),
        LandAttempt::BranchMoved { now } => Err((Refusal::Moved, moved_to(step, now.as_ref()))),
        LandAttempt::Dirty { paths } => {
            let paths: Vec<String> = paths.iter().take(5).map(|path| quote_path(path)).collect();
            let detail = format!(
                "your checkout has changes on paths this merge touches ({}); commit or move them, then land",
                paths.join(", ")
            );
            Err((Refusal::Dirty, detail))
        }
        LandAttempt::Busy { what } => Err((Refusal::Busy, what)),
    }
}

/// The same on a remote. A session that resumes an interrupted landing takes the turn first, as it would have before building.
fn push_out(
    world: &World,
    branch: &RemoteBranch,
    step: &Move,
    resumes: bool,
    turn: Option<&Turn>,
) -> Result<u32, (Refusal, String)> {
    let fault = |what: String| (Refusal::Fault, what);
    if resumes && let Some(turn) = turn {
        remote::fetch(&world.repo, branch).map_err(fault)?;
        turn.take(&world.repo, branch).map_err(fault)?;
    }
    match remote::push_landing(&world.repo, branch, step, turn).map_err(fault)? {
        PushedLanding::Landed => Ok(0),
        PushedLanding::BranchMoved { now } => Err((Refusal::Moved, moved_to(step, now.as_ref()))),
        PushedLanding::TurnLost => {
            let detail = format!(
                "the run was continued elsewhere, and may land only there: its turn on {} was taken",
                branch.remote
            );
            Err((Refusal::Busy, detail))
        }
    }
}

pub(super) fn contains(world: &World, tip: &ObjectId, commit: &ObjectId) -> bool {
    world.repo.is_ancestor(commit, tip).unwrap_or(false)
}

fn moved_to(step: &Move, now: Option<&ObjectId>) -> String {
    match now {
        Some(now) => format!("{} moved to {now} meanwhile", step.branch),
        None => format!("{} is gone", step.branch),
    }
}

/// I8: tested equals landed, nothing lost, nothing touched that the work does not touch.
fn verify(
    world: &World,
    step: &Move,
    intent: &MergeIntent,
    work: Option<&Change>,
    chain: &[Link],
) -> Result<(), String> {
    let tested = oid(&intent.tree)?;
    let allowed = match work {
        Some(work) => {
            let works = chain.iter().map(|link| &link.work).chain([&work.commit]);
            let mut allowed = BTreeSet::new();
            for work in works {
                allowed.extend(touched_by(world, step, &oid(work)?)?);
            }
            Some(allowed)
        }
        None => None,
    };
    land::verify(&world.repo, step, &tested, allowed.as_ref()).map_err(text)
}

fn touched_by(world: &World, step: &Move, work: &ObjectId) -> Result<Vec<Vec<u8>>, String> {
    let base = crate::git::change::merge_base(&world.repo, &step.old, work).map_err(text)?;
    let base = base.ok_or_else(|| "no common base".to_owned())?;
    let paths = changed(&world.repo, &base, work).map_err(text)?;
    Ok(paths.into_iter().map(|path| path.path).collect())
}

pub(super) fn lock(world: &World, target: &str) -> Result<Lock, String> {
    named_lock(world, target, WAIT).map_err(text)
}

fn named_lock(world: &World, what: &str, wait: Duration) -> Result<Lock, lock::Error> {
    let name = lock::name_for(world.repo.common_dir(), what);
    let folder = world.state.join("locks");
    let made = crate::platform::files::private_directory().recursive(true).create(&folder);
    made.map_err(|error| files::Error::io("create", &folder, error))?;
    Lock::take(&folder, &name, wait)
}

pub(super) fn step(branch: &str, old: &str, new: &str) -> Result<Move, String> {
    Ok(Move { branch: branch.to_owned(), old: oid(old)?, new: oid(new)? })
}

pub(super) fn oid(name: &str) -> Result<ObjectId, String> {
    ObjectId::parse(name.as_bytes()).map_err(text)
}

pub(super) fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}
