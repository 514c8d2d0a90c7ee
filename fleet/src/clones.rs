//! The clones of a worker: one for each repository, made when it is first needed and fetched before each order. They have no
//! files of the repository, only its commits: every run works in copies of its own.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use archeflow_host::git::{GitEnv, remote};
use archeflow_host::open::{ProcessEnv, Project};
use archeflow_host::platform::removal::remove_tree;

use crate::message::Repository;
use crate::names;

/// How often a remote is asked before it counts as gone, and the pause before each further time.
const TRIES: u64 = 3;
const PAUSE: Duration = Duration::from_secs(2);

pub struct Clones {
    folder: PathBuf,
    env: ProcessEnv,
    /// One command of git at a time in each clone.
    busy: Mutex<BTreeMap<String, Arc<Mutex<()>>>>,
}

/// A clone that is up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyClone {
    /// Its folder's name below that of all clones.
    pub name: String,
    pub path: PathBuf,
    /// Without `refs/heads/`.
    pub branch: String,
}

impl Clones {
    pub fn new(folder: PathBuf, env: ProcessEnv) -> Clones {
        Clones { folder, env, busy: Mutex::default() }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What runs in these clones are started with.
    pub fn env(&self) -> &ProcessEnv {
        &self.env
    }

    /// The name of a repository's clone.
    pub fn name_of(repository: &Repository) -> String {
        let hash = blake3::hash(repository.url.as_bytes()).to_hex();
        let name: String = names::token(&repository.name).chars().take(80).collect();
        format!("{name}-{}", hash.get(..8).unwrap_or_default())
    }

    /// The clone of a repository, as its remote is now. Errors are git's words.
    pub fn ready(&self, repository: &Repository) -> Result<ReadyClone, String> {
        let name = Clones::name_of(repository);
        let branch = repository.branch.strip_prefix("refs/heads/").unwrap_or(&repository.branch);
        let clone = ReadyClone { path: self.folder.join(&name), name, branch: branch.to_owned() };
        let busy = {
            let mut all = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(clone.name.clone()).or_default())
        };
        let _alone = busy.lock().unwrap_or_else(PoisonError::into_inner);
        let mut why = String::new();
        for n in 0..TRIES {
            thread::sleep(PAUSE * u32::try_from(n).unwrap_or(1));
            match self.bring(&clone, &repository.url) {
                Ok(()) => return Ok(clone),
                Err(said) => why = said,
            }
        }
        Err(format!("{} ({}) can't be used: {why}", repository.name, repository.url))
    }

    fn bring(&self, clone: &ReadyClone, url: &str) -> Result<(), String> {
        let env = GitEnv::new(self.env.variables.clone());
        if !clone.path.exists() {
            // Half a clone is never taken for a whole one.
            let half = self.folder.join(format!("{}.half", clone.name));
            let failed = |error: std::io::Error| format!("{}: {error}", half.display());
            if half.exists() {
                remove_tree(&half).map_err(failed)?;
            }
            remote::clone(url, &half, &env)?;
            fs::rename(&half, &clone.path).map_err(failed)?;
        }
        remote::refresh(&clone.path, &clone.branch, &env)
    }

    /// What is in a clone.
    pub fn project(&self, clone: &ReadyClone) -> Result<Project, String> {
        let opened = Project::open(self.env.clone(), &clone.path, Some(&clone.branch), false);
        opened.map_err(|error| error.to_string())
    }
}
