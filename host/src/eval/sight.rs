//! Whether an agent would be shown the suite that it is measured with: its script is shown to it, with the folder it is in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::backends::AgentBackend;
use crate::backends::needs::{self, NeedsInputs};

/// Where an agent of an evaluation is looked for.
#[derive(Debug, Clone, Copy)]
pub struct AgentSight<'a> {
    pub cwd: &'a Path,
    pub me: &'a Path,
    pub variables: &'a [(OsString, OsString)],
    /// The folder of the evaluation, with the repositories of the trials.
    pub evaluation: &'a Path,
}

impl AgentSight<'_> {
    /// What an agent would be shown and has the suite in it, or is part of it. Nothing of an agent that can't be read: that is
    /// reported when it is started.
    pub fn of_suite(self, agent: &str, suite: &Path) -> Option<PathBuf> {
        let agent = AgentBackend::parse(agent, self.cwd).ok()?;
        let suite = suite.canonicalize().ok()?;
        let inputs = NeedsInputs {
            variables: self.variables,
            linked: &[],
            me: self.me,
            checkout: self.evaluation,
            state: self.evaluation,
        };
        let shown = needs::of(&agent, inputs).readable.into_iter();
        shown.filter(|path| path != self.me).find(|path| {
            let real = path.canonicalize().unwrap_or_default();
            real.starts_with(&suite) || suite.starts_with(&real) && !real.as_os_str().is_empty()
        })
    }
}
