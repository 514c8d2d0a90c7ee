//! Working copies.

use std::path::{Path, PathBuf};

use archeflow_core::rules::keeping::{self, CopyFacts, RunFate};

use super::{CleanedKind, Cleaner, disk};
use crate::git::workspace::{self, IdleCopy};

const FOLDER: &str = "workspaces";

/// The copies for one repository.
pub(super) fn pool(state: &Path, repository: &str) -> PathBuf {
    state.join(FOLDER).join(repository)
}

/// The copies for all repositories, also for those that are gone.
pub(super) fn pools(state: &Path) -> Vec<PathBuf> {
    disk::entries(&state.join(FOLDER)).filter(|pool| disk::is_real_folder(pool)).collect()
}

impl Cleaner<'_> {
    pub(super) fn copies(&mut self, pool: &Path) {
        self.finish_earlier(pool);
        let is_copy = |path: &PathBuf| workspace::is_copy(path) && disk::is_real_folder(path);
        for path in disk::entries(pool).filter(is_copy) {
            let idle = match IdleCopy::reserve(&path) {
                Ok(idle) => idle,
                Err(error) => {
                    self.report.failed.push((path, error.to_string()));
                    continue;
                }
            };
            self.fates.listed();
            let owner = idle.as_ref().map(|idle| idle.owner.clone()).unwrap_or_default();
            let seen = self.fates.of_id(&owner);
            let used = if seen.fate == RunFate::Gone { disk::changed_at(&path) } else { seen.last };
            let facts = CopyFacts {
                held: idle.is_none(),
                pending: idle.as_ref().is_some_and(|idle| idle.pending),
                run: seen.fate,
                idle_days: self.days_since(used),
                asked: self.asked,
            };
            let decided = keeping::copy(facts, self.keep);
            self.settle(CleanedKind::Copy, &path, decided, || disk::remove_whole(&path));
            drop(idle);
        }
    }
}
