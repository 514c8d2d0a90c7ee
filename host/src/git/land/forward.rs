//! Moving a branch forward, with the working trees that have it checked out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::settle::{Goal, SettleResult, rehearse, settle};
use super::{Error, LandAttempt, Move};
use crate::failpoint;
use crate::git::change::{self, ChangedPath, GITLINK};
use crate::git::checkouts::{self, Checkout};
use crate::git::native::CopyIndex;
use crate::git::repo::Repo;
use crate::git::runner::{self, Conversation, GitCommand};
use crate::git::workspace::update;
use crate::git::{ObjectId, files};
use crate::platform::{files as os, machine};

/// How long the user's own git may hold the index before we give up.
const PATIENCE: Duration = Duration::from_secs(3);

/// Moves the branch from `old` to `new` if it still is at `old`, and the user's files with it if none of the
/// user's own work is in the way. Otherwise nothing is touched.
pub fn land(repo: &Repo, step: &Move) -> Result<LandAttempt, Error> {
    let now = repo.resolve(&step.branch)?;
    if now.as_ref() != Some(&step.old) {
        return Ok(LandAttempt::BranchMoved { now });
    }
    if !repo.is_ancestor(&step.old, &step.new)? {
        return Err(Error::NotForward { old: step.old.clone(), new: step.new.clone() });
    }
    failpoint::pass("land.begun");
    let mut held = match hold(repo, step)? {
        Hold::Held(held) => held,
        Hold::Refused(landed) => return Ok(landed),
    };
    failpoint::pass("land.prepared");
    let checkouts = repo.checkouts()?;
    let concerned: Vec<&Checkout> =
        checkouts.iter().filter(|one| one.branch.as_deref() == Some(&step.branch)).collect();
    let changed = change::touched(repo, &step.old, &step.new)?;
    if let Some(reason) = reason_not_to(repo, &checkouts, &concerned, &changed, step)? {
        return Ok(reason);
    }
    if let Some(refused) = move_trees(repo, &concerned, &changed, step)? {
        return Ok(refused);
    }
    failpoint::pass("land.moved");
    if let Err(error) = held.say(b"commit\0").and_then(|()| held.expect("commit: ok")) {
        drop(held);
        // The answer may be lost although the branch moved; the branch itself knows.
        if repo.resolve(&step.branch)?.as_ref() != Some(&step.new) {
            put_back(repo, &concerned, &changed, &error)?;
            return Err(error.into());
        }
    }
    failpoint::pass("land.committed");
    Ok(LandAttempt::Moved { trees: concerned.iter().map(|one| one.tree.clone()).collect() })
}

enum Hold {
    Held(Conversation),
    Refused(LandAttempt),
}

/// Locks the ref at its old value: until the conversation ends, no other process can move it.
fn hold(repo: &Repo, step: &Move) -> Result<Hold, Error> {
    let began = Instant::now();
    loop {
        let error = match prepared(repo, step) {
            Ok(held) => return Ok(Hold::Held(held)),
            Err(error) => error,
        };
        let now = repo.resolve(&step.branch)?;
        if now.as_ref() != Some(&step.old) {
            return Ok(Hold::Refused(LandAttempt::BranchMoved { now }));
        }
        if is_out_of_space(&error.to_string()) {
            return Err(error);
        }
        if began.elapsed() > PATIENCE {
            return Ok(Hold::Refused(LandAttempt::Busy { what: error.to_string() }));
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// A git that exited before it was asked gives no better reason than one that refuses: both are asked again.
fn prepared(repo: &Repo, step: &Move) -> Result<Conversation, Error> {
    let mut held = open_transaction(repo, step)?;
    held.expect("prepare: ok")?;
    Ok(held)
}

fn open_transaction(repo: &Repo, step: &Move) -> Result<Conversation, Error> {
    let message = "archeflow: land";
    let mut held = repo.refs()?.args(["update-ref", "-m", message, "-z", "--stdin"]).converse()?;
    let commands =
        [b"start\0".as_slice(), &update(&step.branch, &step.new, &step.old), b"prepare\0"].concat();
    held.say(&commands)?;
    held.expect("start: ok")?;
    Ok(held)
}

/// The first reason not to touch the user's trees.
fn reason_not_to(
    repo: &Repo,
    checkouts: &[Checkout],
    concerned: &[&Checkout],
    changed: &[ChangedPath],
    step: &Move,
) -> Result<Option<LandAttempt>, Error> {
    if let Some(operation) = checkouts::operations(checkouts, &step.branch).first() {
        let what = format!("a {} is in progress in {}", operation.what, operation.tree.display());
        return Ok(Some(LandAttempt::Busy { what }));
    }
    for checkout in concerned {
        let lock = checkout.git_dir.join("index.lock");
        if !vanishes(&lock, PATIENCE) {
            return Ok(Some(LandAttempt::Busy { what: format!("{} exists", lock.display()) }));
        }
        if let Some(what) = same_but_for_case(repo, checkout, changed, step)? {
            return Ok(Some(LandAttempt::Busy { what }));
        }
        if let Some(what) = filtered_by_the_repository(repo, checkout, changed)? {
            return Ok(Some(LandAttempt::Busy { what }));
        }
        let paths = in_the_way(repo, checkout, changed)?;
        if !paths.is_empty() {
            return Ok(Some(LandAttempt::Dirty { paths: paths.into_iter().collect() }));
        }
        // Times and numbers of files change by a touch or a copy while their content is the same. Git takes such a
        // file for changed until somebody looks (S-11); the answer is 1 when the user has changes elsewhere.
        match in_tree(repo, checkout)?.args(["update-index", "--refresh"]).done() {
            // Without room for the index, git would take such files for changed all the same (S-10).
            Err(error @ runner::Error::Failed { .. }) if is_out_of_space(&error.to_string()) => {
                return Err(error.into());
            }
            Ok(_) | Err(runner::Error::Failed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if let Err(error @ runner::Error::Failed { .. }) = rehearse(repo, checkout, changed)
            && !is_out_of_space(&error.to_string())
        {
            if is_full(checkout) {
                return Err(error.into());
            }
            let runner::Error::Failed { stderr, .. } = error else { return Err(error.into()) };
            return Ok(Some(LandAttempt::Busy { what: stderr }));
        }
    }
    Ok(None)
}

/// A changed path and another one of the new commit that the tree's file system would take for one file.
fn same_but_for_case(
    repo: &Repo,
    checkout: &Checkout,
    changed: &[ChangedPath],
    step: &Move,
) -> Result<Option<String>, Error> {
    if !os::ignores_case(&checkout.tree) {
        return Ok(None);
    }
    let files = repo.list_dir(&step.new, b"")?;
    let names = files.iter().map(|file| file.path.as_slice());
    let changed = changed.iter().map(|one| one.path.as_slice());
    Ok(clash(names, changed).map(|(one, other)| {
        let (one, other) = (change::quote_path(one), change::quote_path(other));
        format!(
            "{one} and {other} are one name to the file system of {}, which ignores case",
            checkout.tree.display()
        )
    }))
}

/// Two names for one file, at least one of which changed; also a file with the name of a folder. Those that were there
/// before are not this change's fault.
pub(crate) fn clash<'a, 'b>(
    names: impl Iterator<Item = &'a [u8]>,
    changed: impl Iterator<Item = &'b [u8]>,
) -> Option<(&'a [u8], &'a [u8])> {
    let touched: BTreeSet<String> = changed.map(os::folded).collect();
    let names: Vec<&[u8]> = names.collect();
    let files: BTreeMap<String, &[u8]> = names.iter().map(|name| (os::folded(name), *name)).collect();
    let is_touched = |name: &[u8]| touched.contains(&os::folded(name));
    let below_a_file = |name: &'a [u8]| {
        let slashes = (0..name.len()).filter(|at| name[*at] == b'/');
        let mut folders = slashes.map(|at| &name[..at]);
        let file =
            folders.find_map(|folder| files.get(&os::folded(folder)).filter(|file| **file != folder))?;
        (is_touched(name) || is_touched(file)).then_some((*file, name))
    };
    os::same_when_folded(names.iter().copied().filter(|name| is_touched(name)))
        .or_else(|| names.iter().find_map(|name| below_a_file(name)))
}

/// A changed path whose filter only the repository's own configuration names. It is not run, and without it the file
/// would be written wrong.
fn filtered_by_the_repository(
    repo: &Repo,
    checkout: &Checkout,
    changed: &[ChangedPath],
) -> Result<Option<String>, Error> {
    let filters = repo.local_filters(&checkout.git_dir)?;
    if filters.is_empty() {
        return Ok(None);
    }
    // Which filter a path has in the new commit is known only when its attributes are there.
    if let Some(attributes) = changed.iter().find(|one| one.path.ends_with(b".gitattributes")) {
        return Ok(Some(format!(
            "{} changes while this repository's .git/config names filters, which are not run; merge the branch yourself",
            change::quote_path(&attributes.path)
        )));
    }
    let paths: Vec<u8> = changed.iter().flat_map(|one| [one.path.as_slice(), b"\0"].concat()).collect();
    let listing =
        in_tree(repo, checkout)?.args(["check-attr", "-z", "--stdin", "filter"]).input(paths).done()?.stdout;
    let fields: Vec<&[u8]> = listing.split(|byte| *byte == 0).collect();
    let found = fields.chunks_exact(3).find(|row| filters.contains(row[2]));
    Ok(found.map(|row| {
        format!(
            "{} has the filter {}, which only this repository's .git/config names, so it is not run; name it in your own ~/.gitconfig, or merge the branch yourself",
            change::quote_path(row[0]),
            change::quote_path(row[2])
        )
    }))
}

/// What git says when the disk, a quota or a limit stopped it: nobody else is busy then (S-10). Of a file of a checkout
/// that it can't write, git gives no reason.
fn is_out_of_space(stderr: &str) -> bool {
    let stderr = stderr.to_ascii_lowercase();
    let words = ["no space left on device", "disk quota exceeded", "file too large", "unable to write"];
    words.iter().any(|word| stderr.contains(word))
}

/// Whether there is hardly any room where git works: it then refuses for reasons that sound like somebody's changes,
/// since it could not bring its index up to date.
fn is_full(checkout: &Checkout) -> bool {
    machine::is_nearly_full(&checkout.tree) || machine::is_nearly_full(&checkout.git_dir)
}

/// Whether a lock file is gone, or goes within the time given.
pub(super) fn vanishes(lock: &Path, patience: Duration) -> bool {
    let began = Instant::now();
    while files::exists(lock) {
        if began.elapsed() > patience {
            return false;
        }
        thread::sleep(Duration::from_millis(50));
    }
    true
}

/// The touched paths where index or disk are not exactly as in the old commit.
fn in_the_way(repo: &Repo, checkout: &Checkout, changed: &[ChangedPath]) -> Result<BTreeSet<Vec<u8>>, Error> {
    let touched: BTreeSet<&[u8]> = changed.iter().map(|one| one.path.as_slice()).collect();
    let mut found = BTreeSet::new();
    let status = in_tree(repo, checkout)?
        .args(["status", "--porcelain=v1", "-z", "--untracked-files=no", "--no-renames"])
        .arg("--ignore-submodules=dirty")
        .done()?
        .stdout;
    for entry in status.split(|byte| *byte == 0).filter(|entry| entry.len() > 3) {
        let unmerged = matches!(&entry[..2], b"DD" | b"AU" | b"UD" | b"UA" | b"DU" | b"AA" | b"UU");
        let path = &entry[3..];
        let beside = touched.iter().any(|touched| is_beneath(path, touched) || is_beneath(touched, path));
        if unmerged || touched.contains(path) || (beside && entry[0] != b'D' && entry[1] != b'D') {
            found.insert(path.to_vec());
        }
    }
    // Entries that git is configured to skip: it would overwrite changes it did not see.
    for path in skipped(repo, checkout)? {
        if touched.contains(path.as_slice()) && files::exists(&checkout.tree.join(files::path(&path))) {
            found.insert(path);
        }
    }
    found.extend(unknown_in_the_way(&checkout.tree, changed));
    Ok(found)
}

fn skipped(repo: &Repo, checkout: &Checkout) -> Result<Vec<Vec<u8>>, Error> {
    if let Ok(index) = CopyIndex::read(&checkout.git_dir.join("index"), &repo.format) {
        return Ok(index.left_out());
    }
    let flags = in_tree(repo, checkout)?.args(["ls-files", "-v", "-z"]).done()?.stdout;
    let entries = flags.split(|byte| *byte == 0).filter(|entry| entry.len() > 2 && entry[0] != b'H');
    Ok(entries.map(|entry| entry[2..].to_vec()).collect())
}

fn is_beneath(path: &[u8], dir: &[u8]) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.starts_with(b"/"))
}

/// Things on disk, ignored or not, that are where the new commit has a path and the old one had none.
fn unknown_in_the_way(tree: &Path, changed: &[ChangedPath]) -> BTreeSet<Vec<u8>> {
    let leaves: BTreeSet<&[u8]> =
        changed.iter().filter(|one| !one.old_oid.is_zero()).map(|one| one.path.as_slice()).collect();
    let mut found = BTreeSet::new();
    for one in changed.iter().filter(|one| !one.new_oid.is_zero()) {
        // A parent that is not a directory must be a path that leaves.
        let slashes = one.path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        for parent in slashes.map(|(at, _)| &one.path[..at]) {
            let meta = fs::symlink_metadata(tree.join(files::path(parent)));
            if meta.is_ok_and(|meta| !meta.is_dir()) && !leaves.contains(parent) {
                found.insert(parent.to_vec());
            }
        }
        if !one.old_oid.is_zero() {
            continue;
        }
        match fs::symlink_metadata(tree.join(files::path(&one.path))) {
            // An unused submodule directory is empty and stays.
            Ok(meta) if meta.is_dir() && one.new_mode == GITLINK => {}
            Ok(meta) if meta.is_dir() => strangers(tree, &one.path, &leaves, &mut found),
            // Reached through a parent link that itself leaves: judged above.
            Ok(_) if behind_link(tree, &one.path) => {}
            Ok(_) => drop(found.insert(one.path.clone())),
            Err(_) => {}
        }
    }
    found
}

fn behind_link(tree: &Path, path: &[u8]) -> bool {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let mut parents = slashes.map(|(at, _)| tree.join(files::path(&path[..at])));
    parents.any(|parent| fs::symlink_metadata(parent).is_ok_and(|meta| meta.is_symlink()))
}

/// Files in a directory that is to become a file, other than those that are removed with it.
fn strangers(tree: &Path, dir: &[u8], leaves: &BTreeSet<&[u8]>, found: &mut BTreeSet<Vec<u8>>) {
    let mut left = vec![dir.to_vec()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(tree.join(files::path(&dir))).into_iter().flatten().flatten() {
            let path = [&dir, &b"/"[..], os::bytes(&entry.file_name())].concat();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(path);
            } else if !leaves.contains(path.as_slice()) {
                found.insert(path);
            }
        }
    }
}

/// Moves every tree, or none.
fn move_trees(
    repo: &Repo,
    concerned: &[&Checkout],
    changed: &[ChangedPath],
    step: &Move,
) -> Result<Option<LandAttempt>, Error> {
    for (n, checkout) in concerned.iter().enumerate() {
        let moved = in_tree(repo, checkout)?
            .args(["read-tree", "-m", "-u", step.old.as_str(), step.new.as_str()])
            .done()
            .and_then(|_| sync(&checkout.tree));
        let Err(error) = moved else { continue };
        put_back(repo, &concerned[..=n], changed, &error)?;
        return match error {
            // Git looked once more and found something we did not: its refusal is an answer.
            runner::Error::Failed { ref stderr, .. } if is_out_of_space(stderr) || is_full(checkout) => {
                Err(error.into())
            }
            runner::Error::Failed { stderr, .. } => Ok(Some(LandAttempt::Busy { what: stderr })),
            runner::Error::Missing
            | runner::Error::TooOld { .. }
            | runner::Error::Io { .. }
            | runner::Error::TimedOut { .. }
            | runner::Error::Unexpected { .. } => Err(error.into()),
        };
    }
    Ok(None)
}

/// Undoes a half-made move: every touched path goes back to the old content.
fn put_back(
    repo: &Repo,
    trees: &[&Checkout],
    changed: &[ChangedPath],
    cause: &runner::Error,
) -> Result<(), Error> {
    // Git removes its lock whenever it ends by itself; only after we ended it can the lock be ours to remove.
    let ours = matches!(cause, runner::Error::TimedOut { .. });
    for (n, checkout) in trees.iter().enumerate() {
        let lock = checkout.git_dir.join("index.lock");
        if ours && n + 1 == trees.len() && files::exists(&lock) {
            files::remove(&lock).map_err(|source| Error::Io { path: lock.clone(), source })?;
        }
        if let SettleResult::Stopped { path, why } = settle(repo, checkout, changed, Goal::Old)? {
            let path = change::quote_path(&path);
            return Err(Error::LeftHalfway { cause: cause.to_string(), path, why });
        }
    }
    Ok(())
}

/// The files must be on disk before the branch moves.
fn sync(tree: &Path) -> Result<(), runner::Error> {
    let io = |source| runner::Error::Io { what: "read-tree".to_owned(), source };
    let dir = File::open(tree).map_err(io)?;
    os::sync_all_around(&dir).map_err(io)
}

/// A command on one of the user's working trees, with the user's own configuration but no hooks.
pub(super) fn in_tree(repo: &Repo, checkout: &Checkout) -> Result<GitCommand, runner::Error> {
    repo.in_user_tree(&checkout.git_dir, &checkout.tree)
}

/// Moves a branch that no tree has checked out, or whose trees are there already.
pub(super) fn swap(repo: &Repo, branch: &str, new: &ObjectId, old: &ObjectId) -> Result<bool, runner::Error> {
    let args = ["update-ref", "-m", "archeflow: land", "-z", "--stdin"];
    let output = repo.refs()?.args(args).input(update(branch, new, old)).run()?;
    Ok(output.status.success())
}

#[cfg(test)]
mod tests {
    use super::{clash, is_out_of_space};

    #[test]
    fn s_10_what_a_full_disk_stops_is_not_busy() {
        for (stderr, full) in [
            ("error: unable to write file big.txt", true),
            ("fatal: Unable to write new index file", true),
            ("error: unable to create file a: No space left on device", true),
            ("fatal: Unable to create '/r/.git/index.lock': File exists.", false),
            ("error: Entry 'a' not uptodate. Cannot merge.", false),
        ] {
            assert_eq!(is_out_of_space(stderr), full, "{stderr}");
        }
    }

    #[test]
    fn s_10_only_a_change_that_brings_a_second_name_for_a_file_is_held() {
        let rows: [(&[&str], &[&str], bool); 9] = [
            (&["README", "src/a"], &["src/a"], false),
            (&["README", "Readme"], &["Readme"], true),
            // Renamed to another case: the old name is gone from the new commit.
            (&["Readme"], &["README", "Readme"], false),
            // There before this change.
            (&["README", "Readme", "src/a"], &["src/a"], false),
            // Composed and decomposed, which some file systems take for one.
            (&["caf\u{e9}", "cafe\u{301}"], &["caf\u{e9}"], true),
            (&["CAF\u{c9}", "cafe\u{301}"], &["cafe\u{301}"], true),
            (&["caf\u{e9}", "cafe"], &["cafe"], false),
            // A link named like a folder would lead files of the folder elsewhere.
            (&["A/hook", "a"], &["a"], true),
            (&["A/hook", "b", "a/other"], &["b"], false),
        ];
        for (names, changed, held) in rows {
            let bytes = |list: &'static [&'static str]| list.iter().map(|name| name.as_bytes());
            assert_eq!(clash(bytes(names), bytes(changed)).is_some(), held, "{names:?} {changed:?}");
        }
    }
}
