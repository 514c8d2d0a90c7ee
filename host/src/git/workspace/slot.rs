//! One working copy: bringing it to a commit, handing it out, listing its changes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{Error, WorkspaceKind};
use crate::git::change::quote_path;
use crate::git::native::{self, CopyIndex, DifferenceKind, Native, NewFiles, Objects};
use crate::git::repo::Repo;
use crate::git::runner::GitCommand;
use crate::git::side::{self, Layout};
use crate::git::{ObjectId, files};
use crate::platform::files as os;

/// Marks a maker's slot whose work is not published yet. Holds the commit it was handed out at, and the name of the
/// attempt it was handed out to.
pub(super) const PENDING: &str = "pending";
/// Paths that are listed.
const CHANGED_AT_MOST: usize = 20;
/// Held by the process that has the slot.
pub(super) const LOCK: &str = "lock";

/// A reserved working copy. Dropping it sets the slot free.
#[derive(Debug)]
pub struct Slot {
    pub(super) kind: WorkspaceKind,
    dir: PathBuf,
    pub(super) repo: Repo,
    /// The commit it was handed out at.
    pub(super) base: Option<ObjectId>,
    /// What the last collection found and publishing must cover.
    pub(super) unpublished: Option<Vec<ObjectId>>,
    /// Our own objects, once they were looked at.
    objects: Mutex<Option<Objects>>,
    _lock: File,
}

/// A path whose content on disk differs from the index.
pub(super) struct SlotDifference {
    pub(super) what: DifferenceKind,
    pub(super) path: Vec<u8>,
}

/// Whether anybody had a copy before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyAge {
    /// It holds the files of its commit and nothing else.
    New,
    Used,
}

impl Slot {
    pub(super) fn new(kind: WorkspaceKind, dir: PathBuf, repo: &Repo, lock: File) -> Slot {
        Slot {
            kind,
            dir,
            repo: repo.clone(),
            base: None,
            unpublished: None,
            objects: Mutex::new(None),
            _lock: lock,
        }
    }

    pub(super) fn pending(dir: PathBuf, repo: &Repo, lock: File) -> Option<Slot> {
        let text = fs::read(dir.join(PENDING)).ok()?;
        let base = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let base = ObjectId::parse(base.trim_ascii_end()).ok()?;
        Some(Slot { base: Some(base), ..Slot::new(WorkspaceKind::Maker, dir, repo, lock) })
    }

    /// The working copy itself.
    pub fn tree(&self) -> PathBuf {
        self.dir.join("tree")
    }

    /// The run that has, or had, this slot.
    pub fn owner(&self) -> String {
        fs::read_to_string(self.dir.join("owner")).unwrap_or_default()
    }

    /// The commit the slot was handed out at.
    pub fn base(&self) -> Option<&ObjectId> {
        self.base.as_ref()
    }

    /// Declares that nothing more in this slot is wanted: what was not published may be removed.
    pub fn abandon(&mut self) -> Result<(), Error> {
        files::remove(&self.dir.join(PENDING)).map_err(|source| self.io(source))
    }

    /// Changes in this copy belong to no agent: after a crash while it is in use, its next use begins from nothing.
    pub fn expend(&self) -> Result<(), Error> {
        self.forget_at()
    }

    /// Makes a copy for commands anew, as it was handed out.
    pub fn renew(&mut self) -> Result<(), Error> {
        let Some(commit) = self.base.clone().filter(|_| self.kind == WorkspaceKind::Scratch) else {
            return Err(Error::TreeGone { tree: self.tree() });
        };
        let owner = self.owner();
        self.prepare(&owner, &commit)
    }

    /// Removes the copy and our own git directory beside it, which an agent may have reached into.
    pub fn throw_away(self) -> Result<(), Error> {
        let gone = files::remove(&self.tree()).and_then(|()| files::remove(&self.host_dir()));
        gone.map_err(|source| self.io(source))
    }

    /// The paths that differ from the commit it was handed out at, without ignored files. What a reader changed
    /// is put right the next time the slot is taken.
    pub fn verify_clean(&self) -> Result<Vec<Vec<u8>>, Error> {
        self.require_tree()?;
        self.disarm()?;
        Ok(self.differences(false)?.into_iter().map(|difference| difference.path).collect())
    }

    /// Files of the commit that a command changed or removed, as far as they can be listed.
    pub fn changed_files(&self) -> Vec<String> {
        if self.require_tree().and_then(|()| self.disarm()).is_err() {
            return Vec::new();
        }
        let found = self.differences(false).unwrap_or_default();
        let of_commit =
            |one: &SlotDifference| matches!(one.what, DifferenceKind::Changed | DifferenceKind::Missing);
        let paths = found.into_iter().filter(of_commit).take(CHANGED_AT_MOST);
        paths.map(|one| quote_path(&one.path)).collect()
    }

    /// Brings the slot to `commit` for `owner` and makes the agent's `.git` again.
    pub(super) fn prepare(&mut self, owner: &str, commit: &ObjectId) -> Result<(), Error> {
        if self.kind == WorkspaceKind::Scratch {
            self.clear_folder().map_err(|source| self.io(source))?;
        }
        let same_owner = owned_by(&self.dir, owner);
        let warm = match self.at() {
            Some(at) if files::is_real_dir(&self.tree()) => self.warm(&at, commit, same_owner).is_ok(),
            Some(_) | None => false,
        };
        if !warm {
            self.cold(commit)?;
        }
        self.hand_out(owner, commit).map_err(|source| self.io(source))?;
        self.base = Some(commit.clone());
        Ok(())
    }

    /// Removes all that an earlier command left, in the copy and beside it: what tests of one tree made (objects, generated
    /// files, empty folders, repositories, flags in an index) must not decide about the next.
    fn clear_folder(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.file_name() != LOCK {
                files::remove(&entry.path())?;
            }
        }
        Ok(())
    }

    /// From nothing: a fresh git directory and a full checkout.
    fn cold(&self, commit: &ObjectId) -> Result<(), Error> {
        self.lay_out_host().map_err(|source| self.io(source))?;
        if self.move_here(None, commit).is_ok() {
            // Everything in it was just written, and without the right to write to it for a reader.
            self.hide_client_files(CopyAge::New)?;
            if self.kind == WorkspaceKind::Reader {
                files::close_dirs(&self.tree());
            }
            return self.set_at(commit);
        }
        self.lay_out_host().map_err(|source| self.io(source))?;
        self.host()?.args(["read-tree", "-m", "-u", commit.as_str()]).done()?;
        self.refuse_deep()?;
        self.hide_client_files(CopyAge::New)?;
        self.protect()?;
        self.set_at(commit)
    }

    /// Refuses a commit that git could check out and nobody could look at, before anything reads the index.
    fn refuse_deep(&self) -> Result<(), Error> {
        let tree = self.tree();
        let listing = self.host()?.args(["ls-files", "-z"]).done()?.stdout;
        let is_deep = |path: &&[u8]| {
            let slashes = path.iter().filter(|byte| **byte == b'/').count();
            slashes > files::DEEPEST || tree.as_os_str().len() + path.len() > files::LONGEST
        };
        match listing.split(|byte| *byte == 0).find(is_deep) {
            Some(path) => {
                let start = String::from_utf8_lossy(path).chars().take(SHOWN).collect();
                Err(Error::TooDeep { start })
            }
            None => Ok(()),
        }
    }

    /// Brings index and files from one commit to another without git.
    fn move_here(&self, from: Option<&ObjectId>, to: &ObjectId) -> Native<()> {
        let new = match self.kind {
            WorkspaceKind::Reader => NewFiles::Protected,
            WorkspaceKind::Maker | WorkspaceKind::Scratch => NewFiles::Writable,
        };
        native::move_to(&self.objects()?, self.index(), &self.tree(), (from, to), new)
    }

    /// The objects of our own git directory and of the stores it borrows from.
    pub(super) fn objects(&self) -> Native<Objects> {
        let mut known = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some(objects) => Ok(objects.clone()),
            None => {
                let dir = self.host_dir().join("objects");
                let objects = Objects::open(&dir, &self.repo.format)?;
                Ok(known.insert(objects).clone())
            }
        }
    }

    /// The folder of our own objects is about to change.
    fn forget_objects(&self) {
        *self.objects.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Our own index, and what its objects are named by.
    pub(super) fn index(&self) -> (PathBuf, &str) {
        (self.host_dir().join("index"), &self.repo.format)
    }

    pub(super) fn read_index(&self) -> Native<CopyIndex> {
        let (path, format) = self.index();
        CopyIndex::read(&path, format)
    }

    fn lay_out_host(&self) -> io::Result<()> {
        self.forget_objects();
        files::remove(&self.host_dir())?;
        files::remove(&self.tree())?;
        fs::create_dir(self.tree())?;
        os::set_mode(&self.tree(), 0o700)?;
        let shallow = self.shallow();
        let layout = Layout {
            bare: false,
            format: &self.repo.format,
            borrows: &[&self.repo.objects],
            head: UNKNOWN,
            config: "[checkout]\n\tworkers = 0\n\tthresholdForParallelism = 1000\n[index]\n\tthreads = true\n",
            exclude: &self.repo.exclude,
            shallow: shallow.as_deref(),
        };
        side::lay_out_new(&self.host_dir(), &layout)
    }

    /// From a known state: put right what differs, then move to `commit`.
    fn warm(&self, at: &ObjectId, commit: &ObjectId, same_owner: bool) -> Result<(), Error> {
        self.clear_host().map_err(|source| self.io(source))?;
        self.disarm()?;
        if !same_owner {
            self.remove_hidden()?;
        }
        self.remove_client_files()?;
        let mut found = self.differences(!same_owner)?;
        if found.is_empty() && at == commit {
            return Ok(());
        }
        if self.kind == WorkspaceKind::Reader {
            files::open_up(&self.tree());
        }
        if !found.is_empty() {
            self.put_right(&found)?;
            found = self.differences(!same_owner)?;
        }
        if let Some(left) = found.first() {
            let path = self.tree().join(files::path(&left.path));
            return Err(Error::Io { path, source: io::Error::other("could not be put right") });
        }
        if at != commit {
            self.forget_at()?;
            if self.move_here(Some(at), commit).is_err() {
                self.host()?.args(["read-tree", "-m", "-u", commit.as_str()]).done()?;
                self.refuse_deep()?;
            }
        }
        self.hide_client_files(CopyAge::Used)?;
        self.protect()?;
        self.set_at(commit)
    }

    /// Removes what earlier work left in our own git directory: everything in it is published or unwanted.
    fn clear_host(&self) -> io::Result<()> {
        self.forget_objects();
        files::remove(&self.host_dir().join("index.lock"))?;
        let objects = self.host_dir().join("objects");
        // The last use may have been for a review, which borrows from a store of its own.
        let lender = side::borrowed(&self.repo.objects) + "\n";
        files::write(&objects.join("info/alternates"), lender.as_bytes())?;
        for entry in fs::read_dir(&objects)?.flatten() {
            let name = entry.file_name();
            if name == "pack" {
                fs::read_dir(entry.path())?.flatten().try_for_each(|pack| files::remove(&pack.path()))?;
            } else if name != "info" {
                files::remove(&entry.path())?;
            }
        }
        if self.kind == WorkspaceKind::Reader {
            os::set_mode(&self.tree(), 0o755)?;
        }
        Ok(())
    }

    /// Removes what git itself would never show: git directories in tracked directories, and the content of
    /// submodules, which we never check out.
    fn remove_hidden(&self) -> Result<(), Error> {
        let tree = self.tree();
        remove_nested_git(&tree).map_err(|source| self.io(source))?;
        for link in self.submodules()? {
            let dir = self.beneath(&link)?;
            if files::is_real_dir(&dir) {
                files::remove(&dir).and_then(|()| fs::create_dir(&dir)).map_err(|source| self.io(source))?;
            }
        }
        Ok(())
    }

    fn submodules(&self) -> Result<Vec<Vec<u8>>, Error> {
        if let Ok(index) = self.read_index() {
            return Ok(index.submodules());
        }
        let listing = self.host()?.args(["ls-files", "-s", "-z"]).done()?.stdout;
        let links = listing.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 "));
        let paths = links.filter_map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1));
        Ok(paths.map(<[u8]>::to_vec).collect())
    }

    fn put_right(&self, found: &[SlotDifference]) -> Result<(), Error> {
        let mut restore = Vec::new();
        // What is in the way goes first: a directory may be where a file belongs, or a link for a directory.
        for difference in
            found.iter().filter(|one| !matches!(one.what, DifferenceKind::Changed | DifferenceKind::Missing))
        {
            let path = self.beneath(&difference.path)?;
            files::remove(&path).map_err(|source| self.io(source))?;
            files::remove_empty_parents(&self.tree(), &path);
        }
        for difference in
            found.iter().filter(|one| matches!(one.what, DifferenceKind::Changed | DifferenceKind::Missing))
        {
            files::remove(&self.beneath(&difference.path)?).map_err(|source| self.io(source))?;
            restore.extend_from_slice(&difference.path);
            restore.push(0);
        }
        if !restore.is_empty() {
            let args = ["checkout-index", "-u", "-f", "-q", "-z", "--stdin"];
            self.host()?.args(args).input(restore).done()?;
        }
        Ok(())
    }

    /// A path inside the working copy; refused when a parent is a link.
    fn beneath(&self, path: &[u8]) -> Result<PathBuf, Error> {
        let path = path.strip_suffix(b"/").unwrap_or(path);
        let mut at = self.tree();
        let mut parts = path.split(|byte| *byte == b'/').peekable();
        while let Some(part) = parts.next() {
            at.push(files::path(part));
            let odd = matches!(part, b"" | b"." | b"..");
            let link =
                parts.peek().is_some() && fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_symlink());
            if odd || link {
                return Err(Error::Io {
                    path: at,
                    source: io::Error::other("leads out of the working copy"),
                });
            }
        }
        Ok(at)
    }

    /// To be done before our own git looks at a copy that an agent or a command had. Returns what was nested too deep, which
    /// is gone.
    pub(super) fn disarm(&self) -> Result<Vec<PathBuf>, Error> {
        disarm(&self.tree()).map_err(|source| self.io(source))
    }

    /// One pass over the working copy, against our own index.
    pub(super) fn differences(&self, ignored: bool) -> Result<Vec<SlotDifference>, Error> {
        if let Ok(found) = self.status_here(ignored) {
            return Ok(found);
        }
        let ignored = if ignored { "--ignored=traditional" } else { "--ignored=no" };
        let output = self
            .host()?
            .args(["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"])
            .args(["--ignore-submodules=dirty", ignored])
            .done()?;
        let entries = output.stdout.split(|byte| *byte == 0).filter(|entry| entry.len() > 3);
        Ok(entries.filter_map(|entry| difference(entry[1], &entry[3..])).collect())
    }

    fn status_here(&self, ignored: bool) -> Native<Vec<SlotDifference>> {
        let (mut index, objects) = (self.read_index()?, self.objects()?);
        let found = native::status(&mut index, &objects, &self.tree(), &self.repo.exclude, ignored)?;
        Ok(found.into_iter().map(|(what, path)| SlotDifference { what, path }).collect())
    }

    /// Takes the right to write away from a reader's copy.
    fn protect(&self) -> Result<(), Error> {
        if self.kind != WorkspaceKind::Reader {
            return Ok(());
        }
        let changed = protect_files(&self.tree());
        files::close_dirs(&self.tree());
        if changed {
            // Changing the mode changed the time stamps that git compares.
            self.host()?.args(["update-index", "-q", "--refresh"]).run()?;
        }
        Ok(())
    }

    /// Makes the agent's git directory and writes down the owner of the slot.
    fn hand_out(&self, owner: &str, commit: &ObjectId) -> io::Result<()> {
        let tree = self.tree();
        if self.kind == WorkspaceKind::Reader {
            os::set_mode(&tree, 0o755)?;
        }
        self.lay_out_for_agent(commit)?;
        if self.kind == WorkspaceKind::Reader {
            os::set_mode(&tree, 0o555)?;
        }
        files::write(&self.dir.join("owner"), owner.as_bytes())
    }

    /// From here on it may hold work that has to be published: that of `attempt`.
    pub fn hand_to_maker(&self, attempt: &str) -> Result<(), Error> {
        let Some(commit) = &self.base else { return Err(Error::TreeGone { tree: self.tree() }) };
        let text = format!("{commit}\n{attempt}\n");
        files::write(&self.dir.join(PENDING), text.as_bytes()).map_err(|source| self.io(source))
    }

    /// Whether its unpublished work is that of `attempt`. Slots from before name none.
    pub fn is_of(&self, attempt: &str) -> bool {
        let text = fs::read_to_string(self.dir.join(PENDING)).unwrap_or_default();
        text.lines().nth(1).is_none_or(|name| name.is_empty() || name == attempt)
    }

    /// Brings a reader's copy that is as it was handed out to another commit. If that fails, the copy is of no use to the
    /// caller, and its next use begins from nothing.
    pub fn bring_to(&mut self, commit: &ObjectId) -> Result<(), Error> {
        let Some(at) = self.at().filter(|_| self.kind == WorkspaceKind::Reader) else {
            return Err(Error::TreeGone { tree: self.tree() });
        };
        self.forget_objects();
        self.forget_at()?;
        files::open_dirs(&self.tree());
        if self.move_here(Some(&at), commit).is_err() {
            return Err(self.io(io::Error::other("could not be brought to another commit")));
        }
        self.hide_client_files(CopyAge::New)?;
        files::close_dirs(&self.tree());
        let git = self.tree().join(".git");
        files::write(&git.join("refs/heads/archeflow"), format!("{commit}\n").as_bytes())
            .and_then(|()| fs::copy(self.host_dir().join("index"), git.join("index")))
            .map_err(|source| self.io(source))?;
        self.set_at(commit)?;
        self.base = Some(commit.clone());
        Ok(())
    }

    fn lay_out_for_agent(&self, commit: &ObjectId) -> io::Result<()> {
        let git = self.tree().join(".git");
        files::remove(&git)?;
        let shallow = self.shallow();
        let identity = self.repo.identity();
        // With sparse checkouts on, git notices a file that an agent writes where one was left out.
        let config = format!(
            "[user]\n\tname = {}\n\temail = {}\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n\
             [commit]\n\tgpgsign = false\n[core]\n\tsparseCheckout = true\n",
            config_value(&identity.name),
            config_value(&identity.email)
        );
        let layout = Layout {
            bare: false,
            format: &self.repo.format,
            borrows: &[&self.repo.objects],
            head: "ref: refs/heads/archeflow",
            config: &config,
            exclude: &self.repo.exclude,
            shallow: shallow.as_deref(),
        };
        side::lay_out_new(&git, &layout)?;
        files::write_new(&git.join("refs/heads/archeflow"), format!("{commit}\n").as_bytes(), 0o600)?;
        fs::copy(self.host_dir().join("index"), git.join("index")).map(drop)
    }

    /// The commit that our index and the working copy were last brought to.
    pub(super) fn at(&self) -> Option<ObjectId> {
        read_at(&self.dir)
    }

    pub(super) fn set_at(&self, commit: &ObjectId) -> Result<(), Error> {
        let head = self.host_dir().join("HEAD");
        files::write(&head, format!("{commit}\n").as_bytes()).map_err(|source| self.io(source))
    }

    /// From here until [`Slot::set_at`] the state is unknown: a crash between them makes the next use cold.
    pub(super) fn forget_at(&self) -> Result<(), Error> {
        let head = self.host_dir().join("HEAD");
        files::write(&head, format!("{UNKNOWN}\n").as_bytes()).map_err(|source| self.io(source))
    }

    /// A command on our own git directory with the working copy as its tree.
    pub(super) fn host(&self) -> Result<GitCommand, Error> {
        let git = GitCommand::new(&self.host_dir())?.work_tree(&self.tree()).scratch().refreshing();
        Ok(self.repo.shallow(git))
    }

    pub(super) fn host_dir(&self) -> PathBuf {
        self.dir.join("host.git")
    }

    pub(super) fn require_tree(&self) -> Result<(), Error> {
        if files::is_real_dir(&self.tree()) && files::is_plain_file(&self.host_dir().join("index")) {
            Ok(())
        } else {
            Err(Error::TreeGone { tree: self.tree() })
        }
    }

    pub(super) fn io(&self, source: io::Error) -> Error {
        Error::Io { path: self.dir.clone(), source }
    }

    fn shallow(&self) -> Option<Vec<u8>> {
        fs::read(self.repo.common_dir.join("shallow")).ok()
    }
}

const UNKNOWN: &str = "ref: refs/heads/unknown";

pub(super) fn owned_by(dir: &Path, owner: &str) -> bool {
    fs::read(dir.join("owner")).is_ok_and(|known| known == owner.as_bytes())
}

pub(super) fn is_at(dir: &Path, commit: &ObjectId) -> bool {
    read_at(dir).as_ref() == Some(commit)
}

fn read_at(dir: &Path) -> Option<ObjectId> {
    ObjectId::parse(fs::read(dir.join("host.git/HEAD")).ok()?.trim_ascii_end()).ok()
}

fn difference(letter: u8, path: &[u8]) -> Option<SlotDifference> {
    let what = match letter {
        b' ' => return None,
        b'?' if path.ends_with(b"/") => DifferenceKind::Nested,
        b'?' => DifferenceKind::Untracked,
        b'!' => DifferenceKind::Ignored,
        b'D' => DifferenceKind::Missing,
        _ => DifferenceKind::Changed,
    };
    Some(SlotDifference { what, path: path.to_vec() })
}

fn remove_nested_git(top: &Path) -> io::Result<()> {
    let mut left = vec![top.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir)? {
            let entry = entry?;
            let git = entry.file_name() == ".git";
            if git && dir != top {
                files::remove(&entry.path())?;
            } else if !git && entry.file_type()?.is_dir() {
                left.push(entry.path());
            }
        }
    }
    Ok(())
}

/// So much of a path that is too long is shown.
const SHOWN: usize = 40;

/// Removes what git would wait for, read without end (S-06) or not survive: FIFOs, sockets and devices, which can't
/// be collected anyway, in repositories inside the copy whatever leads out of their git directory, and what is nested too
/// deep. Git reads `.gitignore` and `.gitattributes` of every folder, and `HEAD` and the refs of such a repository. Returns
/// what was nested too deep, below the copy.
fn disarm(top: &Path) -> io::Result<Vec<PathBuf>> {
    let mut too_deep = Vec::new();
    let mut left = vec![(top.to_path_buf(), WalkedFolder::Top, 0)];
    while let Some((dir, at, depth)) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let (kind, name, path) = (entry.file_type()?, entry.file_name(), entry.path());
            let is_git = name == ".git";
            let (inner, harmful) = match at {
                WalkedFolder::Top if is_git => continue,
                WalkedFolder::Top | WalkedFolder::Work if is_git => (WalkedFolder::Git, !kind.is_dir()),
                WalkedFolder::Top | WalkedFolder::Work => (WalkedFolder::Work, false),
                WalkedFolder::Git => (WalkedFolder::Git, kind.is_symlink() || name == "commondir"),
            };
            let special = !kind.is_dir() && !kind.is_file() && !kind.is_symlink();
            let deep = kind.is_dir() && (depth >= files::DEEPEST || path.as_os_str().len() > files::LONGEST);
            if deep {
                too_deep.push(path.strip_prefix(top).unwrap_or(&path).to_path_buf());
            }
            if harmful || special || deep {
                files::remove(&path).or_else(|_| {
                    os::set_mode(&dir, 0o755)?;
                    files::remove(&path)
                })?;
            } else if kind.is_dir() {
                left.push((path, inner, depth + 1));
            }
        }
    }
    Ok(too_deep)
}

/// Where [`disarm`] is.
#[derive(Clone, Copy)]
enum WalkedFolder {
    /// The copy itself, whose `.git` our git never reads.
    Top,
    Work,
    /// The git directory of a repository inside the copy.
    Git,
}

/// Whether any file had to be protected.
fn protect_files(top: &Path) -> bool {
    let mut changed = false;
    let mut left = vec![top.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            let mode = os::mode(&meta);
            if meta.is_dir() && entry.file_name() != ".git" {
                left.push(entry.path());
            } else if meta.is_file() && mode & 0o222 != 0 {
                changed = true;
                drop(os::set_mode(&entry.path(), mode & 0o7555));
            }
        }
    }
    changed
}

/// A value as a git configuration file wants it.
fn config_value(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' | '\r' | '\0' => out.push(' '),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
