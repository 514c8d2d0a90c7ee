//! Building the commit that is to land, without touching the user's checkout: no working tree, no index, and nothing configured in
//! the repository takes part.

use std::time::{SystemTime, UNIX_EPOCH};

use super::Error;
use crate::git::repo::{Identity, Repo, answered};
use crate::git::workspace::{by, point};
use crate::git::{ObjectId, runner};

/// How the work comes onto the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildStrategy {
    /// One merge commit with both histories.
    NoFf,
    /// One plain commit.
    Squash,
    /// The work's commits one by one.
    Rebase,
}

/// What is to be landed.
#[derive(Debug)]
pub struct Work<'a> {
    pub target: &'a ObjectId,
    pub work: &'a ObjectId,
    /// The commit the work began from, as it was written down then.
    pub base: &'a ObjectId,
    pub message: &'a str,
    pub identity: &'a Identity,
    /// A ref under `refs/archeflow/keep/` that makes the result reachable.
    pub keep: &'a str,
}

/// What building gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BuildResult {
    Commit {
        oid: ObjectId,
        tree: ObjectId,
    },
    /// Both sides changed these paths.
    Conflict {
        paths: Vec<Vec<u8>>,
    },
    /// The target has it all already.
    Nothing,
    /// The target no longer contains the commit the work began from: its history was rewritten.
    BaseGone,
}

/// Builds the commit for `work` on top of its target.
pub fn build(repo: &Repo, strategy: BuildStrategy, work: &Work<'_>) -> Result<BuildResult, Error> {
    if !repo.is_ancestor(work.base, work.target)? {
        return Ok(BuildResult::BaseGone);
    }
    if repo.is_ancestor(work.work, work.target)? {
        return Ok(BuildResult::Nothing);
    }
    let built = match strategy {
        BuildStrategy::NoFf => merged(repo, work, &[work.target, work.work])?,
        BuildStrategy::Squash => merged(repo, work, &[work.target])?,
        BuildStrategy::Rebase => replayed(repo, work)?,
    };
    keep(repo, built, work.keep)
}

/// Builds a commit on top of `tip` that undoes what moving the branch from `old` to `landed` did, and nothing
/// else. A conflict means that later commits depend on it.
pub fn revert(
    repo: &Repo,
    tip: &ObjectId,
    landed: &ObjectId,
    old: &ObjectId,
    message: &str,
    identity: &Identity,
    kept_as: &str,
) -> Result<BuildResult, Error> {
    let built = match three_way(repo, landed, tip, old)? {
        Merge::Conflict(paths) => BuildResult::Conflict { paths },
        Merge::Clean(tree) if tree == repo.tree_of(tip)? => BuildResult::Nothing,
        Merge::Clean(tree) => commit(repo, tree, &[tip], message, identity)?,
    };
    keep(repo, built, kept_as)
}

fn merged(repo: &Repo, work: &Work<'_>, parents: &[&ObjectId]) -> Result<BuildResult, Error> {
    match merge(repo, work.target, work.work)? {
        Merge::Conflict(paths) => Ok(BuildResult::Conflict { paths }),
        Merge::Clean(tree) if tree == repo.tree_of(work.target)? => Ok(BuildResult::Nothing),
        Merge::Clean(tree) => commit(repo, tree, parents, work.message, work.identity),
    }
}

fn replayed(repo: &Repo, work: &Work<'_>) -> Result<BuildResult, Error> {
    let range = format!("{}..{}", work.base, work.work);
    let args = ["rev-list", "--reverse", "--topo-order", "--parents", &range];
    let listing = repo.side()?.args(args).done()?;
    let (mut tip, mut tip_tree) = (work.target.clone(), repo.tree_of(work.target)?);
    for line in String::from_utf8_lossy(&listing.stdout).lines() {
        let names = line.split(' ').map(|name| ObjectId::parse(name.as_bytes()));
        let names: Vec<ObjectId> =
            names.collect::<Result<_, _>>().map_err(|error| unexpected(&error.to_string()))?;
        let [original, parent] = &names[..] else {
            let commit = names.first().unwrap_or(work.work).clone();
            return Err(Error::MergeInWork { commit });
        };
        match three_way(repo, parent, &tip, original)? {
            Merge::Conflict(paths) => return Ok(BuildResult::Conflict { paths }),
            Merge::Clean(tree) if tree == tip_tree => {}
            Merge::Clean(tree) => {
                tip = replay(repo, original, &tip, &tree, work.identity)?;
                tip_tree = tree;
            }
        }
    }
    if tip == *work.target {
        return Ok(BuildResult::Nothing);
    }
    Ok(BuildResult::Commit { oid: tip, tree: tip_tree })
}

/// Writes a commit again with another parent and tree; author, message and encoding stay, byte for byte.
fn replay(
    repo: &Repo,
    original: &ObjectId,
    parent: &ObjectId,
    tree: &ObjectId,
    identity: &Identity,
) -> Result<ObjectId, Error> {
    let object = repo.side()?.args(["cat-file", "commit", original.as_str()]).done()?.stdout;
    let end = object.windows(2).position(|pair| pair == b"\n\n").unwrap_or(object.len());
    let (header, message) = object.split_at(end);
    let kept = |name: &[u8]| header.split(|byte| *byte == b'\n').find(|line| line.starts_with(name));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let who = |text: &str| text.replace(['<', '>', '\n', '\0'], "");
    let mut new = format!("tree {tree}\nparent {parent}\n").into_bytes();
    new.extend_from_slice(kept(b"author ").unwrap_or(b"author archeflow <archeflow@localhost> 0 +0000"));
    let (name, email) = (who(&identity.name), who(&identity.email));
    new.extend_from_slice(format!("\ncommitter {name} <{email}> {now} +0000").as_bytes());
    if let Some(encoding) = kept(b"encoding ") {
        new.extend_from_slice(b"\n");
        new.extend_from_slice(encoding);
    }
    new.extend_from_slice(if message.is_empty() { b"\n\n" } else { message });
    let args = ["hash-object", "-t", "commit", "-w", "--stdin"];
    Ok(answered(&args, &repo.side()?.args(args).input(new).done()?)?)
}

fn commit(
    repo: &Repo,
    tree: ObjectId,
    parents: &[&ObjectId],
    message: &str,
    identity: &Identity,
) -> Result<BuildResult, Error> {
    let args = ["commit-tree", tree.as_str()];
    let mut git = by(repo.side()?, identity).args(args);
    for parent in parents {
        git = git.args(["-p", parent.as_str()]);
    }
    let oid = answered(&args, &git.input(message).done()?)?;
    Ok(BuildResult::Commit { oid, tree })
}

fn keep(repo: &Repo, built: BuildResult, reference: &str) -> Result<BuildResult, Error> {
    if let BuildResult::Commit { oid, .. } = &built {
        point(repo, &[(oid.clone(), reference.to_owned())])?;
    }
    Ok(built)
}

enum Merge {
    Clean(ObjectId),
    Conflict(Vec<Vec<u8>>),
}

/// Merges three trees. The commits are made only for this merge and belong to no history.
fn three_way(repo: &Repo, base: &ObjectId, ours: &ObjectId, theirs: &ObjectId) -> Result<Merge, Error> {
    let stand_in = |of: &ObjectId, parent: Option<&ObjectId>| -> Result<ObjectId, Error> {
        let tree = format!("{of}^{{tree}}");
        let args = ["commit-tree", &tree];
        let mut git = repo.side()?.args(args);
        if let Some(parent) = parent {
            git = git.args(["-p", parent.as_str()]);
        }
        Ok(answered(&args, &git.input("stand-in").done()?)?)
    };
    let base = stand_in(base, None)?;
    merge(repo, &stand_in(ours, Some(&base))?, &stand_in(theirs, Some(&base))?)
}

/// The paths that two histories both change in ways that do not go together.
pub fn conflicts(repo: &Repo, ours: &ObjectId, theirs: &ObjectId) -> Result<Vec<Vec<u8>>, Error> {
    match merge(repo, ours, theirs)? {
        Merge::Clean(_) => Ok(Vec::new()),
        Merge::Conflict(paths) => Ok(paths),
    }
}

fn merge(repo: &Repo, ours: &ObjectId, theirs: &ObjectId) -> Result<Merge, Error> {
    let args =
        ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours.as_str(), theirs.as_str()];
    let output = repo.side()?.args(args).run()?;
    let mut fields = output.stdout.split(|byte| *byte == 0);
    let tree = fields.next().map(|tree| tree.strip_suffix(b"\n").unwrap_or(tree));
    match (output.status.code(), tree.map(ObjectId::parse)) {
        (Some(0), Some(Ok(tree))) => Ok(Merge::Clean(tree)),
        (Some(1), Some(Ok(_))) => {
            let mut paths: Vec<_> = fields.filter(|path| !path.is_empty()).map(<[u8]>::to_vec).collect();
            paths.dedup();
            Ok(Merge::Conflict(paths))
        }
        _ => Err(unexpected(&String::from_utf8_lossy(&output.stderr)).into()),
    }
}

fn unexpected(answer: &str) -> runner::Error {
    runner::Error::Unexpected { what: "merge-tree".to_owned(), answer: answer.trim().to_owned() }
}
