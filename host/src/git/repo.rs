//! The user's repository: what it is, what it holds, and whether we can work with it.
//!
//! Only reading happens here. Objects are read through the side directory (see [`super`]), so that a question
//! about a commit never depends on how the repository is configured.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use super::checkouts::{self, Checkout, Operation};
use super::facts::{Facts, canonical};
use super::native::{AskGit, Native, Objects, Refs};
use super::runner::{self, GitCommand};
use super::side::{self, Layout};
use super::signing::SigningFault;
use super::user_config::UserConfig;
use super::workspace::by;
use super::{ObjectId, files};

pub use super::user_config::Identity;
use crate::platform::files as os;
use crate::store::files::is_unwritable;

/// Commits on the user's branch are by the user.
pub const NO_IDENTITY: &str =
    "git does not know who you are, and commits on your branch are made in your name";

/// Why a repository cannot be worked with, with what the user can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("git does not accept {} as a repository: {said}\nstart archeflow inside a git repository of your own", path.display())]
    NotARepository { path: PathBuf, said: String },
    #[error("{} is inside a .git directory; start archeflow from the working tree", path.display())]
    InsideGitDir { path: PathBuf },
    #[error("branch {branch} has no commits yet; make a first commit")]
    Unborn { branch: String },
    #[error("HEAD is detached; name the branch that the work is for")]
    Detached,
    #[error("there is no branch {branch}; name an existing branch or create it first")]
    NoSuchBranch { branch: String },
    #[error("`{name}` can't be the name of a branch")]
    BadName { name: String },
    #[error("{NO_IDENTITY}")]
    NoIdentity,
    #[error(transparent)]
    Signing(#[from] SigningFault),
    #[error(transparent)]
    Git(#[from] runner::Error),
    #[error("{} could not be used: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// How gpg and ssh find their agents and ask for a passphrase.
const SIGNERS: &[&[u8]] = &[
    b"GNUPGHOME",
    b"GPG_TTY",
    b"SSH_AUTH_SOCK",
    b"SSH_ASKPASS",
    b"DISPLAY",
    b"WAYLAND_DISPLAY",
    b"XDG_RUNTIME_DIR",
    b"DBUS_SESSION_BUS_ADDRESS",
];

/// The environment variables that decide which configuration the user's own git reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitEnv(Vec<(OsString, OsString)>);

impl GitEnv {
    /// What this process was given.
    pub fn of_process() -> GitEnv {
        GitEnv::new(std::env::vars_os())
    }

    /// From explicit variables; those that would point git at another repository are left out.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> GitEnv {
        let decides = |name: &OsString| {
            let name = os::bytes(&name);
            matches!(name, b"HOME" | b"XDG_CONFIG_HOME" | b"PATH" | b"GIT_CEILING_DIRECTORIES" | b"SUDO_UID")
                || name.starts_with(b"GIT_CONFIG")
                || matches!(name, b"GIT_AUTHOR_NAME" | b"GIT_AUTHOR_EMAIL" | b"GIT_INDEX_FILE")
                || matches!(name, b"GIT_COMMITTER_NAME" | b"GIT_COMMITTER_EMAIL")
                || SIGNERS.contains(&name)
        };
        GitEnv(variables.into_iter().filter(|(name, _)| decides(name)).collect())
    }

    pub(super) fn configuration(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        let decides = |name: &OsString| {
            let name = os::bytes(name);
            let identity = name.starts_with(b"GIT_AUTHOR") || name.starts_with(b"GIT_COMMITTER");
            !identity && name != b"GIT_INDEX_FILE" && !SIGNERS.contains(&name)
        };
        self.0.iter().filter(move |(name, _)| decides(name)).map(|(n, v)| (n, v))
    }

    /// What a program that signs needs to reach the user's keys.
    pub(super) fn signers(&self) -> impl Iterator<Item = (&OsString, &OsString)> {
        self.0.iter().filter(|(name, _)| SIGNERS.contains(&os::bytes(name))).map(|(n, v)| (n, v))
    }

    /// The user's own configuration files: a hook or filter named there runs in every repository.
    fn global_files(&self) -> Vec<PathBuf> {
        let home = self.get("HOME").map(PathBuf::from);
        let xdg =
            self.get("XDG_CONFIG_HOME").map(PathBuf::from).or(home.as_ref().map(|home| home.join(".config")));
        let named = self.get("GIT_CONFIG_GLOBAL").map(PathBuf::from);
        let files = [home.map(|home| home.join(".gitconfig")), xdg.map(|xdg| xdg.join("git/config")), named];
        files.into_iter().flatten().collect()
    }

    pub(super) fn get(&self, name: &str) -> Option<&OsString> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

/// The branch the work is for, and where it stood when we looked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The full name, such as `refs/heads/main`.
    pub branch: String,
    pub oid: ObjectId,
}

/// How much of the user's own work is not committed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dirty {
    pub staged: usize,
    pub modified: usize,
    pub untracked: usize,
}

/// The object a name in a tree refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    pub mode: String,
    pub oid: ObjectId,
    /// From the root of the repository.
    pub path: Vec<u8>,
}

/// A repository that git accepted, opened for reading.
#[derive(Debug, Clone)]
pub struct Repo {
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
    pub(super) work_tree: Option<PathBuf>,
    pub(super) objects: PathBuf,
    pub(super) format: String,
    pub(super) env: GitEnv,
    pub(super) side: PathBuf,
    id: String,
    identity: Identity,
    pub(super) exclude: Vec<u8>,
    /// The user's configuration as it was when the repository was opened.
    pub(super) user: Arc<UserConfig>,
    native: Arc<OnceLock<Native<Objects>>>,
    /// What was found out about changes between two commits, which never changes.
    pub(super) known_changes: Arc<super::change::KnownChanges>,
}

/// What git and this program read of a repository whatever is asked of it, below its own folder and in its working tree.
const ALWAYS_READ: [&str; 2] = ["info/exclude", "info/attributes"];
const ALWAYS_READ_IN_TREE: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];

/// What configures the repositories of submodules: git looks into them when it compares a working tree.
fn configurations_below(modules: &Path) -> Vec<PathBuf> {
    // Only data, and a lot of it.
    const DATA: [&str; 4] = ["objects", "refs", "logs", "lfs"];
    let (mut found, mut left) = (Vec::new(), vec![modules.to_path_buf()]);
    while let Some(folder) = left.pop() {
        let hooks = folder.ends_with("hooks");
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && !DATA.iter().any(|data| name == *data) => left.push(path),
                Ok(kind) if kind.is_dir() => {}
                Ok(_) | Err(_) if hooks || name == "config" || name == "config.worktree" => found.push(path),
                Ok(_) | Err(_) => {}
            }
        }
    }
    found.sort();
    found
}

/// A pipe in the place of one of these is waited for without end, by every git.
fn refuse_pipes(common_dir: &Path, work_tree: Option<&Path>) -> Result<(), Error> {
    let own = ALWAYS_READ.iter().map(|name| common_dir.join(name));
    let in_tree =
        work_tree.into_iter().flat_map(|tree| ALWAYS_READ_IN_TREE.iter().map(|name| tree.join(name)));
    match own.chain(in_tree).find(|path| fs::metadata(path).is_ok_and(|meta| os::is_pipe(&meta))) {
        Some(path) => {
            let source =
                io::Error::other("it is a pipe, which git would wait for without end; replace it by a file");
            Err(Error::Io { path, source })
        }
        None => Ok(()),
    }
}

/// What is only noted is not waited for: git waits for a pipe in the place of a `.gitignore` in any folder (R-13).
const FOR_A_NOTE: Duration = Duration::from_secs(10);

/// How many stores that borrow from each other are followed.
const MOST_STORES: usize = 32;

impl Repo {
    /// Opens the repository that `path` is in. `state` is the program's own state directory: the side
    /// directory is kept there.
    pub fn open(path: &Path, state: &Path, env: &GitEnv) -> Result<Repo, Error> {
        let repo = Repo::found(path, state, env)?;
        repo.lay_out_side().map_err(|source| Error::Io { path: repo.side.clone(), source })?;
        Ok(repo)
    }

    /// The same for commands that only read. Where the side directory can't be made, only questions that need a git process
    /// have no answer.
    pub fn open_to_read(path: &Path, state: &Path, env: &GitEnv) -> Result<Repo, Error> {
        let repo = Repo::found(path, state, env)?;
        match repo.lay_out_side() {
            Err(source) if !is_unwritable(source.kind()) => Err(Error::Io { path: repo.side, source }),
            Ok(()) | Err(_) => Ok(repo),
        }
    }

    fn found(path: &Path, state: &Path, env: &GitEnv) -> Result<Repo, Error> {
        runner::check_version_once(&state.join("git-version"))?;
        let Facts { format, git_dir, common_dir, work_tree } = Facts::ask(path, env)?;
        refuse_pipes(&common_dir, work_tree.as_deref())?;
        let objects = canonical(&common_dir.join("objects"))?;
        let id = blake3::hash(os::bytes(&common_dir)).to_hex()[..16].to_owned();
        let user = UserConfig::read(path, env)?;
        let mut exclude = fs::read(common_dir.join("info/exclude")).unwrap_or_default();
        exclude.extend(user.excludes(env));
        let identity = user.identity(env);
        let side = state.join("repositories").join(format!("{id}.git"));
        Ok(Repo {
            git_dir,
            common_dir,
            work_tree,
            objects,
            format,
            env: env.clone(),
            side,
            id,
            identity,
            exclude,
            user: Arc::new(user),
            native: Arc::default(),
            known_changes: Arc::default(),
        })
    }

    fn lay_out_side(&self) -> io::Result<()> {
        let layout = Layout {
            bare: true,
            format: &self.format,
            borrows: &[],
            head: "ref: refs/heads/none",
            config: "",
            exclude: b"",
            shallow: None,
        };
        side::lay_out(&self.side, &layout)
    }

    /// A short stable name for this repository, for directories of our own.
    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// The object store, which workspaces borrow from: a sandbox must let agents read it.
    pub fn object_dir(&self) -> &Path {
        &self.objects
    }

    /// The object store and every store it borrows from, in turn.
    pub fn object_stores(&self) -> Vec<PathBuf> {
        stores_from(&self.objects)
    }

    /// The root of the user's working tree; `None` in a bare repository.
    pub fn work_tree(&self) -> Option<&Path> {
        self.work_tree.as_deref()
    }

    /// The user's configured identity, or the program's own.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The named branch, or the one that is checked out.
    pub fn target(&self, name: Option<&str>) -> Result<Target, Error> {
        let branch = match name {
            Some(name) => full_name(name)?,
            None => self.current_branch()?.ok_or(Error::Detached)?,
        };
        match (self.resolve(&branch)?, name) {
            (Some(oid), _) => Ok(Target { branch, oid }),
            (None, Some(_)) => Err(Error::NoSuchBranch { branch: short_name(&branch).to_owned() }),
            (None, None) => Err(Error::Unborn { branch: short_name(&branch).to_owned() }),
        }
    }

    /// The branch that is checked out, by its full name; it may have no commit yet.
    pub(super) fn current_branch(&self) -> Result<Option<String>, Error> {
        if let Ok(branch) = Refs::of(&self.common_dir).and_then(|refs| refs.checked_out(&self.git_dir)) {
            return Ok(branch.filter(|branch| branch.starts_with("refs/heads/")));
        }
        let output = GitCommand::new(&self.git_dir)?.args(["symbolic-ref", "-q", "HEAD"]).run()?;
        let branch = String::from_utf8_lossy(output.line()).into_owned();
        Ok((output.status.success() && branch.starts_with("refs/heads/")).then_some(branch))
    }

    /// The commit a full ref name points at.
    pub fn resolve(&self, reference: &str) -> Result<Option<ObjectId>, runner::Error> {
        if let Ok(found) = self.resolve_here(reference) {
            return Ok(found);
        }
        let commit = format!("{reference}^{{commit}}");
        let output = self.refs()?.args(["rev-parse", "--verify", "-q", "--end-of-options", &commit]).run()?;
        Ok(if output.status.success() { ObjectId::parse(output.line()).ok() } else { None })
    }

    fn resolve_here(&self, reference: &str) -> Native<Option<ObjectId>> {
        match Refs::of(&self.common_dir)?.find(reference)? {
            Some(oid) if self.native()?.has_commit(&oid)? => Ok(Some(oid)),
            // Git knows what to do with a ref to something else.
            Some(_) => Err(AskGit),
            None => Ok(None),
        }
    }

    /// The user's objects, read by this process.
    pub(super) fn native(&self) -> Native<&Objects> {
        let opened = self.native.get_or_init(|| Objects::open(&self.objects, &self.format));
        opened.as_ref().map_err(|ask| *ask)
    }

    /// The same for questions about history, which in a shallow clone only git answers.
    pub(super) fn history(&self) -> Native<&Objects> {
        if self.is_shallow() { Err(AskGit) } else { self.native() }
    }

    pub(super) fn is_shallow(&self) -> bool {
        files::exists(&self.common_dir.join("shallow"))
    }

    /// The commits that these full ref names point at; those that are not there are left out.
    pub fn resolve_all(&self, references: &[&str]) -> Result<BTreeMap<String, ObjectId>, runner::Error> {
        if references.is_empty() {
            return Ok(BTreeMap::new());
        }
        let found: Native<Vec<Option<ObjectId>>> =
            references.iter().map(|reference| self.resolve_here(reference)).collect();
        if let Ok(found) = found {
            let pairs = references.iter().zip(found);
            return Ok(pairs.filter_map(|(name, oid)| Some(((*name).to_owned(), oid?))).collect());
        }
        let git = self.refs()?.args(["for-each-ref", "--format=%(objectname) %(refname)"]);
        let output = git.args(references.iter().copied()).done()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines = text.lines().filter_map(|line| line.split_once(' '));
        let commits =
            lines.filter_map(|(oid, name)| Some((name.to_owned(), ObjectId::parse(oid.as_bytes()).ok()?)));
        Ok(commits.collect())
    }

    /// The same repository, read through a store of our own that borrows the user's objects. What is written goes to
    /// that store, and working copies borrow from it.
    pub fn lending(&self, store: &Path) -> io::Result<Repo> {
        let objects = fs::canonicalize(store.join("objects"))?;
        Ok(Repo { objects, native: Arc::default(), known_changes: Arc::default(), ..self.clone() })
    }

    /// Every place where a branch of this repository is checked out or could be.
    pub fn checkouts(&self) -> Result<Vec<Checkout>, runner::Error> {
        checkouts::list(self)
    }

    /// Merges, rebases and the like that are under way where `target` is checked out.
    pub fn operations(&self, target: &Target) -> Result<Vec<Operation>, runner::Error> {
        Ok(checkouts::operations(&self.checkouts()?, &target.branch))
    }

    /// The content of a file in a commit; `None` when there is no such file or it is larger than `cap`.
    pub fn read_blob(
        &self,
        commit: &ObjectId,
        path: &[u8],
        cap: u64,
    ) -> Result<Option<Vec<u8>>, runner::Error> {
        let mut tree = super::content::CommitFiles::open(self, commit).cap(cap);
        Ok(tree.bytes(path)?.map(<[u8]>::to_vec))
    }

    /// Commits one file of the working tree as the user would, with the user's identity, hooks and signature. What else is
    /// staged stays staged.
    pub fn commit_for_user(&self, path: &str, message: &str) -> Result<(), Error> {
        if !self.identity().configured {
            return Err(Error::NoIdentity);
        }
        let tree = self.work_tree().unwrap_or(&self.git_dir);
        GitCommand::as_user(tree, &self.env)?.args(["add", "--", path]).done()?;
        let mut git = by(GitCommand::as_user(tree, &self.env)?, self.identity());
        for (name, value) in self.env.signers() {
            git = git.env(&name.to_string_lossy(), value);
        }
        Ok(git.args(["commit", "-q", "-m", message, "--only", "--", path]).done().map(drop)?)
    }

    /// All files beneath `prefix` in a commit, at any depth; an empty prefix means all files.
    pub fn list_dir(&self, commit: &ObjectId, prefix: &[u8]) -> Result<Vec<TreeEntry>, runner::Error> {
        if let Ok(found) = self.native().and_then(|objects| objects.files(commit, prefix)) {
            return Ok(found);
        }
        let mut git = self.side()?.args(["ls-tree", "-r", "-z", "--full-tree", commit.as_str()]);
        if !prefix.is_empty() {
            git = git.arg("--").arg(files::path(prefix));
        }
        let output = git.done()?;
        Ok(output.stdout.split(|byte| *byte == 0).filter_map(entry).collect())
    }

    /// A hash over everything in the git directory that could make git run a program or read elsewhere.
    /// When it changes while an agent runs, the repository was tampered with.
    pub fn fingerprint(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut watched: Vec<PathBuf> =
            ["config", "info/attributes", "info/exclude", "objects/info/alternates", "config.worktree"]
                .iter()
                .chain(&["shallow", "info/grafts"])
                .map(|name| self.common_dir.join(name))
                .collect();
        watched.push(self.git_dir.join("config.worktree"));
        watched.extend(self.env.global_files());
        watched.extend(configurations_below(&self.common_dir.join("modules")));
        hasher.update(&self.replacements());
        let hooks = fs::read_dir(self.common_dir.join("hooks")).into_iter().flatten().flatten();
        let mut hooks: Vec<PathBuf> = hooks.map(|entry| entry.path()).collect();
        hooks.retain(|hook| hook.extension().is_none_or(|end| end != "sample"));
        hooks.sort();
        for file in watched.into_iter().chain(hooks) {
            let (mark, bytes) = match fs::read(&file) {
                Ok(bytes) => (b'+', bytes),
                Err(_) => (b'-', Vec::new()),
            };
            for part in [os::bytes(&file), &[mark], &bytes] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    /// A command on one of the user's working trees, with the user's own configuration but no hooks, and without the filters
    /// that only the repository's own configuration names: it may have come in an archive (S-13).
    pub(super) fn in_user_tree(&self, git_dir: &Path, tree: &Path) -> Result<GitCommand, runner::Error> {
        let mut git = GitCommand::with_user_config(git_dir, &self.env)?.work_tree(tree);
        let filters = self.local_filters(git_dir)?;
        let switched_off = [(".clean", ""), (".smudge", ""), (".process", ""), (".required", "false")];
        let settings = filters.iter().flat_map(|name| switched_off.map(|(key, value)| (name, key, value)));
        let given = self.env.get("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse::<usize>().ok());
        let mut count = given.unwrap_or(0);
        for (name, key, value) in settings {
            let full = [b"filter.", name.as_slice(), key.as_bytes()].concat();
            git = git.env(&format!("GIT_CONFIG_KEY_{count}"), os::name(&full));
            git = git.env(&format!("GIT_CONFIG_VALUE_{count}"), value);
            count += 1;
        }
        Ok(if filters.is_empty() { git } else { git.env("GIT_CONFIG_COUNT", count.to_string()) })
    }

    /// Whether the repository's own configuration has the word for a filter in it, or for another file.
    fn may_name_filters(&self, git_dir: &Path) -> bool {
        let files = [self.common_dir.join("config"), git_dir.join("config"), git_dir.join("config.worktree")];
        let has =
            |text: &[u8], word: &[u8]| text.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
        files.iter().any(|file| match fs::read(file) {
            Ok(text) => has(&text, b"filter") || has(&text, b"include"),
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        })
    }

    /// The filters that the repository's own configuration names, its included files and working trees' with it.
    pub(super) fn local_filters(&self, git_dir: &Path) -> Result<BTreeSet<Vec<u8>>, runner::Error> {
        if !self.may_name_filters(git_dir) {
            return Ok(BTreeSet::new());
        }
        let listing = GitCommand::with_user_config(git_dir, &self.env)?
            .args(["config", "--includes", "--show-scope", "--name-only", "--get-regexp", "^filter\\."])
            .run()?
            .stdout;
        let names = listing.split(|byte| *byte == b'\n').filter_map(|line| {
            let key = line.strip_prefix(b"local\t").or_else(|| line.strip_prefix(b"worktree\t"))?;
            let key = key.strip_prefix(b"filter.")?;
            let end = key.iter().rposition(|byte| *byte == b'.')?;
            Some(key[..end].to_vec())
        });
        Ok(names.collect())
    }

    /// The refs that would make git read other objects than those that are named.
    fn replacements(&self) -> Vec<u8> {
        if let Ok(false) = Refs::of(&self.common_dir).and_then(|refs| refs.any_below("refs/replace/")) {
            return Vec::new();
        }
        let listing = self.refs().map(|git| git.args(["for-each-ref", "refs/replace/"]).run());
        listing.ok().and_then(Result::ok).map(|output| output.stdout).unwrap_or_default()
    }

    /// How much of the user's work in their own tree is not committed, for a notice.
    pub fn dirty_summary(&self) -> Result<Dirty, runner::Error> {
        let Some(tree) = &self.work_tree else { return Ok(Dirty::default()) };
        let output = self
            .in_user_tree(&self.git_dir, tree)?
            .args(["status", "--porcelain=v1", "-z", "--untracked-files=normal"])
            .args(["--ignore-submodules=dirty", "--no-renames"])
            .deadline(FOR_A_NOTE)
            .done()?;
        let mut dirty = Dirty::default();
        for entry in output.stdout.split(|byte| *byte == 0).filter(|entry| entry.len() > 3) {
            match (entry[0], entry[1]) {
                (b'?', _) => dirty.untracked += 1,
                (index, tree) => {
                    dirty.staged += usize::from(index != b' ');
                    dirty.modified += usize::from(tree != b' ');
                }
            }
        }
        Ok(dirty)
    }

    /// Whether `old` is `new` or one of its ancestors.
    pub fn is_ancestor(&self, old: &ObjectId, new: &ObjectId) -> Result<bool, runner::Error> {
        if let Ok(answer) = self.history().and_then(|objects| objects.is_ancestor(old, new)) {
            return Ok(answer);
        }
        self.side()?.args(["merge-base", "--is-ancestor", old.as_str(), new.as_str()]).yes()
    }

    /// The tree of a commit.
    pub fn tree_of(&self, commit: &ObjectId) -> Result<ObjectId, runner::Error> {
        match self.native().and_then(|objects| objects.tree_of(commit)) {
            Ok(tree) => Ok(tree),
            Err(AskGit) => self.one(&["rev-parse", "--verify", "-q", &format!("{commit}^{{tree}}")]),
        }
    }

    /// Whether the user's object store has this commit.
    pub fn has_commit(&self, commit: &ObjectId) -> Result<bool, runner::Error> {
        if let Ok(answer) = self.native().and_then(|objects| objects.has_commit(commit)) {
            return Ok(answer);
        }
        let output = self.side()?.args(["cat-file", "-e", &format!("{commit}^{{commit}}")]).run()?;
        Ok(output.status.success())
    }

    /// Runs a question that is answered by one object name.
    pub(super) fn one(&self, args: &[&str]) -> Result<ObjectId, runner::Error> {
        answered(args, &self.side()?.args(args).done()?)
    }

    /// A command on the side directory: the user's objects, our configuration.
    pub(super) fn side(&self) -> Result<GitCommand, runner::Error> {
        Ok(self.shallow(GitCommand::new(&self.side)?.object_dir(&self.objects)))
    }

    /// A command on the user's refs.
    pub(super) fn refs(&self) -> Result<GitCommand, runner::Error> {
        GitCommand::new(&self.common_dir)
    }

    pub(super) fn shallow(&self, git: GitCommand) -> GitCommand {
        let list = self.common_dir.join("shallow");
        if files::is_plain_file(&list) { git.env("GIT_SHALLOW_FILE", list) } else { git }
    }
}

/// An object store and every store it borrows from, in turn.
pub(super) fn stores_from(objects: &Path) -> Vec<PathBuf> {
    let mut stores = vec![objects.to_path_buf()];
    let mut at = 0;
    while let Some(store) = stores.get(at).filter(|_| at < MOST_STORES).cloned() {
        at += 1;
        let text = fs::read(store.join("info/alternates")).unwrap_or_default();
        for line in text.split(|&byte| byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#') {
            let quoted = std::str::from_utf8(line).ok().filter(|line| line.starts_with('"'));
            let bytes = quoted.and_then(super::change::unquote_path).unwrap_or_else(|| line.to_vec());
            // A relative one is meant from the store that names it.
            let Ok(other) = fs::canonicalize(store.join(os::path(bytes))) else { continue };
            if !stores.contains(&other) {
                stores.push(other);
            }
        }
    }
    stores
}

/// Reads an answer that must be one object name.
pub(super) fn answered(args: &[&str], output: &runner::Output) -> Result<ObjectId, runner::Error> {
    ObjectId::parse(output.line())
        .map_err(|error| runner::Error::Unexpected { what: args.join(" "), answer: error.to_string() })
}

fn full_name(name: &str) -> Result<String, Error> {
    let short = short_name(name);
    let git = GitCommand::new(Path::new("/"))?;
    let output = git.args(["check-ref-format", "--branch", short]).run()?;
    // `--branch` also expands `@{-1}`; only a name that stays itself is a name.
    if output.status.success() && output.line() == short.as_bytes() {
        Ok(format!("refs/heads/{short}"))
    } else {
        Err(Error::BadName { name: name.to_owned() })
    }
}

pub(super) fn short_name(branch: &str) -> &str {
    branch.strip_prefix("refs/heads/").unwrap_or(branch)
}

fn entry(line: &[u8]) -> Option<TreeEntry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let mut words = line[..tab].split(|byte| *byte == b' ');
    let mode = String::from_utf8_lossy(words.next()?).into_owned();
    let oid = ObjectId::parse(words.nth(1)?).ok()?;
    Some(TreeEntry { mode, oid, path: line[tab + 1..].to_vec() })
}
