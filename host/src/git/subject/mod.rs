//! What is reviewed: any change that exists already, made into a commit that can no longer move.
//!
//! A *store* is a git directory of our own that borrows the user's objects. What is not committed yet (a working tree,
//! an index, a patch) is written there, so the user's tree, index, refs and objects stay as they are; and because the
//! store has our configuration, nothing that the repository brings along can run. Deliberately absent: fetching. What
//! is not here is named, with the command that brings it.
//!
//! The same content gives the same commit: made-up commits have a fixed author and the dates of their base.

mod about;
mod forge;
mod names;
mod patch;
mod store;
mod tree;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::repo::{self, Repo, short_name};
use super::{ObjectId, change, files, runner};
pub(crate) use forge::forge_client;
use store::SubjectStore;

/// The change that is to be reviewed, as requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReviewTarget {
    /// What is staged, changed or new, against HEAD, without ignored files.
    WorkingTree,
    /// The index against HEAD.
    Staged,
    /// The commits of a branch since its merge base.
    ///
    /// Without a base that is the default branch: the one `origin/HEAD` names, here or there, whichever the branch
    /// left last; else the first of `main`, `master` and `trunk` that exists; else what is checked out. A branch is
    /// never its own base.
    Branch { branch: String, base: Option<String> },
    /// `A..B` and `A...B`: what B did since it left A. One commit: what it changed against its first parent.
    Commits { range: String },
    /// A diff or mails with diffs, applied to `base` or to HEAD.
    Patch { bytes: Vec<u8>, name: String, base: Option<String> },
    /// A pull request, as the forge reports it; without that, as GitHub's own client does.
    PullRequest { number: u32, read: Option<Box<PullRequestFacts>> },
}

/// A pull request that was read from its forge. Its commits have to be here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PullRequestFacts {
    pub title: String,
    pub body: String,
    pub base: String,
    pub head: String,
    pub base_branch: String,
    /// What `git fetch` needs to get its commits.
    pub fetch: String,
}

/// A change that was copied and can no longer move.
#[derive(Debug, Clone)]
pub struct ReviewSubject {
    /// The same repository, reading (and lending to working copies) through the store.
    pub repo: Repo,
    pub base: ObjectId,
    /// A commit with the reviewed tree.
    pub commit: ObjectId,
    /// The description of the change and the files it changes, as Markdown.
    pub about: String,
    pub title: String,
    /// Names the subject for later reviews of the same.
    pub key: String,
}

/// Why there is nothing to review, with what the user can do about it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is nothing to review: {what}")]
    Nothing { what: String },
    #[error(
        "a bare repository has no working tree and no index; review a branch (--branch) or commits (--commit)"
    )]
    NoWorkingTree,
    #[error("these files have conflicts: {}; resolve them first, or review a branch (--branch)", list(paths))]
    Unmerged { paths: Vec<String> },
    #[error("{path} can't be read: {source}\nmake it readable, or add it to .gitignore")]
    Unreadable { path: String, source: io::Error },
    #[error(
        "{files} untracked files of {bytes} bytes are more than a review takes in; add them to .gitignore, or stage what \
         is meant and use --staged"
    )]
    TooMuch { files: usize, bytes: u64 },
    #[error("there is no branch or commit `{name}`{near}")]
    NoSuchName { name: String, near: String },
    #[error("no branch is to be seen that {branch} could be compared with; name one with --base")]
    NoBase { branch: String },
    #[error("the history of this clone ends at {commit}; get more of it first: git fetch --deepen=1")]
    CutOff { commit: ObjectId },
    #[error("{name} holds no diff: {said}")]
    NotAPatch { name: String, said: String },
    #[error("{name} does not apply to {base}:\n{said}\n{remedy}")]
    DoesNotApply { name: String, base: String, said: String, remedy: String },
    #[error(
        "gh was not found; install GitHub's command line client, or get the change with\n  git fetch origin \
         pull/{number}/head\nand review it with --branch FETCH_HEAD"
    )]
    NoForge { number: u32 },
    #[error("gh can't read pull request {number}: {said}")]
    Forge { number: u32, said: String },
    #[error("{what} is not in this repository; get it with\n  git fetch {fetch}")]
    NotFetched { what: String, fetch: String },
    #[error(transparent)]
    Repo(#[from] repo::Error),
    #[error(transparent)]
    Git(#[from] runner::Error),
    #[error("{} could not be used: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// What was found out about the requested change.
struct ResolvedSubject {
    base: ObjectId,
    commit: ObjectId,
    title: String,
    key: String,
    /// The description of the change; empty when there is none.
    said: String,
    /// What a reader should know about how it was taken.
    notes: Vec<String>,
    /// The message when nothing differs.
    nothing: String,
}

/// The folder that is reviewed, by the commit that the change is compared with; empty for all of it.
pub type FolderOf<'a> = &'a dyn Fn(&Repo, &ObjectId) -> Result<String, runner::Error>;

/// Makes a commit of what is asked for, in `store`, which must not exist yet. Until all is done the store has another
/// name, so whatever interrupts this leaves no half of one.
pub fn take(repo: &Repo, store: &Path, ask: &ReviewTarget) -> Result<ReviewSubject, Error> {
    take_folder(repo, store, ask, &|_, _| Ok(String::new()))
}

/// The same of a folder alone, if there is one to look at.
pub fn take_folder(
    repo: &Repo,
    store: &Path,
    ask: &ReviewTarget,
    folder: FolderOf<'_>,
) -> Result<ReviewSubject, Error> {
    let mut making = store.as_os_str().to_owned();
    making.push(MAKING);
    let making = PathBuf::from(making);
    let taken = make(repo, (&making, store), ask, folder);
    if taken.is_err() {
        let _ = files::remove(&making);
    }
    taken
}

fn make(
    repo: &Repo,
    (making, store): (&Path, &Path),
    ask: &ReviewTarget,
    folder: FolderOf<'_>,
) -> Result<ReviewSubject, Error> {
    let io = |source| Error::Io { path: store.to_owned(), source };
    if files::exists(store) {
        return Err(io(io::ErrorKind::AlreadyExists.into()));
    }
    files::remove(making).map_err(io)?;
    let subject_store = SubjectStore::lay_out(repo, making).map_err(io)?;
    let mut found = match ask {
        ReviewTarget::WorkingTree => tree::working(&subject_store)?,
        ReviewTarget::Staged => tree::staged(&subject_store)?,
        ReviewTarget::Branch { branch, base } => names::branch(&subject_store, branch, base.as_deref())?,
        ReviewTarget::Commits { range } => names::commits(&subject_store, range)?,
        ReviewTarget::Patch { bytes, name, base } => {
            patch::given(&subject_store, bytes, name, base.as_deref())?
        }
        ReviewTarget::PullRequest { number, read: None } => forge::pull_request(&subject_store, *number)?,
        ReviewTarget::PullRequest { number, read: Some(read) } => {
            forge::read_request(&subject_store, *number, read)?
        }
    };
    let folder = folder(&subject_store.borrowing, &found.base)?;
    if !folder.is_empty() {
        found.narrow(&subject_store, &folder)?;
    }
    let changed = change::changed(&subject_store.borrowing, &found.base, &found.commit)?;
    if changed.is_empty() {
        return Err(Error::Nothing { what: found.nothing });
    }
    let about = about::whole(&found.said, &found.notes, &changed);
    subject_store.clear_up().map_err(io)?;
    fs::rename(making, store).map_err(io)?;
    let repo = repo.lending(store).map_err(io)?;
    let ResolvedSubject { base, commit, title, key, .. } = found;
    Ok(ReviewSubject { repo, base, commit, about, title: about::one_line(&title), key })
}

impl ResolvedSubject {
    /// Only what changed in a folder (U-16). Everything else is as it was in the base.
    fn narrow(&mut self, store: &SubjectStore<'_>, folder: &str) -> Result<(), Error> {
        let tree = store.with_folder_of(&self.base, &self.commit, folder)?;
        self.commit = store.commit(&tree, &self.base)?;
        self.title = format!("{} in {folder}", self.title);
        self.key = format!("{}:{folder}", self.key);
        self.notes.push(format!(
            "Only what changed in {} is reviewed; everything else is as it was before the change.",
            change::quote_path(folder.as_bytes())
        ));
        self.nothing = format!("nothing differs in {folder} (it is reviewed alone from within it)");
        Ok(())
    }
}

/// Ends the name of a store that is not complete.
const MAKING: &str = ".making";
/// Begins the name of a store whose review has no run yet.
pub(crate) const FRESH: &str = "new-";

/// The repository as a review saw it; `None` when its store was removed.
pub fn reopen(repo: &Repo, store: &Path) -> Option<Repo> {
    files::is_real_dir(&store.join("objects")).then(|| repo.lending(store).ok()).flatten()
}

/// Whether a name in the folder of the stores is that of one that no review has yet.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.ends_with(MAKING) || name.starts_with(FRESH)
}

/// The checked out branch, as written in keys and titles.
fn checked_out(repo: &Repo) -> Result<String, Error> {
    let branch = repo.current_branch()?;
    Ok(branch.as_deref().map_or("HEAD", short_name).to_owned())
}

fn list(paths: &[String]) -> String {
    const SHOWN: usize = 10;
    let mut text = paths.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if let Some(more) = paths.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        text.push_str(&format!(" and {more} more"));
    }
    text
}
