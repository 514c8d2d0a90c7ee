//! Branches and commits: what exists already and only has to be found. What the user types is never an option to git.

use super::store::SubjectStore;
use super::{Error, ResolvedSubject, about};
use crate::git::repo::{Repo, short_name};
use crate::git::runner::{self, GitCommand};
use crate::git::{ObjectId, change, files};
use archeflow_core::text::closest;

/// Where a repository keeps its main line when no remote names one.
const DEFAULTS: [&str; 3] = ["refs/heads/main", "refs/heads/master", "refs/heads/trunk"];

pub(super) fn branch(
    store: &SubjectStore<'_>,
    name: &str,
    base: Option<&str>,
) -> Result<ResolvedSubject, Error> {
    let (reference, tip) = tip(store.repo, name)?;
    let (since, base) = match base {
        Some(base) => {
            let commit = commit(store.repo, base)?;
            (base.to_owned(), parted(store.repo, &commit, &tip)?)
        }
        None => default_base(store.repo, name, reference.as_deref(), &tip)?,
    };
    Ok(ResolvedSubject {
        title: format!("Branch {}, since it left {since}", short_name(name)),
        key: format!("branch:{}", short_name(name)),
        said: about::commits(&store.borrowing, &base, &tip)?,
        notes: Vec::new(),
        nothing: format!("{name} has nothing that {since} does not have; name an older commit with --base"),
        base,
        commit: tip,
    })
}

pub(super) fn commits(store: &SubjectStore<'_>, range: &str) -> Result<ResolvedSubject, Error> {
    let (base, tip, typed, title) = match range.split_once("...").or_else(|| range.split_once("..")) {
        Some((from, to)) => {
            let from = commit(store.repo, or_head(from))?;
            let tip = commit(store.repo, or_head(to))?;
            (parted(store.repo, &from, &tip)?, tip, or_head(to), "Commits")
        }
        None => {
            let tip = commit(store.repo, range)?;
            (first_parent(store, &tip)?, tip, range, "Commit")
        }
    };
    Ok(ResolvedSubject {
        title: format!("{title} {range}"),
        key: format!("commits:{typed}"),
        said: about::commits(&store.borrowing, &base, &tip)?,
        notes: Vec::new(),
        nothing: format!("{range} changes no file"),
        base,
        commit: tip,
    })
}

fn or_head(name: &str) -> &str {
    if name.is_empty() { "HEAD" } else { name }
}

/// HEAD; in a repository without commits, an empty one that we make up.
pub(super) fn head(store: &SubjectStore<'_>) -> Result<ObjectId, Error> {
    if let Some(head) = lookup(store.repo, "HEAD")? {
        return Ok(head);
    }
    let args = ["rev-parse", "--verify", "-q", "HEAD"];
    if GitCommand::new(&store.repo.git_dir)?.args(args).run()?.status.success() {
        return Err(no_such(store.repo, "HEAD"));
    }
    Ok(store.empty_root()?)
}

/// The commit of a name, or HEAD.
pub(super) fn commit_or_head(store: &SubjectStore<'_>, name: Option<&str>) -> Result<ObjectId, Error> {
    name.map_or_else(|| head(store), |name| commit(store.repo, name))
}

/// The commit a name refers to.
pub(super) fn commit(repo: &Repo, name: &str) -> Result<ObjectId, Error> {
    lookup(repo, name)?.ok_or_else(|| no_such(repo, name))
}

fn lookup(repo: &Repo, name: &str) -> Result<Option<ObjectId>, runner::Error> {
    if name.is_empty() || name.contains('\0') {
        return Ok(None);
    }
    let commit = format!("{name}^{{commit}}");
    let args = ["rev-parse", "--verify", "-q", "--end-of-options", &commit];
    let output = GitCommand::new(&repo.git_dir)?.args(args).run()?;
    Ok(if output.status.success() { ObjectId::parse(output.line()).ok() } else { None })
}

/// A branch here, a branch there, or anything else that names a commit.
fn tip(repo: &Repo, name: &str) -> Result<(Option<String>, ObjectId), Error> {
    if !name.contains('\0') {
        for kind in ["", "refs/heads/", "refs/remotes/"] {
            let reference = format!("{kind}{name}");
            if let Some(tip) = repo.resolve(&reference)?.filter(|_| reference.starts_with("refs/")) {
                return Ok((Some(reference), tip));
            }
        }
    }
    Ok((None, commit(repo, name)?))
}

fn default_base(
    repo: &Repo,
    name: &str,
    reference: Option<&str>,
    tip: &ObjectId,
) -> Result<(String, ObjectId), Error> {
    let mut candidates = main_lines(repo, reference)?;
    if candidates.is_empty() {
        let checked_out = repo.current_branch()?.unwrap_or_else(|| "HEAD".to_owned());
        candidates.extend(there(repo, &[&checked_out], reference)?);
    }
    let nothing_to_compare = || Error::NoBase { branch: short_name(name).to_owned() };
    let since = candidates.first().map(|(name, _)| name.clone()).ok_or_else(nothing_to_compare)?;
    // With several, git answers where the branch left the last of them.
    let args = ["merge-base", tip.as_str()];
    let output = repo.side()?.args(args).args(candidates.iter().map(|(_, oid)| oid.as_str())).run()?;
    let base = ObjectId::parse(output.line()).map_err(|_| nothing_to_compare())?;
    Ok((since, base))
}

/// The main line as the remote names it, there and here; else one of the usual names.
fn main_lines(repo: &Repo, but: Option<&str>) -> Result<Vec<(String, ObjectId)>, Error> {
    const REMOTE: &str = "refs/remotes/origin/";
    let output = repo.refs()?.args(["symbolic-ref", "-q", "refs/remotes/origin/HEAD"]).run()?;
    let remote = String::from_utf8_lossy(output.line()).into_owned();
    if let Some(name) = remote.strip_prefix(REMOTE) {
        let local = format!("refs/heads/{name}");
        let found = there(repo, &[&local, &remote], but)?;
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Ok(there(repo, &DEFAULTS, but)?.into_iter().take(1).collect())
}

/// Those of the refs that exist, by the names people use; a branch is not its own base.
fn there(repo: &Repo, references: &[&str], but: Option<&str>) -> Result<Vec<(String, ObjectId)>, Error> {
    let mut found = Vec::new();
    for reference in references.iter().filter(|reference| but != Some(**reference)) {
        let oid = if *reference == "HEAD" { lookup(repo, "HEAD")? } else { repo.resolve(reference)? };
        let name = short_name(reference);
        found.extend(oid.map(|oid| (name.strip_prefix("refs/remotes/").unwrap_or(name).to_owned(), oid)));
    }
    Ok(found)
}

/// Where `tip` left `from`; `from` itself when they have nothing in common.
pub(super) fn parted(repo: &Repo, from: &ObjectId, tip: &ObjectId) -> Result<ObjectId, Error> {
    Ok(change::merge_base(repo, from, tip)?.unwrap_or_else(|| from.clone()))
}

fn first_parent(store: &SubjectStore<'_>, commit: &ObjectId) -> Result<ObjectId, Error> {
    let shallow = files::read_beneath(&store.repo.common_dir, b"shallow", u64::MAX).ok().flatten();
    let cut = shallow
        .is_some_and(|list| list.split(|byte| *byte == b'\n').any(|line| line == commit.as_str().as_bytes()));
    if cut {
        return Err(Error::CutOff { commit: commit.clone() });
    }
    let args = ["rev-list", "--parents", "-n", "1", commit.as_str()];
    let output = store.repo.side()?.args(args).done()?;
    match output.line().split(|byte| *byte == b' ').nth(1) {
        Some(parent) => ObjectId::parse(parent).map_err(|error| {
            runner::Error::Unexpected { what: "rev-list".to_owned(), answer: error.to_string() }.into()
        }),
        None => Ok(store.empty_root()?),
    }
}

/// Lists the existing names, for a name that was mistyped.
fn no_such(repo: &Repo, name: &str) -> Error {
    const SHOWN: usize = 5;
    let args = ["for-each-ref", "--sort=-committerdate", "--format=%(refname)", "refs/heads", "refs/remotes"];
    let listing = repo.refs().and_then(|git| git.args(args).cap(1024 * 1024).done());
    let listing =
        listing.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let short = |line: &str| short_name(line.strip_prefix("refs/remotes/").unwrap_or(line)).to_owned();
    let mut names: Vec<String> = listing.lines().map(short).collect();
    let near = match closest(name, &names) {
        Some(near) => format!("; did you mean `{near}`?"),
        None if names.is_empty() => "; there is no branch yet".to_owned(),
        None => {
            names.truncate(SHOWN);
            format!("; the latest branches are {}", names.join(", "))
        }
    };
    Error::NoSuchName { name: name.escape_debug().to_string(), near }
}
