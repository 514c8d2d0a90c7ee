//! Simulated agents of a trial: what they know, in a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use archeflow_core::eval::sim::{SimPopulation, SimSetup};
use archeflow_core::eval::{EvalPlan, SeededRandom, TrialKey};

use super::{Bench, EvalFolder, EvalRunError};
use crate::eval::{EvalTask, TaskFiles, TaskOrigin, folders};
use crate::store::files;

impl Bench<'_> {
    /// Writes the setup of a trial's agents.
    pub(super) fn simulated(
        &self,
        key: &TrialKey,
        task: &EvalTask,
        population: &SimPopulation,
    ) -> Result<PathBuf, EvalRunError> {
        let setup = trial_setup(self.plan, key, task, population)?;
        write_setup(self.folder, key, &setup)
    }
}

pub(super) fn write_setup(
    folder: &EvalFolder,
    key: &TrialKey,
    setup: &SimSetup,
) -> Result<PathBuf, EvalRunError> {
    let text = serde_json::to_string(setup).unwrap_or_default();
    let path = folder.agents(key);
    files::write_atomic(&path, text.as_bytes())?;
    Ok(path)
}

/// What the agents of a trial know. The seed depends on task and repeat, not on the arm: all arms meet the same Maker.
pub(super) fn trial_setup(
    plan: &EvalPlan,
    key: &TrialKey,
    task: &EvalTask,
    population: &SimPopulation,
) -> Result<SimSetup, EvalRunError> {
    let unusable = |why: &str| {
        let why = format!("simulated agents can't do the task {}: {why}", key.task);
        EvalRunError::Machine(why)
    };
    let TaskOrigin::Files(base) = &task.origin else { return Err(unusable("it has no folder base/")) };
    let Some(TaskFiles::Folder(reference)) = &task.reference else {
        return Err(unusable("it has no folder reference/"));
    };
    let wrong = match &task.trap {
        Some(TaskFiles::Folder(folder)) => texts(folder),
        Some(TaskFiles::Patch { .. }) | None => BTreeMap::new(),
    };
    let seed = format!("{}\n{}\n{}", plan.seed, key.task, key.repeat);
    let of_base = |path: &str| fs::read_to_string(base.join(path)).ok();
    Ok(SimSetup::new(mixed(&seed), population.clone(), of_base, texts(reference), wrong))
}

fn mixed(text: &str) -> u64 {
    let digest = files::digest(text.as_bytes());
    let seed = digest.get(..16).and_then(|part| u64::from_str_radix(part, 16).ok()).unwrap_or(0);
    SeededRandom::new(seed).next_u64()
}

/// The whole content of all files below a folder that are text.
fn texts(folder: &Path) -> BTreeMap<String, String> {
    let paths = folders::files_below(folder).into_iter();
    paths.filter_map(|path| fs::read_to_string(folder.join(&path)).ok().map(|text| (path, text))).collect()
}
