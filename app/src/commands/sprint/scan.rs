//! `archeflow sprint scan`: what could be done in the projects, as proposals.

use std::path::Path;

use archeflow_host::sprint::scan;
use archeflow_host::store::places::Places;
use archeflow_host::{clock, git};
use serde_json::json;

use super::{place, projects, queue};
use crate::args::SprintScan;
use crate::commands::process_env;
use crate::failure::Failure;
use crate::output::CommandOutput;
use crate::render::text::safe_line;

/// Who has more repositories in one folder names those that are meant.
const MOST: usize = 500;

pub(super) fn run(args: &SprintScan) -> Result<CommandOutput, Failure> {
    let place = place(&args.place)?;
    let root = projects(&args.place, &place)?;
    let env = process_env()?;
    let state = Places::at(place.root())?.state_dir(&env.places())?;
    let env = git::GitEnv::new(env.variables.clone());
    let names = if args.only.is_empty() { repositories(&root) } else { args.only.clone() };
    let (mut found, now) = (Vec::new(), clock::now());
    for name in &names {
        match scan::project(&root, name, &state, &env, now) {
            Ok(some) => found.extend(some),
            // One bad project does not keep the others from being scanned (M-N7).
            Err(error) => tell!("warning: {}: {}", safe_line(name), safe_line(&error.to_string())),
        }
    }
    let added = place.change(|queue| {
        queue.maintained(&clock::written(now))?;
        scan::propose(queue, found)
    })?;
    if args.place.json {
        return Ok(CommandOutput::json(json!({ "projects": names, "added": added })));
    }
    Ok(CommandOutput::text(queue::added(&added)))
}

/// The folder itself and the folders in it that are repositories, by name.
fn repositories(root: &Path) -> Vec<String> {
    let is_repository = |path: &Path| path.join(".git").exists();
    let folders = std::fs::read_dir(root).into_iter().flatten().flatten();
    let mut names: Vec<String> = folders
        .filter(|entry| is_repository(&entry.path()))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names.truncate(MOST);
    if is_repository(root) {
        names.insert(0, ".".to_owned());
    }
    names
}
