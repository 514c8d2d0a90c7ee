//! Where branches are checked out: the main working tree and the linked ones, and the operations in progress there.

use std::fs;
use std::path::{Path, PathBuf};

use super::native::{AskGit, Native, Refs};
use super::repo::{Repo, short_name};
use super::{files, runner};
use crate::platform::files as os;

/// One working tree of the user's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    pub tree: PathBuf,
    /// Its own git directory, with its own HEAD and index.
    pub git_dir: PathBuf,
    /// The full name of the branch, unless HEAD is detached.
    pub branch: Option<String>,
}

/// Something the user has begun and not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub tree: PathBuf,
    /// `merge`, `rebase`, `cherry-pick`, `revert`, `bisect` or `am`.
    pub what: &'static str,
}

const MARKS: &[(&str, &str)] = &[
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply/rebasing", "rebase"),
    ("rebase-apply", "am"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
    ("sequencer", "cherry-pick"),
];

/// Files that name the branch which comes back when the operation ends, while HEAD is detached.
const RETURNS: &[&str] = &["rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"];

pub(super) fn list(repo: &Repo) -> Result<Vec<Checkout>, runner::Error> {
    if let Ok(only) = only_tree(repo) {
        return Ok(vec![only]);
    }
    let listing = repo.refs()?.args(["worktree", "list", "--porcelain", "-z"]).done()?.stdout;
    let mut found = Vec::new();
    let mut first = true;
    let mut entry: Vec<&[u8]> = Vec::new();
    for line in listing.split(|byte| *byte == 0) {
        if !line.is_empty() {
            entry.push(line);
        } else if !entry.is_empty() {
            found.extend(checkout(repo, &entry, first));
            (first, entry) = (false, Vec::new());
        }
    }
    Ok(found)
}

/// The main working tree, if it is the one we were opened in and there are no others.
fn only_tree(repo: &Repo) -> Native<Checkout> {
    let refs = Refs::of(&repo.common_dir)?;
    match &repo.work_tree {
        Some(tree) if repo.git_dir == repo.common_dir && refs.linked_trees()?.is_empty() => {
            let branch = refs.checked_out(&repo.git_dir)?;
            Ok(Checkout { tree: tree.clone(), git_dir: repo.common_dir.clone(), branch })
        }
        Some(_) | None => Err(AskGit),
    }
}

/// One entry of the listing; `None` for a bare repository and for a tree that is not there.
fn checkout(repo: &Repo, entry: &[&[u8]], main: bool) -> Option<Checkout> {
    if entry.contains(&b"bare".as_slice()) {
        return None;
    }
    let field = |name: &[u8]| entry.iter().find_map(|line| line.strip_prefix(name));
    let branch = field(b"branch ").map(|name| String::from_utf8_lossy(name).into_owned());
    let listed = files::owned_path(field(b"worktree ")?);
    if !main {
        let tree = fs::canonicalize(listed).ok()?;
        return Some(Checkout { git_dir: linked_git_dir(repo, &tree)?, tree, branch });
    }
    // Git lists the main tree by guessing from the git directory's name; our own answer is better.
    let tree = match &repo.work_tree {
        Some(tree) if repo.git_dir == repo.common_dir => tree.clone(),
        Some(_) | None => fs::canonicalize(listed).ok()?,
    };
    Some(Checkout { tree, git_dir: repo.common_dir.clone(), branch })
}

fn linked_git_dir(repo: &Repo, tree: &Path) -> Option<PathBuf> {
    let link = fs::read(tree.join(".git")).ok()?;
    let dir = link.strip_prefix(b"gitdir: ")?;
    let dir = fs::canonicalize(tree.join(files::path(dir.strip_suffix(b"\n").unwrap_or(dir)))).ok()?;
    let common = fs::read(dir.join("commondir")).ok()?;
    let common =
        fs::canonicalize(dir.join(files::path(common.strip_suffix(b"\n").unwrap_or(&common)))).ok()?;
    (common == repo.common_dir).then_some(dir)
}

/// What is under way in the trees that have `branch` checked out, or will have it again when it ends.
pub(super) fn operations(checkouts: &[Checkout], branch: &str) -> Vec<Operation> {
    let concerned = checkouts.iter().filter(|checkout| {
        checkout.branch.as_deref() == Some(branch)
            || RETURNS.iter().any(|file| returns(checkout, file, branch))
    });
    concerned.filter_map(operation).collect()
}

fn returns(checkout: &Checkout, file: &str, branch: &str) -> bool {
    let Ok(name) = fs::read(checkout.git_dir.join(file)) else { return false };
    let name = name.trim_ascii_end();
    name == branch.as_bytes() || name == short_name(branch).as_bytes()
}

fn operation(checkout: &Checkout) -> Option<Operation> {
    let (_, what) = MARKS.iter().find(|(mark, _)| files::exists(&checkout.git_dir.join(mark)))?;
    Some(Operation { tree: checkout.tree.clone(), what })
}

impl Checkout {
    /// The tree's name as text, for a message.
    pub fn name(&self) -> String {
        super::change::quote_path(os::bytes(&self.tree))
    }
}
