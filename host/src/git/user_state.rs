//! What an attempt must leave alone in the user's repository, and what of it changed while it worked (S-04).
//!
//! An attempt in a sandbox can't reach it, so only what could make git run a program is compared then: the user may be
//! working there meanwhile. Without a sandbox nobody can tell who changed what, and everything is compared. What this
//! program landed itself in that time, for another run, is no change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use super::change::quote_path;
use super::checkouts::Checkout;
use super::native::{CopyIndex, Refs};
use super::repo::Repo;
use super::{ObjectId, change, runner};
use crate::platform::files as os;

/// Changes that a message lists by name.
const NAMED: usize = 5;

/// The user's repository at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserState {
    /// See [`Repo::fingerprint`].
    configuration: String,
    /// Branches, tags, the stash; none of ours.
    refs: BTreeMap<String, String>,
    /// The refs that keep the work of earlier attempts and runs. Other runs add to them, and move those of what they
    /// build to land.
    kept: BTreeSet<String>,
    checkouts: BTreeMap<PathBuf, CheckoutState>,
    /// Commits that this program built to land.
    built: BTreeSet<String>,
    /// The length of each log of a ref. Logs only grow, unless somebody has git forget what they keep.
    logs: BTreeMap<PathBuf, u64>,
    /// Large files of git-lfs.
    lfs: BTreeMap<Vec<u8>, FileStamp>,
}

/// Number, mode and size of a file, and its times.
type FileStamp = ([u64; 4], [i64; 4]);

/// Its times say only that something in it was made and removed.
const EMPTY_FOLDER: FileStamp = ([0; 4], [0; 4]);

#[derive(Debug, Clone, PartialEq, Eq)]
struct CheckoutState {
    head: Vec<u8>,
    index: blake3::Hash,
    /// Every file, by its path in the checkout.
    files: BTreeMap<Vec<u8>, FileStamp>,
}

impl UserState {
    /// What an attempt in a sandbox could reach if the sandbox had a hole, and what could make our own git run a program.
    pub fn configuration(repo: &Repo) -> Self {
        Self {
            configuration: repo.fingerprint(),
            refs: BTreeMap::new(),
            kept: BTreeSet::new(),
            checkouts: BTreeMap::new(),
            built: BTreeSet::new(),
            logs: BTreeMap::new(),
            lfs: BTreeMap::new(),
        }
    }

    /// Everything: configuration, refs, and HEAD, index and files of each checkout.
    pub fn whole(repo: &Repo) -> Result<Self, runner::Error> {
        let mut state = Self::configuration(repo);
        for (name, commit) in all_refs(repo)? {
            if is_candidate(&name) {
                state.built.insert(commit.clone());
            }
            if name.starts_with("refs/archeflow/keep/") && !is_candidate(&name) {
                state.kept.insert(name.clone());
            }
            if !name.starts_with("refs/archeflow/") && !name.starts_with("refs/heads/archeflow/") {
                state.refs.insert(name, commit);
            }
        }
        for checkout in repo.checkouts()? {
            let found = CheckoutState::of(repo, &checkout)?;
            state.logs.extend(length_of(checkout.git_dir.join("logs/HEAD")));
            state.checkouts.insert(checkout.tree, found);
        }
        let mut logs = BTreeMap::new();
        walk(&repo.common_dir.join("logs/refs"), &mut logs);
        let of_others = logs.keys().filter(|log| !is_log_of_ours(log));
        state.logs.extend(
            of_others.filter_map(|log| length_of(repo.common_dir.join("logs/refs").join(os::name(log)))),
        );
        walk(&repo.common_dir.join("lfs"), &mut state.lfs);
        Ok(state)
    }

    /// Those of these refs that are not there.
    pub fn missing<'a>(&self, kept: &'a BTreeSet<String>) -> impl Iterator<Item = &'a String> {
        kept.iter().filter(|name| !self.kept.contains(*name))
    }

    /// What is different now, in plain words; empty if nothing is.
    pub fn changes(&self, repo: &Repo, now: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.configuration != now.configuration {
            let place = repo.common_dir().display();
            found.push(format!(
                "the git configuration (config, hooks, attributes or alternates below {place})"
            ));
        }
        let mut landed = BTreeSet::new();
        for name in self.refs.keys().chain(now.refs.keys()).collect::<BTreeSet<_>>() {
            let (old, new) = (self.refs.get(name), now.refs.get(name));
            let ours = new.is_some_and(|new| now.built.contains(new));
            match (old, new) {
                (Some(old), Some(new)) if old != new && ours => {
                    landed.extend(between(repo, old, new));
                }
                (Some(old), Some(new)) if old != new => {
                    found.push(format!("{name} moved from {} to {}", short(old), short(new)));
                }
                (None, Some(_)) => found.push(format!("{name} is new")),
                (Some(_), None) => found.push(format!("{name} is gone")),
                (Some(_), Some(_)) | (None, None) => {}
            }
        }
        let is_cut = |(log, length): &(&PathBuf, &u64)| now.logs.get(*log).is_none_or(|now| now < *length);
        let cut = self.logs.iter().filter(is_cut);
        found.extend(cut.map(|(log, _)| format!("{} lost entries", log.display())));
        // A landing may have fetched new ones.
        let lfs = self.lfs.iter().filter(|(path, stamp)| now.lfs.get(*path) != Some(stamp));
        found.extend(lfs.map(|(path, _)| format!("{} of git-lfs changed", quote_path(path))));
        let is_new = |path: &&Vec<u8>| landed.is_empty() && !self.lfs.contains_key(*path);
        let new = now.lfs.keys().filter(is_new);
        found.extend(new.map(|path| format!("{} of git-lfs is new", quote_path(path))));
        let gone = self.kept.difference(&now.kept);
        found.extend(gone.map(|name| format!("{name} is gone")));
        for tree in self.checkouts.keys().chain(now.checkouts.keys()).collect::<BTreeSet<_>>() {
            match (self.checkouts.get(tree), now.checkouts.get(tree)) {
                (Some(before), Some(after)) => before.changes(after, tree, &landed, &mut found),
                (None, Some(_)) => found.push(format!("the checkout {} is new", tree.display())),
                (Some(_), None) => found.push(format!("the checkout {} is gone", tree.display())),
                (None, None) => {}
            }
        }
        found
    }
}

fn length_of(log: PathBuf) -> Option<(PathBuf, u64)> {
    let length = fs::symlink_metadata(&log).ok()?.len();
    Some((log, length))
}

/// By its path below `logs/refs`. These go with their refs.
fn is_log_of_ours(path: &[u8]) -> bool {
    path.starts_with(b"archeflow/") || path.starts_with(b"heads/archeflow/")
}

fn all_refs(repo: &Repo) -> Result<Vec<(String, String)>, runner::Error> {
    if let Ok(all) = Refs::of(&repo.common_dir).and_then(|refs| refs.all()) {
        return Ok(all.into_iter().map(|(name, oid)| (name, oid.to_string())).collect());
    }
    let listing = repo.refs()?.args(["for-each-ref", "--format=%(refname) %(objectname)"]).done()?.stdout;
    let text = String::from_utf8_lossy(&listing);
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Ok(pairs.map(|(name, oid)| (name.to_owned(), oid.to_owned())).collect())
}

/// A digest of what is staged: mode, object, stage and path of each entry.
fn staged(repo: &Repo, checkout: &Checkout) -> Result<blake3::Hash, runner::Error> {
    let mut hasher = blake3::Hasher::new();
    if let Ok(index) = CopyIndex::read(&checkout.git_dir.join("index"), &repo.format) {
        for (path, mode, oid) in index.staged() {
            hasher.update(format!("{mode:06o} {oid} 0\t").as_bytes()).update(&path).update(b"\0");
        }
        return Ok(hasher.finalize());
    }
    let git = repo.in_user_tree(&checkout.git_dir, &checkout.tree)?;
    Ok(blake3::hash(&git.args(["ls-files", "--stage", "-z"]).done()?.stdout))
}

/// Whether a ref keeps a commit that was built to land or to take a landing back.
fn is_candidate(name: &str) -> bool {
    let kept = name.strip_prefix("refs/archeflow/keep/").and_then(|name| name.rsplit_once('/'));
    kept.is_some_and(|(_, which)| which.starts_with("merge-") || which.starts_with("revert"))
}

/// The changes as part of a sentence; of many only the first.
pub fn list(changes: &[String]) -> String {
    let named = changes.get(..NAMED).unwrap_or(changes).join(", ");
    match changes.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!("{named} and {more} more"),
        Some(_) | None => named,
    }
}

impl CheckoutState {
    fn of(repo: &Repo, checkout: &Checkout) -> Result<Self, runner::Error> {
        let mut files = BTreeMap::new();
        walk(&checkout.tree, &mut files);
        Ok(Self {
            head: fs::read(checkout.git_dir.join("HEAD")).unwrap_or_default(),
            index: staged(repo, checkout)?,
            files,
        })
    }

    /// Whether this is a folder that is not empty any more: what is in it is listed.
    fn has_below(&self, path: &[u8]) -> bool {
        let next = self.files.range::<[u8], _>((Bound::Excluded(path), Bound::Unbounded)).next();
        path.ends_with(b"/") && next.is_some_and(|(next, _)| next.starts_with(path))
    }

    /// `landed`: paths that a landing of ours moved.
    fn changes(&self, now: &Self, tree: &Path, landed: &BTreeSet<Vec<u8>>, found: &mut Vec<String>) {
        let place = tree.display();
        if self.head != now.head {
            found.push(format!("HEAD of {place}"));
        }
        if self.index != now.index && landed.is_empty() {
            found.push(format!("the index of {place}"));
        }
        for path in self.files.keys().chain(now.files.keys()).collect::<BTreeSet<_>>() {
            let (old, new) = (self.files.get(path), now.files.get(path));
            if old == new || landed.contains(path) || now.has_below(path) {
                continue;
            }
            let what = match (old, new) {
                (None, _) => "is new",
                (_, None) => "is gone",
                (Some(_), Some(_)) => "changed",
            };
            found.push(format!("{} {what}", quote_path(path)));
        }
    }
}

/// Files and empty folders below a folder, without git's and ours. A folder that can't be read counts as empty.
fn walk(tree: &Path, found: &mut BTreeMap<Vec<u8>, FileStamp>) {
    let mut left = vec![tree.to_path_buf()];
    while let Some(folder) = left.pop() {
        let mut entries = fs::read_dir(&folder).into_iter().flatten().flatten().peekable();
        if let (None, Ok(inner)) = (entries.peek(), folder.strip_prefix(tree))
            && folder != tree
        {
            found.insert([os::bytes(inner), b"/"].concat(), EMPTY_FOLDER);
        }
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            if name == ".git" || (folder == tree && name == ".archeflow") {
                continue;
            }
            let Ok(meta) = fs::symlink_metadata(&path) else { continue };
            if meta.is_dir() {
                left.push(path);
            } else if let Ok(inner) = path.strip_prefix(tree) {
                found.insert(os::bytes(inner).to_vec(), (os::shape(&meta), os::times(&meta)));
            }
        }
    }
}

/// The paths that differ between two commits; none if git can't say.
fn between(repo: &Repo, old: &str, new: &str) -> Vec<Vec<u8>> {
    let (Ok(old), Ok(new)) = (ObjectId::parse(old.as_bytes()), ObjectId::parse(new.as_bytes())) else {
        return Vec::new();
    };
    let changed = change::touched(repo, &old, &new).unwrap_or_default();
    changed.into_iter().map(|one| one.path).collect()
}

fn short(commit: &str) -> &str {
    commit.get(..10).unwrap_or(commit)
}
