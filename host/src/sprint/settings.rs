//! The limits of a sprint, from the configuration beside its queue.

use std::path::Path;

use archeflow_core::sprint::policy::SprintPolicy;

use crate::config::{Flags, Inputs, Settings, user};
use crate::git::repo;
use crate::open::{Error, ProcessEnv, Project};

/// The configuration of the repository with the queue at its top, if there is one, and the user's own file, which wins.
/// A repository further up has nothing to do with it: many people keep their whole home in one.
pub fn policy(env: &ProcessEnv, root: &Path) -> Result<SprintPolicy, Error> {
    if !root.join(".git").exists() {
        return users(env, root);
    }
    match Project::open(env.clone(), root, None, false) {
        Ok(project) => Ok(project.settings(&Flags::default(), None)?.sprint()),
        Err(Error::Repo(repo::Error::NotARepository { .. }) | Error::Bare { .. }) => users(env, root),
        Err(error) => Err(error),
    }
}

fn users(env: &ProcessEnv, root: &Path) -> Result<SprintPolicy, Error> {
    let env = env.places();
    let folder =
        user::folder(env.xdg_config_home.as_deref().map(Path::new), env.home.as_deref().map(Path::new));
    let user = folder.map_or(Ok(Vec::new()), |folder| user::read(&folder, root))?;
    let flags = Flags::default();
    let inputs = Inputs { repository: &[], approved: false, user: &user, file: None, flags: &flags };
    Ok(Settings::resolve(&inputs)?.sprint())
}
