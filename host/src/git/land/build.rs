//! Building the commit that is to land, without touching the user's checkout: no working tree, no index, and nothing configured in
//! the repository takes part.

use std::time::{SystemTime, UNIX_EPOCH};

use archeflow_core::projections::commit_message;

use super::Error;
use crate::git::native::Objects;
use crate::git::repo::{Identity, Repo, answered};
use crate::git::signing::Signing;
use crate::git::workspace::{by, point};
use crate::git::{ObjectId, change, runner};

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
    pub by: Committer<'a>,
    /// A ref under `refs/archeflow/keep/` that makes the result reachable.
    pub keep: &'a str,
}

/// Whose commits they are, and how they are signed.
#[derive(Debug, Clone, Copy)]
pub struct Committer<'a> {
    pub identity: &'a Identity,
    pub signing: Option<&'a Signing>,
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
    /// The user's git could not sign it.
    Unsigned {
        what: String,
    },
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
        BuildStrategy::NoFf => merged(repo, work, &[work.target, work.work]),
        BuildStrategy::Squash => merged(repo, work, &[work.target]),
        BuildStrategy::Rebase => replayed(repo, work),
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
    by: Committer<'_>,
    kept_as: &str,
) -> Result<BuildResult, Error> {
    let built = match three_way(repo, landed, tip, old)? {
        Merge::Conflict(paths) => Ok(BuildResult::Conflict { paths }),
        Merge::Clean(tree) if tree == repo.tree_of(tip)? => Ok(BuildResult::Nothing),
        Merge::Clean(tree) => commit(repo, tree, &[tip], message, by),
    };
    keep(repo, built, kept_as)
}

/// What a revert would change, without building it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevertPreview {
    /// Paths that change, each with `A`, `M` or `D`.
    Changes(Vec<(char, Vec<u8>)>),
    Conflict(Vec<Vec<u8>>),
}

/// What [`revert`] would change on top of `tip`.
pub fn preview_revert(
    repo: &Repo,
    tip: &ObjectId,
    landed: &ObjectId,
    old: &ObjectId,
) -> Result<RevertPreview, Error> {
    let tree = match three_way(repo, landed, tip, old)? {
        Merge::Conflict(paths) => return Ok(RevertPreview::Conflict(paths)),
        Merge::Clean(tree) => tree,
    };
    let touched = change::touched(repo, tip, &tree)?;
    let status = |one: &change::ChangedPath| match (one.old_oid.is_zero(), one.new_oid.is_zero()) {
        (true, _) => 'A',
        (_, true) => 'D',
        (false, false) => 'M',
    };
    Ok(RevertPreview::Changes(touched.into_iter().map(|one| (status(&one), one.path)).collect()))
}

fn merged(repo: &Repo, work: &Work<'_>, parents: &[&ObjectId]) -> Result<BuildResult, Error> {
    match merge(repo, work.target, work.work)? {
        Merge::Conflict(paths) => Ok(BuildResult::Conflict { paths }),
        Merge::Clean(tree) if tree == repo.tree_of(work.target)? => Ok(BuildResult::Nothing),
        Merge::Clean(tree) => commit(repo, tree, parents, work.message, work.by),
    }
}

fn replayed(repo: &Repo, work: &Work<'_>) -> Result<BuildResult, Error> {
    let range = format!("{}..{}", work.base, work.work);
    let args = ["rev-list", "--reverse", "--topo-order", "--parents", &range];
    let listing = repo.side()?.args(args).done()?;
    let (mut trees, mut tip_tree) = (Vec::new(), repo.tree_of(work.target)?);
    for line in String::from_utf8_lossy(&listing.stdout).lines() {
        let names = line.split(' ').map(|name| ObjectId::parse(name.as_bytes()));
        let names: Vec<ObjectId> =
            names.collect::<Result<_, _>>().map_err(|error| unexpected(&error.to_string()))?;
        let [original, parent] = &names[..] else {
            let commit = names.first().unwrap_or(work.work).clone();
            return Err(Error::MergeInWork { commit });
        };
        match three_way(repo, parent, &tip_tree, original)? {
            Merge::Conflict(paths) => return Ok(BuildResult::Conflict { paths }),
            Merge::Clean(tree) if tree == tip_tree => {}
            Merge::Clean(tree) => {
                trees.push((original.clone(), tree.clone()));
                tip_tree = tree;
            }
        }
    }
    let Some(((last, last_tree), before)) = trees.split_last() else { return Ok(BuildResult::Nothing) };
    let mut tip = work.target.clone();
    for (original, tree) in before {
        tip = replay(repo, original, &tip, tree, None, work.by)?;
    }
    tip = replay(repo, last, &tip, last_tree, Some(work.message), work.by)?;
    Ok(BuildResult::Commit { oid: tip, tree: tip_tree })
}

/// Writes a commit again with another parent and tree; author, encoding and message stay. The last one gets the trailers
/// of the landing; lines of the agent's that would be read as such are indented.
fn replay(
    repo: &Repo,
    original: &ObjectId,
    parent: &ObjectId,
    tree: &ObjectId,
    landing: Option<&str>,
    committer: Committer<'_>,
) -> Result<ObjectId, Error> {
    let object = repo.side()?.args(["cat-file", "commit", original.as_str()]).done()?.stdout;
    let end = object.windows(2).position(|pair| pair == b"\n\n").unwrap_or(object.len());
    let (header, message) = object.split_at(end);
    let kept = |name: &[u8]| header.split(|byte| *byte == b'\n').find(|line| line.starts_with(name));
    let message = with_trailers(message.get(2..).unwrap_or_default(), landing);
    let author = kept(b"author ").unwrap_or(b"author archeflow <archeflow@localhost> 0 +0000");
    if let Some(signing) = committer.signing {
        let args = ["commit-tree", tree.as_str(), "-p", parent.as_str()];
        let mut git =
            by_author(repo.signed(by(repo.side()?, committer.identity).args(args), signing), author);
        if let Some(encoding) = kept(b"encoding ").and_then(|line| line.strip_prefix(b"encoding ")) {
            git = git.setting(&format!("i18n.commitEncoding={}", String::from_utf8_lossy(encoding)));
        }
        return Ok(answered(&args, &signature(git.input(message).done())?)?);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let who = |text: &str| text.replace(['<', '>', '\n', '\0'], "");
    let mut new = format!("tree {tree}\nparent {parent}\n").into_bytes();
    new.extend_from_slice(author);
    let identity = committer.identity;
    let (name, email) = (who(&identity.committer_name), who(&identity.committer_email));
    new.extend_from_slice(format!("\ncommitter {name} <{email}> {now} +0000").as_bytes());
    if let Some(encoding) = kept(b"encoding ") {
        new.extend_from_slice(b"\n");
        new.extend_from_slice(encoding);
    }
    new.extend_from_slice(b"\n\n");
    new.extend(message);
    let args = ["hash-object", "-t", "commit", "-w", "--stdin"];
    Ok(answered(&args, &repo.side()?.args(args).input(new).done()?)?)
}

/// The agent's message, with the trailers of the landing as its last paragraph.
fn with_trailers(message: &[u8], landing: Option<&str>) -> Vec<u8> {
    let mut text = Vec::new();
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if commit_message::is_trailer(line) {
            text.extend_from_slice(b"    ");
        }
        text.extend_from_slice(line);
    }
    let Some(landing) = landing else { return text };
    if text.trim_ascii().is_empty() {
        return landing.as_bytes().to_vec();
    }
    text.truncate(text.trim_ascii_end().len());
    text.extend_from_slice(format!("\n\n{}\n", commit_message::trailers(landing)).as_bytes());
    text
}

fn commit(
    repo: &Repo,
    tree: ObjectId,
    parents: &[&ObjectId],
    message: &str,
    committer: Committer<'_>,
) -> Result<BuildResult, Error> {
    if committer.signing.is_none()
        && let Ok(oid) = repo
            .native()
            .and_then(|objects| objects.commit_on(&tree, parents, message, committer.identity, true))
    {
        return Ok(BuildResult::Commit { oid, tree });
    }
    let args = ["commit-tree", tree.as_str()];
    let mut git = by(repo.side()?, committer.identity).args(args);
    for parent in parents {
        git = git.args(["-p", parent.as_str()]);
    }
    let output = match committer.signing {
        Some(signing) => signature(repo.signed(git, signing).input(message).done())?,
        None => git.input(message).done()?,
    };
    let oid = answered(&args, &output)?;
    Ok(BuildResult::Commit { oid, tree })
}

/// The author of a commit that is written again, from its line in the object: `author name <email> seconds zone`.
fn by_author(git: runner::GitCommand, line: &[u8]) -> runner::GitCommand {
    let text = String::from_utf8_lossy(line.strip_prefix(b"author ").unwrap_or(line)).into_owned();
    let Some((name, rest)) = text.split_once('<') else { return git };
    let Some((email, date)) = rest.rsplit_once('>') else { return git };
    let name = if name.trim().is_empty() { "unknown" } else { name.trim() };
    git.env("GIT_AUTHOR_NAME", name)
        .env("GIT_AUTHOR_EMAIL", email)
        .env("GIT_AUTHOR_DATE", format!("@{}", date.trim()))
}

/// A command that signs fails mostly because there is no key or no agent that has it.
fn signature(output: Result<runner::Output, runner::Error>) -> Result<runner::Output, Error> {
    output.map_err(|error| match error {
        runner::Error::Failed { stderr, .. } => Error::Unsigned { what: stderr },
        timeout @ runner::Error::TimedOut { .. } => Error::Unsigned { what: timeout.to_string() },
        other @ (runner::Error::Missing
        | runner::Error::TooOld { .. }
        | runner::Error::Io { .. }
        | runner::Error::Unexpected { .. }) => other.into(),
    })
}

fn keep(repo: &Repo, built: Result<BuildResult, Error>, reference: &str) -> Result<BuildResult, Error> {
    let built = match built {
        Err(Error::Unsigned { what }) => BuildResult::Unsigned { what },
        other => other?,
    };
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
    // Where one has everything of the other, there is nothing to merge.
    let contained = |objects: &Objects| {
        let base = objects.merge_base(ours, theirs)?;
        objects.tree_of(if base == *ours { theirs } else { ours })
    };
    if let Ok(tree) = repo.history().and_then(contained) {
        return Ok(Merge::Clean(tree));
    }
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
