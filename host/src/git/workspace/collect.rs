//! Finding out what an agent made: its commits, and what it left uncommitted.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::slot::SlotDifference;
use super::{Error, Slot};
use crate::failpoint;
use crate::git::native::{self, AskGit, CopyIndex, DifferenceKind};
use crate::git::repo::{Identity, answered};
use crate::git::{ObjectId, change, files, runner, side};
use crate::platform::files as os;

/// How much content is taken in: of untracked files together, of one changed file, and of the agent's own commits.
#[derive(Debug, Clone, Copy)]
pub struct CollectLimits {
    pub bytes: u64,
    pub files: usize,
}

impl Default for CollectLimits {
    fn default() -> CollectLimits {
        CollectLimits { bytes: 200 * 1024 * 1024, files: 100_000 }
    }
}

/// What an agent made. None of it is in the user's repository before it is published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collected {
    /// Everything: the agent's commits with what it left uncommitted on top.
    pub commit: ObjectId,
    pub tree: ObjectId,
    /// Whether `commit` holds commits by the agent.
    pub committed_by_agent: bool,
    /// Whether the program had to commit something itself.
    pub uncommitted: bool,
    /// Other commits found in the copy that `commit` does not contain; they must be kept too.
    pub stray_heads: Vec<ObjectId>,
    /// Untracked paths left out, for there was too much of them.
    pub skipped: Vec<Vec<u8>>,
    /// Git repositories inside the copy: only their commit's name is recorded, not their content.
    pub nested: Vec<Vec<u8>>,
    /// Anything else worth reporting.
    pub notes: Vec<String>,
}

const IMPORT_DEADLINE: Duration = Duration::from_secs(600);
const REF_CAP: u64 = 16 * 1024 * 1024;
/// Of an agent's index. A larger one is not looked at.
const INDEX_CAP: u64 = 256 * 1024 * 1024;

impl Slot {
    /// Takes in what is in the working copy, on top of `base`. Repeating it finds the same commit, not a twin with
    /// another date that was never published.
    pub fn collect(
        &mut self,
        base: &ObjectId,
        message: &str,
        identity: &Identity,
        limits: CollectLimits,
    ) -> Result<Collected, Error> {
        self.require_tree()?;
        let too_deep = self.disarm()?;
        files::remove(&self.host_dir().join("index.lock")).map_err(|source| self.io(source))?;
        let mut notes: Vec<String> = nested_too_deep(&too_deep).into_iter().collect();
        let heads = self.import(base, limits, &mut notes)?;
        let mut stray_heads = heads.others;
        let mut parent = base.clone();
        if let Some(head) = heads.head {
            if self.contains(&head, base)? {
                parent = head;
            } else {
                notes.push(format!("HEAD {head} does not contain {base}; kept under a ref of its own"));
                stray_heads.insert(0, head);
            }
        }
        let earlier = self.at().filter(|at| at != base && *at != parent);
        let (tree, skipped, nested) = self.snapshot(&parent, limits, &mut notes)?;
        let uncommitted = tree != self.tree_of(&parent)?;
        let commit = if !uncommitted {
            parent.clone()
        } else if let Some(earlier) = earlier.filter(|earlier| self.is_made_of(earlier, &tree, &parent)) {
            earlier
        } else {
            self.commit(&tree, &parent, message, identity)?
        };
        self.set_at(&commit)?;
        let mut strays = Vec::new();
        for head in stray_heads {
            if !strays.contains(&head) && !self.contains(&commit, &head)? {
                strays.push(head);
            }
        }
        self.settle(base, &commit, &strays, skipped.is_empty())?;
        failpoint::pass("work.collected");
        let committed_by_agent = parent != *base;
        Ok(Collected {
            commit,
            tree,
            committed_by_agent,
            uncommitted,
            stray_heads: strays,
            skipped,
            nested,
            notes,
        })
    }

    /// Remembers what must be published before the slot may be used again.
    fn settle(
        &mut self,
        base: &ObjectId,
        commit: &ObjectId,
        strays: &[ObjectId],
        complete: bool,
    ) -> Result<(), Error> {
        let made = std::iter::once(commit).filter(|commit| *commit != base).chain(strays);
        let made: Vec<ObjectId> = made.cloned().collect();
        if made.is_empty() && complete {
            return self.abandon();
        }
        self.unpublished = complete.then_some(made);
        Ok(())
    }

    /// Copies the agent's commits into our own git directory, checking every object on the way.
    fn import(
        &self,
        base: &ObjectId,
        limits: CollectLimits,
        notes: &mut Vec<String>,
    ) -> Result<Heads, Error> {
        let git = self.tree().join(".git");
        if !files::is_real_dir(&git) {
            notes.push("the copy's .git is gone or was replaced; its files are kept".to_owned());
            return Ok(Heads::default());
        }
        let mut heads = Heads::read(&git);
        if heads.head.is_none() {
            notes.push("the copy's HEAD names no commit; its files are kept".to_owned());
        }
        let new: BTreeSet<&ObjectId> = heads.all().filter(|head| *head != base).collect();
        if new.is_empty() {
            return Ok(heads);
        }
        let store = git.join("objects");
        disarm_store(&store, &self.repo.objects).map_err(|source| self.io(source))?;
        let borrowed = side::borrowed(&store);
        let reading = |args: &[&str]| Ok::<_, Error>(self.host()?.env(BORROW, &borrowed).args(args));
        let mut there = Vec::new();
        for head in new {
            let commit = format!("{head}^{{commit}}");
            if reading(&["cat-file", "-e", &commit])?.run()?.status.success() {
                there.push(head.clone());
            } else {
                notes.push(format!("{head} is named in the copy but is not a commit there"));
            }
        }
        for head in there.clone() {
            // The sizes are in the objects' headers: nothing is unpacked to find out that it is too much (S-06).
            let sizes = reading(&["rev-list", "--objects", "--no-object-names", "--stdin"])?
                .input(format!("{head}\n^{base}\n"))
                .pipe_into(reading(&["cat-file", "--batch-check=%(objectsize)"])?);
            let refusal = match sizes.map(|sizes| total(&sizes.stdout)) {
                Ok(bytes) if bytes <= limits.bytes => None,
                Ok(bytes) => Some(format!("they hold {bytes} bytes, and the limit is {}", limits.bytes)),
                Err(error) => Some(error.to_string()),
            };
            if let Some(why) = refusal {
                notes.push(format!("the commits up to {head} can't be taken in: {why}"));
                there.retain(|known| *known != head);
                continue;
            }
            let pack =
                reading(&["pack-objects", "--revs", "--stdout", "--thin", "-q", "--delta-base-offset"])?
                    .input(format!("{head}\n^{base}\n"))
                    .deadline(IMPORT_DEADLINE);
            let unpack = self.host()?.args(["index-pack", "--stdin", "--fix-thin", "--strict"]);
            if let Err(error) = pack.pipe_into(unpack) {
                notes.push(format!("the commits up to {head} can't be taken in: {error}"));
                there.retain(|known| *known != head);
            }
        }
        heads.keep_only(&there, base);
        Ok(heads)
    }

    /// Writes the working copy as a tree, starting from what `parent` has.
    fn snapshot(
        &self,
        parent: &ObjectId,
        limits: CollectLimits,
        notes: &mut Vec<String>,
    ) -> Result<Snapshot, Error> {
        let at = self.at();
        self.forget_at()?;
        let moved =
            at.ok_or(AskGit).and_then(|at| native::move_index(&self.objects()?, self.index(), (&at, parent)));
        if moved.is_err() {
            self.host()?.args(["read-tree", "-i", "-m", parent.as_str()]).done()?;
        }
        self.reveal_client_files()?;
        let mut found = self.differences(false)?;
        found.extend(self.staged_ignored()?);
        let mut skipped = self.too_much(&found, limits);
        let paths = |wanted: &[DifferenceKind]| -> Vec<&[u8]> {
            let wanted = found.iter().filter(|one| wanted.contains(&one.what));
            wanted.map(|one| one.path.as_slice()).collect()
        };
        let missing = paths(&[DifferenceKind::Missing]);
        let mut present = paths(&[DifferenceKind::Changed]);
        let huge: Vec<Vec<u8>> =
            present.iter().filter(|path| self.size(path) > limits.bytes).map(|path| path.to_vec()).collect();
        for path in &huge {
            let (path, bytes) = (change::quote_path(path), self.size(path));
            notes
                .push(format!("{path} has {bytes} bytes and is not taken in; the limit is {}", limits.bytes));
        }
        present.retain(|path| !huge.iter().any(|huge| huge == path));
        if skipped.is_empty() {
            present.extend(paths(&[DifferenceKind::Untracked]));
        }
        skipped.extend(huge);
        self.make_readable(&present);
        let nested = paths(&[DifferenceKind::Nested]);
        if nested.is_empty()
            && let Ok(tree) = self.objects().and_then(|objects| {
                native::take_in(&objects, self.index(), &self.tree(), parent, (&missing, &present))
            })
        {
            return Ok((tree, skipped, Vec::new()));
        }
        self.update_index(&["--force-remove"], &missing)?;
        self.update_index(&["--add", "--replace", "--remove"], &present)?;
        let mut nested = Vec::new();
        for path in paths(&[DifferenceKind::Nested]) {
            let path = path.strip_suffix(b"/").unwrap_or(path);
            if self.update_index(&["--add", "--replace"], &[path]).is_err() {
                let shown = change::quote_path(path);
                notes.push(format!(
                    "{shown} is a git repository without a commit; its content is not taken in"
                ));
            }
            nested.push(path.to_vec());
        }
        let args = ["write-tree"];
        let tree = answered(&args, &self.host()?.args(args).done()?)?;
        Ok((tree, skipped, nested))
    }

    /// Ignored files that the agent staged (`git add -f`): they are work like a new file. Its index names them and
    /// nothing more; what they hold is read from the copy.
    fn staged_ignored(&self) -> Result<Vec<SlotDifference>, Error> {
        let git = self.tree().join(".git");
        let index = git.join("index");
        let is_small = fs::symlink_metadata(&index).is_ok_and(|meta| meta.len() <= INDEX_CAP);
        if !files::is_real_dir(&git) || !files::is_plain_file(&index) || !is_small {
            return Ok(Vec::new());
        }
        let Ok(theirs) = CopyIndex::read(&index, &self.repo.format) else { return Ok(Vec::new()) };
        let ours = self.read_index();
        let known: BTreeSet<&[u8]> = ours.iter().flat_map(CopyIndex::paths).collect();
        let staged: BTreeSet<&[u8]> = theirs.paths().filter(|path| !known.contains(path)).collect();
        if staged.is_empty() {
            return Ok(Vec::new());
        }
        let is_staged = |one: &SlotDifference| {
            one.what == DifferenceKind::Ignored && staged.contains(one.path.as_slice())
        };
        let found = self.differences(true)?.into_iter().filter(is_staged);
        Ok(found.map(|one| SlotDifference { what: DifferenceKind::Untracked, ..one }).collect())
    }

    pub(super) fn update_index(&self, how: &[&str], paths: &[&[u8]]) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        let input: Vec<u8> = paths.iter().flat_map(|path| [*path, b"\0"]).collect::<Vec<_>>().concat();
        let git = self.host()?.arg("update-index").args(how).args(["-z", "--stdin"]).input(input);
        git.deadline(IMPORT_DEADLINE).done()?;
        Ok(())
    }

    /// The untracked paths, when there is more of them than we take in.
    fn too_much(&self, found: &[SlotDifference], limits: CollectLimits) -> Vec<Vec<u8>> {
        let untracked: Vec<&SlotDifference> =
            found.iter().filter(|one| one.what == DifferenceKind::Untracked).collect();
        let bytes: u64 = untracked.iter().map(|one| self.size(&one.path)).sum();
        if bytes <= limits.bytes && untracked.len() <= limits.files {
            return Vec::new();
        }
        untracked.iter().map(|one| one.path.clone()).collect()
    }

    fn size(&self, path: &[u8]) -> u64 {
        fs::symlink_metadata(self.tree().join(files::path(path))).map_or(0, |meta| meta.len())
    }

    fn make_readable(&self, paths: &[&[u8]]) {
        for path in paths {
            let file = self.tree().join(files::path(path));
            let Ok(meta) = fs::symlink_metadata(&file) else { continue };
            let mode = os::mode(&meta);
            if meta.is_file() && mode & 0o400 == 0 {
                drop(os::set_mode(&file, mode | 0o400));
            }
        }
    }

    fn commit(
        &self,
        tree: &ObjectId,
        parent: &ObjectId,
        message: &str,
        identity: &Identity,
    ) -> Result<ObjectId, Error> {
        if let Ok(commit) =
            self.objects().and_then(|objects| objects.commit_on(tree, &[parent], message, identity, false))
        {
            return Ok(commit);
        }
        let args = ["commit-tree", "-p", parent.as_str(), tree.as_str()];
        let git = by(self.host()?, identity).args(args).input(message);
        Ok(answered(&args, &git.done()?)?)
    }

    /// Whether `commit` is `tree` on top of `parent` and nothing else.
    fn is_made_of(&self, commit: &ObjectId, tree: &ObjectId, parent: &ObjectId) -> bool {
        if let Ok((made, parents)) = self.objects().and_then(|objects| objects.made_of(commit)) {
            return made == *tree && parents == [parent.clone()];
        }
        let Ok(git) = self.host() else { return false };
        let made = git.args(["show", "-s", "--no-show-signature", "--format=%T %P", commit.as_str()]).done();
        made.is_ok_and(|made| made.stdout.trim_ascii() == format!("{tree} {parent}").as_bytes())
    }

    fn contains(&self, commit: &ObjectId, ancestor: &ObjectId) -> Result<bool, Error> {
        if !self.repo.is_shallow()
            && let Ok(answer) = self.objects().and_then(|objects| objects.is_ancestor(ancestor, commit))
        {
            return Ok(answer);
        }
        let args = ["merge-base", "--is-ancestor", ancestor.as_str(), commit.as_str()];
        Ok(self.host()?.args(args).yes()?)
    }

    fn tree_of(&self, commit: &ObjectId) -> Result<ObjectId, Error> {
        if let Ok(tree) = self.objects().and_then(|objects| objects.tree_of(commit)) {
            return Ok(tree);
        }
        let tree = format!("{commit}^{{tree}}");
        let args = ["rev-parse", "--verify", "-q", &tree];
        Ok(answered(&args, &self.host()?.args(args).done()?)?)
    }
}

/// The sum of the numbers on these lines.
fn total(lines: &[u8]) -> u64 {
    let numbers = String::from_utf8_lossy(lines);
    numbers.lines().filter_map(|line| line.trim().parse::<u64>().ok()).fold(0, u64::saturating_add)
}

type Snapshot = (ObjectId, Vec<Vec<u8>>, Vec<Vec<u8>>);

const BORROW: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";

/// Sets the identity of commits made by this command.
pub(in crate::git) fn by(git: runner::GitCommand, identity: &Identity) -> runner::GitCommand {
    git.env("GIT_AUTHOR_NAME", &identity.name)
        .env("GIT_AUTHOR_EMAIL", &identity.email)
        .env("GIT_COMMITTER_NAME", &identity.committer_name)
        .env("GIT_COMMITTER_EMAIL", &identity.committer_email)
}

/// The commits named in the agent's git directory, read without git and without following links.
#[derive(Debug, Default)]
struct Heads {
    head: Option<ObjectId>,
    others: Vec<ObjectId>,
}

impl Heads {
    fn read(git: &Path) -> Heads {
        let packed = read(git, b"packed-refs").unwrap_or_default();
        let packed: Vec<(&[u8], ObjectId)> =
            packed.split(|byte| *byte == b'\n').filter_map(packed_ref).collect();
        let head = read(git, b"HEAD").and_then(|head| resolve(git, head.trim_ascii_end(), &packed));
        let mut others: Vec<ObjectId> =
            packed.iter().filter(|(name, _)| is_work(name)).map(|(_, oid)| oid.clone()).collect();
        loose(git, b"refs/heads", &mut others);
        others.extend(read(git, b"refs/stash").and_then(|text| ObjectId::parse(text.trim_ascii_end()).ok()));
        others.sort();
        others.dedup();
        others.retain(|other| Some(other) != head.as_ref());
        Heads { head, others }
    }

    fn all(&self) -> impl Iterator<Item = &ObjectId> {
        self.head.iter().chain(&self.others)
    }

    fn keep_only(&mut self, there: &[ObjectId], base: &ObjectId) {
        let good = |oid: &ObjectId| oid == base || there.contains(oid);
        self.head = self.head.take().filter(|oid| good(oid));
        self.others.retain(good);
    }
}

fn read(git: &Path, name: &[u8]) -> Option<Vec<u8>> {
    files::read_beneath(git, name, REF_CAP).ok().flatten()
}

fn resolve(git: &Path, head: &[u8], packed: &[(&[u8], ObjectId)]) -> Option<ObjectId> {
    let Some(name) = head.strip_prefix(b"ref: ") else { return ObjectId::parse(head).ok() };
    if !name.starts_with(b"refs/") {
        return None;
    }
    let loose = read(git, name).and_then(|text| ObjectId::parse(text.trim_ascii_end()).ok());
    loose.or_else(|| packed.iter().find(|(known, _)| *known == name).map(|(_, oid)| oid.clone()))
}

fn packed_ref(line: &[u8]) -> Option<(&[u8], ObjectId)> {
    let space = line.iter().position(|byte| *byte == b' ')?;
    Some((&line[space + 1..], ObjectId::parse(&line[..space]).ok()?))
}

fn is_work(name: &[u8]) -> bool {
    name.starts_with(b"refs/heads/") || name == b"refs/stash"
}

/// Branches kept as files; an agent has no reason for more than a few hundred.
fn loose(git: &Path, dir: &[u8], found: &mut Vec<ObjectId>) {
    let mut left = vec![dir.to_vec()];
    while let Some(dir) = left.pop() {
        let path = git.join(files::path(&dir));
        if !files::is_real_dir(&path) || found.len() > 1000 {
            continue;
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let name = [&dir, &b"/"[..], os::bytes(&entry.file_name())].concat();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(name),
                Ok(kind) if kind.is_file() => {
                    found.extend(
                        read(git, &name).and_then(|text| ObjectId::parse(text.trim_ascii_end()).ok()),
                    );
                }
                Ok(_) | Err(_) => {}
            }
        }
    }
}

/// What is said of folders that were removed because of their depth.
fn nested_too_deep(paths: &[PathBuf]) -> Option<String> {
    let mut top = paths.first()?.components().map(|part| part.as_os_str().to_string_lossy());
    let top = top.next().unwrap_or_default();
    let count = paths.len();
    Some(format!(
        "{count} paths were left out because their folders are nested too deep, such as below {top}"
    ))
}

/// Leaves nothing in the agent's object store but plain objects: no link to other stores, no index that could
/// lie about history.
fn disarm_store(store: &Path, borrowed: &Path) -> io::Result<()> {
    if !files::is_real_dir(store) {
        files::remove(store)?;
    }
    files::make_private_dir(store)?;
    files::remove(&store.join("info"))?;
    for entry in fs::read_dir(store)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            files::remove(&entry.path())?;
            continue;
        }
        let pack = entry.file_name() == "pack";
        for object in fs::read_dir(entry.path())? {
            let object = object?;
            let plain = object.file_type()?.is_file();
            let known = !pack || object.path().extension().is_some_and(|end| end == "pack" || end == "idx");
            if !plain || !known {
                files::remove(&object.path())?;
            }
        }
    }
    files::make_private_dir(&store.join("info"))?;
    let line = side::borrowed(borrowed) + "\n";
    files::write_new(&store.join("info/alternates"), line.as_bytes(), 0o600)
}
