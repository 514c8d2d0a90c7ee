//! The limits of a sprint, from the configuration beside its queue.

use std::path::Path;

use archeflow_core::settings::NotifySettings;
use archeflow_core::sprint::policy::SprintPolicy;

use crate::config::{Flags, Settings};
use crate::git::repo;
use crate::open::{Error, ProcessEnv, Project, users_settings};

/// The configuration of the repository with the queue at its top, if there is one, and the user's own file, which wins.
/// A repository further up has nothing to do with it: many people keep their whole home in one.
pub fn policy(env: &ProcessEnv, root: &Path) -> Result<SprintPolicy, Error> {
    Ok(settings(env, root)?.sprint())
}

/// How a person is notified about the sprint and its runs.
pub fn notify(env: &ProcessEnv, root: &Path) -> Result<NotifySettings, Error> {
    Ok(settings(env, root)?.notify())
}

fn settings(env: &ProcessEnv, root: &Path) -> Result<Settings, Error> {
    if !root.join(".git").exists() {
        return users_settings(env, root, None);
    }
    match Project::open(env.clone(), root, None, false) {
        Ok(project) => project.settings(&Flags::default(), None),
        Err(Error::Repo(repo::Error::NotARepository { .. }) | Error::Bare { .. }) => {
            users_settings(env, root, None)
        }
        Err(error) => Err(error),
    }
}
