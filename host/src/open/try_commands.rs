//! Tries the setup and test commands before there is a run, as the first step of one does (`archeflow init`).

use std::path::PathBuf;
use std::sync::Arc;

use archeflow_core::event::{PreflightDone, PreflightStart};
use archeflow_core::model::Policy;

use super::{Error, Project};
use crate::config::Settings;
use crate::executors;
use crate::git;
use crate::nonce::nonce;
use crate::platform::files as os;
use crate::platform::removal::remove_tree;
use crate::world::{World, allowed_env};

/// How the commands ended, and where their output is.
pub struct TriedCommands {
    pub done: PreflightDone,
    pub logs: PathBuf,
}

/// Commands that can be tried on the last commit.
pub struct CommandTrial {
    pub world: Arc<World>,
    commit: String,
}

impl Project {
    /// With the copies and the sandbox that runs have. `None` if nothing is committed yet.
    pub fn command_trial(self, settings: &Settings) -> Result<Option<CommandTrial>, Error> {
        let Some(target) = self.target.clone() else { return Ok(None) };
        // Nothing is committed by a trial.
        let needed = |error: &Error| {
            !matches!(error, Error::Repo(git::repo::Error::NoIdentity | git::repo::Error::Signing(_)))
        };
        if let Some(error) = self.check_git(settings).err().filter(needed) {
            return Err(error);
        }
        let sandbox = self.sandbox(settings)?;
        self.places.make()?;
        let run_id = "init".to_owned();
        let extra = settings.variables();
        let env = (allowed_env(self.env.variables.clone(), &extra), self.client_variables(settings));
        let (tag, me) = (format!("{run_id}.{}", nonce()), self.env.me);
        let personas = std::collections::BTreeMap::new();
        let keep = settings.keep();
        let world =
            World::new(self.repo, self.places, self.state, run_id, tag, me, env, personas, sandbox, keep);
        Ok(Some(CommandTrial { world: Arc::new(world), commit: target.oid.to_string() }))
    }
}

impl CommandTrial {
    pub fn run(
        self,
        setup: Option<String>,
        tests: Option<String>,
        policy: &Policy,
    ) -> std::io::Result<TriedCommands> {
        let logs = self.world.artifacts();
        os::make_private(&logs)?;
        let policy = Policy { setup_command: setup.clone(), ..policy.clone() };
        let start = PreflightStart {
            commit: self.commit,
            setup_command: setup,
            test_command: tests,
            setup_limit_ms: policy.limits.setup_ms,
            tests_limit_ms: policy.limits.tests_ms,
        };
        let done = executors::try_commands(&self.world, &policy, &start);
        if done.is_passed() {
            remove_tree(&logs)?;
        }
        Ok(TriedCommands { done, logs })
    }
}
