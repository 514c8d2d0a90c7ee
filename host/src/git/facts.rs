//! Where the parts of a repository are, as the user's own git says.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::files;
use super::repo::{Error, GitEnv};
use super::runner::{self, GitCommand};

/// Where the parts of a repository are.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) format: String,
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
    pub(super) work_tree: Option<PathBuf>,
}

/// What git said a moment ago.
struct LatestFacts {
    path: PathBuf,
    env: GitEnv,
    at: Instant,
    facts: Facts,
}

/// How long an answer about the places of a repository is used again.
const STILL_HOLDS: Duration = Duration::from_secs(1);

impl Facts {
    pub(super) fn ask(path: &Path, env: &GitEnv) -> Result<Facts, Error> {
        match Facts::ask_at_once(path, env)? {
            Some(facts) => Ok(facts),
            None => Facts::ask_one_by_one(path, env),
        }
    }

    /// The plain case, a working tree and no path with a newline in it, takes one question. A command that asks again at
    /// once, for another part of its work, gets the same answer.
    fn ask_at_once(path: &Path, env: &GitEnv) -> Result<Option<Facts>, Error> {
        static LATEST: Mutex<Option<LatestFacts>> = Mutex::new(None);
        let latest = || LATEST.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |latest: &LatestFacts| {
            let is_same = latest.path == path && latest.env == *env && latest.at.elapsed() < STILL_HOLDS;
            is_same && files::is_real_dir(&latest.facts.git_dir)
        };
        if let Some(latest) = latest().as_ref().filter(|latest| holds(latest)) {
            return Ok(Some(latest.facts.clone()));
        }
        let found = Facts::ask_git(path, env)?;
        *latest() = found.clone().map(|facts| LatestFacts {
            path: path.to_owned(),
            env: env.clone(),
            at: Instant::now(),
            facts,
        });
        Ok(found)
    }

    fn ask_git(path: &Path, env: &GitEnv) -> Result<Option<Facts>, Error> {
        let questions = ["--is-inside-git-dir", "--is-inside-work-tree", "--show-object-format"];
        let places = ["--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel"];
        if !path.is_dir() {
            return Ok(None);
        }
        let output = GitCommand::as_user(path, env)?.arg("rev-parse").args(questions).args(places).run()?;
        let lines: Vec<&[u8]> = output.line().split(|byte| *byte == b'\n').collect();
        let [b"false", b"true", format, git_dir, common_dir, work_tree] = lines[..] else { return Ok(None) };
        let place = |bytes: &[u8]| fs::canonicalize(files::path(bytes)).ok();
        let places = (place(git_dir), place(common_dir), place(work_tree));
        let (true, (Some(git_dir), Some(common_dir), Some(work_tree))) = (output.status.success(), places)
        else {
            return Ok(None);
        };
        let format = String::from_utf8_lossy(format).into_owned();
        Ok(Some(Facts { format, git_dir, common_dir, work_tree: Some(work_tree) }))
    }

    fn ask_one_by_one(path: &Path, env: &GitEnv) -> Result<Facts, Error> {
        let ask = |question: &[&str]| accepted(path, env, question);
        let facts = ask(&[
            "--is-inside-git-dir",
            "--is-bare-repository",
            "--is-inside-work-tree",
            "--show-object-format",
        ])?;
        let facts = String::from_utf8_lossy(&facts).into_owned();
        let facts: Vec<&str> = facts.lines().collect();
        let [inside_git_dir, bare, inside_work_tree, format] = facts[..] else {
            let answer = facts.join(" ");
            return Err(runner::Error::Unexpected { what: "rev-parse".to_owned(), answer }.into());
        };
        if inside_git_dir == "true" && bare != "true" {
            return Err(Error::InsideGitDir { path: path.to_owned() });
        }
        // One question each: a path may hold any byte but NUL, even the newline that ends the answer.
        let absolute =
            |question| ask(&["--path-format=absolute", question]).map(|answer| files::owned_path(&answer));
        let git_dir = canonical(&absolute("--git-dir")?)?;
        let common_dir = canonical(&absolute("--git-common-dir")?)?;
        let work_tree = match inside_work_tree {
            "true" => Some(canonical(&absolute("--show-toplevel")?)?),
            _ => None,
        };
        Ok(Facts { format: format.to_owned(), git_dir, common_dir, work_tree })
    }
}

/// The root of the working tree that `path` is in; `None` in a repository without one.
pub(crate) fn work_tree_of(path: &Path, env: &GitEnv) -> Result<Option<PathBuf>, Error> {
    if let Some(facts) = Facts::ask_at_once(path, env)? {
        return Ok(facts.work_tree);
    }
    let facts = accepted(path, env, &["--is-inside-git-dir", "--is-inside-work-tree"])?;
    match facts.as_slice() {
        b"false\ntrue" => {
            let root = accepted(path, env, &["--path-format=absolute", "--show-toplevel"])?;
            Ok(Some(canonical(&files::owned_path(&root))?))
        }
        b"true\nfalse" if accepted(path, env, &["--is-bare-repository"])? != b"true" => {
            Err(Error::InsideGitDir { path: path.to_owned() })
        }
        _ => Ok(None),
    }
}

/// Asks the user's own git, in the user's own environment, and passes its refusal on.
fn accepted(path: &Path, env: &GitEnv, question: &[&str]) -> Result<Vec<u8>, Error> {
    let refused = |said: String| Error::NotARepository { path: path.to_owned(), said };
    if !path.is_dir() {
        return Err(refused("there is no such directory".to_owned()));
    }
    let output = GitCommand::as_user(path, env)?.arg("rev-parse").args(question).run()?;
    if !output.status.success() {
        return Err(refused(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
    }
    Ok(output.line().to_vec())
}

pub(super) fn canonical(path: &Path) -> Result<PathBuf, Error> {
    fs::canonicalize(path).map_err(|source| Error::Io { path: path.to_owned(), source })
}
