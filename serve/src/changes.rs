//! The diffs of runs, from git. Commits do not change, so the last few are kept.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use archeflow_host::git::{GitEnv, ObjectId, Repo, change};

use crate::report::diff::{self, Diff};
use crate::run_model::RunModel;

/// Diffs that are kept.
const KEPT: usize = 8;

type Key = (PathBuf, String, String);

#[derive(Default)]
pub(crate) struct Changes(Mutex<Vec<(Key, Arc<Diff>)>>);

impl Changes {
    /// What landed, or else what is on the branch.
    pub(crate) fn of(&self, state: Option<&Path>, run: &RunModel) -> Arc<Diff> {
        let Some((base, commit)) = run.story.span() else { return missing("Nothing was made.") };
        let key = (run.repository.root.clone(), base, commit);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = kept.iter().position(|(known, _)| *known == key) {
            let found = kept.remove(at);
            let diff = Arc::clone(&found.1);
            kept.push(found);
            return diff;
        }
        drop(kept);
        let Some(state) = state else { return missing("There is no state folder to read git with.") };
        let diff = Arc::new(read(&key, state));
        if diff.missing.is_none() {
            let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= KEPT {
                kept.remove(0);
            }
            kept.push((key, Arc::clone(&diff)));
        }
        diff
    }
}

fn missing(why: &str) -> Arc<Diff> {
    Arc::new(Diff::missing(why))
}

fn read((root, base, commit): &Key, state: &Path) -> Diff {
    let (Ok(from), Ok(to)) = (ObjectId::parse(base.as_bytes()), ObjectId::parse(commit.as_bytes())) else {
        return Diff::missing("The journal names no commits for it.");
    };
    let repo = match Repo::open(root, state, &GitEnv::of_process()) {
        Ok(repo) => repo,
        Err(error) => return Diff::missing(format!("The repository can't be read: {error}")),
    };
    match change::diff_text(&repo, &from, &to, diff::BYTES) {
        Ok(read) => Diff::read(&read.text(), read.truncated_at, format!("git diff {from}...{to}")),
        Err(error) => Diff::missing(format!("The commits are not in the repository any more: {error}")),
    }
}
