//! Bringing what an agent made into the user's repository: objects first, then refs in one transaction.

use std::time::Duration;

use super::{Error, Slot};
use crate::failpoint;
use crate::git::ObjectId;
use crate::git::checkouts::Checkout;
use crate::git::native::{AskGit, Native, RefChange, RefLog, Refs, is_ref_name};
use crate::git::repo::{Repo, short_name};

const DEADLINE: Duration = Duration::from_secs(600);

impl Slot {
    /// Makes each commit reachable from its ref in the user's repository. Safe to repeat: what is there
    /// already is left as it is. Once everything the last collection found is published, the slot is no
    /// longer pending.
    pub fn publish(&mut self, wanted: &[(ObjectId, String)]) -> Result<(), Error> {
        self.send_objects(wanted)?;
        point(&self.repo, wanted)?;
        failpoint::pass("work.published");
        let covered =
            |made: &Vec<ObjectId>| made.iter().all(|oid| wanted.iter().any(|(commit, _)| commit == oid));
        if self.unpublished.take_if(|made| covered(made)).is_some() {
            self.abandon()?;
        }
        Ok(())
    }

    /// Copies what the user's store lacks, as one pack that becomes visible at once and is on disk.
    fn send_objects(&self, wanted: &[(ObjectId, String)]) -> Result<(), Error> {
        let mut missing = Vec::new();
        for (commit, _) in wanted {
            if !missing.contains(&commit) && !self.repo.has_commit(commit)? {
                missing.push(commit);
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        if let [commit] = &missing[..]
            && self.send_here(commit).is_ok()
        {
            return Ok(());
        }
        let missing: String = missing.iter().map(|commit| format!("{commit}\n")).collect();
        let pack = self
            .host()?
            .args(["pack-objects", "--revs", "--local", "--stdout", "-q", "--delta-base-offset"])
            .input(missing)
            .deadline(DEADLINE);
        pack.pipe_into(self.repo.side()?.args(["index-pack", "--stdin", "--strict"]))?;
        Ok(())
    }

    /// Copies a few objects that were made by [`Slot::collect`] one by one, and all synced. What an agent committed itself
    /// is in a pack, which git has checked and sends.
    fn send_here(&self, commit: &ObjectId) -> Native<()> {
        let (ours, users) = (self.objects()?, self.repo.native()?);
        let (mut content, mut expected) = (Vec::new(), Vec::new());
        for (oid, kind) in ours.own_objects(commit, FEW)? {
            content.push((kind, ours.read(&oid, kind)?));
            expected.push(oid);
        }
        if users.write_durable(&content)? != expected {
            return Err(AskGit);
        }
        if users.has_commit(commit)? { Ok(()) } else { Err(AskGit) }
    }
}

/// More objects than these become one pack.
const FEW: usize = 24;

/// Points refs of our own at commits that are in the user's store.
pub(crate) fn point(repo: &Repo, wanted: &[(ObjectId, String)]) -> Result<(), Error> {
    if point_here(repo, &moves(repo, wanted)?).is_ok() {
        return Ok(());
    }
    // Something may have moved meanwhile.
    let moves = moves(repo, wanted)?;
    let commands = moves.iter().map(|one| {
        let old = one.old.clone().unwrap_or_else(|| one.new.zero_like());
        update(&one.name, &one.new, &old)
    });
    let commands: Vec<Vec<u8>> = commands.collect();
    if commands.is_empty() {
        return Ok(());
    }
    let args = ["update-ref", "-m", PUBLISH, "-z", "--stdin"];
    repo.refs()?.args(args).input(commands.concat()).done()?;
    Ok(())
}

const PUBLISH: &str = "archeflow: publish";

/// A ref that is to be elsewhere.
#[derive(Debug, PartialEq, Eq)]
struct RefMove {
    name: String,
    new: ObjectId,
    old: Option<ObjectId>,
}

fn point_here(repo: &Repo, moves: &[RefMove]) -> Native<()> {
    if moves.is_empty() {
        return Ok(());
    }
    let which = repo.user.logged_refs(repo.work_tree.is_some())?;
    let changes: Vec<RefChange<'_>> =
        moves.iter().map(|one| RefChange { name: &one.name, new: &one.new, old: one.old.as_ref() }).collect();
    Refs::of(&repo.common_dir)?.change(&changes, &RefLog { which, message: PUBLISH })
}

fn moves(repo: &Repo, wanted: &[(ObjectId, String)]) -> Result<Vec<RefMove>, Error> {
    let checkouts = repo.checkouts()?;
    let mut moves = Vec::new();
    for (commit, reference) in wanted {
        check_ours(repo, reference)?;
        let now = repo.resolve(reference)?;
        if now.as_ref() == Some(commit) {
            continue;
        }
        check_not_checked_out(&checkouts, reference)?;
        moves.push(RefMove { name: reference.clone(), new: commit.clone(), old: now.clone() });
        if let Some(old) = now
            && !repo.is_ancestor(&old, commit)?
        {
            // What a ref stops pointing at stays reachable.
            let kept = format!("refs/archeflow/keep/replaced/{old}");
            // Two refs may be at the same commit; git takes no ref twice in one transaction.
            let keep = RefMove { name: kept, new: old, old: None };
            if repo.resolve(&keep.name)?.is_none() && !moves.contains(&keep) {
                moves.push(keep);
            }
        }
    }
    Ok(moves)
}

/// Takes a branch of ours out of sight: its commit stays reachable under `keep`. `false` when there is no branch.
pub fn retire(repo: &Repo, branch: &str, keep: &str) -> Result<bool, Error> {
    check_ours(repo, branch)?;
    check_ours(repo, keep)?;
    let Some(tip) = repo.resolve(branch)? else { return Ok(false) };
    check_not_checked_out(&repo.checkouts()?, branch)?;
    let kept = repo.resolve(keep)?.unwrap_or_else(|| tip.zero_like());
    let mut commands = update(keep, &tip, &kept);
    commands.extend(format!("delete {branch}\0{tip}\0").into_bytes());
    let args = ["update-ref", "-m", "archeflow: discard", "-z", "--stdin"];
    repo.refs()?.args(args).input(commands).done()?;
    Ok(true)
}

/// One line of a ref transaction.
pub(in crate::git) fn update(reference: &str, new: &ObjectId, old: &ObjectId) -> Vec<u8> {
    format!("update {reference}\0{new}\0{old}\0").into_bytes()
}

fn check_ours(repo: &Repo, reference: &str) -> Result<(), Error> {
    let branch = reference.starts_with("refs/heads/archeflow/");
    if !branch && !reference.starts_with("refs/archeflow/") {
        return Err(Error::ForeignRef { reference: reference.to_owned() });
    }
    if branch && repo.resolve("refs/heads/archeflow")?.is_some() {
        return Err(Error::NameTaken);
    }
    if is_ref_name(reference) {
        Ok(())
    } else {
        Err(Error::ForeignRef { reference: reference.escape_debug().to_string() })
    }
}

fn check_not_checked_out(checkouts: &[Checkout], reference: &str) -> Result<(), Error> {
    match checkouts.iter().find(|checkout| checkout.branch.as_deref() == Some(reference)) {
        Some(checkout) => {
            let branch = short_name(reference).to_owned();
            Err(Error::CheckedOut { branch, tree: checkout.tree.clone() })
        }
        None => Ok(()),
    }
}
