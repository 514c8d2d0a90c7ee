//! Runs of trials as processes of this machine, started as a sprint starts its own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use archeflow_core::eval::TrialKey;

use super::crew::{TrialAgent, TrialCrew, TrialRun, TrialRunEnd};
use super::folder::{EvalFolder, REPOSITORY, RUN};
use super::trial::{only_item, run_progress, shown};
use crate::proc::Watch;
use crate::sprint::crew::SprintCrew;
use crate::sprint::local_crew::{LocalCrew, LocalRuns};
use crate::store::files;

/// What runs on this machine are started with.
#[derive(Debug)]
pub struct LocalTrials<'a> {
    pub folder: &'a EvalFolder,
    /// Trials at a time.
    pub jobs: usize,
    pub me: PathBuf,
    /// The user's current directory: agents are looked up from there.
    pub cwd: PathBuf,
    /// The user's environment.
    pub variables: Vec<(OsString, OsString)>,
    /// Somebody typed that commands are to run without a sandbox.
    pub no_sandbox: bool,
    /// Ends the runs.
    pub watch: Watch,
}

impl LocalTrials<'_> {
    /// The state folder of an evaluation is its own: nothing that is remembered of other runs takes part.
    fn environment(&self) -> Vec<(OsString, OsString)> {
        let variables = self.variables.iter();
        let mut env: Vec<_> = variables.filter(|(name, _)| name != "XDG_STATE_HOME").cloned().collect();
        env.push(("XDG_STATE_HOME".into(), self.folder.state().into()));
        env
    }

    fn crew(&self, trial: &TrialRun<'_>, limit: Duration) -> LocalCrew {
        let runs = LocalRuns {
            projects: self.folder.trial(trial.key),
            me: self.me.clone(),
            cwd: self.cwd.clone(),
            env: self.environment(),
            said: flags(trial),
            // The prompts of an arm are in its folder, also for a run that is resumed.
            always: vec!["--config".into(), trial.arm.into()],
            no_sandbox: self.no_sandbox,
            own_workflow: true,
            limit: Some(limit),
            tag: format!("{}{}", self.folder.tag(), files::digest(shown(trial.key).as_bytes())),
        };
        LocalCrew::under(runs, self.watch.branch())
    }
}

impl TrialCrew for LocalTrials<'_> {
    fn most(&self) -> usize {
        self.jobs.max(1)
    }

    fn room(&self) -> usize {
        self.most()
    }

    fn run(&self, trial: &TrialRun<'_>) -> TrialRunEnd {
        let before = run_progress(&self.journal(trial.key));
        let limit = trial.task.limit.saturating_sub(before.active);
        if limit.is_zero() {
            return TrialRunEnd { is_late: true, ..TrialRunEnd::default() };
        }
        let begun = Instant::now();
        let crew = self.crew(trial, limit);
        let item = only_item(RUN, REPOSITORY, &trial.task.text);
        let end = match before.is_busy {
            true => crew.resume(1, &item, RUN),
            false => crew.run(1, &item, RUN, trial.task.dollars),
        };
        TrialRunEnd { detail: end.detail, is_late: begun.elapsed() >= limit, goes_on: false }
    }

    fn journal(&self, key: &TrialKey) -> PathBuf {
        self.repository(key).join(".archeflow/events").join(format!("{RUN}.jsonl"))
    }

    fn repository(&self, key: &TrialKey) -> PathBuf {
        self.folder.trial(key).join(REPOSITORY)
    }
}

fn flags(trial: &TrialRun<'_>) -> Vec<OsString> {
    let agent = match trial.agent {
        TrialAgent::Named(agent) => OsString::from(agent),
        TrialAgent::Simulated(file) => {
            let mut agent = OsString::from("sim:");
            agent.push(file);
            agent
        }
    };
    let mut flags: Vec<OsString> = vec!["--agent".into(), agent, "--auto-merge".into()];
    match &trial.task.visible {
        Some(visible) => flags.extend(["--test-command".into(), visible.command.clone().into()]),
        None => flags.push("--no-tests".into()),
    }
    flags
}
