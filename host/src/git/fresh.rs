//! Fresh repositories for evaluation, made from plain files or from a commit of another repository.
//!
//! The other repository may come from anybody: its objects are borrowed and its configuration is never read, so nothing
//! in it can run. Every step here comes before a command of the task has run in the copy.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::repo::{GitEnv, stores_from};
use super::runner::{self, GitCommand};
use super::side::{self, Layout};
use super::{ObjectId, files, remove_beneath};

/// For bundles and repositories of any size.
const DEADLINE: Duration = Duration::from_secs(600);

#[derive(Debug, thiserror::Error)]
pub enum FreshError {
    #[error(transparent)]
    Git(#[from] runner::Error),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A sentence about a place that the caller names.
    #[error("{0}")]
    NotUsable(String),
}

/// The objects of another repository.
#[derive(Debug, Clone)]
pub struct CommitSource {
    objects: PathBuf,
    format: String,
    /// The list of commits at which its history is cut off.
    shallow: Option<Vec<u8>>,
    /// The store and those it borrows from.
    pub stores: Vec<PathBuf>,
}

impl CommitSource {
    /// Of a clone with a working tree or a bare one. With `within`, its objects must be in that folder and nowhere else.
    pub fn of_folder(folder: &Path, env: &GitEnv, within: Option<&Path>) -> Result<CommitSource, FreshError> {
        let is_bare =
            files::is_plain_file(&folder.join("HEAD")) && files::is_real_dir(&folder.join("objects"));
        if !files::exists(&folder.join(".git")) && !is_bare {
            return Err(FreshError::NotUsable("it is not a git repository".to_owned()));
        }
        let questions = ["rev-parse", "--show-object-format", "--path-format=absolute", "--git-common-dir"];
        let above = folder.parent().unwrap_or(folder);
        let asked = GitCommand::as_user(folder, env)?.env("GIT_CEILING_DIRECTORIES", above).args(questions);
        let answer = asked.done()?;
        let mut lines = answer.line().splitn(2, |byte| *byte == b'\n');
        let format = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
        let common = files::owned_path(lines.next().unwrap_or_default());
        let objects = common.join("objects");
        let objects = objects.canonicalize().map_err(|source| FreshError::Io { path: objects, source })?;
        let stores = stores_from(&objects);
        if let Some(root) = within
            && stores.iter().any(|store| !store.starts_with(root))
        {
            return Err(FreshError::NotUsable("it takes objects from outside of the suite".to_owned()));
        }
        let shallow = std::fs::read(common.join("shallow")).ok();
        Ok(CommitSource { objects, format, shallow, stores })
    }

    /// Of a bundle, which is unpacked into a new folder.
    pub fn of_bundle(bundle: &Path, into: &Path) -> Result<CommitSource, FreshError> {
        // The format of the objects is in the header of a bundle; without it, it is the old one.
        let header = std::fs::File::open(bundle)
            .and_then(|file| {
                let mut start = Vec::new();
                io::Read::read_to_end(&mut io::Read::take(file, 4096), &mut start).map(|_| start)
            })
            .map_err(|source| FreshError::Io { path: bundle.to_owned(), source })?;
        let is_new = memchr::memmem::find(&header, b"@object-format=sha256").is_some();
        let format = if is_new { "sha256" } else { "sha1" };
        let layout = Layout { bare: true, format, ..plain_layout() };
        side::lay_out_new(into, &layout)
            .map_err(|source| FreshError::Io { path: into.to_owned(), source })?;
        let git = GitCommand::new(into)?.scratch().deadline(DEADLINE);
        git.args(["bundle", "unbundle"]).arg(bundle).done()?;
        let objects = into.join("objects");
        let stores = vec![objects.clone()];
        Ok(CommitSource { objects, format: format.to_owned(), shallow: None, stores })
    }
}

/// A working tree with a repository of its own in `.git`.
#[derive(Debug)]
pub struct FreshRepository<'a> {
    tree: &'a Path,
}

impl FreshRepository<'_> {
    /// Of the files that are there already; all of them, also those that a `.gitignore` among them names.
    pub fn of_files(tree: &Path) -> Result<FreshRepository<'_>, FreshError> {
        let fresh = FreshRepository::begin(tree, &plain_layout())?;
        fresh.commit_all("Base")?;
        Ok(fresh)
    }

    /// Of a commit; `None` if the source does not have it.
    pub fn of_commit<'a>(
        tree: &'a Path,
        source: &CommitSource,
        commit: &ObjectId,
    ) -> Result<Option<FreshRepository<'a>>, FreshError> {
        let layout = Layout {
            format: &source.format,
            borrows: &[&source.objects],
            shallow: source.shallow.as_deref(),
            ..plain_layout()
        };
        let fresh = FreshRepository::begin(tree, &layout)?;
        let object = format!("{commit}^{{commit}}");
        if !fresh.git()?.args(["cat-file", "-e", &object]).run()?.status.success() {
            return Ok(None);
        }
        fresh.git()?.args(["update-ref", BRANCH, commit.as_str()]).done()?;
        fresh.git()?.args(["read-tree", "-m", "-u", "HEAD"]).done()?;
        Ok(Some(fresh))
    }

    /// One that was made a moment ago.
    pub fn at(tree: &Path) -> FreshRepository<'_> {
        FreshRepository { tree }
    }

    fn begin<'a>(tree: &'a Path, layout: &Layout<'_>) -> Result<FreshRepository<'a>, FreshError> {
        let dir = tree.join(".git");
        side::lay_out_new(&dir, layout).map_err(|source| FreshError::Io { path: dir, source })?;
        Ok(FreshRepository { tree })
    }

    fn git(&self) -> Result<GitCommand, runner::Error> {
        let git = GitCommand::new(&self.tree.join(".git"))?.work_tree(self.tree);
        Ok(git.scratch().refreshing().deadline(DEADLINE))
    }

    /// The name under which commits are made, whether or not the user has one.
    pub fn set_author(&self, name: &str, email: &str) -> Result<(), FreshError> {
        self.git()?.args(["config", "user.name", name]).done()?;
        self.git()?.args(["config", "user.email", email]).done()?;
        Ok(())
    }

    pub fn commit_all(&self, message: &str) -> Result<(), FreshError> {
        self.git()?.args(["add", "--all", "--force", "."]).done()?;
        self.git()?.args(["commit", "--quiet", "--allow-empty", "-m", message]).done()?;
        Ok(())
    }

    /// Changes files as a patch says; what git says against it otherwise.
    pub fn apply(&self, patch: &str) -> Result<Result<(), String>, FreshError> {
        let git = self.git()?.args(["apply", "--whitespace=nowarn", "-"]).input(patch);
        let output = git.run()?;
        Ok(match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        })
    }
}

/// A bare repository with the branch of a fresh one, for machines that share nothing else with this one: it borrows no
/// objects. It appears whole or not at all, in place of one that was there.
pub fn bare_copy(tree: &Path, into: &Path) -> Result<(), FreshError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| FreshError::Io { path, source }
    };
    let tip = tip(tree)?;
    let name = into.file_name().unwrap_or_default().to_string_lossy();
    let half = into.with_file_name(format!("{name}.half"));
    for path in [&half, into] {
        remove_beneath(path).map_err(failed(path))?;
    }
    let git = || Ok::<_, FreshError>(GitCommand::new(&half)?.deadline(DEADLINE));
    let format = if tip.as_str().len() == 64 { "sha256" } else { "sha1" };
    std::fs::create_dir_all(&half).map_err(failed(&half))?;
    git()?
        .args(["init", "-q", "--bare", "--template=", "--initial-branch=main"])
        .arg(format!("--object-format={format}"))
        .done()?;
    let refspec = format!("+{BRANCH}:{BRANCH}");
    // Both are ours, so this transport is safe.
    let fetch = git()?.env("GIT_ALLOW_PROTOCOL", "file").args([
        "fetch",
        "-q",
        "--no-tags",
        "--update-shallow",
        "--end-of-options",
    ]);
    fetch.arg(tree.join(".git")).arg(refspec).done()?;
    std::fs::rename(&half, into).map_err(failed(into))
}

/// The commit of the branch of a fresh repository.
pub fn tip(tree: &Path) -> Result<ObjectId, FreshError> {
    let tip = FreshRepository::at(tree).git()?.args(["rev-parse", "--verify", BRANCH]).done()?;
    ObjectId::parse(tip.line()).map_err(|_| FreshError::NotUsable("its branch main has no commit".to_owned()))
}

const BRANCH: &str = "refs/heads/main";

fn plain_layout() -> Layout<'static> {
    Layout {
        bare: false,
        format: "sha1",
        borrows: &[],
        head: "ref: refs/heads/main",
        config: "",
        exclude: b"",
        shallow: None,
    }
}
